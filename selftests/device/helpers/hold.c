// SPDX-License-Identifier: GPL-2.0
/*
 * Holds on to a device, for the shell tests:
 *
 *   hold open PATH	a context with a buffer
 *   hold two PATH	a context with two buffers
 *   hold mapped PATH	a mapping, the file closed
 *   hold pinned PATH	pages in a pipe, file and mapping gone
 *   hold detached PATH	a freed buffer that is still mapped
 *   hold exported PATH	a dma-buf, file and mapping gone
 *   hold imported PATH	an import; the exporter's file and the dma-buf are closed
 *   hold modes PATH	two buffers of different cache modes
 *   hold used PATH	a mapping of another PCI device that has imported the buffer
 *   hold thread PATH	a context with a buffer, in a process whose first thread has ended
 *   hold pending PATH	a freed buffer that waits for a position of a stream
 *   hold waiting PATH BYTES	an ALLOC that waits for BYTES of memory
 *   hold touch PATH BYTES	allocates and touches; prints how many bytes were
 *			touched before a SIGBUS, and whether there was one
 *   hold populate PATH BYTES	exits with 0, or prints the errno of ALLOC
 *   hold zero PATH BYTES	exits with 0 if all bytes of a buffer are zero, or prints the
 *			offset of the first byte that is not
 *   hold uncached PATH	writes to a write-combining buffer, or prints the errno of ALLOC
 *
 * The first twelve print "held" and stay until their input ends. BYTES is the size of the
 * buffer, 2 MiB if it is left out. Then open prints "lost" if the device has lost the
 * buffer's memory, else "kept".
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "export_util.h"
#include "stream_util.h"

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

/* Free a buffer at a position that the stream does not reach while the file is open. */
static void pend(int fd, const struct accmem_alloc *a)
{
	int stream = stream_create(fd), err;

	if (stream < 0)
		fail("STREAM_CREATE", -stream);
	err = stream_free(fd, a->address, stream, 1);
	if (err)
		fail("FREE", -err);
}

/* Export a buffer, and close the file and the mapping of its context. */
static int leave_export(int fd, const struct accmem_alloc *a, void *p,
			uint64_t bytes)
{
	int dma_buf = export_all(fd, a);

	if (dma_buf < 0)
		fail("EXPORT", -dma_buf);
	munmap(p, bytes);
	close(fd);
	return dma_buf;
}

/* Write to a second buffer, of another cache mode than the first one. */
static void use_uncached(int fd, uint64_t bytes)
{
	struct accmem_alloc a = { .length = bytes,
				  .cache_mode = ACCMEM_CACHE_UC };
	int err = accmem_ioctl_alloc(fd, &a);

	if (err)
		fail("ALLOC", -err);
	memset(accmem_mapped(fd, &a, bytes), 1, bytes);
}

/* Let another device of the bus import and map a dma-buf, which it keeps. */
static void import_by_device(int dma_buf)
{
	int importer = importer_attach(dma_buf, TEST_IMPORTER_PCI), err;

	err = importer < 0 ? importer :
			     importer_map(importer, TEST_IMPORTER_BOTH);
	if (err)
		fail("importer", -err);
	close(dma_buf);
}

/* Import a dma-buf into a new context, and close it. */
static void import(const char *path, int dma_buf)
{
	struct accmem_import_buffer i = { .size = sizeof(i), .fd = dma_buf };
	int fd = accmem_dev_open(path, O_RDWR), err;

	err = fd < 0 ? fd : accmem_ioctl(fd, ACCMEM_IOC_IMPORT, &i);
	if (err)
		fail("IMPORT", -err);
	close(dma_buf);
}

static bool first_thread_has_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && *entry->d_name == '.')
		;
	if (dir)
		closedir(dir);
	return dir && entry;
}

static void *stay_alone(void *unused)
{
	(void)unused;
	while (first_thread_has_files())
		usleep(1000);
	stay();
	exit(0);
}

static void end_first_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, stay_alone, NULL))
		fail("pthread_create", EAGAIN);
	pthread_exit(NULL);
}

static int waiter_fd;

static void *wait_for_memory(void *arg)
{
	struct accmem_alloc a = { .length = *(uint64_t *)arg,
				  .flags = ACCMEM_ALLOC_WAIT };

	accmem_ioctl_alloc(waiter_fd, &a);
	return NULL;
}

/* Start a thread whose ALLOC waits. Return when fdinfo counts the waiting call. */
static void wait_for(int fd, uint64_t bytes)
{
	static uint64_t length;
	pthread_t thread;
	int err;

	length = bytes;
	waiter_fd = fd;
	err = pthread_create(&thread, NULL, wait_for_memory, &length);
	if (err)
		fail("pthread_create", err);
	while (accmem_fdinfo(fd, "waiting") < 1)
		usleep(1000);
}

/* Bring a buffer into the state that @how names. Return false if @how names no state. */
static bool hold(const char *how, const char *path, int fd,
		 const struct accmem_alloc *a, void *p, uint64_t bytes)
{
	struct iovec iov = { .iov_base = p, .iov_len = 65536 };
	struct accmem_alloc second;
	int pipes[2];

	if (!strcmp(how, "mapped")) {
		close(fd);
	} else if (!strcmp(how, "pinned")) {
		if (pipe(pipes) || vmsplice(pipes[1], &iov, 1, 0) != 65536)
			fail("vmsplice", errno);
		munmap(p, bytes);
		close(fd);
	} else if (!strcmp(how, "detached")) {
		accmem_ioctl_free(fd, a->address);
	} else if (!strcmp(how, "exported")) {
		leave_export(fd, a, p, bytes);
	} else if (!strcmp(how, "modes")) {
		use_uncached(fd, bytes);
	} else if (!strcmp(how, "used")) {
		import_by_device(leave_export(fd, a, p, bytes));
	} else if (!strcmp(how, "imported")) {
		import(path, leave_export(fd, a, p, bytes));
	} else if (!strcmp(how, "thread")) {
		munmap(p, bytes);
		end_first_thread();
	} else if (!strcmp(how, "pending")) {
		munmap(p, bytes);
		pend(fd, a);
	} else if (!strcmp(how, "two")) {
		int err = accmem_alloc_bytes(fd, bytes, 0, &second);

		if (err)
			fail("ALLOC", -err);
	} else if (strcmp(how, "open")) {
		return false;
	}
	return true;
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
	uint64_t bytes;
	int fd;
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
	if (!strcmp(argv[1], "zero")) {
		int64_t at = accmem_first_nonzero(map(fd, &a, bytes), bytes);

		if (at >= 0)
			printf("%lld\n", (long long)at);
		return at >= 0;
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
	if (!strcmp(argv[1], "waiting")) {
		wait_for(fd, bytes);
		stay();
		return 0;
	}
	p = map(fd, &a, bytes);
	memset(p, 1, bytes);
	if (!hold(argv[1], argv[2], fd, &a, p, bytes))
		return 2;
	stay();
	if (!strcmp(argv[1], "open"))
		puts(accmem_try_write(p, 1) ? "lost" : "kept");
	return 0;
}
