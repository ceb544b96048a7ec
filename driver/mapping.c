// SPDX-License-Identifier: GPL-2.0
/*
 * The file behind the mappings of a memory.
 *
 * It is made with the first mapping, holds the memory and not the context, and
 * goes with the last one: a mapping outlives FREE, and one small mapping does
 * not keep everything else alive. All of an account's files share one inode (and
 * so one address_space, to find mappings by), which is nobody else's.
 *
 * Owns the mount that the inodes live on: that of the kernel's anonymous
 * inodes, reached through a file on it, so that no file system of ours can be
 * in use when the module goes.
 *
 * Locks: memory.lock guards the memory's pointer to its file.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>

#include "../compat/compat.h"
#include "mapping.h"
#include "memory.h"

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

static int mapping_release(struct inode *inode, struct file *file)
{
	struct accmem_memory *mem = file->private_data;

	mutex_lock(&mem->lock);
	/* or that of a mapping made since the last reference went */
	if (mem->file == file)
		mem->file = NULL;
	mutex_unlock(&mem->lock);
	accmem_memory_put(mem);
	return 0;
}

static const struct file_operations mapping_fops = {
	.owner = THIS_MODULE,
	.release = mapping_release,
};

/* the inode of an account, with a reference; 2 MiB entries need its size */
static struct inode *mapping_inode(struct accmem_account *account)
{
	struct inode *inode = READ_ONCE(account->inode), *old;

	if (!inode) {
		inode = alloc_anon_inode(file_inode(anchor)->i_sb);
		if (IS_ERR(inode))
			return inode;
		inode->i_flags |= S_NOCMTIME;
		i_size_write(inode, ACCMEM_MAX_SPAN);
		old = cmpxchg(&account->inode, NULL, inode);
		if (old) {
			iput(inode);
			inode = old;
		}
	}
	ihold(inode);
	return inode;
}

static struct file *mapping_create(struct accmem_memory *mem)
{
	struct inode *inode;
	struct file *file;

	/* the file gives it back when it is closed */
	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	inode = mapping_inode(mem->account);
	if (IS_ERR(inode)) {
		module_put(THIS_MODULE);
		return ERR_CAST(inode);
	}
	file = alloc_file_pseudo(inode, anchor->f_path.mnt, "[accmem]", O_RDWR,
				 &mapping_fops);
	if (IS_ERR(file)) {
		iput(inode);
		module_put(THIS_MODULE);
		return file;
	}
	accmem_memory_get(mem);
	file->private_data = mem;
	return file;
}

/**
 * accmem_mapping_file() - the file for one more mapping of a memory
 * @mem: the memory
 *
 * What a mapping may do was decided when the device's file was opened: this one
 * allows everything.
 *
 * Return: the file, with a reference for the mapping; -ENFILE, -ENOMEM, -ENODEV.
 */
struct file *accmem_mapping_file(struct accmem_memory *mem)
{
	struct file *file = NULL;

	mutex_lock(&mem->lock);
	if (mem->file)
		file = accmem_get_live_file(&mem->file);
	if (!file) {
		file = mapping_create(mem);
		if (!IS_ERR(file))
			mem->file = file;
	}
	mutex_unlock(&mem->lock);
	return file;
}
