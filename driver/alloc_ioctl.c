// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC, FREE and REALLOC: the ioctls for buffers.
 *
 * An address is written to user space before its buffer is published. So a write that
 * fails can discard the buffer: no other thread has found it. The same holds for
 * REALLOC, whose answer is written between prepare and commit.
 *
 * Locking: no lock is held here; the functions of alloc/ take ctx->lock.
 */
#include <linux/file.h>
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "alloc/alloc.h"
#include "alloc/free.h"
#include "alloc/plan.h"
#include "alloc/realloc.h"
#include "alloc/usage.h"
#include "alloc/wait.h"
#include "alloc_ioctl.h"
#include "command.h"
#include "compat/compat.h"
#include "stream/fence.h"
#include "stream/file.h"
#include "stream/pending.h"
#include "stream/stream.h"
#include "trace/trace.h"
#include "vm/buffer.h"
#include "waitq/waiters.h"

/*
 * Fail an ALLOC. If memory was short or the deadline passed, write the free bytes and
 * the longest free run to user space.
 */
static int alloc_ioctl_fail_alloc(struct accmem_command *cmd, u32 carveouts,
				  int err)
{
	struct accmem_alloc *req = &cmd->data.alloc;

	if (err == -ENOMEM || err == -ETIMEDOUT) {
		accmem_usage_space(cmd->ctx, carveouts, &req->free_bytes,
				   &req->largest_run);
		req->carveouts = carveouts & cmd->ctx->carveouts->device_mask;
		if (accmem_command_respond(cmd))
			err = -EFAULT;
	}
	if (err != -ERESTARTSYS)
		trace_accmem_fail(cmd->ctx, req, err);
	return err;
}

static void alloc_ioctl_describe_alloc(const struct accmem_buffer *buf,
				       struct accmem_alloc *req)
{
	const struct accmem_carveout *cv = accmem_buffer_carveout(buf);

	req->address = buf->address;
	req->usable = buf->layout.usable;
	req->footprint = buf->layout.footprint;
	req->mmap_offset = accmem_buffer_mmap_offset(buf);
	req->page_size = buf->layout.page_size;
	req->nr_runs = accmem_buffer_bo(buf)->nr_runs;
	req->free_bytes = 0;
	req->largest_run = 0;
	req->carveouts = BIT(cv->index) & cv->carveouts->device_mask;
	req->position = buf->pending.deps[0].position;
}

/*
 * Write the answer to user space. If the structure has the size that this kernel knows,
 * write only the members that changed: the copy of the whole structure would be a large
 * part of the time of the call.
 */
static int alloc_ioctl_respond_alloc(struct accmem_command *cmd)
{
	const struct accmem_alloc *req = &cmd->data.alloc;
	struct accmem_alloc __user *to = cmd->arg;

	if (cmd->user_size != sizeof(*to))
		return accmem_command_respond(cmd);
	if (!user_write_access_begin(to, sizeof(*to)))
		return -EFAULT;
	unsafe_put_user(req->address, &to->address, fault);
	unsafe_put_user(req->usable, &to->usable, fault);
	unsafe_put_user(req->footprint, &to->footprint, fault);
	unsafe_put_user(req->mmap_offset, &to->mmap_offset, fault);
	unsafe_put_user(0, &to->free_bytes, fault);
	unsafe_put_user(0, &to->largest_run, fault);
	unsafe_put_user(req->page_size, &to->page_size, fault);
	unsafe_put_user(req->nr_runs, &to->nr_runs, fault);
	unsafe_put_user(req->carveouts, &to->carveouts, fault);
	unsafe_put_user(req->position, &to->position, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/* Return the stream of a descriptor. The descriptor holds it until fdput(). */
static struct accmem_stream *alloc_ioctl_get_stream(struct accmem_context *ctx,
						    struct fd fd)
{
	struct file *file = accmem_fd_file(fd);

	return file ? accmem_stream_of(ctx, file) : ERR_PTR(-EBADF);
}

static struct accmem_buffer *alloc_ioctl_alloc(struct accmem_context *ctx,
					       const struct accmem_plan *plan)
{
	return plan->req->flags & ACCMEM_ALLOC_WAIT ?
		       accmem_alloc_wait(ctx, plan) :
		       accmem_alloc(ctx, plan);
}

/* Allocate a buffer for the stream that the request names. */
static struct accmem_buffer *alloc_ioctl_alloc_on(struct accmem_context *ctx,
						  struct accmem_plan *plan)
{
	struct fd fd = fdget(plan->req->stream);
	struct accmem_buffer *buf;

	plan->stream = alloc_ioctl_get_stream(ctx, fd);
	buf = IS_ERR(plan->stream) ? ERR_CAST(plan->stream) :
				     alloc_ioctl_alloc(ctx, plan);
	fdput(fd);
	return buf;
}

/**
 * accmem_ioctl_alloc() - execute ACCMEM_IOC_ALLOC
 * @cmd: the command
 *
 * Context: Process context. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_ALLOC.
 */
int accmem_ioctl_alloc(struct accmem_command *cmd)
{
	struct accmem_context *ctx = cmd->ctx;
	struct accmem_alloc *req = &cmd->data.alloc;
	struct accmem_buffer *buf;
	struct accmem_plan plan;
	int err;

	err = accmem_plan_make(ctx, req, &plan);
	if (err)
		return alloc_ioctl_fail_alloc(cmd, 0, err);
	buf = req->flags & ACCMEM_ALLOC_STREAM ?
		      alloc_ioctl_alloc_on(ctx, &plan) :
		      alloc_ioctl_alloc(ctx, &plan);
	if (IS_ERR(buf))
		return alloc_ioctl_fail_alloc(cmd, plan.carveouts,
					      PTR_ERR(buf));
	alloc_ioctl_describe_alloc(buf, req);
	err = alloc_ioctl_respond_alloc(cmd);
	if (err)
		accmem_alloc_discard(ctx, buf);
	else
		accmem_alloc_publish(ctx, buf);
	return err;
}

static int alloc_ioctl_stream_dep(struct accmem_context *ctx,
				  const struct accmem_free *req,
				  struct accmem_dep *dep)
{
	struct fd fd = fdget(req->fd);
	struct accmem_stream *stream = alloc_ioctl_get_stream(ctx, fd);

	if (!IS_ERR(stream) &&
	    !accmem_stream_has_reached(stream, req->position)) {
		accmem_stream_get(stream);
		dep->stream = stream;
		dep->position = req->position;
	}
	fdput(fd);
	return PTR_ERR_OR_ZERO(stream);
}

static int alloc_ioctl_fence_dep(const struct accmem_free *req,
				 struct accmem_dep *dep)
{
	struct dma_fence *fence = accmem_sync_file_fence(req->fd);

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	if (dma_fence_is_signaled(fence))
		dma_fence_put(fence);
	else
		dep->fence = fence;
	return 0;
}

/* Get the dependency of a FREE. @dep is unchanged if the free does not have to wait. */
static int alloc_ioctl_dep(struct accmem_context *ctx,
			   const struct accmem_free *req,
			   struct accmem_dep *dep)
{
	switch (req->flags) {
	case 0:
		return req->fd || req->position ? -EINVAL : 0;
	case ACCMEM_FREE_STREAM:
		return alloc_ioctl_stream_dep(ctx, req, dep);
	case ACCMEM_FREE_FENCE:
		return req->position ? -EINVAL :
				       alloc_ioctl_fence_dep(req, dep);
	default:
		return -EINVAL;
	}
}

/**
 * accmem_ioctl_free() - ACCMEM_IOC_FREE
 * @cmd: the command
 *
 * Context: Process context. May sleep.
 * Return: 0 or an error of FREE.
 */
int accmem_ioctl_free(struct accmem_command *cmd)
{
	const struct accmem_free *req = &cmd->data.free;
	struct accmem_dep dep = {};
	int err;

	if (req->reserved || req->reserved2)
		return -EINVAL;
	err = alloc_ioctl_dep(cmd->ctx, req, &dep);
	if (err)
		return err;
	err = accmem_free(cmd->ctx, req->address, &dep);
	if (err && !accmem_dep_is_signaled(&dep))
		accmem_dep_put(&dep);
	return err;
}

/*
 * Fail a REALLOC; the buffer is unchanged. If memory was short, write the free bytes
 * and the longest free run to user space.
 */
static int alloc_ioctl_fail_realloc(struct accmem_command *cmd, u32 carveouts,
				    int err)
{
	struct accmem_realloc *req = &cmd->data.realloc;
	struct accmem_alloc wanted = { .length = req->length };

	if (err == -ENOMEM) {
		accmem_usage_space(cmd->ctx, carveouts, &req->free_bytes,
				   &req->largest_run);
		if (accmem_command_respond(cmd))
			err = -EFAULT;
	}
	wanted.free_bytes = req->free_bytes;
	wanted.largest_run = req->largest_run;
	trace_accmem_fail(cmd->ctx, &wanted, err);
	return err;
}

/**
 * accmem_ioctl_realloc() - execute ACCMEM_IOC_REALLOC
 * @cmd: the command
 *
 * Context: Process context. May sleep.
 *
 * Return: 0 or an error of ACCMEM_IOC_REALLOC.
 */
int accmem_ioctl_realloc(struct accmem_command *cmd)
{
	struct accmem_realloc *req = &cmd->data.realloc;
	u64 address = req->address;
	struct accmem_resize r;
	int err;

	if (req->flags & ~ACCMEM_REALLOC_FLAGS || req->reserved)
		return -EINVAL;
	req->free_bytes = 0;
	req->largest_run = 0;
	/*
	 * Check first that the answer can be written. A failure after the buffer has
	 * grown is not undone completely: a fault may have mapped 2 MiB, and that
	 * memory stays.
	 */
	err = accmem_command_try_to_respond(cmd);
	if (err)
		return err;
	err = accmem_realloc_prepare(cmd->ctx, req, &r);
	if (err)
		return alloc_ioctl_fail_realloc(cmd, r.carveouts, err);
	accmem_realloc_describe(&r, req);
	err = accmem_command_respond(cmd);
	if (err) {
		accmem_realloc_cancel(cmd->ctx, &r);
		return err;
	}
	err = accmem_realloc_commit(cmd->ctx, &r);
	if (!err)
		return 0;
	req->address = address;
	return alloc_ioctl_fail_realloc(cmd, r.carveouts, err);
}
