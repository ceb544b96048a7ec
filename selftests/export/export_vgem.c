// SPDX-License-Identifier: GPL-2.0
/*
 * EXPORT to a real importer, and IMPORT from a real exporter: the driver vgem of the
 * distribution's kernel, a graphics device without hardware.
 */
#include "order_util.h"
#include "revoke_util.h"
#include "stream_util.h"

#define BUFFER KIB(256)

/* The part of the kernel's drm.h, drm_mode.h and vgem_drm.h that is used here. */
struct dumb {
	uint32_t height, width, bpp, flags;
	uint32_t handle, pitch; /* out */
	uint64_t size; /* out */
};

struct prime {
	uint32_t handle;
	uint32_t flags; /* O_CLOEXEC, O_RDWR */
	int32_t fd;
};

struct gem_close {
	uint32_t handle, pad;
};

struct fence_attach {
	uint32_t handle, flags;
	uint32_t fence; /* out */
	uint32_t pad;
};

struct fence_signal {
	uint32_t fence, flags;
};

#define GEM_CLOSE _IOW('d', 0x09, struct gem_close)
#define PRIME_HANDLE_TO_FD _IOWR('d', 0x2d, struct prime)
#define PRIME_FD_TO_HANDLE _IOWR('d', 0x2e, struct prime)
#define FENCE_ATTACH _IOWR('d', 0x41, struct fence_attach)
#define FENCE_SIGNAL _IOW('d', 0x42, struct fence_signal)
#define CREATE_DUMB _IOWR('d', 0xb2, struct dumb)

#define FENCE_WRITE 1u

static int gem_open(void)
{
	return open("/dev/dri/card0", O_RDWR | O_CLOEXEC);
}

static int gem_call(int gem, unsigned long cmd, void *arg)
{
	return ioctl(gem, cmd, arg) ? -errno : 0;
}

/* the handle of a dma-buf, or -errno */
static int gem_import(int gem, int dma_buf)
{
	struct prime p = { .fd = dma_buf };

	return gem_call(gem, PRIME_FD_TO_HANDLE, &p) ?: (int)p.handle;
}

static int gem_export(int gem, uint32_t handle)
{
	struct prime p = { .handle = handle, .flags = O_CLOEXEC | O_RDWR };

	return gem_call(gem, PRIME_HANDLE_TO_FD, &p) ?: p.fd;
}

static int gem_close(int gem, uint32_t handle)
{
	struct gem_close c = { .handle = handle };

	return gem_call(gem, GEM_CLOSE, &c);
}

/* adds a write fence to the memory of a handle; returns the fence's number, or -errno */
static int gem_fence(int gem, uint32_t handle)
{
	struct fence_attach a = { .handle = handle, .flags = FENCE_WRITE };

	return gem_call(gem, FENCE_ATTACH, &a) ?: (int)a.fence;
}

static int gem_signal(int gem, int fence)
{
	struct fence_signal s = { .fence = fence };

	return gem_call(gem, FENCE_SIGNAL, &s);
}

FIXTURE(export_vgem)
{
	int fd;
	struct accmem_info info;
	struct accmem_alloc a;
	int gem;
	int d;
};

ACCMEM_VARIANTS(export_vgem);

FIXTURE_SETUP(export_vgem)
{
	if (access("/dev/dri/card0", F_OK))
		ASSERT_TRUE(stock_load("vgem"));
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, BUFFER, 0, &self->a));
	EXPECT_EQ(0, fill_at(self->fd, self->a.address, BUFFER, 1));
	self->gem = gem_open();
	ASSERT_LE(0, self->gem);
	self->d = export_all(self->fd, &self->a);
	ASSERT_LE(0, self->d);
}

FIXTURE_TEARDOWN(export_vgem)
{
	close(self->d);
	close(self->gem);
	if (self->fd >= 0)
		close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

static bool is_detached(const char *path, uint64_t bytes)
{
	return accmem_sysfs_wait(path, "detached_bytes", bytes, 20000) == -1;
}

/* Newer kernels attach the driver's device at an import, but do not map the memory. */
static bool is_mapped(const char *path)
{
	char text[4096], *line;
	int mapped = 0;

	if (accmem_debug_read(path, "exports", text, sizeof(text)) < 0)
		return false;
	line = strchr(text, '\n');
	return line &&
	       sscanf(line, " %*u %*u %*u %*u %*x %*d %d", &mapped) == 1 &&
	       mapped;
}

/* The dma-buf that vgem makes of the handle is the same memory, for mmap and IMPORT. */
TEST_F(export_vgem, there_and_back)
{
	int handle = gem_import(self->gem, self->d), again, other;
	struct accmem_import_buffer i = { .size = sizeof(i) };
	char *p;

	ASSERT_LT(0, handle);
	EXPECT_EQ(handle, gem_import(self->gem, self->d));
	again = gem_export(self->gem, handle);
	ASSERT_LE(0, again);
	p = accmem_mmap_at(NULL, again, 0, BUFFER, RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, BUFFER, 1));
	accmem_fill(p, BUFFER, 2);
	munmap(p, BUFFER);
	other = accmem_opened(variant->path);
	i.fd = again;
	ASSERT_EQ(0, accmem_ioctl(other, ACCMEM_IOC_IMPORT, &i));
	EXPECT_EQ(-1, check_at(other, i.address, BUFFER, BUFFER, 2));
	close(other);
	close(again);
	EXPECT_EQ(0, gem_close(self->gem, handle));
}

/* The handle alone keeps the memory. */
TEST_F(export_vgem, a_handle_keeps_the_memory)
{
	int handle = gem_import(self->gem, self->d), d;
	char *p;

	ASSERT_LT(0, handle);
	close(self->d);
	close(self->fd);
	self->fd = -1;
	ASSERT_TRUE(is_detached(variant->path, BUFFER));
	d = gem_export(self->gem, handle);
	ASSERT_LE(0, d);
	p = accmem_mmap_at(NULL, d, 0, BUFFER, RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, BUFFER, 1));
	munmap(p, BUFFER);
	close(d);
	EXPECT_EQ(BUFFER, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(0, gem_close(self->gem, handle));
	EXPECT_TRUE(is_detached(variant->path, 0));
	self->d = -1;
}

/* A fence of the driver keeps the memory when the handle is closed. */
TEST_F(export_vgem, a_fence_keeps_the_memory)
{
	int handle = gem_import(self->gem, self->d), fence;
	struct pollfd p = { .fd = self->d, .events = POLLIN };

	ASSERT_LT(0, handle);
	EXPECT_EQ(1, poll(&p, 1, 0));
	fence = gem_fence(self->gem, handle);
	ASSERT_LT(0, fence);
	EXPECT_EQ(0, poll(&p, 1, 0));
	EXPECT_EQ(0, gem_close(self->gem, handle));
	close(self->d);
	self->d = -1;
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	usleep(100000);
	EXPECT_EQ(BUFFER, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_EQ(0, gem_signal(self->gem, fence));
	EXPECT_TRUE(is_detached(variant->path, 0));
}

/* FREE waits for the fence of the driver. */
TEST_F(export_vgem, free_with_a_fence)
{
	struct dma_buf_export_sync_file sync = { .flags = DMA_BUF_SYNC_RW };
	int handle = gem_import(self->gem, self->d), fence;

	ASSERT_LT(0, handle);
	fence = gem_fence(self->gem, handle);
	ASSERT_LT(0, fence);
	ASSERT_EQ(0, ioctl(self->d, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &sync));
	EXPECT_EQ(0, fence_free(self->fd, self->a.address, sync.fd));
	close(sync.fd);
	EXPECT_EQ(BUFFER, accmem_sysfs(variant->path, "pending_bytes"));
	/* the end of the driver's file signals all of its fences */
	close(self->gem);
	self->gem = -1;
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "pending_bytes", 0, 20000));
}

/* A driver that maps the memory does so for both directions. */
TEST_F(export_vgem, an_export_for_reading)
{
	int d = export_part(self->fd, self->a.address, 0,
			    ACCMEM_EXPORT_READ_ONLY);
	bool mapped;

	ASSERT_LE(0, d);
	ASSERT_LT(0, gem_import(self->gem, self->d));
	mapped = is_mapped(variant->path);
	if (mapped) {
		EXPECT_EQ(-EACCES, gem_import(self->gem, d));
	} else {
		EXPECT_LT(0, gem_import(self->gem, d));
	}
	close(d);
}

TEST_F(export_vgem, users_end_in_every_order)
{
	unsigned int number;

	close(self->d);
	close(self->fd);
	self->d = -1;
	self->fd = -1;
	for (number = 0; number < ORDERS; number++) {
		struct order o = { .length = BUFFER };
		struct accmem_alloc a;

		o.fds[0] = accmem_opened(variant->path);
		o.fds[1] = gem_open();
		ASSERT_LE(0, o.fds[1]);
		ASSERT_EQ(0, accmem_alloc_bytes(o.fds[0], BUFFER, 0, &a));
		o.fds[2] = export_all(o.fds[0], &a);
		ASSERT_LE(0, o.fds[2]);
		o.p = accmem_mmap_at(NULL, o.fds[2], 0, BUFFER, RW, MAP_SHARED);
		ASSERT_NE(NULL, o.p);
		ASSERT_LT(0, gem_import(o.fds[1], o.fds[2]));
		order_end_all(&o, number);
		ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	}
}

/* Memory that the driver has mapped keeps its contents over a reset. */
TEST_F(export_vgem, reset)
{
	int handle = gem_import(self->gem, self->d);

	ASSERT_LT(0, handle);
	if (is_mapped(variant->path)) {
		EXPECT_EQ(-EBUSY, device_reset(variant->path));
		EXPECT_EQ(-1, check_at(self->fd, self->a.address, BUFFER,
				       BUFFER, 1));
		EXPECT_EQ(0, gem_close(self->gem, handle));
	}
	EXPECT_EQ(0, device_reset(variant->path));
	handle = gem_open();
	EXPECT_EQ(-ECONNRESET, gem_import(handle, self->d));
	close(handle);
	EXPECT_EQ(-ECONNRESET, device_byte(self->fd, self->a.address));
}

/* When the device is gone, nobody else gets the memory that a handle still refers to. */
TEST_F(export_vgem, unbind)
{
	int handle = gem_import(self->gem, self->d);
	struct target target;
	char path[64];

	target_find(&target, variant->path);
	ASSERT_LT(0, handle);
	ASSERT_EQ(0, target_unbind(&target));
	EXPECT_EQ(-ENODEV, device_byte(self->fd, self->a.address));
	close(self->d);
	self->d = gem_export(self->gem, handle);
	ASSERT_LE(0, self->d);
	EXPECT_EQ(NULL,
		  accmem_mmap_at(NULL, self->d, 0, BUFFER, RW, MAP_SHARED));
	EXPECT_EQ(ENODEV, errno);
	close(self->d);
	close(self->fd);
	self->d = -1;
	self->fd = -1;
	if (!target_bind(&target)) {
		ASSERT_TRUE(target_node(&target, path, sizeof(path)));
		EXPECT_STRNE(variant->path, path);
		ASSERT_EQ(0, target_unbind(&target));
	}
	EXPECT_EQ(0, gem_close(self->gem, handle));
	ASSERT_TRUE(target_restore(&target));
}

/* Imports and ends handles of a dma-buf, which the main thread replaces. */
struct storm {
	atomic_int d;
	atomic_bool stop;
	int err;
	atomic_uint imported;
};

static void *import_in_a_loop(void *arg)
{
	struct storm *storm = arg;
	int gem, handle;

	while (!storm->stop) {
		gem = gem_open();
		handle = gem_import(gem, storm->d);
		if (handle > 0)
			storm->imported++;
		else if (handle != -EBADF && handle != -EINVAL)
			storm->err = handle; /* not the number of another file */
		if (handle > 0 && storm->imported % 2)
			gem_close(gem, handle);
		close(gem);
	}
	return NULL;
}

TEST_F(export_vgem, imports_race_with_free)
{
	uint64_t until = accmem_ms() + 30000;
	struct storm storm = { .d = self->d };
	struct accmem_alloc a;
	pthread_t threads[2];
	unsigned int i, n = accmem_scale(500);

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, import_in_a_loop,
					    &storm));
	/* the threads may not run for a while */
	for (i = 0; i < n || (!storm.imported && accmem_ms() < until); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &a));
		close(storm.d);
		storm.d = export_all(self->fd, &a);
		ASSERT_LE(0, storm.d);
		sched_yield();
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
	storm.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, storm.err);
	EXPECT_LT(0, atomic_load(&storm.imported));
	self->d = storm.d;
}

/* Memory of vgem is not memory of the device. */
TEST_F(export_vgem, memory_of_the_driver_is_not_imported)
{
	struct dumb dumb = { .height = 64, .width = 64, .bpp = 32 };
	unsigned int open = accmem_nr_descriptors();
	int d;

	ASSERT_EQ(0, gem_call(self->gem, CREATE_DUMB, &dumb));
	d = gem_export(self->gem, dumb.handle);
	ASSERT_LE(0, d);
	EXPECT_EQ(-EOPNOTSUPP, import_foreign(self->fd, d));
	EXPECT_EQ(0, gem_close(self->gem, dumb.handle));
	EXPECT_EQ(-EOPNOTSUPP, import_foreign(self->fd, d));
	EXPECT_EQ(dumb.size, lseek(d, 0, SEEK_END));
	close(d);
	EXPECT_EQ(-EBADF, import_foreign(self->fd, d));
	EXPECT_EQ(open, accmem_nr_descriptors());
}

ACCMEM_HARNESS_MAIN
