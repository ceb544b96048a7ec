/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * accmem: device memory of an accelerator, handed out by ioctl and mmap.
 *
 * Every structure starts with its own size in bytes. A program built against
 * an older header passes a shorter structure, whose missing tail reads as
 * zero; a program built against a newer one may pass a longer structure, up to
 * 4096 bytes, as long as the tail that the kernel does not know is zero (E2BIG
 * otherwise).
 *
 * The errors that every call shares, in the order they are checked:
 *
 *   ENOTTY      unknown command
 *   EFAULT      the structure cannot be read or written
 *   EINVAL      size is below the first version of the structure
 *   E2BIG       size is above 4096, or above the kernel's and the excess is not
 *               zero
 *   EINVAL      unknown flag, or a reserved field that is not zero
 */
#ifndef _UAPI_LINUX_ACCMEM_H
#define _UAPI_LINUX_ACCMEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define ACCMEM_IOC_MAGIC 0xBC

/* The size of a command is in its structure, never in its number. */
#define ACCMEM_IOC_INFO _IO(ACCMEM_IOC_MAGIC, 0x00)
#define ACCMEM_IOC_ALLOC _IO(ACCMEM_IOC_MAGIC, 0x01)
#define ACCMEM_IOC_FREE _IO(ACCMEM_IOC_MAGIC, 0x02)
#define ACCMEM_IOC_QUERY _IO(ACCMEM_IOC_MAGIC, 0x03)
#define ACCMEM_IOC_REALLOC _IO(ACCMEM_IOC_MAGIC, 0x04)
#define ACCMEM_IOC_BATCH _IO(ACCMEM_IOC_MAGIC, 0x05)
#define ACCMEM_IOC_ACCESS _IO(ACCMEM_IOC_MAGIC, 0x06)
#define ACCMEM_IOC_PRESSURE _IO(ACCMEM_IOC_MAGIC, 0x07)
#define ACCMEM_IOC_STREAM_CREATE _IO(ACCMEM_IOC_MAGIC, 0x08)
#define ACCMEM_IOC_PREFETCH _IO(ACCMEM_IOC_MAGIC, 0x0e)
#define ACCMEM_IOC_ADVISE _IO(ACCMEM_IOC_MAGIC, 0x0f)
#define ACCMEM_IOC_TMEM_SETUP _IO(ACCMEM_IOC_MAGIC, 0x10)
#define ACCMEM_IOC_TMEM_LAUNCH _IO(ACCMEM_IOC_MAGIC, 0x11)
#define ACCMEM_IOC_TMEM_CLUSTER _IO(ACCMEM_IOC_MAGIC, 0x12)

/* On the file of a stream, which ACCMEM_IOC_STREAM_CREATE returns. */
#define ACCMEM_IOC_STREAM_SIGNAL _IO(ACCMEM_IOC_MAGIC, 0x09)
#define ACCMEM_IOC_STREAM_QUERY _IO(ACCMEM_IOC_MAGIC, 0x0a)
#define ACCMEM_IOC_STREAM_WAIT _IO(ACCMEM_IOC_MAGIC, 0x0b)
#define ACCMEM_IOC_STREAM_IMPORT _IO(ACCMEM_IOC_MAGIC, 0x0c)
#define ACCMEM_IOC_STREAM_EXPORT _IO(ACCMEM_IOC_MAGIC, 0x0d)

/* On the file of a CTA, which ACCMEM_IOC_TMEM_LAUNCH and _CLUSTER return. */
#define ACCMEM_IOC_CTA_ALLOC _IO(ACCMEM_IOC_MAGIC, 0x20)
#define ACCMEM_IOC_CTA_DEALLOC _IO(ACCMEM_IOC_MAGIC, 0x21)
#define ACCMEM_IOC_CTA_RELINQUISH _IO(ACCMEM_IOC_MAGIC, 0x22)
#define ACCMEM_IOC_CTA_QUERY _IO(ACCMEM_IOC_MAGIC, 0x23)
#define ACCMEM_IOC_CTA_CANCEL _IO(ACCMEM_IOC_MAGIC, 0x24)
#define ACCMEM_IOC_CTA_EVENTFD _IO(ACCMEM_IOC_MAGIC, 0x25)

/**
 * enum accmem_feature - bits of accmem_info.features
 * @ACCMEM_FEATURE_SCATTER: a buffer may consist of several runs of memory
 * @ACCMEM_FEATURE_PIN: mappings can be pinned (O_DIRECT, vmsplice, RDMA)
 * @ACCMEM_FEATURE_FIRST_TOUCH: memory appears at the first touch
 * @ACCMEM_FEATURE_STREAM: there are streams, and FREE takes a position or a fence
 * @ACCMEM_FEATURE_REALLOC: there is REALLOC, and ALLOC takes a reservation
 * @ACCMEM_FEATURE_WAIT: ALLOC can wait for memory, and contexts can be told that
 *	others do
 * @ACCMEM_FEATURE_HOST: ALLOC takes ACCMEM_KIND_HOST
 * @ACCMEM_FEATURE_SHARED: ALLOC takes ACCMEM_KIND_SHARED
 * @ACCMEM_FEATURE_ACCESS: the device's access to buffers can be asked for by ioctl
 */
enum accmem_feature {
	ACCMEM_FEATURE_SCATTER = 1 << 0,
	ACCMEM_FEATURE_PIN = 1 << 1,
	ACCMEM_FEATURE_FIRST_TOUCH = 1 << 2,
	ACCMEM_FEATURE_STREAM = 1 << 3,
	ACCMEM_FEATURE_REALLOC = 1 << 4,
	ACCMEM_FEATURE_WAIT = 1 << 5,
	ACCMEM_FEATURE_HOST = 1 << 6,
	ACCMEM_FEATURE_SHARED = 1 << 7,
	ACCMEM_FEATURE_ACCESS = 1 << 8,
};

/**
 * enum accmem_backing - what a carveout is made of
 * @ACCMEM_BACKING_EMULATED: ordinary memory of the host
 * @ACCMEM_BACKING_PHYS: a reserved physical range
 */
enum accmem_backing {
	ACCMEM_BACKING_EMULATED = 0,
	ACCMEM_BACKING_PHYS = 1,
};

/**
 * enum accmem_translation - how a device address finds its memory
 * @ACCMEM_TRANSLATION_IDENTITY: device address = base + offset
 * @ACCMEM_TRANSLATION_MAPPED: device addresses are virtual
 */
enum accmem_translation {
	ACCMEM_TRANSLATION_IDENTITY = 0,
	ACCMEM_TRANSLATION_MAPPED = 1,
};

/**
 * enum accmem_bandwidth - how fast a carveout's memory is, beside the others
 * @ACCMEM_BANDWIDTH_UNKNOWN: not told
 * @ACCMEM_BANDWIDTH_LOW: low
 * @ACCMEM_BANDWIDTH_HIGH: high
 *
 * What the administrator, or whoever registered the carveout, has said of it.
 * Conformance: A13.
 */
enum accmem_bandwidth {
	ACCMEM_BANDWIDTH_UNKNOWN = 0,
	ACCMEM_BANDWIDTH_LOW = 1,
	ACCMEM_BANDWIDTH_HIGH = 2,
};

/**
 * enum accmem_cache_mode - how the CPU caches a mapping of a buffer
 * @ACCMEM_CACHE_WB: write-back, the default
 * @ACCMEM_CACHE_WC: write-combining
 * @ACCMEM_CACHE_UC: uncached
 *
 * Fixed at allocation. accmem_info.cache_modes has bit (1 << mode) set for
 * each mode that the carveout offers.
 */
enum accmem_cache_mode {
	ACCMEM_CACHE_WB = 0,
	ACCMEM_CACHE_WC = 1,
	ACCMEM_CACHE_UC = 2,
};

/**
 * enum accmem_kind - where the memory of a buffer is, and who reaches it
 * @ACCMEM_KIND_DEVICE: device memory, the default
 * @ACCMEM_KIND_HOST: memory of the host that the host and the device both reach. It
 *	is present from the beginning, is charged to the caller's memory cgroup, and
 *	takes no device memory. ACCMEM_FEATURE_HOST says whether there is any.
 * @ACCMEM_KIND_SHARED: memory that moves to whoever touches it, a piece of 2 MiB of
 *	the buffer or less at a time: mappings show the host's copy, and the device
 *	reaches its own. It takes device memory and, of ACCMEM_KIND_HOST, as much; both
 *	count. The host's pages are made by a touch, and charged to the memory cgroup of
 *	whoever touches them. It begins at a multiple of 4 KiB, from 2 MiB on of 2 MiB,
 *	is write-back, and cannot be resized (EOPNOTSUPP). ACCMEM_FEATURE_SHARED says
 *	whether there is any.
 *
 * Fixed at allocation.
 */
enum accmem_kind {
	ACCMEM_KIND_DEVICE = 0,
	ACCMEM_KIND_HOST = 1,
	ACCMEM_KIND_SHARED = 2,
};

/**
 * enum accmem_page_policy - page size that backs a buffer
 * @ACCMEM_PAGE_ANY: whatever packs best; larger pages where they come free
 * @ACCMEM_PAGE_HUGE_FIRST: normal pages up to 1 MiB; above, 2 MiB pages where
 *	there are any, else normal ones
 * @ACCMEM_PAGE_HUGE_ONLY: 2 MiB pages, or ENOMEM; on an emulated device
 *	without ACCMEM_ALLOC_POPULATE, or SIGBUS at the first touch
 * @ACCMEM_PAGE_NORMAL_ONLY: normal pages
 * @ACCMEM_PAGE_HUGE1G_ONLY: whole units of 1 GiB, or ENOMEM
 *
 * Conformance: A5, A13. accmem_info.page_sizes says what a carveout has.
 */
enum accmem_page_policy {
	ACCMEM_PAGE_ANY = 0,
	ACCMEM_PAGE_HUGE_FIRST = 1,
	ACCMEM_PAGE_HUGE_ONLY = 2,
	ACCMEM_PAGE_NORMAL_ONLY = 3,
	ACCMEM_PAGE_HUGE1G_ONLY = 4,
};

#define ACCMEM_INFO_HOST 0x1u /* about host memory */

/**
 * struct accmem_info - ACCMEM_IOC_INFO: a device, one of its carveouts, and
 *	the calling context's use of it
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_INFO_HOST or 0
 * @carveout: in: index of the carveout, below @nr_carveouts; 0 with
 *	ACCMEM_INFO_HOST
 * @nr_carveouts: out: carveouts of this device
 * @features: out: enum accmem_feature bits
 * @now_ns: out: the host's CLOCK_MONOTONIC in nanoseconds; deadlines count on
 *	it, in every time namespace
 * @address_base: out: lowest device address of the carveout, a multiple of
 *	1 GiB, never 0. No carveouts of a device have an address in common.
 * @address_span: out: bytes of device addresses from @address_base on
 * @capacity: out: bytes of the carveout
 * @free_bytes: out: bytes that are free now, with what is left of the pages that
 *	this context's small buffers are cut from
 * @largest_run: out: largest request, in bytes, that this context could be
 *	granted now as one contiguous run, whatever limits and reservations say
 * @context_bytes: out: bytes charged to this context: what its memory
 *	withholds from others
 * @context_limit: out: most that may be charged to it, 0 for no limit
 * @max_alignment: out: largest alignment that ALLOC takes, in bytes
 * @page_sizes: out: bitwise or of the page sizes in bytes (each a power of 2)
 * @granule: out: bytes of the smallest unit of allocation
 * @backing: out: enum accmem_backing
 * @translation: out: enum accmem_translation
 * @cache_modes: out: bit (1 << enum accmem_cache_mode) for each mode offered
 * @bandwidth: out: enum accmem_bandwidth
 * @numa_node: out: the NUMA node that the memory is on, -1 where that is not known
 *
 * @context_bytes and @context_limit are of all carveouts together, @now_ns is the
 * host's, and all other members down from @features are the carveout's.
 *
 * With ACCMEM_INFO_HOST, what is told of a carveout is told of host memory (@capacity:
 * what the device offers at most).
 *
 * EINVAL: @carveout is out of range. EOPNOTSUPP: there is no host memory.
 */
struct accmem_info {
	__u32 size;
	__u32 flags;
	__u32 carveout;
	__u32 nr_carveouts;
	__u64 features;
	__u64 now_ns;
	__u64 address_base;
	__u64 address_span;
	__u64 capacity;
	__u64 free_bytes;
	__u64 largest_run;
	__u64 context_bytes;
	__u64 context_limit;
	__u64 max_alignment;
	__u64 page_sizes;
	__u32 granule;
	__u32 backing;
	__u32 translation;
	__u32 cache_modes;
	__u32 bandwidth;
	__s32 numa_node;
};

/*
 * Flags of ALLOC.
 *
 * ROUND32   the usable size is rounded up to 32 bytes instead of being exact
 * TAIL32    with ROUND32: 32 bytes more, except on 1 GiB pages (A2, A3, A11)
 * POPULATE  the memory is present when the call returns; without it a touch
 *	     that cannot be served is SIGBUS
 * CONTIGUOUS one run of memory, where ACCMEM_FEATURE_SCATTER allows several
 * TOP_DOWN  from the high end of the carveout
 * FIXED     at the device address given, which is a multiple of the granule;
 *	     with identity translation that is the very piece of the carveout
 * MOVABLE   its memory may be moved; not supported yet (EOPNOTSUPP)
 * PARKABLE  its memory may be taken from it and given back; not supported yet
 *	     (EOPNOTSUPP)
 * STREAM    memory whose free is pending on accmem_alloc.stream will do
 * RESIZABLE REALLOC may resize it (T4)
 * WAIT	     until there is memory, or accmem_alloc.deadline_ns has passed
 * HIGH_BANDWIDTH  of the carveouts, those of ACCMEM_BANDWIDTH_HIGH first (A13)
 * LOW_BANDWIDTH  likewise, those of ACCMEM_BANDWIDTH_LOW
 * CARVEOUT  in the carveout accmem_alloc.carveout, and in no other
 */
#define ACCMEM_ALLOC_ROUND32 0x01u
#define ACCMEM_ALLOC_TAIL32 0x02u
#define ACCMEM_ALLOC_POPULATE 0x04u
#define ACCMEM_ALLOC_CONTIGUOUS 0x08u
#define ACCMEM_ALLOC_TOP_DOWN 0x10u
#define ACCMEM_ALLOC_FIXED 0x20u
#define ACCMEM_ALLOC_MOVABLE 0x40u
#define ACCMEM_ALLOC_PARKABLE 0x80u
#define ACCMEM_ALLOC_STREAM 0x100u
#define ACCMEM_ALLOC_RESIZABLE 0x200u
#define ACCMEM_ALLOC_WAIT 0x400u
#define ACCMEM_ALLOC_HIGH_BANDWIDTH 0x800u
#define ACCMEM_ALLOC_LOW_BANDWIDTH 0x1000u
#define ACCMEM_ALLOC_CARVEOUT 0x2000u
#define ACCMEM_ALLOC_FLAGS                                                    \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 | ACCMEM_ALLOC_POPULATE | \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_TOP_DOWN |                    \
	 ACCMEM_ALLOC_FIXED | ACCMEM_ALLOC_MOVABLE | ACCMEM_ALLOC_PARKABLE |  \
	 ACCMEM_ALLOC_STREAM | ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_WAIT |   \
	 ACCMEM_ALLOC_HIGH_BANDWIDTH | ACCMEM_ALLOC_LOW_BANDWIDTH |           \
	 ACCMEM_ALLOC_CARVEOUT)

/**
 * struct accmem_alloc - ACCMEM_IOC_ALLOC: allocate a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_ALLOC_*
 * @length: in: bytes wanted, at least 1
 * @alignment: in: of the device address, in bytes: 0 for the default (64), or
 *	a power of two up to accmem_info.max_alignment
 * @page_policy: in: enum accmem_page_policy
 * @cache_mode: in: enum accmem_cache_mode
 * @carveout: in: index of the carveout that is asked first; 0 for host memory
 * @kind: in: enum accmem_kind
 * @address: out: device address, the buffer's name in this context; with FIXED
 *	in, too
 * @usable: out: bytes that may be used from @address on
 * @footprint: out: bytes taken from the carveout. The context is charged for
 *	what they withhold from others: a small buffer's granule, and where
 *	ACCMEM_FEATURE_PIN is offered on device memory the whole pages of 2 MiB
 * @mmap_offset: out: offset for mmap on the same file, below 2^44: of the page
 *	that @address is in. It means something in this context only, and
 *	nothing else is promised about it.
 * @free_bytes: out: on ENOMEM and ETIMEDOUT, bytes free; 0 when the call
 *	succeeds
 * @largest_run: out: on ENOMEM and ETIMEDOUT, largest request in bytes that this context
 *	could be granted as one contiguous run; 0 when the call succeeds
 * @page_size: out: bytes, 4 KiB, 2 MiB or 1 GiB: the page size that its length
 *	and address are multiples of; larger pages may back it
 * @nr_runs: out: contiguous runs of memory that it consists of
 * @stream: in: with ACCMEM_ALLOC_STREAM, a stream of this context; else 0
 * @carveouts: out: bit i for the carveout i that it is in; on ENOMEM and
 *	ETIMEDOUT bits for all that were asked; 0 for host memory
 * @position: out: 0, or the position of @stream that the memory's free before is
 *	still pending on
 * @reserve: in: with ACCMEM_ALLOC_RESIZABLE, bytes that it is expected to grow to,
 *	@length at least; 0 for none
 * @deadline_ns: in: with ACCMEM_ALLOC_WAIT, 0 for none, or the value of the host's
 *	CLOCK_MONOTONIC (see accmem_info.now_ns) after which the call gives up; one
 *	that has passed allows one try. Without the flag 0.
 *
 * The memory reads as zero. Nothing is allocated when the call fails.
 *
 * A buffer is in one carveout. @carveout is asked first, then the others in the order
 * of their index: a request fails, or waits, when none of them has what it needs,
 * whatever that is of memory, cache mode and page size. HIGH_BANDWIDTH and
 * LOW_BANDWIDTH have the carveouts of that class asked before all others, in the same
 * order. With CARVEOUT no other is asked, and with FIXED only the one that has the
 * address. @free_bytes is the sum of what those that were asked have, and
 * @largest_run the largest of them.
 *
 * Host memory has device addresses, and all else, as device memory has; for it,
 * POPULATE is always given. Limits count both together.
 *
 * With ACCMEM_ALLOC_STREAM, what was freed at a position of @stream that is not
 * reached yet is used again where it has the same layout, flags and cache mode,
 * and nobody maps or pins it. @position says that it was: only work on the
 * stream may touch the memory before that position, and what the context had in
 * it is still there. However it is freed, the memory is not used by others before
 * that position.
 *
 * With mapped translation, device addresses for @reserve bytes are the buffer's
 * from the beginning, and memory is not: it is taken, and charged, as REALLOC asks
 * for it (T7). With identity translation, the buffer is placed where there is room
 * behind it, which stays free to all; others may be placed there when it is needed.
 * A buffer with a reservation shares no granule.
 * With ACCMEM_ALLOC_WAIT, a request that finds no memory, or that a limit refuses,
 * waits until it can be met. Waiting requests of one user are served in the order of
 * their arrival, and users in turns as long as what they ask for. A younger one that
 * fits may pass an older one that does not, and so may requests that do not wait,
 * REALLOC among them: at most 16 times, then memory is reserved for the older one and
 * nobody else is given any. A reservation ends after the module parameter waiter_reserve_ms;
 * where it was of no use, the request is the last from then on, and nothing is
 * reserved for as long again. A signal interrupts the wait. Where its action says that
 * the call is started again (SA_RESTART), it keeps its place, if the same thread makes
 * it again within a second. The file stays open during the call, whoever closes its
 * descriptors.
 *
 * A buffer of at most half a granule (2 KiB) shares a granule with others of
 * its context, and its footprint is a multiple of 64 bytes, unless it is
 * TOP_DOWN or FIXED, aligned to more than that, or on larger pages. Mapping it maps the
 * granule; it starts there at @address modulo the granule.
 *
 * EINVAL: @length is 0; @alignment is no power of two or too large; unknown
 * policy, mode, carveout or kind; TAIL32 without ROUND32; HIGH_BANDWIDTH with
 * LOW_BANDWIDTH; host memory with @carveout, HIGH_BANDWIDTH, LOW_BANDWIDTH or
 * CARVEOUT; FIXED with TOP_DOWN, or with an
 * @address that is not aligned to the granule, to @alignment or to the page size
 * that the policy insists on, or where the buffer would not lie in the span of
 * device addresses; @stream or @deadline_ns without its flag, or no stream; @reserve
 * without RESIZABLE, below @length, or more than the span of device addresses. EEXIST:
 * FIXED, and the context has a buffer, one whose free is pending, or a granule of small
 * buffers, there. EBADF: @stream is no open file. EACCES: it is another context's.
 * EOVERFLOW: @length with its rounding or alignment passes 2^64. EOPNOTSUPP: no
 * carveout that is asked has the cache mode, or the page size; the kind is not
 * supported; MOVABLE, PARKABLE. EDQUOT: a limit of the user or of the context. ENOMEM:
 * no memory, or with FIXED not there; @free_bytes and @largest_run are filled in; at
 * once, with WAIT too, where every carveout is smaller, or the host or the kernel is
 * short of memory, or there is no host memory left for the other side of SHARED, as is
 * EDQUOT where a limit is below the request.
 * ETIMEDOUT: WAIT, and the deadline has passed; @free_bytes and @largest_run are filled
 * in. EAGAIN: WAIT, and 256 requests of the user wait already. EINTR: a signal ended the
 * wait; or killed while the memory was being found, cleared or made present.
 */
struct accmem_alloc {
	__u32 size;
	__u32 flags;
	__u64 length;
	__u64 alignment;
	__u32 page_policy;
	__u32 cache_mode;
	__u32 carveout;
	__u32 kind;
	__u64 address;
	__u64 usable;
	__u64 footprint;
	__u64 mmap_offset;
	__u64 free_bytes;
	__u64 largest_run;
	__u32 page_size;
	__u32 nr_runs;
	__s32 stream;
	__u32 carveouts;
	__u64 position;
	__u64 reserve;
	__u64 deadline_ns;
};

/*
 * Flags of FREE, one of them at most.
 *
 * STREAM    at accmem_free.position of the stream accmem_free.fd
 * FENCE     after the fence of the sync_file accmem_free.fd
 */
#define ACCMEM_FREE_STREAM 0x1u
#define ACCMEM_FREE_FENCE 0x2u
#define ACCMEM_FREE_FLAGS (ACCMEM_FREE_STREAM | ACCMEM_FREE_FENCE)

/**
 * struct accmem_free - ACCMEM_IOC_FREE: free a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_FREE_*
 * @address: in: device address, as ALLOC returned it
 * @reserved: in: 0
 * @fd: in: a stream of this context, or a sync_file; 0 without a flag
 * @reserved2: in: 0
 * @position: in: of the stream; else 0
 *
 * The name is gone when the call returns. The memory is used again when the
 * last mapping, and the last page pin, has gone too; and with a flag not before
 * the position is reached, or the fence has signalled, with an error or without
 * (T10). Until then its device addresses stay taken. @fd may be closed.
 *
 * ENOENT: no buffer of this context has that address (unknown, freed already,
 * or of another context). EINVAL: the address lies inside a buffer; both flags;
 * @fd is not what the flag says; @fd or @position without its flag. EBADF: @fd is
 * no open file. EACCES: the stream is another context's. EBUSY: a REALLOC of the
 * buffer is in progress. Allocates nothing.
 */
struct accmem_free {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 reserved;
	__s32 fd;
	__u32 reserved2;
	__u64 position;
};

/**
 * struct accmem_query - ACCMEM_IOC_QUERY: what is at a device address
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: any device address inside a buffer
 * @base: out: device address of that buffer
 * @offset: out: @address - @base
 * @length: out: bytes asked for
 * @usable: out: bytes that may be used
 * @footprint: out: bytes taken from the carveout
 * @alignment: out: alignment granted, in bytes
 * @mmap_offset: out: offset for mmap of the page that @base is in
 * @alloc_flags: out: flags of the ALLOC, without ACCMEM_ALLOC_STREAM and ACCMEM_ALLOC_WAIT
 * @page_policy: out: policy of the ALLOC
 * @cache_mode: out: enum accmem_cache_mode
 * @carveout: out: index of the carveout; 0 of host memory
 * @page_size: out: bytes of the pages that back it
 * @nr_runs: out: contiguous runs of memory that it consists of
 * @kind: out: enum accmem_kind
 * @reserved: in: 0
 *
 * ENOENT: no buffer of this context is there.
 */
struct accmem_query {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 base;
	__u64 offset;
	__u64 length;
	__u64 usable;
	__u64 footprint;
	__u64 alignment;
	__u64 mmap_offset;
	__u32 alloc_flags;
	__u32 page_policy;
	__u32 cache_mode;
	__u32 carveout;
	__u32 page_size;
	__u32 nr_runs;
	__u32 kind;
	__u32 reserved;
};

/*
 * Flags of REALLOC.
 *
 * IN_PLACE  ENOMEM rather than another device address
 */
#define ACCMEM_REALLOC_IN_PLACE 0x1u
#define ACCMEM_REALLOC_FLAGS ACCMEM_REALLOC_IN_PLACE

/**
 * struct accmem_realloc - ACCMEM_IOC_REALLOC: resize a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_REALLOC_*
 * @address: in: device address, as ALLOC or REALLOC returned it; out: where the
 *	buffer is now
 * @length: in: bytes wanted, at least 1
 * @usable: out: as in struct accmem_alloc, like all down to @nr_runs
 * @footprint: out
 * @mmap_offset: out
 * @free_bytes: out: on ENOMEM, of the carveouts that were asked, with IN_PLACE the
 *	buffer's own; else 0
 * @largest_run: out: likewise
 * @page_size: out
 * @nr_runs: out
 * @copied: out: bytes that were copied to another place; 0 where it was resized
 *	in place
 * @reserved: in: 0
 *
 * The buffer keeps the bytes that fit in its old and its new usable size, and what
 * it has beyond the old one reads as zero (T5). Its alignment, policy, cache mode
 * and reservation stay what ALLOC was asked for.
 *
 * It is resized in place where that can be. With mapped translation it keeps its
 * address while nothing is in the way at the addresses behind it, which nothing is in
 * its reservation; with identity translation while the memory behind it is free. Then
 * its mappings go on. A touch of what a smaller buffer has no more is a SIGBUS, and
 * what is mapped beyond its old end is shown when it has grown again.
 *
 * Otherwise it is moved: it gets another address, and its old name is gone. Mappings
 * of the old one stay on the old memory, as after FREE. While it is moved, both are
 * charged; one that was at a FIXED address is at any. A small buffer that needs more
 * units is moved.
 *
 * A buffer that shrinks gives back what it does not need, but for parts of pages of
 * 2 MiB that were mapped, and but for memory whose free before is pending on a
 * stream (ACCMEM_ALLOC_STREAM): @footprint says what it has. What is pinned of that
 * is used again as after FREE.
 *
 * On failure the buffer is what it was, untouched (T6).
 *
 * ENOENT: no buffer of this context has that address. EINVAL: the address lies
 * inside a buffer; @length is 0. EPERM: the buffer is not RESIZABLE (T4). EBUSY:
 * another REALLOC of it is in progress; or it would have to be moved, and a page
 * of it, or of the granule of a small one, is pinned. EOVERFLOW: as for ALLOC.
 * EDQUOT: a limit. ENOMEM: no memory, or with IN_PLACE none there; @free_bytes and
 * @largest_run are filled in. EINTR: killed.
 */
struct accmem_realloc {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__u64 usable;
	__u64 footprint;
	__u64 mmap_offset;
	__u64 free_bytes;
	__u64 largest_run;
	__u32 page_size;
	__u32 nr_runs;
	__u64 copied;
	__u64 reserved;
};

/*
 * Flags of BATCH.
 *
 * ATOMIC    all entries or none
 */
#define ACCMEM_BATCH_ATOMIC 0x01u
#define ACCMEM_BATCH_FLAGS ACCMEM_BATCH_ATOMIC

#define ACCMEM_BATCH_MAX 1024u /* entries */

/**
 * enum accmem_batch_op - what the entries of a batch ask for
 * @ACCMEM_BATCH_ALLOC: buffers; entries are struct accmem_batch_alloc
 * @ACCMEM_BATCH_FREE: that buffers be freed; entries are struct
 *	accmem_batch_free
 */
enum accmem_batch_op {
	ACCMEM_BATCH_ALLOC = 0,
	ACCMEM_BATCH_FREE = 1,
};

/**
 * struct accmem_batch_alloc - one buffer of a batch
 * @length: in: as in struct accmem_alloc, like all that follow
 * @alignment: in
 * @flags: in: without ACCMEM_ALLOC_STREAM and ACCMEM_ALLOC_WAIT; RESIZABLE ones have
 *	no reservation
 * @page_policy: in
 * @cache_mode: in
 * @carveout: in
 * @address: out; with FIXED in, too
 * @usable: out
 * @footprint: out
 * @mmap_offset: out
 * @page_size: out
 * @nr_runs: out
 * @result: out: 0, or a negative errno value of ACCMEM_IOC_ALLOC, with which
 *	nothing else is written
 * @kind: in: as in struct accmem_alloc
 */
struct accmem_batch_alloc {
	__u64 length;
	__u64 alignment;
	__u32 flags;
	__u32 page_policy;
	__u32 cache_mode;
	__u32 carveout;
	__u64 address;
	__u64 usable;
	__u64 footprint;
	__u64 mmap_offset;
	__u32 page_size;
	__u32 nr_runs;
	__s32 result;
	__u32 kind;
};

/**
 * struct accmem_batch_free - one buffer that a batch frees
 * @address: in: device address, as ALLOC returned it
 * @result: out: 0, or a negative errno value of ACCMEM_IOC_FREE
 * @reserved: in: 0
 */
struct accmem_batch_free {
	__u64 address;
	__s32 result;
	__u32 reserved;
};

/**
 * struct accmem_batch - ACCMEM_IOC_BATCH: allocate, or free, many buffers
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_BATCH_*
 * @op: in: enum accmem_batch_op
 * @count: in: number of entries, at most ACCMEM_BATCH_MAX
 * @entries: in: user address of an array of entries
 * @entry_size: in: bytes from one entry to the next, a multiple of 8. Entries
 *	grow as structures do.
 * @done: out: how many entries, from the first on, have been dealt with: their
 *	results say how. Of an atomic batch that fails over an entry, the index
 *	of that entry.
 * @free_bytes: out: where an entry failed with ENOMEM, bytes free at the end
 *	of the call in the carveouts that such entries asked, else 0
 * @largest_run: out: likewise, largest request in bytes that this context could
 *	be granted as one contiguous run
 * @reserved: in: 0
 *
 * Entries are dealt with in order, and each has a result of its own. The call
 * succeeds when all of them have been dealt with, whatever their results are;
 * it fails where it cannot go on. What has been dealt with stays as its results
 * say. A buffer whose results could not be written does not exist.
 *
 * An atomic batch succeeds with all entries or changes nothing. It fails with
 * the error of the entry at fault, and no result means anything then. To the
 * threads of the context all its buffers come into being, or go, at once. Two
 * entries that free one buffer are ENOENT, as they are for the second entry of
 * a batch that is not atomic.
 *
 * A batch that is not atomic and frees allocates nothing.
 *
 * EINVAL: unknown @op, too many entries, @entry_size too small or no multiple of
 * 8. E2BIG: @entry_size is above
 * 4096, or an entry has a tail that is not zero and that the kernel does not
 * know. EFAULT: an entry cannot be read, or its results cannot be written; @done
 * says how far the batch came. EINTR: killed. ENOMEM: no memory for the
 * kernel's own work.
 */
struct accmem_batch {
	__u32 size;
	__u32 flags;
	__u32 op;
	__u32 count;
	__u64 entries;
	__u32 entry_size;
	__u32 done;
	__u64 free_bytes;
	__u64 largest_run;
	__u64 reserved;
};

/**
 * enum accmem_access_op - what the device does with a part of a buffer
 * @ACCMEM_ACCESS_READ: reads it; the caller's memory gets the bytes
 * @ACCMEM_ACCESS_WRITE: writes the bytes of the caller's memory to it
 * @ACCMEM_ACCESS_FILL: writes one byte to all of it
 */
enum accmem_access_op {
	ACCMEM_ACCESS_READ = 0,
	ACCMEM_ACCESS_WRITE = 1,
	ACCMEM_ACCESS_FILL = 2,
};

/**
 * struct accmem_access - ACCMEM_IOC_ACCESS: the device's access to a buffer
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: device address where it begins; any address in a buffer
 * @length: in: bytes, not 0
 * @data: in: address of @length bytes of the caller's memory; with FILL the byte, 0 to
 *	255
 * @op: in: enum accmem_access_op
 * @reserved: in: 0
 * @done: out: bytes that were read or written, also with an error
 *
 * For a simulator of the device, and for tests: as the device would, through device
 * addresses and not through a mapping. The range is of one buffer, of which no more
 * than the usable bytes are reached. Order, and what several accesses at once see of
 * each other, is as for memcpy() in threads. A buffer that is freed or resized
 * meanwhile keeps no byte of what comes after; no other buffer does.
 *
 * EINVAL: @length is 0; unknown @op; FILL with more than a byte. EOVERFLOW: @address +
 * @length passes 2^64. ENOENT: no buffer of this context is at @address. ENXIO: the
 * range leaves the buffer, or the buffer has shrunk meanwhile. EBUSY: shared memory of
 * which somebody else has pages on the host. EFAULT: the caller's memory cannot be read
 * or written. ENOMEM: no memory for the kernel's own work, or the
 * host's is short (first touch). EINTR: killed.
 */
struct accmem_access {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__u64 data;
	__u32 op;
	__u32 reserved;
	__u64 done;
};

/*
 * Flags of PREFETCH.
 *
 * HOST      to the host; without it to the device
 */
#define ACCMEM_PREFETCH_HOST 0x1u
#define ACCMEM_PREFETCH_FLAGS ACCMEM_PREFETCH_HOST

/**
 * struct accmem_prefetch - ACCMEM_IOC_PREFETCH: move a part of a shared buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_PREFETCH_*
 * @address: in: device address where it begins; any address in a shared buffer
 * @length: in: bytes, not 0
 * @reserved: in: 0
 *
 * The pieces that the range touches are valid on the side that is asked for when the
 * call returns, unless they are written to on the other side meanwhile; they are no less
 * valid on the other side than before. What is to stay on the host
 * (ACCMEM_ADVICE_STAY) stays there. Nothing is copied of pieces that nobody has written
 * to since they were copied.
 *
 * EINVAL: @length is 0. EOVERFLOW: @address + @length passes 2^64. ENOENT: no buffer of
 * this context is at @address. ENXIO: the range leaves the buffer. EOPNOTSUPP: the
 * buffer is not shared. EBUSY: somebody else (O_DIRECT, another driver) has pages of it
 * on the host. ENOMEM: the host's memory is short. EINTR: killed. After an error, a part
 * of the pieces may have moved. Conformance: S16.
 */
struct accmem_prefetch {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__u64 reserved;
};

/**
 * enum accmem_advice - how a part of a shared buffer is going to be used
 * @ACCMEM_ADVICE_MOVE: it moves to whoever touches it, the default
 * @ACCMEM_ADVICE_STAY: it stays on the host, where the device goes to it: for what both
 *	touch a little, often and by turns
 */
enum accmem_advice {
	ACCMEM_ADVICE_MOVE = 0,
	ACCMEM_ADVICE_STAY = 1,
};

/**
 * struct accmem_advise - ACCMEM_IOC_ADVISE: how a shared buffer is going to be used
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: device address where it begins; any address in a shared buffer
 * @length: in: bytes, not 0
 * @advice: in: enum accmem_advice
 * @reserved: in: 0
 *
 * It is about the pieces that the range touches, and moves nothing now.
 *
 * EINVAL: @length is 0, unknown @advice. EOVERFLOW, ENOENT, ENXIO, EOPNOTSUPP, EINTR: as
 * for struct accmem_prefetch. Conformance: S16.
 */
struct accmem_advise {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__u32 advice;
	__u32 reserved;
};

/*
 * Flags of SHRINK, one of them at most.
 *
 * REGISTER    tell this context when others wait for memory
 * UNREGISTER  do not any more
 */
#define ACCMEM_PRESSURE_REGISTER 0x1u
#define ACCMEM_PRESSURE_UNREGISTER 0x2u
#define ACCMEM_PRESSURE_FLAGS \
	(ACCMEM_PRESSURE_REGISTER | ACCMEM_PRESSURE_UNREGISTER)

/**
 * struct accmem_pressure - ACCMEM_IOC_PRESSURE: what others wait for, and be told of it
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_PRESSURE_*
 * @fd: in: with REGISTER, an eventfd to which each event adds 1, or -1; else 0
 * @waiting: out: requests of other contexts that wait for memory of the device
 * @shortfall: out: bytes that are missing for them; where there are enough, but in pieces
 *	that are too small, those that the first of them needs. 0 when nobody waits
 * @reserved: in: 0
 *
 * For a pool that keeps memory which it could give back. A context that has
 * registered is told when requests of others begin to wait for memory, before they
 * sleep: the device's file is readable (EPOLLIN), and the eventfd counts. It is told
 * once: until it makes this call, or nobody waits any more, the file stays readable
 * and the eventfd is left alone. After the call the file is readable again when another
 * request begins to wait. Requests that a limit holds up are nobody else's business.
 *
 * A context that registers while others wait is told at once. Registering again
 * replaces the eventfd. A context ends registered or not.
 *
 * EINVAL: both flags; @fd without REGISTER, or no eventfd. EBADF: @fd is no open file.
 */
struct accmem_pressure {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 waiting;
	__u64 shortfall;
	__u64 reserved;
};

/*
 * Streams.
 *
 * A stream is an ordered timeline of a context: a count of 64 bits that starts at
 * 0 and only grows. A position is reached when the count is as large. A stream is
 * a file of its own, which may be handed to whoever does the work.
 *
 * Positions come in order, and each is signalled by one of two. STREAM_IMPORT
 * leaves those up to its position to the kernel, which reaches them when a fence
 * has signalled: they are claimed. All others are userspace's: STREAM_SIGNAL
 * reaches them. Claimed positions can be exported as a sync_file. Userspace's
 * cannot: a fence that it could forget to signal must not reach other drivers.
 *
 * A stream ends with the last close of its file, or with its context. Nobody can
 * signal userspace's positions then: they complete with ECANCELED, after those
 * that are claimed.
 *
 * Memory that waits longer than the module parameter overdue_ms for a position or
 * a fence is counted as quarantined, and reported. It stays what it is until the
 * position is reached: no time makes it free.
 */

/**
 * struct accmem_stream_create - ACCMEM_IOC_STREAM_CREATE: make a stream
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @id: out: serial number in this context, from 1; names the stream in messages,
 *	fdinfo and debugfs
 * @fd: out: the stream's file, close-on-exec; written before it is made, as @id
 *	is, and of no meaning if the call fails
 * @reserved: in: 0
 *
 * EMFILE: too many files. ENFILE: the system has too many. ENOMEM.
 */
struct accmem_stream_create {
	__u32 size;
	__u32 flags;
	__u64 id;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct accmem_stream_signal - ACCMEM_IOC_STREAM_SIGNAL: reach a position
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @position: in: what the count becomes
 *
 * What was freed at positions up to it is free when the call returns.
 *
 * ERANGE: the count is as large already. EBUSY: a claimed position is not
 * reached yet. ECANCELED: the context has ended. Nothing changes then.
 */
struct accmem_stream_signal {
	__u32 size;
	__u32 flags;
	__u64 position;
};

#define ACCMEM_STREAM_ENDED 0x1u /* the context has ended */

/**
 * struct accmem_stream_query - ACCMEM_IOC_STREAM_QUERY: how far a stream is
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @reached: out: the count
 * @claimed: out: the highest position that is reached or that the kernel will
 *	reach; userspace's are above it
 * @pending: out: buffers that wait for a position
 * @state: out: ACCMEM_STREAM_ENDED
 * @error: out: of the first fence that signalled with one, a negative errno
 *	value; else 0
 * @reserved: in: 0
 */
struct accmem_stream_query {
	__u32 size;
	__u32 flags;
	__u64 reached;
	__u64 claimed;
	__u64 pending;
	__u32 state;
	__s32 error;
	__u64 reserved;
};

/* Flag of STREAM_WAIT: EAGAIN instead of waiting. */
#define ACCMEM_STREAM_NONBLOCK 0x1u

/**
 * struct accmem_stream_wait - ACCMEM_IOC_STREAM_WAIT: until a position is reached
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_STREAM_NONBLOCK
 * @position: in: the position; one in the past is reached
 * @deadline_ns: in: 0 for none, or the value of the host's CLOCK_MONOTONIC (see
 *	accmem_info.now_ns) after which the call gives up
 *
 * poll() of the file says readable when the position that the last call with
 * NONBLOCK asked for is reached (1 before there was one), and hangs up when
 * the context has ended. A wait that a signal interrupts is started again with
 * the same deadline where the signal's action says so (SA_RESTART). The file
 * stays open during the call, whoever closes its descriptors.
 *
 * EINVAL: NONBLOCK with a deadline. EAGAIN: NONBLOCK, and the position is not
 * reached. ETIMEDOUT: the deadline has passed. EINTR: a signal. ECANCELED: the
 * context has ended, nobody will reach the position, and all that are claimed are
 * reached.
 */
struct accmem_stream_wait {
	__u32 size;
	__u32 flags;
	__u64 position;
	__u64 deadline_ns;
};

/**
 * struct accmem_stream_import - ACCMEM_IOC_STREAM_IMPORT: have a stream wait for
 *	a fence
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @position: in: reached when all before it are, and the fence has signalled
 * @fd: in: a sync_file, which may be closed then
 * @reserved: in: 0
 *
 * All positions up to @position are claimed from here on. A fence that signals
 * with an error counts as one that signals.
 *
 * EBADF: @fd is no open file. EINVAL: it is no sync_file. ERANGE: @position is
 * claimed already. ECANCELED: the context has ended. ENOMEM.
 */
struct accmem_stream_import {
	__u32 size;
	__u32 flags;
	__u64 position;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct accmem_stream_export - ACCMEM_IOC_STREAM_EXPORT: a position as a fence
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @position: in: reached, or claimed
 * @fd: out: a sync_file, close-on-exec
 * @reserved: in: 0
 *
 * The fence has the stream's error when it signals.
 *
 * EPERM: only userspace can reach the position. EMFILE: too many files. ENOMEM, also
 * where the system has too many open files.
 */
struct accmem_stream_export {
	__u32 size;
	__u32 flags;
	__u64 position;
	__s32 fd;
	__u32 reserved;
};

/*
 * Tensor Memory.
 *
 * A context has SMs, an SM has columns, and CTAs launched on an SM share them.
 * A CTA is a file of its own: its last close is its exit, which gives back
 * whatever it holds. A process that closes its last descriptor of a CTA ends
 * the call, or the read, that it waits in. The end of the context is a reset: every
 * wait ends, every column is taken back, and CTAs that are still open can do no more.
 *
 * A call of a CTA waits in its caller, or is queued (ACCMEM_CTA_QUEUED): then it
 * returns at once, and what became of it is read from the file. Of one CTA one
 * call waits at a time, whichever way. A signal interrupts a caller that waits.
 * Where the signal's action says that the call is started again (SA_RESTART), it
 * keeps its place in the queue and its count of passes, if the same thread makes
 * it again within a second.
 *
 * An alloc counts once its address is stored, of a pair once both are: the
 * second of them to come waits for the first to store its own, whatever its
 * flags say, but if the first gives up then, EAGAIN. One that cannot be stored is
 * EFAULT for both.
 *
 * One errno for each rule that can be broken; the letter and number is the row
 * of Documentation/conformance.rst. What "both" says is the error of both
 * peers of a pair.
 *
 *   EDOM           alloc: the number of columns is no power of two in [32, 512]
 *		    (P7)
 *   ENOSPC	    alloc: more columns than the SM has, or than it could ever
 *		    have free beside those that this CTA holds (P2); both
 *   ERANGE	    alloc: more columns than in the CTA's alloc before (P8)
 *   EPERM	    alloc: after relinquish (P9)
 *   EFAULT	    alloc: the destination cannot be written, or is outside of the
 *		    window of the launch (P10); both, where that is found after
 *		    the pair has met
 *   EBUSY	    alloc, dealloc: another call of this CTA is waiting, or a
 *		    queued one has ended and was not read (P11)
 *   EPIPE	    alloc, dealloc: the peer has exited (P12, P4)
 *   EPROTO	    the peers are in different collective calls, or one dealt
 *		    with an older allocation (P20) or relinquished while the
 *		    other is in alloc (P12); both
 *   EBADR	    the peers' operands differ (P4, P12); both
 *   EPROTOTYPE	    launch: another cta_group than the launch's CTAs (P13)
 *   EEXIST	    launch: of cta_group 2, the rank in the cluster is taken, or
 *		    was; the cluster is complete (P19)
 *   EADDRINUSE	    launch: the peer is on the same SM (P19)
 *   ENXIO	    launch: no such SM; dealloc: not an address of the SM: its
 *		    lane is not 0, or it has no such column (P3, P19)
 *   ENOENT	    dealloc: nothing is allocated there (P3)
 *   EACCES	    dealloc: another CTA's columns (P3)
 *   EADDRNOTAVAIL  dealloc: inside an allocation, not at its start (P3)
 *   EMSGSIZE	    dealloc: not the number of columns allocated (P18)
 *   EDEADLK	    alloc: every holder waits for columns, and this CTA is the
 *		    newest of them; both (P2)
 *   ECANCELED	    alloc: this CTA relinquished meanwhile (P9); alloc, dealloc:
 *		    the process closed its last descriptor of the CTA meanwhile;
 *		    a queued call was cancelled
 *   ECONNRESET	    the context has ended
 *
 * No rule was broken:
 *
 *   EAGAIN	    ACCMEM_CTA_NONBLOCK, and the call would have to wait
 *   ETIMEDOUT	    the deadline has passed (with nobody at the other end where
 *		    a peer was waited for, P12)
 *   EINTR	    a signal
 */

/**
 * enum accmem_tmem_discipline - who may allocate on an SM
 * @ACCMEM_TMEM_SHARED: any CTA; only the number of free columns blocks
 * @ACCMEM_TMEM_EXCLUSIVE: one at a time: the first alloc takes the SM's permit,
 *	and others wait until that CTA relinquishes or exits
 */
enum accmem_tmem_discipline {
	ACCMEM_TMEM_SHARED = 0,
	ACCMEM_TMEM_EXCLUSIVE = 1,
};

/*
 * Flags of TMEM_SETUP.
 *
 * STRICT  report what is harmless here and would not be on hardware: see
 *	   Documentation/userspace-api/tensor-memory.rst
 */
#define ACCMEM_TMEM_STRICT 0x1u

#define ACCMEM_TMEM_UNIT 32u /* columns */
#define ACCMEM_TMEM_COLUMNS 512u /* an SM, by default */
#define ACCMEM_TMEM_COLUMNS_MAX 2048u
#define ACCMEM_TMEM_SMS_MAX 256u
#define ACCMEM_TMEM_CTAS_MAX 2048u /* a context */
#define ACCMEM_TMEM_BYPASS_BOUND 64u /* by default */
#define ACCMEM_TMEM_CLUSTER_MAX 64u /* CTAs of one TMEM_CLUSTER */

/**
 * struct accmem_tmem_setup - ACCMEM_IOC_TMEM_SETUP: what SMs a context has
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_TMEM_STRICT or 0
 * @nr_sms: in: number of SMs, 1 to ACCMEM_TMEM_SMS_MAX
 * @columns: in: columns an SM: 0 for ACCMEM_TMEM_COLUMNS, or a multiple of 32
 *	up to ACCMEM_TMEM_COLUMNS_MAX
 * @discipline: in: enum accmem_tmem_discipline
 * @bypass_bound: in: how often younger requests may pass one that waits; 0 is
 *	strict order of arrival
 * @reserved: in: 0
 *
 * Once a context, before its first CTA. Without it a context has one SM of 512
 * columns, shared, with a bound of ACCMEM_TMEM_BYPASS_BOUND.
 *
 * EINVAL: a member is out of range. EBUSY: set up already, or a launch was
 * asked for, which may have failed. ENOMEM.
 */
struct accmem_tmem_setup {
	__u32 size;
	__u32 flags;
	__u32 nr_sms;
	__u32 columns;
	__u32 discipline;
	__u32 bypass_bound;
	__u64 reserved;
};

/**
 * struct accmem_tmem_launch - ACCMEM_IOC_TMEM_LAUNCH: start a CTA
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @launch: in: names the launch, which is what PTX calls a kernel
 * @cluster: in: the cluster in the launch
 * @rank: in: of the CTA in its cluster; its peer has the last bit flipped
 * @sm: in: where it runs
 * @cta_group: in: 1, or 2 for pairs; the same in all CTAs of a launch
 * @fd: out: the CTA's file, close-on-exec; written before the launch, and of no
 *	meaning if that fails
 * @reserved: in: 0
 * @window_base: in: start of the CTA's shared::cta window in the caller's memory
 * @window_length: in: bytes of it, 0 for no window. The address of an alloc is
 *	stored inside of it only: EFAULT otherwise (P10)
 *
 * Cluster and rank mean something in pairs only, and the cluster where it is
 * complete (ACCMEM_IOC_TMEM_CLUSTER). A launch lives as long as one of its CTAs,
 * and so does a cluster.
 *
 * EINVAL: @cta_group is not 1 or 2, @window_base without @window_length.
 * EOVERFLOW: the window passes 2^64. EMFILE: ACCMEM_TMEM_CTAS_MAX CTAs, or too
 * many files. ENFILE: the system has too many. ENXIO, EPROTOTYPE, EEXIST,
 * EADDRINUSE: see above. ENOMEM.
 */
struct accmem_tmem_launch {
	__u32 size;
	__u32 flags;
	__u64 launch;
	__u32 cluster;
	__u32 rank;
	__u32 sm;
	__u32 cta_group;
	__s32 fd;
	__u32 reserved;
	__u64 window_base;
	__u64 window_length;
};

/**
 * struct accmem_tmem_member - a CTA of a cluster that is launched as a whole
 * @rank: in: in the cluster
 * @sm: in: where it runs
 * @fd: out: as in struct accmem_tmem_launch
 * @reserved: in: 0
 * @window_base: in: as in struct accmem_tmem_launch
 * @window_length: in: as in struct accmem_tmem_launch
 */
struct accmem_tmem_member {
	__u32 rank;
	__u32 sm;
	__s32 fd;
	__u32 reserved;
	__u64 window_base;
	__u64 window_length;
};

/**
 * struct accmem_tmem_cluster - ACCMEM_IOC_TMEM_CLUSTER: start the CTAs of a
 *	cluster, all or none
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @launch: in: as in struct accmem_tmem_launch
 * @cluster: in: as in struct accmem_tmem_launch; no CTA of it is running
 * @cta_group: in: as in struct accmem_tmem_launch; of 2, both of each pair are
 *	among the members
 * @nr_members: in: how many, 1 to ACCMEM_TMEM_CLUSTER_MAX
 * @reserved: in: 0
 * @members: in, out: pointer to as many struct accmem_tmem_member
 *
 * The cluster is complete: no CTA can be launched into it any more, and none
 * waits for a peer that was never launched.
 *
 * EINVAL: @nr_members is out of range, a member's reserved field is not zero, a
 * pair has one CTA only. EEXIST: the cluster has CTAs already, or a rank comes
 * twice. Others: as ACCMEM_IOC_TMEM_LAUNCH. No CTA was launched when the call
 * fails.
 */
struct accmem_tmem_cluster {
	__u32 size;
	__u32 flags;
	__u64 launch;
	__u32 cluster;
	__u32 cta_group;
	__u32 nr_members;
	__u32 reserved;
	__u64 members;
};

/*
 * Flags of CTA_ALLOC and CTA_DEALLOC.
 *
 * NONBLOCK  EAGAIN instead of waiting
 * QUEUED    return at once: the call waits without a caller, in the same order
 *	     as others, and what became of it is read from the file
 */
#define ACCMEM_CTA_NONBLOCK 0x1u
#define ACCMEM_CTA_QUEUED 0x2u

/**
 * struct accmem_cta_alloc - ACCMEM_IOC_CTA_ALLOC: allocate columns
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_CTA_NONBLOCK or ACCMEM_CTA_QUEUED
 * @columns: in: a power of two in [32, 512]
 * @warp: in: number of the warp in the CTA, 0 if it is not told. Looked at in
 *	strict mode (P11)
 * @deadline_ns: in: 0 for none, or the value of the host's CLOCK_MONOTONIC
 *	(see accmem_info.now_ns) after which the call gives up; one that has
 *	passed allows one try
 * @destination: in: pointer to the __u32 where the address is stored: column
 *	in the low half, lane (0) in the high half. Its content is lost when
 *	the call fails. 0 with ACCMEM_CTA_QUEUED.
 * @user_data: in: with ACCMEM_CTA_QUEUED, comes back in the completion; else 0
 *
 * A pair allocates together, at the same columns of both SMs: the call waits
 * for the peer's.
 *
 * Queued, the call returns 0 once it has its place in the queue, or has been
 * granted already: in both cases there will be a struct accmem_cta_completion to
 * read. Errors that need no wait are returned as ever, and leave no completion.
 * The deadline is met to a tick of the kernel's.
 *
 * EINVAL: NONBLOCK with a deadline or with QUEUED, QUEUED with a destination,
 * @user_data without QUEUED. Others: see above. Nothing is allocated when the
 * call fails.
 */
struct accmem_cta_alloc {
	__u32 size;
	__u32 flags;
	__u32 columns;
	__u32 warp;
	__u64 deadline_ns;
	__u64 destination;
	__u64 user_data;
};

/**
 * struct accmem_cta_dealloc - ACCMEM_IOC_CTA_DEALLOC: give columns back
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_CTA_NONBLOCK or ACCMEM_CTA_QUEUED
 * @address: in: as alloc stored it
 * @columns: in: as given to alloc
 * @deadline_ns: in: as in struct accmem_cta_alloc
 * @user_data: in: as in struct accmem_cta_alloc
 * @warp: in: as in struct accmem_cta_alloc
 * @reserved: in: 0
 *
 * A pair gives back together: the call waits for the peer's.
 *
 * EINVAL: NONBLOCK with a deadline or with QUEUED, @user_data without QUEUED.
 * Others: see above. Nothing is given back when the call fails.
 */
struct accmem_cta_dealloc {
	__u32 size;
	__u32 flags;
	__u32 address;
	__u32 columns;
	__u64 deadline_ns;
	__u64 user_data;
	__u32 warp;
	__u32 reserved;
};

/**
 * struct accmem_cta_completion - what became of a queued call: read() from the
 *	CTA's file
 * @user_data: as given to the call
 * @result: 0, or an error as a negative errno, as the call would have returned it
 * @call: _IOC_NR of the call: of ACCMEM_IOC_CTA_ALLOC or _DEALLOC
 * @address: of the columns, as alloc stores it
 * @columns: as given to the call
 *
 * The file is readable (EPOLLIN) when there is one. read() waits for it unless
 * the file is O_NONBLOCK: EAGAIN then. A read takes it; a buffer of fewer bytes
 * than this structure is EINVAL, and one that cannot be written EFAULT, and the
 * completion stays. ENODATA: no call is queued. ECANCELED: the process has closed its
 * last descriptor of the CTA meanwhile.
 */
struct accmem_cta_completion {
	__u64 user_data;
	__s32 result;
	__u32 call;
	__u32 address;
	__u32 columns;
};

/**
 * struct accmem_cta_cancel - ACCMEM_IOC_CTA_CANCEL: end a queued call
 * @size: in: bytes of this structure
 * @flags: in: 0
 *
 * The call ends with ECANCELED, which is to be read. A peer that had joined it
 * waits on, as it does for a caller that gives up.
 *
 * ENOENT: no call is queued, or it has ended already.
 */
struct accmem_cta_cancel {
	__u32 size;
	__u32 flags;
};

/**
 * struct accmem_cta_eventfd - ACCMEM_IOC_CTA_EVENTFD: count completions in an
 *	eventfd
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @fd: in: an eventfd, to which each queued call of this CTA that ends adds 1,
 *	in place of the one before; -1 for none. Many CTAs may have the same.
 * @reserved: in: 0
 *
 * EBADF: no file. EINVAL: not an eventfd.
 */
struct accmem_cta_eventfd {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct accmem_tmem_map - whose the columns of an SM are: mmap() of a CTA's file,
 *	at offset 0, one page, read-only
 * @sequence: odd while the map changes: what was read counts if it was even
 *	before and is the same after
 * @nr_units: units of ACCMEM_TMEM_UNIT columns that the SM has
 * @owner: of each unit: accmem_cta_query.id of the CTA that holds it, 0 of one
 *	that is free
 *
 * All CTAs of an SM map the same page. It outlives them; after the end of the
 * context all is free.
 */
struct accmem_tmem_map {
	__u32 sequence;
	__u32 nr_units;
	__u64 owner[ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT];
};

/**
 * struct accmem_cta_relinquish - ACCMEM_IOC_CTA_RELINQUISH: allocate no more
 * @size: in: bytes of this structure
 * @flags: in: 0
 *
 * An alloc of this CTA that waits ends with ECANCELED. The permit is given up
 * whatever the call returns.
 *
 * EPROTO: the peer is waiting in alloc, which ends with EPROTO too.
 */
struct accmem_cta_relinquish {
	__u32 size;
	__u32 flags;
};

/*
 * Bits of accmem_cta_query.state.
 *
 * RELINQUISHED  it may not allocate any more
 * PERMIT        it holds its SM's permit
 * WAITING       a call of it is waiting
 * COMPLETION    a queued call has ended, and was not read
 * PEER          its peer has been launched and has not exited
 * PEER_GONE     its peer has exited
 * RESET         the context has ended
 */
#define ACCMEM_CTA_RELINQUISHED 0x1u
#define ACCMEM_CTA_PERMIT 0x2u
#define ACCMEM_CTA_WAITING 0x4u
#define ACCMEM_CTA_PEER 0x8u
#define ACCMEM_CTA_PEER_GONE 0x10u
#define ACCMEM_CTA_RESET 0x20u
#define ACCMEM_CTA_COMPLETION 0x40u

/**
 * struct accmem_cta_query - ACCMEM_IOC_CTA_QUERY: a CTA and its SM
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @launch: out: as launched
 * @cluster: out: as launched
 * @rank: out: as launched
 * @sm: out: as launched
 * @cta_group: out: as launched
 * @state: out: ACCMEM_CTA_* bits
 * @held: out: columns that this CTA holds
 * @last: out: columns of its last alloc, 0 before it
 * @columns: out: columns of the SM
 * @free: out: columns of it that are free
 * @waiting: out: requests in the queue of the context
 * @bypassed: out: how often the waiting request was passed
 * @reserved: in: 0
 * @id: out: number of the CTA in its context, never 0
 * @unit_mask: out: what it holds: bit n is set where it holds the columns from
 *	n * ACCMEM_TMEM_UNIT on
 * @start_mask: out: the bits of @unit_mask with which an allocation begins
 */
struct accmem_cta_query {
	__u32 size;
	__u32 flags;
	__u64 launch;
	__u32 cluster;
	__u32 rank;
	__u32 sm;
	__u32 cta_group;
	__u32 state;
	__u32 held;
	__u32 last;
	__u32 columns;
	__u32 free;
	__u32 waiting;
	__u32 bypassed;
	__u32 reserved;
	__u64 id;
	__u64 unit_mask;
	__u64 start_mask;
};

#endif /* _UAPI_LINUX_ACCMEM_H */
