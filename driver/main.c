// SPDX-License-Identifier: GPL-2.0
/*
 * Module: parse the parameters and create the devices that they name.
 *
 * Each string of emulated= and phys= describes one device; a plus sign separates its
 * carveouts. Every device also gets a carveout of host memory, unless host=0. Without
 * emulated= and phys= the module creates one emulated device of 1 GiB.
 *
 * All devices are created before the first is registered. If one of them fails, the
 * load fails and all are removed.
 *
 * This file owns the table of devices and the workqueue.
 *
 * Locking: none; the table is written only by module init and exit.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/init.h>
#include <linux/mm.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/nodemask.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "backing/backing.h"
#include "core/account.h"
#include "core/carveout.h"
#include "debugfs.h"
#include "device.h"
#include "memory/mapping.h"
#include "stream/fence.h"
#include "types/device_types.h"

static char *emulated[ACCMEM_MAX_DEVICES];
static int nr_emulated;
module_param_array(emulated, charp, &nr_emulated, 0444);
MODULE_PARM_DESC(emulated,
		 "devices of ordinary memory, as SIZE[/CLASS][/nodeN][+...]");

static char *phys[ACCMEM_MAX_DEVICES];
static int nr_phys;
module_param_hw_array(phys, charp, iomem, &nr_phys, 0444);
MODULE_PARM_DESC(phys,
		 "ranges, as SIZE@ADDRESS[:nopages][/CLASS][/nodeN][+...]");

static char *host;
module_param(host, charp, 0444);
MODULE_PARM_DESC(host,
		 "most host memory a device (0: none; default half of RAM)");

#define HOST_DEFAULT_MAX (64ull * SZ_1G)

static struct accmem_device *devices[ACCMEM_MAX_DEVICES];
static unsigned int nr_devices;

/*
 * Parse a number with an optional suffix K, M, G or T, up to the character @stop.
 * Unlike memparse(), reject any other text and a number that overflows.
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

static bool parse_node(const char *text, int *node)
{
	unsigned int number;

	if (!isdigit(*text) || kstrtouint(text, 10, &number) ||
	    number >= MAX_NUMNODES || !node_online(number))
		return false;
	*node = number;
	return true;
}

/* Parse the options of a carveout, separated by slashes. Each may occur once. */
static bool parse_options(char *options, struct accmem_carveout *cv)
{
	char *option;

	while ((option = strsep(&options, "/"))) {
		if (!cv->bandwidth && !strcmp(option, "high"))
			cv->bandwidth = ACCMEM_BANDWIDTH_HIGH;
		else if (!cv->bandwidth && !strcmp(option, "low"))
			cv->bandwidth = ACCMEM_BANDWIDTH_LOW;
		else if (cv->node != NUMA_NO_NODE ||
			 strncmp(option, "node", 4) ||
			 !parse_node(option + 4, &cv->node))
			return false;
	}
	return true;
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

/* Return the device addresses that remain behind the first @nr carveouts. */
static u64 room_behind(const struct accmem_carveouts *carveouts,
		       unsigned int nr)
{
	u64 room = ACCMEM_MAX_SPAN;
	unsigned int i;

	for (i = 0; i < nr; i++)
		room -= round_up(carveouts->cvs[i].capacity,
				 ACCMEM_SPAN_ALIGNMENT);
	return room;
}

static bool fits_device(const struct accmem_carveout *cv, u64 size)
{
	return size <= room_behind(cv->carveouts, cv->index);
}

static int make_emulated(struct accmem_carveout *cv, const char *text)
{
	const char *rest;
	u64 size;

	if (!parse_size(text, '\0', &rest, &size) || !size ||
	    !IS_ALIGNED(size, ACCMEM_GRANULE) || !fits_device(cv, size)) {
		pr_err("emulated=%s: not a size in multiples of 4096, up to 16T a device\n",
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
	if (!err && !fits_device(cv, size))
		err = -EINVAL;
	if (err) {
		pr_err("phys=%s: not SIZE@ADDRESS[:nopages], up to 16T a device\n",
		       text);
		return err;
	}
	err = accmem_phys_create(cv, start, size, pages);
	if (err)
		pr_err("phys=%s: error %d\n", text, err);
	return err;
}

typedef int (*make_fn)(struct accmem_carveout *cv, const char *text);

static int make_carveout(struct accmem_carveout *cv, make_fn make, char *text)
{
	char *options = strchr(text, '/');

	if (options) {
		*options++ = '\0';
		if (!parse_options(options, cv)) {
			pr_err("%s: after it, not /high or /low, or not /nodeN of a node that is online\n",
			       text);
			return -EINVAL;
		}
	}
	return make(cv, text);
}

/*
 * Create the carveouts of a device. Writes to @text: strsep() cuts it at each plus
 * sign.
 */
static int make_carveouts(struct accmem_device *dev, make_fn make, char *text)
{
	struct accmem_carveout *cv;
	int err;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		err = make_carveout(cv, make, strsep(&text, "+"));
		if (err)
			return err;
	}
	return 0;
}

static int parse_host(u64 *size)
{
	const char *rest;

	if (!host) {
		*size = min((u64)totalram_pages() / 2 << PAGE_SHIFT,
			    HOST_DEFAULT_MAX);
		return 0;
	}
	if (parse_size(host, '\0', &rest, size) &&
	    IS_ALIGNED(*size, ACCMEM_GRANULE) && *size <= ACCMEM_MAX_SPAN)
		return 0;
	pr_err("host=%s: not a size in multiples of 4096, up to 16T\n", host);
	return -EINVAL;
}

/* Create the carveout of host memory, limited to the device addresses that remain. */
static int make_host(struct accmem_device *dev)
{
	struct accmem_carveout *cv;
	u64 size;
	int err = parse_host(&size);

	if (err)
		return err;
	size = min(size,
		   room_behind(dev->carveouts, dev->carveouts->nr_device));
	if (!size)
		return 0;
	cv = accmem_device_add_host(dev);
	err = accmem_emulated_create(cv, size);
	/* Host memory is populated when it is allocated, not at the first touch. */
	cv->features &= ~ACCMEM_FEATURE_FIRST_TOUCH;
	return err;
}

static unsigned int count_carveouts(const char *text)
{
	unsigned int nr = 1;

	while ((text = strchr(text, '+'))) {
		text++;
		nr++;
	}
	return nr;
}

static struct accmem_device *make_device(make_fn make, const char *text)
{
	unsigned int nr = count_carveouts(text);
	struct accmem_device *dev;
	char *copy;
	int err;

	if (nr_devices == ACCMEM_MAX_DEVICES) {
		pr_err("at most %d devices\n", ACCMEM_MAX_DEVICES);
		return ERR_PTR(-EINVAL);
	}
	if (nr > ACCMEM_MAX_CARVEOUTS) {
		pr_err("%s: at most %u carveouts\n", text,
		       ACCMEM_MAX_CARVEOUTS);
		return ERR_PTR(-EINVAL);
	}
	copy = kstrdup(text, GFP_KERNEL);
	dev = accmem_device_alloc(nr_devices, nr);
	err = dev && copy ? make_carveouts(dev, make, copy) : -ENOMEM;
	if (!err)
		err = make_host(dev);
	kfree(copy);
	if (err && dev)
		accmem_device_unregister(dev);
	return err ? ERR_PTR(err) : dev;
}

static int add_device(make_fn make, const char *text)
{
	struct accmem_device *dev = make_device(make, text);

	if (IS_ERR(dev))
		return PTR_ERR(dev);
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

/*
 * Create all devices before the first is registered: most loads that fail do so here,
 * before user space sees a device.
 */
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
	/* Wait for callbacks of fences that are running: these may queue work. */
	synchronize_rcu();
	accmem_stream_exit();
	remove_devices();
	accmem_debugfs_exit();
	accmem_device_exit();
	accmem_mapping_exit();
	destroy_workqueue(accmem_wq);
	/*
	 * Wait for the RCU callbacks of accounts, contexts and fences. Those of fences
	 * drop the last references to users.
	 */
	rcu_barrier();
	accmem_users_exit();
}

module_init(accmem_init);
module_exit(accmem_exit);

MODULE_DESCRIPTION("Accelerator memory manager");
MODULE_VERSION(ACCMEM_VERSION);
MODULE_LICENSE("GPL");
