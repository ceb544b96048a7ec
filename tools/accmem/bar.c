// SPDX-License-Identifier: GPL-2.0
/*
 * A bar: the bytes of a carveout or of host memory by state. Each state has a letter, so that
 * the bar can be read without colors. A state that has any bytes gets at least one character.
 */
#include <stdio.h>

#include "accmem.h"

static const struct {
	enum value value;
	enum run_state state;
	char letter;
	enum color color;
} states[] = {
	{ LIVE, RUN_LIVE, '#', GREEN },
	{ DETACHED, RUN_DETACHED, 'd', CYAN },
	{ PENDING, RUN_PENDING, 'p', YELLOW },
	{ QUARANTINED, RUN_QUARANTINED, 'q', MAGENTA },
	{ RETIRED, RUN_RETIRED, 'x', RED },
};

#define NR_STATES (sizeof(states) / sizeof(*states))

/* Return false if only the free bytes are known. */
static bool states_known(const uint64_t value[NR_VALUES])
{
	return value[LIVE] != UNKNOWN;
}

static int cells_of(uint64_t bytes, uint64_t capacity, int width)
{
	int cells = capacity ? (double)bytes / capacity * width + 0.5 : 0;

	if (bytes > capacity)
		return width;
	return bytes && !cells ? 1 : cells;
}

static void print_cells(char letter, enum color color, int nr)
{
	if (nr <= 0)
		return;
	output_color(color);
	while (nr--)
		putchar(letter);
	output_color(PLAIN);
}

/* Print a bar of a memory whose free bytes are known. */
void bar_print(const uint64_t value[NR_VALUES], int width)
{
	int cells[NR_STATES] = { 0 }, used = 0, most = 0;
	size_t i;

	if (!states_known(value)) {
		used = cells_of(value[CAPACITY] - value[FREE], value[CAPACITY],
				width);
		putchar('[');
		print_cells('=', GREEN, used);
		print_cells('.', PLAIN, width - used);
		putchar(']');
		return;
	}
	for (i = 0; i < NR_STATES; i++) {
		cells[i] = cells_of(value[states[i].value], value[CAPACITY],
				    width);
		used += cells[i];
		if (cells[i] > cells[most])
			most = i;
	}
	/* Small states were rounded up: the largest state gives the excess. */
	if (used > width)
		cells[most] -= used - width;
	putchar('[');
	for (i = 0; i < NR_STATES; i++)
		print_cells(states[i].letter, states[i].color, cells[i]);
	print_cells('.', PLAIN, width - used);
	putchar(']');
}

/* The letter of a state, and its color. Free and cached memory have the same letter. */
char bar_letter(enum run_state state, enum color *color)
{
	size_t i;

	for (i = 0; i < NR_STATES; i++) {
		if (states[i].state == state) {
			*color = states[i].color;
			return states[i].letter;
		}
	}
	*color = PLAIN;
	return '.';
}

/* Print a letter with its meaning, on the next line if this line has no room for both. */
static void legend_add(int *column, int indent, char letter, enum color color,
		       const char *name, uint64_t bytes)
{
	char text[16], item[48];
	int n = snprintf(item, sizeof(item), " %s %s", name,
			 size_text(bytes, text));

	if (*column > indent && *column + 2 + 1 + n > output_width()) {
		putchar('\n');
		*column = 0;
	}
	*column += printf("%*s", *column ? 2 : indent, "") + 1 + n;
	print_cells(letter, color, 1);
	fputs(item, stdout);
}

/* Print the bytes of each state that is not empty, in lines of the terminal's width. */
void bar_legend(const uint64_t value[NR_VALUES], int indent)
{
	int column = 0;
	size_t i;

	if (!states_known(value))
		legend_add(&column, indent, '=', GREEN, "used",
			   value[CAPACITY] - value[FREE]);
	for (i = 0; states_known(value) && i < NR_STATES; i++) {
		if (value[states[i].value])
			legend_add(&column, indent, states[i].letter,
				   states[i].color, run_names[states[i].state],
				   value[states[i].value]);
	}
	legend_add(&column, indent, '.', PLAIN, "free", value[FREE]);
	putchar('\n');
}
