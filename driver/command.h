/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A command of the device's file that is being run, and its answer.
 */
#ifndef ACCMEM_COMMAND_H
#define ACCMEM_COMMAND_H

#include <linux/types.h>

#include <linux/accmem.h>

struct accmem_context;

/* the structure of any */
union accmem_command_data {
	u32 user_size; /* each begins with it */
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
	struct accmem_tmem_setup tmem_setup;
	struct accmem_tmem_launch tmem_launch;
	struct accmem_tmem_cluster tmem_cluster;
};

/**
 * struct accmem_command - a call in progress
 * @ctx: the context
 * @arg: the caller's structure
 * @user_size: bytes of it
 * @size: bytes of it in the version that this kernel knows
 * @data: the copy of it
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
