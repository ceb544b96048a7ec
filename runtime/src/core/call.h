/* SPDX-License-Identifier: MIT */
/* The calls on a context that are one ioctl each. */
#ifndef ACCMEM_RUNTIME_CORE_CALL_H
#define ACCMEM_RUNTIME_CORE_CALL_H

#include <accmem.h>
#include <stdbool.h>

/* Make one ioctl on the context's file. 0 or a negative errno value. */
int accmem_call(const struct accmem_context *ctx, unsigned long command,
		void *argument);

/*
 * INFO of all carveouts together: the range from the lowest address to the highest, the
 * sums of the byte counts, the longest run of all, and identity translation if any has it.
 */
int accmem_sum_info(struct accmem_context *ctx, struct accmem_info *sum);

/* Is there memory for @length bytes? A buffer of a device that scatters has many runs. */
static inline bool accmem_info_has_room(const struct accmem_info *info,
					uint64_t length)
{
	return length <= (info->features & ACCMEM_FEATURE_SCATTER ?
				  info->free_bytes :
				  info->largest_run);
}

/* As accmem_get_info() and accmem_get_query(), without the text of an error. */
int accmem_query_info(struct accmem_context *ctx, uint32_t carveout,
		      struct accmem_info *info);
int accmem_query_address(struct accmem_context *ctx, uint64_t address,
			 struct accmem_query *query);

/* accmem_get_info() of the newest version */
int accmem_read_info(struct accmem_context *ctx, uint32_t carveout,
		     struct accmem_info *info);

/* INFO of host memory. -EOPNOTSUPP: the device has none. */
int accmem_query_host(struct accmem_context *ctx, struct accmem_info *info);

#endif /* ACCMEM_RUNTIME_CORE_CALL_H */
