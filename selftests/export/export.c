// SPDX-License-Identifier: GPL-2.0
/*
 * EXPORT: arguments that it refuses, the life of the memory, and mappings of the dma-buf.
 * No importer is attached; export_importer.c has importers.
 */
#include "export_util.h"

ACCMEM_FIXTURE(export)

static int free_all(int fd, const struct accmem_alloc *a, int n)
{
	while (n--)
		if (accmem_ioctl_free(fd, a[n].address))
			return -1;
	return 0;
}

/* the largest number of buffers of 1 MiB that can be allocated now */
static int count_mib(int fd)
{
	static struct accmem_alloc a[2048];
	int n = 0;

	while (n < 2048 && !accmem_alloc_bytes(fd, MIB(1), 0, &a[n]))
		n++;
	return free_all(fd, a, n) ? -1 : n;
}

TEST_F(export, feature)
{
	EXPECT_NE(0, self->info.features & ACCMEM_FEATURE_EXPORT);
}

TEST_F(export, the_answer)
{
	struct accmem_export_buffer e = {};

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	e.address = self->a.address;
	ASSERT_EQ(0, export_call(self->fd, &e));
	EXPECT_EQ(KIB(64), e.length);
	EXPECT_EQ(FD_CLOEXEC, fcntl(e.fd, F_GETFD));
	EXPECT_EQ(O_RDWR, fcntl(e.fd, F_GETFL) & O_ACCMODE);
	EXPECT_EQ(KIB(64), lseek(e.fd, 0, SEEK_END));
	close(e.fd);
}

TEST_F(export, bad_arguments)
{
	uint64_t at;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	at = self->a.address;
	EXPECT_EQ(-EINVAL, export_part(self->fd, at + 64, 0, 0));
	EXPECT_EQ(-EINVAL, export_part(self->fd, at, 64, 0));
	EXPECT_EQ(-EINVAL, export_part(self->fd, at, 0, 4));
	EXPECT_EQ(-EINVAL, export_part(self->fd, at, 0, 1u << 31));
	EXPECT_EQ(-EOVERFLOW, export_part(self->fd, at, ~0ull - 4095, 0));
	EXPECT_EQ(-ENXIO, export_part(self->fd, at, KIB(68), 0));
	EXPECT_EQ(-ENXIO, export_part(self->fd, at + KIB(60), KIB(8), 0));
	EXPECT_EQ(-ENXIO, export_part(self->fd, at, 1ull << 40, 0));
	EXPECT_EQ(-ENOENT, export_part(self->fd, at + KIB(64), 0, 0));
	EXPECT_EQ(-ENOENT, export_part(self->fd, 0, 0, 0));
	EXPECT_EQ(-ENOENT, export_part(self->fd, ~0ull - 4095, 0, 0));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, at));
	EXPECT_EQ(-ENOENT, export_part(self->fd, at, 0, 0));
}

TEST_F(export, bad_structures)
{
	struct accmem_export_buffer e = {
		.size = sizeof(e),
		.reserved = 1,
	};

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	e.address = self->a.address;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_EXPORT, &e));
	e.reserved = 0;
	e.size = sizeof(e) - 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_EXPORT, &e));
	EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, ACCMEM_IOC_EXPORT, NULL));
}

/* The answer cannot be written: no descriptor is left, and no export. */
TEST_F(export, answer_cannot_be_written)
{
	unsigned int open = accmem_nr_descriptors();
	struct accmem_export_buffer *e;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	e = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, e);
	e->size = sizeof(*e);
	e->address = self->a.address;
	ASSERT_EQ(0, mprotect(e, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, ACCMEM_IOC_EXPORT, e));
	EXPECT_EQ(open, accmem_nr_descriptors());
	munmap(e, 4096);
}

TEST_F(export, another_context_has_other_buffers)
{
	int other = accmem_opened(variant->path);

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	EXPECT_EQ(-ENOENT, export_part(other, self->a.address, 0, 0));
	close(other);
}

TEST_F(export, shared_memory_is_refused)
{
	self->a.length = MIB(2);
	self->a.kind = ACCMEM_KIND_SHARED;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
	EXPECT_EQ(-EOPNOTSUPP, export_all(self->fd, &self->a));
}

/* A file that may only read can export for reading only. */
TEST_F(export, a_reader_exports_for_reading)
{
	int reader = accmem_dev_open(variant->path, O_RDONLY), d;
	void *p;

	ASSERT_LE(0, reader);
	ASSERT_EQ(0, accmem_alloc_bytes(reader, KIB(64), 0, &self->a));
	EXPECT_EQ(-EACCES, export_all(reader, &self->a));
	d = export_part(reader, self->a.address, 0, ACCMEM_EXPORT_READ_ONLY);
	ASSERT_LE(0, d);
	EXPECT_EQ(O_RDONLY, fcntl(d, F_GETFL) & O_ACCMODE);
	errno = 0;
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, d, 0, KIB(64), RW, MAP_SHARED));
	EXPECT_EQ(EACCES, errno);
	p = accmem_mmap_at(NULL, d, 0, KIB(64), PROT_READ, MAP_SHARED);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(0, *(volatile char *)p);
	EXPECT_EQ(-1, mprotect(p, KIB(64), RW));
	munmap(p, KIB(64));
	close(d);
	close(reader);
}

/* A mapping of the dma-buf and a mapping of the buffer show the same memory. */
TEST_F(export, mmap_shows_the_memory)
{
	char *p, *q;
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &self->a));
	p = accmem_mapped(self->fd, &self->a, MIB(4));
	accmem_fill(p, MIB(4), 1);
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	q = accmem_mmap_at(NULL, d, 0, MIB(4), RW, MAP_SHARED);
	ASSERT_NE(NULL, q);
	EXPECT_EQ(-1, accmem_check(q, MIB(4), 1));
	accmem_fill(q, MIB(4), 2);
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 2));
	munmap(p, MIB(4));
	munmap(q, MIB(4));
	close(d);
}

TEST_F(export, mmap_of_a_part)
{
	char *p, *q;
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	p = accmem_mapped(self->fd, &self->a, KIB(64));
	accmem_fill(p, KIB(64), 1);
	d = export_part(self->fd, self->a.address + KIB(16), KIB(32), 0);
	ASSERT_LE(0, d);
	EXPECT_EQ(KIB(32), lseek(d, 0, SEEK_END));
	q = accmem_mmap_at(NULL, d, KIB(4), KIB(28), RW, MAP_SHARED);
	ASSERT_NE(NULL, q);
	EXPECT_EQ(0, memcmp(q, p + KIB(20), KIB(28)));
	EXPECT_EQ(NULL,
		  accmem_mmap_at(NULL, d, KIB(4), KIB(32), RW, MAP_SHARED));
	EXPECT_EQ(NULL,
		  accmem_mmap_at(NULL, d, KIB(32), KIB(4), RW, MAP_SHARED));
	munmap(q, KIB(28));
	munmap(p, KIB(64));
	close(d);
}

TEST_F(export, mmap_refuses)
{
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, d, 0, KIB(64), RW, MAP_PRIVATE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, d, 0, KIB(64),
				       PROT_READ | PROT_EXEC, MAP_SHARED));
	/* since 6.17 the file system of dma-bufs is noexec */
	EXPECT_TRUE(errno == EACCES || errno == EPERM);
	close(d);
}

/* The export keeps the memory after FREE: it is detached, and not given to others. */
TEST_F(export, lives_after_free)
{
	const uint64_t size = MIB(8);
	int d, most = count_mib(self->fd);
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, size, 0, &self->a));
	EXPECT_EQ(0, fill_at(self->fd, self->a.address, size, 3));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_LE(size, accmem_sysfs(variant->path, "detached_bytes"));
	EXPECT_GE(most - 8, count_mib(self->fd));
	p = accmem_mmap_at(NULL, d, 0, size, RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, size, 3));
	munmap(p, size);
	close(d);
	EXPECT_EQ(most, count_mib(self->fd));
}

/* It keeps the memory, and the charge, after the end of the context. */
TEST_F(export, lives_after_close)
{
	int other = accmem_opened(variant->path), d;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(other, MIB(4), 0, &self->a));
	EXPECT_EQ(0, fill_at(other, self->a.address, MIB(4), 4));
	d = export_all(other, &self->a);
	ASSERT_LE(0, d);
	close(other);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "detached_bytes", MIB(4),
					5000));
	p = accmem_mmap_at(NULL, d, 0, MIB(4), RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 4));
	close(d);
	/* now the mapping alone keeps it */
	EXPECT_EQ(-1, accmem_check(p, MIB(4), 4));
	munmap(p, MIB(4));
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
}

/* What was written through the dma-buf does not reach the next context. */
TEST_F(export, memory_is_cleared_for_others)
{
	int other = accmem_opened(variant->path), d, n, i;
	static struct accmem_alloc a[64];
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(32), 0, &self->a));
	d = export_all(self->fd, &self->a);
	p = accmem_mmap_at(NULL, d, 0, KIB(32), RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	memset(p, 0x5a, KIB(32));
	munmap(p, KIB(32));
	close(d);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	for (n = 0; n < 64; n++)
		if (accmem_alloc_bytes(other, KIB(32), 0, &a[n]))
			break;
	for (i = 0; i < n; i++)
		EXPECT_EQ(-1, check_at(other, a[i].address, 0, KIB(32), 0));
	close(other);
}

/* A freed buffer that is exported is not what the next ALLOC of its context gets. */
TEST_F(export, freed_memory_is_not_reused)
{
	struct accmem_alloc again;
	int d, i;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(8), 0, &self->a));
	d = export_all(self->fd, &self->a);
	p = accmem_mmap_at(NULL, d, 0, KIB(8), RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	accmem_fill(p, KIB(8), 5);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(8), 0, &again));
		EXPECT_EQ(0,
			  device_fill_at(self->fd, again.address, KIB(8), 6));
	}
	EXPECT_EQ(-1, accmem_check(p, KIB(8), 5));
	munmap(p, KIB(8));
	close(d);
}

/* Small buffers: the granule that they share is exported. */
TEST_F(export, small_buffers)
{
	struct accmem_alloc b;
	uint64_t page;
	char *p;
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &b));
	page = self->a.address & ~4095ull;
	ASSERT_EQ(page, b.address & ~4095ull);
	d = export_part(self->fd, page, 0, 0);
	ASSERT_LE(0, d);
	EXPECT_EQ(4096, lseek(d, 0, SEEK_END));
	p = accmem_mmap_at(NULL, d, 0, 4096, RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	memset(p + (b.address - page), 7, 64);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	/* the slots of @b wait until the export and its mapping are gone */
	EXPECT_EQ(7, p[b.address - page]);
	munmap(p, 4096);
	close(d);
}

TEST_F(export, many_of_one_buffer)
{
	unsigned int i;
	int d[32];

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(128), 0, &self->a));
	for (i = 0; i < 32; i++) {
		d[i] = export_part(self->fd, self->a.address + i * 4096, 4096,
				   0);
		ASSERT_LE(0, d[i]);
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	for (i = 0; i < 31; i++)
		close(d[i]);
	EXPECT_LE(KIB(128), accmem_sysfs(variant->path, "detached_bytes"));
	close(d[31]);
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "detached_bytes", 0, 5000));
}

/* REALLOC neither frees nor moves memory that is exported. */
TEST_F(export, realloc)
{
	struct accmem_realloc r;
	char *p;
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(256),
					ACCMEM_ALLOC_RESIZABLE, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	p = accmem_mmap_at(NULL, d, 0, KIB(256), RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	accmem_fill(p, KIB(256), 8);
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, KIB(4), 0,
					  &r));
	EXPECT_EQ(self->a.address, r.address);
	EXPECT_EQ(KIB(256), r.footprint);
	EXPECT_EQ(-1, accmem_check(p, KIB(256), 8));
	munmap(p, KIB(256));
	close(d);
	/* now the rest is freed */
	ASSERT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, KIB(4), 0,
					  &r));
}

/* A neighbour prevents growth in place; then the buffer would have to move. */
TEST_F(export, realloc_that_would_move)
{
	struct accmem_alloc next = { .length = KIB(64) };
	struct accmem_realloc r;
	int d;

	self->a.length = KIB(64);
	self->a.address = self->info.address_base + MIB(16);
	self->a.flags = ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_FIXED;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
	next.flags = ACCMEM_ALLOC_FIXED;
	next.address = self->a.address + self->a.footprint;
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &next));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	EXPECT_EQ(-EBUSY, accmem_ioctl_realloc(self->fd, self->a.address,
					       KIB(256), 0, &r));
	close(d);
	EXPECT_EQ(0, accmem_ioctl_realloc(self->fd, self->a.address, KIB(256),
					  0, &r));
}

/* Host memory and the cache modes of the device. */
TEST_F(export, kinds_and_modes)
{
	struct accmem_alloc a;
	unsigned int mode;
	char *p;
	int d;

	for (mode = 0; mode <= ACCMEM_CACHE_UC + 1; mode++) {
		a = (struct accmem_alloc){ .length = KIB(64) };
		if (mode > ACCMEM_CACHE_UC)
			a.kind = ACCMEM_KIND_HOST;
		else if (self->info.cache_modes & 1u << mode)
			a.cache_mode = mode;
		else
			continue;
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		d = export_all(self->fd, &a);
		ASSERT_LE(0, d);
		EXPECT_EQ(0, device_fill_at(self->fd, a.address, KIB(64), 9));
		p = accmem_mmap_at(NULL, d, 0, KIB(64), RW, MAP_SHARED);
		ASSERT_NE(NULL, p);
		EXPECT_EQ(-1, accmem_check(p, KIB(64), 9));
		munmap(p, KIB(64));
		close(d);
	}
}

static int in_vain(void *arg)
{
	struct accmem_alloc a = {};
	int fd = accmem_dev_open(arg, O_RDWR), d, e;

	if (fd < 0 || accmem_alloc_bytes(fd, KIB(64), 0, &a))
		return 1;
	d = export_all(fd, &a);
	e = export_all(fd, &a);
	if (d < 0 || e != -EDQUOT)
		return 2;
	close(d);
	e = export_all(fd, &a);
	return e < 0 ? 3 : 0;
}

TEST_F(export, limit)
{
	int64_t limit = accmem_param("max_exports_per_user");

	ASSERT_EQ(0, chmod(variant->path, 0666));
	ASSERT_EQ(0, accmem_param_set("max_exports_per_user", 1));
	EXPECT_EQ(0, accmem_as_user(4321, in_vain, (void *)variant->path));
	EXPECT_EQ(0, accmem_param_set("max_exports_per_user", limit));
	ASSERT_EQ(0, chmod(variant->path, 0600));
}

TEST_F(export, debugfs_lists_exports)
{
	char text[4096];
	int d;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, KIB(64), 0, &self->a));
	d = export_all(self->fd, &self->a);
	ASSERT_LE(0, d);
	ASSERT_LT(0, accmem_debug_read(variant->path, "exports", text,
				       sizeof(text)));
	EXPECT_NE(NULL, strstr(text, " 65536 0x0 0 0\n"))
	{
		TH_LOG("%s", text);
	}
	close(d);
}

/* One thread exports, another frees: each export has the memory, or ENOENT. */
struct race {
	int fd;
	atomic_ulong address;
	atomic_bool stop;
	atomic_uint exported, missed;
	int err;
};

static void *export_in_a_loop(void *arg)
{
	struct race *race = arg;
	volatile char *p;
	int d;

	while (!race->stop) {
		d = export_part(race->fd, race->address, KIB(64), 0);
		if (d < 0) {
			race->missed++;
			/* the address may mean another buffer by now */
			if (d != -ENOENT && d != -ENXIO)
				race->err = d;
			continue;
		}
		race->exported++;
		p = accmem_mmap_at(NULL, d, 0, KIB(64), RW, MAP_SHARED);
		if (p) {
			p[0] = 1;
			p[KIB(63)] = 1;
			munmap((void *)p, KIB(64));
		} else {
			race->err = -errno;
		}
		close(d);
	}
	return NULL;
}

TEST_F(export, races_with_free)
{
	struct race race = {};
	unsigned int i, tries;
	pthread_t thread;

	race.fd = accmem_opened(variant->path);
	ASSERT_EQ(0, pthread_create(&thread, NULL, export_in_a_loop, &race));
	for (i = 0; i < accmem_scale(3000); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(race.fd, KIB(64), 0, &self->a));
		race.address = self->a.address;
		tries = race.exported + race.missed;
		while (i % 2 && race.exported + race.missed == tries)
			sched_yield();
		ASSERT_EQ(0, accmem_ioctl_free(race.fd, self->a.address));
	}
	race.stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, race.err);
	printf("# %u exported, %u missed\n", race.exported, race.missed);
	close(race.fd);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

/* A REALLOC, and two threads: one makes the page of the answer read-only at times, one exports */
struct grower {
	int fd;
	uint64_t address; /* of a buffer of 64 KiB */
	void *answer;
	bool stop;
	unsigned int exported;
	int err;
};

static void *change_the_page(void *arg)
{
	struct grower *g = arg;

	while (!__atomic_load_n(&g->stop, __ATOMIC_RELAXED)) {
		mprotect(g->answer, 4096, PROT_READ);
		mprotect(g->answer, 4096, RW);
	}
	return NULL;
}

/* writes to the part that REALLOC adds, and exports it */
static void *export_what_is_added(void *arg)
{
	struct grower *g = arg;
	int d;

	while (!__atomic_load_n(&g->stop, __ATOMIC_RELAXED)) {
		device_fill_at(g->fd, g->address + KIB(64), 8, 1);
		d = export_part(g->fd, g->address + KIB(64), 4096, 0);
		if (d >= 0) {
			g->exported++;
			close(d);
		} else if (d != -ENOENT && d != -ENXIO && d != -EBUSY) {
			g->err = d;
		}
	}
	return NULL;
}

TEST_F(export, races_with_a_realloc_that_is_undone)
{
	unsigned int i, undone = 0, done = 0, rounds = accmem_scale(20000);
	struct grower g = { .fd = self->fd };
	struct accmem_realloc *r;
	pthread_t threads[2];
	int memory, err;

	/* a page with two addresses: one can be written always */
	memory = memfd_create("answer", 0);
	ASSERT_EQ(0, ftruncate(memory, 4096));
	r = mmap(NULL, 4096, RW, MAP_SHARED, memory, 0);
	g.answer = mmap(NULL, 4096, RW, MAP_SHARED, memory, 0);
	ASSERT_NE(MAP_FAILED, (void *)r);
	ASSERT_NE(MAP_FAILED, g.answer);
	self->a = (struct accmem_alloc){ .length = KIB(64),
					 .reserve = MIB(1),
					 .flags = ACCMEM_ALLOC_RESIZABLE };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
	g.address = self->a.address;
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, change_the_page, &g));
	ASSERT_EQ(0,
		  pthread_create(&threads[1], NULL, export_what_is_added, &g));
	for (i = 0; i < rounds; i++) {
		*r = (struct accmem_realloc){ .size = sizeof(*r),
					      .flags = ACCMEM_REALLOC_IN_PLACE,
					      .address = g.address,
					      .length =
						      KIB(i % 2 ? 128 : 1024) };
		err = accmem_ioctl(self->fd, ACCMEM_IOC_REALLOC, g.answer);
		undone += err == -EFAULT;
		done += !err;
		if (!err)
			err = accmem_ioctl_realloc(self->fd, g.address, KIB(64),
						   0, r);
		/* the buffer keeps memory that is exported or mapped: take a new buffer */
		if (!err && r->footprint != KIB(64)) {
			ASSERT_EQ(0, accmem_ioctl_free(self->fd, g.address));
			self->a.address = 0;
			ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->a));
			g.address = self->a.address;
		}
		if (err && err != -EFAULT && err != -EBUSY) {
			EXPECT_EQ(0, err);
			break;
		}
	}
	__atomic_store_n(&g.stop, true, __ATOMIC_RELAXED);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_EQ(0, g.err);
	printf("# %u undone, %u done, %u exported\n", undone, done, g.exported);
	munmap(g.answer, 4096);
	munmap(r, 4096);
	close(memory);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, g.address));
}

ACCMEM_HARNESS_MAIN
