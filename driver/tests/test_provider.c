// SPDX-License-Identifier: GPL-2.0
/*
 * Test provider: a driver whose device a test controls.
 *
 * The module provides the ranges of its parameter `ranges`, as SIZE@ADDRESS. A work item
 * stands for the engine of the device. Tests write to parameters: `revoke` (reset or gone),
 * `resume` (kept or lost), `engine` and `delay_ms` (behaviour of the engine), `pin`,
 * `unpin` and `pins`. On load the module first makes calls of the provider API that must
 * fail, and fails to load if one of them succeeds.
 *
 * Locking: param_lock of the module guards the parameters.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/accmem_provider.h>
#include <linux/delay.h>
#include <linux/dma-fence.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "compat/compat.h"

static char *ranges[ACCMEM_MAX_RANGES];
static int nr_ranges;
module_param_array(ranges, charp, &nr_ranges, 0444);
static char *engine = "none"; /* none, works, refuses, fails */
module_param(engine, charp, 0644);
static unsigned int delay_ms;
module_param(delay_ms, uint, 0644);
static unsigned int clears, copies, late;
module_param(clears, uint, 0444); /* operations that were called */
module_param(copies, uint, 0444);
module_param(late, uint,
	     0444); /* operations that were called after a revocation */

static struct platform_device *pdev;
static struct accmem_provider *provider;
static phys_addr_t starts[ACCMEM_MAX_RANGES];
static bool revoked;
static struct workqueue_struct *jobs;

/* An operation that the worker executes. @from is NULL for a clear. */
struct job {
	struct dma_fence fence;
	spinlock_t lock; /* guards fence */
	struct work_struct work;
	phys_addr_t to;
	phys_addr_t from;
	u64 size;
	bool is_copy;
	bool fails;
};

static const char *job_name(struct dma_fence *fence)
{
	return "accmem-test-engine";
}

static const struct dma_fence_ops job_ops = {
	.get_driver_name = job_name,
	.get_timeline_name = job_name,
};

static void job_run(struct job *job)
{
	void __iomem *to = ioremap_wc(job->to, job->size);
	void __iomem *from = job->is_copy ? ioremap_wc(job->from, job->size) :
					    NULL;
	u64 at;

	for (at = 0; to && at < job->size; at += sizeof(u64))
		writeq(from ? readq(from + at) : 0, to + at);
	if (!to || (job->is_copy && !from))
		dma_fence_set_error(&job->fence, -ENOMEM);
	if (to)
		iounmap(to);
	if (from)
		iounmap(from);
}

static void job_work(struct work_struct *work)
{
	struct job *job = container_of(work, struct job, work);

	msleep(delay_ms);
	if (job->fails)
		dma_fence_set_error(&job->fence, -EIO);
	else
		job_run(job);
	dma_fence_signal(&job->fence);
	dma_fence_put(&job->fence);
}

static struct dma_fence *job_start(phys_addr_t to, phys_addr_t from, u64 size,
				   bool is_copy)
{
	struct job *job;

	if (READ_ONCE(revoked))
		late++;
	if (!strcmp(engine, "none") || !strcmp(engine, "refuses"))
		return ERR_PTR(-EIO);
	job = kzalloc(sizeof(*job), GFP_KERNEL);
	if (!job)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&job->lock);
	INIT_WORK(&job->work, job_work);
	job->to = to;
	job->from = from;
	job->size = size;
	job->is_copy = is_copy;
	job->fails = !strcmp(engine, "fails");
	dma_fence_init(&job->fence, &job_ops, &job->lock,
		       dma_fence_context_alloc(1), 1);
	dma_fence_get(&job->fence);
	queue_work(jobs, &job->work);
	return &job->fence;
}

static struct dma_fence *test_clear(void *priv, unsigned int range, u64 offset,
				    u64 size)
{
	clears++;
	return job_start(starts[range] + offset, 0, size, false);
}

static struct dma_fence *test_copy(void *priv, unsigned int to, u64 to_offset,
				   unsigned int from, u64 from_offset, u64 size)
{
	copies++;
	return job_start(starts[to] + to_offset, starts[from] + from_offset,
			 size, true);
}

static const struct accmem_provider_ops test_ops = {
	.clear = test_clear,
	.copy = test_copy,
};

static int revoke_set(const char *text, const struct kernel_param *kp)
{
	if (!provider)
		return -ENODEV;
	if (sysfs_streq(text, "reset"))
		accmem_provider_revoke(provider, ACCMEM_REVOKE_RESET);
	else if (sysfs_streq(text, "gone"))
		accmem_provider_revoke(provider, ACCMEM_REVOKE_GONE);
	else
		return -EINVAL;
	WRITE_ONCE(revoked, true);
	return 0;
}

static int resume_set(const char *text, const struct kernel_param *kp)
{
	if (!provider)
		return -ENODEV;
	WRITE_ONCE(revoked, false);
	accmem_provider_resume(provider, sysfs_streq(text, "kept"));
	return 0;
}

static const struct kernel_param_ops revoke_ops = { .set = revoke_set };
static const struct kernel_param_ops resume_ops = { .set = resume_set };
module_param_cb(revoke, &revoke_ops, NULL, 0200);
module_param_cb(resume, &resume_ops, NULL, 0200);

#define PARTS_MAX 8 /* of the parameter pin */

/* The pins of a test, and the fence that ends them, which the test signals. */
static struct accmem_pins *pins;
static struct accmem_part parts[PARTS_MAX];
static unsigned int nr_parts;
static struct job *pin_job;

/* Read pairs of an address and a size. Return their number. */
static int parts_read(const char *text)
{
	unsigned int n = 0;
	int length;

	while (n < PARTS_MAX && sscanf(text, "%llu %llu%n", &parts[n].address,
				       &parts[n].size, &length) == 2) {
		parts[n++].write = true;
		text += length;
	}
	return n;
}

/* FD [ADDRESS SIZE]...: pin memory of the caller, for writing. */
static int pin_set(const char *text, const struct kernel_param *kp)
{
	struct accmem_context *ctx;
	struct accmem_pins *pinned;
	int fd, length;

	if (sscanf(text, "%d%n", &fd, &length) != 1)
		return -EINVAL;
	if (!provider || pins)
		return -EBUSY;
	ctx = accmem_context_from_fd(provider, fd);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	nr_parts = parts_read(text + length);
	pinned = accmem_pin(ctx, parts, nr_parts);
	accmem_context_put(ctx);
	if (IS_ERR(pinned))
		return PTR_ERR(pinned);
	pins = pinned;
	return 0;
}

/* The physical address and the size of each part */
static int pin_get(char *text, const struct kernel_param *kp)
{
	unsigned int i;
	int length = 0;

	for (i = 0; pins && i < nr_parts; i++)
		length += sysfs_emit_at(text, length, "%llu %llu\n",
					(u64)starts[parts[i].range] +
						parts[i].offset,
					parts[i].size);
	return length ?: sysfs_emit(text, "none\n");
}

static struct job *pin_job_create(void)
{
	struct job *job = kzalloc(sizeof(*job), GFP_KERNEL);

	if (!job)
		return NULL;
	spin_lock_init(&job->lock);
	dma_fence_init(&job->fence, &job_ops, &job->lock,
		       dma_fence_context_alloc(1), 1);
	return job;
}

/* Signal the fence of a job and drop the job. @job may be NULL. */
static void pin_job_end(struct job *job)
{
	if (!job)
		return;
	dma_fence_signal(&job->fence);
	dma_fence_put(&job->fence);
}

/* now, fence: end the pins at once, or with a fence; signal: signal that fence. */
static int unpin_set(const char *text, const struct kernel_param *kp)
{
	bool later = sysfs_streq(text, "fence");

	if (sysfs_streq(text, "signal") && pin_job) {
		pin_job_end(pin_job);
		pin_job = NULL;
		return 0;
	}
	if (!pins || pin_job)
		return -EINVAL;
	if (later) {
		pin_job = pin_job_create();
		if (!pin_job)
			return -ENOMEM;
	}
	accmem_unpin(pins, later ? &pin_job->fence : NULL);
	pins = NULL;
	return 0;
}

static const struct kernel_param_ops pin_ops = {
	.set = pin_set,
	.get = pin_get,
};

static const struct kernel_param_ops unpin_ops = { .set = unpin_set };

#define PINS_OF_A_FENCE 64

/* A measurement by bench/device */
struct pins_run {
	struct accmem_context *ctx;
	struct accmem_part *parts; /* of one call */
	unsigned int nr_parts;
	unsigned int nr; /* parts in all */
	bool fenced; /* a fence ends PINS_OF_A_FENCE parts */
};

static int pins_run(const struct pins_run *run)
{
	struct accmem_pins *pinned;
	struct job *job = NULL;
	unsigned int i;
	int err = 0;

	for (i = 0; i < run->nr && !err; i += run->nr_parts) {
		if (run->fenced && i % PINS_OF_A_FENCE == 0) {
			pin_job_end(job);
			job = pin_job_create();
			if (!job)
				return -ENOMEM;
		}
		pinned = accmem_pin(run->ctx, run->parts, run->nr_parts);
		err = PTR_ERR_OR_ZERO(pinned);
		if (!err)
			accmem_unpin(pinned, job ? &job->fence : NULL);
	}
	pin_job_end(job);
	return err;
}

/* Pin the part [@address, @address + @size), so often that a call has @run->nr_parts parts. */
static int pins_run_on(struct pins_run *run, u64 address, u64 size)
{
	unsigned int i;
	int err;

	run->parts = kcalloc(run->nr_parts, sizeof(*run->parts), GFP_KERNEL);
	if (!run->parts)
		return -ENOMEM;
	for (i = 0; i < run->nr_parts; i++)
		run->parts[i] = (struct accmem_part){
			.address = address,
			.size = size,
			.write = true,
		};
	err = pins_run(run);
	kfree(run->parts);
	return err;
}

/*
 * FD ADDRESS SIZE NUMBER PARTS FENCED: pin and unpin NUMBER parts, PARTS with each call, for
 * bench/device.
 */
static int pins_set(const char *text, const struct kernel_param *kp)
{
	struct pins_run run;
	unsigned int fenced;
	u64 address, size;
	int fd, err;

	if (sscanf(text, "%d %llu %llu %u %u %u", &fd, &address, &size, &run.nr,
		   &run.nr_parts, &fenced) != 6 ||
	    !run.nr_parts)
		return -EINVAL;
	if (!provider)
		return -ENODEV;
	run.fenced = fenced;
	run.ctx = accmem_context_from_fd(provider, fd);
	if (IS_ERR(run.ctx))
		return PTR_ERR(run.ctx);
	err = pins_run_on(&run, address, size);
	accmem_context_put(run.ctx);
	return err;
}

static const struct kernel_param_ops pins_ops = { .set = pins_set };

module_param_cb(pin, &pin_ops, NULL, 0600);
module_param_cb(unpin, &unpin_ops, NULL, 0200);
module_param_cb(pins, &pins_ops, NULL, 0200);

static int check(bool good, const char *what)
{
	if (good)
		return 0;
	pr_err("not as it should be: %s\n", what);
	return -EINVAL;
}

static int add(u64 size, phys_addr_t start, u32 flags)
{
	const struct accmem_range range = {
		.start = start,
		.size = size,
		.flags = flags,
		.node = NUMA_NO_NODE,
	};

	return accmem_provider_add_range(provider, &range);
}

/* Ranges that must be refused, and leave nothing behind. */
static int check_refusals(void)
{
	static const struct {
		u64 size;
		phys_addr_t start;
		u32 flags;
		int err;
	} bad[] = {
		{ 0, SZ_2M, 0, -EINVAL },
		{ SZ_2M, SZ_4K, 0, -EINVAL },
		{ SZ_2M, SZ_16M, 0, -EINVAL }, /* System RAM */
		{ SZ_2M, SZ_16M, ACCMEM_RANGE_CLAIMED, -EINVAL },
		{ SZ_2M, 0, ~0u, -EINVAL },
		{ SZ_2M, ~(phys_addr_t)0 - SZ_2M + 1, 0, -EINVAL },
		{ 1ull << 45, 0, ACCMEM_RANGE_EMULATED, -E2BIG },
		{ SZ_2M, 0, ACCMEM_RANGE_EMULATED | ACCMEM_RANGE_IO, -EINVAL },
	};
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(bad) && !err; i++)
		err = check(add(bad[i].size, bad[i].start, bad[i].flags) ==
				    bad[i].err,
			    "a range that is bad");
	return err   ?:
		       check(accmem_provider_publish(provider) == -EINVAL,
			     "publication without a range");
}

/* Calls that must fail after publication, and calls that must do nothing. */
static int check_published(void)
{
	int err;

	accmem_provider_resume(provider, true);
	err = check(add(SZ_2M, 0, ACCMEM_RANGE_EMULATED) == -EALREADY,
		    "a range after publication");
	return err   ?:
		       check(accmem_provider_publish(provider) == -EALREADY,
			     "publication twice");
}

static int add_ranges(void)
{
	char *rest;
	u64 size;
	int i, err = 0;

	for (i = 0; i < nr_ranges && !err; i++) {
		size = memparse(ranges[i], &rest);
		if (*rest != '@')
			return -EINVAL;
		starts[i] = memparse(rest + 1, &rest);
		err = add(size, starts[i], ACCMEM_RANGE_PROBE) ?:
			      check(add(size, starts[i], 0) == -EBUSY,
				    "a range twice");
	}
	return err;
}

static int __init test_provider_init(void)
{
	int err;

	jobs = alloc_workqueue("accmem-test-engine", WQ_UNBOUND, 0);
	if (!jobs)
		return -ENOMEM;
	pdev = platform_device_register_simple("accmem-test-provider",
					       PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(pdev)) {
		err = PTR_ERR(pdev);
		goto err_jobs;
	}
	provider = accmem_provider_create(&pdev->dev, &test_ops, NULL);
	if (IS_ERR(provider)) {
		err = PTR_ERR(provider);
		provider = NULL;
		goto err_device;
	}
	err = check_refusals()				?:
		      add_ranges()			?:
		      accmem_provider_publish(provider) ?:
							  check_published();
	if (err)
		goto err_provider;
	return 0;

err_provider:
	accmem_provider_unregister(provider);
err_device:
	platform_device_unregister(pdev);
err_jobs:
	destroy_workqueue(jobs);
	return err;
}

static void __exit test_provider_exit(void)
{
	if (pins)
		accmem_unpin(pins, NULL);
	accmem_provider_unregister(provider);
	WRITE_ONCE(revoked, true);
	platform_device_unregister(pdev);
	destroy_workqueue(jobs);
}

module_init(test_provider_init);
module_exit(test_provider_exit);

MODULE_DESCRIPTION("Provider of memory for tests of accmem");
MODULE_LICENSE("GPL");
ACCMEM_IMPORT(ACCMEM);
