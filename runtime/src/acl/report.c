// SPDX-License-Identifier: MIT
/*
 * Reports of the ACL front-end: callbacks that a thread of the program is to run.
 *
 * A subscription binds a stream to a thread. The stream adds a report to the queue, and the
 * thread takes it. When the stream or the process ends, its subscription ends: its reports
 * are done without being run.
 *
 * Locking: accmem_acl_callbacks_lock protects subscriptions and reports, and is taken last.
 */
#include <stdlib.h>

#include "acl/locks.h"
#include "acl/report.h"
#include "acl/wait.h"

static struct acl_subscription *subscriptions;
static struct acl_report *reports, **reports_tail = &reports;
/* Innermost callback that the calling thread runs, or NULL. */
static __thread struct acl_report *running;
pthread_cond_t accmem_acl_reports_change;

__attribute__((constructor)) static void report_init(void)
{
	accmem_acl_cond_init(&accmem_acl_reports_change);
}

void accmem_acl_report_put(struct acl_report *report)
{
	if (!--report->users)
		free(report);
}

static void report_done(struct acl_report *report)
{
	report->done = true;
	pthread_cond_broadcast(&accmem_acl_reports_change);
	accmem_acl_report_put(report);
}

void accmem_acl_report_begin(struct acl_report *report)
{
	report->outer = running;
	running = report;
}

void accmem_acl_report_end(struct acl_report *report)
{
	running = report->outer;
	report_done(report);
}

bool accmem_acl_report_blocks(aclrtStream stream)
{
	struct acl_report *report = running;

	if (!report)
		return false;
	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	while (report &&
	       (report->stream != stream || !report->blocks || report->done))
		report = report->outer;
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
	return report;
}

static struct acl_report *report_unlink(struct acl_report **link)
{
	struct acl_report *report = *link;

	*link = report->next;
	if (!report->next)
		reports_tail = link;
	return report;
}

struct acl_report *accmem_acl_report_take(uint64_t thread, aclrtStream stream)
{
	struct acl_report **link;

	for (link = &reports; *link; link = &(*link)->next)
		if (stream ? (*link)->stream == stream :
			     (*link)->thread == thread)
			return report_unlink(link);
	return NULL;
}

void accmem_acl_report_add(struct acl_report *report)
{
	report->users++;
	report->next = NULL;
	*reports_tail = report;
	reports_tail = &report->next;
	pthread_cond_broadcast(&accmem_acl_reports_change);
}

struct acl_subscription **accmem_acl_subscription_find(uint64_t thread,
						       aclrtStream stream)
{
	struct acl_subscription **link = &subscriptions;

	while (*link &&
	       (stream ? (*link)->stream != stream : (*link)->thread != thread))
		link = &(*link)->next;
	return link;
}

void accmem_acl_subscription_add(struct acl_subscription *subscription)
{
	subscription->next = subscriptions;
	subscriptions = subscription;
}

void accmem_acl_subscription_end(struct acl_subscription **link)
{
	struct acl_subscription *old = *link;
	struct acl_report *report;

	while ((report = accmem_acl_report_take(0, old->stream)))
		report_done(report);
	*link = old->next;
	free(old);
	pthread_cond_broadcast(&accmem_acl_reports_change);
}

void accmem_acl_callbacks_forget(aclrtStream stream)
{
	struct acl_subscription **link;

	pthread_mutex_lock(&accmem_acl_callbacks_lock);
	link = accmem_acl_subscription_find(0, stream);
	if (*link)
		accmem_acl_subscription_end(link);
	pthread_mutex_unlock(&accmem_acl_callbacks_lock);
}

void accmem_acl_callbacks_disown(void)
{
	/* the threads that wait, and the callbacks that run, are the parent's */
	report_init();
	running = NULL;
	while (subscriptions)
		accmem_acl_subscription_end(&subscriptions);
}
