// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of a pair of an allocation and its release on a trace. Built with POOL, the
 * program allocates from a pool of libaccmem, otherwise by malloc() of the library that
 * it is linked with. It prints a number.
 *
 *   pool_bench pairs TRACE ROUNDS          nanoseconds a pair, of the fastest round
 *   pool_bench threads TRACE ROUNDS N      the same, N threads with the trace each
 *   pool_bench calls TRACE                 calls of the kernel a pair
 *   pool_bench reserved TRACE              bytes reserved over peak live
 *   pool_bench first                       milliseconds to the first allocation
 *   pool_bench grow                        bytes copied in 1,000 steps of 64 KiB
 *   pool_bench steps                       rounds of 60 that run out of memory at 88 %
 *   pool_bench again                       1 if a large allocation does not fit again
 *
 * The last six commands need POOL.
 */
#include <err.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef POOL
#include <accmem_pool.h>
#endif
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MAX_THREADS 16
#define ROUND_NS 1e8 /* round of threads; many time slices of the scheduler */

struct event {
	uint32_t id;
	uint64_t bytes; /* 0: free */
};

static struct event *events;
static size_t nr_events, nr_pairs;
static uint32_t nr_ids;

#ifdef POOL
static struct accmem_context *ctx;
static struct accmem_pool *pool;

static void start(void)
{
	if (accmem_open(NULL, &ctx) || accmem_pool_create(ctx, NULL, &pool))
		errx(1, "no device, or no pool: %s", accmem_last_error());
}

static void *get(uint64_t bytes)
{
	return accmem_pool_malloc(pool, bytes);
}

static void put(void *pointer)
{
	if (accmem_pool_release(pool, pointer))
		errx(1, "%s", accmem_last_error());
}
#else
static void start(void)
{
}

static void *get(uint64_t bytes)
{
	return malloc(bytes);
}

static void put(void *pointer)
{
	free(pointer);
}
#endif

static void read_trace(const char *path)
{
	FILE *file = fopen(path, "r");
	struct event event;
	char line[128];

	if (!file)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), file)) {
		event.bytes = 0;
		if (sscanf(line, "a %" SCNu32 " %" SCNu64, &event.id,
			   &event.bytes) != 2 &&
		    sscanf(line, "f %" SCNu32, &event.id) != 1)
			continue;
		if (!(nr_events & (nr_events - 1)))
			events = realloc(events, (nr_events ? 2 * nr_events : 1) *
							 sizeof(event));
		if (!events)
			err(1, "realloc");
		events[nr_events++] = event;
		nr_pairs += event.bytes != 0;
		if (event.id >= nr_ids)
			nr_ids = event.id + 1;
	}
	fclose(file);
}

static void replay(void **pointers)
{
	size_t i;

	for (i = 0; i < nr_events; i++) {
		const struct event *event = &events[i];

		if (!event->bytes) {
			put(pointers[event->id]);
			pointers[event->id] = NULL;
			continue;
		}
		pointers[event->id] = get(event->bytes);
		if (!pointers[event->id])
			errx(1, "no memory for %" PRIu64 " bytes",
			     event->bytes);
	}
}

/* Release the allocations that the trace does not release. */
static void clear(void **pointers)
{
	uint32_t i;

	for (i = 0; i < nr_ids; i++) {
		if (pointers[i])
			put(pointers[i]);
		pointers[i] = NULL;
	}
}

static void **new_pointers(void)
{
	void **pointers = calloc(nr_ids, sizeof(*pointers));

	if (!pointers)
		err(1, "calloc");
	return pointers;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

static void bench_pairs(unsigned int rounds)
{
	void **pointers = new_pointers();
	double best = 0, begin, took;

	start();
	while (rounds--) {
		begin = now_ns();
		replay(pointers);
		took = now_ns() - begin;
		clear(pointers);
		if (!best || took < best)
			best = took;
	}
	printf("%.2f\n", best / nr_pairs);
}

static pthread_barrier_t barrier;

/**
 * struct worker - a thread that replays the trace
 * @rounds: number of rounds; a round replays the trace until ROUND_NS have passed
 * @replays: number of replays in the last round
 * @begin: begin of the last round in nanoseconds
 * @end: end of the last round in nanoseconds
 */
struct worker {
	unsigned int rounds;
	unsigned int replays;
	double begin;
	double end;
};

static void *replay_in_thread(void *argument)
{
	struct worker *worker = argument;
	void **pointers = new_pointers();
	unsigned int i;

	for (i = 0; i < worker->rounds; i++) {
		pthread_barrier_wait(&barrier);
		worker->replays = 0;
		worker->begin = now_ns();
		do {
			replay(pointers);
			clear(pointers);
			worker->replays++;
			worker->end = now_ns();
		} while (worker->end < worker->begin + ROUND_NS);
		pthread_barrier_wait(&barrier);
	}
	free(pointers);
	return NULL;
}

/* Return the ns of a replay, from the begin of the first thread to the end of the last. */
static double time_of_replay(const struct worker *workers, unsigned int count)
{
	double begin = workers->begin, end = workers->end;
	unsigned int replays = 0;

	for (; count--; workers++) {
		replays += workers->replays;
		if (workers->begin < begin)
			begin = workers->begin;
		if (workers->end > end)
			end = workers->end;
	}
	return (end - begin) / replays;
}

/*
 * Print the time of the fastest round divided by the pairs of all threads. A round ends
 * by the clock, and not after a number of replays: near the end of a round processors
 * are idle, and this time would be a larger part of the round of a faster allocator.
 */
static void bench_threads(unsigned int rounds, unsigned int count)
{
	struct worker workers[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	double best = 0, took;
	unsigned int i;

	start();
	pthread_barrier_init(&barrier, NULL, count + 1);
	for (i = 0; i < count; i++) {
		workers[i].rounds = rounds;
		pthread_create(&threads[i], NULL, replay_in_thread,
			       &workers[i]);
	}
	for (i = 0; i < rounds; i++) {
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
		took = time_of_replay(workers, count);
		if (!best || took < best)
			best = took;
	}
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("%.2f\n", best / nr_pairs);
}

#ifdef POOL
static struct accmem_pool_stats stats_of_pool(void)
{
	struct accmem_pool_stats stats;

	accmem_pool_get_stats(pool, &stats);
	return stats;
}

/* The first replay grows the pool. The second replay is measured. */
static void bench_calls(void)
{
	void **pointers = new_pointers();
	uint64_t before;

	start();
	replay(pointers);
	clear(pointers);
	before = stats_of_pool().kernel_calls;
	replay(pointers);
	printf("%.6f\n", (double)(stats_of_pool().kernel_calls - before) /
				 nr_pairs);
}

static uint64_t peak_of_trace(void)
{
	uint64_t *bytes = calloc(nr_ids, sizeof(*bytes)), live = 0, peak = 0;
	size_t i;

	if (!bytes)
		err(1, "calloc");
	for (i = 0; i < nr_events; i++) {
		live += events[i].bytes ? events[i].bytes :
					  -bytes[events[i].id];
		bytes[events[i].id] = events[i].bytes;
		if (live > peak)
			peak = live;
	}
	free(bytes);
	return peak;
}

static void bench_reserved(void)
{
	unsigned int round;
	void **pointers = new_pointers();

	start();
	for (round = 0; round < 3; round++) {
		replay(pointers);
		clear(pointers);
	}
	printf("%.4f\n", (double)stats_of_pool().peak_reserved_bytes /
				 peak_of_trace());
}

static void bench_first(void)
{
	double begin = now_ns();

	start();
	if (!get(1000))
		errx(1, "no memory");
	printf("%.4f\n", (now_ns() - begin) / 1e6);
}

static void bench_grow(void)
{
	struct accmem_pool_request req = {
		.length = 65536,
		.flags = ACCMEM_ALLOC_RESIZABLE,
		.reserve = 1001 * 65536,
	};
	void *pointer;
	size_t i;

	start();
	if (accmem_pool_allocate(pool, &req))
		errx(1, "%s", accmem_last_error());
	pointer = req.pointer;
	for (i = 2; i <= 1001; i++)
		if (accmem_pool_reallocate(pool, &pointer, i * 65536))
			errx(1, "%s", accmem_last_error());
	printf("%" PRIu64 "\n", stats_of_pool().copied_bytes);
}

static uint64_t free_bytes(void)
{
	struct accmem_info info;

	if (accmem_get_info(ctx, 0, &info))
		errx(1, "%s", accmem_last_error());
	return info.free_bytes;
}

/* A step of a training: the sizes differ in each step. All memory is released. */
static bool step_fits(uint64_t bytes, unsigned int *seed)
{
	uint64_t left = bytes / 100 * 88, length;
	bool fits = true;
	void *pointers[256]; /* each has at least 1/256 of the bytes */
	int n = 0;

	while (fits) {
		length = bytes / 256 + rand_r(seed) % (bytes / 64);
		if (length > left)
			break;
		pointers[n] = get(length);
		fits = pointers[n];
		left -= length;
		n += fits;
	}
	while (n)
		put(pointers[--n]);
	return fits;
}

static void bench_steps(void)
{
	unsigned int seed = 7, step, failed = 0;
	uint64_t bytes;

	start();
	bytes = free_bytes();
	for (step = 0; step < 60; step++)
		failed += !step_fits(bytes, &seed);
	printf("%u\n", failed);
}

/* A large allocation is released, and small ones are placed in its memory. */
static void bench_again(void)
{
	uint64_t bytes;
	unsigned int i;
	void *large;

	start();
	bytes = free_bytes();
	large = get(bytes / 100 * 60);
	if (!large)
		errx(1, "%s", accmem_last_error());
	put(large);
	for (i = 0; i < 20; i++)
		if (!get(bytes / 200))
			errx(1, "%s", accmem_last_error());
	printf("%d\n", !get(bytes / 100 * 60));
}

static int bench_pool(const char *what)
{
	if (!strcmp(what, "steps"))
		bench_steps();
	else if (!strcmp(what, "again"))
		bench_again();
	else if (!strcmp(what, "calls"))
		bench_calls();
	else if (!strcmp(what, "reserved"))
		bench_reserved();
	else if (!strcmp(what, "first"))
		bench_first();
	else if (!strcmp(what, "grow"))
		bench_grow();
	else
		return 2;
	return 0;
}
#else
static int bench_pool(const char *what)
{
	(void)what;
	return 2;
}
#endif

int main(int argc, char **argv)
{
	unsigned int count = argc > 4 ? atoi(argv[4]) : 1;

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
	fake_capacity = 8ull << 30;
#endif
	if (argc < 2 || count < 1 || count > MAX_THREADS)
		return 2;
	if (argc > 2)
		read_trace(argv[2]);
	if (argc > 3 && !strcmp(argv[1], "pairs"))
		bench_pairs(atoi(argv[3]));
	else if (argc > 4 && !strcmp(argv[1], "threads"))
		bench_threads(atoi(argv[3]), count);
	else
		return bench_pool(argv[1]);
	return 0;
}
