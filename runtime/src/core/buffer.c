// SPDX-License-Identifier: MIT
/*
 * Buffers: the calls that allocate, free and resize a buffer.
 *
 * Each call is an ioctl on the context's file. It also removes the process's mapping of
 * every address range that no longer belongs to the buffer mapped there, so that a stale
 * mapping never shows another buffer.
 *
 * Locking: accmem_context.lock. An unmap and the FREE beside it are one critical section.
 */
#include <errno.h>
#include <inttypes.h>

#include <accmem_pool.h>

#include "core/buffer.h"
#include "core/error.h"
#include "core/internal.h"
#include "core/request_error.h"

static int free_buffer(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_call(ctx, ACCMEM_IOC_FREE, &req);
}

int accmem_allocate_now(struct accmem_context *ctx, struct accmem_alloc *req)
{
	int ret;

	req->size = sizeof(*req);
	ret = accmem_call(ctx, ACCMEM_IOC_ALLOC, req);
	if (ret)
		return ret;

	/*
	 * The range may still have a mapping of an earlier buffer, which
	 * another process or a plain ioctl has freed. A later accmem_map()
	 * would take that mapping for a mapping of the new buffer.
	 */
	pthread_mutex_lock(&ctx->lock);
	ret = accmem_unmap_range(ctx, req->address, req->footprint);
	pthread_mutex_unlock(&ctx->lock);
	if (ret)
		free_buffer(ctx, req->address);
	return ret;
}

int accmem_malloc(struct accmem_context *ctx, uint64_t length,
		  uint64_t *address)
{
	struct accmem_alloc req = { .length = length };
	int ret;

	ret = accmem_allocate_now(ctx, &req);
	if (!ret)
		*address = req.address;
	return accmem_fail_request(ctx, "allocation", &req, 0, ret);
}

/* Unmap before FREE: the driver frees memory only when its last mapping is gone. */
static int unmap_and_free_locked(struct accmem_context *ctx,
				 struct accmem_free *req)
{
	int ret = accmem_unmap_locked(ctx, req->address);

	/* -EINVAL: an address inside a buffer; FREE reports the error */
	if (!ret || ret == -ENOENT || ret == -EINVAL)
		ret = accmem_call(ctx, ACCMEM_IOC_FREE, req);
	return ret;
}

/*
 * FREE before the unmap: a FREE with a stream or a fence may fail, for example with a bad
 * descriptor, and the buffer stays mapped then. If the address is allocated again in
 * between, accmem_map() waits for the lock.
 */
static int free_and_unmap_locked(struct accmem_context *ctx,
				 struct accmem_free *req)
{
	int ret = accmem_call(ctx, ACCMEM_IOC_FREE, req);

	if (!ret || ret == -ENOENT)
		accmem_unmap_locked(ctx, req->address);
	return ret;
}

int accmem_free_unmapped(struct accmem_context *ctx, struct accmem_free *req)
{
	int ret;

	pthread_mutex_lock(&ctx->lock);
	ret = req->flags ? free_and_unmap_locked(ctx, req) :
			   unmap_and_free_locked(ctx, req);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int accmem_release_now(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_free_unmapped(ctx, &req);
}

int accmem_release(struct accmem_context *ctx, uint64_t address)
{
	return accmem_fail_at(accmem_release_now(ctx, address), "release",
			      address);
}

static int resize_locked(struct accmem_context *ctx, struct accmem_realloc *req)
{
	uint64_t address = req->address;
	int ret;

	ret = accmem_call(ctx, ACCMEM_IOC_REALLOC, req);
	if (ret)
		return ret;
	if (req->address == address) {
		accmem_trim_locked(ctx, address, req->footprint);
		return 0;
	}
	/* a mapping that stays shows memory that the driver does not reuse */
	accmem_unmap_locked(ctx, address);
	accmem_unmap_range(ctx, req->address, req->footprint);
	return 0;
}

int accmem_reallocate_now(struct accmem_context *ctx,
			  struct accmem_realloc *req)
{
	int ret;

	req->size = sizeof(*req);
	/* accmem_map() must not see the old mapping at a reused address */
	pthread_mutex_lock(&ctx->lock);
	ret = resize_locked(ctx, req);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int accmem_reallocate(struct accmem_context *ctx, struct accmem_realloc *req)
{
	const struct accmem_alloc asked = { .length = req->length };
	const uint64_t address = req->address;
	int ret = accmem_reallocate_now(ctx, req);

	if (ret == -ENOENT || (ret == -EINVAL && asked.length))
		return accmem_fail_at(ret, "reallocation", address);
	if (ret == -EPERM)
		accmem_set_last_error("reallocation of address %#" PRIx64
				      ": not ACCMEM_ALLOC_RESIZABLE",
				      address);
	else
		accmem_fail_request(ctx, "reallocation", &asked, 0, ret);
	return ret;
}
