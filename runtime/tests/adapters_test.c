// SPDX-License-Identifier: MIT
/*
 * The adapters for PyTorch and for the Unified Memory Framework, on /dev/accmem0 or
 * the device in $ACCMEM_DEVICE; with FAKE_DEVICE over fake_device.c. The traces of
 * models are replayed through both, with $ACCMEM_SCALE per cent of their events, at
 * most 100.
 */
#define _GNU_SOURCE
#include <accmem_torch.h>
#include <accmem_umf.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters_test.h"
#include "test.h"
#ifdef FAKE_DEVICE
#include "fake_device.h"
#endif

#define MIB 1048576ull
#define THREADS 4
#define ROUNDS 300

static int names[2];

/* --- traces --------------------------------------------------------------- */

/* An adapter, as the replayer sees it. */
struct adapter {
	void *(*alloc)(size_t size);
	int (*free)(void *pointer, size_t size);
};

struct live {
	unsigned char *pointer;
	size_t size;
};

static FILE *open_trace(const char *name)
{
	char path[4096] = "";
	char *end;
	ssize_t length;
	FILE *file;
	int i;

	if (getenv("ACCMEM_TRACES")) {
		snprintf(path, sizeof(path), "%s/", getenv("ACCMEM_TRACES"));
	} else {
		/* build/selftests/PROGRAM */
		length = readlink("/proc/self/exe", path, sizeof(path) - 64);
		CHECK(length > 0);
		path[length] = 0;
		for (i = 0; i < 3; i++) {
			end = strrchr(path, '/');
			CHECK(end);
			*end = 0;
		}
		strcat(path, "/traces/");
	}
	strcat(path, name);
	file = fopen(path, "r");
	CHECK(file);
	return file;
}

/* The first and the last byte of each hold what tells it from others. */
static void put(struct live *l, unsigned int id)
{
	l->pointer[0] = id;
	l->pointer[l->size - 1] = id;
}

static bool is_there(const struct live *l, unsigned int id)
{
	unsigned char first = l->size > 1 ? l->pointer[0] : (unsigned char)id;

	return first == (unsigned char)id &&
	       l->pointer[l->size - 1] == (unsigned char)id;
}

static void take(const struct adapter *a, struct live *l, unsigned int id,
		 size_t size)
{
	l->pointer = a->alloc(size);
	l->size = size;
	CHECK(l->pointer);
	put(l, id);
}

static void give(const struct adapter *a, struct live *l, unsigned int id)
{
	CHECK(is_there(l, id));
	CHECK_EQ(a->free(l->pointer, l->size), 0);
	l->pointer = NULL;
}

/* What there is no room for on a small device is left out, with its free. */
static void replay(const char *name, const struct adapter *a, uint64_t room)
{
	unsigned int id, events = 0, most = 600 * test_scale(100),
			 ids = 1 << 17;
	struct live *live = calloc(ids, sizeof(*live));
	FILE *file = open_trace(name);
	uint64_t held = 0;
	char line[128];
	size_t size;

	CHECK(live);
	while (events < most && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "a %u %zu", &id, &size) == 2) {
			CHECK(id < ids);
			if (held + size > room)
				continue;
			take(a, &live[id], id, size);
			held += size;
			events++;
		} else if (sscanf(line, "f %u", &id) == 1 && live[id].pointer) {
			held -= live[id].size;
			give(a, &live[id], id);
			events++;
		}
	}
	fclose(file);
	CHECK(events >= (test_scale(100) < 100 ? most / 10 : 15000));
	for (id = 0; id < ids; id++)
		if (live[id].pointer)
			give(a, &live[id], id);
	free(live);
}

static void replay_all(const struct adapter *a, struct accmem_pool *pool)
{
	struct accmem_pool_stats stats;
	struct accmem_info info;
	uint64_t room;

	CHECK_EQ(accmem_get_info(accmem_pool_context(pool), 0, &info), 0);
	room = info.capacity / 4 * 3;
	replay("gpt.trace", a, room);
	if (test_scale(100) == 100) {
		replay("decode.trace", a, room);
		replay("resnet.trace", a, room);
	}
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK_EQ(stats.failures, 0);
	accmem_pool_trim(pool, 0);
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.reserved_bytes, 0);
}

/* --- PyTorch -------------------------------------------------------------- */

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

static void torch_free_waits_for_its_stream(void)
{
	struct accmem_pool *pool = accmem_torch_pool(0);
	struct accmem_pool_stats stats;
	struct accmem_info info;
	uint64_t position;
	size_t most;
	void *p;

	CHECK_EQ(accmem_get_info(accmem_pool_context(pool), 0, &info), 0);
	most = info.capacity / 8 * 5;
	p = accmem_torch_alloc(most, 0, &names[0]);
	CHECK(p);
	accmem_torch_free(p, most, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), 0);
	CHECK(!accmem_torch_alloc(most, 0, &names[1]));
	CHECK_EQ(accmem_streams_mark(accmem_torch_streams(0), &names[0],
				     &position),
		 0);
	CHECK_EQ(accmem_streams_reach(accmem_torch_streams(0), &names[0],
				      position),
		 0);
	/* memory that was mapped is free some time after its release */
	while (!(p = accmem_torch_alloc(most, 0, &names[1])))
		usleep(10000);
	CHECK_EQ(torch_give(p, most), 0);
	accmem_torch_trim(0, 0);
	accmem_torch_reset_peaks(0);
	CHECK_EQ(accmem_torch_get_stats(0, &stats), 0);
	CHECK_EQ(stats.peak_live_bytes, 0);
	CHECK_EQ(stats.peak_reserved_bytes, 0);
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

/* --- Unified Memory Framework --------------------------------------------- */

static const umf_memory_provider_ops_t *ops;
static void *provider;

static void make_provider(void)
{
	ops = accmem_umf_provider_ops();
	CHECK_EQ(ops->version, UMF_VERSION_CURRENT);
	CHECK_EQ(ops->initialize(NULL, &provider), UMF_RESULT_SUCCESS);
}

static void *umf_take(size_t size)
{
	void *pointer = NULL;

	ops->alloc(provider, size, 0, &pointer);
	return pointer;
}

static int umf_give(void *pointer, size_t size)
{
	return ops->free(provider, pointer, size);
}

static void umf_replays_models(void)
{
	const struct adapter umf = { umf_take, umf_give };

	make_provider();
	replay_all(&umf, accmem_umf_pool(provider));
	ops->finalize(provider);
}

static void umf_allocates(void)
{
	size_t alignment;
	void *p;

	make_provider();
	for (alignment = 1; alignment <= 4 * MIB; alignment *= 2) {
		CHECK_EQ(ops->alloc(provider, 4096, alignment, &p),
			 UMF_RESULT_SUCCESS);
		CHECK_EQ((uintptr_t)p % alignment, 0);
		memset(p, 1, 4096);
		CHECK_EQ(umf_give(p, 4096), UMF_RESULT_SUCCESS);
	}
	CHECK_EQ(ops->alloc(provider, 4096, 3, &p),
		 UMF_RESULT_ERROR_INVALID_ALIGNMENT);
	CHECK_EQ(ops->alloc(provider, 0, 0, &p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ops->alloc(provider, 1ull << 50, 0, &p),
		 UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	CHECK_EQ(ops->alloc(provider, SIZE_MAX, 0, &p),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
}

static void umf_frees_what_it_allocated(void)
{
	char *p;

	make_provider();
	p = umf_take(5000);
	CHECK(p);
	CHECK_EQ(umf_give(p + 64, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 4999), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(&p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(NULL, 0), UMF_RESULT_SUCCESS);
	memset(p, 1, 5000);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	p = umf_take(64);
	CHECK_EQ(umf_give(p, 0), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

static void umf_pages(void)
{
	size_t size, least;
	void *p;

	make_provider();
	CHECK_EQ(ops->get_min_page_size(provider, NULL, &least), 0);
	CHECK_EQ(least, 4096);
	CHECK_EQ(ops->get_recommended_page_size(provider, 1, &size), 0);
	CHECK_EQ(size, 4096);
	CHECK_EQ(ops->get_recommended_page_size(provider, 2 * MIB, &size), 0);
	CHECK(size == 4096 || size == 2 * MIB);
	p = umf_take(4096);
	CHECK_EQ(ops->get_min_page_size(provider, p, &size), 0);
	CHECK_EQ(size, 4096);
	CHECK_EQ(ops->get_min_page_size(provider, &p, &size),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 4096), 0);
	ops->finalize(provider);
}

static const char *name_of(void)
{
#if UMF_MINOR >= 100
	const char *name;

	CHECK_EQ(ops->get_name(provider, &name), UMF_RESULT_SUCCESS);
	return name;
#else
	return ops->get_name(provider);
#endif
}

static void umf_parameters(void)
{
	struct accmem_umf_params params = { .size = sizeof(params) };
	const char *message;
	void *second;
	int32_t error;

	make_provider();
	CHECK(!strcmp(name_of(), "accmem"));
	params.size--;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.size++;
	params.unmapped = 2;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.unmapped = 1;
	params.carveout = 99;
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	params.carveout = 0;
	params.device = "/dev/null/nothing";
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	ops->get_last_native_error(provider, &message, &error);
	CHECK_EQ(error, ENOTDIR);
	CHECK(message);
	params.device = "/dev/accmem-none";
	CHECK_EQ(ops->initialize(&params, &second),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	ops->get_last_native_error(provider, &message, &error);
	CHECK_EQ(error, ENOENT);
	CHECK(strstr(message, "/dev/accmem-none: "));
	CHECK(strstr(message, strerror(ENOENT)));
	/* another over the same pool */
	params.pool = accmem_umf_pool(provider);
	CHECK_EQ(ops->initialize(&params, &second), UMF_RESULT_SUCCESS);
	CHECK(accmem_umf_pool(second) == params.pool);
	ops->finalize(second);
	CHECK_EQ(umf_give(umf_take(64), 64), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

#ifdef FAKE_DEVICE
/* What two calls of the library return, by the linker's names for them. */
static int no_streams, no_memory;

int __wrap_accmem_streams_create(struct accmem_context *ctx,
				 struct accmem_streams **result)
{
	return no_streams ?: __real_accmem_streams_create(ctx, result);
}

int __wrap_accmem_pool_allocate(struct accmem_pool *pool,
				struct accmem_pool_request *req)
{
	return no_memory ?: __real_accmem_pool_allocate(pool, req);
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

/* A limit that is reached, and a wait that ended, as memory that is not there. */
static void umf_has_one_result_for_no_memory(void)
{
	static const int errors[] = { -ENOMEM, -EDQUOT, -ETIMEDOUT };
	size_t i;
	void *p;

	make_provider();
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		no_memory = errors[i];
		CHECK_EQ(ops->alloc(provider, 64, 0, &p),
			 UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY);
	}
	no_memory = -EIO;
	CHECK_EQ(ops->alloc(provider, 64, 0, &p),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	no_memory = 0;
	CHECK_EQ(umf_give(umf_take(64), 64), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
}

static void torch_device_may_go(void)
{
	void *p = accmem_torch_alloc(MIB, 0, NULL);
	void *q = accmem_torch_alloc(MIB, 0, &names[0]);
	uint64_t bad = accmem_torch_bad_frees();

	CHECK(p && q);
	fake_gone = true;
	CHECK(!accmem_torch_alloc(200 * MIB, 0, NULL));
	CHECK_EQ(torch_give(p, MIB), 0);
	CHECK(torch_give(p, MIB));
	accmem_torch_free(q, MIB, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), bad + 1);
	accmem_torch_free(q, MIB, 0, &names[0]);
	CHECK_EQ(accmem_torch_bad_frees(), bad + 2);
}

static void umf_device_may_go(void)
{
	void *p, *q;

	make_provider();
	p = umf_take(MIB);
	fake_gone = true;
	CHECK_EQ(ops->alloc(provider, 200 * MIB, 0, &q),
		 UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC);
	CHECK_EQ(umf_give(p, MIB), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_give(p, MIB), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
	CHECK(ops->initialize(NULL, &provider) != UMF_RESULT_SUCCESS);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		{ "torch_replays_models", torch_replays_models },
		{ "torch_sizes", torch_sizes },
		{ "torch_devices", torch_devices },
		{ "torch_bad_frees_do_nothing", torch_bad_frees_do_nothing },
		{ "torch_free_waits_for_its_stream",
		  torch_free_waits_for_its_stream },
		{ "torch_threads", torch_threads },
		{ "torch_goes_on_in_a_child", torch_goes_on_in_a_child },
		{ "umf_replays_models", umf_replays_models },
		{ "umf_allocates", umf_allocates },
		{ "umf_frees_what_it_allocated", umf_frees_what_it_allocated },
		{ "umf_pages", umf_pages },
		{ "umf_parameters", umf_parameters },
#ifdef FAKE_DEVICE
		ROW(torch_says_why_there_are_no_streams),
		ROW(umf_has_one_result_for_no_memory),
		{ "torch_device_may_go", torch_device_may_go },
		{ "umf_device_may_go", umf_device_may_go },
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
	fake_capacity = 1024 * MIB;
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
