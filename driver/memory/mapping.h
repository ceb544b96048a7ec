/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Mapping files: the file behind the user mappings of an account.
 *
 * accmem_mapping_init() and accmem_mapping_exit() bracket the use of the module's
 * mapping files.
 */
#ifndef ACCMEM_MEMORY_MAPPING_H
#define ACCMEM_MEMORY_MAPPING_H

int accmem_mapping_init(void);
void accmem_mapping_exit(void);

#endif /* ACCMEM_MEMORY_MAPPING_H */
