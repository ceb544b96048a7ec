/* SPDX-License-Identifier: GPL-2.0 */
/* accmem-tmem-replay: what its files share. */
#ifndef TMEM_REPLAY_H
#define TMEM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <tcgen05.h>

#define NONE UINT32_MAX /* no CTA, no step, no launch */
#define SMS_MAX 256u

/* what a CTA does, in the words of a trace */
enum step_kind {
	STEP_LAUNCH,
	STEP_ALLOC,
	STEP_USE,
	STEP_DEALLOC,
	STEP_RELINQUISH,
	STEP_TRIGGER,
	STEP_EXIT,
	STEP_KINDS
};

extern const char *const step_names[STEP_KINDS];

/**
 * struct step - one line of a trace
 * @kind: what is done
 * @cta: by which CTA
 * @after: ns since the CTA's step before was complete; of a launch, since the
 *	trace began, or since its launch could start
 * @argument: alloc, use: columns; dealloc: which of the CTA's allocs, from 0 on
 * @next: the CTA's next step, or NONE
 * @line: the order of steps at one time
 */
struct step {
	enum step_kind kind;
	uint32_t cta;
	uint64_t after;
	uint32_t argument;
	uint32_t next;
	uint32_t line;
};

/**
 * struct cta - a CTA of a trace
 * @name: its number in the trace
 * @launch: index into trace.launches
 * @peer: index of the other one of a pair, or NONE
 * @first: its launch
 * @last: its exit
 * @nr_allocs: how often it allocates
 * @nr_lines_of_use: 0 if the trace does not say what it uses
 */
struct cta {
	uint32_t name;
	uint32_t launch;
	uint32_t cluster;
	uint32_t rank;
	uint32_t sm;
	uint32_t group;
	uint32_t peer;
	uint32_t first;
	uint32_t last;
	uint32_t nr_allocs;
	uint32_t nr_lines_of_use;
};

/**
 * struct launch - a launch of a trace
 * @id: what the device is told
 * @behind: index of the launch that has to have triggered, or NONE
 * @nr_ctas: CTAs of it
 */
struct launch {
	uint64_t id;
	uint32_t behind;
	uint32_t nr_ctas;
};

/**
 * struct trace - a trace in memory
 * @name: of the file, without directory and extension
 * @sms: SMs
 * @columns: of an SM
 * @resident: CTAs that an SM runs at a time; 0 for any number
 */
struct trace {
	char *name;
	uint32_t sms;
	uint32_t columns;
	uint32_t resident;
	struct step *steps;
	uint32_t nr_steps;
	struct cta *ctas;
	uint32_t nr_ctas;
	struct launch *launches;
	uint32_t nr_launches;
};

/* when CTAs relinquish */
enum relinquish { RELINQUISH_TRACE, RELINQUISH_EARLY, RELINQUISH_NEVER };

struct options {
	const char *device;
	uint32_t bypass_bound;
	bool exclusive;
	enum relinquish relinquish;
	bool grants; /* print each */
};

/**
 * struct result - what a replay comes to
 * @grants: allocs granted
 * @failures: calls that failed, and CTAs that waited for ever
 * @ready_sum: ns from the start of each CTA to its first grant
 * @ready_max: the longest of these
 * @ready: CTAs that had one
 * @idle: columns x ns that were free while somebody on their SM waited for columns
 * @unused: columns x ns that were allocated and, by the trace, not in use
 * @capacity: columns x ns of all SMs
 * @end: ns, when the last CTA exited
 */
struct result {
	uint32_t grants;
	uint32_t failures;
	uint64_t ready_sum;
	uint64_t ready_max;
	uint32_t ready;
	uint64_t idle;
	uint64_t unused;
	uint64_t capacity;
	uint64_t end;
};

/* Says why, as printf() does, and ends the program. */
#define die(...)                                              \
	(fprintf(stderr, "accmem-tmem-replay: " __VA_ARGS__), \
	 fputc('\n', stderr), exit(2))

void *xcalloc(size_t n, size_t size);
void *grow(void *array, size_t n, size_t size);

/* These exit with a message that names file and line when it is no trace. */
void trace_load(struct trace *t, const char *path);
void trace_unload(struct trace *t);
/* Moves or removes each CTA's relinquish. */
void trace_relinquish(struct trace *t, enum relinquish when);

/* Turns ftrace's text into a trace, of one context; exits when it cannot. */
void record(FILE *in, FILE *out, uint64_t context, uint32_t columns);

/* Replays; 0, or -1 after a message when it could not be made. */
int play(const struct trace *t, const struct options *o, struct result *r);

/* --- a queue of times --- */

/**
 * struct moment - something is due
 * @time: when, in ns
 * @line: what comes first at one time
 * @cta: whose it is
 */
struct moment {
	uint64_t time;
	uint32_t line;
	uint32_t cta;
};

struct queue {
	struct moment *moments; /* a heap */
	size_t nr, room;
};

void queue_push(struct queue *q, struct moment m);
/* false when there is none */
bool queue_pop(struct queue *q, struct moment *m);

/* --- the device --- */

/* a context with the SMs of a trace */
struct device;

/* NULL after a message */
struct device *device_open(const struct trace *t, const struct options *o);
void device_close(struct device *d);
/* 0 or a negative errno */
int device_launch(struct device *d, const struct trace *t, uint32_t cta,
		  struct tcgen05_cta **result);
/* how many calls of its CTAs have ended since it was asked last */
uint64_t device_ended(struct device *d);
/* false while the CTA's call waits */
bool device_read(struct tcgen05_cta *cta, struct accmem_cta_completion *done);

#endif /* TMEM_REPLAY_H */
