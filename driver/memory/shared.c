// SPDX-License-Identifier: GPL-2.0
/*
 * Shared memory: pieces that move between the host and the device.
 *
 * A shared buffer has two buffer objects of the same size: device memory, and host
 * memory (accmem_shared.host). User mappings map the host side; the device accesses
 * its own side. Shared memory is divided into pieces of 2 MiB; the last may be shorter.
 *
 * States of a piece: valid on the host, on the device, or on both. At first a piece is
 * valid on both sides, and zero. An access on a side where the piece is not valid
 * copies the piece to that side. A write makes the copy of the other side invalid. A
 * piece that was not written since the last copy moves without a copy.
 *
 * A user mapping can write to a page only while the copy of the device is invalid.
 * Otherwise the page is mapped read-only, and a write faults (shared_fault.c). A fault
 * locks its page while accmem_piece.lock keeps the piece in place.
 *
 * To move a piece from the host to the device, a task waits for the page locks, unmaps
 * the piece, checks that its pages have no other references, and copies it. Pinned
 * pages do not move, since another device may write to them without a fault. A task
 * that finds a reference tries again for a while, and drops the lock in between.
 *
 * If some of a piece has failed on one side, the piece cannot move to that side. If its only
 * copy is there, all of the piece is lost, since pieces move as a whole: a page fault and
 * an access of the other side fail. The side itself still reaches its good memory.
 *
 * Locking: mmap_lock > accmem_piece.lock > page locks, the locks of the address_space
 * and of the backing. No task holds the locks of two pieces. accmem_piece.lock guards
 * the state of the piece.
 */
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "internal.h"
#include "memory/bo.h"
#include "memory/contents.h"
#include "memory/shared.h"
#include "trace/trace.h"
#include "types/backing_types.h"

/*
 * A fault that was preempted has a reference to its page for a moment. A task that moves
 * a piece waits for such references with the lock held, so that no new fault begins. It
 * drops the lock in between, and takes the page for pinned at last.
 */
#define SHARED_HOLD msecs_to_jiffies(20)
#define SHARED_PATIENCE msecs_to_jiffies(100)

static unsigned int shared_piece_of(u64 offset)
{
	return offset / ACCMEM_FOLIO;
}

static u64 shared_piece_end(const struct accmem_bo *bo, unsigned int piece)
{
	return min((piece + 1) * ACCMEM_FOLIO, bo->size);
}

static struct mutex *shared_lock_of(struct accmem_bo *bo, unsigned int piece)
{
	return &bo->shared->pieces[piece].lock;
}

/* Lock a piece. mutex_lock_killable() checks for signals only if it waits. */
static int shared_lock(struct accmem_bo *bo, unsigned int piece)
{
	if (fatal_signal_pending(current) ||
	    mutex_lock_killable(shared_lock_of(bo, piece)))
		return -EINTR;
	return 0;
}

static void shared_unlock(struct accmem_bo *bo, unsigned int piece)
{
	mutex_unlock(shared_lock_of(bo, piece));
}

static u32 shared_state(struct accmem_bo *bo, unsigned int piece)
{
	lockdep_assert_held(shared_lock_of(bo, piece));
	return bo->shared->pieces[piece].state;
}

static void shared_set_state(struct accmem_bo *bo, unsigned int piece,
			     u32 state)
{
	lockdep_assert_held(shared_lock_of(bo, piece));
	bo->shared->pieces[piece].state = state;
}

/*
 * Address of the host's bytes at @offset, or -EHWPOISON; @size: out: contiguous bytes, up
 * to @end.
 */
static void *shared_kernel_address(struct accmem_bo *bo, u64 offset, u64 end,
				   bool make, u64 *size)
{
	struct accmem_bo *host = bo->shared->host;
	void *address = host->cv->ops->kernel_address(host, offset, make, size);

	*size = min(*size, end - offset);
	return address;
}

/* Copy a piece between its sides. A page that the host does not have is zero. */
static int shared_copy(struct accmem_bo *bo, unsigned int piece, bool to_device)
{
	u64 end = shared_piece_end(bo, piece), offset, size;
	void *address;
	int err = 0;

	for (offset = piece * ACCMEM_FOLIO; offset < end && !err;
	     offset += size) {
		address = shared_kernel_address(bo, offset, end, !to_device,
						&size);
		if (IS_ERR(address))
			return PTR_ERR(address);
		if (!address && !to_device)
			return -ENOMEM;
		err = accmem_bo_access(bo, offset, address, size, to_device);
		cond_resched();
	}
	return err;
}

/* Wait for faults that have locked a page of the piece: then their page is mapped. */
static void shared_sync_faults(struct accmem_bo *bo, unsigned int piece)
{
	u64 end = shared_piece_end(bo, piece), offset, size;
	struct page *page;
	void *address;

	for (offset = piece * ACCMEM_FOLIO; offset < end; offset += size) {
		address = shared_kernel_address(bo, offset, end, false, &size);
		if (IS_ERR_OR_NULL(address))
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
		address = shared_kernel_address(bo, offset, end, false, &size);
		if (IS_ERR_OR_NULL(address))
			continue;
		if (folio_ref_count(page_folio(virt_to_page(address))) != 1)
			return false;
	}
	return true;
}

/* Unmap a piece. -EBUSY if its pages have other references for @patience jiffies. */
static int shared_take_from_host(struct accmem_bo *bo, unsigned int piece,
				 unsigned long patience)
{
	struct file *file = READ_ONCE(bo->account->file);
	u64 start = piece * ACCMEM_FOLIO, end = shared_piece_end(bo, piece);
	unsigned long until;

	shared_sync_faults(bo, piece);
	if (file)
		unmap_mapping_range(file->f_mapping, bo->offset + start,
				    end - start, 1);
	until = jiffies + patience;
	while (!shared_is_idle(bo, piece)) {
		if (!patience || time_after(jiffies, until))
			return -EBUSY;
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_uninterruptible(1);
	}
	return 0;
}

/*
 * Wait without the lock of the piece if a page of it had a reference. Return true if the
 * caller has to try again.
 */
static bool shared_waits_for_pin(int err, unsigned long until)
{
	if (err != -EBUSY || time_after(jiffies, until))
		return false;
	schedule_timeout_killable(1);
	return true;
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
 * Make a piece valid on the device. With @write, make it invalid on the host. A piece
 * that is not valid on the host does not become valid there.
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
	/* A pin of a clean copy only allows reads: without a copy, do not wait. */
	err = shared_take_from_host(bo, piece, copies ? SHARED_HOLD : 0);
	if (err == -EBUSY && !copies)
		err = 0;
	if (!err && copies)
		err = shared_copy(bo, piece, true);
	if (err)
		return err;
	shared_set_state(bo, piece, state);
	shared_count(bo, piece, true, copies);
	return 0;
}

/* Make a piece valid on the host. With @write, make it invalid on the device. */
static int shared_to_host(struct accmem_bo *bo, unsigned int piece, bool write)
{
	u32 state = shared_state(bo, piece);
	bool copies = !(state & ACCMEM_SHARED_HOST);
	int err = copies ? shared_copy(bo, piece, false) : 0;

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
 * accmem_shared_hold() - move a piece to the host and lock it there
 * @bo: the shared buffer object
 * @offset: offset in @bo, in bytes
 * @write: true to make the copy of the device invalid
 *
 * The piece stays in place until accmem_shared_drop(). If the caller locks a page of
 * the piece before that call, the piece stays in place until the page is unlocked.
 *
 * Context: Process context. Acquires accmem_piece.lock on success. The caller has no
 * reference to a page of the piece, which would look like a pin. May sleep.
 * Return: 0; -EHWPOISON if memory has failed; -ENOMEM, -EINTR.
 */
int accmem_shared_hold(struct accmem_bo *bo, u64 offset, bool write)
{
	unsigned int piece = shared_piece_of(offset);
	int err = shared_lock(bo, piece);

	if (err)
		return err;
	err = shared_to_host(bo, piece, write);
	if (err)
		shared_unlock(bo, piece);
	return err;
}

/**
 * accmem_shared_try_hold() - accmem_shared_hold() for callers with a page reference
 * @bo: the shared buffer object
 * @offset: offset in @bo, in bytes
 * @write: true to make the copy of the device invalid
 *
 * Context: Process context. Tries to acquire accmem_piece.lock. May sleep while the
 * piece is copied.
 * Return: true if the piece is locked; false if another task has the lock, or if the
 * copy failed.
 */
bool accmem_shared_try_hold(struct accmem_bo *bo, u64 offset, bool write)
{
	unsigned int piece = shared_piece_of(offset);

	if (!mutex_trylock(shared_lock_of(bo, piece)))
		return false;
	if (!shared_to_host(bo, piece, write))
		return true;
	shared_unlock(bo, piece);
	return false;
}

/**
 * accmem_shared_drop() - unlock a piece
 * @bo: the shared buffer object
 * @offset: offset of the piece, as for accmem_shared_hold()
 *
 * Context: Process context. Releases accmem_piece.lock.
 */
void accmem_shared_drop(struct accmem_bo *bo, u64 offset)
{
	shared_unlock(bo, shared_piece_of(offset));
}

/* Access a piece on the host if it has to stay there, else on the device. */
static int shared_access_piece(struct accmem_bo *bo, u64 offset, void *data,
			       u64 size, bool write)
{
	unsigned int piece = shared_piece_of(offset);
	struct accmem_bo *side = bo;
	int err = shared_lock(bo, piece);

	if (err)
		return err;
	if (shared_state(bo, piece) & ACCMEM_SHARED_STAY) {
		side = bo->shared->host;
		err = shared_to_host(bo, piece, write);
	} else {
		err = shared_to_device(bo, piece, write);
	}
	err = err ?: accmem_bo_access(side, offset, data, size, write);
	shared_unlock(bo, piece);
	return err;
}

/**
 * accmem_shared_access() - read or write shared memory as the device does
 * @bo: the shared buffer object
 * @offset: offset in @bo, in bytes
 * @data: buffer of the kernel
 * @size: bytes, all of them in one piece
 * @write: true to copy from @data to @bo; false to copy from @bo to @data
 *
 * Context: Process context. Takes and releases accmem_piece.lock. May sleep.
 * Return: 0; -EBUSY if pages of the host side are pinned; -EHWPOISON if memory has
 * failed; -ENOMEM, -EINTR.
 */
int accmem_shared_access(struct accmem_bo *bo, u64 offset, void *data, u64 size,
			 bool write)
{
	unsigned long until = jiffies + SHARED_PATIENCE;
	int err;

	do
		err = shared_access_piece(bo, offset, data, size, write);
	while (shared_waits_for_pin(err, until));
	return err;
}

static int shared_move_piece(struct accmem_bo *bo, unsigned int piece,
			     bool to_device)
{
	int err = shared_lock(bo, piece);

	if (err)
		return err;
	if (!to_device)
		err = shared_to_host(bo, piece, false);
	else if (!(shared_state(bo, piece) & ACCMEM_SHARED_STAY))
		err = shared_to_device(bo, piece, false);
	shared_unlock(bo, piece);
	return err;
}

/**
 * accmem_shared_move() - move pieces before they are accessed
 * @bo: the shared buffer object
 * @offset: offset in @bo, in bytes
 * @size: bytes, not 0, inside @bo; the pieces that contain these bytes move
 * @to_device: true to move to the device; false to move to the host
 *
 * Pieces for which accmem_shared_stay() was called do not move to the device. After a
 * failure the pieces before the failed piece have moved.
 *
 * Context: Process context. Takes and releases accmem_piece.lock of each piece. May
 * sleep.
 * Return: 0; -EBUSY if pages of the host side are pinned; -EHWPOISON if memory has
 * failed; -ENOMEM, -EINTR.
 */
int accmem_shared_move(struct accmem_bo *bo, u64 offset, u64 size,
		       bool to_device)
{
	unsigned int piece = shared_piece_of(offset);
	unsigned int last = shared_piece_of(offset + size - 1);
	unsigned long until;
	int err = 0;

	for (; piece <= last && !err; piece++) {
		until = jiffies + SHARED_PATIENCE;
		do
			err = shared_move_piece(bo, piece, to_device);
		while (shared_waits_for_pin(err, until));
		cond_resched();
	}
	return err;
}

/**
 * accmem_shared_stay() - set whether pieces stay on the host
 * @bo: the shared buffer object
 * @offset: offset in @bo, in bytes
 * @size: bytes, not 0, inside @bo; the call affects the pieces with these bytes
 * @stay: true if the device accesses the pieces on the host; false if they move
 *
 * The function moves no piece. After a failure the first pieces may be set.
 *
 * Context: Process context. Takes and releases accmem_piece.lock of each piece. May
 * sleep.
 * Return: 0; -EINTR.
 */
int accmem_shared_stay(struct accmem_bo *bo, u64 offset, u64 size, bool stay)
{
	unsigned int piece = shared_piece_of(offset);
	unsigned int last = shared_piece_of(offset + size - 1);
	u32 state;
	int err;

	for (; piece <= last; piece++) {
		err = shared_lock(bo, piece);
		if (err)
			return err;
		state = shared_state(bo, piece) & ~ACCMEM_SHARED_STAY;
		if (stay)
			state |= ACCMEM_SHARED_STAY;
		shared_set_state(bo, piece, state);
		shared_unlock(bo, piece);
		cond_resched();
	}
	return 0;
}

static struct accmem_shared *shared_alloc(unsigned int nr)
{
	struct accmem_shared *shared;
	unsigned int i;

	shared = kvzalloc(struct_size(shared, pieces, nr), GFP_KERNEL_ACCOUNT);
	if (!shared)
		return NULL;
	shared->nr_pieces = nr;
	for (i = 0; i < nr; i++) {
		mutex_init(&shared->pieces[i].lock);
		shared->pieces[i].state = ACCMEM_SHARED_HOST |
					  ACCMEM_SHARED_DEVICE;
	}
	return shared;
}

/**
 * accmem_shared_create() - add a host side to device memory
 * @bo: new device memory, write-back, zeroed, without a name
 *
 * After -ENOBUFS and -EDQUOT the caller may reclaim memory and try again.
 *
 * Context: Process context. May sleep.
 * Return: 0; -ENOBUFS if memory for the host side is short; -EDQUOT if a limit is
 * reached; -ENOMEM, -EINTR.
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
	struct accmem_shared *shared;
	struct accmem_bo *host;

	shared = shared_alloc(DIV_ROUND_UP_ULL(bo->size, ACCMEM_FOLIO));
	if (!shared)
		return -ENOMEM;
	host = accmem_bo_create(bo->account, cv, &spec);
	if (IS_ERR(host)) {
		kvfree(shared);
		return host == ERR_PTR(-ENOSPC) ? -ENOBUFS : PTR_ERR(host);
	}
	/*
	 * Set before the first mapping: every release then checks for pins, and the
	 * cache of freed buffers does not retain the buffer.
	 */
	accmem_bo_set_mapped(host);
	accmem_bo_set_mapped(bo);
	shared->host = host;
	bo->shared = shared;
	return 0;
}

/**
 * accmem_shared_place() - set the mapping offset of the host side
 * @bo: the shared buffer object, with its device address, not mapped yet
 *
 * Context: Any.
 */
void accmem_shared_place(struct accmem_bo *bo)
{
	struct accmem_bo *host = bo->shared->host;

	host->offset = bo->offset;
	if (IS_ALIGNED(bo->offset, ACCMEM_FOLIO))
		host->huge = ACCMEM_HUGE_FREE;
}
