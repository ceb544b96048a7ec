/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The device file of the sample accelerator, /dev/accmem-edu.
 *
 * A program opens /dev/accmemN for memory and /dev/accmem-edu for work. COPY is a piece of
 * work on memory of the program.
 */
#ifndef ACCMEM_EDU_H
#define ACCMEM_EDU_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct accmem_edu_copy - let the engine copy memory of the caller
 * @memory: in: descriptor of /dev/accmemN
 * @size: in: bytes, a multiple of 8, at most ACCMEM_EDU_MAX
 * @to: in: device address of the destination, a multiple of 8
 * @from: in: device address of the source, a multiple of 8
 *
 * The call returns the descriptor of a sync_file that signals when the bytes are copied. Both
 * parts stay valid until then, also if the caller frees them. The sync_file has the error EIO
 * if the device fails or its driver is unbound.
 *
 * Errors: EINVAL, EBADF; those of accmem_pin(); EAGAIN while eight jobs are queued; ENODEV,
 * EMFILE, ENOMEM, EFAULT.
 */
struct accmem_edu_copy {
	__s32 memory;
	__u32 size;
	__u64 to;
	__u64 from;
};

#define ACCMEM_EDU_MAX 8192
#define ACCMEM_EDU_COPY _IOW('e', 0, struct accmem_edu_copy)

#endif /* ACCMEM_EDU_H */
