/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices: /dev/accmemN and its memory.
 */
#ifndef ACCMEM_DEVICE_H
#define ACCMEM_DEVICE_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/xarray.h>

#include "account.h"
#include "carveout.h"

struct dentry;
struct file;
struct seq_file;
struct vm_area_struct;

/**
 * struct accmem_device - /dev/accmemN
 * @device: in /sys/class/accmem; holds the structure
 * @cdev: the character device
 * @name: "accmemN"
 * @index: N
 * @cv: its memory
 * @address_base: lowest device address
 * @address_span: bytes of device addresses
 * @debugfs: its directory
 * @accounts: of its files, and of those that ended and have memory still, by
 *	number
 * @last_id: number of the latest account
 * @nr_contexts: open files
 */
struct accmem_device {
	struct device device;
	struct cdev cdev;
	char name[16];
	unsigned int index;
	struct accmem_carveout cv;
	u64 address_base;
	u64 address_span;
	struct dentry *debugfs;
	struct xarray accounts;
	atomic_long_t last_id;
	atomic_t nr_contexts;
};

static inline u64 accmem_device_next_id(struct accmem_device *dev)
{
	return atomic_long_inc_return(&dev->last_id);
}

/* device.c */
int accmem_device_init(void);
void accmem_device_exit(void);
struct accmem_device *accmem_device_alloc(unsigned int index);
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
void accmem_debugfs_init(void);
void accmem_debugfs_exit(void);
void accmem_debugfs_add(struct accmem_device *dev);
void accmem_debugfs_remove(struct accmem_device *dev);

#endif /* ACCMEM_DEVICE_H */
