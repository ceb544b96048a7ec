// SPDX-License-Identifier: GPL-2.0
/*
 * Module: the devices that the parameters name.
 *
 * Each string of emulated= and phys= describes one device (providers/describe.c). Without
 * emulated= and phys= the module creates one emulated device of 1 GiB.
 *
 * If a device of a parameter fails, the load fails. No device can be opened before all have
 * succeeded.
 *
 * This file owns the workqueue.
 *
 * Locking: none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/workqueue.h>

#include "core/account.h"
#include "core/carveout.h"
#include "debugfs.h"
#include "device.h"
#include "memory/mapping.h"
#include "memory/remember.h"
#include "provider.h"
#include "internal.h"
#include "stream/fence.h"
#include "types/account_types.h"

static char *emulated[ACCMEM_MAX_DEVICES];
static int nr_emulated;
module_param_array(emulated, charp, &nr_emulated, 0444);
MODULE_PARM_DESC(emulated,
		 "devices of ordinary memory, as SIZE[/CLASS][/nodeN][+...]");

static char *phys[ACCMEM_MAX_DEVICES];
static int nr_phys;
module_param_hw_array(phys, charp, iomem, &nr_phys, 0444);
MODULE_PARM_DESC(phys,
		 "ranges, as SIZE@ADDRESS[:nopages][/CLASS][/nodeN][+...]");

static int add_device(struct accmem_description *kind, const char *text)
{
	int err = accmem_describe_add(kind, text);

	if (err && err != -EINVAL)
		pr_err("%s=%s: error %d\n", kind->parameter, text, err);
	return err;
}

/* Add the devices of a parameter. */
static int add_all(struct accmem_description *kind, char *const *texts, int nr)
{
	int i, err = 0;

	for (i = 0; i < nr && !err; i++)
		err = add_device(kind, texts[i]);
	return err;
}

static int add_devices(void)
{
	if (!nr_emulated && !nr_phys)
		return add_device(&accmem_emulated, "1G");
	return add_all(&accmem_emulated, emulated, nr_emulated) ?:
		       add_all(&accmem_phys, phys, nr_phys);
}

/* Register the drivers of the devices that the module makes itself. */
static int add_drivers(void)
{
	int err = accmem_describe_init(&accmem_emulated);

	if (err)
		return err;
	err = accmem_describe_init(&accmem_phys);
	if (err)
		accmem_describe_exit(&accmem_emulated);
	return err;
}

static void remove_drivers(void)
{
	accmem_describe_exit(&accmem_phys);
	accmem_describe_exit(&accmem_emulated);
}

/* Register the drivers for PCI devices and for nodes of the device tree. */
static int add_bus_drivers(void)
{
	int err = accmem_pci_init();

	if (err)
		return err;
	err = accmem_devicetree_init();
	if (err)
		accmem_pci_exit();
	return err;
}

static void remove_bus_drivers(void)
{
	accmem_devicetree_exit();
	accmem_pci_exit();
}

static int __init accmem_init(void)
{
	int err;

	if (PAGE_SIZE != ACCMEM_GRANULE) {
		pr_err("pages of %lu bytes are not supported\n", PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	err = accmem_provider_init();
	if (err)
		return err;
	accmem_wq = alloc_workqueue("accmem", WQ_UNBOUND, 0);
	if (!accmem_wq)
		return -ENOMEM;
	err = accmem_remember_init();
	if (err)
		goto err_wq;
	err = accmem_mapping_init();
	if (err)
		goto err_remember;
	err = accmem_stream_init();
	if (err)
		goto err_mapping;
	err = accmem_device_init();
	if (err)
		goto err_stream;
	accmem_debugfs_init();
	err = add_drivers();
	if (err)
		goto err_device;
	err = add_devices() ?: accmem_describe_start();
	if (err)
		goto err_drivers;
	/* Last: the devices of the parameters have the first numbers. */
	err = add_bus_drivers();
	if (err)
		goto err_drivers;
	accmem_device_start();
	return 0;

err_drivers:
	remove_drivers();
err_device:
	accmem_debugfs_exit();
	accmem_device_exit();
err_stream:
	accmem_stream_exit();
err_mapping:
	accmem_mapping_exit();
err_remember:
	accmem_remember_exit();
err_wq:
	destroy_workqueue(accmem_wq);
	return err;
}

static void __exit accmem_exit(void)
{
	/* Wait for callbacks of fences that are running: these may queue work. */
	synchronize_rcu();
	accmem_stream_exit();
	remove_bus_drivers();
	remove_drivers();
	accmem_debugfs_exit();
	accmem_device_exit();
	accmem_mapping_exit();
	accmem_remember_exit();
	destroy_workqueue(accmem_wq);
	/*
	 * Wait for the RCU callbacks of accounts, contexts and fences. Those of fences
	 * drop the last references to users.
	 */
	rcu_barrier();
	accmem_users_exit();
}

module_init(accmem_init);
module_exit(accmem_exit);

MODULE_DESCRIPTION("Accelerator memory manager");
MODULE_VERSION(ACCMEM_VERSION);
MODULE_LICENSE("GPL");
