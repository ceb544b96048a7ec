/* SPDX-License-Identifier: GPL-2.0 */
/*
 * debugfs: the file runs.
 */
#ifndef ACCMEM_DEBUGFS_RUNS_H
#define ACCMEM_DEBUGFS_RUNS_H

#include <linux/fs.h>

extern const struct file_operations accmem_debugfs_runs_fops;

#endif /* ACCMEM_DEBUGFS_RUNS_H */
