/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_COMPILER_H
#define ACCMEM_SHIM_COMPILER_H

#include <limits.h> /* __GLIBC__ */

/* The GNU C library has __always_inline; musl has not. */
#ifdef __GLIBC__
#include <sys/cdefs.h>
#elif !defined(__always_inline)
#define __always_inline inline
#endif
#define noinline __attribute__((__noinline__))

#endif
