/* SPDX-License-Identifier: MIT */
/*
 * Pools: allocations of device memory by pointer, most of them without a system call.
 *
 * A pool takes buffers from a context and divides them into allocations. An allocation is
 * named by a pointer into the context's window of host addresses:
 *
 *	pointer = window + (device address - accmem_info.address_base)
 *
 * so pointer arithmetic works, and any pointer into an allocation finds it. The CPU may
 * access device memory after accmem_pool_map(), or if the request asked for that. It may
 * always access host memory and shared memory.
 *
 * The functions return 0 or a negative errno value, unless their description says
 * otherwise. They are thread-safe, except that accmem_pool_destroy() must be the last
 * call on a pool. After an error accmem_last_error() describes it.
 *
 * After fork(), a pool in the child allocates memory of the child's own. Allocations of
 * the parent stay accessible to the child as far as they were mapped. They belong to the
 * parent: the child may release them, which frees nothing. In the child the pools of a
 * context that the parent opened have no thread, and keep no memory that is released, except
 * in threads' caches: the driver notifies only the parent when others wait. That holds for
 * pools that the child creates, too. A child that allocates often opens a context of its own.
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
 * DIRECT    Keep no memory: every request is a system call. The environment variable
 *	     ACCMEM_POOL=direct sets the flag.
 * LEAKS     When the pool is destroyed, list the allocations that were not released on
 *	     stderr, with their call sites. ACCMEM_POOL=leaks sets the flag.
 * HISTORY   Record the last allocations and releases, with their call sites, for
 *	     accmem_pool_snapshot(). ACCMEM_POOL=history sets the flag.
 * PASSIVE   Start no thread. Without this flag, a thread gives memory back when other
 *	     contexts, or requests of this pool, wait for memory. In a passive pool
 *	     accmem_pool_yield() does that for other contexts; the pool registers the
 *	     context for ACCMEM_IOC_PRESSURE without an eventfd, in place of a
 *	     registration of the program, which should make none. ACCMEM_POOL=passive
 *	     sets the flag.
 *
 * ACCMEM_POOL may name several flags, separated by commas. A set-user-ID program ignores
 * it.
 */
#define ACCMEM_POOL_DIRECT 0x1u
#define ACCMEM_POOL_LEAKS 0x2u
#define ACCMEM_POOL_HISTORY 0x4u
#define ACCMEM_POOL_PASSIVE 0x8u
#define ACCMEM_POOL_FLAGS                                               \
	(ACCMEM_POOL_DIRECT | ACCMEM_POOL_LEAKS | ACCMEM_POOL_HISTORY | \
	 ACCMEM_POOL_PASSIVE)

/* The pool keeps all free memory until other contexts wait for memory. */
#define ACCMEM_POOL_KEEP_ALL UINT64_MAX

/**
 * struct accmem_pool_options - options of a pool
 * @size: bytes of this structure, or 0
 * @flags: ACCMEM_POOL_*
 * @keep_bytes: free bytes that the pool keeps. When a release makes more bytes free, the
 *	pool gives memory back. 0 for the default, which is ACCMEM_POOL_KEEP_ALL
 */
struct accmem_pool_options {
	uint32_t size;
	uint32_t flags;
	uint64_t keep_bytes;
};

/**
 * accmem_pool_create() - create a pool on a context
 * @ctx: the context, which must exist as long as the pool
 * @options: options, or NULL for the defaults
 * @pool: out: the pool
 *
 * The pool has no memory yet.
 *
 * Return: 0; -EINVAL for unknown flags or another size; -ENOMEM, also if the context has
 * no window (accmem_open()); -ECONNRESET, -ENODEV.
 */
int accmem_pool_create(struct accmem_context *ctx,
		       const struct accmem_pool_options *options,
		       struct accmem_pool **pool);

/**
 * accmem_pool_destroy() - destroy a pool and free all its memory
 * @pool: the pool, on which no other call is in progress, or NULL
 *
 * Allocations that were not released are freed, too. The device must have finished with the
 * memory: memory that was released at a position is freed at once, even if the position is not
 * reached. Only an allocation that is a buffer of the driver keeps waiting.
 */
void accmem_pool_destroy(struct accmem_pool *pool);

/**
 * accmem_pool_context() - get the context of a pool
 * @pool: the pool
 *
 * Return: the context.
 */
struct accmem_context *accmem_pool_context(const struct accmem_pool *pool);

/**
 * struct accmem_pool_request - a request for an allocation
 * @size: bytes of this structure, set by the library
 * @flags: ACCMEM_ALLOC_ROUND32, _TAIL32, _POPULATE, _CONTIGUOUS, _TOP_DOWN, _RESIZABLE,
 *	_WAIT, _HIGH_BANDWIDTH, _LOW_BANDWIDTH, _CARVEOUT, with the meaning that they have
 *	for ALLOC (<linux/accmem.h>)
 * @length: bytes, at least 1
 * @alignment: alignment of the pointer and the device address: 0 for the default of 64
 *	bytes, or a power of two up to accmem_info.max_alignment. If the process has no
 *	room for a window with that alignment, the limit is lower, but at least 2 MiB
 * @kind: enum accmem_kind
 * @page_policy: enum accmem_page_policy
 * @cache_mode: enum accmem_cache_mode
 * @carveout: index of the carveout
 * @mapped: 1: the CPU may read and write the memory when the call returns; with @on_stream,
 *	only once @position is reached
 * @on_stream: 1: the memory is for work on @stream, and may be memory that was released
 *	at a position of @stream which has not been reached
 * @stream: with on_stream, file descriptor of a stream of the context
 *	(accmem_open_stream()); else 0
 * @exportable: 1: accmem_pool_export() may export the allocation. The allocation is then
 *	a buffer of the driver, on pages of its own. Not together with @on_stream
 * @reserve: with RESIZABLE, bytes that the allocation may grow to; else 0
 * @deadline_ns: with WAIT, as in struct accmem_alloc; else 0
 * @pointer: out: the first byte
 * @address: out: device address of @pointer
 * @usable: out: usable bytes, at least @length
 * @position: out: position of @stream before which only work on @stream may access the
 *	memory; 0 if there is no such restriction
 *
 * The memory is not initialised. It may contain earlier data of this process, but no data
 * of other processes.
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
	uint32_t exportable;
	uint64_t reserve;
	uint64_t deadline_ns;
	void *pointer;
	uint64_t address;
	uint64_t usable;
	uint64_t position;
};

/**
 * accmem_pool_allocate() - allocate, with all options
 * @pool: the pool
 * @req: the request; the library sets @size. After an error the other members are
 *	unchanged
 *
 * If memory is short, the pool first frees pieces whose position has been reached. Then
 * it, and all other pools of the context, give their free memory back, and the pool tries
 * again. If memory is still short and other contexts hold memory, the driver asks these contexts
 * to give back memory that they keep. A call without ACCMEM_ALLOC_WAIT waits for this memory
 * for 100 ms at most, and then fails. If no other context holds memory, such a call fails
 * without a wait.
 *
 * A request with ACCMEM_ALLOC_WAIT gets a buffer of the driver, by a system call, even if
 * the pool has free memory. The call first frees memory in the same way, and then waits.
 * During the wait:
 * - The pool keeps no memory that is released, with two exceptions: memory in the caches of
 *   threads, and free memory that lies before cached memory in the same region.
 * - The pool's thread scans all pools of the context for memory to free: ten times a
 *   second at first, and at least once a second.
 * - If the thread cannot be started, the waiting call scans all pools of the context once
 *   a second, and then moves to the end of the queue.
 * - A passive pool does not scan: memory that streams reach is freed by the next call
 *   that looks for it. At the deadline the call scans and tries once more.
 *
 * Return: 0; the errors of struct accmem_alloc, among them -EINVAL for a length of 0, for
 * an alignment that is too large or no power of two, and for a value that @mapped,
 * @on_stream, @stream or @exportable cannot have; -EOPNOTSUPP for a kind that the device does
 * not have; -EDQUOT, -ENOMEM, -EOVERFLOW, -EINTR. Only the driver checks @stream. If the pool
 * serves a request without the driver, a @stream of another context, or one that is closed or
 * no stream, is no error, and the pool reuses no memory early.
 */
int accmem_pool_allocate(struct accmem_pool *pool,
			 struct accmem_pool_request *req);

/**
 * accmem_pool_malloc() - allocate device memory with the default alignment and policy
 * @pool: the pool
 * @length: bytes, at least 1
 *
 * Return: the first byte; NULL with errno set to the positive value of an error of
 * accmem_pool_allocate().
 */
void *accmem_pool_malloc(struct accmem_pool *pool, size_t length);

/**
 * accmem_pool_release() - release an allocation
 * @pool: the pool
 * @pointer: first byte of the allocation
 *
 * The call does not wait for work in flight, and the pool may reuse the memory at once.
 * An allocation on a device that is gone can be released as well.
 *
 * Return: 0; -ENOENT if @pointer is no allocation of this pool: NULL, a wild pointer, a
 * pointer of another pool, or an allocation that was released; -EINVAL if @pointer is
 * inside an allocation; -ENOMEM if the allocation is a mapped buffer of the driver and the
 * process has the most mappings that it may have (vm.max_map_count). The pool cannot detect
 * the second release of an allocation whose address has been allocated again.
 */
int accmem_pool_release(struct accmem_pool *pool, void *pointer);

/**
 * accmem_pool_release_at() - release an allocation at a position of a stream
 * @pool: the pool
 * @pointer: first byte of the allocation
 * @stream: file descriptor of a stream of the context. The stream must stay open until it
 *	reaches the position: the pool takes a closed descriptor for the end of the
 *	stream, also if accmem_open_stream() has given it to another stream since
 * @position: position before which the memory is reused only for requests on @stream
 *
 * The pointer is invalid at once.
 *
 * Only the pool knows the position; the driver does, if the allocation is one of its buffers.
 * accmem_pool_destroy(), accmem_close() and the end of the process do not wait for the
 * position. A kernel driver that has to protect the memory of a program that dies uses
 * accmem_pin() (Documentation/driver-api/provider.rst).
 *
 * A stream of another context is -EACCES. If it has reached the position already, the
 * release may take effect at once instead.
 *
 * Return: as accmem_pool_release(); -EBADF, -EINVAL, -EACCES for the stream; -ENOMEM.
 * After an error the allocation is unchanged.
 */
int accmem_pool_release_at(struct accmem_pool *pool, void *pointer, int stream,
			   uint64_t position);

/**
 * accmem_pool_reallocate() - resize an allocation with ACCMEM_ALLOC_RESIZABLE
 * @pool: the pool
 * @pointer: in: first byte of the allocation; out: its first byte now
 * @length: bytes, at least 1
 *
 * Keeps the bytes up to the shorter of both lengths (T5). The allocation grows in place
 * while its reservation lasts, and moves otherwise. If it was mapped, its new part is
 * mapped, too; if it has moved and cannot be mapped, accmem_pool_map() tries again. After an
 * error the allocation is unchanged (T6).
 *
 * If memory is short, other contexts are asked for it as by accmem_pool_allocate(), for
 * 200 ms at most: for the bytes that the allocation lacks, then if it has to move for all
 * bytes of its new length.
 *
 * Return: 0; -EPERM if the allocation is not RESIZABLE (T4); -ENOENT, -EINVAL as
 * accmem_pool_release(); the errors of struct accmem_realloc.
 */
int accmem_pool_reallocate(struct accmem_pool *pool, void **pointer,
			   size_t length);

/**
 * struct accmem_pool_block - an allocation, as a lookup describes it
 * @pointer: first byte
 * @address: device address of @pointer
 * @length: requested bytes, after ROUND32 and TAIL32
 * @usable: usable bytes
 * @flags: ACCMEM_ALLOC_RESIZABLE, or 0
 * @kind: enum accmem_kind
 * @carveout: index of the carveout
 * @page_size: bytes of the pages that the request asked for: 4 KiB, 2 MiB or 1 GiB
 * @pool: pool of the allocation
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
 * accmem_pool_lookup() - find the allocation that a pointer points into
 * @pool: the pool
 * @pointer: any pointer
 * @block: out: the allocation; or NULL to test whether there is one
 *
 * Return: 0; -ENOENT if @pointer points into no allocation of this pool.
 */
int accmem_pool_lookup(struct accmem_pool *pool, const void *pointer,
		       struct accmem_pool_block *block);

/**
 * accmem_pool_find() - find the allocation that a pointer points into, in all pools
 * @pointer: any pointer
 * @block: out: the allocation and its pool; or NULL
 *
 * During the call, no pool may be destroyed whose memory @pointer could point into.
 *
 * Return: 0; -ENOENT.
 */
int accmem_pool_find(const void *pointer, struct accmem_pool_block *block);

/**
 * accmem_pool_usable_size() - get the usable bytes of an allocation
 * @pool: the pool
 * @pointer: first byte of the allocation
 *
 * Return: bytes; 0 if no allocation starts at @pointer.
 */
size_t accmem_pool_usable_size(struct accmem_pool *pool, const void *pointer);

/**
 * accmem_pool_map() - make an allocation readable and writable to the CPU
 * @pool: the pool
 * @pointer: any pointer into the allocation
 *
 * The allocation stays mapped until it is released. A repeated call is cheap.
 *
 * Return: 0; -ENOENT; the errors of mmap(2).
 */
int accmem_pool_map(struct accmem_pool *pool, const void *pointer);

/**
 * accmem_pool_export() - make a dma-buf of a part of an allocation
 * @pool: the pool
 * @pointer: first byte of the part, at a multiple of 4096 in an exportable allocation
 * @length: bytes, a multiple of 4096; 0 for all bytes up to the end of the last page of
 *	the allocation
 * @flags: as for accmem_export()
 * @fd: out: file descriptor of the dma-buf
 *
 * The export contains no byte of another allocation. After accmem_pool_release() the memory
 * is not used again while any process has the descriptor open, or has imported or mapped it.
 *
 * Return: 0; -ENOENT if @pointer points into no allocation of this pool; -EPERM if the
 * allocation is not exportable, or if this process is a child of fork() and the allocation
 * belongs to its parent; the errors of accmem_export(), among them -EINVAL for a pointer or
 * length that is no multiple of 4096, and -ENXIO for more bytes than the allocation has.
 */
int accmem_pool_export(struct accmem_pool *pool, const void *pointer,
		       uint64_t length, uint32_t flags, int *fd);

/**
 * accmem_pool_import() - make an allocation of exported memory
 * @pool: the pool, on the device of the exporter
 * @fd: file descriptor of an export, which the caller may close after the call
 * @offset: offset of the part in the export, a multiple of 4096
 * @length: bytes, a multiple of 4096; 0 for all bytes up to the end of the export
 * @pointer: out: first byte of the allocation
 *
 * All calls of the pool accept the pointer: accmem_pool_usable_size() returns the number of
 * bytes, accmem_pool_map() maps device memory, and accmem_pool_release() frees the
 * allocation. The release leaves the memory to the exporter and to other importers. The
 * allocation is neither resizable nor exportable.
 *
 * If a limit is reached (-EDQUOT) or memory is short (-ENOMEM), the pools of the context
 * free the memory that no allocation uses, and the call tries once more.
 *
 * Return: 0; the errors of accmem_import().
 */
int accmem_pool_import(struct accmem_pool *pool, int fd, uint64_t offset,
		       uint64_t length, void **pointer);

/**
 * accmem_pool_address() - get the device address of a pointer
 * @pool: the pool
 * @pointer: any pointer into the window
 *
 * Return: the device address, whether it is allocated or not; 0 for a pointer outside of
 * the window.
 */
uint64_t accmem_pool_address(const struct accmem_pool *pool,
			     const void *pointer);

/**
 * accmem_pool_pointer() - get the pointer of a device address
 * @pool: the pool
 * @address: the device address
 *
 * Return: the pointer; NULL if @address is no address of the device.
 */
void *accmem_pool_pointer(const struct accmem_pool *pool, uint64_t address);

/**
 * accmem_pool_trim() - give memory back to the device
 * @pool: the pool
 * @keep_bytes: free bytes that the pool may keep
 *
 * Frees the pieces whose position has been reached, and the calling thread's cache. Other
 * threads, whose caches have a MiB each at most, empty them at their next call that needs
 * more than the cache.
 *
 * Return: bytes given back.
 */
uint64_t accmem_pool_trim(struct accmem_pool *pool, uint64_t keep_bytes);

/**
 * accmem_pool_yield() - give memory back if other contexts wait for memory
 * @pool: the pool
 *
 * A pool without ACCMEM_POOL_PASSIVE has a thread that does this: when a request of
 * another context begins to wait, and repeatedly while it waits (ten times a second at
 * first, and at least once a second). The thread starts when the pool has more than 2
 * MiB, or when a cache takes memory while the pool already has some. If it cannot be
 * started, later calls that go beyond the caches try again; until then the pool keeps no
 * memory that is released, except in threads' caches.
 *
 * In a passive pool the program calls this function: the context's descriptor becomes
 * readable when a request of another context begins to wait for memory. It is readable
 * until this call, a call of ACCMEM_IOC_PRESSURE without flags, or the end of the wait.
 * While the request waits, the program calls the function after releases, too;
 * ACCMEM_IOC_PRESSURE tells how many requests wait.
 *
 * The function frees what all pools of the context keep. In a child of fork() it does
 * nothing if the parent opened the context.
 *
 * Return: bytes that the pools of the context gave back; 0 if no request waits, or if they
 * have nothing to give back.
 */
uint64_t accmem_pool_yield(struct accmem_pool *pool);

/**
 * struct accmem_pool_stats - statistics of a pool
 * @size: in: bytes of this structure, set by the library
 * @reserved: 0
 * @allocations: number of allocations
 * @releases: number of releases
 * @failures: number of requests that failed
 * @live_bytes: usable bytes of all allocations now
 * @peak_live_bytes: largest @live_bytes since the last reset. It is approximate: threads
 *	report when they go beyond their caches, and after a change by a 64th
 * @reserved_bytes: bytes that the pool has taken from the device
 * @peak_reserved_bytes: largest @reserved_bytes since the last reset
 * @pending_bytes: bytes that were released at positions of streams which, as far as the
 *	pool knows, have not been reached. accmem_pool_trim() collects what has been reached
 * @kernel_calls: number of ioctls that allocated, resized or freed a buffer, or queried a
 *	buffer that has moved
 * @kernel_buffers: number of buffers that the pool has
 * @yielded_bytes: bytes given back because other contexts waited
 * @copied_bytes: bytes that accmem_pool_reallocate() has copied
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
 * accmem_pool_get_stats() - get the statistics of a pool
 * @pool: the pool
 * @stats: out: needs no initialisation
 *
 * Calls of other threads in progress may be counted or not.
 */
void accmem_pool_get_stats(struct accmem_pool *pool,
			   struct accmem_pool_stats *stats);

/**
 * accmem_pool_reset_peaks() - set both peaks to the current values
 * @pool: the pool
 */
void accmem_pool_reset_peaks(struct accmem_pool *pool);

/**
 * accmem_pool_snapshot() - write a snapshot of a pool
 * @pool: the pool
 * @fd: a file open for writing
 *
 * Writes JSON in the form of PyTorch's memory snapshots: segments with their blocks, and
 * with ACCMEM_POOL_HISTORY the traces. torch.cuda._memory_viz displays it.
 *
 * Return: 0; -ENOMEM; the errors of write(2).
 */
int accmem_pool_snapshot(struct accmem_pool *pool, int fd);

/**
 * accmem_pool_report_leaks() - list the allocations that were not released
 * @pool: the pool
 * @fd: a file open for writing
 *
 * Writes a line for each allocation: pointer, bytes, and with ACCMEM_POOL_LEAKS or
 * _HISTORY the call site.
 *
 * Return: number of allocations; -ENOMEM; the errors of write(2).
 */
long accmem_pool_report_leaks(struct accmem_pool *pool, int fd);

/**
 * accmem_last_error() - get the text of the calling thread's last error
 *
 * The error is that of the thread's last failed call of accmem.h, of a pool, or of a
 * library on top of pools. The text names the request and the cause: the invalid member,
 * a limit, or a request that is larger than the device. If memory was short, it has the
 * free bytes, the largest run, the bytes that the context and all others hold, and the
 * call that helps.
 *
 * Return: a line without a newline, valid until the thread's next call; "" if no call has
 * failed.
 */
const char *accmem_last_error(void);

/**
 * accmem_set_last_error() - set the text of the last error, for libraries on top of pools
 * @format: as for printf(3)
 */
void accmem_set_last_error(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_POOL_H */
