// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Every state that the arbiter can reach in small worlds: breadth first, every
 * possible call in every state, each result held against the oracle. States
 * are told apart by what decides the future; a world is done when no new one
 * turns up, or at the depth given as the first argument.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/bitops.h>

#include "../../tests/columns_oracle.h"

#define CTAS 4
#define DEPTH 60

struct setting {
	const char *name;
	u32 nr_sms;
	u32 columns;
	u32 bound;
	bool exclusive;
	u32 group[CTAS]; /* 0: there is no such CTA */
	u32 sm[CTAS];
};

static const struct setting settings[] = {
	{ "three CTAs, 64 columns, shared, bound 2", 1, 64, 2, false,
	  { 1, 1, 1 }, { 0, 0, 0 } },
	{ "three CTAs, 96 columns, shared, bound 1", 1, 96, 1, false,
	  { 1, 1, 1 }, { 0, 0, 0 } },
	{ "three CTAs, 64 columns, shared, bound 0", 1, 64, 0, false,
	  { 1, 1, 1 }, { 0, 0, 0 } },
	{ "three CTAs, 64 columns, exclusive, bound 1", 1, 64, 1, true,
	  { 1, 1, 1 }, { 0, 0, 0 } },
	{ "a pair and a CTA, 64 columns, shared, bound 1", 2, 64, 1, false,
	  { 2, 2, 1 }, { 0, 1, 1 } },
	{ "a pair and a CTA, 64 columns, exclusive, bound 1", 2, 64, 1, true,
	  { 2, 2, 1 }, { 0, 1, 1 } },
	{ "four CTAs, 96 columns, shared, bound 1", 1, 96, 1, false,
	  { 1, 1, 1, 1 }, { 0, 0, 0, 0 } },
	{ "a pair and a CTA on each SM, 64 columns, shared, bound 1", 2, 64, 1,
	  false, { 2, 2, 1, 1 }, { 0, 1, 0, 1 } },
	{ "a pair and a CTA on each SM, 64 columns, exclusive, bound 1", 2, 64,
	  1, true, { 2, 2, 1, 1 }, { 0, 1, 0, 1 } },
	{ "two pairs on two SMs, 64 columns, shared, bound 1", 2, 64, 1, false,
	  { 2, 2, 2, 2 }, { 0, 1, 0, 1 } },
	{ "two pairs on two SMs, 64 columns, exclusive, bound 1", 2, 64, 1,
	  true, { 2, 2, 2, 2 }, { 0, 1, 0, 1 } },
};

/* lies at one place, so that its pointers survive being copied */
static struct world {
	struct accmem_columns c;
	struct accmem_columns_sm sms[2];
	struct accmem_columns_cta cta[CTAS];
	bool live[CTAS];
} world;

struct states {
	struct world *at;
	size_t nr;
	size_t room;
};

static struct oracle oracle;
static u64 *seen;
static size_t seen_mask, seen_nr;
static unsigned long long calls;

static void grow_seen(void)
{
	size_t i, old = seen ? seen_mask + 1 : 0, room = old ? old * 2 : 65536;
	u64 *table = calloc(room, sizeof(*table));

	if (!table)
		abort();
	for (i = 0; i < old; i++) {
		size_t at = seen[i] & (room - 1);

		while (seen[i] && table[at])
			at = (at + 1) & (room - 1);
		if (seen[i])
			table[at] = seen[i];
	}
	free(seen);
	seen = table;
	seen_mask = room - 1;
}

/* true when @key is new */
static bool remember(u64 key)
{
	size_t at;

	if (!seen || seen_nr * 2 > seen_mask)
		grow_seen();
	for (at = key & seen_mask; seen[at]; at = (at + 1) & seen_mask) {
		if (seen[at] == key)
			return false;
	}
	seen[at] = key;
	seen_nr++;
	return true;
}

static u64 mix(u64 key, u64 value)
{
	key = (key ^ value) * 0x9e3779b97f4a7c15ull;
	return key ^ (key >> 29);
}

static u64 cta_key(u64 key, unsigned int n)
{
	const struct accmem_columns_cta *cta = &world.cta[n], *w;
	bool waits = accmem_columns_waiting(cta);
	unsigned int place = 0;

	key = mix(key, world.live[n]);
	if (!world.live[n])
		return key;
	key = mix(key, cta->held << 8 | cta->starts);
	key = mix(key, cta->last);
	key = mix(key, cta->relinquished | cta->peer_gone << 1 |
			       (cta->peer ? 4 : 0) |
			       (world.c.sms[cta->sm].permit == cta) << 3);
	key = mix(key, cta->call);
	if (!waits)
		return key;
	key = mix(key, cta->columns);
	key = mix(key, cta->took_permit);
	if (cta->call == ACCMEM_CALL_JOIN_DEALLOC)
		key = mix(key, cta->address);
	if (cta->call == ACCMEM_CALL_QUEUED && cta->leads) {
		list_for_each_entry(w, &world.c.queue, queue) {
			place++;
			if (w == cta)
				break;
		}
		key = mix(key, place << 8 | cta->bypassed);
	}
	return key;
}

static u64 world_key(void)
{
	u64 key = 1;
	unsigned int i;

	for (i = 0; i < CTAS; i++)
		key = cta_key(key, i);
	return key ? key : 1;
}

static void fail(const struct setting *s, unsigned int depth, const char *what)
{
	printf("not ok %s: depth %u: %s\n", s->name, depth, what);
	printf("0 passed, 1 failed\n");
	exit(1);
}

/* drains the list of those whose wait is over, and asks the oracle */
static const char *judge(int err, struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *done, *victim = NULL;
	unsigned int nr_done = 0, victims = 0;
	const char *what;
	int result;

	if (err == -EDEADLK) {
		victim = cta;
		victims++;
	}
	while ((done = accmem_columns_next_done(&world.c))) {
		if (done->call != ACCMEM_CALL_DONE)
			return "a wait is over, and is not";
		result = accmem_columns_collect(done);
		nr_done++;
		if (result == -EDEADLK && (done->group == 1 || !victim ||
					   done->peer != victim)) {
			victim = done;
			victims++;
		} else if (result != -EDEADLK) {
			victims += 2; /* more has changed than one refusal */
		}
	}
	what = oracle_check(&oracle, &world.c);
	if (!what && victims == 1 && !oracle_was_deadlock(&oracle, victim))
		what = "EDEADLK without a deadlock";
	return what;
}

/*
 * Call number @n of those that a CTA can make; false when there is none. 32
 * and 64 columns, with and without waiting; every allocation; and the rest.
 */
static bool make_call(const struct setting *s, unsigned int i, unsigned int n,
		      int *err)
{
	struct accmem_columns_cta *cta = &world.cta[i];
	struct accmem_columns *c = &world.c;

	*err = 0;
	if (!world.live[i]) {
		if (n || !s->group[i])
			return false;
		*cta = (struct accmem_columns_cta){
			.launch = s->group[i], .rank = i, .sm = s->sm[i],
			.group = s->group[i],
		};
		*err = accmem_columns_launch(c, cta);
		world.live[i] = !*err;
		return true;
	}
	if (accmem_columns_waiting(cta)) {
		if (n == 0)
			return accmem_columns_cancel(c, cta);
		if (n == 1)
			accmem_columns_relinquish(c, cta);
		return n <= 1;
	}
	switch (n) {
	case 0:
	case 1:
		*err = accmem_columns_alloc(c, cta, 32u << n, true);
		return true;
	case 2:
	case 3:
		*err = accmem_columns_alloc(c, cta, 8u << n, false);
		return true;
	case 4:
	case 5:
	case 6:
	case 7:
	case 8:
		*err = accmem_columns_dealloc(c, cta, (n - 4) / 2 * 32,
					      n == 8 ? 32 : 32u << n % 2, true);
		return true;
	case 9:
		accmem_columns_relinquish(c, cta);
		return true;
	case 10:
		accmem_columns_exit(c, cta);
		world.live[i] = false;
		return true;
	default:
		return false;
	}
}

static void keep(struct states *to)
{
	if (to->nr == to->room) {
		to->room = to->room ? to->room * 2 : 1024;
		to->at = realloc(to->at, to->room * sizeof(*to->at));
		if (!to->at)
			abort();
	}
	to->at[to->nr++] = world;
}

static void expand(const struct setting *s, const struct world *from,
		   struct states *to, unsigned int depth)
{
	unsigned int i, n;
	const char *what;
	int err;

	for (i = 0; i < CTAS; i++) {
		for (n = 0;; n++) {
			world = *from;
			if (!make_call(s, i, n, &err))
				break;
			calls++;
			what = judge(err, &world.cta[i]);
			if (what)
				fail(s, depth, what);
			if (remember(world_key()))
				keep(to);
		}
	}
}

static void explore(const struct setting *s, unsigned int most)
{
	struct states now = {}, next = {}, tmp;
	unsigned int depth;
	size_t i;

	memset(&world, 0, sizeof(world));
	if (accmem_columns_init(&world.c, world.sms, s->nr_sms, s->columns,
				s->exclusive, s->bound))
		fail(s, 0, "init");
	calls = 0;
	remember(world_key());
	keep(&now);
	for (depth = 0; now.nr && depth < most; depth++) {
		next.nr = 0;
		for (i = 0; i < now.nr; i++)
			expand(s, &now.at[i], &next, depth + 1);
		tmp = now;
		now = next;
		next = tmp;
	}
	printf("ok %s: %zu states, %llu calls, depth %u%s\n", s->name, seen_nr,
	       calls, depth, now.nr ? ", not all" : ", complete");
	free(now.at);
	free(next.at);
	free(seen);
	seen = NULL;
	seen_nr = 0;
}

int main(int argc, char **argv)
{
	unsigned int depth = argc > 1 ? atoi(argv[1]) : DEPTH;
	size_t i, nr = ARRAY_SIZE(settings);

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("exploring to depth %u\n", depth);
	for (i = 0; i < nr; i++)
		explore(&settings[i], depth);
	printf("%zu passed, 0 failed\n", nr);
	return 0;
}
