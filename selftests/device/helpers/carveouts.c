// SPDX-License-Identifier: GPL-2.0
/*
 * Devices with several carveouts, for carveouts.sh, which makes them: /dev/accmem0
 * of ordinary memory, /dev/accmem1 of a range with page structures and one without.
 * Of both, carveout 0 has high bandwidth, carveout 1 low bandwidth, and they are of
 * the same size. Every test ends with all memory free.
 */
#include "accmem_test.h"

#define ONLY ACCMEM_ALLOC_CARVEOUT
#define HIGH ACCMEM_ALLOC_HIGH_BANDWIDTH
#define LOW ACCMEM_ALLOC_LOW_BANDWIDTH
#define BUFS_MAX 64

#define FREE_LAST() \
	accmem_ioctl_free(self->fd, self->bufs[--self->nr].address)

FIXTURE(carveouts)
{
	int fd;
	struct accmem_info info[2];
	struct accmem_alloc bufs[BUFS_MAX];
	int nr;
};

FIXTURE_VARIANT(carveouts)
{
	const char *path;
};

FIXTURE_VARIANT_ADD(carveouts, emulated)
{
	.path = "/dev/accmem0",
};

FIXTURE_VARIANT_ADD(carveouts, phys)
{
	.path = "/dev/accmem1",
};

static int info_of(int fd, uint32_t carveout, struct accmem_info *info)
{
	*info = (struct accmem_info){ .size = sizeof(*info),
				      .carveout = carveout };
	return accmem_ioctl(fd, ACCMEM_IOC_INFO, info);
}

FIXTURE_SETUP(carveouts)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, info_of(self->fd, 0, &self->info[0]));
	ASSERT_EQ(0, info_of(self->fd, 1, &self->info[1]));
}

FIXTURE_TEARDOWN(carveouts)
{
	struct accmem_info info;
	unsigned int i;

	while (self->nr)
		EXPECT_EQ(0, FREE_LAST());
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, info_of(self->fd, i, &info));
		EXPECT_EQ(info.capacity, info.free_bytes);
	}
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

static int alloc_in(int fd, uint32_t carveout, uint64_t length, uint32_t flags,
		    struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length, .carveout = carveout,
				    .flags = flags };
	return accmem_ioctl_alloc(fd, a);
}

/* the carveout of a buffer; ALLOC, QUERY and the address must agree */
static int where(int fd, const struct accmem_info *info,
		 const struct accmem_alloc *a)
{
	struct accmem_query q;
	int i;

	if (accmem_ioctl_query(fd, a->address, &q))
		return -1;
	for (i = 0; i < 2; i++) {
		if (a->carveouts == 1u << i && q.carveout == (uint32_t)i &&
		    a->address - info[i].address_base < info[i].address_span)
			return i;
	}
	return -1;
}

#define WHERE(a) where(self->fd, self->info, a)
#define TAKE(carveout, length, flags)                                     \
	({                                                                \
		struct accmem_alloc *__a = &self->bufs[self->nr];         \
		int __err = alloc_in(self->fd, carveout, length, flags,   \
				     __a);                                \
		if (!__err)                                               \
			self->nr++;                                       \
		__err ?: WHERE(__a);                                      \
	})

/* allocates all free memory of a carveout */
static int fill(struct __test_metadata *_metadata,
		struct _test_data_carveouts *self, uint32_t carveout)
{
	struct accmem_info info;

	for (;;) {
		ASSERT_EQ(0, info_of(self->fd, carveout, &info));
		if (!info.free_bytes)
			return 0;
		ASSERT_GT(BUFS_MAX, self->nr);
		ASSERT_EQ(carveout, TAKE(carveout, info.largest_run, ONLY));
	}
}

#define FILL(carveout) fill(_metadata, self, carveout)

TEST_F(carveouts, info_tells_each)
{
	const struct accmem_info *a = &self->info[0], *b = &self->info[1];
	struct accmem_info info;
	int64_t capacity = accmem_sysfs(variant->path, "capacity");

	EXPECT_EQ(2, a->nr_carveouts);
	EXPECT_EQ(2, b->nr_carveouts);
	EXPECT_EQ(ACCMEM_BANDWIDTH_HIGH, a->bandwidth);
	EXPECT_EQ(ACCMEM_BANDWIDTH_LOW, b->bandwidth);
	EXPECT_NE(0, a->address_base);
	EXPECT_EQ(0, a->address_base % GIB(1));
	EXPECT_EQ(0, b->address_base % GIB(1));
	EXPECT_LE(a->address_base + a->address_span, b->address_base);
	EXPECT_EQ(capacity, (int64_t)(a->capacity + b->capacity));
	EXPECT_EQ(a->capacity,
		  accmem_sysfs(variant->path, "carveout0/capacity"));
	EXPECT_EQ(b->capacity,
		  accmem_sysfs(variant->path, "carveout1/capacity"));
	EXPECT_EQ(-EINVAL, info_of(self->fd, 2, &info));
	EXPECT_EQ(-EINVAL, info_of(self->fd, ~0u, &info));
}

TEST_F(carveouts, first_is_the_one_asked_for)
{
	EXPECT_EQ(0, TAKE(0, MIB(1), 0));
	EXPECT_EQ(1, TAKE(1, MIB(1), 0));
	EXPECT_EQ(0, TAKE(0, 100, 0));
	EXPECT_EQ(1, TAKE(1, 100, 0));
	EXPECT_EQ(-EINVAL, TAKE(2, MIB(1), 0));
	EXPECT_EQ(-EINVAL, TAKE(2, MIB(1), ONLY));
	EXPECT_EQ(-EINVAL, TAKE(~0u, MIB(1), 0));
}

/* A request is served while any carveout has memory. */
TEST_F(carveouts, another_one_when_it_is_full)
{
	FILL(0);
	EXPECT_EQ(1, TAKE(0, MIB(1), 0));
	EXPECT_EQ(1, TAKE(0, 100, 0));
	EXPECT_EQ(1, TAKE(0, MIB(1), HIGH));
	FILL(1);
	EXPECT_EQ(-ENOMEM, TAKE(0, MIB(1), 0));
	/* the answer has the carveouts that were tried */
	EXPECT_EQ(3, self->bufs[self->nr].carveouts);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->bufs[0].address));
	self->bufs[0] = self->bufs[--self->nr];
	EXPECT_EQ(0, TAKE(1, MIB(1), 0));
}

TEST_F(carveouts, only_the_one_asked_for)
{
	struct accmem_alloc *a;

	FILL(1);
	EXPECT_EQ(-ENOMEM, TAKE(1, MIB(1), ONLY));
	a = &self->bufs[self->nr];
	EXPECT_EQ(2, a->carveouts);
	EXPECT_EQ(0, a->free_bytes);
	EXPECT_EQ(0, a->largest_run);
	EXPECT_EQ(-ENOMEM, TAKE(1, 100, ONLY));
	/* the answer has the free memory */
	EXPECT_EQ(-ENOMEM, TAKE(1, self->info[0].capacity * 2, 0));
	a = &self->bufs[self->nr];
	EXPECT_EQ(3, a->carveouts);
	EXPECT_EQ(self->info[0].capacity, a->free_bytes);
	EXPECT_EQ(self->info[0].capacity, a->largest_run);
	EXPECT_EQ(0, TAKE(1, MIB(1), 0));
}

/* A13: a class is a preference. */
TEST_F(carveouts, class_first_then_the_others)
{
	EXPECT_EQ(0, TAKE(0, MIB(1), HIGH));
	EXPECT_EQ(0, TAKE(1, MIB(1), HIGH));
	EXPECT_EQ(1, TAKE(0, MIB(1), LOW));
	EXPECT_EQ(1, TAKE(0, 64, LOW));
	EXPECT_EQ(0, TAKE(0, 64, HIGH));
	/* with one carveout there is no preference */
	EXPECT_EQ(0, TAKE(0, MIB(1), LOW | ONLY));
	EXPECT_EQ(-EINVAL, TAKE(0, MIB(1), LOW | HIGH));
	FILL(1);
	EXPECT_EQ(0, TAKE(1, MIB(1), LOW));
	FILL(0);
	EXPECT_EQ(-ENOMEM, TAKE(0, MIB(1), LOW));
}

/* A buffer lies in one carveout, so the largest run limits a request. */
TEST_F(carveouts, buffer_is_in_one)
{
	uint64_t capacity = self->info[0].capacity;

	EXPECT_EQ(-ENOMEM, TAKE(0, capacity + self->info[1].capacity, 0));
	EXPECT_EQ(capacity * 2, self->bufs[self->nr].free_bytes);
	EXPECT_EQ(0, TAKE(0, capacity, 0));
	EXPECT_EQ(1, TAKE(0, capacity, 0));
	EXPECT_EQ(-ENOMEM, TAKE(0, 1, 0));
}

/* Addresses between two carveouts belong to none of them. */
TEST_F(carveouts, fixed_address_names_its_carveout)
{
	const struct accmem_info *i = self->info;
	struct accmem_alloc a = { .flags = ACCMEM_ALLOC_FIXED,
				  .length = MIB(2) };

	a.address = i[1].address_base + MIB(4);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(i[1].address_base + MIB(4), a.address);
	EXPECT_EQ(1, WHERE(&a));
	EXPECT_EQ(-EEXIST, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.flags |= ONLY;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.carveout = 1;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a = (struct accmem_alloc){ .flags = ACCMEM_ALLOC_FIXED,
				   .length = MIB(2),
				   .address = i[1].address_base - MIB(2) };
	if (i[0].address_base + i[0].address_span == i[1].address_base)
		a.address = i[1].address_base + i[1].address_span;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	/* begins in one carveout and ends in the next */
	a.address = i[0].address_base + i[0].address_span - MIB(1);
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
}

/* A write through a mapping changes one carveout only. */
TEST_F(carveouts, contents_are_apart)
{
	uint64_t size = MIB(4);
	struct accmem_alloc a[2];
	unsigned int i;
	char *p[2];

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, alloc_in(self->fd, i, size, ONLY, &a[i]));
		p[i] = accmem_mmap(self->fd, &a[i], size, RW);
		ASSERT_NE(NULL, p[i]);
		EXPECT_EQ(-1, accmem_first_nonzero(p[i], size));
		accmem_fill(p[i], size, i + 1);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, accmem_check(p[i], size, i + 1));
		EXPECT_EQ(0, munmap(p[i], size));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
}

/* Dirty memory of the second carveout is cleared, too. */
TEST_F(carveouts, second_comes_back_clean)
{
	uint64_t size = self->info[1].capacity / 4;
	struct accmem_alloc a;
	unsigned int i;
	char *p;

	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, alloc_in(self->fd, 1, size, ONLY, &a));
		p = accmem_mmap_huge(self->fd, &a, size);
		ASSERT_NE(NULL, p);
		EXPECT_EQ(-1, accmem_sample_nonzero(p, size));
		accmem_fill(p, size, i);
		munmap(p, size);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

/* A cached buffer of one carveout does not serve a request for the other. */
TEST_F(carveouts, caches_know_theirs)
{
	static const uint64_t lengths[] = { 100, 4096, 65536 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (j = 0; j < 8; j++) {
			ASSERT_EQ(j % 2, TAKE(j % 2, lengths[i], ONLY));
			ASSERT_EQ(0, FREE_LAST());
		}
	}
}

/*
 * A buffer grows in place if it can, else it moves to another carveout with its
 * contents.
 */
TEST_F(carveouts, realloc_stays_or_moves)
{
	uint64_t size = MIB(3);
	struct accmem_alloc a;
	struct accmem_realloc r;
	struct accmem_query q;
	char *p;

	ASSERT_EQ(0, alloc_in(self->fd, 1, size, ACCMEM_ALLOC_RESIZABLE, &a));
	ASSERT_EQ(1, WHERE(&a));
	p = accmem_mmap(self->fd, &a, size, RW);
	ASSERT_NE(NULL, p);
	accmem_fill(p, size, 7);
	munmap(p, size);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, 2 * size, 0,
					  &r));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
	EXPECT_EQ(1, q.carveout);
	FILL(1);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, r.address, 3 * size, 0,
					  &r));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
	EXPECT_EQ(0, q.carveout);
	EXPECT_EQ(2 * size, r.copied);
	a.mmap_offset = r.mmap_offset;
	p = accmem_mmap(self->fd, &a, 3 * size, RW);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, size, 7));
	EXPECT_EQ(-1, accmem_first_nonzero(p + size, 2 * size));
	munmap(p, 3 * size);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

/* A buffer with a reservation moves as well. */
TEST_F(carveouts, realloc_moves_with_a_reservation)
{
	struct accmem_alloc a = { .length = MIB(2),
				  .carveout = 1,
				  .flags = ACCMEM_ALLOC_RESIZABLE,
				  .reserve = MIB(8) };
	struct accmem_realloc r;
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	FILL(1);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(8), 0, &r));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
	EXPECT_EQ(0, q.carveout);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

/* A buffer that is for one carveout only does not leave it. */
TEST_F(carveouts, realloc_in_one_only)
{
	struct accmem_alloc a;
	struct accmem_realloc r;

	ASSERT_EQ(0, alloc_in(self->fd, 1, MIB(2),
			      ACCMEM_ALLOC_RESIZABLE | ONLY, &a));
	FILL(1);
	EXPECT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, a.address, MIB(8), 0,
						&r));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(1), 0, &r));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

/* The answer has the free memory of the carveouts that the request may use. */
TEST_F(carveouts, realloc_tells_what_is_free_where_it_asked)
{
	struct accmem_alloc only, any;
	struct accmem_realloc r;

	ASSERT_EQ(0, alloc_in(self->fd, 1, MIB(2),
			      ACCMEM_ALLOC_RESIZABLE | ONLY, &only));
	ASSERT_EQ(0,
		  alloc_in(self->fd, 1, MIB(2), ACCMEM_ALLOC_RESIZABLE, &any));
	FILL(1);
	ASSERT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, only.address, MIB(8), 0, &r));
	EXPECT_EQ(0, r.free_bytes);
	EXPECT_EQ(0, r.largest_run);
	ASSERT_EQ(-ENOMEM, accmem_ioctl_realloc(self->fd, any.address, MIB(8),
						ACCMEM_REALLOC_IN_PLACE, &r));
	EXPECT_EQ(0, r.free_bytes);
	ASSERT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, any.address,
				       self->info[0].capacity + MIB(2), 0, &r));
	EXPECT_EQ(self->info[0].capacity, r.free_bytes);
	EXPECT_EQ(self->info[0].capacity, r.largest_run);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, only.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, any.address));
}

/*
 * The cache of another context is not enough. The context's own cached buffers of
 * another carveout are charged, so they block it at its limit.
 */
TEST_F(carveouts, a_limit_behind_the_lack_of_memory)
{
	int64_t limit = accmem_param("max_bytes_per_context");
	int other = accmem_dev_open(variant->path, O_RDWR);
	int third = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_alloc a, b, c;

	/* the rest of another context's folio cannot be filled; the reclaim is the same */
	if (self->info[0].translation == ACCMEM_TRANSLATION_IDENTITY) {
		close(other);
		close(third);
		return;
	}
	ASSERT_EQ(0, alloc_in(other, 0, KIB(64), ONLY, &a));
	FILL(0);
	ASSERT_EQ(0, accmem_ioctl_free(other, a.address));
	ASSERT_EQ(0, alloc_in(third, 1, KIB(64), ONLY, &b));
	ASSERT_EQ(0, accmem_ioctl_free(third, b.address));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", KIB(64)));
	EXPECT_EQ(0, alloc_in(third, 0, KIB(64), ONLY, &c));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
	close(other);
	close(third);
}

/* an ALLOC with WAIT in a separate thread */
struct waiting {
	int fd;
	struct accmem_alloc a;
	int err;
	pthread_t thread;
};

static void *wait_in_thread(void *arg)
{
	struct waiting *w = arg;

	w->err = accmem_ioctl_alloc(w->fd, &w->a);
	return NULL;
}

static int wait_start(struct waiting *w, int fd, uint32_t carveout,
		      uint32_t flags)
{
	w->fd = fd;
	w->a = (struct accmem_alloc){ .length = MIB(2), .carveout = carveout,
				      .flags = flags | ACCMEM_ALLOC_WAIT };
	return pthread_create(&w->thread, NULL, wait_in_thread, w);
}

/* waits until @nr calls wait for memory */
static int wait_for_waiters(int fd, int nr)
{
	struct accmem_pressure s;
	int other = -1, tries;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	other = accmem_dev_open(path, O_RDWR);
	for (tries = 0; tries < 10000 && other >= 0; tries++) {
		s = (struct accmem_pressure){ .size = sizeof(s) };
		if (accmem_ioctl(other, ACCMEM_IOC_PRESSURE, &s) ||
		    (int)s.waiting == nr)
			break;
		usleep(2000);
	}
	close(other);
	return (int)s.waiting == nr && s.shortfall ? 0 : -1;
}

TEST_F(carveouts, waiter_is_served_by_any)
{
	struct waiting w;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		FILL(0);
		FILL(1);
		ASSERT_EQ(0, wait_start(&w, self->fd, 0, 0));
		ASSERT_EQ(0, wait_for_waiters(self->fd, 1));
		/* the last carveout that was filled */
		ASSERT_EQ(0, FREE_LAST());
		ASSERT_EQ(0, pthread_join(w.thread, NULL));
		ASSERT_EQ(0, w.err);
		EXPECT_EQ(1, WHERE(&w.a));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
	}
}

TEST_F(carveouts, waiter_for_one_only)
{
	struct accmem_alloc late = { .length = MIB(2), .carveout = 1,
				     .flags = ACCMEM_ALLOC_WAIT | ONLY,
				     .deadline_ns = 1 };
	struct accmem_alloc big;
	struct waiting w, any;

	FILL(1);
	EXPECT_EQ(-ETIMEDOUT, accmem_ioctl_alloc(self->fd, &late));
	EXPECT_EQ(2, late.carveouts);
	EXPECT_EQ(0, late.free_bytes);
	ASSERT_EQ(0, alloc_in(self->fd, 0, self->info[0].capacity, ONLY,
			      &big));
	ASSERT_EQ(0, wait_start(&w, self->fd, 1, ONLY));
	ASSERT_EQ(0, wait_for_waiters(self->fd, 1));
	ASSERT_EQ(0, wait_start(&any, self->fd, 0, 0));
	ASSERT_EQ(0, wait_for_waiters(self->fd, 2));
	/* memory of the other carveout serves the second waiter */
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, big.address));
	ASSERT_EQ(0, pthread_join(any.thread, NULL));
	ASSERT_EQ(0, any.err);
	EXPECT_EQ(0, WHERE(&any.a));
	ASSERT_EQ(0, wait_for_waiters(self->fd, 1));
	ASSERT_EQ(0, FREE_LAST());
	ASSERT_EQ(0, pthread_join(w.thread, NULL));
	ASSERT_EQ(0, w.err);
	EXPECT_EQ(1, WHERE(&w.a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, any.a.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
}

/* A request larger than every carveout fails at once. */
TEST_F(carveouts, nobody_waits_for_two_at_once)
{
	struct accmem_alloc a = { .length = self->info[0].capacity + 1,
				  .flags = ACCMEM_ALLOC_WAIT };

	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(3, a.carveouts);
}

/* The counters of the carveouts add up to those of the device. */
TEST_F(carveouts, counters_add_up)
{
	static const char *const names[] = { "capacity", "free_bytes",
					     "live_bytes", "buffers" };
	char name[64];
	unsigned int i, j;

	ASSERT_EQ(0, TAKE(0, MIB(3), 0));
	ASSERT_EQ(1, TAKE(1, MIB(5), 0));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		int64_t sum = 0;

		for (j = 0; j < 2; j++) {
			snprintf(name, sizeof(name), "carveout%u/%s", j,
				 names[i]);
			sum += accmem_sysfs(variant->path, name);
		}
		EXPECT_EQ(accmem_sysfs(variant->path, names[i]), sum) {
			TH_LOG("%s", names[i]);
		}
	}
	EXPECT_EQ(MIB(3), accmem_sysfs(variant->path, "carveout0/live_bytes"));
	EXPECT_EQ(MIB(5), accmem_sysfs(variant->path, "carveout1/live_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

/* A limit counts the memory of all carveouts. */
TEST_F(carveouts, limits_count_all)
{
	struct accmem_info info;
	int64_t limit = accmem_param("max_bytes_per_context");

	ASSERT_EQ(0, TAKE(0, MIB(4), 0));
	ASSERT_EQ(1, TAKE(1, MIB(4), 0));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(10)));
	EXPECT_EQ(0, info_of(self->fd, 1, &info));
	EXPECT_EQ(MIB(8), info.context_bytes);
	EXPECT_EQ(MIB(10), info.context_limit);
	/* a full carveout and a limit are both reported */
	EXPECT_EQ(-EDQUOT, TAKE(1, MIB(4), 0));
	EXPECT_EQ(1, TAKE(1, MIB(2), 0));
	EXPECT_EQ(-EDQUOT, TAKE(0, MIB(2), 0));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
}

/* Pinned pages of the second carveout go to its quarantine. */
TEST_F(carveouts, pinned_in_the_second)
{
	struct accmem_alloc a;
	int pipes[2];
	char *p;

	ASSERT_EQ(0, alloc_in(self->fd, 1, MIB(2), ONLY, &a));
	p = accmem_mmap(self->fd, &a, MIB(2), RW);
	ASSERT_NE(NULL, p);
	p[0] = 1;
	ASSERT_EQ(0, pipe(pipes));
	if (self->info[1].features & ACCMEM_FEATURE_PIN) {
		struct iovec iov = { .iov_base = p, .iov_len = 4096 };

		ASSERT_EQ(4096, vmsplice(pipes[1], &iov, 1, 0));
	}
	munmap(p, MIB(2));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	if (self->info[1].features & ACCMEM_FEATURE_PIN)
		EXPECT_LT(0, accmem_sysfs(variant->path,
					  "carveout1/quarantined_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path,
				  "carveout0/quarantined_bytes"));
	close(pipes[0]);
	close(pipes[1]);
}

ACCMEM_HARNESS_MAIN
