// SPDX-License-Identifier: GPL-2.0
/*
 * Tensor Memory in fdinfo and debugfs.
 *
 *  - fdinfo of a context: SMs, CTAs, waiting calls, statistics;
 *  - fdinfo of a CTA: launch, rank, SM, columns, statistics;
 *  - a debugfs file with a picture of each SM: the owner of each unit (32 columns),
 *    the CTAs that hold columns, and the queue.
 *
 * Locking: accmem_tmem.lock. The picture drops the lock after each SM, so that two SMs
 * may show different times.
 */
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/seq_file.h>

#include "internal.h"
#include "tmem/show.h"
#include "vm/context.h"

#define LETTERS 52

static void show_stats(struct seq_file *m, const struct accmem_tmem_stats *s)
{
	const struct {
		const char *name;
		u64 value;
	} lines[] = {
		{ "grants", s->grants },
		{ "waits", s->waits },
		{ "wakeups", s->wakeups },
		{ "woken-grant", s->woken_grant },
		{ "woken-timeout", s->woken_timeout },
		{ "woken-signal", s->woken_signal },
		{ "woken-exit", s->woken_exit },
		{ "woken-deadlock", s->woken_deadlock },
		{ "woken-reset", s->woken_reset },
		{ "bypasses", s->bypasses },
		{ "timeouts", s->timeouts },
		{ "deadlocks", s->deadlocks },
		{ "misuses", s->misuses },
		{ "strict", s->strict },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lines); i++)
		seq_printf(m, "accmem-tmem-%s:\t%llu\n", lines[i].name,
			   lines[i].value);
}

/**
 * accmem_tmem_show_fdinfo() - print the Tensor Memory part of a context's fdinfo
 * @m: output
 * @ctx: the context
 *
 * Context: Process context. Takes and releases ctx->tmem_lock and tmem->lock. May
 * sleep.
 */
void accmem_tmem_show_fdinfo(struct seq_file *m, struct accmem_context *ctx)
{
	struct accmem_columns_cta *cta;
	struct accmem_tmem_stats stats;
	u32 sm, ctas, waiting;
	struct accmem_tmem *tmem;
	u64 forced;

	tmem = accmem_tmem_find(ctx);
	if (!tmem)
		return;
	spin_lock(&tmem->lock);
	stats = tmem->stats;
	for (sm = 0; sm < tmem->columns.nr_sms; sm++) {
		list_for_each_entry(cta, &tmem->columns.sms[sm].ctas, link)
			accmem_tmem_add_stats(&stats,
					      &accmem_to_cta(cta)->stats);
	}
	ctas = tmem->columns.nr_ctas;
	waiting = tmem->columns.nr_queued;
	forced = tmem->columns.forced;
	spin_unlock(&tmem->lock);

	seq_printf(m, "accmem-tmem-sms:\t%u\n", tmem->columns.nr_sms);
	seq_printf(m, "accmem-tmem-columns:\t%u\n", tmem->columns.columns);
	seq_printf(m, "accmem-tmem-ctas:\t%u\n", ctas);
	seq_printf(m, "accmem-tmem-waiting:\t%u\n", waiting);
	seq_printf(m, "accmem-tmem-forced:\t%llu\n", forced);
	show_stats(m, &stats);
	accmem_tmem_put(tmem);
}

void accmem_cta_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct accmem_cta *cta = file->private_data;
	struct accmem_tmem *tmem = cta->tmem;
	struct accmem_tmem_stats stats;
	u32 held;

	spin_lock(&tmem->lock);
	stats = cta->stats;
	held = hweight64(cta->c.held) * ACCMEM_TMEM_UNIT;
	spin_unlock(&tmem->lock);

	seq_printf(m, "accmem-device:\t%s\n", tmem->device);
	seq_printf(m, "accmem-context:\t%llu\n", tmem->context);
	seq_printf(m, "accmem-cta:\t%llu\n", cta->id);
	seq_printf(m, "accmem-launch:\t%#llx\n", cta->c.launch);
	seq_printf(m, "accmem-cluster:\t%u\n", cta->c.cluster);
	seq_printf(m, "accmem-rank:\t%u\n", cta->c.rank);
	seq_printf(m, "accmem-sm:\t%u\n", cta->c.sm);
	seq_printf(m, "accmem-cta-group:\t%u\n", cta->c.group);
	seq_printf(m, "accmem-held:\t%u\n", held);
	show_stats(m, &stats);
}

static char show_letter(unsigned int n)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return n < LETTERS ? letters[n] : '#';
}

/* Print one character for each unit: the letter of the owner, or '.' if it is free. */
static void show_units(struct seq_file *m, struct accmem_columns *c, u32 sm)
{
	char units[ACCMEM_COLUMNS_SM_MAX / ACCMEM_COLUMNS_UNIT + 1];
	unsigned int i, n = 0, nr = c->columns / ACCMEM_COLUMNS_UNIT;
	struct accmem_columns_cta *cta;

	memset(units, '.', nr);
	units[nr] = '\0';
	list_for_each_entry(cta, &c->sms[sm].ctas, link) {
		if (!cta->held)
			continue;
		for (i = 0; i < nr; i++) {
			if (cta->held & BIT_ULL(i))
				units[i] = show_letter(n);
		}
		n++;
	}
	seq_printf(m, "SM %u |%s| %u of %u columns free\n", sm, units,
		   accmem_columns_free(c, sm), c->columns);
}

static void show_name(struct seq_file *m, struct accmem_columns_cta *cta)
{
	seq_printf(m, "CTA %llu launch %#llx cluster %u rank %u",
		   accmem_to_cta(cta)->id, cta->launch, cta->cluster,
		   cta->rank);
}

static void show_holders(struct seq_file *m, struct accmem_columns *c, u32 sm)
{
	struct accmem_columns_cta *cta;
	unsigned int n = 0;

	list_for_each_entry(cta, &c->sms[sm].ctas, link) {
		if (!cta->held && c->sms[sm].permit != cta)
			continue;
		seq_printf(m, "  %c ", cta->held ? show_letter(n++) : '-');
		show_name(m, cta);
		seq_printf(m, " holds %u columns%s\n",
			   (u32)hweight64(cta->held) * ACCMEM_COLUMNS_UNIT,
			   c->sms[sm].permit == cta ? ", permit" : "");
	}
}

static void show_queue(struct seq_file *m, struct accmem_columns *c, u32 sm)
{
	struct accmem_columns_cta *cta, *leader;

	list_for_each_entry(cta, &c->sms[sm].queue, queue) {
		leader = cta->leads ? cta : cta->peer;
		seq_puts(m, "  ? ");
		show_name(m, leader);
		seq_printf(m,
			   " waits for %u columns, bypassed %u of %u, %llu us\n",
			   cta->columns, leader->bypassed, c->bypass_bound,
			   jiffies64_to_nsecs(get_jiffies_64() -
					      accmem_to_cta(leader)->since) /
				   NSEC_PER_USEC);
	}
}

static void show_tmem(struct seq_file *m, struct accmem_tmem *tmem)
{
	struct accmem_columns *c = &tmem->columns;
	u32 sm;

	seq_printf(m, "context %llu: %s, bypass bound %u%s\n", tmem->context,
		   c->exclusive ? "exclusive" : "shared", c->bypass_bound,
		   c->strict ? ", strict" : "");
	for (sm = 0; sm < c->nr_sms && !seq_has_overflowed(m); sm++) {
		spin_lock(&tmem->lock);
		show_units(m, c, sm);
		show_holders(m, c, sm);
		show_queue(m, c, sm);
		spin_unlock(&tmem->lock);
		cond_resched();
	}
}

/**
 * accmem_tmem_show_picture() - print each SM of each context of a device
 * @m: output
 * @accounts: accounts of the device
 *
 * Context: Process context. Takes and releases the tmem_lock of each context and
 * tmem->lock. May sleep.
 *
 * Return: 0.
 */
int accmem_tmem_show_picture(struct seq_file *m,
			     struct accmem_accounts *accounts)
{
	struct accmem_context *ctx;
	struct accmem_tmem *tmem;
	unsigned long id = 0;

	while ((ctx = accmem_context_next(&accounts->xa, &id))) {
		tmem = accmem_tmem_find(ctx);
		accmem_context_put(ctx);
		if (!tmem)
			continue;
		show_tmem(m, tmem);
		accmem_tmem_put(tmem);
	}
	return 0;
}
