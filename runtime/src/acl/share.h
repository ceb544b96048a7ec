/* SPDX-License-Identifier: MIT */
/* Exports of handles to other processes. */
#ifndef ACCMEM_RUNTIME_ACL_SHARE_H
#define ACCMEM_RUNTIME_ACL_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Offer the dma-buf @fd to the processes that will be named, or with @any to all processes of
 * the user. On success the share owns @fd, and @number is not 0. Returns 0 or a negative
 * errno value. The caller may hold accmem_acl_map_lock.
 */
int accmem_acl_share_add(int fd, bool any, uint64_t *number);

/* End a share, if this process has made it. The caller may hold accmem_acl_map_lock. */
void accmem_acl_share_remove(uint64_t number);

/* End all shares in a child of fork(). The caller holds accmem_acl_shares_lock. */
void accmem_acl_shares_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_SHARE_H */
