// SPDX-License-Identifier: GPL-2.0
/* Picture of a carveout in 64 columns. Each cell is an equal share of the carveout. */
#include <stdio.h>
#include <stdlib.h>

#include "replay.h"

#define COLUMNS 64
#define ROWS_MAX 16

struct picture {
	u64 size;
	u64 cell; /* bytes of a cell */
	u64 nr_used;
	unsigned int nr_cells;
	u64 used[COLUMNS * ROWS_MAX];
};

struct picture *picture_new(u64 size)
{
	struct picture *p = xcalloc(1, sizeof(*p));

	p->size = size;
	p->cell = round_up_to(size, COLUMNS * ROWS_MAX) / (COLUMNS * ROWS_MAX);
	p->cell = round_up_to(p->cell, GRANULE_MIN);
	p->nr_cells = (size + p->cell - 1) / p->cell;
	return p;
}

void picture_add(struct picture *p, u64 start, u64 size)
{
	u64 end = start + size, stop;

	p->nr_used += size;
	for (; start < end; start = stop) {
		stop = (start / p->cell + 1) * p->cell;
		if (stop > end)
			stop = end;
		p->used[start / p->cell] += stop - start;
	}
}

static char shade(const struct picture *p, unsigned int i)
{
	static const char shades[] = ".:-=+*%@";
	u64 begin = i * p->cell, room = p->cell;

	if (p->size - begin < room)
		room = p->size - begin;
	if (!p->used[i])
		return ' ';
	if (p->used[i] >= room)
		return '#';
	return shades[p->used[i] * (sizeof(shades) - 1) / room];
}

void picture_print(struct picture *p, const char *title)
{
	unsigned int i, column;

	printf("%s: %llu of %llu bytes used; a cell is %llu KiB, ' ' free, '#' full\n",
	       title, p->nr_used, p->size, p->cell >> 10);
	for (i = 0; i < p->nr_cells; i += COLUMNS) {
		printf("%14llu |", i * p->cell);
		for (column = i; column < i + COLUMNS; column++)
			putchar(column < p->nr_cells ? shade(p, column) : ' ');
		puts("|");
	}
	free(p);
}
