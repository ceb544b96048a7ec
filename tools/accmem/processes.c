// SPDX-License-Identifier: GPL-2.0
/*
 * The processes of a snapshot: the contexts of a process on a device are added up.
 */
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

/* Add the numbers of a context to those of the same process on the same device. */
static void add_use(struct context *sum, const struct context *c)
{
	enum use u;

	for (u = 0; u < NR_USES; u++)
		sum->use[u] = sum_of_known(sum->use[u], c->use[u]);
	sum->id++;
}

static bool is_same_process(const struct context *a, const struct context *b)
{
	return a->open == b->open && a->uid == b->uid && a->nr_pids &&
	       a->nr_pids == b->nr_pids && a->pids[0] == b->pids[0] &&
	       !strcmp(a->device, b->device);
}

/*
 * Return an array with an element for each process and device, which the caller frees. The id
 * of an element is the number of contexts; the pids of an element belong to the snapshot.
 */
struct context *processes_merge(const struct snapshot *s, size_t *nr)
{
	struct context *merged = grow(NULL, s->nr_contexts, sizeof(*merged));
	size_t i, n;

	*nr = 0;
	for (i = 0; i < s->nr_contexts; i++) {
		for (n = 0; n < *nr; n++) {
			if (is_same_process(&merged[n], &s->contexts[i]))
				break;
		}
		if (n < *nr) {
			add_use(&merged[n], &s->contexts[i]);
			continue;
		}
		merged[*nr] = s->contexts[i];
		merged[(*nr)++].id = 1;
	}
	return merged;
}
