// SPDX-License-Identifier: GPL-2.0
/*
 * Tensor Memory of a context: setup, lookup and reset.
 *
 * struct accmem_tmem has the arbiter of the context's SMs. SETUP allocates the
 * structure, or the first launch does with default values; the values do not change
 * afterwards. The context has a reference, and so has each CTA. A CTA's file therefore
 * stays valid after the end of the context, but its calls fail with ECONNRESET.
 *
 * Locking: accmem_context.tmem_lock protects the context's pointer to the structure.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core/account.h"
#include "core/revoke.h"
#include "internal.h"
#include "tmem/tmem.h"
#include "trace/tmem_trace.h"
#include "types/context_types.h"

static void tmem_free(struct accmem_tmem *tmem)
{
	kvfree(tmem->sms);
	kvfree(tmem->column_sms);
	kfree(tmem);
}

static void tmem_release(struct kref *refs)
{
	struct accmem_tmem *tmem = container_of(refs, struct accmem_tmem, refs);

	accmem_tmem_put_maps(tmem);
	accmem_tmem_destroy_notify(tmem);
	accmem_user_put(tmem->user);
	tmem_free(tmem);
}

void accmem_tmem_put(struct accmem_tmem *tmem)
{
	kref_put(&tmem->refs, tmem_release);
}

static struct accmem_tmem *tmem_create(struct accmem_context *ctx,
				       const struct accmem_tmem_setup *req)
{
	struct accmem_tmem *tmem;
	u32 i, columns = req->columns ?: ACCMEM_TMEM_COLUMNS;

	tmem = kzalloc(sizeof(*tmem), GFP_KERNEL_ACCOUNT);
	if (!tmem)
		return ERR_PTR(-ENOMEM);
	tmem->column_sms = kvcalloc(req->nr_sms, sizeof(*tmem->column_sms),
				    GFP_KERNEL_ACCOUNT);
	tmem->sms =
		kvcalloc(req->nr_sms, sizeof(*tmem->sms), GFP_KERNEL_ACCOUNT);
	if (!tmem->column_sms || !tmem->sms) {
		tmem_free(tmem);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&tmem->refs);
	spin_lock_init(&tmem->lock);
	accmem_tmem_init_notify(tmem);
	for (i = 0; i < req->nr_sms; i++)
		INIT_LIST_HEAD(&tmem->sms[i].pollers);
	strscpy(tmem->device, ctx->account->accounts->name,
		sizeof(tmem->device));
	tmem->context = ctx->account->id;
	tmem->user = ctx->account->user;
	accmem_user_get(tmem->user);
	accmem_columns_init(&tmem->columns, tmem->column_sms, req->nr_sms,
			    columns, req->discipline == ACCMEM_TMEM_EXCLUSIVE,
			    req->bypass_bound);
	accmem_tmem_init_maps(tmem);
	tmem->columns.strict = req->flags & ACCMEM_TMEM_STRICT;
	return tmem;
}

/**
 * accmem_tmem_setup() - allocate the Tensor Memory of a context
 * @ctx: the context
 * @req: number of SMs, columns of each SM, discipline and bypass bound
 *
 * Context: Process context. Takes and releases ctx->tmem_lock. May sleep.
 *
 * Return: 0, -EINVAL, -EBUSY when the context has SMs already, -ENOMEM.
 */
int accmem_tmem_setup(struct accmem_context *ctx,
		      const struct accmem_tmem_setup *req)
{
	struct accmem_tmem *tmem;
	int err = -EBUSY;

	if (!req->nr_sms || req->nr_sms > ACCMEM_TMEM_SMS_MAX ||
	    req->columns % ACCMEM_TMEM_UNIT ||
	    req->columns > ACCMEM_TMEM_COLUMNS_MAX ||
	    req->discipline > ACCMEM_TMEM_EXCLUSIVE)
		return -EINVAL;
	/* Allocate before the lock: other callers do not wait for the allocation. */
	tmem = tmem_create(ctx, req);
	if (IS_ERR(tmem))
		return PTR_ERR(tmem);
	mutex_lock(&ctx->tmem_lock);
	if (!ctx->tmem) {
		ctx->tmem = tmem;
		tmem = NULL;
		err = 0;
	}
	mutex_unlock(&ctx->tmem_lock);
	if (tmem)
		accmem_tmem_put(tmem);
	/* The device may have gone since the call began, and has no more CTAs to end. */
	if (!err && READ_ONCE(ctx->carveouts->gone)) {
		accmem_tmem_end(ctx);
		err = -ENODEV;
	}
	return err;
}

/**
 * accmem_tmem_find() - get the Tensor Memory of a context
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->tmem_lock. May sleep.
 *
 * Return: the Tensor Memory with a reference, or NULL if the context has none.
 */
struct accmem_tmem *accmem_tmem_find(struct accmem_context *ctx)
{
	struct accmem_tmem *tmem;

	mutex_lock(&ctx->tmem_lock);
	tmem = ctx->tmem;
	if (tmem)
		kref_get(&tmem->refs);
	mutex_unlock(&ctx->tmem_lock);
	return tmem;
}

/**
 * accmem_tmem_get() - get the Tensor Memory of a context, or allocate it
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->tmem_lock. May sleep.
 *
 * Return: the Tensor Memory with a reference; -ENOMEM; -ECONNRESET or -ENODEV if a reset or
 * the removal of the device ends it meanwhile.
 */
struct accmem_tmem *accmem_tmem_get(struct accmem_context *ctx)
{
	static const struct accmem_tmem_setup usual = {
		.nr_sms = 1,
		.discipline = ACCMEM_TMEM_SHARED,
		.bypass_bound = ACCMEM_TMEM_BYPASS_BOUND,
	};
	struct accmem_tmem *tmem = accmem_tmem_find(ctx);
	int err;

	if (tmem)
		return tmem;
	/* -EBUSY: another caller was first. */
	err = accmem_tmem_setup(ctx, &usual);
	if (err && err != -EBUSY)
		return ERR_PTR(err);
	tmem = accmem_tmem_find(ctx);
	/* NULL: a reset or the removal of the device has ended it since. */
	return tmem ?: ERR_PTR(accmem_revoked_error(ctx->carveouts));
}

/* Free all columns, and wake the callers and the polls of all CTAs. */
static void tmem_reset(struct accmem_tmem *tmem, u32 *holders, u32 *columns)
{
	struct accmem_columns *c = &tmem->columns;
	struct accmem_columns_cta *cta;
	u32 sm;

	lockdep_assert_held(&tmem->lock);
	for (sm = 0; sm < c->nr_sms; sm++) {
		list_for_each_entry(cta, &c->sms[sm].ctas, link) {
			*holders += !!cta->held;
			*columns += hweight64(cta->held) * ACCMEM_TMEM_UNIT;
		}
	}
	accmem_columns_reset(c);
	/* Trace the reset before the calls that it ends. */
	trace_accmem_tmem_reset(tmem, *holders, *columns);
	accmem_tmem_wake(tmem);
	for (sm = 0; sm < c->nr_sms; sm++) {
		list_for_each_entry(cta, &c->sms[sm].ctas, link)
			accmem_cta_notify_polls(accmem_to_cta(cta));
	}
}

/*
 * Every waiting call ends with an error. Open CTAs keep their reference to the structure.
 * @revoked: a work item notifies those who watch the CTAs.
 */
static void tmem_end(struct accmem_context *ctx, bool revoked)
{
	u32 holders = 0, columns = 0;
	struct accmem_tmem *tmem;

	mutex_lock(&ctx->tmem_lock);
	tmem = ctx->tmem;
	ctx->tmem = NULL;
	mutex_unlock(&ctx->tmem_lock);
	if (!tmem)
		return;
	spin_lock(&tmem->lock);
	tmem_reset(tmem, &holders, &columns);
	if (revoked) {
		accmem_tmem_notify_later(tmem);
		spin_unlock(&tmem->lock);
	} else {
		accmem_tmem_unlock(tmem);
	}
	if (holders)
		accmem_tmem_report_reset(tmem, holders, columns);
	accmem_tmem_put_maps(tmem);
	accmem_tmem_put(tmem);
}

/**
 * accmem_tmem_end() - reset the Tensor Memory of a context that ends
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->tmem_lock and the locks of tmem/. May
 * sleep.
 */
void accmem_tmem_end(struct accmem_context *ctx)
{
	tmem_end(ctx, false);
}

/**
 * accmem_tmem_revoke() - reset the Tensor Memory of a context whose device is revoked
 * @ctx: the context
 *
 * Does not wait for those who watch the CTAs.
 *
 * Context: Process context. Takes and releases ctx->tmem_lock and tmem->lock. May sleep.
 */
void accmem_tmem_revoke(struct accmem_context *ctx)
{
	tmem_end(ctx, true);
}
