/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams: ordered timelines of a context, and what waits for their positions.
 */
#ifndef ACCMEM_STREAM_H
#define ACCMEM_STREAM_H

#include <linux/dma-fence.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/accmem.h>

#include "types/stream_types.h"

struct accmem_context;
struct accmem_device;
struct file;
struct seq_file;

/* stream.c */
struct accmem_stream *accmem_stream_create(struct accmem_context *ctx, u64 id);
void accmem_stream_put(struct accmem_stream *stream);
int accmem_stream_signal(struct accmem_stream *stream, u64 position,
			 struct llist_head *due);
void accmem_stream_end(struct accmem_stream *stream, struct llist_head *due);
void accmem_stream_settle(struct accmem_stream *stream, struct llist_head *due);
void accmem_stream_settle_all(struct accmem_context *ctx);
bool accmem_stream_hold(struct accmem_stream *stream,
			struct accmem_pending *pending);
struct accmem_pending *
accmem_stream_take(struct accmem_stream *stream,
		   bool (*fits)(struct accmem_pending *pending, void *arg),
		   void *arg);
int accmem_stream_check(struct accmem_stream *stream, u64 position);
void accmem_stream_query(struct accmem_stream *stream,
			 struct accmem_stream_query *query);
struct accmem_stream *accmem_stream_next(struct accmem_context *ctx,
					 unsigned long *id);

/* stream_fence.c */
int accmem_stream_init(void);
void accmem_stream_exit(void);
void accmem_stream_work(struct work_struct *work);
struct dma_fence *accmem_sync_file_fence(int fd);
int accmem_stream_import(struct accmem_stream *stream, u64 position, int fd);
struct file *accmem_stream_export(struct accmem_stream *stream, u64 position);

/* stream_wait.c */
int accmem_stream_wait(struct accmem_stream *stream,
		       const struct accmem_stream_wait *req);

/* stream_file.c */
struct file *accmem_stream_open(struct accmem_context *ctx, u64 id);
struct accmem_stream *accmem_stream_of(struct accmem_context *ctx,
				       const struct file *file);

/* stream_ioctl.c */
long accmem_stream_ioctl(struct file *file, unsigned int nr, unsigned long arg);

/* has the count come to a position? It does not come back. */
static inline bool accmem_stream_has_reached(const struct accmem_stream *stream,
					     u64 position)
{
	return READ_ONCE(stream->reached) >= position;
}

static inline void accmem_stream_get(struct accmem_stream *stream)
{
	kref_get(&stream->refs);
}

#endif /* ACCMEM_STREAM_H */
