/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory whose free has been pending for too long.
 */
#ifndef ACCMEM_OVERDUE_H
#define ACCMEM_OVERDUE_H

#include <linux/jiffies.h>

#include "core/carveout.h"

#define ACCMEM_OVERDUE_FIRST_LOOK msecs_to_jiffies(100)

void accmem_overdue_init(struct accmem_carveout *cv);
void accmem_overdue_stop(struct accmem_carveout *cv);

/* Memory has become pending: it is looked at from now on. Does not sleep. */
static inline void accmem_overdue_watch(struct accmem_carveout *cv)
{
	if (!delayed_work_pending(&cv->overdue_work))
		queue_delayed_work(accmem_wq, &cv->overdue_work,
				   ACCMEM_OVERDUE_FIRST_LOOK);
}

#endif /* ACCMEM_OVERDUE_H */
