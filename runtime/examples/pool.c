// SPDX-License-Identifier: MIT
/* A pool: allocate by pointer, look inside, release at a position of a stream. */
#include <accmem_pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "hello, pool";

static void check(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "accmem-pool: %s: %s (%s)\n", what,
			strerror(-ret), accmem_last_error());
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	struct accmem_pool_request req = { .length = 5000, .mapped = 1 };
	struct accmem_pool_stats stats;
	struct accmem_pool_block block;
	struct accmem_context *ctx;
	struct accmem_pool *pool;
	int stream;

	check(accmem_open(argc > 1 ? argv[1] : NULL, &ctx), "open");
	check(accmem_pool_create(ctx, NULL, &pool), "pool");
	check(accmem_open_stream(ctx, &stream), "stream");

	check(accmem_pool_allocate(pool, &req), "allocate");
	memcpy(req.pointer, text, sizeof(text));
	check(accmem_pool_lookup(pool, (char *)req.pointer + 7, &block),
	      "lookup");
	printf("%s: byte 7 of %llu\n", (char *)req.pointer,
	       (unsigned long long)block.length);

	/* work on the stream still uses it: only the stream may have it now */
	check(accmem_pool_release_at(pool, req.pointer, stream, 1), "release");
	req.on_stream = 1;
	req.stream = stream;
	check(accmem_pool_allocate(pool, &req), "allocate on the stream");
	printf("the same memory before position %llu: %s\n",
	       (unsigned long long)req.position,
	       req.pointer == block.pointer ? "yes" : "no");

	check(accmem_signal(stream, 1), "signal");
	check(accmem_pool_release(pool, req.pointer), "release");
	accmem_pool_get_stats(pool, &stats);
	printf("%llu allocations, %llu releases\n",
	       (unsigned long long)stats.allocations,
	       (unsigned long long)stats.releases);
	close(stream);
	accmem_pool_destroy(pool);
	accmem_close(ctx);
	return 0;
}
