// SPDX-License-Identifier: MIT
/*
 * Callbacks of the ACL front-end: functions of the program that a stream runs in its order.
 *
 * A stream's own thread runs host functions. A callback needs a subscription, which binds
 * the stream to a thread of the program: the stream adds a report to a queue, and the
 * thread runs it in aclrtProcessReport(). A stream that reaches a callback without a
 * subscription skips it.
 *
 * Locking: accmem_acl_callbacks_lock protects subscriptions and reports, and is taken
 * last. Functions of the program run without locks.
 */
#include <stdlib.h>

#include "acl/callback.h"
#include "acl/error.h"
#include "acl/locks.h"
#include "acl/stream.h"
#include "acl/wait.h"

/**
 * struct subscription - a stream whose callbacks a thread runs
 * @stream: the stream
 * @thread: pthread_t of the thread
 * @next: next in @subscriptions
 */
struct subscription {
	aclrtStream stream;
	uint64_t thread;
	struct subscription *next;
};

/**
 * struct report - a callback
 * @stream: stream that was given the callback
 * @thread: thread that runs it, once the report is in the queue
 * @function: function of the program
 * @argument: argument of @function
 * @blocks: the stream waits until @function has returned
 * @done: @function has returned, or is not going to run
 * @users: references: of the stream's operation, and of the queue or the thread
 * @next: next in @reports
 */
struct report {
	aclrtStream stream;
	uint64_t thread;
	aclrtCallback function;
	void *argument;
	bool blocks;
	bool done;
	unsigned int users;
	struct report *next;
};

/**
 * struct callback_op - a callback or a host function in a stream
 * @op: the operation
 * @report: report of a callback
 * @function: host function
 * @argument: argument of @function
 */
struct callback_op {
	struct acl_op op;
	struct report *report;
	aclrtHostFunc function;
	void *argument;
};

static struct subscription *subscriptions;
static struct report *reports, **reports_tail = &reports;
/* Signalled when a report is queued or done, or a subscription ends. */
static pthread_cond_t reports_change;

__attribute__((constructor)) static void callback_init(void)
{
	accmem_acl_cond_init(&reports_change);
}

static void report_put(struct report *report)
{
	if (!--report->users)
		free(report);
}

/* The report is done: let its stream go on. */
static void report_end(struct report *report)
{
	report->done = true;
	pthread_cond_broadcast(&reports_change);
	report_put(report);
}

static struct report *report_unlink(struct report **link)
{
	struct report *report = *link;

	*link = report->next;
	if (!report->next)
		reports_tail = link;
	return report;
}

/* Remove the first report of a thread, or of a stream if @stream is not NULL. */
static struct report *report_take(uint64_t thread, aclrtStream stream)
{
	struct report **link;

	for (link = &reports; *link; link = &(*link)->next)
		if (stream ? (*link)->stream == stream :
			     (*link)->thread == thread)
			return report_unlink(link);
	return NULL;
}

/* Find the link to a subscription: of @stream, or any of @thread if @stream is NULL. */
static struct subscription **subscription_find(uint64_t thread,
					       aclrtStream stream)
{
	struct subscription **link = &subscriptions;

	while (*link &&
	       (stream ? (*link)->stream != stream : (*link)->thread != thread))
		link = &(*link)->next;
	return link;
}

static void subscription_end(struct subscription **link)
{
	struct subscription *old = *link;
	struct report *report;

	while ((report = report_take(0, old->stream)))
		report_end(report);
	*link = old->next;
	free(old);
	pthread_cond_broadcast(&reports_change);
}

void accmem_acl_callbacks_forget(aclrtStream stream)
{
	struct subscription **link;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	link = subscription_find(0, stream);
	if (*link)
		subscription_end(link);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

void accmem_acl_callbacks_disown(void)
{
	/* the threads that wait are the parent's */
	callback_init();
	while (subscriptions)
		subscription_end(&subscriptions);
}

static void callback_run(struct acl_op *op)
{
	struct report *report = ((struct callback_op *)op)->report;
	struct subscription *subscription;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	subscription = *subscription_find(0, report->stream);
	if (subscription && !report->done) {
		report->thread = subscription->thread;
		report->users++;
		report->next = NULL;
		*reports_tail = report;
		reports_tail = &report->next;
		pthread_cond_broadcast(&reports_change);
		while (report->blocks && !report->done)
			pthread_cond_wait(&reports_change,
					  &accmem_acl_callbacks_lock);
	}
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

static void callback_stop(struct acl_op *op)
{
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	((struct callback_op *)op)->report->done = true;
	pthread_cond_broadcast(&reports_change);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

static void callback_drop(struct acl_op *op)
{
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	report_put(((struct callback_op *)op)->report);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	free(op);
}

static bool is_subscribed(aclrtStream stream)
{
	bool yes;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	yes = *subscription_find(0, stream);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	return yes;
}

static struct callback_op *callback_new(aclrtStream stream, aclrtCallback fn,
					void *argument, bool blocks)
{
	struct callback_op *op = calloc(1, sizeof(*op));
	struct report *report = calloc(1, sizeof(*report));

	if (!op || !report) {
		free(op);
		free(report);
		return NULL;
	}
	*report = (struct report){
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
	struct subscription *new;
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
	known = *subscription_find(0, stream);
	if (!known) {
		*new = (struct subscription){ stream, threadId, subscriptions };
		subscriptions = new;
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
	struct subscription **link;
	aclError error = ACL_SUCCESS;

	stream = accmem_acl_stream_resolve(stream, &error);
	if (!stream)
		return error;
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	link = subscription_find(0, stream);
	if (!*link)
		error = accmem_acl_fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
					"no thread is subscribed to the stream");
	else if ((*link)->thread != threadId)
		error = accmem_acl_fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
					"another thread is subscribed");
	else
		subscription_end(link);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	return error;
}

/* Run the reports of the calling thread. The caller holds the lock. */
static bool reports_run(uint64_t thread)
{
	struct report *report;
	bool any = false;

	while ((report = report_take(thread, NULL))) {
		pthread_mutex_unlock(&accmem_acl_callbacks_lock);
		report->function(report->argument);
		pthread_mutex_lock(&accmem_acl_callbacks_lock);
		report_end(report);
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
		subscribed = *subscription_find(thread, NULL);
		if (any || !subscribed || !in_time)
			break;
		in_time = accmem_acl_cond_wait(&reports_change,
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
