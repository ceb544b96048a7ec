// SPDX-License-Identifier: GPL-2.0
/*
 * accmem map: a picture of each carveout, from `occupancy` in debugfs and `retired` in sysfs;
 * with --owners, --states and --svg from `runs` in debugfs (map_text.c, map_svg.c).
 * occupancy has a character for each part of a carveout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cells.h"

static const char usage[] =
	"usage: accmem map [--owners | --states] [--watch[=SECONDS]] [DEVICE]\n"
	"       accmem map --svg [DEVICE]\n"
	"A picture of each carveout, lowest offset first (root).\n"
	"  --owners  with a letter for each context, instead of the part that is used\n"
	"  --states  with a letter for each state of memory\n"
	"  --svg     owners and states of a device, the first unless named, as SVG\n";

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
	char *carveout = format("%s/carveout%u", device, c->carveout);
	struct failed_part *parts, *p;
	size_t nr;
	uint64_t i;

	failed_read(&parts, &nr, carveout);
	for (p = parts; p < parts + nr; p++) {
		for (i = p->offset / c->bytes;
		     p->size && i < c->nr &&
		     i <= (p->offset + p->size - 1) / c->bytes;
		     i++)
			c->text[i] = 'x';
	}
	free(parts);
	free(carveout);
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

static void cells_print(struct cells *c, const char *device)
{
	struct glyph *glyphs;
	size_t i;

	if (!c->nr)
		return;
	cells_retire(c, device);
	glyphs = xcalloc(c->nr, sizeof(*glyphs));
	for (i = 0; i < c->nr; i++)
		glyphs[i] = (struct glyph){ c->text[i], color_of(c->text[i]) };
	print_glyphs(device, c->carveout, c->bytes, glyphs, c->nr);
	free(glyphs);
	free(c->text);
	c->text = NULL;
	c->nr = 0;
}

static int failed(const char *device)
{
	fprintf(stderr, "accmem: map: the runs of %s: %s: %s\n", device,
		strerror(errno), why_hidden());
	return STATUS_FAILED;
}

static int show_runs(const struct options *o, const struct snapshot *s,
		     const struct device *d)
{
	struct picture p;

	if (!picture_read(&p, s, d))
		return failed(d->name);
	if (o->svg)
		svg_print(&p);
	else if (o->owners)
		owners_print(&p);
	else
		states_print(&p);
	picture_free(&p);
	return STATUS_OK;
}

static int show_occupancy(const char *device)
{
	char *text = read_text(DEBUGFS "/%s/occupancy", device), *line, *save;
	struct cells c = { 0 };
	bool good = false;

	if (!text)
		return failed(device);
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

static void print_legend(const struct options *o)
{
	if (o->owners)
		puts(". free  x failed  * more owners");
	else if (o->states)
		states_legend();
	else if (!o->svg)
		puts(". free  - less than half used  + more  # all used  x contains failed memory");
}

static int show(const struct options *o, void *arg)
{
	const char *only = arg;
	struct snapshot s;
	int status = snapshot_with(&s, only);
	size_t i;

	for (i = 0; !status && i < s.nr_devices; i++) {
		const struct device *d = &s.devices[i];

		if (only && strcmp(d->name, only))
			continue;
		status = o->owners || o->states || o->svg ?
				 show_runs(o, &s, d) :
				 show_occupancy(d->name);
		if (o->svg)
			break;
	}
	if (!status)
		print_legend(o);
	snapshot_free(&s);
	return status;
}

int command_map(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "wots", usage);

	if (status >= 0)
		return status;
	if (optind < argc - 1 || o.owners + o.states + o.svg > 1 ||
	    (o.svg && o.watch)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, argv[optind]);
}
