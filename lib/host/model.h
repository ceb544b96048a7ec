/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The allocator's contract, told the naive way: one byte a granule and loops
 * over all of them. The tests hold the real one against it.
 */
#ifndef ACCMEM_MODEL_H
#define ACCMEM_MODEL_H

#include "lib/buddy/buddy.h"

#define MODEL_USED 1
#define MODEL_DIRTY 2

/**
 * struct model - what is known of each granule, and of each unit
 * @granule: bits
 * @taker: who took it
 * @owner: of each unit; valid while it has used granules
 * @rule: a unit has one owner
 */
struct model {
	u8 *granule;
	u8 *taker;
	u8 *owner;
	u64 nr;
	bool rule;
};

#define MODEL_UNIT (1ull << (ACCMEM_BUDDY_UNIT_SHIFT - 12))
#define MODEL_CLEANER 255

/*
 * Where numbers come from: the same generator everywhere, so that a seed names
 * one run of events, or a fuzzer's input while it lasts.
 */
struct rng {
	u64 state;
	const u8 *input;
	size_t left;
	bool spent;
};

static inline u64 rng_next(struct rng *r)
{
	u64 z;

	if (r->input) {
		r->spent = r->left < 2;
		if (r->spent)
			return 0;
		z = r->input[0] | (u64)r->input[1] << 8;
		r->input += 2;
		r->left -= 2;
		return z;
	}
	z = r->state += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline u64 rng_below(struct rng *r, u64 n)
{
	return rng_next(r) % n;
}

static inline bool rng_is_spent(const struct rng *r)
{
	return r->spent;
}

/* What accmem_buddy_largest_run_of() says to nobody in particular */
static inline u64 largest_run(struct accmem_buddy *b)
{
	u64 cursor = 0, largest = 0;

	while (accmem_buddy_largest_run_of(b, 0, &cursor, &largest))
		;
	return largest;
}

/* What the calls say: an owner takes free granules, or gives back its own. */
void model_take(struct model *m, u64 offset, u64 size, u8 owner);
void model_give(struct model *m, u64 offset, u64 size);
void model_chown(struct model *m, u64 offset, u64 size, u8 owner);
/* Used granules of the unit of granule @i */
u64 model_unit_used(const struct model *m, u64 i);
/* Those of them that the cleaner has */
u64 model_unit_cleaning(const struct model *m, u64 i);
/* The model in which all that @owner may not have is used; to be freed */
struct model model_view(const struct model *m, u64 owner);
void model_view_free(const struct model *m, struct model *view);
/* Could @req be granted as one run? */
bool model_fits(const struct model *m, const struct accmem_buddy_request *req);
/* Is [@offset, @offset + size) a lawful answer to @req? */
bool model_lawful(const struct model *m, const struct accmem_buddy_request *req,
		  u64 offset);
bool model_all(const struct model *m, u64 offset, u64 size, u8 bit, bool set);
void model_set(struct model *m, u64 offset, u64 size, u8 bit, bool set);
u64 model_count(const struct model *m, u8 mask, u8 value);
u64 model_largest(const struct model *m);
/* First run at or after @offset whose granules have @bit as @set says */
bool model_next(const struct model *m, u64 offset, u8 bit, bool set,
		struct accmem_run *run);
/* What accmem_buddy_alloc_runs() is to return, by the rule in its header */
int model_runs_result(const struct model *m,
		      const struct accmem_buddy_request *req,
		      unsigned int max_runs);

#endif
