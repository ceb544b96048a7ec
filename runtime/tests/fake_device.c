// SPDX-License-Identifier: MIT
/*
 * A device made of a memfd, for testing the library's own work (the window,
 * the table of mappings, locks, fork) on any machine and under sanitizers.
 * It stands in for the C library's open(), ioctl(), mmap() and mremap() by
 * the linker's --wrap. It is no model of the driver: the driver's behaviour
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
#include <unistd.h>

#include "fake_device.h"

#define GRANULE 4096ull
#define UNIT 64ull
#define CAPACITY (256ull << 20)
#define ADDRESS_BASE 0x10000000000ull
#define MAX_BUFFERS 1024
#define MAX_FILES 64

struct buffer {
	uint64_t offset;
	uint64_t length;
	uint64_t footprint;
};

/* One open file, shared by fork: identified by the inode of its memfd. */
struct file {
	ino_t inode;
	unsigned int count;
	struct buffer buffers[MAX_BUFFERS]; /* by offset */
};

struct device {
	pthread_mutex_t lock;
	unsigned int nr_files;
	struct file files[MAX_FILES];
};

static struct device *device;
bool fake_fail_mmap, fake_fail_mremap;

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

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

static struct file *file_of(int fd)
{
	ino_t inode = inode_of(fd);
	unsigned int i;

	for (i = 0; i < device->nr_files; i++)
		if (inode && device->files[i].inode == inode)
			return &device->files[i];
	return NULL;
}

int __wrap_open64(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, FAKE_DEVICE_PATH))
		return __real_open64(path, flags);
	fd = memfd_create("accmem-fake", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, CAPACITY))
		abort();
	pthread_mutex_lock(&device->lock);
	if (device->nr_files == MAX_FILES)
		abort();
	device->files[device->nr_files].inode = inode_of(fd);
	device->files[device->nr_files++].count = 0;
	pthread_mutex_unlock(&device->lock);
	return fd;
}

static uint64_t free_bytes(const struct file *file)
{
	uint64_t bytes = CAPACITY;
	unsigned int i;

	for (i = 0; i < file->count; i++)
		bytes -= file->buffers[i].footprint;
	return bytes;
}

/* The index of the buffer at or after @offset. */
static unsigned int at_or_after(const struct file *file, uint64_t offset)
{
	unsigned int i = 0;

	while (i < file->count &&
	       file->buffers[i].offset + file->buffers[i].footprint <= offset)
		i++;
	return i;
}

static int do_info(struct file *file, struct accmem_info *info)
{
	if (info->carveout)
		return -EINVAL;
	info->nr_carveouts = 1;
	info->address_base = ADDRESS_BASE;
	info->address_span = CAPACITY;
	info->capacity = CAPACITY;
	info->free_bytes = free_bytes(file);
	info->granule = GRANULE;
	return 0;
}

/* Small ones share granules, as those of the driver do. */
static uint64_t place_from(uint64_t offset, uint64_t size)
{
	uint64_t unit = size < GRANULE ? UNIT : GRANULE;

	offset = (offset + unit - 1) & -unit;
	if (size < GRANULE && offset % GRANULE + size > GRANULE)
		offset = (offset + GRANULE - 1) & -GRANULE;
	return offset;
}

/* First fit. */
static int do_alloc(struct file *file, struct accmem_alloc *req)
{
	uint64_t unit = req->length <= GRANULE / 2 ? UNIT : GRANULE;
	uint64_t size = (req->length + unit - 1) & -unit, offset = 0;
	unsigned int i;

	if (!req->length)
		return -EINVAL;
	req->free_bytes = 0;
	req->largest_run = 0;
	for (i = 0; i < file->count; i++) {
		if (file->buffers[i].offset >= offset + size)
			break;
		offset = place_from(file->buffers[i].offset +
					    file->buffers[i].footprint,
				    size);
	}
	if (offset > CAPACITY || size > CAPACITY - offset ||
	    file->count == MAX_BUFFERS) {
		req->free_bytes = free_bytes(file);
		req->largest_run = req->free_bytes;
		return -ENOMEM;
	}
	memmove(&file->buffers[i + 1], &file->buffers[i],
		(file->count++ - i) * sizeof(file->buffers[0]));
	file->buffers[i] = (struct buffer){ offset, req->length, size };
	req->address = ADDRESS_BASE + offset;
	req->mmap_offset = offset & -GRANULE;
	req->usable = req->length;
	req->footprint = size;
	return 0;
}

static int do_free(int fd, struct file *file, const struct accmem_free *req)
{
	uint64_t offset = req->address - ADDRESS_BASE;
	unsigned int i = at_or_after(file, offset);

	if (i == file->count || file->buffers[i].offset > offset)
		return -ENOENT;
	if (file->buffers[i].offset != offset)
		return -EINVAL;
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
		      file->buffers[i].footprint))
		abort();
	memmove(&file->buffers[i], &file->buffers[i + 1],
		(--file->count - i) * sizeof(file->buffers[0]));
	return 0;
}

static void copy(int fd, uint64_t to, uint64_t from, uint64_t size)
{
	char *bytes = malloc(size);

	if (!bytes || pread(fd, bytes, size, from) != (ssize_t)size ||
	    pwrite(fd, bytes, size, to) != (ssize_t)size)
		abort();
	free(bytes);
}

static void describe(const struct buffer *buffer, struct accmem_realloc *req)
{
	req->address = ADDRESS_BASE + buffer->offset;
	req->usable = buffer->length;
	req->footprint = buffer->footprint;
	req->mmap_offset = buffer->offset & -GRANULE;
}

/* Smaller in place, larger elsewhere, unless it is the last one. */
static int do_realloc(int fd, struct file *file, struct accmem_realloc *req)
{
	struct accmem_alloc new = { .length = req->length };
	struct accmem_free old = { .address = req->address };
	uint64_t offset = req->address - ADDRESS_BASE, unit;
	unsigned int i = at_or_after(file, offset);
	struct buffer *buffer = &file->buffers[i];
	int error;

	if (i == file->count || buffer->offset != offset)
		return -ENOENT;
	unit = buffer->footprint < GRANULE ? UNIT : GRANULE;
	if (req->length <= buffer->footprint ||
	    (i + 1 == file->count && unit == GRANULE &&
	     req->length <= CAPACITY - offset)) {
		buffer->length = req->length;
		buffer->footprint = (req->length + unit - 1) & -unit;
		describe(buffer, req);
		return 0;
	}
	error = do_alloc(file, &new);
	if (error)
		return error;
	i = at_or_after(file, offset);
	copy(fd, new.address - ADDRESS_BASE, offset, file->buffers[i].length);
	req->copied = file->buffers[i].length;
	error = do_free(fd, file, &old);
	if (error)
		abort();
	i = at_or_after(file, new.address - ADDRESS_BASE);
	describe(&file->buffers[i], req);
	return 0;
}

static int do_query(struct file *file, struct accmem_query *query)
{
	uint64_t offset = query->address - ADDRESS_BASE;
	unsigned int i = at_or_after(file, offset);

	if (i == file->count || file->buffers[i].offset > offset)
		return -ENOENT;
	query->mmap_offset = file->buffers[i].offset & -GRANULE;
	query->base = ADDRESS_BASE + file->buffers[i].offset;
	query->offset = query->address - query->base;
	query->length = file->buffers[i].length;
	query->usable = query->length;
	query->footprint = file->buffers[i].footprint;
	return 0;
}

static int entry_alloc(struct file *file, struct accmem_batch_alloc *entry)
{
	struct accmem_alloc req = { .length = entry->length };
	int error = do_alloc(file, &req);

	entry->result = error;
	entry->address = req.address;
	entry->usable = req.usable;
	entry->footprint = req.footprint;
	entry->mmap_offset = req.mmap_offset;
	return error;
}

static int entry_free(int fd, struct file *file,
		      struct accmem_batch_free *entry)
{
	const struct accmem_free req = { .address = entry->address };

	entry->result = do_free(fd, file, &req);
	return entry->result;
}

/* Atomic is what fails before anything is done. */
static int batch_is_bad(struct file *file, struct accmem_batch *batch)
{
	struct accmem_batch_alloc *a = (void *)(uintptr_t)batch->entries;
	struct accmem_batch_free *f = (void *)(uintptr_t)batch->entries;
	struct accmem_query query;
	unsigned int i;

	for (i = 0; i < batch->count; i++, batch->done++) {
		if (batch->op == ACCMEM_BATCH_ALLOC && !a[i].length)
			return -EINVAL;
		query.address = f[i].address;
		if (batch->op == ACCMEM_BATCH_FREE && do_query(file, &query))
			return -ENOENT;
	}
	batch->done = 0;
	return 0;
}

static int do_batch(int fd, struct file *file, struct accmem_batch *batch)
{
	struct accmem_batch_alloc *a = (void *)(uintptr_t)batch->entries;
	struct accmem_batch_free *f = (void *)(uintptr_t)batch->entries;
	int error;

	if (batch->count > ACCMEM_BATCH_MAX)
		return -EINVAL;
	batch->done = 0;
	if (batch->flags & ACCMEM_BATCH_ATOMIC) {
		error = batch_is_bad(file, batch);
		if (error)
			return error;
	}
	for (; batch->done < batch->count; batch->done++) {
		if (batch->op == ACCMEM_BATCH_ALLOC)
			entry_alloc(file, &a[batch->done]);
		else
			entry_free(fd, file, &f[batch->done]);
	}
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

int __wrap_ioctl(int fd, unsigned long command, ...)
{
	struct file *file;
	void *argument;
	va_list args;
	int error = -ENOTTY;

	va_start(args, command);
	argument = va_arg(args, void *);
	va_end(args);

	pthread_mutex_lock(&device->lock);
	file = file_of(fd);
	if (!file) {
		pthread_mutex_unlock(&device->lock);
		return __real_ioctl(fd, command, argument);
	}
	if (command == ACCMEM_IOC_INFO)
		error = do_info(file, argument);
	else if (command == ACCMEM_IOC_ALLOC)
		error = do_alloc(file, argument);
	else if (command == ACCMEM_IOC_FREE)
		error = do_free(fd, file, argument);
	else if (command == ACCMEM_IOC_REALLOC)
		error = do_realloc(fd, file, argument);
	else if (command == ACCMEM_IOC_QUERY)
		error = do_query(file, argument);
	else if (command == ACCMEM_IOC_BATCH)
		error = do_batch(fd, file, argument);
	else if (command == ACCMEM_IOC_TMEM_CLUSTER)
		error = do_cluster(argument);
	pthread_mutex_unlock(&device->lock);

	errno = -error;
	return error ? -1 : 0;
}

void *__wrap_mmap64(void *start, size_t length, int prot, int flags, int fd,
		    off_t offset)
{
	if (!fake_fail_mmap || fd < 0)
		return __real_mmap64(start, length, prot, flags, fd, offset);
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
