/* SPDX-License-Identifier: MIT */
/* Exports of handles to other processes. */
#ifndef ACCMEM_RUNTIME_ACL_SHARE_H
#define ACCMEM_RUNTIME_ACL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Offer the dma-buf @fd to processes that are named, or to any. On success the share has
 * @fd, and @number is never 0. 0 or a negative errno value. The caller may hold
 * accmem_acl_map_lock.
 */
int accmem_acl_share_add(int fd, bool any, uint64_t *number);

/* End a share, if this process has it. The caller may hold accmem_acl_map_lock. */
void accmem_acl_share_remove(uint64_t number);

/* In a child of fork(), which offers nothing. The caller holds the lock. */
void accmem_acl_shares_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_SHARE_H */
