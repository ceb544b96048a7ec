// SPDX-License-Identifier: GPL-2.0
/*
 * The emulated backing: ordinary memory of the host.
 *
 * The carveout is a budget; device addresses are virtual. Pages belong to a
 * buffer, appear at the first touch, come zeroed, are charged to the memory
 * cgroup of whoever touches them, and go back to the kernel with the buffer.
 * Memory that is free is therefore always clean.
 *
 * A buffer's pages are in an xarray by index; a page of 2 MiB is stored once,
 * at its first index. buffer.lock serialises filling it. Pages that are not
 * write-back have their direct mapping changed with them, and changed back.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "../compat/compat.h"
#include "accmem_drv.h"

#define FOLIO_PAGES BIT(ACCMEM_FOLIO_ORDER)

unsigned long long accmem_emulated_resident_max;
module_param_named(emulated_resident_max, accmem_emulated_resident_max, ullong,
		   0644);
MODULE_PARM_DESC(emulated_resident_max,
		 "bytes of host memory that emulated devices may use together (0: half of RAM, the default)");

static atomic64_t resident; /* pages of all emulated carveouts */

static bool add_resident(struct accmem_carveout *cv, long pages)
{
	u64 max = READ_ONCE(accmem_emulated_resident_max) >> PAGE_SHIFT;

	if (!max)
		max = totalram_pages() / 2;
	if (!accmem_add_within(&resident, pages, max))
		return false;
	atomic64_add(pages, &cv->resident);
	return true;
}

static void sub_resident(struct accmem_carveout *cv, long pages)
{
	atomic64_sub(pages, &cv->resident);
	atomic64_sub(pages, &resident);
}

static void free_page_of(struct accmem_buffer *buf, struct page *page)
{
	unsigned int order = compound_order(page);

	/* a page whose direct mapping cannot be mended is lost, not reused */
	if (buf->cache_mode != ACCMEM_CACHE_WB &&
	    WARN_ON_ONCE(accmem_set_cache_mode(page, 1u << order,
					       ACCMEM_CACHE_WB)))
		return;
	sub_resident(buf->cv, 1l << order);
	__free_pages(page, order);
}

/* How hard the host is asked for a page of 2 MiB: as hard as the policy wants */
static gfp_t folio_gfp(const struct accmem_buffer *buf)
{
	switch (buf->page_policy) {
	case ACCMEM_PAGE_ANY:
		return __GFP_COMP | __GFP_NORETRY;
	case ACCMEM_PAGE_HUGE_FIRST:
		return __GFP_COMP;
	default:
		return __GFP_COMP | __GFP_RETRY_MAYFAIL;
	}
}

static struct page *new_page(struct accmem_buffer *buf, unsigned int order)
{
	gfp_t gfp = GFP_USER | __GFP_ACCOUNT | __GFP_ZERO | __GFP_NOWARN;
	struct accmem_carveout *cv = buf->cv;
	struct page *page;

	gfp |= order ? folio_gfp(buf) : __GFP_RETRY_MAYFAIL;
	if (!add_resident(cv, 1l << order))
		return NULL;
	page = alloc_pages(gfp, order);
	if (!page) {
		sub_resident(cv, 1l << order);
		return NULL;
	}
	if (buf->cache_mode != ACCMEM_CACHE_WB &&
	    accmem_set_cache_mode(page, 1u << order, buf->cache_mode)) {
		sub_resident(cv, 1l << order);
		__free_pages(page, order);
		return NULL;
	}
	return page;
}

static struct page *find_page(struct accmem_buffer *buf, unsigned long index)
{
	unsigned long first = round_down(index, FOLIO_PAGES);
	struct page *page = xa_load(&buf->pages, first);

	if (page && compound_order(page))
		return page + (index - first);
	return index == first ? page : xa_load(&buf->pages, index);
}

/* may the 2 MiB around @index be one page? */
static bool wants_folio(struct accmem_buffer *buf, unsigned long index)
{
	unsigned long first = round_down(index, FOLIO_PAGES);
	unsigned long at = first;

	if (buf->page_policy == ACCMEM_PAGE_NORMAL_ONLY ||
	    buf->address & (ACCMEM_FOLIO - 1))
		return false;
	if (first + FOLIO_PAGES > buf->layout.footprint >> PAGE_SHIFT)
		return false;
	return !xa_find(&buf->pages, &at, first + FOLIO_PAGES - 1, XA_PRESENT);
}

/* of these nothing is ever smaller than 2 MiB */
static bool needs_folio(const struct accmem_buffer *buf)
{
	return buf->page_policy == ACCMEM_PAGE_HUGE_ONLY ||
	       buf->page_policy == ACCMEM_PAGE_HUGE1G_ONLY;
}

static unsigned long first_pgoff(const struct accmem_buffer *buf)
{
	return accmem_buffer_offset(buf) >> PAGE_SHIFT;
}

static struct page *store_page(struct accmem_buffer *buf, unsigned long index,
			       unsigned int order)
{
	struct page *page = new_page(buf, order);

	if (!page)
		return NULL;
	index = round_down(index, 1ul << order);
	if (xa_err(xa_store(&buf->pages, index, page, GFP_KERNEL))) {
		free_page_of(buf, page);
		return NULL;
	}
	return page;
}

/* the page at @index, made if there is none; NULL when it cannot be had */
static struct page *get_page_at(struct accmem_buffer *buf, unsigned long index)
{
	struct page *page = find_page(buf, index);

	if (page)
		return page;
	mutex_lock(&buf->lock);
	page = find_page(buf, index);
	if (!page && wants_folio(buf, index) &&
	    store_page(buf, index, ACCMEM_FOLIO_ORDER))
		page = find_page(buf, index);
	if (!page && !needs_folio(buf))
		page = store_page(buf, index, 0);
	mutex_unlock(&buf->lock);
	return page;
}

static vm_fault_t emulated_fault(struct accmem_buffer *buf,
				 struct vm_fault *vmf)
{
	struct page *page = get_page_at(buf, vmf->pgoff - first_pgoff(buf));
	struct folio *folio;

	if (!page)
		return VM_FAULT_SIGBUS;
	/*
	 * Compared with the inode's size before there is a 2 MiB entry. Only now
	 * is it known: a buffer is populated before it has its address.
	 */
	folio = page_folio(page);
	WRITE_ONCE(folio->index, vmf->pgoff - folio_page_idx(folio, page));
	get_page(page);
	vmf->page = page;
	return 0;
}

static int emulated_populate(struct accmem_buffer *buf)
{
	unsigned long i, nr = buf->layout.footprint >> PAGE_SHIFT;

	for (i = 0; i < nr; i++) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (!get_page_at(buf, i))
			return -ENOMEM;
		cond_resched();
	}
	return 0;
}

static int emulated_prepare(struct accmem_buffer *buf)
{
	return buf->flags & ACCMEM_ALLOC_POPULATE ? emulated_populate(buf) : 0;
}

/* of a sheet, whose one page stays until the sheet goes */
static void emulated_zero(struct accmem_buffer *buf, u64 offset, u64 size)
{
	struct page *page = find_page(buf, 0);

	if (page)
		memset(page_address(page) + offset, 0, size);
}

/* likewise */
static bool emulated_idle(struct accmem_buffer *buf, bool force)
{
	struct page *page = find_page(buf, 0);

	if (!page || page_ref_count(page) == 1)
		return true;
	return force && accmem_folio_settle_shared(buf->cv, page_folio(page),
						   accmem_buffer_offset(buf),
						   ACCMEM_GRANULE);
}

/* pages without another reference go at once; the others are asked again */
static bool emulated_settle(struct accmem_buffer *buf, bool force)
{
	unsigned long index;
	struct page *page;

	mutex_lock(&buf->lock);
	xa_for_each(&buf->pages, index, page) {
		if (page_ref_count(page) == 1) {
			xa_erase(&buf->pages, index);
			free_page_of(buf, page);
		}
		cond_resched();
	}
	mutex_unlock(&buf->lock);
	return xa_empty(&buf->pages);
}

static void emulated_release(struct accmem_buffer *buf)
{
	unsigned long index;
	struct page *page;

	xa_for_each(&buf->pages, index, page) {
		free_page_of(buf, page);
		cond_resched();
	}
	xa_destroy(&buf->pages);
}

static const struct accmem_backing_ops emulated_ops = {
	.prepare = emulated_prepare,
	.fault = emulated_fault,
	.settle = emulated_settle,
	.populate = emulated_populate,
	.zero = emulated_zero,
	.idle = emulated_idle,
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
		       ACCMEM_FEATURE_FIRST_TOUCH;
	cv->capacity = size;
	err = accmem_carveout_init(cv);
	if (err)
		return err;
	cv->caps.page_sizes = ACCMEM_GRANULE | ACCMEM_FOLIO;
	if (size >= SZ_1G)
		cv->caps.page_sizes |= SZ_1G;
	cv->cache_modes = BIT(ACCMEM_CACHE_WB) | accmem_emulated_cache_modes();
	cv->inode = accmem_mmap_inode(ACCMEM_MAX_SPAN);
	return PTR_ERR_OR_ZERO(cv->inode);
}
