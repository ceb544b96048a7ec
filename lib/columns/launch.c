// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: launches.
 *
 * CTAs are launched one at a time into a cluster that more can be launched into,
 * or all CTAs of a cluster at once: then the cluster is complete, and no CTA of
 * it waits for a peer that was never launched. Everything is checked before the
 * first of them is in the arbiter, so a launch that fails has not been.
 */
#include <linux/errno.h>
#include <linux/kernel.h>

#include "internal.h"

/* makes a CTA as new; what the caller has set stays */
static int launch_prepare(struct accmem_columns *c,
			  struct accmem_columns_cta *cta, bool complete)
{
	*cta = (struct accmem_columns_cta){
		.launch = cta->launch,
		.cluster = cta->cluster,
		.rank = cta->rank,
		.sm = cta->sm,
		.group = cta->group,
		.complete = complete,
	};
	if (cta->group != 1 && cta->group != 2)
		return -EINVAL;
	return cta->sm < c->nr_sms ? 0 : -ENXIO;
}

/* 0, or why @cta cannot be in a cluster with @other; finds the peer */
static int launch_compare_ranks(struct accmem_columns_cta *cta,
				struct accmem_columns_cta *other)
{
	if (other->rank == cta->rank)
		return -EEXIST;
	if (cta->group == 1 || (other->rank ^ 1) != cta->rank)
		return 0;
	if (other->peer_gone)
		return -EEXIST;
	if (other->sm == cta->sm)
		return -EADDRINUSE;
	cta->peer = other;
	return 0;
}

/* 0, or why @cta cannot be launched beside @other, which is running */
static int launch_compare(struct accmem_columns_cta *cta,
			  struct accmem_columns_cta *other)
{
	if (other->launch != cta->launch)
		return 0;
	if (other->group != cta->group)
		return -EPROTOTYPE;
	if (other->cluster != cta->cluster)
		return 0;
	if (cta->complete || other->complete)
		return -EEXIST;
	return cta->group == 1 ? 0 : launch_compare_ranks(cta, other);
}

static int launch_compare_all(struct accmem_columns *c,
			      struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *other;
	int err;

	list_for_each_entry(other, &c->ctas, link) {
		err = launch_compare(cta, other);
		if (err)
			return err;
	}
	return 0;
}

/* 0, or why a CTA cannot be in a cluster with those before it */
static int launch_compare_members(struct accmem_columns_cta *const *ctas, u32 n)
{
	struct accmem_columns_cta *cta = ctas[n];
	int err;
	u32 i;

	for (i = 0; i < n; i++) {
		err = launch_compare_ranks(cta, ctas[i]);
		if (err)
			return err;
	}
	return 0;
}

/* the CTA is the arbiter's from here on, and its peer's peer */
static void launch_enter(struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	INIT_LIST_HEAD(&cta->queue);
	list_add_tail(&cta->link, &c->ctas);
	c->nr_ctas++;
	if (cta->peer)
		cta->peer->peer = cta;
}

/* one of the CTAs; those before it have passed */
static int launch_check_one(struct accmem_columns *c,
			    struct accmem_columns_cta *const *ctas, u32 n,
			    bool complete)
{
	int err = launch_prepare(c, ctas[n], complete);

	/* what is running is the same to all of them */
	if (!err && !n)
		err = launch_compare_all(c, ctas[n]);
	return err ?: launch_compare_members(ctas, n);
}

/* each pair was found once, by the later one of the two */
static bool launch_pairs_are_whole(struct accmem_columns_cta *const *ctas,
				   u32 nr)
{
	u32 i, paired = 0;

	for (i = 0; i < nr; i++)
		paired += ctas[i]->peer ? 2 : 0;
	return ctas[0]->group == 1 || paired == nr;
}

/* all or none; *@culprit is the one that was looked at last */
static int launch_all(struct accmem_columns *c,
		      struct accmem_columns_cta *const *ctas, u32 nr,
		      bool complete, u32 *culprit)
{
	int err = c->ended ? -ECONNRESET : 0;
	u32 i;

	for (i = 0; i < nr && !err; i++) {
		*culprit = i;
		err = launch_check_one(c, ctas, i, complete);
	}
	if (err)
		return err;
	if (complete && !launch_pairs_are_whole(ctas, nr))
		return -EINVAL;
	for (i = 0; i < nr; i++)
		launch_enter(c, ctas[i]);
	return 0;
}

int accmem_columns_launch(struct accmem_columns *c,
			  struct accmem_columns_cta *cta)
{
	u32 culprit;

	return launch_all(c, &cta, 1, false, &culprit);
}

int accmem_columns_launch_cluster(struct accmem_columns *c,
				  struct accmem_columns_cta *const *ctas,
				  u32 nr, u32 *culprit)
{
	*culprit = 0;
	return launch_all(c, ctas, nr, true, culprit);
}
