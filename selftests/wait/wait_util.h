/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for ALLOC with ACCMEM_ALLOC_WAIT: devices with PIECES pieces of usable
 * memory, which another context holds when a test begins; threads that wait; and the
 * device's statistics of waiters.
 */
#ifndef WAIT_UTIL_H
#define WAIT_UTIL_H

#include "accmem_test.h"

#define PATIENCE_MS 20000
/*
 * For waiter_reserve_ms: a reservation that refuses memory to others and gains none
 * ends after 1/200 of this, so that a pause of the test does not end it.
 */
#define RESERVE_LONG_MS 6000000
#define FOREVER 0ull
#define PIECES 8
#define PIECE MIB(2)
#define LEFT (PIECES * PIECE) /* usable bytes of each device */

static inline uint64_t now_ns(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? 0 : info.now_ns;
}

static inline uint64_t in_ms(int fd, unsigned int ms)
{
	return now_ns(fd) + ms * 1000000ull;
}

static inline int alloc_wait(int fd, uint64_t length, uint64_t deadline_ns,
			     struct accmem_alloc *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->length = length;
	a->flags = ACCMEM_ALLOC_WAIT;
	a->deadline_ns = deadline_ns;
	return accmem_ioctl(fd, ACCMEM_IOC_ALLOC, a);
}

/* a number in the device's file "waiting" */
static inline int64_t waiting(const char *path, const char *key)
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

#define TIMES 11 /* buckets of the wait times */

struct wait_times {
	uint64_t nr[TIMES];
	uint64_t sum_ns;
};

/* the file "wait_times": bounds 1 ms to 4^9 ms, inf, and the sum; false if it has another form */
static inline bool wait_times(const char *path, struct wait_times *times)
{
	char text[1024], line[64];
	size_t length = 0;
	const char *at;
	int i;

	if (accmem_debug_read(path, "wait_times", text, sizeof(text)) < 0)
		return false;
	for (i = 0; i <= TIMES; i++) {
		uint64_t *value = i < TIMES ? &times->nr[i] : &times->sum_ns;

		if (i < TIMES - 1)
			snprintf(line, sizeof(line), "%llu ", 1ull << 2 * i);
		else
			snprintf(line, sizeof(line), "%s ",
				 i < TIMES ? "inf" : "sum_ns");
		at = text + length;
		if (strncmp(at, line, strlen(line)))
			return false;
		*value = strtoull(at + strlen(line), NULL, 10);
		length += strcspn(at, "\n") + 1;
	}
	return !text[length];
}

/* the number of waiters in a state */
static inline int in_state(const char *path, const char *state)
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

static inline bool wait_for_state(const char *path, const char *state, int n)
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
	pid_t tid;
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

static inline void *waiter_main(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
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

static inline bool waiter_start(struct waiter *w, int fd, uint64_t length,
				uint64_t deadline_ns)
{
	w->fd = fd;
	w->length = length;
	w->deadline_ns = deadline_ns;
	atomic_store(&w->done, 0);
	w->tid = 0;
	return !pthread_create(&w->thread, NULL, waiter_main, w);
}

static inline bool waiter_is_done(struct waiter *w, int ms)
{
	uint64_t until = accmem_ms() + ms;

	while (!atomic_load(&w->done)) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

/* starts a waiter without a deadline; true when @n waiters are in @state */
static inline bool waiter_start_in(struct waiter *w, const char *path, int fd,
				   uint64_t length, const char *state, int n)
{
	return waiter_start(w, fd, length, FOREVER) &&
	       wait_for_state(path, state, n);
}

static inline bool put_asleep(struct waiter *w, const char *path, int fd,
			      uint64_t length, int n)
{
	return waiter_start_in(w, path, fd, length, "asleep", n);
}

/* waits for the end of the waiter's ALLOC; its result */
static inline int waiter_end(struct waiter *w)
{
	if (!waiter_is_done(w, PATIENCE_MS))
		return -ETIME;
	pthread_join(w->thread, NULL);
	return w->err;
}

/* frees a buffer of @fd; the result of the waiter's ALLOC */
static inline int waiter_serve(struct waiter *w, int fd, uint64_t address)
{
	return accmem_ioctl_free(fd, address) ?: waiter_end(w);
}

/* closes the context that holds the memory; the result of the waiter's ALLOC */
static inline int waiter_end_by_close(struct waiter *w, int *fd)
{
	close(*fd);
	*fd = -1;
	return waiter_end(w);
}

/* Allocates and frees a piece until ALLOC fails; the number of successes. */
static inline int pass_until_refused(int fd, int most)
{
	struct accmem_alloc a;
	int n = 0;

	while (n < most && !accmem_alloc_bytes(fd, PIECE, 0, &a)) {
		accmem_ioctl_free(fd, a.address);
		n++;
	}
	return n;
}

/* Allocates and frees a piece until memory is reserved for a waiter; the number of frees. */
static inline int pass_until_reserved(const char *path, int fd, int most)
{
	struct accmem_alloc a;
	int n = 0;

	while (n < most && in_state(path, "reserved") != 1 &&
	       !accmem_alloc_bytes(fd, PIECE, 0, &a)) {
		accmem_ioctl_free(fd, a.address);
		n++;
	}
	return n;
}

/* opens the device as another user: a context belongs to the real user id of open() */
static inline int opened_by(const char *path, int uid)
{
	int fd = -1;

	if (!setresuid(uid, 0, 0))
		fd = accmem_opened(path);
	return setresuid(0, 0, 0) ? -1 : fd;
}

/*
 * Ends the pause after an unused reservation of another test, in which no other
 * reservation begins: a waiter that comes while there are no reservations ends it. @fd
 * cannot get memory. 0 or -errno
 */
static inline int end_pause(const char *path, int fd)
{
	int64_t waits = waiting(path, "waits");
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;
	int err = accmem_param_set("waiter_reserve_ms", 0);

	/* a call that begins after its deadline does not wait */
	while (!err && waiting(path, "waits") == waits) {
		if (alloc_wait(fd, KIB(4), in_ms(fd, 10), &a) != -ETIMEDOUT)
			err = -EIO;
		else if (accmem_ms() > until)
			err = -ETIME;
	}
	return err ?: accmem_param_set("waiter_reserve_ms", 1000);
}

/*
 * Before the tests, a separate context takes all memory of each device but the last
 * PIECES pieces, since clearing all of the memory again and again takes long.
 */
static const char *const devices[] = { ACCMEM_DEV_EMULATED, ACCMEM_DEV_PHYS,
				       ACCMEM_DEV_NOPAGES };

static inline bool hold_all(const char *path)
{
	int fd = accmem_dev_open(path, O_RDWR),
	    spare = accmem_dev_open(path, O_RDWR);
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

static inline int compare_addresses(const void *a, const void *b)
{
	uint64_t x = ((const struct accmem_alloc *)a)->address;
	uint64_t y = ((const struct accmem_alloc *)b)->address;

	return x < y ? -1 : x > y;
}

/* allocates all pieces, sorted by address; 0 or -errno */
static inline int take_pieces(int fd, struct accmem_alloc *a)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < PIECES && !err; i++)
		err = accmem_alloc_bytes(fd, PIECE, 0, &a[i]);
	qsort(a, PIECES, sizeof(*a), compare_addresses);
	return err;
}

/* waits until @wanted bytes are free; the number of free bytes then, or after a timeout */
static inline uint64_t wait_for_free(const char *path, uint64_t wanted)
{
	uint64_t until = accmem_ms() + PATIENCE_MS, now;
	int fd = accmem_dev_open(path, O_RDWR);

	while (accmem_free_now(fd) != wanted && accmem_ms() < until)
		usleep(1000);
	now = accmem_free_now(fd);
	close(fd);
	return now;
}

/* @a are the pieces that @other holds, sorted by address. */
#define WAIT_FIXTURE(fixture)                                               \
	FIXTURE(fixture)                                                    \
	{                                                                   \
		int fd;                                                     \
		int other;                                                  \
		uint64_t start;                                             \
		struct accmem_info info;                                    \
		struct accmem_alloc a[PIECES];                              \
	};                                                                  \
	ACCMEM_VARIANTS(fixture);                                           \
	FIXTURE_SETUP(fixture)                                              \
	{                                                                   \
		struct accmem_alloc none;                                   \
		atomic_store(&order, 0);                                    \
		self->fd = accmem_opened(variant->path);                    \
		self->other = accmem_opened(variant->path);                 \
		self->start = accmem_free_now(self->fd);                    \
		ASSERT_EQ(LEFT, self->start);                               \
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));     \
		ASSERT_EQ(0, take_pieces(self->other, self->a));            \
		ASSERT_EQ(-ENOMEM,                                          \
			  accmem_alloc_bytes(self->fd, 4096, 0, &none));    \
		ASSERT_EQ(0, end_pause(variant->path, self->fd));           \
	}                                                                   \
	FIXTURE_TEARDOWN(fixture)                                           \
	{                                                                   \
		EXPECT_EQ(0, accmem_param_set("max_bytes_per_context", 0)); \
		EXPECT_EQ(0, accmem_param_set("waiter_reserve_ms", 1000));  \
		EXPECT_TRUE(accmem_accounts_balance(variant->path));        \
		if (self->fd >= 0)                                          \
			close(self->fd);                                    \
		if (self->other >= 0)                                       \
			close(self->other);                                 \
		EXPECT_EQ(self->start,                                      \
			  wait_for_free(variant->path, self->start));       \
		EXPECT_EQ(0, waiting(variant->path, "waiting"));            \
	}

static inline int wait_main(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(devices); i++) {
		/* tests on a device that is missing are skipped */
		if (!access(devices[i], F_OK) && !hold_all(devices[i])) {
			printf("1..1\nnot ok 1 the memory of %s cannot be taken\n",
			       devices[i]);
			return 1;
		}
	}
	return accmem_harness_main(argc, argv);
}

#define WAIT_MAIN                             \
	int main(int argc, char **argv)       \
	{                                     \
		return wait_main(argc, argv); \
	}

#endif /* WAIT_UTIL_H */
