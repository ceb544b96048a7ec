// SPDX-License-Identifier: GPL-2.0
/*
 * Messages of Tensor Memory in the kernel's log. A broken rule causes one message,
 * which names the CTA and the rule. The messages are rate-limited.
 */
#include <linux/userfaultfd.h>

#include "tmem_util.h"

#define MESSAGE_PATIENCE_MS 30000

TMEM_FIXTURE(tmem_messages, 2, 0, 0)

/* --- a call for each rule --------------------------------------------------- */

/* clang-format off */
enum op { END, NEW, ALLOC, NOWHERE, LATE, DEALLOC, RELINQUISH, EXIT, START, FINISH };

/* A, B, P and Q are those of the fixture. A rule may launch C and D. */
enum { A, B, P, Q, C, D, NR_CTAS };

struct step {
	enum op op;
	unsigned int cta;
	uint32_t a, b; /* columns and address; launch and cta_group */
	uint32_t rank, sm;
	int result;
};

struct world {
	struct accmem_context *ctx;
	struct tcgen05_cta *cta[NR_CTAS];
	struct tmem_call call;
};

#define NEW(x, launch, group, rank, sm, r) { NEW, x, launch, group, rank, sm, r }
#define ALLOC(x, n, r) { ALLOC, x, n, 0, 0, 0, r }
#define NOWHERE(x, n, r) { NOWHERE, x, n, 0, 0, 0, r } /* without a destination */
#define LATE(x, n, r) { LATE, x, n, 0, 0, 0, r } /* an alloc that waits for 1 ms */
#define DEALLOC(x, at, n, r) { DEALLOC, x, n, at, 0, 0, r }
#define RELINQUISH(x) { RELINQUISH, x, 0, 0, 0, 0, 0 }
#define EXIT(x) { EXIT, x, 0, 0, 0, 0, 0 }
#define START(x, n) { START, x, n, 0, 0, 0, 0 } /* an alloc of another thread */
#define FINISH(r) { FINISH, A, 0, 0, 0, 0, r } /* of that alloc */

/* The steps break a rule, have the results, and can be taken again. */
static const struct {
	const char *who;
	const char *what; /* call, columns, address, row */
	struct step steps[13];
} rules[] = {
	{ "CTA 2 (launch 0x1, cluster 0, rank 0, SM 0)",
	  "alloc of 48 columns at 0x0: P7: ",
	  { ALLOC(B, 48, -EDOM) } },
	{ "CTA 1 (", "alloc of 64 columns at 0x0: P8: ",
	  { ALLOC(A, 32, 0), DEALLOC(A, 0, 32, 0), ALLOC(A, 64, -ERANGE) } },
	{ "CTA ", "alloc of 512 columns at 0x0: P2: more",
	  { NEW(C, 1, 1, 0, 0, 0), ALLOC(C, 512, 0), ALLOC(C, 512, -ENOSPC),
	    DEALLOC(C, 0, 512, 0), EXIT(C) } },
	{ "CTA ", "alloc of 64 columns at 0x0: P9: ",
	  { NEW(C, 1, 1, 0, 0, 0), RELINQUISH(C), ALLOC(C, 64, -EPERM),
	    EXIT(C) } },
	{ "CTA 2 (", "alloc of 64 columns at 0x0: P10: ",
	  { NOWHERE(B, 64, -EFAULT) } },
	{ "CTA 2 (", "dealloc of 32 columns at 0x40: P11: ",
	  { ALLOC(A, 32, 0), START(B, 512), DEALLOC(B, 64, 32, -EBUSY),
	    DEALLOC(A, 0, 32, 0), FINISH(0), DEALLOC(B, 0, 512, 0) } },
	{ "(launch 0x9, cluster 0, rank 0, SM 0)",
	  "alloc of 64 columns at 0x0: P12: the peer has exited",
	  { NEW(C, 9, 2, 0, 0, 0), NEW(D, 9, 2, 1, 1, 0), EXIT(D),
	    ALLOC(C, 64, -EPIPE), EXIT(C) } },
	{ "CTA 3 (launch 0x2, ",
	  "alloc of 64 columns at 0x0: P12: the peer has not come",
	  { LATE(P, 64, -ETIMEDOUT) } },
	{ "CTA 4 (", "alloc of 32 columns at 0x0: P12: ",
	  { START(P, 64), ALLOC(Q, 32, -EBADR), FINISH(-EBADR) } },
	{ "CTA 3 (", "alloc of 64 columns at 0x0: P12: ",
	  { START(P, 64), ALLOC(Q, 32, -EBADR), FINISH(-EBADR) } },
	{ "CTA 4 (", "dealloc of 64 columns at 0x0: P20: ",
	  { START(P, 64), DEALLOC(Q, 0, 64, -EPROTO), FINISH(-EPROTO) } },
	{ "CTA 3 (", "alloc of 64 columns at 0x0: P12: ",
	  { START(P, 64), DEALLOC(Q, 0, 64, -EPROTO), FINISH(-EPROTO) } },
	{ "(launch 0x1, cluster 0, rank 0, SM 1)",
	  "launch of 0 columns at 0x0: P13: ",
	  { NEW(C, 1, 2, 0, 1, -EPROTOTYPE) } },
	{ "rank 1, SM 0)", "launch of 0 columns at 0x0: P19: ",
	  { NEW(C, 2, 2, 1, 0, -EEXIST) } },
	{ "rank 5, SM 0)", ": P19: the peer is on",
	  { NEW(C, 2, 2, 4, 0, 0), NEW(D, 2, 2, 5, 0, -EADDRINUSE), EXIT(C) } },
	{ "SM 3)", ": P19: no such SM", { NEW(C, 1, 1, 0, 3, -ENXIO) } },
	{ "CTA 1 (", "dealloc of 64 columns at 0x30000: P3: ",
	  { DEALLOC(A, 0x30000, 64, -ENXIO) } },
	{ "CTA 1 (", "dealloc of 64 columns at 0x60: P3: nothing",
	  { DEALLOC(A, 96, 64, -ENOENT) } },
	{ "CTA ", "dealloc of 32 columns at 0x40: P3: an address inside",
	  { NEW(C, 1, 1, 0, 0, 0), ALLOC(C, 128, 0),
	    DEALLOC(C, 64, 32, -EADDRNOTAVAIL), DEALLOC(C, 0, 128, 0),
	    EXIT(C) } },
	{ "CTA 1 (", "dealloc of 64 columns at 0x0: P3: another CTA's",
	  { ALLOC(B, 64, 0), DEALLOC(A, 0, 64, -EACCES),
	    DEALLOC(B, 0, 64, 0) } },
	{ "CTA ", "dealloc of 64 columns at 0x0: P18: ",
	  { NEW(C, 1, 1, 0, 0, 0), ALLOC(C, 128, 0),
	    DEALLOC(C, 0, 64, -EMSGSIZE), DEALLOC(C, 0, 128, 0), EXIT(C) } },
	{ "CTA ", "alloc of 128 columns at 0x0: P2: a deadlock",
	  { NEW(C, 1, 1, 0, 0, 0), NEW(D, 1, 1, 0, 0, 0), ALLOC(C, 256, 0),
	    ALLOC(D, 256, 0), START(C, 256), ALLOC(D, 128, -EDEADLK),
	    DEALLOC(D, 256, 256, 0), FINISH(0), EXIT(D),
	    DEALLOC(C, 0, 256, 0), DEALLOC(C, 256, 256, 0), EXIT(C) } },
};

/* clang-format on */

static int take(struct world *w, const struct step *s)
{
	struct tcgen05_place place = {
		.launch = s->a, .cta_group = s->b, .rank = s->rank, .sm = s->sm
	};
	struct tcgen05_cta **cta = &w->cta[s->cta];
	uint32_t at;

	switch (s->op) {
	case NEW:
		return tcgen05_launch(w->ctx, &place, cta);
	case ALLOC:
		return tcgen05_alloc(*cta, &at, s->a);
	case NOWHERE:
		return tcgen05_alloc(*cta, NULL, s->a);
	case LATE:
		return tcgen05_alloc_until(*cta, &at, s->a, tmem_in_ms(1));
	case DEALLOC:
		return tcgen05_dealloc(*cta, s->b, s->a);
	case RELINQUISH:
		return tcgen05_relinquish_alloc_permit(*cta);
	case START:
		return !tmem_start_alloc(&w->call, *cta, s->a);
	case FINISH:
		return tmem_finish(&w->call);
	default:
		exits(cta);
		return 0;
	}
}

/* true if all steps have their results */
static bool break_rule(struct world *w, const struct step *s)
{
	for (; s->op != END; s++)
		if (take(w, s) != s->result)
			return false;
	return true;
}

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
		 (int)accmem_fdinfo(tcgen05_fd(self->p), "cta"));
	EXPECT_EQ(0, log_lines(log, who, "P12"));
	close(log);
}

TEST_F(tmem_messages, each_broken_rule_is_a_message)
{
	struct world w = { .ctx = self->ctx,
			   .cta = { self->a, self->b, self->p, self->q } };
	int log = accmem_log_open(), all = accmem_log_open();
	unsigned int i, left_out = 0;
	uint64_t start;
	int n;

	ASSERT_LE(0, log);
	ASSERT_LE(0, all);
	ASSERT_LE(0, lseek(all, 0, SEEK_END));
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		/* messages are rate-limited: other tests may have used up the limit */
		start = accmem_ms();
		do {
			ASSERT_LE(0, lseek(log, 0, SEEK_END));
			ASSERT_TRUE(break_rule(&w, rules[i].steps))
			{
				TH_LOG("rule %u", i);
			}
			n = log_lines(log, rules[i].who, rules[i].what);
			left_out += !n;
			if (!n)
				usleep(200000);
		} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
		EXPECT_EQ(1, n)
		{
			TH_LOG("%s %s", rules[i].who, rules[i].what);
		}
	}
	/* the next message has the number of those that the limit left out before it */
	if (left_out)
		EXPECT_LE(1, accmem_log_count(all, "accmem: user ",
					      " messages were left out", NULL));
	close(all);
	close(log);
}

/* A rule that is broken often does not flood the log. */
TEST_F(tmem_messages, messages_are_rate_limited)
{
	uint32_t at;
	int i, n = 0, all = 0, log = accmem_log_open();
	uint64_t start = accmem_ms();

	ASSERT_LE(0, log);
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	/* other tests may have used up the limit of this interval */
	do {
		for (i = 0; i < 1000; i++)
			ASSERT_EQ(-EDOM, tcgen05_alloc(self->b, &at, 48));
		all += i;
		n += log_lines(log, "CTA 2 (", "P7");
	} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
	TH_LOG("%d messages of %d", n, all);
	EXPECT_LE(1, n);
	/* ten messages in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
	EXPECT_EQ(all, accmem_fdinfo(tcgen05_fd(self->b), "tmem-misuses"));
	close(log);
}

ACCMEM_HARNESS_MAIN
