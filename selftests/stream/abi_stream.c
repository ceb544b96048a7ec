// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of the stream commands: structures, flags and reserved fields. A test
 * makes one thing wrong. The program is also built for 32 bits.
 */
#include "stream_util.h"

#define ROOM 256 /* bytes, beyond every structure */

FIXTURE(abi_stream)
{
	int fd;
	int stream;
	int fences;
	int sync_file;
	uint32_t fence;
};

FIXTURE_SETUP(abi_stream)
{
	self->fd = accmem_opened(ACCMEM_DEV_EMULATED);
	self->stream = stream_created(self->fd);
	self->fences = fence_device();
	ASSERT_LE(0, self->fences);
	self->sync_file = fence_created(self->fences, &self->fence);
}

FIXTURE_TEARDOWN(abi_stream)
{
	close(self->sync_file);
	close(self->fences);
	close(self->stream);
	close(self->fd);
	EXPECT_TRUE(accmem_is_idle(ACCMEM_DEV_EMULATED, 20000));
}

TEST_F(abi_stream, the_layout_is_one)
{
	EXPECT_EQ(128, sizeof(struct accmem_alloc));
	EXPECT_EQ(40, sizeof(struct accmem_free));
	EXPECT_EQ(24, sizeof(struct accmem_stream_create));
	EXPECT_EQ(16, sizeof(struct accmem_stream_signal));
	EXPECT_EQ(48, sizeof(struct accmem_stream_query));
	EXPECT_EQ(24, sizeof(struct accmem_stream_wait));
	EXPECT_EQ(24, sizeof(struct accmem_stream_import));
	EXPECT_EQ(24, sizeof(struct accmem_stream_export));
}

TEST_F(abi_stream, commands_belong_to_their_file)
{
	struct accmem_stream_query query = { .size = sizeof(query) };
	struct accmem_info info = { .size = sizeof(info) };

	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->fd, ACCMEM_IOC_STREAM_QUERY,
					&query));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->stream, ACCMEM_IOC_INFO, &info));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->stream,
					ACCMEM_IOC_STREAM_CREATE, &query));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->stream,
					_IO(ACCMEM_IOC_MAGIC, 0x0e), &query));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->stream, _IO(0x42, 0x0a),
					&query));
}

/* A call that succeeds when all other fields are 0. */
struct call {
	unsigned long cmd;
	uint32_t size;
	uint32_t reserved; /* offset of the reserved field, or 0 */
	bool of_context; /* the command is for a context, else for a stream */
	uint32_t fd; /* offset of the returned descriptor, or 0 */
};

static const struct call calls[] = {
	{ ACCMEM_IOC_STREAM_CREATE, sizeof(struct accmem_stream_create),
	  offsetof(struct accmem_stream_create, reserved), true,
	  offsetof(struct accmem_stream_create, fd) },
	{ ACCMEM_IOC_STREAM_SIGNAL, sizeof(struct accmem_stream_signal), 0,
	  false, 0 },
	{ ACCMEM_IOC_STREAM_QUERY, sizeof(struct accmem_stream_query), 0, false,
	  0 },
	{ ACCMEM_IOC_STREAM_WAIT, sizeof(struct accmem_stream_wait), 0, false,
	  0 },
	{ ACCMEM_IOC_STREAM_IMPORT, sizeof(struct accmem_stream_import),
	  offsetof(struct accmem_stream_import, reserved), false, 0 },
	{ ACCMEM_IOC_STREAM_EXPORT, sizeof(struct accmem_stream_export),
	  offsetof(struct accmem_stream_export, reserved), false,
	  offsetof(struct accmem_stream_export, fd) },
};

/*
 * makes a structure with which the call succeeds on a new stream; @size is its first
 * word
 */
static void prepare(char *at, const struct call *call, int sync_file,
		    uint32_t size)
{
	struct accmem_stream_import import = { .position = 1,
					       .fd = sync_file };
	struct accmem_stream_signal signal = { .position = 1 };

	memset(at, 0, ROOM);
	if (call->cmd == ACCMEM_IOC_STREAM_IMPORT)
		memcpy(at, &import, sizeof(import));
	if (call->cmd == ACCMEM_IOC_STREAM_SIGNAL)
		memcpy(at, &signal, sizeof(signal));
	memcpy(at, &size, sizeof(size));
}

/* makes the call on a new stream, and closes the descriptor that it returns */
static int make(int fd, const struct call *call, void *at)
{
	int stream = stream_create(fd), made, err;

	if (stream < 0)
		abort();
	err = accmem_ioctl(call->of_context ? fd : stream, call->cmd, at);
	if (!err && call->fd) {
		memcpy(&made, (char *)at + call->fd, sizeof(made));
		close(made);
	}
	close(stream);
	return err;
}

TEST_F(abi_stream, structures_right)
{
	char at[ROOM];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		prepare(at, &calls[i], self->sync_file, calls[i].size);
		EXPECT_EQ(0, make(self->fd, &calls[i], at)) {
			TH_LOG("command %#lx", calls[i].cmd);
		}
	}
}

TEST_F(abi_stream, sizes_are_checked)
{
	unsigned int i;
	char at[ROOM];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct call *call = &calls[i];

		prepare(at, call, self->sync_file, 0);
		EXPECT_EQ(-EINVAL, make(self->fd, call, at));
		prepare(at, call, self->sync_file, call->size - 1);
		EXPECT_EQ(-EINVAL, make(self->fd, call, at));
		prepare(at, call, self->sync_file, 4097);
		EXPECT_EQ(-E2BIG, make(self->fd, call, at));
		/* a longer structure, whose tail is zero or not */
		prepare(at, call, self->sync_file, call->size + 64);
		EXPECT_EQ(0, make(self->fd, call, at));
		prepare(at, call, self->sync_file, call->size + 64);
		at[call->size + 63] = 1;
		EXPECT_EQ(-E2BIG, make(self->fd, call, at));
	}
}

TEST_F(abi_stream, flags_are_checked)
{
	unsigned int i, bit;
	char at[ROOM];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (bit = 0; bit < 32; bit++) {
			uint32_t flag = 1u << bit;

			if (calls[i].cmd == ACCMEM_IOC_STREAM_WAIT &&
			    flag == ACCMEM_STREAM_NONBLOCK)
				continue;
			prepare(at, &calls[i], self->sync_file, calls[i].size);
			memcpy(at + 4, &flag, sizeof(flag));
			EXPECT_EQ(-EINVAL, make(self->fd, &calls[i], at));
		}
	}
}

TEST_F(abi_stream, reserved_fields_are_checked)
{
	unsigned int i, byte;
	char at[ROOM];

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		for (byte = calls[i].reserved;
		     byte && byte < calls[i].size; byte++) {
			prepare(at, &calls[i], self->sync_file, calls[i].size);
			at[byte] = 1;
			EXPECT_EQ(-EINVAL, make(self->fd, &calls[i], at));
		}
	}
}

TEST_F(abi_stream, structures_may_end_a_page)
{
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char at[ROOM];
	unsigned int i;

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + 4096, 4096, PROT_NONE));
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		char *end = p + 4096 - calls[i].size;

		prepare(at, &calls[i], self->sync_file, calls[i].size);
		memcpy(end, at, calls[i].size);
		EXPECT_EQ(0, make(self->fd, &calls[i], end));
		/* the last byte is not mapped */
		memcpy(end + 1, at, calls[i].size - 1);
		EXPECT_EQ(-EFAULT, make(self->fd, &calls[i], end + 1));
		EXPECT_EQ(-EFAULT, make(self->fd, &calls[i], NULL));
		/* the structure has one more byte, which is not mapped */
		prepare(at, &calls[i], self->sync_file, calls[i].size + 1);
		memcpy(end, at, calls[i].size);
		EXPECT_EQ(-EFAULT, make(self->fd, &calls[i], end));
	}
	munmap(p, 8192);
}

/* A call whose answer cannot be written fails, and leaves no descriptor. */
TEST_F(abi_stream, answers_have_to_be_writable)
{
	unsigned int before = accmem_nr_descriptors(), i;
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		if (!calls[i].fd && calls[i].cmd != ACCMEM_IOC_STREAM_QUERY)
			continue;
		ASSERT_EQ(0, mprotect(p, 4096, PROT_READ | PROT_WRITE));
		prepare(p, &calls[i], self->sync_file, calls[i].size);
		ASSERT_EQ(0, mprotect(p, 4096, PROT_READ));
		EXPECT_EQ(-EFAULT, make(self->fd, &calls[i], p));
		EXPECT_EQ(before, accmem_nr_descriptors());
	}
	munmap(p, 4096);
}

TEST_F(abi_stream, a_descriptor_has_to_be_free)
{
	struct rlimit usual, none;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &usual));
	none = usual;
	none.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_EQ(-EMFILE, stream_create(self->fd));
	EXPECT_EQ(-EMFILE, stream_export(self->stream, 0));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &usual));
}

TEST_F(abi_stream, a_wait_has_a_deadline_or_none)
{
	EXPECT_EQ(-EINVAL, stream_wait(self->stream, 0, ACCMEM_STREAM_NONBLOCK,
				       1));
	EXPECT_EQ(0, stream_wait(self->stream, 0, ACCMEM_STREAM_NONBLOCK, 0));
}

/* --- FREE and ALLOC -------------------------------------------------------- */

static int free_with(int fd, struct accmem_free req)
{
	req.size = sizeof(req);
	return accmem_ioctl(fd, ACCMEM_IOC_FREE, &req);
}

TEST_F(abi_stream, free_takes_one_thing_to_wait_for)
{
	struct accmem_alloc a = {};
	struct accmem_free f;

	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, 4096, 0, &a));
	f = (struct accmem_free){ .address = a.address, .fd = self->stream };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f = (struct accmem_free){ .address = a.address, .position = 1 };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f = (struct accmem_free){ .address = a.address,
				  .flags = ACCMEM_FREE_FLAGS,
				  .fd = self->stream };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f = (struct accmem_free){ .address = a.address,
				  .flags = ACCMEM_FREE_FENCE,
				  .fd = self->sync_file, .position = 1 };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f = (struct accmem_free){ .address = a.address,
				  .flags = ACCMEM_FREE_STREAM,
				  .fd = self->stream, .reserved2 = 1 };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	/* a stream is not a fence, and a fence is not a stream */
	f = (struct accmem_free){ .address = a.address,
				  .flags = ACCMEM_FREE_FENCE,
				  .fd = self->stream };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f.fd = -1;
	EXPECT_EQ(-EBADF, free_with(self->fd, f));
	f = (struct accmem_free){ .address = a.address,
				  .flags = ACCMEM_FREE_STREAM,
				  .fd = self->sync_file };
	EXPECT_EQ(-EINVAL, free_with(self->fd, f));
	f.fd = -1;
	EXPECT_EQ(-EBADF, free_with(self->fd, f));
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* Programs from before streams pass shorter structures. */
TEST_F(abi_stream, first_versions_are_taken)
{
	struct accmem_alloc a = { .size = offsetof(struct accmem_alloc,
						   stream),
				  .length = 4096, .stream = -1,
				  .carveouts = 77, .position = 1 };
	struct accmem_free f = { .size = offsetof(struct accmem_free, fd),
				 .fd = -1, .reserved2 = 1, .position = 1 };

	ASSERT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_ALLOC, &a));
	/* the kernel does not write beyond these */
	EXPECT_EQ(-1, a.stream);
	EXPECT_EQ(77, a.carveouts);
	EXPECT_EQ(1, a.position);
	f.address = a.address;
	EXPECT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_FREE, &f));
}

TEST_F(abi_stream, alloc_takes_a_stream_with_its_flag)
{
	struct accmem_alloc a = { .length = 4096, .stream = self->stream };

	EXPECT_EQ(-EINVAL, accmem_ioctl_alloc(self->fd, &a));
	a = (struct accmem_alloc){ .length = 4096 };
	EXPECT_EQ(-EBADF, stream_alloc(self->fd, -1, &a));
	EXPECT_EQ(-EINVAL, stream_alloc(self->fd, self->sync_file, &a));
	a = (struct accmem_alloc){ .length = 4096, .position = 77 };
	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &a));
	EXPECT_EQ(0, a.position);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

/* QUERY returns only the flags that describe the buffer. */
TEST_F(abi_stream, query_does_not_tell_the_stream)
{
	struct accmem_alloc a = { .length = 4096,
				  .flags = ACCMEM_ALLOC_TOP_DOWN };
	struct accmem_query q;

	ASSERT_EQ(0, stream_alloc(self->fd, self->stream, &a));
	ASSERT_EQ(0, accmem_ioctl_query(self->fd, a.address, &q));
	EXPECT_EQ(ACCMEM_ALLOC_TOP_DOWN, q.alloc_flags);
	EXPECT_EQ(0, accmem_ioctl_free(self->fd, a.address));
}

ACCMEM_HARNESS_MAIN
