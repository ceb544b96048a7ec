// SPDX-License-Identifier: GPL-2.0
/*
 * Queued calls of a CTA, and the completions that read() returns.
 *
 * A queued call waits without a caller. The arbiter (lib/columns) has queued calls
 * and calls of sleeping callers in the same queue.
 *
 * States: ACCMEM_CTA_IN_QUEUE -> ACCMEM_CTA_COMPLETED -> ACCMEM_CTA_IDLE.
 * accmem_cta_complete() in wake.c makes the completion, and read() removes it. A CTA
 * has at most one queued call or completion, and can make its next call after the
 * read.
 *
 * Locking: accmem_tmem.lock.
 */
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "internal.h"
#include "trace/tmem_trace.h"

static int queue_begin(struct accmem_cta *cta, bool wait)
{
	struct accmem_columns *c = &cta->tmem->columns;
	const struct accmem_cta_call *call = &cta->call;

	if (call->op == ACCMEM_CTA_OP_DEALLOC)
		return accmem_columns_dealloc(c, &cta->c, call->address,
					      call->columns, wait);
	trace_accmem_tmem_request(cta, call->columns);
	return accmem_columns_alloc(c, &cta->c, call->columns, wait);
}

/*
 * Put a call into its first state: completed if @err is 0, else waiting until
 * the deadline.
 */
static void queue_enter(struct accmem_cta *cta, int err, bool may_wait)
{
	if (!err) {
		accmem_cta_complete(cta, 0);
		return;
	}
	accmem_cta_begin_wait(cta);
	cta->wait = ACCMEM_CTA_IN_QUEUE;
	/* The peer's store has no deadline: a call that may not wait waits for it. */
	accmem_cta_expire_at(cta, may_wait ? cta->call.deadline_ns : 0);
}

/**
 * accmem_cta_submit() - queue a call
 * @cta: the CTA
 * @call: the call, whose flags were checked
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0 if a completion follows; an error if the call has failed at once.
 */
int accmem_cta_submit(struct accmem_cta *cta,
		      const struct accmem_cta_call *call)
{
	struct accmem_tmem *tmem = cta->tmem;
	bool wait = !call->deadline_ns || ktime_get_ns() < call->deadline_ns;
	int err;

	spin_lock(&tmem->lock);
	accmem_cta_resume(cta, call); /* ends this thread's interrupted call */
	err = -EBUSY;
	if (!accmem_cta_is_busy(cta)) {
		cta->call = *call;
		cta->waited = false;
		cta->c.warp = call->warp;
		err = queue_begin(cta, wait);
	}
	if (!err || err == -EINPROGRESS) {
		queue_enter(cta, err, wait);
		err = 0;
	} else {
		err = accmem_cta_conclude(cta, call, err);
	}
	accmem_tmem_wake(tmem);
	accmem_tmem_unlock(tmem);
	if (err)
		accmem_tmem_report(cta, call, err);
	return err;
}

/**
 * accmem_cta_cancel() - cancel the queued call of a CTA
 * @cta: the CTA
 *
 * The call completes with -ECANCELED.
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0, or -ENOENT if no queued call waits.
 */
int accmem_cta_cancel(struct accmem_cta *cta)
{
	struct accmem_tmem *tmem = cta->tmem;
	int err = -ENOENT;

	spin_lock(&tmem->lock);
	if (cta->wait == ACCMEM_CTA_IN_QUEUE) {
		accmem_columns_cancel(&tmem->columns, &cta->c);
		accmem_cta_complete(cta, -ECANCELED);
		accmem_tmem_wake(tmem);
		err = 0;
	}
	accmem_tmem_unlock(tmem);
	return err;
}

/*
 * Return true if a completion can be read or nr_closed differs from @nr. The reads are
 * racy: queue_take() and the next queue_wait() check again under the lock.
 */
static bool queue_has_news(const struct accmem_cta *cta, unsigned int nr)
{
	return READ_ONCE(cta->wait) != ACCMEM_CTA_IN_QUEUE ||
	       READ_ONCE(cta->nr_closed) != nr;
}

/*
 * Sleep until a completion may be ready. Return -ECANCELED if the process has no
 * descriptor of the CTA any more: the sleeping caller would delay the exit of the CTA.
 */
static int queue_wait(struct accmem_cta *cta)
{
	bool may_be_closed;
	unsigned int nr;

	/* cta_flush() increments nr_closed under the lock. */
	spin_lock(&cta->tmem->lock);
	nr = cta->nr_closed;
	may_be_closed = accmem_cta_may_be_closed(cta);
	spin_unlock(&cta->tmem->lock);
	if (may_be_closed && !accmem_cta_is_open(cta, nr))
		return -ECANCELED;
	return wait_event_interruptible(cta->poll, queue_has_news(cta, nr));
}

static void queue_describe(const struct accmem_cta *cta,
			   struct accmem_cta_completion *completion)
{
	*completion = (struct accmem_cta_completion){
		.user_data = cta->call.user_data,
		.result = cta->result,
		.call = cta->call.op == ACCMEM_CTA_OP_ALLOC ?
				_IOC_NR(ACCMEM_IOC_CTA_ALLOC) :
				_IOC_NR(ACCMEM_IOC_CTA_DEALLOC),
		.address = cta->call.address,
		.columns = cta->call.columns,
	};
}

/*
 * Remove the queued call or its completion, and wake poll if an alloc would be
 * granted.
 */
static void queue_end(struct accmem_cta *cta)
{
	cta->wait = ACCMEM_CTA_IDLE;
	if (accmem_cta_is_watched(cta))
		accmem_cta_check_poll(cta);
}

/*
 * Copy the completion to user space and remove it. The copy is made under the lock, so
 * a completion that cannot be copied stays. Return 0, -EAGAIN, -ENODATA or -EFAULT.
 */
static int queue_take(struct accmem_cta *cta, char __user *buf,
		      struct accmem_cta_call *call, int *result)
{
	struct accmem_cta_completion completion;
	int err;

	spin_lock(&cta->tmem->lock);
	if (cta->wait == ACCMEM_CTA_COMPLETED) {
		queue_describe(cta, &completion);
		pagefault_disable();
		err = copy_to_user(buf, &completion, sizeof(completion)) ?
			      -EFAULT :
			      0;
		pagefault_enable();
	} else {
		err = cta->wait == ACCMEM_CTA_IN_QUEUE ? -EAGAIN : -ENODATA;
	}
	if (!err) {
		accmem_columns_returned(&cta->c);
		*call = cta->call;
		*result = cta->result;
		queue_end(cta);
	}
	accmem_tmem_unlock(cta->tmem);
	return err;
}

/**
 * accmem_cta_read() - read a completion
 * @file: the file of the CTA
 * @buf: user buffer
 * @size: size of the buffer in bytes
 * @pos: not used
 *
 * If the completion's error means that a rule was broken, the error is reported to the
 * kernel log here, and so are hazards that strict mode has found.
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: the size of a completion, or an error as <uapi/linux/accmem.h> lists them.
 */
ssize_t accmem_cta_read(struct file *file, char __user *buf, size_t size,
			loff_t *pos)
{
	const size_t need = sizeof(struct accmem_cta_completion);
	struct accmem_cta *cta = file->private_data;
	struct accmem_cta_call call;
	int err, result;

	if (size < need)
		return -EINVAL;
	for (;;) {
		err = queue_take(cta, buf, &call, &result);
		if (err == -EFAULT) {
			if (fault_in_subpage_writeable(buf, need))
				return -EFAULT;
		} else if (err == -EAGAIN && !(file->f_flags & O_NONBLOCK)) {
			err = queue_wait(cta);
			if (err)
				return err;
		} else {
			break;
		}
		if (signal_pending(current))
			return -ERESTARTSYS;
		cond_resched();
	}
	if (err)
		return err;
	if (result)
		accmem_tmem_report(cta, &call, result);
	if (accmem_cta_has_hazards(cta))
		accmem_cta_report_hazards(cta);
	return sizeof(struct accmem_cta_completion);
}
