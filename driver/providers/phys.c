// SPDX-License-Identifier: GPL-2.0
/*
 * Physical ranges: memory that was reserved at boot.
 *
 * The description of a carveout is its range: phys=1G@0x100000000, or with :nopages behind
 * it for a range without page structures.
 */
#include <linux/accmem_provider.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "core/size_param.h"
#include "internal.h"

#define PHYS_RULE                                                              \
	"not SIZE@ADDRESS or SIZE@ADDRESS:nopages, up to 16T a device, where " \
	"both are "

static bool phys_parse(const char *word, struct accmem_range *range)
{
	const char *rest, *colon = strchr(word, ':');
	u64 start;

	range->flags = ACCMEM_RANGE_PROBE | (colon ? 0 : ACCMEM_RANGE_PAGES);
	if ((colon && strcmp(colon, ":nopages")) ||
	    !accmem_parse_size(word, '@', &rest, &range->size) ||
	    !accmem_parse_size(rest + 1, colon ? ':' : '\0', &rest, &start))
		return false;
	range->start = start;
	return true;
}

struct accmem_description accmem_phys = {
	.driver.driver.name = "accmem-phys",
	.parameter = "phys",
	.rule = PHYS_RULE ACCMEM_SIZE_RULE,
	.parse = phys_parse,
};
