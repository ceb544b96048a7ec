// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of Tensor Memory in the kernel's log. A broken rule causes one message,
 * which names the CTA and the rule. The messages are rate-limited.
 */
#include <linux/userfaultfd.h>

#include "tmem_util.h"

#define MESSAGE_PATIENCE_MS 30000

TMEM_FIXTURE(tmem_messages, 2, 0, 0)

struct world {
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b, *p, *q;
};

/* Each of these functions breaks one rule and returns the error. It can be called again. */

static int grow(struct world *w)
{
	uint32_t at;

	tcgen05_alloc(w->a, &at, 32);
	tcgen05_dealloc(w->a, at, 32);
	return tcgen05_alloc(w->a, &at, 64);
}

static int no_power_of_two(struct world *w)
{
	uint32_t at;

	return tcgen05_alloc(w->b, &at, 48);
}

static int too_much(struct world *w)
{
	struct tcgen05_cta *c = tmem_single(w->ctx, 0);
	uint32_t at;
	int ret;

	tcgen05_alloc(c, &at, 512);
	ret = tcgen05_alloc(c, &at, 512);
	tcgen05_dealloc(c, at, 512);
	tcgen05_exit(c);
	return ret;
}

static int after_relinquish(struct world *w)
{
	struct tcgen05_cta *c = tmem_single(w->ctx, 0);
	uint32_t at;
	int ret;

	tcgen05_relinquish_alloc_permit(c);
	ret = tcgen05_alloc(c, &at, 64);
	tcgen05_exit(c);
	return ret;
}

static int no_destination(struct world *w)
{
	return tcgen05_alloc(w->b, NULL, 64);
}

static int second_call(struct world *w)
{
	struct tmem_call call;
	uint32_t at;
	int ret;

	tcgen05_alloc(w->a, &at, 32);
	tmem_start_alloc(&call, w->b, 512);
	ret = tcgen05_dealloc(w->b, 64, 32);
	tcgen05_dealloc(w->a, at, 32);
	tmem_finish(&call);
	tcgen05_dealloc(w->b, call.address, 512);
	return ret;
}

static int peer_exited(struct world *w)
{
	struct tcgen05_cta *c[2];
	struct tcgen05_place place = { .launch = 9, .cta_group = 2 };
	uint32_t at;
	int i, ret;

	for (i = 0; i < 2; i++) {
		place.rank = i;
		place.sm = i;
		if (tcgen05_launch(w->ctx, &place, &c[i]))
			return 1;
	}
	tcgen05_exit(c[1]);
	ret = tcgen05_alloc(c[0], &at, 64);
	tcgen05_exit(c[0]);
	return ret;
}

static int peer_missing(struct world *w)
{
	uint32_t at;

	return tcgen05_alloc_until(w->p, &at, 64, tmem_in_ms(1));
}

static int other_operands(struct world *w)
{
	struct tmem_call call;
	uint32_t at;
	int ret;

	tmem_start_alloc(&call, w->p, 64);
	ret = tcgen05_alloc(w->q, &at, 32);
	tmem_finish(&call);
	return ret;
}

static int other_call(struct world *w)
{
	struct tmem_call call;
	int ret;

	tmem_start_alloc(&call, w->p, 64);
	ret = tcgen05_dealloc(w->q, 0, 64);
	tmem_finish(&call);
	return ret;
}

static int launch_at(struct world *w, uint64_t launch, uint32_t group,
		     uint32_t rank, uint32_t sm)
{
	struct tcgen05_place place = {
		.launch = launch, .rank = rank, .sm = sm, .cta_group = group
	};
	struct tcgen05_cta *c;

	return tcgen05_launch(w->ctx, &place, &c);
}

static int other_group(struct world *w)
{
	return launch_at(w, 1, 2, 0, 1);
}

static int rank_taken(struct world *w)
{
	return launch_at(w, 2, 2, 1, 0);
}

static int peer_on_the_sm(struct world *w)
{
	struct tcgen05_place place = {
		.launch = 2, .rank = 4, .sm = 0, .cta_group = 2
	};
	struct tcgen05_cta *c;
	int ret;

	if (tcgen05_launch(w->ctx, &place, &c))
		return 1;
	ret = launch_at(w, 2, 2, 5, 0);
	tcgen05_exit(c);
	return ret;
}

static int no_such_sm(struct world *w)
{
	return launch_at(w, 1, 1, 0, 3);
}

static int a_lane(struct world *w)
{
	return tcgen05_dealloc(w->a, 0x30000, 64);
}

static int nothing_there(struct world *w)
{
	return tcgen05_dealloc(w->a, 96, 64);
}

static int with_columns(struct world *w, uint32_t address, uint32_t columns)
{
	struct tcgen05_cta *c = tmem_single(w->ctx, 0);
	uint32_t at;
	int ret;

	tcgen05_alloc(c, &at, 128);
	ret = tcgen05_dealloc(c, at + address, columns);
	tcgen05_dealloc(c, at, 128);
	tcgen05_exit(c);
	return ret;
}

static int interior(struct world *w)
{
	return with_columns(w, 64, 32);
}

static int other_columns(struct world *w)
{
	return with_columns(w, 0, 64);
}

static int somebody_elses(struct world *w)
{
	uint32_t at;
	int ret;

	tcgen05_alloc(w->b, &at, 64);
	ret = tcgen05_dealloc(w->a, at, 64);
	tcgen05_dealloc(w->b, at, 64);
	return ret;
}

static int deadlock(struct world *w)
{
	struct tcgen05_cta *c = tmem_single(w->ctx, 0);
	struct tcgen05_cta *d = tmem_single(w->ctx, 0);
	struct tmem_call call;
	uint32_t at, more;
	int ret;

	tcgen05_alloc(c, &at, 256);
	tcgen05_alloc(d, &at, 256);
	tmem_start_alloc(&call, c, 256);
	ret = tcgen05_alloc(d, &more, 128);
	tcgen05_dealloc(d, at, 256);
	tmem_finish(&call);
	tcgen05_exit(d);
	tcgen05_dealloc(c, 0, 256);
	tcgen05_dealloc(c, 256, 256);
	tcgen05_exit(c);
	return ret;
}

static const struct {
	int (*misuse)(struct world *w);
	int err;
	const char *who;
	const char *what; /* call, columns, address, row */
} rules[] = {
	{ no_power_of_two, -EDOM, "CTA 2 (launch 0x1, cluster 0, rank 0, SM 0)",
	  "alloc of 48 columns at 0x0: P7: " },
	{ grow, -ERANGE, "CTA 1 (", "alloc of 64 columns at 0x0: P8: " },
	{ too_much, -ENOSPC, "CTA ", "alloc of 512 columns at 0x0: P2: more" },
	{ after_relinquish, -EPERM, "CTA ",
	  "alloc of 64 columns at 0x0: P9: " },
	{ no_destination, -EFAULT, "CTA 2 (",
	  "alloc of 64 columns at 0x0: P10: " },
	{ second_call, -EBUSY, "CTA 2 (",
	  "dealloc of 32 columns at 0x40: P11: " },
	{ peer_exited, -EPIPE, "(launch 0x9, cluster 0, rank 0, SM 0)",
	  "alloc of 64 columns at 0x0: P12: the peer has exited" },
	{ peer_missing, -ETIMEDOUT, "CTA 3 (launch 0x2, ",
	  "alloc of 64 columns at 0x0: P12: the peer has not come" },
	{ other_operands, -EBADR, "CTA 4 (",
	  "alloc of 32 columns at 0x0: P12: " },
	{ other_operands, -EBADR, "CTA 3 (",
	  "alloc of 64 columns at 0x0: P12: " },
	{ other_call, -EPROTO, "CTA 4 (",
	  "dealloc of 64 columns at 0x0: P20: " },
	{ other_call, -EPROTO, "CTA 3 (", "alloc of 64 columns at 0x0: P12: " },
	{ other_group, -EPROTOTYPE, "(launch 0x1, cluster 0, rank 0, SM 1)",
	  "launch of 0 columns at 0x0: P13: " },
	{ rank_taken, -EEXIST, "rank 1, SM 0)",
	  "launch of 0 columns at 0x0: P19: " },
	{ peer_on_the_sm, -EADDRINUSE, "rank 5, SM 0)",
	  ": P19: the peer is on" },
	{ no_such_sm, -ENXIO, "SM 3)", ": P19: no such SM" },
	{ a_lane, -ENXIO, "CTA 1 (", "dealloc of 64 columns at 0x30000: P3: " },
	{ nothing_there, -ENOENT, "CTA 1 (",
	  "dealloc of 64 columns at 0x60: P3: nothing" },
	{ interior, -EADDRNOTAVAIL, "CTA ",
	  "dealloc of 32 columns at 0x40: P3: an address inside" },
	{ somebody_elses, -EACCES, "CTA 1 (",
	  "dealloc of 64 columns at 0x0: P3: another CTA's" },
	{ other_columns, -EMSGSIZE, "CTA ",
	  "dealloc of 64 columns at 0x0: P18: " },
	{ deadlock, -EDEADLK, "CTA ",
	  "alloc of 128 columns at 0x0: P2: a deadlock" },
};

/* the number of new messages about this process with both texts in them */
static int log_lines(int log, const char *who, const char *what)
{
	return accmem_log_count(log, "accmem0: context ", "tmem_messages[", who,
				what, NULL);
}

/*
 * A thread whose alloc is held up while it stores the address. The thread leaves a
 * first alloc by a jump, so the destination is known to be good. Then the page of the
 * destination goes, and the thread makes a second alloc.
 */
struct slow {
	struct tcgen05_cta *cta;
	uint32_t *page;
	int faults;
	pthread_t thread;
	pid_t tid;
	int left; /* the first alloc has been left */
	int go;
	int ret;
};

static sigjmp_buf slow_out;
static void *slow_page;

static void slow_jump(int sig)
{
	(void)sig;
	madvise(slow_page, 4096, MADV_DONTNEED);
	siglongjmp(slow_out, 1);
}

static void *slow_main(void *arg)
{
	struct slow *s = arg;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	if (!sigsetjmp(slow_out, 1)) {
		s->ret = tcgen05_alloc(s->cta, s->page, 64);
		return NULL;
	}
	__atomic_store_n(&s->left, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&s->go, __ATOMIC_ACQUIRE))
		usleep(1000);
	s->ret = tcgen05_try_alloc(s->cta, s->page, 64);
	return NULL;
}

static bool slow_make_page(struct slow *s)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	s->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->page == MAP_FAILED)
		return false;
	*s->page = 1;
	slow_page = s->page;
	s->faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	range.range.start = (uintptr_t)s->page;
	range.range.len = 4096;
	return !ioctl(s->faults, UFFDIO_API, &api) &&
	       !ioctl(s->faults, UFFDIO_REGISTER, &range);
}

/* waits until the thread has left the first alloc */
static bool slow_start(struct slow *s, struct tcgen05_cta *cta)
{
	struct sigaction action = { .sa_handler = slow_jump,
				    .sa_flags = SA_RESTART };
	int i;

	*s = (struct slow){ .cta = cta, .ret = 1 };
	if (!slow_make_page(s) || sigaction(SIGUSR1, &action, NULL) ||
	    pthread_create(&s->thread, NULL, slow_main, s) ||
	    !tmem_until_waiting(cta) || !tmem_until_thread_sleeps(&s->tid) ||
	    pthread_kill(s->thread, SIGUSR1))
		return false;
	for (i = 0; i < TMEM_PATIENCE_MS; i++) {
		if (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE))
			return true;
		usleep(1000);
	}
	return false;
}

/* waits until the second alloc has an address to store */
static bool slow_go_on(struct slow *s)
{
	struct pollfd fault = { .fd = s->faults, .events = POLLIN };

	__atomic_store_n(&s->go, 1, __ATOMIC_RELEASE);
	return poll(&fault, 1, TMEM_PATIENCE_MS) == 1 &&
	       tmem_state(s->cta) & ACCMEM_CTA_WAITING;
}

static void slow_finish(struct slow *s)
{
	struct uffdio_zeropage zero = {
		.range = { .start = (uintptr_t)s->page, .len = 4096 },
	};

	ioctl(s->faults, UFFDIO_ZEROPAGE, &zero);
	pthread_join(s->thread, NULL);
	close(s->faults);
	munmap(s->page, 4096);
}

/*
 * Makes an alloc with a deadline, during which the peer is storing its address. Returns
 * the result, or 1 if the peer was too late: an interrupted call is kept for a second
 * only. The result of the peer is in @slow.
 */
static int give_up_beside(struct slow *slow, struct tcgen05_cta *p,
			  struct tcgen05_cta *q)
{
	struct tmem_call call = {
		.cta = p, .op = TMEM_ALLOC, .columns = 64, .ret = 1
	};
	bool came;

	if (!slow_start(slow, q))
		return -1000;
	call.deadline_ns = tmem_in_ms(3000);
	if (pthread_create(&call.thread, NULL, tmem_run_call, &call))
		return -1001;
	came = tmem_until_waiting(p) && slow_go_on(slow);
	if (came)
		tmem_finish(&call);
	slow_finish(slow);
	if (came)
		return call.ret;
	tmem_finish(&call);
	return 1;
}

/*
 * waits for the message that the peer did not come; other tests may have used up the
 * rate limit
 */
static bool peer_is_missed(int log, struct tcgen05_cta *cta)
{
	uint64_t start = accmem_ms();
	uint32_t at;

	while (accmem_ms() < start + MESSAGE_PATIENCE_MS) {
		if (tcgen05_alloc_until(cta, &at, 64, 1) != -ETIMEDOUT)
			return false;
		if (log_lines(log, "CTA 3 (", "P12"))
			return true;
		usleep(100000);
	}
	return false;
}

/*
 * The call of the peer fails when the other reaches its deadline. But the peer has
 * come, so there is no message.
 */
TEST_F(tmem_messages, p12_a_peer_that_stores_its_address_has_come)
{
	int i, err = 1, log = accmem_log_open();
	struct slow slow;
	char who[32];

	ASSERT_LE(0, log);
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	ASSERT_TRUE(peer_is_missed(log, self->p));
	for (i = 0; i < 5 && err == 1; i++) {
		if (i) {
			tcgen05_exit(self->p);
			tcgen05_exit(self->q);
			self->p = tmem_peer(self->ctx, 1, 0);
			self->q = tmem_peer(self->ctx, 2, 1);
			ASSERT_TRUE(self->p && self->q);
		}
		err = give_up_beside(&slow, self->p, self->q);
	}
	EXPECT_EQ(-ETIMEDOUT, err);
	EXPECT_EQ(-EAGAIN, slow.ret);
	snprintf(who, sizeof(who), "CTA %d (",
		 (int)tmem_fdinfo(tcgen05_fd(self->p), "cta"));
	EXPECT_EQ(0, log_lines(log, who, "P12"));
	close(log);
}

TEST_F(tmem_messages, each_broken_rule_is_a_message)
{
	struct world w = { self->ctx, self->a, self->b, self->p, self->q };
	int log = accmem_log_open();
	uint64_t start;
	unsigned int i;
	int n;

	ASSERT_LE(0, log);
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		/* messages are rate-limited: other tests may have used up the limit */
		start = accmem_ms();
		do {
			ASSERT_LE(0, lseek(log, 0, SEEK_END));
			ASSERT_EQ(rules[i].err, rules[i].misuse(&w))
			{
				TH_LOG("rule %u", i);
			}
			n = log_lines(log, rules[i].who, rules[i].what);
			if (!n)
				usleep(200000);
		} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
		EXPECT_EQ(1, n)
		{
			TH_LOG("%s %s", rules[i].who, rules[i].what);
		}
	}
	close(log);
}

/* A rule that is broken often does not flood the log. */
TEST_F(tmem_messages, messages_are_rate_limited)
{
	struct world w = { self->ctx, self->a, self->b, self->p, self->q };
	int i, n = 0, all = 0, log = accmem_log_open();
	uint64_t start = accmem_ms();

	ASSERT_LE(0, log);
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	/* other tests may have used up the limit of this interval */
	do {
		for (i = 0; i < 1000; i++)
			ASSERT_EQ(-EDOM, no_power_of_two(&w));
		all += i;
		n += log_lines(log, "CTA 2 (", "P7");
	} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
	TH_LOG("%d messages of %d", n, all);
	EXPECT_LE(1, n);
	/* ten messages in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
	EXPECT_EQ(all, tmem_fdinfo(tcgen05_fd(self->b), "tmem-misuses"));
	close(log);
}

ACCMEM_HARNESS_MAIN
