// SPDX-License-Identifier: GPL-2.0
/*
 * Devices: /dev/accmemN, and the files opened on it.
 *
 * Owns the region of character devices, and the class. A device is 0600 by
 * default; who else may open it is udev's business. An open waits for no other:
 * it takes no lock but that of the table of users, for a moment.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "clear.h"
#include "context.h"
#include "device.h"
#include "overdue.h"
#include "pending.h"
#include "reap.h"

static dev_t region;
static struct class device_class = { .name = "accmem" };

/* Until all devices are there the load may fail, and then none may be in use. */
static bool started;

static int device_open(struct inode *inode, struct file *file)
{
	struct accmem_device *dev =
		container_of(inode->i_cdev, struct accmem_device, cdev);
	struct accmem_context *ctx;

	/* pairs with smp_store_release() in accmem_device_start() */
	if (!smp_load_acquire(&started))
		return -ENXIO;
	ctx = accmem_context_open(dev);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	file->private_data = ctx;
	return 0;
}

static int device_release(struct inode *inode, struct file *file)
{
	accmem_context_end(file->private_data);
	return 0;
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = accmem_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = accmem_shrink_poll,
	.mmap = accmem_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.show_fdinfo = accmem_fdinfo_show,
	.llseek = noop_llseek,
};

/*
 * Device addresses start at a multiple of 16 TiB, other than 0, that is the
 * device's own, so that an address in a log tells the device.
 */
static void device_set_addresses(struct accmem_device *dev)
{
	struct accmem_carveout *cv = &dev->cv;
	u64 span = cv->capacity;

	dev->address_base = (dev->index + 1) * ACCMEM_MAX_SPAN;
	/* room to hand out ascending addresses, whatever is live */
	if (cv->translation == ACCMEM_TRANSLATION_MAPPED)
		span = clamp(16 * span, 1ull << 36, ACCMEM_MAX_SPAN);
	dev->address_span = span;
}

static void device_free(struct device *d)
{
	kvfree(container_of(d, struct accmem_device, device));
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
	xa_init_flags(&dev->accounts, XA_FLAGS_ACCOUNT);
	device_initialize(&dev->device);
	dev->device.class = &device_class;
	dev->device.devt = region + index;
	dev->device.groups = accmem_sysfs_groups;
	dev->device.release = device_free;
	cdev_init(&dev->cdev, &device_fops);
	dev->cdev.owner = THIS_MODULE;
	accmem_clear_init(&dev->cv);
	accmem_reap_init(&dev->cv);
	accmem_pending_init(&dev->cv);
	accmem_overdue_init(&dev->cv);
	accmem_waiters_init(&dev->cv, index);
	return dev;
}

/**
 * accmem_device_register() - show a device
 * @dev: the device, with its carveout made; accmem_device_start() lets users in
 *
 * Return: 0, or an error of cdev_device_add().
 */
int accmem_device_register(struct accmem_device *dev)
{
	int err;

	device_set_addresses(dev);
	err = dev_set_name(&dev->device, "%s", dev->name);
	if (!err)
		err = cdev_device_add(&dev->cdev, &dev->device);
	if (err)
		return err;
	accmem_debugfs_add(dev);
	pr_info("%s: %llu bytes, %s\n", dev->name, dev->cv.capacity,
		dev->cv.backing == ACCMEM_BACKING_PHYS ? "phys" : "emulated");
	accmem_clear_kick(&dev->cv, true);
	return 0;
}

/**
 * accmem_device_start() - let users in, when all devices are registered
 */
void accmem_device_start(void)
{
	/* pairs with smp_load_acquire() in device_open() */
	smp_store_release(&started, true);
}

/**
 * accmem_device_unregister() - undo accmem_device_register() and the carveout
 * @dev: the device, registered or half made; no file is open on it
 */
void accmem_device_unregister(struct accmem_device *dev)
{
	if (device_is_registered(&dev->device)) {
		accmem_debugfs_remove(dev);
		cdev_device_del(&dev->cdev, &dev->device);
	}
	accmem_waiters_stop(&dev->cv);
	accmem_overdue_stop(&dev->cv);
	accmem_pending_stop(&dev->cv);
	accmem_clear_stop(&dev->cv);
	accmem_reap_stop(&dev->cv);
	accmem_carveout_destroy(&dev->cv);
	xa_destroy(&dev->accounts);
	put_device(&dev->device);
}

int accmem_device_init(void)
{
	int err;

	err = alloc_chrdev_region(&region, 0, ACCMEM_MAX_DEVICES, "accmem");
	if (err)
		return err;
	err = class_register(&device_class);
	if (err)
		unregister_chrdev_region(region, ACCMEM_MAX_DEVICES);
	return err;
}

void accmem_device_exit(void)
{
	class_unregister(&device_class);
	unregister_chrdev_region(region, ACCMEM_MAX_DEVICES);
}
