/* SPDX-License-Identifier: GPL-2.0 */
/* accmem-replay: what its files share. */
#ifndef REPLAY_H
#define REPLAY_H

#include <linux/types.h>

#define GRANULE_MIN 4096ull

/**
 * struct event - one line of a trace
 * @bytes: bytes asked for; 0 for a free
 * @id: which allocation, below trace.nr_ids
 */
struct event {
	u64 bytes;
	u32 id;
};

/**
 * struct trace - a trace in memory
 * @name: of the file, without directory and extension
 * @peak: most bytes live at once, each size rounded up to the granule
 * @peak_event: index of the event that first reached it
 * @asked: bytes asked for at that moment
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

struct options {
	const char *device; /* NULL: over lib/ */
	u64 capacity; /* 0: twice the peak */
	u64 granule;
	bool min_heap;
	bool owners; /* all traces at once, each by an owner of its own */
	bool map;
	bool placement; /* over lib/: print the offset of each allocation */
};

/* Fields that a mode does not measure are left out of its line. */
struct result {
	bool has_footprint, has_min_heap, has_time, has_failures, has_corrupt;
	u64 footprint;
	u64 peak; /* what min_heap is held against */
	u64 min_heap;
	double ns_per_op;
	u64 failures;
	u64 corrupt;
};

static inline u64 round_up_to(u64 n, u64 unit)
{
	return (n + unit - 1) / unit * unit;
}

u64 now_ns(void);
/* Of this thread: what another process takes does not count. */
u64 cpu_ns(void);
/* "replay: gpt: <text>" on stderr, every five seconds at the most */
void progress(const struct trace *t, const char *what, u64 done, u64 of);
void *xcalloc(size_t n, size_t size);

/* Exits with a message that names file and line when it is no trace. */
void trace_load(struct trace *t, const char *path, u64 granule);
void trace_unload(struct trace *t);

/* One mode each; they return 0, or -1 after a message on stderr. */
int replay_lib(const struct trace *t, const struct options *o,
	       struct result *r);
/* Of @nr traces at once */
int replay_min_heap(const struct trace *t, unsigned int nr,
		    const struct options *o, struct result *r);
int replay_device(const struct trace *t, const struct options *o,
		  struct result *r);

/* A picture of a range, a cell for an equal share of it */
struct picture;
struct picture *picture_new(u64 size);
void picture_add(struct picture *p, u64 start, u64 size);
/* Prints it, used bytes and all, and frees it. */
void picture_print(struct picture *p, const char *title);

#endif /* REPLAY_H */
