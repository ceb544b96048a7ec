// SPDX-License-Identifier: GPL-2.0
/*
 * List of exports for debugfs: who holds the memory of a device through dma-bufs.
 *
 * Locking: the dma_resv of one export at a time.
 */
#include <linux/device.h>
#include <linux/dcache.h>
#include <linux/dma-buf.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "export/export.h"
#include "internal.h"
#include "types/bo_types.h"
#include "types/export_types.h"

static void show_export(struct seq_file *m, struct accmem_export *export)
{
	const struct accmem_account *account = export->bo->account;
	struct dma_buf_attachment *attach;

	dma_resv_lock(&export->resv, NULL);
	seq_printf(m, "%u %llu %u %llu %#x %d %d", export->id, account->id,
		   from_kuid(&init_user_ns, account->user->uid), export->size,
		   export->flags, export->error,
		   atomic_read(&export->nr_mapped));
	list_for_each_entry(attach, &export->dma_buf->attachments, node)
		seq_printf(m, " %s", dev_name(attach->dev));
	seq_putc(m, '\n');
	dma_resv_unlock(&export->resv);
}

/**
 * accmem_exports_show() - list the exports of a device
 * @m: the file in debugfs
 * @exports: the exports
 *
 * Context: Process context. Takes and releases the dma_resv of each export. May sleep.
 */
void accmem_exports_show(struct seq_file *m, struct accmem_exports *exports)
{
	struct accmem_export *export;
	unsigned long id = 0;

	seq_puts(m,
		 "# export context uid bytes flags error mapped importers\n");
	while ((export = accmem_export_next(exports, &id))) {
		show_export(m, export);
		dput(export->dentry);
		cond_resched();
	}
}
