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

#include "types/account_types.h"
#include "types/carveout_types.h"
#include "types/stream_types.h"
#include "types/waiters_types.h"

struct dentry;

/**
 * struct accmem_device - /dev/accmemN
 * @device: in /sys/class/accmem; holds the structure
 * @cdev: the character device
 * @debugfs: its directory
 * @accounts: accounts of open files, and of closed files whose memory is still in use
 * @waiters: calls that wait for memory
 * @due: pending buffers that wait for nothing any more
 * @carveouts: memory
 *
 * Each group belongs to the folder that changes it; only the entry points know the
 * whole device.
 */
struct accmem_device {
	struct device device;
	struct cdev cdev;
	struct dentry *debugfs;
	struct accmem_accounts accounts;
	struct accmem_waiters waiters;
	struct accmem_due due;
	struct accmem_carveouts *carveouts;
};

#endif /* ACCMEM_DEVICE_TYPES_H */
