// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_layout() against its table, and against the formulas of A2, A3, A11
 * and A13 written out once more for many random requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../rng.h"
#include "lib/tests/layout/cases.h"

static int passed, failed;

static void verdict(const char *name, const char *wrong)
{
	if (wrong) {
		printf("FAILED: layout: %s: %s\n", name, wrong);
		failed++;
	} else {
		passed++;
	}
}

/* ALIGN_UP(len, k) of A12, in more than 64 bits */
static unsigned __int128 align_up(unsigned __int128 len, u64 k)
{
	return ((len - 1) / k + 1) * k;
}

static const char *one_random(struct rng *r)
{
	static const u64 pages[] = { 4 * K, 2 * M, 2 * M, 4 * K, GIB };
	struct accmem_layout_caps caps = { ALL_PAGES, GIB };
	struct accmem_layout_request q = {};
	unsigned __int128 use, foot;
	struct accmem_layout got;
	u64 page, unit, al;
	bool small;
	int err;

	q.length = max_t(u64, rng_next(r) >> rng_below(r, 64), 1);
	q.alignment = rng_below(r, 2) ? 1ull << rng_below(r, 31) : 0;
	q.page_policy = rng_below(r, 5);
	q.flags = rng_below(r, 2) ? 0 : (rng_below(r, 2) ? R32 : TAIL);

	if (!rng_below(r, 4))
		q.flags |= rng_below(r, 2) ? ACCMEM_ALLOC_TOP_DOWN :
					     ACCMEM_ALLOC_FIXED;
	page = pages[q.page_policy];
	if (q.page_policy == ACCMEM_PAGE_ANY ||
	    (q.page_policy == ACCMEM_PAGE_HUGE_FIRST && q.length <= M))
		page = 4 * K;
	use = q.length;
	if (q.flags & R32)
		use = align_up(use, 32);
	if ((q.flags & TAIL) == TAIL &&
	    q.page_policy != ACCMEM_PAGE_HUGE1G_ONLY)
		use += 32;
	small = page == 4 * K && use <= 2 * K && q.alignment <= 2 * K &&
		!(q.flags & (ACCMEM_ALLOC_TOP_DOWN | ACCMEM_ALLOC_FIXED));
	unit = small ? 64 : page;
	foot = align_up(use, unit);
	al = q.alignment > unit ? q.alignment : unit;

	err = accmem_layout(&q, &caps, &got);
	if ((foot + al) >> 64)
		return err == -EOVERFLOW ? NULL : "no overflow seen";
	if (err)
		return "an error";
	if (got.usable != use || got.footprint != foot || got.alignment != al ||
	    got.page_size != page || got.small != small)
		return "another answer";
	return NULL;
}

int main(void)
{
	struct rng r = { .state = 20 };
	const char *wrong = NULL;
	unsigned int i;

	for (i = 0; i < NR_LAYOUT_CASES; i++)
		verdict(layout_cases[i].name,
			layout_case_wrong(&layout_cases[i]));
	for (i = 0; i < 1000000 && !wrong; i++)
		wrong = one_random(&r);
	verdict("a million random requests, seed 20", wrong);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
