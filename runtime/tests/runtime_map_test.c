// SPDX-License-Identifier: MIT
/*
 * Mappings of libaccmem on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE. Built
 * with FAKE_DEVICE it runs on the host over fake_device.c instead, with tests that make
 * a system call fail.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include "runtime_tests.h"

static void pointers_and_addresses_differ_by_a_constant(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t a = new_buffer(ctx, 12345), b = new_buffer(ctx, 2 * MIB);
	unsigned char *p = map(ctx, a), *q = map(ctx, b);

	CHECK_EQ((intptr_t)q - (intptr_t)p, (int64_t)(b - a));
	CHECK_EQ(((uintptr_t)p - a) % (2 * MIB), 0);
	accmem_close(ctx);
}

static void contents_outlive_a_mapping(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	size_t i;

	for (i = 0; i < MIB; i++)
		CHECK_EQ(pointer[i], 0);
	for (i = 0; i < MIB; i++)
		pointer[i] = i * 7;
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	pointer = map(ctx, address);
	for (i = 0; i < MIB; i++)
		CHECK_EQ(pointer[i], (unsigned char)(i * 7));
	accmem_close(ctx);
}

static void unmap_keeps_the_reservation(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);

	CHECK(readable(pointer));
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	CHECK(!readable(pointer));
	CHECK(!unclaimed(pointer));
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK(!readable(pointer));
	CHECK(!unclaimed(pointer));
	accmem_close(ctx);
}

static uint64_t resizable_buffer(struct accmem_context *ctx, uint64_t length)
{
	struct accmem_alloc req = { .length = length,
				    .flags = ACCMEM_ALLOC_RESIZABLE };

	CHECK_EQ(accmem_allocate(ctx, &req), 0);
	return req.address;
}

static uint64_t resize(struct accmem_context *ctx, uint64_t address,
		       uint64_t length)
{
	struct accmem_realloc req = { .address = address, .length = length };

	CHECK_EQ(accmem_reallocate(ctx, &req), 0);
	return req.address;
}

static void resized_in_place_stays_mapped(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 8 * MIB);
	unsigned char *pointer = map(ctx, address);

	memset(pointer, 7, 8 * MIB);
	CHECK_EQ(resize(ctx, address, 2 * MIB), address);
	CHECK_EQ(pointer[0], 7);
	CHECK_EQ(pointer[2 * MIB - 1], 7);
	/* what it has no more is another's, whose mapping is not in its way */
	CHECK(!readable(pointer + 6 * MIB));
	CHECK(!unclaimed(pointer + 6 * MIB));
	CHECK_EQ(accmem_unmap(ctx, address), 0);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(pointer[2 * MIB - 1], 7);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK(!readable(pointer));
	accmem_close(ctx);
}

static void moved_is_unmapped(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 256), moved, other;
	unsigned char *pointer;

	other = new_buffer(ctx, 256);
	pointer = map(ctx, other);
	memset(pointer, 9, 256);
	pointer = map(ctx, address);
	memset(pointer, 8, 256);
	moved = resize(ctx, address, 64 * 1024);
	CHECK(moved != address);
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	pointer = map(ctx, moved);
	CHECK_EQ(pointer[0], 8);
	CHECK_EQ(pointer[255], 8);
	CHECK_EQ(pointer[256], 0);
	pointer = map(ctx, other);
	CHECK_EQ(pointer[255], 9);
	accmem_close(ctx);
}

static void resize_that_fails_changes_nothing(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = resizable_buffer(ctx, 4096);
	struct accmem_realloc req = { .address = address };
	unsigned char *pointer = map(ctx, address);

	pointer[4095] = 5;
	req.length = get_info(ctx).capacity * 2;
	CHECK_EQ(accmem_reallocate(ctx, &req), -ENOMEM);
	CHECK(map(ctx, address) == pointer);
	CHECK_EQ(pointer[4095], 5);
	req.address = address + 1;
	req.length = 4096;
	CHECK(accmem_reallocate(ctx, &req) != 0);
	CHECK_EQ(pointer[4095], 5);
	accmem_close(ctx);
}

static void map_twice_adds_rights(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 4096);
	void *first, *second;

	CHECK_EQ(accmem_map(ctx, address, PROT_READ, &first), 0);
	CHECK_EQ(accmem_map(ctx, address, PROT_WRITE, &second), 0);
	CHECK(first == second);
	*(char *)second = 1;
	CHECK_EQ(accmem_map(ctx, address, PROT_READ, &second), 0);
	CHECK(first == second);
	*(char *)second = 2;
	accmem_close(ctx);
}

/* Some of them share a page, whose mapping is one. */
static void small_buffers_are_mapped_each(void)
{
	enum { N = 40 };
	struct accmem_context *ctx = open_device();
	uint64_t address[N];
	unsigned char *p[N];
	unsigned int i, j;

	for (i = 0; i < N; i++)
		address[i] = new_buffer(ctx, 30 * i + 1);
	for (i = 0; i < N; i++) {
		CHECK_EQ(accmem_unmap(ctx, address[i]), -ENOENT);
		p[i] = map(ctx, address[i]);
		CHECK_EQ(p[i] - p[0], address[i] - address[0]);
		for (j = 0; j < 30 * i + 1; j++)
			CHECK_EQ(p[i][j], 0);
		memset(p[i], i + 1, 30 * i + 1);
		CHECK(map(ctx, address[i]) == p[i]);
	}
	for (i = 0; i < N; i += 2) {
		CHECK_EQ(accmem_unmap(ctx, address[i] + 1), -EINVAL);
		CHECK_EQ(accmem_unmap(ctx, address[i]), 0);
		CHECK_EQ(accmem_unmap(ctx, address[i]), -ENOENT);
	}
	for (i = 1; i < N; i += 2)
		for (j = 0; j < 30 * i + 1; j++)
			CHECK_EQ(p[i][j], i + 1);
	for (i = 0; i < N; i++) {
		CHECK(map(ctx, address[i]) == p[i]);
		CHECK_EQ(p[i][30 * i], i + 1);
		CHECK_EQ(accmem_release(ctx, address[i]), 0);
	}
	wait_until_all_is_free(ctx);
	accmem_close(ctx);
}

static void map_errors(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, 2 * 4096);
	void *pointer;

	CHECK_EQ(accmem_map(ctx, address, RW | PROT_EXEC, &pointer), -EINVAL);
	CHECK_EQ(accmem_map(ctx, address, 0, &pointer), -EINVAL);
	CHECK_EQ(accmem_map(ctx, address + 4096, RW, &pointer), -EINVAL);
	CHECK_EQ(accmem_release(ctx, address), 0);
	CHECK_EQ(accmem_map(ctx, address, RW, &pointer), -ENOENT);
	accmem_close(ctx);
}

static void works_without_a_window(void)
{
	struct accmem_context *ctx;
	struct rlimit limit;
	unsigned long pages;
	unsigned char *p, *q;
	FILE *statm;

	statm = fopen("/proc/self/statm", "r");
	CHECK(statm);
	CHECK_EQ(fscanf(statm, "%lu", &pages), 1);
	fclose(statm);
	limit.rlim_cur = pages * 4096ull + 32 * MIB;
	limit.rlim_max = limit.rlim_cur;
	CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);

	ctx = open_device();
	p = map(ctx, new_buffer(ctx, MIB));
	q = map(ctx, new_buffer(ctx, MIB));
	memset(p, 1, MIB);
	memset(q, 2, MIB);
	CHECK_EQ(p[MIB - 1], 1);
	CHECK_EQ(q[0], 2);
	accmem_close(ctx);
	CHECK(unclaimed(p));
	CHECK(unclaimed(q));
}

#ifdef FAKE_DEVICE
/* On a real device the address may not come back soon enough to tell. */
static void stale_mapping_goes_when_its_address_is_reused(void)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	struct accmem_free req = { .size = sizeof(req), .address = address };

	CHECK_EQ(ioctl(accmem_fd(ctx), ACCMEM_IOC_FREE, &req), 0);
	CHECK(readable(pointer));
	CHECK_EQ(new_buffer(ctx, 4096), address);
	CHECK(!readable(pointer));
	CHECK(!readable(pointer + MIB - 1));
	CHECK_EQ(accmem_unmap(ctx, address), -ENOENT);
	accmem_close(ctx);
}

static void failed_map_leaves_no_hole(bool *fail)
{
	struct accmem_context *ctx = open_device();
	uint64_t address = new_buffer(ctx, MIB);
	unsigned char *pointer = map(ctx, address);
	void *unused;

	CHECK_EQ(accmem_unmap(ctx, address), 0);
	*fail = true;
	CHECK_EQ(accmem_map(ctx, address, RW, &unused), -ENOMEM);
	CHECK(!unclaimed(pointer));
	CHECK(!readable(pointer));
	CHECK(map(ctx, address) == pointer);
	accmem_close(ctx);
}

static void failed_mmap_leaves_no_hole(void)
{
	failed_map_leaves_no_hole(&fake_fail_mmap);
}

static void failed_mremap_leaves_no_hole(void)
{
	failed_map_leaves_no_hole(&fake_fail_mremap);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(pointers_and_addresses_differ_by_a_constant),
		ROW(contents_outlive_a_mapping),
		ROW(unmap_keeps_the_reservation),
		ROW(resized_in_place_stays_mapped),
		ROW(moved_is_unmapped),
		ROW(resize_that_fails_changes_nothing),
		ROW(map_twice_adds_rights),
		ROW(small_buffers_are_mapped_each),
		ROW(map_errors),
		ROW(works_without_a_window),
#ifdef FAKE_DEVICE
		ROW(stale_mapping_goes_when_its_address_is_reused),
		ROW(failed_mmap_leaves_no_hole),
		ROW(failed_mremap_leaves_no_hole),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
