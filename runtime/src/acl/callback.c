// SPDX-License-Identifier: MIT
/*
 * Callbacks of the ACL front-end: functions of the program that a stream runs in its order.
 *
 * A stream's own thread runs host functions. A callback needs a subscription, which binds
 * the stream to a thread of the program: the stream adds a report to a queue, and the
 * thread runs it in aclrtProcessReport(). A stream that reaches a callback without a
 * subscription skips it.
 *
 * Locking: accmem_acl_callbacks_lock, for subscriptions and reports. Functions of the
 * program run without locks.
 */
#include <stdlib.h>

#include "acl/error.h"
#include "acl/locks.h"
#include "acl/report.h"
#include "acl/stream.h"
#include "acl/wait.h"

/**
 * struct callback_op - a callback or a host function in a stream
 * @op: the operation
 * @report: report of a callback
 * @function: host function
 * @argument: argument of @function
 */
struct callback_op {
	struct acl_op op;
	struct acl_report *report;
	aclrtHostFunc function;
	void *argument;
};

static void callback_run(struct acl_op *op)
{
	struct acl_report *report = ((struct callback_op *)op)->report;
	struct acl_subscription *subscription;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	subscription = *accmem_acl_subscription_find(0, report->stream);
	if (subscription && !report->done) {
		report->thread = subscription->thread;
		accmem_acl_report_add(report);
		while (report->blocks && !report->done)
			pthread_cond_wait(&accmem_acl_reports_change,
					  &accmem_acl_callbacks_lock);
	}
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

static void callback_stop(struct acl_op *op)
{
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	((struct callback_op *)op)->report->done = true;
	pthread_cond_broadcast(&accmem_acl_reports_change);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

static void callback_drop(struct acl_op *op)
{
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	accmem_acl_report_put(((struct callback_op *)op)->report);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	free(op);
}

static bool is_subscribed(aclrtStream stream)
{
	bool yes;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	yes = *accmem_acl_subscription_find(0, stream);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	return yes;
}

static struct callback_op *callback_new(aclrtStream stream, aclrtCallback fn,
					void *argument, bool blocks)
{
	struct callback_op *op = calloc(1, sizeof(*op));
	struct acl_report *report = calloc(1, sizeof(*report));

	if (!op || !report) {
		free(op);
		free(report);
		return NULL;
	}
	*report = (struct acl_report){
		.stream = stream,
		.function = fn,
		.argument = argument,
		.blocks = blocks,
		.users = 1,
	};
	op->op.run = callback_run;
	op->op.stop = callback_stop;
	op->op.drop = callback_drop;
	op->report = report;
	return op;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData,
			     aclrtCallbackBlockType blockType,
			     aclrtStream stream)
{
	struct callback_op *op;
	aclError error;

	if (blockType != ACL_CALLBACK_NO_BLOCK &&
	    blockType != ACL_CALLBACK_BLOCK)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "no such type of callback");
	if (!fn)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "fn is NULL");
	stream = accmem_acl_stream_resolve(stream, &error);
	if (!stream)
		return error;
	if (!is_subscribed(stream))
		return accmem_acl_fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
				       "no thread is subscribed to the stream");
	op = callback_new(stream, fn, userData,
			  blockType == ACL_CALLBACK_BLOCK);
	if (!op)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	error = accmem_acl_stream_add(stream, &op->op);
	if (error)
		callback_drop(&op->op);
	return error;
}

static void host_function_run(struct acl_op *op)
{
	struct callback_op *host = (struct callback_op *)op;

	host->function(host->argument);
}

static void host_function_drop(struct acl_op *op)
{
	free(op);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
	struct callback_op *op;
	aclError error;

	if (!fn)
		return accmem_acl_fail(ACL_ERROR_RT_PARAM_INVALID,
				       "fn is NULL");
	op = calloc(1, sizeof(*op));
	if (!op)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	op->op.run = host_function_run;
	op->op.drop = host_function_drop;
	op->function = fn;
	op->argument = args;
	error = accmem_acl_stream_add(stream, &op->op);
	if (error)
		free(op);
	return error;
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	struct acl_subscription *new;
	aclrtStreamStatus status;
	aclError error;
	bool known;

	stream = accmem_acl_stream_resolve(stream, &error);
	if (stream)
		error = aclrtStreamQuery(stream, &status);
	if (!stream || error)
		return error;
	new = malloc(sizeof(*new));
	if (!new)
		return accmem_acl_fail(ACL_ERROR_BAD_ALLOC, "no memory");
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	known = *accmem_acl_subscription_find(0, stream);
	if (!known) {
		*new = (struct acl_subscription){ .stream = stream,
						  .thread = threadId };
		accmem_acl_subscription_add(new);
	}
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	if (!known)
		return ACL_SUCCESS;
	free(new);
	return accmem_acl_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
			       "a thread is subscribed to the stream");
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	struct acl_subscription **link;
	aclError error = ACL_SUCCESS;

	stream = accmem_acl_stream_resolve(stream, &error);
	if (!stream)
		return error;
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	link = accmem_acl_subscription_find(0, stream);
	if (!*link)
		error = accmem_acl_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
					"no thread is subscribed to the stream");
	else if ((*link)->thread != threadId)
		error = accmem_acl_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
					"another thread is subscribed");
	else
		accmem_acl_subscription_end(link);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	return error;
}

/* Run the reports of the calling thread. The caller holds the lock. */
static bool reports_run(uint64_t thread)
{
	struct acl_report *report;
	bool any = false;

	while ((report = accmem_acl_report_take(thread, NULL))) {
		accmem_acl_report_begin(report);
		pthread_mutex_unlock(&accmem_acl_callbacks_lock);
		report->function(report->argument);
		pthread_mutex_lock(&accmem_acl_callbacks_lock);
		accmem_acl_report_end(report);
		any = true;
	}
	return any;
}

aclError aclrtProcessReport(int32_t timeout)
{
	const uint64_t thread = (uint64_t)pthread_self();
	struct acl_timeout until;
	bool subscribed, any, in_time = true;

	if (timeout < -1 || !timeout)
		return accmem_acl_fail(ACL_ERROR_INVALID_PARAM,
				       "a timeout is -1, or at least 1 ms");
	accmem_acl_timeout_start(&until, timeout);
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	for (;;) {
		any = reports_run(thread);
		subscribed = *accmem_acl_subscription_find(thread, NULL);
		if (any || !subscribed || !in_time)
			break;
		in_time = accmem_acl_cond_wait(&accmem_acl_reports_change,
					       &accmem_acl_callbacks_lock,
					       &until);
	}
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	if (any)
		return ACL_SUCCESS;
	return subscribed ?
		       accmem_acl_fail(ACL_ERROR_RT_REPORT_TIMEOUT,
				       "no stream has come to a callback") :
		       accmem_acl_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
				       "the thread is not subscribed");
}
