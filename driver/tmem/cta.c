// SPDX-License-Identifier: GPL-2.0
/*
 * CTAs: the file, poll, exit.
 *
 * Owns struct accmem_cta, which lives as long as its file. A caller that sleeps
 * holds the file, so an exit finds none; a process that closes its last descriptor
 * ends its wait first.
 *
 * Locks: accmem_tmem.lock.
 */
#include <linux/anon_inodes.h>
#include <linux/eventfd.h>
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
	if (cta->eventfd)
		eventfd_ctx_put(cta->eventfd);
	put_pid(cta->caller);
	accmem_tmem_put(cta->tmem);
	kfree(cta);
}

/* the CTA goes, and what it holds with it */
static void cta_leave(struct accmem_cta *cta)
{
	struct accmem_tmem *tmem = cta->tmem;
	struct accmem_columns_cta *peer;
	u64 units;

	cancel_delayed_work_sync(&cta->expiry);
	spin_lock(&tmem->lock);
	/* a call that nobody sleeps in does not hold the file */
	accmem_cta_give_up(cta);
	accmem_columns_cancel(&tmem->columns, &cta->c);
	peer = cta->c.peer;
	units = accmem_columns_exit(&tmem->columns, &cta->c);
	if (peer)
		accmem_cta_disconnect(accmem_to_cta(peer));
	accmem_cta_check_hazards(cta);
	/* before the grants that it makes possible */
	trace_accmem_tmem_exit(cta, hweight64(units) * ACCMEM_TMEM_UNIT);
	accmem_tmem_add_stats(&tmem->stats, &cta->stats);
	list_del_init(&cta->poll_link);
	accmem_tmem_wake(tmem);
	spin_unlock(&tmem->lock);
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
 * A descriptor is closed. When it was the last one of its process, a call that
 * this process waits in ends: it holds the file, and the CTA could not exit. The
 * waiter, or who reads, finds that out, once for all that are closed before it runs:
 * here it would be a walk through all of them for each. Other processes that have
 * the CTA, or had it, make no difference.
 */
static int cta_flush(struct file *file, fl_owner_t id)
{
	struct accmem_cta *cta = file->private_data;
	struct accmem_tmem *tmem = cta->tmem;

	/* nobody else has the file: this is the exit */
	if (file_count(file) == 1)
		return 0;
	/* a process that has ended waits for nothing */
	if (id != current->files)
		return 0;
	spin_lock(&tmem->lock);
	/* who is about to wait looks at this, then for a descriptor */
	WRITE_ONCE(cta->nr_closed, cta->nr_closed + 1);
	if (cta->wait == ACCMEM_CTA_ASLEEP && cta->waiter->files == id) {
		WRITE_ONCE(cta->recheck_fds, true);
		wake_up_process(cta->waiter);
	}
	spin_unlock(&tmem->lock);
	/* who reads is told, and not those who poll: nobody has this event */
	wake_up_interruptible_poll(&cta->poll, EPOLLNVAL);
	return 0;
}

/*
 * Readable: there is a completion; or, where no call is queued, the alloc that
 * last ended with EAGAIN would be granted now. That is no place in the queue. A
 * reset and a peer's exit hang up.
 */
static __poll_t cta_poll(struct file *file, struct poll_table_struct *table)
{
	struct accmem_cta *cta = file->private_data;
	struct accmem_tmem *tmem = cta->tmem;
	__poll_t mask = 0;

	poll_wait(file, &cta->poll, table);
	spin_lock(&tmem->lock);
	if (tmem->columns.ended)
		mask = EPOLLERR | EPOLLHUP;
	else if (cta->c.peer_gone)
		mask = EPOLLHUP;
	if (cta->wait == ACCMEM_CTA_COMPLETED ||
	    (!mask && accmem_cta_would_grant(cta)))
		mask |= EPOLLIN | EPOLLRDNORM;
	/* who waits for edges is told of the next one, whatever is there now */
	if (list_empty(&cta->poll_link) && !accmem_cta_is_queued(cta))
		list_add_tail(&cta->poll_link, &tmem->pollers);
	spin_unlock(&tmem->lock);
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
 * accmem_cta_create() - make a CTA and its file
 * @tmem: its context's Tensor Memory
 * @va: which CTA it is, and where it runs; the fields that the arbiter wants
 * @window: where the addresses of its allocs may be stored
 *
 * It is not launched yet: until it has a number, fput() of its file is the end of
 * it, and no exit.
 *
 * Return: the CTA; or an error.
 */
struct accmem_cta *accmem_cta_create(struct accmem_tmem *tmem,
				     const struct accmem_columns_cta *va,
				     const struct accmem_window *window)
{
	struct accmem_cta *cta = kzalloc(sizeof(*cta), GFP_KERNEL_ACCOUNT);
	struct file *file;

	if (!cta)
		return ERR_PTR(-ENOMEM);
	kref_get(&tmem->refs);
	cta->tmem = tmem;
	cta->c = *va;
	cta->window = *window;
	cta->poll_columns = ACCMEM_TMEM_UNIT;
	init_waitqueue_head(&cta->poll);
	INIT_LIST_HEAD(&cta->poll_link);
	INIT_DELAYED_WORK(&cta->expiry, accmem_cta_expired);
	file = anon_inode_getfile("[accmem-cta]", &cta_fops, cta, O_RDWR);
	if (IS_ERR(file)) {
		cta_destroy(cta);
		return ERR_CAST(file);
	}
	cta->file = file;
	return cta;
}
