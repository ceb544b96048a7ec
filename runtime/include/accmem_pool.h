/* SPDX-License-Identifier: MIT */
/*
 * Pools: device memory as a program wants it, by pointer and fast.
 *
 * A pool takes memory from a context of libaccmem in large pieces and hands it out
 * in small ones. What it hands out is named by a pointer into the context's window
 * of host addresses:
 *
 *	pointer = window + (device address - accmem_info.address_base)
 *
 * so pointers can be calculated with, and every pointer into an allocation finds
 * it. Device memory is not accessible to the CPU until accmem_pool_map() has been
 * called, or the request asked for it; host and shared memory always is.
 *
 * Functions return 0 or a negative errno value, unless they say otherwise, and are
 * thread-safe, except that accmem_pool_destroy() must be the last call on a pool.
 * After an error accmem_last_error() says more in words.
 *
 * In a child of fork() the pool goes on with memory of the child's own. What the
 * parent had allocated stays readable and writable to the child as far as it was
 * mapped, and is the parent's: a release of it in the child makes the child forget
 * it and nothing else. The pool is ACCMEM_POOL_PASSIVE there; so is one that the child
 * makes over a context of which a pool of the parent is told what others wait for, or
 * will be: one that was neither PASSIVE nor DIRECT.
 */
#ifndef ACCMEM_POOL_H
#define ACCMEM_POOL_H

#include <accmem.h>

#ifdef __cplusplus
extern "C" {
#endif

struct accmem_pool;

/*
 * Flags of a pool.
 *
 * DIRECT    keep nothing: every request is a call of the kernel. The environment
 *	     variable ACCMEM_POOL=direct does the same
 * LEAKS     tell on stderr, when the pool is destroyed, what was not released, and by
 *	     whom it was allocated. ACCMEM_POOL=leaks does the same
 * HISTORY   keep the last allocations and releases for accmem_pool_snapshot(), with
 *	     their call sites. ACCMEM_POOL=history does the same
 * PASSIVE   start no thread that gives memory back when other contexts wait for it, or
 *	     requests of the pool's own; accmem_pool_yield() does the former when it is
 *	     called. ACCMEM_POOL=passive does the same
 *
 * ACCMEM_POOL may name several, with commas between. A program that runs with
 * raised rights does not look at it.
 */
#define ACCMEM_POOL_DIRECT 0x1u
#define ACCMEM_POOL_LEAKS 0x2u
#define ACCMEM_POOL_HISTORY 0x4u
#define ACCMEM_POOL_PASSIVE 0x8u
#define ACCMEM_POOL_FLAGS                                               \
	(ACCMEM_POOL_DIRECT | ACCMEM_POOL_LEAKS | ACCMEM_POOL_HISTORY | \
	 ACCMEM_POOL_PASSIVE)

/* Free bytes are kept whatever they are, until somebody waits for them. */
#define ACCMEM_POOL_KEEP_ALL UINT64_MAX

/**
 * struct accmem_pool_options - what a pool is to be like
 * @size: bytes of this structure
 * @flags: ACCMEM_POOL_*
 * @keep_bytes: free bytes that the pool keeps; beyond that it gives memory back when
 *	something is released. 0 stands for the default, ACCMEM_POOL_KEEP_ALL
 */
struct accmem_pool_options {
	uint32_t size;
	uint32_t flags;
	uint64_t keep_bytes;
};

/**
 * accmem_pool_create() - make a pool over a context
 * @ctx: the context, which has to stay as long
 * @options: what it is to be like, or NULL for the defaults
 * @pool: out: the pool
 *
 * Takes no memory yet.
 *
 * Return: 0; -EINVAL for unknown flags or another size; -ENOMEM, also where the
 * context has no window (accmem_open()).
 */
int accmem_pool_create(struct accmem_context *ctx,
		       const struct accmem_pool_options *options,
		       struct accmem_pool **pool);

/**
 * accmem_pool_destroy() - give all memory back and forget the pool
 * @pool: the pool, on which no other call is in progress, or NULL
 *
 * What was not released goes, too.
 */
void accmem_pool_destroy(struct accmem_pool *pool);

/**
 * accmem_pool_context() - the context under a pool
 * @pool: the pool
 *
 * Return: what accmem_pool_create() was given.
 */
struct accmem_context *accmem_pool_context(const struct accmem_pool *pool);

/**
 * struct accmem_pool_request - an allocation
 * @size: bytes of this structure
 * @flags: ACCMEM_ALLOC_ROUND32, _TAIL32, _POPULATE, _CONTIGUOUS, _TOP_DOWN,
 *	_RESIZABLE, _WAIT, _HIGH_BANDWIDTH, _LOW_BANDWIDTH, _CARVEOUT: what they mean to
 *	ALLOC (<linux/accmem.h>)
 * @length: bytes wanted, at least 1
 * @alignment: of pointer and device address: 0 for the default of 64 bytes, or a power
 *	of two up to accmem_info.max_alignment, or, in a process without room for a
 *	window that is aligned like that, up to 2 MiB at least
 * @kind: enum accmem_kind
 * @page_policy: enum accmem_page_policy
 * @cache_mode: enum accmem_cache_mode
 * @carveout: index of the carveout
 * @mapped: 1: readable and writable to the CPU when the call returns
 * @on_stream: 1: for work on @stream, which may reuse at once what was released at a
 *	position of it
 * @stream: file descriptor of a stream of the context (accmem_open_stream()); else 0
 * @reserved: 0
 * @reserve: with RESIZABLE, bytes that it is expected to grow to; else 0
 * @deadline_ns: with WAIT, as in struct accmem_alloc; else 0
 * @pointer: out: the first byte
 * @address: out: its device address
 * @usable: out: bytes that may be used, @length at least
 * @position: out: 0, or the position of @stream before which only work on the stream
 *	may touch the memory
 *
 * Contents are not initialised: what the process itself had in the memory may be
 * there, what others had is not.
 */
struct accmem_pool_request {
	uint32_t size;
	uint32_t flags;
	uint64_t length;
	uint64_t alignment;
	uint32_t kind;
	uint32_t page_policy;
	uint32_t cache_mode;
	uint32_t carveout;
	uint32_t mapped;
	uint32_t on_stream;
	int32_t stream;
	uint32_t reserved;
	uint64_t reserve;
	uint64_t deadline_ns;
	void *pointer;
	uint64_t address;
	uint64_t usable;
	uint64_t position;
};

/**
 * accmem_pool_allocate() - allocate, with all there is to say about it
 * @pool: the pool
 * @req: what is wanted; the library fills in @size. On failure nothing but that
 *	changes.
 *
 * Does not wait, but with ACCMEM_ALLOC_WAIT. Before it fails for lack of memory, or waits
 * for some, it has given back what the pool keeps and has looked which streams have
 * reached the positions that releases named. While it waits, the pool keeps nothing that
 * is released, but what threads have in their caches, with what lies before that in its
 * region; and it looks for more, in all pools of the context, ten times a second at first
 * and once a second at least. Where the thread that looks cannot begin, the request does:
 * in its own pool, once a second, and then it is the last in line. A passive pool does not
 * look: what streams reach meanwhile stays until the next call that looks for it, or until
 * the deadline, when there is another try.
 *
 * Return: 0; the errors of struct accmem_alloc, among them -EINVAL for a length of 0
 * and an alignment that is no power of two, or too large, -EOPNOTSUPP for a kind that the
 * device has not, -EDQUOT, -ENOMEM, -EOVERFLOW, -EINTR.
 */
int accmem_pool_allocate(struct accmem_pool *pool,
			 struct accmem_pool_request *req);

/**
 * accmem_pool_malloc() - allocate device memory with the default alignment and policy
 * @pool: the pool
 * @length: bytes, at least 1
 *
 * Return: the first byte; NULL with errno set, a positive errno value of
 * accmem_pool_allocate().
 */
void *accmem_pool_malloc(struct accmem_pool *pool, size_t length);

/**
 * accmem_pool_release() - release an allocation
 * @pool: the pool
 * @pointer: its first byte
 *
 * Does not wait for work in flight. The pool may hand the memory out again at once.
 * Memory of a device that has gone has gone with it, and can be released as any other.
 *
 * Return: 0; -ENOENT where no allocation is: NULL, a wild pointer, another pool's, or
 * one that has been released; -EINVAL inside one. An address that has been handed
 * out again cannot be told from one that was never released.
 */
int accmem_pool_release(struct accmem_pool *pool, void *pointer);

/**
 * accmem_pool_release_at() - release an allocation at a position of a stream
 * @pool: the pool
 * @pointer: its first byte
 * @stream: file descriptor of a stream of the context. It stays open until the
 *	position is reached; a close of it is taken for the end of the stream, also
 *	where accmem_open_stream() has given the number to another since
 * @position: before which the memory is not used again, but for requests on @stream
 *
 * The pointer is gone at once.
 *
 * A stream of another context is -EACCES for an allocation that is a buffer of its own.
 * Pieces wait for the positions of any stream: whose it is does not matter to them, and
 * is not looked at.
 *
 * Return: as accmem_pool_release(); -EBADF, -EINVAL, -EACCES for the stream, and -ENOMEM:
 * the allocation is what it was then.
 */
int accmem_pool_release_at(struct accmem_pool *pool, void *pointer, int stream,
			   uint64_t position);

/**
 * accmem_pool_reallocate() - resize an allocation that is ACCMEM_ALLOC_RESIZABLE
 * @pool: the pool
 * @pointer: in: its first byte; out: where it is now
 * @length: bytes wanted, at least 1
 *
 * Keeps the bytes that fit in the old and the new length (T5), in place where that can
 * be, which it can while its reservation lasts. It stays mapped if it was, the part
 * that is new included. On failure the allocation is what it was (T6).
 *
 * Return: 0; -EPERM if it is not RESIZABLE (T4); -ENOENT, -EINVAL as
 * accmem_pool_release(); the errors of struct accmem_realloc.
 */
int accmem_pool_reallocate(struct accmem_pool *pool, void **pointer,
			   size_t length);

/**
 * struct accmem_pool_block - an allocation, as found by a pointer into it
 * @pointer: its first byte
 * @address: device address of that
 * @length: bytes asked for, after ROUND32 and TAIL32
 * @usable: bytes that may be used
 * @flags: ACCMEM_ALLOC_RESIZABLE, or 0
 * @kind: enum accmem_kind
 * @carveout: index of the carveout
 * @page_size: bytes, 4 KiB, 2 MiB or 1 GiB: of the pages that were asked for
 * @pool: the pool that it is from
 */
struct accmem_pool_block {
	void *pointer;
	uint64_t address;
	uint64_t length;
	uint64_t usable;
	uint32_t flags;
	uint32_t kind;
	uint32_t carveout;
	uint32_t page_size;
	struct accmem_pool *pool;
};

/**
 * accmem_pool_lookup() - which allocation a pointer points into
 * @pool: the pool
 * @pointer: any pointer
 * @block: out: the allocation, or NULL if it is enough that there is one
 *
 * Return: 0; -ENOENT if it points into none of this pool.
 */
int accmem_pool_lookup(struct accmem_pool *pool, const void *pointer,
		       struct accmem_pool_block *block);

/**
 * accmem_pool_find() - the same, in all pools of the process
 * @pointer: any pointer
 * @block: out: the allocation, its pool included, or NULL
 *
 * No pool may be destroyed meanwhile whose memory @pointer could point into.
 *
 * Return: 0; -ENOENT.
 */
int accmem_pool_find(const void *pointer, struct accmem_pool_block *block);

/**
 * accmem_pool_usable_size() - bytes that may be used of an allocation
 * @pool: the pool
 * @pointer: its first byte
 *
 * Return: bytes; 0 if no allocation starts there.
 */
size_t accmem_pool_usable_size(struct accmem_pool *pool, const void *pointer);

/**
 * accmem_pool_map() - make an allocation readable and writable to the CPU
 * @pool: the pool
 * @pointer: any pointer into it
 *
 * It stays so until it is released. Calling it again costs little.
 *
 * Return: 0; -ENOENT; the errors of mmap(2).
 */
int accmem_pool_map(struct accmem_pool *pool, const void *pointer);

/**
 * accmem_pool_address() - device address of a pointer
 * @pool: the pool
 * @pointer: any pointer into the window
 *
 * Return: the device address, whether anything is allocated there or not; 0 for a
 * pointer outside of the window.
 */
uint64_t accmem_pool_address(const struct accmem_pool *pool,
			     const void *pointer);

/**
 * accmem_pool_pointer() - pointer for a device address
 * @pool: the pool
 * @address: the device address
 *
 * Return: the pointer; NULL for what is no address of the device.
 */
void *accmem_pool_pointer(const struct accmem_pool *pool, uint64_t address);

/**
 * accmem_pool_trim() - give memory back to the device
 * @pool: the pool
 * @keep_bytes: free bytes that the pool may keep
 *
 * Takes what the calling thread has cached, and what streams have reached. Other
 * threads give up what they have cached, which is a MiB each at most, in their next calls
 * that look beyond their caches.
 *
 * Return: bytes given back.
 */
uint64_t accmem_pool_trim(struct accmem_pool *pool, uint64_t keep_bytes);

/**
 * accmem_pool_yield() - give memory back if other contexts wait for it
 * @pool: the pool
 *
 * A pool without ACCMEM_POOL_PASSIVE does this by itself, once it keeps more than 2 MiB
 * or a thread's cache has taken memory twice: when others begin to wait, and ten times a
 * second at first, once a second at least, as long as they do. The context's descriptor
 * is readable once for each request that begins to wait; as long as one may wait, the
 * call is for after releases, too.
 *
 * For that it has a thread. As long as that cannot begin, as in a process that may have no
 * more threads, the pool tries again when it is called for what no cache has, and keeps
 * nothing that is released, but what threads have in their caches.
 *
 * Return: bytes given back, 0 if nobody waits.
 */
uint64_t accmem_pool_yield(struct accmem_pool *pool);

/**
 * struct accmem_pool_stats - what a pool has done
 * @size: in: bytes of this structure, filled in by the library
 * @reserved: 0
 * @allocations: how many were made
 * @releases: how many were released
 * @failures: requests that failed
 * @live_bytes: bytes of what is allocated now: usable sizes
 * @peak_live_bytes: most of that since the last reset, as far as it was looked at: threads
 *	report when they go to the pool, and what is a 64th of all
 * @reserved_bytes: bytes taken from the device
 * @peak_reserved_bytes: most of that since the last reset
 * @pending_bytes: released at positions of streams that are not known to be reached
 * @kernel_calls: ioctls that allocated, resized or freed, and the QUERY after a resize
 *	that has moved
 * @kernel_buffers: buffers of the kernel that the pool has
 * @yielded_bytes: bytes given back because others waited
 * @copied_bytes: bytes copied by accmem_pool_reallocate()
 */
struct accmem_pool_stats {
	uint32_t size;
	uint32_t reserved;
	uint64_t allocations;
	uint64_t releases;
	uint64_t failures;
	uint64_t live_bytes;
	uint64_t peak_live_bytes;
	uint64_t reserved_bytes;
	uint64_t peak_reserved_bytes;
	uint64_t pending_bytes;
	uint64_t kernel_calls;
	uint64_t kernel_buffers;
	uint64_t yielded_bytes;
	uint64_t copied_bytes;
};

/**
 * accmem_pool_get_stats() - what a pool has done
 * @pool: the pool
 * @stats: out; needs no preparation
 *
 * Other threads that allocate meanwhile may be counted or not.
 */
void accmem_pool_get_stats(struct accmem_pool *pool,
			   struct accmem_pool_stats *stats);

/**
 * accmem_pool_reset_peaks() - peaks start again from what there is now
 * @pool: the pool
 */
void accmem_pool_reset_peaks(struct accmem_pool *pool);

/**
 * accmem_pool_snapshot() - write what is in a pool
 * @pool: the pool
 * @fd: a file open for writing
 *
 * Writes JSON of the shape of PyTorch's memory snapshots: segments with their blocks,
 * and with ACCMEM_POOL_HISTORY the traces, which torch.cuda._memory_viz draws.
 *
 * Return: 0; -ENOMEM; the errors of write(2).
 */
int accmem_pool_snapshot(struct accmem_pool *pool, int fd);

/**
 * accmem_pool_report_leaks() - write what has not been released
 * @pool: the pool
 * @fd: a file open for writing
 *
 * A line each: pointer, bytes, and with ACCMEM_POOL_LEAKS or _HISTORY the call sites.
 *
 * Return: how many there are; -ENOMEM; the errors of write(2).
 */
long accmem_pool_report_leaks(struct accmem_pool *pool, int fd);

/**
 * accmem_last_error() - what went wrong in the calling thread, in words
 *
 * Of the last call of a pool, or of what is built on pools, that failed: what was asked
 * for; for lack of memory how much was free, the largest run, who holds it as far as
 * the caller may know, and what to call next.
 *
 * Return: a line without its end, valid until the thread's next call; "" if none has
 * failed.
 */
const char *accmem_last_error(void);

/**
 * accmem_set_last_error() - for what is built on pools: set what that returns
 * @format: as of printf(3)
 */
void accmem_set_last_error(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_POOL_H */
