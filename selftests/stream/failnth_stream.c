// SPDX-License-Identifier: GPL-2.0
/*
 * Failed allocations for streams, for their fences, and for ALLOC on a stream. Each
 * allocation fails once, as in failnth.c.
 */
#include "failnth_util.h"
#include "stream_util.h"

FAILNTH_FIXTURE(failnth_stream)

static int fences = -1;

static int create_stream(const char *path, int fd)
{
	int stream = stream_create(fd);

	(void)path;
	if (stream < 0)
		return stream;
	close(stream);
	return 0;
}

/*
 * of fences that are to come, and of fences of the past; made before. Successive imports
 * of one fence need one step: the calls that succeed take turns.
 */
static int import_files[2], import_turn;

static int import_fence(const char *path, int stream)
{
	uint64_t at = stream_query(stream).claimed + 1;
	int err = stream_import(stream, at, import_files[import_turn]);

	(void)path;
	import_turn ^= !err;
	return err;
}

static int export_position(const char *path, int stream)
{
	int file = stream_export(stream, stream_query(stream).claimed);

	(void)path;
	if (file < 0)
		return file;
	close(file);
	return 0;
}

/* as sweep(), of a call that leaves nothing that counters show */
static void sweep_stream(struct __test_metadata *_metadata, int stream,
			 int (*call)(const char *path, int fd))
{
	unsigned int nth, failed = 0;
	bool injected = true;
	int err;

	ASSERT_EQ(0, call(NULL, stream));
	for (nth = 1; nth < N_MAX && injected; nth++) {
		struct accmem_stream_query before = stream_query(stream);

		arm(nth);
		err = call(NULL, stream);
		injected = disarm();
		failed += err != 0;
		if (err) {
			EXPECT_TRUE(injected);
			EXPECT_EQ(before.claimed, stream_query(stream).claimed);
		}
	}
	EXPECT_FALSE(injected);
	EXPECT_EQ(0, err);
	EXPECT_LT(0, failed);
}

TEST_F(failnth_stream, streams)
{
	uint32_t ids[2][2];
	int stream, i, j;

	NEED_INJECTION();
	SWEEP(create_stream);
	fences = fence_device();
	ASSERT_LE(0, fences);
	stream = stream_created(self->fd);
	/* what is reached, then what is claimed */
	sweep_stream(_metadata, stream, export_position);
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			import_files[j] = fence_created(fences, &ids[i][j]);
			if (!i)
				ASSERT_EQ(0, fence_signal(fences, ids[i][j], 0,
							  0));
		}
		sweep_stream(_metadata, stream, import_fence);
		sweep_stream(_metadata, stream, export_position);
		close(import_files[0]);
		close(import_files[1]);
	}
	for (j = 0; j < 2; j++)
		ASSERT_EQ(0, fence_signal(fences, ids[1][j], 0, 0));
	EXPECT_EQ(0, stream_settle(stream, stream_query(stream).claimed));
	close(stream);
	close(fences);
}

static int stream_for_alloc;

/* memory that is pending already, and memory that is not */
static int alloc_on_stream(const char *path, int fd)
{
	struct accmem_alloc a = { .length = KIB(64),
				  .flags = ACCMEM_ALLOC_TOP_DOWN };
	int err = stream_alloc(fd, stream_for_alloc, &a);
	uint64_t at = stream_query(stream_for_alloc).reached + 1;

	(void)path;
	if (err)
		return err;
	err = stream_free(fd, a.address, stream_for_alloc, at);
	if (err)
		return err;
	a = (struct accmem_alloc){ .length = KIB(64),
				   .flags = ACCMEM_ALLOC_TOP_DOWN };
	err = stream_alloc(fd, stream_for_alloc, &a);
	if (!err)
		err = accmem_ioctl_free(fd, a.address);
	return stream_signal(stream_for_alloc, at) ?: err;
}

TEST_F(failnth_stream, alloc_on_a_stream)
{
	NEED_INJECTION();
	stream_for_alloc = stream_created(self->fd);
	SWEEP(alloc_on_stream);
	close(stream_for_alloc);
}

ACCMEM_HARNESS_MAIN
