// SPDX-License-Identifier: GPL-2.0
/*
 * Emulated devices: ordinary memory stands for the memory of a device.
 *
 * The description of a carveout is its size: emulated=1G.
 */
#include <linux/accmem_provider.h>
#include <linux/kernel.h>
#include <linux/sizes.h>

#include "core/size_param.h"
#include "internal.h"

static bool emulated_parse(const char *word, struct accmem_range *range)
{
	const char *rest;

	range->flags = ACCMEM_RANGE_EMULATED;
	return accmem_parse_size(word, '\0', &rest, &range->size) &&
	       range->size && IS_ALIGNED(range->size, SZ_4K);
}

struct accmem_description accmem_emulated = {
	.driver.driver.name = "accmem-emulated",
	.parameter = "emulated",
	.rule = ACCMEM_CARVEOUT_SIZE_RULE,
	.parse = emulated_parse,
};
