// SPDX-License-Identifier: GPL-2.0
/*
 * BATCH: many ALLOCs, or many FREEs, in one call.
 *
 * Entries are read, dealt with, and answered in chunks, so that a batch needs
 * little memory, or none; those that ask for the same thing come in rows. A
 * buffer is published once its results have been written, as by ALLOC, which
 * an atomic batch does for all of its buffers at last.
 *
 * Locks: none is held here.
 */
#include <linux/kernel.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "alloc/alloc.h"
#include "alloc/batch.h"
#include "alloc/free.h"
#include "alloc/usage.h"
#include "internal.h"
#include "trace/trace.h"
#include "vm/buffer.h"

/* the first version of the entries */
#define BATCH_ALLOC_MIN offsetofend(struct accmem_batch_alloc, kind)
#define BATCH_FREE_MIN offsetofend(struct accmem_batch_free, reserved)

/**
 * struct allocs - a batch of ALLOCs in progress
 * @ctx: the context
 * @req: the call's structure
 * @short_in: the carveouts that entries asked which failed with ENOMEM: bit i for
 *	carveout i
 * @entries: those of a chunk
 * @bufs: what became of them, or what became of all entries of an atomic
 *	batch: buffers, or errors
 */
struct allocs {
	struct accmem_context *ctx;
	struct accmem_batch *req;
	u32 short_in;
	struct accmem_batch_alloc entries[ACCMEM_MANY];
	struct accmem_buffer *bufs[];
};

static bool batch_is_atomic(const struct accmem_batch *req)
{
	return req->flags & ACCMEM_BATCH_ATOMIC;
}

static void __user *batch_entry(const struct accmem_batch *req, u64 index)
{
	return u64_to_user_ptr(req->entries) + index * req->entry_size;
}

/* entries of the next chunk */
static unsigned int batch_chunk(const struct accmem_batch *req)
{
	return min(req->count - req->done, ACCMEM_MANY);
}

/* Entries as long as the kernel's, or longer with nothing in the excess. */
static int batch_check_tails(const struct accmem_batch *req, u32 known)
{
	u32 i;
	int ret;

	for (i = 0; i < req->count && req->entry_size > known; i++) {
		ret = check_zeroed_user(batch_entry(req, i) + known,
					req->entry_size - known);
		if (ret <= 0)
			return ret ?: -E2BIG;
		cond_resched();
	}
	return 0;
}

static int batch_check(const struct accmem_batch *req)
{
	u32 known = req->op == ACCMEM_BATCH_ALLOC ?
			    sizeof(struct accmem_batch_alloc) :
			    sizeof(struct accmem_batch_free);
	u32 least = req->op == ACCMEM_BATCH_ALLOC ? BATCH_ALLOC_MIN :
						    BATCH_FREE_MIN;

	if (req->op > ACCMEM_BATCH_FREE || req->count > ACCMEM_BATCH_MAX)
		return -EINVAL;
	if (req->entry_size < least || !IS_ALIGNED(req->entry_size, 8))
		return -EINVAL;
	if (req->entry_size > PAGE_SIZE)
		return -E2BIG;
	return batch_check_tails(req, known);
}

/*
 * What an entry asks for is read, and compared, by words: its kind, which is behind the
 * answer, and all that is before it.
 */
static_assert(offsetofend(struct accmem_batch_alloc, address) ==
	      5 * sizeof(u64));

/* Reads the next @nr entries; returns how many could be read. */
static unsigned int allocs_read(struct allocs *a, unsigned int nr)
{
	void __user *at = batch_entry(a->req, a->req->done);
	struct accmem_batch_alloc *to = a->entries;
	const u32 step = a->req->entry_size;
	unsigned int i = 0;

	if (!user_read_access_begin(at, nr * step))
		return 0;
	for (; i < nr; i++, to++, at += step) {
		const struct accmem_batch_alloc __user *from = at;
		const u64 __user *words = at;
		u64 *asked = (u64 *)to;

		unsafe_get_user(asked[0], words, out);
		unsafe_get_user(asked[1], words + 1, out);
		unsafe_get_user(asked[2], words + 2, out);
		unsafe_get_user(asked[3], words + 3, out);
		unsafe_get_user(asked[4], words + 4, out);
		unsafe_get_user(to->kind, &from->kind, out);
	}
out:
	user_read_access_end();
	return i;
}

static bool allocs_are_equal(const struct accmem_batch_alloc *x,
			     const struct accmem_batch_alloc *y)
{
	const u64 *a = (const u64 *)x, *b = (const u64 *)y;

	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3] &&
	       x->kind == y->kind &&
	       (a[4] == b[4] || !(x->flags & ACCMEM_ALLOC_FIXED));
}

/* one by one; false when the caller is being killed, or all or none may be */
static bool allocs_make_each(struct allocs *a, const struct accmem_alloc *req,
			     struct accmem_buffer **bufs, unsigned int nr,
			     unsigned int *made)
{
	struct accmem_buffer *buf;
	int err;

	while (nr--) {
		buf = accmem_alloc(a->ctx, req, NULL);
		err = PTR_ERR_OR_ZERO(buf);
		bufs[(*made)++] = buf;
		if (!err)
			continue;
		trace_accmem_fail(a->ctx, req, err);
		if (err == -ENOMEM)
			a->short_in |= accmem_alloc_carveouts(a->ctx, req);
		if (err == -EINTR || batch_is_atomic(a->req))
			return false;
	}
	return true;
}

/*
 * Makes the buffers of @nr entries that have been read. Returns for how many
 * there is a buffer, or an error; with the last of them the batch may end.
 */
static unsigned int allocs_make(struct allocs *a, struct accmem_buffer **bufs,
				unsigned int nr)
{
	const struct accmem_batch_alloc *e = a->entries;
	unsigned int made = 0, end, row;

	while (made < nr) {
		const struct accmem_alloc req = {
			.flags = e[made].flags,
			.length = e[made].length,
			.alignment = e[made].alignment,
			.page_policy = e[made].page_policy,
			.cache_mode = e[made].cache_mode,
			.carveout = e[made].carveout,
			.address = e[made].address,
			.kind = e[made].kind,
		};

		for (end = made + 1; end < nr; end++) {
			if (!allocs_are_equal(&e[made], &e[end]))
				break;
		}
		row = accmem_alloc_row(a->ctx, &req, bufs + made, end - made);
		made += row;
		if (!row && !allocs_make_each(a, &req, bufs, end - made, &made))
			break;
	}
	return made;
}

/* Writes the results of @nr entries; returns how many could be written. */
static unsigned int allocs_write(struct allocs *a, struct accmem_buffer **bufs,
				 unsigned int nr)
{
	void __user *at = batch_entry(a->req, a->req->done);
	const struct accmem_device *dev = a->ctx->dev;
	const u32 step = a->req->entry_size;
	unsigned int i = 0;

	if (!user_write_access_begin(at, nr * step))
		return 0;
	for (; i < nr; i++, at += step) {
		struct accmem_batch_alloc __user *to = at;
		const struct accmem_buffer *buf = bufs[i];

		if (IS_ERR(buf)) {
			unsafe_put_user((s32)PTR_ERR(buf), &to->result, out);
			continue;
		}
		unsafe_put_user(buf->address, &to->address, out);
		unsafe_put_user(buf->layout.usable, &to->usable, out);
		unsafe_put_user(buf->layout.footprint, &to->footprint, out);
		unsafe_put_user(accmem_mmap_offset(dev, buf->address),
				&to->mmap_offset, out);
		unsafe_put_user(buf->layout.page_size, &to->page_size, out);
		unsafe_put_user(accmem_buffer_memory(buf)->nr_runs,
				&to->nr_runs, out);
		unsafe_put_user(0, &to->result, out);
	}
out:
	user_write_access_end();
	return i;
}

/* what is no buffer has gone from @bufs; returns how many there are */
static unsigned int allocs_compact(struct accmem_buffer **bufs, unsigned int nr)
{
	unsigned int i, found = 0;

	for (i = 0; i < nr; i++) {
		if (!IS_ERR(bufs[i]))
			bufs[found++] = bufs[i];
	}
	return found;
}

static void allocs_publish(struct allocs *a, struct accmem_buffer **bufs,
			   unsigned int nr)
{
	accmem_alloc_publish(a->ctx, bufs, allocs_compact(bufs, nr));
}

static void allocs_discard(struct allocs *a, struct accmem_buffer **bufs,
			   unsigned int nr)
{
	accmem_alloc_discard(a->ctx, bufs, allocs_compact(bufs, nr));
}

/* the error with which a batch ends at the last of @nr entries, or 0 */
static int allocs_error(const struct allocs *a, struct accmem_buffer **bufs,
			unsigned int nr)
{
	int err = nr ? PTR_ERR_OR_ZERO(bufs[nr - 1]) : 0;

	return err == -EINTR || batch_is_atomic(a->req) ? err : 0;
}

/* a chunk of entries, each of which is a success or a failure for itself */
static int allocs_run_chunk(struct allocs *a)
{
	unsigned int nr = batch_chunk(a->req), read, made, written;
	int err;

	read = allocs_read(a, nr);
	made = allocs_make(a, a->bufs, read);
	err = allocs_error(a, a->bufs, made);
	/* what was interrupted has not been dealt with */
	if (err)
		made--;
	written = allocs_write(a, a->bufs, made);
	allocs_discard(a, a->bufs + written, made - written);
	allocs_publish(a, a->bufs, written);
	a->req->done += written;
	if (written < made || (!err && read < nr))
		return -EFAULT;
	return err;
}

static int allocs_run_each(struct allocs *a)
{
	int err = 0;

	while (!err && a->req->done < a->req->count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = allocs_run_chunk(a);
		cond_resched();
	}
	return err;
}

/* a chunk of entries, nothing of which is published */
static int allocs_hold_chunk(struct allocs *a)
{
	struct accmem_buffer **bufs = a->bufs + a->req->done;
	unsigned int nr = batch_chunk(a->req), read, made, written;
	int err;

	read = allocs_read(a, nr);
	made = allocs_make(a, bufs, read);
	err = allocs_error(a, bufs, made);
	if (err)
		made--;
	written = err ? made : allocs_write(a, bufs, made);
	allocs_discard(a, bufs + written, made - written);
	a->req->done += written;
	if (!err && written < nr)
		err = -EFAULT;
	return err;
}

static int allocs_run_all(struct allocs *a)
{
	int err = 0;

	while (!err && a->req->done < a->req->count) {
		err = fatal_signal_pending(current) ? -EINTR :
						      allocs_hold_chunk(a);
		cond_resched();
	}
	if (err)
		allocs_discard(a, a->bufs, a->req->done);
	else
		allocs_publish(a, a->bufs, a->req->done);
	return err;
}

static int batch_alloc(struct accmem_context *ctx, struct accmem_batch *req)
{
	unsigned int nr = batch_is_atomic(req) ? req->count : batch_chunk(req);
	struct allocs *a;
	int err;

	a = kvmalloc(struct_size(a, bufs, nr), GFP_KERNEL_ACCOUNT);
	if (!a)
		return -ENOMEM;
	a->ctx = ctx;
	a->req = req;
	a->short_in = 0;
	err = batch_is_atomic(req) ? allocs_run_all(a) : allocs_run_each(a);
	if (a->short_in)
		accmem_usage_space(ctx, a->short_in, &req->free_bytes,
				   &req->largest_run);
	kvfree(a);
	return err;
}

/*
 * Reads @nr entries from number @first on; returns how many could be read. The
 * result of one that is malformed is there already.
 */
static unsigned int frees_read(const struct accmem_batch *req, u32 first,
			       unsigned int nr, u64 *addresses, int *results)
{
	void __user *at = batch_entry(req, first);
	unsigned int i = 0;
	u32 reserved;

	if (!user_read_access_begin(at, nr * req->entry_size))
		return 0;
	for (; i < nr; i++, at += req->entry_size) {
		const struct accmem_batch_free __user *from = at;

		unsafe_get_user(addresses[i], &from->address, out);
		unsafe_get_user(reserved, &from->reserved, out);
		results[i] = reserved ? -EINVAL : 0;
	}
out:
	user_read_access_end();
	return i;
}

/* Writes the results of @nr entries; returns how many could be written. */
static unsigned int frees_write(const struct accmem_batch *req, u32 first,
				unsigned int nr, const int *results)
{
	void __user *at = batch_entry(req, first);
	unsigned int i = 0;

	if (!user_write_access_begin(at, nr * req->entry_size))
		return 0;
	for (; i < nr; i++, at += req->entry_size) {
		struct accmem_batch_free __user *to = at;

		unsafe_put_user(results[i], &to->result, out);
	}
out:
	user_write_access_end();
	return i;
}

/* a chunk of entries, each of which is a success or a failure for itself */
static int frees_run_chunk(struct accmem_context *ctx, struct accmem_batch *req)
{
	unsigned int nr = batch_chunk(req), first = req->done, read, written;
	u64 addresses[ACCMEM_MANY];
	int results[ACCMEM_MANY];

	read = frees_read(req, first, nr, addresses, results);
	accmem_free_each(ctx, addresses, results, read);
	req->done += read;
	written = frees_write(req, first, read, results);
	return written < nr ? -EFAULT : 0;
}

static int frees_run_each(struct accmem_context *ctx, struct accmem_batch *req)
{
	int err = 0;

	while (!err && req->done < req->count) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = frees_run_chunk(ctx, req);
		cond_resched();
	}
	return err;
}

/**
 * struct frees - a batch of FREEs of which all are done or none
 * @bufs: the buffers, when they have been found
 * @addresses: their device addresses
 * @results: of a chunk
 */
struct frees {
	struct accmem_buffer *bufs[ACCMEM_BATCH_MAX];
	u64 addresses[ACCMEM_BATCH_MAX];
	int results[ACCMEM_MANY];
};

/* all addresses; on failure @req->done says up to where */
static int frees_read_all(struct frees *f, struct accmem_batch *req)
{
	unsigned int nr, read, i;

	while (req->done < req->count) {
		nr = batch_chunk(req);
		read = frees_read(req, req->done, nr, f->addresses + req->done,
				  f->results);
		for (i = 0; i < read; i++, req->done++) {
			if (f->results[i])
				return f->results[i];
		}
		if (read < nr)
			return -EFAULT;
	}
	return 0;
}

/* The results, which are all 0, are written first: they may not be writable. */
static int frees_answer_all(struct frees *f, struct accmem_batch *req)
{
	unsigned int at, nr, written;

	memset(f->results, 0, sizeof(f->results));
	for (at = 0; at < req->count; at += nr) {
		nr = min(req->count - at, ACCMEM_MANY);
		written = frees_write(req, at, nr, f->results);
		if (written < nr) {
			req->done = at + written;
			return -EFAULT;
		}
	}
	return 0;
}

static int frees_run_all(struct accmem_context *ctx, struct accmem_batch *req)
{
	struct frees *f = kvmalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	int err;

	if (!f)
		return -ENOMEM;
	err = frees_read_all(f, req);
	if (!err)
		err = frees_answer_all(f, req);
	if (!err)
		err = accmem_free_all(ctx, f->addresses, f->bufs, req->count,
				      &req->done);
	kvfree(f);
	return err;
}

/**
 * accmem_batch() - allocate, or free, many buffers
 * @ctx: the context
 * @req: the request; its flags and its reserved member were checked, and its
 *	results are 0. They are in it then, on failure too.
 *
 * Return: 0 or an error of ACCMEM_IOC_BATCH.
 */
int accmem_batch(struct accmem_context *ctx, struct accmem_batch *req)
{
	int err;

	err = batch_check(req);
	if (err)
		return err;
	if (req->op == ACCMEM_BATCH_ALLOC)
		return batch_alloc(ctx, req);
	return batch_is_atomic(req) ? frees_run_all(ctx, req) :
				      frees_run_each(ctx, req);
}
