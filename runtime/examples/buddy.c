// SPDX-License-Identifier: MIT
/*
 * The allocator of the driver in a program, without the driver: offsets in a range of
 * 1 GiB, which may be a file, a device, or anything else.
 *
 *   cc buddy.c -o buddy -laccmem-core
 */
#include <stdio.h>
#include <stdlib.h>

#include <accmem/core/buddy.h>

#define RANGE (1ull << 30)
#define MIB (1ull << 20)

static struct accmem_buddy range;

static __u64 take(const char *name, __u64 mib, __u32 flags)
{
	const struct accmem_buddy_request request = {
		.size = mib * MIB,
		.align = 4096,
		.flags = flags,
	};
	__u64 at;

	if (accmem_buddy_alloc(&range, &request, &at)) {
		fprintf(stderr, "%s: no room\n", name);
		exit(1);
	}
	printf("%s: %llu MiB at %#llx\n", name, mib, at);
	return at;
}

int main(void)
{
	void *metadata = calloc(1, accmem_buddy_meta_size(RANGE));
	struct accmem_run run = {};
	__u64 b;

	if (!metadata || accmem_buddy_init(&range, RANGE, metadata))
		return 1;
	take("a", 64, 0);
	b = take("b", 3, ACCMEM_BUDDY_TOP_DOWN);
	take("c", 5, ACCMEM_BUDDY_TOP_DOWN);
	if (accmem_buddy_free(&range, b, 3 * MIB))
		return 1;
	while (accmem_buddy_next_free(&range, run.start + run.size, &run))
		printf("free: %#llx to %#llx\n", run.start,
		       run.start + run.size);
	free(metadata);
	return 0;
}
