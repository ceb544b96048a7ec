// SPDX-License-Identifier: GPL-2.0
/*
 * Failed allocations in the kernel. Each allocation that a call makes fails once:
 * first the first of them, then the second, until none is left to fail. A failed call
 * must leave nothing behind.
 */
#include "failnth_util.h"

FAILNTH_FIXTURE(failnth)

static int open_close(const char *path, int fd)
{
	(void)fd;
	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

TEST_F(failnth, open)
{
	NEED_INJECTION();
	SWEEP(open_close);
	EXPECT_EQ(1, accmem_sysfs(variant->path, "contexts"));
}

static int alloc_with(int fd, struct accmem_alloc a)
{
	int err = accmem_ioctl_alloc(fd, &a);

	if (!err)
		err = accmem_ioctl_free(fd, a.address);
	return err;
}

static int alloc_block(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){ .length = 100 });
}

static int alloc_block_populated(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = 100,
				      .flags = ACCMEM_ALLOC_POPULATE });
}

static int alloc_small(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){ .length = 4096 });
}

static int alloc_huge(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = MIB(4),
				      .page_policy = ACCMEM_PAGE_HUGE_ONLY });
}

static int alloc_populated(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .flags = ACCMEM_ALLOC_POPULATE });
}

static int alloc_uncached(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .cache_mode = ACCMEM_CACHE_UC });
}

static int alloc_host(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = KIB(64),
						 .kind = ACCMEM_KIND_HOST });
}

static int alloc_host_block(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = 100,
						 .kind = ACCMEM_KIND_HOST });
}

static uint64_t fixed_address;

static int alloc_fixed(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd, (struct accmem_alloc){
				      .length = KIB(64),
				      .address = fixed_address,
				      .flags = ACCMEM_ALLOC_FIXED });
}

TEST_F(failnth, alloc)
{
	NEED_INJECTION();
	SWEEP(alloc_block);
	SWEEP(alloc_block_populated);
	SWEEP(alloc_small);
	SWEEP(alloc_huge);
	SWEEP(alloc_populated);
	SWEEP(alloc_host);
	SWEEP(alloc_host_block);
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/live_bytes"));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "host/resident_bytes"));
	fixed_address = self->info.address_base + self->info.capacity / 2;
	SWEEP(alloc_fixed);
	if (self->info.cache_modes & (1 << ACCMEM_CACHE_UC))
		SWEEP(alloc_uncached);
}

/* an ALLOC of all memory, while a granule of it is in use */
static int alloc_in_vain(const char *path, int fd)
{
	struct accmem_info info;
	struct accmem_alloc a;
	int err = accmem_ioctl_info(fd, &info);

	(void)path;
	if (err)
		return err;
	a = (struct accmem_alloc){ .length = info.capacity,
				   .flags = ACCMEM_ALLOC_WAIT,
				   .deadline_ns = info.now_ns + 100000000 };
	err = accmem_ioctl_alloc(fd, &a);
	return err == -ETIMEDOUT ? 0 : err ?: -EEXIST;
}

TEST_F(failnth, alloc_that_waits)
{
	struct accmem_alloc a;

	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	SWEEP(alloc_in_vain);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* more than the largest run */
static uint64_t scattered_bytes;

static int alloc_scattered(const char *path, int fd)
{
	(void)path;
	return alloc_with(fd,
			  (struct accmem_alloc){ .length = scattered_bytes });
}

TEST_F(failnth, alloc_scattered)
{
	struct accmem_alloc *bufs = calloc(256, sizeof(*bufs));
	struct accmem_info info;
	uint64_t piece = self->info.capacity / 128 / MIB(2) * MIB(2);
	int n = 0, i;

	NEED_INJECTION();
	if (!(self->info.features & ACCMEM_FEATURE_SCATTER))
		return; /* one buffer holds all memory */
	ASSERT_LE(MIB(2), piece);
	while (n < 256 && !accmem_alloc_bytes(self->fd, piece, 0, &bufs[n]))
		n++;
	for (i = 0; i < n; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	scattered_bytes = info.largest_run + 24 * piece;
	ASSERT_GE(info.free_bytes, scattered_bytes);
	SWEEP(alloc_scattered);
	for (i = 1; i < n; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
	}
	free(bufs);
}

static struct accmem_alloc mapped;

static int map_unmap(const char *path, int fd)
{
	void *p = accmem_mmap(fd, &mapped, mapped.footprint, RW);

	(void)path;
	if (!p)
		return -errno;
	munmap(p, mapped.footprint);
	return 0;
}

TEST_F(failnth, mmap)
{
	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &mapped));
	SWEEP(map_unmap);
}

/*
 * A first access works, or raises a signal and works the next time. Its page has the
 * size of the policy.
 */
static void sweep_touch(struct __test_metadata *_metadata, const char *path,
			int fd, uint64_t length, uint32_t policy)
{
	int64_t start = accmem_sysfs(path, "free_bytes");
	bool emulated = !strcmp(path, ACCMEM_DEV_EMULATED);
	unsigned int nth, signals = 0;
	bool injected = true;
	int sig;

	for (nth = 1; nth < N_MAX && injected; nth++) {
		struct accmem_alloc a = { .length = length,
					  .page_policy = policy };
		int64_t resident;
		char *p;

		ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
		resident = accmem_sysfs(path, "resident_bytes");
		p = accmem_mapped_huge(fd, &a, length);
		arm(nth);
		sig = accmem_try_write(p, 1);
		injected = disarm();
		signals += sig != 0;
		ASSERT_TRUE(!sig || (sig == SIGBUS && injected));
		ASSERT_EQ(0, accmem_try_write(p, 1));
		if (emulated)
			resident += a.page_size;
		ASSERT_EQ(resident, accmem_sysfs(path, "resident_bytes"));
		ASSERT_EQ(-1, accmem_first_nonzero(p + 8, length - 8));
		munmap(p, length);
		ASSERT_EQ(0, accmem_ioctl_free(fd, a.address));
		ASSERT_EQ(start, accmem_sysfs(path, "free_bytes"));
	}
	EXPECT_FALSE(injected);
	printf("# %s touch of %llu KiB: %u points, %u signals\n", path,
	       (unsigned long long)(length >> 10), nth - 2, signals);
}

TEST_F(failnth, first_touch)
{
	NEED_INJECTION();
	sweep_touch(_metadata, variant->path, self->fd, KIB(64),
		    ACCMEM_PAGE_NORMAL_ONLY);
	sweep_touch(_metadata, variant->path, self->fd, MIB(4),
		    ACCMEM_PAGE_HUGE_ONLY);
}

/* Resizes a buffer of @from bytes. After a failure the buffer must be unchanged (T6). */
static int resize(int fd, uint64_t from, uint64_t reserve, uint64_t to,
		  bool touched)
{
	struct accmem_alloc a = { .length = from,
				  .reserve = reserve,
				  .flags = ACCMEM_ALLOC_RESIZABLE |
					   ACCMEM_ALLOC_POPULATE };
	struct accmem_realloc r;
	struct accmem_query q;
	int err = accmem_ioctl_alloc(fd, &a);
	char *p = NULL;

	if (err)
		return err;
	if (touched)
		p = accmem_mmap(fd, &a, ALIGN_UP(from, 4096), RW);
	if (p) {
		accmem_fill(p, from, 1);
		munmap(p, ALIGN_UP(from, 4096));
	}
	err = accmem_ioctl_realloc(fd, a.address, to, 0, &r);
	if (!err)
		return accmem_ioctl_free(fd, r.address);
	if (accmem_ioctl_query(fd, a.address, &q) || q.length != from ||
	    q.usable != from || accmem_ioctl_free(fd, a.address))
		return -EBADF;
	return err;
}

static int resize_grow(const char *path, int fd)
{
	(void)path;
	return resize(fd, KIB(64), MIB(1), KIB(512), false);
}

static int access_write(const char *path, int fd)
{
	static char data[KIB(80)];
	struct accmem_access r = { .op = ACCMEM_ACCESS_WRITE,
				   .length = sizeof(data),
				   .data = (uintptr_t)data };
	struct accmem_alloc a;
	int err;

	(void)path;
	err = accmem_alloc_bytes(fd, sizeof(data), 0, &a);
	if (err)
		return err;
	r.address = a.address;
	err = accmem_ioctl_access(fd, &r);
	return accmem_ioctl_free(fd, a.address) ?: err;
}

TEST_F(failnth, access)
{
	NEED_INJECTION();
	SWEEP(access_write);
}

/*
 * accesses a byte of the first and the last page from both sides; -EBADF: a byte was
 * lost
 */
static int shared_round(int fd, const struct accmem_alloc *a, char *map)
{
	static const char d[] = "d";
	struct accmem_access r = { .op = ACCMEM_ACCESS_WRITE,
				   .address = a->address + 1,
				   .length = 1,
				   .data = (uintptr_t)d };
	char byte = 0, *last = map + a->length - 1;
	uint64_t word;
	int err, sig;

	sig = accmem_try_write(map, 'c');
	if (sig)
		return sig == SIGBUS ? -ENOMEM : -EBADF;
	err = accmem_ioctl_access(fd, &r);
	if (err)
		return map[0] == 'c' ? err : -EBADF;
	r.op = ACCMEM_ACCESS_READ;
	r.address = a->address;
	r.data = (uintptr_t)&byte;
	err = accmem_ioctl_access(fd, &r);
	if (err)
		return err;
	if (byte != 'c')
		return -EBADF;
	if (accmem_try_read(map, &word) || accmem_try_write(last - 7, 0))
		return -ENOMEM;
	return map[0] == 'c' && map[1] == 'd' ? 0 : -EBADF;
}

static int shared_small(const char *path, int fd)
{
	struct accmem_alloc a = { .length = KIB(12),
				  .kind = ACCMEM_KIND_SHARED };
	char *map;
	int err;

	(void)path;
	err = accmem_ioctl_alloc(fd, &a);
	if (err)
		return err;
	map = accmem_mmap(fd, &a, KIB(12), PROT_READ | PROT_WRITE);
	err = map ? shared_round(fd, &a, map) : -errno;
	if (map)
		munmap(map, KIB(12));
	return accmem_ioctl_free(fd, a.address) ?: err;
}

TEST_F(failnth, shared)
{
	NEED_INJECTION();
	SWEEP(shared_small);
}

static int resize_shrink(const char *path, int fd)
{
	(void)path;
	return resize(fd, KIB(64), 0, KIB(8), true);
}

static int resize_move(const char *path, int fd)
{
	(void)path;
	return resize(fd, 512, 0, KIB(64), true);
}

TEST_F(failnth, realloc)
{
	NEED_INJECTION();
	SWEEP(resize_grow);
	SWEEP(resize_shrink);
	SWEEP(resize_move);
}

static int query_it(const char *path, int fd)
{
	struct accmem_query q;

	(void)path;
	return accmem_ioctl_query(fd, mapped.address + 1, &q);
}

static int info_it(const char *path, int fd)
{
	struct accmem_info info;

	(void)path;
	return accmem_ioctl_info(fd, &info);
}

TEST_F(failnth, query_and_info)
{
	NEED_INJECTION();
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &mapped));
	SWEEP_NONE(query_it);
	SWEEP_NONE(info_it);
}

/* The injection works: a call that allocates sees a failure. */
TEST_F(failnth, injection_works)
{
	struct rounds r = {};
	bool seen = false;
	int err = 0;

	NEED_INJECTION();
	arm(1);
	EXPECT_GT(0, accmem_dev_open(variant->path, O_RDWR));
	EXPECT_TRUE(disarm());
	/* among the module's own allocations is the context, as the log shows */
	ASSERT_EQ(0, only_module(true));
	while (!seen && next_round(&r)) {
		arm_round(&r);
		err = open_close(variant->path, -1);
		seen = !disarm_round(&r);
	}
	EXPECT_TRUE(seen);
	EXPECT_EQ(-ENOMEM, err);
	EXPECT_EQ(0, r.clean);
}

ACCMEM_HARNESS_MAIN
