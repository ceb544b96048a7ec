// SPDX-License-Identifier: GPL-2.0
/*
 * What a user, and a context, may hold.
 *
 * Owns the table of users. A user is charged for what was allocated through
 * files that it opened, until the memory is free again: detached and
 * quarantined memory stays charged. CAP_SYS_RESOURCE lifts a user's limits,
 * not a context's. The counters are atomic.
 *
 * Locks: users_lock > context.lock.
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

static DEFINE_MUTEX(users_lock); /* the table, its refs, lists of contexts */
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
		INIT_LIST_HEAD(&user->list);
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
 * @ctx: the context, which is made the user's until accmem_user_close()
 * @uid: the user
 *
 * Return: 0; -EMFILE when it has as many contexts as it may, -ENOMEM.
 */
int accmem_user_open(struct accmem_context *ctx, kuid_t uid)
{
	struct accmem_user *user;
	int err = 0;

	mutex_lock(&users_lock);
	user = get_user_ref(uid);
	if (!user) {
		err = -ENOMEM;
	} else if (!add_within(&user->contexts, 1,
			       READ_ONCE(accmem_max_contexts_per_user), true)) {
		put_user_ref(user);
		err = -EMFILE;
	} else {
		ctx->user = user;
		list_add_tail(&ctx->user_link, &user->list);
	}
	mutex_unlock(&users_lock);
	return err;
}

/**
 * accmem_user_close() - a context leaves its user
 * @ctx: the context, whose last buffer has gone; the user's count of contexts
 *	went down before
 */
void accmem_user_close(struct accmem_context *ctx)
{
	mutex_lock(&users_lock);
	list_del(&ctx->user_link);
	put_user_ref(ctx->user);
	mutex_unlock(&users_lock);
}

/**
 * accmem_user_drain() - give back what all stashes of a user hold
 * @user: the user
 *
 * On whatever device: to be called, without locks, before a request fails over
 * a limit.
 */
void accmem_user_drain(struct accmem_user *user)
{
	struct accmem_context *ctx;
	LIST_HEAD(list);

	mutex_lock(&users_lock);
	list_for_each_entry(ctx, &user->list, user_link)
		accmem_stash_collect(ctx, &list);
	mutex_unlock(&users_lock);
	accmem_stash_release(&list);
}

/**
 * accmem_user_charges() - how often counters of users were changed
 *
 * Return: the sum over all users that there are.
 */
u64 accmem_user_charges(void)
{
	struct accmem_user *user;
	unsigned int i;
	u64 sum = 0;

	mutex_lock(&users_lock);
	hash_for_each(users, i, user, node)
		sum += atomic64_read(&user->charges);
	mutex_unlock(&users_lock);
	return sum;
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

	atomic64_inc(&user->charges);
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
	atomic64_inc(&ctx->user->charges);
	atomic64_dec(&ctx->user->buffers);
	atomic64_sub(bytes, &ctx->user->bytes);
	atomic64_sub(bytes, &ctx->bytes);
}
