// SPDX-License-Identifier: GPL-2.0
/*
 * What is taken ahead of a buffer that grows in small steps: it is free to all who
 * ask, and to the limits, and it is the buffer's only when it has grown. Every test
 * ends with all memory free.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"
#include "stream_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define STEP KIB(64)
#define RESERVE MIB(64)
#define MAX_BUFS 16384

FIXTURE(ahead)
{
	int fd, other;
	struct accmem_info info;
	struct accmem_alloc a;
};

ACCMEM_VARIANTS(ahead);

/* a buffer of 1 MiB and one step, which leaves the rest of 2 MiB ahead of it */
FIXTURE_SETUP(ahead)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	self->other = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->other);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->a = (struct accmem_alloc){ .length = MIB(1),
					 .flags = ACCMEM_ALLOC_RESIZABLE,
					 .reserve = RESERVE };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
	ASSERT_EQ(0,
		  accmem_ioctl_realloc(self->fd, self->a.address, MIB(1) + STEP,
				       ACCMEM_REALLOC_IN_PLACE, NULL));
}

FIXTURE_TEARDOWN(ahead)
{
	close(self->fd);
	close(self->other);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static int grow_to(int fd, const struct accmem_alloc *a, uint64_t length)
{
	return accmem_ioctl_realloc(fd, a->address, length,
				    ACCMEM_REALLOC_IN_PLACE, NULL);
}

/* A step that takes nothing from the allocator shows that the other tests test it. */
TEST_F(ahead, is_there)
{
	struct accmem_info before, after;

	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &before));
	ASSERT_EQ(0, grow_to(self->fd, &self->a, MIB(1) + 2 * STEP));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &after));
	EXPECT_EQ(STEP, before.free_bytes - after.free_bytes);
	/* it is behind the buffer: the largest run does not grow by it */
	EXPECT_GE(before.largest_run, after.largest_run);
}

TEST_F(ahead, is_free_to_who_asks)
{
	struct accmem_info info;
	uint64_t length;

	for (length = MIB(1) + STEP; length <= MIB(5); length += STEP) {
		ASSERT_EQ(0, grow_to(self->fd, &self->a, length));
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
		ASSERT_EQ(self->info.free_bytes - length, info.free_bytes);
		self->a.footprint = length;
		ASSERT_EQ(accmem_charge_of(&info, &self->a, 1),
			  info.context_bytes);
	}
}

/* to the last byte; a folio's rest is its owner's alone */
TEST_F(ahead, all_of_the_device_can_be_had)
{
	int fd = accmem_owns_folios(&self->info) ? self->fd : self->other;
	struct accmem_alloc *bufs = calloc(MAX_BUFS, sizeof(*bufs));
	struct accmem_info info;

	ASSERT_NE(NULL, bufs);
	EXPECT_LT(0, accmem_take_all(fd, ACCMEM_CACHE_WB, bufs, MAX_BUFS));
	EXPECT_EQ(0, accmem_ioctl_info(fd, &info));
	EXPECT_EQ(0, info.free_bytes);
	free(bufs);
	/* and the buffer cannot grow then */
	EXPECT_EQ(-ENOMEM, grow_to(self->fd, &self->a, MIB(1) + 2 * STEP));
}

/* To whoever may wait, it is there at once. */
TEST_F(ahead, is_not_waited_for)
{
	int fd = accmem_owns_folios(&self->info) ? self->fd : self->other;
	struct accmem_alloc *bufs = calloc(MAX_BUFS, sizeof(*bufs));
	struct accmem_alloc a = { .length = STEP, .flags = ACCMEM_ALLOC_WAIT };
	struct accmem_info info;
	uint64_t left;

	ASSERT_NE(NULL, bufs);
	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	/* all but what is ahead, and a little less than that */
	left = info.free_bytes - (MIB(1) - STEP);
	while (left && info.largest_run) {
		ASSERT_EQ(0, accmem_alloc_bytes(fd,
						left < info.largest_run ?
							left :
							info.largest_run,
						0, bufs));
		left -= bufs->footprint;
		ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	}
	for (; info.free_bytes; info.free_bytes -= STEP)
		ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
	free(bufs);
}

TEST_F(ahead, goes_with_what_is_resized)
{
	struct accmem_info info;

	ASSERT_EQ(0, grow_to(self->fd, &self->a, KIB(512)));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(self->info.free_bytes - KIB(512), info.free_bytes);
	ASSERT_EQ(0, grow_to(self->fd, &self->a, KIB(512) + STEP));
	ASSERT_EQ(0, grow_to(self->fd, &self->a, MIB(32)));
	ASSERT_EQ(0, grow_to(self->fd, &self->a, MIB(32) + STEP));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(self->info.free_bytes, info.free_bytes);
	EXPECT_EQ(0, info.context_bytes);
}

/* What waits for a fence may outlive its file for long; what is ahead of it does not. */
TEST_F(ahead, does_not_outlive_its_file)
{
	struct accmem_alloc *bufs = calloc(MAX_BUFS, sizeof(*bufs));
	int fences = fence_device(), fd, file;
	struct accmem_info info;
	uint32_t id;

	ASSERT_NE(NULL, bufs);
	ASSERT_LE(0, fences);
	fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, fd);
	file = fence_create(fences, &id);
	ASSERT_LE(0, file);
	self->a.length = MIB(1);
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &self->a));
	ASSERT_EQ(0, grow_to(fd, &self->a, MIB(1) + STEP));
	ASSERT_EQ(0, fence_free(fd, self->a.address, file));
	close(fd);
	/* a folio's rest is the ended context's as long as it has a part */
	if (!accmem_owns_folios(&self->info)) {
		EXPECT_LT(0, accmem_take_all(self->other, ACCMEM_CACHE_WB, bufs,
					     MAX_BUFS));
		EXPECT_EQ(0, accmem_ioctl_info(self->other, &info));
		EXPECT_EQ(0, info.free_bytes);
	}
	EXPECT_EQ(0, fence_signal(fences, id, 0, 0));
	close(file);
	close(fences);
	free(bufs);
}

/* more of them than a context keeps something ahead of */
TEST_F(ahead, of_many_buffers)
{
	struct accmem_alloc bufs[40];
	struct accmem_realloc r;
	struct accmem_info info;
	uint64_t steps = MIB(1) / STEP;
	unsigned int i, s;

	for (i = 0; i < ARRAY_SIZE(bufs); i++) {
		bufs[i] = (struct accmem_alloc){
			.length = STEP,
			.flags = ACCMEM_ALLOC_RESIZABLE,
			.reserve = MIB(1),
		};
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &bufs[i]));
	}
	for (s = 2; s <= steps; s++) {
		for (i = 0; i < ARRAY_SIZE(bufs); i++) {
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd,
							  bufs[i].address,
							  s * STEP, 0, &r));
			bufs[i].address = r.address;
		}
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(self->info.free_bytes - MIB(1) - STEP -
			  ARRAY_SIZE(bufs) * MIB(1),
		  info.free_bytes);
}

/* 4 MiB, of which the buffer has a part */
static int reaches_its_limit(void *arg)
{
	/* so much is free in one piece beside the buffer of the test */
	struct accmem_alloc b, a = { .length = MIB(1),
				     .flags = ACCMEM_ALLOC_RESIZABLE,
				     .reserve = MIB(4) };
	uint64_t rest = MIB(3) - STEP;
	struct accmem_info info;
	int fd;

	ACCMEM_MUST((fd = accmem_dev_open(arg, O_RDWR)) >= 0);
	ACCMEM_MUST(!accmem_ioctl_info(fd, &info));
	if (accmem_owns_folios(&info))
		rest = MIB(2);
	ACCMEM_MUST(!accmem_ioctl_alloc(fd, &a));
	ACCMEM_MUST(!grow_to(fd, &a, MIB(1) + STEP));
	ACCMEM_MUST(!accmem_alloc_bytes(fd, rest, ACCMEM_ALLOC_TOP_DOWN, &b));
	if (!accmem_owns_folios(&info))
		ACCMEM_MUST(grow_to(fd, &a, MIB(1) + 2 * STEP) == -EDQUOT);
	ACCMEM_MUST(!accmem_ioctl_free(fd, b.address));
	ACCMEM_MUST(!grow_to(fd, &a, MIB(1) + 2 * STEP));
	return 0;
}

/* What is ahead is charged, and never the reason that something is refused. */
TEST_F(ahead, does_not_count_against_limits)
{
	int64_t saved = accmem_param("max_bytes_per_context");

	ASSERT_LE(0, saved);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(4)));
	EXPECT_EQ(0, accmem_in_child(reaches_its_limit, (void *)variant->path));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", saved));
}

/*
 * While others find no memory and look for it everywhere, and while its own context
 * wants room, a buffer grows and shrinks by steps: what it holds stays, what it gets
 * is zero, and nothing is counted twice.
 */
struct storm {
	int fd;
	struct accmem_alloc request;
	_Atomic unsigned int granted;
	_Atomic bool stop;
};

static void *storm_ask(void *arg)
{
	struct storm *s = arg;
	struct accmem_alloc a;

	while (!s->stop) {
		a = s->request;
		if (accmem_ioctl_alloc(s->fd, &a))
			continue;
		s->granted++;
		accmem_ioctl_free(s->fd, a.address);
	}
	return NULL;
}

/* the last step before @length is zero, and the one before that is what it was */
static int64_t check_step(int fd, uint64_t address, uint64_t length)
{
	uint64_t at = length - STEP;
	struct accmem_query q;
	int64_t bad;
	char *p;

	if (accmem_ioctl_query(fd, address, &q))
		return -2;
	p = accmem_mmap_at(NULL, fd, q.mmap_offset, length, RW, MAP_SHARED);
	if (!p)
		return -3;
	bad = accmem_first_nonzero(p + at, STEP);
	accmem_fill(p + at, STEP, at);
	if (bad == -1 && at > MIB(1) + STEP)
		bad = accmem_check(p + at - STEP, STEP, at - STEP);
	munmap(p, length);
	return bad;
}

TEST_F(ahead, is_taken_away_at_any_moment)
{
	/* less than is free, and more than there is of whole pages of 2 MiB */
	struct storm s[] = {
		{ .fd = self->other,
		  .request = { .length = self->info.capacity - MIB(2),
			       .page_policy = ACCMEM_PAGE_HUGE_ONLY } },
		{ .fd = self->fd,
		  .request = { .length = MIB(4),
			       .flags = ACCMEM_ALLOC_TOP_DOWN } },
	};
	unsigned int i, round, rounds = accmem_scale(40);
	pthread_t threads[ARRAY_SIZE(s)];
	struct accmem_alloc granule;
	uint64_t length;

	ASSERT_EQ(0, accmem_alloc_bytes(self->other, KIB(4),
					ACCMEM_ALLOC_TOP_DOWN, &granule));
	for (i = 0; i < ARRAY_SIZE(s); i++)
		ASSERT_EQ(0,
			  pthread_create(&threads[i], NULL, storm_ask, &s[i]));
	for (round = 0; round < rounds; round++) {
		for (length = MIB(1) + 2 * STEP; length < MIB(2);
		     length += STEP) {
			ASSERT_EQ(0, grow_to(self->fd, &self->a, length));
			ASSERT_EQ(-1, check_step(self->fd, self->a.address,
						 length));
		}
		ASSERT_EQ(0, grow_to(self->fd, &self->a, MIB(1) + STEP));
	}
	for (i = 0; i < ARRAY_SIZE(s); i++) {
		s[i].stop = true;
		pthread_join(threads[i], NULL);
	}
	EXPECT_EQ(0, s[0].granted);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

ACCMEM_HARNESS_MAIN
