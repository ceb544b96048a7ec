// SPDX-License-Identifier: MIT
/*
 * The device: an open file. Each process opens the device itself. A forked process opens
 * it at its first allocation.
 *
 * The program may close the descriptor, and get the same number for another file. So the
 * file is compared before each use.
 *
 * Locking: the caller holds the lock of the blocks, except for the functions about filters, which
 * change device_fd atomically.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/accmem.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload.h"

#define NOT_OPEN (-1)
#define CLOSED (-2)
#define FILTERED (-3) /* a seccomp filter may forbid the calls of the device */
/* The page tables of larger buffers are filled by faults: much of them may stay unused. */
#define PREFAULT_MAX (32ul << 20)

static atomic_int device_fd = NOT_OPEN;
/* device_fd before the latest call that sets a filter */
static atomic_int filtered_fd = NOT_OPEN;
static struct stat device_file;
/* The process that has opened the device: not its child of vfork(), which shares the memory */
static pid_t device_owner;

bool device_is_file(int fd, const struct stat *file)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_dev == file->st_dev &&
	       st.st_ino == file->st_ino && st.st_rdev == file->st_rdev;
}

/* Programs expect low numbers to be free, or close them. */
int device_move_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_HIGH);
	struct rlimit limit;

	if (high < 0 && !getrlimit(RLIMIT_NOFILE, &limit))
		high = fcntl(fd, F_DUPFD_CLOEXEC, (int)(limit.rlim_cur / 2));
	return high < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : high;
}

static int device_open(void)
{
	struct accmem_info info = { .size = sizeof(info) };
	int fd = open(preload_settings.device, O_RDWR | O_CLOEXEC), high;

	if (fd < 0)
		return CLOSED;
	device_owner = getpid();
	high = device_move_high(fd);
	if (high >= 0) {
		syscall(SYS_close, fd);
		fd = high;
	}
	if (!fstat(fd, &device_file) && !ioctl(fd, ACCMEM_IOC_INFO, &info) &&
	    info.granule == GRANULE)
		return fd;
	syscall(SYS_close, fd);
	return CLOSED;
}

int device_get(void)
{
	int fd = device_fd, opened;

	if (fd == NOT_OPEN) {
		opened = device_open();
		if (atomic_compare_exchange_strong(&device_fd, &fd, opened))
			fd = opened;
		else if (opened >= 0)
			syscall(SYS_close, opened);
	}
	return device_is_file(fd, &device_file) ? fd : -1;
}

int device_filter(void)
{
	int before = device_fd;

	if (before >= 0 && getpid() != device_owner)
		return before;
	if (before >= 0)
		filtered_fd = before;
	return atomic_exchange(&device_fd, FILTERED);
}

void device_unfilter(int before)
{
	int filtered = FILTERED;

	atomic_compare_exchange_strong(&device_fd, &filtered, before);
}

bool device_is_filtered(void)
{
	return device_fd == FILTERED;
}

bool device_is_closed(void)
{
	return device_fd == CLOSED || device_fd == FILTERED;
}

void device_close_inherited(bool shares_files)
{
	int fd = device_fd == FILTERED ? filtered_fd : device_fd;

	/* a file that this child opened would stay open in the parent */
	if (shares_files) {
		device_fd = CLOSED;
		return;
	}
	if (device_is_file(fd, &device_file))
		syscall(SYS_close, fd);
	if (!device_is_closed())
		device_fd = NOT_OPEN;
}

/*
 * A new buffer reads as zero. ALLOC allocates all pages, so a later access does not raise
 * SIGBUS.
 */
char *device_alloc(size_t length, size_t alignment, uint64_t *address)
{
	struct accmem_alloc req = {
		.size = sizeof(req),
		.length = length,
		.alignment = alignment > GRANULE ? alignment : GRANULE,
		.flags = ACCMEM_ALLOC_POPULATE,
	};
	int fd = device_get();
	char *start;

	if (fd < 0 || ioctl(fd, ACCMEM_IOC_ALLOC, &req))
		return NULL;
	*address = req.address;
	start = mmap(NULL, length, PROT_READ | PROT_WRITE,
		     MAP_SHARED | (length <= PREFAULT_MAX ? MAP_POPULATE : 0),
		     fd, (off_t)req.mmap_offset);
	if (start != MAP_FAILED && (uintptr_t)start % alignment == 0)
		return start;
	if (start != MAP_FAILED)
		preload_unmap(start, length);
	device_free(req.address);
	return NULL;
}

void device_free(uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };
	int fd = device_get();

	if (fd >= 0)
		ioctl(fd, ACCMEM_IOC_FREE, &req);
}
