// SPDX-License-Identifier: MIT
/*
 * Events of the ACL front-end on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE.
 * Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "acl_tests.h"

static uint64_t now_us(void)
{
	struct timespec now;

	CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

static void wait_for_post(void *semaphore)
{
	CHECK_EQ(sem_wait(semaphore), 0);
}

static aclrtEventWaitStatus wait_status(aclrtEvent event)
{
	aclrtEventWaitStatus status;

	CHECK_EQ(aclrtQueryEventWaitStatus(event, &status), 0);
	return status;
}

static void events_are_made_with_flags(void)
{
	static const uint32_t known[] = {
		0,
		ACL_EVENT_SYNC,
		ACL_EVENT_TIME_LINE,
		ACL_EVENT_CAPTURE_STREAM_PROGRESS,
		ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE,
	};
	aclrtEventStatus status;
	aclrtEvent event;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		CHECK_EQ(aclrtCreateEventWithFlag(&event, known[i]), 0);
		CHECK_EQ(aclrtRecordEvent(event, NULL), 0);
		CHECK_EQ(aclrtSynchronizeEvent(event), 0);
		CHECK_EQ(aclrtQueryEvent(event, &status), 0);
		CHECK_EQ(status, ACL_EVENT_STATUS_COMPLETE);
		CHECK_EQ(aclrtQueryEvent(event, NULL), ACL_ERROR_INVALID_PARAM);
		CHECK_EQ(aclrtDestroyEvent(event), 0);
		CHECK_EQ(aclrtCreateEventExWithFlag(&event, known[i]), 0);
		CHECK_EQ(aclrtDestroyEvent(event), 0);
	}
	CHECK_EQ(aclrtCreateEventWithFlag(NULL, 0), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtCreateEventWithFlag(&event, 0x20),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtCreateEventExWithFlag(&event, 0x80000000),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtQueryEvent(NULL, &status), ACL_ERROR_INVALID_PARAM);
}

/* A reset forgets the records before the reset in the stream, and none after. */
static void a_reset_event_has_no_time(void)
{
	aclrtEvent start, event;
	aclrtStream stream;
	float ms;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtCreateEvent(&start), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtRecordEvent(start, stream), 0);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtEventElapsedTime(&ms, start, event), 0);
	CHECK_EQ(aclrtResetEvent(event, stream), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtEventElapsedTime(&ms, start, event),
		 ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
	/* nobody waits for it */
	CHECK_EQ(aclrtSynchronizeEvent(event), 0);
	CHECK_EQ(aclrtStreamWaitEvent(stream, event), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtResetEvent(event, stream), 0);
	CHECK_EQ(aclrtRecordEvent(event, stream), 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtEventElapsedTime(&ms, start, event), 0);
	CHECK(ms >= 0);
	CHECK_EQ(aclrtResetEvent(NULL, stream), ACL_ERROR_INVALID_PARAM);
	/* it may go before the stream comes to it */
	CHECK_EQ(aclrtResetEvent(event, stream), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	CHECK_EQ(aclrtResetEvent(start, stream), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyEvent(start), 0);
}

static void an_event_has_the_time_of_its_record(void)
{
	uint64_t before = now_us(), first = 0, second = 0;
	aclrtEvent a, b;
	float ms;

	CHECK_EQ(aclrtCreateEvent(&a), 0);
	CHECK_EQ(aclrtCreateEvent(&b), 0);
	CHECK_EQ(aclrtEventGetTimestamp(a, &first),
		 ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
	CHECK_EQ(aclrtRecordEvent(a, NULL), 0);
	CHECK_EQ(aclrtSynchronizeEvent(a), 0);
	CHECK_EQ(aclrtRecordEvent(b, NULL), 0);
	CHECK_EQ(aclrtSynchronizeEvent(b), 0);
	CHECK_EQ(aclrtEventGetTimestamp(a, &first), 0);
	CHECK_EQ(aclrtEventGetTimestamp(b, &second), 0);
	CHECK(before <= first && first <= second && second <= now_us());
	CHECK_EQ(aclrtEventElapsedTime(&ms, a, b), 0);
	CHECK(ms * 1000 <= second - first + 2);
	CHECK_EQ(aclrtEventGetTimestamp(a, NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtEventGetTimestamp(NULL, &first), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyEvent(a), 0);
	CHECK_EQ(aclrtDestroyEvent(b), 0);
}

/* The waits of all streams, and whether they are over or dropped */
static void waits_for_an_event_are_queried(void)
{
	aclrtStream records, waits, other;
	aclrtEvent event;
	sem_t go;

	CHECK_EQ(sem_init(&go, 0, 0), 0);
	CHECK_EQ(aclrtCreateStream(&records), 0);
	CHECK_EQ(aclrtCreateStream(&waits), 0);
	CHECK_EQ(aclrtCreateStream(&other), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(wait_status(event), ACL_EVENT_WAIT_STATUS_COMPLETE);
	CHECK_EQ(aclrtLaunchHostFunc(records, wait_for_post, &go), 0);
	CHECK_EQ(aclrtRecordEvent(event, records), 0);
	CHECK_EQ(aclrtStreamWaitEvent(waits, event), 0);
	CHECK_EQ(aclrtStreamWaitEvent(other, event), 0);
	CHECK_EQ(wait_status(event), ACL_EVENT_WAIT_STATUS_NOT_READY);
	CHECK_EQ(aclrtDestroyStreamForce(other), 0);
	CHECK_EQ(wait_status(event), ACL_EVENT_WAIT_STATUS_NOT_READY);
	CHECK_EQ(sem_post(&go), 0);
	CHECK_EQ(aclrtSynchronizeStream(waits), 0);
	CHECK_EQ(wait_status(event), ACL_EVENT_WAIT_STATUS_COMPLETE);
	CHECK_EQ(aclrtQueryEventWaitStatus(event, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtDestroyStream(records), 0);
	CHECK_EQ(aclrtDestroyStream(waits), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
}

/* Though streams have still to do with it. */
static void an_event_is_destroyed_once(void)
{
	aclrtStream busy, waits;
	aclrtEvent event;

	CHECK_EQ(aclrtCreateStream(&busy), 0);
	CHECK_EQ(aclrtCreateStream(&waits), 0);
	CHECK_EQ(aclrtCreateEvent(&event), 0);
	keep_busy(busy);
	CHECK_EQ(aclrtRecordEvent(event, busy), 0);
	CHECK_EQ(aclrtStreamWaitEvent(waits, event), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtRecordEvent(event, busy), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtSynchronizeEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyStreamForce(busy), 0);
	CHECK_EQ(aclrtDestroyStream(waits), 0);
}

/* Also one whose memory is the C library's again, or that was none. */
static void what_is_no_event_is_not_looked_into(void)
{
	aclrtEventRecordedStatus status;
	aclrtEvent event;
	const aclrtEvent none = (aclrtEvent)8;

	CHECK_EQ(aclrtCreateEvent(&event), 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
	CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtRecordEvent(event, NULL), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtQueryEventStatus(event, &status),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtSynchronizeEvent(none), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyEvent(none), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDestroyEvent(NULL), ACL_ERROR_INVALID_PARAM);
}

static void a_child_has_no_events_of_its_parent(void)
{
	aclrtEvent event;
	int status;
	pid_t pid;

	CHECK_EQ(aclrtCreateEvent(&event), 0);
	pid = fork();
	if (!pid) {
		CHECK_EQ(aclrtDestroyEvent(event), ACL_ERROR_RT_INVALID_HANDLE);
		CHECK_EQ(aclrtCreateEvent(&event), 0);
		CHECK_EQ(aclrtRecordEvent(event, NULL), 0);
		CHECK_EQ(aclrtSynchronizeEvent(event), 0);
		CHECK_EQ(aclrtDestroyEvent(event), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(aclrtDestroyEvent(event), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(events_are_made_with_flags),
		ROW(a_reset_event_has_no_time),
		ROW(an_event_has_the_time_of_its_record),
		ROW(waits_for_an_event_are_queried),
		ROW(an_event_is_destroyed_once),
		ROW(what_is_no_event_is_not_looked_into),
		ROW(a_child_has_no_events_of_its_parent),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
