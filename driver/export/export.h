/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exports: dma-bufs of buffers.
 */
#ifndef ACCMEM_EXPORT_H
#define ACCMEM_EXPORT_H

#include <linux/ktime.h>
#include <linux/types.h>

#include <uapi/linux/accmem.h>

struct accmem_buffer;
struct accmem_context;
struct accmem_exports;
struct dma_buf;
struct seq_file;

/* export.c */
void accmem_exports_init(struct accmem_exports *exports);
void accmem_exports_destroy(struct accmem_exports *exports);
struct dma_buf *accmem_export(struct accmem_context *ctx,
			      struct accmem_export_buffer *req);

/* import.c */
struct accmem_buffer *accmem_import(struct accmem_context *ctx,
				    struct accmem_import_buffer *req);

/* revoke.c */
unsigned int accmem_export_revoke(struct accmem_exports *exports, int error,
				  ktime_t deadline);
bool accmem_export_is_used(struct accmem_exports *exports);
void accmem_export_resume(struct accmem_exports *exports);

/* show.c */
void accmem_exports_show(struct seq_file *m, struct accmem_exports *exports);

#endif /* ACCMEM_EXPORT_H */
