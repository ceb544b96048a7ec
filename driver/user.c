// SPDX-License-Identifier: GPL-2.0
/*
 * What a user, and a context, may hold.
 *
 * Owns the table of users. A user is charged for what was allocated through
 * files that it opened, until the memory is free again: detached and
 * quarantined memory stays charged. CAP_SYS_RESOURCE lifts a user's limits,
 * not a context's. The counters are atomic.
 *
 * Locks: accmem_stash_drain_lock > users_lock > stash.lock.
 */
#include <linux/capability.h>
#include <linux/hashtable.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
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

/**
 * accmem_add_within() - add to a counter that has a limit
 * @counter: the counter; what is refused is never seen in it
 * @n: what to add
 * @limit: what it may become
 *
 * Return: whether it was added.
 */
bool accmem_add_within(atomic64_t *counter, u64 n, u64 limit)
{
	s64 old = atomic64_read(counter);
	u64 sum;

	do {
		if (check_add_overflow((u64)old, n, &sum) || sum > limit)
			return false;
	} while (!atomic64_try_cmpxchg(counter, &old, sum));
	return true;
}

/*
 * Adds @n to @counter. -EDQUOT beyond @limit (0: none), if the caller is not
 * @exempt from it; -ENOMEM where there can be no such sum.
 */
static int charge_one(atomic64_t *counter, u64 n, u64 limit, bool exempt)
{
	if (limit && accmem_add_within(counter, n, limit))
		return 0;
	if (limit && !(exempt && capable(CAP_SYS_RESOURCE)))
		return -EDQUOT;
	return accmem_add_within(counter, n, U64_MAX) ? 0 : -ENOMEM;
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

/* The user, which is *@spare if there was none; that is NULL then. */
static struct accmem_user *get_user_ref(kuid_t uid, struct accmem_user **spare)
{
	struct accmem_user *user;

	lockdep_assert_held(&users_lock);
	user = lookup_user(uid);
	if (!user) {
		user = *spare;
		*spare = NULL;
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
	struct accmem_user *user, *spare;
	int err = 0;

	/* not under the lock: others need not wait for this one's memory */
	spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	if (!spare)
		return -ENOMEM;
	mutex_lock(&users_lock);
	user = get_user_ref(uid, &spare);
	if (charge_one(&user->contexts, 1,
		       READ_ONCE(accmem_max_contexts_per_user), true)) {
		put_user_ref(user);
		err = -EMFILE;
	} else {
		ctx->user = user;
		list_add_tail(&ctx->user_link, &user->list);
	}
	mutex_unlock(&users_lock);
	kfree(spare);
	return err;
}

/**
 * accmem_user_leave() - a context has ended
 * @ctx: the context, which has nothing left to drain; its buffers stay charged
 */
void accmem_user_leave(struct accmem_context *ctx)
{
	mutex_lock(&users_lock);
	list_del_init(&ctx->user_link);
	mutex_unlock(&users_lock);
	atomic64_dec(&ctx->user->contexts);
}

/**
 * accmem_user_close() - undo accmem_user_open()
 * @ctx: the context, which left and whose last buffer has gone
 */
void accmem_user_close(struct accmem_context *ctx)
{
	mutex_lock(&users_lock);
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

	mutex_lock(&accmem_stash_drain_lock);
	mutex_lock(&users_lock);
	list_for_each_entry(ctx, &user->list, user_link)
		accmem_stash_collect(ctx, &list);
	mutex_unlock(&users_lock);
	accmem_stash_release(&list);
	mutex_unlock(&accmem_stash_drain_lock);
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
 * Return: 0; -EDQUOT where a limit would be passed; -ENOMEM for what no memory
 * can hold.
 */
int accmem_charge(struct accmem_context *ctx, u64 bytes)
{
	struct accmem_user *user = ctx->user;
	int err;

	atomic64_inc(&user->charges);
	err = charge_one(&ctx->bytes, bytes,
			 READ_ONCE(accmem_max_bytes_per_context), false);
	if (err)
		return err;
	err = charge_one(&user->bytes, bytes,
			 READ_ONCE(accmem_max_bytes_per_user), true);
	if (err)
		goto err_context;
	err = charge_one(&user->buffers, 1,
			 READ_ONCE(accmem_max_buffers_per_user), true);
	if (err)
		goto err_user;
	return 0;

err_user:
	atomic64_sub(bytes, &user->bytes);
err_context:
	atomic64_sub(bytes, &ctx->bytes);
	return err;
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
