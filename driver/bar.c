// SPDX-License-Identifier: GPL-2.0
/*
 * BARs that accmem claims on behalf of a provider (accmem_provider_add_bar()).
 *
 * Locking: none. The provider adds BARs one after another, before it is unregistered.
 */
#include <linux/ioport.h>
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

/* The driver of @pdev may have enabled it, and may have devres disable it later. */
static int bar_enable(struct accmem_bar *claim, struct pci_dev *pdev)
{
	claim->enabled = !pci_is_enabled(pdev);
	return claim->enabled ? pci_enable_device_mem(pdev) : 0;
}

static void bar_put_device(const struct accmem_bar *claim)
{
	if (claim->enabled)
		pci_disable_device(claim->pdev);
	pci_dev_put(claim->pdev);
}

/**
 * accmem_bar_claim() - enable the memory of a PCI device, and claim a BAR
 * @claim: out: the claimed BAR
 * @pdev: the PCI device
 * @bar: number of the BAR
 * @why: out: what is wrong with the BAR, for a message; NULL if nothing is
 *
 * Context: Process context. May sleep.
 * Return: 0, -EINVAL, -EBUSY, or an error of pci_enable_device_mem().
 */
int accmem_bar_claim(struct accmem_bar *claim, struct pci_dev *pdev, int bar,
		     const char **why)
{
	int err;

	*why = bar_fault(pdev, bar);
	if (*why)
		return -EINVAL;
	err = bar_enable(claim, pdev);
	if (err)
		return err;
	claim->start = pci_resource_start(pdev, bar);
	claim->size = pci_resource_len(pdev, bar);
	claim->pdev = pci_dev_get(pdev);
	/* pci_request_region() is devres on some kernels, and ends too early then. */
	if (request_mem_region(claim->start, claim->size, "accmem"))
		return 0;
	bar_put_device(claim);
	return -EBUSY;
}

/**
 * accmem_bar_release() - release a BAR
 * @claim: BAR from accmem_bar_claim()
 *
 * Context: Process context. May sleep.
 */
void accmem_bar_release(const struct accmem_bar *claim)
{
	release_mem_region(claim->start, claim->size);
	bar_put_device(claim);
}
