// SPDX-License-Identifier: GPL-2.0
/*
 * accmem top: a table of the processes, drawn again and again. Keys choose the order, and the
 * process whose buffers and streams are shown.
 */
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accmem.h"
#include "tmem.h"

#define SECONDS 1.0
#define MEMORY_TEXT 63 /* columns of a memory's line without its bar */

static const char usage[] =
	"usage: accmem top [--watch=SECONDS]\n"
	"A table of the processes, drawn again each second. Keys: l, c, w, p sort by live\n"
	"bytes, charged bytes, waiting calls, process; arrows select a process, Enter shows its\n"
	"buffers and streams, t its Tensor Memory (root); q ends.\n";

struct top {
	struct snapshot s;
	struct context *rows; /* processes, in the order of the table */
	size_t nr_rows;
	size_t selected;
	pid_t pid; /* the process that is opened, or 0 */
	bool tmem; /* its Tensor Memory is shown, else its streams and buffers */
	size_t scroll; /* first line of its details */
	char order;
};

#define ROW "%7s %-8.8s %-15s %-8s %7s %6s %7s %7s %7s %6s %s"

static enum use order_use(char order)
{
	return order == 'w' ? USE_WAITING :
	       order == 'c' ? USE_CHARGED :
			      USE_LIVE;
}

static int compare_rows(const void *a, const void *b, void *arg)
{
	const struct context *x = a, *y = b;
	char order = *(char *)arg;
	uint64_t left = x->use[order_use(order)], right;

	right = y->use[order_use(order)];
	left = left == UNKNOWN ? 0 : left;
	right = right == UNKNOWN ? 0 : right;
	if (order != 'p' && left != right)
		return left < right ? 1 : -1;
	left = x->nr_pids ? x->pids[0] : 0;
	right = y->nr_pids ? y->pids[0] : 0;
	if (left != right)
		return left > right ? 1 : -1;
	return strverscmp(x->device, y->device);
}

/* Draw text in a line, cut to the screen: curses would continue in the next line. */
static void draw_text(int line, const char *text)
{
	if (line >= 0 && line < LINES - 1)
		mvaddnstr(line, 0, text, COLS);
}

static void draw_memory(int line, const char *device, const struct memory *m)
{
	int width = COLS - MEMORY_TEXT, used;
	char text[512], bar[256], size[3][16];

	if (m->value[FREE] == UNKNOWN || !m->value[CAPACITY]) {
		snprintf(text, sizeof(text), "%-9s %-10s %s", device, m->name,
			 size_text(m->value[CAPACITY], size[0]));
		draw_text(line, text);
		return;
	}
	width = width < 8 ? 8 : width > 200 ? 200 : width;
	/* The two numbers are read one after the other: the device may be another one. */
	used = m->value[FREE] > m->value[CAPACITY] ?
		       0 :
		       (double)(m->value[CAPACITY] - m->value[FREE]) /
				       m->value[CAPACITY] * width +
			       0.5;
	memset(bar, '.', width);
	memset(bar, '#', used);
	bar[width] = '\0';
	snprintf(text, sizeof(text),
		 "%-9s %-10s [%s] %s free of %s, largest run %s", device,
		 m->name, bar, size_text(m->value[FREE], size[0]),
		 size_text(m->value[CAPACITY], size[1]),
		 size_text(m->value[LARGEST], size[2]));
	draw_text(line, text);
	if (line < LINES - 1)
		mvchgat(line, 22, used, A_NORMAL, 1, NULL);
}

/* Draw the carveouts of a device, and host memory if some is used. Return the next line. */
static int draw_device(const struct device *d, int line)
{
	char text[80];
	size_t i;

	for (i = 0; i < d->nr_memories; i++) {
		const struct memory *m = &d->memories[i];

		if (!strcmp(m->name, "host") &&
		    m->value[FREE] == m->value[CAPACITY])
			continue;
		draw_memory(line++, d->name, m);
	}
	if (d->nr_waiting && d->nr_waiting != UNKNOWN) {
		snprintf(text, sizeof(text),
			 "%-9s requests that wait for memory: %llu", d->name,
			 (unsigned long long)d->nr_waiting);
		draw_text(line++, text);
	}
	return line;
}

/* The devices have at most half of the screen. Return the line of the table. */
static int draw_devices(const struct snapshot *s)
{
	const int most = LINES / 2 > 4 ? LINES / 2 : 4;
	char text[80];
	int line = 0;
	size_t i;

	for (i = 0; i < s->nr_devices; i++) {
		const struct device *d = &s->devices[i];

		/* a line of each memory, one of waiters, and one for what is left out */
		if (line + (int)d->nr_memories + 2 > most && i) {
			snprintf(text, sizeof(text), "and %zu more devices",
				 s->nr_devices - i);
			draw_text(line++, text);
			break;
		}
		line = draw_device(d, line);
	}
	return line + 1;
}

static void draw_row(int line, const struct context *c)
{
	char text[256], user[33], pid[32], n[2][32], size[4][16];

	snprintf(text, sizeof(text), ROW, pids_text(c, pid),
		 user_text(c->uid, user), c->comm, c->device,
		 number_text(c->use[USE_BUFFERS], n[0]),
		 size_text(c->use[USE_LIVE], size[0]),
		 size_text(c->use[USE_PENDING], size[1]),
		 size_text(c->use[USE_CHARGED], size[2]),
		 number_text(c->use[USE_WAITING], n[1]),
		 size_text(c->use[USE_HOST], size[3]),
		 c->open ? "open" : "closed");
	draw_text(line, text);
}

static void draw_table(const struct top *t, int line)
{
	int room = LINES - line - 2;
	size_t first = 0, i;
	char text[256];

	snprintf(text, sizeof(text), ROW, "PID", "USER", "COMMAND", "DEVICE",
		 "BUFFERS", "LIVE", "PENDING", "CHARGED", "WAITING", "HOST",
		 "STATE");
	attron(A_BOLD);
	draw_text(line++, text);
	attroff(A_BOLD);
	if (room > 0 && t->selected >= (size_t)room)
		first = t->selected - room + 1;
	for (i = first; i < t->nr_rows; i++) {
		if (i == t->selected)
			attron(A_REVERSE);
		draw_row(line++, &t->rows[i]);
		attroff(A_REVERSE);
	}
}

static bool is_opened(const struct top *t, const char *device, uint64_t id)
{
	const struct context *c = snapshot_context(&t->s, device, id);

	return c && c->nr_pids && c->pids[0] == t->pid;
}

/* Draw a line of the details, unless it is scrolled away or below the screen. */
static void draw_detail(const struct top *t, int first, size_t *nr,
			const char *text)
{
	size_t n = (*nr)++;

	if (n >= t->scroll)
		draw_text(first + (n - t->scroll), text);
}

static void draw_streams(const struct top *t, const char *device, int first,
			 size_t *nr)
{
	char *text = read_text(DEBUGFS "/%s/streams", device), *line, *save;
	unsigned long long context, stream, reached, claimed, pending;
	char detail[192];

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "%llu %llu %llu %llu %llu", &context, &stream,
			   &reached, &claimed, &pending) != 5 ||
		    !is_opened(t, device, context))
			continue;
		snprintf(detail, sizeof(detail),
			 "%s context %llu: stream %llu at %llu, claimed up to %llu, pending buffers %llu",
			 device, context, stream, reached, claimed, pending);
		draw_detail(t, first, nr, detail);
	}
	free(text);
}

static void draw_hidden(const struct top *t, int first, size_t *nr,
			const char *what)
{
	char *detail = format("The %s: %s.", what, why_hidden());

	draw_detail(t, first, nr, detail);
	free(detail);
}

static void draw_buffers(const struct top *t, const char *device, int first,
			 size_t *nr)
{
	struct buffer *buffers = NULL;
	size_t nr_buffers = 0, i;
	char *detail, size[16];

	if (!buffers_read(&buffers, &nr_buffers, device))
		draw_hidden(t, first, nr, "buffers");
	for (i = 0; i < nr_buffers; i++) {
		const struct buffer *b = &buffers[i];

		if (!is_opened(t, device, b->context))
			continue;
		detail =
			format("%s context %llu: buffer %#llx of %s, %u run%s%s%s",
			       device, (unsigned long long)b->context,
			       (unsigned long long)b->address,
			       size_text(b->length, size), b->runs,
			       b->runs == 1 ? "" : "s", b->host ? ", host" : "",
			       b->mapped ? ", mapped" : "");
		draw_detail(t, first, nr, detail);
		free(detail);
	}
	free(buffers);
}

static void draw_sm(const struct top *t, const struct tmem *tmem,
		    const struct tmem_sm *sm, int first, size_t *nr)
{
	char detail[192];
	size_t i;

	snprintf(detail, sizeof(detail), "%s context %llu: SM %u |%s| %u free",
		 tmem->device, (unsigned long long)tmem->context, sm->number,
		 sm->units, sm->free);
	draw_detail(t, first, nr, detail);
	for (i = 0; i < sm->nr_ctas; i++) {
		const struct tmem_cta *cta = &sm->ctas[i];

		snprintf(detail, sizeof(detail),
			 "  %c CTA %llu %s %u columns%s, launch %#llx, cluster %u, rank %u",
			 cta->letter, (unsigned long long)cta->id,
			 cta->waits ? "waits for" : "holds", cta->columns,
			 cta->permit ? " and the permit" : "",
			 (unsigned long long)cta->launch, cta->cluster,
			 cta->rank);
		draw_detail(t, first, nr, detail);
	}
}

static void draw_tmem(const struct top *t, const char *device, int first,
		      size_t *nr)
{
	struct tmem *list = NULL;
	size_t nr_list = 0, i, n;

	if (!tmem_read(&list, &nr_list, device))
		draw_hidden(t, first, nr, "SMs");
	for (i = 0; i < nr_list; i++) {
		if (!is_opened(t, device, list[i].context))
			continue;
		for (n = 0; n < list[i].nr_sms; n++)
			draw_sm(t, &list[i], &list[i].sms[n], first, nr);
	}
	tmem_free(list, nr_list);
}

/* Is there an earlier row with the process and the device of a row? */
static bool is_repeated(const struct top *t, size_t row)
{
	const struct context *c = &t->rows[row];
	size_t i;

	for (i = 0; i < row; i++) {
		if (t->rows[i].nr_pids && t->rows[i].pids[0] == c->pids[0] &&
		    !strcmp(t->rows[i].device, c->device))
			return true;
	}
	return false;
}

static void draw_details(struct top *t, int line)
{
	size_t nr = 0, i;
	char text[64];

	snprintf(text, sizeof(text), "Process %d: %s", t->pid,
		 t->tmem ? "Tensor Memory" : "streams and buffers");
	attron(A_BOLD);
	draw_text(line++, text);
	attroff(A_BOLD);
	for (i = 0; i < t->nr_rows; i++) {
		const struct context *c = &t->rows[i];

		if (!c->nr_pids || c->pids[0] != t->pid || is_repeated(t, i))
			continue;
		if (t->tmem) {
			draw_tmem(t, c->device, line, &nr);
		} else {
			draw_streams(t, c->device, line, &nr);
			draw_buffers(t, c->device, line, &nr);
		}
	}
	if (t->scroll && t->scroll >= nr)
		t->scroll = nr ? nr - 1 : 0;
}

static void draw(struct top *t)
{
	int line;

	erase();
	line = draw_devices(&t->s);
	if (t->pid)
		draw_details(t, line);
	else
		draw_table(t, line);
	mvaddnstr(LINES - 1, 0,
		  t->pid ?
			  "Enter: buffers  t: Tensor Memory  again: back  arrows: scroll  q: end" :
			  "l c w p: sort  arrows: select  Enter: buffers  t: Tensor Memory  q: end",
		  COLS);
	refresh();
}

static void refill(struct top *t)
{
	free(t->rows);
	snapshot_free(&t->s);
	snapshot_read(&t->s);
	t->rows = processes_merge(&t->s, &t->nr_rows);
	qsort_r(t->rows, t->nr_rows, sizeof(*t->rows), compare_rows, &t->order);
	if (t->selected >= t->nr_rows)
		t->selected = t->nr_rows ? t->nr_rows - 1 : 0;
}

static void move_by(struct top *t, int step)
{
	size_t *at = t->pid ? &t->scroll : &t->selected;

	if (step > 0 && (t->pid || t->selected + 1 < t->nr_rows))
		++*at;
	else if (step < 0 && *at)
		--*at;
}

static void open_selected(struct top *t, bool tmem)
{
	if (t->pid && t->tmem == tmem)
		t->pid = 0;
	else if (!t->pid && t->nr_rows && t->rows[t->selected].nr_pids)
		t->pid = t->rows[t->selected].pids[0];
	t->tmem = tmem;
	t->scroll = 0;
}

/* Return false if the key ends the command. */
static bool obey(struct top *t, int key)
{
	switch (key) {
	case 'q':
		return false;
	case 'l':
	case 'c':
	case 'w':
	case 'p':
		t->order = key;
		break;
	case KEY_UP:
		move_by(t, -1);
		break;
	case KEY_DOWN:
		move_by(t, 1);
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		open_selected(t, false);
		break;
	case 't':
		open_selected(t, true);
		break;
	}
	return true;
}

static void start_colors(void)
{
	if (has_colors() && !colors_are_off()) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_GREEN, -1);
	}
}

/* A terminal that is gone has no key, without a wait. */
static bool is_hung_up(void)
{
	struct pollfd terminal = { .fd = STDIN_FILENO };

	return poll(&terminal, 1, 0) > 0;
}

static volatile sig_atomic_t ends;

static void end(int signal)
{
	(void)signal;
	ends = 1;
}

/* curses restores the terminal for SIGINT and SIGTERM only. */
static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = end };

	sigaction(SIGQUIT, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* A command may also end where memory is short. */
static void restore_terminal(void)
{
	if (!isendwin())
		endwin();
}

static int run(double seconds)
{
	struct top t = { .order = 'l' };
	SCREEN *screen = newterm(NULL, stdout, stdin);

	if (!screen) {
		fputs("accmem: top: the type of the terminal (TERM) is not known\n",
		      stderr);
		return STATUS_FAILED;
	}
	catch_signals();
	atexit(restore_terminal);
	start_colors();
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	timeout(seconds * 1000);
	do {
		refill(&t);
		draw(&t);
	} while (obey(&t, getch()) && !is_hung_up() && !ends);
	endwin();
	delscreen(screen);
	free(t.rows);
	snapshot_free(&t.s);
	return STATUS_OK;
}

int command_top(int argc, char **argv)
{
	struct options o;
	int status = options_parse(&o, argc, argv, "w", usage);

	if (status >= 0)
		return status;
	if (optind < argc) {
		fputs(usage, stderr);
		return STATUS_USAGE;
	}
	if (!path_exists(CLASS))
		return no_devices();
	if (!output_is_terminal() || !isatty(STDIN_FILENO)) {
		fputs("accmem: top: needs a terminal\n", stderr);
		return STATUS_FAILED;
	}
	return run(o.watch ? o.watch : SECONDS);
}
