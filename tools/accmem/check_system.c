// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check: device files, the module, and the log of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "check.h"

#define RECORD 8192 /* longest record of the log */

static void check_mode(struct findings *f, const struct device *d,
		       const struct stat *st)
{
	unsigned int major, minor;
	char number[32];

	if (!S_ISCHR(st->st_mode)) {
		finding_add(f, ONE_MOMENT, "node", d->name,
			    "/dev/%s is not a device file", d->name);
		return;
	}
	if (read_word(number, sizeof(number), CLASS "/%s/dev", d->name) &&
	    sscanf(number, "%u:%u", &major, &minor) == 2 &&
	    st->st_rdev != makedev(major, minor))
		finding_add(f, ONE_MOMENT, "node", d->name,
			    "/dev/%s is the device %u:%u, and not %s", d->name,
			    major(st->st_rdev), minor(st->st_rdev), number);
	if (st->st_uid)
		finding_add(f, ONE_MOMENT, "node", d->name,
			    "/dev/%s belongs to the user %u", d->name,
			    st->st_uid);
	if (st->st_mode & 0007)
		finding_add(f, ONE_MOMENT, "node", d->name,
			    "all users may open /dev/%s (mode %04o)", d->name,
			    st->st_mode & 07777);
}

void check_node(struct findings *f, const struct device *d)
{
	char *path = path_of("/dev/%s", d->name);
	struct stat st;

	if (!lstat(path, &st))
		check_mode(f, d, &st);
	else
		finding_add(f, ONE_MOMENT, "node", d->name, "/dev/%s: %s",
			    d->name, strerror(errno));
	free(path);
}

/* The module and the command come from the same sources. Other taints than F are usual. */
void check_module(struct findings *f)
{
	char word[64];

	if (read_word(word, sizeof(word), "/sys/module/accmem/version") &&
	    strcmp(word, VERSION))
		finding_add(f, ONE_MOMENT, "version", "module",
			    "the module has the version %s, and the command %s",
			    word, VERSION);
	if (read_word(word, sizeof(word), "/sys/module/accmem/taint") &&
	    strchr(word, 'F'))
		finding_add(f, ONE_MOMENT, "taint", "module",
			    "the module was loaded by force (%s)", word);
}

/* A warning or a crash of the kernel in a function of the module; not a message of it. */
static bool is_complaint(const char *record)
{
	static const char *const words[] = { "WARNING: ", "BUG: ", "UBSAN: ",
					     "Oops: ", "RIP: " };
	const char *text = strchr(record, ';'), *module, *process;
	unsigned long priority = strtoul(record, NULL, 10);
	size_t i;

	module = text ? strstr(text, "accmem") : NULL;
	/* newer kernels add the name of the process to a warning */
	process = text ? strstr(text, ", CPU#") : NULL;
	if (!module || priority >> 3 || (process && module > process))
		return false;
	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strncmp(text + 1, words[i], strlen(words[i])))
			return true;
	}
	return false;
}

/* Call a function for each record of the log. Return false if the log cannot be read. */
bool log_walk(void (*each)(const char *record, void *arg), void *arg)
{
	char *path = path_of("/dev/kmsg"), *text = NULL, *line, *save;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	size_t size = 0;
	ssize_t n = 0;

	free(path);
	if (fd < 0)
		return false;
	/* EPIPE: the next record was overwritten. */
	while (n >= 0 || errno == EPIPE) {
		text = grow(text, size + RECORD, 1);
		n = read(fd, text + size, RECORD);
		if (!n)
			break;
		size += n > 0 ? n : 0;
	}
	close(fd);
	text[size] = '\0';
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		each(line, arg);
	free(text);
	return true;
}

struct complaints {
	unsigned int nr;
	char first[120];
};

static void count_complaint(const char *record, void *arg)
{
	struct complaints *c = arg;

	if (!is_complaint(record) || c->nr++)
		return;
	copy_word(c->first, sizeof(c->first), strchr(record, ';') + 1);
}

bool check_log(struct findings *f)
{
	struct complaints c = { 0 };

	if (!log_walk(count_complaint, &c))
		return false;
	if (c.nr)
		finding_add(f, ONE_MOMENT, "log", "kernel",
			    "%u warnings about the module, the first is: %s",
			    c.nr, c.first);
	return true;
}
