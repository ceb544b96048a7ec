// SPDX-License-Identifier: GPL-2.0
/*
 * Mappings of buffers into processes.
 *
 * Every mapping has a file of its own behind it, which holds the buffer and
 * not the context: a mapping outlives FREE, and one small mapping does not
 * keep everything else alive. All of a carveout's mappings share one inode
 * (and so one address_space, to find them by), whose file offsets are the
 * device's mmap offsets.
 *
 * Owns the mount that the inodes live on: that of the kernel's anonymous
 * inodes, reached through a file on it, so that no file system of ours can be
 * in use when the module goes.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>

#include "../compat/compat.h"
#include "accmem_drv.h"
#include "trace.h"

static struct file *anchor; /* a file on the mount of anonymous inodes */

int accmem_mmap_init(void)
{
	/*
	 * It is closed some time after fput(), maybe when the module has gone:
	 * its operations must not be ours.
	 */
	anchor = anon_inode_getfile("[accmem]", &generic_ro_fops, NULL,
				    O_RDONLY);
	return PTR_ERR_OR_ZERO(anchor);
}

void accmem_mmap_exit(void)
{
	fput(anchor);
}

/**
 * accmem_mmap_inode() - make the inode behind a carveout's mappings
 * @size: bytes of mmap offsets; 2 MiB entries need a size that covers them
 *
 * Return: the inode, or an ERR_PTR.
 */
struct inode *accmem_mmap_inode(u64 size)
{
	struct inode *inode = alloc_anon_inode(file_inode(anchor)->i_sb);

	if (IS_ERR(inode))
		return inode;
	inode->i_flags |= S_NOCMTIME;
	i_size_write(inode, size);
	return inode;
}

static int release_mapping(struct inode *inode, struct file *file)
{
	struct accmem_buffer *buf = file->private_data;

	if (buf->is_sheet)
		accmem_sheet_unmap(buf);
	accmem_buffer_put(buf);
	return 0;
}

static const struct file_operations mapping_fops = {
	.owner = THIS_MODULE,
	.release = release_mapping,
};

/* a file that holds @buf, for one mapping */
static struct file *mapping_file(struct accmem_buffer *buf, unsigned int flags)
{
	struct inode *inode = buf->cv->inode;
	struct file *file;

	/* the file gives it back when it is closed */
	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	ihold(inode);
	file = alloc_file_pseudo(inode, anchor->f_path.mnt, "[accmem]",
				 flags & O_ACCMODE, &mapping_fops);
	if (IS_ERR(file)) {
		iput(inode);
		module_put(THIS_MODULE);
		return file;
	}
	accmem_buffer_get(buf);
	if (buf->is_sheet)
		accmem_sheet_map(buf);
	file->private_data = buf;
	return file;
}

static vm_fault_t fault(struct vm_fault *vmf)
{
	struct accmem_buffer *buf = vmf->vma->vm_file->private_data;

	return buf->cv->ops->fault(buf, vmf);
}

static const struct vm_operations_struct vm_ops = {
	.fault = fault,
};

static pgprot_t cache_prot(u32 cache_mode, pgprot_t prot)
{
	switch (cache_mode) {
	case ACCMEM_CACHE_WC:
		return pgprot_writecombine(prot);
	case ACCMEM_CACHE_UC:
		return pgprot_noncached(prot);
	default:
		return prot;
	}
}

static int map_buffer(struct accmem_buffer *buf, struct vm_area_struct *vma,
		      u64 offset)
{
	unsigned long set = VM_DONTEXPAND | VM_DONTDUMP;
	u64 size = vma->vm_end - vma->vm_start;
	struct file *file;

	if (offset >= buf->layout.footprint ||
	    size > buf->layout.footprint - offset)
		return -ENXIO;
	file = mapping_file(buf, vma->vm_file->f_flags);
	if (IS_ERR(file))
		return PTR_ERR(file);
	WRITE_ONCE(buf->mapped, true);
	if (!accmem_has_pages(buf->cv))
		set |= VM_PFNMAP;
	accmem_vm_flags_mod(vma, set, VM_MAYEXEC);
	vma->vm_page_prot = cache_prot(buf->cache_mode, vma->vm_page_prot);
	vma->vm_ops = &vm_ops;
	vma_set_file(vma, file);
	fput(file);
	trace_accmem_map(buf, offset, size);
	return 0;
}

/**
 * accmem_mmap() - map (part of) a buffer
 * @file: the device's file
 * @vma: the mapping; its offset is the buffer's mmap offset
 *
 * Return: 0; -EINVAL for a private mapping, -EACCES for an executable one,
 * -ENXIO where the range is not inside one buffer, -ENFILE, -ENOMEM.
 */
int accmem_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct accmem_context *ctx = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 address = ctx->dev->address_base + offset;
	struct accmem_buffer *buf;
	int err;

	/* a file opened read-only has no VM_SHARED: test what may be */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	buf = offset < ctx->dev->address_span ?
		      accmem_context_mappable(ctx, address) : NULL;
	if (!buf)
		return -ENXIO;
	err = map_buffer(buf, vma, address - buf->address);
	accmem_buffer_put(buf);
	return err;
}
