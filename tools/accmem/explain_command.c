// SPDX-License-Identifier: GPL-2.0
/*
 * accmem explain: the command.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "explain.h"

static const char usage[] =
	"usage: accmem explain [--json] [--watch[=SECONDS]] SIZE [FLAG...] [DEVICE[/CARVEOUT]]\n"
	"Would an ALLOC succeed now, in a program of the user that opens the device? If not, why,\n"
	"and what would help? Nothing is allocated. Flags are those of <linux/accmem.h>:\n"
	"  ROUND32 TAIL32 POPULATE CONTIGUOUS TOP_DOWN RESIZABLE WAIT\n"
	"  HIGH_BANDWIDTH LOW_BANDWIDTH CARVEOUT    flags\n"
	"  ANY HUGE_FIRST HUGE_ONLY NORMAL_ONLY HUGE1G_ONLY    page policy\n"
	"  WB WC UC    cache mode        DEVICE HOST SHARED    kind\n"
	"  ALIGN=BYTES RESERVE=BYTES\n"
	"Sizes may have a suffix K, M, G or T. Exit status: 0 it would succeed, 1 it would fail,\n"
	"4 it would wait, 5 the user may not know.\n";

static const int statuses[NR_VERDICTS] = {
	[SUCCEEDS] = STATUS_OK,
	[FAILS] = STATUS_FAILED,
	[WAITS] = 4,
	[CANNOT_TELL] = 5,
};

static int show(const struct options *o, void *arg)
{
	const struct request *req = arg;
	struct explanation e = { .req = req };
	struct snapshot s;
	int status = snapshot_read(&s);

	if (!status) {
		e.s = &s;
		e.device = *req->device ? snapshot_device(&s, req->device) :
					  s.devices;
		if (!e.device)
			status = no_device(req->device);
	} else {
		no_devices();
	}
	if (!status) {
		explain(&e);
		if (o->json)
			json_print(explain_json(&e));
		else
			explain_print(&e);
		status = statuses[e.verdict];
		explain_free(&e);
	}
	snapshot_free(&s);
	return status;
}

int command_explain(int argc, char **argv)
{
	struct request req;
	struct options o;
	int status = options_parse(&o, argc, argv, "jw", usage);

	if (status >= 0)
		return status;
	if (!request_parse(&req, "explain", argc - optind, argv + optind)) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (!req.has_size) {
		fprintf(stderr, "accmem: explain: the size is missing\n%s",
			usage);
		return STATUS_USAGE;
	}
	return options_watch(&o, show, &req);
}
