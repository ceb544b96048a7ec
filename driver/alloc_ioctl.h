/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ALLOC, FREE and REALLOC: the ioctls for buffers.
 */
#ifndef ACCMEM_ALLOC_IOCTL_H
#define ACCMEM_ALLOC_IOCTL_H

struct accmem_command;

int accmem_ioctl_alloc(struct accmem_command *cmd);
int accmem_ioctl_free(struct accmem_command *cmd);
int accmem_ioctl_realloc(struct accmem_command *cmd);

#endif /* ACCMEM_ALLOC_IOCTL_H */
