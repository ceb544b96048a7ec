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
 *	failure with -ENOMEM, else 0.
 *
 * Return: 0; -EINVAL, -EOPNOTSUPP, -EDQUOT, -ENOMEM, -EINTR as struct
 * accmem_alloc says.
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
 * Return: 0; -ENOENT where no buffer is, -EINVAL inside one.
 */
int accmem_release(struct accmem_context *ctx, uint64_t address);

/**
 * accmem_allocate_many() - ACCMEM_IOC_BATCH of allocations
 * @ctx: the context
 * @flags: ACCMEM_BATCH_ATOMIC for all or none, or 0
 * @entries: what is wanted, the rest zero; each has a result of its own
 * @count: how many, at most ACCMEM_BATCH_MAX
 * @done: out, or NULL: how many have been dealt with, and of an atomic batch that
 *	failed over an entry, its index
 *
 * Return: 0, whatever the results are; -EINVAL, -EFAULT, -EINTR, -ENOMEM as struct
 * accmem_batch says. With ACCMEM_BATCH_ATOMIC also an error of accmem_allocate(),
 * and nothing is allocated then.
 */
int accmem_allocate_many(struct accmem_context *ctx, uint32_t flags,
			 struct accmem_batch_alloc *entries, uint32_t count,
			 uint32_t *done);

/**
 * accmem_release_many() - ACCMEM_IOC_BATCH of frees
 * @ctx: the context
 * @flags: ACCMEM_BATCH_ATOMIC for all or none, or 0
 * @entries: device addresses of the buffers' first bytes, the rest zero; each has
 *	a result of its own
 * @count: how many, at most ACCMEM_BATCH_MAX
 * @done: out, or NULL: as accmem_allocate_many()
 *
 * Also unmaps what accmem_map() mapped of the buffers that are freed.
 *
 * Return: as accmem_allocate_many(); with ACCMEM_BATCH_ATOMIC also an error of
 * accmem_release(), and nothing is freed then.
 */
int accmem_release_many(struct accmem_context *ctx, uint32_t flags,
			struct accmem_batch_free *entries, uint32_t count,
			uint32_t *done);

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
 * Return: 0; -ENOENT for what is not mapped.
 */
int accmem_unmap(struct accmem_context *ctx, uint64_t address);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_H */
