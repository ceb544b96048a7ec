// SPDX-License-Identifier: GPL-2.0
/*
 * Providers: the functions that drivers of devices call.
 *
 * States of a provider: created -> published -> unregistered. A published provider may be
 * revoked and resumed any number of times. A provider is a part of its device
 * (struct accmem_device). The device outlives the provider as long as an account or a
 * stream of the device exists.
 *
 * Host memory: each device also gets a carveout of host memory, unless host=0.
 *
 * Locking: provider->lock is held while a device is published, revoked, resumed and
 * unregistered. The driver serialises accmem_provider_add_range() and
 * accmem_provider_add_bar() with the other calls.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/accmem_provider.h>
#include <linux/device.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pci.h>
#include <linux/sizes.h>

#include "backing/backing.h"
#include "bar.h"
#include "compat/compat.h"
#include "core/carveout.h"
#include "core/size_param.h"
#include "device.h"
#include "memory/retire.h"
#include "provider.h"
#include "revoke.h"
#include "types/device_types.h"

static char *host;
module_param(host, charp, 0444);
MODULE_PARM_DESC(host,
		 "most host memory a device (0: none; default half of RAM)");

#define HOST_DEFAULT_MAX (64ull * SZ_1G)

static u64 host_bytes;

static_assert(ACCMEM_MAX_PROVIDERS == ACCMEM_MAX_DEVICES);
static_assert(ACCMEM_MAX_RANGES == ACCMEM_MAX_CARVEOUTS);

#define RANGE_FLAGS                                                          \
	(ACCMEM_RANGE_EMULATED | ACCMEM_RANGE_PAGES | ACCMEM_RANGE_CLAIMED | \
	 ACCMEM_RANGE_PROBE | ACCMEM_RANGE_IO | ACCMEM_RANGE_DESCRIBED)

static struct accmem_device *to_device(struct accmem_provider *provider)
{
	return container_of(provider, struct accmem_device, provider);
}

/**
 * accmem_provider_init() - read the parameter of host memory
 *
 * Context: Process context, during module init.
 *
 * Return: 0; -EINVAL after a message.
 */
int accmem_provider_init(void)
{
	const char *rest;

	host_bytes =
		min((u64)totalram_pages() / 2 << PAGE_SHIFT, HOST_DEFAULT_MAX);
	if (!host)
		return 0;
	if (accmem_parse_size(host, '\0', &rest, &host_bytes) &&
	    IS_ALIGNED(host_bytes, ACCMEM_GRANULE) &&
	    host_bytes <= ACCMEM_MAX_SPAN)
		return 0;
	pr_err("host=%s: '%s' is " ACCMEM_CARVEOUT_SIZE_RULE "\n", host, host);
	return -EINVAL;
}

/* Return the device addresses that remain behind the carveouts of a device. */
static u64 provider_room(const struct accmem_carveouts *carveouts)
{
	const struct accmem_carveout *cv;
	u64 room = ACCMEM_MAX_SPAN;

	for (cv = carveouts->cvs; cv < carveouts->end; cv++)
		room -= min(room, ALIGN(cv->capacity, ACCMEM_SPAN_ALIGNMENT));
	return room;
}

/**
 * accmem_provider_create() - create the memory manager of a device
 * @parent: the device that has the memory
 * @ops: operations of the device, or NULL; valid until accmem_provider_unregister() has
 *	returned
 * @priv: the first argument of each operation
 *
 * Programs do not see the device before accmem_provider_publish().
 *
 * Context: Process context. May sleep.
 *
 * Return: the provider, which accmem_provider_unregister() ends; -ENOSPC if there are 16
 * devices, with those that were unregistered and that programs still hold; -ENOMEM.
 */
struct accmem_provider *
accmem_provider_create(struct device *parent,
		       const struct accmem_provider_ops *ops, void *priv)
{
	struct accmem_device *dev = accmem_device_alloc();

	if (IS_ERR(dev))
		return ERR_CAST(dev);
	dev->provider.parent = parent;
	if (ops)
		dev->carveouts->provider_ops = *ops;
	dev->carveouts->provider_priv = priv;
	return &dev->provider;
}

ACCMEM_EXPORT(accmem_provider_create);

static int provider_check_range(const struct accmem_range *range)
{
	bool ram = range->flags & (ACCMEM_RANGE_EMULATED | ACCMEM_RANGE_PAGES);

	if (range->flags & ~RANGE_FLAGS || !range->size ||
	    !IS_ALIGNED(range->size, ACCMEM_GRANULE) ||
	    range->bandwidth >= ACCMEM_NR_BANDWIDTHS ||
	    (ram && range->flags & ACCMEM_RANGE_IO) ||
	    (range->pci && !(range->flags & ACCMEM_RANGE_IO)))
		return -EINVAL;
	/* Cache lines would be written back after the provider has released it. */
	if (range->flags & ACCMEM_RANGE_CLAIMED &&
	    !(range->flags & ACCMEM_RANGE_IO))
		return -EINVAL;
	if (range->node != NUMA_NO_NODE &&
	    (range->node < 0 || range->node >= MAX_NUMNODES ||
	     !node_online(range->node)))
		return -EINVAL;
	return 0;
}

/* Create a carveout. *@why is what is wrong with the range, or NULL. */
static int provider_make(struct accmem_carveout *cv,
			 const struct accmem_range *range, const char **why)
{
	cv->bandwidth = range->bandwidth;
	cv->node = range->node;
	cv->pci = pci_dev_get(range->pci);
	if (range->flags & ACCMEM_RANGE_EMULATED)
		return accmem_emulated_create(cv, range->size);
	return accmem_phys_create(cv, range, why);
}

/**
 * accmem_provider_add_range() - add a range of memory to a device
 * @provider: the provider, not published yet
 * @range: the range, which is number n for programs and for the operations if n ranges
 *	were added before. The function copies what it needs.
 *
 * The contents of the range are overwritten. If a check of a physical range fails, the
 * kernel log says why. Ranges that were added before stay.
 *
 * Context: Process context. May sleep.
 *
 * Return: 0; -EINVAL for a range that is not as &struct accmem_range says, that is not
 * reserved, or that overlaps System RAM; -E2BIG for more than 8 ranges, or for more than
 * 16 TiB of a device, where the size of each range is rounded up to 1 GiB; -EBUSY if the
 * range is claimed, also by an unregistered provider whose memory is still in use, if another
 * device still uses a range with ACCMEM_RANGE_CLAIMED, imported from a device that is gone, or if
 * the range cannot be mapped for the probe; -ENXIO if the probe finds no memory;
 * -EALREADY after publication; -ENOMEM.
 */
int accmem_provider_add_range(struct accmem_provider *provider,
			      const struct accmem_range *range)
{
	struct accmem_device *dev = to_device(provider);
	struct accmem_carveout *cv;
	const char *why = NULL;
	int err = provider_check_range(range);

	if (err)
		return err;
	if (provider->published)
		return -EALREADY;
	if (dev->carveouts->nr_device == ACCMEM_MAX_RANGES ||
	    range->size > provider_room(dev->carveouts))
		return -E2BIG;
	/* Other ranges are claimed by accmem until their last user has gone. */
	if (range->flags & ACCMEM_RANGE_CLAIMED &&
	    accmem_device_is_imported(range->start, range->size)) {
		why = "another device still uses it, by a dma-buf of a device that is gone";
		err = -EBUSY;
		goto err_message;
	}
	cv = accmem_device_add_carveout(dev, ACCMEM_KIND_DEVICE);
	err = provider_make(cv, range, &why);
	if (!err)
		return 0;
	accmem_device_drop_last(dev);
err_message:
	if (why)
		dev_err(provider->parent, "%llu bytes at %pa: %s\n",
			range->size, &range->start, why);
	return err;
}

ACCMEM_EXPORT(accmem_provider_add_range);

static int provider_add_claimed(struct accmem_provider *provider,
				const struct accmem_bar *claim)
{
	const struct accmem_range range = {
		.start = claim->start,
		.size = claim->size,
		.flags = ACCMEM_RANGE_CLAIMED | ACCMEM_RANGE_IO |
			 ACCMEM_RANGE_PROBE,
		.node = dev_to_node(&claim->pdev->dev),
		.pci = claim->pdev,
	};

	return accmem_provider_add_range(provider, &range);
}

/**
 * accmem_provider_add_bar() - add all memory behind a BAR of a PCI device
 * @provider: the provider, not published yet
 * @pdev: the PCI device, which stays on its bus until accmem_provider_unregister() returns
 * @bar: number of the BAR, 0 to 5
 *
 * Enables the memory of the PCI device unless the device is enabled, claims the BAR, and does
 * what accmem_provider_add_range() does, with %ACCMEM_RANGE_IO and %ACCMEM_RANGE_PROBE. The
 * device must stay enabled until accmem_provider_unregister() returns, which releases the BAR.
 * A driver that uses a part of the BAR by itself calls accmem_provider_add_range() with
 * %ACCMEM_RANGE_CLAIMED instead.
 *
 * Context: Process context. May sleep.
 *
 * Return: 0; -EINVAL after a message for a BAR that is not memory, that has no address, or
 * whose size is not a multiple of 2 MiB; -EBUSY if the BAR is claimed; -E2BIG for more than
 * 8 BARs; -EOPNOTSUPP without CONFIG_PCI; the errors of accmem_provider_add_range() and of
 * pci_enable_device_mem().
 */
int accmem_provider_add_bar(struct accmem_provider *provider,
			    struct pci_dev *pdev, int bar)
{
	struct accmem_bars *bars = &provider->bars;
	struct accmem_bar *claim;
	const char *why;
	int err;

	if (provider->published)
		return -EALREADY;
	if (bars->nr == ARRAY_SIZE(bars->bar))
		return -E2BIG;
	claim = &bars->bar[bars->nr];
	err = accmem_bar_claim(claim, pdev, bar, &why);
	if (why)
		dev_err(&pdev->dev, "BAR %d: %s\n", bar, why);
	if (err)
		return err;
	err = provider_add_claimed(provider, claim);
	if (err)
		accmem_bar_release(claim);
	else
		bars->nr++;
	return err;
}

ACCMEM_EXPORT(accmem_provider_add_bar);

/* Add host memory, as far as there are device addresses for it. */
static int provider_add_host(struct accmem_device *dev)
{
	u64 size = min(host_bytes, provider_room(dev->carveouts));
	struct accmem_carveout *cv;
	int err;

	if (!size)
		return 0;
	cv = accmem_device_add_carveout(dev, ACCMEM_KIND_HOST);
	err = accmem_emulated_create(cv, size);
	/* Host memory is populated when it is allocated, not at the first touch. */
	cv->features &= ~ACCMEM_FEATURE_FIRST_TOUCH;
	return err;
}

static int provider_publish(struct accmem_device *dev)
{
	if (dev->provider.published)
		return -EALREADY;
	if (!dev->carveouts->nr_device)
		return -EINVAL;
	dev->provider.published = true;
	return provider_add_host(dev) ?: accmem_device_register(dev);
}

/**
 * accmem_provider_publish() - let programs open the device
 * @provider: the provider, with at least one range
 *
 * Programs may open the device before the function returns. After -EINVAL ranges can still
 * be added. After another failure the provider can only be unregistered.
 *
 * Context: Process context. Takes and releases provider->lock. May sleep.
 *
 * Return: 0; -EINVAL without a range; -EALREADY if the function was called before;
 * -ENOMEM, or another error of cdev_device_add().
 */
int accmem_provider_publish(struct accmem_provider *provider)
{
	int err;

	mutex_lock(&provider->lock);
	err = provider_publish(to_device(provider));
	mutex_unlock(&provider->lock);
	return err;
}

ACCMEM_EXPORT(accmem_provider_publish);

/**
 * accmem_provider_revoke() - take the memory from the programs
 * @provider: the provider
 * @why: enum accmem_revoke_why
 *
 * When the function returns, no program has a mapping of the memory, no operation of the
 * provider runs, and accmem neither calls an operation nor accesses the memory until
 * accmem_provider_resume(); cache lines of a range without ACCMEM_RANGE_IO may still be
 * written back. Accesses to VMAs raise SIGBUS. Calls fail with ECONNRESET
 * (ACCMEM_REVOKE_RESET) or ENODEV (ACCMEM_REVOKE_GONE), except for FREE. The function waits
 * for no program, and may be called again.
 *
 * Other drivers that have imported the memory as a dma-buf have a second to unmap it.
 * Importers that are not revocable, and all importers on kernels before 7.1, may keep their
 * mappings. Pins of the provider (accmem_pin()) stay.
 *
 * Context: Process context. The caller holds no mmap_lock, no dma_resv, and no lock that
 * an operation takes. Takes and releases provider->lock. May sleep.
 *
 * Return: the number of importer mappings that are left, and of dma-bufs whose fences have
 * not signalled. If the number is not 0, a reset would take memory from another device that
 * uses it.
 */
unsigned int accmem_provider_revoke(struct accmem_provider *provider,
				    enum accmem_revoke_why why)
{
	unsigned int nr;

	mutex_lock(&provider->lock);
	nr = accmem_device_revoke(to_device(provider),
				  why == ACCMEM_REVOKE_GONE);
	mutex_unlock(&provider->lock);
	return nr;
}

ACCMEM_EXPORT(accmem_provider_revoke);

/**
 * accmem_provider_resume() - give the memory back to the programs after a reset
 * @provider: the provider; nothing happens unless its memory is revoked for a reset
 * @kept: true if the contents are as they were at the revocation, false if they are lost
 *
 * If the contents were lost, a program continues after it has freed all buffers that it had
 * before the reset.
 *
 * Context: Process context. The caller holds no mmap_lock and no dma_resv. Takes and
 * releases provider->lock. May sleep.
 */
void accmem_provider_resume(struct accmem_provider *provider, bool kept)
{
	mutex_lock(&provider->lock);
	accmem_device_resume(to_device(provider), kept);
	mutex_unlock(&provider->lock);
}

ACCMEM_EXPORT(accmem_provider_resume);

/**
 * accmem_provider_retire() - take memory that has failed out of use
 * @provider: the provider, which has not been unregistered
 * @range: number of the range
 * @offset: offset in the range, in bytes
 * @size: size in bytes; all granules of 4 KiB that contain a byte of the part are retired
 *
 * The memory may be free, in use, or retired already. Programs that have mapped it get
 * SIGBUS with BUS_MCEERR_AR. Memory in use is retired when it is freed. accmem remembers
 * the physical address until accmem is unloaded; a list over a reboot is left to the
 * driver of the device.
 *
 * Context: Process context. The caller holds no mmap_lock and no dma_resv. May wait for a
 * fence of the operation clear: the thread that signals the fences must not call this
 * function. May sleep.
 *
 * Return: 0; -EINVAL if the part is empty or not inside the range; -ENOMEM if some of it
 * could not be recorded; -ENODEV if the device is being destroyed.
 */
int accmem_provider_retire(struct accmem_provider *provider, unsigned int range,
			   u64 offset, u64 size)
{
	struct accmem_carveouts *carveouts = to_device(provider)->carveouts;

	if (range >= carveouts->nr_device)
		return -EINVAL;
	return accmem_retire(&carveouts->cvs[range], offset, size,
			     ACCMEM_CAUSE_DRIVER);
}

ACCMEM_EXPORT(accmem_provider_retire);

/**
 * accmem_provider_unregister() - end a provider
 * @provider: the provider, published or not; the pointer is not valid afterwards
 *
 * Does what accmem_provider_revoke() does with ACCMEM_REVOKE_GONE, and removes the device
 * from /dev and sysfs. Programs keep their descriptors, buffers and VMAs of the device,
 * without access to the memory. The memory is freed when programs free their buffers, or
 * close the device and remove the VMAs. A range that accmem has claimed stays claimed until
 * then. A BAR from accmem_provider_add_bar() is released when the function returns. The caller
 * may still call accmem_unpin() and accmem_context_put().
 *
 * Context: Process context. The caller holds no mmap_lock, no dma_resv, and no lock that
 * an operation takes. Takes and releases provider->lock. May wait for a fence of the
 * operation clear: the fence must signal without the help of the caller. May sleep.
 */
void accmem_provider_unregister(struct accmem_provider *provider)
{
	struct accmem_device *dev = to_device(provider);
	struct accmem_bars bars = provider->bars;

	mutex_lock(&provider->lock);
	accmem_device_revoke(dev, true);
	provider->parent = NULL;
	mutex_unlock(&provider->lock);
	accmem_device_remove(dev);
	while (bars.nr)
		accmem_bar_release(&bars.bar[--bars.nr]);
}

ACCMEM_EXPORT(accmem_provider_unregister);

/**
 * accmem_context_from_fd() - get the context of an open file of the device
 * @provider: the provider
 * @fd: descriptor of the calling process
 *
 * The reference to the context does not keep the file open: after the program has closed
 * the device, accmem_pin() finds no buffers.
 *
 * Context: Process context, before accmem_provider_unregister(). May sleep.
 *
 * Return: the context, which accmem_context_put() drops; -EBADF if @fd is not an open
 * /dev/accmemN of this provider.
 */
struct accmem_context *accmem_context_from_fd(struct accmem_provider *provider,
					      int fd)
{
	struct accmem_context *ctx;
	struct file *file = fget(fd);

	if (!file)
		return ERR_PTR(-EBADF);
	ctx = accmem_device_context(to_device(provider), file);
	fput(file);
	return ctx;
}

ACCMEM_EXPORT(accmem_context_from_fd);
