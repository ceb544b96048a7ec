/* SPDX-License-Identifier: MIT */
/* What a test can do to the fake device that it cannot do to a real one. */
#ifndef ACCMEM_RUNTIME_FAKE_DEVICE_H
#define ACCMEM_RUNTIME_FAKE_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define FAKE_DEVICE_PATH "/dev/accmem-fake"

/*
 * The next mapping of a buffer, or the next move of one into the window,
 * fails with ENOMEM, the former after its target was unmapped as the kernel
 * may do.
 */
extern bool fake_fail_mmap, fake_fail_mremap;

/* Bytes of memory; to be set before the first allocation. */
extern uint64_t fake_capacity;

/* Bytes of it that have failed; to be set before the first allocation. */
extern uint64_t fake_retired;

/* There is another one, /dev/accmem1. */
extern bool fake_second;

/* It has host and shared memory; to be set before the first context. */
extern bool fake_kinds;

/*
 * fake_no_exports: the device has no EXPORT and IMPORT. fake_revoked: they and PRESSURE fail
 * as after a reset that has lost the contents.
 */
extern bool fake_no_exports, fake_revoked;

/*
 * The device has gone: nobody opens it, every call of it but FREE gives ENODEV, and its streams
 * have ended.
 */
extern bool fake_gone;

/* An allocation that is to wait does, until its deadline; otherwise it fails. */
extern bool fake_waits;

/* It cannot wait then: as many do as may, and it fails with EAGAIN. */
extern bool fake_full;

/* So many threads cannot begin, with EAGAIN. */
extern int fake_fail_threads;

/* Is called when somebody opens a device, as it is held up. */
extern void (*fake_open_busy)(void);

/* Is called when somebody asks the dynamic loader for a name, as it is held up. */
extern void (*fake_loader_busy)(void);

/* Another context waits for so much from now on; for 0, none does any more. */
void fake_wait_for(uint64_t bytes);

/* Calls of the device so far. */
uint64_t fake_calls(void);

/* The linker's names for the C library's calls and for what replaces them. */
int __real_access(const char *path, int mode);
int __real_open64(const char *path, int flags, ...);
int __wrap_access(const char *path, int mode);
int __wrap_open64(const char *path, int flags, ...);
int __real_close(int fd);
int __wrap_close(int fd);
int __real_ioctl(int fd, unsigned long command, void *argument);
int __wrap_ioctl(int fd, unsigned long command, ...);
void *__real_mmap64(void *start, size_t length, int prot, int flags, int fd,
		    off_t offset);
void *__wrap_mmap64(void *start, size_t length, int prot, int flags, int fd,
		    off_t offset);
void *__real_mremap(void *start, size_t length, size_t new_length, int flags,
		    ...);
void *__wrap_mremap(void *start, size_t length, size_t new_length, int flags,
		    void *target);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *argument);
int __real_dladdr(const void *address, void *info);
int __wrap_dladdr(const void *address, void *info);

#endif /* ACCMEM_RUNTIME_FAKE_DEVICE_H */
