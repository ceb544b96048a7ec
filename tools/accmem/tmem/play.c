// SPDX-License-Identifier: GPL-2.0
/*
 * Replay of a trace. Time is virtual: the step that is due next is made next, and takes no
 * time. The device alone decides which calls wait and which are granted: the replay queues
 * each call, and reads the completions after each step.
 *
 * The trace gives the number of CTAs that an SM runs at a time. CTAs that are due start
 * when their SM has room, in the order of the trace. Both CTAs of a pair start together.
 */
#include <stdlib.h>
#include <string.h>

#include "tmem.h"

enum state {
	PENDING, /* the launch is not due */
	DUE, /* the CTA waits for room on its SM */
	RUNNING,
	CALLING, /* the CTA's call has not ended */
	GONE
};

/* a CTA in the replay */
struct actor {
	enum state state;
	uint32_t step; /* the next step, or the step in progress */
	struct tcgen05_cta *cta;
	uint32_t *addresses; /* address of each alloc */
	uint32_t *columns; /* columns of each alloc; 0 after its dealloc */
	uint32_t nr_allocs;
	uint32_t held, used;
	uint64_t start, asked;
	bool starved; /* the CTA waits for columns, and not for its peer */
	bool triggered;
};

struct sm {
	uint32_t resident, starved, held, used;
	bool blocked; /* an earlier CTA that is due cannot start on the SM */
};

struct player {
	const struct tmem_trace *t;
	const struct tmem_options *o;
	struct device *device;
	struct tmem_result *r;
	struct queue queue;
	struct actor *actors;
	struct sm sms[SMS_MAX];
	uint64_t now;
	uint32_t *due, nr_due; /* CTAs that are due, oldest first */
	uint32_t *calling, nr_calling; /* CTAs with a call, oldest call first */
	uint32_t *done; /* CTAs whose calls have just ended */
	uint32_t *untriggered; /* CTAs of each launch that have not triggered */
};

static struct sm *sm_of(struct player *p, uint32_t cta)
{
	return &p->sms[p->t->ctas[cta].sm];
}

static void complain(struct player *p, uint32_t cta, const char *what, int err)
{
	p->r->failures++;
	fprintf(stderr, "accmem: %s: CTA %u at %llu ns: %s: %s\n", p->t->name,
		p->t->ctas[cta].name, (unsigned long long)p->now, what,
		err ? strerror(-err) : "wrong");
}

/* Advance the time to @now, and add the columns that were idle or unused until then. */
static void pass_time(struct player *p, uint64_t now)
{
	double span = now - p->now; /* times columns, it may exceed 2^64 */
	uint32_t i;

	for (i = 0; i < p->t->sms && now > p->now; i++) {
		const struct sm *sm = &p->sms[i];

		if (sm->starved)
			p->r->idle += span * (p->t->columns - sm->held);
		p->r->unused += span * (sm->held - sm->used);
		p->r->capacity += span * p->t->columns;
	}
	p->now = now;
}

static void set_use(struct player *p, uint32_t cta, uint32_t columns)
{
	struct actor *a = &p->actors[cta];

	if (columns > a->held)
		columns = a->held;
	sm_of(p, cta)->used += columns - a->used;
	a->used = columns;
}

static void set_held(struct player *p, uint32_t cta, uint32_t columns)
{
	struct actor *a = &p->actors[cta];

	sm_of(p, cta)->held += columns - a->held;
	a->held = columns;
	if (!p->t->ctas[cta].nr_lines_of_use)
		set_use(p, cta, columns);
	else
		set_use(p, cta, a->used);
}

static void set_starved(struct player *p, uint32_t cta, bool starved)
{
	struct actor *a = &p->actors[cta];

	sm_of(p, cta)->starved += starved - a->starved;
	a->starved = starved;
}

static void go_on(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];
	struct moment m = { .cta = cta };

	a->state = RUNNING;
	a->step = p->t->steps[a->step].next;
	m.time = p->now + p->t->steps[a->step].after;
	m.line = p->t->steps[a->step].line;
	queue_push(&p->queue, m);
}

/* --- starts and exits --- */

/* Start the launches behind a launch whose CTAs have all triggered. */
static void release_launches(struct player *p, uint32_t launch)
{
	const struct tmem_trace *t = p->t;
	uint32_t i;

	for (i = 0; i < t->nr_ctas; i++) {
		const struct step *step = &t->steps[t->ctas[i].first];
		struct moment m = { .cta = i, .line = step->line };

		m.time = p->now + step->after;
		if (t->launches[t->ctas[i].launch].behind == launch)
			queue_push(&p->queue, m);
	}
}

static void trigger(struct player *p, uint32_t cta)
{
	uint32_t launch = p->t->ctas[cta].launch;

	if (p->actors[cta].triggered)
		return;
	p->actors[cta].triggered = true;
	if (!--p->untriggered[launch])
		release_launches(p, launch);
}

static void leave(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];

	set_starved(p, cta, false);
	set_held(p, cta, 0);
	if (a->cta) {
		tcgen05_exit(a->cta);
		sm_of(p, cta)->resident--;
	}
	a->cta = NULL;
	a->state = GONE;
	free(a->addresses);
	free(a->columns);
	trigger(p, cta);
}

static void start(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];
	uint32_t nr = p->t->ctas[cta].nr_allocs;
	int err;

	a->addresses = xcalloc(nr, sizeof(*a->addresses));
	a->columns = xcalloc(nr, sizeof(*a->columns));
	a->start = p->now;
	err = device_launch(p->device, p->t, cta, &a->cta);
	if (err) {
		complain(p, cta, "launch", err);
		leave(p, cta);
		return;
	}
	sm_of(p, cta)->resident++;
	go_on(p, cta);
}

static bool has_room(struct player *p, uint32_t cta)
{
	const struct sm *sm = sm_of(p, cta);

	return !p->t->resident ||
	       (!sm->blocked && sm->resident < p->t->resident);
}

static bool may_start(struct player *p, uint32_t cta)
{
	uint32_t peer = p->t->ctas[cta].peer;

	if (!has_room(p, cta))
		return false;
	if (!p->t->resident || peer == NONE ||
	    (p->actors[peer].state != DUE && p->actors[peer].state != PENDING))
		return true;
	return p->actors[peer].state == DUE && has_room(p, peer);
}

static void start_with_peer(struct player *p, uint32_t cta)
{
	uint32_t peer = p->t->ctas[cta].peer;

	start(p, cta);
	if (peer != NONE && p->actors[peer].state == DUE)
		start(p, peer);
}

static void start_due(struct player *p)
{
	uint32_t i, left = 0;

	for (i = 0; i < p->t->sms; i++)
		p->sms[i].blocked = false;
	for (i = 0; i < p->nr_due; i++) {
		uint32_t cta = p->due[i];

		if (p->actors[cta].state != DUE)
			continue;
		if (may_start(p, cta)) {
			start_with_peer(p, cta);
		} else {
			sm_of(p, cta)->blocked = true;
			p->due[left++] = cta;
		}
	}
	p->nr_due = left;
}

/* --- calls --- */

/* End a CTA whose call has failed, since its other steps depend on the call. */
static void fail(struct player *p, uint32_t cta, int err)
{
	const struct step *step = &p->t->steps[p->actors[cta].step];

	complain(p, cta, step_names[step->kind], err);
	leave(p, cta);
}

static bool is_allocating(const struct player *p, uint32_t cta)
{
	const struct actor *a = &p->actors[cta];

	return a->state == CALLING && p->t->steps[a->step].kind == STEP_ALLOC;
}

/* A pair waits for columns once both have called. */
static void note_starved(struct player *p, uint32_t cta)
{
	const struct cta *a = &p->t->ctas[cta];

	if (a->group == 1) {
		set_starved(p, cta, true);
	} else if (a->peer != NONE && is_allocating(p, a->peer)) {
		set_starved(p, cta, true);
		set_starved(p, a->peer, true);
	}
}

static void begin_call(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];
	const struct step *step = &p->t->steps[a->step];
	uint32_t n = step->argument;
	int err;

	if (step->kind == STEP_ALLOC)
		err = tcgen05_queue_alloc(a->cta, n, 0, 0);
	else
		err = tcgen05_queue_dealloc(a->cta, a->addresses[n],
					    a->columns[n], 0, 0);
	if (err) {
		fail(p, cta, err);
		return;
	}
	a->state = CALLING;
	a->asked = p->now;
	p->calling[p->nr_calling++] = cta;
	if (step->kind == STEP_ALLOC)
		note_starved(p, cta);
}

static void print_grant(const struct player *p, uint32_t cta, uint32_t address,
			uint32_t columns)
{
	const struct cta *a = &p->t->ctas[cta];

	printf("grant time=%llu asked=%llu launch=%llu",
	       (unsigned long long)p->now,
	       (unsigned long long)p->actors[cta].asked,
	       (unsigned long long)p->t->launches[a->launch].id);
	printf(" cluster=%u rank=%u sm=%u columns=%u address=%u\n", a->cluster,
	       a->rank, a->sm, columns, address);
}

static void end_alloc(struct player *p, uint32_t cta, uint32_t address)
{
	struct actor *a = &p->actors[cta];
	uint32_t columns = p->t->steps[a->step].argument;
	uint64_t took = p->now - a->start;

	set_starved(p, cta, false);
	if (!a->nr_allocs) {
		p->r->ready++;
		p->r->ready_sum += took;
		if (took > p->r->ready_max)
			p->r->ready_max = took;
	}
	a->addresses[a->nr_allocs] = address;
	a->columns[a->nr_allocs++] = columns;
	set_held(p, cta, a->held + columns);
	p->r->grants++;
	if (p->o->grants)
		print_grant(p, cta, address, columns);
}

static void end_call(struct player *p, uint32_t cta, int err, uint32_t address)
{
	struct actor *a = &p->actors[cta];
	const struct step *step = &p->t->steps[a->step];

	if (err) {
		fail(p, cta, err);
		return;
	}
	if (step->kind == STEP_ALLOC) {
		end_alloc(p, cta, address);
	} else {
		set_held(p, cta, a->held - a->columns[step->argument]);
		a->columns[step->argument] = 0;
	}
	go_on(p, cta);
}

/* Compare the columns that the figures count with the columns that the device reports. */
static void check_columns(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];
	struct accmem_cta_query query;
	int err;

	if (!a->cta)
		return;
	err = tcgen05_query(a->cta, &query);
	if (err || query.held != a->held ||
	    query.free != p->t->columns - sm_of(p, cta)->held)
		complain(p, cta, "columns held or free", err);
}

/* Read the completions of @left calls, in the order in which the calls began. */
static void read_calls(struct player *p, uint64_t left)
{
	uint32_t i, nr_done = 0, nr_calling = 0;
	struct accmem_cta_completion done;

	for (i = 0; i < p->nr_calling; i++) {
		uint32_t cta = p->calling[i];

		if (left && device_read(p->actors[cta].cta, &done)) {
			p->done[nr_done++] = cta;
			left--;
			end_call(p, cta, done.result, done.address);
		} else {
			p->calling[nr_calling++] = cta;
		}
	}
	p->nr_calling = nr_calling;
	for (i = 0; i < nr_done; i++)
		check_columns(p, p->done[i]);
}

/* Read completions until there are none: the exit of a failed CTA may end more calls. */
static void end_calls(struct player *p)
{
	uint64_t ended;

	while ((ended = device_ended(p->device)))
		read_calls(p, ended);
}

static void make_step(struct player *p, uint32_t cta)
{
	struct actor *a = &p->actors[cta];
	const struct step *step = &p->t->steps[a->step];
	int err = 0;

	switch (step->kind) {
	case STEP_LAUNCH:
		a->state = DUE;
		p->due[p->nr_due++] = cta;
		return;
	case STEP_ALLOC:
	case STEP_DEALLOC:
		begin_call(p, cta);
		return;
	case STEP_EXIT:
		leave(p, cta);
		return;
	case STEP_USE:
		set_use(p, cta, step->argument);
		break;
	case STEP_TRIGGER:
		trigger(p, cta);
		break;
	default:
		err = tcgen05_relinquish_alloc_permit(a->cta);
		break;
	}
	if (err)
		fail(p, cta, err);
	else
		go_on(p, cta);
}

static void player_prepare(struct player *p)
{
	const struct tmem_trace *t = p->t;
	uint32_t i;

	p->actors = xcalloc(t->nr_ctas, sizeof(*p->actors));
	p->due = xcalloc(t->nr_ctas, sizeof(*p->due));
	p->calling = xcalloc(t->nr_ctas, sizeof(*p->calling));
	p->done = xcalloc(t->nr_ctas, sizeof(*p->done));
	p->untriggered = xcalloc(t->nr_launches, sizeof(*p->untriggered));
	for (i = 0; i < t->nr_launches; i++)
		p->untriggered[i] = t->launches[i].nr_ctas;
	for (i = 0; i < t->nr_ctas; i++)
		p->actors[i].step = t->ctas[i].first;
	release_launches(p, NONE);
}

static void player_finish(struct player *p)
{
	uint32_t i;

	for (i = 0; i < p->t->nr_ctas; i++) {
		if (p->actors[i].state == GONE)
			continue;
		complain(p, i, "it waits for ever", 0);
		leave(p, i);
	}
	free(p->queue.moments);
	free(p->actors);
	free(p->due);
	free(p->calling);
	free(p->done);
	free(p->untriggered);
}

int tmem_play(const struct tmem_trace *t, const struct tmem_options *o,
	      struct tmem_result *r)
{
	struct player p = { .t = t, .o = o, .r = r };
	struct moment m;

	memset(r, 0, sizeof(*r));
	p.device = device_open(t, o);
	if (!p.device)
		return -1;
	player_prepare(&p);
	while (queue_pop(&p.queue, &m)) {
		pass_time(&p, m.time);
		make_step(&p, m.cta);
		end_calls(&p);
		start_due(&p);
	}
	r->end = p.now;
	player_finish(&p);
	device_close(p.device);
	return 0;
}
