// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory: where its pieces are, and how they move.
 *
 * A shared buffer has device memory and, of the same size, memory of the host. Each
 * piece of 2 MiB (the last may be shorter) is valid on one side or on both; at first
 * it is on both, and zero. Mappings show the host's side, the device reaches its own:
 * who touches a piece that is not valid on its side has it copied, and who writes to it
 * makes the other side's copy invalid. So a piece that nobody has written to since it
 * was copied moves without a copy.
 *
 * A page of the host can be written to through a mapping only while the device's copy
 * is invalid: else it is mapped read-only, and a write faults (shared_fault.c). A fault
 * takes the lock of its page while the piece stays where it is. Who has a piece leave
 * the host waits for these locks, and takes its mappings down; when nobody else has its
 * pages either, it is copied. Pinned pages stay: a device of somebody else may write to
 * them without a fault.
 *
 * Locks: mmap_lock > accmem_shared.lock > locks of pages and of the address_space, and
 * those of the backing.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"
#include "memory/bo.h"
#include "memory/shared.h"
#include "trace/trace.h"

/* how long faults in progress have to let go of a page: they may be preempted */
#define SHARED_LOOK_MS 100u

static unsigned int shared_piece_of(u64 offset)
{
	return offset / ACCMEM_FOLIO;
}

static u64 shared_piece_end(const struct accmem_bo *bo, unsigned int piece)
{
	return min((piece + 1) * ACCMEM_FOLIO, bo->size);
}

static u32 shared_state(const struct accmem_bo *bo, unsigned int piece)
{
	lockdep_assert_held(&bo->shared->lock);
	return bo->shared->state[piece];
}

static void shared_set_state(struct accmem_bo *bo, unsigned int piece,
			     u32 state)
{
	lockdep_assert_held(&bo->shared->lock);
	bo->shared->state[piece] = state;
}

/* the host's bytes at @offset of its side, and how many lie there together */
static void *shared_kmap(struct accmem_bo *bo, u64 offset, u64 end, bool make,
			 u64 *size)
{
	struct accmem_bo *host = bo->shared->host;
	void *address = host->cv->ops->kmap(host, offset, make, size);

	*size = min(*size, end - offset);
	return address;
}

/* where the host has no page, it has nothing but zeroes */
static int shared_copy_to_device(struct accmem_bo *bo, unsigned int piece)
{
	const struct accmem_backing_ops *ops = bo->cv->ops;
	u64 end = shared_piece_end(bo, piece), offset, size;
	void *address;
	int err = 0;

	for (offset = piece * ACCMEM_FOLIO; offset < end && !err;
	     offset += size) {
		address = shared_kmap(bo, offset, end, false, &size);
		if (address)
			err = ops->access(bo, offset, address, size, true);
		else
			err = ops->clear_range(bo, offset, size);
		cond_resched();
	}
	return err;
}

static int shared_copy_to_host(struct accmem_bo *bo, unsigned int piece)
{
	const struct accmem_backing_ops *ops = bo->cv->ops;
	u64 end = shared_piece_end(bo, piece), offset, size;
	void *address;
	int err = 0;

	for (offset = piece * ACCMEM_FOLIO; offset < end && !err;
	     offset += size) {
		address = shared_kmap(bo, offset, end, true, &size);
		if (!address)
			return -ENOMEM;
		err = ops->access(bo, offset, address, size, false);
		cond_resched();
	}
	return err;
}

/* pages that faults have taken have been shown then */
static void shared_sync_faults(struct accmem_bo *bo, unsigned int piece)
{
	u64 end = shared_piece_end(bo, piece), offset, size;
	struct page *page;
	void *address;

	for (offset = piece * ACCMEM_FOLIO; offset < end; offset += size) {
		address = shared_kmap(bo, offset, end, false, &size);
		if (!address)
			continue;
		page = virt_to_page(address);
		lock_page(page);
		unlock_page(page);
	}
}

static bool shared_is_idle(struct accmem_bo *bo, unsigned int piece)
{
	u64 end = shared_piece_end(bo, piece), offset, size;
	void *address;

	for (offset = piece * ACCMEM_FOLIO; offset < end; offset += size) {
		address = shared_kmap(bo, offset, end, false, &size);
		if (!address)
			continue;
		if (folio_ref_count(page_folio(virt_to_page(address))) != 1)
			return false;
	}
	return true;
}

/* no CPU has the piece any more; -EBUSY where its pages are pinned, for that long */
static int shared_take_from_host(struct accmem_bo *bo, unsigned int piece,
				 unsigned int patience_ms)
{
	struct file *file = READ_ONCE(bo->account->file);
	u64 start = piece * ACCMEM_FOLIO, end = shared_piece_end(bo, piece);
	unsigned long until;

	shared_sync_faults(bo, piece);
	if (file)
		unmap_mapping_range(file->f_mapping, bo->offset + start,
				    end - start, 1);
	until = jiffies + msecs_to_jiffies(patience_ms);
	while (!shared_is_idle(bo, piece)) {
		if (!patience_ms || time_after(jiffies, until))
			return -EBUSY;
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_uninterruptible(1);
	}
	return 0;
}

static void shared_count(struct accmem_bo *bo, unsigned int piece,
			 bool to_device, bool copied)
{
	struct accmem_carveout *cv = bo->cv;
	u64 start = piece * ACCMEM_FOLIO;
	u64 size = shared_piece_end(bo, piece) - start;

	atomic64_inc(&cv->shared.moves);
	if (!copied)
		atomic64_inc(&cv->shared.clean);
	else if (to_device)
		atomic64_add(size, &cv->shared.to_device);
	else
		atomic64_add(size, &cv->shared.to_host);
	trace_accmem_move(bo, start, size, to_device, copied);
}

/*
 * A piece is valid on the device, and on the host no more than it was. A write makes
 * it invalid there, in any case.
 */
static int shared_to_device(struct accmem_bo *bo, unsigned int piece,
			    bool write)
{
	u32 old = shared_state(bo, piece), state = old | ACCMEM_SHARED_DEVICE;
	bool copies = !(old & ACCMEM_SHARED_DEVICE);
	int err;

	if (write)
		state &= ~ACCMEM_SHARED_HOST;
	if (state == old)
		return 0;
	/* a clean copy can be read by who has pinned it: it is not looked at again */
	err = shared_take_from_host(bo, piece, copies ? SHARED_LOOK_MS : 0);
	if (err == -EBUSY && !copies)
		err = 0;
	if (!err && copies)
		err = shared_copy_to_device(bo, piece);
	if (err)
		return err;
	shared_set_state(bo, piece, state);
	shared_count(bo, piece, true, copies);
	return 0;
}

/* A piece is valid on the host; and, if it is to be written to, there alone. */
static int shared_to_host(struct accmem_bo *bo, unsigned int piece, bool write)
{
	u32 state = shared_state(bo, piece);
	bool copies = !(state & ACCMEM_SHARED_HOST);
	int err = copies ? shared_copy_to_host(bo, piece) : 0;

	if (err)
		return err;
	state |= ACCMEM_SHARED_HOST;
	if (write)
		state &= ~ACCMEM_SHARED_DEVICE;
	shared_set_state(bo, piece, state);
	if (copies)
		shared_count(bo, piece, false, true);
	return 0;
}

/**
 * accmem_shared_hold() - bring a piece to the host, and have it stay for a moment
 * @bo: shared memory
 * @offset: where in it
 * @write: it is to be written to; else the device may go on having it, too
 *
 * Until accmem_shared_drop() the piece stays where it is; and then until the lock of a
 * page of it that was taken meanwhile is dropped. Sleeps; whoever has a reference to a
 * page of the piece calls accmem_shared_try_hold(), for one is waited for by who has the
 * piece leave.
 *
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_shared_hold(struct accmem_bo *bo, u64 offset, bool write)
{
	int err;

	if (mutex_lock_killable(&bo->shared->lock))
		return -EINTR;
	err = shared_to_host(bo, shared_piece_of(offset), write);
	if (err)
		mutex_unlock(&bo->shared->lock);
	return err;
}

/**
 * accmem_shared_try_hold() - accmem_shared_hold() that waits for nobody
 * @bo: shared memory
 * @offset: where in it
 * @write: it is to be written to
 *
 * Return: whether the piece is held.
 */
bool accmem_shared_try_hold(struct accmem_bo *bo, u64 offset, bool write)
{
	if (!mutex_trylock(&bo->shared->lock))
		return false;
	if (!shared_to_host(bo, shared_piece_of(offset), write))
		return true;
	mutex_unlock(&bo->shared->lock);
	return false;
}

void accmem_shared_drop(struct accmem_bo *bo)
{
	mutex_unlock(&bo->shared->lock);
}

/* the device goes to the host for what is to stay there */
static int shared_access_piece(struct accmem_bo *bo, u64 offset, void *data,
			       u64 size, bool write)
{
	unsigned int piece = shared_piece_of(offset);
	struct accmem_bo *side = bo;
	int err;

	if (shared_state(bo, piece) & ACCMEM_SHARED_STAY) {
		side = bo->shared->host;
		err = shared_to_host(bo, piece, write);
	} else {
		err = shared_to_device(bo, piece, write);
	}
	return err ?: side->cv->ops->access(side, offset, data, size, write);
}

/**
 * accmem_shared_access() - read or write shared memory, as the device does
 * @bo: shared memory
 * @offset: where in it
 * @data: of the kernel
 * @size: bytes, inside the memory, of one piece
 * @write: from @data to the memory, or the other way. Sleeps.
 *
 * Return: 0; -EBUSY where pages of the host are pinned, -ENOMEM, -EINTR.
 */
int accmem_shared_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
			 bool write)
{
	int err;

	if (mutex_lock_killable(&bo->shared->lock))
		return -EINTR;
	err = shared_access_piece(bo, offset, data, size, write);
	mutex_unlock(&bo->shared->lock);
	return err;
}

/**
 * accmem_shared_move() - move pieces before they are touched
 * @bo: shared memory
 * @offset: where in it
 * @size: bytes, not 0, inside the memory; the pieces that they are in move
 * @to_device: or to the host. What is to stay there stays. Sleeps.
 *
 * Return: as accmem_shared_access(); pieces before the one that failed have moved.
 */
int accmem_shared_move(struct accmem_bo *bo, u64 offset, u64 size,
		       bool to_device)
{
	unsigned int piece = shared_piece_of(offset);
	unsigned int last = shared_piece_of(offset + size - 1);
	int err = 0;

	for (; piece <= last && !err; piece++) {
		/* a lock that is free is had by who is killed, too */
		if (fatal_signal_pending(current) ||
		    mutex_lock_killable(&bo->shared->lock))
			return -EINTR;
		if (!to_device)
			err = shared_to_host(bo, piece, false);
		else if (!(shared_state(bo, piece) & ACCMEM_SHARED_STAY))
			err = shared_to_device(bo, piece, false);
		mutex_unlock(&bo->shared->lock);
		cond_resched();
	}
	return err;
}

/**
 * accmem_shared_stay() - have pieces stay on the host, where the device goes to them
 * @bo: shared memory
 * @offset: where in it
 * @size: bytes, not 0, inside the memory; it is about the pieces that they are in
 * @stay: or move again. Nothing moves now.
 *
 * Return: 0; -EINTR.
 */
int accmem_shared_stay(struct accmem_bo *bo, u64 offset, u64 size, bool stay)
{
	unsigned int piece = shared_piece_of(offset);
	unsigned int last = shared_piece_of(offset + size - 1);
	u32 state;

	if (mutex_lock_killable(&bo->shared->lock))
		return -EINTR;
	for (; piece <= last; piece++) {
		state = shared_state(bo, piece) & ~ACCMEM_SHARED_STAY;
		if (stay)
			state |= ACCMEM_SHARED_STAY;
		shared_set_state(bo, piece, state);
	}
	mutex_unlock(&bo->shared->lock);
	return 0;
}

/**
 * accmem_shared_create() - give device memory a side on the host
 * @bo: new memory, write-back, which reads as zero, and has no name yet. Sleeps.
 *
 * Return: 0; -ENOBUFS where there is no room for the host's side, which may be had by
 * reclaiming; -EDQUOT for a limit, likewise; -ENOMEM, -EINTR.
 */
int accmem_shared_create(struct accmem_bo *bo)
{
	struct accmem_carveout *cv = accmem_carveouts_host(bo->cv->carveouts);
	const struct accmem_bo_spec spec = {
		.size = bo->size,
		.alignment = ACCMEM_GRANULE,
		.page_size = ACCMEM_GRANULE,
		.huge = ACCMEM_HUGE_NEVER,
		.cache_mode = ACCMEM_CACHE_WB,
	};
	unsigned int nr = DIV_ROUND_UP_ULL(bo->size, ACCMEM_FOLIO);
	struct accmem_shared *shared;
	struct accmem_bo *host;

	shared = kvzalloc(struct_size(shared, state, nr), GFP_KERNEL_ACCOUNT);
	if (!shared)
		return -ENOMEM;
	host = accmem_bo_create(bo->account, cv, &spec);
	if (IS_ERR(host)) {
		kvfree(shared);
		return host == ERR_PTR(-ENOSPC) ? -ENOBUFS : PTR_ERR(host);
	}
	/* pages may be pinned from the first mapping on; and none of it is kept */
	host->mapped = true;
	bo->mapped = true;
	mutex_init(&shared->lock);
	shared->host = host;
	memset(shared->state, ACCMEM_SHARED_HOST | ACCMEM_SHARED_DEVICE, nr);
	bo->shared = shared;
	return 0;
}

/**
 * accmem_shared_place() - the memory is at its device address
 * @bo: shared memory, which is mapped nowhere yet
 */
void accmem_shared_place(struct accmem_bo *bo)
{
	struct accmem_bo *host = bo->shared->host;

	host->offset = bo->offset;
	if (IS_ALIGNED(bo->offset, ACCMEM_FOLIO))
		host->huge = ACCMEM_HUGE_FREE;
}
