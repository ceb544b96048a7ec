/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_LOG2_H
#define ACCMEM_SHIM_LOG2_H

#include <linux/bitops.h>

static inline unsigned int ilog2(u64 n)
{
	return fls64(n) - 1;
}

static inline bool is_power_of_2(u64 n)
{
	return n && !(n & (n - 1));
}

#endif
