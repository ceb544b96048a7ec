/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exports: functions that only export/ uses.
 */
#ifndef ACCMEM_EXPORT_INTERNAL_H
#define ACCMEM_EXPORT_INTERNAL_H

#include <linux/types.h>

struct accmem_export;
struct accmem_exports;
struct dma_buf;

/* map.c */
const struct dma_buf_ops *
accmem_export_map_ops(const struct accmem_export *export);
struct accmem_export *accmem_export_of(const struct dma_buf *dma_buf);

/* release.c */
void accmem_export_drop(struct accmem_export *export);
void accmem_export_free(struct accmem_export *export);
void accmem_export_release(struct dma_buf *dma_buf);

/* revoke.c */
struct accmem_export *accmem_export_next(struct accmem_exports *exports,
					 unsigned long *id);

#endif /* ACCMEM_EXPORT_INTERNAL_H */
