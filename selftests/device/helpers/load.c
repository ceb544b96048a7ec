// SPDX-License-Identifier: GPL-2.0
/*
 * Loads a module as insmod does, and asks the kernel once: the insmod of busybox
 * loads what was refused a second time, through an older call.
 *
 * Usage: load FILE [PARAMETER=VALUE...]
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char parameters[1 << 17];
	size_t used = 0;
	int fd, i;

	if (argc < 2)
		errx(2, "usage: load FILE [PARAMETER=VALUE...]");
	for (i = 2; i < argc && used < sizeof(parameters); i++) {
		char *value = strchr(argv[i], '=');
		/* the kernel separates parameters by spaces */
		const char *quote = value && strchr(value, ' ') ? "\"" : "";
		int name = value ? value + 1 - argv[i] : (int)strlen(argv[i]);

		used += snprintf(parameters + used, sizeof(parameters) - used,
				 "%s%.*s%s%s%s", used ? " " : "", name, argv[i],
				 quote, argv[i] + name, quote);
	}
	if (used >= sizeof(parameters))
		errx(2, "too many parameters");
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", argv[1]);
	if (syscall(SYS_finit_module, fd, parameters, 0))
		err(1, "%s is refused", argv[1]);
	return 0;
}
