// SPDX-License-Identifier: GPL-2.0
/*
 * Limits: module parameters whose change wakes waiters.
 *
 * The variables are in core/account.c. After a parameter of buffers or bytes is
 * written, the waiters of all devices are checked again. max_contexts_per_user wakes
 * nothing, since open() does not wait.
 *
 * Locks: none.
 */
#include <linux/moduleparam.h>

#include "core/account.h"
#include "core/size_param.h"
#include "internal.h"

static int limits_set(const char *text, const struct kernel_param *param)
{
	int err = accmem_size_param_ops.set(text, param);

	accmem_waiters_limits_raised();
	return err;
}

static const struct kernel_param_ops limits_ops = {
	.set = limits_set,
	.get = param_get_ullong,
};

module_param_cb(max_contexts_per_user, &accmem_size_param_ops,
		&accmem_max_contexts_per_user, 0644);
__MODULE_PARM_TYPE(max_contexts_per_user, "ullong");
MODULE_PARM_DESC(max_contexts_per_user,
		 "contexts a user may have (0: no limit; default 1024)");

module_param_cb(max_buffers_per_user, &limits_ops, &accmem_max_buffers_per_user,
		0644);
__MODULE_PARM_TYPE(max_buffers_per_user, "ullong");
MODULE_PARM_DESC(max_buffers_per_user,
		 "buffers a user may have (0: no limit; default 1048576)");

module_param_cb(max_fences_per_user, &accmem_size_param_ops,
		&accmem_max_fences_per_user, 0644);
__MODULE_PARM_TYPE(max_fences_per_user, "ullong");
MODULE_PARM_DESC(max_fences_per_user,
		 "fences a user may have (0: no limit; default 65536)");

module_param_cb(max_exports_per_user, &accmem_size_param_ops,
		&accmem_max_exports_per_user, 0644);
__MODULE_PARM_TYPE(max_exports_per_user, "ullong");
MODULE_PARM_DESC(max_exports_per_user,
		 "dma-bufs a user may have (0: no limit; default 65536)");

module_param_cb(max_waits_per_user, &accmem_size_param_ops,
		&accmem_max_waits_per_user, 0644);
__MODULE_PARM_TYPE(max_waits_per_user, "ullong");
MODULE_PARM_DESC(max_waits_per_user,
		 "sleeping STREAM_WAIT calls of a user (0: no limit)");

module_param_cb(max_bytes_per_user, &limits_ops, &accmem_max_bytes_per_user,
		0644);
__MODULE_PARM_TYPE(max_bytes_per_user, "ullong");
MODULE_PARM_DESC(max_bytes_per_user,
		 "bytes a user may have (0: no limit, the default)");

module_param_cb(max_bytes_per_context, &limits_ops,
		&accmem_max_bytes_per_context, 0644);
__MODULE_PARM_TYPE(max_bytes_per_context, "ullong");
MODULE_PARM_DESC(max_bytes_per_context,
		 "bytes a context may have (0: no limit, the default)");
