// SPDX-License-Identifier: GPL-2.0
/*
 * What /proc/PID/fdinfo/FD says of a context. Sizes are in bytes.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "accmem_drv.h"
#include "tmem.h"

void accmem_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct accmem_context *ctx = file->private_data;
	u64 named, buffers;

	accmem_stash_drain(ctx);
	mutex_lock(&ctx->lock);
	buffers = ctx->nr_names;
	named = ctx->named_bytes;
	mutex_unlock(&ctx->lock);

	seq_printf(m, "accmem-device:\t%s\n", ctx->dev->name);
	seq_printf(m, "accmem-context:\t%llu\n", ctx->id);
	seq_printf(m, "accmem-buffers:\t%llu\n", buffers);
	seq_printf(m, "accmem-live:\t%llu\n", named);
	seq_printf(m, "accmem-charged:\t%llu\n",
		   (u64)atomic64_read(&ctx->bytes));
	accmem_tmem_show_fdinfo(m, ctx);
}
