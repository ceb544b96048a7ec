// SPDX-License-Identifier: GPL-2.0
/*
 * Statistics of Tensor Memory: the counters in fdinfo, the trace events and the
 * picture in debugfs. Each counter changes by the amount of what was done, and by
 * nothing else.
 */
#include "tmem_util.h"

#define NEAR_MS 2000 /* long enough to begin to wait on a busy machine */
#define TRACING "/sys/kernel/tracing/"
#define PICTURE "/sys/kernel/debug/accmem/accmem0/tmem"

TMEM_FIXTURE(tmem_obs, 2, 0, 0)

/* --- fdinfo --- */

static int64_t of(struct tcgen05_cta *cta, const char *name)
{
	return accmem_fdinfo(tcgen05_fd(cta), name);
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
		c->of[i] = accmem_fdinfo(accmem_fd(ctx), name);
	}
}

/* true if the counters have changed since @before by exactly @what ("name=n name=n") */
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
		if (!n) /* an unchanged counter must not be in @what */
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
	EXPECT_EQ(3, accmem_fdinfo(accmem_fd(self->ctx), "tmem-sms"));
	EXPECT_EQ(512, accmem_fdinfo(accmem_fd(self->ctx), "tmem-columns"));
	EXPECT_EQ(7, accmem_fdinfo(accmem_fd(self->ctx), "tmem-ctas"));
	read_counts(self->ctx, &n);
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 256));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1"));
	ASSERT_EQ(-EDOM, tcgen05_alloc(self->a, &more, 1));
	EXPECT_TRUE(counted(self->ctx, &n, "misuses=1"));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &more, 512, 1));
	EXPECT_TRUE(counted(self->ctx, &n, "timeouts=1"));
	ASSERT_EQ(-ETIMEDOUT, tcgen05_alloc_until(self->b, &more, 512,
						  tmem_in_ms(NEAR_MS)));
	EXPECT_TRUE(counted(self->ctx, &n, "waits=1 wakeups=1 woken-timeout=1 timeouts=1"));
	/* b waits, and c bypasses it */
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	EXPECT_EQ(1, accmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
	ASSERT_EQ(0, tcgen05_alloc(c, &more, 128));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 bypasses=1"));
	EXPECT_EQ(1, of(c, "tmem-bypasses"));
	ASSERT_EQ(0, tcgen05_dealloc(c, more, 128));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 256));
	ASSERT_EQ(0, tmem_finish(&call));
	EXPECT_TRUE(counted(self->ctx, &n, "grants=1 waits=1 wakeups=1 woken-grant=1"));
	EXPECT_EQ(1, of(self->b, "tmem-woken-grant"));
	/* a relinquish ends the wait of a */
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
	 * c waits for all columns of the SM and is bypassed until its bound is reached.
	 * b holds columns that c waits for, and asks for free columns that are reserved
	 * for c. Only b can resolve this, so b gets them against the bound.
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

/*
 * the number of lines with @event and @detail; @waited gets the time in the last one,
 * in ns
 */
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
						  tmem_in_ms(NEAR_MS)));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_EQ(0, tcgen05_alloc(c, &more, 64));
	usleep(20000);
	ASSERT_EQ(0, tcgen05_dealloc(self->a, at, 256));
	ASSERT_EQ(-EDOM, tcgen05_alloc(self->a, &at, 7));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(c));
	tcgen05_exit(c);
	ASSERT_EQ(0, tmem_finish(&call));
	ASSERT_TRUE(accmem_trace_stop());

	EXPECT_EQ(1,
		  count_events("accmem_tmem_launch",
			       "cta=7 launch=0x1 cluster=0 rank=0 sm=0 cta_group=1",
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
	EXPECT_EQ(1, count_events("accmem_tmem_bypass", "cta=7 sm=0 bypassed=1",
				  NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_dealloc",
				  "cta=1 sm=0 columns=256 address=0x0", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_fail",
				  "cta=1 sm=0 columns=7 error=-33", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_relinquish",
				  "cta=7 sm=0 columns=64", NULL));
	EXPECT_EQ(1, count_events("accmem_tmem_exit", "cta=7 sm=0 columns=64",
				  NULL));
}

/* the offset of the first line with @event and @detail in the trace, or -1 */
static long place_of(const char *trace, const char *event, const char *detail)
{
	char line[512];
	const char *at = trace, *end;

	for (; (end = strchr(at, '\n')); at = end + 1) {
		snprintf(line, sizeof(line), "%.*s", (int)(end - at), at);
		if (strstr(line, event) && strstr(line, detail))
			return at - trace;
	}
	return -1;
}

/*
 * By the trace, no columns have two holders: p has given back its own before w is granted
 * them, though w may run first. p is the first of its pair to call, and sleeps.
 */
TEST_F(tmem_obs, trace_has_the_order_of_decisions)
{
	static char trace[65536];
	struct tmem_call first, waiter;
	long of_p, of_q, of_w;
	uint32_t at;

	if (access(TRACING "events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_EQ(0, tmem_pair_alloc(self->q, self->p, 512, &at));
	ASSERT_TRUE(tmem_start_alloc(&waiter, self->w, 512));
	ASSERT_TRUE(tmem_start(&first, self->q, TMEM_DEALLOC, at, 512));
	ASSERT_TRUE(accmem_trace_start());
	ASSERT_EQ(0, tcgen05_dealloc(self->p, at, 512));
	ASSERT_TRUE(accmem_trace_stop());
	ASSERT_EQ(0, tmem_finish(&first));
	ASSERT_EQ(0, tmem_finish(&waiter));
	ASSERT_LT(0, accmem_read_file(TRACING "trace", trace, sizeof(trace)));
	of_p = place_of(trace, "accmem_tmem_dealloc", "cta=3 sm=1");
	of_q = place_of(trace, "accmem_tmem_dealloc", "cta=4 sm=2");
	of_w = place_of(trace, "accmem_tmem_grant", "cta=6 sm=2");
	EXPECT_LE(0, of_p);
	/* the trace has ended before q need have run */
	EXPECT_LT(of_p, of_q);
	if (of_w >= 0) {
		EXPECT_LT(of_q, of_w);
	}
}

/* The end of a context frees all columns, and is traced before the calls that it ends. */
TEST_F(tmem_obs, trace_has_the_end_of_the_context)
{
	static char trace[65536];
	struct tmem_call call;
	long reset, fail;
	uint32_t at;

	if (access(TRACING "events", F_OK))
		SKIP(return, "no tracefs in this kernel");
	ASSERT_EQ(0, tcgen05_alloc(self->a, &at, 256));
	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 64, &at));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_TRUE(accmem_trace_start());
	closes(&self->ctx);
	ASSERT_TRUE(accmem_trace_stop());
	EXPECT_EQ(-ECONNRESET, tmem_finish(&call));
	ASSERT_LT(0, accmem_read_file(TRACING "trace", trace, sizeof(trace)));
	reset = place_of(trace, "accmem_tmem_reset", "ctas=3 columns=384");
	fail = place_of(trace, "accmem_tmem_fail", "cta=2 sm=0 columns=512");
	EXPECT_LE(0, reset);
	EXPECT_LT(reset, fail);
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
	"  ? CTA 2 launch 0x1 cluster 0 rank 0 waits for 512 columns, bypassed 0",
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
	EXPECT_EQ(ACCMEM_CTA_PERMIT, tmem_state(c));
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

/* The time is right with any HZ. */
TEST_F(tmem_obs, debugfs_shows_how_often_and_how_long)
{
	struct tmem_call call;
	static const char waits[] = "waits for 512 columns, bypassed 1 of 2, ";
	struct accmem_cta_query query;
	char text[8192], *at;
	uint32_t held, more;

	ASSERT_EQ(0, tcgen05_alloc(self->a, &held, 32));
	ASSERT_TRUE(tmem_start_alloc(&call, self->b, 512));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &more, 32));
	usleep(50000);
	ASSERT_EQ(0, tcgen05_query(self->b, &query));
	EXPECT_EQ(1, query.bypassed);
	ASSERT_LT(0, accmem_read_file(PICTURE, text, sizeof(text)));
	at = strstr(text, waits);
	ASSERT_NE(NULL, at);
	/* in us, exact to a tick of at most 10 ms */
	EXPECT_LE(40000, strtoul(at + strlen(waits), NULL, 10));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, held, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, more, 32));
	EXPECT_EQ(0, tmem_finish(&call));
}

ACCMEM_HARNESS_MAIN
