// SPDX-License-Identifier: GPL-2.0
/*
 * Mapping files: the file behind the user mappings of an account.
 *
 * Each account has at most one mapping file. The first mapping creates the file, and
 * the file is closed after the account has ended. The file refers to no context and no
 * buffer object: each VMA has its own reference to its buffer object. A mapping
 * therefore outlives FREE, and does not extend the life of other memory.
 *
 * The inode belongs to one account only. Its address_space contains all mappings of
 * this account, for unmap_mapping_range().
 *
 * The inodes live on the kernel's mount of anonymous inodes. The file "anchor" leads to
 * this mount, so that the module needs no file system of its own, which could be in
 * use when the module is unloaded.
 *
 * Locking: mapping_size_lock guards the sizes of the inodes once they are mapped.
 * accmem_account.file is set once, with cmpxchg().
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/mapping.h"
#include "types/account_types.h"
#include "types/backing_types.h"

static DEFINE_SPINLOCK(mapping_size_lock); /* i_size of inodes in use */
static struct file *anchor; /* a file on the mount of anonymous inodes */

int accmem_mapping_init(void)
{
	/*
	 * The kernel closes the file some time after fput(), perhaps when the module
	 * is unloaded. Its operations must therefore be the kernel's, not the module's.
	 */
	anchor = anon_inode_getfile("[accmem]", &generic_ro_fops, NULL,
				    O_RDONLY);
	return PTR_ERR_OR_ZERO(anchor);
}

void accmem_mapping_exit(void)
{
	fput(anchor);
}

/* Closing the file drops the reference to the module. */
static const struct file_operations mapping_fops = {
	.owner = THIS_MODULE,
};

/* The kernel makes entries of 2 MiB only below the size of the inode. */
static struct inode *mapping_inode(void)
{
	struct inode *inode = alloc_anon_inode(file_inode(anchor)->i_sb);

	if (IS_ERR(inode))
		return inode;
	inode->i_flags |= S_NOCMTIME;
	i_size_write(inode, ACCMEM_MAX_SPAN);
	return inode;
}

static struct file *mapping_create(void)
{
	struct inode *inode;
	struct file *file;

	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	inode = mapping_inode();
	if (IS_ERR(inode)) {
		module_put(THIS_MODULE);
		return ERR_CAST(inode);
	}
	file = alloc_file_pseudo(inode, anchor->f_path.mnt, "[accmem]", O_RDWR,
				 &mapping_fops);
	if (IS_ERR(file)) {
		iput(inode);
		module_put(THIS_MODULE);
	}
	return file;
}

/**
 * accmem_mapping_file() - get the mapping file of an account
 * @account: the account whose memory is mapped
 *
 * The first call creates the file. The permissions of a mapping were checked when the
 * file of the device was opened, so that the mapping file allows everything.
 *
 * Context: Process context. Takes no lock: if two tasks create the file, cmpxchg()
 * selects one file, and the other task drops its own. May sleep.
 * Return: the file, with a reference for the mapping; -ENFILE, -ENOMEM, -ENODEV.
 */
struct file *accmem_mapping_file(struct accmem_account *account)
{
	struct file *file = READ_ONCE(account->file), *old;

	if (!file) {
		file = mapping_create();
		if (IS_ERR(file))
			return file;
		old = cmpxchg(&account->file, NULL, file);
		if (old) {
			fput(file);
			file = old;
		}
	}
	return get_file(file);
}

/**
 * accmem_mapping_drop_1g() - remove the entries of 1 GiB around an offset
 * @mapping: the address_space of a mapping file
 * @offset: offset in bytes
 *
 * unmap_mapping_range() must not remove a part of an entry of 1 GiB: the kernel up to 6.12
 * warns, as the caller does not hold mmap_lock. The split of a VMA inside an entry of
 * 1 GiB would read the entry as a page table. In both cases the whole entry is removed
 * before, in all processes. The caller prevents faults that would make the entry again.
 * Later faults map the remaining memory, by smaller entries.
 *
 * Context: Process context. May sleep.
 */
void accmem_mapping_drop_1g(struct address_space *mapping, u64 offset)
{
	u64 start = round_down(offset, (u64)SZ_1G);

	if (ACCMEM_HUGE_FRAMES && start != offset)
		unmap_mapping_range(mapping, start, SZ_1G, 1);
}

/**
 * accmem_mapping_limit_huge() - let the kernel map a folio by single pages only
 * @file: the mapping file of the folio's account
 * @start: offset of the folio in the mapping file, in bytes
 *
 * Newer kernels map all pages of a folio at a fault for one of them, unless the folio
 * extends beyond the size of the inode. Folios behind this one are mapped by single pages
 * from then on, too, as long as the account exists.
 *
 * Context: Process context. The caller holds the folio lock. Does not sleep.
 */
void accmem_mapping_limit_huge(struct file *file, u64 start)
{
	struct inode *inode = file_inode(file);

	spin_lock(&mapping_size_lock);
	if (i_size_read(inode) > start)
		i_size_write(inode, start);
	spin_unlock(&mapping_size_lock);
}

/*
 * Move the next mapped buffer object of an account to @seen. Return false after the last.
 * *@bo: out: the buffer object, with a reference; NULL if it is being released.
 */
static bool mapping_next(struct accmem_account *account,
			 struct accmem_carveout *cv, struct list_head *seen,
			 struct accmem_bo **bo)
{
	struct accmem_bo *next;

	accmem_carveout_lock(cv);
	next = list_first_entry_or_null(&account->memory[cv->index].mapped,
					struct accmem_bo, own_link);
	*bo = next;
	if (next) {
		list_move_tail(&next->own_link, seen);
		if (!kref_get_unless_zero(&next->refs))
			*bo = NULL;
	}
	accmem_carveout_unlock(cv);
	return next;
}

/* Wait until the kernel has mapped all pages that faults have returned. */
static void mapping_settle(struct accmem_account *account,
			   struct accmem_carveout *cv)
{
	struct accmem_bo *bo;
	LIST_HEAD(seen);

	while (mapping_next(account, cv, &seen, &bo)) {
		if (!bo)
			continue;
		cv->ops->settle(bo);
		accmem_bo_put_user(bo);
		cond_resched();
	}
	accmem_carveout_lock(cv);
	list_splice(&seen, &account->memory[cv->index].mapped);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_mapping_revoke() - remove the user mappings of an account
 * @account: the account
 * @carveouts: carveouts of the device, whose memory is revoked
 *
 * A fault that began before the revocation may have returned a page that is not mapped
 * yet. The page is locked until it is, so the function waits for the lock.
 *
 * Context: Process context. One task at a time for a device. Takes and releases the locks
 * of carveouts, pages and of the address_space. May sleep.
 */
void accmem_mapping_revoke(struct accmem_account *account,
			   struct accmem_carveouts *carveouts)
{
	struct file *file = READ_ONCE(account->file);
	struct accmem_carveout *cv;

	if (!file)
		return;
	for (cv = carveouts->cvs; cv < carveouts->end; cv++) {
		if (cv->ops->settle)
			mapping_settle(account, cv);
	}
	unmap_mapping_range(file->f_mapping, 0, 0, 1);
}
