// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/accmem/accmemN/: for root, a picture of the carveout and
 * the list of who holds what.
 *
 * Locks: device.lock > context.lock, and the carveout's lock for the picture,
 * a line at a time.
 */
#include <linux/debugfs.h>
#include <linux/math64.h>
#include <linux/seq_file.h>

#include "accmem_drv.h"
#include "tmem.h"

#define COLUMNS 64
#define ROWS_MAX 32

static struct dentry *root;

/* free bytes in [start, end) */
static u64 free_within(struct accmem_carveout *cv, u64 start, u64 end)
{
	struct accmem_run run;
	u64 free = 0;

	lockdep_assert_held(&cv->lock);
	while (start < end && accmem_buddy_next_free(&cv->buddy, start, &run) &&
	       run.start < end) {
		u64 stop = min(run.start + run.size, end);

		free += stop - run.start;
		start = stop;
	}
	return free;
}

static char fill_char(u64 free, u64 size)
{
	if (free == size)
		return '.';
	if (!free)
		return '#';
	return free > size / 2 ? '-' : '+';
}

static int map_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_carveout *cv = &dev->cv;
	u64 cell, at = 0;
	int i;

	cell = div_u64(cv->capacity + COLUMNS * ROWS_MAX - 1,
		       COLUMNS * ROWS_MAX);
	cell = max_t(u64, ALIGN(cell, ACCMEM_GRANULE), ACCMEM_GRANULE);
	accmem_stash_drain_device(dev);
	seq_printf(m, "# %s: %llu bytes a character: . free, - less than half used, + more, # all used\n",
		   dev->name, cell);
	while (at < cv->capacity) {
		seq_printf(m, "%016llx ", at);
		for (i = 0; i < COLUMNS && at < cv->capacity; i++) {
			u64 end = min(at + cell, cv->capacity);
			u64 free;

			accmem_carveout_lock(cv);
			free = free_within(cv, at, end);
			accmem_carveout_unlock(cv);
			seq_putc(m, fill_char(free, end - at));
			at = end;
			cond_resched();
		}
		seq_putc(m, '\n');
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(map);

/* one moment's accounting: unlike sysfs, all of it at once */
static int usage_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_carveout *cv = &dev->cv;
	u64 bytes[ACCMEM_NR_STATES], free;
	unsigned int i;

	accmem_stash_drain_device(dev);
	accmem_carveout_lock(cv);
	for (i = 0; i < ACCMEM_NR_STATES; i++)
		bytes[i] = accmem_carveout_bytes(cv, i);
	free = accmem_carveout_free_bytes(cv);
	accmem_carveout_unlock(cv);
	seq_printf(m, "capacity %llu\nfree %llu\nlive %llu\ndetached %llu\npending %llu\nquarantined %llu\n",
		   cv->capacity, free, bytes[ACCMEM_LIVE],
		   bytes[ACCMEM_DETACHED], bytes[ACCMEM_PENDING],
		   bytes[ACCMEM_QUARANTINED]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(usage);

static int contexts_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_context *ctx;

	accmem_stash_drain_device(dev);
	seq_puts(m, "# context pid comm uid buffers charged\n");
	mutex_lock(&dev->lock);
	list_for_each_entry(ctx, &dev->contexts, link) {
		mutex_lock(&ctx->lock);
		seq_printf(m, "%llu %d %s %u %llu %llu\n", ctx->id, ctx->pid,
			   ctx->comm, from_kuid(&init_user_ns, ctx->user->uid),
			   ctx->nr_names, (u64)atomic64_read(&ctx->bytes));
		mutex_unlock(&ctx->lock);
	}
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(contexts);

static void show_name(struct seq_file *m, const struct accmem_buffer *buf)
{
	const struct accmem_buffer *own = buf->sheet ? &buf->sheet->buf : buf;

	seq_printf(m, "%llu %#llx %llu %llu %u %u%s\n", buf->ctx->id,
		   buf->address, buf->length, buf->layout.footprint,
		   buf->nr_runs, buf->cache_mode,
		   READ_ONCE(own->mapped) ? " mapped" : "");
}

static void show_sheet(struct seq_file *m, struct accmem_buffer *own)
{
	struct accmem_buffer *buf = accmem_sheet_next(own, own->address);

	while (buf) {
		show_name(m, buf);
		buf = accmem_sheet_next(own, buf->address +
						     buf->layout.footprint);
	}
}

static void show_names(struct seq_file *m, struct accmem_context *ctx)
{
	struct rb_node *node;

	lockdep_assert_held(&ctx->lock);
	for (node = rb_first(&ctx->names); node; node = rb_next(node)) {
		struct accmem_buffer *buf =
			rb_entry(node, struct accmem_buffer, node);

		/* all is shown again in a larger buffer */
		if (seq_has_overflowed(m))
			return;
		if (buf->is_sheet)
			show_sheet(m, buf);
		else
			show_name(m, buf);
		cond_resched();
	}
}

static int buffers_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;
	struct accmem_context *ctx;

	seq_puts(m, "# context address length footprint runs cache_mode\n");
	mutex_lock(&dev->lock);
	list_for_each_entry(ctx, &dev->contexts, link) {
		mutex_lock(&ctx->lock);
		show_names(m, ctx);
		mutex_unlock(&ctx->lock);
		if (seq_has_overflowed(m))
			break;
	}
	mutex_unlock(&dev->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(buffers);

/*
 * How often what contexts share was written; the carveout's lines lie behind
 * its lock. Reading this writes neither.
 */
static int shared_show(struct seq_file *m, void *unused)
{
	struct accmem_device *dev = m->private;

	seq_printf(m, "carveout_lock_holds %llu\nuser_charges %llu\n",
		   READ_ONCE(dev->cv.holds), accmem_user_charges());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(shared);

static int tmem_show(struct seq_file *m, void *unused)
{
	return accmem_tmem_show_picture(m, m->private);
}
DEFINE_SHOW_ATTRIBUTE(tmem);

void accmem_debugfs_init(void)
{
	root = debugfs_create_dir("accmem", NULL);
}

void accmem_debugfs_exit(void)
{
	debugfs_remove(root);
}

void accmem_debugfs_add(struct accmem_device *dev)
{
	dev->debugfs = debugfs_create_dir(dev->name, root);
	debugfs_create_file("map", 0400, dev->debugfs, dev, &map_fops);
	debugfs_create_file("usage", 0400, dev->debugfs, dev, &usage_fops);
	debugfs_create_file("contexts", 0400, dev->debugfs, dev,
			    &contexts_fops);
	debugfs_create_file("buffers", 0400, dev->debugfs, dev, &buffers_fops);
	debugfs_create_file("shared", 0400, dev->debugfs, dev, &shared_fops);
	debugfs_create_file("tmem", 0400, dev->debugfs, dev, &tmem_fops);
}

void accmem_debugfs_remove(struct accmem_device *dev)
{
	debugfs_remove(dev->debugfs);
}
