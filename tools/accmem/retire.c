// SPDX-License-Identifier: GPL-2.0
/*
 * accmem retire: list the failed memory of a carveout, or retire a part of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

static const char usage[] =
	"usage: accmem retire DEVICE[/CARVEOUT]\n"
	"       accmem retire DEVICE[/CARVEOUT] OFFSET SIZE\n"
	"List the failed memory of a carveout, carveout0 unless named; or retire the granules\n"
	"(4 KiB) with a byte of this part (root). A device does not use retired memory until\n"
	"the module is unloaded. OFFSET and SIZE may be hexadecimal or have a suffix.\n";

static int failed(const char *carveout, int err)
{
	fprintf(stderr, "accmem: retire: %s: %s\n", carveout,
		err == -EINVAL ? "the part is malformed, empty or not inside" :
				 strerror(-err));
	return STATUS_FAILED;
}

/* A line: offset, size, state, cause, and the physical address if there is one. */
static int list(const char *carveout)
{
	static const struct column columns[] = {
		{ "OFFSET", true, 0 },	 { "SIZE", true, 0 },
		{ "STATE", false, 0 },	 { "CAUSE", false, 0 },
		{ "PHYSICAL", true, 1 },
	};
	char *text = read_text(CLASS "/%s/retired", carveout), *line, *save;
	char word[5][24];
	struct table *t;

	if (!text)
		return failed(carveout, -errno);
	t = table_new(columns, sizeof(columns) / sizeof(*columns));
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		word[4][0] = '\0';
		if (sscanf(line, "%23s %23s %23s %23s %23s", word[0], word[1],
			   word[2], word[3], word[4]) >= 4)
			table_add(t, "%s\t%s\t%s\t%s\t%s", word[0], word[1],
				  word[2], word[3], word[4]);
	}
	table_print(t);
	table_free(t);
	free(text);
	return STATUS_OK;
}

static int retire(const char *carveout, const char *offset, const char *size)
{
	uint64_t start, bytes;
	char *text;
	int err;

	if (!size_parse(offset, &start) || !size_parse(size, &bytes))
		return failed(carveout, -EINVAL);
	text = format("%" PRIu64 " %" PRIu64, start, bytes);
	err = write_text(text, CLASS "/%s/retire", carveout);
	free(text);
	return err ? failed(carveout, err) : STATUS_OK;
}

int command_retire(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "", usage);
	char *carveout;

	if (status >= 0)
		return status;
	if (optind != argc - 1 && optind != argc - 3) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	carveout = format("%s%s", argv[optind],
			  strchr(argv[optind], '/') ? "" : "/carveout0");
	if (strncmp(carveout, "accmem", 6) || strstr(carveout, "..") ||
	    !path_exists(CLASS "/%s", carveout))
		status = no_device(argv[optind]);
	else if (optind == argc - 1)
		status = list(carveout);
	else
		status = retire(carveout, argv[optind + 1], argv[optind + 2]);
	free(carveout);
	return status;
}
