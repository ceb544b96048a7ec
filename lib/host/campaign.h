/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What programs with a random campaign are told: --ops N and --seed S. */
#ifndef CAMPAIGN_H
#define CAMPAIGN_H

#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* False if that is not what the arguments are: the usage has been printed. */
static inline bool campaign_options(int argc, char **argv, u64 *ops, u64 *seed)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--ops"))
			*ops = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			*seed = strtoull(argv[i + 1], NULL, 0);
		else
			break;
	}
	if (i == argc)
		return true;
	fprintf(stderr, "usage: %s [--ops N] [--seed S]\n", argv[0]);
	return false;
}

#endif /* CAMPAIGN_H */
