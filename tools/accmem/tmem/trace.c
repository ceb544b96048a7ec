// SPDX-License-Identifier: GPL-2.0
/* Parser of traces (traces/tmem/README.md), and changes of the relinquish lines. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tmem.h"

#define TIME_MAX 1000000000000000ull /* ns of a step: eleven days */
#define FIELDS_MAX 8

const char *const step_names[STEP_KINDS] = {
	[STEP_LAUNCH] = "launch",
	[STEP_ALLOC] = "alloc",
	[STEP_USE] = "use",
	[STEP_DEALLOC] = "dealloc",
	[STEP_RELINQUISH] = "relinquish",
	[STEP_TRIGGER] = "trigger",
	[STEP_EXIT] = "exit",
};

/* Number of fields after the word: the CTA, the time, and fields of the kind */
static const unsigned int nr_fields[STEP_KINDS] = {
	[STEP_LAUNCH] = 7,  [STEP_ALLOC] = 3,	   [STEP_USE] = 3,
	[STEP_DEALLOC] = 3, [STEP_RELINQUISH] = 2, [STEP_TRIGGER] = 2,
	[STEP_EXIT] = 2,
};

struct reader {
	struct tmem_trace *t;
	const char *path;
	unsigned long line;
	uint32_t *ctas; /* index of each name; NONE if the CTA was not launched */
	uint32_t nr_names;
	uint64_t fields[FIELDS_MAX];
	unsigned int nr_fields;
};

static noreturn void bad(const struct reader *r, const char *what)
{
	die("%s:%lu: %s", r->path, r->line, what);
}

/* Parse the words after the first, which are numbers. */
static void read_fields(struct reader *r, char *text)
{
	char *end;

	r->nr_fields = 0;
	for (;;) {
		text += strspn(text, " \t\r\n");
		if (!*text)
			return;
		if (r->nr_fields == FIELDS_MAX)
			bad(r, "too many fields");
		errno = 0;
		r->fields[r->nr_fields++] = strtoull(text, &end, 0);
		if (end == text || errno || *text == '-' ||
		    (*end && !strchr(" \t\r\n", *end)))
			bad(r, "a field that is no number");
		text = end;
	}
}

static uint32_t field(const struct reader *r, unsigned int i, uint64_t max)
{
	if (r->fields[i] > max)
		bad(r, "a number is too large");
	return r->fields[i];
}

static void read_sms(struct reader *r)
{
	struct tmem_trace *t = r->t;

	if (t->sms || r->nr_fields != 3)
		bad(r, "sms comes once, with three numbers");
	t->sms = field(r, 0, SMS_MAX);
	t->columns = field(r, 1, UINT16_MAX);
	t->resident = field(r, 2, UINT16_MAX);
	if (!t->sms || !t->columns)
		bad(r, "no SMs or no columns");
}

static uint32_t find_launch(const struct tmem_trace *t, uint64_t id)
{
	uint32_t i;

	for (i = t->nr_launches; i-- > 0;)
		if (t->launches[i].id == id)
			return i;
	return NONE;
}

static uint32_t add_launch(struct reader *r)
{
	bool is_behind = r->nr_fields == 8;
	struct tmem_trace *t = r->t;
	struct launch *l;
	uint32_t behind = NONE, i;

	if (is_behind) {
		behind = find_launch(t, r->fields[7]);
		if (behind == NONE || r->fields[7] == r->fields[3])
			bad(r, "behind a launch that does not come before it");
	}
	i = find_launch(t, r->fields[3]);
	if (i == NONE) {
		i = t->nr_launches++;
		t->launches = resize(t->launches, t->nr_launches, sizeof(*l));
		t->launches[i] =
			(struct launch){ .id = r->fields[3], .behind = behind };
	}
	l = &t->launches[i];
	if (l->behind != behind)
		bad(r, "the launch is behind another one");
	l->nr_ctas++;
	return i;
}

/* Find the peer: of the earlier CTAs that match, the last one without a peer. */
static uint32_t find_peer(const struct tmem_trace *t, const struct cta *a)
{
	uint32_t i;

	for (i = t->nr_ctas - 1; a->group == 2 && i-- > 0;) {
		const struct cta *b = &t->ctas[i];

		if (b->launch == a->launch && b->cluster == a->cluster &&
		    b->rank == (a->rank ^ 1) && b->group == 2)
			return b->peer == NONE ? i : NONE;
	}
	return NONE;
}

/* Return a pointer to the index of the CTA with this name. */
static uint32_t *index_of(struct reader *r, uint32_t name)
{
	r->ctas = reach(r->ctas, &r->nr_names, name, sizeof(*r->ctas),
			0xff /* NONE */);
	return &r->ctas[name];
}

static uint32_t add_cta(struct reader *r)
{
	uint32_t name = field(r, 0, CTAS_MAX - 1), i = r->t->nr_ctas;
	struct tmem_trace *t = r->t;
	struct cta *a;

	if (*index_of(r, name) != NONE)
		bad(r, "this CTA was launched");
	if (!(i & (i - 1)))
		t->ctas = resize(t->ctas, i ? 2 * i : 1, sizeof(*a));
	*index_of(r, name) = i;
	t->nr_ctas++;
	a = &t->ctas[i];
	*a = (struct cta){
		.name = name,
		.sm = field(r, 2, t->sms - 1),
		.launch = add_launch(r),
		.group = field(r, 4, 2),
		.cluster = field(r, 5, UINT32_MAX),
		.rank = field(r, 6, UINT32_MAX),
		.first = t->nr_steps,
		.last = NONE,
	};
	if (!a->group)
		bad(r, "the group is 1 or 2");
	a->peer = find_peer(t, a);
	if (a->peer != NONE)
		t->ctas[a->peer].peer = i;
	return i;
}

static uint32_t known_cta(struct reader *r)
{
	uint32_t i = *index_of(r, field(r, 0, CTAS_MAX - 1));

	if (i == NONE)
		bad(r, "this CTA was not launched");
	if (r->t->steps[r->t->ctas[i].last].kind == STEP_EXIT)
		bad(r, "this CTA has exited");
	return i;
}

static uint32_t new_step(struct tmem_trace *t, const struct step *step)
{
	uint32_t i = t->nr_steps++;

	if (!(i & (i - 1)))
		t->steps = resize(t->steps, i ? 2 * i : 1, sizeof(*step));
	t->steps[i] = *step;
	return i;
}

static void count_step(const struct reader *r, struct cta *a, struct step *step)
{
	switch (step->kind) {
	case STEP_ALLOC:
		a->nr_allocs++;
		step->argument = field(r, 2, UINT32_MAX);
		break;
	case STEP_USE:
		a->nr_lines_of_use++;
		step->argument = field(r, 2, UINT32_MAX);
		break;
	case STEP_DEALLOC:
		step->argument = field(r, 2, UINT32_MAX);
		if (step->argument >= a->nr_allocs)
			bad(r, "the CTA has not made this alloc");
		break;
	default:
		break;
	}
}

static void read_step(struct reader *r, enum step_kind kind)
{
	struct step step = { .kind = kind, .next = NONE, .line = r->line };
	struct tmem_trace *t = r->t;
	struct cta *a;
	uint32_t i;

	if (!t->sms)
		bad(r, "sms comes first");
	if (r->nr_fields != nr_fields[kind] &&
	    !(kind == STEP_LAUNCH && r->nr_fields == 8))
		bad(r, "too few fields, or too many");
	if (r->fields[1] > TIME_MAX)
		bad(r, "a time is too large");
	step.after = r->fields[1];
	step.cta = kind == STEP_LAUNCH ? add_cta(r) : known_cta(r);
	a = &t->ctas[step.cta];
	count_step(r, a, &step);
	i = new_step(t, &step);
	if (kind != STEP_LAUNCH)
		t->steps[a->last].next = i;
	a->last = i;
}

static void read_line(struct reader *r, char *text)
{
	size_t length = strcspn(text, " \t\r\n");
	enum step_kind kind;

	read_fields(r, text + length);
	if (length == 3 && !strncmp(text, "sms", 3)) {
		read_sms(r);
		return;
	}
	for (kind = 0; kind < STEP_KINDS; kind++)
		if (strlen(step_names[kind]) == length &&
		    !strncmp(text, step_names[kind], length))
			break;
	if (kind == STEP_KINDS)
		bad(r, "an unknown word");
	read_step(r, kind);
}

static void check_ends(const struct reader *r)
{
	const struct tmem_trace *t = r->t;
	uint32_t i;

	if (!t->nr_ctas)
		die("%s: no CTA", r->path);
	for (i = 0; i < t->nr_ctas; i++)
		if (t->steps[t->ctas[i].last].kind != STEP_EXIT)
			die("%s: CTA %u does not exit", r->path,
			    t->ctas[i].name);
}

void tmem_trace_load(struct tmem_trace *t, const char *path)
{
	struct reader r = { .t = t, .path = path };
	char *line = NULL, *text;
	size_t room = 0;
	FILE *file = fopen(path, "r");

	if (!file)
		die("%s: %s", path, strerror(errno));
	memset(t, 0, sizeof(*t));
	t->name = base_name(path);
	while ((text = trace_line(file, &line, &room, &r.line)))
		read_line(&r, text);
	if (ferror(file))
		bad(&r, "cannot be read");
	fclose(file);
	free(line);
	free(r.ctas);
	check_ends(&r);
}

void tmem_trace_unload(struct tmem_trace *t)
{
	free(t->name);
	free(t->steps);
	free(t->ctas);
	free(t->launches);
}

/* Remove the relinquish of a CTA. Its later steps keep their times. */
static void remove_relinquish(struct tmem_trace *t, uint32_t cta)
{
	uint32_t i = t->ctas[cta].first, next;

	while ((next = t->steps[i].next) != NONE) {
		if (t->steps[next].kind != STEP_RELINQUISH) {
			i = next;
			continue;
		}
		t->steps[t->steps[next].next].after += t->steps[next].after;
		t->steps[i].next = t->steps[next].next;
	}
}

static void relinquish_after_last_alloc(struct tmem_trace *t, uint32_t cta)
{
	struct step step = { .kind = STEP_RELINQUISH, .cta = cta };
	uint32_t i, last = NONE;

	for (i = t->ctas[cta].first; i != NONE; i = t->steps[i].next)
		if (t->steps[i].kind == STEP_ALLOC)
			last = i;
	if (last == NONE)
		return;
	step.line = t->steps[last].line;
	step.next = t->steps[last].next;
	i = new_step(t, &step);
	t->steps[last].next = i;
}

void tmem_trace_relinquish(struct tmem_trace *t, enum relinquish when)
{
	uint32_t i;

	for (i = 0; i < t->nr_ctas && when != RELINQUISH_TRACE; i++) {
		remove_relinquish(t, i);
		if (when == RELINQUISH_EARLY)
			relinquish_after_last_alloc(t, i);
	}
}
