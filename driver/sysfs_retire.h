/* SPDX-License-Identifier: GPL-2.0 */
/*
 * sysfs: the files retire and retired of a carveout.
 */
#ifndef ACCMEM_SYSFS_RETIRE_H
#define ACCMEM_SYSFS_RETIRE_H

struct accmem_carveout;

int accmem_sysfs_retire_add(struct accmem_carveout *cv);

#endif /* ACCMEM_SYSFS_RETIRE_H */
