// SPDX-License-Identifier: MIT
/*
 * The device: an open file, a window of host addresses over its device addresses,
 * and buffers that are mapped in the window.
 *
 *	pointer = window + (device address - address_base)
 *
 * The window is as long as the device's addresses, reserved and inaccessible but
 * for the buffers. A process that was forked opens the device for itself, and has
 * a window of its own beside those of its ancestors, whose blocks it may have
 * inherited.
 *
 * The descriptor has a high number. A program may close it nevertheless, and open
 * another file there: it is compared before each use, and when it is not the
 * device any more, the mappings that there are go on, and there are no new ones.
 *
 * Locking: the heap's lock, held by the caller; device_window_has() needs none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/accmem.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload.h"

#define RESERVED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
#define GIB (1ull << 30)
#define FD_HIGHEST 65536u
/* page tables of larger ones are left to the faults: much of them may stay idle */
#define PREFAULT_MAX (32ull << 20)

struct window {
	char *start;
	uint64_t length;
};

static struct window windows[WINDOWS_MAX];
static atomic_uint nr_windows;
static struct window *window; /* the one of this process */
static struct accmem_info info; /* its addresses are those of all carveouts */
static uint64_t reserve_max; /* an eighth of what the smallest one has */
static struct stat identity; /* of the open file */
static int device_fd = -1;

bool device_window_has(const void *pointer)
{
	unsigned int i, count;

	count = atomic_load_explicit(&nr_windows, memory_order_acquire);
	for (i = 0; i < count; i++)
		if ((uintptr_t)pointer - (uintptr_t)windows[i].start <
		    windows[i].length)
			return true;
	return false;
}

/* Is it what device_open() has opened? */
bool device_is_usable(void)
{
	struct stat st;

	return device_fd >= 0 && !fstat(device_fd, &st) &&
	       st.st_dev == identity.st_dev && st.st_ino == identity.st_ino &&
	       st.st_rdev == identity.st_rdev;
}

/* Congruent to the device addresses modulo their largest page. */
static bool device_reserve_window(void)
{
	uint64_t length = info.address_span, excess;
	unsigned int count = atomic_load(&nr_windows);
	char *start;

	if (count == WINDOWS_MAX)
		return false;
	start = mmap(NULL, length + GIB, PROT_NONE, RESERVED, -1, 0);
	if (start == MAP_FAILED)
		return false;
	excess = -(uintptr_t)start % GIB;
	if (excess)
		munmap(start, excess);
	start += excess;
	munmap(start + length, GIB - excess);
	window = &windows[count];
	*window = (struct window){ start, length };
	atomic_store_explicit(&nr_windows, count + 1, memory_order_release);
	return true;
}

/*
 * Out of the way of programs that count on low numbers, or close those that they
 * did not open up to some number.
 */
static int device_raise(int fd)
{
	struct rlimit limit;
	int high = -1;
	rlim_t number;

	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		number = limit.rlim_cur < FD_HIGHEST ? limit.rlim_cur :
						       FD_HIGHEST;
		if (number > 16)
			high = fcntl(fd, F_DUPFD_CLOEXEC, (int)number - 16);
	}
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static bool device_call(unsigned long command, void *argument)
{
	int status;

	do {
		status = ioctl(device_fd, command, argument);
	} while (status < 0 && errno == EINTR);
	return status == 0;
}

static bool device_ask(uint32_t carveout, struct accmem_info *to)
{
	*to = (struct accmem_info){ .size = sizeof(*to), .carveout = carveout };
	return device_call(ACCMEM_IOC_INFO, to);
}

static bool device_describe(void)
{
	struct accmem_info one;
	uint64_t start, end;
	uint32_t i;

	if (!device_ask(0, &info))
		return false;
	start = info.address_base;
	end = start + info.address_span;
	reserve_max = info.address_span / 8;
	for (i = 1; i < info.nr_carveouts; i++) {
		if (!device_ask(i, &one))
			return false;
		if (one.address_base < start)
			start = one.address_base;
		if (one.address_base + one.address_span > end)
			end = one.address_base + one.address_span;
		if (one.address_span / 8 < reserve_max)
			reserve_max = one.address_span / 8;
	}
	info.address_base = start;
	info.address_span = end - start;
	return info.granule == GRANULE;
}

bool device_open(void)
{
	int fd = open(preload_settings.device, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	device_fd = device_raise(fd);
	if (!fstat(device_fd, &identity) && device_describe() &&
	    device_reserve_window())
		return true;
	close(device_fd);
	device_fd = -1;
	return false;
}

void device_leave(void)
{
	if (device_is_usable())
		close(device_fd);
	device_fd = -1;
	window = NULL;
}

void device_unmap(char *start, size_t length)
{
	/* what cannot be reserved stays mapped: nobody else may be put there */
	if (mmap(start, length, PROT_NONE, RESERVED | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		madvise(start, length, MADV_DONTNEED);
}

/*
 * When it fails, the addresses may be nobody's for a moment. If somebody has taken
 * them by then, the buffer is kept, so that they are never granted again: -ESTALE.
 */
static int device_map(char *start, size_t length, uint64_t offset)
{
	int flags = MAP_SHARED | MAP_FIXED;
	void *p;

	if (length <= PREFAULT_MAX)
		flags |= MAP_POPULATE;
	p = mmap(start, length, PROT_READ | PROT_WRITE, flags, device_fd,
		 (off_t)offset);
	if (p == start)
		return 0;
	p = mmap(start, length, PROT_NONE, RESERVED | MAP_FIXED_NOREPLACE, -1,
		 0);
	if (p == start)
		return -ENOMEM;
	if (p != MAP_FAILED)
		munmap(p, length);
	return -ESTALE;
}

static void device_free_address(uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	device_call(ACCMEM_IOC_FREE, &req);
}

/*
 * A new buffer for @block, whose length says how large. It reads as zero. Memory
 * is there when the call returns, for a program takes no SIGBUS for an answer.
 */
int device_alloc(struct block *block, size_t alignment, size_t reserve)
{
	struct accmem_alloc req = {
		.size = sizeof(req),
		.length = block->length,
		.alignment = alignment,
		.flags = ACCMEM_ALLOC_POPULATE,
	};
	int error;

	if (info.max_alignment && alignment > info.max_alignment)
		return -EINVAL;
	if (info.features & ACCMEM_FEATURE_REALLOC) {
		req.flags |= ACCMEM_ALLOC_RESIZABLE;
		if (reserve > block->length && reserve <= reserve_max)
			req.reserve = reserve;
	}
	if (!device_call(ACCMEM_IOC_ALLOC, &req))
		return -errno;
	block->address = req.address;
	block->start = window->start + (req.address - info.address_base);
	error = device_map(block->start, block->length, req.mmap_offset);
	if (error && error != -ESTALE)
		device_free_address(req.address);
	return error;
}

void device_free(struct block *block)
{
	device_unmap(block->start, block->length);
	if (device_is_usable())
		device_free_address(block->address);
}

/* A larger one gets a mapping of what is new; mappings of a device do not merge. */
int device_resize(struct block *block, size_t length)
{
	struct accmem_realloc req = {
		.size = sizeof(req),
		.flags = ACCMEM_REALLOC_IN_PLACE,
		.address = block->address,
		.length = length,
	};

	if (!(info.features & ACCMEM_FEATURE_REALLOC) || !device_is_usable())
		return -EOPNOTSUPP;
	if (!device_call(ACCMEM_IOC_REALLOC, &req))
		return -errno;
	if (length < block->length) {
		device_unmap(block->start + length, block->length - length);
		block->length = length;
		return 0;
	}
	if (device_map(block->start + block->length, length - block->length,
		       req.mmap_offset + block->length)) {
		req = (struct accmem_realloc){ .size = sizeof(req),
					       .flags = ACCMEM_REALLOC_IN_PLACE,
					       .address = block->address,
					       .length = block->length };
		device_call(ACCMEM_IOC_REALLOC, &req);
		return -ENOMEM;
	}
	block->length = length;
	return 0;
}
