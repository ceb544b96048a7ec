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
#include "memory/clear.h"
#include "memory/memory.h"
#include "trace/trace.h"
#include "waitq/waiters.h"

#define MEMORY_REAP_DELAY msecs_to_jiffies(10)
#define MEMORY_SMALL ((u64)SZ_64K) /* cleared in one go */

/* its runs and its charges */
static int memory_take(struct accmem_memory *mem,
		       const struct accmem_memory_spec *spec)
{
	int err;

	if (spec->size > mem->cv->capacity ||
	    !accmem_waiters_admit(mem->cv, mem->account))
		return -ENOSPC;
	err = accmem_charge_buffers(mem->account, spec->buffers);
	if (err)
		return err;
	err = accmem_runs_take(mem, spec);
	if (err)
		accmem_uncharge_buffers(mem->account, spec->buffers);
	else
		accmem_count_allocs(mem->cv, spec->buffers);
	return err;
}

static struct accmem_memory *memory_alloc(struct accmem_account *account,
					  struct accmem_carveout *cv,
					  const struct accmem_memory_spec *spec)
{
	struct accmem_memory *mem;

	mem = kzalloc(struct_size(mem, private, spec->private_size),
		      GFP_KERNEL_ACCOUNT);
	if (!mem)
		return NULL;
	kref_init(&mem->refs);
	accmem_account_get(account);
	mem->account = account;
	mem->cv = cv;
	mem->size = spec->size;
	mem->huge = spec->huge;
	mem->cache_mode = spec->cache_mode;
	mem->buffers = spec->buffers;
	mem->state = ACCMEM_LIVE;
	INIT_LIST_HEAD(&mem->link);
	INIT_LIST_HEAD(&mem->own_link);
	mutex_init(&mem->lock);
	xa_init_flags(&mem->pages, XA_FLAGS_ACCOUNT);
	return mem;
}

static void memory_destroy(struct accmem_memory *mem)
{
	struct accmem_account *account = mem->account;

	/* one whose runs another has got keeps the array */
	accmem_runs_drop(mem);
	mutex_destroy(&mem->lock);
	kfree(mem);
	accmem_account_put(account);
}

/**
 * accmem_memory_extend_prepare() - take what lies right behind a memory
 * @mem: the memory, live, which the caller alone resizes
 * @size: bytes that it is to get at its end, a multiple of @page_size
 * @page_size: bytes; what is taken begins at a multiple of it
 * @more: out: what was taken. It is charged, live, and reads as zero; nobody sees
 *	it before accmem_memory_extend(), which follows. Sleeps.
 *
 * Return: 0; -ENOSPC where not all of it is free, -EDQUOT for a limit: both as for
 * accmem_memory_create(); -ENOMEM, -EINTR.
 */
int accmem_memory_extend_prepare(struct accmem_memory *mem, u64 size,
				 u64 page_size, struct accmem_run *more)
{
	struct accmem_carveout *cv = mem->cv;
	int err;

	if (!accmem_waiters_admit(cv, mem->account))
		return -ENOSPC;
	err = accmem_run_take_behind(mem, size, page_size, more);
	if (err)
		return err;
	err = cv->ops->extend ? cv->ops->extend(mem, more) : 0;
	if (err)
		accmem_run_give_back(mem, more);
	return err;
}

/**
 * accmem_memory_extend() - let a memory have what lies right behind it
 * @mem: the memory
 * @more: of accmem_memory_extend_prepare(). Does not sleep.
 */
void accmem_memory_extend(struct accmem_memory *mem,
			  const struct accmem_run *more)
{
	accmem_carveout_lock(mem->cv);
	accmem_runs_lengthen(mem, more->size);
	accmem_carveout_unlock(mem->cv);
}

static void memory_drop_shared(struct accmem_memory *mem)
{
	if (!mem->shared)
		return;
	accmem_memory_put(mem->shared->host);
	mutex_destroy(&mem->shared->lock);
	kvfree(mem->shared);
}

static void memory_give_back(struct accmem_memory *mem)
{
	trace_accmem_release(mem, mem->size, mem->nr_runs);
	memory_drop_shared(mem);
	if (mem->cv->ops->release)
		mem->cv->ops->release(mem);
	accmem_runs_give(mem);
	accmem_uncharge_buffers(mem->account, mem->buffers);
	accmem_count_frees(mem->cv, mem->buffers);
}

/* memory on its way to a waiter */
struct offer {
	struct accmem_memory *mem;
	bool is_seen; /* by others who wait, of its user: they are charged less */
};

static bool memory_has_waiters(const struct accmem_memory *mem,
			       const struct accmem_waiter *but)
{
	const struct accmem_user *user = mem->account->user;

	return user != but->account->user ||
	       user->waiting[mem->cv->dev->index].nr > 1;
}

/* for accmem_waiters_offer() */
static bool memory_give_to(struct accmem_waiter *w, void *arg)
{
	struct offer *offer = arg;
	struct accmem_memory *mem = offer->mem;

	if (!accmem_charge_buffer(w->account, w->exempt))
		return false;
	if (accmem_runs_hand_over(mem, w->gift.mem, w->exempt)) {
		accmem_uncharge_buffers(w->account, 1);
		return false;
	}
	w->gift.dirty = mem->account != w->account;
	offer->is_seen = memory_has_waiters(mem, w);
	return true;
}

/*
 * Who waits for just this has it as it is. What was ever mapped is not: there may be
 * pages, and entries of page tables, that know whose it was.
 */
static bool memory_hand_over(struct accmem_memory *mem)
{
	struct offer offer = { .mem = mem };

	if (accmem_memory_was_mapped(mem) || mem->nr_runs != 1 ||
	    mem->buffers != 1 || mem->size != mem->run.size || mem->shared ||
	    !xa_empty(&mem->pages))
		return false;
	if (!accmem_waiters_offer(mem->cv, &mem->run, mem->cache_mode,
				  memory_give_to, &offer))
		return false;
	trace_accmem_release(mem, mem->size, 1);
	accmem_uncharge_buffers(mem->account, 1);
	accmem_count_frees(mem->cv, 1);
	accmem_count_allocs(mem->cv, 1);
	if (offer.is_seen)
		accmem_waiters_sank(mem->account->dev, mem->account->user);
	memory_destroy(mem);
	return true;
}

/**
 * accmem_memory_free() - give memory back for good
 * @mem: the memory, to which nobody refers, nor to its pages. Sleeps, allocates
 *	nothing.
 */
void accmem_memory_free(struct accmem_memory *mem)
{
	if (accmem_waiters_present() && memory_hand_over(mem))
		return;
	memory_give_back(mem);
	accmem_waiters_came_back(mem->account->dev, mem->account->user);
	memory_destroy(mem);
}

/**
 * accmem_memory_undo() - undo accmem_memory_create()
 * @mem: the memory, to which only the caller has ever referred. Sleeps.
 *
 * Nobody is woken, for the request may be a waiter, and would find no more than before:
 * who makes it tells of its end (accmem_alloc_ended()).
 */
void accmem_memory_undo(struct accmem_memory *mem)
{
	memory_give_back(mem);
	memory_destroy(mem);
}

/* has what it was given read as zero */
static int memory_clean(struct accmem_memory *mem)
{
	if (!mem->cv->units)
		return 0;
	if (mem->size <= MEMORY_SMALL)
		return mem->cv->ops->zero(mem, 0, mem->size);
	accmem_clear_touch(mem->cv, &mem->run);
	return mem->cv->ops->prepare(mem);
}

/**
 * accmem_memory_accept() - make memory ready that was handed over
 * @mem: of accmem_runs_hand_over(), which nobody else knows of. Sleeps.
 * @huge: enum accmem_layout_huge
 * @dirty: bytes of another account may be in it
 *
 * It reads as zero then.
 *
 * Return: 0; -ENOMEM, -EINTR, and it has been given back.
 */
int accmem_memory_accept(struct accmem_memory *mem, u32 huge, bool dirty)
{
	int err;

	mem->huge = huge;
	mem->buffers = 1;
	err = dirty ? memory_clean(mem) : 0;
	if (!err)
		return 0;
	/* not even its account may have it as it is */
	accmem_clear_touch(mem->cv, &mem->run);
	accmem_memory_undo(mem);
	return err;
}

/**
 * accmem_memory_create() - take memory and make it ready
 * @account: what it is charged to
 * @cv: the carveout
 * @spec: what is wanted
 *
 * It reads as zero, and is live.
 *
 * Return: the memory, with a reference; -ENOSPC where there is no room, which
 * may be had by reclaiming; -EDQUOT for a limit, likewise; -ENOMEM, -EINTR.
 */
struct accmem_memory *
accmem_memory_create(struct accmem_account *account, struct accmem_carveout *cv,
		     const struct accmem_memory_spec *spec)
{
	struct accmem_memory *mem = memory_alloc(account, cv, spec);
	int err;

	if (!mem)
		return ERR_PTR(-ENOMEM);
	err = memory_take(mem, spec);
	if (err) {
		memory_destroy(mem);
		return ERR_PTR(err);
	}
	err = cv->ops->prepare ? cv->ops->prepare(mem) : 0;
	if (!err && spec->flags & ACCMEM_ALLOC_POPULATE && cv->ops->populate)
		err = cv->ops->populate(mem, 0);
	if (err) {
		accmem_memory_undo(mem);
		return ERR_PTR(err);
	}
	return mem;
}

static void memory_set_state(struct accmem_memory *mem, enum accmem_state state)
{
	struct accmem_carveout *cv = mem->cv;

	accmem_carveout_set_state(cv, mem->state, state, mem->size);
	mem->state = state;
}

/* for the host's side of shared memory, which no list has */
static void memory_lock_set_state(struct accmem_memory *mem,
				  enum accmem_state state)
{
	accmem_carveout_lock(mem->cv);
	memory_set_state(mem, state);
	accmem_carveout_unlock(mem->cv);
}

static void memory_quarantine(struct accmem_memory *mem)
{
	struct accmem_carveout *cv = mem->cv;
	struct accmem_quarantine *own = &mem->account->quarantine[cv->index];

	/* never the first reference: a file of ours is being closed */
	__module_get(THIS_MODULE);
	accmem_carveout_lock(cv);
	memory_set_state(mem, ACCMEM_QUARANTINED);
	if (!cv->nr_quarantined)
		WRITE_ONCE(cv->reap_delay, MEMORY_REAP_DELAY);
	WRITE_ONCE(cv->nr_quarantined, cv->nr_quarantined + 1);
	WRITE_ONCE(own->nr, own->nr + 1);
	list_add_tail(&mem->link, &cv->quarantine);
	list_add_tail(&mem->own_link, &own->memory);
	accmem_carveout_unlock(cv);
	queue_delayed_work(accmem_wq, &cv->reap_work, MEMORY_REAP_DELAY);
}

/**
 * accmem_memory_is_idle() - does nobody have pages of a memory?
 * @mem: the memory, of which the caller knows all references
 *
 * Return: true if so. False may turn into true later without notice. Does not
 * sleep.
 */
bool accmem_memory_is_idle(struct accmem_memory *mem)
{
	return !accmem_memory_was_mapped(mem) || !mem->cv->ops->idle ||
	       mem->cv->ops->idle(mem);
}

/**
 * accmem_memory_shed() - give some pages of a memory back, before all of it goes
 * @mem: the memory, to which nobody refers, or nobody but the caller
 * @all: also those that come after a page that somebody else has
 *
 * For who gives it back under a lock that others take: pages are what takes long. The
 * memory stays what it is, and where it is found. Sleeps.
 *
 * Return: whether there are pages left to look at.
 */
bool accmem_memory_shed(struct accmem_memory *mem, bool all)
{
	struct accmem_memory *host = mem->shared ? mem->shared->host : NULL;

	if (host && host->cv->ops->shed(host, all))
		return true;
	return mem->cv->ops->shed && mem->cv->ops->shed(mem, all);
}

static void memory_release(struct kref *refs)
{
	struct accmem_memory *mem =
		container_of(refs, struct accmem_memory, refs);

	if (accmem_memory_is_idle(mem))
		accmem_memory_free(mem);
	else
		memory_quarantine(mem);
}

void accmem_memory_get(struct accmem_memory *mem)
{
	kref_get(&mem->refs);
}

/**
 * accmem_memory_put() - drop a reference
 * @mem: the memory
 *
 * The last one gives it back, or quarantines it. May sleep.
 */
void accmem_memory_put(struct accmem_memory *mem)
{
	kref_put(&mem->refs, memory_release);
}

/**
 * accmem_memory_put_user() - drop the reference of who was at work on a memory
 * @mem: the memory
 *
 * As accmem_memory_put(). What is pending may be had by a request on its stream when
 * nobody is at it any more, and units of a slab page by any of its context.
 */
void accmem_memory_put_user(struct accmem_memory *mem)
{
	struct accmem_account *account = mem->account;

	if (!READ_ONCE(mem->pending) && !READ_ONCE(mem->awaited)) {
		accmem_memory_put(mem);
		return;
	}
	accmem_account_get(account);
	accmem_memory_put(mem);
	accmem_waiters_came_back(account->dev, account->user);
	accmem_account_put(account);
}

static void memory_leave_pending(struct accmem_memory *mem)
{
	lockdep_assert_held(&mem->cv->lock);
	WRITE_ONCE(mem->pending, false);
	list_del_init(&mem->link);
	if (mem->state == ACCMEM_QUARANTINED)
		atomic64_sub(mem->size, &mem->account->overdue);
}

static void memory_set_pending(struct accmem_memory *mem, bool pending)
{
	struct accmem_carveout *cv = mem->cv;

	accmem_carveout_lock(cv);
	if (pending) {
		WRITE_ONCE(mem->pending, true);
		mem->since = jiffies;
		list_add_tail(&mem->link, &cv->pending);
	} else {
		memory_leave_pending(mem);
	}
	memory_set_state(mem, pending ? ACCMEM_PENDING : ACCMEM_LIVE);
	accmem_carveout_unlock(cv);
	if (pending)
		accmem_overdue_watch(cv);
}

/**
 * accmem_memory_set_pending() - the free of a memory begins to wait, or is undone
 * @mem: the memory; nobody else calls this or detaches it
 * @pending: which of both. Does not sleep.
 */
void accmem_memory_set_pending(struct accmem_memory *mem, bool pending)
{
	memory_set_pending(mem, pending);
	if (mem->shared)
		memory_lock_set_state(mem->shared->host,
				      pending ? ACCMEM_PENDING : ACCMEM_LIVE);
}

/**
 * accmem_memory_set_overdue() - a memory has been pending for too long
 * @mem: a pending memory; the carveout's lock is held
 */
void accmem_memory_set_overdue(struct accmem_memory *mem)
{
	memory_set_state(mem, ACCMEM_QUARANTINED);
	list_move_tail(&mem->link, &mem->cv->overdue);
	atomic64_add(mem->size, &mem->account->overdue);
}

static void memory_lose_name(struct accmem_memory *mem, bool detached)
{
	struct accmem_carveout *cv = mem->cv;

	accmem_carveout_lock(cv);
	if (mem->pending)
		memory_leave_pending(mem);
	if (detached)
		memory_set_state(mem, ACCMEM_DETACHED);
	accmem_carveout_unlock(cv);
}

/**
 * accmem_memory_detach() - the last name of a memory has gone
 * @mem: the memory; the reference that was the name's goes with the call
 */
void accmem_memory_detach(struct accmem_memory *mem)
{
	/* without a name there is nobody to get a reference from */
	bool detached = kref_read(&mem->refs) > 1;

	if (mem->pending || detached) {
		memory_lose_name(mem, detached);
		if (mem->shared && detached)
			memory_lock_set_state(mem->shared->host,
					      ACCMEM_DETACHED);
	}
	accmem_memory_put(mem);
}

/**
 * accmem_memory_create_empty() - make a memory that has nothing yet
 * @account: what it will be charged to
 * @cv: the carveout; NULL where it gets that with what it has
 * @private_size: bytes of accmem_memory.private
 *
 * Return: the memory, for accmem_runs_hand_over() or accmem_memory_destroy_empty();
 * NULL.
 */
struct accmem_memory *accmem_memory_create_empty(struct accmem_account *account,
						 struct accmem_carveout *cv,
						 u32 private_size)
{
	const struct accmem_memory_spec spec = {
		.private_size = private_size,
	};

	return memory_alloc(account, cv, &spec);
}

/**
 * accmem_memory_destroy_empty() - give a memory back that has nothing
 * @mem: the memory. May sleep.
 */
void accmem_memory_destroy_empty(struct accmem_memory *mem)
{
	memory_destroy(mem);
}
