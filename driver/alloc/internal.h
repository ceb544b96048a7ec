/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions of alloc/ that other folders do not call.
 */
#ifndef ACCMEM_ALLOC_INTERNAL_H
#define ACCMEM_ALLOC_INTERNAL_H

#include <linux/errno.h>
#include <linux/types.h>

struct accmem_alloc;
struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_demand;
struct accmem_layout;
struct accmem_plan;
struct xarray;

/* growth.c */
#define ACCMEM_NO_ROOM (-EXFULL) /* cannot grow in place; internal */

/* reclaim.c */
void accmem_reclaim_drain(struct xarray *accounts);
void accmem_reclaim_addresses(struct accmem_context *ctx,
			      const struct accmem_carveout *cv);

/* usage.c */
bool accmem_usage_may_have(struct accmem_carveout *cv, u64 size);

/* alloc.c */
struct accmem_buffer *accmem_alloc_try(struct accmem_context *ctx,
				       const struct accmem_plan *plan);
void accmem_alloc_count_failure(struct accmem_context *ctx,
				const struct accmem_plan *plan);

/* plan.c */
struct accmem_carveout *
accmem_plan_next_carveout(struct accmem_context *ctx,
			  const struct accmem_alloc *req, u32 left);
int accmem_plan_layout(const struct accmem_carveout *cv,
		       const struct accmem_alloc *req, u32 page_policy,
		       struct accmem_layout *layout);
int accmem_plan_check_fixed(struct accmem_context *ctx,
			    const struct accmem_carveout *cv,
			    const struct accmem_alloc *req,
			    const struct accmem_layout *layout);
int accmem_plan_demand(struct accmem_context *ctx,
		       const struct accmem_plan *plan,
		       struct accmem_demand *demand);
u32 accmem_plan_handoff(struct accmem_context *ctx,
			const struct accmem_alloc *req, u32 carveouts,
			struct accmem_layout *layout);

/* free.c */
struct accmem_buffer *accmem_alloc_find(struct accmem_context *ctx,
					u64 address);
void accmem_alloc_replace(struct accmem_context *ctx, struct accmem_buffer *old,
			  struct accmem_buffer *fresh);

/* growth.c */
int accmem_growth_place(struct accmem_context *ctx, struct accmem_buffer *buf,
			u64 size);
int accmem_growth_make(struct accmem_context *ctx, struct accmem_buffer *buf,
		       u32 page_size, bool insists, u64 *size);

/* pressure.c */
void accmem_pressure_notify(struct accmem_context *ctx);

#endif /* ACCMEM_ALLOC_INTERNAL_H */
