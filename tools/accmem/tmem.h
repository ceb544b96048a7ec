/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tensor Memory of the contexts of a device, read from `tmem` in debugfs, or from the fdinfo
 * of the CTAs that the caller may see.
 */
#ifndef ACCMEM_TOOL_TMEM_H
#define ACCMEM_TOOL_TMEM_H

#include "accmem.h"

#define UNIT_COLUMNS 32 /* of a character of the picture */
#define MANY '#' /* the letter of the CTAs without a letter of their own */

/* A CTA that holds columns or the permit, or that waits for columns. */
struct tmem_cta {
	char letter; /* in the picture; - without columns, ? if it waits */
	uint64_t id;
	uint64_t launch;
	unsigned int cluster;
	unsigned int rank;
	unsigned int columns; /* that it holds, or waits for */
	bool permit;
	bool waits;
	unsigned int bypassed;
	uint64_t us; /* that it has waited */
};

struct tmem_sm {
	unsigned int number;
	unsigned int free; /* columns */
	unsigned int columns;
	char *units; /* a character for each 32 columns; NULL if the picture is not known */
	struct tmem_cta *ctas; /* holders, then the queue in its order */
	size_t nr_ctas;
};

struct tmem {
	char device[16];
	uint64_t context;
	bool known; /* from debugfs: the discipline, the picture and the queue are known */
	bool exclusive;
	bool strict;
	unsigned int bound; /* of bypasses */
	struct tmem_sm *sms;
	size_t nr_sms;
};

bool tmem_read(struct tmem **tmems, size_t *nr, const char *device);
void tmem_read_own(struct tmem **tmems, size_t *nr, const char *device);
void tmem_free(struct tmem *tmems, size_t nr);

#endif /* ACCMEM_TOOL_TMEM_H */
