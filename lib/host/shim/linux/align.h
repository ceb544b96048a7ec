/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef ACCMEM_SHIM_ALIGN_H
#define ACCMEM_SHIM_ALIGN_H

/* Of unsigned numbers */
#define ALIGN(x, a) (-(-(x) & -(a)))
#define ALIGN_DOWN(x, a) ((x) & -(a))

#endif
