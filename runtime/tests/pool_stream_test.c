// SPDX-License-Identifier: MIT
/*
 * Memory that a pool gets back at positions of streams: on the device in $ACCMEM_DEVICE, and
 * with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <accmem_streams.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pool_tests.h"

static int open_stream(void)
{
	int stream;

	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	return stream;
}

static struct accmem_pool_request allocate_on(struct accmem_pool *pool,
					      int stream, uint64_t length)
{
	struct accmem_pool_request req = { .length = length,
					   .on_stream = 1,
					   .stream = stream };

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	return req;
}

static void a_release_waits_for_its_position(void)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	struct accmem_pool *pool = new_pool(0);
	int stream = open_stream(), other = open_stream();
	struct accmem_pool_request req;
	size_t i, j;
	void *p, *q;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(accmem_pool_release(pool, p), -ENOENT);
		CHECK_EQ(accmem_pool_lookup(pool, p, NULL), -ENOENT);
		CHECK(get_stats(pool).pending_bytes >= lengths[i]);
		for (j = 0; j < 100; j++) {
			q = accmem_pool_malloc(pool, lengths[i]);
			CHECK(q && q != p);
			CHECK_EQ(accmem_pool_release(pool, q), 0);
		}
		req = allocate_on(pool, other, lengths[i]);
		CHECK(req.pointer != p);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
		/* the stream itself may have it at once */
		req = allocate_on(pool, stream, lengths[i]);
		CHECK(req.pointer == p);
		CHECK_EQ(req.position, i + 1);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(accmem_signal(stream, i + 1), 0);
		accmem_pool_trim(pool, ACCMEM_POOL_KEEP_ALL);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
		/* a position that is reached is not waited for */
		p = accmem_pool_malloc(pool, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, i + 1), 0);
		CHECK_EQ(get_stats(pool).pending_bytes, 0);
	}
	p = accmem_pool_malloc(pool, 64);
	CHECK_EQ(accmem_pool_release_at(pool, p, -1, 1), -EBADF);
	CHECK_EQ(accmem_pool_release_at(pool, (char *)p + 1, stream, 9),
		 -EINVAL);
	CHECK_EQ(accmem_pool_release_at(pool, NULL, stream, 9), -ENOENT);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	close(stream);
	close(other);
	end(pool);
}

static bool is_taken(struct accmem_pool *pool, const void *p, size_t length)
{
	void *q[20];
	bool found = false;
	size_t i;

	accmem_pool_trim(pool, ACCMEM_POOL_KEEP_ALL);
	for (i = 0; i < ARRAY_SIZE(q); i++) {
		q[i] = accmem_pool_malloc(pool, length);
		found = found || q[i] == p;
	}
	for (i = 0; i < ARRAY_SIZE(q); i++)
		CHECK_EQ(accmem_pool_release(pool, q[i]), 0);
	return !found;
}

/* A piece for which a stream has not reached the position of the last release */
static void *get_early(struct accmem_pool *pool, int stream, uint64_t position,
		       size_t length)
{
	void *p = accmem_pool_malloc(pool, length);
	struct accmem_pool_request req;

	CHECK_EQ(accmem_pool_release_at(pool, p, stream, position), 0);
	req = allocate_on(pool, stream, length);
	CHECK(req.pointer == p && req.position == position);
	return p;
}

/* However it is released, others get it when the stream has reached the position. */
static void what_a_stream_got_early_waits_for_it(void)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	struct accmem_pool *pool = new_pool(0);
	int stream = open_stream(), other = open_stream();
	struct accmem_pool_block block;
	uint64_t n = 0;
	size_t i;
	void *p;

	for (i = 0; i < ARRAY_SIZE(lengths); i++, n += 10) {
		p = get_early(pool, stream, n + 5, lengths[i]);
		CHECK_EQ(accmem_pool_lookup(pool, p, &block), 0);
		CHECK_EQ(block.length, lengths[i]);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		CHECK_EQ(accmem_pool_release(pool, p), -ENOENT);
		CHECK(is_taken(pool, p, lengths[i]));
		/* the stream may have it again */
		CHECK(allocate_on(pool, stream, lengths[i]).pointer == p);
		/* an earlier position of the same stream does not count */
		CHECK_EQ(accmem_pool_release_at(pool, p, stream, n + 3), 0);
		CHECK_EQ(accmem_signal(stream, n + 4), 0);
		CHECK(is_taken(pool, p, lengths[i]));
		CHECK_EQ(accmem_signal(stream, n + 5), 0);
		CHECK(!is_taken(pool, p, lengths[i]));
	}
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	close(stream);
	close(other);
	end(pool);
}

static void and_for_the_stream_of_its_release(void)
{
	static const size_t lengths[] = { 64, 5000, MIB };
	struct accmem_pool *pool = new_pool(0);
	int stream = open_stream(), other = open_stream();
	uint64_t n = 0;
	size_t i;
	void *p;

	for (i = 0; i < ARRAY_SIZE(lengths); i++, n += 10) {
		/* first the one, then the other */
		p = get_early(pool, stream, n + 1, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, other, n + 1), 0);
		CHECK_EQ(accmem_signal(stream, n + 1), 0);
		CHECK(is_taken(pool, p, lengths[i]));
		CHECK_EQ(accmem_signal(other, n + 1), 0);
		CHECK(!is_taken(pool, p, lengths[i]));
		p = get_early(pool, stream, n + 2, lengths[i]);
		CHECK_EQ(accmem_pool_release_at(pool, p, other, n + 2), 0);
		CHECK_EQ(accmem_signal(other, n + 2), 0);
		CHECK(is_taken(pool, p, lengths[i]));
		CHECK_EQ(accmem_signal(stream, n + 2), 0);
		CHECK(!is_taken(pool, p, lengths[i]));
		/* a position that is reached while the piece is in use */
		p = get_early(pool, stream, n + 3, lengths[i]);
		CHECK_EQ(accmem_signal(stream, n + 3), 0);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
		CHECK(!is_taken(pool, p, lengths[i]));
	}
	p = get_early(pool, stream, n + 1, MIB);
	CHECK_EQ(accmem_pool_release_at(pool, p, other, n + 1), 0);
	close(other);
	CHECK(is_taken(pool, p, MIB));
	close(stream);
	CHECK(!is_taken(pool, p, MIB));
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	end(pool);
}

/* Of its size, and with a smaller alignment than is asked for on its stream */
static void a_block_that_waits_is_not_aligned(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = 100,
					   .mapped = 1,
					   .on_stream = 1 };
	char *p[2];
	size_t i;

	req.stream = open_stream();
	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = accmem_pool_malloc(pool, 100);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release_at(pool, p[i], req.stream, 1), 0);
	for (req.alignment = 256; req.alignment <= 4096; req.alignment *= 2) {
		CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
		CHECK(req.pointer != p[0] && req.pointer != p[1]);
		CHECK_EQ((uintptr_t)req.pointer % req.alignment, 0);
		memset(req.pointer, 1, req.usable);
		CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	}
	/* what is not aligned may have them */
	req.alignment = 0;
	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK(req.pointer == p[0] || req.pointer == p[1]);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	CHECK_EQ(accmem_signal(req.stream, 1), 0);
	close(req.stream);
	end(pool);
}

/* On a full device, behind more pieces of another length than a search looks at first. */
static void a_piece_that_waits_is_found_among_many(void)
{
	struct accmem_pool *pool = new_pool(0);
	void *fits = accmem_pool_malloc(pool, MIB), *p[100];
	struct accmem_pool_request req;
	int stream = open_stream();
	static void *rest[FILL_MAX];
	size_t i;

	CHECK(fits);
	for (i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = accmem_pool_malloc(pool, 20 * 4096);
	fill(pool, rest, FILL_MAX, FILL_LENGTH);
	while (accmem_pool_malloc(pool, 20 * 4096))
		;
	for (i = 0; i < ARRAY_SIZE(p); i++)
		CHECK_EQ(accmem_pool_release_at(pool, p[i], stream, 1), 0);
	CHECK_EQ(accmem_pool_release_at(pool, fits, stream, 1), 0);
	req = allocate_on(pool, stream, MIB);
	CHECK(req.pointer == fits);
	CHECK_EQ(req.position, 1);
	close(stream);
	end(pool);
}

static void streams_are_joined_before_a_request_fails(void)
{
	struct accmem_pool *pool = new_pool(0);
	int stream[2] = { open_stream(), open_stream() };
	static void *p[FILL_MAX];
	size_t n = fill(pool, p, FILL_MAX, FILL_LENGTH), i;

	for (i = 0; i < n; i++)
		CHECK_EQ(accmem_pool_release_at(pool, p[i], stream[i % 2], 1),
			 0);
	CHECK(!accmem_pool_malloc(pool, FILL_LENGTH));
	CHECK_EQ(accmem_signal(stream[0], 1), 0);
	CHECK_EQ(accmem_signal(stream[1], 1), 0);
	p[0] = accmem_pool_malloc(pool, get_capacity() * 3 / 4);
	CHECK(p[0]);
	CHECK_EQ(accmem_pool_release(pool, p[0]), 0);
	close(stream[0]);
	close(stream[1]);
	end(pool);
}

/* A stream that is none is no reason to take the mapping away. */
static void a_release_that_is_refused_changes_nothing(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = 3 * MIB,
					   .flags = ACCMEM_ALLOC_RESIZABLE,
					   .mapped = 1 };
	unsigned char *p;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	p = req.pointer;
	p[5] = 77;
	CHECK_EQ(accmem_pool_release_at(pool, p, -1, 1), -EBADF);
	CHECK_EQ(p[5], 77);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	end(pool);
}

/* Closed when its position was reached, before the pool has looked. */
static void what_waited_for_a_stream_waits_for_no_other(void)
{
	struct accmem_pool *pool = new_pool(0);
	void *p = accmem_pool_malloc(pool, MIB);
	int stream, other;

	CHECK_EQ(accmem_open_stream(context, &stream), 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, stream, 5), 0);
	CHECK_EQ(accmem_signal(stream, 5), 0);
	CHECK_EQ(close(stream), 0);
	CHECK_EQ(accmem_open_stream(context, &other), 0);
	CHECK_EQ(other, stream);
	accmem_pool_trim(pool, 0);
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	close(other);
	end(pool);
}

/* The number of a handle's stream is the next one's. */
static void what_waited_for_a_handle_waits_for_no_other(void)
{
	struct accmem_pool *pool = new_pool(0);
	void *p = accmem_pool_malloc(pool, MIB);
	struct accmem_streams *streams;
	int names[2], stream, other;
	uint64_t position;

	CHECK_EQ(accmem_streams_create(context, &streams), 0);
	CHECK_EQ(accmem_streams_mark(streams, &names[0], &position), 0);
	CHECK_EQ(accmem_streams_locate(streams, &names[0], &stream, &position),
		 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, stream, position), 0);
	CHECK_EQ(accmem_streams_forget(streams, &names[0]), 0);
	CHECK_EQ(accmem_streams_locate(streams, &names[1], &other, &position),
		 0);
	CHECK_EQ(other, stream);
	accmem_pool_trim(pool, 0);
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	accmem_streams_destroy(streams);
	end(pool);
}

/* Nor for a stream of that number which the library does not know of. */
static void nor_for_one_that_the_library_has_not_opened(void)
{
	struct accmem_stream_create create = { .size = sizeof(create) };
	struct accmem_pool *pool = new_pool(0);
	void *p = accmem_pool_malloc(pool, MIB);
	struct accmem_streams *streams;
	uint64_t position;
	int name, stream;

	CHECK_EQ(accmem_streams_create(context, &streams), 0);
	CHECK_EQ(accmem_streams_locate(streams, &name, &stream, &position), 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, stream, position), 0);
	CHECK_EQ(accmem_streams_forget(streams, &name), 0);
	CHECK_EQ(ioctl(accmem_fd(context), ACCMEM_IOC_STREAM_CREATE, &create),
		 0);
	CHECK_EQ(create.fd, stream);
	accmem_pool_trim(pool, 0);
	CHECK_EQ(get_stats(pool).pending_bytes, 0);
	close(create.fd);
	accmem_streams_destroy(streams);
	end(pool);
}

static void handles_are_of_one_kind(void)
{
	struct accmem_pool *pool = new_pool(0);
	int marked, bound, fd = open_stream(), found;
	struct accmem_streams *streams;
	uint64_t position;

	CHECK_EQ(accmem_streams_create(context, &streams), 0);
	CHECK_EQ(accmem_streams_find(streams, &marked, &found), -ENOENT);
	CHECK_EQ(accmem_streams_reach(streams, &marked, 1), -ENOENT);
	CHECK_EQ(accmem_streams_mark(streams, &marked, &position), 0);
	CHECK_EQ(accmem_streams_find(streams, &marked, &found), 0);
	CHECK_EQ(accmem_streams_reach(streams, &marked, position + 1), -EINVAL);
	CHECK_EQ(accmem_streams_reach(streams, &marked, 0), -EINVAL);
	CHECK_EQ(accmem_streams_bind(streams, &marked, fd, 1), -EEXIST);

	CHECK_EQ(accmem_streams_bind(streams, &bound, -1, 1), -EINVAL);
	CHECK_EQ(accmem_streams_bind(streams, &bound, fd, 2), 0);
	CHECK_EQ(accmem_streams_bind(streams, &bound, fd, 1), -ERANGE);
	CHECK_EQ(accmem_streams_find(streams, &bound, &found), 0);
	CHECK_EQ(found, fd);
	CHECK_EQ(accmem_streams_mark(streams, &bound, &position), -EEXIST);
	CHECK_EQ(accmem_streams_reach(streams, &bound, 1), -ENOENT);
	CHECK_EQ(accmem_streams_locate(streams, NULL, &found, &position), 0);
	CHECK_EQ(found, -1);
	accmem_streams_destroy(streams);
	close(fd);
	end(pool);
}

static void only_streams_of_the_context_are_taken(void)
{
	struct accmem_pool *pool = new_pool(0);
	int null = open("/dev/null", O_RDWR), own = open_stream(), name;
	void *p = accmem_pool_malloc(pool, MIB);
	struct accmem_streams *streams;
	struct accmem_context *other;
	int foreign;

	CHECK_EQ(accmem_streams_create(context, &streams), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, null, 1), -EINVAL);
	CHECK_EQ(accmem_streams_bind(streams, &name, own, 1), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, null, 1), -EINVAL);
	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_open_stream(other, &foreign), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, foreign, 1), -EACCES);
	CHECK_EQ(accmem_pool_release_at(pool, p, foreign, 1), -EACCES);
	CHECK(strstr(accmem_last_error(), "stream"));
	close(foreign);
	accmem_close(other);
	close(null);
	CHECK_EQ(accmem_streams_bind(streams, &name, null, 1), -EBADF);
	/* what was refused has changed nothing */
	CHECK_EQ(accmem_streams_bind(streams, &name, own, 2), 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, own, 2), 0);
	accmem_streams_destroy(streams);
	close(own);
	end(pool);
}

static void the_words_are_about_what_was_wrong(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = MIB,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	char *p = accmem_pool_malloc(pool, MIB);
	int null = open("/dev/null", O_RDWR);

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, null, 1), -EINVAL);
	CHECK(strstr(accmem_last_error(), "stream"));
	CHECK_EQ(accmem_pool_release_at(pool, req.pointer, null, 1), -EINVAL);
	CHECK(strstr(accmem_last_error(), "stream"));
	CHECK_EQ(accmem_pool_reallocate(pool, &req.pointer, 0), -EINVAL);
	CHECK(strstr(accmem_last_error(), " 0 bytes"));
	CHECK_EQ(accmem_pool_release_at(pool, p + 1, null, 1), -EINVAL);
	close(null);
	end(pool);
}

/* A descriptor that was used for a stream of the pool's context is another's now. */
static void a_descriptor_is_checked_again(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_context *other;
	int stream = open_stream(), again;
	void *p = accmem_pool_malloc(pool, MIB);

	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_pool_release_at(pool, p, stream, 1), 0);
	close(stream);
	CHECK_EQ(accmem_open_stream(other, &again), 0);
	CHECK_EQ(again, stream);
	p = accmem_pool_malloc(pool, MIB);
	CHECK_EQ(accmem_pool_release_at(pool, p, again, 1), -EACCES);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	close(again);
	accmem_close(other);
	end(pool);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(a_descriptor_is_checked_again),
		ROW(a_release_waits_for_its_position),
		ROW(what_a_stream_got_early_waits_for_it),
		ROW(and_for_the_stream_of_its_release),
		ROW(a_block_that_waits_is_not_aligned),
		ROW(a_piece_that_waits_is_found_among_many),
		ROW(streams_are_joined_before_a_request_fails),
		ROW(a_release_that_is_refused_changes_nothing),
		ROW(nor_for_one_that_the_library_has_not_opened),
		ROW(handles_are_of_one_kind),
		ROW(only_streams_of_the_context_are_taken),
		ROW(the_words_are_about_what_was_wrong),
		ROW(what_waited_for_a_stream_waits_for_no_other),
		ROW(what_waited_for_a_handle_waits_for_no_other),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
