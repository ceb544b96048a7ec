// SPDX-License-Identifier: MIT
/*
 * What a pool keeps of what is released to it, at once or at a position of a stream: on
 * the device in $ACCMEM_DEVICE, and with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <accmem_streams.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "pool_tests.h"

static void what_is_kept_does_not_stand_in_the_way(void)
{
	struct accmem_pool *pool = new_pool(0);
	static void *p[FILL_MAX];
	size_t n = fill(pool, p, FILL_MAX, FILL_LENGTH), i;
	void *large;

	CHECK(n * FILL_LENGTH > get_capacity() * 9 / 10);
	for (i = 0; i < n; i++)
		CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	/* a buffer of the kernel's: the pool gives back what it has */
	large = accmem_pool_malloc(pool, get_capacity() * 3 / 4);
	CHECK(large);
	CHECK_EQ(accmem_pool_release(pool, large), 0);
	/* spans of another length: the free ones are joined */
	n = fill(pool, p, FILL_MAX, 2 * FILL_LENGTH);
	CHECK(n * 2 * FILL_LENGTH > get_capacity() * 9 / 10);
	while (n--)
		CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	end(pool);
}

static void trim_gives_back(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_info info;
	void *p = accmem_pool_malloc(pool, 20 * MIB);
	void *q = accmem_pool_malloc(pool, 100);

	CHECK(p && q);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK(get_stats(pool).reserved_bytes >= 20 * MIB);
	CHECK(accmem_pool_trim(pool, 8 * MIB) >= 10 * MIB);
	CHECK(get_stats(pool).reserved_bytes >= 8 * MIB);
	CHECK_EQ(accmem_pool_release(pool, q), 0);
	CHECK(accmem_pool_trim(pool, 0));
	CHECK_EQ(get_stats(pool).reserved_bytes, 0);
	CHECK_EQ(accmem_get_info(context, 0, &info), 0);
	CHECK_EQ(info.context_bytes, 0);
	end(pool);
}

static void no_more_is_kept_than_was_said(void)
{
	struct accmem_pool_options options = { .size = sizeof(options),
					       .keep_bytes = 4 * MIB };
	struct accmem_pool *pool;
	void *p;

	CHECK_EQ(accmem_open(NULL, &context), 0);
	CHECK_EQ(accmem_pool_create(context, &options, &pool), 0);
	p = accmem_pool_malloc(pool, 30 * MIB);
	CHECK(p);
	CHECK_EQ(accmem_pool_release(pool, p), 0);
	CHECK(get_stats(pool).reserved_bytes <= 6 * MIB);
	end(pool);
}

static void calls_of_the_kernel_are_few(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t before = 0;
	void *p[100];
	size_t i, round;

	for (round = 0; round < 20; round++) {
		if (round == 1)
			before = get_stats(pool).kernel_calls;
		for (i = 0; i < ARRAY_SIZE(p); i++)
			p[i] = accmem_pool_malloc(pool, 1 + i * 5000);
		for (i = 0; i < ARRAY_SIZE(p); i++)
			CHECK_EQ(accmem_pool_release(pool, p[i]), 0);
	}
	CHECK_EQ(get_stats(pool).kernel_calls, before);
	end(pool);
}

/* What the pool keeps is the device's again, before a request is refused or waits. */
static void what_is_kept_is_given_back_for_what_is_no_piece(void)
{
	struct accmem_pool *pool = new_pool(0);
	struct accmem_pool_request req = { .length = get_capacity() / 8,
					   .flags = ACCMEM_ALLOC_RESIZABLE };
	struct accmem_pool_request waits = {
		.length = get_capacity() / 4 * 3,
		.flags = ACCMEM_ALLOC_RESIZABLE | ACCMEM_ALLOC_WAIT,
	};
	void *kept[3];
	size_t i;

	CHECK_EQ(accmem_pool_allocate(pool, &req), 0);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		kept[i] = accmem_pool_malloc(pool, get_capacity() / 4);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		CHECK_EQ(accmem_pool_release(pool, kept[i]), 0);
	CHECK(get_stats(pool).reserved_bytes > get_capacity() / 2);
	CHECK_EQ(accmem_pool_reallocate(pool, &req.pointer, get_capacity() / 2),
		 0);
	CHECK_EQ(accmem_pool_release(pool, req.pointer), 0);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		kept[i] = accmem_pool_malloc(pool, get_capacity() / 4);
	for (i = 0; i < ARRAY_SIZE(kept); i++)
		CHECK_EQ(accmem_pool_release(pool, kept[i]), 0);
	CHECK(get_stats(pool).reserved_bytes > get_capacity() / 2);
	CHECK_EQ(accmem_pool_allocate(pool, &waits), 0);
	CHECK_EQ(accmem_pool_release(pool, waits.pointer), 0);
	end(pool);
}

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

/* A stream of another context, where the device tells contexts apart. */
static void only_streams_of_the_context_are_taken(void)
{
	struct accmem_pool *pool = new_pool(0);
	int null = open("/dev/null", O_RDWR), own = open_stream(), name;
	void *p = accmem_pool_malloc(pool, MIB);
	struct accmem_streams *streams;

	CHECK_EQ(accmem_streams_create(context, &streams), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, null, 1), -EINVAL);
	CHECK_EQ(accmem_streams_bind(streams, &name, own, 1), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, null, 1), -EINVAL);
#ifndef FAKE_DEVICE
	struct accmem_context *other;
	int foreign;

	CHECK_EQ(accmem_open(NULL, &other), 0);
	CHECK_EQ(accmem_open_stream(other, &foreign), 0);
	CHECK_EQ(accmem_streams_bind(streams, &name, foreign, 1), -EACCES);
	CHECK_EQ(accmem_pool_release_at(pool, p, foreign, 1), -EACCES);
	CHECK(strstr(accmem_last_error(), "stream"));
	close(foreign);
	accmem_close(other);
#endif
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

/* Leave at most 128 MiB to the pool. Returns the bytes that are left. */
static uint64_t leave_room(uint64_t *rest)
{
	uint64_t capacity = get_capacity(), room = capacity / 2;

	if (room > 128 * MIB)
		room = 128 * MIB;
	CHECK_EQ(accmem_malloc(context, capacity - room, rest), 0);
	return room;
}

static void all_memory_is_one_allocation(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest), less;
	void *p;

	for (less = 0; less <= 8192; less = less ? 2 * less : 64) {
		p = accmem_pool_malloc(pool, room - less);
		CHECK(p);
		CHECK_EQ(accmem_pool_release(pool, p), 0);
	}
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

/*
 * The only free span that is long enough is the first one that was freed, and behind many
 * that are a little too short. All have one list: 128 to 135 pages.
 */
static void a_span_that_fits_is_found_among_many(void)
{
	const size_t page = 4096, fits = 135, short_by_a_bit = 128;
	struct accmem_pool *pool = new_pool(0);
	static void *spans[512], *between[8192];
	uint64_t rest;
	size_t n = 0, m = 0;

	leave_room(&rest);
	spans[n++] = accmem_pool_malloc(pool, fits * page);
	do {
		between[m++] = accmem_pool_malloc(pool, 17 * page);
		spans[n++] = accmem_pool_malloc(pool, short_by_a_bit * page);
	} while (spans[n - 1] && n < ARRAY_SIZE(spans));
	CHECK(n > 30 && n < ARRAY_SIZE(spans));
	while (m < ARRAY_SIZE(between) &&
	       (between[m] = accmem_pool_malloc(pool, 17 * page)))
		m++;
	/* the last one, and the pieces behind it, are the end of the region */
	n -= 2;
	for (m = 0; m < n; m++)
		CHECK_EQ(accmem_pool_release(pool, spans[m]), 0);
	spans[0] = accmem_pool_malloc(pool, (fits - 2) * page);
	CHECK(spans[0]);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

static void another_pool_of_the_context_gives_back(void)
{
	struct accmem_pool *pool = new_pool(0), *other = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	void *p = accmem_pool_malloc(other, room / 2);

	CHECK(p);
	CHECK_EQ(accmem_pool_release(other, p), 0);
	CHECK(accmem_pool_malloc(pool, room / 4 * 3));
	CHECK_EQ(accmem_release(context, rest), 0);
	accmem_pool_destroy(other);
	end(pool);
}

static void steps_of_other_sizes_do_not_run_out(void)
{
	struct accmem_pool *pool = new_pool(0);
	unsigned int seed = 7, step;
	uint64_t rest, room = leave_room(&rest), left, length;
	void *p[64];
	int n;

	for (step = 0; step < 60; step++) {
		left = room / 100 * 88;
		for (n = 0; n < 64; n++) {
			length = room / 256 + rand_r(&seed) % (room / 64);
			if (length > left)
				break;
			p[n] = accmem_pool_malloc(pool, length);
			CHECK(p[n]);
			left -= length;
		}
		while (n--)
			CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	}
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

static void a_large_one_fits_again_after_small_ones(void)
{
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	void *large = accmem_pool_malloc(pool, room / 100 * 60);
	int i;

	CHECK(large);
	CHECK_EQ(accmem_pool_release(pool, large), 0);
	for (i = 0; i < 20; i++) {
		CHECK(accmem_pool_malloc(pool, room / 200));
		CHECK(accmem_pool_malloc(pool, 50000));
		CHECK(accmem_pool_malloc(pool, 300));
	}
	large = accmem_pool_malloc(pool, room / 100 * 80);
	CHECK(large);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

/* Small blocks, short spans and long spans take turns, each with nearly all the memory. */
static void sizes_take_turns(void)
{
	static const size_t lengths[] = { 2000, 40000, 3 * MIB };
	struct accmem_pool *pool = new_pool(0);
	uint64_t rest, room = leave_room(&rest);
	static void *p[65536];
	size_t i, n, most;

	for (i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
		most = room / 100 * 88 /
		       (lengths[i % ARRAY_SIZE(lengths)] + 64);
		for (n = 0; n < most && n < ARRAY_SIZE(p); n++) {
			p[n] = accmem_pool_malloc(pool,
						  lengths[i %
							  ARRAY_SIZE(lengths)]);
			CHECK(p[n]);
		}
		while (n--)
			CHECK_EQ(accmem_pool_release(pool, p[n]), 0);
	}
	CHECK(get_stats(pool).kernel_calls < 2000);
	CHECK_EQ(accmem_release(context, rest), 0);
	end(pool);
}

int main(void)
{
	static const struct test tests[] = {
		ROW(what_is_kept_does_not_stand_in_the_way),
		ROW(all_memory_is_one_allocation),
		ROW(a_span_that_fits_is_found_among_many),
		ROW(another_pool_of_the_context_gives_back),
		ROW(steps_of_other_sizes_do_not_run_out),
		ROW(a_large_one_fits_again_after_small_ones),
		ROW(sizes_take_turns),
		ROW(trim_gives_back),
		ROW(no_more_is_kept_than_was_said),
		ROW(calls_of_the_kernel_are_few),
		ROW(what_is_kept_is_given_back_for_what_is_no_piece),
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
