// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers around the calls: files in sysfs and debugfs, the kernel's log and trace,
 * the device's accounts, other processes and users, and numbers. The contracts are in
 * accmem_util.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "accmem_util.h"

int accmem_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (done < size - 1) {
		n = read(fd, buf + done, size - 1 - done);
		if (n <= 0)
			break;
		done += n;
	}
	buf[done] = '\0';
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? (int)n : (int)done;
}

int64_t accmem_fdinfo(int fd, const char *key)
{
	char file[64], text[2048], want[64], *at;

	snprintf(file, sizeof(file), "/proc/self/fdinfo/%d", fd);
	if (accmem_read_file(file, text, sizeof(text)) <= 0)
		return -1;
	snprintf(want, sizeof(want), "\naccmem-%s:", key);
	at = strstr(text, want);
	return at ? strtoll(at + strlen(want), NULL, 0) : -1;
}

int accmem_log_open(void)
{
	return open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

bool accmem_log_next(int log, char *record)
{
	ssize_t n;

	/* -EPIPE: records were overwritten before they were read */
	do {
		n = read(log, record, ACCMEM_LOG_RECORD - 1);
	} while (n < 0 && errno == EPIPE);
	record[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool accmem_log_has(int log, const char *text)
{
	char record[ACCMEM_LOG_RECORD];

	while (accmem_log_next(log, record))
		if (strstr(record, text))
			return true;
	return false;
}

bool accmem_log_gets(int log, const char *text, int ms)
{
	uint64_t end = accmem_ms() + ms;

	while (!accmem_log_has(log, text)) {
		if (accmem_ms() > end)
			return false;
		usleep(2000);
	}
	return true;
}

int accmem_log_count(int log, ...)
{
	char record[ACCMEM_LOG_RECORD];
	const char *text;
	va_list texts;
	int n = 0;

	while (accmem_log_next(log, record)) {
		va_start(texts, log);
		do {
			text = va_arg(texts, const char *);
		} while (text && strstr(record, text));
		va_end(texts);
		n += !text;
	}
	return n;
}

int accmem_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

#define TRACING "/sys/kernel/tracing/"

static char events_before, tracing_before;

static char trace_switch(const char *path)
{
	char text[8] = "";

	accmem_read_file(path, text, sizeof(text));
	return text[0];
}

static bool trace_empty(void)
{
	int fd = open(TRACING "trace", O_WRONLY | O_TRUNC);

	return fd >= 0 && !close(fd);
}

bool accmem_trace_start(void)
{
	events_before = trace_switch(TRACING "events/accmem/enable");
	tracing_before = trace_switch(TRACING "tracing_on");
	if (!events_before || !trace_empty())
		return false;
	if (events_before != '1' &&
	    accmem_write_file(TRACING "events/accmem/enable", "1"))
		return false;
	return !accmem_write_file(TRACING "tracing_on", "1");
}

bool accmem_trace_stop(void)
{
	if (accmem_write_file(TRACING "tracing_on", "0"))
		return false;
	if (events_before != '1' &&
	    accmem_write_file(TRACING "events/accmem/enable", "0"))
		return false;
	return tracing_before == '0' ||
	       !accmem_write_file(TRACING "tracing_on", "1");
}

int accmem_trace_count(const char *event, const char *detail, char *last,
		       size_t size)
{
	static char text[1 << 20];
	char *line, *save, *at;
	int n = 0;

	if (accmem_read_file(TRACING "trace", text, sizeof(text)) <= 0)
		return -1;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		at = *line == '#' ? NULL : strstr(line, event);
		if (!at || at[strlen(event)] != ':' || !strstr(at, detail))
			continue;
		n++;
		if (last)
			snprintf(last, size, "%s", strstr(at, detail));
	}
	return n;
}

static int64_t read_number(const char *path)
{
	char text[64];
	int err = accmem_read_file(path, text, sizeof(text));

	return err < 0 ? err : strtoll(text, NULL, 10);
}

int64_t accmem_sysfs(const char *path, const char *name)
{
	char file[256];

	accmem_sysfs_file(path, name, file, sizeof(file));
	return read_number(file);
}

int64_t accmem_param(const char *name)
{
	char file[256];

	snprintf(file, sizeof(file), "/sys/module/accmem/parameters/%s", name);
	return read_number(file);
}

int accmem_param_set(const char *name, int64_t value)
{
	char file[256], text[32];

	snprintf(file, sizeof(file), "/sys/module/accmem/parameters/%s", name);
	snprintf(text, sizeof(text), "%lld", (long long)value);
	return accmem_write_file(file, text);
}

uint64_t accmem_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t accmem_sysfs_wait(const char *path, const char *name, int64_t value,
			  int ms)
{
	uint64_t end = accmem_ms() + ms;
	int64_t now;

	for (;;) {
		now = accmem_sysfs(path, name);
		if (now == value)
			return -1;
		if (accmem_ms() > end)
			return now;
		usleep(2000);
	}
}

/* checks a consistent state from debugfs: 1 balanced, 0 not, -1 cannot be read */
static int usage_balances(const char *path)
{
	char file[128], text[2048], *line, *save, name[32];
	long long capacity = 0, sum = 0, value;

	snprintf(file, sizeof(file), "/sys/kernel/debug/accmem/%s/usage",
		 strrchr(path, '/') + 1);
	if (accmem_read_file(file, text, sizeof(text)) <= 0)
		return -1;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		/* the next carveout */
		if (*line == '#' && sum == capacity)
			continue;
		if (sscanf(line, "%31s %lld", name, &value) != 2)
			return 0;
		if (!strcmp(name, "capacity"))
			capacity += value;
		else
			sum += value;
	}
	if (capacity && sum == capacity)
		return 1;
	fprintf(stderr, "# %s: usage sums up to %lld of %lld\n", path, sum,
		capacity);
	return 0;
}

/*
 * Each counter in sysfs is a file, so bytes may move between two reads. Only a sum that
 * is wrong in every try is an error.
 */
static bool counters_balance(const char *path)
{
	static const char *const parts[] = {
		"free_bytes",	 "live_bytes",	      "detached_bytes",
		"pending_bytes", "quarantined_bytes", "retired_bytes"
	};
	int64_t capacity = accmem_sysfs(path, "capacity");
	unsigned int tries, i;
	int64_t sum, part;

	for (tries = 0; tries < 50; tries++) {
		for (sum = 0, i = 0; i < 6; i++) {
			part = accmem_sysfs(path, parts[i]);
			if (part < 0)
				return false;
			sum += part;
		}
		if (capacity > 0 && sum == capacity)
			return true;
		usleep(1000);
	}
	fprintf(stderr, "# %s: counters sum up to %lld of %lld\n", path,
		(long long)sum, (long long)capacity);
	return false;
}

bool accmem_accounts_balance(const char *path)
{
	int usage = usage_balances(path);

	return usage >= 0 ? usage : counters_balance(path);
}

bool accmem_is_idle(const char *path, int ms)
{
	static const char *const zero[] = {
		"contexts",	  "buffers",	   "live_bytes",
		"detached_bytes", "pending_bytes", "quarantined_bytes"
	};
	uint64_t end = accmem_ms() + ms;
	int64_t capacity = accmem_sysfs(path, "capacity") -
			   accmem_sysfs(path, "retired_bytes");
	int64_t left;
	unsigned int i;

	accmem_skip_without(path);
	left = accmem_sysfs_wait(path, "free_bytes", capacity, ms);
	if (capacity <= 0 || left != -1) {
		fprintf(stderr, "# %s: %lld of %lld bytes are free\n", path,
			(long long)left, (long long)capacity);
		return false;
	}
	for (i = 0; i < sizeof(zero) / sizeof(*zero); i++) {
		ms = end > accmem_ms() ? (int)(end - accmem_ms()) : 0;
		left = accmem_sysfs_wait(path, zero[i], 0, ms);
		if (left != -1) {
			fprintf(stderr, "# %s: %s is %lld\n", path, zero[i],
				(long long)left);
			return false;
		}
	}
	return accmem_accounts_balance(path) && counters_balance(path);
}

uint64_t accmem_touchable(int fd)
{
	struct accmem_info info;
	struct sysinfo host;
	uint64_t most;
	int64_t param;

	if (accmem_ioctl_info(fd, &info))
		return 0;
	if (!(info.features & ACCMEM_FEATURE_FIRST_TOUCH))
		return info.capacity;
	sysinfo(&host);
	most = (uint64_t)host.totalram * host.mem_unit / 2;
	param = accmem_param("max_resident_bytes");
	if (param > 0 && (uint64_t)param < most)
		most = param;
	/* leaves room for pages of the previous test that are not freed yet */
	most = most / 2 / MIB(2) * MIB(2);
	most = most < MIB(accmem_scale(1024)) ? most : MIB(accmem_scale(1024));
	return most < info.capacity ? most : info.capacity;
}

unsigned int accmem_nr_descriptors(void)
{
	unsigned int n = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void do_nothing(int sig)
{
	(void)sig;
}

void accmem_catch(int sig, int flags)
{
	struct sigaction action = { .sa_handler = do_nothing,
				    .sa_flags = flags };

	if (sigaction(sig, &action, NULL))
		abort();
}

int accmem_wait_child(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return 255;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int accmem_in_child(int (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return 255;
	if (!pid)
		_exit(fn(arg));
	return accmem_wait_child(pid);
}

unsigned int accmem_scale(unsigned int n)
{
	const char *env = getenv("ACCMEM_SCALE");
	uint64_t percent = env ? strtoul(env, NULL, 10) : 100;
	uint64_t scaled = n * percent / 100;

	return scaled ? scaled : 1;
}

uint64_t accmem_seed(void)
{
	const char *env = getenv("ACCMEM_SEED");
	uint64_t seed;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	seed = env ? strtoull(env, NULL, 0) :
		     (uint64_t)ts.tv_sec * 1000000007u + ts.tv_nsec;
	printf("# seed=0x%llx\n", (unsigned long long)seed);
	return seed;
}

uint32_t accmem_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (z ^ (z >> 31)) >> 16;
}

void accmem_sysfs_file(const char *path, const char *name, char *file,
		       size_t size)
{
	snprintf(file, size, "/sys/class/accmem/%s/%s", strrchr(path, '/') + 1,
		 name);
}

int accmem_debug_read(const char *path, const char *name, char *text,
		      size_t size)
{
	char file[128];

	snprintf(file, sizeof(file), "/sys/kernel/debug/accmem/%s/%s",
		 strrchr(path, '/') + 1, name);
	return accmem_read_file(file, text, size);
}

int64_t accmem_run_bytes(const char *path, const char *state,
			 const char *context)
{
	static char text[1 << 20];
	char *line, *save, word[16], id[24];
	unsigned long long size;
	int64_t bytes = 0;
	int n;

	if (accmem_debug_read(path, "runs", text, sizeof(text)) <= 0)
		return -1;
	strtok_r(text, "\n", &save);
	while ((line = strtok_r(NULL, "\n", &save))) {
		n = sscanf(line, "%*u %*x %llx %15s %23s", &size, word, id);
		if (n < 2)
			return -1;
		if ((!state || !strcmp(word, state)) &&
		    (!context || (n == 3 && !strcmp(id, context))))
			bytes += size;
	}
	return bytes;
}

int64_t accmem_lock_stats(const char *path, const char *key)
{
	char text[512], *at;
	int err = accmem_debug_read(path, "lock_stats", text, sizeof(text));

	if (err < 0)
		return err;
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : -ENOENT;
}

struct user_call {
	uid_t uid;
	int (*fn)(void *arg);
	void *arg;
};

static int call_as_user(void *arg)
{
	struct user_call *call = arg;

	if (setgroups(0, NULL) || setgid(call->uid) || setuid(call->uid))
		return 250;
	return call->fn(call->arg);
}

int accmem_as_user(uid_t uid, int (*fn)(void *arg), void *arg)
{
	struct user_call call = { uid, fn, arg };

	return accmem_in_child(call_as_user, &call);
}

static void run_steps(int ready, int (*prepare)(void *arg),
		      void (*step)(void *arg), void *arg)
{
	volatile unsigned int spin = 0;
	int err = prepare ? prepare(arg) : 0;

	if (err)
		fprintf(stderr, "# process cannot start: %d\n", err);
	if (write(ready, &err, sizeof(err)) != sizeof(err) || err)
		_exit(1);
	for (;;) {
		if (step)
			step(arg);
		else
			spin++;
	}
}

pid_t accmem_start(int (*prepare)(void *arg), void (*step)(void *arg),
		   void *arg)
{
	int ready[2], err = -1;
	pid_t pid;

	if (pipe(ready))
		return -1;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ready[0]);
		run_steps(ready[1], prepare, step, arg);
	}
	close(ready[1]);
	if (pid > 0 &&
	    (read(ready[0], &err, sizeof(err)) != sizeof(err) || err)) {
		accmem_stop(pid);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

void accmem_stop(pid_t pid)
{
	kill(pid, SIGKILL);
	accmem_wait_child(pid);
}

void accmem_rest(void *unused)
{
	(void)unused;
	pause();
}

int64_t accmem_slept(int64_t since)
{
	unsigned long long ran, waited;
	struct timespec wall, cpu;
	struct rusage usage;
	char text[128];

	clock_gettime(CLOCK_MONOTONIC, &wall);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	if (accmem_read_file("/proc/self/schedstat", text, sizeof(text)) > 0 &&
	    sscanf(text, "%llu %llu", &ran, &waited) == 2)
		return (wall.tv_sec - cpu.tv_sec) * 1000000000ll +
		       wall.tv_nsec - cpu.tv_nsec - waited - since;
	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw * 10000000ll - since;
}

bool accmem_is_asleep(pid_t tid)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	/* "-1" is a thread that waits outside of a call: in a page fault */
	return accmem_read_file(path, text, sizeof(text)) > 0 && *text != '-' &&
	       strncmp(text, "running", strlen("running"));
}

bool accmem_until_asleep(const pid_t *tid, unsigned int ms)
{
	uint64_t until = accmem_ms() + ms;

	while (!accmem_is_asleep(__atomic_load_n(tid, __ATOMIC_ACQUIRE))) {
		if (accmem_ms() > until)
			return false;
		usleep(1000);
	}
	return true;
}

bool accmem_is_on(const char *variant, const char *backing)
{
	size_t length = strlen(backing);

	return !strncmp(variant, backing, length) &&
	       (!variant[length] || variant[length] == '_');
}

uint64_t accmem_time(void (*fn)(void *arg), void *arg, unsigned int n)
{
	struct timespec from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	while (n--)
		fn(arg);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec -
	       from.tv_nsec;
}

int accmem_open_test_device(const char *device, const char *module)
{
	char path[4096], *ko = getenv("ACCMEM_KO");
	int fd, err;

	fd = open(device, O_RDWR | O_CLOEXEC);
	if (fd >= 0 || !ko)
		return fd;
	snprintf(path, sizeof(path), "%s", ko);
	snprintf(path, sizeof(path), "%s/%s", dirname(strdupa(path)), module);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fd;
	err = syscall(SYS_finit_module, fd, "", 0);
	close(fd);
	if (err && errno != EEXIST)
		return -1;
	return open(device, O_RDWR | O_CLOEXEC);
}

long accmem_faults(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return use.ru_minflt + use.ru_majflt;
}

long accmem_faults_to_write(volatile char *p, uint64_t length)
{
	long before = accmem_faults();
	uint64_t at;

	for (at = 0; at < length; at += 4096)
		p[at] = 1;
	return accmem_faults() - before;
}
