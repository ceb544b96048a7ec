// SPDX-License-Identifier: MIT
/*
 * Allocate device memory, write to it, read it back, ask about it, free it.
 *
 *   accmem-hello [DEVICE [SECONDS]]    hold the memory for so long
 */
#include <accmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char text[] = "hello, accelerator";

static void check(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "accmem-hello: %s: %s\n", what, strerror(-ret));
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	struct accmem_alloc buffer = { .length = 1 << 20 };
	struct accmem_context *ctx;
	struct accmem_query query;
	struct accmem_info info;
	void *pointer;

	check(accmem_open(argc > 1 ? argv[1] : NULL, &ctx), "open");
	check(accmem_get_info(ctx, 0, &info), "info");
	printf("%llu of %llu bytes free\n", info.free_bytes, info.capacity);

	check(accmem_allocate(ctx, &buffer), "allocate");
	check(accmem_map(ctx, buffer.address, PROT_READ | PROT_WRITE, &pointer),
	      "map");
	memcpy(pointer, text, sizeof(text));
	printf("device address %#llx, pointer %p: %s\n", buffer.address,
	       pointer, (const char *)pointer);

	check(accmem_get_query(ctx, buffer.address + 7, &query), "query");
	printf("7 bytes further: offset %llu of a buffer of %llu bytes\n",
	       query.offset, query.length);

	if (argc > 2) {
		fflush(stdout);
		sleep(atoi(argv[2]));
	}
	check(accmem_release(ctx, buffer.address), "release");
	accmem_close(ctx);
	return 0;
}
