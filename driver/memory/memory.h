/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory: pieces of a carveout, from creation to release.
 */
#ifndef ACCMEM_MEMORY_H
#define ACCMEM_MEMORY_H

#include <linux/types.h>

#include "types/memory_types.h"

struct accmem_run;

struct accmem_memory *accmem_memory_create(struct accmem_account *account,
					   struct accmem_carveout *cv,
					   const struct accmem_memory_spec *spec);
void accmem_memory_get(struct accmem_memory *mem);
void accmem_memory_put(struct accmem_memory *mem);
void accmem_memory_put_user(struct accmem_memory *mem);
int accmem_memory_extend_prepare(struct accmem_memory *mem, u64 size,
				 u64 page_size, struct accmem_run *more);
void accmem_memory_extend(struct accmem_memory *mem,
			  const struct accmem_run *more);
void accmem_memory_detach(struct accmem_memory *mem);
void accmem_memory_set_pending(struct accmem_memory *mem, bool pending);
void accmem_memory_undo(struct accmem_memory *mem);
bool accmem_memory_is_idle(struct accmem_memory *mem);
bool accmem_memory_shed(struct accmem_memory *mem, bool all);
struct accmem_memory *accmem_memory_create_empty(struct accmem_account *account,
						 struct accmem_carveout *cv,
						 u32 private_size);
int accmem_memory_accept(struct accmem_memory *mem, u32 huge, bool dirty);
void accmem_memory_destroy_empty(struct accmem_memory *mem);

/* did a mapping ever show it? */
static inline bool accmem_memory_was_mapped(const struct accmem_memory *mem)
{
	return READ_ONCE(mem->mapped);
}

/* may a request be served when nobody is at work on it any more? */
static inline void accmem_memory_set_awaited(struct accmem_memory *mem,
					     bool awaited)
{
	WRITE_ONCE(mem->awaited, awaited);
}

#endif /* ACCMEM_MEMORY_H */
