// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: the sums of the contexts beside the numbers of the device and of the users,
 * and contexts that no process has.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "check.h"

static void check_number(struct findings *f, const struct account *a,
			 const char *what, uint64_t number, const char *where,
			 uint64_t other, const char *other_where)
{
	if (number != UNKNOWN && other != UNKNOWN && number != other)
		finding_add(f, QUIET, "context", a->device,
			    "context %llu of %s[%d]: %llu %s in %s, and %llu in %s",
			    (unsigned long long)a->id, a->comm, a->pid,
			    (unsigned long long)number, what, where,
			    (unsigned long long)other, other_where);
}

/* Compare a line of `contexts` with the lines of `buffers`, and with fdinfo. */
static void check_account(struct findings *f, const struct reading *r,
			  const struct account *a)
{
	const struct context *c = snapshot_context(&r->s, a->device, a->id);

	check_number(f, a, "buffers", a->buffers, "contexts", a->nr, "buffers");
	if (!c || !c->open)
		return;
	check_number(f, a, "buffers", a->buffers, "contexts",
		     c->use[USE_BUFFERS], "fdinfo");
	check_number(f, a, "charged bytes", a->charged, "contexts",
		     c->use[USE_CHARGED], "fdinfo");
	check_number(f, a, "live bytes", a->live, "buffers", c->use[USE_LIVE],
		     "fdinfo");
	check_number(f, a, "bytes of host memory", a->host, "buffers",
		     c->use[USE_HOST], "fdinfo");
}

/* Return the bytes of the buffers of a device that are imports. */
static uint64_t imported_bytes(const struct reading *r, const char *device)
{
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < r->nr_buffers; i++)
		if (r->buffers[i].imported &&
		    !strcmp(r->buffers[i].device, device))
			bytes += r->buffers[i].footprint;
	return bytes;
}

/*
 * The memory that is not free is charged to contexts, and that of imports once more. An import
 * whose free is pending is charged, and is in no list.
 */
static void check_charges(struct findings *f, const struct reading *r,
			  const struct device *d)
{
	uint64_t imported = imported_bytes(r, d->name);
	uint64_t charged = 0, used = 0, open = 0;
	size_t i;

	for (i = 0; i < d->nr_memories; i++) {
		const uint64_t *value = d->memories[i].value;

		used += value[CAPACITY] - value[FREE] - value[RETIRED];
	}
	for (i = 0; i < r->nr_accounts; i++) {
		if (strcmp(r->accounts[i].device, d->name))
			continue;
		charged += r->accounts[i].charged;
		open += !r->accounts[i].ended;
	}
	used += imported;
	if (charged < used || (charged > used && !imported))
		finding_add(f, QUIET, "charges", d->name,
			    "contexts are charged for %llu bytes, and %llu are in use",
			    (unsigned long long)charged,
			    (unsigned long long)used);
	if (d->contexts != UNKNOWN && d->contexts != open)
		finding_add(f, QUIET, "contexts", d->name,
			    "%llu open contexts in debugfs, and %llu in sysfs",
			    (unsigned long long)open,
			    (unsigned long long)d->contexts);
}

/* What is_mapped() looks for */
struct device_file {
	char *path; /* the usual one */
	dev_t number;
};

/* A container may have the device under any name in a directory dev. */
static bool is_file_of(const char *process, const char *range, const char *path,
		       const struct device_file *file)
{
	unsigned long start, end;
	struct stat st;
	bool same;
	char *link;

	if (!strcmp(path, file->path))
		return true;
	if (!strstr(path, "/dev/") ||
	    sscanf(range, "%lx-%lx", &start, &end) != 2)
		return false;
	/* the names there have no leading zeros; there are none if the first thread has ended */
	link = path_of("/proc/%s/map_files/%lx-%lx", process, start, end);
	same = stat(link, &st) ||
	       (S_ISCHR(st.st_mode) && st.st_rdev == file->number);
	free(link);
	return same;
}

/* Return true if a line of maps, which is changed, has this file: the sixth word. */
static bool has_file(const char *process, char *maps,
		     const struct device_file *file)
{
	char *line, *save, range[40];
	int at;

	for (line = strtok_r(maps, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		at = 0;
		if (sscanf(line, "%39s %*s %*s %*s %*s %n", range, &at) !=
			    EOF &&
		    at && is_file_of(process, range, line + at, file))
			return true;
	}
	return false;
}

static bool process_maps(const char *process, const struct device_file *file)
{
	char *text = read_text("/proc/%s/maps", process), *thread;
	bool mapped;

	if (text && !*text) {
		thread = thread_with_files(process);
		free(text);
		text = thread ? read_text("/proc/%s/maps", thread) : NULL;
		free(thread);
	}
	mapped = text && has_file(process, text, file);
	free(text);
	return mapped;
}

/* Return true if a process maps memory of the device, or may map it. */
static bool is_mapped(const char *device)
{
	struct device_file file = { .path = format("/dev/%s", device) };
	char *path = path_of("/proc");
	DIR *proc = opendir(path);
	unsigned int numbers[2];
	struct dirent *entry;
	bool mapped = false;
	char number[16];

	read_word(number, sizeof(number), CLASS "/%s/dev", device);
	if (sscanf(number, "%u:%u", &numbers[0], &numbers[1]) == 2)
		file.number = makedev(numbers[0], numbers[1]);
	while (proc && !mapped && (entry = readdir(proc)))
		mapped = isdigit((unsigned char)*entry->d_name) &&
			 process_maps(entry->d_name, &file);
	if (proc)
		closedir(proc);
	free(file.path);
	free(path);
	return mapped;
}

/* Return true if memory of the context is exported: a dma-buf keeps it. */
static bool is_exported(const struct account *a)
{
	char *text = read_text(DEBUGFS "/%s/exports", a->device), *line, *save;
	unsigned long long context;
	bool exported = false;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		exported |= sscanf(line, "%*u %llu", &context) == 1 &&
			    context == a->id;
	free(text);
	return exported;
}

/*
 * A context that is charged, though no process has it open or mapped and no dma-buf keeps its
 * memory. It is not known whose memory an import keeps.
 */
static void check_orphan(struct findings *f, const struct reading *r,
			 const struct device *d, const struct account *a)
{
	const struct context *c = snapshot_context(&r->s, a->device, a->id);

	if (!a->charged || !c || c->open || d->value[PENDING] ||
	    is_exported(a) || imported_bytes(r, d->name) || is_mapped(d->name))
		return;
	finding_add(f, LASTING, "orphan", d->name,
		    "context %llu, opened by %s[%d]: no process has it, and %llu bytes are charged",
		    (unsigned long long)a->id, a->comm, a->pid,
		    (unsigned long long)a->charged);
}

void check_contexts(struct findings *f, const struct reading *r,
		    const struct device *d)
{
	bool quiet = is_quiet(r, d->name);
	size_t i;

	if (!d->one_moment)
		return;
	for (i = 0; i < r->nr_accounts; i++) {
		if (strcmp(r->accounts[i].device, d->name))
			continue;
		if (quiet)
			check_account(f, r, &r->accounts[i]);
		check_orphan(f, r, d, &r->accounts[i]);
	}
	if (quiet)
		check_charges(f, r, d);
}

/* Sums over the contexts of a user. Cached buffers are charged to the user only. */
struct sums {
	uint64_t contexts;
	uint64_t buffers;
	uint64_t charged;
};

static struct sums sums_of(const struct reading *r, uint64_t uid)
{
	struct sums sums = { 0 };
	size_t i;

	for (i = 0; i < r->nr_accounts; i++) {
		if (r->accounts[i].uid != uid)
			continue;
		sums.contexts++;
		sums.buffers += r->accounts[i].buffers;
		sums.charged += r->accounts[i].charged;
	}
	return sums;
}

static void check_charge(struct findings *f, const struct user *u,
			 const char *what, uint64_t sum, enum charge charge,
			 bool exact)
{
	char object[32];

	if (sum == u->charge[charge] || (!exact && sum < u->charge[charge]))
		return;
	snprintf(object, sizeof(object), "user %llu",
		 (unsigned long long)u->uid);
	finding_add(f, QUIET, "user", object,
		    "charged for %llu %s, and the contexts have %llu",
		    (unsigned long long)u->charge[charge], what,
		    (unsigned long long)sum);
}

/* A freed buffer counts for the user until its memory is free. */
void check_users(struct findings *f, const struct reading *r)
{
	size_t i;

	if (!r->all_quiet)
		return;
	for (i = 0; i < r->s.nr_users; i++) {
		const struct user *u = &r->s.users[i];
		struct sums sums = sums_of(r, u->uid);

		check_charge(f, u, "contexts", sums.contexts, CHARGE_CONTEXTS,
			     true);
		check_charge(f, u, "buffers", sums.buffers, CHARGE_BUFFERS,
			     false);
		check_charge(f, u, "bytes", sums.charged, CHARGE_BYTES, false);
	}
}
