// SPDX-License-Identifier: MIT
/*
 * Streams of the ACL front-end: a queue and a thread each.
 *
 * Lock order: accmem_acl_streams_lock > acl_stream.lock. Work is done under neither.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "acl.h"

/**
 * struct acl_stream - a stream
 * @device: whose it is
 * @process: that has its thread
 * @thread: does the work
 * @next: the next of all streams, under accmem_acl_streams_lock
 * @lock: protects what follows
 * @change: something was added, or done, or is to end
 * @head: the next to be done
 * @tail: where the next one is added
 * @added: how many
 * @done: how many
 * @ends: after what has been added
 * @users: calls that wait for it
 */
struct acl_stream {
	struct acl_device *device;
	pid_t process;
	pthread_t thread;
	struct acl_stream *next;
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct acl_op *head;
	struct acl_op **tail;
	uint64_t added;
	uint64_t done;
	bool ends;
	unsigned int users;
};

/* Protects the list and acl_device.stream. */
pthread_mutex_t accmem_acl_streams_lock = PTHREAD_MUTEX_INITIALIZER;
static struct acl_stream *streams;

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
	return op;
}

static void *stream_work(void *argument)
{
	struct acl_stream *stream = argument;
	struct acl_op *op;

	pthread_mutex_lock(&stream->lock);
	while ((op = stream_next(stream))) {
		pthread_mutex_unlock(&stream->lock);
		op->run(op);
		pthread_mutex_lock(&stream->lock);
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
	pthread_cond_init(&stream->change, NULL);
	if (stream_start(stream)) {
		pthread_cond_destroy(&stream->change);
		pthread_mutex_destroy(&stream->lock);
		free(stream);
		return NULL;
	}
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

/* It is in the list no more. */
static void stream_destroy(struct acl_stream *stream)
{
	/* its thread, and whatever its lock was, stayed in the parent */
	if (stream->process != getpid()) {
		free(stream);
		return;
	}
	pthread_mutex_lock(&stream->lock);
	stream->ends = true;
	pthread_cond_broadcast(&stream->change);
	while (stream->users)
		pthread_cond_wait(&stream->change, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	pthread_cond_destroy(&stream->change);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

static bool stream_exists(const struct acl_stream *stream)
{
	struct acl_stream *one;

	for (one = streams; one && one != stream; one = one->next)
		;
	return one && one->process == getpid();
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

/* The stream with its own lock held, or NULL. */
static struct acl_stream *stream_get(aclrtStream handle, aclError *error)
{
	struct acl_stream *stream = handle;
	struct acl_device *device = NULL;

	if (!stream) {
		device = accmem_acl_device_current(error);
		if (!device)
			return NULL;
	}
	pthread_mutex_lock(&accmem_acl_streams_lock);
	if (!stream) {
		stream = stream_default(device, error);
	} else if (!stream_exists(stream)) {
		*error = accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
					 "no such stream in this process");
		stream = NULL;
	}
	if (stream)
		pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
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

static void stream_wait_locked(struct acl_stream *stream)
{
	uint64_t position = stream->added;

	stream->users++;
	while (stream->done < position)
		pthread_cond_wait(&stream->change, &stream->lock);
	stream->users--;
	pthread_cond_broadcast(&stream->change);
}

aclError aclrtCreateStream(aclrtStream *stream)
{
	struct acl_device *device;
	aclError error;

	if (!stream)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "stream is NULL");
	device = accmem_acl_device_current(&error);
	if (!device)
		return error;
	pthread_mutex_lock(&accmem_acl_streams_lock);
	*stream = stream_create(device);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	return *stream ? ACL_SUCCESS :
			 accmem_acl_fail(ACL_ERROR_BAD_ALLOC,
					 "no thread, or memory");
}

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
				     uint32_t flag)
{
	(void)priority;
	(void)flag;
	return aclrtCreateStream(stream);
}

aclError aclrtDestroyStream(aclrtStream handle)
{
	struct acl_stream *stream = handle;
	bool exists;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	exists = stream && stream_exists(stream);
	if (exists)
		stream_unlink(stream);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	if (!exists)
		return accmem_acl_fail(ACL_ERROR_RT_INVALID_HANDLE,
				       "no such stream in this process");
	stream_destroy(stream);
	return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream handle)
{
	struct acl_stream *stream;
	aclError error;

	stream = stream_get(handle, &error);
	if (!stream)
		return error;
	stream_wait_locked(stream);
	pthread_mutex_unlock(&stream->lock);
	return ACL_SUCCESS;
}

/* The first after @index of the device, with its own lock held. */
static struct acl_stream *stream_of(struct acl_device *device,
				    unsigned int index)
{
	struct acl_stream *stream;

	pthread_mutex_lock(&accmem_acl_streams_lock);
	for (stream = streams; stream; stream = stream->next)
		if ((!device || stream->device == device) &&
		    stream->process == getpid() && !index--)
			break;
	if (stream)
		pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&accmem_acl_streams_lock);
	return stream;
}

void accmem_acl_streams_wait(struct acl_device *device)
{
	struct acl_stream *stream;
	unsigned int index = 0;

	while ((stream = stream_of(device, index++))) {
		stream_wait_locked(stream);
		pthread_mutex_unlock(&stream->lock);
	}
}

void accmem_acl_streams_end(struct acl_device *device)
{
	struct acl_stream *stream;

	do {
		pthread_mutex_lock(&accmem_acl_streams_lock);
		for (stream = streams; stream; stream = stream->next)
			if (stream->device == device)
				break;
		if (stream)
			stream_unlink(stream);
		pthread_mutex_unlock(&accmem_acl_streams_lock);
		if (stream)
			stream_destroy(stream);
	} while (stream);
}

aclError aclrtSynchronizeDevice(void)
{
	struct acl_device *device;
	aclError error;

	device = accmem_acl_device_current(&error);
	if (!device)
		return error;
	accmem_acl_streams_wait(device);
	return ACL_SUCCESS;
}
