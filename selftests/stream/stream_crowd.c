// SPDX-License-Identifier: GPL-2.0
/*
 * Many streams and contexts that wait for one fence of another driver. That driver
 * signals the fence with its lock held and interrupts disabled. The fence calls each
 * stream and each context once, so the time does not grow with the number of frees and
 * positions.
 */
#include "stream_util.h"

#define MANY 20000

STREAM_FIXTURE(stream_crowd)

/* Two fences take turns, so that each import is a step of its own. */
TEST_F(stream_crowd, fences_that_are_imported_often_call_once)
{
	unsigned int i, n = accmem_scale(MANY);
	uint32_t ids[2];
	int files[2];

	for (i = 0; i < 2; i++)
		files[i] = fence_created(self->fences, &ids[i]);
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, stream_import(self->stream, i + 1, files[i % 2]));
	EXPECT_EQ(1, fence_callbacks(self->fences, ids[0]));
	EXPECT_EQ(0, fence_callbacks(self->fences, ids[1]));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, fence_signal(self->fences, ids[i], 0, 0));
	EXPECT_EQ(0, stream_settle(self->stream, n));
	for (i = 0; i < 2; i++)
		close(files[i]);
}

TEST_F(stream_crowd, a_fence_that_many_frees_wait_for_calls_once)
{
	unsigned int i, n = accmem_scale(MANY);
	struct accmem_alloc a;
	uint32_t id;
	int file = fence_created(self->fences, &id);

	for (i = 0; i < n; i++) {
		a = stream_allocate(self->fd, 64);
		ASSERT_EQ(0, fence_free(self->fd, a.address, file));
	}
	EXPECT_EQ(1, fence_callbacks(self->fences, id));
	EXPECT_EQ(n, accmem_sysfs(variant->path, "buffers"));
	ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "buffers", 0, 30000));
	close(file);
}

/* Frees of several contexts wait for several fences. Each is freed with its own fence. */
TEST_F(stream_crowd, t10_frees_at_several_fences_come_with_their_own)
{
	enum { CONTEXTS = 3, FENCES = 5 };
	unsigned int i, n = 20 * FENCES;
	int fds[CONTEXTS], files[FENCES];
	struct accmem_alloc a;
	uint32_t ids[FENCES];

	for (i = 0; i < CONTEXTS; i++)
		fds[i] = accmem_opened(variant->path);
	for (i = 0; i < FENCES; i++) {
		files[i] = fence_created(self->fences, &ids[i]);
	}
	for (i = 0; i < n * CONTEXTS; i++) {
		a = stream_allocate(fds[i % CONTEXTS], 4096);
		ASSERT_EQ(0, fence_free(fds[i % CONTEXTS], a.address,
					files[i / CONTEXTS % FENCES]));
	}
	for (i = 0; i < FENCES; i++) {
		EXPECT_EQ((FENCES - i) * n / FENCES * CONTEXTS,
			  accmem_sysfs(variant->path, "buffers"));
		ASSERT_EQ(0, fence_signal(self->fences, ids[i * 3 % FENCES], 0,
					  i % 2 ? TEST_FENCE_IRQ : 0));
		EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "buffers",
						(FENCES - i - 1) * n / FENCES *
							CONTEXTS,
						30000));
	}
	for (i = 0; i < CONTEXTS; i++)
		close(fds[i]);
	for (i = 0; i < FENCES; i++)
		close(files[i]);
}

/* A position is reached when its fence and all earlier fences have signalled. */
TEST_F(stream_crowd, positions_of_two_fences_that_take_turns_come_in_order)
{
	unsigned int i, n = 100;
	int files[2];
	uint32_t ids[2];

	for (i = 0; i < 2; i++) {
		files[i] = fence_created(self->fences, &ids[i]);
	}
	for (i = 0; i < n; i++)
		ASSERT_EQ(0, stream_import(self->stream, i + 1, files[i % 2]));
	ASSERT_EQ(0, fence_signal(self->fences, ids[1], -EIO, 0));
	EXPECT_EQ(0, stream_query(self->stream).reached);
	EXPECT_EQ(-EAGAIN, stream_try(self->stream, 1));
	/* neither this fence nor one that has signalled before reaches the last position */
	ASSERT_EQ(0, stream_import(self->stream, n + 1, files[1]));
	EXPECT_EQ(0, stream_query(self->stream).reached);
	ASSERT_EQ(0, fence_signal(self->fences, ids[0], 0, TEST_FENCE_IRQ));
	EXPECT_EQ(0, stream_settle(self->stream, n + 1));
	EXPECT_EQ(-EIO, stream_query(self->stream).error);
	/* a later import of a signalled fence is reached at once */
	ASSERT_EQ(0, stream_import(self->stream, n + 2, files[0]));
	EXPECT_EQ(n + 2, stream_query(self->stream).reached);
	close(files[0]);
	close(files[1]);
}

ACCMEM_HARNESS_MAIN
