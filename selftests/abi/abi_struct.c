// SPDX-License-Identifier: GPL-2.0
/*
 * Structures that the ioctls refuse: too short or too long, with reserved bytes or
 * unknown flags set, or at an address where the caller has no memory. Every command
 * gets the same tests. No refused call may leave anything allocated.
 */
#include "accmem_test.h"

FIXTURE(abi_struct)
{
	int fd;
	int64_t free_bytes;
	struct accmem_info info;
};

ACCMEM_VARIANTS(abi_struct);

FIXTURE_SETUP(abi_struct)
{
	self->fd = accmem_dev_open(variant->path, O_RDWR);
	ASSERT_LE(0, self->fd)
	{
		TH_LOG("open %s: %s", variant->path, strerror(-self->fd));
	}
	ASSERT_EQ(0, accmem_ioctl_info(self->fd, &self->info));
	self->free_bytes = self->info.free_bytes;
}

FIXTURE_TEARDOWN(abi_struct)
{
	EXPECT_EQ(self->free_bytes, accmem_free_now(self->fd))
	{
		TH_LOG("a refused call left something allocated");
	}
	close(self->fd);
}

/*
 * A call that succeeds. The structure has @bytes bytes and begins with its size.
 * @reserved is the offset of the reserved field, or 0.
 */
struct call {
	unsigned long cmd;
	size_t bytes;
	size_t least; /* length in the first version of the ABI; 0: the same */
	size_t reserved;
	size_t reserved_bytes;
	uint32_t flags; /* known flags */
	union {
		struct accmem_info info;
		struct accmem_alloc alloc;
		struct accmem_free free;
		struct accmem_query query;
		struct accmem_realloc realloc;
		struct accmem_access access;
		struct accmem_prefetch prefetch;
		struct accmem_advise advise;
	};
};

#define FLAGS_OFFSET offsetof(struct accmem_info, flags)
#define RESERVED(type)                               \
	.bytes = sizeof(struct type),                \
	.reserved = offsetof(struct type, reserved), \
	.reserved_bytes = sizeof(((struct type *)NULL)->reserved)

static const struct call calls[] = {
	{ .cmd = ACCMEM_IOC_INFO,
	  .bytes = sizeof(struct accmem_info),
	  .least = offsetof(struct accmem_info, retired_bytes),
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
	{ .cmd = ACCMEM_IOC_ACCESS, RESERVED(accmem_access) },
	{ .cmd = ACCMEM_IOC_PREFETCH,
	  RESERVED(accmem_prefetch),
	  .flags = ACCMEM_PREFETCH_FLAGS },
	{ .cmd = ACCMEM_IOC_ADVISE, RESERVED(accmem_advise) },
	{ .cmd = ACCMEM_IOC_PRESSURE,
	  RESERVED(accmem_pressure),
	  .flags = ACCMEM_PRESSURE_FLAGS },
};

static char read_byte; /* destination of ACCESS */

static bool call_hints(const struct call *call)
{
	return call->cmd == ACCMEM_IOC_PREFETCH ||
	       call->cmd == ACCMEM_IOC_ADVISE;
}

/* makes the structure, and a buffer for it, which undo() frees */
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

/* frees what the call has left, which returned @err; 0 if that is consistent */
static int undo(int fd, const struct call *call, const char *at,
		const struct accmem_alloc *buf, int err)
{
	struct accmem_alloc done;
	int ret = 0;

	if (call->cmd == ACCMEM_IOC_ALLOC && !err) {
		memcpy(&done, at, sizeof(done));
		ret = accmem_ioctl_free(fd, done.address);
	}
	if (call->cmd != ACCMEM_IOC_FREE || err)
		ret = ret ?: accmem_ioctl_free(fd, buf->address);
	return ret;
}

/* the result of a call; @change modifies the structure before */
#define CALL_AT(call, at, change)                                     \
	({                                                            \
		struct accmem_alloc __buf;                            \
		int __err;                                            \
		ASSERT_EQ(0, prepare(self->fd, call, at, &__buf));    \
		change;                                               \
		__err = accmem_ioctl(self->fd, (call)->cmd, at);      \
		EXPECT_EQ(0, undo(self->fd, call, at, &__buf, __err)) \
		{                                                     \
			TH_LOG("command %#lx", (call)->cmd);          \
		}                                                     \
		__err;                                                \
	})

#define put_u32(at, value)                       \
	do {                                     \
		uint32_t __v = (value);          \
		memcpy((at), &__v, sizeof(__v)); \
	} while (0)

TEST_F(abi_struct, struct_right)
{
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], at, {}));
	}
}

TEST_F(abi_struct, struct_too_short)
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
				  put_u32(at,
					  (call->least ?: call->bytes) - 1)));
		if (call->least)
			EXPECT_EQ(0,
				  CALL_AT(call, at, put_u32(at, call->least)));
	}
}

TEST_F(abi_struct, struct_longer_zero_tail)
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

TEST_F(abi_struct, struct_longer_nonzero_tail)
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

TEST_F(abi_struct, struct_absurdly_long)
{
	const struct call *call;
	char at[256];
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		call = &calls[i];
		memset(at, 0, sizeof(at));
		/* the tail is not zero, or not mapped: either error is right */
		err = CALL_AT(call, at, put_u32(at, 4096));
		EXPECT_TRUE(err == -E2BIG || err == -EFAULT);
		/* a longer structure is refused without a look at the tail */
		EXPECT_EQ(-E2BIG, CALL_AT(call, at, put_u32(at, 4097)));
		EXPECT_EQ(-E2BIG, CALL_AT(call, at, put_u32(at, ~0u)));
	}
}

TEST_F(abi_struct, struct_reserved)
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

TEST_F(abi_struct, struct_unknown_flag)
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

TEST_F(abi_struct, struct_ends_at_page_end)
{
	char *end = page_end();
	unsigned int i;

	ASSERT_NE(NULL, end);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], end - calls[i].bytes, {}));
	}
}

TEST_F(abi_struct, struct_misaligned)
{
	char at[256];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		EXPECT_EQ(0, CALL_AT(&calls[i], at + 1, {}));
	}
}

TEST_F(abi_struct, struct_crosses_into_nothing)
{
	char *end = page_end(), *at;
	uint32_t size;
	unsigned int i;

	ASSERT_NE(NULL, end);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		/* all but the last byte is mapped, then only the size */
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

TEST_F(abi_struct, struct_nowhere)
{
	void *bad[] = { NULL, (void *)1, (void *)-4096l, (void *)-1l };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			EXPECT_EQ(-EFAULT,
				  accmem_ioctl(self->fd, calls[i].cmd, bad[j]));
		}
}

/* The answer cannot be written: the call fails and allocates nothing. */
TEST_F(abi_struct, struct_read_only)
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

ACCMEM_HARNESS_MAIN
