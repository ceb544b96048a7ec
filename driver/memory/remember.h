/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Remembered failures: physical memory that has failed since the module was loaded, or
 * that the parameter retired names.
 */
#ifndef ACCMEM_MEMORY_REMEMBER_H
#define ACCMEM_MEMORY_REMEMBER_H

#include <linux/types.h>

int accmem_remember_init(void);
void accmem_remember_exit(void);
bool accmem_remember_has(u64 start, u64 size);

#endif /* ACCMEM_MEMORY_REMEMBER_H */
