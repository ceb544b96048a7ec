/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Demand: whether a request can ever be charged.
 *
 * struct accmem_demand is the minimum that a request needs. ALLOC checks it against the
 * limits before it waits.
 */
#ifndef ACCMEM_WAITQ_DEMAND_H
#define ACCMEM_WAITQ_DEMAND_H

#include <linux/types.h>

struct accmem_account;
struct accmem_demand;

bool accmem_demand_exceeds_limits(const struct accmem_demand *p,
				  const struct accmem_account *account,
				  bool exempt);

#endif /* ACCMEM_WAITQ_DEMAND_H */
