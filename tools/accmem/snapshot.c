// SPDX-License-Identifier: GPL-2.0
/*
 * A snapshot of the devices: sysfs, `usage` and `waiting` of debugfs for root, and
 * ACCMEM_IOC_INFO for a user who may open a device but not read its files.
 *
 * `usage` shows the bytes of a carveout in each state at one moment, so that the sum of the
 * states is the capacity. The other numbers are read at other moments.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/accmem.h>

#include "accmem.h"

const char *const value_names[NR_VALUES] = {
	[CAPACITY] = "capacity",
	[FREE] = "free_bytes",
	[LIVE] = "live_bytes",
	[DETACHED] = "detached_bytes",
	[PENDING] = "pending_bytes",
	[QUARANTINED] = "quarantined_bytes",
	[RETIRED] = "retired_bytes",
	[RETIRE_PENDING] = "retire_pending_bytes",
	[RETIRE_FAILED] = "retire_failed_bytes",
	[LARGEST] = "largest_free_run",
	[DIRTY] = "dirty_bytes",
	[RESIDENT] = "resident_bytes",
	[BUFFERS] = "buffers",
	[ALLOCS] = "allocs",
	[FREES] = "frees",
	[FAILURES] = "failures",
};

const char *const limit_names[NR_LIMITS] = {
	"max_bytes_per_user",	       "max_bytes_per_context",
	"max_buffers_per_user",	       "max_contexts_per_user",
	"max_fences_per_user",	       "max_exports_per_user",
	"max_waits_per_user",	       "max_resident_bytes",
	"max_resident_bytes_per_user", "overdue_ms",
	"waiter_reserve_ms",
};

static void read_values(uint64_t value[NR_VALUES], const char *dir)
{
	enum value v;

	for (v = 0; v < NR_VALUES; v++)
		value[v] = read_number("%s/%s", dir, value_names[v]);
}

static void add_memory(struct device *d, const char *name)
{
	char *dir = format(CLASS "/%s/%s", d->name, name);
	struct memory *m;
	char node[16];

	d->memories = grow(d->memories, d->nr_memories, sizeof(*d->memories));
	m = &d->memories[d->nr_memories++];
	copy_word(m->name, sizeof(m->name), name);
	read_word(m->bandwidth, sizeof(m->bandwidth), "%s/bandwidth", dir);
	m->numa_node = read_word(node, sizeof(node), "%s/numa_node", dir) ?
			       atoi(node) :
			       -1;
	read_values(m->value, dir);
	free(dir);
}

static void read_memories(struct device *d)
{
	unsigned int i;
	char name[32];

	for (i = 0;; i++) {
		snprintf(name, sizeof(name), "carveout%u", i);
		if (!path_exists(CLASS "/%s/%s", d->name, name))
			break;
		add_memory(d, name);
	}
	if (path_exists(CLASS "/%s/host", d->name))
		add_memory(d, "host");
}

/* A line of usage: the name of a state and its bytes. */
static void usage_line(uint64_t *value, const char *line)
{
	static const struct {
		const char *name;
		enum value value;
	} states[] = {
		{ "capacity ", CAPACITY }, { "free ", FREE },
		{ "live ", LIVE },	   { "detached ", DETACHED },
		{ "pending ", PENDING },   { "quarantined ", QUARANTINED },
		{ "retired ", RETIRED },
	};
	size_t i, length;

	for (i = 0; i < sizeof(states) / sizeof(*states); i++) {
		length = strlen(states[i].name);
		if (!strncmp(line, states[i].name, length))
			value[states[i].value] =
				strtoull(line + length, NULL, 10);
	}
}

/* The sums over the carveouts come first. A single carveout has no lines of its own. */
static bool read_usage(struct device *d)
{
	char *text = read_text(DEBUGFS "/%s/usage", d->name), *line, *save;
	uint64_t *value = d->value;
	char name[16];
	unsigned int i;
	enum value v;

	if (!text)
		return false;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (*line != '#') {
			usage_line(value, line);
			continue;
		}
		if (sscanf(line, "# carveout %u", &i) == 1)
			snprintf(name, sizeof(name), "carveout%u", i);
		else
			copy_word(name, sizeof(name), "host");
		for (i = 0; i < d->nr_memories; i++) {
			if (!strcmp(d->memories[i].name, name))
				value = d->memories[i].value;
		}
	}
	free(text);
	if (d->nr_memories &&
	    (d->nr_memories == 1 || !strcmp(d->memories[1].name, "host"))) {
		for (v = CAPACITY; v <= RETIRED; v++)
			d->memories[0].value[v] = d->value[v];
	}
	return true;
}

static void waiter_line(struct device *d, const char *line)
{
	unsigned long long context, uid, bytes, bypassed, ms;
	struct waiter *w;
	char state[16];

	if (sscanf(line, "%llu %llu %llu %15s %llu %llu", &context, &uid,
		   &bytes, state, &bypassed, &ms) != 6)
		return;
	d->waiters = grow(d->waiters, d->nr_waiters, sizeof(*d->waiters));
	w = &d->waiters[d->nr_waiters++];
	*w = (struct waiter){ .context = context,
			      .uid = uid,
			      .bytes = bytes,
			      .bypassed = bypassed,
			      .ms = ms };
	copy_word(w->state, sizeof(w->state), state);
}

static void read_waiting(struct device *d)
{
	char *text = read_text(DEBUGFS "/%s/waiting", d->name), *line, *save;

	d->nr_waiting = UNKNOWN;
	if (!text)
		return;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!strncmp(line, "waiting ", 8))
			d->nr_waiting = strtoull(line + 8, NULL, 10);
		else if (!strncmp(line, "held ", 5))
			d->held = strtoull(line + 5, NULL, 10);
		else
			waiter_line(d, line);
	}
	free(text);
}

/* Fill in the numbers that INFO gives to any program that may open the device. */
static void read_info(struct device *d)
{
	char *path = path_of("/dev/%s", d->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned int i;

	free(path);
	if (fd < 0)
		return;
	d->value[FREE] = 0;
	d->value[LARGEST] = 0;
	for (i = 0; i < d->nr_memories; i++) {
		struct memory *m = &d->memories[i];
		bool host = !strcmp(m->name, "host");
		struct accmem_info info = {
			.size = sizeof(info),
			.flags = host ? ACCMEM_INFO_HOST : 0,
			.carveout = host ? 0 : i,
		};

		if (ioctl(fd, ACCMEM_IOC_INFO, &info))
			continue;
		m->value[FREE] = info.free_bytes;
		m->value[LARGEST] = info.largest_run;
		m->value[RETIRED] = info.retired_bytes;
		m->value[RETIRE_PENDING] = info.retire_pending_bytes;
		m->value[RETIRE_FAILED] = info.retire_failed_bytes;
		if (host)
			continue;
		d->value[FREE] += info.free_bytes;
		if (info.largest_run > d->value[LARGEST])
			d->value[LARGEST] = info.largest_run;
	}
	close(fd);
}

static void read_device(struct snapshot *s, const char *name)
{
	struct device *d;
	char path[64];

	s->devices = grow(s->devices, s->nr_devices, sizeof(*s->devices));
	d = &s->devices[s->nr_devices++];
	copy_word(d->name, sizeof(d->name), name);
	snprintf(path, sizeof(path), CLASS "/%s", d->name);
	read_values(d->value, path);
	d->contexts = read_number("%s/contexts", path);
	read_link(d->parent, sizeof(d->parent), "%s/device", path);
	read_link(d->driver, sizeof(d->driver), "%s/device/driver", path);
	read_memories(d);
	d->one_moment = read_usage(d);
	if (d->one_moment)
		s->all = true;
	else if (d->value[FREE] == UNKNOWN)
		read_info(d);
	read_waiting(d);
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_device(const struct dirent *entry)
{
	return !strncmp(entry->d_name, "accmem", 6);
}

/* UNKNOWN is also the largest limit that can be set. */
bool limit_is_known(size_t limit, uint64_t value)
{
	return value != UNKNOWN ||
	       path_exists(PARAMETERS "/%s", limit_names[limit]);
}

void limits_read(struct snapshot *s)
{
	size_t i;

	for (i = 0; i < NR_LIMITS; i++)
		s->limits[i] = read_number(PARAMETERS "/%s", limit_names[i]);
}

static void devices_read(struct snapshot *s)
{
	char *path = path_of(CLASS);
	struct dirent **entries;
	int nr, n;

	memset(s, 0, sizeof(*s));
	nr = scandir(path, &entries, is_device, compare_names);
	free(path);
	for (n = 0; n < nr; n++) {
		read_device(s, entries[n]->d_name);
		free(entries[n]);
	}
	if (nr >= 0)
		free(entries);
	limits_read(s);
}

/* Return STATUS_OK, or STATUS_NO_DEVICE if there is no device. */
int snapshot_read(struct snapshot *s)
{
	devices_read(s);
	contexts_read(s);
	if (!users_read(s))
		users_from_contexts(s);
	return s->nr_devices ? STATUS_OK : STATUS_NO_DEVICE;
}

/*
 * The same without contexts, if the caller may read what the users hold. Contexts take long to
 * find if a user has many files open.
 */
int snapshot_read_totals(struct snapshot *s)
{
	devices_read(s);
	if (!users_read(s)) {
		contexts_read(s);
		users_from_contexts(s);
	}
	return s->nr_devices ? STATUS_OK : STATUS_NO_DEVICE;
}

void snapshot_free(struct snapshot *s)
{
	size_t i;

	for (i = 0; i < s->nr_devices; i++) {
		free(s->devices[i].memories);
		free(s->devices[i].waiters);
	}
	for (i = 0; i < s->nr_contexts; i++)
		free(s->contexts[i].pids);
	free(s->devices);
	free(s->contexts);
	free(s->users);
}

struct device *snapshot_device(const struct snapshot *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->nr_devices; i++) {
		if (!strcmp(s->devices[i].name, name))
			return &s->devices[i];
	}
	return NULL;
}

const struct context *snapshot_context(const struct snapshot *s,
				       const char *device, uint64_t id)
{
	struct context key = { .id = id };

	copy_word(key.device, sizeof(key.device), device);
	return s->nr_contexts ? bsearch(&key, s->contexts, s->nr_contexts,
					sizeof(key), contexts_compare) :
				NULL;
}

/* Add two numbers. A number that is UNKNOWN adds nothing, unless both are. */
uint64_t sum_of_known(uint64_t a, uint64_t b)
{
	if (a == UNKNOWN || b == UNKNOWN)
		return a == UNKNOWN ? b : a;
	return a + b;
}

static bool is_some(uint64_t number)
{
	return number && number != UNKNOWN;
}

/*
 * Return true if programs have the device open, or use its memory after they closed it.
 * Return false if the caller may not know.
 */
bool in_use(const struct device *d)
{
	return is_some(d->contexts) || is_some(d->value[DETACHED]);
}
