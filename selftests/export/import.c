// SPDX-License-Identifier: GPL-2.0
/*
 * IMPORT: one memory with names in two contexts, and what IMPORT refuses.
 */
#include "export_util.h"
#include "stream_util.h"

FIXTURE(import)
{
	int fd; /* exports */
	int other; /* imports */
	int d;
	struct accmem_info info;
	struct accmem_alloc a;
	struct accmem_import_buffer i;
};

ACCMEM_VARIANTS(import);

FIXTURE_SETUP(import)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	self->other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	self->d = export_all(self->fd, &self->a);
	ASSERT_LE(0, self->d);
	self->i.fd = self->d;
}

FIXTURE_TEARDOWN(import)
{
	close(self->d);
	close(self->other);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

static int import(int fd, struct accmem_import_buffer *i)
{
	i->size = sizeof(*i);
	return accmem_ioctl(fd, ACCMEM_IOC_IMPORT, i);
}

TEST_F(import, the_answer)
{
	struct accmem_query q;

	EXPECT_NE(0, self->info.features & ACCMEM_FEATURE_IMPORT);
	ASSERT_EQ(0, import(self->other, &self->i));
	EXPECT_EQ(KIB(64), self->i.length);
	EXPECT_NE(0, self->i.address);
	ASSERT_EQ(0,
		  accmem_ioctl_query(self->other, self->i.address + 5000, &q));
	EXPECT_EQ(self->i.address, q.base);
	EXPECT_EQ(KIB(64), q.usable);
	EXPECT_EQ(KIB(64), q.footprint);
	EXPECT_EQ(self->i.mmap_offset, q.mmap_offset);
	EXPECT_EQ(ACCMEM_QUERY_IMPORTED, q.alloc_flags);
	if (self->info.translation == ACCMEM_TRANSLATION_IDENTITY)
		EXPECT_EQ(self->a.address, self->i.address);
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, self->a.address, &q));
	EXPECT_EQ(0, q.alloc_flags & ACCMEM_QUERY_IMPORTED);
}

TEST_F(import, shows_the_same_memory)
{
	struct accmem_access x = {
		.op = ACCMEM_ACCESS_FILL,
		.data = 0x42,
		.length = 100,
	};
	char *p = accmem_mapped(self->fd, &self->a, KIB(64)), *q;

	self->i.offset = KIB(16);
	self->i.length = KIB(32);
	ASSERT_EQ(0, import(self->other, &self->i));
	q = accmem_mmap_at(NULL, self->other, self->i.mmap_offset, KIB(32), RW,
			   MAP_SHARED);
	ASSERT_NE(NULL, q);
	accmem_fill(p, KIB(64), 1);
	EXPECT_EQ(0, memcmp(p + KIB(16), q, KIB(32)));
	q[100] = 77;
	EXPECT_EQ(77, p[KIB(16) + 100]);
	x.address = self->i.address + KIB(4);
	ASSERT_EQ(0, accmem_ioctl_access(self->other, &x));
	EXPECT_EQ(0x42, p[KIB(20)]);
	EXPECT_EQ(0x42, p[KIB(20) + 99]);
	munmap(q, KIB(32));
	munmap(p, KIB(64));
}

/* The part is all that the importer gets. */
TEST_F(import, ends_with_its_part)
{
	struct accmem_access x = {
		.op = ACCMEM_ACCESS_FILL,
		.length = KIB(8),
	};

	self->i.offset = KIB(16);
	self->i.length = KIB(4);
	ASSERT_EQ(0, import(self->other, &self->i));
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, self->other, self->i.mmap_offset,
				       KIB(8), RW, MAP_SHARED));
	EXPECT_EQ(ENXIO, errno);
	x.address = self->i.address;
	EXPECT_EQ(-ENXIO, accmem_ioctl_access(self->other, &x));
	EXPECT_EQ(-ENXIO, export_part(self->other, x.address, KIB(8), 0));
	EXPECT_EQ(-ENOENT, export_part(self->other, x.address + KIB(4), 0, 0));
	EXPECT_EQ(-ENOENT, export_part(self->other, x.address - KIB(4), 0, 0));
}

TEST_F(import, bad_arguments)
{
	struct accmem_import_buffer i = self->i;
	int fd;

	i.offset = 64;
	EXPECT_EQ(-EINVAL, import(self->other, &i));
	i.offset = 0;
	i.length = 64;
	EXPECT_EQ(-EINVAL, import(self->other, &i));
	i.length = KIB(68);
	EXPECT_EQ(-ENXIO, import(self->other, &i));
	i.length = 0;
	i.offset = KIB(64);
	EXPECT_EQ(-ENXIO, import(self->other, &i));
	i.offset = ~0ull - 4095;
	EXPECT_EQ(-ENXIO, import(self->other, &i));
	i = self->i;
	i.flags = 1;
	EXPECT_EQ(-EINVAL, import(self->other, &i));
	i = self->i;
	i.reserved = 1;
	EXPECT_EQ(-EINVAL, import(self->other, &i));
	i = self->i;
	i.fd = -1;
	EXPECT_EQ(-EBADF, import(self->other, &i));
	i.fd = self->fd;
	EXPECT_EQ(-EINVAL, import(self->other, &i));
	fd = accmem_opened(strcmp(variant->path, ACCMEM_DEV_EMULATED) ?
				   ACCMEM_DEV_EMULATED :
				   ACCMEM_DEV_PHYS);
	EXPECT_EQ(-EXDEV, import(fd, &self->i));
	close(fd);
}

TEST_F(import, read_only)
{
	int reader = accmem_dev_open(variant->path, O_RDONLY);

	ASSERT_LE(0, reader);
	close(self->d);
	self->d = export_part(self->fd, self->a.address, 0,
			      ACCMEM_EXPORT_READ_ONLY);
	self->i.fd = self->d;
	EXPECT_EQ(-EACCES, import(self->other, &self->i));
	EXPECT_EQ(0, import(reader, &self->i));
	EXPECT_EQ(-EACCES, export_part(reader, self->i.address, 0, 0));
	close(reader);
}

/* The importer keeps the memory when the exporter has ended. */
TEST_F(import, outlives_the_exporter)
{
	EXPECT_EQ(0, fill_at(self->fd, self->a.address, KIB(64), 3));
	ASSERT_EQ(0, import(self->other, &self->i));
	close(self->d);
	close(self->fd);
	self->fd = accmem_opened(variant->path);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "detached_bytes",
					KIB(64), 5000));
	EXPECT_EQ(-1,
		  check_at(self->other, self->i.address, KIB(64), KIB(64), 3));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->i.address));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
	self->d = -1;
}

TEST_F(import, free_of_the_name)
{
	EXPECT_EQ(0, fill_at(self->fd, self->a.address, KIB(64), 4));
	ASSERT_EQ(0, import(self->other, &self->i));
	EXPECT_LE(KIB(64), accmem_charged(self->other));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->i.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->other, self->i.address));
	EXPECT_EQ(0, accmem_charged(self->other));
	EXPECT_EQ(-1, check_at(self->fd, self->a.address, KIB(64), KIB(64), 4));
	/* and again */
	self->i.length = 0;
	ASSERT_EQ(0, import(self->other, &self->i));
	EXPECT_EQ(-EPERM, accmem_ioctl_realloc(self->other, self->i.address,
					       KIB(128), 0, NULL));
}

/* A free of the name at a position of a stream; nobody gets the memory before or after. */
TEST_F(import, free_on_a_stream)
{
	struct accmem_alloc b = { .length = KIB(64) };
	int stream = stream_created(self->other);

	EXPECT_EQ(0, fill_at(self->fd, self->a.address, KIB(64), 5));
	ASSERT_EQ(0, import(self->other, &self->i));
	ASSERT_EQ(0, stream_free(self->other, self->i.address, stream, 1));
	b.page_policy = ACCMEM_PAGE_NORMAL_ONLY;
	ASSERT_EQ(0, stream_alloc(self->other, stream, &b));
	EXPECT_EQ(0, device_fill_at(self->other, b.address, KIB(64), 6));
	EXPECT_EQ(-1, check_at(self->fd, self->a.address, KIB(64), KIB(64), 5));
	EXPECT_EQ(0, stream_signal(stream, 1));
	EXPECT_EQ(-1, check_at(self->fd, self->a.address, KIB(64), KIB(64), 5));
	EXPECT_EQ(0, accmem_charged(self->fd) % KIB(4));
	close(stream);
}

/* With identity translation a context has one name of a granule. */
TEST_F(import, in_the_same_context)
{
	bool identity = self->info.translation == ACCMEM_TRANSLATION_IDENTITY;

	EXPECT_EQ(identity ? -EEXIST : 0, import(self->fd, &self->i));
	if (!identity)
		EXPECT_NE(self->a.address, self->i.address);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	self->i.length = 0;
	EXPECT_EQ(0, import(self->fd, &self->i));
	if (identity)
		EXPECT_EQ(self->a.address, self->i.address);
	self->i.length = 0;
	EXPECT_EQ(identity ? -EEXIST : 0, import(self->fd, &self->i));
}

/* The exporter cannot take away what is imported, also when the dma-buf is closed. */
TEST_F(import, realloc_of_the_exporter)
{
	struct accmem_realloc r;
	struct accmem_alloc b;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(256),
					ACCMEM_ALLOC_RESIZABLE, &b));
	EXPECT_EQ(0, fill_at(self->fd, b.address, KIB(256), 7));
	close(self->d);
	self->d = export_all(self->fd, &b);
	self->i.fd = self->d;
	ASSERT_EQ(0, import(self->other, &self->i));
	close(self->d);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, b.address, KIB(4), 0, &r));
	EXPECT_EQ(KIB(256), r.footprint);
	EXPECT_EQ(-1, check_at(self->other, self->i.address, KIB(256), KIB(256),
			       7));
	self->d = -1;
}

TEST_F(import, revoked)
{
	ASSERT_EQ(0, exports_tell(variant->path, "revoke"));
	EXPECT_EQ(-ECONNRESET, import(self->other, &self->i));
	ASSERT_EQ(0, exports_tell(variant->path, "resume"));
	EXPECT_EQ(0, import(self->other, &self->i));
}

TEST_F(import, limit_of_the_context)
{
	int64_t limit = accmem_param("max_bytes_per_context");

	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", KIB(60)));
	EXPECT_EQ(-EDQUOT, import(self->other, &self->i));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", limit));
	EXPECT_EQ(0, accmem_charged(self->other));
	EXPECT_EQ(0, import(self->other, &self->i));
}

struct reexport {
	const char *path;
	int d;
};

/* Exports an import twice, as another user than that of the memory. */
static int exports_an_import(void *arg)
{
	struct reexport *r = arg;
	struct accmem_import_buffer i = { .fd = r->d };
	int fd = accmem_dev_open(r->path, O_RDWR), d, n;

	ACCMEM_MUST(fd >= 0 && !import(fd, &i));
	for (n = 0; n < 2; n++) {
		d = export_part(fd, i.address, 0, 0);
		ACCMEM_MUST(d >= 0);
		close(d);
	}
	return 0;
}

/* The end of an export gives the charge back to the user who was charged. */
TEST_F(import, export_of_an_import_is_the_importers)
{
	struct reexport r = { variant->path, self->d };
	int d;

	ASSERT_EQ(0, chmod(variant->path, 0666));
	EXPECT_EQ(0, accmem_as_user(4321, exports_an_import, &r));
	ASSERT_EQ(0, chmod(variant->path, 0600));
	/* the count of this user is neither below 0 nor wrong */
	d = export_all(self->fd, &self->a);
	EXPECT_LE(0, d);
	close(d);
}

/* 32 names in other contexts need no descriptor once they are made. */
TEST_F(import, many_names)
{
	int fds[32], n;

	EXPECT_EQ(0, fill_at(self->fd, self->a.address, KIB(64), 8));
	for (n = 0; n < 32; n++) {
		fds[n] = accmem_opened(variant->path);
		self->i.length = 0;
		ASSERT_EQ(0, import(fds[n], &self->i));
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	close(self->d);
	self->d = -1;
	for (n = 0; n < 31; n++)
		close(fds[n]);
	EXPECT_EQ(-1, check_at(fds[31], self->i.address, KIB(64), KIB(64), 8));
	close(fds[31]);
}

ACCMEM_HARNESS_MAIN
