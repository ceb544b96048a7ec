/* SPDX-License-Identifier: MIT */
/* Allocations of a provider in other processes. */
#ifndef ACCMEM_UMF_IPC_H
#define ACCMEM_UMF_IPC_H

#include <accmem_pool.h>
#include <stdbool.h>

/**
 * struct umf_ipc - an exported allocation, as bytes that processes pass on
 * @magic: UMF_IPC_MAGIC
 * @inode: inode of the dma-buf
 * @length: bytes of the export
 * @pid: process that has the descriptor open
 * @fd: descriptor of the dma-buf in that process
 */
struct umf_ipc {
	uint64_t magic;
	uint64_t inode;
	uint64_t length;
	int32_t pid;
	int32_t fd;
};

/**
 * accmem_umf_ipc_get() - export an allocation, or a part of one
 * @pool: the pool
 * @pointer: first byte
 * @size: bytes. If the range ends with the allocation, all of the last page is exported
 * @ipc: out: the export, which accmem_umf_ipc_put() ends
 *
 * Return: 0; -EINVAL if the range does not consist of whole pages; the errors of
 * accmem_pool_export(), among them -ENOENT and -EPERM.
 */
int accmem_umf_ipc_get(struct accmem_pool *pool, const void *pointer,
		       uint64_t size, struct umf_ipc *ipc);

/* Close the descriptor of an export. -EINVAL: @ipc is no open export of this process. */
int accmem_umf_ipc_put(const struct umf_ipc *ipc);

/**
 * accmem_umf_ipc_open() - import an export of any process
 * @pool: the pool that gets the allocation
 * @ipc: the export
 * @mapped: map the memory for the CPU
 * @pointer: out: first byte
 *
 * Return: 0; -EINVAL if @ipc is no export, or one that has ended; -ESRCH if the process
 * has ended; -EACCES if this process may not ptrace(2) the other; the errors of
 * accmem_pool_import() and accmem_pool_map().
 */
int accmem_umf_ipc_open(struct accmem_pool *pool, const struct umf_ipc *ipc,
			bool mapped, void **pointer);

/* Release an import of accmem_umf_ipc_open(). -EINVAL: @pointer is not such an import. */
int accmem_umf_ipc_close(struct accmem_pool *pool, void *pointer,
			 uint64_t size);

#endif /* ACCMEM_UMF_IPC_H */
