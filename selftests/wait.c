// SPDX-License-Identifier: GPL-2.0
/*
 * ALLOC that waits for memory: what wakes it, in which order, what ends it, and how
 * contexts that could give memory back are told.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "kselftest_harness.h"
#include "stream_util.h"

#define PATIENCE_MS 20000
#define FOREVER 0ull
#define WAITERS 8
#define PIECES 8
#define PIECE MIB(2)
#define UNITS 64 /* of a slab page */
#define USER 12345
#define RW (PROT_READ | PROT_WRITE)

static uint64_t now_ns(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? 0 : info.now_ns;
}

static uint64_t in_ms(int fd, unsigned int ms)
{
	return now_ns(fd) + ms * 1000000ull;
}

static int alloc_wait(int fd, uint64_t length, uint64_t deadline_ns,
		      struct accmem_alloc *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->length = length;
	a->flags = ACCMEM_ALLOC_WAIT;
	a->deadline_ns = deadline_ns;
	return accmem_ioctl(fd, ACCMEM_IOC_ALLOC, a);
}

static int shrink_call(int fd, uint32_t flags, int eventfd,
		       struct accmem_shrink *req)
{
	memset(req, 0, sizeof(*req));
	req->size = sizeof(*req);
	req->flags = flags;
	req->fd = eventfd;
	return accmem_ioctl(fd, ACCMEM_IOC_SHRINK, req);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static bool wait_until_readable(int fd)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (!is_readable(fd)) {
		if (accmem_ms() > until)
			return false;
		usleep(100);
	}
	return true;
}

/* a number in the device's file "waiting" */
static int64_t waiting(const char *path, const char *key)
{
	char text[8192], line[32];
	const char *at;

	if (accmem_debug_read(path, "waiting", text, sizeof(text)) < 0)
		return -1;
	snprintf(line, sizeof(line), "%s ", key);
	at = strncmp(text, line, strlen(line)) ? strstr(text, "\n") : text;
	while (at && *at == '\n' && strncmp(at + 1, line, strlen(line)))
		at = strstr(at + 1, "\n");
	return at ? atoll(at + strlen(line) + (*at == '\n')) : -1;
}

/* how many waiters are in a state */
static int in_state(const char *path, const char *state)
{
	char text[8192], *at = text;
	int n = 0;

	if (accmem_debug_read(path, "waiting", text, sizeof(text)) < 0)
		return -1;
	while ((at = strstr(at, state))) {
		n++;
		at++;
	}
	return n;
}

static bool wait_for_state(const char *path, const char *state, int n)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (in_state(path, state) != n) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

/* a thread that waits for a buffer */
struct waiter {
	pthread_t thread;
	int fd;
	uint64_t length;
	uint64_t alignment;
	uint64_t deadline_ns;
	uint32_t flags;
	int stream;
	struct accmem_alloc a;
	int err;
	atomic_int done;
	int order;
};

static atomic_int order;

static void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	w->a = (struct accmem_alloc){
		.size = sizeof(w->a),
		.length = w->length,
		.alignment = w->alignment,
		.flags = ACCMEM_ALLOC_WAIT | w->flags,
		.stream = w->stream,
		.deadline_ns = w->deadline_ns,
	};
	w->err = accmem_ioctl(w->fd, ACCMEM_IOC_ALLOC, &w->a);
	w->order = atomic_fetch_add(&order, 1);
	atomic_store(&w->done, 1);
	return NULL;
}

static bool waiter_start(struct waiter *w, int fd, uint64_t length,
			 uint64_t deadline_ns)
{
	w->fd = fd;
	w->length = length;
	w->deadline_ns = deadline_ns;
	atomic_store(&w->done, 0);
	return !pthread_create(&w->thread, NULL, waiter_main, w);
}

static bool waiter_is_done(struct waiter *w, int ms)
{
	uint64_t until = accmem_ms() + ms;

	while (!atomic_load(&w->done)) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

/* closes the context that has what it waits for; what became of it */
static int waiter_end_by_close(struct waiter *w, int *fd)
{
	close(*fd);
	*fd = -1;
	if (!waiter_is_done(w, PATIENCE_MS))
		return -ETIME;
	pthread_join(w->thread, NULL);
	return w->err;
}

/* until it sleeps, or its deadline has passed before that was seen */
static bool waiter_sleeps(struct waiter *w, const char *path, const char *state)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (in_state(path, state) != 1 && !atomic_load(&w->done)) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

static void nothing(int sig)
{
	(void)sig;
}

static void handle(int sig, int flags)
{
	struct sigaction action = { .sa_handler = nothing, .sa_flags = flags };

	sigaction(sig, &action, NULL);
}

/*
 * Before the tests, a context of its own takes all but the last PIECES pieces of each
 * device: to clear all of it takes a while.
 */
static const char *const devices[] = { ACCMEM_DEV_EMULATED, ACCMEM_DEV_PHYS,
				       ACCMEM_DEV_NOPAGES };

static bool hold_all(const char *path)
{
	int fd = accmem_dev_open(path, O_RDWR), spare = accmem_dev_open(path,
									O_RDWR);
	struct accmem_alloc a[64], pieces[PIECES];
	unsigned int i;

	for (i = 0; i < PIECES; i++) {
		pieces[i] = (struct accmem_alloc){
			.length = PIECE,
			.alignment = PIECE,
			.flags = ACCMEM_ALLOC_CONTIGUOUS |
				 ACCMEM_ALLOC_TOP_DOWN,
		};
		if (accmem_ioctl_alloc(spare, &pieces[i]))
			return false;
	}
	if (accmem_take_all(fd, ACCMEM_CACHE_WB, a, 64) < 0 ||
	    accmem_free_now(fd))
		return false;
	return !close(spare);
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = ((const struct accmem_alloc *)a)->address;
	uint64_t y = ((const struct accmem_alloc *)b)->address;

	return x < y ? -1 : x > y;
}

FIXTURE(wait)
{
	int fd;
	int other;
	uint64_t start;
	struct accmem_info info;
	struct accmem_alloc a[PIECES]; /* of the other's, by address */
};

ACCMEM_VARIANTS(wait);

FIXTURE_SETUP(wait)
{
	struct accmem_alloc a;
	unsigned int i;

	atomic_store(&order, 0);
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	self->other = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	ASSERT_LE(0, self->other);
	self->start = accmem_free_now(self->fd);
	ASSERT_EQ(PIECES * PIECE, self->start);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	for (i = 0; i < PIECES; i++)
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
						&self->a[i]));
	qsort(self->a, PIECES, sizeof(self->a[0]), compare_addresses);
	ASSERT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, 4096, 0, &a));
}

FIXTURE_TEARDOWN(wait)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;
	int fd;

	EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	if (self->fd >= 0)
		close(self->fd);
	if (self->other >= 0)
		close(self->other);
	fd = accmem_dev_open(variant->path, O_RDWR);
	while (accmem_free_now(fd) != self->start && accmem_ms() < until)
		usleep(1000);
	EXPECT_EQ(self->start, accmem_free_now(fd));
	close(fd);
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

/* --- What ends a wait ------------------------------------------------------ */

TEST_F(wait, a_free_serves_a_waiter_with_one_wake_up)
{
	struct waiter w = {};
	int64_t wakeups, in_vain;

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	wakeups = waiting(variant->path, "wakeups");
	in_vain = waiting(variant->path, "in_vain");
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	EXPECT_EQ(PIECE, w.a.footprint);
	EXPECT_EQ(wakeups + 1, waiting(variant->path, "wakeups"));
	EXPECT_EQ(in_vain, waiting(variant->path, "in_vain"));
	/* its flags are what it is, and WAIT is not */
	struct accmem_query q;

	ASSERT_EQ(0, accmem_ioctl_query(self->fd, w.a.address, &q));
	EXPECT_EQ(0, q.alloc_flags);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
}

/* What its context frees is not kept for it, though it alone may have it so. */
TEST_F(wait, a_free_of_another_thread_of_its_own)
{
	struct accmem_alloc small;
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->other, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	ASSERT_EQ(0, w.err);
	/* two that lie beside each other, one after the other */
	ASSERT_TRUE(waiter_start(&w, self->other, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[4].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[5].address));
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	ASSERT_EQ(0, w.err);
	/* and all that small ones are cut from */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, w.a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, 64, 0, &small));
	ASSERT_TRUE(waiter_start(&w, self->other, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, small.address));
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

/* One is served, and one gives up. */
TEST_F(wait, trace_events)
{
	const uint64_t length = PIECE - 4096;
	struct waiter w = {};
	struct accmem_alloc a;
	char text[64];

	ASSERT_TRUE(accmem_trace_start());
	ASSERT_TRUE(waiter_start(&w, self->fd, length, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	ASSERT_EQ(0, w.err);
	ASSERT_EQ(-ETIMEDOUT,
		  alloc_wait(self->fd, PIECE, in_ms(self->fd, 300), &a));
	ASSERT_TRUE(accmem_trace_stop());

	snprintf(text, sizeof(text), "length=%llu ",
		 (unsigned long long)length);
	EXPECT_EQ(1, accmem_trace_count("accmem_wait", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wake", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wait_end", text, NULL, 0));
	EXPECT_EQ(1, accmem_trace_count("accmem_wait_end", "error=0", NULL, 0));
	EXPECT_EQ(2, accmem_trace_count("accmem_wait", "accmem", NULL, 0));
	EXPECT_EQ(1,
		  accmem_trace_count("accmem_wait_end", "error=-110", NULL, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
}

TEST_F(wait, there_is_no_wait_where_there_is_memory)
{
	int64_t waits = waiting(variant->path, "waits");
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, alloc_wait(self->fd, PIECE, FOREVER, &a));
	EXPECT_EQ(waits, waiting(variant->path, "waits"));
}

TEST_F(wait, a_deadline_ends_it_and_not_before)
{
	uint64_t deadline = in_ms(self->fd, 100);
	struct accmem_alloc a;

	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, PIECE, deadline, &a));
	EXPECT_LE(deadline, now_ns(self->fd));
	EXPECT_EQ(0, a.free_bytes);
	EXPECT_EQ(0, a.largest_run);
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	/* what could have been had is told */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, 2 * PIECE,
					 in_ms(self->fd, 20), &a));
	EXPECT_EQ(PIECE, a.free_bytes);
	EXPECT_EQ(PIECE, a.largest_run);
}

TEST_F(wait, a_deadline_in_the_past_allows_one_try)
{
	int64_t waits = waiting(variant->path, "waits");
	struct accmem_alloc a;

	EXPECT_EQ(-ETIMEDOUT, alloc_wait(self->fd, PIECE, 1, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, alloc_wait(self->fd, PIECE, 1, &a));
	EXPECT_EQ(waits, waiting(variant->path, "waits"));
}

TEST_F(wait, a_deadline_that_is_far_away_is_none)
{
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, ~0ull));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

TEST_F(wait, a_grant_and_a_deadline_at_once_lose_nothing)
{
	unsigned int i, served = 0, n = accmem_scale(40);
	struct waiter w = {};

	for (i = 0; i < n; i++) {
		uint64_t deadline = in_ms(self->fd, 4);

		ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, deadline));
		while (now_ns(self->fd) < deadline - 300000)
			;
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[0].address));
		pthread_join(w.thread, NULL);
		if (!w.err) {
			served++;
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
		} else {
			ASSERT_EQ(-ETIMEDOUT, w.err);
		}
		ASSERT_EQ(0, accmem_drain(self->fd));
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
						&self->a[0]));
	}
	TH_LOG("%u of %u served", served, n);
}

TEST_F(wait, what_can_never_fit_fails_at_once)
{
	struct accmem_alloc a;

	EXPECT_EQ(-ENOMEM, alloc_wait(self->fd, self->info.capacity + 4096,
				      FOREVER, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", MIB(4)));
	EXPECT_EQ(-EDQUOT, alloc_wait(self->fd, MIB(6), FOREVER, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

static int wait_at(int fd, uint64_t address)
{
	struct accmem_alloc a = {
		.length = PIECE,
		.flags = ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_FIXED,
		.address = address,
		.deadline_ns = in_ms(fd, 2000),
	};

	return accmem_ioctl_alloc(fd, &a);
}

/* also where others wait, whom it would be behind */
TEST_F(wait, an_address_that_cannot_be_had_fails_at_once)
{
	uint64_t end = self->info.address_base + self->info.address_span;
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(-EEXIST, wait_at(self->other, self->a[0].address));
	EXPECT_EQ(-EINVAL, wait_at(self->other, self->a[0].address + 64));
	EXPECT_EQ(-EINVAL, wait_at(self->other, end - KIB(4)));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

TEST_F(wait, bad_input)
{
	struct accmem_alloc a = { .size = sizeof(a),
				  .length = 4096,
				  .deadline_ns = 1 };
	struct accmem_batch_alloc entry = { .length = 4096,
					    .flags = ACCMEM_ALLOC_WAIT };

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, &a));
	ASSERT_EQ(0, accmem_batch_allocs(self->fd, 0, &entry, 1, NULL));
	EXPECT_EQ(-EINVAL, entry.result);
	EXPECT_EQ(-EINVAL, alloc_wait(self->fd, 0, FOREVER, &a));
	/* a structure without the deadline has none */
	a = (struct accmem_alloc){
		.size = offsetof(struct accmem_alloc, deadline_ns),
		.length = PIECE,
		.flags = ACCMEM_ALLOC_WAIT,
	};
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, &a));
}

#define MOST 256

TEST_F(wait, a_user_may_have_so_many)
{
	struct waiter *w = calloc(MOST, sizeof(*w));
	struct accmem_alloc a;
	int i;

	ASSERT_NE(NULL, w);
	handle(SIGUSR1, 0);
	for (i = 0; i < MOST; i++)
		ASSERT_TRUE(waiter_start(&w[i], self->fd, PIECE, FOREVER));
	while (waiting(variant->path, "waiting") != MOST)
		usleep(1000);
	EXPECT_EQ(-EAGAIN, alloc_wait(self->fd, PIECE, FOREVER, &a));
	/* one that does not wait is none of them */
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	while (waiting(variant->path, "waiting")) {
		for (i = 0; i < MOST; i++)
			if (!atomic_load(&w[i].done))
				pthread_kill(w[i].thread, SIGUSR1);
		usleep(1000);
	}
	for (i = 0; i < MOST; i++) {
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(-EINTR, w[i].err);
	}
	free(w);
}

/* --- What wakes ------------------------------------------------------------ */

TEST_F(wait, freed_small_buffers_are_not_kept_from_waiters)
{
	struct accmem_alloc small[2];
	struct waiter w = {};

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, KIB(64), 0, &small[0]));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, KIB(64), 0, &small[1]));
	/* one is kept in the other's cache, one is freed while somebody waits */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, small[0].address));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, small[1].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

TEST_F(wait, a_position_of_a_stream_that_is_reached)
{
	int stream = stream_create(self->other);
	struct waiter w = {};

	ASSERT_EQ(0, stream_free(self->other, self->a[0].address, stream, 3));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, stream_signal(stream, 2));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, stream_signal(stream, 3));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	close(stream);
}

TEST_F(wait, a_free_that_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other);
	struct waiter w = { .flags = ACCMEM_ALLOC_STREAM, .stream = stream };

	ASSERT_TRUE(waiter_start(&w, self->other, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, stream_free(self->other, self->a[0].address, stream, 7));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	EXPECT_EQ(7, w.a.position);
	close(stream);
}

/* what was freed at a position is as it was before */
static int take_again(int fd, int stream, uint64_t position,
		      struct accmem_alloc *a)
{
	int err = stream_signal(stream, position);

	return err ? err : accmem_alloc_bytes(fd, PIECE, 0, a);
}

/*
 * Before the look that follows in a second; one of three times will do, for the machine
 * may be slow.
 */
TEST_F(wait, an_unmapping_of_what_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other), i, err = -1;

	for (i = 0; i < 3 && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };
		void *p = accmem_mmap(self->other, &self->a[i], PIECE, RW);

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, stream_free(self->other, self->a[i].address,
					 stream, i + 1));
		ASSERT_TRUE(waiter_start(&w, self->other, PIECE,
					 in_ms(self->other, 600)));
		ASSERT_TRUE(waiter_sleeps(&w, variant->path, "asleep"));
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

/* a thread that writes to a buffer, from a page that comes when it is told to */
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

/* true when it is in the middle of its call */
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

/* returns how many bytes it has written */
static uint64_t writer_end(struct writer *w)
{
	pthread_join(w->thread, NULL);
	close(w->faults);
	munmap(w->page, 4096);
	return w->access.done;
}

/* as of an unmapping */
TEST_F(wait, an_access_to_what_is_pending_on_the_stream_of_the_request)
{
	int stream = stream_create(self->other), i, err = -1;

	for (i = 0; i < 3 && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };
		uint64_t address = self->a[i].address;
		struct writer writer;

		ASSERT_TRUE(writer_start(&writer, self->other, address));
		ASSERT_EQ(0, stream_free(self->other, address, stream, i + 1));
		ASSERT_TRUE(waiter_start(&w, self->other, PIECE,
					 in_ms(self->other, 600)));
		ASSERT_TRUE(waiter_sleeps(&w, variant->path, "asleep"));
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
 * The slab page of a[0], full of small buffers, and nothing else that is free: the first
 * of them is mapped.
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

/* what becomes of a waiter when the page, at *@p, is unmapped; then it is mapped again */
static int unmap_beside(struct __test_metadata *_metadata, struct waiter *w,
			int fd, const char *path, void **p,
			const struct accmem_alloc *again)
{
	ASSERT_TRUE(waiter_start(w, fd, 4096 / UNITS, in_ms(fd, 600)));
	ASSERT_TRUE(waiter_sleeps(w, path, "asleep"));
	munmap(*p, 4096);
	pthread_join(w->thread, NULL);
	*p = accmem_mmap(fd, again, 4096, RW);
	return w->err;
}

/* A page of which only some buffers are pending. Three times, as above. */
TEST_F(wait, an_unmapping_of_a_slab_page_of_which_a_piece_is_pending)
{
	int stream = stream_create(self->other), i, err = -1;
	struct accmem_alloc small[UNITS];
	void *p = map_slab_page(self->other, &self->a[0], small);

	for (i = 0; i < 3 && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, stream_free(self->other, small[i].address, stream,
					 i + 1));
		err = unmap_beside(_metadata, &w, self->other, variant->path,
				   &p, &small[3]);
	}
	EXPECT_EQ(0, err);
	munmap(p, 4096);
	close(stream);
}

/* units that were freed when the page was mapped */
TEST_F(wait, an_unmapping_of_a_slab_page_of_which_units_wait)
{
	struct accmem_alloc small[UNITS];
	void *p = map_slab_page(self->other, &self->a[0], small);
	int i, err = -1;

	for (i = 0; i < 3 && err; i++) {
		struct waiter w = {};

		ASSERT_NE(NULL, p);
		ASSERT_EQ(0, accmem_ioctl_free(self->other, small[i].address));
		err = unmap_beside(_metadata, &w, self->other, variant->path,
				   &p, &small[3]);
	}
	EXPECT_EQ(0, err);
	munmap(p, 4096);
}

TEST_F(wait, an_unmapping_of_what_was_freed)
{
	struct waiter w = {};
	void *p = accmem_mmap(self->other, &self->a[0], PIECE, RW);

	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	munmap(p, PIECE);
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

TEST_F(wait, memory_that_leaves_quarantine)
{
	struct waiter w = {};
	struct iovec iov;
	int pipes[2];
	char *p;

	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return;
	p = accmem_mmap(self->other, &self->a[0], PIECE, RW);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, pipe(pipes));
	*p = 1;
	iov = (struct iovec){ p, 4096 };
	ASSERT_EQ(4096, vmsplice(pipes[1], &iov, 1, 0));
	munmap(p, PIECE);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	close(pipes[0]);
	close(pipes[1]);
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

/* What is pending is charged already. Three times, as above. */
TEST_F(wait, a_free_on_the_stream_of_a_request_that_a_limit_holds_up)
{
	int stream = stream_create(self->fd), i, err = -1;
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	for (i = 0; i < 3 && err; i++) {
		struct waiter w = { .flags = ACCMEM_ALLOC_STREAM,
				    .stream = stream };

		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
		ASSERT_TRUE(waiter_start(&w, self->fd, PIECE,
					 in_ms(self->fd, 600)));
		ASSERT_TRUE(waiter_sleeps(&w, variant->path, "limited"));
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

TEST_F(wait, a_limit_that_rises)
{
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "limited", 1));
	/* the memory of others does not help */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 2 * PIECE));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	/* and so does a charge that sinks */
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "limited", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
}

struct churn {
	int fd;
	atomic_int end;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	struct accmem_alloc a;

	while (!atomic_load(&c->end)) {
		if (!accmem_alloc_bytes(c->fd, 4096, 0, &a))
			accmem_ioctl_free(c->fd, a.address);
	}
	return NULL;
}

/* each of these frees may be what a waiter at a limit waits for: it tries, and ends */
TEST_F(wait, a_deadline_and_a_signal_while_others_give_back)
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
	pthread_join(w.thread, NULL);
	EXPECT_EQ(-ETIMEDOUT, w.err);
	handle(SIGUSR1, 0);
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	while (waiting(variant->path, "waiting") != 1)
		usleep(1000);
	pthread_kill(w.thread, SIGUSR1);
	EXPECT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	atomic_store(&c.end, 1);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(-EINTR, w.err);
}

static int take_piece(void *arg)
{
	struct accmem_alloc a;
	int fd = accmem_dev_open(arg, O_RDWR);

	return fd < 0 || accmem_alloc_bytes(fd, PIECE, 0, &a);
}

TEST_F(wait, a_process_that_dies)
{
	struct waiter w = {};
	pid_t pid;

	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pid = accmem_start(take_piece, accmem_rest, (void *)variant->path);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

TEST_F(wait, a_context_that_is_closed)
{
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, 3 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

TEST_F(wait, its_own_file_that_is_closed_stays_until_it_ends)
{
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

/* --- Order ----------------------------------------------------------------- */

TEST_F(wait, the_first_to_come_is_served_first)
{
	struct waiter w[4] = {};
	int64_t wakeups;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(waiter_start(&w[i], self->fd, PIECE, FOREVER));
		ASSERT_TRUE(wait_for_state(variant->path, "asleep", i + 1));
	}
	wakeups = waiting(variant->path, "wakeups");
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[i].address));
		ASSERT_TRUE(waiter_is_done(&w[i], PATIENCE_MS));
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(0, w[i].err);
		EXPECT_EQ(i, w[i].order);
	}
	EXPECT_EQ(wakeups + 4, waiting(variant->path, "wakeups"));
}

TEST_F(wait, all_that_fit_are_woken_once_each)
{
	struct waiter w[PIECES] = {};
	int64_t wakeups, in_vain;
	int i;

	for (i = 0; i < PIECES; i++)
		ASSERT_TRUE(waiter_start(&w[i], self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", PIECES));
	wakeups = waiting(variant->path, "wakeups");
	in_vain = waiting(variant->path, "in_vain");
	close(self->other);
	self->other = -1;
	for (i = 0; i < PIECES; i++) {
		ASSERT_TRUE(waiter_is_done(&w[i], PATIENCE_MS));
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(0, w[i].err);
	}
	EXPECT_EQ(wakeups + PIECES, waiting(variant->path, "wakeups"));
	EXPECT_EQ(in_vain, waiting(variant->path, "in_vain"));
}

TEST_F(wait, too_little_wakes_nobody)
{
	struct waiter w = {};
	int64_t wakeups;

	ASSERT_TRUE(waiter_start(&w, self->fd, 3 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	wakeups = waiting(variant->path, "wakeups");
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	EXPECT_FALSE(waiter_is_done(&w, 50));
	EXPECT_EQ(wakeups, waiting(variant->path, "wakeups"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	EXPECT_EQ(wakeups + 1, waiting(variant->path, "wakeups"));
}

TEST_F(wait, a_younger_one_that_fits_passes)
{
	struct waiter large = {}, small = {};

	ASSERT_TRUE(waiter_start(&large, self->fd, 3 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(waiter_start(&small, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&small, PATIENCE_MS));
	pthread_join(small.thread, NULL);
	EXPECT_EQ(0, small.err);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[3].address));
	ASSERT_TRUE(waiter_is_done(&large, PATIENCE_MS));
	pthread_join(large.thread, NULL);
	EXPECT_EQ(0, large.err);
}

/* Allocates and frees a piece, until that fails; returns how often it did not. */
static int pass_until_refused(int fd, int most)
{
	struct accmem_alloc a;
	int n = 0;

	while (n < most && !accmem_alloc_bytes(fd, PIECE, 0, &a)) {
		accmem_ioctl_free(fd, a.address);
		n++;
	}
	return n;
}

TEST_F(wait, a_large_request_is_passed_a_bounded_number_of_times)
{
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_TRUE(waiter_start(&w, self->fd, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(16, pass_until_refused(self->other, 100));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	/* what comes back is for the one that waits */
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, 4096, 0, &a));
	EXPECT_EQ(-ETIMEDOUT,
		  alloc_wait(self->other, 4096, in_ms(self->fd, 20), &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	/* and nothing is reserved any more */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

/* Lets a buffer grow to a piece, and shrink again, until that fails; likewise. */
static int grow_until_refused(int fd, uint64_t address, int most)
{
	struct accmem_realloc r;
	int n = 0;

	while (n < most && !accmem_ioctl_realloc(fd, address, PIECE, 0, &r)) {
		address = r.address;
		if (accmem_ioctl_realloc(fd, address, PIECE / 2, 0, &r))
			return -1;
		n++;
	}
	return n;
}

/* A buffer that grows where it is takes memory as well. */
TEST_F(wait, a_large_request_is_passed_by_growth_a_bounded_number_of_times)
{
	struct accmem_alloc a = { .length = PIECE / 2,
				  .alignment = PIECE,
				  .flags = ACCMEM_ALLOC_RESIZABLE };
	struct waiter w = {};

	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
	ASSERT_TRUE(waiter_start(&w, self->fd, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(16, grow_until_refused(self->other, a.address, 100));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

/* What is reserved is memory of the device, and none that others have already. */
TEST_F(wait, a_reservation_holds_up_nobody_who_needs_nothing_of_it)
{
	struct accmem_alloc a = { .length = 64 }, host = {
		.length = PIECE,
		.kind = ACCMEM_KIND_HOST,
		.flags = ACCMEM_ALLOC_WAIT,
	};
	struct waiter w = {};

	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
	ASSERT_TRUE(waiter_start(&w, self->fd, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	while (!accmem_alloc_bytes(self->other, KIB(4), 0, &a))
		ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	ASSERT_EQ(1, in_state(variant->path, "reserved"));
	host.deadline_ns = in_ms(self->fd, 2000);
	EXPECT_EQ(0, accmem_ioctl_alloc(self->other, &host));
	EXPECT_EQ(0, alloc_wait(self->other, 64, in_ms(self->fd, 2000), &a));
	EXPECT_EQ(-ETIMEDOUT,
		  alloc_wait(self->other, KIB(4), in_ms(self->fd, 20), &a));
	EXPECT_EQ(1, in_state(variant->path, "reserved"));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

/* Who is given memory that it does not wait for passes nobody. */
TEST_F(wait, host_memory_is_no_pass)
{
	struct waiter w = {};
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_TRUE(waiter_start(&w, self->fd, 2 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	for (i = 0; i < 20; i++) {
		a = (struct accmem_alloc){ .length = KIB(4),
					   .kind = ACCMEM_KIND_HOST };
		ASSERT_EQ(0, accmem_ioctl_alloc(self->other, &a));
		ASSERT_EQ(0, accmem_ioctl_free(self->other, a.address));
	}
	EXPECT_EQ(0, in_state(variant->path, "reserved"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(0, accmem_alloc_bytes(self->other, KIB(4), 0, &a));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

TEST_F(wait, memory_is_not_reserved_for_ever)
{
	struct waiter w = {}, next = {};
	int64_t expired = waiting(variant->path, "expired");
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;

	ASSERT_EQ(0, accmem_param_set("reserve_ms", 100));
	ASSERT_TRUE(waiter_start(&w, self->fd, 4 * PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	EXPECT_EQ(16, pass_until_refused(self->other, 100));
	/* it ends by itself, for one that waits as well */
	ASSERT_TRUE(waiter_start(&next, self->other, PIECE, FOREVER));
	ASSERT_TRUE(waiter_is_done(&next, PATIENCE_MS));
	pthread_join(next.thread, NULL);
	EXPECT_EQ(0, next.err);
	EXPECT_EQ(expired + 1, waiting(variant->path, "expired"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, next.a.address));
	/* and for one that does not */
	while (accmem_alloc_bytes(self->other, PIECE, 0, &a) &&
	       accmem_ms() < until)
		usleep(1000);
	EXPECT_GT(until, accmem_ms());
	/* the one that waits has lost nothing but its place */
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

TEST_F(wait, users_take_turns)
{
	struct waiter w[4] = {};
	int i, user;

	/* a file is of the user that opens it: of the real user id */
	ASSERT_EQ(0, setresuid(USER, 0, 0));
	user = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_EQ(0, setresuid(0, 0, 0));
	ASSERT_LE(0, user);
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(waiter_start(&w[i], i == 3 ? user : self->fd,
					 PIECE, FOREVER));
		ASSERT_TRUE(wait_for_state(variant->path, "asleep", i + 1));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[i].address));
		while (atomic_load(&order) != i + 1)
			usleep(1000);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(w[i].thread, NULL);
		EXPECT_EQ(0, w[i].err);
	}
	/* the last to come is of the other user, and the second to be served */
	EXPECT_EQ(0, w[0].order);
	EXPECT_EQ(1, w[3].order);
	EXPECT_EQ(2, w[1].order);
	EXPECT_EQ(3, w[2].order);
	close(user);
}

/* --- Signals --------------------------------------------------------------- */

TEST_F(wait, a_signal_ends_it)
{
	struct waiter w = {};

	handle(SIGUSR1, 0);
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	pthread_kill(w.thread, SIGUSR1);
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(-EINTR, w.err);
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
}

TEST_F(wait, a_call_that_a_signal_restarts_keeps_its_place)
{
	struct waiter first = {}, second = {};
	int64_t signals;

	handle(SIGUSR1, SA_RESTART);
	ASSERT_TRUE(waiter_start(&first, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(waiter_start(&second, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	signals = waiting(variant->path, "signals");
	pthread_kill(first.thread, SIGUSR1);
	while (waiting(variant->path, "signals") == signals)
		usleep(1000);
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&first, PATIENCE_MS));
	EXPECT_FALSE(waiter_is_done(&second, 20));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	pthread_join(first.thread, NULL);
	pthread_join(second.thread, NULL);
	EXPECT_EQ(0, first.err);
	EXPECT_EQ(0, second.err);
}

/* makes the call again before anything is asked that follows */
static bool interrupt(struct waiter *w, const char *path, const char *state)
{
	int64_t signals = waiting(path, "signals");

	pthread_kill(w->thread, SIGUSR1);
	while (waiting(path, "signals") == signals)
		usleep(1000);
	return wait_for_state(path, state, 1);
}

/* two pieces are wanted, @freed comes back, and memory is reserved for them */
static bool waiter_start_reserved(struct waiter *w, const char *path, int fd,
				  int other, uint64_t freed)
{
	if (!waiter_start(w, fd, 2 * PIECE, FOREVER) ||
	    !wait_for_state(path, "asleep", 1) ||
	    accmem_ioctl_free(other, freed))
		return false;
	/* nothing may be for a while, after what another test left unused */
	while (pass_until_refused(other, 100) == 100)
		usleep(1000);
	return true;
}

TEST_F(wait, a_call_that_a_signal_restarts_keeps_what_is_reserved)
{
	struct waiter w = {};
	struct accmem_alloc a;

	handle(SIGUSR1, SA_RESTART);
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_TRUE(waiter_start_reserved(&w, variant->path, self->fd,
					  self->other, self->a[0].address));
	EXPECT_TRUE(interrupt(&w, variant->path, "reserved"));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, 4096, 0, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
}

static atomic_int let_go;

static void linger(int sig)
{
	(void)sig;
	while (!atomic_load(&let_go))
		usleep(1000);
}

TEST_F(wait, a_call_that_does_not_come_back_is_forgotten)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter first = {}, second = {};

	sigaction(SIGUSR1, &action, NULL);
	ASSERT_TRUE(waiter_start(&first, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	pthread_kill(first.thread, SIGUSR1);
	ASSERT_TRUE(wait_for_state(variant->path, "interrupted", 1));
	/* it is not there to be served: others are */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&second, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(waiter_is_done(&second, PATIENCE_MS));
	pthread_join(second.thread, NULL);
	EXPECT_EQ(0, second.err);
	ASSERT_TRUE(wait_for_state(variant->path, "interrupted", 0));
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	/* it begins anew */
	atomic_store(&let_go, 1);
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	pthread_join(first.thread, NULL);
	EXPECT_EQ(0, first.err);
}

/* Nor does one that comes back again and again, and has memory reserved, hide that. */
TEST_F(wait, a_call_is_forgotten_beside_one_that_is_restarted_often)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter often = {}, lost = {};
	unsigned int i;

	handle(SIGUSR1, SA_RESTART);
	sigaction(SIGUSR2, &action, NULL);
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 60000));
	ASSERT_TRUE(waiter_start_reserved(&often, variant->path, self->fd,
					  self->other, self->a[0].address));
	ASSERT_TRUE(waiter_start(&lost, self->other, PIECE, FOREVER));
	/* beside the one that memory is reserved for */
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	pthread_kill(lost.thread, SIGUSR2);
	ASSERT_TRUE(wait_for_state(variant->path, "interrupted", 1));
	for (i = 0; i < 1000 && waiting(variant->path, "waiting") > 1; i++) {
		EXPECT_TRUE(interrupt(&often, variant->path, "reserved"));
		usleep(10000);
	}
	EXPECT_EQ(1, waiting(variant->path, "waiting"));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	pthread_join(often.thread, NULL);
	EXPECT_EQ(0, often.err);
	atomic_store(&let_go, 1);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	pthread_join(lost.thread, NULL);
	EXPECT_EQ(0, lost.err);
}

/* Nor does memory that is reserved for others, and given to them, again and again. */
TEST_F(wait, a_call_is_forgotten_beside_reservations_that_are_of_use)
{
	struct sigaction action = { .sa_handler = linger,
				    .sa_flags = SA_RESTART };
	struct waiter lost = {}, w = {};
	uint64_t until;
	unsigned int i;

	sigaction(SIGUSR2, &action, NULL);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECES * PIECE));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 900));
	ASSERT_TRUE(waiter_start(&lost, self->other, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "limited", 1));
	pthread_kill(lost.thread, SIGUSR2);
	ASSERT_TRUE(wait_for_state(variant->path, "interrupted", 1));
	until = accmem_ms() + 4000;
	while (waiting(variant->path, "waiting") && accmem_ms() < until) {
		ASSERT_TRUE(waiter_start_reserved(&w, variant->path, self->fd,
						  self->other,
						  self->a[0].address));
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[1].address));
		ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
		pthread_join(w.thread, NULL);
		ASSERT_EQ(0, w.err);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, w.a.address));
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
							&self->a[i]));
	}
	EXPECT_EQ(0, waiting(variant->path, "waiting"));
	ASSERT_EQ(0, accmem_param_set("reserve_ms", 1000));
	atomic_store(&let_go, 1);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	pthread_join(lost.thread, NULL);
	EXPECT_EQ(0, lost.err);
}

static int wait_in_child(void *arg)
{
	struct accmem_alloc a;

	return alloc_wait(*(int *)arg, PIECE, FOREVER, &a);
}

TEST_F(wait, a_waiter_that_is_killed_leaves_its_turn)
{
	struct waiter w = {};
	pid_t pid = fork();

	ASSERT_LE(0, pid);
	if (!pid)
		_exit(wait_in_child(&self->fd));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	EXPECT_EQ(1, waiting(variant->path, "waiting"));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_TRUE(waiter_is_done(&w, PATIENCE_MS));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

/* --- Contexts that give back ----------------------------------------------- */

TEST_F(wait, who_can_shrink_is_told_before_others_sleep)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	struct waiter w = {}, more = {};
	struct accmem_shrink s;
	uint64_t n;

	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, efd, &s));
	EXPECT_EQ(0, s.wanted);
	EXPECT_EQ(0, s.waiting);
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(wait_until_readable(efd));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_FALSE(is_readable(self->fd));
	ASSERT_EQ(8, read(efd, &n, 8));
	EXPECT_EQ(1, n);
	/* once until it asks */
	ASSERT_TRUE(waiter_start(&more, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 2));
	usleep(20000);
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(2 * PIECE, s.wanted);
	EXPECT_EQ(2, s.waiting);
	EXPECT_FALSE(is_readable(self->other));
	/* those who wait are not asked for what they wait for */
	ASSERT_EQ(0, shrink_call(self->fd, 0, 0, &s));
	EXPECT_EQ(0, s.wanted);
	EXPECT_EQ(0, s.waiting);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	pthread_join(w.thread, NULL);
	pthread_join(more.thread, NULL);
	EXPECT_EQ(0, w.err);
	EXPECT_EQ(0, more.err);
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(0, s.wanted);
	/* the next shortage is another */
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(wait_until_readable(efd));
	ASSERT_EQ(8, read(efd, &n, 8));
	EXPECT_EQ(1, n);
	/* one that ends is over for who has not asked */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	pthread_join(w.thread, NULL);
	EXPECT_FALSE(is_readable(self->other));
	close(efd);
}

/* has a waiter woken three times, by what others have for a moment */
static bool wake_in_vain(const char *path, int fd)
{
	int64_t in_vain = waiting(path, "in_vain");
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;

	while (waiting(path, "in_vain") < in_vain + 3) {
		if (accmem_ms() > until)
			return false;
		if (!accmem_alloc_bytes(fd, 4096, 0, &a))
			accmem_ioctl_free(fd, a.address);
		usleep(10000);
	}
	return true;
}

/* A waiter that is woken in vain has been short all the time. */
TEST_F(wait, a_try_in_vain_is_no_new_shortage)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	struct accmem_shrink s;
	struct waiter w = { .alignment = 2 * PIECE };
	unsigned int odd = self->a[0].address % (2 * PIECE) ? 0 : 1;
	uint64_t n;

	/* elsewhere an address can be had for any piece */
	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		close(efd);
		return;
	}
	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, efd, &s));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	ASSERT_TRUE(wait_until_readable(efd));
	ASSERT_EQ(8, read(efd, &n, 8));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[odd].address));
	EXPECT_TRUE(wake_in_vain(variant->path, self->other));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	/* nor is it another request for who has asked */
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_TRUE(wake_in_vain(variant->path, self->other));
	EXPECT_FALSE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[!odd].address));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
	close(efd);
}

/* Who looks for others to tell may find the same one as who does at the same time. */
TEST_F(wait, two_that_wait_for_each_other_are_both_told)
{
	int rounds = accmem_scale(40), i;
	struct accmem_shrink s;

	ASSERT_EQ(0, shrink_call(self->fd, ACCMEM_SHRINK_REGISTER, -1, &s));
	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, -1, &s));
	for (i = 0; i < rounds; i++) {
		struct waiter a = {}, b = {};

		ASSERT_TRUE(waiter_start(&a, self->fd, PIECE, FOREVER));
		ASSERT_TRUE(waiter_start(&b, self->other, PIECE, FOREVER));
		EXPECT_TRUE(wait_until_readable(self->fd));
		EXPECT_TRUE(wait_until_readable(self->other));
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[0].address));
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[1].address));
		pthread_join(a.thread, NULL);
		pthread_join(b.thread, NULL);
		ASSERT_EQ(0, a.err);
		ASSERT_EQ(0, b.err);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.a.address));
		self->a[0] = b.a;
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
						&self->a[1]));
	}
}

TEST_F(wait, who_registers_in_a_shortage_is_told_at_once)
{
	struct accmem_shrink s;
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, -1, &s));
	EXPECT_EQ(PIECE, s.wanted);
	EXPECT_TRUE(is_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_UNREGISTER, 0,
				 &s));
	EXPECT_FALSE(is_readable(self->other));
	/* its own requests are no reason */
	ASSERT_EQ(0, shrink_call(self->fd, ACCMEM_SHRINK_REGISTER, -1, &s));
	EXPECT_FALSE(is_readable(self->fd));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pthread_join(w.thread, NULL);
}

/* a call of which the structure can be read only */
static int shrink_untold(int fd, uint32_t flags, int eventfd)
{
	struct accmem_shrink *req;
	int err;

	req = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (req == MAP_FAILED)
		return -errno;
	*req = (struct accmem_shrink){ .size = sizeof(*req),
				       .flags = flags,
				       .fd = eventfd };
	err = mprotect(req, 4096, PROT_READ) ?
		      -errno :
		      accmem_ioctl(fd, ACCMEM_IOC_SHRINK, req);
	munmap(req, 4096);
	return err;
}

/* what cannot be told changes nothing, nor does it count as told */
TEST_F(wait, an_answer_that_cannot_be_written)
{
	struct accmem_shrink s;
	struct waiter w = {};

	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "asleep", 1));
	EXPECT_EQ(-EFAULT,
		  shrink_untold(self->other, ACCMEM_SHRINK_REGISTER, -1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, -1, &s));
	ASSERT_TRUE(is_readable(self->other));
	EXPECT_EQ(-EFAULT, shrink_untold(self->other, 0, 0));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-EFAULT,
		  shrink_untold(self->other, ACCMEM_SHRINK_UNREGISTER, 0));
	EXPECT_TRUE(is_readable(self->other));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pthread_join(w.thread, NULL);
}

TEST_F(wait, a_limit_of_others_is_no_shortage)
{
	struct accmem_shrink s;
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0, shrink_call(self->other, ACCMEM_SHRINK_REGISTER, -1, &s));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_TRUE(waiter_start(&w, self->fd, PIECE, FOREVER));
	ASSERT_TRUE(wait_for_state(variant->path, "limited", 1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(0, s.wanted);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.err);
}

TEST_F(wait, bad_input_of_shrink)
{
	struct accmem_shrink s;

	EXPECT_EQ(-EINVAL, shrink_call(self->fd,
				       ACCMEM_SHRINK_REGISTER |
					       ACCMEM_SHRINK_UNREGISTER,
				       -1, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, 0x4, 0, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, 0, 1, &s));
	EXPECT_EQ(-EINVAL,
		  shrink_call(self->fd, ACCMEM_SHRINK_UNREGISTER, 1, &s));
	EXPECT_EQ(-EBADF,
		  shrink_call(self->fd, ACCMEM_SHRINK_REGISTER, 999, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, ACCMEM_SHRINK_REGISTER,
				       self->other, &s));
	s = (struct accmem_shrink){ .size = sizeof(s), .reserved = 1 };
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_SHRINK, &s));
	/* nothing of that has registered it */
	EXPECT_EQ(0, shrink_call(self->fd, ACCMEM_SHRINK_UNREGISTER, 0, &s));
}

/* --- All at once ----------------------------------------------------------- */

struct storm {
	int fd;
	uint64_t seed;
	unsigned int rounds;
	atomic_int *stop;
	int bad;
};

static void *storm_main(void *arg)
{
	struct storm *s = arg;
	struct accmem_alloc a;
	unsigned int i;
	int err;

	for (i = 0; i < s->rounds && !s->bad; i++) {
		uint64_t length = 1 + accmem_random(&s->seed) % (3 * PIECE);

		if (accmem_random(&s->seed) % 4 == 0)
			length = 1 + accmem_random(&s->seed) % 8192;
		err = accmem_random(&s->seed) % 8 ?
			      alloc_wait(s->fd, length,
					 accmem_random(&s->seed) % 2 ?
						 0 :
						 in_ms(s->fd, 5),
					 &a) :
			      accmem_alloc_bytes(s->fd, length, 0, &a);
		if (err && err != -ETIMEDOUT && err != -ENOMEM && err != -EINTR)
			s->bad = err;
		if (err)
			continue;
		if (accmem_random(&s->seed) % 4 == 0)
			usleep(accmem_random(&s->seed) % 500);
		if (accmem_ioctl_free(s->fd, a.address))
			s->bad = -EIO;
	}
	return NULL;
}

TEST_F(wait, storm)
{
	uint64_t seed = accmem_seed();
	struct storm s[WAITERS] = {};
	pthread_t threads[WAITERS];
	unsigned int i, j;

	TH_LOG("seed %llu", (unsigned long long)seed);
	handle(SIGUSR1, SA_RESTART);
	handle(SIGUSR2, 0);
	for (i = 0; i < PIECES / 2; i++)
		ASSERT_EQ(0, accmem_ioctl_free(self->other,
					       self->a[i].address));
	for (i = 0; i < WAITERS; i++) {
		s[i].fd = i % 2 ? self->fd : accmem_dev_open(variant->path,
							      O_RDWR);
		s[i].seed = seed + i;
		s[i].rounds = accmem_scale(60);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, storm_main,
					    &s[i]));
	}
	for (j = 0; j < accmem_scale(100); j++) {
		pthread_kill(threads[accmem_random(&seed) % WAITERS],
			     accmem_random(&seed) % 4 ? SIGUSR1 : SIGUSR2);
		usleep(1000);
	}
	for (i = 0; i < WAITERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, s[i].bad);
		if (s[i].fd != self->fd)
			close(s[i].fd);
	}
}

int main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		if (!hold_all(devices[i])) {
			ksft_exit_fail_msg("cannot take %s\n", devices[i]);
			return 1;
		}
	}
	return accmem_harness_main(argc, argv);
}
