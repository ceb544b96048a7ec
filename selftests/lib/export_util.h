/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Exports in tests: dma-bufs of buffers, and importers of accmem_test_importer.ko. A call
 * returns a descriptor or 0, or a negative errno value.
 */
#ifndef EXPORT_UTIL_H
#define EXPORT_UTIL_H

#include <libgen.h>
#include <linux/dma-buf.h>
#include <sys/syscall.h>

#include "../../driver/tests/test_importer.h"
#include "accmem_test.h"

static inline int export_call(int fd, struct accmem_export_buffer *e)
{
	e->size = sizeof(*e);
	return accmem_ioctl(fd, ACCMEM_IOC_EXPORT, e);
}

/* makes a dma-buf of @length bytes at @address; its descriptor, or -errno */
static inline int export_part(int fd, uint64_t address, uint64_t length,
			      uint32_t flags)
{
	struct accmem_export_buffer e = {
		.flags = flags,
		.address = address,
		.length = length,
	};
	int err = export_call(fd, &e);

	return err ?: e.fd;
}

static inline int export_all(int fd, const struct accmem_alloc *a)
{
	return export_part(fd, a->address, 0, 0);
}

/* opens an importer, and loads its module if necessary */
static inline int importer_open(void)
{
	return accmem_open_test_device("/dev/test-importer",
				       "accmem_test_importer.ko");
}

static inline int importer_call(int importer, unsigned long cmd, void *arg)
{
	return ioctl(importer, cmd, arg) ? -errno : 0;
}

/* opens an importer of a kind and attaches it to a dma-buf */
static inline int importer_attach(int dma_buf, uint32_t kind)
{
	struct test_importer_attach req = { .fd = dma_buf, .kind = kind };
	int importer = importer_open(), err;

	if (importer < 0)
		return -ENODEV;
	err = importer_call(importer, TEST_IMPORTER_ATTACH, &req);
	if (!err)
		return importer;
	close(importer);
	return err;
}

static inline int importer_map(int importer, uint32_t direction)
{
	struct test_importer_map req = { .direction = direction };

	return importer_call(importer, TEST_IMPORTER_MAP, &req);
}

static inline int importer_copy(int importer, bool by_cpu, bool write,
				uint64_t offset, void *data, uint64_t length)
{
	struct test_importer_copy req = {
		.offset = offset,
		.length = length,
		.data = (uintptr_t)data,
		.write = write,
		.by_cpu = by_cpu,
	};

	return importer_call(importer, TEST_IMPORTER_COPY, &req);
}

static inline struct test_importer_query importer_query(int importer)
{
	struct test_importer_query req = {};

	if (importer_call(importer, TEST_IMPORTER_QUERY, &req))
		abort();
	return req;
}

/* "revoke" or "resume" */
static inline int exports_tell(const char *path, const char *word)
{
	char file[128];

	snprintf(file, sizeof(file), "/sys/kernel/debug/accmem/%s/exports",
		 strrchr(path, '/') + 1);
	return accmem_write_file(file, word);
}

#endif /* EXPORT_UTIL_H */
