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
#include "memory/memory.h"
#include "stream/stream.h"
#include "types/buffer_types.h"
#include "types/context_types.h"

#define ACCMEM_NAMES_END (~0ull) /* no device address: of accmem_name_next() */
#define ACCMEM_CACHE_BUFFERS 16u /* freed ones that a context keeps, at most */
#define ACCMEM_AHEAD_BUFFERS 8u /* that something is taken ahead of, likewise */
#define ACCMEM_MANY 64u /* buffers made, or freed, together */

struct accmem_buffer;
struct accmem_context;
struct accmem_place;
struct accmem_tmem;
struct seq_file;

/* places.c */
int accmem_place_insert(struct accmem_context *ctx, struct accmem_place *place,
			u64 alignment);
int accmem_place_check(struct accmem_context *ctx, u64 start, u64 size);
void accmem_place_insert_at(struct accmem_context *ctx,
			    struct accmem_place *place);
int accmem_place_resize(struct accmem_context *ctx, struct accmem_place *place,
			u64 size);
void accmem_place_cut(struct accmem_context *ctx, struct accmem_place *place,
		      struct accmem_place *rest, u64 size);
void accmem_place_trim_start(struct accmem_context *ctx,
			     struct accmem_place *place,
			     struct accmem_place **above);
void accmem_place_trim_end(struct accmem_context *ctx,
			   struct accmem_place *place,
			   struct accmem_place **above);
void accmem_place_erase_next(struct accmem_context *ctx,
			     struct accmem_place *place,
			     struct accmem_place **above);
void accmem_place_erase_end(struct accmem_place *above);
void accmem_place_erase(struct accmem_context *ctx, struct accmem_place *place);
struct accmem_place *accmem_place_above(struct accmem_context *ctx,
					u64 address);
struct accmem_place *accmem_place_find(struct accmem_context *ctx, u64 address);
struct accmem_place *accmem_place_next(const struct accmem_place *place);

/* names.c */
void accmem_name_publish(struct accmem_context *ctx, struct accmem_buffer *buf);
void accmem_name_unpublish(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
void accmem_name_hide(struct accmem_context *ctx, struct accmem_buffer *buf,
		      bool hidden);
struct accmem_buffer *accmem_name_find(struct accmem_context *ctx, u64 address);
struct accmem_buffer *accmem_name_find_near(struct accmem_context *ctx,
					    struct accmem_buffer *near,
					    u64 address);
struct accmem_buffer *accmem_name_next(struct accmem_context *ctx,
				       u64 *address);

/* slab.c */
void accmem_slab_shrink(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 footprint);
struct accmem_buffer *accmem_slab_create(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 const struct accmem_layout *layout);
void accmem_slab_set_cached(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool cached);
bool accmem_slab_is_cached(const struct accmem_buffer *buf);
void accmem_slab_reap(struct accmem_context *ctx);
u64 accmem_slab_room(struct accmem_context *ctx,
		     const struct accmem_carveout *cv, u64 *largest);

/* row.c */
#define ACCMEM_ROW_MAX 16u /* buffers in a row */

int accmem_row_create(struct accmem_context *ctx, struct accmem_carveout *cv,
		      const struct accmem_alloc *req,
		      const struct accmem_layout *layout,
		      struct accmem_buffer **bufs, unsigned int nr);
bool accmem_row_extract(struct accmem_context *ctx, struct accmem_buffer *buf,
			struct accmem_memory *mem, struct accmem_buffer *to);
void accmem_row_destroy_empty(struct accmem_buffer *buf);

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
void accmem_buffer_remove_all(struct accmem_context *ctx,
			      struct accmem_buffer **bufs, unsigned int nr);
void accmem_buffer_destroy_all(struct accmem_context *ctx,
			       struct accmem_buffer **bufs, unsigned int nr);
int accmem_buffer_extract(struct accmem_context *ctx, u64 address);
struct accmem_memory *accmem_buffer_reach(struct accmem_context *ctx,
					  u64 address);

/* ahead.c */
void accmem_ahead_take(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u64 step);
bool accmem_ahead_use(struct accmem_context *ctx, struct accmem_memory *mem,
		      u64 size, u64 page_size);
void accmem_ahead_drop(struct accmem_context *ctx, struct accmem_memory *mem);
unsigned int accmem_ahead_drain(struct accmem_context *ctx,
				const struct accmem_carveout *cv);

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
unsigned int accmem_alloc_row(struct accmem_context *ctx,
			      const struct accmem_alloc *req,
			      struct accmem_buffer **bufs, unsigned int nr);
void accmem_alloc_publish(struct accmem_context *ctx,
			  struct accmem_buffer **bufs, unsigned int nr);
int accmem_alloc_lay_out(const struct accmem_carveout *cv,
			 const struct accmem_alloc *req, u32 page_policy,
			 struct accmem_layout *layout);

/* free.c */
void accmem_alloc_discard(struct accmem_context *ctx,
			  struct accmem_buffer **bufs, unsigned int nr);
int accmem_free(struct accmem_context *ctx, u64 address,
		const struct accmem_gate *gate);
void accmem_free_each(struct accmem_context *ctx, const u64 *addresses,
		      int *results, unsigned int nr);
int accmem_free_all(struct accmem_context *ctx, const u64 *addresses,
		    struct accmem_buffer **bufs, unsigned int nr,
		    unsigned int *at_fault);
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

/* batch.c */
int accmem_batch(struct accmem_context *ctx, struct accmem_batch *req);

/* usage.c */
void accmem_usage_space(struct accmem_context *ctx, u32 carveouts,
			u64 *free_bytes, u64 *largest_run);
u64 accmem_usage_longest(struct accmem_carveout *cv, u64 account);
u64 accmem_usage_charged(struct accmem_context *ctx);

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
