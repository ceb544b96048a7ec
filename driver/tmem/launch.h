/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Launches of CTAs.
 */
#ifndef ACCMEM_TMEM_LAUNCH_H
#define ACCMEM_TMEM_LAUNCH_H

struct accmem_context;
struct accmem_launch;

int accmem_launch_prepare(struct accmem_launch *launch);
void accmem_launch_cancel(struct accmem_launch *launch);
int accmem_tmem_launch(struct accmem_context *ctx,
		       const struct accmem_launch *launch);

#endif /* ACCMEM_TMEM_LAUNCH_H */
