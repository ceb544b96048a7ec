/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structure of a device.
 *
 * A device is one /dev/accmemN. It has one to eight carveouts of device memory, and
 * at most one carveout of host memory, which is the last entry of @cvs. Its accounts
 * include those of closed files that still have memory.
 *
 * Locks: due_lock and drain_lock are mutexes. Memory on its way to the free space may
 * be on no list while its mutex is held; a request that acquires the mutex has missed
 * no memory.
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
 * @device: device in /sys/class/accmem; its release function frees the structure
 * @cdev: character device
 * @name: "accmemN"
 * @index: N
 * @address_base: lowest device address of all carveouts
 * @address_span: size in bytes of the device addresses of all carveouts
 * @debugfs: directory in debugfs
 * @accounts: accounts by number: those of open files, and those of closed files that
 *	still have memory
 * @last_id: number of the latest account
 * @nr_contexts: number of open files
 * @due: frees whose dependencies have signalled
 * @signalled: frees whose fence has signalled; each stands for all frees of its
 *	context that wait for this fence
 * @due_lock: held while a due free, which is on no list then, is finished, and while
 *	some of its pages are freed
 * @due_work: finishes the frees in @due and @signalled
 * @drain_lock: held while buffers from a context's cache, which are on no list then,
 *	are freed for a request that is short of memory
 * @waiters: calls that wait for memory
 * @of_class: bit i is set if carveout i has the enum accmem_bandwidth of the index
 * @carveouts: bit i is set if carveout i is device memory
 * @host: bit i is set if carveout i is host memory; 0 if there is none
 * @nr_device: number of carveouts of device memory; user space names them by index
 * @nr_carveouts: number of carveouts
 * @cvs: carveouts
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
	struct mutex due_lock; /* a due free that is on no list */
	struct work_struct due_work;
	struct mutex drain_lock; /* cached buffers that are on no list */
	struct accmem_waiters waiters;
	u32 of_class[ACCMEM_NR_BANDWIDTHS];
	u32 carveouts;
	u32 host;
	unsigned int nr_device;
	unsigned int nr_carveouts;
	struct accmem_carveout cvs[];
};

/* The carveout of host memory, or NULL. */
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

/* The number of a carveout in user space; 0 for host memory, which has no number. */
static inline unsigned int
accmem_carveout_number(const struct accmem_carveout *cv)
{
	return cv->kind == ACCMEM_KIND_DEVICE ? cv->index : 0;
}

#endif /* ACCMEM_DEVICE_TYPES_H */
