/* SPDX-License-Identifier: MIT */
/* What the files of the fake device share. */
#ifndef ACCMEM_RUNTIME_FAKE_INTERNAL_H
#define ACCMEM_RUNTIME_FAKE_INTERNAL_H

#include <linux/accmem.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GRANULE 4096ull
#define UNIT 64ull
#define HUGE_PAGE (2ull << 20)
#define SPAN (32ull << 30)
#define MAX_ALIGNMENT (1ull << 30)
#define ADDRESS_BASE 0x10000000000ull
#define MAX_BUFFERS 65536
#define MAX_FILES 64
#define MAX_STREAMS 64
#define MAX_EXPORTS 256
#define HELD ((ino_t)-1) /* fake_buffer.stream: the memory is not used again */

/**
 * struct fake_buffer - a buffer, or what is left of one
 * @offset: from the lowest device address
 * @length: bytes asked for
 * @usable: bytes that may be used
 * @footprint: bytes that it takes
 * @extent: bytes of addresses that are its
 * @alignment: of @offset
 * @position: of @stream, that its memory waits for
 * @flags: of the allocation
 * @page_policy: likewise
 * @kind: likewise; memory of the device, of the host, or of both
 * @import_offset: of an imported buffer, offset of its memory in the exporter's file
 * @import: number of the export that the buffer was imported from, or 0
 * @exported: there is an export of a part of the buffer
 * @stream: inode of the stream, 0 while the buffer has a name
 */
struct fake_buffer {
	uint64_t offset;
	uint64_t length;
	uint64_t usable;
	uint64_t footprint;
	uint64_t extent;
	uint64_t alignment;
	uint64_t position;
	uint32_t flags;
	uint32_t page_policy;
	uint64_t import_offset;
	uint32_t kind;
	uint32_t import;
	bool exported;
	ino_t stream;
};

/* One open file, shared by fork: identified by the inode of its memfd. */
struct fake_file {
	ino_t inode;
	unsigned int count;
	struct fake_buffer buffers[MAX_BUFFERS]; /* by offset */
};

struct fake_stream {
	ino_t inode;
	const struct fake_file *file; /* whose calls may name it */
	uint64_t reached;
};

struct fake_export {
	uint64_t offset;
	uint64_t length;
	uint32_t flags;
};

struct fake_exports {
	unsigned int count;
	struct fake_export all[MAX_EXPORTS];
};

/* The calls, with the device's lock held; 0 or a negative errno value. */
int fake_info(struct fake_file *file, struct accmem_info *info);
int fake_alloc(struct fake_file *file, struct accmem_alloc *req);
int fake_free(int fd, struct fake_file *file, const struct accmem_free *req,
	      const struct fake_stream *stream);
int fake_realloc(int fd, struct fake_file *file, struct accmem_realloc *req);
int fake_query(struct fake_file *file, struct accmem_query *query);
int fake_access(int fd, struct fake_file *file, struct fake_exports *exports,
		struct accmem_access *access);
int fake_export(int fd, struct fake_file *file, struct fake_exports *exports,
		struct accmem_export_buffer *req);
int fake_import(struct fake_file *file, struct fake_exports *exports,
		struct accmem_import_buffer *req);

bool fake_is_export(int fd);

/*
 * Find the bytes at @offset of @fd, and change both to their place: an export, the export
 * from which a buffer of @file was imported, or no change. @file may be NULL.
 */
void fake_redirect(struct fake_file *file, struct fake_exports *exports,
		   int *fd, uint64_t *offset);

/* The buffer that @offset is in, or NULL. */
struct fake_buffer *fake_buffer_at(struct fake_file *file, uint64_t offset);

/* Give @b an offset, first fit; 0 or -ENOMEM. */
int fake_place(struct fake_file *file, struct fake_buffer *b);

/* The stream has come so far: what waited for it is free. */
void fake_reached(int fd, struct fake_file *file,
		  const struct fake_stream *stream);

#endif /* ACCMEM_RUNTIME_FAKE_INTERNAL_H */
