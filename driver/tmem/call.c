// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a CTA that wait in their callers: alloc and dealloc; and those that do
 * not wait: relinquish, query.
 *
 * The arbiter decides under the lock. The address of an alloc is stored before it
 * counts: under the lock where the page is there, which is the rule, for it was
 * written to before; else without, and then the columns are a reservation that
 * either side of a pair can still refuse.
 *
 * Locks: accmem_tmem.lock.
 */
#include <linux/bitops.h>
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "trace/tmem_trace.h"

/* may the call wait? not when its deadline has passed */
static bool call_may_wait(const struct accmem_cta_call *call)
{
	if (call->flags & ACCMEM_CTA_NONBLOCK)
		return false;
	return !call->deadline_ns || ktime_get_ns() < call->deadline_ns;
}

/*
 * Begins a call, with @begin, or takes up one that a signal has interrupted; where
 * another is in progress, -EBUSY.
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
		/* an interrupted one that is not this was given up */
		if (accmem_cta_is_busy(cta))
			return -EBUSY;
	}
	cta->waited = false;
	cta->c.warp = call->warp;
	return begin(cta, call, wait);
}

/* is there nothing to count or trace, as most often? */
static __always_inline bool call_is_plain(const struct accmem_cta_call *call,
					  int err)
{
	return !err && call->op == ACCMEM_CTA_OP_DEALLOC &&
	       !trace_accmem_tmem_dealloc_enabled();
}

/* the end of a call, unless it goes on without its caller */
static __always_inline int
call_leave(struct accmem_cta *cta, const struct accmem_cta_call *call, int err)
{
	if (!err)
		accmem_columns_returned(&cta->c);
	if (err != -EBUSY)
		accmem_cta_check_hazards(cta);
	if (!call_is_plain(call, err) &&
	    (err != -ERESTARTSYS || cta->wait != ACCMEM_CTA_INTERRUPTED))
		err = accmem_cta_conclude(cta, call, err);
	accmem_tmem_wake(cta->tmem);
	return err;
}

static int call_reserve(struct accmem_cta *cta,
			const struct accmem_cta_call *call, bool wait)
{
	trace_accmem_tmem_request(cta, call->columns);
	return accmem_columns_reserve(&cta->tmem->columns, &cta->c,
				      call->columns, wait);
}

/* the page of the destination is not there: the lock is dropped meanwhile */
static noinline int call_store_slowly(struct accmem_cta *cta, u32 address,
				      u32 __user *destination)
	__must_hold(&cta->tmem->lock)
{
	struct accmem_tmem *tmem = cta->tmem;
	int err;

	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);
	err = put_user(address, destination);
	spin_lock(&tmem->lock);
	return err;
}

/* A fault of a task that is killed says nothing of the destination. */
static int call_cancel(struct accmem_cta *cta)
{
	return accmem_columns_cancel(&cta->tmem->columns, &cta->c) ?
		       -EINTR :
		       accmem_columns_collect(&cta->c);
}

/* stores the address of a reservation, and confirms it or refuses */
static int call_store(struct accmem_cta *cta, u32 __user *destination)
	__must_hold(&cta->tmem->lock)
{
	u32 address = cta->c.address;
	int err;

	pagefault_disable();
	err = put_user(address, destination);
	pagefault_enable();
	if (unlikely(err))
		err = call_store_slowly(cta, address, destination);
	if (unlikely(err) && fatal_signal_pending(current))
		return call_cancel(cta);
	return accmem_columns_confirm(&cta->tmem->columns, &cta->c, address,
				      !err);
}

/* The peer's store has no deadline: who may not wait waits for it all the same. */
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
			err = call_store(cta, call->destination);
		else if (err)
			err = accmem_cta_sleep(cta, call,
					       call_deadline(cta, call));
		else
			break;
	}
	if (err == -EAGAIN && !call->deadline_ns)
		cta->poll_columns = call->columns;
	err = call_leave(cta, call, err);
	spin_unlock(&cta->tmem->lock);
	return err;
}

/* inside of the window of the launch, and can it be written? */
static int call_check_destination(struct accmem_cta *cta,
				  u32 __user *destination)
{
	if (!accmem_window_has(&cta->window, destination, sizeof(*destination)))
		return -EFAULT;
	/* the address may be there already */
	if (accmem_cta_is_interrupted(cta) && destination &&
	    /* it is this thread's call, or one of which the next look is exact */
	    data_race(cta->call.destination) == destination)
		return 0;
	return put_user(0, destination);
}

/*
 * A bad destination is found before the wait, for it is written to before, too. It
 * is a call as any other is: not while another is in progress.
 */
static int call_refuse_destination(struct accmem_cta *cta,
				   const struct accmem_cta_call *call)
{
	int err;

	spin_lock(&cta->tmem->lock);
	accmem_cta_resume(cta, call); /* it is another: that one is given up */
	err = accmem_cta_is_busy(cta) ? -EBUSY : -EFAULT;
	err = accmem_cta_conclude(cta, call, err);
	accmem_tmem_wake(cta->tmem);
	spin_unlock(&cta->tmem->lock);
	return err;
}

/**
 * accmem_cta_alloc() - allocate columns and store their address
 * @cta: the CTA
 * @call: the call, checked for flags
 *
 * Return: 0, or an error as <linux/accmem.h> lists them.
 */
int accmem_cta_alloc(struct accmem_cta *cta, const struct accmem_cta_call *call)
{
	int err;

	if (unlikely(call_check_destination(cta, call->destination)))
		err = fatal_signal_pending(current) ?
			      -EINTR :
			      call_refuse_destination(cta, call);
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
 * accmem_cta_dealloc() - give columns back
 * @cta: the CTA
 * @call: the call, checked for flags
 *
 * Return: 0, or an error as <linux/accmem.h> lists them.
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
	spin_unlock(&cta->tmem->lock);
	if (unlikely(err))
		accmem_tmem_report(cta, call, err);
	if (accmem_cta_has_hazards(cta))
		accmem_cta_report_hazards(cta);
	return err;
}

/**
 * accmem_cta_relinquish() - give up the right to allocate
 * @cta: the CTA
 *
 * Return: 0; -EPROTO when the peer was waiting in alloc; -ECONNRESET.
 */
int accmem_cta_relinquish(struct accmem_cta *cta)
{
	static const struct accmem_cta_call call = {
		.op = ACCMEM_CTA_OP_RELINQUISH,
	};
	struct accmem_tmem *tmem = cta->tmem;
	int err;

	spin_lock(&tmem->lock);
	err = accmem_columns_relinquish(&tmem->columns, &cta->c);
	/* before the grants that it makes possible */
	trace_accmem_tmem_relinquish(cta,
				     hweight64(cta->c.held) * ACCMEM_TMEM_UNIT);
	if (accmem_tmem_is_misuse(err))
		accmem_tmem_count(cta, ACCMEM_STAT(misuses));
	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);
	if (err)
		accmem_tmem_report(cta, &call, err);
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
 * @req: filled in
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
