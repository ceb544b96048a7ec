// SPDX-License-Identifier: GPL-2.0
/*
 * A load for the shell tests: programs that use every feature of a device.
 *
 *   storm DIRECTORY	in sysfs, of the parent of the accmem device
 *
 * The program prints "held" when each thread has made a call that succeeded. It ends at a
 * SIGTERM, and fails if a thread has seen what must not be.
 */
#include "storm.h"

int main(int argc, char **argv)
{
	uint64_t end = accmem_ms() + 60000;
	struct worker w[THREADS] = {};
	atomic_int stop = 0;
	sigset_t term;
	int sig;

	if (argc != 2)
		return 2;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, NULL);
	storm_start(w, argv[1], &stop);
	while (!storm_is_seen(w) && accmem_ms() < end)
		usleep(1000);
	puts("held");
	fflush(stdout);
	sigwait(&term, &sig);
	return !storm_end(w, &stop);
}
