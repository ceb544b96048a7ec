/* SPDX-License-Identifier: MIT */
/*
 * Memory of a device by the names of Ascend's ACL, on accmem: see acl(3).
 *
 * Device n is /dev/accmemN; device 0 is $ACCMEM_DEVICE where that is set. A thread
 * that has not called aclrtSetDevice() works on device 0, and neither aclInit() nor
 * aclrtSetDevice() has to be called. Functions return ACL_SUCCESS or an error code
 * and are thread-safe, except that a stream or an event is not used while it is
 * destroyed. A device may be closed while other threads are in calls: what they work on
 * stays until they have ended. aclGetRecentErrMsg() says in words what went wrong.
 */
#ifndef ACCMEM_ACL_H
#define ACCMEM_ACL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef void *aclrtDrvMemHandle;

/* Constants in the interface, too; those with _RT_ in their name are macros. */
static const int ACL_SUCCESS = 0, ACL_ERROR_NONE = 0,
		 ACL_ERROR_INVALID_PARAM = 100000,
		 ACL_ERROR_UNINITIALIZE = 100001,
		 ACL_ERROR_REPEAT_INITIALIZE = 100002,
		 ACL_ERROR_BAD_ALLOC = 200000,
		 ACL_ERROR_FEATURE_UNSUPPORTED = 200006;

#define ACL_ERROR_RT_PARAM_INVALID 107000
#define ACL_ERROR_RT_INVALID_DEVICEID 107001
#define ACL_ERROR_RT_CONTEXT_NULL 107002
#define ACL_ERROR_RT_INVALID_HANDLE 107017
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001
#define ACL_ERROR_RT_INTERNAL_ERROR 507000
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047

/* Programs call it by this name, too. */
#define ACL_ERROR_INVALID_MEM_HANDLE ACL_ERROR_RT_INVALID_HANDLE

/*
 * A policy, with hints added to it by "or". A value whose policy is none of these
 * stands for huge pages if the size is 2 MiB or more, else normal pages (A5).
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
	ACL_MEMCPY_DEFAULT = 4
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
	ACL_HBM_MEM_P2P_HUGE1G = 11
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
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2
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

/* Modes of aclrtSetStreamFailureMode(). */
#define ACL_CONTINUE_ON_FAILURE 0x0u
#define ACL_STOP_ON_FAILURE 0x1u

typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 0xFFFF
} aclrtStreamStatus;

typedef enum aclrtRunMode { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

/**
 * aclInit() - begin
 * @configPath: not looked at
 *
 * Return: ACL_SUCCESS; ACL_ERROR_REPEAT_INITIALIZE for a second time.
 */
aclError aclInit(const char *configPath);

/**
 * aclFinalize() - end: waits for all streams and closes all devices
 *
 * Return: ACL_SUCCESS; ACL_ERROR_UNINITIALIZE without aclInit().
 */
aclError aclFinalize(void);

/**
 * aclGetRecentErrMsg() - what went wrong in the calling thread, in words
 *
 * It is told once.
 *
 * Return: a line, valid until the thread's next call of this; NULL where nothing went
 * wrong since.
 */
const char *aclGetRecentErrMsg(void);

/*
 * The version of the interface, 1.15.0. Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for
 * NULL.
 */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
			 int32_t *patchVersion);

/* Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL. */
aclError aclrtGetDeviceCount(uint32_t *count);
aclError aclrtGetRunMode(aclrtRunMode *runMode);

/* Return: "accmem". */
const char *aclrtGetSocName(void);

/**
 * aclrtSetDevice() - the device that the calling thread works on
 * @deviceId: number of the device
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_INVALID_DEVICEID where there is none, or where it
 * cannot be opened.
 */
aclError aclrtSetDevice(int32_t deviceId);
aclError aclrtGetDevice(int32_t *deviceId);

/**
 * aclrtResetDevice() - undo an aclrtSetDevice()
 * @deviceId: number of the device
 *
 * With the last of as many calls as aclrtSetDevice() has had, the streams of the device are
 * waited for, and what others have to do with its memory; where some is mapped at reserved
 * addresses, all that streams have to do by then. So are calls of other threads on any
 * device, but for those that wait for a stream. Then all that was allocated on it is gone:
 * its addresses are as good as any that nobody has allocated. Others who use the device by
 * its number meanwhile open it anew.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_INVALID_DEVICEID for a device that is not set.
 */
aclError aclrtResetDevice(int32_t deviceId);

/* The same for all calls of aclrtSetDevice() so far. */
aclError aclrtResetDeviceForce(int32_t deviceId);

/**
 * aclrtCreateContext() - make a context, which is the calling thread's from then on
 * @context: out: the context
 * @deviceId: number of its device, which is open as long
 *
 * A context is a device and nothing else: streams and memory of one are as good in
 * another of the same device. Thread-safe, as the three calls below.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL,
 * ACL_ERROR_RT_INVALID_DEVICEID, ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/**
 * aclrtDestroyContext() - forget a context that aclrtCreateContext() has made
 * @context: the context
 *
 * With the last one of a device that nobody has set, the device is closed, as by
 * aclrtResetDevice().
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM where there is none.
 */
aclError aclrtDestroyContext(aclrtContext context);

/**
 * aclrtSetCurrentContext() - the context, and so the device, of the calling thread
 * @context: the context
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM where there is none.
 */
aclError aclrtSetCurrentContext(aclrtContext context);

/**
 * aclrtGetCurrentContext() - the calling thread's context
 * @context: out: what it has set; or that which a device has by itself, after
 *	aclrtSetDevice()
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL, ACL_ERROR_RT_CONTEXT_NULL
 * where there is none.
 */
aclError aclrtGetCurrentContext(aclrtContext *context);

/*
 * Streams: what is given to one is done in order, by a thread of the stream. A NULL
 * stream is the device's default one. In a child of fork() the parent's streams and
 * events are ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtCreateStream(aclrtStream *stream);

/* What streams are created with; all are alike, whatever their priority and flags. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001u
#define ACL_STREAM_FAST_SYNC 0x00000002u

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
				     uint32_t flag);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeDevice(void);

/**
 * aclrtDestroyStreamForce() - end a stream and what it has to do
 * @stream: the stream
 *
 * A copy in progress is waited for, and nothing else: what has not begun is not done, and
 * events that it would have come to count as reached.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_INVALID_HANDLE where there is none.
 */
aclError aclrtDestroyStreamForce(aclrtStream stream);

/**
 * aclrtSynchronizeStreamWithTimeout() - wait for what a stream has to do
 * @stream: the stream
 * @timeout: milliseconds, at least 1, or -1 for ever
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time is over;
 * ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_HANDLE. */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/**
 * aclrtSetStreamFailureMode() - what a stream does after an operation that failed
 * @stream: a stream, not the default one
 * @mode: ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE
 *
 * Operations are checked when they are queued, and do not fail later.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

aclError aclrtCreateEvent(aclrtEvent *event);

/* What events are asked to do; each does all of it. */
#define ACL_EVENT_SYNC 0x00000001u
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002u
#define ACL_EVENT_TIME_LINE 0x00000008u

/*
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_FEATURE_UNSUPPORTED
 * for any other flag; ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtSynchronizeEvent(aclrtEvent event);

/* As for a stream; ACL_ERROR_RT_EVENT_SYNC_TIMEOUT. */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/**
 * aclrtResetEvent() - make an event as if it had not been recorded
 * @event: the event
 * @stream: when this stream comes to it
 *
 * Its time is not known any more, until it is recorded again.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_HANDLE;
 * ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEventStatus(aclrtEvent event,
			       aclrtEventRecordedStatus *status);

/* The same by other numbers, as programs asked once. */
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent,
			       aclrtEvent endEvent);

/**
 * aclrtMalloc() - allocate linear memory on the device
 * @devPtr: out: its first byte, 64-byte aligned (A1)
 * @size: bytes, not 0 (A4); what is allocated is the next multiple of 32, and 32 more
 *	(A2), but for pages of 1 GiB (A3)
 * @policy: enum aclrtMemMallocPolicy (A5, A13). The memory of
 *	ACL_MEM_ACCESS_USER_SPACE_READONLY is never writable to the CPU at its pointer;
 *	copies and memset of this interface write to it
 *
 * Does not wait for devices or streams (A8). What is in the memory is undefined; other
 * processes' data is not in it (A7).
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL and for 0 bytes;
 * ACL_ERROR_RT_MEMORY_ALLOCATION for lack of memory, or of pages that the policy
 * insists on; ACL_ERROR_FEATURE_UNSUPPORTED for pages that the device has not;
 * ACL_ERROR_BAD_ALLOC for lack of the process's own memory;
 * ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* The same, without the 32 bytes more (A11). */
aclError aclrtMallocAlign32(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy);

/* The same as aclrtMalloc(): the CPU's mapping of device memory is cached. */
aclError aclrtMallocCached(void **devPtr, size_t size,
			   aclrtMemMallocPolicy policy);

/**
 * aclrtFree() - free what one of these has allocated (A9)
 * @devPtr: as it was returned
 *
 * Does not wait. What a stream still has to do with the memory is done; the memory is
 * not used again before.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL, ACL_ERROR_RT_PARAM_INVALID
 * for what is not allocated, freed already (unless the address has been handed out
 * again, which cannot be told), or inside an allocation (A14).
 */
aclError aclrtFree(void *devPtr);

/**
 * aclrtMallocHost() - allocate memory of the host
 * @hostPtr: out: its first byte, 64-byte aligned, and aligned to a page
 * @size: bytes, not 0
 *
 * Where the device has memory of kind host, it is that; otherwise it is memory of the
 * process. It may be given to read(2) and write(2) of an O_DIRECT file.
 *
 * Return: as aclrtMalloc().
 */
aclError aclrtMallocHost(void **hostPtr, size_t size);
aclError aclrtFreeHost(void *hostPtr);

/**
 * aclrtMallocWithCfg() - aclrtMalloc() with attributes
 * @devPtr: out: its first byte
 * @size: bytes, not 0
 * @policy: as aclrtMalloc()'s
 * @cfg: attributes, or NULL: a module, of which nothing is made; the device, which has
 *	to be the current one
 *
 * aclrtMallocHostWithCfg() takes the flag for one address on both sides, too, 0 or 1:
 * that is so in any case.
 *
 * Return: as aclrtMalloc(); ACL_ERROR_INVALID_PARAM for other attributes.
 */
aclError aclrtMallocWithCfg(void **devPtr, size_t size,
			    aclrtMemMallocPolicy policy,
			    aclrtMallocConfig *cfg);
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size,
				aclrtMallocConfig *cfg);

/* aclrtSynchronizeDevice(), then the free. Return: as either. */
aclError aclrtFreeWithDevSync(void *devPtr);
aclError aclrtFreeHostWithDevSync(void *hostPtr);

/**
 * aclrtMemset() - set bytes
 * @devPtr: memory of the device or of the host
 * @maxCount: bytes that there are from @devPtr on
 * @value: its low byte
 * @count: bytes
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL and for @count above
 * @maxCount; ACL_ERROR_RT_PARAM_INVALID where the memory is not allocated, or not
 * to @count; ACL_ERROR_RT_MEMORY_ALLOCATION where it cannot be mapped.
 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value,
		     size_t count);
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value,
			  size_t count, aclrtStream stream);

/**
 * aclrtMemcpy() - copy
 * @dst: where to
 * @destMax: bytes that there are from @dst on
 * @src: where from
 * @count: bytes
 * @kind: which of them is the device's and which the host's; ACL_MEMCPY_DEFAULT to find
 *	out
 *
 * Return: as aclrtMemset(); ACL_ERROR_INVALID_PARAM for an unknown @kind,
 * ACL_ERROR_RT_PARAM_INVALID for one that the pointers are not of.
 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		     aclrtMemcpyKind kind);

/* The same in a stream; the memory of both is looked at when the call is made. */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src,
			  size_t count, aclrtMemcpyKind kind,
			  aclrtStream stream);

/**
 * aclrtMemcpy2d() - copy a matrix
 * @dst: where to
 * @dpitch: bytes from a row of it to the next one
 * @src: where from
 * @spitch: likewise
 * @width: bytes of a row, not 0, at most either pitch
 * @height: rows, not 0
 * @kind: as for aclrtMemcpy()
 *
 * Return: as aclrtMemcpy(); ACL_ERROR_INVALID_PARAM for a matrix that cannot be.
 */
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch,
		       size_t width, size_t height, aclrtMemcpyKind kind);
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src,
			    size_t spitch, size_t width, size_t height,
			    aclrtMemcpyKind kind, aclrtStream stream);

/**
 * aclrtMemFlush() - have the device see what the CPU wrote
 * @devPtr: a part of an allocation
 * @size: bytes of it, not 0
 *
 * It always does: nothing is done. aclrtMemInvalidate() is the other way round.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL and for 0 bytes;
 * ACL_ERROR_RT_PARAM_INVALID where not all of it is allocated.
 */
aclError aclrtMemFlush(void *devPtr, size_t size);
aclError aclrtMemInvalidate(void *devPtr, size_t size);

/**
 * aclrtPointerGetAttributes() - what is at a pointer
 * @ptr: any
 * @attributes: out: the device whose memory it is, or that it is the host's from
 *	aclrtMallocHost(), or unregistered; bytes of a page
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL.
 */
aclError aclrtPointerGetAttributes(const void *ptr,
				   aclrtPtrAttributes *attributes);

/**
 * aclrtGetMemInfo() - how much memory there is
 * @attr: of what kind; of huge pages in whole pages
 * @free: out: bytes that the caller could get now: limits are looked at, and what its
 *	pool keeps is counted
 * @total: out: bytes of the device
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);

/*
 * Addresses and memory, one without the other. Addresses are the process's own, and
 * memory that is mapped at them is reached there by the CPU and by the calls above;
 * the device's name of it remains that of the memory.
 */

/**
 * aclrtReserveMemAddress() - reserve addresses
 * @virPtr: out: the first
 * @size: bytes, not 0
 * @alignment: 0 for that of a huge page, or a power of two
 * @expectPtr: where they would best be, or NULL
 * @flags: 0, or 1 for huge pages
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_MEMORY_ALLOCATION where
 * there are none.
 */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment,
				void *expectPtr, uint64_t flags);

/* ACL_ERROR_RT_PARAM_INVALID for what is not reserved, or has something mapped. */
aclError aclrtReleaseMemAddress(void *virPtr);

/**
 * aclrtMallocPhysical() - allocate memory without an address
 * @handle: out: the memory
 * @size: bytes, a multiple of aclrtMemGetAllocationGranularity()
 * @prop: on which device, of what pages; the rest 0
 * @flags: 0
 *
 * Return: as aclrtMalloc(); ACL_ERROR_FEATURE_UNSUPPORTED for memory of the host.
 */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
			     const aclrtPhysicalMemProp *prop, uint64_t flags);

/*
 * Takes a retained handle back, or frees. ACL_ERROR_RT_INVALID_HANDLE for what is none,
 * _RT_PARAM_INVALID if the memory would go and is mapped.
 */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/**
 * aclrtMapMem() - give memory an address
 * @virPtr: an address that is reserved, a multiple of the page of 4 KiB
 * @size: bytes: all of the memory
 * @offset: 0
 * @handle: the memory, which has no address yet
 * @flags: 0
 *
 * What is in the memory stays in it from one mapping to the next.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_PARAM_INVALID where not
 * all is reserved, or something is mapped; ACL_ERROR_RT_INVALID_HANDLE;
 * ACL_ERROR_RT_MEMORY_ALLOCATION where the kernel cannot map.
 */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset,
		     aclrtDrvMemHandle handle, uint64_t flags);

/**
 * aclrtUnmapMem() - take memory from its addresses
 * @virPtr: the first one
 *
 * The addresses stay reserved. What all streams have to do is waited for.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID
 * where no memory begins; ACL_ERROR_RT_MEMORY_ALLOCATION where the kernel cannot unmap.
 */
aclError aclrtUnmapMem(void *virPtr);

/**
 * aclrtMemSetAccess() - who may do what with mapped memory
 * @virPtr: where it is mapped
 * @size: bytes, all of which have memory
 * @desc: reading and writing, of the host or a device
 * @count: how many, not 0
 *
 * Both sides may, from aclrtMapMem() on.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_FEATURE_UNSUPPORTED for less
 * than both; ACL_ERROR_RT_PARAM_INVALID where not all has memory.
 */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc,
			   size_t count);

/**
 * aclrtMemRetainAllocationHandle() - the memory that is mapped at an address
 * @virPtr: anywhere in it
 * @handle: out: the memory, which aclrtFreePhysical() has to be called for once more
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID
 * where none is mapped.
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

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_H */
