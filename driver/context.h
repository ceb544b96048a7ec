/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: an open file, and its names for memory.
 */
#ifndef ACCMEM_CONTEXT_H
#define ACCMEM_CONTEXT_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>

#include <linux/accmem.h>

#include "lib/accmem_layout.h"
#include "lib/accmem_slab.h"
#include "device.h"
#include "memory.h"
#include "stream.h"

#define ACCMEM_NR_CACHE_MODES (ACCMEM_CACHE_UC + 1)
#define ACCMEM_NAMES_END (~0ull) /* no device address: of accmem_name_next() */
#define ACCMEM_CACHE_BUFFERS 16u /* freed ones that a context keeps, at most */

struct accmem_buffer;
struct accmem_context;
struct accmem_place;
struct accmem_tmem;
struct seq_file;

/**
 * struct accmem_place - a memory at its device addresses
 * @node: in accmem_context.places, by address
 * @start: lowest device address
 * @size: bytes
 * @unit: bytes from one address that a buffer may have to the next
 * @gap: device addresses that are nobody's, below it
 * @max_gap: the largest such gap in its subtree
 * @memory: the memory
 * @names: bit i: a buffer that has been published begins i units in
 * @buffers: these buffers, by bit
 *
 * Guarded by the context's lock.
 */
struct accmem_place {
	struct rb_node node;
	u64 start;
	u64 size;
	u64 unit;
	u64 gap;
	u64 max_gap;
	struct accmem_memory *memory;
	u64 names;
	struct accmem_buffer **buffers;
};

/**
 * struct accmem_buffer - a name: what ALLOC returned, until FREE
 * @place: where its memory is
 * @address: device address
 * @length: bytes asked for
 * @layout: what that became
 * @reserve: bytes that it is expected to grow to, or 0
 * @flags: ACCMEM_ALLOC_*
 * @page_policy: enum accmem_page_policy as asked for
 * @resizing: a REALLOC of it is in progress, which alone may take its name away
 * @pending: its free, when that waits, or it is kept in the cache
 *
 * Guarded by the context's lock while it is published or cached; else it is
 * whose call has it in hand, or the stream's or the fence's that its free waits
 * for.
 */
struct accmem_buffer {
	struct accmem_place *place;
	u64 address;
	u64 length;
	struct accmem_layout layout;
	u64 reserve;
	u32 flags;
	u8 page_policy;
	bool resizing;
	struct accmem_pending pending;
};

/**
 * struct accmem_slab_page - a granule that small buffers are cut from
 * @place: where it is
 * @units: what is taken of it
 * @waiting: units that were freed when somebody could have had the page
 * @nr_used: buffers cut from it that are not free
 * @nr_cached: as many of them are in the cache
 * @nr_pending: as many of them wait to be free
 * @link: in accmem_context.waiting_pages, when there are @waiting units
 * @buffers: those that have been published, by unit
 *
 * Guarded by the context's lock.
 */
struct accmem_slab_page {
	struct accmem_place place;
	struct accmem_slab_granule units;
	u64 waiting;
	unsigned int nr_used;
	unsigned int nr_cached;
	unsigned int nr_pending;
	struct list_head link;
	struct accmem_buffer *buffers[ACCMEM_SLAB_UNITS];
};

/**
 * struct accmem_holding - what a context has of one carveout
 * @cursor: where the search for a free device address starts (mapped)
 * @named_bytes: footprints of buffers that are published
 * @slabs: pages with room for small buffers, of each cache mode; NULL before the
 *	first of them
 * @slab_room: bytes of its slab pages that it could have: in no buffer, or in a
 *	cached one, and not waiting; but for pages that are cached in whole
 * @waiting_pages: slab pages with units that wait
 * @nr_waiting: how many pages
 * @cached_bytes: what cached buffers hold, which is free to all who ask
 *
 * Guarded by the context's lock.
 */
struct accmem_holding {
	u64 cursor;
	u64 named_bytes;
	struct accmem_slab *slabs[ACCMEM_NR_CACHE_MODES];
	s64 slab_room;
	struct list_head waiting_pages;
	unsigned int nr_waiting;
	u64 cached_bytes;
};

/**
 * struct accmem_context - one open file
 * @refs: the file, who reclaims what it caches, pending frees, files of streams
 * @rcu: frees it when nobody can be looking at it any more
 * @dev: the device
 * @account: what it is charged for
 * @lock: guards the fields down to @pending_bytes, and @holdings. Held for
 *	O(log n).
 * @places: memory by device address
 * @nr_names: buffers that are published
 * @cache: freed buffers kept for the next requests, the latest first
 * @nr_cached: how many
 * @fences: frees that wait for fences, by fence
 * @nr_pending: frees that wait
 * @pending_bytes: their footprints
 * @streams: its streams, by number, while their files are open
 * @last_stream: number of the latest one
 * @shrink: how it is told that others wait for memory
 * @tmem_lock: guards @tmem
 * @tmem: Tensor Memory, NULL until it is set up or a CTA is launched; stays
 *	until the context ends
 * @holdings: what it has of each carveout
 */
struct accmem_context {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_device *dev;
	struct accmem_account *account;

	spinlock_t lock; /* the fields down to pending_bytes, and holdings */
	struct rb_root places;
	u64 nr_names;
	struct list_head cache;
	unsigned int nr_cached;
	struct rb_root fences;
	u64 nr_pending;
	u64 pending_bytes;

	struct xarray streams;
	atomic64_t last_stream;
	struct accmem_shrinkable shrink;
	struct mutex tmem_lock; /* tmem */
	struct accmem_tmem *tmem;
	struct accmem_holding holdings[];
};

/* places.c */
int accmem_place_insert(struct accmem_context *ctx, struct accmem_place *place,
			u64 alignment);
int accmem_place_check(struct accmem_context *ctx, u64 start, u64 size);
void accmem_place_insert_at(struct accmem_context *ctx,
			    struct accmem_place *place);
int accmem_place_resize(struct accmem_context *ctx, struct accmem_place *place,
			u64 size);
void accmem_place_erase(struct accmem_context *ctx, struct accmem_place *place);
struct accmem_place *accmem_place_above(struct accmem_context *ctx,
					u64 address);
struct accmem_place *accmem_place_find(struct accmem_context *ctx, u64 address);
struct accmem_place *accmem_place_next(const struct accmem_place *place);

/* names.c */
void accmem_name_publish(struct accmem_context *ctx, struct accmem_buffer *buf);
void accmem_name_unpublish(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
struct accmem_buffer *accmem_name_find(struct accmem_context *ctx, u64 address);
struct accmem_buffer *accmem_name_next(struct accmem_context *ctx,
				       u64 *address);

/* slab.c */
void accmem_slab_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 footprint);
struct accmem_buffer *accmem_slab_create(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 const struct accmem_layout *layout);
void accmem_slab_destroy(struct accmem_context *ctx, struct accmem_buffer *buf);
void accmem_slab_set_pending(struct accmem_context *ctx,
			     struct accmem_buffer *buf, bool pending);
void accmem_slab_set_cached(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool cached);
bool accmem_slab_is_cached(const struct accmem_buffer *buf);
void accmem_slab_reap(struct accmem_context *ctx);
u64 accmem_slab_room(struct accmem_context *ctx,
		     const struct accmem_carveout *cv, u64 *largest);

/* buffer.c */
struct accmem_buffer *accmem_buffer_create(struct accmem_context *ctx,
					   struct accmem_carveout *cv,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout);
struct accmem_memory *accmem_buffer_prepare(struct accmem_context *ctx);
struct accmem_buffer *accmem_buffer_accept(struct accmem_context *ctx,
					   struct accmem_memory *mem,
					   const struct accmem_alloc *req,
					   const struct accmem_layout *layout,
					   bool dirty);
void accmem_buffer_remove(struct accmem_context *ctx,
			  struct accmem_buffer *buf);
bool accmem_buffer_shed(struct accmem_buffer *buf);
void accmem_buffer_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
void accmem_buffer_set_pending(struct accmem_context *ctx,
			       struct accmem_buffer *buf, bool pending);
struct accmem_memory *accmem_buffer_reach(struct accmem_context *ctx,
					  u64 address);

/* cache.c */
struct accmem_buffer *accmem_cache_put(struct accmem_context *ctx,
				       struct accmem_buffer *buf);
struct accmem_buffer *accmem_cache_take(struct accmem_context *ctx,
					struct accmem_carveout *cv,
					const struct accmem_alloc *req,
					const struct accmem_layout *layout);
unsigned int accmem_cache_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv);

/* context.c */
struct accmem_context *accmem_context_open(struct accmem_device *dev);
struct accmem_context *accmem_context_of(struct accmem_account *account);
struct accmem_context *accmem_context_next(struct xarray *accounts,
					   unsigned long *id);
void accmem_context_put(struct accmem_context *ctx);

/* close.c */
void accmem_context_end(struct accmem_context *ctx);

/* reclaim.c */
int accmem_reclaim_retry(struct accmem_context *ctx, struct accmem_carveout *cv,
			 u64 size, int (*take)(void *arg), void *arg);
void accmem_reclaim_end(struct accmem_context *ctx);
void accmem_reclaim_drain(struct xarray *accounts);
void accmem_reclaim_addresses(struct accmem_context *ctx,
			      const struct accmem_carveout *cv);

/* alloc.c */
int accmem_alloc_check(struct accmem_context *ctx,
		       const struct accmem_alloc *req);
struct accmem_buffer *accmem_alloc(struct accmem_context *ctx,
				   const struct accmem_alloc *req,
				   struct accmem_stream *stream);
struct accmem_buffer *accmem_alloc_try(struct accmem_context *ctx,
				       const struct accmem_alloc *req,
				       struct accmem_stream *stream);
void accmem_alloc_ended(struct accmem_context *ctx,
			const struct accmem_alloc *req,
			const struct accmem_buffer *buf);
u32 accmem_alloc_carveouts(struct accmem_context *ctx,
			   const struct accmem_alloc *req);
void accmem_alloc_count_failure(struct accmem_context *ctx,
				const struct accmem_alloc *req);
int accmem_alloc_check_fixed(struct accmem_context *ctx,
			     const struct accmem_carveout *cv,
			     const struct accmem_alloc *req,
			     const struct accmem_layout *layout);
int accmem_alloc_need(const struct accmem_carveout *cv,
		      const struct accmem_alloc *req,
		      struct accmem_layout *layout);
u32 accmem_alloc_gift_layout(struct accmem_context *ctx,
			     const struct accmem_alloc *req, u32 carveouts,
			     struct accmem_layout *layout);
void accmem_alloc_publish(struct accmem_context *ctx,
			  struct accmem_buffer *buf);
int accmem_alloc_lay_out(const struct accmem_carveout *cv,
			 const struct accmem_alloc *req, u32 page_policy,
			 struct accmem_layout *layout);

/* free.c */
void accmem_alloc_discard(struct accmem_context *ctx,
			  struct accmem_buffer *buf);
int accmem_free(struct accmem_context *ctx, u64 address,
		const struct accmem_gate *gate);
struct accmem_buffer *accmem_alloc_find(struct accmem_context *ctx,
					u64 address);
void accmem_alloc_replace(struct accmem_context *ctx, struct accmem_buffer *old,
			  struct accmem_buffer *fresh);

/* growth.c */
#define ACCMEM_NO_ROOM (-EXFULL) /* not in place: no error of a call */

int accmem_growth_place(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 size);
int accmem_growth_make(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u32 page_size, bool insists, u64 *size);

/* realloc.c */
/**
 * struct accmem_resize - a REALLOC in progress
 * @buf: the buffer, as it is found
 * @fresh: what takes its place; NULL where it is resized in place
 * @layout: what it becomes
 * @length: bytes asked for
 * @carveouts: that are asked for memory: bit i for carveout i
 * @insists: in place, or not at all
 * @old_size: bytes of its memory when the call began
 * @copied: bytes
 */
struct accmem_resize {
	struct accmem_buffer *buf;
	struct accmem_buffer *fresh;
	struct accmem_layout layout;
	u64 length;
	u32 carveouts;
	bool insists;
	u64 old_size;
	u64 copied;
};

int accmem_realloc_prepare(struct accmem_context *ctx,
			   const struct accmem_realloc *req,
			   struct accmem_resize *r);
void accmem_realloc_describe(const struct accmem_resize *r,
			     struct accmem_realloc *req);
int accmem_realloc_commit(struct accmem_context *ctx, struct accmem_resize *r);
void accmem_realloc_cancel(struct accmem_context *ctx, struct accmem_resize *r);
/* wait.c */
struct accmem_buffer *accmem_alloc_wait(struct accmem_context *ctx,
					const struct accmem_alloc *req,
					struct accmem_stream *stream);

/* shrink.c */
void accmem_shrink_end(struct accmem_context *ctx);
void accmem_shrink_tell(struct accmem_context *ctx);
int accmem_shrink(struct accmem_context *ctx, struct accmem_shrink *req);
void accmem_shrink_show(struct seq_file *m, struct accmem_context *ctx);
__poll_t accmem_shrink_poll(struct file *file, struct poll_table_struct *table);

/* access.c */
int accmem_access(struct accmem_context *ctx, struct accmem_access *req);
int accmem_prefetch(struct accmem_context *ctx,
		    const struct accmem_prefetch *req);
int accmem_advise(struct accmem_context *ctx, const struct accmem_advise *req);

/* usage.c */
void accmem_usage_space(struct accmem_context *ctx, u32 carveouts,
			u64 *free_bytes, u64 *largest_run);
u64 accmem_usage_longest(struct accmem_carveout *cv, u64 account);
u64 accmem_usage_charged(struct accmem_context *ctx);

static inline struct accmem_holding *
accmem_holding_of(struct accmem_context *ctx, const struct accmem_carveout *cv)
{
	return &ctx->holdings[cv->index];
}

/* @bytes more, or fewer, are kept that are free to all who ask; the lock is held */
static inline void accmem_holding_count_cached(struct accmem_context *ctx,
					       struct accmem_carveout *cv,
					       s64 bytes)
{
	struct accmem_holding *h = accmem_holding_of(ctx, cv);

	lockdep_assert_held(&ctx->lock);
	WRITE_ONCE(h->cached_bytes, h->cached_bytes + bytes);
	accmem_count_cached(cv, bytes);
}

/* the first device address that is not its own */
static inline u64 accmem_place_end(const struct accmem_place *place)
{
	return place->start + place->size;
}

static inline struct accmem_memory *
accmem_buffer_memory(const struct accmem_buffer *buf)
{
	return buf->place->memory;
}

static inline struct accmem_carveout *
accmem_buffer_carveout(const struct accmem_buffer *buf)
{
	return accmem_buffer_memory(buf)->cv;
}

static inline void accmem_context_get(struct accmem_context *ctx)
{
	kref_get(&ctx->refs);
}

/* the flags that decide what a buffer is */
static inline u32 accmem_alloc_flags(const struct accmem_alloc *req)
{
	return req->flags & ~(ACCMEM_ALLOC_STREAM | ACCMEM_ALLOC_WAIT);
}

/* With mapped translation, addresses can be had before there is memory. */
static inline u64 accmem_carveout_addresses(const struct accmem_carveout *cv,
					    u64 footprint, u64 reserve)
{
	if (cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		return footprint;
	return max(footprint, round_up(reserve, ACCMEM_GRANULE));
}

/* would a request, with its layout, have led to a buffer like this one of @mem? */
static inline bool accmem_buffer_fits(const struct accmem_buffer *buf,
				      const struct accmem_memory *mem,
				      const struct accmem_carveout *cv,
				      const struct accmem_alloc *req,
				      const struct accmem_layout *layout)
{
	return buf->layout.footprint == layout->footprint &&
	       buf->layout.alignment == layout->alignment &&
	       buf->layout.page_size == layout->page_size &&
	       buf->layout.small == layout->small &&
	       buf->page_policy == req->page_policy &&
	       buf->flags == accmem_alloc_flags(req) &&
	       buf->reserve == req->reserve && mem->cv == cv &&
	       mem->cache_mode == req->cache_mode;
}

/* Nobody is told of a REALLOC in progress; under the context's lock. */
static inline unsigned int
accmem_buffer_nr_runs(const struct accmem_buffer *buf)
{
	const struct accmem_memory *mem = accmem_buffer_memory(buf);

	return buf->resizing ? mem->nr_runs_before : mem->nr_runs;
}

/* where a mapping of a buffer begins in its context's address_space */
static inline u64 accmem_mmap_offset(const struct accmem_device *dev,
				     u64 address)
{
	return round_down(address - dev->address_base, ACCMEM_GRANULE);
}

static inline u64 accmem_buffer_mmap_offset(const struct accmem_buffer *buf)
{
	return accmem_mmap_offset(accmem_buffer_memory(buf)->account->dev,
				  buf->address);
}

#endif /* ACCMEM_CONTEXT_H */
