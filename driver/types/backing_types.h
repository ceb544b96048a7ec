/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations of a backing.
 *
 * A backing supplies the memory of a carveout: accmem_emulated_create() and
 * accmem_phys_create() set accmem_carveout.ops. The functions of memory/ call the
 * operations. fault(), access() and split_finish() are required. Memory that is not
 * zero when it is free also needs init() and clear().
 *
 * Dirty memory: accmem_carveout_track_dirty() makes the driver record which memory may
 * have bytes that are not zero. fault(), access() and kernel_address() call
 * accmem_clear_mark_dirty() before the memory is mapped or written. init() calls
 * accmem_clear_invalidate_others() and then clears the memory that accmem_clear_next()
 * finds. Without the marks, another account would read the old bytes.
 */
#ifndef ACCMEM_BACKING_TYPES_H
#define ACCMEM_BACKING_TYPES_H

#include <linux/mm_types.h>
#include <linux/types.h>

struct accmem_account;
struct accmem_bo;
struct accmem_carveout;
struct accmem_run;
struct vm_fault;

/**
 * enum accmem_idle_check - how accmem_backing_ops.is_idle() checks
 * @ACCMEM_IDLE_COUNT: compare reference counts. The result may be false although the
 *	pages are idle, never the opposite. Does not sleep for a bo of fewer than 512 pages.
 * @ACCMEM_IDLE_IN_USE: exact, for a bo that stays in use: its own mappings are removed
 *	before the call, and faults may map the bo again. Neighbours in the same folio,
 *	whose mappings hide the answer, are unmapped. May sleep.
 */
enum accmem_idle_check {
	ACCMEM_IDLE_COUNT,
	ACCMEM_IDLE_IN_USE,
};

/**
 * struct accmem_hidden - a folio whose mappings hide the pins of a quarantined bo
 * @at: offset of the folio in the carveout
 * @wait_ns: time for which its mappings may not be removed, or 0
 */
struct accmem_hidden {
	u64 at;
	u64 wait_ns;
};

/**
 * enum accmem_release - the pages that accmem_backing_ops.release() frees
 * @ACCMEM_RELEASE_TO_PIN: some pages, up to the first that is pinned. Takes a bounded
 *	time; the next call continues.
 * @ACCMEM_RELEASE_UNPINNED: likewise, but pages that are pinned are skipped
 * @ACCMEM_RELEASE_ALL: all that is left, and what init() has made; nothing is pinned
 */
enum accmem_release {
	ACCMEM_RELEASE_TO_PIN,
	ACCMEM_RELEASE_UNPINNED,
	ACCMEM_RELEASE_ALL,
};

/**
 * struct accmem_backing_ops - operations of the backing of a carveout
 * @fault: handle a page fault in a mapping of a bo. Returns VM_FAULT_HWPOISON for memory
 *	that has failed. Required.
 * @huge_fault: handle a page fault with one entry of 2 MiB or 1 GiB, given as an order
 *	of pages. Returns VM_FAULT_FALLBACK where such an entry would map memory beyond
 *	the bo or the mapping, or memory that has failed. Called only for memory without
 *	page structures, if the kernel has such entries. Absent: no such entries.
 * @access: read or write a part of a bo that is in use, as the device does. With @data
 *	NULL the bytes are zeroed. Fails with -ENXIO beyond the end of the bo, with
 *	-EHWPOISON if some of the memory has failed, and with -ENOMEM. Required.
 * @init: make a run of a bo ready: clear its memory and apply the cache mode. The run
 *	is that of a new bo, or the run directly behind a bo that the bo is about to
 *	get. Fails with -ENOMEM and -EINTR. Absent if there is nothing to make ready.
 * @map: prepare a bo for mappings. Fails with -ENOMEM. Absent if there is nothing to
 *	prepare.
 * @kernel_address: return the kernel address of the byte at an offset of a bo that does
 *	not shrink, and the number of bytes that are contiguous there. With @write the
 *	caller will write: a missing page is made. The result is NULL if there is no
 *	page, and -EHWPOISON as a pointer if the page has failed; the number of bytes is
 *	set then, too. Required for
 *	ACCMEM_FEATURE_FIRST_TOUCH and for host memory; where it is absent, copies go
 *	through @access.
 * @physical: return the physical address of the byte at an offset of a bo that does not
 *	shrink and whose pages exist, and the number of bytes that are contiguous there, up
 *	to the end of the bo at least. Does not sleep. Required.
 * @is_idle: return true if only the driver refers to the pages of a bo. Absent if pages
 *	cannot be pinned.
 * @release: free pages of a bo that is no longer in use; return true if there are pages
 *	left to check. Allocates no memory. A backing that frees no single pages does
 *	nothing but for ACCMEM_RELEASE_ALL. Absent if there is nothing to free.
 * @shrink_floor: return the number of bytes that a bo keeps when it shrinks to a size,
 *	and that it has at least when it grows to this size again. Does not sleep.
 *	Absent if that is the size.
 * @split: the backing's part of accmem_bo_split_prepare(). The caller holds
 *	accmem_bo.lock. Fails with -ENOMEM. Absent if there is nothing to do.
 * @split_finish: remove the pages of @rest from the bo that was split, and wait for
 *	faults and accesses that may reach them, if there can be any: the wait takes the
 *	lock under which fault() and access() compare accmem_bo.size. Required.
 * @settle: wait for faults on a bo that have returned a locked page, until the page is
 *	mapped. No fault begins any more. Absent if fault() maps the memory itself.
 * @clear: clear a free chunk that the cleaner has. Fails with -ENOMEM. Absent if free
 *	memory is always clean.
 * @drop: remove the kernel mappings of memory that is gone. No code uses them any more, and
 *	none is made. Absent if there are none.
 * @destroy: free the resources of the carveout, also after a failed creation. Absent if
 *	there are none.
 * @isolate: a part of the carveout has failed: prevent later faults from mapping the part
 *	together with the memory around the part, and wait for faults that have not seen
 *	the failure. The caller removes the mappings afterwards. Absent if the invalidate
 *	lock of the mappings, which the caller takes and releases, suffices for both.
 * @physical_at: return the physical address of the byte at an offset of the carveout. Does
 *	not sleep. Absent if offsets have none.
 *
 * The operations may sleep, but for those that say that they do not.
 */
struct accmem_backing_ops {
	vm_fault_t (*fault)(struct accmem_bo *bo, struct vm_fault *vmf);
	vm_fault_t (*huge_fault)(struct accmem_bo *bo, struct vm_fault *vmf,
				 unsigned int order);
	int (*access)(struct accmem_bo *bo, u64 offset, void *data, u64 size,
		      bool write);
	int (*init)(struct accmem_bo *bo, const struct accmem_run *run);
	int (*map)(struct accmem_bo *bo);
	void *(*kernel_address)(struct accmem_bo *bo, u64 offset, bool write,
				u64 *size);
	phys_addr_t (*physical)(struct accmem_bo *bo, u64 offset, u64 *size);
	bool (*is_idle)(struct accmem_bo *bo, enum accmem_idle_check check);
	bool (*release)(struct accmem_bo *bo, enum accmem_release which);
	u64 (*shrink_floor)(struct accmem_bo *bo, u64 size);
	int (*split)(struct accmem_bo *bo, struct accmem_bo *rest);
	void (*split_finish)(struct accmem_bo *bo, struct accmem_bo *rest);
	void (*settle)(struct accmem_bo *bo);
	int (*clear)(struct accmem_carveout *cv, u64 offset, u64 size);
	void (*drop)(struct accmem_carveout *cv);
	void (*destroy)(struct accmem_carveout *cv);
	void (*isolate)(struct accmem_carveout *cv, u64 offset, u64 size);
	u64 (*physical_at)(const struct accmem_carveout *cv, u64 offset);
};

/**
 * struct accmem_folio_ops - operations of a backing whose folios of 2 MiB have owners
 * @is_hidden: find a folio of a quarantined bo, which is not idle, whose pins may be
 *	hidden by mappings of neighbours, and for which this was not checked since a
 *	time in ns. Does not sleep.
 * @unmap: remove all mappings of a folio of an account, and record whether it has pins.
 *	May sleep.
 * @forget: a folio has no user any more: forget the address_space of its mappings. The
 *	caller holds the carveout's lock. Does not sleep.
 *
 * All operations are required.
 */
struct accmem_folio_ops {
	bool (*is_hidden)(struct accmem_bo *bo, u64 since,
			  struct accmem_hidden *hidden);
	void (*unmap)(struct accmem_carveout *cv,
		      struct accmem_account *account, u64 at);
	void (*forget)(struct accmem_carveout *cv, u64 at);
};

#endif /* ACCMEM_BACKING_TYPES_H */
