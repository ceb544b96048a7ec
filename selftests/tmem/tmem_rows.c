// SPDX-License-Identifier: GPL-2.0
/*
 * The rows P1 to P20 of Documentation/conformance.rst, each through the tcgen05
 * front-end of libaccmem. The name of a test begins with the id of its row.
 */
#include "tmem_util.h"

TMEM_FIXTURE(tmem, 64, 0, 0)

TEST_F(tmem, p1_alloc_stores_the_address)
{
	uint32_t at[3] = { 0xdeadbeef, 0xdeadbeef, 0xdeadbeef };

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at[1], 128));
	EXPECT_EQ(0, at[1]);
	EXPECT_EQ(0xdeadbeef, at[0]);
	EXPECT_EQ(0xdeadbeef, at[2]);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at[1], 64));
	EXPECT_EQ(128, at[1]);
	EXPECT_EQ(512 - 192, tmem_free_columns(self->a));
}

TEST_F(tmem, p2_alloc_waits_until_it_can_be_met)
{
	struct tmem_call call;
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 256));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	EXPECT_EQ(1, call.ret);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 256));
	EXPECT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(0, call.address);
	EXPECT_EQ(0, tmem_free_columns(self->a));
}

TEST_F(tmem, p3_dealloc_takes_what_an_alloc_of_the_cta_returned)
{
	uint32_t at, other;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 128));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &other, 32));
	EXPECT_EQ(-ENOENT, tcgen05_dealloc(self->a, at + 256, 128));
	EXPECT_EQ(-EADDRNOTAVAIL, tcgen05_dealloc(self->a, at + 32, 128));
	EXPECT_EQ(-EADDRNOTAVAIL, tcgen05_dealloc(self->a, at + 1, 128));
	EXPECT_EQ(-EACCES, tcgen05_dealloc(self->a, other, 32));
	EXPECT_EQ(-ENXIO, tcgen05_dealloc(self->a, at + 512, 128));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, at, 128));
	EXPECT_EQ(-ENOENT, tcgen05_dealloc(self->a, at, 128));
}

TEST_F(tmem, p4_dealloc_of_a_pair_is_collective)
{
	struct tmem_call call;
	uint32_t at;

	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
	ASSERT_TRUE(tmem_start(&call, self->p, TMEM_DEALLOC, at, 64));
	EXPECT_EQ(512 - 64, tmem_free_columns(self->p));
	EXPECT_EQ(0, tcgen05_dealloc(self->q, at, 64));
	EXPECT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(512, tmem_free_columns(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->q));
}

TEST_F(tmem, p5_exit_with_columns_is_reported_and_they_come_back)
{
	int tries, log = accmem_log_open();
	struct tcgen05_cta *c;
	bool reported = false;
	uint32_t at;

	ASSERT_LE(0, log);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
	/* messages are rate-limited: other tests may have used up the limit */
	for (tries = 0; tries < 15 && !reported; tries++) {
		ASSERT_LE(0, lseek(log, 0, SEEK_END));
		c = tmem_single(self->ctx, 0);
		ASSERT_NE(NULL, c);
		ASSERT_EQ(0, tcgen05_alloc(c, &at, 64));
		EXPECT_EQ(512 - 96, tmem_free_columns(self->a));
		tcgen05_exit(c);
		EXPECT_EQ(512 - 32, tmem_free_columns(self->a));
		reported = accmem_log_has(log, "P5: exits with 64 columns");
		if (!reported)
			sleep(1);
	}
	EXPECT_TRUE(reported);
	close(log);
}

TEST_F(tmem, p6_the_unit_is_32_columns)
{
	uint32_t at, i;

	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
		EXPECT_EQ(i * 32, tcgen05_column(at));
	}
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 32));
}

TEST_F(tmem, p7_columns_are_a_power_of_two_from_32_to_512)
{
	static const uint32_t bad[] = { 0,   1,	  16,  31,  33,	 48,
					96,  384, 513, 768, 1024, 0x80000000 };
	uint32_t at, n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EDOM, tcgen05_alloc(self->a, &at, bad[i]));
	for (n = 512; n >= 32; n /= 2) {
		ASSERT_EQ(0, tcgen05_alloc(self->a, &at, n));
		ASSERT_EQ(0, tcgen05_dealloc(self->a, at, n));
	}
}

TEST_F(tmem, p8_columns_do_not_grow)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 64));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 64));
	EXPECT_EQ(-ERANGE, tcgen05_alloc(self->a, &at, 128));
	EXPECT_EQ(0, tcgen05_alloc(self->a, &at, 64));
	EXPECT_EQ(0, tcgen05_alloc(self->b, &at, 128));
}

static void *try_alloc(void *argument)
{
	uint32_t at;

	return (void *)(intptr_t)tcgen05_alloc(argument, &at, 32);
}

TEST_F(tmem, p9_no_alloc_after_relinquish_by_any_thread)
{
	pthread_t thread;
	uint32_t at, late;
	void *ret;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(self->a));
	EXPECT_EQ(-EPERM, tcgen05_alloc(self->a, &late, 32));
	ASSERT_EQ(0, pthread_create(&thread, NULL, try_alloc, self->a));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(-EPERM, (intptr_t)ret);
	EXPECT_EQ(0, tcgen05_dealloc(self->a, at, 32));
	EXPECT_EQ(0, tcgen05_alloc(self->b, &late, 32));
}

TEST_F(tmem, p10_a_bad_destination_allocates_nothing)
{
	long page = sysconf(_SC_PAGESIZE);
	uint32_t *bad, at;

	bad = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, bad);
	EXPECT_EQ(-EFAULT, tcgen05_alloc(self->a, bad, 32));
	ASSERT_EQ(0, munmap(bad, page));
	EXPECT_EQ(-EFAULT, tcgen05_alloc(self->a, bad, 32));
	EXPECT_EQ(-EFAULT, tcgen05_alloc(self->a, (uint32_t *)-4096l, 32));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	/* the call does not count as an alloc (P8), and the peer gets no columns */
	EXPECT_EQ(0, tcgen05_alloc(self->a, &at, 64));
	EXPECT_EQ(-EFAULT, tcgen05_alloc(self->p, bad, 32));
	EXPECT_EQ(512, tmem_free_columns(self->q));
}

TEST_F(tmem, p11_one_warp_of_a_cta_calls_at_a_time)
{
	struct tmem_call call;
	uint32_t at, other;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &other, 32));
	EXPECT_EQ(-EBUSY, tcgen05_dealloc(self->b, at, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 32));
	EXPECT_EQ(0, tmem_finish(&call));
}

TEST_F(tmem, p12_a_pair_allocates_together)
{
	struct tmem_call call;
	uint32_t at;

	/* the first peer waits for the other, without columns */
	ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
	EXPECT_EQ(512, tmem_free_columns(self->p));
	ASSERT_EQ(0, tcgen05_alloc(self->q, &at, 64));
	ASSERT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(at, call.address);
	/* a peer that never comes before the deadline */
	EXPECT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->p, &at, 64,
						  tmem_in_ms(20)));
	/* a peer that exits */
	ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
	exits(&self->q);
	EXPECT_EQ(-EPIPE, tmem_finish(&call));
	EXPECT_EQ(-EPIPE, tcgen05_alloc(self->p, &at, 64));
}

TEST_F(tmem, p13_one_cta_group_a_launch)
{
	struct tcgen05_place place = { .launch = 1, .rank = 9, .sm = 1,
				       .cta_group = 2 };
	struct tcgen05_cta *c = NULL;

	EXPECT_EQ(-EPROTOTYPE, tcgen05_launch(self->ctx, &place, &c));
	place.launch = 2;
	place.cta_group = 1;
	EXPECT_EQ(-EPROTOTYPE, tcgen05_launch(self->ctx, &place, &c));
	place.cta_group = 2;
	EXPECT_EQ(0, tcgen05_launch(self->ctx, &place, &c));
	tcgen05_exit(c);
	place.cta_group = 3;
	EXPECT_EQ(-EINVAL, tcgen05_launch(self->ctx, &place, &c));
}

TEST_F(tmem, p13_an_instruction_has_the_group_of_its_launch)
{
	uint32_t at, more;

	EXPECT_EQ(-EPROTOTYPE, tcgen05_alloc_group(self->a, 2, &at, 64, 0));
	ASSERT_EQ(0, tcgen05_alloc_group(self->a, 1, &at, 64, 0));
	EXPECT_EQ(-EPROTOTYPE, tcgen05_dealloc_group(self->a, 2, at, 64, 0));
	EXPECT_EQ(-EPROTOTYPE, tcgen05_relinquish_group(self->a, 2));
	EXPECT_EQ(3, accmem_fdinfo(tcgen05_fd(self->a), "tmem-misuses"));
	EXPECT_EQ(0, tcgen05_alloc(self->a, &more, 32));
	EXPECT_EQ(0, tcgen05_dealloc_group(self->a, 1, at, 64, 0));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, more, 32));
	EXPECT_EQ(-EPROTOTYPE, tcgen05_alloc_group(self->p, 1, &at, 64, 0));
	EXPECT_EQ(0, tcgen05_relinquish_group(self->a, 1));
}

/* --- the warp-collective form --- */

struct lane {
	pthread_t thread;
	pid_t tid;
	struct tcgen05_warp *warp;
	unsigned int lane;
	uint32_t *destination;
	uint32_t columns;
	int ret;
	bool *all_in; /* set before the last lane calls */
	bool early; /* its call returned before all_in was set */
};

static void *call_lane(void *argument)
{
	struct lane *l = argument;

	__atomic_store_n(&l->tid, gettid(), __ATOMIC_RELEASE);
	l->ret = tcgen05_warp_alloc(l->warp, l->lane, l->destination,
				    l->columns);
	l->early = l->all_in && !__atomic_load_n(l->all_in, __ATOMIC_ACQUIRE);
	return NULL;
}

/* starts a lane and waits until it sleeps in the call */
static bool start_lane(struct lane *l, unsigned int lane,
		       struct tcgen05_warp *warp, uint32_t *destination,
		       uint32_t columns, bool *all_in)
{
	*l = (struct lane){ .warp = warp,
			    .lane = lane,
			    .destination = destination,
			    .columns = columns,
			    .all_in = all_in };
	return !pthread_create(&l->thread, NULL, call_lane, l) &&
	       tmem_until_thread_sleeps(&l->tid);
}

/* starts lanes 0 to nr - 1, which ask for 64 columns */
static bool start_lanes(struct lane *lanes, unsigned int nr,
			struct tcgen05_warp *warp, uint32_t *destination,
			bool *all_in)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!start_lane(&lanes[i], i, warp, destination, 64, all_in))
			return false;
	return true;
}

/* waits for the end of their calls; true if all have this result */
static bool lanes_end(struct lane *lanes, unsigned int nr, int ret)
{
	bool same = true;

	for (; nr--; lanes++) {
		pthread_join(lanes->thread, NULL);
		same &= lanes->ret == ret && !lanes->early;
	}
	return same;
}

TEST_F(tmem, p14_a_call_completes_for_the_whole_warp)
{
	struct lane lanes[32];
	struct tcgen05_warp *warp;
	bool all_in = false;
	uint32_t at;

	ASSERT_EQ(0, tcgen05_warp_create(self->a, 32, &warp));
	ASSERT_TRUE(start_lanes(lanes, 31, warp, &at, &all_in));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	__atomic_store_n(&all_in, true, __ATOMIC_RELEASE);
	EXPECT_EQ(0, tcgen05_warp_alloc(warp, 31, &at, 64));
	EXPECT_TRUE(lanes_end(lanes, 31, 0));
	/* the warp allocates once */
	EXPECT_EQ(512 - 64, tmem_free_columns(self->a));
	tcgen05_warp_destroy(warp);
}

TEST_F(tmem, p15_lanes_that_disagree_are_diagnosed)
{
	struct lane lanes[3];
	struct tcgen05_warp *warp;
	uint32_t at;

	ASSERT_EQ(0, tcgen05_warp_create(self->a, 4, &warp));
	ASSERT_TRUE(start_lanes(lanes, 3, warp, &at, NULL));
	EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc(warp, 3, &at, 32));
	EXPECT_TRUE(lanes_end(lanes, 3, -EILSEQ));
	ASSERT_TRUE(start_lanes(lanes, 3, warp, &at, NULL));
	EXPECT_EQ(-EILSEQ, tcgen05_warp_dealloc(warp, 3, 0, 64));
	EXPECT_TRUE(lanes_end(lanes, 3, -EILSEQ));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	tcgen05_warp_destroy(warp);
}

/* Each lane in turn is the one that differs. */
TEST_F(tmem, p15_all_lanes_are_told_whatever_their_order)
{
	struct lane lanes[3];
	struct tcgen05_warp *warp;
	unsigned int odd, i;
	uint32_t at;

	ASSERT_EQ(0, tcgen05_warp_create(self->a, 4, &warp));
	for (odd = 0; odd < 4; odd++) {
		for (i = 0; i < 3; i++)
			ASSERT_TRUE(start_lane(&lanes[i], i, warp, &at,
					       i == odd ? 32 : 64, NULL));
		EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc(warp, 3, &at,
						      odd == 3 ? 32 : 64));
		EXPECT_TRUE(lanes_end(lanes, 3, -EILSEQ));
	}
	EXPECT_EQ(512, tmem_free_columns(self->a));
	/* the next call of the warp works */
	ASSERT_TRUE(start_lanes(lanes, 3, warp, &at, NULL));
	EXPECT_EQ(0, tcgen05_warp_alloc(warp, 3, &at, 64));
	EXPECT_TRUE(lanes_end(lanes, 3, 0));
	tcgen05_warp_destroy(warp);
}

/* A lane leaves that has not called. */
TEST_F(tmem, p15_all_lanes_are_told_when_one_has_left)
{
	struct lane lanes[3];
	struct tcgen05_warp *warp;
	unsigned int last, i;
	uint32_t at;

	/* lane 3 leaves before the last lane comes, or after */
	for (last = 2; last <= 3; last++) {
		ASSERT_EQ(0, tcgen05_warp_create(self->a, 4, &warp));
		for (i = 0; i < last; i++)
			ASSERT_TRUE(start_lane(&lanes[i], i, warp, &at,
					       i ? 64 : 32, NULL));
		tcgen05_warp_leave(warp, 3);
		for (; i < 3; i++)
			EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc(warp, i, &at, 64));
		EXPECT_TRUE(lanes_end(lanes, last, -EILSEQ));
		EXPECT_EQ(-ESRCH, tcgen05_warp_alloc(warp, 3, &at, 64));
		EXPECT_EQ(-ESRCH, tcgen05_warp_alloc(warp, 0, &at, 64));
		tcgen05_warp_destroy(warp);
	}
	EXPECT_EQ(512, tmem_free_columns(self->a));
}

TEST_F(tmem, p16_a_missing_lane_is_diagnosed)
{
	struct lane lanes[3];
	struct tcgen05_warp *warp;
	uint32_t at;

	ASSERT_EQ(0, tcgen05_warp_create(self->a, 4, &warp));
	ASSERT_TRUE(start_lanes(lanes, 3, warp, &at, NULL));
	tcgen05_warp_leave(warp, 3);
	EXPECT_TRUE(lanes_end(lanes, 3, -ESRCH));
	EXPECT_EQ(-ESRCH, tcgen05_warp_alloc(warp, 0, &at, 64));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	tcgen05_warp_destroy(warp);
}

TEST_F(tmem, p17_the_address_is_there_when_the_call_returns)
{
	uint32_t *at, first;
	int i;

	/* so that address 0, which a call might leave by mistake, is not a valid result */
	ASSERT_EQ(0, tcgen05_alloc(self->a, &first, 32));
	ASSERT_EQ(0, first);
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	for (i = 0; i < 100; i++) {
		*at = ~0u;
		ASSERT_EQ(0, tcgen05_alloc(self->a, at, 32));
		ASSERT_EQ(32, *at);
		ASSERT_EQ(0, tcgen05_dealloc(self->a, 32, 32));
	}
	munmap(at, 4096);
}

TEST_F(tmem, p18_dealloc_takes_the_columns_of_the_alloc)
{
	uint32_t at, next;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 128));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &next, 128));
	EXPECT_EQ(-EMSGSIZE, tcgen05_dealloc(self->a, at, 64));
	EXPECT_EQ(-EMSGSIZE, tcgen05_dealloc(self->a, at, 256));
	EXPECT_EQ(-EMSGSIZE, tcgen05_dealloc(self->a, at, 0));
	EXPECT_EQ(512 - 256, tmem_free_columns(self->a));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, at, 128));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, next, 128));
}

TEST_F(tmem, p19_peers_and_addresses)
{
	struct tcgen05_place place = { .launch = 2, .sm = 1, .cta_group = 2 };
	struct tcgen05_cta *c = NULL, *d = NULL;
	uint32_t at;

	/* ranks 0 and 1 are peers, and so are 6 and 7, but not 7 and 8 */
	EXPECT_EQ(-EEXIST, tcgen05_launch(self->ctx, &place, &c));
	place.rank = 7;
	ASSERT_EQ(0, tcgen05_launch(self->ctx, &place, &c));
	EXPECT_FALSE(tmem_state(c) & ACCMEM_CTA_PEER);
	place.rank = 8;
	ASSERT_EQ(0, tcgen05_launch(self->ctx, &place, &d));
	EXPECT_FALSE(tmem_state(c) & ACCMEM_CTA_PEER);
	tcgen05_exit(d);
	place.rank = 6;
	EXPECT_EQ(-EADDRINUSE, tcgen05_launch(self->ctx, &place, &d));
	place.sm = 0;
	ASSERT_EQ(0, tcgen05_launch(self->ctx, &place, &d));
	EXPECT_TRUE(tmem_state(c) & ACCMEM_CTA_PEER);
	tcgen05_exit(c);
	tcgen05_exit(d);
	/* lane << 16 or column */
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 32));
	EXPECT_EQ(32, tcgen05_column(at));
	EXPECT_EQ(0, tcgen05_lane(at));
	EXPECT_EQ(-ENXIO, tcgen05_dealloc(self->a, at | 1 << 16, 32));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, at, 32));
}

TEST_F(tmem, p20_dealloc_before_the_peers_alloc_has_completed)
{
	struct tmem_call call;
	uint32_t at;

	/* the peer has nothing to free; then it has an older allocation */
	ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
	EXPECT_EQ(-EPROTO, tcgen05_dealloc(self->q, 0, 64));
	EXPECT_EQ(-EPROTO, tmem_finish(&call));
	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
	ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
	EXPECT_EQ(-EPROTO, tcgen05_dealloc(self->q, at, 64));
	EXPECT_EQ(-EPROTO, tmem_finish(&call));
	/* the alloc comes while the peer is in dealloc */
	ASSERT_TRUE(tmem_start(&call, self->p, TMEM_DEALLOC, at, 64));
	EXPECT_EQ(-EPROTO, tcgen05_alloc(self->q, &at, 64));
	EXPECT_EQ(-EPROTO, tmem_finish(&call));
}

ACCMEM_HARNESS_MAIN
