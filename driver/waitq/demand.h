/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Demand: whether a request could ever be served.
 */
#ifndef ACCMEM_WAITQ_DEMAND_H
#define ACCMEM_WAITQ_DEMAND_H

#include <linux/types.h>

struct accmem_account;
struct accmem_prospect;

bool accmem_prospect_is_in_vain(const struct accmem_prospect *p,
				const struct accmem_account *account,
				bool exempt);

#endif /* ACCMEM_WAITQ_DEMAND_H */
