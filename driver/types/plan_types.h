/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structure of the plan of an ALLOC.
 */
#ifndef ACCMEM_PLAN_TYPES_H
#define ACCMEM_PLAN_TYPES_H

#include <linux/types.h>

struct accmem_alloc;
struct accmem_stream;

/**
 * struct accmem_plan - a request whose fields were checked, and where to try it
 * @req: request; the caller keeps it as long as the plan
 * @stream: stream that @req names with ACCMEM_ALLOC_STREAM; else NULL
 * @carveouts: carveouts that the kind, the flags and the address of the request allow:
 *	bit i stands for carveout i; never 0
 */
struct accmem_plan {
	const struct accmem_alloc *req;
	struct accmem_stream *stream;
	u32 carveouts;
};

#endif /* ACCMEM_PLAN_TYPES_H */
