/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Address ranges of a context.
 */
#ifndef ACCMEM_VM_VA_H
#define ACCMEM_VM_VA_H

#include <linux/types.h>

struct accmem_context;
struct accmem_va;

int accmem_va_check(struct accmem_context *ctx, u64 start, u64 size);
int accmem_va_resize(struct accmem_context *ctx, struct accmem_va *va,
		     u64 size);

#endif /* ACCMEM_VM_VA_H */
