// SPDX-License-Identifier: GPL-2.0
/*
 * Importers of exports: what they read and write, devices that are refused, fences, and
 * revocation. The importers are those of accmem_test_importer.ko.
 */
#include "export_util.h"
#include "stream_util.h"

ACCMEM_FIXTURE(export_importer)

/* true if the kernel can take memory back from an importer (7.1) */
static bool can_revoke(int fd, const struct accmem_alloc *a)
{
	int d = export_part(fd, a->address, 0, ACCMEM_EXPORT_REVOCABLE_ONLY);

	if (d >= 0)
		close(d);
	return d != -EOPNOTSUPP;
}

/* The importer reads what the CPU wrote, and the CPU what the importer wrote. */
static void exchange(struct __test_metadata *_metadata, int fd,
		     struct accmem_alloc *a, uint32_t kind, bool by_cpu)
{
	const uint64_t size = MIB(4) + KIB(12), part = KIB(300);
	char *p, *bytes = malloc(part);
	int d, importer;

	a->length = size;
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, a));
	p = accmem_mapped(fd, a, size);
	accmem_fill(p, size, 1);
	d = export_all(fd, a);
	ASSERT_LE(0, d);
	importer = importer_attach(d, kind);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, by_cpu ?
			     importer_call(importer, TEST_IMPORTER_VMAP, NULL) :
			     importer_map(importer, TEST_IMPORTER_BOTH));
	ASSERT_EQ(0, importer_copy(importer, by_cpu, false, MIB(2) - KIB(100),
				   bytes, part));
	EXPECT_EQ(0, memcmp(bytes, p + MIB(2) - KIB(100), part));
	memset(bytes, 0xc3, part);
	ASSERT_EQ(0, importer_copy(importer, by_cpu, true, size - part, bytes,
				   part));
	EXPECT_EQ(0, memcmp(bytes, p + size - part, part));
	munmap(p, size);
	close(importer);
	close(d);
	ASSERT_EQ(0, accmem_ioctl_free(fd, a->address));
	free(bytes);
}

TEST_F(export_importer, static_device)
{
	exchange(_metadata, self->fd, &self->a, 0, false);
}

TEST_F(export_importer, dynamic_device)
{
	exchange(_metadata, self->fd, &self->a, TEST_IMPORTER_DYNAMIC, false);
}

TEST_F(export_importer, vmap)
{
	exchange(_metadata, self->fd, &self->a, 0, true);
}

TEST_F(export_importer, host_memory)
{
	self->a.kind = ACCMEM_KIND_HOST;
	exchange(_metadata, self->fd, &self->a, TEST_IMPORTER_DYNAMIC, false);
	exchange(_metadata, self->fd, &self->a, 0, true);
}

TEST_F(export_importer, vmap_has_the_cache_mode)
{
	unsigned int mode;

	for (mode = ACCMEM_CACHE_WC; mode <= ACCMEM_CACHE_UC; mode++) {
		if (!(self->info.cache_modes & 1u << mode))
			continue;
		self->a.cache_mode = mode;
		exchange(_metadata, self->fd, &self->a, 0, true);
	}
}

static bool is_stock(void)
{
	const char *kernel = getenv("ACCMEM_KERNEL");

	return kernel && !strncmp(kernel, "stock", 5);
}

/* The table covers the part, and has page structures where the memory has them. */
TEST_F(export_importer, table)
{
	struct test_importer_map map = {};
	int d, importer;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &self->a));
	d = export_part(self->fd, self->a.address + KIB(8), MIB(3), 0);
	ASSERT_LE(0, d);
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_call(importer, TEST_IMPORTER_MAP, &map));
	EXPECT_EQ(MIB(3), map.bytes);
	EXPECT_LE(1, map.nr);
	/* kernels with CONFIG_DMABUF_DEBUG hide the pages */
	if (is_stock()) {
		EXPECT_EQ(self->info.features & ACCMEM_FEATURE_PIN ? 1 : 0,
			  map.pages);
	}
	close(importer);
	close(d);
}

TEST_F(export_importer, devices_that_are_refused)
{
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(40), 0, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	EXPECT_EQ(-EOPNOTSUPP, importer_attach(d, TEST_IMPORTER_NO_MASK));
	EXPECT_EQ(-EOPNOTSUPP, importer_attach(d, TEST_IMPORTER_NARROW));
	EXPECT_EQ(-EOPNOTSUPP,
		  importer_attach(d, TEST_IMPORTER_NARROW |
					     TEST_IMPORTER_DYNAMIC));
	close(d);
}

TEST_F(export_importer, read_only)
{
	char byte = 0;
	int d, importer;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	d = export_part(self->fd, self->a.address, 0, ACCMEM_EXPORT_READ_ONLY);
	ASSERT_LE(0, d);
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC);
	ASSERT_LE(0, importer);
	EXPECT_EQ(-EACCES, importer_map(importer, TEST_IMPORTER_BOTH));
	EXPECT_EQ(-EACCES, importer_map(importer, TEST_IMPORTER_WRITES));
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_READS));
	EXPECT_EQ(0, importer_copy(importer, false, false, 0, &byte, 1));
	EXPECT_EQ(-EINVAL, importer_call(importer, TEST_IMPORTER_VMAP, NULL));
	close(importer);
	close(d);
}

/* The importer alone keeps the memory. */
TEST_F(export_importer, keeps_the_memory)
{
	int other = accmem_opened(variant->path), d, importer;
	char bytes[64];

	ASSERT_EQ(0, accmem_alloc_bytes(other, MIB(2), 0, &self->a));
	EXPECT_EQ(0, fill_at(other, self->a.address, MIB(2), 7));
	d = export_all(other, &self->a);
	ASSERT_LE(0, d);
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	close(d);
	close(other);
	ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "detached_bytes", MIB(2),
					5000));
	EXPECT_EQ(0, importer_copy(importer, false, false, 0, bytes, 64));
	EXPECT_EQ(-1, accmem_check(bytes, 64, 7));
	close(importer);
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
}

/* What a device wrote does not reach the next context. */
TEST_F(export_importer, writes_are_cleared)
{
	int other = accmem_opened(variant->path), d, importer;
	char byte = 0x77;
	struct accmem_alloc a = { .length = KIB(64) };

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_WRITES));
	ASSERT_EQ(0, importer_copy(importer, false, true, 100, &byte, 1));
	close(importer);
	close(d);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY) {
		a.flags = ACCMEM_ALLOC_FIXED;
		a.address = self->a.address;
	}
	ASSERT_EQ(0, accmem_ioctl_alloc(other, &a));
	EXPECT_EQ(-1, check_at(other, a.address, 0, KIB(64), 0));
	close(other);
}

/* A fence of an importer keeps the memory after the last descriptor is closed. */
TEST_F(export_importer, fence_keeps_the_memory)
{
	struct dma_buf_import_sync_file import = { .flags = DMA_BUF_SYNC_RW };
	int d, device = fence_device();
	uint32_t fence[2], i;

	ASSERT_LE(0, device);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2), 0, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	for (i = 0; i < 2; i++) {
		import.fd = fence_created(device, &fence[i]);
		ASSERT_EQ(0, ioctl(d, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &import));
		close(import.fd);
	}
	close(d);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	usleep(20000);
	EXPECT_EQ(MIB(2), accmem_sysfs(variant->path, "detached_bytes"));
	ASSERT_EQ(0, fence_signal(device, fence[0], 0, TEST_FENCE_IRQ));
	usleep(20000);
	EXPECT_EQ(MIB(2), accmem_sysfs(variant->path, "detached_bytes"));
	ASSERT_EQ(0, fence_signal(device, fence[1], -EIO, 0));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
	close(device);
}

static void until_unmapped(int importer)
{
	uint64_t end = accmem_ms() + 20000;

	while (importer_query(importer).mapped && accmem_ms() < end)
		usleep(1000);
}

/* An importer that lets go when it is asked to, at once or later. */
static void revoked(struct __test_metadata *_metadata, const char *path, int fd,
		    struct accmem_alloc *a, uint32_t kind)
{
	char text[4096];
	int d, importer;
	uint64_t start;

	ASSERT_EQ(0, accmem_alloc_bytes(fd, KIB(64), 0, a));
	d = export_all(fd, a);
	ASSERT_LE(0, d);
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC | kind);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	start = accmem_ms();
	ASSERT_EQ(0, exports_tell(path, "revoke"));
	/* the call waits for 500 ms; the work of a slow importer may come after that */
	if (kind == TEST_IMPORTER_SLOW && accmem_ms() - start >= 490)
		until_unmapped(importer);
	EXPECT_EQ(1, importer_query(importer).notified);
	EXPECT_EQ(kind == TEST_IMPORTER_KEEPS, importer_query(importer).mapped);
	ASSERT_LT(0, accmem_debug_read(path, "exports", text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, kind == TEST_IMPORTER_KEEPS ?
					     " -104 1 test-importer.0\n" :
					     " -104 0 test-importer.0\n"))
	{
		TH_LOG("%s", text);
	}
	if (kind != TEST_IMPORTER_KEEPS) {
		EXPECT_EQ(-ECONNRESET,
			  importer_map(importer, TEST_IMPORTER_BOTH));
	}
	EXPECT_EQ(-ECONNRESET, importer_attach(d, TEST_IMPORTER_DYNAMIC));
	EXPECT_EQ(-ECONNRESET, importer_attach(d, 0));
	EXPECT_EQ(-ECONNRESET, export_all(fd, a));
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, d, 0, 4096, RW, MAP_SHARED));
	EXPECT_EQ(ECONNRESET, errno);
	ASSERT_EQ(0, exports_tell(path, "resume"));
	if (kind != TEST_IMPORTER_KEEPS) {
		EXPECT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	}
	close(importer);
	close(d);
	d = export_all(fd, a);
	EXPECT_LE(0, d);
	close(d);
}

TEST_F(export_importer, revoked_at_once)
{
	revoked(_metadata, variant->path, self->fd, &self->a, 0);
}

TEST_F(export_importer, revoked_later)
{
	uint64_t start = accmem_ms();

	revoked(_metadata, variant->path, self->fd, &self->a,
		TEST_IMPORTER_SLOW);
	EXPECT_LE(TEST_IMPORTER_SLOW_MS / 2, accmem_ms() - start);
}

TEST_F(export_importer, never_lets_go)
{
	revoked(_metadata, variant->path, self->fd, &self->a,
		TEST_IMPORTER_KEEPS);
}

TEST_F(export_importer, revocable_only)
{
	int d, importer;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	if (!can_revoke(self->fd, &self->a))
		return; /* EXPORT has refused the flag */
	d = export_part(self->fd, self->a.address, 0,
			ACCMEM_EXPORT_REVOCABLE_ONLY);
	ASSERT_LE(0, d);
	EXPECT_EQ(-EOPNOTSUPP, importer_attach(d, 0));
	importer = importer_attach(d, TEST_IMPORTER_DYNAMIC);
	ASSERT_LE(0, importer);
	EXPECT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	close(importer);
	close(d);
}

/* Importers come and go while the exports are revoked and resumed. */
struct storm {
	int d;
	atomic_bool stop;
	int err;
	unsigned int mapped;
};

static void *import_in_a_loop(void *arg)
{
	struct storm *storm = arg;
	int importer, err;

	while (!storm->stop) {
		importer = importer_attach(storm->d, TEST_IMPORTER_DYNAMIC);
		err = importer < 0 ? importer :
				     importer_map(importer, TEST_IMPORTER_BOTH);
		storm->mapped += !err;
		if (err && err != -ECONNRESET)
			storm->err = err;
		if (importer >= 0)
			close(importer);
	}
	return NULL;
}

TEST_F(export_importer, revocation_races_with_importers)
{
	pthread_t threads[2];
	struct storm storm = {};
	unsigned int i;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	storm.d = export_all(self->fd, &self->a);
	ASSERT_LE(0, storm.d);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, import_in_a_loop,
					    &storm));
	for (i = 0; i < accmem_scale(100); i++) {
		EXPECT_EQ(0, exports_tell(variant->path, "revoke"));
		EXPECT_EQ(0, exports_tell(variant->path, "resume"));
		usleep(1000);
	}
	storm.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, storm.err);
	printf("# %u mappings\n", storm.mapped);
	close(storm.d);
}

ACCMEM_HARNESS_MAIN
