// SPDX-License-Identifier: GPL-2.0
/*
 * Map pages: the owners of an SM's columns, readable by processes.
 *
 * Each SM has at most one map page (struct accmem_tmem_map). The page is allocated at
 * the first mmap() of a CTA's file on that SM. The page belongs to a file of its own,
 * which has no descriptor. accmem_tmem.maps[] has a reference to the file, and so
 * has each mapping. A mapping has no reference to the CTA's file, so a mapping does
 * not delay the exit of the CTA.
 *
 * The page is written under the lock whenever an owner changes. Readers have no lock:
 * they read the sequence count, which is odd during a change.
 *
 * Locking: mmap_lock > accmem_tmem.lock.
 */
#include <linux/anon_inodes.h>
#include <linux/bitops.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "compat/compat.h"
#include "internal.h"

static int map_release(struct inode *inode, struct file *file)
{
	free_page((unsigned long)file->private_data);
	return 0;
}

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.release = map_release,
};

static vm_fault_t map_fault(struct vm_fault *vmf)
{
	struct page *page = virt_to_page(vmf->vma->vm_file->private_data);

	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct map_vm_ops = {
	.fault = map_fault,
};

/*
 * Change the owner of units (32 columns each). The barriers pair with those of the
 * readers, who read the sequence count, the owners, and the count again.
 */
static void map_set_owner(struct accmem_tmem_map *map, u64 units, u64 owner)
{
	u32 sequence = map->sequence;

	WRITE_ONCE(map->sequence, sequence + 1);
	smp_wmb(); /* the count is odd before the first owner changes */
	while (units) {
		WRITE_ONCE(map->owner[__ffs64(units)], owner);
		units &= units - 1;
	}
	smp_wmb(); /* the last owner has changed before the count is even */
	WRITE_ONCE(map->sequence, sequence + 2);
}

/* Callback accmem_columns.held_changed: update the map page of the CTA's SM. */
static void map_update(struct accmem_columns_cta *c, u64 units)
{
	struct accmem_cta *cta = accmem_to_cta(c);
	struct accmem_tmem *tmem = cta->tmem;

	lockdep_assert_held(&tmem->lock);
	map_set_owner(tmem->sms[c->sm].map->private_data, units,
		      c->held & units ? cta->id : 0);
}

/**
 * accmem_tmem_init_maps() - initialise the map pages: no SM has a page yet
 * @tmem: the Tensor Memory, whose arbiter is initialised
 *
 * Context: Process context. Does not sleep.
 */
void accmem_tmem_init_maps(struct accmem_tmem *tmem)
{
	tmem->columns.held_changed = map_update;
}

static void map_fill(struct accmem_tmem *tmem, struct accmem_tmem_map *map,
		     u32 sm)
{
	struct accmem_columns_cta *c;

	list_for_each_entry(c, &tmem->columns.sms[sm].ctas, link)
		map_set_owner(map, c->held, accmem_to_cta(c)->id);
}

static struct file *map_create(const struct accmem_tmem *tmem)
{
	struct accmem_tmem_map *map;
	struct file *file;

	BUILD_BUG_ON(sizeof(*map) > PAGE_SIZE);
	map = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	map->nr_units = tmem->columns.columns / ACCMEM_TMEM_UNIT;
	file = anon_inode_getfile("[accmem-map]", &map_fops, map, O_RDONLY);
	if (IS_ERR(file))
		free_page((unsigned long)map);
	return file;
}

/* Look up the map file of an SM, or create it. Returns the file with a reference. */
static struct file *map_find(struct accmem_tmem *tmem, u32 sm)
{
	struct file *file, *unused = NULL;

	spin_lock(&tmem->lock);
	file = tmem->sms[sm].map;
	if (file)
		get_file(file);
	spin_unlock(&tmem->lock);
	if (file)
		return file;
	file = map_create(tmem);
	if (IS_ERR(file))
		return file;
	spin_lock(&tmem->lock);
	if (tmem->sms[sm].map) {
		unused = file;
		file = tmem->sms[sm].map;
	} else {
		map_fill(tmem, file->private_data, sm);
		tmem->columns.sms[sm].watched = true;
		tmem->sms[sm].map = file;
	}
	get_file(file);
	spin_unlock(&tmem->lock);
	if (unused)
		fput(unused);
	return file;
}

/**
 * accmem_cta_mmap() - map the map page of a CTA's SM
 * @file: the file of the CTA
 * @vma: the mapping: one page, read-only, at offset 0
 *
 * mprotect() cannot make the mapping writable or executable.
 *
 * Context: Process context. mmap_lock is held for writing. Takes and releases
 * tmem->lock. May sleep.
 *
 * Return: 0; -EINVAL, -EACCES for another mapping; -ENFILE, -ENOMEM.
 */
int accmem_cta_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct accmem_cta *cta = file->private_data;
	struct file *map;

	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	if (vma->vm_flags & (VM_WRITE | VM_EXEC))
		return -EACCES;
	map = map_find(cta->tmem, cta->c.sm);
	if (IS_ERR(map))
		return PTR_ERR(map);
	accmem_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP,
			    VM_MAYWRITE | VM_MAYEXEC);
	vma->vm_ops = &map_vm_ops;
	vma_set_file(vma, map);
	fput(map);
	return 0;
}

/**
 * accmem_tmem_put_maps() - release the map pages of a Tensor Memory that has ended
 * @tmem: the Tensor Memory, in which no CTA holds columns
 *
 * Mappings keep their page, which does not change any more. Without this function all
 * pages would stay allocated for as long as a CTA's file is open.
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 */
void accmem_tmem_put_maps(struct accmem_tmem *tmem)
{
	struct file *file;
	u32 i;

	for (i = 0; i < tmem->columns.nr_sms; i++) {
		spin_lock(&tmem->lock);
		file = tmem->sms[i].map;
		tmem->sms[i].map = NULL;
		tmem->columns.sms[i].watched = false;
		spin_unlock(&tmem->lock);
		if (file)
			fput(file);
	}
}
