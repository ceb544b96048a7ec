// SPDX-License-Identifier: GPL-2.0
/*
 * Phys backing: a physical range that was reserved at boot.
 *
 * Here the range is checked and claimed. The operations are in phys_pages.c, with page
 * structures, or in phys_frames.c, without. At first all of the range is dirty, since
 * its contents are unknown.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "backing/backing.h"
#include "compat/compat.h"
#include "core/carveout.h"
#include "internal.h"

/* Check the range and claim it. It is mapped only after both have succeeded. */
static int phys_claim(struct accmem_carveout *cv)
{
	struct accmem_phys *phys = accmem_phys_of(cv);
	phys_addr_t start = phys->start, last;

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
	phys->resource = request_mem_region(start, cv->capacity, "accmem");
	if (!phys->resource) {
		pr_err("%pa..%pa is in use, or beyond what the machine can address\n",
		       &start, &last);
		return -EBUSY;
	}
	return 0;
}

/**
 * accmem_phys_create() - initialise a carveout of a physical range
 * @cv: the carveout, zeroed; the caller destroys it, also after a failure
 * @start: physical address, a multiple of 2 MiB
 * @size: bytes, a multiple of 2 MiB
 * @pages: true to make page structures for the range
 *
 * The range must not overlap System RAM, and no other driver may have claimed it. The
 * function cannot detect memory that the firmware uses.
 *
 * Context: Process context. May sleep.
 * Return: 0, -EINVAL, -EBUSY, -ENOMEM.
 */
int accmem_phys_create(struct accmem_carveout *cv, phys_addr_t start, u64 size,
		       bool pages)
{
	struct accmem_phys *phys = kzalloc(sizeof(*phys), GFP_KERNEL);
	int err;

	if (!phys)
		return -ENOMEM;
	phys->start = start;
	cv->priv = phys;
	cv->ops = &accmem_phys_frames_ops;
	cv->backing = ACCMEM_BACKING_PHYS;
	cv->translation = ACCMEM_TRANSLATION_IDENTITY;
	cv->features = ACCMEM_FEATURE_ACCESS;
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
	return pages ? accmem_phys_make_pages(cv) : 0;
}
