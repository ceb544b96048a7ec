/* SPDX-License-Identifier: MIT */
/*
 * Stream handles: a program's names for its streams (a cudaStream_t, for example), and
 * for each a stream of the context (accmem_open_stream()).
 *
 * The library does not see the work that a program submits. Therefore the program says
 * when a release at a handle takes effect, in one of two ways:
 *
 * - A bound handle. The program has a stream of the context that the device, or a
 *   fence, advances. After each submission it calls accmem_streams_bind() with the
 *   position that the submitted work reaches.
 * - A marked handle. The program learns by other means that work is done: by a callback
 *   of the stream, or by a call that waits for it. After a submission it calls
 *   accmem_streams_mark(), and with the result accmem_streams_reach() when the work is
 *   done.
 *
 * The first release at a handle that is neither bound nor marked makes it a marked handle.
 * Only requests at this handle get the released memory until the program has reported a mark
 * that was made after the release. The handle NULL, the default stream, is an exception: as
 * long as NULL is neither bound nor marked, the library assumes that only the calling process
 * works on it, and a release at NULL takes effect at once.
 *
 * The functions return 0 or a negative errno value. They are thread-safe, except that
 * accmem_streams_destroy() must be the last call. A child of fork() has the bound handles
 * only.
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
 * accmem_streams_create() - create a set without handles
 * @ctx: the context of the streams, which must exist as long as the set
 * @streams: out: the set of handles
 *
 * Return: 0; -ENOMEM.
 */
int accmem_streams_create(struct accmem_context *ctx,
			  struct accmem_streams **streams);

/**
 * accmem_streams_destroy() - remove all handles, and free the set
 * @streams: the set, on which no other call is in progress, or NULL
 *
 * Each handle is removed as by accmem_streams_forget().
 */
void accmem_streams_destroy(struct accmem_streams *streams);

/**
 * accmem_streams_bind() - set the position that the work on a handle reaches
 * @streams: the set of handles
 * @handle: any value, NULL for the default stream
 * @stream: a stream of the context, which stays open while the handle is bound to it
 * @position: position that @stream has reached when all work submitted to @handle is done
 *
 * A release at @handle is at @position until the next call.
 *
 * The stream is checked when the handle is bound to it, and not when only @position is
 * new.
 *
 * Return: 0; -EINVAL for a negative @stream and for a file that is no stream; -EBADF for a
 * file that is not open; -EACCES for a stream of another context; -EEXIST if the handle is
 * marked; -ERANGE if the position is lower than the last one of the same stream; -ENOMEM.
 */
int accmem_streams_bind(struct accmem_streams *streams, const void *handle,
			int stream, uint64_t position);

/**
 * accmem_streams_mark() - mark the end of the work that a handle has so far
 * @streams: the set of handles
 * @handle: any value, NULL for the default stream
 * @position: out: the mark, for accmem_streams_reach()
 *
 * Earlier releases at the handle wait for this mark at most, later releases for a later
 * mark.
 *
 * Return: 0; -EEXIST if the handle is bound; -EMFILE, -ENFILE, -ENOMEM; -ECONNRESET, -ENODEV.
 */
int accmem_streams_mark(struct accmem_streams *streams, const void *handle,
			uint64_t *position);

/**
 * accmem_streams_reach() - report that the work before a mark is done
 * @streams: the set of handles
 * @handle: the handle
 * @position: result of accmem_streams_mark() for this handle
 *
 * Marks may be reported in any order: a report includes all earlier marks.
 *
 * Return: 0; -ENOENT if the handle is not marked; -EINVAL for a mark that does not exist;
 * -ECANCELED after the end of the context, and if the device is gone.
 */
int accmem_streams_reach(struct accmem_streams *streams, const void *handle,
			 uint64_t position);

/**
 * accmem_streams_forget() - remove a handle whose stream is gone and whose work is done
 * @streams: the set of handles
 * @handle: the handle
 *
 * Memory that was released at a marked handle is free from now on. Memory that was
 * released at a bound handle stays pending until its stream reaches the position.
 *
 * Return: 0; -ENOENT if there is no such handle.
 */
int accmem_streams_forget(struct accmem_streams *streams, const void *handle);

/**
 * accmem_streams_find() - find the stream for an allocation that a handle's work uses
 * @streams: the set of handles
 * @handle: the handle
 * @stream: out: the handle's stream
 *
 * Return: 0; -ENOENT if the handle is neither bound nor marked, and so has no stream.
 */
int accmem_streams_find(struct accmem_streams *streams, const void *handle,
			int *stream);

/**
 * accmem_streams_locate() - find the position for a release at a handle
 * @streams: the set of handles
 * @handle: the handle
 * @stream: out: the handle's stream, or -1 if the release takes effect at once
 * @position: out: position of the stream
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM, -ECONNRESET, -ENODEV if the handle needs a stream.
 */
int accmem_streams_locate(struct accmem_streams *streams, const void *handle,
			  int *stream, uint64_t *position);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_STREAMS_H */
