// SPDX-License-Identifier: GPL-2.0
/*
 * Small buffers: cut from slab pages, granules of one context.
 *
 * A slab page is a memory with a slab; a buffer in it is a name like any other.
 * A mapping shows the whole page, so a buffer that is freed when the page is
 * mapped, or pinned, leaves its units waiting: they are used again once nobody
 * has the page. The page goes when no buffer of it is left, and is detached or
 * quarantined then as any memory is.
 *
 * Pages of different cache modes are apart. What no mapping has ever shown is
 * zero still; on a page that was mapped, a buffer is cleared when it is cut.
 *
 * Locks: the context's lock; quarantine_lock without it.
 */
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/quarantine.h"
#include "vm/buffer.h"
#include "vm/context.h"
#include "vm/slab.h"
#include "waitq/waiters.h"

#define SLAB_PROBES 2u /* pages asked whether their units may be used again */
#define SLAB_WAITING_MANY 8u /* of so many, one is made to answer */

static struct accmem_slab_page *slab_to_page(struct accmem_va *va)
{
	return container_of(va, struct accmem_slab_page, va);
}

static struct accmem_ctx_carveout *
slab_holding(struct accmem_context *ctx, const struct accmem_slab_page *page)
{
	return accmem_ctx_carveout_of(ctx, page->va.bo->cv);
}

static struct accmem_slab *slab_of(struct accmem_context *ctx,
				   const struct accmem_slab_page *page)
{
	return slab_holding(ctx, page)->slabs[page->va.bo->cache_mode];
}

static unsigned int slab_offset_of(const struct accmem_buffer *buf)
{
	return buf->address - buf->va->start;
}

/* what of a page is free to all who ask, although the slab has it */
static u64 slab_page_cached_bytes(const struct accmem_slab_page *page)
{
	return page->nr_used && page->nr_used == page->nr_cached ?
		       ACCMEM_GRANULE : 0;
}

/* nothing of the page has a name, but frees of it wait */
static bool slab_page_is_pending(const struct accmem_slab_page *page)
{
	return page->nr_pending && page->nr_used == page->nr_pending;
}

/* what of the page can be had when nobody maps it, nor is at work on it, any more */
static void slab_page_set_awaited(struct accmem_slab_page *page)
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
	/* what is not used any more is detached by its last buffer */
	if (before != after && page->nr_used)
		accmem_bo_set_pending(page->va.bo, after);
	if (pending)
		slab_page_set_awaited(page);
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
	/* all of the page is anybody's then, and no room of the context's */
	slab_holding(ctx, page)->slab_room -= after - before;
}

/* the slab of a cache mode is there from its first buffer on */
static int slab_make(struct accmem_context *ctx, struct accmem_ctx_carveout *h,
		     u32 cache_mode)
{
	struct accmem_slab *slab;

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

/* Has nobody the page but the slab? A mapping is made under the context's lock. */
static bool slab_page_is_idle(struct accmem_slab_page *page)
{
	struct accmem_bo *bo = page->va.bo;

	return !accmem_bo_was_mapped(bo) ||
	       (kref_read(&bo->refs) == 1 && accmem_bo_is_idle(bo));
}

static void slab_page_stop_waiting(struct accmem_context *ctx,
				   struct accmem_slab_page *page)
{
	struct accmem_ctx_carveout *h;

	if (!page->waiting)
		return;
	page->waiting = 0;
	slab_page_set_awaited(page);
	list_del_init(&page->link);
	h = slab_holding(ctx, page);
	WRITE_ONCE(h->nr_waiting, h->nr_waiting - 1);
}

/* units that waited can be used again, if nobody has the page any more */
static void slab_page_reap(struct accmem_context *ctx,
			   struct accmem_slab_page *page)
{
	struct accmem_ctx_carveout *h = slab_holding(ctx, page);
	u64 waiting = page->waiting;

	lockdep_assert_held(&ctx->lock);
	if (!slab_page_is_idle(page)) {
		list_move_tail(&page->link, &h->waiting_pages);
		return;
	}
	slab_page_stop_waiting(ctx, page);
	h->slab_room += hweight64(waiting) * ACCMEM_SLAB_UNIT;
	while (waiting) {
		unsigned int first = __ffs64(waiting);
		u64 rest = ~(waiting >> first);
		unsigned int nr = rest ? __ffs64(rest) : ACCMEM_SLAB_UNITS;

		WARN_ON_ONCE(accmem_slab_free(slab_of(ctx, page), &page->units,
					      first * ACCMEM_SLAB_UNIT,
					      nr * ACCMEM_SLAB_UNIT));
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

static void slab_reap_holding(struct accmem_context *ctx,
			      struct accmem_ctx_carveout *h)
{
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

/**
 * accmem_slab_reap() - find units that can be used again
 * @ctx: the context
 */
void accmem_slab_reap(struct accmem_context *ctx)
{
	struct accmem_carveout *cv;

	accmem_for_each_carveout(cv, ctx->carveouts)
		slab_reap_holding(ctx, accmem_ctx_carveout_of(ctx, cv));
}

/*
 * Where everything is mapped all the time, neighbours' mappings hide that a page
 * has come home: one of the pages is made to answer.
 */
static void slab_force_check(struct accmem_context *ctx,
			     struct accmem_ctx_carveout *h)
{
	struct accmem_slab_page *page;
	struct accmem_bo *bo = NULL;

	if (READ_ONCE(h->nr_waiting) < SLAB_WAITING_MANY)
		return;
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
	/* at the end of the list, where it has become the first to be asked */
	spin_lock(&ctx->lock);
	if (!list_empty(&h->waiting_pages))
		slab_page_reap(ctx,
			       list_last_entry(&h->waiting_pages,
					       struct accmem_slab_page, link));
	spin_unlock(&ctx->lock);
}

static bool slab_cut_units(struct accmem_context *ctx,
			   struct accmem_ctx_carveout *h,
			   struct accmem_buffer *buf, u32 cache_mode)
{
	struct accmem_slab_granule *units;
	struct accmem_slab_page *page;
	unsigned int offset;

	lockdep_assert_held(&ctx->lock);
	units = accmem_slab_alloc(h->slabs[cache_mode], buf->layout.footprint,
				  buf->layout.alignment, &offset);
	if (!units)
		return false;
	page = container_of(units, struct accmem_slab_page, units);
	slab_page_adjust(ctx, page, 1, 0, 0);
	h->slab_room -= buf->layout.footprint;
	buf->va = &page->va;
	buf->address = page->va.start + offset;
	return true;
}

/* from a page that is there */
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

/* from @page, unless another call has brought one; *@page is NULL if it is used */
static int slab_cut_from_new(struct accmem_context *ctx,
			     struct accmem_buffer *buf,
			     struct accmem_slab_page **page)
{
	struct accmem_ctx_carveout *h = slab_holding(ctx, *page);
	u32 cache_mode = (*page)->va.bo->cache_mode;
	int err = 0;

	spin_lock(&ctx->lock);
	if (slab_cut_units(ctx, h, buf, cache_mode))
		goto out;
	err = accmem_va_insert(ctx, &(*page)->va, ACCMEM_GRANULE);
	if (err)
		goto out;
	accmem_slab_add(h->slabs[cache_mode], &(*page)->units);
	h->slab_room += ACCMEM_GRANULE;
	*page = NULL;
	WARN_ON_ONCE(!slab_cut_units(ctx, h, buf, cache_mode));
out:
	spin_unlock(&ctx->lock);
	return err;
}

/* a page that is in no slab and at no address */
static void slab_page_destroy(struct accmem_slab_page *page)
{
	accmem_bo_detach(page->va.bo);
	kfree(page);
}

static void slab_give_units(struct accmem_context *ctx,
			    struct accmem_slab_page *page, unsigned int offset,
			    unsigned int size)
{
	struct accmem_ctx_carveout *h = slab_holding(ctx, page);
	unsigned int first = offset / ACCMEM_SLAB_UNIT;
	unsigned int nr = size / ACCMEM_SLAB_UNIT;

	lockdep_assert_held(&ctx->lock);
	if (slab_page_is_idle(page)) {
		WARN_ON_ONCE(accmem_slab_free(slab_of(ctx, page), &page->units,
					      offset, size) < 0);
		h->slab_room += size;
		return;
	}
	if (!page->waiting) {
		list_add_tail(&page->link, &h->waiting_pages);
		WRITE_ONCE(h->nr_waiting, h->nr_waiting + 1);
	}
	page->waiting |= GENMASK_ULL(first + nr - 1, first);
	slab_page_set_awaited(page);
}

/* nothing of the page is used: out of the slab, if units that wait keep it in */
static void slab_page_remove(struct accmem_context *ctx,
			     struct accmem_slab_page *page)
{
	lockdep_assert_held(&ctx->lock);
	slab_holding(ctx, page)->slab_room -=
		accmem_slab_free_bytes(&page->units);
	if (page->waiting)
		accmem_slab_remove(slab_of(ctx, page), &page->units);
	slab_page_stop_waiting(ctx, page);
	accmem_va_erase(ctx, &page->va);
}

/**
 * accmem_slab_destroy() - give a small buffer back
 * @ctx: the context
 * @buf: the buffer, which has no name any more. Sleeps, allocates nothing.
 */
void accmem_slab_destroy(struct accmem_context *ctx, struct accmem_buffer *buf)
{
	struct accmem_slab_page *page = slab_to_page(buf->va);
	struct accmem_carveout *cv = page->va.bo->cv;
	bool gone;

	spin_lock(&ctx->lock);
	slab_give_units(ctx, page, slab_offset_of(buf), buf->layout.footprint);
	slab_page_adjust(ctx, page, -1, 0, buf->pending.ctx ? -1 : 0);
	gone = !page->nr_used;
	if (gone)
		slab_page_remove(ctx, page);
	spin_unlock(&ctx->lock);
	accmem_uncharge_buffers(ctx->account, 1);
	accmem_count_frees(cv, 1);
	if (gone)
		slab_page_destroy(page);
	/* a page that is pinned stays, and the buffer was charged all the same */
	accmem_waiters_wake_freed(ctx->account->waiters, ctx->account->user);
	kfree(buf);
}

/**
 * accmem_slab_shrink() - a small buffer gives its last units back
 * @ctx: the context, whose lock is held
 * @buf: the buffer, whose layout is the old one still
 * @footprint: bytes that it keeps
 */
void accmem_slab_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 footprint)
{
	slab_give_units(ctx, slab_to_page(buf->va),
			slab_offset_of(buf) + footprint,
			buf->layout.footprint - footprint);
}

/**
 * accmem_slab_set_pending() - the free of a small buffer begins to wait, or is undone
 * @ctx: the context, whose lock is held
 * @buf: the buffer
 * @pending: which of both
 *
 * A page is pending when all that is used of it is.
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
	page->va.unit = ACCMEM_SLAB_UNIT;
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

/* zero, and present if asked */
static int slab_prepare(struct accmem_buffer *buf)
{
	struct accmem_bo *bo = accmem_buffer_bo(buf);
	const struct accmem_backing_ops *ops = bo->cv->ops;
	int err = 0;

	if (accmem_bo_was_mapped(bo))
		err = ops->clear_range(bo, slab_offset_of(buf),
				       buf->layout.footprint);
	if (!err && accmem_must_populate(bo->cv, buf->flags))
		err = ops->populate(bo, 0);
	return err;
}

/**
 * accmem_slab_create() - make a small buffer, which has not been published
 * @ctx: the context
 * @cv: the carveout
 * @req: the request
 * @layout: what it became
 *
 * Return: the buffer; an error of accmem_bo_create().
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
	buf->layout = *layout;
	buf->flags = accmem_alloc_flags(req);
	buf->page_policy = req->page_policy;
	err = accmem_charge_buffers(ctx->account, 1);
	if (err)
		goto err_free;
	err = slab_get_units(ctx, cv, buf, req->cache_mode);
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
 * accmem_slab_set_cached() - a small buffer goes into the cache, or comes out
 * @ctx: the context, whose lock is held
 * @buf: the buffer
 * @cached: which of both
 */
void accmem_slab_set_cached(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool cached)
{
	u64 size = buf->layout.footprint;

	lockdep_assert_held(&ctx->lock);
	slab_holding(ctx, slab_to_page(buf->va))->slab_room += cached ? size :
									-size;
	slab_page_adjust(ctx, slab_to_page(buf->va), 0, cached ? 1 : -1, 0);
}

/**
 * accmem_slab_is_cached() - are all buffers of a page in the cache?
 * @buf: a small buffer that is; the context's lock is held
 *
 * Return: whether the page would go if the cache were emptied.
 */
bool accmem_slab_is_cached(const struct accmem_buffer *buf)
{
	return slab_page_cached_bytes(slab_to_page(buf->va));
}

/**
 * accmem_slab_room() - what is left of a context's slab pages
 * @ctx: the context
 * @cv: in which carveout
 * @largest: out: bytes of the largest small buffer that needs no new page
 *
 * Return: bytes in all.
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
	/* what waits of a page that is cached is no room, but free with it */
	room = max_t(s64, h->slab_room, 0);
	spin_unlock(&ctx->lock);
	*largest = min(*largest, ACCMEM_SMALL_MAX);
	return room;
}
