// SPDX-License-Identifier: GPL-2.0
/*
 * Streams that userspace signals. The tests check the count of a stream, and that a
 * FREE at a position takes effect at that position and never before (T10).
 */
#include "stream_util.h"

#define PATIENCE_MS 20000

STREAM_FIXTURE(stream)

TEST_F(stream, the_count_only_grows)
{
	struct accmem_stream_query q = stream_query(self->stream);

	EXPECT_EQ(0, q.reached);
	EXPECT_EQ(0, q.claimed);
	EXPECT_EQ(0, q.pending);
	EXPECT_EQ(0, q.state);
	EXPECT_EQ(0, q.error);
	EXPECT_EQ(accmem_fdinfo(self->stream, "stream"), (int64_t)q.id);
	EXPECT_EQ(-ERANGE, stream_signal(self->stream, 0));
	EXPECT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, stream_signal(self->stream, 10));
	EXPECT_EQ(10, stream_query(self->stream).reached);
	EXPECT_EQ(10, stream_query(self->stream).claimed);
	EXPECT_EQ(-ERANGE, stream_signal(self->stream, 10));
	EXPECT_EQ(-ERANGE, stream_signal(self->stream, 9));
	EXPECT_EQ(10, stream_query(self->stream).reached);
	EXPECT_EQ(0, stream_signal(self->stream, ~0ull));
	EXPECT_EQ(-ERANGE, stream_signal(self->stream, ~0ull));
}

TEST_F(stream, numbers_are_of_the_context)
{
	struct accmem_stream_create req = { .size = sizeof(req) };

	ASSERT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_STREAM_CREATE, &req));
	EXPECT_EQ(2, req.id);
	EXPECT_LE(0, req.fd);
	EXPECT_EQ(FD_CLOEXEC, fcntl(req.fd, F_GETFD));
	close(req.fd);
	ASSERT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_STREAM_CREATE, &req));
	EXPECT_EQ(3, req.id);
	close(req.fd);
}

/* --- FREE at a position --------------------------------------------------- */

TEST_F(stream, t10_free_waits_for_its_position)
{
	int64_t start = accmem_sysfs(variant->path, "free_bytes");
	struct accmem_alloc a = stream_allocate(self->fd, MIB(2));
	struct accmem_query q;

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	/* the address is unknown at once */
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(NULL, accmem_mmap(self->fd, &a, 4096, RW));
	EXPECT_EQ(MIB(2), stream_pending(variant->path));
	EXPECT_EQ(1, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_signal(self->stream, 4));
	EXPECT_EQ(MIB(2), stream_pending(variant->path));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	EXPECT_EQ(start - (int64_t)MIB(2),
		  accmem_sysfs(variant->path, "free_bytes"));
	EXPECT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(0, stream_query(self->stream).pending);
	EXPECT_EQ(start, accmem_sysfs(variant->path, "free_bytes"));
}

TEST_F(stream, a_position_in_the_past_is_a_plain_free)
{
	int64_t start = accmem_sysfs(variant->path, "free_bytes");
	uint64_t positions[] = { 0, 1, 7 };
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_EQ(0, stream_signal(self->stream, 7));
	for (i = 0; i < ARRAY_SIZE(positions); i++) {
		a = stream_allocate(self->fd, MIB(1));
		ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream,
					 positions[i]));
		EXPECT_EQ(0, stream_pending(variant->path));
		EXPECT_EQ(start, accmem_sysfs(variant->path, "free_bytes"));
	}
}

TEST_F(stream, each_free_has_its_position)
{
	static const uint64_t order[] = { 3, 1, 2, 3, 1 };
	struct accmem_alloc a;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		a = stream_allocate(self->fd, MIB(1));
		ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream,
					 order[i]));
	}
	EXPECT_EQ(5, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(3, stream_query(self->stream).pending);
	EXPECT_EQ(MIB(3), stream_pending(variant->path));
	EXPECT_EQ(0, stream_signal(self->stream, 2));
	EXPECT_EQ(2, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_signal(self->stream, 100));
	EXPECT_EQ(0, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_pending(variant->path));
}

/* More frees than the driver handles in one hold of a lock. */
TEST_F(stream, many_frees_at_one_position)
{
	struct accmem_alloc a;
	unsigned int i, n = 300;

	for (i = 0; i < n; i++) {
		a = stream_allocate(self->fd, i % 2 ? 4096 : 64);
		ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream,
					 1 + i % 2));
	}
	EXPECT_EQ(n, stream_query(self->stream).pending);
	EXPECT_EQ(n, accmem_sysfs(variant->path, "buffers"));
	EXPECT_EQ(0, stream_signal(self->stream, 2));
	EXPECT_EQ(0, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

/* a thread that signals a position with many pending frees */
struct signaller {
	pthread_t thread;
	int stream;
	uint64_t position;
	int err;
};

static void *signal_main(void *arg)
{
	struct signaller *s = arg;

	s->err = stream_signal(s->stream, s->position);
	return NULL;
}

#define FREED 256 /* number of buffers of 64 KiB */

/* frees so many buffers at a position, and starts the thread */
static bool signaller_start(struct signaller *s, int fd)
{
	unsigned int i;

	for (i = 0; i < FREED; i++) {
		struct accmem_alloc a = stream_allocate(fd, KIB(64));

		if (stream_free(fd, a.address, s->stream, s->position))
			return false;
	}
	return !pthread_create(&s->thread, NULL, signal_main, s);
}

TEST_F(stream, t10_signal_returns_when_all_before_its_position_is_free)
{
	int rounds = accmem_scale(20), i;
	struct accmem_alloc a;
	uint64_t until;

	for (i = 0; i < rounds; i++) {
		struct signaller s = { .stream = self->stream,
				       .position = 2 * i + 1 };

		ASSERT_TRUE(signaller_start(&s, self->fd));
		/* on a busy machine a thread may start late beside one that spins */
		until = accmem_ms() + 3 * PATIENCE_MS;
		while (stream_query(self->stream).reached < s.position &&
		       accmem_ms() < until)
			;
		ASSERT_EQ(0, stream_signal(self->stream, s.position + 1));
		EXPECT_EQ(0, stream_pending(variant->path));
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd,
						self->info.largest_run, 0, &a));
		pthread_join(s.thread, NULL);
		ASSERT_EQ(0, s.err);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

struct failing {
	pthread_t thread;
	int fd;
	uint64_t length;
	atomic_bool ends;
};

static void *fail_to_allocate(void *arg)
{
	struct failing *f = arg;
	struct accmem_alloc a;

	while (!atomic_load(&f->ends))
		accmem_alloc_bytes(f->fd, f->length, 0, &a);
	return NULL;
}

/* An ALLOC that fails frees due memory, but takes none from a thread that signals. */
TEST_F(stream, t10_signal_frees_it_all_while_others_fail)
{
	int rounds = accmem_scale(40), i;
	struct failing f = { .fd = self->fd, .length = self->info.capacity };
	struct accmem_alloc a = stream_allocate(self->fd, KIB(64));

	ASSERT_EQ(0, pthread_create(&f.thread, NULL, fail_to_allocate, &f));
	for (i = 0; i < rounds; i++) {
		struct signaller s = { .stream = self->stream,
				       .position = i + 1 };

		ASSERT_TRUE(signaller_start(&s, self->fd));
		pthread_join(s.thread, NULL);
		ASSERT_EQ(0, s.err);
		EXPECT_EQ(0, stream_pending(variant->path));
	}
	atomic_store(&f.ends, true);
	pthread_join(f.thread, NULL);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

TEST_F(stream, t10_who_has_waited_for_a_position_finds_what_it_frees)
{
	int rounds = accmem_scale(20), i;
	struct accmem_alloc a;

	for (i = 0; i < rounds; i++) {
		struct signaller s = { .stream = self->stream,
				       .position = i + 1 };

		ASSERT_TRUE(signaller_start(&s, self->fd));
		ASSERT_EQ(0, stream_wait(self->stream, s.position, 0, 0));
		EXPECT_EQ(0, accmem_alloc_bytes(self->fd,
						self->info.largest_run, 0, &a));
		pthread_join(s.thread, NULL);
		ASSERT_EQ(0, s.err);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

/* Two contexts allocate all free memory. Neither gets pending memory. */
TEST_F(stream, t10_nobody_is_given_pending_memory)
{
	struct accmem_alloc *bufs = calloc(4096, sizeof(*bufs));
	struct accmem_alloc a = { .length = MIB(2) };
	int other = accmem_opened(variant->path);
	int n;

	n = accmem_take_all(self->fd, ACCMEM_CACHE_WB, bufs, 4096);
	ASSERT_LT(0, n);
	ASSERT_EQ(0, stream_free(self->fd, bufs[0].address, self->stream, 1));
	a.length = bufs[0].footprint;
	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(other, &a));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, accmem_ioctl_alloc(other, &a));
	close(other);
	free(bufs);
}

/* The device may use the addresses until the position. */
TEST_F(stream, device_addresses_stay_taken)
{
	struct accmem_alloc a = stream_allocate(self->fd, KIB(64)), b;
	unsigned int i;

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	for (i = 0; i < 64; i++) {
		b = stream_allocate(self->fd, KIB(64));
		EXPECT_TRUE(b.address >= a.address + KIB(64) ||
			    b.address + KIB(64) <= a.address);
	}
}

TEST_F(stream, mappings_outlive_the_position)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(2));
	char *p = accmem_mapped(self->fd, &a, MIB(2));

	accmem_fill(p, MIB(2), 1);
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	EXPECT_EQ(MIB(2), stream_pending(variant->path));
	EXPECT_EQ(-1, accmem_check(p, MIB(2), 1));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(MIB(2), accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(-1, accmem_check(p, MIB(2), 1));
	munmap(p, MIB(2));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "detached_bytes", 0,
					PATIENCE_MS));
}

/* A granule is pending when its last small buffer has been freed at a position. */
TEST_F(stream, small_buffers_wait_as_well)
{
	struct accmem_alloc a = stream_allocate(self->fd, 64);
	struct accmem_alloc b = stream_allocate(self->fd, 64), c;
	unsigned int i;

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	EXPECT_EQ(0, stream_pending(variant->path));
	for (i = 0; i < 200; i++) {
		c = stream_allocate(self->fd, 64);
		EXPECT_NE(a.address, c.address);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, c.address));
	}
	accmem_drain(self->fd);
	ASSERT_EQ(0, stream_free(self->fd, b.address, self->stream, 2));
	EXPECT_EQ(4096, stream_pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(4096, stream_pending(variant->path));
	/* a new buffer in the granule */
	c = stream_allocate(self->fd, 64);
	EXPECT_EQ(0, stream_pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, 2));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, c.address));
}

/* --- ALLOC on a stream ----------------------------------------------------- */

TEST_F(stream, alloc_takes_what_is_pending_on_its_stream)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = { .length = MIB(1) };
	uint64_t value = 0;
	char *p = accmem_mapped(self->fd, &a, MIB(1));

	*(uint64_t *)p = 42;
	munmap(p, MIB(1));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(a.address, b.address);
	EXPECT_EQ(3, b.position);
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(0, stream_query(self->stream).pending);
	EXPECT_EQ(1, accmem_sysfs(variant->path, "buffers"));
	/* the buffer has the old contents of the context */
	p = accmem_mmap(self->fd, &b, MIB(1), PROT_READ);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, accmem_try_read(p, &value));
	EXPECT_EQ(42, value);
	munmap(p, MIB(1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
}

TEST_F(stream, alloc_takes_small_buffers_too)
{
	struct accmem_alloc a = stream_allocate(self->fd, 256);
	struct accmem_alloc b = { .length = 200 };

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	EXPECT_EQ(4096, stream_pending(variant->path));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(a.address, b.address);
	EXPECT_EQ(200, b.usable);
	EXPECT_EQ(3, b.position);
	EXPECT_EQ(0, stream_pending(variant->path));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(4096, stream_pending(variant->path));
}

TEST_F(stream, alloc_takes_nothing_else)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1)), b;
	int second = stream_created(self->fd);
	char *p;

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	/* another stream, no stream, other sizes, other flags */
	b = (struct accmem_alloc){ .length = MIB(1) };
	ASSERT_EQ(0, stream_alloc(self->fd, second, &b));
	EXPECT_NE(a.address, b.address);
	EXPECT_EQ(0, b.position);
	b = stream_allocate(self->fd, MIB(1));
	EXPECT_NE(a.address, b.address);
	b = (struct accmem_alloc){ .length = MIB(1) + 4096 };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_NE(a.address, b.address);
	b = (struct accmem_alloc){ .length = MIB(1),
				   .flags = ACCMEM_ALLOC_TOP_DOWN };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_NE(a.address, b.address);
	EXPECT_EQ(1, stream_query(self->stream).pending);
	/* a buffer that is still mapped */
	a = stream_allocate(self->fd, KIB(512));
	p = accmem_mapped(self->fd, &a, KIB(512));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	b = (struct accmem_alloc){ .length = KIB(512) };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_NE(a.address, b.address);
	munmap(p, KIB(512));
	close(second);
}

TEST_F(stream, alloc_takes_nothing_that_is_pinned)
{
	struct accmem_alloc a = stream_allocate(self->fd, KIB(64));
	struct accmem_alloc b = { .length = KIB(64) };
	char *p;
	int pipes[2];

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return; /* the device has no pages */
	p = accmem_mapped(self->fd, &a, KIB(64));
	memset(p, 1, KIB(64));
	ASSERT_TRUE(accmem_pin(pipes, p, 4096));
	munmap(p, KIB(64));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_NE(a.address, b.address);
	EXPECT_EQ(1, stream_query(self->stream).pending);
	accmem_unpin(pipes);
	b = (struct accmem_alloc){ .length = KIB(64) };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(a.address, b.address);
}

/* The position of the first free holds, whatever the second free says. */
TEST_F(stream, t10_what_was_taken_keeps_its_position)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = { .length = MIB(1) };

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(a.address, b.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	/* the second free is at an earlier position of the stream */
	b = (struct accmem_alloc){ .length = MIB(1) };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(a.address, b.address);
	ASSERT_EQ(5, b.position);
	ASSERT_EQ(0, stream_free(self->fd, b.address, self->stream, 2));
	ASSERT_EQ(0, stream_signal(self->stream, 4));
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	/* and at a later position */
	b = (struct accmem_alloc){ .length = MIB(1) };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(a.address, b.address);
	ASSERT_EQ(0, stream_free(self->fd, b.address, self->stream, 9));
	ASSERT_EQ(0, stream_signal(self->stream, 8));
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, 9));
	EXPECT_EQ(0, stream_pending(variant->path));
}

TEST_F(stream, t10_two_streams_both_have_to_come)
{
	int second = stream_created(self->fd), first_first;
	struct accmem_alloc a, b;

	for (first_first = 0; first_first < 2; first_first++) {
		uint64_t at = 10 * (first_first + 1);

		a = stream_allocate(self->fd, MIB(1));
		b = (struct accmem_alloc){ .length = MIB(1) };
		ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream,
					 at));
		ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
		ASSERT_EQ(a.address, b.address);
		ASSERT_EQ(0, stream_free(self->fd, b.address, second, at));
		EXPECT_EQ(MIB(1), stream_pending(variant->path));
		ASSERT_EQ(0, stream_signal(first_first ? self->stream : second,
					   at));
		EXPECT_EQ(MIB(1), stream_pending(variant->path));
		/*
		 * the memory waits for both streams, so ALLOC on one of them may not
		 * take it
		 */
		b = (struct accmem_alloc){ .length = MIB(1) };
		if (!first_first) {
			ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
			EXPECT_NE(a.address, b.address);
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
		}
		ASSERT_EQ(0, stream_signal(first_first ? second : self->stream,
					   at));
		EXPECT_EQ(0, stream_pending(variant->path));
	}
	close(second);
}

TEST_F(stream, what_was_taken_is_plain_after_its_position)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	struct accmem_alloc b = { .length = MIB(1) };

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	ASSERT_EQ(0, stream_signal(self->stream, 5));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(self->info.free_bytes, accmem_free_now(self->fd));
}

/* An ALLOC whose answer cannot be written leaves the memory pending. */
TEST_F(stream, t10_an_alloc_that_fails_gives_it_back)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1)), *req;
	char *page = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	req = (struct accmem_alloc *)page;
	*req = (struct accmem_alloc){ .size = sizeof(*req),
				      .length = MIB(1),
				      .flags = ACCMEM_ALLOC_STREAM,
				      .stream = self->stream };
	ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 5));
	EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, req));
	EXPECT_EQ(MIB(1), stream_pending(variant->path));
	EXPECT_EQ(1, stream_query(self->stream).pending);
	ASSERT_EQ(0, stream_signal(self->stream, 5));
	EXPECT_EQ(0, stream_pending(variant->path));
	munmap(page, 4096);
}

/* --- whose stream it is ---------------------------------------------------- */

TEST_F(stream, a_stream_is_of_one_context)
{
	struct accmem_alloc a = stream_allocate(self->fd, 4096);
	struct accmem_alloc b = { .length = 4096 };
	int other = accmem_dev_open(variant->path, O_RDWR);
	const char *elsewhere = strcmp(variant->path, ACCMEM_DEV_PHYS) ?
					ACCMEM_DEV_PHYS : ACCMEM_DEV_EMULATED;
	int device = accmem_dev_open(elsewhere, O_RDWR);
	int of_other = stream_created(other),
	    of_device = stream_created(device);
	int closed = stream_create(self->fd), pipes[2];

	ASSERT_EQ(0, pipe(pipes));
	close(closed);
	EXPECT_EQ(-EACCES, stream_free(self->fd, a.address, of_other, 1));
	EXPECT_EQ(-EACCES, stream_free(self->fd, a.address, of_device, 1));
	EXPECT_EQ(-EACCES, stream_free(self->fd, a.address, of_other, 0));
	EXPECT_EQ(-EBADF, stream_free(self->fd, a.address, closed, 1));
	EXPECT_EQ(-EBADF, stream_free(self->fd, a.address, -1, 1));
	EXPECT_EQ(-EINVAL, stream_free(self->fd, a.address, pipes[0], 1));
	EXPECT_EQ(-EINVAL, stream_free(self->fd, a.address, self->fd, 1));
	EXPECT_EQ(-EACCES, stream_alloc(self->fd, of_other, &b));
	EXPECT_EQ(-EACCES, stream_alloc(self->fd, of_device, &b));
	EXPECT_EQ(-EBADF, stream_alloc(self->fd, closed, &b));
	EXPECT_EQ(-EINVAL, stream_alloc(self->fd, pipes[0], &b));
	/* none of these calls had an effect */
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	close(pipes[0]);
	close(pipes[1]);
	close(of_other);
	close(of_device);
	close(other);
	close(device);
}

TEST_F(stream, what_is_wrong_with_the_buffer_is_told)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));
	int other = accmem_dev_open(variant->path, O_RDWR);
	int of_other = stream_create(other);

	EXPECT_EQ(-ENOENT, stream_free(self->fd, 4096, self->stream, 1));
	EXPECT_EQ(-EINVAL, stream_free(self->fd, a.address + 64, self->stream,
				       1));
	EXPECT_EQ(-ENOENT, stream_free(other, a.address, of_other, 1));
	EXPECT_EQ(0, stream_query(self->stream).pending);
	EXPECT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	EXPECT_EQ(-ENOENT, stream_free(self->fd, a.address, self->stream, 1));
	EXPECT_EQ(1, stream_query(self->stream).pending);
	close(of_other);
	close(other);
}

/* Any process with the file of a stream may signal it. */
static int signal_as_child(void *arg)
{
	return stream_signal(*(int *)arg, 3) ? 1 : 0;
}

TEST_F(stream, another_process_may_signal)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(1));

	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 3));
	EXPECT_EQ(0, accmem_in_child(signal_as_child, &self->stream));
	EXPECT_EQ(0, stream_pending(variant->path));
	EXPECT_EQ(3, stream_query(self->stream).reached);
}

TEST_F(stream, what_is_pinned_hides_nothing_else)
{
	struct accmem_alloc a = stream_allocate(self->fd, MIB(2));
	struct accmem_alloc pinned = stream_allocate(self->fd, MIB(2));
	struct accmem_alloc b = { .length = MIB(2) };
	char *p;
	int pipes[2];

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return; /* the device has no pages */
	p = accmem_mapped(self->fd, &pinned, MIB(2));
	memset(p, 1, 4096);
	ASSERT_TRUE(accmem_pin(pipes, p, 4096));
	munmap(p, MIB(2));
	ASSERT_EQ(0, stream_free(self->fd, a.address, self->stream, 1));
	ASSERT_EQ(0, stream_free(self->fd, pinned.address, self->stream, 1));
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(1, b.position);
	EXPECT_EQ(a.address, b.address);
	EXPECT_EQ(1, stream_query(self->stream).pending);
	accmem_unpin(pipes);
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, stream_pending(variant->path));
}

ACCMEM_HARNESS_MAIN
