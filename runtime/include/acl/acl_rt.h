/* SPDX-License-Identifier: MIT */
/* Devices, contexts, streams and events of ACL: see acl(3). */
#ifndef ACCMEM_ACL_RT_H
#define ACCMEM_ACL_RT_H

#include <acl/acl_base.h>
#include <acl/acl_rt_memory.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
	ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
	ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
	ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF
} aclrtEventWaitStatus;

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 0xFFFF
} aclrtStreamStatus;

typedef enum aclrtRunMode { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

/**
 * aclInit() - initialise the interface
 * @configPath: ignored
 *
 * Return: ACL_SUCCESS; ACL_ERROR_REPEAT_INITIALIZE for a second call.
 */
aclError aclInit(const char *configPath);

/**
 * aclFinalize() - wait for all streams, and close all devices
 *
 * Return: ACL_SUCCESS, also without aclInit(); ACL_ERROR_REPEAT_FINALIZE for a second
 * call without aclInit() between the two.
 */
aclError aclFinalize(void);

/**
 * aclGetRecentErrMsg() - get the text of the calling thread's last error, and clear it
 *
 * Return: a line, valid until the thread's next call of this function; NULL if there was
 * no error since the last call.
 */
const char *aclGetRecentErrMsg(void);

typedef enum aclrtLastErrLevel { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

/**
 * aclrtGetLastError() - get the calling thread's last error, and clear it
 * @level: ACL_RT_THREAD_LEVEL
 *
 * Errors of arguments alone, with codes below 101000, are not stored.
 *
 * Return: the code of the error, ACL_SUCCESS for none; ACL_ERROR_INVALID_PARAM for any other
 * @level.
 */
aclError aclrtGetLastError(aclrtLastErrLevel level);

/* As aclrtGetLastError(), without clearing the error. */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);

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
 * aclrtSetDevice() - set the calling thread's device
 * @deviceId: number of the device
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_INVALID_DEVICEID if the device does not exist, or
 * cannot be opened.
 */
aclError aclrtSetDevice(int32_t deviceId);
aclError aclrtGetDevice(int32_t *deviceId);

/**
 * aclrtResetDevice() - undo an aclrtSetDevice()
 * @deviceId: number of the device
 *
 * The last call, after as many as aclrtSetDevice(), closes the device. It waits for:
 * - the streams of the device;
 * - work of other streams on memory of the device; if any memory of the device is mapped
 *   at reserved addresses, all work that is queued on any stream;
 * - calls of other threads on any device, except calls that wait for a stream.
 *
 * Then all allocations of the device are freed, and their addresses are invalid. If
 * another thread uses the number of the device in the meantime, the device is opened
 * again.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_INVALID_DEVICEID for a device that is not set.
 */
aclError aclrtResetDevice(int32_t deviceId);

/* Undo all calls of aclrtSetDevice() so far. */
aclError aclrtResetDeviceForce(int32_t deviceId);

/* Attributes of aclrtGetDeviceInfo(). */
typedef enum aclrtDevAttr {
	ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
	ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
	ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
	ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
	ACL_DEV_ATTR_WARP_SIZE = 202,
	ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
	ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,
	ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 204,
	ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,
	ACL_DEV_ATTR_L2_CACHE_SIZE = 302,
	ACL_DEV_ATTR_SMP_ID = 401,
	ACL_DEV_ATTR_PHY_CHIP_ID = 402,
	ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403,
	ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
	ACL_DEV_ATTR_SUPER_POD_ID = 405,
	ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
	ACL_DEV_ATTR_MAINBOARD_ID = 407,
	ACL_DEV_ATTR_IS_VIRTUAL = 501,
	ACL_DEV_ATTR_NPU_ARCH = 601
} aclrtDevAttr;

/**
 * aclrtGetDeviceInfo() - get an attribute of a device
 * @deviceId: number of the device
 * @attr: ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, the bytes of the device's memory
 * @value: out: the attribute
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_FEATURE_NOT_SUPPORT
 * for any other attribute; ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
			    int64_t *value);

typedef enum aclrtDevFeatureType {
	ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
	ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21
} aclrtDevFeatureType;

/* Values of aclrtGetDeviceCapability(). */
#define ACL_DEV_FEATURE_NOT_SUPPORT 0x0
#define ACL_DEV_FEATURE_SUPPORT 0x1

/*
 * Get whether a device has a feature: it has none of them. Return: ACL_SUCCESS;
 * ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_PARAM_INVALID for any other feature;
 * ACL_ERROR_RT_INVALID_DEVICEID.
 */
aclError aclrtGetDeviceCapability(int32_t deviceId,
				  aclrtDevFeatureType devFeatureType,
				  int32_t *value);

/**
 * aclrtDeviceCanAccessPeer() - get whether two devices can access each other's memory
 * @canAccessPeer: out: 1, since copies between any two devices of a process are possible
 * @deviceId: number of a device
 * @peerDeviceId: number of another device
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if the devices are the same;
 * ACL_ERROR_RT_INVALID_DEVICEID; ACL_ERROR_RT_PARAM_INVALID for NULL.
 */
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId,
				  int32_t peerDeviceId);

/*
 * Turn access of the current device to another device on or off, without effect; @flags is
 * 0. Return: as aclrtDeviceCanAccessPeer(); ACL_ERROR_FEATURE_UNSUPPORTED for @flags.
 */
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/**
 * aclrtCreateContext() - create a context, and make it the calling thread's
 * @context: out: the context
 * @deviceId: number of the context's device, which stays open as long as the context
 *
 * A context has no state besides its device: streams and memory of one context may be
 * used in another context of the same device. Thread-safe, as the three calls below.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_DEVICEID;
 * ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);

/**
 * aclrtDestroyContext() - destroy a context of aclrtCreateContext()
 * @context: the context
 *
 * If the device has no other context and is not set, the call closes the device, as
 * aclrtResetDevice() does.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if there is no such context.
 */
aclError aclrtDestroyContext(aclrtContext context);

/**
 * aclrtSetCurrentContext() - set the calling thread's context and device
 * @context: the context
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if there is no such context.
 */
aclError aclrtSetCurrentContext(aclrtContext context);

/**
 * aclrtGetCurrentContext() - get the calling thread's context
 * @context: out: the context that the thread has set; after aclrtSetDevice(), the
 *	device's own context
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_CONTEXT_NULL if the
 * thread has no context.
 */
aclError aclrtGetCurrentContext(aclrtContext *context);

/*
 * Streams. A stream runs operations in order, in a thread of its own. NULL stands for the
 * default stream of the current device. In a child of fork(), calls with a stream or an
 * event of the parent return ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtCreateStream(aclrtStream *stream);

/* Get the default stream of the current device. ACL_ERROR_INVALID_PARAM: NULL. */
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

/* Flags of a stream. All streams behave the same, with any priority and flags. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001u
#define ACL_STREAM_FAST_SYNC 0x00000002u

aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority,
				     uint32_t flag);
aclError aclrtDestroyStream(aclrtStream stream);
aclError aclrtSynchronizeStream(aclrtStream stream);
aclError aclrtSynchronizeDevice(void);

/**
 * aclrtDestroyStreamForce() - destroy a stream, and drop its queued operations
 * @stream: the stream
 *
 * The call waits for a copy in progress, and for nothing else. Queued operations do not
 * run. Events that they would have recorded count as reached.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_HANDLE if
 * there is no such stream.
 */
aclError aclrtDestroyStreamForce(aclrtStream stream);

/**
 * aclrtSynchronizeStreamWithTimeout() - wait for the operations of a stream
 * @stream: the stream
 * @timeout: milliseconds, at least 1, or -1 for no end
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_STREAM_SYNC_TIMEOUT when the time is over;
 * ACL_ERROR_RT_PARAM_INVALID for other timeouts; ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_HANDLE. */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);

/* Modes of aclrtSetStreamFailureMode(). */
#define ACL_CONTINUE_ON_FAILURE 0x0u
#define ACL_STOP_ON_FAILURE 0x1u

/**
 * aclrtSetStreamFailureMode() - set what a stream does after an operation has failed
 * @stream: a stream, not the default stream
 * @mode: ACL_CONTINUE_ON_FAILURE or ACL_STOP_ON_FAILURE
 *
 * The mode has no effect: operations are checked when they are queued, and do not fail
 * later.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_INVALID_HANDLE.
 */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

typedef enum aclrtCallbackBlockType {
	ACL_CALLBACK_NO_BLOCK = 0,
	ACL_CALLBACK_BLOCK = 1
} aclrtCallbackBlockType;

typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);

/**
 * aclrtSubscribeReport() - let a thread run the callbacks of a stream
 * @threadId: pthread_t of the thread
 * @stream: the stream
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_STREAM_SUBSCRIBE if the stream has a thread already;
 * ACL_ERROR_RT_INVALID_HANDLE; ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/**
 * aclrtUnSubscribeReport() - undo aclrtSubscribeReport()
 * @threadId: pthread_t of the thread
 * @stream: the stream
 *
 * Callbacks that the thread has not begun do not run, and the stream does not wait for
 * them. The end of the stream undoes the subscription, too.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_STREAM_SUBSCRIBE if the stream has no thread;
 * ACL_ERROR_RT_THREAD_SUBSCRIBE if it has another one.
 */
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/**
 * aclrtProcessReport() - run the callbacks of the calling thread's streams
 * @timeout: milliseconds, at least 1, or -1 for no end
 *
 * The call waits until a stream has come to a callback, and runs all callbacks that the
 * streams have come to. It is not a cancellation point.
 *
 * Return: ACL_SUCCESS if it has run a callback; ACL_ERROR_RT_REPORT_TIMEOUT when the time
 * is over; ACL_ERROR_RT_THREAD_SUBSCRIBE if no stream has the thread, or none has it any
 * more; ACL_ERROR_INVALID_PARAM for any other timeout.
 */
aclError aclrtProcessReport(int32_t timeout);

/**
 * aclrtLaunchCallback() - call a function in the thread of a subscription
 * @fn: the function
 * @userData: its argument
 * @blockType: whether the stream waits until the function has returned
 * @stream: stream that comes to the callback in its order
 *
 * While the stream waits for @fn, calls in @fn that would wait for the stream fail, as in
 * aclrtLaunchHostFunc(). aclrtDestroyStreamForce() ends the wait, and succeeds.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for any other @blockType;
 * ACL_ERROR_RT_PARAM_INVALID if @fn is NULL; ACL_ERROR_RT_STREAM_NO_CB_REG without
 * aclrtSubscribeReport(); ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtLaunchCallback(aclrtCallback fn, void *userData,
			     aclrtCallbackBlockType blockType,
			     aclrtStream stream);

/**
 * aclrtLaunchHostFunc() - call a function in the thread of the stream itself
 * @stream: stream that waits until the function has returned
 * @fn: the function
 * @args: its argument
 *
 * Calls in @fn that would wait for the stream, or end it, change nothing and fail with
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT. These calls wait for all streams:
 * aclrtSynchronizeDevice() (for those of its device), aclrtUnmapMem(), aclrtFreeHost() on
 * a device without host memory, aclFinalize(), and the last aclrtResetDevice() or
 * aclrtDestroyContext() of a device. aclrtMemcpyAsync() waits for its stream if host
 * memory is neither registered nor allocated.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_PARAM_INVALID if @fn is NULL;
 * ACL_ERROR_RT_INVALID_HANDLE; ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);

aclError aclrtCreateEvent(aclrtEvent *event);

/* Flags of an event. All events behave as if they had all flags. */
#define ACL_EVENT_SYNC 0x00000001u
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002u
#define ACL_EVENT_TIME_LINE 0x00000008u

/*
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_FEATURE_NOT_SUPPORT
 * for any other flag; ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);

aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtSynchronizeEvent(aclrtEvent event);

/* As aclrtSynchronizeStreamWithTimeout(), with ACL_ERROR_RT_EVENT_SYNC_TIMEOUT. */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/**
 * aclrtResetEvent() - cancel the records of an event
 * @event: the event
 * @stream: stream that runs the reset in its order
 *
 * The time of the event is unknown until it is recorded again.
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for NULL; ACL_ERROR_RT_INVALID_HANDLE;
 * ACL_ERROR_BAD_ALLOC.
 */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
aclError aclrtQueryEventStatus(aclrtEvent event,
			       aclrtEventRecordedStatus *status);

/* Query whether a stream still has a wait of aclrtStreamWaitEvent() for the event. */
aclError aclrtQueryEventWaitStatus(aclrtEvent event,
				   aclrtEventWaitStatus *status);

/* An older form of aclrtQueryEventStatus(), with other values. */
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);

/*
 * ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID: no stream has run the latest record of an event.
 */
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent,
			       aclrtEvent endEvent);

/* Get the time of the latest record, in microseconds of CLOCK_MONOTONIC. Errors: the same. */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_RT_H */
