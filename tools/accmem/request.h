/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A request for memory, as the arguments of a command describe it.
 */
#ifndef ACCMEM_TOOL_REQUEST_H
#define ACCMEM_TOOL_REQUEST_H

#include <stdbool.h>

#include <linux/accmem.h>

struct request {
	struct accmem_alloc alloc;
	char device[16]; /* empty: the first device */
	bool has_size; /* else alloc.length is 0 */
};

bool request_parse(struct request *r, const char *command, int argc,
		   char **argv);
char *request_text(const struct request *r);

#endif /* ACCMEM_TOOL_REQUEST_H */
