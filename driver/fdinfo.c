// SPDX-License-Identifier: GPL-2.0
/*
 * fdinfo: the counters of a context in /proc/PID/fdinfo/FD.
 *
 * Sizes are in bytes. Some counters are read together under ctx->lock and printed after
 * the lock is released; the others are read one by one.
 *
 * Locking: ctx->lock; not held while the file is printed.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "alloc/pressure.h"
#include "alloc/usage.h"
#include "fdinfo.h"
#include "tmem/show.h"
#include "types/context_types.h"

/**
 * accmem_fdinfo_show() - print the fdinfo of a device file
 * @m: the seq_file
 * @file: the device's file
 *
 * Context: Process context. Takes and releases ctx->lock. May sleep.
 */
void accmem_fdinfo_show(struct seq_file *m, struct file *file)
{
	struct accmem_context *ctx = file->private_data;
	u64 named = 0, buffers, pending, of_carveout[ACCMEM_MAX_ALL];
	unsigned int i, nr = ctx->carveouts->nr;

	spin_lock(&ctx->lock);
	buffers = ctx->nr_buffers;
	for (i = 0; i < nr; i++) {
		of_carveout[i] = ctx->per_carveout[i].published_bytes;
		if (i < ctx->carveouts->nr_device)
			named += of_carveout[i];
	}
	pending = ctx->pending_bytes;
	spin_unlock(&ctx->lock);

	seq_printf(m, "accmem-device:\t%s\n", ctx->account->accounts->name);
	seq_printf(m, "accmem-context:\t%llu\n", ctx->account->id);
	seq_printf(m, "accmem-buffers:\t%llu\n", buffers);
	seq_printf(m, "accmem-live:\t%llu\n", named);
	for (i = 0;
	     i < ctx->carveouts->nr_device && ctx->carveouts->nr_device > 1;
	     i++)
		seq_printf(m, "accmem-live-carveout%u:\t%llu\n", i,
			   of_carveout[i]);
	if (ctx->carveouts->host_mask)
		seq_printf(m, "accmem-live-host:\t%llu\n",
			   of_carveout[ctx->carveouts->nr_device]);
	seq_printf(m, "accmem-pending:\t%llu\n", pending);
	seq_printf(m, "accmem-overdue:\t%llu\n",
		   (u64)atomic64_read(&ctx->account->overdue));
	accmem_pressure_show(m, ctx);
	seq_printf(m, "accmem-charged:\t%llu\n", accmem_usage_charged(ctx));
	accmem_tmem_show_fdinfo(m, ctx);
}
