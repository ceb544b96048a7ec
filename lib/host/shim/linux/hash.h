/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_HASH_H
#define ACCMEM_SHIM_HASH_H

#include <linux/types.h>

/* The upper bits of a product, with the constant that the kernel has */
static inline u32 hash_32(u32 value, unsigned int bits)
{
	return value * 0x61c88647u >> (32 - bits);
}

#endif
