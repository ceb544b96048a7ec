// SPDX-License-Identifier: MIT
/*
 * The calls of the shared library that have more than one symbol version: the newest
 * version, and the versions for programs that were linked against an older library.
 */
#include <assert.h>
#include <string.h>

#include "core/buffer.h"
#include "core/internal.h"
#include "core/request_error.h"
#include "core/stream.h"

/*
 * A program passes structures of the size that its headers declare. If one of these
 * structures grows, each call that takes it needs a new symbol version, and the old
 * version keeps the old size.
 */
static_assert(sizeof(struct accmem_info) == 152, "needs a symbol version");
static_assert(sizeof(struct accmem_alloc) == 128, "needs a symbol version");
static_assert(sizeof(struct accmem_realloc) == 88, "needs a symbol version");
static_assert(sizeof(struct accmem_query) == 104, "needs a symbol version");

/* sizeof(struct accmem_alloc) in the first two versions */
#define ALLOC_SIZE_0_1 96
#define ALLOC_SIZE_0_2 112
/* sizeof(struct accmem_info) in the first five versions */
#define INFO_SIZE_0_1 128

/* Export @function as @symbol. Not for link-time optimisation: the Makefile says so. */
#define SYMBOL(function, symbol) __asm__(".symver " #function ", " symbol)

typedef int allocate_fn(struct accmem_context *ctx, struct accmem_alloc *req,
			int stream);

static int allocate(struct accmem_context *ctx, struct accmem_alloc *req,
		    int stream)
{
	(void)stream;
	return accmem_fail_request(ctx, "allocation", req, 0,
				   accmem_allocate_now(ctx, req));
}

static int allocate_on(struct accmem_context *ctx, struct accmem_alloc *req,
		       int stream)
{
	return accmem_fail_request(ctx, "allocation", req, 0,
				   accmem_allocate_on_stream(ctx, req, stream));
}

/* Call @call with a structure of today's size. @old points to @size bytes. */
static int allocate_old(allocate_fn *call, struct accmem_context *ctx,
			int stream, void *old, size_t size)
{
	struct accmem_alloc req = {};
	int ret;

	memcpy(&req, old, size);
	ret = call(ctx, &req, stream);
	/* the old library, too, stored its own size in the structure */
	req.size = size;
	memcpy(old, &req, size);
	return ret;
}

SYMBOL(accmem_allocate_0_1, "accmem_allocate@ACCMEM_0.1");
int accmem_allocate_0_1(struct accmem_context *ctx, void *old)
{
	return allocate_old(allocate, ctx, 0, old, ALLOC_SIZE_0_1);
}

SYMBOL(accmem_allocate_0_2, "accmem_allocate@ACCMEM_0.2");
int accmem_allocate_0_2(struct accmem_context *ctx, void *old)
{
	return allocate_old(allocate, ctx, 0, old, ALLOC_SIZE_0_2);
}

SYMBOL(accmem_allocate_0_3, "accmem_allocate@@ACCMEM_0.3");
int accmem_allocate_0_3(struct accmem_context *ctx, struct accmem_alloc *req)
{
	return allocate(ctx, req, 0);
}

SYMBOL(accmem_allocate_on_0_2, "accmem_allocate_on@ACCMEM_0.2");
int accmem_allocate_on_0_2(struct accmem_context *ctx, int stream, void *old)
{
	return allocate_old(allocate_on, ctx, stream, old, ALLOC_SIZE_0_2);
}

SYMBOL(accmem_allocate_on_0_3, "accmem_allocate_on@@ACCMEM_0.3");
int accmem_allocate_on_0_3(struct accmem_context *ctx, int stream,
			   struct accmem_alloc *req)
{
	return allocate_on(ctx, req, stream);
}

SYMBOL(accmem_get_info_0_1, "accmem_get_info@ACCMEM_0.1");
int accmem_get_info_0_1(struct accmem_context *ctx, uint32_t carveout,
			void *old)
{
	struct accmem_info info;
	int ret = accmem_read_info(ctx, carveout, &info);

	info.size = INFO_SIZE_0_1;
	memcpy(old, &info, INFO_SIZE_0_1);
	return ret;
}

SYMBOL(accmem_get_info_0_6, "accmem_get_info@@ACCMEM_0.6");
int accmem_get_info_0_6(struct accmem_context *ctx, uint32_t carveout,
			struct accmem_info *info)
{
	return accmem_read_info(ctx, carveout, info);
}
