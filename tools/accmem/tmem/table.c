// SPDX-License-Identifier: GPL-2.0
/* Replay of traces of Tensor Memory: a table of disciplines and of ways to relinquish. */
#include <stdio.h>
#include <stdlib.h>

#include "tmem.h"

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

static double percent(double part, double whole)
{
	return whole ? 100.0 * part / whole : 0;
}

static void print_header(void)
{
	printf("%-16s %-10s %-10s %6s %8s %8s %6s %7s %8s %9s\n", "trace",
	       "discipline", "relinquish", "grants", "ready", "longest", "idle",
	       "unused", "total", "failures");
}

static void print_row(const struct tmem_trace *t, const struct tmem_options *o,
		      const struct tmem_result *r)
{
	double ready = r->ready ? 1.0 * r->ready_sum / r->ready : 0;

	printf("%-16s %-10s %-10s %6u %8.1f %8.1f %6.1f %7.1f %8.1f %9u\n",
	       t->name, o->exclusive ? "exclusive" : "shared",
	       relinquish_names[o->relinquish], r->grants, ready / 1000,
	       r->ready_max / 1000.0, percent(r->idle, r->capacity),
	       percent(r->unused, r->capacity), r->end / 1000.0, r->failures);
	fflush(stdout);
}

static int replay(const char *path, const struct tmem_options *o)
{
	struct tmem_result r;
	struct tmem_trace t;
	int err;

	tmem_trace_load(&t, path);
	tmem_trace_relinquish(&t, o->relinquish);
	err = tmem_play(&t, o, &r);
	if (!err)
		print_row(&t, o, &r);
	tmem_trace_unload(&t);
	if (err)
		return 2;
	return !!r.failures;
}

static int replay_all(const char *path, struct tmem_options o)
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

int tmem_replay_traces(char **paths, unsigned int nr,
		       const struct tmem_options *o)
{
	int status = 0, one;
	unsigned int i;

	print_header();
	for (i = 0; i < nr; i++) {
		one = o->one ? replay(paths[i], o) : replay_all(paths[i], *o);
		if (one > status)
			status = one;
	}
	return status;
}
