/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_COMPILER_H
#define ACCMEM_SHIM_COMPILER_H

#include <sys/cdefs.h> /* __always_inline */

#define noinline __attribute_noinline__ /* as sys/cdefs.h has it */

#endif
