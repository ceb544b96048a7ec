// SPDX-License-Identifier: GPL-2.0
/*
 * A sample accelerator: the engine of QEMU's device "edu", with the memory of a device
 * "ivshmem" beside it.
 *
 * The engine moves up to 2 KiB between the bus and a buffer of its own. A move takes 100 ms
 * and ends with an interrupt. A copy consists of two moves for each 2 KiB: from the source
 * to the buffer, and from the buffer to the target. A job has up to 8 KiB: a copy for a
 * program (ACCMEM_EDU_COPY), or a clear or a copy for accmem. A workqueue executes the jobs
 * in order. While the queue is full, programs get EAGAIN, and the processor works for accmem.
 *
 * The sample does not notice that root removes the ivshmem device alone.
 *
 * Locking: edu.users guards edu.provider. edu.taken is set from probe until all is undone.
 */
#include <linux/accmem_provider.h>
#include <linux/completion.h>
#include <linux/dma-fence.h>
#include <linux/file.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iopoll.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sync_file.h>
#include <linux/workqueue.h>

#include "accmem_edu.h"
#include "compat/compat.h"

#define EDU_INTERRUPT_STATUS 0x24
#define EDU_INTERRUPT_ACK 0x64
#define EDU_DMA_SOURCE 0x80
#define EDU_DMA_TARGET 0x88
#define EDU_DMA_COUNT 0x90
#define EDU_DMA_COMMAND 0x98
#define EDU_DMA_START 0x1
#define EDU_DMA_IN 0x5 /* start, from the bus, with an interrupt */
#define EDU_DMA_OUT 0x7 /* the same, to the bus */
#define EDU_BUFFER 0x40000
#define EDU_PART 2048u /* bytes of one move */
#define EDU_PATIENCE (10 * HZ) /* for a move */
#define EDU_QUEUE 8 /* jobs */

/* A copy between bus addresses. @step: distance of two parts of the source; 0: the same */
struct edu_job {
	struct dma_fence fence;
	spinlock_t lock; /* of the fence */
	struct work_struct work;
	u64 to, from, left, step;
};

static struct {
	struct mutex users; /* guards provider */
	struct accmem_provider *provider;
	unsigned long taken; /* bit 0: an engine is bound */
	struct pci_dev *engine;
	struct workqueue_struct *jobs;
	atomic_t nr_jobs;
	struct completion moved; /* completed by the interrupt */
	bool dead; /* the driver is being unbound, or the device does not answer */
	void __iomem *regs;
	dma_addr_t start; /* of the memory, as the engine sees it */
	u64 size; /* of the memory; 0: not mapped */
	dma_addr_t zeros; /* EDU_PART zero bytes, the source of a clear */
} edu = {
	.users = __MUTEX_INITIALIZER(edu.users),
	.moved = COMPLETION_INITIALIZER(edu.moved),
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

/*
 * A fence may outlive all files. edu_exit() waits for the RCU callbacks, and a callback runs
 * only after the end of this function.
 */
static void edu_release(struct dma_fence *fence)
{
	rcu_read_lock();
	call_rcu(&fence->rcu, edu_free_job);
	rcu_read_unlock();
}

static const struct dma_fence_ops edu_fence_ops = {
	.get_driver_name = edu_name,
	.get_timeline_name = edu_name,
	.release = edu_release,
};

static irqreturn_t edu_interrupt(int irq, void *arg)
{
	u32 status = readl(edu.regs + EDU_INTERRUPT_STATUS);

	/* The kernel may call the handler once more when the interrupt changes processors. */
	if (!status)
		return IRQ_NONE;
	writel(status, edu.regs + EDU_INTERRUPT_ACK);
	complete(&edu.moved);
	return IRQ_HANDLED;
}

/* All jobs fail from here on. A move in progress cannot reach memory without bus mastering. */
static void edu_die(void)
{
	if (edu.engine)
		pci_clear_master(edu.engine);
	WRITE_ONCE(edu.dead, true);
	complete_all(&edu.moved);
}

/* Return false if the device does not answer, or if the driver is being unbound. */
static bool edu_move(u64 to, u64 from, u64 size, u64 command)
{
	writeq(from, edu.regs + EDU_DMA_SOURCE);
	writeq(to, edu.regs + EDU_DMA_TARGET);
	writeq(size, edu.regs + EDU_DMA_COUNT);
	writeq(command, edu.regs + EDU_DMA_COMMAND);
	if (!wait_for_completion_timeout(&edu.moved, EDU_PATIENCE))
		edu_die();
	return !READ_ONCE(edu.dead);
}

/*
 * Execute a job. When the driver is unbound, edu_stop() ends the wait for a move. A device that
 * was pulled out does not end a move: all jobs then fail, so that no fence waits for ever.
 */
static void edu_work(struct work_struct *work)
{
	struct edu_job *job = container_of(work, struct edu_job, work);
	u64 part;

	for (; job->left && !READ_ONCE(edu.dead); job->left -= part) {
		part = min_t(u64, job->left, EDU_PART);
		if (!edu_move(EDU_BUFFER, job->from, part, EDU_DMA_IN) ||
		    !edu_move(job->to, EDU_BUFFER, part, EDU_DMA_OUT))
			break;
		job->to += part;
		job->from += job->step;
	}
	if (READ_ONCE(edu.dead))
		dma_fence_set_error(&job->fence, -EIO);
	atomic_dec(&edu.nr_jobs);
	dma_fence_signal(&job->fence);
	dma_fence_put(&job->fence);
}

/* Queue a copy between bus addresses. Return its fence, with a reference. */
static struct dma_fence *edu_copy(u64 to, u64 from, u64 size, u64 step)
{
	struct edu_job *job;

	if (size > ACCMEM_EDU_MAX)
		return ERR_PTR(-EOPNOTSUPP);
	if (!atomic_add_unless(&edu.nr_jobs, 1, EDU_QUEUE))
		return ERR_PTR(-EAGAIN);
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job) {
		atomic_dec(&edu.nr_jobs);
		return ERR_PTR(-ENOMEM);
	}
	__module_get(THIS_MODULE);
	spin_lock_init(&job->lock);
	INIT_WORK(&job->work, edu_work);
	job->to = to;
	job->from = from;
	job->left = size;
	job->step = step;
	dma_fence_init(&job->fence, &edu_fence_ops, &job->lock,
		       dma_fence_context_alloc(1), 1);
	dma_fence_get(&job->fence);
	queue_work(edu.jobs, &job->work);
	return &job->fence;
}

static struct dma_fence *edu_op_clear(void *priv, unsigned int range,
				      u64 offset, u64 size)
{
	return edu_copy(edu.start + offset, edu.zeros, size, 0);
}

static struct dma_fence *edu_op_copy(void *priv, unsigned int to, u64 to_offset,
				     unsigned int from, u64 from_offset,
				     u64 size)
{
	return edu_copy(edu.start + to_offset, edu.start + from_offset, size,
			EDU_PART);
}

static const struct accmem_provider_ops edu_ops = {
	.clear = edu_op_clear,
	.copy = edu_op_copy,
};

/* Pin both parts, queue the copy, and unpin with its fence. */
static struct dma_fence *edu_copy_pinned(struct accmem_context *ctx,
					 const struct accmem_edu_copy *req)
{
	struct accmem_part parts[] = {
		{ .address = req->to, .size = req->size, .write = true },
		{ .address = req->from, .size = req->size },
	};
	struct accmem_pins *pins = accmem_pin(ctx, parts, ARRAY_SIZE(parts));
	struct dma_fence *fence;

	if (IS_ERR(pins))
		return ERR_CAST(pins);
	fence = edu_copy(edu.start + parts[0].offset,
			 edu.start + parts[1].offset, req->size, EDU_PART);
	accmem_unpin(pins, IS_ERR(fence) ? NULL : fence);
	return fence;
}

static struct dma_fence *edu_copy_for(const struct accmem_edu_copy *req)
{
	struct accmem_context *ctx = ERR_PTR(-ENODEV);
	struct dma_fence *fence;

	mutex_lock(&edu.users);
	if (edu.provider)
		ctx = accmem_context_from_fd(edu.provider, req->memory);
	fence = IS_ERR(ctx) ? ERR_CAST(ctx) : edu_copy_pinned(ctx, req);
	if (!IS_ERR(ctx))
		accmem_context_put(ctx);
	mutex_unlock(&edu.users);
	return fence;
}

static long edu_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sync_file *sync = NULL;
	struct accmem_edu_copy req;
	struct dma_fence *fence;
	int fd;

	if (cmd != ACCMEM_EDU_COPY)
		return -ENOTTY;
	if (copy_from_user(&req, (void __user *)arg, sizeof(req)))
		return -EFAULT;
	if (!req.size || req.size > ACCMEM_EDU_MAX ||
	    !IS_ALIGNED(req.to | req.from | req.size, 8))
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	fence = edu_copy_for(&req);
	if (!IS_ERR(fence)) {
		sync = sync_file_create(fence);
		dma_fence_put(fence);
	}
	if (!sync) {
		put_unused_fd(fd);
		return IS_ERR(fence) ? PTR_ERR(fence) : -ENOMEM;
	}
	fd_install(fd, sync->file);
	return fd;
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

static void edu_set_provider(struct accmem_provider *provider)
{
	mutex_lock(&edu.users);
	edu.provider = provider;
	mutex_unlock(&edu.users);
}

/*
 * End all jobs, and give up the memory. Wait for the end of a move: else it would go on when
 * another driver enables bus mastering.
 */
static void edu_stop(void *data)
{
	struct accmem_provider *provider = edu.provider;
	struct device *engine = data;
	u32 command;

	edu_set_provider(NULL);
	edu_die();
	accmem_provider_unregister(provider);
	destroy_workqueue(edu.jobs);
	readl_poll_timeout(edu.regs + EDU_DMA_COMMAND, command,
			   !(command & EDU_DMA_START), USEC_PER_MSEC,
			   200 * USEC_PER_MSEC);
	if (edu.size)
		dma_unmap_resource(engine, edu.start, edu.size,
				   DMA_BIDIRECTIONAL, 0);
	edu.size = 0;
}

/* Give accmem the memory beside the engine, and map the memory for the engine. */
static int edu_add_memory(struct device *engine)
{
	struct pci_dev *memory = pci_get_device(0x1af4, 0x1110, NULL);
	int err = -ENODEV;

	if (memory)
		err = accmem_provider_add_bar(edu.provider, memory, 2);
	if (!err) {
		edu.start = dma_map_resource(engine,
					     pci_resource_start(memory, 2),
					     pci_resource_len(memory, 2),
					     DMA_BIDIRECTIONAL, 0);
		err = dma_mapping_error(engine, edu.start);
	}
	if (!err)
		edu.size = pci_resource_len(memory, 2);
	pci_dev_put(memory);
	return err;
}

static int edu_start(struct device *engine)
{
	struct accmem_provider *provider;

	edu.jobs = alloc_ordered_workqueue("accmem-edu", 0);
	if (!edu.jobs)
		return -ENOMEM;
	provider = accmem_provider_create(engine, &edu_ops, NULL);
	if (IS_ERR(provider)) {
		destroy_workqueue(edu.jobs);
		return PTR_ERR(provider);
	}
	edu.dead = false;
	reinit_completion(&edu.moved);
	edu_set_provider(provider);
	pci_set_master(to_pci_dev(engine));
	return devm_add_action_or_reset(engine, edu_stop, engine) ?:
		       edu_add_memory(engine)			  ?:
		       accmem_provider_publish(provider);
}

static void edu_leave(void *unused)
{
	clear_bit(0, &edu.taken);
}

/* Unbind releases the resources of the steps in the reverse order (devm). */
static int edu_probe(struct pci_dev *engine, const struct pci_device_id *id)
{
	int err;

	if (test_and_set_bit(0, &edu.taken))
		return -EBUSY;
	edu.engine = engine;
	err = devm_add_action_or_reset(&engine->dev, edu_leave, NULL) ?:
		      pcim_enable_device(engine)		      ?:
		      dma_set_mask_and_coherent(&engine->dev, DMA_BIT_MASK(64));
	if (err)
		return err;
	edu.regs = pcim_iomap(engine, 0, 0);
	if (!edu.regs || !dmam_alloc_coherent(&engine->dev, EDU_PART,
					      &edu.zeros, GFP_KERNEL))
		return -ENOMEM;
	err = pci_alloc_irq_vectors(engine, 1, 1, PCI_IRQ_MSI);
	if (err < 0)
		return err;
	err = devm_request_irq(&engine->dev, pci_irq_vector(engine, 0),
			       edu_interrupt, 0, "accmem-edu", &edu);
	return err ?: edu_start(&engine->dev);
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
};

static int __init edu_init(void)
{
	int err = misc_register(&edu_misc);

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

#ifdef CONFIG_ACCMEM_SAMPLE_EDU_KUNIT_TEST
#include "accmem_edu_kunit.c"
#endif

MODULE_DESCRIPTION("Sample accelerator: QEMU's edu and ivshmem");
MODULE_LICENSE("GPL");
ACCMEM_IMPORT(ACCMEM);
