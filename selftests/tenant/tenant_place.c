// SPDX-License-Identifier: GPL-2.0
/*
 * Where memory is found, on carveouts whose device addresses are places. A
 * compound page belongs to one context while anything of it is in use; a
 * request may begin in the free end of its own, go on into free ones, and end
 * anywhere. lib/host compares the placement with a model that knows all addresses.
 * Here are the parts of the driver: whose a compound page is, what is charged, and that
 * neither a cache nor the cleaner hides memory from a request.
 */
#include "accmem_test.h"

#define GRANULE 4096ull
#define FOLIO MIB(2)
#define FOLIOS_MAX (GIB(1) / FOLIO)
#define ROOM 24 /* folios that the random test leaves */
#define TENANTS 3 /* the last one takes the memory that is not to be used */
#define LIVE 512 /* buffers of each tenant */

FIXTURE(tenant_place)
{
	int fd[TENANTS];
	struct accmem_info info;
	uint64_t folios;
	bool owned; /* a folio belongs to one tenant */
};

ACCMEM_VARIANTS_RESERVED(tenant_place);

FIXTURE_SETUP(tenant_place)
{
	unsigned int i;

	ASSERT_TRUE(accmem_is_idle(variant->path, 20000));
	for (i = 0; i < TENANTS; i++)
		self->fd[i] = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd[0], &self->info));
	ASSERT_EQ(ACCMEM_TRANSLATION_IDENTITY, self->info.translation);
	ASSERT_GE(GIB(1), self->info.capacity);
	self->folios = self->info.capacity / FOLIO;
	self->owned = self->info.features & ACCMEM_FEATURE_PIN;
}

FIXTURE_TEARDOWN(tenant_place)
{
	unsigned int i;

	for (i = 0; i < TENANTS; i++)
		close(self->fd[i]);
	EXPECT_TRUE(accmem_is_idle(variant->path, 30000));
}

/* --- who has what -------------------------------------------------------- */

/* the number of buffers of each tenant in a folio */
static uint16_t used[FOLIOS_MAX][TENANTS];

/*
 * counts a buffer of @t that comes or goes; false if it shares a folio with another
 * tenant
 */
static bool change(const struct accmem_info *info, unsigned int t,
		   const struct accmem_alloc *a, int by)
{
	uint64_t f = (a->address - info->address_base) / FOLIO;
	uint64_t last =
		(a->address - info->address_base + a->footprint - 1) / FOLIO;
	bool alone = true;
	unsigned int i;

	for (; f <= last; f++) {
		used[f][t] += by;
		for (i = 0; i < TENANTS; i++)
			alone &= i == t || !used[f][i];
	}
	return alone || !accmem_owns_folios(info);
}

static bool add(const struct accmem_info *info, unsigned int t,
		const struct accmem_alloc *a)
{
	return change(info, t, a, 1);
}

/* the number of folios in which @t has buffers */
static uint64_t folios_of(unsigned int t)
{
	uint64_t f, n = 0;

	for (f = 0; f < FOLIOS_MAX; f++)
		n += !!used[f][t];
	return n;
}

static uint64_t largest_run(int fd)
{
	struct accmem_info info;

	return accmem_ioctl_info(fd, &info) ? 0 : info.largest_run;
}

/* --- one placement ------------------------------------------------------- */

/* allocates all free folios; their number, or -1 */
static int take_folios(int fd, struct accmem_alloc *a, int max)
{
	int n, err = 0;

	for (n = 0; n < max && !err; n++) {
		a[n] = (struct accmem_alloc){ .length = FOLIO,
					      .alignment = FOLIO };
		err = accmem_ioctl_alloc(fd, &a[n]);
	}
	return !err ? n : err == -ENOMEM ? n - 1 : -1;
}

static struct accmem_alloc filler[FOLIOS_MAX];

/* frees the folios of the filler that are neighbours of @own; the number of the others */
static int free_beside(int fd, uint64_t base, uint64_t own, int n)
{
	uint64_t at;
	int i;

	for (i = 0; i < n;) {
		at = (filler[i].address - base) / FOLIO;
		if (at + 1 != own && at != own + 1) {
			i++;
			continue;
		}
		if (accmem_ioctl_free(fd, filler[i].address))
			return -1;
		filler[i] = filler[--n];
	}
	return n;
}

/*
 * the longer of the free runs before and after @a: the rest of its folio, and @more
 * bytes
 */
static uint64_t longest_beside(const struct accmem_info *info,
			       const struct accmem_alloc *a, uint64_t more)
{
	uint64_t start = a->address - info->address_base;
	uint64_t end = start + a->footprint;
	uint64_t before = start % FOLIO, after = ALIGN_UP(end, FOLIO) - end;

	before += start - before >= more ? more : 0;
	after += end + after + more <= info->capacity ? more : 0;
	return before > after ? before : after;
}

/*
 * A tenant has 1 MiB of a folio. Another tenant has all other folios except the
 * neighbours. So a request of more than 2 MiB fits only if it begins or ends in the
 * tenant's own folio.
 */
TEST_F(tenant_place, a_request_uses_the_free_end_of_an_own_folio)
{
	uint64_t base = self->info.address_base, own, longest;
	struct accmem_alloc a, b;
	int n;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd[0], MIB(1), 0, &a));
	own = (a.address - base) / FOLIO;
	ASSERT_EQ(own, (a.address + MIB(1) - 1 - base) / FOLIO);
	n = take_folios(self->fd[1], filler, FOLIOS_MAX);
	ASSERT_LE((int)self->folios - 1, n);
	n = free_beside(self->fd[1], base, own, n);
	ASSERT_LT(0, n);
	longest = longest_beside(&self->info, &a, FOLIO);
	ASSERT_LE(MIB(2) + KIB(512), longest);
	EXPECT_EQ(longest, largest_run(self->fd[0]));
	/* the other tenant gets complete folios only */
	if (self->owned) {
		EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd[1],
						      MIB(2) + 4096, 0, &b));
	}
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd[0], longest, 0, &b));

	/* a buffer may end anywhere in a folio; the rest of the folio is its owner's */
	ASSERT_EQ(0, accmem_ioctl_free(self->fd[0], b.address));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd[0], a.address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd[0], FOLIO + MIB(1), 0, &a));
	n += take_folios(self->fd[1], filler + n, FOLIOS_MAX - n);
	if (self->owned) {
		ASSERT_EQ(-ENOMEM,
			  accmem_alloc_bytes(self->fd[2], 4096, 0, &b));
	}
	longest = longest_beside(&self->info, &a, 0);
	EXPECT_EQ(longest, largest_run(self->fd[0]));
	EXPECT_EQ(0, accmem_alloc_bytes(self->fd[0], longest, 0, &b));
}

/* --- two tenants --------------------------------------------------------- */

/* Two tenants allocate @length bytes by turns. All folios of each are full, but for one. */
static void alternate(struct __test_metadata *_metadata, const int *fd,
		      const struct accmem_info *info, bool owned,
		      uint64_t length)
{
	uint64_t sum = info->capacity / (accmem_scale(100) < 100 ? 16 : 4);
	uint64_t t, i;
	struct accmem_info now;
	struct accmem_alloc a;

	sum = sum / length * length;
	for (i = 0; i < sum / length; i++) {
		for (t = 0; t < 2; t++) {
			ASSERT_EQ(0, accmem_alloc_bytes(fd[t], length, 0, &a));
			ASSERT_TRUE(add(info, t, &a));
		}
	}
	for (t = 0; t < 2; t++) {
		if (owned) {
			EXPECT_GE(sum / FOLIO + 1, folios_of(t));
		}
		ASSERT_EQ(0, accmem_ioctl_info(fd[t], &now));
		EXPECT_EQ(owned ? folios_of(t) * FOLIO : sum,
			  now.context_bytes);
	}
}

TEST_F(tenant_place, alternating_tenants_lose_a_folio_an_end_4k)
{
	alternate(_metadata, self->fd, &self->info, self->owned, 4096);
}

TEST_F(tenant_place, alternating_tenants_lose_a_folio_an_end_64k)
{
	alternate(_metadata, self->fd, &self->info, self->owned, KIB(64));
}

TEST_F(tenant_place, alternating_tenants_lose_a_folio_an_end_1m)
{
	alternate(_metadata, self->fd, &self->info, self->owned, MIB(1));
}

/* --- at random ----------------------------------------------------------- */

struct world {
	int *fd;
	const struct accmem_info *info;
	uint64_t seed;
	struct accmem_alloc live[2][LIVE];
	unsigned int nr[2];
	unsigned int granted, refused, wrong, charges;
};

/*
 * Takes all but ROOM folios. Half of these are contiguous, and the others are at random
 * places. Returns the number of free folios, or -1.
 */
static int leave_room(struct world *w, uint64_t folios)
{
	int n = take_folios(w->fd[2], filler, FOLIOS_MAX), left = 0, i;
	uint64_t middle = folios / 3, at;

	if (n != (int)folios)
		return -1;
	for (i = 0; i < n; i++) {
		at = (filler[i].address - w->info->address_base) / FOLIO;
		if ((at >= middle && at < middle + ROOM / 2) ||
		    (left < ROOM / 2 &&
		     accmem_random(&w->seed) % folios < ROOM)) {
			if (accmem_ioctl_free(w->fd[2], filler[i].address))
				return -1;
			left += at < middle || at >= middle + ROOM / 2;
		} else if (!add(w->info, 2, &filler[i])) {
			return -1;
		}
	}
	return left + ROOM / 2;
}

static void random_request(struct world *w, struct accmem_alloc *a)
{
	static const uint64_t most[] = { 2048,	    KIB(16), KIB(256),
					 KIB(1536), MIB(2),  MIB(7) };
	uint32_t r = accmem_random(&w->seed);

	*a = (struct accmem_alloc){
		.length = 1 + accmem_random(&w->seed) % most[r % 6],
	};
	if (r & 64)
		a->page_policy = ACCMEM_PAGE_NORMAL_ONLY;
	if ((r >> 8) % 8 == 0)
		a->flags |= ACCMEM_ALLOC_TOP_DOWN;
	if ((r >> 12) % 8 == 0)
		a->alignment = GRANULE << (r >> 16) % 10;
}

static void wrong(struct world *w, const char *what, unsigned int t,
		  const struct accmem_alloc *a)
{
	if (w->wrong++ >= 10)
		return;
	printf("# %s: tenant %u, %llu bytes, alignment %#llx, ", what, t,
	       (unsigned long long)a->length,
	       (unsigned long long)a->alignment);
	printf("flags %#x, policy %u: address %#llx, free %llu, largest %llu\n",
	       a->flags, a->page_policy, (unsigned long long)a->address,
	       (unsigned long long)a->free_bytes,
	       (unsigned long long)a->largest_run);
}

/*
 * true if the request fits in the largest run; a run of less than a granule is in a
 * slab page
 */
static bool fits(const struct accmem_alloc *a)
{
	uint64_t length = a->length;

	if (a->alignment > GRANULE)
		length += a->alignment - GRANULE;
	return a->largest_run > GRANULE / 2 && a->largest_run >= length;
}

/* The refused request must not fit: not by the answer, nor when all caches are empty. */
static void check_refusal(struct world *w, unsigned int t,
			  struct accmem_alloc *a)
{
	w->refused++;
	if (fits(a))
		wrong(w, "refused what it says there is", t, a);
	if (accmem_drain(w->fd[2]))
		wrong(w, "nothing drained", t, a);
	a->largest_run = largest_run(w->fd[t]);
	if (fits(a))
		wrong(w, "refused what there is", t, a);
}

static void one_alloc(struct world *w, unsigned int t)
{
	struct accmem_alloc a;
	int err;

	random_request(w, &a);
	err = accmem_ioctl_alloc(w->fd[t], &a);
	if (err == -ENOMEM) {
		check_refusal(w, t, &a);
	} else if (err) {
		wrong(w, strerror(-err), t, &a);
	} else {
		w->granted++;
		if (!add(w->info, t, &a))
			wrong(w, "granted what is not its own", t, &a);
		w->live[t][w->nr[t]++] = a;
	}
}

static void one_free(struct world *w, unsigned int t)
{
	unsigned int i = accmem_random(&w->seed) % w->nr[t];
	struct accmem_alloc *a = &w->live[t][i];

	if (accmem_ioctl_free(w->fd[t], a->address))
		wrong(w, "not freed", t, a);
	change(w->info, t, a, -1);
	*a = w->live[t][--w->nr[t]];
}

/* INFO must return the charge; prints the first that is wrong */
static void check_charge(struct world *w, unsigned int t)
{
	uint64_t want = accmem_charge_of(w->info, w->live[t], w->nr[t]);
	struct accmem_info info;

	if (accmem_ioctl_info(w->fd[t], &info) || info.context_bytes != want) {
		if (!w->charges++)
			printf("# tenant %u is charged %llu, for %llu\n", t,
			       (unsigned long long)info.context_bytes,
			       (unsigned long long)want);
	}
}

/* an ALLOC of the largest run in INFO must succeed */
static void check_largest(struct world *w, unsigned int t)
{
	struct accmem_alloc a = { .largest_run = largest_run(w->fd[t]) };
	int err;

	if (!a.largest_run)
		return;
	err = accmem_alloc_bytes(w->fd[t], a.largest_run, ACCMEM_ALLOC_CONTIGUOUS, &a) ?:
		      accmem_ioctl_free(w->fd[t], a.address);
	if (err)
		wrong(w, "refused what INFO said", t, &a);
}

TEST_F(tenant_place, whatever_the_rule_allows_is_found)
{
	static struct world w;
	unsigned int i, t, r;

	w = (struct world){ .fd = self->fd,
			    .info = &self->info,
			    .seed = accmem_seed() };
	ASSERT_LT(ROOM / 2, leave_room(&w, self->folios));
	for (i = 0; i < accmem_scale(10000) && w.wrong < 10; i++) {
		r = accmem_random(&w.seed);
		t = r & 1;
		/* by turns, memory fills up and becomes half empty */
		if (!w.nr[t] || (w.nr[t] < LIVE &&
				 (r >> 8) % 100 < (i / 500 % 2 ? 45 : 65)))
			one_alloc(&w, t);
		else
			one_free(&w, t);
		if (i % 64 == 0) {
			check_charge(&w, t);
			check_largest(&w, t);
		}
	}
	printf("# %u granted, %u refused\n", w.granted, w.refused);
	EXPECT_LT(0, w.granted);
	EXPECT_LT(0, w.refused);
	EXPECT_EQ(0, w.wrong);
	EXPECT_EQ(0, w.charges);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
}

/*
 * Memory that the cleaner is clearing counts as free. A request that fits nowhere else
 * gets it, at whatever point the cleaner is.
 */
TEST_F(tenant_place, the_cleaner_hides_nothing)
{
	struct accmem_alloc rest, a = { .length = MIB(12) };
	unsigned int i, rounds = accmem_scale(150);
	char *p;

	/* the cleaner may still hold memory on the other side of the hole */
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd[2],
						self->info.capacity - a.length,
						0, &rest));
		ASSERT_EQ(0, accmem_ioctl_info(self->fd[2], &self->info));
		if (self->info.largest_run >= a.length)
			break;
		ASSERT_EQ(0, accmem_ioctl_free(self->fd[2], rest.address));
		usleep(1000);
	}
	ASSERT_GT(1000, i);
	for (i = 0; i < rounds; i++) {
		a.flags = i & 1 ? ACCMEM_ALLOC_TOP_DOWN : 0;
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd[i & 1], &a))
		{
			TH_LOG("round %u: %llu free, %llu in one run", i,
			       (unsigned long long)a.free_bytes,
			       (unsigned long long)a.largest_run);
		}
		p = accmem_mmap(self->fd[i & 1], &a, a.footprint,
				PROT_READ | PROT_WRITE);
		ASSERT_NE(NULL, p);
		p[0] = 1;
		munmap(p, a.footprint);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd[i & 1], a.address));
		usleep(i % 16 * 100); /* long enough for the cleaner to begin, or not */
	}
}

ACCMEM_HARNESS_MAIN
