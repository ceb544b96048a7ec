// SPDX-License-Identifier: GPL-2.0
/*
 * Clearing of freed memory. Either the cleaner clears it in the background, or the
 * allocation that gets dirty memory clears it first, with the help of other
 * processors. sysfs counts the bytes that each of them has cleared.
 */
#include <sched.h>
#include <sys/param.h>

#include "accmem_test.h"

#define ALL 64

struct clear_counts {
	int64_t cleared;
	int64_t late;
	int64_t helping;
};

static struct clear_counts clears_now(const char *path)
{
	return (struct clear_counts){
		.cleared = accmem_sysfs(path, "cleared_background_bytes"),
		.late = accmem_sysfs(path, "cleared_at_alloc_bytes"),
		.helping = accmem_sysfs(path, "cleared_parallel_bytes"),
	};
}

static int free_all(int fd, const struct accmem_alloc *a, int n)
{
	int err = 0;

	while (n--)
		err = accmem_ioctl_free(fd, a[n].address) ?: err;
	return err;
}

FIXTURE(clears)
{
	bool clears;
};

ACCMEM_VARIANTS(clears);

FIXTURE_SETUP(clears)
{
	self->clears = strcmp(variant->path, ACCMEM_DEV_EMULATED);
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
}

FIXTURE_TEARDOWN(clears)
{
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/*
 * A context with all memory writes to 4 MiB of it, frees everything, and allocates it
 * again. The cleaner clears the 4 MiB, and the allocation clears nothing. Untouched
 * memory becomes dirty after a second or two, so one of the tries must succeed.
 */
TEST_F(clears, who_gets_clean_memory_clears_nothing)
{
	struct clear_counts before, between, after;
	struct accmem_alloc a[64];
	int tries, n, fd;

	fd = accmem_opened(variant->path);
	for (tries = 0; tries < 10; tries++) {
		n = accmem_take_all(fd, ACCMEM_CACHE_WB, a, ARRAY_SIZE(a));
		ASSERT_LE(1, n);
		ASSERT_LE(MIB(4), a[0].footprint);
		ASSERT_EQ(0, fill_at(fd, a[0].address, MIB(4), 1));
		before = clears_now(variant->path);
		ASSERT_EQ(0, free_all(fd, a, n));
		ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "dirty_bytes", 0,
						60000));
		between = clears_now(variant->path);
		n = accmem_take_all(fd, ACCMEM_CACHE_WB, a, ARRAY_SIZE(a));
		ASSERT_LE(1, n);
		after = clears_now(variant->path);
		ASSERT_EQ(0, free_all(fd, a, n));
		EXPECT_LE(self->clears ? (int64_t)MIB(4) : 0,
			  between.cleared - before.cleared);
		EXPECT_EQ(before.late, between.late);
		if (after.late == before.late)
			break;
	}
	EXPECT_LT(tries, 10);
	close(fd);
}

/* threads beside the cleaner */
struct bystander {
	int fd;
	bool asks; /* calls INFO; else it only spins */
	bool stop;
};

static void *stand_by(void *arg)
{
	struct bystander *b = arg;
	struct accmem_info info;

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		if (b->asks)
			accmem_ioctl_info(b->fd, &info);
		else
			accmem_ms();
	}
	return NULL;
}

/* allocates @size bytes and writes to each page */
static bool make_dirty(int fd, uint64_t size, struct accmem_alloc *a)
{
	uint64_t at;
	char *p;

	if (accmem_alloc_bytes(fd, size, 0, a))
		return false;
	p = accmem_mmap_huge(fd, a, size);
	if (!p)
		return false;
	for (at = 0; at < size; at += 4096)
		p[at] = 1;
	munmap(p, size);
	return true;
}

/* the time in ms until freed memory is clean, or -1 */
static int64_t time_to_clean(int fd, const char *path,
			     const struct accmem_alloc *a)
{
	uint64_t start = accmem_ms();

	if (accmem_ioctl_free(fd, a->address) ||
	    accmem_sysfs_wait(path, "dirty_bytes", 0, 60000) != -1)
		return -1;
	return accmem_ms() - start;
}

/* the same, beside threads that call INFO or spin */
static int64_t time_to_clean_beside(int fd, const char *path, uint64_t size,
				    bool asks)
{
	struct bystander b = { .fd = fd, .asks = asks };
	struct accmem_alloc a;
	pthread_t threads[8];
	unsigned int i;
	int64_t ms;

	if (!make_dirty(fd, size, &a))
		return -1;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		if (pthread_create(&threads[i], NULL, stand_by, &b))
			return -1;
	ms = time_to_clean(fd, path, &a);
	__atomic_store_n(&b.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	return ms;
}

/*
 * The cleaner yields to INFO, but not for a tenth of a second before each chunk of 2
 * MiB. The test allows a third of that, in one of three tries, for the processor time
 * that the threads take.
 */
TEST_F(clears, who_asks_what_is_free_does_not_stop_the_cleaner)
{
	int fd = accmem_opened(variant->path);
	int64_t busy, asking, most;
	uint64_t size;
	int tries = 3;

	/* a backing without clearing takes no time */
	size = self->clears ? MIB(MIN(256, accmem_scale(1024))) : MIB(4);
	size = MIN(size, accmem_touchable(fd) / 4 * 3) & ~(MIB(2) - 1);
	do {
		busy = time_to_clean_beside(fd, variant->path, size, false);
		ASSERT_LE(0, busy);
		asking = time_to_clean_beside(fd, variant->path, size, true);
		ASSERT_LE(0, asking);
		TH_LOG("%d MiB: %d ms, beside who asks %d ms",
		       (int)(size >> 20), (int)busy, (int)asking);
		most = 3 * busy + 2000 + 30 * (int64_t)(size / MIB(2));
	} while (asking > most && --tries);
	EXPECT_LE(asking, most);
	close(fd);
}

/* An allocation clears the dirty memory that it gets, unless the cleaner was faster. */
TEST(dirty_memory_is_cleared_by_who_gets_it_at_the_latest)
{
	const char *path = ACCMEM_DEV_NOPAGES;
	struct clear_counts before, after;
	struct accmem_alloc a[64];
	int fd[2], i, n;

	for (i = 0; i < 2; i++)
		fd[i] = accmem_opened(path);
	n = accmem_take_all(fd[0], ACCMEM_CACHE_WB, a, ARRAY_SIZE(a));
	ASSERT_LE(1, n);
	ASSERT_EQ(0, fill_at(fd[0], a[0].address, MIB(4), 1));
	before = clears_now(path);
	ASSERT_EQ(0, free_all(fd[0], a, n));
	n = accmem_take_all(fd[1], ACCMEM_CACHE_WB, a, ARRAY_SIZE(a));
	ASSERT_LE(1, n);
	after = clears_now(path);
	EXPECT_LE((int64_t)MIB(4), after.cleared - before.cleared +
					   after.late - before.late);
	EXPECT_EQ(-1, check_at(fd[1], a[0].address, 0, MIB(4), 0));
	for (i = 0; i < 2; i++)
		close(fd[i]);
}

/*
 * --- help ---
 *
 * What one context had and did not touch is dirty for another at once, and the
 * cleaner does not look at it for a second.
 */

FIXTURE(clear_help)
{
	int fd[2];
	struct accmem_alloc a[ALL];
};

ACCMEM_VARIANTS_RESERVED(clear_help);

FIXTURE_SETUP(clear_help)
{
	int i;

	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
	for (i = 0; i < 2; i++)
		self->fd[i] = accmem_opened(variant->path);
}

FIXTURE_TEARDOWN(clear_help)
{
	int i;

	for (i = 0; i < 2; i++)
		close(self->fd[i]);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* @fd[0] allocates and frees all memory, then @fd[1] allocates it. */
static int take_all_dirty(const int fd[2], struct accmem_alloc *a)
{
	int n = accmem_take_all(fd[0], ACCMEM_CACHE_WB, a, ALL);
	int err;

	if (n <= 0)
		return n ?: -ENOMEM;
	err = free_all(fd[0], a, n);
	return err ?: accmem_take_all(fd[1], ACCMEM_CACHE_WB, a, ALL);
}

static bool use_processors(const cpu_set_t *set)
{
	return !sched_setaffinity(0, sizeof(*set), set);
}

/* On a busy machine no processor may be free to help, so one of the tries must succeed. */
TEST_F(clear_help, a_request_that_has_much_to_clear_gets_help)
{
	struct clear_counts before, after;
	int tries, n;

	for (tries = 0; tries < 50; tries++) {
		before = clears_now(variant->path);
		n = take_all_dirty(self->fd, self->a);
		ASSERT_LE(1, n);
		after = clears_now(variant->path);
		ASSERT_EQ(0, free_all(self->fd[1], self->a, n));
		ASSERT_LE(after.helping - before.helping,
			  after.late - before.late);
		if (after.helping > before.helping)
			break;
	}
	EXPECT_LT(tries, 50);
}

TEST_F(clear_help, who_is_kept_to_one_processor_gets_none)
{
	struct clear_counts before, after;
	cpu_set_t all, one;
	int n;

	ASSERT_EQ(0, sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	ASSERT_TRUE(use_processors(&one));
	before = clears_now(variant->path);
	n = take_all_dirty(self->fd, self->a);
	after = clears_now(variant->path);
	ASSERT_TRUE(use_processors(&all));
	ASSERT_LE(1, n);
	EXPECT_EQ(before.helping, after.helping);
	EXPECT_LT(before.late, after.late);
}

/* Each byte is cleared, also at the border between two helpers. */
TEST_F(clear_help, all_of_it_is_zero)
{
	const uint64_t size = MIB(24);
	struct accmem_alloc *a = self->a;
	int tries, turn;

	for (tries = 0; tries < 8; tries++) {
		turn = tries % 2;
		a[0] = (struct accmem_alloc){ .length = size };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd[turn], &a[0]));
		ASSERT_EQ(-1,
			  check_at(self->fd[turn], a[0].address, 0, size, 0));
		ASSERT_EQ(0, fill_at(self->fd[turn], a[0].address, size, 1));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd[turn], a[0].address));
	}
}

/* A request that is killed during clearing leaves no work item behind. */
TEST_F(clear_help, a_killed_request_leaves_all_in_order)
{
	int fd[2], tries, status;
	pid_t pid;

	for (tries = 0; tries < 10; tries++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			fd[0] = accmem_dev_open(variant->path, O_RDWR);
			fd[1] = accmem_dev_open(variant->path, O_RDWR);
			if (fd[0] < 0 || fd[1] < 0)
				_exit(1);
			take_all_dirty(fd, self->a);
			pause();
		}
		usleep(2000 + 7919 * tries);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(SIGKILL, status);
	}
}

static void *take_and_give(void *arg)
{
	const int *fd = arg;
	struct accmem_alloc a;
	unsigned int i;

	for (i = 0; i < accmem_scale(100); i++) {
		a = (struct accmem_alloc){ .length = MIB(16) };
		if (!accmem_ioctl_alloc(fd[i % 2], &a))
			accmem_ioctl_free(fd[i % 2], a.address);
	}
	return NULL;
}

/* More requests at a time than processors. */
TEST_F(clear_help, many_at_a_time)
{
	pthread_t threads[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, take_and_give,
					    self->fd));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
}

ACCMEM_HARNESS_MAIN
