// SPDX-License-Identifier: GPL-2.0
/*
 * Map pages: whose the columns of an SM are, for processes to read.
 *
 * A page belongs to a file that is made with the first mapping of its SM and is in
 * no table of descriptors. The Tensor Memory holds that file, and each mapping
 * holds it in place of the CTA's, which it does not keep from its exit.
 *
 * Pages are written to under the lock, as ownership changes. Readers have no lock:
 * the sequence count is odd meanwhile.
 *
 * Locks: mmap_lock > accmem_tmem.lock.
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
 * The owner of units changes. The barriers pair with those of readers, who read
 * the count, the owners, and the count again, in this order.
 */
static void map_set_owner(struct accmem_tmem_map *map, u64 units, u64 owner)
{
	u32 sequence = map->sequence;

	WRITE_ONCE(map->sequence, sequence + 1);
	smp_wmb(); /* it is odd before the first owner changes */
	while (units) {
		WRITE_ONCE(map->owner[__ffs64(units)], owner);
		units &= units - 1;
	}
	smp_wmb(); /* and even after the last */
	WRITE_ONCE(map->sequence, sequence + 2);
}

/* accmem_columns.held_changed */
static void map_update(struct accmem_columns_cta *c, u64 units)
{
	struct accmem_cta *cta = accmem_to_cta(c);
	struct accmem_tmem *tmem = cta->tmem;

	lockdep_assert_held(&tmem->lock);
	map_set_owner(tmem->maps[c->sm]->private_data, units,
		      c->held & units ? cta->id : 0);
}

/**
 * accmem_tmem_init_maps() - no SM has a map page yet
 * @tmem: the Tensor Memory, whose arbiter is initialised
 */
void accmem_tmem_init_maps(struct accmem_tmem *tmem)
{
	tmem->columns.held_changed = map_update;
}

static void map_fill(struct accmem_tmem *tmem, struct accmem_tmem_map *map,
		     u32 sm)
{
	struct accmem_columns_cta *c;

	list_for_each_entry(c, &tmem->columns.ctas, link) {
		if (c->sm == sm)
			map_set_owner(map, c->held, accmem_to_cta(c)->id);
	}
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

/* the file of an SM's map, made if there is none, with a reference */
static struct file *map_find(struct accmem_tmem *tmem, u32 sm)
{
	struct file *file, *unused = NULL;

	spin_lock(&tmem->lock);
	file = tmem->maps[sm];
	if (file)
		get_file(file);
	spin_unlock(&tmem->lock);
	if (file)
		return file;
	file = map_create(tmem);
	if (IS_ERR(file))
		return file;
	spin_lock(&tmem->lock);
	if (tmem->maps[sm]) {
		unused = file;
		file = tmem->maps[sm];
	} else {
		map_fill(tmem, file->private_data, sm);
		tmem->columns.sms[sm].watched = true;
		tmem->maps[sm] = file;
	}
	get_file(file);
	spin_unlock(&tmem->lock);
	if (unused)
		fput(unused);
	return file;
}

/**
 * accmem_cta_mmap() - map the map page of a CTA's SM
 * @file: the CTA's
 * @vma: the mapping: one page, read-only, at offset 0
 *
 * It cannot be made writable, nor executable.
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
 * accmem_tmem_put_maps() - the Tensor Memory has ended; mappings keep what they show
 * @tmem: it, in which nobody holds columns any more
 *
 * Pages of as many SMs as there are would stay with a CTA that is open still.
 */
void accmem_tmem_put_maps(struct accmem_tmem *tmem)
{
	struct file *file;
	u32 i;

	for (i = 0; i < tmem->columns.nr_sms; i++) {
		spin_lock(&tmem->lock);
		file = tmem->maps[i];
		tmem->maps[i] = NULL;
		tmem->columns.sms[i].watched = false;
		spin_unlock(&tmem->lock);
		if (file)
			fput(file);
	}
}
