/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mapping files: the file behind the user mappings of an account.
 *
 * accmem_mapping_init() and accmem_mapping_exit() bracket the use of the module's
 * mapping files. mmap() asks accmem_mapping_file() for the file of the new VMA.
 */
#ifndef ACCMEM_MEMORY_MAPPING_H
#define ACCMEM_MEMORY_MAPPING_H

#include <linux/types.h>

struct accmem_account;
struct file;

int accmem_mapping_init(void);
void accmem_mapping_exit(void);
struct file *accmem_mapping_file(struct accmem_account *account);
void accmem_mapping_limit_huge(struct file *file, u64 start);

#endif /* ACCMEM_MEMORY_MAPPING_H */
