/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions and between architectures.
 *
 * Code outside compat/ is the same for all kernels. Each helper here stands for an API
 * of the newest kernel and falls back to the older API. compat/Kbuild.probe compiles
 * a test of each feature, instead of comparing versions, since stable kernels backport
 * changes.
 */
#ifndef ACCMEM_COMPAT_H
#define ACCMEM_COMPAT_H

#include <linux/dma-fence.h>
#include <linux/export.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/sysfs.h>

#include <uapi/linux/accmem.h>

/*
 * Namespaces are strings since cdd30ebb1b9f ("module: Convert symbol namespace to string
 * literal"), 6.13. Before it, they are bare words.
 */
#ifdef ACCMEM_HAVE_NS_WORD
#define ACCMEM_EXPORT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, ACCMEM)
#define ACCMEM_IMPORT(ns) MODULE_IMPORT_NS(ns)
#else
#define ACCMEM_EXPORT(symbol) EXPORT_SYMBOL_NS_GPL(symbol, "ACCMEM")
#define ACCMEM_IMPORT(ns) MODULE_IMPORT_NS(#ns)
#endif

/*
 * platform_driver.remove() returns nothing since 0edb555a65d1 ("platform: Make
 * platform_driver::remove() return void"), 6.11.
 */
#ifdef ACCMEM_HAVE_REMOVE_INT
#define ACCMEM_PLATFORM_REMOVE(name)                           \
	static int accmem_##name(struct platform_device *pdev) \
	{                                                      \
		name(pdev);                                    \
		return 0;                                      \
	}
#else
#define ACCMEM_PLATFORM_REMOVE(name)                            \
	static void accmem_##name(struct platform_device *pdev) \
	{                                                       \
		name(pdev);                                     \
	}
#endif

/*
 * vm_flags_mod(): bc292ab00f6c ("mm: introduce vma->vm_flags wrapper
 * functions"), 6.3. Before it, the flags are a plain field.
 */
static inline void accmem_vm_flags_mod(struct vm_area_struct *vma,
				       unsigned long set, unsigned long clear)
{
#ifdef ACCMEM_HAVE_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/*
 * eventfd_signal(): 3652117f8548 ("eventfd: simplify eventfd_signal()"), 6.8,
 * removed the count, which was 1 in all calls but one.
 */
static inline void accmem_eventfd_signal(struct eventfd_ctx *ctx)
{
#ifdef ACCMEM_HAVE_EVENTFD_COUNT
	eventfd_signal(ctx, 1);
#else
	eventfd_signal(ctx);
#endif
}

/*
 * dev_pagemap_ops.folio_free(): "mm/zone_device: rename page_free callback to
 * folio_free", 6.19. Before it, the argument of the callback is the head page. The
 * callback below is never called, since every page of a carveout keeps a reference
 * until the range is unmapped.
 */
#ifdef ACCMEM_HAVE_FOLIO_FREE
static inline void accmem_never_freed(struct folio *folio)
{
	WARN_ON_ONCE(1);
}

#define ACCMEM_PAGEMAP_NEVER_FREED .folio_free = accmem_never_freed
#else
static inline void accmem_never_freed(struct page *page)
{
	WARN_ON_ONCE(1);
}

#define ACCMEM_PAGEMAP_NEVER_FREED .page_free = accmem_never_freed
#endif

/*
 * struct bin_attribute: 97d06802d10a ("sysfs: constify bin_attribute argument of
 * bin_attribute::read/write()"), 6.16.
 */
#ifdef ACCMEM_HAVE_CONST_BIN_ATTRIBUTE
#define ACCMEM_BIN_CONST const
#else
#define ACCMEM_BIN_CONST
#endif

/*
 * fd_file(): 1da91ea87aef ("introduce fd_file(), convert all accessors to it."),
 * 6.12. Before it, the file is a plain field.
 */
static inline struct file *accmem_fd_file(struct fd fd)
{
#ifdef ACCMEM_HAVE_FD_FILE
	return fd_file(fd);
#else
	return fd.file;
#endif
}

/*
 * dma_fence_init64(): "dma-fence: Change a flag to 64b", 6.17. Before it, a
 * flag of the operations selects sequence numbers of 64 bits;
 * ACCMEM_DMA_FENCE_RELEASE64() sets the flag together with the release function.
 */
#ifdef ACCMEM_HAVE_DMA_FENCE_INIT64
#define ACCMEM_DMA_FENCE_RELEASE64(_fn) .release = (_fn)

static inline void accmem_dma_fence_init(struct dma_fence *fence,
					 const struct dma_fence_ops *ops,
					 spinlock_t *lock, u64 context,
					 u64 seqno)
{
	dma_fence_init64(fence, ops, lock, context, seqno);
}
#else
#define ACCMEM_DMA_FENCE_RELEASE64(_fn) \
	.release = (_fn), .use_64bit_seqno = true

static inline void accmem_dma_fence_init(struct dma_fence *fence,
					 const struct dma_fence_ops *ops,
					 spinlock_t *lock, u64 context,
					 u64 seqno)
{
	dma_fence_init(fence, ops, lock, context, seqno);
}
#endif

/*
 * Entries of 2 MiB and 1 GiB for memory without page structures: "mm/x86: support large
 * pfn mappings", 6.12, on architectures with CONFIG_ARCH_SUPPORTS_HUGE_PFNMAP. Before it,
 * the kernel takes such an entry for pages when it looks up or copies page tables.
 *
 * pfn_t: "mm: remove callers of pfn_t functionality", 6.17. Before it, the frame number
 * is in a structure.
 */
#ifdef CONFIG_ARCH_SUPPORTS_PMD_PFNMAP
#ifdef ACCMEM_HAVE_INSERT_PFN_LONG
#define accmem_pfn(_pfn) (_pfn)
#else
#include <linux/pfn_t.h>
#define accmem_pfn(_pfn) __pfn_to_pfn_t(_pfn, PFN_DEV)
#endif

#define ACCMEM_HUGE_FRAMES true
#define ACCMEM_HUGE_FAULT(_fn) .huge_fault = (_fn)
#define ACCMEM_MMAP_AREA(_fn) .get_unmapped_area = (_fn)

static inline unsigned long
accmem_folio_area(struct file *file, unsigned long address, unsigned long size,
		  unsigned long pgoff, unsigned long flags)
{
	return thp_get_unmapped_area(file, address, size, pgoff, flags);
}

/*
 * Up to 7.0 at least, mbind() and a read of /proc/PID/pagemap look at the page structure of
 * an entry of 2 MiB, also if there is none. They split entries of 1 GiB before. Kernels
 * with zap_special_vma_range() (7.1) are known to do without.
 */
static inline bool accmem_may_insert_huge(unsigned long pfn, unsigned int order)
{
#ifdef ACCMEM_HAVE_ZAP_SPECIAL
	return true;
#else
	return order != PMD_ORDER || pfn_valid(pfn);
#endif
}

static inline vm_fault_t
accmem_insert_huge(struct vm_fault *vmf, unsigned long pfn, unsigned int order)
{
	bool write = vmf->flags & FAULT_FLAG_WRITE;

	if (order == PMD_ORDER)
		return vmf_insert_pfn_pmd(vmf, accmem_pfn(pfn), write);
	if (IS_ENABLED(CONFIG_ARCH_SUPPORTS_PUD_PFNMAP) && order == PUD_ORDER)
		return vmf_insert_pfn_pud(vmf, accmem_pfn(pfn), write);
	return VM_FAULT_FALLBACK;
}

/* Keep faults out of @vma until the caller drops mmap_lock, held for writing. */
static inline void accmem_vma_start_write(struct vm_area_struct *vma)
{
	vma_start_write(vma);
}
#else
#define ACCMEM_HUGE_FRAMES false
#define ACCMEM_HUGE_FAULT(...) .huge_fault = NULL
#define ACCMEM_MMAP_AREA(...) .get_unmapped_area = thp_get_unmapped_area

static inline bool accmem_may_insert_huge(unsigned long pfn, unsigned int order)
{
	return false;
}

static inline unsigned long
accmem_folio_area(struct file *file, unsigned long address, unsigned long size,
		  unsigned long pgoff, unsigned long flags)
{
	return -ENOMEM;
}

static inline vm_fault_t
accmem_insert_huge(struct vm_fault *vmf, unsigned long pfn, unsigned int order)
{
	return VM_FAULT_FALLBACK;
}

static inline void accmem_vma_start_write(struct vm_area_struct *vma)
{
}
#endif

/*
 * A page that is charged as kernel memory must not be mapped by a 2 MiB entry:
 * madvise() of a part of the entry would interpret page->memcg_data as that of a user
 * page. accmem_hide_charge() moves the charge to page_private() while the page is
 * in use; accmem_show_charge() restores it before the page is freed.
 */
#ifdef CONFIG_MEMCG
static inline void accmem_hide_charge(struct page *page)
{
	set_page_private(page, page->memcg_data);
	page->memcg_data = 0;
}

static inline void accmem_show_charge(struct page *page)
{
	page->memcg_data = page_private(page);
	set_page_private(page, 0);
}
#else
static inline void accmem_hide_charge(struct page *page)
{
}

static inline void accmem_show_charge(struct page *page)
{
}
#endif

#ifdef CONFIG_X86
#include <asm/cacheflush.h>
#include <asm/set_memory.h>

/* Write back and invalidate the CPU's cache lines of a kernel mapping. */
static inline void accmem_flush_cache(void *address, u64 size)
{
	/* The size of clflush_cache_range() is an unsigned int. */
	while (size) {
		unsigned int part = min_t(u64, size, 1u << 30);

		clflush_cache_range(address, part);
		address += part;
		size -= part;
	}
}

/* Cache modes other than write-back that ordinary memory supports. */
static inline u32 accmem_emulated_cache_modes(void)
{
	return BIT(ACCMEM_CACHE_WC) | BIT(ACCMEM_CACHE_UC);
}

/* Set the cache mode of pages in the direct mapping. May sleep. */
#define accmem_set_memory_wb set_memory_wb
#define accmem_set_memory_wc set_memory_wc
#define accmem_set_memory_uc set_memory_uc
#else
#include <asm/cacheflush.h>
#include <asm/cpufeature.h>

/*
 * Write back and invalidate the CPU's cache lines of a kernel mapping, up to the point of
 * coherency. The kernel's own dcache_clean_inval_poc() is not exported. The field DminLine
 * of CTR_EL0 is the logarithm of the size of a line in words.
 */
static inline void accmem_flush_cache(void *address, u64 size)
{
	u64 line = 4 << (read_sanitised_ftr_reg(SYS_CTR_EL0) >> 16 & 0xf);
	u64 end = (u64)address + size, at;

	for (at = round_down((u64)address, line); at < end; at += line)
		asm volatile("dc civac, %0" : : "r"(at) : "memory");
	dsb(sy);
}

static inline u32 accmem_emulated_cache_modes(void)
{
	return 0;
}

static inline int accmem_set_memory_wb(unsigned long address, int nr)
{
	return 0;
}

static inline int accmem_set_memory_wc(unsigned long address, int nr)
{
	return -EOPNOTSUPP;
}

static inline int accmem_set_memory_uc(unsigned long address, int nr)
{
	return -EOPNOTSUPP;
}
#endif /* CONFIG_X86 */

#endif /* ACCMEM_COMPAT_H */
