// SPDX-License-Identifier: GPL-2.0
/*
 * The contexts and the users of a snapshot.
 *
 * The fdinfo of an open device file in /proc has the numbers of its context. Users may read
 * the fdinfo of their own processes, root that of all processes. Two descriptors of a device
 * with the same number are one context. `contexts` in debugfs also lists contexts that no
 * process has open: their files were closed, and some of their memory is still mapped,
 * pending or pinned.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accmem.h"

const char *const use_names[NR_USES] = {
	[USE_BUFFERS] = "buffers", [USE_LIVE] = "live",
	[USE_HOST] = "live-host",  [USE_PENDING] = "pending",
	[USE_OVERDUE] = "overdue", [USE_WAITING] = "waiting",
	[USE_CHARGED] = "charged",
};

const char *const charge_names[NR_CHARGES] = {
	[CHARGE_CONTEXTS] = "contexts", [CHARGE_BUFFERS] = "buffers",
	[CHARGE_BYTES] = "bytes",	[CHARGE_PENDING] = "pending",
	[CHARGE_FENCES] = "fences",	[CHARGE_WAITS] = "waits",
	[CHARGE_RESIDENT] = "resident", [CHARGE_EXPORTS] = "exports",
};

static void add_pid(struct context *c, pid_t pid)
{
	if (c->nr_pids && c->pids[c->nr_pids - 1] == pid)
		return;
	c->pids = grow(c->pids, c->nr_pids, sizeof(*c->pids));
	c->pids[c->nr_pids++] = pid;
}

/* Find a context, or add one of which nothing is known. */
static struct context *get_context(struct snapshot *s, const char *device,
				   uint64_t id)
{
	struct context *c;
	size_t i;

	for (i = 0; i < s->nr_contexts; i++) {
		c = &s->contexts[i];
		if (c->id == id && !strcmp(c->device, device))
			return c;
	}
	s->contexts = grow(s->contexts, s->nr_contexts, sizeof(*s->contexts));
	c = &s->contexts[s->nr_contexts++];
	copy_word(c->device, sizeof(c->device), device);
	c->id = id;
	c->uid = UNKNOWN;
	for (i = 0; i < NR_USES; i++)
		c->use[i] = UNKNOWN;
	return c;
}

/* Return the text after "accmem-@key:" and blanks in fdinfo; NULL if there is none. */
static const char *fdinfo_value(const char *text, const char *key)
{
	size_t length = strlen(key);
	const char *line;

	for (line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, "accmem-", 7) &&
		    !strncmp(line + 7, key, length) && line[7 + length] == ':')
			return line + 8 + length +
			       strspn(line + 8 + length, " \t");
	}
	return NULL;
}

/* Only a device file has the line accmem-buffers; files of streams and CTAs do not. */
static void read_fdinfo(struct snapshot *s, pid_t pid, const char *fd)
{
	char *text = read_text("/proc/%d/fdinfo/%s", pid, fd);
	const char *name, *id, *value;
	struct context *c;
	struct stat st;
	char device[16];
	enum use u;

	if (!text)
		return;
	name = fdinfo_value(text, "device");
	id = fdinfo_value(text, "context");
	if (name && id && fdinfo_value(text, "buffers")) {
		copy_word(device, sizeof(device), name);
		c = get_context(s, device, strtoull(id, NULL, 10));
		for (u = 0; u < NR_USES; u++) {
			value = fdinfo_value(text, use_names[u]);
			if (value)
				c->use[u] = strtoull(value, NULL, 10);
		}
		if (!c->open) {
			char path[32];

			snprintf(path, sizeof(path), "/proc/%d", pid);
			if (!stat(path, &st))
				c->uid = st.st_uid;
			read_word(c->comm, sizeof(c->comm), "/proc/%d/comm",
				  pid);
		}
		c->open = true;
		add_pid(c, pid);
	}
	free(text);
}

/* Read the links and open no file: a file system that a program serves could hang. */
static void read_process(struct snapshot *s, pid_t pid)
{
	char path[32], link[32];
	struct dirent *entry;
	ssize_t length;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		length = readlinkat(dirfd(dir), entry->d_name, link,
				    sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (!strncmp(link, "/dev/accmem", 11))
			read_fdinfo(s, pid, entry->d_name);
	}
	closedir(dir);
}

/* "context pid comm uid buffers charged [ended]": comm has no blanks */
static void context_line(struct snapshot *s, const char *device,
			 const char *line)
{
	unsigned long long id, uid, buffers, charged;
	struct context *c;
	char comm[64];
	int pid;

	if (sscanf(line, "%llu %d %63s %llu %llu %llu", &id, &pid, comm, &uid,
		   &buffers, &charged) != 6)
		return;
	c = get_context(s, device, id);
	c->uid = uid;
	if (c->open)
		return;
	add_pid(c, pid);
	copy_word(c->comm, sizeof(c->comm), comm);
	c->use[USE_BUFFERS] = buffers;
	c->use[USE_CHARGED] = charged;
}

static void read_debugfs(struct snapshot *s, const char *device)
{
	char *text = read_text(DEBUGFS "/%s/contexts", device), *line, *save;

	if (!text)
		return;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		context_line(s, device, line);
	free(text);
}

static int compare_contexts(const void *a, const void *b)
{
	const struct context *x = a, *y = b;
	int order = strverscmp(x->device, y->device);

	return order ? order : (x->id > y->id) - (x->id < y->id);
}

void contexts_read(struct snapshot *s)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t i;

	while (proc && (entry = readdir(proc))) {
		if (isdigit((unsigned char)*entry->d_name))
			read_process(s, atoi(entry->d_name));
	}
	if (proc)
		closedir(proc);
	for (i = 0; i < s->nr_devices; i++)
		read_debugfs(s, s->devices[i].name);
	if (s->nr_contexts)
		qsort(s->contexts, s->nr_contexts, sizeof(*s->contexts),
		      compare_contexts);
}

static void add_to_user(struct snapshot *s, const struct context *c)
{
	struct user *u;
	size_t i;

	for (i = 0; i < s->nr_users && s->users[i].uid != c->uid; i++)
		;
	if (i == s->nr_users) {
		s->users = grow(s->users, s->nr_users, sizeof(*s->users));
		u = &s->users[s->nr_users++];
		u->uid = c->uid;
		for (i = CHARGE_PENDING; i < NR_CHARGES; i++)
			u->charge[i] = UNKNOWN;
	} else {
		u = &s->users[i];
	}
	u->charge[CHARGE_CONTEXTS]++;
	if (c->use[USE_BUFFERS] != UNKNOWN)
		u->charge[CHARGE_BUFFERS] += c->use[USE_BUFFERS];
	if (c->use[USE_CHARGED] != UNKNOWN)
		u->charge[CHARGE_BYTES] += c->use[USE_CHARGED];
}

/* For root read the charges from debugfs, else add up the contexts that are known. */
void users_read(struct snapshot *s)
{
	char *text = read_text(DEBUGFS "/users"), *line, *save;
	unsigned long long uid, n[NR_CHARGES];
	struct user *u;
	size_t i;

	for (i = 0; !text && i < s->nr_contexts; i++)
		add_to_user(s, &s->contexts[i]);
	if (!text)
		return;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%llu %llu %llu %llu %llu %llu %llu %llu %llu",
			   &uid, &n[0], &n[1], &n[2], &n[3], &n[4], &n[5],
			   &n[6], &n[7]) != 9)
			continue;
		s->users = grow(s->users, s->nr_users, sizeof(*s->users));
		u = &s->users[s->nr_users++];
		u->uid = uid;
		for (i = 0; i < NR_CHARGES; i++)
			u->charge[i] = n[i];
	}
	free(text);
}
