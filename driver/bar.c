// SPDX-License-Identifier: GPL-2.0
/*
 * BARs that accmem claims on behalf of a provider (accmem_provider_add_bar()).
 *
 * Locking: none. The provider adds BARs one after another, before it is unregistered.
 */
#include <linux/pci.h>
#include <linux/sizes.h>

#include "bar.h"
#include "types/device_types.h"

/* Return what is wrong with a BAR, or NULL. */
static const char *bar_fault(struct pci_dev *pdev, int bar)
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

static int bar_enable(struct pci_dev *pdev, int bar)
{
	int err = pci_enable_device_mem(pdev);

	if (err)
		return err;
	err = pci_request_region(pdev, bar, "accmem");
	if (err)
		pci_disable_device(pdev);
	return err;
}

/**
 * accmem_bar_claim() - enable the memory of a PCI device, and claim a BAR
 * @bars: BARs of a provider, with room for one more
 * @pdev: the PCI device
 * @bar: number of the BAR
 * @why: out: what is wrong with the BAR, for a message; NULL if nothing is
 *
 * Context: Process context. May sleep.
 * Return: 0, -EINVAL, -EBUSY, or an error of pci_enable_device_mem().
 */
int accmem_bar_claim(struct accmem_bars *bars, struct pci_dev *pdev, int bar,
		     const char **why)
{
	int err;

	*why = bar_fault(pdev, bar);
	if (*why)
		return -EINVAL;
	err = bar_enable(pdev, bar);
	if (err)
		return err;
	bars->bar[bars->nr++] = (struct accmem_bar){
		.pdev = pci_dev_get(pdev),
		.number = bar,
	};
	return 0;
}

/**
 * accmem_bars_release() - release the BARs that accmem has claimed for a provider
 * @bars: BARs
 *
 * Context: Process context. May sleep.
 */
void accmem_bars_release(const struct accmem_bars *bars)
{
	const struct accmem_bar *bar;

	for (bar = bars->bar; bar < bars->bar + bars->nr; bar++) {
		pci_release_region(bar->pdev, bar->number);
		pci_disable_device(bar->pdev);
		pci_dev_put(bar->pdev);
	}
}
