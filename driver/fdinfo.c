// SPDX-License-Identifier: GPL-2.0
/*
 * fdinfo: the counters of a context in /proc/PID/fdinfo/FD.
 *
 * Sizes are in bytes. Some counters are read together under ctx->lock and printed after
 * the lock is released; the others are read one by one.
 *
 * The keys with the prefix drm- follow the kernel's Documentation/gpu/drm-usage-stats.rst,
 * for programs that show the clients of any accelerator. vram is the memory of the device,
 * memory is host memory. Keys whose value the driver does not know are absent.
 *
 * Locking: ctx->lock; not held while the file is printed.
 */
#include <linux/fs.h>
#include <linux/seq_file.h>

#include "alloc/pressure.h"
#include "alloc/usage.h"
#include "fdinfo.h"
#include "tmem/show.h"
#include "types/carveout_types.h"
#include "types/context_types.h"

#define CLIENT_DEVICE_SHIFT 48 /* the number of a context has fewer bits */

/* The bytes of the published and of the cached buffers of a context, in each carveout. */
struct fdinfo_bytes {
	u64 published[ACCMEM_MAX_ALL];
	u64 cached[ACCMEM_MAX_ALL];
};

/*
 * Print the drm- keys of a region: the sums over the carveouts @first to @end - 1. Cached
 * buffers are purgeable, since reclaim frees them. Without @resident the key drm-resident- is
 * absent: the driver does not count the pages that a context has touched.
 */
static void fdinfo_show_region(struct seq_file *m,
			       const struct fdinfo_bytes *bytes,
			       unsigned int first, unsigned int end,
			       const char *region, bool resident)
{
	u64 total = 0, cached = 0;
	unsigned int i;

	for (i = first; i < end; i++) {
		total += bytes->published[i] + bytes->cached[i];
		cached += bytes->cached[i];
	}
	seq_printf(m, "drm-total-%s:\t%llu\n", region, total);
	if (resident)
		seq_printf(m, "drm-resident-%s:\t%llu\n", region, total);
	seq_printf(m, "drm-purgeable-%s:\t%llu\n", region, cached);
}

/* A client is a context. The client id is unique among the contexts of all devices. */
static void fdinfo_show_drm(struct seq_file *m, struct accmem_context *ctx,
			    const struct fdinfo_bytes *bytes)
{
	const struct accmem_carveouts *cvs = ctx->carveouts;

	seq_puts(m, "drm-driver:\taccmem\n");
	seq_printf(m, "drm-client-id:\t%llu\n",
		   (u64)ctx->account->accounts->index << CLIENT_DEVICE_SHIFT |
			   ctx->account->id);
	fdinfo_show_region(m, bytes, 0, cvs->nr_device, "vram",
			   !(cvs->cvs->features & ACCMEM_FEATURE_FIRST_TOUCH));
	if (cvs->host_mask)
		fdinfo_show_region(m, bytes, cvs->nr_device, cvs->nr, "memory",
				   false);
}

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
	unsigned int i, nr = ctx->carveouts->nr;
	u64 named = 0, buffers, pending;
	struct fdinfo_bytes bytes;

	spin_lock(&ctx->lock);
	buffers = ctx->nr_buffers;
	for (i = 0; i < nr; i++) {
		bytes.published[i] = ctx->per_carveout[i].published_bytes;
		bytes.cached[i] = ctx->per_carveout[i].cached_bytes;
		if (i < ctx->carveouts->nr_device)
			named += bytes.published[i];
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
			   bytes.published[i]);
	if (ctx->carveouts->host_mask)
		seq_printf(m, "accmem-live-host:\t%llu\n",
			   bytes.published[ctx->carveouts->nr_device]);
	seq_printf(m, "accmem-pending:\t%llu\n", pending);
	seq_printf(m, "accmem-overdue:\t%llu\n",
		   (u64)atomic64_read(&ctx->account->overdue));
	accmem_pressure_show(m, ctx);
	seq_printf(m, "accmem-charged:\t%llu\n", accmem_usage_charged(ctx));
	accmem_tmem_show_fdinfo(m, ctx);
	fdinfo_show_drm(m, ctx, &bytes);
}
