// SPDX-License-Identifier: MIT
/*
 * Streams of the ACL front-end: a queue of operations, and a thread that runs them.
 *
 * Lock order: accmem_acl_streams_lock > acl_stream.lock. Operations run without locks.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl/call.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/report.h"
#include "acl/stream.h"
#include "acl/wait.h"
#include "core/util.h"

/**
 * struct acl_stream - a stream
 * @device: device of the stream
 * @number: number of the stream in order of creation
 * @process: process that has the thread
 * @thread: thread that runs the operations
 * @next: next older stream, under accmem_acl_streams_lock
 * @ending: a thread is ending the stream, and lookups do not find it; it is in the list
 *	until its operations have run; under accmem_acl_streams_lock
 * @lock: protects all fields below
 * @change: signalled when an operation is queued or has run, or the stream ends
 * @running: operation that the thread is running, or NULL
 * @pinned: the thread must not drop @running
 * @head: next operation
 * @tail: link that the next operation is added to
 * @added: number of operations queued so far
 * @done: number of operations that have run, or were discarded
 * @ends: the thread ends after the queued operations
 * @gone: the stream is not in the list any more
 * @users: number of calls that wait for the stream
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

/* Protected by accmem_acl_streams_lock. */
static struct acl_stream *streams;
static uint64_t nr_streams; /* number of streams created so far */

/* The stream that the calling thread runs, or NULL, and the process of the thread. */
static __thread struct acl_stream *own_stream;
static __thread pid_t own_process;

/* Return the next operation, or NULL at the end. The caller holds the lock. */
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

/* Run an operation. The caller holds the lock, which is released during the run. */
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

	own_stream = stream;
	own_process = stream->process;
	pthread_mutex_lock(&stream->lock);
	while ((op = stream_next(stream))) {
		stream_run_op(stream, op);
		stream->done++;
		pthread_cond_broadcast(&stream->change);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/*
 * The thread blocks signals, so that handlers run in threads of the program. It does not block
 * those that its own copies and host functions may raise: with a signal that is blocked, a fault
 * ends the process even if the program has a handler.
 */
static int stream_start(struct acl_stream *stream)
{
	static const int raised[] = { SIGSEGV, SIGBUS,	SIGFPE, SIGILL,
				      SIGTRAP, SIGABRT, SIGSYS };
	sigset_t most, before;
	unsigned int i;
	int ret;

	sigfillset(&most);
	for (i = 0; i < sizeof(raised) / sizeof(*raised); i++)
		sigdelset(&most, raised[i]);
	pthread_sigmask(SIG_BLOCK, &most, &before);
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

/* The caller is going to end the stream. It holds accmem_acl_streams_lock. */
static void stream_set_ending(struct acl_stream *stream)
{
	stream->ending = true;
	if (stream->device->stream == stream)
		stream->device->stream = NULL;
}

/* The stream stays in the list, for waits for all streams, until its thread has ended. */
static void stream_join(struct acl_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->ends = true;
	pthread_cond_broadcast(&stream->change);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	accmem_acl_callbacks_forget(stream);

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

/* The caller has called stream_set_ending(), and has disabled cancellation. */
static void stream_destroy(struct acl_stream *stream)
{
	/* in a child: the thread and the state of the lock are the parent's */
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

	/* in a child, the default stream is the parent's */
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

/* Return the current device's default stream with its lock held, or NULL. */
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

/* Return the stream with its lock held, or NULL. */
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

/* In a child of fork(), the calling thread is no stream's thread. */
static bool stream_is_own(const struct acl_stream *stream)
{
	return stream == own_stream && own_process == getpid();
}

aclError accmem_acl_stream_check_wait(aclrtStream stream)
{
	if (!stream_is_own(stream) && !accmem_acl_report_blocks(stream))
		return ACL_SUCCESS;
	return accmem_acl_fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
			       "the stream waits for this function to return");
}

aclError accmem_acl_streams_check_wait(struct acl_device *device)
{
	struct acl_stream *stream;
	aclError error = ACL_SUCCESS;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	for (stream = streams; stream && !error; stream = stream->next)
		if (!device || stream->device == device)
			error = accmem_acl_stream_check_wait(stream);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	return error;
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

/* Wait for all operations queued so far. */
static aclError stream_wait_locked(struct acl_stream *stream,
				   const struct acl_timeout *timeout)
{
	aclError error = accmem_acl_stream_check_wait(stream);
	uint64_t position = stream->added;
	bool in_time = true;

	if (error)
		return error;
	stream->users++;
	while (stream->done < position && in_time)
		in_time = accmem_acl_cond_wait(&stream->change, &stream->lock,
					       timeout);
	in_time = stream->done >= position;
	stream->users--;
	pthread_cond_broadcast(&stream->change);
	return in_time ? ACL_SUCCESS :
			 accmem_acl_fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
					 "the stream has work to do still");
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
	aclrtStream found;
	aclError error = ACL_SUCCESS;

	if (!stream)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "stream is NULL");
	found = accmem_acl_stream_resolve(NULL, &error);
	if (found)
		*stream = found;
	return error;
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

/* Drop the queued operations, and stop the running one if it can be stopped. */
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

/* A discard ends the wait for a callback, but not a host function. */
static aclError stream_end(struct acl_stream *stream, bool discards)
{
	aclError error = ACL_SUCCESS;
	bool exists;
	int state;

	if (!stream)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "stream is NULL");
	if (!discards || stream_is_own(stream))
		error = accmem_acl_stream_check_wait(stream);
	if (error)
		return error;
	pthread_mutex_lock(&accmem_acl_streams_lock);
	exists = stream_exists(stream);
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

	error = accmem_acl_timeout_start(&timeout, ms);
	if (error)
		return error;
	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	error = stream_wait_locked(stream, &timeout);
	pthread_mutex_unlock(&stream->lock);
	return error;
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

/* Return the newest stream with a number below @before, with its lock held, or NULL. */
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

aclError accmem_acl_streams_wait(struct acl_device *device)
{
	aclError error = accmem_acl_streams_check_wait(device);
	const struct acl_timeout never = {};
	struct acl_stream *stream;
	uint64_t before = UINT64_MAX;

	while (!error && (stream = stream_of(device, before))) {
		before = stream->number;
		error = stream_wait_locked(stream, &never);
		pthread_mutex_unlock(&stream->lock);
	}
	return error;
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

/* Another thread ends the stream. The caller holds the lock, which is released. */
static void stream_wait_gone(struct acl_stream *stream)
{
	stream->users++;
	while (!stream->gone)
		pthread_cond_wait(&stream->change, &stream->lock);
	stream->users--;
	pthread_cond_broadcast(&stream->change);
	pthread_mutex_unlock(&stream->lock);
}

/* End one stream of the device. False: it has no stream. */
static bool stream_end_one(const struct acl_device *device)
{
	struct acl_stream *stream;
	bool ending;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	stream = stream_first_of(device);
	/* a thread that was ending the parent's stream does not exist in the child */
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
	/* if the device is closed in the meantime, it has no streams */
	return accmem_acl_streams_wait(device);
}

/* The CPU does the work, and does not fail at it: both modes behave the same. */
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
