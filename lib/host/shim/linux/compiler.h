/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_COMPILER_H
#define ACCMEM_SHIM_COMPILER_H

/* The GNU C library's <sys/cdefs.h> has it too. */
#ifndef __always_inline
#define __always_inline inline __attribute__((__always_inline__))
#endif
#define noinline __attribute__((__noinline__))

#endif
