// SPDX-License-Identifier: MIT
/*
 * The tcgen05 front-end: CTAs, and the calls on a CTA that are one ioctl each.
 *
 * A CTA is a file of the driver: it is launched by tcgen05_launch() and ends when the file
 * is closed.
 *
 * Locking: none. The driver serialises calls on one file.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tcgen05.h>

#include "core/call.h"
#include "core/error.h"
#include "core/util.h"
#include "tcgen05/cta.h"
#include "tcgen05/error.h"

/* tcgen05_query() fills the structure that the program's header declares: see compat.c */
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
		.flags = config->strict ? ACCMEM_TMEM_STRICT : 0,
	};

	return accmem_fail(accmem_call(ctx, ACCMEM_IOC_TMEM_SETUP, &req),
			   "setup of Tensor Memory");
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
		.window_base = (uintptr_t)place->window,
		.window_length = place->window_length,
	};
	struct tcgen05_cta *cta;
	int ret;

	cta = malloc(sizeof(*cta));
	if (!cta)
		return tcgen05_fail(-ENOMEM, "launch");
	ret = accmem_call(ctx, ACCMEM_IOC_TMEM_LAUNCH, &req);
	if (ret) {
		free(cta);
		return tcgen05_fail(ret, "launch");
	}
	cta->fd = req.fd;
	*result = cta;
	return 0;
}

static int check_cluster(const struct tcgen05_place *places, unsigned int count)
{
	unsigned int i;

	if (!count || count > ACCMEM_TMEM_CLUSTER_MAX)
		return -EINVAL;
	for (i = 1; i < count; i++)
		if (places[i].launch != places[0].launch ||
		    places[i].cluster != places[0].cluster ||
		    places[i].cta_group != places[0].cta_group)
			return -EINVAL;
	return 0;
}

static int launch_members(struct accmem_context *ctx,
			  const struct tcgen05_place *places,
			  unsigned int count,
			  struct accmem_tmem_member *members)
{
	struct accmem_tmem_cluster req = {
		.size = sizeof(req),
		.launch = places->launch,
		.cluster = places->cluster,
		.cta_group = places->cta_group,
		.nr_members = count,
		.members = (uintptr_t)members,
	};
	unsigned int i;

	for (i = 0; i < count; i++)
		members[i] = (struct accmem_tmem_member){
			.rank = places[i].rank,
			.sm = places[i].sm,
			.window_base = (uintptr_t)places[i].window,
			.window_length = places[i].window_length,
		};
	return accmem_call(ctx, ACCMEM_IOC_TMEM_CLUSTER, &req);
}

/* All memory is allocated before the launch, since a launch cannot be undone. */
int tcgen05_launch_cluster(struct accmem_context *ctx,
			   const struct tcgen05_place *places,
			   unsigned int count, struct tcgen05_cta **ctas)
{
	struct accmem_tmem_member members[ACCMEM_TMEM_CLUSTER_MAX];
	struct tcgen05_cta *made[ACCMEM_TMEM_CLUSTER_MAX];
	unsigned int i;
	int ret;

	ret = check_cluster(places, count);
	if (ret)
		return tcgen05_fail(ret, "launch of a cluster");
	for (i = 0; i < count; i++) {
		made[i] = malloc(sizeof(*made[i]));
		if (!made[i]) {
			ret = -ENOMEM;
			goto free_made;
		}
	}
	ret = launch_members(ctx, places, count, members);
	if (ret)
		goto free_made;
	for (i = 0; i < count; i++) {
		made[i]->fd = members[i].fd;
		ctas[i] = made[i];
	}
	return 0;

free_made:
	while (i--)
		free(made[i]);
	return tcgen05_fail(ret, "launch of a cluster");
}

void tcgen05_exit(struct tcgen05_cta *cta)
{
	if (!cta)
		return;
	accmem_close_locked(cta->fd);
	free(cta);
}

int tcgen05_fd(const struct tcgen05_cta *cta)
{
	return cta->fd;
}

int tcgen05_call_alloc(struct tcgen05_cta *cta, struct accmem_cta_alloc req)
{
	req.size = sizeof(req);
	return tcgen05_fail(call(cta, ACCMEM_IOC_CTA_ALLOC, &req),
			    "alloc of %u columns", req.columns);
}

int tcgen05_call_dealloc(struct tcgen05_cta *cta, struct accmem_cta_dealloc req)
{
	req.size = sizeof(req);
	return tcgen05_fail(call(cta, ACCMEM_IOC_CTA_DEALLOC, &req),
			    "dealloc of %u columns", req.columns);
}

int tcgen05_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		  uint32_t columns)
{
	return tcgen05_alloc_until(cta, destination, columns, 0);
}

int tcgen05_alloc_until(struct tcgen05_cta *cta, uint32_t *destination,
			uint32_t columns, uint64_t deadline_ns)
{
	return tcgen05_alloc_group(cta, 0, destination, columns, deadline_ns);
}

int tcgen05_alloc_group(struct tcgen05_cta *cta, uint32_t cta_group,
			uint32_t *destination, uint32_t columns,
			uint64_t deadline_ns)
{
	return tcgen05_call_alloc(cta,
				  (struct accmem_cta_alloc){
					  .columns = columns,
					  .deadline_ns = deadline_ns,
					  .cta_group = cta_group,
					  .destination =
						  (uintptr_t)destination });
}

int tcgen05_try_alloc(struct tcgen05_cta *cta, uint32_t *destination,
		      uint32_t columns)
{
	return tcgen05_call_alloc(cta,
				  (struct accmem_cta_alloc){
					  .flags = ACCMEM_CTA_NONBLOCK,
					  .columns = columns,
					  .destination =
						  (uintptr_t)destination });
}

int tcgen05_dealloc(struct tcgen05_cta *cta, uint32_t address, uint32_t columns)
{
	return tcgen05_dealloc_until(cta, address, columns, 0);
}

int tcgen05_dealloc_until(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns)
{
	return tcgen05_dealloc_group(cta, 0, address, columns, deadline_ns);
}

int tcgen05_dealloc_group(struct tcgen05_cta *cta, uint32_t cta_group,
			  uint32_t address, uint32_t columns,
			  uint64_t deadline_ns)
{
	return tcgen05_call_dealloc(cta, (struct accmem_cta_dealloc){
						 .address = address,
						 .columns = columns,
						 .cta_group = cta_group,
						 .deadline_ns = deadline_ns });
}

int tcgen05_queue_alloc(struct tcgen05_cta *cta, uint32_t columns,
			uint64_t deadline_ns, uint64_t user_data)
{
	return tcgen05_call_alloc(cta, (struct accmem_cta_alloc){
					       .flags = ACCMEM_CTA_QUEUED,
					       .columns = columns,
					       .deadline_ns = deadline_ns,
					       .user_data = user_data });
}

int tcgen05_queue_dealloc(struct tcgen05_cta *cta, uint32_t address,
			  uint32_t columns, uint64_t deadline_ns,
			  uint64_t user_data)
{
	return tcgen05_call_dealloc(cta, (struct accmem_cta_dealloc){
						 .flags = ACCMEM_CTA_QUEUED,
						 .address = address,
						 .columns = columns,
						 .deadline_ns = deadline_ns,
						 .user_data = user_data });
}

int tcgen05_next_completion(struct tcgen05_cta *cta,
			    struct accmem_cta_completion *completion)
{
	return read(cta->fd, completion, sizeof(*completion)) < 0 ? -errno : 0;
}

int tcgen05_cancel(struct tcgen05_cta *cta)
{
	struct accmem_cta_cancel req = { .size = sizeof(req) };

	return call(cta, ACCMEM_IOC_CTA_CANCEL, &req);
}

int tcgen05_set_eventfd(struct tcgen05_cta *cta, int fd)
{
	struct accmem_cta_eventfd req = { .size = sizeof(req), .fd = fd };

	return accmem_fail(call(cta, ACCMEM_IOC_CTA_EVENTFD, &req),
			   "eventfd of a CTA, descriptor %d", fd);
}

int tcgen05_map(struct tcgen05_cta *cta, const struct accmem_tmem_map **map)
{
	void *page =
		mmap(NULL, sizeof(**map), PROT_READ, MAP_SHARED, cta->fd, 0);

	if (page == MAP_FAILED)
		return accmem_fail(-errno, "the map page of an SM");
	*map = page;
	return 0;
}

void tcgen05_unmap(const struct accmem_tmem_map *map)
{
	if (map)
		munmap((void *)map, sizeof(*map));
}

int tcgen05_relinquish_alloc_permit(struct tcgen05_cta *cta)
{
	return tcgen05_relinquish_group(cta, 0);
}

int tcgen05_relinquish_group(struct tcgen05_cta *cta, uint32_t cta_group)
{
	struct accmem_cta_relinquish req = { .size = sizeof(req),
					     .cta_group = cta_group };

	return tcgen05_fail(call(cta, ACCMEM_IOC_CTA_RELINQUISH, &req),
			    "relinquish");
}

int tcgen05_query(struct tcgen05_cta *cta, struct accmem_cta_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	return call(cta, ACCMEM_IOC_CTA_QUERY, query);
}
