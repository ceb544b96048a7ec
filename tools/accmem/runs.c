// SPDX-License-Identifier: GPL-2.0
/*
 * The runs of a device, read from `runs` in debugfs, their owners, and the holes between used
 * runs; and the failed memory, from `retired` in sysfs.
 *
 * Cached memory counts as free, as for the driver. Memory of which the file has no line
 * counts as free, too: the driver clears it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

const char *const run_names[NR_RUN_STATES] = {
	[RUN_FREE] = "free",	   [RUN_CACHED] = "cached",
	[RUN_LIVE] = "live",	   [RUN_DETACHED] = "detached",
	[RUN_PENDING] = "pending", [RUN_QUARANTINED] = "quarantined",
	[RUN_RETIRED] = "retired",
};

/* "carveout offset size state[ context uid]" */
static bool run_parse(struct run *r, const char *line)
{
	unsigned long long offset, size, context = 0, uid = UNKNOWN;
	char state[16];

	if (sscanf(line, "%u %llx %llx %15s %llu %llu", &r->carveout, &offset,
		   &size, state, &context, &uid) < 4)
		return false;
	for (r->state = 0; r->state < NR_RUN_STATES; r->state++) {
		if (!strcmp(state, run_names[r->state]))
			break;
	}
	r->offset = offset;
	r->size = size;
	r->context = context;
	r->uid = uid;
	return r->state < NR_RUN_STATES && size;
}

static int compare_runs(const void *a, const void *b)
{
	const struct run *x = a, *y = b;

	if (x->carveout != y->carveout)
		return x->carveout < y->carveout ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Read the runs, in the order of their offsets. Return false if the file cannot be read. */
bool runs_read(struct run **runs, size_t *nr, const char *device)
{
	char *text = read_text(DEBUGFS "/%s/runs", device), *line, *save;
	struct run r;

	*runs = NULL;
	*nr = 0;
	if (!text)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!run_parse(&r, line))
			continue;
		*runs = grow(*runs, *nr, sizeof(**runs));
		(*runs)[(*nr)++] = r;
	}
	free(text);
	if (*nr)
		qsort(*runs, *nr, sizeof(**runs), compare_runs);
	return true;
}

/*
 * Read the failed memory of a carveout, "accmem0/carveout0": lines "offset size state cause[
 * address]". Return false if the file cannot be read.
 */
bool failed_read(struct failed_part **parts, size_t *nr, const char *carveout)
{
	char *text = read_text(CLASS "/%s/retired", carveout), *line, *save;
	unsigned long long offset, size;
	char state[16];

	*parts = NULL;
	*nr = 0;
	if (!text)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%llx %llx %15s", &offset, &size, state) != 3)
			continue;
		*parts = grow(*parts, *nr, sizeof(**parts));
		(*parts)[(*nr)++] =
			(struct failed_part){ offset, size,
					      !strcmp(state, "pending") };
	}
	free(text);
	return true;
}

bool run_is_used(const struct run *r)
{
	return r->state != RUN_FREE && r->state != RUN_CACHED;
}

static int compare_owners(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Return the index of a context, or @nr. */
size_t owner_find(const struct owner *owners, size_t nr, uint64_t context)
{
	size_t i;

	for (i = 0; i < nr && owners[i].context != context; i++)
		;
	return i;
}

/* Return the owners of the runs that are wanted, the one with the most memory first. */
struct owner *owners_of(const struct run *runs, size_t nr_runs,
			bool (*wanted)(const struct run *r, const void *arg),
			const void *arg, size_t *nr)
{
	struct owner *owners = NULL;
	const struct run *r;
	size_t i;

	*nr = 0;
	for (r = runs; r < runs + nr_runs; r++) {
		if (!wanted(r, arg))
			continue;
		i = owner_find(owners, *nr, r->context);
		if (i == *nr) {
			owners = grow(owners, (*nr)++, sizeof(*owners));
			owners[i].context = r->context;
			owners[i].uid = r->uid;
		}
		owners[i].bytes += r->size;
	}
	if (*nr)
		qsort(owners, *nr, sizeof(*owners), compare_owners);
	return owners;
}

static void add_hole(struct hole **holes, size_t *nr, uint64_t from,
		     uint64_t to, const struct run *before,
		     const struct run *after)
{
	if (from >= to)
		return;
	*holes = grow(*holes, *nr, sizeof(**holes));
	(*holes)[(*nr)++] = (struct hole){ from, to - from, before, after };
}

/*
 * Return the holes of a carveout. @unit: a context that has no memory can get none in an
 * aligned part of this size in which memory of another context is used.
 */
struct hole *holes_of(const struct run *runs, size_t nr_runs,
		      unsigned int carveout, uint64_t capacity, uint64_t unit,
		      size_t *nr)
{
	const struct run *r, *before = NULL;
	struct hole *holes = NULL;
	uint64_t at = 0, start, end;

	*nr = 0;
	for (r = runs; r < runs + nr_runs; r++) {
		if (r->carveout != carveout || !run_is_used(r))
			continue;
		start = r->offset;
		end = r->offset + r->size;
		if (r->state != RUN_RETIRED) {
			start -= start % unit;
			end += (unit - end % unit) % unit;
		}
		add_hole(&holes, nr, at, start, before, r);
		if (end > at)
			at = end;
		before = r;
	}
	add_hole(&holes, nr, at, capacity, before, NULL);
	return holes;
}
