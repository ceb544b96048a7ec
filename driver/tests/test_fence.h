/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /dev/test-fence: fences that a test signals when it likes. For tests of
 * who waits for fences of other drivers; never on a machine that is used.
 */
#ifndef ACCMEM_TEST_FENCE_H
#define ACCMEM_TEST_FENCE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct test_fence_create - a new fence
 * @fd: out: its sync_file
 * @id: out: its number, of this file of the device
 */
struct test_fence_create {
	__s32 fd;
	__u32 id;
};

#define TEST_FENCE_IRQ 0x1u /* in a hard interrupt */

/**
 * struct test_fence_signal - signal a fence
 * @id: its number
 * @error: 0, or the negative errno value that it signals with
 * @flags: TEST_FENCE_IRQ
 */
struct test_fence_signal {
	__u32 id;
	__s32 error;
	__u32 flags;
};

/**
 * struct test_fence_count - who is called by a fence that has not signalled
 * @id: its number
 * @callbacks: out: how many
 */
struct test_fence_count {
	__u32 id;
	__u32 callbacks;
};

/* The last close of the file signals what is left with -ECANCELED. */
#define TEST_FENCE_CREATE _IOR('f', 1, struct test_fence_create)
#define TEST_FENCE_SIGNAL _IOW('f', 2, struct test_fence_signal)
#define TEST_FENCE_COUNT _IOWR('f', 3, struct test_fence_count)

#endif /* ACCMEM_TEST_FENCE_H */
