// SPDX-License-Identifier: GPL-2.0
/*
 * A device that a driver provides, for provider.sh, which loads the driver:
 * /dev/accmem1 has two ranges of 8 MiB, without page structures. A test controls the driver
 * through its module parameters.
 */
#include "accmem_test.h"

#define DEVICE "/dev/accmem1"
#define PARAMETERS "/sys/module/accmem_test_provider/parameters/"
#define SEED 7

/* writes a parameter; 0 or -errno */
static int driver(const char *name, const char *text)
{
	char path[128];
	int fd, err;

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

static long driver_count(const char *name)
{
	char path[128], text[32] = "";

	snprintf(path, sizeof(path), PARAMETERS "%s", name);
	return accmem_read_file(path, text, sizeof(text)) < 0 ? -1 : atol(text);
}

FIXTURE(provider)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc a;
};

FIXTURE_SETUP(provider)
{
	self->fd = accmem_opened(DEVICE);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(2, self->info.nr_carveouts);
	ASSERT_EQ(MIB(8), self->info.capacity);
}

FIXTURE_TEARDOWN(provider)
{
	close(self->fd);
	if (!access(DEVICE, F_OK))
		EXPECT_TRUE(accmem_is_idle(DEVICE, 20000));
}

/* allocates, maps and fills a buffer */
static char *filled(int fd, uint64_t length, struct accmem_alloc *a)
{
	char *p;

	if (accmem_alloc_bytes(fd, length, ACCMEM_ALLOC_RESIZABLE, a))
		return NULL;
	p = accmem_mmap(fd, a, length, RW);
	if (p)
		accmem_fill(p, length, SEED);
	return p;
}

/* fills all memory of a range, frees it, and looks at it through another context */
TEST_F(provider, no_old_bytes)
{
	struct accmem_alloc a;
	char *p;
	int fd;

	p = filled(self->fd, MIB(8), &self->a);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, munmap(p, MIB(8)));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	fd = accmem_opened(DEVICE);
	ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(8), 0, &a));
	p = accmem_mmap(fd, &a, MIB(8), PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_first_nonzero(p, MIB(8)));
	munmap(p, MIB(8));
	close(fd);
}

TEST_F(provider, engine_was_used)
{
	EXPECT_LT(0, driver_count("clears"));
	EXPECT_LT(0, driver_count("copies"));
}

/* REALLOC moves the bytes, since a neighbour is in the way */
TEST_F(provider, copied)
{
	struct accmem_alloc neighbour;
	struct accmem_realloc r = {};
	char *p;

	/* wait until the cleaner uses no memory between the two buffers */
	ASSERT_EQ(-1, accmem_sysfs_wait(DEVICE, "dirty_bytes", 0, 60000));
	p = filled(self->fd, MIB(1), &self->a);
	ASSERT_NE(NULL, p);
	munmap(p, MIB(1));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), 0, &neighbour));
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, MIB(4), 0,
					  &r));
	p = map_at(self->fd, r.address, MIB(4));
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, MIB(1), SEED));
	EXPECT_EQ(-1, accmem_first_nonzero(p + MIB(1), MIB(3)));
	unmap(p, MIB(4));
}

TEST_F(provider, kept)
{
	struct accmem_info info;
	uint64_t value;
	char *p;

	p = filled(self->fd, MIB(2), &self->a);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, driver("revoke", "reset"));
	EXPECT_EQ(SIGBUS, accmem_try_read(p, &value));
	EXPECT_EQ(-ECONNRESET, accmem_ioctl_info(self->fd, &info));
	ASSERT_EQ(0, driver("resume", "kept"));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(-1, accmem_check(p, MIB(2), SEED));
	munmap(p, MIB(2));
}

TEST_F(provider, lost)
{
	struct accmem_info info;
	struct accmem_alloc a;
	uint64_t value;
	char *p;

	p = filled(self->fd, MIB(8), &self->a);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, driver("revoke", "reset"));
	ASSERT_EQ(0, driver("resume", "lost"));
	EXPECT_EQ(SIGBUS, accmem_try_read(p, &value));
	EXPECT_EQ(-ECONNRESET, accmem_ioctl_info(self->fd, &info));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(SIGBUS, accmem_try_read(p, &value));
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(8), 0, &a));
	p = accmem_mmap(self->fd, &a, MIB(8), PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_first_nonzero(p, MIB(8)));
	munmap(p, MIB(8));
}

static void *waits(void *arg)
{
	struct accmem_alloc a = { .length = MIB(8),
				  .carveout = 0,
				  .flags = ACCMEM_ALLOC_WAIT |
					   ACCMEM_ALLOC_CARVEOUT };

	return (void *)(intptr_t)accmem_ioctl_alloc(*(int *)arg, &a);
}

TEST_F(provider, wait_ends)
{
	int fd = accmem_opened(DEVICE);
	pthread_t thread;
	void *result;

	ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(8), 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(8), 0, &self->a));
	ASSERT_EQ(0, pthread_create(&thread, NULL, waits, &self->fd));
	usleep(300000);
	ASSERT_EQ(0, driver("revoke", "reset"));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(-ECONNRESET, (intptr_t)result);
	ASSERT_EQ(0, driver("resume", "kept"));
	close(fd);
}

static void *allocates(void *arg)
{
	struct accmem_alloc a;

	return (void *)(intptr_t)accmem_alloc_bytes(*(int *)arg, MIB(8), 0, &a);
}

/* the time in ms of a revocation while the engine clears memory of a new context */
static uint64_t revocation(struct __test_metadata *_metadata)
{
	int fd = accmem_opened(DEVICE);
	struct accmem_alloc a;
	pthread_t thread;
	uint64_t start;
	void *result;
	char *p;

	p = filled(fd, MIB(8), &a);
	ASSERT_NE(NULL, p);
	munmap(p, MIB(8));
	ASSERT_EQ(0, accmem_ioctl_free(fd, a.address));
	ASSERT_EQ(0, pthread_create(&thread, NULL, allocates, &fd));
	usleep(50000);
	start = accmem_ms();
	ASSERT_EQ(0, driver("revoke", "reset"));
	start = accmem_ms() - start;
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_TRUE(!result || (intptr_t)result == -ECONNRESET);
	ASSERT_EQ(0, driver("resume", "lost"));
	close(fd);
	return start;
}

/* the engine takes 200 ms for 2 MiB: a revocation does not wait for all of it */
TEST_F(provider, revoked_while_it_clears)
{
	uint64_t ms = ~0ull;
	int i;

	/* the machine may pause in one of them */
	for (i = 0; i < 3 && ms >= 1000; i++)
		ms = revocation(_metadata);
	EXPECT_GT(1000, ms);
}

static int pin(int fd, uint64_t address, uint64_t size)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %llu %llu", fd,
		 (unsigned long long)address, (unsigned long long)size);
	return driver("pin", text);
}

/* ends the pins by a fence: of the freed memory, @held bytes are not free before its signal */
static void end_by_fence(struct __test_metadata *_metadata, int64_t held)
{
	int64_t capacity = accmem_sysfs(DEVICE, "capacity");

	EXPECT_GE(capacity - held, accmem_sysfs(DEVICE, "free_bytes"));
	ASSERT_EQ(0, driver("unpin", "fence"));
	usleep(50000);
	EXPECT_GE(capacity - held, accmem_sysfs(DEVICE, "free_bytes"));
	ASSERT_EQ(0, driver("unpin", "signal"));
	EXPECT_EQ(-1, accmem_sysfs_wait(DEVICE, "free_bytes", capacity, 5000));
}

/* freed memory is not free before the fence has signalled */
TEST_F(provider, pin_holds)
{
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2),
					ACCMEM_ALLOC_RESIZABLE, &self->a));
	ASSERT_EQ(0, pin(self->fd, self->a.address + 4096, 8192));
	/* the buffer shrinks, its memory does not */
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, 4096, 0,
					  NULL));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	end_by_fence(_metadata, MIB(2));
}

/* once the fence has ended the pin, REALLOC frees the memory that it cuts off */
TEST_F(provider, pin_ends_with_its_fence)
{
	int64_t capacity = accmem_sysfs(DEVICE, "capacity");

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2),
					ACCMEM_ALLOC_RESIZABLE, &self->a));
	ASSERT_EQ(0, pin(self->fd, self->a.address + 4096, 8192));
	ASSERT_EQ(0, driver("unpin", "fence"));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, MIB(1), 0,
					  NULL));
	EXPECT_EQ(capacity - (int64_t)MIB(2),
		  accmem_sysfs(DEVICE, "free_bytes"));
	ASSERT_EQ(0, driver("unpin", "signal"));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, 4096, 0,
					  NULL));
	EXPECT_EQ(-1, accmem_sysfs_wait(DEVICE, "free_bytes", capacity - 4096,
					5000));
}

TEST_F(provider, pin_refused)
{
	int other = accmem_opened("/dev/accmem0");
	int reader = accmem_dev_open(DEVICE, O_RDONLY);
	uint64_t end;

	ASSERT_LE(0, reader);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &self->a));
	end = self->a.address + MIB(2);
	EXPECT_EQ(-ENOENT, pin(self->fd, end + MIB(1), 4096));
	EXPECT_EQ(-ERANGE, pin(self->fd, end - 4096, 8192));
	EXPECT_EQ(-EINVAL, pin(self->fd, self->a.address, 0));
	EXPECT_EQ(-EINVAL, pin(self->fd, self->a.address, UINT64_MAX));
	EXPECT_EQ(-EBADF, pin(other, self->a.address, 4096));
	EXPECT_EQ(-EBADF, pin(STDIN_FILENO, self->a.address, 4096));
	EXPECT_EQ(-EBADF, pin(1000, self->a.address, 4096));
	EXPECT_EQ(-EACCES, pin(reader, self->a.address, 4096));
	close(reader);
	close(other);
}

TEST_F(provider, pin_outlives_the_program)
{
	int64_t capacity = accmem_sysfs(DEVICE, "capacity");
	int fd = accmem_opened(DEVICE);

	ASSERT_EQ(0, accmem_alloc_bytes(fd, MIB(2), 0, &self->a));
	ASSERT_EQ(0, pin(fd, self->a.address, MIB(2)));
	close(fd);
	EXPECT_EQ(capacity - (int64_t)MIB(2),
		  accmem_sysfs(DEVICE, "free_bytes"));
	ASSERT_EQ(0, driver("unpin", "now"));
	EXPECT_EQ(-1, accmem_sysfs_wait(DEVICE, "free_bytes", capacity, 5000));
}

/* pins two parts with one call */
static int pin_two(int fd, uint64_t first, uint64_t second, uint64_t size)
{
	char text[128];

	snprintf(text, sizeof(text), "%d %llu %llu %llu %llu", fd,
		 (unsigned long long)first, (unsigned long long)size,
		 (unsigned long long)second, (unsigned long long)size);
	return driver("pin", text);
}

/* each part is told its place, and one fence ends all parts */
TEST_F(provider, pin_of_many_parts)
{
	unsigned long long at[2], size[2];
	struct accmem_alloc b;
	char text[128] = "";
	int fields;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), 0, &b));
	ASSERT_EQ(0,
		  pin_two(self->fd, self->a.address + 4096, b.address, 8192));
	ASSERT_LE(0, accmem_read_file(PARAMETERS "pin", text, sizeof(text)));
	fields = sscanf(text, "%llu %llu %llu %llu", &at[0], &size[0], &at[1],
			&size[1]);
	ASSERT_EQ(4, fields);
	EXPECT_EQ(8192, size[0]);
	EXPECT_EQ(8192, size[1]);
	EXPECT_EQ(b.address - self->a.address - 4096, at[1] - at[0]);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	end_by_fence(_metadata, MIB(3));
}

/* if one part cannot be pinned, none stays pinned */
TEST_F(provider, pin_all_parts_or_none)
{
	int64_t capacity = accmem_sysfs(DEVICE, "capacity");
	uint64_t end;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2),
					ACCMEM_ALLOC_RESIZABLE, &self->a));
	end = self->a.address + MIB(2);
	EXPECT_EQ(-ENOENT,
		  pin_two(self->fd, self->a.address, end + MIB(1), 4096));
	EXPECT_EQ(-ERANGE,
		  pin_two(self->fd, self->a.address, end - 4096, 8192));
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, MIB(1), 0,
					  NULL));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(DEVICE, "free_bytes", capacity, 5000));
}

/* pins and unpins @nr parts, @parts with a call; @param is the parameter; 0 or -errno */
static int pin_often(int param, int fd, uint64_t address, unsigned int nr,
		     unsigned int parts, bool fenced)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%d %llu 4096 %u %u %d", fd,
			 (unsigned long long)address, nr, parts, fenced);

	return write(param, text, n) == n ? 0 : -errno;
}

/* one part to the most, and one more */
TEST_F(provider, pin_of_most_parts)
{
	static const unsigned int counts[] = { 1, 2, 63, 64, 65, 1024 };
	int param = open(PARAMETERS "pins", O_WRONLY);
	uint64_t at;
	unsigned int i;

	ASSERT_LE(0, param);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &self->a));
	at = self->a.address;
	for (i = 0; i < ARRAY_SIZE(counts); i++) {
		EXPECT_EQ(0, pin_often(param, self->fd, at, 4 * counts[i],
				       counts[i], false));
		EXPECT_EQ(0, pin_often(param, self->fd, at, 4 * counts[i],
				       counts[i], true));
	}
	EXPECT_EQ(-E2BIG, pin_often(param, self->fd, at, 1025, 1025, false));
	close(param);
}

/* only root opens the parameter */
static int pin_to_limit(void *param)
{
	struct accmem_alloc a = {};
	int fd = accmem_dev_open(DEVICE, O_RDWR), pins = *(int *)param;

	if (fd < 0 || accmem_alloc_bytes(fd, MIB(2), 0, &a))
		return 1;
	if (pin_often(pins, fd, a.address, 8, 8, false))
		return 2;
	if (pin_often(pins, fd, a.address, 9, 9, false) != -EDQUOT)
		return 3;
	return pin_often(pins, fd, a.address, 8, 8, true) ? 4 : 0;
}

/* each part is charged, and all of them are uncharged */
TEST_F(provider, pin_limit)
{
	int64_t limit = accmem_param("max_exports_per_user");
	int param = open(PARAMETERS "pins", O_WRONLY);

	ASSERT_LE(0, param);
	ASSERT_EQ(0, chmod(DEVICE, 0666));
	ASSERT_EQ(0, accmem_param_set("max_exports_per_user", 8));
	EXPECT_EQ(0, accmem_as_user(4321, pin_to_limit, &param));
	EXPECT_EQ(0, accmem_param_set("max_exports_per_user", limit));
	ASSERT_EQ(0, chmod(DEVICE, 0600));
	close(param);
}

static int remove_driver(void)
{
	return syscall(SYS_delete_module, "accmem_test_provider", O_NONBLOCK) ?
		       -errno :
		       0;
}

/* the driver is unloaded while a mapping, a pin of a pipe and an open file are there */
TEST_F(provider, driver_goes)
{
	struct accmem_info info;
	struct pollfd poller = { .fd = self->fd, .events = POLLIN };
	uint64_t value;
	char *p;

	p = filled(self->fd, MIB(2), &self->a);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, remove_driver());
	EXPECT_EQ(-1, access(DEVICE, F_OK));
	EXPECT_EQ(SIGBUS, accmem_try_read(p, &value));
	EXPECT_EQ(-ENODEV, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(1, poll(&poller, 1, 0));
	EXPECT_EQ(POLLERR | POLLHUP, poller.revents);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	munmap(p, MIB(2));
}

ACCMEM_HARNESS_MAIN
