/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * accmem: memory of an accelerator, allocated by ioctl and mapped by mmap.
 *
 * Words of this header:
 *
 *   device          /dev/accmemN: the memory of one accelerator
 *   carveout        one contiguous range of device memory. A device has one or more,
 *                   numbered from 0.
 *   context         one open file of a device. A context owns the buffers that are
 *                   allocated through it. fork() and passing the file descriptor
 *                   share the context.
 *   buffer          one allocation of a context
 *   device address  64-bit address of a byte of a buffer, as the device sees it. The
 *                   first device address of a buffer is also its name in the ioctls. An
 *                   address means nothing in another context, and 0 is never a buffer.
 *   run             memory of a buffer that is contiguous in its carveout
 *   granule         4096 bytes: the unit in which a carveout hands out memory. Small
 *                   buffers (at most 2048 bytes) of one context share granules.
 *   footprint       bytes of memory that a buffer occupies
 *   charge          bytes that count against the limits of a context and of its user
 *   stream          a timeline of a context: a 64-bit count that only grows
 *   position        a value of that count. A position is reached when the count is equal
 *                   to it or larger.
 *   pending         said of memory that was freed, but waits for a position or a fence
 *   pin             a reference that another part of the kernel holds on a page
 *                   (O_DIRECT, vmsplice, RDMA)
 *   export          a dma-buf of a part of a buffer, for other drivers and processes
 *   importer        a driver that accesses memory through a dma-buf
 *   SM, column      Tensor Memory of a context: an SM has columns, which CTAs allocate
 *   CTA             a client of Tensor Memory. A CTA is an open file, too.
 *   unit            32 columns: the smallest allocation of Tensor Memory
 *   pair, peer      two CTAs that allocate and deallocate together; each is the peer of
 *                   the other
 *
 * A letter with a number (A1, P12) is a row of Documentation/conformance.rst.
 *
 * Use, without error handling:
 *
 *   int fd = open("/dev/accmem0", O_RDWR | O_CLOEXEC);
 *   struct accmem_alloc a = { .size = sizeof(a), .length = 1 << 20 };
 *   struct accmem_free f = { .size = sizeof(f) };
 *
 *   ioctl(fd, ACCMEM_IOC_ALLOC, &a);
 *   p = mmap(NULL, a.footprint, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
 *            a.mmap_offset);
 *   ...                               the device uses a.address, the CPU uses p
 *   munmap(p, a.footprint);
 *   f.address = a.address;
 *   ioctl(fd, ACCMEM_IOC_FREE, &f);
 *
 * Structures. Every structure starts with its own size in bytes, which the caller
 * sets. The size may differ from the size that the kernel knows:
 *
 * - An older program passes a shorter structure. The kernel reads the missing members
 *   as zero and writes back only the members that the program has.
 * - A newer program may pass a longer structure, up to 4096 bytes. The bytes that the
 *   kernel does not know must be zero (else E2BIG).
 *
 * Members marked "in" are set by the caller, members marked "out" by the kernel. A member
 * that has no meaning for a call must be 0.
 *
 * Errors that every ioctl can return, in the order of the checks. The ioctls of a stream's
 * and of a CTA's file do not make the check for ENODEV and ECONNRESET.
 *
 *   ENOTTY  unknown ioctl
 *   EFAULT  the structure cannot be read or written
 *   EINVAL  size is smaller than the first version of the structure
 *   E2BIG   size is larger than 4096; or the structure is longer than the kernel's, and
 *           the excess is not zero
 *   ENODEV  the device is gone. FREE does not fail with ENODEV. Accesses to mappings raise
 *           SIGBUS, poll() of the file reports POLLERR | POLLHUP, and streams and CTAs have
 *           ended.
 *   ECONNRESET  the device is being reset; or a reset has lost the contents of the memory
 *           and the context has buffers from before the reset. FREE does not fail with
 *           ECONNRESET: after the last of these buffers is freed, the context can be used
 *           again. A pending free counts as a buffer. A mapping does not. Accesses to
 *           mappings from before the reset raise SIGBUS. During the reset poll() of the
 *           file reports POLLERR | POLLHUP. Streams and CTAs continue. The end of a reset
 *           that has lost the contents ends the CTAs.
 *   EINVAL  an unknown flag is set, or a reserved member is not 0
 *
 * The comment of each structure lists the other errors of its ioctl.
 */
#ifndef _UAPI_LINUX_ACCMEM_H
#define _UAPI_LINUX_ACCMEM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define ACCMEM_IOC_MAGIC 0xBC

/* The numbers encode no size: each structure contains its own. */
#define ACCMEM_IOC_INFO _IO(ACCMEM_IOC_MAGIC, 0x00)
#define ACCMEM_IOC_ALLOC _IO(ACCMEM_IOC_MAGIC, 0x01)
#define ACCMEM_IOC_FREE _IO(ACCMEM_IOC_MAGIC, 0x02)
#define ACCMEM_IOC_QUERY _IO(ACCMEM_IOC_MAGIC, 0x03)
#define ACCMEM_IOC_REALLOC _IO(ACCMEM_IOC_MAGIC, 0x04)
#define ACCMEM_IOC_ACCESS _IO(ACCMEM_IOC_MAGIC, 0x06)
#define ACCMEM_IOC_PRESSURE _IO(ACCMEM_IOC_MAGIC, 0x07)
#define ACCMEM_IOC_STREAM_CREATE _IO(ACCMEM_IOC_MAGIC, 0x08)
#define ACCMEM_IOC_PREFETCH _IO(ACCMEM_IOC_MAGIC, 0x0e)
#define ACCMEM_IOC_ADVISE _IO(ACCMEM_IOC_MAGIC, 0x0f)
#define ACCMEM_IOC_TMEM_SETUP _IO(ACCMEM_IOC_MAGIC, 0x10)
#define ACCMEM_IOC_TMEM_LAUNCH _IO(ACCMEM_IOC_MAGIC, 0x11)
#define ACCMEM_IOC_TMEM_CLUSTER _IO(ACCMEM_IOC_MAGIC, 0x12)
#define ACCMEM_IOC_EXPORT _IO(ACCMEM_IOC_MAGIC, 0x13)
#define ACCMEM_IOC_IMPORT _IO(ACCMEM_IOC_MAGIC, 0x14)

/* ioctls of a stream's file (ACCMEM_IOC_STREAM_CREATE) */
#define ACCMEM_IOC_STREAM_SIGNAL _IO(ACCMEM_IOC_MAGIC, 0x09)
#define ACCMEM_IOC_STREAM_QUERY _IO(ACCMEM_IOC_MAGIC, 0x0a)
#define ACCMEM_IOC_STREAM_WAIT _IO(ACCMEM_IOC_MAGIC, 0x0b)
#define ACCMEM_IOC_STREAM_IMPORT _IO(ACCMEM_IOC_MAGIC, 0x0c)
#define ACCMEM_IOC_STREAM_EXPORT _IO(ACCMEM_IOC_MAGIC, 0x0d)

/* ioctls of a CTA's file (ACCMEM_IOC_TMEM_LAUNCH, ACCMEM_IOC_TMEM_CLUSTER) */
#define ACCMEM_IOC_CTA_ALLOC _IO(ACCMEM_IOC_MAGIC, 0x20)
#define ACCMEM_IOC_CTA_DEALLOC _IO(ACCMEM_IOC_MAGIC, 0x21)
#define ACCMEM_IOC_CTA_RELINQUISH _IO(ACCMEM_IOC_MAGIC, 0x22)
#define ACCMEM_IOC_CTA_QUERY _IO(ACCMEM_IOC_MAGIC, 0x23)
#define ACCMEM_IOC_CTA_CANCEL _IO(ACCMEM_IOC_MAGIC, 0x24)
#define ACCMEM_IOC_CTA_EVENTFD _IO(ACCMEM_IOC_MAGIC, 0x25)

/**
 * enum accmem_feature - bits of accmem_info.features
 * @ACCMEM_FEATURE_SCATTER: a buffer may consist of several runs
 * @ACCMEM_FEATURE_PIN: pages of mappings can be pinned (O_DIRECT, vmsplice, RDMA)
 * @ACCMEM_FEATURE_FIRST_TOUCH: a page of a buffer is allocated when the CPU or the device
 *	first touches it, unless ACCMEM_ALLOC_POPULATE is set
 * @ACCMEM_FEATURE_STREAM: the device has streams, and FREE accepts a position or a fence
 * @ACCMEM_FEATURE_REALLOC: the device has REALLOC, and ALLOC accepts
 *	accmem_alloc.reserve
 * @ACCMEM_FEATURE_WAIT: ALLOC accepts ACCMEM_ALLOC_WAIT, and the device has PRESSURE
 * @ACCMEM_FEATURE_HOST: ALLOC accepts ACCMEM_KIND_HOST
 * @ACCMEM_FEATURE_SHARED: ALLOC accepts ACCMEM_KIND_SHARED
 * @ACCMEM_FEATURE_ACCESS: the device has ACCESS
 * @ACCMEM_FEATURE_EXPORT: the device has EXPORT
 * @ACCMEM_FEATURE_IMPORT: the device has IMPORT
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
	ACCMEM_FEATURE_EXPORT = 1 << 9,
	ACCMEM_FEATURE_IMPORT = 1 << 10,
};

/**
 * enum accmem_backing - origin of a carveout's memory
 * @ACCMEM_BACKING_EMULATED: ordinary memory of the host
 * @ACCMEM_BACKING_PHYS: a physical range: memory that was reserved at boot, or a BAR of a
 *	PCI device
 */
enum accmem_backing {
	ACCMEM_BACKING_EMULATED = 0,
	ACCMEM_BACKING_PHYS = 1,
};

/**
 * enum accmem_translation - relation of device addresses to memory
 * @ACCMEM_TRANSLATION_IDENTITY: device address = accmem_info.address_base + offset in
 *	the carveout. Every buffer is one run.
 * @ACCMEM_TRANSLATION_MAPPED: device addresses are virtual. A buffer has one range of
 *	device addresses and one run or more.
 */
enum accmem_translation {
	ACCMEM_TRANSLATION_IDENTITY = 0,
	ACCMEM_TRANSLATION_MAPPED = 1,
};

/**
 * enum accmem_bandwidth - bandwidth of a carveout relative to the device's others
 * @ACCMEM_BANDWIDTH_UNKNOWN: the administrator has named no class
 * @ACCMEM_BANDWIDTH_LOW: low
 * @ACCMEM_BANDWIDTH_HIGH: high
 *
 * The administrator names the class in the module parameter that makes the device. The
 * driver measures nothing.
 *
 * Conformance: A13.
 */
enum accmem_bandwidth {
	ACCMEM_BANDWIDTH_UNKNOWN = 0,
	ACCMEM_BANDWIDTH_LOW = 1,
	ACCMEM_BANDWIDTH_HIGH = 2,
};

/**
 * enum accmem_cache_mode - how the CPU caches mappings of a buffer
 * @ACCMEM_CACHE_WB: write-back, the default. A carveout that does not offer write-back
 *	uses write-combining instead.
 * @ACCMEM_CACHE_WC: write-combining
 * @ACCMEM_CACHE_UC: uncached
 *
 * ALLOC fixes the mode of a buffer. Bit (1 << mode) of accmem_info.cache_modes says
 * whether the carveout offers a mode.
 */
enum accmem_cache_mode {
	ACCMEM_CACHE_WB = 0,
	ACCMEM_CACHE_WC = 1,
	ACCMEM_CACHE_UC = 2,
};

/**
 * enum accmem_kind - kind of a buffer's memory
 * @ACCMEM_KIND_DEVICE: device memory, the default
 * @ACCMEM_KIND_HOST: memory of the host that the CPU and the device both access. It takes
 *	no device memory. All of its pages are allocated by ALLOC and charged to the
 *	caller's memory cgroup. Needs ACCMEM_FEATURE_HOST.
 * @ACCMEM_KIND_SHARED: memory with a copy on either side, migrated to the side that
 *	touches it. Needs ACCMEM_FEATURE_SHARED.
 *
 * ALLOC fixes the kind of a buffer.
 *
 * Shared memory migrates in pieces of 2 MiB; the last piece of a buffer may be smaller.
 * Mappings show the host's copy; the device accesses its own copy. A shared buffer:
 *
 * * occupies device memory and as much ACCMEM_KIND_HOST memory; both are charged;
 * * gets each host page at the first touch, charged to the memory cgroup of the task
 *   that touches the page;
 * * starts at a multiple of 4 KiB, or of 2 MiB if its length is 2 MiB or more;
 * * is ACCMEM_CACHE_WB, and neither RESIZABLE nor has a reservation (EOPNOTSUPP of ALLOC).
 *   REALLOC fails with EPERM.
 */
enum accmem_kind {
	ACCMEM_KIND_DEVICE = 0,
	ACCMEM_KIND_HOST = 1,
	ACCMEM_KIND_SHARED = 2,
};

/**
 * enum accmem_page_policy - size of the pages that back a buffer
 * @ACCMEM_PAGE_ANY: the allocator chooses the place that packs best. 2 MiB pages back the
 *	buffer where they cost no memory.
 * @ACCMEM_PAGE_HUGE_FIRST: normal pages for a length of up to 1 MiB. For a greater
 *	length 2 MiB pages, or normal pages if the memory or a limit has no room for
 *	2 MiB pages.
 * @ACCMEM_PAGE_HUGE_ONLY: 2 MiB pages, or ENOMEM. On an emulated device without
 *	ACCMEM_ALLOC_POPULATE a missing page is reported by SIGBUS at the first touch.
 * @ACCMEM_PAGE_NORMAL_ONLY: normal pages
 * @ACCMEM_PAGE_HUGE1G_ONLY: aligned multiples of 1 GiB, or ENOMEM; EOPNOTSUPP if
 *	accmem_info.page_sizes has no 1 GiB
 *
 * accmem_info.page_sizes lists the page sizes of a carveout.
 *
 * Conformance: A5, A13.
 */
enum accmem_page_policy {
	ACCMEM_PAGE_ANY = 0,
	ACCMEM_PAGE_HUGE_FIRST = 1,
	ACCMEM_PAGE_HUGE_ONLY = 2,
	ACCMEM_PAGE_NORMAL_ONLY = 3,
	ACCMEM_PAGE_HUGE1G_ONLY = 4,
};

#define ACCMEM_INFO_HOST 0x1u /* describe host memory instead of a carveout */

/**
 * struct accmem_info - ACCMEM_IOC_INFO: describe a device, one of its carveouts, and
 *	the calling context
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_INFO_HOST or 0
 * @carveout: in: index of the carveout, less than @nr_carveouts; 0 with
 *	ACCMEM_INFO_HOST
 * @nr_carveouts: out: number of carveouts of the device
 * @features: out: enum accmem_feature bits
 * @now_ns: out: the host's CLOCK_MONOTONIC in nanoseconds. Deadlines are values of this
 *	clock in every time namespace.
 * @address_base: out: lowest device address of the carveout: a multiple of 1 GiB, never
 *	0. The address ranges of a device's carveouts do not overlap.
 * @address_span: out: number of device addresses (bytes) from @address_base on
 * @capacity: out: bytes of the carveout
 * @free_bytes: out: the free memory of the carveout, and the unused part of the granules
 *	of this context's small buffers. On a physical range with page structures a 2 MiB
 *	page belongs to one context at a time. The free granules of all 2 MiB pages are
 *	counted. This context cannot get those of a page that another context uses.
 * @largest_run: out: bytes of the largest request that this context could get as one
 *	run. Limits, and memory reserved for waiting requests, are not considered.
 * @context_bytes: out: bytes charged to this context in all carveouts
 * @context_limit: out: limit on @context_bytes, 0 for no limit
 * @max_alignment: out: largest alignment that ALLOC accepts, in bytes
 * @page_sizes: out: bitwise or of the page sizes in bytes (powers of two)
 * @granule: out: bytes of a granule
 * @backing: out: enum accmem_backing
 * @translation: out: enum accmem_translation
 * @cache_modes: out: bit (1 << enum accmem_cache_mode) for each mode that is offered
 * @bandwidth: out: enum accmem_bandwidth
 * @numa_node: out: NUMA node of the memory, -1 if it is not known
 * @retired_bytes: out: bytes of the carveout that have failed and that no buffer gets any
 *	more; a part of @capacity
 * @retire_pending_bytes: out: bytes of the carveout that have failed and that are still in
 *	use by any context; they are retired when their memory is freed
 * @retire_failed_bytes: out: bytes of the carveout that have failed and that a buffer may
 *	still get, because the kernel had no memory to record the failure
 *
 * The members from @features on describe the carveout, except for @now_ns,
 * @context_bytes and @context_limit. With ACCMEM_INFO_HOST they describe host memory;
 * @capacity is then the most host memory that the device offers.
 *
 * Errors:
 *
 * * EINVAL: @carveout is out of range, or not 0 with ACCMEM_INFO_HOST.
 * * EOPNOTSUPP: ACCMEM_INFO_HOST, but the device offers no host memory.
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
	__u64 retired_bytes;
	__u64 retire_pending_bytes;
	__u64 retire_failed_bytes;
};

/*
 * Flags of ALLOC.
 *
 * ROUND32         round the usable size up to a multiple of 32 bytes (A2, A11). Without
 *                 the flag the usable size is accmem_alloc.length.
 * TAIL32          add 32 bytes to the rounded size, except with HUGE1G_ONLY (A2, A3).
 *                 Needs ROUND32.
 * POPULATE        allocate all pages of the buffer during the call. Without the flag, on a
 *                 device with ACCMEM_FEATURE_FIRST_TOUCH, a touch for which no page can be
 *                 allocated raises SIGBUS.
 * CONTIGUOUS      place the buffer in one run, even with ACCMEM_FEATURE_SCATTER
 * TOP_DOWN        place the buffer at the high end of the carveout
 * FIXED           give the buffer the device address accmem_alloc.address, a multiple of
 *                 the granule. With identity translation that address is a fixed piece of
 *                 the carveout.
 * STREAM          allow memory that was freed on the stream accmem_alloc.stream and is
 *                 still pending
 * RESIZABLE       allow REALLOC of the buffer (T4)
 * WAIT            sleep until the request can be served, or until
 *                 accmem_alloc.deadline_ns
 * HIGH_BANDWIDTH  prefer carveouts of ACCMEM_BANDWIDTH_HIGH (A13)
 * LOW_BANDWIDTH   prefer carveouts of ACCMEM_BANDWIDTH_LOW (A13)
 * CARVEOUT        use no carveout but accmem_alloc.carveout
 */
#define ACCMEM_ALLOC_ROUND32 0x01u
#define ACCMEM_ALLOC_TAIL32 0x02u
#define ACCMEM_ALLOC_POPULATE 0x04u
#define ACCMEM_ALLOC_CONTIGUOUS 0x08u
#define ACCMEM_ALLOC_TOP_DOWN 0x10u
#define ACCMEM_ALLOC_FIXED 0x20u
#define ACCMEM_ALLOC_STREAM 0x100u
#define ACCMEM_ALLOC_RESIZABLE 0x200u
#define ACCMEM_ALLOC_WAIT 0x400u
#define ACCMEM_ALLOC_HIGH_BANDWIDTH 0x800u
#define ACCMEM_ALLOC_LOW_BANDWIDTH 0x1000u
#define ACCMEM_ALLOC_CARVEOUT 0x2000u
#define ACCMEM_ALLOC_FLAGS                                                    \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 | ACCMEM_ALLOC_POPULATE | \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_TOP_DOWN |                    \
	 ACCMEM_ALLOC_FIXED | ACCMEM_ALLOC_STREAM | ACCMEM_ALLOC_RESIZABLE |  \
	 ACCMEM_ALLOC_WAIT | ACCMEM_ALLOC_HIGH_BANDWIDTH |                    \
	 ACCMEM_ALLOC_LOW_BANDWIDTH | ACCMEM_ALLOC_CARVEOUT)

/**
 * struct accmem_alloc - ACCMEM_IOC_ALLOC: allocate a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_ALLOC_*
 * @length: in: bytes requested, at least 1
 * @alignment: in: alignment of the device address in bytes: 0 for the default (64), or a
 *	power of two up to accmem_info.max_alignment (A1)
 * @page_policy: in: enum accmem_page_policy
 * @cache_mode: in: enum accmem_cache_mode
 * @carveout: in: index of the carveout that is tried first; 0 for host memory
 * @kind: in: enum accmem_kind
 * @address: out: device address of the buffer, its name in this context; with FIXED in
 *	and out
 * @usable: out: bytes from @address on that the caller may use
 * @footprint: out: bytes of memory that the buffer occupies: a multiple of the page
 *	size, or of 64 bytes for a small buffer
 * @mmap_offset: out: offset for mmap() of this file: that of the page that contains
 *	@address. The offset is less than 2^44 and valid in this context only. No
 *	other property of it is promised.
 * @free_bytes: out: on ENOMEM and ETIMEDOUT, sum of accmem_info.free_bytes of the
 *	carveouts that were tried; 0 on success
 * @largest_run: out: on ENOMEM and ETIMEDOUT, largest accmem_info.largest_run of the
 *	carveouts that were tried; 0 on success
 * @page_size: out: 4 KiB, 2 MiB or 1 GiB in bytes: the page size that @address and
 *	@footprint are multiples of. Larger pages may back the buffer. 4 KiB for a small
 *	buffer.
 * @nr_runs: out: number of runs of the buffer
 * @stream: in: with ACCMEM_ALLOC_STREAM, file descriptor of a stream of this context;
 *	else 0
 * @carveouts: out: bit i for carveout i. On success the bit of the buffer's carveout; on
 *	ENOMEM and ETIMEDOUT the bits of the carveouts that were tried; 0 for host
 *	memory
 * @position: out: stream position before which only work on @stream may access the
 *	buffer, because its memory is reused before its free has taken effect; 0 if there
 *	is no such restriction
 * @reserve: in: with ACCMEM_ALLOC_RESIZABLE, number of device addresses (bytes) to set
 *	aside for growth, at least @length; 0 for none
 * @deadline_ns: in: with ACCMEM_ALLOC_WAIT, time on the clock of accmem_info.now_ns at
 *	which the call gives up, 0 for no deadline. A deadline in the past allows one
 *	attempt. 0 without the flag.
 *
 * The memory of the buffer reads as zero, except for reused memory (ACCMEM_ALLOC_STREAM).
 * A call that fails allocates nothing.
 *
 * Carveouts. A buffer lies in one carveout. ALLOC tries carveouts in this order:
 *
 * 1. with HIGH_BANDWIDTH or LOW_BANDWIDTH, the carveouts of that class before the others;
 * 2. @carveout before the others (of its class);
 * 3. the others by rising index.
 *
 * ALLOC passes over a carveout that lacks memory, the cache mode, or the page size. With
 * CARVEOUT it tries @carveout only. With FIXED it tries only the carveout that @address
 * belongs to.
 *
 * Host memory. A buffer of ACCMEM_KIND_HOST behaves like a buffer in device memory: it
 * has device addresses, limits and a lifetime. Its pages are always allocated by ALLOC,
 * as if POPULATE were set. Limits apply to the sum of device memory and host memory.
 *
 * Reuse. With ACCMEM_ALLOC_STREAM the call may reuse memory that was freed at a position
 * of @stream that is not reached yet. The memory must have the layout, flags and cache
 * mode of the request, and no mapping and no pin. In that case:
 *
 * * @position is set;
 * * the memory still contains the bytes that this context wrote to it;
 * * no other buffer gets the memory before that position, however the buffer is freed.
 *
 * Growth. @reserve makes room for REALLOC (T7). With mapped translation the buffer owns
 * @reserve device addresses from the start; memory is allocated and charged when REALLOC
 * asks for it. With identity translation the buffer is placed where @reserve bytes are
 * free in one run, if there is such a place; the memory behind the buffer is not owned,
 * and other buffers may be placed there. A buffer with a reservation shares no granule.
 *
 * Waiting. With ACCMEM_ALLOC_WAIT the call sleeps until the request can be served. It
 * sleeps both when memory is short and when a limit is reached.
 *
 * * Waiting requests of one user are served in order of arrival. Users take turns; the
 *   length of a turn is the number of bytes that are requested in it.
 * * A younger request that fits may bypass an older one that does not. So may requests
 *   that do not wait, and REALLOC.
 * * After 16 bypasses, memory is reserved for the oldest request: no other request gets
 *   memory that is freed from then on. The reservation ends when the request is served,
 *   or after the module parameter waiter_reserve_ms, or earlier if it refuses memory to
 *   others and none is freed.
 * * If the reservation ends without being used, the request moves back in the queue: behind
 *   the next request and the turns of as many bytes as the device has, or to the tail if
 *   that is nearer. No new reservation begins for at least waiter_reserve_ms.
 * * A signal interrupts the wait. If the signal's action has SA_RESTART, the call is
 *   restarted. It keeps its place in the queue if the same thread restarts it within one
 *   second.
 * * The call keeps the file open until it returns, even if all descriptors are closed.
 *
 * Small buffers. A buffer of at most half a granule (2 KiB) shares a granule with other
 * small buffers of its context. Its footprint is a multiple of 64 bytes. A mapping of the
 * buffer shows the whole granule; the buffer starts there at @address modulo the granule.
 * A buffer gets granules of its own if one of these holds:
 *
 * * TOP_DOWN or FIXED is set;
 * * @alignment is greater than half a granule;
 * * the policy selects pages larger than a granule;
 * * @reserve is not 0, or the kind is ACCMEM_KIND_SHARED.
 *
 * Charge. A context is charged for the memory that its buffers withhold from other
 * contexts: the granules of small buffers; on a physical range with page structures
 * (ACCMEM_BACKING_PHYS with ACCMEM_FEATURE_PIN) each 2 MiB page of which it has a part; else
 * the footprint.
 *
 * Errors:
 *
 * * EINVAL: @length is 0.
 * * EINVAL: @alignment is not a power of two, or greater than accmem_info.max_alignment.
 * * EINVAL: the page policy, cache mode, carveout or kind is unknown.
 * * EINVAL: TAIL32 without ROUND32; HIGH_BANDWIDTH with LOW_BANDWIDTH; FIXED with
 *   TOP_DOWN.
 * * EINVAL: ACCMEM_KIND_HOST with @carveout, HIGH_BANDWIDTH, LOW_BANDWIDTH or CARVEOUT.
 * * EINVAL: FIXED, and @address is not a multiple of the granule, of @alignment and of
 *   the page size that the policy requires.
 * * EINVAL: FIXED, and the buffer would leave the device addresses of a carveout, or
 *   @address belongs to another carveout or kind than the request names.
 * * EINVAL: @stream without ACCMEM_ALLOC_STREAM, or @stream is not a stream.
 * * EINVAL: @deadline_ns without ACCMEM_ALLOC_WAIT.
 * * EINVAL: @reserve without RESIZABLE, less than @length, or greater than
 *   accmem_info.address_span.
 * * EEXIST: FIXED, and the addresses belong to a buffer, to a pending buffer, or to a
 *   granule of small buffers of this context.
 * * EBADF: @stream is not an open file.
 * * EACCES: @stream belongs to another context.
 * * EOVERFLOW: @length exceeds 2^64 after rounding and alignment.
 * * EOPNOTSUPP: the carveouts that may be tried lack the cache mode or the page size.
 * * EOPNOTSUPP: the device lacks the kind.
 * * EOPNOTSUPP: ACCMEM_KIND_SHARED with RESIZABLE, @reserve, or a cache mode other than
 *   ACCMEM_CACHE_WB.
 * * EDQUOT: the request exceeds a limit of the user or of the context. With WAIT: the
 *   request alone is larger than a limit.
 * * ENOMEM: memory is short, or with FIXED not free at @address. @free_bytes,
 *   @largest_run and @carveouts are set. With WAIT: every carveout is smaller than the
 *   request; or the host or the kernel is short of memory; or the host memory of a
 *   shared buffer is short.
 * * ETIMEDOUT: WAIT, and the deadline has passed. @free_bytes, @largest_run and
 *   @carveouts are set.
 * * EAGAIN: WAIT, and 256 requests of the user are waiting already.
 * * EHWPOISON: the memory failed during the call. A new call gets other memory.
 * * EINTR: a signal interrupted the wait; or a fatal signal arrived while memory was
 *   allocated or cleared.
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
 * Flags of FREE; at most one of them.
 *
 * STREAM  the memory is not used again before the position accmem_free.position of the
 *         stream accmem_free.fd is reached
 * FENCE   the memory is not used again before the fence of the sync_file accmem_free.fd
 *         has signalled
 */
#define ACCMEM_FREE_STREAM 0x1u
#define ACCMEM_FREE_FENCE 0x2u
#define ACCMEM_FREE_FLAGS (ACCMEM_FREE_STREAM | ACCMEM_FREE_FENCE)

/**
 * struct accmem_free - ACCMEM_IOC_FREE: free a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_FREE_*
 * @address: in: device address of the buffer, as returned by ALLOC or REALLOC
 * @reserved: in: 0
 * @fd: in: file descriptor of a stream of this context, or of a sync_file; 0 without a
 *	flag. A sync_file may be closed after the call. The last close of a stream ends the
 *	waits for its positions that are not claimed.
 * @reserved2: in: 0
 * @position: in: with ACCMEM_FREE_STREAM, the position; else 0
 *
 * When the call returns, @address names no buffer any more. The memory stays charged, and
 * is not used again, until all of these have happened:
 *
 * * the last mapping of the buffer is gone;
 * * the last pin of its pages is gone;
 * * the last dma-buf (EXPORT) and the last imported buffer (IMPORT) of the memory are gone;
 * * the driver of the device has unpinned the memory;
 * * with ACCMEM_FREE_STREAM, the position is reached;
 * * with ACCMEM_FREE_FENCE, the fence has signalled, with or without an error (T10).
 *
 * The device addresses of a pending buffer stay in use. The call allocates no memory.
 *
 * Errors:
 *
 * * ENOENT: no buffer of this context starts at @address: it was never allocated, is
 *   freed already, or belongs to another context.
 * * EINVAL: @address lies inside a buffer.
 * * EINVAL: both flags; @fd or @position without its flag.
 * * EINVAL: @fd is not a stream, or not a sync_file.
 * * EBADF: @fd is not an open file.
 * * EACCES: the stream belongs to another context.
 * * EBUSY: a REALLOC of the buffer is in progress.
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
 * struct accmem_query - ACCMEM_IOC_QUERY: describe the buffer at a device address
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: any device address inside a buffer
 * @base: out: first device address of the buffer
 * @offset: out: @address - @base
 * @length: out: bytes requested by ALLOC or REALLOC
 * @usable: out: bytes from @base on that the caller may use
 * @footprint: out: bytes of memory that the buffer occupies
 * @alignment: out: alignment of @base in bytes that the driver guarantees
 * @mmap_offset: out: offset for mmap() of the page that contains @base
 * @alloc_flags: out: flags of the ALLOC, without ACCMEM_ALLOC_STREAM and
 *	ACCMEM_ALLOC_WAIT, and without ACCMEM_ALLOC_FIXED after REALLOC has moved the buffer;
 *	ACCMEM_QUERY_IMPORTED for a buffer of IMPORT
 * @page_policy: out: enum accmem_page_policy of the ALLOC
 * @cache_mode: out: enum accmem_cache_mode
 * @carveout: out: index of the carveout; 0 for host memory
 * @page_size: out: page size in bytes, as in struct accmem_alloc
 * @nr_runs: out: number of runs of the buffer
 * @kind: out: enum accmem_kind
 * @reserved: in: 0
 *
 * Errors:
 *
 * * ENOENT: no buffer of this context contains @address.
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
 * IN_PLACE  fail with ENOMEM instead of moving the buffer to another device address
 */
#define ACCMEM_REALLOC_IN_PLACE 0x1u
#define ACCMEM_REALLOC_FLAGS ACCMEM_REALLOC_IN_PLACE

/**
 * struct accmem_realloc - ACCMEM_IOC_REALLOC: resize a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_REALLOC_*
 * @address: in: device address of the buffer, as returned by ALLOC or REALLOC; out:
 *	device address of the resized buffer
 * @length: in: bytes requested, at least 1
 * @usable: out: as in struct accmem_alloc
 * @footprint: out: as in struct accmem_alloc
 * @mmap_offset: out: as in struct accmem_alloc
 * @free_bytes: out: on ENOMEM, sum of accmem_info.free_bytes of the carveouts that were
 *	tried (with IN_PLACE, of the buffer's carveout); 0 on success
 * @largest_run: out: on ENOMEM, largest accmem_info.largest_run of the same carveouts; 0
 *	on success
 * @page_size: out: as in struct accmem_alloc
 * @nr_runs: out: as in struct accmem_alloc
 * @copied: out: bytes that were copied to the new device address; 0 if the buffer was
 *	resized in place
 * @reserved: in: 0
 *
 * The buffer keeps the bytes that fit in both its old and its new usable size. The bytes
 * beyond the old usable size read as zero (T5). Alignment, page policy, cache mode and
 * reservation stay as ALLOC set them. A larger alignment, because of larger pages, lasts
 * as long as the buffer has pages of this size.
 *
 * In place. REALLOC keeps the device address if it can:
 *
 * * with mapped translation, if the device addresses behind the buffer are free. The
 *   addresses of the buffer's own reservation are always free.
 * * with identity translation, if the memory behind the buffer is free.
 *
 * Mappings stay valid. A touch beyond the end of a buffer that became smaller raises
 * SIGBUS. A mapping beyond the old end of a buffer that grew shows the new memory. A
 * HUGE_FIRST buffer that can neither grow by 2 MiB pages nor move grows by normal pages.
 *
 * Moved. Else the buffer gets another device address, and the old address names nothing
 * any more. Mappings of the old memory stay valid and keep it, as after FREE. Both
 * memories are charged until the old one is free. A buffer at a FIXED address is moved to
 * any address. A small buffer that needs more than its footprint is moved.
 *
 * Smaller. A buffer that becomes smaller gives back the memory it does not need, with
 * these exceptions, which stay in @footprint:
 *
 * * all of it, while a dma-buf, an imported buffer or a pin of the device's driver uses
 *   memory of the buffer;
 * * 4 KiB, of a buffer of more than 2 KiB that becomes smaller than that;
 * * the rest of the 2 MiB page in which the buffer now ends: on a physical range with page
 *   structures if the buffer was ever mapped, in an emulated carveout if one page of 2 MiB of
 *   the host is there;
 * * memory that is reused before a stream position (ACCMEM_ALLOC_STREAM).
 *
 * Memory that is given back while it is pinned is used again when the pin is gone.
 *
 * A call that fails leaves the buffer and its bytes unchanged (T6).
 *
 * Errors:
 *
 * * ENOENT: no buffer of this context starts at @address.
 * * EINVAL: @address lies inside a buffer; @length is 0.
 * * EPERM: the buffer was allocated without ACCMEM_ALLOC_RESIZABLE (T4).
 * * EBUSY: another REALLOC of the buffer is in progress.
 * * EBUSY: the buffer would have to be moved, and a page of it is pinned (for a small
 *   buffer: a page of its granule), or a dma-buf, an imported buffer or a pin of the
 *   device's driver uses it.
 * * EOVERFLOW: @length exceeds 2^64 after rounding and alignment.
 * * EDQUOT: the request exceeds a limit of the user or of the context.
 * * ENOMEM: memory is short, or with IN_PLACE not free behind the buffer. @free_bytes and
 *   @largest_run are set.
 * * EHWPOISON: the bytes would have to be copied, or cleared at the old end, and some of
 *   the memory has failed.
 * * EINTR: a fatal signal arrived.
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

/**
 * enum accmem_access_op - kind of a device access
 * @ACCMEM_ACCESS_READ: read the buffer; the bytes are stored in the caller's memory
 * @ACCMEM_ACCESS_WRITE: write the bytes of the caller's memory to the buffer
 * @ACCMEM_ACCESS_FILL: write the same byte to the whole range
 */
enum accmem_access_op {
	ACCMEM_ACCESS_READ = 0,
	ACCMEM_ACCESS_WRITE = 1,
	ACCMEM_ACCESS_FILL = 2,
};

/**
 * struct accmem_access - ACCMEM_IOC_ACCESS: access a buffer as the device does
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: first device address of the range: any address in a buffer
 * @length: in: bytes of the range, not 0
 * @data: in: address of @length bytes of the caller's memory; with FILL the byte, 0 to
 *	255
 * @op: in: enum accmem_access_op
 * @reserved: in: 0
 * @done: out: bytes that were read or written, also when the call fails
 *
 * The call serves simulators of the device and tests. It accesses memory through device
 * addresses, not through a mapping. The range must lie within the usable bytes of one
 * buffer. Concurrent accesses have the order and atomicity of memcpy() in threads.
 *
 * If another thread frees or resizes the buffer during the call, the bytes that the call
 * writes afterwards may be lost. They never reach another buffer.
 *
 * Errors:
 *
 * * EINVAL: @length is 0; @op is unknown; FILL with @data greater than 255.
 * * EOVERFLOW: @address + @length exceeds 2^64.
 * * EBADF: WRITE or FILL, and the file was opened for reading only.
 * * ENOENT: no buffer of this context contains @address.
 * * ENXIO: the range leaves the usable bytes of the buffer, also because another thread
 *   has made the buffer smaller.
 * * EBUSY: host pages of the shared buffer are pinned.
 * * EFAULT: the caller's memory cannot be read or written.
 * * ENOMEM: the kernel lacks memory for the copy; or the host lacks memory for a first
 *   touch.
 * * EHWPOISON: memory of the range has failed, or of the 2 MiB of shared memory that
 *   would have to be migrated. @done is exact to 32 KiB: good bytes before the failed
 *   granule may not have been copied.
 * * EINTR: a fatal signal arrived.
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
 * HOST  migrate to the host; without the flag, to the device
 */
#define ACCMEM_PREFETCH_HOST 0x1u
#define ACCMEM_PREFETCH_FLAGS ACCMEM_PREFETCH_HOST

/**
 * struct accmem_prefetch - ACCMEM_IOC_PREFETCH: migrate a range of a shared buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_PREFETCH_*
 * @address: in: first device address of the range: any address in a shared buffer
 * @length: in: bytes of the range, not 0
 * @reserved: in: 0
 *
 * When the call returns, the pieces that overlap the range are valid on the requested
 * side, unless the other side has written to them in the meantime. The call makes no copy
 * invalid. A piece that was not written since the last copy is not copied. A piece with
 * ACCMEM_ADVICE_STAY stays on the host.
 *
 * Errors:
 *
 * * EINVAL: @length is 0.
 * * EOVERFLOW: @address + @length exceeds 2^64.
 * * ENOENT: no buffer of this context contains @address.
 * * ENXIO: the range leaves the usable bytes of the buffer.
 * * EOPNOTSUPP: the buffer is not shared.
 * * EBUSY: host pages of the range are pinned.
 * * ENOMEM: the host is short of memory.
 * * EHWPOISON: memory of a piece has failed.
 * * EINTR: a fatal signal arrived.
 *
 * After EBUSY, ENOMEM, EHWPOISON and EINTR some of the pieces may have been migrated.
 *
 * Conformance: S16.
 */
struct accmem_prefetch {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__u64 reserved;
};

/**
 * enum accmem_advice - expected use of a range of a shared buffer
 * @ACCMEM_ADVICE_MOVE: pieces migrate to the side that touches them, the default
 * @ACCMEM_ADVICE_STAY: pieces stay on the host, and the device accesses them there. For
 *	ranges of which both sides access a few bytes in turns.
 */
enum accmem_advice {
	ACCMEM_ADVICE_MOVE = 0,
	ACCMEM_ADVICE_STAY = 1,
};

/**
 * struct accmem_advise - ACCMEM_IOC_ADVISE: set the expected use of a range of a
 *	shared buffer
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @address: in: first device address of the range: any address in a shared buffer
 * @length: in: bytes of the range, not 0
 * @advice: in: enum accmem_advice
 * @reserved: in: 0
 *
 * The advice applies to the pieces that overlap the range. The call migrates nothing.
 *
 * Errors:
 *
 * * EINVAL: @length is 0; @advice is unknown.
 * * EOVERFLOW, ENOENT, ENXIO, EOPNOTSUPP, EINTR: as for struct accmem_prefetch.
 *
 * Conformance: S16.
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
 * Flags of EXPORT.
 *
 * READ_ONLY       importers and mappings may only read. Older kernels (6.12, for example)
 *                 map the dma-buf for a static importer when the importer attaches, and
 *                 for both directions: attaching then fails with EACCES.
 *                 dma_buf_vmap() fails with EINVAL, since the driver that calls it could
 *                 write through the mapping.
 * REVOCABLE_ONLY  refuse importers that cannot give the memory back while they use the
 *                 memory. Needs Linux 7.1 or later.
 */
#define ACCMEM_EXPORT_READ_ONLY 0x1u
#define ACCMEM_EXPORT_REVOCABLE_ONLY 0x2u
#define ACCMEM_EXPORT_FLAGS \
	(ACCMEM_EXPORT_READ_ONLY | ACCMEM_EXPORT_REVOCABLE_ONLY)

/**
 * struct accmem_export_buffer - ACCMEM_IOC_EXPORT: make a dma-buf of a part of a buffer
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_EXPORT_* bits
 * @address: in: first device address of the part, a multiple of the granule. The granule
 *	of a small buffer contains other small buffers of the context, which are exported
 *	with it.
 * @length: in: size of the part in bytes, a multiple of the granule; 0 for all bytes from
 *	@address to the end of the buffer. out: size of the part in bytes
 * @fd: out: file descriptor of the dma-buf, close-on-exec
 * @reserved: in: 0
 *
 * The dma-buf refers to the memory, not to the buffer. Like a mapping, the dma-buf keeps the
 * memory after FREE and after the end of the context. The memory stays charged to the
 * context until the last descriptor, mapping and importer of the dma-buf is gone, and the
 * fences that importers have added to the dma-buf have signalled.
 *
 * All pages of the part are allocated by this call. While the dma-buf exists, REALLOC of the
 * buffer does not free memory, and fails with EBUSY if it would have to move the buffer.
 *
 * The dma-buf can be mapped by mmap(), with MAP_SHARED and without PROT_EXEC. Mappings have
 * the cache mode of the buffer. DMA_BUF_IOCTL_SYNC, lseek() to the end, poll() and the
 * ioctls for sync_files work as for any dma-buf. An importer gets EOPNOTSUPP when it attaches
 * a device that cannot address the memory, or a PCI device that cannot reach the BAR of
 * another (if the kernel has PCI_P2PDMA). Memory without page structures (no
 * ACCMEM_FEATURE_PIN) has DMA addresses only. If its cache mode is ACCMEM_CACHE_WB, a device
 * that does not see the caches of the CPU also gets EOPNOTSUPP; with ACCMEM_CACHE_WC it can
 * attach.
 *
 * When the device is removed or reset, its exports are revoked: importers cannot map them.
 * After a reset that has kept the contents importers can map the exports again.
 *
 * Errors:
 *
 * * EINVAL: @address or @length is not a multiple of the granule.
 * * EOVERFLOW: @address + @length exceeds 2^64.
 * * EOPNOTSUPP: the buffer is ACCMEM_KIND_SHARED; ACCMEM_EXPORT_REVOCABLE_ONLY, and the
 *   kernel cannot revoke.
 * * EACCES: the file was opened for reading only, and ACCMEM_EXPORT_READ_ONLY is not set.
 * * ENOENT: no buffer of this context contains @address.
 * * EBUSY: a REALLOC of the buffer is in progress.
 * * ENXIO: the part extends beyond the buffer.
 * * EDQUOT: the user has as many exports as the module parameter max_exports_per_user
 *   allows.
 * * EHWPOISON: a page of the part has failed.
 * * ECONNRESET: the device is being reset.
 * * ENODEV: the device has been removed.
 * * EMFILE: the process has too many open files.
 * * ENFILE: the system has too many open files.
 * * ENOMEM: the kernel is short of memory; or a limit on the pages of the host is reached.
 * * EINTR: a fatal signal arrived.
 */
struct accmem_export_buffer {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u64 length;
	__s32 fd;
	__u32 reserved;
};

#define ACCMEM_QUERY_IMPORTED 0x80000000u /* in accmem_query.alloc_flags */

/**
 * struct accmem_import_buffer - ACCMEM_IOC_IMPORT: make a buffer of exported memory
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @fd: in: file descriptor of a dma-buf that EXPORT has made, in any context of this device
 * @reserved: in: 0
 * @offset: in: offset of the part in the dma-buf, a multiple of the granule
 * @length: in: size of the part in bytes, a multiple of the granule; 0 for all bytes from
 *	@offset on. out: size of the part in bytes
 * @address: out: first device address of the buffer in this context
 * @mmap_offset: out: offset for mmap() of the buffer
 *
 * The call makes a buffer of this context that shares its memory with the dma-buf. The
 * buffer keeps the memory until the buffer is freed. This context and its user are
 * charged for one buffer and for the bytes of the part. The exporter remains charged as
 * well. The dma-buf can be closed after the call.
 *
 * FREE ends the imported buffer, also with a position or a fence. The memory becomes free
 * with its last user. REALLOC of an imported buffer fails with EPERM. REALLOC of the
 * exporter's buffer behaves as if the dma-buf still existed.
 *
 * With ACCMEM_TRANSLATION_IDENTITY a device address is a place in the carveout: the buffer
 * has the address that the memory has in the exporting context. A granule can then be in
 * one buffer of a context only.
 *
 * Errors:
 *
 * * EINVAL: @offset or @length is not a multiple of the granule; @fd is not a dma-buf.
 * * EBADF: @fd is not an open file.
 * * EOPNOTSUPP: another driver has made the dma-buf.
 * * EXDEV: the memory of the dma-buf is that of another accmem device.
 * * EACCES: the dma-buf is ACCMEM_EXPORT_READ_ONLY, and the file of this context was opened
 *   for writing.
 * * ENXIO: the part extends beyond the dma-buf.
 * * EEXIST: ACCMEM_TRANSLATION_IDENTITY, and a buffer of the context has some of the memory.
 * * ECONNRESET, ENODEV: the dma-buf was revoked.
 * * EDQUOT: a limit of the context or of the user is reached.
 * * ENOMEM: the kernel is short of memory; or no range of device addresses is free.
 */
struct accmem_import_buffer {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
	__u64 offset;
	__u64 length;
	__u64 address;
	__u64 mmap_offset;
};

/*
 * Flags of PRESSURE; at most one of them.
 *
 * REGISTER    notify this context when other contexts begin to wait for memory
 * UNREGISTER  stop these notifications
 */
#define ACCMEM_PRESSURE_REGISTER 0x1u
#define ACCMEM_PRESSURE_UNREGISTER 0x2u
#define ACCMEM_PRESSURE_FLAGS \
	(ACCMEM_PRESSURE_REGISTER | ACCMEM_PRESSURE_UNREGISTER)

/**
 * struct accmem_pressure - ACCMEM_IOC_PRESSURE: ask how much memory other contexts wait
 *	for, and be notified when they begin to wait
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_PRESSURE_*
 * @fd: in: with REGISTER, an eventfd to which each notification adds 1, or -1 for none;
 *	else 0
 * @waiting: out: number of requests of other contexts that wait for memory of the device
 * @shortfall: out: bytes that these requests need and that are not free. If enough bytes
 *	are free, but in too small runs, the bytes that the first request needs. 0 if no
 *	request waits.
 * @reserved: in: 0
 *
 * The call serves memory pools that hold memory which they could free.
 *
 * When a request of another context has begun to wait for memory, the driver soon
 * notifies each registered context once: poll() of the device's file reports EPOLLIN,
 * and the eventfd is incremented. The file stays readable, without another notification,
 * until one of these happens:
 *
 * * the context makes this call without flags. It is notified again when a further
 *   request begins to wait.
 * * no request waits any more.
 *
 * Requests that wait because of a limit are not counted and cause no notification.
 *
 * A context that registers while requests wait is notified at once. A second REGISTER
 * replaces the eventfd. Closing the file ends the registration.
 *
 * Errors:
 *
 * * EINVAL: both flags; @fd without REGISTER; @fd is not an eventfd.
 * * EBADF: @fd is not an open file.
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
 * A stream is a timeline of a context: a 64-bit count that starts at 0 and only grows. A
 * position is a value of the count. A position is reached when the count is equal to it
 * or larger. A stream is a file of its own, and can be passed to another process.
 *
 * Positions are reached in order. Each position is signalled by one of two:
 *
 * - the kernel signals claimed positions. STREAM_IMPORT claims all positions up to the
 *   one that it names; the kernel reaches that position when a fence has signalled.
 * - userspace signals all other positions by STREAM_SIGNAL.
 *
 * STREAM_EXPORT makes a sync_file of a position that is reached or claimed. It refuses
 * other positions: a fence that userspace may forget to signal must not reach another
 * driver.
 *
 * A stream ends when its file is closed for the last time, when its context ends, or when
 * the device is gone. The positions of userspace can then not be signalled any more: they
 * complete with ECANCELED, after the claimed positions.
 *
 * Memory that is pending for longer than the module parameter overdue_ms is counted as
 * quarantined and reported in the kernel log. It still becomes free only when its position
 * is reached or cancelled, or when its fence signals.
 */

/**
 * struct accmem_stream_create - ACCMEM_IOC_STREAM_CREATE: create a stream
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @id: out: number of the stream in its context, from 1 on. The kernel log, fdinfo and
 *	debugfs name the stream by this number.
 * @fd: out: file descriptor of the stream, close-on-exec
 * @reserved: in: 0
 *
 * The kernel writes @id and @fd before it creates the stream. Both are meaningless if the
 * call fails.
 *
 * Errors:
 *
 * * EMFILE: the process has too many open files.
 * * ENFILE: the system has too many open files.
 * * ENOMEM: the kernel is short of memory.
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
 * @position: in: new value of the count
 *
 * When the call returns, memory that was freed at a position up to @position does not wait
 * for this stream any more: it is free, unless it is mapped, pinned, or waits for a
 * fence. A call that fails changes nothing.
 *
 * Errors:
 *
 * * ERANGE: @position is not greater than the count.
 * * EBUSY: a claimed position is not reached yet.
 * * ECANCELED: the stream has ended.
 */
struct accmem_stream_signal {
	__u32 size;
	__u32 flags;
	__u64 position;
};

#define ACCMEM_STREAM_ENDED 0x1u /* the stream has ended */

/**
 * struct accmem_stream_query - ACCMEM_IOC_STREAM_QUERY: describe a stream
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @reached: out: the count
 * @claimed: out: highest position that is reached or claimed. Userspace signals the
 *	positions above it.
 * @pending: out: number of buffers that wait for a position of this stream
 * @state: out: ACCMEM_STREAM_ENDED or 0
 * @error: out: error of the first imported fence that signalled with an error, as a
 *	negative errno value; else 0
 * @id: out: number of the stream in its context, as in &struct accmem_stream_create. It
 *	tells a new stream from an old one that had the same descriptor.
 */
struct accmem_stream_query {
	__u32 size;
	__u32 flags;
	__u64 reached;
	__u64 claimed;
	__u64 pending;
	__u32 state;
	__s32 error;
	__u64 id;
};

/* Flag of STREAM_WAIT: return EAGAIN instead of sleeping. */
#define ACCMEM_STREAM_NONBLOCK 0x1u

/**
 * struct accmem_stream_wait - ACCMEM_IOC_STREAM_WAIT: wait for a position
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_STREAM_NONBLOCK or 0
 * @position: in: the position
 * @deadline_ns: in: time on the clock of accmem_info.now_ns at which the call gives up, 0
 *	for no deadline
 *
 * poll() of the stream reports EPOLLIN when the position of the last call with NONBLOCK
 * is reached (position 1 before the first such call), and EPOLLERR | EPOLLHUP when the
 * stream has ended.
 *
 * A signal interrupts the wait. If the signal's action has SA_RESTART, the call is
 * restarted with the same deadline. The call keeps the file open until it returns, even
 * if all descriptors are closed.
 *
 * Errors:
 *
 * * EINVAL: NONBLOCK with @deadline_ns.
 * * EAGAIN: NONBLOCK, and the position is not reached.
 * * ETIMEDOUT: the deadline has passed.
 * * EINTR: a signal interrupted the wait.
 * * EDQUOT: as many calls of the user sleep as the module parameter max_waits_per_user
 *   allows.
 * * ECANCELED: the stream has ended, all claimed positions are reached, and @position is
 *   not among them.
 */
struct accmem_stream_wait {
	__u32 size;
	__u32 flags;
	__u64 position;
	__u64 deadline_ns;
};

/**
 * struct accmem_stream_import - ACCMEM_IOC_STREAM_IMPORT: make a stream wait for a fence
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @position: in: the position that is reached when this fence and the fences of all
 *	earlier imports have signalled
 * @fd: in: file descriptor of a sync_file. The caller may close it after the call.
 * @reserved: in: 0
 *
 * The call claims all positions up to @position. A fence that signals with an error
 * counts as signalled. An imported fence is charged to the user of the context until its
 * position is reached, also after the stream's file is closed. Successive imports of one
 * fence are charged once.
 *
 * Errors:
 *
 * * EBADF: @fd is not an open file.
 * * EINVAL: @fd is not a sync_file.
 * * ERANGE: @position is claimed already.
 * * ECANCELED: the stream has ended.
 * * EDQUOT: the user has as many imported and exported fences as the module parameter
 *   max_fences_per_user allows.
 * * ENOMEM: the kernel is short of memory.
 */
struct accmem_stream_import {
	__u32 size;
	__u32 flags;
	__u64 position;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct accmem_stream_export - ACCMEM_IOC_STREAM_EXPORT: make a sync_file of a position
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @position: in: a position that is reached or claimed
 * @fd: out: file descriptor of the sync_file, close-on-exec
 * @reserved: in: 0
 *
 * If an imported fence signals with an error, each position above the count at that moment
 * has the error. The fence of the sync_file signals with the error of its position,
 * whether the export is made before the failure or after it. All sync_files of a claimed
 * position share one fence. It is charged to the user of the context until the last of
 * them is closed.
 *
 * Errors:
 *
 * * EPERM: @position is neither reached nor claimed: only userspace can signal it.
 * * EMFILE: the process has too many open files.
 * * EDQUOT: the user has as many imported and exported fences as the module parameter
 *   max_fences_per_user allows.
 * * ENOMEM: the kernel is short of memory, or the system has too many open files.
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
 * A context has SMs. An SM has columns, which the CTAs on it allocate in units of 32. A
 * CTA is launched on an SM and is a file of its own:
 *
 * - The last close of the file is the exit of the CTA. The exit frees its columns.
 * - If a process closes its last descriptor of a CTA, the call or read of that process
 *   that waits in the CTA ends with ECANCELED.
 * - Three events reset Tensor Memory: the end of the context, the removal of the device, and
 *   the end of a reset that has lost the contents. Every wait ends, every column is freed,
 *   and CTAs that are still open accept no further calls.
 *
 * Calls. The calls of a CTA are alloc, dealloc and relinquish. An alloc or dealloc that
 * has to wait sleeps in its caller, or is queued (ACCMEM_CTA_QUEUED): the ioctl returns at
 * once, and the result of the call is read from the file. At most one call of a CTA waits
 * at a time.
 *
 * Signals. A signal interrupts a call that sleeps. If the signal's action has SA_RESTART,
 * the call is restarted. It keeps its place in the queue and its number of bypasses if the
 * same thread restarts it within one second.
 *
 * Pairs. In a launch of cta_group 2 the peers allocate and deallocate together: each waits
 * for the call of the other. An alloc of a pair succeeds when both addresses are stored.
 * The second caller waits for the first caller to store its address, also with
 * ACCMEM_CTA_NONBLOCK. If the first caller gives up, the second one gets EAGAIN. If an
 * address cannot be stored, both get EFAULT. Peers that both use ACCMEM_CTA_NONBLOCK never
 * meet, since neither waits for the other: one of them has to wait, or to use
 * ACCMEM_CTA_QUEUED.
 *
 * Each rule that a call can break has an errno of its own. In the list, "both" means that
 * both peers of a pair get the error.
 *
 *   EDOM           alloc: the number of columns is not a power of two in [32, 512] (P7)
 *   ENOSPC         alloc: more columns than the SM has; or more than the SM could ever
 *                  have free besides the columns that this CTA holds (P2); both
 *   ERANGE         alloc: more columns than in the previous alloc of the CTA (P8)
 *   EPERM          alloc: the CTA has relinquished (P9)
 *   EFAULT         alloc: the destination cannot be written, or lies outside the window of
 *                  the launch (P10); both, if the error is found after the peers have met
 *   EBUSY          alloc, dealloc: another call of the CTA waits, or the result of a
 *                  queued call has not been read (P11)
 *   EPIPE          alloc, dealloc: the peer has exited (P4, P12)
 *   EPROTO         one peer calls alloc while the other waits in dealloc; both (P12)
 *   EPROTO         one peer deallocates while the other is in alloc; both (P20)
 *   EPROTO         one peer relinquishes while the other is in alloc; both (P12)
 *   EPROTO         alloc: the peer has relinquished (P12)
 *   EBADR          the arguments of the peers differ; both (P4, P12)
 *   EPROTOTYPE     launch, alloc, dealloc, relinquish: the CTAs of the launch have another
 *                  cta_group (P13)
 *   EEXIST         launch of cta_group 2: a CTA has the rank in the cluster, or has had it
 *                  while its peer lives; or the cluster is complete (P19)
 *   EADDRINUSE     launch: the peer is on the same SM (P19)
 *   ENXIO          launch: the context has no such SM (P19)
 *   ENXIO          dealloc: the address has a lane other than 0, or a column that the SM
 *                  does not have (P3, P19)
 *   ENOENT         dealloc: the columns are not allocated (P3)
 *   EACCES         dealloc: another CTA holds the columns (P3)
 *   EADDRNOTAVAIL  dealloc: the address lies inside an allocation, not at its start (P3)
 *   EMSGSIZE       dealloc: the number of columns is not that of the allocation (P18)
 *   EDEADLK        alloc: all holders of columns wait for columns, and this CTA is the
 *                  newest of them (P2); both
 *   ECANCELED      alloc: this CTA relinquished during the wait (P9)
 *   ECANCELED      alloc, dealloc: the process closed its last descriptor of the CTA
 *                  during the wait; or CTA_CANCEL ended the queued call
 *   ECONNRESET     the context has ended, a reset has lost the contents of the device, or
 *                  the device is gone
 *
 * Errors without a broken rule:
 *
 *   EAGAIN         ACCMEM_CTA_NONBLOCK, and the call would have to wait
 *   ETIMEDOUT      the deadline has passed, also while a peer was missing (P12)
 *   EINTR          a signal interrupted the wait
 */

/**
 * enum accmem_tmem_discipline - CTAs that may allocate on an SM
 * @ACCMEM_TMEM_SHARED: all CTAs of the SM. An alloc waits only for free columns.
 * @ACCMEM_TMEM_EXCLUSIVE: one CTA at a time. The first alloc of a CTA takes the permit of
 *	the SM; other CTAs wait until the holder of the permit relinquishes or exits.
 */
enum accmem_tmem_discipline {
	ACCMEM_TMEM_SHARED = 0,
	ACCMEM_TMEM_EXCLUSIVE = 1,
};

/*
 * Flags of TMEM_SETUP.
 *
 * STRICT  report calls that succeed here but would fail or hang on hardware: see
 *         Documentation/userspace-api/tensor-memory.rst
 */
#define ACCMEM_TMEM_STRICT 0x1u

#define ACCMEM_TMEM_UNIT 32u /* columns of a unit */
#define ACCMEM_TMEM_COLUMNS 512u /* columns of an SM, by default */
#define ACCMEM_TMEM_COLUMNS_MAX 2048u /* columns of an SM */
#define ACCMEM_TMEM_SMS_MAX 256u /* SMs of a context */
#define ACCMEM_TMEM_CTAS_MAX 8192u /* CTAs of a context */
#define ACCMEM_TMEM_BYPASS_BOUND 64u /* bypass_bound, by default */
#define ACCMEM_TMEM_CLUSTER_MAX 64u /* CTAs of one TMEM_CLUSTER */

/**
 * struct accmem_tmem_setup - ACCMEM_IOC_TMEM_SETUP: define the SMs of a context
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_TMEM_STRICT or 0
 * @nr_sms: in: number of SMs, 1 to ACCMEM_TMEM_SMS_MAX
 * @columns: in: columns of each SM: 0 for ACCMEM_TMEM_COLUMNS, or a multiple of 32
 *	up to ACCMEM_TMEM_COLUMNS_MAX
 * @discipline: in: enum accmem_tmem_discipline
 * @bypass_bound: in: number of times that younger requests may bypass a waiting request;
 *	0 for strict order of arrival
 * @reserved: in: 0
 *
 * The call is possible once in a context, before its first launch. After a reset that has
 * lost the contents, the call is possible again. A context without this
 * call has one SM of ACCMEM_TMEM_COLUMNS columns, ACCMEM_TMEM_SHARED, and a bound of
 * ACCMEM_TMEM_BYPASS_BOUND.
 *
 * Errors:
 *
 * * EINVAL: a member is out of range.
 * * EBUSY: the context has been set up already, or a launch was attempted before.
 * * ENOMEM: the kernel is short of memory.
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
 * @launch: in: number of the launch, chosen by the caller. PTX calls a launch a kernel.
 * @cluster: in: number of the cluster in the launch
 * @rank: in: rank of the CTA in its cluster. The peer has the rank that differs in the
 *	lowest bit.
 * @sm: in: index of the SM that the CTA runs on
 * @cta_group: in: 1, or 2 for pairs; the same for all CTAs of a launch
 * @fd: out: file descriptor of the CTA, close-on-exec
 * @reserved: in: 0
 * @window_base: in: start of the CTA's shared::cta window in the caller's memory
 * @window_length: in: bytes of the window, 0 for no window. An alloc stores its address
 *	inside the window only (P10).
 *
 * The kernel writes @fd before it launches the CTA; @fd is meaningless if the call fails.
 * @cluster and @rank matter with @cta_group 2; @cluster also matters if a cluster of that
 * number is complete (ACCMEM_IOC_TMEM_CLUSTER). A launch, and a cluster, exists as long as
 * one of its CTAs lives.
 *
 * Errors:
 *
 * * EINVAL: @cta_group is not 1 or 2; @window_base without @window_length.
 * * EOVERFLOW: @window_base + @window_length exceeds 2^64.
 * * EUSERS: the context has ACCMEM_TMEM_CTAS_MAX CTAs.
 * * EMFILE: the process has too many open files.
 * * ENFILE: the system has too many open files.
 * * ENOMEM: the kernel is short of memory.
 * * ENXIO, EPROTOTYPE, EEXIST, EADDRINUSE: as in the list of Tensor Memory's errors.
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
 * struct accmem_tmem_member - one CTA of ACCMEM_IOC_TMEM_CLUSTER
 * @rank: in: rank of the CTA in the cluster
 * @sm: in: index of the SM that the CTA runs on
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
 * struct accmem_tmem_cluster - ACCMEM_IOC_TMEM_CLUSTER: start all CTAs of a cluster, or
 *	none
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @launch: in: as in struct accmem_tmem_launch
 * @cluster: in: as in struct accmem_tmem_launch. No CTA of the cluster may be running.
 * @cta_group: in: as in struct accmem_tmem_launch. With 2, both CTAs of each pair must be
 *	members.
 * @nr_members: in: number of members, 1 to ACCMEM_TMEM_CLUSTER_MAX
 * @reserved: in: 0
 * @members: in, out: address of an array of @nr_members struct accmem_tmem_member
 *
 * The cluster is complete: no other CTA can be launched into it while one of its CTAs
 * lives. No CTA of a complete cluster waits for a peer that was never launched. A call
 * that fails launches no CTA.
 *
 * Errors:
 *
 * * EINVAL: @nr_members is out of range; a member's reserved member is not 0; a pair has
 *   one CTA only.
 * * EEXIST: the cluster has running CTAs; two members have the same rank.
 * * others as for struct accmem_tmem_launch.
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
 * Flags of CTA_ALLOC and CTA_DEALLOC; at most one of them.
 *
 * NONBLOCK  return EAGAIN instead of waiting
 * QUEUED    return at once. The call takes its place in the same queue as the calls that
 *           sleep, and its result is read from the file.
 */
#define ACCMEM_CTA_NONBLOCK 0x1u
#define ACCMEM_CTA_QUEUED 0x2u

/*
 * The .cta_group qualifier of an instruction is an argument of CTA_ALLOC, CTA_DEALLOC and
 * CTA_RELINQUISH. 0 is not checked; a value other than that of the launch fails with
 * EPROTOTYPE (P13).
 */

/**
 * struct accmem_cta_alloc - ACCMEM_IOC_CTA_ALLOC: allocate columns
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_CTA_NONBLOCK, ACCMEM_CTA_QUEUED or 0
 * @columns: in: number of columns, a power of two in [32, 512]
 * @warp: in: number of the calling warp in the CTA, 0 if not given. Used in strict mode
 *	only (P11).
 * @deadline_ns: in: time on the clock of accmem_info.now_ns at which the call gives up, 0
 *	for no deadline. A deadline in the past allows one attempt.
 * @destination: in: address of the __u32 in which the kernel stores the address of the
 *	columns: the column in the low half, the lane (0) in the high half. A call that
 *	fails may overwrite it. 0 with ACCMEM_CTA_QUEUED.
 * @user_data: in: with ACCMEM_CTA_QUEUED, a value that is copied to the completion; else 0
 * @cta_group: in: 1 or 2 of the instruction, 0 if not given
 * @reserved: in: 0
 *
 * The peers of a pair allocate together, at the same columns of both SMs. The call waits
 * for the alloc of the peer.
 *
 * With ACCMEM_CTA_QUEUED the ioctl returns 0 when the call is queued or has been granted.
 * A struct accmem_cta_completion can then be read from the file, now or later. An error
 * that is found without waiting is returned by the ioctl and causes no completion. The
 * deadline of a queued call has the precision of one kernel tick.
 *
 * A call that fails allocates nothing.
 *
 * Errors:
 *
 * * EINVAL: NONBLOCK with @deadline_ns or with QUEUED; QUEUED with @destination;
 *   @user_data without QUEUED; @cta_group above 2.
 * * others as in the list of Tensor Memory's errors.
 */
struct accmem_cta_alloc {
	__u32 size;
	__u32 flags;
	__u32 columns;
	__u32 warp;
	__u64 deadline_ns;
	__u64 destination;
	__u64 user_data;
	__u32 cta_group;
	__u32 reserved;
};

/**
 * struct accmem_cta_dealloc - ACCMEM_IOC_CTA_DEALLOC: free columns
 * @size: in: bytes of this structure
 * @flags: in: ACCMEM_CTA_NONBLOCK, ACCMEM_CTA_QUEUED or 0
 * @address: in: address of the columns, as stored by alloc
 * @columns: in: number of columns of the alloc
 * @deadline_ns: in: as in struct accmem_cta_alloc
 * @user_data: in: as in struct accmem_cta_alloc
 * @warp: in: as in struct accmem_cta_alloc
 * @cta_group: in: as in struct accmem_cta_alloc
 *
 * The peers of a pair free together. The call waits for the dealloc of the peer. A call
 * that fails frees nothing.
 *
 * Errors:
 *
 * * EINVAL: NONBLOCK with @deadline_ns or with QUEUED; @user_data without QUEUED;
 *   @cta_group above 2.
 * * others as in the list of Tensor Memory's errors.
 */
struct accmem_cta_dealloc {
	__u32 size;
	__u32 flags;
	__u32 address;
	__u32 columns;
	__u64 deadline_ns;
	__u64 user_data;
	__u32 warp;
	__u32 cta_group;
};

/**
 * struct accmem_cta_completion - result of a queued call: read() from the CTA's file
 * @user_data: user_data of the call
 * @result: 0, or the error of the call as a negative errno value
 * @call: _IOC_NR of ACCMEM_IOC_CTA_ALLOC or ACCMEM_IOC_CTA_DEALLOC
 * @address: address of the columns
 * @columns: columns of the call
 *
 * The file is readable (EPOLLIN) when a completion exists. A read removes the completion.
 * If the queued call has not ended, read() sleeps, unless the file is O_NONBLOCK.
 *
 * Errors of read(), which leave a completion in place:
 *
 * * EINVAL: the buffer is shorter than this structure.
 * * EFAULT: the buffer cannot be written.
 * * EAGAIN: O_NONBLOCK, and the queued call has not ended.
 * * ENODATA: no call is queued.
 * * EINTR: a signal interrupted the wait.
 * * ECANCELED: the process closed its last descriptor of the CTA during the read.
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
 * The queued call ends with the result ECANCELED, which has to be read. A peer that waits
 * in the same collective call keeps waiting for this CTA's next call.
 *
 * Errors:
 *
 * * ENOENT: no call is queued, or the queued call has ended already.
 */
struct accmem_cta_cancel {
	__u32 size;
	__u32 flags;
};

/**
 * struct accmem_cta_eventfd - ACCMEM_IOC_CTA_EVENTFD: count completions in an eventfd
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @fd: in: file descriptor of an eventfd, or -1 for none
 * @reserved: in: 0
 *
 * Each queued call of this CTA that ends adds 1 to the eventfd. The call replaces the
 * eventfd of an earlier call. Several CTAs may use the same eventfd.
 *
 * Errors:
 *
 * * EBADF: @fd is not an open file.
 * * EINVAL: @fd is not an eventfd.
 */
struct accmem_cta_eventfd {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

/**
 * struct accmem_tmem_map - owners of the columns of an SM: mmap() of a CTA's file, one
 *	page at offset 0, read-only
 * @sequence: odd while the kernel changes the page. What a program has read is consistent
 *	if @sequence was even before the read and has the same value after it.
 * @nr_units: number of units (ACCMEM_TMEM_UNIT columns) of the SM
 * @owner: for each unit, accmem_cta_query.id of the CTA that holds it, or 0 for a free
 *	unit
 *
 * All CTAs of an SM map the same page. The page exists as long as it is mapped. After the
 * end of the context it shows all units as free.
 */
struct accmem_tmem_map {
	__u32 sequence;
	__u32 nr_units;
	__u64 owner[ACCMEM_TMEM_COLUMNS_MAX / ACCMEM_TMEM_UNIT];
};

/**
 * struct accmem_cta_relinquish - ACCMEM_IOC_CTA_RELINQUISH: give up the right to allocate
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @cta_group: in: as in struct accmem_cta_alloc
 * @reserved: in: 0
 *
 * A waiting alloc of this CTA ends with ECANCELED. The CTA gives up its permit even if the
 * call fails with EPROTO.
 *
 * Errors:
 *
 * * EINVAL: @cta_group above 2.
 * * EPROTOTYPE: the launch has another cta_group.
 * * EPROTO: the peer waits in alloc. The alloc of the peer fails with EPROTO, too.
 * * ECONNRESET: the context has ended, a reset has lost the contents of the device, or the
 *   device is gone.
 */
struct accmem_cta_relinquish {
	__u32 size;
	__u32 flags;
	__u32 cta_group;
	__u32 reserved;
};

/*
 * Bits of accmem_cta_query.state.
 *
 * RELINQUISHED  the CTA may not allocate any more
 * PERMIT        the CTA holds the permit of its SM
 * WAITING       a call of the CTA waits
 * COMPLETION    a queued call has ended, and its completion has not been read
 * PEER          the peer has been launched and has not exited
 * PEER_GONE     the peer has exited
 * RESET         the Tensor Memory was reset: see ECONNRESET
 */
#define ACCMEM_CTA_RELINQUISHED 0x1u
#define ACCMEM_CTA_PERMIT 0x2u
#define ACCMEM_CTA_WAITING 0x4u
#define ACCMEM_CTA_PEER 0x8u
#define ACCMEM_CTA_PEER_GONE 0x10u
#define ACCMEM_CTA_RESET 0x20u
#define ACCMEM_CTA_COMPLETION 0x40u

/**
 * struct accmem_cta_query - ACCMEM_IOC_CTA_QUERY: describe a CTA and its SM
 * @size: in: bytes of this structure
 * @flags: in: 0
 * @launch: out: as in struct accmem_tmem_launch
 * @cluster: out: as in struct accmem_tmem_launch
 * @rank: out: as in struct accmem_tmem_launch
 * @sm: out: as in struct accmem_tmem_launch
 * @cta_group: out: as in struct accmem_tmem_launch
 * @state: out: ACCMEM_CTA_* bits
 * @held: out: number of columns that this CTA holds
 * @last: out: number of columns of its last alloc, 0 before the first
 * @columns: out: number of columns of the SM
 * @free: out: number of free columns of the SM
 * @waiting: out: number of waiting requests of the context
 * @bypassed: out: number of times that younger requests have bypassed the waiting request
 *	of this CTA
 * @reserved: in: 0
 * @id: out: number of the CTA in its context, never 0
 * @unit_mask: out: bit n is set if this CTA holds the unit that starts at column
 *	n * ACCMEM_TMEM_UNIT
 * @start_mask: out: the bits of @unit_mask at which an allocation starts
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
