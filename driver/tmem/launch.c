// SPDX-License-Identifier: GPL-2.0
/*
 * Launches: of one CTA, and of all CTAs of a cluster.
 *
 * To undo a launch would be an exit, which a peer would notice. So every step that
 * can fail comes before the launch:
 *  1. accmem_launch_prepare() reserves the descriptors.
 *  2. The ioctl copies their numbers to user space.
 *  3. accmem_tmem_launch() allocates the CTAs and their files.
 *  4. The arbiter launches all of the CTAs or none.
 *  5. The files are installed.
 *
 * Locking: accmem_tmem.lock for step 4.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/overflow.h>

#include "internal.h"
#include "tmem/launch.h"
#include "trace/tmem_trace.h"
#include "types/context_types.h"

static int launch_check_window(const struct accmem_tmem_member *member)
{
	u64 last;

	if (!member->window_length)
		return member->window_base ? -EINVAL : 0;
	return check_add_overflow(member->window_base,
				  member->window_length - 1, &last) ?
		       -EOVERFLOW :
		       0;
}

/* Release the reserved descriptors of the first @nr members. */
static void launch_put_fds(const struct accmem_launch *launch, u32 nr)
{
	while (nr--)
		put_unused_fd(launch->members[nr].fd);
}

/**
 * accmem_launch_prepare() - check the members of a launch and reserve descriptors
 * @launch: the launch; the function sets the fd of each member
 *
 * Context: Process context. May sleep.
 *
 * Return: 0, -EINVAL, -EOVERFLOW, -EMFILE.
 */
int accmem_launch_prepare(struct accmem_launch *launch)
{
	u32 i;
	int err;

	for (i = 0; i < launch->nr_members; i++) {
		err = launch_check_window(&launch->members[i]);
		if (err)
			return err;
	}
	for (i = 0; i < launch->nr_members; i++) {
		err = get_unused_fd_flags(O_CLOEXEC);
		if (err < 0) {
			launch_put_fds(launch, i);
			return err;
		}
		launch->members[i].fd = err;
	}
	return 0;
}

/**
 * accmem_launch_cancel() - undo accmem_launch_prepare()
 * @launch: a launch that has failed or was not started
 *
 * Context: Process context. May sleep.
 */
void accmem_launch_cancel(struct accmem_launch *launch)
{
	launch_put_fds(launch, launch->nr_members);
}

static struct accmem_cta *launch_create(struct accmem_tmem *tmem,
					const struct accmem_launch *launch,
					const struct accmem_tmem_member *member)
{
	const struct accmem_window window = {
		.base = member->window_base,
		.length = member->window_length,
	};
	struct accmem_cta *cta = accmem_cta_create(tmem, &window);

	if (IS_ERR(cta))
		return cta;
	cta->c.launch = launch->launch;
	cta->c.cluster = launch->cluster;
	cta->c.rank = member->rank;
	cta->c.sm = member->sm;
	cta->c.group = launch->cta_group;
	return cta;
}

/* Free the first @nr CTAs, which were not launched. */
static void launch_discard(struct accmem_columns_cta *const *ctas, u32 nr)
{
	while (nr--)
		fput(accmem_to_cta(ctas[nr])->file);
}

static int launch_create_all(struct accmem_tmem *tmem,
			     const struct accmem_launch *launch,
			     struct accmem_columns_cta **ctas)
{
	struct accmem_cta *cta;
	u32 i;

	for (i = 0; i < launch->nr_members; i++) {
		cta = launch_create(tmem, launch, &launch->members[i]);
		if (IS_ERR(cta)) {
			launch_discard(ctas, i);
			return PTR_ERR(cta);
		}
		ctas[i] = &cta->c;
	}
	return 0;
}

static int launch_enter(struct accmem_tmem *tmem,
			const struct accmem_launch *launch,
			struct accmem_columns_cta *const *ctas, u32 *culprit)
{
	u32 i, nr = launch->nr_members;
	int err;

	lockdep_assert_held(&tmem->lock);
	if (nr > ACCMEM_TMEM_CTAS_MAX - tmem->columns.nr_ctas)
		return -EUSERS;
	if (launch->complete)
		err = accmem_columns_launch_cluster(&tmem->columns, ctas, nr,
						    culprit);
	else
		err = accmem_columns_launch(&tmem->columns, ctas[0]);
	if (err)
		return err;
	for (i = 0; i < nr; i++) {
		accmem_to_cta(ctas[i])->id = ++tmem->nr_launched;
		trace_accmem_tmem_launch(accmem_to_cta(ctas[i]));
	}
	return 0;
}

static void launch_install(const struct accmem_launch *launch,
			   struct accmem_columns_cta *const *ctas)
{
	u32 i;

	for (i = 0; i < launch->nr_members; i++)
		fd_install(launch->members[i].fd, accmem_to_cta(ctas[i])->file);
}

/**
 * accmem_tmem_launch() - launch all CTAs or none, and install their files
 * @ctx: the context
 * @launch: the CTAs, after accmem_launch_prepare()
 *
 * Context: Process context. Takes and releases ctx->tmem_lock and tmem->lock. May
 * sleep.
 *
 * Return: 0, or an error as <uapi/linux/accmem.h> lists them.
 */
int accmem_tmem_launch(struct accmem_context *ctx,
		       const struct accmem_launch *launch)
{
	static const struct accmem_cta_call call = {
		.op = ACCMEM_CTA_OP_LAUNCH,
	};
	struct accmem_columns_cta *ctas[ACCMEM_TMEM_CLUSTER_MAX];
	struct accmem_tmem *tmem = accmem_tmem_get(ctx);
	u32 culprit = 0;
	int err;

	if (IS_ERR(tmem))
		return PTR_ERR(tmem);
	err = launch_create_all(tmem, launch, ctas);
	if (err)
		goto out;
	spin_lock(&tmem->lock);
	err = launch_enter(tmem, launch, ctas, &culprit);
	spin_unlock(&tmem->lock);
	if (err) {
		accmem_tmem_report(accmem_to_cta(ctas[culprit]), &call, err);
		launch_discard(ctas, launch->nr_members);
	} else {
		launch_install(launch, ctas);
	}
out:
	accmem_tmem_put(tmem);
	return err;
}
