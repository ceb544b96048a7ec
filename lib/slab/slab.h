/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_slab: blocks smaller than a granule.
 *
 * A granule is divided into 64 slots of 64 bytes. A word has a bit for each slot that
 * is free. Blocks of all sizes share granules.
 *
 * The caller supplies a struct accmem_slab_granule for each granule. The structure
 * belongs to the slab from accmem_slab_add() until the last block of the granule is
 * freed. The slab allocates nothing. An alloc reads at most two granules, and a free
 * one, however many granules the slab has.
 *
 * Locking: none; the caller serialises all calls on a slab. All functions run in any
 * context and do not sleep.
 */
#ifndef ACCMEM_SLAB_H
#define ACCMEM_SLAB_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

#include "lib/layout/layout.h"

#define ACCMEM_SLAB_SLOT_SIZE ACCMEM_ALIGN_MIN
#define ACCMEM_SLAB_SLOTS 64u /* slots of a granule, the bits of a word */

/**
 * struct accmem_slab_granule - a granule of a slab
 *
 * The structure is in memory of the caller, who must not access its members. It belongs
 * to the slab from accmem_slab_add() until accmem_slab_free() returns 1, or until
 * accmem_slab_remove().
 */
struct accmem_slab_granule {
	/* private: */
	struct list_head link; /* in accmem_slab.longest */
	u64 free; /* bit i: slot i is free */
	unsigned int longest; /* slots of the longest free run */
};

/**
 * struct accmem_slab - a set of granules that blocks are allocated from
 *
 * The caller must not access the members.
 */
struct accmem_slab {
	/* private: */
	struct list_head
		longest[ACCMEM_SLAB_SLOTS]; /* [i]: by longest run, i + 1 */
	u64 present; /* bit i: longest[i] is not empty */
};

/**
 * accmem_slab_init() - initialise a slab without granules
 * @s: the slab
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_slab_init(struct accmem_slab *s);

/**
 * accmem_slab_add() - add a granule whose slots are all free
 * @s: the slab
 * @g: the granule
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_slab_add(struct accmem_slab *s, struct accmem_slab_granule *g);

/**
 * accmem_slab_alloc() - allocate a block
 * @s: the slab
 * @size: bytes, rounded up to a slot
 * @align: alignment of the block in its granule, in bytes, a power of two
 * @offset: out: offset of the block in its granule, in bytes
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: the granule of the block. NULL in these cases:
 *  - No granule can serve the request: the caller must add a granule. If the alignment
 *    is above a slot, this may happen although a granule could serve the request.
 *  - No granule can ever serve the request: @size is 0, @size or @align is above a
 *    granule, or @align is no power of two.
 */
struct accmem_slab_granule *accmem_slab_alloc(struct accmem_slab *s,
					      unsigned int size,
					      unsigned int align,
					      unsigned int *offset);

/**
 * accmem_slab_free() - free a block
 * @s: the slab
 * @g: the granule of the block, which was not removed
 * @offset: offset of the block in its granule, in bytes
 * @size: size of the request, in bytes
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: 1 if the granule is empty: the granule has left the slab and belongs to
 * the caller again. 0 if the granule has other blocks. -EINVAL if there is no such
 * block: it would exceed the granule, does not begin at a slot, or is free in part.
 * The slab is unchanged then.
 */
int accmem_slab_free(struct accmem_slab *s, struct accmem_slab_granule *g,
		     unsigned int offset, unsigned int size);

/**
 * accmem_slab_remove() - remove a granule, even if it has blocks
 * @s: the slab
 * @g: the granule
 *
 * No block is allocated from the granule any more. The caller must not free its blocks
 * with accmem_slab_free(), which would add the granule to the slab again.
 *
 * Context: Any context. The caller serialises. Does not sleep.
 */
void accmem_slab_remove(struct accmem_slab *s, struct accmem_slab_granule *g);

/**
 * accmem_slab_free_bytes() - get the free bytes of a granule
 * @g: the granule
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: bytes.
 */
unsigned int accmem_slab_free_bytes(const struct accmem_slab_granule *g);

/**
 * accmem_slab_largest() - get the size of the largest block without a new granule
 * @s: the slab
 *
 * Context: Any context. The caller serialises. Does not sleep.
 *
 * Return: bytes.
 */
unsigned int accmem_slab_largest(const struct accmem_slab *s);

#endif /* ACCMEM_SLAB_H */
