/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor Memory in fdinfo and debugfs.
 *
 * The fdinfo of a context's file and the debugfs files of a device call these
 * functions. The fdinfo of a CTA's file is in internal.h.
 */
#ifndef ACCMEM_TMEM_SHOW_H
#define ACCMEM_TMEM_SHOW_H

struct accmem_context;
struct accmem_accounts;
struct seq_file;

void accmem_tmem_show_fdinfo(struct seq_file *m, struct accmem_context *ctx);
int accmem_tmem_show_picture(struct seq_file *m,
			     struct accmem_accounts *accounts);

#endif /* ACCMEM_TMEM_SHOW_H */
