/* SPDX-License-Identifier: MIT */
/* Spans: runs of pages that are allocated, or cached, as one piece. */
#ifndef ACCMEM_RUNTIME_POOL_SPAN_H
#define ACCMEM_RUNTIME_POOL_SPAN_H

#include "pool/types.h"

/* A span leaves a hint where it begins in every so many of its pages. */
#define POOL_HINT_PAGES 64

/*
 * Take a span of the pages that are free in the heap @index. False: none was found. The
 * second function compares all free spans, however many there are.
 */
bool accmem_pool_span_try_alloc(struct accmem_pool *pool, uint32_t index,
				uint32_t pages, uint32_t alignment,
				struct pool_slot *slot);
bool accmem_pool_span_search(struct accmem_pool *pool, uint32_t index,
			     uint32_t pages, uint32_t alignment,
			     struct pool_slot *slot);

/* Make a span of pages that were taken from a heap. */
void accmem_pool_span_init(struct accmem_pool *pool, uint32_t heap,
			   uint32_t first, uint32_t pages,
			   struct pool_slot *slot);

/* Free a span that is cached, or detached. */
void accmem_pool_span_free(struct accmem_pool *pool, uint64_t offset);

/* Detach and free a span, unless it is the parent's: as accmem_pool_piece_detach(). */
int accmem_pool_span_release(struct accmem_pool *pool, uint64_t offset,
			     uint64_t tag, uint64_t *usable);

#endif /* ACCMEM_RUNTIME_POOL_SPAN_H */
