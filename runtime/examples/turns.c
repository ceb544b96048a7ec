// SPDX-License-Identifier: MIT
/* Two CTAs take turns on all 512 columns of one SM. */
#include <tcgen05.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 4

static void check(int ret, const char *what)
{
	if (ret) {
		fprintf(stderr, "accmem-turns: %s: %s\n", what, strerror(-ret));
		exit(EXIT_FAILURE);
	}
}

static void *run(void *argument)
{
	struct tcgen05_cta *cta = argument;
	struct accmem_cta_query query;
	uint32_t address;
	int turn;

	for (turn = 0; turn < TURNS; turn++) {
		check(tcgen05_alloc(cta, &address, 512), "alloc");
		check(tcgen05_query(cta, &query), "query");
		printf("CTA %u: %u columns at column %u, %u waiting\n",
		       query.rank, query.held, tcgen05_column(address),
		       query.waiting);
		check(tcgen05_dealloc(cta, address, 512), "dealloc");
	}
	check(tcgen05_relinquish_alloc_permit(cta), "relinquish");
	return NULL;
}

int main(int argc, char **argv)
{
	struct tcgen05_config config = { .nr_sms = 1, .bypass_bound = 0 };
	struct tcgen05_place place = { .launch = 1, .cta_group = 1 };
	struct tcgen05_cta *cta[2];
	struct accmem_context *ctx;
	pthread_t thread[2];
	int i;

	check(accmem_open(argc > 1 ? argv[1] : NULL, &ctx), "open");
	check(tcgen05_setup(ctx, &config), "setup");
	for (i = 0; i < 2; i++) {
		place.rank = i;
		check(tcgen05_launch(ctx, &place, &cta[i]), "launch");
	}
	for (i = 0; i < 2; i++)
		check(-pthread_create(&thread[i], NULL, run, cta[i]), "thread");
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		tcgen05_exit(cta[i]);
	}
	accmem_close(ctx);
	return 0;
}
