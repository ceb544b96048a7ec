/* SPDX-License-Identifier: MIT */
/* Release of a piece. */
#ifndef ACCMEM_RUNTIME_POOL_RELEASE_H
#define ACCMEM_RUNTIME_POOL_RELEASE_H

#include <accmem_pool.h>

/* Release the piece at @offset. -ESRCH: no piece is there, maybe a direct allocation. */
int accmem_pool_piece_release(struct accmem_pool *pool, uint64_t offset);

#endif /* ACCMEM_RUNTIME_POOL_RELEASE_H */
