// SPDX-License-Identifier: GPL-2.0
/*
 * Device: /dev/accmemN, from creation to its end.
 *
 * A device is allocated (accmem_device_alloc()), gets its carveouts, and is registered.
 * User space can open it after accmem_device_start(): until the devices that the
 * parameters name are registered, the module load may still fail. After
 * accmem_device_remove() no program finds the device. The structure and the carveouts stay
 * until the last account and the last stream are freed: each of them has a reference to the
 * device.
 *
 * The device node has mode 0600; udev rules may open it to other users. An open creates
 * a context. An open does not wait for other opens: it takes only the lock of the table
 * of users, for a short time.
 *
 * This file owns the character device region, the class and the numbers of devices.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "alloc/pressure.h"
#include "alloc/reclaim.h"
#include "close.h"
#include "compat/compat.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "debugfs.h"
#include "device.h"
#include "export/export.h"
#include "fdinfo.h"
#include "ioctl.h"
#include "memory/clear.h"
#include "memory/overdue.h"
#include "memory/quarantine.h"
#include "memory/retire.h"
#include "mmap.h"
#include "stream/pending.h"
#include "sysfs.h"
#include "types/backing_types.h"
#include "types/device_types.h"
#include "vm/context.h"
#include "waitq/waiters.h"

#define OPEN_DUE 128u /* due frees that an open finishes before it fails */

static dev_t region;
static struct class device_class = { .name = "accmem" };
static DEFINE_IDA(device_numbers);
static atomic_t nr_devices; /* that are not freed yet */
static LIST_HEAD(devices); /* the same devices */
static DEFINE_MUTEX(devices_lock); /* devices */
static struct workqueue_struct *destroy_wq; /* frees devices */

/*
 * Set once the devices of the parameters are registered. Until then the load may fail and
 * remove the devices: no device may be open.
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
	if (accmem_is_revoked(dev->carveouts))
		return accmem_revoked_error(dev->carveouts);
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
	ACCMEM_MMAP_AREA(accmem_mmap_area),
	.show_fdinfo = accmem_fdinfo_show,
	.llseek = noop_llseek,
};

/**
 * accmem_device_context() - get the context of an open file
 * @dev: the device
 * @file: any file
 *
 * Context: Any context. Does not sleep.
 * Return: the context, with a reference; -EBADF if @file is not an open file of @dev.
 */
struct accmem_context *accmem_device_context(struct accmem_device *dev,
					     struct file *file)
{
	struct accmem_context *ctx = file->private_data;

	if (file->f_op != &device_fops || ctx->carveouts != dev->carveouts)
		return ERR_PTR(-EBADF);
	accmem_context_get(ctx);
	return ctx;
}

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

/* Destroy a carveout all of whose memory is free. */
static void device_drop_carveout(struct accmem_carveout *cv)
{
	accmem_overdue_stop(cv);
	accmem_retire_stop(cv);
	accmem_clear_stop(cv);
	accmem_quarantine_stop(cv);
	accmem_carveout_destroy(cv);
	accmem_retire_destroy(cv);
}

/* Free a device to which nothing refers any more. */
static void device_destroy_work(struct work_struct *work)
{
	struct accmem_device *dev =
		container_of(work, struct accmem_device, destroy);
	struct accmem_carveout *cv;

	mutex_lock(&devices_lock);
	list_del(&dev->link);
	mutex_unlock(&devices_lock);
	/* The callback of a fence may be about to queue the work that is stopped here. */
	synchronize_rcu();
	accmem_waiters_unlink(&dev->waiters);
	accmem_waiters_stop(&dev->waiters);
	accmem_pressure_stop(&dev->waiters);
	accmem_pending_stop(&dev->due);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		device_drop_carveout(cv);
	mutex_destroy(&dev->carveouts->drain_lock);
	mutex_destroy(&dev->provider.lock);
	accmem_exports_destroy(&dev->exports);
	xa_destroy(&dev->accounts.xa);
	ida_free(&device_numbers, dev->accounts.index);
	kvfree(dev->carveouts);
	kfree(dev);
	if (atomic_dec_and_test(&nr_devices))
		wake_up_var(&nr_devices);
}

/* The last reference may be dropped in a context that must not wait for work. */
static void device_release_last(struct device *d)
{
	struct accmem_device *dev =
		container_of(d, struct accmem_device, device);

	queue_work(destroy_wq, &dev->destroy);
}

static struct accmem_carveouts *
device_alloc_carveouts(struct accmem_device *dev)
{
	struct accmem_carveouts *carveouts =
		kvzalloc(sizeof(*carveouts), GFP_KERNEL);

	if (!carveouts)
		return NULL;
	carveouts->accounts = &dev->accounts;
	carveouts->end = carveouts->cvs;
	mutex_init(&carveouts->drain_lock);
	return carveouts;
}

static void device_init(struct accmem_device *dev, int number)
{
	snprintf(dev->accounts.name, sizeof(dev->accounts.name), "accmem%d",
		 number);
	dev->accounts.index = number;
	dev->accounts.device = &dev->device;
	dev->carveouts->exports = &dev->exports;
	accmem_exports_init(&dev->exports);
	xa_init_flags(&dev->accounts.xa, XA_FLAGS_ACCOUNT);
	device_initialize(&dev->device);
	dev->device.class = &device_class;
	dev->device.devt = region + number;
	dev->device.groups = accmem_sysfs_groups;
	dev->device.release = device_release_last;
	INIT_WORK(&dev->destroy, device_destroy_work);
	cdev_init(&dev->cdev, &device_fops);
	dev->cdev.owner = THIS_MODULE;
	mutex_init(&dev->provider.lock);
	accmem_pending_init(&dev->due);
	accmem_waiters_init(&dev->waiters, dev->carveouts, number);
	accmem_pressure_init(&dev->waiters);
	accmem_waiters_link(&dev->waiters);
	atomic_inc(&nr_devices);
	mutex_lock(&devices_lock);
	list_add_tail(&dev->link, &devices);
	mutex_unlock(&devices_lock);
}

/**
 * accmem_device_alloc() - allocate a device without memory
 *
 * Context: Process context. May sleep.
 *
 * Return: the device, with a reference that accmem_device_remove() drops; -ENOSPC if there
 * are ACCMEM_MAX_DEVICES already, of which some may only wait for their users; -ENOMEM.
 */
struct accmem_device *accmem_device_alloc(void)
{
	struct accmem_device *dev;
	int number;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	number = ida_alloc_max(&device_numbers, ACCMEM_MAX_DEVICES - 1,
			       GFP_KERNEL);
	if (number < 0) {
		kfree(dev);
		return ERR_PTR(number);
	}
	dev->carveouts = device_alloc_carveouts(dev);
	if (!dev->carveouts) {
		ida_free(&device_numbers, number);
		kfree(dev);
		return ERR_PTR(-ENOMEM);
	}
	device_init(dev, number);
	return dev;
}

/**
 * accmem_device_add_carveout() - add a carveout to a device
 * @dev: the device, not registered yet, with less than ACCMEM_MAX_CARVEOUTS of this kind,
 *	or without host memory, which is added last
 * @kind: enum accmem_kind
 *
 * Context: Process context. Takes no lock.
 *
 * Return: the carveout, which the caller creates. After a failure the caller drops it with
 * accmem_device_drop_last().
 */
struct accmem_carveout *accmem_device_add_carveout(struct accmem_device *dev,
						   u32 kind)
{
	struct accmem_carveouts *carveouts = dev->carveouts;
	struct accmem_carveout *cv = &carveouts->cvs[carveouts->nr++];

	carveouts->end++;
	if (kind != ACCMEM_KIND_HOST)
		carveouts->nr_device++;
	cv->kind = kind;
	cv->carveouts = carveouts;
	cv->waiters = &dev->waiters;
	cv->index = cv - carveouts->cvs;
	cv->node = NUMA_NO_NODE;
	accmem_clear_init(cv);
	accmem_quarantine_init(cv);
	accmem_overdue_init(cv);
	accmem_retire_init(cv, accmem_reclaim_failed);
	return cv;
}

/**
 * accmem_device_drop_last() - remove a carveout that could not be created
 * @dev: the device
 *
 * Context: Process context. May sleep.
 */
void accmem_device_drop_last(struct accmem_device *dev)
{
	struct accmem_carveouts *carveouts = dev->carveouts;
	struct accmem_carveout *cv = &carveouts->cvs[--carveouts->nr];

	carveouts->end--;
	if (cv->kind != ACCMEM_KIND_HOST)
		carveouts->nr_device--;
	device_drop_carveout(cv);
	memset(cv, 0, sizeof(*cv));
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
 * Opens fail with -ENXIO until accmem_device_start(). After an error accmem_device_remove()
 * undoes what was done: a write to the device's file reset may wait for the caller's
 * accmem_provider.lock, and the removal waits for the write.
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
	dev->device.parent = dev->provider.parent;
	err = dev_set_name(&dev->device, "%s", dev->accounts.name);
	if (!err)
		err = cdev_device_add(&dev->cdev, &dev->device);
	if (err)
		return err;
	err = accmem_sysfs_add(dev);
	if (err)
		return err;
	accmem_debugfs_add(dev);
	device_announce(dev);
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		accmem_clear_kick(cv, true);
	return 0;
}

/* Does a device that is gone, so that it gets no more carveouts, have physical memory? */
static bool device_has(const struct accmem_device *dev, u64 start, u64 size)
{
	struct accmem_carveout *cv;
	u64 at;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		if (!cv->ops || !cv->ops->physical_at)
			continue;
		at = cv->ops->physical_at(cv, 0);
		if (start < at + cv->capacity && at < start + size)
			return true;
	}
	return false;
}

/**
 * accmem_device_is_imported() - check whether an importer uses memory of a device that is gone
 * @start: physical address
 * @size: bytes
 *
 * Context: Process context. Takes and releases devices_lock. May sleep.
 *
 * Return: true if an importer has a mapping of memory of a device that overlaps the range.
 */
bool accmem_device_is_imported(u64 start, u64 size)
{
	struct accmem_device *dev;
	bool found = false;

	mutex_lock(&devices_lock);
	list_for_each_entry(dev, &devices, link) {
		found = READ_ONCE(dev->carveouts->gone) &&
			device_has(dev, start, size) &&
			accmem_export_is_used(&dev->exports);
		if (found)
			break;
	}
	mutex_unlock(&devices_lock);
	return found;
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
 * accmem_device_remove() - remove a device from the view of programs, and drop it
 * @dev: the device, registered or not, and revoked for good if it was registered
 *
 * The device is freed when its last account and its last stream are freed. If none is left,
 * the number and the memory of the device are free when the function returns.
 *
 * Context: Process context. Waits for readers of sysfs and debugfs, and for the destruction
 * of devices, during which a cleaner may wait for a fence of its provider. May sleep.
 */
void accmem_device_remove(struct accmem_device *dev)
{
	struct accmem_carveout *cv;

	if (device_is_registered(&dev->device)) {
		accmem_debugfs_remove(dev);
		accmem_sysfs_remove(dev);
		cdev_device_del(&dev->cdev, &dev->device);
	}
	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		accmem_clear_end(cv);
	put_device(&dev->device);
	flush_workqueue(destroy_wq);
}

/**
 * accmem_device_init() - register the class and the region of character devices
 *
 * Context: Process context, during module init. May sleep.
 *
 * Return: 0; -ENOMEM; an error of alloc_chrdev_region() or class_register().
 */
int accmem_device_init(void)
{
	int err;

	destroy_wq = alloc_workqueue("accmem-destroy", WQ_UNBOUND, 0);
	if (!destroy_wq)
		return -ENOMEM;
	err = alloc_chrdev_region(&region, 0, ACCMEM_MAX_DEVICES, "accmem");
	if (err)
		goto err_wq;
	err = class_register(&device_class);
	if (err)
		goto err_region;
	return 0;

err_region:
	unregister_chrdev_region(region, ACCMEM_MAX_DEVICES);
err_wq:
	destroy_workqueue(destroy_wq);
	return err;
}

/**
 * accmem_device_exit() - undo accmem_device_init()
 *
 * All devices were removed, and no file is open.
 *
 * Context: Process context. Waits until all devices are freed. May sleep.
 */
void accmem_device_exit(void)
{
	wait_var_event(&nr_devices, !atomic_read(&nr_devices));
	class_unregister(&device_class);
	unregister_chrdev_region(region, ACCMEM_MAX_DEVICES);
	destroy_workqueue(destroy_wq);
}
