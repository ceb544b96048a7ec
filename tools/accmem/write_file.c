// SPDX-License-Identifier: GPL-2.0
/*
 * The file that a command writes. The command writes a new file, which gets the name of the
 * old file when it is complete. So no reader finds a part of it, and the old file stays if the
 * command fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accmem.h"

/* Make a file beside @path, with the mode that a new file has. */
static FILE *open_temp(const char *path, char **temp)
{
	mode_t mask = umask(0);
	FILE *f = NULL;
	int fd;

	umask(mask);
	*temp = format("%s.XXXXXX", path);
	fd = mkostemp(*temp, O_CLOEXEC);
	if (fd < 0) {
		free(*temp);
		*temp = NULL;
		return NULL;
	}
	if (!fchmod(fd, 0666 & ~mask))
		f = fdopen(fd, "w");
	if (!f)
		close(fd);
	return f;
}

/* Return false with errno if not all was written. */
static bool close_temp(FILE *f)
{
	bool written = !fflush(f) && !ferror(f);
	int err = errno;

	if (fclose(f))
		return false;
	errno = err;
	return written;
}

/*
 * Write the file @path by print(@data), or if @path is NULL, the standard output. @command is
 * for messages. Return STATUS_OK or STATUS_FAILED.
 */
int write_file(const char *command, const char *path,
	       void (*print)(FILE *f, void *data), void *data)
{
	int status = STATUS_OK;
	struct stat st;
	char *temp;
	FILE *f;

	if (!path) {
		print(stdout, data);
		return STATUS_OK;
	}
	/* rename() would also take the place of a device file or of a link */
	if (!lstat(path, &st) && !S_ISREG(st.st_mode)) {
		fprintf(stderr, "accmem: %s: %s is not a regular file\n",
			command, path);
		return STATUS_FAILED;
	}
	f = open_temp(path, &temp);
	if (f)
		print(f, data);
	if (!f || !close_temp(f) || rename(temp, path)) {
		fprintf(stderr, "accmem: %s: %s: %s\n", command, path,
			strerror(errno));
		status = STATUS_FAILED;
		if (temp)
			unlink(temp);
	}
	free(temp);
	return status;
}
