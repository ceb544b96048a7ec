// SPDX-License-Identifier: GPL-2.0
/*
 * Reading and writing files of sysfs, debugfs and /proc, and allocation of memory. When an
 * allocation fails, the command prints a message and ends.
 *
 * All paths begin in the directory that ACCMEM_SYSROOT names. The variable is for tests, which
 * change a copy of the files.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"

static void *checked(void *memory)
{
	if (!memory) {
		fputs("accmem: no memory\n", stderr);
		exit(STATUS_FAILED);
	}
	return memory;
}

/* Allocate @nr elements of zeros. */
void *xcalloc(size_t nr, size_t size)
{
	return checked(calloc(nr ? nr : 1, size));
}

/* Make room for @nr elements of an array. */
void *resize(void *array, size_t nr, size_t size)
{
	return checked(reallocarray(array, nr, size));
}

/* Make room for one more element of an array that has @nr of them. */
void *grow(void *array, size_t nr, size_t size)
{
	char *bigger = resize(array, nr + 1, size);

	memset(bigger + nr * size, 0, size);
	return bigger;
}

/*
 * Grow an array of *@nr elements so that it has the element @index. All bytes of new elements
 * are @fill. *@nr doubles, so that a loop over indexes takes linear time.
 */
void *reach(void *array, uint32_t *nr, uint32_t index, size_t size, int fill)
{
	uint32_t n = *nr;

	if (index < n)
		return array;
	while (index >= n)
		n = n ? 2 * n : 64;
	array = resize(array, n, size);
	memset((char *)array + *nr * size, fill, (n - *nr) * size);
	*nr = n;
	return array;
}

/* Return the name of a file without its directory and its extension. */
char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *name = checked(strdup(slash ? slash + 1 : path));
	char *dot = strrchr(name, '.');

	if (dot && dot != name)
		*dot = '\0';
	return name;
}

/*
 * Read on to the next line of a trace that is neither empty nor a comment. Return it without
 * the blanks before it; NULL at the end or after an error. *@number counts the lines.
 */
char *trace_line(FILE *file, char **line, size_t *room, unsigned long *number)
{
	char *text;

	while (getline(line, room, file) > 0) {
		++*number;
		text = *line + strspn(*line, " \t\r\n");
		if (*text && *text != '#')
			return text;
	}
	return NULL;
}

char *vformat(const char *fmt, va_list list)
{
	char *text = NULL;

	if (vasprintf(&text, fmt, list) < 0)
		text = NULL;
	return checked(text);
}

char *format(const char *fmt, ...)
{
	va_list list;
	char *text;

	va_start(list, fmt);
	text = vformat(fmt, list);
	va_end(list);
	return text;
}

static char *path_list(const char *fmt, va_list list)
{
	const char *sysroot = getenv("ACCMEM_SYSROOT");
	char *path = vformat(fmt, list), *whole;

	whole = format("%s%s", sysroot ? sysroot : "", path);
	free(path);
	return whole;
}

/* Return the path of a file in the directory that ACCMEM_SYSROOT names. */
char *path_of(const char *fmt, ...)
{
	va_list list;
	char *path;

	va_start(list, fmt);
	path = path_list(fmt, list);
	va_end(list);
	return path;
}

bool path_exists(const char *fmt, ...)
{
	va_list list;
	bool exists;
	char *path;

	va_start(list, fmt);
	path = path_list(fmt, list);
	va_end(list);
	exists = !access(path, F_OK);
	free(path);
	return exists;
}

/* Return why the files of debugfs cannot be read. */
const char *why_hidden(void)
{
	return geteuid() ?
		       "only root may read them" :
		       "debugfs is not mounted at /sys/kernel/debug, or the kernel is locked down";
}

/* Copy the last name of the path in a symbolic link; nothing if there is no link. */
void read_link(char *word, size_t size, const char *fmt, ...)
{
	char target[PATH_MAX], *path, *slash;
	ssize_t length;
	va_list list;

	va_start(list, fmt);
	path = path_list(fmt, list);
	va_end(list);
	length = readlink(path, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	slash = strrchr(target, '/');
	copy_word(word, size, slash ? slash + 1 : target);
	free(path);
}

/* Return the content of a file; NULL with errno if it cannot be read. */
static char *read_all(const char *fmt, va_list list)
{
	char *path = path_list(fmt, list), *text;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0, room = 4096;
	ssize_t n;

	free(path);
	if (fd < 0)
		return NULL;
	text = checked(malloc(room));
	while ((n = read(fd, text + size, room - 1 - size)) > 0) {
		size += n;
		if (room - 1 == size) {
			room *= 2;
			text = checked(realloc(text, room));
		}
	}
	close(fd);
	text[size] = '\0';
	if (n < 0) {
		free(text);
		text = NULL;
	}
	return text;
}

char *read_text(const char *fmt, ...)
{
	char *text;
	va_list list;

	va_start(list, fmt);
	text = read_all(fmt, list);
	va_end(list);
	return text;
}

/*
 * Copy a word that an untrusted program may have chosen, up to the first line feed. Bytes that
 * are not printable ASCII become '?', since they could control the terminal.
 */
void copy_word(char *to, size_t size, const char *from)
{
	size_t i;

	for (i = 0; i + 1 < size && from[i] && from[i] != '\n'; i++)
		to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
	to[i] = '\0';
}

bool read_word(char *word, size_t size, const char *fmt, ...)
{
	char *text;
	va_list list;

	va_start(list, fmt);
	text = read_all(fmt, list);
	va_end(list);
	copy_word(word, size, text ? text : "");
	free(text);
	return text;
}

uint64_t read_number(const char *fmt, ...)
{
	uint64_t number = UNKNOWN;
	char *text, *end;
	va_list list;

	va_start(list, fmt);
	text = read_all(fmt, list);
	va_end(list);
	if (text) {
		number = strtoull(text, &end, 10);
		if (end == text || *end != '\n')
			number = UNKNOWN;
	}
	free(text);
	return number;
}

/* Write text in one system call, as files of sysfs require. Return 0 or -errno. */
int write_text(const char *text, const char *fmt, ...)
{
	va_list list;
	int fd, err;
	char *path;

	va_start(list, fmt);
	path = path_list(fmt, list);
	va_end(list);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	err = fd < 0 ? -errno : 0;
	if (!err && write(fd, text, strlen(text)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	free(path);
	return err;
}
