// SPDX-License-Identifier: GPL-2.0
/*
 * accmem-replay: replay recorded traces of allocations over lib/ or on a device. The
 * program prints one line for each trace.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replay.h"

static const char usage_text[] =
	"usage: accmem-replay [OPTION]... TRACE...\n"
	"\n"
	"Replays traces (lines `a ID BYTES`, `f ID`, `# comment`) and prints a line\n"
	"for each. Without --device this process runs the allocator of the driver.\n"
	"\n"
	"  --device PATH     through the device: every buffer is mapped, gets a pattern\n"
	"                    at the ends of each 4 KiB, and is compared before it is\n"
	"                    freed\n"
	"  --min-heap        find how large a range has to be: in steps of 1/512 of\n"
	"                    the peak, the first of nine in a row that serve\n"
	"  --owners          with --min-heap: all traces at once, an event of each in\n"
	"                    turn, by owners who share no 2 MiB; one line for all\n"
	"  --capacity BYTES  size of the range (default: twice the peak)\n"
	"  --granule BYTES   round sizes up to this power of two, 4096 or more\n"
	"                    (default: 4096)\n"
	"  --map             also print the carveout as a picture at the peak\n"
	"  --placement       without --device: also print a line `a ID OFFSET BYTES` for\n"
	"                    each allocation that is served\n"
	"  --help            this text\n"
	"\n"
	"Fields, those that a mode measures: trace, events, peak (most bytes live,\n"
	"sizes rounded up to the granule), footprint (bytes taken from the carveout\n"
	"at that moment), asked (bytes asked for then), min_heap, ratio (min_heap /\n"
	"peak), ns_per_op (of alloc and free; without --device, processor time),\n"
	"failures (allocations refused), corrupt (buffers whose pattern was not what\n"
	"had been written).\n"
	"\n"
	"Exit status: 0; 1 when an allocation failed or a buffer was corrupt; 2 when\n"
	"the replay could not be made.\n";

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

u64 cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p) {
		perror("accmem-replay");
		exit(2);
	}
	return p;
}

void progress(const struct trace *t, const char *what, u64 done, u64 of)
{
	static u64 last;
	u64 now = now_ns();

	if (!last)
		last = now;
	if (now - last < 5000000000ull)
		return;
	last = now;
	fprintf(stderr, "accmem-replay: %s: %llu of %llu %s\n", t->name, done,
		of, what);
}

static void print_line(const struct trace *t, const struct result *r)
{
	printf("trace=%s events=%zu peak=%llu", t->name, t->nr_events, t->peak);
	if (r->has_footprint)
		printf(" footprint=%llu asked=%llu", r->footprint, t->asked);
	if (r->has_min_heap)
		printf(" min_heap=%llu ratio=%.3f", r->min_heap,
		       (double)r->min_heap / r->peak);
	if (r->has_time)
		printf(" ns_per_op=%.0f", r->ns_per_op);
	if (r->has_failures)
		printf(" failures=%llu", r->failures);
	if (r->has_corrupt)
		printf(" corrupt=%llu", r->corrupt);
	putchar('\n');
	fflush(stdout);
}

static int replay(const char *path, const struct options *o)
{
	struct result r = {};
	struct trace t;
	int err;

	trace_load(&t, path, o->granule);
	if (o->device)
		err = replay_device(&t, o, &r);
	else if (o->min_heap)
		err = replay_min_heap(&t, 1, o, &r);
	else
		err = replay_lib(&t, o, &r);
	if (!err)
		print_line(&t, &r);
	trace_unload(&t);
	if (err)
		return 2;
	return r.failures || r.corrupt;
}

/* Replay all traces, and print one line for all: its peak is the sum of their peaks. */
static int replay_owners(char **paths, unsigned int nr, const struct options *o)
{
	struct trace *t = xcalloc(nr, sizeof(*t)), all = {};
	size_t length = 1;
	struct result r = {};
	unsigned int i;
	int err;

	for (i = 0; i < nr; i++) {
		trace_load(&t[i], paths[i], o->granule);
		length += strlen(t[i].name) + 1;
		all.nr_events += t[i].nr_events;
	}
	all.name = xcalloc(length, 1);
	for (i = 0; i < nr; i++)
		strcat(strcat(all.name, i ? "+" : ""), t[i].name);
	err = replay_min_heap(t, nr, o, &r);
	all.peak = r.peak;
	if (!err)
		print_line(&all, &r);
	for (i = 0; i < nr; i++)
		trace_unload(&t[i]);
	free(all.name);
	free(t);
	return err ? 2 : 0;
}

static u64 bytes_of(const char *option, const char *text)
{
	char *end;
	u64 n;

	errno = 0;
	n = strtoull(text, &end, 0);
	if (errno || end == text || *end || !n || strchr(text, '-') ||
	    n % GRANULE_MIN) {
		fprintf(stderr,
			"accmem-replay: %s takes a positive multiple of %llu, not %s\n",
			option, GRANULE_MIN, text);
		exit(2);
	}
	return n;
}

static void wrong(const char *message)
{
	fprintf(stderr, "accmem-replay: %s; --help says more\n", message);
	exit(2);
}

static void parse(struct options *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 'd' },
		{ "min-heap", no_argument, NULL, 'm' },
		{ "owners", no_argument, NULL, 'o' },
		{ "capacity", required_argument, NULL, 'c' },
		{ "granule", required_argument, NULL, 'g' },
		{ "map", no_argument, NULL, 'p' },
		{ "placement", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'd':
			o->device = optarg;
			break;
		case 'm':
			o->min_heap = true;
			break;
		case 'o':
			o->owners = true;
			break;
		case 'c':
			o->capacity = bytes_of("--capacity", optarg);
			break;
		case 'g':
			o->granule = bytes_of("--granule", optarg);
			break;
		case 'p':
			o->map = true;
			break;
		case 'l':
			o->placement = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			wrong("unknown option");
		}
	}
	if (o->granule & (o->granule - 1))
		wrong("--granule takes a power of two");
	if (o->min_heap && (o->device || o->capacity || o->map || o->placement))
		wrong("--min-heap goes with --granule and --owners only");
	if (o->owners && !o->min_heap)
		wrong("--owners goes with --min-heap");
	if (o->device && o->capacity)
		wrong("a device has the capacity it has");
	if (o->device && o->placement)
		wrong("--placement goes without --device");
	if (optind == argc)
		wrong("no trace given");
}

int main(int argc, char **argv)
{
	struct options o = { .granule = GRANULE_MIN };
	int status = 0, one;

	parse(&o, argc, argv);
	if (o.owners)
		return replay_owners(argv + optind, argc - optind, &o);
	for (; optind < argc; optind++) {
		one = replay(argv[optind], &o);
		if (one > status)
			status = one;
	}
	return status;
}
