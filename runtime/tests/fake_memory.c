// SPDX-License-Identifier: MIT
/*
 * The memory of the fake device: buffers by first fit, in a span of addresses that
 * is larger than the memory, with the rounding and the pages that are asked for.
 * With fake_kinds, there is as much host memory, in the same span. What the fake device
 * does not do (a choice of the address or the carveout, cache modes) it refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_device.h"
#include "fake_internal.h"

#define FLAGS                                                                 \
	(ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 | ACCMEM_ALLOC_POPULATE | \
	 ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_STREAM |                      \
	 ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_WAIT)

uint64_t fake_capacity = 256ull << 20, fake_retired;
bool fake_kinds;

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) & -unit;
}

/* Free bytes of the device, or of the host. Shared memory takes both. */
static uint64_t free_bytes(const struct fake_file *file, bool host)
{
	uint32_t other = host ? ACCMEM_KIND_DEVICE : ACCMEM_KIND_HOST;
	uint64_t bytes = fake_capacity - (host ? 0 : fake_retired);
	unsigned int i;

	for (i = 0; i < file->count; i++)
		if (file->buffers[i].kind != other)
			bytes -= file->buffers[i].footprint;
	return bytes;
}

/* Free bytes for a buffer of a kind */
static uint64_t free_for(const struct fake_file *file, uint32_t kind)
{
	uint64_t device = free_bytes(file, false),
		 host = free_bytes(file, true);

	if (kind == ACCMEM_KIND_SHARED)
		return device < host ? device : host;
	return kind == ACCMEM_KIND_HOST ? host : device;
}

/* The index of the buffer at or after @offset. */
static unsigned int at_or_after(const struct fake_file *file, uint64_t offset)
{
	unsigned int low = 0, high = file->count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (file->buffers[middle].offset +
			    file->buffers[middle].extent <=
		    offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct fake_buffer *fake_buffer_at(struct fake_file *file, uint64_t offset)
{
	unsigned int i = at_or_after(file, offset);
	struct fake_buffer *buffer = &file->buffers[i];

	if (i == file->count || buffer->offset > offset || buffer->stream)
		return NULL;
	return buffer;
}

int fake_info(struct fake_file *file, struct accmem_info *info)
{
	bool host = info->flags & ACCMEM_INFO_HOST;
	struct timespec now;

	if (info->carveout)
		return -EINVAL;
	if (host && !fake_kinds)
		return -EOPNOTSUPP;
	clock_gettime(CLOCK_MONOTONIC, &now);
	info->now_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	info->nr_carveouts = 1;
	info->address_base = ADDRESS_BASE;
	info->address_span = SPAN;
	info->capacity = fake_capacity;
	info->free_bytes = free_bytes(file, host);
	info->largest_run = info->free_bytes;
	info->retired_bytes = host ? 0 : fake_retired;
	info->context_bytes =
		fake_capacity - info->free_bytes - info->retired_bytes;
	info->max_alignment = MAX_ALIGNMENT;
	info->page_sizes = GRANULE | HUGE_PAGE;
	info->granule = GRANULE;
	if (fake_kinds)
		info->features = ACCMEM_FEATURE_HOST | ACCMEM_FEATURE_SHARED;
	if (!fake_no_exports)
		info->features |= ACCMEM_FEATURE_EXPORT | ACCMEM_FEATURE_IMPORT;
	info->translation = ACCMEM_TRANSLATION_MAPPED;
	return 0;
}

static uint64_t page_size(const struct fake_buffer *b)
{
	if (b->page_policy == ACCMEM_PAGE_HUGE_ONLY ||
	    (b->page_policy == ACCMEM_PAGE_HUGE_FIRST && b->usable > 1 << 20))
		return HUGE_PAGE;
	return GRANULE;
}

static uint64_t usable_of(uint64_t length, uint32_t flags)
{
	if (flags & ACCMEM_ALLOC_ROUND32)
		length = round_up(length, 32);
	return flags & ACCMEM_ALLOC_TAIL32 ? length + 32 : length;
}

/* What a request comes to: see lib/layout/layout.c for the real one. */
static int layout(const struct accmem_alloc *req, struct fake_buffer *b)
{
	uint64_t unit = GRANULE;

	*b = (struct fake_buffer){ .length = req->length,
				   .usable = req->length,
				   .alignment = req->alignment,
				   .flags = req->flags,
				   .page_policy = req->page_policy,
				   .kind = req->kind };
	if (!req->length || req->alignment & (req->alignment - 1) ||
	    req->alignment > MAX_ALIGNMENT || req->reserve > SPAN)
		return -EINVAL;
	if (req->length > UINT64_MAX / 2)
		return -EOVERFLOW;
	if (req->page_policy == ACCMEM_PAGE_HUGE1G_ONLY || req->cache_mode ||
	    req->flags & ~FLAGS || req->carveout || (req->kind && !fake_kinds))
		return -EOPNOTSUPP;
	b->usable = usable_of(req->length, req->flags);
	if (req->page_policy == ACCMEM_PAGE_HUGE_ONLY)
		unit = HUGE_PAGE;
	else if (b->usable <= GRANULE / 2 && b->alignment <= UNIT &&
		 !req->reserve)
		unit = UNIT;
	b->footprint = round_up(b->usable, unit);
	b->extent = b->footprint > req->reserve ?
			    b->footprint :
			    round_up(req->reserve, GRANULE);
	if (b->alignment < page_size(b) && unit != UNIT)
		b->alignment = page_size(b);
	if (b->alignment < unit)
		b->alignment = unit;
	return 0;
}

/* Small ones share granules, as those of the driver do. */
static uint64_t place_from(uint64_t offset, const struct fake_buffer *b)
{
	offset = round_up(offset, b->alignment);
	if (b->footprint < GRANULE && offset % GRANULE + b->footprint > GRANULE)
		offset = round_up(offset, GRANULE);
	return offset;
}

int fake_place(struct fake_file *file, struct fake_buffer *b)
{
	uint64_t offset = 0;
	unsigned int i;

	for (i = 0; i < file->count; i++) {
		if (file->buffers[i].offset >= offset + b->extent)
			break;
		offset = place_from(file->buffers[i].offset +
					    file->buffers[i].extent,
				    b);
	}
	if (offset > SPAN || b->extent > SPAN - offset ||
	    file->count == MAX_BUFFERS)
		return -ENOMEM;
	b->offset = offset;
	memmove(&file->buffers[i + 1], &file->buffers[i],
		(file->count++ - i) * sizeof(file->buffers[0]));
	file->buffers[i] = *b;
	return 0;
}

int fake_alloc(struct fake_file *file, struct accmem_alloc *req)
{
	uint64_t left = free_for(file, req->kind);
	struct fake_buffer b;
	int error = layout(req, &b);

	req->free_bytes = 0;
	req->largest_run = 0;
	if (error)
		return error;
	if (b.footprint > left || fake_place(file, &b)) {
		req->free_bytes = left;
		req->largest_run = left;
		return -ENOMEM;
	}
	req->address = ADDRESS_BASE + b.offset;
	req->mmap_offset = b.offset & -GRANULE;
	req->usable = b.usable;
	req->footprint = b.footprint;
	req->page_size = page_size(&b);
	req->nr_runs = 1;
	req->position = 0;
	return 0;
}

static void punch(int fd, uint64_t offset, uint64_t length)
{
	if (length && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				offset, length))
		abort();
}

static void discard(int fd, struct fake_file *file, struct fake_buffer *buffer)
{
	unsigned int i = buffer - file->buffers;

	punch(fd, buffer->offset, buffer->footprint);
	memmove(buffer, buffer + 1,
		(--file->count - i) * sizeof(file->buffers[0]));
}

int fake_free(int fd, struct fake_file *file, const struct accmem_free *req,
	      const struct fake_stream *stream)
{
	uint64_t offset = req->address - ADDRESS_BASE;
	struct fake_buffer *buffer = fake_buffer_at(file, offset);

	if (!buffer)
		return -ENOENT;
	if (buffer->offset != offset)
		return -EINVAL;
	if (buffer->exported) {
		buffer->stream = HELD;
		return 0;
	}
	if (stream && stream->reached < req->position) {
		buffer->stream = stream->inode;
		buffer->position = req->position;
		return 0;
	}
	discard(fd, file, buffer);
	return 0;
}

void fake_reached(int fd, struct fake_file *file,
		  const struct fake_stream *stream)
{
	unsigned int i = 0;

	while (i < file->count) {
		if (file->buffers[i].stream == stream->inode &&
		    file->buffers[i].position <= stream->reached)
			discard(fd, file, &file->buffers[i]);
		else
			i++;
	}
}

static void copy(int fd, uint64_t to, uint64_t from, uint64_t size)
{
	char *bytes = malloc(size);

	if (!bytes || pread(fd, bytes, size, from) != (ssize_t)size ||
	    pwrite(fd, bytes, size, to) != (ssize_t)size)
		abort();
	free(bytes);
}

static void describe(const struct fake_buffer *buffer,
		     struct accmem_realloc *req)
{
	req->address = ADDRESS_BASE + buffer->offset;
	req->usable = buffer->usable;
	req->footprint = buffer->footprint;
	req->mmap_offset = buffer->offset & -GRANULE;
	req->page_size = page_size(buffer);
	req->nr_runs = 1;
}

/* Bytes that the buffer may have where it is. */
static uint64_t room(const struct fake_file *file,
		     const struct fake_buffer *buffer)
{
	unsigned int i = buffer - file->buffers;
	uint64_t end = i + 1 < file->count ? buffer[1].offset : SPAN;

	if (buffer->footprint < GRANULE)
		return buffer->footprint;
	return (end - buffer->offset) & -GRANULE;
}

static int resize(int fd, struct fake_file *file, struct fake_buffer *buffer,
		  struct accmem_realloc *req)
{
	uint64_t unit = buffer->footprint < GRANULE ? UNIT : GRANULE;
	uint64_t usable = usable_of(req->length, buffer->flags);
	uint64_t footprint = round_up(usable, unit);

	if (footprint > buffer->footprint &&
	    footprint - buffer->footprint > free_for(file, buffer->kind))
		return -ENOMEM;
	if (footprint < buffer->footprint)
		punch(fd, buffer->offset + footprint,
		      buffer->footprint - footprint);
	if (footprint > buffer->extent)
		buffer->extent = footprint;
	buffer->length = req->length;
	buffer->usable = usable;
	buffer->footprint = footprint;
	describe(buffer, req);
	return 0;
}

static int move(int fd, struct fake_file *file, const struct fake_buffer *old,
		struct accmem_realloc *req)
{
	struct accmem_alloc alloc = { .length = req->length,
				      .alignment = old->alignment,
				      .flags = old->flags,
				      .page_policy = old->page_policy,
				      .kind = old->kind };
	const struct accmem_free gone = { .address =
						  ADDRESS_BASE + old->offset };
	uint64_t from = old->offset, length = old->length;
	int error = fake_alloc(file, &alloc);

	if (error)
		return error;
	copy(fd, alloc.address - ADDRESS_BASE, from, length);
	req->copied = length;
	if (fake_free(fd, file, &gone, NULL))
		abort();
	describe(fake_buffer_at(file, alloc.address - ADDRESS_BASE), req);
	return 0;
}

/* Where there is room, else elsewhere. */
int fake_realloc(int fd, struct fake_file *file, struct accmem_realloc *req)
{
	uint64_t offset = req->address - ADDRESS_BASE;
	struct fake_buffer *buffer = fake_buffer_at(file, offset);

	if (!buffer)
		return -ENOENT;
	if (!req->length || buffer->offset != offset)
		return -EINVAL;
	if (!(buffer->flags & ACCMEM_ALLOC_RESIZABLE))
		return -EPERM;
	if (buffer->exported)
		return -EBUSY;
	req->copied = 0;
	if (req->length > SPAN)
		return -ENOMEM;
	if (usable_of(req->length, buffer->flags) <= room(file, buffer))
		return resize(fd, file, buffer, req);
	return req->flags & ACCMEM_REALLOC_IN_PLACE ?
		       -ENOMEM :
		       move(fd, file, buffer, req);
}

int fake_query(struct fake_file *file, struct accmem_query *query)
{
	uint64_t offset = query->address - ADDRESS_BASE;
	const struct fake_buffer *buffer = fake_buffer_at(file, offset);

	if (!buffer || offset - buffer->offset >= buffer->footprint)
		return -ENOENT;
	query->mmap_offset = buffer->offset & -GRANULE;
	query->carveout = 0;
	query->base = ADDRESS_BASE + buffer->offset;
	query->offset = query->address - query->base;
	query->length = buffer->length;
	query->usable = buffer->usable;
	query->footprint = buffer->footprint;
	query->alignment = buffer->alignment;
	query->alloc_flags = buffer->flags &
			     ~(ACCMEM_ALLOC_STREAM | ACCMEM_ALLOC_WAIT);
	query->page_policy = buffer->page_policy;
	query->kind = buffer->kind;
	query->page_size = page_size(buffer);
	query->nr_runs = 1;
	return 0;
}

/* a memfd has the bytes at the offsets of their addresses */
int fake_access(int fd, struct fake_file *file, struct fake_exports *exports,
		struct accmem_access *access)
{
	uint64_t offset = access->address - ADDRESS_BASE;
	const struct fake_buffer *buffer = fake_buffer_at(file, offset);
	void *data = (void *)(uintptr_t)access->data;
	ssize_t done;

	if (!buffer || offset - buffer->offset >= buffer->footprint)
		return -ENOENT;
	if (access->length > buffer->usable - (offset - buffer->offset))
		return -ENXIO;
	if (access->op > ACCMEM_ACCESS_WRITE)
		return -EINVAL;
	fake_redirect(file, exports, &fd, &offset);
	done = access->op == ACCMEM_ACCESS_WRITE ?
		       pwrite(fd, data, access->length, offset) :
		       pread(fd, data, access->length, offset);
	if (done != (ssize_t)access->length)
		return -EFAULT;
	access->done = done;
	return 0;
}
