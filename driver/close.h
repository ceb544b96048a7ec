/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a context.
 */
#ifndef ACCMEM_CLOSE_H
#define ACCMEM_CLOSE_H

struct accmem_context;

void accmem_context_end(struct accmem_context *ctx);

#endif /* ACCMEM_CLOSE_H */
