// SPDX-License-Identifier: GPL-2.0
/*
 * What a user, and a context, may hold.
 *
 * Owns the table of users, and the accounts. A file that is opened has an
 * account, which is charged for what is allocated through the file until that
 * memory is free again: detached and quarantined memory stays charged, and so
 * the account stays, after its context has ended, and counts as one of its
 * user's contexts. CAP_SYS_RESOURCE lifts a user's limits, not a context's.
 *
 * A user is there as long as it has an account, or as somebody refers to it who may
 * have messages to write for it: each user has a rate limit of messages of its own,
 * so that nobody's hide another's.
 *
 * The counters are atomic: a charge is made under the carveout's lock, together
 * with the placement that decides how much it is.
 *
 * Locks: users_lock is innermost among what sleeps.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "core/account.h"

/* module parameters: see limits.c */
unsigned long accmem_max_contexts_per_user = 1024;
unsigned long accmem_max_buffers_per_user = 1ul << 20;
unsigned long long accmem_max_bytes_per_user;
unsigned long long accmem_max_bytes_per_context;

static DEFINE_MUTEX(users_lock); /* the table, and refs of users */
static DEFINE_HASHTABLE(users, 6);

/**
 * accmem_add_within() - add to a counter that has a limit
 * @counter: the counter; what is refused is never seen in it
 * @n: what to add
 * @limit: what it may become; a counter that is above takes nothing more
 *
 * Return: whether it was added.
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

/* those that nobody has, and whose messages do not count any more */
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

/* The user, with a reference; it is *@spare, and that NULL, if there was none. */
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
		hash_add(users, &user->node, __kuid_val(uid));
	}
	user->refs++;
	mutex_unlock(&users_lock);
	return user;
}

/**
 * accmem_user_get() - take a reference to a user
 * @user: the user, of which an account is there. It counts as nothing of the user's.
 *	May sleep.
 */
void accmem_user_get(struct accmem_user *user)
{
	mutex_lock(&users_lock);
	user->refs++;
	mutex_unlock(&users_lock);
}

/**
 * accmem_user_put() - drop a reference
 * @user: the user. May sleep.
 */
void accmem_user_put(struct accmem_user *user)
{
	mutex_lock(&users_lock);
	if (!--user->refs)
		users_forget(false);
	mutex_unlock(&users_lock);
}

/**
 * accmem_user_ratelimit() - may there be another message that a user causes?
 * @user: the user
 *
 * Return: whether there may. That there were many does not end with what it has open.
 */
bool accmem_user_ratelimit(struct accmem_user *user)
{
	WRITE_ONCE(user->last_message, jiffies ?: 1);
	return __ratelimit(&user->messages);
}

/**
 * accmem_users_exit() - forget all users, who have nothing open
 */
void accmem_users_exit(void)
{
	mutex_lock(&users_lock);
	users_forget(true);
	mutex_unlock(&users_lock);
}

/* charges a new context to its user */
static int user_enter(struct accmem_user *user)
{
	u64 limit = READ_ONCE(accmem_max_contexts_per_user);

	if (account_charge_one(&user->contexts, 1, limit, false) ||
	    (capable(CAP_SYS_RESOURCE) &&
	     account_charge_one(&user->contexts, 1, limit, true)))
		return 0;
	return -EMFILE;
}

/* numbers are of a device; a user has contexts on several */
static unsigned long user_key(const struct accmem_account *account)
{
	return (unsigned long)account->accounts->index << 48 | account->id;
}

/* from here on debugfs, and who looks for memory to reclaim, can find it */
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
 * accmem_account_open() - make the account of a file that is being opened
 * @accounts: the accounts of the device
 * @waiters: its waiters
 * @nr_carveouts: its carveouts, host memory included
 * @uid: the user
 *
 * Return: the account, with a reference; -EMFILE when the user has as many as
 * it may, -ENOMEM.
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
	/* not under the lock: others need not wait for this one's memory */
	spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	if (!account || !spare)
		goto err_free;
	kref_init(&account->refs);
	for (i = 0; i < nr_carveouts; i++)
		INIT_LIST_HEAD(&account->quarantine[i].memory);
	ratelimit_state_init(&account->overdue_limit,
			     DEFAULT_RATELIMIT_INTERVAL,
			     DEFAULT_RATELIMIT_BURST);
	ratelimit_set_flags(&account->overdue_limit, RATELIMIT_MSG_ON_RELEASE);
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
	/* who walks through the user's accounts may have it still */
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
 * accmem_account_put() - drop a reference
 * @account: the account. May sleep.
 */
void accmem_account_put(struct accmem_account *account)
{
	kref_put(&account->refs, account_release);
}

/**
 * accmem_charge() - charge memory
 * @account: the account
 * @bytes: what the memory withholds from others
 * @exempt: the caller has CAP_SYS_RESOURCE: the user's limits do not count
 *
 * Return: 0; -EDQUOT where a limit would be passed. Does not sleep.
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
 * accmem_charge_buffers() - charge buffers, whose memory is charged apart
 * @account: the account
 * @buffers: how many
 *
 * Return: 0; -EDQUOT where a limit would be passed. May sleep.
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
 * accmem_charge_buffer() - charge a buffer to who waits for it
 * @account: the account
 * @exempt: as for accmem_charge()
 *
 * Return: false where a limit would be passed. Does not sleep.
 */
bool accmem_charge_buffer(struct accmem_account *account, bool exempt)
{
	return account_charge_one(&account->user->buffers, 1,
				  READ_ONCE(accmem_max_buffers_per_user),
				  exempt);
}

/**
 * accmem_uncharge() - undo accmem_charge(), or a part of it
 * @account: the account
 * @bytes: what is withheld no more
 */
void accmem_uncharge(struct accmem_account *account, u64 bytes)
{
	atomic64_sub(bytes, &account->user->bytes);
	atomic64_sub(bytes, &account->bytes);
}

/**
 * accmem_uncharge_buffers() - undo accmem_charge_buffers()
 * @account: the account
 * @buffers: how many have gone
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
 * accmem_charge_fits() - might memory be charged?
 * @account: the account
 * @bytes: bytes that it is charged at least
 * @buffers: how many buffers it counts as
 * @exempt: the user's limits do not count
 *
 * Return: false only where accmem_charge() or accmem_charge_buffers() would refuse.
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
 * accmem_charge_exceeds_limit() - could so many bytes never be charged?
 * @bytes: bytes; U64_MAX asks whether there is a limit at all
 * @exempt: the user's limits do not count
 *
 * Return: whether a limit is below.
 */
bool accmem_charge_exceeds_limit(u64 bytes, bool exempt)
{
	u64 context = READ_ONCE(accmem_max_bytes_per_context);
	u64 user = READ_ONCE(accmem_max_bytes_per_user);

	return (context && bytes > context) ||
	       (user && !exempt && bytes > user);
}
