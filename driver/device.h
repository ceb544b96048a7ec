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

#include "account.h"
#include "carveout.h"
#include "waiters.h"

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
 * @address_base: lowest device address of all carveouts
 * @address_span: bytes of device addresses of all carveouts
 * @debugfs: its directory
 * @accounts: of its files, and of those that ended and have memory still, by
 *	number
 * @last_id: number of the latest account
 * @nr_contexts: open files
 * @due: frees that wait for nothing any more
 * @signalled: frees whose fences have called, each of which stands for all of its
 *	context that wait for the fence
 * @due_lock: held while one of them is finished that nobody else has, or some of its
 *	pages are given back
 * @due_work: finishes them
 * @drain_lock: held while what the cache of a context held is given back to those who
 *	look for memory
 * @waiters: calls that wait for memory
 * @of_class: bit i: carveout i is of that enum accmem_bandwidth
 * @carveouts: bit i: carveout i, of device memory
 * @host: bit i: carveout i, of host memory, the last one if there is one; 0
 * @nr_device: its carveouts of device memory, which users know by their index
 * @nr_carveouts: all of its carveouts
 * @cvs: its memory
 */
struct accmem_device {
	struct device device;
	struct cdev cdev;
	char name[16];
	unsigned int index;
	u64 address_base;
	u64 address_span;
	struct dentry *debugfs;
	struct xarray accounts;
	atomic_long_t last_id;
	atomic_t nr_contexts;
	struct llist_head due;
	struct llist_head signalled;
	struct mutex due_lock; /* one of due is in nobody's list */
	struct work_struct due_work;
	struct mutex drain_lock; /* what a cache held is in nobody's list */
	struct accmem_waiters waiters;
	u32 of_class[ACCMEM_NR_BANDWIDTHS];
	u32 carveouts;
	u32 host;
	unsigned int nr_device;
	unsigned int nr_carveouts;
	struct accmem_carveout cvs[];
};

/* of host memory, or NULL */
static inline struct accmem_carveout *
accmem_device_host(struct accmem_device *dev)
{
	return dev->host ? &dev->cvs[dev->nr_device] : NULL;
}

static inline struct accmem_carveout *
accmem_carveouts_end(struct accmem_device *dev)
{
	return dev->cvs + dev->nr_carveouts;
}

static inline u64 accmem_device_next_id(struct accmem_device *dev)
{
	return atomic_long_inc_return(&dev->last_id);
}

/* by which users know a carveout; host memory has none */
static inline unsigned int
accmem_carveout_number(const struct accmem_carveout *cv)
{
	return cv->kind == ACCMEM_KIND_DEVICE ? cv->index : 0;
}

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
