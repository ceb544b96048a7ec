/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contexts: open files of a device.
 */
#ifndef ACCMEM_VM_CONTEXT_H
#define ACCMEM_VM_CONTEXT_H

#include <linux/kref.h>
#include <linux/types.h>
#include <linux/xarray.h>

#include "core/carveout.h"
#include "types/context_types.h"

struct xarray;

struct accmem_context *accmem_context_open(struct accmem_accounts *accounts,
					   struct accmem_carveouts *carveouts,
					   struct accmem_waiters *waiters,
					   struct accmem_due *due);
struct accmem_context *accmem_context_of(struct accmem_account *account);
struct accmem_context *accmem_context_of_any(struct accmem_account *account);
struct accmem_context *accmem_context_next(struct xarray *accounts,
					   unsigned long *id);
void accmem_context_put(struct accmem_context *ctx);

static inline void accmem_context_get(struct accmem_context *ctx)
{
	kref_get(&ctx->refs);
}

/* May the buffers of a context be used: neither revoked now, nor lost at a reset? */
static inline bool accmem_context_is_valid(const struct accmem_context *ctx)
{
	return READ_ONCE(ctx->carveouts->epoch) == READ_ONCE(ctx->epoch);
}

/*
 * Add @bytes, which may be negative, to the cached bytes of a context in a carveout.
 * The caller holds the context's lock.
 */
static inline void accmem_ctx_count_cached(struct accmem_context *ctx,
					   struct accmem_carveout *cv,
					   s64 bytes)
{
	struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);

	lockdep_assert_held(&ctx->lock);
	WRITE_ONCE(h->cached_bytes, h->cached_bytes + bytes);
	accmem_count_cached(cv, bytes);
}

#endif /* ACCMEM_VM_CONTEXT_H */
