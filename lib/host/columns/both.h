/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The arbiter and the reference, side by side: every call is made to both, their
 * results and what they come to must be the same, and what has happened is counted.
 */
#ifndef COLUMNS_BOTH_H
#define COLUMNS_BOTH_H

#include "reference.h"

#define NO_ADDRESS (~0u)

/**
 * struct both - both of them
 * @c: the arbiter
 * @sms: its SMs
 * @cta: its CTAs, at the same places as those of the reference
 * @reference: the reference
 * @storing: the address that the thread in an alloc is about to store, or NO_ADDRESS
 * @told_held: what the arbiter has told of what a CTA holds
 * @denied: a CTA without a call would not have been granted a unit after the last call
 */
struct both {
	struct accmem_columns c;
	struct accmem_columns_sm sms[REFERENCE_SMS];
	struct accmem_columns_cta cta[REFERENCE_CTAS];
	struct reference reference;
	u32 storing[REFERENCE_CTAS];
	u64 told_held[REFERENCE_CTAS];
	bool denied[REFERENCE_CTAS];
};

extern struct both both;

static inline unsigned int number(const struct accmem_columns_cta *x)
{
	return x - both.cta;
}

static inline bool is_reserved(const struct accmem_columns_cta *x)
{
	return x->call == ACCMEM_CALL_RESERVED || x->call == ACCMEM_CALL_STORED;
}

void both_init(u32 nr_sms, u32 columns, bool exclusive, u32 bound);
/* NULL, or what differs */
const char *both_compare(void);
/* What an alloc or a wait has come to; the caller is to store an address */
void both_note(struct accmem_columns_cta *x, int result);

/* The calls of columns.h */
int both_launch(struct accmem_columns_cta *x);
void both_exit(struct accmem_columns_cta *x);
bool both_would_grant(struct accmem_columns_cta *x, u32 columns);
int both_alloc(struct accmem_columns_cta *x, u32 columns, bool wait,
	       bool stores);
int both_confirm(struct accmem_columns_cta *x, u32 address, bool stored);
int both_dealloc(struct accmem_columns_cta *x, u32 address, u32 columns,
		 bool wait);
int both_relinquish(struct accmem_columns_cta *x);
bool both_cancel(struct accmem_columns_cta *x);
void both_reset(void);

#endif /* COLUMNS_BOTH_H */
