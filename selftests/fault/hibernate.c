// SPDX-License-Identifier: GPL-2.0
/*
 * Hibernation: the image contains emulated memory, but not a physical range. The driver revokes
 * a physical range before the image is made. accmem_test_pm.ko makes the calls of the kernel.
 */
#include "export_util.h"
#include "revoke_util.h"

#define MODULE "accmem_test_pm"

FIXTURE(hibernate)
{
	int fd;
	bool in_image;
	struct accmem_alloc a;
	char *p;
};

ACCMEM_VARIANTS(hibernate);

static const uint64_t size = MIB(4);

/* one call of the kernel, for the driver of a device; 0 or -errno */
static int call(const char *path, const char *operation)
{
	struct target t;
	char text[512];

	target_find(&t, path);
	snprintf(text, sizeof(text), "platform %s %s", t.name, operation);
	accmem_open_test_device("/sys/module/" MODULE, MODULE ".ko");
	return accmem_write_file("/sys/module/" MODULE "/parameters/call",
				 text);
}

FIXTURE_SETUP(hibernate)
{
	if (access("/sys/power/state", F_OK))
		SKIP(return, "the kernel cannot sleep");
	self->fd = accmem_opened(variant->path);
	self->in_image = !strcmp(variant->path, ACCMEM_DEV_EMULATED);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, size, 0, &self->a));
	self->p = accmem_mapped(self->fd, &self->a, size);
	accmem_fill(self->p, size, 1);
}

FIXTURE_TEARDOWN(hibernate)
{
	munmap(self->p, size);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

TEST_F(hibernate, memory_is_as_before_if_the_image_is_not_used)
{
	ASSERT_EQ(0, call(variant->path, "freeze"));
	if (!self->in_image)
		EXPECT_EQ(SIGBUS, accmem_try_write(self->p, 1));
	ASSERT_EQ(0, call(variant->path, "thaw"));
	EXPECT_EQ(-1, accmem_check(self->p, size, 1));
}

TEST_F(hibernate, memory_is_lost_unless_the_image_has_it)
{
	struct accmem_alloc a;
	char *p;

	ASSERT_EQ(0, call(variant->path, "freeze"));
	ASSERT_EQ(0, call(variant->path, "restore"));
	if (self->in_image) {
		EXPECT_EQ(-1, accmem_check(self->p, size, 1));
		return;
	}
	EXPECT_EQ(SIGBUS, accmem_try_write(self->p, 1));
	EXPECT_EQ(-ECONNRESET, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, size, 0, &a));
	p = accmem_mapped(self->fd, &a, size);
	EXPECT_EQ(-1, accmem_first_nonzero(p, size));
	munmap(p, size);
}

TEST_F(hibernate, sleep_keeps_memory)
{
	ASSERT_EQ(0, call(variant->path, "suspend"));
	EXPECT_EQ(-1, accmem_check(self->p, size, 1));
	ASSERT_EQ(0, call(variant->path, "resume"));
	EXPECT_EQ(-1, accmem_check(self->p, size, 1));
}

/* An importing device that keeps its mapping prevents hibernation. */
TEST_F(hibernate, refused_while_another_device_has_the_memory)
{
	int d = export_all(self->fd, &self->a), importer;

	ASSERT_LE(0, d);
	importer = importer_attach(d, 0);
	ASSERT_LE(0, importer);
	ASSERT_EQ(0, importer_map(importer, TEST_IMPORTER_BOTH));
	EXPECT_EQ(self->in_image ? 0 : -EBUSY, call(variant->path, "freeze"));
	EXPECT_EQ(-1, accmem_check(self->p, size, 1));
	close(importer);
	close(d);
	EXPECT_EQ(0, call(variant->path, "freeze"));
	EXPECT_EQ(0, call(variant->path, "thaw"));
	EXPECT_EQ(-1, accmem_check(self->p, size, 1));
}

ACCMEM_HARNESS_MAIN
