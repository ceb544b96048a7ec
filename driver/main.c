// SPDX-License-Identifier: GPL-2.0
/*
 * The module: parameters, and the devices that they ask for.
 *
 * Owns the table of devices, and makes the workqueue. Either all the devices that
 * were asked for exist, or the load fails and nothing does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "backing.h"
#include "device.h"
#include "mapping.h"
#include "stream.h"

static char *emulated[ACCMEM_MAX_DEVICES];
static int nr_emulated;
module_param_array(emulated, charp, &nr_emulated, 0444);
MODULE_PARM_DESC(emulated,
		 "sizes of emulated devices, with K, M, G or T (default: one of 1G, if phys is not given)");

static char *phys[ACCMEM_MAX_DEVICES];
static int nr_phys;
module_param_hw_array(phys, charp, iomem, &nr_phys, 0444);
MODULE_PARM_DESC(phys,
		 "reserved physical ranges, as SIZE@ADDRESS[:nopages], one device each");

static struct accmem_device *devices[ACCMEM_MAX_DEVICES];
static unsigned int nr_devices;

/*
 * A number with an optional suffix K, M, G or T, which ends at @stop. Strict
 * where memparse() is not: nothing else around it, and no silent wrap.
 */
static bool parse_size(const char *text, char stop, const char **rest, u64 *size)
{
	static const char units[] = "KMGT";
	size_t digits = strspn(text, "0123456789abcdefABCDEFxX");
	const char *unit = units;
	char number[24];

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (kstrtou64(number, 0, size))
		return false;
	text += digits;
	if (*text && *text != stop) {
		unit = strchr(units, *text++);
		if (!unit || check_shl_overflow(*size, 10 * (unit - units + 1),
						size))
			return false;
	}
	*rest = text;
	return *text == stop;
}

static int parse_phys(const char *text, u64 *start, u64 *size, bool *pages)
{
	const char *rest, *colon = strchr(text, ':');

	*pages = !colon;
	if (colon && strcmp(colon, ":nopages"))
		return -EINVAL;
	if (!parse_size(text, '@', &rest, size) ||
	    !parse_size(rest + 1, colon ? ':' : '\0', &rest, start))
		return -EINVAL;
	return 0;
}

static int make_emulated(struct accmem_carveout *cv, const char *text)
{
	const char *rest;
	u64 size;

	if (!parse_size(text, '\0', &rest, &size) || !size ||
	    !IS_ALIGNED(size, ACCMEM_GRANULE) || size > ACCMEM_MAX_SPAN) {
		pr_err("emulated=%s: not a size in multiples of 4096, up to 16T\n",
		       text);
		return -EINVAL;
	}
	return accmem_emulated_create(cv, size);
}

static int make_phys(struct accmem_carveout *cv, const char *text)
{
	u64 start, size;
	bool pages;
	int err;

	err = parse_phys(text, &start, &size, &pages);
	if (!err && size > ACCMEM_MAX_SPAN)
		err = -EINVAL;
	if (err) {
		pr_err("phys=%s: not SIZE@ADDRESS[:nopages], up to 16T\n",
		       text);
		return err;
	}
	err = accmem_phys_create(cv, start, size, pages);
	if (err)
		pr_err("phys=%s: error %d\n", text, err);
	return err;
}

static int add_device(int (*make)(struct accmem_carveout *cv, const char *text),
		      const char *text)
{
	struct accmem_device *dev;
	int err;

	if (nr_devices == ACCMEM_MAX_DEVICES) {
		pr_err("at most %d devices\n", ACCMEM_MAX_DEVICES);
		return -EINVAL;
	}
	dev = accmem_device_alloc(nr_devices);
	if (!dev)
		return -ENOMEM;
	err = make(&dev->cv, text);
	if (err) {
		accmem_device_unregister(dev);
		return err;
	}
	devices[nr_devices++] = dev;
	return 0;
}

static void remove_devices(void)
{
	while (nr_devices)
		accmem_device_unregister(devices[--nr_devices]);
}

static int make_devices(void)
{
	int i, err = 0;

	if (!nr_emulated && !nr_phys)
		return add_device(make_emulated, "1G");
	for (i = 0; i < nr_emulated && !err; i++)
		err = add_device(make_emulated, emulated[i]);
	for (i = 0; i < nr_phys && !err; i++)
		err = add_device(make_phys, phys[i]);
	return err;
}

/* All are made before the first one is seen: most loads that fail do so here. */
static int add_devices(void)
{
	unsigned int i;
	int err;

	err = make_devices();
	for (i = 0; i < nr_devices && !err; i++)
		err = accmem_device_register(devices[i]);
	if (!err)
		accmem_device_start();
	return err;
}

static int __init accmem_init(void)
{
	int err;

	if (PAGE_SIZE != ACCMEM_GRANULE) {
		pr_err("pages of %lu bytes are not supported\n", PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	accmem_wq = alloc_workqueue("accmem", WQ_UNBOUND, 0);
	if (!accmem_wq)
		return -ENOMEM;
	err = accmem_mapping_init();
	if (err)
		goto err_wq;
	err = accmem_stream_init();
	if (err)
		goto err_mapping;
	err = accmem_device_init();
	if (err)
		goto err_stream;
	accmem_debugfs_init();
	err = add_devices();
	if (err)
		goto err_devices;
	return 0;

err_devices:
	remove_devices();
	accmem_debugfs_exit();
	accmem_device_exit();
err_stream:
	accmem_stream_exit();
err_mapping:
	accmem_mapping_exit();
err_wq:
	destroy_workqueue(accmem_wq);
	return err;
}

static void __exit accmem_exit(void)
{
	/* callbacks of fences have queued what they queue */
	synchronize_rcu();
	accmem_stream_exit();
	remove_devices();
	accmem_debugfs_exit();
	accmem_device_exit();
	accmem_mapping_exit();
	destroy_workqueue(accmem_wq);
	/* of accounts and contexts, and of fences */
	rcu_barrier();
}

module_init(accmem_init);
module_exit(accmem_exit);

MODULE_DESCRIPTION("Accelerator memory manager");
MODULE_VERSION(ACCMEM_VERSION);
MODULE_LICENSE("GPL");
