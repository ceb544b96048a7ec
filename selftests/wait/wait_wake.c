// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC with ACCMEM_ALLOC_WAIT: the events that wake a waiter. Such an event frees
 * memory, or it raises the limit of the request.
 */
#include <linux/userfaultfd.h>

#include "wait_util.h"
#include "stream_util.h"

#define UNITS 64 /* bytes of a slab page */
#define TRIES 6 /* of which one must be in time; less than PIECES */

WAIT_FIXTURE(wait_wake)

/* waits until the waiter sleeps, or has ended before it was seen asleep */
static bool waiter_waits(struct waiter *w, const char *path, const char *state)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (in_state(path, state) != 1 && !atomic_load(&w->done)) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

TEST_F(wait_wake, freed_small_buffers_are_not_kept_from_waiters)
{
	struct accmem_alloc small[2];
	struct waiter w = {};

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, KIB(64), 0, &small[0]));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, KIB(64), 0, &small[1]));
	/* one buffer is in the cache before there is a waiter, and one is freed after */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, small[0].address));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	EXPECT_EQ(0, waiter_serve(&w, self->other, small[1].address));
}

TEST_F(wait_wake, a_position_of_a_stream_that_is_reached)
{
	int stream = stream_create(self->other);
	struct waiter w = {};

	ASSERT_EQ(0, stream_free(self->other, self->a[0].address, stream, 3));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_EQ(0, stream_signal(stream, 2));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, stream_signal(stream, 3));
	EXPECT_EQ(0, waiter_end(&w));
	close(stream);
}

TEST_F(wait_wake, a_free_that_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other);
	struct waiter w = { .flags = ACCMEM_ALLOC_STREAM, .stream = stream };

	ASSERT_TRUE(put_asleep(&w, variant->path, self->other, PIECE, 1));
	ASSERT_EQ(0, stream_free(self->other, self->a[0].address, stream, 7));
	EXPECT_EQ(0, waiter_end(&w));
	EXPECT_EQ(7, w.a.position);
	close(stream);
}

/* allocates the pending buffer again and frees it at another position */
static int take_again(int fd, int stream, uint64_t position,
		      struct accmem_alloc *a)
{
	int err = stream_signal(stream, position);

	return err ? err : accmem_alloc_bytes(fd, PIECE, 0, a);
}

/*
 * The waiter must be served before the scan that runs each second would serve it. One
 * success is enough, since the machine may be slow.
 */
TEST_F(wait_wake, an_unmapping_of_what_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other), i, err = -1;

	for (i = 0; i < TRIES && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };
		void *p = accmem_mapped(self->other, &self->a[i], PIECE);

		ASSERT_EQ(0, stream_free(self->other, self->a[i].address,
					 stream, i + 1));
		ASSERT_TRUE(waiter_start(&w, self->other, PIECE,
					 in_ms(self->other, 600)));
		ASSERT_TRUE(waiter_waits(&w, variant->path, "asleep"));
		munmap(p, PIECE);
		pthread_join(w.thread, NULL);
		err = w.err;
		if (err)
			ASSERT_EQ(0, take_again(self->other, stream, i + 1,
						&self->a[i]));
	}
	EXPECT_EQ(0, err);
	close(stream);
}

/* a thread that writes to a buffer from a page whose fault is held up */
struct writer {
	pthread_t thread;
	int fd;
	int faults;
	void *page;
	struct accmem_access access;
};

static void *writer_main(void *arg)
{
	struct writer *w = arg;

	accmem_ioctl_access(w->fd, &w->access);
	return NULL;
}

/* true when the thread is in the middle of its call */
static bool writer_start(struct writer *w, int fd, uint64_t address)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct pollfd poll_fault = { .events = POLLIN };

	w->fd = fd;
	w->page = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	w->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	w->access = (struct accmem_access){ .op = ACCMEM_ACCESS_WRITE,
					    .address = address,
					    .length = 4096,
					    .data = (uintptr_t)w->page };
	range.range.start = (uintptr_t)w->page;
	range.range.len = 4096;
	poll_fault.fd = w->faults;
	return !ioctl(w->faults, UFFDIO_API, &api) &&
	       !ioctl(w->faults, UFFDIO_REGISTER, &range) &&
	       !pthread_create(&w->thread, NULL, writer_main, w) &&
	       poll(&poll_fault, 1, PATIENCE_MS) == 1;
}

static bool writer_go_on(struct writer *w)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)w->page, .len = 4096 },
	};

	return !ioctl(w->faults, UFFDIO_ZEROPAGE, &zero);
}

/* lets the thread finish; the number of bytes that it has written */
static uint64_t writer_end(struct writer *w)
{
	pthread_join(w->thread, NULL);
	close(w->faults);
	munmap(w->page, 4096);
	return w->access.done;
}

/* As after munmap(): one success is enough. */
TEST_F(wait_wake, an_access_to_what_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other), i, err = -1;

	for (i = 0; i < TRIES && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };
		uint64_t address = self->a[i].address;
		struct writer writer;

		ASSERT_TRUE(writer_start(&writer, self->other, address));
		ASSERT_EQ(0, stream_free(self->other, address, stream, i + 1));
		ASSERT_TRUE(waiter_start(&w, self->other, PIECE,
					 in_ms(self->other, 600)));
		ASSERT_TRUE(waiter_waits(&w, variant->path, "asleep"));
		ASSERT_TRUE(writer_go_on(&writer));
		ASSERT_EQ(4096, writer_end(&writer));
		pthread_join(w.thread, NULL);
		err = w.err;
		if (err)
			ASSERT_EQ(0, take_again(self->other, stream, i + 1,
						&self->a[i]));
	}
	EXPECT_EQ(0, err);
	close(stream);
}

/*
 * Fills the slab page of a[0] with small buffers, so that nothing is free, and maps the
 * first of them.
 */
static void *map_slab_page(int fd, struct accmem_alloc *a,
			   struct accmem_alloc *small)
{
	static struct accmem_alloc rest[1024];
	unsigned int i;

	if (accmem_ioctl_free(fd, a->address))
		return NULL;
	for (i = 0; i < UNITS; i++)
		if (accmem_alloc_bytes(fd, 4096 / UNITS, 0, &small[i]))
			return NULL;
	if (accmem_take_all(fd, ACCMEM_CACHE_WB, rest, 1024) < 0)
		return NULL;
	return accmem_mmap(fd, small, 4096, RW);
}

/* unmaps the page at *@p, and maps it again later; the result of a waiter */
static int unmap_beside(struct __test_metadata *_metadata, struct waiter *w,
			int fd, const char *path, void **p,
			const struct accmem_alloc *again)
{
	ASSERT_TRUE(waiter_start(w, fd, 4096 / UNITS, in_ms(fd, 600)));
	ASSERT_TRUE(waiter_waits(w, path, "asleep"));
	munmap(*p, 4096);
	pthread_join(w->thread, NULL);
	*p = accmem_mmap(fd, again, 4096, RW);
	return w->err;
}

/* Only some buffers of the slab page are pending. One success is enough. */
TEST_F(wait_wake, an_unmapping_of_a_slab_page_of_which_a_piece_is_pending)
{
	int stream = stream_create(self->other), i, err = -1;
	struct accmem_alloc small[UNITS];
	void *p = map_slab_page(self->other, &self->a[0], small);

	for (i = 0; i < TRIES && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, stream_free(self->other, small[i].address, stream,
					 i + 1));
		err = unmap_beside(_metadata, &w, self->other, variant->path,
				   &p, &small[TRIES]);
	}
	EXPECT_EQ(0, err);
	munmap(p, 4096);
	close(stream);
}

/* Units of the slab page were freed while it was mapped. */
TEST_F(wait_wake, an_unmapping_of_a_slab_page_of_which_units_wait)
{
	struct accmem_alloc small[UNITS];
	void *p = map_slab_page(self->other, &self->a[0], small);
	int i, err = -1;

	for (i = 0; i < TRIES && err; i++) {
		struct waiter w = {};

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, accmem_ioctl_free(self->other, small[i].address));
		err = unmap_beside(_metadata, &w, self->other, variant->path,
				   &p, &small[TRIES]);
	}
	EXPECT_EQ(0, err);
	munmap(p, 4096);
}

TEST_F(wait_wake, an_unmapping_of_what_was_freed)
{
	struct waiter w = {};
	void *p = accmem_mapped(self->other, &self->a[0], PIECE);

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	munmap(p, PIECE);
	EXPECT_EQ(0, waiter_end(&w));
}

TEST_F(wait_wake, memory_that_leaves_quarantine)
{
	struct waiter w = {};
	int pipes[2];

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return;
	ASSERT_EQ(0, accmem_free_pinned(self->other, &self->a[0], pipes));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	accmem_unpin(pipes);
	EXPECT_EQ(0, waiter_end(&w));
}

/*
 * Pending memory is charged already, so its reuse needs no room below the limit. One
 * success is enough.
 */
TEST_F(wait_wake, a_free_on_the_stream_of_a_request_that_a_limit_holds_up)
{
	int stream = stream_create(self->fd), i, err = -1;
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	for (i = 0; i < TRIES && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };

		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
		ASSERT_TRUE(waiter_start(&w, self->fd, PIECE,
					 in_ms(self->fd, 600)));
		ASSERT_TRUE(waiter_waits(&w, variant->path, "limited"));
		ASSERT_EQ(0, stream_free(self->fd, a.address, stream, i + 1));
		pthread_join(w.thread, NULL);
		err = w.err;
		if (err)
			ASSERT_EQ(0, stream_signal(stream, i + 1));
	}
	EXPECT_EQ(0, err);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	close(stream);
}

TEST_F(wait_wake, a_limit_that_rises)
{
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_TRUE(waiter_start_in(&w, variant->path, self->fd, PIECE,
				    "limited", 1));
	/* a free of another context does not lower this charge */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 2 * PIECE));
	EXPECT_EQ(0, waiter_end(&w));
	/* an uncharge serves the waiter, too */
	ASSERT_TRUE(waiter_start_in(&w, variant->path, self->fd, PIECE,
				    "limited", 1));
	EXPECT_EQ(0, waiter_serve(&w, self->fd, a.address));
}

struct churn {
	int fd;
	atomic_int end;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	struct accmem_alloc a;

	while (!atomic_load(&c->end))
		if (!accmem_alloc_bytes(c->fd, 4096, 0, &a))
			accmem_ioctl_free(c->fd, a.address);
	return NULL;
}

/*
 * Each free may serve a waiter at a limit. It tries each time, and still ends at its
 * deadline or by a signal.
 */
TEST_F(wait_wake, a_deadline_and_a_signal_while_others_give_back)
{
	struct churn c = { .fd = self->other };
	struct waiter w = {};
	struct accmem_alloc a;
	pthread_t threads[2];
	unsigned int i;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, churn, &c));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, in_ms(self->fd, 300)));
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	atomic_store(&c.end, !atomic_load(&w.done));
	EXPECT_EQ(-ETIMEDOUT, waiter_end(&w));
	accmem_catch(SIGUSR1, 0);
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	while (waiting(variant->path, "waiting") != 1)
		usleep(1000);
	pthread_kill(w.thread, SIGUSR1);
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	atomic_store(&c.end, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(-EINTR, waiter_end(&w));
}

static int take_piece(void *arg)
{
	struct accmem_alloc a;
	int fd = accmem_dev_open(arg, O_RDWR);

	return fd < 0 || accmem_alloc_bytes(fd, PIECE, 0, &a);
}

TEST_F(wait_wake, a_process_that_dies)
{
	struct waiter w = {};
	pid_t pid;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pid = accmem_start(take_piece, accmem_rest, (void *)variant->path);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(0, waiter_end(&w));
}

TEST_F(wait_wake, a_context_that_is_closed)
{
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, 3 * PIECE, 1));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

TEST_F(wait_wake, its_own_file_that_is_closed_stays_until_it_ends)
{
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[0].address));
}

#define BITS 2048 /* of 4 KiB, in four pieces */

/* Frees four pieces; with mapped translation every second granule of them. */
static int fragment(int fd, const struct accmem_alloc *pieces, bool mapped)
{
	static struct accmem_alloc bits[BITS];
	int i, err = 0;

	for (i = 0; i < 4 && !err; i++)
		err = accmem_ioctl_free(fd, pieces[i].address);
	if (!mapped)
		return err;
	for (i = 0; i < BITS && !err; i++)
		err = accmem_alloc_bytes(fd, KIB(4), 0, &bits[i]);
	for (i = 0; i < BITS && !err; i += 2)
		err = accmem_ioctl_free(fd, bits[i].address);
	return err;
}

struct refused {
	const char *path;
	atomic_int stop;
	atomic_uint calls;
	int err;
};

/* asks again and again for more than a limit permits */
static void *be_refused(void *arg)
{
	struct refused *r = arg;
	struct accmem_alloc a;
	int fd;

	/* a context belongs to the real user id of the caller of open() */
	if (syscall(SYS_setresuid, 12345, 0, 0))
		return NULL;
	fd = accmem_dev_open(r->path, O_RDWR);
	/* CAP_SYS_RESOURCE would lift the limit */
	if (syscall(SYS_setresuid, 12345, 12345, 12345))
		return NULL;
	while (!atomic_load(&r->stop) &&
	       (r->err = accmem_alloc_bytes(fd, MIB(4) - KIB(4), 0, &a)))
		atomic_fetch_add(&r->calls, 1);
	close(fd);
	return NULL;
}

/*
 * A request that fails holds nothing that a waiter could miss: the waiter is woken by the
 * free that serves it, and not by the scan once a second.
 */
TEST_F(wait_wake, memory_that_a_refused_request_might_have_taken)
{
	struct refused r = { .path = variant->path };
	uint64_t until = accmem_ms() + PATIENCE_MS;
	const uint64_t wanted = MIB(4) - KIB(64);
	struct waiter w = {};
	pthread_t thread;
	int64_t by_scan;
	int i;

	ASSERT_EQ(0, fragment(self->other, self->a,
			      self->info.translation ==
				      ACCMEM_TRANSLATION_MAPPED));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_user", MIB(1)));
	by_scan = waiting(variant->path, "by_scan");
	ASSERT_EQ(0, pthread_create(&thread, NULL, be_refused, &r));
	while (!atomic_load(&r.calls) && accmem_ms() < until)
		usleep(1000);
	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(waiter_start(&w, self->fd, wanted, FOREVER));
		ASSERT_EQ(0, waiter_end(&w));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
	}
	atomic_store(&r.stop, 1);
	pthread_join(thread, NULL);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_user", 0));
	EXPECT_LT(0, atomic_load(&r.calls));
	EXPECT_EQ(-EDQUOT, r.err);
	EXPECT_EQ(by_scan, waiting(variant->path, "by_scan"));
}

WAIT_MAIN
