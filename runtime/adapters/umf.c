// SPDX-License-Identifier: MIT
/*
 * A memory provider of the Unified Memory Framework, on a pool.
 *
 * The framework's structure of functions has changed:
 * - 0.10 alone has free() among the optional functions;
 * - since 1.0 there are no structures of optional functions, pointers that are only
 *   read are const, and finalize(), get_name() and get_last_native_error() return a
 *   result;
 * - 1.2 requires get_cache_line_size().
 *
 * Locking: that of umf_parts.c.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <accmem_umf.h>

#include "umf_ipc.h"
#include "umf_parts.h"

#define NAME "accmem"
#define PARAMS_SIZE_1 offsetof(struct accmem_umf_params, exportable)
#define CACHE_LINE 64 /* the default alignment of a pool */

#ifndef UMF_PROVIDER_OPS_VERSION_CURRENT
#define UMF_PROVIDER_OPS_VERSION_CURRENT UMF_VERSION_CURRENT
#endif
#define VERSION UMF_PROVIDER_OPS_VERSION_CURRENT

#define V0_10 UMF_MAKE_VERSION(0, 10)

#if VERSION == V0_10
#define FREE ext.free
#else
#define FREE free
#endif
#if UMF_MAKE_VERSION(1, 0) <= VERSION
#define EXT(name) ext_##name
#define IPC(name) ext_##name
#else
#define EXT(name) ext.name
#define IPC(name) ipc.name
#endif

/* A function whose pointers are const, as one of those whose are not in some version. */
#define UMF_FUNCTION(name) \
	((__typeof__(((umf_memory_provider_ops_t *)NULL)->name))umf_##name)

/**
 * struct provider - what UMF calls the provider
 * @pool: where memory comes from
 * @own: the context, if it and the pool are the provider's own
 * @kind: enum accmem_kind
 * @carveout: index of it
 * @mapped: memory is mapped from the beginning
 * @exportable: allocations may be exported
 * @page_sizes: those of the carveout, ored
 * @parts: allocations that are not all of an allocation of the pool
 */
struct provider {
	struct accmem_pool *pool;
	struct accmem_context *own;
	uint32_t kind;
	uint32_t carveout;
	uint32_t mapped;
	uint32_t exportable;
	uint64_t page_sizes;
	struct umf_parts parts;
};

static __thread int32_t umf_error;

static umf_result_t umf_specific(int ret)
{
	umf_error = -ret;
	return UMF_RESULT_ERROR_MEMORY_PROVIDER_SPECIFIC;
}

static umf_result_t umf_result(int ret)
{
	switch (ret) {
	case 0:
		return UMF_RESULT_SUCCESS;
	case -ENOMEM:
	case -EDQUOT:
	case -ETIMEDOUT:
		return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	case -EINVAL:
	case -ENOENT:
	case -EOVERFLOW:
		return UMF_RESULT_ERROR_INVALID_ARGUMENT;
	case -EOPNOTSUPP:
		return UMF_RESULT_ERROR_NOT_SUPPORTED;
	default:
		return umf_specific(ret);
	}
}

/* A device that is not there is no pointer that nothing is at. */
static umf_result_t umf_make_pool(struct provider *p, const char *device)
{
	int ret = accmem_open(device, &p->own);

	if (ret)
		return ret == -ENOENT ? umf_specific(ret) : umf_result(ret);
	ret = accmem_pool_create(p->own, NULL, &p->pool);
	if (ret)
		accmem_close(p->own);
	return umf_result(ret);
}

static void umf_free_provider(struct provider *p)
{
	accmem_umf_parts_destroy(&p->parts);
	if (p->own) {
		accmem_pool_destroy(p->pool);
		accmem_close(p->own);
	}
	free(p);
}

static umf_result_t umf_initialize(const void *data, void **result)
{
	const struct accmem_umf_params none = { .size = sizeof(none) };
	const struct accmem_umf_params *params = data ? data : &none;
	struct accmem_info info;
	uint32_t exportable = 0, reserved = 0;
	umf_result_t made;
	struct provider *p;
	int ret;

	/* an older program has a shorter structure, without these members */
	if (params->size == sizeof(*params)) {
		exportable = params->exportable;
		reserved = params->reserved;
	}
	if ((params->size && params->size != PARAMS_SIZE_1 &&
	     params->size != sizeof(*params)) ||
	    params->unmapped > 1 || exportable > 1 || reserved) {
		accmem_set_last_error("size %u, unmapped %u, exportable %u",
				      params->size, params->unmapped,
				      exportable);
		return UMF_RESULT_ERROR_INVALID_ARGUMENT;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
	accmem_umf_parts_create(&p->parts);
	p->kind = params->kind;
	p->carveout = params->carveout;
	p->mapped = !params->unmapped;
	p->exportable = exportable;
	p->pool = params->pool;
	made = p->pool ? UMF_RESULT_SUCCESS : umf_make_pool(p, params->device);
	if (made) {
		free(p);
		return made;
	}
	ret = accmem_get_info(accmem_pool_context(p->pool), p->carveout, &info);
	if (ret) {
		umf_free_provider(p);
		return umf_result(ret);
	}
	p->page_sizes = info.page_sizes | info.granule;
	*result = p;
	return UMF_RESULT_SUCCESS;
}

/*
 * Pools align to powers of two only. For another alignment, take as much more as the
 * next multiple may be away, and give out a part. What is before it counts as freed.
 */
static int umf_alloc_at_multiple(struct provider *p,
				 struct accmem_pool_request *req)
{
	const uint64_t alignment = req->alignment, length = req->length;
	uint64_t gap;
	char *block;
	int ret;

	req->alignment = alignment & -alignment;
	if (!length ||
	    __builtin_add_overflow(length, alignment - req->alignment,
				   &req->length))
		return -EINVAL;
	ret = accmem_pool_allocate(p->pool, req);
	if (ret)
		return ret;
	block = req->pointer;
	gap = (alignment - (uintptr_t)block % alignment) % alignment;
	ret = accmem_umf_parts_add(&p->parts, block, gap, length);
	if (ret)
		accmem_pool_release(p->pool, block);
	else
		req->pointer = block + gap;
	return ret;
}

static umf_result_t umf_alloc(void *provider, size_t size, size_t alignment,
			      void **pointer)
{
	struct provider *p = provider;
	struct accmem_pool_request req = {
		.length = size,
		.alignment = alignment,
		.kind = p->kind,
		.carveout = p->carveout,
		.mapped = p->mapped,
		.exportable = p->exportable,
	};
	const size_t page = p->page_sizes & -p->page_sizes;
	int ret;

	if (!(alignment & (alignment - 1))) {
		ret = accmem_pool_allocate(p->pool, &req);
	} else if (!(alignment % page)) {
		ret = umf_alloc_at_multiple(p, &req);
	} else {
		accmem_set_last_error("%zu bytes: no multiple of %zu: align %zu",
				      size, page, alignment);
		return UMF_RESULT_ERROR_INVALID_ALIGNMENT;
	}
	if (!ret)
		*pointer = req.pointer;
	return umf_result(ret);
}

static umf_result_t umf_no_allocation(const void *pointer, size_t size)
{
	accmem_set_last_error("%p, %zu bytes: no such allocation", pointer,
			      size);
	return UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

/* Is it an allocation of the pool, of that size if the size is not 0? */
static bool umf_is_block(struct provider *p, const void *pointer, size_t size)
{
	struct accmem_pool_block block;

	return !accmem_pool_lookup(p->pool, pointer, &block) &&
	       block.pointer == pointer && (!size || size == block.length);
}

static umf_result_t umf_free(void *provider, void *pointer, size_t size)
{
	struct provider *p = provider;
	void *block = pointer;
	int ret;

	if (!pointer)
		return UMF_RESULT_SUCCESS;
	ret = accmem_umf_parts_free(&p->parts, pointer, size, &block);
	if (ret == -ENOENT && umf_is_block(p, pointer, size))
		ret = 0;
	if (ret)
		return umf_no_allocation(pointer, size);
	return block ? umf_result(accmem_pool_release(p->pool, block)) :
		       UMF_RESULT_SUCCESS;
}

/* A pool frees whole allocations: what is split stays until all its parts are freed. */
static umf_result_t umf_split(void *provider, void *pointer, size_t total,
			      size_t first)
{
	struct provider *p = provider;
	int ret = accmem_umf_parts_split(&p->parts, pointer, total, first);

	if (ret == -ENOENT && total && umf_is_block(p, pointer, total))
		ret = accmem_umf_parts_add(&p->parts, pointer, 0, total) ?:
			      accmem_umf_parts_split(&p->parts, pointer, total,
						     first);
	if (ret == -ENOENT)
		return umf_no_allocation(pointer, total);
	if (ret)
		accmem_set_last_error("split of %p, %zu bytes, after %zu: %s",
				      pointer, total, first, strerror(-ret));
	return umf_result(ret);
}

static umf_result_t umf_merge(void *provider, void *low, void *high,
			      size_t total)
{
	struct provider *p = provider;
	int ret = accmem_umf_parts_merge(&p->parts, low, high, total);

	if (ret)
		accmem_set_last_error("merge of %p and %p, %zu bytes: %s", low,
				      high, total, strerror(-ret));
	return umf_result(ret);
}

static umf_result_t umf_ipc_result(int ret)
{
	switch (ret) {
	case -EPERM: /* not exportable */
	case -ENOTTY: /* the driver has no exports */
		return UMF_RESULT_ERROR_NOT_SUPPORTED;
	case -ENXIO:
		return UMF_RESULT_ERROR_INVALID_ARGUMENT;
	default:
		return umf_result(ret);
	}
}

static umf_result_t umf_get_ipc_handle_size(void *provider, size_t *size)
{
	(void)provider;
	*size = sizeof(struct umf_ipc);
	return UMF_RESULT_SUCCESS;
}

static umf_result_t umf_get_ipc_handle(void *provider, const void *pointer,
				       size_t size, void *data)
{
	const struct provider *p = provider;
	struct umf_ipc ipc;
	int ret = accmem_umf_ipc_get(p->pool, pointer, size, &ipc);

	if (ret == -ENOENT)
		return umf_no_allocation(pointer, size);
	if (!ret)
		memcpy(data, &ipc, sizeof(ipc));
	return umf_ipc_result(ret);
}

static umf_result_t umf_put_ipc_handle(void *provider, void *data)
{
	struct umf_ipc ipc;

	(void)provider;
	memcpy(&ipc, data, sizeof(ipc));
	return umf_result(accmem_umf_ipc_put(&ipc));
}

static umf_result_t umf_open_ipc_handle(void *provider, void *data,
					void **pointer)
{
	const struct provider *p = provider;
	struct umf_ipc ipc;
	int ret;

	memcpy(&ipc, data, sizeof(ipc));
	ret = accmem_umf_ipc_open(p->pool, &ipc, p->mapped, pointer);
	return umf_ipc_result(ret);
}

static umf_result_t umf_close_ipc_handle(void *provider, void *pointer,
					 size_t size)
{
	const struct provider *p = provider;

	return umf_result(accmem_umf_ipc_close(p->pool, pointer, size));
}

static umf_result_t umf_get_recommended_page_size(void *provider, size_t size,
						  size_t *page_size)
{
	const struct provider *p = provider;
	uint64_t best = p->page_sizes & -p->page_sizes, next;

	for (next = best; next && next <= size; next <<= 1)
		if (next & p->page_sizes)
			best = next;
	*page_size = best;
	return UMF_RESULT_SUCCESS;
}

static umf_result_t umf_get_min_page_size(void *provider, const void *pointer,
					  size_t *page_size)
{
	const struct provider *p = provider;
	struct accmem_pool_block block;

	*page_size = p->page_sizes & -p->page_sizes;
	if (!pointer)
		return UMF_RESULT_SUCCESS;
	if (accmem_pool_lookup(p->pool, pointer, &block))
		return UMF_RESULT_ERROR_INVALID_ARGUMENT;
	if (block.page_size)
		*page_size = block.page_size;
	return UMF_RESULT_SUCCESS;
}

#if UMF_MAKE_VERSION(1, 2) <= VERSION
static umf_result_t umf_get_cache_line_size(void *provider, size_t *size)
{
	(void)provider;
	*size = CACHE_LINE;
	return UMF_RESULT_SUCCESS;
}
#endif

#if UMF_MAKE_VERSION(1, 0) <= VERSION

#if UMF_MAKE_VERSION(1, 1) <= VERSION
#define NO_SUCH_PATH UMF_RESULT_ERROR_INVALID_CTL_PATH
#else
#define NO_SUCH_PATH UMF_RESULT_ERROR_NOT_SUPPORTED
#endif

static umf_result_t umf_read(struct provider *p, const char *name,
			     size_t *value)
{
	struct accmem_pool_stats stats;

	accmem_pool_get_stats(p->pool, &stats);
	if (!strcmp(name, "stats.allocated_memory"))
		*value = stats.live_bytes;
	else if (!strcmp(name, "stats.peak_memory"))
		*value = stats.peak_live_bytes;
	else if (!strcmp(name, "pool"))
		*value = (uintptr_t)p->pool;
	else
		return NO_SUCH_PATH;
	return UMF_RESULT_SUCCESS;
}

/*
 * The statistics have the names that they have in the framework's own providers. The
 * pool is here because the framework does not return what initialize() has made.
 */
static umf_result_t umf_ctl(void *provider, umf_ctl_query_source_t source,
			    const char *name, void *arg, size_t size,
			    umf_ctl_query_type_t type, va_list args)
{
	struct provider *p = provider;
	umf_result_t ret;
	size_t value;

	(void)source;
	(void)args;
	if (type == CTL_QUERY_RUNNABLE &&
	    !strcmp(name, "stats.peak_memory.reset")) {
		accmem_pool_reset_peaks(p->pool);
		return UMF_RESULT_SUCCESS;
	}
	if (type != CTL_QUERY_READ)
		return NO_SUCH_PATH;
	ret = umf_read(p, name, &value);
	if (ret)
		return ret;
	if (!arg || size < sizeof(value))
		return UMF_RESULT_ERROR_INVALID_ARGUMENT;
	memcpy(arg, &value, sizeof(value));
	return UMF_RESULT_SUCCESS;
}

static umf_result_t umf_finalize(void *provider)
{
	umf_free_provider(provider);
	return UMF_RESULT_SUCCESS;
}

static umf_result_t umf_get_name(void *provider, const char **name)
{
	(void)provider;
	*name = NAME;
	return UMF_RESULT_SUCCESS;
}

static umf_result_t
umf_get_last_native_error(void *provider, const char **message, int32_t *error)
{
	(void)provider;
	*message = accmem_last_error();
	*error = umf_error;
	return UMF_RESULT_SUCCESS;
}

#else

static void umf_finalize(void *provider)
{
	umf_free_provider(provider);
}

static const char *umf_get_name(void *provider)
{
	(void)provider;
	return NAME;
}

static void umf_get_last_native_error(void *provider, const char **message,
				      int32_t *error)
{
	(void)provider;
	*message = accmem_last_error();
	*error = umf_error;
}

#endif

const umf_memory_provider_ops_t *accmem_umf_provider_ops(void)
{
	static const umf_memory_provider_ops_t ops = {
		.version = VERSION,
		.initialize = UMF_FUNCTION(initialize),
		.finalize = umf_finalize,
		.alloc = umf_alloc,
		.FREE = umf_free,
		.get_last_native_error = umf_get_last_native_error,
		.get_recommended_page_size = umf_get_recommended_page_size,
		.get_min_page_size = UMF_FUNCTION(get_min_page_size),
		.get_name = umf_get_name,
		.EXT(allocation_split) = umf_split,
		.EXT(allocation_merge) = umf_merge,
		.IPC(get_ipc_handle_size) = umf_get_ipc_handle_size,
		.IPC(get_ipc_handle) = umf_get_ipc_handle,
		.IPC(put_ipc_handle) = umf_put_ipc_handle,
		.IPC(open_ipc_handle) = umf_open_ipc_handle,
		.IPC(close_ipc_handle) = umf_close_ipc_handle,
#if UMF_MAKE_VERSION(1, 0) <= VERSION
		.ext_ctl = umf_ctl,
#endif
#if UMF_MAKE_VERSION(1, 2) <= VERSION
		.get_cache_line_size = umf_get_cache_line_size,
#endif
	};

	return &ops;
}

struct accmem_pool *accmem_umf_pool(void *provider)
{
	return ((struct provider *)provider)->pool;
}
