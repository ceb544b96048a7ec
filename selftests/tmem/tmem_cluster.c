// SPDX-License-Identifier: GPL-2.0
/*
 * Launches of clusters: all CTAs of a cluster are launched, or none. And the windows
 * that a launch gives its CTAs for the addresses of their allocs (P10).
 */
#include "tmem_calls.h"
#include "tmem_util.h"

#define LAUNCH 8ull
#define MEMBERS 4

FIXTURE(tmem_cluster)
{
	int fd;
	int log;
	struct accmem_tmem_member members[ACCMEM_TMEM_CLUSTER_MAX];
	uint32_t words[8];
};

/* two pairs on four SMs; the ranks are in no order */
FIXTURE_SETUP(tmem_cluster)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 4 };
	static const uint32_t ranks[MEMBERS] = { 2, 1, 3, 0 };
	int i;

	self->fd = accmem_opened(ACCMEM_DEV_EMULATED);
	ASSERT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_SETUP, &setup));
	for (i = 0; i < MEMBERS; i++) {
		self->members[i].rank = ranks[i];
		self->members[i].sm = i;
	}
	self->log = accmem_log_open();
	ASSERT_LE(0, self->log);
	ASSERT_LE(0, lseek(self->log, 0, SEEK_END));
}

FIXTURE_TEARDOWN(tmem_cluster)
{
	close(self->log);
	close(self->fd);
}

static int launch_cluster(int fd, struct accmem_tmem_member *members,
			  uint32_t nr, uint32_t group)
{
	struct accmem_tmem_cluster req = { .size = sizeof(req),
					   .launch = LAUNCH,
					   .cta_group = group,
					   .nr_members = nr,
					   .members = (uintptr_t)members };

	return accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &req);
}

static int alloc(int cta, void *at)
{
	return CTA_ALLOC(cta, .columns = 32, .destination = (uintptr_t)at);
}

static struct accmem_cta_query query(int cta)
{
	struct accmem_cta_query q = { .size = sizeof(q) };

	if (accmem_ioctl(cta, ACCMEM_IOC_CTA_QUERY, &q))
		q.columns = 0;
	return q;
}

static void exit_all(struct accmem_tmem_member *members, int nr)
{
	while (nr--)
		close(members[nr].fd);
}

TEST_F(tmem_cluster, p19_all_ctas_are_launched)
{
	struct accmem_tmem_member *m = self->members;
	int i;

	ASSERT_EQ(0, launch_cluster(self->fd, m, MEMBERS, 2));
	for (i = 0; i < MEMBERS; i++) {
		struct accmem_cta_query q = query(m[i].fd);

		EXPECT_EQ(FD_CLOEXEC, fcntl(m[i].fd, F_GETFD));
		EXPECT_EQ(LAUNCH, q.launch);
		EXPECT_EQ(m[i].rank, q.rank);
		EXPECT_EQ(i, q.sm);
		EXPECT_EQ(2, q.cta_group);
		EXPECT_EQ(i + 1, q.id);
		EXPECT_EQ(ACCMEM_CTA_PEER, q.state);
	}
	EXPECT_EQ(MEMBERS, accmem_fdinfo(self->fd, "tmem-ctas"));
	/* 0 and 2 are a pair */
	ASSERT_EQ(0, CTA_ALLOC(m[0].fd, .columns = 32,
			       .flags = ACCMEM_CTA_QUEUED));
	EXPECT_EQ(0, alloc(m[2].fd, &self->words[0]));
	EXPECT_EQ(0, cta_result(m[0].fd));
	ASSERT_EQ(0, CTA_DEALLOC(m[0].fd, .columns = 32,
				 .flags = ACCMEM_CTA_QUEUED));
	ASSERT_EQ(0, CTA_DEALLOC(m[2].fd, .columns = 32,
				 .flags = ACCMEM_CTA_QUEUED));
	EXPECT_EQ(0, cta_result(m[0].fd));
	EXPECT_EQ(0, cta_result(m[2].fd));
	exit_all(m, MEMBERS);
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "tmem-ctas"));
}

/* A launch that failed leaves no CTA and no descriptor. */
TEST_F(tmem_cluster, p5_a_launch_that_fails_has_not_been)
{
	static const struct {
		uint32_t rank, sm; /* of the last member */
		uint32_t group;
		int err;
	} bad[] = {
		{ 0, 4, 2, -ENXIO },
		{ 0, 1, 2, -EADDRINUSE },
		{ 3, 3, 2, -EEXIST },
		{ 4, 3, 2, -EINVAL }, /* a pair has one CTA only */
		{ 0, 3, 3, -EINVAL },
	};
	struct accmem_tmem_member *m = self->members;
	int fds = cta_next_fd(self->fd), other;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		m[3].rank = bad[i].rank;
		m[3].sm = bad[i].sm;
		EXPECT_EQ(bad[i].err, launch_cluster(self->fd, m, MEMBERS,
						     bad[i].group));
	}
	m[3].rank = 0;
	m[3].sm = 3;
	/* three CTAs: the missing peer is the only thing wrong */
	EXPECT_EQ(-EINVAL, launch_cluster(self->fd, m, 3, 2));
	other = CTA_LAUNCH(self->fd, .launch = LAUNCH, .rank = 9, .sm = 0,
			   .cta_group = 1);
	EXPECT_EQ(-EPROTOTYPE, launch_cluster(self->fd, m, MEMBERS, 2));
	close(other);
	EXPECT_EQ(fds, cta_next_fd(self->fd));
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "tmem-ctas"));
	ASSERT_EQ(0, launch_cluster(self->fd, m, MEMBERS, 2));
	EXPECT_EQ(2, query(m[0].fd).id);
	exit_all(m, MEMBERS);
	EXPECT_EQ(0, accmem_log_count(self->log, "tmem_cluster[", "P5", NULL));
}

TEST_F(tmem_cluster, p19_the_message_names_the_cta)
{
	static const char who[] = "CTA 0 (launch 0x8, cluster 0, rank 0, SM 77)";
	struct accmem_tmem_member *m = self->members;
	uint64_t start = accmem_ms();
	int n;

	m[3].sm = 77;
	/* messages are rate-limited: other tests may have used up the limit */
	do {
		ASSERT_EQ(-ENXIO, launch_cluster(self->fd, m, MEMBERS, 2));
		n = accmem_log_count(self->log, "tmem_cluster[", who,
				     "P19: no such SM", NULL);
		if (!n)
			usleep(200000);
	} while (!n && accmem_ms() < start + 30000);
	EXPECT_EQ(1, n);
}

TEST_F(tmem_cluster, not_enough_descriptors)
{
	struct rlimit limit = { cta_next_fd(self->fd) + MEMBERS - 1, 1024 };
	int fds = cta_next_fd(self->fd);

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(-EMFILE, launch_cluster(self->fd, self->members, MEMBERS, 2));
	limit.rlim_cur = 1024;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(fds, cta_next_fd(self->fd));
	EXPECT_EQ(0, launch_cluster(self->fd, self->members, MEMBERS, 2));
	exit_all(self->members, MEMBERS);
}

TEST_F(tmem_cluster, descriptors_that_cannot_be_told)
{
	long page = sysconf(_SC_PAGESIZE);
	int fds = cta_next_fd(self->fd);
	char *p;

	p = mmap(NULL, page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	memcpy(p, self->members, MEMBERS * sizeof(self->members[0]));
	ASSERT_EQ(0, mprotect(p, page, PROT_READ));
	EXPECT_EQ(-EFAULT, launch_cluster(self->fd, (void *)p, MEMBERS, 2));
	EXPECT_EQ(fds, cta_next_fd(self->fd));
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "tmem-ctas"));
	munmap(p, page);
}

TEST_F(tmem_cluster, too_many_ctas)
{
	struct accmem_tmem_member *m = self->members;
	struct rlimit limit = { 16384, 16384 };
	unsigned int i, n = ACCMEM_TMEM_CLUSTER_MAX;
	struct accmem_tmem_cluster req = { .size = sizeof(req),
					   .cta_group = 1, .nr_members = n,
					   .members = (uintptr_t)m };

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (i = 0; i < n; i++)
		m[i] = (struct accmem_tmem_member){ .rank = i };
	for (i = 0; i < ACCMEM_TMEM_CTAS_MAX / n; i++) {
		req.cluster = i;
		ASSERT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_CLUSTER,
					  &req));
	}
	close(m[0].fd);
	req.cluster = i;
	req.nr_members = 2;
	EXPECT_EQ(-EUSERS,
		  accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_CLUSTER, &req));
	req.nr_members = 1;
	EXPECT_EQ(0, accmem_ioctl(self->fd, ACCMEM_IOC_TMEM_CLUSTER, &req));
	EXPECT_EQ(ACCMEM_TMEM_CTAS_MAX, accmem_fdinfo(self->fd, "tmem-ctas"));
}

/*
 * 160 SMs, with the 16 CTAs of 32 columns that fill an SM, and as many without columns:
 * more than any device has.
 */
TEST_F(tmem_cluster, a_device_that_is_full_is_one_context)
{
	struct rlimit limit = { 16384, 16384 };
	struct tcgen05_config config = { .nr_sms = 160 };
	struct accmem_tmem_cluster req = { .size = sizeof(req),
					   .cta_group = 1,
					   .nr_members = 32 };
	struct accmem_tmem_member m[32];
	struct accmem_context *ctx;
	uint32_t sm, i, at;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(0, accmem_open(NULL, &ctx));
	ASSERT_EQ(0, tcgen05_setup(ctx, &config));
	req.members = (uintptr_t)m;
	for (sm = 0; sm < config.nr_sms; sm++) {
		req.cluster = sm;
		for (i = 0; i < 32; i++)
			m[i] = (struct accmem_tmem_member){ .rank = i,
							    .sm = sm };
		ASSERT_EQ(0, accmem_ioctl(accmem_fd(ctx),
					  ACCMEM_IOC_TMEM_CLUSTER, &req));
		for (i = 0; i < 16; i++)
			ASSERT_EQ(0, CTA_ALLOC(m[i].fd, .columns = 32,
					       .destination = (uintptr_t)&at));
		ASSERT_EQ(0, query(m[16].fd).free);
	}
	EXPECT_EQ(5120, accmem_fdinfo(accmem_fd(ctx), "tmem-ctas"));
	accmem_close(ctx);
}

/* --- P10: the window ------------------------------------------------------- */

/* words 2 to 5 are the window */
static int launch_in_words(int fd, uint32_t *words)
{
	return CTA_LAUNCH(fd, .cta_group = 1,
			  .window_base = (uintptr_t)&words[2],
			  .window_length = 4 * sizeof(*words));
}

TEST_F(tmem_cluster, p10_a_destination_outside_of_the_window)
{
	int cta = launch_in_words(self->fd, self->words);
	char *bytes = (char *)self->words;

	ASSERT_LE(0, cta);
	memset(self->words, 0xee, sizeof(self->words));
	EXPECT_EQ(-EFAULT, alloc(cta, &self->words[1]));
	EXPECT_EQ(-EFAULT, alloc(cta, &self->words[6]));
	/* a destination that is partly outside, at either end */
	EXPECT_EQ(-EFAULT, alloc(cta, bytes + 7));
	EXPECT_EQ(-EFAULT, alloc(cta, bytes + 21));
	EXPECT_EQ(-EFAULT, alloc(cta, NULL));
	EXPECT_EQ(-EFAULT, alloc(cta, (void *)-4l));
	/* nothing was written or allocated, and the call does not count as an alloc (P8) */
	EXPECT_EQ(0xeeeeeeee, self->words[1]);
	EXPECT_EQ(0xeeeeeeee, self->words[2]);
	EXPECT_EQ(0xeeeeeeee, self->words[6]);
	EXPECT_EQ(512, query(cta).free);
	EXPECT_EQ(0, query(cta).last);
	close(cta);
}

TEST_F(tmem_cluster, p10_a_window_of_less_than_an_address)
{
	int cta = CTA_LAUNCH(self->fd, .cta_group = 1,
			     .window_base = (uintptr_t)self->words,
			     .window_length = 3);

	ASSERT_LE(0, cta);
	EXPECT_EQ(-EFAULT, alloc(cta, self->words));
	close(cta);
}

TEST_F(tmem_cluster, p10_the_window_must_be_one)
{
	int cta;

	EXPECT_EQ(-EINVAL, CTA_LAUNCH(self->fd, .cta_group = 1,
				      .window_base = 4096, .window_length = 0));
	EXPECT_EQ(-EOVERFLOW,
		  CTA_LAUNCH(self->fd, .cta_group = 1, .window_base = ~0ull,
			     .window_length = 2));
	EXPECT_EQ(-EOVERFLOW,
		  CTA_LAUNCH(self->fd, .cta_group = 1, .window_base = 2,
			     .window_length = ~0ull));
	/* the largest window */
	cta = CTA_LAUNCH(self->fd, .cta_group = 1, .window_base = 1,
			 .window_length = ~0ull);
	ASSERT_LE(0, cta);
	EXPECT_EQ(0, alloc(cta, &self->words[0]));
	close(cta);
}

TEST_F(tmem_cluster, p10_each_member_has_its_window)
{
	struct accmem_tmem_member *m = self->members;
	int i;

	for (i = 0; i < 2; i++) {
		m[i].window_base = (uintptr_t)&self->words[i];
		m[i].window_length = sizeof(self->words[i]);
	}
	ASSERT_EQ(0, launch_cluster(self->fd, m, 3, 1));
	EXPECT_EQ(-EFAULT, alloc(m[0].fd, &self->words[1]));
	EXPECT_EQ(-EFAULT, alloc(m[1].fd, &self->words[0]));
	EXPECT_EQ(0, alloc(m[0].fd, &self->words[0]));
	EXPECT_EQ(0, alloc(m[1].fd, &self->words[1]));
	EXPECT_EQ(0, alloc(m[2].fd, &self->words[2])); /* the third member has no window */
	exit_all(m, 3);
}

TEST_F(tmem_cluster, p10_each_members_window_is_checked)
{
	struct accmem_tmem_member *m = self->members;
	int fds = cta_next_fd(self->fd);

	m[3].window_base = 4096;
	EXPECT_EQ(-EINVAL, launch_cluster(self->fd, m, MEMBERS, 2));
	m[3].window_length = ~0ull;
	EXPECT_EQ(-EOVERFLOW, launch_cluster(self->fd, m, MEMBERS, 2));
	EXPECT_EQ(fds, cta_next_fd(self->fd));
	EXPECT_EQ(0, accmem_fdinfo(self->fd, "tmem-ctas"));
}

/* An alloc with a destination outside the window fails. The peer goes on waiting. */
TEST_F(tmem_cluster, p10_of_a_pair_the_other_waits_on)
{
	struct accmem_tmem_member *m = self->members;

	m[2].window_base = (uintptr_t)self->words;
	m[2].window_length = sizeof(self->words);
	ASSERT_EQ(0, launch_cluster(self->fd, m, MEMBERS, 2));
	ASSERT_EQ(0, CTA_ALLOC(m[0].fd, .columns = 32,
			       .flags = ACCMEM_CTA_QUEUED));
	EXPECT_EQ(-EFAULT, alloc(m[2].fd, &m[0].rank));
	EXPECT_TRUE(query(m[0].fd).state & ACCMEM_CTA_WAITING);
	EXPECT_EQ(0, alloc(m[2].fd, &self->words[7]));
	EXPECT_EQ(0, cta_result(m[0].fd));
	exit_all(m, MEMBERS);
}

ACCMEM_HARNESS_MAIN
