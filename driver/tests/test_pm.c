// SPDX-License-Identifier: GPL-2.0
/*
 * Test of power management: calls an operation of a driver, as the PM core does while the
 * system sleeps or hibernates.
 *
 * A test writes "BUS DEVICE OPERATION" to the parameter `call`, for example "platform
 * accmem-phys.1 freeze". The write fails with the error of the operation. If the driver has
 * no such operation, the write succeeds, as in the PM core.
 *
 * Locking: the device is locked during the operation.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/pm.h>
#include <linux/string.h>

typedef int (*pm_call)(struct device *dev);

static pm_call find_operation(const struct dev_pm_ops *ops, const char *name)
{
	const struct {
		const char *name;
		pm_call call;
	} all[] = {
		{ "suspend", ops->suspend }, { "resume", ops->resume },
		{ "freeze", ops->freeze },   { "thaw", ops->thaw },
		{ "restore", ops->restore },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].name, name))
			return all[i].call;
	return NULL;
}

static int call_operation(struct device *dev, const char *name)
{
	pm_call call = NULL;
	int err = -ENODEV;

	device_lock(dev);
	if (dev->driver) {
		if (dev->driver->pm)
			call = find_operation(dev->driver->pm, name);
		err = call ? call(dev) : 0;
	}
	device_unlock(dev);
	return err;
}

static int call_set(const char *text, const struct kernel_param *kp)
{
	char bus[16], name[64], operation[16];
	struct device *dev = NULL;
	int err;

	if (sscanf(text, "%15s %63s %15s", bus, name, operation) != 3)
		return -EINVAL;
	if (!strcmp(bus, "platform"))
		dev = bus_find_device_by_name(&platform_bus_type, NULL, name);
	else if (IS_ENABLED(CONFIG_PCI) && !strcmp(bus, "pci"))
		dev = bus_find_device_by_name(&pci_bus_type, NULL, name);
	if (!dev)
		return -ENODEV;
	err = call_operation(dev, operation);
	put_device(dev);
	return err;
}

static const struct kernel_param_ops call_ops = { .set = call_set };
module_param_cb(call, &call_ops, NULL, 0200);

MODULE_DESCRIPTION("Calls of power management for tests of accmem");
MODULE_LICENSE("GPL");
