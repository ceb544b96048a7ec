// SPDX-License-Identifier: GPL-2.0
/*
 * The ioctl table of a CTA's file: as ioctl.c is for the device's.
 *
 * Owns the checks of sizes, flags and reserved fields. No lock is held here.
 */
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>

#include "ioctl.h"
#include "tmem.h"

static int cta_ioctl_check_wait(u32 flags, u64 deadline_ns)
{
	if (flags & ~ACCMEM_CTA_NONBLOCK)
		return -EINVAL;
	return flags && deadline_ns ? -EINVAL : 0;
}

/*
 * Copies a call's structure in. The one that this kernel knows comes by words:
 * a call that need not wait is short, and the copy would be a good part of it.
 */
static __always_inline int
cta_ioctl_fetch(void *req, size_t size, const void __user *arg, u32 user_size)
{
	const u64 __user *from = arg;
	u64 *to = req;
	size_t i;

	BUILD_BUG_ON(size % sizeof(*to));
	if (user_size != size)
		return copy_struct_from_user(req, size, arg, user_size);
	if (!user_read_access_begin(from, size))
		return -EFAULT;
	for (i = 0; i < size / sizeof(*to); i++)
		unsafe_get_user(to[i], from + i, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static int cta_ioctl_alloc(struct accmem_cta *cta, void __user *arg,
			   u32 user_size)
{
	struct accmem_cta_alloc req;
	int err;

	err = cta_ioctl_fetch(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (req.reserved || cta_ioctl_check_wait(req.flags, req.deadline_ns))
		return -EINVAL;
	return accmem_cta_alloc(cta, &req);
}

static int cta_ioctl_dealloc(struct accmem_cta *cta, void __user *arg,
			     u32 user_size)
{
	struct accmem_cta_dealloc req;
	int err;

	err = cta_ioctl_fetch(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (cta_ioctl_check_wait(req.flags, req.deadline_ns))
		return -EINVAL;
	return accmem_cta_dealloc(cta, &req);
}

static int cta_ioctl_relinquish(struct accmem_cta *cta, void __user *arg,
				u32 user_size)
{
	struct accmem_cta_relinquish req;
	int err;

	err = cta_ioctl_fetch(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (req.flags)
		return -EINVAL;
	return accmem_cta_relinquish(cta);
}

static int cta_ioctl_query(struct accmem_cta *cta, void __user *arg,
			   u32 user_size)
{
	struct accmem_cta_query req;
	int err;

	err = cta_ioctl_fetch(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	accmem_cta_query(cta, &req);
	if (copy_to_user(arg, &req, min_t(size_t, user_size, sizeof(req))))
		return -EFAULT;
	return 0;
}

/* @min_size: the structure's size in the first version of the ABI */
struct call_op {
	unsigned int cmd;
	u32 min_size;
	int (*run)(struct accmem_cta *cta, void __user *arg, u32 user_size);
};

ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_alloc);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_dealloc);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_relinquish);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_query);

#define FIRST _IOC_NR(ACCMEM_IOC_CTA_ALLOC)

static const struct call_op ops[] = {
	[_IOC_NR(ACCMEM_IOC_CTA_ALLOC) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_ALLOC,
		.min_size = offsetofend(struct accmem_cta_alloc, destination),
		.run = cta_ioctl_alloc,
	},
	[_IOC_NR(ACCMEM_IOC_CTA_DEALLOC) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_DEALLOC,
		.min_size = offsetofend(struct accmem_cta_dealloc, deadline_ns),
		.run = cta_ioctl_dealloc,
	},
	[_IOC_NR(ACCMEM_IOC_CTA_RELINQUISH) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_RELINQUISH,
		.min_size = offsetofend(struct accmem_cta_relinquish, flags),
		.run = cta_ioctl_relinquish,
	},
	[_IOC_NR(ACCMEM_IOC_CTA_QUERY) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_QUERY,
		.min_size = offsetofend(struct accmem_cta_query, reserved),
		.run = cta_ioctl_query,
	},
};

/**
 * accmem_cta_ioctl() - the ioctl of a CTA's file
 * @file: the file
 * @nr: ACCMEM_IOC_CTA_*
 * @arg: the command's structure, in the caller's memory
 *
 * Return: 0 or the command's error; -ENOTTY for an unknown command.
 */
long accmem_cta_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	unsigned int index = _IOC_NR(nr) - FIRST;
	const struct call_op *op;
	u32 user_size;
	int err;

	if (index >= ARRAY_SIZE(ops))
		return -ENOTTY;
	op = &ops[array_index_nospec(index, ARRAY_SIZE(ops))];
	if (op->cmd != nr)
		return -ENOTTY;
	err = accmem_get_size(user, op->min_size, &user_size);
	if (err)
		return err;
	return op->run(file->private_data, user, user_size);
}
