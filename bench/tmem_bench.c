// SPDX-License-Identifier: GPL-2.0
/*
 * Costs of the Tensor Memory arbiter, compared with floors of the same boot.
 *
 *   tmem_bench calls      time counts instructions (tools/vm --icount):
 *			   alloc + dealloc over two null ioctls on the same file,
 *			   a turn by the arbiter over a turn by a futex, a queued
 *			   alloc and its completion over alloc + dealloc, and a
 *			   read of the map page
 *   tmem_bench sharing    16 CTAs on one SM, with the arbiter's waits and with
 *			   polling, and one large request among small ones
 *
 * Each goal is a line `goal=NAME value=X limit=Y result=met|short`.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tcgen05.h>

#define ROUNDS 20000
#define CTAS 16
#define MANY 1000 /* CTAs in one thread */
#define MANY_SMS 64
#define MANY_ROUNDS 10
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

/* Return a counter of this context; exit if there is none. */
static unsigned long long counter(const char *name)
{
	unsigned long long count = 0;
	char path[64], line[128];
	size_t length = strlen(name);
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", accmem_fd(ctx));
	file = fopen(path, "r");
	if (!file)
		check(-errno, path);
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, length) || line[length] != ':')
			continue;
		count = strtoull(line + length + 1, NULL, 10);
		found = true;
	}
	fclose(file);
	if (!found)
		check(-ENOENT, name);
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
 * Two threads that take turns, on three SMs. The thread with the turn has all columns of
 * two SMs, the other thread those of the third. To pass the turn, a thread deallocates the
 * columns that it has had for longer. It then waits for the columns of the third SM.
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

/* Return the instructions from one turn to the next. */
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

/* --- queued calls: one thread runs many CTAs, whose completions one eventfd counts */

static struct tcgen05_cta *many[MANY];
static int many_done;

static void launch_many(struct accmem_context *of, uint32_t sms)
{
	struct tcgen05_place place = { .launch = 2, .cta_group = 1 };
	int i;

	many_done = eventfd(0, EFD_NONBLOCK);
	for (i = 0; i < MANY; i++) {
		place.sm = i % sms;
		check(tcgen05_launch(of, &place, &many[i]), "launch");
		check(tcgen05_set_eventfd(many[i], many_done), "eventfd");
		check(fcntl(tcgen05_fd(many[i]), F_SETFL, O_NONBLOCK), "fcntl");
	}
}

static void exit_many(void)
{
	int i;

	for (i = 0; i < MANY; i++)
		tcgen05_exit(many[i]);
	close(many_done);
}

static uint32_t next_address(struct tcgen05_cta *cta)
{
	struct accmem_cta_completion done;

	check(tcgen05_next_completion(cta, &done), "completion");
	check(done.result, "queued alloc");
	return done.address;
}

/* Measure a queued alloc and its completion. Each alloc is granted at once. */
static double queued_at_once(void)
{
	static uint32_t at[MANY];
	uint64_t start = now(), took;
	eventfd_t count;
	int i;

	for (i = 0; i < MANY; i++)
		check(tcgen05_queue_alloc(many[i], 32, 0, i), "queue");
	check(eventfd_read(many_done, &count) || count != MANY ? -EIO : 0,
	      "count");
	for (i = 0; i < MANY; i++)
		at[i] = next_address(many[i]);
	took = now() - start;
	for (i = 0; i < MANY; i++)
		check(tcgen05_dealloc(many[i], at[i], 32), "dealloc");
	return (double)took / MANY;
}

/*
 * Measure a queued alloc, its completion, a read of the eventfd and the dealloc. Each
 * alloc waits for the dealloc of the CTA before.
 */
static double queued_in_line(void)
{
	uint64_t start = now();
	eventfd_t count;
	int i;

	for (i = 0; i < MANY; i++)
		check(tcgen05_queue_alloc(many[i], 512, 0, i), "queue");
	for (i = 0; i < MANY; i++) {
		check(eventfd_read(many_done, &count) || count != 1 ? -EIO : 0,
		      "count");
		check(tcgen05_dealloc(many[i], next_address(many[i]), 512),
		      "dealloc");
	}
	return (double)(now() - start) / MANY;
}

/* Measure the same with epoll instead of the eventfd. */
static double queued_in_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), i;
	struct tcgen05_cta *cta;
	uint64_t start;

	for (i = 0; i < MANY; i++) {
		event.data.ptr = many[i];
		check(epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(many[i]),
				&event),
		      "epoll");
	}
	start = now();
	for (i = 0; i < MANY; i++)
		check(tcgen05_queue_alloc(many[i], 512, 0, i), "queue");
	for (i = 0; i < MANY; i++) {
		check(epoll_wait(epoll, &event, 1, -1) != 1, "epoll");
		cta = event.data.ptr;
		check(tcgen05_dealloc(cta, next_address(cta), 512), "dealloc");
		/* otherwise epoll would report that the CTA can allocate */
		check(epoll_ctl(epoll, EPOLL_CTL_DEL, tcgen05_fd(cta), NULL),
		      "epoll");
	}
	close(epoll);
	return (double)(now() - start) / MANY;
}

static struct accmem_context *open_with(uint32_t sms)
{
	struct tcgen05_config config = {
		.nr_sms = sms,
		.bypass_bound = ACCMEM_TMEM_BYPASS_BOUND,
	};
	struct accmem_context *of;

	check(accmem_open(NULL, &of), "open");
	check(tcgen05_setup(of, &config), "setup");
	return of;
}

static void bench_queued(double pair)
{
	struct rlimit limit = { 4 * MANY, 4 * MANY };
	struct accmem_context *of = open_with(MANY_SMS);
	double took = 0;
	int i;

	check(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
	launch_many(of, MANY_SMS);
	queued_at_once();
	for (i = 0; i < MANY_ROUNDS; i++)
		took += queued_at_once() / MANY_ROUNDS;
	exit_many();
	accmem_close(of);
	printf("a queued alloc and its completion, of %u CTAs: %.0f\n", MANY,
	       took);
	goal("tmem-queued", took / pair, 1.5);

	of = open_with(1);
	launch_many(of, 1);
	/* 512 columns first: allocs of a CTA do not grow */
	queued_in_line();
	took = queued_in_line();
	printf("the same, of %u CTAs that wait in line for one SM, with dealloc: %.0f\n",
	       MANY, took);
	printf("and with epoll: %.0f\n", queued_in_epoll());
	exit_many();
	accmem_close(of);
}

/* --- the map page */

static double look(const struct accmem_tmem_map *map)
{
	uint64_t start = now(), sum = 0;
	uint32_t i;

	for (i = 0; i < 10 * ROUNDS; i++) {
		uint32_t column = i % 512;

		/* the compiler knows neither the value of column nor the use of sum */
		__asm__ volatile("" : "+r"(column));
		sum = map ? tcgen05_owner(map, column) : column;
		__asm__ volatile("" : : "r"(sum));
	}
	return (double)(now() - start) / (10 * ROUNDS);
}

static void bench_map(struct tcgen05_cta *cta)
{
	const struct accmem_tmem_map *map;
	double floor, took;

	check(tcgen05_map(cta, &map), "map");
	look(map);
	floor = look(NULL);
	took = look(map);
	tcgen05_unmap(map);
	printf("the owner of a column: %.1f, the loop without: %.1f\n", took,
	       floor);
	goal("tmem-map-read", took - floor, 20);
}

static void bench_handoff(void)
{
	unsigned long long switches = context_switches();
	double hand, floor;

	floor = play(take_futex_turns);
	printf("a turn by futex: %.0f, %.2f context switches\n", floor,
	       (double)(context_switches() - switches) / (2 * ROUNDS));
	switches = context_switches();
	hand = play(take_turns);
	printf("a turn by the arbiter: %.0f, %.2f context switches\n", hand,
	       (double)(context_switches() - switches) / (2 * ROUNDS));
	goal("tmem-handoff", hand / floor, 1.25);
}

static void bench_calls(void)
{
	struct tcgen05_cta *a = launch(0);
	double null, pair, mapped;

	/* the first calls fill the caches of the kernel and of the emulator */
	null_ioctls(tcgen05_fd(a));
	alloc_dealloc(a);
	null = null_ioctls(tcgen05_fd(a));
	pair = alloc_dealloc(a);
	printf("two null ioctls: %.0f, alloc + dealloc: %.0f\n", null, pair);
	goal("tmem-uncontended", pair / null, 2.2);
	bench_queued(pair);
	bench_handoff();
	bench_map(a);
	mapped = alloc_dealloc(a);
	printf("alloc + dealloc once the SM has a map page: %.0f\n", mapped);
	tcgen05_exit(a);
	printf("a turn by the arbiter, with one page of three: %.0f\n",
	       play(take_turns));
}

/* --- sharing -------------------------------------------------------------- */

static atomic_bool stop, polling;
static atomic_ullong served, served_large;
static uint64_t longest; /* longest wait of the large request, in ns */

static int get(struct tcgen05_cta *cta, uint32_t *at, uint32_t columns)
{
	int ret;

	if (!polling) {
		check(tcgen05_alloc(cta, at, columns), "alloc");
		return 0;
	}
	do {
		ret = tcgen05_try_alloc(cta, at, columns);
	} while (ret == -EAGAIN && !stop);
	if (!stop)
		check(ret, "alloc");
	return ret;
}

/* The accelerator uses the columns; the CPU sleeps. */
static void use(void)
{
	usleep(USE_US);
}

static void use_columns(struct tcgen05_cta *cta, uint32_t columns)
{
	uint32_t at;

	while (!stop) {
		if (get(cta, &at, columns))
			break;
		use();
		check(tcgen05_dealloc(cta, at, columns), "dealloc");
		served++;
	}
}

static void *share(void *cta)
{
	use_columns(cta, 128);
	return NULL;
}

static void *churn(void *cta)
{
	use_columns(cta, 32);
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

/* Run the CTAs for SHARING_MS. Return the CPU seconds. */
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
	double cpu, waits, polls, bypasses;

	cpu = run(false, share, share);
	report("16 CTAs of 128 columns, waiting", cpu);
	waits = cpu / served;
	cpu = run(true, share, share);
	report("16 CTAs of 128 columns, polling", cpu);
	polls = cpu / served;
	check(served ? 0 : -EIO, "no alloc was served");
	goal("tmem-cpu-per-alloc-to-polling", waits / polls, 1.0);

	bypasses = counter("accmem-tmem-bypasses");
	cpu = run(false, want_all, churn);
	report_large("512 columns among 15 CTAs of 32, waiting", cpu);
	bypasses = counter("accmem-tmem-bypasses") - bypasses;
	goal("tmem-passes-per-large",
	     served_large ? bypasses / served_large : 1e9,
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
