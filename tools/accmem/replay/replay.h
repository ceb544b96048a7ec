/* SPDX-License-Identifier: GPL-2.0 */
/*
 * accmem replay: traces of allocations. The allocator of the driver runs in this process, or the
 * trace is replayed on a device.
 */
#ifndef ACCMEM_TOOL_REPLAY_H
#define ACCMEM_TOOL_REPLAY_H

#include <linux/types.h>

#include "../util.h"

#define GRANULE_MIN 4096ull

/**
 * struct event - one line of a trace
 * @bytes: requested bytes; 0 for a free
 * @id: number of the allocation, below trace.nr_ids
 */
struct event {
	u64 bytes;
	u32 id;
};

/**
 * struct trace - a trace in memory
 * @name: name of the file, without directory and extension
 * @peak: maximum of the live bytes, with each size rounded up to the granule
 * @peak_event: index of the first event that reaches @peak
 * @asked: live bytes after this event, without rounding
 */
struct trace {
	char *name;
	struct event *events;
	size_t nr_events;
	u32 nr_ids;
	u64 peak;
	size_t peak_event;
	u64 asked;
};

struct replay_options {
	const char *device; /* path; NULL: replay over lib/ */
	u64 capacity; /* 0: twice the peak */
	u64 granule;
	bool min_heap;
	bool owners; /* all traces take turns, each with an owner of its own */
	bool map;
	bool placement; /* over lib/: print the offset of each allocation */
};

/* Fields that a mode does not measure are left out of its line. */
struct replay_result {
	bool has_footprint, has_min_heap, has_time, has_failures, has_corrupt;
	u64 footprint;
	u64 peak; /* min_heap is compared with it */
	u64 min_heap;
	double ns_per_op;
	u64 failures;
	u64 corrupt;
};

static inline u64 round_up_to(u64 n, u64 unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Read a trace. Exit with a message that names file and line if it is not valid. */
void trace_load(struct trace *t, const char *path, u64 granule);
void trace_unload(struct trace *t);

/*
 * Replay the traces, and print a line for each. Return the exit status: 1 if an allocation
 * failed or a buffer was corrupt, 2 if a replay could not be made.
 */
int replay_traces(char **paths, unsigned int nr,
		  const struct replay_options *o);

/* The modes of replay. Each function returns 0, or -1 after a message on stderr. */
int replay_lib(const struct trace *t, const struct replay_options *o,
	       struct replay_result *r);
/* @nr traces take turns. */
int replay_min_heap(const struct trace *t, unsigned int nr,
		    const struct replay_options *o, struct replay_result *r);
int replay_device(const struct trace *t, const struct replay_options *o,
		  struct replay_result *r);

/* Picture of a range, with a cell for each equal share of it */
struct picture;
struct picture *picture_new(u64 size);
void picture_add(struct picture *p, u64 start, u64 size);
/* Print and free a picture. */
void picture_print(struct picture *p, const char *title);

#endif /* ACCMEM_TOOL_REPLAY_H */
