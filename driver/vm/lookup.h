/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lookup of published buffers by device address.
 */
#ifndef ACCMEM_VM_LOOKUP_H
#define ACCMEM_VM_LOOKUP_H

#include <linux/types.h>

#define ACCMEM_ADDRESS_NONE \
	(~0ull) /* no device address: the end of accmem_buffer_next() */

struct accmem_buffer;
struct accmem_context;

void accmem_buffer_publish(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
void accmem_buffer_unpublish(struct accmem_context *ctx,
			     struct accmem_buffer *buf);
struct accmem_buffer *accmem_buffer_find(struct accmem_context *ctx,
					 u64 address);
struct accmem_buffer *accmem_buffer_next(struct accmem_context *ctx,
					 u64 *address);

#endif /* ACCMEM_VM_LOOKUP_H */
