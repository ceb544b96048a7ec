// SPDX-License-Identifier: GPL-2.0
/*
 * Device tree: reserved memory that a node names.
 *
 * A node with the compatible string "accmem,carveout" is a device. Its property
 * memory-region refers to nodes below /reserved-memory. Each of them is a range of the
 * device. The binding is in Documentation/devicetree/bindings/misc/.
 *
 * Locking: none. The driver core calls the functions of a device one after another. The
 * functions of accmem_provider.h take the locks that they need.
 */
#include <linux/accmem_provider.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_reserved_mem.h>
#include <linux/platform_device.h>
#include <linux/pm.h>

#include "compat/compat.h"
#include "internal.h"

/* Add region @number of memory-region. A region with no-map has no page structures. */
static int devicetree_add_region(struct device *dev,
				 struct accmem_provider *provider, int number)
{
	struct device_node *region =
		of_parse_phandle(dev->of_node, "memory-region", number);
	struct accmem_range range = {
		.flags = ACCMEM_RANGE_PROBE | ACCMEM_RANGE_DESCRIBED,
		.node = dev_to_node(dev),
	};
	const char *why = "no such node, or it is disabled";
	struct reserved_mem *reserved;
	int err = -EINVAL;

	if (!of_device_is_available(region))
		goto out;
	why = "no reserved memory";
	reserved = of_reserved_mem_lookup(region);
	if (!reserved)
		goto out;
	range.start = reserved->base;
	range.size = reserved->size;
	if (!of_property_read_bool(region, "no-map"))
		range.flags |= ACCMEM_RANGE_PAGES;
	err = accmem_provider_add_range(provider, &range);
	why = err == -E2BIG ? "more than 16 TiB" : "not a range for a device";
out:
	if (err)
		dev_err_probe(dev, err, "memory-region %d, %pOF: %s\n", number,
			      region, why);
	of_node_put(region);
	return err;
}

static int devicetree_add_regions(struct device *dev,
				  struct accmem_provider *provider)
{
	int nr =
		of_count_phandle_with_args(dev->of_node, "memory-region", NULL);
	int i, err = 0;

	if (nr <= 0)
		return dev_err_probe(dev, -EINVAL, "no memory-region\n");
	if (nr > ACCMEM_MAX_RANGES)
		return dev_err_probe(dev, -E2BIG, "%d regions, of at most %d\n",
				     nr, ACCMEM_MAX_RANGES);
	for (i = 0; i < nr && !err; i++)
		err = devicetree_add_region(dev, provider, i);
	return err;
}

static int devicetree_probe(struct platform_device *pdev)
{
	struct accmem_provider *provider =
		accmem_provider_create(&pdev->dev, NULL, NULL);
	int err;

	if (IS_ERR(provider))
		return dev_err_probe(&pdev->dev, PTR_ERR(provider),
				     "no device\n");
	err = devicetree_add_regions(&pdev->dev, provider) ?:
		      accmem_provider_publish(provider);
	if (err) {
		accmem_provider_unregister(provider);
		return err;
	}
	platform_set_drvdata(pdev, provider);
	return 0;
}

static void devicetree_remove(struct platform_device *pdev)
{
	accmem_provider_unregister(platform_get_drvdata(pdev));
}

ACCMEM_PLATFORM_REMOVE(devicetree_remove)

static const struct of_device_id devicetree_ids[] = {
	{ .compatible = "accmem,carveout" },
	{}
};
MODULE_DEVICE_TABLE(of, devicetree_ids);

static struct platform_driver accmem_devicetree_driver = {
	.probe = devicetree_probe,
	.remove = accmem_devicetree_remove,
	.driver = {
		.name = "accmem-devicetree",
		.of_match_table = devicetree_ids,
		.pm = pm_sleep_ptr(&accmem_phys_pm_ops),
	},
};

/**
 * accmem_devicetree_init() - register the driver for nodes of the device tree
 *
 * The call creates a device for each node that the driver matches. For a node with an error
 * it prints a message to the kernel log, and creates no device.
 *
 * Context: Process context, during module init. May sleep.
 *
 * Return: 0, or an error of platform_driver_register().
 */
int accmem_devicetree_init(void)
{
	return platform_driver_register(&accmem_devicetree_driver);
}

/**
 * accmem_devicetree_exit() - unregister the driver and the providers of all nodes
 *
 * Context: Process context. May sleep.
 */
void accmem_devicetree_exit(void)
{
	platform_driver_unregister(&accmem_devicetree_driver);
}
