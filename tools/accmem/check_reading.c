// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: one pass over the files of all devices.
 *
 * A pass is quiet if nothing was allocated, freed, opened or closed meanwhile. Counters that
 * only rise, and the lists of contexts and users, are read before the pass and after it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* Return text that each allocation, free, open and close of the device changes. */
static char *generation_of(unsigned int device)
{
	char *contexts = read_text(DEBUGFS "/accmem%u/contexts", device);
	char *users = read_text(DEBUGFS "/users"), *text;
	static const char *const names[] = { "allocs", "frees", "host/allocs",
					     "host/frees" };
	uint64_t n[sizeof(names) / sizeof(*names)];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		n[i] = read_number(CLASS "/accmem%u/%s", device, names[i]);
	text = format("%llu %llu %llu %llu\n%s\n%s", (unsigned long long)n[0],
		      (unsigned long long)n[1], (unsigned long long)n[2],
		      (unsigned long long)n[3], contexts ? contexts : "",
		      users ? users : "");
	free(contexts);
	free(users);
	return text;
}

/* Return the number of a device; DEVICES if the name has none that the driver gives. */
unsigned int number_of(const char *device)
{
	unsigned int number;

	if (sscanf(device, "accmem%u", &number) != 1 || number >= DEVICES)
		return DEVICES;
	return number;
}

bool is_quiet(const struct reading *r, const char *device)
{
	unsigned int number = number_of(device);

	return number < DEVICES && r->quiet[number];
}

static int compare_accounts(const void *a, const void *b)
{
	const struct account *x = a, *y = b;

	return context_order(x->device, x->id, y->device, y->id);
}

/* Add up the buffers of each context. */
static void add_buffers(struct reading *r)
{
	struct account key = { 0 }, *a;
	size_t i;

	if (r->nr_accounts)
		qsort(r->accounts, r->nr_accounts, sizeof(key),
		      compare_accounts);
	for (i = 0; r->nr_accounts && i < r->nr_buffers; i++) {
		const struct buffer *b = &r->buffers[i];

		copy_word(key.device, sizeof(key.device), b->device);
		key.id = b->context;
		a = bsearch(&key, r->accounts, r->nr_accounts, sizeof(key),
			    compare_accounts);
		if (!a)
			continue;
		a->nr++;
		*(b->host ? &a->host : &a->live) += b->footprint;
	}
}

/* Read all devices. A device is quiet if nothing of it changed from begin to end. */
void reading_take(struct reading *r)
{
	char *before[DEVICES], *after;
	unsigned int i;

	memset(r, 0, sizeof(*r));
	for (i = 0; i < DEVICES; i++)
		before[i] = path_exists(CLASS "/accmem%u", i) ?
				    generation_of(i) :
				    NULL;
	snapshot_read(&r->s);
	for (i = 0; i < r->s.nr_devices; i++) {
		accounts_read(&r->accounts, &r->nr_accounts,
			      r->s.devices[i].name);
		buffers_read(&r->buffers, &r->nr_buffers, r->s.devices[i].name);
	}
	add_buffers(r);
	for (i = 0; i < DEVICES; i++) {
		after = before[i] ? generation_of(i) : NULL;
		r->quiet[i] = after && !strcmp(before[i], after);
		free(before[i]);
		free(after);
	}
	r->all_quiet = r->s.all;
	for (i = 0; i < r->s.nr_devices; i++)
		r->all_quiet &= is_quiet(r, r->s.devices[i].name);
}

void reading_free(struct reading *r)
{
	snapshot_free(&r->s);
	free(r->accounts);
	free(r->buffers);
}
