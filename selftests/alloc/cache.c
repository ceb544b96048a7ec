// SPDX-License-Identifier: GPL-2.0
/*
 * The cache of freed buffers of a context. A pair of ALLOC and FREE that the cache
 * serves writes to no memory that other contexts write to. Cached memory counts as
 * free everywhere, also for the context that holds it.
 */
#include "stream_util.h"

#define KEPT 16 /* capacity of the cache, in buffers */

ACCMEM_FIXTURE(cache)

/* the number of times that the carveout's lock was taken; it protects all shared data */
static bool read_holds(const char *path, uint64_t *holds)
{
	int64_t now = accmem_lock_stats(path, "carveout_lock_holds");

	*holds = now;
	return now >= 0;
}

/* an ALLOC and a FREE; 0 or -errno */
static int pair(int fd, uint64_t length, uint32_t flags, struct accmem_alloc *a)
{
	return accmem_alloc_bytes(fd, length, flags, a) ?:
		       accmem_ioctl_free(fd, a->address);
}

/* counts how often 1,000 pairs take the lock; false if a pair fails */
static bool holds_of_pairs(int fd, const char *path, uint64_t length,
			   uint64_t *holds)
{
	uint64_t before, after;
	struct accmem_alloc a;
	unsigned int i;

	if (!read_holds(path, &before))
		return false;
	for (i = 0; i < 1000; i++)
		if (pair(fd, length, 0, &a))
			return false;
	if (!read_holds(path, &after))
		return false;
	*holds = after - before;
	return true;
}

/*
 * The cleaner takes the lock, too, and once more after the last dirty byte. One of five
 * tries must be without it.
 */
TEST_F(cache, a_pair_writes_nothing_shared)
{
	static const uint64_t lengths[] = { 64, 2048, 4096, 12288, KIB(32) };
	struct accmem_alloc a;
	unsigned int i, tries;
	uint64_t holds;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, pair(self->fd, lengths[i], 0, &a));
		while (accmem_sysfs(variant->path, "dirty_bytes"))
			usleep(1000);
		ASSERT_EQ(0, pair(self->fd, lengths[i], 0, &a));
		for (tries = 0; tries < 5; tries++) {
			ASSERT_TRUE(holds_of_pairs(self->fd, variant->path,
						   lengths[i], &holds));
			if (!holds)
				break;
		}
		EXPECT_EQ(0, holds)
		{
			TH_LOG("%lu bytes", lengths[i]);
		}
	}
}

/* For the analysis in Documentation/benchmarks.rst. */
TEST_F(cache, what_a_pair_writes_without_it)
{
	static const uint64_t lengths[] = { 64, 4096, MIB(2) };
	struct accmem_alloc
		a[3 * KEPT / 2]; /* sizes that fit, wherever the cleaner is */
	uint64_t before, after;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, accmem_drain(self->fd));
		ASSERT_TRUE(read_holds(variant->path, &before));
		for (n = 0; n < ARRAY_SIZE(a); n++) {
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, lengths[i], 0,
							&a[n]));
		}
		for (n = 0; n < ARRAY_SIZE(a); n++) {
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[n].address));
		}
		ASSERT_EQ(0, accmem_drain(self->fd));
		ASSERT_TRUE(read_holds(variant->path, &after));
		TH_LOG("%lu bytes: %.1f holds of the lock a pair", lengths[i],
		       1.0 * (after - before) / ARRAY_SIZE(a));
		EXPECT_LT(before, after);
	}
}

TEST_F(cache, what_is_kept_has_no_name)
{
	struct accmem_query query;
	struct accmem_alloc a;

	ASSERT_EQ(0, pair(self->fd, KIB(32), 0, &a));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address + 4096));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, a.address, &query));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &a, 4096, RW));
	EXPECT_EQ(ENXIO, errno);
}

TEST_F(cache, what_is_kept_counts_as_free)
{
	struct accmem_alloc a[KEPT];
	struct accmem_info info;
	int64_t allocs = accmem_sysfs(variant->path, "allocs");
	int64_t frees = accmem_sysfs(variant->path, "frees");
	int i;

	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096u << i % 9, 0,
						&a[i]));
	}
	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(self->info.free_bytes, info.free_bytes);
	EXPECT_EQ(self->info.largest_run, info.largest_run);
	EXPECT_EQ(0, info.context_bytes);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, pair(self->fd, 4096, 0, &a[0]));
	}
	EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(allocs + KEPT + 10, accmem_sysfs(variant->path, "allocs"));
	EXPECT_EQ(frees + KEPT + 10, accmem_sysfs(variant->path, "frees"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

/* Neighbours are cached in any order, and are one free run. */
TEST_F(cache, what_is_kept_is_one_run_in_any_order)
{
	static const uint64_t lengths[] = { 64, 4096, KIB(32) };
	struct accmem_alloc a[KEPT];
	uint64_t seed = accmem_seed();
	unsigned int i, n, left, order;
	struct accmem_info info;

	for (order = 0; order < 12; order++) {
		for (i = 0; i < KEPT; i++) {
			n = order < 3 ? order : accmem_random(&seed) % 3;
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, lengths[n], 0,
							&a[i]));
		}
		for (left = KEPT; left; left--) {
			n = order % 2 ? accmem_random(&seed) % left : left - 1;
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[n].address));
			a[n] = a[left - 1];
		}
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
		EXPECT_EQ(self->info.free_bytes, info.free_bytes);
		EXPECT_EQ(self->info.largest_run, info.largest_run);
	}
}

/* A reservation may use all addresses of cached buffers. */
TEST_F(cache, device_addresses_of_what_is_kept_are_free)
{
	struct accmem_alloc a = { .length = 4096,
				  .flags = ACCMEM_ALLOC_RESIZABLE,
				  .reserve = self->info.address_span };
	struct accmem_alloc b, c;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &b));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	a.reserve = self->info.address_span - MIB(2);
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &b));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &c));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, c.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

/* A request of another context gets cached memory before it would be refused. */
TEST_F(cache, others_get_what_is_kept)
{
	struct accmem_alloc a[KEPT], all;
	int i, other;

	other = accmem_opened(variant->path);
	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(32), 0, &a[i]));
	}
	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	EXPECT_EQ(0, accmem_alloc_bytes(other, self->info.largest_run,
					ACCMEM_ALLOC_CONTIGUOUS, &all));
	close(other);
}

static void *end_context(void *arg)
{
	close(*(int *)arg);
	return NULL;
}

/* allocates small buffers whose frees are pending until the context ends */
static bool leave_pending(int fd, int stream, unsigned int nr)
{
	struct accmem_alloc a;
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (accmem_alloc_bytes(fd, 64, 0, &a) ||
		    (i % 64 && stream_free(fd, a.address, stream, 1)))
			return false;
	return true;
}

/* The end of the context takes a while. Its cached memory is free meanwhile. */
TEST_F(cache, others_get_what_is_kept_while_its_context_ends)
{
	struct accmem_alloc a[KEPT], rest[64];
	struct pollfd hangs_up = {};
	struct accmem_info info;
	pthread_t thread;
	unsigned int i;
	int fd;

	/* the rest of a folio belongs to its context as long as that has a part of it */
	if (accmem_owns_folios(&self->info))
		return;
	fd = accmem_opened(variant->path);
	hangs_up.fd = stream_create(fd);
	ASSERT_LE(0, hangs_up.fd);
	for (i = 0; i < KEPT; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(fd, KIB(64), 0, &a[i]));
	ASSERT_TRUE(leave_pending(fd, hangs_up.fd, accmem_scale(50000)));
	ASSERT_LT(0, accmem_take_all(self->fd, ACCMEM_CACHE_WB, rest,
				     ARRAY_SIZE(rest)));
	for (i = 0; i < KEPT; i++)
		ASSERT_EQ(0, accmem_ioctl_free(fd, a[i].address));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(KEPT * KIB(64), info.free_bytes);
	ASSERT_EQ(0, pthread_create(&thread, NULL, end_context, &fd));
	ASSERT_EQ(1, poll(&hangs_up, 1, 20000));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &a[0]));
	pthread_join(thread, NULL);
	close(hangs_up.fd);
}

/* Cached memory stays charged, but no request meets a limit because of it. */
TEST_F(cache, limits_do_not_count_what_is_kept)
{
	int64_t limit = accmem_param("max_bytes_per_context");
	struct accmem_alloc a, b;

	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(2)));
	ASSERT_EQ(0, pair(self->fd, KIB(32), 0, &a));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &a));
	EXPECT_EQ(-EDQUOT, accmem_alloc_bytes(self->fd, 64, 0, &b));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
}

static int another_device(void *arg)
{
	const char *path = arg;
	struct accmem_alloc a;
	int one, other;

	/* a user's limit is for all devices, and not for root */
	if (setuid(65534))
		return 1;
	one = accmem_dev_open(path, O_RDWR);
	other = accmem_dev_open(strcmp(path, ACCMEM_DEV_EMULATED) ?
					ACCMEM_DEV_EMULATED :
					ACCMEM_DEV_PHYS,
				O_RDWR);
	if (one < 0 || other < 0)
		return 2;
	if (pair(one, KIB(32), 0, &a))
		return 3;
	return accmem_alloc_bytes(other, MIB(2), 0, &a) ? 4 : 0;
}

/* Sets the mode of all devices. */
static void set_modes(const char *path, mode_t mode)
{
	chmod(ACCMEM_DEV_EMULATED, mode);
	chmod(ACCMEM_DEV_PHYS, mode);
	chmod(path, mode);
}

TEST_F(cache, limits_of_a_user_on_another_device)
{
	int64_t limit = accmem_param("max_bytes_per_user");
	struct stat st;

	ASSERT_EQ(0, stat(variant->path, &st));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_user", MIB(2)));
	set_modes(variant->path, 0666);
	EXPECT_EQ(0, accmem_in_child(another_device, (void *)variant->path));
	set_modes(variant->path, st.st_mode & 07777);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_user", limit));
}

/* A buffer that was mapped is not cached: it may have been written to, or be pinned. */
TEST_F(cache, what_was_mapped_is_not_kept)
{
	uint64_t before, after;
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, 8192, 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_TRUE(read_holds(variant->path, &before));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &a));
	ASSERT_TRUE(read_holds(variant->path, &after));
	EXPECT_LT(before, after);
	EXPECT_EQ(-1, check_at(self->fd, a.address, 0, 8192, 0));
}

/* The index of the first byte that the device does not read as zero, or -1. */
static int64_t device_check_zero(int fd, uint64_t address, uint64_t length)
{
	static char bytes[KIB(64)];
	struct accmem_access x = {
		.address = address,
		.length = length,
		.op = ACCMEM_ACCESS_READ,
		.data = (uintptr_t)bytes,
	};

	memset(bytes, 1, length);
	return accmem_ioctl_access(fd, &x) ?:
					     accmem_first_nonzero(bytes, length);
}

/*
 * A buffer that the device has written to is cached, and cleared when it is used again.
 * Its neighbours in its granule keep their bytes. The cleaner takes the lock, too: one
 * of five tries must be without it.
 */
TEST_F(cache, what_the_device_wrote_is_kept_and_cleared)
{
	static const uint64_t lengths[] = { 1024, 8192, KIB(64) };
	uint64_t before, after, holds;
	struct accmem_alloc a, other;
	unsigned int i, tries;

	/* the pages of an emulated device are the host's, and no cache keeps them */
	if (self->info.backing == ACCMEM_BACKING_EMULATED)
		return;
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &other));
	ASSERT_EQ(0, device_fill_at(self->fd, other.address, 64, 9));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, lengths[i], 0, &a));
		for (tries = 0, holds = 1; tries < 5 && holds; tries++) {
			ASSERT_EQ(0, device_fill_at(self->fd, a.address,
						    lengths[i], 1));
			while (accmem_sysfs(variant->path, "dirty_bytes"))
				usleep(1000);
			ASSERT_TRUE(read_holds(variant->path, &before));
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, lengths[i], 0,
							&a));
			ASSERT_TRUE(read_holds(variant->path, &after));
			ASSERT_EQ(-1, device_check_zero(self->fd, a.address,
							lengths[i]));
			holds = after - before;
		}
		EXPECT_EQ(0, holds)
		{
			TH_LOG("%lu bytes", lengths[i]);
		}
	}
	EXPECT_EQ(-1, check_at(self->fd, other.address, 64, 64, 9));
}

/* A small buffer is not cached when its granule was mapped, with its neighbours. */
TEST_F(cache, a_block_whose_granule_was_mapped_is_not_kept)
{
	struct accmem_alloc a, b;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 1024, 0, &b));
	ASSERT_EQ(a.mmap_offset, b.mmap_offset);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	p = accmem_mapped(self->fd, &a, 4096);
	memset(p, 0x5a, 4096);
	munmap(p, 4096);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 1024, 0, &b));
	p = accmem_mapped(self->fd, &b, 4096);
	EXPECT_EQ(-1, accmem_first_nonzero(p + b.address % 4096, 1024));
	munmap(p, 4096);
}

/* A buffer of emulated memory is cached without its pages, which the host could use. */
TEST_F(cache, pages_of_the_host_are_not_kept)
{
	const int64_t before = accmem_param("max_resident_bytes");
	struct accmem_alloc a[16];
	unsigned int i;
	int other;
	char *p;

	if (self->info.backing != ACCMEM_BACKING_EMULATED)
		return;
	ASSERT_EQ(0, accmem_param_set("max_resident_bytes", MIB(64)));
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2),
						ACCMEM_ALLOC_POPULATE, &a[i]));
	}
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	other = accmem_dev_open(variant->path, O_RDWR);
	EXPECT_EQ(0, accmem_alloc_bytes(other, MIB(40), 0, &a[0]));
	p = accmem_mmap(other, &a[0], MIB(40), RW);
	EXPECT_NE(NULL, p);
	for (i = 0; p && i < 20; i++) {
		EXPECT_EQ(0, accmem_try_write(p + MIB(2) * i, 1));
	}
	munmap(p, MIB(40));
	close(other);
	EXPECT_EQ(0, accmem_param_set("max_resident_bytes", before));
}

/* A cached buffer serves only a request with the same arguments. */
TEST_F(cache, only_the_same_kind)
{
	struct accmem_alloc a, b;
	struct accmem_query query;

	ASSERT_EQ(0, pair(self->fd, 4096, 0, &a));
	b = (struct accmem_alloc){ .length = 4096, .alignment = MIB(1) };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &b));
	EXPECT_EQ(0, b.address % MIB(1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, ACCMEM_ALLOC_POPULATE,
					&b));
	if (self->info.backing == ACCMEM_BACKING_EMULATED) {
		EXPECT_EQ(4096, accmem_sysfs(variant->path, "resident_bytes"));
	}
	if (self->info.cache_modes & (1 << ACCMEM_CACHE_UC)) {
		a = (struct accmem_alloc){ .length = 4096,
					   .cache_mode = ACCMEM_CACHE_UC };
		ASSERT_EQ(0, pair(self->fd, 4096, 0, &b));
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &query));
		EXPECT_EQ(ACCMEM_CACHE_UC, query.cache_mode);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
	/* QUERY returns the length of this request */
	ASSERT_EQ(0, pair(self->fd, 8000, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 5000, 0, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &query));
	EXPECT_EQ(5000, query.length);
	EXPECT_EQ(a.usable, query.usable);
}

/* --- requests that fail although enough bytes are free ------------------------ */

/* takes a granule in the middle, so that no run has three quarters of the capacity */
static int split_in_half(int fd, const struct accmem_info *info)
{
	struct accmem_alloc a = { .length = 4096,
				  .flags = ACCMEM_ALLOC_FIXED,
				  .address = info->address_base +
					     info->capacity / 2 };

	return accmem_ioctl_alloc(fd, &a);
}

/* Draining cannot make the run that is missing, so that the caches stay as they are. */
TEST_F(cache, a_request_that_no_cache_can_help_drains_none)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc a, b;
	uint64_t holds = 1;
	unsigned int tries;

	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		close(other);
		return;
	}
	ASSERT_EQ(0, split_in_half(other, &self->info));
	for (tries = 0; tries < 5 && holds; tries++) {
		while (accmem_sysfs(variant->path, "dirty_bytes"))
			usleep(1000);
		ASSERT_EQ(0, pair(self->fd, 4096, 0, &a));
		ASSERT_EQ(-ENOMEM,
			  accmem_alloc_bytes(other, self->info.capacity / 4 * 3,
					     0, &b));
		ASSERT_TRUE(holds_of_pairs(self->fd, variant->path, KIB(4),
					   &holds));
	}
	EXPECT_EQ(0, holds);
	close(other);
}

/* The memory suffices, but not at this alignment: the caches are drained in vain. */
TEST_F(cache, requests_that_fail_drain_others_now_and_then)
{
	struct accmem_alloc a, b = { .flags = ACCMEM_ALLOC_CONTIGUOUS };
	unsigned int i, rounds = 20;
	int other = accmem_opened(variant->path);
	uint64_t start;

	b.length = self->info.capacity / 4;
	b.alignment = self->info.capacity / 2;
	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		close(other);
		return;
	}
	ASSERT_EQ(0, split_in_half(other, &self->info));
	a = (struct accmem_alloc){ .length = 4096,
				   .flags = ACCMEM_ALLOC_FIXED,
				   .address = self->info.address_base };
	ASSERT_EQ(0, accmem_ioctl_alloc(other, &a));
	start = stream_now();
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, pair(self->fd, 8192, 0, &a));
		ASSERT_EQ(-ENOMEM, accmem_ioctl_alloc(other, &b));
	}
	start = stream_now() - start;
	TH_LOG("%u rounds took %llu us", rounds,
	       (unsigned long long)start / 1000);
	EXPECT_LE(2000000 * (rounds - 1), start);
	close(other);
}

ACCMEM_HARNESS_MAIN
