/* SPDX-License-Identifier: MIT */
/*
 * The calls of TensorRT's IGpuAllocator and IGpuAsyncAllocator, on a pool.
 *
 * C++ programs use <accmem_tensorrt.hpp>, Python the module accmem_tensorrt; both
 * are made of these calls. Pointers are the pool's: into the window of its context,
 * and accessible to the CPU unless ACCMEM_TENSORRT_UNMAPPED says otherwise.
 *
 * The calls that allocate return NULL, and those that free return false, where
 * something is wrong; accmem_last_error() says what. All are thread-safe, except
 * that accmem_tensorrt_destroy() must be the last.
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
 * UNMAPPED  memory is not accessible to the CPU, until accmem_pool_map() of it
 */
#define ACCMEM_TENSORRT_UNMAPPED 0x1u
#define ACCMEM_TENSORRT_FLAGS ACCMEM_TENSORRT_UNMAPPED

/**
 * struct accmem_tensorrt_options - what an allocator is to be like
 * @size: bytes of this structure
 * @flags: ACCMEM_TENSORRT_*
 * @reserve_bytes: what a RESIZABLE allocation is expected to grow to: addresses are
 *	reserved for so much, memory is not. 0 for the default: eight times what is
 *	asked for first, 128 MiB at least. Where there are not so many addresses, it is
 *	less
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
 * accmem_tensorrt_create() - make an allocator over a pool
 * @pool: the pool, which has to stay as long
 * @options: what it is to be like, or NULL for the defaults
 * @allocator: out: the allocator
 *
 * Return: 0; -EINVAL for unknown flags, another size, no such carveout; -ENOMEM.
 */
int accmem_tensorrt_create(struct accmem_pool *pool,
			   const struct accmem_tensorrt_options *options,
			   struct accmem_tensorrt **allocator);

/**
 * accmem_tensorrt_open() - make an allocator with a context and a pool of its own
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
 * accmem_tensorrt_destroy() - forget an allocator
 * @allocator: the allocator, on which no other call is in progress, or NULL
 *
 * What it has allocated stays the pool's; a pool and a context of its own go.
 */
void accmem_tensorrt_destroy(struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_pool() - the pool under an allocator
 * @allocator: the allocator
 *
 * Return: the pool.
 */
struct accmem_pool *
accmem_tensorrt_pool(const struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_streams() - the stream handles of an allocator
 * @allocator: the allocator
 *
 * What is said of a cudaStream_t here decides when an asynchronous release at it
 * takes effect (T10). <accmem_streams.h> has the rules.
 *
 * Return: the handles.
 */
struct accmem_streams *
accmem_tensorrt_streams(const struct accmem_tensorrt *allocator);

/**
 * accmem_tensorrt_allocate() - IGpuAllocator::allocate()
 * @allocator: the allocator
 * @size: bytes; NULL is returned for 0 (T1)
 * @alignment: 0 for any, or a power of two (T3)
 * @flags: ACCMEM_TENSORRT_RESIZABLE, or 0
 *
 * Return: the memory; NULL where the request cannot be met (T2), or has an alignment
 * or a flag that is unknown.
 */
void *accmem_tensorrt_allocate(struct accmem_tensorrt *allocator, uint64_t size,
			       uint64_t alignment, uint32_t flags);

/**
 * accmem_tensorrt_reallocate() - IGpuAllocator::reallocate()
 * @allocator: the allocator
 * @base: what it has allocated as RESIZABLE (T4)
 * @alignment: what was asked for when it was allocated, or less
 * @new_size: bytes, at least 1
 *
 * Keeps the bytes that fit in the old and the new size (T5), and the address while the
 * reservation lasts (T7).
 *
 * Return: where the memory is now; NULL where it cannot be resized, and then it is
 * what it was (T6).
 */
void *accmem_tensorrt_reallocate(struct accmem_tensorrt *allocator, void *base,
				 uint64_t alignment, uint64_t new_size);

/**
 * accmem_tensorrt_deallocate() - IGpuAllocator::deallocate()
 * @allocator: the allocator
 * @memory: what it has allocated, or NULL
 *
 * Return: true if it has been released, and for NULL; false for what is no allocation
 * of the pool, or not the first byte of one (T8).
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
 * May return what was deallocated at the same stream, whose work is in order.
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
 * The memory is not used again, but on @stream, before the work submitted to it up
 * to now is done (T10), which the program says to accmem_tensorrt_streams().
 *
 * Return: as accmem_tensorrt_deallocate(); also false where there are no descriptors
 * left for a stream, and then the memory is what it was.
 */
bool accmem_tensorrt_deallocate_async(struct accmem_tensorrt *allocator,
				      void *memory, void *stream);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_TENSORRT_H */
