// SPDX-License-Identifier: GPL-2.0
/*
 * Strict mode. Calls that hardware would not survive are counted, traced and reported,
 * and their results do not change. Other calls are not counted. The tests use queued
 * calls to hold the CTAs in the states that matter: an alloc has returned when its
 * completion was read. The rules themselves are tested in lib/tests/columns/cases.h.
 */
#include "tmem_calls.h"
#include "tmem_util.h"

#define MESSAGE_PATIENCE_MS 30000

/* @a and @b are a pair on SMs 0 and 1; @c and @d are on SM 2, of different launches */
struct ctas {
	int fd;
	int a, b;
	int c, d;
};

static bool open_ctas(struct ctas *x, uint32_t flags)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup),
					   .nr_sms = 3,
					   .flags = flags };

	x->fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	if (x->fd < 0 || accmem_ioctl(x->fd, ACCMEM_IOC_TMEM_SETUP, &setup))
		return false;
	x->a = CTA_LAUNCH(x->fd, .launch = 1, .cta_group = 2, .rank = 0,
			  .sm = 0);
	x->b = CTA_LAUNCH(x->fd, .launch = 1, .cta_group = 2, .rank = 1,
			  .sm = 1);
	x->c = CTA_LAUNCH(x->fd, .launch = 0xc, .cta_group = 1, .rank = 0,
			  .sm = 2);
	x->d = CTA_LAUNCH(x->fd, .launch = 0xd, .cta_group = 1, .rank = 0,
			  .sm = 2);
	return x->a >= 0 && x->b >= 0 && x->c >= 0 && x->d >= 0;
}

static int alloc_by(int cta, uint32_t warp)
{
	uint32_t at;

	return CTA_ALLOC(cta, .columns = 32, .warp = warp,
			 .destination = (uintptr_t)&at);
}

static int queue_alloc(int cta)
{
	return CTA_ALLOC(cta, .columns = 32, .flags = ACCMEM_CTA_QUEUED);
}

static int dealloc_by(int cta, uint32_t at, uint32_t warp, uint32_t flags)
{
	return CTA_DEALLOC(cta, .columns = 32, .address = at, .warp = warp,
			   .flags = flags);
}

static void close_ctas(struct ctas *x)
{
	close(x->a);
	close(x->b);
	close(x->c);
	close(x->d);
	close(x->fd);
}

/* the number of hazards of a CTA, or of all CTAs of a context */
static int64_t found(int fd)
{
	return accmem_fdinfo(fd, "tmem-strict");
}

FIXTURE(tmem_strict)
{
	struct ctas x;
};

FIXTURE_SETUP(tmem_strict)
{
	ASSERT_TRUE(open_ctas(&self->x, ACCMEM_TMEM_STRICT));
}

FIXTURE_TEARDOWN(tmem_strict)
{
	close_ctas(&self->x);
}

TEST_F(tmem_strict, p12_dealloc_after_the_peers_alloc_has_returned)
{
	struct ctas *x = &self->x;

	ASSERT_EQ(0, queue_alloc(x->a));
	ASSERT_EQ(0, alloc_by(x->b, 0));
	EXPECT_EQ(0, cta_result(x->a));
	ASSERT_EQ(0, dealloc_by(x->b, 0, 0, ACCMEM_CTA_QUEUED));
	EXPECT_EQ(0, dealloc_by(x->a, 0, 0, 0));
	EXPECT_EQ(0, cta_result(x->b));
	EXPECT_EQ(0, found(x->fd));
}

TEST_F(tmem_strict, p12_exit_before_the_peers_alloc_has_returned)
{
	struct ctas *x = &self->x;

	ASSERT_EQ(0, queue_alloc(x->a));
	ASSERT_EQ(0, alloc_by(x->b, 0));
	close(x->b);
	x->b = -1;
	EXPECT_EQ(1, found(x->fd));
	EXPECT_EQ(0, cta_result(x->a));
}

/*
 * A blocking call has returned before its thread makes the next one, so there is no
 * hazard.
 */
TEST_F(tmem_strict, p12_callers_that_wait_are_not_late)
{
	struct accmem_context *ctx;
	struct tcgen05_cta *p, *q;
	struct tmem_call call;
	uint32_t at;

	ASSERT_EQ(0, accmem_open(NULL, &ctx));
	ASSERT_EQ(0, accmem_ioctl(accmem_fd(ctx), ACCMEM_IOC_TMEM_SETUP,
				  (&(struct accmem_tmem_setup){
					  .size = sizeof(struct accmem_tmem_setup),
					  .flags = ACCMEM_TMEM_STRICT,
					  .nr_sms = 2 })));
	p = tmem_peer(ctx, 0, 0);
	q = tmem_peer(ctx, 1, 1);
	ASSERT_TRUE(p && q);
	ASSERT_EQ(0, tmem_pair_alloc(p, q, 64, &at));
	ASSERT_TRUE(tmem_start(&call, p, TMEM_DEALLOC, at, 64));
	EXPECT_EQ(0, tcgen05_dealloc(q, at, 64));
	EXPECT_EQ(0, tmem_finish(&call));
	EXPECT_EQ(0, found(accmem_fd(ctx)));
	tcgen05_exit(p);
	tcgen05_exit(q);
	EXPECT_EQ(0, found(accmem_fd(ctx)));
	accmem_close(ctx);
}

TEST_F(tmem_strict, setup_takes_no_other_flag)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 1,
					   .flags = ACCMEM_TMEM_STRICT << 1 };
	int fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);

	EXPECT_EQ(-EINVAL, accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup));
	setup.flags |= ACCMEM_TMEM_STRICT;
	EXPECT_EQ(-EINVAL, accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup));
	close(fd);
}

/* --- messages and trace events --------------------------------------------- */

static const struct {
	const char *who;
	const char *message;
	const char *event;
} hazards[] = {
	{ "CTA 2 (launch 0x1, cluster 0, rank 1, SM 1): strict: ",
	  "P12: dealloc or exit before the peer's alloc has returned",
	  "cta=2 sm=1 hazard=peer" },
	{ "CTA 4 (launch 0xd, cluster 0, rank 0, SM 2): strict: ",
	  "P9: alloc where launch 0xc has allocated and not relinquished",
	  "cta=4 sm=2 hazard=permit" },
	{ "CTA 3 (launch 0xc, cluster 0, rank 0, SM 2): strict: ",
	  "P11: alloc or dealloc by another warp than its first alloc",
	  "cta=3 sm=2 hazard=warp" },
};

/* causes one hazard of each kind, in new CTAs; true if @nr were found */
static bool provoke_all(uint32_t flags, int nr)
{
	struct ctas x;
	bool done = open_ctas(&x, flags);

	done = done && !queue_alloc(x.a) && !alloc_by(x.b, 0) &&
	       !dealloc_by(x.b, 0, 0, ACCMEM_CTA_QUEUED) && !cta_result(x.a) &&
	       !dealloc_by(x.a, 0, 0, 0) && !cta_result(x.b) &&
	       !alloc_by(x.c, 3) && !alloc_by(x.d, 0) &&
	       !dealloc_by(x.c, 0, 4, 0) && found(x.fd) == nr;
	close_ctas(&x);
	return done;
}

/* Without strict mode the same calls cause no hazard. */
TEST_F(tmem_strict, without_it_nothing_is_looked_for)
{
	EXPECT_TRUE(provoke_all(0, 0));
}

TEST_F(tmem_strict, each_is_one_message)
{
	int log = accmem_log_open(), n;
	unsigned int i;
	uint64_t start;

	ASSERT_LE(0, log);
	for (i = 0; i < ARRAY_SIZE(hazards); i++) {
		/* messages are rate-limited: other tests may have used up the limit */
		start = accmem_ms();
		do {
			ASSERT_LE(0, lseek(log, 0, SEEK_END));
			ASSERT_TRUE(provoke_all(ACCMEM_TMEM_STRICT, 3));
			n = accmem_log_count(log, "tmem_strict[",
					     hazards[i].who, hazards[i].message,
					     NULL);
			if (!n)
				usleep(200000);
		} while (!n && accmem_ms() < start + MESSAGE_PATIENCE_MS);
		EXPECT_EQ(1, n) {
			TH_LOG("%s", hazards[i].message);
		}
	}
	close(log);
}

TEST_F(tmem_strict, each_is_one_trace_event)
{
	char last[256];
	unsigned int i;

	if (access("/sys/kernel/tracing/events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_TRUE(accmem_trace_start());
	ASSERT_TRUE(provoke_all(ACCMEM_TMEM_STRICT, 3));
	ASSERT_TRUE(accmem_trace_stop());
	for (i = 0; i < ARRAY_SIZE(hazards); i++)
		EXPECT_EQ(1, accmem_trace_count("accmem_tmem_strict",
						hazards[i].event, last,
						sizeof(last)));
}

ACCMEM_HARNESS_MAIN
