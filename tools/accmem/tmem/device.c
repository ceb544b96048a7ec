// SPDX-License-Identifier: GPL-2.0
/*
 * The device: a context with the SMs of the trace, and CTAs with queued calls. One eventfd
 * counts the completions of all CTAs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <tcgen05.h>
#include <unistd.h>

#include "tmem.h"

struct device {
	struct accmem_context *ctx;
	int ended; /* eventfd that counts completions */
};

/* Raise the limit of open files, since each CTA is a file. */
static void device_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct device *device_open(const struct tmem_trace *t,
			   const struct tmem_options *o)
{
	struct tcgen05_config config = {
		.nr_sms = t->sms,
		.columns = t->columns,
		.exclusive = o->exclusive,
		.bypass_bound = o->bypass_bound,
	};
	struct device *d = xcalloc(1, sizeof(*d));
	int err;

	device_raise_limit();
	d->ended = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (d->ended < 0)
		die("eventfd: %s", strerror(errno));
	err = accmem_open(o->device, &d->ctx);
	if (!err) {
		err = tcgen05_setup(d->ctx, &config);
		if (err)
			accmem_close(d->ctx);
	}
	if (err) {
		fprintf(stderr, "accmem: %s: %s\n",
			o->device ? o->device : "device", strerror(-err));
		close(d->ended);
		free(d);
		return NULL;
	}
	return d;
}

void device_close(struct device *d)
{
	accmem_close(d->ctx);
	close(d->ended);
	free(d);
}

int device_launch(struct device *d, const struct tmem_trace *t, uint32_t cta,
		  struct tcgen05_cta **result)
{
	const struct cta *a = &t->ctas[cta];
	struct tcgen05_place place = {
		.launch = t->launches[a->launch].id,
		.cluster = a->cluster,
		.rank = a->rank,
		.sm = a->sm,
		.cta_group = a->group,
	};
	int err;

	err = tcgen05_launch(d->ctx, &place, result);
	if (err)
		return err;
	err = tcgen05_set_eventfd(*result, d->ended);
	if (!err && fcntl(tcgen05_fd(*result), F_SETFL, O_NONBLOCK))
		err = -errno;
	if (err) {
		tcgen05_exit(*result);
		*result = NULL;
	}
	return err;
}

uint64_t device_ended(struct device *d)
{
	uint64_t n = 0;

	if (read(d->ended, &n, sizeof(n)) < 0 && errno != EAGAIN)
		die("eventfd: %s", strerror(errno));
	return n;
}

bool device_read(struct tcgen05_cta *cta, struct accmem_cta_completion *done)
{
	int err = tcgen05_next_completion(cta, done);

	if (err && err != -EAGAIN)
		die("a completion cannot be read: %s", strerror(-err));
	return !err;
}
