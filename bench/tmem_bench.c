// SPDX-License-Identifier: GPL-2.0
/*
 * What the Tensor Memory arbiter costs, against floors of the same boot.
 *
 *   tmem_bench calls      where time counts instructions (tools/vm --icount):
 *			   alloc + dealloc against two null ioctls on the same
 *			   file, and a hand-off against a futex's
 *   tmem_bench sharing    16 CTAs on one SM, with the arbiter's waits and with
 *			   polling, and one large request among small ones
 *
 * Each goal is a line `goal=NAME value=X limit=Y result=met|short`.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tcgen05.h>

#define ROUNDS 20000
#define CTAS 16
#define SHARING_MS 3000
#define USE_US 200

static struct accmem_context *ctx;

static void check(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "tmem_bench: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void goal(const char *name, double value, double limit)
{
	printf("goal=%s value=%.3f limit=%.3f result=%s\n", name, value, limit,
	       value <= limit ? "met" : "short");
}

static struct tcgen05_cta *launch(uint32_t sm)
{
	struct tcgen05_place place = { .launch = 1, .sm = sm, .cta_group = 1 };
	struct tcgen05_cta *cta;

	check(tcgen05_launch(ctx, &place, &cta), "launch");
	return cta;
}

/* a counter of this context */
static unsigned long long counter(const char *name)
{
	unsigned long long count = 0;
	char path[64], line[128];
	size_t length = strlen(name);
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", accmem_fd(ctx));
	file = fopen(path, "r");
	if (!file)
		check(-errno, path);
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, name, length))
			count = strtoull(line + length + 1, NULL, 10);
	}
	fclose(file);
	return count;
}

/* --- calls ---------------------------------------------------------------- */

static unsigned long long context_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static double null_ioctls(int fd)
{
	uint64_t start = now();
	int i;

	for (i = 0; i < ROUNDS; i++) {
		ioctl(fd, _IO(0, 0), NULL);
		ioctl(fd, _IO(0, 0), NULL);
	}
	return (double)(now() - start) / ROUNDS;
}

static double alloc_dealloc(struct tcgen05_cta *cta)
{
	uint64_t start = now();
	uint32_t at;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		check(tcgen05_alloc(cta, &at, 128), "alloc");
		check(tcgen05_dealloc(cta, at, 128), "dealloc");
	}
	return (double)(now() - start) / ROUNDS;
}

/*
 * Two threads that take turns: a turn is passed, and the next one waited for.
 * There are three SMs. Who has the turn holds two of them; giving back the one
 * held for longer passes the turn, and the one that the other holds besides is
 * what to wait for.
 */
struct player {
	struct tcgen05_cta *cta[3];
	uint32_t *mine, *theirs;
	int number;
};

static void hold(struct player *p, int sm)
{
	uint32_t at;

	check(tcgen05_alloc(p->cta[sm], &at, 512), "alloc");
}

static void *take_turns(void *argument)
{
	struct player *p = argument;
	int old = p->number ? 2 : 0, new = p->number ? 0 : 1, third, i;

	if (p->number)
		hold(p, 0);
	for (i = 0; i < ROUNDS; i++) {
		third = 3 - old - new;
		check(tcgen05_dealloc(p->cta[old], 0, 512), "dealloc");
		if (i + 1 < ROUNDS || !p->number)
			hold(p, third);
		old = new;
		new = third;
	}
	return NULL;
}

static long futex(uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL,
		       NULL, 0);
}

static void *take_futex_turns(void *argument)
{
	struct player *p = argument;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		while (!__atomic_load_n(p->mine, __ATOMIC_ACQUIRE))
			futex(p->mine, FUTEX_WAIT, 0);
		__atomic_store_n(p->mine, 0, __ATOMIC_RELAXED);
		__atomic_store_n(p->theirs, 1, __ATOMIC_RELEASE);
		futex(p->theirs, FUTEX_WAKE, 1);
	}
	return NULL;
}

/* instructions from one turn to the next */
static double play(void *(*turns)(void *))
{
	uint32_t words[2][32] = {};
	struct player players[2] = {
		{ .mine = words[0], .theirs = words[1], .number = 0 },
		{ .mine = words[1], .theirs = words[0], .number = 1 },
	};
	pthread_t thread[2];
	uint64_t start;
	int i;

	for (i = 0; i < 6; i++)
		players[i / 3].cta[i % 3] = launch(i % 3);
	hold(&players[0], 0);
	hold(&players[0], 1);
	hold(&players[1], 2);
	words[0][0] = 1;
	start = now();
	for (i = 0; i < 2; i++)
		check(-pthread_create(&thread[i], NULL, turns, &players[i]),
		      "thread");
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	start = now() - start;
	for (i = 0; i < 6; i++)
		tcgen05_exit(players[i / 3].cta[i % 3]);
	return (double)start / (2 * ROUNDS);
}

static void bench_calls(void)
{
	struct tcgen05_cta *a = launch(0);
	unsigned long long switches;
	double null, pair, hand, floor;

	/* once for the caches of the kernel and of the emulator */
	null_ioctls(tcgen05_fd(a));
	alloc_dealloc(a);
	null = null_ioctls(tcgen05_fd(a));
	pair = alloc_dealloc(a);
	printf("two null ioctls: %.0f, alloc + dealloc: %.0f\n", null, pair);
	goal("tmem-uncontended", pair / null, 2.2);
	tcgen05_exit(a);

	switches = context_switches();
	floor = play(take_futex_turns);
	printf("a turn by futex: %.0f, %.2f context switches\n", floor,
	       (double)(context_switches() - switches) / (2 * ROUNDS));
	switches = context_switches();
	hand = play(take_turns);
	printf("a turn by the arbiter: %.0f, %.2f context switches\n", hand,
	       (double)(context_switches() - switches) / (2 * ROUNDS));
	goal("tmem-handoff", hand / floor, 1.25);
}

/* --- sharing -------------------------------------------------------------- */

static atomic_bool stop, polling;
static atomic_ullong served, served_large;
static uint64_t longest; /* wait of the large one, in ns */

static int get(struct tcgen05_cta *cta, uint32_t *at, uint32_t columns)
{
	int ret;

	if (!polling)
		return tcgen05_alloc(cta, at, columns);
	do {
		ret = tcgen05_try_alloc(cta, at, columns);
	} while (ret == -EAGAIN && !stop);
	return ret;
}

/* the accelerator works on the columns; the CPU does not */
static void use(void)
{
	usleep(USE_US);
}

static void *share(void *argument)
{
	struct tcgen05_cta *cta = argument;
	uint32_t at;

	while (!stop) {
		if (get(cta, &at, 128))
			break;
		use();
		check(tcgen05_dealloc(cta, at, 128), "dealloc");
		served++;
	}
	return NULL;
}

static void *churn(void *argument)
{
	struct tcgen05_cta *cta = argument;
	uint32_t at;

	while (!stop) {
		if (get(cta, &at, 32))
			break;
		use();
		check(tcgen05_dealloc(cta, at, 32), "dealloc");
		served++;
	}
	return NULL;
}

static void *want_all(void *argument)
{
	struct tcgen05_cta *cta = argument;
	uint32_t at;

	while (!stop) {
		uint64_t start = now();
		int ret = get(cta, &at, 512);

		if (now() - start > longest)
			longest = now() - start;
		if (ret)
			break;
		check(tcgen05_dealloc(cta, at, 512), "dealloc");
		served_large++;
		usleep(5000);
	}
	return NULL;
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 +
	       usage.ru_stime.tv_sec + usage.ru_stime.tv_usec / 1e6;
}

/* CPU seconds */
static double run(bool poll, void *(*first)(void *), void *(*others)(void *))
{
	struct tcgen05_cta *cta[CTAS];
	pthread_t thread[CTAS];
	double cpu = cpu_seconds();
	int i;

	stop = false;
	polling = poll;
	served = 0;
	served_large = 0;
	longest = 0;
	for (i = 0; i < CTAS; i++) {
		cta[i] = launch(0);
		check(-pthread_create(&thread[i], NULL, i ? others : first,
				      cta[i]),
		      "thread");
	}
	usleep(SHARING_MS * 1000);
	stop = true;
	for (i = 0; i < CTAS; i++) {
		pthread_join(thread[i], NULL);
		tcgen05_exit(cta[i]);
	}
	return cpu_seconds() - cpu;
}

static void report(const char *how, double cpu)
{
	printf("%s: %llu allocs of small ones, %.2f s of CPU time\n", how,
	       (unsigned long long)served, cpu);
}

static void report_large(const char *how, double cpu)
{
	report(how, cpu);
	printf("%s: %llu allocs of 512 columns, longest wait %.1f ms\n", how,
	       (unsigned long long)served_large, longest / 1e6);
}

static void bench_sharing(void)
{
	double cpu, waits, polls;

	cpu = run(false, share, share);
	report("16 CTAs of 128 columns, waiting", cpu);
	waits = cpu / served;
	cpu = run(true, share, share);
	report("16 CTAs of 128 columns, polling", cpu);
	polls = cpu / served;
	goal("tmem-cpu-per-alloc-to-polling", waits / polls, 1.0);

	cpu = run(false, want_all, churn);
	report_large("512 columns among 15 CTAs of 32, waiting", cpu);
	goal("tmem-passes-per-large",
	     served_large ? (double)counter("accmem-tmem-bypasses") / served_large : 1e9,
	     ACCMEM_TMEM_BYPASS_BOUND);
	cpu = run(true, want_all, churn);
	report_large("512 columns among 15 CTAs of 32, polling", cpu);
}

int main(int argc, char **argv)
{
	struct tcgen05_config config = {
		.nr_sms = 3,
		.bypass_bound = ACCMEM_TMEM_BYPASS_BOUND,
	};

	check(accmem_open(NULL, &ctx), "open");
	check(tcgen05_setup(ctx, &config), "setup");
	if (argc == 2 && !strcmp(argv[1], "calls"))
		bench_calls();
	else if (argc == 2 && !strcmp(argv[1], "sharing"))
		bench_sharing();
	else
		check(-EINVAL, "calls or sharing");
	accmem_close(ctx);
	return 0;
}
