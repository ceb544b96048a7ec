// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics for administrators: fdinfo, the counters in sysfs, the maps and lists in
 * debugfs, and the trace events. Each counter changes by the amount of what was done,
 * and by nothing else.
 */
#include <sys/prctl.h>

#include "accmem_test.h"

#define TRACING "/sys/kernel/tracing/"
#define DEBUGFS "/sys/kernel/debug/accmem/"

ACCMEM_FIXTURE(obs)

static const char *base(const char *path)
{
	return path + strlen("/dev/");
}

TEST_F(obs, fdinfo)
{
	char file[64], text[2048], want[64];
	struct accmem_alloc b;

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", self->fd);
	ASSERT_LT(0, accmem_read_file(file, text, sizeof(text)));
	snprintf(want, sizeof(want), "accmem-device:\t%s\n",
		 base(variant->path));
	EXPECT_NE(NULL, strstr(text, want)) {
		TH_LOG("%s", text);
	}
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "buffers"));
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "live"));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 12288, 0, &b));
	EXPECT_EQ(2, accmem_fdinfo(self->fd, "buffers"));
	EXPECT_EQ(self->a.footprint + b.footprint,
		  accmem_fdinfo(self->fd, "live"));
	EXPECT_EQ(accmem_charge_of(&self->info,
				   (struct accmem_alloc[]){ self->a, b }, 2),
		  accmem_fdinfo(self->fd, "charged"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(1, accmem_fdinfo(self->fd, "buffers"));
	EXPECT_EQ(self->a.footprint, accmem_fdinfo(self->fd, "live"));
	EXPECT_EQ(accmem_charge_of(&self->info, &self->a, 1),
		  accmem_fdinfo(self->fd, "charged"));
}

/* the number in the line "drm-@key:" in the fdinfo of @fd, or -1 */
static int64_t drm_fdinfo(int fd, const char *key)
{
	char file[64], text[2048], want[64], *at;

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", fd);
	if (accmem_read_file(file, text, sizeof(text)) <= 0)
		return -1;
	snprintf(want, sizeof(want), "\ndrm-%s:\t", key);
	at = strstr(text, want);
	return at ? strtoll(at + strlen(want), NULL, 10) : -1;
}

/* drm-usage-stats.rst: the keys, their sums, and the memory that can be purged */
TEST_F(obs, fdinfo_drm)
{
	bool touch = self->info.features & ACCMEM_FEATURE_FIRST_TOUCH;
	int64_t live = MIB(1) + 3 * 4096;
	char file[64], text[2048];
	struct accmem_alloc b;

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", self->fd);
	ASSERT_LT(0, accmem_read_file(file, text, sizeof(text)));
	EXPECT_NE(NULL, strstr(text, "\ndrm-driver:\taccmem\n"));
	EXPECT_EQ(0, drm_fdinfo(self->fd, "total-vram"));
	EXPECT_EQ(0, drm_fdinfo(self->fd, "purgeable-vram"));
	EXPECT_EQ(touch ? -1 : 0, drm_fdinfo(self->fd, "resident-vram"));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(1), 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 3 * 4096, 0, &b));
	EXPECT_EQ(live, drm_fdinfo(self->fd, "total-vram"));
	EXPECT_EQ(touch ? -1 : live, drm_fdinfo(self->fd, "resident-vram"));
	EXPECT_EQ(0, drm_fdinfo(self->fd, "purgeable-vram"));
	/* the context caches a freed buffer that was not mapped */
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, b.address));
	EXPECT_EQ(3 * 4096, drm_fdinfo(self->fd, "purgeable-vram"));
	EXPECT_EQ(live, drm_fdinfo(self->fd, "total-vram"));
	EXPECT_EQ(-1, drm_fdinfo(self->fd, "active-vram"));
}

TEST_F(obs, fdinfo_drm_host)
{
	struct accmem_alloc a = { .length = 5 * 4096,
				  .kind = ACCMEM_KIND_HOST };

	EXPECT_EQ(0, drm_fdinfo(self->fd, "total-memory"));
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
	EXPECT_EQ(5 * 4096, drm_fdinfo(self->fd, "total-memory"));
	EXPECT_EQ(0, drm_fdinfo(self->fd, "purgeable-memory"));
	EXPECT_EQ(0, drm_fdinfo(self->fd, "total-vram"));
	EXPECT_EQ(-1, drm_fdinfo(self->fd, "resident-memory"));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* A client is an open file: a copy of its descriptor has the same number. */
TEST_F(obs, fdinfo_drm_client)
{
	int copy = dup(self->fd), other = accmem_opened(variant->path);
	int64_t id = drm_fdinfo(self->fd, "client-id");

	ASSERT_LE(0, copy);
	EXPECT_LE(0, id);
	EXPECT_EQ(id, drm_fdinfo(copy, "client-id"));
	EXPECT_NE(id, drm_fdinfo(other, "client-id"));
	EXPECT_NE(-1, drm_fdinfo(other, "client-id"));
	close(copy);
	close(other);
}

TEST_F(obs, counters)
{
	static const char *const names[] = { "allocs", "frees", "failures",
					     "buffers", "contexts",
					     "live_bytes" };
	int64_t before[6], after[6], want[6] = { 2, 1, 1, 1, 1, 0 };
	struct accmem_alloc b, c;
	unsigned int i;
	int other;

	for (i = 0; i < 6; i++)
		before[i] = accmem_sysfs(variant->path, names[i]);
	EXPECT_EQ(1, before[4]);
	other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &self->a));
	ASSERT_EQ(0, accmem_alloc_bytes(other, 4096, 0, &b));
	ASSERT_EQ(-ENOMEM, accmem_alloc_bytes(other, self->info.capacity + 1,
					      0, &c));
	/* an invalid call does not count as a failure */
	ASSERT_EQ(-EINVAL, accmem_alloc_bytes(other, 0, 0, &c));
	ASSERT_EQ(0, accmem_ioctl_free(other, b.address));
	for (i = 0; i < 6; i++)
		after[i] = accmem_sysfs(variant->path, names[i]);
	want[5] = self->a.footprint;
	for (i = 0; i < 6; i++) {
		EXPECT_EQ(want[i], after[i] - before[i]) {
			TH_LOG("%s", names[i]);
		}
	}
	EXPECT_EQ(self->info.capacity - self->a.footprint,
		  accmem_sysfs(variant->path, "free_bytes"));
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	close(other);
}

TEST_F(obs, resident)
{
	int64_t start = accmem_sysfs(variant->path, "resident_bytes");
	int64_t before = start, after;
	uint64_t at;
	char *p;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(4), 0, &self->a));
	EXPECT_EQ(before, accmem_sysfs(variant->path, "resident_bytes"));
	p = accmem_mapped(self->fd, &self->a, MIB(4));
	for (at = 0; at < MIB(4); at += 4096)
		p[at] = 1;
	after = accmem_sysfs(variant->path, "resident_bytes");
	if (self->info.features & ACCMEM_FEATURE_FIRST_TOUCH)
		before += MIB(4);
	EXPECT_EQ(before, after);
	munmap(p, MIB(4));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "resident_bytes",
					start, 5000));
}

/* the number of cells of the map that are not completely free; @all counts every cell */
static int count_cells(const char *path, bool all)
{
	static char text[65536];
	char *line, *save, *cells;
	int nr = 0;

	if (accmem_debug_read(path, "occupancy", text, sizeof(text)) <= 0)
		return -1;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#')
			continue;
		cells = strchr(line, ' ');
		if (!cells)
			return -1;
		for (cells++; *cells; cells++)
			nr += all || *cells != '.';
	}
	return nr;
}

/* the same, when the cleaner has finished: memory in the cleaner is shown as used */
static int used_cells_settled(const char *path)
{
	uint64_t end = accmem_ms() + 10000;
	int used;

	do {
		used = count_cells(path, false);
	} while (used > 0 && accmem_ms() < end);
	return used;
}

TEST_F(obs, debugfs_occupancy)
{
	int after, all = count_cells(variant->path, true);

	ASSERT_EQ(0, used_cells_settled(variant->path));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, self->info.capacity / 4,
					0, &self->a));
	after = count_cells(variant->path, false);
	/* about a quarter of the map, which has many cells */
	EXPECT_LE(8, after);
	EXPECT_LE(all / 5, after);
	EXPECT_GE(all / 3, after);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(0, used_cells_settled(variant->path));
}

TEST_F(obs, debugfs_buffers)
{
	char text[8192], want[64];

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 12345, 0, &self->a));
	ASSERT_LT(0, accmem_debug_read(variant->path, "buffers", text,
				       sizeof(text)));
	snprintf(want, sizeof(want), "%#llx 12345 %llu",
		 (unsigned long long)self->a.address,
		 (unsigned long long)self->a.footprint);
	EXPECT_NE(NULL, strstr(text, want)) {
		TH_LOG("no '%s' in:\n%s", want, text);
	}
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_LT(0, accmem_debug_read(variant->path, "buffers", text,
				       sizeof(text)));
	EXPECT_EQ(NULL, strstr(text, want));
}

/* The file lists the memory of a buffer in each state, and its carveouts without a gap. */
TEST_F(obs, debugfs_runs)
{
	uint64_t end = accmem_ms() + 10000, bytes;
	char id[24];
	void *p;

	snprintf(id, sizeof(id), "%lld",
		 (long long)accmem_fdinfo(self->fd, "context"));
	EXPECT_EQ(0, accmem_run_bytes(variant->path, NULL, id));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 65536, 0, &self->a));
	EXPECT_EQ(65536, accmem_run_bytes(variant->path, "live", id));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(65536, accmem_run_bytes(variant->path, "cached", id));
	EXPECT_EQ(65536, accmem_run_bytes(variant->path, NULL, id));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(3), 0, &self->a));
	p = accmem_mapped(self->fd, &self->a, MIB(3));
	memset(p, 1, MIB(3));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	EXPECT_EQ(MIB(3), accmem_run_bytes(variant->path, "detached", id));
	munmap(p, MIB(3));
	EXPECT_EQ(0, accmem_run_bytes(variant->path, "detached", id));
	/* The cleaner has a part of the free memory for a moment. */
	do {
		bytes = accmem_run_bytes(variant->path, NULL, NULL);
	} while (bytes != self->info.capacity && accmem_ms() < end);
	EXPECT_EQ(self->info.capacity, bytes);
}

/* The memory of a closed file is listed as long as it is mapped. */
TEST_F(obs, debugfs_runs_after_close)
{
	char id[24];
	void *p;

	snprintf(id, sizeof(id), "%lld",
		 (long long)accmem_fdinfo(self->fd, "context"));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(3), 0, &self->a));
	p = accmem_mapped(self->fd, &self->a, MIB(3));
	close(self->fd);
	self->fd = -1;
	EXPECT_EQ(MIB(3), accmem_run_bytes(variant->path, "detached", id));
	munmap(p, MIB(3));
	EXPECT_EQ(0, accmem_run_bytes(variant->path, NULL, id));
}

/* A process that has chosen its name adds no line and no column. */
TEST_F(obs, debugfs_escapes_names)
{
	char text[8192], name[16];
	int fd;

	ASSERT_EQ(0, prctl(PR_GET_NAME, name));
	ASSERT_EQ(0, prctl(PR_SET_NAME, "x\n1 2 y\\"));
	fd = accmem_opened(variant->path);
	ASSERT_EQ(0, prctl(PR_SET_NAME, name));
	ASSERT_LT(0, accmem_debug_read(variant->path, "contexts", text,
				       sizeof(text)));
	EXPECT_NE(NULL, strstr(text, " x\\0121\\0402\\040y\\134 "))
	{
		TH_LOG("%s", text);
	}
	close(fd);
}

/* Only root may read the addresses of other processes. The test checks the modes. */
TEST_F(obs, debugfs_is_for_root)
{
	static const char *const names[] = { "occupancy", "usage",
					     "contexts",  "buffers",
					     "runs",	  "streams",
					     "lock_stats", "tmem" };
	char file[128];
	struct stat st;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(file, sizeof(file), DEBUGFS "%s/%s",
			 base(variant->path), names[i]);
		ASSERT_EQ(0, stat(file, &st));
		EXPECT_EQ(0, st.st_mode & 0077);
	}
	ASSERT_EQ(0, stat(variant->path, &st));
	EXPECT_EQ(0, st.st_mode & 0007);
}

/* --- trace events -------------------------------------------------------- */

/* the number of lines of the trace with @event and @detail in them */
static int count_events(const char *event, const char *detail)
{
	return accmem_trace_count(event, detail, NULL, 0);
}

TEST_F(obs, trace_events)
{
	struct accmem_alloc failed;
	char address[64], length[64];
	void *p;

	if (access(TRACING "events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_TRUE(accmem_trace_start());
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 12288, 0, &self->a));
	p = accmem_mapped(self->fd, &self->a, 8192);
	munmap(p, 8192);
	ASSERT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd,
					      self->info.capacity + 12288, 0,
					      &failed));
	ASSERT_EQ(-EINVAL, accmem_ioctl_free(self->fd, self->a.address + 1));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->a.address));
	ASSERT_TRUE(accmem_trace_stop());

	snprintf(address, sizeof(address), "address=%#llx ",
		 (unsigned long long)self->a.address);
	snprintf(length, sizeof(length), "length=%llu ",
		 (unsigned long long)self->info.capacity + 12288);
	EXPECT_EQ(1, count_events("accmem_alloc", address));
	EXPECT_EQ(1, count_events("accmem_alloc", "length=12288 "));
	EXPECT_EQ(1, count_events("accmem_map", address));
	EXPECT_EQ(1, count_events("accmem_map", "size=8192"));
	EXPECT_EQ(1, count_events("accmem_free", address));
	EXPECT_EQ(1, count_events("accmem_release", "size=12288 "));
	EXPECT_EQ(1, count_events("accmem_fail", length));
	EXPECT_EQ(1, count_events("accmem_fail", "error=-12"));
}

ACCMEM_HARNESS_MAIN
