// SPDX-License-Identifier: GPL-2.0
/*
 * The answers of INFO, ALLOC and QUERY. Each field has the value that
 * uapi/linux/accmem.h documents, and the answers of two calls agree with each other.
 */
#include "accmem_test.h"

FIXTURE(abi_out)
{
	int fd;
	uint64_t free_bytes;
	struct accmem_info info;
};

ACCMEM_VARIANTS(abi_out);

FIXTURE_SETUP(abi_out)
{
	self->fd = accmem_opened(variant->path);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
}

FIXTURE_TEARDOWN(abi_out)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
	close(self->fd);
}

static bool power_of_two(uint64_t x)
{
	return x && !(x & (x - 1));
}

TEST_F(abi_out, info)
{
	const struct accmem_info *i = &self->info;

	EXPECT_EQ(sizeof(*i), i->size);
	EXPECT_LE(1, i->nr_carveouts);
	EXPECT_EQ(4096, i->granule);
	EXPECT_NE(0, i->address_base);
	EXPECT_EQ(0, i->address_base % GIB(1));
	EXPECT_LE(i->capacity, i->address_span);
	EXPECT_GE(1ull << 44, i->address_span);
	EXPECT_NE(0, i->capacity);
	EXPECT_EQ(0, i->capacity % i->granule);
	EXPECT_EQ(i->capacity, i->free_bytes);
	EXPECT_NE(0, i->largest_run);
	EXPECT_LE(i->largest_run, i->free_bytes);
	EXPECT_EQ(0, i->context_bytes);
	EXPECT_TRUE(power_of_two(i->max_alignment));
	EXPECT_LE(MIB(2), i->max_alignment);
	EXPECT_EQ(4096, i->page_sizes & 4096);
	EXPECT_EQ(MIB(2), i->page_sizes & MIB(2));
	EXPECT_EQ(0, i->page_sizes & ~(4096 | MIB(2) | GIB(1)));
	EXPECT_NE(0, i->cache_modes &
			     (1 << ACCMEM_CACHE_WB | 1 << ACCMEM_CACHE_WC));
	EXPECT_EQ(0, i->cache_modes >> (ACCMEM_CACHE_UC + 1));
	EXPECT_EQ(i->capacity, accmem_sysfs(variant->path, "capacity"));
	EXPECT_EQ(ACCMEM_BANDWIDTH_UNKNOWN, i->bandwidth);
	EXPECT_LE(-1, i->numa_node);
	EXPECT_EQ(0, i->retired_bytes);
	EXPECT_EQ(0, i->retire_pending_bytes);
	EXPECT_EQ(0, i->retire_failed_bytes);
}

/* the module parameter emulated_uncached */
static bool uncached_is_allowed(void)
{
	char text[8] = "";

	accmem_read_file("/sys/module/accmem/parameters/emulated_uncached",
			 text, sizeof(text));
	return *text == 'Y';
}

/* The features of each backing. */
TEST_F(abi_out, info_backing)
{
	const struct accmem_info *i = &self->info;
	const uint64_t all = ACCMEM_FEATURE_STREAM | ACCMEM_FEATURE_REALLOC |
			     ACCMEM_FEATURE_WAIT | ACCMEM_FEATURE_HOST |
			     ACCMEM_FEATURE_ACCESS | ACCMEM_FEATURE_SHARED |
			     ACCMEM_FEATURE_EXPORT | ACCMEM_FEATURE_IMPORT;
	uint64_t features = i->features & ~all;
	uint32_t wc_uc = 1 << ACCMEM_CACHE_WC | 1 << ACCMEM_CACHE_UC;

	EXPECT_EQ(all, i->features & all);
	if (!strcmp(variant->path, ACCMEM_DEV_EMULATED)) {
		EXPECT_EQ(ACCMEM_BACKING_EMULATED, i->backing);
		EXPECT_EQ(ACCMEM_TRANSLATION_MAPPED, i->translation);
		EXPECT_EQ(ACCMEM_FEATURE_SCATTER | ACCMEM_FEATURE_PIN |
				  ACCMEM_FEATURE_FIRST_TOUCH,
			  features);
		/* these modes split the direct mapping of the kernel */
		EXPECT_EQ(uncached_is_allowed() ? wc_uc : 0,
			  i->cache_modes & wc_uc);
	} else if (!strcmp(variant->path, ACCMEM_DEV_PHYS)) {
		EXPECT_EQ(ACCMEM_BACKING_PHYS, i->backing);
		EXPECT_EQ(ACCMEM_TRANSLATION_IDENTITY, i->translation);
		EXPECT_EQ(ACCMEM_FEATURE_PIN, features);
		EXPECT_EQ(0, i->cache_modes & wc_uc);
	} else {
		EXPECT_EQ(ACCMEM_BACKING_PHYS, i->backing);
		EXPECT_EQ(ACCMEM_TRANSLATION_IDENTITY, i->translation);
		EXPECT_EQ(0, features);
		EXPECT_EQ(wc_uc, i->cache_modes & wc_uc);
	}
}

TEST_F(abi_out, info_clock)
{
	struct accmem_info info;
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	clock_gettime(CLOCK_MONOTONIC, &after);
	EXPECT_LE(before.tv_sec * 1000000000ull + before.tv_nsec, info.now_ns);
	EXPECT_GE(after.tv_sec * 1000000000ull + after.tv_nsec, info.now_ns);
}

/* true for at most half a granule, without an argument that needs its own granule */
static bool is_small(const struct accmem_alloc *a)
{
	return a->usable <= 2048 && a->alignment <= 2048 &&
	       a->page_size == 4096 && !(a->flags & ACCMEM_ALLOC_TOP_DOWN);
}

#define MUST(condition)                                                       \
	do {                                                                  \
		if (!(condition)) {                                           \
			printf("# line %d: %s; length %#llx alignment %#llx " \
			       "policy %u flags %#x\n",                       \
			       __LINE__, #condition,                          \
			       (unsigned long long)a->length,                 \
			       (unsigned long long)a->alignment,              \
			       a->page_policy, a->flags);                     \
			return -1;                                            \
		}                                                             \
	} while (0)

/* compares the answer of ALLOC with the request */
static int agrees_with_request(const struct accmem_info *dev,
			       const struct accmem_alloc *req,
			       const struct accmem_alloc *a)
{
	uint64_t usable = req->length, unit = is_small(a) ? 64 : a->page_size;

	if (a->flags & ACCMEM_ALLOC_ROUND32)
		usable = ALIGN_UP(usable, 32);
	if (a->flags & ACCMEM_ALLOC_TAIL32 && a->page_size != GIB(1))
		usable += 32;
	MUST(a->usable == usable);
	MUST(a->address % 64 == 0);
	MUST(!req->alignment || a->address % req->alignment == 0);
	MUST(a->address >= dev->address_base);
	MUST(a->address - dev->address_base <=
	     dev->address_span - a->footprint);
	MUST(a->mmap_offset % 4096 == 0);
	MUST(a->mmap_offset + a->footprint <= 1ull << 44);
	MUST(power_of_two(a->page_size) && (a->page_size & dev->page_sizes));
	MUST(a->footprint % unit == 0);
	MUST(a->footprint >= a->usable);
	MUST(a->address % unit == 0);
	MUST(a->footprint - a->usable < unit);
	MUST(a->nr_runs >= 1);
	MUST(a->nr_runs == 1 || !(a->flags & ACCMEM_ALLOC_CONTIGUOUS));
	MUST(a->nr_runs == 1 || dev->features & ACCMEM_FEATURE_SCATTER);
	/* set by failures only */
	MUST(!a->free_bytes && !a->largest_run);
	MUST(a->length == req->length && a->flags == req->flags);
	return 0;
}

static bool offers_wb(int fd, const struct accmem_alloc *a)
{
	struct accmem_info info = { .size = sizeof(info),
				    .carveout = a->carveout,
				    .flags = a->kind == ACCMEM_KIND_HOST ?
						     ACCMEM_INFO_HOST :
						     0 };

	return !accmem_ioctl(fd, ACCMEM_IOC_INFO, &info) &&
	       info.cache_modes & 1 << ACCMEM_CACHE_WB;
}

/* compares QUERY of an address in the buffer with ALLOC */
static int agrees_with_query(int fd, const struct accmem_alloc *a, uint64_t at)
{
	struct accmem_query q;

	MUST(!accmem_ioctl_query(fd, a->address + at, &q));
	MUST(q.address == a->address + at);
	MUST(q.base == a->address && q.offset == at);
	MUST(q.length == a->length && q.usable == a->usable);
	MUST(q.footprint == a->footprint);
	MUST(power_of_two(q.alignment) && q.alignment >= 64);
	MUST(q.alignment >= a->alignment);
	MUST(a->address % q.alignment == 0);
	MUST(q.mmap_offset == a->mmap_offset);
	MUST(q.alloc_flags == a->flags);
	MUST(q.page_policy == a->page_policy);
	MUST(q.cache_mode == a->cache_mode ||
	     (a->cache_mode == ACCMEM_CACHE_WB && !offers_wb(fd, a) &&
	      q.cache_mode == ACCMEM_CACHE_WC));
	MUST(q.carveout == a->carveout && q.kind == a->kind);
	MUST(q.page_size == a->page_size && q.nr_runs == a->nr_runs);
	return 0;
}

/* compares INFO with ALLOC; @before bytes were free before */
static int agrees_with_info(int fd, const struct accmem_alloc *a,
			    uint64_t before)
{
	struct accmem_info info;

	MUST(!accmem_ioctl_info(fd, &info));
	MUST(info.free_bytes == before - a->footprint);
	MUST(info.largest_run <= info.free_bytes);
	MUST(info.context_bytes == accmem_charge_of(&info, a, 1));
	return 0;
}

/* compares an allocation with its request, QUERY and INFO */
static int consistent(int fd, const struct accmem_info *dev,
		      const struct accmem_alloc *req)
{
	struct accmem_alloc granted = *req, *a = &granted;
	uint64_t before = accmem_free_now(fd), at[4];
	unsigned int i;

	MUST(!accmem_ioctl_alloc(fd, a));
	/* in, and only in */
	MUST(a->alignment == req->alignment && a->kind == req->kind);
	MUST(a->page_policy == req->page_policy);
	MUST(a->cache_mode == req->cache_mode && a->carveout == req->carveout);
	if (agrees_with_request(dev, req, a) || agrees_with_info(fd, a, before))
		return -1;
	at[0] = 0;
	at[1] = 1;
	at[2] = a->usable / 2;
	at[3] = a->usable - 1;
	for (i = 0; i < ARRAY_SIZE(at); i++)
		if (at[i] < a->usable && agrees_with_query(fd, a, at[i]))
			return -1;
	MUST(!accmem_ioctl_free(fd, a->address));
	MUST(accmem_free_now(fd) == before);
	return 0;
}

#undef MUST

static const uint64_t lengths[] = {
	1,	 31,	     32,	 33,	       64,
	2016,	 2017,	     2048,	 2049,	       4064,	    4065,	 4095,	       4096,
	4097,	 65536,	     KIB(100),	 MIB(1) - 32,  MIB(1),
	MIB(1) + 1, MIB(2) - 33, MIB(2) - 32, MIB(2) - 1, MIB(2),
	MIB(2) + 1, MIB(3),	MIB(5) + 12345, MIB(33),
};

TEST_F(abi_out, every_length)
{
	static const uint32_t flags[] = {
		0,
		ACCMEM_ALLOC_ROUND32,
		ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32,
		ACCMEM_ALLOC_CONTIGUOUS,
		ACCMEM_ALLOC_TOP_DOWN,
		ACCMEM_ALLOC_POPULATE,
		ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32 |
			ACCMEM_ALLOC_CONTIGUOUS | ACCMEM_ALLOC_TOP_DOWN |
			ACCMEM_ALLOC_POPULATE,
	};
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (j = 0; j < ARRAY_SIZE(flags); j++) {
			struct accmem_alloc req = { .length = lengths[i],
						    .flags = flags[j] };

			ASSERT_EQ(0, consistent(self->fd, &self->info, &req));
		}
	}
}

TEST_F(abi_out, every_alignment)
{
	uint64_t alignment, most = self->info.capacity / 2;
	unsigned int i;

	if (most > self->info.max_alignment)
		most = self->info.max_alignment;
	for (alignment = 1; alignment <= most; alignment *= 2) {
		for (i = 0; i < ARRAY_SIZE(lengths); i += 5) {
			struct accmem_alloc req = { .length = lengths[i],
						    .alignment = alignment };

			ASSERT_EQ(0, consistent(self->fd, &self->info, &req));
			req.flags = ACCMEM_ALLOC_TOP_DOWN;
			ASSERT_EQ(0, consistent(self->fd, &self->info, &req));
		}
	}
}

/* A13, A5: the page size that each policy gives, with all memory free. */
TEST_F(abi_out, every_policy)
{
	static const struct {
		uint32_t policy;
		uint64_t length;
		uint32_t page_size;
	} want[] = {
		{ ACCMEM_PAGE_NORMAL_ONLY, 1, 4096 },
		{ ACCMEM_PAGE_NORMAL_ONLY, MIB(8), 4096 },
		{ ACCMEM_PAGE_HUGE_ONLY, 1, MIB(2) },
		{ ACCMEM_PAGE_HUGE_ONLY, MIB(2) + 1, MIB(2) },
		{ ACCMEM_PAGE_HUGE_FIRST, 4096, 4096 },
		{ ACCMEM_PAGE_HUGE_FIRST, MIB(1), 4096 },
		{ ACCMEM_PAGE_HUGE_FIRST, MIB(1) + 1, MIB(2) },
		{ ACCMEM_PAGE_HUGE_FIRST, MIB(3), MIB(2) },
	};
	struct accmem_alloc a;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		a = (struct accmem_alloc){ .length = want[i].length,
					   .page_policy = want[i].policy };
		ASSERT_EQ(0, consistent(self->fd, &self->info, &a));
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &a));
		EXPECT_EQ(want[i].page_size, a.page_size) {
			TH_LOG("policy %u length %#llx", want[i].policy,
			       (unsigned long long)want[i].length);
		}
		EXPECT_EQ(ALIGN_UP(want[i].length,
				   is_small(&a) ? 64 : want[i].page_size),
			  a.footprint);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
}

TEST_F(abi_out, policy_1g)
{
	struct accmem_alloc a = { .length = 1,
				  .page_policy = ACCMEM_PAGE_HUGE1G_ONLY };
	int err = accmem_ioctl_alloc(self->fd, &a);

	if (!(self->info.page_sizes & GIB(1))) {
		EXPECT_EQ(-EOPNOTSUPP, err);
		return;
	}
	if (self->info.capacity < GIB(1)) {
		EXPECT_EQ(-ENOMEM, err);
		return;
	}
	ASSERT_EQ(0, err);
	EXPECT_EQ(GIB(1), a.page_size);
	EXPECT_EQ(GIB(1), a.footprint);
	EXPECT_EQ(0, a.address % GIB(1));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* largest_run is neither too small nor too large. */
TEST_F(abi_out, largest_run_is_true)
{
	struct accmem_alloc hole[8], a;
	struct accmem_info info;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hole); i++) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(3), 0,
						&hole[i]));
	}
	for (i = 0; i < ARRAY_SIZE(hole); i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, hole[i].address));
	}

	/* waits for the cleaner: no free run has the memory that is being cleared */
	ASSERT_EQ(-1,
		  accmem_sysfs_wait(variant->path, "dirty_bytes", 0, 60000));
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, info.largest_run + 1,
					      ACCMEM_ALLOC_CONTIGUOUS, &a));
	EXPECT_EQ(info.largest_run, a.largest_run);
	EXPECT_EQ(info.free_bytes, a.free_bytes);
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, info.largest_run,
					ACCMEM_ALLOC_CONTIGUOUS, &a));
	EXPECT_EQ(1, a.nr_runs);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	for (i = 1; i < ARRAY_SIZE(hole); i += 2) {
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, hole[i].address));
	}
}

/*
 * All memory can be allocated, in buffers that do not overlap. With scattered buffers,
 * free pieces are granted as one buffer.
 */
TEST_F(abi_out, everything_once)
{
	static struct accmem_alloc bufs[4096];
	uint64_t piece = self->info.capacity / 64 / 4096 * 4096 + 4096;
	struct accmem_alloc a;
	uint64_t sum = 0;
	int n = 0, more, i, j;

	while (!accmem_alloc_bytes(self->fd, piece, 0, &bufs[n]))
		n++;
	ASSERT_LE(32, n);
	/* frees every second buffer, and the rest at the end */
	for (i = 0; i < n; i += 2) {
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, bufs[i].address));
		bufs[i].footprint = 0;
	}
	if (self->info.features & ACCMEM_FEATURE_SCATTER) {
		ASSERT_EQ(0, accmem_alloc_bytes(self->fd, piece * 4, 0, &a));
		EXPECT_LE(2, a.nr_runs);
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.address));
	}
	more = accmem_take_all(self->fd, 0, bufs + n, ARRAY_SIZE(bufs) - n);
	ASSERT_LT(0, more);
	n += more;
	EXPECT_EQ(0, accmem_free_now(self->fd));
	for (i = 0; i < n; i++) {
		sum += bufs[i].footprint;
		for (j = 0; j < i; j++) {
			ASSERT_TRUE(!bufs[i].footprint || !bufs[j].footprint ||
				    bufs[i].address + bufs[i].footprint <=
					    bufs[j].address ||
				    bufs[j].address + bufs[j].footprint <=
					    bufs[i].address);
		}
	}
	EXPECT_EQ(self->info.capacity, sum);
	EXPECT_EQ(-ENOMEM, accmem_alloc_bytes(self->fd, 1, 0, &a));
	EXPECT_EQ(0, a.free_bytes);
	EXPECT_EQ(0, a.largest_run);
	EXPECT_TRUE(accmem_accounts_balance(variant->path));
	for (i = 0; i < n; i++)
		if (bufs[i].footprint) {
			EXPECT_EQ(0, accmem_ioctl_free(self->fd,
						       bufs[i].address));
		}
}

/* sysfs has the largest run of the device. No context has a larger one. */
TEST_F(abi_out, largest_run_in_sysfs)
{
	uint64_t end = accmem_ms() + 10000;
	struct accmem_info info;
	int64_t device;

	do {
		usleep(1000);
		device = accmem_sysfs(variant->path, "largest_free_run");
		ASSERT_EQ(0, accmem_ioctl_info(self->fd, &info));
	} while (device < (int64_t)info.largest_run && accmem_ms() < end);
	EXPECT_LE(info.largest_run, device);
	EXPECT_GE(info.free_bytes, device);
}

TEST_F(abi_out, top_down)
{
	struct accmem_alloc a;

	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY)
		return; /* addresses are independent of the memory */
	/* waits for the cleaner, whose memory is not free for a moment */
	ASSERT_EQ(-1, accmem_sysfs_wait(variant->path, "dirty_bytes", 0,
					60000));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, MIB(2),
					ACCMEM_ALLOC_TOP_DOWN, &a));
	EXPECT_EQ(self->info.address_base + self->info.capacity,
		  a.address + a.footprint);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
