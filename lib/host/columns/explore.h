/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * States of a small world: the arbiter and the reference side by side, and the
 * few words that a state is packed into while it waits to be looked at.
 */
#ifndef COLUMNS_EXPLORE_H
#define COLUMNS_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

#include "reference.h"

/**
 * struct setting - a world: where its CTAs are is what calls decide
 * @ctas: at one time
 * @nr_sms: SMs
 * @units: units of columns an SM
 * @bound: bypass bound
 * @exclusive: discipline
 * @fold: fewer states that are told apart, where there would be too many: results
 *	are collected at once; who has nothing and does nothing counts as not
 *	launched, and launches when it calls; no CTA remembers the size of its
 *	last alloc (so all states that can be are reached, and some that cannot);
 *	and an alloc that waits without an address to store is made and not
 *	followed any further
 */
struct setting {
	u32 ctas;
	u32 nr_sms;
	u32 units;
	u32 bound;
	bool exclusive;
	bool fold;
};

/* lies at one place, so that its pointers survive being copied */
struct world {
	struct accmem_columns c;
	struct accmem_columns_sm sms[REFERENCE_SMS];
	struct accmem_columns_cta cta[REFERENCE_CTAS];
};

/* A state in which nobody is to be told anything; a word for each CTA */
struct packed {
	u64 cta[REFERENCE_CTAS];
};

/* States to be looked at */
struct states {
	struct packed *at;
	size_t nr;
	size_t room;
};

/* What no call and no result depends on, or what @s folds, gets one value. */
void explore_normalise(const struct setting *s, struct reference *r);
/*
 * Packs a normal state. CTAs change places and SMs change names, so that states
 * that differ by nothing else are packed alike; nearly always, which is enough:
 * the few others are looked at twice.
 */
void explore_pack(const struct reference *r, struct packed *p);
void explore_unpack(const struct setting *s, const struct packed *p,
		    struct reference *r);
/* the arbiter in the state of @r */
void explore_build(const struct reference *r, struct world *w);
/* NULL, or what the arbiter should have worked out otherwise for itself */
const char *explore_check_derived(const struct reference *r,
				  const struct world *w);

/* true when @p has not been seen */
bool explore_remember(const struct packed *p);
size_t explore_seen(void);
void explore_forget(void);
void explore_keep(struct states *to, const struct packed *p);

#endif /* COLUMNS_EXPLORE_H */
