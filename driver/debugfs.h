/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs: a device's occupancy, contexts, buffers, streams and waiters.
 */
#ifndef ACCMEM_DEBUGFS_H
#define ACCMEM_DEBUGFS_H

struct accmem_device;

void accmem_debugfs_init(void);
void accmem_debugfs_exit(void);
void accmem_debugfs_add(struct accmem_device *dev);
void accmem_debugfs_remove(struct accmem_device *dev);

#endif /* ACCMEM_DEBUGFS_H */
