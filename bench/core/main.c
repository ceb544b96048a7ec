// SPDX-License-Identifier: GPL-2.0
/*
 * Comparison of allocators. The module replays every workload over every allocator.
 * The allocators take turns round by round, and each workload is replayed in several
 * passes, so that a slow minute of the machine slows few rounds of each workload. Each
 * result is a line in the kernel's log:
 *
 *   bench=WORKLOAD impl=NAME ns=MEDIAN p999=NS failures=N
 *   whole=WORKLOAD impl=NAME rounds=N fragmented=N misaligned=N
 *   create=1t ns=MEDIAN
 *
 * ns is the time of a round divided by the number of its allocation requests: the time
 * of an allocation and its free. p999 is the 99.9th percentile of the single calls of an
 * extra round. The module runs all workloads when it is loaded.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/sort.h>

#include "play.h"

#define ROUNDS_MAX 31
#define ROUNDS_MIN 3
#define PASSES_MAX 5
#define WORKLOADS_MAX 16

static unsigned int rounds = 15;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "Rounds at most that are measured, 1 to 31 (15)");

static unsigned int budget_ms = 1000;
module_param(budget_ms, uint, 0444);
MODULE_PARM_DESC(budget_ms,
		 "No more rounds after so many milliseconds in one (1000)");

static unsigned int passes = 5;
module_param(passes, uint, 0444);
MODULE_PARM_DESC(passes, "Passes through all workloads, 1 to 5 (5)");

static unsigned int percent = 100;
module_param(percent, uint, 0444);
MODULE_PARM_DESC(percent, "Per cent of the usual number of calls (100)");

static unsigned long long seed = BENCH_SEED;
module_param(seed, ullong, 0444);
MODULE_PARM_DESC(seed, "Seed of the workloads (1)");

static bool poweroff;
module_param(poweroff, bool, 0444);
MODULE_PARM_DESC(poweroff, "Switch off at the end, where there is no init");

static const struct bench_impl *const impls[] = {
	&bench_accmem,
	&bench_accmem_nocache,
	&bench_gpu_buddy,
	&bench_gpu_buddy_scattered,
	&bench_genalloc_first,
	&bench_genalloc_best,
};

/**
 * struct lane - state and results of one allocator in one workload
 * @impl: the allocator; NULL if it does not support the alignment of the workload
 * @instance: instance of the allocator; NULL between passes
 * @samples: time of a pair in each measured round, in tenths of a nanosecond
 * @nr_samples: number of entries in @samples
 * @spent: sum of the measured rounds in nanoseconds
 * @p999: 99.9th percentile of single calls in nanoseconds
 * @failures: number of allocations that failed in a round
 * @rounds: number of rounds, measured or not
 * @fragmented: number of rounds after which the range was not one free run
 * @misaligned: number of blocks without the required alignment
 */
struct lane {
	const struct bench_impl *impl;
	void *instance;
	u64 samples[ROUNDS_MAX];
	unsigned int nr_samples;
	u64 spent;
	u64 p999;
	u32 failures;
	unsigned int rounds;
	unsigned int fragmented;
	unsigned int misaligned;
};

/* All allocators in one workload */
struct lanes {
	struct lane of[ARRAY_SIZE(impls)];
};

/* Clock ticks in a microsecond, and clock ticks that one reading of the clock takes */
static u64 ticks_per_us;
static u64 ticks_overhead;

static int by_value_u64(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static int by_value_u32(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return (x > y) - (x < y);
}

static u64 median(u64 *samples, unsigned int n)
{
	sort(samples, n, sizeof(*samples), by_value_u64, NULL);
	return samples[n / 2];
}

static void clock_measure(void)
{
	u64 start = ktime_get_ns(), ticks = bench_ticks(), now, samples[31];
	unsigned int i;

	do {
		now = ktime_get_ns();
	} while (now - start < 50 * NSEC_PER_MSEC);
	ticks_per_us = div64_u64((bench_ticks() - ticks) * 1000, now - start);
	for (i = 0; i < ARRAY_SIZE(samples); i++) {
		ticks = bench_ticks();
		samples[i] = bench_ticks() - ticks;
	}
	ticks_overhead = median(samples, ARRAY_SIZE(samples));
	pr_notice("clock ticks_per_us=%llu ticks_overhead=%llu\n", ticks_per_us,
		  ticks_overhead);
}

static u64 ns_of(u64 ticks)
{
	return ticks_per_us ? div64_u64(ticks * 1000, ticks_per_us) : 0;
}

static u32 allocations(const struct bench_workload *w)
{
	u32 i, n = 0;

	for (i = w->nr_setup; i < w->nr_events; i++)
		n += !!w->event[i].granules;
	return n;
}

static void check_alignment(struct lane *lane, const struct bench_run *run)
{
	const struct bench_workload *w = run->workload;
	u32 i;

	for (i = 0; i < w->nr_ids; i++) {
		if (run->block[i].size &&
		    lane->impl->start(&run->block[i]) & (w->align - 1))
			lane->misaligned++;
	}
}

/* Free all blocks. The range must then be one free run. */
static void empty(struct lane *lane, struct bench_run *run)
{
	union bench_block all = {};
	u32 i;

	for (i = 0; i < run->workload->nr_ids; i++)
		lane->impl->free(lane->instance, &run->block[i]);
	if (!lane->impl->alloc(lane->instance, BENCH_RANGE, BENCH_GRANULE,
			       &all))
		lane->fragmented++;
	lane->impl->free(lane->instance, &all);
	lane->rounds++;
}

/* Play one round. Return the nanoseconds of its measured part. */
static u64 play_round(struct lane *lane, const struct bench_workload *w,
		      union bench_block *block, u32 *latency)
{
	struct bench_run run = {
		.instance = lane->instance,
		.workload = w,
		.block = block,
		.to = w->nr_setup,
	};
	u64 ns;

	lane->impl->play(&run);
	run.from = w->nr_setup;
	run.to = w->nr_events;
	run.failures = 0;
	run.latency = latency;
	ns = bench_ns();
	lane->impl->play(&run);
	ns = bench_ns() - ns;
	lane->failures = max(lane->failures, run.failures);
	empty(lane, &run);
	cond_resched();
	return ns;
}

/*
 * Play a round that is not measured, and check the alignment of the blocks, which the
 * measured rounds do not check.
 */
static void play_warm(struct lane *lane, const struct bench_workload *w,
		      union bench_block *block)
{
	struct bench_run run = {
		.instance = lane->instance,
		.workload = w,
		.block = block,
		.to = w->nr_events / 2,
	};

	lane->impl->play(&run);
	check_alignment(lane, &run);
	empty(lane, &run);
	cond_resched();
}

static void play_single_calls(struct lane *lane,
			      const struct bench_workload *w,
			      union bench_block *block, u32 *latency)
{
	u32 n = w->nr_events - w->nr_setup, at = n - n / 1000 - 1;

	play_round(lane, w, block, latency);
	sort(latency, n, sizeof(*latency), by_value_u32, NULL);
	lane->p999 = latency[at] > ticks_overhead ?
			     ns_of(latency[at] - ticks_overhead) : 0;
}

/* Return the share of @all that is due at the end of @pass. */
static u64 share(u64 all, unsigned int pass)
{
	return DIV_ROUND_UP(all * (pass + 1), passes);
}

static bool wants_more(const struct lane *lane, unsigned int pass)
{
	if (!lane->instance || lane->nr_samples >= share(rounds, pass))
		return false;
	return lane->nr_samples < share(ROUNDS_MIN, pass) ||
	       lane->spent < share(budget_ms * NSEC_PER_MSEC, pass);
}

/* The allocators take turns, so that a slow moment of the machine slows all of them. */
static void play_rounds(struct lane *lanes, const struct bench_workload *w,
			unsigned int pass, union bench_block *block)
{
	u32 n = allocations(w);
	bool again = true;
	unsigned int i;
	u64 ns;

	while (again) {
		again = false;
		for (i = 0; i < ARRAY_SIZE(impls); i++) {
			struct lane *lane = &lanes[i];

			if (!wants_more(lane, pass))
				continue;
			ns = play_round(lane, w, block, NULL);
			lane->spent += ns;
			lane->samples[lane->nr_samples++] = div_u64(10 * ns, n);
			again = true;
		}
	}
}

static void report(struct lane *lane, const struct bench_workload *w)
{
	u64 tenths = median(lane->samples, lane->nr_samples);

	pr_notice("bench=%s impl=%s ns=%llu.%llu p999=%llu failures=%u\n",
		  w->name, lane->impl->name, tenths / 10, tenths % 10,
		  lane->p999, lane->failures);
	pr_notice("whole=%s impl=%s rounds=%u fragmented=%u misaligned=%u\n",
		  w->name, lane->impl->name, lane->rounds, lane->fragmented,
		  lane->misaligned);
}

static int lane_open(struct lane *lane, const struct bench_impl *impl,
		     const struct bench_workload *w)
{
	void *instance;

	if (w->align > impl->align_max)
		return 0;
	instance = impl->create();
	if (IS_ERR(instance))
		return PTR_ERR(instance);
	lane->impl = impl;
	lane->instance = instance;
	return 0;
}

static void lane_close(struct lane *lane)
{
	if (lane->instance)
		lane->impl->destroy(lane->instance);
	lane->instance = NULL;
}

static int run_workload(struct lane *lanes, const struct bench_workload *w,
			unsigned int pass)
{
	union bench_block *block = bench_calloc(w->nr_ids, sizeof(*block));
	u32 *latency = bench_calloc(w->nr_events, sizeof(*latency));
	int err = block && latency ? 0 : -ENOMEM;
	unsigned int i;

	for (i = 0; !err && i < ARRAY_SIZE(impls); i++)
		err = lane_open(&lanes[i], impls[i], w);
	for (i = 0; !err && i < ARRAY_SIZE(impls); i++) {
		if (!lanes[i].instance)
			continue;
		play_warm(&lanes[i], w, block);
		if (!pass)
			play_single_calls(&lanes[i], w, block, latency);
	}
	if (!err)
		play_rounds(lanes, w, pass, block);
	for (i = 0; i < ARRAY_SIZE(impls); i++) {
		lane_close(&lanes[i]);
		if (!err && lanes[i].impl && pass == passes - 1)
			report(&lanes[i], w);
	}
	bench_release(latency);
	bench_release(block);
	return err;
}

/*
 * The first creation is not measured: in User Mode Linux, it makes the host allocate
 * the pages.
 */
static int measure_creation(void)
{
	u64 samples[ROUNDS_MIN], ns;
	unsigned int i;
	int err = bench_create_range(BIT_ULL(40), &ns);

	for (i = 0; !err && i < ARRAY_SIZE(samples); i++)
		err = bench_create_range(BIT_ULL(40), &samples[i]);
	if (!err)
		pr_notice("create=1t ns=%llu\n",
			  median(samples, ARRAY_SIZE(samples)));
	return err;
}

static int run_pass(struct lanes *lanes, unsigned int pass)
{
	struct bench_workload w;
	unsigned int i;
	int err = 0;

	for (i = 0; !err; i++) {
		err = bench_workload_make(&w, i, seed, percent);
		if (err)
			break;
		pr_notice("# pass %u of %u, %s: %u calls a round\n", pass + 1,
			  passes, w.name, w.nr_events - w.nr_setup);
		err = i < WORKLOADS_MAX ?
			      run_workload(lanes[i].of, &w, pass) : -E2BIG;
		bench_workload_free(&w);
	}
	return err == -ENOENT ? 0 : err;
}

static int run_all(void)
{
	struct lanes *lanes;
	unsigned int pass;
	int err;

	lanes = bench_calloc(WORKLOADS_MAX, sizeof(*lanes));
	if (!lanes)
		return -ENOMEM;
	err = measure_creation();
	for (pass = 0; !err && pass < passes; pass++)
		err = run_pass(lanes, pass);
	bench_release(lanes);
	return err;
}

static int __init bench_init(void)
{
	int err;

	rounds = clamp(rounds, 1U, (unsigned int)ROUNDS_MAX);
	passes = clamp(passes, 1U, (unsigned int)PASSES_MAX);
	percent = clamp(percent, 1U, 100U);
	pr_notice("# seed=%llu rounds=%u budget_ms=%u passes=%u percent=%u\n",
		  seed, rounds, budget_ms, passes, percent);
	clock_measure();
	err = run_all();
	pr_notice("done=%d\n", err);
	if (poweroff)
		kernel_power_off();
	return err;
}

static void __exit bench_exit(void)
{
}

late_initcall(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Range allocators side by side");
MODULE_LICENSE("GPL");
