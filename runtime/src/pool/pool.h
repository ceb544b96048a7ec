/* SPDX-License-Identifier: MIT */
/* Pools as other folders know them. */
#ifndef ACCMEM_RUNTIME_POOL_POOL_H
#define ACCMEM_RUNTIME_POOL_POOL_H

/*
 * Register the fork handlers of contexts, and of pools after them, once. A file whose
 * locks are held over calls of a pool registers its own fork handlers afterwards. 0 or a
 * negative errno value.
 */
int accmem_pool_watch_fork(void);

#endif /* ACCMEM_RUNTIME_POOL_POOL_H */
