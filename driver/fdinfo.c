// SPDX-License-Identifier: GPL-2.0
/*
 * What /proc/PID/fdinfo/FD says of a context. Sizes are in bytes.
 *
 * Locks: the context's lock, not while anything is printed.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "context.h"
#include "tmem.h"

void accmem_fdinfo_show(struct seq_file *m, struct file *file)
{
	struct accmem_context *ctx = file->private_data;
	u64 named, buffers, pending;

	spin_lock(&ctx->lock);
	buffers = ctx->nr_names;
	named = ctx->named_bytes;
	pending = ctx->pending_bytes;
	spin_unlock(&ctx->lock);

	seq_printf(m, "accmem-device:\t%s\n", ctx->dev->name);
	seq_printf(m, "accmem-context:\t%llu\n", ctx->account->id);
	seq_printf(m, "accmem-buffers:\t%llu\n", buffers);
	seq_printf(m, "accmem-live:\t%llu\n", named);
	seq_printf(m, "accmem-pending:\t%llu\n", pending);
	seq_printf(m, "accmem-overdue:\t%llu\n",
		   READ_ONCE(ctx->account->overdue));
	accmem_shrink_show(m, ctx);
	seq_printf(m, "accmem-charged:\t%llu\n", accmem_usage_charged(ctx));
	accmem_tmem_show_fdinfo(m, ctx);
}
