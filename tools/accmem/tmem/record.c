// SPDX-License-Identifier: GPL-2.0
/*
 * Conversion of the driver's trace events, in the text format of ftrace, to a trace.
 *
 * The times of a CTA count from the end of its previous step. An alloc ends at the call
 * that made its grant possible: the last call before the grant in the text. A replay, in
 * which a step takes no time, then makes the same steps at the same times.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../record.h"
#include "tmem.h"

#define NS 1000000000ull

/* a line of the trace that is written */
struct line {
	enum step_kind kind;
	uint32_t cta;
	uint64_t after;
	uint32_t argument; /* launch: SM */
	uint64_t launch;
	uint32_t group, cluster, rank;
	bool dropped; /* the call failed */
};

struct allocated {
	uint32_t address;
	bool live;
};

/* a CTA whose launch is in the text */
struct known {
	uint64_t id; /* 0 if the CTA has exited */
	uint64_t since; /* end of the previous step */
	uint32_t pending; /* line of an alloc that has not ended, or NONE */
	struct allocated *allocs;
	uint32_t nr_allocs;
};

struct recorder {
	const char *device; /* NULL: the device of the first event */
	char name[16]; /* of the device of the first event */
	uint64_t context; /* 0: the first context in the text */
	uint64_t begin, now, cause;
	bool has_begun;
	struct known *known;
	uint32_t nr_known;
	struct line *lines;
	uint32_t nr_lines;
	uint32_t sms, dropped, unknown;
	unsigned long number; /* line of the text */
};

/* Return VALUE of NAME=VALUE in the text of an event. */
static uint64_t value(const struct recorder *r, const char *text,
		      const char *name)
{
	size_t length = strlen(name);
	const char *at;

	for (at = text; (at = strstr(at, name)); at += length)
		if (at[length] == '=' && (at == text || at[-1] == ' '))
			return strtoull(at + length + 1, NULL, 0);
	die("line %lu: an event without %s", r->number, name);
}

/* Return the time `SECONDS.FRACTION:` before the event's name, in ns. */
static uint64_t time_before(const struct recorder *r, const char *line,
			    const char *name)
{
	uint64_t seconds, fraction = 0, unit = NS;
	const char *at = name;
	char *dot;

	while (at > line && (at[-1] == ' ' || at[-1] == ':'))
		at--;
	while (at > line && at[-1] != ' ')
		at--;
	seconds = strtoull(at, &dot, 10);
	if (dot == at || *dot != '.')
		die("line %lu: no time in seconds: choose another trace_clock",
		    r->number);
	for (dot++; *dot >= '0' && *dot <= '9' && unit > 1; dot++) {
		fraction = 10 * fraction + (*dot - '0');
		unit /= 10;
	}
	return seconds * NS + fraction * unit;
}

static struct line *add_line(struct recorder *r, enum step_kind kind,
			     uint32_t cta)
{
	uint32_t i = r->nr_lines++;
	struct line *l;

	if (!(i & (i - 1)))
		r->lines = resize(r->lines, i ? 2 * i : 1, sizeof(*l));
	l = &r->lines[i];
	*l = (struct line){ .kind = kind, .cta = cta };
	l->after =
		r->now - (kind == STEP_LAUNCH ? r->begin : r->known[cta].since);
	return l;
}

/* Return the index of a CTA, or NONE if its launch is not in the text. */
static uint32_t find_known(struct recorder *r, uint64_t id)
{
	uint32_t i;

	for (i = r->nr_known; i-- > 0;)
		if (r->known[i].id == id)
			return i;
	r->unknown++;
	return NONE;
}

static void add_known(struct recorder *r, uint64_t id, const char *text)
{
	uint32_t i = r->nr_known++;
	struct line *l;

	if (r->nr_known > CTAS_MAX)
		die("line %lu: more CTAs than a trace can have", r->number);

	if (!(i & (i - 1)))
		r->known = resize(r->known, i ? 2 * i : 1, sizeof(*r->known));
	r->known[i] =
		(struct known){ .id = id, .pending = NONE, .since = r->now };
	l = add_line(r, STEP_LAUNCH, i);
	l->argument = value(r, text, "sm");
	l->launch = value(r, text, "launch");
	l->group = value(r, text, "cta_group");
	l->cluster = value(r, text, "cluster");
	l->rank = value(r, text, "rank");
	if (l->argument >= r->sms)
		r->sms = l->argument + 1;
}

static void add_step(struct recorder *r, enum step_kind kind, uint32_t cta,
		     uint32_t argument)
{
	add_line(r, kind, cta)->argument = argument;
	r->known[cta].since = r->now;
}

/*
 * A request while the CTA has an alloc in progress adds no line: it is the same alloc,
 * restarted after a signal, or a call that is refused (EBUSY).
 */
static void on_request(struct recorder *r, uint32_t cta, uint32_t columns)
{
	struct known *k = &r->known[cta];

	if (k->pending != NONE)
		return;
	k->pending = r->nr_lines;
	add_line(r, STEP_ALLOC, cta)->argument = columns;
}

static void on_grant(struct recorder *r, uint32_t cta, uint32_t address)
{
	struct known *k = &r->known[cta];
	uint32_t i = k->nr_allocs;

	if (k->pending == NONE)
		die("line %lu: a grant without a request", r->number);
	k->pending = NONE;
	k->since = r->cause;
	if (!(i & (i - 1)))
		k->allocs =
			resize(k->allocs, i ? 2 * i : 1, sizeof(*k->allocs));
	k->allocs[k->nr_allocs++] = (struct allocated){ address, true };
}

/*
 * Handle the failure of an alloc or a dealloc. A CTA makes one call at a time. A refused
 * call does not change the call in progress; any other failure ends it. A dealloc has no
 * line yet, since its event is in the text only after a success.
 */
static void on_failure(struct recorder *r, uint32_t cta, bool refused)
{
	struct known *k = &r->known[cta];

	r->dropped++;
	if (refused || k->pending == NONE)
		return;
	r->lines[k->pending].dropped = true;
	k->pending = NONE;
}

static void on_fail(struct recorder *r, uint32_t cta, const char *text)
{
	on_failure(r, cta, (int)value(r, text, "error") == -EBUSY);
}

static void on_dealloc(struct recorder *r, uint32_t cta, uint32_t address)
{
	struct known *k = &r->known[cta];
	uint32_t i;

	for (i = 0; i < k->nr_allocs; i++)
		if (k->allocs[i].live && k->allocs[i].address == address)
			break;
	if (i == k->nr_allocs)
		die("line %lu: a dealloc of what was not granted", r->number);
	k->allocs[i].live = false;
	add_step(r, STEP_DEALLOC, cta, i);
}

static void on_exit_of(struct recorder *r, uint32_t cta)
{
	struct known *k = &r->known[cta];

	if (k->pending != NONE)
		on_failure(r, cta, false);
	add_step(r, STEP_EXIT, cta, 0);
	free(k->allocs);
	*k = (struct known){ .pending = NONE };
}

/* Contexts of two devices may have the same number. */
static bool is_of_context(struct recorder *r, const char *text)
{
	uint64_t context = value(r, text, "context");
	char name[16];
	int end;

	/* texts of early versions have no name */
	if (sscanf(text, " %15[a-z0-9]%n", name, &end) != 1 || text[end] != ' ')
		*name = '\0';
	if (r->context && context != r->context)
		return false;
	if (!r->device) {
		memcpy(r->name, name, sizeof(name));
		r->device = r->name;
	}
	if (*name && strcmp(name, r->device) != 0)
		return false;
	r->context = context;
	return true;
}

static bool is_event(const char *name, const char *event)
{
	size_t length = strlen(event);

	return !strncmp(name, event, length) && name[length] == ':';
}

/* @name: name of the event, after accmem_tmem_ */
static void on_event(struct recorder *r, const char *name, const char *text)
{
	uint32_t cta;
	uint64_t id;

	/* The context has ended. The exits of its CTAs follow. */
	if (is_event(name, "reset"))
		return;
	id = value(r, text, "cta");
	if (is_event(name, "launch")) {
		add_known(r, id, text);
		r->cause = r->now;
		return;
	}
	cta = find_known(r, id);
	if (cta == NONE)
		return;
	if (is_event(name, "grant")) {
		on_grant(r, cta, value(r, text, "address"));
		return;
	}
	if (is_event(name, "request"))
		on_request(r, cta, value(r, text, "columns"));
	else if (is_event(name, "dealloc"))
		on_dealloc(r, cta, value(r, text, "address"));
	else if (is_event(name, "relinquish"))
		add_step(r, STEP_RELINQUISH, cta, 0);
	else if (is_event(name, "exit"))
		on_exit_of(r, cta);
	else if (is_event(name, "timeout"))
		on_failure(r, cta, false);
	else if (is_event(name, "fail"))
		on_fail(r, cta, text);
	else
		return; /* the event is caused by another event */
	r->cause = r->now;
}

/* Return where @text is in @line for the last time, or NULL. */
static const char *last_in(const char *line, const char *text)
{
	const char *at = strstr(line, text), *last = NULL;

	for (; at; at = strstr(at + 1, text))
		last = at;
	return last;
}

static void on_line(struct recorder *r, const char *line)
{
	static const char prefix[] = " accmem_tmem_";
	const char *name, *text;
	uint64_t now;

	/* The name of a process, which comes first, may look like an event. */
	name = last_in(line, prefix);
	if (!strncmp(line, "CPU:", 4) &&
	    (strstr(line, "[LOST ") || strstr(line, "EVENTS DROPPED")))
		die("line %lu: events were lost: make buffer_size_kb larger",
		    r->number);
	text = name ? strchr(name, ':') : NULL;
	if (!text || *line == '#' || !is_of_context(r, text + 1))
		return;
	now = time_before(r, line, name + 1);
	if (!r->has_begun)
		r->begin = now;
	r->has_begun = true;
	/* clocks of processors may differ by a little */
	if (now > r->now)
		r->now = now;
	on_event(r, name + sizeof(prefix) - 1, text + 1);
}

static void write_line(const struct line *l, FILE *out)
{
	fprintf(out, "%s %u %" PRIu64, step_names[l->kind], l->cta, l->after);
	switch (l->kind) {
	case STEP_LAUNCH:
		fprintf(out, " %u %#" PRIx64 " %u %u %u", l->argument,
			l->launch, l->group, l->cluster, l->rank);
		break;
	case STEP_ALLOC:
	case STEP_DEALLOC:
		fprintf(out, " %u", l->argument);
		break;
	default:
		break;
	}
	fputc('\n', out);
}

void tmem_record(FILE *in, FILE *out, const char *device, uint64_t context,
		 uint32_t columns)
{
	struct recorder r = { .device = device, .context = context };
	char *line = NULL;
	size_t room = 0;
	uint32_t i;

	while (getline(&line, &room, in) > 0) {
		r.number++;
		on_line(&r, line);
	}
	if (ferror(in))
		die("the events cannot be read: %s", strerror(errno));
	if (!r.nr_known)
		die("no launch of a CTA in what was read");
	/* CTAs that have not exited do so at the end */
	for (i = 0; i < r.nr_known; i++)
		if (r.known[i].id)
			on_exit_of(&r, i);
	fprintf(out,
		"# context %" PRIu64
		"; %u calls that failed, and %u events of CTAs launched before, are left out\n",
		r.context, r.dropped, r.unknown);
	fprintf(out, "sms %u %u 0\n", r.sms, columns);
	for (i = 0; i < r.nr_lines; i++)
		if (!r.lines[i].dropped)
			write_line(&r.lines[i], out);
	free(line);
	free(r.known);
	free(r.lines);
}
