// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of accmem_edu.c, which includes this file. The registers of the engine are in
 * memory, and a thread moves bytes in place of the engine. Bus addresses are kernel addresses.
 * The suite is skipped if the kernel has found a real engine.
 */
#include <kunit/test.h>
#include <linux/kthread.h>

#define FAKE_STATUS 0x100
#define FAKE_BYTES (ACCMEM_EDU_MAX + EDU_PART)

struct fake {
	u8 regs[0x100] __aligned(8);
	u8 buffer[EDU_PART];
	u8 zeros[EDU_PART];
	u8 from[FAKE_BYTES];
	u8 to[FAKE_BYTES];
	struct task_struct *engine;
	bool stuck; /* the engine does not start a move */
};

/* Execute the move that the registers describe. If they are wrong, the move does not end. */
static bool fake_move(struct fake *f, u64 command)
{
	bool in = command == EDU_DMA_IN;
	u64 inside = readq(edu.regs + (in ? EDU_DMA_TARGET : EDU_DMA_SOURCE));
	u64 outside = readq(edu.regs + (in ? EDU_DMA_SOURCE : EDU_DMA_TARGET));
	u64 size = readq(edu.regs + EDU_DMA_COUNT);

	if ((!in && command != EDU_DMA_OUT) || inside != EDU_BUFFER ||
	    size > EDU_PART)
		return false;
	if (in)
		memcpy(f->buffer, (void *)outside, size);
	else
		memcpy((void *)outside, f->buffer, size);
	return true;
}

static int fake_engine(void *data)
{
	struct fake *f = data;
	u64 command;

	while (!kthread_should_stop()) {
		command = readq(edu.regs + EDU_DMA_COMMAND);
		if (READ_ONCE(f->stuck) || !(command & EDU_DMA_START)) {
			usleep_range(20, 100);
			continue;
		}
		writeq(0, edu.regs + EDU_DMA_COMMAND);
		if (!fake_move(f, command))
			continue;
		writel(FAKE_STATUS, edu.regs + EDU_INTERRUPT_STATUS);
		edu_interrupt(0, &edu);
		writel(0, edu.regs + EDU_INTERRUPT_STATUS);
		edu_interrupt(0, &edu);
	}
	return 0;
}

static int fake_init(struct kunit *test)
{
	struct fake *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, f);
	if (test_and_set_bit(0, &edu.taken))
		kunit_skip(test, "an engine is bound");
	test->priv = f;
	edu.engine = NULL;
	edu.jobs = alloc_ordered_workqueue("accmem-edu-test", 0);
	KUNIT_ASSERT_NOT_NULL(test, edu.jobs);
	edu.regs = (void __iomem *)f->regs;
	edu.start = 0;
	edu.zeros = (dma_addr_t)f->zeros;
	edu.dead = false;
	reinit_completion(&edu.moved);
	memset(f->from, 0x5a, sizeof(f->from));
	memset(f->to, 0xa5, sizeof(f->to));
	f->engine = kthread_run(fake_engine, f, "accmem-edu-test");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, f->engine);
	return 0;
}

static void fake_exit(struct kunit *test)
{
	struct fake *f = test->priv;

	if (!f)
		return;
	if (!IS_ERR_OR_NULL(f->engine))
		kthread_stop(f->engine);
	if (edu.jobs)
		destroy_workqueue(edu.jobs);
	clear_bit(0, &edu.taken);
	/* The fences have references to the module until now. */
	rcu_barrier();
}

static struct dma_fence *fake_copy(struct fake *f, u64 size)
{
	return edu_op_copy(NULL, 0, (u64)f->to, 0, (u64)f->from, size);
}

/* Wait for a fence, drop it, and return its error. */
static int fake_end(struct kunit *test, struct dma_fence *fence)
{
	int err;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, fence);
	KUNIT_EXPECT_LT(test, 0L,
			dma_fence_wait_timeout(fence, false, EDU_PATIENCE));
	err = dma_fence_get_status(fence);
	dma_fence_put(fence);
	return err;
}

static void a_copy_moves_all_bytes_and_no_other(struct kunit *test)
{
	static const u64 sizes[] = { 8, EDU_PART, EDU_PART + 8, 5000,
				     ACCMEM_EDU_MAX };
	struct fake *f = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(f->from, i, sizeof(f->from));
		memset(f->to, 0xa5, sizeof(f->to));
		KUNIT_EXPECT_EQ(test, 1,
				fake_end(test, fake_copy(f, sizes[i])));
		KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(f->to, i, sizes[i]));
		KUNIT_EXPECT_PTR_EQ(test, NULL,
				    memchr_inv(f->to + sizes[i], 0xa5,
					       sizeof(f->to) - sizes[i]));
	}
}

static void a_clear_reads_the_same_zeros_again(struct kunit *test)
{
	struct fake *f = test->priv;

	KUNIT_EXPECT_EQ(test, 1,
			fake_end(test, edu_op_clear(NULL, 0, (u64)f->to,
						    ACCMEM_EDU_MAX)));
	KUNIT_EXPECT_PTR_EQ(test, NULL, memchr_inv(f->to, 0, ACCMEM_EDU_MAX));
	KUNIT_EXPECT_EQ(test, 0xa5, f->to[ACCMEM_EDU_MAX]);
}

static void a_job_that_is_too_large_is_refused(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, (long)-EOPNOTSUPP,
			PTR_ERR(fake_copy(test->priv, ACCMEM_EDU_MAX + 8)));
}

static void jobs_end_in_order(struct kunit *test)
{
	struct fake *f = test->priv;
	struct dma_fence *first = fake_copy(f, ACCMEM_EDU_MAX);
	struct dma_fence *second = fake_copy(f, 8);

	KUNIT_EXPECT_EQ(test, 1, fake_end(test, second));
	KUNIT_EXPECT_TRUE(test, dma_fence_is_signaled(first));
	KUNIT_EXPECT_EQ(test, 1, fake_end(test, first));
}

static void a_full_queue_refuses_a_job(struct kunit *test)
{
	struct dma_fence *fences[EDU_QUEUE], *more;
	struct fake *f = test->priv;
	unsigned int i;

	WRITE_ONCE(f->stuck, true);
	for (i = 0; i < EDU_QUEUE; i++)
		fences[i] = fake_copy(f, 8);
	more = fake_copy(f, 8);
	KUNIT_EXPECT_EQ(test, (long)-EAGAIN, PTR_ERR(more));
	WRITE_ONCE(f->stuck, false);
	for (i = 0; i < EDU_QUEUE; i++)
		KUNIT_EXPECT_EQ(test, 1, fake_end(test, fences[i]));
	KUNIT_EXPECT_EQ(test, 1, fake_end(test, fake_copy(f, 8)));
}

/* As edu_stop() ends them when the driver is unbound */
static void all_jobs_of_a_device_that_goes_fail(struct kunit *test)
{
	struct fake *f = test->priv;
	struct dma_fence *first, *second;

	WRITE_ONCE(f->stuck, true);
	first = fake_copy(f, ACCMEM_EDU_MAX);
	second = fake_copy(f, 8);
	edu_die();
	KUNIT_EXPECT_EQ(test, -EIO, fake_end(test, first));
	KUNIT_EXPECT_EQ(test, -EIO, fake_end(test, second));
	KUNIT_EXPECT_EQ(test, 0xa5, f->to[0]);
}

static struct kunit_case edu_cases[] = {
	KUNIT_CASE(a_copy_moves_all_bytes_and_no_other),
	KUNIT_CASE(a_clear_reads_the_same_zeros_again),
	KUNIT_CASE(a_job_that_is_too_large_is_refused),
	KUNIT_CASE(jobs_end_in_order),
	KUNIT_CASE(a_full_queue_refuses_a_job),
	KUNIT_CASE(all_jobs_of_a_device_that_goes_fail),
	{},
};

static struct kunit_suite edu_suite = {
	.name = "accmem_edu",
	.init = fake_init,
	.exit = fake_exit,
	.test_cases = edu_cases,
};

kunit_test_suite(edu_suite);
