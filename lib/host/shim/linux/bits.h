/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_BITS_H
#define ACCMEM_SHIM_BITS_H

#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))

#endif
