// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of a dma-buf: importers and programs access the memory of an export.
 *
 * The memory never moves. Each mapping of an importer has a scatter-gather table of its
 * own. Memory with page structures is mapped as such; where there are none, the entries
 * have DMA addresses only, and at most MAP_ENTRY bytes. A device that cannot address the
 * memory is refused, so that nothing is copied through bounce buffers. A PCI device that
 * cannot reach the BAR of another PCI device is refused too.
 *
 * After a revocation (revoke.c) all functions that give access fail.
 *
 * Locking: the kernel calls map, unmap, pin, unpin, vmap and vunmap with the dma_resv
 * held, but vmap and vunmap on 6.1 with a mutex of the dma-buf; attach, mmap and the calls
 * around accesses of the CPU without. mmap_lock is above the dma_resv, so that no function
 * takes mmap_lock.
 */
#include <linux/dma-buf.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/iommu.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "compat/dma_buf.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "core/revoke.h"
#include "export/export.h"
#include "internal.h"
#include "memory/bo.h"
#include "memory/clear.h"
#include "memory/vma.h"
#include "types/backing_types.h"
#include "types/bo_types.h"
#include "types/export_types.h"

#define MAP_ENTRY \
	((u64)SZ_1G) /* most bytes of an entry; its length has 32 bits */

/**
 * struct mapping - a mapping of an importer
 * @link: link in accmem_export.mappings
 * @attach: the importer
 * @sgt: the table
 * @dir: direction
 * @address: DMA address of memory without page structures
 */
struct mapping {
	struct list_head link;
	struct dma_buf_attachment *attach;
	struct sg_table sgt;
	enum dma_data_direction dir;
	dma_addr_t address;
};

static bool map_has_pages(const struct accmem_export *export)
{
	return accmem_has_pages(export->bo->cv);
}

/* Mark the memory dirty before it can be written. */
static void map_touch(struct accmem_export *export)
{
	struct accmem_bo *bo = export->bo;
	const struct accmem_run run = {
		.start = bo->run.start + export->offset,
		.size = export->size,
	};

	/* Pages of emulated memory are not used again. */
	if (bo->cv->chunks)
		accmem_clear_mark_dirty(bo->cv, &run);
}

/*
 * Find the physical address of the byte at *@done of @export, and the number of bytes that
 * are contiguous there, @max at most; advance *@done past them. Return 0 at the end.
 */
static u64 map_next(struct accmem_export *export, u64 *done, u64 max,
		    phys_addr_t *at)
{
	struct accmem_bo *bo = export->bo;
	u64 offset = export->offset + *done, left = export->size - *done;
	u64 size = 0, part;
	phys_addr_t next;

	while (size < min(left, max)) {
		next = bo->cv->ops->physical(bo, offset + size, &part);
		if (!size)
			*at = next;
		else if (next != *at + size)
			break;
		size += part;
		cond_resched();
	}
	size = min3(size, left, max);
	*done += size;
	return size;
}

/* Can @dev address all of the memory, as far as is known before it is mapped? */
static bool map_is_within_reach(struct accmem_export *export,
				struct device *dev)
{
	u64 done = 0, size, limit = dma_get_mask(dev);
	phys_addr_t at;

	if (device_iommu_mapped(dev))
		return true;
	if (dev->bus_dma_limit)
		limit = min(limit, dev->bus_dma_limit);
	while ((size = map_next(export, &done, U64_MAX, &at)))
		if (at + size - 1 > limit)
			return false;
	return true;
}

/*
 * Check that an importer sees the caches of the CPU. Write-back memory without page
 * structures has DMA addresses only, so that nothing writes back or invalidates cache lines
 * for the importer. An IOMMU of arm64 maps such addresses without a look at the caches.
 */
static int map_check_caches(const struct accmem_export *export,
			    struct device *dev)
{
	if (map_has_pages(export) || export->bo->cache_mode != ACCMEM_CACHE_WB)
		return 0;
	if (!dev_is_dma_coherent(dev) ||
	    (IS_ENABLED(CONFIG_ARM64) && device_iommu_mapped(dev)))
		return -EOPNOTSUPP;
	return 0;
}

/*
 * Check that a PCI device can reach the BAR of another, as far as the bridges tell. The check
 * follows the pointers from both devices to the bridges above them. The device of the BAR
 * stays on its bus until its provider is unregistered, which waits for all code between
 * accmem_enter() and accmem_exit().
 */
static int map_check_peer(const struct accmem_carveout *cv, struct device *dev)
{
	bool possible;
	int section;

	if (!cv->pci || !dev_is_pci(dev))
		return 0;
	section = accmem_enter(cv->carveouts);
	if (section < 0)
		return section;
	possible = accmem_p2pdma_is_possible(cv->pci, dev);
	accmem_exit(section);
	return possible ? 0 : -EOPNOTSUPP;
}

static int map_attach(struct dma_buf *dma_buf,
		      struct dma_buf_attachment *attach)
{
	struct accmem_export *export = dma_buf->priv;

	if (READ_ONCE(export->error))
		return READ_ONCE(export->error);
	if (export->flags & ACCMEM_EXPORT_REVOCABLE_ONLY &&
	    !dma_buf_attach_revocable(attach))
		return -EOPNOTSUPP;
	if (!attach->dev->dma_mask)
		return -EOPNOTSUPP;
	if (!map_is_within_reach(export, attach->dev))
		return -EOPNOTSUPP;
	return map_check_caches(export, attach->dev) ?:
		       map_check_peer(export->bo->cv, attach->dev);
}

/* The memory never moves, so that a pin has nothing to do. */
static int map_pin(struct dma_buf_attachment *attach)
{
	const struct accmem_export *export = attach->dmabuf->priv;

	return export->error;
}

static void map_unpin(struct dma_buf_attachment *attach)
{
}

static u64 map_entry_max(const struct accmem_export *export, struct device *dev)
{
	u64 max = min_t(u64, dma_get_max_seg_size(dev),
			dma_max_mapping_size(dev));

	if (!map_has_pages(export))
		return MAP_ENTRY;
	return max_t(u64, round_down(min(max, MAP_ENTRY), PAGE_SIZE),
		     PAGE_SIZE);
}

static unsigned int map_count_entries(struct accmem_export *export, u64 max)
{
	unsigned int nr = 0;
	phys_addr_t at;
	u64 done = 0;

	while (map_next(export, &done, max, &at))
		nr++;
	return nr;
}

static void map_fill_pages(struct accmem_export *export, struct sg_table *sgt,
			   u64 max)
{
	struct scatterlist *sg;
	phys_addr_t at = 0;
	u64 size, done = 0;
	unsigned int i;

	for_each_sgtable_sg(sgt, sg, i) {
		size = map_next(export, &done, max, &at);
		sg_set_page(sg, pfn_to_page(PHYS_PFN(at)), size, 0);
	}
}

/*
 * Memory without page structures is one run: it gets one DMA address. Such a mapping
 * never synchronises caches; the attribute allows several at a time.
 */
static int map_fill_addresses(struct accmem_export *export,
			      struct mapping *mapping, u64 max)
{
	struct scatterlist *sg;
	phys_addr_t at = 0;
	u64 size, done = 0;
	unsigned int i;

	map_next(export, &done, U64_MAX, &at);
	mapping->address = dma_map_resource(mapping->attach->dev, at,
					    export->size, mapping->dir,
					    DMA_ATTR_SKIP_CPU_SYNC);
	if (dma_mapping_error(mapping->attach->dev, mapping->address))
		return -EIO;
	done = 0;
	for_each_sgtable_sg(&mapping->sgt, sg, i) {
		size = min(max, export->size - done);
		sg_set_page(sg, NULL, size, 0);
		sg_dma_address(sg) = mapping->address + done;
		sg_dma_len(sg) = size;
		done += size;
	}
	return 0;
}

/*
 * Several importers may map the memory at a time. The DMA API supports this only with
 * DMA_ATTR_SKIP_CPU_SYNC, so that separate calls synchronise the CPU's caches.
 */
static int map_pages(struct mapping *mapping)
{
	struct device *dev = mapping->attach->dev;
	int err = dma_map_sgtable(dev, &mapping->sgt, mapping->dir,
				  DMA_ATTR_SKIP_CPU_SYNC);

	if (!err)
		dma_sync_sgtable_for_device(dev, &mapping->sgt, mapping->dir);
	return err;
}

static void map_unmap_pages(struct mapping *mapping)
{
	struct device *dev = mapping->attach->dev;

	dma_sync_sgtable_for_cpu(dev, &mapping->sgt, mapping->dir);
	dma_unmap_sgtable(dev, &mapping->sgt, mapping->dir,
			  DMA_ATTR_SKIP_CPU_SYNC);
}

static int map_fill_table(struct accmem_export *export, struct mapping *mapping)
{
	struct device *dev = mapping->attach->dev;
	u64 max = map_entry_max(export, dev);
	int err;

	err = sg_alloc_table(&mapping->sgt, map_count_entries(export, max),
			     GFP_KERNEL);
	if (err)
		return err;
	if (map_has_pages(export)) {
		map_fill_pages(export, &mapping->sgt, max);
		err = map_pages(mapping);
	} else {
		err = map_fill_addresses(export, mapping, max);
	}
	if (err)
		sg_free_table(&mapping->sgt);
	return err;
}

static struct mapping *map_create(struct dma_buf_attachment *attach,
				  enum dma_data_direction dir)
{
	struct accmem_export *export = attach->dmabuf->priv;
	struct mapping *mapping = kzalloc(sizeof(*mapping), GFP_KERNEL);
	int err;

	if (!mapping)
		return ERR_PTR(-ENOMEM);
	mapping->attach = attach;
	mapping->dir = dir;
	err = map_fill_table(export, mapping);
	if (err) {
		kfree(mapping);
		return ERR_PTR(err);
	}
	return mapping;
}

static struct sg_table *map_map(struct dma_buf_attachment *attach,
				enum dma_data_direction dir)
{
	struct accmem_export *export = attach->dmabuf->priv;
	struct mapping *mapping;

	dma_resv_assert_held(&export->resv);
	if (export->error)
		return ERR_PTR(export->error);
	if (export->flags & ACCMEM_EXPORT_READ_ONLY && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	mapping = map_create(attach, dir);
	if (IS_ERR(mapping))
		return ERR_CAST(mapping);
	if (dir != DMA_TO_DEVICE)
		map_touch(export);
	list_add(&mapping->link, &export->mappings);
	atomic_inc(&export->nr_mapped);
	return &mapping->sgt;
}

/* Count one user less, and wake a revocation that waits for the last. */
static void map_uncount(struct accmem_export *export)
{
	if (atomic_dec_and_test(&export->nr_mapped) && export->error)
		wake_up_all(&export->exports->unmapped);
}

static void map_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
	struct accmem_export *export = attach->dmabuf->priv;
	struct mapping *mapping = container_of(sgt, struct mapping, sgt);

	dma_resv_assert_held(&export->resv);
	list_del(&mapping->link);
	if (map_has_pages(export))
		map_unmap_pages(mapping);
	else
		dma_unmap_resource(attach->dev, mapping->address, export->size,
				   mapping->dir, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(mapping);
	map_uncount(export);
}

/* Hand the memory over from devices to the CPU, or back. */
static void map_sync(struct accmem_export *export, bool to_cpu)
{
	struct mapping *mapping;

	dma_resv_lock(&export->resv, NULL);
	list_for_each_entry(mapping, &export->mappings, link) {
		if (to_cpu)
			dma_sync_sgtable_for_cpu(mapping->attach->dev,
						 &mapping->sgt, mapping->dir);
		else
			dma_sync_sgtable_for_device(mapping->attach->dev,
						    &mapping->sgt,
						    mapping->dir);
	}
	dma_resv_unlock(&export->resv);
}

static int map_cpu_access(struct dma_buf *dma_buf, bool begin)
{
	struct accmem_export *export = dma_buf->priv;
	int err = READ_ONCE(export->error);

	if (!err && map_has_pages(export))
		map_sync(export, begin);
	return err;
}

static int map_begin_cpu_access(struct dma_buf *dma_buf,
				enum dma_data_direction dir)
{
	return map_cpu_access(dma_buf, true);
}

static int map_end_cpu_access(struct dma_buf *dma_buf,
			      enum dma_data_direction dir)
{
	return map_cpu_access(dma_buf, false);
}

/* The file of the VMA may be that of an importer, which was opened to write. */
static int map_check_write(const struct accmem_export *export,
			   struct vm_area_struct *vma)
{
	if (!(export->flags & ACCMEM_EXPORT_READ_ONLY))
		return 0;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	accmem_vm_flags_mod(vma, 0, VM_MAYWRITE);
	return 0;
}

static int map_mmap(struct dma_buf *dma_buf, struct vm_area_struct *vma)
{
	struct accmem_export *export = dma_buf->priv;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	u64 size = vma->vm_end - vma->vm_start;
	int err;

	err = READ_ONCE(export->error) ?: accmem_vma_check(vma);
	if (err)
		return err;
	if (offset >= export->size || size > export->size - offset)
		return -EINVAL;
	err = map_check_write(export, vma);
	if (err)
		return err;
	accmem_bo_get(export->bo);
	err = accmem_vma_set_up(vma, export->bo, export->offset + offset);
	if (err)
		accmem_bo_put(export->bo);
	return err;
}

static struct page **map_list_pages(struct accmem_export *export)
{
	u64 done = 0, at_page = 0, size, i;
	struct page **pages;
	phys_addr_t at;

	pages = kvmalloc_array(export->size >> PAGE_SHIFT, sizeof(*pages),
			       GFP_KERNEL);
	if (!pages)
		return NULL;
	while ((size = map_next(export, &done, U64_MAX, &at))) {
		for (i = 0; i < size >> PAGE_SHIFT; i++)
			pages[at_page++] = pfn_to_page(PHYS_PFN(at) + i);
	}
	return pages;
}

static int map_vmap_pages(struct accmem_export *export, struct iosys_map *map)
{
	struct page **pages = map_list_pages(export);
	pgprot_t prot;
	void *address;

	if (!pages)
		return -ENOMEM;
	prot = accmem_cache_mode_pgprot(export->bo->cache_mode, PAGE_KERNEL);
	address = vmap(pages, export->size >> PAGE_SHIFT, VM_MAP, prot);
	kvfree(pages);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, address);
	return 0;
}

/*
 * Report the memory as system memory. Accesses to it have no side effects, and some
 * importers (videobuf2) treat each dma-buf as system memory: if the address were marked as
 * I/O memory, their call of dma_buf_vunmap() would hit a BUG_ON().
 */
static int map_vmap_frames(struct accmem_export *export, struct iosys_map *map)
{
	struct accmem_bo *bo = export->bo;
	void __iomem *address;
	phys_addr_t at = 0;
	u64 done = 0;

	map_next(export, &done, U64_MAX, &at);
	address = accmem_cache_mode_ioremap(bo->cache_mode, at, export->size);
	if (!address)
		return -ENOMEM;
	iosys_map_set_vaddr(map, (void __force *)address);
	return 0;
}

static int map_vmap(struct dma_buf *dma_buf, struct iosys_map *map)
{
	struct accmem_export *export = dma_buf->priv;
	int err;

	atomic_inc(&export->nr_mapped);
	/* Linux 6.1 calls without the dma_resv: a revocation sees the count, or is seen. */
	smp_mb__after_atomic();
	err = READ_ONCE(export->error);
	if (!err)
		err = map_has_pages(export) ? map_vmap_pages(export, map) :
					      map_vmap_frames(export, map);
	if (err)
		map_uncount(export);
	else
		map_touch(export);
	return err;
}

static void map_vunmap(struct dma_buf *dma_buf, struct iosys_map *map)
{
	struct accmem_export *export = dma_buf->priv;

	if (map_has_pages(export))
		vunmap(map->vaddr);
	else
		iounmap((void __force __iomem *)map->vaddr);
	map_uncount(export);
}

/* With pin, the kernel holds the dma_resv for map and unmap on all versions. */
static const struct dma_buf_ops map_ops = {
	.attach = map_attach,
	.pin = map_pin,
	.unpin = map_unpin,
	.map_dma_buf = map_map,
	.unmap_dma_buf = map_unmap,
	.release = accmem_export_release,
	.begin_cpu_access = map_begin_cpu_access,
	.end_cpu_access = map_end_cpu_access,
	.mmap = map_mmap,
	.vmap = map_vmap,
	.vunmap = map_vunmap,
};

/*
 * Without vmap, dma_buf_vmap() returns -EINVAL; an error that vmap returns would cause a
 * warning. For ACCMEM_EXPORT_READ_ONLY: the kernel does not tell the exporter whether the
 * importer will write, and a write to a read-only mapping would cause an oops. And for
 * uncached memory on arm64, where unaligned accesses fault.
 */
static const struct dma_buf_ops map_ops_without_vmap = {
	.attach = map_attach,
	.pin = map_pin,
	.unpin = map_unpin,
	.map_dma_buf = map_map,
	.unmap_dma_buf = map_unmap,
	.release = accmem_export_release,
	.begin_cpu_access = map_begin_cpu_access,
	.end_cpu_access = map_end_cpu_access,
	.mmap = map_mmap,
};

/**
 * accmem_export_map_ops() - choose the operations of a dma-buf
 * @export: the export
 *
 * Context: Any context.
 * Return: the operations.
 */
const struct dma_buf_ops *
accmem_export_map_ops(const struct accmem_export *export)
{
	bool aligned_only = IS_ENABLED(CONFIG_ARM64) &&
			    export->bo->cache_mode == ACCMEM_CACHE_UC;

	return export->flags & ACCMEM_EXPORT_READ_ONLY || aligned_only ?
		       &map_ops_without_vmap :
		       &map_ops;
}

/**
 * accmem_export_of() - get the export of a dma-buf
 * @dma_buf: a dma-buf of any driver
 *
 * Context: Any context.
 * Return: the export, or NULL if the dma-buf is of another driver.
 */
struct accmem_export *accmem_export_of(const struct dma_buf *dma_buf)
{
	return dma_buf->ops == &map_ops ||
			       dma_buf->ops == &map_ops_without_vmap ?
		       dma_buf->priv :
		       NULL;
}
