// SPDX-License-Identifier: GPL-2.0
/*
 * Events in the order of their times. The buffers of the processors are read one after the
 * other, so that an event may be read before an older event of another processor.
 */
#include <stdlib.h>
#include <string.h>

#include "accmem.h"
#include "record.h"

struct events {
	struct event *events;
	size_t nr, room;
	uint64_t taken; /* time of the newest event that was taken */
};

struct events *events_new(void)
{
	return xcalloc(1, sizeof(struct events));
}

void events_add(struct events *s, const struct event *e)
{
	if (s->nr == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->events = resize(s->events, s->room, sizeof(*s->events));
	}
	s->events[s->nr++] = *e;
}

static int compare(const void *a, const void *b)
{
	const struct event *one = a, *two = b;

	if (one->time != two->time)
		return one->time < two->time ? -1 : 1;
	return one->number < two->number ? -1 : one->number > two->number;
}

uint64_t events_take(struct events *s, uint64_t before,
		     void (*take)(void *arg, const struct event *e), void *arg)
{
	uint64_t late = 0;
	size_t i;

	if (s->nr)
		qsort(s->events, s->nr, sizeof(*s->events), compare);
	for (i = 0; i < s->nr && s->events[i].time < before; i++) {
		if (s->events[i].time < s->taken) {
			late++;
			continue;
		}
		s->taken = s->events[i].time;
		take(arg, &s->events[i]);
	}
	s->nr -= i;
	if (i && s->nr)
		memmove(s->events, s->events + i, s->nr * sizeof(*s->events));
	return late;
}

void events_free(struct events *s)
{
	free(s->events);
	free(s);
}
