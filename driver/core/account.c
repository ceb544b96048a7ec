// SPDX-License-Identifier: GPL-2.0
/*
 * Users and accounts: charges, and the limits on them.
 *
 * An account belongs to an open file. Memory that is allocated through the file is
 * charged to the account until the memory is free again; detached and quarantined
 * memory stays charged. The account therefore outlives its context, and counts as one
 * of the contexts of its user until its memory is free.
 *
 * A user is in the table while it has an account or a Tensor Memory object, and while
 * the rate limit of its messages is in effect. Each user has a rate limit of its own,
 * so that the messages of one user cannot suppress those of another.
 *
 * Charges are atomic counters, since a charge is made under the carveout's lock,
 * together with the placement that determines its size. CAP_SYS_RESOURCE lifts the
 * limits of a user, but not those of a context.
 *
 * Locks: users_lock guards the table; it is the innermost of the locks that sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "core/account.h"

/* Module parameters, registered by waitq/limits.c. */
unsigned long long accmem_max_contexts_per_user = 1024;
unsigned long long accmem_max_buffers_per_user = 1ull << 20;
unsigned long long accmem_max_bytes_per_user;
unsigned long long accmem_max_bytes_per_context;

static DEFINE_MUTEX(users_lock); /* the table of users, and accmem_user.refs */
static DEFINE_HASHTABLE(users, 6);

/**
 * accmem_add_within() - add to a counter unless the sum exceeds a limit
 * @counter: counter; it never contains a refused addition, not even for a moment
 * @n: number to add
 * @limit: largest permitted sum
 *
 * Context: Any context.
 * Return: true if @n was added or is 0.
 */
bool accmem_add_within(atomic64_t *counter, u64 n, u64 limit)
{
	s64 old = atomic64_read(counter);
	u64 sum;

	if (!n)
		return true;
	do {
		if (check_add_overflow((u64)old, n, &sum) || sum > limit)
			return false;
	} while (!atomic64_try_cmpxchg(counter, &old, sum));
	return true;
}

static bool account_charge_one(atomic64_t *counter, u64 n, u64 limit,
			       bool exempt)
{
	return accmem_add_within(counter, n,
				 limit && !exempt ? limit : U64_MAX);
}

static struct accmem_user *user_find(kuid_t uid)
{
	struct accmem_user *user;

	lockdep_assert_held(&users_lock);
	hash_for_each_possible(users, user, node, __kuid_val(uid)) {
		if (uid_eq(user->uid, uid))
			return user;
	}
	return NULL;
}

/*
 * Free the users without references. Unless @all is set, a user stays while the rate
 * limit of its messages is in effect.
 */
static void users_forget(bool all)
{
	struct accmem_user *user;
	struct hlist_node *next;
	unsigned int i;

	lockdep_assert_held(&users_lock);
	hash_for_each_safe(users, i, next, user, node) {
		if (user->refs ||
		    (!all && user->last_message &&
		     time_before(jiffies, user->last_message +
						  DEFAULT_RATELIMIT_INTERVAL)))
			continue;
		hash_del(&user->node);
		xa_destroy(&user->accounts);
		kfree(user);
	}
}

/*
 * Return the user with a new reference. If there is none, *@spare becomes the user and
 * is set to NULL.
 */
static struct accmem_user *user_find_or_add(kuid_t uid,
					    struct accmem_user **spare)
{
	struct accmem_user *user;

	mutex_lock(&users_lock);
	user = user_find(uid);
	if (!user) {
		user = *spare;
		*spare = NULL;
		user->uid = uid;
		xa_init_flags(&user->accounts, XA_FLAGS_ACCOUNT);
		ratelimit_state_init(&user->messages,
				     DEFAULT_RATELIMIT_INTERVAL,
				     DEFAULT_RATELIMIT_BURST);
		/* accmem_user_ratelimit() counts the messages that are left out. */
		ratelimit_set_flags(&user->messages, RATELIMIT_MSG_ON_RELEASE);
		hash_add(users, &user->node, __kuid_val(uid));
	}
	user->refs++;
	mutex_unlock(&users_lock);
	return user;
}

/**
 * accmem_user_get() - acquire a reference to a user
 * @user: user, of which the caller holds an account
 *
 * The reference is not charged to the user.
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 */
void accmem_user_get(struct accmem_user *user)
{
	mutex_lock(&users_lock);
	user->refs++;
	mutex_unlock(&users_lock);
}

/**
 * accmem_user_put() - drop a reference to a user
 * @user: user
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 */
void accmem_user_put(struct accmem_user *user)
{
	mutex_lock(&users_lock);
	if (!--user->refs)
		users_forget(false);
	mutex_unlock(&users_lock);
}

/**
 * accmem_user_ratelimit() - check the rate limit of a user's messages
 * @user: user
 *
 * The limit stays in effect after the user has closed all files. If messages were left
 * out, the next one that may be written has their number before it.
 *
 * Context: Any context.
 * Return: true if a message may be written.
 */
bool accmem_user_ratelimit(struct accmem_user *user)
{
	int left_out;

	WRITE_ONCE(user->last_message, jiffies ?: 1);
	if (!__ratelimit(&user->messages)) {
		atomic_inc(&user->left_out);
		return false;
	}
	left_out = atomic_xchg(&user->left_out, 0);
	if (left_out)
		pr_notice("user %u: %d messages were left out\n",
			  from_kuid(&init_user_ns, user->uid), left_out);
	return true;
}

/**
 * accmem_users_exit() - free all users when the module is unloaded
 *
 * No file is open.
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 */
void accmem_users_exit(void)
{
	mutex_lock(&users_lock);
	users_forget(true);
	mutex_unlock(&users_lock);
}

/* Charge a new context to its user. */
static int user_enter(struct accmem_user *user)
{
	u64 limit = READ_ONCE(accmem_max_contexts_per_user);

	if (account_charge_one(&user->contexts, 1, limit, false) ||
	    (capable(CAP_SYS_RESOURCE) &&
	     account_charge_one(&user->contexts, 1, limit, true)))
		return 0;
	return -EMFILE;
}

/* Account numbers are unique on a device only, and a user has contexts on several. */
static unsigned long user_key(const struct accmem_account *account)
{
	return (unsigned long)account->accounts->index << 48 | account->id;
}

/* Publish the account: from here on debugfs and reclaim can find it. */
static int account_insert(struct accmem_account *account)
{
	struct accmem_accounts *accounts = account->accounts;
	int err;

	err = xa_insert(&account->user->accounts, user_key(account), account,
			GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = xa_insert(&accounts->xa, account->id, account,
			GFP_KERNEL_ACCOUNT);
	if (err)
		xa_erase(&account->user->accounts, user_key(account));
	return err;
}

/**
 * accmem_account_open() - create the account of a file that is being opened
 * @accounts: accounts of the device
 * @waiters: waiters of the device
 * @nr_carveouts: number of carveouts, host memory included
 * @uid: user
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 * Return: the account, with a reference; -EMFILE if the user has reached its limit of
 * contexts; -ENOMEM.
 */
struct accmem_account *accmem_account_open(struct accmem_accounts *accounts,
					   struct accmem_waiters *waiters,
					   unsigned int nr_carveouts,
					   kuid_t uid)
{
	struct accmem_account *account;
	struct accmem_user *spare;
	unsigned int i;
	int err = -ENOMEM;

	account = kzalloc(struct_size(account, quarantine, nr_carveouts),
			  GFP_KERNEL_ACCOUNT);
	/* Allocated before users_lock is held, so that no other open() waits. */
	spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	if (!account || !spare)
		goto err_free;
	kref_init(&account->refs);
	for (i = 0; i < nr_carveouts; i++)
		INIT_LIST_HEAD(&account->quarantine[i].memory);
	account->accounts = accounts;
	account->waiters = waiters;
	account->id = atomic_long_inc_return(&accounts->last_id);
	account->pid = task_tgid_nr(current);
	get_task_comm(account->comm, current);
	account->user = user_find_or_add(uid, &spare);
	err = user_enter(account->user);
	if (err)
		goto err_user;
	err = account_insert(account);
	if (err)
		goto err_leave;
	kfree(spare);
	return account;

err_leave:
	atomic64_dec(&account->user->contexts);
err_user:
	accmem_user_put(account->user);
	kfree(spare);
	/* An RCU reader of the user's accounts may still use the account. */
	kfree_rcu(account, rcu);
	return ERR_PTR(err);
err_free:
	kfree(spare);
	kfree(account);
	return ERR_PTR(err);
}

void accmem_account_get(struct accmem_account *account)
{
	kref_get(&account->refs);
}

static void account_release(struct kref *refs)
{
	struct accmem_account *account =
		container_of(refs, struct accmem_account, refs);
	struct accmem_user *user = account->user;

	WARN_ON_ONCE(atomic64_read(&account->bytes));
	xa_erase(&account->accounts->xa, account->id);
	xa_erase(&user->accounts, user_key(account));
	if (account->file)
		fput(account->file);
	atomic64_dec(&user->contexts);
	accmem_user_put(user);
	kfree_rcu(account, rcu);
}

/**
 * accmem_account_put() - drop a reference to an account
 * @account: account
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 */
void accmem_account_put(struct accmem_account *account)
{
	kref_put(&account->refs, account_release);
}

/**
 * accmem_charge() - charge memory to an account and its user
 * @account: account
 * @bytes: bytes to charge
 * @exempt: the caller has CAP_SYS_RESOURCE: the limits of the user do not apply
 *
 * Context: Any context. Does not sleep.
 * Return: 0; -EDQUOT if a limit would be exceeded.
 */
int accmem_charge(struct accmem_account *account, u64 bytes, bool exempt)
{
	if (!account_charge_one(&account->bytes, bytes,
				READ_ONCE(accmem_max_bytes_per_context), false))
		return -EDQUOT;
	if (account_charge_one(&account->user->bytes, bytes,
			       READ_ONCE(accmem_max_bytes_per_user), exempt))
		return 0;
	atomic64_sub(bytes, &account->bytes);
	return -EDQUOT;
}

/**
 * accmem_charge_buffers() - charge buffers to the user of an account
 * @account: account
 * @buffers: number of buffers; their memory is charged by accmem_charge()
 *
 * With CAP_SYS_RESOURCE the limit does not apply.
 *
 * Context: Process context. May sleep.
 * Return: 0; -EDQUOT if a limit would be exceeded.
 */
int accmem_charge_buffers(struct accmem_account *account, u64 buffers)
{
	u64 limit = READ_ONCE(accmem_max_buffers_per_user);
	atomic64_t *counter = &account->user->buffers;

	if (account_charge_one(counter, buffers, limit, false) ||
	    (capable(CAP_SYS_RESOURCE) &&
	     account_charge_one(counter, buffers, limit, true)))
		return 0;
	return -EDQUOT;
}

/**
 * accmem_charge_buffer() - charge one buffer on behalf of a waiter
 * @account: account of the waiter
 * @exempt: the limits of the user do not apply
 *
 * Context: Any context. Does not sleep.
 * Return: true if the buffer was charged; false if a limit would be exceeded.
 */
bool accmem_charge_buffer(struct accmem_account *account, bool exempt)
{
	return account_charge_one(&account->user->buffers, 1,
				  READ_ONCE(accmem_max_buffers_per_user),
				  exempt);
}

/**
 * accmem_uncharge() - undo accmem_charge(), or a part of it
 * @account: account
 * @bytes: bytes to uncharge
 *
 * Context: Any context. Does not sleep.
 */
void accmem_uncharge(struct accmem_account *account, u64 bytes)
{
	atomic64_sub(bytes, &account->user->bytes);
	atomic64_sub(bytes, &account->bytes);
}

/**
 * accmem_uncharge_buffers() - undo accmem_charge_buffers()
 * @account: account
 * @buffers: number of buffers to uncharge
 *
 * Context: Any context. Does not sleep.
 */
void accmem_uncharge_buffers(struct accmem_account *account, u64 buffers)
{
	atomic64_sub(buffers, &account->user->buffers);
}

static bool account_fits_one(const atomic64_t *counter, u64 n, u64 limit)
{
	u64 sum;

	return !n || !limit ||
	       (!check_add_overflow((u64)atomic64_read(counter), n, &sum) &&
		sum <= limit);
}

/**
 * accmem_charge_fits() - check whether a charge could succeed at the moment
 * @account: account
 * @bytes: smallest number of bytes that would be charged
 * @buffers: number of buffers that would be charged
 * @exempt: the limits of the user do not apply
 *
 * Context: Any context. Does not sleep.
 * Return: false only if accmem_charge() or accmem_charge_buffers() would fail now.
 */
bool accmem_charge_fits(const struct accmem_account *account, u64 bytes,
			u64 buffers, bool exempt)
{
	const struct accmem_user *user = account->user;

	if (!account_fits_one(&account->bytes, bytes,
			      READ_ONCE(accmem_max_bytes_per_context)))
		return false;
	return exempt ||
	       (account_fits_one(&user->bytes, bytes,
				 READ_ONCE(accmem_max_bytes_per_user)) &&
		account_fits_one(&user->buffers, buffers,
				 READ_ONCE(accmem_max_buffers_per_user)));
}

/**
 * accmem_charge_exceeds_limit() - check whether a charge alone exceeds a limit
 * @bytes: bytes; U64_MAX asks whether any limit is set
 * @exempt: the limits of the user do not apply
 *
 * Context: Any context. Does not sleep.
 * Return: true if a limit is lower than @bytes, so that the charge can never succeed.
 */
bool accmem_charge_exceeds_limit(u64 bytes, bool exempt)
{
	u64 context = READ_ONCE(accmem_max_bytes_per_context);
	u64 user = READ_ONCE(accmem_max_bytes_per_user);

	return (context && bytes > context) ||
	       (user && !exempt && bytes > user);
}
