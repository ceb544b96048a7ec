// SPDX-License-Identifier: GPL-2.0
/*
 * Failed allocations for exports and for their importers. Each allocation fails once, as
 * in failnth.c.
 */
#include "export_util.h"
#include "failnth_util.h"
#include "stream_util.h"

FAILNTH_FIXTURE(failnth_export)

/* The buffer of all calls; it is freed with the context. */
static struct accmem_alloc exported;

static int export_close(const char *path, int fd)
{
	struct accmem_alloc a = {};
	int d, err = accmem_alloc_bytes(fd, KIB(64), 0, &a);

	(void)path;
	if (err)
		return err;
	d = export_all(fd, &a);
	if (d >= 0)
		close(d);
	return accmem_ioctl_free(fd, a.address) ?: d < 0 ? d : 0;
}

static int export_map(const char *path, int fd)
{
	int d = export_all(fd, &exported), err;
	void *p;

	(void)path;
	if (d < 0)
		return d;
	p = accmem_mmap_at(NULL, d, 0, KIB(64), RW, MAP_SHARED);
	err = p ? 0 : -errno;
	if (p)
		munmap(p, KIB(64));
	close(d);
	return err;
}

static int import_as(int fd, uint32_t kind)
{
	int d = export_all(fd, &exported), importer, err;

	if (d < 0)
		return d;
	importer = importer_attach(d, kind);
	err = importer < 0 ? importer :
			     importer_map(importer, TEST_IMPORTER_BOTH);
	if (importer >= 0)
		close(importer);
	close(d);
	return err;
}

static int import_static(const char *path, int fd)
{
	(void)path;
	return import_as(fd, 0);
}

static int import_dynamic(const char *path, int fd)
{
	(void)path;
	return import_as(fd, TEST_IMPORTER_DYNAMIC);
}

TEST_F(failnth_export, export)
{
	NEED_INJECTION();
	SWEEP(export_close);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64),
					ACCMEM_ALLOC_POPULATE, &exported));
	SWEEP(export_map);
}

TEST_F(failnth_export, importers)
{
	int importer;

	NEED_INJECTION();
	importer = importer_open();
	ASSERT_LE(0, importer);
	close(importer);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64),
					ACCMEM_ALLOC_POPULATE, &exported));
	SWEEP(import_static);
	SWEEP(import_dynamic);
}

static int fences = -1;
static int64_t buffers; /* of the device, before the call */

/* an importer's fence that signals after the last close; a buffer is counted until its end */
static int end_with_fence(const char *path, int fd)
{
	struct dma_buf_import_sync_file import = { .flags = DMA_BUF_SYNC_RW };
	struct accmem_alloc a = {};
	int d, err = accmem_alloc_bytes(fd, KIB(64), 0, &a);
	uint32_t id = 0;

	if (err)
		return err;
	d = export_all(fd, &a);
	import.fd = d < 0 ? d : fence_create(fences, &id);
	err = import.fd < 0 ? import.fd : 0;
	if (!err && ioctl(d, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import))
		err = -errno;
	if (d >= 0)
		close(d);
	if (accmem_ioctl_free(fd, a.address))
		abort();
	if (import.fd < 0)
		return err;
	close(import.fd);
	if (fence_signal(fences, id, 0, 0) ||
	    accmem_sysfs_wait(path, "buffers", buffers, 5000) != -1)
		abort();
	return err;
}

TEST_F(failnth_export, fence)
{
	NEED_INJECTION();
	fences = fence_device();
	ASSERT_LE(0, fences);
	buffers = accmem_sysfs(variant->path, "buffers");
	SWEEP(end_with_fence);
	close(fences);
}

ACCMEM_HARNESS_MAIN
