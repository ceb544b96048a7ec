// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: the numbers of carveouts and of host memory, failed memory, quarantine, and
 * requests that wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static uint64_t sum_of_states(const uint64_t value[NR_VALUES])
{
	return value[FREE] + value[LIVE] + value[DETACHED] + value[PENDING] +
	       value[QUARANTINED] + value[RETIRED];
}

static void check_equation(struct findings *f, const char *object,
			   const uint64_t value[NR_VALUES])
{
	uint64_t sum = sum_of_states(value);

	if (sum != value[CAPACITY])
		finding_add(f, ONE_MOMENT, "equation", object,
			    "the states add up to %llu bytes, and the capacity is %llu",
			    (unsigned long long)sum,
			    (unsigned long long)value[CAPACITY]);
}

static void check_capacity(struct findings *f, const char *object,
			   const uint64_t value[NR_VALUES])
{
	uint64_t capacity = read_number(CLASS "/%s/capacity", object);

	if (capacity != UNKNOWN && capacity != value[CAPACITY])
		finding_add(f, ONE_MOMENT, "capacity", object,
			    "%llu bytes in sysfs, and %llu in debugfs",
			    (unsigned long long)capacity,
			    (unsigned long long)value[CAPACITY]);
}

static void check_largest(struct findings *f, const char *object,
			  const uint64_t value[NR_VALUES])
{
	if (value[LARGEST] != UNKNOWN && value[LARGEST] > value[FREE])
		finding_add(f, QUIET, "largest", object,
			    "the largest free run has %llu bytes, and %llu are free",
			    (unsigned long long)value[LARGEST],
			    (unsigned long long)value[FREE]);
}

/* @end: end of the part before */
static void check_part(struct findings *f, const char *object,
		       const struct failed_part *p, uint64_t end,
		       uint64_t capacity)
{
	unsigned long long offset = p->offset, size = p->size;

	if (offset % GRANULE || size % GRANULE || !size)
		finding_add(f, QUIET, "retired", object,
			    "%#llx bytes at %#llx are not whole granules", size,
			    offset);
	if (offset > capacity || size > capacity - offset)
		finding_add(f, QUIET, "retired", object,
			    "%#llx bytes at %#llx are outside the carveout",
			    size, offset);
	if (offset < end)
		finding_add(f, QUIET, "retired", object,
			    "%#llx bytes at %#llx overlap the part before",
			    size, offset);
}

static void check_retired(struct findings *f, const char *object,
			  const uint64_t value[NR_VALUES])
{
	uint64_t retired = 0, pending = 0, end = 0;
	struct failed_part *parts, *p;
	size_t nr;

	if (!failed_read(&parts, &nr, object))
		return;
	for (p = parts; p < parts + nr; p++) {
		check_part(f, object, p, end, value[CAPACITY]);
		end = p->offset + p->size;
		*(p->pending ? &pending : &retired) += p->size;
	}
	free(parts);
	if (retired != value[RETIRED])
		finding_add(f, QUIET, "retired", object,
			    "the list has %llu retired bytes, and the count is %llu",
			    (unsigned long long)retired,
			    (unsigned long long)value[RETIRED]);
	if (pending != value[RETIRE_PENDING])
		finding_add(f, QUIET, "retired", object,
			    "the list has %llu failed bytes in use, and the count is %llu",
			    (unsigned long long)pending,
			    (unsigned long long)value[RETIRE_PENDING]);
}

static void check_failed(struct findings *f, const char *object,
			 const uint64_t value[NR_VALUES])
{
	if (value[RETIRE_PENDING] && value[RETIRE_PENDING] != UNKNOWN)
		finding_add(f, LASTING, "failed", object,
			    "%llu bytes have failed and are in use",
			    (unsigned long long)value[RETIRE_PENDING]);
	if (value[RETIRE_FAILED] && value[RETIRE_FAILED] != UNKNOWN)
		finding_add(f, LASTING, "failed", object,
			    "%llu bytes have failed and may be allocated again",
			    (unsigned long long)value[RETIRE_FAILED]);
}

static bool is_overdue(const struct context *c)
{
	return c->use[USE_OVERDUE] && c->use[USE_OVERDUE] != UNKNOWN;
}

/* Pending for too long: the context is known while it is open. Return the bytes. */
static uint64_t check_overdue(struct findings *f, const struct reading *r,
			      const struct device *d)
{
	uint64_t sum = 0;
	char pid[32];
	size_t i;

	for (i = 0; i < r->s.nr_contexts; i++) {
		const struct context *c = &r->s.contexts[i];

		if (strcmp(c->device, d->name) || !is_overdue(c))
			continue;
		sum += c->use[USE_OVERDUE];
		finding_add(f, LASTING, "overdue", d->name,
			    "context %llu of %s[%s]: %llu freed bytes wait too long for a stream position or a fence",
			    (unsigned long long)c->id, c->comm,
			    pids_text(c, pid),
			    (unsigned long long)c->use[USE_OVERDUE]);
	}
	return sum;
}

/* Return the contexts that may own quarantined memory: those charged for more than is live. */
static char *suspects(const struct reading *r, const struct device *d)
{
	char *text = format("%s", ""), *more, pid[32];
	size_t i;

	for (i = 0; i < r->s.nr_contexts; i++) {
		const struct context *c = &r->s.contexts[i];
		uint64_t known = 0;
		enum use u;

		for (u = USE_LIVE; u <= USE_OVERDUE; u++)
			known += c->use[u] == UNKNOWN ? 0 : c->use[u];
		if (strcmp(c->device, d->name) ||
		    c->use[USE_CHARGED] == UNKNOWN ||
		    c->use[USE_CHARGED] <= known)
			continue;
		more = format("%s%s %llu of %s[%s]", text, *text ? "," : "",
			      (unsigned long long)c->id, c->comm,
			      pids_text(c, pid));
		free(text);
		text = more;
	}
	return text;
}

static void check_quarantine(struct findings *f, const struct reading *r,
			     const struct device *d)
{
	uint64_t bytes = 0, overdue = check_overdue(f, r, d);
	char *of;
	size_t i;

	for (i = 0; i < d->nr_memories; i++)
		bytes += d->memories[i].value[QUARANTINED];
	if (bytes <= overdue)
		return;
	of = suspects(r, d);
	finding_add(f, LASTING, "quarantine", d->name,
		    "%llu freed bytes are pinned%s%s",
		    (unsigned long long)(bytes - overdue),
		    *of ? "; contexts that may own them:" : "", of);
	free(of);
}

void check_memories(struct findings *f, const struct reading *r,
		    const struct device *d)
{
	bool quiet = is_quiet(r, d->name);
	size_t i;

	if (!d->one_moment)
		return;
	for (i = 0; i < d->nr_memories; i++) {
		const struct memory *m = &d->memories[i];
		char *object = format("%s/%s", d->name, m->name);

		check_equation(f, object, m->value);
		check_capacity(f, object, m->value);
		check_failed(f, object, m->value);
		if (quiet) {
			check_largest(f, object, m->value);
			check_retired(f, object, m->value);
		}
		free(object);
	}
	check_equation(f, d->name, d->value);
	check_capacity(f, d->name, d->value);
	check_quarantine(f, r, d);
}

/*
 * The request at the front of the queue must not wait while each memory has a free run that
 * is long enough, with a page to spare at both ends.
 */
void check_waiters(struct findings *f, const struct device *d)
{
	uint64_t least = UNKNOWN;
	const struct waiter *w;
	size_t i;

	for (i = 0; i < d->nr_memories; i++) {
		if (d->memories[i].value[LARGEST] < least)
			least = d->memories[i].value[LARGEST];
	}
	if (!d->nr_waiters || least == UNKNOWN)
		return;
	w = &d->waiters[0];
	if (strcmp(w->state, "limited") && strcmp(w->state, "interrupted") &&
	    w->bytes + 2 * FOLIO <= least)
		finding_add(f, LASTING, "waiter", d->name,
			    "context %llu waits for %llu bytes, and each memory has a longer free run",
			    (unsigned long long)w->context,
			    (unsigned long long)w->bytes);
}
