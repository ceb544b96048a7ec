// SPDX-License-Identifier: MIT
/*
 * PyTorch's pluggable allocator: a pool for each device that is used, which stays
 * until the process ends, since tensors may outlive anything that could end it.
 *
 * The linker gives two functions the names that PyTorch is told, alloc and free. So
 * nothing here may call the C library's free().
 *
 * Locking: none. Of two threads that open a device at a time, one closes it again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <accmem_torch.h>

static struct accmem_pool *_Atomic torch_pools[ACCMEM_TORCH_DEVICES];
static struct accmem_streams *_Atomic torch_streams[ACCMEM_TORCH_DEVICES];
static atomic_uint_fast64_t torch_bad_frees;

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
		accmem_set_last_error(
			"device %d: more than %d devices are not supported",
			device, ACCMEM_TORCH_DEVICES);
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

void *accmem_torch_alloc(ssize_t size, int device, void *stream)
{
	struct accmem_pool_request req = { .length = size, .mapped = 1 };
	struct accmem_streams *streams;

	if (size <= 0) {
		accmem_set_last_error(
			"allocation of %zd bytes on device %d: the length is not positive",
			size, device);
		return NULL;
	}
	streams = accmem_torch_streams(device);
	if (!streams)
		return NULL;
	req.on_stream = !accmem_streams_find(streams, stream, &req.stream);
	return accmem_pool_allocate(torch_find(device), &req) ? NULL :
								req.pointer;
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

	return pool ? accmem_pool_trim(pool, keep_bytes) : 0;
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
