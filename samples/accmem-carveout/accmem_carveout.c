// SPDX-License-Identifier: GPL-2.0
/*
 * A driver that gives programs the memory of a carveout, and no more: all that a driver
 * needs to use accmem in place of an allocator of its own.
 *
 * The parameters start and size name a range that is reserved at boot.
 */
#include <linux/accmem_provider.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/platform_device.h>

#include "compat/compat.h"

static unsigned long long start, size;
module_param(start, ullong, 0444);
module_param(size, ullong, 0444);

static struct platform_device *pdev;
static struct accmem_provider *provider;

static int __init carveout_init(void)
{
	const struct accmem_range range = {
		.start = start,
		.size = size,
		.flags = ACCMEM_RANGE_PAGES | ACCMEM_RANGE_PROBE,
		.node = NUMA_NO_NODE,
	};
	int err;

	pdev = platform_device_register_simple("accmem-carveout", -1, NULL, 0);
	if (IS_ERR(pdev))
		return PTR_ERR(pdev);
	provider = accmem_provider_create(&pdev->dev, NULL, NULL);
	err = PTR_ERR_OR_ZERO(provider);
	if (err)
		goto err_device;
	err = accmem_provider_add_range(provider, &range) ?:
		      accmem_provider_publish(provider);
	if (!err)
		return 0;
	accmem_provider_unregister(provider);
err_device:
	platform_device_unregister(pdev);
	return err;
}
module_init(carveout_init);

static void __exit carveout_exit(void)
{
	accmem_provider_unregister(provider);
	platform_device_unregister(pdev);
}
module_exit(carveout_exit);

MODULE_DESCRIPTION("Memory of a carveout for programs");
MODULE_LICENSE("GPL");
ACCMEM_IMPORT(ACCMEM);
