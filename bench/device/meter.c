// SPDX-License-Identifier: GPL-2.0
/*
 * Meter of instructions. The guest has one processor, on which an instruction takes a
 * nanosecond.
 *
 * Work that a call leaves to a worker counts at whatever time it runs. The idler, a
 * process with SCHED_IDLE, runs if no other task does. The cost is the time that the
 * idler did not get.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 20000
#define WARM 500

static pid_t idler;
static clockid_t idler_clock;

void meter_start(void)
{
	struct sched_param param = {};

	idler = fork();
	if (idler < 0)
		die(errno, "fork");
	if (!idler) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (sched_setscheduler(0, SCHED_IDLE, &param))
			_exit(1);
		for (;;)
			;
	}
	if (clock_getcpuclockid(idler, &idler_clock))
		die(0, "no clock of another process");
	usleep(100000);
}

void meter_stop(void)
{
	kill(idler, SIGKILL);
	waitpid(idler, NULL, 0);
}

uint64_t meter_now(void)
{
	struct timespec t;

	if (clock_gettime(idler_clock, &t))
		die(errno, "the idler");
	return clock_now() - (t.tv_sec * 1000000000ull + t.tv_nsec);
}

/* Memory that was never mapped becomes dirty one to two seconds after its free. */
void meter_rest(void)
{
	int i;

	for (i = 0; i < NR_DEVICES; i++)
		device_settle(&devices[i]);
	usleep(2500000);
	for (i = 0; i < NR_DEVICES; i++)
		device_settle(&devices[i]);
}

uint64_t meter_end(uint64_t start)
{
	uint64_t end, idle;

	meter_rest();
	end = meter_now();
	meter_rest();
	idle = meter_now() - end;
	return end - start - idle;
}

double meter_null_ioctl(int fd)
{
	uint64_t start;
	int i;

	for (i = 0; i < WARM; i++)
		null_ioctl(fd);
	start = meter_now();
	for (i = 0; i < ROUNDS; i++)
		null_ioctl(fd);
	return (double)(meter_now() - start) / ROUNDS;
}
