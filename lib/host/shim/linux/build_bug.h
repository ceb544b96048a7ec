/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_BUILD_BUG_H
#define ACCMEM_SHIM_BUILD_BUG_H

#include <assert.h>

#undef static_assert
#define static_assert(condition) _Static_assert(condition, #condition)

#endif /* ACCMEM_SHIM_BUILD_BUG_H */
