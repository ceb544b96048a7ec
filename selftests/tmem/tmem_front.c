// SPDX-License-Identifier: GPL-2.0
/*
 * The parts of the tcgen05 front-end that are more than an ioctl: calls of one thread
 * for a whole warp, owners of columns, queued calls, windows and clusters.
 */
#include <accmem_pool.h>
#include <string.h>

#include "tmem_util.h"

#define LANES TCGEN05_WARP_LANES
#define ALL 0xffffffffu

FIXTURE(tmem_front)
{
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b; /* on SM 0 */
	struct tcgen05_warp *warp; /* a warp of a */
	uint32_t *destinations[LANES], addresses[LANES], columns[LANES], at;
};

/* all lanes ask for 64 columns, with the destination at */
FIXTURE_SETUP(tmem_front)
{
	int i;

	self->ctx = tmem_open(2, 0, 0, 0);
	ASSERT_NE(NULL, self->ctx);
	self->a = tmem_single(self->ctx, 0);
	self->b = tmem_single(self->ctx, 0);
	ASSERT_TRUE(self->a && self->b);
	ASSERT_EQ(0, tcgen05_warp_create(self->a, LANES, &self->warp));
	for (i = 0; i < LANES; i++) {
		self->destinations[i] = &self->at;
		self->columns[i] = 64;
	}
}

FIXTURE_TEARDOWN(tmem_front)
{
	tcgen05_warp_destroy(self->warp);
	tcgen05_exit(self->a);
	tcgen05_exit(self->b);
	accmem_close(self->ctx);
}

/* accmem_last_error() names the rule. EAGAIN is an ordinary result, and leaves it alone. */
TEST_F(tmem_front, errors_have_words)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	EXPECT_EQ(-EDOM, tcgen05_alloc(self->b, &at, 48));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "alloc of 48 columns: "));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "P7"));
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "P7"));
	EXPECT_EQ(-EACCES, tcgen05_dealloc(self->b, 0, 512));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "dealloc of 512"));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "P3"));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, at, 512));
	EXPECT_EQ(-ESRCH,
		  tcgen05_warp_alloc_all(self->warp, 1, self->destinations,
					 self->columns));
	EXPECT_NE(NULL, strstr(accmem_last_error(), "a lane has left"));
}

/* --- a whole warp from one thread ----------------------------------------- */

TEST_F(tmem_front, p14_one_thread_calls_for_all_lanes)
{
	int i;

	ASSERT_EQ(0, tcgen05_warp_alloc_all(self->warp, ALL, self->destinations,
					    self->columns));
	EXPECT_EQ(512 - 64, tmem_free_columns(self->a));
	for (i = 0; i < LANES; i++)
		self->addresses[i] = self->at;
	ASSERT_EQ(0, tcgen05_warp_dealloc_all(self->warp, ALL, self->addresses,
					      self->columns));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	/* errors of the call itself */
	EXPECT_EQ(-ENOENT, tcgen05_warp_dealloc_all(self->warp, ALL,
						    self->addresses,
						    self->columns));
	EXPECT_EQ(0, tcgen05_warp_relinquish_all(self->warp, ALL));
	EXPECT_EQ(-EPERM, tcgen05_warp_alloc_all(self->warp, ALL,
						 self->destinations,
						 self->columns));
}

TEST_F(tmem_front, p15_operands_of_one_thread_that_differ)
{
	uint32_t other;
	int odd;

	for (odd = 0; odd < LANES; odd++) {
		self->columns[odd] = 32;
		EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc_all(self->warp, ALL,
							  self->destinations,
							  self->columns));
		EXPECT_EQ(-EILSEQ, tcgen05_warp_dealloc_all(self->warp, ALL,
							    self->addresses,
							    self->columns));
		EXPECT_EQ(-EILSEQ,
			  tcgen05_warp_queue_alloc_all(self->warp, ALL,
						       self->columns, 0, 0));
		EXPECT_EQ(-EILSEQ,
			  tcgen05_warp_queue_dealloc_all(self->warp, ALL,
							 self->addresses,
							 self->columns, 0, 0));
		self->columns[odd] = 64;
		self->addresses[odd] = 32;
		EXPECT_EQ(-EILSEQ, tcgen05_warp_dealloc_all(self->warp, ALL,
							    self->addresses,
							    self->columns));
		EXPECT_EQ(-EILSEQ,
			  tcgen05_warp_queue_dealloc_all(self->warp, ALL,
							 self->addresses,
							 self->columns, 0, 0));
		self->addresses[odd] = 0;
		self->destinations[odd] = &other;
		EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc_all(self->warp, ALL,
							  self->destinations,
							  self->columns));
		self->destinations[odd] = &self->at;
	}
	EXPECT_EQ(512, tmem_free_columns(self->a));
	EXPECT_EQ(0, tmem_state(self->a));
}

/* The operands of an inactive lane are ignored. */
TEST_F(tmem_front, p16_a_lane_that_is_not_active)
{
	int i;

	for (i = 0; i < LANES; i++) {
		EXPECT_EQ(-ESRCH, tcgen05_warp_alloc_all(self->warp,
							 ALL & ~(1u << i),
							 self->destinations,
							 self->columns));
		self->columns[i] = 7;
		EXPECT_EQ(-ESRCH, tcgen05_warp_alloc_all(self->warp,
							 ALL & ~(1u << i),
							 self->destinations,
							 self->columns));
		self->columns[i] = 64;
	}
	EXPECT_EQ(-ESRCH, tcgen05_warp_dealloc_all(self->warp, 1,
						   self->addresses,
						   self->columns));
	EXPECT_EQ(-ESRCH, tcgen05_warp_queue_alloc_all(self->warp, 3,
						       self->columns, 0, 0));
	EXPECT_EQ(-ESRCH, tcgen05_warp_relinquish_all(self->warp, ALL >> 1));
	/* the active lanes disagree: this error comes first */
	self->columns[0] = 32;
	EXPECT_EQ(-EILSEQ, tcgen05_warp_alloc_all(self->warp, 3,
						  self->destinations,
						  self->columns));
	EXPECT_EQ(512, tmem_free_columns(self->a));
	EXPECT_EQ(0, tmem_state(self->a));
}

TEST_F(tmem_front, p16_a_lane_that_has_left)
{
	tcgen05_warp_leave(self->warp, 5);
	EXPECT_EQ(-ESRCH, tcgen05_warp_alloc_all(self->warp, ALL,
						 self->destinations,
						 self->columns));
	EXPECT_EQ(-ESRCH, tcgen05_warp_alloc_all(self->warp, ALL & ~(1u << 5),
						 self->destinations,
						 self->columns));
	EXPECT_EQ(512, tmem_free_columns(self->a));
}

TEST_F(tmem_front, p16_only_lanes_that_the_warp_has)
{
	struct tcgen05_warp *warp;

	ASSERT_EQ(0, tcgen05_warp_create(self->b, 4, &warp));
	EXPECT_EQ(-EINVAL, tcgen05_warp_alloc_all(warp, 0, self->destinations,
						  self->columns));
	EXPECT_EQ(-EINVAL, tcgen05_warp_alloc_all(warp, 0x1f,
						  self->destinations,
						  self->columns));
	EXPECT_EQ(-EINVAL, tcgen05_warp_alloc_all(warp, ALL, self->destinations,
						  self->columns));
	EXPECT_EQ(0, tcgen05_warp_alloc_all(warp, 0xf, self->destinations,
					    self->columns));
	tcgen05_warp_destroy(warp);
}

struct lane {
	struct tcgen05_warp *warp;
	uint32_t at;
	pid_t tid;
	int ret;
};

static void *call_as_lane_0(void *argument)
{
	struct lane *lane = argument;

	__atomic_store_n(&lane->tid, gettid(), __ATOMIC_RELEASE);
	lane->ret = tcgen05_warp_alloc(lane->warp, 0, &lane->at, 32);
	return NULL;
}

/* A call for all lanes fails while a lane is in a call of its own. */
TEST_F(tmem_front, p14_not_while_lanes_are_in_a_call)
{
	struct lane lane = { .ret = 1 };
	struct tcgen05_warp *warp;
	pthread_t thread;

	ASSERT_EQ(0, tcgen05_warp_create(self->b, 2, &warp));
	lane.warp = warp;
	ASSERT_EQ(0, pthread_create(&thread, NULL, call_as_lane_0, &lane));
	ASSERT_TRUE(tmem_until_thread_sleeps(&lane.tid));
	EXPECT_EQ(-EBUSY, tcgen05_warp_alloc_all(warp, 3, self->destinations,
						 self->columns));
	EXPECT_EQ(0, tcgen05_warp_alloc(warp, 1, &lane.at, 32));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, lane.ret);
	self->columns[0] = 32;
	self->columns[1] = 32;
	EXPECT_EQ(0, tcgen05_warp_alloc_all(warp, 3, self->destinations,
					    self->columns));
	tcgen05_warp_destroy(warp);
}

TEST_F(tmem_front, p14_a_queued_call_of_all_lanes)
{
	struct accmem_cta_completion done;
	uint32_t at;

	tcgen05_warp_set_number(self->warp, 3);
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at, 512));
	ASSERT_EQ(0, tcgen05_warp_queue_alloc_all(self->warp, ALL,
						  self->columns, 0, 42));
	EXPECT_EQ(-EBUSY, tcgen05_warp_queue_alloc_all(self->warp, ALL,
						       self->columns, 0, 43));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, at, 512));
	ASSERT_EQ(0, tcgen05_next_completion(self->a, &done));
	EXPECT_EQ(42, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(0, done.address);
	ASSERT_EQ(0, tcgen05_warp_queue_dealloc_all(self->warp, ALL,
						    self->addresses,
						    self->columns, 0, 44));
	ASSERT_EQ(0, tcgen05_next_completion(self->a, &done));
	EXPECT_EQ(44, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(512, tmem_free_columns(self->a));
}

/* --- whose columns are ---------------------------------------------------- */

TEST_F(tmem_front, owners_from_the_map_page)
{
	uint64_t a = tmem_id(self->a), b = tmem_id(self->b);
	const struct accmem_tmem_map *map;
	uint32_t at, other;

	ASSERT_EQ(0, tcgen05_map(self->a, &map));
	EXPECT_EQ(0, tcgen05_owner(map, 0));
	EXPECT_EQ(TCGEN05_NOBODY, tcgen05_owners(map, a, 0, 512));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 64));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &other, 64));
	ASSERT_EQ(0, at);
	ASSERT_EQ(64, other);
	EXPECT_EQ(a, tcgen05_owner(map, 0));
	EXPECT_EQ(a, tcgen05_owner(map, 63));
	EXPECT_EQ(b, tcgen05_owner(map, 64));
	EXPECT_EQ(0, tcgen05_owner(map, 128));
	EXPECT_EQ(0, tcgen05_owner(map, 512));
	EXPECT_EQ(0, tcgen05_owner(map, 2048));
	EXPECT_EQ(0, tcgen05_owner(map, ~0u));
	EXPECT_EQ(TCGEN05_SELF, tcgen05_owners(map, a, 0, 64));
	EXPECT_EQ(TCGEN05_SELF, tcgen05_owners(map, a, 63, 1));
	EXPECT_EQ(TCGEN05_SELF | TCGEN05_OTHER,
		  tcgen05_owners(map, a, 63, 2));
	EXPECT_EQ(TCGEN05_OTHER, tcgen05_owners(map, b, 0, 64));
	EXPECT_EQ(TCGEN05_SELF | TCGEN05_OTHER | TCGEN05_NOBODY,
		  tcgen05_owners(map, a, 0, 512));
	EXPECT_EQ(TCGEN05_NOBODY, tcgen05_owners(map, a, 511, 1));
	/* the range is not inside the SM */
	EXPECT_EQ(0, tcgen05_owners(map, a, 0, 0));
	EXPECT_EQ(0, tcgen05_owners(map, a, 511, 2));
	EXPECT_EQ(0, tcgen05_owners(map, a, 512, 1));
	EXPECT_EQ(0, tcgen05_owners(map, a, ~0u, ~0u));
	/* the mapping stays valid after the exit of the CTA */
	exits(&self->a);
	EXPECT_EQ(TCGEN05_NOBODY, tcgen05_owners(map, a, 0, 64));
	closes(&self->ctx);
	EXPECT_EQ(0, tcgen05_owner(map, 64));
	tcgen05_unmap(map);
	tcgen05_unmap(NULL);
}

/* --- queued calls --------------------------------------------------------- */

TEST_F(tmem_front, a_loop_of_queued_calls)
{
	struct accmem_cta_completion done;
	int fd = eventfd(0, EFD_NONBLOCK);
	eventfd_t count;
	uint32_t at;

	ASSERT_EQ(0, fcntl(tcgen05_fd(self->b), F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-ENODATA, tcgen05_next_completion(self->b, &done));
	EXPECT_EQ(-ENOENT, tcgen05_cancel(self->b));
	EXPECT_EQ(-EBADF, tcgen05_set_eventfd(self->b, -5));
	EXPECT_EQ(-EINVAL, tcgen05_set_eventfd(self->b,
					       tcgen05_fd(self->a)));
	ASSERT_EQ(0, tcgen05_set_eventfd(self->b, fd));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	ASSERT_EQ(0, tcgen05_queue_alloc(self->b, 128, 0, 1));
	EXPECT_EQ(-EAGAIN, tcgen05_next_completion(self->b, &done));
	ASSERT_EQ(0, tcgen05_cancel(self->b));
	ASSERT_EQ(0, eventfd_read(fd, &count));
	EXPECT_EQ(1, count);
	ASSERT_EQ(0, tcgen05_next_completion(self->b, &done));
	EXPECT_EQ(-ECANCELED, done.result);
	ASSERT_EQ(0, tcgen05_queue_alloc(self->b, 128, tmem_in_ms(60000), 2));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 512));
	ASSERT_EQ(0, tcgen05_next_completion(self->b, &done));
	EXPECT_EQ(2, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(-EACCES, tcgen05_queue_dealloc(self->a, done.address, 128, 0,
						 3));
	ASSERT_EQ(0, tcgen05_queue_dealloc(self->b, done.address, 128, 0, 3));
	ASSERT_EQ(0, tcgen05_next_completion(self->b, &done));
	EXPECT_EQ(3, done.user_data);
	EXPECT_EQ(_IOC_NR(ACCMEM_IOC_CTA_DEALLOC), done.call);
	EXPECT_EQ(512, tmem_free_columns(self->b));
	close(fd);
}

/* --- windows -------------------------------------------------------------- */

TEST_F(tmem_front, p10_an_address_is_stored_inside_of_the_window_only)
{
	uint32_t words[6] = { 9, 9, 9, 9, 9, 9 };
	struct tcgen05_place place = { .launch = 1, .cta_group = 1,
				       .window = &words[1],
				       .window_length = 16 };
	struct tcgen05_cta *cta;

	ASSERT_EQ(0, tcgen05_launch(self->ctx, &place, &cta));
	EXPECT_EQ(-EFAULT, tcgen05_alloc(cta, &words[0], 32));
	EXPECT_EQ(-EFAULT, tcgen05_alloc(cta, &words[5], 32));
	EXPECT_EQ(-EFAULT, tcgen05_try_alloc(cta, &self->at, 32));
	EXPECT_EQ(0, tcgen05_alloc(cta, &words[1], 32));
	EXPECT_EQ(0, words[1]);
	EXPECT_EQ(0, tcgen05_alloc(cta, &words[4], 32));
	EXPECT_EQ(32, words[4]);
	tcgen05_exit(cta);
}

/* --- clusters ------------------------------------------------------------- */

TEST_F(tmem_front, p19_a_cluster_is_launched_as_a_whole)
{
	struct tcgen05_place places[4] = {
		{ .launch = 7, .cluster = 1, .rank = 0, .sm = 0 },
		{ .launch = 7, .cluster = 1, .rank = 1, .sm = 1 },
		{ .launch = 7, .cluster = 1, .rank = 2, .sm = 0 },
		{ .launch = 7, .cluster = 1, .rank = 3, .sm = 1 },
	};
	struct tcgen05_cta *ctas[4];
	struct accmem_cta_query query;
	uint32_t at;
	int i;

	for (i = 0; i < 4; i++)
		places[i].cta_group = 2;
	ASSERT_EQ(0, tcgen05_launch_cluster(self->ctx, places, 4, ctas));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, tcgen05_query(ctas[i], &query));
		EXPECT_EQ(i, query.rank);
		EXPECT_EQ(i % 2, query.sm);
		EXPECT_EQ(ACCMEM_CTA_PEER, query.state);
	}
	EXPECT_EQ(0, tmem_pair_alloc(ctas[0], ctas[1], 64, &at));
	for (i = 0; i < 4; i++)
		tcgen05_exit(ctas[i]);
}

TEST_F(tmem_front, p19_all_or_none_of_a_cluster)
{
	struct tcgen05_place places[2] = {
		{ .launch = 7, .rank = 0, .sm = 0, .cta_group = 2 },
		{ .launch = 7, .rank = 1, .sm = 9, .cta_group = 2 },
	};
	struct tcgen05_cta *ctas[65];
	int64_t before = accmem_fdinfo(accmem_fd(self->ctx), "tmem-ctas");

	EXPECT_EQ(-ENXIO, tcgen05_launch_cluster(self->ctx, places, 2, ctas));
	EXPECT_EQ(-EINVAL, tcgen05_launch_cluster(self->ctx, places, 0, ctas));
	EXPECT_EQ(-EINVAL, tcgen05_launch_cluster(self->ctx, places, 65, ctas));
	places[1].sm = 1;
	places[1].cluster = 1;
	EXPECT_EQ(-EINVAL, tcgen05_launch_cluster(self->ctx, places, 2, ctas));
	EXPECT_EQ(before, accmem_fdinfo(accmem_fd(self->ctx), "tmem-ctas"));
	places[1].cluster = 0;
	EXPECT_EQ(0, tcgen05_launch_cluster(self->ctx, places, 2, ctas));
	tcgen05_exit(ctas[0]);
	tcgen05_exit(ctas[1]);
}

TEST_F(tmem_front, strict_is_a_setting_of_the_context)
{
	struct tcgen05_config config = { .nr_sms = 1, .strict = 1 };
	struct accmem_context *ctx;

	ASSERT_EQ(0, accmem_open(NULL, &ctx));
	EXPECT_EQ(0, tcgen05_setup(ctx, &config));
	EXPECT_EQ(-EBUSY, tcgen05_setup(ctx, &config));
	accmem_close(ctx);
}

ACCMEM_HARNESS_MAIN
