/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_OVERFLOW_H
#define ACCMEM_SHIM_OVERFLOW_H

#define check_add_overflow(a, b, d) __builtin_add_overflow(a, b, d)

#endif
