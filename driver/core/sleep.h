/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What calls that sleep share: a deadline to sleep to, and whether one that a signal
 * interrupts will be made again.
 */
#ifndef ACCMEM_RESTART_H
#define ACCMEM_RESTART_H

#include <linux/types.h>

bool accmem_sleep_until(u64 deadline_ns);
bool accmem_will_restart(void);

#endif /* ACCMEM_RESTART_H */
