/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Command: an ioctl in progress, with a copy of its structure.
 *
 * The function of a command reads the request from the copy, writes the answer to the
 * copy, and calls accmem_command_respond().
 */
#ifndef ACCMEM_COMMAND_H
#define ACCMEM_COMMAND_H

#include <linux/types.h>

#include <uapi/linux/accmem.h>

struct accmem_context;

/* The structure of any command. */
union accmem_command_data {
	u32 user_size; /* first in every structure */
	struct accmem_info info;
	struct accmem_alloc alloc;
	struct accmem_free free;
	struct accmem_query query;
	struct accmem_realloc realloc;
	struct accmem_access access;
	struct accmem_prefetch prefetch;
	struct accmem_advise advise;
	struct accmem_pressure pressure;
	struct accmem_stream_create stream_create;
	struct accmem_export_buffer export;
	struct accmem_import_buffer import;
	struct accmem_tmem_setup tmem_setup;
	struct accmem_tmem_launch tmem_launch;
	struct accmem_tmem_cluster tmem_cluster;
};

/**
 * struct accmem_command - an ioctl in progress
 * @ctx: the context of the file
 * @arg: the address of the structure in user space
 * @user_size: the size of the structure in user space
 * @size: the size of the structure in the version that this kernel knows
 * @data: the kernel's copy of the structure
 *
 * Only the calling thread uses it: no lock.
 */
struct accmem_command {
	struct accmem_context *ctx;
	void __user *arg;
	u32 user_size;
	size_t size;
	union accmem_command_data data;
};

int accmem_command_respond(struct accmem_command *cmd);
int accmem_command_try_to_respond(struct accmem_command *cmd);

#endif /* ACCMEM_COMMAND_H */
