// SPDX-License-Identifier: GPL-2.0
/*
 * Sizes in module parameters: a number with an optional suffix.
 *
 * All parameters that are bytes or counts have this format. A load or a write to sysfs
 * with another text fails, and the kernel log names the parameter, the text, and the
 * format.
 *
 * Locks: none. The core serialises writes of a parameter; readers use READ_ONCE().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/overflow.h>
#include <linux/string.h>

#include "core/size_param.h"

/**
 * accmem_parse_size() - parse a number with an optional suffix K, M, G or T
 * @text: text
 * @stop: character after the number, which may be '\0'
 * @rest: result: the position of @stop
 * @size: result: the number
 *
 * Unlike memparse(), the function rejects any other text and a number that overflows.
 *
 * Context: Any context.
 * Return: true if the text has the format.
 */
bool accmem_parse_size(const char *text, char stop, const char **rest,
		       u64 *size)
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
		if (!unit ||
		    check_shl_overflow(*size, 10 * (unit - units + 1), size))
			return false;
	}
	*rest = text;
	return *text == stop;
}

/* A text that was written to sysfs may end in a newline. */
static int size_param_set(const char *text, const struct kernel_param *param)
{
	int length = strcspn(text, "\n");
	const char *rest;
	u64 size;

	if (!accmem_parse_size(text, text[length], &rest, &size) ||
	    (*rest && rest[1])) {
		pr_err("%s=%.*s: not " ACCMEM_SIZE_RULE "\n", param->name,
		       length, text);
		return -EINVAL;
	}
	WRITE_ONCE(*(unsigned long long *)param->arg, size);
	return 0;
}

const struct kernel_param_ops accmem_size_param_ops = {
	.set = size_param_set,
	.get = param_get_ullong,
};
