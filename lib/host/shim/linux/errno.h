/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_ERRNO_H
#define ACCMEM_SHIM_ERRNO_H

#include_next <linux/errno.h>

#endif
