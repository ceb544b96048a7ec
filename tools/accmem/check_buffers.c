// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: the buffers of a context have addresses of their own, and are in a carveout
 * of the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static int compare_buffers(const void *a, const void *b)
{
	const struct buffer *x = a, *y = b;

	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Return the carveout of a buffer, or host memory; NULL if the device does not have it. */
static const struct memory *memory_of(const struct device *d,
				      const struct buffer *b)
{
	char name[24] = "host";
	size_t i;

	if (!b->host)
		snprintf(name, sizeof(name), "carveout%u", b->carveout);
	for (i = 0; i < d->nr_memories; i++) {
		if (!strcmp(d->memories[i].name, name))
			return &d->memories[i];
	}
	return NULL;
}

static void check_place(struct findings *f, const struct device *d,
			const struct buffer *b)
{
	const struct memory *m = memory_of(d, b);

	if (!m)
		finding_add(f, QUIET, "buffer", d->name,
			    "context %llu: the buffer at %#llx is in carveout %u, which does not exist",
			    (unsigned long long)b->context,
			    (unsigned long long)b->address, b->carveout);
	else if (b->footprint > m->value[CAPACITY])
		finding_add(f, QUIET, "buffer", d->name,
			    "context %llu: the buffer at %#llx has %llu bytes, and %s has %llu",
			    (unsigned long long)b->context,
			    (unsigned long long)b->address,
			    (unsigned long long)b->footprint, m->name,
			    (unsigned long long)m->value[CAPACITY]);
	if (b->length > b->footprint)
		finding_add(f, QUIET, "buffer", d->name,
			    "context %llu: the buffer at %#llx has %llu bytes in %llu bytes of memory",
			    (unsigned long long)b->context,
			    (unsigned long long)b->address,
			    (unsigned long long)b->length,
			    (unsigned long long)b->footprint);
}

static void check_overlap(struct findings *f, const struct device *d,
			  const struct buffer *b, const struct buffer *next)
{
	if (b->context == next->context &&
	    next->address - b->address < b->length)
		finding_add(f, QUIET, "overlap", d->name,
			    "context %llu: the buffers at %#llx and %#llx overlap",
			    (unsigned long long)b->context,
			    (unsigned long long)b->address,
			    (unsigned long long)next->address);
}

void check_buffers(struct findings *f, const struct reading *r,
		   const struct device *d)
{
	struct buffer *own = NULL;
	size_t nr = 0, i;

	if (!is_quiet(r, d->name))
		return;
	for (i = 0; i < r->nr_buffers; i++) {
		if (strcmp(r->buffers[i].device, d->name))
			continue;
		own = grow(own, nr, sizeof(*own));
		own[nr++] = r->buffers[i];
	}
	if (nr)
		qsort(own, nr, sizeof(*own), compare_buffers);
	for (i = 0; i < nr; i++) {
		check_place(f, d, &own[i]);
		if (i + 1 < nr)
			check_overlap(f, d, &own[i], &own[i + 1]);
	}
	free(own);
}
