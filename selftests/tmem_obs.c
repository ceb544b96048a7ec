// SPDX-License-Identifier: GPL-2.0
/*
 * What can be seen of Tensor Memory: a message for each broken rule, with who
 * broke it and how; the counters in fdinfo; trace events; the picture in
 * debugfs. Each is changed by what it tells of, and by as much.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "tmem_util.h"

#define TRACING "/sys/kernel/tracing/"
#define PICTURE "/sys/kernel/debug/accmem/accmem0/tmem"
#define MESSAGE_PATIENCE_MS 30000

FIXTURE(tmem_obs)
{
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b; /* CTAs 1 and 2, on SM 0 */
	struct tcgen05_cta *p, *q; /* CTAs 3 and 4, a pair on SMs 1 and 2 */
};

FIXTURE_SETUP(tmem_obs)
{
	self->ctx = tmem_open(3, 0, 0, 2);
	ASSERT_NE(NULL, self->ctx);
	self->a = tmem_single(self->ctx, 0);
	self->b = tmem_single(self->ctx, 0);
	self->p = tmem_peer(self->ctx, 1, 0);
	self->q = tmem_peer(self->ctx, 2, 1);
	ASSERT_TRUE(self->a && self->b && self->p && self->q);
}

FIXTURE_TEARDOWN(tmem_obs)
{
	tcgen05_exit(self->a);
	tcgen05_exit(self->b);
	tcgen05_exit(self->p);
	tcgen05_exit(self->q);
	accmem_close(self->ctx);
}

/* --- messages --- */

struct world {
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b, *p, *q;
};

/* Each breaks one rule, returns the error, and can be called again. */

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
	struct tcgen05_place place = { .launch = launch, .rank = rank, .sm = sm,
				       .cta_group = group };
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
	struct tcgen05_place place = { .launch = 2, .rank = 4, .sm = 0,
				       .cta_group = 2 };
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
	{ after_relinquish, -EPERM, "CTA ", "alloc of 64 columns at 0x0: P9: " },
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
	{ rank_taken, -EEXIST, "rank 1, SM 0)", "launch of 0 columns at 0x0: P19: " },
	{ peer_on_the_sm, -EADDRINUSE, "rank 5, SM 0)", ": P19: the peer is on" },
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

/* lines of this process since the last look that have both in them */
static int log_lines(int log, const char *who, const char *what)
{
	char record[ACCMEM_LOG_RECORD];
	int n = 0;

	while (accmem_log_next(log, record))
		n += strstr(record, "accmem0: context ") &&
		     strstr(record, "tmem_obs[") && strstr(record, who) &&
		     strstr(record, what);
	return n;
}

/*
 * A thread whose alloc is stopped while it stores the address. It leaves a first one
 * by a jump, of which the destination is known to be good, and makes another with the
 * same destination, whose page has gone meanwhile.
 */
struct slow {
	struct tcgen05_cta *cta;
	uint32_t *page;
	int faults;
	pthread_t thread;
	pid_t tid;
	int left; /* the first one */
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

/* true once the first call has been left */
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

/* true once the second one has an address to store */
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
 * The call of the one with a deadline, whose peer stores its address meanwhile; what
 * the peer's came to is in @slow. 1 if that came about too late: an interrupted call
 * is kept for a second only.
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

/* true once the log has that the peer of the CTA did not come; others have a share */
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

/* its call ends with the one that gives up at its deadline; but it has come */
TEST_F(tmem_obs, p12_a_peer_that_stores_its_address_has_come)
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

TEST_F(tmem_obs, each_broken_rule_is_a_message)
{
	struct world w = { self->ctx, self->a, self->b, self->p, self->q };
	int log = accmem_log_open();
	uint64_t start;
	unsigned int i;
	int n;

	ASSERT_LE(0, log);
	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		/* messages are rate-limited, and others may have had a share */
		start = accmem_ms();
		do {
			ASSERT_LE(0, lseek(log, 0, SEEK_END));
			ASSERT_EQ(rules[i].err, rules[i].misuse(&w)) {
				TH_LOG("rule %u", i);
			}
			n = log_lines(log, rules[i].who, rules[i].what);
			if (!n)
				usleep(200000);
		} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
		EXPECT_EQ(1, n) {
			TH_LOG("%s %s", rules[i].who, rules[i].what);
		}
	}
	close(log);
}

/* however often a rule is broken */
TEST_F(tmem_obs, messages_are_rate_limited)
{
	struct world w = { self->ctx, self->a, self->b, self->p, self->q };
	int i, n = 0, all = 0, log = accmem_log_open();
	uint64_t start = accmem_ms();

	ASSERT_LE(0, log);
	ASSERT_LE(0, lseek(log, 0, SEEK_END));
	/* others may have had this interval's share: until there is one */
	do {
		for (i = 0; i < 1000; i++)
			ASSERT_EQ(-EDOM, no_power_of_two(&w));
		all += i;
		n += log_lines(log, "CTA 2 (", "P7");
	} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
	TH_LOG("%d messages of %d", n, all);
	EXPECT_LE(1, n);
	/* ten in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
	EXPECT_EQ(all, tmem_fdinfo(tcgen05_fd(self->b), "tmem-misuses"));
	close(log);
}

#define NOISY_USER 23001
#define QUIET_USER 23002
#define LEAVING_USER 23004

/* lets other users in; returns the mode to go back to */
static mode_t let_users_in(void)
{
	struct stat st;

	if (stat(ACCMEM_DEV_EMULATED, &st) || chmod(ACCMEM_DEV_EMULATED, 0666))
		return 0;
	return st.st_mode;
}

static int launch_single(int fd)
{
	struct accmem_tmem_launch req = { .size = sizeof(req), .cta_group = 1 };
	int err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &req);

	return err ?: req.fd;
}

static int alloc_at(int cta, uint32_t columns, uint32_t *at)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.columns = columns,
					.destination = (uintptr_t)at };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

struct misuses {
	uint32_t columns; /* by which they are known in the log */
	int nr;
};

/* a user who asks for what no alloc can be, so many times */
static int misuse_as_user(void *arg)
{
	const struct misuses *m = arg;
	int cta, i, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	uint32_t at;

	cta = fd < 0 ? fd : launch_single(fd);
	if (cta < 0)
		return 1;
	for (i = 0; i < m->nr; i++) {
		if (alloc_at(cta, m->columns, &at) != -EDOM)
			return 2;
	}
	return 0;
}

/* a number that no alloc takes, and that is in the log of no other run */
static uint32_t some_columns(uint32_t n)
{
	return 1000000u + getpid() * 4u + n;
}

static int count_user_lines(int log, uint32_t columns)
{
	char record[ACCMEM_LOG_RECORD], what[64];
	int n = 0;

	if (lseek(log, 0, SEEK_SET) < 0)
		return -1;
	snprintf(what, sizeof(what), "alloc of %u columns", columns);
	while (accmem_log_next(log, record))
		n += strstr(record, "tmem_obs[") && strstr(record, what);
	return n;
}

TEST_F(tmem_obs, one_users_messages_do_not_hide_anothers)
{
	struct misuses noise = { some_columns(1), 3000 };
	struct misuses word = { some_columns(2), 1 };
	int n, log = accmem_log_open();

	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	EXPECT_EQ(0, accmem_as_user(NOISY_USER, misuse_as_user, &noise));
	EXPECT_EQ(0, accmem_as_user(QUIET_USER, misuse_as_user, &word));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	n = count_user_lines(log, noise.columns);
	EXPECT_LE(1, n);
	EXPECT_GT(3000, n);
	EXPECT_EQ(1, count_user_lines(log, word.columns));
	close(log);
}

/* the same, with nothing open between the calls */
static int misuse_and_leave(void *arg)
{
	struct misuses *m = arg;
	int i, fd, cta;
	uint32_t at;

	for (i = 0; i < m->nr; i++) {
		fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
		cta = fd < 0 ? fd : launch_single(fd);
		if (cta < 0)
			return 1;
		if (alloc_at(cta, m->columns, &at) != -EDOM)
			return 2;
		close(cta);
		close(fd);
	}
	return 0;
}

TEST_F(tmem_obs, messages_are_not_forgotten_with_what_is_open)
{
	struct misuses noise = { some_columns(3), 200 };
	uint64_t start = accmem_ms();
	int n, log = accmem_log_open();
	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	EXPECT_EQ(0, accmem_as_user(LEAVING_USER, misuse_and_leave, &noise));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	n = count_user_lines(log, noise.columns);
	EXPECT_LE(1, n);
	/* ten in five seconds */
	EXPECT_LE(n, 10 + (int)((accmem_ms() - start) / 5000 + 1) * 10);
	close(log);
}

/* the CTA is left: it is no context, and can still be the subject of a message */
static int outlive_context(void *arg)
{
	const uint32_t *columns = arg;
	int cta, fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);

	cta = fd < 0 ? fd : launch_single(fd);
	if (cta < 0)
		return 1;
	close(fd);
	fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	if (fd < 0)
		return 2;
	if (accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR) != -EMFILE)
		return 3;
	return alloc_at(cta, *columns, NULL) == -EFAULT ? 0 : 4;
}

TEST_F(tmem_obs, a_cta_outlives_its_context_and_counts_as_none)
{
	int64_t limit = accmem_param("max_contexts_per_user");
	uint32_t columns = some_columns(3);
	int status, log = accmem_log_open();
	mode_t mode = let_users_in();

	ASSERT_TRUE(mode);
	ASSERT_LE(0, log);
	ASSERT_EQ(0, accmem_param_set("max_contexts_per_user", 1));
	status = accmem_as_user(QUIET_USER + 1, outlive_context, &columns);
	EXPECT_EQ(0, accmem_param_set("max_contexts_per_user", limit));
	EXPECT_EQ(0, chmod(ACCMEM_DEV_EMULATED, mode));
	EXPECT_EQ(0, status);
	EXPECT_EQ(1, count_user_lines(log, columns));
	close(log);
}

/* --- fdinfo --- */

static int64_t of(struct tcgen05_cta *cta, const char *name)
{
	return tmem_fdinfo(tcgen05_fd(cta), name);
}

TEST_F(tmem_obs, fdinfo_of_a_cta)
{
	uint32_t at;

	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
	EXPECT_EQ(4, of(self->q, "cta"));
	EXPECT_EQ(2, of(self->q, "launch"));
	EXPECT_EQ(0, of(self->q, "cluster"));
	EXPECT_EQ(1, of(self->q, "rank"));
	EXPECT_EQ(2, of(self->q, "sm"));
	EXPECT_EQ(2, of(self->q, "cta-group"));
	EXPECT_EQ(64, of(self->q, "held"));
	EXPECT_EQ(0, of(self->a, "held"));
}

static const char *const counters[] = {
	"grants", "waits", "wakeups", "woken-grant", "woken-timeout",
	"woken-signal", "woken-exit", "woken-deadlock", "woken-reset",
	"bypasses", "timeouts", "deadlocks", "misuses", "forced",
};

struct counts {
	int64_t of[ARRAY_SIZE(counters)];
};

static void read_counts(struct accmem_context *ctx, struct counts *c)
{
	char name[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		snprintf(name, sizeof(name), "tmem-%.32s", counters[i]);
		c->of[i] = tmem_fdinfo(accmem_fd(ctx), name);
	}
}

/* is what has been counted since @before exactly @what, "name=n name=n"? */
static bool counted(struct accmem_context *ctx, struct counts *before,
		    const char *what)
{
	char text[512], line[64];
	struct counts now;
	bool same = true;
	unsigned int i;

	read_counts(ctx, &now);
	snprintf(text, sizeof(text), " %s ", what);
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		int64_t n = now.of[i] - before->of[i];

		snprintf(line, sizeof(line), " %.32s=%lld ", counters[i],
			 (long long)n);
		if (!n) /* it should not be there at all */
			snprintf(line, sizeof(line), " %.32s=", counters[i]);
		if (!strstr(text, line) == !n)
			continue;
		printf("# %s %lld, not%s\n", counters[i], (long long)n, text);
		same = false;
	}
	*before = now;
	return same;
}

TEST_F(tmem_obs, fdinfo_counts_what_was_done)
{
	struct tcgen05_cta *c = tmem_single(self->ctx, 0);
	struct counts n;
	struct tmem_call call;
	uint32_t at, more;

	ASSERT_NE(NULL, c);
	EXPECT_EQ(3, tmem_fdinfo(accmem_fd(self->ctx), "tmem-sms"));
	EXPECT_EQ(512, tmem_fdinfo(accmem_fd(self->ctx), "tmem-columns"));
	EXPECT_EQ(5, tmem_fdinfo(accmem_fd(self->ctx), "tmem-ctas"));
	read_counts(self->ctx, &n);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 256));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1"));
	ASSERT_EQ(-EDOM, tcgen05_alloc(self->a, &more, 1));
	EXPECT_TRUE(counted(self->ctx, &n, "misuses=1"));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &more, 512, 1));
	EXPECT_TRUE(counted(self->ctx, &n, "timeouts=1"));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &more, 512,
						  tmem_in_ms(300)));
	EXPECT_TRUE(counted(self->ctx, &n, "waits=1 wakeups=1 woken-timeout=1 timeouts=1"));
	/* b waits; c passes it */
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	EXPECT_EQ(1, tmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
	ASSERT_EQ(0, tcgen05_alloc(c, &more, 128));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 bypasses=1"));
	EXPECT_EQ(1, of(c, "tmem-bypasses"));
	ASSERT_EQ(0, tcgen05_dealloc(c, more, 128));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 256));
	ASSERT_EQ(0, tmem_finish(&call));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 waits=1 wakeups=1 woken-grant=1"));
	EXPECT_EQ(1, of(self->b, "tmem-woken-grant"));
	/* relinquish ends the wait of a */
	ASSERT_TRUE(tmem_start_alloc(&call, self->a, 256));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(self->a));
	ASSERT_EQ(-ECANCELED, tmem_finish(&call));
	EXPECT_TRUE(counted(self->ctx, &n, "waits=1 wakeups=1 woken-exit=1"));
	tcgen05_exit(c);
}

TEST_F(tmem_obs, fdinfo_counts_deadlocks_and_forced_grants)
{
	struct tcgen05_cta *c = tmem_single(self->ctx, 0);
	struct tmem_call first, second;
	struct counts n;
	uint32_t at[3], more;
	int i;

	ASSERT_NE(NULL, c);
	read_counts(self->ctx, &n);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at[0], 256));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at[1], 256));
	ASSERT_TRUE(tmem_start_alloc(&first, self->a, 256));
	ASSERT_EQ(-EDEADLK, tcgen05_alloc(self->b, &more, 256));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=2 deadlocks=1"));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, at[1], 256));
	ASSERT_EQ(0, tmem_finish(&first));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at[0], 256));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, first.address, 256));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 waits=1 wakeups=1 woken-grant=1"));
	/*
	 * c waits for all of the SM and is passed as often as may be. b holds
	 * columns that c waits for, and waits for some that are free, but kept
	 * for c: it is served against the bound.
	 */
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at[1], 32));
	ASSERT_TRUE(tmem_start_alloc(&second, c, 512));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, tcgen05_alloc(self->a, &at[0], 32));
		ASSERT_EQ(0, tcgen05_dealloc(self->a, at[0], 32));
	}
	EXPECT_TRUE(counted(self->ctx, &n, "grants=3 bypasses=2"));
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->a, &at[0], 32));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &at[2], 32));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 bypasses=1 forced=1"));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, at[1], 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, at[2], 32));
	ASSERT_EQ(0, tmem_finish(&second));
	tcgen05_dealloc(c, 0, 512);
	tcgen05_exit(c);
}

/* --- trace events --- */

/* lines with @event and @detail; and the wait in the last one, in ns */
static int count_events(const char *event, const char *detail,
			unsigned long long *waited)
{
	char last[256], *at;
	int n = accmem_trace_count(event, detail, last, sizeof(last));

	if (n > 0 && waited) {
		at = strstr(last, "waited=");
		if (!at || sscanf(at, "waited=%llu ns", waited) != 1)
			return -1;
	}
	return n;
}

TEST_F(tmem_obs, trace_events)
{
	unsigned long long waited = 0, gave_up = 0, at_once = 1;
	struct tcgen05_cta *c;
	struct tmem_call call;
	uint32_t at, more;

	if (access(TRACING "events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_TRUE(accmem_trace_start());
	c = tmem_single(self->ctx, 0);
	ASSERT_NE(NULL, c);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 256));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &more, 512,
						  tmem_in_ms(300)));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_EQ(0, tcgen05_alloc(c, &more, 64));
	usleep(20000);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 256));
	ASSERT_EQ(-EDOM, tcgen05_alloc(self->a, &at, 7));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(c));
	tcgen05_exit(c);
	ASSERT_EQ(0, tmem_finish(&call));
	ASSERT_TRUE(accmem_trace_stop());

	EXPECT_EQ(1, count_events("accmem_tmem_launch",
				  "cta=5 launch=0x1 cluster=0 rank=0 sm=0 cta_group=1",
				  NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_request",
				  "cta=1 sm=0 columns=256", NULL));
	EXPECT_EQ(2, count_events("accmem_tmem_request",
				  "cta=2 sm=0 columns=512", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_grant",
				  "cta=1 sm=0 columns=256 address=0x0",
				  &at_once));
	EXPECT_EQ(0, at_once);
	EXPECT_EQ(1, count_events("accmem_tmem_grant",
				  "cta=2 sm=0 columns=512 address=0x0",
				  &waited));
	EXPECT_LE(20 * TMEM_MS, waited);
	EXPECT_EQ(1, count_events("accmem_tmem_timeout",
				  "cta=2 sm=0 columns=512", &gave_up));
	EXPECT_LT(0, gave_up);
	EXPECT_GE(60000 * TMEM_MS, gave_up);
	EXPECT_EQ(1, count_events("accmem_tmem_bypass",
				  "cta=5 sm=0 passed=1", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_dealloc",
				  "cta=1 sm=0 columns=256 address=0x0", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_fail",
				  "cta=1 sm=0 columns=7 error=-33", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_relinquish",
				  "cta=5 sm=0 columns=64", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_exit", "cta=5 sm=0 columns=64",
				  NULL));
}

/* --- the picture --- */

static const char *const picture[] = {
	": shared, bypass bound 2\n",
	"SM 0 |................| 512 of 512 columns free\n",
	"SM 1 |a...............| 480 of 512 columns free\n"
	"  a CTA 3 launch 0x2 cluster 0 rank 0 holds 32 columns\n",
	"SM 2 |a...............| 480 of 512 columns free\n"
	"  a CTA 4 launch 0x2 cluster 0 rank 1 holds 32 columns\n",
	": exclusive, bypass bound 3\n",
	"| 512 of 576 columns free\n"
	"  a CTA 1 launch 0x1 cluster 0 rank 0 holds 64 columns, permit\n"
	"  ? CTA 2 launch 0x1 cluster 0 rank 0 waits for 512 columns, passed 0",
	"SM 1 |..................| 576 of 576 columns free\n",
};

TEST_F(tmem_obs, debugfs_shows_every_sm)
{
	struct accmem_context *ctx = tmem_open(2, 576, 1, 3);
	struct tcgen05_cta *c = tmem_single(ctx, 0), *d = tmem_single(ctx, 0);
	struct tmem_call call;
	char text[8192];
	unsigned int i;
	uint32_t at;

	ASSERT_TRUE(c && d);
	ASSERT_EQ(0, tcgen05_alloc(c, &at, 64));
	ASSERT_TRUE(tmem_start_alloc(&call, d, 512));
	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 32, &at));
	ASSERT_LT(0, accmem_read_file(PICTURE, text, sizeof(text)));
	for (i = 0; i < ARRAY_SIZE(picture); i++) {
		EXPECT_NE(NULL, strstr(text, picture[i])) {
			TH_LOG("%s", picture[i]);
		}
	}
	tcgen05_exit(c);
	EXPECT_EQ(0, tmem_finish(&call));
	tcgen05_exit(d);
	accmem_close(ctx);
}

/* on any kernel's clock */
TEST_F(tmem_obs, debugfs_shows_how_often_and_how_long)
{
	struct tmem_call call;
	static const char waits[] = "waits for 512 columns, passed 1 of 2, ";
	char text[8192], *at;
	uint32_t held, more;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &held, 32));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &more, 32));
	usleep(50000);
	ASSERT_LT(0, accmem_read_file(PICTURE, text, sizeof(text)));
	at = strstr(text, waits);
	ASSERT_NE(NULL, at);
	/* in us; to a tick, of 10 ms at most */
	EXPECT_LE(40000, strtoul(at + strlen(waits), NULL, 10));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, held, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, more, 32));
	EXPECT_EQ(0, tmem_finish(&call));
}

TEST_HARNESS_MAIN
