// SPDX-License-Identifier: GPL-2.0
/*
 * accmem map: owners of a device's memory, and a carveout in cells of equal size, from the
 * runs. A row of a picture of characters has as many cells as the terminal has room for: a
 * power of two from 16 to 256.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"

#define OFFSET_WIDTH 14
#define ROW_LEAST 16
#define ROW_MOST 256

static bool has_owner(const struct run *r, const void *unused)
{
	(void)unused;
	return run_is_used(r) && r->state != RUN_RETIRED;
}

/* Return false if the runs cannot be read. */
bool picture_read(struct picture *p, const struct snapshot *s,
		  const struct device *d)
{
	memset(p, 0, sizeof(*p));
	p->s = s;
	p->device = d;
	if (!runs_read(&p->runs, &p->nr_runs, d->name))
		return false;
	p->owners =
		owners_of(p->runs, p->nr_runs, has_owner, NULL, &p->nr_owners);
	return true;
}

void picture_free(struct picture *p)
{
	free(p->runs);
	free(p->owners);
}

/* Give a run the cells of which it has more bytes than the runs before it. */
static void draw_run(const struct picture *p, const struct run *r,
		     struct cell *cells, uint64_t bytes, size_t nr)
{
	uint64_t end = r->offset + r->size, from, to;
	size_t i;

	for (i = r->offset / bytes; i < nr && i * bytes < end; i++) {
		from = i * bytes > r->offset ? i * bytes : r->offset;
		to = (i + 1) * bytes < end ? (i + 1) * bytes : end;
		if (to - from <= cells[i].bytes)
			continue;
		cells[i].bytes = to - from;
		cells[i].state = r->state;
		cells[i].owner = has_owner(r, NULL) ?
					 owner_find(p->owners, p->nr_owners,
						    r->context) :
					 NO_OWNER;
	}
}

/* Return the smallest multiple of the granule of which @nr cells have @capacity bytes. */
static uint64_t cell_bytes(uint64_t capacity, size_t nr)
{
	uint64_t granules = capacity / GRANULE + !!(capacity % GRANULE);

	return (granules / nr + !!(granules % nr)) * GRANULE;
}

/*
 * Return the cells of a carveout, to be freed: @most at most. *@bytes is the size of a cell. The
 * carveout has a known size.
 */
struct cell *picture_cells(const struct picture *p, unsigned int carveout,
			   size_t most, uint64_t *bytes, size_t *nr)
{
	uint64_t capacity = picture_capacity(p, carveout);
	struct cell *cells = NULL;
	const struct run *r;
	size_t i;

	*bytes = cell_bytes(capacity, most);
	*nr = (capacity + *bytes - 1) / *bytes;
	for (i = 0; i < *nr; i++) {
		cells = grow(cells, i, sizeof(*cells));
		cells[i].owner = NO_OWNER;
	}
	for (r = p->runs; r < p->runs + p->nr_runs; r++) {
		if (r->carveout == carveout && run_is_used(r))
			draw_run(p, r, cells, *bytes, *nr);
	}
	return cells;
}

/* "context 5, pid 77, python, bob", to be freed */
char *owner_text(const struct picture *p, const struct owner *o)
{
	const struct context *c;
	char pids[32], user[33];

	c = snapshot_context(p->s, p->device->name, o->context);
	if (!c)
		return format("context %llu, %s",
			      (unsigned long long)o->context,
			      user_text(o->uid, user));
	return format("context %llu, pid %s, %s, %s",
		      (unsigned long long)o->context, pids_text(c, pids),
		      c->comm, user_text(o->uid, user));
}

unsigned int picture_carveouts(const struct picture *p)
{
	unsigned int nr = p->device->nr_memories;

	return nr && !strcmp(p->device->memories[nr - 1].name, "host") ?
		       nr - 1 :
		       nr;
}

/* Return the size of a carveout; 0 if it is not known. */
uint64_t picture_capacity(const struct picture *p, unsigned int carveout)
{
	uint64_t capacity = p->device->memories[carveout].value[CAPACITY];

	return capacity == UNKNOWN ? 0 : capacity;
}

/* Return the number of cells in a row. */
size_t row_cells(void)
{
	size_t row = ROW_LEAST;

	while (row < ROW_MOST &&
	       row * 2 + OFFSET_WIDTH <= (size_t)output_width())
		row *= 2;
	return row;
}

static void print_row(const struct glyph *glyphs, size_t nr)
{
	enum color color = PLAIN;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (glyphs[i].color != color) {
			color = glyphs[i].color;
			output_color(color);
		}
		putchar(glyphs[i].letter);
	}
	if (color != PLAIN)
		output_color(PLAIN);
	putchar('\n');
}

/* Print a carveout in rows of cells of @bytes, with a title. */
void print_glyphs(const char *device, unsigned int carveout, uint64_t bytes,
		  const struct glyph *glyphs, size_t nr)
{
	size_t row = row_cells(), i;
	char text[16], other[16];

	output_color(BOLD);
	printf("%s/carveout%u", device, carveout);
	output_color(PLAIN);
	printf(": %s a character, %s a row\n", size_text(bytes, text),
	       size_text(bytes * row, other));
	for (i = 0; i < nr; i += row) {
		printf("%#*llx ", OFFSET_WIDTH - 2,
		       (unsigned long long)(i * bytes));
		print_row(glyphs + i, nr - i < row ? nr - i : row);
	}
}
