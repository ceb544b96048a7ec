// SPDX-License-Identifier: GPL-2.0
/*
 * Command: copy the answer of an ioctl to user space.
 *
 * A command's structure is read and written in place: the answer goes to the structure
 * that the request came from. A caller that was built for an older ABI has a shorter
 * structure, and gets only the members that it knows.
 *
 * Locking: no lock is held here.
 */
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "command.h"

/**
 * accmem_command_respond() - write the command's structure back to user space
 * @cmd: the command
 *
 * Writes at most cmd->user_size bytes.
 *
 * Context: Process context. May sleep.
 *
 * Return: 0 or -EFAULT.
 */
int accmem_command_respond(struct accmem_command *cmd)
{
	const u64 *from = (const u64 *)&cmd->data;
	u64 __user *to = cmd->arg;
	size_t words = cmd->size / sizeof(*to);

	if (unlikely(cmd->user_size < cmd->size))
		return copy_to_user(to, from, cmd->user_size) ? -EFAULT : 0;
	if (!user_write_access_begin(to, cmd->size))
		return -EFAULT;
	for (; words >= 4; words -= 4, to += 4, from += 4) {
		unsafe_put_user(from[0], to, fault);
		unsafe_put_user(from[1], to + 1, fault);
		unsafe_put_user(from[2], to + 2, fault);
		unsafe_put_user(from[3], to + 3, fault);
	}
	for (; words; words--, to++, from++)
		unsafe_put_user(from[0], to, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

/**
 * accmem_command_try_to_respond() - check that the answer can be written
 * @cmd: the command
 *
 * Writes the first and the last word of the structure back, as they are in @cmd. That
 * suffices, since a structure lies in at most two pages.
 *
 * Context: Process context. May sleep.
 *
 * Return: 0 or -EFAULT.
 */
int accmem_command_try_to_respond(struct accmem_command *cmd)
{
	const u64 *from = (const u64 *)&cmd->data;
	u64 __user *to = cmd->arg;
	size_t last = cmd->size / sizeof(*to) - 1;

	if (unlikely(cmd->user_size < cmd->size))
		return accmem_command_respond(cmd);
	if (!user_write_access_begin(to, cmd->size))
		return -EFAULT;
	unsafe_put_user(from[0], to, fault);
	unsafe_put_user(from[last], to + last, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}
