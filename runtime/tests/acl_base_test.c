// SPDX-License-Identifier: MIT
/* Base types of the ACL front-end: they need no device. */
#include <acl/acl.h>
#include <math.h>
#include <string.h>

#include "test.h"

static void sizes_of_types(void)
{
	CHECK_EQ(aclDataTypeSize(ACL_FLOAT), 4);
	CHECK_EQ(aclDataTypeSize(ACL_FLOAT16), 2);
	CHECK_EQ(aclDataTypeSize(ACL_BF16), 2);
	CHECK_EQ(aclDataTypeSize(ACL_INT64), 8);
	CHECK_EQ(aclDataTypeSize(ACL_BOOL), 1);
	CHECK_EQ(aclDataTypeSize(ACL_COMPLEX128), 16);
	CHECK_EQ(aclDataTypeSize(ACL_INT4), 1);
	CHECK_EQ(aclDataTypeSize(ACL_FLOAT4_E1M2), 1);
	CHECK_EQ(aclDataTypeSize(ACL_STRING), 0);
	CHECK_EQ(aclDataTypeSize(ACL_DT_UNDEFINED), 0);
	CHECK_EQ(aclDataTypeSize((aclDataType)42), 0);
}

/* All 65536 numbers; those of the largest exponent are too large to come back. */
static void every_half_comes_back(void)
{
	unsigned int half, want;
	float value;

	for (half = 0; half <= UINT16_MAX; half++) {
		value = aclFloat16ToFloat(half);
		want = (half & 0x7fff) < 0x7c00 ? half :
						  (half & 0x8000) | 0x7bff;
		CHECK_EQ(aclFloatToFloat16(value), want);
	}
	CHECK(aclFloat16ToFloat(0x3c00) == 1.0f);
	CHECK(aclFloat16ToFloat(0xc000) == -2.0f);
	CHECK(aclFloat16ToFloat(0x0001) == 1.0f / (1 << 24));
	CHECK(aclFloat16ToFloat(0x7bff) == 65504.0f);
	CHECK(aclFloat16ToFloat(0x7c00) == 65536.0f);
	CHECK(aclFloat16ToFloat(0xfc00) == -65536.0f);
	CHECK(aclFloat16ToFloat(0x7e00) == 98304.0f);
	CHECK(signbit(aclFloat16ToFloat(0x8000)));
}

/* The next number above, or below, of 32 bits; @value is above 0. */
static float neighbour(float value, int step)
{
	int32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits += step;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Between each two neighbours, the middle goes to the even one. */
static void a_float_is_rounded_to_the_nearest_half(void)
{
	unsigned int half;
	float low, high, middle;

	for (half = 0; half < 0x7bff; half++) {
		low = aclFloat16ToFloat(half);
		high = aclFloat16ToFloat(half + 1);
		middle = low + (high - low) / 2;
		CHECK_EQ(aclFloatToFloat16(middle), half + (half & 1));
		CHECK_EQ(aclFloatToFloat16(neighbour(middle, -1)), half);
		CHECK_EQ(aclFloatToFloat16(neighbour(middle, 1)), half + 1);
		CHECK_EQ(aclFloatToFloat16(-neighbour(middle, 1)),
			 0x8000 | (half + 1));
	}
	CHECK_EQ(aclFloatToFloat16(65519.0f), 0x7bff);
	CHECK_EQ(aclFloatToFloat16(65520.0f), 0x7bff);
	CHECK_EQ(aclFloatToFloat16(1e30f), 0x7bff);
	CHECK_EQ(aclFloatToFloat16(-INFINITY), 0xfbff);
	CHECK_EQ(aclFloatToFloat16(NAN) & 0x7fff, 0x7bff);
	CHECK_EQ(aclFloatToFloat16(0.1f / (1 << 24)), 0);
	CHECK_EQ(aclFloatToFloat16(-0.0f), 0x8000);
}

static void a_buffer_describes_memory(void)
{
	aclDataBuffer *buffer;
	char a, b;

	buffer = aclCreateDataBuffer(&a, 5);
	CHECK(buffer);
	CHECK(aclGetDataBufferAddr(buffer) == &a);
	CHECK_EQ(aclGetDataBufferSizeV2(buffer), 5);
	CHECK_EQ(aclUpdateDataBuffer(buffer, &b, (1ull << 32) + 7), 0);
	CHECK(aclGetDataBufferAddr(buffer) == &b);
	CHECK_EQ(aclGetDataBufferSizeV2(buffer), (1ull << 32) + 7);
	CHECK_EQ(aclGetDataBufferSize(buffer), 7);
	CHECK_EQ(aclDestroyDataBuffer(buffer), 0);
	CHECK_EQ(aclDestroyDataBuffer(NULL), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclUpdateDataBuffer(NULL, &a, 1), ACL_ERROR_INVALID_PARAM);
	CHECK(!aclGetDataBufferAddr(NULL));
	CHECK_EQ(aclGetDataBufferSize(NULL), 0);
	CHECK_EQ(aclGetDataBufferSizeV2(NULL), 0);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(sizes_of_types),
		ROW(every_half_comes_back),
		ROW(a_float_is_rounded_to_the_nearest_half),
		ROW(a_buffer_describes_memory),
	};

	return test_main(tests, ARRAY_SIZE(tests));
}
