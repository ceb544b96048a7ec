// SPDX-License-Identifier: GPL-2.0
/*
 * Holds on to a device, for the shell tests:
 *
 *   hold open PATH	a context with a buffer
 *   hold mapped PATH	a mapping, the file closed
 *   hold pinned PATH	pages in a pipe, file and mapping gone
 *   hold touch PATH BYTES	allocates and touches; prints how many bytes were
 *			touched before a SIGBUS, and whether there was one
 *   hold populate PATH BYTES	exits with 0, or prints the errno of ALLOC
 *   hold uncached PATH	writes to a write-combining buffer, or prints the errno of ALLOC
 *
 * The first three print "held" and stay until their input ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "accmem_util.h"

#define RW (PROT_READ | PROT_WRITE)

static void fail(const char *what, int err)
{
	fprintf(stderr, "hold: %s: %s\n", what, strerror(err));
	exit(1);
}

static void stay(void)
{
	char byte;

	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

static void *map(int fd, struct accmem_alloc *a, uint64_t bytes)
{
	int err = accmem_alloc_bytes(fd, bytes, 0, a);
	void *p;

	if (err)
		fail("ALLOC", -err);
	p = accmem_mmap(fd, a, bytes, RW);
	if (!p)
		fail("mmap", errno);
	return p;
}

static void touch(int fd, uint64_t bytes)
{
	struct accmem_alloc a;
	char *p = map(fd, &a, bytes);
	volatile uint64_t at = 0;
	int sig = accmem_try_touch(p, &at, bytes, 4096);

	printf("%llu %d\n", (unsigned long long)at, sig);
}

int main(int argc, char **argv)
{
	struct accmem_alloc a;
	struct iovec iov = { .iov_len = 65536 };
	int fd, pipes[2];
	uint64_t bytes;
	void *p;

	if (argc < 3)
		return 2;
	bytes = argc > 3 ? strtoull(argv[3], NULL, 0) : MIB(2);
	fd = accmem_dev_open(argv[2], O_RDWR);
	if (fd < 0)
		fail(argv[2], -fd);
	if (!strcmp(argv[1], "touch")) {
		touch(fd, bytes);
		return 0;
	}
	if (!strcmp(argv[1], "populate")) {
		int err = accmem_alloc_bytes(fd, bytes, ACCMEM_ALLOC_POPULATE,
					     &a);

		printf("%d\n", -err);
		return err != 0;
	}
	if (!strcmp(argv[1], "uncached")) {
		int err;

		a = (struct accmem_alloc){ .length = bytes,
					   .cache_mode = ACCMEM_CACHE_WC };
		err = accmem_ioctl_alloc(fd, &a);
		if (!err)
			memset(accmem_mapped(fd, &a, bytes), 1, bytes);
		printf("%d\n", -err);
		return err != 0;
	}
	p = map(fd, &a, bytes);
	memset(p, 1, bytes);
	if (!strcmp(argv[1], "mapped")) {
		close(fd);
	} else if (!strcmp(argv[1], "pinned")) {
		iov.iov_base = p;
		if (pipe(pipes) || vmsplice(pipes[1], &iov, 1, 0) != 65536)
			fail("vmsplice", errno);
		munmap(p, bytes);
		close(fd);
	} else if (strcmp(argv[1], "open")) {
		return 2;
	}
	stay();
	return 0;
}
