// SPDX-License-Identifier: GPL-2.0
/*
 * Ioctls of a CTA's file: checks of sizes, flags and reserved fields.
 *
 * Each ioctl copies its structure from user space, checks it and calls a function of
 * call.c or queue.c. The ioctls of the device use a table and a copy of the whole
 * structure (ioctl.c in driver/). Here a switch selects the ioctl, and ALLOC and
 * DEALLOC are read by members: a call that does not wait is so short that a copy
 * would be a measurable part of it.
 *
 * Locking: none is held here.
 */
#include <linux/fs.h>
#include <linux/uaccess.h>

#include "core/user_struct.h"
#include "internal.h"

static int cta_ioctl_check_call(const struct accmem_cta_call *call)
{
	if (call->cta_group > 2)
		return -EINVAL;
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

/* Return true if the instruction has another cta_group than the launch (P13). */
static bool cta_ioctl_is_misgrouped(const struct accmem_cta *cta, u32 cta_group)
{
	return cta_group && cta_group != cta->c.group;
}

static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_alloc));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_dealloc));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_relinquish));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_query));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_cancel));
static_assert(ACCMEM_BEGINS_WITH_SIZE(struct accmem_cta_eventfd));

/*
 * Copy a structure from user space and store the caller's size in its first member.
 * @least is the size in the first version of the ABI.
 */
static int cta_ioctl_copy(void *req, size_t size, const void __user *arg,
			  u32 least)
{
	u32 user_size;
	int err;

	err = accmem_copy_command(req, size, arg, least, &user_size);
	if (err)
		return err;
	*(u32 *)req = user_size;
	return 0;
}

/*
 * ALLOC and DEALLOC have two ways to read the structure:
 *  - cta_ioctl_fetch_*() reads member by member, if the size is the one that this
 *    kernel knows;
 *  - cta_ioctl_copy_*() copies the whole structure, for any other size.
 */
static noinline int cta_ioctl_copy_alloc(struct accmem_cta_call *call,
					 u32 *reserved, const void __user *arg)
{
	struct accmem_cta_alloc req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_alloc, destination));
	if (err)
		return err;
	call->flags = req.flags;
	call->columns = req.columns;
	call->warp = req.warp;
	call->deadline_ns = req.deadline_ns;
	call->user_data = req.user_data;
	call->destination = u64_to_user_ptr(req.destination);
	call->cta_group = req.cta_group;
	*reserved = req.reserved;
	return 0;
}

static __always_inline int
cta_ioctl_fetch_alloc(struct accmem_cta_call *call, u32 *reserved,
		      const struct accmem_cta_alloc __user *arg)
{
	u64 destination;
	u32 size;

	if (!user_read_access_begin(arg, sizeof(*arg)))
		return cta_ioctl_copy_alloc(call, reserved, arg);
	unsafe_get_user(size, &arg->size, fault);
	if (unlikely(size != sizeof(*arg))) {
		user_read_access_end();
		return cta_ioctl_copy_alloc(call, reserved, arg);
	}
	unsafe_get_user(call->flags, &arg->flags, fault);
	unsafe_get_user(call->columns, &arg->columns, fault);
	unsafe_get_user(call->warp, &arg->warp, fault);
	unsafe_get_user(call->deadline_ns, &arg->deadline_ns, fault);
	unsafe_get_user(call->user_data, &arg->user_data, fault);
	unsafe_get_user(destination, &arg->destination, fault);
	unsafe_get_user(call->cta_group, &arg->cta_group, fault);
	unsafe_get_user(*reserved, &arg->reserved, fault);
	user_read_access_end();
	call->destination = u64_to_user_ptr(destination);
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static noinline int cta_ioctl_copy_dealloc(struct accmem_cta_call *call,
					   const void __user *arg)
{
	struct accmem_cta_dealloc req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_dealloc,
					 deadline_ns));
	if (err)
		return err;
	call->flags = req.flags;
	call->address = req.address;
	call->columns = req.columns;
	call->warp = req.warp;
	call->deadline_ns = req.deadline_ns;
	call->user_data = req.user_data;
	call->cta_group = req.cta_group;
	return 0;
}

static __always_inline int
cta_ioctl_fetch_dealloc(struct accmem_cta_call *call,
			const struct accmem_cta_dealloc __user *arg)
{
	u32 size;

	if (!user_read_access_begin(arg, sizeof(*arg)))
		return cta_ioctl_copy_dealloc(call, arg);
	unsafe_get_user(size, &arg->size, fault);
	if (unlikely(size != sizeof(*arg))) {
		user_read_access_end();
		return cta_ioctl_copy_dealloc(call, arg);
	}
	unsafe_get_user(call->flags, &arg->flags, fault);
	unsafe_get_user(call->address, &arg->address, fault);
	unsafe_get_user(call->columns, &arg->columns, fault);
	unsafe_get_user(call->warp, &arg->warp, fault);
	unsafe_get_user(call->deadline_ns, &arg->deadline_ns, fault);
	unsafe_get_user(call->user_data, &arg->user_data, fault);
	unsafe_get_user(call->cta_group, &arg->cta_group, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

/*
 * Not inlined: accmem_cta_ioctl() would have the stack frames of all ioctls
 * together.
 */
static noinline int cta_ioctl_alloc(struct accmem_cta *cta, void __user *arg)
{
	struct accmem_cta_call call = { .op = ACCMEM_CTA_OP_ALLOC };
	u32 reserved;
	int err;

	err = cta_ioctl_fetch_alloc(&call, &reserved, arg) ?:
		      cta_ioctl_check_call(&call);
	if (err)
		return err;
	if (reserved)
		return -EINVAL;
	if (cta_ioctl_is_misgrouped(cta, call.cta_group))
		return accmem_cta_refuse(cta, &call, -EPROTOTYPE);
	if (!(call.flags & ACCMEM_CTA_QUEUED))
		return accmem_cta_alloc(cta, &call);
	return call.destination ? -EINVAL : accmem_cta_submit(cta, &call);
}

static noinline int cta_ioctl_dealloc(struct accmem_cta *cta, void __user *arg)
{
	struct accmem_cta_call call = { .op = ACCMEM_CTA_OP_DEALLOC };
	int err;

	err = cta_ioctl_fetch_dealloc(&call, arg) ?:
						    cta_ioctl_check_call(&call);
	if (err)
		return err;
	if (cta_ioctl_is_misgrouped(cta, call.cta_group))
		return accmem_cta_refuse(cta, &call, -EPROTOTYPE);
	if (call.flags & ACCMEM_CTA_QUEUED)
		return accmem_cta_submit(cta, &call);
	return accmem_cta_dealloc(cta, &call);
}

static noinline int cta_ioctl_relinquish(struct accmem_cta *cta,
					 void __user *arg)
{
	const struct accmem_cta_call call = { .op = ACCMEM_CTA_OP_RELINQUISH };
	struct accmem_cta_relinquish req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_relinquish, flags));
	if (err)
		return err;
	if (req.flags || req.reserved || req.cta_group > 2)
		return -EINVAL;
	if (cta_ioctl_is_misgrouped(cta, req.cta_group))
		return accmem_cta_refuse(cta, &call, -EPROTOTYPE);
	return accmem_cta_relinquish(cta, &call);
}

static noinline int cta_ioctl_query(struct accmem_cta *cta, void __user *arg)
{
	struct accmem_cta_query req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_query, reserved));
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	accmem_cta_query(cta, &req);
	if (copy_to_user(arg, &req, min_t(size_t, req.size, sizeof(req))))
		return -EFAULT;
	return 0;
}

static noinline int cta_ioctl_cancel(struct accmem_cta *cta, void __user *arg)
{
	struct accmem_cta_cancel req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_cancel, flags));
	if (err)
		return err;
	return req.flags ? -EINVAL : accmem_cta_cancel(cta);
}

static noinline int cta_ioctl_eventfd(struct accmem_cta *cta, void __user *arg)
{
	struct accmem_cta_eventfd req;
	int err;

	err = cta_ioctl_copy(&req, sizeof(req), arg,
			     offsetofend(struct accmem_cta_eventfd, reserved));
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EINVAL;
	return accmem_cta_set_eventfd(cta, req.fd);
}

/**
 * accmem_cta_ioctl() - the ioctl of a CTA's file
 * @file: the file of the CTA
 * @nr: ACCMEM_IOC_CTA_*
 * @arg: address of the command's structure in user memory
 *
 * Context: Process context. Takes and releases tmem->lock. May sleep.
 *
 * Return: 0 or the command's error; -ENOTTY for an unknown command.
 */
long accmem_cta_ioctl(struct file *file, unsigned int nr, unsigned long arg)
{
	struct accmem_cta *cta = file->private_data;
	void __user *user = (void __user *)arg;

	switch (nr) {
	case ACCMEM_IOC_CTA_ALLOC:
		return cta_ioctl_alloc(cta, user);
	case ACCMEM_IOC_CTA_DEALLOC:
		return cta_ioctl_dealloc(cta, user);
	case ACCMEM_IOC_CTA_RELINQUISH:
		return cta_ioctl_relinquish(cta, user);
	case ACCMEM_IOC_CTA_QUERY:
		return cta_ioctl_query(cta, user);
	case ACCMEM_IOC_CTA_CANCEL:
		return cta_ioctl_cancel(cta, user);
	case ACCMEM_IOC_CTA_EVENTFD:
		return cta_ioctl_eventfd(cta, user);
	default:
		return -ENOTTY;
	}
}
