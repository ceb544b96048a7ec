/* SPDX-License-Identifier: MIT */
/*
 * Stream handles: what a program calls a stream (a cudaStream_t, say), as streams of
 * a context (accmem_open_stream()).
 *
 * The library knows nothing of the work that a program submits to its streams, so the
 * program says what a release at a handle has to wait for, in one of two ways:
 *
 * - It has a stream of the context that the device, or a fence, moves on. With
 *   accmem_streams_bind() it says, whenever it has submitted work, which position
 *   that work reaches.
 * - It learns from elsewhere that work is done: a callback on the stream, or a call
 *   that waits for it. It calls accmem_streams_mark() after it has submitted the
 *   work, and accmem_streams_reach() with the result when the work is done.
 *
 * A handle that nobody has bound is of the second kind from the first release on:
 * what is released at it stays unused by others until it is reached. NULL, the
 * default stream, has no work but the calling process's own until somebody binds or
 * marks it: a release at it takes effect at once.
 *
 * Functions return 0 or a negative errno value and are thread-safe, except that
 * accmem_streams_destroy() must be the last call. A child of fork() starts with the
 * handles that were bound and no others.
 */
#ifndef ACCMEM_STREAMS_H
#define ACCMEM_STREAMS_H

#include <accmem.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The stream handles of a program, or of a part of it. */
struct accmem_streams;

/**
 * accmem_streams_create() - begin with no handle
 * @ctx: the context of the streams, which has to stay as long
 * @streams: out: the handles
 *
 * Return: 0; -ENOMEM.
 */
int accmem_streams_create(struct accmem_context *ctx,
			  struct accmem_streams **streams);

/**
 * accmem_streams_destroy() - forget all handles
 * @streams: the handles, on which no other call is in progress, or NULL
 *
 * As accmem_streams_forget() of each.
 */
void accmem_streams_destroy(struct accmem_streams *streams);

/**
 * accmem_streams_bind() - say which position the work on a handle reaches
 * @streams: the handles
 * @handle: any value, NULL for the default stream
 * @stream: a stream of the context, which stays open while the handle is bound to it
 * @position: which it has reached when all work submitted to @handle is done
 *
 * A release at @handle is at @position from now on, until the next call.
 *
 * Return: 0; -EINVAL for a negative @stream, -EEXIST where the handle has been marked
 * or released at, -ERANGE for a position of the same stream below the one before;
 * -ENOMEM.
 */
int accmem_streams_bind(struct accmem_streams *streams, const void *handle,
			int stream, uint64_t position);

/**
 * accmem_streams_mark() - name the point that the work on a handle has come to
 * @streams: the handles
 * @handle: any value, NULL for the default stream
 * @position: out: the point, for accmem_streams_reach()
 *
 * What was released at the handle up to now waits for this point at most, and what is
 * released later for a later one.
 *
 * Return: 0; -EEXIST where the handle is bound; -EMFILE, -ENFILE, -ENOMEM.
 */
int accmem_streams_mark(struct accmem_streams *streams, const void *handle,
			uint64_t *position);

/**
 * accmem_streams_reach() - the work up to a point is done
 * @streams: the handles
 * @handle: the handle
 * @position: what accmem_streams_mark() has returned for it
 *
 * Points may be reported in any order: a later one includes those before.
 *
 * Return: 0; -ENOENT for a handle that was not marked, -EINVAL for a point that it
 * has not come to; -ECANCELED when the context has ended.
 */
int accmem_streams_reach(struct accmem_streams *streams, const void *handle,
			 uint64_t position);

/**
 * accmem_streams_forget() - the program's stream is gone, and its work done
 * @streams: the handles
 * @handle: the handle
 *
 * What was released at it may be used by anybody, unless it was bound: then what its
 * stream has not reached stays pending on that.
 *
 * Return: 0; -ENOENT for an unknown one.
 */
int accmem_streams_forget(struct accmem_streams *streams, const void *handle);

/**
 * accmem_streams_find() - where an allocation for a handle's work may be on
 * @streams: the handles
 * @handle: the handle
 * @stream: out: its stream
 *
 * Return: 0; -ENOENT where nothing was released at it and nobody has bound it, so
 * that it has no stream.
 */
int accmem_streams_find(struct accmem_streams *streams, const void *handle,
			int *stream);

/**
 * accmem_streams_locate() - where a release at a handle has to be
 * @streams: the handles
 * @handle: the handle
 * @stream: out: its stream, or -1 where a release takes effect at once
 * @position: out: the position of it
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM for a handle that needs a stream.
 */
int accmem_streams_locate(struct accmem_streams *streams, const void *handle,
			  int *stream, uint64_t *position);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_STREAMS_H */
