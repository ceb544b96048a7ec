// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs: the numbers of a device in /sys/class/accmem/accmemN/.
 *
 * Each file has one value, most of them a decimal number; sizes are in bytes. The
 * directory carveoutM/ has the values of carveout M, and host/ those of host memory.
 * The device's own files have the sum over its carveouts of device memory
 * (largest_free_run: the maximum).
 *
 * Any user may read the properties of the hardware. Files that show activity of tenants
 * are for root only. capacity = free + live + detached + pending + quarantined +
 * retired holds at any moment; two files that are read in sequence show two moments.
 *
 * Locking: the lock of the carveout, for each value. A reader writes to no other data
 * that tenants use.
 */
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "alloc/usage.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "memory/retire.h"
#include "revoke.h"
#include "sysfs.h"
#include "sysfs_retire.h"
#include "types/device_types.h"

static u64 sysfs_sum(struct accmem_device *dev,
		     u64 (*value)(struct accmem_carveout *cv))
{
	struct accmem_carveout *cv;
	u64 sum = 0;

	for (cv = dev->carveouts->cvs;
	     cv < dev->carveouts->cvs + dev->carveouts->nr_device; cv++)
		sum += value(cv);
	return sum;
}

static u64 sysfs_max(struct accmem_device *dev,
		     u64 (*value)(struct accmem_carveout *cv))
{
	struct accmem_carveout *cv;
	u64 most = 0;

	for (cv = dev->carveouts->cvs;
	     cv < dev->carveouts->cvs + dev->carveouts->nr_device; cv++)
		most = max(most, value(cv));
	return most;
}

/* Define a file of a carveout's directory that shows the result of a function. */
#define CARVEOUT_ATTR(_name, _mode, _format, _value)                    \
	static ssize_t _name##_of_carveout(struct kobject *kobj,        \
					   struct kobj_attribute *attr, \
					   char *b)                     \
	{                                                               \
		return sysfs_emit(b, _format "\n",                      \
				  _value(accmem_sysfs_carveout(kobj))); \
	}                                                               \
	static struct kobj_attribute carveout_attr_##_name = {          \
		.attr = { .name = #_name, .mode = _mode },              \
		.show = _name##_of_carveout,                            \
	}

/*
 * Define a file for root that shows an expression of cv: in the carveout's directory
 * its value, in the device's directory the sum over the carveouts.
 */
#define ROOT_ATTR(_name, _expr)                                             \
	static u64 sysfs_##_name(struct accmem_carveout *cv)                \
	{                                                                   \
		return _expr;                                               \
	}                                                                   \
	static ssize_t _name##_show(struct device *d,                       \
				    struct device_attribute *attr, char *b) \
	{                                                                   \
		return sysfs_emit(b, "%llu\n",                              \
				  sysfs_sum(accmem_sysfs_device(d),         \
					    sysfs_##_name));                \
	}                                                                   \
	static struct device_attribute dev_attr_##_name = {                 \
		.attr = { .name = #_name, .mode = 0400 },                   \
		.show = _name##_show,                                       \
	};                                                                  \
	CARVEOUT_ATTR(_name, 0400, "%llu", sysfs_##_name)

static u64 state_bytes(struct accmem_carveout *cv, enum accmem_state state)
{
	u64 bytes[ACCMEM_NR_STATES], free;

	accmem_carveout_usage(cv, bytes, &free);
	return bytes[state];
}

static struct accmem_failed_bytes failed_bytes(struct accmem_carveout *cv)
{
	struct accmem_failed_bytes bytes;

	accmem_retire_bytes(cv, &bytes);
	return bytes;
}

static struct accmem_counters counters(struct accmem_carveout *cv)
{
	struct accmem_counters sum;

	accmem_carveout_sum(cv, &sum);
	return sum;
}

static u64 nr_buffers(struct accmem_carveout *cv)
{
	struct accmem_counters sum = counters(cv);

	/* the processors are read one after another: the free may be counted alone */
	return max_t(s64, sum.allocs - sum.frees, 0);
}

static u64 dirty_bytes(struct accmem_carveout *cv)
{
	u64 bytes;

	accmem_carveout_lock(cv);
	bytes = accmem_buddy_free_dirty_bytes(&cv->buddy) +
		cv->cleaner.bytes_held;
	accmem_carveout_unlock(cv);
	return bytes;
}

/* Read a 64-bit number under the lock, since a 32-bit machine reads it in two parts. */
static u64 locked_value(struct accmem_carveout *cv, const u64 *number)
{
	u64 value;

	accmem_carveout_lock(cv);
	value = *number;
	accmem_carveout_unlock(cv);
	return value;
}

static u64 sysfs_capacity(struct accmem_carveout *cv)
{
	return cv->capacity;
}
CARVEOUT_ATTR(capacity, 0444, "%llu", sysfs_capacity);

static ssize_t capacity_show(struct device *d, struct device_attribute *attr,
			     char *b)
{
	return sysfs_emit(b, "%llu\n",
			  sysfs_sum(accmem_sysfs_device(d), sysfs_capacity));
}
static DEVICE_ATTR_RO(capacity);

static u64 sysfs_largest_free_run(struct accmem_carveout *cv)
{
	return accmem_usage_longest(cv, 0);
}
CARVEOUT_ATTR(largest_free_run, 0400, "%llu", sysfs_largest_free_run);

static ssize_t largest_free_run_show(struct device *d,
				     struct device_attribute *attr, char *b)
{
	return sysfs_emit(b, "%llu\n",
			  sysfs_max(accmem_sysfs_device(d),
				    sysfs_largest_free_run));
}
static DEVICE_ATTR_ADMIN_RO(largest_free_run);

ROOT_ATTR(free_bytes, accmem_carveout_free_bytes(cv));
ROOT_ATTR(live_bytes, state_bytes(cv, ACCMEM_LIVE));
ROOT_ATTR(detached_bytes, state_bytes(cv, ACCMEM_DETACHED));
ROOT_ATTR(pending_bytes, state_bytes(cv, ACCMEM_PENDING));
ROOT_ATTR(quarantined_bytes, state_bytes(cv, ACCMEM_QUARANTINED));
ROOT_ATTR(retired_bytes, state_bytes(cv, ACCMEM_RETIRED));
ROOT_ATTR(retire_pending_bytes, failed_bytes(cv).pending);
ROOT_ATTR(retire_failed_bytes, failed_bytes(cv).lost);
ROOT_ATTR(dirty_bytes, dirty_bytes(cv));
ROOT_ATTR(cleared_background_bytes,
	  locked_value(cv, &cv->cleaner.bytes_cleared));
ROOT_ATTR(cleared_at_alloc_bytes,
	  locked_value(cv, &cv->cleaner.bytes_at_alloc));
ROOT_ATTR(cleared_parallel_bytes,
	  locked_value(cv, &cv->cleaner.bytes_parallel));
ROOT_ATTR(shared_moves, (u64)atomic64_read(&cv->shared.moves));
ROOT_ATTR(shared_clean_moves, (u64)atomic64_read(&cv->shared.clean));
ROOT_ATTR(shared_to_device_bytes, (u64)atomic64_read(&cv->shared.to_device));
ROOT_ATTR(shared_to_host_bytes, (u64)atomic64_read(&cv->shared.to_host));
ROOT_ATTR(resident_bytes, (u64)atomic64_read(&cv->resident) << PAGE_SHIFT);
ROOT_ATTR(buffers, nr_buffers(cv));
ROOT_ATTR(allocs, counters(cv).allocs);
ROOT_ATTR(frees, counters(cv).frees);
ROOT_ATTR(failures, counters(cv).failures);

static const char *sysfs_class(const struct accmem_carveout *cv)
{
	switch (cv->bandwidth) {
	case ACCMEM_BANDWIDTH_LOW:
		return "low";
	case ACCMEM_BANDWIDTH_HIGH:
		return "high";
	default:
		return "unknown";
	}
}
CARVEOUT_ATTR(bandwidth, 0444, "%s", sysfs_class);

static int sysfs_node(const struct accmem_carveout *cv)
{
	return cv->node;
}
CARVEOUT_ATTR(numa_node, 0444, "%d", sysfs_node);

static ssize_t contexts_show(struct device *d, struct device_attribute *attr,
			     char *b)
{
	return sysfs_emit(b, "%d\n",
			  atomic_read(&accmem_sysfs_device(d)
					       ->accounts.nr_contexts));
}
static DEVICE_ATTR_ADMIN_RO(contexts);

/* Take the memory from all programs, as after a reset that lost its contents. */
static ssize_t reset_store(struct device *d, struct device_attribute *attr,
			   const char *text, size_t size)
{
	struct accmem_device *dev = accmem_sysfs_device(d);
	bool busy;

	if (!sysfs_streq(text, "1"))
		return -EINVAL;
	mutex_lock(&dev->provider.lock);
	/* The driver of the device resumes what it has revoked. */
	busy = accmem_is_revoked(dev->carveouts);
	if (!busy) {
		/* An importer that does not let go may write to the memory later. */
		busy = accmem_device_revoke(dev, false);
		accmem_device_resume(dev, busy);
	}
	mutex_unlock(&dev->provider.lock);
	return busy ? -EBUSY : size;
}
static DEVICE_ATTR_WO(reset);

static struct attribute *accmem_sysfs_attrs[] = {
	&dev_attr_capacity.attr,
	&dev_attr_free_bytes.attr,
	&dev_attr_dirty_bytes.attr,
	&dev_attr_cleared_background_bytes.attr,
	&dev_attr_cleared_at_alloc_bytes.attr,
	&dev_attr_cleared_parallel_bytes.attr,
	&dev_attr_shared_moves.attr,
	&dev_attr_shared_clean_moves.attr,
	&dev_attr_shared_to_device_bytes.attr,
	&dev_attr_shared_to_host_bytes.attr,
	&dev_attr_largest_free_run.attr,
	&dev_attr_live_bytes.attr,
	&dev_attr_detached_bytes.attr,
	&dev_attr_pending_bytes.attr,
	&dev_attr_quarantined_bytes.attr,
	&dev_attr_retired_bytes.attr,
	&dev_attr_retire_pending_bytes.attr,
	&dev_attr_retire_failed_bytes.attr,
	&dev_attr_resident_bytes.attr,
	&dev_attr_buffers.attr,
	&dev_attr_allocs.attr,
	&dev_attr_frees.attr,
	&dev_attr_failures.attr,
	&dev_attr_contexts.attr,
	&dev_attr_reset.attr,
	NULL,
};

static const struct attribute_group accmem_sysfs_group = {
	.attrs = accmem_sysfs_attrs,
};

const struct attribute_group *accmem_sysfs_groups[] = {
	&accmem_sysfs_group,
	NULL,
};

static struct attribute *carveout_attrs[] = {
	&carveout_attr_bandwidth.attr,
	&carveout_attr_numa_node.attr,
	&carveout_attr_capacity.attr,
	&carveout_attr_free_bytes.attr,
	&carveout_attr_dirty_bytes.attr,
	&carveout_attr_cleared_background_bytes.attr,
	&carveout_attr_cleared_at_alloc_bytes.attr,
	&carveout_attr_cleared_parallel_bytes.attr,
	&carveout_attr_shared_moves.attr,
	&carveout_attr_shared_clean_moves.attr,
	&carveout_attr_shared_to_device_bytes.attr,
	&carveout_attr_shared_to_host_bytes.attr,
	&carveout_attr_largest_free_run.attr,
	&carveout_attr_live_bytes.attr,
	&carveout_attr_detached_bytes.attr,
	&carveout_attr_pending_bytes.attr,
	&carveout_attr_quarantined_bytes.attr,
	&carveout_attr_retired_bytes.attr,
	&carveout_attr_retire_pending_bytes.attr,
	&carveout_attr_retire_failed_bytes.attr,
	&carveout_attr_resident_bytes.attr,
	&carveout_attr_buffers.attr,
	&carveout_attr_allocs.attr,
	&carveout_attr_frees.attr,
	&carveout_attr_failures.attr,
	NULL,
};

static const struct attribute_group carveout_group = {
	.attrs = carveout_attrs,
};

static int sysfs_add_carveout(struct accmem_device *dev,
			      struct accmem_carveout *cv)
{
	char name[16] = "host";
	int err;

	if (cv->kind == ACCMEM_KIND_DEVICE)
		snprintf(name, sizeof(name), "carveout%u", cv->index);
	cv->sysfs = kobject_create_and_add(name, &dev->device.kobj);
	if (!cv->sysfs)
		return -ENOMEM;
	err = sysfs_create_group(cv->sysfs, &carveout_group);
	return err ?: accmem_sysfs_retire_add(cv);
}

/**
 * accmem_sysfs_add() - create the directories of a device's carveouts
 * @dev: the device; its own directory exists
 *
 * Context: Process context. May sleep.
 *
 * Return: 0, -ENOMEM, or an error of sysfs_create_group().
 */
int accmem_sysfs_add(struct accmem_device *dev)
{
	struct accmem_carveout *cv;
	int err = 0;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		err = sysfs_add_carveout(dev, cv);
		if (err) {
			accmem_sysfs_remove(dev);
			return err;
		}
	}
	return 0;
}

/**
 * accmem_sysfs_remove() - remove the directories of a device's carveouts
 * @dev: the device; some of the directories may not exist
 *
 * Context: Process context. May sleep.
 */
void accmem_sysfs_remove(struct accmem_device *dev)
{
	struct accmem_carveout *cv;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		kobject_put(cv->sysfs);
		cv->sysfs = NULL;
	}
}
