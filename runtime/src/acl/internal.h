/* SPDX-License-Identifier: MIT */
/* What the files of the ACL front-end share; nothing here is installed. */
#ifndef ACCMEM_RUNTIME_ACL_H
#define ACCMEM_RUNTIME_ACL_H

#include <accmem_pool.h>
#include <acl/acl.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define ACL_PAGE 4096ull
#define ACL_HUGE_PAGE (2ull << 20)
#define ACL_MAX_DEVICES 64

/**
 * struct acl_device - an open device
 * @id: its number
 * @set: calls of aclrtSetDevice() that have not been undone
 * @contexts: contexts of it that programs have made
 * @ctx: its context
 * @pool: its memory
 * @nr_carveouts: how many it has
 * @has_host: it has memory of the host, too
 * @stream: the default stream, or NULL; under the streams' lock
 * @next: another one that is to be closed
 */
struct acl_device {
	int32_t id;
	unsigned int set;
	unsigned int contexts;
	struct accmem_context *ctx;
	struct accmem_pool *pool;
	uint32_t nr_carveouts;
	bool has_host;
	struct acl_stream *stream;
	struct acl_device *next;
};

/*
 * Between these two no device is closed: devices, and what pools have told of an address,
 * are good as long. Not around a wait for a stream. They nest; the first is called without
 * locks.
 */
void accmem_acl_call_begin(void);
void accmem_acl_call_end(void);

/* Between these two nobody else is between the former. */
void accmem_acl_calls_stop(void);
void accmem_acl_calls_resume(void);

/* In a child, which has none of its parent's calls. */
void accmem_acl_calls_disown(void);

/* The calling thread's device; NULL with the error's code in @error. In a call. */
struct acl_device *accmem_acl_device_current(aclError *error);

/* Device @id, opened if need be; in a call. */
struct acl_device *accmem_acl_device_open(int32_t id, aclError *error);

/* The device that the calling thread works on. */
void accmem_acl_device_select(int32_t id);

/*
 * A context of a device, which is open as long; under the devices' lock. The second returns
 * the device if it is to be closed then, without the lock.
 */
aclError accmem_acl_device_add_context(int32_t id);
struct acl_device *accmem_acl_device_remove_context(int32_t id);
void accmem_acl_device_close(struct acl_device *device);
bool accmem_acl_device_is_open(int32_t id);

/* The thread's device has been set: it has that device's own context. */
void accmem_acl_context_select(int32_t device);

/* The number of the device whose pool it is; -1 */
int32_t accmem_acl_device_of(const struct accmem_pool *pool);

/* A negative errno value of the library, as an error of ACL. */
aclError accmem_acl_error(int error);

/* The same of a call that has set no words: sets some, after @what. */
aclError accmem_acl_failed(const char *what, int error);

/* Sets the last error in words; @error. */
aclError accmem_acl_fail(aclError error, const char *text);

/**
 * struct acl_side - what one side of a copy is
 * @pointer: as the program named it
 * @block: the allocation that it is in; its pool is NULL if it is in none
 * @device: memory of the device
 * @read_only: not writable at @pointer
 * @held: accmem_acl_hold() has been called for it
 */
struct acl_side {
	unsigned char *pointer;
	struct accmem_pool_block block;
	bool device;
	bool read_only;
	bool held;
};

/* Finds out what @count bytes at @pointer are; what is wrong with them, or NULL. */
const char *accmem_acl_side_check(struct acl_side *side, const void *pointer,
				  size_t count);

/* The same, where that is an error. */
aclError accmem_acl_side_look_up(struct acl_side *side, const void *pointer,
				 size_t count);

/* Does so, and maps them. */
aclError accmem_acl_side_find(struct acl_side *side, const void *pointer,
			      size_t count);

/* Memory that a stream works on: a free of it waits for the last release. */
aclError accmem_acl_hold(struct acl_side *side);
void accmem_acl_release(struct acl_side *side);

/* Is the allocation at @pointer freed, but held? */
bool accmem_acl_is_freed(const void *pointer);

bool accmem_acl_is_read_only(const void *pointer);

/* 1: @count bytes at @pointer have memory; 0: reserved, not all; -1: not reserved. */
int accmem_acl_reserved_covers(const void *pointer, size_t count);

/* The number of the device whose memory is mapped there, -1 if none is. */
int32_t accmem_acl_reserved_device(const void *pointer);

/* Does @pointer point into memory that aclrtMallocHost() took from the process? */
bool accmem_acl_is_host(const void *pointer);

extern pthread_mutex_t accmem_acl_calls_lock, accmem_acl_devices_lock,
	accmem_acl_map_lock, accmem_acl_memory_lock, accmem_acl_streams_lock;

/**
 * struct acl_op - an operation of a stream, embedded in whatever it needs
 * @run: does it
 * @stop: ends a @run that waits for something else; or NULL
 * @drop: frees it, whether it was done or not
 * @next: what is done after it
 *
 * All are called without locks.
 */
struct acl_op {
	void (*run)(struct acl_op *op);
	void (*stop)(struct acl_op *op);
	void (*drop)(struct acl_op *op);
	struct acl_op *next;
};

/* The stream, which is the current device's where @stream is NULL; or NULL */
aclrtStream accmem_acl_stream_named(aclrtStream stream, aclError *error);

/* Runs @op in its turn, and drops it. */
aclError accmem_acl_stream_add(aclrtStream stream, struct acl_op *op);

/**
 * struct acl_timeout - how long something is waited for
 * @limited: until @until, on CLOCK_MONOTONIC; otherwise for ever
 * @until: when it is over
 */
struct acl_timeout {
	bool limited;
	struct timespec until;
};

/* From @ms on as the interface has it: -1 for ever, or at least 1. */
aclError accmem_acl_timeout_start(struct acl_timeout *timeout, int32_t ms);

/* A condition that such a wait is for. */
void accmem_acl_cond_init(pthread_cond_t *cond);

/* false: it is over. */
bool accmem_acl_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock,
			  const struct acl_timeout *timeout);

/* Ends the streams of a device, and waits for them, or with NULL for those of all. */
void accmem_acl_streams_end(struct acl_device *device);
void accmem_acl_streams_wait(struct acl_device *device);

/* Has a device a stream? */
bool accmem_acl_streams_exist(struct acl_device *device);

/* In a child, which has no stream that holds memory; with accmem_acl_memory_lock held. */
void accmem_acl_memory_disown(void);

/* Do streams hold memory of a device? Waits until they do not. */
bool accmem_acl_memory_is_held(struct acl_device *device);
void accmem_acl_memory_wait(struct acl_device *device);

/*
 * Nobody finds memory of a device by a handle, or at reserved addresses, from then on: is
 * some mapped there?
 */
bool accmem_acl_handles_hide(struct acl_device *device);

/* Forgets what belongs to a device that is closed. */
void accmem_acl_memory_forget(struct acl_device *device);
void accmem_acl_handles_forget(struct acl_device *device);
void accmem_acl_contexts_forget(int32_t device);

#endif /* ACCMEM_RUNTIME_ACL_H */
