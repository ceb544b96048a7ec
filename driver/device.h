/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices: /dev/accmemN and its memory.
 */
#ifndef ACCMEM_DEVICE_H
#define ACCMEM_DEVICE_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/account.h"
#include "core/carveout.h"
#include "waitq/waiters.h"
#include "types/device_types.h"

struct dentry;
struct file;
struct seq_file;
struct vm_area_struct;

/* device.c */
int accmem_device_init(void);
void accmem_device_exit(void);
struct accmem_device *accmem_device_alloc(unsigned int index,
					  unsigned int nr_device);
struct accmem_carveout *accmem_device_add_host(struct accmem_device *dev);
int accmem_device_register(struct accmem_device *dev);
void accmem_device_start(void);
void accmem_device_unregister(struct accmem_device *dev);

/* ioctl.c */
long accmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* mmap.c */
int accmem_mmap(struct file *file, struct vm_area_struct *vma);

/* fdinfo.c, sysfs.c, debugfs.c */
void accmem_fdinfo_show(struct seq_file *m, struct file *file);
extern const struct attribute_group *accmem_sysfs_groups[];
int accmem_sysfs_add(struct accmem_device *dev);
void accmem_sysfs_remove(struct accmem_device *dev);
void accmem_debugfs_init(void);
void accmem_debugfs_exit(void);
void accmem_debugfs_add(struct accmem_device *dev);
void accmem_debugfs_remove(struct accmem_device *dev);

#endif /* ACCMEM_DEVICE_H */
