// SPDX-License-Identifier: GPL-2.0
/*
 * accmem who: the buffers that contain a device address, with their processes; or the contexts
 * and the buffers of a process.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

static const char usage[] =
	"usage: accmem who [--json] [--watch[=SECONDS]] ADDRESS|PID\n"
	"  0xADDRESS  the buffers with this device address, and their processes (root)\n"
	"  PID        the contexts of a process, and its buffers (root)\n";

struct who {
	bool by_address;
	uint64_t number;
};

struct found {
	struct snapshot s;
	const struct context **contexts;
	size_t nr_contexts;
	struct buffer *buffers;
	size_t nr_buffers;
	bool denied; /* buffers cannot be read */
};

static bool has_pid(const struct context *c, uint64_t pid)
{
	size_t i;

	for (i = 0; i < c->nr_pids; i++) {
		if ((uint64_t)c->pids[i] == pid)
			return true;
	}
	return false;
}

static bool is_wanted(const struct found *f, const struct who *who,
		      const struct buffer *b)
{
	const struct context *c =
		snapshot_context(&f->s, b->device, b->context);

	if (who->by_address)
		return who->number - b->address < b->length;
	return c && has_pid(c, who->number);
}

static void add_context(struct found *f, const struct context *c)
{
	size_t i;

	for (i = 0; i < f->nr_contexts; i++) {
		if (f->contexts[i] == c)
			return;
	}
	f->contexts = grow(f->contexts, f->nr_contexts, sizeof(*f->contexts));
	f->contexts[f->nr_contexts++] = c;
}

static void find_buffers(struct found *f, const struct who *who)
{
	const struct context *c;
	size_t i, kept = 0;

	for (i = 0; i < f->s.nr_devices; i++)
		f->denied |= !buffers_read(&f->buffers, &f->nr_buffers,
					   f->s.devices[i].name);
	for (i = 0; i < f->nr_buffers; i++) {
		if (!is_wanted(f, who, &f->buffers[i]))
			continue;
		c = snapshot_context(&f->s, f->buffers[i].device,
				     f->buffers[i].context);
		if (c)
			add_context(f, c);
		f->buffers[kept++] = f->buffers[i];
	}
	f->nr_buffers = kept;
	for (i = 0; !who->by_address && i < f->s.nr_contexts; i++) {
		if (has_pid(&f->s.contexts[i], who->number))
			add_context(f, &f->s.contexts[i]);
	}
}

static void show_contexts(const struct found *f)
{
	static const struct column columns[] = {
		{ "DEVICE", false, 0 },	 { "CONTEXT", true, 0 },
		{ "USER", false, 0 },	 { "PID", true, 0 },
		{ "COMMAND", false, 1 }, { "BUFFERS", true, 3 },
		{ "LIVE", true, 2 },	 { "HOST", true, 5 },
		{ "PENDING", true, 4 },	 { "CHARGED", true, 0 },
		{ "STATE", false, 1 },
	};
	char user[33], n[2][32], size[4][16], pid[32];
	struct table *t;
	size_t i;

	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < f->nr_contexts; i++) {
		const struct context *c = f->contexts[i];

		table_add(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
			  c->device, number_text(c->id, n[0]),
			  user_text(c->uid, user), pids_text(c, pid), c->comm,
			  number_text(c->use[USE_BUFFERS], n[1]),
			  size_text(c->use[USE_LIVE], size[0]),
			  size_text(c->use[USE_HOST], size[1]),
			  size_text(c->use[USE_PENDING], size[2]),
			  size_text(c->use[USE_CHARGED], size[3]),
			  c->open ? "open" : "closed");
	}
	table_print(t);
	table_free(t);
}

static void show_buffers(const struct found *f)
{
	static const char *const modes[] = { "write-back", "write-combining",
					     "uncached" };
	static const struct column columns[] = {
		{ "DEVICE", false, 0 }, { "CONTEXT", true, 0 },
		{ "ADDRESS", true, 0 }, { "LENGTH", true, 0 },
		{ "MEMORY", true, 2 },	{ "RUNS", true, 3 },
		{ "IN", false, 1 },	{ "CACHE", false, 4 },
		{ "MAPPED", false, 2 },
	};
	struct table *t;
	char size[16];
	size_t i;

	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (i = 0; i < f->nr_buffers; i++) {
		const struct buffer *b = &f->buffers[i];
		char in[24] = "host";

		if (!b->host)
			snprintf(in, sizeof(in), "carveout%u", b->carveout);
		table_add(t, "%s\t%llu\t%#llx\t%llu\t%s\t%u\t%s\t%s\t%s",
			  b->device, (unsigned long long)b->context,
			  (unsigned long long)b->address,
			  (unsigned long long)b->length,
			  size_text(b->footprint, size), b->runs, in,
			  b->cache_mode < 3 ? modes[b->cache_mode] : "?",
			  b->mapped ? "yes" : "no");
	}
	putchar('\n');
	table_print(t);
	table_free(t);
}

/* Warn if the address may be that of a buffer of another user. Return true if so. */
static bool warn_of_hidden(const struct found *f, const struct who *who)
{
	if (!who->by_address || !f->denied || f->nr_buffers)
		return false;
	fprintf(stderr, "accmem: who: the buffers of all contexts: %s\n",
		why_hidden());
	return true;
}

static int show_text(const struct found *f, const struct who *who)
{
	if (warn_of_hidden(f, who))
		return STATUS_FAILED;
	if (!f->nr_contexts && !f->nr_buffers) {
		if (who->by_address)
			fprintf(stderr,
				"accmem: who: no buffer has the address %#llx\n",
				(unsigned long long)who->number);
		else
			fprintf(stderr,
				"accmem: who: process %llu has no device open, or you may not see it\n",
				(unsigned long long)who->number);
		return STATUS_FAILED;
	}
	show_contexts(f);
	if (f->nr_buffers)
		show_buffers(f);
	return STATUS_OK;
}

static int show(const struct options *o, void *arg)
{
	const struct who *who = arg;
	struct found f = { 0 };
	int status = snapshot_read(&f.s);

	if (status) {
		no_devices();
	} else {
		find_buffers(&f, who);
		if (o->json) {
			warn_of_hidden(&f, who);
			json_print(json_of_found(f.contexts, f.nr_contexts,
						 f.buffers, f.nr_buffers));
			status = f.nr_contexts || f.nr_buffers ? STATUS_OK :
								 STATUS_FAILED;
		} else {
			status = show_text(&f, who);
		}
	}
	free(f.contexts);
	free(f.buffers);
	snapshot_free(&f.s);
	return status;
}

int command_who(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage);
	struct who who;
	const char *text;
	char *end;

	if (status >= 0)
		return status;
	if (optind != argc - 1) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	text = argv[optind];
	who.by_address = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	errno = 0;
	who.number = strtoull(text, &end, who.by_address ? 16 : 10);
	if (*text < '0' || *text > '9' || *end || errno ||
	    (who.by_address && !text[2])) {
		fprintf(stderr,
			"accmem: who: %s is no address and no process\n", text);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, &who);
}
