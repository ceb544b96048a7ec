/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions of stream/ that only files in stream/ call.
 */
#ifndef ACCMEM_STREAM_INTERNAL_H
#define ACCMEM_STREAM_INTERNAL_H

#include <linux/types.h>

struct accmem_context;
struct accmem_due;
struct accmem_pending;
struct accmem_stream;
struct accmem_stream_wait;
struct accmem_stream_waiter;
struct file;
struct llist_head;
struct work_struct;

/* stream.c */
struct accmem_stream *accmem_stream_create(struct accmem_context *ctx, u64 id);
int accmem_stream_signal(struct accmem_stream *stream, u64 position,
			 struct llist_head *due);
void accmem_stream_reach(struct accmem_stream *stream, u64 position);
void accmem_stream_enqueue(struct accmem_stream *stream,
			   struct accmem_stream_waiter *waiter);
void accmem_stream_dequeue(struct accmem_stream *stream,
			   struct accmem_stream_waiter *waiter);
void accmem_stream_end(struct accmem_stream *stream, struct llist_head *due);
void accmem_stream_flush(struct accmem_stream *stream, struct llist_head *due);
bool accmem_stream_defer(struct accmem_stream *stream,
			 struct accmem_pending *pending);
struct accmem_pending *
accmem_stream_pop(struct accmem_stream *stream,
		  bool (*fits)(struct accmem_pending *pending, void *arg),
		  void *arg);

/* export.c */
struct file *accmem_stream_export(struct accmem_stream *stream, u64 position);
void accmem_exports_signal(struct accmem_stream *stream);

/* fence.c */
void accmem_stream_work(struct work_struct *work);
int accmem_stream_import(struct accmem_stream *stream, u64 position, int fd);

/* wait.c */
int accmem_stream_wait(struct accmem_stream *stream,
		       const struct accmem_stream_wait *req);

/* ioctl.c */
long accmem_stream_ioctl(struct file *file, unsigned int nr, unsigned long arg);

/* pending.c */
void accmem_pending_finish(struct llist_head *due);

/* pending_fence.c */
bool accmem_pending_arm(struct accmem_pending *pending);
bool accmem_pending_collect_signaled(struct accmem_due *due);

#endif /* ACCMEM_STREAM_INTERNAL_H */
