/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_STRING_H
#define ACCMEM_SHIM_STRING_H

#include <string.h>

#endif
