// SPDX-License-Identifier: GPL-2.0
/*
 * Handoff: memory that is about to be freed goes to the first waiter without becoming free.
 */
#include <linux/align.h>

#include "core/carveout.h"
#include "internal.h"
#include "waitq/waiters.h"

/* Does the run match the request of the waiter? */
static bool waiter_can_do_with(const struct accmem_waiter *w,
			       const struct accmem_carveout *cv,
			       const struct accmem_run *run, u32 cache_mode)
{
	const struct accmem_layout *layout = &w->handoff.layout;
	bool identity = cv->translation == ACCMEM_TRANSLATION_IDENTITY;

	return w->handoff.bo && w->handoff.carveouts & BIT(cv->index) &&
	       run->size == layout->footprint &&
	       accmem_carveout_mode(cv, w->req.cache_mode) == cache_mode &&
	       IS_ALIGNED(run->start, layout->page_size) &&
	       (!identity || IS_ALIGNED(run->start, layout->alignment));
}

/**
 * accmem_waiters_try_handoff() - hand memory to a waiter before the memory is freed
 * @cv: carveout
 * @run: memory that is about to be freed
 * @cache_mode: cache mode of the memory
 * @give: callback that moves the memory to accmem_handoff.bo of the waiter; returns
 *	false if this is impossible. It must not sleep.
 * @arg: argument of @give
 *
 * Only the first waiter of the queue is considered, and only if its request has exactly
 * the size, the cache mode and the alignment of the run.
 *
 * Context: Not in an interrupt. Takes and releases accmem_waiters.lock. Does not sleep.
 * Return: true if the waiter has received the memory.
 */
bool accmem_waiters_try_handoff(struct accmem_carveout *cv,
				const struct accmem_run *run, u32 cache_mode,
				bool (*give)(struct accmem_waiter *w,
					     void *arg),
				void *arg)
{
	struct accmem_waiters *ws = cv->waiters;
	struct accmem_queue_waiter *q;
	bool given;

	spin_lock(&ws->lock);
	q = accmem_queue_first(&ws->queue);
	given = q &&
		waiter_can_do_with(accmem_waiter_of(q), cv, run, cache_mode) &&
		give(accmem_waiter_of(q), arg);
	if (given) {
		accmem_waiter_of(q)->handoff.given = true;
		ws->stats.handed_over++;
		accmem_queue_serve(&ws->queue, q);
		accmem_waiter_wake(accmem_waiter_of(q));
	}
	spin_unlock(&ws->lock);
	return given;
}
