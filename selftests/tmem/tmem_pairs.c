// SPDX-License-Identifier: GPL-2.0
/*
 * Waits of pairs through the driver. When one peer gives up, dies or meets a fault,
 * the other peer gets the documented error or goes on waiting, and no column stays
 * allocated. The rules of pairs themselves are tested in lib/host/columns.
 */
#include "tmem_util.h"

TMEM_FIXTURE(tmem_pair, 64, 0, 0)

TEST_F(tmem_pair, p4_a_deadline_ends_a_dealloc)
{
	uint32_t at;

	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 512, &at));
	EXPECT_EQ(-ETIMEDOUT, tcgen05_dealloc_until(self->p, at, 512,
						    tmem_in_ms(30)));
	EXPECT_EQ(0, tmem_free_columns(self->p));
}

/* The request of the pair is the newest: its second alloc makes the request. */
TEST_F(tmem_pair, p2_a_deadlock_wakes_the_peer_that_sleeps)
{
	struct tmem_call w, p;
	uint32_t own, at, none;

	ASSERT_EQ(0, tcgen05_alloc(self->w, &own, 256));
	ASSERT_EQ(0, tmem_pair_alloc(self->p, self->q, 256, &at));
	ASSERT_TRUE(tmem_start_alloc(&w, self->w, 256));
	ASSERT_TRUE(tmem_start_alloc(&p, self->p, 256));
	EXPECT_EQ(-EDEADLK, tcgen05_alloc(self->q, &none, 256));
	EXPECT_EQ(-EDEADLK, tmem_finish(&p));
	EXPECT_EQ(1, accmem_fdinfo(tcgen05_fd(self->p), "tmem-woken-deadlock"));
	EXPECT_EQ(0, accmem_fdinfo(tcgen05_fd(self->q), "tmem-woken-deadlock"));
	EXPECT_TRUE(tmem_state(self->w) & ACCMEM_CTA_WAITING);
	ASSERT_TRUE(tmem_start(&p, self->p, TMEM_DEALLOC, at, 256));
	EXPECT_EQ(0, tcgen05_dealloc(self->q, at, 256));
	EXPECT_EQ(0, tmem_finish(&p));
	EXPECT_EQ(0, tmem_finish(&w));
}

/* --- death --- */

enum moment {
	BEFORE, /* q has made no call */
	IN_ALLOC, /* q waits for p */
	IN_QUEUE, /* both wait for columns, and q came first */
	LAST_IN_QUEUE, /* both wait for columns, and q came last */
	HOLDING,
	IN_DEALLOC,
	MOMENTS,
};

static const char *const moment_names[] = { "before alloc", "in alloc",
					    "in the queue", "last in the queue",
					    "holding", "in dealloc" };

static void child_life(struct tcgen05_cta *q, enum moment moment)
{
	uint32_t at;

	if (moment == BEFORE)
		pause();
	if (tcgen05_alloc(q, &at, 64))
		_exit(1);
	if (moment == IN_DEALLOC)
		tcgen05_dealloc(q, at, 64);
	pause();
}

/* The parent closes q, so that the child has its only file. The child closes the others. */
static pid_t start_child(struct tcgen05_cta **q, struct tcgen05_cta *p,
			 struct tcgen05_cta *w, enum moment moment)
{
	pid_t pid = fork();

	if (!pid) {
		tcgen05_exit(p);
		tcgen05_exit(w);
		child_life(*q, moment);
	}
	return pid;
}

static bool child_is_there(struct tcgen05_cta *q, enum moment moment)
{
	struct accmem_cta_query query;
	int i;

	if (moment == BEFORE)
		return true;
	for (i = 0; i < TMEM_PATIENCE_MS; i++, usleep(1000)) {
		if (tcgen05_query(q, &query))
			return false;
		if (moment == HOLDING && query.held &&
		    !(query.state & ACCMEM_CTA_WAITING))
			return true;
		if (moment == IN_DEALLOC && query.held &&
		    query.state & ACCMEM_CTA_WAITING)
			return true;
		if ((moment == IN_ALLOC || moment == IN_QUEUE ||
		     moment == LAST_IN_QUEUE) &&
		    query.state & ACCMEM_CTA_WAITING)
			return true;
	}
	return false;
}

/* q is killed at each moment. p gets -EPIPE, and all columns become free. */
TEST_F(tmem_pair, p12_death_of_the_peer_at_any_point)
{
	struct tmem_call call;
	enum moment moment;
	uint32_t at, own;
	bool p_calls, queued;
	pid_t pid;

	for (moment = BEFORE; moment < MOMENTS; moment++) {
		queued = moment == IN_QUEUE || moment == LAST_IN_QUEUE;
		p_calls = moment == BEFORE || moment == HOLDING || queued;
		TH_LOG("%s", moment_names[moment]);
		if (queued) {
			ASSERT_EQ(0, tcgen05_alloc(self->w, &own, 512));
		}
		if (moment == LAST_IN_QUEUE) {
			ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
		}
		pid = start_child(&self->q, self->p, self->w, moment);
		ASSERT_LT(0, pid);
		if (moment == HOLDING || moment == IN_DEALLOC) {
			ASSERT_EQ(0, tcgen05_alloc(self->p, &at, 64));
		}
		ASSERT_TRUE(child_is_there(self->q, moment));
		tcgen05_exit(self->q);
		if (moment == HOLDING) {
			ASSERT_TRUE(tmem_start(&call, self->p, TMEM_DEALLOC, at,
					       64));
		} else if (p_calls && moment != LAST_IN_QUEUE) {
			ASSERT_TRUE(tmem_start_alloc(&call, self->p, 64));
		}
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		if (p_calls) {
			EXPECT_EQ(-EPIPE, tmem_finish(&call));
		}
		EXPECT_TRUE(tmem_state(self->p) & ACCMEM_CTA_PEER_GONE);
		EXPECT_EQ(-EPIPE, tcgen05_alloc(self->p, &at, 32));
		if (queued) {
			ASSERT_EQ(0, tcgen05_dealloc(self->w, own, 512));
		}
		EXPECT_EQ(512, tmem_free_columns(self->w));
		/* the launch ends with its last CTA, so that it can be made again */
		tcgen05_exit(self->p);
		self->p = tmem_peer(self->ctx, 1, 0);
		self->q = tmem_peer(self->ctx, 2, 1);
		ASSERT_TRUE(self->p && self->q);
		EXPECT_EQ(512, tmem_free_columns(self->p));
	}
}

/* The peer of the CTA at @place comes, and ends the wait of @call. */
static void meet(struct __test_metadata *_metadata, struct accmem_context *ctx,
		 struct tcgen05_place *place, struct tmem_call *call)
{
	struct tcgen05_cta *peer;
	uint32_t at;

	place->rank ^= 1;
	place->sm ^= 1;
	ASSERT_EQ(0, tcgen05_launch(ctx, place, &peer));
	EXPECT_EQ(0, tcgen05_alloc(peer, &at, 64));
	EXPECT_EQ(0, tmem_finish(call));
	tcgen05_exit(peer);
}

/*
 * A launch whose answer cannot be written is undone. It does not count as the end of
 * the peer.
 */
TEST_F(tmem_pair, p12_a_launch_that_failed_can_be_made_again)
{
	struct tcgen05_place place = { .launch = 3, .rank = 4, .cta_group = 2 };
	struct accmem_tmem_launch *req;
	struct tcgen05_cta *first;
	struct tmem_call call;

	ASSERT_EQ(0, tcgen05_launch(self->ctx, &place, &first));
	ASSERT_TRUE(tmem_start_alloc(&call, first, 64));
	req = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, req);
	*req = (struct accmem_tmem_launch){ .size = sizeof(*req),
					    .launch = 3,
					    .rank = 5,
					    .sm = 1,
					    .cta_group = 2 };
	ASSERT_EQ(0, mprotect(req, 4096, PROT_READ));
	EXPECT_EQ(-EFAULT, accmem_ioctl(accmem_fd(self->ctx),
					ACCMEM_IOC_TMEM_LAUNCH, req));
	meet(_metadata, self->ctx, &place, &call);
	tcgen05_exit(first);
	munmap(req, 4096);
}

ACCMEM_HARNESS_MAIN
