/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pressure: notify contexts that can free memory for waiters.
 */
#ifndef ACCMEM_ALLOC_PRESSURE_H
#define ACCMEM_ALLOC_PRESSURE_H

#include <linux/poll.h>
#include <linux/types.h>

struct accmem_context;
struct accmem_pressure;
struct accmem_waiters;
struct file;
struct poll_table_struct;
struct seq_file;

void accmem_pressure_init(struct accmem_waiters *ws);
void accmem_pressure_stop(struct accmem_waiters *ws);
void accmem_pressure_end(struct accmem_context *ctx);
int accmem_pressure_query(struct accmem_context *ctx,
			  struct accmem_pressure *req);
void accmem_pressure_show(struct seq_file *m, struct accmem_context *ctx);
__poll_t accmem_pressure_poll(struct file *file,
			      struct poll_table_struct *table);

#endif /* ACCMEM_ALLOC_PRESSURE_H */
