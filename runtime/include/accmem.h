/* SPDX-License-Identifier: MIT */
/*
 * libaccmem: device memory of an accelerator, from userspace.
 *
 * Functions return 0 or a negative errno value and are thread-safe, except
 * that accmem_close() must be the last call on a context.
 */
#ifndef ACCMEM_H
#define ACCMEM_H

#include <linux/accmem.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One open file of a device: the owner of its buffers. */
struct accmem_context;

/**
 * accmem_open() - open a device
 * @path: device node; NULL for $ACCMEM_DEVICE, which a program with raised rights
 *	does not look at, else /dev/accmem0
 * @ctx: out: the context
 *
 * Reserves one window of host addresses for the device's addresses, so that
 * the two differ by a constant; where the address space is too small for it,
 * buffers are mapped anywhere.
 *
 * Return: 0; -ENOMEM; the errors of open(2), among them -EMFILE when the user
 * has as many contexts as it may.
 */
int accmem_open(const char *path, struct accmem_context **ctx);

/**
 * accmem_close() - close the file and forget the context
 * @ctx: the context, on which no other call is in progress, or NULL
 *
 * Unmaps what accmem_map() mapped. Where no other process has the file, every
 * buffer that was not freed goes with it.
 */
void accmem_close(struct accmem_context *ctx);

/**
 * accmem_fd() - the file descriptor, for ioctls of one's own
 * @ctx: the context, which keeps it
 *
 * Return: the descriptor.
 */
int accmem_fd(const struct accmem_context *ctx);

/**
 * accmem_get_info() - ACCMEM_IOC_INFO
 * @ctx: the context
 * @carveout: index of the carveout, 0 for the first
 * @info: out: all of it; needs no preparation
 *
 * Return: 0; -EINVAL for a carveout that is not there.
 */
int accmem_get_info(struct accmem_context *ctx, uint32_t carveout,
		    struct accmem_info *info);

/**
 * accmem_allocate() - ACCMEM_IOC_ALLOC
 * @ctx: the context
 * @req: length in bytes and whatever else is wanted, the rest zero; size is
 *	filled in. Results are in it; free_bytes and largest_run are those of a
 *	failure with -ENOMEM or -ETIMEDOUT, else 0.
 *
 * Return: 0; the errors of struct accmem_alloc.
 */
int accmem_allocate(struct accmem_context *ctx, struct accmem_alloc *req);

/**
 * accmem_malloc() - allocate with the default alignment (64 bytes) and policy
 * @ctx: the context
 * @length: bytes, at least 1
 * @address: out: device address
 *
 * Return: as accmem_allocate().
 */
int accmem_malloc(struct accmem_context *ctx, uint64_t length,
		  uint64_t *address);

/**
 * accmem_release() - ACCMEM_IOC_FREE
 * @ctx: the context
 * @address: device address of a buffer's first byte
 *
 * Also unmaps what accmem_map() mapped of the buffer.
 *
 * Return: 0; -ENOENT where no buffer is, -EINVAL inside one; -EBUSY while a REALLOC of
 * it is in progress; -ENOMEM where it cannot be unmapped.
 */
int accmem_release(struct accmem_context *ctx, uint64_t address);

/**
 * accmem_reallocate() - ACCMEM_IOC_REALLOC
 * @ctx: the context
 * @req: device address and new length in bytes, flags if any, the rest zero; size is
 *	filled in. Results are in it, the address among them.
 *
 * What accmem_map() mapped of a buffer that keeps its address stays mapped, as far as
 * the buffer reaches; of one that has grown, accmem_map() maps all, at the same
 * pointer where there is a window. What it mapped of one that moved is unmapped.
 *
 * Return: 0; -ENOENT, -EINVAL, -EPERM, -EBUSY, -EDQUOT, -ENOMEM, -EOVERFLOW, -EINTR as
 * struct accmem_realloc says, and the buffer and its mapping are what they were.
 */
int accmem_reallocate(struct accmem_context *ctx, struct accmem_realloc *req);

/**
 * accmem_get_query() - ACCMEM_IOC_QUERY
 * @ctx: the context
 * @address: device address, anywhere in a buffer
 * @query: out: the buffer; needs no preparation
 *
 * Return: 0; -ENOENT where no buffer is.
 */
int accmem_get_query(struct accmem_context *ctx, uint64_t address,
		     struct accmem_query *query);

/**
 * accmem_device_access() - ACCMEM_IOC_ACCESS: read or write as the device does
 * @ctx: the context
 * @req: device address, length in bytes, data and op, the rest zero; size is filled in.
 *	How many bytes were read or written is in its done, also with an error.
 *
 * Return: 0; -EINVAL, -EOVERFLOW, -ENOENT, -ENXIO, -EBUSY, -EFAULT, -ENOMEM, -EINTR as
 * struct accmem_access says.
 */
int accmem_device_access(struct accmem_context *ctx, struct accmem_access *req);

/**
 * accmem_prefetch_shared() - ACCMEM_IOC_PREFETCH: move a part of a shared buffer
 * @ctx: the context
 * @address: device address, anywhere in a shared buffer
 * @length: bytes, at least 1
 * @flags: ACCMEM_PREFETCH_HOST to move it to the host, or 0 for the device
 *
 * Return: 0; -EINVAL, -EOVERFLOW, -ENOENT, -ENXIO, -EOPNOTSUPP, -EBUSY, -ENOMEM, -EINTR
 * as struct accmem_prefetch says.
 */
int accmem_prefetch_shared(struct accmem_context *ctx, uint64_t address,
			   uint64_t length, uint32_t flags);

/**
 * accmem_advise_shared() - ACCMEM_IOC_ADVISE: how a part of a shared buffer will be used
 * @ctx: the context
 * @address: device address, anywhere in a shared buffer
 * @length: bytes, at least 1
 * @advice: enum accmem_advice
 *
 * Return: 0; -EINVAL, -EOVERFLOW, -ENOENT, -ENXIO, -EOPNOTSUPP, -EINTR as struct
 * accmem_advise says.
 */
int accmem_advise_shared(struct accmem_context *ctx, uint64_t address,
			 uint64_t length, uint32_t advice);

/**
 * accmem_map() - map a whole buffer
 * @ctx: the context
 * @address: device address of its first byte
 * @prot: PROT_READ, PROT_WRITE or both
 * @pointer: out: its first byte
 *
 * A buffer that is mapped already keeps its place: the pointer is the same, and
 * @prot is added to what was allowed.
 *
 * Return: 0; -ENOENT, -EINVAL as accmem_release(); the errors of mmap(2).
 */
int accmem_map(struct accmem_context *ctx, uint64_t address, int prot,
	       void **pointer);

/**
 * accmem_unmap() - undo accmem_map(), however often it was called
 * @ctx: the context
 * @address: device address of the buffer's first byte
 *
 * Return: 0; -ENOENT for what is not mapped, -EINVAL inside a mapped buffer; -ENOMEM
 * where the kernel cannot unmap.
 */
int accmem_unmap(struct accmem_context *ctx, uint64_t address);

/*
 * Streams. A stream is a file descriptor, close-on-exec, which close(2) ends; it
 * can be passed to whoever does the work. The rules are those of
 * <linux/accmem.h>.
 */

/**
 * accmem_open_stream() - ACCMEM_IOC_STREAM_CREATE
 * @ctx: the context
 * @stream: out: the stream's file descriptor
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM.
 */
int accmem_open_stream(struct accmem_context *ctx, int *stream);

/**
 * accmem_signal() - ACCMEM_IOC_STREAM_SIGNAL: reach a position
 * @stream: the stream
 * @position: what its count becomes
 *
 * Return: 0; -ERANGE where the count is as large already, -EBUSY where a fence
 * has to come first, -ECANCELED when the context has ended.
 */
int accmem_signal(int stream, uint64_t position);

/**
 * accmem_get_stream() - ACCMEM_IOC_STREAM_QUERY
 * @stream: the stream
 * @query: out: how far it is; needs no preparation
 *
 * Return: 0.
 */
int accmem_get_stream(int stream, struct accmem_stream_query *query);

/**
 * accmem_wait() - ACCMEM_IOC_STREAM_WAIT: until a position is reached
 * @stream: the stream
 * @position: the position
 *
 * Return: 0; -EINTR; -ECANCELED when the context has ended.
 */
int accmem_wait(int stream, uint64_t position);

/**
 * accmem_wait_until() - the same, until a deadline
 * @stream: the stream
 * @position: the position
 * @deadline_ns: on the host's CLOCK_MONOTONIC (accmem_info.now_ns); 0 for none
 *
 * Return: as accmem_wait(); -ETIMEDOUT.
 */
int accmem_wait_until(int stream, uint64_t position, uint64_t deadline_ns);

/**
 * accmem_try_wait() - is a position reached?
 * @stream: the stream
 * @position: the position; poll(2) is about it from here on
 *
 * Return: 0 if it is; -EAGAIN; -ECANCELED when the context has ended.
 */
int accmem_try_wait(int stream, uint64_t position);

/**
 * accmem_import_fence() - ACCMEM_IOC_STREAM_IMPORT: reach a position after a
 *	fence
 * @stream: the stream
 * @position: the position
 * @sync_file: the fence, which may be closed then
 *
 * Return: 0; -EBADF, -EINVAL, -ERANGE, -ECANCELED, -ENOMEM.
 */
int accmem_import_fence(int stream, uint64_t position, int sync_file);

/**
 * accmem_export_fence() - ACCMEM_IOC_STREAM_EXPORT: a position as a fence
 * @stream: the stream
 * @position: reached, or to be reached after an imported fence
 * @sync_file: out: its file descriptor
 *
 * Return: 0; -EPERM where userspace has to signal the position; -EMFILE; -ENOMEM, also
 * where the system has too many open files.
 */
int accmem_export_fence(int stream, uint64_t position, int *sync_file);

/**
 * accmem_allocate_on() - ACCMEM_IOC_ALLOC for work on a stream
 * @ctx: the context
 * @stream: a stream of it, whose pending frees will do
 * @req: as for accmem_allocate(); the position in it is 0, or from where on others
 *	than the stream may touch the memory, which does not read as zero then
 *
 * Return: as accmem_allocate(); -EBADF, -EACCES for the stream.
 */
int accmem_allocate_on(struct accmem_context *ctx, int stream,
		       struct accmem_alloc *req);

/**
 * accmem_release_at() - ACCMEM_IOC_FREE at a position of a stream
 * @ctx: the context
 * @address: device address of a buffer's first byte
 * @stream: a stream of the context
 * @position: before which the memory is not used again
 *
 * The name is gone at once, and so is what accmem_map() mapped of the buffer.
 *
 * Return: as accmem_release(); -EBADF, -EINVAL, -EACCES for the stream.
 */
int accmem_release_at(struct accmem_context *ctx, uint64_t address, int stream,
		      uint64_t position);

/**
 * accmem_release_after() - ACCMEM_IOC_FREE after a fence
 * @ctx: the context
 * @address: device address of a buffer's first byte
 * @sync_file: the fence, which may be closed then
 *
 * As accmem_release_at() otherwise.
 *
 * Return: as accmem_release(); -EBADF, -EINVAL for the sync_file.
 */
int accmem_release_after(struct accmem_context *ctx, uint64_t address,
			 int sync_file);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_H */
