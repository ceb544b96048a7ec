// SPDX-License-Identifier: MIT
/*
 * TensorRT's allocator interfaces over a pool.
 *
 * An allocator passes requests to its pool, and applies TensorRT's own rules: about size 0
 * and NULL, alignments and flags, and the addresses that a resizable allocation reserves.
 *
 * Locking: none; the pool and the stream handles have locks of their own.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <accmem_tensorrt.h>

#include "core/call.h"
#include "core/context.h"

#define MIB 1048576ull
#define DEFAULT_RESERVE (128 * MIB)
#define DEFAULT_GROWTH 8
/* A reservation may take this part of the addresses: by default, and at most. */
#define DEFAULT_SHARE 512
#define LARGEST_SHARE 4
/* All default reservations of a context together leave half of the addresses free. */
#define SUM_SHARE 2
/* alignment of cudaMalloc(), and so the most that TensorRT asks for */
#define USUAL_ALIGNMENT 512

/**
 * struct accmem_tensorrt - an allocator, see accmem_tensorrt.h
 * @pool: pool of the allocations
 * @streams: stream handles
 * @flags: ACCMEM_TENSORRT_*
 * @carveout: index of the carveout
 * @reserve: bytes that each resizable allocation reserves, or 0 for the default
 * @default_reserve: least default reservation
 * @most: largest reservation
 * @sum: no default reservation if all reservations would take more than these bytes
 * @own: context, if the allocator owns the context and the pool
 */
struct accmem_tensorrt {
	struct accmem_pool *pool;
	struct accmem_streams *streams;
	uint32_t flags;
	uint32_t carveout;
	uint64_t reserve;
	uint64_t default_reserve;
	uint64_t most;
	uint64_t sum;
	struct accmem_context *own;
};

/*
 * With mapped translation a reservation takes addresses that others could use, but there
 * are many times more addresses than memory. With identity translation it takes none.
 */
static void tensorrt_set_reserve(struct accmem_tensorrt *a,
				 const struct accmem_info *info)
{
	uint64_t share = info->address_span / DEFAULT_SHARE;

	a->most = info->address_span / LARGEST_SHARE;
	a->sum = info->address_span / SUM_SHARE;
	if (info->translation == ACCMEM_TRANSLATION_IDENTITY) {
		share = a->most;
		a->sum = UINT64_MAX;
	}
	a->default_reserve = share < DEFAULT_RESERVE ? share : DEFAULT_RESERVE;
}

static int tensorrt_set_options(struct accmem_tensorrt *a,
				const struct accmem_tensorrt_options *options)
{
	struct accmem_info info;
	int ret;

	if (options) {
		if ((options->size && options->size != sizeof(*options)) ||
		    options->reserved ||
		    options->flags & ~ACCMEM_TENSORRT_FLAGS) {
			accmem_set_last_error("allocator options of %" PRIu32
					      " bytes (known: %zu), flags %#" PRIx32
					      " (known: %#x), reserved %" PRIu32,
					      options->size, sizeof(*options),
					      options->flags,
					      ACCMEM_TENSORRT_FLAGS,
					      options->reserved);
			return -EINVAL;
		}
		a->flags = options->flags;
		a->carveout = options->carveout;
		a->reserve = options->reserve_bytes;
	}
	ret = accmem_read_info(accmem_pool_context(a->pool), a->carveout,
			       &info);
	if (!ret)
		tensorrt_set_reserve(a, &info);
	return ret;
}

/* Set the last error if there is an error. Returns @error. */
static int tensorrt_create_failed(int error)
{
	if (error)
		accmem_set_last_error("a new allocator: %s", strerror(-error));
	return error;
}

int accmem_tensorrt_create(struct accmem_pool *pool,
			   const struct accmem_tensorrt_options *options,
			   struct accmem_tensorrt **allocator)
{
	struct accmem_tensorrt *a = calloc(1, sizeof(*a));
	int ret;

	if (!a)
		return tensorrt_create_failed(-ENOMEM);
	a->pool = pool;
	ret = tensorrt_set_options(a, options);
	if (!ret) {
		ret = accmem_streams_create(accmem_pool_context(pool),
					    &a->streams);
		tensorrt_create_failed(ret);
	}
	if (ret)
		free(a);
	else
		*allocator = a;
	return ret;
}

int accmem_tensorrt_open(const char *path,
			 const struct accmem_tensorrt_options *options,
			 struct accmem_tensorrt **allocator)
{
	struct accmem_context *ctx;
	struct accmem_pool *pool;
	int ret;

	ret = accmem_open(path, &ctx);
	if (ret)
		return ret;
	ret = accmem_pool_create(ctx, NULL, &pool);
	if (ret)
		goto close;
	ret = accmem_tensorrt_create(pool, options, allocator);
	if (ret)
		goto destroy;
	(*allocator)->own = ctx;
	return 0;

destroy:
	accmem_pool_destroy(pool);
close:
	accmem_close(ctx);
	return ret;
}

void accmem_tensorrt_destroy(struct accmem_tensorrt *a)
{
	if (!a)
		return;
	accmem_streams_destroy(a->streams);
	if (a->own) {
		accmem_pool_destroy(a->pool);
		accmem_close(a->own);
	}
	free(a);
}

struct accmem_pool *accmem_tensorrt_pool(const struct accmem_tensorrt *a)
{
	return a->pool;
}

struct accmem_streams *accmem_tensorrt_streams(const struct accmem_tensorrt *a)
{
	return a->streams;
}

static uint64_t tensorrt_at_most(uint64_t bytes, uint64_t most)
{
	return bytes < most ? bytes : most;
}

static uint64_t tensorrt_default_reserve(const struct accmem_tensorrt *a,
					 uint64_t length)
{
	const struct accmem_context *ctx = accmem_pool_context(a->pool);
	uint64_t reserved, wanted;

	if (__builtin_mul_overflow(length, DEFAULT_GROWTH, &wanted))
		wanted = a->most;
	if (wanted < a->default_reserve)
		wanted = a->default_reserve;
	wanted = tensorrt_at_most(wanted, a->most);
	reserved = __atomic_load_n(&ctx->reserved, __ATOMIC_RELAXED);
	return reserved < a->sum && wanted <= a->sum - reserved ? wanted : 0;
}

/* Is there no memory for @length bytes, whatever the reservation is? */
static bool tensorrt_lacks_memory(const struct accmem_tensorrt *a,
				  uint64_t length)
{
	struct accmem_info info;

	return !accmem_sum_info(accmem_pool_context(a->pool), &info) &&
	       !accmem_info_has_room(&info, length);
}

/* If there are not enough addresses, try again with a smaller reservation. */
static int tensorrt_allocate_resizable(struct accmem_tensorrt *a,
				       struct accmem_pool_request *req)
{
	int ret;

	req->flags |= ACCMEM_ALLOC_RESIZABLE;
	if (req->alignment < USUAL_ALIGNMENT)
		req->alignment = USUAL_ALIGNMENT;
	req->reserve = a->reserve ? tensorrt_at_most(a->reserve, a->most) :
				    tensorrt_default_reserve(a, req->length);
	while (req->reserve > req->length) {
		ret = accmem_pool_allocate(a->pool, req);
		if (ret != -ENOMEM)
			return ret;
		if (tensorrt_lacks_memory(a, req->length))
			break;
		req->reserve /= LARGEST_SHARE;
	}
	req->reserve = 0;
	return accmem_pool_allocate(a->pool, req);
}

/* Set the last error, and return false, if TensorRT refuses the request. */
static bool tensorrt_is_valid(uint64_t size, uint64_t alignment, uint32_t flags)
{
	if (!size)
		accmem_set_last_error("allocation of 0 bytes: the length is 0");
	else if (alignment & (alignment - 1))
		accmem_set_last_error("allocation of %" PRIu64
				      " bytes: alignment %" PRIu64
				      " is no power of two",
				      size, alignment);
	else if (flags & ~ACCMEM_TENSORRT_RESIZABLE)
		accmem_set_last_error("allocation of %" PRIu64
				      " bytes: unknown flags %#" PRIx32,
				      size, flags & ~ACCMEM_TENSORRT_RESIZABLE);
	else
		return true;
	return false;
}

static void *tensorrt_allocate(struct accmem_tensorrt *a, uint64_t size,
			       uint64_t alignment, uint32_t flags,
			       const int *stream)
{
	struct accmem_pool_request req = {
		.length = size,
		.alignment = alignment,
		.carveout = a->carveout,
		.mapped = !(a->flags & ACCMEM_TENSORRT_UNMAPPED),
		.on_stream = !!stream,
		.stream = stream ? *stream : 0,
	};
	int ret;

	if (!tensorrt_is_valid(size, alignment, flags))
		return NULL;
	if (flags & ACCMEM_TENSORRT_RESIZABLE)
		ret = tensorrt_allocate_resizable(a, &req);
	else
		ret = accmem_pool_allocate(a->pool, &req);
	return ret ? NULL : req.pointer;
}

void *accmem_tensorrt_allocate(struct accmem_tensorrt *a, uint64_t size,
			       uint64_t alignment, uint32_t flags)
{
	return tensorrt_allocate(a, size, alignment, flags, NULL);
}

/*
 * A resizable allocation keeps its alignment when it moves, and USUAL_ALIGNMENT at least.
 * If the caller claims a larger one, ask the driver whether the allocation has it.
 */
static bool tensorrt_preserves_alignment(struct accmem_tensorrt *a, void *base,
					 uint64_t alignment)
{
	struct accmem_query query;

	if (alignment <= USUAL_ALIGNMENT)
		return true;
	return !accmem_get_query(accmem_pool_context(a->pool),
				 accmem_pool_address(a->pool, base), &query) &&
	       query.alignment >= alignment;
}

void *accmem_tensorrt_reallocate(struct accmem_tensorrt *a, void *base,
				 uint64_t alignment, uint64_t new_size)
{
	const char *reason = NULL;
	void *pointer = base;

	if (alignment & (alignment - 1))
		reason = "no power of two";
	else if (!tensorrt_preserves_alignment(a, base, alignment))
		reason = "more than the allocation has";
	if (reason || new_size != (size_t)new_size) {
		accmem_set_last_error("reallocation of %p to %" PRIu64
				      " bytes, alignment %" PRIu64 ": %s",
				      base, new_size, alignment,
				      reason ? reason : "too many bytes");
		return NULL;
	}
	return accmem_pool_reallocate(a->pool, &pointer, new_size) ? NULL :
								     pointer;
}

bool accmem_tensorrt_deallocate(struct accmem_tensorrt *a, void *memory)
{
	return !memory || !accmem_pool_release(a->pool, memory);
}

void *accmem_tensorrt_allocate_async(struct accmem_tensorrt *a, uint64_t size,
				     uint64_t alignment, uint32_t flags,
				     void *handle)
{
	int stream;

	/* a resizable allocation cannot use pending memory of a stream */
	if (flags & ACCMEM_TENSORRT_RESIZABLE ||
	    accmem_streams_find(a->streams, handle, &stream))
		return tensorrt_allocate(a, size, alignment, flags, NULL);
	return tensorrt_allocate(a, size, alignment, flags, &stream);
}

bool accmem_tensorrt_deallocate_async(struct accmem_tensorrt *a, void *memory,
				      void *handle)
{
	uint64_t position;
	int stream, ret;

	if (!memory)
		return true;
	/* before a stream is opened: the release of such a pointer fails */
	ret = accmem_pool_lookup(a->pool, memory, NULL);
	if (ret) {
		accmem_set_last_error("release of %p: nothing of this pool is there",
				      memory);
		return false;
	}
	ret = accmem_streams_locate(a->streams, handle, &stream, &position);
	/* the end of a device ends its streams */
	if (ret == -ENODEV)
		return !accmem_pool_release(a->pool, memory);
	if (ret) {
		accmem_set_last_error("no stream for the handle %p: %s", handle,
				      strerror(-ret));
		return false;
	}
	if (stream < 0)
		return !accmem_pool_release(a->pool, memory);
	return !accmem_pool_release_at(a->pool, memory, stream, position);
}
