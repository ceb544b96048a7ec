/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sysfs: the numbers of a device in /sys/class/accmem/accmemN/.
 */
#ifndef ACCMEM_SYSFS_H
#define ACCMEM_SYSFS_H

#include <linux/sysfs.h>

struct accmem_device;
struct attribute_group;

extern const struct attribute_group *accmem_sysfs_groups[];
int accmem_sysfs_add(struct accmem_device *dev);
void accmem_sysfs_remove(struct accmem_device *dev);

#endif /* ACCMEM_SYSFS_H */
