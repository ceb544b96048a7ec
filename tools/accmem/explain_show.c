// SPDX-License-Identifier: GPL-2.0
/*
 * accmem explain: the verdict in words and in JSON.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "explain.h"

const char *const reason_names[NR_REASONS] = {
	[NO_REASON] = "none",
	[REASON_INVALID] = "invalid",
	[REASON_UNSUPPORTED] = "unsupported",
	[REASON_ACCESS] = "access",
	[REASON_CONTEXTS] = "contexts",
	[REASON_REVOKED] = "device",
	[REASON_USER_BYTES] = "user_bytes",
	[REASON_CONTEXT_BYTES] = "context_bytes",
	[REASON_BUFFERS] = "buffers",
	[REASON_CAPACITY] = "capacity",
	[REASON_RESERVED] = "reserved",
	[REASON_FREE] = "free_bytes",
	[REASON_RUN] = "largest_run",
	[REASON_ALIGNMENT] = "alignment",
	[REASON_RESIDENT] = "resident_bytes",
	[REASON_USER_RESIDENT] = "user_resident_bytes",
	[REASON_HOST_FREE] = "host_bytes",
	[REASON_HOST_RAM] = "host_ram",
	[REASON_QUEUE] = "queue",
	[REASON_WAITS] = "waits",
};

static const char *const reason_texts[NR_REASONS] = {
	[REASON_INVALID] =
		"the flags, the size, the alignment or the carveout is invalid",
	[REASON_UNSUPPORTED] =
		"the device does not support the kind, the cache mode or the page size",
	[REASON_ACCESS] = "the user may not open the device",
	[REASON_CONTEXTS] =
		"the user has as many open files as max_contexts_per_user allows",
	[REASON_REVOKED] = "the device cannot be used",
	[REASON_USER_BYTES] =
		"the user would be charged for more than max_bytes_per_user",
	[REASON_CONTEXT_BYTES] =
		"the request is larger than max_bytes_per_context",
	[REASON_BUFFERS] =
		"the user has as many buffers as max_buffers_per_user allows",
	[REASON_CAPACITY] = "the request is larger than the memory",
	[REASON_RESERVED] =
		"the memory that becomes free is reserved for a request that waits",
	[REASON_FREE] = "less memory is free than the request needs",
	[REASON_RUN] =
		"the free memory is in runs that are all shorter than the request",
	[REASON_ALIGNMENT] =
		"no free run is long enough from an aligned offset on",
	[REASON_RESIDENT] =
		"the devices would use more of the host's memory than max_resident_bytes",
	[REASON_USER_RESIDENT] =
		"the user would use more of the host's memory than max_resident_bytes_per_user",
	[REASON_HOST_FREE] = "less host memory is free than the request needs",
	[REASON_HOST_RAM] =
		"the host has less memory available than the request needs",
	[REASON_QUEUE] = "other requests wait already",
	[REASON_WAITS] = "256 requests of the user wait already",
};

const char *const verdict_names[NR_VERDICTS] = {
	[SUCCEEDS] = "succeeds",
	[FAILS] = "fails",
	[WAITS] = "waits",
	[CANNOT_TELL] = "unknown",
};

/* Memory that is not free, but could become free, with what has to happen */
static const struct {
	enum run_state state;
	const char *how;
} recoverable[] = {
	{ RUN_LIVE, "frees its buffers" },
	{ RUN_DETACHED, "removes its mappings, exports and calls" },
	{ RUN_PENDING, "lets its streams or fences go on" },
	{ RUN_QUARANTINED, "drops its pins, or lets its streams go on" },
};

#define HOLDERS 3 /* that are named in each state */

/* Lines of text, each to be freed */
struct lines {
	char **line;
	size_t nr;
};

static void __attribute__((format(printf, 2, 3)))
add_line(struct lines *l, const char *fmt, ...)
{
	va_list list;

	l->line = grow(l->line, l->nr, sizeof(*l->line));
	va_start(list, fmt);
	l->line[l->nr++] = vformat(fmt, list);
	va_end(list);
}

static void free_lines(struct lines *l)
{
	while (l->nr)
		free(l->line[--l->nr]);
	free(l->line);
}

/* "context 5 (pid 77 python, user bob)", to be freed */
static char *holder_text(const struct explanation *e, uint64_t context,
			 uint64_t uid)
{
	const struct context *c =
		snapshot_context(e->s, e->device->name, context);
	char user[33], pids[32];

	if (!c)
		return format("context %llu, user %s",
			      (unsigned long long)context,
			      user_text(uid, user));
	return format("context %llu (pid %s %s, user %s)",
		      (unsigned long long)context, pids_text(c, pids), c->comm,
		      user_text(uid, user));
}

static bool wants_room(const struct explanation *e)
{
	return e->reason == REASON_FREE || e->reason == REASON_RUN ||
	       e->reason == REASON_ALIGNMENT || e->reason == REASON_RESERVED;
}

struct in_state {
	enum run_state state;
	unsigned int carveout;
};

static bool is_in_state(const struct run *r, const void *arg)
{
	const struct in_state *wanted = arg;

	return r->state == wanted->state && r->carveout == wanted->carveout;
}

static void add_holders(const struct explanation *e, struct lines *hints)
{
	struct in_state wanted = { .carveout = e->place - e->places };
	struct owner *owners;
	char bytes[16], *who;
	size_t i, j, nr;

	for (i = 0; i < sizeof(recoverable) / sizeof(*recoverable); i++) {
		wanted.state = recoverable[i].state;
		owners = owners_of(e->runs, e->nr_runs, is_in_state, &wanted,
				   &nr);
		for (j = 0; j < nr && j < HOLDERS; j++) {
			who = holder_text(e, owners[j].context, owners[j].uid);
			add_line(hints, "%s %s become free when %s %s",
				 size_text(owners[j].bytes, bytes),
				 run_names[wanted.state], who,
				 recoverable[i].how);
			free(who);
		}
		free(owners);
	}
}

static void add_room_hints(const struct explanation *e, struct lines *hints)
{
	const struct accmem_info *info = &e->place->info;
	unsigned int flags = e->req->alloc.flags;
	uint64_t most = e->place->one_run ? info->largest_run :
					    info->free_bytes;
	char bytes[16];

	if (most && e->place->alignment <= info->granule &&
	    most < e->place->footprint)
		add_line(hints, "a request of %s would fit now",
			 size_text(most, bytes));
	if (flags & ACCMEM_ALLOC_CONTIGUOUS &&
	    info->features & ACCMEM_FEATURE_SCATTER &&
	    info->free_bytes >= e->place->footprint)
		add_line(hints, "without CONTIGUOUS the memory suffices");
	if (e->place->alignment > info->granule)
		add_line(hints,
			 "a smaller alignment or page size (NORMAL_ONLY) fits more often");
	if (flags & ACCMEM_ALLOC_CARVEOUT && info->nr_carveouts > 1)
		add_line(hints, "other carveouts are tried without CARVEOUT");
	if (e->reason == REASON_RESERVED && info->free_bytes > e->device->held)
		add_line(hints,
			 "a request of at most %s would not need the reserved memory, for which a request waits",
			 size_text(info->free_bytes - e->device->held, bytes));
	if (!(flags & ACCMEM_ALLOC_WAIT) && e->reason != REASON_RESERVED)
		add_line(hints,
			 "with WAIT the call sleeps until memory is free");
}

/* Return the name of the limit that refuses the request, or NULL. */
static const char *limit_of(enum reason reason)
{
	switch (reason) {
	case REASON_CONTEXTS:
		return "max_contexts_per_user";
	case REASON_USER_BYTES:
		return "max_bytes_per_user";
	case REASON_CONTEXT_BYTES:
		return "max_bytes_per_context";
	case REASON_BUFFERS:
		return "max_buffers_per_user";
	case REASON_RESIDENT:
		return "max_resident_bytes";
	case REASON_USER_RESIDENT:
		return "max_resident_bytes_per_user";
	default:
		return NULL;
	}
}

/* What would help */
static void add_hints(const struct explanation *e, struct lines *hints)
{
	const char *name = limit_of(e->reason);

	if (e->verdict == SUCCEEDS)
		return;
	if (name)
		add_line(hints,
			 "root can raise the limit: accmem limits %s=...",
			 name);
	if (e->reason == REASON_ACCESS)
		add_line(hints,
			 "the group of /dev/%s may open it: ls -l /dev/%s, then usermod -aG",
			 e->device->name, e->device->name);
	if (!e->place || !wants_room(e))
		return;
	add_room_hints(e, hints);
	add_holders(e, hints);
}

/* What the caller may not know */
static void add_unknowns(const struct explanation *e, struct lines *unknown)
{
	bool populated = e->req->alloc.kind != ACCMEM_KIND_DEVICE ||
			 e->req->alloc.flags & ACCMEM_ALLOC_POPULATE;

	if (!e->s->all) {
		add_line(unknown, "who has the memory, and who waits");
		add_line(unknown,
			 "memory of the user's closed files, which is charged as well");
	} else if (!e->has_runs) {
		add_line(unknown, "who has which run");
	}
	if (!e->s->all && populated)
		add_line(unknown, "the use of max_resident_bytes");
	if (populated)
		add_line(unknown, "limits of the program's memory cgroup");
}

static void print_verdict(const struct explanation *e)
{
	static const char *const texts[NR_VERDICTS] = {
		[SUCCEEDS] = "would succeed now",
		[FAILS] = "would fail now",
		[WAITS] = "would wait now",
		[CANNOT_TELL] = "may fail now",
	};
	static const enum color colors[NR_VERDICTS] = {
		[SUCCEEDS] = GREEN,
		[FAILS] = RED,
		[WAITS] = YELLOW,
		[CANNOT_TELL] = YELLOW,
	};
	char *text = request_text(e->req);

	printf("%s on %s ", text, e->device->name);
	output_color(colors[e->verdict]);
	printf("%s", texts[e->verdict]);
	output_color(PLAIN);
	if (e->err)
		printf(": %s", strerrorname_np(e->err));
	putchar('\n');
	if (e->reason)
		printf("%s%s%s\n", e->place ? e->place->name : "",
		       e->place ? ": " : "", reason_texts[e->reason]);
	free(text);
}

static void print_neighbour(const struct explanation *e, const char *where,
			    const struct run *r)
{
	char bytes[16], *who;

	if (!r)
		return;
	if (r->state == RUN_RETIRED) {
		printf("  %s it: %s retired\n", where,
		       size_text(r->size, bytes));
		return;
	}
	who = holder_text(e, r->context, r->uid);
	printf("  %s it: %s %s of %s\n", where, size_text(r->size, bytes),
	       run_names[r->state], who);
	free(who);
}

static void print_place(const struct explanation *e)
{
	const struct place *p = e->place;
	char needed[16], free_bytes[16], largest[16];

	printf("needed: %s%s", size_text(p->footprint, needed),
	       p->one_run ? " in one run" : "");
	if (p->alignment > p->info.granule)
		printf(" at a multiple of %s", size_text(p->alignment, needed));
	printf("; free: %s, largest run: %s\n",
	       size_text(p->info.free_bytes, free_bytes),
	       size_text(p->info.largest_run, largest));
	if (!p->best || !wants_room(e))
		return;
	printf("best hole: %s at %#llx\n", size_text(p->best->size, needed),
	       (unsigned long long)p->best->offset);
	print_neighbour(e, "before", p->best->before);
	print_neighbour(e, "after", p->best->after);
}

static void print_lines(const char *title, const struct lines *l)
{
	size_t i;

	if (l->nr)
		puts(title);
	for (i = 0; i < l->nr; i++)
		printf("  %s\n", l->line[i]);
}

void explain_print(const struct explanation *e)
{
	struct lines hints = { 0 }, unknown = { 0 };

	add_hints(e, &hints);
	add_unknowns(e, &unknown);
	print_verdict(e);
	if (e->place && e->place->footprint)
		print_place(e);
	print_lines("what would help:", &hints);
	print_lines("not known:", &unknown);
	free_lines(&hints);
	free_lines(&unknown);
}

static struct json_object *json_of_lines(const struct lines *l)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < l->nr; i++)
		json_object_array_add(array,
				      json_object_new_string(l->line[i]));
	return array;
}

static void add_run(struct json_object *o, const char *name,
		    const struct run *r)
{
	struct json_object *run;

	if (!r)
		return;
	run = json_object_new_object();
	json_add_number(run, "offset", r->offset);
	json_add_number(run, "size", r->size);
	json_add_text(run, "state", run_names[r->state]);
	if (r->state != RUN_RETIRED) {
		json_add_number(run, "context", r->context);
		json_add_number(run, "uid", r->uid);
	}
	json_object_object_add(o, name, run);
}

static struct json_object *json_of_place(const struct place *p)
{
	struct json_object *o = json_object_new_object(), *hole;

	json_add_text(o, "name", p->name);
	json_add_number(o, "needed", p->footprint);
	json_add_number(o, "charge", p->charge);
	json_add_number(o, "alignment", p->alignment);
	json_add_bool(o, "one_run", p->one_run);
	json_add_number(o, "capacity", p->info.capacity);
	json_add_number(o, "free_bytes", p->info.free_bytes);
	json_add_number(o, "largest_run", p->info.largest_run);
	if (!p->best)
		return o;
	hole = json_object_new_object();
	json_add_number(hole, "offset", p->best->offset);
	json_add_number(hole, "size", p->best->size);
	add_run(hole, "before", p->best->before);
	add_run(hole, "after", p->best->after);
	json_object_object_add(o, "best_hole", hole);
	return o;
}

struct json_object *explain_json(const struct explanation *e)
{
	struct lines hints = { 0 }, unknown = { 0 };
	struct json_object *o = json_object_new_object();
	char *text = request_text(e->req);

	add_hints(e, &hints);
	add_unknowns(e, &unknown);
	json_add_number(o, "schema", 1);
	json_add_text(o, "device", e->device->name);
	json_add_text(o, "request", text);
	json_add_text(o, "verdict", verdict_names[e->verdict]);
	if (e->err)
		json_add_text(o, "errno", strerrorname_np(e->err));
	json_add_text(o, "reason", reason_names[e->reason]);
	if (e->place && e->place->footprint)
		json_object_object_add(o, "memory", json_of_place(e->place));
	json_object_object_add(o, "hints", json_of_lines(&hints));
	json_object_object_add(o, "unknown", json_of_lines(&unknown));
	free_lines(&hints);
	free_lines(&unknown);
	free(text);
	return o;
}
