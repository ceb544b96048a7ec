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

/**
 * struct accmem_pci - a PCI device with a provider
 * @provider: its provider
 * @config: the configuration, which the reset of an error loses
 */
struct accmem_pci {
	struct accmem_provider *provider;
	struct pci_saved_state *config;
};

static int pci_provide(struct pci_dev *pdev, struct accmem_pci *pci)
{
	int bar = READ_ONCE(pci_bar), err;

	if (bar < 0)
		bar = pci_choose_bar(pdev);
	err = accmem_provider_add_bar(pci->provider, pdev, bar);
	if (err)
		return err;
	pci_save_state(pdev);
	pci->config = pci_store_saved_state(pdev);
	if (!pci->config)
		return -ENOMEM;
	return accmem_provider_publish(pci->provider);
}

static void pci_remove(struct pci_dev *pdev)
{
	struct accmem_pci *pci = pci_get_drvdata(pdev);

	accmem_provider_unregister(pci->provider);
	kfree(pci->config);
}

static int pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct accmem_pci *pci;
	int err;

	/* Under lockdown root may not reach the BAR of any device. */
	err = security_locked_down(LOCKDOWN_PCI_ACCESS);
	if (err)
		return err;
	pci = devm_kzalloc(&pdev->dev, sizeof(*pci), GFP_KERNEL);
	if (!pci)
		return -ENOMEM;
	pci->provider = accmem_provider_create(&pdev->dev, NULL, NULL);
	if (IS_ERR(pci->provider))
		return PTR_ERR(pci->provider);
	pci_set_drvdata(pdev, pci);
	err = pci_provide(pdev, pci);
	if (err)
		pci_remove(pdev);
	return err;
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
