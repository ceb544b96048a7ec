/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Launches of CTAs.
 *
 * An ioctl calls accmem_launch_prepare(), copies the descriptors to user space and
 * calls accmem_tmem_launch(). After an error it calls accmem_launch_cancel().
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
