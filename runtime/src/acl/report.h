/* SPDX-License-Identifier: MIT */
/*
 * Reports: callbacks that a thread of the program is to run.
 *
 * The caller of all functions but accmem_acl_callbacks_forget() holds
 * accmem_acl_callbacks_lock.
 */
#ifndef ACCMEM_RUNTIME_ACL_REPORT_H
#define ACCMEM_RUNTIME_ACL_REPORT_H

#include <pthread.h>
#include <stdbool.h>

#include <acl/acl.h>

/**
 * struct acl_subscription - a stream whose callbacks a thread runs
 * @stream: the stream
 * @thread: pthread_t of the thread
 * @next: next in @subscriptions
 */
struct acl_subscription {
	aclrtStream stream;
	uint64_t thread;
	struct acl_subscription *next;
};

/**
 * struct acl_report - a callback
 * @stream: stream that was given the callback
 * @thread: thread that runs it, once the report is in the queue
 * @function: function of the program
 * @argument: argument of @function
 * @blocks: the stream waits until @function has returned
 * @done: @function has returned, or is not going to run
 * @users: references: of the stream's operation, and of the queue or the thread
 * @next: next in @reports
 * @outer: while the thread runs @function: the callback that called aclrtProcessReport()
 */
struct acl_report {
	aclrtStream stream;
	uint64_t thread;
	aclrtCallback function;
	void *argument;
	bool blocks;
	bool done;
	unsigned int users;
	struct acl_report *next;
	struct acl_report *outer;
};

/* Signalled when a report is queued or done, or a subscription ends. */
extern pthread_cond_t accmem_acl_reports_change;

/* Add a report to the queue, with a reference. */
void accmem_acl_report_add(struct acl_report *report);

/* Remove the first report of a thread, or of a stream if @stream is not NULL. */
struct acl_report *accmem_acl_report_take(uint64_t thread, aclrtStream stream);

/* The calling thread is going to run the report. */
void accmem_acl_report_begin(struct acl_report *report);

/* The thread has run the report: let its stream go on. */
void accmem_acl_report_end(struct acl_report *report);
void accmem_acl_report_put(struct acl_report *report);

/* Does @stream wait for a callback that the calling thread runs? Takes the lock. */
bool accmem_acl_report_blocks(aclrtStream stream);

/* Find the link to a subscription: of @stream, or any of @thread if @stream is NULL. */
struct acl_subscription **accmem_acl_subscription_find(uint64_t thread,
						       aclrtStream stream);
void accmem_acl_subscription_add(struct acl_subscription *subscription);
void accmem_acl_subscription_end(struct acl_subscription **link);

/* Drop the subscription of a stream that has ended, and its reports. */
void accmem_acl_callbacks_forget(aclrtStream stream);

/* A child of fork() has no streams: drop everything. */
void accmem_acl_callbacks_disown(void);

#endif /* ACCMEM_RUNTIME_ACL_REPORT_H */
