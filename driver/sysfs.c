// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/class/accmem/accmemN/: one decimal number a file; sizes in bytes.
 *
 * Everybody may read the capacity; what tenants do is for root. A reader writes
 * nothing that tenants write but the carveout's lock. capacity = free + live +
 * detached + pending + quarantined at any moment; files read one after the other
 * see different moments.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "context.h"

static struct accmem_device *to_accmem(struct device *d)
{
	return container_of(d, struct accmem_device, device);
}

/* an attribute that is an expression of cv and of what @_prepare has read */
#define ROOT_ATTR(_name, _prepare, _expr)                                   \
	static ssize_t _name##_show(struct device *d,                       \
				    struct device_attribute *attr, char *b) \
	{                                                                   \
		struct accmem_carveout *cv = &to_accmem(d)->cv;             \
		u64 value;                                                  \
									    \
		_prepare;                                                   \
		value = _expr;                                              \
		return sysfs_emit(b, "%llu\n", value);                      \
	}                                                                   \
	static DEVICE_ATTR_ADMIN_RO(_name)

#define USAGE_ATTR(_name, _expr)                                            \
	ROOT_ATTR(_name,                                                    \
		  u64 bytes[ACCMEM_NR_STATES]; u64 free;                    \
		  accmem_carveout_usage(cv, bytes, &free), _expr)

#define COUNTER_ATTR(_name, _expr)                                          \
	ROOT_ATTR(_name, struct accmem_counters sum;                        \
		  accmem_carveout_sum(cv, &sum), _expr)

static u64 dirty_bytes(struct accmem_carveout *cv)
{
	u64 bytes;

	accmem_carveout_lock(cv);
	bytes = accmem_buddy_free_dirty_bytes(&cv->buddy) + cv->clearing;
	accmem_carveout_unlock(cv);
	return bytes;
}

/* a 64-bit number under the lock, whole on every machine */
static u64 locked_value(struct accmem_carveout *cv, const u64 *number)
{
	u64 value;

	accmem_carveout_lock(cv);
	value = *number;
	accmem_carveout_unlock(cv);
	return value;
}

static ssize_t capacity_show(struct device *d, struct device_attribute *attr,
			     char *b)
{
	return sysfs_emit(b, "%llu\n", to_accmem(d)->cv.capacity);
}
static DEVICE_ATTR_RO(capacity);

USAGE_ATTR(free_bytes, free);
USAGE_ATTR(live_bytes, bytes[ACCMEM_LIVE]);
USAGE_ATTR(detached_bytes, bytes[ACCMEM_DETACHED]);
USAGE_ATTR(pending_bytes, bytes[ACCMEM_PENDING]);
USAGE_ATTR(quarantined_bytes, bytes[ACCMEM_QUARANTINED]);
ROOT_ATTR(dirty_bytes, value = 0, dirty_bytes(cv));
ROOT_ATTR(cleared_bytes, value = 0, locked_value(cv, &cv->cleared));
ROOT_ATTR(cleared_late_bytes, value = 0, locked_value(cv, &cv->cleared_late));
ROOT_ATTR(resident_bytes, value = 0,
	  (u64)atomic64_read(&cv->resident) << PAGE_SHIFT);
COUNTER_ATTR(buffers, sum.allocs - sum.frees);
COUNTER_ATTR(allocs, sum.allocs);
COUNTER_ATTR(frees, sum.frees);
COUNTER_ATTR(failures, sum.failures);

static ssize_t largest_run_show(struct device *d, struct device_attribute *attr,
				char *b)
{
	return sysfs_emit(b, "%llu\n", accmem_usage_longest(to_accmem(d), 0));
}
static DEVICE_ATTR_ADMIN_RO(largest_run);

static ssize_t contexts_show(struct device *d, struct device_attribute *attr,
			     char *b)
{
	return sysfs_emit(b, "%d\n", atomic_read(&to_accmem(d)->nr_contexts));
}
static DEVICE_ATTR_ADMIN_RO(contexts);

static struct attribute *accmem_sysfs_attrs[] = {
	&dev_attr_capacity.attr,
	&dev_attr_free_bytes.attr,
	&dev_attr_dirty_bytes.attr,
	&dev_attr_cleared_bytes.attr,
	&dev_attr_cleared_late_bytes.attr,
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
