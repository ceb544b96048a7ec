// SPDX-License-Identifier: GPL-2.0
/*
 * What a user, and a context, may hold.
 *
 * Owns the table of users. A user is charged for what was allocated through
 * files that it opened, until the memory is free again: detached and
 * quarantined memory stays charged. CAP_SYS_RESOURCE lifts a user's limits,
 * not a context's. users_lock is a leaf; the counters are atomic.
 */
#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "accmem_drv.h"

unsigned long accmem_max_contexts_per_user = 1024;
module_param_named(max_contexts_per_user, accmem_max_contexts_per_user, ulong,
		   0644);
MODULE_PARM_DESC(max_contexts_per_user,
		 "open files a user may have (0: no limit; default 1024)");

unsigned long accmem_max_buffers_per_user = 1ul << 20;
module_param_named(max_buffers_per_user, accmem_max_buffers_per_user, ulong,
		   0644);
MODULE_PARM_DESC(max_buffers_per_user,
		 "buffers a user may have (0: no limit; default 1048576)");

unsigned long long accmem_max_bytes_per_user;
module_param_named(max_bytes_per_user, accmem_max_bytes_per_user, ullong, 0644);
MODULE_PARM_DESC(max_bytes_per_user,
		 "bytes a user may have (0: no limit, the default)");

unsigned long long accmem_max_bytes_per_context;
module_param_named(max_bytes_per_context, accmem_max_bytes_per_context, ullong,
		   0644);
MODULE_PARM_DESC(max_bytes_per_context,
		 "bytes a context may have (0: no limit, the default)");

static DEFINE_MUTEX(users_lock); /* guards the table and the refs in it */
static DEFINE_HASHTABLE(users, 6);

/*
 * Adds @n to @counter unless that passes @limit (0: none) and the caller is
 * not @exempt from it.
 */
static bool add_within(atomic64_t *counter, u64 n, u64 limit, bool exempt)
{
	u64 sum = atomic64_add_return(n, counter);

	if (!limit || sum <= limit)
		return true;
	if (exempt && capable(CAP_SYS_RESOURCE))
		return true;
	atomic64_sub(n, counter);
	return false;
}

static struct accmem_user *lookup_user(kuid_t uid)
{
	struct accmem_user *user;

	lockdep_assert_held(&users_lock);
	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

static struct accmem_user *get_user_ref(kuid_t uid)
{
	struct accmem_user *user;

	lockdep_assert_held(&users_lock);
	user = lookup_user(uid);
	if (!user) {
		user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
		if (!user)
			return NULL;
		user->uid = uid;
		hash_add(users, &user->node, __kuid_val(uid));
	}
	user->refs++;
	return user;
}

static void put_user_ref(struct accmem_user *user)
{
	lockdep_assert_held(&users_lock);
	if (--user->refs)
		return;
	hash_del(&user->node);
	kfree(user);
}

/**
 * accmem_user_open() - charge a new context to a user
 * @uid: the user
 *
 * Return: the user, with a reference that accmem_user_close() gives back;
 * -EMFILE when it has as many contexts as it may, -ENOMEM.
 */
struct accmem_user *accmem_user_open(kuid_t uid)
{
	struct accmem_user *user;

	mutex_lock(&users_lock);
	user = get_user_ref(uid);
	if (!user) {
		user = ERR_PTR(-ENOMEM);
	} else if (!add_within(&user->contexts, 1,
			       READ_ONCE(accmem_max_contexts_per_user), true)) {
		put_user_ref(user);
		user = ERR_PTR(-EMFILE);
	}
	mutex_unlock(&users_lock);
	return user;
}

/**
 * accmem_user_close() - drop a context's reference to its user
 * @user: the user; its count of contexts went down before
 */
void accmem_user_close(struct accmem_user *user)
{
	mutex_lock(&users_lock);
	put_user_ref(user);
	mutex_unlock(&users_lock);
}

/**
 * accmem_charge() - charge one buffer
 * @ctx: the context it is for
 * @bytes: its footprint
 *
 * Return: 0, or -EDQUOT where a limit would be passed.
 */
int accmem_charge(struct accmem_context *ctx, u64 bytes)
{
	struct accmem_user *user = ctx->user;

	if (!add_within(&ctx->bytes, bytes,
			READ_ONCE(accmem_max_bytes_per_context), false))
		return -EDQUOT;
	if (!add_within(&user->bytes, bytes,
			READ_ONCE(accmem_max_bytes_per_user), true))
		goto err_context;
	if (!add_within(&user->buffers, 1,
			READ_ONCE(accmem_max_buffers_per_user), true))
		goto err_user;
	return 0;

err_user:
	atomic64_sub(bytes, &user->bytes);
err_context:
	atomic64_sub(bytes, &ctx->bytes);
	return -EDQUOT;
}

/**
 * accmem_uncharge() - undo accmem_charge()
 * @ctx: the context
 * @bytes: the footprint
 */
void accmem_uncharge(struct accmem_context *ctx, u64 bytes)
{
	atomic64_dec(&ctx->user->buffers);
	atomic64_sub(bytes, &ctx->user->bytes);
	atomic64_sub(bytes, &ctx->bytes);
}
