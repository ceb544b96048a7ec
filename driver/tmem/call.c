// SPDX-License-Identifier: GPL-2.0
/*
 * Synchronous calls of a CTA: alloc, dealloc, relinquish and query.
 *
 * An alloc or a dealloc may sleep until the arbiter (lib/columns) can serve the
 * call. Relinquish and query never sleep.
 *
 * An alloc has three steps under the lock:
 *  1. The arbiter reserves the columns.
 *  2. The address of the columns is stored to the caller's destination. The page
 *     of the destination is usually present, because call_check_destination()
 *     has written to that page. If the page is absent, the lock is dropped for
 *     the store.
 *  3. The arbiter confirms the reservation. Until then either CTA of a pair can
 *     still refuse the alloc, for example when the store fails.
 *
 * Locking: accmem_tmem.lock.
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "trace/tmem_trace.h"

/* Return true if the call may wait. A call whose deadline has passed may not. */
static bool call_may_wait(const struct accmem_cta_call *call)
{
	if (call->flags & ACCMEM_CTA_NONBLOCK)
		return false;
	return !call->deadline_ns || ktime_get_ns() < call->deadline_ns;
}

/*
 * Begin a call with @begin, or resume a call that a signal has interrupted. Return
 * -EBUSY if another call of the CTA is in progress.
 */
static __always_inline int
call_enter(struct accmem_cta *cta, const struct accmem_cta_call *call,
	   bool wait,
	   int (*begin)(struct accmem_cta *cta,
			const struct accmem_cta_call *call, bool wait))
{
	if (unlikely(accmem_cta_is_busy(cta))) {
		if (accmem_cta_resume(cta, call))
			return accmem_cta_resumed(cta);
		/*
		 * accmem_cta_resume() may have ended an interrupted call: check
		 * again.
		 */
		if (accmem_cta_is_busy(cta))
			return -EBUSY;
	}
	cta->waited = false;
	cta->c.warp = call->warp;
	return begin(cta, call, wait);
}

/* Return true if the call needs no statistics and no trace event: the usual case. */
static __always_inline bool call_is_plain(const struct accmem_cta_call *call,
					  int err)
{
	return !err && call->op == ACCMEM_CTA_OP_DEALLOC &&
	       !trace_accmem_tmem_dealloc_enabled();
}

/*
 * Return true if the call has ended, and nobody has counted and traced its result. The
 * call continues without its caller in state ACCMEM_CTA_INTERRUPTED; -EBUSY is not the
 * result of the CTA's call in progress.
 */
static __always_inline bool call_is_over(struct accmem_cta *cta, int err)
{
	if (err == -EBUSY)
		return true;
	return !accmem_cta_was_concluded(cta) &&
	       (err != -ERESTARTSYS || cta->wait != ACCMEM_CTA_INTERRUPTED);
}

/* End a call, or the part of its caller. */
static __always_inline int
call_leave(struct accmem_cta *cta, const struct accmem_cta_call *call, int err)
{
	if (!err)
		accmem_columns_returned(&cta->c);
	if (err != -EBUSY)
		accmem_cta_check_hazards(cta);
	if (call_is_over(cta, err) && !call_is_plain(call, err))
		err = accmem_cta_conclude(cta, call, err);
	accmem_tmem_wake(cta->tmem);
	accmem_cta_wake_poll(cta);
	return err;
}

static int call_reserve(struct accmem_cta *cta,
			const struct accmem_cta_call *call, bool wait)
{
	trace_accmem_tmem_request(cta, call->columns);
	return accmem_columns_reserve(&cta->tmem->columns, &cta->c,
				      call->columns, wait);
}

/*
 * Store the address with the lock dropped: the page of the destination is absent. The
 * peer may end the call meanwhile.
 */
static noinline int call_store_slowly(struct accmem_cta *cta, u32 address,
				      const struct accmem_cta_call *call)
	__must_hold(&cta->tmem->lock)
{
	struct accmem_tmem *tmem = cta->tmem;
	int err;

	cta->call = *call;
	accmem_tmem_wake(tmem);
	accmem_tmem_unlock(tmem);
	err = put_user(address, call->destination);
	spin_lock(&tmem->lock);
	return err;
}

/*
 * Cancel an alloc whose caller is being killed. The failed store is then no proof
 * of a bad destination, so the result is not -EFAULT.
 */
static int call_cancel(struct accmem_cta *cta)
{
	return accmem_columns_cancel(&cta->tmem->columns, &cta->c) ?
		       -EINTR :
		       accmem_columns_collect(&cta->c);
}

/* Store the address of a reservation. Confirm the reservation if the store succeeds. */
static int call_store(struct accmem_cta *cta,
		      const struct accmem_cta_call *call)
	__must_hold(&cta->tmem->lock)
{
	u32 address = cta->c.address;
	int err;

	pagefault_disable();
	err = put_user(address, call->destination);
	pagefault_enable();
	if (unlikely(err))
		err = call_store_slowly(cta, address, call);
	if (unlikely(err) && fatal_signal_pending(current))
		return call_cancel(cta);
	return accmem_columns_confirm(&cta->tmem->columns, &cta->c, address,
				      !err);
}

/*
 * Return the deadline of the wait. The store of the peer has no deadline, so a call
 * that may not wait for columns still waits for that store.
 */
static u64 call_deadline(const struct accmem_cta *cta,
			 const struct accmem_cta_call *call)
{
	return cta->c.may_wait ? call->deadline_ns : 0;
}

static int call_alloc(struct accmem_cta *cta,
		      const struct accmem_cta_call *call)
{
	bool wait = call_may_wait(call);
	int err;

	spin_lock(&cta->tmem->lock);
	err = call_enter(cta, call, wait, call_reserve);
	while (!err || err == -EINPROGRESS) {
		if (cta->c.call == ACCMEM_CALL_RESERVED)
			err = call_store(cta, call);
		else if (err)
			err = accmem_cta_sleep(cta, call,
					       call_deadline(cta, call));
		else
			break;
	}
	if (err == -EAGAIN && !call->deadline_ns)
		cta->poll_columns = call->columns;
	err = call_leave(cta, call, err);
	accmem_tmem_unlock(cta->tmem);
	return err;
}

/* Return 0 if the destination is in the window of the launch and can be written. */
static int call_check_destination(struct accmem_cta *cta,
				  u32 __user *destination)
{
	if (!accmem_window_has(&cta->window, destination, sizeof(*destination)))
		return -EFAULT;
	/*
	 * An interrupted call may have stored its address already: do not
	 * overwrite it.
	 */
	if (accmem_cta_is_interrupted(cta) && destination &&
	    /* Racy read: an outdated value only skips or adds this test store. */
	    data_race(cta->call.destination) == destination)
		return 0;
	return put_user(0, destination);
}

/*
 * End a call that was found to be wrong before the lock. The checks that every call has
 * follow here: another call of the CTA in progress gives -EBUSY.
 */
static int call_refuse(struct accmem_cta *cta,
		       const struct accmem_cta_call *call, int err)
{
	spin_lock(&cta->tmem->lock);
	/* This thread does not make its interrupted call again, even if it looks the same. */
	if (accmem_cta_is_interrupted(cta))
		accmem_cta_give_up(cta);
	else
		accmem_cta_resume(cta, call);
	/* A relinquish may come beside another call. */
	if (call->op != ACCMEM_CTA_OP_RELINQUISH && accmem_cta_is_busy(cta))
		err = -EBUSY;
	err = accmem_cta_conclude(cta, call, err);
	accmem_tmem_wake(cta->tmem);
	accmem_tmem_unlock(cta->tmem);
	return err;
}

/**
 * accmem_cta_refuse() - end a call whose arguments are wrong, whatever the CTA's state
 * @cta: the CTA
 * @call: the call
 * @err: the error
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: @err, or -EBUSY if another call of the CTA is in progress.
 */
int accmem_cta_refuse(struct accmem_cta *cta,
		      const struct accmem_cta_call *call, int err)
{
	err = call_refuse(cta, call, err);
	accmem_tmem_report(cta, call, err);
	return err;
}

/**
 * accmem_cta_alloc() - allocate columns and store their address
 * @cta: the CTA
 * @call: the call, whose flags were checked
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0, or an error as <uapi/linux/accmem.h> lists them.
 */
int accmem_cta_alloc(struct accmem_cta *cta, const struct accmem_cta_call *call)
{
	int err;

	if (unlikely(call_check_destination(cta, call->destination)))
		err = fatal_signal_pending(current) ?
			      -EINTR :
			      call_refuse(cta, call, -EFAULT);
	else
		err = call_alloc(cta, call);
	if (unlikely(err))
		accmem_tmem_report(cta, call, err);
	if (accmem_cta_has_hazards(cta))
		accmem_cta_report_hazards(cta);
	return err;
}

static int call_give_back(struct accmem_cta *cta,
			  const struct accmem_cta_call *call, bool wait)
{
	return accmem_columns_dealloc(&cta->tmem->columns, &cta->c,
				      call->address, call->columns, wait);
}

/**
 * accmem_cta_dealloc() - free columns
 * @cta: the CTA
 * @call: the call, whose flags were checked
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0, or an error as <uapi/linux/accmem.h> lists them.
 */
int accmem_cta_dealloc(struct accmem_cta *cta,
		       const struct accmem_cta_call *call)
{
	bool wait = call_may_wait(call);
	int err;

	spin_lock(&cta->tmem->lock);
	err = call_enter(cta, call, wait, call_give_back);
	while (err == -EINPROGRESS)
		err = accmem_cta_sleep(cta, call, call->deadline_ns);
	err = call_leave(cta, call, err);
	accmem_tmem_unlock(cta->tmem);
	if (unlikely(err))
		accmem_tmem_report(cta, call, err);
	if (accmem_cta_has_hazards(cta))
		accmem_cta_report_hazards(cta);
	return err;
}

/**
 * accmem_cta_relinquish() - relinquish the permit of a CTA to allocate
 * @cta: the CTA
 * @call: the call
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0; -EPROTO when the peer was waiting in alloc; -ECONNRESET.
 */
int accmem_cta_relinquish(struct accmem_cta *cta,
			  const struct accmem_cta_call *call)
{
	struct accmem_tmem *tmem = cta->tmem;
	int err;

	spin_lock(&tmem->lock);
	err = accmem_columns_relinquish(&tmem->columns, &cta->c);
	/* Trace the relinquish before the grants that become possible by it. */
	trace_accmem_tmem_relinquish(cta,
				     hweight64(cta->c.held) * ACCMEM_TMEM_UNIT);
	if (accmem_tmem_is_misuse(err))
		accmem_tmem_count(cta, ACCMEM_STAT(misuses));
	accmem_tmem_wake(tmem);
	accmem_tmem_unlock(tmem);
	if (err)
		accmem_tmem_report(cta, call, err);
	return err;
}

static u32 call_state_bits(const struct accmem_cta *cta)
{
	const struct accmem_columns *c = &cta->tmem->columns;
	const struct accmem_columns_cta *a = &cta->c;

	return (a->relinquished ? ACCMEM_CTA_RELINQUISHED : 0) |
	       (c->sms[a->sm].permit == a ? ACCMEM_CTA_PERMIT : 0) |
	       (accmem_columns_waiting(a) ? ACCMEM_CTA_WAITING : 0) |
	       (a->peer ? ACCMEM_CTA_PEER : 0) |
	       (a->peer_gone ? ACCMEM_CTA_PEER_GONE : 0) |
	       (c->ended ? ACCMEM_CTA_RESET : 0) |
	       (cta->wait == ACCMEM_CTA_COMPLETED ? ACCMEM_CTA_COMPLETION : 0);
}

/**
 * accmem_cta_query() - describe a CTA and its SM
 * @cta: the CTA
 * @req: out: the description; @req->size is not changed
 *
 * Context: Process context. Takes and releases tmem->lock. Does not sleep.
 */
void accmem_cta_query(struct accmem_cta *cta, struct accmem_cta_query *req)
{
	struct accmem_tmem *tmem = cta->tmem;
	const struct accmem_columns_cta *lead = &cta->c;

	req->launch = cta->c.launch;
	req->cluster = cta->c.cluster;
	req->rank = cta->c.rank;
	req->sm = cta->c.sm;
	req->cta_group = cta->c.group;
	req->columns = tmem->columns.columns;
	req->id = cta->id;
	spin_lock(&tmem->lock);
	if (cta->c.call == ACCMEM_CALL_QUEUED && !cta->c.leads)
		lead = cta->c.peer;
	req->state = call_state_bits(cta);
	req->held = hweight64(cta->c.held) * ACCMEM_TMEM_UNIT;
	req->unit_mask = cta->c.held;
	req->start_mask = cta->c.starts;
	req->last = cta->c.last;
	req->free = accmem_columns_free(&tmem->columns, cta->c.sm);
	req->waiting = tmem->columns.nr_queued;
	req->bypassed = lead->call == ACCMEM_CALL_QUEUED ? lead->bypassed : 0;
	spin_unlock(&tmem->lock);
}
