// SPDX-License-Identifier: MIT
/* Sizes: the size classes of blocks, and the usable bytes of an allocation. */
#include "pool/size.h"

static const uint16_t sizes[POOL_NR_CLASSES] = {
	64,  128, 192, 256,  320,  384,	 448,  512,
	640, 768, 896, 1024, 1280, 1536, 1792, 2048,
};

/* Size classes, indexed by the length in units of 64 bytes, rounded up. */
static const uint8_t classes[POOL_SMALL_MAX / POOL_UNIT + 1] = {
	0,  0,	1,  2,	3,  4,	5,  6,	7,  8,	8,  9,	9,  10, 10, 11, 11,
	12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15,
};

uint32_t accmem_pool_size_class(uint64_t length)
{
	return classes[(length + POOL_UNIT - 1) / POOL_UNIT];
}

uint32_t accmem_pool_class_size(uint32_t size_class)
{
	return sizes[size_class];
}

uint64_t accmem_pool_size_usable(uint64_t length)
{
	if (length <= POOL_SMALL_MAX)
		return accmem_pool_class_size(accmem_pool_size_class(length));
	return (length + POOL_PAGE - 1) & -POOL_PAGE;
}
