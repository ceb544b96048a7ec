// SPDX-License-Identifier: MIT
/* Data types of the ACL front-end: their sizes, 16-bit floating point, and data buffers. */
#include <stdlib.h>
#include <string.h>

#include "acl/error.h"
#include "core/util.h"

/* Smallest float that is not rounded to a finite 16-bit number, and the largest of these. */
#define HALF_OVERFLOW 65520.0f
#define HALF_MAX 0x7bffu
/* Smallest normal 16-bit number, and the distance of those below it. */
#define HALF_NORMAL (1.0f / (1 << 14))
#define HALF_STEP (1.0f / (1 << 24))
/* Exponents have other biases, and mantissas other lengths. */
#define BIAS 112u
#define SHIFT 13u
/* A sum with this number is rounded to an integer. */
#define ROUND 8388608.0f

/**
 * struct aclDataBuffer - a pointer and a size
 * @data: memory of the program
 * @size: bytes
 */
struct aclDataBuffer {
	void *data;
	size_t size;
};

static uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Infinity and NaN are not preserved: the exponent means a number. */
float aclFloat16ToFloat(aclFloat16 value)
{
	const uint32_t sign = (value & 0x8000u) << 16, rest = value & 0x7fffu;

	if (rest < 0x400) /* not normal */
		return float_of(sign | bits_of(rest * HALF_STEP));
	return float_of(sign | ((rest << SHIFT) + (BIAS << 23)));
}

/* Rounds to the nearest number, of two to the even one, and what is too large down. */
aclFloat16 aclFloatToFloat16(float value)
{
	uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;

	bits &= 0x7fffffff;
	value = float_of(bits);
	if (!(value < HALF_OVERFLOW)) /* or NaN */
		return sign | HALF_MAX;
	if (value < HALF_NORMAL)
		return sign | (uint32_t)(value / HALF_STEP + ROUND - ROUND);
	bits += (1u << (SHIFT - 1)) - 1 + (bits >> SHIFT & 1);
	return sign | ((bits >> SHIFT) - (BIAS << 10));
}

/* Bytes of an element: 1 for less than a byte, 0 without a size. */
static const unsigned char type_sizes[] = {
	[ACL_FLOAT] = 4,       [ACL_FLOAT16] = 2,     [ACL_INT8] = 1,
	[ACL_INT32] = 4,       [ACL_UINT8] = 1,	      [ACL_INT16] = 2,
	[ACL_UINT16] = 2,      [ACL_UINT32] = 4,      [ACL_INT64] = 8,
	[ACL_UINT64] = 8,      [ACL_DOUBLE] = 8,      [ACL_BOOL] = 1,
	[ACL_COMPLEX64] = 8,   [ACL_COMPLEX128] = 16, [ACL_BF16] = 2,
	[ACL_INT4] = 1,	       [ACL_UINT1] = 1,	      [ACL_COMPLEX32] = 4,
	[ACL_HIFLOAT8] = 1,    [ACL_FLOAT8_E5M2] = 1, [ACL_FLOAT8_E4M3FN] = 1,
	[ACL_FLOAT8_E8M0] = 1, [ACL_FLOAT6_E3M2] = 1, [ACL_FLOAT6_E2M3] = 1,
	[ACL_FLOAT4_E2M1] = 1, [ACL_FLOAT4_E1M2] = 1,
};

size_t aclDataTypeSize(aclDataType dataType)
{
	return (size_t)dataType < ARRAY_SIZE(type_sizes) ?
		       type_sizes[dataType] :
		       0;
}

aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
{
	aclDataBuffer *buffer = malloc(sizeof(*buffer));

	if (!buffer) {
		accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
		return NULL;
	}
	*buffer = (aclDataBuffer){ data, size };
	return buffer;
}

static aclError buffer_check(const aclDataBuffer *buffer)
{
	return buffer ? ACL_SUCCESS :
			accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
					"dataBuffer is NULL");
}

aclError aclDestroyDataBuffer(const aclDataBuffer *dataBuffer)
{
	aclError error = buffer_check(dataBuffer);

	free((void *)dataBuffer);
	return error;
}

aclError aclUpdateDataBuffer(aclDataBuffer *dataBuffer, void *data, size_t size)
{
	aclError error = buffer_check(dataBuffer);

	if (!error)
		*dataBuffer = (aclDataBuffer){ data, size };
	return error;
}

void *aclGetDataBufferAddr(const aclDataBuffer *dataBuffer)
{
	return buffer_check(dataBuffer) ? NULL : dataBuffer->data;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer *dataBuffer)
{
	return aclGetDataBufferSizeV2(dataBuffer);
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer *dataBuffer)
{
	return buffer_check(dataBuffer) ? 0 : dataBuffer->size;
}
