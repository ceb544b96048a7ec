/* SPDX-License-Identifier: GPL-2.0 */
/* Traces of Tensor Memory, which accmem record writes and accmem replay reads. */
#ifndef ACCMEM_TOOL_TMEM_H
#define ACCMEM_TOOL_TMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <tcgen05.h>

#include "../util.h"

#define NONE UINT32_MAX /* no CTA, no step, no launch */
#define SMS_MAX 256u
#define CTAS_MAX (1u << 24) /* of a trace */

/* Steps of a CTA, in the words of a trace */
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
 * @kind: kind of the step
 * @cta: index of the CTA
 * @after: ns since the CTA's previous step was complete; for a launch, ns since the
 *	trace began, or since the launch was allowed to start
 * @argument: alloc, use: columns; dealloc: index of the CTA's alloc, from 0 on
 * @next: index of the CTA's next step, or NONE
 * @line: line in the file; orders steps that are due at the same time
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
 * @name: number of the CTA in the trace
 * @launch: index in trace.launches
 * @peer: index of the other CTA of a pair, or NONE
 * @first: index of the first step, the launch
 * @last: index of the last step, the exit
 * @nr_allocs: number of allocs
 * @nr_lines_of_use: number of `use` lines; 0 if all columns count as in use
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
 * @id: launch id that is passed to the device
 * @behind: index of the launch that must trigger before, or NONE
 * @nr_ctas: number of CTAs of the launch
 */
struct launch {
	uint64_t id;
	uint32_t behind;
	uint32_t nr_ctas;
};

/**
 * struct tmem_trace - a trace in memory
 * @name: name of the file, without directory and extension
 * @sms: number of SMs
 * @columns: columns of an SM
 * @resident: number of CTAs that an SM runs at a time; 0 for any number
 */
struct tmem_trace {
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

/* The time at which CTAs relinquish */
enum relinquish { RELINQUISH_TRACE, RELINQUISH_EARLY, RELINQUISH_NEVER };

struct tmem_options {
	const char *device;
	uint32_t bypass_bound;
	bool exclusive;
	enum relinquish relinquish;
	bool grants; /* print each grant */
	bool one; /* only with these values, and not in all ways */
};

/**
 * struct tmem_result - figures of a replay
 * @grants: number of granted allocs
 * @failures: number of failed calls and of CTAs that waited without end
 * @ready_sum: sum over all CTAs of the ns from the start to the first grant
 * @ready_max: maximum of these times
 * @ready: number of CTAs with a grant
 * @idle: columns x ns that were free while a CTA on their SM waited for columns
 * @unused: columns x ns that were allocated, but not in use in the trace
 * @capacity: columns x ns of all SMs
 * @end: time of the last exit in ns
 */
struct tmem_result {
	uint32_t grants;
	uint32_t failures;
	uint64_t ready_sum;
	uint64_t ready_max;
	uint32_t ready;
	double idle;
	double unused;
	double capacity;
	uint64_t end;
};

/* Print a message in the format of printf(), and exit. */
#define die(...) \
	(fprintf(stderr, "accmem: " __VA_ARGS__), fputc('\n', stderr), exit(2))

/* Read a trace. Exit with a message that names file and line if it is not valid. */
void tmem_trace_load(struct tmem_trace *t, const char *path);
void tmem_trace_unload(struct tmem_trace *t);
/* Move or remove the relinquish of each CTA. */
void tmem_trace_relinquish(struct tmem_trace *t, enum relinquish when);

/* Replay the traces, and print a table. Return the exit status. */
int tmem_replay_traces(char **paths, unsigned int nr,
		       const struct tmem_options *o);

/* Replay a trace. Return 0, or -1 after a message if the device cannot be set up. */
int tmem_play(const struct tmem_trace *t, const struct tmem_options *o,
	      struct tmem_result *r);

/* --- a queue of times --- */

/**
 * struct moment - time at which a step of a CTA is due
 * @time: time in ns
 * @line: line of the step; orders moments with the same time
 * @cta: index of the CTA
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
/* Remove the first moment. Return false if there is none. */
bool queue_pop(struct queue *q, struct moment *m);

/* --- the device --- */

/* A context with the SMs of a trace */
struct device;

/* Return NULL after a message on an error. */
struct device *device_open(const struct tmem_trace *t,
			   const struct tmem_options *o);
void device_close(struct device *d);
/* Return 0 or a negative errno value. */
int device_launch(struct device *d, const struct tmem_trace *t, uint32_t cta,
		  struct tcgen05_cta **result);
/* Return the number of calls that have ended since the last call of this function. */
uint64_t device_ended(struct device *d);
/* Read the completion of a CTA's call. Return false while the call waits. */
bool device_read(struct tcgen05_cta *cta, struct accmem_cta_completion *done);

#endif /* ACCMEM_TOOL_TMEM_H */
