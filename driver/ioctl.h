/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The commands of a device.
 */
#ifndef ACCMEM_IOCTL_H
#define ACCMEM_IOCTL_H

struct file;

long accmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

#endif /* ACCMEM_IOCTL_H */
