// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to commands of the device's file.
 *
 * Owns nothing. No lock is held here.
 */
#include <linux/kernel.h>
#include <linux/uaccess.h>

#include "command.h"

/**
 * accmem_command_respond() - write the results back
 * @cmd: the command; as much of them as the caller knows
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
 * accmem_command_try_to_respond() - find out whether results could be written
 * @cmd: the command
 *
 * Writes what was read; a structure lies in two pages at most.
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
