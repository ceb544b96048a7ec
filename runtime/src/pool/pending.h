/* SPDX-License-Identifier: MIT */
/* Pieces whose release waits for a stream. The caller holds the pool's lock. */
#ifndef ACCMEM_RUNTIME_POOL_PENDING_H
#define ACCMEM_RUNTIME_POOL_PENDING_H

#include "pool/types.h"

int accmem_pool_pending_add(struct accmem_pool *pool, uint64_t offset,
			    int stream, uint64_t position);

/*
 * Release a piece that a request got early: it is pending at the old position again, or free if
 * the stream has reached it. Returns 0, or -ENOENT.
 */
int accmem_pool_pending_return(struct accmem_pool *pool, uint64_t offset);

/*
 * Take one of the first @scan pieces that wait for @stream, for an allocation on the same
 * stream. False: none of them has the sort and the length.
 */
bool accmem_pool_pending_reuse(struct accmem_pool *pool, uint32_t sort,
			       uint64_t length, int stream, uint32_t scan,
			       uint64_t *offset, uint64_t *position);

/* Free all pieces whose position has been reached. Returns the bytes. */
uint64_t accmem_pool_pending_reap(struct accmem_pool *pool);

/* The stream that had this descriptor has ended. */
void accmem_pool_pending_end_stream(struct accmem_pool *pool, int stream);
void accmem_pool_pending_disown(struct accmem_pool *pool);

/* The offsets of all pending pieces, sorted; free() them. NULL: there are none, or no memory. */
uint64_t *accmem_pool_pending_offsets(const struct accmem_pool *pool,
				      size_t *count);

/* Compare two offsets, for qsort() and bsearch(). */
int accmem_pool_compare_offsets(const void *a, const void *b);

#endif /* ACCMEM_RUNTIME_POOL_PENDING_H */
