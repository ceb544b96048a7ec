// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: /dev/accmemN, and the files opened on it.
 *
 * Owns the character device. It is 0600 by default; who else may open it is
 * udev's business.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "accmem_drv.h"

/* Until all devices are there the load may fail, and then none may be in use. */
static bool started;

static int open(struct inode *inode, struct file *file)
{
	struct accmem_device *dev = container_of(file->private_data,
						 struct accmem_device, misc);
	struct accmem_context *ctx;

	/* with accmem_devices_start(): what the load made is seen */
	if (!smp_load_acquire(&started))
		return -ENXIO;
	ctx = accmem_context_open(dev);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	return 0;
}

static int release(struct inode *inode, struct file *file)
{
	accmem_context_end(file->private_data);
	return 0;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = open,
	.release = release,
	.unlocked_ioctl = accmem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = accmem_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.show_fdinfo = accmem_show_fdinfo,
	.llseek = noop_llseek,
};

/*
 * Device addresses start at a multiple of 16 TiB, other than 0, that is the
 * device's own, so that an address in a log tells the device.
 */
static void set_addresses(struct accmem_device *dev)
{
	struct accmem_carveout *cv = &dev->cv;
	u64 span = cv->capacity;

	dev->address_base = (dev->index + 1) * ACCMEM_MAX_SPAN;
	/* room to hand out ascending addresses, whatever is live */
	if (cv->translation == ACCMEM_TRANSLATION_MAPPED)
		span = clamp(16 * span, 1ull << 36, ACCMEM_MAX_SPAN);
	dev->address_span = span;
}

/**
 * accmem_device_alloc() - make a device without memory yet
 * @index: its number
 *
 * Return: the device, or NULL. accmem_device_unregister() undoes it.
 */
struct accmem_device *accmem_device_alloc(unsigned int index)
{
	struct accmem_device *dev = kvzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	dev->index = index;
	snprintf(dev->name, sizeof(dev->name), "accmem%u", index);
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->contexts);
	return dev;
}

/**
 * accmem_device_register() - show a device
 * @dev: the device, with its carveout made; accmem_devices_start() lets users in
 *
 * Return: 0, or an error of misc_register().
 */
int accmem_device_register(struct accmem_device *dev)
{
	int err;

	set_addresses(dev);
	dev->misc.minor = MISC_DYNAMIC_MINOR;
	dev->misc.name = dev->name;
	dev->misc.fops = &device_fops;
	dev->misc.mode = 0600;
	dev->misc.groups = accmem_sysfs_groups;
	err = misc_register(&dev->misc);
	if (err) {
		dev->misc.name = NULL;
		return err;
	}
	accmem_debugfs_add(dev);
	pr_info("%s: %llu bytes, %s\n", dev->name, dev->cv.capacity,
		dev->cv.backing == ACCMEM_BACKING_PHYS ? "phys" : "emulated");
	return 0;
}

/**
 * accmem_devices_start() - let users in, when all devices are registered
 */
void accmem_devices_start(void)
{
	/* with open() */
	smp_store_release(&started, true);
}

/**
 * accmem_device_unregister() - undo accmem_device_register() and the carveout
 * @dev: the device, registered or half made; no file is open on it
 */
void accmem_device_unregister(struct accmem_device *dev)
{
	struct accmem_carveout *cv = &dev->cv;

	if (dev->misc.name) {
		accmem_debugfs_remove(dev);
		misc_deregister(&dev->misc);
	}
	if (cv->buddy_meta)
		accmem_carveout_stop(cv);
	accmem_carveout_destroy(cv);
	if (!IS_ERR_OR_NULL(cv->inode))
		iput(cv->inode);
	mutex_destroy(&dev->lock);
	kvfree(dev);
}
