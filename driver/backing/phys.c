// SPDX-License-Identifier: GPL-2.0
/*
 * Phys backing: a physical range, reserved at boot or a BAR.
 *
 * Here the range is checked and claimed. The operations are in phys_pages.c, with page
 * structures, or in phys_frames.c, without. At first all of the range is dirty, since
 * its contents are unknown.
 *
 * If the provider has not claimed the range, the resource tree must have all of it as
 * reserved, or no part of it if the firmware describes the range. The probe writes to the
 * range and reads back: a reservation on the command line of the kernel may name addresses
 * without memory.
 */
#include <linux/accmem_provider.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "backing/backing.h"
#include "compat/compat.h"
#include "core/cache_mode.h"
#include "core/carveout.h"
#include "internal.h"
#include "memory/remember.h"
#include "memory/retire.h"

#define PROBE_AT_ONCE ((u64)SZ_16M)

/*
 * Move the end of the part that is known to be reserved, if @res continues it. Reserved
 * memory of arm64 has no descriptor, and no flag but that it is memory.
 */
static int phys_extend(struct resource *res, void *arg)
{
	resource_size_t *end = arg;

	if (res->desc == IORES_DESC_NONE && res->flags != IORESOURCE_MEM)
		return 0;
	if (res->start <= *end && res->end >= *end)
		*end = res->end + 1;
	return 0;
}

static bool phys_is_covered(phys_addr_t start, phys_addr_t last,
			    unsigned long desc)
{
	resource_size_t end = start;

	walk_iomem_res_desc(desc, IORESOURCE_MEM, start, last, &end,
			    phys_extend);
	return end - 1 == last;
}

static bool phys_is_reserved(phys_addr_t start, phys_addr_t last)
{
	return phys_is_covered(start, last, IORES_DESC_RESERVED) ||
	       phys_is_covered(start, last, IORES_DESC_SOFT_RESERVED) ||
	       (IS_ENABLED(CONFIG_ARM64) &&
		phys_is_covered(start, last, IORES_DESC_NONE));
}

/* Return true if the resource tree has no part of the range. */
static bool phys_is_absent(phys_addr_t start, u64 size)
{
	return region_intersects(start, size, IORESOURCE_MEM,
				 IORES_DESC_NONE) == REGION_DISJOINT;
}

/* Each folio is probed at its first word and at its last. */
static u64 probe_next(u64 at)
{
	return IS_ALIGNED(at, ACCMEM_FOLIO) ? at + ACCMEM_FOLIO - sizeof(u64) :
					      at + sizeof(u64);
}

/* The word at @at gets a value that no other word gets. */
static u64 probe_value(phys_addr_t at)
{
	return at ^ 0x5aa5c33c96690ff0ull;
}

/*
 * Write to the range, or compare with what was written. The mapping is uncached: a cache
 * would return what was written without memory behind it. All is written before anything
 * is compared, so that two addresses of the same memory are found. Memory that has failed
 * before is left out.
 */
static int phys_probe_part(phys_addr_t start, u64 size, bool write)
{
	void __iomem *io =
		accmem_cache_mode_ioremap(ACCMEM_CACHE_UC, start, size);
	int err = 0;
	u64 at;

	if (!io)
		return -EBUSY;
	for (at = 0; at < size && !err; at = probe_next(at)) {
		if (accmem_remember_has(start + at, sizeof(u64)))
			continue;
		if (write)
			writeq(probe_value(start + at), io + at);
		else if (readq(io + at) != probe_value(start + at))
			err = -ENXIO;
	}
	iounmap(io);
	cond_resched();
	return err;
}

static int phys_probe(phys_addr_t start, u64 size)
{
	u64 at, part;
	int pass, err;

	for (pass = 0; pass < 2; pass++) {
		for (at = 0; at < size; at += part) {
			part = min(size - at, PROBE_AT_ONCE);
			err = phys_probe_part(start + at, part, !pass);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Check a range that the provider has not claimed, and claim it. */
static int phys_claim(struct accmem_carveout *cv, u32 flags, const char **why)
{
	struct accmem_phys *phys = accmem_phys_of(cv);
	phys_addr_t start = phys->start;
	bool may_be_absent = flags & ACCMEM_RANGE_DESCRIBED;

	*why = "a range that is not all Reserved or Soft Reserved: see /proc/iomem";
	if (!phys_is_reserved(start, start + cv->capacity - 1) &&
	    !(may_be_absent && phys_is_absent(start, cv->capacity)))
		return -EINVAL;
	*why = "a range of which a part is in use: see /proc/iomem";
	phys->resource = request_mem_region(start, cv->capacity, "accmem");
	return phys->resource ? 0 : -EBUSY;
}

static int phys_probe_all(struct accmem_carveout *cv, const char **why)
{
	int err = phys_probe(accmem_phys_of(cv)->start, cv->capacity);

	if (err == -EBUSY)
		*why = "a range that is mapped already, perhaps tables of the firmware";
	else if (err)
		*why = "a range without memory, or with the same memory twice";
	return err;
}

/*
 * Check the range, and claim it unless the provider has. It is mapped only after both have
 * succeeded. *@why is the reason of an error.
 */
static int phys_check(struct accmem_carveout *cv, u32 flags, const char **why)
{
	phys_addr_t start = accmem_phys_of(cv)->start, last;
	int err = 0;

	*why = "not a multiple of 2 MiB in size and address";
	if (!cv->capacity || !IS_ALIGNED(start, ACCMEM_FOLIO) ||
	    !IS_ALIGNED(cv->capacity, ACCMEM_FOLIO))
		return -EINVAL;
	*why = "a range that wraps around";
	if (check_add_overflow(start, (phys_addr_t)(cv->capacity - 1), &last))
		return -EINVAL;
	*why = "a range that overlaps System RAM: see /proc/iomem";
	if (region_intersects(start, cv->capacity, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT)
		return -EINVAL;
	if (!(flags & ACCMEM_RANGE_CLAIMED))
		err = phys_claim(cv, flags, why);
	if (!err && flags & ACCMEM_RANGE_PROBE)
		err = phys_probe_all(cv, why);
	if (!err)
		*why = NULL;
	return err;
}

static int phys_init(struct accmem_carveout *cv, u32 flags)
{
	int err = accmem_carveout_init(cv);

	if (err)
		return err;
	cv->caps.page_sizes = ACCMEM_GRANULE | ACCMEM_FOLIO;
	if (IS_ALIGNED(accmem_phys_of(cv)->start, SZ_1G) &&
	    cv->capacity >= SZ_1G)
		cv->caps.page_sizes |= SZ_1G;
	err = accmem_carveout_track_dirty(cv);
	if (err)
		return err;
	cv->cache_modes = BIT(ACCMEM_CACHE_WC) | BIT(ACCMEM_CACHE_UC);
	if (!(flags & ACCMEM_RANGE_IO))
		cv->cache_modes |= BIT(ACCMEM_CACHE_WB);
	return flags & ACCMEM_RANGE_PAGES ? accmem_phys_make_pages(cv) : 0;
}

/**
 * accmem_phys_create() - initialise a carveout of a physical range
 * @cv: the carveout, zeroed; the caller destroys it, also after a failure
 * @range: the range; @size and @start are multiples of 2 MiB, and @flags are valid
 * @why: out: what is wrong with the range, for a message; NULL if nothing is
 *
 * Without ACCMEM_RANGE_CLAIMED, all of the range must be reserved in the resource tree and
 * no other driver may have claimed it. With ACCMEM_RANGE_DESCRIBED, the resource tree may
 * also have no part of the range. With ACCMEM_RANGE_PROBE it must be memory. The function
 * cannot detect memory that the firmware uses. Memory of the range that has failed before
 * is retired.
 *
 * Context: Process context. May sleep.
 * Return: 0, -EINVAL, -EBUSY, -ENXIO, -ENOMEM.
 */
int accmem_phys_create(struct accmem_carveout *cv,
		       const struct accmem_range *range, const char **why)
{
	struct accmem_phys *phys = kzalloc(sizeof(*phys), GFP_KERNEL);
	int err;

	if (!phys)
		return -ENOMEM;
	phys->start = range->start;
	phys->cv = cv;
	cv->priv = phys;
	cv->ops = &accmem_phys_frames_ops;
	cv->backing = ACCMEM_BACKING_PHYS;
	cv->translation = ACCMEM_TRANSLATION_IDENTITY;
	cv->features = ACCMEM_FEATURE_ACCESS;
	cv->capacity = range->size;
	err = phys_check(cv, range->flags, why) ?: phys_init(cv, range->flags);
	return err ?: accmem_retire_remembered(cv);
}
