// SPDX-License-Identifier: MIT
/*
 * Memset and memcpy of the ACL front-end, of one row of bytes or several rows.
 *
 * A call finds its memory when it is made. If a stream does the work, the memory is held
 * (record.c) until the work is done. Read-only memory is written through a second mapping
 * that is writable, its view. The call opens the view, since a stream could not report a
 * failure. A transfer of 0 bytes succeeds with any other arguments.
 *
 * Host memory that is neither allocated here nor registered may go as soon as a call
 * returns. A call that copies such memory in a stream waits for the stream.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "acl/call.h"
#include "acl/error.h"
#include "acl/query.h"
#include "acl/record.h"
#include "acl/stream.h"

/**
 * struct transfer - a memset or a memcpy
 * @op: operation of a stream
 * @dst: destination
 * @view: writable mapping of the destination's whole allocation, if @dst is read-only
 * @view_size: bytes of @view
 * @src: source of a memcpy
 * @buffer: copy of the source that a stream works from, or NULL
 * @is_copy: the transfer is a memcpy
 * @is_buffered: a stream works from a copy of the source
 * @is_words: the transfer is a memset of words of 32 bits
 * @value: byte, or word, of a memset
 * @count: bytes of a row
 * @rows: number of rows
 * @dst_pitch: distance of two rows of the destination
 * @src_pitch: distance of two rows of the source
 */
struct transfer {
	struct acl_op op;
	struct acl_side dst;
	unsigned char *view;
	size_t view_size;
	struct acl_side src;
	void *buffer;
	bool is_copy;
	bool is_buffered;
	bool is_words;
	uint32_t value;
	size_t count;
	size_t rows;
	size_t dst_pitch;
	size_t src_pitch;
};

/* Map an allocation for the CPU: to read and write, or to read if it is read-only. */
static aclError map_side(struct acl_side *side)
{
	struct accmem_pool *pool = side->block.pool;
	void *pointer;
	int ret;

	side->read_only = accmem_acl_record_is_read_only(side->block.pointer);
	if (!side->read_only)
		return accmem_acl_error(accmem_pool_map(pool, side->pointer));
	ret = accmem_map(accmem_pool_context(pool), side->block.address,
			 PROT_READ, &pointer);
	return accmem_acl_failed("read-only memory", ret);
}

static aclError side_find(struct acl_side *side, const void *pointer,
			  size_t count)
{
	aclError error = accmem_acl_side_lookup(side, pointer, count);

	return error || !side->block.pool ? error : map_side(side);
}

static aclError view_open(struct transfer *t)
{
	const struct accmem_pool_block *block = &t->dst.block;
	struct accmem_context *ctx;
	struct accmem_query query;
	void *view = MAP_FAILED;

	if (!t->dst.read_only)
		return ACL_SUCCESS;
	ctx = accmem_pool_context(block->pool);
	if (!accmem_get_query(ctx, block->address, &query))
		view = mmap(NULL, query.footprint, PROT_READ | PROT_WRITE,
			    MAP_SHARED, accmem_fd(ctx), query.mmap_offset);
	if (view == MAP_FAILED)
		return accmem_acl_fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
				       "no view of the memory");
	t->view = view;
	t->view_size = query.footprint;
	return ACL_SUCCESS;
}

static void view_close(struct transfer *t)
{
	if (t->view)
		munmap(t->view, t->view_size);
}

static void transfer_bytes(const struct transfer *t)
{
	unsigned char *to = t->dst.pointer;
	size_t row, i;

	if (t->view)
		to = t->view + (to - (unsigned char *)t->dst.block.pointer);
	if (t->is_words) {
		for (i = 0; i < t->count / sizeof(t->value); i++)
			((uint32_t *)to)[i] = t->value;
		return;
	}
	if (!t->is_copy) {
		memset(to, t->value, t->count);
		return;
	}
	for (row = 0; row < t->rows; row++)
		memmove(to + row * t->dst_pitch,
			t->src.pointer + row * t->src_pitch, t->count);
}

static void transfer_run(struct acl_op *op)
{
	transfer_bytes((struct transfer *)op);
}

static void transfer_drop(struct acl_op *op)
{
	struct transfer *t = (struct transfer *)op;

	view_close(t);
	accmem_acl_record_release(&t->dst);
	accmem_acl_record_release(&t->src);
	free(t->buffer);
	free(t);
}

/* The program may change the source as soon as the call returns. */
static aclError transfer_buffer(struct transfer *t)
{
	t->buffer = malloc(t->count);
	if (!t->buffer)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	memcpy(t->buffer, t->src.pointer, t->count);
	t->src = (struct acl_side){ .pointer = t->buffer };
	return ACL_SUCCESS;
}

static aclError transfer_queue(const struct transfer *t, aclrtStream stream)
{
	struct transfer *copy = malloc(sizeof(*copy));
	aclError error;

	if (!copy)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	*copy = *t;
	copy->op.run = transfer_run;
	copy->op.stop = NULL;
	copy->op.drop = transfer_drop;
	error = t->is_buffered ? transfer_buffer(copy) : ACL_SUCCESS;
	if (!error)
		error = accmem_acl_record_hold(&copy->dst);
	if (!error)
		error = accmem_acl_record_hold(&copy->src);
	if (!error)
		error = view_open(copy);
	if (!error)
		error = accmem_acl_stream_add(stream, &copy->op);
	if (error)
		transfer_drop(&copy->op);
	return error;
}

/* End a call: do the transfer, or queue it, unless @error is set. */
static aclError transfer_now(struct transfer *t, aclError error)
{
	if (!error && t->count)
		error = view_open(t);
	if (!error && t->count) {
		transfer_bytes(t);
		view_close(t);
	}
	accmem_acl_call_end();
	return error;
}

static aclError transfer_later(const struct transfer *t, aclError error,
			       aclrtStream stream)
{
	bool waits = false;

	if (!error && t->count) {
		waits = t->is_copy && (!accmem_acl_side_is_known(&t->dst) ||
				       (!t->is_buffered &&
					!accmem_acl_side_is_known(&t->src)));
		stream = accmem_acl_stream_resolve(stream, &error);
		if (waits && stream)
			error = accmem_acl_stream_check_wait(stream);
		if (!error)
			error = transfer_queue(t, stream);
	}
	accmem_acl_call_end();
	return error || !waits ? error : aclrtSynchronizeStream(stream);
}

static aclError check_count(const void *dst, size_t max, size_t count)
{
	if (!dst)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "NULL");
	if (count <= max)
		return ACL_SUCCESS;
	return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
			       "count is above what there is");
}

static aclError memset_start(struct transfer *t, void *devPtr, size_t maxCount,
			     int32_t value, size_t count)
{
	aclError error = ACL_SUCCESS;

	*t = (struct transfer){ .value = value, .count = count };
	if (count)
		error = check_count(devPtr, maxCount, count);
	return error || !count ? error : side_find(&t->dst, devPtr, count);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_now(&t,
			    memset_start(&t, devPtr, maxCount, value, count));
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
			  size_t count, aclrtStream stream)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_later(&t,
			      memset_start(&t, devPtr, maxCount, value, count),
			      stream);
}

static bool side_is(const struct acl_side *side, bool device)
{
	return side->device == device || side->registered;
}

static aclError memset_words_start(struct transfer *t, void *ptr,
				   size_t memSize, uint32_t value, size_t n)
{
	aclError error;

	*t = (struct transfer){ .is_words = true, .value = value };
	if (!n)
		return ACL_SUCCESS;
	if (!ptr || (uintptr_t)ptr % sizeof(value) ||
	    n > memSize / sizeof(value))
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, no alignment, or too large");
	t->count = n * sizeof(value);
	error = side_find(&t->dst, ptr, t->count);
	if (!error && !accmem_acl_side_is_known(&t->dst))
		error = accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					"no allocation is there");
	return error;
}

aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_now(&t, memset_words_start(&t, ptr, memSize, value, N));
}

aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value,
			     size_t N, aclrtStream stream)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_later(&t,
			      memset_words_start(&t, ptr, memSize, value, N),
			      stream);
}

/* Does the direction @kind agree with the memory of both sides? */
static bool kind_fits(const struct transfer *t, aclrtMemcpyKind kind)
{
	bool from_device = kind == ACL_MEMCPY_DEVICE_TO_HOST ||
			   kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
	bool to_device = kind != ACL_MEMCPY_DEVICE_TO_HOST &&
			 kind != ACL_MEMCPY_HOST_TO_HOST;

	return kind == ACL_MEMCPY_DEFAULT ||
	       (side_is(&t->src, from_device) && side_is(&t->dst, to_device));
}

/* @dst_size, @src_size: bytes from the first to the last byte of a side, gaps included. */
static aclError memcpy_find(struct transfer *t, void *dst, size_t dst_size,
			    const void *src, size_t src_size,
			    aclrtMemcpyKind kind)
{
	aclError error;

	error = side_find(&t->dst, dst, dst_size);
	if (!error)
		error = side_find(&t->src, src, src_size);
	if (!error && !kind_fits(t, kind))
		error = accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
					"the memory is not of this direction");
	return error;
}

static aclError memcpy_start(struct transfer *t, void *dst, size_t destMax,
			     const void *src, size_t count,
			     aclrtMemcpyKind kind)
{
	aclError error;

	*t = (struct transfer){
		.is_copy = true,
		.is_buffered = kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE,
		.count = count,
		.rows = 1,
	};
	if (!count)
		return ACL_SUCCESS;
	if (!src || (int)kind < ACL_MEMCPY_HOST_TO_HOST ||
	    kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "src is NULL, or no such kind");
	error = check_count(dst, destMax, count);
	return error ? error : memcpy_find(t, dst, count, src, count, kind);
}

/* Bytes from the first to the last byte of a matrix. False: they overflow. */
static bool matrix_size(size_t pitch, size_t width, size_t height, size_t *size)
{
	return !__builtin_mul_overflow(height - 1, pitch, size) &&
	       !__builtin_add_overflow(*size, width, size);
}

static aclError memcpy2d_start(struct transfer *t, void *dst, size_t dpitch,
			       const void *src, size_t spitch, size_t width,
			       size_t height, aclrtMemcpyKind kind)
{
	size_t dst_size, src_size;

	*t = (struct transfer){
		.is_copy = true,
		.count = height ? width : 0,
		.rows = height,
		.dst_pitch = dpitch,
		.src_pitch = spitch,
	};
	if (!t->count)
		return ACL_SUCCESS;
	if (!dst || !src || width > dpitch || width > spitch ||
	    !matrix_size(dpitch, width, height, &dst_size) ||
	    !matrix_size(spitch, width, height, &src_size))
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "NULL, or no such matrix");
	if ((int)kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > ACL_MEMCPY_DEFAULT)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "no such kind of a matrix");
	return memcpy_find(t, dst, dst_size, src, src_size, kind);
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_now(&t,
			    memcpy_start(&t, dst, destMax, src, count, kind));
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
			  size_t count, aclrtMemcpyKind kind,
			  aclrtStream stream)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_later(&t,
			      memcpy_start(&t, dst, destMax, src, count, kind),
			      stream);
}

aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
		       size_t width, size_t height, aclrtMemcpyKind kind)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_now(&t, memcpy2d_start(&t, dst, dpitch, src, spitch,
					       width, height, kind));
}

aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
			    size_t spitch, size_t width, size_t height,
			    aclrtMemcpyKind kind, aclrtStream stream)
{
	struct transfer t;

	accmem_acl_call_begin();
	return transfer_later(&t,
			      memcpy2d_start(&t, dst, dpitch, src, spitch,
					     width, height, kind),
			      stream);
}
