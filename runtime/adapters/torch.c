// SPDX-License-Identifier: MIT
/*
 * PyTorch's pluggable allocator: a pool for each device that is used, which stays
 * until the process ends, since tensors may outlive anything that could end it.
 *
 * The linker gives two functions the names that PyTorch is told, alloc and free. So
 * nothing here may call the C library's free().
 *
 * Locking: accmem_torch_lock() for allocations of a device that has a memory fraction.
 * Else none. Of two threads that open a device at a time, one closes it again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "torch.h"

static struct accmem_pool *_Atomic torch_pools[ACCMEM_TORCH_DEVICES];
static struct accmem_streams *_Atomic torch_streams[ACCMEM_TORCH_DEVICES];
static atomic_uint_fast64_t torch_bad_frees;
/* 0 for no limit, else the bytes that may be allocated, plus 1 */
static atomic_uint_fast64_t torch_limits[ACCMEM_TORCH_DEVICES];

/* The pool of a device, or NULL for one that has not been used. */
static struct accmem_pool *torch_find(int device)
{
	return device < 0 || device >= ACCMEM_TORCH_DEVICES ?
		       NULL :
		       atomic_load(&torch_pools[device]);
}

static int torch_open(int device)
{
	struct accmem_pool *pool, *other = NULL;
	struct accmem_context *ctx;
	char path[32];
	int ret;

	snprintf(path, sizeof(path), "/dev/accmem%d", device);
	ret = accmem_open(device ? path : NULL, &ctx);
	if (ret)
		return ret;
	ret = accmem_pool_create(ctx, NULL, &pool);
	if (!ret &&
	    atomic_compare_exchange_strong(&torch_pools[device], &other, pool))
		return 0;
	if (!ret)
		accmem_pool_destroy(pool);
	accmem_close(ctx);
	return ret;
}

struct accmem_pool *accmem_torch_pool(int device)
{
	struct accmem_pool *pool = torch_find(device);

	if (pool)
		return pool;
	if (device >= 0 && device < ACCMEM_TORCH_DEVICES)
		torch_open(device);
	else
		accmem_set_last_error("device %d: the last one is %d", device,
				      ACCMEM_TORCH_DEVICES - 1);
	return torch_find(device);
}

struct accmem_streams *accmem_torch_streams(int device)
{
	struct accmem_pool *pool = accmem_torch_pool(device);
	struct accmem_streams *streams, *other = NULL;
	int ret;

	if (!pool)
		return NULL;
	streams = atomic_load(&torch_streams[device]);
	if (streams)
		return streams;
	ret = accmem_streams_create(accmem_pool_context(pool), &streams);
	if (ret) {
		accmem_set_last_error("streams of device %d: %s", device,
				      strerror(-ret));
		return NULL;
	}
	if (atomic_compare_exchange_strong(&torch_streams[device], &other,
					   streams))
		return streams;
	accmem_streams_destroy(streams);
	return other;
}

int accmem_torch_device(const struct accmem_pool *pool)
{
	int device = ACCMEM_TORCH_DEVICES;

	while (device-- && atomic_load(&torch_pools[device]) != pool)
		;
	return device;
}

/* Sum up the memory of all carveouts. */
static int torch_capacity(struct accmem_pool *pool, uint64_t *bytes)
{
	struct accmem_info info = { .nr_carveouts = 1 };
	uint32_t i;
	int ret;

	*bytes = 0;
	for (i = 0; i < info.nr_carveouts; i++) {
		ret = accmem_get_info(accmem_pool_context(pool), i, &info);
		if (ret)
			return ret;
		*bytes += info.capacity;
	}
	return 0;
}

int accmem_torch_set_memory_fraction(double fraction, int device)
{
	struct accmem_pool *pool = accmem_torch_pool(device);
	uint64_t capacity;
	int ret;

	if (!pool)
		return -ENODEV;
	ret = torch_capacity(pool, &capacity);
	/* no comparison is true for what is not a number */
	if (!ret && !(fraction >= 0 && fraction <= 1))
		ret = -EINVAL;
	if (ret) {
		accmem_set_last_error("memory fraction %g of device %d: %s",
				      fraction, device, strerror(-ret));
		return ret;
	}
	atomic_store(&torch_limits[device],
		     fraction < 1 ? (uint64_t)(fraction * capacity) + 1 : 0);
	return 0;
}

static int torch_over_limit(uint64_t length, int device, uint64_t limit)
{
	accmem_set_last_error("allocation of %" PRIu64
			      " bytes on device %d: the fraction is %" PRIu64,
			      length, device, limit);
	return -EDQUOT;
}

/* The lock keeps two threads from exceeding the limit together. */
static int torch_allocate_within(uint64_t limit, int device,
				 struct accmem_pool_request *req)
{
	struct accmem_pool *pool = torch_find(device);
	struct accmem_pool_stats stats;
	int ret = accmem_torch_lock();

	if (ret)
		return ret;
	accmem_pool_get_stats(pool, &stats);
	ret = stats.live_bytes + req->length > limit ?
		      torch_over_limit(req->length, device, limit) :
		      accmem_pool_allocate(pool, req);
	accmem_torch_unlock();
	return ret;
}

static int torch_allocate(int device, struct accmem_pool_request *req)
{
	uint64_t limit = atomic_load(&torch_limits[device]);

	return limit ? torch_allocate_within(limit - 1, device, req) :
		       accmem_pool_allocate(torch_find(device), req);
}

int accmem_torch_try(ssize_t size, int device, void *stream, void **pointer)
{
	struct accmem_pool_request req = { .length = size, .mapped = 1 };
	struct accmem_streams *streams;
	int ret;

	*pointer = NULL;
	if (size <= 0) {
		accmem_set_last_error("device %d: a length of %zd bytes",
				      device, size);
		return size ? -EINVAL : 0;
	}
	streams = accmem_torch_streams(device);
	if (!streams)
		return -ENODEV;
	req.on_stream = !accmem_streams_find(streams, stream, &req.stream);
	accmem_torch_release_retired(false);
	ret = torch_allocate(device, &req);
	if (ret && accmem_torch_release_retired(true))
		ret = torch_allocate(device, &req);
	if (!ret)
		*pointer = req.pointer;
	return ret;
}

void *accmem_torch_alloc(ssize_t size, int device, void *stream)
{
	void *pointer;

	accmem_torch_try(size, device, stream, &pointer);
	return pointer;
}

void *accmem_torch_base_alloc(void *pointer, size_t *size)
{
	struct accmem_pool_block block;

	if (accmem_pool_find(pointer, &block) ||
	    accmem_torch_device(block.pool) < 0) {
		accmem_set_last_error("base of %p: no allocation", pointer);
		return NULL;
	}
	if (size)
		*size = block.length;
	return block.pointer;
}

/* What cannot wait for its stream, for lack of a descriptor, stays allocated. */
static int torch_release(int device, void *pointer, void *handle)
{
	struct accmem_pool *pool = torch_find(device);
	struct accmem_streams *streams;
	uint64_t position;
	int stream, ret;

	if (!pool)
		return -ENODEV;
	streams = accmem_torch_streams(device);
	if (!streams)
		return -ENOMEM;
	ret = accmem_pool_lookup(pool, pointer, NULL);
	if (ret)
		return ret;
	ret = accmem_torch_retire(streams, pointer, handle);
	if (ret != -ENOENT)
		return ret;
	ret = accmem_streams_locate(streams, handle, &stream, &position);
	/* the streams of a device that has gone have ended */
	if (ret == -ENODEV || (!ret && stream < 0))
		return accmem_pool_release(pool, pointer);
	if (ret)
		return ret;
	return accmem_pool_release_at(pool, pointer, stream, position);
}

void accmem_torch_free(void *pointer, ssize_t size, int device, void *stream)
{
	int ret;

	(void)size;
	if (!pointer)
		return;
	ret = torch_release(device, pointer, stream);
	if (!ret)
		return;
	atomic_fetch_add(&torch_bad_frees, 1);
	accmem_set_last_error("free of %p on device %d: %s", pointer, device,
			      strerror(-ret));
}

uint64_t accmem_torch_trim(int device, uint64_t keep_bytes)
{
	struct accmem_pool *pool = torch_find(device);

	accmem_torch_release_retired(true);
	return pool ? accmem_pool_trim(pool, keep_bytes) : 0;
}

void accmem_torch_empty_cache(void)
{
	int device;

	for (device = 0; device < ACCMEM_TORCH_DEVICES; device++)
		accmem_torch_trim(device, 0);
}

int accmem_torch_get_stats(int device, struct accmem_pool_stats *stats)
{
	struct accmem_pool *pool = torch_find(device);

	if (!pool)
		return -ENODEV;
	accmem_pool_get_stats(pool, stats);
	return 0;
}

void accmem_torch_reset_peaks(int device)
{
	struct accmem_pool *pool = torch_find(device);

	if (pool)
		accmem_pool_reset_peaks(pool);
}

uint64_t accmem_torch_bad_frees(void)
{
	return atomic_load(&torch_bad_frees);
}
