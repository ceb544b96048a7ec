// SPDX-License-Identifier: MIT
/*
 * Copies of the ACL front-end on a device: /dev/accmem0, or the one in $ACCMEM_DEVICE.
 * Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "acl_tests.h"

static void memcpy_knows_directions(void)
{
	char *d = acl_new(8192, 0), *e = acl_new(8192, 0);
	char host[8192], back[8192];
	int kind;

	memset(host, 5, sizeof(host));
	CHECK_EQ(aclrtMemcpy(d, 8192, host, 8192, ACL_MEMCPY_DEFAULT), 0);
	CHECK_EQ(aclrtMemcpy(e, 8192, d, 8192, ACL_MEMCPY_DEFAULT), 0);
	CHECK_EQ(aclrtMemcpy(back, 8192, e, 8192, ACL_MEMCPY_DEFAULT), 0);
	CHECK_EQ(memcmp(host, back, 8192), 0);
	for (kind = 0; kind < 4; kind++) {
		CHECK_EQ(aclrtMemcpy(back, 100, host, 100, kind),
			 kind == 0 ? 0 : ACL_ERROR_RT_PARAM_INVALID);
		CHECK_EQ(aclrtMemcpy(d, 100, host, 100, kind),
			 kind == 1 ? 0 : ACL_ERROR_RT_PARAM_INVALID);
		CHECK_EQ(aclrtMemcpy(back, 100, d, 100, kind),
			 kind == 2 ? 0 : ACL_ERROR_RT_PARAM_INVALID);
		CHECK_EQ(aclrtMemcpy(e, 100, d, 100, kind),
			 kind == 3 ? 0 : ACL_ERROR_RT_PARAM_INVALID);
	}
	acl_delete(d);
	acl_delete(e);
}

static void memcpy_checks_its_arguments(void)
{
	char *d = acl_new(32, 0), host[200] = {};

	CHECK_EQ(aclrtMemcpy(NULL, 1, host, 1, ACL_MEMCPY_DEFAULT),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpy(d, 1, NULL, 1, ACL_MEMCPY_DEFAULT),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpy(d, 9, host, 10, ACL_MEMCPY_DEFAULT),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemcpy(d, 9, host, 9, ACL_MEMCPY_INNER_DEVICE_TO_DEVICE),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpy(d, 9, host, 9, (aclrtMemcpyKind)77),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpy(d, 200, host, 200, ACL_MEMCPY_DEFAULT),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(NULL, 1, 0, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemset(d, 1, 0, 2), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(d, 200, 0, 200), ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(d);
	CHECK_EQ(aclrtMemset(d, 1, 0, 1), ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemset(host, 200, 3, 200), 0);
	CHECK_EQ(host[199], 3);
}

static void a_transfer_of_no_bytes_succeeds(void)
{
	const aclrtMemcpyKind kind = (aclrtMemcpyKind)77;
	aclrtStream stream;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	CHECK_EQ(aclrtMemset(NULL, 0, 0, 0), 0);
	CHECK_EQ(aclrtMemsetAsync(NULL, 0, 0, 0, stream), 0);
	CHECK_EQ(aclrtMemcpy(NULL, 0, NULL, 0, kind), 0);
	CHECK_EQ(aclrtMemcpyAsync(NULL, 0, NULL, 0, kind, stream), 0);
	CHECK_EQ(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 5, kind), 0);
	CHECK_EQ(aclrtMemcpy2d(NULL, 0, NULL, 0, 5, 0, kind), 0);
	CHECK_EQ(aclrtMemcpy2dAsync(NULL, 0, NULL, 0, 0, 0, kind, stream), 0);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
}

/* The program may change it, or free it, at once. */
static void a_copy_of_other_memory_is_done_when_the_call_returns(void)
{
	char *d = acl_new(MIB, 0), host[1000], back[1000];
	aclrtStream stream;
	int i;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	for (i = 0; i < 100; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, stream), 0);
	memset(host, 5, sizeof(host));
	CHECK_EQ(aclrtMemcpyAsync(d, 1000, host, 1000,
				  ACL_MEMCPY_HOST_TO_DEVICE, stream),
		 0);
	memset(host, 6, sizeof(host));
	CHECK_EQ(byte_at(d + 999), 5);
	for (i = 0; i < 100; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, stream), 0);
	CHECK_EQ(aclrtMemcpy2dAsync(back, 1000, d, 1000, 1000, 1,
				    ACL_MEMCPY_DEVICE_TO_HOST, stream),
		 0);
	CHECK_EQ(back[999], 99);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

/* The stream works when the source has other bytes already. */
static void a_buffered_copy_reads_its_source_at_once(void)
{
	const aclrtMemcpyKind kind = ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
	char *d = acl_new(MIB, 0), host[1000], back[1000];
	aclrtStream stream;
	int i;

	CHECK_EQ(aclrtCreateStream(&stream), 0);
	for (i = 0; i < 100; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, stream), 0);
	memset(host, 5, sizeof(host));
	CHECK_EQ(aclrtMemcpyAsync(d, 1000, host, 1000, kind, stream), 0);
	memset(host, 6, sizeof(host));
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	CHECK_EQ(aclrtMemcpy(back, 1000, d, 1000, ACL_MEMCPY_DEVICE_TO_HOST),
		 0);
	CHECK_EQ(back[0], 5);
	CHECK_EQ(back[999], 5);
	CHECK_EQ(aclrtMemcpy(d, 1000, host, 1000, kind), 0);
	CHECK_EQ(byte_at(d + 999), 6);
	CHECK_EQ(aclrtMemcpy(host, 1000, d, 1000, kind),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
}

static void memset_d32_sets_words(void)
{
	const uint32_t value = 0x01020304;
	uint32_t *d = acl_new(64, 0), back[4], other = 0;
	uint32_t *only = acl_new(64, ACL_MEM_ACCESS_USER_SPACE_READONLY);

	CHECK_EQ(aclrtMemset(d, 64, 9, 64), 0);
	CHECK_EQ(aclrtMemsetD32(d + 1, 8, value, 2), 0);
	CHECK_EQ(aclrtMemcpy(back, 16, d, 16, ACL_MEMCPY_DEVICE_TO_HOST), 0);
	CHECK_EQ(back[0], 0x09090909);
	CHECK_EQ(back[1], value);
	CHECK_EQ(back[2], value);
	CHECK_EQ(back[3], 0x09090909);
	CHECK_EQ(aclrtMemsetD32Async(only, 64, value, 16, NULL), 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	CHECK_EQ(aclrtMemcpy(back, 4, only + 15, 4, ACL_MEMCPY_DEFAULT), 0);
	CHECK_EQ(back[0], value);
	CHECK_EQ(aclrtMemsetD32(NULL, 0, 0, 0), 0);
	CHECK_EQ(aclrtMemsetD32(NULL, 4, 0, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemsetD32((char *)d + 2, 4, 0, 1),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemsetD32(d, 7, 0, 2), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemsetD32(d, 64, 0, SIZE_MAX / 4 + 2),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemsetD32(&other, 4, 0, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemsetD32(d, MIB, 0, MIB / 4),
		 ACL_ERROR_RT_PARAM_INVALID);
	acl_delete(only);
	acl_delete(d);
}

#define COPIES 4

/**
 * struct batch - arguments of a batch
 *
 * Copies 0 and 1 go to the device, 2 and 3 bring the bytes back to @back.
 */
struct batch {
	char host[200], back[200];
	void *dsts[COPIES], *srcs[COPIES];
	size_t max[COPIES], sizes[COPIES], indexes[2], nr_attrs, failed;
	aclrtMemcpyBatchAttr attrs[2];
};

static void batch_init(struct batch *b, char *d)
{
	size_t i;

	*b = (struct batch){
		.dsts = { d, d + 100, b->back, b->back + 100 },
		.srcs = { b->host, b->host + 100, d, d + 100 },
		.indexes = { 0, 2 },
		.nr_attrs = 2,
		.failed = 77,
	};
	for (i = 0; i < COPIES; i++) {
		b->sizes[i] = 100;
		b->max[i] = 100;
	}
	b->attrs[0].dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	b->attrs[1].srcLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	memset(b->host, 4, 100);
	memset(b->host + 100, 5, 100);
}

static aclError batch_run(struct batch *b)
{
	return aclrtMemcpyBatch(b->dsts, b->max, b->srcs, b->sizes, COPIES,
				b->attrs, b->indexes, b->nr_attrs, &b->failed);
}

static void a_batch_copies_in_both_directions(void)
{
	char *d = acl_new(200, 0);
	struct batch b;

	batch_init(&b, d);
	CHECK_EQ(batch_run(&b), 0);
	CHECK_EQ(b.failed, SIZE_MAX);
	CHECK_EQ(memcmp(b.host, b.back, sizeof(b.host)), 0);
	batch_init(&b, d);
	CHECK_EQ(aclrtMemset(d, 200, 0, 200), 0);
	CHECK_EQ(aclrtMemcpyBatchAsync(b.dsts, b.max, b.srcs, b.sizes, COPIES,
				       b.attrs, b.indexes, 2, &b.failed, NULL),
		 0);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	CHECK_EQ(memcmp(b.host, b.back, sizeof(b.host)), 0);
	/* a batch of nothing succeeds */
	memset(b.sizes, 0, sizeof(b.sizes));
	CHECK_EQ(aclrtMemcpyBatch(NULL, NULL, NULL, b.sizes, COPIES, NULL, NULL,
				  0, &b.failed),
		 0);
	acl_delete(d);
}

/* Checks that a batch fails as a whole, and at which copy. */
static void check_failed(struct batch *b, aclError error, size_t index)
{
	char *d = b->dsts[0];

	CHECK_EQ(aclrtMemset(d, 200, 0, 200), 0);
	CHECK_EQ(batch_run(b), error);
	CHECK_EQ(b->failed, index);
	CHECK_EQ(byte_at(d), 0);
	batch_init(b, d);
}

static void a_batch_is_checked_as_a_whole(void)
{
	char *d = acl_new(200, 0);
	struct batch b;

	batch_init(&b, d);
	b.max[3] = 99;
	check_failed(&b, ACL_ERROR_INVALID_PARAM, SIZE_MAX);
	b.attrs[1].rsv[15] = 1;
	check_failed(&b, ACL_ERROR_INVALID_PARAM, SIZE_MAX);
	b.nr_attrs = 0;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX);
	b.indexes[0] = 1;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX);
	b.indexes[1] = 0;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX);
	b.indexes[1] = COPIES;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX);
	b.sizes[2] = 0;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, 2);
	b.srcs[1] = NULL;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, 1);
	b.attrs[1].dstLoc.type = ACL_MEM_LOCATION_TYPE_DEVICE;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, 2);
	b.attrs[0].dstLoc.id = 1;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, 0);
	b.indexes[1] = 3;
	check_failed(&b, ACL_ERROR_RT_PARAM_INVALID, 2);
	CHECK_EQ(aclrtMemcpyBatch(b.dsts, b.max, b.srcs, b.sizes, COPIES,
				  b.attrs, b.indexes, 2, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpyBatch(b.dsts, b.max, b.srcs, b.sizes, 0, b.attrs,
				  b.indexes, 2, &b.failed),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpyBatch(b.dsts, NULL, b.srcs, b.sizes, COPIES,
				  b.attrs, b.indexes, 2, &b.failed),
		 ACL_ERROR_INVALID_PARAM);
	acl_delete(d);
}

#define HEIGHT 10
#define WIDTH 40

/* What a matrix of @pitch has, and what lies between its rows: byte @i is i % 251. */
static void check_matrix(const unsigned char *m, size_t pitch, int between)
{
	size_t row, i;

	for (row = 0; row < HEIGHT; row++) {
		for (i = 0; i < WIDTH; i++)
			CHECK_EQ(m[row * pitch + i], (row * WIDTH + i) % 251);
		for (; i < pitch && row < HEIGHT - 1; i++)
			CHECK_EQ(m[row * pitch + i], between);
	}
}

static void memcpy2d_copies_rows(void)
{
	unsigned char host[HEIGHT * 48], back[HEIGHT * 64], all[HEIGHT * 64];
	unsigned char *d = acl_new(sizeof(all), 0), *e = acl_new(4096, 0);
	aclrtStream stream;
	size_t row, i;

	for (row = 0; row < HEIGHT; row++)
		for (i = 0; i < 48; i++)
			host[row * 48 + i] =
				i < WIDTH ? (row * WIDTH + i) % 251 : 1;
	CHECK_EQ(aclrtMemset(d, sizeof(all), 2, sizeof(all)), 0);
	CHECK_EQ(aclrtMemcpy2d(d, 64, host, 48, WIDTH, HEIGHT,
			       ACL_MEMCPY_HOST_TO_DEVICE),
		 0);
	CHECK_EQ(aclrtMemcpy(all, sizeof(all), d, sizeof(all),
			     ACL_MEMCPY_DEVICE_TO_HOST),
		 0);
	check_matrix(all, 64, 2);
	CHECK_EQ(all[sizeof(all) - 1], 2);
	/* on to the device, and back, in a stream */
	memset(back, 3, sizeof(back));
	CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 0,
					     ACL_STREAM_FAST_LAUNCH |
						     ACL_STREAM_FAST_SYNC),
		 0);
	CHECK_EQ(aclrtMemcpy2dAsync(e, 100, d, 64, WIDTH, HEIGHT,
				    ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
		 0);
	CHECK_EQ(aclrtMemcpy2dAsync(back, 50, e, 100, WIDTH, HEIGHT,
				    ACL_MEMCPY_DEVICE_TO_HOST, stream),
		 0);
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
	check_matrix(back, 50, 3);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
	acl_delete(e);
}

static aclError copy_matrix(void *dst, size_t dpitch, const void *src,
			    size_t spitch, size_t width, size_t height)
{
	aclError error = aclrtMemcpy2d(dst, dpitch, src, spitch, width, height,
				       ACL_MEMCPY_DEFAULT);

	CHECK_EQ(aclrtMemcpy2dAsync(dst, dpitch, src, spitch, width, height,
				    ACL_MEMCPY_DEFAULT, NULL),
		 error);
	CHECK_EQ(aclrtSynchronizeStream(NULL), 0);
	return error;
}

static void memcpy2d_checks_its_arguments(void)
{
	unsigned char *d = acl_new(4096, 0), host[16384] = {};

	CHECK_EQ(copy_matrix(NULL, 64, host, 64, 64, 1),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, 64, NULL, 64, 64, 1), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, 63, host, 64, 64, 2), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, 64, host, 63, 64, 2), ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, 64, host, 64, 64, SIZE_MAX),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, SIZE_MAX, host, 64, 64, 2),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(copy_matrix(d, SIZE_MAX, host, SIZE_MAX, SIZE_MAX, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	/* the last row ends with the memory, or behind it */
	CHECK_EQ(copy_matrix(d, 64, host, 64, 64, 64), 0);
	CHECK_EQ(copy_matrix(d, 64, host, 64, 64, 256),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemcpy2d(d, 64, host, 64, 64, 1,
			       ACL_MEMCPY_DEVICE_TO_HOST),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemcpy2d(d, 64, host, 64, 64, 1,
			       ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemcpy2d(host + 64, 64, host, 64, 64, 1,
			       ACL_MEMCPY_HOST_TO_HOST),
		 ACL_ERROR_INVALID_PARAM);
	acl_delete(d);
	CHECK_EQ(copy_matrix(d, 64, host, 64, 64, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
}

static void synchronize(void *stream)
{
	CHECK_EQ(aclrtSynchronizeStream(stream), 0);
}

/* A stream could not say that it has found no addresses for it. */
static void what_is_queued_is_written_to_read_only_memory(void)
{
	char *p = acl_new(MIB, ACL_MEM_ACCESS_USER_SPACE_READONLY);
	char *d = acl_new(MIB, 0);
	aclrtStream stream;
	int i;

	CHECK_EQ(aclrtMemset(p, MIB, 1, MIB), 0);
	CHECK_EQ(aclrtCreateStream(&stream), 0);
	for (i = 0; i < 400; i++)
		CHECK_EQ(aclrtMemsetAsync(d, MIB, i, MIB, stream), 0);
	CHECK_EQ(aclrtMemsetAsync(p, MIB, 2, MIB, stream), 0);
	CHECK_EQ(aclrtMemcpyAsync(p, 100, d, 100, ACL_MEMCPY_DEFAULT, stream),
		 0);
	call_without_mappings(synchronize, stream);
	CHECK_EQ(byte_at(p + MIB - 1), 2);
	CHECK_EQ(byte_at(p), 399 % 256);
	CHECK_EQ(aclrtDestroyStream(stream), 0);
	acl_delete(d);
	acl_delete(p);
}

static void copy_from(void *p)
{
	char byte;

	CHECK_EQ(aclrtMemcpy(&byte, 1, p, 1, ACL_MEMCPY_DEFAULT),
		 ACL_ERROR_RT_MEMORY_ALLOCATION);
}

static void what_cannot_be_mapped_is_told_in_words(void)
{
	char *p = acl_new(MIB, ACL_MEM_ACCESS_USER_SPACE_READONLY);

	CHECK(!aclGetRecentErrMsg());
	call_without_mappings(copy_from, p);
	CHECK(aclGetRecentErrMsg());
	acl_delete(p);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(memcpy_knows_directions),
		ROW(memcpy_checks_its_arguments),
		ROW(a_transfer_of_no_bytes_succeeds),
		ROW(a_copy_of_other_memory_is_done_when_the_call_returns),
		ROW(a_buffered_copy_reads_its_source_at_once),
		ROW(memset_d32_sets_words),
		ROW(a_batch_copies_in_both_directions),
		ROW(a_batch_is_checked_as_a_whole),
		ROW(memcpy2d_copies_rows),
		ROW(memcpy2d_checks_its_arguments),
		ROW(what_is_queued_is_written_to_read_only_memory),
		ROW(what_cannot_be_mapped_is_told_in_words),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
