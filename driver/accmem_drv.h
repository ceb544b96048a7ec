/* SPDX-License-Identifier: GPL-2.0 */
/*
 * accmem: what the files of the driver share.
 *
 * Lock order, outermost first:
 *
 *	mmap_lock
 *	  accmem_stash_drain_lock	memory on its way out of stashes
 *	    accmem_device.lock		contexts of a device
 *	    users_lock			users, and their contexts
 *	      accmem_context.lock	names of a context, its Tensor Memory
 *		accmem_stash.lock	spinlock: what a context keeps
 *		accmem_tmem.lock	spinlock: see tmem.h
 *	accmem_carveout.settle_lock	one settler of quarantined memory at once
 *	  accmem_buffer.lock		pages of an emulated buffer; also under
 *					mmap_lock, by a fault
 *	  folio lock			also under mmap_lock, by a fault
 *	  accmem_carveout.scrub_lock	one dirty chunk being cleared at once
 *	    accmem_carveout.lock	spinlock: free space, states, accounting
 *
 * users_lock and accmem_context.lock are also taken under settle_lock.
 *
 * Nothing is copied from or to the user, cleared, or waited for under the
 * folio lock, a context's lock or a spinlock.
 */
#ifndef ACCMEM_DRV_H
#define ACCMEM_DRV_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/accmem.h>

#include "../lib/accmem_buddy.h"
#include "../lib/accmem_layout.h"
#include "../lib/accmem_slab.h"

#define ACCMEM_MAX_DEVICES 16
#define ACCMEM_MAX_ALIGNMENT ((u64)SZ_1G)
#define ACCMEM_MAX_SPAN BIT_ULL(44) /* mmap offsets stay below it */
#define ACCMEM_CHUNK ((u64)SZ_2M) /* cleared at once */
#define ACCMEM_FOLIO_SHIFT 21
#define ACCMEM_FOLIO BIT_ULL(ACCMEM_FOLIO_SHIFT)
#define ACCMEM_FOLIO_ORDER (ACCMEM_FOLIO_SHIFT - PAGE_SHIFT)
#define ACCMEM_FOLIO_CLASSES (ACCMEM_FOLIO_SHIFT - ACCMEM_GRANULE_SHIFT)

struct accmem_buffer;
struct accmem_carveout;
struct accmem_context;
struct accmem_device;
struct accmem_sheet;
struct accmem_tmem;
struct seq_file;

/**
 * enum accmem_state - who answers for the bytes of a carveout
 * @ACCMEM_LIVE: a buffer that has its name
 * @ACCMEM_DETACHED: freed, but mapped still
 * @ACCMEM_PENDING: freed at a position of a stream that is not reached yet
 * @ACCMEM_QUARANTINED: freed and unmapped, but pages are pinned still
 * @ACCMEM_NR_STATES: number of states; what is in none of them is free
 */
enum accmem_state {
	ACCMEM_LIVE,
	ACCMEM_DETACHED,
	ACCMEM_PENDING,
	ACCMEM_QUARANTINED,
	ACCMEM_NR_STATES,
};

/**
 * struct accmem_user - what one user of the system holds
 * @node: in the table of users
 * @refs: contexts whose buffers are charged to it, guarded by the table's lock
 * @uid: the user, as it was when the context was opened
 * @contexts: open contexts
 * @buffers: buffers, until their memory is free again
 * @bytes: footprints of these buffers
 * @charges: how often @buffers and @bytes were changed
 * @list: its open contexts; guarded by the table's lock
 */
struct accmem_user {
	struct hlist_node node;
	unsigned long refs;
	kuid_t uid;
	atomic64_t contexts;
	atomic64_t buffers;
	atomic64_t bytes;
	atomic64_t charges;
	struct list_head list;
};

/**
 * struct accmem_folio - owner of a compound page (2 MiB) of a carveout
 * @owner: the context with granules in it; NULL when it is wholly free, or wholly one
 *	buffer's
 * @used: granules of it that are not free; 0 also when it is wholly one buffer's
 * @run: longest free run in it, in granules
 * @scrubbed: the scrubber has granules of it out
 * @pinned: the accmem_carveout.settle_pass in which it was found pinned; guarded
 *	by settle_lock
 * @link: in accmem_context.partial while owned and not full
 *
 * Guarded by the carveout's lock. A page count covers the whole compound page,
 * so it never has granules of two contexts.
 */
struct accmem_folio {
	struct accmem_context *owner;
	u16 used;
	u16 run;
	bool scrubbed;
	u16 pinned;
	struct list_head link;
};

/**
 * struct accmem_backing_ops - what a carveout's memory is made of
 * @prepare: make the memory of a new buffer ready: cleared, with its cache
 *	mode, and present if ACCMEM_ALLOC_POPULATE asks for it. Sleeps.
 * @fault: serve a page fault of a mapping of the buffer
 * @settle: has nobody but us a reference to the buffer's pages? Called without
 *	mappings left. With @force, neighbours' mappings are taken down to find
 *	out. Sleeps.
 * @populate: make all of a buffer present; absent where memory always is.
 *	Sleeps.
 * @zero: clear a part of a buffer that is in use. Sleeps.
 * @idle: as @settle, of a buffer that stays in use
 * @release: undo @prepare; after @settle said yes. Sleeps, allocates nothing.
 * @clear: clear a chunk that no buffer has; absent where memory is clear
 *	whenever it is free. Sleeps.
 * @destroy: give the carveout's own resources back
 */
struct accmem_backing_ops {
	int (*prepare)(struct accmem_buffer *buf);
	vm_fault_t (*fault)(struct accmem_buffer *buf, struct vm_fault *vmf);
	bool (*settle)(struct accmem_buffer *buf, bool force);
	int (*populate)(struct accmem_buffer *buf);
	void (*zero)(struct accmem_buffer *buf, u64 offset, u64 size);
	bool (*idle)(struct accmem_buffer *buf, bool force);
	void (*release)(struct accmem_buffer *buf);
	int (*clear)(struct accmem_carveout *cv, u64 offset, u64 size);
	void (*destroy)(struct accmem_carveout *cv);
};

/**
 * struct accmem_carveout - a range of device memory
 * @ops: its backing
 * @capacity: bytes
 * @phys: physical address of the range (phys)
 * @backing: enum accmem_backing
 * @translation: enum accmem_translation
 * @cache_modes: bit (1 << enum accmem_cache_mode) for each mode offered
 * @features: enum accmem_feature bits
 * @caps: what the layout function may choose from
 * @pagemap: page structures of the range (phys with pages)
 * @resource: the claimed range (phys)
 * @inode: behind every mapping. File offsets are mmap offsets; with identity
 *	translation that is the offset in the carveout, congruent to the
 *	physical address modulo 2 MiB, as 2 MiB entries need it.
 * @resident: pages present (emulated)
 * @lock: guards the fields down to @holds; taken with accmem_carveout_lock()
 * @buddy: free space
 * @buddy_meta: its metadata
 * @folios: owners of compound pages; NULL where there are none
 * @whole: compound pages that are nobody's, a granule standing for each
 * @whole_meta: its metadata
 * @bytes: bytes in each state; what @slack counts is among the live ones
 * @slack: bytes of live sheets that are in no block; they count as free
 * @scrubbing: bytes that the scrubber holds; they count as free
 * @quarantine: quarantined buffers
 * @allocs: buffers allocated so far
 * @frees: buffers whose memory came back
 * @failures: allocations that failed for lack of memory
 * @nr_buffers: buffers whose memory is not free
 * @holds: how often @lock was taken
 * @scrub_lock: held while the scrubber has a chunk out
 * @scrub: clears free memory in the background
 * @settle_lock: held while quarantined buffers are looked at
 * @settle: looks at quarantined buffers again
 * @settle_pass: serial number of its passes, never 0; guarded by @settle_lock
 * @settle_delay: jiffies until it looks the next time
 * @stopping: the carveout is going; no more background work
 */
struct accmem_carveout {
	const struct accmem_backing_ops *ops;
	u64 capacity;
	phys_addr_t phys;
	u32 backing;
	u32 translation;
	u32 cache_modes;
	u64 features;
	struct accmem_layout_caps caps;
	struct dev_pagemap pagemap;
	struct resource *resource;
	struct inode *inode;
	atomic64_t resident;

	spinlock_t lock; /* the fields down to holds */
	struct accmem_buddy buddy;
	void *buddy_meta;
	struct accmem_folio *folios;
	struct accmem_buddy whole;
	void *whole_meta;
	u64 bytes[ACCMEM_NR_STATES];
	u64 slack;
	u64 scrubbing;
	struct list_head quarantine;
	u64 allocs;
	u64 frees;
	u64 failures;
	u64 nr_buffers;
	u64 holds;

	struct mutex scrub_lock; /* a chunk is out of the free space */
	struct work_struct scrub;
	struct mutex settle_lock; /* quarantine is being looked through */
	struct delayed_work settle;
	u16 settle_pass;
	unsigned long settle_delay;
	bool stopping;
};

/**
 * struct accmem_device - /dev/accmemN
 * @misc: its character device
 * @name: "accmemN"
 * @index: N
 * @cv: its memory
 * @address_base: lowest device address
 * @address_span: bytes of device addresses
 * @debugfs: its directory
 * @lock: guards @contexts and @nr_contexts
 * @contexts: open contexts
 * @nr_contexts: how many
 */
struct accmem_device {
	struct miscdevice misc;
	char name[16];
	unsigned int index;
	struct accmem_carveout cv;
	u64 address_base;
	u64 address_span;
	struct dentry *debugfs;

	struct mutex lock; /* contexts, nr_contexts */
	struct list_head contexts;
	u64 nr_contexts;
};

/**
 * struct accmem_stash - what a context freed last
 * @lock: of its own: whoever drains the stash of another context must not wait
 *	for what that one does under its lock
 * @buffers: the buffers, the latest first
 * @nr: how many
 * @hits: allocations served from it that the carveout has not counted yet
 */
struct accmem_stash {
	spinlock_t lock; /* all that follows */
	struct list_head buffers;
	unsigned int nr;
	u64 hits;
};

/**
 * struct accmem_context - one open file
 * @refs: the file, and every buffer
 * @dev: the device
 * @user: who opened it; charged for everything in it
 * @id: serial number, for messages and traces
 * @pid: thread group that opened it
 * @comm: its name then
 * @bytes: footprints of its buffers, until their memory is free again
 * @link: in accmem_device.contexts
 * @user_link: in accmem_user.list
 * @lock: guards the fields down to @slabs
 * @names: buffers by device address, and sheets, with their blocks in them
 * @cursor: where the search for a free device address starts (mapped)
 * @nr_names: buffers that have a name
 * @tmem: Tensor Memory, NULL until it is set up or a CTA is launched; stays
 *	until the context ends
 * @named_bytes: their footprints
 * @stash: buffers kept for the next requests
 * @slabs: sheets with room for small blocks, of each cache mode; NULL before
 *	the first of them
 * @partial: owned compound pages with room, by ilog2 of their longest free
 *	run in granules; guarded by the carveout's lock
 */
struct accmem_context {
	struct kref refs;
	struct accmem_device *dev;
	struct accmem_user *user;
	u64 id;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	atomic64_t bytes;
	struct list_head link;
	struct list_head user_link;

	struct mutex lock; /* the fields down to slabs */
	struct rb_root names;
	u64 cursor;
	u64 nr_names;
	struct accmem_tmem *tmem;
	u64 named_bytes;
	struct accmem_stash stash;
	struct accmem_slab *slabs[ACCMEM_CACHE_UC + 1];

	struct list_head partial[ACCMEM_FOLIO_CLASSES];
};

/**
 * struct accmem_buffer - one allocation
 * @refs: its name, each mapping's file, and calls at work on it
 * @ctx: the context, kept until the buffer has gone
 * @cv: the carveout
 * @node: in accmem_context.names, guarded by the context's lock; not used by a
 *	small block, which is found through its sheet
 * @named: it has its name; guarded by the context's lock
 * @address: device address
 * @length: bytes asked for
 * @layout: what that became
 * @flags: ACCMEM_ALLOC_*
 * @page_policy: enum accmem_page_policy as asked for
 * @cache_mode: enum accmem_cache_mode
 * @runs: its memory
 * @nr_runs: how many pieces
 * @run: the one piece, where it is one
 * @state: guarded by the carveout's lock
 * @link: in accmem_carveout.quarantine, guarded by the carveout's lock; in
 *	accmem_sheet.waiting, guarded by the context's; in accmem_stash.buffers
 * @sheet: what a small block is cut from; NULL otherwise
 * @is_sheet: this is the sheet's own memory, which has no name
 * @mapped: there was a mapping once, so that pages may be pinned
 * @lock: guards the filling of @pages
 * @pages: pages by index within the buffer (emulated)
 * @io: kernel's mapping, of the same cache mode (phys without pages)
 */
struct accmem_buffer {
	struct kref refs;
	struct accmem_context *ctx;
	struct accmem_carveout *cv;
	struct rb_node node;
	bool named;
	u64 address;
	u64 length;
	struct accmem_layout layout;
	u32 flags;
	u32 page_policy;
	u32 cache_mode;
	struct accmem_run *runs;
	unsigned int nr_runs;
	struct accmem_run run;

	enum accmem_state state;
	struct list_head link;
	struct accmem_sheet *sheet;
	bool is_sheet;

	bool mapped;
	struct mutex lock; /* filling of pages */
	struct xarray pages;
	void __iomem *io;
};

/**
 * struct accmem_sheet - a granule that small blocks are cut from
 * @buf: its memory: a buffer without a name. Each block refers to it, and the
 *	file of each mapping.
 * @units: what is taken of it
 * @starts: units at which a block with a name starts
 * @block: these blocks
 * @mappings: files of mappings
 * @waiting: blocks that were freed while there were mappings
 * @retired: its context has ended; nothing more is cut from it
 *
 * Guarded by the context's lock, from @units on.
 */
struct accmem_sheet {
	struct accmem_buffer buf;
	struct accmem_slab_granule units;
	u64 starts;
	struct accmem_buffer *block[ACCMEM_SLAB_UNITS];
	unsigned int mappings;
	struct list_head waiting;
	bool retired;
};

/* main.c */
extern struct workqueue_struct *accmem_wq;

/* device.c */
struct accmem_device *accmem_device_alloc(unsigned int index);
int accmem_device_register(struct accmem_device *dev);
void accmem_devices_start(void);
void accmem_device_unregister(struct accmem_device *dev);

/* user.c */
extern unsigned long accmem_max_contexts_per_user;
extern unsigned long accmem_max_buffers_per_user;
extern unsigned long long accmem_max_bytes_per_user;
extern unsigned long long accmem_max_bytes_per_context;
int accmem_user_open(struct accmem_context *ctx, kuid_t uid);
void accmem_user_leave(struct accmem_context *ctx);
void accmem_user_close(struct accmem_context *ctx);
void accmem_user_drain(struct accmem_user *user);
u64 accmem_user_charges(void);
bool accmem_add_within(atomic64_t *counter, u64 n, u64 limit);
int accmem_charge(struct accmem_context *ctx, u64 bytes);
void accmem_uncharge(struct accmem_context *ctx, u64 bytes);

/* context.c */
struct accmem_context *accmem_context_open(struct accmem_device *dev);
void accmem_context_end(struct accmem_context *ctx);
void accmem_context_put(struct accmem_context *ctx);
int accmem_context_name(struct accmem_context *ctx, struct accmem_buffer *buf);
struct accmem_buffer *accmem_context_find(struct accmem_context *ctx,
					  u64 address);
int accmem_context_free(struct accmem_context *ctx, u64 address);
bool accmem_context_unname(struct accmem_context *ctx,
			   struct accmem_buffer *buf);
struct accmem_buffer *accmem_context_mappable(struct accmem_context *ctx,
					      u64 address);
int accmem_context_insert(struct accmem_context *ctx,
			  struct accmem_buffer *buf);
void accmem_context_erase(struct accmem_context *ctx,
			  struct accmem_buffer *buf);

/* buffer.c */
void accmem_buffer_init(struct accmem_buffer *buf, struct accmem_context *ctx,
			u32 cache_mode);
void accmem_buffer_finish(struct accmem_buffer *buf);
struct accmem_buffer *accmem_buffer_create(struct accmem_context *ctx,
					   const struct accmem_alloc *req);
void accmem_buffer_detach(struct accmem_buffer *buf);
void accmem_buffer_get(struct accmem_buffer *buf);
void accmem_buffer_put(struct accmem_buffer *buf);
void accmem_settle(struct accmem_carveout *cv, bool force, unsigned int most);
void accmem_settle_work(struct work_struct *work);

/* stash.c */
extern struct mutex accmem_stash_drain_lock;
void accmem_stash_init(struct accmem_stash *stash);
void accmem_stash_collect(struct accmem_context *ctx, struct list_head *list);
void accmem_stash_release(struct list_head *list);
void accmem_stash_drain(struct accmem_context *ctx);
void accmem_stash_drain_device(struct accmem_device *dev);
struct accmem_buffer *accmem_stash_put(struct accmem_context *ctx,
				       struct accmem_buffer *buf);
struct accmem_buffer *accmem_stash_take(struct accmem_context *ctx,
					const struct accmem_alloc *req);

/* sheet.c */
int accmem_sheet_take(struct accmem_buffer *buf);
int accmem_sheet_prepare(struct accmem_buffer *buf);
void accmem_sheet_give(struct accmem_buffer *buf);
void accmem_sheet_name(struct accmem_buffer *buf);
void accmem_sheet_unname(struct accmem_buffer *buf);
struct accmem_buffer *accmem_sheet_block(struct accmem_buffer *sheet,
					 u64 address);
struct accmem_buffer *accmem_sheet_next(struct accmem_buffer *sheet,
					u64 address);
bool accmem_sheet_wait(struct accmem_buffer *buf);
void accmem_sheet_map(struct accmem_buffer *sheet);
void accmem_sheet_unmap(struct accmem_buffer *sheet);
void accmem_sheet_retire(struct accmem_buffer *sheet);
u64 accmem_sheet_largest(struct accmem_context *ctx);

/* carveout.c */
int accmem_carveout_init(struct accmem_carveout *cv);
void accmem_carveout_stop(struct accmem_carveout *cv);
void accmem_carveout_destroy(struct accmem_carveout *cv);
void accmem_carveout_space(struct accmem_context *ctx, u64 *free_bytes,
			   u64 *largest_run);
u64 accmem_carveout_free_bytes(struct accmem_carveout *cv);
u64 accmem_carveout_bytes(struct accmem_carveout *cv, enum accmem_state state);
bool accmem_carveout_next_dirty(struct accmem_carveout *cv, u64 offset,
				u64 size, struct accmem_run *run);

/* space.c */
int accmem_space_take(struct accmem_buffer *buf);
void accmem_space_give(struct accmem_buffer *buf);

/* folio.c */
int accmem_folio_init(struct accmem_carveout *cv);
int accmem_folio_take(struct accmem_carveout *cv, struct accmem_context *ctx,
		      const struct accmem_buddy_request *req, u64 *offset);
void accmem_folio_give(struct accmem_carveout *cv, u64 offset, u64 size);
void accmem_folio_scrub_begin(struct accmem_carveout *cv, u64 offset, u64 size);
void accmem_folio_scrub_end(struct accmem_carveout *cv, u64 offset, u64 size);
u64 accmem_folio_largest_run(struct accmem_carveout *cv,
			     struct accmem_context *ctx);
bool accmem_folio_settle(struct accmem_buffer *buf, bool force);
bool accmem_folio_settle_shared(struct accmem_carveout *cv, struct folio *folio,
				u64 offset, u64 size);

/* phys.c */
int accmem_phys_create(struct accmem_carveout *cv, phys_addr_t start, u64 size,
		       bool pages);

/* emulated.c */
extern unsigned long long accmem_emulated_resident_max;
int accmem_emulated_create(struct accmem_carveout *cv, u64 size);

/* ioctl.c */
long accmem_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/*
 * The size of a caller's structure, with which it begins: 0, -EFAULT, -EINVAL
 * below @least, or -E2BIG above a page, beyond which no tail is looked at.
 */
static inline int accmem_get_size(const void __user *arg, u32 least, u32 *size)
{
	if (get_user(*size, (const u32 __user *)arg))
		return -EFAULT;
	if (*size < least)
		return -EINVAL;
	return *size > PAGE_SIZE ? -E2BIG : 0;
}

/* mmap.c */
int accmem_mmap(struct file *file, struct vm_area_struct *vma);
int accmem_mmap_init(void);
void accmem_mmap_exit(void);
struct inode *accmem_mmap_inode(u64 size);

/* fdinfo.c, sysfs.c, debugfs.c */
void accmem_show_fdinfo(struct seq_file *m, struct file *file);
extern const struct attribute_group *accmem_sysfs_groups[];
void accmem_debugfs_init(void);
void accmem_debugfs_exit(void);
void accmem_debugfs_add(struct accmem_device *dev);
void accmem_debugfs_remove(struct accmem_device *dev);

static inline struct accmem_carveout *
accmem_context_carveout(struct accmem_context *ctx)
{
	return &ctx->dev->cv;
}

static inline void accmem_carveout_lock(struct accmem_carveout *cv)
	__acquires(&cv->lock)
{
	spin_lock(&cv->lock);
	WRITE_ONCE(cv->holds, cv->holds + 1);
}

static inline void accmem_carveout_unlock(struct accmem_carveout *cv)
	__releases(&cv->lock)
{
	spin_unlock(&cv->lock);
}

/* where a buffer starts in the inode behind its mappings, in bytes */
static inline u64 accmem_buffer_offset(const struct accmem_buffer *buf)
{
	return buf->address - buf->ctx->dev->address_base;
}

static inline struct accmem_sheet *accmem_to_sheet(struct accmem_buffer *buf)
{
	return container_of(buf, struct accmem_sheet, buf);
}

static inline bool accmem_has_pages(const struct accmem_carveout *cv)
{
	return cv->features & ACCMEM_FEATURE_PIN;
}

#endif /* ACCMEM_DRV_H */
