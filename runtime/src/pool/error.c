// SPDX-License-Identifier: MIT
/* The text of the last error of a pool's call. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/call.h"
#include "pool/base.h"
#include "pool/error.h"

static const char limit_text[] =
	"%" PRIu64
	" bytes: over a limit of context or user; this context holds %" PRIu64
	" of %" PRIu64
	" bytes (0: no limit); release something, or accmem_pool_trim()";

static const char memory_text[] =
	"%" PRIu64 " bytes: no memory; %" PRIu64 " of %" PRIu64
	" bytes are free, the largest run has %" PRIu64
	"; this context holds %" PRIu64 ", others %" PRIu64
	"; release something, accmem_pool_trim(), or use ACCMEM_ALLOC_WAIT";

static void error_of_limit(uint64_t length, const struct accmem_info *info)
{
	const uint64_t limit = info->context_limit;

	accmem_set_last_error(limit_text, length, (uint64_t)info->context_bytes,
			      limit);
}

static void error_of_memory(uint64_t length, const struct accmem_info *info)
{
	uint64_t free_bytes = info->free_bytes, capacity = info->capacity;
	uint64_t own = info->context_bytes, run = info->largest_run;
	uint64_t held = capacity - free_bytes;

	own = own < held ? own : held;
	accmem_set_last_error(memory_text, length, free_bytes, capacity, run,
			      own, held - own);
}

int accmem_pool_fail(struct accmem_pool *pool, const char *what,
		     uint64_t length, int error)
{
	struct accmem_info info;

	if ((pool_is_short(error) || error == -ETIMEDOUT) &&
	    !accmem_sum_info(pool->ctx, &info)) {
		if (error == -EDQUOT)
			error_of_limit(length, &info);
		else
			error_of_memory(length, &info);
	} else {
		accmem_set_last_error("%s of %" PRIu64 " bytes: %s", what,
				      length, strerror(-error));
	}
	return error;
}

int accmem_pool_bad_pointer(const char *what, const void *pointer, int error)
{
	const char *text =
		error == -EINVAL ?
			"it points into an allocation, not to its start" :
		error == -ENOENT ? "no allocation of this pool is there" :
				   strerror(-error);

	accmem_set_last_error("%s of %p: %s", what, pointer, text);
	return error;
}
