// SPDX-License-Identifier: GPL-2.0
/*
 * Cache modes: how the CPU maps memory.
 *
 * Each value of enum accmem_cache_mode is a row of the table below. A row has the page
 * protection of user mappings, the kernel's mapping of memory without page structures,
 * and the change of the direct mapping of ordinary pages. The modes that a carveout
 * offers are in accmem_carveout.cache_modes.
 *
 * Locks: none.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/nospec.h>

#include "compat/compat.h"
#include "core/cache_mode.h"
#include "types/context_types.h"

struct cache_mode {
	pgprot_t (*pgprot)(pgprot_t prot);
	void __iomem *(*map)(phys_addr_t phys, u64 size);
	int (*set_pages)(unsigned long address, int nr);
};

static pgprot_t cache_mode_pgprot_wb(pgprot_t prot)
{
	return prot;
}

static pgprot_t cache_mode_pgprot_wc(pgprot_t prot)
{
	return pgprot_writecombine(prot);
}

static pgprot_t cache_mode_pgprot_uc(pgprot_t prot)
{
	return pgprot_noncached(prot);
}

static void __iomem *cache_mode_map_wb(phys_addr_t phys, u64 size)
{
	return ioremap_cache(phys, size);
}

static void __iomem *cache_mode_map_wc(phys_addr_t phys, u64 size)
{
	return ioremap_wc(phys, size);
}

static void __iomem *cache_mode_map_uc(phys_addr_t phys, u64 size)
{
	return ioremap(phys, size);
}

static const struct cache_mode cache_modes[] = {
	[ACCMEM_CACHE_WB] = { cache_mode_pgprot_wb, cache_mode_map_wb,
			      accmem_set_memory_wb },
	[ACCMEM_CACHE_WC] = { cache_mode_pgprot_wc, cache_mode_map_wc,
			      accmem_set_memory_wc },
	[ACCMEM_CACHE_UC] = { cache_mode_pgprot_uc, cache_mode_map_uc,
			      accmem_set_memory_uc },
};

static_assert(ARRAY_SIZE(cache_modes) == ACCMEM_NR_CACHE_MODES);

/* The row of a mode, which a program has chosen. */
static const struct cache_mode *cache_mode_row(u32 mode)
{
	return &cache_modes[array_index_nospec(mode, ARRAY_SIZE(cache_modes))];
}

/**
 * accmem_cache_mode_is_valid() - whether a number is a cache mode
 * @mode: the number
 *
 * Context: Any context.
 * Return: true if @mode is a value of enum accmem_cache_mode.
 */
bool accmem_cache_mode_is_valid(u32 mode)
{
	return mode < ARRAY_SIZE(cache_modes);
}

/**
 * accmem_cache_mode_pgprot() - page protection of user mappings
 * @mode: enum accmem_cache_mode
 * @prot: the protection of the VMA
 *
 * Context: Any context.
 * Return: @prot with the cache mode.
 */
pgprot_t accmem_cache_mode_pgprot(u32 mode, pgprot_t prot)
{
	return cache_mode_row(mode)->pgprot(prot);
}

/**
 * accmem_cache_mode_ioremap() - map memory without page structures into the kernel
 * @mode: enum accmem_cache_mode
 * @phys: physical address, a multiple of the page size
 * @size: bytes
 *
 * Context: Process context. May sleep.
 * Return: the mapping, which iounmap() undoes, or NULL if the kernel has no memory.
 */
void __iomem *accmem_cache_mode_ioremap(u32 mode, phys_addr_t phys, u64 size)
{
	return cache_mode_row(mode)->map(phys, size);
}

/**
 * accmem_cache_mode_set_pages() - change the direct mapping of ordinary pages
 * @mode: enum accmem_cache_mode
 * @page: the first page
 * @nr: number of pages
 *
 * Context: Process context. May sleep.
 * Return: 0; an error of set_memory_wb(), _wc() or _uc(); -EOPNOTSUPP if the architecture
 * cannot.
 */
int accmem_cache_mode_set_pages(u32 mode, struct page *page, unsigned int nr)
{
	unsigned long address = (unsigned long)page_address(page);

	return cache_mode_row(mode)->set_pages(address, nr);
}
