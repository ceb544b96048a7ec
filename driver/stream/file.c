// SPDX-License-Identifier: GPL-2.0
/*
 * File of a stream: open, poll, fdinfo and close.
 *
 * A program uses a stream through a file descriptor. The file holds references to the
 * stream and to its context. A call of the context that refers to a stream (FREE,
 * ALLOC) passes the stream's file; accmem_stream_of() refuses the file of another
 * context. The last close of the file ends the stream.
 *
 * Locking: the close takes stream->finishing. poll() reads fields without a lock.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/seq_file.h>

#include "internal.h"
#include "stream/file.h"
#include "stream/pending.h"
#include "stream/stream.h"
#include "vm/context.h"

static int stream_file_release(struct inode *inode, struct file *file)
{
	struct accmem_stream *stream = file->private_data;
	struct accmem_context *ctx = stream->ctx;
	LLIST_HEAD(due);

	mutex_lock(&stream->finishing);
	accmem_stream_end(stream, &due);
	accmem_pending_finish(&due);
	mutex_unlock(&stream->finishing);
	xa_erase(&ctx->streams, stream->id);
	accmem_stream_put(stream);
	accmem_context_put(ctx);
	return 0;
}

/*
 * Report EPOLLIN when the position of the last NONBLOCK wait is reached, and EPOLLHUP
 * when the stream has ended. The lockless reads are safe: a change that causes
 * an event is followed by a wake-up, after which poll() reads the fields again.
 */
static __poll_t stream_file_poll(struct file *file,
				 struct poll_table_struct *table)
{
	struct accmem_stream *stream = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &stream->polls, table);
	if (accmem_stream_has_reached(stream, READ_ONCE(stream->poll)))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(stream->ended))
		mask |= EPOLLERR | EPOLLHUP;
	return mask;
}

static void stream_file_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct accmem_stream *stream = file->private_data;
	struct accmem_stream_query query = {};

	accmem_stream_query(stream, &query);
	seq_printf(m, "accmem-device:\t%s\n", stream->accounts->name);
	seq_printf(m, "accmem-context:\t%llu\n", stream->context);
	seq_printf(m, "accmem-stream:\t%llu\n", stream->id);
	seq_printf(m, "accmem-stream-reached:\t%llu\n", query.reached);
	seq_printf(m, "accmem-stream-claimed:\t%llu\n", query.claimed);
	seq_printf(m, "accmem-stream-pending:\t%llu\n", query.pending);
	seq_printf(m, "accmem-stream-error:\t%d\n", query.error);
	seq_printf(m, "accmem-stream-ended:\t%d\n",
		   !!(query.state & ACCMEM_STREAM_ENDED));
}

static const struct file_operations stream_fops = {
	.owner = THIS_MODULE,
	.release = stream_file_release,
	.unlocked_ioctl = accmem_stream_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = stream_file_poll,
	.show_fdinfo = stream_file_show_fdinfo,
	.llseek = noop_llseek,
};

/**
 * accmem_stream_of() - get the stream of a file
 * @ctx: the context to which the stream must belong
 * @file: any file
 *
 * Context: Any context. Does not sleep.
 * Return: the stream, which is valid while the caller holds the file; -EINVAL when the
 * file is not the file of a stream; -EACCES when the stream belongs to another context.
 */
struct accmem_stream *accmem_stream_of(struct accmem_context *ctx,
				       const struct file *file)
{
	struct accmem_stream *stream;

	if (file->f_op != &stream_fops)
		return ERR_PTR(-EINVAL);
	stream = file->private_data;
	return stream->ctx == ctx ? stream : ERR_PTR(-EACCES);
}

/**
 * accmem_stream_open() - create a stream and its file
 * @ctx: the context
 * @id: number of the stream, unique in the context
 *
 * Context: Process context. May sleep.
 * Return: the file, which the caller installs; -ENFILE, -ENOMEM; -ENODEV if the device is
 * gone.
 */
struct file *accmem_stream_open(struct accmem_context *ctx, u64 id)
{
	struct accmem_stream *stream;
	struct file *file;
	int err;

	stream = accmem_stream_create(ctx, id);
	if (!stream)
		return ERR_PTR(-ENOMEM);
	INIT_WORK(&stream->work, accmem_stream_work);
	file = anon_inode_getfile("[accmem-stream]", &stream_fops, stream,
				  O_RDWR);
	if (IS_ERR(file)) {
		accmem_stream_put(stream);
		return file;
	}
	accmem_context_get(ctx);
	err = xa_insert(&ctx->streams, id, stream, GFP_KERNEL_ACCOUNT);
	/* The revocation that ends all streams may not have seen this one. */
	if (!err && READ_ONCE(ctx->carveouts->gone))
		err = -ENODEV;
	if (err) {
		fput(file);
		return ERR_PTR(err);
	}
	return file;
}

/**
 * accmem_streams_end() - end all streams of a context
 * @ctx: the context, which is ending or whose device is gone
 *
 * No position will be signalled any more: the waits end, and the frees that have nothing to
 * wait for are finished. The files of the streams stay.
 *
 * Context: Process context. Takes and releases the locks of streams and contexts. May sleep.
 */
void accmem_streams_end(struct accmem_context *ctx)
{
	struct accmem_stream *stream;
	unsigned long id = 0;
	LLIST_HEAD(due);

	while ((stream = accmem_stream_next(ctx, &id))) {
		accmem_stream_end(stream, &due);
		accmem_stream_put(stream);
		accmem_pending_finish(&due);
		cond_resched();
	}
}
