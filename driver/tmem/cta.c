// SPDX-License-Identifier: GPL-2.0
/*
 * CTAs: the open file, poll and exit.
 *
 * A struct accmem_cta lives as long as its file. The last close of the file is the
 * exit of the CTA, which frees the columns that the CTA holds.
 *
 * A caller that sleeps in a call holds a reference to the file, so no caller sleeps
 * during an exit. When a process closes its last descriptor of the CTA, cta_flush()
 * ends the sleep of that process's caller.
 *
 * A CTA without a number (id 0) was never launched. Its release frees the structure
 * and is no exit.
 *
 * Locking: accmem_tmem.lock.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/slab.h>

#include "internal.h"
#include "trace/tmem_trace.h"

static void cta_destroy(struct accmem_cta *cta)
{
	put_pid(cta->caller);
	accmem_tmem_put(cta->tmem);
	kfree(cta);
}

/* Remove a launched CTA from the arbiter and free its columns. */
static void cta_leave(struct accmem_cta *cta)
{
	struct accmem_tmem *tmem = cta->tmem;
	struct accmem_columns_cta *peer;
	u64 units;

	cancel_delayed_work_sync(&cta->expiry);
	spin_lock(&tmem->lock);
	/* An interrupted or queued call holds no reference to the file: end it. */
	accmem_cta_give_up(cta);
	accmem_columns_cancel(&tmem->columns, &cta->c);
	peer = cta->c.peer;
	units = accmem_columns_exit(&tmem->columns, &cta->c);
	if (peer)
		accmem_cta_notify_polls(accmem_to_cta(peer));
	accmem_cta_check_hazards(cta);
	/* Trace the exit before the grants that become possible by it. */
	trace_accmem_tmem_exit(cta, hweight64(units) * ACCMEM_TMEM_UNIT);
	accmem_tmem_add_stats(&tmem->stats, &cta->stats);
	accmem_cta_remove_poller(cta);
	accmem_tmem_wake(tmem);
	accmem_tmem_unlock(tmem);
	accmem_cta_stop_notify(cta);
	if (units)
		accmem_tmem_report_leak(cta, units);
	if (accmem_cta_has_hazards(cta))
		accmem_cta_report_hazards(cta);
}

static int cta_release(struct inode *inode, struct file *file)
{
	struct accmem_cta *cta = file->private_data;

	if (cta->id)
		cta_leave(cta);
	cta_destroy(cta);
	return 0;
}

/*
 * A process closes a descriptor of the CTA. If a caller in that process sleeps in a
 * call and no descriptor is left, the call must end: the caller holds the file, so
 * the CTA could not exit otherwise.
 *
 * The sleeping caller searches the descriptor table when it runs, once for all the
 * descriptors closed until then. A search here would be a walk through the table for
 * each close. Descriptors in other processes do not count.
 */
static int cta_flush(struct file *file, fl_owner_t id)
{
	struct accmem_cta *cta = file->private_data;
	struct accmem_tmem *tmem = cta->tmem;

	/* This is the last reference to the file: cta_release() follows. */
	if (file_count(file) == 1)
		return 0;
	/* An exiting process closes its files: no thread of it sleeps in a call. */
	if (id != current->files)
		return 0;
	spin_lock(&tmem->lock);
	/*
	 * A caller that is about to sleep reads nr_closed, then looks up a
	 * descriptor.
	 */
	WRITE_ONCE(cta->nr_closed, cta->nr_closed + 1);
	if (cta->wait == ACCMEM_CTA_ASLEEP && cta->waiter->files == id) {
		WRITE_ONCE(cta->recheck_fds, true);
		wake_up_process(cta->waiter);
	}
	spin_unlock(&tmem->lock);
	/*
	 * Wake the callers of read(), but not those of poll(): no poll asks for
	 * EPOLLNVAL.
	 */
	wake_up_interruptible_poll(&cta->poll, EPOLLNVAL);
	return 0;
}

/*
 * Poll a CTA. The file is readable in two cases:
 *  - There is a completion.
 *  - No call is queued, and the last alloc that failed with EAGAIN would be granted
 *    now. The caller of poll has no place in the queue of the arbiter, though.
 * After a reset or an exit of the peer, EPOLLHUP is set.
 */
static __poll_t cta_poll(struct file *file, struct poll_table_struct *table)
{
	struct accmem_cta *cta = file->private_data;
	struct accmem_tmem *tmem = cta->tmem;
	__poll_t mask = 0;

	poll_wait(file, &cta->poll, table);
	spin_lock(&tmem->lock);
	accmem_cta_drop_orphan(cta);
	accmem_tmem_wake(tmem);
	if (tmem->columns.ended)
		mask = EPOLLERR | EPOLLHUP;
	else if (cta->c.peer_gone)
		mask = EPOLLHUP;
	if (cta->wait == ACCMEM_CTA_COMPLETED ||
	    (!mask && accmem_cta_would_grant(cta)))
		mask |= EPOLLIN | EPOLLRDNORM;
	/*
	 * An edge-triggered poll needs the next event, even if the file is
	 * readable now.
	 */
	if (!accmem_cta_is_queued(cta))
		accmem_cta_add_poller(cta);
	accmem_tmem_unlock(tmem);
	return mask;
}

static const struct file_operations cta_fops = {
	.owner = THIS_MODULE,
	.flush = cta_flush,
	.release = cta_release,
	.read = accmem_cta_read,
	.mmap = accmem_cta_mmap,
	.unlocked_ioctl = accmem_cta_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.poll = cta_poll,
	.show_fdinfo = accmem_cta_show_fdinfo,
	.llseek = noop_llseek,
};

/**
 * accmem_cta_create() - allocate a CTA and its file
 * @tmem: Tensor Memory of the context
 * @window: user memory in which the addresses of allocs may be stored
 *
 * The CTA is not launched yet, and the caller sets its place. Before the launch gives the
 * CTA a number, fput() of the file frees the CTA and is no exit.
 *
 * Context: Process context. May sleep.
 *
 * Return: the CTA, or an error pointer.
 */
struct accmem_cta *accmem_cta_create(struct accmem_tmem *tmem,
				     const struct accmem_window *window)
{
	struct accmem_cta *cta = kzalloc(sizeof(*cta), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!cta)
		return ERR_PTR(-ENOMEM);
	kref_get(&tmem->refs);
	cta->tmem = tmem;
	cta->window = *window;
	cta->poll_columns = ACCMEM_TMEM_UNIT;
	init_waitqueue_head(&cta->poll);
	INIT_LIST_HEAD(&cta->notify);
	accmem_cta_init_pollers(cta);
	INIT_DELAYED_WORK(&cta->expiry, accmem_cta_expired);
	file = anon_inode_getfile("[accmem-cta]", &cta_fops, cta, O_RDWR);
	if (IS_ERR(file)) {
		cta_destroy(cta);
		return ERR_CAST(file);
	}
	cta->file = file;
	return cta;
}
