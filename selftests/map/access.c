// SPDX-License-Identifier: GPL-2.0
/*
 * ACCESS, the ioctl that reads and writes buffers as the device does. It accesses the
 * bytes that mappings show, within one buffer. A test changes one argument and expects
 * the documented errno.
 */
#include "accmem_test.h"

#define LENGTH (MIB(4) + KIB(12))

FIXTURE(access)
{
	int fd;
	uint64_t free_bytes;
	struct accmem_info info;
	struct accmem_alloc a;
	struct accmem_access good; /* reads all of @a to @data */
	char *data;
};

ACCMEM_VARIANTS(access);

FIXTURE_SETUP(access)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_TRUE(self->info.features & ACCMEM_FEATURE_ACCESS);
	self->free_bytes = self->info.free_bytes;
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, LENGTH, 0, &self->a));
	self->data = malloc(LENGTH);
	ASSERT_NE(NULL, self->data);
	self->good = (struct accmem_access){
		.size = sizeof(self->good),
		.address = self->a.address,
		.length = LENGTH,
		.data = (uintptr_t)self->data,
	};
}

FIXTURE_TEARDOWN(access)
{
	if (self->a.address)
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	free(self->data);
}

TEST_F(access, new_memory_reads_as_zero)
{
	memset(self->data, 1, LENGTH);
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	EXPECT_EQ(LENGTH, self->good.done);
	EXPECT_EQ(-1, accmem_first_nonzero(self->data, LENGTH));
	/* a read makes no page present */
	if (self->info.features & ACCMEM_FEATURE_FIRST_TOUCH)
		EXPECT_EQ(0, accmem_sysfs(variant->path, "resident_bytes"));
}

TEST_F(access, the_cpu_sees_what_the_device_wrote_and_the_other_way_round)
{
	char *p;

	p = accmem_mapped(self->fd, &self->a, LENGTH);
	accmem_fill(self->data, LENGTH, 7);
	self->good.op = ACCMEM_ACCESS_WRITE;
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	EXPECT_EQ(-1, accmem_check(p, LENGTH, 7));
	accmem_fill(p, LENGTH, 8);
	self->good.op = ACCMEM_ACCESS_READ;
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	EXPECT_EQ(-1, accmem_check(self->data, LENGTH, 8));
	munmap(p, LENGTH);
}

/* Parts of any offset and length, compared with a copy. */
TEST_F(access, parts)
{
	uint64_t state = accmem_seed(), from, size;
	unsigned int i, n = accmem_scale(100);
	char *copy, *part;

	copy = calloc(1, LENGTH);
	part = malloc(LENGTH);
	ASSERT_TRUE(copy && part);
	for (i = 0; i < n; i++) {
		from = accmem_random(&state) % LENGTH;
		size = 1 +
		       accmem_random(&state) % (LENGTH - from > 70000 && i % 8 ?
							70000 :
							LENGTH - from);
		self->good.address = self->a.address + from;
		self->good.length = size;
		self->good.op = i % 3;
		self->good.data = (uintptr_t)part;
		if (self->good.op == ACCMEM_ACCESS_WRITE) {
			accmem_fill(part, size, i);
			memcpy(copy + from, part, size);
		} else if (self->good.op == ACCMEM_ACCESS_FILL) {
			self->good.data = i & 0xff;
			memset(copy + from, i & 0xff, size);
		}
		ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
		ASSERT_EQ(size, self->good.done);
		if (self->good.op == ACCMEM_ACCESS_READ)
			ASSERT_EQ(0, memcmp(copy + from, part, size));
	}
	self->good.address = self->a.address;
	self->good.length = LENGTH;
	self->good.op = ACCMEM_ACCESS_READ;
	self->good.data = (uintptr_t)part;
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	EXPECT_EQ(0, memcmp(copy, part, LENGTH));
	free(copy);
	free(part);
}

/* Neighbours in a granule or beside the buffer are not accessed. */
TEST_F(access, reaches_no_other_buffer)
{
	struct accmem_alloc small[4], large[4];
	char byte = 9;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &small[i]));
		ASSERT_EQ(0,
			  accmem_alloc_bytes(self->fd, KIB(8), 0, &large[i]));
	}
	self->good.op = ACCMEM_ACCESS_FILL;
	self->good.data = 5;
	self->good.address = small[1].address;
	self->good.length = 64;
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	self->good.length = 65;
	EXPECT_EQ(-ENXIO, accmem_ioctl_access(self->fd, &self->good));
	self->good.address = large[1].address;
	self->good.length = KIB(8);
	ASSERT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	self->good.length = KIB(8) + 1;
	EXPECT_EQ(-ENXIO, accmem_ioctl_access(self->fd, &self->good));
	self->good.op = ACCMEM_ACCESS_READ;
	self->good.length = 1;
	self->good.data = (uintptr_t)&byte;
	for (i = 0; i < 4; i++) {
		self->good.address = small[i].address + 63;
		EXPECT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
		EXPECT_EQ(i == 1 ? 5 : 0, byte);
		self->good.address = large[i].address;
		EXPECT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
		EXPECT_EQ(i == 1 ? 5 : 0, byte);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, small[i].address));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, large[i].address));
	}
}

/* The next owner does not see what the device wrote, also the same context. */
TEST_F(access, freed_bytes_are_gone)
{
	uint64_t length[] = { 64, KIB(4), LENGTH };
	struct accmem_alloc a;
	unsigned int i, round;

	for (i = 0; i < ARRAY_SIZE(length); i++) {
		for (round = 0; round < 4; round++) {
			ASSERT_EQ(0, accmem_alloc_bytes(self->fd, length[i], 0,
							&a));
			self->good.address = a.address;
			self->good.length = length[i];
			self->good.op = ACCMEM_ACCESS_READ;
			self->good.data = (uintptr_t)self->data;
			ASSERT_EQ(0,
				  accmem_ioctl_access(self->fd, &self->good));
			EXPECT_EQ(-1,
				  accmem_first_nonzero(self->data, length[i]));
			self->good.op = ACCMEM_ACCESS_FILL;
			self->good.data = 0xee;
			ASSERT_EQ(0,
				  accmem_ioctl_access(self->fd, &self->good));
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		}
	}
}

TEST_F(access, bad_length)
{
	struct accmem_access *r = &self->good;

	r->length = 0;
	EXPECT_EQ(-EINVAL, accmem_ioctl_access(self->fd, r));
	r->length = self->a.usable + 1;
	EXPECT_EQ(-ENXIO, accmem_ioctl_access(self->fd, r));
	r->length = -r->address;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_access(self->fd, r));
	r->length = ~0ull;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_access(self->fd, r));
	r->length = ~0ull - r->address;
	EXPECT_EQ(-ENXIO, accmem_ioctl_access(self->fd, r));
}

TEST_F(access, bad_address)
{
	struct accmem_access *r = &self->good;
	uint64_t bad[] = { 0, 4096, self->info.address_base - 1,
			   self->info.address_base + self->info.address_span };
	unsigned int i;

	r->length = 1;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		r->address = bad[i];
		EXPECT_EQ(-ENOENT, accmem_ioctl_access(self->fd, r));
	}
	r->address = self->a.address + self->a.usable;
	EXPECT_LT(accmem_ioctl_access(self->fd, r), 0);
	r->address = self->a.address + self->a.usable - 1;
	EXPECT_EQ(0, accmem_ioctl_access(self->fd, r));
}

TEST_F(access, bad_operation)
{
	struct accmem_access *r = &self->good;

	r->op = ACCMEM_ACCESS_FILL + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_access(self->fd, r));
	r->op = ACCMEM_ACCESS_FILL;
	r->data = 256;
	EXPECT_EQ(-EINVAL, accmem_ioctl_access(self->fd, r));
	r->data = 255;
	EXPECT_EQ(0, accmem_ioctl_access(self->fd, r));
}

TEST_F(access, bad_data)
{
	struct accmem_access *r = &self->good;
	char *hole;
	int op;

	hole = mmap(NULL, MIB(3), RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, hole);
	ASSERT_EQ(0, munmap(hole + MIB(2), MIB(1)));
	for (op = ACCMEM_ACCESS_READ; op <= ACCMEM_ACCESS_WRITE; op++) {
		r->op = op;
		r->data = 1;
		EXPECT_EQ(-EFAULT, accmem_ioctl_access(self->fd, r));
		EXPECT_EQ(0, r->done);
		r->data = ~0ull - LENGTH;
		EXPECT_EQ(-EFAULT, accmem_ioctl_access(self->fd, r));
		/* @done is the number of bytes before the fault */
		r->data = (uintptr_t)hole;
		EXPECT_EQ(-EFAULT, accmem_ioctl_access(self->fd, r));
		EXPECT_LT(MIB(1), r->done);
		EXPECT_GE(MIB(2), r->done);
	}
	munmap(hole, MIB(2));
}

TEST_F(access, of_a_freed_buffer)
{
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_access(self->fd, &self->good));
	self->a.address = 0;
}

TEST_F(access, of_another_context)
{
	int other = accmem_opened(variant->path);

	EXPECT_EQ(-ENOENT, accmem_ioctl_access(other, &self->good));
	close(other);
}

/* A file that was opened for reading only: as write(2), and the bytes stay. */
TEST_F(access, read_only_file)
{
	int fd = accmem_dev_open(variant->path, O_RDONLY);
	struct accmem_access req = self->good;
	struct accmem_alloc a;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, LENGTH, 0, &a));
	req.address = a.address;
	memset(self->data, 1, LENGTH);
	req.op = ACCMEM_ACCESS_WRITE;
	EXPECT_EQ(-EBADF, accmem_ioctl_access(fd, &req));
	req.op = ACCMEM_ACCESS_FILL;
	req.data = 1;
	EXPECT_EQ(-EBADF, accmem_ioctl_access(fd, &req));
	EXPECT_EQ(0, req.done);
	req.op = ACCMEM_ACCESS_READ;
	req.data = self->good.data;
	EXPECT_EQ(0, accmem_ioctl_access(fd, &req));
	EXPECT_EQ(-1, accmem_first_nonzero(self->data, LENGTH));
	close(fd);
}

/* The caller's memory is a mapping of the same buffer. */
TEST_F(access, onto_itself)
{
	char *p;

	p = accmem_mapped(self->fd, &self->a, LENGTH);
	accmem_fill(p, LENGTH, 3);
	self->good.data = (uintptr_t)p;
	EXPECT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	self->good.op = ACCMEM_ACCESS_WRITE;
	EXPECT_EQ(0, accmem_ioctl_access(self->fd, &self->good));
	EXPECT_EQ(-1, accmem_check(p, LENGTH, 3));
	munmap(p, LENGTH);
}

struct racer {
	int fd;
	struct accmem_access access;
	bool stop;
};

static void *access_all_the_time(void *arg)
{
	struct racer *r = arg;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
		accmem_ioctl(r->fd, ACCMEM_IOC_ACCESS, &r->access);
	return NULL;
}

/* An access that races with FREE or a shrink reaches no other buffer. */
TEST_F(access, while_buffers_go)
{
	unsigned int i, n = accmem_scale(60);
	struct accmem_alloc a, other;
	struct racer r = { .fd = self->fd };
	pthread_t thread;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(256),
					ACCMEM_ALLOC_RESIZABLE, &a));
	r.access = self->good;
	r.access.op = ACCMEM_ACCESS_FILL;
	r.access.data = 0xcc;
	r.access.length = KIB(256);
	r.access.address = a.address;
	ASSERT_EQ(0, pthread_create(&thread, NULL, access_all_the_time, &r));
	for (i = 0; i < n; i++) {
		int fd = accmem_opened(variant->path);

		if (i % 2)
			ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, a.address,
							  KIB(16), 0, NULL));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
		ASSERT_EQ(0, accmem_alloc_bytes(fd, KIB(256), 0, &other));
		self->good.address = other.address;
		self->good.length = KIB(256);
		ASSERT_EQ(0, accmem_ioctl_access(fd, &self->good));
		EXPECT_EQ(-1, accmem_first_nonzero(self->data, KIB(256)));
		close(fd);
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(256),
						ACCMEM_ALLOC_RESIZABLE, &a));
		__atomic_store_n(&r.access.address, a.address,
				 __ATOMIC_RELAXED);
	}
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
