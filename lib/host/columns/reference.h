/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The Tensor Memory arbiter told the naive way, from the rules alone: an array
 * of units, an array of requests by age, and a search from the oldest on after
 * every change. The tests hold the real one against it: each result, who is
 * told what, each address, each count. It is the only statement of the rules
 * beside the arbiter; the cases of lib/tests/columns are examples of them.
 *
 * When a call breaks two rules, what is wrong with its operands is named before
 * what the peer does; but a dealloc finds the peer in alloc first (P20), and an
 * alloc that could never be met counts as wrong in its operands.
 */
#ifndef COLUMNS_REFERENCE_H
#define COLUMNS_REFERENCE_H

#include <linux/types.h>

#include "lib/columns/columns.h"

#ifndef REFERENCE_CTAS
#define REFERENCE_CTAS 24
#define REFERENCE_SMS 4
#define REFERENCE_UNITS 64
#endif

#define REFERENCE_NOBODY (-1)

/* How far the call of a CTA is */
enum reference_stage {
	REFERENCE_IDLE,
	REFERENCE_AT_ALLOC, /* where the peer's alloc is waited for */
	REFERENCE_AT_DEALLOC,
	REFERENCE_IN_QUEUE,
	REFERENCE_TO_STORE,
	REFERENCE_STORED, /* and waits until the peer has, too */
	REFERENCE_OVER,
};

/**
 * struct reference_cta - a CTA
 * @live: launched and not exited
 * @launch: as in struct accmem_columns_cta, and so all down to @last
 * @told: its caller has news that have not been fetched
 * @stage: of its call
 * @stores: the address of the call counts when it is stored
 * @may_wait: the alloc may, and not only for the peer's store
 * @obtained_permit: the call has obtained the permit, and releases it if it fails
 * @bypassed: of the request that it leads
 */
struct reference_cta {
	bool live;
	bool peer_gone;
	bool relinquished;
	bool told;
	bool stores;
	bool may_wait;
	bool obtained_permit;
	signed char peer;
	enum reference_stage stage;
	u64 launch;
	u32 cluster;
	u32 rank;
	u32 sm;
	u32 group;
	u32 last;
	u32 columns;
	u32 address;
	u32 bypassed;
	int result;
};

/* Who has a unit; whether an allocation starts there, or is only reserved */
struct reference_unit {
	signed char owner;
	bool starts;
	bool reserved;
};

struct reference {
	u32 nr_sms;
	u32 units;
	u32 bound;
	bool exclusive;
	bool ended;
	struct reference_cta cta[REFERENCE_CTAS];
	struct reference_unit unit[REFERENCE_SMS][REFERENCE_UNITS];
	signed char permit[REFERENCE_SMS];
	signed char queue[REFERENCE_CTAS]; /* of the leaders, by age */
	u32 nr_queued;
	u64 bypasses;
	u64 forced;
	u64 deadlocks;
};

void reference_init(struct reference *r, u32 nr_sms, u32 columns,
		    bool exclusive, u32 bound);
/* The same calls with the same results as those of columns.h */
int reference_launch(struct reference *r, u32 i, u64 launch, u32 cluster,
		     u32 rank, u32 sm, u32 group);
u32 reference_exit(struct reference *r, u32 i); /* units that it held */
int reference_alloc(struct reference *r, u32 i, u32 columns, bool wait,
		    bool stores);
int reference_confirm(struct reference *r, u32 i, u32 address, bool stored);
int reference_dealloc(struct reference *r, u32 i, u32 address, u32 columns,
		      bool wait);
int reference_relinquish(struct reference *r, u32 i);
bool reference_cancel(struct reference *r, u32 i);
void reference_reset(struct reference *r);
int reference_collect(struct reference *r, u32 i);
bool reference_would_grant(const struct reference *r, u32 i, u32 columns);

/* a CTA's call is waiting */
static inline bool reference_waits(const struct reference_cta *x)
{
	return x->stage != REFERENCE_IDLE && x->stage != REFERENCE_OVER;
}

/* NULL, or what the reference would still do, with no call any more */
const char *reference_check_rest(const struct reference *r);
/* NULL, or what differs; @cta are as many, at the same places */
const char *reference_compare(const struct reference *r,
			      const struct accmem_columns *c,
			      const struct accmem_columns_cta *cta);

#endif /* COLUMNS_REFERENCE_H */
