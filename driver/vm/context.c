// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: open files of a device.
 *
 * A context is created when a program opens /dev/accmemN. Processes that share the file
 * (by fork() or fd passing) share the context. The context ends when the last reference
 * to the file is dropped (close.c). The object outlives its end until the last pending
 * free is finished and the last file of a stream is closed: both hold references.
 *
 * States: open -> ended -> freed. An account points to its context while the context is
 * open, so that reclaim and debugfs find open contexts through the accounts. A second
 * pointer lasts until the context is freed, so that debugfs finds the pending frees of an
 * ended context.
 *
 * Locking: no lock is taken here. RCU protects both pointers.
 */
#include <linux/slab.h>

#include "compat/compat.h"
#include "core/account.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/**
 * accmem_context_open() - create the context of a file that is being opened
 * @accounts: accounts of the device
 * @carveouts: carveouts of the device
 * @waiters: waiters of the device
 * @due: due frees of the device
 *
 * Context: Process context. May sleep.
 * Return: the context; -EMFILE when the user has the highest permitted number of
 * contexts; -ENOMEM.
 */
struct accmem_context *accmem_context_open(struct accmem_accounts *accounts,
					   struct accmem_carveouts *carveouts,
					   struct accmem_waiters *waiters,
					   struct accmem_due *due)
{
	struct accmem_context *ctx;
	struct accmem_account *account;
	struct accmem_carveout *cv;

	ctx = kzalloc(struct_size(ctx, per_carveout, carveouts->nr),
		      GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return ERR_PTR(-ENOMEM);
	account = accmem_account_open(accounts, waiters, carveouts->nr);
	if (IS_ERR(account)) {
		kfree(ctx);
		return ERR_CAST(account);
	}
	kref_init(&ctx->refs);
	spin_lock_init(&ctx->lock);
	mutex_init(&ctx->tmem_lock);
	ctx->carveouts = carveouts;
	ctx->due = due;
	ctx->account = account;
	ctx->epoch = READ_ONCE(carveouts->epoch) & ~1u;
	ctx->va_tree = RB_ROOT;
	ctx->fences = RB_ROOT;
	INIT_LIST_HEAD(&ctx->cache);
	for (cv = carveouts->cvs; cv < carveouts->end; cv++) {
		struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);

		h->cursor = cv->address_base;
		INIT_LIST_HEAD(&h->waiting_pages);
	}
	accmem_pressure_client_init(&ctx->pressure);
	xa_init_flags(&ctx->streams, XA_FLAGS_ACCOUNT);
	atomic_inc(&accounts->nr_contexts);
	/* Publish the context: pairs with rcu_dereference() in context_get(). */
	rcu_assign_pointer(account->any_context, ctx);
	rcu_assign_pointer(account->context, ctx);
	return ctx;
}

static void context_release(struct kref *refs)
{
	struct accmem_context *ctx =
		container_of(refs, struct accmem_context, refs);
	struct accmem_carveout *cv;
	unsigned int i;

	for (cv = ctx->carveouts->cvs; cv < ctx->carveouts->end; cv++) {
		for (i = 0; i < ACCMEM_NR_CACHE_MODES; i++)
			kfree(accmem_ctx_carveout_of(ctx, cv)->slabs[i]);
	}
	RCU_INIT_POINTER(ctx->account->any_context, NULL);
	xa_destroy(&ctx->streams);
	mutex_destroy(&ctx->tmem_lock);
	mutex_destroy(&ctx->pressure.lock);
	accmem_account_put(ctx->account);
	kfree_rcu(ctx, rcu);
}

/**
 * accmem_context_put() - drop a reference to a context
 * @ctx: the context
 *
 * Context: Process context. May sleep.
 */
void accmem_context_put(struct accmem_context *ctx)
{
	kref_put(&ctx->refs, context_release);
}

ACCMEM_EXPORT(accmem_context_put);

/* Return the context behind an RCU pointer of an account, with a reference, or NULL. */
static struct accmem_context *
context_get(struct accmem_context __rcu *const *pointer)
{
	struct accmem_context *ctx;

	rcu_read_lock();
	ctx = rcu_dereference(*pointer);
	if (ctx && !kref_get_unless_zero(&ctx->refs))
		ctx = NULL;
	rcu_read_unlock();
	return ctx;
}

/**
 * accmem_context_of() - get the open context of an account
 * @account: the account
 *
 * The caller has a reference to @account, or is in an RCU read-side section in which
 * it found @account.
 *
 * Context: Any context. Does not sleep.
 * Return: the context, with a reference; NULL when the context has ended.
 */
struct accmem_context *accmem_context_of(struct accmem_account *account)
{
	return context_get(&account->context);
}

/**
 * accmem_context_of_any() - get the context of an account, open or ended
 * @account: the account, to which the caller has a reference
 *
 * Context: Any context. Does not sleep.
 * Return: the context, with a reference; NULL when the context is freed.
 */
struct accmem_context *accmem_context_of_any(struct accmem_account *account)
{
	return context_get(&account->any_context);
}

/**
 * accmem_context_next() - iterate over open contexts
 * @accounts: the accounts of a device, or of a user
 * @id: in: index in @accounts at which the search begins; out: index at which the next
 *	call continues
 *
 * Context: Any context. Does not sleep.
 * Return: the context, with a reference; NULL when there are no more contexts.
 */
struct accmem_context *accmem_context_next(struct xarray *accounts,
					   unsigned long *id)
{
	struct accmem_context *ctx = NULL;
	struct accmem_account *account;

	rcu_read_lock();
	for (account = xa_find(accounts, id, ULONG_MAX, XA_PRESENT); account;
	     account = xa_find_after(accounts, id, ULONG_MAX, XA_PRESENT)) {
		ctx = accmem_context_of(account);
		if (ctx)
			break;
	}
	rcu_read_unlock();
	++*id;
	return ctx;
}
