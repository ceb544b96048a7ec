/* SPDX-License-Identifier: MIT */
/* Declarations that the files of the preload library share. Nothing here is exported. */
#ifndef ACCMEM_PRELOAD_H
#define ACCMEM_PRELOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define GRANULE 4096ul
#define BLOCKS_MAX 4096u
/* Descriptors from here on: programs expect low numbers to be free, or close them. */
#define FD_HIGH 1000

/* Values from the environment; constant after the constructor */
struct settings {
	const char *device;
	size_t threshold; /* bytes: smaller blocks are not for the device */
	size_t limit; /* bytes of this process on the device */
};

struct stats {
	atomic_size_t bytes; /* bytes that the program has on the device */
	atomic_size_t blocks; /* blocks that the program has on the device */
	atomic_size_t peak; /* maximum of @bytes */
	atomic_size_t allocations; /* number of blocks allocated on the device */
	atomic_size_t fallbacks; /* large blocks that the ordinary heap served */
	atomic_size_t copied; /* bytes copied for forks */
	atomic_size_t returned; /* bytes that became ordinary memory */
};

/**
 * struct block - an allocation
 * @start: first byte; NULL if the entry is free, BLOCK_BUSY if a thread allocates or
 *	frees the block
 * @length: bytes, a multiple of GRANULE
 * @address: device address of the buffer
 * @is_on_device: false in the child of a fork, where all of the block is ordinary memory
 * @ordinary: for each page, whether the page is ordinary memory; NULL if none is
 * @copy: copy for the child, while a fork is under way
 */
struct block {
	char *_Atomic start;
	size_t length;
	uint64_t address;
	bool is_on_device;
	bool *ordinary;
	char *copy;
};

#define BLOCK_BUSY ((char *)1)

extern struct settings preload_settings;
extern struct stats preload_stats;

/* --- preload.c --- */
/* Print to the file descriptor; allocate nothing. */
void preload_print(int fd, const char *format, ...);
/* Move a mapping to @target, as mremap(). False: not moved. */
bool preload_move(void *from, size_t length, void *target);

/* --- device.c --- */
/* Return the open device, or -1. The first call in a process opens the device. */
int device_get(void);
/* Stop using the device. Mapped blocks stay valid. */
void device_close(void);
bool device_is_closed(void);
/* In the child of a fork: close the parent's file. */
void device_close_inherited(void);
/* Map a new buffer. NULL: the ordinary heap has to serve the request. */
char *device_alloc(size_t length, size_t alignment, uint64_t *address);
void device_free(uint64_t address);
/* Does the descriptor still stand for this file? The program may have closed it. */
bool device_is_file(int fd, const struct stat *file);

/* --- heap.c --- */
/*
 * Lock the blocks against other threads; @exclusive also against allocations and frees.
 * Signals are masked until heap_unlock(). errno is left alone.
 */
void heap_lock(bool exclusive);
void heap_unlock(void);
/* In the child of a fork, instead of heap_unlock() */
void heap_unlock_child(void);
/* Return the block that starts at @pointer, or NULL. */
struct block *heap_find(const void *pointer);
/* NULL: the ordinary heap has to serve the request. errno is left alone. */
void *heap_alloc(size_t size, size_t alignment);
void heap_free(struct block *block);
/* Return the next block on the device after @block, or NULL. @block is NULL at first. */
struct block *heap_next(struct block *block);
/*
 * Find the next run of pages on the device in bytes [*at, end) of the block: set *at to
 * its start, and return its end. If there is none, *at and the return value are @end.
 */
size_t heap_run(const struct block *block, size_t *at, size_t end);
/* Is a page of the range on the device? */
bool heap_overlaps(const void *start, size_t length);
/* Replace pages of the range that are on the device by ordinary memory with their bytes. */
bool heap_make_ordinary(const void *start, size_t length);

/* --- fork.c --- */
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);
/* Run @call, which forks, on a stack that is not on the device. */
long fork_call(long (*call)(const long *arguments), const long *arguments);
/* Is there no memory for the copies? */
bool fork_has_failed(void);

#endif /* ACCMEM_PRELOAD_H */
