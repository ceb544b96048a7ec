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
#include <linux/slab.h>
#include <linux/string.h>

#include "backing/backing.h"
#include "core/account.h"
#include "core/carveout.h"
#include "core/size_param.h"
#include "debugfs.h"
#include "device.h"
#include "memory/mapping.h"
#include "memory/remember.h"
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

/**
 * struct description - the description of a device in a parameter
 * @parameter: name of the parameter
 * @text: the element of the parameter
 * @make: creates a carveout; see make_emulated() and make_phys()
 */
struct description {
	const char *parameter;
	const char *text;
	int (*make)(struct accmem_carveout *cv, const char *word,
		    const struct description *from);
};

#define OPTION_RULE \
	"not an option: /high or /low, and /nodeN of a node that is online, each once"
#define SIZE_RULE \
	"not a size in multiples of 4096, up to 16T a device: " ACCMEM_SIZE_RULE
#define PHYS_RULE                                                              \
	"not SIZE@ADDRESS or SIZE@ADDRESS:nopages, up to 16T a device, where " \
	"both are " ACCMEM_SIZE_RULE

/* Say why @word of a description is refused. */
static int refuse(const struct description *from, const char *word,
		  const char *why)
{
	pr_err("%s=%s: '%s' is %s\n", from->parameter, from->text, word, why);
	return -EINVAL;
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

static bool parse_option(const char *option, struct accmem_carveout *cv)
{
	if (!strcmp(option, "high") && !cv->bandwidth)
		cv->bandwidth = ACCMEM_BANDWIDTH_HIGH;
	else if (!strcmp(option, "low") && !cv->bandwidth)
		cv->bandwidth = ACCMEM_BANDWIDTH_LOW;
	else
		return cv->node == NUMA_NO_NODE &&
		       !strncmp(option, "node", 4) &&
		       parse_node(option + 4, &cv->node);
	return true;
}

/* Parse the options of a carveout, separated by slashes. Each may occur once. */
static int parse_options(char *options, struct accmem_carveout *cv,
			 const struct description *from)
{
	char *option;

	while ((option = strsep(&options, "/"))) {
		if (!parse_option(option, cv))
			return refuse(from, option, OPTION_RULE);
	}
	return 0;
}

static bool parse_phys(const char *text, u64 *start, u64 *size, bool *pages)
{
	const char *rest, *colon = strchr(text, ':');

	*pages = !colon;
	return (!colon || !strcmp(colon, ":nopages")) &&
	       accmem_parse_size(text, '@', &rest, size) &&
	       accmem_parse_size(rest + 1, colon ? ':' : '\0', &rest, start);
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

static int make_emulated(struct accmem_carveout *cv, const char *word,
			 const struct description *from)
{
	const char *rest;
	u64 size;

	if (!accmem_parse_size(word, '\0', &rest, &size) || !size ||
	    !IS_ALIGNED(size, ACCMEM_GRANULE) || !fits_device(cv, size))
		return refuse(from, word, SIZE_RULE);
	return accmem_emulated_create(cv, size);
}

static int make_phys(struct accmem_carveout *cv, const char *word,
		     const struct description *from)
{
	const char *why = NULL;
	u64 start, size;
	bool pages;
	int err;

	if (!parse_phys(word, &start, &size, &pages) || !fits_device(cv, size))
		return refuse(from, word, PHYS_RULE);
	err = accmem_phys_create(cv, start, size, pages, &why);
	if (why)
		refuse(from, word, why);
	return err;
}

static int make_carveout(struct accmem_carveout *cv, char *text,
			 const struct description *from)
{
	char *word = strsep(&text, "/");
	int err = text ? parse_options(text, cv, from) : 0;

	return err ?: from->make(cv, word, from);
}

/*
 * Create the carveouts of a device. Writes to @text: strsep() cuts it at each plus
 * sign.
 */
static int make_carveouts(struct accmem_device *dev, char *text,
			  const struct description *from)
{
	struct accmem_carveout *cv;
	int err;

	for (cv = dev->carveouts->cvs; cv < dev->carveouts->end; cv++) {
		err = make_carveout(cv, strsep(&text, "+"), from);
		if (err)
			return err;
	}
	return 0;
}

static int parse_host(u64 *size)
{
	const struct description from = { .parameter = "host", .text = host };
	const char *rest;

	if (!host) {
		*size = min((u64)totalram_pages() / 2 << PAGE_SHIFT,
			    HOST_DEFAULT_MAX);
		return 0;
	}
	if (accmem_parse_size(host, '\0', &rest, size) &&
	    IS_ALIGNED(*size, ACCMEM_GRANULE) && *size <= ACCMEM_MAX_SPAN)
		return 0;
	return refuse(&from, host, SIZE_RULE);
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

static int make_device(const struct description *from,
		       struct accmem_device *dev)
{
	char *copy = kstrdup(from->text, GFP_KERNEL);
	int err = copy ? make_carveouts(dev, copy, from) : -ENOMEM;

	kfree(copy);
	return err ?: make_host(dev);
}

static int add_device(const struct description *from)
{
	unsigned int nr = count_carveouts(from->text);
	struct accmem_device *dev;
	int err;

	if (nr_devices == ACCMEM_MAX_DEVICES || nr > ACCMEM_MAX_CARVEOUTS) {
		pr_err("%s=%s: at most %u devices, and %u carveouts a device\n",
		       from->parameter, from->text, ACCMEM_MAX_DEVICES,
		       ACCMEM_MAX_CARVEOUTS);
		return -EINVAL;
	}
	dev = accmem_device_alloc(nr_devices, nr);
	if (!dev)
		return -ENOMEM;
	err = make_device(from, dev);
	if (err) {
		if (err == -ENOMEM)
			pr_err("%s=%s: the kernel has no memory for it\n",
			       from->parameter, from->text);
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

/* Add the devices of a parameter. */
static int add_all(struct description *from, char *const *texts, int nr)
{
	int i, err = 0;

	for (i = 0; i < nr && !err; i++) {
		from->text = texts[i];
		err = add_device(from);
	}
	return err;
}

static int make_devices(void)
{
	struct description of_emulated = { "emulated", "1G", make_emulated };
	struct description of_phys = { "phys", NULL, make_phys };

	if (!nr_emulated && !nr_phys)
		return add_device(&of_emulated);
	return add_all(&of_emulated, emulated, nr_emulated) ?:
		       add_all(&of_phys, phys, nr_phys);
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
	err = accmem_remember_init();
	if (err)
		goto err_wq;
	err = accmem_mapping_init();
	if (err)
		goto err_remember;
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
err_remember:
	accmem_remember_exit();
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
	accmem_remember_exit();
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
