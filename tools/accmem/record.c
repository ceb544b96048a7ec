// SPDX-License-Identifier: GPL-2.0
/*
 * accmem record: write the allocations of all programs, or of one, as a trace.
 *
 * The command reads the trace events of the driver until the program ends or a signal comes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/accmem.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "accmem.h"
#include "record.h"

static const char default_output[] = "accmem.trace";

#define BUFFER (4ull << 20)
#define BUFFER_LEAST 4096ull
#define BUFFER_MOST (1ull << 30)
#define PERIOD_MS 50
/* An event is in the buffer of its processor this time after it was stamped, at the latest. */
#define SETTLE_NS 1000000000ull

static const char usage[] =
	"usage: accmem record [-o FILE] [--device DEVICE] [--buffer SIZE]\n"
	"                     [--pid PID | [--] COMMAND...]\n"
	"       accmem record --tmem [-o FILE] [--device DEVICE] [--context N] [--columns N]\n"
	"                     <EVENTS\n"
	"Write the allocations and frees of all programs, of a process or of a command, with the\n"
	"processes that it starts, as a trace that accmem replay reads. For root.\n"
	"\n"
	"  -o, --output FILE  the trace (accmem.trace); - is the standard output\n"
	"  --device DEVICE    of this device only\n"
	"  --buffer SIZE      size of the buffer of each processor (4M)\n"
	"\n"
	"The recording ends with the process or the command, or by a signal.\n"
	"\n"
	"  --tmem             convert trace events of Tensor Memory, as ftrace prints them, to a\n"
	"                     trace; its FILE is the standard output unless named\n"
	"  --device DEVICE    of this device (that of the first event)\n"
	"  --context N        of this context (the first)\n"
	"  --columns N        columns of its SMs (512)\n";

struct recording {
	const char *output; /* NULL: not named */
	const char *device_name;
	long device; /* number of the device, or -1 */
	uint64_t buffer;
	pid_t pid; /* 0: all processes */
	char **command; /* NULL: none */
	int pidfd; /* of the process or the command, or -1 */
	int gate; /* socket to the process that becomes the command, or -1 */
	bool started; /* the process has become the command */
	FILE *file;
	struct tracing *tracing;
	struct events *events;
	struct lines *lines;
	uint64_t late;
	bool tmem; /* convert events of Tensor Memory */
	uint64_t context;
	uint64_t columns;
};

static volatile sig_atomic_t signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

static bool failed(const char *what)
{
	fprintf(stderr, "accmem: record: %s: %s\n", what, strerror(errno));
	return false;
}

static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };
	struct sigaction before;
	size_t i;

	/* A signal that is ignored stays ignored, as nohup(1) wants. */
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &before) &&
		    before.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* The child waits for a byte, so that the command's first event is recorded. */
static void become(int gate, char **command)
{
	int err = 0;
	char byte;

	signal(SIGPIPE, SIG_DFL);
	if (read(gate, &byte, 1) == 1) {
		execvp(command[0], command);
		err = errno;
		if (write(gate, &err, sizeof(err)) < 0)
			_exit(126);
	}
	_exit(127);
}

static bool fork_command(struct recording *r)
{
	int gates[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gates))
		return failed("socketpair");
	r->pid = fork();
	if (!r->pid) {
		close(gates[0]);
		become(gates[1], r->command);
	}
	close(gates[1]);
	r->gate = gates[0];
	return r->pid > 0 || failed("fork");
}

/* Let the child become the command. Return false after a message if it cannot. */
static bool start_command(struct recording *r)
{
	int err;

	if (r->gate < 0)
		return true;
	if (write(r->gate, "", 1) != 1)
		return failed(r->command[0]);
	if (read(r->gate, &err, sizeof(err)) == sizeof(err)) {
		errno = err;
		return failed(r->command[0]);
	}
	r->started = true;
	return true;
}

/* Record the allocations of all threads of a process. */
static bool add_threads(struct recording *r)
{
	char *path = format("/proc/%d/task", r->pid);
	DIR *dir = opendir(path);
	struct dirent *entry;

	free(path);
	if (!dir) {
		fprintf(stderr, "accmem: record: there is no process %d\n",
			r->pid);
		return false;
	}
	while ((entry = readdir(dir))) {
		if (atoi(entry->d_name) > 0)
			lines_only(r->lines, atoi(entry->d_name));
	}
	closedir(dir);
	return true;
}

/*
 * Open the trace, and leave an old one as it is until the recording begins. Nobody has named
 * the default, so it must not be the link of another user.
 */
static bool open_output(struct recording *r)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC, fd;

	if (!strcmp(r->output, "-")) {
		r->file = stdout;
		return true;
	}
	if (r->output == default_output)
		flags |= O_NOFOLLOW;
	fd = open(r->output, flags, 0666);
	if (fd >= 0)
		r->file = fdopen(fd, "w");
	return r->file || failed(r->output);
}

/* Remove an old trace. A pipe and the like cannot be truncated (EINVAL). */
static bool empty_output(struct recording *r)
{
	return r->file == stdout || !ftruncate(fileno(r->file), 0) ||
	       errno == EINVAL || failed(r->output);
}

static bool flush_output(struct recording *r)
{
	return (!fflush(r->file) && !ferror(r->file)) || failed(r->output);
}

static bool close_output(struct recording *r)
{
	return r->file == stdout || !fclose(r->file) || failed(r->output);
}

static void add_event(void *arg, const struct event *e)
{
	struct recording *r = arg;

	events_add(r->events, e);
}

static void take_event(void *arg, const struct event *e)
{
	struct recording *r = arg;

	lines_add(r->lines, e);
}

/* Read the buffers, and write the lines of the events that no older event can follow. */
static bool pass(struct recording *r, bool last)
{
	uint64_t before = last ? UINT64_MAX : now_ns() - SETTLE_NS;
	uint64_t lost = tracing_lost(r->tracing);

	if (!tracing_read(r->tracing, add_event, r))
		return false;
	if (tracing_lost(r->tracing) != lost)
		fprintf(r->file, "# events were lost before here\n");
	r->late += events_take(r->events, before, take_event, r);
	return flush_output(r);
}

/*
 * Read until the process ends, or a signal comes. The first signal ends a command, and with
 * it the recording; the next signal ends the recording at once.
 */
static bool record_until_end(struct recording *r)
{
	struct pollfd process = { .fd = r->pidfd, .events = POLLIN };
	sig_atomic_t seen = 0;
	struct totals t;
	bool ok = true;

	while (ok && !process.revents && signals < (r->command ? 2 : 1)) {
		if (r->command && signals != seen)
			kill(r->pid, SIGTERM);
		seen = signals;
		poll(&process, 1, PERIOD_MS);
		ok = pass(r, false);
		t = lines_totals(r->lines);
		progress("record: %" PRIu64 " allocations, %" PRIu64
			 " bytes live",
			 t.allocs, t.live);
	}
	return ok && pass(r, true);
}

static bool report(struct recording *r)
{
	uint64_t lost = tracing_lost(r->tracing) + r->late;
	struct totals t = lines_totals(r->lines);

	fprintf(r->file,
		"# %" PRIu64 " allocations, %" PRIu64 " frees, peak %" PRIu64
		", lost events %" PRIu64 "\n",
		t.allocs, t.frees, t.peak, lost);
	fprintf(stderr,
		"accmem: record: %s: %" PRIu64 " allocations, %" PRIu64
		" frees, peak %" PRIu64 "\n",
		r->output, t.allocs, t.frees, t.peak);
	if (lost)
		fprintf(stderr,
			"accmem: record: %" PRIu64
			" events were lost: the trace is not complete; try a larger --buffer\n",
			lost);
	return !lost;
}

static bool begin_trace(struct recording *r)
{
	if (!empty_output(r))
		return false;
	fputs("# accmem record", r->file);
	if (r->device_name)
		fprintf(r->file, " --device %s", r->device_name);
	fputc('\n', r->file);
	return true;
}

static bool watch_process(struct recording *r)
{
	if (!r->pid)
		return true;
	r->pidfd = syscall(SYS_pidfd_open, r->pid, 0);
	return add_threads(r) && (r->pidfd >= 0 || failed("pidfd_open"));
}

static bool record(struct recording *r)
{
	bool ok;

	/* An event of this fork would leave the child out: its parent is not recorded. */
	if (r->command && !fork_command(r))
		return false;
	r->tracing = tracing_start(r->device, r->pid || r->command, r->buffer);
	if (!r->tracing || !open_output(r))
		return false;
	r->lines = lines_new(r->file);
	if (!watch_process(r))
		return false;
	r->events = events_new();
	if (!start_command(r) || !begin_trace(r))
		return false;
	ok = record_until_end(r);
	return report(r) && ok;
}

/* Print how the command has ended, unless it ended well. */
static void end_command(struct recording *r)
{
	int status;

	if (r->gate >= 0)
		close(r->gate);
	if (!r->started)
		return;
	if (waitpid(r->pid, &status, WNOHANG) != r->pid)
		fprintf(stderr,
			"accmem: record: %s: process %d goes on, and is not recorded any more\n",
			r->command[0], r->pid);
	else if (WIFSIGNALED(status))
		fprintf(stderr, "accmem: record: %s: ended by signal %d\n",
			r->command[0], WTERMSIG(status));
	else if (WEXITSTATUS(status))
		fprintf(stderr, "accmem: record: %s: ended with status %d\n",
			r->command[0], WEXITSTATUS(status));
}

static int run(struct recording *r)
{
	bool ok;

	catch_signals();
	ok = record(r);
	if (r->tracing)
		tracing_stop(r->tracing);
	if (r->events)
		events_free(r->events);
	if (r->lines)
		lines_free(r->lines);
	end_command(r);
	if (r->file && !close_output(r))
		ok = false;
	if (r->pidfd >= 0)
		close(r->pidfd);
	return ok ? STATUS_OK : STATUS_FAILED;
}

static int usage_error(void)
{
	fputs(usage, stderr);
	return STATUS_USAGE;
}

/* Parse the argument of an option. Return false if it is wrong. */
static bool set_option(struct recording *r, int option)
{
	uint64_t number;

	switch (option) {
	case 'o':
		r->output = optarg;
		return true;
	case 'd':
		r->device_name = optarg;
		return true;
	case 't':
		r->tmem = true;
		return true;
	}
	if (option == '?' || !size_parse(optarg, &number))
		return false;
	switch (option) {
	case 'b':
		r->buffer = number;
		return number >= BUFFER_LEAST && number <= BUFFER_MOST;
	case 'p':
		r->pid = number;
		return number > 0 && number <= INT_MAX;
	case 'c':
		r->context = number;
		return number > 0;
	default:
		r->columns = number;
		return number > 0 && number <= ACCMEM_TMEM_COLUMNS_MAX;
	}
}

/* Return true if the options can be combined. */
static bool is_consistent(const struct recording *r)
{
	if (r->tmem)
		return !r->pid && !r->command && r->buffer == BUFFER;
	return !r->context && r->columns == ACCMEM_TMEM_COLUMNS &&
	       !(r->command && r->pid);
}

/* Return -1, or the status with which the command ends. */
static int parse(struct recording *r, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "device", required_argument, NULL, 'd' },
		{ "buffer", required_argument, NULL, 'b' },
		{ "pid", required_argument, NULL, 'p' },
		{ "tmem", no_argument, NULL, 't' },
		{ "context", required_argument, NULL, 'c' },
		{ "columns", required_argument, NULL, 'n' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "+ho:", options, NULL)) !=
	       -1) {
		if (option == 'h') {
			fputs(usage, stdout);
			return STATUS_OK;
		}
		if (!set_option(r, option))
			return usage_error();
	}
	if (optind < argc)
		r->command = argv + optind;
	return is_consistent(r) ? -1 : usage_error();
}

/* Return the name of the device as events have it, or NULL. It need not be there. */
static const char *device_of_option(const struct recording *r)
{
	const char *slash = r->device_name ? strrchr(r->device_name, '/') :
					     NULL;

	return slash ? slash + 1 : r->device_name;
}

/* Convert the events of the standard input. */
static int convert(struct recording *r)
{
	bool ok;

	if (!open_output(r) || !empty_output(r))
		return STATUS_FAILED;
	tmem_record(stdin, r->file, device_of_option(r), r->context,
		    r->columns);
	ok = flush_output(r);
	return close_output(r) && ok ? STATUS_OK : STATUS_FAILED;
}

int command_record(int argc, char **argv)
{
	struct recording r = { .buffer = BUFFER,
			       .columns = ACCMEM_TMEM_COLUMNS,
			       .device = -1,
			       .pidfd = -1,
			       .gate = -1 };
	int status = parse(&r, argc, argv);
	struct snapshot s;

	if (status >= 0)
		return status;
	if (!r.output)
		r.output = r.tmem ? "-" : default_output;
	if (r.tmem)
		return convert(&r);
	status = snapshot_with(&s, r.device_name);
	if (!status && r.device_name)
		r.device = atol(r.device_name + strlen("accmem"));
	snapshot_free(&s);
	return status ? status : run(&r);
}
