/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Close: end a context when its file is closed.
 */
#ifndef ACCMEM_CLOSE_H
#define ACCMEM_CLOSE_H

struct accmem_context;

void accmem_context_end(struct accmem_context *ctx);

#endif /* ACCMEM_CLOSE_H */
