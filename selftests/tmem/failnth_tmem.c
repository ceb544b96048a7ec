// SPDX-License-Identifier: GPL-2.0
/*
 * Failed allocations for Tensor Memory. Each allocation of a setup, a launch or a map
 * page fails once, as in failnth.c. Calls on a CTA and its exit allocate nothing.
 */
#include "failnth_util.h"
#include "tmem_calls.h"

FAILNTH_FIXTURE(failnth_tmem)

static int setup_sms(const char *path, int fd)
{
	struct accmem_tmem_setup req = { .size = sizeof(req),
					 .nr_sms = ACCMEM_TMEM_SMS_MAX };
	int err;

	/* a context can be set up once */
	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &req);
	close(fd);
	return err;
}

static int launch_exit(const char *path, int fd)
{
	int cta = CTA_LAUNCH(fd, .cta_group = 1);

	(void)path;
	if (cta < 0)
		return cta;
	close(cta);
	return 0;
}

/* The first launch of a context sets up its SMs as well. */
static int first_launch(const char *path, int fd)
{
	int err;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	err = launch_exit(path, fd);
	close(fd);
	return err;
}

static unsigned int lost_fds;

/* launches two pairs */
static int launch_cluster(const char *path, int fd)
{
	struct accmem_tmem_setup setup = { .size = sizeof(setup), .nr_sms = 2 };
	struct accmem_tmem_member m[4] = { { .rank = 0, .sm = 0 },
					   { .rank = 1, .sm = 1 },
					   { .rank = 2, .sm = 0 },
					   { .rank = 3, .sm = 1 } };
	struct accmem_tmem_cluster req = { .size = sizeof(req),
					   .cta_group = 2,
					   .nr_members = 4,
					   .members = (uintptr_t)m };
	int err, next, i;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	next = cta_next_fd(fd);
	err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_SETUP, &setup);
	err = err ?: accmem_ioctl(fd, ACCMEM_IOC_TMEM_CLUSTER, &req);
	for (i = 0; i < 4 && !err; i++)
		close(m[i].fd);
	lost_fds += cta_next_fd(fd) != next;
	close(fd);
	return err;
}

TEST_F(failnth_tmem, tmem_setup_and_launch)
{
	NEED_INJECTION();
	SWEEP(setup_sms);
	SWEEP(first_launch);
	SWEEP(launch_exit);
	SWEEP(launch_cluster);
	EXPECT_EQ(0, lost_fds);
}

/* The first mapping of an SM's map page allocates the page. */
static int map_sm(const char *path, int fd)
{
	int cta, err = 0;
	void *p;

	fd = accmem_dev_open(path, O_RDWR);
	if (fd < 0)
		return fd;
	cta = CTA_LAUNCH(fd, .cta_group = 1);
	if (cta < 0) {
		close(fd);
		return cta;
	}
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, cta, 0);
	if (p == MAP_FAILED)
		err = -errno;
	else
		munmap(p, 4096);
	close(cta);
	close(fd);
	return err;
}

/* A queued alloc that waits, one that is granted at once, and an eventfd for both. */
static int queue_both(const char *path, int fd)
{
	struct accmem_cta_eventfd e = { .size = sizeof(e) };
	struct accmem_cta_cancel cancel = { .size = sizeof(cancel) };
	struct accmem_cta_completion done;
	int cta[2], i, err = 0;

	(void)path;
	e.fd = eventfd(0, EFD_NONBLOCK);
	if (e.fd < 0)
		return -errno;
	for (i = 0; i < 2 && !err; i++) {
		cta[i] = CTA_LAUNCH(fd, .cta_group = 1);
		if (cta[i] < 0) {
			err = cta[i];
			break;
		}
		err = accmem_ioctl(cta[i], ACCMEM_IOC_CTA_EVENTFD, &e);
		err = err   ?:
			      CTA_ALLOC(cta[i], .columns = 512,
					.flags = ACCMEM_CTA_QUEUED,
					.deadline_ns = i ? ~0ull : 0);
	}
	if (!err)
		err = accmem_ioctl(cta[1], ACCMEM_IOC_CTA_CANCEL, &cancel);
	if (!err && read(cta[0], &done, sizeof(done)) != sizeof(done))
		err = -errno;
	if (!err && (done.result || done.address))
		err = -1000;
	while (i--)
		close(cta[i]);
	close(e.fd);
	return err;
}

TEST_F(failnth_tmem, tmem_map_and_queue)
{
	NEED_INJECTION();
	SWEEP(map_sm);
	SWEEP(queue_both);
}

/* Calls on a CTA allocate nothing, also when they wait or are refused. */
TEST_F(failnth_tmem, tmem_calls_allocate_nothing)
{
	struct accmem_cta_relinquish relinquish = { .size = 8 };
	struct accmem_cta_completion done;
	struct accmem_cta_query query;
	struct rounds r = {};
	uint32_t at = 1;
	int a, b;

	NEED_INJECTION();
	while (next_round(&r)) {
		a = CTA_LAUNCH(self->fd, .cta_group = 1);
		b = CTA_LAUNCH(self->fd, .cta_group = 1);
		ASSERT_LE(0, a);
		ASSERT_LE(0, b);
		arm_round(&r);
		EXPECT_EQ(0, CTA_ALLOC(a, .columns = 512,
				       .destination = (uintptr_t)&at));
		EXPECT_EQ(-EDOM, CTA_ALLOC(b, .columns = 1,
					   .destination = (uintptr_t)&at));
		EXPECT_EQ(-ETIMEDOUT,
			  CTA_ALLOC(b, .columns = 64,
				    .deadline_ns = accmem_ms() * 1000000ull + 1,
				    .destination = (uintptr_t)&at));
		EXPECT_EQ(-ETIMEDOUT,
			  CTA_ALLOC(b, .columns = 64,
				    .deadline_ns =
					    (accmem_ms() + 20) * 1000000ull,
				    .destination = (uintptr_t)&at));
		EXPECT_EQ(-ENXIO,
			  CTA_DEALLOC(b, .columns = 64, .address = 512));
		EXPECT_EQ(0, CTA_ALLOC(b, .columns = 32,
				       .flags = ACCMEM_CTA_QUEUED,
				       .deadline_ns = ~0ull));
		EXPECT_EQ(0, CTA_DEALLOC(a, .columns = 512, .address = 0));
		EXPECT_EQ((ssize_t)sizeof(done), read(b, &done, sizeof(done)));
		EXPECT_EQ(0, done.result);
		EXPECT_EQ(0, accmem_ioctl(a, ACCMEM_IOC_CTA_RELINQUISH,
					  &relinquish));
		query = (struct accmem_cta_query){ .size = sizeof(query) };
		EXPECT_EQ(0, accmem_ioctl(a, ACCMEM_IOC_CTA_QUERY, &query));
		EXPECT_TRUE(disarm_round(&r));
		close(a);
		close(b);
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

/*
 * An exit allocates nothing, also with columns, which are reported. The kernel's own
 * code for closing a file may allocate.
 */
TEST_F(failnth_tmem, tmem_exit_allocates_nothing)
{
	struct rounds r = {};
	uint32_t at = 1;
	int cta;

	NEED_INJECTION();
	ASSERT_EQ(0, only_module(true));
	while (next_round(&r)) {
		cta = CTA_LAUNCH(self->fd, .cta_group = 1);
		ASSERT_LE(0, cta);
		ASSERT_EQ(0, CTA_ALLOC(cta, .columns = 512,
				       .destination = (uintptr_t)&at));
		arm_round(&r);
		EXPECT_EQ(0, close(cta));
		EXPECT_TRUE(disarm_round(&r));
	}
	EXPECT_EQ(BOTH_WAYS, r.clean);
}

ACCMEM_HARNESS_MAIN
