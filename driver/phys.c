// SPDX-License-Identifier: GPL-2.0
/*
 * The phys backing: a physical range that was reserved at boot.
 *
 * With page structures it is write-back memory in compound pages of 2 MiB:
 * mappings get 2 MiB entries and can be pinned. Without them it can be
 * write-combining or uncached too, is mapped by frame number, and cannot be
 * pinned.
 *
 * Without page structures, the kernel maps each buffer with the buffer's own
 * cache mode for as long as it lives. That clears it, and it makes the mode
 * known for the range, which is where user mappings take it from on x86. What a
 * buffer has grown by is mapped when somebody reaches it, unless it has to be cleared:
 * the mapping is one, and a new one for each of many steps would take longer with each.
 *
 * All of the range is dirty at first: nobody knows what is in it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/memremap.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "../compat/compat.h"
#include "backing.h"
#include "clear.h"
#include "clear_late.h"
#include "memory.h"
#include "pins.h"

static void __iomem *phys_map_mode(phys_addr_t phys, u64 size, u32 cache_mode)
{
	switch (cache_mode) {
	case ACCMEM_CACHE_WC:
		return ioremap_wc(phys, size);
	case ACCMEM_CACHE_UC:
		return ioremap(phys, size);
	default:
		return ioremap_cache(phys, size);
	}
}

static void *phys_kernel_address(struct accmem_carveout *cv, u64 offset)
{
	phys_addr_t phys = cv->phys + offset;

	return page_address(pfn_to_page(PHYS_PFN(phys))) + offset_in_page(phys);
}

/* the kernel's address of memory that has one; words are the fastest there */
static void phys_clear_pages(struct accmem_carveout *cv, u64 offset, u64 size)
{
	memset64(phys_kernel_address(cv, offset), 0, size / sizeof(u64));
}

/* @mem->lock is held, or nobody else knows of it. Undone by phys_release(). */
static int phys_map(struct accmem_memory *mem, u64 size)
{
	void __iomem *io = phys_map_mode(mem->cv->phys + mem->run.start, size,
					 mem->cache_mode);

	if (!io)
		return -ENOMEM;
	swap(mem->io, io);
	WRITE_ONCE(mem->io_size, size);
	if (io)
		iounmap(io);
	return 0;
}

/* The kernel's mapping is to have all up to @end, which is not beyond the memory. */
static int phys_map_up_to(struct accmem_memory *mem, u64 end)
{
	u64 size = READ_ONCE(mem->size);

	lockdep_assert_held(&mem->lock);
	if (!mem->io || end <= mem->io_size)
		return 0;
	return end <= size ? phys_map(mem, size) : -ENXIO;
}

static void phys_clear_dirty(struct accmem_memory *mem,
			     const struct accmem_run *run)
{
	if (mem->io)
		memset_io(mem->io + (run->start - mem->run.start), 0,
			  run->size);
	else
		phys_clear_pages(mem->cv, run->start, run->size);
}

static int phys_prepare(struct accmem_memory *mem)
{
	struct accmem_carveout *cv = mem->cv;

	/* first: what is given back after a failure is this account's, too */
	accmem_clear_claim(cv, &mem->run, mem->account->id);
	if (!accmem_has_pages(cv) && phys_map(mem, mem->run.size))
		return -ENOMEM;
	return accmem_clear_late(mem, &mem->run, phys_clear_dirty);
}

static int phys_zero_io(struct accmem_memory *mem, u64 offset, u64 size)
{
	int err;

	mutex_lock(&mem->lock);
	err = phys_map_up_to(mem, offset + size);
	if (!err)
		memset_io(mem->io + offset, 0, size);
	mutex_unlock(&mem->lock);
	return err;
}

static int phys_zero(struct accmem_memory *mem, u64 offset, u64 size)
{
	if (!accmem_has_pages(mem->cv))
		return phys_zero_io(mem, offset, size);
	memset(phys_kernel_address(mem->cv, mem->run.start + offset), 0, size);
	return 0;
}

static void phys_read(struct accmem_memory *mem, u64 offset, void *to, u64 size)
{
	if (mem->io)
		memcpy_fromio(to, mem->io + offset, size);
	else
		memcpy(to,
		       phys_kernel_address(mem->cv, mem->run.start + offset),
		       size);
}

static void phys_write(struct accmem_memory *mem, u64 offset, const void *from,
		       u64 size)
{
	if (mem->io)
		memcpy_toio(mem->io + offset, from, size);
	else
		memcpy(phys_kernel_address(mem->cv, mem->run.start + offset),
		       from, size);
}

/* a part of a memory is not clear any more */
static void phys_touch(struct accmem_memory *mem, u64 offset, u64 size)
{
	u64 at = mem->run.start + offset;
	struct accmem_run written = {
		.start = round_down(at, ACCMEM_GRANULE),
		.size = round_up(at + size, ACCMEM_GRANULE) -
			round_down(at, ACCMEM_GRANULE),
	};

	accmem_clear_touch(mem->cv, &written);
}

/* under a lock that a memory which shrinks takes: its end is where it seems */
static int phys_access_part(struct accmem_memory *mem, u64 offset, void *data,
			    u64 size, bool write)
{
	int err = 0;

	if (offset + size > READ_ONCE(mem->size))
		return -ENXIO;
	if (!accmem_has_pages(mem->cv))
		err = phys_map_up_to(mem, offset + size);
	if (err)
		return err;
	if (write) {
		phys_touch(mem, offset, size);
		phys_write(mem, offset, data, size);
	} else {
		phys_read(mem, offset, data, size);
	}
	return 0;
}

static int phys_access_pages(struct accmem_memory *mem, u64 offset, void *data,
			     u64 size, bool write)
{
	struct page *page;
	u64 at, part;
	int err = 0;

	for (; size && !err; size -= part, offset += part, data += part) {
		at = mem->run.start + offset;
		part = min(size, ACCMEM_FOLIO - (at & (ACCMEM_FOLIO - 1)));
		page = pfn_to_page(PHYS_PFN(mem->cv->phys + at));
		lock_page(page);
		err = phys_access_part(mem, offset, data, part, write);
		unlock_page(page);
	}
	return err;
}

static int phys_access(struct accmem_memory *mem, u64 offset, void *data,
		       u64 size, bool write)
{
	int err;

	if (accmem_has_pages(mem->cv))
		return phys_access_pages(mem, offset, data, size, write);
	mutex_lock(&mem->lock);
	err = phys_access_part(mem, offset, data, size, write);
	mutex_unlock(&mem->lock);
	return err;
}

/* through a page of ours: memory of an I/O mapping is no memory to copy from */
static int phys_copy_io(struct accmem_memory *to, u64 to_offset,
			struct accmem_memory *from, u64 from_offset, u64 size)
{
	void *page = (void *)__get_free_page(GFP_KERNEL);
	u64 done, part;
	int err = 0;

	if (!page)
		return -ENOMEM;
	for (done = 0; done < size && !err; done += part) {
		part = min_t(u64, size - done, PAGE_SIZE);
		err = phys_access(from, from_offset + done, page, part, false);
		if (!err)
			phys_write(to, to_offset + done, page, part);
	}
	free_page((unsigned long)page);
	return err;
}

static int phys_copy(struct accmem_memory *to, u64 to_offset,
		     struct accmem_memory *from, u64 from_offset, u64 size)
{
	u64 at = to->run.start + to_offset;
	struct accmem_run written = {
		.start = round_down(at, ACCMEM_GRANULE),
		.size = round_up(at + size, ACCMEM_GRANULE) -
			round_down(at, ACCMEM_GRANULE),
	};

	accmem_clear_touch(to->cv, &written);
	if (!accmem_has_pages(to->cv) || !accmem_has_pages(from->cv))
		return phys_copy_io(to, to_offset, from, from_offset, size);
	memcpy(phys_kernel_address(to->cv, at),
	       phys_kernel_address(from->cv, from->run.start + from_offset),
	       size);
	return 0;
}

/* a line written back later would undo what the next owner does */
static void phys_flush(struct accmem_memory *mem)
{
	void *address = (__force void *)mem->io;
	u64 at, size;

	for (at = 0; at < mem->io_size; at += size) {
		size = min_t(u64, mem->io_size - at, ACCMEM_CHUNK);
		accmem_flush_cache(address + at, size);
		cond_resched();
	}
}

static void phys_release(struct accmem_memory *mem)
{
	if (!mem->io)
		return;
	if (mem->cache_mode == ACCMEM_CACHE_WB)
		phys_flush(mem);
	iounmap(mem->io);
}

/*
 * What was mapped of memory that goes back: with nothing of it in the cache, and no
 * mapping beside those of whoever gets it. Where there is no memory for another
 * mapping it stays, until the memory's is changed or goes.
 */
static void phys_extend_undo(struct accmem_memory *mem)
{
	mutex_lock(&mem->lock);
	if (mem->io && mem->io_size > mem->run.size) {
		if (mem->cache_mode == ACCMEM_CACHE_WB)
			phys_flush(mem);
		phys_map(mem, mem->run.size);
	}
	mutex_unlock(&mem->lock);
}

static int phys_extend(struct accmem_memory *mem, const struct accmem_run *more)
{
	struct accmem_run dirty;
	int err = 0;

	accmem_clear_claim(mem->cv, more, mem->account->id);
	if (!accmem_clear_next(mem->cv, more->start, more->size, &dirty))
		return 0;
	if (!accmem_has_pages(mem->cv)) {
		mutex_lock(&mem->lock);
		err = phys_map(mem, mem->run.size + more->size);
		mutex_unlock(&mem->lock);
	}
	if (!err)
		err = accmem_clear_late(mem, more, phys_clear_dirty);
	if (err)
		phys_extend_undo(mem);
	return err;
}

/* A fault may have shown all of a page of 2 MiB, or shows it when it is split. */
static u64 phys_keep(struct accmem_memory *mem, u64 size)
{
	u64 start = mem->run.start;

	if (!accmem_has_pages(mem->cv) || !accmem_memory_was_mapped(mem))
		return size;
	return round_up(start + size, ACCMEM_FOLIO) - start;
}

static int phys_split(struct accmem_memory *mem, struct accmem_memory *rest)
{
	u64 size = mem->size - rest->size;

	if (!mem->io || mem->io_size <= size)
		return 0;
	if (phys_map(rest, rest->size))
		return -ENOMEM;
	if (phys_map(mem, size)) {
		iounmap(rest->io);
		rest->io = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int phys_clear(struct accmem_carveout *cv, u64 offset, u64 size)
{
	void __iomem *io;

	if (accmem_has_pages(cv)) {
		phys_clear_pages(cv, offset, size);
		return 0;
	}
	io = ioremap_wc(cv->phys + offset, size);
	if (!io)
		return -ENOMEM;
	memset_io(io, 0, size);
	iounmap(io);
	return 0;
}

/* where in the carveout a mapping has what is at @pgoff */
static u64 phys_offset_at(struct accmem_memory *mem, pgoff_t pgoff)
{
	return ((u64)pgoff << PAGE_SHIFT) - accmem_carveout_mapped_at(mem->cv);
}

/*
 * What one fault shows at most: the 2 MiB around it, where the mapping has all of
 * them and is aligned as they are.
 */
static struct accmem_run phys_fault_extent(struct accmem_memory *mem,
					   const struct vm_fault *vmf)
{
	u64 offset = phys_offset_at(mem, vmf->pgoff);
	unsigned long address = vmf->address & PAGE_MASK;
	unsigned long base = round_down(address, ACCMEM_FOLIO);
	struct accmem_run run = { offset, PAGE_SIZE };

	if (!IS_ALIGNED(offset - address, ACCMEM_FOLIO) ||
	    base < vmf->vma->vm_start ||
	    vmf->vma->vm_end - base < ACCMEM_FOLIO)
		return run;
	run.start = round_down(offset, ACCMEM_FOLIO);
	run.size = ACCMEM_FOLIO;
	return run;
}

/* of a memory, those that it had before it shrank */
static bool phys_has_offset(struct accmem_memory *mem, u64 offset)
{
	return offset - mem->offset < READ_ONCE(mem->size);
}

static vm_fault_t phys_fault_page(struct accmem_memory *mem,
				  struct vm_fault *vmf)
{
	u64 at = phys_offset_at(mem, vmf->pgoff);
	struct page *page = pfn_to_page(PHYS_PFN(mem->cv->phys + at));
	struct accmem_run shown = phys_fault_extent(mem, vmf);

	get_page(page);
	lock_page(page);
	if (!phys_has_offset(mem, (u64)vmf->pgoff << PAGE_SHIFT)) {
		unlock_page(page);
		put_page(page);
		return VM_FAULT_SIGBUS;
	}
	accmem_clear_touch(mem->cv, &shown);
	vmf->page = page;
	return VM_FAULT_LOCKED;
}

/* where the part of a mapping ends that its memory has */
static unsigned long phys_mapping_end(struct accmem_memory *mem,
				      struct vm_area_struct *vma)
{
	u64 before = ((u64)vma->vm_pgoff << PAGE_SHIFT) - mem->offset;
	u64 size = READ_ONCE(mem->size);

	if (size <= before)
		return vma->vm_start;
	return vma->vm_start +
	       min_t(u64, size - before, vma->vm_end - vma->vm_start);
}

/* The kernel's mapping says of what cache mode those of users are. */
static vm_fault_t phys_reach(struct accmem_memory *mem, u64 end)
{
	int err;

	if (end <= READ_ONCE(mem->io_size))
		return 0;
	mutex_lock(&mem->lock);
	err = phys_map_up_to(mem, end);
	mutex_unlock(&mem->lock);
	return err == -ENOMEM ? VM_FAULT_OOM : err ? VM_FAULT_SIGBUS : 0;
}

/* all of the 2 MiB around the fault, as far as the mapping goes */
static vm_fault_t phys_fault_frames(struct accmem_memory *mem,
				    struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long base = round_down(vmf->address, ACCMEM_FOLIO);
	unsigned long from = max(base, vma->vm_start);
	unsigned long past = phys_mapping_end(mem, vma);
	unsigned long end = min(base + (ACCMEM_FOLIO - 1), past - 1);
	u64 start = phys_offset_at(mem, vma->vm_pgoff);
	unsigned long pfn = PHYS_PFN(mem->cv->phys + start);
	struct accmem_run shown = {
		.start = start + (from - vma->vm_start),
		.size = end + 1 - from,
	};
	unsigned long addr;
	vm_fault_t ret;

	if (vmf->address >= past)
		return VM_FAULT_SIGBUS;
	ret = phys_reach(mem, shown.start + shown.size - mem->run.start);
	if (ret)
		return ret;
	accmem_clear_touch(mem->cv, &shown);
	ret = vmf_insert_pfn(vma, vmf->address & PAGE_MASK,
			     pfn + ((vmf->address - vma->vm_start) >>
				    PAGE_SHIFT));
	for (addr = from; addr < end && ret == VM_FAULT_NOPAGE;
	     addr += PAGE_SIZE)
		ret = vmf_insert_pfn(vma, addr,
				     pfn + ((addr - vma->vm_start) >>
					    PAGE_SHIFT));
	return ret;
}

static vm_fault_t phys_fault(struct accmem_memory *mem, struct vm_fault *vmf)
{
	struct address_space *mapping = vmf->vma->vm_file->f_mapping;
	vm_fault_t ret;

	if (accmem_has_pages(mem->cv))
		return phys_fault_page(mem, vmf);
	filemap_invalidate_lock_shared(mapping);
	ret = phys_fault_frames(mem, vmf);
	filemap_invalidate_unlock_shared(mapping);
	return ret;
}

static void phys_pass_folios(struct accmem_memory *rest)
{
	u64 at = round_down(rest->run.start, ACCMEM_FOLIO);
	u64 end = rest->run.start + rest->run.size;
	struct page *page;

	for (; at < end; at += ACCMEM_FOLIO) {
		page = pfn_to_page(PHYS_PFN(rest->cv->phys + at));
		lock_page(page);
		unlock_page(page);
		cond_resched();
	}
}

/* faults hold the lock of the page, or that of the mapping */
static void phys_pass_faults(struct accmem_memory *rest)
{
	struct file *file = READ_ONCE(rest->account->file);

	if (accmem_has_pages(rest->cv)) {
		phys_pass_folios(rest);
	} else if (file) {
		filemap_invalidate_lock(file->f_mapping);
		filemap_invalidate_unlock(file->f_mapping);
	}
}

static bool phys_idle(struct accmem_memory *mem)
{
	return !accmem_has_pages(mem->cv) || accmem_pins_idle(mem);
}

static bool phys_settle(struct accmem_memory *mem)
{
	return !accmem_has_pages(mem->cv) || accmem_pins_settle(mem);
}

static void phys_destroy(struct accmem_carveout *cv)
{
	if (accmem_has_pages(cv))
		memunmap_pages(&cv->pagemap);
	if (cv->resource)
		release_mem_region(cv->phys, cv->capacity);
}

static const struct accmem_backing_ops phys_ops = {
	.prepare = phys_prepare,
	.fault = phys_fault,
	.idle = phys_idle,
	.settle = phys_settle,
	.zero = phys_zero,
	.access = phys_access,
	.copy = phys_copy,
	.extend = phys_extend,
	.keep = phys_keep,
	.split = phys_split,
	.pass_faults = phys_pass_faults,
	.unpinned = phys_settle,
	.release = phys_release,
	.clear = phys_clear,
	.destroy = phys_destroy,
};

/* our reference to a page stays until the range is unmapped */
static const struct dev_pagemap_ops pagemap_ops = {
	ACCMEM_PAGEMAP_NEVER_FREED,
};

static int phys_map_pages(struct accmem_carveout *cv)
{
	struct dev_pagemap *pgmap = &cv->pagemap;
	void *address;
	int err;

	err = accmem_carveout_own_folios(cv);
	if (err)
		return err;
	pgmap->type = MEMORY_DEVICE_GENERIC;
	pgmap->range.start = cv->phys;
	pgmap->range.end = cv->phys + cv->capacity - 1;
	pgmap->nr_range = 1;
	pgmap->vmemmap_shift = ACCMEM_FOLIO_ORDER;
	pgmap->ops = &pagemap_ops;
	address = memremap_pages(pgmap, cv->node);
	if (IS_ERR(address))
		return PTR_ERR(address);
	cv->node = page_to_nid(pfn_to_page(PHYS_PFN(cv->phys)));
	cv->features |= ACCMEM_FEATURE_PIN;
	return 0;
}

/* is it a range that can be ours? Nothing is mapped before that is known. */
static int phys_claim(struct accmem_carveout *cv)
{
	phys_addr_t start = cv->phys, last;

	if (!cv->capacity || !IS_ALIGNED(start, ACCMEM_FOLIO) ||
	    !IS_ALIGNED(cv->capacity, ACCMEM_FOLIO)) {
		pr_err("start and size must be multiples of 2 MiB, and not 0\n");
		return -EINVAL;
	}
	if (check_add_overflow(start, (phys_addr_t)(cv->capacity - 1), &last)) {
		pr_err("the range wraps around\n");
		return -EINVAL;
	}
	if (region_intersects(start, cv->capacity, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT) {
		pr_err("%pa..%pa overlaps System RAM\n", &start, &last);
		return -EINVAL;
	}
	cv->resource = request_mem_region(start, cv->capacity, "accmem");
	if (!cv->resource) {
		pr_err("%pa..%pa is in use, or beyond what the machine can address\n",
		       &start, &last);
		return -EBUSY;
	}
	return 0;
}

/**
 * accmem_phys_create() - make a carveout of a physical range
 * @cv: zeroed; to be destroyed by the caller, also on failure
 * @start: physical address, a multiple of 2 MiB
 * @size: bytes, a multiple of 2 MiB
 * @pages: make page structures for it
 *
 * The range must be disjoint from System RAM and claimed by nobody. Memory
 * that the firmware keeps for itself cannot be told apart.
 *
 * Return: 0, -EINVAL, -EBUSY, -ENOMEM.
 */
int accmem_phys_create(struct accmem_carveout *cv, phys_addr_t start, u64 size,
		       bool pages)
{
	int err;

	cv->ops = &phys_ops;
	cv->backing = ACCMEM_BACKING_PHYS;
	cv->translation = ACCMEM_TRANSLATION_IDENTITY;
	cv->features = ACCMEM_FEATURE_ACCESS;
	cv->phys = start;
	cv->capacity = size;
	err = phys_claim(cv);
	if (err)
		return err;
	err = accmem_carveout_init(cv);
	if (err)
		return err;
	cv->caps.page_sizes = ACCMEM_GRANULE | ACCMEM_FOLIO;
	if (IS_ALIGNED(start, SZ_1G) && size >= SZ_1G)
		cv->caps.page_sizes |= SZ_1G;
	err = accmem_carveout_track_dirty(cv);
	if (err)
		return err;
	cv->cache_modes = ACCMEM_FRAME_CACHE_MODES;
	if (!pages)
		return 0;
	cv->cache_modes = BIT(ACCMEM_CACHE_WB);
	return phys_map_pages(cv);
}
