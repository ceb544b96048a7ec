/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of callers, which begin with their size.
 */
#ifndef ACCMEM_USER_STRUCT_H
#define ACCMEM_USER_STRUCT_H

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/uaccess.h>

/*
 * Does a structure consist of 64-bit words, and begin with the 32-bit member size, which
 * accmem_get_size() reads? A constant expression.
 */
#define ACCMEM_BEGINS_WITH_SIZE(_type)              \
	(offsetofend(_type, size) == sizeof(u32) && \
	 !(sizeof(_type) % sizeof(u64)))

/*
 * The size of a caller's structure, with which it begins: 0, -EFAULT, -EINVAL
 * below @least, or -E2BIG above a page, beyond which no tail is looked at.
 */
static inline int accmem_get_size(const void __user *arg, u32 least, u32 *size)
{
	if (get_user(*size, (const u32 __user *)arg))
		return -EFAULT;
	if (*size < least)
		return -EINVAL;
	return *size > PAGE_SIZE ? -E2BIG : 0;
}

/*
 * A caller's structure of at least @least bytes, in the version that this kernel
 * knows: what accmem_get_size() returns, or -E2BIG, -EFAULT of the rest.
 */
static inline int accmem_copy_command(void *data, size_t size,
				      const void __user *arg, u32 least,
				      u32 *user_size)
{
	return accmem_get_size(arg, least, user_size) ?:
		       copy_struct_from_user(data, size, arg, *user_size);
}

#endif /* ACCMEM_USER_STRUCT_H */
