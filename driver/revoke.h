/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Revocation and resume of a device, as its users see them.
 */
#ifndef ACCMEM_REVOKE_H
#define ACCMEM_REVOKE_H

#include <linux/compiler.h>
#include <linux/types.h>

#include "vm/context.h"

struct accmem_device;

unsigned int accmem_device_revoke(struct accmem_device *dev, bool gone);
void accmem_device_resume(struct accmem_device *dev, bool kept);
int accmem_context_renew(struct accmem_context *ctx);

/**
 * accmem_context_check() - check that the buffers of a context may be used
 * @ctx: the context
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENODEV if the device is gone; -ECONNRESET while its memory is revoked, and
 * after a reset that lost the contents until the context has freed its buffers.
 */
static inline int accmem_context_check(struct accmem_context *ctx)
{
	return likely(accmem_context_is_valid(ctx)) ? 0 :
						      accmem_context_renew(ctx);
}

#endif /* ACCMEM_REVOKE_H */
