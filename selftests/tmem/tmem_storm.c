// SPDX-License-Identifier: GPL-2.0
/*
 * A storm on four SMs: 64 threads launch CTAs, alone and in pairs, allocate
 * more than there is, give back, relinquish and exit at random, with and
 * without deadlines, under signals, while processes that do the same are
 * killed; in both disciplines. At the end nobody waits, every column is free,
 * and each way in which a wait can end has been seen but the context's end and
 * a deadlock of which a peer is told in its sleep, which comes once in many
 * thousand calls (tmem_pairs has that).
 *
 * 3,000 calls are made in each discipline, and more until all has been seen.
 * Where ACCMEM_SCALE is above 100 (make soak: 10000), it is the per cent of
 * 10,000: a million. ACCMEM_SEED repeats a run, as far as the scheduler lets it.
 */
#include <sched.h>

#include "tmem_util.h"

#define THREADS 64
#define SMS 4
#define CALLS 10000
#define CALLS_USUAL 3000
#define LONGER 20 /* times that, at most, until everything has been seen */
#define BACKLOG 4 /* allocations that a thread remembers */

struct worker {
	pthread_t thread;
	struct accmem_context *ctx;
	unsigned int n;
	unsigned int calls;
	uint64_t random;
	struct tcgen05_cta *cta;
	uint32_t at[BACKLOG], columns[BACKLOG];
	unsigned int held;
	uint32_t last; /* columns of the last alloc, which must not grow */
	bool relinquished;
	const char *wrong;
	int ret;
	bool done;
};

static pthread_barrier_t begin;
static bool seen; /* each way in which a wait can end */

static uint32_t below(struct worker *w, uint32_t n)
{
	return accmem_random(&w->random) % n;
}

/* pairs of threads: 0 and 1, 4 and 5, ... are peers; the others are alone */
static bool is_paired(unsigned int n)
{
	return n % 4 < 2;
}

static void launch(struct worker *w)
{
	bool pair = is_paired(w->n);
	struct tcgen05_place place = {
		.launch = pair ? 2 : 1,
		.cluster = w->n / 4,
		.rank = w->n % 4,
		.sm = pair ? (w->n / 4 + w->n % 2) % SMS : w->n % SMS,
		.cta_group = pair ? 2 : 1,
	};
	int ret = tcgen05_launch(w->ctx, &place, &w->cta);

	w->held = 0;
	w->last = 512;
	w->relinquished = false;
	if (!ret)
		return;
	w->cta = NULL;
	/* the peer has not noticed yet that we exited */
	if (ret != -EEXIST) {
		w->wrong = "launch";
		w->ret = ret;
	}
	usleep(1000);
}

static void leave(struct worker *w)
{
	tcgen05_exit(w->cta);
	w->cta = NULL;
}

/* none, mostly: then something else has to end the wait */
static uint64_t deadline(struct worker *w)
{
	switch (below(w, 8)) {
	case 0:
		return 1;
	case 1:
	case 2:
		return tmem_in_ms(below(w, 4));
	case 3:
		return tmem_in_ms(20);
	default:
		return 0;
	}
}

static bool alloc_may_say(const struct worker *w, int ret)
{
	switch (ret) {
	case 0:
	case -EAGAIN:
	case -ETIMEDOUT:
	case -EINTR:
	case -EDEADLK:
	case -ENOSPC:
		return true;
	case -ERANGE:
		return w->last < 512;
	case -EPERM:
		return w->relinquished;
	case -EPIPE:
	case -EPROTO:
	case -EBADR:
		return is_paired(w->n);
	default:
		return false;
	}
}

/* what somebody does with columns takes a while */
static void use(struct worker *w)
{
	if (below(w, 4))
		sched_yield();
	else
		usleep(below(w, 300));
}

static void alloc(struct worker *w)
{
	uint32_t columns = 32u << below(w, 5), at;
	int ret;

	/* seldom the rule's breach, mostly what it allows */
	while (columns > w->last && below(w, 16))
		columns /= 2;
	if (!below(w, 8))
		ret = tcgen05_try_alloc(w->cta, &at, columns);
	else
		ret = tcgen05_alloc_until(w->cta, &at, columns, deadline(w));
	if (!alloc_may_say(w, ret)) {
		w->wrong = "alloc";
		w->ret = ret;
	} else if (!ret) {
		w->at[w->held] = at;
		w->columns[w->held++] = columns;
		w->last = columns;
		use(w);
	} else if (ret == -EPIPE) {
		leave(w);
	}
}

static void dealloc(struct worker *w)
{
	unsigned int i = below(w, w->held);
	int ret;

	ret = tcgen05_dealloc_until(w->cta, w->at[i], w->columns[i],
				    deadline(w));
	if (!ret) {
		w->held--;
		w->at[i] = w->at[w->held];
		w->columns[i] = w->columns[w->held];
	} else if (ret == -EPIPE && is_paired(w->n)) {
		leave(w);
	} else if (!is_paired(w->n) ||
		   (ret != -ETIMEDOUT && ret != -EINTR && ret != -EPROTO &&
		    ret != -EBADR)) {
		w->wrong = "dealloc";
		w->ret = ret;
	}
}

static void one_call(struct worker *w)
{
	if (!w->cta) {
		launch(w);
		return;
	}
	/* not for long: it has nothing left to do but give back */
	if (w->relinquished && below(w, 2)) {
		leave(w);
		return;
	}
	switch (below(w, 48)) {
	case 0:
	case 1:
		leave(w);
		break;
	case 2:
		w->relinquished = true;
		tcgen05_relinquish_alloc_permit(w->cta);
		break;
	case 3:
		tcgen05_dealloc_until(w->cta, below(w, 1024), 32, 1);
		/* it may have been one of ours: forget them all */
		leave(w);
		break;
	default:
		if (w->held == BACKLOG || (w->held && below(w, 5) < 2))
			dealloc(w);
		else
			alloc(w);
	}
}

static void *work(void *argument)
{
	struct worker *w = argument;
	unsigned int i;

	pthread_barrier_wait(&begin);
	for (i = 0; i < w->calls * LONGER && !w->wrong; i++) {
		if (i >= w->calls && __atomic_load_n(&seen, __ATOMIC_ACQUIRE))
			break;
		one_call(w);
	}
	tcgen05_exit(w->cta);
	__atomic_store_n(&w->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* --- processes that are killed --- */

/* shared with the process that kills */
struct killer {
	struct accmem_context *ctx;
	pid_t pid;
	uint64_t random;
	unsigned int kills;
	bool stop;
};

static void *work_for_ever(void *argument)
{
	struct worker *w = argument;

	for (;;)
		one_call(w);
	return NULL;
}

/* one CTA, or both of a pair */
static void live(const struct killer *k)
{
	unsigned int i, pair = k->kills % 2;
	struct worker w[2] = {};

	for (i = 0; i < 2; i++) {
		w[i].ctx = k->ctx;
		w[i].n = THREADS + 4 * (k->kills % SMS) + (pair ? i : 2 + i);
		w[i].random = k->random + i;
	}
	if (pair && pthread_create(&w[1].thread, NULL, work_for_ever, &w[1]))
		_exit(1);
	work_for_ever(&w[0]);
}

static void kill_them(struct killer *k)
{
	pid_t pid;

	while (!__atomic_load_n(&k->stop, __ATOMIC_ACQUIRE)) {
		accmem_random(&k->random);
		pid = fork();
		if (!pid)
			live(k);
		if (pid < 0) {
			usleep(1000);
			continue;
		}
		usleep(1000 + accmem_random(&k->random) % 20000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		k->kills++;
	}
}

/* before there are threads, which would make each fork long */
static struct killer *start_killer(struct accmem_context *ctx, uint64_t seed)
{
	struct killer *k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	if (k == MAP_FAILED)
		return NULL;
	k->ctx = ctx;
	k->random = seed;
	pid = fork();
	if (!pid) {
		kill_them(k);
		_exit(0);
	}
	k->pid = pid;
	return pid > 0 ? k : NULL;
}

/* --- */

FIXTURE(tmem_storm)
{
	struct accmem_context *ctx;
};

FIXTURE_VARIANT(tmem_storm)
{
	uint32_t exclusive;
	uint32_t bound;
};

FIXTURE_VARIANT_ADD(tmem_storm, shared)
{
	.bound = 8,
};

FIXTURE_VARIANT_ADD(tmem_storm, exclusive)
{
	.exclusive = 1,
	.bound = 8,
};

FIXTURE_SETUP(tmem_storm)
{
	struct rlimit files = { 4096, 4096 };

	accmem_catch(SIGUSR1, 0);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	self->ctx = tmem_open(SMS, 0, variant->exclusive, variant->bound);
	ASSERT_NE(NULL, self->ctx);
}

FIXTURE_TEARDOWN(tmem_storm)
{
	accmem_close(self->ctx);
}

static int64_t count(struct accmem_context *ctx, const char *what)
{
	char name[48];

	snprintf(name, sizeof(name), "tmem-%s", what);
	return accmem_fdinfo(accmem_fd(ctx), name);
}

#define KILLS 3 /* at least */

/* how many of each there have to be, so that a calm is none of the arbiter's */
struct need {
	const char *what;
	unsigned int calls; /* one of so many calls, or 0: one in all */
	bool shared_only;
};

static const struct need needs[] = {
	{ .what = "woken-grant", .calls = 50 },
	{ .what = "woken-timeout", .calls = 1000 },
	{ .what = "woken-exit", .calls = 1000 },
	{ .what = "woken-signal" },
	{ .what = "misuses" },
	{ .what = "bypasses", .calls = 1000, .shared_only = true },
	{ .what = "deadlocks", .shared_only = true },
};

static int64_t least(const struct need *n, bool exclusive, unsigned int calls)
{
	if (n->shared_only && exclusive)
		return 0;
	return n->calls ? calls / n->calls : 1;
}

static bool is_a_storm(const struct killer *killer, bool exclusive,
		       unsigned int calls)
{
	unsigned int i;

	if (__atomic_load_n(&killer->kills, __ATOMIC_RELAXED) < KILLS)
		return false;
	for (i = 0; i < ARRAY_SIZE(needs); i++)
		if (count(killer->ctx, needs[i].what) <
		    least(&needs[i], exclusive, calls))
			return false;
	return true;
}

/* signals, until all have done their calls, and everything has been seen */
static void disturb(struct worker *workers, const struct killer *killer,
		    bool exclusive, unsigned int calls, uint64_t *random)
{
	unsigned int i = 0, signals = 0;

	while (i < THREADS) {
		if (__atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE)) {
			i++;
			continue;
		}
		if (!(++signals % 64) && is_a_storm(killer, exclusive, calls))
			__atomic_store_n(&seen, true, __ATOMIC_RELEASE);
		pthread_kill(workers[accmem_random(random) % THREADS].thread,
			     SIGUSR1);
		usleep(1000);
	}
}

static void say_counts(struct __test_metadata *_metadata,
		       struct accmem_context *ctx, unsigned int kills)
{
	TH_LOG("%lld grants, %lld waits", (long long)count(ctx, "grants"),
	       (long long)count(ctx, "waits"));
	TH_LOG("woken: %lld granted, %lld late, %lld signals, %lld exits, %lld EDEADLK",
	       (long long)count(ctx, "woken-grant"),
	       (long long)count(ctx, "woken-timeout"),
	       (long long)count(ctx, "woken-signal"),
	       (long long)count(ctx, "woken-exit"),
	       (long long)count(ctx, "woken-deadlock"));
	TH_LOG("%lld bypasses, %lld forced, %lld EDEADLK in all, %lld misuses, %u processes killed",
	       (long long)count(ctx, "bypasses"),
	       (long long)count(ctx, "forced"),
	       (long long)count(ctx, "deadlocks"),
	       (long long)count(ctx, "misuses"), kills);
}

TEST_F_TIMEOUT(tmem_storm, p2_nobody_is_lost, 100000)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	unsigned int i, calls = accmem_scale(CALLS);
	struct accmem_cta_query query;
	uint64_t seed = accmem_seed();
	struct tcgen05_cta *cta;
	struct killer *killer;
	int status;

	if (calls <= CALLS)
		calls = CALLS_USUAL;
	TH_LOG("seed %llu, %u calls", (unsigned long long)seed, calls);
	killer = start_killer(self->ctx, ~seed);
	ASSERT_NE(NULL, killer);
	ASSERT_EQ(0, pthread_barrier_init(&begin, NULL, THREADS + 1));
	for (i = 0; i < THREADS; i++) {
		workers[i].ctx = self->ctx;
		workers[i].n = i;
		workers[i].calls = calls / THREADS + 1;
		workers[i].random = seed + i;
		ASSERT_EQ(0, pthread_create(&workers[i].thread, NULL, work,
					    &workers[i]));
	}
	pthread_barrier_wait(&begin);
	disturb(workers, killer, variant->exclusive, calls, &seed);
	__atomic_store_n(&killer->stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(killer->pid, waitpid(killer->pid, &status, 0));
	EXPECT_EQ(0, status);
	for (i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		EXPECT_EQ(NULL, workers[i].wrong) {
			TH_LOG("thread %u: %s: %d", i, workers[i].wrong,
			       workers[i].ret);
		}
	}
	say_counts(_metadata, self->ctx, killer->kills);
	EXPECT_LE(KILLS, killer->kills);
	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		EXPECT_LE(least(&needs[i], variant->exclusive, calls),
			  count(self->ctx, needs[i].what)) {
			TH_LOG("%s", needs[i].what);
		}
	}
	if (variant->exclusive) {
		EXPECT_EQ(0, count(self->ctx, "deadlocks"));
	}
	EXPECT_EQ(0, count(self->ctx, "ctas"));
	EXPECT_EQ(0, count(self->ctx, "waiting"));
	EXPECT_TRUE(tmem_woken_by_strays_only(self->ctx));
	for (i = 0; i < SMS; i++) {
		cta = tmem_single(self->ctx, i);
		ASSERT_EQ(0, tcgen05_query(cta, &query));
		EXPECT_EQ(512, query.free);
		tcgen05_exit(cta);
	}
	free(workers);
}

ACCMEM_HARNESS_MAIN
