/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mapping files: the file behind the user mappings of an account.
 *
 * accmem_mapping_init() and accmem_mapping_exit() bracket the use of the module's
 * mapping files. A revocation removes the mappings of an account by
 * accmem_mapping_revoke().
 */
#ifndef ACCMEM_MEMORY_MAPPING_H
#define ACCMEM_MEMORY_MAPPING_H

#include <linux/types.h>

struct accmem_account;
struct accmem_carveouts;
struct address_space;
struct file;

int accmem_mapping_init(void);
void accmem_mapping_exit(void);
void accmem_mapping_drop_1g(struct address_space *mapping, u64 offset);
void accmem_mapping_limit_huge(struct file *file, u64 start);
void accmem_mapping_revoke(struct accmem_account *account,
			   struct accmem_carveouts *carveouts);

#endif /* ACCMEM_MEMORY_MAPPING_H */
