/* SPDX-License-Identifier: GPL-2.0 */
/*
 * List of the runs of a context, for debugfs.
 */
#ifndef ACCMEM_VM_LIST_H
#define ACCMEM_VM_LIST_H

#include <linux/types.h>

struct accmem_context;
struct accmem_run_line;

unsigned int accmem_context_list_runs(struct accmem_context *ctx, u64 *address,
				      unsigned int *first,
				      struct accmem_run_line *lines,
				      unsigned int max);

#endif /* ACCMEM_VM_LIST_H */
