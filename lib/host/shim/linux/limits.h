/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_LIMITS_H
#define ACCMEM_SHIM_LIMITS_H

#include <limits.h>
#include <linux/types.h>

#endif
