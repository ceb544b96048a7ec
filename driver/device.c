// SPDX-License-Identifier: GPL-2.0
/*
 * Device: /dev/accmemN, from creation to removal.
 *
 * A device is allocated (accmem_device_alloc()), gets its carveouts, and is registered.
 * User space can open it after accmem_device_start(): until all devices are registered,
 * the module load may still fail. accmem_device_unregister() undoes all of these.
 *
 * The device node has mode 0600; udev rules may open it to other users. An open creates
 * a context. An open does not wait for other opens: it takes only the lock of the table
 * of users, for a short time.
 *
 * This file owns the character device region and the class.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "alloc/pressure.h"
#include "alloc/reclaim.h"
#include "close.h"
#include "core/carveout.h"
#include "debugfs.h"
#include "device.h"
#include "fdinfo.h"
#include "ioctl.h"
#include "memory/clear.h"
#include "memory/overdue.h"
#include "memory/quarantine.h"
#include "memory/retire.h"
#include "mmap.h"
#include "stream/pending.h"
#include "sysfs.h"
#include "types/device_types.h"
#include "vm/context.h"
#include "waitq/waiters.h"

#define OPEN_DUE 128u /* due frees that an open finishes before it fails */

static dev_t region;
static struct class device_class = { .name = "accmem" };

/*
 * Set once all devices are registered. Until then the load may fail and remove the
 * devices: no device may be open.
 */
static bool started;

static struct accmem_context *device_open_context(struct accmem_device *dev)
{
	return accmem_context_open(&dev->accounts, dev->carveouts,
				   &dev->waiters, &dev->due);
}

static int device_open(struct inode *inode, struct file *file)
{
	struct accmem_device *dev =
		container_of(inode->i_cdev, struct accmem_device, cdev);
	struct accmem_context *ctx;

	/* Pairs with smp_store_release() in accmem_device_start(). */
	if (!smp_load_acquire(&started))
		return -ENXIO;
	ctx = device_open_context(dev);
	/* A closed context counts until its frees that are due are finished. */
	if (ctx == ERR_PTR(-EMFILE)) {
		accmem_pending_finish_some(&dev->due, OPEN_DUE);
		ctx = device_open_context(dev);
	}
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	ctx->read_only = !(file->f_mode & FMODE_WRITE);
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
	.poll = accmem_pressure_poll,
	.mmap = accmem_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.show_fdinfo = accmem_fdinfo_show,
	.llseek = noop_llseek,
};

/*
 * Return the number of device addresses of a carveout. With mapped translation and
 * @times above 1 it is @times the capacity, but at least 64 GiB and at most 16 TiB.
 */
static u64 device_span_of(const struct accmem_carveout *cv, unsigned int times)
{
	/*
	 * Extra addresses let new buffers get ascending addresses while old ones are
	 * live.
	 */
	if (cv->translation == ACCMEM_TRANSLATION_MAPPED && times > 1)
		return min(max(times * cv->capacity, 1ull << 36),
			   ACCMEM_MAX_SPAN);
	return cv->capacity;
}

static u64 device_place_carveouts(struct accmem_device *dev, unsigned int times)
{
	struct accmem_carveout *cv;
	u64 at = dev->carveouts->address_base;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		cv->address_base = at;
		cv->address_span = device_span_of(cv, times);
		at = ALIGN(at + cv->address_span, ACCMEM_SPAN_ALIGNMENT);
	}
	cv--;
	return cv->address_base + cv->address_span -
	       dev->carveouts->address_base;
}

/*
 * Assign device addresses. Those of a device start at a multiple of 16 TiB, other than
 * 0, which no other device uses: an address in a log identifies its device. Those of a
 * carveout start at a multiple of 1 GiB.
 */
static void device_set_addresses(struct accmem_device *dev)
{
	unsigned int times = 16;

	dev->carveouts->address_base =
		(dev->accounts.index + 1) * ACCMEM_MAX_SPAN;
	do {
		dev->carveouts->address_span =
			device_place_carveouts(dev, times);
		times /= 2;
	} while (dev->carveouts->address_span > ACCMEM_MAX_SPAN && times);
}

static void device_free(struct device *d)
{
	struct accmem_device *dev =
		container_of(d, struct accmem_device, device);

	kvfree(dev->carveouts);
	kfree(dev);
}

static void device_init_carveout(struct accmem_device *dev,
				 struct accmem_carveout *cv)
{
	cv->carveouts = dev->carveouts;
	cv->waiters = &dev->waiters;
	cv->index = cv - dev->carveouts->cvs;
	cv->node = NUMA_NO_NODE;
	accmem_clear_init(cv);
	accmem_quarantine_init(cv);
	accmem_overdue_init(cv);
	accmem_retire_init(cv, accmem_reclaim_failed);
}

/**
 * accmem_device_alloc() - allocate a device without memory
 * @index: the number of the device
 * @nr_device: the number of carveouts of device memory, 1 to ACCMEM_MAX_CARVEOUTS
 *
 * The structure has room for one more carveout, of host memory, which
 * accmem_device_add_host() adds.
 *
 * Context: Process context. May sleep.
 *
 * Return: the device, or NULL. accmem_device_unregister() frees it.
 */
struct accmem_device *accmem_device_alloc(unsigned int index,
					  unsigned int nr_device)
{
	struct accmem_device *dev;
	struct accmem_carveout *cv;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return NULL;
	dev->carveouts =
		kvzalloc(struct_size(dev->carveouts, cvs, nr_device + 1),
			 GFP_KERNEL);
	if (!dev->carveouts) {
		kfree(dev);
		return NULL;
	}
	dev->accounts.index = index;
	dev->carveouts->accounts = &dev->accounts;
	dev->carveouts->nr_device = nr_device;
	dev->carveouts->nr = nr_device;
	dev->carveouts->end = dev->carveouts->cvs + nr_device;
	snprintf(dev->accounts.name, sizeof(dev->accounts.name), "accmem%u",
		 index);
	xa_init_flags(&dev->accounts.xa, XA_FLAGS_ACCOUNT);
	device_initialize(&dev->device);
	dev->device.class = &device_class;
	dev->device.devt = region + index;
	dev->device.groups = accmem_sysfs_groups;
	dev->device.release = device_free;
	cdev_init(&dev->cdev, &device_fops);
	dev->cdev.owner = THIS_MODULE;
	accmem_pending_init(&dev->due);
	mutex_init(&dev->carveouts->drain_lock);
	accmem_waiters_init(&dev->waiters, dev->carveouts, index);
	accmem_waiters_link(&dev->waiters);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		device_init_carveout(dev, cv);
	return dev;
}

/**
 * accmem_device_add_host() - add a carveout of host memory to a device
 * @dev: the device, not registered yet
 *
 * Context: Process context, during module init. Takes no lock.
 *
 * Return: the carveout, which the caller has to create. accmem_device_unregister()
 * destroys it.
 */
struct accmem_carveout *accmem_device_add_host(struct accmem_device *dev)
{
	struct accmem_carveout *cv =
		&dev->carveouts->cvs[dev->carveouts->nr_device];

	dev->carveouts->nr++;
	dev->carveouts->end++;
	cv->kind = ACCMEM_KIND_HOST;
	device_init_carveout(dev, cv);
	return cv;
}

static const char *device_backing_name(const struct accmem_carveout *cv)
{
	if (cv->kind == ACCMEM_KIND_HOST)
		return "host memory at most";
	return cv->backing == ACCMEM_BACKING_PHYS ? "phys" : "emulated";
}

static void device_announce(struct accmem_device *dev)
{
	static const char *const classes[] = {
		[ACCMEM_BANDWIDTH_UNKNOWN] = "",
		[ACCMEM_BANDWIDTH_LOW] = ", low bandwidth",
		[ACCMEM_BANDWIDTH_HIGH] = ", high bandwidth",
	};
	const struct accmem_carveout *cv;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		pr_info("%s: %llu bytes, %s%s\n", dev->accounts.name,
			cv->capacity, device_backing_name(cv),
			classes[cv->bandwidth]);
}

/**
 * accmem_device_register() - register a device with sysfs, debugfs and the cdev layer
 * @dev: the device; its carveouts exist and need at most 16 TiB of addresses,
 *	counted in multiples of 1 GiB
 *
 * Opens fail with -ENXIO until accmem_device_start().
 *
 * Context: Process context. May sleep.
 *
 * Return: 0, -ENOMEM, or an error of cdev_device_add().
 */
int accmem_device_register(struct accmem_device *dev)
{
	struct accmem_carveout *cv;
	int err;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		if (cv->kind == ACCMEM_KIND_HOST)
			dev->carveouts->host_mask |= BIT(cv->index);
		else
			dev->carveouts->device_mask |= BIT(cv->index);
		dev->carveouts->of_class[cv->bandwidth] |= BIT(cv->index);
	}
	device_set_addresses(dev);
	err = dev_set_name(&dev->device, "%s", dev->accounts.name);
	if (!err)
		err = cdev_device_add(&dev->cdev, &dev->device);
	if (err)
		return err;
	err = accmem_sysfs_add(dev);
	if (err) {
		cdev_device_del(&dev->cdev, &dev->device);
		return err;
	}
	accmem_debugfs_add(dev);
	device_announce(dev);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		accmem_clear_kick(cv, true);
	return 0;
}

/**
 * accmem_device_start() - allow opens of all devices
 *
 * Context: Process context, at the end of module init. Takes no lock.
 */
void accmem_device_start(void)
{
	/* Pairs with smp_load_acquire() in device_open(). */
	smp_store_release(&started, true);
}

/**
 * accmem_device_unregister() - remove a device and destroy its carveouts
 * @dev: the device, registered or partly created; no file is open on it
 *
 * Context: Process context. May sleep.
 */
void accmem_device_unregister(struct accmem_device *dev)
{
	struct accmem_carveout *cv;

	if (device_is_registered(&dev->device)) {
		accmem_debugfs_remove(dev);
		accmem_sysfs_remove(dev);
		cdev_device_del(&dev->cdev, &dev->device);
	}
	accmem_waiters_unlink(&dev->waiters);
	accmem_waiters_stop(&dev->waiters);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		accmem_overdue_stop(cv);
	accmem_pending_stop(&dev->due);
	mutex_destroy(&dev->carveouts->drain_lock);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		accmem_retire_stop(cv);
		accmem_clear_stop(cv);
		accmem_quarantine_stop(cv);
		accmem_carveout_destroy(cv);
		accmem_retire_destroy(cv);
	}
	xa_destroy(&dev->accounts.xa);
	put_device(&dev->device);
}

/**
 * accmem_device_init() - register the class and the region of character devices
 *
 * Context: Process context, during module init. May sleep.
 *
 * Return: 0, or an error of alloc_chrdev_region() or class_register().
 */
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

/**
 * accmem_device_exit() - undo accmem_device_init()
 *
 * Context: Process context. May sleep.
 */
void accmem_device_exit(void)
{
	class_unregister(&device_class);
	unregister_chrdev_region(region, ACCMEM_MAX_DEVICES);
}
