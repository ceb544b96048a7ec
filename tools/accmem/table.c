// SPDX-License-Identifier: GPL-2.0
/*
 * A table: text in columns that are as wide as their longest cell. If the table is wider
 * than the terminal, the columns with the highest rank are left out until it fits.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

#define GAP 2

struct table {
	const struct column *columns;
	size_t nr_columns;
	int *widths; /* -1: left out */
	char **lines; /* the cells of a line are separated by tabs */
	size_t nr_lines;
};

static void table_measure(struct table *t, const char *line)
{
	size_t i;
	int width;

	for (i = 0; i < t->nr_columns; i++) {
		width = strcspn(line, "\t");
		if (width > t->widths[i])
			t->widths[i] = width;
		line += width + (line[width] == '\t');
	}
}

struct table *table_new(const struct column *columns, size_t nr)
{
	struct table *t = xcalloc(1, sizeof(*t));
	size_t i;

	t->columns = columns;
	t->nr_columns = nr;
	for (i = 0; i < nr; i++) {
		t->widths = grow(t->widths, i, sizeof(*t->widths));
		t->widths[i] = strlen(columns[i].title);
	}
	return t;
}

/* Add a line: cells with tabs between them. */
void table_add(struct table *t, const char *fmt, ...)
{
	va_list list;
	char *line;

	va_start(list, fmt);
	line = vformat(fmt, list);
	va_end(list);
	t->lines = grow(t->lines, t->nr_lines, sizeof(*t->lines));
	t->lines[t->nr_lines++] = line;
	table_measure(t, line);
}

static void table_fit(struct table *t)
{
	int width, room = output_width(), rank;
	size_t i, worst;

	for (;;) {
		width = -GAP;
		rank = 0;
		worst = 0;
		for (i = 0; i < t->nr_columns; i++) {
			if (t->widths[i] < 0)
				continue;
			width += t->widths[i] + GAP;
			if (t->columns[i].rank >= rank) {
				rank = t->columns[i].rank;
				worst = i;
			}
		}
		if (width <= room || !rank)
			return;
		t->widths[worst] = -1;
	}
}

static void table_print_line(const struct table *t, const char *line)
{
	int length, pad, owed = 0;
	size_t i;

	for (i = 0; i < t->nr_columns; i++) {
		length = strcspn(line, "\t");
		if (t->widths[i] >= 0) {
			pad = t->widths[i] - length;
			printf("%*s%.*s",
			       owed + (t->columns[i].right ? pad : 0), "",
			       length, line);
			owed = GAP + (t->columns[i].right ? 0 : pad);
		}
		line += length + (line[length] == '\t');
	}
	putchar('\n');
}

void table_print(struct table *t)
{
	char *titles = format("%s", t->columns[0].title), *more;
	size_t i;

	for (i = 1; i < t->nr_columns; i++) {
		more = format("%s\t%s", titles, t->columns[i].title);
		free(titles);
		titles = more;
	}
	table_fit(t);
	output_color(BOLD);
	table_print_line(t, titles);
	output_color(PLAIN);
	free(titles);
	for (i = 0; i < t->nr_lines; i++)
		table_print_line(t, t->lines[i]);
}

void table_free(struct table *t)
{
	size_t i;

	for (i = 0; i < t->nr_lines; i++)
		free(t->lines[i]);
	free(t->lines);
	free(t->widths);
	free(t);
}
