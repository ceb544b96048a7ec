/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions of vm/ that only files in vm/ call.
 */
#ifndef ACCMEM_VM_INTERNAL_H
#define ACCMEM_VM_INTERNAL_H

#include <linux/types.h>

#include "types/context_types.h"

struct accmem_alloc;
struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_layout;
struct accmem_va;

/* va.c */
int accmem_va_insert(struct accmem_context *ctx, struct accmem_va *va,
		     u64 alignment, u64 *from);
int accmem_va_insert_at(struct accmem_context *ctx, struct accmem_va *va);
void accmem_va_erase(struct accmem_context *ctx, struct accmem_va *va);
struct accmem_va *accmem_va_above(struct accmem_context *ctx, u64 address);
struct accmem_va *accmem_va_find(struct accmem_context *ctx, u64 address);
struct accmem_va *accmem_va_next(const struct accmem_va *va);

/* lookup.c */
struct accmem_buffer *accmem_va_buffer(const struct accmem_va *va, u64 address);

/*
 * Let the mappings of a bo begin where its device addresses do. An import does not, since
 * the bo has its offset already. The caller holds ctx->lock.
 */
static inline void accmem_va_place_bo(struct accmem_context *ctx,
				      struct accmem_va *va)
{
	va->bo->offset = va->start - ctx->carveouts->address_base;
}

/* import.c */
void accmem_import_destroy(struct accmem_context *ctx,
			   struct accmem_buffer *buf);

/* slab.c */
struct accmem_buffer *accmem_slab_create(struct accmem_context *ctx,
					 struct accmem_carveout *cv,
					 const struct accmem_alloc *req,
					 const struct accmem_layout *layout);
void accmem_slab_destroy(struct accmem_context *ctx, struct accmem_buffer *buf);
void accmem_slab_set_pending(struct accmem_context *ctx,
			     struct accmem_buffer *buf, bool pending);
void accmem_slab_set_cached(struct accmem_context *ctx,
			    struct accmem_buffer *buf, bool cached);

#endif /* ACCMEM_VM_INTERNAL_H */
