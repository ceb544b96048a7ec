// SPDX-License-Identifier: GPL-2.0
/* Replay of traces of allocations: a line of results for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay.h"

static void print_line(const struct trace *t, const struct replay_result *r)
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

static int replay(const char *path, const struct replay_options *o)
{
	struct replay_result r = {};
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
static int replay_owners(char **paths, unsigned int nr,
			 const struct replay_options *o)
{
	struct trace *t = xcalloc(nr, sizeof(*t)), all = {};
	size_t length = 1;
	struct replay_result r = {};
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

int replay_traces(char **paths, unsigned int nr, const struct replay_options *o)
{
	int status = 0, one;
	unsigned int i;

	if (o->owners)
		return replay_owners(paths, nr, o);
	for (i = 0; i < nr; i++) {
		one = replay(paths[i], o);
		if (one > status)
			status = one;
	}
	return status;
}
