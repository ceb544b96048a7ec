// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that a batch made beside each other, or that a batch frees, and streams:
 * each waits for itself, whatever becomes of the others (T10).
 */
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "stream_util.h"

#define RW (PROT_READ | PROT_WRITE)
#define PATIENCE_MS 20000
#define N 16
#define PAGE 4096

FIXTURE(stream_batch)
{
	int fd;
	int stream;
	struct accmem_batch_alloc a[N];
};

ACCMEM_VARIANTS(stream_batch);

FIXTURE_SETUP(stream_batch)
{
	unsigned int i;
	uint32_t done;

	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
	self->stream = stream_create(self->fd);
	ASSERT_LE(0, self->stream);
	memset(self->a, 0, sizeof(self->a));
	for (i = 0; i < N; i++)
		self->a[i].length = PAGE;
	ASSERT_EQ(0, accmem_batch_allocs(self->fd, ACCMEM_BATCH_ATOMIC, self->a,
					 N, &done));
}

FIXTURE_TEARDOWN(stream_batch)
{
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	close(self->stream);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, PATIENCE_MS));
}

static int64_t pending(const char *path)
{
	return accmem_sysfs(path, "pending_bytes");
}

TEST_F(stream_batch, t10_each_has_its_position)
{
	int64_t start = accmem_sysfs(variant->path, "free_bytes");
	unsigned int i;

	for (i = 0; i < N; i++)
		ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
					 self->stream, 1 + (i * 7) % N));
	EXPECT_EQ(N * PAGE, pending(variant->path));
	for (i = 1; i <= N; i++) {
		ASSERT_EQ(0, stream_signal(self->stream, i));
		EXPECT_EQ((N - i) * PAGE, pending(variant->path));
		EXPECT_EQ(start + i * PAGE,
			  accmem_sysfs(variant->path, "free_bytes"));
		EXPECT_TRUE(accmem_accounts_balance(variant->path));
	}
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

/* What nobody has a name for is pending when nothing beside it has one. */
TEST_F(stream_batch, others_go_and_stay)
{
	unsigned int i;

	for (i = 0; i < N; i += 2)
		ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
					 self->stream, 1));
	EXPECT_GE(N / 2 * PAGE, pending(variant->path));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 1; i < N; i += 2)
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a[i].address));
	accmem_drain(self->fd);
	EXPECT_EQ(N / 2 * PAGE, pending(variant->path));
	EXPECT_EQ(N / 2, accmem_sysfs(variant->path, "buffers"));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(0, pending(variant->path));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

/* The one with a name is mapped: it has a memory of its own then. */
TEST_F(stream_batch, one_is_mapped_when_others_wait)
{
	struct accmem_query q;
	unsigned int i;
	char *p;

	for (i = 0; i < N; i++) {
		if (i != 5)
			ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
						 self->stream, 1));
	}
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, self->a[5].address, &q));
	p = accmem_mmap_at(NULL, self->fd, q.mmap_offset, PAGE, RW, MAP_SHARED);
	ASSERT_NE(NULL, p);
	memset(p, 1, PAGE);
	EXPECT_EQ((N - 1) * PAGE, pending(variant->path));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	/* one without a name is not */
	EXPECT_EQ(NULL, accmem_mmap_at(NULL, self->fd,
				       self->a[6].mmap_offset, PAGE, RW,
				       MAP_SHARED));
	ASSERT_EQ(0, stream_free(self->fd, self->a[5].address, self->stream,
				 2));
	EXPECT_EQ(N * PAGE, pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, 1));
	EXPECT_EQ(PAGE, pending(variant->path));
	munmap(p, PAGE);
	EXPECT_EQ(PAGE, pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, 2));
	EXPECT_EQ(0, pending(variant->path));
}

TEST_F(stream_batch, one_is_taken_before_its_time)
{
	struct accmem_alloc b = { .length = PAGE };
	unsigned int i;

	for (i = 0; i < N; i++)
		ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
					 self->stream, 1 + i));
	/* the last one is the first to be looked at */
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &b));
	EXPECT_EQ(self->a[N - 1].address, b.address);
	EXPECT_EQ(N, b.position);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, N - 1));
	EXPECT_EQ(0, pending(variant->path));
	EXPECT_EQ(1, accmem_sysfs(variant->path, "buffers"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(PAGE, pending(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, N));
	EXPECT_EQ(0, pending(variant->path));
}

/* A batch frees what was taken before its time: it waits as after FREE. */
static void free_by_batch(struct __test_metadata *_metadata, const char *path,
			  int fd, int stream, struct accmem_batch_alloc *a,
			  uint32_t flags)
{
	struct accmem_batch_free f[N] = {};
	struct accmem_alloc b;
	unsigned int i;
	uint32_t done;

	for (i = 0; i < N; i += 2) {
		ASSERT_EQ(0, stream_free(fd, a[i].address, stream, 1));
		b = (struct accmem_alloc){ .length = PAGE };
		ASSERT_EQ(0, stream_alloc(fd, stream, &b));
		ASSERT_EQ(a[i].address, b.address);
	}
	EXPECT_EQ(0, pending(path));
	for (i = 0; i < N; i++)
		f[i].address = a[i].address;
	ASSERT_EQ(0, accmem_batch_frees(fd, flags, f, N, &done));
	EXPECT_EQ(N, done);
	for (i = 0; i < N; i++)
		EXPECT_EQ(0, f[i].result);
	EXPECT_EQ(N / 2 * PAGE, pending(path));
	EXPECT_EQ(N / 2, accmem_sysfs(path, "buffers"));
	ASSERT_EQ(0, stream_signal(stream, 1));
	EXPECT_EQ(0, pending(path));
	EXPECT_EQ(0, accmem_sysfs(path, "buffers"));
}

TEST_F(stream_batch, t10_a_batch_frees_no_earlier)
{
	free_by_batch(_metadata, variant->path, self->fd, self->stream, self->a,
		      0);
}

TEST_F(stream_batch, t10_an_atomic_batch_frees_no_earlier)
{
	free_by_batch(_metadata, variant->path, self->fd, self->stream, self->a,
		      ACCMEM_BATCH_ATOMIC);
}

/* A batch has no stream. */
TEST_F(stream_batch, an_entry_cannot_ask_for_a_stream)
{
	struct accmem_batch_alloc a = { .length = PAGE,
					.flags = ACCMEM_ALLOC_STREAM };
	uint32_t done;

	EXPECT_EQ(0, accmem_batch_allocs(self->fd, 0, &a, 1, &done));
	EXPECT_EQ(1, done);
	EXPECT_EQ(-EINVAL, a.result);
	EXPECT_EQ(-EINVAL, accmem_batch_allocs(self->fd, ACCMEM_BATCH_ATOMIC,
					       &a, 1, &done));
}

static int64_t overdue(int fd)
{
	char file[64], text[2048], *at;

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", fd);
	if (accmem_read_file(file, text, sizeof(text)) <= 0)
		return -1;
	at = strstr(text, "accmem-overdue:");
	return at ? atoll(at + strlen("accmem-overdue:")) : -1;
}

TEST_F(stream_batch, overdue_pieces_end_one_by_one)
{
	int64_t usual = accmem_param("overdue_ms");
	unsigned int i;

	ASSERT_EQ(0, accmem_param_set("overdue_ms", 50));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
					 self->stream, 1 + i));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes",
					N * PAGE, PATIENCE_MS));
	EXPECT_EQ(N * PAGE, overdue(self->fd));
	ASSERT_EQ(0, stream_signal(self->stream, N / 2));
	EXPECT_EQ(N / 2 * PAGE, overdue(self->fd));
	EXPECT_EQ(N / 2 * PAGE,
		  accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(0, stream_signal(self->stream, N));
	EXPECT_EQ(0, overdue(self->fd));
	EXPECT_EQ(0, accmem_sysfs(variant->path, "quarantined_bytes"));
	EXPECT_EQ(0, accmem_param_set("overdue_ms", usual));
}

/* Fences, and the end of a context with some of each. */
TEST_F(stream_batch, t10_the_end_of_the_context)
{
	int fences = fence_device(), file;
	unsigned int i;
	uint32_t id;

	ASSERT_LE(0, fences);
	file = fence_create(fences, &id);
	ASSERT_LE(0, file);
	for (i = 0; i < N; i++) {
		if (i % 4 == 0)
			ASSERT_EQ(0, fence_free(self->fd, self->a[i].address,
						file));
		if (i % 4 == 1)
			ASSERT_EQ(0, stream_free(self->fd, self->a[i].address,
						 self->stream, 1));
	}
	close(self->fd);
	EXPECT_EQ(N / 4 * PAGE, pending(variant->path));
	EXPECT_EQ(N / 4, accmem_sysfs(variant->path, "buffers"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	ASSERT_EQ(0, fence_signal(fences, id, 0, TEST_FENCE_IRQ));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "pending_bytes", 0,
					PATIENCE_MS));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "buffers", 0,
					PATIENCE_MS));
	close(file);
	close(fences);
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd);
}

ACCMEM_HARNESS_MAIN
