/* SPDX-License-Identifier: MIT */
/* Sizes: the classes of small blocks, and the bytes that an allocation may use. */
#ifndef ACCMEM_RUNTIME_POOL_SIZE_H
#define ACCMEM_RUNTIME_POOL_SIZE_H

#include "pool/types.h"

/* The class of the smallest block that has @length bytes, of POOL_SMALL_MAX at most. */
uint32_t accmem_pool_size_class(uint64_t length);
uint32_t accmem_pool_class_size(uint32_t size_class);

/* The bytes that an allocation of @length bytes may use: of its block, or its pages. */
uint64_t accmem_pool_size_usable(uint64_t length);

#endif /* ACCMEM_RUNTIME_POOL_SIZE_H */
