// SPDX-License-Identifier: GPL-2.0
/*
 * Reading statistics has no side effects. INFO, fdinfo, sysfs and debugfs leave the
 * caches of freed buffers as they are and count them as free. An unprivileged reader
 * can see the capacity only.
 */
#include <dirent.h>

#include "accmem_test.h"

#define PAIRS_MIN 20

FIXTURE(tenant_view)
{
	int fd, other;
	struct accmem_info info;
};

ACCMEM_VARIANTS(tenant_view);

FIXTURE_SETUP(tenant_view)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
	self->other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
}

FIXTURE_TEARDOWN(tenant_view)
{
	close(self->fd);
	close(self->other);
	EXPECT_TRUE(accmem_is_idle(variant->path, 20000));
}

/* --- who may read -------------------------------------------------------- */

static const char *const attributes[] = {
	"free_bytes",
	"dirty_bytes",
	"cleared_background_bytes",
	"cleared_at_alloc_bytes",
	"cleared_parallel_bytes",
	"largest_free_run",
	"live_bytes",
	"detached_bytes",
	"pending_bytes",
	"quarantined_bytes",
	"retired_bytes",
	"retire_pending_bytes",
	"retire_failed_bytes",
	"resident_bytes",
	"buffers",
	"allocs",
	"frees",
	"failures",
	"contexts",
};

static int mode_of(const char *path, const char *name)
{
	char file[256];
	struct stat st;

	accmem_sysfs_file(path, name, file, sizeof(file));
	return stat(file, &st) ? -errno : (int)(st.st_mode & 07777);
}

TEST_F(tenant_view, the_class_is_the_driver_s_own)
{
	char file[128];

	snprintf(file, sizeof(file), "/sys/class/accmem/%s/capacity",
		 strrchr(variant->path, '/') + 1);
	EXPECT_EQ(0, access(file, R_OK));
	snprintf(file, sizeof(file), "/sys/class/misc/%s",
		 strrchr(variant->path, '/') + 1);
	EXPECT_EQ(-1, access(file, F_OK));
}

TEST_F(tenant_view, attributes_are_for_root)
{
	unsigned int i;

	EXPECT_EQ(0444, mode_of(variant->path, "capacity"));
	for (i = 0; i < ARRAY_SIZE(attributes); i++) {
		EXPECT_EQ(0400, mode_of(variant->path, attributes[i]))
		{
			TH_LOG("%s", attributes[i]);
		}
	}
}

/* No other attribute of a device is readable by everyone. */
TEST_F(tenant_view, nothing_else_is_readable)
{
	static const char *const core[] = { "capacity", "dev", "uevent" };
	struct dirent *entry;
	char dir[256];
	unsigned int i;
	int mode;
	DIR *d;

	accmem_sysfs_file(variant->path, "", dir, sizeof(dir));
	d = opendir(dir);
	ASSERT_NE(NULL, d);
	while ((entry = readdir(d))) {
		if (entry->d_type != DT_REG)
			continue;
		for (i = 0; i < ARRAY_SIZE(core); i++)
			if (!strcmp(entry->d_name, core[i]))
				break;
		if (i < ARRAY_SIZE(core))
			continue;
		mode = mode_of(variant->path, entry->d_name);
		EXPECT_EQ(0, mode & 0077)
		{
			TH_LOG("%s: %o", entry->d_name, mode);
		}
	}
	closedir(d);
}

/* --- what reading costs the others --------------------------------------- */

static int pair(int fd, uint64_t length)
{
	struct accmem_alloc a;

	return accmem_alloc_bytes(fd, length, 0, &a) ?:
		       accmem_ioctl_free(fd, a.address);
}

enum view { INFO, FDINFO, SYSFS, USAGE, MAP, CONTEXTS, VIEWS };

static const char *const views[VIEWS] = { "INFO",  "fdinfo",	"sysfs",
					  "usage", "occupancy", "contexts" };

static int look(const char *path, int fd, enum view view)
{
	static char text[1 << 16];
	struct accmem_info info;
	char file[64];

	switch (view) {
	case INFO:
		return accmem_ioctl_info(fd, &info);
	case FDINFO:
		snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", fd);
		return accmem_read_file(file, text, sizeof(text)) <= 0;
	case SYSFS:
		return accmem_sysfs(path, "free_bytes") < 0;
	default:
		return accmem_debug_read(path, views[view], text,
					 sizeof(text)) <= 0;
	}
}

static unsigned int nr_pairs(void)
{
	unsigned int n = accmem_scale(200);

	return n < PAIRS_MIN ? PAIRS_MIN : n;
}

/*
 * how often reads of statistics take the carveout's lock, with an ALLOC and FREE before
 * each
 */
static int64_t holds(const char *path, int reader, enum view view, int fd,
		     uint64_t length)
{
	int64_t before = accmem_lock_stats(path, "carveout_lock_holds");
	unsigned int i;

	for (i = 0; i < nr_pairs(); i++) {
		if (length && pair(fd, length))
			return -1;
		if (look(path, reader, view))
			return -1;
	}
	return accmem_lock_stats(path, "carveout_lock_holds") - before;
}

/* The cleaner takes the lock as well, so one of five tries must be without it. */
static bool look_is_free(const char *path, int reader, enum view view, int fd,
			 uint64_t length)
{
	int64_t alone = 0, beside = 0;
	unsigned int tries;

	for (tries = 0; tries < 5; tries++) {
		pair(fd, length);
		alone = holds(path, reader, view, fd, 0);
		pair(fd, length);
		beside = holds(path, reader, view, fd, length);
		if (alone >= 0 && beside >= 0 && beside <= alone + nr_pairs() / 10)
			return true;
		usleep(20000);
	}
	printf("# %s, %llu bytes: %lld holds alone, %lld beside %u pairs\n",
	       views[view], (unsigned long long)length, (long long)alone,
	       (long long)beside, nr_pairs());
	return false;
}

TEST_F(tenant_view, looking_empties_no_cache)
{
	static const uint64_t lengths[] = { 64, 4096, KIB(32) };
	enum view view;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (view = INFO; view < VIEWS; view++) {
			EXPECT_TRUE(look_is_free(variant->path, self->other,
						 view, self->fd, lengths[i]));
		}
	}
}

/* Also to the context whose cache it is. */
TEST_F(tenant_view, looking_at_oneself_empties_no_cache)
{
	const char *path = variant->path;
	int fd = self->fd;

	EXPECT_TRUE(look_is_free(path, fd, INFO, fd, 4096));
	EXPECT_TRUE(look_is_free(path, fd, FDINFO, fd, 4096));
}

/* the number in line @key of the file "usage" */
static int64_t usage(const char *path, const char *key)
{
	char text[512], want[32], *at;

	if (accmem_debug_read(path, "usage", text, sizeof(text)) <= 0)
		return -1;
	snprintf(want, sizeof(want), "\n%s ", key);
	at = strstr(text, want);
	return at ? strtoll(at + strlen(want), NULL, 10) : -1;
}

/* And what the caches hold is free, in every number. */
TEST_F(tenant_view, caches_count_as_free)
{
	static const uint64_t lengths[] = { 64, 2048, 4096, KIB(32), MIB(2) };
	int64_t capacity = self->info.capacity;
	struct accmem_info info;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_EQ(0, pair(self->fd, lengths[i]));
		ASSERT_EQ(0, accmem_ioctl_info(self->other, &info));
		EXPECT_EQ(capacity, info.free_bytes);
		EXPECT_EQ(0, info.context_bytes);
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
		EXPECT_EQ(capacity, info.free_bytes);
		EXPECT_EQ(0, info.context_bytes);
		EXPECT_EQ(capacity, accmem_sysfs(variant->path, "free_bytes"));
		EXPECT_EQ(0, accmem_sysfs(variant->path, "live_bytes"));
		EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
		EXPECT_EQ(capacity, usage(variant->path, "free"));
		EXPECT_EQ(0, usage(variant->path, "live"));
		EXPECT_TRUE(accmem_accounts_balance(variant->path));
	}
}

ACCMEM_HARNESS_MAIN
