// SPDX-License-Identifier: MIT
/*
 * The tcgen05 front-end: CTAs, and the calls that are one ioctl each.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <tcgen05.h>

#include "internal.h"

/* see context.c */
static_assert(sizeof(struct accmem_cta_query) == 88, "needs a symbol version");

struct tcgen05_cta {
	int fd;
};

static int call(const struct tcgen05_cta *cta, unsigned long command,
		void *argument)
{
	return ioctl(cta->fd, command, argument) < 0 ? -errno : 0;
}

int tcgen05_setup(struct accmem_context *ctx,
		  const struct tcgen05_config *config)
{
	struct accmem_tmem_setup req = {
		.size = sizeof(req),
		.nr_sms = config->nr_sms,
		.columns = config->columns,
		.discipline = config->exclusive,
		.bypass_bound = config->bypass_bound,
	};

	return accmem_call(ctx, ACCMEM_IOC_TMEM_SETUP, &req);
}

int tcgen05_launch(struct accmem_context *ctx,
		   const struct tcgen05_place *place,
		   struct tcgen05_cta **result)
{
	struct accmem_tmem_launch req = {
		.size = sizeof(req),
		.launch = place->launch,
		.cluster = place->cluster,
		.rank = place->rank,
		.sm = place->sm,
		.cta_group = place->cta_group,
	};
	struct tcgen05_cta *cta;
	int ret;

	cta = malloc(sizeof(*cta));
	if (!cta)
		return -ENOMEM;
	ret = accmem_call(ctx, ACCMEM_IOC_TMEM_LAUNCH, &req);
	if (ret) {
		free(cta);
		return ret;
	}
	cta->fd = req.fd;
	*result = cta;
	return 0;
}

void tcgen05_exit(struct tcgen05_cta *cta)
{
	if (!cta)
		return;
	close(cta->fd);
	free(cta);
}

int tcgen05_fd(const struct tcgen05_cta *cta)
{
	return cta->fd;
}

static int alloc(struct tcgen05_cta *cta, uint32_t *destination,
		 uint32_t columns, uint32_t flags, uint64_t deadline_ns)
{
	struct accmem_cta_alloc req = {
		.size = sizeof(req),
		.flags = flags,
		.columns = columns,
		.deadline_ns = deadline_ns,
		.destination = (uintptr_t)destination,
	};

	return call(cta, ACCMEM_IOC_CTA_ALLOC, &req);
}

int tcgen05_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		  uint32_t columns)
{
	return alloc(cta, destination, columns, 0, 0);
}

int tcgen05_alloc_until(struct tcgen05_cta *cta, uint32_t *destination,
			uint32_t columns, uint64_t deadline_ns)
{
	return alloc(cta, destination, columns, 0, deadline_ns);
}

int tcgen05_try_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		      uint32_t columns)
{
	return alloc(cta, destination, columns, ACCMEM_CTA_NONBLOCK, 0);
}

int tcgen05_dealloc_until(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns)
{
	struct accmem_cta_dealloc req = {
		.size = sizeof(req),
		.address = address,
		.columns = columns,
		.deadline_ns = deadline_ns,
	};

	return call(cta, ACCMEM_IOC_CTA_DEALLOC, &req);
}

int tcgen05_dealloc(struct tcgen05_cta *cta, uint32_t address, uint32_t columns)
{
	return tcgen05_dealloc_until(cta, address, columns, 0);
}

int tcgen05_relinquish_alloc_permit(struct tcgen05_cta *cta)
{
	struct accmem_cta_relinquish req = { .size = sizeof(req) };

	return call(cta, ACCMEM_IOC_CTA_RELINQUISH, &req);
}

int tcgen05_query(struct tcgen05_cta *cta, struct accmem_cta_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return call(cta, ACCMEM_IOC_CTA_QUERY, query);
}
