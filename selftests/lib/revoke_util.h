/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for the tests of revoked devices: reset, unbind and bind of a device that the
 * module made for a description, and its state in sysfs. The calls return 0 or a
 * negative errno value.
 */
#ifndef REVOKE_UTIL_H
#define REVOKE_UTIL_H

#include <dirent.h>
#include <err.h>
#include <limits.h>
#include <setjmp.h>

#include "accmem_test.h"

#define REVOKE_PATIENCE_MS 20000

/* the platform device of /dev/accmemN, which stays while the driver comes and goes */
struct target {
	char name[64]; /* accmem-emulated.0.auto */
	char driver[32]; /* accmem-emulated */
	char path[64]; /* /dev/accmemN, as it was at target_find() */
};

static inline int write_text(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

static inline void target_find(struct target *t, const char *path)
{
	char link[PATH_MAX], file[128];
	ssize_t n;

	accmem_skip_without(path);
	memset(t, 0, sizeof(*t));
	snprintf(t->path, sizeof(t->path), "%s", path);
	accmem_sysfs_file(path, "device", file, sizeof(file));
	n = readlink(file, link, sizeof(link) - 1);
	if (n < 0)
		err(1, "%s", file);
	link[n] = 0;
	snprintf(t->name, sizeof(t->name), "%s", basename(link));
	snprintf(t->driver, sizeof(t->driver), "%.*s",
		 (int)strcspn(t->name, "."), t->name);
}

static inline int target_write(const struct target *t, const char *file,
			       const char *text)
{
	char name[128];

	snprintf(name, sizeof(name), "/sys/bus/platform/drivers/%s/%s",
		 t->driver, file);
	return write_text(name, text);
}

static inline int target_unbind(const struct target *t)
{
	return target_write(t, "unbind", t->name);
}

static inline int target_bind(const struct target *t)
{
	return target_write(t, "bind", t->name);
}

/* The path of the node of the accmem device below a device in sysfs, or false. */
static inline bool device_node(const char *directory, char *path, size_t size)
{
	struct dirent *entry;
	bool found = false;
	char name[128];
	DIR *dir;

	snprintf(name, sizeof(name), "%.110s/accmem", directory);
	dir = opendir(name);
	while (dir && !found && (entry = readdir(dir))) {
		found = !strncmp(entry->d_name, "accmem", 6);
		if (found)
			snprintf(path, size, "/dev/%.32s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static inline void target_directory(const struct target *t, char *directory,
				    size_t size)
{
	snprintf(directory, size, "/sys/bus/platform/devices/%s", t->name);
}

/* The path of the device node of the bound target, or false. */
static inline bool target_node(const struct target *t, char *path, size_t size)
{
	char directory[128];

	target_directory(t, directory, sizeof(directory));
	return device_node(directory, path, size);
}

/*
 * Bind the target until its device has the number of before: all holders of the device
 * must have gone. False after a while.
 */
static inline bool target_restore(const struct target *t)
{
	uint64_t until = accmem_ms() + REVOKE_PATIENCE_MS;
	char path[64];

	for (;;) {
		if (target_node(t, path, sizeof(path))) {
			if (!strcmp(path, t->path))
				return true;
			target_unbind(t);
		} else {
			target_bind(t);
			if (target_node(t, path, sizeof(path)))
				continue;
		}
		if (accmem_ms() > until)
			return false;
		usleep(10000);
	}
}

static inline int device_reset_with(const char *path, const char *text)
{
	char file[128];

	accmem_sysfs_file(path, "reset", file, sizeof(file));
	return write_text(file, text);
}

static inline int device_reset(const char *path)
{
	return device_reset_with(path, "1");
}

/*
 * accmem_try_read() for several threads: SIGBUS is caught for good after
 * bus_is_caught().
 */
static __thread sigjmp_buf bus_jump;

static void bus_handler(int sig)
{
	siglongjmp(bus_jump, sig);
}

static inline void bus_is_caught(void)
{
	struct sigaction action = { .sa_handler = bus_handler };

	sigaction(SIGBUS, &action, NULL);
}

/* false if an access of @p raises SIGBUS */
static inline bool bus_try(volatile char *p, bool write)
{
	if (sigsetjmp(bus_jump, 1))
		return false;
	if (write)
		*p = 1;
	else
		(void)*p;
	return true;
}

/* the signal of a read and of a write at @p, which must be the same; else -1 */
static inline int signal_at(volatile void *p)
{
	uint64_t value;
	int sig = accmem_try_read(p, &value);

	return accmem_try_write(p, 1) == sig ? sig : -1;
}

static inline int revents_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) < 0 ? -errno : p.revents;
}

/* a byte of a buffer, as the device reads it, or -errno */
static inline int device_byte(int fd, uint64_t address)
{
	unsigned char byte = 0;
	struct accmem_access x = { .address = address,
				   .length = 1,
				   .data = (uintptr_t)&byte };

	return accmem_ioctl_access(fd, &x) ?: byte;
}

static inline int device_fill(int fd, uint64_t address, uint64_t length,
			      unsigned char byte)
{
	struct accmem_access x = { .address = address,
				   .length = length,
				   .op = ACCMEM_ACCESS_FILL,
				   .data = byte };

	return accmem_ioctl_access(fd, &x);
}

#endif /* REVOKE_UTIL_H */
