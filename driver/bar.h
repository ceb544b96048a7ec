/* SPDX-License-Identifier: GPL-2.0 */
/*
 * BARs that accmem claims on behalf of a provider.
 */
#ifndef ACCMEM_BAR_H
#define ACCMEM_BAR_H

#include "types/device_types.h"

#ifdef CONFIG_PCI
int accmem_bar_claim(struct accmem_bar *claim, struct pci_dev *pdev, int bar,
		     const char **why);
void accmem_bar_release(const struct accmem_bar *claim);
#else
static inline int accmem_bar_claim(struct accmem_bar *claim,
				   struct pci_dev *pdev, int bar,
				   const char **why)
{
	*why = NULL;
	return -EOPNOTSUPP;
}

static inline void accmem_bar_release(const struct accmem_bar *claim)
{
}
#endif

#endif /* ACCMEM_BAR_H */
