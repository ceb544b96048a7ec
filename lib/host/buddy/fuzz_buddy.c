// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * libFuzzer target: the input is first a request to accmem_layout() and one to
 * accmem_buddy_alloc(), either of them nonsense as a rule, then the numbers from
 * which calls on the allocator and its reference are drawn.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/layout/layout.h"
#include "model.h"
#include "world.h"

#define HEAD                                    \
	(sizeof(struct accmem_layout_request) + \
	 sizeof(struct accmem_buddy_request))

static void layout_keeps_its_contract(const u8 *data)
{
	struct accmem_layout_caps caps = {
		.page_sizes = ACCMEM_GRANULE | BIT_ULL(21) | BIT_ULL(30),
		.max_alignment = BIT_ULL(30),
	};
	struct accmem_layout_request req;
	struct accmem_layout out;
	u64 unit;

	memcpy(&req, data, sizeof(req));
	req.page_policy %= 7; /* five are known */
	req.flags &= 0xff;
	if (req.length & 1)
		caps.page_sizes = ACCMEM_GRANULE;
	if (accmem_layout(&req, &caps, &out))
		return;
	unit = out.small ? ACCMEM_ALIGN_MIN : out.page_size;
	if (out.usable < req.length || out.footprint < out.usable ||
	    out.footprint % unit || out.alignment < req.alignment ||
	    out.alignment % ACCMEM_ALIGN_MIN ||
	    out.footprint + out.alignment < out.footprint)
		abort();
}

/* Any request either fails and changes nothing, or is served as it asked. */
static void alloc_survives_nonsense(const u8 *data)
{
	const u64 size = data[0] & 4 ? ACCMEM_BUDDY_MAX_SIZE :
				       1000 * ACCMEM_GRANULE;
	struct accmem_buddy_request req;
	struct accmem_run runs[8], run;
	struct accmem_buddy b;
	unsigned int nr, i;
	u64 at, taken = 0;
	void *meta;

	memcpy(&req, data, sizeof(req));
	if (data[0] & 1) {
		/* Sizes that could be served, or nearly */
		req.size = (req.size >> 8) % (2 * size);
		req.align = ACCMEM_GRANULE << (req.align % 11) | data[1] >> 7;
		req.start %= 2 * size;
		req.end %= 2 * size;
	}
	if (data[0] & 2) {
		req.size &= ~(ACCMEM_GRANULE - 1);
		req.start &= ~(ACCMEM_GRANULE - 1);
		req.end &= ~(ACCMEM_GRANULE - 1);
		req.flags &= 1;
	}
	meta = mmap(NULL, accmem_buddy_meta_size(size), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (meta == MAP_FAILED || !accmem_buddy_init(&b, size + 1, meta) ||
	    accmem_buddy_init(&b, size, meta))
		abort();
	if (!accmem_buddy_alloc(&b, &req, &at)) {
		taken = req.size;
		if (at % req.align || at < req.start || at + taken > size ||
		    (req.end && at + taken > req.end))
			abort();
	}
	if (accmem_buddy_free_bytes(&b) != size - taken ||
	    largest_run(&b) > size - taken)
		abort();
	if (!accmem_buddy_free(&b, req.start, req.size))
		taken -= req.size;
	if (accmem_buddy_next_free(&b, req.end, &run) &&
	    (run.start < (req.end & ~(ACCMEM_GRANULE - 1)) ||
	     run.size > size - taken))
		abort();
	if (!accmem_buddy_alloc_runs(&b, &req, runs, 8, &nr)) {
		for (i = 0; i < nr; i++)
			taken += runs[i].size;
	}
	accmem_buddy_next_dirty(&b, req.start, req.size, req.end, &run);
	if (!accmem_buddy_alloc_dirty(&b, req.size, &run) ||
	    accmem_buddy_free_bytes(&b) != size - taken)
		abort();
	munmap(meta, accmem_buddy_meta_size(size));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct rng draw = {};

	if (size < HEAD + 4)
		return 0;
	layout_keeps_its_contract(data);
	alloc_survives_nonsense(data + sizeof(struct accmem_layout_request));
	draw.input = data + HEAD;
	draw.left = size - HEAD;
	world_run("fuzzer input", &draw, ~0ull);
	return 0;
}
