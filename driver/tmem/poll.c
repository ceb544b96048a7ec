// SPDX-License-Identifier: GPL-2.0
/*
 * Polls that wait until an alloc would be granted.
 *
 * Such a poll of a CTA is in the lists of the SMs whose events can end it (struct
 * accmem_poller). After an event of an SM, accmem_tmem_check_polls() checks the polls in the
 * SM's list.
 *
 * Locking: accmem_tmem.lock is held in each function.
 */
#include <linux/jiffies.h>

#include "internal.h"

/**
 * accmem_cta_would_grant() - check if the alloc that a poll waits for would succeed
 * @cta: the CTA
 *
 * The result of an interrupted call that has timed out does not count as a call in
 * progress.
 *
 * Context: tmem->lock is held. Does not sleep.
 */
bool accmem_cta_would_grant(struct accmem_cta *cta)
{
	enum accmem_columns_call call = cta->c.call;
	bool granted;

	lockdep_assert_held(&cta->tmem->lock);
	if (cta->wait == ACCMEM_CTA_INTERRUPTED && accmem_cta_is_overdue(cta) &&
	    !accmem_columns_waiting(&cta->c))
		cta->c.call = ACCMEM_CALL_NONE;
	granted = accmem_columns_would_grant(&cta->tmem->columns, &cta->c,
					     cta->poll_columns);
	cta->c.call = call;
	return granted;
}

/**
 * accmem_cta_init_pollers() - initialise the poll of a CTA
 * @cta: the CTA
 *
 * Context: Any context.
 */
void accmem_cta_init_pollers(struct accmem_cta *cta)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cta->pollers); i++) {
		INIT_LIST_HEAD(&cta->pollers[i].link);
		cta->pollers[i].cta = cta;
	}
}

static void poll_add(struct accmem_tmem *tmem, struct accmem_poller *poller,
		     u32 sm)
{
	if (!list_empty(&poller->link))
		return;
	list_add_tail(&poller->link, &tmem->sms[sm].pollers);
	tmem->columns.sms[sm].polled = true;
}

/**
 * accmem_cta_add_poller() - let the events of a CTA's SMs end its poll
 * @cta: the CTA
 *
 * A CTA whose peer is launched later is put on the peer's SM when the poll is checked
 * again: the alloc of the peer is an event of the SM of @cta.
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_add_poller(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	poll_add(cta->tmem, &cta->pollers[0], cta->c.sm);
	if (cta->c.peer)
		poll_add(cta->tmem, &cta->pollers[1], cta->c.peer->sm);
}

/**
 * accmem_cta_remove_poller() - undo accmem_cta_add_poller()
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_remove_poller(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	list_del_init(&cta->pollers[0].link);
	list_del_init(&cta->pollers[1].link);
}

/**
 * accmem_cta_check_poll() - wake the poll of a CTA if its alloc would be granted
 * @cta: the CTA
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_cta_check_poll(struct accmem_cta *cta)
{
	lockdep_assert_held(&cta->tmem->lock);
	if (accmem_cta_is_queued(cta) || !accmem_cta_is_watched(cta)) {
		accmem_cta_remove_poller(cta);
		return;
	}
	if (!accmem_cta_would_grant(cta)) {
		accmem_cta_add_poller(cta);
		return;
	}
	accmem_cta_remove_poller(cta);
	accmem_cta_notify_polls(cta);
}

/**
 * accmem_tmem_check_polls() - check the polls of an SM that has changed
 * @tmem: the Tensor Memory
 * @sm: the arbiter's part of the SM
 *
 * Context: tmem->lock is held. Does not sleep.
 */
void accmem_tmem_check_polls(struct accmem_tmem *tmem,
			     struct accmem_columns_sm *sm)
{
	struct list_head *pollers = &tmem->sms[sm - tmem->column_sms].pollers;
	struct accmem_poller *poller, *next;

	lockdep_assert_held(&tmem->lock);
	/* The other poller of the same CTA is on another SM. */
	list_for_each_entry_safe(poller, next, pollers, link)
		accmem_cta_check_poll(poller->cta);
	sm->polled = !list_empty(pollers);
}
