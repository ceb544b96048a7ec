/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Will a call that a signal interrupts be made again?
 */
#ifndef ACCMEM_RESTART_H
#define ACCMEM_RESTART_H

#include <linux/types.h>

bool accmem_will_restart(void);

#endif /* ACCMEM_RESTART_H */
