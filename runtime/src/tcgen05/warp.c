// SPDX-License-Identifier: MIT
/*
 * Warps: calls that all lanes of a warp make together.
 *
 * Each lane calls with its operands. The last lane that arrives makes the call for the
 * warp, and all lanes return its result. This is a round.
 *
 * If two lanes disagree about the operands, the round ends with an error when all lanes
 * have arrived, so that every lane gets the error. If a lane leaves the warp, a round
 * whose lanes agree ends at once, and a round whose lanes disagree waits for the other
 * lanes. A lane that calls again waits until all lanes have returned from the round
 * before.
 *
 * Locking: tcgen05_warp.lock. The driver is called without it.
 */
#include <errno.h>
#include <stdlib.h>

#include <tcgen05.h>

#include "core/error.h"
#include "core/util.h"
#include "tcgen05/cta.h"
#include "tcgen05/error.h"

enum operation {
	WARP_ALLOC,
	WARP_DEALLOC,
	WARP_RELINQUISH,
};

/* @flags, @deadline_ns and @user_data: of a call for all lanes, which share them */
struct operands {
	enum operation operation;
	uint32_t *destination;
	uint32_t address;
	uint32_t columns;
	uint32_t flags;
	uint64_t deadline_ns;
	uint64_t user_data;
};

/**
 * struct tcgen05_warp - a warp, see tcgen05.h
 * @cta: CTA of the warp
 * @lanes: number of lanes
 * @number: number of the warp in its CTA, or 0
 * @lock: protects @number and all fields below
 * @changed: signalled when a round ends, and when all lanes have returned
 * @users: number of calls that have not returned
 * @gone: bits of the lanes that have left the warp
 * @inside: bits of the lanes that are in the round
 * @waiting: number of lanes in the round that have not returned
 * @differ: two lanes disagree about the operands
 * @running: a lane is making the call, without the lock
 * @over: the round has ended; no lane may enter until all have returned
 * @operands: operands of the first lane that arrived
 * @result: result of the round, when it is over
 */
struct tcgen05_warp {
	struct tcgen05_cta *cta;
	unsigned int lanes;
	uint32_t number;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int users;
	uint32_t gone;
	uint32_t inside;
	unsigned int waiting;
	int differ;
	int running;
	int over;
	struct operands operands;
	int result;
};

int tcgen05_warp_create(struct tcgen05_cta *cta, unsigned int lanes,
			struct tcgen05_warp **result)
{
	struct tcgen05_warp *warp;
	int ret;

	if (!lanes || lanes > TCGEN05_WARP_LANES)
		return -EINVAL;
	warp = calloc(1, sizeof(*warp));
	if (!warp)
		return -ENOMEM;
	warp->cta = cta;
	warp->lanes = lanes;
	ret = pthread_mutex_init(&warp->lock, NULL);
	if (ret)
		goto free_warp;
	ret = pthread_cond_init(&warp->changed, NULL);
	if (ret)
		goto destroy_lock;
	*result = warp;
	return 0;

destroy_lock:
	pthread_mutex_destroy(&warp->lock);
free_warp:
	free(warp);
	return -ret;
}

int tcgen05_warp_set_number(struct tcgen05_warp *warp, uint32_t number)
{
	int ret = 0;

	pthread_mutex_lock(&warp->lock);
	if (warp->users)
		ret = -EBUSY;
	else
		warp->number = number;
	pthread_mutex_unlock(&warp->lock);
	return ret;
}

int tcgen05_warp_destroy(struct tcgen05_warp *warp)
{
	unsigned int users;

	if (!warp)
		return 0;
	pthread_mutex_lock(&warp->lock);
	users = warp->users;
	pthread_mutex_unlock(&warp->lock);
	if (users)
		return -EBUSY;
	pthread_cond_destroy(&warp->changed);
	pthread_mutex_destroy(&warp->lock);
	free(warp);
	return 0;
}

static void end_round(struct tcgen05_warp *warp, int result)
{
	warp->result = result;
	warp->over = 1;
	pthread_cond_broadcast(&warp->changed);
}

static uint32_t all_lanes(const struct tcgen05_warp *warp)
{
	return 0xffffffffu >> (TCGEN05_WARP_LANES - warp->lanes);
}

/* Are all lanes in the round that have not left the warp? */
static int all_inside(const struct tcgen05_warp *warp)
{
	return !(all_lanes(warp) & ~warp->gone & ~warp->inside);
}

void tcgen05_warp_leave(struct tcgen05_warp *warp, unsigned int lane)
{
	if (lane >= warp->lanes)
		return;
	pthread_mutex_lock(&warp->lock);
	warp->gone |= 1u << lane;
	if (warp->inside && !warp->running && !warp->over) {
		if (!warp->differ)
			end_round(warp, -ESRCH);
		else if (all_inside(warp))
			end_round(warp, -EILSEQ);
	}
	pthread_mutex_unlock(&warp->lock);
}

static int agree(const struct operands *a, const struct operands *b)
{
	return a->operation == b->operation &&
	       a->destination == b->destination && a->address == b->address &&
	       a->columns == b->columns;
}

static int perform(struct tcgen05_warp *warp)
{
	const struct operands *o = &warp->operands;

	switch (o->operation) {
	case WARP_ALLOC:
		return tcgen05_call_alloc(warp->cta,
					  (struct accmem_cta_alloc){
						  .flags = o->flags,
						  .columns = o->columns,
						  .warp = warp->number,
						  .deadline_ns = o->deadline_ns,
						  .destination =
							  (uintptr_t)o
								  ->destination,
						  .user_data = o->user_data });
	case WARP_DEALLOC:
		return tcgen05_call_dealloc(warp->cta,
					    (struct accmem_cta_dealloc){
						    .flags = o->flags,
						    .address = o->address,
						    .columns = o->columns,
						    .deadline_ns =
							    o->deadline_ns,
						    .user_data = o->user_data,
						    .warp = warp->number });
	default:
		return tcgen05_relinquish_alloc_permit(warp->cta);
	}
}

/* The last lane makes the call. It holds the lock, which is released during the call. */
static void run_round(struct tcgen05_warp *warp)
{
	int result;

	warp->running = 1;
	pthread_mutex_unlock(&warp->lock);
	result = perform(warp);
	pthread_mutex_lock(&warp->lock);
	warp->running = 0;
	end_round(warp, result);
}

/* Enter the round. 0, or the error of a lane that may not. The caller holds the lock. */
static int enter(struct tcgen05_warp *warp, unsigned int lane,
		 const struct operands *operands)
{
	while (warp->over)
		pthread_cond_wait(&warp->changed, &warp->lock);
	/* a round whose lanes disagree continues without the lanes that have left */
	if (warp->gone & 1u << lane || (warp->gone && !warp->differ))
		return -ESRCH;
	if (warp->inside & 1u << lane)
		return -EBUSY;
	if (!warp->inside)
		warp->operands = *operands;
	else if (!agree(&warp->operands, operands))
		warp->differ = 1;
	warp->inside |= 1u << lane;
	warp->waiting++;
	return 0;
}

static int leave_round(struct tcgen05_warp *warp)
{
	int result = warp->result;

	if (!--warp->waiting) {
		warp->inside = 0;
		warp->differ = 0;
		warp->over = 0;
		pthread_cond_broadcast(&warp->changed);
	}
	return result;
}

/* A call of the warp begins: take the lock, and disable cancellation. */
static int begin_call(struct tcgen05_warp *warp)
{
	int state = accmem_cancel_off();

	pthread_mutex_lock(&warp->lock);
	warp->users++;
	return state;
}

static void end_call(struct tcgen05_warp *warp, int state)
{
	warp->users--;
	pthread_mutex_unlock(&warp->lock);
	accmem_cancel_restore(state);
}

static int warp_fail(int error, const struct operands *operands)
{
	switch (operands->operation) {
	case WARP_ALLOC:
		return tcgen05_fail(error, "alloc of a warp of %u columns",
				    operands->columns);
	case WARP_DEALLOC:
		return tcgen05_fail(error, "dealloc of a warp of %u columns",
				    operands->columns);
	default:
		return tcgen05_fail(error, "relinquish of a warp");
	}
}

static int collective(struct tcgen05_warp *warp, unsigned int lane,
		      const struct operands *operands)
{
	int ret, state;

	if (lane >= warp->lanes)
		return accmem_fail(-EINVAL, "lane %u of a warp", lane);
	state = begin_call(warp);
	ret = enter(warp, lane, operands);
	if (!ret) {
		if (all_inside(warp) && warp->differ)
			end_round(warp, -EILSEQ);
		else if (all_inside(warp))
			run_round(warp);
		while (!warp->over)
			pthread_cond_wait(&warp->changed, &warp->lock);
		ret = leave_round(warp);
	}
	end_call(warp, state);
	return warp_fail(ret, operands);
}

int tcgen05_warp_alloc(struct tcgen05_warp *warp, unsigned int lane,
		       uint32_t *destination, uint32_t columns)
{
	struct operands operands = {
		.operation = WARP_ALLOC,
		.destination = destination,
		.columns = columns,
	};

	return collective(warp, lane, &operands);
}

int tcgen05_warp_dealloc(struct tcgen05_warp *warp, unsigned int lane,
			 uint32_t address, uint32_t columns)
{
	struct operands operands = {
		.operation = WARP_DEALLOC,
		.address = address,
		.columns = columns,
	};

	return collective(warp, lane, &operands);
}

int tcgen05_warp_relinquish_alloc_permit(struct tcgen05_warp *warp,
					 unsigned int lane)
{
	struct operands operands = { .operation = WARP_RELINQUISH };

	return collective(warp, lane, &operands);
}

/* --- calls that one thread makes for all lanes ----------------------------- */

/* Check the active lanes when there is no round. The caller holds the lock. */
static int check_active(const struct tcgen05_warp *warp, uint32_t active,
			int differ)
{
	if (!active || active & ~all_lanes(warp))
		return -EINVAL;
	if (differ)
		return -EILSEQ;
	return active == all_lanes(warp) && !warp->gone ? 0 : -ESRCH;
}

/*
 * A round that one thread makes for all lanes. @operands: of the first active lane;
 * @differ: another active lane has other operands.
 */
static int collective_all(struct tcgen05_warp *warp, uint32_t active,
			  const struct operands *operands, int differ)
{
	int ret, state = begin_call(warp);

	while (warp->over)
		pthread_cond_wait(&warp->changed, &warp->lock);
	ret = warp->inside ? -EBUSY : check_active(warp, active, differ);
	if (!ret) {
		warp->operands = *operands;
		warp->inside = active;
		warp->waiting = 1;
		run_round(warp);
		ret = leave_round(warp);
	}
	end_call(warp, state);
	return warp_fail(ret, operands);
}

/* Index of the first active lane; 0 if no lane is active. */
static unsigned int first_lane(uint32_t active)
{
	return active ? __builtin_ctz(active) : 0;
}

static int words_differ(uint32_t active, const uint32_t *words)
{
	unsigned int first = first_lane(active), lane;

	for (lane = first; lane < TCGEN05_WARP_LANES; lane++)
		if (active & 1u << lane && words[lane] != words[first])
			return 1;
	return 0;
}

static int pointers_differ(uint32_t active, uint32_t *const *pointers)
{
	unsigned int first = first_lane(active), lane;

	for (lane = first; lane < TCGEN05_WARP_LANES; lane++)
		if (active & 1u << lane && pointers[lane] != pointers[first])
			return 1;
	return 0;
}

int tcgen05_warp_alloc_all(struct tcgen05_warp *warp, uint32_t active,
			   uint32_t *const destinations[TCGEN05_WARP_LANES],
			   const uint32_t columns[TCGEN05_WARP_LANES])
{
	struct operands operands = {
		.operation = WARP_ALLOC,
		.destination = destinations[first_lane(active)],
		.columns = columns[first_lane(active)],
	};

	return collective_all(warp, active, &operands,
			      words_differ(active, columns) ||
				      pointers_differ(active, destinations));
}

int tcgen05_warp_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
			     const uint32_t addresses[TCGEN05_WARP_LANES],
			     const uint32_t columns[TCGEN05_WARP_LANES])
{
	struct operands operands = {
		.operation = WARP_DEALLOC,
		.address = addresses[first_lane(active)],
		.columns = columns[first_lane(active)],
	};

	return collective_all(warp, active, &operands,
			      words_differ(active, columns) ||
				      words_differ(active, addresses));
}

int tcgen05_warp_queue_alloc_all(struct tcgen05_warp *warp, uint32_t active,
				 const uint32_t columns[TCGEN05_WARP_LANES],
				 uint64_t deadline_ns, uint64_t user_data)
{
	struct operands operands = {
		.operation = WARP_ALLOC,
		.columns = columns[first_lane(active)],
		.flags = ACCMEM_CTA_QUEUED,
		.deadline_ns = deadline_ns,
		.user_data = user_data,
	};

	return collective_all(warp, active, &operands,
			      words_differ(active, columns));
}

int tcgen05_warp_queue_dealloc_all(struct tcgen05_warp *warp, uint32_t active,
				   const uint32_t addresses[TCGEN05_WARP_LANES],
				   const uint32_t columns[TCGEN05_WARP_LANES],
				   uint64_t deadline_ns, uint64_t user_data)
{
	struct operands operands = {
		.operation = WARP_DEALLOC,
		.address = addresses[first_lane(active)],
		.columns = columns[first_lane(active)],
		.flags = ACCMEM_CTA_QUEUED,
		.deadline_ns = deadline_ns,
		.user_data = user_data,
	};

	return collective_all(warp, active, &operands,
			      words_differ(active, columns) ||
				      words_differ(active, addresses));
}

int tcgen05_warp_relinquish_all(struct tcgen05_warp *warp, uint32_t active)
{
	struct operands operands = { .operation = WARP_RELINQUISH };

	return collective_all(warp, active, &operands, 0);
}
