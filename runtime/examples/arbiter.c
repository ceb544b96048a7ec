// SPDX-License-Identifier: MIT
/*
 * The Tensor Memory arbiter in a program, without the driver: two CTAs take turns on the
 * columns of an SM.
 *
 *   cc arbiter.c -laccmem-core
 *
 * The program is a simulator of one thread: a CTA whose call waits is not run until the
 * arbiter says that the call has ended.
 */
#include <errno.h>
#include <stdio.h>

#include <accmem/core/columns.h>

#define TURNS 2

static struct accmem_columns arbiter;
static struct accmem_columns_sm sm;
static struct accmem_columns_cta ctas[2];

static int number_of(const struct accmem_columns_cta *cta)
{
	return cta - ctas;
}

/* The CTA has its columns: it works, and frees them. */
static int run(struct accmem_columns_cta *cta)
{
	printf("CTA %d: %u columns at column %u, %u waiting\n", number_of(cta),
	       cta->last, cta->address, arbiter.nr_queued);
	return accmem_columns_dealloc(&arbiter, cta, cta->address, cta->last,
				      true);
}

/* Run the CTAs whose calls have ended, until nobody is left who waits. */
static int run_completed(void)
{
	struct accmem_columns_cta *cta;
	int err = 0;

	while (!err && (cta = accmem_columns_next_done(&arbiter)))
		err = accmem_columns_collect(cta) ?: run(cta);
	return err;
}

int main(void)
{
	int err, turn, i, granted[2];

	err = accmem_columns_init(&arbiter, &sm, 1, 512, false, 64);
	for (i = 0; i < 2 && !err; i++) {
		ctas[i].launch = 1;
		ctas[i].cluster = i;
		ctas[i].group = 1;
		err = accmem_columns_launch(&arbiter, &ctas[i]);
	}
	for (turn = 0; turn < TURNS && !err; turn++) {
		/* both ask at the same time: one of them waits */
		for (i = 0; i < 2; i++)
			granted[i] = accmem_columns_alloc(&arbiter, &ctas[i],
							  512, true);
		for (i = 0; i < 2 && !err; i++) {
			if (granted[i] != -EINPROGRESS)
				err = granted[i] ?: run(&ctas[i]);
		}
		err = err ?: run_completed();
	}
	if (err)
		fprintf(stderr, "arbiter: error %d\n", err);
	return !!err;
}
