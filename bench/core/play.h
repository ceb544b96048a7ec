/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop that replays a run, and its clock. The loop is inlined into the adapter of
 * each allocator, so that its calls of the allocator are direct calls.
 */
#ifndef BENCH_PLAY_H
#define BENCH_PLAY_H

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/time64.h>

#include "core.h"

/* Number of the system call clock_gettime() on x86-64 hosts */
#define BENCH_HOST_CLOCK_GETTIME 228

/* Return the ticks of a fast clock: User Mode Linux has no get_cycles(). */
static inline u64 bench_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return ktime_get_ns();
#endif
}

/*
 * Return the nanoseconds of a clock for whole rounds. User Mode Linux is a process of the
 * host, which also runs other processes. Here the clock is the processor time of this
 * process, which only the host knows.
 */
static inline u64 bench_ns(void)
{
#if defined(CONFIG_UML) && defined(__x86_64__)
	struct __kernel_timespec t;
	long ret = BENCH_HOST_CLOCK_GETTIME;

	asm volatile("syscall"
		     : "+a" (ret)
		     : "D" ((long)CLOCK_THREAD_CPUTIME_ID), "S" (&t)
		     : "rcx", "r11", "memory");
	return ret ? 0 : t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
#else
	return ktime_get_ns();
#endif
}

/* Create and destroy an accmem range; *@ns is the time of the creation in ns. */
int bench_create_range(u64 size, u64 *ns);

static __always_inline void
bench_play(struct bench_run *run,
	   bool (*alloc)(void *, u64, u64, union bench_block *),
	   void (*free)(void *, union bench_block *))
{
	const struct bench_workload *w = run->workload;
	u64 before = 0;
	u32 i;

	for (i = run->from; i < run->to; i++) {
		const struct bench_event *e = &w->event[i];
		union bench_block *block = &run->block[e->id];

		if (run->latency)
			before = bench_ticks();
		if (!e->granules)
			free(run->instance, block);
		else if (!alloc(run->instance, e->granules * BENCH_GRANULE,
				w->align, block))
			run->failures++;
		if (run->latency)
			run->latency[i - run->from] = bench_ticks() - before;
	}
}

#endif /* BENCH_PLAY_H */
