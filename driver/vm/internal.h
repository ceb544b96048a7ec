/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Functions that only vm/ uses.
 */
#ifndef ACCMEM_VM_INTERNAL_H
#define ACCMEM_VM_INTERNAL_H

#include <linux/types.h>

struct accmem_alloc;
struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_layout;
struct accmem_memory;
struct accmem_place;

/* va.c */
int accmem_place_insert(struct accmem_context *ctx, struct accmem_place *place,
			u64 alignment);
void accmem_place_insert_at(struct accmem_context *ctx,
			    struct accmem_place *place);
void accmem_place_erase(struct accmem_context *ctx, struct accmem_place *place);
struct accmem_place *accmem_place_above(struct accmem_context *ctx,
					u64 address);
struct accmem_place *accmem_place_find(struct accmem_context *ctx, u64 address);
struct accmem_place *accmem_place_next(const struct accmem_place *place);

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
