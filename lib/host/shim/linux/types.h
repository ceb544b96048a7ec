/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What lib/ uses of the kernel's headers, for plain userspace programs. Each
 * header here stands in for the kernel's of the same name.
 */
#ifndef ACCMEM_SHIM_TYPES_H
#define ACCMEM_SHIM_TYPES_H

#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t s32;
typedef long long s64;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#endif
