/* SPDX-License-Identifier: MIT */
/*
 * Allocations of a provider that are parts of an allocation of its pool (a block).
 */
#ifndef ACCMEM_UMF_PARTS_H
#define ACCMEM_UMF_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/**
 * struct umf_parts - the parts of a provider
 * @lock: protects the other members, and all parts
 * @root: tree of the parts, by address (tsearch())
 * @count: parts in it; may be read without the lock
 */
struct umf_parts {
	pthread_mutex_t lock;
	void *root;
	atomic_size_t count;
};

void accmem_umf_parts_create(struct umf_parts *parts);
void accmem_umf_parts_destroy(struct umf_parts *parts);

/**
 * accmem_umf_parts_add() - add an allocation that is a part of a block
 * @parts: the parts
 * @block: the block, no part of which is known
 * @gap: bytes of the block before the allocation
 * @size: bytes of the allocation
 *
 * Return: 0; -ENOMEM.
 */
int accmem_umf_parts_add(struct umf_parts *parts, char *block, size_t gap,
			 size_t size);

/**
 * accmem_umf_parts_split() - divide a live part
 * @parts: the parts
 * @start: its first byte
 * @total: its bytes
 * @first: bytes of the first half, which keeps the address
 *
 * Return: 0; -ENOENT if @start is no first byte of a part; -EINVAL if the part is free or
 * has another size, or if @first leaves nothing of a half; -ENOMEM.
 */
int accmem_umf_parts_split(struct umf_parts *parts, void *start, size_t total,
			   size_t first);

/**
 * accmem_umf_parts_merge() - make one of two live parts that lie side by side
 * @parts: the parts
 * @low: first byte of the first one
 * @high: first byte of the second one
 * @total: bytes of both
 *
 * Return: 0; -EOPNOTSUPP if they are not parts of one block; -EINVAL if one is free, or if
 * @total is not their size.
 */
int accmem_umf_parts_merge(struct umf_parts *parts, void *low, void *high,
			   size_t total);

/**
 * accmem_umf_parts_free() - free a part
 * @parts: the parts
 * @start: its first byte
 * @size: its bytes, or 0
 * @block: out: the block if none of its parts is left, else NULL; unchanged after an
 *	error
 *
 * Return: 0; -ENOENT if @start is no first byte of a part; -EINVAL if the part is free, or
 * if it has another size.
 */
int accmem_umf_parts_free(struct umf_parts *parts, void *start, size_t size,
			  void **block);

#endif /* ACCMEM_UMF_PARTS_H */
