// SPDX-License-Identifier: GPL-2.0
/*
 * Described devices: a platform device for each device that a text describes.
 *
 * A description names the carveouts of one device, separated by plus signs. Behind a
 * carveout come options, each with a slash before it: 512M/high+1G/low/node1. The module
 * parameters emulated= and phys= have descriptions; root may write one to
 * /sys/bus/platform/drivers/accmem-emulated/new_device, and the name of a platform device
 * to delete_device beside it. The device can also be unbound and bound like any other.
 *
 * The probe function is a client of the provider API, and uses no other part of accmem.
 * The devices of the module parameters are published together, after all probes have
 * succeeded: a load that fails shows no device.
 *
 * Locks: described_lock guards the list of platform devices, and their publication.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/accmem_provider.h>
#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#include <linux/numa.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "compat/compat.h"
#include "internal.h"

/**
 * struct described - a platform device made from a description
 * @link: link in the list of platform devices
 * @pdev: the platform device
 * @kind: its kind
 * @is_published: a probe publishes the device
 * @err: result of the last probe
 * @text: the description
 */
struct described {
	struct list_head link;
	struct platform_device *pdev;
	const struct accmem_description *kind;
	bool is_published;
	int err;
	char text[];
};

static LIST_HEAD(devices); /* the latest first */
static bool started; /* the devices of the parameters are published */
static DEFINE_MUTEX(described_lock); /* devices, started */

#define OPTION_RULE \
	"not an option: /high or /low, and /nodeN of a node that is online, each once"

/* Say why @word of a description is refused. */
static int refuse(const struct described *d, const char *word, const char *why)
{
	pr_err("%s=%s: '%s' is %s\n", d->kind->parameter, d->text, word, why);
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

static bool parse_option(const char *option, struct accmem_range *range)
{
	if (!strcmp(option, "high") && !range->bandwidth)
		range->bandwidth = ACCMEM_BANDWIDTH_HIGH;
	else if (!strcmp(option, "low") && !range->bandwidth)
		range->bandwidth = ACCMEM_BANDWIDTH_LOW;
	else
		return range->node == NUMA_NO_NODE &&
		       !strncmp(option, "node", 4) &&
		       parse_node(option + 4, &range->node);
	return true;
}

/* Parse the options of a carveout, separated by slashes. Each may occur once. */
static int parse_options(const struct described *d, char *options,
			 struct accmem_range *range)
{
	char *option;

	while ((option = strsep(&options, "/"))) {
		if (!parse_option(option, range))
			return refuse(d, option, OPTION_RULE);
	}
	return 0;
}

/* Add the carveout that @text describes, as far as the next plus sign. */
static int describe_range(const struct described *d,
			  struct accmem_provider *provider, char *text)
{
	struct accmem_range range = { .node = NUMA_NO_NODE };
	char *word = strsep(&text, "/");
	int err = text ? parse_options(d, text, &range) : 0;

	if (err)
		return err;
	if (!d->kind->parse(word, &range))
		return refuse(d, word, d->kind->rule);
	err = accmem_provider_add_range(provider, &range);
	return err == -E2BIG ? refuse(d, word, d->kind->rule) : err;
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

static int refuse_number(const struct described *d)
{
	pr_err("%s=%s: at most %d devices, and %d carveouts a device\n",
	       d->kind->parameter, d->text, ACCMEM_MAX_PROVIDERS,
	       ACCMEM_MAX_RANGES);
	return -EINVAL;
}

static int describe_ranges(const struct described *d,
			   struct accmem_provider *provider)
{
	char *copy, *rest;
	int err;

	if (count_carveouts(d->text) > ACCMEM_MAX_RANGES)
		return refuse_number(d);
	copy = kstrdup(d->text, GFP_KERNEL);
	rest = copy;
	err = copy ? 0 : -ENOMEM;

	while (!err && rest)
		err = describe_range(d, provider, strsep(&rest, "+"));
	kfree(copy);
	return err;
}

static struct described *described_of(struct platform_device *pdev)
{
	return *(struct described **)dev_get_platdata(&pdev->dev);
}

static int described_probe(struct platform_device *pdev)
{
	struct accmem_provider *provider;
	struct described *d;

	/* Not for a device that driver_override names. */
	if (strcmp(pdev->name, pdev->dev.driver->name))
		return -ENODEV;
	d = described_of(pdev);
	provider = accmem_provider_create(&pdev->dev, NULL, NULL);
	if (IS_ERR(provider)) {
		d->err = PTR_ERR(provider) == -ENOSPC ? refuse_number(d) :
							PTR_ERR(provider);
		return d->err;
	}
	d->err = describe_ranges(d, provider);
	if (!d->err && d->is_published)
		d->err = accmem_provider_publish(provider);
	if (d->err) {
		accmem_provider_unregister(provider);
		return d->err;
	}
	platform_set_drvdata(pdev, provider);
	return 0;
}

static void described_remove(struct platform_device *pdev)
{
	accmem_provider_unregister(platform_get_drvdata(pdev));
}

ACCMEM_PLATFORM_REMOVE(described_remove)

static void described_free(struct described *d)
{
	if (!IS_ERR_OR_NULL(d->pdev))
		platform_device_unregister(d->pdev);
	kfree(d);
}

static struct described *described_alloc(const struct accmem_description *kind,
					 const char *text)
{
	size_t size = strlen(text) + 1;
	struct described *d = kzalloc(struct_size(d, text, size), GFP_KERNEL);

	if (d) {
		d->kind = kind;
		d->err = -ENODEV; /* no driver is bound */
		memcpy(d->text, text, size);
	}
	return d;
}

/**
 * accmem_describe_add() - make the device that a text describes
 * @kind: the kind, whose driver is registered
 * @text: the description
 *
 * Says in the log what is wrong with a description.
 *
 * Context: Process context. Takes and releases described_lock. May sleep.
 *
 * Return: 0; -EINVAL for a wrong description; an error of accmem_provider_add_range() or of
 * accmem_provider_publish(); -ENOMEM.
 */
int accmem_describe_add(struct accmem_description *kind, const char *text)
{
	struct described *d = described_alloc(kind, text);
	int err;

	if (!d)
		return -ENOMEM;
	mutex_lock(&described_lock);
	d->is_published = started;
	d->pdev = platform_device_register_data(NULL, kind->driver.driver.name,
						PLATFORM_DEVID_AUTO, &d,
						sizeof(d));
	err = PTR_ERR_OR_ZERO(d->pdev) ?: d->err;
	if (!err)
		list_add(&d->link, &devices);
	mutex_unlock(&described_lock);
	if (err)
		described_free(d);
	return err;
}

/* Publish a device, unless its driver was unbound meanwhile. */
static int described_publish(struct described *d)
{
	struct accmem_provider *provider;
	int err = 0;

	device_lock(&d->pdev->dev);
	d->is_published = true;
	provider = platform_get_drvdata(d->pdev);
	if (provider)
		err = accmem_provider_publish(provider);
	device_unlock(&d->pdev->dev);
	return err;
}

/**
 * accmem_describe_start() - publish the devices that were added so far
 *
 * Devices that are added later are published at once.
 *
 * Context: Process context, during module init. Takes and releases described_lock. May sleep.
 *
 * Return: 0, or an error of accmem_provider_publish().
 */
int accmem_describe_start(void)
{
	struct described *d;
	int err = 0;

	mutex_lock(&described_lock);
	list_for_each_entry_reverse(d, &devices, link) {
		err = described_publish(d);
		if (err)
			break;
	}
	started = true;
	mutex_unlock(&described_lock);
	return err;
}

static struct accmem_description *description_of(struct device_driver *driver)
{
	return container_of(to_platform_driver(driver),
			    struct accmem_description, driver);
}

/* Under lockdown root may not choose what memory the kernel writes to. */
static ssize_t new_device_store(struct device_driver *driver, const char *text,
				size_t size)
{
	char *copy;
	int err;

	err = security_locked_down(LOCKDOWN_MODULE_PARAMETERS);
	if (err)
		return err;
	copy = kstrndup(text, size, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	err = accmem_describe_add(description_of(driver), strim(copy));
	kfree(copy);
	return err ?: size;
}
static DRIVER_ATTR_WO(new_device);

/* Take the described device with a name, or any if @name is NULL, off the list. */
static struct described *described_take(const struct accmem_description *kind,
					const char *name)
{
	struct described *d, *found = NULL;

	mutex_lock(&described_lock);
	list_for_each_entry(d, &devices, link) {
		if (d->kind == kind &&
		    (!name || sysfs_streq(dev_name(&d->pdev->dev), name))) {
			list_del(&d->link);
			found = d;
			break;
		}
	}
	mutex_unlock(&described_lock);
	return found;
}

static ssize_t delete_device_store(struct device_driver *driver,
				   const char *name, size_t size)
{
	struct described *d = described_take(description_of(driver), name);

	if (!d)
		return -ENOENT;
	described_free(d);
	return size;
}
static DRIVER_ATTR_WO(delete_device);

static struct attribute *described_attrs[] = {
	&driver_attr_new_device.attr,
	&driver_attr_delete_device.attr,
	NULL,
};
ATTRIBUTE_GROUPS(described);

/**
 * accmem_describe_init() - register the driver of a kind of described devices
 * @kind: the kind
 *
 * Context: Process context, during module init. May sleep.
 *
 * Return: 0, or an error of platform_driver_register().
 */
int accmem_describe_init(struct accmem_description *kind)
{
	kind->driver.probe = described_probe;
	kind->driver.remove = accmem_described_remove;
	kind->driver.driver.groups = described_groups;
	kind->driver.driver.probe_type = PROBE_FORCE_SYNCHRONOUS;
	return platform_driver_register(&kind->driver);
}

/**
 * accmem_describe_exit() - remove all devices of a kind, and the driver
 * @kind: the kind
 *
 * Context: Process context. Takes and releases described_lock. May sleep.
 */
void accmem_describe_exit(struct accmem_description *kind)
{
	struct described *d;

	/* First the files, so that nobody adds a device of the kind any more. */
	platform_driver_unregister(&kind->driver);
	while ((d = described_take(kind, NULL)))
		described_free(d);
}
