// SPDX-License-Identifier: GPL-2.0
/*
 * accmem map --owners and --states: pictures of characters from the runs. A character is the
 * owner, or the state, of the largest used run in a cell.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"

#define ROWS 32

static const char letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz";
static const enum color colors[] = { GREEN, YELLOW, CYAN, MAGENTA, BLUE };

static char letter_of(const struct cell *c)
{
	if (c->state == RUN_FREE)
		return '.';
	if (c->state == RUN_RETIRED)
		return 'x';
	return c->owner < sizeof(letters) - 1 ? letters[c->owner] : '*';
}

static enum color color_of(const struct cell *c)
{
	if (c->state == RUN_RETIRED)
		return RED;
	return c->owner == NO_OWNER ?
		       PLAIN :
		       colors[c->owner % (sizeof(colors) / sizeof(*colors))];
}

static struct glyph owner_glyph(const struct cell *c)
{
	return (struct glyph){ letter_of(c), color_of(c) };
}

static struct glyph state_glyph(const struct cell *c)
{
	struct glyph g;

	g.letter = bar_letter(c->state, &g.color);
	return g;
}

static void print_carveout(const struct picture *p, unsigned int carveout,
			   struct glyph (*glyph_of)(const struct cell *c))
{
	size_t row = row_cells(), nr, i;
	struct glyph *glyphs;
	struct cell *cells;
	uint64_t bytes;

	cells = picture_cells(p, carveout, row * ROWS, &bytes, &nr);
	glyphs = xcalloc(nr, sizeof(*glyphs));
	for (i = 0; i < nr; i++)
		glyphs[i] = glyph_of(&cells[i]);
	print_glyphs(p->device->name, carveout, bytes, glyphs, nr);
	free(glyphs);
	free(cells);
}

static void print_carveouts(const struct picture *p,
			    struct glyph (*glyph_of)(const struct cell *c))
{
	unsigned int i;

	for (i = 0; i < picture_carveouts(p); i++) {
		if (picture_capacity(p, i))
			print_carveout(p, i, glyph_of);
	}
}

/* Print the carveouts of a device with the letters of the states. */
void states_print(const struct picture *p)
{
	print_carveouts(p, state_glyph);
}

void states_legend(void)
{
	enum run_state state;
	enum color color;

	fputs(". free", stdout);
	for (state = RUN_LIVE; state < NR_RUN_STATES; state++)
		printf("  %c %s", bar_letter(state, &color), run_names[state]);
	putchar('\n');
}

/* Print the carveouts of a device, and the owner of each letter. */
void owners_print(const struct picture *p)
{
	char *text, bytes[16];
	size_t o;

	print_carveouts(p, owner_glyph);
	for (o = 0; o < p->nr_owners; o++) {
		const struct cell c = { .state = RUN_LIVE, .owner = o };

		output_color(color_of(&c));
		putchar(letter_of(&c));
		output_color(PLAIN);
		text = owner_text(p, &p->owners[o]);
		printf(" %s: %s\n", size_text(p->owners[o].bytes, bytes), text);
		free(text);
	}
}
