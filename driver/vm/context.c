// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts: open files of a device.
 *
 * A context is one open file; fork and fd passing share it, and it ends with the
 * last reference to the file (close.c). Pending frees and files of its streams
 * keep what is left of it.
 *
 * Locks: none.
 */
#include <linux/cred.h>
#include <linux/slab.h>

#include "core/account.h"
#include "vm/context.h"
#include "waitq/waiters.h"

/**
 * accmem_context_open() - make a context for a file being opened
 * @accounts: the accounts of the device
 * @carveouts: its carveouts
 * @waiters: its waiters
 * @due: its due buffers
 *
 * Return: the context; -EMFILE or -ENOMEM.
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
	account = accmem_account_open(accounts, waiters, carveouts->nr,
				      current_uid());
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
	ctx->places = RB_ROOT;
	ctx->fences = RB_ROOT;
	INIT_LIST_HEAD(&ctx->cache);
	accmem_for_each_carveout(cv, carveouts)
	{
		struct accmem_ctx_carveout *h = accmem_ctx_carveout_of(ctx, cv);

		h->cursor = cv->address_base;
		INIT_LIST_HEAD(&h->waiting_pages);
	}
	accmem_pressure_client_init(&ctx->shrink);
	xa_init_flags(&ctx->streams, XA_FLAGS_ACCOUNT);
	atomic_inc(&accounts->nr_contexts);
	/* with accmem_context_next() */
	rcu_assign_pointer(account->context, ctx);
	return ctx;
}

static void context_release(struct kref *refs)
{
	struct accmem_context *ctx =
		container_of(refs, struct accmem_context, refs);
	struct accmem_carveout *cv;
	unsigned int i;

	accmem_for_each_carveout(cv, ctx->carveouts)
	{
		for (i = 0; i < ACCMEM_NR_CACHE_MODES; i++)
			kfree(accmem_ctx_carveout_of(ctx, cv)->slabs[i]);
	}
	xa_destroy(&ctx->streams);
	mutex_destroy(&ctx->tmem_lock);
	mutex_destroy(&ctx->shrink.lock);
	accmem_account_put(ctx->account);
	kfree_rcu(ctx, rcu);
}

/**
 * accmem_context_put() - drop a reference
 * @ctx: the context. May sleep.
 */
void accmem_context_put(struct accmem_context *ctx)
{
	kref_put(&ctx->refs, context_release);
}

/**
 * accmem_context_of() - the context of an account
 * @account: the account, of which the caller has a reference, or which RCU keeps
 *
 * Return: the context, with a reference; NULL when it has ended.
 */
struct accmem_context *accmem_context_of(struct accmem_account *account)
{
	struct accmem_context *ctx;

	rcu_read_lock();
	ctx = rcu_dereference(account->context);
	if (ctx && !kref_get_unless_zero(&ctx->refs))
		ctx = NULL;
	rcu_read_unlock();
	return ctx;
}

/**
 * accmem_context_next() - walk through open contexts
 * @accounts: of a device, or of a user
 * @id: number of the account to begin with; of the next one on return
 *
 * Return: the context, with a reference, or NULL at the end.
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
