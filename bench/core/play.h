/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop that every allocator of the kernel is measured in, and its clock.
 * It is inlined into each adapter, so that the calls in it are direct ones.
 */
#ifndef BENCH_PLAY_H
#define BENCH_PLAY_H

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/time64.h>

#include "core.h"

/* Number of that call on x86-64 hosts */
#define BENCH_HOST_CLOCK_GETTIME 228

/* User Mode Linux has no get_cycles(), and a slow clock. */
static inline u64 bench_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return ktime_get_ns();
#endif
}

/*
 * For a whole round. User Mode Linux is a process of a machine that has others
 * to run: it asks for its own processor time, of which its kernel knows nothing.
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

/* Makes an accmem range in *@ns nanoseconds, and takes it away again. */
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
