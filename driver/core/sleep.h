/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sleeping until a deadline, and restarts of interrupted system calls.
 */
#ifndef ACCMEM_CORE_SLEEP_H
#define ACCMEM_CORE_SLEEP_H

#include <linux/types.h>

bool accmem_sleep_until(u64 deadline_ns);
bool accmem_syscall_restarts(void);

#endif /* ACCMEM_CORE_SLEEP_H */
