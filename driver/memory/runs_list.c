// SPDX-License-Identifier: GPL-2.0
/*
 * Lists of runs: which buffer objects have which parts of a carveout, for debugfs.
 *
 * A buffer object with a name is found through the addresses of its context. When it
 * loses the name and is not free, because it is detached or quarantined, the carveout
 * keeps it in a tree, in the order of the offsets. A walk through the tree remembers an
 * offset, so that it holds the lock for a bounded number of runs at a time.
 *
 * Locking: the carveout's lock guards the tree, and the runs of buffer objects.
 */
#include <linux/kernel.h>
#include <linux/rbtree.h>

#include "core/account.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/runs_list.h"

static struct accmem_bo *to_unnamed(const struct rb_node *node)
{
	return rb_entry(node, struct accmem_bo, unnamed_node);
}

static bool unnamed_is_below(struct rb_node *a, const struct rb_node *b)
{
	return to_unnamed(a)->runs[0].start < to_unnamed(b)->runs[0].start;
}

/**
 * accmem_unnamed_add() - add a buffer object that has lost its name to the tree
 * @bo: the buffer object; it may be in the tree already
 *
 * Context: The caller holds the carveout's lock. Does not sleep.
 */
void accmem_unnamed_add(struct accmem_bo *bo)
{
	lockdep_assert_held(&bo->cv->lock);
	if (RB_EMPTY_NODE(&bo->unnamed_node))
		rb_add(&bo->unnamed_node, &bo->cv->unnamed, unnamed_is_below);
}

/**
 * accmem_unnamed_remove() - remove a buffer object from the tree
 * @bo: the buffer object; it may be in no tree
 *
 * Context: The caller holds the carveout's lock. Does not sleep.
 */
void accmem_unnamed_remove(struct accmem_bo *bo)
{
	lockdep_assert_held(&bo->cv->lock);
	if (RB_EMPTY_NODE(&bo->unnamed_node))
		return;
	rb_erase(&bo->unnamed_node, &bo->cv->unnamed);
	RB_CLEAR_NODE(&bo->unnamed_node);
}

/**
 * accmem_bo_list_runs() - describe some runs of a buffer object
 * @bo: the buffer object
 * @first: index of the first run
 * @lines: out: the runs
 * @max: number of entries in @lines
 * @end: out: true if no run follows
 *
 * Context: The caller holds the carveout's lock. Does not sleep.
 * Return: the number of runs in @lines.
 */
unsigned int accmem_bo_list_runs(struct accmem_bo *bo, unsigned int first,
				 struct accmem_run_line *lines,
				 unsigned int max, bool *end)
{
	unsigned int i, nr;

	lockdep_assert_held(&bo->cv->lock);
	nr = first < bo->nr_runs ? min(bo->nr_runs - first, max) : 0;
	for (i = 0; i < nr; i++)
		lines[i] = (struct accmem_run_line){
			.start = bo->runs[first + i].start,
			.size = bo->runs[first + i].size,
			.carveout = bo->cv->index,
			.state = bo->state,
			.context = bo->account->id,
			.uid = bo->account->user->uid,
		};
	*end = first + nr >= bo->nr_runs;
	return nr;
}

/* Return the unnamed buffer object with the lowest offset from @start on, or NULL. */
static struct accmem_bo *unnamed_from(struct accmem_carveout *cv, u64 start)
{
	struct rb_node *node = cv->unnamed.rb_node;
	struct accmem_bo *found = NULL;

	lockdep_assert_held(&cv->lock);
	while (node) {
		if (to_unnamed(node)->runs[0].start >= start) {
			found = to_unnamed(node);
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return found;
}

/**
 * accmem_unnamed_list_runs() - describe some runs of buffer objects without a name
 * @cv: the carveout
 * @start: in: offset from which a buffer object's first run is searched; out: offset
 *	for the next call, or the capacity at the end
 * @first: in: index of the first run in that buffer object; out: for the next call
 * @lines: out: the runs, those of one buffer object
 * @max: number of entries in @lines
 *
 * Context: Takes and releases the carveout's lock. Does not sleep.
 * Return: the number of runs in @lines.
 */
unsigned int accmem_unnamed_list_runs(struct accmem_carveout *cv, u64 *start,
				      unsigned int *first,
				      struct accmem_run_line *lines,
				      unsigned int max)
{
	unsigned int nr = 0;
	struct accmem_bo *bo;
	bool end;

	accmem_carveout_lock(cv);
	bo = unnamed_from(cv, *start);
	if (bo) {
		/* The buffer object of the last call may be free meanwhile. */
		if (bo->runs[0].start != *start)
			*first = 0;
		nr = accmem_bo_list_runs(bo, *first, lines, max, &end);
		*start = bo->runs[0].start + end;
		*first = end ? 0 : *first + nr;
	} else {
		*start = cv->capacity;
	}
	accmem_carveout_unlock(cv);
	return nr;
}
