/* SPDX-License-Identifier: MIT */
/*
 * libaccmem_torch: the functions that PyTorch's pluggable allocator loads, and what a
 * program may ask of them besides.
 *
 *	torch.cuda.memory.CUDAPluggableAllocator("libaccmem_torch.so.0",
 *						 "alloc", "free")
 *
 * The library has the two under these names, which only dlsym() should find: no
 * program is linked with it. A device's number is that of /dev/accmemN; number 0 is
 * what $ACCMEM_DEVICE names, if it is set. A device is opened when it is used first.
 *
 * Pointers lie in the window of the device's context, and the CPU can use them. All
 * functions are thread-safe, and may be called on both sides of a fork().
 */
#ifndef ACCMEM_TORCH_H
#define ACCMEM_TORCH_H

#include <accmem_pool.h>
#include <accmem_streams.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACCMEM_TORCH_DEVICES 64

/**
 * accmem_torch_alloc() - alloc()
 * @size: bytes
 * @device: its number
 * @stream: handle of the stream on which the memory is used first
 *
 * Return: the memory; NULL for a size of 0 or less, and where the request cannot be
 * met: accmem_last_error() says why.
 */
void *accmem_torch_alloc(ssize_t size, int device, void *stream);

/**
 * accmem_torch_free() - free()
 * @pointer: what alloc() has returned; NULL is nothing
 * @size: ignored: the library knows it
 * @device: that of alloc()
 * @stream: handle of the stream on which the memory was used last
 *
 * Others get the memory when the work on the stream is done, by the rules of
 * <accmem_streams.h>. What is no allocation of the device is left alone, and what
 * cannot wait for its stream, for lack of a descriptor or memory, stays allocated. Both
 * are counted (accmem_torch_bad_frees()).
 */
void accmem_torch_free(void *pointer, ssize_t size, int device, void *stream);

/**
 * accmem_torch_trim() - give memory back that no tensor has
 * @device: its number
 * @keep_bytes: free bytes that may be kept
 *
 * Return: bytes given back.
 */
uint64_t accmem_torch_trim(int device, uint64_t keep_bytes);

/**
 * accmem_torch_get_stats() - what a device has been used for
 * @device: its number
 * @stats: out; needs no preparation. Peaks are those since the last reset
 *
 * Return: 0; -ENODEV for a device that has not been used.
 */
int accmem_torch_get_stats(int device, struct accmem_pool_stats *stats);

/**
 * accmem_torch_reset_peaks() - peaks start again from what there is now
 * @device: its number
 */
void accmem_torch_reset_peaks(int device);

/**
 * accmem_torch_bad_frees() - frees that have failed
 *
 * Return: how many there have been in the process: of what was no allocation of its
 * device, or for lack of a descriptor or memory.
 */
uint64_t accmem_torch_bad_frees(void);

/**
 * accmem_torch_pool() - the pool of a device
 * @device: its number
 *
 * Return: the pool, which stays; NULL where the device cannot be opened, which
 * accmem_last_error() explains.
 */
struct accmem_pool *accmem_torch_pool(int device);

/**
 * accmem_torch_streams() - the stream handles of a device
 * @device: its number
 *
 * Return: the handles, which stay; NULL where the device cannot be opened, or there is
 * no memory for them: accmem_last_error() says which.
 */
struct accmem_streams *accmem_torch_streams(int device);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_TORCH_H */
