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
#define FD_HIGH 1000 /* descriptors from here on, if the limit allows it */

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
 * @is_marked: the block is to be freed when the lock is free
 * @address: device address of the buffer
 * @is_on_device: false in the child of a fork, where all of the block is ordinary memory
 * @ordinary: for each page, whether the page is ordinary memory; NULL if none is
 * @copy: copy for the child, while a fork is under way
 */
struct block {
	char *_Atomic start;
	atomic_size_t length;
	atomic_bool is_marked;
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
/* munmap() of the next library */
void preload_unmap(void *start, size_t length);

/* --- device.c --- */
/* Return the open device, or -1. The first call in a process opens the device. */
int device_get(void);
/*
 * Stop using the device, before a call that sets a seccomp filter. Mapped blocks stay valid.
 * Returns what device_unfilter() wants if the call fails.
 */
int device_filter(void);
void device_unfilter(int before);
bool device_is_filtered(void);
/* Is the device not used any more, or could it not be opened? */
bool device_is_closed(void);
/* In the child of a fork: close the parent's file, but not in the table that it shares. */
void device_close_inherited(bool shares_files);
/* Return a duplicate of the descriptor, if possible with a high number; or -1. */
int device_move_high(int fd);
/* Map a new buffer. NULL: the ordinary heap has to serve the request. */
char *device_alloc(size_t length, size_t alignment, uint64_t *address);
void device_free(uint64_t address);
/* Does the descriptor still stand for this file? The program may have closed it. */
bool device_is_file(int fd, const struct stat *file);

/* --- heap.c --- */
/*
 * Before a fork: lock the blocks. No block is allocated, freed or made ordinary until one of
 * the unlock functions runs; which one depends on the process. errno is left alone.
 */
void heap_lock_for_fork(void);
void heap_unlock_parent(void);
void heap_unlock_child(void);
/* Return the block that starts at @pointer, or NULL. */
struct block *heap_find(const void *pointer);
/* NULL: the ordinary heap has to serve the request. errno is left alone. */
void *heap_alloc(size_t size, size_t alignment);
/* The same, where the caller makes another request if this one fails */
void *heap_try(size_t size, size_t alignment);
void heap_free(struct block *block);
/* Return the next block on the device after @block, or NULL. @block is NULL at first. */
struct block *heap_next(struct block *block);
/*
 * Find the next run of pages on the device in bytes [*at, end) of the block: set *at to
 * its start, and return its end. If there is none, *at and the return value are @end.
 */
size_t heap_run(const struct block *block, size_t *at, size_t end);
/*
 * Return the length of the first part of the range that is on the device as a whole, or that is
 * not on the device. @start is a multiple of GRANULE.
 */
size_t heap_part(const char *start, size_t length, bool *is_on_device);

/* What becomes of pages that are ordinary memory from now on */
enum heap_change {
	HEAP_KEEP, /* they keep their bytes */
	HEAP_DROP, /* they are zero */
};
/* Pages of the range that are on the device become ordinary. False: no memory; sets errno. */
bool heap_make_ordinary(const void *start, size_t length,
			enum heap_change change);

/* --- fork.c --- */
void fork_prepare(void);
void fork_parent(void);
void fork_child(void);
/* fork_child() after a clone() with CLONE_FILES */
void fork_child_sharing_files(void);
/* Run @call, which forks, on a stack that is not on the device. */
long fork_call(long (*call)(const long *arguments), const long *arguments);
/* Is there no memory for the copies? */
bool fork_has_failed(void);

#endif /* ACCMEM_PRELOAD_H */
