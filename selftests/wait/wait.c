// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC with ACCMEM_ALLOC_WAIT: what ends the wait, when it ends, and which requests
 * fail at once.
 */
#include "wait_util.h"

#define WAITERS 8
#define STORM_USER 12344

WAIT_FIXTURE(wait)

TEST_F(wait, a_free_serves_a_waiter_with_one_wake_up)
{
	struct waiter w = {};
	int64_t wakeups, in_vain;

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	wakeups = waiting(variant->path, "wakeups");
	in_vain = waiting(variant->path, "in_vain");
	EXPECT_FALSE(waiter_is_done(&w, 50));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	EXPECT_EQ(PIECE, w.a.footprint);
	EXPECT_EQ(wakeups + 1, waiting(variant->path, "wakeups"));
	EXPECT_EQ(in_vain, waiting(variant->path, "in_vain"));
	/* QUERY returns the flags of the buffer; WAIT is a flag of the call */
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_query(self->fd, w.a.address, &q));
	EXPECT_EQ(0, q.alloc_flags);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
}

/*
 * While a waiter is counted, FREE of the same context bypasses the cache, although only
 * that context could use a cached buffer.
 */
TEST_F(wait, a_free_of_another_thread_of_its_own)
{
	struct accmem_alloc small;
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->other, PIECE, 1));
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	/* two neighbours are freed one after the other */
	ASSERT_TRUE(put_asleep(&w, variant->path, self->other, 2 * PIECE, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[4].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[5].address));
	/* and the slab pages of small buffers are freed */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, w.a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, 64, 0, &small));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->other, 2 * PIECE, 1));
	EXPECT_EQ(0, waiter_serve(&w, self->other, small.address));
}

/* One waiter gets memory, and one reaches its deadline. */
TEST_F(wait, trace_events)
{
	const uint64_t length = PIECE - 4096;
	struct waiter w = {};
	struct accmem_alloc a;
	char text[64];

	ASSERT_TRUE(accmem_trace_start());
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, length, 1));
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	ASSERT_EQ(-ETIMEDOUT,
		  alloc_wait(self->fd, PIECE, in_ms(self->fd, 2000), &a));
	ASSERT_TRUE(accmem_trace_stop());

	snprintf(text, sizeof(text), "length=%llu ",
		 (unsigned long long)length);
	EXPECT_EQ(1, accmem_trace_count("accmem_wait", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wake", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wait_end", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wait_end", "error=0", NULL, 0));
	EXPECT_EQ(2, accmem_trace_count("accmem_wait", "accmem", NULL, 0));
	EXPECT_EQ(1,
		  accmem_trace_count("accmem_wait_end", "error=-110", NULL, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
}

TEST_F(wait, there_is_no_wait_where_there_is_memory)
{
	int64_t waits = waiting(variant->path, "waits");
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, alloc_wait(self->fd, PIECE, FOREVER, &a));
	EXPECT_EQ(waits, waiting(variant->path, "waits"));
}

TEST_F(wait, a_deadline_ends_it_and_not_before)
{
	uint64_t deadline = in_ms(self->fd, 100);
	struct accmem_alloc a;

	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, PIECE, deadline, &a));
	EXPECT_LE(deadline, now_ns(self->fd));
	EXPECT_EQ(0, a.free_bytes);
	EXPECT_EQ(0, a.largest_run);
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	/* the answer says what was free */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(-ETIMEDOUT,
		  alloc_wait(self->fd, 2 * PIECE, in_ms(self->fd, 20), &a));
	EXPECT_EQ(PIECE, a.free_bytes);
	EXPECT_EQ(PIECE, a.largest_run);
}

/* the bucket that has grown by one; -1 if another change was found */
static int grown(const struct wait_times *before,
		 const struct wait_times *after)
{
	int i, bucket = -1;

	for (i = 0; i < TIMES; i++) {
		uint64_t more = after->nr[i] - before->nr[i];

		if (more > 1 || (more && bucket >= 0))
			return -1;
		if (more)
			bucket = i;
	}
	return bucket;
}

TEST_F(wait, ended_waits_are_counted_by_their_length)
{
	static const unsigned int deadlines[] = { 3, 10, 40, 100 };
	struct wait_times before, after;
	struct accmem_alloc a;
	struct waiter w = {};
	uint64_t ns, start;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
		/* a call that begins after its deadline does not wait */
		do {
			start = now_ns(self->fd);
			ASSERT_TRUE(wait_times(variant->path, &before));
			ASSERT_EQ(-ETIMEDOUT,
				  alloc_wait(self->fd, PIECE,
					     in_ms(self->fd, deadlines[i]),
					     &a));
			ASSERT_TRUE(wait_times(variant->path, &after));
		} while (!memcmp(&before, &after, sizeof(before)));
		ns = after.sum_ns - before.sum_ns;
		EXPECT_LT(0, ns);
		EXPECT_GE(now_ns(self->fd) - start, ns);
		ASSERT_LE(0, grown(&before, &after));
		EXPECT_GE(1000000ull << 2 * grown(&before, &after), ns);
		if (grown(&before, &after))
			EXPECT_LT(250000ull << 2 * grown(&before, &after), ns);
	}
	/* a call that is served */
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	usleep(20000);
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	before = after;
	ASSERT_TRUE(wait_times(variant->path, &after));
	EXPECT_LT(2, grown(&before, &after));
	EXPECT_LE(20000000, after.sum_ns - before.sum_ns);
	/* calls that do not wait */
	before = after;
	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, PIECE, 1, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
	EXPECT_EQ(0, alloc_wait(self->fd, PIECE, FOREVER, &a));
	ASSERT_TRUE(wait_times(variant->path, &after));
	EXPECT_EQ(0, memcmp(&before, &after, sizeof(before)));
}

TEST_F(wait, a_deadline_in_the_past_allows_one_try)
{
	int64_t waits = waiting(variant->path, "waits");
	struct accmem_alloc a;

	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, PIECE, 1, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, alloc_wait(self->fd, PIECE, 1, &a));
	EXPECT_EQ(waits, waiting(variant->path, "waits"));
}

TEST_F(wait, a_deadline_that_is_far_away_is_none)
{
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, ~0ull));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
}

TEST_F(wait, a_grant_and_a_deadline_at_once_lose_nothing)
{
	unsigned int i, served = 0, n = accmem_scale(40);
	struct waiter w = {};

	for (i = 0; i < n; i++) {
		uint64_t deadline = in_ms(self->fd, 4);

		ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, deadline));
		while (now_ns(self->fd) < deadline - 300000)
			;
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[0].address));
		pthread_join(w.thread, NULL);
		if (!w.err) {
			served++;
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
		} else {
			ASSERT_EQ(-ETIMEDOUT, w.err);
		}
		ASSERT_EQ(0, accmem_drain(self->fd));
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
						&self->a[0]));
	}
	TH_LOG("%u of %u served", served, n);
}

TEST_F(wait, what_can_never_fit_fails_at_once)
{
	struct accmem_alloc a;

	EXPECT_EQ(-ENOMEM, alloc_wait(self->fd, self->info.capacity + 4096,
				      FOREVER, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(4)));
	EXPECT_EQ(-EDQUOT, alloc_wait(self->fd, MIB(6), FOREVER, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

static int wait_at(int fd, uint64_t address)
{
	struct accmem_alloc a = {
		.length = PIECE,
		.flags = ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_FIXED,
		.address = address,
		.deadline_ns = in_ms(fd, 2000),
	};

	return accmem_ioctl_alloc(fd, &a);
}

/* The request fails at once also when the queue is not empty. */
TEST_F(wait, an_address_that_cannot_be_had_fails_at_once)
{
	uint64_t end = self->info.address_base + self->info.address_span;
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	EXPECT_EQ(-EEXIST, wait_at(self->other, self->a[0].address));
	EXPECT_EQ(-EINVAL, wait_at(self->other, self->a[0].address + 64));
	EXPECT_EQ(-EINVAL, wait_at(self->other, end - KIB(4)));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

TEST_F(wait, bad_input)
{
	struct accmem_alloc a = { .size = sizeof(a),
				  .length = 4096,
				  .deadline_ns = 1 };

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, &a));
	EXPECT_EQ(-EINVAL, alloc_wait(self->fd, 0, FOREVER, &a));
	/* a structure of the first version has no deadline: it waits for ever */
	a = (struct accmem_alloc){
		.size = offsetof(struct accmem_alloc, deadline_ns),
		.length = PIECE,
		.flags = ACCMEM_ALLOC_WAIT,
	};
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, &a));
}

#define MOST 256

TEST_F(wait, a_user_may_have_so_many)
{
	struct waiter *w = calloc(MOST, sizeof(*w));
	struct accmem_alloc a;
	int i;

	ASSERT_NE(NULL, w);
	accmem_catch(SIGUSR1, 0);
	for (i = 0; i < MOST; i++)
		ASSERT_TRUE(waiter_start(&w[i], self->fd, PIECE, FOREVER));
	while (waiting(variant->path, "waiting") != MOST)
		usleep(1000);
	EXPECT_EQ(-EAGAIN, alloc_wait(self->fd, PIECE, FOREVER, &a));
	/* an ALLOC without WAIT does not count */
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	while (waiting(variant->path, "waiting")) {
		for (i = 0; i < MOST; i++)
			if (!atomic_load(&w[i].done))
				pthread_kill(w[i].thread, SIGUSR1);
		usleep(1000);
	}
	for (i = 0; i < MOST; i++) {
		EXPECT_EQ(-EINTR, waiter_end(&w[i]));
	}
	free(w);
}

struct storm {
	int fd;
	uint64_t seed;
	unsigned int rounds;
	atomic_int *stop;
	int bad;
};

static void *storm_main(void *arg)
{
	struct storm *s = arg;
	struct accmem_alloc a;
	unsigned int i;
	int err;

	for (i = 0; i < s->rounds && !s->bad; i++) {
		uint64_t length = 1 + accmem_random(&s->seed) % (3 * PIECE);

		if (accmem_random(&s->seed) % 4 == 0)
			length = 1 + accmem_random(&s->seed) % 8192;
		err = accmem_random(&s->seed) % 8 ?
			      alloc_wait(s->fd, length,
					 accmem_random(&s->seed) % 2 ?
						 0 :
						 in_ms(s->fd, 5),
					 &a) :
			      accmem_alloc_bytes(s->fd, length, 0, &a);
		if (err && err != -ETIMEDOUT && err != -ENOMEM && err != -EINTR)
			s->bad = err;
		if (err)
			continue;
		if (accmem_random(&s->seed) % 4 == 0)
			usleep(accmem_random(&s->seed) % 500);
		if (accmem_ioctl_free(s->fd, a.address))
			s->bad = -EIO;
	}
	return NULL;
}

TEST_F(wait, storm)
{
	uint64_t seed = accmem_seed();
	struct storm s[WAITERS] = {};
	pthread_t threads[WAITERS];
	/* unused reservations of a user postpone those of later tests */
	int shared = opened_by(variant->path, STORM_USER);
	unsigned int i, j;

	TH_LOG("seed %llu", (unsigned long long)seed);
	accmem_catch(SIGUSR1, SA_RESTART);
	accmem_catch(SIGUSR2, 0);
	for (i = 0; i < PIECES / 2; i++)
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[i].address));
	for (i = 0; i < WAITERS; i++) {
		s[i].fd = i % 2 ? shared : opened_by(variant->path, STORM_USER);
		s[i].seed = seed + i;
		s[i].rounds = accmem_scale(60);
		ASSERT_EQ(0,
			  pthread_create(&threads[i], NULL, storm_main, &s[i]));
	}
	for (j = 0; j < accmem_scale(100); j++) {
		pthread_kill(threads[accmem_random(&seed) % WAITERS],
			     accmem_random(&seed) % 4 ? SIGUSR1 : SIGUSR2);
		usleep(1000);
	}
	for (i = 0; i < WAITERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, s[i].bad);
		if (s[i].fd != shared)
			close(s[i].fd);
	}
	close(shared);
}

/* The waiter fails whether it waits for memory or for a limit. */
TEST_F(wait, a_limit_that_becomes_too_small)
{
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 2 * PIECE, 1));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	EXPECT_EQ(-EDQUOT, waiter_end(&w));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 2 * PIECE));
	ASSERT_TRUE(waiter_start_in(&w, variant->path, self->fd, 2 * PIECE,
				    "limited", 1));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	EXPECT_EQ(-EDQUOT, waiter_end(&w));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

WAIT_MAIN
