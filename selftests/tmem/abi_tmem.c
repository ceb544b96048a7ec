// SPDX-License-Identifier: GPL-2.0
/*
 * Arguments of the Tensor Memory commands: structures, flags, reserved fields and
 * ranges. A test makes one thing wrong. The program is also built for 32 bits.
 */
#include "accmem_test.h"

FIXTURE(abi_tmem)
{
	int fd;
	int cta;
};

static int launch(int fd, struct accmem_tmem_launch *req)
{
	req->size = sizeof(*req);
	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, req);
}

static int setup(int fd, uint32_t nr_sms, uint32_t columns,
		 uint32_t discipline)
{
	struct accmem_tmem_setup req = { .size = sizeof(req), .nr_sms = nr_sms,
					 .columns = columns,
					 .discipline = discipline };

	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &req);
}

static int alloc(int cta, uint32_t columns, uint32_t *at)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.columns = columns,
					.flags = ACCMEM_CTA_NONBLOCK,
					.destination = (uintptr_t)at };

	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

FIXTURE_SETUP(abi_tmem)
{
	struct accmem_tmem_launch req = { .cta_group = 1 };

	self->fd = accmem_opened(ACCMEM_DEV_EMULATED);
	ASSERT_EQ(0, launch(self->fd, &req));
	self->cta = req.fd;
}

FIXTURE_TEARDOWN(abi_tmem)
{
	close(self->cta);
	close(self->fd);
}

TEST_F(abi_tmem, the_layout_is_one)
{
	EXPECT_EQ(32, sizeof(struct accmem_tmem_setup));
	EXPECT_EQ(56, sizeof(struct accmem_tmem_launch));
	EXPECT_EQ(32, sizeof(struct accmem_tmem_member));
	EXPECT_EQ(40, sizeof(struct accmem_tmem_cluster));
	EXPECT_EQ(48, sizeof(struct accmem_cta_alloc));
	EXPECT_EQ(40, sizeof(struct accmem_cta_dealloc));
	EXPECT_EQ(24, sizeof(struct accmem_cta_completion));
	EXPECT_EQ(16, sizeof(struct accmem_cta_relinquish));
	EXPECT_EQ(88, sizeof(struct accmem_cta_query));
	EXPECT_EQ(8, sizeof(struct accmem_cta_cancel));
	EXPECT_EQ(16, sizeof(struct accmem_cta_eventfd));
	EXPECT_EQ(520, sizeof(struct accmem_tmem_map));
}

TEST_F(abi_tmem, commands_belong_to_their_file)
{
	struct accmem_cta_query query = { .size = sizeof(query) };
	struct accmem_info info = { .size = sizeof(info) };

	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->fd, ACCMEM_IOC_CTA_QUERY,
					&query));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->cta, ACCMEM_IOC_INFO, &info));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->cta, _IO(ACCMEM_IOC_MAGIC, 0x26),
					&info));
	EXPECT_EQ(-ENOTTY, accmem_ioctl(self->cta, _IO(0x42, 0x20), &info));
	EXPECT_EQ(-ENOTTY,
		  accmem_ioctl(self->fd, _IO(ACCMEM_IOC_MAGIC, 0x15), &info));
}

/* Every structure is too short, too long, or at an address that cannot be read. */
TEST_F(abi_tmem, sizes_are_checked)
{
	static const struct {
		unsigned long cmd;
		uint32_t least; /* the structure's size in the first version */
		uint32_t size;
		bool cta;
	} cmds[] = {
		{ ACCMEM_IOC_TMEM_SETUP, 32, sizeof(struct accmem_tmem_setup),
		  0 },
		{ ACCMEM_IOC_TMEM_LAUNCH, 40, sizeof(struct accmem_tmem_launch),
		  0 },
		{ ACCMEM_IOC_TMEM_CLUSTER, 40,
		  sizeof(struct accmem_tmem_cluster), 0 },
		{ ACCMEM_IOC_CTA_ALLOC, 32, sizeof(struct accmem_cta_alloc), 1 },
		{ ACCMEM_IOC_CTA_DEALLOC, 24, sizeof(struct accmem_cta_dealloc),
		  1 },
		{ ACCMEM_IOC_CTA_RELINQUISH, 8,
		  sizeof(struct accmem_cta_relinquish), 1 },
		{ ACCMEM_IOC_CTA_QUERY, 64, sizeof(struct accmem_cta_query), 1 },
		{ ACCMEM_IOC_CTA_CANCEL, 8, sizeof(struct accmem_cta_cancel),
		  1 },
		{ ACCMEM_IOC_CTA_EVENTFD, 16, sizeof(struct accmem_cta_eventfd),
		  1 },
	};
	uint32_t words[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		int fd = cmds[i].cta ? self->cta : self->fd;

		memset(words, 0, sizeof(words));
		words[0] = cmds[i].least - 1;
		EXPECT_EQ(-EINVAL, accmem_ioctl(fd, cmds[i].cmd, words));
		words[0] = 0;
		EXPECT_EQ(-EINVAL, accmem_ioctl(fd, cmds[i].cmd, words));
		words[0] = cmds[i].size + 8;
		words[cmds[i].size / 4 + 1] = 1;
		EXPECT_EQ(-E2BIG, accmem_ioctl(fd, cmds[i].cmd, words));
		words[0] = 4097;
		EXPECT_EQ(-E2BIG, accmem_ioctl(fd, cmds[i].cmd, words));
		EXPECT_EQ(-EFAULT, accmem_ioctl(fd, cmds[i].cmd, NULL));
		/* the second word of every structure is its flags */
		memset(words, 0, sizeof(words));
		words[0] = cmds[i].size;
		words[1] = 1u << 31;
		EXPECT_EQ(-EINVAL, accmem_ioctl(fd, cmds[i].cmd, words));
	}
}

TEST_F(abi_tmem, a_longer_structure_with_a_zero_tail_works)
{
	struct {
		struct accmem_cta_query query;
		uint64_t more;
	} q = { .query.size = sizeof(q) };

	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_QUERY, &q));
	EXPECT_EQ(512, q.query.columns);
	EXPECT_EQ(0, q.more);
}

TEST_F(abi_tmem, reserved_fields_must_be_zero)
{
	struct accmem_tmem_setup s = { .size = sizeof(s), .nr_sms = 1,
				       .reserved = 1 };
	struct accmem_tmem_launch l = { .cta_group = 1, .reserved = 1 };
	struct accmem_tmem_member m = { .reserved = 1 };
	struct accmem_tmem_cluster c = { .size = sizeof(c), .cta_group = 1,
					 .nr_members = 1,
					 .members = (uintptr_t)&m };
	uint32_t at;
	struct accmem_cta_alloc a = { .size = sizeof(a), .columns = 32,
				      .destination = (uintptr_t)&at,
				      .user_data = 1 };
	struct accmem_cta_alloc b = { .size = sizeof(b),
				      .columns = 32,
				      .destination = (uintptr_t)&at,
				      .reserved = 1 };
	struct accmem_cta_relinquish r = { .size = sizeof(r), .reserved = 1 };
	struct accmem_cta_query q = { .size = sizeof(q), .reserved = 1 };
	struct accmem_cta_eventfd e = { .size = sizeof(e), .fd = -1,
					.reserved = 1 };

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_SETUP, &s));
	EXPECT_EQ(-EINVAL, launch(self->fd, &l));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_CLUSTER, &c));
	m.reserved = 0;
	c.reserved = 1;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_CLUSTER, &c));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &b));
	EXPECT_EQ(-EINVAL,
		  accmem_ioctl(self->cta, ACCMEM_IOC_CTA_RELINQUISH, &r));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_QUERY, &q));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_EVENTFD, &e));
}

/* The group of the CTA is 1; the structures of an older program have no group. */
TEST_F(abi_tmem, p13_an_instruction_has_a_group_of_its_own)
{
	uint32_t at;
	struct accmem_cta_alloc a = { .size = sizeof(a),
				      .columns = 32,
				      .destination = (uintptr_t)&at };
	struct accmem_cta_dealloc d = { .size = sizeof(d), .columns = 32 };
	struct accmem_cta_relinquish r = { .size = sizeof(r) };

	for (a.cta_group = 3; a.cta_group--;) {
		int err = a.cta_group == 2 ? -EPROTOTYPE : 0;

		d.cta_group = a.cta_group;
		a.size = sizeof(a);
		EXPECT_EQ(err,
			  accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
		a.size = offsetof(struct accmem_cta_alloc, cta_group);
		if (err) {
			EXPECT_EQ(0, accmem_ioctl(self->cta,
						  ACCMEM_IOC_CTA_ALLOC, &a));
		}
		d.address = at;
		EXPECT_EQ(err,
			  accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
		d.cta_group = 0;
		if (err) {
			EXPECT_EQ(0, accmem_ioctl(self->cta,
						  ACCMEM_IOC_CTA_DEALLOC, &d));
		}
	}
	a.size = sizeof(a);
	a.cta_group = 3;
	d.cta_group = 3;
	r.cta_group = 3;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	EXPECT_EQ(-EINVAL,
		  accmem_ioctl(self->cta, ACCMEM_IOC_CTA_RELINQUISH, &r));
	r.cta_group = 2;
	EXPECT_EQ(-EPROTOTYPE,
		  accmem_ioctl(self->cta, ACCMEM_IOC_CTA_RELINQUISH, &r));
	a.cta_group = 1;
	r.cta_group = 1;
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_RELINQUISH, &r));
	EXPECT_EQ(-EPERM, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
}

TEST_F(abi_tmem, nonblock_has_no_deadline)
{
	uint32_t at;
	struct accmem_cta_alloc a = { .size = sizeof(a), .columns = 32,
				      .flags = ACCMEM_CTA_NONBLOCK,
				      .deadline_ns = ~0ull,
				      .destination = (uintptr_t)&at };
	struct accmem_cta_dealloc d = { .size = sizeof(d), .columns = 32,
					.flags = ACCMEM_CTA_NONBLOCK,
					.deadline_ns = 1 };

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	a.flags = 0; /* the largest deadline; the alloc is granted at once */
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
}

TEST_F(abi_tmem, queued_has_neither_nonblock_nor_destination)
{
	uint32_t at, both = ACCMEM_CTA_QUEUED | ACCMEM_CTA_NONBLOCK;
	struct accmem_cta_alloc a = { .size = sizeof(a), .columns = 32,
				      .flags = both };
	struct accmem_cta_dealloc d = { .size = sizeof(d), .columns = 32,
					.flags = both };
	struct accmem_cta_completion done;

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	a.flags = ACCMEM_CTA_QUEUED;
	a.destination = (uintptr_t)&at;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	a.destination = 0;
	a.flags = ACCMEM_CTA_QUEUED | 4;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	d.flags = ACCMEM_CTA_QUEUED | 4;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	EXPECT_EQ(-1, read(self->cta, &done, sizeof(done)));
	EXPECT_EQ(ENODATA, errno);
	a.flags = ACCMEM_CTA_QUEUED;
	a.user_data = ~0ull;
	a.deadline_ns = ~0ull;
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ((ssize_t)sizeof(done), read(self->cta, &done, sizeof(done)));
	EXPECT_EQ(~0ull, done.user_data);
}

TEST_F(abi_tmem, user_data_is_for_queued_calls)
{
	uint32_t at;
	struct accmem_cta_alloc a = { .size = sizeof(a), .columns = 32,
				      .destination = (uintptr_t)&at,
				      .user_data = 1 };
	struct accmem_cta_dealloc d = { .size = sizeof(d), .columns = 32,
					.user_data = 1 };

	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	a.flags = ACCMEM_CTA_NONBLOCK;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	a.user_data = 0;
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	d.flags = ACCMEM_CTA_NONBLOCK;
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	d.user_data = 0;
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
}

/* A structure of the first version of the ABI, and one that is longer than the kernel's. */
TEST_F(abi_tmem, a_call_of_another_size_works)
{
	uint32_t at;
	struct {
		struct accmem_cta_alloc a;
		uint64_t more;
	} a = { .a = { .size = 32, .columns = 32,
		       .destination = (uintptr_t)&at, .user_data = 1 } };
	struct {
		struct accmem_cta_dealloc d;
		uint64_t more;
	} d = { .d = { .size = 24, .columns = 32, .user_data = 1 } };

	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
	a.a.size = sizeof(a);
	a.a.user_data = 0;
	d.d.size = sizeof(d);
	d.d.user_data = 0;
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_ALLOC, &a));
	EXPECT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_DEALLOC, &d));
}

TEST_F(abi_tmem, setup_takes_what_an_sm_can_be)
{
	static const uint32_t bad[] = { 16, 48, 513, 2080, 0x80000000 };
	size_t i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
		EXPECT_EQ(-EINVAL, setup(fd, 1, bad[i], 0));
		close(fd);
	}
	fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	EXPECT_EQ(-EINVAL, setup(fd, 0, 512, 0));
	EXPECT_EQ(-EINVAL, setup(fd, ACCMEM_TMEM_SMS_MAX + 1, 512, 0));
	EXPECT_EQ(-EINVAL, setup(fd, 1, 512, 2));
	EXPECT_EQ(0, setup(fd, ACCMEM_TMEM_SMS_MAX, 576, 1));
	EXPECT_EQ(-EBUSY, setup(fd, 1, 512, 0));
	close(fd);
	EXPECT_EQ(-EBUSY, setup(self->fd, 1, 512, 0)); /* a CTA has been launched */
}

TEST_F(abi_tmem, launch_checks_where_and_what)
{
	struct accmem_tmem_launch req = { .cta_group = 1, .sm = 1 };

	EXPECT_EQ(-ENXIO, launch(self->fd, &req));
	req.sm = 0xffffffff;
	EXPECT_EQ(-ENXIO, launch(self->fd, &req));
	req.sm = 0;
	req.cta_group = 0;
	EXPECT_EQ(-EINVAL, launch(self->fd, &req));
	req.cta_group = 3;
	EXPECT_EQ(-EINVAL, launch(self->fd, &req));
}

TEST_F(abi_tmem, the_descriptor_is_close_on_exec_and_none_is_lost)
{
	long page = sysconf(_SC_PAGESIZE);
	struct accmem_tmem_launch *req;
	unsigned int before = accmem_nr_descriptors();
	char *p;

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->cta, F_GETFD));
	/* the answer cannot be written: the CTA and its descriptor are undone */
	p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	req = (void *)p;
	req->size = sizeof(*req);
	req->cta_group = 1;
	ASSERT_EQ(0, mprotect(p, page, PROT_READ));
	EXPECT_EQ(-EFAULT, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_LAUNCH, p));
	EXPECT_EQ(before, accmem_nr_descriptors());
	munmap(p, page);
}

static int launch_members(int fd, void *members, uint32_t nr)
{
	struct accmem_tmem_cluster req = { .size = sizeof(req), .launch = 1,
					   .cta_group = 1, .nr_members = nr,
					   .members = (uintptr_t)members };

	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &req);
}

TEST_F(abi_tmem, a_cluster_has_from_1_to_64_members)
{
	struct accmem_tmem_member m[ACCMEM_TMEM_CLUSTER_MAX + 1] = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(m); i++)
		m[i].rank = i;
	EXPECT_EQ(-EINVAL, launch_members(self->fd, m, 0));
	EXPECT_EQ(-EINVAL, launch_members(self->fd, m, ARRAY_SIZE(m)));
	EXPECT_EQ(-EINVAL, launch_members(self->fd, m, ~0u));
	ASSERT_EQ(0, launch_members(self->fd, m, 1));
	close(m[0].fd);
	ASSERT_EQ(0, launch_members(self->fd, m, ACCMEM_TMEM_CLUSTER_MAX));
	for (i = 0; i < ACCMEM_TMEM_CLUSTER_MAX; i++)
		EXPECT_EQ(0, close(m[i].fd));
}

TEST_F(abi_tmem, the_members_are_read_to_their_end_and_not_beyond)
{
	long page = sysconf(_SC_PAGESIZE);
	struct accmem_tmem_member *m;
	unsigned int before = accmem_nr_descriptors();
	char *p;

	p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + page, page, PROT_NONE));
	m = (void *)(p + page);
	m[-1].rank = 1;
	ASSERT_EQ(0, launch_members(self->fd, m - 2, 2));
	EXPECT_EQ(before + 2, accmem_nr_descriptors());
	EXPECT_EQ(0, close(m[-1].fd));
	EXPECT_EQ(0, close(m[-2].fd));
	/* the last member, or a half of it, is not mapped */
	EXPECT_EQ(-EFAULT, launch_members(self->fd, m - 1, 2));
	EXPECT_EQ(-EFAULT, launch_members(self->fd, (char *)(m - 1) + 16, 1));
	EXPECT_EQ(-EFAULT, launch_members(self->fd, NULL, 1));
	EXPECT_EQ(before, accmem_nr_descriptors());
	munmap(p, 2 * page);
}

TEST_F(abi_tmem, too_many_files)
{
	struct accmem_tmem_launch req = { .cta_group = 1 };
	struct rlimit limit = { 3, 3 };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, launch(self->fd, &req));
}

TEST_F(abi_tmem, too_many_ctas)
{
	struct accmem_tmem_launch req = { .cta_group = 1 };
	struct rlimit limit = { 16384, 16384 };
	int i, err = 0;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 1; i < (int)ACCMEM_TMEM_CTAS_MAX && !err; i++)
		err = launch(self->fd, &req);
	EXPECT_EQ(0, err);
	EXPECT_EQ(-EUSERS, launch(self->fd, &req));
	close(self->cta);
	EXPECT_EQ(0, launch(self->fd, &req));
}

TEST_F(abi_tmem, query_says_what_is)
{
	struct accmem_tmem_launch req = { .launch = 1ull << 40, .cluster = 5,
					  .rank = 6, .cta_group = 2 };
	struct accmem_cta_query q = { .size = sizeof(q) };
	uint32_t at;

	ASSERT_EQ(0, launch(self->fd, &req));
	ASSERT_EQ(0, alloc(self->cta, 128, &at));
	ASSERT_EQ(0, accmem_ioctl(req.fd, ACCMEM_IOC_CTA_QUERY, &q));
	EXPECT_EQ(1ull << 40, q.launch);
	EXPECT_EQ(5, q.cluster);
	EXPECT_EQ(6, q.rank);
	EXPECT_EQ(0, q.sm);
	EXPECT_EQ(2, q.cta_group);
	EXPECT_EQ(0, q.state);
	EXPECT_EQ(0, q.held);
	EXPECT_EQ(512, q.columns);
	EXPECT_EQ(384, q.free);
	q = (struct accmem_cta_query){ .size = sizeof(q) };
	ASSERT_EQ(0, accmem_ioctl(self->cta, ACCMEM_IOC_CTA_QUERY, &q));
	EXPECT_EQ(128, q.held);
	EXPECT_EQ(128, q.last);
	close(req.fd);
}

TEST_F(abi_tmem, contexts_have_sms_of_their_own)
{
	struct accmem_tmem_launch req = { .cta_group = 1 };
	int fd = accmem_dev_open(ACCMEM_DEV_EMULATED, O_RDWR);
	uint32_t at;

	ASSERT_EQ(0, launch(fd, &req));
	EXPECT_EQ(0, alloc(self->cta, 512, &at));
	EXPECT_EQ(0, alloc(req.fd, 512, &at));
	close(req.fd);
	close(fd);
}

ACCMEM_HARNESS_MAIN
