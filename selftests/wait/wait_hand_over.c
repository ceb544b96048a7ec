// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC that waits for memory, and is given what somebody frees as it is: when it is,
 * and when it has to try as any request does.
 */
#include "wait_util.h"
#include "stream_util.h"

#define GRANULE 4096ull

WAIT_FIXTURE(wait_hand_over)

TEST_F(wait_hand_over, what_is_freed_in_its_size_goes_to_the_first)
{
	int64_t handed = waiting(variant->path, "handed_over");
	int64_t in_vain;
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	in_vain = waiting(variant->path, "in_vain");
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	EXPECT_EQ(handed + 1, waiting(variant->path, "handed_over"));
	EXPECT_EQ(in_vain, waiting(variant->path, "in_vain"));
	EXPECT_EQ(PIECE, accmem_charged(self->fd));
	EXPECT_EQ((PIECES - 1) * PIECE, accmem_charged(self->other));
	EXPECT_EQ(PIECE, w.a.footprint);
	EXPECT_EQ(1, w.a.nr_runs);
	EXPECT_EQ(-1, check_at(self->fd, w.a.address, 0, w.a.footprint, 0));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
	EXPECT_EQ(0, accmem_charged(self->fd));
}

/* Here it would be another's, were it free for a moment. */
TEST_F(wait_hand_over, nobody_gets_it_in_between)
{
	struct waiter w[PIECES] = {};
	struct accmem_alloc a;
	int i;

	for (i = 0; i < PIECES; i++) {
		ASSERT_TRUE(put_asleep(&w[i], variant->path, self->fd, PIECE,
				       i + 1));
	}
	for (i = 0; i < PIECES; i++) {
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[i].address));
		EXPECT_EQ(-ENOMEM,
			  accmem_alloc_bytes(self->other, PIECE, 0, &a));
	}
	for (i = 0; i < PIECES; i++) {
		EXPECT_EQ(0, waiter_end(&w[i]));
	}
	EXPECT_EQ(LEFT, accmem_charged(self->fd));
	EXPECT_EQ(0, accmem_charged(self->other));
}

TEST_F(wait_hand_over, what_was_written_to_is_cleared_first)
{
	int64_t handed = waiting(variant->path, "handed_over");
	struct waiter w = {};

	ASSERT_EQ(0, fill_at(self->other, self->a[0].address,
			     self->a[0].footprint, 1));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
	EXPECT_EQ(-1, check_at(self->fd, w.a.address, 0, w.a.footprint, 0));
}

/* Memory that only the device wrote to is handed over, and the waiter clears it. */
TEST_F(wait_hand_over, what_the_device_wrote_is_handed_over_cleared)
{
	int64_t handed = waiting(variant->path, "handed_over");
	bool kept = strcmp(variant->path, ACCMEM_DEV_EMULATED);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		/* to another account, and to the one that wrote it */
		int fd = i ? self->other : self->fd;
		struct waiter w = {};

		ASSERT_EQ(0, device_fill_at(self->other, self->a[i].address,
					    self->a[i].footprint, 1));
		ASSERT_TRUE(put_asleep(&w, variant->path, fd, PIECE, 1));
		ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[i].address));
		EXPECT_EQ(handed + kept * (i + 1),
			  waiting(variant->path, "handed_over"));
		EXPECT_EQ(-1, check_at(fd, w.a.address, 0, w.a.footprint, 0));
	}
}

TEST_F(wait_hand_over, another_size_is_not)
{
	int64_t handed = waiting(variant->path, "handed_over");
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE - 4096, 1));
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
	EXPECT_EQ(PIECE - GRANULE, w.a.footprint);
}

/* who has to be placed somewhere, or populated */
TEST_F(wait_hand_over, a_request_that_says_more_than_a_size_is_not)
{
	static const uint32_t flags[] = { ACCMEM_ALLOC_POPULATE,
					  ACCMEM_ALLOC_TOP_DOWN };
	int64_t handed = waiting(variant->path, "handed_over");
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		struct waiter w = { .flags = flags[i] };

		ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
		ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[i].address));
		EXPECT_EQ(flags[i], w.a.flags & flags[i]);
	}
	EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
}

TEST_F(wait_hand_over, the_first_is_not_passed_by_it)
{
	int64_t handed = waiting(variant->path, "handed_over");
	int64_t passes = waiting(variant->path, "bypasses");
	struct waiter large = {}, w = {};

	ASSERT_TRUE(put_asleep(&large, variant->path, self->fd, 2 * PIECE, 1));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 2));
	/* it passes as anybody may, and that is counted */
	ASSERT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
	EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
	EXPECT_EQ(passes + 1, waiting(variant->path, "bypasses"));
	EXPECT_EQ(0, waiter_end_by_close(&large, &self->other));
}

TEST_F(wait_hand_over, a_limit_holds)
{
	int64_t handed = waiting(variant->path, "handed_over");
	struct accmem_alloc a;
	struct waiter w = {};

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
	EXPECT_EQ(PIECE, accmem_charged(self->fd));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(0, waiter_end(&w));
}

/* Where folios have owners it has all of its folio, or gets nothing of it. */
TEST_F(wait_hand_over, a_folio_goes_whole)
{
	bool owned = !strcmp(variant->path, ACCMEM_DEV_PHYS);
	int64_t handed = waiting(variant->path, "handed_over");
	struct accmem_alloc a, b;
	struct waiter w = {};
	uint64_t left;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, GRANULE, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, GRANULE, 0, &b));
	left = accmem_free_now(self->other);
	if (!owned)
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, left, 0, &w.a));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, GRANULE, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	if (owned) {
		EXPECT_FALSE(waiter_is_done(&w, 20));
		EXPECT_EQ(handed, waiting(variant->path, "handed_over"));
		ASSERT_EQ(0, accmem_ioctl_free(self->other, b.address));
	}
	EXPECT_EQ(0, waiter_end(&w));
	EXPECT_EQ(handed + 1, waiting(variant->path, "handed_over"));
	EXPECT_EQ(-1, check_at(self->fd, w.a.address, 0, w.a.footprint, 0));
	if (owned) {
		/* the rest of the folio is its own context's from here on */
		EXPECT_EQ(PIECE, accmem_charged(self->fd));
		EXPECT_EQ(-ENOMEM,
			  accmem_alloc_bytes(self->other, GRANULE, 0, &a));
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd, GRANULE, 0, &a));
	}
}

/* What is freed behind a stream's back goes to nobody before its position. */
TEST_F(wait_hand_over, what_is_pending_goes_when_it_is_due)
{
	int64_t handed = waiting(variant->path, "handed_over");
	struct waiter w = {};
	int stream = stream_created(self->other);

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_EQ(0, stream_free(self->other, self->a[0].address, stream, 1));
	EXPECT_FALSE(waiter_is_done(&w, 20));
	ASSERT_EQ(0, stream_signal(stream, 1));
	EXPECT_EQ(0, waiter_end(&w));
	EXPECT_EQ(handed + 1, waiting(variant->path, "handed_over"));
	close(stream);
}

WAIT_MAIN
