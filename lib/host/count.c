// SPDX-License-Identifier: GPL-2.0 OR MIT
/* See count.h. This file is compiled without the sanitizer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "count.h"

static uintptr_t first, end;
static u32 *seen; /* in which operation each word was touched last */
static size_t seen_size;
static u32 operation;
static u64 words, accesses;

void count_within(const void *start, size_t size)
{
	if (seen)
		munmap(seen, seen_size);
	first = (uintptr_t)start;
	end = first + size;
	seen_size = (size / sizeof(u64) + 1) * sizeof(*seen);
	seen = mmap(NULL, seen_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (seen == MAP_FAILED) {
		perror("count");
		exit(2);
	}
	count_begin();
}

void count_begin(void)
{
	operation++;
	words = 0;
	accesses = 0;
}

u64 count_words(void)
{
	return words;
}

u64 count_accesses(void)
{
	return accesses;
}

static void touch(void *address, size_t size)
{
	uintptr_t at = (uintptr_t)address, last = at + size - 1;

	if (at < first || at >= end)
		return;
	for (at = (at - first) / sizeof(u64);
	     at <= (last - first) / sizeof(u64); at++) {
		accesses++;
		words += seen[at] != operation;
		seen[at] = operation;
	}
}

/* What the compiler calls */
#define TOUCH(name, size)                 \
	void __tsan_##name(void *address) \
	{                                 \
		touch(address, size);     \
	}

TOUCH(read1, 1)
TOUCH(read2, 2)
TOUCH(read4, 4)
TOUCH(read8, 8)
TOUCH(read16, 16)
TOUCH(write1, 1)
TOUCH(write2, 2)
TOUCH(write4, 4)
TOUCH(write8, 8)
TOUCH(write16, 16)
TOUCH(unaligned_read2, 2)
TOUCH(unaligned_read4, 4)
TOUCH(unaligned_read8, 8)
TOUCH(unaligned_read16, 16)
TOUCH(unaligned_write2, 2)
TOUCH(unaligned_write4, 4)
TOUCH(unaligned_write8, 8)
TOUCH(unaligned_write16, 16)

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *address, unsigned long size)
{
	touch(address, size);
}

void __tsan_write_range(void *address, unsigned long size)
{
	touch(address, size);
}
