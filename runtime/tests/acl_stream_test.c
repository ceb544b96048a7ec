// SPDX-License-Identifier: MIT
/*
 * Streams of the ACL front-end on a device: /dev/accmem0, or the one in
 * $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl_tests.h"

static void streams_keep_the_order(void)
{
	char *d = acl_new(MIB, 0), *e = acl_new(MIB, 0);
	aclrtEventRecordedStatus status;
	aclrtStream a, b;
	aclrtEvent event, late;
	float ms;
	int i;

	CHECK_EQ(aclrtCreateStream(&a), 0);
	CHECK_EQ(aclrtCreateStream(&b), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtCreateEvent(&late), 0);
	for (i = 1; i <= 20; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, a), 0);
	CHECK_EQ(aclrtRecordEvent(event, a), 0);
	CHECK_EQ(aclrtStreamWaitEvent(b, event), 0);
	CHECK_EQ(aclrtMemcpyAsync(e, MIB, d, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE,
				  b),
		 0);
	CHECK_EQ(aclrtRecordEvent(late, b), 0);
	CHECK_EQ(aclrtSynchronizeStream(b), 0);
	CHECK_EQ(byte_at(e), 20);
	CHECK_EQ(byte_at(e + MIB - 1), 20);
	CHECK_EQ(aclrtQueryEventStatus(event, &status), 0);
	CHECK_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
	CHECK_EQ(aclrtEventElapsedTime(&ms, event, late), 0);
	CHECK(ms >= 0);
	CHECK_EQ(aclrtMemsetAsync(d, MIB, 9, MIB, NULL), 0);
	CHECK_EQ(aclrtSynchronizeDevice(), 0);
	CHECK_EQ(byte_at(d), 9);
	CHECK_EQ(aclrtDestroyStream(a), 0);
	CHECK_EQ(aclrtDestroyStream(b), 0);
	CHECK_EQ(aclrtDestroyStream(b), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtSynchronizeStream(b), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyEvent(late), 0);
	acl_delete(d);
	acl_delete(e);
}

static void the_default_stream_has_a_handle(void)
{
	char *d = acl_new(100, 0);
	aclrtStream stream = NULL, again;

	CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&stream), 0);
	CHECK(stream);
	CHECK_EQ(aclrtMemsetAsync(d, 100, 4, 100, NULL), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(byte_at(d), 4);
	CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&again), 0);
	CHECK(again == stream);
	CHECK_EQ(aclrtCtxGetCurrentDefaultStream(NULL),
		 ACL_ERROR_INVALID_PARAM);
	acl_delete(d);
}

/* a wait is for the record that was there, whatever the event is used for next */
static void a_wait_is_for_its_record(void)
{
	char *d = acl_new(MIB, 0), *e = acl_new(MIB, 0);
	aclrtStream busy, idle, waits;
	aclrtEvent event;
	int i;

	CHECK_EQ(aclrtCreateStream(&busy), 0);
	CHECK_EQ(aclrtCreateStream(&idle), 0);
	CHECK_EQ(aclrtCreateStream(&waits), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	for (i = 1; i <= 200; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, busy), 0);
	CHECK_EQ(aclrtRecordEvent(event, busy), 0);
	CHECK_EQ(aclrtStreamWaitEvent(waits, event), 0);
	CHECK_EQ(aclrtMemcpyAsync(e, MIB, d, MIB, ACL_MEMCPY_DEVICE_TO_DEVICE,
				  waits),
		 0);
	CHECK_EQ(aclrtRecordEvent(event, idle), 0);
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtSynchronizeStream(waits), 0);
	CHECK_EQ(byte_at(e), 200);
	CHECK_EQ(byte_at(e + MIB - 1), 200);
	CHECK_EQ(aclrtSynchronizeStream(busy), 0);
	CHECK_EQ(aclrtDestroyStream(busy), 0);
	CHECK_EQ(aclrtDestroyStream(idle), 0);
	CHECK_EQ(aclrtDestroyStream(waits), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	acl_delete(d);
	acl_delete(e);
}

static void timeouts_are_checked(void)
{
	aclrtStreamStatus status;
	aclrtStream stream;
	aclrtEvent event;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtStreamQuery(stream, NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
	CHECK_EQ(status, ACL_STREAM_STATUS_COMPLETE);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 0),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, -2),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1), 0);
	CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, 0),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtSynchronizeEventWithTimeout(event, -1), 0);
	CHECK_EQ(aclrtSynchronizeEventWithTimeout(NULL, 1),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
	CHECK_EQ(aclrtDestroyStreamForce(stream), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyStreamForce(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyStream(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtStreamQuery(stream, &status),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 1),
		 ACL_ERROR_RT_INVALID_HANDLE);
}

/*
 * A stream that has much to do, and one that waits for it, are destroyed; false if the
 * first was through before. What was not begun is not done, and nobody waits for ever.
 */
static bool ends_in_the_middle(char *d, int amount)
{
	aclrtEventRecordedStatus recorded;
	aclrtStream busy, waits;
	aclrtEvent event;
	bool in_time;
	int i;

	CHECK_EQ(aclrtCreateStream(&busy), 0);
	CHECK_EQ(aclrtCreateStream(&waits), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtMemset(d, 1, 1, 1), 0);
	for (i = 0; i < amount; i++)
		CHECK_EQ(aclrtMemsetAsync(d + MIB, MIB, i, MIB, busy), 0);
	CHECK_EQ(aclrtRecordEvent(event, busy), 0);
	CHECK_EQ(aclrtStreamWaitEvent(waits, event), 0);
	CHECK_EQ(aclrtMemsetAsync(d, 1, 2, 1, waits), 0);
	in_time = aclrtSynchronizeStreamWithTimeout(waits, 1) !=
			  ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||
		  aclrtSynchronizeEventWithTimeout(event, 1) !=
			  ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
	CHECK_EQ(aclrtDestroyStreamForce(waits), 0);
	CHECK_EQ(aclrtQueryEventStatus(event, &recorded), 0);
	if (recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY)
		CHECK_EQ(byte_at(d), 1);
	else
		in_time = true;
	CHECK_EQ(aclrtDestroyStreamForce(busy), 0);
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	return !in_time;
}

static void streams_end_in_the_middle(void)
{
	char *d = acl_new(2 * MIB, 0);
	int amount;

	for (amount = 40; amount <= 10240; amount *= 2)
		if (ends_in_the_middle(d, amount))
			break;
	CHECK(amount <= 10240);
	/* nothing holds the memory any more */
	acl_delete(d);
	CHECK_EQ(aclrtFree(d), ACL_ERROR_RT_PARAM_INVALID);
}

/* What it takes to meet a moment; only a sanitizer sees what is done then. */
#ifdef FAKE_DEVICE
#define MOMENTS 3000
#else
#define MOMENTS 100
#endif

/* What is done is dropped by its thread meanwhile. */
static void a_stream_ends_at_any_moment(void)
{
	char *d = acl_new(4096, 0);
	aclrtStream stream;
	int round, i;

	for (round = 0; round < MOMENTS; round++) {
		CHECK_EQ(aclrtCreateStream(&stream), 0);
		for (i = 0; i < 100; i++)
			CHECK_EQ(aclrtMemsetAsync(d, 4096, i, 4096, stream), 0);
		usleep(round % 100);
		CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
	}
	acl_delete(d);
}

/* Whether the stream is through with it or not. */
static void what_is_freed_is_not_allocated(void)
{
	char *d = acl_new(MIB, 0), *freed = acl_new(4096, 0), byte;
	aclrtStream stream;
	int i;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	for (i = 0; i < 100; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, stream), 0);
	CHECK_EQ(aclrtMemsetAsync(freed, 4096, 1, 4096, stream), 0);
	CHECK_EQ(aclrtMemFlush(freed, 4096), 0);
	CHECK_EQ(aclrtFree(freed), 0);
	CHECK_EQ(aclrtMemFlush(freed, 4096), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemInvalidate(freed, 1), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(freed, 1, 1, 1), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemcpy(&byte, 1, freed, 1, ACL_MEMCPY_DEVICE_TO_HOST),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFree(freed), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

static void a_child_has_no_streams_of_its_parent(void)
{
	char *d = acl_new(4096, 0);
	aclrtStream stream;
	int status;
	pid_t pid;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtMemsetAsync(d, 4096, 1, 4096, NULL), 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(aclrtSynchronizeStream(stream),
			 ACL_ERROR_RT_INVALID_HANDLE);
		CHECK_EQ(aclrtMemsetAsync(d, 4096, 2, 4096, NULL), 0);
		CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
		CHECK_EQ(byte_at(d), 2);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(byte_at(d), 2);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

#ifdef FAKE_DEVICE
#define LARGE (300 * MIB) /* a buffer of its own */

static void child_has_address(char *p)
{
	char *q = acl_new(LARGE, 0);

	CHECK(q == p);
	CHECK_EQ(aclrtMemset(q, MIB, 1, MIB), 0);
	q[0] = 2;
	CHECK_EQ(byte_at(q), 2);
	acl_delete(q);
	CHECK_EQ(aclrtFree(q), ACL_ERROR_RT_PARAM_INVALID);
}

static void child_frees_and_has_address(char *p)
{
	acl_delete(p);
	child_has_address(p);
}

/* What a child has of an address that its parent has freed. */
static void free_and_run(char *p, int (*release)(void *p), void (*run)(char *p))
{
	int ends[2], status;
	char byte = 0;
	pid_t pid;

	CHECK_EQ(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(read(ends[0], &byte, 1), 1);
		run(p);
		_exit(0);
	}
	CHECK_EQ(release(p), 0);
	CHECK_EQ(write(ends[1], &byte, 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static aclrtStream holder;

/* The memory has gone when the last stream has. */
static aclError release_held(void *p)
{
	CHECK_EQ(aclrtFree(p), 0);
	return aclrtDestroyStreamForce(holder);
}

static char *new_held(void)
{
	char *p = acl_new(LARGE, 0);

	CHECK_EQ(aclrtCreateStream(&holder), 0);
	keep_busy(holder);
	CHECK_EQ(aclrtMemsetAsync(p, MIB, 1, MIB, holder), 0);
	return p;
}

static aclError release_stream(void *unused)
{
	(void)unused;
	return aclrtDestroyStreamForce(holder);
}

/* It was freed before the fork. */
static void child_never_had(char *p)
{
	CHECK_EQ(aclrtFree(p), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(p, 1, 1, 1), ACL_ERROR_RT_PARAM_INVALID);
	child_has_address(p);
}

static void a_child_has_nothing_that_was_freed_and_held(void)
{
	char *p;

	fake_capacity = GIB;
	p = new_held();
	CHECK_EQ(aclrtFree(p), 0);
	free_and_run(p, release_stream, child_never_had);
}

static void a_child_holds_nothing_of_its_parent(void)
{
	fake_capacity = GIB;
	free_and_run(new_held(), release_held, child_has_address);
	free_and_run(new_held(), release_held, child_frees_and_has_address);
}

static void child_has_address_of_handle(char *handle)
{
	char *q = acl_new(LARGE, 0);
	void *r;

	CHECK_EQ(aclrtMemset(q, MIB, 1, MIB), 0);
	CHECK_EQ(aclrtReserveMemAddress(&r, LARGE, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMapMem(r, LARGE, 0, handle, 0),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(byte_at(q), 1);
	acl_delete(q);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
}

static void child_forgets_handle(char *handle)
{
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtFreePhysical(handle), ACL_ERROR_RT_INVALID_HANDLE);
	acl_delete(acl_new(LARGE, 0));
}

static void a_parents_handle_is_not_what_a_child_has_there(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	aclrtDrvMemHandle handle;

	fake_capacity = GIB;
	CHECK_EQ(aclrtMallocPhysical(&handle, LARGE, &prop, 0), 0);
	free_and_run(handle, aclrtFreePhysical, child_has_address_of_handle);
	CHECK_EQ(aclrtMallocPhysical(&handle, LARGE, &prop, 0), 0);
	free_and_run(handle, aclrtFreePhysical, child_forgets_handle);
}

static void a_child_has_an_address_as_it_allocates_it(void)
{
	void *host;

	fake_capacity = GIB;
	fake_kinds = true;
	free_and_run(acl_new(LARGE, ACL_MEM_ACCESS_USER_SPACE_READONLY),
		     aclrtFree, child_has_address);
	CHECK_EQ(aclrtMallocHost(&host, LARGE), 0);
	free_and_run(host, aclrtFreeHost, child_has_address);
}
#endif

static void *wait_for_stream(void *stream)
{
	return (void *)(intptr_t)aclrtSynchronizeStream(stream);
}

static void *wait_for_event(void *event)
{
	return (void *)(intptr_t)aclrtSynchronizeEvent(event);
}

/* It goes on to wait, and leaves no lock taken. */
static void a_thread_that_waits_may_be_cancelled(void)
{
	pthread_t threads[2];
	aclrtStream stream;
	aclrtEvent event;
	size_t i;

	alarm(60);
	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	keep_busy(stream);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	CHECK_EQ(pthread_create(&threads[0], NULL, wait_for_stream, stream), 0);
	CHECK_EQ(pthread_create(&threads[1], NULL, wait_for_event, event), 0);
	usleep(100000);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK_EQ(pthread_cancel(threads[i]), 0);
	usleep(100000);
	CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
}

static void mapped_memory_stays_until_streams_are_done(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	aclrtDrvMemHandle handle;
	aclrtStream stream;
	void *p;
	int i;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtReserveMemAddress(&p, 8 * MIB, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(&handle, 8 * MIB, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(p, 8 * MIB, 0, handle, 0), 0);
	for (i = 1; i <= 40; i++)
		CHECK_EQ(aclrtMemsetAsync(p, 8 * MIB, i, 8 * MIB, stream), 0);
	CHECK_EQ(aclrtUnmapMem(p), 0);
	CHECK_EQ(aclrtMapMem(p, 8 * MIB, 0, handle, 0), 0);
	CHECK_EQ(byte_at((char *)p + 8 * MIB - 1), 40);
	CHECK_EQ(aclrtUnmapMem(p), 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtReleaseMemAddress(p), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
}

/* Put memory at the page that a program has touched in vain. */
static void mend(int sig, siginfo_t *info, void *context)
{
	unsigned char *at = info->si_addr;

	(void)sig;
	(void)context;
	if (mmap(at - (uintptr_t)at % 4096, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		_exit(1);
}

/* A copy of a stream may touch memory that is gone, as after a reset of the device. */
static void a_fault_of_a_stream_reaches_the_programs_handler(void)
{
	struct sigaction action = { .sa_sigaction = mend,
				    .sa_flags = SA_SIGINFO },
			 before;
	int file = memfd_create("gone", MFD_CLOEXEC);
	aclrtStream stream;
	char *d, *gone;

	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtCreateStream(&stream), 0);
	d = acl_new(8192, 0);
	CHECK_EQ(sigaction(SIGBUS, &action, &before), 0);
	CHECK_EQ(ftruncate(file, 4096), 0);
	gone = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	CHECK(gone != MAP_FAILED);
	CHECK_EQ(aclrtHostRegisterV2(gone, 8192, 0), 0);
	CHECK_EQ(aclrtMemcpyAsync(d, 8192, gone, 8192,
				  ACL_MEMCPY_HOST_TO_DEVICE, stream),
		 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(sigaction(SIGBUS, &before, NULL), 0);
	CHECK_EQ(aclrtHostUnregister(gone), 0);
	munmap(gone, 8192);
	close(file);
	CHECK_EQ(aclrtFree(d), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(streams_keep_the_order),
		ROW(the_default_stream_has_a_handle),
		ROW(a_wait_is_for_its_record),
		ROW(timeouts_are_checked),
		ROW(streams_end_in_the_middle),
		ROW(a_stream_ends_at_any_moment),
		ROW(what_is_freed_is_not_allocated),
		ROW(a_child_has_no_streams_of_its_parent),
#ifdef FAKE_DEVICE
		ROW(a_child_holds_nothing_of_its_parent),
		ROW(a_child_has_nothing_that_was_freed_and_held),
		ROW(a_child_has_an_address_as_it_allocates_it),
		ROW(a_parents_handle_is_not_what_a_child_has_there),
#endif
		ROW(a_thread_that_waits_may_be_cancelled),
		ROW(mapped_memory_stays_until_streams_are_done),
		ROW(a_fault_of_a_stream_reaches_the_programs_handler),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
