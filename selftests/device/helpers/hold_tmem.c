// SPDX-License-Identifier: GPL-2.0
/*
 * Holds Tensor Memory of a device, for the tests of the command accmem:
 *
 *   hold_tmem PATH SMS	a context with SMs of 512 columns. On SM 0 the CTAs 1 and 2 hold 256
 *			and 64 columns, and the CTAs 3 and 4 wait for 512 and 256 columns, in
 *			this order. On the last SM CTA 5 holds 32 columns.
 *
 * Prints "held" and stays until its input ends.
 */
#include <err.h>

#include "../../tmem/tmem_util.h"

static struct tcgen05_cta *launch(struct accmem_context *ctx, uint32_t sm,
				  uint32_t columns)
{
	struct tcgen05_cta *cta = tmem_single(ctx, sm);
	uint32_t at;

	if (!cta)
		errx(1, "launch on SM %u", sm);
	if (columns && tcgen05_alloc(cta, &at, columns))
		errx(1, "alloc of %u columns", columns);
	return cta;
}

static void launch_waiter(struct accmem_context *ctx, struct tmem_call *call,
			  uint32_t columns)
{
	if (!tmem_start_alloc(call, launch(ctx, 0, 0), columns))
		errx(1, "alloc of %u columns does not wait", columns);
}

int main(int argc, char **argv)
{
	struct tcgen05_config config = { .columns = 512, .bypass_bound = 8 };
	struct tmem_call calls[2];
	struct accmem_context *ctx;
	char byte;

	if (argc != 3)
		return 2;
	config.nr_sms = atoi(argv[2]);
	if (accmem_open(argv[1], &ctx) || tcgen05_setup(ctx, &config))
		errx(1, "%s", argv[1]);
	launch(ctx, 0, 256);
	launch(ctx, 0, 64);
	launch_waiter(ctx, &calls[0], 512);
	launch_waiter(ctx, &calls[1], 256);
	launch(ctx, config.nr_sms - 1, 32);
	puts("held");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	exit(0);
}
