// SPDX-License-Identifier: GPL-2.0
/*
 * open() must not wait for a process that reads statistics of a device. That holds for
 * files of the device and for those of an unrelated driver. The tests count how many
 * calls of open() there are in a second.
 */
#include "accmem_test.h"

#define BUFFERS 150000
#define TRIES 5
/* opens beside a reader are at most so many times fewer than beside a spinning process */
#define FEWER 6

FIXTURE(tenant_open)
{
	int fd;
};

/* The devices do not differ in open(). */
FIXTURE_VARIANT(tenant_open)
{
	const char *path;
};

FIXTURE_VARIANT_ADD(tenant_open, emulated)
{
	.path = ACCMEM_DEV_EMULATED,
};

FIXTURE_SETUP(tenant_open)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->fd = accmem_opened(variant->path);
}

FIXTURE_TEARDOWN(tenant_open)
{
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

struct reader {
	const char *path;
	char file[128];
};

static int find_buffers(void *arg)
{
	struct reader *r = arg;

	snprintf(r->file, sizeof(r->file),
		 "/sys/kernel/debug/accmem/%s/buffers",
		 strrchr(r->path, '/') + 1);
	return access(r->file, R_OK);
}

/* reads all of the file */
static void read_buffers(void *arg)
{
	static char text[1 << 16];
	struct reader *r = arg;
	int fd = open(r->file, O_RDONLY);

	while (fd >= 0 && read(fd, text, sizeof(text)) > 0)
		;
	close(fd);
}

/* reads one byte; the driver prints all of the file nevertheless */
static void peek_at_buffers(void *arg)
{
	struct reader *r = arg;
	int fd = open(r->file, O_RDONLY);
	char byte;

	(void)!read(fd, &byte, 1);
	close(fd);
}

static void open_once(void *arg)
{
	int fd = open(arg, O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
}

/* a device of another driver that the misc core opens */
static char *unrelated(void)
{
	static char *const paths[] = {
		"/dev/cpu_dma_latency", "/dev/vga_arbiter", "/dev/userfaultfd",
		"/dev/loop-control",	"/dev/autofs",	    "/dev/hpet",
		"/dev/snapshot",	"/dev/mcelog",	    "/dev/fuse"
	};
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		fd = open(paths[i], O_RDWR);
		if (fd < 0)
			continue;
		close(fd);
		return paths[i];
	}
	return NULL;
}

static uint64_t opens_in_a_second(char *file)
{
	uint64_t end = accmem_ms() + 1000, opens = 0;

	while (accmem_ms() < end) {
		open_once(file);
		opens++;
	}
	return opens;
}

/*
 * Counts opens of @file in a second, while one process opens the device again and
 * again, and a second process spins or reads. In one of the tries the opening processes
 * must get their share of the processors.
 */
static void count(struct __test_metadata *_metadata, const char *path,
		  char *file, void (*step)(void *arg))
{
	struct reader r = { .path = path };
	uint64_t alone = 1, beside = 0;
	pid_t reader, opener;
	unsigned int i;

	for (i = 0; i < TRIES && beside * FEWER < alone; i++) {
		opener = accmem_start(NULL, open_once, (void *)path);
		reader = accmem_start(NULL, NULL, NULL);
		ASSERT_TRUE(opener > 0 && reader > 0);
		alone = opens_in_a_second(file);
		accmem_stop(reader);
		reader = accmem_start(find_buffers, step, &r);
		ASSERT_LT(0, reader);
		beside = opens_in_a_second(file);
		accmem_stop(reader);
		accmem_stop(opener);
	}
	TH_LOG("%s: %llu opens a second, %llu beside a spinning process", file,
	       (unsigned long long)beside, (unsigned long long)alone);
	EXPECT_LE(alone, beside * FEWER);
}

TEST_F(tenant_open, nobody_waits_for_a_reader_of_buffers)
{
	unsigned int i, n = accmem_scale(BUFFERS);
	char *device = (char *)variant->path;
	char *file = unrelated();
	struct accmem_alloc a;

	ASSERT_NE(NULL, file);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &a));
	}
	count(_metadata, variant->path, device, read_buffers);
	count(_metadata, variant->path, device, peek_at_buffers);
	count(_metadata, variant->path, file, peek_at_buffers);
}

/* Each open file is one context, also with concurrent opens. */
TEST_F(tenant_open, openers_do_not_disturb_each_other)
{
	pid_t one, other;
	unsigned int i;
	int fd;

	one = accmem_start(NULL, open_once, (void *)variant->path);
	other = accmem_start(NULL, open_once, (void *)variant->path);
	ASSERT_TRUE(one > 0 && other > 0);
	for (i = 0; i < accmem_scale(500); i++) {
		fd = accmem_opened(variant->path);
		close(fd);
	}
	accmem_stop(one);
	accmem_stop(other);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "contexts", 1, 10000));
}

/*
 * The contexts of a user are counted on each device separately, however many were
 * opened on another device before.
 */
TEST_F(tenant_open, devices_do_not_disturb_each_other)
{
	static const char *const paths[] = { ACCMEM_DEV_EMULATED,
					     ACCMEM_DEV_PHYS,
					     ACCMEM_DEV_NOPAGES };
	unsigned int i, n = 3 * accmem_scale(2000);
	int kept[3 * 16], fd;

	for (i = 0; i < ARRAY_SIZE(kept); i++)
		kept[i] = accmem_opened(paths[i % 3]);
	/* the ids on one device may equal those on another */
	for (i = 0; i < n; i++) {
		fd = accmem_dev_open(paths[i % 3], O_RDWR);
		ASSERT_LE(0, fd) {
			TH_LOG("%s, after %u opens: %s", paths[i % 3], i,
			       strerror(-fd));
		}
		close(fd);
	}
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		close(kept[i]);
}

ACCMEM_HARNESS_MAIN
