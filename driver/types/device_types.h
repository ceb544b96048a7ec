/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices: the structure, and its fields.
 */
#ifndef ACCMEM_DEVICE_TYPES_H
#define ACCMEM_DEVICE_TYPES_H

#include <linux/atomic.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "types/carveout_types.h"
#include "types/waiters_types.h"

struct dentry;

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

#endif /* ACCMEM_DEVICE_TYPES_H */
