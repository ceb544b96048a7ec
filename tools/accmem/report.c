// SPDX-License-Identifier: GPL-2.0
/*
 * accmem check --report: versions, parameters, the files of the devices and the kernel's
 * messages about the module, as far as the caller may read them.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "check.h"

#define LINES 200 /* of one file */
#define WIDTH 400 /* of one line */

static void print_heading(const char *heading)
{
	printf("\n== %s\n", heading);
}

/* Print a file, without characters that control a terminal. */
static void print_file(const char *path)
{
	char *text = read_text("%s", path), *line, *save;
	char copy[WIDTH];
	size_t nr = 0;

	if (!text)
		return;
	printf("-- %s\n", path);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		copy_word(copy, sizeof(copy), line);
		if (nr++ < LINES)
			puts(copy);
	}
	if (nr > LINES)
		printf("(%zu more lines)\n", nr - LINES);
	free(text);
}

static int is_shown(const struct dirent *entry)
{
	return *entry->d_name != '.';
}

/* Print the files of a directory in one order, and those of its carveouts. */
static void print_directory(const char *directory, bool inner)
{
	char *path = path_of("%s", directory), *name, *whole;
	struct dirent **entries;
	struct stat st;
	int nr = scandir(path, &entries, is_shown, alphasort), i;

	for (i = 0; i < nr; i++) {
		name = format("%s/%s", directory, entries[i]->d_name);
		whole = path_of("%s", name);
		if (lstat(whole, &st))
			st.st_mode = 0;
		if (S_ISREG(st.st_mode) && (st.st_mode & 0444))
			print_file(name);
		else if (S_ISDIR(st.st_mode) && inner &&
			 (!strncmp(entries[i]->d_name, "carveout", 8) ||
			  !strcmp(entries[i]->d_name, "host")))
			print_directory(name, false);
		free(whole);
		free(name);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
	free(path);
}

static void print_versions(void)
{
	struct utsname name;

	print_heading("versions");
	printf("command: %s\n", VERSION);
	if (!uname(&name))
		printf("kernel: %s %s %s\n", name.release, name.version,
		       name.machine);
	print_file("/sys/module/accmem/version");
	print_file("/sys/module/accmem/srcversion");
	print_file("/sys/module/accmem/taint");
	print_file("/proc/sys/kernel/tainted");
	print_file("/etc/os-release");
}

static void print_message(const char *record, void *arg)
{
	const char *text = strchr(record, ';');
	char copy[WIDTH];

	(void)arg;
	if (!text || !strstr(text, "accmem"))
		return;
	copy_word(copy, sizeof(copy), text + 1);
	puts(copy);
}

void report_print(const struct snapshot *s, const char *only)
{
	size_t i;
	char *path;

	print_versions();
	print_heading("parameters");
	print_directory(PARAMETERS, false);
	print_file(DEBUGFS "/users");
	for (i = 0; i < s->nr_devices; i++) {
		if (only && strcmp(only, s->devices[i].name))
			continue;
		print_heading(s->devices[i].name);
		printf("device: %s, driver: %s\n", s->devices[i].parent,
		       s->devices[i].driver);
		path = format(CLASS "/%s", s->devices[i].name);
		print_directory(path, true);
		free(path);
		path = format(DEBUGFS "/%s", s->devices[i].name);
		print_directory(path, false);
		free(path);
	}
	print_heading("messages of the kernel");
	log_walk(print_message, NULL);
}
