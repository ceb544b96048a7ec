// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory: whoever touches a piece of it, the CPU or the device, finds what was
 * written last, wherever the piece is; what nobody has written to since it was copied
 * moves without a copy; what somebody has pinned stays. Every test ends with all memory
 * free, on both sides.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/io_uring.h>

#include "kselftest_harness.h"
#include "accmem_util.h"
#include "stream_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define PIECE MIB(2)
/* two pieces and a short one */
#define LENGTH (2 * PIECE + KIB(12))

FIXTURE(shared)
{
	int fd;
	struct accmem_alloc a;
	char *map;
	/* counters when the test began */
	int64_t to_device, to_host, clean;
};

ACCMEM_VARIANTS(shared);

static int info_of(int fd, uint32_t flags, struct accmem_info *info)
{
	*info = (struct accmem_info){ .size = sizeof(*info), .flags = flags };
	return accmem_ioctl(fd, ACCMEM_IOC_INFO, info);
}

static int alloc_shared(int fd, uint64_t length, struct accmem_alloc *a)
{
	*a = (struct accmem_alloc){ .length = length,
				    .kind = ACCMEM_KIND_SHARED };
	return accmem_ioctl_alloc(fd, a);
}

FIXTURE_SETUP(shared)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, alloc_shared(self->fd, LENGTH, &self->a));
	self->map = accmem_mmap_huge(self->fd, &self->a, LENGTH);
	ASSERT_NE(NULL, self->map);
	self->to_device = accmem_sysfs(variant->path, "shared_to_device_bytes");
	self->to_host = accmem_sysfs(variant->path, "shared_to_host_bytes");
	self->clean = accmem_sysfs(variant->path, "shared_clean_moves");
}

FIXTURE_TEARDOWN(shared)
{
	struct accmem_info info;

	if (self->map)
		munmap(self->map, LENGTH);
	if (self->a.address)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, info_of(self->fd, 0, &info));
	EXPECT_EQ(info.capacity, info.free_bytes);
	EXPECT_EQ(0, info.context_bytes);
	ASSERT_EQ(0, info_of(self->fd, ACCMEM_INFO_HOST, &info));
	EXPECT_EQ(info.capacity, info.free_bytes);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/resident_bytes", 0,
					20000));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));
}

/* bytes, or moves, since the test began */
#define TO_DEVICE()                                              \
	(accmem_sysfs(variant->path, "shared_to_device_bytes") - \
	 self->to_device)
#define TO_HOST() \
	(accmem_sysfs(variant->path, "shared_to_host_bytes") - self->to_host)
#define CLEAN() \
	(accmem_sysfs(variant->path, "shared_clean_moves") - self->clean)

static int device_access(int fd, uint64_t address, void *data, uint64_t length,
			 uint32_t op)
{
	struct accmem_access access = {
		.size = sizeof(access),
		.address = address,
		.length = length,
		.data = op == ACCMEM_ACCESS_FILL ? *(unsigned char *)data :
						   (uintptr_t)data,
		.op = op,
	};

	return accmem_ioctl_access(fd, &access);
}

static int device_read(int fd, uint64_t address, void *data, uint64_t length)
{
	return device_access(fd, address, data, length, ACCMEM_ACCESS_READ);
}

static int device_write(int fd, uint64_t address, void *data, uint64_t length)
{
	return device_access(fd, address, data, length, ACCMEM_ACCESS_WRITE);
}

/* one byte, or -errno */
static int device_get(int fd, uint64_t address)
{
	unsigned char byte;
	int ret = device_read(fd, address, &byte, 1);

	return ret ?: byte;
}

static int device_set(int fd, uint64_t address, unsigned char byte)
{
	return device_write(fd, address, &byte, 1);
}

static int prefetch(int fd, uint64_t address, uint64_t length, uint32_t flags)
{
	struct accmem_prefetch req = { .size = sizeof(req),
				       .flags = flags,
				       .address = address,
				       .length = length };

	return accmem_ioctl(fd, ACCMEM_IOC_PREFETCH, &req);
}

static int advise(int fd, uint64_t address, uint64_t length, uint32_t advice)
{
	struct accmem_advise req = { .size = sizeof(req),
				     .address = address,
				     .length = length,
				     .advice = advice };

	return accmem_ioctl(fd, ACCMEM_IOC_ADVISE, &req);
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static char load(const volatile char *p)
{
	return *p;
}

/* --- what it is ----------------------------------------------------------- */

TEST_F(shared, it_has_memory_on_both_sides)
{
	struct accmem_info device, host;
	struct accmem_query q;

	ASSERT_EQ(0, info_of(self->fd, 0, &device));
	ASSERT_EQ(0, info_of(self->fd, ACCMEM_INFO_HOST, &host));
	EXPECT_TRUE(device.features & ACCMEM_FEATURE_SHARED);
	EXPECT_EQ(LENGTH, device.capacity - device.free_bytes);
	EXPECT_EQ(LENGTH, host.capacity - host.free_bytes);
	/* and, where folios have owners, what is left of the last one */
	EXPECT_LE(2 * LENGTH, device.context_bytes);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, self->a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
	EXPECT_EQ(LENGTH, q.usable);
	EXPECT_EQ(0, self->a.address % PIECE);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/resident_bytes"));
}

TEST_F(shared, small_ones_have_a_granule_each)
{
	static const uint64_t lengths[] = { 1, 100, 2048, 4096, 5000 };
	struct accmem_alloc a[ARRAY_SIZE(lengths)];
	unsigned int i;
	char *map;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, alloc_shared(self->fd, lengths[i], &a[i]));
		EXPECT_EQ(0, a[i].address % 4096);
		EXPECT_EQ(ALIGN_UP(lengths[i], 4096), a[i].footprint);
		map = accmem_mmap(self->fd, &a[i], 1, RW);
		ASSERT_NE(NULL, map);
		map[0] = 'a' + i;
		munmap(map, 4096);
	}
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ('a' + i, device_get(self->fd, a[i].address));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
}

TEST_F(shared, it_is_zero_on_both_sides_and_nothing_is_copied)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	memset(data, 1, LENGTH);
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(self->map, LENGTH));
	EXPECT_EQ(0, TO_DEVICE());
	EXPECT_EQ(0, TO_HOST());
	free(data);
}

/* what it had is not to be found by who gets its memory next */
TEST_F(shared, the_next_owner_finds_zeroes)
{
	char *data = malloc(LENGTH);
	struct accmem_alloc a;

	ASSERT_NE(NULL, data);
	memset(data, 0x5a, LENGTH);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	memset(self->map, 0x5b, LENGTH);
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	self->a.address = 0;
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &a));
	ASSERT_EQ(0, device_read(self->fd, a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_EQ(0, alloc_shared(self->fd, LENGTH, &a));
	ASSERT_EQ(0, device_read(self->fd, a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_first_nonzero(data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	free(data);
}

TEST_F(shared, what_it_cannot_be_is_told)
{
	struct accmem_alloc a = { .length = 4096, .kind = ACCMEM_KIND_SHARED };

	a.flags = ACCMEM_ALLOC_RESIZABLE;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a.reserve = 8192;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a = (struct accmem_alloc){ .length = 4096, .kind = ACCMEM_KIND_SHARED };
	a.cache_mode = ACCMEM_CACHE_WC;
	EXPECT_EQ(-EOPNOTSUPP, accmem_ioctl_alloc(self->fd, &a));
	a.cache_mode = ACCMEM_CACHE_WB;
	a.kind = ACCMEM_KIND_SHARED + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.kind = ACCMEM_KIND_SHARED;
	a.alignment = 3;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a.alignment = 0;
	a.carveout = 7;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(-EPERM, accmem_ioctl_realloc(self->fd, self->a.address, 8192,
					       0, NULL));
	a = (struct accmem_alloc){ .length = GIB(64),
				   .kind = ACCMEM_KIND_SHARED };
	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &a));
}

/* --- bytes ---------------------------------------------------------------- */

TEST_F(shared, the_device_reads_what_the_cpu_wrote)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(self->map, LENGTH, 1);
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 1));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	/* and the CPU still does */
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 1));
	EXPECT_EQ(0, TO_HOST());
	free(data);
}

TEST_F(shared, the_cpu_reads_what_the_device_wrote)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 2);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(0, TO_HOST());
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 2));
	EXPECT_EQ(LENGTH, TO_HOST());
	EXPECT_EQ(0, TO_DEVICE());
	free(data);
}

/* each side changes some bytes of a piece that the other one has written */
TEST_F(shared, both_write_to_one_piece_by_turns)
{
	uint64_t at = PIECE + 5000;
	int i;

	for (i = 1; i < 20; i++) {
		self->map[at + i] = i;
		ASSERT_EQ(i, device_get(self->fd, self->a.address + at + i));
		ASSERT_EQ(0, device_set(self->fd, self->a.address + at - i, i));
		ASSERT_EQ(i, self->map[at - i]);
	}
	for (i = 1; i < 20; i++) {
		EXPECT_EQ(i, self->map[at + i]);
		EXPECT_EQ(i, device_get(self->fd, self->a.address + at - i));
	}
}

/* a page that was shown for reading, and is written to without another fault */
TEST_F(shared, a_write_to_what_was_read_is_not_lost)
{
	int i;

	for (i = 1; i < 10; i++) {
		ASSERT_EQ(i - 1, load(self->map));
		self->map[0] = i;
		ASSERT_EQ(i, device_get(self->fd, self->a.address));
		/* valid on both sides now, and shown read-only */
		ASSERT_EQ(i, load(self->map));
		ASSERT_EQ(i, device_get(self->fd, self->a.address));
	}
}

struct model {
	int fd;
	uint64_t address;
	char *map;
	char *wanted;
	char *got;
};

/* one call that both sides could make; whether it did what it should */
static bool random_call(struct model *m, uint64_t *seed)
{
	uint64_t at = accmem_random(seed) % LENGTH;
	uint64_t most = accmem_random(seed) % 8 ? 5000 : LENGTH;
	uint64_t length = accmem_random(seed) % most + 1;
	unsigned char byte = accmem_random(seed);

	if (length > LENGTH - at)
		length = LENGTH - at;
	switch (accmem_random(seed) % 8) {
	case 0:
	case 1:
		memset(m->map + at, byte, length);
		memset(m->wanted + at, byte, length);
		return true;
	case 2:
		memset(m->wanted + at, byte, length);
		return !device_access(m->fd, m->address + at, &byte, length,
				      ACCMEM_ACCESS_FILL);
	case 3:
		memset(m->got, byte, length);
		memset(m->wanted + at, byte, length);
		return !device_write(m->fd, m->address + at, m->got, length);
	case 4:
		return !device_read(m->fd, m->address + at, m->got, length) &&
		       !memcmp(m->got, m->wanted + at, length);
	case 5:
		return !prefetch(m->fd, m->address + at, length, byte % 2);
	case 6:
		return !advise(m->fd, m->address + at, length, byte % 2);
	default:
		return !memcmp(m->map + at, m->wanted + at, length);
	}
}

TEST_F(shared, random_calls_of_both_sides_agree_with_a_model)
{
	unsigned int i, nr = accmem_scale(2000);
	uint64_t seed = accmem_seed();
	struct model m = {
		.fd = self->fd,
		.address = self->a.address,
		.map = self->map,
		.wanted = calloc(1, LENGTH),
		.got = malloc(LENGTH),
	};

	ASSERT_NE(NULL, m.wanted);
	ASSERT_NE(NULL, m.got);
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(random_call(&m, &seed))
	TH_LOG("call %u", i);
	EXPECT_EQ(0, memcmp(m.map, m.wanted, LENGTH));
	ASSERT_EQ(0, device_read(m.fd, m.address, m.got, LENGTH));
	EXPECT_EQ(0, memcmp(m.got, m.wanted, LENGTH));
	free(m.wanted);
	free(m.got);
}

/* --- clean pieces --------------------------------------------------------- */

TEST_F(shared, a_clean_piece_moves_without_a_copy)
{
	int64_t to_device;
	unsigned char byte;

	memset(self->map, 3, PIECE);
	ASSERT_EQ(3, device_get(self->fd, self->a.address));
	to_device = TO_DEVICE();
	EXPECT_EQ(PIECE, to_device);
	/* the CPU reads it, the device reads it: nobody has to copy */
	for (byte = 0; byte < 5; byte++) {
		EXPECT_EQ(3, load(self->map + 4096 * byte));
		EXPECT_EQ(3, device_get(self->fd, self->a.address + byte));
	}
	EXPECT_EQ(to_device, TO_DEVICE());
	EXPECT_EQ(0, TO_HOST());
	/* the device writes to it: the host's copy goes as it is */
	EXPECT_EQ(0, device_set(self->fd, self->a.address, 4));
	EXPECT_EQ(to_device, TO_DEVICE());
	EXPECT_EQ(1, CLEAN());
	EXPECT_EQ(4, load(self->map));
	EXPECT_EQ(PIECE, TO_HOST());
}

TEST_F(shared, only_the_piece_that_is_touched_moves)
{
	memset(self->map, 3, LENGTH);
	ASSERT_EQ(3, device_get(self->fd, self->a.address + PIECE));
	EXPECT_EQ(PIECE, TO_DEVICE());
	ASSERT_EQ(3, device_get(self->fd, self->a.address + 2 * PIECE));
	EXPECT_EQ(PIECE + KIB(12), TO_DEVICE());
}

TEST_F(shared, a_clean_piece_costs_two_faults)
{
	long before;
	int i;

	memset(self->map, 3, PIECE);
	ASSERT_EQ(3, device_get(self->fd, self->a.address));
	before = faults();
	for (i = 0; i < 512; i++)
		EXPECT_EQ(3, load(self->map + 4096 * i));
	/* one to read it, one to write to it */
	self->map[0] = 4;
	self->map[PIECE - 1] = 4;
	EXPECT_GE(2, faults() - before);
}

/* --- hints ---------------------------------------------------------------- */

TEST_F(shared, prefetch_moves_before_the_touch)
{
	uint64_t address = self->a.address;

	memset(self->map, 5, LENGTH);
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, 0));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(5, device_get(self->fd, address + PIECE));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(0, device_set(self->fd, address + 1, 6));
	/* a byte of it is enough for a piece */
	EXPECT_EQ(0, prefetch(self->fd, address + PIECE - 1, 1,
			      ACCMEM_PREFETCH_HOST));
	EXPECT_EQ(PIECE, TO_HOST());
	EXPECT_EQ(6, self->map[1]);
	EXPECT_EQ(PIECE, TO_HOST());
	/* it is where it is to be */
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, 0));
	EXPECT_EQ(0, prefetch(self->fd, address, LENGTH, ACCMEM_PREFETCH_HOST));
	EXPECT_EQ(LENGTH, TO_DEVICE());
	EXPECT_EQ(PIECE, TO_HOST());
}

TEST_F(shared, what_is_to_stay_stays_on_the_host)
{
	uint64_t address = self->a.address;
	int i;

	ASSERT_EQ(0, device_set(self->fd, address + 1, 9));
	ASSERT_EQ(0, advise(self->fd, address, 1, ACCMEM_ADVICE_STAY));
	for (i = 1; i < 10; i++) {
		self->map[0] = i;
		ASSERT_EQ(i, device_get(self->fd, address));
		ASSERT_EQ(0, device_set(self->fd, address + 1, i));
		ASSERT_EQ(i, load(self->map + 1));
	}
	EXPECT_EQ(0, prefetch(self->fd, address, PIECE, 0));
	EXPECT_EQ(0, TO_DEVICE());
	EXPECT_EQ(PIECE, TO_HOST());
	ASSERT_EQ(0, advise(self->fd, address, 1, ACCMEM_ADVICE_MOVE));
	EXPECT_EQ(9, device_get(self->fd, address));
	EXPECT_EQ(PIECE, TO_DEVICE());
}

TEST_F(shared, wrong_hints_are_told)
{
	uint64_t address = self->a.address;
	struct accmem_prefetch p = { .size = sizeof(p),
				     .address = address,
				     .length = 1 };
	struct accmem_advise v = { .size = sizeof(v),
				   .address = address,
				   .length = 1 };
	struct accmem_alloc a;
	int other = accmem_dev_open(variant->path, O_RDWR);

	EXPECT_EQ(-EINVAL, prefetch(self->fd, address, 0, 0));
	EXPECT_EQ(-EINVAL, prefetch(self->fd, address, 1, 2));
	EXPECT_EQ(-EOVERFLOW, prefetch(self->fd, address, UINT64_MAX, 0));
	EXPECT_EQ(-ENXIO, prefetch(self->fd, address, LENGTH + 1, 0));
	EXPECT_EQ(-ENXIO, prefetch(self->fd, address + 1, LENGTH, 0));
	EXPECT_EQ(-ENOENT, prefetch(self->fd, 0, 1, 0));
	EXPECT_EQ(-ENOENT, prefetch(other, address, 1, 0));
	EXPECT_EQ(-EINVAL, advise(self->fd, address, 0, 0));
	EXPECT_EQ(-EINVAL, advise(self->fd, address, 1, 2));
	EXPECT_EQ(-EOVERFLOW, advise(self->fd, address, UINT64_MAX, 0));
	EXPECT_EQ(-ENXIO, advise(self->fd, address, LENGTH + 1, 0));
	EXPECT_EQ(-ENOENT, advise(other, address, 1, 0));
	close(other);
	p.reserved = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_PREFETCH, &p));
	p.reserved = 0;
	p.size = 8;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_PREFETCH, &p));
	v.reserved = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, &v));
	v.reserved = 0;
	v.flags = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, &v));
	EXPECT_EQ(-EFAULT,
		  accmem_ioctl(self->fd, ACCMEM_IOC_ADVISE, (void *)8));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	EXPECT_EQ(-EOPNOTSUPP, prefetch(self->fd, a.address, 1, 0));
	EXPECT_EQ(-EOPNOTSUPP, advise(self->fd, a.address, 1, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(-ENOENT, prefetch(self->fd, a.address, 1, 0));
}

#define MANY (24 * PIECE)

/*
 * A child brings pieces to the host that have been written to by the device, and is
 * killed when the first has come. Bytes that came; or -errno.
 */
static int64_t killed_prefetch(const char *path, int fd, uint64_t address)
{
	int64_t before = accmem_sysfs(path, "shared_to_host_bytes");
	unsigned char byte = 1;
	pid_t pid;
	int err = device_access(fd, address, &byte, MANY, ACCMEM_ACCESS_FILL);

	if (err)
		return err;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid)
		_exit(-prefetch(fd, address, MANY, ACCMEM_PREFETCH_HOST));
	while (accmem_sysfs(path, "shared_to_host_bytes") == before &&
	       !waitpid(pid, &err, WNOHANG))
		;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return accmem_sysfs(path, "shared_to_host_bytes") - before;
}

/* It may be over before the signal comes, but not each time. */
TEST_F(shared, a_prefetch_that_is_killed_ends)
{
	struct accmem_alloc a;
	int64_t moved = MANY;
	int i;

	ASSERT_EQ(0, alloc_shared(self->fd, MANY, &a));
	for (i = 0; i < 50 && moved == (int64_t)MANY; i++)
		moved = killed_prefetch(variant->path, self->fd, a.address);
	EXPECT_LT(0, moved);
	EXPECT_GT((int64_t)MANY, moved);
	EXPECT_EQ(1, device_get(self->fd, a.address + MANY - 1));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* --- others --------------------------------------------------------------- */

/* nearly all host memory, by shared memory; false where the device has not as much */
static bool alloc_nearly_all(int fd, struct accmem_alloc *a)
{
	struct accmem_info device, host;

	return !info_of(fd, 0, &device) &&
	       !info_of(fd, ACCMEM_INFO_HOST, &host) &&
	       host.free_bytes + PIECE < device.free_bytes &&
	       !alloc_shared(fd, (host.free_bytes / PIECE - 1) * PIECE, a);
}

/* A request that is about to fail for lack of host memory has what is due finished. */
TEST_F(shared, host_memory_whose_free_is_due)
{
	unsigned int i, rounds = accmem_scale(10);
	int fences = fence_device(), file;
	struct accmem_alloc all, b;
	uint32_t id;

	ASSERT_LE(0, fences);
	for (i = 0; i < rounds + 1; i++) {
		if (!alloc_nearly_all(self->fd, &all))
			return;
		EXPECT_EQ(-ENOMEM, alloc_shared(self->fd, 2 * PIECE, &b));
		file = fence_create(fences, &id);
		ASSERT_LE(0, file);
		ASSERT_EQ(0, fence_free(self->fd, all.address, file));
		ASSERT_EQ(0, fence_signal(fences, id, 0, 0));
		ASSERT_EQ(0, alloc_shared(self->fd, 2 * PIECE, &b));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
		close(file);
	}
	close(fences);
}

/* Nor is its own quarantine in the way, where nobody has a page of it any more. */
TEST_F(shared, host_memory_in_quarantine)
{
	struct accmem_alloc all, b;
	struct iovec part = { .iov_len = 4096 };
	int fds[2];

	if (!alloc_nearly_all(self->fd, &all))
		return;
	ASSERT_EQ(0, pipe(fds));
	part.iov_base = accmem_mmap(self->fd, &all, 4096, RW);
	ASSERT_NE(NULL, part.iov_base);
	*(char *)part.iov_base = 1;
	ASSERT_EQ(4096, vmsplice(fds[1], &part, 1, 0));
	munmap(part.iov_base, 4096);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, all.address));
	/* looked at seldom by then */
	sleep(2);
	EXPECT_EQ(-ENOMEM, alloc_shared(self->fd, 2 * PIECE, &b));
	close(fds[0]);
	close(fds[1]);
	ASSERT_EQ(0, alloc_shared(self->fd, 2 * PIECE, &b));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

/* what lies before the piece that stays is written, and counted */
TEST_F(shared, an_access_ends_at_a_piece_that_stays)
{
	struct iovec part = { .iov_base = self->map + PIECE, .iov_len = 4096 };
	struct accmem_access fill = { .address = self->a.address + PIECE - 100,
				      .length = 200,
				      .op = ACCMEM_ACCESS_FILL,
				      .data = 9 };
	int fds[2];

	memset(self->map, 7, LENGTH);
	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(4096, vmsplice(fds[1], &part, 1, 0));
	EXPECT_EQ(-EBUSY, accmem_ioctl_access(self->fd, &fill));
	EXPECT_EQ(100, fill.done);
	EXPECT_EQ(7, load(self->map + PIECE - 101));
	EXPECT_EQ(9, load(self->map + PIECE - 100));
	EXPECT_EQ(9, load(self->map + PIECE - 1));
	EXPECT_EQ(7, load(self->map + PIECE));
	close(fds[0]);
	close(fds[1]);
}

TEST_F(shared, a_pinned_page_stays)
{
	struct iovec part = { .iov_base = self->map, .iov_len = 4096 };
	char page[4096];
	int fds[2];

	memset(self->map, 7, LENGTH);
	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(4096, vmsplice(fds[1], &part, 1, 0));
	EXPECT_EQ(-EBUSY, device_get(self->fd, self->a.address));
	EXPECT_EQ(-EBUSY, device_set(self->fd, self->a.address + 1, 1));
	EXPECT_EQ(-EBUSY, prefetch(self->fd, self->a.address, LENGTH, 0));
	EXPECT_EQ(0, TO_DEVICE());
	/* nothing is lost of it, and others move */
	EXPECT_EQ(7, load(self->map + 1));
	self->map[1] = 8;
	EXPECT_EQ(7, device_get(self->fd, self->a.address + PIECE));
	ASSERT_EQ(4096, read(fds[0], page, 4096));
	EXPECT_EQ(8, page[1]);
	EXPECT_EQ(8, device_get(self->fd, self->a.address + 1));
	close(fds[0]);
	close(fds[1]);
}

/* io_uring has the pages until they are unregistered; 0 or -errno */
static int register_buffer(void *p, size_t size, int *ring)
{
	struct io_uring_params params = {};
	struct iovec part = { .iov_base = p, .iov_len = size };
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &limit);
	*ring = syscall(SYS_io_uring_setup, 1, &params);
	if (*ring < 0)
		return -errno;
	return syscall(SYS_io_uring_register, *ring, IORING_REGISTER_BUFFERS,
		       &part, 1) ?
		       -errno :
		       0;
}

/* A pin that nobody gives back is refused, or it has the page stay. */
TEST_F(shared, a_pin_for_good_is_refused_or_stays)
{
	int ring, err;

	self->map[0] = 7;
	err = register_buffer(self->map, 4096, &ring);
	if (ring < 0)
		SKIP(return, "this kernel has no io_uring");
	/* 6.1 takes no file's pages */
	if (err && err != -EOPNOTSUPP)
		EXPECT_EQ(-EFAULT, err);
	EXPECT_EQ(err ? 7 : -EBUSY, device_get(self->fd, self->a.address));
	/* closing gives the page back some time later */
	syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL,
		0);
	EXPECT_EQ(7, device_get(self->fd, self->a.address));
	close(ring);
}

/* the kernel's own faults bring it back as well */
TEST_F(shared, read_and_write_reach_it_wherever_it_is)
{
	char *data = malloc(LENGTH);
	int fd = memfd_create("shared", 0);

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 3);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(LENGTH, pwrite(fd, self->map, LENGTH, 0));
	memset(data, 0, LENGTH);
	ASSERT_EQ(LENGTH, pread(fd, data, LENGTH, 0));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 3));
	memset(data, 1, LENGTH);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(LENGTH, pread(fd, self->map, LENGTH, 0));
	ASSERT_EQ(0, device_read(self->fd, self->a.address, data, LENGTH));
	EXPECT_EQ(-1, accmem_check(data, LENGTH, 3));
	close(fd);
	free(data);
}

/* nor is one of it handed out for one of the other */
TEST_F(shared, a_freed_buffer_of_device_memory_is_none)
{
	struct accmem_alloc a = { .length = 4096, .alignment = 4096 };
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.kind = ACCMEM_KIND_SHARED;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	a.kind = ACCMEM_KIND_DEVICE;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_DEVICE, q.kind);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(shared, the_call_s_own_memory_may_be_shared)
{
	/* the device writes what the CPU has in the same piece, and reads to there */
	memcpy(self->map, "hello", 6);
	ASSERT_EQ(0,
		  device_write(self->fd, self->a.address + 100, self->map, 6));
	EXPECT_STREQ("hello", self->map + 100);
	ASSERT_EQ(0, device_read(self->fd, self->a.address + 100,
				 self->map + 200, 6));
	EXPECT_STREQ("hello", self->map + 200);
	EXPECT_EQ('h', device_get(self->fd, self->a.address + 200));
}

TEST_F(shared, mappings_show_the_same_wherever_they_are)
{
	char *second = accmem_mmap(self->fd, &self->a, LENGTH, RW);
	char *third = accmem_mmap(self->fd, &self->a, LENGTH, PROT_READ);

	ASSERT_NE(NULL, second);
	ASSERT_NE(NULL, third);
	self->map[0] = 1;
	second[1] = 2;
	EXPECT_EQ(2, device_get(self->fd, self->a.address + 1));
	EXPECT_EQ(1, load(third));
	ASSERT_EQ(0, device_set(self->fd, self->a.address, 3));
	EXPECT_EQ(3, load(third));
	EXPECT_EQ(3, load(second));
	second[0] = 4;
	EXPECT_EQ(4, load(self->map));
	EXPECT_EQ(SIGSEGV, accmem_try_write(third, 1));
	ASSERT_EQ(0, mprotect(self->map, LENGTH, PROT_READ));
	EXPECT_EQ(4, device_get(self->fd, self->a.address));
	EXPECT_EQ(4, load(self->map));
	ASSERT_EQ(0, mprotect(self->map, LENGTH, RW));
	self->map[0] = 5;
	EXPECT_EQ(5, device_get(self->fd, self->a.address));
	munmap(second, LENGTH);
	munmap(third, LENGTH);
}

TEST_F(shared, a_child_writes_to_the_same)
{
	pid_t pid;

	self->map[0] = 1;
	ASSERT_EQ(1, device_get(self->fd, self->a.address));
	pid = fork();
	if (!pid) {
		self->map[0] = 2;
		_exit(load(self->map) != 2 ||
		      device_set(self->fd, self->a.address + 1, 3));
	}
	EXPECT_EQ(0, accmem_wait_child(pid));
	EXPECT_EQ(2, load(self->map));
	EXPECT_EQ(3, load(self->map + 1));
}

TEST_F(shared, a_mapping_outlives_free)
{
	char *data = malloc(LENGTH);

	ASSERT_NE(NULL, data);
	accmem_fill(data, LENGTH, 4);
	ASSERT_EQ(0, device_write(self->fd, self->a.address, data, LENGTH));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-ENOENT, device_get(self->fd, self->a.address));
	self->a.address = 0;
	EXPECT_EQ(-1, accmem_check(self->map, LENGTH, 4));
	self->map[0] = 1;
	EXPECT_EQ(LENGTH, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(LENGTH, accmem_sysfs(variant->path, "host/detached_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	free(data);
}

/* what becomes of one side becomes of the other */
TEST_F(shared, both_sides_wait_for_a_position)
{
	static const char *const states[] = { "pending_bytes", "detached_bytes",
					      "live_bytes" };
	int stream = stream_create(self->fd);
	unsigned int i;
	char host[64];

	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 1));
	self->a.address = 0;
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		snprintf(host, sizeof(host), "host/%s", states[i]);
		EXPECT_EQ(i ? 0 : LENGTH,
			  accmem_sysfs(variant->path, states[i]));
		EXPECT_EQ(i ? 0 : LENGTH, accmem_sysfs(variant->path, host));
	}
	ASSERT_EQ(0, stream_signal(stream, 1));
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		snprintf(host, sizeof(host), "host/%s", states[i]);
		EXPECT_EQ(i == 1 ? LENGTH : 0,
			  accmem_sysfs(variant->path, states[i]));
		EXPECT_EQ(i == 1 ? LENGTH : 0,
			  accmem_sysfs(variant->path, host));
	}
	close(stream);
}

TEST_F(shared, a_pin_outlives_free_and_the_mapping)
{
	struct iovec part = { .iov_base = self->map, .iov_len = 4096 };
	char page[4096];
	int fds[2];

	memset(self->map, 7, 4096);
	ASSERT_EQ(0, pipe(fds));
	ASSERT_EQ(4096, vmsplice(fds[1], &part, 1, 0));
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	self->a.address = 0;
	EXPECT_EQ(LENGTH,
		  accmem_sysfs(variant->path, "host/quarantined_bytes"));
	ASSERT_EQ(4096, read(fds[0], page, 4096));
	EXPECT_EQ(7, page[4095]);
	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "host/quarantined_bytes",
					0, 20000));
}

TEST_F(shared, a_stream_hands_none_of_it_on)
{
	int stream = stream_create(self->fd);
	struct accmem_alloc a = { .length = LENGTH,
				  .flags = ACCMEM_ALLOC_STREAM,
				  .stream = stream };
	struct accmem_query q;

	ASSERT_LE(0, stream);
	munmap(self->map, LENGTH);
	self->map = NULL;
	ASSERT_EQ(0, stream_free(self->fd, self->a.address, stream, 1));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_NE(self->a.address, a.address);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_KIND_DEVICE, q.kind);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, stream_signal(stream, 1));
	self->a.address = 0;
	close(stream);
}

TEST_F(shared, a_batch_makes_each_its_own)
{
	struct accmem_batch_alloc entries[8] = {};
	struct accmem_batch_free frees[8] = {};
	unsigned int i;

	for (i = 0; i < 8; i++) {
		entries[i].length = 4096;
		entries[i].kind = ACCMEM_KIND_SHARED;
	}
	ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, entries, 8, NULL));
	for (i = 0; i < 8; i++) {
		struct accmem_query q;

		ASSERT_EQ(0, entries[i].result);
		ASSERT_EQ(0,
			  accmem_ioctl_query(self->fd, entries[i].address, &q));
		EXPECT_EQ(ACCMEM_KIND_SHARED, q.kind);
		EXPECT_EQ(0, device_set(self->fd, entries[i].address, i));
		frees[i].address = entries[i].address;
	}
	EXPECT_EQ(0, accmem_batch_frees(self->fd, 0, frees, 8, NULL));
}

TEST_HARNESS_MAIN
