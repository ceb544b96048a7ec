/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices that the module makes: those that a text describes, in a module parameter or in
 * new_device, PCI devices that root gives to the driver, and nodes of the device tree.
 */
#ifndef ACCMEM_PROVIDERS_INTERNAL_H
#define ACCMEM_PROVIDERS_INTERNAL_H

#include <linux/platform_device.h>
#include <linux/types.h>

struct accmem_range;

/**
 * struct accmem_description - a kind of described devices
 * @driver: platform driver; accmem_describe_init() sets what all kinds share
 * @parameter: name of the module parameter
 * @rule: what a message says of a word that @parse refuses
 * @parse: set @start, @size and @flags of a range from a word; returns false if the word
 *	is none
 */
struct accmem_description {
	struct platform_driver driver;
	const char *parameter;
	const char *rule;
	bool (*parse)(const char *word, struct accmem_range *range);
};

extern struct accmem_description accmem_emulated;
extern struct accmem_description accmem_phys;

/* Sleep of devices on reserved memory. The driver data of such a device is a provider. */
extern const struct dev_pm_ops accmem_phys_pm_ops;

int accmem_describe_init(struct accmem_description *kind);
void accmem_describe_exit(struct accmem_description *kind);
int accmem_describe_start(void);
int accmem_describe_add(struct accmem_description *kind, const char *text);

/* pci.c */
#ifdef CONFIG_PCI
int accmem_pci_init(void);
void accmem_pci_exit(void);
#else
static inline int accmem_pci_init(void)
{
	return 0;
}

static inline void accmem_pci_exit(void)
{
}
#endif

/* devicetree.c */
#ifdef CONFIG_OF
int accmem_devicetree_init(void);
void accmem_devicetree_exit(void);
#else
static inline int accmem_devicetree_init(void)
{
	return 0;
}

static inline void accmem_devicetree_exit(void)
{
}
#endif

#endif /* ACCMEM_PROVIDERS_INTERNAL_H */
