/* SPDX-License-Identifier: MIT */
/*
 * libaccmem_torch: the functions that PyTorch's pluggable allocator loads, and functions
 * about their memory.
 *
 *	torch.cuda.memory.CUDAPluggableAllocator("libaccmem_torch.so.0",
 *						 "alloc", "free")
 *
 * The library has these names for PyTorch:
 *
 *	alloc		accmem_torch_alloc()
 *	free		accmem_torch_free()
 *	reset		accmem_torch_empty_cache(), for set_reset_fn()
 *	memory_fraction	accmem_torch_set_memory_fraction(), for set_memory_fraction_fn()
 *	base_alloc	accmem_torch_base_alloc(), for set_base_alloc_fn()
 *	record_stream	accmem_torch_record_stream(), for set_record_stream_fn()
 *
 * PyTorch does not look at results. Therefore the functions of these names, but for
 * free(), throw a std::runtime_error with the text of accmem_last_error() after an error.
 * Only C++ may call them. They are for dlsym(): a program is not linked with the library.
 *
 * Device number N is /dev/accmemN; number 0 is $ACCMEM_DEVICE if that is set. A device is
 * opened when it is first used.
 *
 * Pointers point into the window of the device's context, and the CPU may use them. The
 * functions are thread-safe, and may be called in both processes after fork().
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
 * accmem_torch_alloc() - allocate memory
 * @size: bytes
 * @device: number of the device
 * @stream: handle of the stream on which the memory is used first
 *
 * Return: the memory; NULL for a size of 0 or less, and if the request cannot be served.
 * accmem_last_error() describes the error.
 */
void *accmem_torch_alloc(ssize_t size, int device, void *stream);

/**
 * accmem_torch_free() - free memory
 * @pointer: an allocation; the call does nothing for NULL
 * @size: ignored, since the library knows the size
 * @device: device of the allocation
 * @stream: handle of the stream on which the memory was used last
 *
 * The memory is reused on other streams when the work on @stream is done, by the rules of
 * <accmem_streams.h>. If accmem_torch_record_stream() has named more streams, the work on
 * these has to be done, too. If @pointer is no allocation of the device, the call does nothing.
 * If there is no descriptor or memory for the wait, the allocation stays. The function
 * accmem_torch_bad_frees() counts both cases.
 */
void accmem_torch_free(void *pointer, ssize_t size, int device, void *stream);

/**
 * accmem_torch_record_stream() - name another stream that uses an allocation
 * @pointer: any pointer into the allocation, or NULL
 * @stream: handle of the stream
 *
 * After its free the memory is reused when the work that was submitted to @stream before
 * the free is done. As long as two or more streams have work to do, the memory remains
 * allocated; the next calls of this library look for the end of the work.
 *
 * Return: 0; -ENOENT if @pointer points into no allocation; -ENOMEM.
 */
int accmem_torch_record_stream(void *pointer, void *stream);

/**
 * accmem_torch_set_memory_fraction() - limit the allocations on a device
 * @fraction: 0 to 1, of the capacity of the device. 1 is no limit
 * @device: number of the device
 *
 * The limit is on the usable bytes of all allocations of this process. Allocations that
 * exist stay.
 *
 * Return: 0; -EINVAL for any other @fraction; -ENODEV if the device cannot be opened.
 */
int accmem_torch_set_memory_fraction(double fraction, int device);

/**
 * accmem_torch_base_alloc() - find the allocation that a pointer points into
 * @pointer: any pointer
 * @size: out: bytes of the allocation; or NULL
 *
 * Return: the first byte; NULL if there is no allocation.
 */
void *accmem_torch_base_alloc(void *pointer, size_t *size);

/**
 * accmem_torch_empty_cache() - give the free memory of all devices back
 */
void accmem_torch_empty_cache(void);

/**
 * accmem_torch_trim() - give free memory back to the device
 * @device: number of the device
 * @keep_bytes: free bytes that the pool may keep
 *
 * Return: bytes given back.
 */
uint64_t accmem_torch_trim(int device, uint64_t keep_bytes);

/**
 * accmem_torch_get_stats() - get the statistics of a device's pool
 * @device: number of the device
 * @stats: out: needs no initialisation. Peaks are those since the last reset
 *
 * Return: 0; -ENODEV if the device has not been used.
 */
int accmem_torch_get_stats(int device, struct accmem_pool_stats *stats);

/**
 * accmem_torch_reset_peaks() - set both peaks to the current values
 * @device: number of the device
 */
void accmem_torch_reset_peaks(int device);

/**
 * accmem_torch_bad_frees() - get the number of frees that failed
 *
 * Return: number of failures in the process, because the pointer was no allocation of its
 * device, or for lack of a descriptor or memory.
 */
uint64_t accmem_torch_bad_frees(void);

/**
 * accmem_torch_pool() - get the pool of a device
 * @device: number of the device
 *
 * Return: the pool, which is never destroyed; NULL if the device cannot be opened, and
 * then accmem_last_error() describes the error.
 */
struct accmem_pool *accmem_torch_pool(int device);

/**
 * accmem_torch_streams() - get the stream handles of a device
 * @device: number of the device
 *
 * Return: the set of handles, which is never destroyed; NULL if the device cannot be
 * opened or memory is short, and then accmem_last_error() describes the error.
 */
struct accmem_streams *accmem_torch_streams(int device);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_TORCH_H */
