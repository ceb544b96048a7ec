/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ioctl: the commands of /dev/accmemN.
 */
#ifndef ACCMEM_IOCTL_H
#define ACCMEM_IOCTL_H

struct file;

long accmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif /* ACCMEM_IOCTL_H */
