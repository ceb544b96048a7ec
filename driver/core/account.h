/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users and accounts: charges, and the limits on them.
 *
 * An account is charged when memory or a buffer is allocated and uncharged when it is
 * free again. accmem_charge*() fail with -EDQUOT at a limit. accmem_charge_fits()
 * compares with the current charges, accmem_charge_exceeds_limit() with the limits
 * alone.
 */
#ifndef ACCMEM_CORE_ACCOUNT_H
#define ACCMEM_CORE_ACCOUNT_H

#include <linux/types.h>

#include "types/account_types.h"

extern unsigned long long accmem_max_contexts_per_user;
extern unsigned long long accmem_max_buffers_per_user;
extern unsigned long long accmem_max_exports_per_user;
extern unsigned long long accmem_max_fences_per_user;
extern unsigned long long accmem_max_waits_per_user;
extern unsigned long long accmem_max_bytes_per_user;
extern unsigned long long accmem_max_bytes_per_context;

struct accmem_account *accmem_account_open(struct accmem_accounts *accounts,
					   struct accmem_waiters *waiters,
					   unsigned int nr_carveouts);
void accmem_user_get(struct accmem_user *user);
void accmem_user_put(struct accmem_user *user);
bool accmem_user_ratelimit(struct accmem_user *user);
struct accmem_user *accmem_user_next(struct accmem_user *prev);
void accmem_users_exit(void);
struct accmem_account *accmem_account_next(struct accmem_accounts *accounts,
					   unsigned long *id);
void accmem_account_get(struct accmem_account *account);
void accmem_account_put(struct accmem_account *account);
int accmem_charge(struct accmem_account *account, u64 bytes, bool exempt);
int accmem_charge_buffers(struct accmem_account *account, u64 buffers);
bool accmem_charge_buffer(struct accmem_account *account, bool exempt);
int accmem_charge_fence(struct accmem_user *user);
int accmem_charge_exports(struct accmem_user *user, unsigned int nr);
int accmem_charge_wait(struct accmem_user *user);
void accmem_uncharge(struct accmem_account *account, u64 bytes);
void accmem_uncharge_buffers(struct accmem_account *account, u64 buffers);
void accmem_uncharge_fence(struct accmem_user *user);
void accmem_uncharge_exports(struct accmem_user *user, unsigned int nr);
void accmem_uncharge_wait(struct accmem_user *user);
bool accmem_charge_exceeds_limit(u64 bytes, bool exempt);
bool accmem_caller_is_exempt(void);
bool accmem_add_within(atomic64_t *counter, u64 n, u64 limit);
bool accmem_charge_fits(const struct accmem_account *account, u64 bytes,
			u64 buffers, bool exempt);

#endif /* ACCMEM_CORE_ACCOUNT_H */
