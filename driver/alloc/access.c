// SPDX-License-Identifier: GPL-2.0
/*
 * ACCESS, PREFETCH and ADVISE: device accesses and placement hints.
 *
 * ACCESS reads and writes a buffer by its device address, as a simulator of the device
 * does. PREFETCH and ADVISE say on which side shared memory should be.
 *
 * ACCESS copies through a buffer of its own, ACCESS_PART bytes at a time. No lock is
 * held while the caller's memory is copied. The call holds a reference to the buffer
 * object until it ends, as a mapping does: the memory outlives a FREE of its buffer.
 *
 * Locking: ctx->lock for the lookup; the locks of the backing for each part.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "alloc/access.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "memory/shared.h"
#include "types/backing_types.h"
#include "vm/buffer.h"
#include "vm/lookup.h"

#define ACCESS_PART ((u64)SZ_32K) /* bytes per copy; then signals are checked */

static int access_check(const struct accmem_access *req)
{
	u64 end;

	if (!req->length || req->op > ACCMEM_ACCESS_FILL)
		return -EINVAL;
	if (req->op == ACCMEM_ACCESS_FILL && req->data > U8_MAX)
		return -EINVAL;
	return check_add_overflow(req->address, req->length, &end) ?
		       -EOVERFLOW :
		       0;
}

/*
 * Return the buffer object that contains the whole range, with a reference, and the offset
 * of the range in it.
 */
static struct accmem_bo *access_reach(struct accmem_context *ctx, u64 address,
				      u64 length, u64 *offset)
{
	struct accmem_buffer *buf;
	u64 usable, room;

	lockdep_assert_held(&ctx->lock);
	buf = accmem_buffer_find(ctx, address);
	if (!buf)
		return ERR_PTR(-ENOENT);
	usable = buf->layout.usable;
	*offset = address - buf->address;
	if (*offset >= usable || length > usable - *offset)
		return ERR_PTR(-ENXIO);
	return accmem_buffer_reach(ctx, address, offset, &room);
}

static struct accmem_bo *access_find_bo(struct accmem_context *ctx, u64 address,
					u64 length, bool write, u64 *offset)
{
	struct accmem_bo *bo;

	spin_lock(&ctx->lock);
	bo = access_reach(ctx, address, length, offset);
	if (write && !IS_ERR(bo))
		accmem_bo_set_written(bo, true);
	spin_unlock(&ctx->lock);
	return bo;
}

/*
 * Return the size of the next part. A part never crosses a piece (2 MiB) of shared
 * memory.
 */
static u64 access_next(const struct accmem_access *req, u64 offset)
{
	return min3(req->length - req->done, ACCESS_PART,
		    ACCMEM_FOLIO - offset % ACCMEM_FOLIO);
}

/* Copy @size bytes between @offset in @bo and the caller's memory, through @bytes. */
static int access_part(struct accmem_bo *bo, u64 offset,
		       const struct accmem_access *req, void *bytes, u64 size)
{
	void __user *data = u64_to_user_ptr(req->data + req->done);
	bool write = req->op != ACCMEM_ACCESS_READ;
	int err;

	if (req->op == ACCMEM_ACCESS_WRITE && copy_from_user(bytes, data, size))
		return -EFAULT;
	err = bo->shared ?
		      accmem_shared_access(bo, offset, bytes, size, write) :
		      accmem_bo_access(bo, offset, bytes, size, write);
	if (!err && !write && copy_to_user(data, bytes, size))
		return -EFAULT;
	return err;
}

static int access_bo(struct accmem_bo *bo, u64 offset,
		     struct accmem_access *req, void *bytes)
{
	u64 size;
	int err;

	while (req->done < req->length) {
		if (fatal_signal_pending(current))
			return -EINTR;
		size = access_next(req, offset + req->done);
		err = access_part(bo, offset + req->done, req, bytes, size);
		if (err)
			return err;
		req->done += size;
		cond_resched();
	}
	return 0;
}

/**
 * accmem_access() - read, write or fill a part of a buffer as the device does
 * @ctx: the context
 * @req: the request; the caller has set req->done to 0, no other field has been
 *	checked
 *
 * On return req->done has the number of bytes that were copied, also after an error.
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_ACCESS.
 */
int accmem_access(struct accmem_context *ctx, struct accmem_access *req)
{
	struct accmem_bo *bo;
	u64 offset, size;
	void *bytes;
	int err;

	err = access_check(req);
	if (!err && req->op != ACCMEM_ACCESS_READ && ctx->read_only)
		err = -EBADF;
	if (err)
		return err;
	size = min(req->length, ACCESS_PART);
	bytes = kmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!bytes)
		return -ENOMEM;
	if (req->op == ACCMEM_ACCESS_FILL)
		memset(bytes, req->data, size);
	bo = access_find_bo(ctx, req->address, req->length,
			    req->op != ACCMEM_ACCESS_READ, &offset);
	err = PTR_ERR_OR_ZERO(bo);
	if (err)
		goto out_free;
	err = access_bo(bo, offset, req, bytes);
	accmem_bo_put_user(bo);
out_free:
	kfree(bytes);
	return err;
}

static int hint_check(u64 address, u64 length)
{
	u64 end;

	if (!length)
		return -EINVAL;
	return check_add_overflow(address, length, &end) ? -EOVERFLOW : 0;
}

/*
 * Return the shared buffer object that contains the whole range, with a reference, and the
 * offset of the range in it.
 */
static struct accmem_bo *hint_find_bo(struct accmem_context *ctx, u64 address,
				      u64 length, u64 *offset)
{
	int err = hint_check(address, length);
	struct accmem_bo *bo;

	if (err)
		return ERR_PTR(err);
	bo = access_find_bo(ctx, address, length, false, offset);
	if (IS_ERR(bo) || bo->shared)
		return bo;
	accmem_bo_put_user(bo);
	return ERR_PTR(-EOPNOTSUPP);
}

/**
 * accmem_prefetch() - move a part of a shared buffer to one side in advance
 * @ctx: the context
 * @req: the request; its flags have been checked, no other field has
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_PREFETCH.
 */
int accmem_prefetch(struct accmem_context *ctx,
		    const struct accmem_prefetch *req)
{
	struct accmem_bo *bo;
	u64 offset;
	int err;

	bo = hint_find_bo(ctx, req->address, req->length, &offset);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	err = accmem_shared_move(bo, offset, req->length,
				 !(req->flags & ACCMEM_PREFETCH_HOST));
	accmem_bo_put_user(bo);
	return err;
}

/**
 * accmem_advise() - set how a part of a shared buffer moves between its sides
 * @ctx: the context
 * @req: the request; no field has been checked
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_ADVISE.
 */
int accmem_advise(struct accmem_context *ctx, const struct accmem_advise *req)
{
	struct accmem_bo *bo;
	u64 offset;
	int err;

	if (req->advice > ACCMEM_ADVICE_STAY)
		return -EINVAL;
	bo = hint_find_bo(ctx, req->address, req->length, &offset);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	err = accmem_shared_stay(bo, offset, req->length,
				 req->advice == ACCMEM_ADVICE_STAY);
	accmem_bo_put_user(bo);
	return err;
}
