// SPDX-License-Identifier: GPL-2.0
/*
 * Notification of queued calls. poll() and epoll report that there is a completion,
 * and an eventfd counts the completions.
 */
#include <sys/epoll.h>

#include "tmem_queue_util.h"

TMEM_QUEUE_FIXTURE(tmem_queue_poll)

TEST_F(tmem_queue_poll, is_polled_for)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(0, events(self->b));
	EXPECT_EQ(ACCMEM_CTA_WAITING, tmem_state(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(POLLIN, events(self->b));
	EXPECT_EQ(ACCMEM_CTA_COMPLETION, tmem_state(self->b));
	ASSERT_EQ(0, take(self->b, &done));
	EXPECT_EQ(0, tmem_state(self->b));
}

/* One thread waits for several CTAs with edge-triggered epoll. */
TEST_F(tmem_queue_poll, epoll_says_of_which_cta)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.u32 = 1 };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->c, 512, 0));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	e.data.u32 = 2;
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->c), &e));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(1, e.data.u32);
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, 0, 512));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(2, e.data.u32);
	EXPECT_EQ(0, finish(self->c));
	close(epoll);
}

/* Other events than a completion are still reported, before a completion and after it. */
TEST_F(tmem_queue_poll, epoll_says_of_what_comes_after_a_completion)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);
	uint32_t at;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	/* calls of other CTAs are no event */
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->c, &at, 32));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, cancel(self->b));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(-ECANCELED, finish(self->b));
	/* an alloc would be granted now */
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLIN, e.events);
	close(epoll);
}

/* A waiter for hang-ups only is not woken by completions. */
TEST_F(tmem_queue_poll, epoll_says_of_hang_ups_alone)
{
	struct epoll_event e = { .events = 0 };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->p), &e));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, cancel(self->p));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	exits(&self->q);
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLHUP, e.events);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_DEL, tcgen05_fd(self->p), &e));
	closes(&self->ctx);
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLERR | EPOLLHUP, e.events);
	close(epoll);
}

TEST_F(tmem_queue_poll, epoll_says_that_the_peer_has_gone_while_a_completion_is_unread)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->p), &e));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	ASSERT_EQ(0, cancel(self->p));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLIN, e.events);
	exits(&self->q);
	ASSERT_EQ(-ECANCELED, finish(self->p));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_TRUE(e.events & EPOLLHUP);
	close(epoll);
}

/* --- eventfd -------------------------------------------------------------- */

TEST_F(tmem_queue_poll, an_eventfd_counts_those_of_many)
{
	int fd = eventfd(0, EFD_NONBLOCK), other = eventfd(0, EFD_NONBLOCK);

	ASSERT_EQ(0, set_eventfd(self->a, fd));
	ASSERT_EQ(0, set_eventfd(self->b, fd));
	ASSERT_EQ(0, set_eventfd(self->c, fd));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	ASSERT_EQ(0, queue_alloc(self->c, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	/* a call that is granted at once counts, too */
	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 0));
	EXPECT_EQ(3, count_of(fd));
	/* a call that is refused at once has no completion */
	EXPECT_EQ(-EBUSY, queue_alloc(self->a, 32, 0));
	EXPECT_EQ(0, finish(self->a));
	EXPECT_EQ(-EDOM, queue_alloc(self->a, 33, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	/* another eventfd replaces the first; then there is none */
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, set_eventfd(self->b, other));
	ASSERT_EQ(0, queue_dealloc(self->b, 0, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	EXPECT_EQ(1, count_of(other));
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, set_eventfd(self->b, -1));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(other));
	/* the driver keeps a reference to the eventfd */
	close(other);
	close(fd);
	EXPECT_EQ(0, finish(self->c));
	ASSERT_EQ(0, queue_dealloc(self->c, 256, 256, 0));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue_poll, an_eventfd_is_an_eventfd)
{
	int fd = eventfd(0, EFD_NONBLOCK), null = open("/dev/null", O_RDWR);

	ASSERT_EQ(0, set_eventfd(self->b, fd));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, 1 << 20));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, -2));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, -2147483647 - 1));
	EXPECT_EQ(-EINVAL, set_eventfd(self->b, null));
	EXPECT_EQ(-EINVAL, set_eventfd(self->b, tcgen05_fd(self->b)));
	/* the previous eventfd still counts */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(1, count_of(fd));
	close(null);
	close(fd);
}

/* A full counter neither blocks the driver nor loses a completion. */
TEST_F(tmem_queue_poll, an_eventfd_that_is_full)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	ASSERT_EQ(0, eventfd_write(fd, 0xfffffffffffffffeull));
	ASSERT_EQ(0, set_eventfd(self->a, fd));
	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 0));
	EXPECT_EQ(0, finish(self->a));
	close(fd);
}

struct busy {
	struct tcgen05_cta *cta;
	int calls;
	int failed;
};

/* Makes queued allocs and deallocs, each of which completes at once. */
static void *completes(void *arg)
{
	struct busy *busy = arg;
	int i;

	for (i = 0; i < busy->calls && !busy->failed; i++) {
		if (i % 2)
			busy->failed = queue_dealloc(busy->cta, 0, 512, 0);
		else
			busy->failed = queue_alloc(busy->cta, 512, 0);
		if (!busy->failed)
			busy->failed = finish(busy->cta);
	}
	return NULL;
}

/* Each completion is counted once, while another thread replaces the eventfd. */
TEST_F(tmem_queue_poll, eventfds_that_are_replaced_count_all)
{
	struct busy busy = { .cta = self->b, .calls = 2 * accmem_scale(1000) };
	int fds[2] = { eventfd(0, EFD_NONBLOCK), eventfd(0, EFD_NONBLOCK) };
	int64_t one, sum = 0;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, set_eventfd(self->b, fds[0]));
	ASSERT_EQ(0, pthread_create(&thread, NULL, completes, &busy));
	for (i = 0; pthread_tryjoin_np(thread, NULL) == EBUSY; i++)
		EXPECT_EQ(0, set_eventfd(self->b, fds[i % 2]));
	EXPECT_EQ(0, busy.failed);
	for (i = 0; i < 2; i++) {
		one = count_of(fds[i]);
		sum += one < 0 ? 0 : one;
		close(fds[i]);
	}
	EXPECT_EQ(busy.calls, sum);
}

/* The count has no completion less than can be read, when the call has returned. */
TEST_F(tmem_queue_poll, a_call_counts_all_that_it_ends)
{
	enum { CTAS = 64 };
	struct accmem_context *ctx = tmem_open(1, 2048, 0, 0);
	struct tcgen05_cta *holder, *ctas[CTAS];
	int fd = eventfd(0, EFD_NONBLOCK), i;
	uint32_t at;

	ASSERT_NE(NULL, ctx);
	holder = tmem_single(ctx, 0);
	ASSERT_NE(NULL, holder);
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, tcgen05_alloc(holder, &at, 512));
	for (i = 0; i < CTAS; i++) {
		ctas[i] = tmem_single(ctx, 0);
		ASSERT_NE(NULL, ctas[i]);
		ASSERT_EQ(0, set_eventfd(ctas[i], fd));
		ASSERT_EQ(0, queue_alloc(ctas[i], 32, 0));
	}
	EXPECT_EQ(-EAGAIN, count_of(fd));
	exits(&holder);
	EXPECT_EQ(CTAS, count_of(fd));
	for (i = 0; i < CTAS; i++) {
		EXPECT_EQ(0, finish(ctas[i]));
		exits(&ctas[i]);
	}
	closes(&ctx);
	close(fd);
}

/*
 * The end of a context leaves most of its CTAs to the driver's worker. Each completion is
 * counted, and each poll says that the context has ended.
 */
TEST_F(tmem_queue_poll, the_end_of_a_context_notifies_many)
{
	enum { CTAS = 300 };
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0), fd = eventfd(0, EFD_NONBLOCK);
	struct tcgen05_cta *ctas[CTAS];
	int64_t one, sum = 0;
	bool told[CTAS] = {};
	int i, nr = 0;

	ASSERT_LE(0, epoll);
	for (i = 0; i < CTAS; i++) {
		ctas[i] = tmem_single(self->ctx, 0);
		ASSERT_NE(NULL, ctas[i]);
		ASSERT_EQ(0, set_eventfd(ctas[i], fd));
		ASSERT_EQ(0, queue_alloc(ctas[i], 512, 0));
		e.data.u32 = i;
		ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD,
				       tcgen05_fd(ctas[i]), &e));
	}
	ASSERT_EQ(-EAGAIN, count_of(fd));
	closes(&self->ctx);
	while (nr < CTAS &&
	       epoll_wait(epoll, &e, 1, TMEM_PATIENCE_MS) == 1) {
		EXPECT_TRUE(e.events & EPOLLHUP);
		nr += !told[e.data.u32];
		told[e.data.u32] = true;
	}
	EXPECT_EQ(CTAS, nr);
	for (i = 0; i < TMEM_PATIENCE_MS && sum < CTAS; i++) {
		one = count_of(fd);
		if (one > 0)
			sum += one;
		else
			usleep(1000);
	}
	EXPECT_EQ(CTAS, sum);
	for (i = 0; i < CTAS; i++) {
		EXPECT_EQ(-ECONNRESET, finish(ctas[i]));
		exits(&ctas[i]);
	}
	EXPECT_EQ(-EAGAIN, count_of(fd));
	close(fd);
	close(epoll);
}

ACCMEM_HARNESS_MAIN
