/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_BITOPS_H
#define ACCMEM_SHIM_BITOPS_H

#include <linux/bits.h>
#include <linux/types.h>

/* Undefined for 0, as the kernel's is. */
static inline unsigned int __ffs64(u64 word)
{
	return __builtin_ctzll(word);
}

static inline unsigned int fls64(u64 word)
{
	return word ? 64 - __builtin_clzll(word) : 0;
}

static inline unsigned int hweight64(u64 word)
{
	return __builtin_popcountll(word);
}

#endif
