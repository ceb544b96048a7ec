// SPDX-License-Identifier: MIT
/*
 * The functions that PyTorch loads, on /dev/accmem0 or the device in $ACCMEM_DEVICE; with
 * FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <accmem_torch.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter_tests.h"
#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MIB 1048576ull
#define THREADS 4
#define ROUNDS 300

static int names[2];

static void *torch_take(size_t size)
{
	return accmem_torch_alloc(size, 0, NULL);
}

static int torch_give(void *pointer, size_t size)
{
	uint64_t bad = accmem_torch_bad_frees();

	accmem_torch_free(pointer, size, 0, NULL);
	return accmem_torch_bad_frees() != bad;
}

static void torch_replays_models(void)
{
	const struct adapter torch = { torch_take, torch_give };

	replay_all(&torch, accmem_torch_pool(0));
}

static void torch_sizes(void)
{
	struct accmem_info info;
	struct accmem_pool *pool = accmem_torch_pool(0);
	unsigned char *p;

	CHECK(pool);
	CHECK_EQ(accmem_get_info(accmem_pool_context(pool), 0, &info), 0);
	CHECK(!accmem_torch_alloc(0, 0, NULL));
	CHECK(!accmem_torch_alloc(-1, 0, NULL));
	CHECK(!accmem_torch_alloc(info.capacity + 1, 0, NULL));
	CHECK(*accmem_last_error());
	CHECK(!accmem_torch_alloc((size_t)-1 / 2, 0, NULL));
	p = accmem_torch_alloc(1, 0, NULL);
	CHECK(p);
	*p = 1;
	CHECK_EQ(torch_give(p, 1), 0);
}

static void torch_devices(void)
{
	struct accmem_pool_stats stats;

	CHECK_EQ(accmem_torch_get_stats(0, &stats), -ENODEV);
	CHECK(!accmem_torch_alloc(64, -1, NULL));
	CHECK(!accmem_torch_alloc(64, ACCMEM_TORCH_DEVICES, NULL));
	CHECK(!accmem_torch_alloc(64, ACCMEM_TORCH_DEVICES - 1, NULL));
	CHECK(!accmem_torch_pool(ACCMEM_TORCH_DEVICES - 1));
	CHECK(!accmem_torch_streams(-1));
	CHECK_EQ(accmem_torch_trim(5, 0), 0);
	accmem_torch_reset_peaks(5);
	CHECK(accmem_torch_pool(0) == accmem_torch_pool(0));
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
}

static void torch_bad_frees_do_nothing(void)
{
	char *p = accmem_torch_alloc(5000, 0, NULL);
	void *bad[] = { p + 1, p + 4999, &p, (void *)64, (void *)-64 };
	size_t i;

	CHECK(p);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(torch_give(bad[i], 5000), 1);
	accmem_torch_free(p, 5000, 1, NULL);
	CHECK_EQ(accmem_torch_bad_frees(), ARRAY_SIZE(bad) + 1);
	CHECK_EQ(torch_give(NULL, 0), 0);
	memset(p, 1, 5000);
	CHECK_EQ(torch_give(p, 5000), 0);
	CHECK_EQ(torch_give(p, 5000), 1);
}

/* All work that a handle has so far is done. */
static void reach_all(void *handle)
{
	struct accmem_streams *streams = accmem_torch_streams(0);
	uint64_t position;

	CHECK_EQ(accmem_streams_mark(streams, handle, &position), 0);
	CHECK_EQ(accmem_streams_reach(streams, handle, position), 0);
}

/* More than half of the device, so that there is no room for it twice. */
static size_t more_than_half(void)
{
	struct accmem_info info;

	CHECK_EQ(accmem_get_info(accmem_pool_context(accmem_torch_pool(0)), 0,
				 &info),
		 0);
	return info.capacity / 8 * 5;
}

static void *take_when_free(size_t size, void *stream)
{
	void *p;

	/* memory that was mapped is free some time after its release */
	while (!(p = accmem_torch_alloc(size, 0, stream)))
		usleep(10000);
	return p;
}

static void torch_free_waits_for_its_stream(void)
{
	struct accmem_pool_stats stats;
	size_t most = more_than_half();
	void *p;

	p = accmem_torch_alloc(most, 0, &names[0]);
	CHECK(p);
	accmem_torch_free(p, most, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
	CHECK(!accmem_torch_alloc(most, 0, &names[1]));
	reach_all(&names[0]);
	p = take_when_free(most, &names[1]);
	CHECK_EQ(torch_give(p, most), 0);
	accmem_torch_trim(0, 0);
	accmem_torch_reset_peaks(0);
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.peak_live_bytes, 0);
	CHECK_EQ(stats.peak_reserved_bytes, 0);
}

/* In either order; the stream that is done gets the memory as little as others. */
static void torch_free_waits_for_recorded_streams(void)
{
	size_t most = more_than_half();
	int first;
	char *p;

	for (first = 0; first < 2; first++) {
		p = take_when_free(most, &names[0]);
		CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
		CHECK_EQ(accmem_torch_record_stream(p + most / 2, &names[1]),
			 0);
		accmem_torch_free(p, most, 0, &names[0]);
		CHECK(!accmem_torch_alloc(most, 0, NULL));
		reach_all(&names[first]);
		CHECK(!accmem_torch_alloc(most, 0, &names[first]));
		CHECK(!accmem_torch_alloc(most, 0, NULL));
		reach_all(&names[!first]);
	}
	p = take_when_free(most, NULL);
	CHECK_EQ(torch_give(p, most), 0);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
}

/* The last stream that has work gets the memory at once. */
static void torch_last_recorded_stream_may_reuse(void)
{
	const size_t size = 3 * MIB;
	void *p = accmem_torch_alloc(size, 0, NULL), *q, *r;

	CHECK(p);
	CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
	CHECK_EQ(accmem_torch_record_stream(p, NULL), 0);
	accmem_torch_free(p, size, 0, NULL);
	q = accmem_torch_alloc(size, 0, NULL);
	CHECK(q && q != p);
	r = accmem_torch_alloc(size, 0, &names[1]);
	CHECK(r == p);
	CHECK_EQ(torch_give(q, size), 0);
	CHECK_EQ(torch_give(r, size), 0);
}

/* The streams are gone while a free waits for both. */
static void torch_forgotten_streams_are_not_waited_for(void)
{
	struct accmem_streams *streams = accmem_torch_streams(0);
	size_t most = more_than_half();
	void *p = accmem_torch_alloc(most, 0, NULL);

	CHECK_EQ(accmem_torch_record_stream(p, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
	accmem_torch_free(p, most, 0, NULL);
	CHECK_EQ(accmem_streams_forget(streams, &names[0]), 0);
	CHECK_EQ(accmem_streams_forget(streams, &names[1]), 0);
	CHECK_EQ(torch_give(take_when_free(most, NULL), most), 0);
}

/* The descriptor of a stream that is gone is another stream's, which is behind. */
static void torch_other_streams_are_not_waited_for(void)
{
	struct accmem_streams *streams = accmem_torch_streams(0);
	struct accmem_pool_stats stats;
	uint64_t mark, position;
	size_t size = 4 * MIB;
	int fd, other, i;
	void *p;

	for (i = 0; i < 9; i++)
		CHECK_EQ(accmem_streams_mark(streams, &names[1], &mark), 0);
	CHECK_EQ(accmem_streams_mark(streams, &names[0], &mark), 0);
	p = accmem_torch_alloc(size, 0, &names[0]);
	CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
	accmem_torch_free(p, size, 0, &names[0]);
	CHECK_EQ(accmem_streams_locate(streams, &names[1], &fd, &position), 0);
	CHECK_EQ(accmem_streams_forget(streams, &names[1]), 0);
	CHECK_EQ(accmem_streams_locate(streams, &size, &other, &position), 0);
	CHECK_EQ(fd, other);
	reach_all(&names[0]);
	accmem_torch_empty_cache();
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK_EQ(stats.pending_bytes, 0);
	CHECK_EQ(accmem_streams_forget(streams, &size), 0);
}

static void torch_record_stream_knows_allocations(void)
{
	char *p = accmem_torch_alloc(5000, 0, NULL);
	struct accmem_pool_stats stats;

	CHECK_EQ(accmem_torch_record_stream(NULL, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(&p, &names[0]), -ENOENT);
	CHECK(strstr(accmem_last_error(), "record_stream"));
	CHECK_EQ(accmem_torch_record_stream(p + 4999, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
	CHECK_EQ(torch_give(p, 5000), 0);
	/* it waits, and is freed nevertheless */
	CHECK_EQ(accmem_torch_record_stream(p, &names[0]), -ENOENT);
	CHECK_EQ(torch_give(p, 5000), 1);
	CHECK_EQ(torch_give(p + 1, 5000), 1);
	reach_all(&names[0]);
	reach_all(&names[1]);
	accmem_torch_empty_cache();
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK_EQ(torch_give(p, 5000), 1);
}

static void torch_memory_fraction_is_a_limit(void)
{
	static const double bad[] = { -0.01, 1.01, 0.0 / 0.0, 1.0 / 0.0 };
	size_t quarter = more_than_half() / 5 * 2, i;
	void *p, *q;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_EQ(accmem_torch_set_memory_fraction(bad[i], 0), -EINVAL);
	CHECK_EQ(accmem_torch_set_memory_fraction(0.5, -1), -ENODEV);
	CHECK_EQ(accmem_torch_set_memory_fraction(0.25, 0), 0);
	p = accmem_torch_alloc(quarter - MIB, 0, NULL);
	CHECK(p);
	CHECK(!accmem_torch_alloc(2 * MIB, 0, NULL));
	CHECK(strstr(accmem_last_error(), "fraction"));
	q = accmem_torch_alloc(MIB / 2, 0, NULL);
	CHECK(q);
	CHECK_EQ(torch_give(p, quarter - MIB), 0);
	p = take_when_free(2 * MIB, NULL);
	CHECK_EQ(accmem_torch_set_memory_fraction(0, 0), 0);
	CHECK(!accmem_torch_alloc(1, 0, NULL));
	CHECK_EQ(accmem_torch_set_memory_fraction(1, 0), 0);
	CHECK_EQ(torch_give(q, MIB / 2), 0);
	q = take_when_free(2 * quarter, NULL);
	CHECK_EQ(torch_give(q, 2 * quarter), 0);
	CHECK_EQ(torch_give(p, 2 * MIB), 0);
}

static void torch_base_of_an_allocation(void)
{
	char *p = accmem_torch_alloc(5000, 0, NULL);
	size_t size = 0;

	CHECK(accmem_torch_base_alloc(p + 4999, &size) == p);
	CHECK_EQ(size, 5000);
	CHECK(accmem_torch_base_alloc(p, NULL) == p);
	CHECK(!accmem_torch_base_alloc(&p, &size));
	CHECK(!accmem_torch_base_alloc(NULL, &size));
	CHECK_EQ(torch_give(p, 5000), 0);
}

static void torch_empty_cache_gives_all_back(void)
{
	struct accmem_pool_stats stats;
	void *p = accmem_torch_alloc(5 * MIB, 0, NULL);

	accmem_torch_free(p, 5 * MIB, 0, NULL);
	accmem_torch_empty_cache();
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.reserved_bytes, 0);
}

/* Each thread frees on its stream what the next thread's stream uses, too. */
static void *torch_record_work(void *argument)
{
	int *own = argument, *next = own + 1, round;
	size_t size;
	void *p;

	for (round = 0; round < ROUNDS; round++) {
		size = 1 + round * 331 % 100000;
		p = accmem_torch_alloc(size, 0, own);
		CHECK(p);
		memset(p, *own, size);
		CHECK_EQ(accmem_torch_record_stream(p, next), 0);
		accmem_torch_free(p, size, 0, own);
		if (!(round % 7))
			reach_all(own);
	}
	reach_all(own);
	return NULL;
}

static void torch_threads_record(void)
{
	int handles[THREADS + 1] = {}, i;
	pthread_t threads[THREADS];
	struct accmem_pool_stats stats;

	CHECK(accmem_torch_streams(0));
	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, torch_record_work,
					&handles[i]),
			 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
	for (i = 0; i <= THREADS; i++)
		reach_all(&handles[i]);
	accmem_torch_empty_cache();
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.live_bytes, 0);
}

static void torch_child_forgets_recorded_streams(void)
{
	size_t most = more_than_half();
	void *p = accmem_torch_alloc(most, 0, NULL);
	void *q = accmem_torch_alloc(MIB, 0, NULL);
	int status;
	pid_t pid;

	CHECK_EQ(accmem_torch_record_stream(q, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(p, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(p, &names[1]), 0);
	CHECK_EQ(torch_give(p, most), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(torch_give(q, MIB), 0);
		q = accmem_torch_alloc(MIB, 0, &names[1]);
		CHECK(q);
		CHECK_EQ(accmem_torch_record_stream(q, &names[0]), 0);
		CHECK_EQ(torch_give(q, MIB), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(!accmem_torch_alloc(most, 0, NULL));
	reach_all(&names[0]);
	reach_all(&names[1]);
	CHECK_EQ(torch_give(take_when_free(most, NULL), most), 0);
	CHECK_EQ(torch_give(q, MIB), 0);
}

static void *torch_work(void *argument)
{
	unsigned int seed = *(int *)argument, i;
	unsigned char *held[8] = {};
	size_t sizes[8];
	int round;

	for (round = 0; round < ROUNDS; round++) {
		i = rand_r(&seed) % 8;
		if (!held[i]) {
			sizes[i] = 1 + rand_r(&seed) % 100000;
			held[i] = accmem_torch_alloc(sizes[i], 0, argument);
			CHECK(held[i]);
			memset(held[i], i, sizes[i]);
		} else {
			CHECK_EQ(held[i][sizes[i] - 1], i);
			accmem_torch_free(held[i], sizes[i], 0,
					  round % 2 ? argument : NULL);
			held[i] = NULL;
		}
	}
	for (i = 0; i < 8; i++)
		accmem_torch_free(held[i], 0, 0, NULL);
	return NULL;
}

static void torch_threads(void)
{
	int seeds[THREADS] = { 1, 2, 3, 4 };
	pthread_t threads[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, torch_work,
					&seeds[i]),
			 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
}

static void torch_goes_on_in_a_child(void)
{
	unsigned char *p = accmem_torch_alloc(MIB, 0, NULL), *q;
	int status;
	pid_t pid;

	CHECK(p);
	memset(p, 1, MIB);
	pid = fork();
	if (!pid) {
		CHECK_EQ(p[MIB - 1], 1);
		q = accmem_torch_alloc(MIB, 0, NULL);
		CHECK(q && q != p);
		memset(q, 2, MIB);
		CHECK_EQ(torch_give(q, MIB), 0);
		CHECK_EQ(torch_give(p, MIB), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(p[0], 1);
	CHECK_EQ(torch_give(p, MIB), 0);
}

#ifdef FAKE_DEVICE
/* What a call of the library returns. */
static int no_streams;

int __wrap_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result)
{
	return no_streams ?: __real_accmem_streams_create(ctx, result);
}

static void torch_says_why_there_are_no_streams(void)
{
	no_streams = -ENOMEM;
	CHECK(accmem_torch_pool(0));
	accmem_set_last_error("%s", "");
	CHECK(!accmem_torch_streams(0));
	CHECK(strstr(accmem_last_error(), strerror(ENOMEM)));
	accmem_set_last_error("%s", "");
	CHECK(!accmem_torch_alloc(64, 0, NULL));
	CHECK(strstr(accmem_last_error(), strerror(ENOMEM)));
	no_streams = 0;
	CHECK_EQ(torch_give(accmem_torch_alloc(64, 0, NULL), 64), 0);
}

static void torch_device_may_go(void)
{
	void *p = accmem_torch_alloc(MIB, 0, NULL);
	void *q = accmem_torch_alloc(MIB, 0, &names[0]);
	void *r = accmem_torch_alloc(MIB, 0, NULL);
	uint64_t bad = accmem_torch_bad_frees();

	CHECK(p && q && r);
	CHECK_EQ(accmem_torch_record_stream(r, &names[0]), 0);
	CHECK_EQ(accmem_torch_record_stream(r, &names[1]), 0);
	fake_gone = true;
	CHECK(!accmem_torch_alloc(200 * MIB, 0, NULL));
	CHECK_EQ(torch_give(p, MIB), 0);
	CHECK(torch_give(p, MIB));
	accmem_torch_free(q, MIB, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), bad + 1);
	accmem_torch_free(q, MIB, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), bad + 2);
	CHECK_EQ(torch_give(r, MIB), 0);
	CHECK(torch_give(r, MIB));
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(torch_replays_models),
		ROW(torch_sizes),
		ROW(torch_devices),
		ROW(torch_bad_frees_do_nothing),
		ROW(torch_free_waits_for_its_stream),
		ROW(torch_free_waits_for_recorded_streams),
		ROW(torch_last_recorded_stream_may_reuse),
		ROW(torch_forgotten_streams_are_not_waited_for),
		ROW(torch_other_streams_are_not_waited_for),
		ROW(torch_record_stream_knows_allocations),
		ROW(torch_memory_fraction_is_a_limit),
		ROW(torch_base_of_an_allocation),
		ROW(torch_empty_cache_gives_all_back),
		ROW(torch_threads),
		ROW(torch_threads_record),
		ROW(torch_child_forgets_recorded_streams),
		ROW(torch_goes_on_in_a_child),
#ifdef FAKE_DEVICE
		ROW(torch_says_why_there_are_no_streams),
		ROW(torch_device_may_go),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
	fake_capacity = 1024 * MIB;
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
