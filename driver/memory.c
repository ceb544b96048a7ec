// SPDX-License-Identifier: GPL-2.0
/*
 * Memory: taken from a carveout, charged, made ready, and given back.
 *
 * The only caller of the allocator but for the cleaner. Work under the
 * carveout's lock is bounded: memory of many runs is taken and given in
 * batches, and an exact search goes on in steps. A run is charged in the hold
 * that places it, for where it lies decides what it withholds from others.
 *
 * Giving back allocates nothing. Quarantined memory holds the module.
 *
 * Locks: the carveout's, with none held by the caller.
 */
#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "clear.h"
#include "device.h"
#include "memory.h"
#include "overdue.h"
#include "trace.h"

#define MEMORY_BATCH 64u /* runs taken or given in one hold of the lock */
#define MEMORY_REAP_DELAY msecs_to_jiffies(10)

static void run_give(struct accmem_memory *mem, u64 start, u64 size)
{
	lockdep_assert_held(&mem->cv->lock);
	WARN_ON_ONCE(accmem_buddy_free_owned(&mem->cv->buddy, start, size,
					     mem->account->id));
}

/* @run has been placed: it is charged and live, or given back again */
static int run_charge(struct accmem_memory *mem, const struct accmem_run *run,
		      bool exempt)
{
	struct accmem_carveout *cv = mem->cv;
	u64 claimed = accmem_buddy_claimed(&cv->buddy, run->start, run->size);
	int err;

	lockdep_assert_held(&cv->lock);
	err = accmem_charge(mem->account, claimed, exempt);
	if (err)
		run_give(mem, run->start, run->size);
	else
		cv->bytes[ACCMEM_LIVE] += run->size;
	return err;
}

static int run_place(struct accmem_memory *mem,
		     const struct accmem_buddy_request *req, bool exempt,
		     struct accmem_run *run)
{
	struct accmem_carveout *cv = mem->cv;
	int err;

	run->size = req->size;
	accmem_carveout_lock(cv);
	err = accmem_buddy_alloc(&cv->buddy, req, &run->start);
	if (!err)
		err = run_charge(mem, run, exempt);
	accmem_carveout_unlock(cv);
	return err;
}

/* where others' folios hid the room: in as many holds as it takes */
static int run_search(struct accmem_memory *mem,
		      const struct accmem_buddy_request *req, bool exempt,
		      struct accmem_run *run)
{
	struct accmem_carveout *cv = mem->cv;
	u64 cursor = 0;
	int err;

	run->size = req->size;
	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		accmem_carveout_lock(cv);
		err = accmem_buddy_alloc_scan(&cv->buddy, req, &cursor,
					      &run->start);
		if (!err)
			err = run_charge(mem, run, exempt);
		accmem_carveout_unlock(cv);
	} while (err == -EAGAIN);
	return err;
}

/* at the start of a folio: it claims as few as its size allows */
static int run_place_aligned(struct accmem_memory *mem,
			     const struct accmem_buddy_request *req,
			     bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request aligned = *req;

	aligned.align = max_t(u64, req->align, ACCMEM_FOLIO);
	return run_place(mem, &aligned, exempt, run);
}

/* in folios that are charged already, or else where it claims few new ones */
static int run_place_frugally(struct accmem_memory *mem,
			      const struct accmem_buddy_request *req,
			      bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request own = *req;
	int err;

	own.flags = ACCMEM_BUDDY_OWN;
	err = run_search(mem, &own, exempt, run);
	if (err == -ENOSPC)
		err = run_place_aligned(mem, req, exempt, run);
	return err == -ENOSPC ? -EDQUOT : err;
}

/* where folios have owners, and what a run withholds depends on where it lies */
static int run_place_owned(struct accmem_memory *mem,
			   const struct accmem_buddy_request *req, bool exempt,
			   struct accmem_run *run)
{
	int err = -ENOSPC;

	/* two folios of which it has a part each would be charged in whole */
	if (req->size >= ACCMEM_FOLIO && accmem_charge_is_limited())
		err = run_place_aligned(mem, req, exempt, run);
	if (err == -ENOSPC)
		err = run_place(mem, req, exempt, run);
	if (err == -ENOSPC)
		err = run_search(mem, req, exempt, run);
	if (err == -EDQUOT)
		err = run_place_frugally(mem, req, exempt, run);
	return err;
}

/* one run: placed, charged and live */
static int run_take(struct accmem_memory *mem,
		    const struct accmem_buddy_request *req, bool exempt,
		    struct accmem_run *run)
{
	return mem->cv->owners ? run_place_owned(mem, req, exempt, run) :
				 run_place(mem, req, exempt, run);
}

/* a run at the start of room to grow into, which stays free */
static int run_place_in_room(struct accmem_memory *mem,
			     const struct accmem_buddy_request *req, u64 room,
			     bool exempt, struct accmem_run *run)
{
	struct accmem_buddy_request wide = *req;
	struct accmem_carveout *cv = mem->cv;
	int err;

	wide.size = room;
	run->size = req->size;
	accmem_carveout_lock(cv);
	err = accmem_buddy_alloc(&cv->buddy, &wide, &run->start);
	if (!err) {
		run_give(mem, run->start + run->size, room - run->size);
		err = run_charge(mem, run, exempt);
	}
	accmem_carveout_unlock(cv);
	return err;
}

/* what identity translation makes of a device address */
static void memory_ask_for_address(struct accmem_buddy_request *req,
				   const struct accmem_memory_spec *spec)
{
	req->align = max(req->align, spec->alignment);
	if (!(spec->flags & ACCMEM_ALLOC_FIXED))
		return;
	req->start = spec->start;
	req->end = spec->start + spec->size;
}

/* identity translation, or one run asked for */
static int memory_take_run(struct accmem_memory *mem,
			   const struct accmem_memory_spec *spec, bool exempt)
{
	struct accmem_buddy_request req = {
		.size = spec->size,
		.align = max_t(u64, ACCMEM_GRANULE, spec->page_size),
		.owner = mem->account->id,
		.flags = spec->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN : 0,
	};
	int err = -ENOSPC;

	if (mem->cv->translation == ACCMEM_TRANSLATION_IDENTITY)
		memory_ask_for_address(&req, spec);
	if (spec->room > spec->size && !req.end)
		err = run_place_in_room(mem, &req, spec->room, exempt,
					&mem->run);
	if (err)
		err = run_take(mem, &req, exempt, &mem->run);
	if (err)
		return err;
	mem->runs = &mem->run;
	mem->nr_runs = 1;
	return 0;
}

static int memory_grow_runs(struct accmem_memory *mem, unsigned int capacity)
{
	struct accmem_run *runs;

	runs = kvmalloc_array(capacity, sizeof(*runs),
			      GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!runs)
		return -ENOMEM;
	if (mem->nr_runs)
		memcpy(runs, mem->runs, mem->nr_runs * sizeof(*runs));
	if (mem->runs != &mem->run)
		kvfree(mem->runs);
	mem->runs = runs;
	return 0;
}

/* the @nr runs from @runs on, that hold @size bytes together */
static int runs_charge(struct accmem_memory *mem, const struct accmem_run *runs,
		       unsigned int nr, u64 size, bool exempt)
{
	struct accmem_carveout *cv = mem->cv;
	int err;

	lockdep_assert_held(&cv->lock);
	err = accmem_charge(mem->account, size, exempt);
	if (!err) {
		cv->bytes[ACCMEM_LIVE] += size;
		return 0;
	}
	while (nr--)
		run_give(mem, runs[nr].start, runs[nr].size);
	return err;
}

/* as much of @size bytes as one batch of runs can hold */
static int memory_take_batch(struct accmem_memory *mem,
			     const struct accmem_memory_spec *spec, u64 size,
			     bool exempt, u64 *taken)
{
	struct accmem_carveout *cv = mem->cv;
	struct accmem_run *runs = mem->runs + mem->nr_runs;
	struct accmem_buddy_request req = {
		.size = size,
		.align = spec->page_size,
		.flags = spec->flags & ACCMEM_ALLOC_TOP_DOWN ?
				 ACCMEM_BUDDY_TOP_DOWN : 0,
	};
	unsigned int nr;
	int err;

	for (;;) {
		accmem_carveout_lock(cv);
		err = accmem_buddy_alloc_runs(&cv->buddy, &req, runs,
					      MEMORY_BATCH, &nr);
		if (!err)
			err = runs_charge(mem, runs, nr, req.size, exempt);
		accmem_carveout_unlock(cv);
		if (err != -E2BIG || req.size <= req.align)
			break;
		req.size = round_up(req.size / 2, req.align);
		cond_resched();
	}
	if (err)
		return err;
	mem->nr_runs += nr;
	*taken = req.size;
	return 0;
}

/* one run, whose pages nobody else has; its state says where it is counted */
static void memory_give_run(struct accmem_memory *mem,
			    const struct accmem_run *run)
{
	struct accmem_carveout *cv = mem->cv;
	u64 released = accmem_buddy_claimed(&cv->buddy, run->start, run->size);

	lockdep_assert_held(&cv->lock);
	if (cv->units)
		accmem_clear_release(cv, run, mem->account->id);
	run_give(mem, run->start, run->size);
	WRITE_ONCE(cv->bytes[mem->state], cv->bytes[mem->state] - run->size);
	accmem_uncharge(mem->account, released);
}

/* were they @mapped? Sleeps. */
static void runs_release_units(struct accmem_memory *mem,
			       const struct accmem_run *runs, unsigned int nr,
			       bool mapped)
{
	unsigned int i;

	for (i = 0; mem->cv->units && i < nr; i++)
		accmem_clear_release_units(mem->cv, &runs[i], mem->account->id,
					   mapped);
}

/* runs of @size bytes together; were they @mapped? */
static void runs_give_back(struct accmem_memory *mem,
			   const struct accmem_run *runs, unsigned int nr,
			   u64 size, bool mapped)
{
	struct accmem_carveout *cv = mem->cv;
	unsigned int i;

	if (size >= ACCMEM_FOLIO)
		runs_release_units(mem, runs, nr, mapped);
	accmem_carveout_lock(cv);
	for (i = 0; i < nr; i++) {
		if (i && !(i % MEMORY_BATCH)) {
			accmem_carveout_unlock(cv);
			cond_resched();
			accmem_carveout_lock(cv);
		}
		memory_give_run(mem, &runs[i]);
	}
	accmem_carveout_unlock(cv);
	accmem_clear_kick(cv, mapped);
}

static void memory_drop_runs(struct accmem_memory *mem)
{
	if (mem->runs != &mem->run)
		kvfree(mem->runs);
	mem->runs = NULL;
	mem->nr_runs = 0;
}

static void memory_give_runs(struct accmem_memory *mem)
{
	runs_give_back(mem, mem->runs, mem->nr_runs, mem->size, mem->mapped);
	memory_drop_runs(mem);
}

/* an array of one run is none */
static void memory_trim_runs(struct accmem_memory *mem)
{
	if (mem->nr_runs != 1)
		return;
	mem->run = mem->runs[0];
	kvfree(mem->runs);
	mem->runs = &mem->run;
}

/* mapped translation: several runs will do */
static int memory_take_runs(struct accmem_memory *mem,
			    const struct accmem_memory_spec *spec, bool exempt)
{
	u64 left = spec->size, most = left, taken;
	unsigned int capacity = 0;
	int err;

	while (left) {
		if (capacity - mem->nr_runs < MEMORY_BATCH) {
			capacity = max_t(unsigned int, MEMORY_BATCH,
					 2 * capacity);
			err = memory_grow_runs(mem, capacity);
			if (err)
				goto err;
		}
		err = -EINTR;
		if (fatal_signal_pending(current))
			goto err;
		err = memory_take_batch(mem, spec, min(left, most), exempt,
					&taken);
		if (err)
			goto err;
		left -= taken;
		/* no more than that was to be had; it may get better again */
		most = 2 * taken;
	}
	memory_trim_runs(mem);
	return 0;

err:
	memory_give_runs(mem);
	return err;
}

static int memory_take_any(struct accmem_memory *mem,
			   const struct accmem_memory_spec *spec, bool exempt)
{
	int err;

	if (mem->cv->translation == ACCMEM_TRANSLATION_IDENTITY ||
	    spec->flags & ACCMEM_ALLOC_CONTIGUOUS)
		return memory_take_run(mem, spec, exempt);
	/* one run is the common case, and needs no array */
	err = memory_take_run(mem, spec, exempt);
	return err == -ENOSPC ? memory_take_runs(mem, spec, exempt) : err;
}

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
	err = memory_take_any(mem, spec, false);
	if (err == -EDQUOT && capable(CAP_SYS_RESOURCE))
		err = memory_take_any(mem, spec, true);
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
	struct accmem_memory *mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);

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
	memory_drop_runs(mem);
	mutex_destroy(&mem->lock);
	kfree(mem);
	accmem_account_put(account);
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
struct accmem_memory *accmem_memory_create(struct accmem_account *account,
					   struct accmem_carveout *cv,
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
		accmem_memory_put(mem);
		return ERR_PTR(err);
	}
	return mem;
}

static struct accmem_run *memory_last_run(struct accmem_memory *mem)
{
	return &mem->runs[mem->nr_runs - 1];
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
	const struct accmem_run *last = memory_last_run(mem);
	struct accmem_carveout *cv = mem->cv;
	const struct accmem_buddy_request req = {
		.size = size,
		.align = page_size,
		.start = last->start + last->size,
		.end = last->start + last->size + size,
		.owner = mem->account->id,
	};
	int err;

	if (size > cv->capacity || req.end > cv->capacity ||
	    !accmem_waiters_admit(cv, mem->account))
		return -ENOSPC;
	err = run_take(mem, &req, false, more);
	if (err == -EDQUOT && capable(CAP_SYS_RESOURCE))
		err = run_take(mem, &req, true, more);
	if (err)
		return err;
	err = cv->ops->extend ? cv->ops->extend(mem, more) : 0;
	if (err)
		runs_give_back(mem, more, 1, size, false);
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
	struct accmem_run *last = memory_last_run(mem);
	struct accmem_carveout *cv = mem->cv;

	accmem_carveout_lock(cv);
	last->size += more->size;
	if (mem->nr_runs == 1)
		mem->run = mem->runs[0];
	WRITE_ONCE(mem->size, mem->size + more->size);
	accmem_carveout_unlock(cv);
}

static void memory_drop_shared(struct accmem_memory *mem)
{
	if (!mem->shared)
		return;
	accmem_memory_put(mem->shared->host);
	mutex_destroy(&mem->shared->lock);
	kvfree(mem->shared);
}

/**
 * accmem_memory_free() - give memory back for good
 * @mem: the memory, to which nobody refers, nor to its pages. Sleeps, allocates
 *	nothing.
 */
void accmem_memory_free(struct accmem_memory *mem)
{
	trace_accmem_release(mem, mem->size, mem->nr_runs);
	memory_drop_shared(mem);
	if (mem->cv->ops->release)
		mem->cv->ops->release(mem);
	memory_give_runs(mem);
	accmem_uncharge_buffers(mem->account, mem->buffers);
	accmem_count_frees(mem->cv, mem->buffers);
	accmem_waiters_came_back(mem->account->dev, mem->account->user);
	memory_destroy(mem);
}

static void memory_set_state(struct accmem_memory *mem, enum accmem_state state)
{
	struct accmem_carveout *cv = mem->cv;

	lockdep_assert_held(&cv->lock);
	WRITE_ONCE(cv->bytes[mem->state], cv->bytes[mem->state] - mem->size);
	WRITE_ONCE(cv->bytes[state], cv->bytes[state] + mem->size);
	mem->state = state;
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

static void memory_leave_pending(struct accmem_memory *mem)
{
	lockdep_assert_held(&mem->cv->lock);
	mem->pending = false;
	list_del_init(&mem->link);
	if (mem->state == ACCMEM_QUARANTINED)
		atomic64_sub(mem->size, &mem->account->overdue);
}

/**
 * accmem_memory_set_pending() - the free of a memory begins to wait, or is undone
 * @mem: the memory; nobody else calls this or detaches it
 * @pending: which of both. Does not sleep.
 */
void accmem_memory_set_pending(struct accmem_memory *mem, bool pending)
{
	struct accmem_carveout *cv = mem->cv;

	accmem_carveout_lock(cv);
	if (pending) {
		mem->pending = true;
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
 * accmem_memory_set_overdue() - a memory has been pending for too long
 * @mem: a pending memory; the carveout's lock is held
 */
void accmem_memory_set_overdue(struct accmem_memory *mem)
{
	memory_set_state(mem, ACCMEM_QUARANTINED);
	list_move_tail(&mem->link, &mem->cv->overdue);
	atomic64_add(mem->size, &mem->account->overdue);
}

/**
 * accmem_memory_detach() - the last name of a memory has gone
 * @mem: the memory; the reference that was the name's goes with the call
 */
void accmem_memory_detach(struct accmem_memory *mem)
{
	struct accmem_carveout *cv = mem->cv;

	/* without a name there is nobody to get a reference from */
	if (mem->pending || kref_read(&mem->refs) > 1) {
		accmem_carveout_lock(cv);
		if (mem->pending)
			memory_leave_pending(mem);
		if (kref_read(&mem->refs) > 1)
			memory_set_state(mem, ACCMEM_DETACHED);
		accmem_carveout_unlock(cv);
	}
	accmem_memory_put(mem);
}

/* a part of it has gone */
static void memory_shrink(struct accmem_memory *mem, u64 size)
{
	lockdep_assert_held(&mem->cv->lock);
	mem->size -= size;
	if (mem->pending && mem->state == ACCMEM_QUARANTINED)
		atomic64_sub(size, &mem->account->overdue);
}

/**
 * accmem_memory_give_parts() - give parts of a memory back
 * @mem: the memory: one run, which has never been mapped nor populated, and to
 *	which nobody refers but those who share it
 * @parts: the parts
 * @nr: how many
 * @buffers: how many buffers these were
 *
 * Sleeps, allocates nothing.
 *
 * Return: whether nothing is left of it: then it has gone.
 */
bool accmem_memory_give_parts(struct accmem_memory *mem,
			      const struct accmem_run *parts, unsigned int nr,
			      u64 buffers)
{
	struct accmem_carveout *cv = mem->cv;
	unsigned int i;
	bool gone;

	/* without the last part, what the memory is charged to may go */
	accmem_uncharge_buffers(mem->account, buffers);
	/* together they may be all of a unit, and one part */
	runs_release_units(mem, parts, nr, false);
	accmem_carveout_lock(cv);
	for (i = 0; i < nr; i++) {
		trace_accmem_release(mem, parts[i].size, 1);
		memory_give_run(mem, &parts[i]);
		memory_shrink(mem, parts[i].size);
	}
	mem->buffers -= buffers;
	gone = !mem->size;
	if (gone && mem->pending)
		memory_leave_pending(mem);
	accmem_carveout_unlock(cv);
	accmem_count_frees(cv, buffers);
	accmem_clear_kick(cv, false);
	if (gone)
		memory_destroy(mem);
	return gone;
}

/**
 * accmem_memory_create_empty() - make a memory that has nothing yet
 * @account: what it will be charged to
 * @cv: the carveout; NULL before accmem_memory_move_part()
 *
 * Return: the memory, for accmem_memory_move_part() or
 * accmem_memory_destroy_empty(); NULL.
 */
struct accmem_memory *accmem_memory_create_empty(struct accmem_account *account,
						 struct accmem_carveout *cv)
{
	const struct accmem_memory_spec spec = {};

	return memory_alloc(account, cv, &spec);
}

/**
 * accmem_memory_move_part() - make a part of a memory one of its own
 * @from: the memory, as for accmem_memory_give_parts()
 * @to: gets it, as one buffer; an empty memory of the same account
 * @part: the part
 *
 * Does not sleep.
 *
 * Return: whether @from is empty now.
 */
bool accmem_memory_move_part(struct accmem_memory *from,
			     struct accmem_memory *to,
			     const struct accmem_run *part)
{
	struct accmem_carveout *cv = from->cv;
	bool empty;

	to->cv = cv;
	to->size = part->size;
	to->huge = from->huge;
	to->cache_mode = from->cache_mode;
	to->buffers = 1;
	to->run = *part;
	to->runs = &to->run;
	to->nr_runs = 1;
	accmem_carveout_lock(cv);
	/* without it, all that is left may be pending */
	WRITE_ONCE(cv->bytes[from->state], cv->bytes[from->state] - part->size);
	WRITE_ONCE(cv->bytes[to->state], cv->bytes[to->state] + part->size);
	memory_shrink(from, part->size);
	from->buffers--;
	empty = !from->size;
	accmem_carveout_unlock(cv);
	return empty;
}

/**
 * accmem_memory_destroy_empty() - give a memory back that has nothing
 * @mem: the memory. May sleep.
 */
void accmem_memory_destroy_empty(struct accmem_memory *mem)
{
	memory_destroy(mem);
}
