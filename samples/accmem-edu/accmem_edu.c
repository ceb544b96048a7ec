// SPDX-License-Identifier: GPL-2.0
/*
 * A sample accelerator: the engine of QEMU's device "edu", with the memory of a device
 * "ivshmem" beside it.
 *
 * The engine moves up to 2 KiB between the bus and a buffer of its own, and takes 100 ms
 * for it. A copy is a move in and a move out for each part. Programs copy their memory by
 * ACCMEM_EDU_COPY; accmem uses the engine to clear and to copy small parts.
 *
 * Jobs are executed in order. A job is done by the interrupt handler, step by step.
 *
 * Locking: edu.lock guards the list of jobs and the engine. It is taken in the interrupt.
 */
#include <linux/accmem_provider.h>
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/sync_file.h>
#include <linux/uaccess.h>

#include "accmem_edu.h"
#include "compat/compat.h"

#define EDU_INTERRUPT_STATUS 0x24
#define EDU_INTERRUPT_ACK 0x64
#define EDU_DMA_SOURCE 0x80
#define EDU_DMA_TARGET 0x88
#define EDU_DMA_COUNT 0x90
#define EDU_DMA_COMMAND 0x98
#define EDU_DMA_START 0x1
#define EDU_DMA_OUT 0x2 /* from the buffer to the bus */
#define EDU_DMA_INTERRUPT 0x4
#define EDU_BUFFER 0x40000
#define EDU_PART 2048u /* bytes of one move */
#define EDU_SMALL 8192u /* what accmem lets the engine do */

/* A copy in progress. @out: the part is in the engine's buffer, and is to be written. */
struct edu_job {
	struct dma_fence fence;
	struct list_head link;
	u64 to;
	u64 from;
	u64 left;
	bool out;
};

static struct {
	spinlock_t lock; /* jobs, and the engine */
	struct list_head jobs;
	bool dead;
	void __iomem *regs;
	struct pci_dev *engine;
	struct pci_dev *memory;
	struct accmem_provider *provider;
	dma_addr_t start; /* bus address of the memory */
	void *zeros;
	dma_addr_t zeros_at;
	u64 context; /* of the fences */
	atomic64_t seqno;
	struct mutex users; /* ioctls, against the removal of the device */
} edu = {
	.lock = __SPIN_LOCK_UNLOCKED(edu.lock),
	.jobs = LIST_HEAD_INIT(edu.jobs),
	.users = __MUTEX_INITIALIZER(edu.users),
};

static const char *edu_name(struct dma_fence *fence)
{
	return "accmem-edu";
}

static void edu_free_job(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct edu_job, fence.rcu));
	module_put(THIS_MODULE);
}

/* A fence may outlive every file. The exit of the module waits for the callbacks. */
static void edu_release(struct dma_fence *fence)
{
	call_rcu(&fence->rcu, edu_free_job);
}

static const struct dma_fence_ops edu_fence_ops = {
	.get_driver_name = edu_name,
	.get_timeline_name = edu_name,
	.release = edu_release,
};

/* Start the next move of the first job. */
static void edu_start(void)
{
	struct edu_job *job =
		list_first_entry_or_null(&edu.jobs, struct edu_job, link);
	u32 command = EDU_DMA_START | EDU_DMA_INTERRUPT;

	lockdep_assert_held(&edu.lock);
	if (!job)
		return;
	writeq(job->out ? EDU_BUFFER : job->from, edu.regs + EDU_DMA_SOURCE);
	writeq(job->out ? job->to : EDU_BUFFER, edu.regs + EDU_DMA_TARGET);
	writeq(min_t(u64, job->left, EDU_PART), edu.regs + EDU_DMA_COUNT);
	writeq(job->out ? command | EDU_DMA_OUT : command,
	       edu.regs + EDU_DMA_COMMAND);
}

static void edu_finish(struct edu_job *job, int err)
{
	lockdep_assert_held(&edu.lock);
	list_del(&job->link);
	if (err)
		dma_fence_set_error(&job->fence, err);
	dma_fence_signal_locked(&job->fence);
	dma_fence_put(&job->fence);
}

static void edu_step(struct edu_job *job)
{
	u64 part = min_t(u64, job->left, EDU_PART);

	if (job->out) {
		job->left -= part;
		job->to += part;
		job->from += job->from == edu.zeros_at ? 0 : part;
	}
	job->out = !job->out;
	if (!job->left)
		edu_finish(job, 0);
}

static irqreturn_t edu_interrupt(int irq, void *arg)
{
	u32 status = readl(edu.regs + EDU_INTERRUPT_STATUS);
	struct edu_job *job;

	if (!status)
		return IRQ_NONE;
	writel(status, edu.regs + EDU_INTERRUPT_ACK);
	spin_lock(&edu.lock);
	job = list_first_entry_or_null(&edu.jobs, struct edu_job, link);
	if (job)
		edu_step(job);
	edu_start();
	spin_unlock(&edu.lock);
	return IRQ_HANDLED;
}

/* Queue a copy between bus addresses. Return its fence, with a reference. */
static struct dma_fence *edu_copy(u64 to, u64 from, u64 size)
{
	struct edu_job *job = kzalloc(sizeof(*job), GFP_KERNEL);
	struct dma_fence *fence;
	unsigned long flags;

	if (!job)
		return ERR_PTR(-ENOMEM);
	__module_get(THIS_MODULE);
	fence = &job->fence;
	job->to = to;
	job->from = from;
	job->left = size;
	spin_lock_irqsave(&edu.lock, flags);
	dma_fence_init(fence, &edu_fence_ops, &edu.lock, edu.context,
		       atomic64_inc_return(&edu.seqno));
	dma_fence_get(fence);
	list_add_tail(&job->link, &edu.jobs);
	if (edu.dead)
		edu_finish(job, -ENODEV);
	else if (list_is_singular(&edu.jobs))
		edu_start();
	spin_unlock_irqrestore(&edu.lock, flags);
	return fence;
}

static struct dma_fence *edu_op_clear(void *priv, unsigned int range,
				      u64 offset, u64 size)
{
	if (size > EDU_SMALL)
		return ERR_PTR(-EOPNOTSUPP);
	return edu_copy(edu.start + offset, edu.zeros_at, size);
}

static struct dma_fence *edu_op_copy(void *priv, unsigned int to, u64 to_offset,
				     unsigned int from, u64 from_offset,
				     u64 size)
{
	if (size > EDU_SMALL)
		return ERR_PTR(-EOPNOTSUPP);
	return edu_copy(edu.start + to_offset, edu.start + from_offset, size);
}

static const struct accmem_provider_ops edu_ops = {
	.clear = edu_op_clear,
	.copy = edu_op_copy,
};

/* Pin both parts, queue the copy, and unpin with its fence. */
static struct dma_fence *edu_copy_pinned(struct accmem_context *ctx,
					 const struct accmem_edu_copy *req)
{
	struct accmem_extent *to, *from;
	struct dma_fence *fence;

	to = accmem_pin(ctx, req->to, req->size, true);
	if (IS_ERR(to))
		return ERR_CAST(to);
	from = accmem_pin(ctx, req->from, req->size, false);
	if (IS_ERR(from)) {
		accmem_unpin(to, NULL);
		return ERR_CAST(from);
	}
	fence = edu_copy(edu.start + to->offset, edu.start + from->offset,
			 req->size);
	accmem_unpin(to, IS_ERR(fence) ? NULL : fence);
	accmem_unpin(from, IS_ERR(fence) ? NULL : fence);
	return fence;
}

static struct dma_fence *edu_copy_for(const struct accmem_edu_copy *req)
{
	struct accmem_context *ctx = ERR_PTR(-ENODEV);
	struct file *file = fget(req->memory);
	struct dma_fence *fence;

	if (!file)
		return ERR_PTR(-EBADF);
	mutex_lock(&edu.users);
	if (edu.provider)
		ctx = accmem_context_from_file(edu.provider, file);
	if (IS_ERR(ctx)) {
		fence = ERR_CAST(ctx);
	} else {
		fence = edu_copy_pinned(ctx, req);
		accmem_context_put(ctx);
	}
	mutex_unlock(&edu.users);
	fput(file);
	return fence;
}

static long edu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct accmem_edu_copy __user *user = (void __user *)arg;
	struct accmem_edu_copy req;
	struct dma_fence *fence;
	struct sync_file *sync;

	if (cmd != ACCMEM_EDU_COPY)
		return -ENOTTY;
	if (copy_from_user(&req, user, sizeof(req)))
		return -EFAULT;
	if (!req.size || req.size > ACCMEM_EDU_MAX ||
	    !IS_ALIGNED(req.to | req.from | req.size, 8))
		return -EINVAL;
	req.fence = get_unused_fd_flags(O_CLOEXEC);
	if (req.fence < 0)
		return req.fence;
	fence = edu_copy_for(&req);
	if (IS_ERR(fence)) {
		put_unused_fd(req.fence);
		return PTR_ERR(fence);
	}
	sync = sync_file_create(fence);
	dma_fence_put(fence);
	if (!sync || put_user(req.fence, &user->fence)) {
		put_unused_fd(req.fence);
		if (!sync)
			return -ENOMEM;
		fput(sync->file);
		return -EFAULT;
	}
	fd_install(req.fence, sync->file);
	return 0;
}

static const struct file_operations edu_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = edu_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice edu_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "accmem-edu",
	.fops = &edu_fops,
	.mode = 0600,
};

/* Give accmem the memory of the device beside the engine. */
static int edu_provide(struct pci_dev *engine)
{
	struct accmem_range range = {
		.flags = ACCMEM_RANGE_IO | ACCMEM_RANGE_CLAIMED |
			 ACCMEM_RANGE_PROBE,
		.node = NUMA_NO_NODE,
	};
	struct accmem_provider *provider;
	int err;

	range.start = pci_resource_start(edu.memory, 2);
	range.size = pci_resource_len(edu.memory, 2);
	edu.start = pci_bus_address(edu.memory, 2);
	provider = accmem_provider_create(&engine->dev, &edu_ops, NULL);
	if (IS_ERR(provider))
		return PTR_ERR(provider);
	err = accmem_provider_add_range(provider, &range) ?:
		      accmem_provider_publish(provider);
	if (err) {
		accmem_provider_unregister(provider);
		return err;
	}
	mutex_lock(&edu.users);
	edu.provider = provider;
	mutex_unlock(&edu.users);
	return 0;
}

/* Find the memory, and claim its BAR. edu_put_memory() undoes it. */
static int edu_get_memory(void)
{
	int err;

	edu.memory = pci_get_device(0x1af4, 0x1110, NULL);
	if (!edu.memory)
		return -ENODEV;
	err = pci_enable_device_mem(edu.memory);
	if (err)
		goto err_put;
	err = pci_request_region(edu.memory, 2, "accmem-edu");
	if (!err)
		return 0;
	pci_disable_device(edu.memory);
err_put:
	pci_dev_put(edu.memory);
	return err;
}

static void edu_put_memory(void)
{
	pci_release_region(edu.memory, 2);
	pci_disable_device(edu.memory);
	pci_dev_put(edu.memory);
}

/* Map the engine, and get its interrupt. The managed resources end with the driver. */
static int edu_get_engine(struct pci_dev *engine)
{
	int err = pcim_enable_device(engine);

	if (err)
		return err;
	err = dma_set_mask_and_coherent(&engine->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	edu.regs = pcim_iomap(engine, 0, 0);
	edu.zeros = dmam_alloc_coherent(&engine->dev, PAGE_SIZE, &edu.zeros_at,
					GFP_KERNEL);
	if (!edu.regs || !edu.zeros)
		return -ENOMEM;
	pci_set_master(engine);
	err = pci_alloc_irq_vectors(engine, 1, 1, PCI_IRQ_MSI);
	if (err < 0)
		return err;
	err = request_irq(pci_irq_vector(engine, 0), edu_interrupt, 0,
			  "accmem-edu", &edu);
	if (err)
		pci_free_irq_vectors(engine);
	return err;
}

/* The engine does nothing from here on: all jobs have ended. */
static void edu_put_engine(struct pci_dev *engine)
{
	struct edu_job *job, *next;
	unsigned long flags;

	spin_lock_irqsave(&edu.lock, flags);
	edu.dead = true;
	list_for_each_entry_safe(job, next, &edu.jobs, link)
		edu_finish(job, -ENODEV);
	spin_unlock_irqrestore(&edu.lock, flags);
	pci_clear_master(engine);
	free_irq(pci_irq_vector(engine, 0), &edu);
	pci_free_irq_vectors(engine);
}

static int edu_probe(struct pci_dev *engine, const struct pci_device_id *id)
{
	int err;

	if (edu.engine)
		return -EBUSY;
	err = edu_get_memory();
	if (err)
		return err;
	edu.dead = false;
	err = edu_get_engine(engine);
	if (err)
		goto err_memory;
	err = edu_provide(engine);
	if (err)
		goto err_engine;
	edu.engine = engine;
	return 0;

err_engine:
	edu_put_engine(engine);
err_memory:
	edu_put_memory();
	return err;
}

static void edu_remove(struct pci_dev *engine)
{
	struct accmem_provider *provider = edu.provider;

	mutex_lock(&edu.users);
	edu.provider = NULL;
	mutex_unlock(&edu.users);
	/* First the engine, so that calls of programs that wait for it end. */
	edu_put_engine(engine);
	accmem_provider_unregister(provider);
	edu_put_memory();
	edu.engine = NULL;
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{},
};
MODULE_DEVICE_TABLE(pci, edu_ids);

static struct pci_driver edu_driver = {
	.name = "accmem-edu",
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
};

static int __init edu_init(void)
{
	int err;

	edu.context = dma_fence_context_alloc(1);
	err = misc_register(&edu_misc);
	if (err)
		return err;
	err = pci_register_driver(&edu_driver);
	if (err)
		misc_deregister(&edu_misc);
	return err;
}
module_init(edu_init);

static void __exit edu_exit(void)
{
	pci_unregister_driver(&edu_driver);
	misc_deregister(&edu_misc);
	rcu_barrier();
}
module_exit(edu_exit);

MODULE_DESCRIPTION("Sample accelerator: QEMU's edu and ivshmem");
MODULE_LICENSE("GPL");
ACCMEM_IMPORT(ACCMEM);
