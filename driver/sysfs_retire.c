// SPDX-License-Identifier: GPL-2.0
/*
 * sysfs: failed memory of a carveout.
 *
 * The file retire takes a part of the carveout out of use, as OFFSET SIZE in bytes. The
 * file retired lists the failed memory, one run a line: offset and size in bytes, whether
 * it is retired or pending, the cause, and the physical address if there is one. The list
 * may have any length. Both files are for root, also on a kernel that is locked down.
 *
 * Locking: none. A reader of retired sees each granule at another moment.
 */
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "compat/compat.h"
#include "core/carveout.h"
#include "core/failed.h"
#include "core/size_param.h"
#include "memory/retire.h"
#include "sysfs.h"
#include "sysfs_retire.h"
#include "types/backing_types.h"

#define RETIRED_LINE 128 /* the longest line, and more */

static bool retire_parse(const char *text, u64 *offset, u64 *size)
{
	size_t length = strcspn(text, "\n");
	const char *rest;
	char words[64];

	if (length >= sizeof(words) || (text[length] && text[length + 1]))
		return false;
	memcpy(words, text, length);
	words[length] = '\0';
	return accmem_parse_size(words, ' ', &rest, offset) &&
	       accmem_parse_size(rest + 1, '\0', &rest, size);
}

static ssize_t retire_store(struct kobject *kobj, struct kobj_attribute *attr,
			    const char *text, size_t count)
{
	u64 offset, size;
	int err;

	if (!retire_parse(text, &offset, &size))
		return -EINVAL;
	err = accmem_retire(accmem_sysfs_carveout(kobj), offset, size,
			    ACCMEM_CAUSE_ADMIN);
	return err ?: count;
}

static const struct kobj_attribute retire_attr = {
	.attr = { .name = "retire", .mode = 0200 },
	.store = retire_store,
};

/* Write the line of a run to @line of RETIRED_LINE bytes, and return its length. */
static int retired_print(const struct accmem_carveout *cv,
			 const struct accmem_failed_run *run, char *line)
{
	static const char *const causes[ACCMEM_NR_CAUSES] = {
		[ACCMEM_CAUSE_POISON] = "poison",
		[ACCMEM_CAUSE_ADMIN] = "admin",
		[ACCMEM_CAUSE_LISTED] = "listed",
		[ACCMEM_CAUSE_DRIVER] = "driver",
	};
	char address[24] = "";

	if (cv->ops->physical_at)
		snprintf(address, sizeof(address), " %#llx",
			 cv->ops->physical_at(cv, run->start));
	return scnprintf(line, RETIRED_LINE, "%#llx %#llx %s %s%s\n",
			 run->start, run->size,
			 run->is_retired ? "retired" : "pending",
			 causes[run->cause], address);
}

static ssize_t retired_read(struct file *file, struct kobject *kobj,
			    ACCMEM_BIN_CONST struct bin_attribute *attr,
			    char *to, loff_t pos, size_t count)
{
	struct accmem_carveout *cv = accmem_sysfs_carveout(kobj);
	struct accmem_failed_run run;
	char line[RETIRED_LINE];
	size_t done = 0, part;
	u64 at = 0, all = cv->capacity;
	int length;

	for (; done < count && accmem_failed_next(cv, at, all, all, &run);
	     at = run.start + run.size) {
		cond_resched();
		length = retired_print(cv, &run, line);
		if (pos >= length) {
			pos -= length;
			continue;
		}
		part = min_t(size_t, length - pos, count - done);
		memcpy(to + done, line + pos, part);
		done += part;
		pos = 0;
	}
	return done;
}

static const struct bin_attribute retired_attr = {
	.attr = { .name = "retired", .mode = 0400 },
	.read = retired_read,
};

/**
 * accmem_sysfs_retire_add() - create the files retire and retired of a carveout
 * @cv: the carveout, with its directory; the files are removed with it
 *
 * Context: Process context. May sleep.
 *
 * Return: 0, or an error of sysfs_create_file().
 */
int accmem_sysfs_retire_add(struct accmem_carveout *cv)
{
	int err = sysfs_create_file(cv->sysfs, &retire_attr.attr);

	return err ?: sysfs_create_bin_file(cv->sysfs, &retired_attr);
}
