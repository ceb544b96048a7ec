// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel log messages about CTAs that break a rule.
 *
 * The table rules[] maps each error of <uapi/linux/accmem.h> to the rule that was broken. A
 * message names the CTA, its call and the rule. The messages of each user are
 * rate-limited separately, so that one user cannot suppress those of another.
 *
 * Locking: none is held here.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/sched.h>

#include "core/account.h"
#include "internal.h"

#define ANY (~0u)
#define OP(op) BIT(ACCMEM_CTA_OP_##op)

/* @ops: the calls to which the rule applies. The first entry that matches is used. */
struct rule {
	int err;
	unsigned int ops;
	const char *id; /* row of the conformance table */
	const char *text;
};

static const struct rule rules[] = {
	{ -EDOM, ANY, "P7", "columns are no power of two from 32 to 512" },
	{ -ENOSPC, ANY, "P2", "more columns than it could ever have" },
	{ -ERANGE, ANY, "P8", "more columns than in its alloc before" },
	{ -EPERM, ANY, "P9", "alloc after relinquish" },
	{ -EFAULT, ANY, "P10",
	  "the destination cannot be written, or is outside of the window" },
	{ -EBUSY, ANY, "P11", "another call of this CTA is waiting" },
	{ -EPIPE, OP(DEALLOC), "P4", "the peer has exited" },
	{ -EPIPE, ANY, "P12", "the peer has exited" },
	{ -EPROTO, OP(DEALLOC), "P20",
	  "dealloc of one, and alloc of the other that has not completed" },
	{ -EPROTO, ANY, "P12",
	  "alloc of one, and dealloc or relinquish of the other" },
	{ -EBADR, OP(DEALLOC), "P4", "the peers' operands differ" },
	{ -EBADR, ANY, "P12", "the peers' operands differ" },
	{ -EPROTOTYPE, ANY, "P13", "the launch has another cta_group" },
	{ -EEXIST, ANY, "P19",
	  "the rank in the cluster is taken, or the cluster complete" },
	{ -EADDRINUSE, ANY, "P19", "the peer is on the same SM" },
	{ -ENXIO, OP(LAUNCH), "P19", "no such SM" },
	{ -ENXIO, ANY, "P3", "a lane, or no column of the SM" },
	{ -ENOENT, ANY, "P3", "nothing is allocated there" },
	{ -EACCES, ANY, "P3", "another CTA's columns" },
	{ -EADDRNOTAVAIL, ANY, "P3", "an address inside an allocation" },
	{ -EMSGSIZE, ANY, "P18", "not the number of columns allocated" },
	{ -EDEADLK, ANY, "P2", "a deadlock: every holder waits for columns" },
};

static const char *const op_names[] = {
	[ACCMEM_CTA_OP_LAUNCH] = "launch",
	[ACCMEM_CTA_OP_ALLOC] = "alloc",
	[ACCMEM_CTA_OP_DEALLOC] = "dealloc",
	[ACCMEM_CTA_OP_RELINQUISH] = "relinquish",
};

static const struct rule *report_find_rule(int err, unsigned int ops)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rules); i++) {
		if (rules[i].err == err && rules[i].ops & ops)
			return &rules[i];
	}
	return NULL;
}

/* Return true if the error means that a rule was broken. */
bool accmem_tmem_is_misuse(int err)
{
	return err != -EDEADLK && report_find_rule(err, ANY);
}

/* Find the rule for an error. A peer that does not come in time has a rule, too. */
static const struct rule *report_rule_for(enum accmem_cta_op op, int err,
					  bool alone)
{
	static const struct rule missing = { -ETIMEDOUT, ANY, "P12",
					     "the peer has not come in time" };

	return alone ? &missing : report_find_rule(err, BIT(op));
}

/* Print a message about a CTA, unless the user's messages exceed the rate limit. */
static __printf(2, 3) void report_say(const struct accmem_cta *cta,
				      const char *fmt, ...)
{
	const struct accmem_columns_cta *c = &cta->c;
	char comm[TASK_COMM_LEN];
	struct va_format text;
	va_list args;

	if (!accmem_user_ratelimit(cta->tmem->user))
		return;
	get_task_comm(comm, current);
	va_start(args, fmt);
	text.fmt = fmt;
	text.va = &args;
	pr_notice("%s: context %llu: %*pE[%d]: CTA %llu (launch %#llx, cluster %u, rank %u, SM %u): %pV\n",
		  cta->tmem->device, cta->tmem->context, (int)strlen(comm),
		  comm, task_pid_nr(current), cta->id, c->launch, c->cluster,
		  c->rank, c->sm, &text);
	va_end(args);
}

/**
 * accmem_tmem_report() - report a broken rule
 * @cta: the CTA
 * @call: the call that has failed
 * @err: its result; errors that break no rule are not reported
 *
 * Context: Process context. Takes no lock. Does not sleep.
 */
void accmem_tmem_report(struct accmem_cta *cta,
			const struct accmem_cta_call *call, int err)
{
	bool alone = err == -ETIMEDOUT && READ_ONCE(cta->alone);
	const struct rule *rule = report_rule_for(call->op, err, alone);

	if (rule)
		report_say(cta, "%s of %u columns at %#x: %s: %s",
			   op_names[call->op], call->columns, call->address,
			   rule->id, rule->text);
}

/**
 * accmem_tmem_report_strict() - report hazards: calls that hardware would not survive
 * @cta: the CTA
 * @hazards: ACCMEM_HAZARD_*
 * @permit_owner: for ACCMEM_HAZARD_PERMIT, the launch that has not relinquished
 *
 * Context: Process context. Takes no lock. Does not sleep.
 */
void accmem_tmem_report_strict(struct accmem_cta *cta, u32 hazards,
			       u64 permit_owner)
{
	if (hazards & ACCMEM_HAZARD_PEER)
		report_say(cta,
			   "strict: P12: dealloc or exit before the peer's alloc has returned");
	if (hazards & ACCMEM_HAZARD_PERMIT)
		report_say(cta,
			   "strict: P9: alloc where launch %#llx has allocated and not relinquished",
			   permit_owner);
	if (hazards & ACCMEM_HAZARD_WARP)
		report_say(cta,
			   "strict: P11: alloc or dealloc by another warp than its first alloc");
}

/**
 * accmem_tmem_report_leak() - report a CTA that exits while it holds columns
 * @cta: the CTA
 * @units: the units that the CTA held, a bit each
 *
 * Context: Process context. Takes no lock. Does not sleep.
 */
void accmem_tmem_report_leak(struct accmem_cta *cta, u64 units)
{
	report_say(cta,
		   "P5: exits with %u columns, the first at %#x; taken back",
		   (u32)hweight64(units) * ACCMEM_TMEM_UNIT,
		   (u32)__ffs64(units) * ACCMEM_TMEM_UNIT);
}

/**
 * accmem_tmem_report_reset() - report a context that ends before its CTAs
 * @tmem: Tensor Memory of the context
 * @ctas: number of CTAs that held columns
 * @columns: number of these columns
 *
 * Context: Process context. Takes no lock. Does not sleep.
 */
void accmem_tmem_report_reset(struct accmem_tmem *tmem, u32 ctas, u32 columns)
{
	char comm[TASK_COMM_LEN];

	if (!accmem_user_ratelimit(tmem->user))
		return;
	get_task_comm(comm, current);
	pr_notice("%s: context %llu: %*pE[%d]: P5: ends while %u CTAs hold %u columns; taken back\n",
		  tmem->device, tmem->context, (int)strlen(comm), comm,
		  task_pid_nr(current), ctas, columns);
}
