/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structure of a device.
 *
 * A device is one /dev/accmemN. It has one to eight carveouts of device memory, and
 * at most one carveout of host memory, which is the last entry of
 * accmem_carveouts.cvs. Its accounts include those of closed files that still have
 * memory.
 *
 * Locks: accmem_due.lock and accmem_carveouts.drain_lock are mutexes. Memory on its way
 * to the free space may be on no list while its mutex is held; a request that acquires
 * the mutex has missed no memory.
 */
#ifndef ACCMEM_DEVICE_TYPES_H
#define ACCMEM_DEVICE_TYPES_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "types/account_types.h"
#include "types/carveout_types.h"
#include "types/export_types.h"
#include "types/stream_types.h"
#include "types/waiters_types.h"

struct dentry;
struct pci_dev;

/**
 * struct accmem_bar - a BAR that accmem has claimed for a provider
 * @pdev: PCI device, with a reference
 * @enabled: accmem has enabled the memory of @pdev
 * @start: physical address
 * @size: size in bytes
 */
struct accmem_bar {
	struct pci_dev *pdev;
	bool enabled;
	phys_addr_t start;
	u64 size;
};

/**
 * struct accmem_bars - the BARs that accmem has claimed for a provider
 * @nr: number of BARs
 * @bar: BARs
 */
struct accmem_bars {
	unsigned int nr;
	struct accmem_bar bar[ACCMEM_MAX_CARVEOUTS];
};

/**
 * struct accmem_provider - a device, as the provider sees it
 * @parent: device that the memory belongs to; NULL after unregistration
 * @published: accmem_provider_publish() was called for a device with a range
 * @bars: BARs that accmem_provider_unregister() releases
 * @lock: held while the device is published, revoked, resumed and unregistered
 */
struct accmem_provider {
	struct device *parent;
	bool published;
	struct accmem_bars bars;
	struct mutex lock; /* published, and revocations */
};

/**
 * struct accmem_device - /dev/accmemN
 * @device: device in /sys/class/accmem; its release function frees the structure
 * @cdev: character device
 * @debugfs: directory in debugfs
 * @accounts: accounts of open files, and of closed files whose memory is still in use
 * @waiters: calls that wait for memory
 * @due: pending frees whose dependencies have signalled
 * @exports: dma-bufs of the memory
 * @carveouts: carveouts
 * @provider: the device, as the provider sees it
 * @destroy: frees the device, after the last reference was dropped
 * @link: link in the list of all devices
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
	struct accmem_exports exports;
	struct accmem_carveouts *carveouts;
	struct accmem_provider provider;
	struct work_struct destroy;
	struct list_head link;
};

#endif /* ACCMEM_DEVICE_TYPES_H */
