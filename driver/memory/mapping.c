// SPDX-License-Identifier: GPL-2.0
/*
 * The file behind the mappings of an account's memory.
 *
 * It is made with the first mapping, holds neither context nor memory, and goes
 * with the account: a mapping holds its memory itself, so that it outlives FREE,
 * and one small mapping does not keep everything else alive. Its inode (and so
 * its address_space, to find mappings by) is nobody else's.
 *
 * Owns the mount that the inodes live on: that of the kernel's anonymous
 * inodes, reached through a file on it, so that no file system of ours can be
 * in use when the module goes.
 *
 * Locks: none.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>

#include "memory/mapping.h"
#include "types/account_types.h"
#include "types/carveout_types.h"

static struct file *anchor; /* a file on the mount of anonymous inodes */

int accmem_mapping_init(void)
{
	/*
	 * It is closed some time after fput(), maybe when the module has gone:
	 * its operations must not be ours.
	 */
	anchor = anon_inode_getfile("[accmem]", &generic_ro_fops, NULL,
				    O_RDONLY);
	return PTR_ERR_OR_ZERO(anchor);
}

void accmem_mapping_exit(void)
{
	fput(anchor);
}

/* the file gives the module back when it is closed */
static const struct file_operations mapping_fops = {
	.owner = THIS_MODULE,
};

/* 2 MiB entries need an inode of that size */
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
 * accmem_mapping_file() - the file for one more mapping
 * @account: whose memory is mapped
 *
 * What a mapping may do was decided when the device's file was opened: this one
 * allows everything.
 *
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
