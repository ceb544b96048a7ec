// SPDX-License-Identifier: GPL-2.0
/*
 * Charges of tenants. A tenant is charged for all memory that no other tenant can use:
 * complete compound pages and slab pages. The charge stays when the context has ended
 * and a mapping or a pin still holds the memory.
 */
#include "accmem_test.h"

#define USER 65534
#define ROUNDS 256
#define ALL 4096

static const char *const names[] = { "max_contexts_per_user",
				     "max_bytes_per_user",
				     "max_bytes_per_context" };

FIXTURE(tenant_charge)
{
	int64_t saved[3];
	mode_t mode;
	int fd;
	struct accmem_info info;
	uint64_t unit; /* the charge for one granule */
};

ACCMEM_VARIANTS(tenant_charge);

FIXTURE_SETUP(tenant_charge)
{
	struct rlimit files = { 4096, 4096 };
	struct stat st;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		self->saved[i] = accmem_param(names[i]);
		ASSERT_LE(0, self->saved[i]);
	}
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	ASSERT_EQ(0, stat(variant->path, &st));
	self->mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(variant->path, 0666));
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->unit = accmem_owns_folios(&self->info) ? MIB(2) : 4096;
}

FIXTURE_TEARDOWN(tenant_charge)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(0, accmem_param_set(names[i], self->saved[i]));
	}
	chmod(variant->path, self->mode);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

/* --- contexts that have ended -------------------------------------------- */

/* opens a context, maps a buffer of @length bytes and closes the context; the mapping */
static void *mapping_of_ended(const char *path, uint64_t length)
{
	int fd = accmem_dev_open(path, O_RDWR);
	struct accmem_alloc a;
	void *p = NULL;

	if (fd < 0)
		return NULL;
	if (!accmem_alloc_bytes(fd, length, 0, &a))
		p = accmem_mmap(fd, &a, 4096, RW);
	close(fd);
	return p;
}

static int mapped_counts(void *arg)
{
	const char *path = arg;
	void *p = mapping_of_ended(path, 8192);
	int fd;

	ACCMEM_MUST(p);
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	munmap(p, 4096);
	fd = accmem_opened(path);
	close(fd);
	return 0;
}

TEST_F(tenant_charge, an_ended_context_counts_while_it_is_mapped)
{
	ASSERT_EQ(0, accmem_param_set(names[0], 1));
	EXPECT_EQ(0,
		  accmem_as_user(USER, mapped_counts, (void *)variant->path));
}

static int pinned_counts(void *arg)
{
	const char *path = arg;
	uint64_t end = accmem_ms() + 20000;
	void *p = mapping_of_ended(path, 8192);
	int pipes[2], fd;

	ACCMEM_MUST(p);
	memset(p, 1, 4096);
	ACCMEM_MUST(accmem_pin(pipes, p, 4096));
	munmap(p, 4096);
	ACCMEM_MUST(accmem_dev_open(path, O_RDWR) == -EMFILE);
	accmem_unpin(pipes);
	do {
		usleep(10000);
		fd = accmem_dev_open(path, O_RDWR);
	} while (fd == -EMFILE && accmem_ms() < end);
	ACCMEM_MUST(fd >= 0);
	close(fd);
	return 0;
}

TEST_F(tenant_charge, an_ended_context_counts_while_it_is_pinned)
{
	if (!(self->info.features & ACCMEM_FEATURE_PIN))
		return;
	ASSERT_EQ(0, accmem_param_set(names[0], 1));
	EXPECT_EQ(0,
		  accmem_as_user(USER, pinned_counts, (void *)variant->path));
}

/* The charge of the context of @pid in debugfs, or -1 if it is not listed. */
static int64_t listed(const char *path, pid_t pid)
{
	static char text[1 << 16];
	unsigned long long id, buffers, bytes;
	char *line, *save, comm[64];
	unsigned int uid;
	int of;

	if (accmem_debug_read(path, "contexts", text, sizeof(text)) <= 0)
		return -2;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%llu %d %63s %u %llu %llu", &id, &of, comm,
			   &uid, &buffers, &bytes) == 6 &&
		    of == pid)
			return bytes;
	return -1;
}

static int maps_and_ends(void *arg)
{
	return !mapping_of_ended(arg, 8192);
}

TEST_F(tenant_charge, debugfs_lists_ended_contexts_that_hold_memory)
{
	pid_t pid;

	pid = accmem_start(maps_and_ends, accmem_rest, (void *)variant->path);
	ASSERT_LT(0, pid);
	EXPECT_EQ(accmem_owns_folios(&self->info) ? MIB(2) : 8192,
		  listed(variant->path, pid));
	accmem_stop(pid);
	EXPECT_EQ(-1, listed(variant->path, pid));
}

/* --- rounds of open, allocate, map, close -------------------------------- */

struct rounds {
	const char *path;
	uint64_t length;
	uint64_t alignment;
};

/* makes mappings of ended contexts until the limit refuses one */
static int hoards(void *arg)
{
	struct rounds *r = arg;
	unsigned int i, n = 0;

	for (i = 0; i < ROUNDS; i++)
		n += !!mapping_of_ended(r->path, r->length);
	printf("# %u of %u rounds were granted\n", n, i);
	return 0;
}

static int hoards_as_user(void *arg)
{
	if (setgid(USER) || setuid(USER))
		return 1;
	return hoards(arg);
}

/* the number of bytes that a new context cannot allocate */
static int64_t withheld(int fd, uint64_t capacity)
{
	static struct accmem_alloc all[ALL];
	int n = accmem_take_all(fd, 0, all, ALL), i;
	int64_t sum = 0;

	if (n < 0)
		return n;
	for (i = 0; i < n; i++) {
		sum += all[i].footprint;
		accmem_ioctl_free(fd, all[i].address);
	}
	return capacity - sum;
}

static void run_rounds(struct __test_metadata *_metadata, const char *path,
		       int fd, uint64_t capacity, uint64_t most)
{
	struct rounds r = { .path = path, .length = 64 };
	struct accmem_alloc a;
	int64_t lost;
	pid_t pid;

	pid = accmem_start(hoards_as_user, accmem_rest, &r);
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, accmem_alloc_bytes(fd, 4096, 0, &a));
	EXPECT_EQ(0, accmem_ioctl_free(fd, a.address));
	lost = withheld(fd, capacity);
	EXPECT_LE(0, lost);
	EXPECT_GE(most, (uint64_t)lost)
	{
		TH_LOG("%lld of %llu bytes are withheld", (long long)lost,
		       (unsigned long long)capacity);
	}
	accmem_stop(pid);
}

TEST_F(tenant_charge, rounds_withhold_no_more_than_the_limit)
{
	ASSERT_EQ(0, accmem_param_set(names[0], 1));
	ASSERT_EQ(0, accmem_param_set(names[1], MIB(1)));
	run_rounds(_metadata, variant->path, self->fd, self->info.capacity,
		   MIB(1));
}

TEST_F(tenant_charge, rounds_of_many_contexts_withhold_no_more)
{
	ASSERT_EQ(0, accmem_param_set(names[0], 0));
	ASSERT_EQ(0, accmem_param_set(names[1], MIB(8)));
	run_rounds(_metadata, variant->path, self->fd, self->info.capacity,
		   MIB(8));
}

static int allocates_64(void *arg)
{
	int fd = accmem_dev_open(arg, O_RDWR);
	struct accmem_alloc a;

	return fd < 0 ? 255 : -accmem_alloc_bytes(fd, 64, 0, &a);
}

/* A buffer of 64 bytes withholds a compound page, or a granule on devices without them. */
TEST_F(tenant_charge, a_small_block_is_refused_for_what_it_withholds)
{
	ASSERT_EQ(0, accmem_param_set(names[1], self->unit - 1));
	EXPECT_EQ(EDQUOT,
		  accmem_as_user(USER, allocates_64, (void *)variant->path));
	ASSERT_EQ(0, accmem_param_set(names[1], self->unit));
	EXPECT_EQ(0, accmem_as_user(USER, allocates_64, (void *)variant->path));
}

/* allocates granules that are aligned to compound pages; the number below the limit */
static int hops(void *arg)
{
	struct accmem_alloc a;
	int fd = accmem_opened(arg), n;

	for (n = 0; n < 8; n++) {
		a = (struct accmem_alloc){ .length = 4096,
					   .alignment = MIB(2) };
		if (accmem_ioctl_alloc(fd, &a))
			break;
	}
	/* the rest of the charged memory can be used */
	if (accmem_alloc_bytes(fd, 4096, 0, &a))
		return 254;
	return n;
}

TEST_F(tenant_charge, alignment_amplifies_nothing)
{
	ASSERT_EQ(0, accmem_param_set(names[1], MIB(8)));
	EXPECT_EQ(accmem_owns_folios(&self->info) ? 4 : 8,
		  accmem_as_user(USER, hops, (void *)variant->path));
}

/* --- what INFO says ------------------------------------------------------ */

TEST_F(tenant_charge, granules_of_one_folio_are_charged_once)
{
	struct accmem_alloc a[4];
	unsigned int i;

	EXPECT_EQ(0, accmem_charged(self->fd));
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a[i]));
		EXPECT_EQ(ALIGN_UP((i + 1) * 4096, self->unit),
			  accmem_charged(self->fd));
		/* wait for the cleaner, which may hold a part of the folio */
		EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "dirty_bytes", 0,
						20000));
	}
	for (i = 0; i < ARRAY_SIZE(a); i++) {
		EXPECT_EQ(ALIGN_UP((4 - i) * 4096, self->unit),
			  accmem_charged(self->fd));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	EXPECT_EQ(0, accmem_charged(self->fd));
}

TEST_F(tenant_charge, small_blocks_are_charged_by_the_slab_page)
{
	struct accmem_alloc a[65];
	unsigned int i;

	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a[i]));
		ASSERT_EQ(self->unit, accmem_charged(self->fd));
	}
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a[64]));
	EXPECT_EQ(ALIGN_UP(2 * 4096, self->unit), accmem_charged(self->fd));
	for (i = 0; i < 64; i++) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[i].address));
	}
	EXPECT_EQ(self->unit, accmem_charged(self->fd));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[64].address));
	EXPECT_EQ(0, accmem_charged(self->fd));
}

/* The granules of two tenants are in different folios, and charged separately. */
TEST_F(tenant_charge, tenants_are_charged_apart)
{
	int other = accmem_opened(variant->path);
	struct accmem_alloc a, b;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a));
	EXPECT_EQ(0, accmem_charged(other));
	ASSERT_EQ(0, accmem_alloc_bytes(other, 64, 0, &b));
	EXPECT_EQ(self->unit, accmem_charged(self->fd));
	EXPECT_EQ(self->unit, accmem_charged(other));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	EXPECT_EQ(0, accmem_charged(self->fd));
	EXPECT_EQ(self->unit, accmem_charged(other));
	close(other);
}

/* All of the charged memory can be used, to the last granule. */
TEST_F(tenant_charge, a_limit_can_be_filled)
{
	struct accmem_alloc a;
	unsigned int i;

	ASSERT_EQ(0, accmem_param_set(names[2], MIB(2)));
	for (i = 0; i < MIB(2) / 4096; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a))
		{
			TH_LOG("after %u granules", i);
		}
	}
	EXPECT_EQ(MIB(2), accmem_charged(self->fd));
	EXPECT_EQ(-EDQUOT, accmem_alloc_bytes(self->fd, 4096, 0, &a));
}

ACCMEM_HARNESS_MAIN
