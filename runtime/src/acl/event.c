// SPDX-License-Identifier: MIT
/*
 * Events of the ACL front-end. A record of an event is an operation of a stream; the event
 * is complete when the stream has run its latest record. A tree has all events that the
 * program has not destroyed, so that a handle is compared before it is used.
 *
 * Lock order: accmem_acl_events_lock > acl_event.lock > the locks of streams.
 */
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/error.h"
#include "acl/locks.h"
#include "acl/stream.h"
#include "acl/wait.h"

struct event_op;

/**
 * struct acl_event - an event
 * @process: process that created the event
 * @lock: protects all fields below
 * @change: signalled when a stream has run a record
 * @recorded: number of records so far
 * @records: records that no stream has run yet
 * @reached: number of the latest record that a stream has run
 * @when: time when a stream ran record @reached
 * @reset: number of the latest record that a reset has cancelled
 * @waits: number of waits of streams for the event
 * @users: references: of the program, and of each operation of a stream
 */
struct acl_event {
	pid_t process;
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint64_t recorded;
	struct event_op *records;
	uint64_t reached;
	struct timespec when;
	uint64_t reset;
	unsigned int waits;
	unsigned int users;
};

/**
 * struct event_op - an operation of a stream on an event
 * @op: the operation
 * @event: the event
 * @stream: the stream
 * @next: next in acl_event.records
 * @count: number of this record; of a wait or a reset, the latest record's number
 * @stopped: the wait is cancelled; under the event's lock
 */
struct event_op {
	struct acl_op op;
	struct acl_event *event;
	aclrtStream stream;
	struct event_op *next;
	uint64_t count;
	bool stopped;
};

/**
 * struct event_kind - a kind of operation on an event
 * @run: as acl_op.run
 * @stop: as acl_op.stop
 * @drop: as acl_op.drop
 * @records: the operation is a record
 */
struct event_kind {
	void (*run)(struct acl_op *op);
	void (*stop)(struct acl_op *op);
	void (*drop)(struct acl_op *op);
	bool records;
};

/* tsearch() tree of struct acl_event, under accmem_acl_events_lock. */
static void *events;

static int event_compare(const void *left, const void *right)
{
	return ((uintptr_t)left > (uintptr_t)right) -
	       ((uintptr_t)left < (uintptr_t)right);
}

/* Drop a reference. The caller holds the event's lock, which this function releases. */
static void event_put(struct acl_event *event)
{
	bool last = !--event->users;

	pthread_mutex_unlock(&event->lock);
	if (!last)
		return;
	pthread_cond_destroy(&event->change);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

/* Lock an event, and with @removes remove it from the tree. NULL: it is not there. */
static struct acl_event *event_find(aclrtEvent handle, bool removes)
{
	struct acl_event *event = handle;

	pthread_mutex_lock(&accmem_acl_events_lock);
	if (!tfind(event, &events, event_compare) || event->process != getpid())
		event = NULL;
	if (event)
		pthread_mutex_lock(&event->lock);
	if (event && removes)
		tdelete(event, &events, event_compare);
	pthread_mutex_unlock(&accmem_acl_events_lock);
	return event;
}

static aclError event_unknown(aclrtEvent handle)
{
	return accmem_acl_fail(handle ? ACL_ERROR_RT_INVALID_HANDLE :
					ACL_ERROR_INVALID_PARAM,
			       "no such event in this process");
}

static struct acl_event *event_get(aclrtEvent handle, aclError *error)
{
	struct acl_event *event = event_find(handle, false);

	if (!event)
		*error = event_unknown(handle);
	return event;
}

/* The record that no stream has run yet. Other streams may have run later records. */
static const struct event_op *event_record(const struct acl_event *event,
					   uint64_t count)
{
	const struct event_op *record = event->records;

	while (record && record->count != count)
		record = record->next;
	return record;
}

static bool event_is_reached(const struct acl_event *event, uint64_t count)
{
	return !event_record(event, count);
}

/* A stream has run a record. The caller holds the lock. */
static void event_reach(struct acl_event *event, struct event_op *record)
{
	struct event_op **link = &event->records;

	while (*link && *link != record)
		link = &(*link)->next;
	if (*link)
		*link = record->next;
	if (event->reached < record->count) {
		clock_gettime(CLOCK_MONOTONIC, &event->when);
		event->reached = record->count;
	}
	pthread_cond_broadcast(&event->change);
}

static void event_run_record(struct acl_op *op)
{
	struct event_op *record = (struct event_op *)op;

	pthread_mutex_lock(&record->event->lock);
	event_reach(record->event, record);
	pthread_mutex_unlock(&record->event->lock);
}

static void event_run_wait(struct acl_op *op)
{
	struct event_op *wait = (struct event_op *)op;
	struct acl_event *event = wait->event;

	pthread_mutex_lock(&event->lock);
	while (!event_is_reached(event, wait->count) && !wait->stopped)
		pthread_cond_wait(&event->change, &event->lock);
	pthread_mutex_unlock(&event->lock);
}

static void event_stop_wait(struct acl_op *op)
{
	struct event_op *wait = (struct event_op *)op;

	pthread_mutex_lock(&wait->event->lock);
	wait->stopped = true;
	pthread_cond_broadcast(&wait->event->change);
	pthread_mutex_unlock(&wait->event->lock);
}

static void event_run_reset(struct acl_op *op)
{
	struct event_op *reset = (struct event_op *)op;
	struct acl_event *event = reset->event;

	pthread_mutex_lock(&event->lock);
	if (event->reset < reset->count)
		event->reset = reset->count;
	pthread_mutex_unlock(&event->lock);
}

static void event_drop(struct acl_op *op)
{
	struct event_op *e = (struct event_op *)op;

	pthread_mutex_lock(&e->event->lock);
	event_put(e->event);
	free(e);
}

static void event_drop_wait(struct acl_op *op)
{
	struct acl_event *event = ((struct event_op *)op)->event;

	pthread_mutex_lock(&event->lock);
	event->waits--;
	pthread_mutex_unlock(&event->lock);
	event_drop(op);
}

/* A dropped record counts as run, so that no wait for it lasts for ever. */
static void event_drop_record(struct acl_op *op)
{
	event_run_record(op);
	event_drop(op);
}

static const struct event_kind kind_record = {
	.run = event_run_record,
	.drop = event_drop_record,
	.records = true,
};

static const struct event_kind kind_wait = {
	.run = event_run_wait,
	.stop = event_stop_wait,
	.drop = event_drop_wait,
};

static const struct event_kind kind_reset = {
	.run = event_run_reset,
	.drop = event_drop,
};

static aclError event_queue(aclrtEvent handle, aclrtStream stream,
			    const struct event_kind *kind)
{
	struct event_op *op = calloc(1, sizeof(*op));
	aclError error = ACL_ERROR_BAD_ALLOC;
	struct acl_event *event;

	if (!op)
		return accmem_acl_fail(error, "no memory");
	/* not under the event's lock, since it may open the device */
	stream = accmem_acl_stream_resolve(stream, &error);
	if (!stream)
		goto free_op;
	event = event_get(handle, &error);
	if (!event)
		goto free_op;
	op->op.run = kind->run;
	op->op.stop = kind->stop;
	op->op.drop = kind->drop;
	op->event = event;
	op->stream = stream;
	op->count = event->recorded + kind->records;
	event->users++;
	error = accmem_acl_stream_add(stream, &op->op);
	if (!error) {
		event->recorded += kind->records;
		event->waits += kind == &kind_wait;
		/* the stream takes the lock before it removes the record */
		if (kind->records) {
			op->next = event->records;
			event->records = op;
		}
		pthread_mutex_unlock(&event->lock);
		return ACL_SUCCESS;
	}
	event_put(event);
free_op:
	free(op);
	return error;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
{
	return event_queue(event, stream, &kind_record);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
{
	return event_queue(event, stream, &kind_wait);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
{
	return event_queue(event, stream, &kind_reset);
}

static struct acl_event *event_create(void)
{
	struct acl_event *event = calloc(1, sizeof(*event));
	void *node;

	if (!event)
		return NULL;
	event->process = getpid();
	event->users = 1;
	pthread_mutex_lock(&accmem_acl_events_lock);
	node = tsearch(event, &events, event_compare);
	if (node) {
		pthread_mutex_init(&event->lock, NULL);
		accmem_acl_cond_init(&event->change);
	}
	pthread_mutex_unlock(&accmem_acl_events_lock);
	if (!node) {
		free(event);
		return NULL;
	}
	return event;
}

/* Every event has all the properties that the known flags ask for. */
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag)
{
	struct acl_event *new;

	if (!event)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "event is NULL");
	if (flag & ~(uint32_t)(ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE |
			       ACL_EVENT_CAPTURE_STREAM_PROGRESS))
		return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
				       "no such events");
	new = event_create();
	if (!new)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	*event = new;
	return ACL_SUCCESS;
}

aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag)
{
	return aclrtCreateEventExWithFlag(event, flag);
}

aclError aclrtCreateEvent(aclrtEvent *event)
{
	return aclrtCreateEventExWithFlag(event,
					  ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

aclError aclrtDestroyEvent(aclrtEvent handle)
{
	struct acl_event *event = event_find(handle, true);

	if (!event)
		return event_unknown(handle);
	event_put(event);
	return ACL_SUCCESS;
}

/* Wait for the latest record. The caller holds the lock. */
static aclError event_wait_locked(struct acl_event *event,
				  const struct acl_timeout *timeout)
{
	uint64_t count = event->recorded;
	const struct event_op *record = event_record(event, count);
	bool in_time = true;
	aclError error;

	error = record ? accmem_acl_stream_check_wait(record->stream) :
			 ACL_SUCCESS;
	if (error)
		return error;
	while (!event_is_reached(event, count) && in_time)
		in_time = accmem_acl_cond_wait(&event->change, &event->lock,
					       timeout);
	return event_is_reached(event, count) ?
		       ACL_SUCCESS :
		       accmem_acl_fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
				       "no stream has come to the event yet");
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent handle, int32_t ms)
{
	struct acl_timeout timeout;
	struct acl_event *event;
	aclError error;

	error = accmem_acl_timeout_start(&timeout, ms);
	if (error)
		return error;
	event = event_get(handle, &error);
	if (!event)
		return error;
	event->users++;
	error = event_wait_locked(event, &timeout);
	event_put(event);
	return error;
}

aclError aclrtSynchronizeEvent(aclrtEvent event)
{
	return aclrtSynchronizeEventWithTimeout(event, -1);
}

/* Find and lock an event for a call that stores its answer at @status. */
static struct acl_event *event_get_for(aclrtEvent handle, const void *status,
				       aclError *error)
{
	if (status)
		return event_get(handle, error);
	*error = accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "status is NULL");
	return NULL;
}

aclError aclrtQueryEventStatus(aclrtEvent handle,
			       aclrtEventRecordedStatus *status)
{
	struct acl_event *event;
	aclError error;

	event = event_get_for(handle, status, &error);
	if (!event)
		return error;
	*status = event->reached == event->recorded ?
			  ACL_EVENT_RECORDED_STATUS_COMPLETE :
			  ACL_EVENT_RECORDED_STATUS_NOT_READY;
	pthread_mutex_unlock(&event->lock);
	return ACL_SUCCESS;
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status)
{
	aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
	aclError error;

	if (!status)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "status is NULL");
	error = aclrtQueryEventStatus(event, &recorded);
	if (!error)
		*status = recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE ?
				  ACL_EVENT_STATUS_COMPLETE :
				  ACL_EVENT_STATUS_NOT_READY;
	return error;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent handle,
				   aclrtEventWaitStatus *status)
{
	struct acl_event *event;
	aclError error;

	event = event_get_for(handle, status, &error);
	if (!event)
		return error;
	*status = event->waits ? ACL_EVENT_WAIT_STATUS_NOT_READY :
				 ACL_EVENT_WAIT_STATUS_COMPLETE;
	pthread_mutex_unlock(&event->lock);
	return ACL_SUCCESS;
}

/* Time of the latest record. False: it has not run, or a reset has cancelled it. */
static bool event_time(aclrtEvent handle, struct timespec *when,
		       aclError *error)
{
	struct acl_event *event = event_get(handle, error);
	bool known;

	if (!event)
		return false;
	known = event->reached > event->reset &&
		event->reached == event->recorded;
	*when = event->when;
	pthread_mutex_unlock(&event->lock);
	if (!known)
		*error = accmem_acl_fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
					 "no stream has come to the event");
	return known;
}

aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent,
			       aclrtEvent endEvent)
{
	struct timespec start, end;
	aclError error;

	if (!ms)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "ms is NULL");
	if (!event_time(startEvent, &start, &error) ||
	    !event_time(endEvent, &end, &error))
		return error;
	*ms = (end.tv_sec - start.tv_sec) * 1e3f +
	      (end.tv_nsec - start.tv_nsec) / 1e6f;
	return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp)
{
	struct timespec when;
	aclError error;

	if (!timestamp)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "timestamp is NULL");
	if (!event_time(event, &when, &error))
		return error;
	*timestamp = when.tv_sec * 1000000ull + when.tv_nsec / 1000;
	return ACL_SUCCESS;
}
