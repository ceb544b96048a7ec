// SPDX-License-Identifier: MIT
/*
 * Streams: the calls on a stream, and allocation and release in its order.
 *
 * Each call is one ioctl on the context's file or on the stream's.
 *
 * Locking: none. The driver serialises calls on one file.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/buffer.h"
#include "core/call.h"
#include "core/error.h"
#include "core/stream.h"
#include "core/util.h"

/* The callback of accmem_watch_streams(), or NULL. */
static void (*stream_ended)(int stream);

void accmem_watch_streams(void (*ended)(int stream))
{
	__atomic_store_n(&stream_ended, ended, __ATOMIC_RELEASE);
}

static void notify_end(int stream)
{
	void (*ended)(int stream);

	ended = __atomic_load_n(&stream_ended, __ATOMIC_ACQUIRE);
	if (ended)
		ended(stream);
}

static int stream_call(int stream, unsigned long command, void *argument)
{
	return ioctl(stream, command, argument) < 0 ? -errno : 0;
}

int accmem_open_stream(struct accmem_context *ctx, int *stream)
{
	struct accmem_stream_create req = { .size = sizeof(req) };
	int ret;

	ret = accmem_call(ctx, ACCMEM_IOC_STREAM_CREATE, &req);
	if (ret)
		return accmem_fail(ret, "a new stream");
	/* an earlier stream with the same descriptor has been closed */
	notify_end(req.fd);
	*stream = req.fd;
	return 0;
}

void accmem_close_stream(int stream)
{
	notify_end(stream);
	accmem_close_locked(stream);
}

int accmem_signal(int stream, uint64_t position)
{
	struct accmem_stream_signal req = { .size = sizeof(req),
					    .position = position };

	return accmem_fail(stream_call(stream, ACCMEM_IOC_STREAM_SIGNAL, &req),
			   "signal of stream %d at position %" PRIu64, stream,
			   position);
}

int accmem_query_stream(int stream, struct accmem_stream_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return stream_call(stream, ACCMEM_IOC_STREAM_QUERY, query);
}

int accmem_get_stream(int stream, struct accmem_stream_query *query)
{
	return accmem_fail(accmem_query_stream(stream, query),
			   "query of stream %d", stream);
}

int accmem_check_stream(struct accmem_context *ctx, int stream)
{
	/* checks the stream, then the address, at which no buffer is */
	struct accmem_free req = { .size = sizeof(req),
				   .flags = ACCMEM_FREE_STREAM,
				   .fd = stream };
	int ret = accmem_call(ctx, ACCMEM_IOC_FREE, &req);

	return ret == -ENOENT ? 0 : ret;
}

static int wait_for(int stream, uint64_t position, uint32_t flags,
		    uint64_t deadline_ns)
{
	struct accmem_stream_wait req = { .size = sizeof(req),
					  .flags = flags,
					  .position = position,
					  .deadline_ns = deadline_ns };

	return accmem_fail(stream_call(stream, ACCMEM_IOC_STREAM_WAIT, &req),
			   "wait for position %" PRIu64 " of stream %d",
			   position, stream);
}

int accmem_wait(int stream, uint64_t position)
{
	return wait_for(stream, position, 0, 0);
}

int accmem_wait_until(int stream, uint64_t position, uint64_t deadline_ns)
{
	return wait_for(stream, position, 0, deadline_ns);
}

int accmem_try_wait(int stream, uint64_t position)
{
	return wait_for(stream, position, ACCMEM_STREAM_NONBLOCK, 0);
}

int accmem_import_fence(int stream, uint64_t position, int sync_file)
{
	struct accmem_stream_import req = { .size = sizeof(req),
					    .position = position,
					    .fd = sync_file };

	return accmem_fail(stream_call(stream, ACCMEM_IOC_STREAM_IMPORT, &req),
			   "import of file %d for position %" PRIu64
			   " of stream %d",
			   sync_file, position, stream);
}

int accmem_export_fence(int stream, uint64_t position, int *sync_file)
{
	struct accmem_stream_export req = { .size = sizeof(req),
					    .position = position };
	int ret;

	ret = stream_call(stream, ACCMEM_IOC_STREAM_EXPORT, &req);
	if (!ret)
		*sync_file = req.fd;
	return accmem_fail(ret, "export of position %" PRIu64 " of stream %d",
			   position, stream);
}

int accmem_allocate_on_stream(struct accmem_context *ctx,
			      struct accmem_alloc *req, int stream)
{
	req->flags |= ACCMEM_ALLOC_STREAM;
	req->stream = stream;
	return accmem_allocate_now(ctx, req);
}

int accmem_release_at(struct accmem_context *ctx, uint64_t address, int stream,
		      uint64_t position)
{
	struct accmem_free req = { .size = sizeof(req),
				   .flags = ACCMEM_FREE_STREAM,
				   .address = address,
				   .fd = stream,
				   .position = position };
	int ret = accmem_free_unmapped(ctx, &req);

	return accmem_fail(ret,
			   "release of address %#" PRIx64
			   " at position %" PRIu64 " of stream %d",
			   address, position, stream);
}

int accmem_release_after(struct accmem_context *ctx, uint64_t address,
			 int sync_file)
{
	struct accmem_free req = { .size = sizeof(req),
				   .flags = ACCMEM_FREE_FENCE,
				   .address = address,
				   .fd = sync_file };
	int ret = accmem_free_unmapped(ctx, &req);

	return accmem_fail(ret,
			   "release of address %#" PRIx64
			   " after the fence of file %d",
			   address, sync_file);
}
