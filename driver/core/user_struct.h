/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copying of ioctl structures that begin with their size.
 *
 * User space passes a structure of the version that it was compiled with. A shorter
 * structure is extended with zeroes; a longer one is accepted if the bytes that the
 * kernel does not know are zero (copy_struct_from_user()).
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
 * Read the size that a structure begins with. Returns 0, -EFAULT, -EINVAL below @least,
 * or -E2BIG above the size of a page. Sleeps.
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
 * Copy a structure of at least @least bytes from user space, converted to the version
 * of this kernel. Returns the errors of accmem_get_size(); also -E2BIG if unknown bytes
 * are not zero, and -EFAULT. Sleeps.
 */
static inline int accmem_copy_command(void *data, size_t size,
				      const void __user *arg, u32 least,
				      u32 *user_size)
{
	return accmem_get_size(arg, least, user_size) ?:
		       copy_struct_from_user(data, size, arg, *user_size);
}

#endif /* ACCMEM_USER_STRUCT_H */
