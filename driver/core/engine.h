/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Engine: memory that the device clears and copies in place of the processor.
 */
#ifndef ACCMEM_CORE_ENGINE_H
#define ACCMEM_CORE_ENGINE_H

#include <linux/accmem_provider.h>
#include <linux/types.h>

#include "types/carveout_types.h"

int __accmem_engine_clear(struct accmem_carveout *cv, u64 offset, u64 size);
int accmem_engine_copy(struct accmem_carveout *to, u64 to_offset,
		       struct accmem_carveout *from, u64 from_offset, u64 size);

/**
 * accmem_engine_clear() - let the device zero a part of a carveout
 * @cv: the carveout
 * @offset: offset in the carveout, in bytes
 * @size: bytes
 *
 * Context: Process context, outside of accmem_enter(). Waits for the device. May sleep.
 * Return: 0 if the bytes are zero; an error if the processor has to zero them.
 */
static inline int accmem_engine_clear(struct accmem_carveout *cv, u64 offset,
				      u64 size)
{
	return cv->carveouts->provider_ops.clear ?
		       __accmem_engine_clear(cv, offset, size) :
		       -EOPNOTSUPP;
}

/* Does the device copy from one carveout to another? */
static inline bool accmem_engine_copies(const struct accmem_carveout *to,
					const struct accmem_carveout *from)
{
	return to->carveouts->provider_ops.copy &&
	       to->backing == ACCMEM_BACKING_PHYS &&
	       from->backing == ACCMEM_BACKING_PHYS;
}

#endif /* ACCMEM_CORE_ENGINE_H */
