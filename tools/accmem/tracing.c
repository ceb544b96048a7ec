// SPDX-License-Identifier: GPL-2.0
/*
 * The trace events of allocations, from an instance of tracefs that belongs to this process.
 *
 * The instance has the number of the process in its name. A process that is killed leaves
 * its instance, which keeps the events enabled: the next process removes the instance.
 */
#include <errno.h>
#include <event-parse.h>
#include <kbuffer.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs.h>
#include <unistd.h>

#include "accmem.h"
#include "record.h"

#define INSTANCE "accmem-record-"

static const struct {
	const char *system, *name;
} event_names[NR_EVENTS] = {
	[EVENT_ALLOC] = { "accmem", "accmem_alloc" },
	[EVENT_FREE] = { "accmem", "accmem_free" },
	[EVENT_REALLOC] = { "accmem", "accmem_realloc" },
	[EVENT_FORK] = { "sched", "sched_process_fork" },
};

struct tracing {
	struct tracefs_instance *instance;
	struct tep_handle *tep;
	struct tep_event *events[NR_EVENTS]; /* NULL: not enabled */
	struct tracefs_cpu **cpus;
	long nr_cpus;
	struct kbuffer *buffer;
	void *page;
	uint64_t nr_read;
	uint64_t lost;
};

/* Is stopped when the process exits, also because it has no memory. */
static struct tracing *running;

static void stop_running(void)
{
	if (running)
		tracing_stop(running);
}

static bool failed(const char *what)
{
	if (errno == EACCES || errno == EPERM)
		fprintf(stderr,
			"accmem: record: %s: %s: trace events are for root\n",
			what, strerror(errno));
	else
		fprintf(stderr, "accmem: record: %s: %s\n", what,
			strerror(errno));
	return false;
}

/* Remove the instance of a process that does not exist any more. */
static int remove_stale(const char *name, void *arg)
{
	struct tracefs_instance *instance;
	int pid, end = 0;

	(void)arg;
	if (sscanf(name, INSTANCE "%d%n", &pid, &end) != 1 || name[end] ||
	    pid <= 0 || !kill(pid, 0) || errno != ESRCH)
		return 0;
	instance = tracefs_instance_alloc(NULL, name);
	if (instance) {
		tracefs_instance_destroy(instance);
		tracefs_instance_free(instance);
	}
	return 0;
}

static bool make_instance(struct tracing *t, uint64_t buffer)
{
	char *name = format(INSTANCE "%d", getpid());

	tracefs_instances_walk(remove_stale, NULL);
	errno = 0;
	t->instance = tracefs_instance_create(name);
	free(name);
	if (!t->instance)
		return failed("tracefs");
	if (tracefs_instance_file_write(t->instance, "trace_clock", "mono") < 0)
		return failed("trace_clock");
	if (tracefs_instance_set_buffer_size(t->instance, buffer >> 10, -1) < 0)
		return failed("the buffers");
	return true;
}

static bool find_events(struct tracing *t, bool forks)
{
	const char *const systems[] = { "accmem", forks ? "sched" : NULL,
					NULL };
	enum event_kind kind;

	t->tep = tracefs_local_events_system(NULL, systems);
	for (kind = 0; kind < NR_EVENTS; kind++) {
		if (kind == EVENT_FORK && !forks)
			continue;
		if (t->tep)
			t->events[kind] =
				tep_find_event_by_name(t->tep,
						       event_names[kind].system,
						       event_names[kind].name);
		if (!t->events[kind]) {
			fprintf(stderr,
				"accmem: record: the kernel has no trace event %s\n",
				event_names[kind].name);
			return false;
		}
	}
	return true;
}

static bool enable_events(struct tracing *t, long device)
{
	char *filter = format("device == %ld", device);
	enum event_kind kind;
	bool ok = true;

	for (kind = 0; kind < NR_EVENTS && ok; kind++) {
		const char *system = event_names[kind].system;
		const char *name = event_names[kind].name;

		if (!t->events[kind])
			continue;
		if (device >= 0 && kind != EVENT_FORK)
			ok = tracefs_event_file_write(t->instance, system, name,
						      "filter", filter) >= 0;
		ok = ok && !tracefs_event_enable(t->instance, system, name);
		if (!ok)
			failed(name);
	}
	free(filter);
	return ok;
}

static bool open_buffers(struct tracing *t)
{
	int size = 0;
	long cpu;

	t->nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	for (cpu = 0; cpu < t->nr_cpus; cpu++) {
		t->cpus = grow(t->cpus, cpu, sizeof(struct tracefs_cpu *));
		t->cpus[cpu] = tracefs_cpu_open(t->instance, cpu, true);
		if (!t->cpus[cpu])
			return failed("the buffer of a processor");
		if (tracefs_cpu_read_size(t->cpus[cpu]) > size)
			size = tracefs_cpu_read_size(t->cpus[cpu]);
	}
	t->page = xcalloc(1, size);
	t->buffer = kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST,
				  KBUFFER_ENDIAN_SAME_AS_HOST);
	return t->buffer || failed("the buffers");
}

struct tracing *tracing_start(long device, bool forks, uint64_t buffer)
{
	struct tracing *t = xcalloc(1, sizeof(*t));

	running = t;
	atexit(stop_running);
	if (make_instance(t, buffer) && find_events(t, forks) &&
	    open_buffers(t) && enable_events(t, device))
		return t;
	tracing_stop(t);
	return NULL;
}

static uint64_t value(struct tep_event *event, struct tep_record *record,
		      const char *name)
{
	unsigned long long number = 0;

	tep_get_field_val(NULL, event, name, record, &number, 0);
	return number;
}

static bool convert(const struct tracing *t, struct tep_record *record,
		    struct event *e)
{
	struct tep_event *event = tep_find_event_by_record(t->tep, record);

	for (e->kind = 0; e->kind < NR_EVENTS; e->kind++) {
		if (event && t->events[e->kind] == event)
			break;
	}
	e->time = record->ts;
	e->number = t->nr_read;
	e->thread = tep_data_pid(t->tep, record);
	switch (e->kind) {
	case EVENT_FORK:
		e->thread = value(event, record, "parent_pid");
		e->child = value(event, record, "child_pid");
		return true;
	case EVENT_REALLOC:
	case EVENT_ALLOC:
	case EVENT_FREE:
		if (e->kind == EVENT_REALLOC)
			e->from = value(event, record, "from");
		e->device = value(event, record, "device");
		e->context = value(event, record, "context");
		e->address = value(event, record, "address");
		e->bytes = value(event, record, "length");
		return true;
	default:
		return false;
	}
}

static void read_page(struct tracing *t,
		      void (*add)(void *arg, const struct event *e), void *arg)
{
	struct tep_record record = {};
	struct event e;
	int missed;

	kbuffer_load_subbuffer(t->buffer, t->page);
	missed = kbuffer_missed_events(t->buffer);
	if (missed)
		t->lost += missed > 0 ? missed : 1;
	for (record.data = kbuffer_read_event(t->buffer, &record.ts);
	     record.data;
	     record.data = kbuffer_next_event(t->buffer, &record.ts)) {
		record.size = kbuffer_event_size(t->buffer);
		memset(&e, 0, sizeof(e));
		if (convert(t, &record, &e))
			add(arg, &e);
		t->nr_read++;
	}
}

/* ENODEV: the processor has not been online yet. */
static bool is_empty(int err)
{
	return !err || err == EAGAIN || err == EINTR || err == ENODEV;
}

bool tracing_read(struct tracing *t,
		  void (*add)(void *arg, const struct event *e), void *arg)
{
	long cpu;
	int n;

	for (cpu = 0; cpu < t->nr_cpus; cpu++) {
		errno = 0;
		while ((n = tracefs_cpu_read(t->cpus[cpu], t->page, true)) > 0)
			read_page(t, add, arg);
		if (n < 0 && !is_empty(errno))
			return failed("the buffer of a processor");
	}
	return true;
}

uint64_t tracing_lost(const struct tracing *t)
{
	return t->lost;
}

void tracing_stop(struct tracing *t)
{
	long cpu;

	running = NULL;
	for (cpu = 0; t->cpus && cpu < t->nr_cpus && t->cpus[cpu]; cpu++)
		tracefs_cpu_close(t->cpus[cpu]);
	if (t->buffer)
		kbuffer_free(t->buffer);
	if (t->tep)
		tep_free(t->tep);
	if (t->instance) {
		tracefs_instance_destroy(t->instance);
		tracefs_instance_free(t->instance);
	}
	free(t->cpus);
	free(t->page);
	free(t);
}
