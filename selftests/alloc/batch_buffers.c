// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that came in a batch: each is its own, whatever becomes of the others; and
 * whatever stops a batch half-way, nothing is lost.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batch_util.h"

BATCH_FIXTURE(batch_buffers)

/* one call each, of buffers that came together, in an order of no kind */
TEST_F(batch_buffers, buffers_of_a_batch_go_one_by_one)
{
	uint64_t seed = accmem_seed(), step = 0;
	unsigned int i, n = 64, pick, left;

	ask(self->a, n, 4096);
	ASSERT_EQ(0, ALLOC(0, n));
	for (left = n; left; left--) {
		uint64_t before = accmem_free_now(self->fd);

		pick = accmem_random(&seed) % left;
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->fd, self->a[pick].address));
		EXPECT_EQ(before + 4096, accmem_free_now(self->fd));
		EXPECT_EQ(-ENOENT,
			  accmem_ioctl_free(self->fd, self->a[pick].address));
		self->a[pick] = self->a[left - 1];
		for (i = 0; i < left - 1; i++)
			ASSERT_EQ(0, differs(self->fd, &self->a[i]));
		step++;
		/* the room is used again while others of the row are there */
		if (step % 3)
			continue;
		ask(&self->a[n], 1, 4096);
		ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, &self->a[n], 1,
						 NULL));
		self->a[left - 1] = self->a[n];
		left++;
	}
}

/* what batches give and take, mixed with single calls, is never given twice */
TEST_F(batch_buffers, no_byte_is_given_twice)
{
	uint64_t seed = accmem_seed();
	unsigned int live = 0, rounds = accmem_scale(200), i, n, pick;

	while (rounds--) {
		n = 1 + accmem_random(&seed) % 100;
		if (live + n > MAX)
			n = MAX - live;
		if (accmem_random(&seed) % 2 && n) {
			ask(&self->a[live], n,
			    4096 * (1 + accmem_random(&seed) % 3));
			ASSERT_EQ(0,
				  accmem_batch_allocs(self->fd, rounds & ATOMIC,
						      &self->a[live], n, NULL));
			live += n;
			ASSERT_FALSE(overlap(self->a, live));
			continue;
		}
		for (i = 0; i < n && live; i++) {
			pick = accmem_random(&seed) % live;
			self->f[i].address = self->a[pick].address;
			self->a[pick] = self->a[--live];
		}
		ASSERT_EQ(0, FREE(rounds & ATOMIC, i));
	}
	name(self->f, self->a, live);
	ASSERT_EQ(0, FREE(ATOMIC, live));
}

/* A mapping holds the memory of its buffer, and of no other. */
TEST_F(batch_buffers, a_mapping_holds_one_buffer)
{
	const unsigned int n = 16;
	struct accmem_alloc middle = {};
	uint64_t before;
	unsigned int i;
	char *p;

	ask(self->a, n, 8192);
	ASSERT_EQ(0, ALLOC(0, n));
	before = accmem_free_now(self->fd);
	middle.mmap_offset = self->a[7].mmap_offset;
	p = accmem_mmap(self->fd, &middle, 8192, RW);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_first_nonzero(p, 8192));
	accmem_fill(p, 8192, 7);
	EXPECT_EQ(before, accmem_free_now(self->fd));
	/* no more than the buffer */
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &middle, 3 * 4096, RW));
	EXPECT_EQ(ENXIO, errno);
	for (i = 0; i < n; i++)
		EXPECT_EQ(0, differs(self->fd, &self->a[i]));
	name(self->f, self->a, n);
	ASSERT_EQ(0, FREE(0, n));
	EXPECT_EQ(before + (n - 1) * 8192, accmem_free_now(self->fd));
	EXPECT_EQ(8192, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(-1, accmem_check(p, 8192, 7));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &middle, 8192, RW));
	EXPECT_EQ(ENXIO, errno);
	munmap(p, 8192);
}

/* each shows zeros, and what was written there, and nothing of its neighbours */
TEST_F(batch_buffers, all_buffers_of_a_batch_can_be_mapped)
{
	const unsigned int n = 40;
	struct accmem_alloc one = {};
	unsigned int i;
	char *p[40];

	ask(self->a, n, 4096);
	ASSERT_EQ(0, ALLOC(ATOMIC, n));
	for (i = 0; i < n; i++) {
		one.mmap_offset = self->a[i].mmap_offset;
		p[i] = accmem_mmap(self->fd, &one, 4096, RW);
		ASSERT_NE(NULL, p[i]);
		ASSERT_EQ(-1, accmem_first_nonzero(p[i], 4096));
		accmem_fill(p[i], 4096, i);
	}
	for (i = 0; i < n; i++) {
		EXPECT_EQ(-1, accmem_check(p[i], 4096, i));
		EXPECT_EQ(0, differs(self->fd, &self->a[i]));
		munmap(p[i], 4096);
	}
	name(self->f, self->a, n);
	ASSERT_EQ(0, FREE(ATOMIC, n));
}

/* --- threads of one context ----------------------------------------------- */

struct crowd {
	int fd;
	const char *path;
	unsigned int rounds;
	unsigned int bad;
};

static void *crowd_batches(void *arg)
{
	struct accmem_batch_alloc a[48];
	struct accmem_batch_free f[48];
	struct crowd *crowd = arg;
	unsigned int i, round;
	uint32_t done;

	for (round = 0; round < crowd->rounds; round++) {
		ask(a, 48, 4096);
		if (accmem_batch_allocs(crowd->fd, round & ATOMIC, a, 48,
					&done) ||
		    done != 48)
			__atomic_add_fetch(&crowd->bad, 1, __ATOMIC_RELAXED);
		name(f, a, 48);
		/* the others free some of them, too */
		accmem_batch_frees(crowd->fd, round / 2 & ATOMIC, f, 48, &done);
		for (i = 0; i < 48; i++)
			accmem_ioctl_free(crowd->fd, a[i].address);
	}
	return NULL;
}

/* maps, asks about and frees whatever it meets */
static void *crowd_strangers(void *arg)
{
	struct crowd *crowd = arg;
	struct accmem_info info;
	struct accmem_alloc one = {};
	struct accmem_query q;
	uint64_t seed = 1, at;
	unsigned int round;
	char *p;

	accmem_ioctl_info(crowd->fd, &info);
	for (round = 0; round < 8 * crowd->rounds; round++) {
		at = accmem_random(&seed) % 256 * 4096;
		if (info.translation == ACCMEM_TRANSLATION_MAPPED)
			at += round * 8 * 4096;
		if (accmem_ioctl_query(crowd->fd, info.address_base + at, &q))
			continue;
		one.mmap_offset = q.mmap_offset;
		p = accmem_mmap(crowd->fd, &one, 4096, RW);
		if (p) {
			accmem_try_write(p, 1);
			munmap(p, 4096);
		}
		if (round % 3 == 0)
			accmem_ioctl_free(crowd->fd, q.base);
	}
	return NULL;
}

TEST_F(batch_buffers, threads_of_one_context)
{
	struct crowd crowd = { .fd = self->fd,
			       .path = variant->path,
			       .rounds = accmem_scale(200) };
	pthread_t threads[3];
	unsigned int i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL,
					    i ? crowd_batches : crowd_strangers,
					    &crowd));
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, crowd.bad);
	/* quarantined for a moment, where another thread had it mapped */
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->info.capacity, 20000));
}

/* --- killed half-way ------------------------------------------------------ */

static void batches_for_ever(int fd, uint32_t flags, uint32_t alloc_flags)
{
	static struct accmem_batch_alloc a[MAX];
	static struct accmem_batch_free f[MAX];
	unsigned int i;

	for (;;) {
		ask(a, MAX, 4096);
		for (i = 0; i < MAX; i++)
			a[i].flags = alloc_flags;
		accmem_batch_allocs(fd, flags, a, MAX, NULL);
		name(f, a, MAX);
		accmem_batch_frees(fd, flags, f, MAX, NULL);
	}
}

/* The context lives on: whatever the dead did is freed with what they named. */
TEST_F(batch_buffers, killed_half_way)
{
	uint64_t seed = accmem_seed();
	unsigned int i, rounds = accmem_scale(24);
	pid_t pid;
	int fd;

	for (i = 0; i < rounds; i++) {
		fd = accmem_dev_open(variant->path, O_RDWR);
		ASSERT_LE(0, fd);
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			batches_for_ever(fd, i & ATOMIC,
					 i & 2 ? ACCMEM_ALLOC_POPULATE : 0);
		usleep(1000 + accmem_random(&seed) % 20000);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		EXPECT_TRUE(accmem_accounts_balance(variant->path));
		close(fd);
		ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
						self->info.capacity, 20000));
	}
}

ACCMEM_HARNESS_MAIN
