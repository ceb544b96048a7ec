// SPDX-License-Identifier: GPL-2.0
/*
 * The emulated backing: ordinary memory of the host, which host memory is, too.
 *
 * The carveout is a budget; device addresses are virtual. Pages belong to a
 * buffer, appear at the first touch, come zeroed, are charged to the memory
 * cgroup of whoever touches them, and go back to the kernel with the buffer.
 * Memory that is free is therefore always clean.
 *
 * A buffer's pages are in an xarray by index; a page of 2 MiB is stored once,
 * at its first index. accmem_bo.lock serialises filling it. Pages that are not
 * write-back have their direct mapping changed with them, and changed back.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "backing/backing.h"
#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/account.h"
#include "core/carveout.h"
#include "types/bo_types.h"

#define FOLIO_PAGES BIT(ACCMEM_FOLIO_ORDER)
#define EMULATED_SHED 16u /* pages given back in one go */

static unsigned long long resident_max;
module_param_named(max_resident_bytes, resident_max, ullong, 0644);
MODULE_PARM_DESC(max_resident_bytes,
		 "host memory that all devices may use (0: half of RAM)");

static atomic64_t resident; /* pages of all emulated carveouts */

static bool emulated_add_resident(struct accmem_carveout *cv, long pages)
{
	u64 max = READ_ONCE(resident_max) >> PAGE_SHIFT;

	if (!max)
		max = totalram_pages() / 2;
	if (!accmem_add_within(&resident, pages, max))
		return false;
	atomic64_add(pages, &cv->resident);
	return true;
}

static void emulated_sub_resident(struct accmem_carveout *cv, long pages)
{
	atomic64_sub(pages, &cv->resident);
	atomic64_sub(pages, &resident);
}

static void emulated_free_page_of(struct accmem_bo *bo, struct page *page)
{
	unsigned int order = compound_order(page);

	/* a page whose direct mapping cannot be mended is lost, not reused */
	if (bo->cache_mode != ACCMEM_CACHE_WB &&
	    WARN_ON_ONCE(accmem_cache_mode_set_pages(ACCMEM_CACHE_WB, page,
						     1u << order)))
		return;
	emulated_sub_resident(bo->cv, 1l << order);
	if (order)
		accmem_show_charge(page);
	__free_pages(page, order);
}

/* How hard the host is asked for a page of 2 MiB: as hard as the policy wants */
static gfp_t emulated_folio_gfp(const struct accmem_bo *bo)
{
	switch (bo->huge) {
	case ACCMEM_HUGE_FREE:
		return __GFP_COMP | __GFP_NORETRY;
	case ACCMEM_HUGE_FIRST:
		return __GFP_COMP;
	default:
		return __GFP_COMP | __GFP_RETRY_MAYFAIL;
	}
}

static struct page *emulated_new_page(struct accmem_bo *bo, unsigned int order)
{
	gfp_t gfp = GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct accmem_carveout *cv = bo->cv;
	struct page *page;

	gfp |= order ? emulated_folio_gfp(bo) : __GFP_RETRY_MAYFAIL;
	if (!emulated_add_resident(cv, 1l << order))
		return NULL;
	page = cv->node == NUMA_NO_NODE ?
		       alloc_pages(gfp, order) :
		       alloc_pages_node(cv->node, gfp, order);
	if (!page) {
		emulated_sub_resident(cv, 1l << order);
		return NULL;
	}
	if (bo->cache_mode != ACCMEM_CACHE_WB &&
	    accmem_cache_mode_set_pages(bo->cache_mode, page, 1u << order)) {
		emulated_sub_resident(cv, 1l << order);
		__free_pages(page, order);
		return NULL;
	}
	if (order)
		accmem_hide_charge(page);
	return page;
}

static struct page *emulated_find_page(struct accmem_bo *bo,
				       unsigned long index)
{
	unsigned long first = round_down(index, FOLIO_PAGES);
	struct page *page = xa_load(&bo->pages, first);

	if (page && compound_order(page))
		return page + (index - first);
	return index == first ? page : xa_load(&bo->pages, index);
}

/* the first page from *@index on, and its index; NULL */
static struct page *emulated_next_page(struct accmem_bo *bo,
				       unsigned long *index)
{
	unsigned long last = (READ_ONCE(bo->size) >> PAGE_SHIFT) - 1;

	return *index > last ? NULL :
			       xa_find(&bo->pages, index, last, XA_PRESENT);
}

/*
 * May the 2 MiB around @index be one page? Not where mappings would have it across
 * two entries of 2 MiB, of which each would show its beginning: a memory that has
 * grown may lie so.
 */
static bool emulated_wants_folio(struct accmem_bo *bo, unsigned long index)
{
	unsigned long first = round_down(index, FOLIO_PAGES);
	unsigned long at = first;

	if (bo->huge == ACCMEM_HUGE_NEVER ||
	    !IS_ALIGNED(bo->offset, ACCMEM_FOLIO) ||
	    first + FOLIO_PAGES > READ_ONCE(bo->size) >> PAGE_SHIFT)
		return false;
	return !xa_find(&bo->pages, &at, first + FOLIO_PAGES - 1, XA_PRESENT);
}

/* stored locked: whoever makes it and maps it need not look for it again */
static struct page *emulated_store_page(struct accmem_bo *bo,
					unsigned long index, unsigned int order)
{
	struct page *page = emulated_new_page(bo, order);

	if (!page)
		return NULL;
	__folio_set_locked(page_folio(page));
	index = round_down(index, 1ul << order);
	if (xa_err(xa_store(&bo->pages, index, page, GFP_KERNEL))) {
		unlock_page(page);
		emulated_free_page_of(bo, page);
		return NULL;
	}
	return page;
}

static bool emulated_has_index(struct accmem_bo *bo, unsigned long index)
{
	return index < READ_ONCE(bo->size) >> PAGE_SHIFT;
}

/* the page at @index, where there is none: made, and locked; NULL */
static struct page *emulated_make_page(struct accmem_bo *bo,
				       unsigned long index)
{
	struct page *page = NULL;

	if (!emulated_has_index(bo, index))
		return NULL;
	if (emulated_wants_folio(bo, index))
		page = emulated_store_page(bo, index, ACCMEM_FOLIO_ORDER);
	if (page)
		return page + index % FOLIO_PAGES;
	return bo->huge == ACCMEM_HUGE_ONLY ? NULL :
					      emulated_store_page(bo, index, 0);
}

/*
 * The page at @index, made if there is none; NULL when it cannot be had. One that is
 * @made is locked: it is the memory's as long as it is locked.
 */
static struct page *emulated_find_or_make(struct accmem_bo *bo,
					  unsigned long index, bool *made)
{
	struct page *page = emulated_find_page(bo, index);

	*made = false;
	if (page)
		return page;
	mutex_lock(&bo->lock);
	page = emulated_find_page(bo, index);
	if (!page) {
		page = emulated_make_page(bo, index);
		*made = page;
	}
	mutex_unlock(&bo->lock);
	return page;
}

static struct page *emulated_get_page_at(struct accmem_bo *bo,
					 unsigned long index)
{
	bool made;
	struct page *page = emulated_find_or_make(bo, index, &made);

	if (made)
		unlock_page(page);
	return page;
}

/*
 * Locks a page that was found, with a reference, unless it is not the memory's any
 * longer: one that shrinks gives pages up, of which one may be found last.
 */
static bool emulated_lock_found(struct accmem_bo *bo, unsigned long index,
				struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_try_get(folio))
		return false;
	/* another's, which has it locked for who knows what, is let go */
	if (emulated_find_page(bo, index) == page &&
	    page_folio(page) == folio) {
		folio_lock(folio);
		if (emulated_has_index(bo, index) &&
		    emulated_find_page(bo, index) == page)
			return true;
		folio_unlock(folio);
	}
	folio_put(folio);
	return false;
}

/* the page at @index with a reference, locked: it is the memory's that long */
static struct page *emulated_lock_page(struct accmem_bo *bo,
				       unsigned long index)
{
	struct page *page;
	bool made;

	while (emulated_has_index(bo, index)) {
		page = emulated_find_or_make(bo, index, &made);
		if (made)
			get_page(page);
		if (!page || made || emulated_lock_found(bo, index, page))
			return page;
	}
	return NULL;
}

static vm_fault_t emulated_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	unsigned long index = vmf->pgoff - (bo->offset >> PAGE_SHIFT);
	struct page *page = emulated_lock_page(bo, index);
	struct folio *folio;

	if (!page)
		return VM_FAULT_SIGBUS;
	/*
	 * Compared with the inode's size before there is a 2 MiB entry. Only now
	 * is it known: memory is populated before it has a name.
	 */
	folio = page_folio(page);
	WRITE_ONCE(folio->index, vmf->pgoff - folio_page_idx(folio, page));
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

static int emulated_populate(struct accmem_bo *bo, u64 offset)
{
	unsigned long i, nr = bo->size >> PAGE_SHIFT;

	for (i = offset >> PAGE_SHIFT; i < nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (!emulated_get_page_at(bo, i))
			return -ENOMEM;
		cond_resched();
	}
	return 0;
}

/* how much of @size bytes from @offset on lies in one page */
static u64 emulated_part(u64 offset, u64 size)
{
	return min(size, PAGE_SIZE - offset_in_page(offset));
}

/* pages stay while the memory does not shrink, which the caller sees to */
static int emulated_clear_range(struct accmem_bo *bo, u64 offset, u64 size)
{
	u64 end = offset + size, part;
	struct page *page;

	for (; offset < end; offset += part) {
		part = emulated_part(offset, end - offset);
		page = emulated_find_page(bo, offset >> PAGE_SHIFT);
		if (page)
			memset(page_address(page) + offset_in_page(offset), 0,
			       part);
	}
	return 0;
}

/* the part of an access that lies in one page, which is locked */
static u64 emulated_access_page(struct page *page, u64 offset, void *data,
				u64 size, bool write)
{
	struct folio *folio = page_folio(page);
	void *address = page_address(page) + offset_in_page(offset);
	u64 before = folio_page_idx(folio, page) * PAGE_SIZE +
		     offset_in_page(offset);
	u64 part = min_t(u64, size, folio_size(folio) - before);

	if (write)
		memcpy(address, data, part);
	else
		memcpy(data, address, part);
	return part;
}

/* a read finds zeroes where there is no page, and makes none */
static int emulated_access(struct accmem_bo *bo, u64 offset, void *data,
			   u64 size, bool write)
{
	struct page *page;
	unsigned long index;
	u64 part;

	for (; size; size -= part, offset += part, data += part) {
		index = offset >> PAGE_SHIFT;
		if (!emulated_has_index(bo, index))
			return -ENXIO;
		if (!write && !emulated_find_page(bo, index)) {
			part = emulated_part(offset, size);
			memset(data, 0, part);
			continue;
		}
		page = emulated_lock_page(bo, index);
		if (!page)
			return emulated_has_index(bo, index) ? -ENOMEM : -ENXIO;
		part = emulated_access_page(page, offset, data, size, write);
		unlock_page(page);
		put_page(page);
	}
	return 0;
}

/* the kernel's address of what is at @offset, and how much lies there together */
static void *emulated_kmap(struct accmem_bo *bo, u64 offset, bool make,
			   u64 *size)
{
	unsigned long index = offset >> PAGE_SHIFT;
	struct page *page = make ? emulated_get_page_at(bo, index) :
				   emulated_find_page(bo, index);
	struct folio *folio;

	*size = PAGE_SIZE - offset_in_page(offset);
	if (!page)
		return NULL;
	folio = page_folio(page);
	*size += folio_size(folio) -
		 (folio_page_idx(folio, page) + 1) * PAGE_SIZE;
	return page_address(page) + offset_in_page(offset);
}

/* where there is no page, there is nothing but zeroes */
static int emulated_copy(struct accmem_bo *to, u64 to_offset,
			 struct accmem_bo *from, u64 from_offset, u64 size)
{
	struct page *source, *page;
	u64 part;

	for (; size; size -= part, to_offset += part, from_offset += part) {
		part = emulated_part(from_offset,
				     emulated_part(to_offset, size));
		source = emulated_find_page(from, from_offset >> PAGE_SHIFT);
		if (!source)
			continue;
		page = emulated_get_page_at(to, to_offset >> PAGE_SHIFT);
		if (!page)
			return -ENOMEM;
		memcpy(page_address(page) + offset_in_page(to_offset),
		       page_address(source) + offset_in_page(from_offset),
		       part);
	}
	return 0;
}

/* a page of 2 MiB stays whole */
static u64 emulated_shrink_floor(struct accmem_bo *bo, u64 size)
{
	unsigned long first = round_down(size, ACCMEM_FOLIO) >> PAGE_SHIFT;
	struct page *page = xa_load(&bo->pages, first);

	return page && compound_order(page) ? round_up(size, ACCMEM_FOLIO) :
					      size;
}

/* @rest has the pages as well from here on */
static int emulated_split(struct accmem_bo *bo, struct accmem_bo *rest)
{
	unsigned long index = (bo->size - rest->size) >> PAGE_SHIFT;
	unsigned long first = index;
	struct page *page;
	int err;

	while ((page = emulated_next_page(bo, &index))) {
		err = xa_err(xa_store(&rest->pages, index - first, page,
				      GFP_KERNEL));
		if (err) {
			xa_destroy(&rest->pages);
			return err;
		}
		index++;
		cond_resched();
	}
	return 0;
}

static void emulated_trim(struct accmem_bo *bo)
{
	unsigned long index;
	struct page *page;

	xa_for_each_start(&bo->pages, index, page, bo->size >> PAGE_SHIFT) {
		xa_erase(&bo->pages, index);
		cond_resched();
	}
}

/* whoever has one of these pages locked found it when it was the memory's */
static void emulated_sync_faults(struct accmem_bo *rest)
{
	unsigned long index;
	struct page *page;

	xa_for_each(&rest->pages, index, page) {
		lock_page(page);
		unlock_page(page);
		cond_resched();
	}
}

static bool emulated_check_idle(struct accmem_bo *bo)
{
	unsigned long last = (READ_ONCE(bo->size) >> PAGE_SHIFT) - 1, seen = 0;
	XA_STATE(xas, &bo->pages, 0);
	struct page *page;

	rcu_read_lock();
	xas_for_each(&xas, page, last) {
		if (xas_retry(&xas, page))
			continue;
		if (page_ref_count(page) != 1)
			break;
		/* not reached by memory of one page, for which we may not sleep */
		if (!(++seen % FOLIO_PAGES)) {
			xas_pause(&xas);
			rcu_read_unlock();
			cond_resched();
			rcu_read_lock();
		}
	}
	rcu_read_unlock();
	return !page;
}

/* no fault adds a page meanwhile */
static bool emulated_check_unpinned(struct accmem_bo *bo)
{
	bool idle;

	mutex_lock(&bo->lock);
	idle = emulated_check_idle(bo);
	mutex_unlock(&bo->lock);
	return idle;
}

/* pages that somebody else has are asked again */
static bool emulated_release_pages(struct accmem_bo *bo, bool all)
{
	unsigned int nr = EMULATED_SHED;
	struct page *page;

	while ((page = xa_find(&bo->pages, &bo->next_free_index, ULONG_MAX,
			       XA_PRESENT))) {
		if (!nr--)
			return true;
		if (page_ref_count(page) == 1) {
			xa_erase(&bo->pages, bo->next_free_index);
			emulated_free_page_of(bo, page);
		} else if (!all) {
			return false;
		}
		bo->next_free_index++;
	}
	bo->next_free_index = 0;
	return false;
}

static bool emulated_unmap_and_check(struct accmem_bo *bo)
{
	return xa_empty(&bo->pages);
}

/* the only page, for which the array needs no node; NULL where there are others */
static struct page *emulated_only_page(struct accmem_bo *bo)
{
	XA_STATE(xas, &bo->pages, 0);
	struct page *page;

	rcu_read_lock();
	page = xas_load(&xas);
	rcu_read_unlock();
	return xas.xa_node ? NULL : page;
}

static void emulated_release(struct accmem_bo *bo)
{
	unsigned long index = 0;
	struct page *page;

	/* what nobody has touched */
	if (xa_empty(&bo->pages))
		return;
	page = emulated_only_page(bo);
	if (page) {
		emulated_free_page_of(bo, page);
		return;
	}
	while ((page = emulated_next_page(bo, &index))) {
		emulated_free_page_of(bo, page);
		index++;
		cond_resched();
	}
	xa_destroy(&bo->pages);
}

static const struct accmem_backing_ops emulated_ops = {
	.populate = emulated_populate,
	.fault = emulated_fault,
	.check_idle = emulated_check_idle,
	.unmap_and_check = emulated_unmap_and_check,
	.release_pages = emulated_release_pages,
	.clear_range = emulated_clear_range,
	.access = emulated_access,
	.kmap = emulated_kmap,
	.copy = emulated_copy,
	.shrink_floor = emulated_shrink_floor,
	.split = emulated_split,
	.trim = emulated_trim,
	.sync_faults = emulated_sync_faults,
	.check_unpinned = emulated_check_unpinned,
	.release = emulated_release,
};

/**
 * accmem_emulated_create() - make a carveout of ordinary memory
 * @cv: zeroed; to be destroyed by the caller, also on failure
 * @size: bytes, a multiple of the granule
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int accmem_emulated_create(struct accmem_carveout *cv, u64 size)
{
	int err;

	cv->ops = &emulated_ops;
	cv->backing = ACCMEM_BACKING_EMULATED;
	cv->translation = ACCMEM_TRANSLATION_MAPPED;
	cv->features = ACCMEM_FEATURE_SCATTER | ACCMEM_FEATURE_PIN |
		       ACCMEM_FEATURE_FIRST_TOUCH | ACCMEM_FEATURE_ACCESS;
	cv->capacity = size;
	err = accmem_carveout_init(cv);
	if (err)
		return err;
	cv->caps.page_sizes = ACCMEM_GRANULE | ACCMEM_FOLIO;
	if (size >= SZ_1G)
		cv->caps.page_sizes |= SZ_1G;
	cv->cache_modes = BIT(ACCMEM_CACHE_WB) | accmem_emulated_cache_modes();
	return 0;
}
