// SPDX-License-Identifier: MIT
/*
 * Exports of the fake device. An export is another open file of the exporter's memfd. The
 * file is marked by O_NONBLOCK, and its position is the number of the export, so that a
 * process that is sent the descriptor finds both. An imported buffer has no memory in the
 * memfd of its context: mappings and accesses go to a descriptor of the export, which the
 * importing process keeps. Exported memory is never used again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_device.h"
#include "fake_internal.h"

#define KEPT_FROM 128 /* the lowest of the descriptors that are kept */

bool fake_no_exports, fake_revoked;

/* A descriptor of each export that this process has imported. */
static int kept[MAX_EXPORTS];

bool fake_is_export(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

static struct fake_export *export_of(struct fake_exports *exports, int fd)
{
	off_t number = fake_is_export(fd) ? lseek(fd, 0, SEEK_CUR) : 0;

	return number > 0 && number <= exports->count ?
		       &exports->all[number - 1] :
		       NULL;
}

static int reopen(int fd, bool read_only)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return __real_open64(path, (read_only ? O_RDONLY : O_RDWR) |
					   O_NONBLOCK | O_CLOEXEC);
}

static int export_check(const struct fake_buffer *buffer, uint64_t offset,
			const struct accmem_export_buffer *req, uint64_t *room)
{
	if ((req->address | req->length) % GRANULE ||
	    req->flags & ~ACCMEM_EXPORT_FLAGS)
		return -EINVAL;
	if (req->address + req->length < req->address)
		return -EOVERFLOW;
	if (req->flags & ACCMEM_EXPORT_REVOCABLE_ONLY)
		return -EOPNOTSUPP;
	if (fake_revoked)
		return -ECONNRESET;
	if (!buffer || offset - buffer->offset >= buffer->footprint)
		return -ENOENT;
	if (buffer->kind == ACCMEM_KIND_SHARED)
		return -EOPNOTSUPP;
	*room = buffer->footprint - (offset - buffer->offset);
	return req->length > *room ? -ENXIO : 0;
}

int fake_export(int fd, struct fake_file *file, struct fake_exports *exports,
		struct accmem_export_buffer *req)
{
	uint64_t offset = req->address - ADDRESS_BASE, room = 0;
	struct fake_buffer *buffer = fake_buffer_at(file, offset);
	int error = export_check(buffer, offset, req, &room);

	if (error)
		return error;
	if (exports->count == MAX_EXPORTS)
		return -EDQUOT;
	if (!req->length)
		req->length = room;
	fake_redirect(file, exports, &fd, &offset);
	req->fd = reopen(fd, req->flags & ACCMEM_EXPORT_READ_ONLY);
	if (req->fd < 0)
		return -errno;
	exports->all[exports->count] = (struct fake_export){
		.offset = offset,
		.length = req->length,
		.flags = req->flags,
	};
	if (lseek(req->fd, ++exports->count, SEEK_SET) < 0)
		abort();
	buffer->exported = true;
	return 0;
}

static int import_check(const struct fake_export *export,
			const struct accmem_import_buffer *req)
{
	if ((req->offset | req->length) % GRANULE || req->flags)
		return -EINVAL;
	if (fcntl(req->fd, F_GETFD) < 0)
		return -EBADF;
	if (!export)
		return -EINVAL;
	if (export->flags & ACCMEM_EXPORT_READ_ONLY)
		return -EACCES;
	if (fake_revoked)
		return -ECONNRESET;
	if (req->offset >= export->length ||
	    req->length > export->length - req->offset)
		return -ENXIO;
	return 0;
}

int fake_import(struct fake_file *file, struct fake_exports *exports,
		struct accmem_import_buffer *req)
{
	const struct fake_export *export = export_of(exports, req->fd);
	int error = import_check(export, req), *keep;
	struct fake_buffer b = {
		.alignment = GRANULE,
		.flags = ACCMEM_QUERY_IMPORTED,
		.page_policy = ACCMEM_PAGE_NORMAL_ONLY,
	};

	if (error)
		return error;
	if (!req->length)
		req->length = export->length - req->offset;
	b.length = req->length;
	b.usable = req->length;
	b.footprint = req->length;
	b.extent = req->length;
	b.import = export - exports->all + 1;
	b.import_offset = export->offset + req->offset;
	error = fake_place(file, &b);
	if (error)
		return error;
	keep = &kept[b.import - 1];
	if (!*keep)
		*keep = fcntl(req->fd, F_DUPFD_CLOEXEC, KEPT_FROM);
	if (*keep < 0)
		abort();
	req->address = ADDRESS_BASE + b.offset;
	req->mmap_offset = b.offset;
	return 0;
}

void fake_redirect(struct fake_file *file, struct fake_exports *exports,
		   int *fd, uint64_t *offset)
{
	const struct fake_export *export = export_of(exports, *fd);
	const struct fake_buffer *buffer;

	if (export) {
		*offset += export->offset;
		return;
	}
	buffer = file ? fake_buffer_at(file, *offset) : NULL;
	if (!buffer || !buffer->import)
		return;
	*offset += buffer->import_offset - buffer->offset;
	*fd = kept[buffer->import - 1];
}
