// SPDX-License-Identifier: GPL-2.0
/*
 * Output to a terminal or a file: its width, colors, and numbers as text.
 *
 * Colors are used on a terminal only, and not if NO_COLOR is set and not empty
 * (no-color.org), or if TERM is unset or "dumb".
 */
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "accmem.h"

#define WIDTH_DEFAULT 80
#define WIDTH_LEAST 40
#define WIDTH_MOST 500

bool output_is_terminal(void)
{
	return isatty(STDOUT_FILENO);
}

/* Return the columns of the terminal, else the value of COLUMNS, else 80; within 40 to 500. */
int output_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	int width = 0;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	else if (columns)
		width = atoi(columns);
	if (width <= 0)
		return WIDTH_DEFAULT;
	if (width < WIDTH_LEAST)
		return WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : width;
}

/* Return true if the user wants no colors. */
bool colors_are_off(void)
{
	const char *no = getenv("NO_COLOR");

	return no && *no;
}

static bool may_color(void)
{
	const char *term = getenv("TERM");

	return output_is_terminal() && !colors_are_off() && term &&
	       strcmp(term, "dumb");
}

void output_color(enum color color)
{
	static const char *const codes[] = {
		[PLAIN] = "0",	  [BOLD] = "1", [GREEN] = "32", [YELLOW] = "33",
		[MAGENTA] = "35", [RED] = "31", [BLUE] = "34",	[CYAN] = "36",
	};

	if (may_color())
		printf("\033[%sm", codes[color]);
}

/* Return the bytes with three digits, in the largest unit in which they are at least 1. */
const char *size_text(uint64_t bytes, char text[16])
{
	static const char units[] = "KMGTPE";
	double value = bytes;
	int unit = -1;

	if (bytes == UNKNOWN)
		return "?";
	while (value >= 1024 || (unit >= 0 && value >= 999.5)) {
		value /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(text, 16, "%u", (unsigned int)bytes);
	else
		snprintf(text, 16, "%.*f%c",
			 value < 9.995 ? 2 :
			 value < 99.95 ? 1 :
					 0,
			 value, units[unit]);
	return text;
}

const char *number_text(uint64_t number, char text[32])
{
	if (number == UNKNOWN)
		return "?";
	snprintf(text, 32, "%llu", (unsigned long long)number);
	return text;
}

/*
 * Return the name of a user, or the number if the user has no name. Most lines are about the
 * same user: the last name is kept, since each search reads files.
 */
const char *user_text(uint64_t uid, char text[33])
{
	static uint64_t last = UNKNOWN;
	static char name[33];
	struct passwd *user;

	if (uid == UNKNOWN)
		return "?";
	if (uid != last) {
		user = getpwuid(uid);
		if (user)
			copy_word(name, sizeof(name), user->pw_name);
		else
			snprintf(name, sizeof(name), "%llu",
				 (unsigned long long)uid);
		last = uid;
	}
	memcpy(text, name, sizeof(name));
	return text;
}

/* Return the first process that has a context open, and the number of the others. */
const char *pids_text(const struct context *c, char text[32])
{
	if (!c->nr_pids)
		return "?";
	if (c->nr_pids > 1)
		snprintf(text, 32, "%d+%zu", c->pids[0], c->nr_pids - 1);
	else
		snprintf(text, 32, "%d", c->pids[0]);
	return text;
}
