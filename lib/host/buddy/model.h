/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The allocator's contract, told the naive way: one byte a granule and loops
 * over all of them. The tests hold the real one against it.
 */
#ifndef ACCMEM_MODEL_H
#define ACCMEM_MODEL_H

#include "../rng.h"
#include "lib/buddy/buddy.h"

#define MODEL_USED 1
#define MODEL_DIRTY 2
#define MODEL_RETIRED 4 /* besides MODEL_USED */

/**
 * struct model - what is known of each granule, and of each folio
 * @granule: bits
 * @taker: who took it
 * @owner: of each folio; valid while it has used granules
 * @rule: a folio has one owner
 */
struct model {
	u8 *granule;
	u8 *taker;
	u8 *owner;
	u64 nr;
	bool rule;
};

#define MODEL_FOLIO (1ull << (ACCMEM_BUDDY_FOLIO_SHIFT - 12))
#define MODEL_CLEANER 255
#define MODEL_NOBODY 254 /* took what is retired */

/* What accmem_buddy_largest_run_of() says to nobody in particular */
static inline u64 largest_run(struct accmem_buddy *b)
{
	u64 cursor = 0, largest = 0;

	while (accmem_buddy_largest_run_of(b, 0, &cursor, &largest))
		;
	return largest;
}

/* What the calls say: an owner takes free granules, or gives back its own. */
void model_alloc(struct model *m, u64 offset, u64 size, u8 owner);
void model_free(struct model *m, u64 offset, u64 size);
void model_chown(struct model *m, u64 offset, u64 size, u8 owner);
void model_retire(struct model *m, u64 offset);
/* Used granules of the folio of granule @i that are not retired */
u64 model_folio_used(const struct model *m, u64 i);
/* Those of them that the cleaner has */
u64 model_folio_cleaning(const struct model *m, u64 i);
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
