// SPDX-License-Identifier: GPL-2.0
/*
 * List of the runs of a context, for debugfs.
 *
 * All memory that has a device address is listed: buffers, slab pages, cached buffers
 * and pending frees. Imports are left out, since the runs belong to another va. So is
 * host memory, whose offsets have no meaning.
 *
 * Locking: ctx->lock, and the carveout's lock inside it, for LIST_PROBES address ranges
 * and a given number of runs at a time.
 */
#include <linux/kernel.h>

#include "core/carveout.h"
#include "internal.h"
#include "memory/runs_list.h"
#include "vm/list.h"
#include "vm/lookup.h"

#define LIST_PROBES 32u /* address ranges per hold of ctx->lock */

/* Describe some runs of a va, from run @first on. */
static unsigned int list_va(const struct accmem_va *va, unsigned int first,
			    struct accmem_run_line *lines, unsigned int max,
			    bool *end)
{
	struct accmem_bo *bo = va->bo;
	unsigned int i, nr;

	*end = true;
	if (va->imported || bo->cv->kind == ACCMEM_KIND_HOST)
		return 0;
	accmem_carveout_lock(bo->cv);
	nr = accmem_bo_list_runs(bo, first, lines, max, end);
	accmem_carveout_unlock(bo->cv);
	for (i = 0; i < nr; i++)
		lines[i].cached = lines[i].state == ACCMEM_LIVE &&
				  !va->published;
	return nr;
}

/**
 * accmem_context_list_runs() - describe some runs of the memory of a context
 * @ctx: the context
 * @address: in: device address at which the list begins; out: for the next call, or
 *	ACCMEM_ADDRESS_NONE at the end
 * @first: in: index of the first run at @address; out: for the next call
 * @lines: out: the runs
 * @max: number of entries in @lines
 *
 * Context: Takes and releases ctx->lock, and the locks of carveouts. Does not sleep.
 * Return: the number of runs in @lines.
 */
unsigned int accmem_context_list_runs(struct accmem_context *ctx, u64 *address,
				      unsigned int *first,
				      struct accmem_run_line *lines,
				      unsigned int max)
{
	unsigned int nr = 0, part, probes = LIST_PROBES;
	struct accmem_va *va;
	bool end;

	spin_lock(&ctx->lock);
	va = accmem_va_above(ctx, *address);
	/* The buffer of the last call may be free meanwhile. */
	if (va && va->start != *address)
		*first = 0;
	for (; va && nr < max && probes--; va = accmem_va_next(va)) {
		part = list_va(va, *first, lines + nr, max - nr, &end);
		nr += part;
		*first = end ? 0 : *first + part;
		*address = end ? accmem_va_end(va) : va->start;
		if (!end)
			break;
	}
	if (!va)
		*address = ACCMEM_ADDRESS_NONE;
	spin_unlock(&ctx->lock);
	return nr;
}
