/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sleeping calls: deadlines, and restarts of interrupted calls.
 *
 * Used by ALLOC that waits for memory, and by CTAs that wait for Tensor Memory.
 */
#ifndef ACCMEM_CORE_SLEEP_H
#define ACCMEM_CORE_SLEEP_H

#include <linux/types.h>

bool accmem_sleep_until(u64 deadline_ns);
bool accmem_syscall_restarts(void);

#endif /* ACCMEM_CORE_SLEEP_H */
