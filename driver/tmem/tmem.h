/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor Memory of a context: setup and reset.
 *
 * The ioctl SETUP and the end of a context call these functions. The functions and
 * locks inside tmem/ are in internal.h.
 */
#ifndef ACCMEM_TMEM_H
#define ACCMEM_TMEM_H

struct accmem_context;
struct accmem_tmem_setup;

int accmem_tmem_setup(struct accmem_context *ctx,
		      const struct accmem_tmem_setup *req);
void accmem_tmem_end(struct accmem_context *ctx);
void accmem_tmem_revoke(struct accmem_context *ctx);

#endif /* ACCMEM_TMEM_H */
