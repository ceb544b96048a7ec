// SPDX-License-Identifier: GPL-2.0
/*
 * Quarantine of small buffers. One pinned page keeps its granule in quarantine as a
 * whole, not each small buffer in it. So the scans in calls of other tenants take time
 * for each granule, not for each buffer. All of the memory comes back when the pin has
 * gone. The driver finds out whether a tenant's memory is pinned by unmapping it. No
 * mapping of another tenant may be unmapped for that, whatever its offset.
 */
#include "accmem_test.h"

#define GRANULES 512
#define BLOCKS 64 /* of a granule */
#define MAPPINGS 16
#define MANY_MAPPINGS 3000
#define FAULT_ROUNDS 200
#define CALLS 20
#define TRIES 5
#define WINDOW_MS 500
#define INFO_ASLEEP_MS 50
#define ALLOC_ASLEEP_MS 150
#define SLOWER \
	5 /* times the control; it was 30 to 60 when each buffer was scanned */

FIXTURE(tenant_quarantine)
{
	int fd, other;
	unsigned int granules;
	struct accmem_info info;
};

ACCMEM_VARIANTS_WITH_PAGES(tenant_quarantine);

FIXTURE_SETUP(tenant_quarantine)
{
	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	self->granules = accmem_scale(GRANULES);
	if (self->granules > GRANULES)
		self->granules = GRANULES;
	self->fd = accmem_opened(variant->path);
	self->other = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->other, &self->info));
}

FIXTURE_TEARDOWN(tenant_quarantine)
{
	close(self->fd);
	close(self->other);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

/* memory that was mapped, pinned and freed */
struct pinned {
	int fd;
	int pipes[2];
	unsigned int granules;
	unsigned int
		blocks; /* buffers in each granule; 1: the granule is one buffer */
};

/* pins a page of each granule */
static bool pin_all(struct pinned *pin, char **p)
{
	struct iovec iov = { .iov_len = 8 };
	unsigned int i;

	for (i = 0; i < pin->granules; i++) {
		iov.iov_base = p[i];
		*p[i] = 1;
		if (vmsplice(pin->pipes[1], &iov, 1, SPLICE_F_NONBLOCK) != 8)
			return false;
	}
	return true;
}

static bool make_pinned(struct pinned *pin, const char *path)
{
	static struct accmem_alloc a[GRANULES * BLOCKS];
	static char *p[GRANULES];
	unsigned int i, n = pin->granules * pin->blocks;

	pin->fd = accmem_dev_open(path, O_RDWR);
	if (pin->fd < 0 || pipe(pin->pipes) ||
	    fcntl(pin->pipes[1], F_SETPIPE_SZ, 4096 * GRANULES) < 0)
		return false;
	for (i = 0; i < n; i++)
		if (accmem_alloc_bytes(pin->fd, 4096 / pin->blocks, 0, &a[i]))
			return false;
	for (i = 0; i < pin->granules; i++) {
		p[i] = accmem_mmap(pin->fd, &a[i * pin->blocks], 4096, RW);
		if (!p[i])
			return false;
	}
	if (!pin_all(pin, p))
		return false;
	for (i = 0; i < n; i++)
		if (accmem_ioctl_free(pin->fd, a[i].address))
			return false;
	for (i = 0; i < pin->granules; i++)
		munmap(p[i], 4096);
	return true;
}

static void unpin(struct pinned *pin)
{
	close(pin->pipes[0]);
	close(pin->pipes[1]);
	close(pin->fd);
}

struct victim {
	int fd;
	uint64_t length;
	int err;
};

static void alloc_failing(void *arg)
{
	struct victim *v = arg;
	struct accmem_alloc a;

	v->err = accmem_alloc_bytes(v->fd, v->length, 0, &a);
}

static void ask(void *arg)
{
	struct victim *v = arg;
	struct accmem_info info;

	v->err = accmem_ioctl_info(v->fd, &info);
}

static uint64_t time_pinned(struct __test_metadata *_metadata, const char *path,
			    struct pinned *pin, void (*fn)(void *arg),
			    struct victim *v)
{
	uint64_t best = ~0ull, now;
	unsigned int i;

	ASSERT_TRUE(make_pinned(pin, path));
	EXPECT_LE(4096 * pin->granules,
		  accmem_sysfs(path, "quarantined_bytes"));
	for (i = 0; i < 3; i++) {
		now = accmem_time(fn, v, CALLS);
		best = now < best ? now : best;
	}
	unpin(pin);
	EXPECT_EQ(-1, accmem_sysfs_wait(path, "quarantined_bytes", 0, 30000));
	return best;
}

/* compares @fn with granules in quarantine, and with as many granules of small buffers */
static void compare(struct __test_metadata *_metadata, const char *path,
		    unsigned int granules, void (*fn)(void *arg),
		    struct victim *v)
{
	struct pinned whole = { .granules = granules, .blocks = 1 };
	struct pinned cut = { .granules = granules, .blocks = BLOCKS };
	uint64_t alone = 1, beside = ~0ull;
	unsigned int i;

	for (i = 0; i < TRIES && beside > SLOWER * alone; i++) {
		alone = time_pinned(_metadata, path, &whole, fn, v);
		beside = time_pinned(_metadata, path, &cut, fn, v);
	}
	TH_LOG("%llu us, %llu where nothing was cut",
	       (unsigned long long)beside / 1000,
	       (unsigned long long)alone / 1000);
	EXPECT_GE(SLOWER * alone, beside);
}

TEST_F(tenant_quarantine, a_failing_alloc_goes_through_granules)
{
	struct victim v = { self->other, self->info.capacity, 0 };

	compare(_metadata, variant->path, self->granules, alloc_failing, &v);
	EXPECT_EQ(-ENOMEM, v.err);
}

struct attacker {
	struct pinned pin;
	const char *path;
	struct victim self;
};

static int prepare_attack(void *arg)
{
	struct attacker *a = arg;

	if (!make_pinned(&a->pin, a->path))
		return 1;
	a->self.fd = a->pin.fd;
	return 0;
}

/* an ALLOC that fails, and scans the quarantine */
static void attack(void *arg)
{
	struct attacker *a = arg;

	alloc_failing(&a->self);
}

/* the time of INFO of another context meanwhile */
static uint64_t time_beside(struct __test_metadata *_metadata,
			    struct attacker *a, struct victim *v)
{
	uint64_t best = ~0ull, now;
	unsigned int i;
	pid_t pid;

	pid = accmem_start(prepare_attack, attack, a);
	ASSERT_LT(0, pid);
	for (i = 0; i < 3; i++) {
		now = accmem_time(ask, v, CALLS);
		best = now < best ? now : best;
	}
	accmem_stop(pid);
	EXPECT_EQ(-1,
		  accmem_sysfs_wait(a->path, "quarantined_bytes", 0, 30000));
	return best;
}

TEST_F(tenant_quarantine, info_does_not_wait)
{
	struct victim v = { self->other, 0, 0 };
	struct attacker whole = { .pin = { .granules = self->granules,
					   .blocks = 1 },
				  .path = variant->path,
				  .self = { .length = self->info.capacity } };
	struct attacker cut = whole;
	uint64_t alone = 1, beside = ~0ull;
	unsigned int i;

	cut.pin.blocks = BLOCKS;
	for (i = 0; i < TRIES && beside > SLOWER * alone; i++) {
		alone = time_beside(_metadata, &whole, &v);
		beside = time_beside(_metadata, &cut, &v);
	}
	TH_LOG("%llu us, %llu where nothing was cut",
	       (unsigned long long)beside / 1000,
	       (unsigned long long)alone / 1000);
	EXPECT_GE(SLOWER * alone, beside);
	EXPECT_EQ(0, v.err);
}

/*
 * INFO says what a request could get: also memory that only a mapped neighbour in its
 * folio keeps in quarantine. A request would unmap the neighbour before it fails.
 */
TEST_F(tenant_quarantine, largest_run_has_what_a_neighbour_hides)
{
	uint64_t end = self->info.address_base + self->info.capacity;
	struct accmem_alloc low, a[2], all = {};
	struct accmem_info info;
	unsigned int i;
	char *p[2];

	if (self->info.backing != ACCMEM_BACKING_PHYS)
		return;
	low = (struct accmem_alloc){ .length = self->info.capacity - MIB(4),
				     .flags = ACCMEM_ALLOC_FIXED,
				     .address = self->info.address_base };
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &low));
	for (i = 0; i < 2; i++) {
		a[i] = (struct accmem_alloc){
			.length = 4096,
			.flags = ACCMEM_ALLOC_FIXED,
			.address = end - MIB(4) + i * 4096,
		};
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a[i]));
		p[i] = accmem_mapped(self->fd, &a[i], 4096);
		*p[i] = 1;
	}
	munmap(p[1], 4096);
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, a[1].address));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(MIB(4) - 4096, info.largest_run);
	all.length = info.largest_run;
	EXPECT_EQ(0, accmem_ioctl_alloc(self->fd, &all));
	EXPECT_EQ(1, *p[0]);
	munmap(p[0], 4096);
}

/*
 * The quarantine holds complete granules. The charge is for their compound pages where
 * these have owners.
 */
TEST_F(tenant_quarantine, bytes_are_those_of_the_granules)
{
	struct pinned pin = { .granules = self->granules, .blocks = BLOCKS };
	struct accmem_info info;

	ASSERT_TRUE(make_pinned(&pin, variant->path));
	EXPECT_EQ(4096 * pin.granules,
		  accmem_sysfs(variant->path, "quarantined_bytes"));
	ASSERT_EQ(0, accmem_ioctl_info(pin.fd, &info));
	EXPECT_LE(4096 * pin.granules, info.context_bytes);
	EXPECT_GE(ALIGN_UP(4096 * pin.granules, MIB(2)) + 2 * MIB(2),
		  info.context_bytes);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	unpin(&pin);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					30000));
}

/* --- mappings of others --------------------------------------------------- */

static long minor_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

/* the number of faults of accesses to @p; before each access an ALLOC of @fd fails */
static long faults_beside(int fd, const struct accmem_info *info,
			  volatile char *p, uint64_t length)
{
	struct accmem_alloc a;
	long before;
	unsigned int i;
	uint64_t at;

	for (at = 0; at < length; at += 4096)
		p[at] = 1;
	before = minor_faults();
	for (i = 0; i < FAULT_ROUNDS; i++) {
		if (accmem_alloc_bytes(fd, info->capacity, 0, &a) != -ENOMEM)
			return -1;
		for (at = 0; at < length; at += 4096)
			p[at] = 2;
	}
	return minor_faults() - before;
}

/*
 * A tenant has a granule with a pinned page, and one of its small buffers is in
 * quarantine. Another tenant has mappings at the same offsets, in each of its first
 * granules.
 */
TEST_F(tenant_quarantine, a_pinned_slab_page_is_its_owner_s_affair)
{
	struct accmem_alloc block, kept;
	int pipes[2];
	struct accmem_alloc all[MAPPINGS];
	unsigned int i;
	long faults;
	char *q[MAPPINGS];

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &block));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &kept));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &block, pipes));
	for (i = 0; i < MAPPINGS; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, 4096, 0, &all[i]));
		q[i] = accmem_mapped(self->other, &all[i], 4096);
		faults = faults_beside(self->fd, &self->info, q[i], 4096);
		EXPECT_LE(0, faults);
		EXPECT_GE(FAULT_ROUNDS / 10, faults)
		{
			TH_LOG("%ld faults in %u rounds", faults, FAULT_ROUNDS);
		}
	}
	for (i = 0; i < MAPPINGS; i++)
		munmap(q[i], 4096);
	accmem_unpin(pipes);
}

/* A buffer is pinned and freed. Another tenant maps a large buffer. */
TEST_F(tenant_quarantine, a_pinned_buffer_is_its_owner_s_affair)
{
	int pipes[2];
	struct accmem_alloc a, b;
	long faults;
	char *q;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 8192, 0, &a));
	ASSERT_EQ(0, accmem_alloc_bytes(self->other, MIB(4), 0, &b));
	q = accmem_mapped(self->other, &b, MIB(4));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &a, pipes));
	faults = faults_beside(self->fd, &self->info, q, MIB(4));
	EXPECT_LE(0, faults);
	EXPECT_GE(FAULT_ROUNDS / 10, faults)
	{
		TH_LOG("%ld faults in %u rounds", faults, FAULT_ROUNDS);
	}
	munmap(q, MIB(4));
	accmem_unpin(pipes);
}

/* --- many mappings of a page beside a pinned one ------------------------------ */

struct crowd {
	struct attacker a;
	int pipes[2];
	unsigned int mappings;
	volatile char *page;
};

static int prepare_crowd(void *arg)
{
	struct crowd *c = arg;
	struct accmem_alloc pinned, mapped;
	unsigned int i;
	int fd = accmem_dev_open(c->a.path, O_RDWR);

	c->a.self.fd = fd;
	if (fd < 0 || accmem_alloc_bytes(fd, 4096, 0, &pinned) ||
	    accmem_alloc_bytes(fd, 4096, 0, &mapped) ||
	    accmem_free_pinned(fd, &pinned, c->pipes))
		return 1;
	for (i = 0; i < c->mappings; i++) {
		c->page = accmem_mmap(fd, &mapped, 4096, RW);
		if (!c->page)
			return 1;
		*c->page = 1;
	}
	return 0;
}

/* an ALLOC that fails: it looks for the pin behind the mappings */
static void attack_crowd(void *arg)
{
	struct crowd *c = arg;

	*c->page = 1;
	alloc_failing(&c->a.self);
}

/*
 * Measures how long INFO and a failing ALLOC sleep in a window, in ms. @least keeps the
 * least of each, since the host may stop a processor whose task holds a lock.
 */
static void sleep_beside(struct __test_metadata *_metadata, struct victim *v,
			 int64_t least[2])
{
	static void (*const calls[])(void *arg) = { ask, alloc_failing };
	static const int results[] = { 0, -ENOMEM };
	uint64_t end = accmem_ms() + WINDOW_MS;
	int64_t slept[2] = {}, since;
	unsigned int i;

	do {
		for (i = 0; i < 2; i++) {
			since = accmem_slept(0);
			calls[i](v);
			slept[i] += accmem_slept(since);
			EXPECT_EQ(results[i], v->err);
		}
	} while (accmem_ms() < end);
	for (i = 0; i < 2; i++) {
		slept[i] /= 1000000;
		least[i] = slept[i] < least[i] ? slept[i] : least[i];
	}
}

TEST_F(tenant_quarantine, nobody_waits_for_many_mappings_beside_a_pin)
{
	struct crowd c = { .a = { .path = variant->path,
				  .self = { .length = self->info.capacity } },
			   .mappings = accmem_scale(MANY_MAPPINGS) };
	struct victim v = { self->other, self->info.capacity, 0 };
	int64_t least[2] = { INT64_MAX, INT64_MAX };
	unsigned int i = 0;
	pid_t pid;

	pid = accmem_start(prepare_crowd, attack_crowd, &c);
	ASSERT_LT(0, pid);
	do {
		sleep_beside(_metadata, &v, least);
	} while (++i < TRIES &&
		 (least[0] > INFO_ASLEEP_MS || least[1] > ALLOC_ASLEEP_MS));
	accmem_stop(pid);
	TH_LOG("INFO has slept %lld ms of %d, a failing ALLOC %lld ms",
	       (long long)least[0], WINDOW_MS, (long long)least[1]);
	EXPECT_GE(INFO_ASLEEP_MS, least[0]);
	EXPECT_GE(ALLOC_ASLEEP_MS, least[1]);
	EXPECT_EQ(-1, accmem_sysfs_wait(variant->path, "quarantined_bytes", 0,
					30000));
}

/* When the pin has gone, all memory can be allocated again. */
TEST_F(tenant_quarantine, what_was_pinned_comes_back)
{
	struct accmem_alloc block;
	int pipes[2];
	struct accmem_alloc all;
	uint64_t end = accmem_ms() + 20000;
	int err;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 64, 0, &block));
	ASSERT_EQ(0, accmem_free_pinned(self->fd, &block, pipes));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->other, self->info.capacity,
					      0, &all));
	accmem_unpin(pipes);
	do {
		err = accmem_alloc_bytes(self->other, self->info.capacity, 0,
					 &all);
	} while (err == -ENOMEM && accmem_ms() < end);
	EXPECT_EQ(0, err);
}

ACCMEM_HARNESS_MAIN
