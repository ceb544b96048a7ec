// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: init, dealloc, confirm, relinquish, cancel and exit.
 *
 * This is the top file of the arbiter. alloc.c has alloc and the grants, deadlock.c the
 * deadlocks, launch.c the launches, state.c the changes of an SM, of the queue and of a
 * call. After each event that may let a queued request be granted,
 * accmem_columns_run_queue() grants requests and then searches for a deadlock.
 *
 * A granted alloc is a reservation until both sides of a pair have stored the address.
 * Only then three things happen:
 *  - the columns are held,
 *  - the permits that the call has obtained stay with the CTAs,
 *  - the number of columns bounds the next alloc of the CTA.
 * A call that ends before releases its columns and permits. An allocation that was
 * confirmed is never revoked.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>

#include "internal.h"

int accmem_columns_init(struct accmem_columns *c, struct accmem_columns_sm *sms,
			u32 nr_sms, u32 columns, bool exclusive,
			u32 bypass_bound)
{
	u32 i, units = columns / ACCMEM_COLUMNS_UNIT;

	if (!nr_sms || !columns || columns % ACCMEM_COLUMNS_UNIT ||
	    columns > ACCMEM_COLUMNS_SM_MAX)
		return -EINVAL;
	*c = (struct accmem_columns){
		.sms = sms,
		.nr_sms = nr_sms,
		.columns = columns,
		.absent = units < 64 ? ~0ull << units : 0,
		.exclusive = exclusive,
		.bypass_bound = bypass_bound,
	};
	INIT_LIST_HEAD(&c->done);
	for (i = 0; i < nr_sms; i++) {
		sms[i] = (struct accmem_columns_sm){ .used = c->absent };
		INIT_LIST_HEAD(&sms[i].ctas);
		INIT_LIST_HEAD(&sms[i].clusters);
		INIT_LIST_HEAD(&sms[i].launches);
		INIT_LIST_HEAD(&sms[i].queue);
	}
	return 0;
}

u32 accmem_columns_free(const struct accmem_columns *c, u32 sm)
{
	return (64 - hweight64(c->sms[sm].used)) * ACCMEM_COLUMNS_UNIT;
}

/* --- dealloc -------------------------------------------------------------- */

/* Return the number of units from the start of an allocation to its end. */
static u32 columns_length_at(const struct accmem_columns_cta *cta, u32 unit)
{
	u64 end = ~(cta->held >> unit) | ((cta->starts >> unit) & ~1ull);

	return __ffs64(end);
}

static int columns_check_dealloc(struct accmem_columns *c,
				 struct accmem_columns_cta *cta, u32 address,
				 u32 columns)
{
	u32 unit = address / ACCMEM_COLUMNS_UNIT;
	u64 bit;

	if (address >=
	    c->columns) /* The address of a lane is out of range, too. */
		return -ENXIO;
	bit = 1ull << unit;
	if (!(cta->held & bit))
		return accmem_sm_of(c, cta)->used & bit ? -EACCES : -ENOENT;
	if (address % ACCMEM_COLUMNS_UNIT || !(cta->starts & bit))
		return -EADDRNOTAVAIL;
	if (columns_length_at(cta, unit) * ACCMEM_COLUMNS_UNIT != columns)
		return -EMSGSIZE;
	return 0;
}

static void columns_free_one(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, u32 columns,
			     u32 unit)
{
	u64 mask = accmem_columns_mask(columns) << unit;

	accmem_columns_free_units(c, cta, mask);
	accmem_columns_set_held(c, cta, cta->held & ~mask);
	cta->starts &= ~(1ull << unit);
}

/*
 * Join the dealloc of the peer. Return 0 if both are present, else the call's
 * result.
 */
static int columns_join_peer(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, u32 address,
			     u32 columns, bool wait)
{
	struct accmem_columns_cta *peer = cta->peer;

	if (cta->peer_gone)
		return -EPIPE;
	if (peer && peer->call == ACCMEM_CALL_JOIN_DEALLOC) {
		if (peer->address != address || peer->columns != columns)
			return accmem_columns_fail_both(c, peer, -EBADR);
		return 0;
	}
	if (!wait)
		return -EAGAIN;
	cta->call = ACCMEM_CALL_JOIN_DEALLOC;
	cta->address = address;
	cta->columns = columns;
	return -EINPROGRESS;
}

int accmem_columns_dealloc(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   u32 columns, bool wait)
{
	struct accmem_columns_cta *peer = cta->group == 2 ? cta->peer : NULL;
	u32 unit = address / ACCMEM_COLUMNS_UNIT;
	int err;

	if (c->ended)
		return -ECONNRESET;
	if (cta->call != ACCMEM_CALL_NONE)
		return -EBUSY;
	/*
	 * Check the peer before the operands: an error must end the wait of the
	 * peer (P20).
	 */
	if (peer && peer->call == ACCMEM_CALL_JOIN_ALLOC)
		return accmem_columns_fail_both(c, peer, -EPROTO);
	err = columns_check_dealloc(c, cta, address, columns);
	if (err)
		return err;
	if (cta->group == 2) {
		err = columns_join_peer(c, cta, address, columns, wait);
		if (err && err != -EINPROGRESS)
			return err;
	}
	if (c->strict)
		accmem_strict_dealloc(cta);
	if (err)
		return err;
	if (peer) {
		columns_free_one(c, peer, columns, unit);
		accmem_columns_finish(c, peer, 0);
	}
	columns_free_one(c, cta, columns, unit);
	accmem_columns_run_queue(c);
	return 0;
}

/* --- the end of rights and waits ------------------------------------------ */

/* Return true if an alloc of the CTA is in progress. */
static bool columns_in_alloc(const struct accmem_columns_cta *cta)
{
	return cta->call == ACCMEM_CALL_JOIN_ALLOC ||
	       cta->call == ACCMEM_CALL_QUEUED ||
	       accmem_columns_is_reserved(cta);
}

/* End a wait with @err. A peer that has joined the call gets @peer_err. */
static void columns_end_wait(struct accmem_columns *c,
			     struct accmem_columns_cta *cta, int err,
			     int peer_err)
{
	struct accmem_columns_cta *peer = accmem_columns_withdraw(c, cta);

	if (peer)
		accmem_columns_end(c, peer, peer_err);
	accmem_columns_end(c, cta, err);
}

static int columns_refuse(struct accmem_columns *c,
			  struct accmem_columns_cta *cta)
{
	columns_end_wait(c, cta, -EFAULT, -EFAULT);
	accmem_columns_forget_done(cta);
	accmem_columns_run_queue(c);
	return accmem_columns_collect(cta);
}

int accmem_columns_confirm(struct accmem_columns *c,
			   struct accmem_columns_cta *cta, u32 address,
			   bool stored)
{
	accmem_columns_forget_done(cta);
	if (cta->call == ACCMEM_CALL_DONE)
		return accmem_columns_collect(cta);
	if (!stored)
		return columns_refuse(c, cta);
	if (cta->call != ACCMEM_CALL_RESERVED || cta->address != address)
		return -EINPROGRESS;
	cta->call = ACCMEM_CALL_STORED;
	if (!accmem_columns_commit(c, cta))
		return -EINPROGRESS;
	if (cta->group == 2)
		accmem_columns_finish(c, cta->peer, 0);
	return 0;
}

int accmem_columns_relinquish(struct accmem_columns *c,
			      struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer = cta->group == 2 ? cta->peer : NULL;
	bool both = peer && columns_in_alloc(peer);

	if (c->ended)
		return -ECONNRESET;
	if (columns_in_alloc(cta))
		columns_end_wait(c, cta, -ECANCELED, -EPROTO);
	else if (both)
		accmem_columns_finish(c, peer, -EPROTO);
	cta->relinquished = true;
	accmem_columns_drop_permit(c, cta);
	accmem_columns_run_queue(c);
	return both ? -EPROTO : 0;
}

/*
 * The reservation of a pair was cancelled: let the peer wait again, or fail its
 * call.
 */
static void columns_restart_peer(struct accmem_columns *c,
				 struct accmem_columns_cta *peer)
{
	if (!peer->may_wait) {
		accmem_columns_end(c, peer, -EAGAIN);
		return;
	}
	/* Remove the completion of the reservation, which is gone. */
	accmem_columns_forget_done(peer);
	peer->call = ACCMEM_CALL_JOIN_ALLOC;
	accmem_columns_note_change(c, accmem_sm_of(c, peer));
}

bool accmem_columns_cancel(struct accmem_columns *c,
			   struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer;

	if (!accmem_columns_waiting(cta))
		return false;
	peer = accmem_columns_withdraw(c, cta);
	if (peer)
		columns_restart_peer(c, peer);
	accmem_columns_forget_done(cta);
	cta->call = ACCMEM_CALL_NONE;
	/*
	 * A request that leaves the queue blocks no other request any more. If no SM is dirty,
	 * the request gave back neither columns nor a permit: nothing can be granted, and no
	 * deadlock has arisen. A search would walk the queue for each of many timeouts.
	 */
	if (c->dirty)
		accmem_columns_run_queue(c);
	else
		accmem_columns_forget_touched(c);
	return true;
}

struct accmem_columns_cta *accmem_columns_next_done(struct accmem_columns *c)
{
	struct accmem_columns_cta *cta =
		list_first_entry_or_null(&c->done, struct accmem_columns_cta,
					 done);

	if (cta)
		list_del_init(&cta->done);
	return cta;
}

void accmem_columns_reset(struct accmem_columns *c)
{
	struct accmem_columns_cta *cta;
	struct accmem_columns_sm *sm;

	for (sm = c->sms; sm < c->sms + c->nr_sms; sm++) {
		list_for_each_entry(cta, &sm->ctas, link) {
			if (accmem_columns_waiting(cta))
				columns_end_wait(c, cta, -ECONNRESET,
						 -ECONNRESET);
		}
	}
	for (sm = c->sms; sm < c->sms + c->nr_sms; sm++) {
		list_for_each_entry(cta, &sm->ctas, link) {
			accmem_columns_set_held(c, cta, 0);
			cta->starts = 0;
		}
		sm->used = c->absent;
		sm->permit = NULL;
	}
	accmem_columns_forget_touched(c);
	c->ended = true;
}

/* --- exit ----------------------------------------------------------------- */

u64 accmem_columns_exit(struct accmem_columns *c,
			struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *peer = cta->peer;
	u64 held = cta->held;

	/*
	 * A bug of the caller: a call waits. End the wait, so that no list has the
	 * CTA.
	 */
	if (WARN_ON_ONCE(accmem_columns_waiting(cta)))
		columns_end_wait(c, cta, -ECANCELED, -EPIPE);
	if (cta->call == ACCMEM_CALL_DONE)
		accmem_columns_forget_done(cta);
	if (c->strict)
		accmem_strict_exit(cta);
	if (peer) {
		if (accmem_columns_waiting(peer))
			accmem_columns_finish(c, peer, -EPIPE);
		peer->peer = NULL;
		peer->peer_gone = true;
	}
	accmem_columns_free_units(c, cta, held);
	accmem_columns_set_held(c, cta, 0);
	cta->starts = 0;
	accmem_columns_drop_permit(c, cta);
	accmem_columns_leave(c, cta);
	accmem_columns_run_queue(c);
	return held;
}
