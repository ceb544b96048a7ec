// SPDX-License-Identifier: GPL-2.0
/*
 * debugfs: a device's occupancy, contexts, buffers, streams and waiters.
 *
 * The files are in /sys/kernel/debug/accmem/accmemN/ and only root can read them. users
 * is in /sys/kernel/debug/accmem/, because it describes all devices together.
 * occupancy draws a map of each carveout. usage shows the accounting of each carveout
 * at one moment. runs (debugfs_runs.c) lists the runs of the carveouts with their
 * owners. The other files list the objects of the device, and lock_stats counts the
 * holds of the carveouts' locks.
 *
 * Locking: ctx->lock for LINES buffers at a time, the lock of the carveout for RUNS
 * free runs at a time, accmem_waiters.lock for the list of waiters, users_lock for one
 * user at a time. No lock is held while a file is printed.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string_helpers.h>

#include "alloc/usage.h"
#include "core/account.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "debugfs.h"
#include "debugfs_runs.h"
#include "export/export.h"
#include "memory/bo.h"
#include "stream/stream.h"
#include "tmem/show.h"
#include "types/device_types.h"
#include "vm/buffer.h"
#include "vm/context.h"
#include "vm/lookup.h"
#include "waitq/waiters.h"

#define COLUMNS 64
#define ROWS_MAX 32
#define LINES 8 /* buffers read per hold of ctx->lock */
#define REVOKE_MS 500 /* for importers, when root revokes the exports */
#define RUNS 64u /* free runs read per hold of the carveout's lock */

static struct dentry *root;

/*
 * Return the free bytes of up to RUNS free runs in [*start, end). Advance *start past
 * them.
 */
static u64 debugfs_free_some(struct accmem_carveout *cv, u64 *start, u64 end)
{
	struct accmem_run run;
	unsigned int i;
	u64 free = 0;

	accmem_carveout_lock(cv);
	for (i = 0; i < RUNS && *start < end; i++) {
		if (!accmem_buddy_next_free(&cv->buddy, *start, &run) ||
		    run.start >= end) {
			*start = end;
			break;
		}
		*start = min(run.start + run.size, end);
		free += *start - run.start;
	}
	accmem_carveout_unlock(cv);
	return free;
}

static u64 debugfs_free_within(struct accmem_carveout *cv, u64 start, u64 end)
{
	u64 free = 0;

	while (start < end) {
		free += debugfs_free_some(cv, &start, end);
		cond_resched();
	}
	return free;
}

static char debugfs_map_char(u64 free, u64 size)
{
	if (free == size)
		return '.';
	if (!free)
		return '#';
	return free > size / 2 ? '-' : '+';
}

static void debugfs_show_map(struct seq_file *m, struct accmem_carveout *cv)
{
	u64 cell, at = 0;
	int i;

	cell = div_u64(cv->capacity + COLUMNS * ROWS_MAX - 1,
		       COLUMNS * ROWS_MAX);
	cell = max_t(u64, ALIGN(cell, ACCMEM_GRANULE), ACCMEM_GRANULE);
	seq_printf(m, "# %s", cv->carveouts->accounts->name);
	if (cv->carveouts->nr_device > 1)
		seq_printf(m, " carveout %u", cv->index);
	seq_printf(m,
		   ": %llu bytes a character: . free, - less than half used, + more, # all used\n",
		   cell);
	while (at < cv->capacity) {
		seq_printf(m, "%016llx ", at);
		for (i = 0; i < COLUMNS && at < cv->capacity; i++) {
			u64 end = min(at + cell, cv->capacity);
			u64 free;

			free = debugfs_free_within(cv, at, end);
			seq_putc(m, debugfs_map_char(free, end - at));
			at = end;
		}
		seq_putc(m, '\n');
	}
}

static int debugfs_map_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_carveout *cv;

	/* Offsets of host memory have no meaning: host memory gets no map. */
	for (cv = dev->carveouts->cvs;
	     cv < dev->carveouts->cvs + dev->carveouts->nr_device; cv++)
		debugfs_show_map(m, cv);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_map);

/*
 * The accounting of a carveout at one moment. sysfs shows each number at another
 * moment.
 */
struct usage {
	u64 capacity;
	u64 free;
	u64 bytes[ACCMEM_NR_STATES];
};

static void debugfs_show_usage(struct seq_file *m, const struct usage *u)
{
	seq_printf(m,
		   "capacity %llu\nfree %llu\nlive %llu\ndetached %llu\npending %llu\nquarantined %llu\nretired %llu\n",
		   u->capacity, u->free, u->bytes[ACCMEM_LIVE],
		   u->bytes[ACCMEM_DETACHED], u->bytes[ACCMEM_PENDING],
		   u->bytes[ACCMEM_QUARANTINED], u->bytes[ACCMEM_RETIRED]);
}

static int debugfs_usage_show(struct seq_file *m, void *unused)
{
	struct usage of[ACCMEM_MAX_ALL] = {}, sum = {};
	struct accmem_device *dev = m->private;
	struct accmem_carveout *cv;
	unsigned int i;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		struct usage *u = &of[cv->index];

		u->capacity = cv->capacity;
		accmem_carveout_usage(cv, u->bytes, &u->free);
		if (cv->kind == ACCMEM_KIND_HOST)
			continue;
		sum.capacity += u->capacity;
		sum.free += u->free;
		for (i = 0; i < ACCMEM_NR_STATES; i++)
			sum.bytes[i] += u->bytes[i];
	}
	debugfs_show_usage(m, &sum);
	for (i = 0;
	     i < dev->carveouts->nr_device && dev->carveouts->nr_device > 1;
	     i++) {
		seq_printf(m, "# carveout %u\n", i);
		debugfs_show_usage(m, &of[i]);
	}
	if (dev->carveouts->host_mask) {
		seq_puts(m, "# host\n");
		debugfs_show_usage(m, &of[dev->carveouts->nr_device]);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_usage);

static void debugfs_show_account(struct seq_file *m,
				 struct accmem_account *account)
{
	struct accmem_context *ctx = accmem_context_of(account);
	u64 buffers = 0, charged = atomic64_read(&account->bytes);

	if (ctx) {
		/* Racy read: a count that is slightly old is printed. */
		buffers = READ_ONCE(ctx->nr_buffers);
		charged = accmem_usage_charged(ctx);
	}
	seq_printf(m, "%llu %d ", account->id, account->pid);
	/* The process chooses its name: it must not add or remove a line or a column. */
	if (!account->comm[0])
		seq_puts(m, "\\000");
	seq_escape_mem(m, account->comm, strlen(account->comm),
		       ESCAPE_OCTAL | ESCAPE_NP | ESCAPE_APPEND, " \\");
	seq_printf(m, " %u %llu %llu%s\n",
		   from_kuid(&init_user_ns, account->user->uid), buffers,
		   charged, ctx ? "" : " ended");
	if (ctx)
		accmem_context_put(ctx);
}

static int debugfs_contexts_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_account *account;
	unsigned long id = 0;

	seq_puts(m, "# context pid comm uid buffers charged\n");
	while ((account = accmem_account_next(&dev->accounts, &id))) {
		debugfs_show_account(m, account);
		accmem_account_put(account);
		cond_resched();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_contexts);

/* A buffer, as it is printed. */
struct line {
	u64 address;
	u64 length;
	u64 footprint;
	unsigned int nr_runs;
	u32 cache_mode;
	unsigned int carveout;
	bool host;
	bool mapped;
	bool imported;
};

static void debugfs_describe(struct line *line, const struct accmem_buffer *buf)
{
	const struct accmem_bo *bo = accmem_buffer_bo(buf);

	line->address = buf->address;
	line->length = buf->length;
	line->footprint = buf->layout.footprint;
	line->nr_runs = accmem_buffer_nr_runs(buf);
	line->cache_mode = accmem_bo_mapping_mode(bo);
	line->carveout = accmem_carveout_number(bo->cv);
	line->host = bo->cv->kind == ACCMEM_KIND_HOST;
	line->mapped = accmem_bo_was_mapped(bo);
	line->imported = buf->va->imported;
}

/* Describe the next buffers from *@address on, in one hold of ctx->lock. */
static unsigned int debugfs_next_lines(struct accmem_context *ctx,
				       struct line *lines, unsigned int max,
				       u64 *address)
{
	struct accmem_buffer *buf;
	unsigned int nr = 0;

	spin_lock(&ctx->lock);
	while (nr < max && (buf = accmem_buffer_next(ctx, address)))
		debugfs_describe(&lines[nr++], buf);
	spin_unlock(&ctx->lock);
	return nr;
}

static void debugfs_show_buffers(struct seq_file *m, struct accmem_context *ctx)
{
	struct line lines[LINES];
	unsigned int i, nr;
	u64 address = 0;

	/* After an overflow seq_file calls again with a larger buffer: stop early. */
	while (!seq_has_overflowed(m) && address != ACCMEM_ADDRESS_NONE) {
		nr = debugfs_next_lines(ctx, lines, LINES, &address);
		for (i = 0; i < nr; i++)
			seq_printf(m, "%llu %#llx %llu %llu %u %u %u%s%s%s\n",
				   ctx->account->id, lines[i].address,
				   lines[i].length, lines[i].footprint,
				   lines[i].nr_runs, lines[i].cache_mode,
				   lines[i].carveout,
				   lines[i].host ? " host" : "",
				   lines[i].mapped ? " mapped" : "",
				   lines[i].imported ? " imported" : "");
		cond_resched();
	}
}

static int debugfs_buffers_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_context *ctx;
	unsigned long id = 0;

	seq_puts(m,
		 "# context address length footprint runs cache_mode carveout\n");
	while ((ctx = accmem_context_next(&dev->accounts.xa, &id))) {
		debugfs_show_buffers(m, ctx);
		accmem_context_put(ctx);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_buffers);

static void debugfs_show_streams(struct seq_file *m, struct accmem_context *ctx)
{
	struct accmem_stream_query query = {};
	struct accmem_stream *stream;
	unsigned long id = 0;

	while ((stream = accmem_stream_next(ctx, &id))) {
		accmem_stream_query(stream, &query);
		seq_printf(m, "%llu %llu %llu %llu %llu %d\n", stream->context,
			   stream->id, query.reached, query.claimed,
			   query.pending, query.error);
		accmem_stream_put(stream);
		cond_resched();
	}
}

static int debugfs_streams_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_context *ctx;
	unsigned long id = 0;

	seq_puts(m, "# context stream reached claimed pending error\n");
	while ((ctx = accmem_context_next(&dev->accounts.xa, &id))) {
		debugfs_show_streams(m, ctx);
		accmem_context_put(ctx);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_streams);

/* A waiter, as it is printed. */
struct waiting {
	u64 context;
	unsigned int uid;
	u64 need;
	u32 bypassed;
	u64 since;
	const char *state;
};

#define WAITING_MAX 64u /* waiters that are printed */

static const char *debugfs_waiter_state(const struct accmem_waiter *w)
{
	if (w->q.state == ACCMEM_QUEUE_AWAKE)
		return "awake";
	if (w->q.state == ACCMEM_QUEUE_SUSPENDED)
		return "interrupted";
	if (w->q.state == ACCMEM_QUEUE_SERVED)
		return "served";
	return w->q.limited ? "limited" : "asleep";
}

static unsigned int debugfs_next_waiting(struct accmem_waiters *ws,
					 struct waiting *lines)
{
	struct accmem_queue_waiter *q = NULL;
	unsigned int nr = 0;

	while (nr < WAITING_MAX && (q = accmem_queue_walk(&ws->queue, q))) {
		const struct accmem_waiter *w = accmem_waiter_of(q);

		lines[nr++] = (struct waiting){
			.context = w->account->id,
			.uid = from_kuid(&init_user_ns, w->account->user->uid),
			.need = q->need,
			.bypassed = q->bypassed,
			.since = w->since,
			.state = q == ws->queue.reserved ?
					 "reserved" :
					 debugfs_waiter_state(w),
		};
	}
	return nr;
}

static void debugfs_show_wait_stats(struct seq_file *m,
				    const struct accmem_wait_stats *stats,
				    const struct accmem_queue *queue)
{
	seq_printf(m, "waiting %u\nwaits %llu\nwakeups %llu\nserved %llu\n",
		   queue->nr, stats->waits, stats->wakeups, stats->served);
	seq_printf(m, "by_scan %llu\nhanded_over %llu\n", stats->by_scan,
		   stats->handed_over);
	seq_printf(m, "in_vain %llu\ntimeouts %llu\nsignals %llu\n",
		   stats->in_vain, stats->timeouts, stats->signals);
	seq_printf(m, "bypasses %llu\nreservations %llu\nexpired %llu\n",
		   queue->bypasses, queue->reservations, queue->expired);
	seq_printf(m, "held %llu\n", queue->reserved ? queue->held : 0);
}

/* Print the statistics of the queue and its waiters, in the order of the queue. */
static int debugfs_waiting_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_waiters *ws = &dev->waiters;
	struct accmem_wait_stats stats;
	struct accmem_queue queue;
	struct waiting *lines;
	unsigned int i, nr;
	u64 now;

	lines = kcalloc(WAITING_MAX, sizeof(*lines), GFP_KERNEL);
	if (!lines)
		return -ENOMEM;
	spin_lock(&ws->lock);
	stats = ws->stats;
	queue = ws->queue;
	nr = debugfs_next_waiting(ws, lines);
	spin_unlock(&ws->lock);
	now = ktime_get_ns();
	debugfs_show_wait_stats(m, &stats, &queue);
	seq_puts(m, "# context uid bytes state bypassed ms\n");
	for (i = 0; i < nr; i++)
		seq_printf(m, "%llu %u %llu %s %u %llu\n", lines[i].context,
			   lines[i].uid, lines[i].need, lines[i].state,
			   lines[i].bypassed,
			   div_u64(now - lines[i].since, NSEC_PER_MSEC));
	kfree(lines);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_waiting);

static int debugfs_wait_times_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;

	accmem_wait_times_show(m, &dev->waiters);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_wait_times);

/*
 * Print how often the locks of the carveouts were taken. Reading the file takes none of
 * them. READ_ONCE: the counts are read without the locks; a count that is slightly old
 * does no harm in a statistic.
 */
static int debugfs_shared_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_carveout *cv;
	u64 holds = 0;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++)
		holds += READ_ONCE(cv->holds);
	seq_printf(m, "carveout_lock_holds %llu\n", holds);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_shared);

/* Print what each user is charged for, on all devices. */
static int debugfs_users_show(struct seq_file *m, void *unused)
{
	struct accmem_user *user = NULL;

	seq_puts(m,
		 "# uid contexts buffers bytes pending fences waits resident exports\n");
	while ((user = accmem_user_next(user))) {
		seq_printf(m, "%u %lld %lld %lld %lld %lld %lld %lld %lld\n",
			   from_kuid(&init_user_ns, user->uid),
			   atomic64_read(&user->contexts),
			   atomic64_read(&user->buffers),
			   atomic64_read(&user->bytes),
			   atomic64_read(&user->pending),
			   atomic64_read(&user->fences),
			   atomic64_read(&user->waits),
			   atomic64_read(&user->resident) << PAGE_SHIFT,
			   atomic64_read(&user->exports));
		cond_resched();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debugfs_users);

static int debugfs_exports_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;

	accmem_exports_show(m, &dev->exports);
	return 0;
}

static int debugfs_exports_open(struct inode *inode, struct file *file)
{
	return single_open(file, debugfs_exports_show, inode->i_private);
}

/* Execute a word. The driver of the device resumes what it has revoked. */
static int debugfs_exports_do(struct accmem_device *dev, const char *word)
{
	lockdep_assert_held(&dev->provider.lock);
	if (accmem_is_revoked(dev->carveouts))
		return -EBUSY;
	if (sysfs_streq(word, "revoke"))
		accmem_export_revoke(&dev->exports, -ECONNRESET,
				     ktime_add_ms(ktime_get(), REVOKE_MS));
	else if (sysfs_streq(word, "resume"))
		accmem_export_resume(&dev->exports);
	else
		return -EINVAL;
	return 0;
}

/* "revoke" takes the memory of all exports back, "resume" ends that. For tests. */
static ssize_t debugfs_exports_write(struct file *file, const char __user *from,
				     size_t size, loff_t *pos)
{
	struct accmem_device *dev = file_inode(file)->i_private;
	char word[8] = "";
	int err;

	if (size >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, from, size))
		return -EFAULT;
	mutex_lock(&dev->provider.lock);
	err = debugfs_exports_do(dev, word);
	mutex_unlock(&dev->provider.lock);
	return err ?: size;
}

static const struct file_operations debugfs_exports_fops = {
	.owner = THIS_MODULE,
	.open = debugfs_exports_open,
	.read = seq_read,
	.write = debugfs_exports_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int debugfs_tmem_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;

	return accmem_tmem_show_picture(m, &dev->accounts);
}
DEFINE_SHOW_ATTRIBUTE(debugfs_tmem);

/**
 * accmem_debugfs_init() - create the directory of the module, and the file of users
 *
 * Context: Process context, during module init. May sleep.
 */
void accmem_debugfs_init(void)
{
	root = debugfs_create_dir("accmem", NULL);
	debugfs_create_file("users", 0400, root, NULL, &debugfs_users_fops);
}

/**
 * accmem_debugfs_exit() - remove the directory of the module
 *
 * Context: Process context. May sleep.
 */
void accmem_debugfs_exit(void)
{
	debugfs_remove(root);
}

/**
 * accmem_debugfs_add() - create the files of a device
 * @dev: the device
 *
 * Context: Process context. May sleep.
 */
void accmem_debugfs_add(struct accmem_device *dev)
{
	dev->debugfs = debugfs_create_dir(dev->accounts.name, root);
	debugfs_create_file("occupancy", 0400, dev->debugfs, dev,
			    &debugfs_map_fops);
	debugfs_create_file("usage", 0400, dev->debugfs, dev,
			    &debugfs_usage_fops);
	debugfs_create_file("contexts", 0400, dev->debugfs, dev,
			    &debugfs_contexts_fops);
	debugfs_create_file("buffers", 0400, dev->debugfs, dev,
			    &debugfs_buffers_fops);
	debugfs_create_file("runs", 0400, dev->debugfs, dev,
			    &accmem_debugfs_runs_fops);
	debugfs_create_file("streams", 0400, dev->debugfs, dev,
			    &debugfs_streams_fops);
	debugfs_create_file("waiting", 0400, dev->debugfs, dev,
			    &debugfs_waiting_fops);
	debugfs_create_file("wait_times", 0400, dev->debugfs, dev,
			    &debugfs_wait_times_fops);
	debugfs_create_file("lock_stats", 0400, dev->debugfs, dev,
			    &debugfs_shared_fops);
	debugfs_create_file("exports", 0600, dev->debugfs, dev,
			    &debugfs_exports_fops);
	debugfs_create_file("tmem", 0400, dev->debugfs, dev,
			    &debugfs_tmem_fops);
}

/**
 * accmem_debugfs_remove() - remove the files of a device
 * @dev: the device
 *
 * Context: Process context. Waits for readers of the files. May sleep.
 */
void accmem_debugfs_remove(struct accmem_device *dev)
{
	debugfs_remove(dev->debugfs);
}
