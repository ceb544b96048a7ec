// SPDX-License-Identifier: GPL-2.0
/*
 * SHRINK. Contexts that could free memory are notified when other contexts wait for
 * it, once for each shortage.
 */
#include "wait_util.h"

WAIT_FIXTURE(wait_shrink)

static int shrink_call(int fd, uint32_t flags, int eventfd,
		       struct accmem_pressure *req)
{
	memset(req, 0, sizeof(*req));
	req->size = sizeof(*req);
	req->flags = flags;
	req->fd = eventfd;
	return accmem_ioctl(fd, ACCMEM_IOC_PRESSURE, req);
}

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static bool wait_until_readable(int fd)
{
	uint64_t until = accmem_ms() + PATIENCE_MS;

	while (!is_readable(fd)) {
		if (accmem_ms() > until)
			return false;
		usleep(100);
	}
	return true;
}

TEST_F(wait_shrink, who_can_shrink_is_told_before_others_sleep)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	struct waiter w = {}, more = {};
	struct accmem_pressure s;
	uint64_t n;

	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, efd, &s));
	EXPECT_EQ(0, s.shortfall);
	EXPECT_EQ(0, s.waiting);
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_TRUE(wait_until_readable(efd));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_FALSE(is_readable(self->fd));
	ASSERT_EQ(8, read(efd, &n, 8));
	EXPECT_EQ(1, n);
	/* one notification until the context reads it */
	ASSERT_TRUE(put_asleep(&more, variant->path, self->fd, PIECE, 2));
	/* a waiter sleeps after it has queued the notification, which must not come */
	ASSERT_TRUE(accmem_until_asleep(&more.tid, PATIENCE_MS));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(2 * PIECE, s.shortfall);
	EXPECT_EQ(2, s.waiting);
	EXPECT_FALSE(is_readable(self->other));
	/* a waiter is not asked to free memory */
	ASSERT_EQ(0, shrink_call(self->fd, 0, 0, &s));
	EXPECT_EQ(0, s.shortfall);
	EXPECT_EQ(0, s.waiting);
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	EXPECT_EQ(0, waiter_end(&w));
	EXPECT_EQ(0, waiter_end(&more));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(0, s.shortfall);
	/* a new shortage causes a new notification */
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_TRUE(wait_until_readable(efd));
	ASSERT_EQ(8, read(efd, &n, 8));
	EXPECT_EQ(1, n);
	/* when a shortage has ended, a context that did not ask sees none */
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[2].address));
	pthread_join(w.thread, NULL);
	EXPECT_FALSE(is_readable(self->other));
	close(efd);
}

/* wakes a waiter three times by memory that others take again at once */
static bool wake_in_vain(const char *path, int fd)
{
	int64_t in_vain = waiting(path, "in_vain");
	uint64_t until = accmem_ms() + PATIENCE_MS;
	struct accmem_alloc a;

	while (waiting(path, "in_vain") < in_vain + 3) {
		if (accmem_ms() > until)
			return false;
		if (!accmem_alloc_bytes(fd, 4096, 0, &a))
			accmem_ioctl_free(fd, a.address);
		usleep(10000);
	}
	return true;
}

/* A waiter that was woken in vain is still in the same shortage. */
TEST_F(wait_shrink, a_try_in_vain_is_no_new_shortage)
{
	int efd = eventfd(0, EFD_NONBLOCK);
	struct accmem_pressure s;
	struct waiter w = { .alignment = 2 * PIECE };
	unsigned int odd = self->a[0].address % (2 * PIECE) ? 0 : 1;
	uint64_t n;

	/* with other translations a piece fits at any address */
	if (self->info.translation != ACCMEM_TRANSLATION_IDENTITY) {
		close(efd);
		return;
	}
	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, efd, &s));
	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	ASSERT_TRUE(wait_until_readable(efd));
	ASSERT_EQ(8, read(efd, &n, 8));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[odd].address));
	EXPECT_TRUE(wake_in_vain(variant->path, self->other));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	/* nor is it a new shortage for a context that has asked */
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_TRUE(wake_in_vain(variant->path, self->other));
	EXPECT_FALSE(is_readable(self->other));
	EXPECT_EQ(-1, read(efd, &n, 8));
	EXPECT_EQ(0, waiter_serve(&w, self->other, self->a[!odd].address));
	close(efd);
}

/* Two waiters notify each other's contexts at the same time. */
TEST_F(wait_shrink, two_that_wait_for_each_other_are_both_told)
{
	int rounds = accmem_scale(40), i;
	struct accmem_pressure s;

	ASSERT_EQ(0, shrink_call(self->fd, ACCMEM_PRESSURE_REGISTER, -1, &s));
	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, -1, &s));
	for (i = 0; i < rounds; i++) {
		struct waiter a = {}, b = {};

		ASSERT_TRUE(waiter_start(&a, self->fd, PIECE, FOREVER));
		ASSERT_TRUE(waiter_start(&b, self->other, PIECE, FOREVER));
		EXPECT_TRUE(wait_until_readable(self->fd));
		EXPECT_TRUE(wait_until_readable(self->other));
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[0].address));
		ASSERT_EQ(0,
			  accmem_ioctl_free(self->other, self->a[1].address));
		ASSERT_EQ(0, waiter_end(&a));
		ASSERT_EQ(0, waiter_end(&b));
		ASSERT_EQ(0, accmem_ioctl_free(self->fd, a.a.address));
		self->a[0] = b.a;
		ASSERT_EQ(0, accmem_alloc_bytes(self->other, PIECE, 0,
						&self->a[1]));
	}
}

TEST_F(wait_shrink, who_registers_in_a_shortage_is_told_at_once)
{
	struct accmem_pressure s;
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, -1, &s));
	EXPECT_EQ(PIECE, s.shortfall);
	EXPECT_TRUE(is_readable(self->other));
	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_UNREGISTER, 0, &s));
	EXPECT_FALSE(is_readable(self->other));
	/* a context is not notified for its own requests */
	ASSERT_EQ(0, shrink_call(self->fd, ACCMEM_PRESSURE_REGISTER, -1, &s));
	EXPECT_FALSE(is_readable(self->fd));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pthread_join(w.thread, NULL);
}

/* SHRINK with a structure in read-only memory */
static int shrink_untold(int fd, uint32_t flags, int eventfd)
{
	struct accmem_pressure *req;
	int err;

	req = mmap(NULL, 4096, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (req == MAP_FAILED)
		return -errno;
	*req = (struct accmem_pressure){ .size = sizeof(*req),
					 .flags = flags,
					 .fd = eventfd };
	err = mprotect(req, 4096, PROT_READ) ?
		      -errno :
		      accmem_ioctl(fd, ACCMEM_IOC_PRESSURE, req);
	munmap(req, 4096);
	return err;
}

/*
 * A SHRINK whose answer cannot be written changes nothing. The shortage does not count
 * as notified.
 */
TEST_F(wait_shrink, an_answer_that_cannot_be_written)
{
	struct accmem_pressure s;
	struct waiter w = {};

	ASSERT_TRUE(put_asleep(&w, variant->path, self->fd, PIECE, 1));
	EXPECT_EQ(-EFAULT,
		  shrink_untold(self->other, ACCMEM_PRESSURE_REGISTER, -1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, -1, &s));
	ASSERT_TRUE(is_readable(self->other));
	EXPECT_EQ(-EFAULT, shrink_untold(self->other, 0, 0));
	EXPECT_TRUE(is_readable(self->other));
	EXPECT_EQ(-EFAULT,
		  shrink_untold(self->other, ACCMEM_PRESSURE_UNREGISTER, 0));
	EXPECT_TRUE(is_readable(self->other));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	pthread_join(w.thread, NULL);
}

TEST_F(wait_shrink, a_limit_of_others_is_no_shortage)
{
	struct accmem_pressure s;
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, -1, &s));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[1].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_TRUE(waiter_start_in(&w, variant->path, self->fd, PIECE,
				    "limited", 1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &s));
	EXPECT_EQ(0, s.shortfall);
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(0, waiter_end(&w));
}

TEST_F(wait_shrink, bad_input_of_shrink)
{
	struct accmem_pressure s;

	EXPECT_EQ(-EINVAL, shrink_call(self->fd,
				       ACCMEM_PRESSURE_REGISTER |
					       ACCMEM_PRESSURE_UNREGISTER,
				       -1, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, 0x4, 0, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, 0, 1, &s));
	EXPECT_EQ(-EINVAL,
		  shrink_call(self->fd, ACCMEM_PRESSURE_UNREGISTER, 1, &s));
	EXPECT_EQ(-EBADF,
		  shrink_call(self->fd, ACCMEM_PRESSURE_REGISTER, 999, &s));
	EXPECT_EQ(-EINVAL, shrink_call(self->fd, ACCMEM_PRESSURE_REGISTER,
				       self->other, &s));
	s = (struct accmem_pressure){ .size = sizeof(s), .reserved = 1 };
	EXPECT_EQ(-EINVAL, accmem_ioctl(self->fd, ACCMEM_IOC_PRESSURE, &s));
	/* none of these calls has registered the context */
	EXPECT_EQ(0, shrink_call(self->fd, ACCMEM_PRESSURE_UNREGISTER, 0, &s));
}

/* The reason of a wait may change, from a limit to a shortage. */
TEST_F(wait_shrink, others_are_told_when_a_limit_holds_it_up_no_more)
{
	struct accmem_pressure req;
	struct waiter w = {};
	struct accmem_alloc a;

	ASSERT_EQ(0,
		  shrink_call(self->other, ACCMEM_PRESSURE_REGISTER, -1, &req));
	ASSERT_EQ(0, accmem_ioctl_free(self->other, self->a[0].address));
	ASSERT_EQ(0, accmem_alloc_bytes(self->fd, PIECE, 0, &a));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	ASSERT_TRUE(waiter_start_in(&w, variant->path, self->fd, PIECE,
				    "limited", 1));
	EXPECT_FALSE(is_readable(self->other));
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 2 * PIECE));
	EXPECT_TRUE(wait_until_readable(self->other));
	ASSERT_EQ(0, shrink_call(self->other, 0, 0, &req));
	EXPECT_EQ(1, req.waiting);
	EXPECT_EQ(PIECE, req.shortfall);
	/* and from a shortage to a limit, on devices where the charge is known before */
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", PIECE));
	if (!accmem_owns_folios(&self->info)) {
		EXPECT_TRUE(wait_for_state(variant->path, "limited", 1));
		ASSERT_EQ(0, shrink_call(self->other, 0, 0, &req));
		EXPECT_EQ(0, req.waiting);
	}
	ASSERT_EQ(0, accmem_param_set("max_bytes_per_context", 0));
	EXPECT_EQ(0, waiter_end_by_close(&w, &self->other));
}

WAIT_MAIN
