// SPDX-License-Identifier: MIT
/*
 * Memory of the ACL front-end on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE.
 * Built with FAKE_DEVICE it runs on the host over fake_device.c instead. The rows are
 * those of Documentation/conformance.rst.
 */
#define _GNU_SOURCE
#include <accmem_pool.h>
#include <acl/accmem_acl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl_tests.h"

static struct accmem_pool_block block_of(const void *p)
{
	struct accmem_pool_block block;

	CHECK_EQ(accmem_pool_find(p, &block), 0);
	CHECK(block.pointer == p);
	return block;
}

static struct accmem_query query_of(const void *p)
{
	struct accmem_pool_block block = block_of(p);
	struct accmem_query query;

	CHECK_EQ(accmem_get_query(accmem_pool_context(block.pool),
				  block.address, &query),
		 0);
	return query;
}

static struct accmem_info info(void)
{
	struct accmem_pool_block block;
	struct accmem_info result;
	void *p = acl_new(1, 0);

	block = block_of(p);
	CHECK_EQ(accmem_get_info(accmem_pool_context(block.pool), 0, &result),
		 0);
	acl_delete(p);
	return result;
}

static const size_t sizes[] = { 1,    31,    32,      33,	   64,
				65,   2048,  2049,    4095,	   4096,
				4097, 65536, MIB - 1, 2 * MIB + 1, 5 * MIB };

static void a1_the_start_is_aligned_to_64(void)
{
	void *p[ARRAY_SIZE(sizes)];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		p[i] = acl_new(sizes[i], ACL_MEM_MALLOC_HUGE_FIRST);
		CHECK_EQ((uintptr_t)p[i] % 64, 0);
		CHECK_EQ(block_of(p[i]).address % 64, 0);
		/* linear: from the first byte to the last */
		CHECK_EQ(aclrtMemset(p[i], sizes[i], i + 1, sizes[i]), 0);
	}
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		CHECK_EQ(byte_at(p[i]), i + 1);
		CHECK_EQ(byte_at((char *)p[i] + sizes[i] - 1), i + 1);
		acl_delete(p[i]);
	}
}

static void a2_a_size_is_rounded_to_32_and_32_more(void)
{
	size_t i, want;
	void *p, *q;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		want = (sizes[i] + 31) / 32 * 32 + 32;
		p = acl_new(sizes[i], ACL_MEM_MALLOC_HUGE_FIRST);
		CHECK_EQ(block_of(p).length, want);
		CHECK_EQ(aclrtMemset(p, want, 1, want), 0);
		CHECK_EQ(aclrtMallocCached(&q, sizes[i],
					   ACL_MEM_MALLOC_NORMAL_ONLY),
			 0);
		CHECK_EQ(block_of(q).length, want);
		acl_delete(q);
		acl_delete(p);
	}
}

static void a3_pages_of_a_gib_have_no_tail(void)
{
	static const int policies[] = { ACL_MEM_MALLOC_HUGE1G_ONLY,
					ACL_MEM_MALLOC_HUGE1G_ONLY_P2P };
	bool has = info().page_sizes & GIB;
	aclError error;
	size_t i;
	void *p;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		error = aclrtMalloc(&p, GIB - 31,
				    (aclrtMemMallocPolicy)policies[i]);
		if (!has) {
			CHECK_EQ(error, ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
			continue;
		}
		if (error == ACL_ERROR_RT_MEMORY_ALLOCATION)
			continue;
		CHECK_EQ(error, 0);
		CHECK_EQ(block_of(p).length, GIB);
		CHECK_EQ(block_of(p).page_size, GIB);
		acl_delete(p);
	}
}

static void a4_size_0_is_an_error(void)
{
	void *p = &p;

	CHECK_EQ(aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocAlign32(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocCached(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocHost(&p, 0), ACL_ERROR_INVALID_PARAM);
	CHECK(p == &p);
}

static void a5_an_unknown_policy_goes_by_the_size(void)
{
	static const int policies[] = { 8, -1, 0x108, 0x1100, 0x7fffffff };
	size_t i;
	void *p;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		p = acl_new(2 * MIB - 64, policies[i]);
		CHECK_EQ(block_of(p).page_size, 4 * KIB);
		acl_delete(p);
		p = acl_new(2 * MIB, policies[i]);
		CHECK_EQ(block_of(p).page_size, 2 * MIB);
		acl_delete(p);
	}
}

static void a6_success_is_0_and_failure_a_code(void)
{
	void *p = acl_new(100, ACL_MEM_MALLOC_HUGE_FIRST);
	uint64_t capacity = info().capacity;

	acl_delete(p);
	CHECK_EQ(aclrtMalloc(NULL, 100, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMalloc(&p, capacity + 1, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK(strstr(aclGetRecentErrMsg(), "more than the device has"));
	CHECK_EQ(aclrtMalloc(&p, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMalloc(&p, SIZE_MAX - 63, ACL_MEM_MALLOC_NORMAL_ONLY),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMalloc(&p, SIZE_MAX - 64, ACL_MEM_MALLOC_NORMAL_ONLY),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtMallocAlign32(&p, SIZE_MAX - 31,
				    ACL_MEM_MALLOC_HUGE_ONLY),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMallocAlign32(&p, SIZE_MAX - 32,
				    ACL_MEM_MALLOC_HUGE_ONLY),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
}

/* Another process leaves a secret, in more memory than is looked at. */
static void leave_secret(void)
{
	pid_t pid = fork();
	size_t i;
	int status;
	void *p;

	if (!pid) {
		for (i = 0; i < 8; i++) {
			p = acl_new(2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
			CHECK_EQ(aclrtMemset(p, 2 * MIB, 0x5a, 2 * MIB), 0);
		}
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void a7_no_other_process_is_seen(void)
{
	static unsigned char bytes[2 * MIB];
	size_t i, j;
	void *p;

	leave_secret();
	for (i = 0; i < 8; i++) {
		p = acl_new(2 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
		CHECK_EQ(aclrtMemcpy(bytes, sizeof(bytes), p, sizeof(bytes),
				     ACL_MEMCPY_DEVICE_TO_HOST),
			 0);
		for (j = 0; j < sizeof(bytes); j += 64)
			CHECK(bytes[j] != 0x5a);
	}
}

/*
 * Frees memory that a stream has still to do with, and allocates beside it: is the
 * stream busy still after all of it?
 */
static bool is_busy_after_free(aclrtStream stream, aclrtEvent event, int amount)
{
	char *big = acl_new(8 * MIB, ACL_MEM_MALLOC_HUGE_FIRST);
	aclrtEventRecordedStatus status;
	int i;

	for (i = 0; i < amount; i++)
		CHECK_EQ(aclrtMemsetAsync(big, 8 * MIB, i, 8 * MIB, stream), 0);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	acl_delete(big);
	acl_delete(acl_new(100, ACL_MEM_MALLOC_HUGE_FIRST));
	CHECK_EQ(aclrtQueryEventStatus(event, &status), 0);
	CHECK_EQ(aclrtFree(big), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(big, 1, 0, 1), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtFree(big), ACL_ERROR_RT_PARAM_INVALID);
	return status == ACL_EVENT_RECORDED_STATUS_NOT_READY;
}

static void a8_nothing_is_waited_for(void)
{
	aclrtStream stream;
	aclrtEvent event;
	int amount;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	/* one that has little to do may overtake a caller that does not run */
	for (amount = 10; amount <= 1280; amount *= 2) {
		if (is_busy_after_free(stream, event, amount))
			break;
	}
	CHECK(amount <= 1280);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
}

static void a9_free_is_the_pair_of_malloc(void)
{
	struct accmem_pool_block block;
	struct accmem_pool_stats stats;
	size_t i, round;
	void *p;

	p = acl_new(1, 0);
	block = block_of(p);
	acl_delete(p);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			acl_delete(acl_new(sizes[i], i % 3));
	}
	accmem_pool_get_stats(block.pool, &stats);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK_EQ(stats.allocations, stats.releases);
}

static void a10_frequent_calls_do_not_reach_the_kernel(void)
{
	struct accmem_pool_stats before, after;
	struct accmem_pool *pool;
	size_t round, i;
	void *p;

	p = acl_new(1, ACL_MEM_MALLOC_HUGE_FIRST);
	pool = block_of(p).pool;
	acl_delete(p);
	for (round = 0; round < 100; round++) {
		if (round == 1)
			accmem_pool_get_stats(pool, &before);
		for (i = 0; i < ARRAY_SIZE(sizes); i++)
			acl_delete(acl_new(sizes[i], i % 2 * 2));
	}
	accmem_pool_get_stats(pool, &after);
	CHECK_EQ(after.allocations - before.allocations,
		 99 * ARRAY_SIZE(sizes));
	CHECK_EQ(after.kernel_calls, before.kernel_calls);
}

static void a11_align32_adds_no_32_bytes(void)
{
	size_t i, want;
	void *p;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		want = (sizes[i] + 31) / 32 * 32;
		CHECK_EQ(aclrtMallocAlign32(&p, sizes[i],
					    ACL_MEM_MALLOC_HUGE_FIRST),
			 0);
		CHECK_EQ((uintptr_t)p % 64, 0);
		CHECK_EQ(block_of(p).length, want);
		acl_delete(p);
	}
}

static void a12_segments_are_placed_and_checked(void)
{
	struct accmem_acl_segment s[3] = { { .length = 1 },
					   { .length = 32 },
					   { .length = 100 } };
	size_t needed, bad;
	char *p = acl_new(4096, ACL_MEM_MALLOC_HUGE_FIRST);

	CHECK_EQ(accmem_acl_segment_size(1), 64);
	CHECK_EQ(accmem_acl_segment_size(32), 64);
	CHECK_EQ(accmem_acl_segment_size(33), 96);
	CHECK_EQ(accmem_acl_segment_size(0), 0);
	CHECK_EQ(accmem_acl_segment_size(SIZE_MAX), 0);
	CHECK_EQ(accmem_acl_divide(p, 4096, s, 3, &needed), 0);
	CHECK_EQ((char *)s[0].start - p, 0);
	CHECK_EQ((char *)s[1].start - p, 64);
	CHECK_EQ((char *)s[2].start - p, 128);
	CHECK_EQ(needed, 128 + 160);
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad), 0);
	CHECK_EQ(accmem_acl_divide(p, needed - 1, s, 3, &needed),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	needed = 0;
	CHECK_EQ(accmem_acl_divide(NULL, 0, s, 3, &needed), 0);
	CHECK_EQ(needed, 128 + 160);
	CHECK_EQ((char *)s[2].start - p, 128);
	CHECK_EQ(accmem_acl_divide(NULL, 0, NULL, 3, &needed),
		 ACL_ERROR_INVALID_PARAM);

	s[2].start = p + 96;
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(bad, 2);
	s[2].start = p + 64;
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad),
		 ACL_ERROR_RT_PARAM_INVALID);
	s[2].start = p + 4096 - 128;
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad),
		 ACL_ERROR_RT_PARAM_INVALID);
	/* two start in the second, and the first of them comes last */
	s[0].start = p + 512;
	s[1] = (struct accmem_acl_segment){ .length = 1000, .start = p };
	s[2].start = p + 64;
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(bad, 0);
	s[0].start = p;
	s[2].start = p + 128;
	s[1].length = 0;
	CHECK_EQ(accmem_acl_check(p, 4096, s, 3, &bad),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(bad, 1);
	CHECK_EQ(accmem_acl_divide(p, 4096, s, 3, NULL),
		 ACL_ERROR_INVALID_PARAM);
	s[1].length = SIZE_MAX - 70;
	CHECK_EQ(accmem_acl_divide(p, 4096, s, 3, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(accmem_acl_divide(p, 4096, s, 0, &needed), 0);
	acl_delete(p);
}

static void a13_policies_choose_pages(void)
{
	static const int hints[] = { 0, ACL_MEM_TYPE_LOW_BAND_WIDTH,
				     ACL_MEM_TYPE_HIGH_BAND_WIDTH };
	size_t i;
	int p2p;
	void *p;

	for (i = 0; i < ARRAY_SIZE(hints); i++) {
		for (p2p = 0; p2p <= 3; p2p += 3) {
			p = acl_new(MIB - 64, (0 + p2p) | hints[i]);
			CHECK_EQ(block_of(p).page_size, 4 * KIB);
			acl_delete(p);
			p = acl_new(3 * MIB, (0 + p2p) | hints[i]);
			CHECK_EQ(block_of(p).page_size, 2 * MIB);
			acl_delete(p);
			p = acl_new(100, (1 + p2p) | hints[i]);
			CHECK_EQ(block_of(p).page_size, 2 * MIB);
			CHECK_EQ(query_of(p).footprint, 2 * MIB);
			acl_delete(p);
			p = acl_new(3 * MIB, (2 + p2p) | hints[i]);
			CHECK_EQ(block_of(p).page_size, 4 * KIB);
			acl_delete(p);
		}
	}
	CHECK_EQ(aclrtMalloc(&p, info().capacity, ACL_MEM_MALLOC_HUGE_ONLY),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
	CHECK_EQ(aclrtMalloc(&p, info().capacity, ACL_MEM_MALLOC_NORMAL_ONLY),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
}

/* Does a store at @p end in a signal? */
static bool store_faults(char *p)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		*(volatile char *)p = 1;
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void a13_read_only_is_not_writable_at_its_pointer(void)
{
	char *p = acl_new(100, ACL_MEM_ACCESS_USER_SPACE_READONLY);
	char bytes[100];

	CHECK_EQ(aclrtMemset(p, 100, 7, 100), 0);
	CHECK_EQ(byte_at(p + 99), 7);
	CHECK(store_faults(p));
	memset(bytes, 8, sizeof(bytes));
	CHECK_EQ(aclrtMemcpy(p, 100, bytes, 100, ACL_MEMCPY_HOST_TO_DEVICE), 0);
	CHECK_EQ(byte_at(p + 50), 8);
	acl_delete(p);
}

static void cached_memory_is_flushed_and_invalidated(void)
{
	char *d = acl_new(4096, 0), host[64];

	CHECK_EQ(aclrtMemFlush(d, 4096), 0);
	CHECK_EQ(aclrtMemInvalidate(d + 100, 3996), 0);
	CHECK_EQ(aclrtMemFlush(NULL, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemInvalidate(d, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemFlush(d, MIB), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemInvalidate(host, 64), ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(d);
	CHECK_EQ(aclrtMemFlush(d, 1), ACL_ERROR_RT_PARAM_INVALID);
}

static void a14_free_of_null_and_double_free_are_errors(void)
{
	static const size_t some[] = { 64, 5000, 3 * MIB };
	size_t i;
	char *p;

	CHECK_EQ(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtFreeHost(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtFree(&p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFree((void *)-1), ACL_ERROR_RT_PARAM_INVALID);
	for (i = 0; i < ARRAY_SIZE(some); i++) {
		p = acl_new(some[i], ACL_MEM_MALLOC_HUGE_FIRST);
		CHECK_EQ(aclrtFree(p + 1), ACL_ERROR_RT_PARAM_INVALID);
		CHECK_EQ(aclrtFree(p + some[i] - 1),
			 ACL_ERROR_RT_PARAM_INVALID);
		CHECK_EQ(aclrtFreeHost(p), ACL_ERROR_RT_PARAM_INVALID);
		acl_delete(p);
		CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	}
}

/* A file without the page cache; -1 where there is no such file system. */
static int open_direct(void)
{
	char path[] = "/tmp/accmem-acl-XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	close(fd);
	fd = open(path, O_RDWR | O_DIRECT);
	unlink(path);
	return fd;
}

static void host_memory_is_good_for_o_direct(void)
{
	int fd = open_direct();
	void *p, *q;

	CHECK_EQ(aclrtMallocHost(&p, 8192), 0);
	CHECK_EQ(aclrtMallocHost(&q, 100), 0);
	CHECK_EQ((uintptr_t)p % 4096, 0);
	CHECK_EQ((uintptr_t)q % 64, 0);
	memset(p, 4, 8192);
	if (fd >= 0) {
		CHECK_EQ(pwrite(fd, p, 8192, 0), 8192);
		memset(p, 0, 8192);
		CHECK_EQ(pread(fd, p, 8192, 0), 8192);
		CHECK_EQ(((char *)p)[8191], 4);
		close(fd);
	}
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFreeHost(p), 0);
	CHECK_EQ(aclrtFreeHost(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFreeHost(q), 0);
}

static void *allocate_in_thread(void *argument)
{
	size_t round, i;

	(void)argument;
	for (round = 0; round < 50; round++) {
		void *p[8];

		for (i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = acl_new(sizes[(round + i) % 12], 0);
		for (i = 0; i < ARRAY_SIZE(p); i++)
			acl_delete(p[i]);
	}
	return NULL;
}

static void threads_allocate_together(void)
{
	pthread_t threads[4];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, allocate_in_thread,
					NULL),
			 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(a1_the_start_is_aligned_to_64),
		ROW(a2_a_size_is_rounded_to_32_and_32_more),
		ROW(a3_pages_of_a_gib_have_no_tail),
		ROW(a4_size_0_is_an_error),
		ROW(a5_an_unknown_policy_goes_by_the_size),
		ROW(a6_success_is_0_and_failure_a_code),
		ROW(a7_no_other_process_is_seen),
		ROW(a8_nothing_is_waited_for),
		ROW(a9_free_is_the_pair_of_malloc),
		ROW(a10_frequent_calls_do_not_reach_the_kernel),
		ROW(a11_align32_adds_no_32_bytes),
		ROW(a12_segments_are_placed_and_checked),
		ROW(a13_policies_choose_pages),
		ROW(a13_read_only_is_not_writable_at_its_pointer),
		ROW(a14_free_of_null_and_double_free_are_errors),
		ROW(cached_memory_is_flushed_and_invalidated),
		ROW(host_memory_is_good_for_o_direct),
		ROW(threads_allocate_together),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
