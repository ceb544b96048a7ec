/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fences of streams: sync_files and the workqueue of imported fences.
 */
#ifndef ACCMEM_STREAM_FENCE_H
#define ACCMEM_STREAM_FENCE_H

struct dma_fence;

int accmem_stream_init(void);
void accmem_stream_exit(void);
struct dma_fence *accmem_sync_file_fence(int fd);

#endif /* ACCMEM_STREAM_FENCE_H */
