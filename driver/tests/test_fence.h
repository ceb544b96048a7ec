/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Test fences: the ioctls of /dev/test-fence.
 *
 * A test creates fences, passes them to accmem as sync_files, and signals them. The
 * module is for tests only: never load it on a machine in production.
 */
#ifndef ACCMEM_TEST_FENCE_H
#define ACCMEM_TEST_FENCE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct test_fence_create - create a fence
 * @fd: out: a file descriptor of its sync_file
 * @id: out: the number of the fence, valid for this open file of /dev/test-fence
 */
struct test_fence_create {
	__s32 fd;
	__u32 id;
};

#define TEST_FENCE_IRQ 0x1u /* signal in a hard interrupt */

/**
 * struct test_fence_signal - signal a fence
 * @id: the number of the fence
 * @error: 0, or the negative errno value that the fence signals
 * @flags: 0 or TEST_FENCE_IRQ
 */
struct test_fence_signal {
	__u32 id;
	__s32 error;
	__u32 flags;
};

/**
 * struct test_fence_count - count the callbacks of a fence that has not signalled
 * @id: the number of the fence
 * @callbacks: out: the number of callbacks
 */
struct test_fence_count {
	__u32 id;
	__u32 callbacks;
};

/* The last close of the file signals the remaining fences with -ECANCELED. */
#define TEST_FENCE_CREATE _IOR('f', 1, struct test_fence_create)
#define TEST_FENCE_SIGNAL _IOW('f', 2, struct test_fence_signal)
#define TEST_FENCE_COUNT _IOWR('f', 3, struct test_fence_count)

#endif /* ACCMEM_TEST_FENCE_H */
