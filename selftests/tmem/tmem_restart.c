// SPDX-License-Identifier: GPL-2.0
/*
 * Waits that a signal interrupts. With SA_RESTART the thread makes the call again
 * after the handler. The call keeps its place in the queue, and so does the call of
 * the peer. Columns that were granted meanwhile are returned then. Without SA_RESTART
 * nothing is left of the call.
 */
#include <stdarg.h>

#include "tmem_util.h"

#define KEPT_MS 900 /* an interrupted call keeps its place for a second */
#define LONG_MS 1500 /* longer than that */
#define TRIES 10

/* The bypass bound is 0: strict order of arrival. */
TMEM_FIXTURE(tmem_restart, 0, 512, 0)

/* a handler that returns when leave_handler() is called */
static int in_handler, let_go;

static uint64_t interrupted_at;

static void linger(int sig)
{
	(void)sig;
	__atomic_store_n(&in_handler, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&let_go, __ATOMIC_SEQ_CST))
		usleep(1000);
	__atomic_store_n(&in_handler, 0, __ATOMIC_SEQ_CST);
}

static int handle(void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	in_handler = 0;
	let_go = 0;
	return sigaction(SIGUSR1, &action, NULL);
}

static bool until_in_handler(void)
{
	int i;

	for (i = 0; i < TMEM_PATIENCE_MS; i++) {
		if (__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST))
			return true;
		usleep(1000);
	}
	return false;
}

/* returns when the handler has no sleep any more that looks like that of a call */
static void leave_handler(void)
{
	__atomic_store_n(&let_go, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&in_handler, __ATOMIC_SEQ_CST))
		usleep(1000);
}

/* interrupts a waiting call; its thread is in the handler then */
static bool interrupt(struct tmem_call *call)
{
	interrupted_at = tmem_now();
	pthread_kill(call->thread, SIGUSR1);
	return until_in_handler();
}

/* May the interrupted call have been forgotten by now? */
static bool is_late(void)
{
	return tmem_now() >= interrupted_at + KEPT_MS * TMEM_MS;
}

/* starts an alloc; false if it does not wait before the interrupted call is forgotten */
static bool start_in_time(struct tmem_call *call, struct tcgen05_cta *cta,
			  uint32_t columns)
{
	*call = (struct tmem_call){
		.cta = cta, .op = TMEM_ALLOC, .columns = columns, .ret = 1
	};
	if (pthread_create(&call->thread, NULL, tmem_run_call, call))
		return false;
	while (!(tmem_state(cta) & ACCMEM_CTA_WAITING) ||
	       !accmem_is_asleep(__atomic_load_n(&call->tid, __ATOMIC_ACQUIRE)))
		if (is_late())
			return false;
	return true;
}

/*
 * Returns false if the caller was in time since interrupt(). A machine that pauses may be
 * late: then the function ends the calls of the threads, makes new CTAs and returns true,
 * so that the caller begins again. The last try counts as in time. The threads end with
 * NULL.
 */
static bool late(struct __test_metadata *_metadata,
		 FIXTURE_DATA(tmem_restart) * self, ...)
{
	struct tcgen05_cta **all[] = { &self->a, &self->b, &self->c,
				       &self->p, &self->q, &self->w };
	static unsigned int tries;
	pthread_t *thread;
	unsigned int i;
	va_list threads;

	if (!is_late() || ++tries == TRIES)
		return false;
	leave_handler();
	for (i = 0; i < ARRAY_SIZE(all); i++)
		exits(all[i]);
	va_start(threads, self);
	while ((thread = va_arg(threads, pthread_t *)))
		pthread_join(*thread, NULL);
	va_end(threads);
	tmem_restart_teardown(_metadata, self, NULL);
	tmem_restart_setup(_metadata, self, NULL);
	return true;
}

TEST_F(tmem_restart, p2_the_place_in_the_queue_is_kept)
{
	struct tmem_call first, second;

	do {
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&first, self->b, 512));
		ASSERT_TRUE(interrupt(&first));
		ASSERT_TRUE(tmem_start_alloc(&second, self->c, 512));
		leave_handler();
		ASSERT_TRUE(tmem_until_thread_sleeps(&first.tid));
	} while (late(_metadata, self, &first.thread, &second.thread, NULL));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&first));
	EXPECT_EQ(1, second.ret);
	ASSERT_EQ(0, tcgen05_dealloc(self->b, 0, 512));
	EXPECT_EQ(0, tmem_finish(&second));
}

TEST_F(tmem_restart, p2_what_is_granted_in_the_handler_is_there_after_it)
{
	struct tmem_call call;
	int other;

	do {
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		call.address = 77;
		ASSERT_TRUE(interrupt(&call));
		ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
		other = tcgen05_try_alloc(self->c, &self->at, 32);
		leave_handler();
		tmem_ends(&call);
	} while (late(_metadata, self, &call.thread, NULL));
	EXPECT_EQ(-EAGAIN, other);
	EXPECT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(0, call.address);
	EXPECT_EQ(0, tcgen05_dealloc(self->b, 0, 512));
}

TEST_F(tmem_restart, p2_the_deadline_passes_in_the_handler)
{
	struct tmem_call call = {
		.cta = self->b, .op = TMEM_ALLOC, .columns = 512, .ret = 1
	};

	ASSERT_EQ(0, handle(linger, SA_RESTART));
	call.deadline_ns = tmem_in_ms(5000);
	ASSERT_EQ(0, pthread_create(&call.thread, NULL, tmem_run_call, &call));
	ASSERT_TRUE(tmem_until_asleep(&call));
	ASSERT_TRUE(interrupt(&call));
	while (tmem_now() < call.deadline_ns)
		usleep(1000);
	leave_handler();
	EXPECT_TRUE(tmem_ends(&call));
	/* a call that does not end would get columns now */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(-ETIMEDOUT, tmem_finish(&call));
}

TEST_F(tmem_restart, p12_both_of_a_pair_keep_their_place)
{
	struct tmem_call p, q, other;
	bool started;
	uint32_t at;

	do {
		ASSERT_EQ(0, tcgen05_alloc(self->w, &at, 512));
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&p, self->p, 512));
		ASSERT_TRUE(tmem_start_alloc(&q, self->q, 512));
		ASSERT_TRUE(interrupt(&p));
		ASSERT_TRUE(accmem_is_asleep(q.tid));
		/* the columns become free while p is in its handler: both get them */
		ASSERT_EQ(0, tcgen05_dealloc(self->w, at, 512));
		started = start_in_time(&other, self->w, 32);
		leave_handler();
		tmem_ends(&p);
	} while (late(_metadata, self, &p.thread, &q.thread, &other.thread,
		      NULL));
	ASSERT_TRUE(started);
	EXPECT_EQ(0, tmem_finish(&p));
	EXPECT_EQ(0, tmem_finish(&q));
	exits(&self->q);
	EXPECT_EQ(0, tmem_finish(&other));
}

TEST_F(tmem_restart, p4_a_dealloc_that_has_been_is_not_forgotten)
{
	struct tmem_call call;
	uint32_t at;
	int peer;

	do {
		ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start(&call, self->p, TMEM_DEALLOC, at, 64));
		ASSERT_TRUE(interrupt(&call));
		peer = tcgen05_dealloc_until(self->q, at, 64, tmem_in_ms(5000));
	} while (late(_metadata, self, &call.thread, NULL));
	EXPECT_EQ(0, peer);
	usleep(LONG_MS * 1000);
	leave_handler();
	EXPECT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(512, tmem_free_columns(self->p));
}

TEST_F(tmem_restart, p2_without_restart_nothing_is_left)
{
	struct tmem_call call;

	ASSERT_EQ(0, handle(linger, 0));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_TRUE(interrupt(&call));
	/* the handler has not returned yet */
	EXPECT_FALSE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(512, tmem_free_columns(self->c));
	leave_handler();
	EXPECT_EQ(-EINTR, tmem_finish(&call));
}

TEST_F(tmem_restart, p11_another_thread_meets_a_call_in_progress)
{
	struct tmem_call call;
	int other[2];
	uint32_t at;

	do {
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		ASSERT_TRUE(interrupt(&call));
		other[0] = tcgen05_try_alloc(self->b, &at, 512);
		other[1] = tcgen05_dealloc(self->b, 0, 512);
	} while (late(_metadata, self, &call.thread, NULL));
	EXPECT_EQ(-EBUSY, other[0]);
	EXPECT_EQ(-EBUSY, other[1]);
	leave_handler();
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&call));
}

static sigjmp_buf out;

static void jump(int sig)
{
	(void)sig;
	siglongjmp(out, 1);
}

/* A thread that leaves a call by a jump; @then, unless it is NULL, makes the next call. */
struct leaper {
	struct tcgen05_cta *cta;
	int (*then)(struct tcgen05_cta *cta);
	uint32_t address;
	pid_t tid;
	int ret;
};

/* starts the thread and makes it leave its wait by a signal */
static bool leaves_by_a_jump(struct leaper *leaper, void *(*run)(void *))
{
	pthread_t thread;

	if (handle(jump, SA_RESTART) ||
	    pthread_create(&thread, NULL, run, leaper) ||
	    !tmem_until_waiting(leaper->cta) ||
	    !tmem_until_thread_sleeps(&leaper->tid))
		return false;
	interrupted_at = tmem_now();
	return !pthread_kill(thread, SIGUSR1) && !pthread_join(thread, NULL);
}

static int try_alloc(struct tcgen05_cta *cta)
{
	uint32_t at;

	return tcgen05_try_alloc(cta, &at, 32);
}

static int alloc_to_nowhere(struct tcgen05_cta *cta)
{
	return tcgen05_alloc(cta, NULL, 512);
}

/* leaves an alloc by a jump, and may make another call */
static void *leap(void *argument)
{
	struct leaper *leaper = argument;
	uint32_t at;

	__atomic_store_n(&leaper->tid, gettid(), __ATOMIC_RELEASE);
	if (!sigsetjmp(out, 1))
		leaper->ret = tcgen05_alloc(leaper->cta, &at, 512);
	else if (leaper->then)
		leaper->ret = leaper->then(leaper->cta);
	return NULL;
}

TEST_F(tmem_restart, p2_who_makes_another_call_has_left_the_first)
{
	struct leaper leaper = { .cta = self->b, .then = try_alloc, .ret = 1 };
	struct tmem_call next;

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	EXPECT_EQ(-EAGAIN, leaper.ret);
	EXPECT_FALSE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
	ASSERT_TRUE(tmem_start_alloc(&next, self->c, 512));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&next));
}

/* leaves a dealloc by a jump */
static void *leap_from_dealloc(void *argument)
{
	struct leaper *leaper = argument;

	__atomic_store_n(&leaper->tid, gettid(), __ATOMIC_RELEASE);
	if (!sigsetjmp(out, 1))
		leaper->ret = tcgen05_dealloc(leaper->cta, leaper->address, 64);
	return NULL;
}

TEST_F(tmem_restart, p2_a_call_that_never_comes_back_is_forgotten)
{
	struct leaper leaper = { .cta = self->b, .ret = 1 };
	uint32_t at;

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	/* the call keeps its place for a second; then other waiters are served */
	EXPECT_EQ(0, tcgen05_alloc_until(self->c, &at, 512, tmem_in_ms(20000)));
	EXPECT_FALSE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
}

/* Nobody waits a second for a call whose thread has ended. */
TEST_F(tmem_restart, p11_a_call_of_a_thread_that_has_ended_is_none)
{
	struct leaper leaper = { .cta = self->b, .ret = 1 };
	uint32_t at;

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_FALSE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
	/* columns are not kept for such a call either */
	leaper.cta = self->c;
	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tcgen05_try_alloc(self->b, &at, 512));
}

TEST_F(tmem_restart, p10_a_bad_destination_is_another_call)
{
	struct leaper leaper = { .cta = self->b,
				 .then = alloc_to_nowhere,
				 .ret = 1 };

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	EXPECT_EQ(-EFAULT, leaper.ret);
	EXPECT_FALSE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
}

TEST_F(tmem_restart, p11_a_bad_destination_is_not_beside_another_call)
{
	struct tmem_call call;

	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, NULL, 512));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&call));
}

/* waits until the driver has given up a call that was not made again */
static bool until_forgotten(struct tcgen05_cta *cta)
{
	int i;

	for (i = 0; i < TMEM_PATIENCE_MS; i++) {
		if (!(tmem_state(cta) & ACCMEM_CTA_WAITING))
			return true;
		usleep(1000);
	}
	return false;
}

/* The trace shows the end of each call, also of calls that their threads have left. */
TEST_F(tmem_restart, p2_a_call_that_was_left_is_traced)
{
	struct leaper next = { .cta = self->b, .then = try_alloc, .ret = 1 };
	struct leaper none = { .cta = self->c, .ret = 1 };

	if (access("/sys/kernel/tracing/events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_TRUE(accmem_trace_start());
	ASSERT_TRUE(leaves_by_a_jump(&next, leap));
	ASSERT_TRUE(leaves_by_a_jump(&none, leap));
	ASSERT_TRUE(until_forgotten(self->c));
	ASSERT_TRUE(accmem_trace_stop());
	EXPECT_EQ(1, accmem_trace_count("accmem_tmem_fail",
					"cta=2 sm=0 columns=512 error=-4", NULL,
					0));
	EXPECT_EQ(1, accmem_trace_count("accmem_tmem_fail",
					"cta=5 sm=0 columns=512 error=-4", NULL,
					0));
}

/*
 * The trace shows the begin of an alloc once, however often it is restarted, and not
 * for an alloc that is refused.
 */
TEST_F(tmem_restart, p2_a_call_that_is_made_again_has_begun_once)
{
	struct tmem_call call;
	uint32_t at;

	if (access("/sys/kernel/tracing/events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	do {
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(accmem_trace_start());
		ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		ASSERT_TRUE(interrupt(&call));
		leave_handler();
		ASSERT_TRUE(tmem_until_thread_sleeps(&call.tid));
	} while (late(_metadata, self, &call.thread, NULL) &&
		 accmem_trace_stop());
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &at, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&call));
	ASSERT_TRUE(accmem_trace_stop());
	EXPECT_EQ(1, accmem_trace_count("accmem_tmem_request", "cta=2 sm=0",
					NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_tmem_fail",
					"cta=2 sm=0 columns=32 error=-16", NULL,
					0));
}

/* A result waits for the thread of the call. It does not hold up other threads. */
TEST_F(tmem_restart, p12_a_result_that_nobody_comes_back_for_is_in_nobodys_way)
{
	struct leaper leaper = { .cta = self->p, .ret = 1 };
	uint32_t at;

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	exits(&self->q);
	usleep(LONG_MS * 1000);
	EXPECT_EQ(-EPIPE, tcgen05_try_alloc(self->p, &at, 32));
}

/* Such a result does not hold up poll() either. */
TEST_F(tmem_restart, p12_a_result_of_nobody_is_in_no_pollers_way)
{
	struct pollfd poll_p = { .events = POLLIN };
	struct tmem_call call;
	struct leaper leaper;
	uint32_t at;
	int peer;

	do {
		ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
		leaper = (struct leaper){ .cta = self->p, .address = at };
		ASSERT_TRUE(leaves_by_a_jump(&leaper, leap_from_dealloc));
		peer = tcgen05_dealloc_until(self->q, at, 64, tmem_in_ms(5000));
	} while (late(_metadata, self, NULL));
	ASSERT_EQ(0, peer);
	poll_p.fd = tcgen05_fd(self->p);
	ASSERT_TRUE(tmem_start_alloc(&call, self->q, 64));
	EXPECT_EQ(1, poll(&poll_p, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(POLLIN, poll_p.revents);
	EXPECT_EQ(0, tcgen05_alloc(self->p, &at, 64));
	EXPECT_EQ(0, tmem_finish(&call));
}

/* an alloc whose destination the signal handler changes */
struct redirected {
	struct accmem_cta_alloc req;
	struct tcgen05_cta *cta;
	const struct tmem_call *peer;
	uint32_t places[2];
	pid_t tid;
	int ret;
};

static struct redirected *redirected;

static void redirect(int sig)
{
	(void)sig;
	redirected->req.destination = (uintptr_t)&redirected->places[1];
	leave_handler();
	while (__atomic_load_n(&redirected->peer->ret, __ATOMIC_ACQUIRE) == 1)
		usleep(1000);
}

static void *alloc_redirected(void *argument)
{
	struct redirected *r = argument;

	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	r->ret =
		accmem_ioctl(tcgen05_fd(r->cta), ACCMEM_IOC_CTA_ALLOC, &r->req);
	return NULL;
}

/* The address is stored in the first destination already. The peer has not stored it. */
TEST_F(tmem_restart, p10_another_destination_is_another_call)
{
	struct sigaction action = { .sa_handler = redirect,
				    .sa_flags = SA_RESTART };
	struct tmem_call peer;
	struct redirected r;
	pthread_t thread;
	uint32_t first, at;

	redirected = &r;
	ASSERT_EQ(0, sigaction(SIGUSR2, &action, NULL));
	do {
		r = (struct redirected){ .cta = self->p,
					 .peer = &peer,
					 .places = { 77, 78 },
					 .ret = 1 };
		r.req.size = sizeof(r.req);
		r.req.columns = 64;
		r.req.destination = (uintptr_t)&r.places[0];
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&peer, self->q, 64));
		ASSERT_TRUE(interrupt(&peer));
		ASSERT_EQ(0,
			  pthread_create(&thread, NULL, alloc_redirected, &r));
		ASSERT_TRUE(tmem_until_thread_sleeps(&r.tid));
		first = r.places[0];
		ASSERT_EQ(0, pthread_kill(thread, SIGUSR2));
		tmem_ends(&peer);
	} while (late(_metadata, self, &peer.thread, &thread, NULL));
	EXPECT_EQ(0, first);
	EXPECT_EQ(0, tmem_finish(&peer));
	ASSERT_EQ(0, tcgen05_alloc(self->q, &at, 64));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.ret);
	EXPECT_EQ(at, r.places[1]);
}

static void regroup(int sig)
{
	(void)sig;
	redirected->req.cta_group = 2;
}

/* The launch has another cta_group: the call is refused, and the interrupted one ends. */
TEST_F(tmem_restart, p13_a_call_of_another_group_ends_the_interrupted_one)
{
	struct sigaction action = { .sa_handler = regroup,
				    .sa_flags = SA_RESTART };
	struct redirected r = { .cta = self->b, .ret = 1 };
	pthread_t thread;
	uint32_t at;

	redirected = &r;
	r.req.size = sizeof(r.req);
	r.req.columns = 512;
	r.req.destination = (uintptr_t)&r.places[0];
	ASSERT_EQ(0, sigaction(SIGUSR2, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, alloc_redirected, &r));
	ASSERT_TRUE(tmem_until_thread_sleeps(&r.tid));
	ASSERT_EQ(0, pthread_kill(thread, SIGUSR2));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EPROTOTYPE, r.ret);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tcgen05_try_alloc(self->b, &at, 512));
	EXPECT_EQ(0, tcgen05_dealloc(self->b, at, 512));
}

/*
 * A queued call without time left still waits for the peer to store its address, as a
 * blocking call does.
 */
TEST_F(tmem_restart, p12_a_queued_call_out_of_time_waits_for_the_peers_store)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.flags = ACCMEM_CTA_QUEUED,
					.columns = 64,
					.deadline_ns = 1 };
	struct accmem_cta_completion done;
	struct tmem_call call;
	int fd, err;

	do {
		fd = tcgen05_fd(self->q);
		ASSERT_EQ(0, handle(linger, SA_RESTART));
		ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
		ASSERT_TRUE(interrupt(&call));
		err = accmem_ioctl(fd, ACCMEM_IOC_CTA_ALLOC, &req);
		usleep(100000);
		leave_handler();
		tmem_ends(&call);
	} while (late(_metadata, self, &call.thread, NULL));
	ASSERT_EQ(0, err);
	EXPECT_EQ(0, tmem_finish(&call));
	ASSERT_EQ(sizeof(done), read(fd, &done, sizeof(done)));
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(call.address, done.address);
}

/*
 * p has left its call, and would have to store its address. q may not wait, so it must
 * fail.
 */
TEST_F(tmem_restart, p12_who_may_not_wait_is_not_left_waiting)
{
	struct leaper leaper = { .cta = self->p, .ret = 1 };
	struct tmem_call call = { .cta = self->q,
				  .op = TMEM_ALLOC,
				  .columns = 512,
				  .deadline_ns = 1,
				  .ret = 1 };

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	ASSERT_EQ(0, pthread_create(&call.thread, NULL, tmem_run_call, &call));
	EXPECT_TRUE(tmem_ends(&call));
	exits(&self->p);
	EXPECT_EQ(-ETIMEDOUT, tmem_finish(&call));
}

TEST_F(tmem_restart, p5_a_cta_exits_while_its_call_is_away)
{
	struct leaper leaper = { .cta = self->b, .ret = 1 };
	uint32_t at;

	ASSERT_TRUE(leaves_by_a_jump(&leaper, leap));
	exits(&self->b);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tcgen05_try_alloc(self->c, &at, 512));
}

ACCMEM_HARNESS_MAIN
