/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device: /dev/accmemN, from creation to its end.
 */
#ifndef ACCMEM_DEVICE_H
#define ACCMEM_DEVICE_H

#include <linux/types.h>

struct accmem_carveout;
struct accmem_context;
struct accmem_device;
struct file;

int accmem_device_init(void);
void accmem_device_exit(void);
struct accmem_device *accmem_device_alloc(void);
struct accmem_carveout *accmem_device_add_carveout(struct accmem_device *dev,
						   u32 kind);
struct accmem_context *accmem_device_context(struct accmem_device *dev,
					     struct file *file);
void accmem_device_drop_last(struct accmem_device *dev);
int accmem_device_register(struct accmem_device *dev);
bool accmem_device_is_imported(u64 start, u64 size);
void accmem_device_start(void);
void accmem_device_remove(struct accmem_device *dev);

#endif /* ACCMEM_DEVICE_H */
