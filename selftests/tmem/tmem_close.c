// SPDX-License-Identifier: GPL-2.0
/*
 * The last close of a CTA while one of its calls waits. When the waiting process
 * closes its last descriptor, the wait ends and the CTA exits. Other descriptors and
 * other processes change nothing. A second group of tests unmaps the destination of a
 * waiting alloc: no column stays allocated.
 */
#include "tmem_util.h"

TMEM_FIXTURE(tmem_close, 64, 512, 0)

static int64_t ctas(struct accmem_context *ctx)
{
	return accmem_fdinfo(accmem_fd(ctx), "tmem-ctas");
}

TEST_F(tmem_close, p2_closing_the_cta_ends_its_wait)
{
	struct tmem_call call;

	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 32));
	exits(&self->b);
	EXPECT_EQ(-ECANCELED, tmem_finish(&call));
	EXPECT_EQ(5, ctas(self->ctx));
	EXPECT_EQ(0, accmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
	EXPECT_EQ(1, accmem_fdinfo(accmem_fd(self->ctx), "tmem-woken-exit"));
}

TEST_F(tmem_close, p2_another_descriptor_keeps_the_wait)
{
	struct tmem_call call;
	int fd = dup(tcgen05_fd(self->b));

	ASSERT_LE(0, fd);
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_EQ(0, close(fd));
	EXPECT_TRUE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&call));
}

/*
 * A child that closes its copy of the descriptor does not end a wait of the parent,
 * whether it was forked before the wait or during it.
 */
TEST_F(tmem_close, p2_another_process_that_closes_keeps_the_wait)
{
	struct tmem_call call;
	pid_t pid;
	int i;

	for (i = 0; i < 2; i++) {
		if (i) {
			ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		}
		pid = fork();
		if (!pid) {
			tcgen05_exit(self->b);
			_exit(0);
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		if (!i) {
			ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
		}
		EXPECT_TRUE(tmem_state(self->b) & ACCMEM_CTA_WAITING);
		ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
		EXPECT_EQ(0, tmem_finish(&call));
		ASSERT_EQ(0, tcgen05_dealloc(self->b, call.address, 512));
		ASSERT_EQ(0, tcgen05_alloc(self->a, &self->at, 512));
	}
}

#define MANY_FILES 20000

static uint64_t time_of_thread(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static long sleeps_of_thread(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

#define A_MOMENT_NS 1000000

/* an alloc that waits until its deadline; false on any other result */
static bool wait_a_moment(struct tcgen05_cta *cta)
{
	uint32_t at;

	return tcgen05_alloc_until(cta, &at, 32, tmem_now() + A_MOMENT_NS) ==
	       -ETIMEDOUT;
}

/*
 * a queued alloc that waits until its deadline, and the read of its completion;
 * repeated if the deadline passes before the call is queued
 */
static bool read_a_moment(struct tcgen05_cta *cta)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.flags = ACCMEM_CTA_QUEUED,
					.columns = 32 };
	struct accmem_cta_completion done;
	int err, fd = tcgen05_fd(cta);

	do {
		req.deadline_ns = tmem_now() + A_MOMENT_NS;
		err = accmem_ioctl(fd, ACCMEM_IOC_CTA_ALLOC, &req);
	} while (err == -ETIMEDOUT);
	return !err && read(fd, &done, sizeof(done)) == sizeof(done) &&
	       done.result == -ETIMEDOUT;
}

/*
 * The least processor time in ns of 100 waits, or of 100 reads; 0 if one failed. Those
 * that do not sleep, since their deadline has passed before, are not counted.
 */
static uint64_t least_cost(struct tcgen05_cta *cta, bool reads)
{
	uint64_t start, took, least = 0;
	long slept;
	int i;

	for (i = 0; i < 100; i++) {
		slept = sleeps_of_thread();
		start = time_of_thread();
		if (!(reads ? read_a_moment(cta) : wait_a_moment(cta)))
			return 0;
		took = time_of_thread() - start;
		if (sleeps_of_thread() != slept && (!least || took < least))
			least = took;
	}
	return least;
}

static bool open_many_files(void)
{
	struct rlimit many = { MANY_FILES + 100, MANY_FILES + 100 };
	int i, fd = open("/dev/null", O_RDWR);

	if (fd < 0 || setrlimit(RLIMIT_NOFILE, &many))
		return false;
	for (i = 0; i < MANY_FILES; i++)
		if (dup(fd) < 0)
			return false;
	return true;
}

/*
 * After a child has closed its copy, the driver searches the process's files once, and
 * not in each wait.
 */
TEST_F(tmem_close, p2_what_a_child_closes_makes_no_wait_dearer)
{
	uint64_t before[2], after[2];
	struct tcgen05_cta *c;
	pid_t pid;
	int i;

	ASSERT_TRUE(open_many_files());
	c = tmem_single(self->ctx, 0);
	ASSERT_NE(NULL, c);
	ASSERT_LT(MANY_FILES, tcgen05_fd(c));
	for (i = 0; i < 2; i++)
		before[i] = least_cost(c, i);
	pid = fork();
	if (!pid) {
		tcgen05_exit(c);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	for (i = 0; i < 2; i++) {
		after[i] = least_cost(c, i);
		ASSERT_TRUE(before[i] && after[i]);
		TH_LOG("%s: %d us, then %d us", i ? "read" : "wait",
		       (int)(before[i] / 1000), (int)(after[i] / 1000));
		EXPECT_LE(after[i], 3 * before[i]);
	}
	tcgen05_exit(c);
}

/*
 * A process closes its last descriptor of a CTA that another process has, too. Its wait
 * ends, and the CTA does not exit.
 */
TEST_F(tmem_close, p2_a_cta_that_another_process_has_lives_on)
{
	int up[2], down[2];
	struct tmem_call call;
	uint32_t at;
	pid_t pid;
	char c;

	ASSERT_EQ(0, pipe(up));
	ASSERT_EQ(0, pipe(down));
	pid = fork();
	if (!pid) {
		tcgen05_exit(self->a);
		if (read(down[0], &c, 1) != 1 ||
		    tcgen05_alloc_until(self->b, &at, 32, 1) != -ETIMEDOUT)
			_exit(1);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 32));
	exits(&self->b);
	EXPECT_EQ(-ECANCELED, tmem_finish(&call));
	EXPECT_EQ(6, ctas(self->ctx));
	ASSERT_EQ(1, write(down[1], "", 1));
	ASSERT_EQ(pid, waitpid(pid, &up[0], 0));
	EXPECT_EQ(0, up[0]);
	EXPECT_EQ(5, ctas(self->ctx));
}

static bool closer_go;

static unsigned int closer_delay;

static void spin(unsigned int n)
{
	while (n--)
		__asm__ volatile("" ::: "memory");
}

static void *close_it(void *argument)
{
	while (!__atomic_load_n(&closer_go, __ATOMIC_ACQUIRE))
		;
	spin(closer_delay);
	tcgen05_exit(argument);
	return NULL;
}

/* The close comes at any point of the call. The call always ends. */
TEST_F(tmem_close, p2_a_close_that_races_the_call_leaves_no_wait)
{
	unsigned int i, rounds = accmem_scale(1000), cancelled = 0;
	struct accmem_cta_alloc req = { .size = sizeof(req), .columns = 32 };
	uint64_t random = accmem_seed();
	struct tcgen05_cta *c;
	pthread_t thread;
	uint32_t at;
	int fd, ret;

	req.destination = (uintptr_t)&at;
	for (i = 0; i < rounds; i++) {
		c = tmem_single(self->ctx, 0);
		ASSERT_NE(NULL, c);
		fd = tcgen05_fd(c);
		closer_delay = accmem_random(&random) % 2000;
		__atomic_store_n(&closer_go, false, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_create(&thread, NULL, close_it, c));
		__atomic_store_n(&closer_go, true, __ATOMIC_RELEASE);
		spin(accmem_random(&random) % 2000);
		ret = accmem_ioctl(fd, ACCMEM_IOC_CTA_ALLOC, &req);
		ASSERT_TRUE(ret == -ECANCELED || ret == -EBADF);
		cancelled += ret == -ECANCELED;
		pthread_join(thread, NULL);
		ASSERT_EQ(6, ctas(self->ctx));
	}
	TH_LOG("%u of %u calls were cut short", cancelled, rounds);
}

/* --- pairs --- */

/*
 * Both peers wait for columns. The peer that came first exits, or the one that came
 * last.
 */
TEST_F(tmem_close, p12_closing_one_of_a_pair_in_the_queue)
{
	struct tmem_call p, q;
	struct tcgen05_cta *gone, *stays;
	uint32_t at;
	int i;

	ASSERT_EQ(0, tcgen05_alloc(self->w, &at, 512));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(tmem_start_alloc(&p, self->p, 64));
		ASSERT_TRUE(tmem_start_alloc(&q, self->q, 64));
		gone = i ? self->p : self->q;
		stays = i ? self->q : self->p;
		tcgen05_exit(gone);
		EXPECT_EQ(-ECANCELED, tmem_finish(i ? &p : &q));
		EXPECT_EQ(-EPIPE, tmem_finish(i ? &q : &p));
		EXPECT_TRUE(tmem_state(stays) & ACCMEM_CTA_PEER_GONE);
		tcgen05_exit(stays);
		self->p = tmem_peer(self->ctx, 1, 0);
		self->q = tmem_peer(self->ctx, 2, 1);
		ASSERT_TRUE(self->p && self->q);
		EXPECT_EQ(0,
			  accmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
	}
}

TEST_F(tmem_close, p4_closing_who_waits_in_dealloc)
{
	struct tmem_call call;
	uint32_t at;

	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
	ASSERT_TRUE(tmem_start(&call, self->p, TMEM_DEALLOC, at, 64));
	exits(&self->p);
	EXPECT_EQ(-ECANCELED, tmem_finish(&call));
	EXPECT_EQ(-EPIPE, tcgen05_dealloc(self->q, at, 64));
	EXPECT_EQ(512 - 64, tmem_free_columns(self->q));
	exits(&self->q);
	EXPECT_EQ(512, tmem_free_columns(self->w));
}

/* --- a destination that goes away while the call waits --- */

static uint32_t *page_for_address(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? NULL : page;
}

struct late {
	struct tcgen05_cta *cta;
	uint32_t *destination;
	uint32_t columns;
};

static void *alloc_to(void *argument)
{
	struct late *l = argument;

	return (void *)(intptr_t)tcgen05_alloc(l->cta, l->destination,
					       l->columns);
}

TEST_F(tmem_close, p10_a_destination_that_goes_away_keeps_nothing)
{
	struct late late = { self->b, page_for_address(), 512 };
	pthread_t thread;
	uint32_t at;
	void *ret;

	ASSERT_NE(NULL, late.destination);
	ASSERT_EQ(0, pthread_create(&thread, NULL, alloc_to, &late));
	ASSERT_TRUE(tmem_until_waiting(self->b));
	ASSERT_EQ(0, munmap(late.destination, 4096));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(-EFAULT, (intptr_t)ret);
	EXPECT_EQ(512, tmem_free_columns(self->a));
	/* it does not count as an alloc (P8): the next may be of any size */
	EXPECT_EQ(0, tcgen05_alloc(self->b, &at, 512));
}

/* The columns of the peer are freed as well. */
TEST_F(tmem_close, p10_a_destination_that_goes_away_in_a_pair)
{
	struct late late = { self->p, page_for_address(), 64 };
	pthread_t thread;
	uint32_t at;
	void *ret;

	ASSERT_NE(NULL, late.destination);
	ASSERT_EQ(0, pthread_create(&thread, NULL, alloc_to, &late));
	ASSERT_TRUE(tmem_until_waiting(self->p));
	ASSERT_EQ(0, munmap(late.destination, 4096));
	/* the peer does not get an address that is freed again */
	EXPECT_EQ(-EFAULT, tcgen05_alloc(self->q, &at, 64));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(-EFAULT, (intptr_t)ret);
	EXPECT_EQ(512, tmem_free_columns(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->q));
	EXPECT_EQ(0, tmem_pair_alloc(self->p, self->q, 128, &at));
}

ACCMEM_HARNESS_MAIN
