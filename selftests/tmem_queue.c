// SPDX-License-Identifier: GPL-2.0
/*
 * Queued calls: they wait in the same queue as blocked ones, without a caller, and
 * each leaves one completion, to be read, polled for and counted in an eventfd.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "tmem_util.h"

#define FAR_MS 60000
#define NEAR_MS 300 /* a call is queued before it, on a busy machine too */

FIXTURE(tmem_queue)
{
	struct accmem_context *ctx;
	struct tcgen05_cta *a, *b, *c; /* on SM 0 */
	struct tcgen05_cta *p, *q; /* a pair on SMs 1 and 2 */
	uint32_t at;
};

/* a holds all of SM 0; strict order of arrival; nobody sleeps in a read */
FIXTURE_SETUP(tmem_queue)
{
	struct tcgen05_cta **cta[] = { &self->a, &self->b, &self->c, &self->p,
				       &self->q };
	unsigned int i;

	self->ctx = tmem_open(3, 0, 0, 0);
	ASSERT_NE(NULL, self->ctx);
	self->a = tmem_single(self->ctx, 0);
	self->b = tmem_single(self->ctx, 0);
	self->c = tmem_single(self->ctx, 0);
	self->p = tmem_peer(self->ctx, 1, 0);
	self->q = tmem_peer(self->ctx, 2, 1);
	for (i = 0; i < 5; i++) {
		ASSERT_NE(NULL, *cta[i]);
		ASSERT_EQ(0, fcntl(tcgen05_fd(*cta[i]), F_SETFL, O_NONBLOCK));
	}
	ASSERT_EQ(0, tcgen05_alloc(self->a, &self->at, 512));
}

FIXTURE_TEARDOWN(tmem_queue)
{
	tcgen05_exit(self->a);
	tcgen05_exit(self->b);
	tcgen05_exit(self->c);
	tcgen05_exit(self->p);
	tcgen05_exit(self->q);
	accmem_close(self->ctx);
}

static int queue_alloc_until(struct tcgen05_cta *cta, uint32_t columns,
			     uint64_t user_data, uint64_t deadline_ns)
{
	struct accmem_cta_alloc req = { .size = sizeof(req),
					.flags = ACCMEM_CTA_QUEUED,
					.columns = columns,
					.deadline_ns = deadline_ns,
					.user_data = user_data };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_ALLOC, &req);
}

static int queue_alloc(struct tcgen05_cta *cta, uint32_t columns,
		       uint64_t user_data)
{
	return queue_alloc_until(cta, columns, user_data, 0);
}

static int queue_dealloc(struct tcgen05_cta *cta, uint32_t address,
			 uint32_t columns, uint64_t user_data)
{
	struct accmem_cta_dealloc req = { .size = sizeof(req),
					  .flags = ACCMEM_CTA_QUEUED,
					  .address = address,
					  .columns = columns,
					  .user_data = user_data };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_DEALLOC, &req);
}

static int cancel(struct tcgen05_cta *cta)
{
	struct accmem_cta_cancel req = { .size = sizeof(req) };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_CANCEL, &req);
}

static int set_eventfd(struct tcgen05_cta *cta, int fd)
{
	struct accmem_cta_eventfd req = { .size = sizeof(req), .fd = fd };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_EVENTFD, &req);
}

/* 0 with the completion, or -errno of the read */
static int take(struct tcgen05_cta *cta, struct accmem_cta_completion *done)
{
	ssize_t n = read(tcgen05_fd(cta), done, sizeof(*done));

	if (n < 0)
		return -errno;
	return n == sizeof(*done) ? 0 : -1000;
}

/* waits for the completion and takes it; its result */
static int finish(struct tcgen05_cta *cta)
{
	struct pollfd p = { .fd = tcgen05_fd(cta), .events = POLLIN };
	struct accmem_cta_completion done;
	int ret;

	if (poll(&p, 1, TMEM_PATIENCE_MS) != 1)
		return -1001;
	ret = take(cta, &done);
	return ret ?: done.result;
}

static short events(struct tcgen05_cta *cta)
{
	struct pollfd p = { .fd = tcgen05_fd(cta),
			    .events = POLLIN | POLLOUT };

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static void exits(struct tcgen05_cta **cta)
{
	tcgen05_exit(*cta);
	*cta = NULL;
}

/* --- a completion --------------------------------------------------------- */

TEST_F(tmem_queue, says_what_became_of_the_call)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 1ull << 63));
	ASSERT_EQ(0, take(self->a, &done));
	EXPECT_EQ(1ull << 63, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(_IOC_NR(ACCMEM_IOC_CTA_DEALLOC), done.call);
	EXPECT_EQ(self->at, done.address);
	EXPECT_EQ(512, done.columns);
	ASSERT_EQ(0, tcgen05_alloc(self->b, &self->at, 64));
	ASSERT_EQ(0, queue_alloc(self->c, 32, 7));
	ASSERT_EQ(0, take(self->c, &done));
	EXPECT_EQ(7, done.user_data);
	EXPECT_EQ(0, done.result);
	EXPECT_EQ(_IOC_NR(ACCMEM_IOC_CTA_ALLOC), done.call);
	EXPECT_EQ(64, done.address);
	EXPECT_EQ(32, done.columns);
	EXPECT_EQ(0, tcgen05_dealloc(self->c, done.address, done.columns));
}

TEST_F(tmem_queue, is_read_once)
{
	struct accmem_cta_completion done;

	EXPECT_EQ(-ENODATA, take(self->b, &done));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EAGAIN, take(self->b, &done));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, take(self->b, &done));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
}

TEST_F(tmem_queue, stays_where_it_cannot_be_read)
{
	struct accmem_cta_completion done;
	int fd = tcgen05_fd(self->b);
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, mprotect(p + 4096, 4096, PROT_READ));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 5));
	EXPECT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(-1, read(fd, &done, sizeof(done) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(fd, &done, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(fd, p + 4096, sizeof(done)));
	EXPECT_EQ(EFAULT, errno);
	/* the last byte */
	EXPECT_EQ(-1, read(fd, p + 4096 - sizeof(done) + 1, sizeof(done)));
	EXPECT_EQ(EFAULT, errno);
	/* a page that has not been touched is no error, nor is a larger buffer */
	EXPECT_EQ(0, madvise(p, 4096, MADV_DONTNEED));
	EXPECT_EQ((ssize_t)sizeof(done), read(fd, p, 8192));
	EXPECT_EQ(5, ((struct accmem_cta_completion *)p)->user_data);
	munmap(p, 8192);
}

static void *read_one(void *argument)
{
	struct tmem_call *call = argument;
	struct accmem_cta_completion done = {};

	__atomic_store_n(&call->tid, gettid(), __ATOMIC_RELEASE);
	call->ret = take(call->cta, &done);
	call->columns = done.columns;
	return NULL;
}

TEST_F(tmem_queue, a_read_waits_for_it)
{
	struct tmem_call reader = { .cta = self->b };

	ASSERT_EQ(0, fcntl(tcgen05_fd(self->b), F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&reader));
	EXPECT_EQ(64, reader.columns);
}

static void ignore(int sig)
{
	(void)sig;
}

TEST_F(tmem_queue, a_signal_ends_the_read_and_not_the_call)
{
	struct sigaction action = { .sa_handler = ignore };
	struct tmem_call reader = { .cta = self->b };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, fcntl(tcgen05_fd(self->b), F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	pthread_kill(reader.thread, SIGUSR1);
	EXPECT_EQ(-EINTR, tmem_finish(&reader));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
}

/* it would keep the CTA from its exit; another descriptor keeps the read */
TEST_F(tmem_queue, closing_the_cta_ends_the_read)
{
	struct tmem_call reader = { .cta = self->b, .ret = 1 };
	int fd = dup(tcgen05_fd(self->b));

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, fcntl(fd, F_SETFL, 0));
	ASSERT_EQ(0, queue_alloc(self->b, 64, 0));
	ASSERT_EQ(0, pthread_create(&reader.thread, NULL, read_one, &reader));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	ASSERT_EQ(0, close(fd));
	ASSERT_TRUE(tmem_until_thread_sleeps(&reader.tid));
	EXPECT_EQ(1, reader.ret);
	EXPECT_EQ(ACCMEM_CTA_WAITING, tmem_state(self->b));
	tcgen05_exit(self->b);
	self->b = NULL;
	EXPECT_TRUE(tmem_ends(&reader));
	/* who reads on is let go */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(-ECANCELED, tmem_finish(&reader));
}

TEST_F(tmem_queue, is_polled_for)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(0, events(self->b));
	EXPECT_EQ(ACCMEM_CTA_WAITING, tmem_state(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(POLLIN, events(self->b));
	EXPECT_EQ(ACCMEM_CTA_COMPLETION, tmem_state(self->b));
	ASSERT_EQ(0, take(self->b, &done));
	EXPECT_EQ(0, tmem_state(self->b));
}

/* edges and levels, of many in one thread */
TEST_F(tmem_queue, epoll_says_of_which_cta)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.u32 = 1 };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->c, 512, 0));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	e.data.u32 = 2;
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->c), &e));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(1, e.data.u32);
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, 0, 512));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, TMEM_PATIENCE_MS));
	EXPECT_EQ(2, e.data.u32);
	EXPECT_EQ(0, finish(self->c));
	close(epoll);
}

/* what is no end of a queued call is still told of, before one and after it */
TEST_F(tmem_queue, epoll_says_of_what_comes_after_a_completion)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);
	uint32_t at;

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	/* others' calls are no event of it */
	EXPECT_EQ(-EAGAIN, tcgen05_try_alloc(self->c, &at, 32));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, cancel(self->b));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(-ECANCELED, finish(self->b));
	/* an alloc that would be granted now */
	ASSERT_EQ(-EAGAIN, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLIN, e.events);
	close(epoll);
}

/* who waits for hang-ups only is told of one, whatever there is to read */
TEST_F(tmem_queue, epoll_says_of_hang_ups_alone)
{
	struct epoll_event e = { .events = 0 };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->p), &e));
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->b), &e));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	ASSERT_EQ(0, cancel(self->p));
	EXPECT_EQ(0, epoll_wait(epoll, &e, 1, 0));
	exits(&self->q);
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLHUP, e.events);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_DEL, tcgen05_fd(self->p), &e));
	accmem_close(self->ctx);
	self->ctx = NULL;
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLERR | EPOLLHUP, e.events);
	close(epoll);
}

TEST_F(tmem_queue, epoll_says_that_the_peer_has_gone_while_a_completion_is_unread)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };
	int epoll = epoll_create1(0);

	ASSERT_LE(0, epoll);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, tcgen05_fd(self->p), &e));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	ASSERT_EQ(0, cancel(self->p));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_EQ(EPOLLIN, e.events);
	exits(&self->q);
	ASSERT_EQ(-ECANCELED, finish(self->p));
	ASSERT_EQ(1, epoll_wait(epoll, &e, 1, 0));
	EXPECT_TRUE(e.events & EPOLLHUP);
	close(epoll);
}

/* --- eventfd -------------------------------------------------------------- */

static int64_t count_of(int eventfd)
{
	eventfd_t value;

	return eventfd_read(eventfd, &value) ? -errno : (int64_t)value;
}

TEST_F(tmem_queue, an_eventfd_counts_those_of_many)
{
	int fd = eventfd(0, EFD_NONBLOCK), other = eventfd(0, EFD_NONBLOCK);

	ASSERT_EQ(0, set_eventfd(self->a, fd));
	ASSERT_EQ(0, set_eventfd(self->b, fd));
	ASSERT_EQ(0, set_eventfd(self->c, fd));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	ASSERT_EQ(0, queue_alloc(self->c, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	/* one that has not to wait counts, too */
	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 0));
	EXPECT_EQ(3, count_of(fd));
	/* what is refused at once has no completion */
	EXPECT_EQ(-EBUSY, queue_alloc(self->a, 32, 0));
	EXPECT_EQ(0, finish(self->a));
	EXPECT_EQ(-EDOM, queue_alloc(self->a, 33, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	/* another in its place, and none */
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, set_eventfd(self->b, other));
	ASSERT_EQ(0, queue_dealloc(self->b, 0, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(fd));
	EXPECT_EQ(1, count_of(other));
	EXPECT_EQ(0, finish(self->b));
	ASSERT_EQ(0, set_eventfd(self->b, -1));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	EXPECT_EQ(-EAGAIN, count_of(other));
	/* it is kept, whoever closes it */
	close(other);
	close(fd);
	EXPECT_EQ(0, finish(self->c));
	ASSERT_EQ(0, queue_dealloc(self->c, 256, 256, 0));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue, an_eventfd_is_an_eventfd)
{
	int fd = eventfd(0, EFD_NONBLOCK), null = open("/dev/null", O_RDWR);

	ASSERT_EQ(0, set_eventfd(self->b, fd));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, 1 << 20));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, -2));
	EXPECT_EQ(-EBADF, set_eventfd(self->b, -2147483647 - 1));
	EXPECT_EQ(-EINVAL, set_eventfd(self->b, null));
	EXPECT_EQ(-EINVAL, set_eventfd(self->b, tcgen05_fd(self->b)));
	/* the one before counts still */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(1, count_of(fd));
	close(null);
	close(fd);
}

/* a counter that is full is no reason to wait, or to lose a completion */
TEST_F(tmem_queue, an_eventfd_that_is_full)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	ASSERT_EQ(0, eventfd_write(fd, 0xfffffffffffffffeull));
	ASSERT_EQ(0, set_eventfd(self->a, fd));
	ASSERT_EQ(0, queue_dealloc(self->a, self->at, 512, 0));
	EXPECT_EQ(0, finish(self->a));
	close(fd);
}

/* --- order ---------------------------------------------------------------- */

TEST_F(tmem_queue, p2_queued_and_blocked_ones_are_served_as_they_came)
{
	struct tcgen05_cta *d = tmem_single(self->ctx, 0);
	struct tmem_call blocked;

	ASSERT_NE(NULL, d);
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_TRUE(tmem_start_alloc(&blocked, self->c, 512));
	ASSERT_EQ(0, queue_alloc(d, 32, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(POLLIN, events(self->b));
	EXPECT_EQ(1, blocked.ret);
	EXPECT_EQ(0, events(d));
	ASSERT_EQ(0, finish(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->b, 0, 512));
	EXPECT_EQ(0, tmem_finish(&blocked));
	EXPECT_EQ(0, events(d));
	ASSERT_EQ(0, tcgen05_dealloc(self->c, 0, 512));
	EXPECT_EQ(0, finish(d));
	tcgen05_exit(d);
}

TEST_F(tmem_queue, p2_many_in_one_thread)
{
	enum { N = 100 };
	struct tcgen05_cta *cta[N];
	struct accmem_cta_completion done;
	int fd = eventfd(0, EFD_NONBLOCK), i;

	for (i = 0; i < N; i++) {
		cta[i] = tmem_single(self->ctx, 0);
		ASSERT_NE(NULL, cta[i]);
		ASSERT_EQ(0, set_eventfd(cta[i], fd));
		ASSERT_EQ(0, queue_alloc(cta[i], 512, i));
	}
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	for (i = 0; i < N; i++) {
		ASSERT_EQ(1, count_of(fd));
		ASSERT_EQ(0, take(cta[i], &done));
		ASSERT_EQ(i, done.user_data);
		ASSERT_EQ(0, done.result);
		ASSERT_EQ(0, tcgen05_dealloc(cta[i], done.address, 512));
		tcgen05_exit(cta[i]);
	}
	EXPECT_EQ(-EAGAIN, count_of(fd));
	close(fd);
}

TEST_F(tmem_queue, p11_one_call_of_a_cta_at_a_time)
{
	uint32_t at;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_try_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_dealloc(self->b, 0, 32));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	/* nor while its completion is to be read */
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-EBUSY, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-EBUSY, tcgen05_alloc(self->b, &at, 32));
	EXPECT_EQ(-EBUSY, tcgen05_dealloc(self->b, 0, 32));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(0, finish(self->b));
}

TEST_F(tmem_queue, p11_a_blocked_call_refuses_a_queued_one)
{
	struct tmem_call blocked;

	ASSERT_TRUE(tmem_start_alloc(&blocked, self->b, 32));
	EXPECT_EQ(-EBUSY, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&blocked));
}

TEST_F(tmem_queue, rules_that_are_broken_at_once_leave_no_completion)
{
	struct accmem_cta_completion done;

	EXPECT_EQ(-EDOM, queue_alloc(self->b, 48, 0));
	EXPECT_EQ(-ENOSPC, queue_alloc(self->a, 512, 0));
	EXPECT_EQ(-ENOENT, queue_dealloc(self->p, 0, 32, 0));
	EXPECT_EQ(-EACCES, queue_dealloc(self->b, 0, 32, 0));
	EXPECT_EQ(-ETIMEDOUT, queue_alloc_until(self->b, 32, 0, 1));
	ASSERT_EQ(0, tcgen05_relinquish_alloc_permit(self->c));
	EXPECT_EQ(-EPERM, queue_alloc(self->c, 32, 0));
	EXPECT_EQ(-ENODATA, take(self->a, &done));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
	EXPECT_EQ(-ENODATA, take(self->c, &done));
}

/* the newest of those that hold columns and wait */
TEST_F(tmem_queue, p2_a_deadlock_is_told_in_the_completion)
{
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, tcgen05_alloc(self->b, &self->at, 256));
	ASSERT_EQ(0, tcgen05_alloc(self->c, &self->at, 256));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	/* the call that makes it is told at once */
	EXPECT_EQ(-EDEADLK, queue_alloc(self->c, 256, 0));
	EXPECT_EQ(0, events(self->b));
	exits(&self->c);
	EXPECT_EQ(0, finish(self->b));
}

/* --- what ends a queued call ---------------------------------------------- */

TEST_F(tmem_queue, cancel_ends_it)
{
	struct tmem_call next;

	EXPECT_EQ(-ENOENT, cancel(self->b));
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_TRUE(tmem_start_alloc(&next, self->c, 32));
	EXPECT_EQ(0, cancel(self->b));
	EXPECT_EQ(POLLIN, events(self->b));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	EXPECT_EQ(-ECANCELED, finish(self->b));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	/* its place is gone */
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, tmem_finish(&next));
	EXPECT_EQ(480, tmem_free_columns(self->b));
	ASSERT_EQ(0, queue_alloc(self->b, 256, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
	EXPECT_EQ(0, finish(self->b));
}

/* who was held up by the bound of the one that is cancelled */
TEST_F(tmem_queue, cancel_lets_those_behind_it_go_on)
{
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	ASSERT_EQ(0, tcgen05_alloc(self->a, &self->at, 256));
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->c, 32, 0));
	EXPECT_EQ(0, events(self->c));
	ASSERT_EQ(0, cancel(self->b));
	EXPECT_EQ(0, finish(self->c));
	EXPECT_EQ(-ECANCELED, finish(self->b));
}

TEST_F(tmem_queue, the_deadline_ends_it)
{
	uint64_t deadline = tmem_in_ms(NEAR_MS);

	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 9, deadline));
	EXPECT_EQ(-ETIMEDOUT, finish(self->b));
	EXPECT_LE(deadline, tmem_now());
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(512, tmem_free_columns(self->b));
	EXPECT_EQ(1, tmem_fdinfo(tcgen05_fd(self->b), "tmem-timeouts"));
}

TEST_F(tmem_queue, a_deadline_is_that_of_its_own_call)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 0, tmem_in_ms(NEAR_MS)));
	ASSERT_EQ(0, cancel(self->b));
	EXPECT_EQ(-ECANCELED, finish(self->b));
	/* none, and one that is later */
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(NEAR_MS)));
	ASSERT_EQ(0, cancel(self->c));
	EXPECT_EQ(-ECANCELED, finish(self->c));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(FAR_MS)));
	usleep(2 * NEAR_MS * 1000);
	EXPECT_EQ(-EAGAIN, take(self->b, &done));
	EXPECT_EQ(-EAGAIN, take(self->c, &done));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue, a_deadline_as_far_as_can_be_said_is_none)
{
	ASSERT_EQ(0, queue_alloc_until(self->b, 32, 0, ~0ull));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, 1ull << 63));
	usleep(30000);
	EXPECT_EQ(0, events(self->b));
	EXPECT_EQ(0, events(self->c));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(0, finish(self->c));
}

TEST_F(tmem_queue, p9_relinquish_ends_it)
{
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(0, tcgen05_relinquish_alloc_permit(self->b));
	EXPECT_EQ(-ECANCELED, finish(self->b));
	EXPECT_EQ(-EPERM, queue_alloc(self->b, 32, 0));
}

TEST_F(tmem_queue, the_end_of_the_context_ends_it)
{
	struct accmem_cta_completion done;

	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	accmem_close(self->ctx);
	self->ctx = NULL;
	EXPECT_EQ(POLLIN | POLLERR | POLLHUP, events(self->b));
	EXPECT_EQ(-ECONNRESET, finish(self->b));
	EXPECT_EQ(-ECONNRESET, finish(self->p));
	EXPECT_EQ(-ENODATA, take(self->b, &done));
	EXPECT_EQ(-ECONNRESET, queue_alloc(self->b, 32, 0));
	EXPECT_EQ(-ECONNRESET, queue_dealloc(self->a, 0, 512, 0));
	EXPECT_EQ(-ENOENT, cancel(self->b));
}

/* what was granted before that, and not read, can be read; the columns are gone */
TEST_F(tmem_queue, the_end_of_the_context_leaves_completions)
{
	ASSERT_EQ(0, queue_alloc(self->b, 32, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	accmem_close(self->ctx);
	self->ctx = NULL;
	EXPECT_EQ(0, finish(self->b));
	EXPECT_EQ(-ECONNRESET, queue_dealloc(self->b, 0, 32, 0));
}

TEST_F(tmem_queue, p5_the_exit_of_a_cta_takes_its_call_along)
{
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	ASSERT_EQ(0, queue_alloc_until(self->c, 32, 0, tmem_in_ms(FAR_MS)));
	exits(&self->b);
	EXPECT_EQ(0, events(self->c));
	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	EXPECT_EQ(0, finish(self->c));
	/* with a completion that nobody has read, and columns */
	ASSERT_EQ(0, queue_dealloc(self->c, 0, 32, 0));
	exits(&self->c);
	EXPECT_EQ(512, tmem_free_columns(self->a));
	ASSERT_EQ(0, queue_alloc(self->a, 512, 0));
	exits(&self->a);
}

TEST_F(tmem_queue, p5_an_exit_grants_to_queued_calls)
{
	ASSERT_EQ(0, queue_alloc(self->b, 512, 0));
	exits(&self->a);
	EXPECT_EQ(0, finish(self->b));
}

/* --- pairs ---------------------------------------------------------------- */

TEST_F(tmem_queue, p12_both_of_a_pair_from_one_thread)
{
	struct accmem_cta_completion p, q;

	ASSERT_EQ(0, queue_alloc(self->p, 128, 1));
	EXPECT_EQ(-EAGAIN, take(self->p, &p));
	ASSERT_EQ(0, queue_alloc(self->q, 128, 2));
	ASSERT_EQ(0, take(self->p, &p));
	ASSERT_EQ(0, take(self->q, &q));
	EXPECT_EQ(1, p.user_data);
	EXPECT_EQ(2, q.user_data);
	EXPECT_EQ(0, p.result);
	EXPECT_EQ(0, q.result);
	EXPECT_EQ(p.address, q.address);
	ASSERT_EQ(0, queue_dealloc(self->q, q.address, 128, 0));
	EXPECT_EQ(0, events(self->q));
	ASSERT_EQ(0, queue_dealloc(self->p, p.address, 128, 0));
	EXPECT_EQ(0, finish(self->q));
	EXPECT_EQ(0, finish(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->q));
}

TEST_F(tmem_queue, p12_a_queued_one_with_a_blocking_one)
{
	struct accmem_cta_completion done;
	struct tmem_call blocked;
	uint32_t at;

	/* the queued one first */
	ASSERT_EQ(0, queue_alloc(self->p, 64, 0));
	ASSERT_EQ(0, tcgen05_alloc(self->q, &at, 64));
	ASSERT_EQ(0, take(self->p, &done));
	EXPECT_EQ(at, done.address);
	ASSERT_EQ(0, queue_dealloc(self->p, at, 64, 0));
	ASSERT_EQ(0, tcgen05_dealloc(self->q, at, 64));
	EXPECT_EQ(0, finish(self->p));
	/* the blocking one first */
	ASSERT_TRUE(tmem_start_alloc(&blocked, self->p, 64));
	ASSERT_EQ(0, queue_alloc(self->q, 64, 0));
	ASSERT_EQ(0, tmem_finish(&blocked));
	ASSERT_EQ(0, finish(self->q));
	ASSERT_TRUE(tmem_start(&blocked, self->p, TMEM_DEALLOC,
			       blocked.address, 64));
	ASSERT_EQ(0, queue_dealloc(self->q, blocked.address, 64, 0));
	EXPECT_EQ(0, tmem_finish(&blocked));
	EXPECT_EQ(0, finish(self->q));
}

TEST_F(tmem_queue, p12_a_pair_waits_in_the_queue)
{
	struct tcgen05_cta *w = tmem_single(self->ctx, 2);
	uint32_t at;

	ASSERT_NE(NULL, w);
	ASSERT_EQ(0, tcgen05_alloc(w, &at, 256));
	ASSERT_EQ(0, queue_alloc(self->p, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	EXPECT_EQ(0, events(self->p));
	EXPECT_EQ(0, events(self->q));
	ASSERT_EQ(0, tcgen05_dealloc(w, at, 256));
	EXPECT_EQ(0, finish(self->p));
	EXPECT_EQ(0, finish(self->q));
	tcgen05_exit(w);
}

TEST_F(tmem_queue, p12_the_exit_of_the_peer_ends_it)
{
	ASSERT_EQ(0, queue_alloc(self->p, 32, 0));
	exits(&self->q);
	EXPECT_EQ(POLLIN | POLLHUP, events(self->p));
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(-EPIPE, queue_alloc(self->p, 32, 0));
}

/* the peer's exit takes its own queued call along */
TEST_F(tmem_queue, p12_the_exit_of_a_peer_that_has_joined)
{
	struct tcgen05_cta *w = tmem_single(self->ctx, 2);
	uint32_t at;

	ASSERT_NE(NULL, w);
	ASSERT_EQ(0, tcgen05_alloc(w, &at, 512));
	ASSERT_EQ(0, queue_alloc(self->p, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	exits(&self->q);
	EXPECT_EQ(-EPIPE, finish(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->p));
	tcgen05_exit(w);
}

TEST_F(tmem_queue, p12_the_peers_operands_differ)
{
	ASSERT_EQ(0, queue_alloc(self->p, 64, 0));
	EXPECT_EQ(-EBADR, queue_alloc(self->q, 32, 0));
	EXPECT_EQ(-EBADR, finish(self->p));
	/* other calls */
	ASSERT_EQ(0, queue_alloc(self->p, 64, 0));
	EXPECT_EQ(-EPROTO, tcgen05_relinquish_alloc_permit(self->q));
	EXPECT_EQ(-EPROTO, finish(self->p));
}

/* a peer that had joined a cancelled call waits for the next one */
TEST_F(tmem_queue, p12_cancel_leaves_the_peer_waiting)
{
	struct tcgen05_cta *w = tmem_single(self->ctx, 2);
	uint32_t at;

	ASSERT_NE(NULL, w);
	ASSERT_EQ(0, tcgen05_alloc(w, &at, 512));
	ASSERT_EQ(0, queue_alloc(self->p, 512, 0));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	ASSERT_EQ(0, cancel(self->q));
	EXPECT_EQ(-ECANCELED, finish(self->q));
	ASSERT_EQ(0, tcgen05_dealloc(w, at, 512));
	EXPECT_EQ(0, events(self->p));
	ASSERT_EQ(0, queue_alloc(self->q, 512, 0));
	EXPECT_EQ(0, finish(self->p));
	EXPECT_EQ(0, finish(self->q));
	tcgen05_exit(w);
}

TEST_F(tmem_queue, p12_a_peer_that_does_not_come_in_time)
{
	ASSERT_EQ(0, queue_alloc_until(self->p, 32, 0, tmem_in_ms(NEAR_MS)));
	EXPECT_EQ(-ETIMEDOUT, finish(self->p));
}

struct store {
	pthread_t thread;
	pid_t tid;
	struct tcgen05_cta *cta;
	uint32_t *destination;
	int ret;
};

static void *alloc_there(void *argument)
{
	struct store *s = argument;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELEASE);
	s->ret = tcgen05_alloc(s->cta, s->destination, 64);
	return NULL;
}

/* an address that the peer cannot store: neither has columns */
TEST_F(tmem_queue, p10_a_destination_of_the_peer_that_goes_away)
{
	struct tcgen05_cta *w = tmem_single(self->ctx, 2);
	struct store s = { .cta = self->p };
	uint32_t at;

	s.destination = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, s.destination);
	ASSERT_EQ(0, tcgen05_alloc(w, &at, 512));
	ASSERT_EQ(0, pthread_create(&s.thread, NULL, alloc_there, &s));
	ASSERT_TRUE(tmem_until_waiting(self->p));
	ASSERT_TRUE(tmem_until_thread_sleeps(&s.tid));
	ASSERT_EQ(0, queue_alloc(self->q, 64, 0));
	ASSERT_EQ(0, mprotect(s.destination, 4096, PROT_READ));
	ASSERT_EQ(0, tcgen05_dealloc(w, at, 512));
	EXPECT_EQ(-EFAULT, finish(self->q));
	pthread_join(s.thread, NULL);
	EXPECT_EQ(-EFAULT, s.ret);
	EXPECT_EQ(512, tmem_free_columns(self->p));
	EXPECT_EQ(512, tmem_free_columns(self->q));
	tcgen05_exit(w);
	munmap(s.destination, 4096);
}

/* --- all at once ---------------------------------------------------------- */

struct churner {
	pthread_t thread;
	struct tcgen05_cta *cta;
	uint64_t seed;
	unsigned int rounds;
	int ret;
};

/* queues, cancels, gives deadlines, and takes whatever comes of it */
static void *churn(void *argument)
{
	static const uint32_t columns = 128;
	struct churner *c = argument;
	struct accmem_cta_completion done;
	struct pollfd p = { .fd = tcgen05_fd(c->cta), .events = POLLIN };
	unsigned int i, how;

	for (i = 0; i < c->rounds && !c->ret; i++) {
		how = accmem_random(&c->seed) % 4;
		c->ret = queue_alloc_until(c->cta, columns, i,
					   how == 1 ? tmem_now() + 200000 : 0);
		if (c->ret == -ETIMEDOUT) {
			c->ret = 0;
			continue;
		}
		if (how == 2)
			cancel(c->cta);
		if (poll(&p, 1, TMEM_PATIENCE_MS) != 1 ||
		    take(c->cta, &done) || done.user_data != i)
			c->ret = -1;
		else if (!done.result)
			c->ret = tcgen05_dealloc(c->cta, done.address, columns);
		else if (done.result !=
			 (how == 1 ? -ETIMEDOUT : how == 2 ? -ECANCELED : 0))
			c->ret = done.result;
	}
	return NULL;
}

TEST_F(tmem_queue, a_storm_leaves_nothing)
{
	enum { THREADS = 6 };
	struct churner c[THREADS];
	uint64_t seed = accmem_seed();
	int i;

	ASSERT_EQ(0, tcgen05_dealloc(self->a, self->at, 512));
	for (i = 0; i < THREADS; i++) {
		c[i] = (struct churner){ .cta = tmem_single(self->ctx, 0),
					 .seed = seed + i,
					 .rounds = accmem_scale(200) };
		fcntl(tcgen05_fd(c[i].cta), F_SETFL, O_NONBLOCK);
		ASSERT_EQ(0, pthread_create(&c[i].thread, NULL, churn, &c[i]));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(c[i].thread, NULL);
		EXPECT_EQ(0, c[i].ret);
		EXPECT_EQ(0, tmem_state(c[i].cta));
		tcgen05_exit(c[i].cta);
	}
	EXPECT_EQ(512, tmem_free_columns(self->a));
	EXPECT_EQ(0, tmem_fdinfo(accmem_fd(self->ctx), "tmem-waiting"));
}

ACCMEM_HARNESS_MAIN
