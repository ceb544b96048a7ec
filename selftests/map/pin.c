// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that a pipe or O_DIRECT in flight still references when their context ends.
 * Their memory goes to the quarantine: no other context gets it, for reading or for
 * writing. It is free again when the references have gone.
 *
 * Environment: ACCMEM_DISK, a block device to overwrite (default /dev/vda).
 */
#include <linux/aio_abi.h>

#include "accmem_test.h"

#define LENGTH MIB(4)
#define PINNED (16 * 4096u)
#define ALL 1024

FIXTURE(pin)
{
	int64_t capacity;
	int pipes[2];
};

FIXTURE_VARIANT(pin)
{
	const char *path;
	uint32_t page_policy;
};

FIXTURE_VARIANT_ADD(pin, emulated)
{
	.path = ACCMEM_DEV_EMULATED,
};
FIXTURE_VARIANT_ADD(pin, emulated_normal)
{
	.path = ACCMEM_DEV_EMULATED, .page_policy = ACCMEM_PAGE_NORMAL_ONLY,
};
FIXTURE_VARIANT_ADD(pin, phys)
{
	.path = ACCMEM_DEV_PHYS,
};
FIXTURE_VARIANT_ADD(pin, phys_normal)
{
	.path = ACCMEM_DEV_PHYS, .page_policy = ACCMEM_PAGE_NORMAL_ONLY,
};

FIXTURE_SETUP(pin)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 10000));
	self->capacity = accmem_sysfs(variant->path, "capacity");
	ASSERT_EQ(0, pipe(self->pipes));
}

FIXTURE_TEARDOWN(pin)
{
	close(self->pipes[0]);
	close(self->pipes[1]);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

enum how { BY_CALL, BY_CLOSE, BY_KILL };

struct victim {
	const char *path;
	uint32_t policy;
	int pipe;
	enum how how;
};

/* in a child: puts pages into the pipe by reference, and exits */
static int fill_pipe(void *arg)
{
	struct victim *v = arg;
	struct accmem_alloc a = { .length = LENGTH, .page_policy = v->policy };
	int fd = accmem_dev_open(v->path, O_RDWR);
	struct iovec iov;
	char *p;

	if (fd < 0 || accmem_ioctl_alloc(fd, &a))
		return 1;
	p = accmem_mmap_huge(fd, &a, LENGTH);
	if (!p)
		return 2;
	accmem_fill(p, LENGTH, 1);
	/* at the border of two large pages */
	iov.iov_base = p + MIB(2) - PINNED / 2;
	iov.iov_len = PINNED;
	if (vmsplice(v->pipe, &iov, 1, 0) != PINNED)
		return 3;
	if (v->how == BY_KILL)
		raise(SIGKILL);
	munmap(p, LENGTH);
	if (v->how == BY_CALL && accmem_ioctl_free(fd, a.address))
		return 4;
	close(fd);
	return 0;
}

/* true if the pipe has the pattern */
static bool pipe_has_pattern(int pipe)
{
	char *want = malloc(LENGTH), got[PINNED];
	bool same;

	accmem_fill(want, LENGTH, 1);
	same = read(pipe, got, PINNED) == PINNED &&
	       !memcmp(got, want + MIB(2) - PINNED / 2, PINNED);
	free(want);
	return same;
}

/*
 * A second context allocates all memory that is not in quarantine, checks that it is
 * zero, and overwrites it. Returns 0, or a number for each error.
 */
static int take_the_rest(const char *path, int64_t quarantined)
{
	static struct accmem_alloc all[ALL];
	int fd = accmem_opened(path), n, i;
	int64_t sum = 0, most = accmem_sysfs(path, "capacity") - quarantined;
	uint64_t left, look;
	char *p;

	n = accmem_take_all(fd, 0, all, ALL);
	if (n <= 0)
		return 2;
	left = accmem_touchable(fd);
	for (i = 0; i < n; i++)
		sum += all[i].footprint;
	/* large pages that contain pinned pages cannot be allocated either */
	if (sum > most || sum < most - (quarantined ? (int64_t)MIB(2) : 0))
		return 3;
	for (i = 0; i < n && left; i++) {
		look = all[i].footprint < left ? all[i].footprint : left;
		/* the largest run is a neighbour of the pinned pages */
		look = look < MIB(24) ? look : MIB(24);
		p = accmem_mmap_huge(fd, &all[i], look);
		if (!p)
			return 4;
		if (accmem_first_nonzero(p, look) != -1)
			return 5;
		memset(p, 0xee, look);
		munmap(p, look);
		left -= look;
	}
	close(fd);
	return 0;
}

static void run_pipe(struct __test_metadata *_metadata, const char *path,
		     uint32_t policy, int *pipes, enum how how)
{
	struct victim v = { .path = path, .policy = policy, .pipe = pipes[1],
			    .how = how };
	int64_t held;

	ASSERT_EQ(how == BY_KILL ? 128 + SIGKILL : 0,
		  accmem_in_child(fill_pipe, &v));
	EXPECT_EQ(0, accmem_sysfs(path, "contexts"));
	EXPECT_EQ(0, accmem_sysfs(path, "live_bytes"));
	EXPECT_EQ(0, accmem_sysfs(path, "detached_bytes"));
	held = accmem_sysfs(path, "quarantined_bytes");
	/* at least the pinned pages, at most the buffer */
	EXPECT_LE(PINNED, held);
	EXPECT_GE(LENGTH, held);
	EXPECT_TRUE(accmem_accounts_balance(path));
	EXPECT_EQ(0, take_the_rest(path, held));
	EXPECT_EQ(held, accmem_sysfs(path, "quarantined_bytes"));
	EXPECT_TRUE(pipe_has_pattern(pipes[0]));
	/* a pipe keeps an emptied page or two for reuse: close it */
	close(pipes[0]);
	close(pipes[1]);
	EXPECT_EQ(-1, accmem_sysfs_wait(path, "quarantined_bytes", 0, 10000));
	EXPECT_EQ(0, take_the_rest(path, 0));
}

TEST_F(pin, pipe_freed_by_call)
{
	run_pipe(_metadata, variant->path, variant->page_policy, self->pipes,
		 BY_CALL);
}

TEST_F(pin, pipe_freed_by_close)
{
	run_pipe(_metadata, variant->path, variant->page_policy, self->pipes,
		 BY_CLOSE);
}

TEST_F(pin, pipe_freed_by_kill)
{
	run_pipe(_metadata, variant->path, variant->page_policy, self->pipes,
		 BY_KILL);
}

#define OWN 3

/* puts a page of a buffer of 2 MiB into the pipe, and frees the buffer */
static int quarantine_one(int fd, int pipe)
{
	struct accmem_alloc a = { .length = MIB(2), .alignment = MIB(2) };
	struct iovec iov = { .iov_len = 4096 };
	int err = accmem_ioctl_alloc(fd, &a);

	if (err)
		return err;
	iov.iov_base = accmem_mmap(fd, &a, MIB(2), RW);
	if (!iov.iov_base)
		return -errno;
	*(char *)iov.iov_base = 1;
	if (vmsplice(pipe, &iov, 1, 0) != 4096)
		return -errno;
	munmap(iov.iov_base, MIB(2));
	return accmem_ioctl_free(fd, a.address);
}

/*
 * Before a request fails, the driver checks all quarantined memory of its context. Some
 * of it is pinned here, and some only looks so because a neighbour is mapped. The
 * worker would find this as well, but runs once a second only by then.
 */
TEST_F(pin, own_memory_is_asked_in_turn)
{
	unsigned int i, rounds = 2 + accmem_scale(8);
	int fd = accmem_opened(variant->path);
	struct accmem_alloc beside = { .length = KIB(64),
				       .flags = ACCMEM_ALLOC_FIXED };
	struct accmem_alloc a = beside;
	struct accmem_info info;
	volatile char *shown;
	char *p;

	ASSERT_EQ(0, accmem_ioctl_info(fd, &info));
	/* with mapped translation no neighbour can hide a page */
	if (info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		close(fd);
		return;
	}
	for (i = 0; i < OWN; i++)
		ASSERT_EQ(0, quarantine_one(fd, self->pipes[1]));
	beside.address = info.address_base + self->capacity / 2;
	a.address = beside.address + KIB(64);
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &beside));
	shown = accmem_mapped(fd, &beside, KIB(64));
	sleep(3);
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
	for (i = 0; i < rounds; i++) {
		p = accmem_mapped(fd, &a, KIB(64));
		*p = 1;
		*shown = 1;
		munmap(p, KIB(64));
		ASSERT_EQ(0, accmem_ioctl_free(fd, a.address));
		ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
	}
	EXPECT_LE(OWN * MIB(2),
		  accmem_sysfs(variant->path, "quarantined_bytes"));
	munmap((void *)shown, KIB(64));
	close(fd);
}

/* Pins of one context do not affect another context beside it. */
TEST_F(pin, neighbour_is_not_held_up)
{
	struct victim v = { .path = variant->path,
			    .policy = variant->page_policy,
			    .pipe = self->pipes[1], .how = BY_CALL };
	struct accmem_alloc small[64];
	int fd = accmem_opened(variant->path);
	int64_t held;
	unsigned int i;
	char *p;

	for (i = 0; i < ARRAY_SIZE(small); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(fd, 4096, 0, &small[i]));
	}
	for (i = 0; i < ARRAY_SIZE(small); i++) {
		p = accmem_mapped(fd, &small[i], 4096);
		accmem_fill(p, 4096, i);
		munmap(p, 4096);
		if (i == 31) {
			ASSERT_EQ(0, accmem_in_child(fill_pipe, &v));
		}
	}
	held = accmem_sysfs(variant->path, "quarantined_bytes");
	for (i = 0; i < ARRAY_SIZE(small); i++) {
		ASSERT_EQ(0, accmem_ioctl_free(fd, small[i].address));
	}
	close(fd);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "free_bytes",
					self->capacity - held, 5000));
	EXPECT_TRUE(pipe_has_pattern(self->pipes[0]));
}

/* --- O_DIRECT in flight -------------------------------------------------- */

#define IO_BYTES MIB(4)
#define PIECE KIB(512)
/* repeated, so that the I/O takes longer than giving up the buffer */
#define IO_TIMES 4
#define IO_TIMES_MAX 64
#define IO_PIECES_MAX (IO_TIMES_MAX * IO_BYTES / PIECE)

static int open_disk(int flags)
{
	return open(getenv("ACCMEM_DISK") ?: "/dev/vda", flags | O_CLOEXEC);
}

static bool disk_fill(uint64_t seed)
{
	char *block = malloc(IO_BYTES);
	int fd = open_disk(O_RDWR);
	bool done;

	accmem_fill(block, IO_BYTES, seed);
	done = fd >= 0 && pwrite(fd, block, IO_BYTES, 0) == IO_BYTES &&
	       !fsync(fd);
	close(fd);
	free(block);
	return done;
}

static bool disk_has(uint64_t seed)
{
	int fd = open_disk(O_RDONLY | O_DIRECT);
	void *got = NULL;
	bool good;

	if (posix_memalign(&got, 4096, IO_BYTES))
		return false;
	good = fd >= 0 && pread(fd, got, IO_BYTES, 0) == IO_BYTES &&
	       accmem_check(got, IO_BYTES, seed) == -1;
	close(fd);
	free(got);
	return good;
}

struct io {
	aio_context_t aio;
	struct iocb cb[IO_PIECES_MAX];
	unsigned int pieces;
	int disk;
};

/* starts the I/O; true when all pages are pinned and the I/O runs */
static bool start_io(struct io *io, char *p, bool write, unsigned int times)
{
	static struct iocb *list[IO_PIECES_MAX];
	uint64_t at;
	unsigned int i;

	memset(io, 0, sizeof(*io));
	io->pieces = times * IO_BYTES / PIECE;
	io->disk = open_disk(O_RDWR | O_DIRECT);
	if (io->disk < 0 || syscall(SYS_io_setup, io->pieces, &io->aio))
		return false;
	for (i = 0; i < io->pieces; i++) {
		at = i * PIECE % IO_BYTES;
		io->cb[i].aio_lio_opcode =
			write ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		io->cb[i].aio_fildes = io->disk;
		io->cb[i].aio_buf = (uintptr_t)p + at;
		io->cb[i].aio_nbytes = PIECE;
		io->cb[i].aio_offset = at;
		list[i] = &io->cb[i];
	}
	return syscall(SYS_io_submit, io->aio, io->pieces, list) ==
	       (long)io->pieces;
}

/* waits for the I/O; true if all bytes were transferred */
static bool end_io(struct io *io)
{
	static struct io_event events[IO_PIECES_MAX];
	unsigned int i;
	bool good;

	good = syscall(SYS_io_getevents, io->aio, io->pieces, io->pieces,
		       events, NULL) == (long)io->pieces;
	for (i = 0; i < io->pieces && good; i++)
		good = events[i].res == PIECE;
	syscall(SYS_io_destroy, io->aio);
	close(io->disk);
	return good;
}

/*
 * Starts I/O on a buffer and gives the buffer up at once. Another context allocates and
 * checks all memory while the I/O runs, and again afterwards. The I/O transfers the
 * buffer @times times. *@flying counts the rounds in which pages were pinned meanwhile.
 */
static int one_round(const char *path, uint32_t policy, bool write,
		     unsigned int times, unsigned int *flying)
{
	struct accmem_alloc a = { .length = IO_BYTES, .page_policy = policy };
	struct accmem_alloc b = { .length = 2 * IO_BYTES,
				  .page_policy = policy };
	int fd = accmem_dev_open(path, O_RDWR);
	int other = accmem_dev_open(path, O_RDWR);
	static struct io io;
	char *p, *q;

	if (fd < 0 || other < 0 || accmem_ioctl_alloc(fd, &a))
		return 1;
	p = accmem_mmap_huge(fd, &a, IO_BYTES);
	if (!p)
		return 2;
	accmem_fill(p, IO_BYTES, 21);
	if (!start_io(&io, p, write, times))
		return 3;
	munmap(p, IO_BYTES);
	close(fd);
	*flying += accmem_sysfs(path, "quarantined_bytes") > 0;
	if (!accmem_accounts_balance(path))
		return 4;
	if (accmem_ioctl_alloc(other, &b))
		return 5;
	q = accmem_mmap_huge(other, &b, b.length);
	if (!q)
		return 6;
	if (accmem_first_nonzero(q, b.length) != -1)
		return 7;
	if (write)
		memset(q, 0xee, b.length);
	if (!end_io(&io))
		return 8;
	/* the disk has not written into the other context's memory */
	if (!write && accmem_first_nonzero(q, b.length) != -1)
		return 9;
	/* and has not read it */
	if (write && !disk_has(21))
		return 10;
	munmap(q, b.length);
	close(other);
	return 0;
}

static void run_io(struct __test_metadata *_metadata, const char *path,
		   uint32_t policy, bool write)
{
	unsigned int i, flying = 0, rounds = accmem_scale(4), times = IO_TIMES;

	for (i = 0; i < rounds || (!flying && i < 50); i++) {
		ASSERT_TRUE(disk_fill(22));
		ASSERT_EQ(0, one_round(path, policy, write, times, &flying));
		/* the I/O ended too early */
		if (!flying && times < IO_TIMES_MAX)
			times *= 2;
		ASSERT_EQ(-1, accmem_sysfs_wait(path, "quarantined_bytes", 0,
						10000));
	}
	printf("# %u of %u rounds had pages pinned\n", flying, i);
	/* at least one round must have tested pinned pages */
	EXPECT_LT(0, flying);
}

TEST_F(pin, direct_read_in_flight)
{
	run_io(_metadata, variant->path, variant->page_policy, false);
}

TEST_F(pin, direct_write_in_flight)
{
	run_io(_metadata, variant->path, variant->page_policy, true);
}

ACCMEM_HARNESS_MAIN
