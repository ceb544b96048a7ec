// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: the file runs, which lists the runs of the carveouts with their owners. Memory
 * that is just being cleared, allocated or freed is not in the list.
 *
 * The file lists in this order: the memory with device addresses, context by context;
 * for each carveout the memory without a name, the free memory, and the retired memory. A
 * record of seq_file is a batch of at most RUNS lines. The position of the
 * walk is in the private data of the open file, and each batch continues there. A batch
 * is kept until the next one, since seq_file may print it again into a larger buffer.
 *
 * Locking: the locks of contexts and of carveouts are held for one batch at most. No
 * lock is held while a batch is printed.
 */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>

#include "core/account.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "debugfs_runs.h"
#include "memory/runs_list.h"
#include "types/device_types.h"
#include "vm/context.h"
#include "vm/list.h"
#include "vm/lookup.h"

#define RUNS 32u /* lines of a batch */

/**
 * enum part - parts of the file, in their order
 * @PART_NAMED: memory with device addresses
 * @PART_UNNAMED: detached and quarantined memory of a carveout
 * @PART_FREE: free memory of a carveout
 * @PART_RETIRED: retired memory of a carveout
 * @PART_END: end of the file
 */
enum part {
	PART_NAMED,
	PART_UNNAMED,
	PART_FREE,
	PART_RETIRED,
	PART_END,
};

/**
 * struct runs_walk - position in the file, and the batch there
 * @dev: device
 * @pos: number of the batch, as seq_file counts
 * @part: part of the file that the next batch continues
 * @id: PART_NAMED: number of the account
 * @at: PART_NAMED: device address; else: offset in the carveout
 * @first: number of runs of the buffer object at @at that are listed already
 * @cv: carveout
 * @shown: enum part of the lines in the batch
 * @nr: number of lines in the batch
 * @lines: batch
 */
struct runs_walk {
	struct accmem_device *dev;
	loff_t pos;
	enum part part;
	unsigned long id;
	u64 at;
	unsigned int first;
	unsigned int cv;
	enum part shown;
	unsigned int nr;
	struct accmem_run_line lines[RUNS];
};

/* Add lines of the next context that has some. Return false after the last context. */
static bool runs_fill_named(struct runs_walk *w)
{
	struct accmem_account *account;
	unsigned long id = w->id;
	struct accmem_context *ctx;

	account = accmem_account_next(&w->dev->accounts, &id);
	if (!account)
		return false;
	if (account->id != w->id) {
		w->at = 0;
		w->first = 0;
	}
	w->id = account->id;
	ctx = accmem_context_of_any(account);
	if (ctx) {
		w->nr = accmem_context_list_runs(ctx, &w->at, &w->first,
						 w->lines, RUNS);
		accmem_context_put(ctx);
	}
	if (!ctx || w->at == ACCMEM_ADDRESS_NONE) {
		w->id++;
		w->at = 0;
		w->first = 0;
	}
	accmem_account_put(account);
	return true;
}

static bool runs_fill_unnamed(struct runs_walk *w, struct accmem_carveout *cv)
{
	w->nr = accmem_unnamed_list_runs(cv, &w->at, &w->first, w->lines, RUNS);
	return w->at < cv->capacity;
}

static bool runs_fill_free(struct runs_walk *w, struct accmem_carveout *cv)
{
	struct accmem_run run;

	accmem_carveout_lock(cv);
	while (w->nr < RUNS &&
	       accmem_buddy_next_free(&cv->buddy, w->at, &run)) {
		w->lines[w->nr++] = (struct accmem_run_line){
			.start = run.start,
			.size = run.size,
			.carveout = cv->index,
		};
		w->at = run.start + run.size;
	}
	accmem_carveout_unlock(cv);
	return w->nr == RUNS;
}

static bool runs_fill_retired(struct runs_walk *w, struct accmem_carveout *cv)
{
	struct accmem_failed_run run;

	while (w->nr < RUNS && accmem_failed_next(cv, w->at, cv->capacity,
						  cv->capacity, &run)) {
		w->at = run.start + run.size;
		if (run.is_retired)
			w->lines[w->nr++] = (struct accmem_run_line){
				.start = run.start,
				.size = run.size,
				.carveout = cv->index,
			};
		cond_resched();
	}
	return w->nr == RUNS;
}

/* Fill the batch from the present part. Return false if the part has ended. */
static bool runs_fill_part(struct runs_walk *w)
{
	struct accmem_carveout *cv = &w->dev->carveouts->cvs[w->cv];

	switch (w->part) {
	case PART_NAMED:
		return runs_fill_named(w);
	case PART_UNNAMED:
		return runs_fill_unnamed(w, cv);
	case PART_FREE:
		return runs_fill_free(w, cv);
	default:
		return runs_fill_retired(w, cv);
	}
}

/* The parts of a carveout follow each other; then the next carveout begins. */
static void runs_next_part(struct runs_walk *w)
{
	w->at = 0;
	w->first = 0;
	if (w->part++ != PART_RETIRED)
		return;
	if (++w->cv < w->dev->carveouts->nr_device)
		w->part = PART_UNNAMED;
}

static void runs_fill(struct runs_walk *w)
{
	w->nr = 0;
	while (!w->nr && w->part != PART_END &&
	       !fatal_signal_pending(current)) {
		w->shown = w->part;
		if (!runs_fill_part(w))
			runs_next_part(w);
		cond_resched();
	}
}

static void *runs_start(struct seq_file *m, loff_t *pos)
{
	struct runs_walk *w = m->private;

	if (!*pos) {
		*w = (struct runs_walk){ .dev = w->dev };
		runs_fill(w);
	}
	/* The walk cannot jump: a position that was not reached by reading is the end. */
	return w->nr && *pos == w->pos ? w : NULL;
}

static void *runs_next(struct seq_file *m, void *batch, loff_t *pos)
{
	struct runs_walk *w = batch;

	w->pos = ++*pos;
	runs_fill(w);
	return w->nr ? w : NULL;
}

static void runs_stop(struct seq_file *m, void *batch)
{
}

static const char *runs_state(const struct accmem_run_line *line)
{
	static const char *const states[ACCMEM_NR_STATES] = {
		[ACCMEM_LIVE] = "live",
		[ACCMEM_DETACHED] = "detached",
		[ACCMEM_PENDING] = "pending",
		[ACCMEM_QUARANTINED] = "quarantined",
	};

	return line->cached ? "cached" : states[line->state];
}

static int runs_show(struct seq_file *m, void *batch)
{
	const struct runs_walk *w = batch;
	const struct accmem_run_line *line;

	if (!w->pos)
		seq_puts(m, "# carveout offset size state context uid\n");
	for (line = w->lines; line < w->lines + w->nr; line++) {
		seq_printf(m, "%u %#llx %#llx ", line->carveout, line->start,
			   line->size);
		if (w->shown == PART_FREE)
			seq_puts(m, "free\n");
		else if (w->shown == PART_RETIRED)
			seq_puts(m, "retired\n");
		else
			seq_printf(m, "%s %llu %u\n", runs_state(line),
				   line->context,
				   from_kuid(&init_user_ns, line->uid));
	}
	return 0;
}

static const struct seq_operations runs_ops = {
	.start = runs_start,
	.next = runs_next,
	.stop = runs_stop,
	.show = runs_show,
};

static int runs_open(struct inode *inode, struct file *file)
{
	struct runs_walk *w;

	w = __seq_open_private(file, &runs_ops, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->dev = inode->i_private;
	return 0;
}

const struct file_operations accmem_debugfs_runs_fops = {
	.owner = THIS_MODULE,
	.open = runs_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = seq_release_private,
};
