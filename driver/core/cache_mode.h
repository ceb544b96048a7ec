/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cache modes of memory, for the CPU's mappings of it.
 */
#ifndef ACCMEM_CACHE_MODE_H
#define ACCMEM_CACHE_MODE_H

#include <linux/compiler.h>
#include <linux/mm_types.h>
#include <linux/pgtable.h>
#include <linux/types.h>

bool accmem_cache_mode_is_valid(u32 mode);
pgprot_t accmem_cache_mode_pgprot(u32 mode, pgprot_t prot);
void __iomem *accmem_cache_mode_ioremap(u32 mode, phys_addr_t phys, u64 size);
int accmem_cache_mode_set_pages(u32 mode, struct page *page, unsigned int nr);

#endif /* ACCMEM_CACHE_MODE_H */
