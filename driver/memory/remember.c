// SPDX-License-Identifier: GPL-2.0
/*
 * Remembered failures: physical memory that must not be used.
 *
 * The list has the physical address of all memory that was retired since the module was
 * loaded, and the memory that the parameter retired names. It outlives the carveouts: a
 * carveout that is created over remembered memory retires that memory first.
 *
 * The parameter is a string of any length. It is parsed when the module is initialised,
 * because the string of a built-in module comes before there is memory to parse it into.
 *
 * Locking: remember_lock guards the list. It is above accmem_failed.lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "core/size_param.h"
#include "internal.h"
#include "memory/remember.h"

#define REMEMBER_RULE                                                                    \
	"retired: '%s' is not ADDRESS or SIZE@ADDRESS, where both are " ACCMEM_SIZE_RULE \
	"\n"

/* A range of physical memory that has failed. */
struct remembered {
	struct list_head link;
	u64 start;
	u64 size;
	enum accmem_cause cause;
};

static LIST_HEAD(remember_list);
static DEFINE_MUTEX(remember_lock); /* remember_list */

/*
 * A copy, since the kernel may free the arguments of a module as soon as they have been
 * parsed; Linux 7.3 does. In a built-in module it is a part of the kernel's command line,
 * which stays.
 */
static const char *remember_text;

static void remember_free(void *arg)
{
	if (!IS_BUILTIN(CONFIG_ACCMEM))
		kfree(remember_text);
	remember_text = NULL;
}

static int remember_set(const char *text, const struct kernel_param *param)
{
	remember_free(NULL);
	remember_text = IS_BUILTIN(CONFIG_ACCMEM) ? text :
						    kstrdup(text, GFP_KERNEL);
	return remember_text ? 0 : -ENOMEM;
}

/* Print the list as the parameter takes it, or fail if it is longer than a page. */
static int remember_get(char *page, const struct kernel_param *param)
{
	const struct remembered *r;
	const char *comma = "";
	int n = 0;

	mutex_lock(&remember_lock);
	list_for_each_entry(r, &remember_list, link) {
		n += scnprintf(page + n, PAGE_SIZE - n, "%s%#llx@%#llx", comma,
			       r->size, r->start);
		comma = ",";
	}
	mutex_unlock(&remember_lock);
	if (n >= PAGE_SIZE - 1)
		return -EFBIG;
	page[n] = '\n';
	return n + 1;
}

static const struct kernel_param_ops remember_ops = {
	.set = remember_set,
	.get = remember_get,
	.free = remember_free,
};

module_param_cb(retired, &remember_ops, NULL, 0400);
__MODULE_PARM_TYPE(retired, "charp");
MODULE_PARM_DESC(retired, "failed memory, as ADDRESS or SIZE@ADDRESS[,...]");

static bool remember_contains(const struct remembered *r, u64 start, u64 size)
{
	return start >= r->start && start - r->start <= r->size &&
	       size <= r->size - (start - r->start);
}

/* Extend the range that ends at @start, or add a range to the list. */
static int remember_add(u64 start, u64 size, enum accmem_cause cause)
{
	struct remembered *r;

	lockdep_assert_held(&remember_lock);
	list_for_each_entry(r, &remember_list, link) {
		if (remember_contains(r, start, size))
			return 0;
		if (r->start + r->size == start && r->cause == cause) {
			r->size += size;
			return 0;
		}
	}
	r = kmalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	r->start = start;
	r->size = size;
	r->cause = cause;
	list_add_tail(&r->link, &remember_list);
	return 0;
}

/**
 * accmem_remember() - remember that physical memory has failed
 * @start: physical address, a multiple of the granule
 * @size: bytes, a multiple of the granule
 * @cause: how the driver knows
 *
 * Context: Process context. Takes and releases remember_lock. May sleep.
 * Return: 0, -ENOMEM.
 */
int accmem_remember(u64 start, u64 size, enum accmem_cause cause)
{
	int err;

	mutex_lock(&remember_lock);
	err = remember_add(start, size, cause);
	mutex_unlock(&remember_lock);
	return err;
}

/**
 * accmem_remember_each() - iterate over the remembered memory of a range
 * @start: physical address
 * @size: bytes, not 0
 * @fn: called for each part of the range that has failed, in no order
 * @arg: argument for @fn
 *
 * Context: Process context. Holds remember_lock while @fn is called. May sleep.
 * Return: 0, or the first error of @fn.
 */
int accmem_remember_each(u64 start, u64 size, accmem_remember_fn fn, void *arg)
{
	const struct remembered *r;
	u64 from, to;
	int err = 0;

	mutex_lock(&remember_lock);
	list_for_each_entry(r, &remember_list, link) {
		from = max(start, r->start);
		to = min(start + size, r->start + r->size);
		if (from < to)
			err = fn(arg, from, to - from, r->cause);
		if (err)
			break;
	}
	mutex_unlock(&remember_lock);
	return err;
}

static int remember_found(void *arg, u64 start, u64 size,
			  enum accmem_cause cause)
{
	return 1;
}

/**
 * accmem_remember_has() - check whether physical memory has failed
 * @start: physical address
 * @size: bytes, not 0
 *
 * Context: Process context. Takes and releases remember_lock. May sleep.
 * Return: true if a part of the range is remembered.
 */
bool accmem_remember_has(u64 start, u64 size)
{
	return accmem_remember_each(start, size, remember_found, NULL);
}

/* Parse ADDRESS or SIZE@ADDRESS, and round it out to granules. */
static bool remember_parse(const char *word, u64 *start, u64 *size)
{
	const char *rest = word;
	u64 end;

	*size = 1;
	if (strchr(word, '@')) {
		if (!accmem_parse_size(word, '@', &rest, size) || !*size)
			return false;
		rest++;
	}
	if (!accmem_parse_size(rest, '\0', &rest, start) ||
	    check_add_overflow(*start, *size, &end) ||
	    end > U64_MAX - ACCMEM_GRANULE)
		return false;
	end = round_up(end, ACCMEM_GRANULE);
	*start = round_down(*start, ACCMEM_GRANULE);
	*size = end - *start;
	return true;
}

static int remember_words(char *text)
{
	u64 start, size;
	char *word;
	int err = 0;

	while (!err && (word = strsep(&text, ","))) {
		if (!remember_parse(word, &start, &size)) {
			pr_err(REMEMBER_RULE, word);
			return -EINVAL;
		}
		err = accmem_remember(start, size, ACCMEM_CAUSE_LISTED);
		cond_resched();
	}
	return err;
}

/**
 * accmem_remember_init() - remember the memory that the parameter names
 *
 * Context: Process context, during module init, before a carveout exists. May sleep.
 * Return: 0; -EINVAL for a malformed parameter, with a message; -ENOMEM. After an error
 * the list is empty.
 */
int accmem_remember_init(void)
{
	char *copy;
	int err;

	if (!remember_text || !*remember_text)
		return 0;
	copy = kstrdup(remember_text, GFP_KERNEL);
	err = copy ? remember_words(copy) : -ENOMEM;
	kfree(copy);
	if (err)
		accmem_remember_exit();
	return err;
}

/**
 * accmem_remember_exit() - forget all failures
 *
 * Context: Process context, when no carveout is left. May sleep.
 */
void accmem_remember_exit(void)
{
	struct remembered *r, *next;

	list_for_each_entry_safe(r, next, &remember_list, link)
		kfree(r);
	INIT_LIST_HEAD(&remember_list);
}
