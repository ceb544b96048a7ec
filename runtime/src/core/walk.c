// SPDX-License-Identifier: MIT
/* A walk over a tree of <search.h>. twalk() passes no argument, so the thread has it. */
#include <search.h>

#include "core/walk.h"

struct walk {
	accmem_walk_fn *visit;
	void *argument;
};

static _Thread_local struct walk walk;

static void visit_node(const void *node, VISIT visit, int depth)
{
	(void)depth;
	if (visit == postorder || visit == leaf)
		walk.visit(*(void *const *)node, walk.argument);
}

void accmem_walk(const void *root, accmem_walk_fn *visit, void *argument)
{
	const struct walk outer = walk;

	walk = (struct walk){ .visit = visit, .argument = argument };
	twalk(root, visit_node);
	walk = outer;
}
