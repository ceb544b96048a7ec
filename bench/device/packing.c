// SPDX-License-Identifier: GPL-2.0
/*
 * Size of the smallest carveout that serves a trace through ALLOC and FREE. Sizes grow
 * from the peak of the trace; the result is the first of nine sizes in a row that serve
 * the trace. The module is loaded anew for each replay, with a device of that size, so
 * no replay influences a later replay.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "replay.h"

#define IN_A_ROW 9
#define STEPS 512 /* a step is the peak divided by this number */
#define MAX_SIZES 4096
#define STEP_MIN MIB(2) /* the capacity of a device is a multiple of it */

enum outcome { UNKNOWN, SERVES, FAILS };

struct tenant {
	const struct trace *t;
	u64 *addresses; /* address of each id */
	size_t next; /* index of the next event */
	int fd;
};

struct search {
	struct device dev;
	const char *module; /* path of the module's file */
	const char *suffix; /* end of the module parameter */
	u64 start, room; /* address and size of the reserved range */
	struct tenant tenants[2];
	unsigned int nr_tenants;
	u64 peak, step;
	unsigned char outcome[MAX_SIZES]; /* indexed by the number of steps */
	unsigned int replays;
};

/* Return the tenant that is furthest behind in its trace; NULL if all are done. */
static struct tenant *whose_turn(struct search *s)
{
	struct tenant *last = NULL;
	unsigned int i;

	for (i = 0; i < s->nr_tenants; i++) {
		struct tenant *a = &s->tenants[i];

		if (a->next < a->t->nr_events &&
		    (!last || a->next * last->t->nr_events <
				      last->next * a->t->nr_events))
			last = a;
	}
	return last;
}

static void rewind_all(struct search *s)
{
	unsigned int i;

	for (i = 0; i < s->nr_tenants; i++)
		s->tenants[i].next = 0;
}

/* Return the maximum of the live bytes of all tenants, in the order of the replay. */
static u64 find_peak(struct search *s)
{
	u64 live = 0, peak = 0, *sizes[2] = {};
	struct tenant *a;
	unsigned int i;

	for (i = 0; i < s->nr_tenants; i++)
		sizes[i] = xcalloc(s->tenants[i].t->nr_ids, sizeof(u64));
	rewind_all(s);
	while ((a = whose_turn(s))) {
		const struct event *e = &a->t->events[a->next++];
		u64 *size = &sizes[a - s->tenants][e->id];

		live -= *size;
		*size = round_up_to(e->bytes, GRANULE_MIN);
		live += *size;
		if (live > peak)
			peak = live;
	}
	free(sizes[0]);
	free(sizes[1]);
	return peak;
}

static void load_module(const struct search *s, u64 bytes)
{
	int fd = open(s->module, O_RDONLY | O_CLOEXEC);
	char args[64];

	snprintf(args, sizeof(args), "phys=%llu@%#llx%s", bytes, s->start,
		 s->suffix);
	if (fd < 0 || syscall(SYS_finit_module, fd, args, 0))
		die(errno, "%s with %s", s->module, args);
	close(fd);
	device_settle(&s->dev);
}

/* Retry, because the last close of a file may still be in progress. */
static void unload_module(void)
{
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (!syscall(SYS_delete_module, "accmem", O_NONBLOCK))
			return;
		usleep(10000);
	}
	die(errno, "the module stays");
}

static bool play_event(struct tenant *a)
{
	const struct event *e = &a->t->events[a->next++];
	struct accmem_alloc request = {
		.length = round_up_to(e->bytes, GRANULE_MIN),
	};
	int err;

	if (!e->bytes) {
		buffer_free(a->fd, a->addresses[e->id]);
		return true;
	}
	err = buffer_request(a->fd, &request);
	if (err && err != ENOMEM)
		die(err, "ALLOC of %llu", request.length);
	a->addresses[e->id] = request.address;
	return !err;
}

static bool serves(struct search *s, u64 bytes)
{
	struct tenant *a;
	bool ok = true;
	unsigned int i;

	load_module(s, bytes);
	rewind_all(s);
	for (i = 0; i < s->nr_tenants; i++)
		s->tenants[i].fd = device_open(&s->dev);
	while (ok && (a = whose_turn(s)))
		ok = play_event(a);
	for (i = 0; i < s->nr_tenants; i++)
		close(s->tenants[i].fd);
	unload_module();
	s->replays++;
	return ok;
}

static u64 size_of(const struct search *s, unsigned int i)
{
	return round_up_to(s->peak, STEP_MIN) + i * s->step;
}

static bool serves_at(struct search *s, unsigned int i)
{
	unsigned char *outcome = &s->outcome[i];

	if (*outcome == UNKNOWN)
		*outcome = serves(s, size_of(s, i)) ? SERVES : FAILS;
	return *outcome == SERVES;
}

/*
 * Return the first of nine sizes in a row that serve, or 0 if the reserved range is too
 * small. The nine sizes are tried from the last down: if one fails, the result is above
 * it, and the sizes below need not be tried.
 */
static u64 smallest(struct search *s)
{
	unsigned int start = 0, i;

	memset(s->outcome, UNKNOWN, sizeof(s->outcome));
	for (;;) {
		for (i = start + IN_A_ROW; i > start; i--) {
			if (i > MAX_SIZES || size_of(s, i - 1) > s->room)
				return 0;
			if (!serves_at(s, i - 1))
				break;
		}
		if (i == start)
			return size_of(s, start);
		start = i;
	}
}

static u64 search(struct search *s)
{
	u64 start = clock_now(), found;

	s->peak = find_peak(s);
	s->step = round_up_to((s->peak + STEPS - 1) / STEPS, STEP_MIN);
	s->replays = 0;
	found = smallest(s);
	printf("# %s%s%s on %s: peak %llu, served by %llu; %u replays in %.1f s\n",
	       s->tenants[0].t->name, s->nr_tenants > 1 ? " and " : "",
	       s->nr_tenants > 1 ? s->tenants[1].t->name : "", s->dev.kind,
	       s->peak, found, s->replays, (clock_now() - start) / 1e9);
	return found;
}

/* @bytes: size of the range that lib/ needs */
static void report(const struct search *s, u64 found, u64 bytes, double limit)
{
	char name[128], peak[160];

	snprintf(name, sizeof(name), "packing-%s%s%s", s->tenants[0].t->name,
		 s->nr_tenants > 1 ? "-" : "",
		 s->nr_tenants > 1 ? s->tenants[1].t->name : "");
	if (found) {
		snprintf(peak, sizeof(peak), "%s-over-peak", name);
		figure(peak, &s->dev, (double)found / s->peak, "ratio");
		goal_most(name, &s->dev, (double)found / bytes, limit);
		return;
	}
	printf("goal=%s-%s value=none limit=%.3f result=short\n", name,
	       s->dev.kind, limit);
}

static void set_tenant(struct search *s, unsigned int i, const struct trace *t)
{
	free(s->tenants[i].addresses);
	s->tenants[i].t = t;
	s->tenants[i].addresses = xcalloc(t->nr_ids, sizeof(u64));
}

#define MAX_TRACES 8

/* Parse TRACE=BYTES: the file, and the smallest range that serves the trace in lib/. */
static u64 parse_trace(char *text, struct trace *t)
{
	char *equals = strrchr(text, '=');
	u64 bytes = equals ? strtoull(equals + 1, NULL, 10) : 0;

	if (!bytes)
		die(0, "%s is not TRACE=BYTES", text);
	*equals = '\0';
	trace_load(t, text, GRANULE_MIN);
	return bytes;
}

static void pack_pairs(struct search *s, const struct trace *traces,
		       const u64 *bytes, int n)
{
	int i, j;

	s->nr_tenants = 2;
	for (i = 0; i < n; i++) {
		for (j = 0; j < i; j++) {
			set_tenant(s, 0, &traces[j]);
			set_tenant(s, 1, &traces[i]);
			report(s, search(s), bytes[i] + bytes[j], 1.03);
		}
	}
}

static void pack(struct search *s, int argc, char **argv)
{
	struct trace traces[MAX_TRACES];
	u64 bytes[MAX_TRACES];
	int i;

	s->nr_tenants = 1;
	for (i = 0; i < argc; i++) {
		bytes[i] = parse_trace(argv[i], &traces[i]);
		set_tenant(s, 0, &traces[i]);
		report(s, search(s), bytes[i], 1.01);
	}
	pack_pairs(s, traces, bytes, argc);
}

static void parse_kind(struct search *s, const char *kind)
{
	s->dev = devices[PHYS];
	s->suffix = "";
	if (!strcmp(kind, "nopages")) {
		s->dev = devices[NOPAGES];
		s->suffix = ":nopages";
	} else if (strcmp(kind, "phys")) {
		die(0, "%s is neither phys nor nopages", kind);
	}
	s->dev.path = "/dev/accmem0"; /* the only device */
}

void bench_packing(int argc, char **argv)
{
	struct search s = {};

	if (argc < 5 || argc > MAX_TRACES + 4)
		die(0, "packing MODULE KIND ADDRESS SIZE TRACE=BYTES...");
	s.module = argv[0];
	parse_kind(&s, argv[1]);
	s.start = strtoull(argv[2], NULL, 0);
	s.room = strtoull(argv[3], NULL, 0);
	pack(&s, argc - 4, argv + 4);
}
