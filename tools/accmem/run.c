// SPDX-License-Identifier: GPL-2.0
/*
 * accmem run: run a program with its large heap allocations on the memory of a device.
 *
 * The command adds the preload library and its settings to the environment, and executes
 * the program. A program into which the library cannot be preloaded runs without it: a
 * static program, a program with other privileges than its caller, or a 32-bit program.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "accmem.h"

#define LIBRARY "libaccmem_preload.so"

static const char usage[] =
	"usage: accmem run [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
	"  --device PATH      /dev/accmem0\n"
	"  --threshold SIZE   smallest allocation on the device (16M)\n"
	"  --limit SIZE       most bytes on the device\n"
	"  --stats[=FILE]     a line at the exit of each process\n";

/* Path of the library: beside this program after a build, else the installed path. */
static bool find_library(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (length > 0) {
		path[length] = 0;
		slash = strrchr(path, '/');
		if (slash && slash + sizeof(LIBRARY) < path + size) {
			memcpy(slash + 1, LIBRARY, sizeof(LIBRARY));
			if (!access(path, R_OK))
				return true;
		}
	}
	snprintf(path, size, "%s/accmem/%s", LIBDIR, LIBRARY);
	return !access(path, R_OK);
}

/* Find the file that execvp() would execute. Return false if there is none. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dirs = getenv("PATH"), *end;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return true;
	}
	for (dirs = dirs ? dirs : "/bin:/usr/bin";; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		snprintf(path, size, "%.*s%s%s", (int)(end - dirs), dirs,
			 end == dirs ? "" : "/", name);
		if (!stat(path, &st) && S_ISREG(st.st_mode) &&
		    !access(path, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
	Elf64_Phdr entry;
	unsigned int i;

	for (i = 0; i < header->e_phnum; i++) {
		if (pread(fd, &entry, sizeof(entry),
			  (off_t)header->e_phoff + i * sizeof(entry)) !=
		    sizeof(entry))
			return false;
		if (entry.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/*
 * Return the reason why the library cannot be preloaded; NULL if it can be, or if the
 * file is a script.
 */
static const char *why_not(const char *path)
{
	const char *reason = NULL;
	Elf64_Ehdr header;
	struct stat st;
	int fd;

	if (!stat(path, &st) && st.st_mode & (S_ISUID | S_ISGID))
		return "it is setuid or setgid";
	if (getxattr(path, "security.capability", NULL, 0) > 0)
		return "it has capabilities of its own";
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (pread(fd, &header, sizeof(header), 0) == sizeof(header) &&
	    !memcmp(header.e_ident, ELFMAG, SELFMAG)) {
		if (header.e_ident[EI_CLASS] != ELFCLASS64)
			reason = "it is a 32-bit program";
		else if (!has_interpreter(fd, &header))
			reason = "it is statically linked";
	}
	close(fd);
	return reason;
}

static void set(const char *name, const char *value)
{
	if (setenv(name, value, 1)) {
		perror("accmem run");
		exit(125);
	}
}

/* Put the library before the libraries that the caller preloads. */
static void preload(const char *library)
{
	const char *others = getenv("LD_PRELOAD");
	char *list = NULL;

	/* The dynamic linker ends a path at the first two, and replaces what begins with "$". */
	if (strpbrk(library, " :$")) {
		fprintf(stderr, "accmem run: %s: cannot be preloaded\n",
			library);
		exit(125);
	}
	if (asprintf(&list, "%s%s%s", library, others ? ":" : "",
		     others ? others : "") < 0)
		exit(125);
	set("LD_PRELOAD", list);
	free(list);
}

/* Put the bytes of a number with an optional suffix K, M, G or T in the environment. */
static void set_size(const char *name, const char *text)
{
	char number[32];
	uint64_t bytes;

	if (!size_parse(text, &bytes)) {
		fprintf(stderr, "accmem run: %s is no size\n", text);
		exit(125);
	}
	snprintf(number, sizeof(number), "%" PRIu64, bytes);
	set(name, number);
}

/*
 * The programs may change their directory, so that they get an absolute path. A regular file is
 * opened here once, to find errors. An open and close of a pipe would end its reader.
 */
static void set_file(const char *name, const char *path)
{
	char *directory = *path == '/' ? strdup("") : getcwd(NULL, 0);
	struct stat st;
	char *absolute;
	int fd;

	if (!directory || asprintf(&absolute, "%s%s%s", directory,
				   *path == '/' ? "" : "/", path) < 0) {
		perror("accmem run");
		exit(125);
	}
	if (stat(path, &st) || S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			  0666);
		if (fd < 0) {
			fprintf(stderr, "accmem run: %s: %s\n", path,
				strerror(errno));
			exit(125);
		}
		close(fd);
	}
	set(name, absolute);
	free(absolute);
	free(directory);
}

static void option(int which, const char *argument)
{
	static const char *const names[] = {
		"ACCMEM_RUN_DEVICE",
		"ACCMEM_RUN_STATS",
		"ACCMEM_RUN_THRESHOLD",
		"ACCMEM_RUN_LIMIT",
	};

	if (which >= 2)
		set_size(names[which], argument);
	else if (which == 1 && argument)
		set_file(names[which], argument);
	else
		set(names[which], argument ? argument : "1");
}

static int help(FILE *to, int status)
{
	fputs(usage, to);
	return status;
}

/* Exit with the status of a shell that cannot start a program. */
static int become(char **argv)
{
	char library[PATH_MAX], program[PATH_MAX];
	const char *reason = NULL;

	if (find_program(argv[0], program, sizeof(program)))
		reason = why_not(program);
	if (reason)
		fprintf(stderr, "accmem run: %s: %s: left alone\n", program,
			reason);
	if (!reason && !find_library(library, sizeof(library))) {
		fprintf(stderr, "accmem run: no %s\n", library);
		return 125;
	}
	if (!reason)
		preload(library);
	execvp(argv[0], argv);
	fprintf(stderr, "accmem run: %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}

int command_run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "device", required_argument, NULL, 0 },
		{ "stats", optional_argument, NULL, 1 },
		{ "threshold", required_argument, NULL, 2 },
		{ "limit", required_argument, NULL, 3 },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int which;

	while ((which = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (which == 'h')
			return help(stdout, 0);
		if (which == '?')
			return help(stderr, 125);
		option(which, optarg);
	}
	if (optind == argc)
		return help(stderr, 125);
	return become(argv + optind);
}
