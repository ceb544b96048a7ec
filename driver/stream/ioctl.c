// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl table of a stream's file.
 *
 * A table describes each command: its number, the size of its structure, the size of
 * the structure in the first version of the ABI, and its handler. accmem_stream_ioctl()
 * copies the structure and calls the handler, which checks flags and reserved members.
 * driver/ioctl.c has the table of the device's file.
 *
 * Locking: STREAM_SIGNAL holds stream->finishing; the other handlers take no lock here.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "core/user_struct.h"
#include "internal.h"
#include "stream/pending.h"
#include "stream/stream.h"

union any_call {
	struct accmem_stream_signal signal;
	struct accmem_stream_query query;
	struct accmem_stream_wait wait;
	struct accmem_stream_import import;
	struct accmem_stream_export export;
};

/*
 * struct call - a call in progress
 * @stream: the stream of the file
 * @arg: the caller's structure
 * @user_size: size of the caller's structure in bytes
 * @size: size of the structure in this kernel, in bytes
 * @data: copy of the caller's structure
 */
struct call {
	struct accmem_stream *stream;
	void __user *arg;
	u32 user_size;
	size_t size;
	union any_call data;
};

/*
 * Copy the structure with its results to the caller. A caller with an older, shorter
 * structure gets only the members of that structure.
 */
static int stream_ioctl_respond(struct call *call)
{
	size_t size = min_t(size_t, call->user_size, call->size);

	return copy_to_user(call->arg, &call->data, size) ? -EFAULT : 0;
}

static int stream_ioctl_signal(struct call *call)
{
	const struct accmem_stream_signal *req = &call->data.signal;
	struct accmem_stream *stream = call->stream;
	LLIST_HEAD(due);
	int err;

	if (req->flags)
		return -EINVAL;
	err = mutex_lock_killable(&stream->finishing);
	if (err)
		return err;
	err = accmem_stream_signal(stream, req->position, &due);
	accmem_pending_finish(&due);
	mutex_unlock(&stream->finishing);
	return err;
}

static int stream_ioctl_query(struct call *call)
{
	struct accmem_stream_query *req = &call->data.query;

	if (req->flags)
		return -EINVAL;
	accmem_stream_query(call->stream, req);
	return stream_ioctl_respond(call);
}

static int stream_ioctl_wait(struct call *call)
{
	const struct accmem_stream_wait *req = &call->data.wait;

	if (req->flags & ~ACCMEM_STREAM_NONBLOCK ||
	    (req->flags && req->deadline_ns))
		return -EINVAL;
	return accmem_stream_wait(call->stream, req);
}

static int stream_ioctl_import(struct call *call)
{
	const struct accmem_stream_import *req = &call->data.import;

	if (req->flags || req->reserved)
		return -EINVAL;
	return accmem_stream_import(call->stream, req->position, req->fd);
}

static int stream_ioctl_export(struct call *call)
{
	struct accmem_stream_export *req = &call->data.export;
	struct file *file;
	int err;

	if (req->flags || req->reserved)
		return -EINVAL;
	err = get_unused_fd_flags(O_CLOEXEC);
	if (err < 0)
		return err;
	req->fd = err;
	err = stream_ioctl_respond(call);
	if (err)
		goto err_fd;
	file = accmem_stream_export(call->stream, req->position);
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

/*
 * struct call_op - one command of the table
 * @cmd: ACCMEM_IOC_STREAM_*
 * @size: size of the structure in bytes
 * @min_size: size of the structure in the first version of the ABI, in bytes
 * @run: the handler
 */
struct call_op {
	unsigned int cmd;
	size_t size;
	size_t min_size;
	int (*run)(struct call *call);
};

static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_signal));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_query));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_wait));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_import));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_stream_export));

#define FIRST _IOC_NR(ACCMEM_IOC_STREAM_SIGNAL)

static const struct call_op ops[] = {
	[_IOC_NR(ACCMEM_IOC_STREAM_SIGNAL) - FIRST] = {
		.cmd = ACCMEM_IOC_STREAM_SIGNAL,
		.size = sizeof(struct accmem_stream_signal),
		.min_size = offsetofend(struct accmem_stream_signal, position),
		.run = stream_ioctl_signal,
	},
	[_IOC_NR(ACCMEM_IOC_STREAM_QUERY) - FIRST] = {
		.cmd = ACCMEM_IOC_STREAM_QUERY,
		.size = sizeof(struct accmem_stream_query),
		.min_size = offsetofend(struct accmem_stream_query, id),
		.run = stream_ioctl_query,
	},
	[_IOC_NR(ACCMEM_IOC_STREAM_WAIT) - FIRST] = {
		.cmd = ACCMEM_IOC_STREAM_WAIT,
		.size = sizeof(struct accmem_stream_wait),
		.min_size = offsetofend(struct accmem_stream_wait, deadline_ns),
		.run = stream_ioctl_wait,
	},
	[_IOC_NR(ACCMEM_IOC_STREAM_IMPORT) - FIRST] = {
		.cmd = ACCMEM_IOC_STREAM_IMPORT,
		.size = sizeof(struct accmem_stream_import),
		.min_size = offsetofend(struct accmem_stream_import, reserved),
		.run = stream_ioctl_import,
	},
	[_IOC_NR(ACCMEM_IOC_STREAM_EXPORT) - FIRST] = {
		.cmd = ACCMEM_IOC_STREAM_EXPORT,
		.size = sizeof(struct accmem_stream_export),
		.min_size = offsetofend(struct accmem_stream_export, reserved),
		.run = stream_ioctl_export,
	},
};

/**
 * accmem_stream_ioctl() - handle an ioctl of a stream's file
 * @file: the file
 * @nr: ACCMEM_IOC_STREAM_*
 * @arg: address of the command's structure in the caller's memory
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENOTTY for an unknown command; an error of accmem_copy_command(), or of
 * the command.
 */
long accmem_stream_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	unsigned int index = _IOC_NR(nr) - FIRST;
	const struct call_op *op;
	struct call call;
	int err;

	if (index >= ARRAY_SIZE(ops))
		return -ENOTTY;
	op = &ops[array_index_nospec(index, ARRAY_SIZE(ops))];
	if (op->cmd != nr)
		return -ENOTTY;
	call.stream = file->private_data;
	call.arg = (void __user *)arg;
	call.size = op->size;
	err = accmem_copy_command(&call.data, call.size, call.arg, op->min_size,
				  &call.user_size);
	if (err)
		return err;
	return op->run(&call);
}
