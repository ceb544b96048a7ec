/* SPDX-License-Identifier: MIT */
/* What the files of the preload library share. Nothing here is exported. */
#ifndef ACCMEM_PRELOAD_H
#define ACCMEM_PRELOAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define GRANULE 4096ull
#define BLOCKS_MAX 16384u /* each is one or two mappings of the process */
#define WINDOWS_MAX 4u /* a process and the forks that it came from */
#define NO_BLOCK UINT32_MAX

/**
 * enum block_state - what is at the addresses of a block
 * @BLOCK_UNUSED: the descriptor describes nothing
 * @BLOCK_LIVE: a buffer of the device, which the program has
 * @BLOCK_CACHED: a buffer of the device, which the program has freed
 * @BLOCK_PRIVATE: ordinary memory, which the program has: a copy of a buffer
 */
enum block_state {
	BLOCK_UNUSED,
	BLOCK_LIVE,
	BLOCK_CACHED,
	BLOCK_PRIVATE,
};

/**
 * struct block - an allocation
 * @start: its first byte
 * @length: bytes, a multiple of the granule
 * @address: device address, of a buffer
 * @copy: while a fork is under way, a copy of the bytes, or NULL
 * @next: in its hash chain, or in the list of unused descriptors
 * @older: in the list of cached blocks
 * @newer: in the list of cached blocks
 * @state: enum block_state
 */
struct block {
	char *start;
	size_t length;
	uint64_t address;
	char *copy;
	uint32_t next;
	uint32_t older;
	uint32_t newer;
	enum block_state state;
};

/* What the environment asks for; constant once the constructor has run. */
struct settings {
	char device[64];
	char stats[256]; /* empty, "1" for the standard error, or a file */
	size_t threshold; /* bytes, of malloc() and its like */
	size_t aligned; /* bytes, of the calls that take an alignment */
	size_t cache; /* bytes of freed blocks that are kept */
	size_t limit; /* bytes on the device */
};

struct stats {
	size_t bytes; /* that the program has on the device */
	size_t peak;
	uint64_t allocations; /* served from the device */
	uint64_t reused; /* of them from the cache */
	uint64_t resized; /* in place */
	uint64_t fallbacks; /* meant for the device, served by the heap */
	uint64_t copied; /* bytes, for forks */
	uint64_t evacuations;
};

extern struct settings preload_settings;

/* --- settings.c --- */
void settings_read(void);
/* to the file descriptor; allocates nothing */
void settings_say(int fd, const char *format, ...);

/* --- device.c: the open file and the windows, under the heap's lock --- */

/* the first use of the device by this process; whether there is one */
bool device_open(void);
/* the child of a fork: leave the parent's context alone */
void device_leave(void);
/* whether the program has left the descriptor alone */
bool device_is_usable(void);
int device_alloc(struct block *block, size_t alignment, size_t reserve);
void device_free(struct block *block);
int device_resize(struct block *block, size_t length);
/* makes the addresses inaccessible */
void device_unmap(char *start, size_t length);
/* lock-free: might it be a block's? */
bool device_window_has(const void *pointer);

/* --- table.c: the descriptors, under the heap's lock --- */
struct block *table_new(void);
void table_delete(struct block *block);
void table_insert(struct block *block);
void table_remove(struct block *block);
struct block *table_find(const void *pointer);
/* the next one in use after @block, from NULL on; NULL at the end */
struct block *table_next(struct block *block);
void cache_push(struct block *block);
void cache_remove(struct block *block);
struct block *cache_oldest(void);
struct block *cache_find(size_t length, size_t alignment);
extern size_t cache_bytes;

/* --- heap.c --- */
extern struct stats heap_stats;
void heap_start(void);
void heap_lock(void);
void heap_unlock(void);
bool heap_wants(size_t size);
bool heap_wants_aligned(size_t size);
/* NULL: it does not fit, and errno is left alone */
void *heap_alloc(size_t size, size_t alignment, bool zero, bool grows);
void heap_free(void *pointer);
/* the bytes at @pointer; 0 if it is no block */
size_t heap_usable(const void *pointer);
/* whether the block has @size bytes now, at the same place */
bool heap_resize(void *pointer, size_t size);
bool heap_trim(void);
/* under the lock */
void heap_close(void);
void heap_drop_cache(void);
void heap_became_private(struct block *block);
/* the child of a fork: a device of its own when it needs one */
void heap_restart(void);

/* --- fork.c --- */
void fork_start(void);
/* a negative errno: why the fork that this thread has just made failed */
int fork_error(void);

/* --- stop.c: every other thread stands still --- */
void stop_start(void);
int stop_signal(void);
bool stop_is_alone(void);
/* 0, or -EAGAIN: a thread did not come to a halt, and all go on */
int stop_world(void);
void stop_end(void);

#endif /* ACCMEM_PRELOAD_H */
