/* SPDX-License-Identifier: MIT */
/* Memory of ACL: see acl(3). */
#ifndef ACCMEM_ACL_RT_MEMORY_H
#define ACCMEM_ACL_RT_MEMORY_H

#include <acl/acl_base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *aclrtDrvMemHandle;

/*
 * A page policy, combined with hints by "or". An unknown policy stands for huge pages if
 * the size is 2 MiB or more, and for normal pages otherwise (A5).
 */
typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,
	ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 0x0100,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 0x1000,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 0x100000
} aclrtMemMallocPolicy;

typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7
} aclrtMemcpyKind;

typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,
	ACL_HBM_MEM_NORMAL = 5,
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10,
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17
} aclrtMemAttr;

typedef enum aclrtMemHandleType {
	ACL_MEM_HANDLE_TYPE_NONE = 0
} aclrtMemHandleType;

typedef enum aclrtMemAllocationType {
	ACL_MEM_ALLOCATION_TYPE_PINNED = 0
} aclrtMemAllocationType;

typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
	ACL_MEM_LOCATION_TYPE_MANAGED = 3,
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
	uint32_t id;
	aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize;
	uint32_t rsv[4];
} aclrtPtrAttributes;

typedef enum aclrtMemAccessFlags {
	ACL_RT_MEM_ACCESS_FLAGS_NONE = 0,
	ACL_RT_MEM_ACCESS_FLAGS_READ = 1,
	ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3
} aclrtMemAccessFlags;

typedef struct aclrtMemAccessDesc {
	aclrtMemAccessFlags flags;
	aclrtMemLocation location;
	uint8_t rsv[12];
} aclrtMemAccessDesc;

typedef enum aclrtMallocAttrType {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,
	ACL_RT_MEM_ATTR_VA_FLAG = 3
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
	uint16_t moduleId;
	uint32_t deviceId;
	uint32_t vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

typedef enum aclrtHostRegisterType {
	ACL_HOST_REGISTER_MAPPED = 0,
	ACL_HOST_REGISTER_IOMEMORY = 0x04,
	ACL_HOST_REGISTER_READONLY = 0x08
} aclrtHostRegisterType;

/* Flags of aclrtHostRegisterV2(). */
#define ACL_HOST_REG_MAPPED 0x2ul
#define ACL_HOST_REG_IOMEMORY 0x4ul
#define ACL_HOST_REG_READONLY 0x8ul
#define ACL_HOST_REG_PINNED 0x10000000ul

typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

/**
 * aclrtMalloc() - allocate linear memory on the device
 * @devPtr: out: first byte, 64-byte aligned (A1)
 * @size: bytes, not 0 (A4). The allocation has the next multiple of 32, and 32 bytes more
 *	(A2), except with pages of 1 GiB (A3)
 * @policy: enum aclrtMemMallocPolicy (A5, A13). With ACL_MEM_ACCESS_USER_SPACE_READONLY
 *	the CPU can never write at the pointer; copies and memset of this interface write
 *	there
 *
 * The call does not wait for devices or streams (A8). The memory is not initialised, and
 * has no data of other processes (A7).
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL, for 0 bytes, and for a size that
 * overflows when it is rounded;
 * ACL_ERROR_RT_MEMORY_ALLOCATION if memory is short, or pages that the policy requires;
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT for pages that the device does not have;
 * ACL_ERROR_BAD_ALLOC if memory of the process is short; ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* As aclrtMalloc(), without the additional 32 bytes (A11). */
aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy);

/* As aclrtMalloc(): the CPU's mapping of device memory is always cached. */
aclError aclrtMallocCached(void **devPtr, size_t size,
			   aclrtMemMallocPolicy policy);

/**
 * aclrtFree() - free memory of the three calls above (A9)
 * @devPtr: pointer that the call returned
 *
 * The call does not wait. Streams complete their work on the memory, and it is not reused
 * before.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID for a
 * pointer that is not allocated, was freed before, or is inside an allocation (A14). The
 * call cannot detect the second free of an address that has been allocated again.
 */
aclError aclrtFree(void *devPtr);

/**
 * aclrtMallocHost() - allocate host memory
 * @hostPtr: out: first byte, aligned to a page
 * @size: bytes, not 0
 *
 * The memory is of kind host if the device has such memory, and memory of the process
 * otherwise. read(2) and write(2) with an O_DIRECT file may use it.
 *
 * Return: as aclrtMalloc().
 */
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);

/**
 * aclrtMallocWithCfg() - aclrtMalloc() with attributes
 * @devPtr: out: first byte
 * @size: bytes, not 0
 * @policy: as for aclrtMalloc()
 * @cfg: attributes, or NULL: a module, which is ignored; the device, which must be the
 *	current device
 *
 * aclrtMallocHostWithCfg() also accepts the flag for one address on both sides, 0 or 1.
 * The addresses are the same in any case.
 *
 * Return: as aclrtMalloc(); ACL_ERROR_INVALID_PARAM for other attributes.
 */
aclError aclrtMallocWithCfg(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy,
			    aclrtMallocConfig *cfg);
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size,
				aclrtMallocConfig *cfg);

/* aclrtSynchronizeDevice(), then a free. Return: the errors of both. */
aclError aclrtFreeWithDevSync(void *devPtr);
aclError aclrtFreeHostWithDevSync(void *hostPtr);

/**
 * aclrtHostRegister() - register host memory, for use by both sides
 * @ptr: first byte of memory of the process
 * @size: bytes, not 0
 * @type: types combined by "or", which have no effect
 * @devPtr: out: @ptr, since the address is the same on both sides
 *
 * The memory is not locked. Copies accept it as memory of the host and of the device, and
 * aclrtPointerGetAttributes() reports it as memory of the host. Unregister it before you
 * unmap it.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL and for 0 bytes;
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT for any other @type; ACL_ERROR_RT_PARAM_INVALID for
 * memory of a device, or if nothing is mapped at a part;
 * ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED if a part is registered, or is memory of
 * aclrtMallocHost(); ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type,
			   void **devPtr);

/* As aclrtHostRegister(), with flags. */
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);

/* ACL_ERROR_HOST_MEMORY_NOT_REGISTERED: no registered memory begins there. */
aclError aclrtHostUnregister(void *ptr);

/*
 * Get the address of registered memory for the device; @flag is 0. Return: ACL_SUCCESS;
 * ACL_ERROR_INVALID_PARAM; ACL_ERROR_HOST_MEMORY_NOT_REGISTERED.
 */
aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);

/**
 * aclrtMemset() - set bytes
 * @devPtr: device memory or host memory
 * @maxCount: bytes available from @devPtr on
 * @value: the byte is its lowest 8 bits
 * @count: bytes to set; with 0 the call succeeds and ignores all other arguments, as the
 *	calls below do for 0 bytes
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID for
 * @count above @maxCount, and if not all @count bytes are allocated;
 * ACL_ERROR_RT_MEMORY_ALLOCATION if the memory cannot be mapped.
 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
		     size_t count);
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
			  size_t count, aclrtStream stream);

/**
 * aclrtMemsetD32() - set words of 32 bits
 * @ptr: device memory or host memory, aligned to 4 bytes
 * @memSize: bytes available from @ptr on
 * @value: value of each word
 * @N: number of words
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL, another alignment, words beyond
 * @memSize, and memory that is neither allocated here nor registered; else as
 * aclrtMemset().
 */
aclError aclrtMemsetD32(void *ptr, size_t memSize, uint32_t value, size_t N);
aclError aclrtMemsetD32Async(void *ptr, size_t memSize, uint32_t value,
			     size_t N, aclrtStream stream);

/**
 * aclrtMemcpy() - copy bytes
 * @dst: destination
 * @destMax: bytes available from @dst on
 * @src: source
 * @count: bytes to copy
 * @kind: which side is device memory and which is host memory; ACL_MEMCPY_DEFAULT to
 *	determine that from the pointers; ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE as
 *	ACL_MEMCPY_HOST_TO_DEVICE, but a source in a stream may be changed at once
 *
 * Return: as aclrtMemset(); ACL_ERROR_INVALID_PARAM for any other @kind;
 * ACL_ERROR_RT_PARAM_INVALID for a @kind that disagrees with the pointers.
 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind);

/*
 * Copy in the order of a stream. The pointers are checked during the call. If a side is
 * host memory that is neither of aclrtMallocHost() nor registered, the call waits until
 * the copy is done; so do the calls below.
 */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
			  size_t count, aclrtMemcpyKind kind,
			  aclrtStream stream);

/**
 * aclrtMemcpy2d() - copy a matrix
 * @dst: destination
 * @dpitch: bytes from a row of @dst to the next row
 * @src: source
 * @spitch: bytes from a row of @src to the next row
 * @width: bytes of a row, not more than either pitch
 * @height: number of rows
 * @kind: as for aclrtMemcpy(); not ACL_MEMCPY_HOST_TO_HOST, and no buffer
 *
 * Return: as aclrtMemcpy(); ACL_ERROR_INVALID_PARAM for an invalid matrix.
 */
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
		       size_t width, size_t height, aclrtMemcpyKind kind);
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
			    size_t spitch, size_t width, size_t height,
			    aclrtMemcpyKind kind, aclrtStream stream);

typedef struct aclrtMemcpyBatchAttr {
	aclrtMemLocation dstLoc;
	aclrtMemLocation srcLoc;
	uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

/**
 * aclrtMemcpyBatch() - make several copies between the host and devices
 * @dsts: destinations
 * @destMaxs: bytes available at each destination
 * @srcs: sources
 * @sizes: bytes of each copy, not 0; only all of them may be 0
 * @numBatches: number of copies, not 0
 * @attrs: locations of both sides: the host, or the device that has the memory
 * @attrsIndexes: for each attribute, the first copy that it applies to: 0, then rising
 * @numAttrs: number of attributes, not 0
 * @failIndex: out: index of the copy that has failed; SIZE_MAX if no single copy has
 *
 * All copies are compared with their attributes before the first is made. If another
 * check of a copy fails, those before it are made.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL arrays, a size above its maximum,
 * and reserved bytes that are not 0; ACL_ERROR_RT_PARAM_INVALID for other attributes,
 * indexes and memory; errors of aclrtMemcpy().
 */
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs,
			  size_t *sizes, size_t numBatches,
			  aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
			  size_t numAttrs, size_t *failIndex);

/* Make the copies in the order of a stream. */
aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs,
			       size_t *sizes, size_t numBatches,
			       aclrtMemcpyBatchAttr *attrs,
			       size_t *attrsIndexes, size_t numAttrs,
			       size_t *failIndex, aclrtStream stream);

/**
 * aclrtMemFlush() - make writes of the CPU visible to the device
 * @devPtr: a part of an allocation
 * @size: bytes, not 0
 *
 * Device and CPU are coherent, so the call only checks its arguments. The same applies to
 * aclrtMemInvalidate(), for writes of the device.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL and for 0 bytes;
 * ACL_ERROR_RT_PARAM_INVALID if not all bytes are allocated.
 */
aclError aclrtMemFlush(void *devPtr, size_t size);
aclError aclrtMemInvalidate(void *devPtr, size_t size);

/**
 * aclrtPointerGetAttributes() - get the kind of memory at a pointer
 * @ptr: any pointer
 * @attributes: out: the location: a device, the host (memory of aclrtMallocHost() and
 *	registered memory), or unregistered; and the bytes of a page
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL.
 */
aclError aclrtPointerGetAttributes(const void *ptr,
				   aclrtPtrAttributes *attributes);

/* Types of aclrtCheckMemType(). */
#define ACL_RT_MEM_TYPE_DEV 0x2u
#define ACL_RT_MEM_TYPE_DVPP 0x8u
#define ACL_RT_MEM_TYPE_RSVD 0x10u

/**
 * aclrtCheckMemType() - check that addresses are memory of a device
 * @addrList: the addresses
 * @size: number of addresses, not 0
 * @memType: types combined by "or". All memory of a device is of ACL_RT_MEM_TYPE_DEV
 * @checkResult: out: 1 if each address has one of the types; else 0
 * @reserve: 0
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID.
 */
aclError aclrtCheckMemType(void **addrList, uint32_t size, uint32_t memType,
			   uint32_t *checkResult, uint32_t reserve);

/**
 * aclrtGetMemInfo() - get the size of the device's memory
 * @attr: kind of memory; for huge pages the results are whole pages
 * @free: out: bytes that the caller can allocate now, within its limits, and including
 *	free memory of its pool
 * @total: out: bytes of the device
 *
 * The limit of the user (max_bytes_per_user) counts what all contexts of the user have.
 * The library knows only of its own: if the user has other contexts, @free may be more
 * than this limit allows.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/*
 * Reserved addresses, and memory without addresses.
 *
 * A program reserves addresses of the process, allocates memory as a handle, and maps the
 * handle at reserved addresses. The CPU, and the calls above, access the memory there.
 * The device address of the memory does not change.
 */

/**
 * aclrtReserveMemAddress() - reserve addresses
 * @virPtr: out: first address
 * @size: bytes, not 0
 * @alignment: 0 for the size of a huge page, or a power of two
 * @expectPtr: preferred first address, or NULL
 * @flags: 0, or 1 for huge pages
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_MEMORY_ALLOCATION if no such
 * range is free.
 */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
				void *expectPtr, uint64_t flags);

/* ACL_ERROR_RT_PARAM_INVALID: nothing is reserved there, or memory is mapped there. */
aclError aclrtReleaseMemAddress(void *virPtr);

/**
 * aclrtMallocPhysical() - allocate memory without an address
 * @handle: out: the memory
 * @size: bytes, a multiple of aclrtMemGetAllocationGranularity()
 * @prop: device; page size: an ACL_HBM_MEM_* or ACL_MEM_* attribute that names one, but
 *	not an ACL_HBM_MEM_P2P_* attribute; all other members 0
 * @flags: 0
 *
 * Return: as aclrtMalloc(); ACL_ERROR_RT_FEATURE_NOT_SUPPORT for host memory.
 */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags);

/*
 * Drop a reference of aclrtMemRetainAllocationHandle(), or free the memory.
 * ACL_ERROR_RT_INVALID_HANDLE: there is no such handle; ACL_ERROR_RT_PARAM_INVALID: the
 * memory would be freed, and is mapped.
 */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/**
 * aclrtMapMem() - map memory at reserved addresses
 * @virPtr: a reserved address, a multiple of 4 KiB
 * @size: bytes of the whole memory
 * @offset: 0
 * @handle: the memory, which is not mapped
 * @flags: 0
 *
 * The contents of the memory survive an unmap and another map.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_PARAM_INVALID if not all
 * addresses are reserved, or memory is mapped there; ACL_ERROR_RT_INVALID_HANDLE;
 * ACL_ERROR_RT_MEMORY_ALLOCATION if the kernel cannot map the memory.
 */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
		     aclrtDrvMemHandle handle, uint64_t flags);

/**
 * aclrtUnmapMem() - unmap memory from reserved addresses
 * @virPtr: first address of the memory
 *
 * The addresses stay reserved. The call waits for all work that is queued on any stream.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID if no
 * memory begins there; ACL_ERROR_RT_MEMORY_ALLOCATION if the kernel cannot unmap it.
 */
aclError aclrtUnmapMem(void *virPtr);

/**
 * aclrtMemSetAccess() - set access rights of mapped memory
 * @virPtr: first address
 * @size: bytes, all of them mapped
 * @desc: rights of the host or of a device: to read and write
 * @count: number of descriptions, not 0
 *
 * The call only checks its arguments: the host and the device have both rights from
 * aclrtMapMem() on.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_FEATURE_NOT_SUPPORT for other
 * rights; ACL_ERROR_RT_PARAM_INVALID if not all bytes are mapped.
 */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
			   size_t count);

/**
 * aclrtMemRetainAllocationHandle() - get the handle of mapped memory
 * @virPtr: any address of the memory
 * @handle: out: the handle, with one more reference: aclrtFreePhysical() drops it
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID if no
 * memory is mapped there.
 */
aclError aclrtMemRetainAllocationHandle(void *virPtr,
					aclrtDrvMemHandle *handle);

typedef enum aclrtMemGranularityOptions {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1
} aclrtMemGranularityOptions;

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
					  aclrtMemGranularityOptions option,
					  size_t *granularity);

/*
 * Memory for other processes.
 *
 * The process that has allocated a handle exports the handle as a number, and names the
 * processes that may import it. A named process that gets the number imports it as a handle
 * of its own. The processes must run as the same effective user, in the same PID and network
 * namespaces: the interface itself does not require this. A thread of the exporting process
 * gives the memory to the others. The first export starts this thread, and the process must
 * exist until the others have imported the memory.
 *
 * All processes can read and write the memory. It is free when all of them have freed
 * their handles, or have ended.
 */

/* Flags of an export: only named processes may import it, or all of the user. */
#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL

/* Get the id of the process, for aclrtMemSetPidToShareableHandle(). */
aclError aclrtDeviceGetBareTgid(int32_t *pid);

/**
 * aclrtMemExportToShareableHandle() - export memory of aclrtMallocPhysical()
 * @handle: the memory, which this process has allocated and not exported before
 * @handleType: ACL_MEM_HANDLE_TYPE_NONE
 * @flags: ACL_RT_VMM_EXPORT_FLAG_*
 * @shareableHandle: out: the number, which the program sends to the other processes
 *
 * The number is valid until aclrtFreePhysical() has freed the memory in this process. The
 * number is hard to guess, but a process that can read this program's memory can find it.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_HANDLE if this process
 * has not allocated @handle; ACL_ERROR_RT_PARAM_INVALID if it was exported before, or
 * imported; ACL_ERROR_RT_FEATURE_NOT_SUPPORT if the driver has no exports;
 * ACL_ERROR_RT_MEMORY_ALLOCATION if memory is short, or a limit reached;
 * ACL_ERROR_RT_INTERNAL_ERROR if there are too many open files or threads, or if other
 * processes have taken the names that were tried for the socket.
 */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle,
					 aclrtMemHandleType handleType,
					 uint64_t flags,
					 uint64_t *shareableHandle);

/**
 * aclrtMemSetPidToShareableHandle() - name processes that may import memory
 * @shareableHandle: number that this process has exported
 * @pid: ids of processes that exist (aclrtDeviceGetBareTgid())
 * @pidNum: number of ids, not 0
 *
 * The call adds the processes to those that were named before. After an error none of them
 * is added. Children of a named process, and later processes with the same id, may not
 * import. This process keeps a file descriptor for each named process.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if @pid is NULL or @pidNum is 0;
 * ACL_ERROR_RT_PARAM_INVALID if one of the processes does not exist;
 * ACL_ERROR_RT_INVALID_HANDLE if this process has not exported the number;
 * ACL_ERROR_BAD_ALLOC or ACL_ERROR_RT_MEMORY_ALLOCATION if memory is short;
 * ACL_ERROR_RT_INTERNAL_ERROR if there are too many open files.
 */
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid,
					 size_t pidNum);

/**
 * aclrtMemImportFromShareableHandle() - make a handle of memory of another process
 * @shareableHandle: the number
 * @deviceId: the device that has the memory
 * @handle: out: the memory, for aclrtMapMem() and aclrtFreePhysical()
 *
 * The memory counts against the limits of this process as well.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if @handle is NULL;
 * ACL_ERROR_RT_INVALID_HANDLE if no process exports the number, or if the exporting process
 * has not named this one; ACL_ERROR_RT_FEATURE_NOT_SUPPORT for memory of this process or of
 * another device; ACL_ERROR_RT_PARAM_INVALID if this process has imported the number before
 * and has not freed the handle; ACL_ERROR_BAD_ALLOC;
 * ACL_ERROR_RT_INVALID_DEVICEID; ACL_ERROR_RT_MEMORY_ALLOCATION if memory is short, or a
 * limit reached; ACL_ERROR_RT_INTERNAL_ERROR if the exporting process does not answer within
 * 10 seconds, if there are too many open files, and after a reset of the device.
 */
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle,
					   int32_t deviceId,
					   aclrtDrvMemHandle *handle);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_RT_MEMORY_H */
