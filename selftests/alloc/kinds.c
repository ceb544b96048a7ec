// SPDX-License-Identifier: GPL-2.0
/*
 * Host memory (ACCMEM_KIND_HOST). The host and the device can access it, it takes no
 * device memory, and ALLOC makes its pages present and charges them to the caller's
 * memory cgroup. Otherwise it behaves like device memory. Every test ends with all
 * memory free.
 */
#include "stream_util.h"

FIXTURE(kinds)
{
	int fd;
	struct accmem_info device;
	struct accmem_info host;
};

ACCMEM_VARIANTS(kinds);

FIXTURE_SETUP(kinds)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_info_of(self->fd, 0, &self->device));
	ASSERT_EQ(0, accmem_info_of(self->fd, ACCMEM_INFO_HOST, &self->host));
}

FIXTURE_TEARDOWN(kinds)
{
	struct accmem_info info;

	ASSERT_EQ(0, accmem_info_of(self->fd, ACCMEM_INFO_HOST, &info));
	EXPECT_EQ(info.capacity, info.free_bytes);
	ASSERT_EQ(0, accmem_info_of(self->fd, 0, &info));
	EXPECT_EQ(info.capacity, info.free_bytes);
	EXPECT_EQ(0, info.context_bytes);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/resident_bytes", 0,
					20000));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));
}

static int alloc_host(int fd, uint64_t length, uint32_t flags,
		      struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length,
				    .flags = flags,
				    .kind = ACCMEM_KIND_HOST };
	return accmem_ioctl_alloc(fd, a);
}

TEST_F(kinds, info_tells_host_memory)
{
	const struct accmem_info *h = &self->host, *d = &self->device;
	struct accmem_info info;

	EXPECT_EQ(ACCMEM_FEATURE_HOST, d->features & ACCMEM_FEATURE_HOST);
	EXPECT_EQ(ACCMEM_FEATURE_HOST, h->features & ACCMEM_FEATURE_HOST);
	EXPECT_EQ(0, h->features & ACCMEM_FEATURE_FIRST_TOUCH);
	EXPECT_EQ(ACCMEM_BACKING_EMULATED, h->backing);
	EXPECT_EQ(ACCMEM_TRANSLATION_MAPPED, h->translation);
	EXPECT_EQ(1, h->nr_carveouts);
	EXPECT_NE(0, h->capacity);
	EXPECT_EQ(h->capacity, h->free_bytes);
	EXPECT_EQ(h->capacity, accmem_sysfs(variant->path, "host/capacity"));
	EXPECT_EQ(d->capacity, accmem_sysfs(variant->path, "capacity"));
	EXPECT_EQ(0, h->address_base % GIB(1));
	EXPECT_LE(d->address_base + d->address_span, h->address_base);
	info = (struct accmem_info){ .size = sizeof(info),
				     .carveout = 1,
				     .flags = ACCMEM_INFO_HOST };
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_INFO, &info));
	EXPECT_EQ(-EINVAL, accmem_info_of(self->fd, 2, &info));
}

/* Counters of the device and of its host memory, with a buffer. */
TEST_F(kinds, takes_no_device_memory)
{
	static const uint64_t lengths[] = { 1,	    2048,   4096,      10000,
					    MIB(1), MIB(2), MIB(5) + 1 };
	struct accmem_alloc a;
	struct accmem_info info;
	struct accmem_query q;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t granules = ALIGN_UP(lengths[i], 4096);

		ASSERT_EQ(0, alloc_host(self->fd, lengths[i], 0, &a));
		EXPECT_EQ(0, a.carveouts);
		EXPECT_LE(self->host.address_base, a.address);
		EXPECT_GT(self->host.address_base + self->host.address_span,
			  a.address);
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
		EXPECT_EQ(ACCMEM_KIND_HOST, q.kind);
		EXPECT_EQ(0, q.carveout);
		ASSERT_EQ(0, accmem_info_of(self->fd, 0, &info));
		EXPECT_EQ(info.capacity, info.free_bytes);
		/* host memory is charged, too */
		EXPECT_EQ(granules, info.context_bytes);
		EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
		EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
		EXPECT_EQ(granules,
			  accmem_sysfs(variant->path, "host/live_bytes"));
		EXPECT_EQ(1, accmem_sysfs(variant->path, "host/buffers"));
		/* the pages are present before the first access */
		EXPECT_LE(granules,
			  accmem_sysfs(variant->path, "host/resident_bytes"));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));
	}
}

TEST_F(kinds, nothing_to_choose_from)
{
	static const uint32_t flags[] = { ACCMEM_ALLOC_CARVEOUT,
					  ACCMEM_ALLOC_HIGH_BANDWIDTH,
					  ACCMEM_ALLOC_LOW_BANDWIDTH };
	struct accmem_alloc a = { .length = 4096,
				  .kind = ACCMEM_KIND_HOST,
				  .carveout = 1 };
	unsigned int i;

	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	for (i = 0; i < ARRAY_SIZE(flags); i++)
		EXPECT_EQ(-EINVAL, alloc_host(self->fd, 4096, flags[i], &a));
	EXPECT_EQ(-EOVERFLOW, alloc_host(self->fd, ~0ull, 0, &a));
	EXPECT_EQ(-EINVAL, alloc_host(self->fd, 0, 0, &a));
	EXPECT_EQ(-ENOMEM,
		  alloc_host(self->fd, self->host.capacity + 1, 0, &a));
	EXPECT_EQ(self->host.capacity, a.free_bytes);
	EXPECT_EQ(0, a.carveouts);
}

/* A mapping shows zeros at first, then what was written, and nothing of other buffers. */
TEST_F(kinds, mapping_shows_it)
{
	static const uint64_t lengths[] = { 100, 4096, MIB(1), MIB(4) };
	struct accmem_alloc a;
	unsigned int i, round;
	uint64_t size;
	char *p;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			size = ALIGN_UP(lengths[i], 4096);
			ASSERT_EQ(0, alloc_host(self->fd, lengths[i], 0, &a));
			p = accmem_mapped(self->fd, &a, size);
			EXPECT_EQ(-1, accmem_first_nonzero(p, size));
			accmem_fill(p, size, i);
			EXPECT_EQ(-1, accmem_check(p, size, i));
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
			/* the mapping keeps the memory */
			EXPECT_EQ(-1, accmem_check(p, size, i));
			munmap(p, size);
		}
	}
}

TEST_F(kinds, pinned_pages_are_quarantined)
{
	struct accmem_alloc a;
	int pipes[2];

	ASSERT_EQ(0, alloc_host(self->fd, MIB(1), 0, &a));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &a, pipes));
	EXPECT_EQ(MIB(1),
		  accmem_sysfs(variant->path, "host/quarantined_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	accmem_unpin(pipes);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/quarantined_bytes",
					0, 20000));
}

TEST_F(kinds, fixed_address_is_of_its_kind)
{
	struct accmem_alloc a = { .length = MIB(1),
				  .flags = ACCMEM_ALLOC_FIXED,
				  .address = self->host.address_base + MIB(8) };

	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.kind = ACCMEM_KIND_HOST;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(self->host.address_base + MIB(8), a.address);
	EXPECT_EQ(-EEXIST, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.address = self->device.address_base + MIB(8);
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
}

/* Cached or pending memory of one kind does not serve requests of another kind. */
TEST_F(kinds, stay_apart)
{
	static const uint64_t lengths[] = { 100, 4096, 65536 };
	struct accmem_query q;
	struct accmem_alloc a;
	unsigned int i, j;
	int err, stream = stream_created(self->fd);

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (j = 0; j < 6; j++) {
			a = (struct accmem_alloc){
				.length = lengths[i],
				.kind = j % 2,
				.flags = ACCMEM_ALLOC_STREAM,
				.stream = stream,
			};
			ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
			ASSERT_EQ(0,
				  accmem_ioctl_query(self->fd, a.address, &q));
			EXPECT_EQ(j % 2, q.kind);
			err = j < 4 ? stream_free(self->fd, a.address, stream,
						  i + 1) :
				      accmem_ioctl_free(self->fd, a.address);
			ASSERT_EQ(0, err);
		}
	}
	close(stream);
}

TEST_F(kinds, realloc_keeps_the_kind)
{
	uint64_t size = MIB(1);
	struct accmem_realloc r;
	struct accmem_alloc a;
	struct accmem_query q;
	unsigned int i;
	char *p;

	ASSERT_EQ(0, alloc_host(self->fd, size, ACCMEM_ALLOC_RESIZABLE, &a));
	ASSERT_EQ(0, fill_at(self->fd, a.address, size, 3));
	r.address = a.address;
	for (i = 2; i < 6; i++) {
		struct accmem_alloc wall;

		/* the last buffers have to move */
		if (i == 4)
			ASSERT_EQ(0, alloc_host(self->fd, MIB(1), 0, &wall));
		ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, r.address, i * size,
						  0, &r));
		ASSERT_EQ(0, accmem_ioctl_query(self->fd, r.address, &q));
		EXPECT_EQ(ACCMEM_KIND_HOST, q.kind);
		a.mmap_offset = r.mmap_offset;
		p = accmem_mapped(self->fd, &a, i * size);
		EXPECT_EQ(-1, accmem_check(p, size, 3));
		EXPECT_EQ(-1, accmem_first_nonzero(p + size, (i - 1) * size));
		munmap(p, i * size);
		if (i == 4)
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, wall.address));
	}
	EXPECT_LE(5 * size,
		  (uint64_t)accmem_sysfs(variant->path, "host/resident_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
	EXPECT_EQ(-ENOMEM,
		  accmem_ioctl_realloc(self->fd, r.address,
				       self->host.capacity * 2, 0, &r));
	EXPECT_EQ(self->host.capacity - 5 * size, r.free_bytes);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
}

TEST_F(kinds, limits_count_both)
{
	int64_t limit = accmem_param("max_bytes_per_context");
	struct accmem_alloc host, device, more;

	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(6)));
	EXPECT_EQ(0, alloc_host(self->fd, MIB(2), 0, &host));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &device));
	EXPECT_EQ(-EDQUOT, alloc_host(self->fd, MIB(4), 0, &more));
	EXPECT_EQ(-EDQUOT, accmem_alloc_bytes(self->fd, MIB(4), 0, &more));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, host.address));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, device.address));
}

/* A failed ALLOC of host memory leaves nothing behind. */
TEST_F(kinds, resident_limit_is_enomem)
{
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("max_resident_bytes", MIB(4)));
	EXPECT_EQ(-ENOMEM, alloc_host(self->fd, MIB(8), 0, &a));
	EXPECT_EQ(0, accmem_param_set("max_resident_bytes", 0));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/resident_bytes"));
	ASSERT_EQ(0, alloc_host(self->fd, MIB(8), 0, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Freed memory counts as resident until its pins are gone, and no longer. */
TEST_F(kinds, resident_limit_leaves_what_is_no_longer_pinned)
{
	struct accmem_alloc a, b;
	struct accmem_realloc r;
	int pipes[2];

	ASSERT_EQ(0, accmem_param_set("max_resident_bytes", MIB(4)));
	EXPECT_EQ(0, alloc_host(self->fd, MIB(4), 0, &a));
	EXPECT_EQ(0, accmem_free_pinned(self->fd, &a, pipes));
	EXPECT_EQ(-ENOMEM, alloc_host(self->fd, MIB(4), 0, &a));
	accmem_unpin(pipes);
	EXPECT_EQ(0, alloc_host(self->fd, MIB(4), 0, &a));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));

	EXPECT_EQ(0, alloc_host(self->fd, MIB(2), ACCMEM_ALLOC_RESIZABLE, &a));
	EXPECT_EQ(0, alloc_host(self->fd, MIB(2), 0, &b));
	EXPECT_EQ(0, accmem_free_pinned(self->fd, &b, pipes));
	accmem_unpin(pipes);
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, a.address, MIB(4), 0, &r));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, r.address));
	EXPECT_EQ(0, accmem_param_set("max_resident_bytes", 0));
}

/* the bytes charged to the memory cgroup of this process, or -1 */
static int64_t cgroup_bytes(void)
{
	char line[256], file[512], text[64], *end;

	if (accmem_read_file("/proc/self/cgroup", line, sizeof(line)) <= 0)
		return -1;
	end = strchr(line, '\n');
	if (end)
		*end = '\0';
	/* the parent's value if the group has no controller */
	while (!strncmp(line, "0::/", 4) && line[4]) {
		snprintf(file, sizeof(file), "/sys/fs/cgroup%s/memory.current",
			 line + 3);
		if (accmem_read_file(file, text, sizeof(text)) > 0)
			return atoll(text);
		*strrchr(line, '/') = '\0';
	}
	return -1;
}

TEST_F(kinds, charged_to_the_memory_cgroup)
{
	struct accmem_alloc a;
	int64_t before, with, after;

	before = cgroup_bytes();
	ASSERT_LE(0, before);
	ASSERT_EQ(0, alloc_host(self->fd, MIB(32), 0, &a));
	with = cgroup_bytes();
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	after = cgroup_bytes();
	/* other charges change by chance */
	EXPECT_LE((int64_t)MIB(28), with - before);
	EXPECT_GE((int64_t)MIB(4), after - before);
}

/* A process that is killed leaves nothing behind. */
static int leave_behind(void *arg)
{
	struct accmem_alloc a;
	int fd = accmem_opened(arg);

	ACCMEM_MUST(!alloc_host(fd, MIB(3), 0, &a));
	ACCMEM_MUST(accmem_mmap(fd, &a, MIB(3), RW));
	ACCMEM_MUST(!alloc_host(fd, 100, 0, &a));
	_exit(0);
}

TEST_F(kinds, goes_with_its_context)
{
	EXPECT_EQ(0, accmem_in_child(leave_behind, (void *)variant->path));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/live_bytes", 0,
					20000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/resident_bytes", 0,
					20000));
}

TEST_F(kinds, waits_for_a_limit)
{
	int64_t limit = accmem_param("max_bytes_per_context");
	struct accmem_alloc held, a = { .length = MIB(2),
					.kind = ACCMEM_KIND_HOST,
					.flags = ACCMEM_ALLOC_WAIT };

	ASSERT_EQ(0, alloc_host(self->fd, MIB(2), 0, &held));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(3)));
	a.deadline_ns = self->host.now_ns + 1;
	EXPECT_EQ(-ETIMEDOUT, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, held.address));
	a.deadline_ns = 0;
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Shared memory is charged on both sides, and waits for room on both. */
TEST_F(kinds, waits_for_a_limit_of_both_sides)
{
	int64_t limit = accmem_param("max_bytes_per_context");
	struct accmem_alloc held, a = { .length = MIB(8),
					.kind = ACCMEM_KIND_SHARED,
					.flags = ACCMEM_ALLOC_WAIT };
	struct accmem_info info;

	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(12)));
	EXPECT_EQ(-EDQUOT, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(17)));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &held));
	ASSERT_EQ(0, accmem_info_of(self->fd, 0, &info));
	a.deadline_ns = info.now_ns + 200000000;
	EXPECT_EQ(-ETIMEDOUT, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, held.address));
	a.deadline_ns = 0;
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
