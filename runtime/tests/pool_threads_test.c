// SPDX-License-Identifier: MIT
/*
 * Tests of pools that several threads use, and of fork: on the device in
 * $ACCMEM_DEVICE, and with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pool_tests.h"

/* Lengths of all sorts, often small, and a byte that tells whose they are. */
static size_t random_length(unsigned int *seed)
{
	unsigned int r = rand_r(seed);

	switch (r % 8) {
	case 0:
		return 1 + rand_r(seed) % (200 * 1024);
	case 1:
		return 1 + rand_r(seed) % 65536;
	default:
		return 1 + rand_r(seed) % 3000;
	}
}

#define STORM_LIVE 64
#define STORM_ROUNDS 3000

struct stormer {
	pthread_t thread;
	struct accmem_pool *pool;
	unsigned int seed;
	bool begun;
};

static void check_bytes(const unsigned char *p, size_t length,
			unsigned char byte)
{
	CHECK_EQ(p[0], byte);
	CHECK_EQ(p[length / 2], byte);
	CHECK_EQ(p[length - 1], byte);
}

static void set_bytes(unsigned char *p, size_t length, unsigned char byte)
{
	p[0] = byte;
	p[length / 2] = byte;
	p[length - 1] = byte;
}

static void *storm(void *argument)
{
	struct stormer *s = argument;
	unsigned char *p[STORM_LIVE] = {};
	size_t length[STORM_LIVE], i, round, rounds = test_scale(STORM_ROUNDS);

	__atomic_store_n(&s->begun, true, __ATOMIC_RELAXED);
	for (round = 0; round < rounds; round++) {
		i = rand_r(&s->seed) % STORM_LIVE;
		if (p[i]) {
			check_bytes(p[i], length[i], (uintptr_t)p[i] >> 6);
			CHECK_EQ(accmem_pool_release(s->pool, p[i]), 0);
			p[i] = NULL;
			continue;
		}
		length[i] = random_length(&s->seed);
		p[i] = accmem_pool_malloc(s->pool, length[i]);
		CHECK(p[i]);
		CHECK_EQ(accmem_pool_map(s->pool, p[i]), 0);
		set_bytes(p[i], length[i], (uintptr_t)p[i] >> 6);
		if (round % 500 == 0)
			accmem_pool_trim(s->pool, 0);
	}
	for (i = 0; i < STORM_LIVE; i++)
		if (p[i])
			CHECK_EQ(accmem_pool_release(s->pool, p[i]), 0);
	return NULL;
}

static void threads_share_a_pool(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct stormer s[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(s); i++) {
		s[i].pool = pool;
		s[i].seed = i + 1;
		CHECK_EQ(pthread_create(&s[i].thread, NULL, storm, &s[i]), 0);
	}
	for (i = 0; i < ARRAY_SIZE(s); i++)
		CHECK_EQ(pthread_join(s[i].thread, NULL), 0);
	CHECK_EQ(get_stats(pool).live_bytes, 0);
	CHECK_EQ(get_stats(pool).allocations, get_stats(pool).releases);
	/* the threads' caches ended with them */
	accmem_pool_trim(pool, 0);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	end(pool);
}

static void *release_it(void *argument)
{
	void **both = argument;

	CHECK_EQ(accmem_pool_release(both[0], both[1]), 0);
	return NULL;
}

static void another_thread_may_release(void)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	struct accmem_pool *pool = new_pool(0);
	pthread_t thread;
	void *both[2] = { pool, NULL };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		both[1] = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(pthread_create(&thread, NULL, release_it, both), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
		CHECK_EQ(accmem_pool_release(pool, both[1]), -ENOENT);
	}
	end(pool);
}

/* The child has waited for a byte, and ends well. */
static void let_child_go_on(pid_t pid, const int pipes[2])
{
	char byte = 0;
	int status;

	CHECK_EQ(write(pipes[1], &byte, 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* The parent gives back what the child then gets, and has known as the parent's. */
static void a_child_gets_what_its_parent_has_freed(void)
{
	struct accmem_pool *pool = new_pool(0);
	void *p = accmem_pool_malloc(pool, 3 * MIB), *large;
	void *q = accmem_pool_malloc(pool, 100);
	char *new, byte;
	int pipes[2];
	pid_t pid;

	CHECK_EQ(accmem_pool_map(pool, p), 0);
	CHECK_EQ(accmem_pool_map(pool, q), 0);
	CHECK_EQ(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(read(pipes[0], &byte, 1), 1);
		large = accmem_pool_malloc(pool, get_capacity() / 2);
		new = accmem_pool_malloc(pool, 3 * MIB);
		CHECK(large && new);
		CHECK_EQ(accmem_pool_map(pool, new), 0);
		memset(new, 5, 3 * MIB);
		CHECK_EQ(accmem_pool_release(pool, new), 0);
		CHECK_EQ(accmem_pool_lookup(pool, new, NULL), -ENOENT);
		CHECK_EQ(accmem_pool_release(pool, large), 0);
		new = accmem_pool_malloc(pool, 100);
		CHECK_EQ(accmem_pool_map(pool, new), 0);
		*new = 6;
		CHECK_EQ(accmem_pool_release(pool, new), 0);
		accmem_pool_destroy(pool);
		_exit(0);
	}
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	accmem_pool_trim(pool, 0);
	let_child_go_on(pid, pipes);
	end(pool);
}

#ifdef FAKE_DEVICE
/* Of two buffers, the child's first region takes the place of one, and grows. */
static void a_child_grows_over_what_its_parent_has_freed(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req[2] = {
		{ .length = 8 * MIB, .flags = ACCMEM_ALLOC_CONTIGUOUS },
		{ .length = 8 * MIB, .flags = ACCMEM_ALLOC_CONTIGUOUS },
	};
	int pipes[2];
	void *p[8];
	char byte;
	size_t i;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(req); i++)
		CHECK_EQ(accmem_pool_allocate(pool, &req[i]), 0);
	CHECK_EQ(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(read(pipes[0], &byte, 1), 1);
		CHECK_EQ(accmem_pool_lookup(pool, req[1].pointer, NULL), 0);
		for (i = 0; i < ARRAY_SIZE(p); i++)
			CHECK(p[i] = accmem_pool_malloc(pool, 3 * MIB));
		for (i = 0; i < ARRAY_SIZE(p); i++)
			CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
		for (i = 0; i < ARRAY_SIZE(req); i++)
			CHECK_EQ(accmem_pool_lookup(pool, req[i].pointer, NULL),
				 -ENOENT);
		accmem_pool_destroy(pool);
		_exit(0);
	}
	for (i = 0; i < ARRAY_SIZE(req); i++)
		CHECK_EQ(accmem_pool_release(pool, req[i].pointer), 0);
	let_child_go_on(pid, pipes);
	end(pool);
}
#endif

static void forks_while_others_allocate(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct stormer s[2];
	int status;
	size_t i;
	pid_t pid;
	void *p;

	for (i = 0; i < ARRAY_SIZE(s); i++) {
		s[i] = (struct stormer){ .pool = pool, .seed = i + 10 };
		CHECK_EQ(pthread_create(&s[i].thread, NULL, storm, &s[i]), 0);
		/* at its beginning a thread has locks of sanitizers */
		while (!__atomic_load_n(&s[i].begun, __ATOMIC_RELAXED))
			sched_yield();
	}
	for (i = 0; i < 10; i++) {
		pid = fork();
		if (!pid) {
			alarm(100);
			p = accmem_pool_malloc(pool, 100);
			CHECK(p);
			CHECK_EQ(accmem_pool_map(pool, p), 0);
			memset(p, 1, 100);
			CHECK_EQ(accmem_pool_release(pool, p), 0);
			accmem_pool_trim(pool, 0);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	for (i = 0; i < ARRAY_SIZE(s); i++)
		CHECK_EQ(pthread_join(s[i].thread, NULL), 0);
	end(pool);
}

/**
 * struct guest - a thread that stays while the test goes on
 * @thread: it
 * @pool: that it allocates from
 * @meets: when it has done its part, and when it may end
 * @held: what it keeps
 */
struct guest {
	pthread_t thread;
	struct accmem_pool *pool;
	pthread_barrier_t meets;
	void *held[2];
};

/* It leaves spans free, before one that it keeps, and blocks beside one. */
static void *leave_much(void *argument)
{
	struct guest *guest = argument;
	static void *p[FILL_MAX];
	size_t n;

	guest->held[0] = accmem_pool_malloc(guest->pool, 64);
	n = fill(guest->pool, p, FILL_MAX, FILL_LENGTH);
	CHECK(n * FILL_LENGTH > get_capacity() * 8 / 10);
	guest->held[1] = p[--n];
	while (n--)
		CHECK_EQ(accmem_pool_release(guest->pool, p[n]), 0);
	pthread_barrier_wait(&guest->meets);
	pthread_barrier_wait(&guest->meets);
	CHECK_EQ(accmem_pool_release(guest->pool, guest->held[0]), 0);
	CHECK_EQ(accmem_pool_release(guest->pool, guest->held[1]), 0);
	return NULL;
}

#define PAGES_MAX 65536

/* Nothing is kept for one thread that another needs. */
static void what_others_have_free_is_had_before_a_failure(void)
{
	static void *p[FILL_MAX], *q[PAGES_MAX];
	struct guest guest = { .pool = new_pool(0) };
	size_t n, m;
	void *block;

	CHECK_EQ(pthread_barrier_init(&guest.meets, NULL, 2), 0);
	CHECK_EQ(pthread_create(&guest.thread, NULL, leave_much, &guest), 0);
	pthread_barrier_wait(&guest.meets);
	n = fill(guest.pool, p, FILL_MAX, FILL_LENGTH);
	CHECK(n * FILL_LENGTH > get_capacity() * 8 / 10);
	m = fill(guest.pool, q, PAGES_MAX, 4096);
	/* no page is left, but blocks in the other's slab */
	block = accmem_pool_malloc(guest.pool, 64);
	CHECK(block);
	CHECK_EQ(accmem_pool_release(guest.pool, block), 0);
	while (m--)
		CHECK_EQ(accmem_pool_release(guest.pool, q[m]), 0);
	while (n--)
		CHECK_EQ(accmem_pool_release(guest.pool, p[n]), 0);
	pthread_barrier_wait(&guest.meets);
	CHECK_EQ(pthread_join(guest.thread, NULL), 0);
	CHECK_EQ(get_stats(guest.pool).live_bytes, 0);
	end(guest.pool);
}

static void *end_cancelled(void *pool)
{
	/* at its next cancellation point */
	CHECK_EQ(pthread_cancel(pthread_self()), 0);
	end(pool);
	return NULL;
}

static void a_pool_ends_whoever_is_cancelled(void)
{
	struct accmem_pool *pool = new_pool(0);
	pthread_t thread;
	void *result, *p = accmem_pool_malloc(pool, 3 * MIB);

	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(pthread_create(&thread, NULL, end_cancelled, pool), 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(!result && !context);
}

#define USED (16 * MIB)

static void *use_some(void *argument)
{
	struct accmem_pool *pool = argument;
	void *p[USED / MIB];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK(p[i] = accmem_pool_malloc(pool, MIB));
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	return NULL;
}

/* A thread that begins finds what those before it have left. */
static void threads_one_after_another_need_no_more_than_one(void)
{
	struct accmem_pool *pool = new_pool(0);
	pthread_t thread;
	int i;

	use_some(pool);
	for (i = 0; i < 20; i++) {
		CHECK_EQ(pthread_create(&thread, NULL, use_some, pool), 0);
		CHECK_EQ(pthread_join(thread, NULL), 0);
	}
	/* the first thread is there all the time */
	CHECK(get_stats(pool).peak_reserved_bytes <= 2 * USED + 4 * MIB);
	end(pool);
}

static int count_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int count = 0;

	CHECK(dir);
	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void *say_tid(void *tid)
{
	*(pid_t *)tid = gettid();
	return NULL;
}

/* A sanitizer begins a thread of its own beside the first that a program begins. */
static void begin_and_end_a_thread(void)
{
	pthread_t thread;
	char path[64];
	pid_t tid;

	CHECK_EQ(pthread_create(&thread, NULL, say_tid, &tid), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	snprintf(path, sizeof(path), "/proc/self/task/%d", tid);
	while (!access(path, F_OK))
		usleep(1000);
}

/* One that was joined may be there for a moment longer. */
static void wait_for_threads(int count)
{
	int tries = 10000;

	while (count_threads() != count && --tries)
		usleep(1000);
	CHECK_EQ(count_threads(), count);
}

/* Such a pool begins no thread, and keeps nothing that is released. */
static void a_childs_pool_does_not_register(void)
{
	struct accmem_pool *pool;
	int status, before;
	pid_t pid;
	void *p;

	pid = fork();
	if (!pid) {
		before = count_threads();
		pool = new_pool(0);
		p = accmem_pool_malloc(pool, 8 * MIB);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		CHECK_EQ(count_threads(), before);
		CHECK_EQ(get_stats(pool).reserved_bytes, 0);
		CHECK_EQ(accmem_pool_yield(pool), 0);
		accmem_pool_destroy(pool);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/*
 * The driver notifies a context once: a registration of the child would take the place of one
 * that the parent has, or makes later.
 */
static void a_child_does_not_take_the_place_of_its_parent(void)
{
	struct accmem_pool *direct = new_pool(ACCMEM_POOL_DIRECT);
	struct accmem_pool *passive, *pool;
	void *p;

	begin_and_end_a_thread();
	a_childs_pool_does_not_register();
	passive = new_pool(ACCMEM_POOL_PASSIVE);
	a_childs_pool_does_not_register();
	accmem_pool_destroy(passive);
	pool = new_pool(0);
	/* before its thread begins, and after that */
	a_childs_pool_does_not_register();
	p = accmem_pool_malloc(pool, 3 * MIB);
	a_childs_pool_does_not_register();
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	accmem_pool_destroy(direct);
	end(pool);
}

/* A first allocation does not pay for it; nobody keeps much without it. */
static void the_thread_that_gives_back_begins_when_there_is_some(void)
{
	struct accmem_pool *pool = new_pool(0);
	int before, i;
	char *p[200];

	begin_and_end_a_thread();
	before = count_threads();
	p[0] = accmem_pool_malloc(pool, 1000);
	CHECK_EQ(count_threads(), before);
	for (i = 1; i < 200; i++)
		p[i] = accmem_pool_malloc(pool, 1000);
	CHECK_EQ(count_threads(), before + 1);
	for (i = 0; i < 200; i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	end(pool);
	wait_for_threads(before);

	pool = new_pool(0);
	p[0] = accmem_pool_malloc(pool, 3 * MIB);
	CHECK_EQ(count_threads(), before + 1);
	CHECK_EQ(accmem_pool_release(pool, p[0]), 0);
	end(pool);
	wait_for_threads(before);

	pool = new_pool(ACCMEM_POOL_PASSIVE);
	p[0] = accmem_pool_malloc(pool, 3 * MIB);
	CHECK_EQ(count_threads(), before);
	CHECK_EQ(accmem_pool_release(pool, p[0]), 0);
	end(pool);
}

#ifdef FAKE_DEVICE
static void wait_until_nothing_is_kept(struct accmem_pool *pool)
{
	int tries = 10000;

	while (get_stats(pool).reserved_bytes && --tries)
		usleep(1000);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
}

/* Until then the pool keeps nothing, and no other of the context is told less. */
static void a_thread_that_could_not_begin_begins_later(void)
{
	struct accmem_pool *with = new_pool(0), *without = new_pool(0);
	int before;
	void *p;

	begin_and_end_a_thread();
	before = count_threads();
	p = accmem_pool_malloc(with, 3 * MIB);
	CHECK_EQ(accmem_pool_release(with, p), 0);
	CHECK_EQ(count_threads(), before + 1);

	fake_fail_threads = 1;
	p = accmem_pool_malloc(without, 3 * MIB);
	CHECK_EQ(fake_fail_threads, 0);
	CHECK_EQ(count_threads(), before + 1);
	CHECK_EQ(accmem_pool_release(without, p), 0);
	CHECK_EQ(get_stats(without).reserved_bytes, 0);
	fake_wait_for(1);
	wait_until_nothing_is_kept(with);
	fake_wait_for(0);

	usleep(200000);
	p = accmem_pool_malloc(without, 3 * MIB);
	CHECK_EQ(count_threads(), before + 2);
	CHECK_EQ(accmem_pool_release(without, p), 0);
	CHECK(get_stats(without).reserved_bytes);
	fake_wait_for(1);
	wait_until_nothing_is_kept(without);
	fake_wait_for(0);
	accmem_pool_destroy(without);
	end(with);
}
#endif

/**
 * struct releaser - who releases in a thread of its own
 * @pool: the pool
 * @pointers: a block and a span
 * @block: what the release of the former returned
 * @span: of the latter
 * @again: of the former, once more
 */
struct releaser {
	struct accmem_pool *pool;
	void *pointers[2];
	int block;
	int span;
	int again;
};

/*
 * A sanitizer maps memory for itself in any call, and ends the process if it cannot. The
 * programs for the guests have none.
 */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER true
#else
#define HAS_SANITIZER false
#endif

/* In a thread that has no cache, and cannot get one. */
static void *release_without_memory(void *argument)
{
	struct releaser *r = argument;
	struct rlimit before, none;

	CHECK_EQ(getrlimit(RLIMIT_AS, &before), 0);
	none = before;
	if (!HAS_SANITIZER)
		none.rlim_cur = 0;
	CHECK_EQ(setrlimit(RLIMIT_AS, &none), 0);
	r->block = accmem_pool_release(r->pool, r->pointers[0]);
	r->span = accmem_pool_release(r->pool, r->pointers[1]);
	r->again = accmem_pool_release(r->pool, r->pointers[0]);
	CHECK_EQ(setrlimit(RLIMIT_AS, &before), 0);
	return NULL;
}

static void a_release_needs_no_memory(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct releaser r = { .pool = pool,
			      .pointers = { accmem_pool_malloc(pool, 100),
					    accmem_pool_malloc(pool, 9000) } };
	pthread_t thread;

	CHECK(r.pointers[0] && r.pointers[1]);
	CHECK_EQ(pthread_create(&thread, NULL, release_without_memory, &r), 0);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(r.block, 0);
	CHECK_EQ(r.span, 0);
	CHECK_EQ(r.again, -ENOENT);
	CHECK_EQ(get_stats(pool).live_bytes, 0);
	CHECK_EQ(get_stats(pool).releases, 2);
	end(pool);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(the_thread_that_gives_back_begins_when_there_is_some),
		ROW(threads_share_a_pool),
		ROW(another_thread_may_release),
		ROW(a_release_needs_no_memory),
		ROW(a_pool_ends_whoever_is_cancelled),
		ROW(what_others_have_free_is_had_before_a_failure),
		ROW(threads_one_after_another_need_no_more_than_one),
		ROW(a_child_gets_what_its_parent_has_freed),
		ROW(a_child_does_not_take_the_place_of_its_parent),
		ROW(forks_while_others_allocate),
#ifdef FAKE_DEVICE
		ROW(a_child_grows_over_what_its_parent_has_freed),
		ROW(a_thread_that_could_not_begin_begins_later),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
