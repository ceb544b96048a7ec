/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * How many words of an allocator's metadata an operation touches. The allocator is
 * compiled with -fsanitize=thread, and count.c takes the place of that library: each
 * load and store calls it.
 */
#ifndef ACCMEM_HOST_COUNT_H
#define ACCMEM_HOST_COUNT_H

#include <linux/types.h>
#include <stddef.h>

/* From now on those of @size bytes at @start count. */
void count_within(const void *start, size_t size);
void count_begin(void);
/* Since count_begin(): words, each once, and loads and stores */
u64 count_words(void);
u64 count_accesses(void);

#endif /* ACCMEM_HOST_COUNT_H */
