// SPDX-License-Identifier: MIT
/*
 * A device made of a memfd, for testing the library's own work (the window,
 * the table of mappings, locks, fork) on any machine and under sanitizers.
 * It stands in for the C library's open(), close(), ioctl(), mmap() and
 * mremap() by the linker's --wrap. It is no model of the driver: the driver's behaviour
 * is tested on the driver.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/accmem.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fake_device.h"
#include "fake_internal.h"

#define MAX_DESCRIPTOR 64

struct device {
	pthread_mutex_t lock;
	unsigned int nr_files;
	unsigned int nr_opened;
	struct fake_file files[MAX_FILES];
	unsigned int nr_streams;
	struct fake_stream streams[MAX_STREAMS];
	struct fake_exports exports;
	uint64_t wanted;
	uint64_t calls;
};

static struct device *device;
bool fake_fail_mmap, fake_fail_mremap, fake_gone, fake_second, fake_waits,
	fake_full;
int fake_fail_threads;
void (*fake_loader_busy)(void);
void (*fake_open_busy)(void);

/* Before main(), so that every process of the test shares it. */
__attribute__((constructor)) static void create(void)
{
	pthread_mutexattr_t attr;

	device = __real_mmap64(NULL, sizeof(*device), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (device == MAP_FAILED)
		abort();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&device->lock, &attr);
}

/*
 * By statx(), since stream_has_moved() looks at all descriptors, whatever threads they belong
 * to: a sanitizer takes fstat() for a use of a descriptor that another thread makes or closes.
 */
static ino_t inode_of(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, STATX_INO, &st) ? 0 : st.stx_ino;
}

static struct fake_file *file_of(int fd)
{
	ino_t inode = fake_is_export(fd) ? 0 : inode_of(fd);
	unsigned int i;

	for (i = 0; i < device->nr_files; i++)
		if (inode && device->files[i].inode == inode)
			return &device->files[i];
	return NULL;
}

static bool is_device(const char *path)
{
	return !strcmp(path, FAKE_DEVICE_PATH) ||
	       (fake_second && !strcmp(path, "/dev/accmem1"));
}

/* In place of the oldest, which has been closed long ago; with the lock held. */
static void new_file(ino_t inode)
{
	struct fake_file *file =
		&device->files[device->nr_opened++ % MAX_FILES];

	file->inode = inode;
	file->count = 0;
	if (device->nr_files < MAX_FILES)
		device->nr_files++;
}

int __wrap_access(const char *path, int mode)
{
	return is_device(path) ? 0 : __real_access(path, mode);
}

int __wrap_open64(const char *path, int flags, ...)
{
	int fd;

	if (!is_device(path))
		return __real_open64(path, flags);
	if (fake_open_busy)
		fake_open_busy();
	if (fake_gone) {
		errno = ENODEV;
		return -1;
	}
	fd = memfd_create("accmem-fake", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, SPAN))
		abort();
	pthread_mutex_lock(&device->lock);
	new_file(inode_of(fd));
	pthread_mutex_unlock(&device->lock);
	return fd;
}

/* With the lock held, since calls with the lock look at all descriptors. */
int __wrap_close(int fd)
{
	int ret, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&device->lock);
	ret = __real_close(fd);
	pthread_mutex_unlock(&device->lock);
	pthread_setcancelstate(state, NULL);
	return ret;
}

/* Streams are files, too; they are known by their inodes. */
static struct fake_stream *stream_of(int fd)
{
	ino_t inode = inode_of(fd);
	unsigned int i;

	for (i = 0; i < device->nr_streams; i++)
		if (inode && device->streams[i].inode == inode)
			return &device->streams[i];
	return NULL;
}

static int do_stream_create(const struct fake_file *file,
			    struct accmem_stream_create *req)
{
	if (device->nr_streams == MAX_STREAMS)
		abort();
	req->fd = memfd_create("accmem-fake-stream", MFD_CLOEXEC);
	if (req->fd < 0)
		return -errno;
	req->id = ++device->nr_streams;
	device->streams[req->id - 1].inode = inode_of(req->fd);
	device->streams[req->id - 1].file = file;
	device->streams[req->id - 1].reached = 0;
	return 0;
}

static int do_stream(struct fake_stream *stream, unsigned long command,
		     void *argument)
{
	const struct accmem_stream_signal *signal = argument;
	struct accmem_stream_query *query = argument;

	if (command == ACCMEM_IOC_STREAM_QUERY) {
		query->reached = stream->reached;
		query->state = fake_gone ? ACCMEM_STREAM_ENDED : 0;
		query->id = stream - device->streams + 1;
		return 0;
	}
	if (command != ACCMEM_IOC_STREAM_SIGNAL)
		return -ENOTTY;
	if (fake_gone)
		return -ECANCELED;
	if (signal->position <= stream->reached)
		return -ERANGE;
	stream->reached = signal->position;
	return 0;
}

/* The memory of all contexts is that of one file each: those of this process. */
static void stream_has_moved(const struct fake_stream *stream)
{
	struct fake_file *file;
	int fd;

	for (fd = 0; fd < MAX_DESCRIPTOR; fd++) {
		file = file_of(fd);
		if (file)
			fake_reached(fd, file, stream);
	}
}

static int do_free(int fd, struct fake_file *file,
		   const struct accmem_free *req)
{
	const struct fake_stream *stream = NULL;

	if (req->flags & ACCMEM_FREE_STREAM) {
		stream = stream_of(req->fd);
		if (!stream)
			return inode_of(req->fd) ? -EINVAL : -EBADF;
		if (stream->file != file)
			return -EACCES;
	}
	return fake_free(fd, file, req, stream);
}

static int shrink_eventfd = -1;

void fake_wait_for(uint64_t bytes)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&device->lock);
	device->wanted = bytes;
	pthread_mutex_unlock(&device->lock);
	if (bytes && shrink_eventfd >= 0 &&
	    write(shrink_eventfd, &one, sizeof(one)) != sizeof(one))
		abort();
}

uint64_t fake_calls(void)
{
	uint64_t calls;

	pthread_mutex_lock(&device->lock);
	calls = device->calls;
	pthread_mutex_unlock(&device->lock);
	return calls;
}

static int do_shrink(struct accmem_pressure *req)
{
	if (fake_revoked)
		return -ECONNRESET;
	if (req->flags & ACCMEM_PRESSURE_REGISTER)
		shrink_eventfd = req->fd;
	if (req->flags & ACCMEM_PRESSURE_UNREGISTER)
		shrink_eventfd = -1;
	req->waiting = device->wanted != 0;
	req->shortfall = device->wanted;
	return 0;
}

/* CTAs are files, and nothing can be done with them. SM 1 is the last. */
static int do_cluster(const struct accmem_tmem_cluster *req)
{
	struct accmem_tmem_member *members =
		(struct accmem_tmem_member *)(uintptr_t)req->members;
	unsigned int i;

	if (!req->nr_members || req->nr_members > ACCMEM_TMEM_CLUSTER_MAX)
		abort(); /* the library looks at that */
	for (i = 0; i < req->nr_members; i++)
		if (members[i].sm > 1)
			return -ENXIO;
	for (i = 0; i < req->nr_members; i++) {
		if (members[i].rank != i || members[i].reserved ||
		    (members[i].window_base && !members[i].window_length))
			return -EINVAL;
		members[i].fd = memfd_create("accmem-fake-cta", MFD_CLOEXEC);
	}
	return 0;
}

static int do_share(int fd, struct fake_file *file, unsigned long command,
		    void *argument)
{
	if (fake_no_exports)
		return -ENOTTY;
	return command == ACCMEM_IOC_EXPORT ?
		       fake_export(fd, file, &device->exports, argument) :
		       fake_import(file, &device->exports, argument);
}

static int do_call(int fd, struct fake_file *file, unsigned long command,
		   void *argument)
{
	switch (command) {
	case ACCMEM_IOC_INFO:
		return fake_info(file, argument);
	case ACCMEM_IOC_ALLOC:
		return fake_alloc(file, argument);
	case ACCMEM_IOC_FREE:
		return do_free(fd, file, argument);
	case ACCMEM_IOC_REALLOC:
		return fake_realloc(fd, file, argument);
	case ACCMEM_IOC_QUERY:
		return fake_query(file, argument);
	case ACCMEM_IOC_ACCESS:
		return fake_access(fd, file, &device->exports, argument);
	case ACCMEM_IOC_EXPORT:
	case ACCMEM_IOC_IMPORT:
		return do_share(fd, file, command, argument);
	case ACCMEM_IOC_PREFETCH:
	case ACCMEM_IOC_ADVISE:
		return 0; /* there is nothing to move */
	case ACCMEM_IOC_PRESSURE:
		return do_shrink(argument);
	case ACCMEM_IOC_STREAM_CREATE:
		return do_stream_create(file, argument);
	case ACCMEM_IOC_TMEM_CLUSTER:
		return do_cluster(argument);
	default:
		return -ENOTTY;
	}
}

/* -ENOTTY: it is no file of the device. */
static int call(int fd, unsigned long command, void *argument)
{
	struct fake_file *file = file_of(fd);
	struct fake_stream *stream = file ? NULL : stream_of(fd);
	int error;

	if (!file && !stream)
		return -ENOTTY;
	device->calls++;
	if (fake_gone && file && command != ACCMEM_IOC_FREE)
		return -ENODEV;
	if (file)
		return do_call(fd, file, command, argument);
	error = do_stream(stream, command, argument);
	if (!error && command == ACCMEM_IOC_STREAM_SIGNAL)
		stream_has_moved(stream);
	return error;
}

static bool is_to_wait(unsigned long command, const void *argument)
{
	const struct accmem_alloc *req = argument;

	return fake_waits && command == ACCMEM_IOC_ALLOC &&
	       req->flags & ACCMEM_ALLOC_WAIT;
}

/* 1: what there is not yet may be there a moment later. */
static int wait_for_more(const struct accmem_alloc *req)
{
	struct timespec now;

	if (fake_full)
		return -EAGAIN;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (req->deadline_ns &&
	    now.tv_sec * 1000000000ull + now.tv_nsec >= req->deadline_ns)
		return -ETIMEDOUT;
	usleep(1000);
	return 1;
}

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	void *argument;
	va_list args;
	int error;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);

	do {
		pthread_mutex_lock(&device->lock);
		error = call(fd, command, argument);
		pthread_mutex_unlock(&device->lock);
		if (error == -ENOMEM && is_to_wait(command, argument))
			error = wait_for_more(argument);
	} while (error > 0);
	if (error == -ENOTTY)
		return __real_ioctl(fd, command, argument);

	errno = -error;
	return error ? -1 : 0;
}

static void find_memory(int *fd, uint64_t *offset)
{
	pthread_mutex_lock(&device->lock);
	fake_redirect(file_of(*fd), &device->exports, fd, offset);
	pthread_mutex_unlock(&device->lock);
}

void *__wrap_mmap64(void *start, size_t length, int prot, int flags, int fd,
		    off_t offset)
{
	uint64_t at = offset;

	if (!fake_fail_mmap || fd < 0) {
		if (fd >= 0)
			find_memory(&fd, &at);
		return __real_mmap64(start, length, prot, flags, fd, at);
	}
	fake_fail_mmap = false;
	if (flags & MAP_FIXED)
		munmap(start, length);
	errno = ENOMEM;
	return MAP_FAILED;
}

void *__wrap_mremap(void *start, size_t length, size_t new_length, int flags,
		    void *target)
{
	if (!fake_fail_mremap)
		return __real_mremap(start, length, new_length, flags, target);
	fake_fail_mremap = false;
	munmap(target, new_length);
	errno = ENOMEM;
	return MAP_FAILED;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*run)(void *), void *argument)
{
	bool fails = fake_fail_threads;

	if (fails)
		fake_fail_threads--;
	return fails ? EAGAIN :
		       __real_pthread_create(thread, attr, run, argument);
}

int __wrap_dladdr(const void *address, void *info)
{
	if (fake_loader_busy)
		fake_loader_busy();
	return __real_dladdr(address, info);
}
