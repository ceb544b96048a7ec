// SPDX-License-Identifier: GPL-2.0
/*
 * The emulated device in a memory cgroup other than the root. The pages are charged to
 * the group of the task. madvise() on a part of a large page triggers no warning in
 * the kernel.
 */
#include <sys/mount.h>

#include "accmem_test.h"

#define LENGTH MIB(8)

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif

FIXTURE(tenant_memcg)
{
	char root[64], group[96];
	bool mounted;
	int log;
	struct accmem_info info;
};

FIXTURE_VARIANT(tenant_memcg)
{
	const char *path;
	uint32_t page_policy;
};

FIXTURE_VARIANT_ADD(tenant_memcg, emulated)
{
	.path = ACCMEM_DEV_EMULATED,
};
FIXTURE_VARIANT_ADD(tenant_memcg, emulated_normal)
{
	.path = ACCMEM_DEV_EMULATED,
	.page_policy = ACCMEM_PAGE_NORMAL_ONLY,
};
FIXTURE_VARIANT_ADD(tenant_memcg, phys)
{
	.path = ACCMEM_DEV_PHYS,
};
FIXTURE_VARIANT_ADD(tenant_memcg, nopages)
{
	.path = ACCMEM_DEV_NOPAGES,
};

static int write_in(const char *dir, const char *name, const char *text)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	return accmem_write_file(file, text);
}

static int64_t number_in(const char *dir, const char *name)
{
	char file[160], text[64];

	snprintf(file, sizeof(file), "%s/%s", dir, name);
	if (accmem_read_file(file, text, sizeof(text)) <= 0)
		return -1;
	return strtoll(text, NULL, 10);
}

/* finds the hierarchy of cgroups, or mounts one */
static bool find_root(char *root, size_t size, bool *mounted)
{
	snprintf(root, size, "/sys/fs/cgroup");
	*mounted = false;
	if (!access("/sys/fs/cgroup/cgroup.procs", W_OK))
		return true;
	snprintf(root, size, "/tmp/accmem-cgroup-%d", getpid());
	*mounted = !mkdir(root, 0700) &&
		   !mount("none", root, "cgroup2", 0, NULL);
	return *mounted;
}

FIXTURE_SETUP(tenant_memcg)
{
	char text[256] = "", file[160];
	int fd;

	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	if (!find_root(self->root, sizeof(self->root), &self->mounted))
		SKIP(return, "this kernel has no control groups");
	snprintf(file, sizeof(file), "%s/cgroup.controllers", self->root);
	accmem_read_file(file, text, sizeof(text));
	if (!strstr(text, "memory"))
		SKIP(return, "this kernel has no memory controller");
	ASSERT_EQ(0, write_in(self->root, "cgroup.subtree_control", "+memory"));
	snprintf(self->group, sizeof(self->group), "%s/accmem-tenant-%d",
		 self->root, getpid());
	ASSERT_EQ(0, mkdir(self->group, 0755));
	self->log = accmem_log_open();
	ASSERT_LE(0, self->log);
	lseek(self->log, 0, SEEK_END);
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(fd, &self->info));
	close(fd);
}

FIXTURE_TEARDOWN(tenant_memcg)
{
	uint64_t end = accmem_ms() + 20000;

	if (self->group[0]) {
		/* a task leaves the group a moment after its end */
		while (rmdir(self->group) && accmem_ms() < end)
			usleep(10000);
		EXPECT_EQ(-1, access(self->group, F_OK));
		close(self->log);
	}
	if (self->mounted) {
		umount(self->root);
		rmdir(self->root);
	}
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

/* a child in the group */
struct member {
	const char *path;
	const char *group;
	uint32_t page_policy;
	char *p;
	int fd;
	struct accmem_alloc a;
};

static int join(struct member *m)
{
	ACCMEM_MUST(!write_in(m->group, "cgroup.procs", "0"));
	m->fd = accmem_dev_open(m->path, O_RDWR);
	ACCMEM_MUST(m->fd >= 0);
	m->a = (struct accmem_alloc){ .length = LENGTH,
				      .page_policy = m->page_policy };
	ACCMEM_MUST(!accmem_ioctl_alloc(m->fd, &m->a));
	m->p = accmem_mmap_huge(m->fd, &m->a, LENGTH);
	ACCMEM_MUST(m->p);
	accmem_fill(m->p, LENGTH, 3);
	return 0;
}

/* gives advice on parts of large pages, on whole ones, and across their borders */
static int advise(struct member *m, int advice)
{
	static const struct {
		uint64_t at, length;
	} pieces[] = { { 4096, 4096 },	   { 0, KIB(512) },
		       { MIB(1), MIB(1) }, { MIB(2) - 8192, 16384 },
		       { MIB(4), MIB(2) }, { MIB(6) + 4096, MIB(2) - 4096 },
		       { 0, LENGTH } };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		/* the advice may be refused, but must do no harm */
		(void)!madvise(m->p + pieces[i].at, pieces[i].length, advice);
		ACCMEM_MUST(accmem_check(m->p, LENGTH, 3) == -1);
	}
	return 0;
}

static int is_advised(void *arg)
{
	struct member *m = arg;

	ACCMEM_MUST(!join(m));
	ACCMEM_MUST(!advise(m, MADV_COLD));
	ACCMEM_MUST(!advise(m, MADV_PAGEOUT));
	ACCMEM_MUST(!advise(m, MADV_COLD));
	munmap(m->p, LENGTH);
	ACCMEM_MUST(!accmem_ioctl_free(m->fd, m->a.address));
	return 0;
}

/*
 * True if the log has no warning. Reports of races do not count here: tools/vm judges
 * them, since some are the kernel's own.
 */
static bool log_is_clean(int log)
{
	static const char *const bad[] = { "WARNING:", "cut here",
					   "BUG:", "page dumped because" };
	char record[ACCMEM_LOG_RECORD];
	unsigned int i;
	bool clean = true;

	while (accmem_log_next(log, record)) {
		if (strstr(record, "BUG: KCSAN:"))
			continue;
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			if (!strstr(record, bad[i]))
				continue;
			printf("# %s", record);
			clean = false;
		}
	}
	return clean;
}

TEST_F(tenant_memcg, advice_about_part_of_a_large_page)
{
	struct member m = { .path = variant->path,
			    .group = self->group,
			    .page_policy = variant->page_policy };

	EXPECT_EQ(0, accmem_in_child(is_advised, &m));
	EXPECT_TRUE(log_is_clean(self->log));
}

static int is_charged(void *arg)
{
	struct member *m = arg;
	int64_t before = number_in(m->group, "memory.current"), now;

	ACCMEM_MUST(before >= 0);
	ACCMEM_MUST(!join(m));
	now = number_in(m->group, "memory.current");
	ACCMEM_MUST(now - before >= (int64_t)LENGTH / 10 * 9);
	munmap(m->p, LENGTH);
	ACCMEM_MUST(!accmem_ioctl_free(m->fd, m->a.address));
	return 0;
}

/* Pages of the emulated device are charged to the group, large pages and small ones. */
TEST_F(tenant_memcg, first_touch_is_charged)
{
	struct member m = { .path = variant->path,
			    .group = self->group,
			    .page_policy = variant->page_policy };

	if (!(self->info.features & ACCMEM_FEATURE_FIRST_TOUCH))
		return;
	EXPECT_EQ(0, accmem_in_child(is_charged, &m));
}

ACCMEM_HARNESS_MAIN
