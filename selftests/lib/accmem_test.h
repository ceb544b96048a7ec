/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every test program includes: the headers of the system that many tests use, the
 * harness, the helpers, and calls that look at the contents of a buffer.
 */
#ifndef ACCMEM_TEST_H
#define ACCMEM_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "accmem_util.h"

#define RW (PROT_READ | PROT_WRITE)

/* --- the contents of a buffer, which may share its first and its last page ---- */

/* maps @length bytes of the buffer at @address */
static inline char *map_at(int fd, uint64_t address, uint64_t length)
{
	struct accmem_query q;
	char *p;

	if (accmem_ioctl_query(fd, address, &q))
		return NULL;
	p = accmem_mmap_at(NULL, fd, q.mmap_offset,
			   ALIGN_UP(length + address % 4096, 4096), RW,
			   MAP_SHARED);
	return p ? p + address % 4096 : NULL;
}

static inline void unmap(char *p, uint64_t length)
{
	uintptr_t start = (uintptr_t)p / 4096 * 4096;

	munmap((void *)start, ALIGN_UP((uintptr_t)p + length - start, 4096));
}

static inline int fill_at(int fd, uint64_t address, uint64_t length,
			  uint64_t seed)
{
	char *p = map_at(fd, address, length);

	if (!p)
		return -errno;
	accmem_fill(p, length, seed);
	unmap(p, length);
	return 0;
}

/* as fill_at(), but written by the device: no mapping is made */
static inline int device_fill_at(int fd, uint64_t address, uint64_t length,
				 uint64_t seed)
{
	char *p = malloc(length);
	struct accmem_access x = {
		.address = address,
		.length = length,
		.op = ACCMEM_ACCESS_WRITE,
		.data = (uintptr_t)p,
	};
	int ret;

	if (!p)
		return -ENOMEM;
	accmem_fill(p, length, seed);
	ret = accmem_ioctl_access(fd, &x);
	free(p);
	return ret;
}

/* -1 if the first @kept bytes have the pattern and the others are zero */
static inline int64_t check_at(int fd, uint64_t address, uint64_t kept,
			       uint64_t length, uint64_t seed)
{
	char *p = map_at(fd, address, length);
	int64_t at;

	if (!p)
		return -2;
	at = accmem_check(p, kept, seed);
	if (at == -1 && length > kept)
		at = accmem_first_nonzero(p + kept, length - kept);
	unmap(p, length);
	return at;
}

#endif /* ACCMEM_TEST_H */
