/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_LIMITS_H
#define ACCMEM_SHIM_LIMITS_H

/* <limits.h> of the C library takes PATH_MAX from here. */
#include_next <linux/limits.h>
#include <limits.h>
#include <linux/types.h>

#endif
