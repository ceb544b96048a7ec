/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams: ordered timelines of a context.
 */
#ifndef ACCMEM_STREAM_H
#define ACCMEM_STREAM_H

#include <linux/kref.h>
#include <linux/types.h>

#include "types/stream_types.h"

struct accmem_stream_query;
struct llist_head;

void accmem_stream_put(struct accmem_stream *stream);
void accmem_stream_flush_all(struct accmem_context *ctx);
int accmem_stream_check(struct accmem_stream *stream, u64 position);
void accmem_stream_query(struct accmem_stream *stream,
			 struct accmem_stream_query *query);
struct accmem_stream *accmem_stream_next(struct accmem_context *ctx,
					 unsigned long *id);

/*
 * Has the stream reached a position? The lockless read is safe: the count never falls,
 * so true stays true. False can be out of date.
 */
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
