// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Every state that the arbiter can reach in small worlds: breadth first, every
 * call in every state, made to the arbiter and to the reference, which must agree
 * in the result and in what it comes to. CTAs are launched alone or in pairs, on
 * any SM, so a world has every placement of its CTAs. It is done when no new state
 * turns up.
 *
 * With the argument "all": up to 4 CTAs on 3 SMs of 1 to 4 units, else smaller
 * worlds. Six arguments name one world: CTAs, SMs, units, bound, and whether it is
 * exclusive and folded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bitops.h>

#include "explore.h"

static const struct setting *setting;
/* where the call in progress comes from, and where it leads */
static struct reference before, reference;
static struct world before_world, world;
/* a CTA that has no call would not be granted a unit */
static bool denied[REFERENCE_CTAS];
static unsigned long long calls;

/* A call that a CTA makes; both return what it comes to */
struct call {
	const char *name;
	u32 cta;
	u32 value;
	u32 more;
	bool wait;
	bool stores;
};

static void fail(const struct call *call, int got, int wanted, const char *what)
{
	u32 i;

	printf("not ok %u CTAs, %u SMs, %u units, bound %u%s: ", setting->ctas,
	       setting->nr_sms, setting->units, setting->bound,
	       setting->exclusive ? ", exclusive" : "");
	printf("%s of %u (%u, %u, %d, %d): %d, not %d: %s\n", call->name,
	       call->cta, call->value, call->more, call->wait, call->stores,
	       got, wanted, what);
	for (i = 0; i < REFERENCE_CTAS; i++) {
		const struct reference_cta *x = &before.cta[i];

		if (x->live)
			printf("# %u: SM %u, group %u, peer %d, stage %d, %u at %u, last %u\n",
			       i, x->sm, x->group, x->peer, x->stage,
			       x->columns, x->address, x->last);
	}
	printf("0 passed, 1 failed\n");
	exit(1);
}

/* --- one call ------------------------------------------------------------- */

/* those who are told know it, and no other */
static const char *drain(void)
{
	struct accmem_columns_cta *done;

	while ((done = accmem_columns_next_done(&world.c))) {
		struct reference_cta *x = &reference.cta[done - world.cta];

		if (!x->told)
			return "who is told";
		x->told = false;
	}
	return NULL;
}

static bool would_grant(u32 i)
{
	return accmem_columns_would_grant(&world.c, &world.cta[i], 32);
}

/* an alloc that has become possible is on an SM that has changed */
static const char *check_changes(void)
{
	bool changed[REFERENCE_SMS] = {};
	struct accmem_columns_sm *sm;
	u32 i;

	while ((sm = accmem_columns_next_changed(&world.c)))
		changed[sm - world.sms] = true;
	for (i = 0; i < REFERENCE_CTAS; i++) {
		const struct accmem_columns_cta *x = &world.cta[i];

		if (denied[i] && reference.cta[i].live && would_grant(i) &&
		    !changed[x->sm] && !(x->peer && changed[x->peer->sm]))
			return "an alloc is possible, and no SM has changed";
	}
	return NULL;
}

/* does an alloc wait that has no address to store? */
static bool is_not_followed(void)
{
	u32 i;

	for (i = 0; i < REFERENCE_CTAS; i++) {
		const struct reference_cta *x = &reference.cta[i];

		if (x->live && !x->stores && reference_waits(x) &&
		    x->stage != REFERENCE_AT_DEALLOC)
			return true;
	}
	return false;
}

/* what the call has led to is kept if it is new */
static void arrive(const struct call *call, int got, int wanted,
		   struct states *next)
{
	const char *what = got == wanted ? NULL : "the result";
	struct packed packed;

	calls++;
	what = what ?: reference_compare(&reference, &world.c, world.cta);
	what = what ?: check_changes();
	what = what ?: drain();
	what = what ?: explore_check_derived(&reference, &world);
	if (what)
		fail(call, got, wanted, what);
	if (setting->fold && is_not_followed())
		return;
	explore_normalise(setting, &reference);
	if (!memcmp(&reference, &before, sizeof(before)))
		return;
	explore_pack(&reference, &packed);
	if (!explore_remember(&packed))
		return;
	what = reference_check_rest(&reference);
	if (what)
		fail(call, got, wanted, what);
	explore_keep(next, &packed);
}

static void start(void)
{
	reference = before;
	world = before_world;
}

/* of the arbiter and, in @wanted, of the reference */
static int launch(u32 i, u32 sm, u32 group, u32 cluster, int *wanted)
{
	u32 rank = cluster != i;
	int got;

	world.cta[i] = (struct accmem_columns_cta){
		.launch = group,
		.cluster = cluster,
		.rank = rank,
		.sm = sm,
		.group = group,
	};
	got = accmem_columns_launch(&world.c, &world.cta[i]);
	*wanted = reference_launch(&reference, i, group, cluster, rank, sm,
				   group);
	/* both rules are broken, by different CTAs */
	return got == -EADDRINUSE && *wanted == -EEXIST ? *wanted : got;
}

static void try_launch(u32 i, u32 sm, u32 group, u32 cluster,
		       struct states *next)
{
	struct call call = { "launch", i, sm, group, false, false };
	int got, wanted;

	start();
	got = launch(i, sm, group, cluster, &wanted);
	arrive(&call, got, wanted, next);
}

static void try_exit(u32 i, struct states *next)
{
	struct call call = { "exit", i, 0, 0, false, false };
	int got, wanted;

	start();
	got = hweight64(accmem_columns_exit(&world.c, &world.cta[i]));
	wanted = reference_exit(&reference, i);
	arrive(&call, got, wanted, next);
}

static int alloc(u32 i, u32 columns, bool wait, bool stores, int *wanted)
{
	struct accmem_columns_cta *cta = &world.cta[i];
	int got;

	got = stores ? accmem_columns_reserve(&world.c, cta, columns, wait) :
		       accmem_columns_alloc(&world.c, cta, columns, wait);
	*wanted = reference_alloc(&reference, i, columns, wait, stores);
	return got;
}

static void try_alloc(u32 i, u32 columns, bool wait, bool stores,
		      struct states *next)
{
	struct call call = { "alloc", i, columns, 0, wait, stores };
	int got, wanted;

	start();
	got = alloc(i, columns, wait, stores, &wanted);
	arrive(&call, got, wanted, next);
}

/* the first call of a CTA */
static void try_launch_alloc(u32 i, u32 sm, u32 group, u32 columns, bool wait,
			     bool stores, struct states *next)
{
	struct call call = { "launch and alloc", i, columns, sm, wait, stores };
	int got, wanted;

	start();
	got = launch(i, sm, group, i, &wanted);
	if (got || wanted)
		fail(&call, got, wanted, "the result");
	got = alloc(i, columns, wait, stores, &wanted);
	arrive(&call, got, wanted, next);
}

static void try_promise(u32 i, u32 columns)
{
	struct call call = { "would_grant", i, columns, 0, false, false };
	int got, wanted;

	start();
	got = accmem_columns_would_grant(&world.c, &world.cta[i], columns);
	wanted = reference_would_grant(&reference, i, columns);
	if (got != wanted)
		fail(&call, got, wanted, "the promise");
}

static void try_dealloc(u32 i, u32 address, u32 columns, bool wait,
			struct states *next)
{
	struct call call = { "dealloc", i, address, columns, wait, false };
	int got, wanted;

	start();
	got = accmem_columns_dealloc(&world.c, &world.cta[i], address, columns,
				     wait);
	wanted = reference_dealloc(&reference, i, address, columns, wait);
	arrive(&call, got, wanted, next);
}

static void try_confirm(u32 i, u32 address, bool stored, struct states *next)
{
	struct call call = { "confirm", i, address, 0, false, stored };
	int got, wanted;

	start();
	got = accmem_columns_confirm(&world.c, &world.cta[i], address, stored);
	wanted = reference_confirm(&reference, i, address, stored);
	arrive(&call, got, wanted, next);
}

static void try_relinquish(u32 i, struct states *next)
{
	struct call call = { "relinquish", i, 0, 0, false, false };
	int got, wanted;

	start();
	got = accmem_columns_relinquish(&world.c, &world.cta[i]);
	wanted = reference_relinquish(&reference, i);
	arrive(&call, got, wanted, next);
}

static void try_cancel(u32 i, struct states *next)
{
	struct call call = { "cancel", i, 0, 0, false, false };
	int got, wanted;

	start();
	got = accmem_columns_cancel(&world.c, &world.cta[i]);
	wanted = reference_cancel(&reference, i);
	arrive(&call, got, wanted, next);
}

/* --- all calls of a state ------------------------------------------------- */

/* alone, or as the first of a pair */
static void launches_of(u32 i, u32 sm, u32 group, struct states *next)
{
	u32 n;

	try_launch(i, sm, group, i, next);
	for (n = 1; setting->fold && n <= 4; n *= 2) {
		try_launch_alloc(i, sm, group, n * 32, true, true, next);
		try_launch_alloc(i, sm, group, n * 32, true, false, next);
		try_launch_alloc(i, sm, group, n * 32, false, true, next);
	}
}

/* alone, as the first of a pair, and as the peer of each that has none yet */
static void launches(u32 i, struct states *next)
{
	bool used[REFERENCE_SMS] = {};
	u32 sm, k;

	for (k = 0; k < REFERENCE_CTAS; k++) {
		if (before.cta[k].live)
			used[before.cta[k].sm] = true;
	}
	for (sm = 0; sm < setting->nr_sms; sm++) {
		/* of those that are like one another the first will do */
		if (sm && !used[sm] && !used[sm - 1])
			continue;
		launches_of(i, sm, 1, next);
		if (setting->nr_sms == 1)
			continue;
		launches_of(i, sm, 2, next);
		for (k = 0; k < REFERENCE_CTAS; k++) {
			const struct reference_cta *x = &before.cta[k];

			if (x->live && x->group == 2)
				try_launch(i, sm, 2, x->cluster, next);
		}
	}
}

/* the thread of an alloc comes back with an address, maybe with an old one */
static void confirms(u32 i, struct states *next)
{
	const struct reference_cta *x = &before.cta[i];

	if (x->stage == REFERENCE_TO_STORE)
		try_confirm(i, x->address, true, next);
	if (x->stores && x->stage != REFERENCE_STORED) {
		try_confirm(i, x->address + 32, true, next);
		try_confirm(i, x->address, false, next);
	}
}

static void calls_while_waiting(u32 i, struct states *next)
{
	try_cancel(i, next);
	try_relinquish(i, next);
	confirms(i, next);
	if (setting->fold)
		return;
	try_alloc(i, 32, true, true, next);
	try_dealloc(i, 0, 32, true, next);
}

/* units of the allocation of @i that starts at @unit, or 0 */
static u32 length_at(u32 i, u32 unit)
{
	const struct reference_unit *u = before.unit[before.cta[i].sm];
	u32 end = unit;

	if (u[unit].owner != (int)i || !u[unit].starts)
		return 0;
	do {
		end++;
	} while (end < setting->units && u[end].owner == (int)i &&
		 !u[end].starts);
	return end - unit;
}

/* of each allocation, and of what is none */
static void deallocs(u32 i, struct states *next)
{
	u32 unit, n;

	for (unit = 0; unit < setting->units; unit++) {
		for (n = 1; n <= 4; n *= 2) {
			if (setting->fold && n != length_at(i, unit))
				continue;
			try_dealloc(i, unit * 32, n * 32, true, next);
			if (before.cta[i].group == 2)
				try_dealloc(i, unit * 32, n * 32, false, next);
		}
	}
	try_dealloc(i, setting->units * 32, 32, true, next);
	try_dealloc(i, 0, 32, true, next);
}

static void calls_of_an_idle_one(u32 i, struct states *next)
{
	u32 n;

	for (n = 1; n <= 4; n *= 2) {
		try_promise(i, n * 32);
		try_alloc(i, n * 32, true, true, next);
		try_alloc(i, n * 32, true, false, next);
		try_alloc(i, n * 32, false, true, next);
		try_alloc(i, n * 32, false, false, next);
	}
	deallocs(i, next);
	try_relinquish(i, next);
	try_exit(i, next);
}

static void calls_when_over(u32 i, struct states *next)
{
	try_confirm(i, 0, true, next);
	try_confirm(i, 0, false, next);
	try_cancel(i, next);
	try_alloc(i, 32, true, true, next);
	try_relinquish(i, next);
	try_exit(i, next);
}

static void expand(const struct packed *from, struct states *next)
{
	bool launched = false;
	u32 i;

	explore_unpack(setting, from, &before);
	explore_build(&before, &world);
	before_world = world;
	for (i = 0; i < REFERENCE_CTAS; i++)
		denied[i] = before.cta[i].live && !would_grant(i) &&
			    before.cta[i].stage == REFERENCE_IDLE;
	for (i = 0; i < setting->ctas; i++) {
		if (!before.cta[i].live) {
			if (!launched)
				launches(i, next);
			launched = true;
		} else if (reference_waits(&before.cta[i])) {
			calls_while_waiting(i, next);
		} else if (before.cta[i].stage == REFERENCE_OVER) {
			calls_when_over(i, next);
		} else {
			calls_of_an_idle_one(i, next);
		}
	}
}

/* --- a world -------------------------------------------------------------- */

static unsigned long long all_states, all_calls;

static void explore(const struct setting *s)
{
	struct states now = {}, next = {}, tmp;
	struct packed nothing = {};
	size_t i, mark = 5000000;
	unsigned int depth;

	setting = s;
	calls = 0;
	explore_remember(&nothing);
	explore_keep(&now, &nothing);
	for (depth = 0; now.nr; depth++) {
		next.nr = 0;
		for (i = 0; i < now.nr; i++) {
			expand(&now.at[i], &next);
			if (explore_seen() < mark)
				continue;
			printf("# depth %u: %zu states, %llu calls\n", depth,
			       explore_seen(), calls);
			mark += 5000000;
		}
		tmp = now;
		now = next;
		next = tmp;
	}
	printf("ok %u CTAs, %u SMs, %u units, bound %u, %s%s: %zu states, %llu calls, depth %u\n",
	       s->ctas, s->nr_sms, s->units, s->bound,
	       s->exclusive ? "exclusive" : "shared", s->fold ? ", folded" : "",
	       explore_seen(), calls, depth);
	all_states += explore_seen();
	all_calls += calls;
	free(now.at);
	free(next.at);
	explore_forget();
}

/* every world of so many CTAs and SMs; returns how many these are */
static u32 explore_all(u32 ctas, u32 nr_sms, u32 units, bool fold)
{
	struct setting s = { .ctas = ctas, .nr_sms = nr_sms, .fold = fold };
	u32 n = 0;

	for (s.units = 1; s.units <= units; s.units++) {
		for (s.bound = 0; s.bound <= 2; s.bound++) {
			s.exclusive = false;
			explore(&s);
			s.exclusive = true;
			explore(&s);
			n += 2;
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	u32 worlds;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 7) {
		struct setting one = {
			.ctas = atoi(argv[1]),
			.nr_sms = atoi(argv[2]),
			.units = atoi(argv[3]),
			.bound = atoi(argv[4]),
			.exclusive = atoi(argv[5]),
			.fold = atoi(argv[6]),
		};

		explore(&one);
		worlds = 1;
	} else if (argc == 2 && !strcmp(argv[1], "all")) {
		worlds = explore_all(3, 3, REFERENCE_UNITS, false);
		worlds += explore_all(4, 3, REFERENCE_UNITS, true);
	} else {
		worlds = explore_all(2, 2, 3, false);
		worlds += explore_all(3, 3, 2, true);
	}
	printf("# %llu states, %llu calls, no difference\n", all_states,
	       all_calls);
	printf("%u passed, 0 failed\n", worlds);
	return 0;
}
