// SPDX-License-Identifier: MIT
/*
 * What a pool tells of its memory, in snapshots and reports of leaks: on the device in
 * $ACCMEM_DEVICE, and with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pool_tests.h"

/* All that was written to @file. */
static char *text_of(FILE *file)
{
	static char text[1 << 20];
	size_t n;

	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	return text;
}

static unsigned int count_of(const char *text, const char *word)
{
	unsigned int n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

/* The numbers after @word, added up. */
static unsigned long long sum_of(const char *text, const char *word)
{
	unsigned long long sum = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		sum += strtoull(text, NULL, 10);
	}
	return sum;
}

static void a_snapshot_has_everything(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_HISTORY);
	FILE *file = tmpfile();
	void *p[4], *freed;
	const char *text;
	size_t i;

	CHECK(file);
	freed = accmem_pool_malloc(pool, 300);
	p[0] = accmem_pool_malloc(pool, 100);
	p[1] = accmem_pool_malloc(pool, 5000);
	p[2] = accmem_pool_malloc(pool, MIB);
	p[3] = accmem_pool_malloc(pool, 300);
	CHECK_EQ(accmem_pool_release(pool, freed), 0);
	CHECK_EQ(accmem_pool_snapshot(pool, fileno(file)), 0);
	text = text_of(file);
	CHECK_EQ(count_of(text, "active_allocated"), 4);
	CHECK_EQ(count_of(text, "\"action\": \"alloc\""), 5);
	CHECK_EQ(count_of(text, "free_completed"), 1);
	CHECK_EQ(count_of(text, "\"requested_size\": 5000"), 1);
	/* the blocks of the segments are all that they have */
	CHECK_EQ(sum_of(strstr(text, "segments"), "\"total_size\": "),
		 get_stats(pool).reserved_bytes);
	*strstr(text_of(file), "device_traces") = '\0';
	CHECK_EQ(sum_of(text, " \"size\": "), get_stats(pool).reserved_bytes);
	text = text_of(file);
	CHECK_EQ(count_of(text, "{"), count_of(text, "}"));
	CHECK_EQ(count_of(text, "["), count_of(text, "]"));
	CHECK_EQ(accmem_pool_snapshot(pool, -1), -EBADF);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	fclose(file);
	end(pool);
}

/* A block that waits for a stream is neither free nor in use, whatever is beside it. */
static void a_snapshot_tells_what_waits_for_a_stream(void)
{
	struct accmem_pool *pool = new_pool(0);
	FILE *file = tmpfile();
	void *p[6];
	int stream;
	size_t i;

	CHECK(file);
	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK(p[i] = accmem_pool_malloc(pool, 256));
	for (i = 0; i < ARRAY_SIZE(p); i += 3) {
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
		CHECK_EQ(accmem_pool_release_at(pool, p[i + 1], stream, 1), 0);
		CHECK_EQ(accmem_pool_release(pool, p[i + 2]), 0);
	}
	CHECK_EQ(accmem_pool_snapshot(pool, fileno(file)), 0);
	CHECK_EQ(count_of(text_of(file), "active_awaiting_free"), 2);
	CHECK_EQ(count_of(text_of(file), "active_allocated"), 0);
	fclose(file);
	close(stream);
	end(pool);
}

static void leaks_are_told_with_their_call_sites(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_LEAKS);
	FILE *file = tmpfile();
	void *p = accmem_pool_malloc(pool, 100);
	void *q = accmem_pool_malloc(pool, 5 * MIB);

	CHECK(file && p && q);
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 2);
	CHECK_EQ(count_of(text_of(file), "bytes not released"), 2);
	CHECK_EQ(count_of(text_of(file), "allocated by"), 2);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 0);
	fclose(file);
	end(pool);
}

static void a_release_that_fails_loses_no_call_site(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_LEAKS);
	struct accmem_pool_request req = { .length = MIB,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	FILE *file = tmpfile();

	CHECK(file);
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_release_at(pool, req.pointer, -1, 1), -EBADF);
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 1);
	CHECK_EQ(count_of(text_of(file), "allocated by"), 1);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	fclose(file);
	end(pool);
}

static void a_file_that_is_none_is_named_in_words(void)
{
	struct accmem_pool *pool = new_pool(0);

	accmem_set_last_error("%s", "");
	CHECK_EQ(accmem_pool_snapshot(pool, -1), -EBADF);
	CHECK(strstr(accmem_last_error(), "file -1"));
	CHECK(accmem_pool_malloc(pool, 100));
	accmem_set_last_error("%s", "");
	CHECK_EQ(accmem_pool_report_leaks(pool, -1), -EBADF);
	CHECK(strstr(accmem_last_error(), "file -1"));
	end(pool);
}

#ifdef FAKE_DEVICE
/* The loader knows the program by its first argument, where there is a loader. */
static void a_snapshot_quotes_the_names_of_files(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_HISTORY);
	char *name = program_invocation_name;
	FILE *file = tmpfile();
	const char *text;

	CHECK(file && strlen(name) > 3);
	memcpy(name, "a\"\\\n", 4);
	CHECK(accmem_pool_malloc(pool, 100));
	CHECK_EQ(accmem_pool_snapshot(pool, fileno(file)), 0);
	text = text_of(file);
	CHECK(strstr(text, "\"filename\": \"a\\\"\\\\\\u000a"));
	fclose(file);
	end(pool);
}

static struct accmem_pool *loader_pool;
static int loader_calls, loader_ended;

static void *allocate_in_a_constructor(void *unused)
{
	void *small, *large;

	(void)unused;
	small = accmem_pool_malloc(loader_pool, 1000);
	large = accmem_pool_malloc(loader_pool, 3 * MIB);
	CHECK_EQ(accmem_pool_release(loader_pool, small), 0);
	CHECK_EQ(accmem_pool_release(loader_pool, large), 0);
	__atomic_store_n(&loader_ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* another thread has the loader's lock, and lets go once it has allocated */
static void wait_for_the_loader(void)
{
	pthread_t thread;
	int tries = 10000;

	loader_calls++;
	__atomic_store_n(&loader_ended, 0, __ATOMIC_RELEASE);
	CHECK_EQ(pthread_create(&thread, NULL, allocate_in_a_constructor, NULL),
		 0);
	while (!__atomic_load_n(&loader_ended, __ATOMIC_ACQUIRE) && --tries)
		usleep(1000);
	CHECK(tries);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void a_constructor_may_allocate_while_sites_get_names(void)
{
	struct accmem_pool *pool = new_pool(ACCMEM_POOL_HISTORY);
	void *p = accmem_pool_malloc(pool, 5000);
	FILE *file = tmpfile();

	CHECK(p && file);
	loader_pool = pool;
	fake_loader_busy = wait_for_the_loader;
	CHECK_EQ(accmem_pool_report_leaks(pool, fileno(file)), 1);
	CHECK_EQ(loader_calls, 1);
	CHECK_EQ(accmem_pool_snapshot(pool, fileno(file)), 0);
	CHECK(loader_calls > 1);
	fake_loader_busy = NULL;
	fclose(file);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(a_snapshot_has_everything),
		ROW(a_snapshot_tells_what_waits_for_a_stream),
		ROW(leaks_are_told_with_their_call_sites),
		ROW(a_release_that_fails_loses_no_call_site),
		ROW(a_file_that_is_none_is_named_in_words),
#ifdef FAKE_DEVICE
		ROW(a_snapshot_quotes_the_names_of_files),
		ROW(a_constructor_may_allocate_while_sites_get_names),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
