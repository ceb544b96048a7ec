/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Benchmarks of range allocators: types and functions that the files share. A
 * workload is a list of events, made before any time is measured. Every allocator
 * replays the list over a range of the same size. The module measures times. The
 * program words.c, which is compiled with the same workloads, counts words of
 * metadata.
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
 * @id: number of the block
 * @granules: size of the allocation in granules; 0: the block is freed
 */
struct bench_event {
	u32 id;
	u32 granules;
};

/**
 * struct bench_workload - a list of events
 * @name: name of the workload
 * @align: alignment of every block in bytes
 * @event: the calls; a block whose allocation failed may be freed
 * @nr_events: number of entries in @event
 * @nr_setup: number of events at the start that are not measured
 * @nr_ids: all ids are below this number
 * @room: number of entries allocated for @event; 0 if @event is constant
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

/* An allocated block; the first word is 0 if the allocation failed. */
union bench_block {
	struct {
		u64 size;
		u64 start;
	};
	struct list_head list;
};

/**
 * struct bench_run - replay of a part of a workload, and its results
 * @instance: instance of the allocator
 * @workload: the workload
 * @block: block of each id
 * @latency: out: clock ticks of each call; NULL if single calls are not measured
 * @from: index of the first event
 * @to: index after the last event
 * @failures: number of allocations that failed
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
 * @name: name in the results
 * @align_max: largest alignment that the allocator supports
 * @create: create an instance over BENCH_RANGE; ERR_PTR on failure
 * @destroy: destroy an instance that has no blocks
 * @play: replay the events [from, to) of a run
 * @alloc: allocate a block; false if no free range fits
 * @free: free a block; no effect if the block is not allocated
 * @start: return the lowest address of a block
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
 * bench_workload_make() - generate a workload
 * @w: out: the workload
 * @index: index of the workload, from 0
 * @seed: seed of the random choices
 * @percent: per cent of the usual number of calls; a trace is always complete
 *
 * Return: 0; -ENOENT if @index is after the last workload; -ENOMEM.
 */
int bench_workload_make(struct bench_workload *w, unsigned int index, u64 seed,
			unsigned int percent);
void bench_workload_free(struct bench_workload *w);

#endif /* BENCH_CORE_H */
