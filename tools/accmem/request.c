// SPDX-License-Identifier: GPL-2.0
/*
 * Parse a request: a size, and words with the names of uapi/linux/accmem.h, without the
 * prefixes ACCMEM_ALLOC_, ACCMEM_PAGE_, ACCMEM_CACHE_ and ACCMEM_KIND_.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accmem.h"
#include "request.h"

enum field { FLAG, POLICY, CACHE, KIND };

static const struct {
	const char *name;
	enum field field;
	unsigned int value;
} words[] = {
	{ "ROUND32", FLAG, ACCMEM_ALLOC_ROUND32 },
	{ "TAIL32", FLAG, ACCMEM_ALLOC_TAIL32 },
	{ "POPULATE", FLAG, ACCMEM_ALLOC_POPULATE },
	{ "CONTIGUOUS", FLAG, ACCMEM_ALLOC_CONTIGUOUS },
	{ "TOP_DOWN", FLAG, ACCMEM_ALLOC_TOP_DOWN },
	{ "RESIZABLE", FLAG, ACCMEM_ALLOC_RESIZABLE },
	{ "WAIT", FLAG, ACCMEM_ALLOC_WAIT },
	{ "HIGH_BANDWIDTH", FLAG, ACCMEM_ALLOC_HIGH_BANDWIDTH },
	{ "LOW_BANDWIDTH", FLAG, ACCMEM_ALLOC_LOW_BANDWIDTH },
	{ "CARVEOUT", FLAG, ACCMEM_ALLOC_CARVEOUT },
	{ "ANY", POLICY, ACCMEM_PAGE_ANY },
	{ "HUGE_FIRST", POLICY, ACCMEM_PAGE_HUGE_FIRST },
	{ "HUGE_ONLY", POLICY, ACCMEM_PAGE_HUGE_ONLY },
	{ "NORMAL_ONLY", POLICY, ACCMEM_PAGE_NORMAL_ONLY },
	{ "HUGE1G_ONLY", POLICY, ACCMEM_PAGE_HUGE1G_ONLY },
	{ "WB", CACHE, ACCMEM_CACHE_WB },
	{ "WC", CACHE, ACCMEM_CACHE_WC },
	{ "UC", CACHE, ACCMEM_CACHE_UC },
	{ "DEVICE", KIND, ACCMEM_KIND_DEVICE },
	{ "HOST", KIND, ACCMEM_KIND_HOST },
	{ "SHARED", KIND, ACCMEM_KIND_SHARED },
};

#define NR_WORDS (sizeof(words) / sizeof(*words))

static bool parse_word(struct accmem_alloc *a, const char *word)
{
	size_t i;

	for (i = 0; i < NR_WORDS && strcmp(word, words[i].name); i++)
		;
	if (i == NR_WORDS)
		return false;
	switch (words[i].field) {
	case FLAG:
		a->flags |= words[i].value;
		break;
	case POLICY:
		a->page_policy = words[i].value;
		break;
	case CACHE:
		a->cache_mode = words[i].value;
		break;
	case KIND:
		a->kind = words[i].value;
		break;
	}
	return true;
}

/* "accmemN" or "accmemN/carveoutM", which stands for the flag CARVEOUT as well */
static bool parse_device(struct request *r, const char *word)
{
	const char *slash = strchr(word, '/');
	unsigned int carveout;
	int end = 0;

	if (strncmp(word, "accmem", 6) || !isdigit((unsigned char)word[6]) ||
	    *r->device)
		return false;
	copy_word(r->device, sizeof(r->device), word);
	if (!slash)
		return strlen(word) < sizeof(r->device);
	if (slash - word >= (ptrdiff_t)sizeof(r->device))
		return false;
	r->device[slash - word] = '\0';
	if (sscanf(slash, "/carveout%u%n", &carveout, &end) != 1 || slash[end])
		return false;
	r->alloc.carveout = carveout;
	r->alloc.flags |= ACCMEM_ALLOC_CARVEOUT;
	return true;
}

static bool parse_one(struct request *r, const char *word)
{
	uint64_t number;

	if (!strncmp(word, "ALIGN=", 6) && size_parse(word + 6, &number)) {
		r->alloc.alignment = number;
		return true;
	}
	if (!strncmp(word, "RESERVE=", 8) && size_parse(word + 8, &number)) {
		r->alloc.reserve = number;
		return true;
	}
	return parse_word(&r->alloc, word) || parse_device(r, word);
}

/* Parse the arguments of a command. Return false after a message. */
bool request_parse(struct request *r, const char *command, int argc,
		   char **argv)
{
	uint64_t length;
	int i;

	memset(r, 0, sizeof(*r));
	r->alloc.size = sizeof(r->alloc);
	r->has_size = argc && size_parse(argv[0], &length);
	if (r->has_size)
		r->alloc.length = length;
	for (i = r->has_size; i < argc; i++) {
		if (parse_one(r, argv[i]))
			continue;
		fprintf(stderr,
			"accmem: %s: %s: %sno flag of a request, and no device\n",
			command, argv[i], i ? "" : "not a size, ");
		return false;
	}
	return true;
}

static bool word_applies(const struct accmem_alloc *a, size_t i)
{
	switch (words[i].field) {
	case FLAG:
		return a->flags & words[i].value;
	case POLICY:
		return words[i].value && a->page_policy == words[i].value;
	case CACHE:
		return words[i].value && a->cache_mode == words[i].value;
	default:
		return words[i].value && a->kind == words[i].value;
	}
}

/* Add a size that is not 0 to the words of a request. */
static void add_size(char **text, const char *name, uint64_t size)
{
	char number[16], *longer;

	if (!size)
		return;
	longer = format("%s %s=%s", *text, name, size_text(size, number));
	free(*text);
	*text = longer;
}

/* Return the request in words, to be freed. */
char *request_text(const struct request *r)
{
	char number[16];
	char *text = format("%s", size_text(r->alloc.length, number)), *longer;
	size_t i;

	for (i = 0; i < NR_WORDS; i++) {
		if (!word_applies(&r->alloc, i))
			continue;
		longer = format("%s %s", text, words[i].name);
		free(text);
		text = longer;
	}
	add_size(&text, "ALIGN", r->alloc.alignment);
	add_size(&text, "RESERVE", r->alloc.reserve);
	return text;
}
