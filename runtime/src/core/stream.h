/* SPDX-License-Identifier: MIT */
/* Streams: allocation on a stream, checks of a stream, and notification of its end. */
#ifndef ACCMEM_RUNTIME_CORE_STREAM_H
#define ACCMEM_RUNTIME_CORE_STREAM_H

#include <accmem.h>

/* ALLOC, as accmem_allocate_on() of the newest version. */
int accmem_allocate_on_stream(struct accmem_context *ctx,
			      struct accmem_alloc *req, int stream);

/* As accmem_get_stream(), without the text of an error. */
int accmem_query_stream(int stream, struct accmem_stream_query *query);

/*
 * Check that @stream is a stream of the context. 0, also on a device that is gone;
 * -EBADF: no open file; -EINVAL: no stream; -EACCES: a stream of another context.
 */
int accmem_check_stream(struct accmem_context *ctx, int stream);

/*
 * Call @ended with the descriptor of each stream that has ended: the library is about to
 * close it, or a new stream has the descriptor. The pools need it: no memory has to wait
 * for that stream, and no pool may ask for its position any more. There is one callback;
 * core/ holds no lock when it calls @ended.
 */
void accmem_watch_streams(void (*ended)(int stream));

/* Close a stream that the library has opened. Not a cancellation point. */
void accmem_close_stream(int stream);

#endif /* ACCMEM_RUNTIME_CORE_STREAM_H */
