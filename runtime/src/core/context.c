// SPDX-License-Identifier: MIT
/*
 * Contexts: open devices, and the list of them.
 *
 * A context is created by accmem_open() and destroyed by accmem_close(). The list exists
 * for fork(): the fork handlers hold all locks of all contexts, so that no lock in the
 * child belongs to a thread that exists in the parent only.
 *
 * Lock order: registry_lock > accmem_context.lock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/call.h"
#include "core/context.h"
#include "core/error.h"
#include "core/internal.h"
#include "core/util.h"

#define DEFAULT_DEVICE "/dev/accmem0"

/* Protects the list of contexts: @registry and accmem_context.next. */
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

static void start_child(void)
{
	struct accmem_context *ctx;

	for (ctx = registry; ctx; ctx = ctx->next)
		ctx->inherited = true;
	unlock_all();
}

static void watch_fork(void)
{
	registry_error = pthread_atfork(lock_all, unlock_all, start_child);
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

/* secure_getenv(): a set-user-ID program ignores the environment. */
const char *accmem_device_path(const char *path)
{
	if (path)
		return path;
	path = secure_getenv("ACCMEM_DEVICE");
	return path && *path ? path : DEFAULT_DEVICE;
}

/* The range of all device addresses, those of host memory included. */
static int set_addresses(struct accmem_context *ctx)
{
	struct accmem_info info, host;
	uint64_t end;
	int ret;

	ret = accmem_sum_info(ctx, &info);
	if (ret)
		return ret;
	end = info.address_base + info.address_span;
	if (info.features & ACCMEM_FEATURE_HOST &&
	    !accmem_query_host(ctx, &host) &&
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

	ctx->fd = open(accmem_device_path(path), O_RDWR | O_CLOEXEC);
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

/* A thread that is cancelled inside open_context() would leak the context. */
int accmem_open(const char *path, struct accmem_context **result)
{
	int state = accmem_cancel_off();
	int ret = open_context(path, result);

	accmem_cancel_restore(state);
	return accmem_fail(ret, "device %s", accmem_device_path(path));
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
