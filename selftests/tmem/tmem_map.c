// SPDX-License-Identifier: GPL-2.0
/*
 * Map pages. The map page of an SM names the owner of each unit of columns. Its
 * contents are consistent whenever the sequence count is even. Everyone with a CTA on
 * the SM can map the page, and no one can write to it.
 */
#include "tmem_util.h"

#define PAGE 4096
#define UNITS (ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT)
#define SNAPSHOTS 2000

FIXTURE(tmem_map)
{
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b; /* on SM 0 */
	struct tcgen05_cta *p, *q; /* a pair on SMs 1 and 2 */
	const struct accmem_tmem_map *map; /* of SM 0 */
};

static void *map_with(struct tcgen05_cta *cta, size_t length, int prot,
		      int flags, off_t offset)
{
	void *p = mmap(NULL, length, prot, flags, tcgen05_fd(cta), offset);

	return p == MAP_FAILED ? NULL : p;
}

static const struct accmem_tmem_map *map_of(struct tcgen05_cta *cta)
{
	return map_with(cta, PAGE, PROT_READ, MAP_SHARED, 0);
}

FIXTURE_SETUP(tmem_map)
{
	self->ctx = tmem_open(3, 0, 0, ACCMEM_TMEM_BYPASS_BOUND);
	ASSERT_NE(NULL, self->ctx);
	self->a = tmem_single(self->ctx, 0);
	self->b = tmem_single(self->ctx, 0);
	self->p = tmem_peer(self->ctx, 1, 0);
	self->q = tmem_peer(self->ctx, 2, 1);
	ASSERT_TRUE(self->a && self->b && self->p && self->q);
	self->map = map_of(self->a);
	ASSERT_NE(NULL, self->map);
}

FIXTURE_TEARDOWN(tmem_map)
{
	tcgen05_exit(self->a);
	tcgen05_exit(self->b);
	tcgen05_exit(self->p);
	tcgen05_exit(self->q);
	accmem_close(self->ctx);
	munmap((void *)self->map, PAGE);
}

/* true if the units [first, end) have this owner */
static bool owns(const struct accmem_tmem_map *map, unsigned int first,
		 unsigned int end, uint64_t owner)
{
	unsigned int i;

	if (map->sequence % 2)
		return false;
	for (i = first; i < end; i++)
		if (map->owner[i] != owner)
			return false;
	return true;
}

static bool is_free(const struct accmem_tmem_map *map)
{
	return owns(map, 0, UNITS, 0);
}

TEST_F(tmem_map, says_whose_each_unit_is)
{
	uint64_t a = tmem_id(self->a), b = tmem_id(self->b);
	uint32_t at, other;

	EXPECT_EQ(512 / ACCMEM_TMEM_UNIT, self->map->nr_units);
	EXPECT_TRUE(is_free(self->map));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 128));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &other, 64));
	EXPECT_TRUE(owns(self->map, at / 32, at / 32 + 4, a));
	EXPECT_TRUE(owns(self->map, other / 32, other / 32 + 2, b));
	EXPECT_TRUE(owns(self->map, 6, UNITS, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 128));
	EXPECT_TRUE(owns(self->map, at / 32, at / 32 + 4, 0));
	EXPECT_TRUE(owns(self->map, other / 32, other / 32 + 2, b));
}

TEST_F(tmem_map, has_what_was_held_before_it_was_mapped)
{
	const struct accmem_tmem_map *map;
	struct accmem_context *ctx = tmem_open(1, 2048, 0, 0);
	struct tcgen05_cta *cta[4];
	uint32_t at;
	int i;

	for (i = 0; i < 4; i++) {
		cta[i] = tmem_single(ctx, 0);
		ASSERT_EQ(0, tcgen05_alloc(cta[i], &at, 512));
	}
	map = map_of(cta[0]);
	ASSERT_NE(NULL, map);
	EXPECT_EQ(UNITS, map->nr_units);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(owns(map, 16 * i, 16 * i + 16, tmem_id(cta[i])));
	for (i = 0; i < 4; i++)
		tcgen05_exit(cta[i]);
	EXPECT_TRUE(is_free(map));
	accmem_close(ctx);
	munmap((void *)map, PAGE);
}

TEST_F(tmem_map, all_of_an_sm_map_the_same)
{
	const struct accmem_tmem_map *other = map_of(self->b);
	const struct accmem_tmem_map *sm1 = map_of(self->p);
	uint32_t at;

	ASSERT_TRUE(other && sm1);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	EXPECT_TRUE(owns(other, 0, 16, tmem_id(self->a)));
	EXPECT_TRUE(is_free(sm1));
	munmap((void *)other, PAGE);
	munmap((void *)sm1, PAGE);
}

/* The last close of a CTA is its exit, also while its map page is mapped. */
TEST_F(tmem_map, keeps_no_cta_from_its_exit)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	exits(&self->a);
	EXPECT_EQ(512, tmem_free_columns(self->b));
	EXPECT_TRUE(is_free(self->map));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at, 64));
	EXPECT_TRUE(owns(self->map, at / 32, at / 32 + 2, tmem_id(self->b)));
}

TEST_F(tmem_map, is_free_after_the_end_of_the_context)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 128));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at, 32));
	closes(&self->ctx);
	EXPECT_TRUE(is_free(self->map));
	EXPECT_EQ(16, self->map->nr_units);
	/* the page can still be mapped through the other CTA */
	munmap((void *)self->map, PAGE);
	self->map = map_of(self->b);
	ASSERT_NE(NULL, self->map);
	EXPECT_TRUE(is_free(self->map));
}

TEST_F(tmem_map, outlives_context_and_ctas)
{
	struct accmem_context *ctx = tmem_open(1, 0, 0, 0);
	struct tcgen05_cta *cta = tmem_single(ctx, 0);
	const struct accmem_tmem_map *map = map_of(cta);
	uint32_t at;

	ASSERT_NE(NULL, map);
	ASSERT_EQ(0, tcgen05_alloc(cta, &at, 512));
	tcgen05_exit(cta);
	accmem_close(ctx);
	EXPECT_TRUE(is_free(map));
	EXPECT_EQ(0, madvise((void *)map, PAGE, MADV_DONTNEED));
	EXPECT_TRUE(is_free(map));
	EXPECT_EQ(16, map->nr_units);
	munmap((void *)map, PAGE);
}

/* The child gets the page by its first access. */
TEST_F(tmem_map, goes_with_the_child_of_a_fork)
{
	uint32_t at;
	pid_t pid;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	pid = fork();
	if (!pid) {
		uint64_t a = tmem_id(self->a);

		_exit(!owns(self->map, 0, 16, a) ||
		      accmem_try_write((void *)self->map, 0) != SIGSEGV);
	}
	EXPECT_EQ(0, accmem_wait_child(pid));
}

/* --- what is refused ------------------------------------------------------ */

static int map_errno(struct tcgen05_cta *cta, size_t length, int prot,
		     int flags, off_t offset)
{
	void *p = map_with(cta, length, prot, flags, offset);

	if (!p)
		return errno;
	munmap(p, length);
	return 0;
}

TEST_F(tmem_map, is_one_page_at_offset_0)
{
	EXPECT_EQ(0, map_errno(self->a, PAGE, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->a, 1, PROT_READ, MAP_SHARED, 0));
	EXPECT_EQ(0, map_errno(self->a, PAGE, PROT_READ, MAP_PRIVATE, 0));
	EXPECT_EQ(0, map_errno(self->a, PAGE, PROT_NONE, MAP_SHARED, 0));
	EXPECT_EQ(EINVAL, map_errno(self->a, 2 * PAGE, PROT_READ, MAP_SHARED,
				    0));
	EXPECT_EQ(EINVAL, map_errno(self->a, PAGE, PROT_READ, MAP_SHARED,
				    PAGE));
	EXPECT_EQ(EINVAL, map_errno(self->a, PAGE, PROT_READ, MAP_SHARED,
				    1ll << 43));
	EXPECT_EQ(EINVAL, map_errno(self->a, 0, PROT_READ, MAP_SHARED, 0));
}

TEST_F(tmem_map, cannot_be_mapped_to_write_or_execute)
{
	EXPECT_EQ(EACCES, map_errno(self->a, PAGE, PROT_READ | PROT_WRITE,
				    MAP_SHARED, 0));
	EXPECT_EQ(EACCES, map_errno(self->a, PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE, 0));
	EXPECT_EQ(EACCES, map_errno(self->a, PAGE, PROT_WRITE, MAP_SHARED, 0));
	/* newer kernels refuse PROT_EXEC for anonymous inodes */
	EXPECT_NE(0, map_errno(self->a, PAGE, PROT_READ | PROT_EXEC,
			       MAP_SHARED, 0));
}

static void try_to_write(struct __test_metadata *_metadata,
			 struct tcgen05_cta *cta, int flags)
{
	void *p = map_with(cta, PAGE, PROT_READ, flags, 0);
	char copy[PAGE];
	int mem, zero;

	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, accmem_try_write(p, 1));
	/* a write as a debugger makes it, which ignores the rights of the mapping */
	mem = open("/proc/self/mem", O_RDWR);
	ASSERT_LE(0, mem);
	EXPECT_EQ(-1, pwrite(mem, "x", 1, (uintptr_t)p));
	EXPECT_EQ(PAGE, pread(mem, copy, PAGE, (uintptr_t)p));
	close(mem);
	/* a write by a system call */
	zero = open("/dev/zero", O_RDONLY);
	ASSERT_LE(0, zero);
	EXPECT_EQ(-1, read(zero, p, 8));
	EXPECT_EQ(EFAULT, errno);
	close(zero);
	munmap(p, PAGE);
}

TEST_F(tmem_map, cannot_be_written_to)
{
	uint32_t at;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 512));
	try_to_write(_metadata, self->a, MAP_SHARED);
	try_to_write(_metadata, self->a, MAP_PRIVATE);
	EXPECT_TRUE(owns(self->map, 0, 16, tmem_id(self->a)));
}

TEST_F(tmem_map, moves_but_does_not_grow)
{
	void *p = map_with(self->a, PAGE, PROT_READ, MAP_SHARED, 0), *q;

	ASSERT_NE(NULL, p);
	EXPECT_EQ(MAP_FAILED, mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
	q = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(q, mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q));
	EXPECT_TRUE(is_free(q));
	munmap(q, PAGE);
}

/* A pipe that references the page keeps the page, not the CTA. */
TEST_F(tmem_map, may_lie_in_a_pipe_after_all_has_gone)
{
	struct accmem_context *ctx = tmem_open(1, 0, 0, 0);
	struct tcgen05_cta *cta = tmem_single(ctx, 0);
	struct accmem_tmem_map *map = (void *)map_of(cta), copy;
	struct iovec io = { .iov_base = map, .iov_len = sizeof(*map) };
	uint32_t at;
	int fd[2];

	ASSERT_NE(NULL, map);
	ASSERT_EQ(0, pipe(fd));
	ASSERT_EQ(0, tcgen05_alloc(cta, &at, 512));
	ASSERT_EQ((ssize_t)sizeof(*map), vmsplice(fd[1], &io, 1, 0));
	munmap(map, PAGE);
	tcgen05_exit(cta);
	accmem_close(ctx);
	ASSERT_EQ((ssize_t)sizeof(copy), read(fd[0], &copy, sizeof(copy)));
	EXPECT_EQ(16, copy.nr_units);
	EXPECT_TRUE(is_free(&copy));
	close(fd[0]);
	close(fd[1]);
}

TEST_F(tmem_map, many_come_and_go)
{
	unsigned int i, n = accmem_scale(200);

	for (i = 0; i < n; i++) {
		struct accmem_context *ctx = tmem_open(2, 0, 0, 0);
		struct tcgen05_cta *cta = tmem_single(ctx, i % 2);
		const struct accmem_tmem_map *map = map_of(cta);

		ASSERT_NE(NULL, map);
		if (i % 3)
			munmap((void *)map, PAGE);
		accmem_close(ctx);
		tcgen05_exit(cta);
		if (!(i % 3))
			munmap((void *)map, PAGE);
	}
}

/* --- while it changes ----------------------------------------------------- */

static bool stop;

struct changer {
	pthread_t thread;
	struct tcgen05_cta *cta;
	uint32_t columns;
	uint64_t id;
	int ret;
};

static void *change(void *argument)
{
	struct changer *c = argument;
	uint32_t at;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && !c->ret) {
		c->ret = tcgen05_alloc(c->cta, &at, c->columns);
		if (!c->ret)
			c->ret = tcgen05_dealloc(c->cta, at, c->columns);
	}
	return NULL;
}

/* reads the page as a reader should; false if it changed meanwhile */
static bool snapshot(const volatile struct accmem_tmem_map *map,
		     struct accmem_tmem_map *copy)
{
	unsigned int i;

	copy->sequence = __atomic_load_n(&map->sequence, __ATOMIC_ACQUIRE);
	if (copy->sequence % 2)
		return false;
	copy->nr_units = map->nr_units;
	for (i = 0; i < UNITS; i++)
		copy->owner[i] = map->owner[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return map->sequence == copy->sequence;
}

/* each CTA must have all of its columns, in an aligned run, or none */
static bool is_possible(const struct accmem_tmem_map *map,
			const struct changer *c, unsigned int nr)
{
	unsigned int i, j, n, first;

	for (i = 0; i < nr; i++) {
		n = 0;
		first = 0;
		for (j = 0; j < UNITS; j++)
			if (map->owner[j] == c[i].id && !n++)
				first = j;
		if (!n)
			continue;
		if (n != c[i].columns / 32 || first % n ||
		    !owns(map, first, first + n, c[i].id))
			return false;
	}
	return true;
}

TEST_F(tmem_map, readers_see_one_moment)
{
	struct changer c[4] = { { .columns = 512 }, { .columns = 256 },
				{ .columns = 128 }, { .columns = 256 } };
	unsigned int i, n = 0, torn = 0, wanted = accmem_scale(SNAPSHOTS);
	unsigned int different = 0;
	struct accmem_tmem_map copy, last = {};

	for (i = 0; i < 4; i++) {
		c[i].cta = tmem_single(self->ctx, 0);
		c[i].id = tmem_id(c[i].cta);
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, change, &c[i]));
	}
	while (n < wanted || different < wanted / 20) {
		if (!snapshot(self->map, &copy)) {
			torn++;
			continue;
		}
		n++;
		different += copy.sequence != last.sequence;
		last = copy;
		if (!is_possible(&copy, c, 4))
			break;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	EXPECT_TRUE(is_possible(&copy, c, 4));
	for (i = 0; i < 4; i++) {
		pthread_join(c[i].thread, NULL);
		EXPECT_EQ(0, c[i].ret);
		tcgen05_exit(c[i].cta);
	}
	EXPECT_TRUE(is_free(self->map));
	printf("# %u snapshots, %u of them differ, %u were no moment\n", n,
	       different, torn);
}

/* launches CTAs that allocate, map the page, and exit with columns */
static void *live_and_die(void *argument)
{
	struct changer *c = argument;
	struct accmem_context *ctx = (void *)c->cta;
	const struct accmem_tmem_map *map;
	struct tcgen05_cta *cta;
	uint32_t at;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED) && !c->ret) {
		cta = tmem_single(ctx, 1);
		c->ret = tcgen05_alloc(cta, &at, c->columns);
		map = map_of(cta);
		if (!map || map->owner[at / 32] != tmem_id(cta))
			c->ret = 1;
		tcgen05_exit(cta);
		if (map)
			munmap((void *)map, PAGE);
	}
	return NULL;
}

TEST_F(tmem_map, ctas_that_come_and_go_leave_nothing)
{
	const struct accmem_tmem_map *map;
	struct changer c[3] = {};
	int i;

	for (i = 0; i < 3; i++) {
		c[i].cta = (void *)self->ctx;
		c[i].columns = 128;
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, live_and_die,
					    &c[i]));
	}
	usleep(accmem_scale(300) * 1000);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++) {
		pthread_join(c[i].thread, NULL);
		EXPECT_EQ(0, c[i].ret);
	}
	map = map_of(self->p);
	ASSERT_NE(NULL, map);
	EXPECT_TRUE(is_free(map));
	munmap((void *)map, PAGE);
}

ACCMEM_HARNESS_MAIN
