// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: look for faults of devices that are in use.
 *
 * The files are read until each finding is confirmed and each device had a quiet reading, for
 * a few seconds at most. What is not confirmed then is not reported.
 */
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#define READINGS 3 /* that have to agree */
/* The driver looks for unpinned memory each second. */
#define LASTING_NS 1500000000ull
#define MOST_NS 4000000000ull
#define PAUSE_US 7000

static const char usage[] =
	"usage: accmem check [--json] [DEVICE]\n"
	"       accmem check --report [DEVICE]\n"
	"Look for faults: numbers that do not agree, memory that stays pinned or pending,\n"
	"requests that wait in vain, wrong permissions, warnings of the kernel (root). The exit\n"
	"status is 1 if there is a finding.\n"
	"  --report  also print versions, parameters and all files, for a bug report\n";

/* What the readings have in common so far. */
struct check {
	const char *only; /* the device, or NULL */
	struct findings candidates;
	bool was_quiet[DEVICES]; /* a reading of the device was quiet */
	bool all_were_quiet; /* in one reading */
	bool log_read;
	unsigned int readings;
	uint64_t begin; /* end of the first reading */
};

void finding_add(struct findings *f, enum finding_basis basis,
		 const char *check, const char *object, const char *fmt, ...)
{
	struct finding *finding;
	va_list list;

	f->list = grow(f->list, f->nr, sizeof(*f->list));
	finding = &f->list[f->nr++];
	finding->basis = basis;
	finding->check = check;
	finding->object = format("%s", object);
	va_start(list, fmt);
	finding->text = vformat(fmt, list);
	va_end(list);
}

static void finding_free(struct finding *finding)
{
	free(finding->object);
	free(finding->text);
}

static void findings_free(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->nr; i++)
		finding_free(&f->list[i]);
	free(f->list);
	*f = (struct findings){ 0 };
}

static void find(struct check *c, const struct reading *r, struct findings *f)
{
	size_t i;

	for (i = 0; i < r->s.nr_devices; i++) {
		const struct device *d = &r->s.devices[i];

		if (c->only && strcmp(c->only, d->name))
			continue;
		check_node(f, d);
		check_memories(f, r, d);
		check_waiters(f, d);
		check_contexts(f, r, d);
		check_buffers(f, r, d);
		check_tmem(f, d);
	}
	check_users(f, r);
	check_module(f);
	c->log_read = check_log(f);
}

static bool is_same(const struct finding *a, const struct finding *b)
{
	return !strcmp(a->check, b->check) && !strcmp(a->object, b->object) &&
	       (a->basis == ONE_MOMENT || !strcmp(a->text, b->text));
}

/* Could the reading have confirmed the finding? */
static bool is_judged(const struct reading *r, const struct finding *finding)
{
	if (finding->basis != QUIET)
		return true;
	return strncmp(finding->object, "accmem", 6) ?
		       r->all_quiet :
		       is_quiet(r, finding->object);
}

/* Take a finding of the new reading out of the list. */
static bool take_same(struct findings *f, const struct finding *wanted)
{
	size_t i;

	for (i = 0; i < f->nr; i++) {
		if (!is_same(&f->list[i], wanted))
			continue;
		finding_free(&f->list[i]);
		f->list[i] = f->list[--f->nr];
		return true;
	}
	return false;
}

/* Confirm the candidates that the reading has, drop those that it denies, add new ones. */
static void merge(struct check *c, const struct reading *r, struct findings *f)
{
	struct findings kept = { 0 };
	struct finding finding;
	size_t i;

	for (i = 0; i < c->candidates.nr + f->nr; i++)
		kept.list = grow(kept.list, i, sizeof(*kept.list));
	for (i = 0; i < c->candidates.nr; i++) {
		finding = c->candidates.list[i];
		if (take_same(f, &finding)) {
			finding.readings++;
		} else if (is_judged(r, &finding)) {
			finding_free(&finding);
			continue;
		}
		kept.list[kept.nr++] = finding;
	}
	for (i = 0; i < f->nr; i++) {
		finding = f->list[i];
		finding.readings = 1;
		finding.since = now_ns();
		kept.list[kept.nr++] = finding;
	}
	free(c->candidates.list);
	free(f->list);
	c->candidates = kept;
}

static bool is_confirmed(const struct finding *finding)
{
	return finding->readings >= READINGS &&
	       (finding->basis != LASTING ||
		now_ns() - finding->since >= LASTING_NS);
}

static bool is_done(struct check *c, const struct reading *r)
{
	bool done = !r->s.all || c->all_were_quiet;
	size_t i;

	for (i = 0; i < c->candidates.nr; i++)
		done &= is_confirmed(&c->candidates.list[i]);
	return done ||
	       (c->readings >= READINGS && now_ns() - c->begin > MOST_NS);
}

/* Read until all is known. The last reading stays. */
static void read_all(struct check *c, struct reading *r)
{
	struct findings f;
	unsigned int i;

	for (;;) {
		f = (struct findings){ 0 };
		reading_take(r);
		c->readings++;
		find(c, r, &f);
		merge(c, r, &f);
		if (c->readings == 1)
			c->begin = now_ns();
		for (i = 0; i < DEVICES; i++)
			c->was_quiet[i] |= r->quiet[i];
		c->all_were_quiet |= r->all_quiet;
		if (is_done(c, r))
			break;
		reading_free(r);
		usleep(PAUSE_US);
	}
}

/* Drop what is not confirmed. */
static void drop_candidates(struct findings *f)
{
	size_t i, kept = 0;

	for (i = 0; i < f->nr; i++) {
		if (is_confirmed(&f->list[i]))
			f->list[kept++] = f->list[i];
		else
			finding_free(&f->list[i]);
	}
	f->nr = kept;
}

static void add_note(struct json_object *notes, const char *text)
{
	json_object_array_add(notes, json_object_new_string(text));
}

/* Return the array of texts that say what was not checked. */
static struct json_object *not_checked(const struct check *c,
				       const struct reading *r)
{
	struct json_object *notes = json_object_new_array();
	char text[128];
	size_t i;

	if (!r->s.all) {
		snprintf(text, sizeof(text), "memory and contexts: %s",
			 why_hidden());
		add_note(notes, text);
	}
	for (i = 0; i < r->s.nr_devices && r->s.all; i++) {
		const char *name = r->s.devices[i].name;
		unsigned int number = number_of(name);

		if ((c->only && strcmp(c->only, name)) ||
		    (number < DEVICES && c->was_quiet[number]))
			continue;
		snprintf(text, sizeof(text),
			 "%s: sums: they changed during each reading", name);
		add_note(notes, text);
	}
	if (r->s.all && !c->all_were_quiet)
		add_note(notes,
			 "sums of users: they changed during each reading");
	if (!c->log_read)
		add_note(notes, "the log of the kernel cannot be read");
	return notes;
}

static void print_json(const struct check *c, struct json_object *unchecked)
{
	struct json_object *o = json_object_new_object();
	struct json_object *array = json_object_new_array(), *finding;
	size_t i;

	for (i = 0; i < c->candidates.nr; i++) {
		const struct finding *f = &c->candidates.list[i];

		finding = json_object_new_object();
		json_add_text(finding, "check", f->check);
		json_add_text(finding, "object", f->object);
		json_add_text(finding, "text", f->text);
		json_object_array_add(array, finding);
	}
	json_add_number(o, "schema", 1);
	json_object_object_add(o, "findings", array);
	json_object_object_add(o, "not_checked", json_object_get(unchecked));
	json_print(o);
}

static void print_text(const struct check *c, struct json_object *unchecked,
		       FILE *notes)
{
	struct json_object *note;
	size_t i;

	for (i = 0; i < c->candidates.nr; i++) {
		const struct finding *f = &c->candidates.list[i];

		printf("%s: %s: %s\n", f->object, f->check, f->text);
	}
	for (i = 0; i < json_object_array_length(unchecked); i++) {
		note = json_object_array_get_idx(unchecked, i);
		fprintf(notes, "not checked: %s\n",
			json_object_get_string(note));
	}
}

static int check(const char *only, const struct options *o)
{
	struct check c = { .only = only };
	struct json_object *unchecked;
	struct reading r;
	int status;

	read_all(&c, &r);
	drop_candidates(&c.candidates);
	unchecked = not_checked(&c, &r);
	status = c.candidates.nr ? STATUS_FAILED : STATUS_OK;
	if (!r.s.nr_devices)
		status = no_devices();
	else if (only && !snapshot_device(&r.s, only))
		status = no_device(only);
	else if (o->json)
		print_json(&c, unchecked);
	else
		print_text(&c, unchecked, o->report ? stdout : stderr);
	if (o->report && status != STATUS_NO_DEVICE)
		report_print(&r.s, only);
	json_object_put(unchecked);
	findings_free(&c.candidates);
	reading_free(&r);
	return status;
}

int command_check(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jr", usage);

	if (status >= 0)
		return status;
	if (optind < argc - 1 || (o.json && o.report)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	return check(argv[optind], &o);
}
