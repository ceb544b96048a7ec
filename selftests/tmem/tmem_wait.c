// SPDX-License-Identifier: GPL-2.0
/*
 * Waits for columns: deadlines, signals, killed processes, poll(), and the end of the
 * context. The tests also check that no waiter is woken without a reason.
 */
#include <sys/epoll.h>

#include "tmem_util.h"

#define WAITERS 1000

TMEM_FIXTURE(tmem_wait, 64, 256, 0)

TEST_F(tmem_wait, p2_a_deadline_ends_the_wait)
{
	uint64_t start = tmem_now();
	uint32_t at;

	EXPECT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &at, 512,
						  start + 50 * TMEM_MS));
	EXPECT_LE(50 * TMEM_MS, tmem_now() - start);
	EXPECT_EQ(1, accmem_fdinfo(tcgen05_fd(self->b), "tmem-timeouts"));
	EXPECT_EQ(0, tcgen05_alloc(self->b, &at, 256));
}

TEST_F(tmem_wait, p2_a_deadline_in_the_past_is_one_try)
{
	uint32_t at;

	EXPECT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &at, 512, 1));
	EXPECT_EQ(0, accmem_fdinfo(tcgen05_fd(self->b), "tmem-waits"));
	EXPECT_EQ(0, tcgen05_alloc_until(self->b, &at, 256, 1));
}

TEST_F(tmem_wait, p2_a_signal_restarts_with_the_same_deadline)
{
	struct tmem_call call = { .cta = self->b, .op = TMEM_ALLOC,
				  .columns = 512 };
	int i, signals = 0, fd = tcgen05_fd(self->b);
	int64_t woken = 0;
	uint64_t start;

	accmem_catch(SIGUSR1, SA_RESTART);
	/* again if the call did not wait yet when the last signal came */
	for (i = 0; i < 10 && !woken; i++) {
		start = tmem_now();
		call.deadline_ns = start + 600 * TMEM_MS;
		ASSERT_EQ(0, pthread_create(&call.thread, NULL, tmem_run_call,
					    &call));
		while (tmem_now() < start + 400 * TMEM_MS) {
			pthread_kill(call.thread, SIGUSR1);
			signals++;
			usleep(20000);
		}
		EXPECT_EQ(-ETIMEDOUT, tmem_finish(&call));
		EXPECT_LE(600 * TMEM_MS, tmem_now() - start);
		woken = accmem_fdinfo(fd, "tmem-woken-signal");
	}
	EXPECT_LT(0, woken);
	TH_LOG("%d signals", signals);
}

TEST_F(tmem_wait, p2_a_signal_without_restart_is_eintr)
{
	struct tmem_call call;
	uint32_t at;

	accmem_catch(SIGUSR1, 0);
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	pthread_kill(call.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, tmem_finish(&call));
	EXPECT_EQ(0, tcgen05_alloc(self->b, &at, 256));
}

/* A grant that races with a signal is a success. No column gets lost. */
TEST_F(tmem_wait, p2_grants_that_race_signals_lose_nothing)
{
	unsigned int i, rounds = accmem_scale(500), granted = 0;
	struct tmem_call call;

	accmem_catch(SIGUSR1, 0);
	for (i = 0; i < rounds; i++) {
		ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		pthread_kill(call.thread, SIGUSR1);
		ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 256));
		if (!tmem_finish(&call)) {
			granted++;
			ASSERT_EQ(0, tcgen05_dealloc(self->b, call.address,
						     512));
		} else {
			ASSERT_EQ(-EINTR, call.ret);
		}
		ASSERT_EQ(512, tmem_free_columns(self->a));
		ASSERT_EQ(0, tcgen05_alloc(self->a, &self->at, 256));
	}
	TH_LOG("%u of %u granted", granted, rounds);
}

/* The parent closes the CTA, so that the child has its last file. */
TEST_F(tmem_wait, p5_a_waiter_that_is_killed_leaves_nothing)
{
	struct tcgen05_cta *c = tmem_single(self->ctx, 0);
	uint32_t at;
	pid_t pid;

	ASSERT_NE(NULL, c);
	ASSERT_EQ(0, tcgen05_alloc(c, &at, 128));
	pid = fork();
	if (!pid) {
		tcgen05_alloc(c, &at, 128);
		tcgen05_alloc(c, &at, 128);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_TRUE(tmem_until_waiting(c));
	tcgen05_exit(c);
	EXPECT_EQ(0, tmem_free_columns(self->a));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(256, tmem_free_columns(self->a));
}

TEST_F(tmem_wait, p2_the_end_of_the_context_ends_every_wait)
{
	struct accmem_cta_query query;
	struct tmem_call call;
	uint32_t at;

	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	closes(&self->ctx);
	EXPECT_EQ(-ECONNRESET, tmem_finish(&call));
	EXPECT_EQ(1, accmem_fdinfo(tcgen05_fd(self->b), "tmem-wakeups"));
	EXPECT_EQ(1, accmem_fdinfo(tcgen05_fd(self->b), "tmem-woken-reset"));
	EXPECT_EQ(-ECONNRESET, tcgen05_alloc(self->b, &at, 32));
	EXPECT_EQ(-ECONNRESET, tcgen05_dealloc(self->a, self->at, 256));
	EXPECT_EQ(-ECONNRESET, tcgen05_relinquish_alloc_permit(self->a));
	ASSERT_EQ(0, tcgen05_query(self->a, &query));
	EXPECT_EQ(ACCMEM_CTA_RESET, query.state);
	EXPECT_EQ(512, query.free);
}

TEST_F(tmem_wait, p2_poll_says_when_to_try_again)
{
	struct pollfd p = { .fd = tcgen05_fd(self->b), .events = POLLIN };
	uint32_t at;

	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLIN, p.revents);
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 512));
	EXPECT_EQ(0, poll(&p, 1, 50));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 256));
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(0, tcgen05_try_alloc(self->b, &at, 512));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, at, 512));
	EXPECT_EQ(1, poll(&p, 1, 0));
	/* columns are free, but this CTA may not allocate any more */
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(self->b));
	EXPECT_EQ(0, poll(&p, 1, 0));
	closes(&self->ctx);
	EXPECT_EQ(1, poll(&p, 1, 0));
	EXPECT_EQ(POLLERR | POLLHUP, p.revents);
}

TEST_F(tmem_wait, p2_poll_is_not_about_a_call_with_a_deadline)
{
	struct pollfd p = { .fd = tcgen05_fd(self->b), .events = POLLIN };
	struct tcgen05_cta *c = tmem_single(self->ctx, 0);
	uint32_t at, rest;

	ASSERT_NE(NULL, c);
	ASSERT_EQ(0, tcgen05_alloc(c, &rest, 256));
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 512));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &at, 256, 1));
	ASSERT_EQ(0, tcgen05_dealloc(c, rest, 256));
	EXPECT_EQ(0, poll(&p, 1, 0));
	tcgen05_exit(c);
}

static void *free_soon(void *argument)
{
	usleep(100000);
	return (void *)(intptr_t)tcgen05_dealloc(argument, 0, 256);
}

TEST_F(tmem_wait, p2_poll_is_woken)
{
	struct pollfd p = { .fd = tcgen05_fd(self->b), .events = POLLIN };
	pthread_t thread;
	uint32_t at;

	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 512));
	ASSERT_EQ(0, pthread_create(&thread, NULL, free_soon, self->a));
	EXPECT_EQ(1, poll(&p, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(POLLIN, p.revents);
	pthread_join(thread, NULL);
}

/* Edge-triggered epoll asks once, when the file is readable. */
TEST_F(tmem_wait, p2_an_edge_is_not_lost)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int ep = epoll_create1(EPOLL_CLOEXEC);
	uint32_t at;

	ASSERT_LE(0, ep);
	ASSERT_EQ(0, epoll_ctl(ep, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	ASSERT_EQ(1, epoll_wait(ep, &e, 1, 0));
	ASSERT_EQ(0, epoll_wait(ep, &e, 1, 0));
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 512));
	EXPECT_EQ(0, epoll_wait(ep, &e, 1, 50));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 256));
	EXPECT_EQ(1, epoll_wait(ep, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(EPOLLIN, e.events);
	EXPECT_EQ(0, tcgen05_try_alloc(self->b, &at, 512));
	closes(&self->ctx);
	EXPECT_EQ(1, epoll_wait(ep, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_NE(0, e.events & EPOLLHUP);
	close(ep);
}

/* an alloc, and the exit of the CTA, which frees the columns for the next waiter */
static void *alloc_and_exit(void *argument)
{
	struct tmem_call *call = argument;

	tmem_run_call(call);
	if (!call->ret)
		tcgen05_exit(call->cta);
	return NULL;
}

#define OUTCOMES 5

/* counts results: granted, timed out, interrupted, cancelled, other */
static void count_outcomes(struct tmem_call *calls, unsigned int n,
			   unsigned int *by)
{
	static const int outcomes[OUTCOMES - 1] = { 0, -ETIMEDOUT, -EINTR,
						    -ECANCELED };
	unsigned int i, outcome;
	int ret;

	for (i = 0; i < n; i++) {
		ret = tmem_finish(&calls[i]);
		for (outcome = 0; outcome < OUTCOMES - 1; outcome++)
			if (ret == outcomes[outcome])
				break;
		by[outcome]++;
		if (calls[i].ret)
			tcgen05_exit(calls[i].cta);
	}
}

/* waits until the SM of @cta has @least to @most waiters */
static int until_waiting(struct tcgen05_cta *cta, unsigned int least,
			 unsigned int most)
{
	struct accmem_cta_query query;
	int err;

	do {
		usleep(10000);
		err = tcgen05_query(cta, &query);
	} while (!err && (query.waiting < least || query.waiting > most));
	return err;
}

/*
 * 1,000 calls wait, or fewer where counts are scaled down. A quarter of them is granted
 * columns, one reaches its deadline, one gets a signal, and one relinquishes. Each
 * wakes up once.
 */
TEST_F(tmem_wait, p2_a_thousand_waiters_wake_once_each)
{
	struct rlimit files = { 4096, 4096 };
	unsigned int i, n = accmem_scale(WAITERS);
	struct tmem_call *calls = calloc(WAITERS, sizeof(*calls));
	unsigned int by[OUTCOMES] = {};
	pthread_attr_t attr;
	int fd = accmem_fd(self->ctx);

	n = n < WAITERS ? n / 4 * 4 : WAITERS;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	accmem_catch(SIGUSR1, 0);
	ASSERT_EQ(0, pthread_attr_init(&attr));
	/* on arm64 the smallest stack */
	ASSERT_EQ(0, pthread_attr_setstacksize(&attr, 128 << 10));
	for (i = 0; i < n; i++) {
		calls[i].cta = tmem_single(self->ctx, 0);
		calls[i].columns = 512;
		ASSERT_NE(NULL, calls[i].cta);
		if (i % 4 == 1)
			continue;
		ASSERT_EQ(0, pthread_create(&calls[i].thread, &attr,
					    alloc_and_exit, &calls[i]));
	}
	ASSERT_EQ(0, until_waiting(self->a, n - n / 4, n));
	/* started last, since a slow machine may reach a deadline early */
	for (i = 1; i < n; i += 4) {
		calls[i].deadline_ns = tmem_in_ms(10 * n);
		ASSERT_EQ(0, pthread_create(&calls[i].thread, &attr,
					    alloc_and_exit, &calls[i]));
	}
	for (i = 0; i < n; i++) {
		if (i % 4 == 2)
			pthread_kill(calls[i].thread, SIGUSR1);
		else if (i % 4 == 3)
			tcgen05_relinquish_alloc_permit(calls[i].cta);
	}
	ASSERT_EQ(0, until_waiting(self->a, 0, n / 4));
	/* the others are served one after the other */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 256));
	count_outcomes(calls, n, by);
	TH_LOG("%u granted, %u timed out, %u interrupted, %u cancelled", by[0],
	       by[1], by[2], by[3]);
	EXPECT_EQ(0, by[4]);
	EXPECT_EQ(n / 4, by[0]);
	EXPECT_EQ(n / 4, by[1]);
	EXPECT_LE(n - n / 4, accmem_fdinfo(fd, "tmem-waits"));
	/* each wait ended once, and each wake-up had a reason */
	EXPECT_EQ(accmem_fdinfo(fd, "tmem-waits"),
		  tmem_explained_wakeups(self->ctx));
	EXPECT_TRUE(tmem_woken_by_strays_only(self->ctx));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	free(calls);
}

ACCMEM_HARNESS_MAIN
