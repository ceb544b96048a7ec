// SPDX-License-Identifier: GPL-2.0
/*
 * PCI devices: the memory behind a BAR.
 *
 * The driver has no table of devices: it takes a device only if root says so, through
 * driver_override or new_id. It is for devices whose memory needs no other driver, and the
 * example of a driver that calls the functions of accmem_provider.h.
 *
 * The host maps the BAR write-combined or uncached, without page structures. A reset, an
 * error that the bus reports, and system sleep may lose the contents: the memory is revoked
 * meanwhile.
 *
 * Locking: none. The PCI core calls the functions of a device one after another. The
 * functions of accmem_provider.h take the locks that they need.
 */
#include <linux/accmem_provider.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/security.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "internal.h"

static int pci_bar = -1;
module_param(pci_bar, int, 0644);
MODULE_PARM_DESC(pci_bar,
		 "BAR of a PCI device (default: the largest prefetchable one)");

/* Return the larger of two BARs of a device; @a may be -1. */
static int pci_larger(struct pci_dev *pdev, int a, int b)
{
	if (a < 0 || pci_resource_len(pdev, b) > pci_resource_len(pdev, a))
		return b;
	return a;
}

/* Choose a BAR of memory, or return -1 if the device has none. */
static int pci_choose_bar(struct pci_dev *pdev)
{
	int bar, best = -1, best_prefetch = -1;
	unsigned long flags;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++) {
		flags = pci_resource_flags(pdev, bar);
		if (!(flags & IORESOURCE_MEM) || !pci_resource_len(pdev, bar))
			continue;
		best = pci_larger(pdev, best, bar);
		if (flags & IORESOURCE_PREFETCH)
			best_prefetch = pci_larger(pdev, best_prefetch, bar);
	}
	return best_prefetch >= 0 ? best_prefetch : best;
}

/* Return what is wrong with a BAR, or NULL. */
static const char *pci_bar_fault(struct pci_dev *pdev, int bar)
{
	if (bar < 0 || bar >= PCI_STD_NUM_BARS)
		return "there is no such BAR";
	if (!pci_resource_len(pdev, bar) ||
	    pci_resource_flags(pdev, bar) & IORESOURCE_UNSET)
		return "the device has no such BAR, or the bridge above it has no room for it";
	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM))
		return "the BAR has ports, not memory";
	if (!IS_ALIGNED(pci_resource_len(pdev, bar), SZ_2M))
		return "the size is not a multiple of 2 MiB: perhaps the bridge has no room";
	return NULL;
}

/* Return the BAR that has the memory; -EINVAL after a message. */
static int pci_find_bar(struct pci_dev *pdev)
{
	int bar = READ_ONCE(pci_bar);
	const char *fault;

	if (bar < 0)
		bar = pci_choose_bar(pdev);
	fault = pci_bar_fault(pdev, bar);
	if (!fault)
		return bar;
	dev_err(&pdev->dev, "BAR %d: %s\n", bar, fault);
	return -EINVAL;
}

/* Register the memory, and return the provider or an ERR_PTR(). */
static struct accmem_provider *pci_provide(struct pci_dev *pdev, int bar)
{
	const struct accmem_range range = {
		.start = pci_resource_start(pdev, bar),
		.size = pci_resource_len(pdev, bar),
		.flags = ACCMEM_RANGE_CLAIMED | ACCMEM_RANGE_IO |
			 ACCMEM_RANGE_PROBE,
		.node = dev_to_node(&pdev->dev),
		.pci = pdev,
	};
	struct accmem_provider *provider =
		accmem_provider_create(&pdev->dev, NULL, NULL);
	int err;

	if (IS_ERR(provider))
		return provider;
	err = accmem_provider_add_range(provider, &range) ?:
		      accmem_provider_publish(provider);
	if (!err)
		return provider;
	accmem_provider_unregister(provider);
	return ERR_PTR(err);
}

/**
 * struct accmem_pci - a PCI device with a provider
 * @provider: its provider
 * @bar: BAR with the memory
 * @config: the configuration, which the reset of an error loses
 */
struct accmem_pci {
	struct accmem_provider *provider;
	int bar;
	struct pci_saved_state *config;
};

static int pci_start(struct pci_dev *pdev, struct accmem_pci *pci)
{
	int err = pci_enable_device_mem(pdev);

	if (err)
		return err;
	err = pci_request_region(pdev, pci->bar, "accmem");
	if (err)
		goto err_disable;
	pci_save_state(pdev);
	pci->config = pci_store_saved_state(pdev);
	err = -ENOMEM;
	if (!pci->config)
		goto err_release;
	pci->provider = pci_provide(pdev, pci->bar);
	err = PTR_ERR_OR_ZERO(pci->provider);
	if (err)
		goto err_free;
	pci_set_drvdata(pdev, pci);
	return 0;

err_free:
	kfree(pci->config);
err_release:
	pci_release_region(pdev, pci->bar);
err_disable:
	pci_disable_device(pdev);
	return err;
}

static int pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct accmem_pci *pci;
	int bar, err;

	/* Under lockdown root may not reach the BAR of any device. */
	err = security_locked_down(LOCKDOWN_PCI_ACCESS);
	if (err)
		return err;
	bar = pci_find_bar(pdev);
	if (bar < 0)
		return bar;
	pci = devm_kzalloc(&pdev->dev, sizeof(*pci), GFP_KERNEL);
	if (!pci)
		return -ENOMEM;
	pci->bar = bar;
	return pci_start(pdev, pci);
}

static void pci_remove(struct pci_dev *pdev)
{
	struct accmem_pci *pci = pci_get_drvdata(pdev);

	accmem_provider_unregister(pci->provider);
	kfree(pci->config);
	pci_release_region(pdev, pci->bar);
	pci_disable_device(pdev);
}

static struct accmem_provider *pci_provider(struct pci_dev *pdev)
{
	struct accmem_pci *pci = pci_get_drvdata(pdev);

	return pci->provider;
}

/* After an error that is not fatal, accesses have worked all the time. */
static pci_ers_result_t pci_error_detected(struct pci_dev *pdev,
					   pci_channel_state_t state)
{
	switch (state) {
	case pci_channel_io_normal:
		return PCI_ERS_RESULT_CAN_RECOVER;
	case pci_channel_io_frozen:
		accmem_provider_revoke(pci_provider(pdev), ACCMEM_REVOKE_RESET);
		return PCI_ERS_RESULT_NEED_RESET;
	default:
		accmem_provider_revoke(pci_provider(pdev), ACCMEM_REVOKE_GONE);
		return PCI_ERS_RESULT_DISCONNECT;
	}
}

static pci_ers_result_t pci_mmio_enabled(struct pci_dev *pdev)
{
	return PCI_ERS_RESULT_RECOVERED;
}

/* A reset may also follow an error that was fatal for another device of the bus only. */
static pci_ers_result_t pci_slot_reset(struct pci_dev *pdev)
{
	struct accmem_pci *pci = pci_get_drvdata(pdev);

	accmem_provider_revoke(pci->provider, ACCMEM_REVOKE_RESET);
	pci_load_saved_state(pdev, pci->config);
	pci_restore_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void pci_reset_prepare(struct pci_dev *pdev)
{
	accmem_provider_revoke(pci_provider(pdev), ACCMEM_REVOKE_RESET);
}

/*
 * The end of a reset, of sleep, and of the recovery from an error, in which perhaps nothing
 * was revoked.
 */
static void pci_reset_done(struct pci_dev *pdev)
{
	accmem_provider_resume(pci_provider(pdev), false);
}

static const struct pci_error_handlers pci_error_handlers = {
	.error_detected = pci_error_detected,
	.mmio_enabled = pci_mmio_enabled,
	.slot_reset = pci_slot_reset,
	.resume = pci_reset_done,
	.reset_prepare = pci_reset_prepare,
	.reset_done = pci_reset_done,
};

/* A device without power loses its memory. */
static int pci_suspend(struct device *dev)
{
	pci_reset_prepare(to_pci_dev(dev));
	return 0;
}

static int pci_resume(struct device *dev)
{
	pci_reset_done(to_pci_dev(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(pci_pm_ops, pci_suspend, pci_resume);

/* No id_table: see the comment at the top. */
static struct pci_driver accmem_pci_driver = {
	.name = "accmem-pci",
	.probe = pci_probe,
	.remove = pci_remove,
	.err_handler = &pci_error_handlers,
	.driver.pm = pm_sleep_ptr(&pci_pm_ops),
};

/**
 * accmem_pci_init() - register the driver of PCI devices
 *
 * Devices with a driver_override of accmem-pci get it at once.
 *
 * Context: Process context, during module init. May sleep.
 *
 * Return: 0, or an error of pci_register_driver().
 */
int accmem_pci_init(void)
{
	return pci_register_driver(&accmem_pci_driver);
}

/**
 * accmem_pci_exit() - unregister the driver, and the memory of all PCI devices
 *
 * Context: Process context. May sleep.
 */
void accmem_pci_exit(void)
{
	pci_unregister_driver(&accmem_pci_driver);
}
