// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation for a BATCH fails once, and what it has done until then is told, or
 * undone. One that frees allocates nothing, unless it is all or none.
 */
#include <errno.h>
#include <sys/mman.h>

#include "failnth_util.h"

FAILNTH_FIXTURE(failnth_batch)

#define ENTRIES 40u

static struct accmem_batch_alloc entries[ENTRIES];
static struct accmem_batch_free gone[ENTRIES];

/* what was allocated is freed; 0, or the first error of the batch or in it */
static int free_entries(int fd, int err)
{
	unsigned int i, n = 0;

	for (i = 0; i < ENTRIES; i++) {
		if (entries[i].result == 0)
			gone[n++].address = entries[i].address;
		else if (entries[i].result < 0 && !err)
			err = entries[i].result;
	}
	return accmem_batch_frees(fd, 0, gone, n, NULL) ?: err;
}

static int alloc_entries(int fd, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < ENTRIES; i++)
		entries[i] = (struct accmem_batch_alloc){
			.length = i < ENTRIES / 2 ? 4096 : 100 + i,
			.result = 1,
		};
	return accmem_batch_allocs(fd, flags, entries, ENTRIES, NULL);
}

static int batch_each(const char *path, int fd)
{
	(void)path;
	return free_entries(fd, alloc_entries(fd, 0));
}

static int batch_all(const char *path, int fd)
{
	int err = alloc_entries(fd, ACCMEM_BATCH_ATOMIC);

	(void)path;
	/* no result means anything after a failure */
	return err ?: free_entries(fd, 0);
}

/* it may fail for memory, and then nothing has been freed */
static int batch_free_all(const char *path, int fd)
{
	uint32_t done = ENTRIES;
	int err = alloc_entries(fd, 0);
	unsigned int i, n = 0;

	(void)path;
	if (err)
		return free_entries(fd, err);
	for (i = 0; i < ENTRIES; i++) {
		if (!entries[i].result)
			gone[n++].address = entries[i].address;
	}
	err = accmem_batch_frees(fd, ACCMEM_BATCH_ATOMIC, gone, n, &done);
	if (err && done)
		return -EBADF;
	for (i = 0; i < ENTRIES; i++) {
		if (entries[i].result < 0 && !err)
			return entries[i].result;
	}
	return err ? free_entries(fd, err) : 0;
}

/* a buffer of many that came together is mapped, which gives it its own memory */
static int batch_map(const char *path, int fd)
{
	struct accmem_alloc one = {};
	int err = alloc_entries(fd, ACCMEM_BATCH_ATOMIC);
	void *p;

	(void)path;
	if (err)
		return err;
	one.mmap_offset = entries[7].mmap_offset;
	p = accmem_mmap(fd, &one, 4096, RW);
	if (p)
		munmap(p, 4096);
	else
		err = -errno;
	return free_entries(fd, err);
}

TEST_F(failnth_batch, batch)
{
	NEED_INJECTION();
	SWEEP(batch_each);
	SWEEP(batch_all);
	SWEEP(batch_free_all);
	SWEEP(batch_map);
}

TEST_F(failnth_batch, free_of_a_batch_allocates_nothing)
{
	struct rounds r = {};
	uint32_t done;
	unsigned int i;

	NEED_INJECTION();
	while (next_round(&r)) {
		ASSERT_EQ(0, alloc_entries(self->fd, ACCMEM_BATCH_ATOMIC));
		for (i = 0; i < ENTRIES; i++)
			gone[i].address =
				entries[r.nr & 1 ? i : ENTRIES - 1 - i].address;
		arm_round(&r);
		EXPECT_EQ(0, accmem_batch_frees(self->fd, 0, gone, ENTRIES,
						&done));
		EXPECT_TRUE(disarm_round(&r));
		EXPECT_EQ(ENTRIES, done);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

ACCMEM_HARNESS_MAIN
