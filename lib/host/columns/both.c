// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The calls of a world: each is made to the arbiter and to the reference.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/bitops.h>

#include "both.h"
#include "world.h"

struct both both;

static void differs(const char *call, const struct accmem_columns_cta *x,
		    int got, int wanted, const char *what)
{
	static char text[160];

	snprintf(text, sizeof(text), "%s of %u: %d, not %d: %s", call,
		 number(x), got, wanted, what ?: "the result");
	must(false, text);
}

static void held_changed(struct accmem_columns_cta *x, u64 units)
{
	both.told_held[number(x)] ^= units;
	must(units && both.told_held[number(x)] == x->held,
	     "what is told of what a CTA holds");
}

void both_init(u32 nr_sms, u32 columns, bool exclusive, u32 bound)
{
	struct accmem_columns *c = &both.c;
	u32 i;

	must(accmem_columns_init(c, both.sms, 1, columns + 1, false, 0) ==
		     -EINVAL,
	     "columns that are no units");
	must(!accmem_columns_init(c, both.sms, nr_sms, columns, exclusive,
				  bound),
	     "init");
	reference_init(&both.reference, nr_sms, columns, exclusive, bound);
	memset(both.told_held, 0, sizeof(both.told_held));
	c->held_changed = held_changed;
	for (i = 0; i < nr_sms; i++) {
		both.sms[i].watched = true;
		both.sms[i].polled = true;
	}
}

const char *both_compare(void)
{
	return reference_compare(&both.reference, &both.c, both.cta);
}

/* An alloc that has become possible is on an SM that has changed. */
static void check_changes(void)
{
	bool changed[REFERENCE_SMS] = {}, granted, told;
	struct accmem_columns_sm *sm;
	u32 i;

	while ((sm = accmem_columns_next_changed(&both.c)))
		changed[sm - both.sms] = true;
	for (i = 0; i < REFERENCE_CTAS; i++) {
		struct accmem_columns_cta *x = &both.cta[i];

		if (!both.reference.cta[i].live)
			continue;
		granted = accmem_columns_would_grant(&both.c, x, 32);
		told = changed[x->sm] || (x->peer && changed[x->peer->sm]);
		must(!granted || !both.denied[i] || told,
		     "an alloc is possible, and no SM has changed");
		both.denied[i] = !granted && x->call == ACCMEM_CALL_NONE;
	}
}

static void agree(const char *call, const struct accmem_columns_cta *x, int got,
		  int wanted)
{
	const char *what = both_compare();

	if (got != wanted || what)
		differs(call, x, got, wanted, what);
	must(both.told_held[number(x)] == x->held, "a change that is not told");
	check_changes();
}

static void count_result(const struct accmem_columns_cta *x, int result)
{
	columns_world.deadlocks += result == -EDEADLK;
	columns_world.deadlocks_of_pairs += result == -EDEADLK && x->group == 2;
	columns_world.unlike_collectives += result == -EPROTO;
	columns_world.unlike_operands += result == -EBADR;
	columns_world.peer_exits += result == -EPIPE;
	columns_world.never_fits += result == -ENOSPC;
	columns_world.columns_grow += result == -ERANGE;
	columns_world.too_late += result == -EPERM;
}

void both_note(struct accmem_columns_cta *x, int result)
{
	count_result(x, result);
	if (result == 0 && x->call == ACCMEM_CALL_RESERVED) {
		both.storing[number(x)] = x->address;
		columns_world.reservations++;
		columns_world.reservations_of_pairs += x->group == 2;
	} else if (result != -EINPROGRESS) {
		both.storing[number(x)] = NO_ADDRESS;
	}
}

int both_launch(struct accmem_columns_cta *x)
{
	int err = accmem_columns_launch(&both.c, x);
	int wanted = reference_launch(&both.reference, number(x), x->launch,
				      x->cluster, x->rank, x->sm, x->group);

	/* both rules are broken, by different CTAs */
	if (err == -EADDRINUSE && wanted == -EEXIST)
		err = wanted;
	agree("launch", x, err, wanted);
	return err;
}

void both_exit(struct accmem_columns_cta *x)
{
	u64 held = accmem_columns_exit(&both.c, x);
	u32 wanted = reference_exit(&both.reference, number(x));

	agree("exit", x, hweight64(held), wanted);
}

bool both_would_grant(struct accmem_columns_cta *x, u32 columns)
{
	bool served = accmem_columns_would_grant(&both.c, x, columns);

	must(served ==
		     reference_would_grant(&both.reference, number(x), columns),
	     "another promise");
	return served;
}

int both_alloc(struct accmem_columns_cta *x, u32 columns, bool wait,
	       bool stores)
{
	u64 bypasses = both.c.bypasses, forced = both.c.forced;
	bool last = x->peer && x->peer->relinquished &&
		    x->peer->call == ACCMEM_CALL_JOIN_DEALLOC;
	int err = stores ? accmem_columns_reserve(&both.c, x, columns, wait) :
			   accmem_columns_alloc(&both.c, x, columns, wait);
	int wanted = reference_alloc(&both.reference, number(x), columns, wait,
				     stores);

	agree("alloc", x, err, wanted);
	columns_world.passed_by += both.c.bypasses - bypasses;
	columns_world.forced += both.c.forced - forced;
	columns_world.grants += !err;
	columns_world.alloc_meets_last_dealloc += last && err == -EPROTO;
	if (err != -EBUSY)
		both_note(x, err);
	return err;
}

int both_dealloc(struct accmem_columns_cta *x, u32 address, u32 columns,
		 bool wait)
{
	int err = accmem_columns_dealloc(&both.c, x, address, columns, wait);

	agree("dealloc", x, err,
	      reference_dealloc(&both.reference, number(x), address, columns,
				wait));
	count_result(x, err);
	return err;
}

int both_relinquish(struct accmem_columns_cta *x)
{
	bool reserved = is_reserved(x);
	int err = accmem_columns_relinquish(&both.c, x);

	agree("relinquish", x, err,
	      reference_relinquish(&both.reference, number(x)));
	columns_world.relinquished_while_reserved += reserved;
	return err;
}

bool both_cancel(struct accmem_columns_cta *x)
{
	bool reserved = is_reserved(x), took = x->obtained_permit;
	struct accmem_columns_cta *peer = x->group == 2 ? x->peer : NULL;
	bool waited = accmem_columns_cancel(&both.c, x);

	agree("cancel", x, waited,
	      reference_cancel(&both.reference, number(x)));
	both.storing[number(x)] = NO_ADDRESS;
	columns_world.given_up += waited;
	columns_world.given_up_while_reserved += reserved;
	columns_world.permits_taken_back += took;
	columns_world.peer_back_at_alloc +=
		reserved && peer && peer->call == ACCMEM_CALL_JOIN_ALLOC;
	columns_world.peer_could_not_wait += reserved && peer &&
					     peer->call == ACCMEM_CALL_DONE;
	return waited;
}

static void count_confirmed(struct accmem_columns_cta *x, int err, bool stored,
			    bool took)
{
	bool waits = err == -EINPROGRESS;

	columns_world.half_stored += waits && x->call == ACCMEM_CALL_STORED;
	columns_world.stored_at_old_address += waits &&
					       x->call == ACCMEM_CALL_RESERVED;
	columns_world.lost += err == -EFAULT && !stored;
	columns_world.permits_taken_back += err == -EFAULT && took;
	columns_world.grants += !err;
}

int both_confirm(struct accmem_columns_cta *x, u32 address, bool stored)
{
	bool was_done = x->call == ACCMEM_CALL_DONE, took = x->obtained_permit;
	int err = accmem_columns_confirm(&both.c, x, address, stored);

	agree("confirm", x, err,
	      reference_confirm(&both.reference, number(x), address, stored));
	columns_world.lost_by_peer += was_done && err == -EFAULT && stored;
	columns_world.lost_by_both += was_done && err == -EFAULT && !stored;
	if (!was_done)
		count_confirmed(x, err, stored, took);
	both_note(x, err);
	if (err == -EINPROGRESS)
		both.storing[number(x)] = x->call == ACCMEM_CALL_RESERVED ?
						  x->address :
						  NO_ADDRESS;
	return err;
}

void both_reset(void)
{
	accmem_columns_reset(&both.c);
	reference_reset(&both.reference);
	columns_world.resets++;
}
