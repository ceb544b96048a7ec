// SPDX-License-Identifier: GPL-2.0
/*
 * A snapshot in JSON. accmem.schema.json describes the output. A member is absent if the
 * caller may not read its value. Sizes are in bytes.
 */
#include <json-c/json.h>
#include <stdio.h>

#include "accmem.h"
#include "tmem.h"

void json_add_text(struct json_object *o, const char *name, const char *text)
{
	json_object_object_add(o, name, json_object_new_string(text));
}

void json_add_number(struct json_object *o, const char *name, uint64_t number)
{
	if (number != UNKNOWN)
		json_object_object_add(o, name, json_object_new_uint64(number));
}

void json_add_bool(struct json_object *o, const char *name, bool value)
{
	json_object_object_add(o, name, json_object_new_boolean(value));
}

static void add_values(struct json_object *o, const uint64_t value[NR_VALUES])
{
	enum value v;

	for (v = 0; v < NR_VALUES; v++)
		json_add_number(o, value_names[v], value[v]);
}

static struct json_object *of_memories(const struct device *d)
{
	struct json_object *array = json_object_new_array(), *o;
	size_t i;

	for (i = 0; i < d->nr_memories; i++) {
		const struct memory *m = &d->memories[i];

		o = json_object_new_object();
		json_add_text(o, "name", m->name);
		json_add_text(o, "bandwidth", m->bandwidth);
		json_object_object_add(o, "numa_node",
				       json_object_new_int(m->numa_node));
		add_values(o, m->value);
		json_object_array_add(array, o);
	}
	return array;
}

static struct json_object *of_waiters(const struct device *d)
{
	struct json_object *array = json_object_new_array(), *o;
	size_t i;

	for (i = 0; i < d->nr_waiters; i++) {
		const struct waiter *w = &d->waiters[i];

		o = json_object_new_object();
		json_add_number(o, "context", w->context);
		json_add_number(o, "uid", w->uid);
		json_add_number(o, "bytes", w->bytes);
		json_add_text(o, "state", w->state);
		json_add_number(o, "bypassed", w->bypassed);
		json_add_number(o, "milliseconds", w->ms);
		json_object_array_add(array, o);
	}
	return array;
}

struct json_object *json_of_devices(const struct snapshot *s)
{
	struct json_object *array = json_object_new_array(), *o;
	size_t i;

	for (i = 0; i < s->nr_devices; i++) {
		const struct device *d = &s->devices[i];

		o = json_object_new_object();
		json_add_text(o, "name", d->name);
		json_add_text(o, "parent", d->parent);
		json_add_text(o, "driver", d->driver);
		json_add_number(o, "contexts", d->contexts);
		add_values(o, d->value);
		json_object_object_add(o, "memories", of_memories(d));
		if (d->nr_waiting != UNKNOWN) {
			json_add_number(o, "waiting", d->nr_waiting);
			json_object_object_add(o, "waiters", of_waiters(d));
		}
		json_object_array_add(array, o);
	}
	return array;
}

static struct json_object *of_context(const struct context *c)
{
	/* the lines of fdinfo, with the names of members */
	static const char *const names[NR_USES] = {
		[USE_BUFFERS] = "buffers",
		[USE_LIVE] = "live_bytes",
		[USE_HOST] = "host_bytes",
		[USE_PENDING] = "pending_bytes",
		[USE_OVERDUE] = "overdue_bytes",
		[USE_WAITING] = "waiting",
		[USE_CHARGED] = "charged_bytes",
	};
	struct json_object *o = json_object_new_object();
	struct json_object *pids = json_object_new_array();
	enum use u;
	size_t i;

	json_add_text(o, "device", c->device);
	json_add_number(o, "context", c->id);
	json_add_number(o, "uid", c->uid);
	json_add_text(o, "command", c->comm);
	json_add_bool(o, "open", c->open);
	for (i = 0; i < c->nr_pids; i++)
		json_object_array_add(pids, json_object_new_int(c->pids[i]));
	json_object_object_add(o, "pids", pids);
	for (u = 0; u < NR_USES; u++)
		json_add_number(o, names[u], c->use[u]);
	return o;
}

static struct json_object *of_contexts(const struct snapshot *s)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < s->nr_contexts; i++)
		json_object_array_add(array, of_context(&s->contexts[i]));
	return array;
}

static struct json_object *of_buffer(const struct buffer *b)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "device", b->device);
	json_add_number(o, "context", b->context);
	json_add_number(o, "address", b->address);
	json_add_number(o, "length", b->length);
	json_add_number(o, "footprint", b->footprint);
	json_add_number(o, "runs", b->runs);
	json_add_number(o, "cache_mode", b->cache_mode);
	if (!b->host)
		json_add_number(o, "carveout", b->carveout);
	json_add_bool(o, "host", b->host);
	json_add_bool(o, "mapped", b->mapped);
	return o;
}

struct json_object *json_of_found(const struct context **contexts,
				  size_t nr_contexts,
				  const struct buffer *buffers,
				  size_t nr_buffers)
{
	struct json_object *o = json_object_new_object();
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < nr_contexts; i++)
		json_object_array_add(array, of_context(contexts[i]));
	json_object_object_add(o, "contexts", array);
	array = json_object_new_array();
	for (i = 0; i < nr_buffers; i++)
		json_object_array_add(array, of_buffer(&buffers[i]));
	json_object_object_add(o, "buffers", array);
	return o;
}

static struct json_object *of_users(const struct snapshot *s)
{
	static const char *const names[NR_CHARGES] = {
		[CHARGE_CONTEXTS] = "contexts",
		[CHARGE_BUFFERS] = "buffers",
		[CHARGE_BYTES] = "charged_bytes",
		[CHARGE_PENDING] = "pending",
		[CHARGE_FENCES] = "fences",
		[CHARGE_WAITS] = "waits",
		[CHARGE_RESIDENT] = "resident_bytes",
		[CHARGE_EXPORTS] = "exports",
	};
	struct json_object *array = json_object_new_array(), *o;
	enum charge c;
	size_t i;

	for (i = 0; i < s->nr_users; i++) {
		o = json_object_new_object();
		json_add_number(o, "uid", s->users[i].uid);
		for (c = 0; c < NR_CHARGES; c++)
			json_add_number(o, names[c], s->users[i].charge[c]);
		json_object_array_add(array, o);
	}
	return array;
}

/* Add a number that may equal UNKNOWN. */
static void add_any_number(struct json_object *o, const char *name,
			   uint64_t number)
{
	json_object_object_add(o, name, json_object_new_uint64(number));
}

struct json_object *json_of_limits(const struct snapshot *s)
{
	struct json_object *o = json_object_new_object();
	size_t i;

	for (i = 0; i < NR_LIMITS; i++) {
		if (limit_is_known(i, s->limits[i]))
			add_any_number(o, limit_names[i], s->limits[i]);
	}
	return o;
}

struct json_object *json_of_snapshot(const struct snapshot *s)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "schema", 1);
	json_add_bool(o, "complete", s->all);
	json_object_object_add(o, "devices", json_of_devices(s));
	json_object_object_add(o, "contexts", of_contexts(s));
	json_object_object_add(o, "users", of_users(s));
	json_object_object_add(o, "limits", json_of_limits(s));
	return o;
}

static struct json_object *of_cta(const struct tmem_cta *cta)
{
	struct json_object *o = json_object_new_object();

	json_add_number(o, "cta", cta->id);
	/* any number, since the program chooses it */
	add_any_number(o, "launch", cta->launch);
	json_add_number(o, "cluster", cta->cluster);
	json_add_number(o, "rank", cta->rank);
	json_add_number(o, "columns", cta->columns);
	if (cta->waits) {
		json_add_number(o, "bypassed", cta->bypassed);
		json_add_number(o, "microseconds", cta->us);
	} else {
		json_add_bool(o, "permit", cta->permit);
	}
	return o;
}

static struct json_object *of_sm(const struct tmem_sm *sm)
{
	struct json_object *o = json_object_new_object(), *cta;
	struct json_object *holders = json_object_new_array();
	struct json_object *queue = json_object_new_array();
	char letter[2] = "";
	size_t i;

	json_add_number(o, "sm", sm->number);
	if (sm->units) {
		json_add_number(o, "columns", sm->columns);
		json_add_number(o, "free", sm->free);
		json_add_text(o, "units", sm->units);
	}
	for (i = 0; i < sm->nr_ctas; i++) {
		cta = of_cta(&sm->ctas[i]);
		*letter = sm->ctas[i].letter;
		if (!sm->ctas[i].waits)
			json_add_text(cta, "letter", letter);
		json_object_array_add(sm->ctas[i].waits ? queue : holders, cta);
	}
	json_object_object_add(o, "holders", holders);
	if (sm->units)
		json_object_object_add(o, "queue", queue);
	else
		json_object_put(queue);
	return o;
}

static struct json_object *of_tmem(const struct snapshot *s,
				   const struct tmem *t)
{
	const struct context *c = snapshot_context(s, t->device, t->context);
	struct json_object *o = c ? of_context(c) : json_object_new_object();
	struct json_object *sms = json_object_new_array();
	size_t i;

	json_add_text(o, "device", t->device);
	json_add_number(o, "context", t->context);
	if (t->known) {
		json_add_text(o, "discipline",
			      t->exclusive ? "exclusive" : "shared");
		json_add_number(o, "bypass_bound", t->bound);
		json_add_bool(o, "strict", t->strict);
	}
	for (i = 0; i < t->nr_sms; i++)
		json_object_array_add(sms, of_sm(&t->sms[i]));
	json_object_object_add(o, "sms", sms);
	return o;
}

struct json_object *json_of_tmem(const struct snapshot *s,
				 const struct tmem *list, size_t nr)
{
	struct json_object *o = json_object_new_object();
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < nr; i++)
		json_object_array_add(array, of_tmem(s, &list[i]));
	json_add_number(o, "schema", 1);
	json_object_object_add(o, "contexts", array);
	return o;
}

/* Print an object in one line, and free it. */
void json_write(FILE *f, struct json_object *object)
{
	fputs(json_object_to_json_string_ext(object,
					     JSON_C_TO_STRING_NOSLASHESCAPE),
	      f);
	fputc('\n', f);
}

void json_print(struct json_object *object)
{
	json_write(stdout, object);
	json_object_put(object);
}
