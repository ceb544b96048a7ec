/* SPDX-License-Identifier: MIT */
/*
 * The calls of TensorRT's IGpuAllocator and IGpuAsyncAllocator, over a pool.
 *
 * C++ programs use <accmem_tensorrt.hpp>, Python programs the module accmem_tensorrt.
 * Both are made of these calls. Pointers are those of the pool: they point into the
 * window of its context. The CPU may access the memory, unless the allocator is
 * ACCMEM_TENSORRT_UNMAPPED.
 *
 * After an error, calls that allocate return NULL and calls that free return false;
 * accmem_last_error() describes the error. The functions are thread-safe, except that
 * accmem_tensorrt_destroy() must be the last call on an allocator.
 */
#ifndef ACCMEM_TENSORRT_H
#define ACCMEM_TENSORRT_H

#include <accmem_pool.h>
#include <accmem_streams.h>

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct accmem_tensorrt;

/* The bit of AllocatorFlag::kRESIZABLE, whose value is the number of the bit. */
#define ACCMEM_TENSORRT_RESIZABLE 0x1u

/*
 * Flags of an allocator.
 *
 * UNMAPPED  The CPU may access an allocation only after accmem_pool_map().
 */
#define ACCMEM_TENSORRT_UNMAPPED 0x1u
#define ACCMEM_TENSORRT_FLAGS ACCMEM_TENSORRT_UNMAPPED

/**
 * struct accmem_tensorrt_options - options of an allocator
 * @size: bytes of this structure, or 0
 * @flags: ACCMEM_TENSORRT_*
 * @reserve_bytes: bytes of addresses, not of memory, that a RESIZABLE allocation reserves
 *	for growth. 0 for the default: eight times the requested size, but at least 128
 *	MiB, or less if the device does not have so many addresses; and none once all
 *	reservations of the context would take more than half of the addresses
 * @carveout: index of the carveout
 * @reserved: 0
 */
struct accmem_tensorrt_options {
	uint32_t size;
	uint32_t flags;
	uint64_t reserve_bytes;
	uint32_t carveout;
	uint32_t reserved;
};

/**
 * accmem_tensorrt_create() - create an allocator over a pool
 * @pool: the pool, which must exist as long as the allocator
 * @options: options, or NULL for the defaults
 * @allocator: out: the allocator
 *
 * Return: 0; -EINVAL for unknown flags, another size, or a carveout that does not exist;
 * -ENOMEM.
 */
int accmem_tensorrt_create(struct accmem_pool *pool,
			   const struct accmem_tensorrt_options *options,
			   struct accmem_tensorrt **allocator);

/**
 * accmem_tensorrt_open() - create an allocator with a context and a pool of its own
 * @path: device node, or NULL: see accmem_open()
 * @options: as for accmem_tensorrt_create()
 * @allocator: out: the allocator
 *
 * Return: 0; the errors of accmem_open(), accmem_pool_create() and
 * accmem_tensorrt_create().
 */
int accmem_tensorrt_open(const char *path,
			 const struct accmem_tensorrt_options *options,
			 struct accmem_tensorrt **allocator);

/**
 * accmem_tensorrt_destroy() - destroy an allocator
 * @allocator: the allocator, on which no other call is in progress, or NULL
 *
 * Its allocations stay in the pool. A pool and a context of its own are destroyed.
 */
void accmem_tensorrt_destroy(struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_pool() - get the pool of an allocator
 * @allocator: the allocator
 *
 * Return: the pool.
 */
struct accmem_pool *
accmem_tensorrt_pool(const struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_streams() - get the stream handles of an allocator
 * @allocator: the allocator
 *
 * The program's calls of <accmem_streams.h> on these handles decide when an asynchronous
 * release at a cudaStream_t takes effect (T10).
 *
 * Return: the set of handles.
 */
struct accmem_streams *
accmem_tensorrt_streams(const struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_allocate() - IGpuAllocator::allocate()
 * @allocator: the allocator
 * @size: bytes; the result for 0 is NULL (T1)
 * @alignment: 0 for the default, or a power of two (T3)
 * @flags: ACCMEM_TENSORRT_RESIZABLE, or 0
 *
 * Return: the memory; NULL if the request cannot be served (T2), or if its alignment or a
 * flag is invalid.
 */
void *accmem_tensorrt_allocate(struct accmem_tensorrt *allocator, uint64_t size,
			       uint64_t alignment, uint32_t flags);

/**
 * accmem_tensorrt_reallocate() - IGpuAllocator::reallocate()
 * @allocator: the allocator
 * @base: a RESIZABLE allocation of this allocator (T4)
 * @alignment: the alignment of the allocation's request, or a smaller one
 * @new_size: bytes, at least 1
 *
 * Keeps the bytes up to the smaller of both sizes (T5), and the address while the
 * reservation lasts (T7).
 *
 * Return: the memory at its new address; NULL if it cannot be resized, and then it is
 * unchanged (T6).
 */
void *accmem_tensorrt_reallocate(struct accmem_tensorrt *allocator, void *base,
				 uint64_t alignment, uint64_t new_size);

/**
 * accmem_tensorrt_deallocate() - IGpuAllocator::deallocate()
 * @allocator: the allocator
 * @memory: an allocation of this allocator, or NULL
 *
 * Return: true if the allocation was released, and for NULL; false if @memory is not the
 * first byte of an allocation of the pool (T8).
 */
bool accmem_tensorrt_deallocate(struct accmem_tensorrt *allocator,
				void *memory);

/**
 * accmem_tensorrt_allocate_async() - IGpuAsyncAllocator::allocateAsync()
 * @allocator: the allocator
 * @size: as for accmem_tensorrt_allocate()
 * @alignment: as for accmem_tensorrt_allocate()
 * @flags: as for accmem_tensorrt_allocate()
 * @stream: handle of the stream on which the memory is used first
 *
 * The memory may have been deallocated at the same stream, because the work on one stream
 * is in order.
 *
 * Return: as accmem_tensorrt_allocate().
 */
void *accmem_tensorrt_allocate_async(struct accmem_tensorrt *allocator,
				     uint64_t size, uint64_t alignment,
				     uint32_t flags, void *stream);

/**
 * accmem_tensorrt_deallocate_async() - IGpuAsyncAllocator::deallocateAsync()
 * @allocator: the allocator
 * @memory: as for accmem_tensorrt_deallocate()
 * @stream: handle of the stream on which the memory was used last
 *
 * The memory is reused only on @stream until the work that was submitted to @stream
 * before this call is done (T10). The program reports that through
 * accmem_tensorrt_streams().
 *
 * Return: as accmem_tensorrt_deallocate(); also false if there is no descriptor for a
 * stream, and then the memory is unchanged.
 */
bool accmem_tensorrt_deallocate_async(struct accmem_tensorrt *allocator,
				      void *memory, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_TENSORRT_H */
