// SPDX-License-Identifier: GPL-2.0
/*
 * Phys backing with page structures: write-back folios of 2 MiB.
 *
 * User mappings get entries of 2 MiB and can be pinned. The direct mapping of the
 * kernel contains all of the memory.
 *
 * Locking: a fault and an access of the device hold the page lock while they compare
 * with the size. A shrink changes the size and then takes the page locks, so that no
 * fault and no access uses the old size afterwards.
 *
 * Failed memory: the kernel reports a page, and only its granule is retired. The flag
 * "has hwpoisoned" of the folio makes the kernel map the other pages of the folio by
 * entries of 4 KiB, and accmem_folio_limit() one at a time. There is no flag for the
 * failed page: tail pages may share their page structures. A fault compares with the
 * record of failures under the folio lock.
 */
#include <linux/kernel.h>
#include <linux/memremap.h>
#include <linux/pagemap.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "memory/retire.h"

static struct page *pages_at(const struct accmem_carveout *cv, u64 offset)
{
	return pfn_to_page(PHYS_PFN(accmem_phys_at(cv, offset)));
}

/* Kernel address of the byte at @offset of the carveout. */
static void *pages_address_in(const struct accmem_carveout *cv, u64 offset)
{
	return page_address(pages_at(cv, offset)) +
	       offset_in_page(accmem_phys_at(cv, offset));
}

static void *pages_address(const struct accmem_bo *bo, u64 offset)
{
	return pages_address_in(bo->cv, bo->run.start + offset);
}

static int pages_clear_free(struct accmem_carveout *cv, u64 offset, u64 size)
{
	accmem_phys_zero(pages_address_in(cv, offset), size);
	return 0;
}

static int pages_clear_dirty(struct accmem_bo *bo, const struct accmem_run *run)
{
	return pages_clear_free(bo->cv, run->start, run->size);
}

static int pages_init(struct accmem_bo *bo, const struct accmem_run *run)
{
	accmem_clear_invalidate_others(bo->cv, run, bo->account->id);
	return accmem_clear_sync(bo, run, pages_clear_dirty);
}

/* Access bytes of one folio, whose lock is held. */
static int pages_access_one(struct accmem_bo *bo, u64 offset, void *data,
			    u64 size, bool write)
{
	if (offset + size > READ_ONCE(bo->size))
		return -ENXIO;
	if (accmem_bo_has_failed(bo, offset, size))
		return -EHWPOISON;
	if (!data) {
		accmem_phys_zero(pages_address(bo, offset), size);
	} else if (write) {
		accmem_phys_touch(bo, offset, size);
		memcpy(pages_address(bo, offset), data, size);
	} else if (copy_mc_to_kernel(data, pages_address(bo, offset), size)) {
		return -EHWPOISON;
	}
	return 0;
}

static int pages_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
			bool write)
{
	struct page *page;
	u64 at, part;
	int err = 0;

	for (; size && !err; size -= part, offset += part) {
		at = bo->run.start + offset;
		part = min(size, ACCMEM_FOLIO - (at & (ACCMEM_FOLIO - 1)));
		page = pages_at(bo->cv, at);
		lock_page(page);
		err = pages_access_one(bo, offset, data, part, write);
		unlock_page(page);
		data = data ? data + part : NULL;
	}
	return err;
}

/* The direct mapping is contiguous. With @write the bytes up to @size become dirty. */
static void *pages_kernel_address(struct accmem_bo *bo, u64 offset, bool write,
				  u64 *size)
{
	u64 at = bo->run.start + offset;

	*size = min(bo->size - offset,
		    ACCMEM_FOLIO - (at & (ACCMEM_FOLIO - 1)));
	if (write)
		accmem_phys_touch(bo, offset, *size);
	return pages_address(bo, offset);
}

/* Mapped folios stay whole: a fault may map, or may have mapped, all of a folio. */
static u64 pages_shrink_floor(struct accmem_bo *bo, u64 size)
{
	u64 start = bo->run.start;

	if (!accmem_bo_was_mapped(bo))
		return size;
	return round_up(start + size, ACCMEM_FOLIO) - start;
}

/*
 * The most that one fault maps: the folio, if the mapping contains all of it with the
 * same alignment; else one page.
 */
static struct accmem_run pages_fault_extent(struct accmem_bo *bo,
					    const struct vm_fault *vmf)
{
	u64 offset = accmem_phys_offset_at(bo->cv, vmf->pgoff);
	unsigned long address = vmf->address & PAGE_MASK;
	unsigned long base = round_down(address, ACCMEM_FOLIO);
	struct accmem_run run = { offset, PAGE_SIZE };

	if (!IS_ALIGNED(offset - address, ACCMEM_FOLIO) ||
	    base < vmf->vma->vm_start || vmf->vma->vm_end - base < ACCMEM_FOLIO)
		return run;
	run.start = round_down(offset, ACCMEM_FOLIO);
	run.size = ACCMEM_FOLIO;
	return run;
}

/* Return true if @offset of the address_space is below the end of @bo. */
static bool pages_has_offset(struct accmem_bo *bo, u64 offset)
{
	return offset - bo->offset < READ_ONCE(bo->size);
}

static vm_fault_t pages_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	u64 at = accmem_phys_offset_at(bo->cv, vmf->pgoff);
	struct page *page = pages_at(bo->cv, at);
	struct accmem_run shown = pages_fault_extent(bo, vmf);

	/*
	 * Lock first, and then get the reference: a fault that waits for the lock must
	 * not have a reference that looks like a pin.
	 */
	lock_page(page);
	if (!pages_has_offset(bo, (u64)vmf->pgoff << PAGE_SHIFT)) {
		unlock_page(page);
		return VM_FAULT_SIGBUS;
	}
	if (accmem_has_failed(bo->cv, at, PAGE_SIZE)) {
		unlock_page(page);
		return VM_FAULT_HWPOISON;
	}
	get_page(page);
	accmem_folio_set_mapping(page_folio(page), vmf, page);
	accmem_folio_limit(page_folio(page), vmf,
			   accmem_has_failed(bo->cv,
					     round_down(at, ACCMEM_FOLIO),
					     ACCMEM_FOLIO));
	accmem_clear_mark_dirty(bo->cv, &shown);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static void pages_forget_folio(struct accmem_carveout *cv, u64 at)
{
	WRITE_ONCE(page_folio(pages_at(cv, at))->mapping, NULL);
}

/*
 * Forget the folios that only @bo uses. A folio at its end may still have other users:
 * the last free of a granule forgets it.
 */
static bool pages_release(struct accmem_bo *bo, enum accmem_release which)
{
	u64 at = round_up(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;

	if (which != ACCMEM_RELEASE_ALL || !accmem_bo_was_mapped(bo))
		return false;
	for (; at + ACCMEM_FOLIO <= end; at += ACCMEM_FOLIO) {
		pages_forget_folio(bo->cv, at);
		cond_resched();
	}
	return false;
}

/* Wait for the faults and accesses that hold the page locks of a bo. */
static void pages_settle(struct accmem_bo *bo)
{
	u64 at = round_down(bo->run.start, ACCMEM_FOLIO);
	u64 end = bo->run.start + bo->run.size;
	struct page *page;

	for (; at < end; at += ACCMEM_FOLIO) {
		page = pages_at(bo->cv, at);
		lock_page(page);
		unlock_page(page);
		cond_resched();
	}
}

/*
 * A fault or an access that holds a page lock compared with the old size: wait for it. It
 * has a reference to @bo, as every later one that finds the new size.
 */
static void pages_split_finish(struct accmem_bo *bo, struct accmem_bo *rest)
{
	if (accmem_bo_has_users(bo))
		pages_settle(rest);
}

/*
 * The next user of the range may map it uncached. x86 processors look into the caches also
 * for uncached accesses. On arm64 a line that is written back later would overwrite newer
 * data.
 */
static void pages_destroy(struct accmem_carveout *cv)
{
	if (IS_ENABLED(CONFIG_ARM64))
		accmem_phys_flush(pages_address_in(cv, 0), cv->capacity);
	memunmap_pages(&accmem_phys_of(cv)->pagemap);
	accmem_phys_destroy(cv);
}

/* A fault that has not seen the failure holds the folio lock until its page is mapped. */
static void pages_isolate(struct accmem_carveout *cv, u64 offset, u64 size)
{
	u64 at = round_down(offset, ACCMEM_FOLIO);
	struct folio *folio;

	for (; at < offset + size; at += ACCMEM_FOLIO) {
		folio = page_folio(pages_at(cv, at));
		folio_lock(folio);
		folio_set_has_hwpoisoned(folio);
		folio_unlock(folio);
		cond_resched();
	}
}

/* The kernel reports a memory error. On success it lets the task that hit it continue. */
static int pages_memory_failure(struct dev_pagemap *pgmap, unsigned long pfn,
				unsigned long nr, int flags)
{
	struct accmem_phys *phys =
		container_of(pgmap, struct accmem_phys, pagemap);

	return accmem_retire(phys->cv, PFN_PHYS(pfn) - phys->start,
			     PFN_PHYS(nr), ACCMEM_CAUSE_POISON);
}

static const struct accmem_backing_ops pages_ops = {
	.fault = pages_fault,
	.access = pages_access,
	.init = pages_init,
	.kernel_address = pages_kernel_address,
	.physical = accmem_phys_physical,
	.is_idle = accmem_pins_is_idle,
	.release = pages_release,
	.shrink_floor = pages_shrink_floor,
	.split_finish = pages_split_finish,
	.settle = pages_settle,
	.clear = pages_clear_free,
	.destroy = pages_destroy,
	.isolate = pages_isolate,
	.physical_at = accmem_phys_physical_at,
};

static const struct accmem_folio_ops pages_folio_ops = {
	.is_hidden = accmem_pins_is_hidden,
	.unmap = accmem_pins_unmap,
	.forget = pages_forget_folio,
};

/* The driver has a reference to each page until the range is unmapped. */
static const struct dev_pagemap_ops pagemap_ops = {
	ACCMEM_PAGEMAP_NEVER_FREED,
	.memory_failure = pages_memory_failure,
};

/**
 * accmem_phys_make_pages() - make page structures for a carveout
 * @cv: the carveout of a physical range, not in use yet
 *
 * Write-back is the only cache mode of the carveout afterwards.
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENOMEM.
 */
int accmem_phys_make_pages(struct accmem_carveout *cv)
{
	struct dev_pagemap *pgmap = &accmem_phys_of(cv)->pagemap;
	void *address;
	int err;

	err = accmem_carveout_own_folios(cv);
	if (err)
		return err;
	pgmap->type = MEMORY_DEVICE_GENERIC;
	pgmap->range.start = accmem_phys_at(cv, 0);
	pgmap->range.end = accmem_phys_at(cv, cv->capacity - 1);
	pgmap->nr_range = 1;
	pgmap->vmemmap_shift = ACCMEM_FOLIO_ORDER;
	pgmap->ops = &pagemap_ops;
	address = memremap_pages(pgmap, cv->node);
	if (IS_ERR(address))
		return PTR_ERR(address);
	cv->node = page_to_nid(pfn_to_page(PHYS_PFN(accmem_phys_at(cv, 0))));
	cv->features |= ACCMEM_FEATURE_PIN;
	cv->cache_modes = BIT(ACCMEM_CACHE_WB);
	cv->ops = &pages_ops;
	cv->folio_ops = &pages_folio_ops;
	return 0;
}
