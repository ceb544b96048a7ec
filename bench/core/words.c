// SPDX-License-Identifier: GPL-2.0
/*
 * Count the metadata words that calls of lib/buddy touch, in userspace. The compiler
 * instruments each load and store of the allocator. For each workload the program
 * prints a line with the order cache and a line without it. A line has the number of
 * words of the median call and of the most expensive call:
 *
 *   words=WORKLOAD impl=NAME median=N max=N
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/buddy/buddy.h"
#include "core.h"
#include "count.h"

struct counted {
	struct accmem_buddy buddy;
	void *meta;
	union bench_block *block;
	u32 *words;
};

static void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		perror("words");
		exit(2);
	}
	return p;
}

/* Make a call. Return the number of words that it touched. */
static u32 call(struct counted *c, const struct bench_workload *w,
		const struct bench_event *e)
{
	struct accmem_buddy_request req = {
		.size = e->granules * BENCH_GRANULE,
		.align = w->align,
	};
	union bench_block *block = &c->block[e->id];
	int err;

	count_begin();
	if (e->granules) {
		err = accmem_buddy_alloc(&c->buddy, &req, &block->start);
		if (!err)
			block->size = req.size;
		else if (err != -ENOMEM)
			abort();
	} else if (block->size) {
		if (accmem_buddy_free(&c->buddy, block->start, block->size))
			abort();
		block->size = 0;
	}
	return count_words();
}

static int by_value(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static void count(const struct bench_workload *w, bool order_cache)
{
	u32 n = w->nr_events - w->nr_setup, i;
	struct counted c = {};

	c.meta = xcalloc(1, accmem_buddy_meta_size(BENCH_RANGE));
	c.block = xcalloc(w->nr_ids, sizeof(*c.block));
	c.words = xcalloc(w->nr_events, sizeof(*c.words));
	if (accmem_buddy_init(&c.buddy, BENCH_RANGE, c.meta))
		abort();
	accmem_buddy_set_cache(&c.buddy, order_cache);
	count_within(c.meta, accmem_buddy_meta_size(BENCH_RANGE));
	for (i = 0; i < w->nr_events; i++)
		c.words[i] = call(&c, w, &w->event[i]);
	qsort(c.words + w->nr_setup, n, sizeof(*c.words), by_value);
	printf("words=%s impl=accmem%s median=%u max=%u\n", w->name,
	       order_cache ? "" : "-nocache", c.words[w->nr_setup + n / 2],
	       c.words[w->nr_events - 1]);
	free(c.meta);
	free(c.block);
	free(c.words);
}

int main(void)
{
	struct bench_workload w;
	unsigned int i;

	for (i = 0; !bench_workload_make(&w, i, BENCH_SEED, 100); i++) {
		count(&w, true);
		count(&w, false);
		bench_workload_free(&w);
	}
	return 0;
}
