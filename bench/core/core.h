/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Benchmarks of range allocators: what the files share. A workload is a list
 * of events, made before anything is timed, that every allocator replays over
 * a range of the same size. The workloads are also compiled into a program,
 * which counts where this module measures.
 */
#ifndef BENCH_CORE_H
#define BENCH_CORE_H

#include <linux/bits.h>
#include <linux/list.h>
#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/slab.h>

#define bench_calloc(n, size) kvcalloc(n, size, GFP_KERNEL)
#define bench_release(p) kvfree(p)
#else
#include <stdlib.h>

#define bench_calloc(n, size) calloc(n, size)
#define bench_release(p) free((void *)(p))
#endif

#define BENCH_GRANULE 4096ull
#define BENCH_RANGE BIT_ULL(32)
#define BENCH_SEED 1

/**
 * struct bench_event - one call
 * @id: which block
 * @granules: how large it shall be; 0: it is freed
 */
struct bench_event {
	u32 id;
	u32 granules;
};

/**
 * struct bench_workload - what is replayed
 * @name: of the workload
 * @align: alignment of every block in bytes
 * @event: the calls; a block whose allocation failed may be freed
 * @nr_events: how many
 * @nr_setup: so many of them come before what is measured
 * @nr_ids: ids are below it
 * @room: of @event; 0 when that is constant
 */
struct bench_workload {
	const char *name;
	u64 align;
	const struct bench_event *event;
	u32 nr_events;
	u32 nr_setup;
	u32 nr_ids;
	u32 room;
};

/* What an allocator gave; the first word is 0 when there is nothing. */
union bench_block {
	struct {
		u64 size;
		u64 start;
	};
	struct list_head list;
};

/**
 * struct bench_run - a part of a workload, and what came of it
 * @instance: of the allocator
 * @workload: what is replayed
 * @block: of each id
 * @latency: clock ticks of each call, NULL not to measure them
 * @from: first event
 * @to: event after the last
 * @failures: allocations that were refused
 */
struct bench_run {
	void *instance;
	const struct bench_workload *workload;
	union bench_block *block;
	u32 *latency;
	u32 from;
	u32 to;
	u32 failures;
};

/**
 * struct bench_impl - an allocator
 * @name: in the results
 * @align_max: largest alignment that it knows
 * @create: makes an instance over BENCH_RANGE, ERR_PTR on failure
 * @destroy: of an instance without blocks
 * @play: runs the events [from, to) of a run
 * @alloc: one block, false when there was no room
 * @free: one block, or nothing when there is none
 * @start: lowest address of a block
 */
struct bench_impl {
	const char *name;
	u64 align_max;
	void *(*create)(void);
	void (*destroy)(void *instance);
	void (*play)(struct bench_run *run);
	bool (*alloc)(void *instance, u64 size, u64 align,
		      union bench_block *block);
	void (*free)(void *instance, union bench_block *block);
	u64 (*start)(const union bench_block *block);
};

extern const struct bench_impl bench_accmem;
extern const struct bench_impl bench_accmem_nocache;
extern const struct bench_impl bench_gpu_buddy;
extern const struct bench_impl bench_gpu_buddy_scattered;
extern const struct bench_impl bench_genalloc_first;
extern const struct bench_impl bench_genalloc_best;

/**
 * bench_workload_make() - make a workload
 * @w: it
 * @index: which one, from 0
 * @seed: of what is random in it
 * @percent: of the usual number of calls; traces are always whole
 *
 * Return: 0; -ENOENT after the last; -ENOMEM
 */
int bench_workload_make(struct bench_workload *w, unsigned int index, u64 seed,
			unsigned int percent);
void bench_workload_free(struct bench_workload *w);

#endif /* BENCH_CORE_H */
