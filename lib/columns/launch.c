// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * accmem_columns: launches of CTAs.
 *
 * There are two kinds of launch:
 *  - One CTA is launched into a cluster, and more CTAs can follow.
 *  - All CTAs of a cluster are launched at once. The cluster is then complete, and no
 *    CTA of it waits for a peer that was never launched.
 *
 * All checks come before the first CTA is added to the arbiter, so a launch that fails
 * has no effect.
 *
 * A launch looks only at the CTAs of its own cluster, and at one CTA that stands for
 * its launch. Two hash tables find them; each SM has a bucket of both.
 *
 * Locking: none; the caller serialises.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/kernel.h>

#include "internal.h"

static struct accmem_columns_sm *launch_bucket(struct accmem_columns *c,
					       u64 launch, u32 cluster)
{
	u32 key = (u32)(launch ^ launch >> 32) * 31 + cluster;

	return &c->sms[hash_32(key, 16) % c->nr_sms];
}

/* Return the CTA that stands for a launch, or NULL if no CTA of it is running. */
static struct accmem_columns_cta *launch_find(struct accmem_columns *c,
					      u64 launch)
{
	struct accmem_columns_cta *cta;

	list_for_each_entry(cta, &launch_bucket(c, launch, 0)->launches,
			    of_launch) {
		c->checks++;
		if (cta->launch == launch)
			return cta;
	}
	return NULL;
}

/* Initialise a CTA, except for the fields that the caller has set, and check it. */
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

/*
 * Check @cta against another CTA of its cluster. If that is the peer, set
 * @cta->peer.
 */
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

/* Check @cta against the CTAs that are running. */
static int launch_compare_all(struct accmem_columns *c,
			      struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *other = launch_find(c, cta->launch);
	int err = 0;

	if (other && other->group != cta->group)
		return -EPROTOTYPE;
	list_for_each_entry(other,
			    &launch_bucket(c, cta->launch, cta->cluster)
				     ->clusters,
			    same_cluster) {
		c->checks++;
		if (other->launch != cta->launch ||
		    other->cluster != cta->cluster)
			continue;
		if (cta->complete || other->complete)
			return -EEXIST;
		if (cta->group == 1)
			return 0;
		err = launch_compare_ranks(cta, other);
		if (err)
			return err;
	}
	return 0;
}

/* Check a CTA against the members of its launch before it. */
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

/* Add a CTA to the arbiter, and connect its peer to it. */
static void launch_enter(struct accmem_columns *c,
			 struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *first = launch_find(c, cta->launch);

	INIT_LIST_HEAD(&cta->queue);
	INIT_LIST_HEAD(&cta->done);
	INIT_LIST_HEAD(&cta->of_launch);
	INIT_LIST_HEAD(&cta->same_launch);
	list_add_tail(&cta->link, &accmem_sm_of(c, cta)->ctas);
	list_add_tail(&cta->same_cluster,
		      &launch_bucket(c, cta->launch, cta->cluster)->clusters);
	if (first)
		list_add_tail(&cta->same_launch, &first->same_launch);
	else
		list_add_tail(&cta->of_launch,
			      &launch_bucket(c, cta->launch, 0)->launches);
	c->nr_ctas++;
	if (cta->peer)
		cta->peer->peer = cta;
}

/* Remove a CTA from the arbiter. Another CTA stands for its launch, if there is one. */
void accmem_columns_leave(struct accmem_columns *c,
			  struct accmem_columns_cta *cta)
{
	struct accmem_columns_cta *next =
		list_first_entry(&cta->same_launch, struct accmem_columns_cta,
				 same_launch);

	if (!list_empty(&cta->of_launch) && next != cta)
		list_add(&next->of_launch, &cta->of_launch);
	list_del_init(&cta->of_launch);
	list_del_init(&cta->same_launch);
	list_del_init(&cta->same_cluster);
	list_del_init(&cta->link);
	c->nr_ctas--;
}

/* Check one of the CTAs. The CTAs before it have passed. */
static int launch_check_one(struct accmem_columns *c,
			    struct accmem_columns_cta *const *ctas, u32 n,
			    bool complete)
{
	int err = launch_prepare(c, ctas[n], complete);

	/* Checks against running CTAs have the same result for all members. */
	if (!err && !n)
		err = launch_compare_all(c, ctas[n]);
	return err ?: launch_compare_members(ctas, n);
}

/* Return true if each pair is complete. The later CTA of a pair has found its peer. */
static bool launch_pairs_are_whole(struct accmem_columns_cta *const *ctas,
				   u32 nr)
{
	u32 i, paired = 0;

	for (i = 0; i < nr; i++)
		paired += ctas[i]->peer ? 2 : 0;
	return ctas[0]->group == 1 || paired == nr;
}

/* Launch all CTAs or none. *@culprit is the index of the CTA checked last. */
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
