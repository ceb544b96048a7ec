// SPDX-License-Identifier: GPL-2.0
/*
 * accmem replay: replay traces of allocations, over lib/ or on a device, or traces of the
 * Tensor Memory calls of CTAs. The first line of the first trace tells which.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/accmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../accmem.h"
#include "../tmem/tmem.h"
#include "replay.h"

static const char usage[] =
	"usage: accmem replay [OPTION]... TRACE...\n"
	"Replay traces of allocations (lines `a ID BYTES`, `f ID`, `# comment`), and print a line\n"
	"for each; or traces of Tensor Memory, and print a table. accmem-replay(1) explains both.\n"
	"\n"
	"  --device PATH      replay on this device. A trace of allocations is else replayed by\n"
	"                     the allocator of the driver in this process\n"
	"\n"
	"Traces of allocations:\n"
	"  --min-heap         find the smallest range that serves the trace\n"
	"  --owners           with --min-heap: all traces at once, each with an owner\n"
	"  --capacity SIZE    size of the range (twice the peak)\n"
	"  --granule SIZE     round sizes up to this power of two (4096)\n"
	"  --map              also print the carveout as a picture at the peak\n"
	"  --placement        without --device: also print where each allocation is placed\n"
	"\n"
	"Traces of Tensor Memory, which are replayed in the shared discipline and in the exclusive\n"
	"one with each way to relinquish, unless an option chooses one:\n"
	"  --shared           only in the shared discipline\n"
	"  --exclusive        only in the exclusive discipline\n"
	"  --relinquish-early each CTA relinquishes right after its last alloc\n"
	"  --relinquish-never no CTA relinquishes before it exits\n"
	"  --bypass-bound N   of the context (64)\n"
	"  --grants           also print each grant, in order\n"
	"\n"
	"Exit status: 0; 1 when an allocation failed, a buffer was corrupt, a call failed or a CTA\n"
	"waited for ever; 2 when the replay could not be made.\n";

enum { KIND_BUFFERS = 1, KIND_TMEM = 2 };

static const struct option options[] = {
	{ "device", required_argument, NULL, 'd' },
	{ "min-heap", no_argument, NULL, 'm' },
	{ "owners", no_argument, NULL, 'o' },
	{ "capacity", required_argument, NULL, 'c' },
	{ "granule", required_argument, NULL, 'g' },
	{ "map", no_argument, NULL, 'p' },
	{ "placement", no_argument, NULL, 'l' },
	{ "shared", no_argument, NULL, 's' },
	{ "exclusive", no_argument, NULL, 'x' },
	{ "relinquish-early", no_argument, NULL, 'e' },
	{ "relinquish-never", no_argument, NULL, 'v' },
	{ "bypass-bound", required_argument, NULL, 'b' },
	{ "grants", no_argument, NULL, 'r' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct command {
	struct replay_options buffers;
	struct tmem_options tmem;
	/* an option that goes with one kind of trace only, by kind; NULL: none */
	const char *option_of[KIND_TMEM + 1];
};

static void wrong(const char *message)
{
	fprintf(stderr, "accmem: replay: %s; --help says more\n", message);
	exit(2);
}

static u64 number(const char *option, u64 multiple, u64 most)
{
	uint64_t n;

	if (!size_parse(optarg, &n) || n % multiple || n > most) {
		fprintf(stderr, "accmem: replay: --%s: %s is no ", option,
			optarg);
		if (multiple > 1)
			fprintf(stderr, "multiple of %llu\n", multiple);
		else
			fprintf(stderr, "number, or too large\n");
		exit(2);
	}
	return n;
}

static u64 bytes(const char *option)
{
	u64 n = number(option, GRANULE_MIN, U64_MAX);

	if (!n)
		wrong("a size is positive");
	return n;
}

static void set_buffers_option(struct replay_options *o, int option)
{
	switch (option) {
	case 'm':
		o->min_heap = true;
		break;
	case 'o':
		o->owners = true;
		break;
	case 'c':
		o->capacity = bytes("capacity");
		break;
	case 'g':
		o->granule = bytes("granule");
		break;
	case 'p':
		o->map = true;
		break;
	case 'l':
		o->placement = true;
		break;
	}
}

static void set_tmem_option(struct tmem_options *o, int option)
{
	o->one |= !!strchr("sxev", option);
	switch (option) {
	case 's':
	case 'x':
		o->exclusive = option == 'x';
		break;
	case 'e':
		o->relinquish = RELINQUISH_EARLY;
		break;
	case 'v':
		o->relinquish = RELINQUISH_NEVER;
		break;
	case 'b':
		o->bypass_bound = number("bypass-bound", 1, UINT32_MAX);
		break;
	case 'r':
		o->grants = true;
		break;
	}
}

static void check_buffers_options(const struct replay_options *o)
{
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
}

/* Return -1, or the status with which the command ends. */
static int parse(struct command *c, int argc, char **argv)
{
	int option, index;

	while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		} else if (option == '?') {
			fputs(usage, stderr);
			return STATUS_USAGE;
		} else if (option == 'd') {
			c->buffers.device = optarg;
			c->tmem.device = optarg;
		} else if (strchr("mocgpl", option)) {
			c->option_of[KIND_BUFFERS] = options[index].name;
			set_buffers_option(&c->buffers, option);
		} else {
			c->option_of[KIND_TMEM] = options[index].name;
			set_tmem_option(&c->tmem, option);
		}
	}
	check_buffers_options(&c->buffers);
	if (optind == argc) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return -1;
}

static bool is_tmem_line(const char *text)
{
	size_t length = strcspn(text, " \t\r\n");
	int kind;

	if (length == 3 && !strncmp(text, "sms", length))
		return true;
	for (kind = 0; kind < STEP_KINDS; kind++) {
		if (strlen(step_names[kind]) == length &&
		    !strncmp(text, step_names[kind], length))
			return true;
	}
	return false;
}

/*
 * Return the path of a trace that can be opened again: @path, or that of a copy, which exists
 * until the command ends. A pipe has its bytes only once.
 */
static const char *reopened(const char *path)
{
	FILE *from, *copy;
	char text[65536];
	struct stat st;
	size_t n;

	if (stat(path, &st) || !S_ISFIFO(st.st_mode))
		return path;
	from = fopen(path, "re");
	copy = tmpfile();
	while (from && copy && (n = fread(text, 1, sizeof(text), from)) > 0 &&
	       fwrite(text, 1, n, copy) == n)
		;
	if (!from || !copy || ferror(from) || fflush(copy) || ferror(copy)) {
		fprintf(stderr, "accmem: replay: %s: %s\n", path,
			strerror(errno));
		exit(2);
	}
	fclose(from);
	return format("/proc/self/fd/%d", fileno(copy));
}

/* Return the kind of a trace; KIND_BUFFERS if the file cannot be read. */
static int kind_of(const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL, *text = NULL;
	unsigned long number = 0;
	int kind = KIND_BUFFERS;
	size_t room = 0;

	if (file)
		text = trace_line(file, &line, &room, &number);
	if (text && is_tmem_line(text))
		kind = KIND_TMEM;
	free(line);
	if (file)
		fclose(file);
	return kind;
}

int command_replay(int argc, char **argv)
{
	struct command c = {
		.buffers.granule = GRANULE_MIN,
		/* --relinquish has an effect in the exclusive discipline only */
		.tmem.exclusive = true,
		.tmem.bypass_bound = ACCMEM_TMEM_BYPASS_BOUND,
	};
	int status = parse(&c, argc, argv), kind;
	const char *misplaced;
	int i;

	if (status >= 0)
		return status;
	for (i = optind; i < argc; i++)
		argv[i] = (char *)reopened(argv[i]);
	kind = kind_of(argv[optind]);
	misplaced = c.option_of[KIND_BUFFERS + KIND_TMEM - kind];
	if (misplaced) {
		fprintf(stderr,
			"accmem: replay: --%s does not go with %s, a trace of %s\n",
			misplaced, argv[optind],
			kind == KIND_TMEM ? "Tensor Memory" : "allocations");
		return STATUS_USAGE;
	}
	if (kind == KIND_TMEM)
		return tmem_replay_traces(argv + optind, argc - optind,
					  &c.tmem);
	return replay_traces(argv + optind, argc - optind, &c.buffers);
}
