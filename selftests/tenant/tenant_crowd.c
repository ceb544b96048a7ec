// SPDX-License-Identifier: GPL-2.0
/*
 * A tenant with very many buffers, or with full caches of freed buffers, must not
 * delay tenants of the same device or of another. The tests measure how long the
 * others sleep. Where they compare times, both times are from the same test.
 */
#include <sys/prctl.h>

#include "accmem_test.h"

#define NAMES 8000
#define SLOWER 6 /* times the control; it was hundreds when the search was linear */
#define CALLS 40
#define TRIES 5
#define WINDOW_MS 400
#define ASLEEP_MS 20
#define KEPT 16 /* capacity of a context's cache, in buffers */

FIXTURE(tenant_crowd)
{
	int dummy;
};

/* Addresses and caches are the same on the device without pages. */
ACCMEM_VARIANTS_WITH_PAGES(tenant_crowd);

FIXTURE_SETUP(tenant_crowd)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->dummy = 0;
}

FIXTURE_TEARDOWN(tenant_crowd)
{
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
	EXPECT_EQ(0, self->dummy);
}

struct tenant {
	const char *path;
	int fd;
	struct accmem_info info;
	uint64_t gap;
	int err; /* result of the last call */
};

static int enter(struct tenant *t)
{
	t->fd = accmem_dev_open(t->path, O_RDWR);
	return t->fd < 0 ? t->fd : accmem_ioctl_info(t->fd, &t->info);
}

/*
 * Allocates buffers all over the device addresses, so that the gaps between them are
 * smaller than gap. With identity translation it allocates every second granule.
 */
static int spread(struct tenant *t)
{
	unsigned int i, names = accmem_scale(NAMES);
	struct accmem_alloc a, hop;
	int err = 0;

	if (t->info.translation == ACCMEM_TRANSLATION_IDENTITY) {
		if (names > t->info.capacity / 4 / 8192)
			names = t->info.capacity / 4 / 8192;
		t->gap = t->info.capacity;
	} else {
		t->gap = ALIGN_UP(t->info.address_span / names + 1, MIB(2));
	}
	for (i = 0; i < names && !err; i++) {
		err = accmem_alloc_bytes(t->fd, 4096, 0, &a);
		if (err || t->info.translation == ACCMEM_TRANSLATION_IDENTITY)
			continue;
		/* addresses ascend, so this skips a gap */
		err = accmem_alloc_bytes(t->fd, t->gap - MIB(2), 0, &hop) ?:
			      accmem_ioctl_free(t->fd, hop.address);
	}
	return err;
}

/*
 * an allocation that fits in no gap, so its address is above all others, or there is
 * none
 */
static void alloc_above(void *arg)
{
	struct tenant *t = arg;
	struct accmem_alloc a;

	t->err = accmem_alloc_bytes(t->fd, t->gap + MIB(4), 0, &a);
	if (!t->err)
		accmem_ioctl_free(t->fd, a.address);
}

static void alloc_failing(void *arg)
{
	struct tenant *t = arg;
	struct accmem_alloc a;

	t->err = accmem_alloc_bytes(t->fd, 2 * t->info.capacity, 0, &a);
}

static void ask(void *arg)
{
	struct tenant *t = arg;
	struct accmem_info info;

	t->err = accmem_ioctl_info(t->fd, &info);
}

static uint64_t best_of(void (*fn)(void *arg), void *arg)
{
	uint64_t best = ~0ull, now;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		now = accmem_time(fn, arg, CALLS);
		best = now < best ? now : best;
	}
	return best;
}

/* --- the search for a free device address -------------------------------- */

/* The search for an address takes no longer among many buffers than among none. */
TEST_F(tenant_crowd, the_search_for_an_address_does_not_grow)
{
	struct tenant many = { .path = variant->path };
	struct tenant none = { .path = variant->path };
	uint64_t alone = 1, crowded = ~0ull;
	unsigned int i;

	ASSERT_EQ(0, enter(&many));
	ASSERT_EQ(0, enter(&none));
	ASSERT_EQ(0, spread(&many));
	if (many.info.translation == ACCMEM_TRANSLATION_IDENTITY)
		many.gap = many.info.capacity / 4;
	none.gap = many.gap;
	for (i = 0; i < TRIES && crowded > SLOWER * alone; i++) {
		alone = best_of(alloc_above, &none);
		crowded = best_of(alloc_above, &many);
	}
	EXPECT_EQ(0, none.err);
	EXPECT_GE(SLOWER * alone, crowded)
	{
		TH_LOG("%llu ns a call among many, %llu alone",
		       (unsigned long long)crowded / CALLS,
		       (unsigned long long)alone / CALLS);
	}
	close(many.fd);
	close(none.fd);
}

/* Addresses never overlap, also after the allocator has wrapped around. */
TEST_F(tenant_crowd, addresses_come_round_apart)
{
	struct tenant t = { .path = variant->path };
	struct accmem_alloc a, b[2];
	struct accmem_query query;
	unsigned int i, rounds;

	ASSERT_EQ(0, enter(&t));
	ASSERT_EQ(0, accmem_alloc_bytes(t.fd, 4096, 0, &b[0]));
	ASSERT_EQ(0, accmem_alloc_bytes(t.fd, 64, 0, &b[1]));
	rounds = 3 * t.info.address_span / (t.info.capacity / 2);
	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0,
			  accmem_alloc_bytes(t.fd, t.info.capacity / 2 - MIB(2),
					     0, &a));
		ASSERT_LE(t.info.address_base, a.address);
		ASSERT_GE(t.info.address_base + t.info.address_span,
			  a.address + a.footprint);
		ASSERT_TRUE(b[0].address + 4096 <= a.address ||
			    b[0].address >= a.address + a.footprint);
		ASSERT_TRUE(b[1].address + 64 <= a.address ||
			    b[1].address >= a.address + a.footprint);
		ASSERT_EQ(0,
			  accmem_ioctl_query(t.fd, a.address + a.footprint - 1,
					     &query));
		ASSERT_EQ(a.address, query.base);
		ASSERT_EQ(0, accmem_ioctl_free(t.fd, a.address));
	}
	EXPECT_EQ(0, accmem_ioctl_query(t.fd, b[0].address, &query));
	EXPECT_EQ(0, accmem_ioctl_query(t.fd, b[1].address, &query));
	close(t.fd);
}

/* --- what the others wait ------------------------------------------------ */

/* in a child of @parent: ends with the parent */
static void end_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

/*
 * Runs beside its parent, in the same context. Fills the cache with small buffers, and
 * calls INFO, which must not empty the caches.
 */
static void cache_and_ask(struct tenant *t)
{
	struct accmem_alloc a[KEPT];
	unsigned int n;

	for (;;) {
		for (n = 0; n < KEPT; n++)
			if (accmem_alloc_bytes(t->fd, 64, 0, &a[n]))
				break;
		while (n--)
			accmem_ioctl_free(t->fd, a[n].address);
		ask(t);
	}
}

static int prepare_names(void *arg)
{
	struct tenant *t = arg;
	pid_t parent = getpid(), pid;
	int err = enter(t) ?: spread(t);

	if (err)
		return err;
	pid = fork();
	if (!pid) {
		end_with(parent);
		cache_and_ask(t);
	}
	return pid < 0;
}

#define HOARDERS 30

static int hoarders[HOARDERS];

/* opens many contexts, whose caches hoard_and_fail() fills */
static int prepare_caches(void *arg)
{
	struct tenant *t = arg;
	int err = enter(t);
	unsigned int i;

	for (i = 0; i < HOARDERS && !err; i++) {
		hoarders[i] = accmem_dev_open(t->path, O_RDWR);
		err = hoarders[i] < 0 ? hoarders[i] : 0;
	}
	return err;
}

/* fills the caches, calls INFO and makes an ALLOC that fails */
static void hoard_and_fail(void *arg)
{
	static struct accmem_alloc a[KEPT];
	unsigned int i, n;

	for (i = 0; i < HOARDERS; i++) {
		for (n = 0; n < KEPT; n++)
			if (accmem_alloc_bytes(hoarders[i], KIB(32), 0, &a[n]))
				break;
		while (n--)
			accmem_ioctl_free(hoarders[i], a[n].address);
	}
	ask(arg);
	alloc_failing(arg);
}

/* the time in ms that calls of @fn sleep during WINDOW_MS */
static long sleep_in(void (*fn)(void *arg), void *arg)
{
	uint64_t end = accmem_ms() + WINDOW_MS;
	int64_t before = accmem_slept(0);

	while (accmem_ms() < end)
		fn(arg);
	return accmem_slept(before) / 1000000;
}

struct worst {
	int (*prepare)(void *arg);
	void (*step)(void *arg);
};

/*
 * Measures how long @victim sleeps in calls of @fn beside a tenant that does @worst.
 * One of the tries must be nearly 0: locks of the kernel itself may be contended by
 * chance.
 */
static void count(struct __test_metadata *_metadata, const char *path,
		  struct tenant *victim, void (*fn)(void *arg),
		  const struct worst *worst, const char *what)
{
	struct tenant t = { .path = path };
	long slept, least = 1000;
	unsigned int i;
	pid_t pid;

	for (i = 0; i < TRIES && least > ASLEEP_MS; i++) {
		pid = accmem_start(worst->prepare, worst->step, &t);
		ASSERT_LT(0, pid);
		slept = sleep_in(fn, victim);
		accmem_stop(pid);
		least = slept < least ? slept : least;
	}
	TH_LOG("%s: sleeps %ld ms of 400", what, least);
	EXPECT_GE(ASLEEP_MS, least);
}

static const char *another(const char *path)
{
	return strcmp(path, ACCMEM_DEV_EMULATED) ? ACCMEM_DEV_EMULATED :
						   ACCMEM_DEV_PHYS;
}

static void count_all(struct __test_metadata *_metadata, const char *path,
		      const struct worst *worst)
{
	struct tenant same = { .path = path };
	struct tenant far = { .path = another(path) };

	ASSERT_EQ(0, enter(&same));
	ASSERT_EQ(0, enter(&far));
	count(_metadata, path, &same, ask, worst, "INFO");
	count(_metadata, path, &far, ask, worst, "INFO, another device");
	count(_metadata, path, &far, alloc_failing, worst,
	      "failing ALLOC, another device");
	EXPECT_EQ(0, same.err);
	EXPECT_EQ(-ENOMEM, far.err);
	close(same.fd);
	close(far.fd);
}

TEST_F(tenant_crowd, nobody_waits_for_many_names)
{
	static const struct worst worst = { prepare_names, alloc_above };

	count_all(_metadata, variant->path, &worst);
}

TEST_F(tenant_crowd, nobody_waits_for_full_caches)
{
	static const struct worst worst = { prepare_caches, hoard_and_fail };

	count_all(_metadata, variant->path, &worst);
}

ACCMEM_HARNESS_MAIN
