/* SPDX-License-Identifier: GPL-2.0 */
/*
 * fdinfo: the counters of a context in /proc/PID/fdinfo/FD.
 */
#ifndef ACCMEM_FDINFO_H
#define ACCMEM_FDINFO_H

struct file;
struct seq_file;

void accmem_fdinfo_show(struct seq_file *m, struct file *file);

#endif /* ACCMEM_FDINFO_H */
