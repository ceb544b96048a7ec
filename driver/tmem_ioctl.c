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

static int cta_ioctl_check_call(const struct accmem_cta_call *call)
{
	switch (call->flags) {
	case 0:
		return call->user_data ? -EINVAL : 0;
	case ACCMEM_CTA_NONBLOCK:
		return call->user_data || call->deadline_ns ? -EINVAL : 0;
	case ACCMEM_CTA_QUEUED:
		return 0;
	default:
		return -EINVAL;
	}
}

/*
 * The structures of alloc and dealloc come by members where they have the size
 * that this kernel knows: a call that need not wait is short, and a copy, with the
 * way from it into the call, would be a good part of it.
 */
static noinline int cta_ioctl_copy_alloc(struct accmem_cta_call *call,
					 u64 *destination,
					 const void __user *arg, u32 user_size)
{
	struct accmem_cta_alloc req;
	int err;

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	call->flags = req.flags;
	call->columns = req.columns;
	call->warp = req.warp;
	call->deadline_ns = req.deadline_ns;
	call->user_data = req.user_data;
	*destination = req.destination;
	return 0;
}

static __always_inline int
cta_ioctl_fetch_alloc(struct accmem_cta_call *call, u64 *destination,
		      const struct accmem_cta_alloc __user *arg, u32 user_size)
{
	if (user_size != sizeof(*arg))
		return cta_ioctl_copy_alloc(call, destination, arg, user_size);
	if (!user_read_access_begin(arg, sizeof(*arg)))
		return -EFAULT;
	unsafe_get_user(call->flags, &arg->flags, fault);
	unsafe_get_user(call->columns, &arg->columns, fault);
	unsafe_get_user(call->warp, &arg->warp, fault);
	unsafe_get_user(call->deadline_ns, &arg->deadline_ns, fault);
	unsafe_get_user(call->user_data, &arg->user_data, fault);
	unsafe_get_user(*destination, &arg->destination, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static noinline int cta_ioctl_copy_dealloc(struct accmem_cta_call *call,
					   u32 *reserved,
					   const void __user *arg,
					   u32 user_size)
{
	struct accmem_cta_dealloc req;
	int err;

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	call->flags = req.flags;
	call->address = req.address;
	call->columns = req.columns;
	call->warp = req.warp;
	call->deadline_ns = req.deadline_ns;
	call->user_data = req.user_data;
	*reserved = req.reserved;
	return 0;
}

static __always_inline int
cta_ioctl_fetch_dealloc(struct accmem_cta_call *call, u32 *reserved,
			const struct accmem_cta_dealloc __user *arg,
			u32 user_size)
{
	if (user_size != sizeof(*arg))
		return cta_ioctl_copy_dealloc(call, reserved, arg, user_size);
	if (!user_read_access_begin(arg, sizeof(*arg)))
		return -EFAULT;
	unsafe_get_user(call->flags, &arg->flags, fault);
	unsafe_get_user(call->address, &arg->address, fault);
	unsafe_get_user(call->columns, &arg->columns, fault);
	unsafe_get_user(call->warp, &arg->warp, fault);
	unsafe_get_user(call->deadline_ns, &arg->deadline_ns, fault);
	unsafe_get_user(call->user_data, &arg->user_data, fault);
	unsafe_get_user(*reserved, &arg->reserved, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static int cta_ioctl_alloc(struct accmem_cta *cta, void __user *arg,
			   u32 user_size)
{
	struct accmem_cta_call call = { .op = ACCMEM_CTA_OP_ALLOC };
	u64 destination;
	int err;

	err = cta_ioctl_fetch_alloc(&call, &destination, arg, user_size) ?:
		      cta_ioctl_check_call(&call);
	if (err)
		return err;
	if (!(call.flags & ACCMEM_CTA_QUEUED))
		return accmem_cta_alloc(cta, &call,
					u64_to_user_ptr(destination));
	return destination ? -EINVAL : accmem_cta_submit(cta, &call);
}

static int cta_ioctl_dealloc(struct accmem_cta *cta, void __user *arg,
			     u32 user_size)
{
	struct accmem_cta_call call = { .op = ACCMEM_CTA_OP_DEALLOC };
	u32 reserved;
	int err;

	err = cta_ioctl_fetch_dealloc(&call, &reserved, arg, user_size) ?:
		      cta_ioctl_check_call(&call);
	if (err)
		return err;
	if (reserved)
		return -EINVAL;
	if (call.flags & ACCMEM_CTA_QUEUED)
		return accmem_cta_submit(cta, &call);
	return accmem_cta_dealloc(cta, &call);
}

static int cta_ioctl_relinquish(struct accmem_cta *cta, void __user *arg,
				u32 user_size)
{
	struct accmem_cta_relinquish req;
	int err;

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
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

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	accmem_cta_query(cta, &req);
	if (copy_to_user(arg, &req, min_t(size_t, user_size, sizeof(req))))
		return -EFAULT;
	return 0;
}

static int cta_ioctl_cancel(struct accmem_cta *cta, void __user *arg,
			    u32 user_size)
{
	struct accmem_cta_cancel req;
	int err;

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	return req.flags ? -EINVAL : accmem_cta_cancel(cta);
}

static int cta_ioctl_eventfd(struct accmem_cta *cta, void __user *arg,
			     u32 user_size)
{
	struct accmem_cta_eventfd req;
	int err;

	err = copy_struct_from_user(&req, sizeof(req), arg, user_size);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	return accmem_cta_set_eventfd(cta, req.fd);
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
ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_cancel);
ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_eventfd);

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
	[_IOC_NR(ACCMEM_IOC_CTA_CANCEL) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_CANCEL,
		.min_size = offsetofend(struct accmem_cta_cancel, flags),
		.run = cta_ioctl_cancel,
	},
	[_IOC_NR(ACCMEM_IOC_CTA_EVENTFD) - FIRST] = {
		.cmd = ACCMEM_IOC_CTA_EVENTFD,
		.min_size = offsetofend(struct accmem_cta_eventfd, reserved),
		.run = cta_ioctl_eventfd,
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
