/* SPDX-License-Identifier: MIT */
/* Streams: allocation on a stream, and notification of a new descriptor. */
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
 * Call @opened with the descriptor of each stream that is opened from now on. The pools
 * need it: an earlier stream with the same descriptor has been closed, so no memory has
 * to wait for that stream. There is one callback; core/ holds no lock when it
 * calls @opened.
 */
void accmem_watch_streams(void (*opened)(int stream));

#endif /* ACCMEM_RUNTIME_CORE_STREAM_H */
