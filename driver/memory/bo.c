// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: made ready, live, pending, detached, quarantined, and given back.
 *
 * Giving back allocates nothing. Quarantined memory holds the module.
 *
 * Locks: the carveout's, with none held by the caller.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "trace/trace.h"
#include "waitq/waiters.h"

#define MEMORY_REAP_DELAY msecs_to_jiffies(10)
#define MEMORY_SMALL ((u64)SZ_64K) /* cleared in one go */

/* its runs and its charges */
static int bo_take(struct accmem_bo *bo, const struct accmem_bo_spec *spec)
{
	int err;

	if (spec->size > bo->cv->capacity ||
	    !accmem_waiters_permit(bo->cv, bo->account))
		return -ENOSPC;
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
	mutex_init(&bo->lock);
	xa_init_flags(&bo->pages, XA_FLAGS_ACCOUNT);
	return bo;
}

static void bo_destroy(struct accmem_bo *bo)
{
	struct accmem_account *account = bo->account;

	/* one whose runs another has got keeps the array */
	accmem_runs_forget(bo);
	mutex_destroy(&bo->lock);
	kfree(bo);
	accmem_account_put(account);
}

/**
 * accmem_bo_extend_prepare() - take what lies right behind a memory
 * @bo: the memory, live, which the caller alone resizes
 * @size: bytes that it is to get at its end, a multiple of @page_size
 * @page_size: bytes; what is taken begins at a multiple of it
 * @more: out: what was taken. It is charged, live, and reads as zero; nobody sees
 *	it before accmem_bo_extend(), which follows. Sleeps.
 *
 * Return: 0; -ENOSPC where not all of it is free, -EDQUOT for a limit: both as for
 * accmem_bo_create(); -ENOMEM, -EINTR.
 */
int accmem_bo_extend_prepare(struct accmem_bo *bo, u64 size, u64 page_size,
			     struct accmem_run *more)
{
	struct accmem_carveout *cv = bo->cv;
	int err;

	if (!accmem_waiters_permit(cv, bo->account))
		return -ENOSPC;
	err = accmem_run_alloc_at_end(bo, size, page_size, more);
	if (err)
		return err;
	err = cv->ops->extend ? cv->ops->extend(bo, more) : 0;
	if (err)
		accmem_run_free(bo, more);
	return err;
}

/**
 * accmem_bo_extend() - let a memory have what lies right behind it
 * @bo: the memory
 * @more: of accmem_bo_extend_prepare(). Does not sleep.
 */
void accmem_bo_extend(struct accmem_bo *bo, const struct accmem_run *more)
{
	accmem_carveout_lock(bo->cv);
	accmem_runs_extend(bo, more->size);
	accmem_carveout_unlock(bo->cv);
}

static void bo_drop_shared(struct accmem_bo *bo)
{
	if (!bo->shared)
		return;
	accmem_bo_put(bo->shared->host);
	mutex_destroy(&bo->shared->lock);
	kvfree(bo->shared);
}

static void bo_give_back(struct accmem_bo *bo)
{
	trace_accmem_release(bo, bo->size, bo->nr_runs);
	bo_drop_shared(bo);
	if (bo->cv->ops->release)
		bo->cv->ops->release(bo);
	accmem_runs_free(bo);
	accmem_uncharge_buffers(bo->account, bo->buffers);
	accmem_count_frees(bo->cv, bo->buffers);
}

/* memory on its way to a waiter */
struct offer {
	struct accmem_bo *bo;
	bool is_seen; /* by others who wait, of its user: they are charged less */
};

static bool bo_has_waiters(const struct accmem_bo *bo,
			   const struct accmem_waiter *but)
{
	const struct accmem_user *user = bo->account->user;

	return user != but->account->user ||
	       user->waiting[bo->cv->waiters->index].nr > 1;
}

/* for accmem_waiters_try_handoff() */
static bool bo_hand_off_to(struct accmem_waiter *w, void *arg)
{
	struct offer *offer = arg;
	struct accmem_bo *bo = offer->bo;

	if (!accmem_charge_buffer(w->account, w->exempt))
		return false;
	if (accmem_runs_hand_off(bo, w->handoff.bo, w->exempt)) {
		accmem_uncharge_buffers(w->account, 1);
		return false;
	}
	w->handoff.dirty = bo->account != w->account;
	offer->is_seen = bo_has_waiters(bo, w);
	return true;
}

/*
 * Who waits for just this has it as it is. What was ever mapped is not: there may be
 * pages, and entries of page tables, that know whose it was.
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
					bo_hand_off_to, &offer))
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
 * accmem_bo_free() - give memory back for good
 * @bo: the memory, to which nobody refers, nor to its pages. Sleeps, allocates
 *	nothing.
 */
void accmem_bo_free(struct accmem_bo *bo)
{
	if (accmem_waiters_present() && bo_hand_over(bo))
		return;
	bo_give_back(bo);
	accmem_waiters_wake_freed(bo->account->waiters, bo->account->user);
	bo_destroy(bo);
}

/**
 * accmem_bo_abort() - undo accmem_bo_create()
 * @bo: the memory, to which only the caller has ever referred. Sleeps.
 *
 * Nobody is woken, for the request may be a waiter, and would find no more than before:
 * who makes it tells of its end (accmem_alloc_notify_failed()).
 */
void accmem_bo_abort(struct accmem_bo *bo)
{
	bo_give_back(bo);
	bo_destroy(bo);
}

/* has what it was given read as zero */
static int bo_clean(struct accmem_bo *bo)
{
	if (!bo->cv->units)
		return 0;
	if (bo->size <= MEMORY_SMALL)
		return bo->cv->ops->clear_range(bo, 0, bo->size);
	accmem_clear_mark_dirty(bo->cv, &bo->run);
	return bo->cv->ops->init(bo);
}

/**
 * accmem_bo_adopt() - make memory ready that was handed over
 * @bo: of accmem_runs_hand_off(), which nobody else knows of. Sleeps.
 * @huge: enum accmem_layout_huge
 * @dirty: bytes of another account may be in it
 *
 * It reads as zero then.
 *
 * Return: 0; -ENOMEM, -EINTR, and it has been given back.
 */
int accmem_bo_adopt(struct accmem_bo *bo, u32 huge, bool dirty)
{
	int err;

	bo->huge = huge;
	bo->buffers = 1;
	err = dirty ? bo_clean(bo) : 0;
	if (!err)
		return 0;
	/* not even its account may have it as it is */
	accmem_clear_mark_dirty(bo->cv, &bo->run);
	accmem_bo_abort(bo);
	return err;
}

/**
 * accmem_bo_create() - take memory and make it ready
 * @account: what it is charged to
 * @cv: the carveout
 * @spec: what is wanted
 *
 * It reads as zero, and is live.
 *
 * Return: the memory, with a reference; -ENOSPC where there is no room, which
 * may be had by reclaiming; -EDQUOT for a limit, likewise; -ENOMEM, -EINTR.
 */
struct accmem_bo *accmem_bo_create(struct accmem_account *account,
				   struct accmem_carveout *cv,
				   const struct accmem_bo_spec *spec)
{
	struct accmem_bo *bo = bo_alloc(account, cv, spec);
	int err;

	if (!bo)
		return ERR_PTR(-ENOMEM);
	err = bo_take(bo, spec);
	if (err) {
		bo_destroy(bo);
		return ERR_PTR(err);
	}
	err = cv->ops->init ? cv->ops->init(bo) : 0;
	if (!err && spec->flags & ACCMEM_ALLOC_POPULATE && cv->ops->populate)
		err = cv->ops->populate(bo, 0);
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

/* for the host's side of shared memory, which no list has */
static void bo_lock_set_state(struct accmem_bo *bo, enum accmem_state state)
{
	accmem_carveout_lock(bo->cv);
	bo_set_state(bo, state);
	accmem_carveout_unlock(bo->cv);
}

static void bo_quarantine(struct accmem_bo *bo)
{
	struct accmem_carveout *cv = bo->cv;
	struct accmem_quarantine *own = &bo->account->quarantine[cv->index];

	/* never the first reference: a file of ours is being closed */
	__module_get(THIS_MODULE);
	accmem_carveout_lock(cv);
	bo_set_state(bo, ACCMEM_QUARANTINED);
	if (!cv->nr_quarantined)
		WRITE_ONCE(cv->quarantine_delay, MEMORY_REAP_DELAY);
	WRITE_ONCE(cv->nr_quarantined, cv->nr_quarantined + 1);
	WRITE_ONCE(own->nr, own->nr + 1);
	list_add_tail(&bo->link, &cv->quarantine);
	list_add_tail(&bo->own_link, &own->memory);
	accmem_carveout_unlock(cv);
	queue_delayed_work(accmem_wq, &cv->quarantine_work, MEMORY_REAP_DELAY);
}

/**
 * accmem_bo_is_idle() - does nobody have pages of a memory?
 * @bo: the memory, of which the caller knows all references
 *
 * Return: true if so. False may turn into true later without notice. Does not
 * sleep.
 */
bool accmem_bo_is_idle(struct accmem_bo *bo)
{
	return !accmem_bo_was_mapped(bo) || !bo->cv->ops->check_idle ||
	       bo->cv->ops->check_idle(bo);
}

/**
 * accmem_bo_release_pages() - give some pages of a memory back, before all of it goes
 * @bo: the memory, to which nobody refers, or nobody but the caller
 * @all: also those that come after a page that somebody else has
 *
 * For who gives it back under a lock that others take: pages are what takes long. The
 * memory stays what it is, and where it is found. Sleeps.
 *
 * Return: whether there are pages left to look at.
 */
bool accmem_bo_release_pages(struct accmem_bo *bo, bool all)
{
	struct accmem_bo *host = bo->shared ? bo->shared->host : NULL;

	if (host && host->cv->ops->release_pages(host, all))
		return true;
	return bo->cv->ops->release_pages &&
	       bo->cv->ops->release_pages(bo, all);
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
 * @bo: the memory
 *
 * The last one gives it back, or quarantines it. May sleep.
 */
void accmem_bo_put(struct accmem_bo *bo)
{
	kref_put(&bo->refs, bo_release);
}

/**
 * accmem_bo_put_user() - drop the reference of who was at work on a memory
 * @bo: the memory
 *
 * As accmem_bo_put(). What is pending may be had by a request on its stream when
 * nobody is at it any more, and units of a slab page by any of its context.
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
	accmem_waiters_wake_freed(account->waiters, account->user);
	accmem_account_put(account);
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
 * accmem_bo_set_pending() - the free of a memory begins to wait, or is undone
 * @bo: the memory; nobody else calls this or detaches it
 * @pending: which of both. Does not sleep.
 */
void accmem_bo_set_pending(struct accmem_bo *bo, bool pending)
{
	bo_set_pending(bo, pending);
	if (bo->shared)
		bo_lock_set_state(bo->shared->host,
				  pending ? ACCMEM_PENDING : ACCMEM_LIVE);
}

/**
 * accmem_bo_set_overdue() - a memory has been pending for too long
 * @bo: a pending memory; the carveout's lock is held
 */
void accmem_bo_set_overdue(struct accmem_bo *bo)
{
	bo_set_state(bo, ACCMEM_QUARANTINED);
	list_move_tail(&bo->link, &bo->cv->overdue);
	atomic64_add(bo->size, &bo->account->overdue);
}

static void bo_unname(struct accmem_bo *bo, bool detached)
{
	struct accmem_carveout *cv = bo->cv;

	accmem_carveout_lock(cv);
	if (bo->pending)
		bo_leave_pending(bo);
	if (detached)
		bo_set_state(bo, ACCMEM_DETACHED);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_bo_detach() - the last name of a memory has gone
 * @bo: the memory; the reference that was the name's goes with the call
 */
void accmem_bo_detach(struct accmem_bo *bo)
{
	/* without a name there is nobody to get a reference from */
	bool detached = kref_read(&bo->refs) > 1;

	if (bo->pending || detached) {
		bo_unname(bo, detached);
		if (bo->shared && detached)
			bo_lock_set_state(bo->shared->host, ACCMEM_DETACHED);
	}
	accmem_bo_put(bo);
}

/**
 * accmem_bo_create_empty() - make a memory that has nothing yet
 * @account: what it will be charged to
 * @cv: the carveout; NULL where it gets that with what it has
 * @private_size: bytes of accmem_bo.private
 *
 * Return: the memory, for accmem_runs_hand_off() or accmem_bo_destroy_empty();
 * NULL.
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
 * accmem_bo_destroy_empty() - give a memory back that has nothing
 * @bo: the memory. May sleep.
 */
void accmem_bo_destroy_empty(struct accmem_bo *bo)
{
	bo_destroy(bo);
}
