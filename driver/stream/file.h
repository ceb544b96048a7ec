/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Files of streams.
 */
#ifndef ACCMEM_STREAM_FILE_H
#define ACCMEM_STREAM_FILE_H

#include <linux/types.h>

struct accmem_context;
struct accmem_stream;
struct file;

void accmem_streams_end(struct accmem_context *ctx);
struct file *accmem_stream_open(struct accmem_context *ctx, u64 id);
struct accmem_stream *accmem_stream_of(struct accmem_context *ctx,
				       const struct file *file);

#endif /* ACCMEM_STREAM_FILE_H */
