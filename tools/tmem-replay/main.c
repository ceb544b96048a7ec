// SPDX-License-Identifier: GPL-2.0
/*
 * accmem-tmem-replay: replay traces of the Tensor Memory calls of CTAs on a device, and
 * convert trace events of the driver to these traces.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include <linux/accmem.h>

#include "tmem_replay.h"

static const char usage_text[] =
	"usage: accmem-tmem-replay [OPTION]... TRACE...\n"
	"       accmem-tmem-replay --record [--context N] [--columns N] <EVENTS\n"
	"\n"
	"Replays traces of launches, allocs, deallocs, relinquishes and exits of CTAs\n"
	"on a device, in virtual time, and prints a table.\n"
	"\n"
	"  --device PATH        the device (default: as libaccmem chooses it)\n"
	"  --shared             only in the shared discipline\n"
	"  --exclusive          only in the exclusive discipline\n"
	"  --relinquish-early   what if each CTA relinquished right after its last\n"
	"                       alloc?\n"
	"  --relinquish-never   what if none did, before it exits?\n"
	"  --bypass-bound N     of the context (default: 64)\n"
	"  --grants             also print each grant, in order\n"
	"  --record             read trace events as ftrace prints them (trace,\n"
	"                       trace_pipe, trace-cmd report) and print a trace\n"
	"  --context N          of this context (default: the first)\n"
	"  --columns N          columns of its SMs (default: 512)\n"
	"  --help               this text\n"
	"\n"
	"Without --shared, --exclusive and --relinquish-*: shared, and exclusive with\n"
	"each way to relinquish; in the shared discipline it makes no difference.\n"
	"\n"
	"Columns of the table: grants; ready and longest, from the start of a CTA, when\n"
	"its SM had room for it, to its first grant, mean and maximum, in us; idle,\n"
	"columns that were free while somebody on their SM waited for columns or the\n"
	"permit, per cent of all columns over all of the time; unused, columns that were\n"
	"allocated while the trace says that they are not in use, likewise; total, until\n"
	"the last exit, in us; failures, calls that failed and CTAs that waited for ever.\n"
	"\n"
	"Exit status: 0; 1 when there were failures; 2 when the replay could not be made.\n";

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		die("%s", strerror(errno));
	return p;
}

void *grow(void *array, size_t n, size_t size)
{
	array = reallocarray(array, n, size);
	if (!array)
		die("%s", strerror(errno));
	return array;
}

/* discipline and relinquishing of a row of the table */
struct variant {
	bool exclusive;
	enum relinquish relinquish;
};

static const struct variant all[] = {
	{ false, RELINQUISH_TRACE },
	{ true, RELINQUISH_EARLY },
	{ true, RELINQUISH_TRACE },
	{ true, RELINQUISH_NEVER },
};

static const char *const relinquish_names[] = {
	[RELINQUISH_TRACE] = "trace",
	[RELINQUISH_EARLY] = "early",
	[RELINQUISH_NEVER] = "never",
};

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_header(void)
{
	printf("%-16s %-10s %-10s %6s %8s %8s %6s %7s %8s %9s\n", "trace",
	       "discipline", "relinquish", "grants", "ready", "longest", "idle",
	       "unused", "total", "failures");
}

static void print_row(const struct trace *t, const struct options *o,
		      const struct result *r)
{
	double ready = r->ready ? 1.0 * r->ready_sum / r->ready : 0;

	printf("%-16s %-10s %-10s %6u %8.1f %8.1f %6.1f %7.1f %8.1f %9u\n",
	       t->name, o->exclusive ? "exclusive" : "shared",
	       relinquish_names[o->relinquish], r->grants, ready / 1000,
	       r->ready_max / 1000.0, percent(r->idle, r->capacity),
	       percent(r->unused, r->capacity), r->end / 1000.0, r->failures);
	fflush(stdout);
}

static int replay(const char *path, const struct options *o)
{
	struct result r;
	struct trace t;
	int err;

	trace_load(&t, path);
	trace_relinquish(&t, o->relinquish);
	err = play(&t, o, &r);
	if (!err)
		print_row(&t, o, &r);
	trace_unload(&t);
	if (err)
		return 2;
	return !!r.failures;
}

static int replay_all(const char *path, struct options o)
{
	int status = 0, one;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		o.exclusive = all[i].exclusive;
		o.relinquish = all[i].relinquish;
		one = replay(path, &o);
		if (one > status)
			status = one;
	}
	return status;
}

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || strchr(text, '-') || n > max)
		die("%s is no number, or too large", text);
	return n;
}

/* the command line */
struct command {
	struct options o;
	bool record, one;
	uint64_t context;
	uint32_t columns;
};

static void set_option(struct command *c, int option)
{
	c->one |= !!strchr("sxev", option);
	switch (option) {
	case 's':
	case 'x':
		c->o.exclusive = option == 'x';
		break;
	case 'e':
		c->o.relinquish = RELINQUISH_EARLY;
		break;
	case 'v':
		c->o.relinquish = RELINQUISH_NEVER;
		break;
	case 'd':
		c->o.device = optarg;
		break;
	case 'b':
		c->o.bypass_bound = number(optarg, UINT32_MAX);
		break;
	case 'g':
		c->o.grants = true;
		break;
	case 'r':
		c->record = true;
		break;
	case 'c':
		c->context = number(optarg, UINT64_MAX);
		break;
	case 'n':
		c->columns = number(optarg, ACCMEM_TMEM_COLUMNS_MAX);
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(0);
	default:
		die("--help says more");
	}
}

static void parse(struct command *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "shared", no_argument, NULL, 's' },
		{ "exclusive", no_argument, NULL, 'x' },
		{ "relinquish-early", no_argument, NULL, 'e' },
		{ "relinquish-never", no_argument, NULL, 'v' },
		{ "bypass-bound", required_argument, NULL, 'b' },
		{ "grants", no_argument, NULL, 'g' },
		{ "record", no_argument, NULL, 'r' },
		{ "context", required_argument, NULL, 'c' },
		{ "columns", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		set_option(c, option);
	if (c->record && optind < argc)
		die("--record reads its input, and no file");
	if (!c->record && optind == argc)
		die("no trace given; --help says more");
}

int main(int argc, char **argv)
{
	struct command c = {
		/* --relinquish has an effect in the exclusive discipline only */
		.o.exclusive = true,
		.o.bypass_bound = ACCMEM_TMEM_BYPASS_BOUND,
		.columns = ACCMEM_TMEM_COLUMNS,
	};
	int status = 0, one;

	parse(&c, argc, argv);
	if (c.record) {
		record(stdin, stdout, c.context, c.columns);
		return 0;
	}
	print_header();
	for (; optind < argc; optind++) {
		one = c.one ? replay(argv[optind], &c.o) :
			      replay_all(argv[optind], c.o);
		if (one > status)
			status = one;
	}
	return status;
}
