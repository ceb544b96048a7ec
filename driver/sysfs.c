// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/misc/accmemN/: one decimal number a file; sizes in bytes.
 *
 * capacity = free + live + detached + pending + quarantined at any moment;
 * files read one after the other see different moments.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "accmem_drv.h"

static struct accmem_device *to_accmem(struct device *d)
{
	struct miscdevice *misc = dev_get_drvdata(d);

	return container_of(misc, struct accmem_device, misc);
}

/* the memory of a device, when what its contexts keep has been given back */
static struct accmem_carveout *drained(struct device *d)
{
	struct accmem_device *dev = to_accmem(d);

	accmem_stash_drain_device(dev);
	return &dev->cv;
}

/* an attribute that is an expression of cv, read under its lock */
#define LOCKED_ATTR(_name, _expr)                                           \
	static ssize_t _name##_show(struct device *d,                       \
				    struct device_attribute *attr, char *b) \
	{                                                                   \
		struct accmem_carveout *cv = drained(d);                    \
		u64 value;                                                  \
									    \
		accmem_carveout_lock(cv);                                   \
		value = _expr;                                              \
		accmem_carveout_unlock(cv);                                 \
		return sysfs_emit(b, "%llu\n", value);                      \
	}                                                                   \
	static DEVICE_ATTR_RO(_name)

LOCKED_ATTR(capacity, cv->capacity);
LOCKED_ATTR(free_bytes, accmem_carveout_free_bytes(cv));
LOCKED_ATTR(dirty_bytes,
	    accmem_buddy_free_dirty_bytes(&cv->buddy) + cv->scrubbing);
LOCKED_ATTR(largest_run,
	    accmem_buddy_largest_run(&cv->buddy, ACCMEM_GRANULE));
LOCKED_ATTR(live_bytes, accmem_carveout_bytes(cv, ACCMEM_LIVE));
LOCKED_ATTR(detached_bytes, accmem_carveout_bytes(cv, ACCMEM_DETACHED));
LOCKED_ATTR(pending_bytes, accmem_carveout_bytes(cv, ACCMEM_PENDING));
LOCKED_ATTR(quarantined_bytes,
	    accmem_carveout_bytes(cv, ACCMEM_QUARANTINED));
LOCKED_ATTR(resident_bytes, (u64)atomic64_read(&cv->resident) << PAGE_SHIFT);
LOCKED_ATTR(buffers, cv->nr_buffers);
LOCKED_ATTR(allocs, cv->allocs);
LOCKED_ATTR(frees, cv->frees);
LOCKED_ATTR(failures, cv->failures);

static ssize_t contexts_show(struct device *d, struct device_attribute *attr,
			     char *b)
{
	struct accmem_device *dev = to_accmem(d);
	u64 value;

	mutex_lock(&dev->lock);
	value = dev->nr_contexts;
	mutex_unlock(&dev->lock);
	return sysfs_emit(b, "%llu\n", value);
}
static DEVICE_ATTR_RO(contexts);

static struct attribute *accmem_sysfs_attrs[] = {
	&dev_attr_capacity.attr,
	&dev_attr_free_bytes.attr,
	&dev_attr_dirty_bytes.attr,
	&dev_attr_largest_run.attr,
	&dev_attr_live_bytes.attr,
	&dev_attr_detached_bytes.attr,
	&dev_attr_pending_bytes.attr,
	&dev_attr_quarantined_bytes.attr,
	&dev_attr_resident_bytes.attr,
	&dev_attr_buffers.attr,
	&dev_attr_allocs.attr,
	&dev_attr_frees.attr,
	&dev_attr_failures.attr,
	&dev_attr_contexts.attr,
	NULL,
};

static const struct attribute_group accmem_sysfs_group = {
	.attrs = accmem_sysfs_attrs,
};

const struct attribute_group *accmem_sysfs_groups[] = {
	&accmem_sysfs_group,
	NULL,
};
