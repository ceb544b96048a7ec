// SPDX-License-Identifier: MIT
/*
 * Direct allocations: each is a buffer of the driver.
 *
 * All allocations of a pool with ACCMEM_POOL_DIRECT are direct. In other pools these are
 * direct: resizable allocations, those above POOL_LARGE_MAX, and those with options that
 * the pieces of one region cannot have.
 *
 * Locking: accmem_pool.lock protects the tree of allocations. The lock is held over FREE
 * and the removal from the tree, so that the next owner of the address inserts it later.
 * It is not held over ALLOC, which may wait for memory that other threads release.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/export.h"
#include "core/stream.h"
#include "pool/base.h"
#include "pool/cache.h"
#include "pool/direct.h"
#include "pool/direct_tree.h"
#include "pool/error.h"
#include "pool/region.h"

#define ROUNDING (ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32)
#define NORMAL_PAGE 4096u

static int insert(struct accmem_pool *pool, struct pool_direct *d)
{
	uint64_t first = (d->block.address - pool->base) >> POOL_PAGE_SHIFT;
	uint64_t pages = (d->extent + POOL_PAGE - 1) >> POOL_PAGE_SHIFT;

	accmem_pool_region_drop_inherited(pool, first, pages);
	accmem_pool_direct_drop_range(pool, d->block.address, d->extent);
	return accmem_pool_direct_insert(pool, d);
}

static void count_bytes(struct accmem_pool *pool, uint64_t more, uint64_t less,
			uint64_t more_taken, uint64_t less_taken)
{
	accmem_pool_count_live(pool, more - less);
	accmem_pool_count_reserved(pool, more_taken - less_taken);
}

/* An alignment of a page ensures that an exportable buffer shares no page with others. */
static uint64_t alignment_of(const struct accmem_pool_request *req)
{
	const uint64_t alignment = req->alignment;

	return req->exportable && !(alignment & (alignment - 1)) &&
			       alignment < POOL_PAGE ?
		       POOL_PAGE :
		       alignment;
}

static int call_alloc(struct accmem_pool *pool,
		      const struct accmem_pool_request *req,
		      struct accmem_alloc *alloc)
{
	*alloc = (struct accmem_alloc){
		.flags = req->flags,
		.length = req->length,
		.alignment = alignment_of(req),
		.page_policy = req->page_policy,
		.cache_mode = req->cache_mode,
		.carveout = req->carveout,
		.kind = req->kind,
		.reserve = req->reserve,
		.deadline_ns = req->deadline_ns,
	};
	if (req->on_stream)
		return accmem_allocate_on_stream(pool->ctx, alloc, req->stream);
	return accmem_allocate_now(pool->ctx, alloc);
}

/* Memory of kind host or shared belongs to the CPU as well, and is always mapped. */
static int map_if_needed(struct accmem_pool *pool, struct pool_direct *d,
			 bool needed)
{
	void *pointer;
	int ret;

	if (!needed && d->block.kind == ACCMEM_KIND_DEVICE)
		return 0;
	ret = accmem_map(pool->ctx, d->block.address, PROT_READ | PROT_WRITE,
			 &pointer);
	d->mapped = !ret;
	return ret;
}

static void describe(struct accmem_pool *pool, struct pool_direct *d,
		     const struct accmem_pool_request *req,
		     const struct accmem_alloc *alloc)
{
	d->rounded = req->flags & ROUNDING;
	d->requested = req->length;
	d->reserve = req->reserve;
	d->exportable = req->exportable;
	d->footprint = alloc->footprint;
	d->extent = alloc->footprint > alloc->usable ? alloc->footprint :
						       alloc->usable;
	d->block = (struct accmem_pool_block){
		.pointer = accmem_pool_pointer(pool, alloc->address),
		.address = alloc->address,
		.length = d->rounded ? alloc->usable : req->length,
		.usable = alloc->usable,
		.flags = req->flags & ACCMEM_ALLOC_RESIZABLE,
		.kind = req->kind,
		.carveout = alloc->carveouts ?
				    (uint32_t)__builtin_ctz(alloc->carveouts) :
				    req->carveout,
		.page_size = alloc->page_size ? alloc->page_size : NORMAL_PAGE,
		.pool = pool,
	};
}

static int publish(struct accmem_pool *pool, struct pool_direct *d)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	accmem_pool_cache_sync_own(pool);
	ret = insert(pool, d);
	pool->stats.kernel_calls++;
	if (!ret) {
		count_bytes(pool, d->block.usable, 0, d->footprint, 0);
		pool->stats.allocations++;
		pool->stats.kernel_buffers++;
	}
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

int accmem_pool_direct_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req)
{
	struct accmem_alloc alloc;
	struct pool_direct *d;
	int ret;

	if (req->flags & ~POOL_ALLOC_FLAGS || req->alignment > pool->granted)
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	ret = call_alloc(pool, req, &alloc);
	if (ret)
		goto free_record;
	describe(pool, d, req, &alloc);
	/* an address outside of the window has no pointer */
	ret = d->block.pointer ? map_if_needed(pool, d, req->mapped) : -ENOMEM;
	if (!ret)
		ret = publish(pool, d);
	if (ret)
		goto free_buffer;

	req->pointer = accmem_pool_pointer(pool, alloc.address);
	req->address = alloc.address;
	req->usable = alloc.usable;
	req->position = alloc.position;
	return 0;

free_buffer:
	accmem_release_now(pool->ctx, alloc.address);
free_record:
	free(d);
	return ret;
}

int accmem_pool_direct_probe(struct accmem_pool *pool,
			     struct accmem_pool_request *req)
{
	struct accmem_alloc alloc;
	int ret = call_alloc(pool, req, &alloc);

	if (!ret)
		accmem_release_now(pool->ctx, alloc.address);
	return ret;
}

/* The record of an imported buffer. */
static int describe_import(struct accmem_pool *pool, struct pool_direct *d,
			   uint64_t address)
{
	struct accmem_query query;
	int ret = accmem_query_address(pool->ctx, address, &query);

	if (ret)
		return ret;
	d->extent = query.footprint;
	d->footprint = query.footprint;
	d->block = (struct accmem_pool_block){
		.pointer = accmem_pool_pointer(pool, address),
		.address = address,
		.length = query.usable,
		.usable = query.usable,
		.kind = query.kind,
		.carveout = query.carveout,
		.page_size = query.page_size ? query.page_size : NORMAL_PAGE,
		.pool = pool,
	};
	return d->block.pointer ? map_if_needed(pool, d, false) : -ENOMEM;
}

int accmem_pool_direct_import(struct accmem_pool *pool, int fd, uint64_t offset,
			      uint64_t length, struct accmem_pool_block *block)
{
	struct pool_direct *d = calloc(1, sizeof(*d));
	uint64_t address;
	int ret;

	if (!d)
		return -ENOMEM;
	ret = accmem_import_now(pool->ctx, fd, offset, length, &address);
	if (ret)
		goto free_record;
	ret = describe_import(pool, d, address);
	*block = d->block;
	if (!ret)
		ret = publish(pool, d);
	if (ret)
		goto free_buffer;
	return 0;

free_buffer:
	accmem_release_now(pool->ctx, address);
free_record:
	free(d);
	return ret;
}

/* No thread can release the allocation before the export has a reference to its memory. */
int accmem_pool_direct_export(struct accmem_pool *pool, const void *pointer,
			      uint64_t length, uint32_t flags, int *fd)
{
	const struct pool_direct *d;
	int ret = -ENOENT;

	pthread_mutex_lock(&pool->lock);
	d = accmem_pool_direct_find(pool, pointer);
	if (d)
		ret = d->exportable && !d->inherited ? 0 : -EPERM;
	if (!ret)
		ret = accmem_export_now(pool->ctx,
					accmem_pool_address(pool, pointer),
					length, flags, fd);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

static int release_locked(struct accmem_pool *pool, const void *pointer,
			  struct accmem_free *req)
{
	struct pool_direct *d = accmem_pool_direct_find(pool, pointer);
	int ret = 0;

	if (!d)
		return -ENOENT;
	if (d->block.pointer != pointer)
		return -EINVAL;
	if (!d->inherited) {
		req->size = sizeof(*req);
		req->address = d->block.address;
		ret = accmem_free_unmapped(pool->ctx, req);
		pool->stats.kernel_calls++;
		if (ret && ret != -ENOENT)
			return ret;
		count_bytes(pool, 0, d->block.usable, 0, d->footprint);
		pool->stats.kernel_buffers--;
	}
	pool->stats.releases++;
	accmem_pool_direct_drop(pool, d);
	accmem_pool_cache_sync_own(pool);
	return ret;
}

int accmem_pool_direct_release(struct accmem_pool *pool, void *pointer,
			       struct accmem_free *req)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = release_locked(pool, pointer, req);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

static struct pool_direct *find_inherited(struct accmem_pool *pool,
					  const void *pointer)
{
	struct pool_direct *d = accmem_pool_direct_find(pool, pointer);

	return d && d->inherited && d->block.pointer == pointer ? d : NULL;
}

bool accmem_pool_direct_is_inherited(struct accmem_pool *pool,
				     const void *pointer)
{
	bool yes;

	pthread_mutex_lock(&pool->lock);
	yes = find_inherited(pool, pointer);
	pthread_mutex_unlock(&pool->lock);
	return yes;
}

bool accmem_pool_direct_drop_inherited(struct accmem_pool *pool,
				       const void *pointer)
{
	struct pool_direct *d;

	pthread_mutex_lock(&pool->lock);
	d = find_inherited(pool, pointer);
	if (d)
		accmem_pool_direct_drop(pool, d);
	pthread_mutex_unlock(&pool->lock);
	return d;
}

/* A buffer that was moved may be in another carveout. */
static uint32_t carveout_of(struct accmem_pool *pool,
			    const struct pool_direct *d,
			    const struct accmem_realloc *req)
{
	struct accmem_query query;

	if (req->address == d->block.address ||
	    accmem_query_address(pool->ctx, req->address, &query))
		return d->block.carveout;
	pool->stats.kernel_calls++;
	return query.carveout;
}

/*
 * The driver has resized the buffer of @d: update the record. insert() cannot fail, since
 * tsearch() reuses the memory of the node that is removed.
 */
static int update_record(struct accmem_pool *pool, struct pool_direct *d,
			 const struct accmem_realloc *req, size_t length)
{
	count_bytes(pool, req->usable, d->block.usable, req->footprint,
		    d->footprint);
	accmem_pool_direct_remove(pool, d);
	d->block.carveout = carveout_of(pool, d, req);
	d->block.address = req->address;
	d->block.pointer = accmem_pool_pointer(pool, req->address);
	d->requested = length;
	d->block.length = d->rounded ? req->usable : length;
	d->block.usable = req->usable;
	d->block.page_size = req->page_size ? req->page_size : NORMAL_PAGE;
	d->footprint = req->footprint;
	d->extent = req->footprint > req->usable ? req->footprint : req->usable;
	return insert(pool, d);
}

/*
 * Map the new part of an allocation that was mapped. If that fails, an allocation that has
 * grown in place gets its old length again. The memory of one that has moved is gone:
 * accmem_pool_map() tries again.
 */
static int map_grown(struct accmem_pool *pool, struct pool_direct *d,
		     uint64_t address, size_t length)
{
	struct accmem_realloc back = { .address = address, .length = length };
	int ret = map_if_needed(pool, d, true);

	if (!ret || d->block.address != address ||
	    accmem_reallocate_now(pool->ctx, &back))
		return 0;
	pool->stats.kernel_calls++;
	update_record(pool, d, &back, length);
	map_if_needed(pool, d, true);
	return ret;
}

static int reallocate_locked(struct accmem_pool *pool, void **pointer,
			     size_t length)
{
	struct pool_direct *d = accmem_pool_direct_find(pool, *pointer);
	struct accmem_realloc req = { .length = length };
	uint64_t address, requested;
	int ret;

	if (!d)
		return -ENOENT;
	if (d->block.pointer != *pointer)
		return -EINVAL;
	if (d->inherited)
		return -EPERM;
	address = d->block.address;
	requested = d->requested;
	req.address = address;
	ret = accmem_reallocate_now(pool->ctx, &req);
	pool->stats.kernel_calls++;
	if (ret)
		return ret;
	pool->stats.copied_bytes += req.copied;
	ret = update_record(pool, d, &req, length);
	if (!ret && d->mapped)
		ret = map_grown(pool, d, address, requested);
	*pointer = d->block.pointer;
	return ret;
}

int accmem_pool_direct_reallocate(struct accmem_pool *pool, void **pointer,
				  size_t length)
{
	int ret;

	pthread_mutex_lock(&pool->lock);
	ret = reallocate_locked(pool, pointer, length);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

int accmem_pool_direct_lookup(struct accmem_pool *pool, const void *pointer,
			      struct accmem_pool_block *block)
{
	struct pool_direct *d;

	pthread_mutex_lock(&pool->lock);
	d = accmem_pool_direct_find(pool, pointer);
	if (d && block)
		*block = d->block;
	pthread_mutex_unlock(&pool->lock);
	return d ? 0 : -ENOENT;
}

int accmem_pool_direct_map(struct accmem_pool *pool, const void *pointer)
{
	struct pool_direct *d;
	int ret = -ENOENT;

	pthread_mutex_lock(&pool->lock);
	d = accmem_pool_direct_find(pool, pointer);
	if (d)
		ret = d->mapped ? 0 : map_if_needed(pool, d, true);
	pthread_mutex_unlock(&pool->lock);
	return ret;
}

void accmem_pool_direct_destroy(struct accmem_pool *pool)
{
	struct pool_direct *d;

	while ((d = accmem_pool_direct_find_range(pool, 0, UINT64_MAX))) {
		if (!d->inherited)
			accmem_release_now(pool->ctx, d->block.address);
		accmem_pool_direct_drop(pool, d);
	}
}
