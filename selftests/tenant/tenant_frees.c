// SPDX-License-Identifier: GPL-2.0
/*
 * Memory whose free takes long must not delay other tenants. That is memory that
 * leaves the quarantine, or whose fence has signalled. Only the emulated device, whose
 * memory is ordinary pages of the host, takes long to free it.
 */
#include "stream_util.h"

#define USER 65534
#define TRIES 4
#define FASTER 2 /* times faster than the free of all of the memory */

FIXTURE(tenant_frees)
{
	const char *path;
	mode_t mode;
	int fd;
	int fences;
	uint64_t capacity;
	uint64_t length;
	int tries;
	bool compares; /* times can be compared: the kernel has no sanitizers */
};

FIXTURE_SETUP(tenant_frees)
{
	struct accmem_info info;
	struct stat st;

	self->path = ACCMEM_DEV_EMULATED;
	ASSERT_EQ(0, stat(self->path, &st));
	self->mode = st.st_mode & 07777;
	ASSERT_EQ(0, chmod(self->path, 0666));
	self->fd = accmem_opened(self->path);
	self->fences = fence_device();
	ASSERT_LE(0, self->fences);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	self->compares = accmem_scale(100) >= 100;
	self->tries = self->compares ? accmem_scale(TRIES) : 1;
	self->capacity = info.capacity;
	self->length = self->compares ? MIB(512) : MIB(64);
	ASSERT_LT(self->length, self->capacity);
}

FIXTURE_TEARDOWN(tenant_frees)
{
	EXPECT_EQ(0, accmem_param_set("max_bytes_per_user", 0));
	chmod(self->path, self->mode);
	close(self->fences);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(self->path, 30000));
}

/* allocates memory of many present pages */
static struct accmem_alloc make(struct __test_metadata *_metadata, int fd,
				uint64_t length)
{
	struct accmem_alloc a = { .length = length,
				  .flags = ACCMEM_ALLOC_POPULATE,
				  .page_policy = ACCMEM_PAGE_NORMAL_ONLY };

	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &a));
	return a;
}

static uint64_t time_free(struct __test_metadata *_metadata, int fd,
			  uint64_t length)
{
	struct accmem_alloc a = make(_metadata, fd, length);
	uint64_t from = stream_now();

	ASSERT_EQ(0, accmem_ioctl_free(fd, a.address));
	return stream_now() - from;
}

/* the time of INFO of another context, when a pin has just gone */
static uint64_t time_info(struct __test_metadata *_metadata, int fd, int other,
			  uint64_t length)
{
	struct accmem_alloc a = make(_metadata, fd, length);
	struct accmem_info info;
	uint64_t from;
	int pipes[2];

	ASSERT_EQ(0, accmem_free_pinned(fd, &a, pipes));
	accmem_unpin(pipes);
	from = stream_now();
	ASSERT_EQ(0, accmem_ioctl_info(other, &info));
	return stream_now() - from;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * true if another try is needed: two at least, since the control of the first may be
 * slow
 */
static bool goes_on(const struct _test_data_tenant_frees *self, int tries,
		    uint64_t time, uint64_t all)
{
	return tries < self->tries && (tries < 2 || time > all / FASTER);
}

static void say(struct __test_metadata *_metadata, uint64_t time, uint64_t all)
{
	TH_LOG("%llu us, %llu to free all of it",
	       (unsigned long long)time / 1000, (unsigned long long)all / 1000);
}

TEST_F(tenant_frees, info_does_not_wait_for_what_leaves_quarantine)
{
	int other = accmem_opened(self->path), i;
	uint64_t all = ~0ull, time = ~0ull;

	for (i = 0; goes_on(self, i, time, all); i++) {
		all = least(all, time_free(_metadata, self->fd, self->length));
		time = least(time, time_info(_metadata, self->fd, other,
					     self->length));
		EXPECT_EQ(-1, accmem_sysfs_wait(self->path, "quarantined_bytes",
						0, 30000));
	}
	say(_metadata, time, all);
	if (self->compares)
		EXPECT_GE(all / FASTER, time);
	close(other);
}

/* an unprivileged tenant at its limit, with no memory of its own to free */
struct tenant {
	const char *path;
	int ready[2];
	int result[2];
	uint64_t until_ms;
};

/* makes calls that fail at the limit; reports the longest of them */
static int fail_over_and_over(void *arg)
{
	struct tenant *t = arg;
	uint64_t end = accmem_ms() + t->until_ms, worst = 0, from, now;
	int fd = accmem_opened(t->path);
	struct accmem_alloc a;

	ACCMEM_MUST(accmem_alloc_bytes(fd, MIB(2), 0, &a) == -EDQUOT);
	ACCMEM_MUST(write(t->ready[1], "", 1) == 1);
	while (accmem_ms() < end) {
		from = stream_now();
		ACCMEM_MUST(accmem_alloc_bytes(fd, MIB(2), 0, &a) == -EDQUOT);
		now = stream_now() - from;
		worst = now > worst ? now : worst;
	}
	ACCMEM_MUST(write(t->result[1], &worst, sizeof(worst)) ==
		    sizeof(worst));
	return 0;
}

struct run {
	struct tenant tenant;
	pthread_t thread;
	int err;
};

static void *run_tenant(void *arg)
{
	struct run *run = arg;

	run->err = accmem_as_user(USER, fail_over_and_over, &run->tenant);
	return NULL;
}

/* the time of the longest call of such a tenant while a fence frees memory of another */
static uint64_t time_at_limit(struct __test_metadata *_metadata, int fd,
			      int fences, const char *path, uint64_t length,
			      uint64_t until_ms)
{
	struct run run = { .tenant = { .path = path, .until_ms = until_ms } };
	struct accmem_alloc a = make(_metadata, fd, length);
	uint64_t worst = 0;
	uint32_t id;
	int file = fence_created(fences, &id);
	char byte;

	ASSERT_EQ(0, fence_free(fd, a.address, file));
	close(file);
	ASSERT_EQ(0, pipe(run.tenant.ready));
	ASSERT_EQ(0, pipe(run.tenant.result));
	ASSERT_EQ(0, pthread_create(&run.thread, NULL, run_tenant, &run));
	ASSERT_EQ(1, read(run.tenant.ready[0], &byte, 1));
	ASSERT_EQ(0, fence_signal(fences, id, 0, 0));
	pthread_join(run.thread, NULL);
	ASSERT_EQ(0, run.err);
	ASSERT_EQ(sizeof(worst),
		  read(run.tenant.result[0], &worst, sizeof(worst)));
	close(run.tenant.ready[0]);
	close(run.tenant.ready[1]);
	close(run.tenant.result[0]);
	close(run.tenant.result[1]);
	return worst;
}

TEST_F(tenant_frees, who_is_at_a_limit_does_not_wait_for_what_is_due)
{
	uint64_t all = ~0ull, time = ~0ull;
	int i;

	ASSERT_EQ(0, accmem_param_set("max_bytes_per_user", MIB(1)));
	for (i = 0; goes_on(self, i, time, all); i++) {
		all = least(all, time_free(_metadata, self->fd, self->length));
		time = least(time,
			     time_at_limit(_metadata, self->fd, self->fences,
					   self->path, self->length,
					   4 * all / 1000000 + 1));
		EXPECT_EQ(-1, accmem_sysfs_wait(self->path, "pending_bytes", 0,
						30000));
	}
	say(_metadata, time, all);
	if (self->compares)
		EXPECT_GE(all / FASTER, time);
}

/* But an ALLOC that is short of memory finds all memory whose fence has signalled. */
TEST_F(tenant_frees, who_needs_it_finds_all_that_is_due)
{
	int other = accmem_opened(self->path), file, i;
	uint64_t more = self->capacity - self->length + MIB(2);
	struct accmem_alloc a, b;
	uint32_t id;

	for (i = 0; i < (int)accmem_scale(1); i++) {
		a = make(_metadata, self->fd, self->length);
		file = fence_created(self->fences, &id);
		ASSERT_EQ(0, fence_free(self->fd, a.address, file));
		close(file);
		ASSERT_EQ(-ENOMEM, accmem_alloc_bytes(other, more, 0, &b));
		ASSERT_EQ(0, fence_signal(self->fences, id, 0, 0));
		ASSERT_EQ(0, accmem_alloc_bytes(other, more, 0, &b));
		ASSERT_EQ(0, accmem_ioctl_free(other, b.address));
	}
	close(other);
}

ACCMEM_HARNESS_MAIN
