// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctl table: one row a command, one copy in, one copy out.
 *
 * Owns the checks that every structure shares (size, unknown tail) and most
 * of those of flags and reserved fields. No lock is held here.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../compat/compat.h"
#include "context.h"
#include "ioctl.h"
#include "pending.h"
#include "stream.h"
#include "tmem.h"
#include "trace.h"

union any_command {
	u32 user_size; /* each begins with it */
	struct accmem_info info;
	struct accmem_alloc alloc;
	struct accmem_query query;
	struct accmem_realloc realloc;
	struct accmem_batch batch;
	struct accmem_access access;
	struct accmem_prefetch prefetch;
	struct accmem_advise advise;
	struct accmem_shrink shrink;
	struct accmem_stream_create stream_create;
	struct accmem_tmem_setup tmem_setup;
	struct accmem_tmem_launch tmem_launch;
	struct accmem_tmem_cluster tmem_cluster;
};

/* a call in progress */
struct command {
	struct accmem_context *ctx;
	void __user *arg;
	u32 user_size;
	size_t size;
	union any_command data;
};

/*
 * Fetches the structure, a word at a time where it has the size that this kernel
 * knows: a copy of any size would be a good part of a short call.
 */
static int ioctl_fetch(struct command *cmd, size_t min_size)
{
	const u64 __user *from = cmd->arg;
	u64 *to = (u64 *)&cmd->data;
	size_t words = cmd->size / sizeof(*to);

	if (!user_read_access_begin(from, cmd->size))
		goto slowly;
	unsafe_get_user(cmd->user_size, (const u32 __user *)from, fault);
	if (unlikely(cmd->user_size != cmd->size)) {
		user_read_access_end();
		goto slowly;
	}
	for (; words >= 4; words -= 4, to += 4, from += 4) {
		unsafe_get_user(to[0], from, fault);
		unsafe_get_user(to[1], from + 1, fault);
		unsafe_get_user(to[2], from + 2, fault);
		unsafe_get_user(to[3], from + 3, fault);
	}
	for (; words; words--, to++, from++)
		unsafe_get_user(to[0], from, fault);
	user_read_access_end();
	/* it may be another one now */
	cmd->data.user_size = cmd->user_size;
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;

slowly:
	return accmem_copy_command(&cmd->data, cmd->size, cmd->arg, min_size,
				   &cmd->user_size);
}

/* write the results back; as much of them as the caller knows */
static int ioctl_respond(struct command *cmd)
{
	const u64 *from = (const u64 *)&cmd->data;
	u64 __user *to = cmd->arg;
	size_t words = cmd->size / sizeof(*to);

	if (unlikely(cmd->user_size < cmd->size))
		return copy_to_user(to, from, cmd->user_size) ? -EFAULT : 0;
	if (!user_write_access_begin(to, cmd->size))
		return -EFAULT;
	for (; words >= 4; words -= 4, to += 4, from += 4) {
		unsafe_put_user(from[0], to, fault);
		unsafe_put_user(from[1], to + 1, fault);
		unsafe_put_user(from[2], to + 2, fault);
		unsafe_put_user(from[3], to + 3, fault);
	}
	for (; words; words--, to++, from++)
		unsafe_put_user(from[0], to, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/* the carveout that a call of INFO is about */
static const struct accmem_carveout *
ioctl_info_carveout(struct accmem_device *dev, const struct accmem_info *info)
{
	const struct accmem_carveout *host = accmem_device_host(dev);

	if (info->flags & ~ACCMEM_INFO_HOST || info->carveout >= dev->nr_device)
		return ERR_PTR(-EINVAL);
	if (!(info->flags & ACCMEM_INFO_HOST))
		return &dev->cvs[array_index_nospec(info->carveout,
						    dev->nr_device)];
	if (info->carveout)
		return ERR_PTR(-EINVAL);
	return host ?: ERR_PTR(-EOPNOTSUPP);
}

#define IOCTL_HOST_FEATURES (ACCMEM_FEATURE_HOST | ACCMEM_FEATURE_SHARED)

static int ioctl_info(struct command *cmd)
{
	struct accmem_info *info = &cmd->data.info;
	struct accmem_context *ctx = cmd->ctx;
	const struct accmem_carveout *cv = ioctl_info_carveout(ctx->dev, info);

	if (IS_ERR(cv))
		return PTR_ERR(cv);
	info->nr_carveouts = ctx->dev->nr_device;
	info->features = cv->features | ACCMEM_FEATURE_STREAM |
			 ACCMEM_FEATURE_REALLOC | ACCMEM_FEATURE_WAIT |
			 (ctx->dev->host ? IOCTL_HOST_FEATURES : 0);
	info->now_ns = ktime_get_ns();
	info->address_base = cv->address_base;
	info->address_span = cv->address_span;
	info->capacity = cv->capacity;
	accmem_usage_space(ctx, BIT(cv->index), &info->free_bytes,
			   &info->largest_run);
	info->context_bytes = accmem_usage_charged(ctx);
	info->context_limit = READ_ONCE(accmem_max_bytes_per_context);
	info->max_alignment = cv->caps.max_alignment;
	info->page_sizes = cv->caps.page_sizes;
	info->granule = ACCMEM_GRANULE;
	info->backing = cv->backing;
	info->translation = cv->translation;
	info->cache_modes = cv->cache_modes;
	info->bandwidth = cv->bandwidth;
	info->numa_node = cv->node;
	return ioctl_respond(cmd);
}

/* ENOMEM, or a wait that was too long, with what could have been had */
static int ioctl_fail_alloc(struct command *cmd, int err)
{
	struct accmem_alloc *req = &cmd->data.alloc;
	u32 carveouts = accmem_alloc_carveouts(cmd->ctx, req);

	if (err == -ENOMEM || err == -ETIMEDOUT) {
		accmem_usage_space(cmd->ctx, carveouts, &req->free_bytes,
				   &req->largest_run);
		req->carveouts = carveouts & cmd->ctx->dev->carveouts;
		if (ioctl_respond(cmd))
			err = -EFAULT;
	}
	if (err != -ERESTARTSYS)
		trace_accmem_fail(cmd->ctx, req, err);
	return err;
}

static void ioctl_describe_alloc(const struct accmem_buffer *buf,
				 struct accmem_alloc *req)
{
	const struct accmem_carveout *cv = accmem_buffer_memory(buf)->cv;

	req->address = buf->address;
	req->usable = buf->layout.usable;
	req->footprint = buf->layout.footprint;
	req->mmap_offset = accmem_buffer_mmap_offset(buf);
	req->page_size = buf->layout.page_size;
	req->nr_runs = accmem_buffer_memory(buf)->nr_runs;
	req->free_bytes = 0;
	req->largest_run = 0;
	req->carveouts = BIT(cv->index) & cv->dev->carveouts;
	req->position = buf->pending.gates[0].position;
}

/*
 * By members, where the structure has the size that this kernel knows: a copy of all
 * of it, most of which is as it was, would be a good part of the call.
 */
static int ioctl_respond_alloc(struct command *cmd)
{
	const struct accmem_alloc *req = &cmd->data.alloc;
	struct accmem_alloc __user *to = cmd->arg;

	if (cmd->user_size != sizeof(*to))
		return ioctl_respond(cmd);
	if (!user_write_access_begin(to, sizeof(*to)))
		return -EFAULT;
	unsafe_put_user(req->address, &to->address, fault);
	unsafe_put_user(req->usable, &to->usable, fault);
	unsafe_put_user(req->footprint, &to->footprint, fault);
	unsafe_put_user(req->mmap_offset, &to->mmap_offset, fault);
	unsafe_put_user(req->free_bytes, &to->free_bytes, fault);
	unsafe_put_user(req->largest_run, &to->largest_run, fault);
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

/* the stream of a descriptor, which holds it until fdput() */
static struct accmem_stream *ioctl_get_stream(struct accmem_context *ctx,
					      struct fd fd)
{
	struct file *file = accmem_fd_file(fd);

	return file ? accmem_stream_of(ctx, file) : ERR_PTR(-EBADF);
}

static struct accmem_buffer *ioctl_alloc_now(struct accmem_context *ctx,
					     const struct accmem_alloc *req,
					     struct accmem_stream *stream)
{
	return req->flags & ACCMEM_ALLOC_WAIT ?
		       accmem_alloc_wait(ctx, req, stream) :
		       accmem_alloc(ctx, req, stream);
}

static struct accmem_buffer *ioctl_alloc_on(struct accmem_context *ctx,
					    const struct accmem_alloc *req)
{
	struct accmem_stream *stream;
	struct accmem_buffer *buf;
	struct fd fd;
	int err;

	if (!(req->flags & ACCMEM_ALLOC_STREAM))
		return ioctl_alloc_now(ctx, req, NULL);
	err = accmem_alloc_check(ctx, req);
	if (err)
		return ERR_PTR(err);
	fd = fdget(req->stream);
	stream = ioctl_get_stream(ctx, fd);
	buf = IS_ERR(stream) ? ERR_CAST(stream) :
			       ioctl_alloc_now(ctx, req, stream);
	fdput(fd);
	return buf;
}

static int ioctl_alloc(struct command *cmd)
{
	struct accmem_context *ctx = cmd->ctx;
	struct accmem_alloc *req = &cmd->data.alloc;
	struct accmem_buffer *buf;
	int err;

	buf = ioctl_alloc_on(ctx, req);
	if (IS_ERR(buf))
		return ioctl_fail_alloc(cmd, PTR_ERR(buf));
	ioctl_describe_alloc(buf, req);
	err = ioctl_respond_alloc(cmd);
	if (err)
		accmem_alloc_discard(ctx, &buf, 1);
	else
		accmem_alloc_publish(ctx, &buf, 1);
	return err;
}

static int ioctl_stream_gate(struct accmem_context *ctx,
			     const struct accmem_free *req,
			     struct accmem_gate *gate)
{
	struct fd fd = fdget(req->fd);
	struct accmem_stream *stream = ioctl_get_stream(ctx, fd);

	if (!IS_ERR(stream) &&
	    !accmem_stream_has_reached(stream, req->position)) {
		accmem_stream_get(stream);
		gate->stream = stream;
		gate->position = req->position;
	}
	fdput(fd);
	return PTR_ERR_OR_ZERO(stream);
}

static int ioctl_fence_gate(const struct accmem_free *req,
			    struct accmem_gate *gate)
{
	struct dma_fence *fence = accmem_sync_file_fence(req->fd);

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	if (dma_fence_is_signaled(fence))
		dma_fence_put(fence);
	else
		gate->fence = fence;
	return 0;
}

/* what a free has to wait for; an open gate where it need not */
static int ioctl_gate(struct accmem_context *ctx, const struct accmem_free *req,
		      struct accmem_gate *gate)
{
	switch (req->flags) {
	case 0:
		return req->fd || req->position ? -EINVAL : 0;
	case ACCMEM_FREE_STREAM:
		return ioctl_stream_gate(ctx, req, gate);
	case ACCMEM_FREE_FENCE:
		return req->position ? -EINVAL : ioctl_fence_gate(req, gate);
	default:
		return -EINVAL;
	}
}

/* as ioctl_respond_alloc(), with the size in the same go */
static int ioctl_fetch_free(struct accmem_free *req,
			    const struct accmem_free __user *from)
{
	u32 user_size;

	if (!user_read_access_begin(from, sizeof(*from)))
		goto slowly;
	unsafe_get_user(req->size, &from->size, fault);
	if (unlikely(req->size != sizeof(*from))) {
		user_read_access_end();
		goto slowly;
	}
	unsafe_get_user(req->flags, &from->flags, fault);
	unsafe_get_user(req->address, &from->address, fault);
	unsafe_get_user(req->reserved, &from->reserved, fault);
	unsafe_get_user(req->fd, &from->fd, fault);
	unsafe_get_user(req->reserved2, &from->reserved2, fault);
	unsafe_get_user(req->position, &from->position, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;

slowly:
	return accmem_copy_command(req, sizeof(*req), from,
				   offsetofend(struct accmem_free, reserved),
				   &user_size);
}

static noinline int ioctl_free(struct accmem_context *ctx, void __user *arg)
{
	struct accmem_gate gate = {};
	struct accmem_free req;
	int err;

	err = ioctl_fetch_free(&req, arg);
	if (err)
		return err;
	if (req.reserved || req.reserved2)
		return -EINVAL;
	err = ioctl_gate(ctx, &req, &gate);
	if (err)
		return err;
	err = accmem_free(ctx, req.address, &gate);
	if (err && !accmem_gate_is_open(&gate))
		accmem_gate_put(&gate);
	return err;
}

/* those that a buffer at an address may be moved to */
static u32 ioctl_carveouts_near(struct accmem_context *ctx, u64 address)
{
	const struct accmem_carveout *host = accmem_device_host(ctx->dev);

	if (host && address - host->address_base < host->address_span)
		return ctx->dev->host;
	return ctx->dev->carveouts;
}

/* ENOMEM, with what could have been had; the address is what it was */
static int ioctl_fail_realloc(struct command *cmd, int err)
{
	struct accmem_realloc *req = &cmd->data.realloc;
	struct accmem_alloc wanted = { .length = req->length };

	if (err == -ENOMEM) {
		accmem_usage_space(cmd->ctx,
				   ioctl_carveouts_near(cmd->ctx, req->address),
				   &req->free_bytes, &req->largest_run);
		if (ioctl_respond(cmd))
			err = -EFAULT;
	}
	wanted.free_bytes = req->free_bytes;
	wanted.largest_run = req->largest_run;
	trace_accmem_fail(cmd->ctx, &wanted, err);
	return err;
}

/* writes what was read; a structure lies in two pages at most */
static int ioctl_try_to_respond(struct command *cmd)
{
	const u64 *from = (const u64 *)&cmd->data;
	u64 __user *to = cmd->arg;
	size_t last = cmd->size / sizeof(*to) - 1;

	if (unlikely(cmd->user_size < cmd->size))
		return ioctl_respond(cmd);
	if (!user_write_access_begin(to, cmd->size))
		return -EFAULT;
	unsafe_put_user(from[0], to, fault);
	unsafe_put_user(from[last], to + last, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

static int ioctl_realloc(struct command *cmd)
{
	struct accmem_realloc *req = &cmd->data.realloc;
	u64 address = req->address;
	struct accmem_resize r;
	int err;

	if (req->flags & ~ACCMEM_REALLOC_FLAGS || req->reserved)
		return -EINVAL;
	req->free_bytes = 0;
	req->largest_run = 0;
	/* what a fault may have shown of 2 MiB meanwhile would stay after a failure */
	err = ioctl_try_to_respond(cmd);
	if (err)
		return err;
	err = accmem_realloc_prepare(cmd->ctx, req, &r);
	/* it may have had memory for a while, which was given back silently */
	if (err == -ENOMEM || err == -EDQUOT || err == -EINTR)
		accmem_waiters_came_back(cmd->ctx->dev,
					 cmd->ctx->account->user);
	if (err)
		return ioctl_fail_realloc(cmd, err);
	accmem_realloc_describe(&r, req);
	err = ioctl_respond(cmd);
	if (err) {
		accmem_realloc_cancel(cmd->ctx, &r);
		return err;
	}
	err = accmem_realloc_commit(cmd->ctx, &r);
	if (!err)
		return 0;
	req->address = address;
	return ioctl_fail_realloc(cmd, err);
}

static void ioctl_describe_query(const struct accmem_buffer *buf,
				 struct accmem_query *req)
{
	req->base = buf->address;
	req->offset = req->address - buf->address;
	req->length = buf->length;
	req->usable = buf->layout.usable;
	req->footprint = buf->layout.footprint;
	req->alignment = buf->layout.alignment;
	req->mmap_offset = accmem_buffer_mmap_offset(buf);
	req->alloc_flags = buf->flags;
	req->page_policy = buf->page_policy;
	req->cache_mode = accmem_buffer_memory(buf)->cache_mode;
	req->carveout = accmem_carveout_number(accmem_buffer_memory(buf)->cv);
	req->page_size = buf->layout.page_size;
	req->nr_runs = accmem_buffer_memory(buf)->nr_runs;
	req->kind = accmem_buffer_memory(buf)->shared ?
			    ACCMEM_KIND_SHARED :
			    accmem_buffer_memory(buf)->cv->kind;
}

static int ioctl_query(struct command *cmd)
{
	struct accmem_query *req = &cmd->data.query;
	struct accmem_context *ctx = cmd->ctx;
	struct accmem_buffer *buf;

	if (req->flags || req->reserved)
		return -EINVAL;
	spin_lock(&ctx->lock);
	buf = accmem_name_find(ctx, req->address);
	if (buf)
		ioctl_describe_query(buf, req);
	spin_unlock(&ctx->lock);
	return buf ? ioctl_respond(cmd) : -ENOENT;
}

/*
 * The answer, which says how far the batch came, is written after a failure, too;
 * and before, since what cannot be told had better not be done.
 */
static int ioctl_batch(struct command *cmd)
{
	struct accmem_batch *req = &cmd->data.batch;
	int err;

	if (req->flags & ~ACCMEM_BATCH_FLAGS || req->reserved)
		return -EINVAL;
	req->done = 0;
	req->free_bytes = 0;
	req->largest_run = 0;
	err = ioctl_respond(cmd);
	if (err)
		return err;
	err = accmem_batch(cmd->ctx, req);
	return ioctl_respond(cmd) ?: err;
}

/* The answer says how far it came; it is written before, as that of a batch. */
static int ioctl_access(struct command *cmd)
{
	struct accmem_access *req = &cmd->data.access;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	req->done = 0;
	err = ioctl_respond(cmd);
	if (err)
		return err;
	err = accmem_access(cmd->ctx, req);
	return ioctl_respond(cmd) ?: err;
}

static int ioctl_prefetch(struct command *cmd)
{
	const struct accmem_prefetch *req = &cmd->data.prefetch;

	if (req->flags & ~ACCMEM_PREFETCH_FLAGS || req->reserved)
		return -EINVAL;
	return accmem_prefetch(cmd->ctx, req);
}

static int ioctl_advise(struct command *cmd)
{
	const struct accmem_advise *req = &cmd->data.advise;

	if (req->flags || req->reserved)
		return -EINVAL;
	return accmem_advise(cmd->ctx, req);
}

/* The answer is written before, too: what it cannot say had better not be done. */
static int ioctl_shrink(struct command *cmd)
{
	struct accmem_shrink *req = &cmd->data.shrink;
	int err;

	if (req->flags & ~ACCMEM_SHRINK_FLAGS || req->reserved)
		return -EINVAL;
	req->waiting = 0;
	req->wanted = 0;
	err = ioctl_respond(cmd) ?: accmem_shrink(cmd->ctx, req);
	return err ?: ioctl_respond(cmd);
}

static int ioctl_stream_create(struct command *cmd)
{
	struct accmem_stream_create *req = &cmd->data.stream_create;
	struct accmem_context *ctx = cmd->ctx;
	struct file *file;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	err = get_unused_fd_flags(O_CLOEXEC);
	if (err < 0)
		return err;
	req->fd = err;
	req->id = atomic64_inc_return(&ctx->last_stream);
	err = ioctl_respond(cmd);
	if (err)
		goto err_fd;
	file = accmem_stream_open(ctx, req->id);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto err_fd;
	}
	fd_install(req->fd, file);
	return 0;

err_fd:
	put_unused_fd(req->fd);
	return err;
}

static int ioctl_tmem_setup(struct command *cmd)
{
	struct accmem_tmem_setup *req = &cmd->data.tmem_setup;

	if (req->flags & ~ACCMEM_TMEM_STRICT || req->reserved)
		return -EINVAL;
	return accmem_tmem_setup(cmd->ctx, req);
}

static int ioctl_tmem_launch(struct command *cmd)
{
	struct accmem_tmem_launch *req = &cmd->data.tmem_launch;
	struct accmem_tmem_member member = {
		.rank = req->rank,
		.sm = req->sm,
		.window_base = req->window_base,
		.window_length = req->window_length,
	};
	struct accmem_launch launch = {
		.launch = req->launch,
		.cluster = req->cluster,
		.cta_group = req->cta_group,
		.nr_members = 1,
		.members = &member,
	};
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	err = accmem_launch_prepare(&launch);
	if (err)
		return err;
	req->fd = member.fd;
	err = ioctl_respond(cmd);
	if (!err)
		err = accmem_tmem_launch(cmd->ctx, &launch);
	if (err)
		accmem_launch_cancel(&launch);
	return err;
}

static int ioctl_check_members(const struct accmem_launch *launch)
{
	u32 i;

	for (i = 0; i < launch->nr_members; i++) {
		if (launch->members[i].reserved)
			return -EINVAL;
	}
	return 0;
}

/* the CTAs of @launch, which came from @user, where their descriptors go */
static int ioctl_launch_members(struct command *cmd,
				struct accmem_launch *launch,
				struct accmem_tmem_member __user *user)
{
	size_t size = launch->nr_members * sizeof(*user);
	int err;

	err = ioctl_check_members(launch) ?: accmem_launch_prepare(launch);
	if (err)
		return err;
	if (copy_to_user(user, launch->members, size))
		err = -EFAULT;
	else
		err = accmem_tmem_launch(cmd->ctx, launch);
	if (err)
		accmem_launch_cancel(launch);
	return err;
}

static int ioctl_tmem_cluster(struct command *cmd)
{
	const struct accmem_tmem_cluster *req = &cmd->data.tmem_cluster;
	struct accmem_tmem_member __user *user = u64_to_user_ptr(req->members);
	struct accmem_launch launch = {
		.launch = req->launch,
		.cluster = req->cluster,
		.cta_group = req->cta_group,
		.complete = true,
		.nr_members = req->nr_members,
	};
	int err;

	if (req->flags || req->reserved || !req->nr_members ||
	    req->nr_members > ACCMEM_TMEM_CLUSTER_MAX)
		return -EINVAL;
	launch.members = memdup_user(user, req->nr_members * sizeof(*user));
	if (IS_ERR(launch.members))
		return PTR_ERR(launch.members);
	err = ioctl_launch_members(cmd, &launch, user);
	kfree(launch.members);
	return err;
}

/*
 * The member of the union that a row and its function name is the command's
 * structure, and that begins with its size.
 */
static_assert(__same_type(struct accmem_info, ((union any_command *)0)->info));
static_assert(__same_type(struct accmem_alloc,
			  ((union any_command *)0)->alloc));
static_assert(__same_type(struct accmem_query,
			  ((union any_command *)0)->query));
static_assert(__same_type(struct accmem_realloc,
			  ((union any_command *)0)->realloc));
static_assert(__same_type(struct accmem_batch,
			  ((union any_command *)0)->batch));
static_assert(__same_type(struct accmem_access,
			  ((union any_command *)0)->access));
static_assert(__same_type(struct accmem_prefetch,
			  ((union any_command *)0)->prefetch));
static_assert(__same_type(struct accmem_advise,
			  ((union any_command *)0)->advise));
static_assert(__same_type(struct accmem_shrink,
			  ((union any_command *)0)->shrink));
static_assert(__same_type(struct accmem_stream_create,
			  ((union any_command *)0)->stream_create));
static_assert(__same_type(struct accmem_tmem_setup,
			  ((union any_command *)0)->tmem_setup));
static_assert(__same_type(struct accmem_tmem_launch,
			  ((union any_command *)0)->tmem_launch));
static_assert(__same_type(struct accmem_tmem_cluster,
			  ((union any_command *)0)->tmem_cluster));
ACCMEM_BEGINS_WITH_SIZE(struct accmem_info);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_alloc);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_free);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_query);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_realloc);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_batch);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_access);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_prefetch);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_advise);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_shrink);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_create);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_setup);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_launch);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_cluster);

/* @min_size: the structure's size in the first version of the ABI */
struct command_op {
	unsigned int cmd;
	size_t size;
	size_t min_size;
	int (*run)(struct command *cmd);
};

static const struct command_op ops[] = {
	[_IOC_NR(ACCMEM_IOC_INFO)] = {
		.cmd = ACCMEM_IOC_INFO,
		.size = sizeof_field(union any_command, info),
		.min_size = offsetofend(struct accmem_info, numa_node),
		.run = ioctl_info,
	},
	[_IOC_NR(ACCMEM_IOC_ALLOC)] = {
		.cmd = ACCMEM_IOC_ALLOC,
		.size = sizeof_field(union any_command, alloc),
		.min_size = offsetofend(struct accmem_alloc, nr_runs),
		.run = ioctl_alloc,
	},
	[_IOC_NR(ACCMEM_IOC_QUERY)] = {
		.cmd = ACCMEM_IOC_QUERY,
		.size = sizeof_field(union any_command, query),
		.min_size = offsetofend(struct accmem_query, reserved),
		.run = ioctl_query,
	},
	[_IOC_NR(ACCMEM_IOC_REALLOC)] = {
		.cmd = ACCMEM_IOC_REALLOC,
		.size = sizeof_field(union any_command, realloc),
		.min_size = offsetofend(struct accmem_realloc, reserved),
		.run = ioctl_realloc,
	},
	[_IOC_NR(ACCMEM_IOC_BATCH)] = {
		.cmd = ACCMEM_IOC_BATCH,
		.size = sizeof_field(union any_command, batch),
		.min_size = offsetofend(struct accmem_batch, reserved),
		.run = ioctl_batch,
	},
	[_IOC_NR(ACCMEM_IOC_ACCESS)] = {
		.cmd = ACCMEM_IOC_ACCESS,
		.size = sizeof_field(union any_command, access),
		.min_size = offsetofend(struct accmem_access, done),
		.run = ioctl_access,
	},
	[_IOC_NR(ACCMEM_IOC_PREFETCH)] = {
		.cmd = ACCMEM_IOC_PREFETCH,
		.size = sizeof_field(union any_command, prefetch),
		.min_size = offsetofend(struct accmem_prefetch, reserved),
		.run = ioctl_prefetch,
	},
	[_IOC_NR(ACCMEM_IOC_ADVISE)] = {
		.cmd = ACCMEM_IOC_ADVISE,
		.size = sizeof_field(union any_command, advise),
		.min_size = offsetofend(struct accmem_advise, reserved),
		.run = ioctl_advise,
	},
	[_IOC_NR(ACCMEM_IOC_SHRINK)] = {
		.cmd = ACCMEM_IOC_SHRINK,
		.size = sizeof_field(union any_command, shrink),
		.min_size = offsetofend(struct accmem_shrink, reserved),
		.run = ioctl_shrink,
	},
	[_IOC_NR(ACCMEM_IOC_STREAM_CREATE)] = {
		.cmd = ACCMEM_IOC_STREAM_CREATE,
		.size = sizeof_field(union any_command, stream_create),
		.min_size = offsetofend(struct accmem_stream_create, reserved),
		.run = ioctl_stream_create,
	},
	[_IOC_NR(ACCMEM_IOC_TMEM_SETUP)] = {
		.cmd = ACCMEM_IOC_TMEM_SETUP,
		.size = sizeof_field(union any_command, tmem_setup),
		.min_size = offsetofend(struct accmem_tmem_setup, reserved),
		.run = ioctl_tmem_setup,
	},
	[_IOC_NR(ACCMEM_IOC_TMEM_LAUNCH)] = {
		.cmd = ACCMEM_IOC_TMEM_LAUNCH,
		.size = sizeof_field(union any_command, tmem_launch),
		.min_size = offsetofend(struct accmem_tmem_launch, reserved),
		.run = ioctl_tmem_launch,
	},
	[_IOC_NR(ACCMEM_IOC_TMEM_CLUSTER)] = {
		.cmd = ACCMEM_IOC_TMEM_CLUSTER,
		.size = sizeof_field(union any_command, tmem_cluster),
		.min_size = offsetofend(struct accmem_tmem_cluster, members),
		.run = ioctl_tmem_cluster,
	},
};

static noinline int ioctl_by_table(struct accmem_context *ctx, unsigned int nr,
				   void __user *arg)
{
	const struct command_op *op;
	struct command cmd __uninitialized; /* until it is fetched */
	unsigned int index = _IOC_NR(nr);
	int err;

	if (index >= ARRAY_SIZE(ops))
		return -ENOTTY;
	op = &ops[array_index_nospec(index, ARRAY_SIZE(ops))];
	if (op->cmd != nr)
		return -ENOTTY;
	cmd.ctx = ctx;
	cmd.arg = arg;
	cmd.size = op->size;
	err = ioctl_fetch(&cmd, op->min_size);
	if (err)
		return err;
	return op->run(&cmd);
}

/**
 * accmem_ioctl() - the device's ioctl
 * @file: the device's file
 * @nr: ACCMEM_IOC_*
 * @arg: the command's structure, in the caller's memory
 *
 * Return: 0 or the command's error; -ENOTTY for an unknown command.
 */
long accmem_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	/* the shortest command: the table's way would be longer than what it does */
	if (nr == ACCMEM_IOC_FREE)
		return ioctl_free(file->private_data, (void __user *)arg);
	return ioctl_by_table(file->private_data, nr, (void __user *)arg);
}
