/* SPDX-License-Identifier: MIT */
/*
 * Dividing one large allocation by the rules of aclrtMalloc (A12): a segment of len
 * bytes has m = ALIGN_UP(len, 32) + 32 bytes, and starts at a multiple of 64.
 */
#ifndef ACCMEM_ACL_DIVIDE_H
#define ACCMEM_ACL_DIVIDE_H

#include <acl/acl.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct accmem_acl_segment - a piece of an allocation
 * @length: bytes that are wanted, at least 1
 * @start: its first byte
 */
struct accmem_acl_segment {
	size_t length;
	void *start;
};

/**
 * accmem_acl_segment_size() - bytes that a segment takes
 * @length: bytes that are wanted
 *
 * Return: ALIGN_UP(length, 32) + 32; 0 for 0 and where that is too much.
 */
size_t accmem_acl_segment_size(size_t length);

/**
 * accmem_acl_divide() - place segments one after the other
 * @base: first byte of the allocation, or NULL to be told in @needed alone what one
 *	that starts at a multiple of 64 needs, as those of aclrtMalloc do
 * @size: its bytes; of no meaning where @base is NULL
 * @segments: in: lengths; out: starts, in the same order, where @base is not NULL
 * @count: how many
 * @needed: out, or NULL: bytes from @base on that they take together, however many
 *	there are
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM for a length of 0, for @segments that is
 * NULL, and for lengths that are too much for any size; ACL_ERROR_RT_MEMORY_ALLOCATION
 * where they do not fit, and no start is written.
 */
aclError accmem_acl_divide(void *base, size_t size,
			   struct accmem_acl_segment *segments, size_t count,
			   size_t *needed);

/**
 * accmem_acl_check() - do segments keep the rules?
 * @base: first byte of the allocation
 * @size: its bytes
 * @segments: the segments, in any order
 * @count: how many
 * @bad: out, or NULL: index of the first that does not; where two overlap it is the one
 *	that starts later which does not
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_PARAM_INVALID for a start that is no multiple of
 * 64, a segment that is not all in the allocation, or that overlaps another;
 * ACL_ERROR_INVALID_PARAM for a length of 0; ACL_ERROR_BAD_ALLOC.
 */
aclError accmem_acl_check(void *base, size_t size,
			  const struct accmem_acl_segment *segments,
			  size_t count, size_t *bad);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_DIVIDE_H */
