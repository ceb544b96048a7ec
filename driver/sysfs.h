/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sysfs: the numbers of a device in /sys/class/accmem/accmemN/.
 */
#ifndef ACCMEM_SYSFS_H
#define ACCMEM_SYSFS_H

#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/sysfs.h>

#include "types/device_types.h"

struct attribute_group;

extern const struct attribute_group *accmem_sysfs_groups[];
int accmem_sysfs_add(struct accmem_device *dev);
void accmem_sysfs_remove(struct accmem_device *dev);

static inline struct accmem_device *accmem_sysfs_device(struct device *d)
{
	return container_of(d, struct accmem_device, device);
}

/*
 * Return the carveout of a directory. The files exist only after the directory was set.
 */
static inline struct accmem_carveout *
accmem_sysfs_carveout(struct kobject *kobj)
{
	struct accmem_device *dev =
		accmem_sysfs_device(kobj_to_dev(kobj->parent));
	struct accmem_carveout *cv;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		if (cv->sysfs == kobj)
			return cv;
	}
	return dev->carveouts->cvs;
}

#endif /* ACCMEM_SYSFS_H */
