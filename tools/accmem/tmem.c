// SPDX-License-Identifier: GPL-2.0
/*
 * accmem tmem: the Tensor Memory of each context: a picture of its SMs, and a table of the
 * CTAs that hold columns or wait for them.
 *
 * In the picture each SM is a column, and each line stands for 32 columns of Tensor Memory. If
 * the terminal has no room for all SMs of a context, each SM is a row, with several beside
 * each other. A letter stands for a CTA; the table has the letters.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tmem.h"

#define AXIS 10 /* columns of the terminal left of the picture */
#define STRIP 4 /* columns of the terminal of an SM that is a column */
#define ROW_TEXT 13 /* characters of an SM that is a row, without its picture */

static const char usage[] =
	"usage: accmem tmem [--json] [--watch[=SECONDS]] [DEVICE]\n"
	"The Tensor Memory of each context: the CTAs that hold columns of an SM, and those that\n"
	"wait, in their order (root). Other users see which columns their own CTAs hold.\n";

struct seen {
	struct snapshot s;
	struct tmem *list;
	size_t nr;
};

static void print_unit(char letter)
{
	static const enum color colors[] = { GREEN, YELLOW, MAGENTA, CYAN,
					     BLUE };

	if (letter == '.' || letter == ' ') {
		putchar(letter);
		return;
	}
	output_color(colors[letter % (sizeof(colors) / sizeof(*colors))]);
	putchar(letter);
	output_color(PLAIN);
}

/* Return a character of the picture of an SM; a blank behind its end. */
static char unit_of(const struct tmem_sm *sm, unsigned int unit)
{
	return unit < strlen(sm->units) ? sm->units[unit] : ' ';
}

/* Each SM is a column of the terminal. */
static void print_strips(const struct tmem *t)
{
	unsigned int nr = strlen(t->sms[0].units), unit;
	char range[32];
	size_t i;

	printf("%-*s", AXIS, "columns");
	for (i = 0; i < t->nr_sms; i++)
		printf("%*u", STRIP, t->sms[i].number);
	putchar('\n');
	for (unit = 0; unit < nr; unit++) {
		snprintf(range, sizeof(range), "%u-%u", unit * UNIT_COLUMNS,
			 (unit + 1) * UNIT_COLUMNS - 1);
		printf("%*s", AXIS - 1, range);
		putchar(' ');
		for (i = 0; i < t->nr_sms; i++) {
			printf("%*s", STRIP - 1, "");
			print_unit(unit_of(&t->sms[i], unit));
		}
		putchar('\n');
	}
}

/* Each SM is a row, "SM 12 |aabb..| 64 free", with others beside it. */
static void print_rows(const struct tmem *t, int width)
{
	int units = strlen(t->sms[0].units), cell = units + ROW_TEXT;
	int beside = (width + 2) / (cell + 2), n = 0;
	const char *unit;
	size_t i;

	for (i = 0; i < t->nr_sms; i++) {
		printf("%*u |", 4, t->sms[i].number);
		for (unit = t->sms[i].units; *unit; unit++)
			print_unit(*unit);
		printf("| %4u", t->sms[i].free);
		n++;
		if (n < beside && i + 1 < t->nr_sms) {
			fputs("   ", stdout);
			continue;
		}
		putchar('\n');
		n = 0;
	}
}

static void print_picture(const struct tmem *t)
{
	int width = output_width();

	if (!t->known || !t->nr_sms)
		return;
	if (AXIS + STRIP * (int)t->nr_sms <= width) {
		print_strips(t);
	} else {
		puts("Each row: SM, a character for each 32 columns, free columns");
		print_rows(t, width);
	}
}

/* Return the columns of a holder, "0-63,128-159"; "?" if the picture does not tell. */
static char *ranges_text(const struct tmem_sm *sm, const struct tmem_cta *cta)
{
	char *text = format("%s", ""), *more;
	size_t i, first;

	for (i = 0; sm->units && cta->letter != MANY && sm->units[i]; i++) {
		if (sm->units[i] != cta->letter)
			continue;
		first = i;
		while (sm->units[i + 1] == cta->letter)
			i++;
		more = format("%s%s%zu-%zu", text, *text ? "," : "",
			      first * UNIT_COLUMNS, (i + 1) * UNIT_COLUMNS - 1);
		free(text);
		text = more;
	}
	if (!*text && cta->columns) {
		free(text);
		text = format("?");
	}
	return text;
}

static void add_cta(struct table *table, const struct tmem *t,
		    const struct tmem_sm *sm, const struct tmem_cta *cta,
		    unsigned int position)
{
	char bypassed[32] = "", since[32] = "", state[32], *ranges;

	if (cta->waits) {
		snprintf(state, sizeof(state), "waits, %u of queue", position);
		snprintf(bypassed, sizeof(bypassed), "%u of %u", cta->bypassed,
			 t->bound);
		snprintf(since, sizeof(since), "%.3f s", cta->us / 1e6);
	} else {
		snprintf(state, sizeof(state), "%s%s",
			 cta->columns ? "holds" : "",
			 !cta->permit ? "" :
			 cta->columns ? ", permit" :
					"permit");
	}
	ranges = cta->waits ? format("%s", "") : ranges_text(sm, cta);
	table_add(table, "%u\t%c\t%llu\t%#llx\t%u\t%u\t%u\t%s\t%s\t%s\t%s",
		  sm->number, cta->letter, (unsigned long long)cta->id,
		  (unsigned long long)cta->launch, cta->cluster, cta->rank,
		  cta->columns, ranges, state, bypassed, since);
	free(ranges);
}

static void print_ctas(const struct tmem *t)
{
	static const struct column columns[] = {
		{ "SM", true, 0 },	{ " ", false, 0 },
		{ "CTA", true, 0 },	{ "LAUNCH", true, 4 },
		{ "CLUSTER", true, 5 }, { "RANK", true, 6 },
		{ "COLUMNS", true, 0 }, { "RANGE", false, 3 },
		{ "STATE", false, 0 },	{ "BYPASSED", false, 2 },
		{ "SINCE", true, 1 },
	};
	struct table *table =
		table_new(columns, sizeof(columns) / sizeof(*columns));
	unsigned int position;
	size_t i, n, nr = 0;

	for (i = 0; i < t->nr_sms; i++) {
		position = 0;
		for (n = 0; n < t->sms[i].nr_ctas; n++, nr++) {
			position += t->sms[i].ctas[n].waits;
			add_cta(table, t, &t->sms[i], &t->sms[i].ctas[n],
				position);
		}
	}
	if (nr)
		table_print(table);
	table_free(table);
}

static void print_heading(const struct tmem *t, const struct context *c)
{
	char user[33], pid[32];

	output_color(BOLD);
	printf("%s context %llu", t->device, (unsigned long long)t->context);
	output_color(PLAIN);
	if (c)
		printf(" of %s[%s], user %s", c->comm, pids_text(c, pid),
		       user_text(c->uid, user));
	if (t->known)
		printf(", %s, bypass bound %u%s",
		       t->exclusive ? "exclusive" : "shared", t->bound,
		       t->strict ? ", strict" : "");
	putchar('\n');
}

static void show_text(const struct seen *seen)
{
	size_t i;

	if (!seen->nr)
		puts(seen->s.all ?
			     "No context has Tensor Memory." :
			     "No process that you may see has Tensor Memory.");
	for (i = 0; i < seen->nr; i++) {
		if (i)
			putchar('\n');
		print_heading(&seen->list[i],
			      snapshot_context(&seen->s, seen->list[i].device,
					       seen->list[i].context));
		print_picture(&seen->list[i]);
		print_ctas(&seen->list[i]);
	}
}

static int show(const struct options *o, void *arg)
{
	const char *only = arg;
	struct seen seen = { 0 };
	int status = snapshot_with(&seen.s, only);
	size_t i;

	for (i = 0; !status && i < seen.s.nr_devices; i++) {
		const char *name = seen.s.devices[i].name;

		if ((!only || !strcmp(name, only)) &&
		    !tmem_read(&seen.list, &seen.nr, name))
			tmem_read_own(&seen.list, &seen.nr, name);
	}
	if (!status && o->json)
		json_print(json_of_tmem(&seen.s, seen.list, seen.nr));
	else if (!status)
		show_text(&seen);
	tmem_free(seen.list, seen.nr);
	snapshot_free(&seen.s);
	return status;
}

int command_tmem(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage);

	if (status >= 0)
		return status;
	if (optind < argc - 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, argv[optind]);
}
