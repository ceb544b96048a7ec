// SPDX-License-Identifier: GPL-2.0
/*
 * Test fences: /dev/test-fence makes dma_fences that a test signals.
 *
 * The module stands for another driver in tests of accmem. A test chooses when a fence
 * signals, in which context (the calling thread or a hard interrupt) and with which
 * error. CREATE returns a fence as a sync_file, SIGNAL signals it, COUNT returns the
 * number of its callbacks. The last close of the file signals the remaining fences with
 * -ECANCELED.
 *
 * The module cannot be unloaded, since a fence may outlive the file that created it.
 *
 * Locking: fence.lock is the lock of the dma_fence; the xarray of a file has its own.
 */
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "test_fence.h"

/**
 * struct fence - a fence of a test
 * @base: the dma_fence
 * @lock: the lock of @base
 * @work: signals the fence in a hard interrupt
 */
struct fence {
	struct dma_fence base;
	spinlock_t lock; /* guards base */
	struct irq_work work;
};

static const char *fence_name(struct dma_fence *fence)
{
	return "accmem-test";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

static void fence_signal_in_irq(struct irq_work *work)
{
	dma_fence_signal(&container_of(work, struct fence, work)->base);
}

static struct fence *fence_create(void)
{
	struct fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	spin_lock_init(&fence->lock);
	init_irq_work(&fence->work, fence_signal_in_irq);
	dma_fence_init(&fence->base, &fence_ops, &fence->lock,
		       dma_fence_context_alloc(1), 1);
	return fence;
}

/* Signal a fence and drop the caller's reference. */
static void fence_signal(struct fence *fence, int error, bool irq)
{
	if (error)
		dma_fence_set_error(&fence->base, error);
	if (irq) {
		irq_work_queue(&fence->work);
		irq_work_sync(&fence->work);
	} else {
		dma_fence_signal(&fence->base);
	}
	dma_fence_put(&fence->base);
}

static int test_fence_create(struct xarray *fences, void __user *arg)
{
	struct test_fence_create req = {};
	struct sync_file *sync_file = NULL;
	struct fence *fence = fence_create();
	int err = -ENOMEM;

	if (!fence)
		return err;
	req.fd = get_unused_fd_flags(O_CLOEXEC);
	if (req.fd < 0) {
		err = req.fd;
		goto err_fence;
	}
	sync_file = sync_file_create(&fence->base);
	if (!sync_file)
		goto err_fd;
	err = xa_alloc(fences, &req.id, fence, xa_limit_31b, GFP_KERNEL);
	if (err)
		goto err_file;
	if (copy_to_user(arg, &req, sizeof(req))) {
		xa_erase(fences, req.id);
		err = -EFAULT;
		goto err_file;
	}
	fd_install(req.fd, sync_file->file);
	return 0;

err_file:
	fput(sync_file->file);
err_fd:
	put_unused_fd(req.fd);
err_fence:
	dma_fence_put(&fence->base);
	return err;
}

static int test_fence_signal(struct xarray *fences, void __user *arg)
{
	struct test_fence_signal req;
	struct fence *fence;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	if (req.error > 0 || req.error < -MAX_ERRNO)
		return -EINVAL;
	fence = xa_erase(fences, req.id);
	if (!fence)
		return -ENOENT;
	fence_signal(fence, req.error, req.flags & TEST_FENCE_IRQ);
	return 0;
}

static int test_fence_count(struct xarray *fences, void __user *arg)
{
	struct test_fence_count req;
	struct list_head *callback;
	struct fence *fence;
	unsigned long flags;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	fence = xa_load(fences, req.id);
	if (!fence)
		return -ENOENT;
	req.callbacks = 0;
	spin_lock_irqsave(&fence->lock, flags);
	list_for_each(callback, &fence->base.cb_list)
		req.callbacks++;
	spin_unlock_irqrestore(&fence->lock, flags);
	return copy_to_user(arg, &req, sizeof(req)) ? -EFAULT : 0;
}

static long test_fence_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	switch (cmd) {
	case TEST_FENCE_CREATE:
		return test_fence_create(file->private_data,
					 (void __user *)arg);
	case TEST_FENCE_SIGNAL:
		return test_fence_signal(file->private_data,
					 (void __user *)arg);
	case TEST_FENCE_COUNT:
		return test_fence_count(file->private_data, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

static int test_fence_open(struct inode *inode, struct file *file)
{
	struct xarray *fences = kzalloc(sizeof(*fences), GFP_KERNEL);

	if (!fences)
		return -ENOMEM;
	xa_init_flags(fences, XA_FLAGS_ALLOC);
	file->private_data = fences;
	return 0;
}

static int test_fence_release(struct inode *inode, struct file *file)
{
	struct xarray *fences = file->private_data;
	struct fence *fence;
	unsigned long id;

	xa_for_each(fences, id, fence)
		fence_signal(fence, -ECANCELED, false);
	xa_destroy(fences);
	kfree(fences);
	return 0;
}

static const struct file_operations test_fence_fops = {
	.owner = THIS_MODULE,
	.open = test_fence_open,
	.release = test_fence_release,
	.unlocked_ioctl = test_fence_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice test_fence_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "test-fence",
	.fops = &test_fence_fops,
	.mode = 0600,
};

static int __init test_fence_init(void)
{
	return misc_register(&test_fence_device);
}
module_init(test_fence_init);

MODULE_DESCRIPTION("Fences for tests of accmem");
MODULE_LICENSE("GPL");
