// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that allocate, map, touch, query and free at the same time, on one context
 * and on many. Each thread checks the data that it wrote; the lanes with lockdep and
 * KCSAN find the races. The tests run for a number of operations, not for a time.
 */
#include "accmem_test.h"

#define THREADS 6
#define SLOTS 8

struct worker {
	pthread_t thread;
	const char *path;
	int fd; /* a shared context, or -1 for a context of its own */
	uint64_t random;
	unsigned int ops;
	unsigned int done;
	int line; /* line of the first error */
};

struct slot {
	struct accmem_alloc a;
	char *p; /* address of the buffer in its mapping */
	uint64_t seed;
};

#define CHECK(w, condition)                              \
	do {                                             \
		if (!(condition) && !(w)->line) {        \
			(w)->line = __LINE__;            \
			printf("# %s\n", #condition);    \
		}                                        \
	} while (0)

/* unmaps all pages of the buffer's mapping */
static void unmap_slot(const struct slot *s, char *p)
{
	uint64_t before = s->a.address % 4096;

	munmap(p - before, before + s->a.length);
}

static char *map_slot(int fd, const struct slot *s, int prot)
{
	uint64_t before = s->a.address % 4096;
	char *p = accmem_mmap(fd, &s->a, before + s->a.length, prot);

	return p ? p + before : NULL;
}

static void put(struct worker *w, int fd, struct slot *s)
{
	bool first = accmem_random(&w->random) & 1;

	if (s->p) {
		CHECK(w, accmem_check(s->p, s->a.length, s->seed) == -1);
		if (first)
			unmap_slot(s, s->p);
	}
	CHECK(w, !accmem_ioctl_free(fd, s->a.address));
	if (s->p && !first) {
		CHECK(w, accmem_check(s->p, s->a.length, s->seed) == -1);
		unmap_slot(s, s->p);
	}
	memset(s, 0, sizeof(*s));
}

static void get(struct worker *w, int fd, struct slot *s)
{
	unsigned int shift = accmem_random(&w->random) % 8;
	int err;

	s->a.length = 4096u + accmem_random(&w->random) % (4096u << shift);
	s->a.length = s->a.length / 4096 * 4096;
	s->a.flags = accmem_random(&w->random) & ACCMEM_ALLOC_TOP_DOWN;
	/* small buffers share pages */
	if (accmem_random(&w->random) & 1) {
		s->a.length = 8 + accmem_random(&w->random) % 2041;
		s->a.flags = 0;
	}
	err = accmem_ioctl_alloc(fd, &s->a);
	CHECK(w, !err || err == -ENOMEM || err == -EDQUOT);
	if (err) {
		memset(s, 0, sizeof(*s));
		return;
	}
	if (accmem_random(&w->random) % 3 == 0)
		return;
	s->p = map_slot(fd, s, RW);
	CHECK(w, s->p);
	if (!s->p)
		return;
	CHECK(w, accmem_first_nonzero(s->p, s->a.length) == -1);
	s->seed = accmem_random(&w->random);
	accmem_fill(s->p, s->a.length, s->seed);
}

static void look(struct worker *w, int fd, struct slot *s)
{
	struct accmem_query q;
	struct accmem_info info;
	uint64_t at = accmem_random(&w->random) % s->a.length;
	char *p;

	switch (accmem_random(&w->random) % 4) {
	case 0:
		CHECK(w, !accmem_ioctl_query(fd, s->a.address + at, &q));
		CHECK(w, q.base == s->a.address && q.offset == at);
		break;
	case 1:
		CHECK(w, !accmem_ioctl_info(fd, &info));
		CHECK(w, info.free_bytes <= info.capacity);
		break;
	case 2:
		/* a second mapping of the same bytes */
		p = map_slot(fd, s, PROT_READ);
		CHECK(w, p);
		if (p && s->p)
			CHECK(w, accmem_check(p, s->a.length, s->seed) == -1);
		if (p)
			unmap_slot(s, p);
		break;
	default:
		if (s->p)
			madvise(s->p - s->a.address % 4096,
				s->a.address % 4096 + s->a.length,
				MADV_DONTNEED);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct slot slots[SLOTS] = { 0 };
	int fd = w->fd;
	unsigned int i;

	if (fd < 0)
		fd = accmem_dev_open(w->path, O_RDWR);
	CHECK(w, fd >= 0);
	for (w->done = 0; w->done < w->ops && !w->line; w->done++) {
		struct slot *s = &slots[accmem_random(&w->random) % SLOTS];

		if (!s->a.address)
			get(w, fd, s);
		else if (accmem_random(&w->random) % 3)
			look(w, fd, s);
		else
			put(w, fd, s);
	}
	if (w->fd < 0) {
		close(fd);
		fd = -1;
	}
	for (i = 0; i < SLOTS; i++) {
		if (fd >= 0 && slots[i].a.address)
			put(w, fd, &slots[i]);
		else if (slots[i].p)
			unmap_slot(&slots[i], slots[i].p);
	}
	return NULL;
}

FIXTURE(stress)
{
	uint64_t seed;
	struct worker workers[THREADS];
};

ACCMEM_VARIANTS(stress);

FIXTURE_SETUP(stress)
{
	self->seed = accmem_seed();
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
}

FIXTURE_TEARDOWN(stress)
{
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

static void run(struct __test_metadata *_metadata, const char *path,
		struct worker *workers, uint64_t seed, int fd)
{
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .path = path, .fd = fd,
					      .random = seed + i,
					      .ops = accmem_scale(600) };
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, work,
					    &workers[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		EXPECT_EQ(0, workers[i].line) {
			TH_LOG("thread %u, operation %u", i, workers[i].done);
		}
		EXPECT_EQ(workers[i].ops, workers[i].done);
	}
}

TEST_F(stress, one_context)
{
	int fd = accmem_opened(variant->path);

	run(_metadata, variant->path, self->workers, self->seed, fd);
	close(fd);
}

TEST_F(stress, many_contexts)
{
	run(_metadata, variant->path, self->workers, self->seed, -1);
}

/* --- races for one thing ------------------------------------------------- */

struct race {
	pthread_barrier_t start;
	int fd;
	uint64_t address;
	uint64_t offset;
	unsigned int freed, mapped, bad;
};

static void *race_free(void *arg)
{
	struct race *r = arg;

	pthread_barrier_wait(&r->start);
	if (!accmem_ioctl_free(r->fd, r->address))
		__atomic_add_fetch(&r->freed, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *race_map(void *arg)
{
	struct race *r = arg;
	uint64_t value = 1;
	char *p;

	pthread_barrier_wait(&r->start);
	p = accmem_mmap_at(NULL, r->fd, r->offset, 8192, RW, MAP_SHARED);
	if (!p)
		return NULL;
	/* a mapping works and is clean, also when the buffer was freed */
	__atomic_add_fetch(&r->mapped, 1, __ATOMIC_RELAXED);
	if (accmem_try_read(p, &value) || value)
		__atomic_add_fetch(&r->bad, 1, __ATOMIC_RELAXED);
	munmap(p, 8192);
	return NULL;
}

/* Many threads free one buffer, and one of them succeeds. */
TEST_F(stress, free_once)
{
	pthread_t threads[4];
	unsigned int round, i;
	struct accmem_alloc a;
	struct race r = { 0 };

	r.fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, r.fd);
	for (round = 0; round < accmem_scale(100); round++) {
		ASSERT_EQ(0, accmem_alloc_bytes(r.fd, 8192, 0, &a));
		r.address = a.address;
		r.freed = 0;
		pthread_barrier_init(&r.start, NULL, ARRAY_SIZE(threads));
		for (i = 0; i < ARRAY_SIZE(threads); i++)
			pthread_create(&threads[i], NULL, race_free, &r);
		for (i = 0; i < ARRAY_SIZE(threads); i++)
			pthread_join(threads[i], NULL);
		ASSERT_EQ(1, r.freed);
		pthread_barrier_destroy(&r.start);
	}
	close(r.fd);
}

/* mmap() races with FREE. Either order is valid. */
TEST_F(stress, map_against_free)
{
	unsigned int round, i, mapped = 0;
	struct accmem_alloc a;
	struct race r = { 0 };
	pthread_t threads[2];

	r.fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, r.fd);
	for (round = 0; round < accmem_scale(150); round++) {
		ASSERT_EQ(0, accmem_alloc_bytes(r.fd, 8192, 0, &a));
		r.address = a.address;
		r.offset = a.mmap_offset;
		r.freed = 0;
		r.mapped = 0;
		pthread_barrier_init(&r.start, NULL, ARRAY_SIZE(threads));
		pthread_create(&threads[0], NULL, race_map, &r);
		pthread_create(&threads[1], NULL, race_free, &r);
		for (i = 0; i < ARRAY_SIZE(threads); i++)
			pthread_join(threads[i], NULL);
		ASSERT_EQ(1, r.freed);
		ASSERT_EQ(0, r.bad);
		ASSERT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
		mapped += r.mapped;
		pthread_barrier_destroy(&r.start);
	}
	printf("# %u of %u mappings came first\n", mapped, round);
	close(r.fd);
}

static void *fault_thread(void *arg)
{
	struct slot *s = arg;
	uint64_t at;

	for (at = 0; at < s->a.length; at += 4096)
		if (((volatile char *)s->p)[at])
			s->seed++;
	return NULL;
}

/* Many threads access the same new pages at once. */
TEST_F(stress, faults_at_once)
{
	int fd = accmem_opened(variant->path);
	pthread_t threads[THREADS];
	unsigned int round, i;
	struct slot s = { 0 };

	for (round = 0; round < accmem_scale(16); round++) {
		ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(2) + 65536, 0, &s.a));
		s.p = accmem_mmap_huge(fd, &s.a, s.a.length);
		ASSERT_NE(NULL, s.p);
		for (i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, fault_thread, &s);
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		EXPECT_EQ(0, s.seed);
		munmap(s.p, s.a.length);
		ASSERT_EQ(0, accmem_ioctl_free(fd, s.a.address));
	}
	close(fd);
}

ACCMEM_HARNESS_MAIN
