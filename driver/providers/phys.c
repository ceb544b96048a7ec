// SPDX-License-Identifier: GPL-2.0
/*
 * Physical ranges: memory that was reserved at boot.
 *
 * The description of a carveout is its range: phys=1G@0x100000000, or with :nopages behind
 * it for a range without page structures.
 *
 * Reserved memory keeps its contents during suspend to RAM. A hibernation image does not
 * contain reserved memory, so that the contents may be lost when the system continues from
 * the image: the memory is revoked before the image is made.
 */
#include <linux/accmem_provider.h>
#include <linux/kernel.h>
#include <linux/pm.h>
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

/* Called before the image is made. Fails while another device maps the memory. */
static int phys_freeze(struct device *dev)
{
	struct accmem_provider *provider = dev_get_drvdata(dev);

	if (!accmem_provider_revoke(provider, ACCMEM_REVOKE_RESET))
		return 0;
	accmem_provider_resume(provider, true);
	return -EBUSY;
}

/* Called after the image was made, or could not be made. The contents are still there. */
static int phys_thaw(struct device *dev)
{
	accmem_provider_resume(dev_get_drvdata(dev), true);
	return 0;
}

/* Called when the system continues from the image. The memory may have lost its power. */
static int phys_restore(struct device *dev)
{
	accmem_provider_resume(dev_get_drvdata(dev), false);
	return 0;
}

const struct dev_pm_ops accmem_phys_pm_ops = {
	.freeze = pm_sleep_ptr(phys_freeze),
	.thaw = pm_sleep_ptr(phys_thaw),
	.restore = pm_sleep_ptr(phys_restore),
};

struct accmem_description accmem_phys = {
	.driver.driver.name = "accmem-phys",
	.driver.driver.pm = pm_sleep_ptr(&accmem_phys_pm_ops),
	.parameter = "phys",
	.rule = PHYS_RULE ACCMEM_SIZE_RULE,
	.parse = phys_parse,
};
