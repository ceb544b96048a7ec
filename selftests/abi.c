// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctls refuse what is wrong: each test makes one thing wrong in a call
 * that is right otherwise, expects the documented errno, and every test ends
 * with as many free bytes as it began with.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "accmem_util.h"

FIXTURE(abi)
{
	int fd;
	int64_t free_bytes;
	struct accmem_info info;
	struct accmem_alloc good;
};

ACCMEM_VARIANTS(abi);

FIXTURE_SETUP(abi)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd) {
		TH_LOG("open %s: %s", variant->path, strerror(-self->fd));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
	self->good = (struct accmem_alloc){
		.size = sizeof(self->good),
		.length = 3 * 4096,
	};
}

FIXTURE_TEARDOWN(abi)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd)) {
		TH_LOG("a refused call left something allocated");
	}
	close(self->fd);
}

/* The request that the others are derived from is right. */
TEST_F(abi, good_alloc)
{
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_GT(self->free_bytes, accmem_free_now(self->fd));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
}

TEST_F(abi, length_zero)
{
	self->good.length = 0;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_overflows)
{
	const uint64_t lengths[] = { ~0ull, ~0ull - 1, ~0ull - 4094 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		self->good.length = lengths[i];
		EXPECT_EQ(-EOVERFLOW,
			  accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("length %#llx", (unsigned long long)lengths[i]);
		}
	}
}

TEST_F(abi, length_with_tail_overflows)
{
	/* a multiple of 4 KiB: only the 32 bytes more pass 2^64 */
	self->good.length = ~0ull - 4095;
	self->good.flags = ACCMEM_ALLOC_ROUND32 | ACCMEM_ALLOC_TAIL32;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
	/* rounding to 32 */
	self->good.length = ~0ull - 30;
	self->good.flags = ACCMEM_ALLOC_ROUND32;
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_with_alignment_overflows)
{
	ASSERT_LE(MIB(2), self->info.max_alignment);
	self->good.length = ~0ull - MIB(1) + 1;
	self->good.alignment = MIB(2);
	EXPECT_EQ(-EOVERFLOW, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, length_beyond_capacity)
{
	const uint64_t lengths[] = { self->info.capacity + 1, 1ull << 44,
				     1ull << 62, 1ull << 63 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		self->good.length = lengths[i];
		self->good.free_bytes = 1;
		self->good.largest_run = 1;
		EXPECT_EQ(-ENOMEM, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(self->info.free_bytes, self->good.free_bytes);
		EXPECT_EQ(self->info.largest_run, self->good.largest_run);
	}
}

TEST_F(abi, alignment_no_power_of_two)
{
	const uint64_t alignments[] = { 3, 65, 0x1001, 0x1800, ~0ull };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(alignments); i++) {
		self->good.alignment = alignments[i];
		EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("alignment %#llx",
			       (unsigned long long)alignments[i]);
		}
	}
}

TEST_F(abi, alignment_too_large)
{
	self->good.alignment = self->info.max_alignment * 2;
	ASSERT_NE(0, self->good.alignment);
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.alignment = 1ull << 63;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_flag)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (ACCMEM_ALLOC_FLAGS & (1u << bit))
			continue;
		self->good.flags = 1u << bit;
		EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good)) {
			TH_LOG("flag bit %u", bit);
		}
	}
}

TEST_F(abi, alloc_tail_without_rounding)
{
	self->good.flags = ACCMEM_ALLOC_TAIL32;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_kind)
{
	self->good.kind = ACCMEM_KIND_SHARED + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.kind = 1u << 31;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.kind = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

/* What a device offers is told by its features, and nothing else is taken. */
TEST_F(abi, alloc_kind)
{
	static const uint64_t feature[] = {
		[ACCMEM_KIND_DEVICE] = ~0ull,
		[ACCMEM_KIND_HOST] = ACCMEM_FEATURE_HOST,
		[ACCMEM_KIND_SHARED] = ACCMEM_FEATURE_SHARED,
	};
	struct accmem_query q;
	unsigned int kind;

	for (kind = 0; kind < ARRAY_SIZE(feature); kind++) {
		self->good.kind = kind;
		if (!(self->info.features & feature[kind])) {
			EXPECT_EQ(-EOPNOTSUPP,
				  accmem_ioctl_alloc(self->fd, &self->good));
			continue;
		}
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(0, accmem_ioctl_query(self->fd, self->good.address,
						&q));
		EXPECT_EQ(kind, q.kind);
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	}
}

TEST_F(abi, alloc_unknown_policy)
{
	self->good.page_policy = ACCMEM_PAGE_HUGE1G_ONLY + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.page_policy = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_unknown_cache_mode)
{
	self->good.cache_mode = ACCMEM_CACHE_UC + 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	/* would shift out of the set of modes */
	self->good.cache_mode = 32;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.cache_mode = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
}

TEST_F(abi, alloc_cache_mode_not_offered)
{
	unsigned int mode;

	for (mode = ACCMEM_CACHE_WB; mode <= ACCMEM_CACHE_UC; mode++) {
		self->good.cache_mode = mode;
		if (!(self->info.cache_modes & (1u << mode))) {
			EXPECT_EQ(-EOPNOTSUPP,
				  accmem_ioctl_alloc(self->fd, &self->good));
			continue;
		}
		ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	}
}

TEST_F(abi, unknown_carveout)
{
	struct accmem_info info = { .size = sizeof(info) };

	self->good.carveout = self->info.nr_carveouts;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));
	self->good.carveout = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &self->good));

	info.carveout = self->info.nr_carveouts;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_INFO, &info));
	info.carveout = ~0u;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_INFO, &info));
}

/*
 * A call that succeeds, in memory of its own, so that each command gets the
 * same tests of its structure. The structure is @bytes long and starts with
 * its size; @reserved is an offset (0: it has no reserved field).
 */
struct call {
	unsigned long cmd;
	size_t bytes;
	size_t least; /* of the first version; 0: as long as it is now */
	size_t reserved;
	size_t reserved_bytes;
	uint32_t flags; /* that are known */
	union {
		struct accmem_info info;
		struct accmem_alloc alloc;
		struct accmem_free free;
		struct accmem_query query;
		struct accmem_realloc realloc;
		struct accmem_batch batch;
		struct accmem_access access;
		struct accmem_prefetch prefetch;
		struct accmem_advise advise;
	};
};

#define FLAGS_OFFSET offsetof(struct accmem_info, flags)
#define RESERVED(type)                                  \
	.bytes = sizeof(struct type),                   \
	.reserved = offsetof(struct type, reserved),    \
	.reserved_bytes = sizeof(((struct type *)NULL)->reserved)

static const struct call calls[] = {
	{ .cmd = ACCMEM_IOC_INFO,
	  .bytes = sizeof(struct accmem_info),
	  .flags = ACCMEM_INFO_HOST },
	{ .cmd = ACCMEM_IOC_ALLOC,
	  .bytes = sizeof(struct accmem_alloc),
	  .least = offsetof(struct accmem_alloc, stream) },
	{ .cmd = ACCMEM_IOC_FREE,
	  RESERVED(accmem_free),
	  .least = offsetof(struct accmem_free, fd) },
	{ .cmd = ACCMEM_IOC_QUERY, RESERVED(accmem_query) },
	{ .cmd = ACCMEM_IOC_REALLOC,
	  RESERVED(accmem_realloc),
	  .flags = ACCMEM_REALLOC_FLAGS },
	{ .cmd = ACCMEM_IOC_BATCH,
	  RESERVED(accmem_batch),
	  .flags = ACCMEM_BATCH_FLAGS },
	{ .cmd = ACCMEM_IOC_ACCESS, RESERVED(accmem_access) },
	{ .cmd = ACCMEM_IOC_PREFETCH,
	  RESERVED(accmem_prefetch),
	  .flags = ACCMEM_PREFETCH_FLAGS },
	{ .cmd = ACCMEM_IOC_ADVISE, RESERVED(accmem_advise) },
	{ .cmd = ACCMEM_IOC_SHRINK,
	  RESERVED(accmem_shrink),
	  .flags = ACCMEM_SHRINK_FLAGS },
};

static char read_byte; /* what an access reads */

/* what a batch frees */
static struct accmem_batch_free freed;

static bool call_frees(const struct call *call)
{
	return call->cmd == ACCMEM_IOC_FREE || call->cmd == ACCMEM_IOC_BATCH;
}

static bool call_hints(const struct call *call)
{
	return call->cmd == ACCMEM_IOC_PREFETCH ||
	       call->cmd == ACCMEM_IOC_ADVISE;
}

/* a buffer for calls that name one; released by undo() */
static int prepare(int fd, const struct call *call, char *at,
		   struct accmem_alloc *buf)
{
	struct call tmp = *call;
	int err;

	*buf = (struct accmem_alloc){ .length = 4096,
				      .flags = ACCMEM_ALLOC_RESIZABLE };
	if (call_hints(call)) {
		buf->kind = ACCMEM_KIND_SHARED;
		buf->flags = 0;
	}
	err = accmem_ioctl_alloc(fd, buf);
	if (err)
		return err;
	tmp.info.size = call->bytes;
	if (call->cmd == ACCMEM_IOC_ALLOC)
		tmp.alloc.length = 4096;
	else if (call->cmd == ACCMEM_IOC_FREE)
		tmp.free.address = buf->address;
	else if (call->cmd == ACCMEM_IOC_QUERY)
		tmp.query.address = buf->address;
	else if (call->cmd == ACCMEM_IOC_REALLOC) {
		tmp.realloc.address = buf->address;
		tmp.realloc.length = 4000;
	} else if (call->cmd == ACCMEM_IOC_BATCH) {
		freed.address = buf->address;
		tmp.batch.op = ACCMEM_BATCH_FREE;
		tmp.batch.count = 1;
		tmp.batch.entries = (uintptr_t)&freed;
		tmp.batch.entry_size = sizeof(freed);
	} else if (call->cmd == ACCMEM_IOC_ACCESS) {
		tmp.access.address = buf->address;
		tmp.access.length = 1;
		tmp.access.data = (uintptr_t)&read_byte;
	} else if (call->cmd == ACCMEM_IOC_PREFETCH) {
		tmp.prefetch.address = buf->address;
		tmp.prefetch.length = 1;
	} else if (call->cmd == ACCMEM_IOC_ADVISE) {
		tmp.advise.address = buf->address;
		tmp.advise.length = 1;
	}
	memcpy(at, &tmp.info, call->bytes);
	return 0;
}

/* frees what a call that succeeded (@err 0) or failed left; 0 when consistent */
static int undo(int fd, const struct call *call, const char *at,
		const struct accmem_alloc *buf, int err)
{
	struct accmem_alloc done;
	int ret = 0;

	if (call->cmd == ACCMEM_IOC_ALLOC && !err) {
		memcpy(&done, at, sizeof(done));
		ret = accmem_ioctl_free(fd, done.address);
	}
	if (!call_frees(call) || err)
		ret = ret ?: accmem_ioctl_free(fd, buf->address);
	return ret;
}

/* one call with @size in its size field, at the end of readable memory */
#define CALL_AT(call, at, change)                                              \
	({                                                                     \
		struct accmem_alloc __buf;                                     \
		int __err;                                                     \
		ASSERT_EQ(0, prepare(self->fd, call, at, &__buf));             \
		change;                                                        \
		__err = accmem_ioctl(self->fd, (call)->cmd, at);               \
		EXPECT_EQ(0, undo(self->fd, call, at, &__buf, __err))          \
		{                                                              \
			TH_LOG("command %#lx", (call)->cmd);                   \
		}                                                              \
		__err;                                                         \
	})

#define put_u32(at, value)                              \
	do {                                            \
		uint32_t __v = (value);                 \
		memcpy((at), &__v, sizeof(__v));        \
	} while (0)

TEST_F(abi, struct_right)
{
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], at, {}));
	}
}

TEST_F(abi, struct_too_short)
{
	const struct call *call;
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		EXPECT_EQ(-EINVAL, CALL_AT(call, at, put_u32(at, 0)));
		EXPECT_EQ(-EINVAL, CALL_AT(call, at, put_u32(at, 4)));
		EXPECT_EQ(-EINVAL,
			  CALL_AT(call, at,
				  put_u32(at, (call->least ?: call->bytes) -
						      1)));
		if (call->least)
			EXPECT_EQ(0, CALL_AT(call, at,
					     put_u32(at, call->least)));
	}
}

TEST_F(abi, struct_longer_zero_tail)
{
	const struct call *call;
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		memset(at, 0, sizeof(at));
		EXPECT_EQ(0, CALL_AT(call, at, put_u32(at, call->bytes + 1)));
		EXPECT_EQ(0, CALL_AT(call, at, put_u32(at, call->bytes + 64)));
		EXPECT_EQ(-1, accmem_first_nonzero(at + call->bytes, 64));
	}
}

TEST_F(abi, struct_longer_nonzero_tail)
{
	const struct call *call;
	unsigned int i, where;
	char at[256];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		for (where = 0; where < 64; where += 21) {
			memset(at, 0, sizeof(at));
			at[call->bytes + where] = 1;
			EXPECT_EQ(-E2BIG,
				  CALL_AT(call, at,
					  put_u32(at, call->bytes + 64)));
		}
	}
}

TEST_F(abi, struct_absurdly_long)
{
	const struct call *call;
	char at[256];
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		memset(at, 0, sizeof(at));
		/* the tail is not zero, or not there: either may be seen */
		err = CALL_AT(call, at, put_u32(at, 4096));
		EXPECT_TRUE(err == -E2BIG || err == -EFAULT);
		/* and more is not looked at, be it zero or not there */
		EXPECT_EQ(-E2BIG, CALL_AT(call, at, put_u32(at, 4097)));
		EXPECT_EQ(-E2BIG, CALL_AT(call, at, put_u32(at, ~0u)));
	}
}

TEST_F(abi, struct_reserved)
{
	const struct call *call;
	unsigned int i, byte;
	char at[256];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		for (byte = 0; byte < call->reserved_bytes; byte++) {
			EXPECT_EQ(-EINVAL,
				  CALL_AT(call, at,
					  at[call->reserved + byte] = 1));
		}
	}
}

TEST_F(abi, struct_unknown_flag)
{
	const struct call *call;
	unsigned int i, bit;
	char at[256];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		if (call->cmd == ACCMEM_IOC_ALLOC)
			continue; /* alloc_unknown_flag */
		for (bit = 0; bit < 32; bit++) {
			if (call->flags & (1u << bit))
				continue;
			EXPECT_EQ(-EINVAL, CALL_AT(call, at,
						   put_u32(at + FLAGS_OFFSET,
							   1u << bit)));
		}
	}
}

/* two pages, the second inaccessible; the end of the first */
static char *page_end(void)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + 4096, 4096, PROT_NONE))
		return NULL;
	return p + 4096;
}

TEST_F(abi, struct_ends_at_page_end)
{
	char *end = page_end();
	unsigned int i;

	ASSERT_NE(NULL, end);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], end - calls[i].bytes, {}));
	}
}

TEST_F(abi, struct_misaligned)
{
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], at + 1, {}));
	}
}

TEST_F(abi, struct_crosses_into_nothing)
{
	char *end = page_end(), *at;
	uint32_t size;
	unsigned int i;

	ASSERT_NE(NULL, end);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		/* all but the last byte, then nothing but the size */
		at = end - calls[i].bytes + 1;
		memset(end - 256, 0, 256);
		size = calls[i].bytes;
		memcpy(at, &size, sizeof(size));
		EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, calls[i].cmd, at));
		memcpy(end - sizeof(size), &size, sizeof(size));
		EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, calls[i].cmd,
						end - sizeof(size)));
		EXPECT_EQ(-EFAULT,
			  accmem_ioctl(self->fd, calls[i].cmd, end - 2));
	}
}

TEST_F(abi, struct_nowhere)
{
	void *bad[] = { NULL, (void *)1, (void *)-4096l, (void *)-1l };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, calls[i].cmd,
							bad[j]));
		}
}

/* The answer cannot be written: the call fails and allocates nothing. */
TEST_F(abi, struct_read_only)
{
	char *end = page_end(), *page = end - 4096;
	struct accmem_alloc buf;
	unsigned int i;

	ASSERT_NE(NULL, end);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (calls[i].cmd == ACCMEM_IOC_FREE || call_hints(&calls[i]))
			continue; /* has no answer */
		ASSERT_EQ(0, mprotect(page, 4096, PROT_READ | PROT_WRITE));
		ASSERT_EQ(0, prepare(self->fd, &calls[i], page, &buf));
		ASSERT_EQ(0, mprotect(page, 4096, PROT_READ));
		EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, calls[i].cmd, page));
		EXPECT_EQ(0, accmem_ioctl_free(self->fd, buf.address));
		EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd));
	}
	EXPECT_EQ(0, accmem_sysfs(variant->path, "buffers"));
}

TEST_F(abi, unknown_command)
{
	const unsigned long commands[] = {
		_IO(ACCMEM_IOC_MAGIC, 0xff),
		_IO(ACCMEM_IOC_MAGIC - 1, 0x01),
		_IOR(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		_IOW(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		_IOWR(ACCMEM_IOC_MAGIC, 0x01, struct accmem_alloc),
		0,
		0xffffffff,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		EXPECT_EQ(-ENOTTY, accmem_ioctl(self->fd, commands[i],
						&self->good)) {
			TH_LOG("command %#lx", commands[i]);
		}
		/* before the structure is looked at */
		EXPECT_EQ(-ENOTTY,
			  accmem_ioctl(self->fd, commands[i], NULL));
	}
}

TEST_F(abi, free_unknown)
{
	const uint64_t base = self->info.address_base;
	const uint64_t span = self->info.address_span;
	const uint64_t addresses[] = { 0, 1, 4096, base - 4096, base,
				       base + span - 4096, base + span,
				       1ull << 63, ~0ull, ~0ull - 4095 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, addresses[i]));
	}
}

TEST_F(abi, free_interior)
{
	struct accmem_alloc *a = &self->good;

	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, a));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, a->address + 1));
	EXPECT_EQ(-EINVAL, accmem_ioctl_free(self->fd, a->address + 4096));
	EXPECT_EQ(-EINVAL,
		  accmem_ioctl_free(self->fd, a->address + a->usable - 1));
	/* past the end there is nothing */
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_free(self->fd, a->address + a->footprint));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a->address));
}

TEST_F(abi, free_twice)
{
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	ASSERT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(self->fd, self->good.address));
}

TEST_F(abi, free_of_other_context)
{
	int other = accmem_dev_open(variant->path, O_RDWR);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(other, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_free(other, self->good.address + 4096));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	close(other);
}

TEST_F(abi, query_unknown)
{
	const uint64_t addresses[] = { 0, 1, self->info.address_base, ~0ull };
	struct accmem_query q;
	unsigned int i;
	int other;

	for (i = 0; i < ARRAY_SIZE(addresses); i++) {
		EXPECT_EQ(-ENOENT,
			  accmem_ioctl_query(self->fd, addresses[i], &q));
	}

	other = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, accmem_ioctl_alloc(self->fd, &self->good));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(other, self->good.address, &q));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, self->good.address - 1,
					      &q));
	EXPECT_EQ(-ENOENT,
		  accmem_ioctl_query(self->fd,
				     self->good.address + self->good.footprint,
				     &q));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, self->good.address));
	EXPECT_EQ(-ENOENT, accmem_ioctl_query(self->fd, self->good.address,
					      &q));
	close(other);
}

TEST_F(abi, use_after_close)
{
	int fd = accmem_dev_open(variant->path, O_RDWR);
	struct accmem_query q;
	struct accmem_info info;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, accmem_ioctl_alloc(fd, &self->good));
	close(fd);
	EXPECT_EQ(-EBADF, accmem_ioctl_info(fd, &info));
	EXPECT_EQ(-EBADF, accmem_ioctl_alloc(fd, &self->good));
	EXPECT_EQ(-EBADF, accmem_ioctl_query(fd, self->good.address, &q));
	EXPECT_EQ(-EBADF, accmem_ioctl_free(fd, self->good.address));
	EXPECT_EQ(NULL, accmem_mmap(fd, &self->good, 4096, PROT_READ));
	EXPECT_EQ(EBADF, errno);
}

/* What a character device has no use for is refused, and does not hang. */
TEST_F(abi, other_file_calls)
{
	char byte = 0;

	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ftruncate(self->fd, 4096));
}

ACCMEM_HARNESS_MAIN
