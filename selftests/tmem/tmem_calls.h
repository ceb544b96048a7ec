/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls on the descriptors of contexts and CTAs, for tests that set a field which
 * the tcgen05 front-end sets itself or leaves out. The arguments after the
 * descriptor are the fields of the structure: CTA_ALLOC(cta, .columns = 32). Each
 * returns 0, or a descriptor, or a negative errno value.
 */
#ifndef TMEM_CALLS_H
#define TMEM_CALLS_H

#include "accmem_test.h"

#define CTA_LAUNCH(fd, ...) \
	cta_launch(fd, (struct accmem_tmem_launch){ __VA_ARGS__ })
#define CTA_ALLOC(cta, ...) \
	cta_alloc(cta, (struct accmem_cta_alloc){ __VA_ARGS__ })
#define CTA_DEALLOC(cta, ...) \
	cta_dealloc(cta, (struct accmem_cta_dealloc){ __VA_ARGS__ })

static inline int cta_launch(int fd, struct accmem_tmem_launch req)
{
	int err;

	req.size = sizeof(req);
	err = accmem_ioctl(fd, ACCMEM_IOC_TMEM_LAUNCH, &req);
	return err ?: req.fd;
}

static inline int cta_alloc(int cta, struct accmem_cta_alloc req)
{
	req.size = sizeof(req);
	return accmem_ioctl(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

static inline int cta_dealloc(int cta, struct accmem_cta_dealloc req)
{
	req.size = sizeof(req);
	return accmem_ioctl(cta, ACCMEM_IOC_CTA_DEALLOC, &req);
}

/* The result in the next completion of a queued call */
static inline int cta_result(int cta)
{
	struct accmem_cta_completion done;

	if (read(cta, &done, sizeof(done)) != sizeof(done))
		return -1000;
	return done.result;
}

/* The lowest free descriptor; a descriptor that leaked makes it larger. */
static inline int cta_next_fd(int fd)
{
	int next = dup(fd);

	close(next);
	return next;
}

#endif /* TMEM_CALLS_H */
