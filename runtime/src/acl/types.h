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

/**
 * struct acl_side - what one side of a copy is
 * @pointer: as the program named it
 * @block: the allocation that it is in; its pool is NULL if it is in none
 * @device: memory of the device
 * @read_only: not writable at @pointer
 * @held: accmem_acl_record_hold() has been called for it
 */
struct acl_side {
	unsigned char *pointer;
	struct accmem_pool_block block;
	bool device;
	bool read_only;
	bool held;
};

/**
 * struct acl_record - something about an allocation
 * @pointer: its first byte
 * @size: bytes, of memory of the process's own; 0 for what is from a pool
 * @pool: whose it is, or NULL
 * @holds: how many there are
 * @freed: by the program, and held by streams
 */
struct acl_record {
	void *pointer;
	size_t size;
	struct accmem_pool *pool;
	unsigned int holds;
	bool freed;
};

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

#endif /* ACCMEM_RUNTIME_ACL_TYPES_H */
