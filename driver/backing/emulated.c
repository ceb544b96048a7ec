// SPDX-License-Identifier: GPL-2.0
/*
 * Emulated backing: ordinary pages of the host.
 *
 * This backing supplies emulated device memory, and host memory. The carveout is only
 * a limit on bytes, and device addresses are virtual. Pages belong to a buffer object.
 * The first access makes a page, zeroed and charged to the memory cgroup of the
 * accessing task; the release of the buffer object frees its pages. Free memory
 * therefore has no pages and is always clean.
 *
 * accmem_bo.pages contains the pages by index; a folio is stored once, at its first
 * index. For a cache mode other than write-back, the direct mapping of a page is
 * changed when the page is made, and changed back when the page is freed. This splits
 * the kernel's large mappings for good, and flushes the TLBs of all processors. So these
 * modes are offered only if the administrator has set emulated_uncached.
 *
 * Failed memory: the kernel marks a page that has failed (PageHWPoison), and keeps it when
 * it is freed. A fault checks the page that was touched: an entry of 2 MiB may map a failed
 * page besides, and the machine then raises the error at its touch. A folio of which a
 * page has failed cannot be freed in part, so that all of it is lost until the machine
 * boots. Neither has an offset in the carveout, and what the carveout can allocate stays
 * the same. An administrator may also retire a part of the carveout, as for a device: then
 * the buffer object that has the part loses it.
 *
 * Locking: accmem_bo.lock guards the filling of accmem_bo.pages. The page lock keeps a
 * page in its buffer object: a shrink takes the page lock after it has removed a page.
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "backing/backing.h"
#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/account.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "internal.h"
#include "memory/bo.h"
#include "types/backing_types.h"

#define FOLIO_PAGES BIT(ACCMEM_FOLIO_ORDER)
#define EMULATED_RELEASE_MAX 16u /* pages freed in one call */

static bool uncached;
module_param_named(emulated_uncached, uncached, bool, 0444);
MODULE_PARM_DESC(emulated_uncached,
		 "ordinary memory also uncached and WC (default N)");

/*
 * Has a page failed? The kernel marks the page, but not always its folio: with the mark of
 * the folio, it is not mapped by an entry of 2 MiB any more.
 */
static bool emulated_page_has_failed(struct page *page)
{
	if (likely(!PageHWPoison(page)))
		return false;
	if (folio_test_large(page_folio(page)))
		folio_set_has_hwpoisoned(page_folio(page));
	return true;
}

static bool emulated_folio_has_failed(struct folio *folio)
{
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		if (emulated_page_has_failed(folio_page(folio, i)))
			return true;
	}
	return false;
}

/*
 * Does only the driver refer to a page or a folio? A page that has failed is not used
 * again, so that its references do not matter. The kernel may keep one.
 */
static bool emulated_page_is_idle(struct page *page)
{
	return page_ref_count(page) == 1 ||
	       emulated_folio_has_failed(page_folio(page));
}

static void emulated_free_page_of(struct accmem_bo *bo, struct page *page)
{
	unsigned int order = compound_order(page);

	/* If the direct mapping cannot be changed back, the page must not be reused. */
	if (bo->cache_mode != ACCMEM_CACHE_WB &&
	    WARN_ON_ONCE(accmem_cache_mode_set_pages(ACCMEM_CACHE_WB, page,
						     1u << order)))
		return;
	accmem_resident_sub(bo, 1l << order);
	if (order)
		accmem_show_charge(page);
	page_folio(page)->mapping = NULL;
	if (!order || !emulated_folio_has_failed(page_folio(page)))
		__free_pages(page, order);
}

/* How hard the host tries to allocate a folio depends on the policy of the buffer. */
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
	if (!accmem_resident_add(bo, 1l << order))
		return NULL;
	page = cv->node == NUMA_NO_NODE ?
		       alloc_pages(gfp, order) :
		       alloc_pages_node(cv->node, gfp, order);
	if (!page) {
		accmem_resident_sub(bo, 1l << order);
		return NULL;
	}
	if (bo->cache_mode != ACCMEM_CACHE_WB &&
	    accmem_cache_mode_set_pages(bo->cache_mode, page, 1u << order)) {
		accmem_resident_sub(bo, 1l << order);
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

/* Find the first page from *@index on, and set *@index; NULL if there is none. */
static struct page *emulated_next_page(struct accmem_bo *bo,
				       unsigned long *index)
{
	unsigned long last = (READ_ONCE(bo->size) >> PAGE_SHIFT) - 1;

	return *index > last ? NULL :
			       xa_find(&bo->pages, index, last, XA_PRESENT);
}

/*
 * Return true if one folio may back the 2 MiB around @index. A buffer object that has
 * grown may have an offset that is not a multiple of 2 MiB. A mapping would then cross
 * the folio with two entries of 2 MiB, and both would map the start of the folio.
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

/* Make and store a page. It is stored locked, so that the caller can map it at once. */
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

/* Make the missing page at @index. It is returned locked; NULL on failure. */
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
 * Find the page at @index, or make it; NULL on failure. A new page is locked, and
 * *@made is true: until the caller unlocks the page, a shrink cannot free it.
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
 * Lock a page that emulated_find_or_make() has found, and get a reference. Return false
 * if a shrink has removed the page from @bo in the meantime.
 */
static bool emulated_lock_found(struct accmem_bo *bo, unsigned long index,
				struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_try_get(folio))
		return false;
	/* If another owner has the page, do not wait for its lock. */
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

/* Return the page at @index, locked, with a reference. @bo has it until unlock. */
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

/* Has the page at @index failed, or the granule of the carveout that it stands for? */
static bool emulated_has_failed(struct accmem_bo *bo, unsigned long index,
				struct page *page)
{
	return emulated_page_has_failed(page) ||
	       accmem_bo_has_failed(bo, (u64)index << PAGE_SHIFT, PAGE_SIZE);
}

/*
 * The kernel must not map a folio by an entry of 2 MiB in two cases. If a granule has failed, the
 * entry would show the granule. If the folio is not aligned in the device address space, as may
 * happen when the memory was populated before it had an address, the entry would show the start
 * of the folio at the address of its middle.
 */
static bool emulated_avoid_huge(struct accmem_bo *bo, unsigned long index,
				struct folio *folio)
{
	u64 first = round_down((u64)index << PAGE_SHIFT, folio_size(folio));

	if (!folio_test_large(folio) ||
	    (IS_ALIGNED(bo->offset, ACCMEM_FOLIO) &&
	     !accmem_bo_has_failed(bo, first, folio_size(folio))))
		return false;
	folio_set_has_hwpoisoned(folio);
	return true;
}

static vm_fault_t emulated_fault(struct accmem_bo *bo, struct vm_fault *vmf)
{
	unsigned long index = vmf->pgoff - (bo->offset >> PAGE_SHIFT);
	struct page *page = emulated_lock_page(bo, index);
	struct folio *folio;

	if (!page)
		return VM_FAULT_SIGBUS;
	/*
	 * The kernel compares the index with the size of the inode before it makes an
	 * entry of 2 MiB. The offset is known only now: a page may be made before the
	 * buffer object has a name.
	 */
	folio = page_folio(page);
	if (emulated_has_failed(bo, index, page)) {
		folio_unlock(folio);
		folio_put(folio);
		return VM_FAULT_HWPOISON;
	}
	accmem_folio_set_mapping(folio, vmf, page);
	accmem_folio_limit(folio, vmf, emulated_avoid_huge(bo, index, folio));
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

/* Bytes of the range of @size bytes at @offset that lie in the first page. */
static u64 emulated_part(u64 offset, u64 size)
{
	return min(size, PAGE_SIZE - offset_in_page(offset));
}

/*
 * Contiguous bytes from @offset on in a folio, up to its end or to the next page that has
 * failed, or at least @most of them.
 */
static u64 emulated_room(struct page *page, u64 offset, u64 most)
{
	struct folio *folio = page_folio(page);
	long left = folio_nr_pages(folio) - folio_page_idx(folio, page);
	u64 room = PAGE_SIZE - offset_in_page(offset);

	while (--left && room < most && !emulated_page_has_failed(++page))
		room += PAGE_SIZE;
	return room;
}

/*
 * Access the part of a range that lies in one page or folio, which is locked. Return the
 * number of bytes, or -EHWPOISON.
 */
static s64 emulated_access_page(struct page *page, u64 offset, void *data,
				u64 size, bool write)
{
	void *address = page_address(page) + offset_in_page(offset);
	u64 part = min(size, emulated_room(page, offset, size));

	if (emulated_page_has_failed(page))
		return -EHWPOISON;
	if (!data)
		memset(address, 0, part);
	else if (write)
		memcpy(address, data, part);
	else if (copy_mc_to_kernel(data, address, part))
		return -EHWPOISON;
	return part;
}

/*
 * Access bytes of one page or folio. Return their number, or an error. A missing page
 * is zero: reading or zeroing it makes no page.
 */
static s64 emulated_access_some(struct accmem_bo *bo, u64 offset, void *data,
				u64 size, bool write)
{
	unsigned long index = offset >> PAGE_SHIFT;
	struct page *page;
	s64 part;

	if (!emulated_has_index(bo, index))
		return -ENXIO;
	if ((!write || !data) && !emulated_find_page(bo, index)) {
		part = emulated_part(offset, size);
		if (data)
			memset(data, 0, part);
		return part;
	}
	page = emulated_lock_page(bo, index);
	if (!page)
		return emulated_has_index(bo, index) ? -ENOMEM : -ENXIO;
	part = emulated_access_page(page, offset, data, size, write);
	unlock_page(page);
	put_page(page);
	return part;
}

static int emulated_access(struct accmem_bo *bo, u64 offset, void *data,
			   u64 size, bool write)
{
	s64 part;

	if (accmem_bo_has_failed(bo, offset, size))
		return -EHWPOISON;
	for (; size; size -= part, offset += part) {
		part = emulated_access_some(bo, offset, data, size, write);
		if (part < 0)
			return part;
		data = data ? data + part : NULL;
	}
	return 0;
}

/* Kernel address of the bytes at @offset; @size: out: contiguous bytes there. */
static void *emulated_kernel_address(struct accmem_bo *bo, u64 offset,
				     bool write, u64 *size)
{
	unsigned long index = offset >> PAGE_SHIFT;
	struct page *page = write ? emulated_get_page_at(bo, index) :
				    emulated_find_page(bo, index);

	*size = PAGE_SIZE - offset_in_page(offset);
	if (!page)
		return NULL;
	*size = emulated_room(page, offset, U64_MAX);
	if (emulated_page_has_failed(page))
		return ERR_PTR(-EHWPOISON);
	return page_address(page) + offset_in_page(offset);
}

static phys_addr_t emulated_physical(struct accmem_bo *bo, u64 offset,
				     u64 *size)
{
	struct page *page = emulated_find_page(bo, offset >> PAGE_SHIFT);

	*size = PAGE_SIZE - offset_in_page(offset);
	if (WARN_ON_ONCE(!page))
		return 0;
	/* Also of a page that has failed: an access fails, and harms nobody else. */
	return page_to_phys(page) + offset_in_page(offset);
}

/* A folio is not split: the shrunk size is rounded up to its end. */
static u64 emulated_shrink_floor(struct accmem_bo *bo, u64 size)
{
	unsigned long first = round_down(size, ACCMEM_FOLIO) >> PAGE_SHIFT;
	struct page *page = xa_load(&bo->pages, first);

	return page && compound_order(page) ? round_up(size, ACCMEM_FOLIO) :
					      size;
}

/*
 * Store the pages beyond the new end in @rest as well; emulated_split_finish() removes
 * them from @bo.
 */
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

/*
 * No fault adds a page beyond the new end: faults compare with the size. A fault or an
 * access that holds a page lock may have found the page before the split: wait for it,
 * if any has a reference to @bo.
 */
static void emulated_split_finish(struct accmem_bo *bo, struct accmem_bo *rest)
{
	bool waits = accmem_bo_has_users(bo);
	unsigned long index;
	struct page *page;

	xa_for_each_start(&bo->pages, index, page, bo->size >> PAGE_SHIFT) {
		xa_erase(&bo->pages, index);
		if (waits) {
			lock_page(page);
			unlock_page(page);
		}
		cond_resched();
	}
}

static void emulated_settle(struct accmem_bo *bo)
{
	unsigned long index = 0;
	struct page *page;

	for (; (page = emulated_next_page(bo, &index)); index++) {
		if (emulated_lock_found(bo, index, page)) {
			unlock_page(page);
			put_page(page);
		}
		cond_resched();
	}
}

static bool emulated_compare_counts(struct accmem_bo *bo)
{
	unsigned long last = (READ_ONCE(bo->size) >> PAGE_SHIFT) - 1, seen = 0;
	XA_STATE(xas, &bo->pages, 0);
	struct page *page;

	rcu_read_lock();
	xas_for_each(&xas, page, last) {
		if (xas_retry(&xas, page))
			continue;
		if (!emulated_page_is_idle(page))
			break;
		/* Callers that hold a spinlock pass a buffer object of one page. */
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

/* The pages of a bo that stays in use: accmem_bo.lock keeps faults from adding one. */
static bool emulated_is_idle(struct accmem_bo *bo, enum accmem_idle_check check)
{
	bool idle;

	if (check != ACCMEM_IDLE_IN_USE)
		return emulated_compare_counts(bo);
	mutex_lock(&bo->lock);
	idle = emulated_compare_counts(bo);
	mutex_unlock(&bo->lock);
	return idle;
}

/* Pinned pages stay in the array. A scan that reaches the end starts again at 0. */
static bool emulated_release_some(struct accmem_bo *bo, bool skip)
{
	unsigned int nr = EMULATED_RELEASE_MAX;
	struct page *page;

	while ((page = xa_find(&bo->pages, &bo->next_free_index, ULONG_MAX,
			       XA_PRESENT))) {
		if (!nr--)
			return true;
		if (emulated_page_is_idle(page)) {
			xa_erase(&bo->pages, bo->next_free_index);
			emulated_free_page_of(bo, page);
		} else if (!skip) {
			return false;
		}
		bo->next_free_index++;
	}
	bo->next_free_index = 0;
	return false;
}

/* Return the page if it is the only one, so that the array has no node; else NULL. */
static struct page *emulated_only_page(struct accmem_bo *bo)
{
	XA_STATE(xas, &bo->pages, 0);
	struct page *page;

	rcu_read_lock();
	page = xas_load(&xas);
	rcu_read_unlock();
	return xas.xa_node ? NULL : page;
}

static void emulated_release_all(struct accmem_bo *bo)
{
	unsigned long index = 0;
	struct page *page;

	/* No task has accessed the memory. */
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

static bool emulated_release(struct accmem_bo *bo, enum accmem_release which)
{
	if (which != ACCMEM_RELEASE_ALL)
		return emulated_release_some(bo,
					     which == ACCMEM_RELEASE_UNPINNED);
	emulated_release_all(bo);
	return false;
}

static const struct accmem_backing_ops emulated_ops = {
	.fault = emulated_fault,
	.access = emulated_access,
	.kernel_address = emulated_kernel_address,
	.physical = emulated_physical,
	.is_idle = emulated_is_idle,
	.release = emulated_release,
	.shrink_floor = emulated_shrink_floor,
	.split = emulated_split,
	.split_finish = emulated_split_finish,
	.settle = emulated_settle,
};

/**
 * accmem_emulated_create() - initialise a carveout of ordinary memory
 * @cv: the carveout, zeroed; the caller destroys it, also after a failure
 * @size: bytes, a multiple of the granule
 *
 * Context: Process context. May sleep.
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
	cv->cache_modes = BIT(ACCMEM_CACHE_WB);
	if (uncached)
		cv->cache_modes |= accmem_emulated_cache_modes();
	return 0;
}
