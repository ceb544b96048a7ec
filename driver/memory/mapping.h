/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file behind the mappings of the memory of an account.
 */
#ifndef ACCMEM_MEMORY_MAPPING_H
#define ACCMEM_MEMORY_MAPPING_H

struct accmem_account;
struct file;

int accmem_mapping_init(void);
void accmem_mapping_exit(void);
struct file *accmem_mapping_file(struct accmem_account *account);

#endif /* ACCMEM_MEMORY_MAPPING_H */
