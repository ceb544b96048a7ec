/* SPDX-License-Identifier: MIT */
/*
 * Splitting one large allocation into segments by the rules of aclrtMalloc() (A12): a
 * segment of len bytes takes ALIGN_UP(len, 32) + 32 bytes, and starts at a multiple of
 * 64.
 */
#ifndef ACCMEM_ACL_DIVIDE_H
#define ACCMEM_ACL_DIVIDE_H

#include <acl/acl.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * struct accmem_acl_segment - a segment of an allocation
 * @length: requested bytes, at least 1
 * @start: first byte
 */
struct accmem_acl_segment {
	size_t length;
	void *start;
};

/**
 * accmem_acl_segment_size() - get the bytes that a segment takes
 * @length: requested bytes
 *
 * Return: ALIGN_UP(length, 32) + 32; 0 if @length is 0 or the sum overflows.
 */
size_t accmem_acl_segment_size(size_t length);

/**
 * accmem_acl_divide() - place segments one after the other
 * @base: first byte of the allocation; NULL to compute only @needed, for an allocation
 *	that starts at a multiple of 64, as aclrtMalloc() returns it
 * @size: bytes of the allocation; ignored if @base is NULL
 * @segments: in: lengths; out: starts, in the same order, if @base is not NULL
 * @count: number of segments
 * @needed: out, or NULL: bytes that all segments take from @base on, even if they do not
 *	fit
 *
 * Return: ACL_SUCCESS; ACL_ERROR_INVALID_PARAM if a length is 0, @segments is NULL, or
 * the lengths overflow; ACL_ERROR_RT_MEMORY_ALLOCATION if the segments do not fit, and
 * then no start is written.
 */
aclError accmem_acl_divide(void *base, size_t size,
			   struct accmem_acl_segment *segments, size_t count,
			   size_t *needed);

/**
 * accmem_acl_check() - check that segments obey the rules
 * @base: first byte of the allocation
 * @size: bytes of the allocation
 * @segments: the segments, in any order
 * @count: number of segments
 * @bad: out, or NULL: index of the first segment that breaks a rule; of two that overlap,
 *	the segment that starts later
 *
 * Return: ACL_SUCCESS; ACL_ERROR_RT_PARAM_INVALID if a start is no multiple of 64, a
 * segment is not inside the allocation, or two segments overlap; ACL_ERROR_INVALID_PARAM
 * if a length is 0; ACL_ERROR_BAD_ALLOC.
 */
aclError accmem_acl_check(void *base, size_t size,
			  const struct accmem_acl_segment *segments,
			  size_t count, size_t *bad);

#ifdef __cplusplus
}
#endif

#endif /* ACCMEM_ACL_DIVIDE_H */
