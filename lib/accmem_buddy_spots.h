/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Requests, and where in a free run one may be, for accmem_buddy.c only.
 */
#ifndef ACCMEM_BUDDY_SPOTS_H
#define ACCMEM_BUDDY_SPOTS_H

#include "accmem_buddy_runs.h"

/* A request in granules */
struct want {
	u64 n;
	u64 align;
	u64 lo;
	u64 hi;
	bool high;
};

static inline u64 align_down(u64 n, u64 align)
{
	return n & ~(align - 1);
}

/**
 * struct spot - where a request is placed
 * @at: its first granule
 * @run: the whole free run around it; its size is 0 when there is no spot
 */
struct spot {
	u64 at;
	struct span run;
};

static const struct spot no_spot;

static bool serves(const struct want *w, const struct span *run)
{
	return span_holds(run, w->n, w->align);
}

/* The lowest spot for @w in a free run, within [@lo, @hi) */
static bool spot_low(const struct want *w, const struct span *run, u64 lo,
		     u64 hi, struct spot *spot)
{
	u64 end = min(hi, run->start + run->size);

	spot->run = *run;
	spot->at = align_up(max(lo, run->start), w->align);
	return run->size && spot->at < end && w->n <= end - spot->at;
}

static bool spot_high(const struct want *w, const struct span *run, u64 lo,
		      u64 hi, struct spot *spot)
{
	u64 start = max(lo, run->start), end = min(hi, run->start + run->size);

	spot->run = *run;
	if (!run->size || start >= end || w->n > end - start)
		return false;
	spot->at = align_down(end - w->n, w->align);
	return spot->at >= start;
}

#endif /* ACCMEM_BUDDY_SPOTS_H */
