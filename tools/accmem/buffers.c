// SPDX-License-Identifier: GPL-2.0
/*
 * The buffers of a device that are not freed, read from `buffers` in debugfs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"

/* "context address length footprint runs cache_mode carveout[ host][ mapped][ imported]" */
static bool buffer_parse(struct buffer *b, const char *line)
{
	unsigned long long context, address, length, footprint;
	int end = 0;

	if (sscanf(line, "%llu %llx %llu %llu %u %u %u%n", &context, &address,
		   &length, &footprint, &b->runs, &b->cache_mode, &b->carveout,
		   &end) != 7)
		return false;
	b->context = context;
	b->address = address;
	b->length = length;
	b->footprint = footprint;
	b->host = strstr(line + end, " host");
	b->mapped = strstr(line + end, " mapped");
	b->imported = strstr(line + end, " imported");
	return true;
}

/* Add the buffers of a device to an array. Return false if the file cannot be read. */
bool buffers_read(struct buffer **buffers, size_t *nr, const char *device)
{
	char *text = read_text(DEBUGFS "/%s/buffers", device), *line, *save;
	struct buffer b = { 0 };

	if (!text)
		return false;
	copy_word(b.device, sizeof(b.device), device);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (!buffer_parse(&b, line))
			continue;
		*buffers = grow(*buffers, *nr, sizeof(**buffers));
		(*buffers)[(*nr)++] = b;
	}
	free(text);
	return true;
}
