// SPDX-License-Identifier: MIT
/*
 * The calls on a context that are one ioctl each and do not change its mappings.
 *
 * Locking: none. The driver serialises calls on one file.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>

#include "core/call.h"
#include "core/context.h"
#include "core/error.h"

int accmem_call(const struct accmem_context *ctx, unsigned long command,
		void *argument)
{
	return ioctl(ctx->fd, command, argument) < 0 ? -errno : 0;
}

int accmem_fd(const struct accmem_context *ctx)
{
	return ctx->fd;
}

int accmem_query_info(struct accmem_context *ctx, uint32_t carveout,
		      struct accmem_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->carveout = carveout;
	return accmem_call(ctx, ACCMEM_IOC_INFO, info);
}

int accmem_read_info(struct accmem_context *ctx, uint32_t carveout,
		     struct accmem_info *info)
{
	return accmem_fail(accmem_query_info(ctx, carveout, info),
			   "information about carveout %" PRIu32, carveout);
}

int accmem_query_host(struct accmem_context *ctx, struct accmem_info *info)
{
	*info = (struct accmem_info){ .size = sizeof(*info),
				      .flags = ACCMEM_INFO_HOST };
	return accmem_call(ctx, ACCMEM_IOC_INFO, info);
}

static void add_info(struct accmem_info *sum, const struct accmem_info *one)
{
	uint64_t sum_end = sum->address_base + sum->address_span;
	uint64_t one_end = one->address_base + one->address_span;

	if (one->address_base < sum->address_base)
		sum->address_base = one->address_base;
	if (one_end > sum_end)
		sum_end = one_end;
	sum->address_span = sum_end - sum->address_base;
	sum->capacity += one->capacity;
	sum->retired_bytes += one->retired_bytes;
	sum->retire_pending_bytes += one->retire_pending_bytes;
	sum->retire_failed_bytes += one->retire_failed_bytes;
	sum->free_bytes += one->free_bytes;
	if (one->largest_run > sum->largest_run)
		sum->largest_run = one->largest_run;
	if (one->translation == ACCMEM_TRANSLATION_IDENTITY)
		sum->translation = ACCMEM_TRANSLATION_IDENTITY;
}

int accmem_sum_info(struct accmem_context *ctx, struct accmem_info *sum)
{
	struct accmem_info one;
	uint32_t i;
	int ret;

	ret = accmem_query_info(ctx, 0, sum);
	for (i = 1; !ret && i < sum->nr_carveouts; i++) {
		ret = accmem_query_info(ctx, i, &one);
		if (!ret)
			add_info(sum, &one);
	}
	return ret;
}

int accmem_device_access(struct accmem_context *ctx, struct accmem_access *req)
{
	req->size = sizeof(*req);
	return accmem_fail(accmem_call(ctx, ACCMEM_IOC_ACCESS, req),
			   "access to %" PRIu64 " bytes at address %#" PRIx64,
			   (uint64_t)req->length, (uint64_t)req->address);
}

int accmem_prefetch_shared(struct accmem_context *ctx, uint64_t address,
			   uint64_t length, uint32_t flags)
{
	struct accmem_prefetch req = { .size = sizeof(req),
				       .flags = flags,
				       .address = address,
				       .length = length };

	return accmem_fail(accmem_call(ctx, ACCMEM_IOC_PREFETCH, &req),
			   "prefetch of %" PRIu64 " bytes at address %#" PRIx64,
			   length, address);
}

int accmem_advise_shared(struct accmem_context *ctx, uint64_t address,
			 uint64_t length, uint32_t advice)
{
	struct accmem_advise req = { .size = sizeof(req),
				     .address = address,
				     .length = length,
				     .advice = advice };

	return accmem_fail(accmem_call(ctx, ACCMEM_IOC_ADVISE, &req),
			   "advice %" PRIu32 " for %" PRIu64
			   " bytes at address %#" PRIx64,
			   advice, length, address);
}

int accmem_query_address(struct accmem_context *ctx, uint64_t address,
			 struct accmem_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->address = address;
	return accmem_call(ctx, ACCMEM_IOC_QUERY, query);
}

int accmem_get_query(struct accmem_context *ctx, uint64_t address,
		     struct accmem_query *query)
{
	return accmem_fail_at(accmem_query_address(ctx, address, query),
			      "query", address);
}
