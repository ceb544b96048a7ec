// SPDX-License-Identifier: MIT
/*
 * Replays the traces of models through an adapter, with $ACCMEM_SCALE per cent of their
 * events, at most 100.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapter_tests.h"
#include "test.h"

struct live {
	unsigned char *pointer;
	size_t size;
};

static FILE *open_trace(const char *name)
{
	char path[4096] = "";
	char *end;
	ssize_t length;
	FILE *file;
	int i;

	if (getenv("ACCMEM_TRACES")) {
		snprintf(path, sizeof(path), "%s/", getenv("ACCMEM_TRACES"));
	} else {
		/* build/selftests/PROGRAM */
		length = readlink("/proc/self/exe", path, sizeof(path) - 64);
		CHECK(length > 0);
		path[length] = 0;
		for (i = 0; i < 3; i++) {
			end = strrchr(path, '/');
			CHECK(end);
			*end = 0;
		}
		strcat(path, "/traces/");
	}
	strcat(path, name);
	file = fopen(path, "r");
	CHECK(file);
	return file;
}

/* The first and the last byte of each hold what tells it from others. */
static void put(struct live *l, unsigned int id)
{
	l->pointer[0] = id;
	l->pointer[l->size - 1] = id;
}

static bool is_there(const struct live *l, unsigned int id)
{
	unsigned char first = l->size > 1 ? l->pointer[0] : (unsigned char)id;

	return first == (unsigned char)id &&
	       l->pointer[l->size - 1] == (unsigned char)id;
}

static void take(const struct adapter *a, struct live *l, unsigned int id,
		 size_t size)
{
	l->pointer = a->alloc(size);
	l->size = size;
	CHECK(l->pointer);
	put(l, id);
}

static void give(const struct adapter *a, struct live *l, unsigned int id)
{
	CHECK(is_there(l, id));
	CHECK_EQ(a->free(l->pointer, l->size), 0);
	l->pointer = NULL;
}

/* What there is no room for on a small device is left out, with its free. */
static void replay(const char *name, const struct adapter *a, uint64_t room)
{
	unsigned int id, events = 0, most = 600 * test_scale(100),
			 ids = 1 << 17;
	struct live *live = calloc(ids, sizeof(*live));
	FILE *file = open_trace(name);
	uint64_t held = 0;
	char line[128];
	size_t size;

	CHECK(live);
	while (events < most && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "a %u %zu", &id, &size) == 2) {
			CHECK(id < ids);
			if (held + size > room)
				continue;
			take(a, &live[id], id, size);
			held += size;
			events++;
		} else if (sscanf(line, "f %u", &id) == 1 && live[id].pointer) {
			held -= live[id].size;
			give(a, &live[id], id);
			events++;
		}
	}
	fclose(file);
	CHECK(events >= (test_scale(100) < 100 ? most / 10 : 15000));
	for (id = 0; id < ids; id++)
		if (live[id].pointer)
			give(a, &live[id], id);
	free(live);
}

void replay_all(const struct adapter *a, struct accmem_pool *pool)
{
	struct accmem_pool_stats stats;
	struct accmem_info info;
	uint64_t room;

	CHECK_EQ(accmem_get_info(accmem_pool_context(pool), 0, &info), 0);
	room = info.capacity / 4 * 3;
	replay("gpt.trace", a, room);
	if (test_scale(100) == 100) {
		replay("decode.trace", a, room);
		replay("resnet.trace", a, room);
	}
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.live_bytes, 0);
	CHECK_EQ(stats.failures, 0);
	accmem_pool_trim(pool, 0);
	accmem_pool_get_stats(pool, &stats);
	CHECK_EQ(stats.reserved_bytes, 0);
}
