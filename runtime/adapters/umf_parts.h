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
