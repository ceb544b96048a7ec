// SPDX-License-Identifier: MIT
/*
 * Buffers: the calls that allocate, free and resize one. Each is an ioctl, and unmaps
 * what the process has mapped of a buffer that is no longer there.
 *
 * Locking: accmem_context.lock, so that an unmap and the FREE after it stay together.
 */
#include <errno.h>

#include "core/buffer.h"
#include "core/internal.h"

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
	 * Something mapped here belongs to a buffer that was freed behind our
	 * back: by a process that shares the context, or by an ioctl. It must
	 * not pass for a mapping of the new buffer.
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
	return ret;
}

/* The mapping goes first, so that FREE is what gives the memory back. */
static int unmap_and_free_locked(struct accmem_context *ctx,
				 struct accmem_free *req)
{
	int ret = accmem_unmap_locked(ctx, req->address);

	/* an address inside a buffer is left to FREE to refuse */
	if (!ret || ret == -ENOENT || ret == -EINVAL)
		ret = accmem_call(ctx, ACCMEM_IOC_FREE, req);
	return ret;
}

/*
 * What is freed for later may be refused, as for a stream that is none, and stays mapped
 * then. Another thread that is given the address maps it when it has the lock.
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

int accmem_release(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_free_unmapped(ctx, &req);
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
	/* what cannot be unmapped shows memory that is nobody else's */
	accmem_unmap_locked(ctx, address);
	accmem_unmap_range(ctx, req->address, req->footprint);
	return 0;
}

int accmem_reallocate(struct accmem_context *ctx, struct accmem_realloc *req)
{
	int ret;

	req->size = sizeof(*req);
	/* nobody maps what gets the old address before that is unmapped */
	pthread_mutex_lock(&ctx->lock);
	ret = resize_locked(ctx, req);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}
