/* SPDX-License-Identifier: MIT */
/* Contexts: open devices, with the mappings of their buffers. */
#ifndef ACCMEM_RUNTIME_CORE_CONTEXT_H
#define ACCMEM_RUNTIME_CORE_CONTEXT_H

#include <accmem.h>
#include <pthread.h>
#include <stdbool.h>

/**
 * struct accmem_context - an open device, see accmem.h
 * @fd: file descriptor of the device
 * @address_base: lowest device address of all carveouts
 * @address_span: bytes of device addresses from @address_base to the end of the last
 *	carveout
 * @window: host address that stands for @address_base, or NULL
 * @window_size: bytes of host addresses reserved from @window on
 * @lock: protects @mappings and the host addresses inside the window; held over an unmap
 *	and the FREE after it
 * @mappings: tsearch() tree of struct mapping, disjoint ranges
 * @reserved: bytes of addresses that resizable allocations of pools reserve; atomic
 * @inherited: this process is a child of fork(), and its parent opened the context. The driver
 *	notifies a context of memory pressure once, and that is the parent's
 * @next: next context of the process, under the registry's lock
 *
 * @fd, @window and @window_size do not change between open and close.
 */
struct accmem_context {
	int fd;
	uint64_t address_base;
	uint64_t address_span;
	unsigned char *window;
	size_t window_size;
	pthread_mutex_t lock;
	void *mappings;
	uint64_t reserved;
	bool inherited;
	struct accmem_context *next;
};

/* The path of a device: @path, or the usual device if @path is NULL. */
const char *accmem_device_path(const char *path);

/*
 * Register the fork handlers of contexts, once. A file whose locks are held over calls of
 * a context registers its own fork handlers afterwards. 0 or a negative errno value.
 */
int accmem_watch_fork(void);

#endif /* ACCMEM_RUNTIME_CORE_CONTEXT_H */
