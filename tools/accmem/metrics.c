// SPDX-License-Identifier: GPL-2.0
/*
 * accmem metrics: the numbers of the devices as OpenMetrics text, for the textfile collector
 * of node_exporter.
 *
 * A family is a metric with all its samples, which must follow each other. The collector
 * reads an older form of the text, in which the type "info" does not exist: such metrics have
 * the type gauge and the value 1. The number of samples is bounded: users beyond the
 * MOST_USERS with the most bytes are one sample, "other".
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

#define MOST_USERS 32
#define NANOSECONDS 1000000000ull

static const char usage[] =
	"usage: accmem metrics [-o FILE]\n"
	"Print the numbers of the devices as OpenMetrics text. -o replaces FILE in one step, also\n"
	"if there is no device. A number that the user may not read is left out: run it as root.\n";

/* A number of each carveout and of host memory, or of each user. */
struct family {
	const char *name;
	const char *help;
	int index;
};

static const struct family memory_gauges[] = {
	{ "accmem_capacity_bytes", "Size of the memory", CAPACITY },
	{ "accmem_free_bytes", "Bytes that are free", FREE },
	{ "accmem_largest_free_run_bytes", "Longest run of free memory",
	  LARGEST },
	{ "accmem_dirty_bytes", "Free bytes that are not cleared yet", DIRTY },
	{ "accmem_resident_bytes", "Bytes of RAM that back the memory",
	  RESIDENT },
	{ "accmem_retired_bytes", "Failed bytes that are never used again",
	  RETIRED },
	{ "accmem_retire_pending_bytes",
	  "Failed bytes in memory that is not free yet", RETIRE_PENDING },
	{ "accmem_retire_failed_bytes",
	  "Failed bytes for which there is no record", RETIRE_FAILED },
	{ "accmem_buffers", "Buffers whose memory is not free", BUFFERS },
};

static const struct family memory_counters[] = {
	{ "accmem_allocs", "Allocations", ALLOCS },
	{ "accmem_frees", "Buffers whose memory has become free", FREES },
	{ "accmem_alloc_failures", "Allocations that failed for want of memory",
	  FAILURES },
};

static const struct family states[] = {
	{ "live", NULL, LIVE },	      { "detached", NULL, DETACHED },
	{ "pending", NULL, PENDING }, { "quarantined", NULL, QUARANTINED },
	{ "retired", NULL, RETIRED },
};

static const struct family user_gauges[] = {
	{ "accmem_user_charged_bytes", "Bytes charged to a user",
	  CHARGE_BYTES },
	{ "accmem_user_resident_bytes", "Bytes of RAM charged to a user",
	  CHARGE_RESIDENT },
	{ "accmem_user_contexts", "Open files of a user", CHARGE_CONTEXTS },
	{ "accmem_user_buffers", "Buffers of a user whose memory is not free",
	  CHARGE_BUFFERS },
	{ "accmem_user_pending_frees", "Frees of a user that are pending",
	  CHARGE_PENDING },
	{ "accmem_user_fences", "Fences of a user", CHARGE_FENCES },
	{ "accmem_user_stream_waits", "Calls of a user that wait for a stream",
	  CHARGE_WAITS },
	{ "accmem_user_exports", "dma-bufs of a user", CHARGE_EXPORTS },
};

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), n = strlen(end);

	return length >= n && !strcmp(text + length - n, end);
}

/* The unit is the end of the name, as the format demands. */
static void print_family(FILE *f, const char *type, const char *name,
			 const char *help)
{
	fprintf(f, "# TYPE %s %s\n", name, type);
	if (ends_with(name, "_bytes"))
		fprintf(f, "# UNIT %s bytes\n", name);
	else if (ends_with(name, "_seconds"))
		fprintf(f, "# UNIT %s seconds\n", name);
	fprintf(f, "# HELP %s %s.\n", name, help);
}

/* Print the value of a label. Only printable characters reach this function. */
static void print_label(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			fputc('\\', f);
		fputc(*value, f);
	}
	fputc('"', f);
}

static void print_value(FILE *f, uint64_t value)
{
	fprintf(f, " %llu\n", (unsigned long long)value);
}

static void print_seconds(FILE *f, uint64_t ns)
{
	fprintf(f, " %llu.%09llu\n", (unsigned long long)(ns / NANOSECONDS),
		(unsigned long long)(ns % NANOSECONDS));
}

static void print_memory(FILE *f, const char *name, const char *suffix,
			 const struct device *d, const struct memory *m,
			 const char *state, uint64_t value)
{
	if (value == UNKNOWN)
		return;
	fprintf(f, "%s%s{", name, suffix);
	print_label(f, "device", d->name);
	fputc(',', f);
	print_label(f, "memory", m->name);
	if (state) {
		fputc(',', f);
		print_label(f, "state", state);
	}
	fputc('}', f);
	print_value(f, value);
}

static void print_memories(FILE *f, const struct snapshot *s,
			   const struct family *family, const char *suffix)
{
	const struct device *d;
	size_t i;

	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		for (i = 0; i < d->nr_memories; i++)
			print_memory(f, family->name, suffix, d,
				     &d->memories[i], NULL,
				     d->memories[i].value[family->index]);
	}
}

static void print_states(FILE *f, const struct snapshot *s)
{
	const char *name = "accmem_state_bytes";
	const struct device *d;
	size_t i, n;

	print_family(f, "gauge", name, "Bytes that are not free, by state");
	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		for (i = 0; i < d->nr_memories; i++) {
			for (n = 0; n < sizeof(states) / sizeof(*states); n++)
				print_memory(f, name, "", d, &d->memories[i],
					     states[n].name,
					     d->memories[i]
						     .value[states[n].index]);
		}
	}
}

static void print_device(FILE *f, const char *name, const struct device *d)
{
	fprintf(f, "%s{", name);
	print_label(f, "device", d->name);
	fputc('}', f);
}

static void print_infos(FILE *f, const struct snapshot *s)
{
	const struct device *d;
	char version[32];

	print_family(f, "gauge", "accmem_module_info",
		     "The module, with its version");
	if (read_word(version, sizeof(version), "/sys/module/accmem/version")) {
		fputs("accmem_module_info{", f);
		print_label(f, "version", version);
		fputs("} 1\n", f);
	}
	print_family(f, "gauge", "accmem_device_info",
		     "A device, with its parent and the driver of the parent");
	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		fputs("accmem_device_info{", f);
		print_label(f, "device", d->name);
		fputc(',', f);
		print_label(f, "parent", d->parent);
		fputc(',', f);
		print_label(f, "driver", d->driver);
		fputs("} 1\n", f);
	}
}

static uint64_t longest_wait_ms(const struct device *d)
{
	uint64_t ms = 0;
	size_t i;

	for (i = 0; i < d->nr_waiters; i++) {
		if (d->waiters[i].ms > ms)
			ms = d->waiters[i].ms;
	}
	return ms;
}

static void print_devices(FILE *f, const struct snapshot *s)
{
	const struct device *d;

	print_family(f, "gauge", "accmem_contexts", "Open files of a device");
	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		if (d->contexts == UNKNOWN)
			continue;
		print_device(f, "accmem_contexts", d);
		print_value(f, d->contexts);
	}
	print_family(f, "gauge", "accmem_waiting",
		     "Allocations that wait for memory or a limit");
	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		if (d->nr_waiting == UNKNOWN)
			continue;
		print_device(f, "accmem_waiting", d);
		print_value(f, d->nr_waiting);
	}
	print_family(f, "gauge", "accmem_longest_wait_seconds",
		     "Longest wait of the first 64 allocations that wait");
	for (d = s->devices; d < s->devices + s->nr_devices; d++) {
		if (d->nr_waiting == UNKNOWN)
			continue;
		print_device(f, "accmem_longest_wait_seconds", d);
		print_seconds(f, longest_wait_ms(d) * 1000000);
	}
}

static void print_bucket(FILE *f, const struct device *d, const char *bound,
			 uint64_t count)
{
	fputs("accmem_wait_seconds_bucket{", f);
	print_label(f, "device", d->name);
	fputc(',', f);
	print_label(f, "le", bound);
	fputc('}', f);
	print_value(f, count);
}

/*
 * The lines of wait_times: a bound in milliseconds, or "inf", and the waits of the bucket;
 * last "sum_ns" and the sum. The buckets of the output are sums over all smaller ones.
 */
static void print_wait_times(FILE *f, const struct device *d)
{
	char *text = read_text(DEBUGFS "/%s/wait_times", d->name), *line, *save;
	unsigned long long ms, nr, count = 0;
	char bound[32];

	if (!text)
		return;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%llu %llu", &ms, &nr) == 2) {
			snprintf(bound, sizeof(bound), "%llu.%03llu", ms / 1000,
				 ms % 1000);
			print_bucket(f, d, bound, count += nr);
		} else if (sscanf(line, "inf %llu", &nr) == 1) {
			print_bucket(f, d, "+Inf", count += nr);
		} else if (sscanf(line, "sum_ns %llu", &nr) == 1) {
			print_device(f, "accmem_wait_seconds_count", d);
			print_value(f, count);
			print_device(f, "accmem_wait_seconds_sum", d);
			print_seconds(f, nr);
		}
	}
	free(text);
}

static int more_bytes(const void *a, const void *b)
{
	uint64_t x = ((const struct user *)a)->charge[CHARGE_BYTES];
	uint64_t y = ((const struct user *)b)->charge[CHARGE_BYTES];

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Order the users by their bytes, and add up those that get no sample of their own. */
static size_t users_bound(struct snapshot *s)
{
	struct user *other;
	enum charge c;
	size_t i;

	if (s->nr_users)
		qsort(s->users, s->nr_users, sizeof(*s->users), more_bytes);
	if (s->nr_users <= MOST_USERS)
		return s->nr_users;
	other = &s->users[MOST_USERS];
	other->uid = UNKNOWN;
	for (i = MOST_USERS + 1; i < s->nr_users; i++) {
		for (c = 0; c < NR_CHARGES; c++)
			other->charge[c] = sum_of_known(other->charge[c],
							s->users[i].charge[c]);
	}
	return MOST_USERS + 1;
}

static void print_user(FILE *f, const struct family *family,
		       const struct user *user, const char *name)
{
	uint64_t value = user->charge[family->index];
	char number[32] = "other";

	if (value == UNKNOWN)
		return;
	if (user->uid != UNKNOWN)
		number_text(user->uid, number);
	fprintf(f, "%s{", family->name);
	print_label(f, "uid", number);
	fputc(',', f);
	print_label(f, "user", name);
	fputc('}', f);
	print_value(f, value);
}

static void print_users(FILE *f, struct snapshot *s)
{
	size_t nr = users_bound(s), i, n;
	char names[MOST_USERS + 1][33] = {};

	/* Once for each user: the search for a name may ask a server. */
	for (i = 0; i < nr; i++) {
		if (s->users[i].uid == UNKNOWN)
			snprintf(names[i], sizeof(names[i]), "other");
		else
			user_text(s->users[i].uid, names[i]);
	}
	for (n = 0; n < sizeof(user_gauges) / sizeof(*user_gauges); n++) {
		print_family(f, "gauge", user_gauges[n].name,
			     user_gauges[n].help);
		for (i = 0; i < nr; i++)
			print_user(f, &user_gauges[n], &s->users[i], names[i]);
	}
}

/* A limit in milliseconds is printed in seconds, under its name without "_ms". */
static void print_limit(FILE *f, const char *family, const char *name,
			uint64_t value)
{
	char label[64];

	copy_word(label, sizeof(label), name);
	if (ends_with(label, "_ms"))
		label[strlen(label) - 3] = '\0';
	fprintf(f, "%s{", family);
	print_label(f, "limit", label);
	fputc('}', f);
	if (ends_with(name, "_ms"))
		print_seconds(f, value * 1000000);
	else
		print_value(f, value);
}

static const char *limit_family(const char *name)
{
	if (ends_with(name, "_ms"))
		return "accmem_limit_seconds";
	return strstr(name, "_bytes") ? "accmem_limit_bytes" : "accmem_limit";
}

static void print_limits(FILE *f, const struct snapshot *s)
{
	static const char *const families[] = { "accmem_limit_bytes",
						"accmem_limit",
						"accmem_limit_seconds" };
	size_t n, i;

	for (n = 0; n < sizeof(families) / sizeof(*families); n++) {
		print_family(f, "gauge", families[n],
			     "Limits of the module; 0: none, or a default");
		for (i = 0; i < NR_LIMITS; i++) {
			if (limit_is_known(i, s->limits[i]) &&
			    !strcmp(limit_family(limit_names[i]), families[n]))
				print_limit(f, families[n], limit_names[i],
					    s->limits[i]);
		}
	}
}

static void print_metrics(FILE *f, void *snapshot)
{
	struct snapshot *s = snapshot;
	const struct device *d;
	size_t i;

	print_infos(f, s);
	for (i = 0; i < sizeof(memory_gauges) / sizeof(*memory_gauges); i++) {
		print_family(f, "gauge", memory_gauges[i].name,
			     memory_gauges[i].help);
		print_memories(f, s, &memory_gauges[i], "");
	}
	print_states(f, s);
	for (i = 0; i < sizeof(memory_counters) / sizeof(*memory_counters);
	     i++) {
		print_family(f, "counter", memory_counters[i].name,
			     memory_counters[i].help);
		print_memories(f, s, &memory_counters[i], "_total");
	}
	print_devices(f, s);
	print_family(f, "histogram", "accmem_wait_seconds",
		     "Time that allocations have waited");
	for (d = s->devices; d < s->devices + s->nr_devices; d++)
		print_wait_times(f, d);
	print_users(f, s);
	print_limits(f, s);
	fputs("# EOF\n", f);
}

/* Parse the options. Return -1, or the status of the command. */
static int parse(int argc, char **argv, const char **path)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "+ho:", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (c == '?')
			break;
		*path = optarg;
	}
	if (c == -1 && optind == argc)
		return -1;
	fputs(usage, stderr);
	return STATUS_USAGE;
}

int command_metrics(int argc, char **argv)
{
	const char *path = NULL;
	int status = parse(argc, argv, &path);
	struct snapshot s;

	if (status >= 0)
		return status;
	status = snapshot_read_totals(&s);
	if (status)
		no_devices();
	status = write_file("metrics", path, print_metrics, &s) ?: status;
	snapshot_free(&s);
	return status;
}
