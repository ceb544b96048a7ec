/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Device addresses of a context.
 */
#ifndef ACCMEM_VM_VA_H
#define ACCMEM_VM_VA_H

#include <linux/types.h>

struct accmem_context;
struct accmem_place;

int accmem_place_check(struct accmem_context *ctx, u64 start, u64 size);
int accmem_place_resize(struct accmem_context *ctx, struct accmem_place *place,
			u64 size);

#endif /* ACCMEM_VM_VA_H */
