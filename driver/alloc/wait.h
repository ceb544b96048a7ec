/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ALLOC with ACCMEM_ALLOC_WAIT: sleep until the request can be served.
 */
#ifndef ACCMEM_ALLOC_WAIT_H
#define ACCMEM_ALLOC_WAIT_H

struct accmem_buffer;
struct accmem_context;
struct accmem_plan;

struct accmem_buffer *accmem_alloc_wait(struct accmem_context *ctx,
					const struct accmem_plan *plan);

#endif /* ACCMEM_ALLOC_WAIT_H */
