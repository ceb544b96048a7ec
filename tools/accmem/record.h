/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of accmem record. */
#ifndef ACCMEM_RECORD_H
#define ACCMEM_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum event_kind {
	EVENT_ALLOC,
	EVENT_FREE,
	EVENT_REALLOC,
	EVENT_FORK,
	NR_EVENTS,
};

/**
 * struct event - a trace event
 * @time: CLOCK_MONOTONIC in ns
 * @number: position in the order in which the events were read
 * @thread: the thread that caused the event
 * @child: EVENT_FORK: the new thread
 * @device: number of the device
 * @context: number of the context
 * @from: EVENT_REALLOC: address before
 * @address: address of the buffer
 * @bytes: requested bytes
 */
struct event {
	uint64_t time;
	uint64_t number;
	enum event_kind kind;
	pid_t thread;
	pid_t child;
	unsigned int device;
	uint64_t context;
	uint64_t from;
	uint64_t address;
	uint64_t bytes;
};

/* tracing.c: an instance of tracefs with a buffer for each processor */
struct tracing;

/* @device: number of a device, or -1. Return NULL after a message on an error. */
struct tracing *tracing_start(long device, bool forks, uint64_t buffer);
/*
 * Pass the events that are in the buffers to @add, processor by processor. Return false after
 * a message on an error.
 */
bool tracing_read(struct tracing *t,
		  void (*add)(void *arg, const struct event *e), void *arg);
/* Number of lost events; at least 1 if the kernel does not know the number. */
uint64_t tracing_lost(const struct tracing *t);
void tracing_stop(struct tracing *t);

/* record_events.c: events in the order of their times */
struct events;

struct events *events_new(void);
void events_add(struct events *s, const struct event *e);
/*
 * Pass the events before the time @before to @take, oldest first. Return the number of
 * events that are older than an event of an earlier call; these are not passed.
 */
uint64_t events_take(struct events *s, uint64_t before,
		     void (*take)(void *arg, const struct event *e), void *arg);
void events_free(struct events *s);

/* record_lines.c: the lines of a trace */
struct lines;

/**
 * struct totals - what a trace contains
 * @allocs: number of allocations
 * @frees: number of frees
 * @live: live bytes, with each size rounded up to 4 KiB
 * @peak: maximum of the live bytes
 */
struct totals {
	uint64_t allocs;
	uint64_t frees;
	uint64_t live;
	uint64_t peak;
};

struct lines *lines_new(FILE *out);
/* Record only the allocations of this thread, and of the threads that descend from it. */
void lines_only(struct lines *l, pid_t thread);
void lines_add(struct lines *l, const struct event *e);
struct totals lines_totals(const struct lines *l);
void lines_free(struct lines *l);

/*
 * tmem/record.c: convert the events of Tensor Memory, in the text format of ftrace, to a trace
 * of one context, the first if @context is 0. Exit on an error.
 */
void tmem_record(FILE *in, FILE *out, const char *device, uint64_t context,
		 uint32_t columns);

#endif /* ACCMEM_RECORD_H */
