// SPDX-License-Identifier: GPL-2.0
/*
 * Deliberate faults, one of each kind that a lane must find. A lane that does not report
 * them does not work. Load this module only in a virtual machine of the tests.
 *
 * Locks: accmem_planted_a and accmem_planted_b, taken in both orders.
 */
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static bool race;
module_param(race, bool, 0);
MODULE_PARM_DESC(race, "two threads write a variable without a lock");

static bool faults;
module_param(faults, bool, 0);
MODULE_PARM_DESC(faults, "every fault that does not take the kernel down");

static bool late_store;
module_param(late_store, bool, 0);
MODULE_PARM_DESC(late_store, "a store into a freed page");

static DEFINE_MUTEX(accmem_planted_a);
static DEFINE_MUTEX(accmem_planted_b);
static DEFINE_SPINLOCK(accmem_planted_spin);

static unsigned int racy_counter;
/* Variables, not constants: with constants, the compiler would see the faults. */
static unsigned int out_of_bounds = 24;
static unsigned int too_far = 40;
static u32 shifted = 1;

static int accmem_planted_racer(void *unused)
{
	while (!kthread_should_stop()) {
		racy_counter++;
		cond_resched();
	}
	return 0;
}

static int plant_race(void)
{
	struct task_struct *racers[2];
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(racers); i++) {
		racers[i] = kthread_run(accmem_planted_racer, NULL,
					"planted/%d", i);
		if (IS_ERR(racers[i])) {
			err = PTR_ERR(racers[i]);
			break;
		}
	}
	if (!err)
		msleep(5000);
	while (i--)
		kthread_stop(racers[i]);
	return err;
}

static void plant_wrong_order(void)
{
	mutex_lock(&accmem_planted_a);
	mutex_lock(&accmem_planted_b);
	mutex_unlock(&accmem_planted_b);
	mutex_unlock(&accmem_planted_a);
	mutex_lock(&accmem_planted_b);
	mutex_lock(&accmem_planted_a);
	mutex_unlock(&accmem_planted_a);
	mutex_unlock(&accmem_planted_b);
}

static void plant_sleep_in_atomic(void)
{
	spin_lock(&accmem_planted_spin);
	might_sleep();
	spin_unlock(&accmem_planted_spin);
}

static void plant_out_of_bounds(void)
{
	char *buffer = kmalloc(out_of_bounds, GFP_KERNEL);

	if (!buffer)
		return;
	WRITE_ONCE(buffer[READ_ONCE(out_of_bounds)], 1);
	kfree(buffer);
}

static void plant_shift(void)
{
	WRITE_ONCE(shifted, READ_ONCE(shifted) << READ_ONCE(too_far));
}

static void plant_leak(void)
{
	void *leaked = kmalloc(128, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(leaked);
}

/* Store without instrumentation, as through a stale mapping of user space. */
static void plant_late_store(void)
{
	struct page *page = alloc_page(GFP_KERNEL);
	char *freed;

	if (!page)
		return;
	freed = page_address(page);
	preempt_disable();
	__free_page(page);
	asm volatile("movb $1, %0" : "=m"(*freed));
	page = alloc_page(GFP_NOWAIT);
	preempt_enable();
	if (page)
		__free_page(page);
}

static int __init accmem_planted_init(void)
{
	if (faults) {
		/* Lockdep turns itself off after its first report. */
		plant_sleep_in_atomic();
		plant_wrong_order();
		plant_out_of_bounds();
		plant_shift();
		plant_leak();
		WARN_ON(faults);
	}
	if (late_store)
		plant_late_store();
	return race ? plant_race() : 0;
}

static void __exit accmem_planted_exit(void)
{
}

module_init(accmem_planted_init);
module_exit(accmem_planted_exit);
MODULE_DESCRIPTION("Faults that the test lanes must find");
MODULE_LICENSE("GPL");
