// SPDX-License-Identifier: MIT
/*
 * The last error of a request for memory, in words: which member is invalid, which limit
 * is reached, or how much memory there is and who holds it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include <accmem_pool.h>

#include "core/call.h"
#include "core/error.h"
#include "core/request_error.h"

/* INFO of the memory of a kind, and the most bytes that one buffer may have. */
static int info_of_kind(struct accmem_context *ctx, uint32_t kind,
			struct accmem_info *info, uint64_t *most)
{
	struct accmem_info one;
	uint32_t i;
	int ret;

	ret = kind == ACCMEM_KIND_HOST ? accmem_query_host(ctx, info) :
					 accmem_sum_info(ctx, info);
	*most = info->capacity;
	if (ret || kind == ACCMEM_KIND_HOST || info->nr_carveouts < 2)
		return ret;
	*most = 0;
	for (i = 0; i < info->nr_carveouts; i++)
		if (!accmem_query_info(ctx, i, &one) && one.capacity > *most)
			*most = one.capacity;
	return 0;
}

static void over_limit(const char *what, uint64_t length,
		       const struct accmem_info *info)
{
	const uint64_t limit = info->context_limit;

	if (limit && length > limit)
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: over the limit of a context, %" PRIu64
				      " bytes",
				      what, length, limit);
	else
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: over a limit; this context has %" PRIu64
				      " of %" PRIu64 " bytes (0: no limit); %s",
				      what, length,
				      (uint64_t)info->context_bytes, limit,
				      "release something, or accmem_pool_trim()");
}

static void no_memory(const char *what, uint64_t length,
		      const struct accmem_info *info, int error)
{
	uint64_t held = info->capacity - info->free_bytes - info->retired_bytes;
	uint64_t own = info->context_bytes < held ? info->context_bytes : held;
	const char *advice = error == -ETIMEDOUT ?
				     "others have freed too little in time" :
				     "wait for others with ACCMEM_ALLOC_WAIT";
	const char *reason = "no memory";

	if (info->largest_run >= length && error == -ETIMEDOUT) {
		reason = "the wait was too long";
		advice = "a limit stopped it, or earlier requests";
	} else if (info->largest_run >= length) {
		reason =
			"no run for its alignment and carveout, or no host memory";
		advice = "release something";
	} else if (info->free_bytes >= length) {
		reason = "the free memory is not in one piece";
		advice = "release what is between its pieces";
	} else if (own + info->free_bytes >= length) {
		advice = "release something, or accmem_pool_trim()";
	}
	accmem_set_last_error("%s of %" PRIu64 " bytes: %s; %" PRIu64
			      " of %" PRIu64
			      " bytes are free, the largest run has %" PRIu64
			      "; this context holds %" PRIu64
			      ", others %" PRIu64 "; %s",
			      what, length, reason, (uint64_t)info->free_bytes,
			      (uint64_t)info->capacity,
			      (uint64_t)info->largest_run, own, held - own,
			      advice);
}

/* The request is short of memory, or would be on an empty device. */
static bool is_short(struct accmem_context *ctx, const char *what,
		     uint64_t length, uint32_t kind, int error)
{
	struct accmem_info info;
	uint64_t most;

	if ((error != -ENOMEM && error != -EDQUOT && error != -ETIMEDOUT &&
	     error != -EOVERFLOW) ||
	    info_of_kind(ctx, kind, &info, &most))
		return false;
	if (length > most)
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: more than the %s has, %" PRIu64
				      " bytes",
				      what, length,
				      kind == ACCMEM_KIND_HOST ?
					      "device's host memory" :
					      "device",
				      most);
	else if (error == -EOVERFLOW)
		return false;
	else if (error == -EDQUOT)
		over_limit(what, length, &info);
	else
		no_memory(what, length, &info, error);
	return true;
}

/* Name the member that makes a request invalid. False: it is another one. */
static bool is_invalid(const char *what, const struct accmem_alloc *req,
		       uint64_t max_alignment)
{
	const uint64_t length = req->length, alignment = req->alignment;

	if (!length)
		accmem_set_last_error("%s of 0 bytes: the length is 0", what);
	else if (alignment & (alignment - 1))
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: alignment %" PRIu64
				      " is no power of two",
				      what, length, alignment);
	else if (alignment > max_alignment)
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: alignment %" PRIu64
				      " is more than %" PRIu64,
				      what, length, alignment, max_alignment);
	else if (req->flags & ~ACCMEM_ALLOC_FLAGS)
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: unknown flags %#" PRIx32,
				      what, length,
				      req->flags & ~ACCMEM_ALLOC_FLAGS);
	else if (req->flags & ACCMEM_ALLOC_TAIL32 &&
		 !(req->flags & ACCMEM_ALLOC_ROUND32))
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: TAIL32 without ROUND32",
				      what, length);
	else if (req->deadline_ns && !(req->flags & ACCMEM_ALLOC_WAIT))
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: a deadline without WAIT",
				      what, length);
	else if (req->kind > ACCMEM_KIND_SHARED)
		accmem_set_last_error("%s of %" PRIu64
				      " bytes: unknown kind %" PRIu32,
				      what, length, req->kind);
	else
		return false;
	return true;
}

int accmem_fail_request(struct accmem_context *ctx, const char *what,
			const struct accmem_alloc *req, uint64_t max_alignment,
			int error)
{
	struct accmem_info info;

	if (error >= 0 || is_short(ctx, what, req->length, req->kind, error))
		return error;
	if (!max_alignment && !accmem_query_info(ctx, 0, &info))
		max_alignment = info.max_alignment;
	if (error == -EINVAL && is_invalid(what, req, max_alignment))
		return error;
	return accmem_fail(error, "%s of %" PRIu64 " bytes", what,
			   (uint64_t)req->length);
}
