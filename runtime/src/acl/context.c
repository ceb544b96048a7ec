// SPDX-License-Identifier: MIT
/*
 * Contexts of the ACL front-end.
 *
 * A context stands for a device, and keeps the device open; it has no other state. A
 * device that a program has set has a context of its own.
 *
 * Locking: accmem_acl_devices_lock.
 */
#include <stdlib.h>

#include "acl/context.h"
#include "acl/device.h"
#include "acl/error.h"
#include "acl/locks.h"

/**
 * struct acl_context - a context
 * @device: number of its device
 * @id: number of the context, which no other context of the process has had; 0 for the own
 *	context of a device
 * @next: next in @contexts
 */
struct acl_context {
	int32_t device;
	uint64_t id;
	struct acl_context *next;
};

static struct acl_context *contexts; /* contexts that programs have created */
static struct acl_context own[ACL_MAX_DEVICES];
static uint64_t last_id;

/* The calling thread's context, maybe destroyed; NULL before the thread sets a device. */
static __thread struct acl_context *current;
/* Its number: a later context may have the same address. */
static __thread uint64_t current_id;

static void context_select(struct acl_context *context)
{
	current = context;
	current_id = context->id;
}

static struct acl_context **context_find(const struct acl_context *context)
{
	struct acl_context **at;

	for (at = &contexts; *at; at = &(*at)->next)
		if (*at == context)
			return at;
	return NULL;
}

/* Does the context exist, or does it belong to a device that is open? */
static bool context_is_valid(const struct acl_context *context)
{
	if (context >= own && context < own + ACL_MAX_DEVICES)
		return accmem_acl_device_find(context - own);
	return context_find(context);
}

static aclError context_unknown(void)
{
	return accmem_acl_fail(ACL_ERROR_INVALID_PARAM, "no such context");
}

static void context_free(struct acl_context **at)
{
	struct acl_context *old = *at;

	*at = old->next;
	if (current == old)
		current = NULL;
	free(old);
}

void accmem_acl_contexts_free(int32_t device)
{
	struct acl_context **at = &contexts;

	while (*at) {
		if ((*at)->device == device)
			context_free(at);
		else
			at = &(*at)->next;
	}
}

void accmem_acl_context_select(int32_t device)
{
	own[device].device = device;
	context_select(&own[device]);
}

int32_t accmem_acl_context_device(const struct acl_context *context)
{
	struct acl_context **at = context_find(context);

	return at ? (*at)->device : -1;
}

void accmem_acl_context_remove(const struct acl_context *context)
{
	context_free(context_find(context));
}

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
	aclError error = accmem_acl_device_check_id(deviceId);
	struct acl_device *device;
	struct acl_context *new;

	if (!context)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "context is NULL");
	if (error)
		return error;
	new = malloc(sizeof(*new));
	if (!new)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	pthread_mutex_lock(&accmem_acl_devices_lock);
	device = accmem_acl_device_open_locked(deviceId, &error);
	if (device) {
		device->contexts++;
		*new = (struct acl_context){ deviceId, ++last_id, contexts };
		contexts = new;
		accmem_acl_device_select(deviceId);
		context_select(new);
		*context = new;
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	if (!device)
		free(new);
	return error;
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
	struct acl_context *new = context;
	bool is_valid;

	pthread_mutex_lock(&accmem_acl_devices_lock);
	is_valid = context_is_valid(new);
	if (is_valid) {
		accmem_acl_device_select(new->device);
		context_select(new);
	}
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	return is_valid ? ACL_SUCCESS : context_unknown();
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
	bool is_valid;

	if (!context)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "context is NULL");
	pthread_mutex_lock(&accmem_acl_devices_lock);
	is_valid = current && context_is_valid(current) &&
		   current->id == current_id;
	pthread_mutex_unlock(&accmem_acl_devices_lock);
	if (!is_valid)
		return accmem_acl_fail(ACL_ERROR_RT_CONTEXT_NULL,
				       "the thread has no context");
	*context = current;
	return ACL_SUCCESS;
}
