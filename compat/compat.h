/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat: what differs between kernel versions and architectures, and nowhere
 * else. Features are probed by compat/Kbuild.probe, not by version: stable
 * kernels backport.
 */
#ifndef ACCMEM_COMPAT_H
#define ACCMEM_COMPAT_H

#include <linux/dma-fence.h>
#include <linux/eventfd.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/memremap.h>
#include <linux/mm.h>

#include <linux/accmem.h>

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
 * took the count away that all but one caller had at 1.
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
 * folio_free", 6.19. Before it, the callback takes the head page. The callback
 * that this names is for carveouts whose pages all keep a reference until the
 * range is unmapped.
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
 * dma_fence_init64(): "dma-fence: Change a flag to 64b", 6.17. Before it, the
 * operations say that sequence numbers have 64 bits; here, the one that releases.
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
 * A page that is charged as kernel memory must not be mapped by a 2 MiB entry as
 * it is: madvise() of a part of it looks for the memory cgroup of a page of user
 * memory. The charge is put aside while the page is in use, and put back before
 * it is freed.
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

/* write back and drop the CPU's cache lines of a kernel mapping */
static inline void accmem_flush_cache(void *address, u64 size)
{
	/* clflush_cache_range() takes an unsigned int */
	while (size) {
		unsigned int part = min_t(u64, size, 1u << 30);

		clflush_cache_range(address, part);
		address += part;
		size -= part;
	}
}

/* cache modes of memory without page structures */
#define ACCMEM_FRAME_CACHE_MODES                                               \
	(BIT(ACCMEM_CACHE_WB) | BIT(ACCMEM_CACHE_WC) | BIT(ACCMEM_CACHE_UC))

/* cache modes beyond write-back that ordinary memory can have */
static inline u32 accmem_emulated_cache_modes(void)
{
	return BIT(ACCMEM_CACHE_WC) | BIT(ACCMEM_CACHE_UC);
}

/* change the direct mapping of some pages; may sleep */
#define accmem_set_memory_wb set_memory_wb
#define accmem_set_memory_wc set_memory_wc
#define accmem_set_memory_uc set_memory_uc
#else
/* without a flush, what one owner left in the cache would reach the next */
#define ACCMEM_FRAME_CACHE_MODES (BIT(ACCMEM_CACHE_WC) | BIT(ACCMEM_CACHE_UC))

static inline void accmem_flush_cache(void *address, u64 size)
{
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
