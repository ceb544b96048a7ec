/* SPDX-License-Identifier: MIT */
/* The structures of the ACL front-end that several files use. */
#ifndef ACCMEM_RUNTIME_ACL_TYPES_H
#define ACCMEM_RUNTIME_ACL_TYPES_H

#include <accmem_pool.h>
#include <acl/acl.h>
#include <stdbool.h>

#define ACL_PAGE 4096ull
#define ACL_HUGE_PAGE (2ull << 20)
#define ACL_MAX_DEVICES 64

/**
 * struct acl_device - an open device
 * @id: number of the device
 * @set: number of aclrtSetDevice() calls that were not undone
 * @contexts: number of contexts that programs have created
 * @ctx: context of the library
 * @pool: pool of the device's memory
 * @nr_carveouts: number of carveouts
 * @has_host: the device has host memory
 * @stream: default stream, or NULL; under accmem_acl_streams_lock
 * @next: next device that is to be closed
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

/**
 * struct acl_side - source or destination of a copy
 * @pointer: the program's pointer
 * @block: allocation that contains @pointer; without a pool if no pool has it
 * @device: the memory is device memory
 * @known: all of it is host memory of the process that the front-end knows
 * @registered: all of it is host memory that both sides use
 * @read_only: the CPU may not write at @pointer
 * @held: accmem_acl_record_hold() was called
 */
struct acl_side {
	unsigned char *pointer;
	struct accmem_pool_block block;
	bool device;
	bool known;
	bool registered;
	bool read_only;
	bool held;
};

/**
 * struct acl_record - record about an allocation
 * @pointer: first byte
 * @size: bytes of host memory
 * @pool: pool of the allocation, or NULL for memory of the process
 * @holds: number of holds
 * @freed: the program has freed the allocation, and a stream holds it
 * @registered: memory that the program has registered, not an allocation
 */
struct acl_record {
	void *pointer;
	size_t size;
	struct accmem_pool *pool;
	unsigned int holds;
	bool freed;
	bool registered;
};

/**
 * struct acl_op - operation of a stream, the first member of a larger structure
 * @run: does the work
 * @stop: ends a @run that waits; NULL if @run does not wait
 * @drop: frees the operation, whether it has run or not
 * @next: next operation of the stream
 *
 * All functions are called without locks.
 */
struct acl_op {
	void (*run)(struct acl_op *op);
	void (*stop)(struct acl_op *op);
	void (*drop)(struct acl_op *op);
	struct acl_op *next;
};

#endif /* ACCMEM_RUNTIME_ACL_TYPES_H */
