// SPDX-License-Identifier: GPL-2.0
/* Parser of traces. A line is `a <id> <bytes>`, `f <id>` or a comment that begins with #. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>

#include "replay.h"

/* Ids must be below this limit, since they index an array. */
#define ID_LIMIT 67108864u

struct reader {
	const char *path;
	unsigned long line;
	u64 *live; /* bytes of each id; 0 if the id is not allocated */
	u32 nr_live;
	size_t room;
};

static noreturn void bad(const struct reader *r, const char *what)
{
	fprintf(stderr, "accmem: replay: %s:%lu: %s\n", r->path, r->line, what);
	exit(2);
}

static u64 *live_of(struct reader *r, u32 id)
{
	r->live = reach(r->live, &r->nr_live, id, sizeof(*r->live), 0);
	return &r->live[id];
}

static u64 number(const struct reader *r, char **text, u64 limit)
{
	char *end;
	u64 n;

	errno = 0;
	n = strtoull(*text, &end, 10);
	if (end == *text || errno || n > limit || strchr(*text, '-'))
		bad(r, "an id or a size is missing or too large");
	*text = end;
	return n;
}

static void add_event(struct trace *t, struct reader *r, char *text)
{
	struct event e = {};
	char kind = *text++;

	if (kind != 'a' && kind != 'f')
		bad(r, "neither a nor f");
	e.id = number(r, &text, ID_LIMIT - 1);
	if (kind == 'a') {
		e.bytes = number(r, &text, 1ull << 44);
		if (!e.bytes)
			bad(r, "an allocation of 0 bytes");
	}
	if (text[strspn(text, " \t\r\n")])
		bad(r, "text after the event");
	if (!!*live_of(r, e.id) == !!e.bytes)
		bad(r, e.bytes ? "this id is live" : "this id is not live");
	*live_of(r, e.id) = e.bytes;
	if (e.id >= t->nr_ids)
		t->nr_ids = e.id + 1;
	if (t->nr_events == r->room) {
		r->room = r->room ? 2 * r->room : 4096;
		t->events = resize(t->events, r->room, sizeof(*t->events));
	}
	t->events[t->nr_events++] = e;
}

static void find_peak(struct trace *t, u64 granule)
{
	u64 *sizes = xcalloc(t->nr_ids, sizeof(*sizes)), live = 0, asked = 0;
	size_t i;

	for (i = 0; i < t->nr_events; i++) {
		const struct event *e = &t->events[i];

		asked += e->bytes - sizes[e->id];
		live -= round_up_to(sizes[e->id], granule);
		sizes[e->id] = e->bytes;
		live += round_up_to(e->bytes, granule);
		if (live > t->peak) {
			t->asked = asked;
			t->peak = live;
			t->peak_event = i;
		}
	}
	free(sizes);
}

void trace_load(struct trace *t, const char *path, u64 granule)
{
	struct reader r = { .path = path };
	FILE *file = fopen(path, "r");
	char *line = NULL, *text;
	size_t room = 0;

	if (!file) {
		fprintf(stderr, "accmem: replay: %s: %s\n", path,
			strerror(errno));
		exit(2);
	}
	memset(t, 0, sizeof(*t));
	t->name = base_name(path);
	while ((text = trace_line(file, &line, &room, &r.line)))
		add_event(t, &r, text);
	if (ferror(file) || !t->nr_events)
		bad(&r, ferror(file) ? "cannot be read" : "no events");
	fclose(file);
	free(line);
	free(r.live);
	find_peak(t, granule);
}

void trace_unload(struct trace *t)
{
	free(t->name);
	free(t->events);
}
