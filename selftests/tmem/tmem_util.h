/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for Tensor Memory: contexts and CTAs through libaccmem, calls that a separate
 * thread makes, and counters in fdinfo.
 */
#ifndef TMEM_UTIL_H
#define TMEM_UTIL_H

#include <tcgen05.h>

#include "accmem_test.h"

#define TMEM_MS 1000000ull /* ns */
#define TMEM_PATIENCE_MS 60000

static inline uint64_t tmem_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static inline uint64_t tmem_in_ms(uint64_t ms)
{
	return tmem_now() + ms * TMEM_MS;
}

/* opens a context with SMs; NULL on failure */
static inline struct accmem_context *tmem_open(uint32_t nr_sms,
					       uint32_t columns,
					       uint32_t exclusive,
					       uint32_t bound)
{
	struct tcgen05_config config = { .nr_sms = nr_sms,
					 .columns = columns,
					 .exclusive = exclusive,
					 .bypass_bound = bound };
	struct accmem_context *ctx;

	if (accmem_open(NULL, &ctx))
		return NULL;
	if (tcgen05_setup(ctx, &config)) {
		accmem_close(ctx);
		return NULL;
	}
	return ctx;
}

/* launches a CTA that has no peer; NULL on failure */
static inline struct tcgen05_cta *tmem_single(struct accmem_context *ctx,
					      uint32_t sm)
{
	struct tcgen05_place place = { .launch = 1, .sm = sm, .cta_group = 1 };
	struct tcgen05_cta *cta;

	return tcgen05_launch(ctx, &place, &cta) ? NULL : cta;
}

/* launches one CTA of a pair; NULL on failure */
static inline struct tcgen05_cta *tmem_peer(struct accmem_context *ctx,
					    uint32_t sm, uint32_t rank)
{
	struct tcgen05_place place = { .launch = 2, .rank = rank, .sm = sm,
				       .cta_group = 2 };
	struct tcgen05_cta *cta;

	return tcgen05_launch(ctx, &place, &cta) ? NULL : cta;
}

static inline void exits(struct tcgen05_cta **cta)
{
	tcgen05_exit(*cta);
	*cta = NULL;
}

static inline void closes(struct accmem_context **ctx)
{
	accmem_close(*ctx);
	*ctx = NULL;
}

enum tmem_op { TMEM_ALLOC, TMEM_DEALLOC };

/* a call that a separate thread makes */
struct tmem_call {
	pthread_t thread;
	pid_t tid;
	struct tcgen05_cta *cta;
	enum tmem_op op;
	uint32_t address; /* result of an alloc, operand of a dealloc */
	uint32_t columns;
	uint64_t deadline_ns;
	int ret;
};

static inline void *tmem_run_call(void *argument)
{
	struct tmem_call *call = argument;

	int ret;

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	if (call->op == TMEM_ALLOC)
		ret = tcgen05_alloc_until(call->cta, &call->address,
					  call->columns, call->deadline_ns);
	else
		ret = tcgen05_dealloc_until(call->cta, call->address,
					    call->columns, call->deadline_ns);
	__atomic_store_n(&call->ret, ret, __ATOMIC_RELEASE);
	return NULL;
}

static inline uint32_t tmem_state(struct tcgen05_cta *cta)
{
	struct accmem_cta_query query;

	return tcgen05_query(cta, &query) ? 0 : query.state;
}

/*
 * waits until a thread sleeps, which has stored its id at @tid; while a call of its CTA
 * waits, the thread may still be on a processor
 */
static inline bool tmem_until_thread_sleeps(const pid_t *tid)
{
	return accmem_until_asleep(tid, TMEM_PATIENCE_MS);
}

/* waits until a call of the CTA waits */
static inline bool tmem_until_waiting(struct tcgen05_cta *cta)
{
	int i;

	for (i = 0; i < TMEM_PATIENCE_MS; i++) {
		if (tmem_state(cta) & ACCMEM_CTA_WAITING)
			return true;
		usleep(1000);
	}
	return false;
}

/* waits until the call waits and its thread sleeps, so that it must be woken */
static inline bool tmem_until_asleep(struct tmem_call *call)
{
	return tmem_until_waiting(call->cta) &&
	       tmem_until_thread_sleeps(&call->tid);
}

/* starts a call and waits until its thread sleeps */
static inline bool tmem_start(struct tmem_call *call, struct tcgen05_cta *cta,
			      enum tmem_op op, uint32_t address,
			      uint32_t columns)
{
	*call = (struct tmem_call){ .cta = cta, .op = op, .columns = columns,
				    .address = address, .ret = 1 };
	if (pthread_create(&call->thread, NULL, tmem_run_call, call))
		return false;
	return tmem_until_asleep(call);
}

static inline bool tmem_start_alloc(struct tmem_call *call,
				    struct tcgen05_cta *cta, uint32_t columns)
{
	return tmem_start(call, cta, TMEM_ALLOC, 0, columns);
}

/* false if the call still waits after some seconds */
static inline bool tmem_ends(const struct tmem_call *call)
{
	int i;

	for (i = 0; i < 5000; i++) {
		if (__atomic_load_n(&call->ret, __ATOMIC_ACQUIRE) != 1)
			return true;
		usleep(1000);
	}
	return false;
}

static inline int tmem_finish(struct tmem_call *call)
{
	pthread_join(call->thread, NULL);
	return call->ret;
}

/* an alloc of both peers; 0 or the first error */
static inline int tmem_pair_alloc(struct tcgen05_cta *a, struct tcgen05_cta *b,
				  uint32_t columns, uint32_t *address)
{
	struct tmem_call call;
	uint32_t other;
	int ret;

	if (!tmem_start_alloc(&call, a, columns))
		return -1000;
	ret = tcgen05_alloc(b, &other, columns);
	tmem_finish(&call);
	*address = call.address;
	if (!ret && !call.ret && other != *address)
		return -1001;
	return ret ?: call.ret;
}

static inline int64_t tmem_explained_wakeups(struct accmem_context *ctx)
{
	int fd = accmem_fd(ctx);

	return accmem_fdinfo(fd, "tmem-woken-grant") +
	       accmem_fdinfo(fd, "tmem-woken-timeout") +
	       accmem_fdinfo(fd, "tmem-woken-signal") +
	       accmem_fdinfo(fd, "tmem-woken-exit") +
	       accmem_fdinfo(fd, "tmem-woken-deadlock") +
	       accmem_fdinfo(fd, "tmem-woken-reset");
}

/* the number of wake-ups without a reason, which should be 0 */
static inline int64_t tmem_unexplained_wakeups(struct accmem_context *ctx)
{
	return accmem_fdinfo(accmem_fd(ctx), "tmem-wakeups") -
	       tmem_explained_wakeups(ctx);
}

/*
 * True if few wake-ups had no reason. Where many threads are busy, a lock of the kernel
 * may wake a task late, when it has taken the lock and sleeps in the arbiter already
 * (wake_q; seen from mmap_lock). Such wake-ups are rare. A thundering herd is not.
 */
static inline bool tmem_woken_by_strays_only(struct accmem_context *ctx)
{
	int64_t n = tmem_unexplained_wakeups(ctx);

	return n >= 0 && n <= accmem_fdinfo(accmem_fd(ctx), "tmem-waits") / 100;
}

static inline uint32_t tmem_free_columns(struct tcgen05_cta *cta)
{
	struct accmem_cta_query query;

	return tcgen05_query(cta, &query) ? ~0u : query.free;
}

static inline uint64_t tmem_id(struct tcgen05_cta *cta)
{
	struct accmem_cta_query query;

	return tcgen05_query(cta, &query) ? 0 : query.id;
}

/* a CTA to launch, and where its pointer goes */
struct tmem_place {
	struct tcgen05_cta **cta;
	uint32_t sm;
	uint32_t rank; /* in the pair; TMEM_ALONE without a peer */
};

#define TMEM_ALONE (~0u)

/* launches the CTAs; @flags is 0 or O_NONBLOCK, and is set on their files */
static inline bool tmem_launch_all(struct accmem_context *ctx,
				   const struct tmem_place *place,
				   unsigned int nr, int flags)
{
	struct tcgen05_cta *cta;

	for (; ctx && nr--; place++) {
		if (place->rank == TMEM_ALONE)
			cta = tmem_single(ctx, place->sm);
		else
			cta = tmem_peer(ctx, place->sm, place->rank);
		if (!cta || fcntl(tcgen05_fd(cta), F_SETFL, flags))
			return false;
		*place->cta = cta;
	}
	return ctx;
}

/*
 * A fixture with a context and six CTAs. @a, @b and @c are on SM 0, @p and @q are a
 * pair on SMs 1 and 2, and @w is on SM 2 without a peer. Their numbers are 1 to 6, in
 * the order a, b, p, q, c, w. The bypass bound of the context is @bound. An SM has 512
 * columns; @a holds @held of them, at the address @at. @flags is set on the files of
 * the CTAs. A test that closes a CTA or the context sets its pointer to NULL.
 */
#define TMEM_FIXTURE(fixture, bound, held, flags)                              \
	FIXTURE(fixture)                                                       \
	{                                                                      \
		struct accmem_context *ctx;                                    \
		struct tcgen05_cta *a, *b, *c;                                 \
		struct tcgen05_cta *p, *q, *w;                                 \
		uint32_t at;                                                   \
	};                                                                     \
	FIXTURE_SETUP(fixture)                                                 \
	{                                                                      \
		const struct tmem_place all[] = {                              \
			{ &self->a, 0, TMEM_ALONE },                           \
			{ &self->b, 0, TMEM_ALONE },                           \
			{ &self->p, 1, 0 },                                    \
			{ &self->q, 2, 1 },                                    \
			{ &self->c, 0, TMEM_ALONE },                           \
			{ &self->w, 2, TMEM_ALONE },                           \
		};                                                             \
		self->ctx = tmem_open(3, 0, 0, bound);                         \
		ASSERT_TRUE(tmem_launch_all(self->ctx, all, ARRAY_SIZE(all),   \
					    flags));                           \
		if (held) {                                                    \
			ASSERT_EQ(0, tcgen05_alloc(self->a, &self->at, held)); \
		}                                                              \
	}                                                                      \
	FIXTURE_TEARDOWN(fixture)                                              \
	{                                                                      \
		if (self->ctx) {                                               \
			EXPECT_TRUE(tmem_woken_by_strays_only(self->ctx));     \
		}                                                              \
		tcgen05_exit(self->a);                                         \
		tcgen05_exit(self->b);                                         \
		tcgen05_exit(self->c);                                         \
		tcgen05_exit(self->p);                                         \
		tcgen05_exit(self->q);                                         \
		tcgen05_exit(self->w);                                         \
		accmem_close(self->ctx);                                       \
	}

#endif /* TMEM_UTIL_H */
