// SPDX-License-Identifier: GPL-2.0
/*
 * Queued calls. They wait in the same queue as calls that block, without a thread.
 * Each call leaves one completion, which read() returns. A queued call of a pair meets
 * the call of the peer, whether that is queued or blocks.
 */
#include "tmem_queue_util.h"

#define FAR_MS 60000

TMEM_QUEUE_FIXTURE(tmem_queue)

/* --- a completion --------------------------------------------------------- */

TEST_F(tmem_queue, says_what_became_of_the_call)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 1ull << 63));
	ASSERT_EQ(0, take(self->a, &done));
	EXPECT_EQ(1ull << 63, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(_IOC_NR(ACCMEM_IOC_CTA_DEALLOC), done.call);
	EXPECT_EQ(self->at, done.address);
	EXPECT_EQ(512, done.columns);
	ASSERT_EQ(0, tcgen05_alloc(self->b, &self->at, 64));
	ASSERT_EQ(0, queue_alloc(self->c, 32, 7));
	ASSERT_EQ(0, take(self->c, &done));
	EXPECT_EQ(7, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(_IOC_NR(ACCMEM_IOC_CTA_ALLOC), done.call);
	EXPECT_EQ(64, done.address);
	EXPECT_EQ(32, done.columns);
	EXPECT_EQ(0, tcgen05_dealloc(self->c, done.address, done.columns));
}

TEST_F(tmem_queue, is_read_once)
{
	struct accmem_cta_completion done;

	EXPECT_EQ(-ENODATA, take(self->b, &done));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EAGAIN, take(self->b, &done));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, take(self->b, &done));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
}

TEST_F(tmem_queue, stays_where_it_cannot_be_read)
{
	struct accmem_cta_completion done;
	int fd = tcgen05_fd(self->b);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + 4096, 4096, PROT_READ));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 5));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(-1, read(fd, &done, sizeof(done) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(fd, &done, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(fd, p + 4096, sizeof(done)));
	EXPECT_EQ(EFAULT, errno);
	/* the last byte cannot be written */
	EXPECT_EQ(-1, read(fd, p + 4096 - sizeof(done) + 1, sizeof(done)));
	EXPECT_EQ(EFAULT, errno);
	/* a page that is not present, and a larger buffer, are no errors */
	EXPECT_EQ(0, madvise(p, 4096, MADV_DONTNEED));
	EXPECT_EQ((ssize_t)sizeof(done), read(fd, p, 8192));
	EXPECT_EQ(5, ((struct accmem_cta_completion *)p)->user_data);
	munmap(p, 8192);
}

static void *read_one(void *argument)
{
	struct tmem_call *call = argument;
	struct accmem_cta_completion done = {};

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	call->ret = take(call->cta, &done);
	call->columns = done.columns;
	return NULL;
}

TEST_F(tmem_queue, a_read_waits_for_it)
{
	struct tmem_call reader = { .cta = self->b };

	ASSERT_EQ(0, fcntl(tcgen05_fd(self->b), F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&reader));
	EXPECT_EQ(64, reader.columns);
}

TEST_F(tmem_queue, a_signal_ends_the_read_and_not_the_call)
{
	struct tmem_call reader = { .cta = self->b };

	accmem_catch(SIGUSR1, 0);
	ASSERT_EQ(0, fcntl(tcgen05_fd(self->b), F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	pthread_kill(reader.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, tmem_finish(&reader));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
}

/*
 * A read would delay the exit of the CTA, so the last close ends it. Another close does
 * not.
 */
TEST_F(tmem_queue, closing_the_cta_ends_the_read)
{
	struct tmem_call reader = { .cta = self->b, .ret = 1 };
	int fd = dup(tcgen05_fd(self->b));

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	ASSERT_EQ(0, close(fd));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	EXPECT_EQ(1, reader.ret);
	EXPECT_EQ(ACCMEM_CTA_WAITING, tmem_state(self->b));
	exits(&self->b);
	EXPECT_TRUE(tmem_ends(&reader));
	/* a read that was not ended ends now */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(-ECANCELED, tmem_finish(&reader));
}

/* --- order ---------------------------------------------------------------- */

TEST_F(tmem_queue, p11_one_call_of_a_cta_at_a_time)
{
	uint32_t at;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_dealloc(self->b, 0, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	/* the CTA is busy until its completion has been read */
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_dealloc(self->b, 0, 32));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(0, finish(self->b));
}

TEST_F(tmem_queue, p11_a_blocked_call_refuses_a_queued_one)
{
	struct tmem_call blocked;

	ASSERT_TRUE(tmem_start_alloc(&blocked, self->b, 32));
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&blocked));
}

TEST_F(tmem_queue, rules_that_are_broken_at_once_leave_no_completion)
{
	struct accmem_cta_completion done;

	EXPECT_EQ(-EDOM, queue_alloc(self->b, 48, 0));
	EXPECT_EQ(-ENOSPC, queue_alloc(self->a, 512, 0));
	EXPECT_EQ(-ENOENT, queue_dealloc(self->p, 0, 32, 0));
	EXPECT_EQ(-EACCES, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-ETIMEDOUT, queue_alloc_until(self->b, 32, 0, 1));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(self->c));
	EXPECT_EQ(-EPERM, queue_alloc(self->c, 32, 0));
	EXPECT_EQ(-ENODATA, take(self->a, &done));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
	EXPECT_EQ(-ENODATA, take(self->c, &done));
}

/* --- what ends a queued call ---------------------------------------------- */

TEST_F(tmem_queue, cancel_ends_it)
{
	struct tmem_call next;

	EXPECT_EQ(-ENOENT, cancel(self->b));
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_TRUE(tmem_start_alloc(&next, self->c, 32));
	EXPECT_EQ(0, cancel(self->b));
	EXPECT_EQ(POLLIN, events(self->b));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	EXPECT_EQ(-ECANCELED, finish(self->b));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	/* the call has left the queue */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&next));
	EXPECT_EQ(480, tmem_free_columns(self->b));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	EXPECT_EQ(0, finish(self->b));
}

TEST_F(tmem_queue, the_deadline_ends_it)
{
	uint64_t deadline = tmem_in_ms(NEAR_MS);

	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 9, deadline));
	EXPECT_EQ(-ETIMEDOUT, finish(self->b));
	EXPECT_LE(deadline, tmem_now());
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(512, tmem_free_columns(self->b));
	EXPECT_EQ(1, accmem_fdinfo(tcgen05_fd(self->b), "tmem-timeouts"));
}

TEST_F(tmem_queue, a_deadline_is_that_of_its_own_call)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 0, tmem_in_ms(NEAR_MS)));
	ASSERT_EQ(0, cancel(self->b));
	EXPECT_EQ(-ECANCELED, finish(self->b));
	/* a call without a deadline, and one with a later deadline */
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(NEAR_MS)));
	ASSERT_EQ(0, cancel(self->c));
	EXPECT_EQ(-ECANCELED, finish(self->c));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(FAR_MS)));
	usleep((NEAR_MS + 300) * 1000);
	EXPECT_EQ(-EAGAIN, take(self->b, &done));
	EXPECT_EQ(-EAGAIN, take(self->c, &done));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue, a_deadline_as_far_as_can_be_said_is_none)
{
	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 0, ~0ull));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, 1ull << 63));
	usleep(30000);
	EXPECT_EQ(0, events(self->b));
	EXPECT_EQ(0, events(self->c));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue, the_end_of_the_context_ends_it)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	closes(&self->ctx);
	EXPECT_EQ(POLLIN | POLLERR | POLLHUP, events(self->b));
	EXPECT_EQ(-ECONNRESET, finish(self->b));
	EXPECT_EQ(-ECONNRESET, finish(self->p));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
	EXPECT_EQ(-ECONNRESET, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-ECONNRESET, queue_dealloc(self->a, 0, 512, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
}

/* A completion from before the end can still be read. The columns are gone. */
TEST_F(tmem_queue, the_end_of_the_context_leaves_completions)
{
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	closes(&self->ctx);
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(-ECONNRESET, queue_dealloc(self->b, 0, 32, 0));
}

TEST_F(tmem_queue, p5_the_exit_of_a_cta_takes_its_call_along)
{
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(FAR_MS)));
	exits(&self->b);
	EXPECT_EQ(0, events(self->c));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->c));
	/* a CTA exits with columns and an unread completion */
	ASSERT_EQ(0, queue_dealloc(self->c, 0, 32, 0));
	exits(&self->c);
	EXPECT_EQ(512, tmem_free_columns(self->a));
	ASSERT_EQ(0, queue_alloc(self->a, 512, 0));
	exits(&self->a);
}

TEST_F(tmem_queue, p5_an_exit_grants_to_queued_calls)
{
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	exits(&self->a);
	EXPECT_EQ(0, finish(self->b));
}

/* --- pairs: with a call of the peer that is queued, or that blocks ---------- */

TEST_F(tmem_queue, p12_both_of_a_pair_from_one_thread)
{
	struct accmem_cta_completion p, q;

	ASSERT_EQ(0, queue_alloc(self->p, 128, 1));
	EXPECT_EQ(-EAGAIN, take(self->p, &p));
	ASSERT_EQ(0, queue_alloc(self->q, 128, 2));
	ASSERT_EQ(0, take(self->p, &p));
	ASSERT_EQ(0, take(self->q, &q));
	EXPECT_EQ(1, p.user_data);
	EXPECT_EQ(2, q.user_data);
	EXPECT_EQ(0, p.result);
	EXPECT_EQ(0, q.result);
	EXPECT_EQ(p.address, q.address);
	ASSERT_EQ(0, queue_dealloc(self->q, q.address, 128, 0));
	EXPECT_EQ(0, events(self->q));
	ASSERT_EQ(0, queue_dealloc(self->p, p.address, 128, 0));
	EXPECT_EQ(0, finish(self->q));
	EXPECT_EQ(0, finish(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->q));
}

/* Peers that do not wait never meet; by a queued call they do, from one thread. */
TEST_F(tmem_queue, p12_peers_that_do_not_wait_meet_by_a_queued_call)
{
	uint32_t at, other;

	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->p, &at, 64));
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->q, &other, 64));
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->p, &at, 64));
	EXPECT_EQ(0, events(self->p) | events(self->q));
	ASSERT_EQ(0, queue_alloc(self->p, 64, 0));
	EXPECT_EQ(POLLIN, events(self->q));
	EXPECT_EQ(0, tcgen05_try_alloc(self->q, &other, 64));
	EXPECT_EQ(0, finish(self->p));
}

TEST_F(tmem_queue, p12_a_queued_one_with_a_blocking_one)
{
	struct accmem_cta_completion done;
	struct tmem_call blocked;
	uint32_t at;

	/* the queued call comes first */
	ASSERT_EQ(0, queue_alloc(self->p, 64, 0));
	ASSERT_EQ(0, tcgen05_alloc(self->q, &at, 64));
	ASSERT_EQ(0, take(self->p, &done));
	EXPECT_EQ(at, done.address);
	ASSERT_EQ(0, queue_dealloc(self->p, at, 64, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->q, at, 64));
	EXPECT_EQ(0, finish(self->p));
	/* the blocking call comes first */
	ASSERT_TRUE(tmem_start_alloc(&blocked, self->p, 64));
	ASSERT_EQ(0, queue_alloc(self->q, 64, 0));
	ASSERT_EQ(0, tmem_finish(&blocked));
	ASSERT_EQ(0, finish(self->q));
	ASSERT_TRUE(tmem_start(&blocked, self->p, TMEM_DEALLOC, blocked.address,
			       64));
	ASSERT_EQ(0, queue_dealloc(self->q, blocked.address, 64, 0));
	EXPECT_EQ(0, tmem_finish(&blocked));
	EXPECT_EQ(0, finish(self->q));
}

TEST_F(tmem_queue, p12_the_exit_of_the_peer_ends_it)
{
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	exits(&self->q);
	EXPECT_EQ(POLLIN | POLLHUP, events(self->p));
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(-EPIPE, queue_alloc(self->p, 32, 0));
}

/* The exit of the peer also ends the queued call of the peer. */
TEST_F(tmem_queue, p12_the_exit_of_a_peer_that_has_joined)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->w, &at, 512));
	ASSERT_EQ(0, queue_alloc(self->p, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	exits(&self->q);
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->p));
}

/* --- all at once ---------------------------------------------------------- */

struct churner {
	pthread_t thread;
	struct tcgen05_cta *cta;
	uint64_t seed;
	unsigned int rounds;
	int ret;
};

/* queues calls, with deadlines or not, cancels some, and checks the completions */
static void *churn(void *argument)
{
	static const uint32_t columns = 128;
	struct churner *c = argument;
	struct accmem_cta_completion done;
	struct pollfd p = { .fd = tcgen05_fd(c->cta), .events = POLLIN };
	unsigned int i, how;

	for (i = 0; i < c->rounds && !c->ret; i++) {
		how = accmem_random(&c->seed) % 4;
		c->ret = queue_alloc_until(c->cta, columns, i,
					   how == 1 ? tmem_now() + 200000 : 0);
		if (c->ret == -ETIMEDOUT) {
			c->ret = 0;
			continue;
		}
		if (how == 2)
			cancel(c->cta);
		if (poll(&p, 1, TMEM_PATIENCE_MS) != 1 ||
		    take(c->cta, &done) || done.user_data != i)
			c->ret = -1;
		else if (!done.result)
			c->ret = tcgen05_dealloc(c->cta, done.address, columns);
		else if (done.result !=
			 (how == 1 ? -ETIMEDOUT : how == 2 ? -ECANCELED : 0))
			c->ret = done.result;
	}
	return NULL;
}

TEST_F(tmem_queue, a_storm_leaves_nothing)
{
	enum { THREADS = 6 };
	struct churner c[THREADS];
	uint64_t seed = accmem_seed();
	int i;

	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	for (i = 0; i < THREADS; i++) {
		c[i] = (struct churner){ .cta = tmem_single(self->ctx, 0),
					 .seed = seed + i,
					 .rounds = accmem_scale(200) };
		fcntl(tcgen05_fd(c[i].cta), F_SETFL, O_NONBLOCK);
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, churn, &c[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(c[i].thread, NULL);
		EXPECT_EQ(0, c[i].ret);
		EXPECT_EQ(0, tmem_state(c[i].cta));
		tcgen05_exit(c[i].cta);
	}
	EXPECT_EQ(512, tmem_free_columns(self->a));
	EXPECT_EQ(0, accmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
}

ACCMEM_HARNESS_MAIN
