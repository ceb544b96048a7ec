// SPDX-License-Identifier: GPL-2.0
/*
 * accmem map: a picture of each carveout, from `occupancy` in debugfs and `retired` in sysfs.
 * occupancy has a character for each part of a carveout. The number of characters in a row of
 * the picture is the largest power of two for which the terminal has room, from 16 to 256.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

#define OFFSET_WIDTH 14
#define ROW_LEAST 16
#define ROW_MOST 256

static const char usage[] =
	"usage: accmem map [--watch[=SECONDS]] [DEVICE]\n"
	"A picture of each carveout, lowest offset first (root).\n";

/* The cells of a carveout: characters of occupancy, x for retired memory. */
struct cells {
	unsigned int carveout;
	uint64_t bytes; /* of a cell */
	char *text;
	size_t nr;
};

/* "# accmem0[ carveout 1]: 524288 bytes a character: ..." */
static bool cells_begin(struct cells *c, const char *line)
{
	const char *carveout = strstr(line, " carveout ");
	const char *bytes = strchr(line, ':');
	unsigned long long number;

	*c = (struct cells){ 0 };
	if (carveout)
		c->carveout = strtoul(carveout + 10, NULL, 10);
	if (!bytes || sscanf(bytes, ": %llu", &number) != 1 || !number)
		return false;
	c->bytes = number;
	return true;
}

/* "offset characters" */
static void cells_add(struct cells *c, const char *line)
{
	const char *blank = strchr(line, ' ');

	for (line = blank ? blank + 1 : ""; *line; line++) {
		c->text = grow(c->text, c->nr, 1);
		c->text[c->nr++] = strchr(".-+#", *line) ? *line : '?';
	}
}

static void cells_retire(struct cells *c, const char *device)
{
	char *text =
		read_text(CLASS "/%s/carveout%u/retired", device, c->carveout);
	unsigned long long offset, size;
	char *line, *save, state[16];
	uint64_t i;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%llx %llx %15s", &offset, &size, state) !=
			    3 ||
		    !size)
			continue;
		for (i = offset / c->bytes;
		     i < c->nr && i <= (offset + size - 1) / c->bytes; i++)
			c->text[i] = 'x';
	}
	free(text);
}

static enum color color_of(char cell)
{
	switch (cell) {
	case '#':
	case '+':
		return GREEN;
	case '-':
		return YELLOW;
	case 'x':
		return RED;
	default:
		return PLAIN;
	}
}

static void print_row(const char *text, size_t nr)
{
	enum color color = PLAIN;
	size_t i;

	for (i = 0; i < nr; i++) {
		if (color_of(text[i]) != color) {
			color = color_of(text[i]);
			output_color(color);
		}
		putchar(text[i]);
	}
	if (color != PLAIN)
		output_color(PLAIN);
	putchar('\n');
}

static void cells_print(struct cells *c, const char *device)
{
	size_t row = ROW_LEAST, i;
	char text[16], other[16];

	if (!c->nr)
		return;
	cells_retire(c, device);
	while (row < ROW_MOST &&
	       row * 2 + OFFSET_WIDTH <= (size_t)output_width())
		row *= 2;
	output_color(BOLD);
	printf("%s/carveout%u", device, c->carveout);
	output_color(PLAIN);
	printf(": %s a character, %s a row\n", size_text(c->bytes, text),
	       size_text(c->bytes * row, other));
	for (i = 0; i < c->nr; i += row) {
		printf("%#*llx ", OFFSET_WIDTH - 2,
		       (unsigned long long)(i * c->bytes));
		print_row(c->text + i, c->nr - i < row ? c->nr - i : row);
	}
	free(c->text);
	c->text = NULL;
	c->nr = 0;
}

static int show_device(const char *device)
{
	char *text = read_text(DEBUGFS "/%s/occupancy", device), *line, *save;
	struct cells c = { 0 };
	bool good = false;

	if (!text) {
		fprintf(stderr, "accmem: map: %s: %s%s\n", device,
			strerror(errno),
			errno == EACCES ? ": only root may read the map" : "");
		return STATUS_FAILED;
	}
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (*line == '#') {
			cells_print(&c, device);
			good = cells_begin(&c, line);
		} else if (good) {
			cells_add(&c, line);
		}
	}
	cells_print(&c, device);
	free(text);
	return STATUS_OK;
}

static int show(const struct options *o, void *arg)
{
	const char *only = arg;
	struct snapshot s;
	int status = snapshot_read(&s);
	size_t i;

	(void)o;
	if (status)
		no_devices();
	else if (only && !snapshot_device(&s, only))
		status = no_device(only);
	for (i = 0; !status && i < s.nr_devices; i++) {
		if (!only || !strcmp(s.devices[i].name, only))
			status = show_device(s.devices[i].name);
	}
	if (!status)
		puts(". free  - less than half used  + more  # all used  x contains failed memory");
	snapshot_free(&s);
	return status;
}

int command_map(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "w", usage);

	if (status >= 0)
		return status;
	if (optind < argc - 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, argv[optind]);
}
