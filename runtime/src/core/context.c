// SPDX-License-Identifier: MIT
/*
 * Contexts and the calls that are one ioctl each.
 *
 * Owns the list of the process's contexts, which exists for fork: the fork
 * handlers hold every lock of a context across it, so that the child finds none
 * taken by a thread that it does not have.
 *
 * Lock order: registry_lock > accmem_context.lock.
 */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/internal.h"

#define DEFAULT_DEVICE "/dev/accmem0"

/*
 * A program built against an older header hands over the structure of its
 * day. When one of these grows, the calls that take it need a new symbol
 * version, and the old version keeps the old size (compat.c).
 */
static_assert(sizeof(struct accmem_info) == 128, "needs a symbol version");
static_assert(sizeof(struct accmem_alloc) == 128, "needs a symbol version");
static_assert(sizeof(struct accmem_realloc) == 88, "needs a symbol version");
static_assert(sizeof(struct accmem_query) == 104, "needs a symbol version");
static_assert(sizeof(struct accmem_batch_alloc) == 80,
	      "needs a symbol version");
static_assert(sizeof(struct accmem_batch_free) == 16, "needs a symbol version");

/* Protects @registry and the links of the contexts in it. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct accmem_context *registry;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static int registry_error;

static void lock_all(void)
{
	struct accmem_context *ctx;

	pthread_mutex_lock(&registry_lock);
	for (ctx = registry; ctx; ctx = ctx->next)
		pthread_mutex_lock(&ctx->lock);
}

static void unlock_all(void)
{
	struct accmem_context *ctx;

	for (ctx = registry; ctx; ctx = ctx->next)
		pthread_mutex_unlock(&ctx->lock);
	pthread_mutex_unlock(&registry_lock);
}

static void watch_fork(void)
{
	registry_error = pthread_atfork(lock_all, unlock_all, unlock_all);
}

int accmem_watch_fork(void)
{
	int ret = pthread_once(&registry_once, watch_fork);

	return ret ? -ret : -registry_error;
}

static int register_context(struct accmem_context *ctx)
{
	int ret = accmem_watch_fork();

	if (ret)
		return ret;
	pthread_mutex_lock(&registry_lock);
	ctx->next = registry;
	registry = ctx;
	pthread_mutex_unlock(&registry_lock);
	return 0;
}

static void unregister_context(struct accmem_context *ctx)
{
	struct accmem_context **link;

	pthread_mutex_lock(&registry_lock);
	for (link = &registry; *link != ctx; link = &(*link)->next)
		;
	*link = ctx->next;
	pthread_mutex_unlock(&registry_lock);
}

int accmem_call(const struct accmem_context *ctx, unsigned long command,
		void *argument)
{
	return ioctl(ctx->fd, command, argument) < 0 ? -errno : 0;
}

/* The environment is not trusted in a program that runs with raised rights. */
static const char *device_path(const char *path)
{
	if (path)
		return path;
	path = secure_getenv("ACCMEM_DEVICE");
	return path && *path ? path : DEFAULT_DEVICE;
}

static int get_host_info(struct accmem_context *ctx, struct accmem_info *info)
{
	*info = (struct accmem_info){ .size = sizeof(*info),
				      .flags = ACCMEM_INFO_HOST };
	return accmem_call(ctx, ACCMEM_IOC_INFO, info);
}

/* The device's memory, and that of the host where there is some. */
static int set_addresses(struct accmem_context *ctx)
{
	struct accmem_info info, host;
	uint64_t end;
	int ret;

	ret = accmem_sum_info(ctx, &info);
	if (ret)
		return ret;
	end = info.address_base + info.address_span;
	if (info.features & ACCMEM_FEATURE_HOST && !get_host_info(ctx, &host) &&
	    host.address_base + host.address_span > end)
		end = host.address_base + host.address_span;
	ctx->address_base = info.address_base;
	ctx->address_span = end - info.address_base;
	return 0;
}

static int open_context(const char *path, struct accmem_context **result)
{
	struct accmem_context *ctx;
	int ret;

	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;

	ctx->fd = open(device_path(path), O_RDWR | O_CLOEXEC);
	if (ctx->fd < 0) {
		ret = -errno;
		goto free_ctx;
	}
	ret = set_addresses(ctx);
	if (ret)
		goto close_fd;
	ret = -pthread_mutex_init(&ctx->lock, NULL);
	if (ret)
		goto close_fd;
	ret = register_context(ctx);
	if (ret)
		goto destroy_lock;

	accmem_window_reserve(ctx, ctx->address_span);
	*result = ctx;
	return 0;

destroy_lock:
	pthread_mutex_destroy(&ctx->lock);
close_fd:
	close(ctx->fd);
free_ctx:
	free(ctx);
	return ret;
}

/* Who is cancelled in the middle of it would leave what nobody knows of. */
int accmem_open(const char *path, struct accmem_context **result)
{
	int state = accmem_cancel_off();
	int ret = open_context(path, result);

	accmem_cancel_restore(state);
	return ret;
}

void accmem_close(struct accmem_context *ctx)
{
	if (!ctx)
		return;
	unregister_context(ctx);
	accmem_window_destroy(ctx);
	accmem_close_locked(ctx->fd);
	pthread_mutex_destroy(&ctx->lock);
	free(ctx);
}

int accmem_fd(const struct accmem_context *ctx)
{
	return ctx->fd;
}

int accmem_get_info(struct accmem_context *ctx, uint32_t carveout,
		    struct accmem_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->carveout = carveout;
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
	sum->free_bytes += one->free_bytes;
	if (one->largest_run > sum->largest_run)
		sum->largest_run = one->largest_run;
}

int accmem_sum_info(struct accmem_context *ctx, struct accmem_info *sum)
{
	struct accmem_info one;
	uint32_t i;
	int ret;

	ret = accmem_get_info(ctx, 0, sum);
	for (i = 1; !ret && i < sum->nr_carveouts; i++) {
		ret = accmem_get_info(ctx, i, &one);
		if (!ret)
			add_info(sum, &one);
	}
	return ret;
}

static int free_buffer(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_call(ctx, ACCMEM_IOC_FREE, &req);
}

int accmem_allocate_now(struct accmem_context *ctx, struct accmem_alloc *req)
{
	int ret;

	req->size = sizeof(*req);
	ret = accmem_call(ctx, ACCMEM_IOC_ALLOC, req);
	if (ret)
		return ret;

	/*
	 * Something mapped here belongs to a buffer that was freed behind our
	 * back: by a process that shares the context, or by an ioctl. It must
	 * not pass for a mapping of the new buffer.
	 */
	pthread_mutex_lock(&ctx->lock);
	ret = accmem_unmap_range(ctx, req->address, req->footprint);
	pthread_mutex_unlock(&ctx->lock);
	if (ret)
		free_buffer(ctx, req->address);
	return ret;
}

int accmem_malloc(struct accmem_context *ctx, uint64_t length,
		  uint64_t *address)
{
	struct accmem_alloc req = { .length = length };
	int ret;

	ret = accmem_allocate_now(ctx, &req);
	if (!ret)
		*address = req.address;
	return ret;
}

/* The mapping goes first, so that FREE is what gives the memory back. */
static int unmap_and_free_locked(struct accmem_context *ctx,
				 struct accmem_free *req)
{
	int ret = accmem_unmap_locked(ctx, req->address);

	/* an address inside a buffer is left to FREE to refuse */
	if (!ret || ret == -ENOENT || ret == -EINVAL)
		ret = accmem_call(ctx, ACCMEM_IOC_FREE, req);
	return ret;
}

/*
 * What is freed for later may be refused, as for a stream that is none, and stays mapped
 * then. Another thread that is given the address maps it when it has the lock.
 */
static int free_and_unmap_locked(struct accmem_context *ctx,
				 struct accmem_free *req)
{
	int ret = accmem_call(ctx, ACCMEM_IOC_FREE, req);

	if (!ret || ret == -ENOENT)
		accmem_unmap_locked(ctx, req->address);
	return ret;
}

int accmem_free_unmapped(struct accmem_context *ctx, struct accmem_free *req)
{
	int ret;

	pthread_mutex_lock(&ctx->lock);
	ret = req->flags ? free_and_unmap_locked(ctx, req) :
			   unmap_and_free_locked(ctx, req);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int accmem_release(struct accmem_context *ctx, uint64_t address)
{
	struct accmem_free req = { .size = sizeof(req), .address = address };

	return accmem_free_unmapped(ctx, &req);
}

static int resize_locked(struct accmem_context *ctx, struct accmem_realloc *req)
{
	uint64_t address = req->address;
	int ret;

	ret = accmem_call(ctx, ACCMEM_IOC_REALLOC, req);
	if (ret)
		return ret;
	if (req->address == address) {
		accmem_trim_locked(ctx, address, req->footprint);
		return 0;
	}
	/* what cannot be unmapped shows memory that is nobody else's */
	accmem_unmap_locked(ctx, address);
	accmem_unmap_range(ctx, req->address, req->footprint);
	return 0;
}

int accmem_reallocate(struct accmem_context *ctx, struct accmem_realloc *req)
{
	int ret;

	req->size = sizeof(*req);
	/* nobody maps what gets the old address before that is unmapped */
	pthread_mutex_lock(&ctx->lock);
	ret = resize_locked(ctx, req);
	pthread_mutex_unlock(&ctx->lock);
	return ret;
}

int accmem_device_access(struct accmem_context *ctx, struct accmem_access *req)
{
	req->size = sizeof(*req);
	return accmem_call(ctx, ACCMEM_IOC_ACCESS, req);
}

int accmem_prefetch_shared(struct accmem_context *ctx, uint64_t address,
			   uint64_t length, uint32_t flags)
{
	struct accmem_prefetch req = { .size = sizeof(req),
				       .flags = flags,
				       .address = address,
				       .length = length };

	return accmem_call(ctx, ACCMEM_IOC_PREFETCH, &req);
}

int accmem_advise_shared(struct accmem_context *ctx, uint64_t address,
			 uint64_t length, uint32_t advice)
{
	struct accmem_advise req = { .size = sizeof(req),
				     .address = address,
				     .length = length,
				     .advice = advice };

	return accmem_call(ctx, ACCMEM_IOC_ADVISE, &req);
}

int accmem_get_query(struct accmem_context *ctx, uint64_t address,
		     struct accmem_query *query)
{
	memset(query, 0, sizeof(*query));
	query->size = sizeof(*query);
	query->address = address;
	return accmem_call(ctx, ACCMEM_IOC_QUERY, query);
}
