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
#include <search.h>
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

/* A snapshot that is being read, and a tree of its contexts */
struct reader {
	struct snapshot *s;
	void *names;
};

/* Where a context is in the array, which moves when it grows */
struct name {
	char device[16];
	uint64_t id;
	size_t index;
};

int context_order(const char *device, uint64_t id, const char *other_device,
		  uint64_t other_id)
{
	int order = strverscmp(device, other_device);

	return order ? order : (id > other_id) - (id < other_id);
}

static int compare_names(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return context_order(x->device, x->id, y->device, y->id);
}

static struct context *add_context(struct snapshot *s, const struct name *name)
{
	struct context *c;
	enum use u;

	s->contexts = grow(s->contexts, s->nr_contexts, sizeof(*s->contexts));
	c = &s->contexts[s->nr_contexts++];
	copy_word(c->device, sizeof(c->device), name->device);
	c->id = name->id;
	c->uid = UNKNOWN;
	for (u = 0; u < NR_USES; u++)
		c->use[u] = UNKNOWN;
	return c;
}

/* Find a context, or add one of which nothing is known. */
static struct context *get_context(struct reader *r, const char *device,
				   uint64_t id)
{
	struct name *name = grow(NULL, 0, sizeof(*name)), **found;

	copy_word(name->device, sizeof(name->device), device);
	name->id = id;
	name->index = r->s->nr_contexts;
	found = tsearch(name, &r->names, compare_names);
	if (!found) {
		perror("accmem");
		exit(STATUS_FAILED);
	}
	if (*found == name)
		return add_context(r->s, name);
	free(name);
	return &r->s->contexts[(*found)->index];
}

/* Return the text after "accmem-@key:" and blanks in fdinfo; NULL if there is none. */
const char *fdinfo_value(const char *text, const char *key)
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
static void add_fdinfo(pid_t pid, const char *fdinfo, void *arg)
{
	const char *name = fdinfo_value(fdinfo, "device"), *value;
	const char *id = fdinfo_value(fdinfo, "context");
	struct reader *r = arg;
	struct context *c;
	struct stat st;
	char device[16];
	enum use u;

	if (!name || !id || !fdinfo_value(fdinfo, "buffers"))
		return;
	copy_word(device, sizeof(device), name);
	c = get_context(r, device, strtoull(id, NULL, 10));
	for (u = 0; u < NR_USES; u++) {
		value = fdinfo_value(fdinfo, use_names[u]);
		if (value)
			c->use[u] = strtoull(value, NULL, 10);
	}
	if (!c->open) {
		char *path = path_of("/proc/%d", pid);

		if (!stat(path, &st))
			c->uid = st.st_uid;
		free(path);
		read_word(c->comm, sizeof(c->comm), "/proc/%d/comm", pid);
	}
	c->open = true;
	add_pid(c, pid);
}

static bool has_entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && *entry->d_name == '.')
		;
	if (dir)
		closedir(dir);
	return dir && entry;
}

/*
 * Return the directory below /proc of a thread of a process that has files, or NULL: the first
 * thread shows neither files nor mappings if it has ended before the others.
 */
char *thread_with_files(const char *process)
{
	char *path = path_of("/proc/%s/task", process), *thread = NULL;
	struct dirent *entry;
	struct stat st;
	DIR *dir = NULL;

	/* the directory of a single thread has three links */
	if (!stat(path, &st) && st.st_nlink > 3)
		dir = opendir(path);
	free(path);
	while (dir && !thread && (entry = readdir(dir))) {
		path = path_of("/proc/%s/task/%s/fd", process, entry->d_name);
		if (isdigit((unsigned char)*entry->d_name) && has_entries(path))
			thread = format("%s/task/%s", process, entry->d_name);
		free(path);
	}
	if (dir)
		closedir(dir);
	return thread;
}

/*
 * May a file with this path be a device of accmem? A container may have the device under any name
 * in a directory dev. Files that most processes have open are left out: their fdinfo would
 * take most of the time.
 */
static bool is_device_file(const char *link)
{
	static const char *const usual[] = { "null",	"zero",	  "full",
					     "urandom", "random", "tty",
					     "pts/",	"shm/" };
	const char *name = strstr(link, "/dev/");
	size_t i;

	if (*link != '/' || !name)
		return false;
	name += strlen("/dev/");
	for (i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		if (!strncmp(name, usual[i], strlen(usual[i])))
			return false;
	return true;
}

/*
 * Read the links and open no file: a file system that a program serves could hang. Return
 * false if the thread has no files.
 */
static bool walk_files(pid_t pid, const char *thread,
		       bool (*may_be)(const char *link),
		       void (*each)(pid_t pid, const char *fdinfo, void *arg),
		       void *arg)
{
	char *path = path_of("/proc/%s/fd", thread), link[256], *text;
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool found = false;
	ssize_t length;

	free(path);
	while (dir && (entry = readdir(dir))) {
		found |= *entry->d_name != '.';
		length = readlinkat(dirfd(dir), entry->d_name, link,
				    sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		if (!may_be(link))
			continue;
		text = read_text("/proc/%s/fdinfo/%s", thread, entry->d_name);
		if (text)
			each(pid, text, arg);
		free(text);
	}
	if (dir)
		closedir(dir);
	return found || !dir;
}

static void walk_process(const char *process, bool (*may_be)(const char *link),
			 void (*each)(pid_t pid, const char *fdinfo, void *arg),
			 void *arg)
{
	char *thread;

	if (walk_files(atoi(process), process, may_be, each, arg))
		return;
	thread = thread_with_files(process);
	if (thread)
		walk_files(atoi(process), thread, may_be, each, arg);
	free(thread);
}

/* Call a function with the fdinfo of each open file for which @may_be is true of the link. */
void fdinfo_walk(bool (*may_be)(const char *link),
		 void (*each)(pid_t pid, const char *fdinfo, void *arg),
		 void *arg)
{
	char *path = path_of("/proc");
	DIR *proc = opendir(path);
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		if (isdigit((unsigned char)*entry->d_name))
			walk_process(entry->d_name, may_be, each, arg);
	}
	if (proc)
		closedir(proc);
	free(path);
}

/* Replace \\ooo, which debugfs has for blanks and some other characters. */
static void unescape(char *text)
{
	char *from, *to, digits[4] = "";

	for (from = to = text; *from; to++) {
		if (*from == '\\' && strspn(from + 1, "01234567") >= 3) {
			memcpy(digits, from + 1, 3);
			*to = strtoul(digits, NULL, 8);
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/* "context pid comm uid buffers charged[ ended]": comm has no blanks */
static bool account_parse(struct account *a, const char *line)
{
	unsigned long long id, uid, buffers, charged;
	char comm[64];
	int end = 0;

	if (sscanf(line, "%llu %d %63s %llu %llu %llu%n", &id, &a->pid, comm,
		   &uid, &buffers, &charged, &end) != 6)
		return false;
	a->id = id;
	a->uid = uid;
	a->buffers = buffers;
	a->charged = charged;
	a->ended = strstr(line + end, " ended");
	unescape(comm);
	copy_word(a->comm, sizeof(a->comm), comm);
	return true;
}

/* Add the accounts of a device to an array. Return false if the file cannot be read. */
bool accounts_read(struct account **accounts, size_t *nr, const char *device)
{
	char *text = read_text(DEBUGFS "/%s/contexts", device), *line, *save;
	struct account a = { 0 };

	if (!text)
		return false;
	copy_word(a.device, sizeof(a.device), device);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!account_parse(&a, line))
			continue;
		*accounts = grow(*accounts, *nr, sizeof(**accounts));
		(*accounts)[(*nr)++] = a;
	}
	free(text);
	return true;
}

static void add_account(struct reader *r, const struct account *a)
{
	struct context *c = get_context(r, a->device, a->id);

	c->uid = a->uid;
	if (c->open)
		return;
	add_pid(c, a->pid);
	copy_word(c->comm, sizeof(c->comm), a->comm);
	c->use[USE_BUFFERS] = a->buffers;
	c->use[USE_CHARGED] = a->charged;
}

static void read_debugfs(struct reader *r, const char *device)
{
	struct account *accounts = NULL;
	size_t nr = 0, i;

	accounts_read(&accounts, &nr, device);
	for (i = 0; i < nr; i++)
		add_account(r, &accounts[i]);
	free(accounts);
}

int contexts_compare(const void *a, const void *b)
{
	const struct context *x = a, *y = b;

	return context_order(x->device, x->id, y->device, y->id);
}

void contexts_read(struct snapshot *s)
{
	struct reader r = { .s = s };
	size_t i;

	fdinfo_walk(is_device_file, add_fdinfo, &r);
	for (i = 0; i < s->nr_devices; i++)
		read_debugfs(&r, s->devices[i].name);
	tdestroy(r.names, free);
	if (s->nr_contexts)
		qsort(s->contexts, s->nr_contexts, sizeof(*s->contexts),
		      contexts_compare);
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

/* Add up the charges of the contexts that are known. */
void users_from_contexts(struct snapshot *s)
{
	size_t i;

	/* A process that has just ended has no user. */
	for (i = 0; i < s->nr_contexts; i++)
		if (s->contexts[i].uid != UNKNOWN)
			add_to_user(s, &s->contexts[i]);
}

/* Read the charges from debugfs. Return false if the caller may not. */
bool users_read(struct snapshot *s)
{
	char *text = read_text(DEBUGFS "/users"), *line, *save;
	unsigned long long uid, n[NR_CHARGES];
	struct user *u;
	size_t i;

	if (!text)
		return false;
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
	return true;
}
