// SPDX-License-Identifier: GPL-2.0
/*
 * Users and accounts: charges, and the limits on them.
 *
 * An account belongs to an open file. Memory that is allocated through the file is
 * charged to the account until the memory is free again; detached and quarantined
 * memory stays charged. The account therefore outlives its context, and counts as one
 * of the contexts of its user until its memory is free.
 *
 * A user is in the table while it has an account, a stream or a Tensor Memory object,
 * and while the rate limit of its messages is in effect. Each user has a rate limit of
 * its own, so that the messages of one user cannot suppress those of another. The last
 * reference can be dropped in any context, so users are freed when the next one is added.
 *
 * The user of a file is the user who opened the file. In a user namespace, the user is the
 * creator of the outermost namespace that root did not create: a user with many subordinate
 * ids still has one set of limits. In a namespace that root created, each id is a user.
 *
 * Charges are atomic counters, since a charge is made under the carveout's lock,
 * together with the placement that determines its size. CAP_SYS_RESOURCE lifts the
 * limits of a user, but not those of a context.
 *
 * Locks: users_lock guards the table; it is the innermost of the locks that sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/device.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "core/account.h"

/* Module parameters, registered by waitq/limits.c. */
unsigned long long accmem_max_contexts_per_user = 1024;
unsigned long long accmem_max_buffers_per_user = 1ull << 20;
unsigned long long accmem_max_exports_per_user = 1ull << 16;
unsigned long long accmem_max_fences_per_user = 1ull << 16;
unsigned long long accmem_max_waits_per_user = 4096;
unsigned long long accmem_max_bytes_per_user;
unsigned long long accmem_max_bytes_per_context;

static DEFINE_MUTEX(users_lock); /* the table of users */
static struct rb_root users = RB_ROOT; /* by user id */

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

/**
 * accmem_caller_is_exempt() - check whether the current task is exempt from the limits
 *
 * Call this function only after a limit has refused a request, or for a request that may
 * wait. Each check may be audited, and a successful check marks the task as one that has
 * used its privileges (PF_SUPERPRIV).
 *
 * Context: Process context.
 * Return: true with CAP_SYS_RESOURCE.
 */
bool accmem_caller_is_exempt(void)
{
	return capable(CAP_SYS_RESOURCE);
}

static bool account_charge_one(atomic64_t *counter, u64 n, u64 limit,
			       bool exempt)
{
	return accmem_add_within(counter, n,
				 limit && !exempt ? limit : U64_MAX);
}

/*
 * Charge @n to a counter of a user. With CAP_SYS_RESOURCE the limit does not apply.
 * Sleeps.
 */
static bool user_charge(atomic64_t *counter, u64 n, u64 limit)
{
	return account_charge_one(counter, n, limit, false) ||
	       (accmem_caller_is_exempt() &&
		account_charge_one(counter, n, limit, true));
}

/* Return the id of the user that the caller's files are charged to. */
static kuid_t user_id(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_uid();

	while (ns != &init_user_ns && !uid_eq(ns->owner, GLOBAL_ROOT_UID)) {
		uid = ns->owner;
		ns = ns->parent;
	}
	return uid;
}

static struct accmem_user *to_user(const struct rb_node *node)
{
	return rb_entry_safe(node, struct accmem_user, node);
}

static int user_compare(struct rb_node *a, const struct rb_node *b)
{
	u32 x = __kuid_val(to_user(a)->uid), y = __kuid_val(to_user(b)->uid);

	return x < y ? -1 : x > y;
}

/*
 * Free the users without references. Unless @all is set, a user stays while the rate
 * limit of its messages is in effect.
 */
static void users_forget(bool all)
{
	struct rb_node *node, *next;
	struct accmem_user *user;

	lockdep_assert_held(&users_lock);
	for (node = rb_first(&users); node; node = next) {
		next = rb_next(node);
		user = to_user(node);
		if (atomic_long_read_acquire(&user->refs) ||
		    (!all && user->last_message &&
		     time_before(jiffies, user->last_message +
						  DEFAULT_RATELIMIT_INTERVAL)))
			continue;
		rb_erase(node, &users);
		xa_destroy(&user->accounts);
		kfree(user);
	}
}

/*
 * Return the user of the caller with a new reference. If there is none, *@spare becomes
 * the user and is set to NULL.
 */
static struct accmem_user *user_find_or_add(struct accmem_user **spare)
{
	struct accmem_user *user = *spare;
	struct rb_node *found;

	user->uid = user_id();
	xa_init_flags(&user->accounts, XA_FLAGS_ACCOUNT);
	ratelimit_state_init(&user->messages, DEFAULT_RATELIMIT_INTERVAL,
			     DEFAULT_RATELIMIT_BURST);
	/* accmem_user_ratelimit() counts the messages that are left out. */
	ratelimit_set_flags(&user->messages, RATELIMIT_MSG_ON_RELEASE);
	mutex_lock(&users_lock);
	found = rb_find_add(&user->node, &users, user_compare);
	if (found)
		user = to_user(found);
	atomic_long_inc(&user->refs);
	if (!found) {
		*spare = NULL;
		users_forget(false);
	}
	mutex_unlock(&users_lock);
	return user;
}

/**
 * accmem_user_get() - acquire a reference to a user
 * @user: user, of which the caller holds an account or another reference
 *
 * The reference is not charged to the user.
 *
 * Context: Any context.
 */
void accmem_user_get(struct accmem_user *user)
{
	atomic_long_inc(&user->refs);
}

/**
 * accmem_user_put() - drop a reference to a user
 * @user: user, which can be freed from here on
 *
 * Context: Any context.
 */
void accmem_user_put(struct accmem_user *user)
{
	/* Pairs with the acquire in users_forget(): earlier accesses come before the kfree(). */
	(void)atomic_long_dec_return_release(&user->refs);
}

/**
 * accmem_user_next() - iterate over the users, in the order of their ids
 * @prev: the previous user, whose reference is dropped, or NULL to begin
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 * Return: the next user, with a reference; NULL when there are no more users.
 */
struct accmem_user *accmem_user_next(struct accmem_user *prev)
{
	struct accmem_user *next;

	mutex_lock(&users_lock);
	next = to_user(prev ? rb_next(&prev->node) : rb_first(&users));
	if (next)
		accmem_user_get(next);
	if (prev)
		accmem_user_put(prev);
	mutex_unlock(&users_lock);
	return next;
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
 *
 * Context: Process context. Takes and releases users_lock. May sleep.
 * Return: the account, with a reference; -EMFILE if the user has reached its limit of
 * contexts; -ENOMEM.
 */
struct accmem_account *accmem_account_open(struct accmem_accounts *accounts,
					   struct accmem_waiters *waiters,
					   unsigned int nr_carveouts)
{
	struct accmem_account *account;
	struct accmem_user *spare;
	unsigned int i;
	int err = -ENOMEM;

	account = kzalloc(struct_size(account, memory, nr_carveouts),
			  GFP_KERNEL_ACCOUNT);
	/* Allocated before users_lock is held, so that no other open() waits. */
	spare = kzalloc(sizeof(*spare), GFP_KERNEL_ACCOUNT);
	if (!account || !spare)
		goto err_free;
	kref_init(&account->refs);
	for (i = 0; i < nr_carveouts; i++) {
		INIT_LIST_HEAD(&account->memory[i].quarantined);
		INIT_LIST_HEAD(&account->memory[i].mapped);
	}
	account->accounts = accounts;
	get_device(accounts->device);
	account->waiters = waiters;
	account->id = atomic_long_inc_return(&accounts->last_id);
	account->pid = task_tgid_nr(current);
	get_task_comm(account->comm, current);
	account->user = user_find_or_add(&spare);
	err = -EMFILE;
	if (!user_charge(&account->user->contexts, 1,
			 READ_ONCE(accmem_max_contexts_per_user)))
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
	put_device(accounts->device);
	kfree(spare);
	/* An RCU reader of the user's accounts may still use the account. */
	kfree_rcu(account, rcu);
	return ERR_PTR(err);
err_free:
	kfree(spare);
	kfree(account);
	return ERR_PTR(err);
}

/**
 * accmem_account_next() - iterate over the accounts of a device
 * @accounts: the accounts
 * @id: in: number at which the search begins; out: number at which the next search begins
 *
 * Context: Any context. Does not sleep.
 * Return: the account with the next number, with a reference; NULL if there is none.
 */
struct accmem_account *accmem_account_next(struct accmem_accounts *accounts,
					   unsigned long *id)
{
	struct accmem_account *account;

	rcu_read_lock();
	account = xa_find(&accounts->xa, id, ULONG_MAX, XA_PRESENT);
	while (account && !kref_get_unless_zero(&account->refs))
		account =
			xa_find_after(&accounts->xa, id, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	++*id;
	return account;
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
	put_device(account->accounts->device);
	kfree_rcu(account, rcu);
}

/**
 * accmem_account_put() - drop a reference to an account
 * @account: account
 *
 * Context: Process context. May sleep.
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
	return user_charge(&account->user->buffers, buffers,
			   READ_ONCE(accmem_max_buffers_per_user)) ?
		       0 :
		       -EDQUOT;
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
 * accmem_charge_fence() - charge an imported or exported fence to a user
 * @user: user
 *
 * With CAP_SYS_RESOURCE the limit does not apply.
 *
 * Context: Process context. May sleep.
 * Return: 0; -EDQUOT if the limit would be exceeded.
 */
int accmem_charge_fence(struct accmem_user *user)
{
	return user_charge(&user->fences, 1,
			   READ_ONCE(accmem_max_fences_per_user)) ?
		       0 :
		       -EDQUOT;
}

/**
 * accmem_charge_exports() - charge dma-bufs or pins to a user
 * @user: user
 * @nr: number of them
 *
 * With CAP_SYS_RESOURCE the limit does not apply.
 *
 * Context: Process context. May sleep.
 * Return: 0; -EDQUOT if the limit would be exceeded.
 */
int accmem_charge_exports(struct accmem_user *user, unsigned int nr)
{
	return user_charge(&user->exports, nr,
			   READ_ONCE(accmem_max_exports_per_user)) ?
		       0 :
		       -EDQUOT;
}

/**
 * accmem_charge_wait() - charge a STREAM_WAIT call that is about to sleep to a user
 * @user: user
 *
 * With CAP_SYS_RESOURCE the limit does not apply.
 *
 * Context: Process context. May sleep.
 * Return: 0; -EDQUOT if the limit would be exceeded.
 */
int accmem_charge_wait(struct accmem_user *user)
{
	return user_charge(&user->waits, 1,
			   READ_ONCE(accmem_max_waits_per_user)) ?
		       0 :
		       -EDQUOT;
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
	/* The caller reads accmem_user.nr_waiting; see accmem_waiters_enter(). */
	smp_mb__after_atomic();
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
	/* The caller reads accmem_user.nr_waiting; see accmem_waiters_enter(). */
	smp_mb__after_atomic();
}

/**
 * accmem_uncharge_fence() - undo accmem_charge_fence()
 * @user: user
 *
 * Context: Any context. Does not sleep.
 */
void accmem_uncharge_fence(struct accmem_user *user)
{
	atomic64_dec(&user->fences);
}

/**
 * accmem_uncharge_exports() - undo accmem_charge_exports()
 * @user: user
 * @nr: number that was charged
 *
 * Context: Any context. Does not sleep.
 */
void accmem_uncharge_exports(struct accmem_user *user, unsigned int nr)
{
	atomic64_sub(nr, &user->exports);
}

/**
 * accmem_uncharge_wait() - undo accmem_charge_wait()
 * @user: user
 *
 * Context: Any context. Does not sleep.
 */
void accmem_uncharge_wait(struct accmem_user *user)
{
	atomic64_dec(&user->waits);
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
