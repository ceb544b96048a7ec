// SPDX-License-Identifier: GPL-2.0
/*
 * The lines of a trace, from events in the order of their times. Each buffer has a number,
 * which is used again after the free. The trace is valid also after lost events: the free of
 * an unknown buffer adds no line, and a buffer at the address of another frees the other.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>

#include "accmem.h"
#include "record.h"

#define PIDS_MAX (1u << 22) /* of the kernel */

struct buffer_line {
	unsigned int device;
	uint64_t context;
	uint64_t address;
	uint64_t bytes;
	uint32_t id;
};

struct lines {
	FILE *out;
	void *live; /* tree of struct buffer_line, by device, context and address */
	uint32_t *free_ids;
	uint32_t nr_free_ids, nr_ids;
	struct totals totals;
	uint8_t *threads; /* bits of the recorded threads; NULL: all are recorded */
};

struct lines *lines_new(FILE *out)
{
	struct lines *l = xcalloc(1, sizeof(*l));

	l->out = out;
	return l;
}

static bool has_thread(const struct lines *l, pid_t thread)
{
	unsigned int n = thread;

	return !l->threads || (n < PIDS_MAX && l->threads[n / 8] & 1 << n % 8);
}

static void set_thread(struct lines *l, pid_t thread, bool recorded)
{
	unsigned int n = thread;

	if (n >= PIDS_MAX)
		return;
	l->threads[n / 8] &= ~(1 << n % 8);
	l->threads[n / 8] |= recorded << n % 8;
}

void lines_only(struct lines *l, pid_t thread)
{
	if (!l->threads)
		l->threads = xcalloc(1, PIDS_MAX / 8);
	set_thread(l, thread, true);
}

static int compare(const void *a, const void *b)
{
	const struct buffer_line *one = a, *two = b;

	if (one->device != two->device)
		return one->device < two->device ? -1 : 1;
	if (one->context != two->context)
		return one->context < two->context ? -1 : 1;
	return one->address < two->address ? -1 : one->address > two->address;
}

static struct buffer_line *find(struct lines *l, const struct event *e,
				uint64_t address)
{
	struct buffer_line key = { .device = e->device,
				   .context = e->context,
				   .address = address };
	struct buffer_line **found = tfind(&key, &l->live, compare);

	return found ? *found : NULL;
}

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static void write_alloc(struct lines *l, struct buffer_line *b, uint64_t bytes)
{
	b->bytes = bytes;
	l->totals.live += rounded(bytes);
	if (l->totals.live > l->totals.peak)
		l->totals.peak = l->totals.live;
	l->totals.allocs++;
	fprintf(l->out, "a %" PRIu32 " %" PRIu64 "\n", b->id, bytes);
}

static void write_free(struct lines *l, struct buffer_line *b)
{
	l->totals.live -= rounded(b->bytes);
	l->totals.frees++;
	fprintf(l->out, "f %" PRIu32 "\n", b->id);
}

static void on_free(struct lines *l, struct buffer_line *b)
{
	write_free(l, b);
	tdelete(b, &l->live, compare);
	l->free_ids = grow(l->free_ids, l->nr_free_ids, sizeof(*l->free_ids));
	l->free_ids[l->nr_free_ids++] = b->id;
	free(b);
}

static void on_alloc(struct lines *l, const struct event *e)
{
	struct buffer_line *b = find(l, e, e->address);

	if (b)
		on_free(l, b);
	if (!has_thread(l, e->thread) || !e->bytes)
		return;
	b = xcalloc(1, sizeof(*b));
	b->device = e->device;
	b->context = e->context;
	b->address = e->address;
	b->id = l->nr_free_ids ? l->free_ids[--l->nr_free_ids] : l->nr_ids++;
	if (!tsearch(b, &l->live, compare)) {
		fputs("accmem: no memory\n", stderr);
		exit(STATUS_FAILED);
	}
	write_alloc(l, b, e->bytes);
}

/* A REALLOC that copies also has events of the free and of the allocation. */
static void on_realloc(struct lines *l, const struct event *e)
{
	struct buffer_line *b = find(l, e, e->address);

	if (e->from != e->address || !b)
		return;
	write_free(l, b);
	write_alloc(l, b, e->bytes);
}

void lines_add(struct lines *l, const struct event *e)
{
	struct buffer_line *b;

	switch (e->kind) {
	case EVENT_ALLOC:
		on_alloc(l, e);
		break;
	case EVENT_FREE:
		b = find(l, e, e->address);
		if (b)
			on_free(l, b);
		break;
	case EVENT_REALLOC:
		on_realloc(l, e);
		break;
	case EVENT_FORK:
		if (l->threads)
			set_thread(l, e->child, has_thread(l, e->thread));
		break;
	default:
		break;
	}
}

struct totals lines_totals(const struct lines *l)
{
	return l->totals;
}

void lines_free(struct lines *l)
{
	tdestroy(l->live, free);
	free(l->free_ids);
	free(l->threads);
	free(l);
}
