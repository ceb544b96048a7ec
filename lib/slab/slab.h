/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * accmem_slab: blocks below a granule.
 *
 * A granule is 64 units of 64 bytes, and a word says which of them are free;
 * blocks of all sizes share granules. Nothing is allocated, nothing sleeps:
 * the caller brings a struct accmem_slab_granule with each granule, and gets
 * it back with the last block of it. An alloc looks at two granules at most, a
 * free at one, whatever is in the slab. The caller serialises every call on
 * one instance.
 */
#ifndef ACCMEM_SLAB_H
#define ACCMEM_SLAB_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

#include "lib/layout/layout.h"

#define ACCMEM_SLAB_UNIT ACCMEM_ALIGN_MIN
#define ACCMEM_SLAB_UNITS 64u /* of a granule: the bits of a word */

/**
 * struct accmem_slab_granule - one granule, in memory of the caller's
 *
 * No member is for the caller. It belongs to the slab from accmem_slab_add()
 * until accmem_slab_free() says that it is empty.
 */
struct accmem_slab_granule {
	/* private: */
	struct list_head link; /* in accmem_slab.longest */
	u64 free; /* bit i: unit i is free */
	unsigned int longest; /* units of its longest free run */
};

/**
 * struct accmem_slab - granules that blocks are cut from
 *
 * No member is for the caller.
 */
struct accmem_slab {
	/* private: */
	struct list_head longest[ACCMEM_SLAB_UNITS]; /* [i]: of i + 1 units */
	u64 present; /* bit i: longest[i] is not empty */
};

/**
 * accmem_slab_init() - make a slab without granules
 * @s: the slab
 */
void accmem_slab_init(struct accmem_slab *s);

/**
 * accmem_slab_add() - add a granule of which nothing is taken yet
 * @s: the slab
 * @g: the granule
 */
void accmem_slab_add(struct accmem_slab *s, struct accmem_slab_granule *g);

/**
 * accmem_slab_alloc() - allocate a block
 * @s: the slab
 * @size: bytes, rounded up to a unit
 * @align: alignment of the block in its granule, in bytes, a power of two
 * @offset: out: where in its granule it begins, in bytes
 *
 * Return: its granule. NULL when a granule has to be added first, which with an
 * alignment above a unit may be while another one could serve; or when no granule
 * could ever serve: size 0, size or alignment above a granule, an alignment that
 * is no power of two.
 */
struct accmem_slab_granule *accmem_slab_alloc(struct accmem_slab *s,
					      unsigned int size,
					      unsigned int align,
					      unsigned int *offset);

/**
 * accmem_slab_free() - give a block back
 * @s: the slab
 * @g: its granule, which was not removed
 * @offset: where in that it begins, in bytes
 * @size: bytes that were asked for
 *
 * Return: 1 when the granule is empty: it has left the slab, and is the caller's
 * again; else 0. -EINVAL where it is no block: outside of the granule, no multiple
 * of a unit, or free in part; nothing is changed then.
 */
int accmem_slab_free(struct accmem_slab *s, struct accmem_slab_granule *g,
		     unsigned int offset, unsigned int size);

/**
 * accmem_slab_remove() - take a granule out, whatever is in it
 * @s: the slab
 * @g: the granule
 *
 * Nothing more is cut from it. None of its blocks may be given back afterwards,
 * which would file it again.
 */
void accmem_slab_remove(struct accmem_slab *s, struct accmem_slab_granule *g);

/**
 * accmem_slab_free_bytes() - how much of a granule is free
 * @g: the granule
 *
 * Return: bytes.
 */
unsigned int accmem_slab_free_bytes(const struct accmem_slab_granule *g);

/**
 * accmem_slab_largest() - the largest block that needs no further granule
 * @s: the slab
 *
 * Return: bytes.
 */
unsigned int accmem_slab_largest(const struct accmem_slab *s);

#endif /* ACCMEM_SLAB_H */
