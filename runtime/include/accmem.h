/* SPDX-License-Identifier: MIT */
/*
 * libaccmem: device memory of an accelerator, from userspace.
 *
 * A context is an open device and owns buffers. A buffer is memory of the device, named
 * by its device address; the process can map it. A stream is a counter that orders frees
 * behind work of the device.
 *
 * The functions return 0 or a negative errno value. They are thread-safe, except that
 * accmem_close() must be the last call on a context. After an error accmem_last_error()
 * (<accmem_pool.h>) describes it.
 *
 * A program need not set the member size of a structure that it passes to the library.
 */
#ifndef ACCMEM_H
#define ACCMEM_H

#include <linux/accmem.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A context: one open file of a device, which owns the buffers allocated on it. */
struct accmem_context;

/**
 * accmem_open() - open a device
 * @path: device node; NULL for $ACCMEM_DEVICE, or /dev/accmem0 if that is not set. A
 *	set-user-ID program ignores the variable
 * @ctx: out: the context
 *
 * Reserves a window of host addresses for the device's addresses, so that a pointer and
 * its device address differ by a constant. If the address space is too small for the
 * window, buffers are mapped at any address.
 *
 * Return: 0; -ENOMEM; -ENOTTY if @path is not an accmem device; -ECONNRESET while the device
 * is being reset; -ENODEV if the device is gone; the errors of open(2), among them -EMFILE if
 * the user has the largest number of contexts.
 */
int accmem_open(const char *path, struct accmem_context **ctx);

/**
 * accmem_close() - close a context
 * @ctx: the context, on which no other call is in progress, or NULL
 *
 * Unmaps all buffers. If no other process has the file open, the buffers that were not
 * freed are freed at once, and so is memory that waits for accmem_signal(). The device must
 * have finished with this memory. The end of the process does the same. Memory that waits for
 * a fence, or for a position that an imported fence reaches, keeps waiting.
 */
void accmem_close(struct accmem_context *ctx);

/**
 * accmem_fd() - get the file descriptor, for other ioctls
 * @ctx: the context, which owns the descriptor
 *
 * Return: the descriptor.
 */
int accmem_fd(const struct accmem_context *ctx);

/**
 * accmem_get_info() - ACCMEM_IOC_INFO
 * @ctx: the context
 * @carveout: index of the carveout, 0 for the first
 * @info: out: needs no initialisation
 *
 * Return: 0; -EINVAL if there is no such carveout; -ECONNRESET, -ENODEV.
 */
int accmem_get_info(struct accmem_context *ctx, uint32_t carveout,
		    struct accmem_info *info);

/**
 * accmem_allocate() - ACCMEM_IOC_ALLOC
 * @ctx: the context
 * @req: in: the request, with all unused members zero; the library sets its size. out:
 *	the results. After -ENOMEM or -ETIMEDOUT, free_bytes and largest_run describe the
 *	shortage; after other errors they are 0
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
 * Also unmaps the buffer, if accmem_map() has mapped it.
 *
 * Return: 0; -ENOENT if there is no buffer; -EINVAL for an address inside a buffer;
 * -EBUSY while a REALLOC of the buffer is in progress; -ENOMEM if the buffer cannot be
 * unmapped.
 */
int accmem_release(struct accmem_context *ctx, uint64_t address);

/**
 * accmem_reallocate() - ACCMEM_IOC_REALLOC
 * @ctx: the context
 * @req: in: device address, new length in bytes and flags, with all unused members zero;
 *	the library sets its size. out: the results, the address among them
 *
 * If the buffer keeps its address, its mapping stays, up to the new end. After growth,
 * accmem_map() maps the new part; the pointer stays the same if the context has a window.
 * If the buffer has moved, its mapping is removed.
 *
 * Return: 0; -ENOENT, -EINVAL, -EPERM, -EBUSY, -EDQUOT, -ENOMEM, -EOVERFLOW, -EHWPOISON,
 * -EINTR as struct accmem_realloc says. After an error the buffer and its mapping are unchanged.
 */
int accmem_reallocate(struct accmem_context *ctx, struct accmem_realloc *req);

/**
 * accmem_get_query() - ACCMEM_IOC_QUERY
 * @ctx: the context
 * @address: any device address inside a buffer
 * @query: out: the buffer; needs no initialisation
 *
 * Return: 0; -ENOENT if there is no buffer.
 */
int accmem_get_query(struct accmem_context *ctx, uint64_t address,
		     struct accmem_query *query);

/**
 * accmem_device_access() - ACCMEM_IOC_ACCESS: read or write as the device does
 * @ctx: the context
 * @req: in: device address, length in bytes, data and op, with all unused members zero;
 *	the library sets its size. out: done is the number of bytes read or written, also
 *	after an error
 *
 * Return: 0; -EINVAL, -EOVERFLOW, -ENOENT, -ENXIO, -EBUSY, -EFAULT, -ENOMEM, -EHWPOISON,
 * -EINTR as struct accmem_access says.
 */
int accmem_device_access(struct accmem_context *ctx, struct accmem_access *req);

/**
 * accmem_prefetch_shared() - ACCMEM_IOC_PREFETCH: move a range of a shared buffer
 * @ctx: the context
 * @address: any device address inside a shared buffer
 * @length: bytes, at least 1
 * @flags: ACCMEM_PREFETCH_HOST to move the range to the host, or 0 for the device
 *
 * Return: 0; -EINVAL, -EOVERFLOW, -ENOENT, -ENXIO, -EOPNOTSUPP, -EBUSY, -ENOMEM,
 * -EHWPOISON, -EINTR as struct accmem_prefetch says.
 */
int accmem_prefetch_shared(struct accmem_context *ctx, uint64_t address,
			   uint64_t length, uint32_t flags);

/**
 * accmem_advise_shared() - ACCMEM_IOC_ADVISE: announce the use of a shared range
 * @ctx: the context
 * @address: any device address inside a shared buffer
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
 * @address: device address of the buffer's first byte
 * @prot: PROT_READ, PROT_WRITE or both
 * @pointer: out: host address of the buffer's first byte
 *
 * If the buffer is mapped already, its pointer stays the same, and @prot is added to the
 * access rights of the mapping.
 *
 * Return: 0; -ENOENT, -EINVAL as accmem_release(); -EINVAL for other access rights, or
 * none; the errors of mmap(2).
 */
int accmem_map(struct accmem_context *ctx, uint64_t address, int prot,
	       void **pointer);

/**
 * accmem_unmap() - unmap a buffer, however often accmem_map() was called
 * @ctx: the context
 * @address: device address of the buffer's first byte
 *
 * Return: 0; -ENOENT if the buffer is not mapped; -EINVAL for an address inside a mapped
 * buffer; -ENOMEM if the kernel cannot unmap the buffer.
 */
int accmem_unmap(struct accmem_context *ctx, uint64_t address);

/*
 * Exports.
 *
 * An export is a dma-buf of a part of a buffer: a file descriptor that can be given to
 * other drivers and sent to other processes (SCM_RIGHTS, see unix(7)). A process that has
 * the descriptor, or has imported it, can access the memory and sees all that is written
 * there. It keeps the memory after accmem_release() of the buffer and after the end of the
 * context. The descriptor is close-on-exec. The export ends when all copies of the
 * descriptor are closed; imports stay.
 */

/**
 * accmem_export() - ACCMEM_IOC_EXPORT: make a dma-buf of a part of a buffer
 * @ctx: the context
 * @address: first device address of the part, a multiple of 4096
 * @length: bytes, a multiple of 4096; 0 for all bytes up to the end of the buffer
 * @flags: ACCMEM_EXPORT_READ_ONLY, ACCMEM_EXPORT_REVOCABLE_ONLY or both; or 0
 * @fd: out: file descriptor of the dma-buf
 *
 * The export contains the bytes of the part, and no others. A buffer whose footprint is
 * below 4096 bytes shares its page with other buffers, and cannot be exported.
 *
 * Return: 0; -EPERM for a buffer that shares its page; the errors of struct
 * accmem_export_buffer; -ENOTTY if the driver does not have ACCMEM_IOC_EXPORT.
 */
int accmem_export(struct accmem_context *ctx, uint64_t address, uint64_t length,
		  uint32_t flags, int *fd);

/**
 * accmem_import() - ACCMEM_IOC_IMPORT: make a buffer of exported memory
 * @ctx: the context, on the device of the exporter
 * @fd: file descriptor of an export, which the caller may close after the call
 * @offset: offset of the part in the export, a multiple of 4096
 * @length: bytes, a multiple of 4096; 0 for all bytes up to the end of the export
 * @address: out: device address of the buffer in this context
 *
 * The new buffer is used like a buffer of accmem_allocate(): accmem_get_query() returns its
 * size, accmem_map() maps it, and accmem_release() frees it. accmem_reallocate() of the
 * buffer fails with -EPERM. An export with ACCMEM_EXPORT_READ_ONLY cannot be imported
 * (-EACCES), since contexts of this library may write; map such an export by mmap(2) of its
 * descriptor.
 *
 * Return: 0; the errors of struct accmem_import_buffer, among them -EBADF, and -EINVAL or
 * -EOPNOTSUPP for a descriptor that is no export of this driver; -ENOTTY if the driver does
 * not have ACCMEM_IOC_IMPORT; -ENOMEM if an earlier mapping cannot be removed.
 */
int accmem_import(struct accmem_context *ctx, int fd, uint64_t offset,
		  uint64_t length, uint64_t *address);

/*
 * Streams.
 *
 * A stream is a counter behind a file descriptor. Its count only grows; a position is a
 * value that the count reaches when the work before it is done. The descriptor is
 * close-on-exec, the last close(2) ends the stream, and the descriptor can be passed to the
 * process that does the work. A stream also ends when its context ends, or when the device is
 * gone. <linux/accmem.h> has the rules.
 */

/**
 * accmem_open_stream() - ACCMEM_IOC_STREAM_CREATE
 * @ctx: the context
 * @stream: out: the stream's file descriptor
 *
 * Return: 0; -EMFILE, -ENFILE, -ENOMEM; -ECONNRESET, -ENODEV.
 */
int accmem_open_stream(struct accmem_context *ctx, int *stream);

/**
 * accmem_signal() - ACCMEM_IOC_STREAM_SIGNAL: advance a stream
 * @stream: the stream
 * @position: the new count
 *
 * Return: 0; -ERANGE if the count is not lower; -EBUSY if a fence has to be signalled
 * first; -ECANCELED if the stream has ended.
 */
int accmem_signal(int stream, uint64_t position);

/**
 * accmem_get_stream() - ACCMEM_IOC_STREAM_QUERY
 * @stream: the stream
 * @query: out: the state of the stream; needs no initialisation
 *
 * Return: 0; -EBADF if the descriptor is not open, -ENOTTY if it is no stream.
 */
int accmem_get_stream(int stream, struct accmem_stream_query *query);

/**
 * accmem_wait() - ACCMEM_IOC_STREAM_WAIT: wait until a position is reached
 * @stream: the stream
 * @position: the position
 *
 * Return: 0; -EINTR; -ECANCELED if the stream has ended and will not reach the position;
 * -EDQUOT if too many calls of the user sleep.
 */
int accmem_wait(int stream, uint64_t position);

/**
 * accmem_wait_until() - wait for a position, with a deadline
 * @stream: the stream
 * @position: the position
 * @deadline_ns: time on the host's CLOCK_MONOTONIC (accmem_info.now_ns); 0 for none
 *
 * Return: as accmem_wait(); -ETIMEDOUT.
 */
int accmem_wait_until(int stream, uint64_t position, uint64_t deadline_ns);

/**
 * accmem_try_wait() - test whether a position is reached
 * @stream: the stream
 * @position: the position, for which poll(2) on the stream waits from now on
 *
 * Return: 0 if the position is reached; -EAGAIN if not; -ECANCELED if the stream has ended
 * and will not reach the position; -EBADF, -ENOTTY if @stream is no stream.
 */
int accmem_try_wait(int stream, uint64_t position);

/**
 * accmem_import_fence() - ACCMEM_IOC_STREAM_IMPORT: advance a stream by a fence
 * @stream: the stream
 * @position: the position that the stream reaches when the fence is signalled
 * @sync_file: the fence, which the caller may close after the call
 *
 * Return: 0; -EBADF, -EINVAL, -ERANGE, -ECANCELED, -ENOMEM; -EDQUOT if the user has too
 * many fences.
 */
int accmem_import_fence(int stream, uint64_t position, int sync_file);

/**
 * accmem_export_fence() - ACCMEM_IOC_STREAM_EXPORT: make a fence of a position
 * @stream: the stream
 * @position: a position that is reached, or that an imported fence will reach
 * @sync_file: out: file descriptor of the fence
 *
 * Return: 0; -EPERM if userspace has to signal the position; -EDQUOT if the user has too
 * many fences; -EMFILE; -ENOMEM, also if the system has too many open files.
 */
int accmem_export_fence(int stream, uint64_t position, int *sync_file);

/**
 * accmem_allocate_on() - ACCMEM_IOC_ALLOC for work on a stream
 * @ctx: the context
 * @stream: a stream of the context, whose pending frees the allocation may reuse
 * @req: as for accmem_allocate(). Its position is 0, or the position of @stream before
 *	which only work on the stream may access the memory; such memory is not zeroed
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
 * @position: the position before which the memory is not reused
 *
 * The device address is invalid at once, and the buffer is unmapped.
 *
 * Return: as accmem_release(); -EBADF, -EINVAL, -EACCES for the stream.
 */
int accmem_release_at(struct accmem_context *ctx, uint64_t address, int stream,
		      uint64_t position);

/**
 * accmem_release_after() - ACCMEM_IOC_FREE after a fence
 * @ctx: the context
 * @address: device address of a buffer's first byte
 * @sync_file: the fence, which the caller may close after the call
 *
 * The memory is not reused before the fence is signalled. Otherwise the call is like
 * accmem_release_at().
 *
 * Return: as accmem_release(); -EBADF, -EINVAL for the sync_file.
 */
int accmem_release_after(struct accmem_context *ctx, uint64_t address,
			 int sync_file);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_H */
