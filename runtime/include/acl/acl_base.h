/* SPDX-License-Identifier: MIT */
/* Types and errors of ACL: see acl(3). */
#ifndef ACCMEM_ACL_BASE_H
#define ACCMEM_ACL_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int aclError;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtContext;
typedef uint16_t aclFloat16;
typedef struct aclDataBuffer aclDataBuffer;

/* Constants, as in the interface; the names with _RT_ are macros there. */
static const int ACL_SUCCESS = 0, ACL_ERROR_NONE = 0,
		 ACL_ERROR_INVALID_PARAM = 100000,
		 ACL_ERROR_UNINITIALIZE = 100001,
		 ACL_ERROR_REPEAT_INITIALIZE = 100002,
		 ACL_ERROR_REPEAT_FINALIZE = 100037,
		 ACL_ERROR_BAD_ALLOC = 200000,
		 ACL_ERROR_FEATURE_UNSUPPORTED = 200006,
		 ACL_ERROR_INTERNAL_ERROR = 500000, ACL_ERROR_FAILURE = 500001;

#define ACL_ERROR_RT_PARAM_INVALID 107000
#define ACL_ERROR_RT_INVALID_DEVICEID 107001
#define ACL_ERROR_RT_CONTEXT_NULL 107002
#define ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID 107006
#define ACL_ERROR_RT_STREAM_SUBSCRIBE 107011
#define ACL_ERROR_RT_THREAD_SUBSCRIBE 107012
#define ACL_ERROR_RT_STREAM_NO_CB_REG 107015
#define ACL_ERROR_RT_INVALID_HANDLE 107017
#define ACL_ERROR_RT_FEATURE_NOT_SUPPORT 207000
#define ACL_ERROR_RT_MEMORY_ALLOCATION 207001
#define ACL_ERROR_RT_INTERNAL_ERROR 507000
#define ACL_ERROR_RT_REPORT_TIMEOUT 507012
#define ACL_ERROR_RT_STREAM_SYNC_TIMEOUT 507046
#define ACL_ERROR_RT_EVENT_SYNC_TIMEOUT 507047
#define ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED 507910
#define ACL_ERROR_HOST_MEMORY_NOT_REGISTERED 507911

typedef enum aclDataType {
	ACL_DT_UNDEFINED = -1,
	ACL_FLOAT = 0,
	ACL_FLOAT16 = 1,
	ACL_INT8 = 2,
	ACL_INT32 = 3,
	ACL_UINT8 = 4,
	ACL_INT16 = 6,
	ACL_UINT16 = 7,
	ACL_UINT32 = 8,
	ACL_INT64 = 9,
	ACL_UINT64 = 10,
	ACL_DOUBLE = 11,
	ACL_BOOL = 12,
	ACL_STRING = 13,
	ACL_COMPLEX64 = 16,
	ACL_COMPLEX128 = 17,
	ACL_BF16 = 27,
	ACL_INT4 = 29,
	ACL_UINT1 = 30,
	ACL_COMPLEX32 = 33,
	ACL_HIFLOAT8 = 34,
	ACL_FLOAT8_E5M2 = 35,
	ACL_FLOAT8_E4M3FN = 36,
	ACL_FLOAT8_E8M0 = 37,
	ACL_FLOAT6_E3M2 = 38,
	ACL_FLOAT6_E2M3 = 39,
	ACL_FLOAT4_E2M1 = 40,
	ACL_FLOAT4_E1M2 = 41
} aclDataType;

typedef enum aclFormat {
	ACL_FORMAT_UNDEFINED = -1,
	ACL_FORMAT_NCHW = 0,
	ACL_FORMAT_NHWC = 1,
	ACL_FORMAT_ND = 2,
	ACL_FORMAT_NC1HWC0 = 3,
	ACL_FORMAT_FRACTAL_Z = 4,
	ACL_FORMAT_NC1HWC0_C04 = 12,
	ACL_FORMAT_HWCN = 16,
	ACL_FORMAT_NDHWC = 27,
	ACL_FORMAT_FRACTAL_NZ = 29,
	ACL_FORMAT_NCDHW = 30,
	ACL_FORMAT_NDC1HWC0 = 32,
	ACL_FRACTAL_Z_3D = 33,
	ACL_FORMAT_NC = 35,
	ACL_FORMAT_NCL = 47,
	ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
	ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
	ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
	ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
	ACL_FORMAT_FRACTAL_NZ_C0_8 = 54
} aclFormat;

/* Return: the bytes of an element, 1 for less than a byte; 0 for strings and other values. */
size_t aclDataTypeSize(aclDataType dataType);

/**
 * aclFloatToFloat16() - convert a number to 16 bits
 * @value: the number
 *
 * Return: the nearest number, of two the even one. Larger numbers, infinity and NaN become
 * the largest number, with their sign.
 */
aclFloat16 aclFloatToFloat16(float value);

/* Convert a number to 32 bits. Infinity and NaN become numbers from 65536 on. */
float aclFloat16ToFloat(aclFloat16 value);

/**
 * aclCreateDataBuffer() - describe memory
 * @data: memory, which stays the caller's
 * @size: bytes
 *
 * The functions below change and read the description, and return
 * ACL_ERROR_INVALID_PARAM, or 0, for NULL.
 *
 * Return: the description; NULL if memory of the process is short.
 */
aclDataBuffer *aclCreateDataBuffer(void *data, size_t size);
aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer);
aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data,
			     size_t size);
void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer);
size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer);

/* The lowest 32 bits of the size. */
uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_BASE_H */
