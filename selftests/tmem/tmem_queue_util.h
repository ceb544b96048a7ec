/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for queued calls: the calls, which return 0 or a negative errno value, and
 * their completions.
 */
#ifndef TMEM_QUEUE_UTIL_H
#define TMEM_QUEUE_UTIL_H

#include "accmem_test.h"
#include "tmem_calls.h"
#include "tmem_util.h"

#define NEAR_MS 2000 /* long enough to queue a call on a busy machine */

static inline int queue_alloc_until(struct tcgen05_cta *cta, uint32_t columns,
				    uint64_t user_data, uint64_t deadline_ns)
{
	return CTA_ALLOC(tcgen05_fd(cta), .flags = ACCMEM_CTA_QUEUED,
			 .columns = columns, .deadline_ns = deadline_ns,
			 .user_data = user_data);
}

static inline int queue_alloc(struct tcgen05_cta *cta, uint32_t columns,
			      uint64_t user_data)
{
	return queue_alloc_until(cta, columns, user_data, 0);
}

static inline int queue_dealloc(struct tcgen05_cta *cta, uint32_t address,
				uint32_t columns, uint64_t user_data)
{
	return CTA_DEALLOC(tcgen05_fd(cta), .flags = ACCMEM_CTA_QUEUED,
			   .address = address, .columns = columns,
			   .user_data = user_data);
}

static inline int cancel(struct tcgen05_cta *cta)
{
	struct accmem_cta_cancel req = { .size = sizeof(req) };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_CANCEL, &req);
}

static inline int set_eventfd(struct tcgen05_cta *cta, int fd)
{
	struct accmem_cta_eventfd req = { .size = sizeof(req), .fd = fd };

	return accmem_ioctl(tcgen05_fd(cta), ACCMEM_IOC_CTA_EVENTFD, &req);
}

/* reads a completion; 0 or -errno */
static inline int take(struct tcgen05_cta *cta,
		       struct accmem_cta_completion *done)
{
	ssize_t n = read(tcgen05_fd(cta), done, sizeof(*done));

	if (n < 0)
		return -errno;
	return n == sizeof(*done) ? 0 : -1000;
}

/* waits for a completion and reads it; its result */
static inline int finish(struct tcgen05_cta *cta)
{
	struct pollfd p = { .fd = tcgen05_fd(cta), .events = POLLIN };
	struct accmem_cta_completion done;
	int ret;

	if (poll(&p, 1, TMEM_PATIENCE_MS) != 1)
		return -1001;
	ret = take(cta, &done);
	return ret ?: done.result;
}

static inline short events(struct tcgen05_cta *cta)
{
	struct pollfd p = { .fd = tcgen05_fd(cta), .events = POLLIN | POLLOUT };

	return poll(&p, 1, 0) == 1 ? p.revents : 0;
}

static inline int64_t count_of(int eventfd)
{
	eventfd_t value;

	return eventfd_read(eventfd, &value) ? -errno : (int64_t)value;
}

/* The bypass bound is 0, and read() does not block. */
#define TMEM_QUEUE_FIXTURE(fixture) TMEM_FIXTURE(fixture, 0, 512, O_NONBLOCK)

#endif /* TMEM_QUEUE_UTIL_H */
