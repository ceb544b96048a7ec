// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl: the table of commands of /dev/accmemN.
 *
 * The table has one row for each command. The driver copies the command's structure in
 * once, runs the command's function, and that function copies the answer out. The files
 * of streams and CTAs have tables of their own (stream/ioctl.c, tmem/ioctl.c).
 *
 * The checks that all structures share are here: the size of the structure, and that
 * members unknown to this kernel are 0. So are most checks of flags and reserved
 * members.
 *
 * Locking: no lock is held across a copy; QUERY takes ctx->lock for its lookup.
 */
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "alloc/access.h"
#include "alloc/alloc.h"
#include "alloc/free.h"
#include "alloc/pressure.h"
#include "alloc/usage.h"
#include "alloc_ioctl.h"
#include "command.h"
#include "compat/compat.h"
#include "core/account.h"
#include "core/user_struct.h"
#include "export/export.h"
#include "ioctl.h"
#include "memory/bo.h"
#include "memory/retire.h"
#include "revoke.h"
#include "stream/file.h"
#include "tmem/launch.h"
#include "tmem/tmem.h"
#include "types/tmem_types.h"
#include "vm/buffer.h"
#include "vm/lookup.h"

/*
 * Copy the structure in. If it has the size that this kernel knows, copy it word by
 * word: the general copy would be a large part of the time of a short call.
 */
static int ioctl_fetch(struct accmem_command *cmd, size_t min_size)
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
	/*
	 * User space may have changed the size since it was read: use the checked
	 * value.
	 */
	cmd->data.user_size = cmd->user_size;
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;

slowly:
	return accmem_copy_command(&cmd->data, cmd->size, cmd->arg, min_size,
				   &cmd->user_size);
}

/* Return the carveout that INFO reports, or an error. */
static struct accmem_carveout *
ioctl_info_carveout(struct accmem_carveouts *carveouts,
		    const struct accmem_info *info)
{
	struct accmem_carveout *host = accmem_carveouts_host(carveouts);

	if (info->flags & ~ACCMEM_INFO_HOST ||
	    info->carveout >= carveouts->nr_device)
		return ERR_PTR(-EINVAL);
	if (!(info->flags & ACCMEM_INFO_HOST))
		return &carveouts->cvs[array_index_nospec(info->carveout,
							  carveouts->nr_device)];
	if (info->carveout)
		return ERR_PTR(-EINVAL);
	return host ?: ERR_PTR(-EOPNOTSUPP);
}

#define IOCTL_HOST_FEATURES (ACCMEM_FEATURE_HOST | ACCMEM_FEATURE_SHARED)

static void ioctl_info_failed(struct accmem_carveout *cv,
			      struct accmem_info *info)
{
	struct accmem_failed_bytes failed;

	accmem_retire_bytes(cv, &failed);
	info->retired_bytes = failed.retired;
	info->retire_pending_bytes = failed.pending;
	info->retire_failed_bytes = failed.lost;
}

static int ioctl_info(struct accmem_command *cmd)
{
	struct accmem_info *info = &cmd->data.info;
	struct accmem_context *ctx = cmd->ctx;
	struct accmem_carveout *cv = ioctl_info_carveout(ctx->carveouts, info);

	if (IS_ERR(cv))
		return PTR_ERR(cv);
	info->nr_carveouts = ctx->carveouts->nr_device;
	info->features = cv->features | ACCMEM_FEATURE_STREAM |
			 ACCMEM_FEATURE_REALLOC | ACCMEM_FEATURE_WAIT |
			 ACCMEM_FEATURE_EXPORT | ACCMEM_FEATURE_IMPORT |
			 (ctx->carveouts->host_mask ? IOCTL_HOST_FEATURES : 0);
	info->now_ns = ktime_get_ns();
	info->address_base = cv->address_base;
	info->address_span = cv->address_span;
	info->capacity = cv->capacity;
	accmem_usage_space(ctx, BIT(cv->index), &info->free_bytes,
			   &info->largest_run);
	info->context_bytes = accmem_usage_charged(ctx);
	/* READ_ONCE: root may write the parameter at any time. */
	info->context_limit = READ_ONCE(accmem_max_bytes_per_context);
	info->max_alignment = cv->caps.max_alignment;
	info->page_sizes = cv->caps.page_sizes;
	info->granule = ACCMEM_GRANULE;
	info->backing = cv->backing;
	info->translation = cv->translation;
	info->cache_modes = cv->cache_modes;
	info->bandwidth = cv->bandwidth;
	info->numa_node = cv->node;
	ioctl_info_failed(cv, info);
	return accmem_command_respond(cmd);
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
	req->cache_mode = accmem_bo_mapping_mode(accmem_buffer_bo(buf));
	req->carveout = accmem_carveout_number(accmem_buffer_carveout(buf));
	req->page_size = buf->layout.page_size;
	req->nr_runs = accmem_buffer_nr_runs(buf);
	req->kind = accmem_buffer_bo(buf)->shared ?
			    ACCMEM_KIND_SHARED :
			    accmem_buffer_carveout(buf)->kind;
}

static int ioctl_query(struct accmem_command *cmd)
{
	struct accmem_query *req = &cmd->data.query;
	struct accmem_context *ctx = cmd->ctx;
	struct accmem_buffer *buf;

	if (req->flags || req->reserved)
		return -EINVAL;
	spin_lock(&ctx->lock);
	buf = accmem_buffer_find(ctx, req->address);
	if (buf)
		ioctl_describe_query(buf, req);
	spin_unlock(&ctx->lock);
	return buf ? accmem_command_respond(cmd) : -ENOENT;
}

/*
 * Write the answer before the access, so that a bad address fails before anything is
 * done. Write it again afterwards, also after a failure: it has the number of bytes
 * done.
 */
static int ioctl_access(struct accmem_command *cmd)
{
	struct accmem_access *req = &cmd->data.access;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	req->done = 0;
	err = accmem_command_respond(cmd);
	if (err)
		return err;
	err = accmem_access(cmd->ctx, req);
	return accmem_command_respond(cmd) ?: err;
}

static int ioctl_prefetch(struct accmem_command *cmd)
{
	const struct accmem_prefetch *req = &cmd->data.prefetch;

	if (req->flags & ~ACCMEM_PREFETCH_FLAGS || req->reserved)
		return -EINVAL;
	return accmem_prefetch(cmd->ctx, req);
}

static int ioctl_advise(struct accmem_command *cmd)
{
	const struct accmem_advise *req = &cmd->data.advise;

	if (req->flags || req->reserved)
		return -EINVAL;
	return accmem_advise(cmd->ctx, req);
}

/* Write the answer before the query as well: if the address is bad, nothing is done. */
static int ioctl_pressure(struct accmem_command *cmd)
{
	struct accmem_pressure *req = &cmd->data.pressure;
	int err;

	if (req->flags & ~ACCMEM_PRESSURE_FLAGS || req->reserved)
		return -EINVAL;
	req->waiting = 0;
	req->shortfall = 0;
	err = accmem_command_respond(cmd) ?:
					    accmem_pressure_query(cmd->ctx, req);
	return err ?: accmem_command_respond(cmd);
}

static int ioctl_stream_create(struct accmem_command *cmd)
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
	err = accmem_command_respond(cmd);
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

/* Make the dma-buf, and install @fd last: until then nobody else finds it. */
static int ioctl_export_to(struct accmem_command *cmd, int fd)
{
	struct accmem_export_buffer *req = &cmd->data.export;
	struct dma_buf *dma_buf = accmem_export(cmd->ctx, req);
	int err;

	if (IS_ERR(dma_buf))
		return PTR_ERR(dma_buf);
	req->fd = fd;
	err = accmem_command_respond(cmd);
	if (err)
		dma_buf_put(dma_buf);
	else
		fd_install(fd, dma_buf->file);
	return err;
}

static int ioctl_export(struct accmem_command *cmd)
{
	const struct accmem_export_buffer *req = &cmd->data.export;
	int fd, err;

	if (req->flags & ~ACCMEM_EXPORT_FLAGS || req->reserved)
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = ioctl_export_to(cmd, fd);
	if (err)
		put_unused_fd(fd);
	return err;
}

/* The answer is written before the buffer is published, as that of ALLOC. */
static int ioctl_import(struct accmem_command *cmd)
{
	struct accmem_import_buffer *req = &cmd->data.import;
	struct accmem_buffer *buf;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	buf = accmem_import(cmd->ctx, req);
	if (IS_ERR(buf))
		return PTR_ERR(buf) == -EADDRNOTAVAIL ? -ENOMEM : PTR_ERR(buf);
	req->address = buf->address;
	req->mmap_offset = accmem_buffer_mmap_offset(buf);
	err = accmem_command_respond(cmd);
	if (err)
		accmem_alloc_discard(cmd->ctx, buf);
	else
		accmem_alloc_publish(cmd->ctx, buf);
	return err;
}

static int ioctl_tmem_setup(struct accmem_command *cmd)
{
	struct accmem_tmem_setup *req = &cmd->data.tmem_setup;

	if (req->flags & ~ACCMEM_TMEM_STRICT || req->reserved)
		return -EINVAL;
	return accmem_tmem_setup(cmd->ctx, req);
}

static int ioctl_tmem_launch(struct accmem_command *cmd)
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
	err = accmem_command_respond(cmd);
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

/* Launch the CTAs of @launch, and write their descriptors to @user. */
static int ioctl_launch_members(struct accmem_command *cmd,
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

static int ioctl_tmem_cluster(struct accmem_command *cmd)
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

static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_info));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_alloc));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_free));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_query));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_realloc));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_access));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_prefetch));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_advise));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_pressure));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_create));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_export_buffer));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_import_buffer));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_setup));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_launch));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_tmem_cluster));

/*
 * struct ioctl_op - a command
 * @size: size of the structure
 * @min_size: size of the structure in the first version of the ABI
 * @always: the command is executed also while the memory is revoked
 * @run: function of the command
 */
struct ioctl_op {
	size_t size;
	size_t min_size;
	bool always;
	int (*run)(struct accmem_command *cmd);
};

/* The row of a command; @_last is the last member in the first version of the ABI. */
#define IOCTL_OP(_cmd, _run, _type, _last, ...)                    \
	[_IOC_NR(_cmd)] = { .size = sizeof(_type),                 \
			    .min_size = offsetofend(_type, _last), \
			    .run = _run,                           \
			    __VA_ARGS__ }

static const struct ioctl_op ioctl_ops[] = {
	IOCTL_OP(ACCMEM_IOC_INFO, ioctl_info, struct accmem_info, numa_node),
	IOCTL_OP(ACCMEM_IOC_ALLOC, accmem_ioctl_alloc, struct accmem_alloc,
		 nr_runs),
	IOCTL_OP(ACCMEM_IOC_FREE, accmem_ioctl_free, struct accmem_free,
		 reserved, .always = true),
	IOCTL_OP(ACCMEM_IOC_QUERY, ioctl_query, struct accmem_query, reserved),
	IOCTL_OP(ACCMEM_IOC_REALLOC, accmem_ioctl_realloc,
		 struct accmem_realloc, reserved),
	IOCTL_OP(ACCMEM_IOC_ACCESS, ioctl_access, struct accmem_access, done),
	IOCTL_OP(ACCMEM_IOC_PREFETCH, ioctl_prefetch, struct accmem_prefetch,
		 reserved),
	IOCTL_OP(ACCMEM_IOC_ADVISE, ioctl_advise, struct accmem_advise,
		 reserved),
	IOCTL_OP(ACCMEM_IOC_PRESSURE, ioctl_pressure, struct accmem_pressure,
		 reserved),
	IOCTL_OP(ACCMEM_IOC_STREAM_CREATE, ioctl_stream_create,
		 struct accmem_stream_create, reserved),
	IOCTL_OP(ACCMEM_IOC_TMEM_SETUP, ioctl_tmem_setup,
		 struct accmem_tmem_setup, reserved),
	IOCTL_OP(ACCMEM_IOC_TMEM_LAUNCH, ioctl_tmem_launch,
		 struct accmem_tmem_launch, reserved),
	IOCTL_OP(ACCMEM_IOC_TMEM_CLUSTER, ioctl_tmem_cluster,
		 struct accmem_tmem_cluster, members),
	IOCTL_OP(ACCMEM_IOC_EXPORT, ioctl_export, struct accmem_export_buffer,
		 reserved),
	IOCTL_OP(ACCMEM_IOC_IMPORT, ioctl_import, struct accmem_import_buffer,
		 mmap_offset),
};

/**
 * accmem_ioctl() - execute an ioctl of a device file
 * @file: the device's file
 * @nr: ACCMEM_IOC_*
 * @arg: the address of the command's structure in user space
 *
 * Context: Process context. May sleep.
 * Return: 0 or the command's error; -ENOTTY for an unknown command; -ENODEV and
 * -ECONNRESET as accmem_context_check().
 */
long accmem_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	struct accmem_command cmd __uninitialized; /* ioctl_fetch() fills it */
	unsigned int index = _IOC_NR(nr);
	const struct ioctl_op *op;
	int err;

	if (index >= ARRAY_SIZE(ioctl_ops) ||
	    nr != _IO(ACCMEM_IOC_MAGIC, index))
		return -ENOTTY;
	op = &ioctl_ops[array_index_nospec(index, ARRAY_SIZE(ioctl_ops))];
	if (!op->run)
		return -ENOTTY;
	cmd.ctx = file->private_data;
	cmd.arg = (void __user *)arg;
	cmd.size = op->size;
	err = ioctl_fetch(&cmd, op->min_size);
	if (!err && !op->always)
		err = accmem_context_check(cmd.ctx);
	if (err)
		return err;
	return op->run(&cmd);
}
