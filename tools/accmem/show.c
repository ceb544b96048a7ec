// SPDX-License-Identifier: GPL-2.0
/*
 * accmem without a command: all devices, the processes and the users, the requests that wait,
 * and the limits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

#define NAME_WIDTH 10
#define BAR_LEAST 10
#define BAR_MOST 120

static const char usage[] =
	"usage: accmem [--json] [--watch[=SECONDS]]\n"
	"       accmem COMMAND [ARGUMENT...]\n"
	"Without a command: the devices, who uses them, who waits, and the limits.\n"
	"  --json             as one line of JSON\n"
	"  --watch[=SECONDS]  again and again, every 2 seconds\n"
	"Commands; accmem COMMAND --help describes each:\n"
	"  check [DEVICE]     look for faults; print a report for a bug\n"
	"  who ADDRESS|PID    who holds the memory; what a process holds\n"
	"  tmem [DEVICE]      who holds Tensor Memory, and who waits for it\n"
	"  top                a live table of the processes\n"
	"  map [DEVICE]       a picture of the carveouts\n"
	"  limits             show and set the limits\n"
	"  devices            list, add and remove devices\n"
	"  explain SIZE       why an allocation fails now, and what would help\n"
	"  bench [SIZE]       what the device's memory costs, beside ordinary memory\n"
	"  record [PROGRAM]   write a trace of the allocations\n"
	"  replay TRACE       make the allocations of a trace\n"
	"  reset DEVICE       take the memory from all programs\n"
	"  retire CARVEOUT    list failed memory, or retire memory\n"
	"  cdi generate       describe the devices for container runtimes\n"
	"  metrics            the numbers, for Prometheus\n"
	"  run PROGRAM        run a program with its large allocations on a device\n";

static void show_failed(uint64_t bytes, const char *what)
{
	char text[16];

	if (bytes && bytes != UNKNOWN)
		printf("%*s%s has failed and %s\n", NAME_WIDTH + 4, "",
		       size_text(bytes, text), what);
}

static void show_memory(const struct memory *m)
{
	uint64_t used = m->value[CAPACITY] - m->value[FREE];
	int width = output_width() - NAME_WIDTH - 40;
	char text[16], other[16];

	width = width > BAR_MOST ? BAR_MOST : width;
	width = width < BAR_LEAST ? BAR_LEAST : width;
	printf("  %-*s ", NAME_WIDTH, m->name);
	if (m->value[FREE] == UNKNOWN || !m->value[CAPACITY]) {
		printf("%s\n", size_text(m->value[CAPACITY], text));
		return;
	}
	bar_print(m->value, width);
	printf(" %3.0f%% of %s, largest run %s\n",
	       100.0 * used / m->value[CAPACITY],
	       size_text(m->value[CAPACITY], text),
	       size_text(m->value[LARGEST], other));
	if (used)
		bar_legend(m->value, NAME_WIDTH + 4);
	show_failed(m->value[RETIRE_PENDING], "is in use");
	show_failed(m->value[RETIRE_FAILED], "may be allocated again");
}

static void show_device(const struct device *d)
{
	char text[32];
	size_t i;

	output_color(BOLD);
	printf("%s", d->name);
	output_color(PLAIN);
	printf("  %s", d->parent);
	if (d->contexts != UNKNOWN)
		printf(", open files: %s", number_text(d->contexts, text));
	if (d->value[BUFFERS] != UNKNOWN)
		printf(", buffers: %s", number_text(d->value[BUFFERS], text));
	if (d->value[FAILURES] != UNKNOWN)
		printf(", failures: %s", number_text(d->value[FAILURES], text));
	putchar('\n');
	for (i = 0; i < d->nr_memories; i++)
		show_memory(&d->memories[i]);
}

static void add_row(struct table *t, const struct context *c)
{
	char user[33], n[3][32], size[4][16], pid[32];

	table_add(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
		  user_text(c->uid, user), pids_text(c, pid), c->comm,
		  c->device, number_text(c->id, n[0]),
		  number_text(c->use[USE_BUFFERS], n[1]),
		  size_text(c->use[USE_LIVE], size[0]),
		  c->use[USE_HOST] == UNKNOWN ?
			  "-" :
			  size_text(c->use[USE_HOST], size[1]),
		  size_text(c->use[USE_PENDING], size[2]),
		  size_text(c->use[USE_CHARGED], size[3]),
		  number_text(c->use[USE_WAITING], n[2]),
		  c->open ? "open" : "closed");
}

static void show_processes(const struct snapshot *s)
{
	static const struct column columns[] = {
		{ "USER", false, 0 },	 { "PID", true, 0 },
		{ "COMMAND", false, 1 }, { "DEVICE", false, 0 },
		{ "FILES", true, 5 },	 { "BUFFERS", true, 4 },
		{ "LIVE", true, 0 },	 { "HOST", true, 6 },
		{ "PENDING", true, 3 },	 { "CHARGED", true, 2 },
		{ "WAITING", true, 1 },	 { "STATE", false, 1 },
	};
	struct context *merged;
	struct table *t;
	size_t i, nr;

	if (!s->nr_contexts) {
		puts("\nNo process that you may see uses a device.");
		return;
	}
	merged = processes_merge(s, &nr);
	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < nr; i++)
		add_row(t, &merged[i]);
	putchar('\n');
	table_print(t);
	table_free(t);
	free(merged);
}

static void show_users(const struct snapshot *s)
{
	static const struct column columns[] = {
		{ "USER", false, 0 },	      { "FILES", true, 0 },
		{ "BUFFERS", true, 0 },	      { "CHARGED", true, 0 },
		{ "PENDING FREES", true, 2 }, { "FENCES", true, 3 },
		{ "WAITS", true, 4 },	      { "RESIDENT", true, 1 },
		{ "EXPORTS", true, 3 },
	};
	char user[33], n[6][32], size[2][16];
	struct table *t;
	size_t i;

	if (!s->nr_users)
		return;
	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < s->nr_users; i++) {
		const uint64_t *c = s->users[i].charge;

		table_add(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
			  user_text(s->users[i].uid, user),
			  number_text(c[CHARGE_CONTEXTS], n[0]),
			  number_text(c[CHARGE_BUFFERS], n[1]),
			  size_text(c[CHARGE_BYTES], size[0]),
			  number_text(c[CHARGE_PENDING], n[2]),
			  number_text(c[CHARGE_FENCES], n[3]),
			  number_text(c[CHARGE_WAITS], n[4]),
			  size_text(c[CHARGE_RESIDENT], size[1]),
			  number_text(c[CHARGE_EXPORTS], n[5]));
	}
	putchar('\n');
	table_print(t);
	table_free(t);
}

static void add_waiter(struct table *t, const struct device *d,
		       const struct waiter *w)
{
	char user[33], size[16];

	table_add(t, "%s\t%llu\t%s\t%s\t%s\t%llu\t%.1f s", d->name,
		  (unsigned long long)w->context, user_text(w->uid, user),
		  size_text(w->bytes, size), w->state,
		  (unsigned long long)w->bypassed, w->ms / 1000.0);
}

static void show_waiters(const struct snapshot *s)
{
	static const struct column columns[] = {
		{ "WAITS FOR", false, 0 }, { "CONTEXT", true, 0 },
		{ "USER", false, 0 },	   { "BYTES", true, 0 },
		{ "STATE", false, 0 },	   { "BYPASSED", true, 1 },
		{ "SINCE", true, 0 },
	};
	size_t i, n, shown = 0;
	uint64_t nr = 0;
	struct table *t;

	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < s->nr_devices; i++) {
		const struct device *d = &s->devices[i];

		if (d->nr_waiting != UNKNOWN)
			nr += d->nr_waiting;
		for (n = 0; n < d->nr_waiters; n++)
			add_waiter(t, d, &d->waiters[n]);
		shown += d->nr_waiters;
	}
	if (shown) {
		putchar('\n');
		table_print(t);
	}
	if (nr > shown)
		printf("and %llu more\n", (unsigned long long)(nr - shown));
	table_free(t);
}

/* Print the limits that are set, in lines of the terminal's width. */
static void show_limits(const struct snapshot *s)
{
	int width = output_width(), column = 0, n;
	char text[32], item[64];
	size_t i;

	for (i = 0; i < NR_LIMITS; i++) {
		if (!s->limits[i] || s->limits[i] == UNKNOWN)
			continue;
		n = snprintf(item, sizeof(item), " %s=%s", limit_names[i],
			     strstr(limit_names[i], "bytes") ?
				     size_text(s->limits[i], text) :
				     number_text(s->limits[i], text));
		if (!column)
			column = printf("\nLimits:");
		else if (column + n > width)
			column = printf("\n       ") - 1;
		column += n;
		fputs(item, stdout);
	}
	if (column)
		putchar('\n');
}

static void show_text(const struct snapshot *s)
{
	size_t i;

	for (i = 0; i < s->nr_devices; i++)
		show_device(&s->devices[i]);
	show_processes(s);
	show_users(s);
	show_waiters(s);
	show_limits(s);
	if (!s->all && geteuid())
		puts("\nRoot also sees other users, and the states of the memory.");
	else if (!s->all)
		printf("\nOther users, and the states of the memory: %s.\n",
		       why_hidden());
}

static int show(const struct options *o, void *arg)
{
	struct snapshot s;
	int status = snapshot_read(&s);

	(void)arg;
	if (o->json)
		json_print(json_of_snapshot(&s));
	if (status)
		no_devices();
	else if (!o->json)
		show_text(&s);
	snapshot_free(&s);
	return status;
}

int command_show(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage);

	if (status >= 0)
		return status;
	if (optind < argc) {
		fprintf(stderr, "accmem: no command %s\n%s", argv[optind],
			usage);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, NULL);
}
