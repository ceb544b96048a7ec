// SPDX-License-Identifier: MIT
/*
 * Streams of the ACL front-end: a queue and a thread each.
 *
 * Lock order: accmem_acl_streams_lock > acl_stream.lock. Work is done under neither.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/stream.h"
#include "acl/wait.h"
#include "core/util.h"

/**
 * struct acl_stream - a stream
 * @device: whose it is
 * @number: of all streams, in the order in which they were made
 * @process: that has its thread
 * @thread: does the work
 * @next: the one made before it, under accmem_acl_streams_lock
 * @ending: likewise: a thread ends it, and its handle is good for nothing else; it stays
 *	in the list as long as it works
 * @lock: protects what follows
 * @change: something was added, or done, or is to end
 * @running: what its thread is at, or NULL
 * @pinned: @running is not dropped
 * @head: the next to be done
 * @tail: where the next one is added
 * @added: how many
 * @done: how many
 * @ends: after what has been added
 * @gone: it is in the list no more
 * @users: calls that wait for it
 */
struct acl_stream {
	struct acl_device *device;
	uint64_t number;
	pid_t process;
	pthread_t thread;
	struct acl_stream *next;
	bool ending;
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct acl_op *running;
	bool pinned;
	struct acl_op *head;
	struct acl_op **tail;
	uint64_t added;
	uint64_t done;
	bool ends;
	bool gone;
	unsigned int users;
};

/* Protects the list and acl_device.stream. */
static struct acl_stream *streams;
static uint64_t nr_streams; /* that were ever made */

/* The next operation, or NULL at the end; with the lock held. */
static struct acl_op *stream_next(struct acl_stream *stream)
{
	struct acl_op *op;

	while (!stream->head && !stream->ends)
		pthread_cond_wait(&stream->change, &stream->lock);
	op = stream->head;
	if (op)
		stream->head = op->next;
	if (!stream->head)
		stream->tail = &stream->head;
	stream->running = op;
	return op;
}

/* With the lock held, which is released meanwhile. */
static void stream_run_op(struct acl_stream *stream, struct acl_op *op)
{
	pthread_mutex_unlock(&stream->lock);
	op->run(op);
	pthread_mutex_lock(&stream->lock);
	stream->running = NULL;
	while (stream->pinned)
		pthread_cond_wait(&stream->change, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	op->drop(op);
	pthread_mutex_lock(&stream->lock);
}

static void *stream_work(void *argument)
{
	struct acl_stream *stream = argument;
	struct acl_op *op;

	pthread_mutex_lock(&stream->lock);
	while ((op = stream_next(stream))) {
		stream_run_op(stream, op);
		stream->done++;
		pthread_cond_broadcast(&stream->change);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* The program's signals are the program's threads' business. */
static int stream_start(struct acl_stream *stream)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&stream->thread, NULL, stream_work, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

static struct acl_stream *stream_create(struct acl_device *device)
{
	struct acl_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->device = device;
	stream->process = getpid();
	stream->tail = &stream->head;
	pthread_mutex_init(&stream->lock, NULL);
	accmem_acl_cond_init(&stream->change);
	if (stream_start(stream)) {
		pthread_cond_destroy(&stream->change);
		pthread_mutex_destroy(&stream->lock);
		free(stream);
		return NULL;
	}
	stream->number = ++nr_streams;
	stream->next = streams;
	streams = stream;
	return stream;
}

static void stream_unlink(struct acl_stream *stream)
{
	struct acl_stream **link;

	for (link = &streams; *link != stream; link = &(*link)->next)
		;
	*link = stream->next;
	if (stream->device->stream == stream)
		stream->device->stream = NULL;
}

/* The caller ends it; with the streams' lock held. */
static void stream_set_ending(struct acl_stream *stream)
{
	stream->ending = true;
	if (stream->device->stream == stream)
		stream->device->stream = NULL;
}

/* Those who wait for all streams have found it until then. */
static void stream_join(struct acl_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->ends = true;
	pthread_cond_broadcast(&stream->change);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);

	pthread_mutex_lock(&accmem_acl_streams_lock);
	stream_unlink(stream);
	pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	stream->gone = true;
	pthread_cond_broadcast(&stream->change);
	while (stream->users)
		pthread_cond_wait(&stream->change, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

/* It is marked by the caller, who is not cancelled. */
static void stream_destroy(struct acl_stream *stream)
{
	/* its thread, and whatever its lock was, stayed in the parent */
	if (stream->process != getpid()) {
		pthread_mutex_lock(&accmem_acl_streams_lock);
		stream_unlink(stream);
		pthread_mutex_unlock(&accmem_acl_streams_lock);
		free(stream);
		return;
	}
	stream_join(stream);
	pthread_cond_destroy(&stream->change);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static bool stream_exists(const struct acl_stream *stream)
{
	struct acl_stream *one;

	for (one = streams; one && one != stream; one = one->next)
		;
	return one && one->process == getpid() && !one->ending;
}

static struct acl_stream *stream_default(struct acl_device *device,
					 aclError *error)
{
	struct acl_stream *stream = device->stream;

	/* of the parent, in a child */
	if (stream && stream->process != getpid()) {
		stream_unlink(stream);
		free(stream);
	}
	if (!device->stream)
		device->stream = stream_create(device);
	if (!device->stream)
		*error = accmem_acl_fail(ACL_ERROR_BAD_ALLOC,
					 "no thread, or memory");
	return device->stream;
}

/* The stream of the current device, with its own lock held, or NULL. */
static struct acl_stream *stream_get_default(aclError *error)
{
	struct acl_stream *stream = NULL;
	struct acl_device *device;

	accmem_acl_call_begin();
	device = accmem_acl_device_current(error);
	if (device) {
		pthread_mutex_lock(&accmem_acl_streams_lock);
		stream = stream_default(device, error);
		if (stream)
			pthread_mutex_lock(&stream->lock);
		pthread_mutex_unlock(&accmem_acl_streams_lock);
	}
	accmem_acl_call_end();
	return stream;
}

/* The stream with its own lock held, or NULL. */
static struct acl_stream *stream_get(aclrtStream handle, aclError *error)
{
	struct acl_stream *stream = handle;
	bool exists;

	if (!stream)
		return stream_get_default(error);
	pthread_mutex_lock(&accmem_acl_streams_lock);
	exists = stream_exists(stream);
	if (exists)
		pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	if (exists)
		return stream;
	*error = accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				 "no such stream in this process");
	return NULL;
}

aclrtStream accmem_acl_stream_resolve(aclrtStream handle, aclError *error)
{
	struct acl_stream *stream;

	if (handle)
		return handle;
	stream = stream_get(NULL, error);
	if (stream)
		pthread_mutex_unlock(&stream->lock);
	return stream;
}

aclError accmem_acl_stream_add(aclrtStream handle, struct acl_op *op)
{
	struct acl_stream *stream;
	aclError error;

	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	op->next = NULL;
	*stream->tail = op;
	stream->tail = &op->next;
	stream->added++;
	pthread_cond_broadcast(&stream->change);
	pthread_mutex_unlock(&stream->lock);
	return ACL_SUCCESS;
}

/* For what has been added so far; false if it takes too long. */
static bool stream_wait_locked(struct acl_stream *stream,
			       const struct acl_timeout *timeout)
{
	uint64_t position = stream->added;
	bool in_time = true;

	stream->users++;
	while (stream->done < position && in_time)
		in_time = accmem_acl_cond_wait(&stream->change, &stream->lock,
					       timeout);
	in_time = stream->done >= position;
	stream->users--;
	pthread_cond_broadcast(&stream->change);
	return in_time;
}

aclError aclrtCreateStream(aclrtStream *stream)
{
	struct acl_device *device;
	aclError error;

	if (!stream)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "stream is NULL");
	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	if (device) {
		pthread_mutex_lock(&accmem_acl_streams_lock);
		*stream = stream_create(device);
		pthread_mutex_unlock(&accmem_acl_streams_lock);
		if (!*stream)
			error = accmem_acl_fail(ACL_ERROR_BAD_ALLOC,
						"no thread, or memory");
	}
	accmem_acl_call_end();
	return error;
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
				     uint32_t flag)
{
	(void)priority;
	(void)flag;
	return aclrtCreateStream(stream);
}

/* Drops what has not begun, and ends what waits for something else. */
static void stream_discard(struct acl_stream *stream)
{
	struct acl_op *queued, *op;

	pthread_mutex_lock(&stream->lock);
	queued = stream->head;
	stream->head = NULL;
	stream->tail = &stream->head;
	for (op = queued; op; op = op->next)
		stream->done++;
	op = stream->running;
	if (op && !op->stop)
		op = NULL;
	stream->pinned = op;
	pthread_mutex_unlock(&stream->lock);
	if (op) {
		op->stop(op);
		pthread_mutex_lock(&stream->lock);
		stream->pinned = false;
		pthread_cond_broadcast(&stream->change);
		pthread_mutex_unlock(&stream->lock);
	}
	while ((op = queued)) {
		queued = op->next;
		op->drop(op);
	}
}

static aclError stream_end(struct acl_stream *stream, bool discards)
{
	bool exists;
	int state;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	exists = stream && stream_exists(stream);
	if (exists)
		stream_set_ending(stream);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	if (!exists)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "no such stream in this process");
	state = accmem_cancel_off();
	if (discards)
		stream_discard(stream);
	stream_destroy(stream);
	accmem_cancel_restore(state);
	return ACL_SUCCESS;
}

aclError aclrtDestroyStream(aclrtStream stream)
{
	return stream_end(stream, false);
}

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
	return stream_end(stream, true);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream handle, int32_t ms)
{
	struct acl_timeout timeout;
	struct acl_stream *stream;
	aclError error;
	bool in_time;

	error = accmem_acl_timeout_start(&timeout, ms);
	if (error)
		return error;
	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	in_time = stream_wait_locked(stream, &timeout);
	pthread_mutex_unlock(&stream->lock);
	return in_time ? ACL_SUCCESS :
			 accmem_acl_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
					 "the stream has work to do still");
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
	return aclrtSynchronizeStreamWithTimeout(stream, -1);
}

aclError aclrtStreamQuery(aclrtStream handle, aclrtStreamStatus *status)
{
	struct acl_stream *stream;
	aclError error;

	if (!status)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "status is NULL");
	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	*status = stream->done == stream->added ? ACL_STREAM_STATUS_COMPLETE :
						  ACL_STREAM_STATUS_NOT_READY;
	pthread_mutex_unlock(&stream->lock);
	return ACL_SUCCESS;
}

/* The last one of the device made before number @before, with its own lock held. */
static struct acl_stream *stream_of(struct acl_device *device, uint64_t before)
{
	struct acl_stream *stream;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	for (stream = streams; stream; stream = stream->next)
		if ((!device || stream->device == device) &&
		    stream->process == getpid() && stream->number < before)
			break;
	if (stream)
		pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	return stream;
}

void accmem_acl_streams_wait(struct acl_device *device)
{
	const struct acl_timeout never = {};
	struct acl_stream *stream;
	uint64_t before = UINT64_MAX;

	while ((stream = stream_of(device, before))) {
		before = stream->number;
		stream_wait_locked(stream, &never);
		pthread_mutex_unlock(&stream->lock);
	}
}

static struct acl_stream *stream_first_of(const struct acl_device *device)
{
	struct acl_stream *stream;

	for (stream = streams; stream && stream->device != device;
	     stream = stream->next)
		;
	return stream;
}

bool accmem_acl_streams_exist(struct acl_device *device)
{
	bool exist;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	exist = stream_first_of(device);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	return exist;
}

/* Another thread ends it; with the stream's lock held, which is released. */
static void stream_wait_gone(struct acl_stream *stream)
{
	stream->users++;
	while (!stream->gone)
		pthread_cond_wait(&stream->change, &stream->lock);
	stream->users--;
	pthread_cond_broadcast(&stream->change);
	pthread_mutex_unlock(&stream->lock);
}

/* One of the device's; false if there is none. */
static bool stream_end_one(const struct acl_device *device)
{
	struct acl_stream *stream;
	bool ending;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	stream = stream_first_of(device);
	/* who did that to one of the parent's is not in the child */
	ending = stream && stream->ending && stream->process == getpid();
	if (ending)
		pthread_mutex_lock(&stream->lock);
	else if (stream)
		stream_set_ending(stream);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	if (ending)
		stream_wait_gone(stream);
	else if (stream)
		stream_destroy(stream);
	return stream;
}

void accmem_acl_streams_end(struct acl_device *device)
{
	while (stream_end_one(device))
		;
}

aclError aclrtSynchronizeDevice(void)
{
	struct acl_device *device;
	aclError error;

	accmem_acl_call_begin();
	device = accmem_acl_device_current(&error);
	accmem_acl_call_end();
	if (!device)
		return error;
	/* of one that is closed meanwhile there are none */
	accmem_acl_streams_wait(device);
	return ACL_SUCCESS;
}

/* Work is done here, not by a device that could fail at it: there is nothing to stop for. */
aclError aclrtSetStreamFailureMode(aclrtStream handle, uint64_t mode)
{
	struct acl_stream *stream;
	aclError error;

	if (!handle || mode > ACL_STOP_ON_FAILURE)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "the default stream, or no such mode");
	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	pthread_mutex_unlock(&stream->lock);
	return ACL_SUCCESS;
}
