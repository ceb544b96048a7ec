// SPDX-License-Identifier: MIT
/*
 * Callbacks and host functions of the ACL front-end on a device: /dev/accmem0, or the one
 * in $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl_tests.h"

/* Shorter than any wait that a test has to see the end of. */
#define SHORT_MS 20

/**
 * struct call - a callback, and what it has seen
 * @memory: a byte to read, or NULL
 * @byte: the byte
 * @thread: thread that called
 * @count: number of calls
 */
struct call {
	const char *memory;
	unsigned char byte;
	pthread_t thread;
	unsigned int count;
};

static void note(void *data)
{
	struct call *call = data;

	if (call->memory)
		call->byte = byte_at(call->memory);
	call->thread = pthread_self();
	__atomic_fetch_add(&call->count, 1, __ATOMIC_RELEASE);
}

static unsigned int count_of(const struct call *call)
{
	return __atomic_load_n(&call->count, __ATOMIC_ACQUIRE);
}

static uint64_t self(void)
{
	return (uint64_t)pthread_self();
}

static aclrtStream subscribed_stream(void)
{
	aclrtStream stream;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
	return stream;
}

static void a_stream_waits_for_a_blocking_callback(void)
{
	aclrtStream stream = subscribed_stream();
	char *d = acl_new(4096, 0);
	struct call call = { .memory = d };
	aclrtEvent event;

	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtMemsetAsync(d, 4096, 1, 4096, stream), 0);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_BLOCK, stream),
		 0);
	CHECK_EQ(aclrtMemsetAsync(d, 4096, 2, 4096, stream), 0);
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, SHORT_MS),
		 ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	CHECK_EQ(byte_at(d), 1);
	CHECK_EQ(count_of(&call), 0);
	CHECK_EQ(aclrtProcessReport(-1), 0);
	CHECK_EQ(count_of(&call), 1);
	CHECK_EQ(call.byte, 1);
	CHECK(pthread_equal(call.thread, pthread_self()));
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(byte_at(d), 2);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

static void a_stream_goes_on_after_another_callback(void)
{
	aclrtStream stream = subscribed_stream(), other = subscribed_stream();
	struct call call = {};

	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_NO_BLOCK,
				     stream),
		 0);
	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_NO_BLOCK,
				     stream),
		 0);
	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_NO_BLOCK, other),
		 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtSynchronizeStream(other), 0);
	CHECK_EQ(count_of(&call), 0);
	/* one call runs all that is there, of all streams */
	CHECK_EQ(aclrtProcessReport(-1), 0);
	CHECK_EQ(count_of(&call), 3);
	CHECK_EQ(aclrtProcessReport(1), ACL_ERROR_RT_REPORT_TIMEOUT);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtProcessReport(1), ACL_ERROR_RT_REPORT_TIMEOUT);
	CHECK_EQ(aclrtDestroyStream(other), 0);
	CHECK_EQ(aclrtProcessReport(1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
}

static void subscriptions_are_checked(void)
{
	aclrtStream stream;
	struct call call = {};

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtProcessReport(0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtProcessReport(-2), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_BLOCK, stream),
		 ACL_ERROR_RT_STREAM_NO_CB_REG);
	CHECK_EQ(aclrtUnSubscribeReport(self(), stream),
		 ACL_ERROR_RT_STREAM_SUBSCRIBE);
	CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
	CHECK_EQ(aclrtSubscribeReport(self(), stream),
		 ACL_ERROR_RT_STREAM_SUBSCRIBE);
	CHECK_EQ(aclrtUnSubscribeReport(self() + 1, stream),
		 ACL_ERROR_RT_THREAD_SUBSCRIBE);
	CHECK_EQ(aclrtLaunchCallback(NULL, &call, ACL_CALLBACK_BLOCK, stream),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtLaunchCallback(note, &call, (aclrtCallbackBlockType)2,
				     stream),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtLaunchHostFunc(stream, NULL, &call),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtSubscribeReport(self(), stream),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtLaunchHostFunc(stream, note, &call),
		 ACL_ERROR_RT_INVALID_HANDLE);
	/* NULL is the default stream */
	CHECK_EQ(aclrtSubscribeReport(self(), NULL), 0);
	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_BLOCK, NULL), 0);
	CHECK_EQ(aclrtProcessReport(-1), 0);
	CHECK_EQ(count_of(&call), 1);
	CHECK_EQ(aclrtUnSubscribeReport(self(), NULL), 0);
}

/* Whether the stream has come to the callbacks or not. */
static void what_is_unsubscribed_does_not_run(void)
{
	struct call call = {};
	aclrtStream stream;
	int round, i;

	for (round = 0; round < 100; round++) {
		stream = subscribed_stream();
		for (i = 0; i < 10; i++)
			CHECK_EQ(aclrtLaunchCallback(note, &call, i % 2,
						     stream),
				 0);
		CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
		CHECK_EQ(aclrtSynchronizeStream(stream), 0);
		CHECK_EQ(aclrtDestroyStream(stream), 0);
		stream = subscribed_stream();
		for (i = 0; i < 10; i++)
			CHECK_EQ(aclrtLaunchCallback(note, &call, i % 2,
						     stream),
				 0);
		CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
	}
	CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
	CHECK_EQ(count_of(&call), 0);
}

static void a_host_function_runs_in_order(void)
{
	char *d = acl_new(MIB, 0);
	struct call call = { .memory = d };
	aclrtStream stream;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtMemsetAsync(d, MIB, 1, MIB, stream), 0);
	CHECK_EQ(aclrtLaunchHostFunc(stream, note, &call), 0);
	CHECK_EQ(aclrtMemsetAsync(d, MIB, 2, MIB, stream), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(call.byte, 1);
	CHECK_EQ(count_of(&call), 1);
	CHECK(!pthread_equal(call.thread, pthread_self()));
	CHECK_EQ(byte_at(d), 2);
	CHECK_EQ(aclrtLaunchHostFunc(NULL, note, &call), 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	CHECK_EQ(count_of(&call), 2);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

/**
 * struct refused - what a function of a stream is not to do
 * @stream: the stream
 * @other: a stream that does not wait for the function
 * @event: an event that is recorded on @stream later
 * @memory: memory of the device
 * @mapped: memory at reserved addresses
 * @host: memory of the host
 * @context: the only context of the device
 * @recorded: posted when @event is recorded
 */
struct refused {
	aclrtStream stream;
	aclrtStream other;
	aclrtEvent event;
	char *memory;
	void *mapped;
	void *host;
	aclrtContext context;
	sem_t recorded;
};

#define REFUSED(call) CHECK_EQ(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT)

static void wait_for_own_stream(void *argument)
{
	struct refused *r = argument;
	char local[16] = {};

	CHECK_EQ(sem_wait(&r->recorded), 0);
	REFUSED(aclrtSynchronizeStream(r->stream));
	REFUSED(aclrtSynchronizeStreamWithTimeout(r->stream, 1));
	REFUSED(aclrtSynchronizeEvent(r->event));
	REFUSED(aclrtSynchronizeDevice());
	REFUSED(aclrtFreeWithDevSync(r->memory));
	REFUSED(aclrtMemcpyAsync(r->memory, sizeof(local), local, sizeof(local),
				 ACL_MEMCPY_HOST_TO_DEVICE, r->stream));
	REFUSED(aclrtUnmapMem(r->mapped));
#ifdef FAKE_DEVICE
	REFUSED(aclrtFreeHost(r->host));
	memset(r->host, 1, 100);
#endif
	REFUSED(aclrtDestroyStream(r->stream));
	REFUSED(aclrtDestroyStreamForce(r->stream));
	REFUSED(aclrtDestroyContext(r->context));
	REFUSED(aclFinalize());
	/* what does not wait for it is done */
	CHECK_EQ(aclrtSynchronizeStream(r->other), 0);
	CHECK_EQ(aclrtMemcpyAsync(r->memory, sizeof(local), local,
				  sizeof(local), ACL_MEMCPY_HOST_TO_DEVICE,
				  r->other),
		 0);
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(aclrtResetDevice(0), 0);
}

static void map_memory(struct refused *r, aclrtDrvMemHandle *handle)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};

	CHECK_EQ(aclrtReserveMemAddress(&r->mapped, MIB, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMallocPhysical(handle, MIB, &prop, 0), 0);
	CHECK_EQ(aclrtMapMem(r->mapped, MIB, 0, *handle, 0), 0);
}

static void a_host_function_does_not_wait_for_its_stream(void)
{
	struct refused r = {};
	aclrtDrvMemHandle handle;

	alarm(20);
	CHECK_EQ(aclrtCreateContext(&r.context, 0), 0);
	CHECK_EQ(aclrtCreateStream(&r.stream), 0);
	CHECK_EQ(aclrtCreateStream(&r.other), 0);
	CHECK_EQ(aclrtCreateEvent(&r.event), 0);
	CHECK_EQ(aclrtMallocHost(&r.host, 100), 0);
	CHECK_EQ(sem_init(&r.recorded, 0, 0), 0);
	r.memory = acl_new(4096, 0);
	map_memory(&r, &handle);
	CHECK_EQ(aclrtMemset(r.memory, 4096, 7, 4096), 0);
	CHECK_EQ(aclrtLaunchHostFunc(r.stream, wait_for_own_stream, &r), 0);
	CHECK_EQ(aclrtRecordEvent(r.event, r.stream), 0);
	CHECK_EQ(sem_post(&r.recorded), 0);
	CHECK_EQ(aclrtSynchronizeEvent(r.event), 0);
	CHECK_EQ(aclrtSynchronizeStream(r.stream), 0);
	CHECK_EQ(byte_at(r.memory), 0);
	CHECK_EQ(byte_at(r.memory + 16), 7);
	/* and all that was refused is as it was */
	CHECK_EQ(aclrtMemset(r.mapped, MIB, 1, MIB), 0);
	CHECK_EQ(aclrtUnmapMem(r.mapped), 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(aclrtFreeHost(r.host), 0);
	CHECK_EQ(aclrtFreeHost(r.host), ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(r.memory);
	CHECK_EQ(aclrtDestroyEvent(r.event), 0);
	CHECK_EQ(aclrtDestroyStream(r.stream), 0);
	CHECK_EQ(aclrtDestroyStream(r.other), 0);
	CHECK_EQ(aclrtDestroyContext(r.context), 0);
	CHECK_EQ(aclrtDestroyContext(r.context), ACL_ERROR_INVALID_PARAM);
}

static void wait_for_default_stream(void *argument)
{
	char local[16] = {};

	REFUSED(aclrtSynchronizeStream(NULL));
	REFUSED(aclrtMemcpyAsync(argument, sizeof(local), local, sizeof(local),
				 ACL_MEMCPY_HOST_TO_DEVICE, NULL));
}

static void nor_does_one_of_the_default_stream(void)
{
	char *d = acl_new(4096, 0);

	alarm(20);
	CHECK_EQ(aclrtLaunchHostFunc(NULL, wait_for_default_stream, d), 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	acl_delete(d);
}

static void wait_for_blocked_stream(void *argument)
{
	struct refused *r = argument;

	REFUSED(aclrtSynchronizeStream(r->stream));
	REFUSED(aclrtSynchronizeDevice());
	REFUSED(aclrtDestroyStream(r->stream));
	CHECK_EQ(aclrtSynchronizeStream(r->other), 0);
	/* this ends the wait of the stream */
	CHECK_EQ(aclrtDestroyStreamForce(r->stream), 0);
	CHECK_EQ(aclrtSynchronizeDevice(), 0);
}

static void nor_does_a_callback_that_blocks_it(void)
{
	struct refused r = { .stream = subscribed_stream() };

	alarm(20);
	CHECK_EQ(aclrtCreateStream(&r.other), 0);
	CHECK_EQ(aclrtLaunchCallback(wait_for_blocked_stream, &r,
				     ACL_CALLBACK_BLOCK, r.stream),
		 0);
	CHECK_EQ(aclrtProcessReport(-1), 0);
	CHECK_EQ(aclrtDestroyStream(r.stream), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyStream(r.other), 0);
}

/**
 * struct server - a thread that runs callbacks
 * @thread: the thread
 * @subscribed: posted when the thread is subscribed to all streams
 */
struct server {
	pthread_t thread;
	sem_t subscribed;
};

static void *process_reports(void *argument)
{
	struct server *server = argument;
	aclError error;

	CHECK_EQ(sem_wait(&server->subscribed), 0);
	do {
		error = aclrtProcessReport(-1);
	} while (!error);
	CHECK_EQ(error, ACL_ERROR_RT_THREAD_SUBSCRIBE);
	return NULL;
}

#define CALLS 300

/* The thread ends with the last subscription. */
static void a_thread_serves_several_streams(void)
{
	struct server server;
	struct call call = {};
	aclrtStream streams[3];
	size_t i, j;

	CHECK_EQ(sem_init(&server.subscribed, 0, 0), 0);
	CHECK_EQ(pthread_create(&server.thread, NULL, process_reports, &server),
		 0);
	for (i = 0; i < ARRAY_SIZE(streams); i++) {
		CHECK_EQ(aclrtCreateStream(&streams[i]), 0);
		CHECK_EQ(aclrtSubscribeReport((uint64_t)server.thread,
					      streams[i]),
			 0);
	}
	CHECK_EQ(sem_post(&server.subscribed), 0);
	for (j = 0; j < CALLS; j++)
		for (i = 0; i < ARRAY_SIZE(streams); i++)
			CHECK_EQ(aclrtLaunchCallback(note, &call,
						     ACL_CALLBACK_BLOCK,
						     streams[i]),
				 0);
	CHECK_EQ(aclrtSynchronizeDevice(), 0);
	CHECK_EQ(count_of(&call), CALLS * ARRAY_SIZE(streams));
	CHECK(pthread_equal(call.thread, server.thread));
	for (i = 0; i < ARRAY_SIZE(streams); i++)
		CHECK_EQ(aclrtDestroyStream(streams[i]), 0);
	CHECK_EQ(pthread_join(server.thread, NULL), 0);
}

static void a_child_has_no_subscriptions(void)
{
	aclrtStream stream = subscribed_stream();
	struct call call = {};
	int status;
	pid_t pid;

	CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_BLOCK, stream),
		 0);
	CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, SHORT_MS),
		 ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
	pid = fork();
	if (!pid) {
		CHECK_EQ(aclrtProcessReport(-1), ACL_ERROR_RT_THREAD_SUBSCRIBE);
		CHECK_EQ(aclrtSubscribeReport(self(), NULL), 0);
		CHECK_EQ(aclrtLaunchCallback(note, &call, ACL_CALLBACK_BLOCK,
					     NULL),
			 0);
		CHECK_EQ(aclrtProcessReport(-1), 0);
		CHECK_EQ(count_of(&call), 1);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(aclrtProcessReport(-1), 0);
	CHECK_EQ(count_of(&call), 1);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(a_stream_waits_for_a_blocking_callback),
		ROW(a_stream_goes_on_after_another_callback),
		ROW(subscriptions_are_checked),
		ROW(what_is_unsubscribed_does_not_run),
		ROW(a_host_function_runs_in_order),
		ROW(a_host_function_does_not_wait_for_its_stream),
		ROW(nor_does_one_of_the_default_stream),
		ROW(nor_does_a_callback_that_blocks_it),
		ROW(a_thread_serves_several_streams),
		ROW(a_child_has_no_subscriptions),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
