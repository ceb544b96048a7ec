// SPDX-License-Identifier: GPL-2.0
/*
 * Small buffers: parts of slab pages.
 *
 * A slab page is a granule with a bo and a va of its own, divided into 64 slots of 64
 * bytes. A small buffer has consecutive slots of a slab page. All buffers of a slab
 * page belong to one context and have one cache mode. A mapping exposes the whole page:
 * once a page was mapped, each new buffer in the page is cleared.
 *
 * States of a slot: free -> used -> free, or free -> used -> waiting -> free. Slots
 * wait if their buffer is freed while the page is mapped or pinned, or while a call
 * uses the page. When the last buffer of a page is freed, the page leaves the slab and
 * its bo is detached. The bo becomes free, or quarantined while pages are pinned. Slots
 * of a page that has failed wait until the page leaves the slab.
 *
 * Locking: ctx->lock protects the slabs and the slab pages. quarantine.lock of the
 * carveout is taken without ctx->lock.
 */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "memory/quarantine.h"
#include "vm/context.h"
#include "vm/slab.h"
#include "waitq/waiters.h"

#define SLAB_PROBES 2u /* waiting pages that an allocation checks */
#define SLAB_WAITING_MANY 8u /* waiting pages that cause a forced check */

static struct accmem_slab_page *slab_to_page(struct accmem_va *va)
{
	return container_of(va, struct accmem_slab_page, va);
}

static struct accmem_ctx_carveout *
slab_ctx_carveout(struct accmem_context *ctx,
		  const struct accmem_slab_page *page)
{
	return accmem_ctx_carveout_of(ctx, page->va.bo->cv);
}

static struct accmem_slab *slab_of(struct accmem_context *ctx,
				   const struct accmem_slab_page *page)
{
	return slab_ctx_carveout(ctx, page)->slabs[page->va.bo->cache_mode];
}

static unsigned int slab_offset_of(const struct accmem_buffer *buf)
{
	return buf->address - buf->va->start;
}

/*
 * Return the bytes of a slab page that any context can get by draining the cache: the
 * whole page if all of its used buffers are cached, else 0.
 */
static u64 slab_page_cached_bytes(const struct accmem_slab_page *page)
{
	return page->nr_used && page->nr_used == page->nr_cached ?
		       ACCMEM_GRANULE :
		       0;
}

/* Are there buffers in the page, all of which are pending? */
static bool slab_page_is_pending(const struct accmem_slab_page *page)
{
	return page->nr_pending && page->nr_used == page->nr_pending;
}

/*
 * Waiters are woken when a mapping or a call releases the page if that can make memory
 * available: the memory of pending frees, or slots that wait.
 */
static void slab_page_set_wake_on_put(struct accmem_slab_page *page)
{
	accmem_bo_set_wake_on_put(page->va.bo,
				  page->nr_pending || page->waiting);
}

static void slab_page_adjust_pending(struct accmem_context *ctx,
				     struct accmem_slab_page *page, int used,
				     int pending)
{
	bool before = slab_page_is_pending(page), after;

	lockdep_assert_held(&ctx->lock);
	page->nr_used += used;
	page->nr_pending += pending;
	after = slab_page_is_pending(page);
	/* a page without buffers leaves the pending state when it is detached */
	if (before != after && page->nr_used)
		accmem_bo_set_pending(page->va.bo, after);
	if (pending)
		slab_page_set_wake_on_put(page);
}

static void slab_page_adjust(struct accmem_context *ctx,
			     struct accmem_slab_page *page, int used,
			     int cached, int pending)
{
	u64 before = slab_page_cached_bytes(page), after;

	lockdep_assert_held(&ctx->lock);
	page->nr_cached += cached;
	slab_page_adjust_pending(ctx, page, used, pending);
	after = slab_page_cached_bytes(page);
	if (after == before)
		return;
	accmem_ctx_count_cached(ctx, page->va.bo->cv, after - before);
	/*
	 * A page that is cached as a whole counts as free memory of the carveout,
	 * so it must not also count as free room of the context.
	 */
	slab_ctx_carveout(ctx, page)->slab_room -= after - before;
}

/* Allocate the slab of a cache mode when the context needs it for the first time. */
static int slab_make(struct accmem_context *ctx, struct accmem_ctx_carveout *h,
		     u32 cache_mode)
{
	struct accmem_slab *slab;

	/* Lockless read: once set, the pointer stays until the context is freed. */
	if (READ_ONCE(h->slabs[cache_mode]))
		return 0;
	slab = kmalloc(sizeof(*slab), GFP_KERNEL_ACCOUNT);
	if (!slab)
		return -ENOMEM;
	accmem_slab_init(slab);
	spin_lock(&ctx->lock);
	if (!h->slabs[cache_mode]) {
		WRITE_ONCE(h->slabs[cache_mode], slab);
		slab = NULL;
	}
	spin_unlock(&ctx->lock);
	kfree(slab);
	return 0;
}

static bool slab_page_has_failed(struct accmem_slab_page *page)
{
	return accmem_bo_has_failed(page->va.bo, 0, ACCMEM_GRANULE);
}

/*
 * Is the slab the only user of the page? The caller holds ctx->lock. A mapping is made
 * under the same lock, so the page stays unused while the caller holds the lock. A page
 * that has failed is not idle, so that its slots are not used again.
 */
static bool slab_page_is_idle(struct accmem_slab_page *page)
{
	struct accmem_bo *bo = page->va.bo;

	return !accmem_bo_has_users(bo) && accmem_bo_is_idle(bo) &&
	       !slab_page_has_failed(page);
}

static void slab_page_stop_waiting(struct accmem_context *ctx,
				   struct accmem_slab_page *page)
{
	struct accmem_ctx_carveout *h;

	if (!page->waiting)
		return;
	page->waiting = 0;
	slab_page_set_wake_on_put(page);
	list_del_init(&page->link);
	h = slab_ctx_carveout(ctx, page);
	WRITE_ONCE(h->nr_waiting, h->nr_waiting - 1);
}

/*
 * Free the waiting slots of a page if the page is idle. Otherwise move the page to the
 * end of the list of waiting pages.
 */
static void slab_page_reap(struct accmem_context *ctx,
			   struct accmem_slab_page *page)
{
	struct accmem_ctx_carveout *h = slab_ctx_carveout(ctx, page);
	u64 waiting = page->waiting;

	lockdep_assert_held(&ctx->lock);
	if (!slab_page_is_idle(page)) {
		list_move_tail(&page->link, &h->waiting_pages);
		return;
	}
	slab_page_stop_waiting(ctx, page);
	h->slab_room += hweight64(waiting) * ACCMEM_SLAB_SLOT_SIZE;
	while (waiting) {
		unsigned int first = __ffs64(waiting);
		u64 rest = ~(waiting >> first);
		unsigned int nr = rest ? __ffs64(rest) : ACCMEM_SLAB_SLOTS;

		WARN_ON_ONCE(accmem_slab_free(slab_of(ctx, page), &page->slots,
					      first * ACCMEM_SLAB_SLOT_SIZE,
					      nr * ACCMEM_SLAB_SLOT_SIZE));
		waiting &= ~GENMASK_ULL(first + nr - 1, first);
	}
}

static void slab_reap_some(struct accmem_context *ctx,
			   struct accmem_ctx_carveout *h, unsigned int nr)
{
	lockdep_assert_held(&ctx->lock);
	for (nr = min(nr, h->nr_waiting); nr; nr--)
		slab_page_reap(ctx,
			       list_first_entry(&h->waiting_pages,
						struct accmem_slab_page, link));
}

static void slab_reap_carveout(struct accmem_context *ctx,
			       struct accmem_ctx_carveout *h)
{
	/* Racy read: the count only bounds the number of pages that are checked. */
	unsigned int left = READ_ONCE(h->nr_waiting);

	while (left) {
		unsigned int nr = min(left, 64u);

		spin_lock(&ctx->lock);
		slab_reap_some(ctx, h, nr);
		spin_unlock(&ctx->lock);
		left -= nr;
		cond_resched();
	}
}

/*
 * Check one waiting page by force. A plain check can report a page as in use because
 * neighbouring memory is mapped. A forced check removes such mappings. If programs keep
 * most memory mapped, only forced checks find idle pages.
 */
static void slab_force_check(struct accmem_context *ctx,
			     struct accmem_ctx_carveout *h)
{
	struct accmem_slab_page *page;
	struct accmem_bo *bo = NULL;

	spin_lock(&ctx->lock);
	page = list_first_entry_or_null(&h->waiting_pages,
					struct accmem_slab_page, link);
	if (page && kref_read(&page->va.bo->refs) == 1) {
		bo = page->va.bo;
		accmem_bo_get(bo);
	}
	if (page)
		list_move_tail(&page->link, &h->waiting_pages);
	spin_unlock(&ctx->lock);
	if (!bo)
		return;
	accmem_quarantine_is_idle(bo);
	accmem_bo_put_user(bo);
	/*
	 * Another call may have freed the page, which was moved to the end of the list:
	 * do not use @page. Another page at the end is checked instead, without harm.
	 */
	spin_lock(&ctx->lock);
	if (!list_empty(&h->waiting_pages))
		slab_page_reap(ctx,
			       list_last_entry(&h->waiting_pages,
					       struct accmem_slab_page, link));
	spin_unlock(&ctx->lock);
}

static void slab_force_carveout(struct accmem_context *ctx,
				struct accmem_ctx_carveout *h)
{
	/* Racy read: the count only bounds the number of pages that are checked. */
	unsigned int left = READ_ONCE(h->nr_waiting);

	for (; left && !fatal_signal_pending(current); left--) {
		slab_force_check(ctx, h);
		cond_resched();
	}
}

/**
 * accmem_slab_reap() - free the waiting slots of all idle slab pages
 * @ctx: the context
 * @force: remove mappings of neighbouring memory that make a page look as if it were in
 *	use; faults map them again
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 */
void accmem_slab_reap(struct accmem_context *ctx, bool force)
{
	struct accmem_carveout *cv;

	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);

		slab_reap_carveout(ctx, h);
		if (force)
			slab_force_carveout(ctx, h);
	}
}

/* Let slots wait until their page is idle, or until the page is removed. */
static void slab_units_wait(struct accmem_context *ctx,
			    struct accmem_slab_page *page, unsigned int offset,
			    unsigned int size)
{
	struct accmem_ctx_carveout *h = slab_ctx_carveout(ctx, page);
	unsigned int first = offset / ACCMEM_SLAB_SLOT_SIZE;
	unsigned int nr = size / ACCMEM_SLAB_SLOT_SIZE;

	lockdep_assert_held(&ctx->lock);
	if (!page->waiting) {
		list_add_tail(&page->link, &h->waiting_pages);
		WRITE_ONCE(h->nr_waiting, h->nr_waiting + 1);
	}
	page->waiting |= GENMASK_ULL(first + nr - 1, first);
	slab_page_set_wake_on_put(page);
}

/*
 * Allocate slots, but none of a page that has failed: these wait from now on, and are not
 * found again. A page without buffers is new, and its buffer gets it in any case.
 */
static struct accmem_slab_page *
slab_alloc_units(struct accmem_context *ctx, struct accmem_ctx_carveout *h,
		 const struct accmem_layout *layout, u32 cache_mode,
		 unsigned int *offset)
{
	struct accmem_slab_granule *slots;
	struct accmem_slab_page *page;

	while ((slots = accmem_slab_alloc(h->slabs[cache_mode],
					  layout->footprint, layout->alignment,
					  offset))) {
		page = container_of(slots, struct accmem_slab_page, slots);
		if (!page->nr_used || !slab_page_has_failed(page))
			return page;
		h->slab_room -= layout->footprint;
		slab_units_wait(ctx, page, *offset, layout->footprint);
	}
	return NULL;
}

static bool slab_cut_units(struct accmem_context *ctx,
			   struct accmem_ctx_carveout *h,
			   struct accmem_buffer *buf, u32 cache_mode)
{
	struct accmem_slab_page *page;
	unsigned int offset;

	lockdep_assert_held(&ctx->lock);
	page = slab_alloc_units(ctx, h, &buf->layout, cache_mode, &offset);
	if (!page)
		return false;
	slab_page_adjust(ctx, page, 1, 0, 0);
	h->slab_room -= buf->layout.footprint;
	buf->va = &page->va;
	buf->address = page->va.start + offset;
	return true;
}

/* Allocate the slots of a buffer in an existing slab page. */
static bool slab_cut_from_old(struct accmem_context *ctx,
			      struct accmem_ctx_carveout *h,
			      struct accmem_buffer *buf, u32 cache_mode)
{
	bool done;

	spin_lock(&ctx->lock);
	slab_reap_some(ctx, h, SLAB_PROBES);
	done = slab_cut_units(ctx, h, buf, cache_mode);
	spin_unlock(&ctx->lock);
	return done;
}

/*
 * Allocate the slots of a buffer in the new slab page *@page. If a page has free slots
 * meanwhile, because of another call, use that page and leave *@page to the caller.
 * Otherwise add the new page to the slab and set *@page to NULL.
 */
static int slab_cut_from_new(struct accmem_context *ctx,
			     struct accmem_buffer *buf,
			     struct accmem_slab_page **page)
{
	struct accmem_ctx_carveout *h = slab_ctx_carveout(ctx, *page);
	u32 cache_mode = (*page)->va.bo->cache_mode;
	u64 from = 0;
	int err = 0;

	spin_lock(&ctx->lock);
	if (slab_cut_units(ctx, h, buf, cache_mode))
		goto out;
	err = accmem_va_insert(ctx, &(*page)->va, ACCMEM_GRANULE, &from);
	if (err)
		goto out;
	accmem_va_place_bo(ctx, &(*page)->va);
	accmem_slab_add(h->slabs[cache_mode], &(*page)->slots);
	h->slab_room += ACCMEM_GRANULE;
	*page = NULL;
	WARN_ON_ONCE(!slab_cut_units(ctx, h, buf, cache_mode));
out:
	spin_unlock(&ctx->lock);
	return err;
}

/* Free a page that is in no slab and has no device address. */
static void slab_page_destroy(struct accmem_slab_page *page)
{
	accmem_bo_detach(page->va.bo);
	kfree(page);
}

static void slab_free_units(struct accmem_context *ctx,
			    struct accmem_slab_page *page, unsigned int offset,
			    unsigned int size)
{
	struct accmem_ctx_carveout *h = slab_ctx_carveout(ctx, page);

	lockdep_assert_held(&ctx->lock);
	if (slab_page_is_idle(page)) {
		WARN_ON_ONCE(accmem_slab_free(slab_of(ctx, page), &page->slots,
					      offset, size) < 0);
		h->slab_room += size;
		return;
	}
	slab_units_wait(ctx, page, offset, size);
}

/*
 * Remove a page without buffers from the slab and from the tree of address ranges. The
 * slab drops a page itself when all of its slots are free. Waiting slots keep the page
 * in the slab, so the page is removed here.
 */
static void slab_page_remove(struct accmem_context *ctx,
			     struct accmem_slab_page *page)
{
	lockdep_assert_held(&ctx->lock);
	slab_ctx_carveout(ctx, page)->slab_room -=
		accmem_slab_free_bytes(&page->slots);
	if (page->waiting)
		accmem_slab_remove(slab_of(ctx, page), &page->slots);
	slab_page_stop_waiting(ctx, page);
	accmem_va_erase(ctx, &page->va);
}

/**
 * accmem_slab_destroy() - free a small buffer, and its slab page if no other is left
 * @ctx: the context
 * @buf: the buffer, which is not published
 *
 * The function allocates nothing.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 */
void accmem_slab_destroy(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct accmem_slab_page *page = slab_to_page(buf->va);
	struct accmem_carveout *cv = page->va.bo->cv;
	bool gone;

	spin_lock(&ctx->lock);
	slab_free_units(ctx, page, slab_offset_of(buf), buf->layout.footprint);
	slab_page_adjust(ctx, page, -1, 0, buf->pending.ctx ? -1 : 0);
	gone = !page->nr_used;
	if (gone)
		slab_page_remove(ctx, page);
	spin_unlock(&ctx->lock);
	accmem_uncharge_buffers(ctx->account, 1);
	accmem_count_frees(cv, 1);
	if (gone)
		slab_page_destroy(page);
	/*
	 * Wake the waiters even if the page is not free yet: the charge of the
	 * buffer was dropped, which may be enough for a waiter at a limit.
	 */
	accmem_waiters_wake(ctx->account->waiters, ctx->account->user);
	kfree(buf);
}

/**
 * accmem_slab_shrink() - free the last slots of a small buffer
 * @ctx: the context
 * @buf: the buffer; its layout still has the old footprint
 * @footprint: new footprint in bytes
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_slab_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 footprint)
{
	slab_free_units(ctx, slab_to_page(buf->va),
			slab_offset_of(buf) + footprint,
			buf->layout.footprint - footprint);
}

/**
 * accmem_slab_set_pending() - mark a small buffer as pending, or as in use again
 * @ctx: the context
 * @buf: the buffer
 * @pending: true when the free of the buffer starts to wait for a dependency; false
 *	when a request gets the buffer before the free is finished
 *
 * The bo of a slab page is pending while all buffers of the page are pending.
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_slab_set_pending(struct accmem_context *ctx,
			     struct accmem_buffer *buf, bool pending)
{
	slab_page_adjust(ctx, slab_to_page(buf->va), 0, 0, pending ? 1 : -1);
}

static struct accmem_slab_page *slab_page_create(struct accmem_context *ctx,
						 struct accmem_carveout *cv,
						 u32 cache_mode)
{
	const struct accmem_bo_spec spec = {
		.size = ACCMEM_GRANULE,
		.alignment = ACCMEM_GRANULE,
		.page_size = ACCMEM_GRANULE,
		.huge = ACCMEM_HUGE_NEVER,
		.flags = accmem_carveout_flags(cv, 0),
		.cache_mode = cache_mode,
	};
	struct accmem_slab_page *page;
	struct accmem_bo *bo;

	page = kzalloc(sizeof(*page), GFP_KERNEL_ACCOUNT);
	if (!page)
		return ERR_PTR(-ENOMEM);
	bo = accmem_bo_create(ctx->account, cv, &spec);
	if (IS_ERR(bo)) {
		kfree(page);
		return ERR_CAST(bo);
	}
	INIT_LIST_HEAD(&page->link);
	page->va.size = ACCMEM_GRANULE;
	page->va.stride = ACCMEM_SLAB_SLOT_SIZE;
	page->va.bo = bo;
	page->va.buffers = page->buffers;
	return page;
}

static int slab_get_units(struct accmem_context *ctx,
			  struct accmem_carveout *cv, struct accmem_buffer *buf,
			  u32 cache_mode)
{
	struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);
	struct accmem_slab_page *page;
	int err;

	err = slab_make(ctx, h, cache_mode);
	if (err)
		return err;
	if (slab_cut_from_old(ctx, h, buf, cache_mode))
		return 0;
	/* Racy read: a stale count only delays the forced check to a later call. */
	if (READ_ONCE(h->nr_waiting) >= SLAB_WAITING_MANY)
		slab_force_check(ctx, h);
	page = slab_page_create(ctx, cv, cache_mode);
	if (IS_ERR(page))
		return slab_cut_from_old(ctx, h, buf, cache_mode) ?
			       0 :
			       PTR_ERR(page);
	err = slab_cut_from_new(ctx, buf, &page);
	if (page)
		slab_page_destroy(page);
	return err;
}

/* Clear a new buffer if its page was written, and populate the page if required. */
static int slab_prepare(struct accmem_buffer *buf)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	int err = 0;

	if (accmem_bo_was_written(bo))
		err = accmem_bo_clear(bo, slab_offset_of(buf),
				      buf->layout.footprint);
	if (!err && accmem_must_populate(bo->cv, buf->flags))
		err = accmem_bo_populate(bo, 0, bo->size);
	return err;
}

/**
 * accmem_slab_create() - allocate a small buffer and do not publish it yet
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: the layout of the request
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 * Return: the buffer; an error of accmem_bo_create(); -EDQUOT when a limit on buffers
 * is reached; -EADDRNOTAVAIL when no device address is left for a new slab page.
 */
struct accmem_buffer *accmem_slab_create(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 const struct accmem_layout *layout)
{
	struct accmem_buffer *buf;
	int err;

	buf = kzalloc(sizeof(*buf), GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->length = req->length;
	buf->alignment = req->alignment;
	buf->layout = *layout;
	buf->flags = accmem_alloc_flags(req);
	buf->page_policy = req->page_policy;
	err = accmem_charge_buffers(ctx->account, 1);
	if (err)
		goto err_free;
	err = slab_get_units(ctx, cv, buf,
			     accmem_carveout_mode(cv, req->cache_mode));
	if (err)
		goto err_charge;
	accmem_count_allocs(cv, 1);
	err = slab_prepare(buf);
	if (err) {
		accmem_slab_destroy(ctx, buf);
		return ERR_PTR(err);
	}
	return buf;

err_charge:
	accmem_uncharge_buffers(ctx->account, 1);
err_free:
	kfree(buf);
	return ERR_PTR(err);
}

/**
 * accmem_slab_set_cached() - count a small buffer as cached, or as not cached
 * @ctx: the context
 * @buf: the buffer
 * @cached: true when the buffer enters the cache; false when it leaves
 *
 * Context: Process context. The caller holds ctx->lock. Does not sleep.
 */
void accmem_slab_set_cached(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool cached)
{
	u64 size = buf->layout.footprint;

	lockdep_assert_held(&ctx->lock);
	slab_ctx_carveout(ctx, slab_to_page(buf->va))->slab_room +=
		cached ? size : -size;
	slab_page_adjust(ctx, slab_to_page(buf->va), 0, cached ? 1 : -1, 0);
}

/**
 * accmem_slab_is_cached() - check whether all buffers of a slab page are cached
 * @buf: a cached small buffer of the page
 *
 * Context: Process context. The caller holds the context's lock. Does not sleep.
 * Return: true if a drain of the cache would free the whole page.
 */
bool accmem_slab_is_cached(const struct accmem_buffer *buf)
{
	return slab_page_cached_bytes(slab_to_page(buf->va));
}

/**
 * accmem_slab_room() - return the free bytes in the slab pages of a context
 * @ctx: the context
 * @cv: the carveout of the pages
 * @largest: out: size in bytes of the largest small buffer that needs no new page
 *
 * Context: Process context. Takes and releases ctx->lock. Does not sleep.
 * Return: free bytes in all slab pages of @ctx in @cv.
 */
u64 accmem_slab_room(struct accmem_context *ctx,
		     const struct accmem_carveout *cv, u64 *largest)
{
	struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);
	unsigned int i;
	u64 room;

	*largest = 0;
	spin_lock(&ctx->lock);
	for (i = 0; i < ARRAY_SIZE(h->slabs); i++) {
		if (h->slabs[i])
			*largest = max_t(u64, *largest,
					 accmem_slab_largest(h->slabs[i]));
	}
	/*
	 * The sum can be negative. For a page that is cached as a whole, the size
	 * of the page was subtracted, but its waiting slots had not been added.
	 */
	room = max_t(s64, h->slab_room, 0);
	spin_unlock(&ctx->lock);
	*largest = min(*largest, ACCMEM_SMALL_MAX);
	return room;
}
