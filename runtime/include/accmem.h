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
 * @path: device node, or NULL for $ACCMEM_DEVICE, else /dev/accmem0
 * @ctx: out: the context
 *
 * Reserves one window of host addresses for the device's addresses, so that
 * the two differ by a constant; where the address space is too small for it,
 * buffers are mapped anywhere.
 */
int accmem_open(const char *path, struct accmem_context **ctx);

/* Frees every buffer that was not freed, and unmaps what accmem_map() mapped. */
void accmem_close(struct accmem_context *ctx);

/* The file descriptor, for ioctls of one's own. */
int accmem_fd(const struct accmem_context *ctx);

/* As ACCMEM_IOC_INFO; @info needs no preparation. */
int accmem_get_info(struct accmem_context *ctx, uint32_t carveout,
		    struct accmem_info *info);

/*
 * As ACCMEM_IOC_ALLOC. @req: length and whatever else is wanted, the rest
 * zero; size is filled in. Results are in @req; free_bytes and largest_run are
 * those of a failure with -ENOMEM, else 0.
 */
int accmem_allocate(struct accmem_context *ctx, struct accmem_alloc *req);

/* The short form: default alignment and policy. */
int accmem_malloc(struct accmem_context *ctx, uint64_t length,
		  uint64_t *address);

/* As ACCMEM_IOC_FREE; also unmaps what accmem_map() mapped of the buffer. */
int accmem_release(struct accmem_context *ctx, uint64_t address);

/* As ACCMEM_IOC_QUERY, interior addresses included. */
int accmem_get_query(struct accmem_context *ctx, uint64_t address,
		     struct accmem_query *query);

/*
 * Map the whole buffer at device address @address with @prot (PROT_READ,
 * PROT_WRITE); @pointer gets its start. Mapping a mapped buffer again gives
 * the same pointer.
 */
int accmem_map(struct accmem_context *ctx, uint64_t address, int prot,
	       void **pointer);
int accmem_unmap(struct accmem_context *ctx, uint64_t address);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_H */
