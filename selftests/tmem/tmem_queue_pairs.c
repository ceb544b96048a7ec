// SPDX-License-Identifier: GPL-2.0
/*
 * Queued calls of pairs. A queued call meets the call of the peer, whether that is
 * queued or blocks. The tests end such calls in each possible way.
 */
#include "tmem_queue_util.h"

TMEM_QUEUE_FIXTURE(tmem_queue_pairs)

TEST_F(tmem_queue_pairs, p12_both_of_a_pair_from_one_thread)
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

TEST_F(tmem_queue_pairs, p12_a_queued_one_with_a_blocking_one)
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

TEST_F(tmem_queue_pairs, p12_the_exit_of_the_peer_ends_it)
{
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	exits(&self->q);
	EXPECT_EQ(POLLIN | POLLHUP, events(self->p));
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(-EPIPE, queue_alloc(self->p, 32, 0));
}

/* The exit of the peer also ends the queued call of the peer. */
TEST_F(tmem_queue_pairs, p12_the_exit_of_a_peer_that_has_joined)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->w, &at, 512));
	ASSERT_EQ(0, queue_alloc(self->p, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	exits(&self->q);
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->p));
}

ACCMEM_HARNESS_MAIN
