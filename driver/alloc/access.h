/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ACCESS, PREFETCH and ADVISE: device accesses and placement hints.
 */
#ifndef ACCMEM_ALLOC_ACCESS_H
#define ACCMEM_ALLOC_ACCESS_H

struct accmem_access;
struct accmem_advise;
struct accmem_context;
struct accmem_prefetch;

int accmem_access(struct accmem_context *ctx, struct accmem_access *req);
int accmem_prefetch(struct accmem_context *ctx,
		    const struct accmem_prefetch *req);
int accmem_advise(struct accmem_context *ctx, const struct accmem_advise *req);

#endif /* ACCMEM_ALLOC_ACCESS_H */
