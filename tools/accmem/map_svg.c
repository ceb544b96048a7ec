// SPDX-License-Identifier: GPL-2.0
/*
 * accmem map --svg: a picture of each carveout as SVG.
 *
 * Each row of a carveout has two bars: the upper shows the owners, the lower the states.
 * All rows have the same number of bytes; neighbours that look alike are one rectangle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"

#define WIDTH 1024 /* of a row; each unit is a cell */
#define ROWS 16
#define LEFT 130
#define OWNER_HEIGHT 16
#define STATE_HEIGHT 6
#define ROW_HEIGHT (OWNER_HEIGHT + STATE_HEIGHT + 4)
#define LINE 20
#define LEGEND_MOST 24 /* owners in the legend */

static const char *const owner_colors[] = {
	"#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948",
	"#ff9da7", "#9c755f", "#1b6ca8", "#8cd17d", "#d37295", "#499894",
};

static const char *const state_colors[NR_RUN_STATES] = {
	[RUN_FREE] = "#f0f0f0",	   [RUN_CACHED] = "#f0f0f0",
	[RUN_LIVE] = "#2e7d32",	   [RUN_DETACHED] = "#00838f",
	[RUN_PENDING] = "#f9a825", [RUN_QUARANTINED] = "#8e24aa",
	[RUN_RETIRED] = "#c62828",
};

static int at; /* the top of what is drawn next */

static const char *owner_color(const struct cell *c)
{
	if (c->state == RUN_RETIRED)
		return state_colors[RUN_RETIRED];
	if (c->owner == NO_OWNER)
		return state_colors[RUN_FREE];
	return owner_colors[c->owner %
			    (sizeof(owner_colors) / sizeof(*owner_colors))];
}

static const char *state_color(const struct cell *c)
{
	return state_colors[c->state];
}

static void print_rect(int x, int y, int width, int height, const char *color)
{
	printf("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>\n",
	       x, y, width, height, color);
}

/* Print a text; the characters that end it are replaced. */
static void print_text(int x, int y, const char *class, const char *text)
{
	printf("<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, class);
	for (; *text; text++) {
		if (*text == '<')
			fputs("&lt;", stdout);
		else if (*text == '&')
			fputs("&amp;", stdout);
		else
			putchar(*text);
	}
	puts("</text>");
}

static void print_bar(const struct cell *cells, size_t nr, int y, int height,
		      const char *(*color)(const struct cell *c))
{
	size_t i, first = 0;

	for (i = 1; i <= nr; i++) {
		if (i < nr && color(&cells[i]) == color(&cells[first]))
			continue;
		print_rect(LEFT + first, y, i - first, height,
			   color(&cells[first]));
		first = i;
	}
}

static void print_carveout(const struct picture *p, unsigned int carveout)
{
	uint64_t capacity = picture_capacity(p, carveout), bytes;
	size_t nr, i, part;
	char text[64], size[16];
	struct cell *cells;

	cells = picture_cells(p, carveout, WIDTH * ROWS, &bytes, &nr);
	at += LINE;
	snprintf(text, sizeof(text), "%s/carveout%u, %s", p->device->name,
		 carveout, size_text(capacity, size));
	print_text(10, at, "title", text);
	at += 10;
	for (i = 0; i < nr; i += WIDTH) {
		part = nr - i < WIDTH ? nr - i : WIDTH;
		snprintf(text, sizeof(text), "%#llx",
			 (unsigned long long)(i * bytes));
		print_text(LEFT - 8, at + OWNER_HEIGHT - 3, "offset", text);
		print_bar(cells + i, part, at, OWNER_HEIGHT, owner_color);
		print_bar(cells + i, part, at + OWNER_HEIGHT, STATE_HEIGHT,
			  state_color);
		at += ROW_HEIGHT;
	}
	free(cells);
}

static void print_states(void)
{
	enum run_state state;
	int x = LEFT;

	at += LINE;
	print_text(10, at, "label", "lower bar: state");
	for (state = RUN_FREE; state < NR_RUN_STATES; state++) {
		if (state == RUN_CACHED)
			continue;
		print_rect(x, at - 11, 12, 12, state_colors[state]);
		print_text(x + 18, at, "label", run_names[state]);
		x += 120;
	}
}

static void print_owners(const struct picture *p)
{
	struct cell c = { .state = RUN_LIVE };
	char *owner, *text, bytes[16];

	for (c.owner = 0; c.owner < p->nr_owners && c.owner < LEGEND_MOST;
	     c.owner++) {
		at += LINE;
		if (!c.owner)
			print_text(10, at, "label", "upper bar: owner");
		owner = owner_text(p, &p->owners[c.owner]);
		text = format("%s: %s",
			      size_text(p->owners[c.owner].bytes, bytes),
			      owner);
		print_rect(LEFT, at - 11, 12, 12, owner_color(&c));
		print_text(LEFT + 18, at, "label", text);
		free(text);
		free(owner);
	}
	if (c.owner == p->nr_owners)
		return;
	at += LINE;
	text = format("and %zu more owners, in the same colors",
		      p->nr_owners - c.owner);
	print_text(LEFT + 18, at, "label", text);
	free(text);
}

/* Return the height of the picture of a device. */
static int height_of(const struct picture *p)
{
	size_t owners = p->nr_owners < LEGEND_MOST ? p->nr_owners :
						     LEGEND_MOST + 1;

	return picture_carveouts(p) * (LINE + 10 + ROWS * ROW_HEIGHT) +
	       (owners + 2) * LINE;
}

/* Print a device as a document of its own. */
void svg_print(const struct picture *p)
{
	int height = height_of(p);
	unsigned int i;

	at = 0;
	printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
	       LEFT + WIDTH + 10, height, LEFT + WIDTH + 10, height);
	puts("<style>text{font:13px sans-serif;fill:#222}</style>");
	puts("<style>.title{font-weight:bold;font-size:15px}</style>");
	puts("<style>.offset{text-anchor:end;font-family:monospace}</style>");
	print_rect(0, 0, LEFT + WIDTH + 10, height, "white");
	for (i = 0; i < picture_carveouts(p); i++) {
		if (picture_capacity(p, i))
			print_carveout(p, i);
	}
	print_states();
	print_owners(p);
	puts("</svg>");
}
