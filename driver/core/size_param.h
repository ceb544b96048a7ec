/* SPDX-License-Identifier: GPL-2.0 */
/* Sizes in module parameters: a number with an optional suffix. */
#ifndef ACCMEM_SIZE_PARAM_H
#define ACCMEM_SIZE_PARAM_H

#include <linux/moduleparam.h>
#include <linux/types.h>

/* What a message says of a word that is not a size */
#define ACCMEM_SIZE_RULE "a number, with a suffix K, M, G or T or without one"

#define ACCMEM_CARVEOUT_SIZE_RULE \
	"not a size in multiples of 4096, up to 16T a device: " ACCMEM_SIZE_RULE

bool accmem_parse_size(const char *text, char stop, const char **rest,
		       u64 *size);

/* Operations of a parameter of the type unsigned long long */
extern const struct kernel_param_ops accmem_size_param_ops;

#endif /* ACCMEM_SIZE_PARAM_H */
