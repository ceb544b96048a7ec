/* SPDX-License-Identifier: MIT */
/*
 * What the sources of PyTorch's library share.
 */
#ifndef ACCMEM_ADAPTERS_TORCH_H
#define ACCMEM_ADAPTERS_TORCH_H

#include <accmem_torch.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/**
 * accmem_torch_try() - accmem_torch_alloc(), with the error
 * @size: bytes
 * @device: number of the device
 * @stream: handle of the stream
 * @pointer: out: the memory, NULL for a size of 0
 *
 * Return: 0 or a negative errno value; accmem_last_error() describes it.
 */
int accmem_torch_try(ssize_t size, int device, void *stream, void **pointer);

/* The device of a pool, or a negative value if the pool is not PyTorch's. */
int accmem_torch_device(const struct accmem_pool *pool);

/*
 * The lock of recorded streams, and of allocations within a memory fraction. It comes
 * before the locks of stream handles and of pools. Taking it returns 0 or -ENOMEM.
 */
int accmem_torch_lock(void);
void accmem_torch_unlock(void);

/**
 * accmem_torch_retire() - free an allocation that has recorded streams
 * @streams: the stream handles of its device
 * @pointer: its first byte
 * @handle: handle of the stream of the free
 *
 * Return: 0; -ENOENT if no stream is recorded for the allocation; -EINVAL if it was freed
 * before; the errors of accmem_streams_locate(), after which it is not freed.
 */
int accmem_torch_retire(struct accmem_streams *streams, void *pointer,
			void *handle);

/*
 * Release freed allocations whose recorded streams are done: all of these, or the oldest
 * ones. Returns whether there was any.
 */
bool accmem_torch_release_retired(bool all);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ADAPTERS_TORCH_H */
