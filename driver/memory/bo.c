// SPDX-License-Identifier: GPL-2.0
/*
 * Buffer objects: runs of a carveout, from creation to release.
 *
 * A buffer object has the runs that were allocated together, and is charged to one
 * account. It has no device address: buffers have addresses, and refer to it.
 *
 * States: live -> pending -> detached -> quarantined -> free. A state may be skipped.
 * In the state live the buffer object has a name. In the state pending its free waits
 * for a dependency. In the state detached a mapping or a call still refers to it. In
 * the state quarantined only its pages are still pinned, or its free is overdue.
 *
 * Freeing allocates no memory, so that it cannot fail. A quarantined buffer object
 * holds a reference to the module.
 *
 * Locking: the carveout's lock guards the state and the lists. Callers hold no
 * carveout lock.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "memory/contents.h"
#include "trace/trace.h"
#include "types/backing_types.h"
#include "waitq/waiters.h"

#define BO_RECHECK_DELAY msecs_to_jiffies(10)
#define BO_SMALL ((u64)SZ_64K) /* up to this size, cleared in one call */

/* Allocate the runs and charge the account. */
static int bo_take(struct accmem_bo *bo, const struct accmem_bo_spec *spec)
{
	int err;

	if (spec->size > bo->cv->capacity ||
	    !accmem_waiters_permit(bo->cv, bo->account, spec->size))
		return -ENOSPC;
	bo->since_try = accmem_waiters_tries(bo->cv->waiters);
	err = accmem_charge_buffers(bo->account, spec->buffers);
	if (err)
		return err;
	err = accmem_runs_alloc(bo, spec);
	if (err)
		accmem_uncharge_buffers(bo->account, spec->buffers);
	else
		accmem_count_allocs(bo->cv, spec->buffers);
	return err;
}

static struct accmem_bo *bo_alloc(struct accmem_account *account,
				  struct accmem_carveout *cv,
				  const struct accmem_bo_spec *spec)
{
	struct accmem_bo *bo;

	bo = kzalloc(struct_size(bo, private, spec->private_size),
		     GFP_KERNEL_ACCOUNT);
	if (!bo)
		return NULL;
	kref_init(&bo->refs);
	accmem_account_get(account);
	bo->account = account;
	bo->cv = cv;
	bo->size = spec->size;
	bo->huge = spec->huge;
	bo->cache_mode = spec->cache_mode;
	bo->buffers = spec->buffers;
	bo->state = ACCMEM_LIVE;
	INIT_LIST_HEAD(&bo->link);
	INIT_LIST_HEAD(&bo->own_link);
	INIT_LIST_HEAD(&bo->io_link);
	RB_CLEAR_NODE(&bo->unnamed_node);
	mutex_init(&bo->lock);
	xa_init_flags(&bo->pages, XA_FLAGS_ACCOUNT);
	return bo;
}

static void bo_destroy(struct accmem_bo *bo)
{
	struct accmem_account *account = bo->account;

	accmem_runs_forget(bo);
	mutex_destroy(&bo->lock);
	kfree(bo);
	accmem_account_put(account);
}

/**
 * accmem_bo_extend_prepare() - allocate the run directly behind a buffer object
 * @bo: the buffer object, live; only the caller resizes it
 * @size: bytes to add at the end, a multiple of @page_size
 * @page_size: bytes; the new run starts at a multiple of it
 * @more: out: the new run, charged, live and zeroed
 *
 * The run becomes a part of the buffer object with accmem_bo_extend(), which must
 * follow. Before that call no mapping and no access reaches the run.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: 0; -ENOSPC if not all of the run is free; -EDQUOT if a limit is reached;
 * -ENOMEM, -EINTR.
 */
int accmem_bo_extend_prepare(struct accmem_bo *bo, u64 size, u64 page_size,
			     struct accmem_run *more)
{
	struct accmem_carveout *cv = bo->cv;
	u64 since = accmem_waiters_tries(cv->waiters);
	int err;

	if (!accmem_waiters_permit(cv, bo->account, size))
		return -ENOSPC;
	err = accmem_run_alloc_at_end(bo, size, page_size, more);
	if (err)
		return err;
	err = cv->ops->init ? cv->ops->init(bo, more) : 0;
	if (err)
		accmem_run_free(bo, more, since);
	return err;
}

/**
 * accmem_bo_extend() - add the run directly behind a buffer object
 * @bo: the buffer object
 * @more: the run from accmem_bo_extend_prepare()
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_bo_extend(struct accmem_bo *bo, const struct accmem_run *more)
{
	accmem_carveout_lock(bo->cv);
	accmem_runs_extend(bo, more->size);
	accmem_carveout_unlock(bo->cv);
}

/**
 * accmem_bo_set_mapped() - say that a mapping may reach a buffer object from here on
 * @bo: the buffer object, which a mapping may also write to
 *
 * Context: The caller holds the lock under which mappings are made, or @bo is private.
 * Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_bo_set_mapped(struct accmem_bo *bo)
{
	accmem_bo_set_written(bo, true);
	if (accmem_bo_was_mapped(bo))
		return;
	WRITE_ONCE(bo->mapped, true);
	accmem_carveout_lock(bo->cv);
	list_add_tail(&bo->own_link,
		      &bo->account->memory[bo->cv->index].mapped);
	accmem_carveout_unlock(bo->cv);
}

/*
 * Remove a buffer object that is about to be freed from its account's list of mapped memory,
 * and from its carveout's tree of memory without a name. Nobody adds it any more.
 */
static void bo_unlink(struct accmem_bo *bo)
{
	/* A change of the tree may write to the node, but does not make it look empty. */
	bool is_named = data_race(RB_EMPTY_NODE(&bo->unnamed_node));

	if (list_empty(&bo->own_link) && is_named)
		return;
	accmem_carveout_lock(bo->cv);
	list_del_init(&bo->own_link);
	accmem_unnamed_remove(bo);
	accmem_carveout_unlock(bo->cv);
}

static void bo_drop_shared(struct accmem_bo *bo)
{
	unsigned int i;

	if (!bo->shared)
		return;
	accmem_bo_put(bo->shared->host);
	for (i = 0; i < bo->shared->nr_pieces; i++)
		mutex_destroy(&bo->shared->pieces[i].lock);
	kvfree(bo->shared);
}

static void bo_give_back(struct accmem_bo *bo)
{
	trace_accmem_release(bo, bo->size, bo->nr_runs);
	bo_drop_shared(bo);
	if (bo->cv->ops->release)
		bo->cv->ops->release(bo, ACCMEM_RELEASE_ALL);
	accmem_runs_free(bo);
	accmem_uncharge_buffers(bo->account, bo->buffers);
	accmem_count_frees(bo->cv, bo->buffers);
}

/* The argument of bo_hand_over_to(). */
struct offer {
	struct accmem_bo *bo;
	bool is_seen; /* the uncharge may let other waiters of the owner's user run */
};

static bool bo_has_waiters(const struct accmem_bo *bo,
			   const struct accmem_waiter *but)
{
	const struct accmem_user *user = bo->account->user;

	return atomic_read(&user->nr_waiting) > (user == but->account->user);
}

/* Callback of accmem_waiters_try_handoff(). accmem_waiters.lock is held. */
static bool bo_hand_over_to(struct accmem_waiter *w, void *arg)
{
	struct offer *offer = arg;
	struct accmem_bo *bo = offer->bo;

	if (!accmem_charge_buffer(w->account, w->exempt))
		return false;
	if (accmem_runs_hand_over(bo, w->handoff.bo, w->exempt)) {
		accmem_uncharge_buffers(w->account, 1);
		return false;
	}
	w->handoff.dirty = bo->account != w->account ||
			   accmem_bo_is_unknown(bo);
	offer->is_seen = bo_has_waiters(bo, w);
	return true;
}

/*
 * Direct handoff: move the run to the first waiter if it requests this size. A buffer
 * object that was ever mapped is not handed off, since pages and page tables may
 * still refer to its owner.
 */
static bool bo_hand_over(struct accmem_bo *bo)
{
	struct offer offer = { .bo = bo };

	if (accmem_bo_was_mapped(bo) || bo->nr_runs != 1 || bo->buffers != 1 ||
	    bo->size != bo->run.size || bo->shared || !xa_empty(&bo->pages))
		return false;
	/* An array of runs may be vmalloc() memory, which no spinlock holder may free. */
	if (bo->runs != &bo->run)
		return false;
	if (!accmem_waiters_try_handoff(bo->cv, &bo->run, bo->cache_mode,
					bo_hand_over_to, &offer))
		return false;
	trace_accmem_release(bo, bo->size, 1);
	accmem_uncharge_buffers(bo->account, 1);
	accmem_count_frees(bo->cv, 1);
	accmem_count_allocs(bo->cv, 1);
	if (offer.is_seen)
		accmem_waiters_wake_uncharged(bo->account->waiters,
					      bo->account->user);
	bo_destroy(bo);
	return true;
}

/**
 * accmem_bo_free() - free a buffer object, its runs and its charges
 * @bo: the buffer object, with no references to it and none to its pages
 *
 * The run goes to the first waiter, if a direct handoff is possible. Otherwise the
 * function frees the runs and wakes the waiters. It allocates no memory.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_bo_free(struct accmem_bo *bo)
{
	bo_unlink(bo);
	if (unlikely(READ_ONCE(bo->cv->waiters->nr)) && bo_hand_over(bo))
		return;
	bo_give_back(bo);
	accmem_waiters_wake_freed(bo->cv, bo->account->user, bo->size);
	bo_destroy(bo);
}

/**
 * accmem_bo_abort() - undo accmem_bo_create()
 * @bo: the buffer object; only the caller has ever had a reference to it
 *
 * The function wakes only waiters that tried while the memory was allocated. The caller
 * may be a waiter itself, and would find no more free memory than before.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_bo_abort(struct accmem_bo *bo)
{
	bo_unlink(bo);
	bo_give_back(bo);
	accmem_waiters_wake_returned(bo->cv->waiters, bo->account->user,
				     bo->since_try);
	bo_destroy(bo);
}

/* Zero the memory that came by handoff from another account. */
static int bo_clean(struct accmem_bo *bo)
{
	if (!bo->cv->chunks)
		return 0;
	if (bo->size <= BO_SMALL)
		return accmem_bo_clear(bo, 0, bo->size);
	accmem_clear_mark_dirty(bo->cv, &bo->run);
	return bo->cv->ops->init(bo, &bo->run);
}

/**
 * accmem_bo_adopt() - make a buffer object ready after a handoff
 * @bo: the buffer object from accmem_runs_hand_over(), private to the caller
 * @huge: enum accmem_layout_huge
 * @dirty: true if the memory may contain bytes of another account
 *
 * On success the memory is zeroed if @dirty was set. On failure the buffer object is
 * freed.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: 0; -ENOMEM, -EINTR.
 */
int accmem_bo_adopt(struct accmem_bo *bo, u32 huge, bool dirty)
{
	int err;

	bo->huge = huge;
	bo->buffers = 1;
	err = dirty ? bo_clean(bo) : 0;
	if (!err)
		return 0;
	/* Dirty memory must be cleared even if the same account allocates it again. */
	accmem_clear_mark_dirty(bo->cv, &bo->run);
	accmem_bo_abort(bo);
	return err;
}

/**
 * accmem_bo_create() - allocate memory and make it ready for use
 * @account: the account to charge
 * @cv: the carveout
 * @spec: size, alignment and placement of the request
 *
 * The buffer object is live, and its memory is zeroed.
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 * Return: the buffer object, with one reference; -ENOSPC if memory is short;
 * -EDQUOT if a limit is reached; -ENOBUFS as accmem_bo_populate(); -ENOMEM, -EINTR.
 * After -ENOSPC, -EDQUOT and -ENOBUFS the caller may reclaim memory and try again.
 * -ENODEV, -ECONNRESET if the memory is revoked.
 */
struct accmem_bo *accmem_bo_create(struct accmem_account *account,
				   struct accmem_carveout *cv,
				   const struct accmem_bo_spec *spec)
{
	struct accmem_bo *bo;
	int err;

	if (accmem_is_revoked(cv->carveouts))
		return ERR_PTR(accmem_revoked_error(cv->carveouts));
	bo = bo_alloc(account, cv, spec);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->epoch = READ_ONCE(cv->carveouts->epoch) & ~1u;
	err = bo_take(bo, spec);
	if (err) {
		bo_destroy(bo);
		return ERR_PTR(err);
	}
	err = cv->ops->init ? cv->ops->init(bo, &bo->run) : 0;
	if (!err && spec->flags & ACCMEM_ALLOC_POPULATE &&
	    accmem_must_populate(cv, spec->flags))
		err = accmem_bo_populate(bo, 0, bo->size);
	if (err) {
		accmem_bo_abort(bo);
		return ERR_PTR(err);
	}
	return bo;
}

static void bo_set_state(struct accmem_bo *bo, enum accmem_state state)
{
	struct accmem_carveout *cv = bo->cv;

	accmem_carveout_set_state(cv, bo->state, state, bo->size);
	bo->state = state;
}

/* Set the state of the host side of shared memory, which is in no list. */
static void bo_lock_set_state(struct accmem_bo *bo, enum accmem_state state)
{
	accmem_carveout_lock(bo->cv);
	bo_set_state(bo, state);
	accmem_carveout_unlock(bo->cv);
}

static void bo_quarantine(struct accmem_bo *bo)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_account *account = bo->account;
	struct accmem_account_memory *own = &account->memory[cv->index];

	/* The caller closes a file of the module, so the module has a reference now. */
	__module_get(THIS_MODULE);
	/* The worker may free @bo as soon as it is in the list, and then the device. */
	accmem_account_get(account);
	accmem_carveout_lock(cv);
	bo_set_state(bo, ACCMEM_QUARANTINED);
	bo->quarantined = ++cv->quarantine.last;
	if (!cv->quarantine.nr)
		WRITE_ONCE(cv->quarantine.delay, BO_RECHECK_DELAY);
	WRITE_ONCE(cv->quarantine.nr, cv->quarantine.nr + 1);
	WRITE_ONCE(own->nr_quarantined, own->nr_quarantined + 1);
	list_add_tail(&bo->link, &cv->quarantine.list);
	list_move_tail(&bo->own_link, &own->quarantined);
	accmem_unnamed_add(bo);
	accmem_carveout_unlock(cv);
	queue_delayed_work(accmem_wq, &cv->quarantine.work, BO_RECHECK_DELAY);
	accmem_account_put(account);
}

/**
 * accmem_bo_is_idle() - check that the driver alone refers to the pages
 * @bo: the buffer object; the caller knows all references to it
 *
 * The result is false if the pages of @bo may be pinned. A false result may become
 * true later, and the driver gets no notice of that change.
 *
 * Context: Does not sleep for a buffer object of fewer than 512 pages. May sleep
 * for a larger one.
 * Return: true if no other reference to the pages exists.
 */
bool accmem_bo_is_idle(struct accmem_bo *bo)
{
	return !accmem_bo_was_mapped(bo) || !bo->cv->ops->is_idle ||
	       bo->cv->ops->is_idle(bo, ACCMEM_IDLE_COUNT);
}

/**
 * accmem_bo_release_pages() - free some pages before the buffer object is freed
 * @bo: the buffer object; at most the caller has a reference to it
 * @all: true to skip pages that are pinned; false to stop at the first of them
 *
 * Freeing pages takes most of the time of a free. A caller that frees the buffer
 * object under a contended lock calls this function first, so that each critical
 * section is short. The state of the buffer object and its lists do not change.
 *
 * Context: Process context. May sleep.
 * Return: true if there are pages left to check.
 */
bool accmem_bo_release_pages(struct accmem_bo *bo, bool all)
{
	enum accmem_release which = all ? ACCMEM_RELEASE_UNPINNED :
					  ACCMEM_RELEASE_TO_PIN;
	struct accmem_bo *host = bo->shared ? bo->shared->host : NULL;

	if (host && host->cv->ops->release(host, which))
		return true;
	return bo->cv->ops->release && bo->cv->ops->release(bo, which);
}

static void bo_release(struct kref *refs)
{
	struct accmem_bo *bo = container_of(refs, struct accmem_bo, refs);

	if (accmem_bo_is_idle(bo))
		accmem_bo_free(bo);
	else
		bo_quarantine(bo);
}

void accmem_bo_get(struct accmem_bo *bo)
{
	kref_get(&bo->refs);
}

/**
 * accmem_bo_put() - drop a reference
 * @bo: the buffer object
 *
 * The last put frees the buffer object, or quarantines it if its pages are pinned.
 *
 * Context: Process context. May sleep.
 */
void accmem_bo_put(struct accmem_bo *bo)
{
	kref_put(&bo->refs, bo_release);
}

/**
 * accmem_bo_put_user() - drop the reference of a mapping or of a call
 * @bo: the buffer object
 *
 * The function wakes the waiters in two cases, and else equals accmem_bo_put(). In
 * the first case @bo is pending: a request on its stream can use the memory when no
 * mapping and no call refers to it. In the second case @bo is a slab page with freed
 * slots, which a request of the same context can use then.
 *
 * Context: Process context. May sleep.
 */
void accmem_bo_put_user(struct accmem_bo *bo)
{
	struct accmem_account *account = bo->account;

	if (!READ_ONCE(bo->pending) && !READ_ONCE(bo->wake_on_put)) {
		accmem_bo_put(bo);
		return;
	}
	accmem_account_get(account);
	accmem_bo_put(bo);
	accmem_waiters_wake(account->waiters, account->user);
	accmem_account_put(account);
}

/**
 * accmem_bo_try_put_user() - drop the reference of a call if that needs no sleep
 * @bo: the buffer object
 *
 * Context: Any context. Does not sleep.
 * Return: true if the reference was dropped. false if it is the last reference, or if waiters
 * must be woken: the caller still has the reference, and accmem_bo_put_user() drops it.
 */
bool accmem_bo_try_put_user(struct accmem_bo *bo)
{
	return !READ_ONCE(bo->pending) && !READ_ONCE(bo->wake_on_put) &&
	       refcount_dec_not_one(&bo->refs.refcount);
}

static void bo_leave_pending(struct accmem_bo *bo)
{
	lockdep_assert_held(&bo->cv->lock);
	WRITE_ONCE(bo->pending, false);
	list_del_init(&bo->link);
	if (bo->state == ACCMEM_QUARANTINED)
		atomic64_sub(bo->size, &bo->account->overdue);
}

static void bo_set_pending(struct accmem_bo *bo, bool pending)
{
	struct accmem_carveout *cv = bo->cv;

	accmem_carveout_lock(cv);
	if (pending) {
		WRITE_ONCE(bo->pending, true);
		bo->since = jiffies;
		list_add_tail(&bo->link, &cv->pending);
	} else {
		bo_leave_pending(bo);
	}
	bo_set_state(bo, pending ? ACCMEM_PENDING : ACCMEM_LIVE);
	accmem_carveout_unlock(cv);
	if (pending)
		accmem_overdue_watch(cv);
}

/**
 * accmem_bo_set_pending() - begin or end the wait of a free for its dependency
 * @bo: the buffer object; no other task calls this function or detaches @bo
 * @pending: true if the free waits; false if the buffer object is live again
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 */
void accmem_bo_set_pending(struct accmem_bo *bo, bool pending)
{
	bo_set_pending(bo, pending);
	if (bo->shared)
		bo_lock_set_state(bo->shared->host,
				  pending ? ACCMEM_PENDING : ACCMEM_LIVE);
}

/**
 * accmem_bo_set_overdue() - count a pending buffer object as quarantined
 * @bo: the buffer object, pending
 *
 * Context: The caller holds the carveout's lock.
 */
void accmem_bo_set_overdue(struct accmem_bo *bo)
{
	bo_set_state(bo, ACCMEM_QUARANTINED);
	list_move_tail(&bo->link, &bo->cv->overdue);
	atomic64_add(bo->size, &bo->account->overdue);
}

static void bo_clear_live(struct accmem_bo *bo, bool detached)
{
	struct accmem_carveout *cv = bo->cv;

	accmem_carveout_lock(cv);
	if (bo->pending)
		bo_leave_pending(bo);
	if (detached) {
		bo_set_state(bo, ACCMEM_DETACHED);
		accmem_unnamed_add(bo);
	}
	accmem_carveout_unlock(cv);
}

/**
 * accmem_bo_detach() - remove the last name of a buffer object
 * @bo: the buffer object; the function drops the reference of the name
 *
 * Context: Process context. Takes and releases the carveout's lock. May sleep.
 */
void accmem_bo_detach(struct accmem_bo *bo)
{
	/* Without a name a count of 1 stays 1: no task can copy another reference. */
	bool detached = kref_read(&bo->refs) > 1;

	if (bo->pending || detached) {
		bo_clear_live(bo, detached);
		if (bo->shared && detached)
			bo_lock_set_state(bo->shared->host, ACCMEM_DETACHED);
	}
	accmem_bo_put(bo);
}

/**
 * accmem_bo_create_empty() - create a buffer object without runs
 * @account: the account to charge later
 * @cv: the carveout; NULL if accmem_runs_hand_over() sets it
 * @private_size: bytes of accmem_bo.private
 *
 * Context: Process context. May sleep.
 * Return: the buffer object, for accmem_runs_hand_over(), for a split or for
 * accmem_bo_destroy_empty(); NULL if memory is short.
 */
struct accmem_bo *accmem_bo_create_empty(struct accmem_account *account,
					 struct accmem_carveout *cv,
					 u32 private_size)
{
	const struct accmem_bo_spec spec = {
		.private_size = private_size,
	};

	return bo_alloc(account, cv, &spec);
}

/**
 * accmem_bo_destroy_empty() - free a buffer object that has no runs
 * @bo: the buffer object
 *
 * Context: Process context. May sleep.
 */
void accmem_bo_destroy_empty(struct accmem_bo *bo)
{
	bo_destroy(bo);
}
