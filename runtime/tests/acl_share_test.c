// SPDX-License-Identifier: MIT
/*
 * Memory of the ACL front-end in several processes, on a device: /dev/accmem0, or the one
 * in $ACCMEM_DEVICE. Built with FAKE_DEVICE it runs on the host over fake_device.c instead.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl_tests.h"

#define SIZE (64 * KIB)

/**
 * struct other - another process
 * @pid: its id
 * @socket: socket that is connected to that process
 */
struct other {
	int32_t pid;
	int socket;
};

static struct other other_start(void (*run)(int socket))
{
	struct other other;
	int sockets[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets),
		 0);
	other.pid = fork();
	CHECK(other.pid >= 0);
	if (!other.pid) {
		close(sockets[0]);
		run(sockets[1]);
		_exit(0);
	}
	close(sockets[1]);
	other.socket = sockets[0];
	return other;
}

static void other_end(const struct other *other)
{
	int status;

	close(other->socket);
	CHECK_EQ(waitpid(other->pid, &status, 0), other->pid);
	CHECK_EQ(status, 0);
}

static void tell(int socket, uint64_t number)
{
	CHECK_EQ(write(socket, &number, sizeof(number)), sizeof(number));
}

static uint64_t hear(int socket)
{
	uint64_t number;

	CHECK_EQ(read(socket, &number, sizeof(number)), sizeof(number));
	return number;
}

static aclrtDrvMemHandle new_handle(void)
{
	aclrtPhysicalMemProp prop = {
		.memAttr = ACL_HBM_MEM_NORMAL,
		.location.type = ACL_MEM_LOCATION_TYPE_DEVICE,
	};
	aclrtDrvMemHandle handle;

	CHECK_EQ(aclrtMallocPhysical(&handle, SIZE, &prop, 0), 0);
	return handle;
}

static uint64_t export_handle(aclrtDrvMemHandle handle, uint64_t flags)
{
	uint64_t number = 0;

	CHECK_EQ(aclrtMemExportToShareableHandle(handle,
						 ACL_MEM_HANDLE_TYPE_NONE,
						 flags, &number),
		 0);
	CHECK(number);
	return number;
}

static aclError import_number(uint64_t number)
{
	aclrtDrvMemHandle handle;
	aclError error = aclrtMemImportFromShareableHandle(number, 0, &handle);

	if (!error)
		CHECK_EQ(aclrtFreePhysical(handle), 0);
	return error;
}

static unsigned char *map_handle(aclrtDrvMemHandle handle)
{
	void *p;

	CHECK_EQ(aclrtReserveMemAddress(&p, SIZE, 0, NULL, 0), 0);
	CHECK_EQ(aclrtMapMem(p, SIZE, 0, handle, 0), 0);
	return p;
}

static void unmap_handle(void *p, aclrtDrvMemHandle handle)
{
	CHECK_EQ(aclrtUnmapMem(p), 0);
	CHECK_EQ(aclrtReleaseMemAddress(p), 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

static void uses_memory(int socket)
{
	uint64_t number = hear(socket), unused;
	aclrtDrvMemHandle handle, second;
	unsigned char *p;

	CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, &handle), 0);
	p = map_handle(handle);
	CHECK_EQ(byte_at(p), 5);
	CHECK_EQ(aclrtMemset(p, SIZE, 6, SIZE), 0);

	/* a number is one handle, and a handle one number */
	CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, &second),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemExportToShareableHandle(handle,
						 ACL_MEM_HANDLE_TYPE_NONE, 0,
						 &unused),
		 ACL_ERROR_RT_PARAM_INVALID);
	tell(socket, 0);
	/* the other process has freed its handle */
	hear(socket);
	CHECK_EQ(byte_at(p + SIZE - 1), 6);
	unmap_handle(p, handle);
	CHECK_EQ(import_number(number), ACL_ERROR_RT_INVALID_HANDLE);
}

static void a_named_process_gets_the_memory(void)
{
	struct other other = other_start(uses_memory);
	aclrtDrvMemHandle handle = new_handle();
	unsigned char *p = map_handle(handle), *q;
	uint64_t number;

	CHECK_EQ(aclrtMemset(p, SIZE, 5, SIZE), 0);
	number = export_handle(handle, 0);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1), 0);
	tell(other.socket, number);
	hear(other.socket);
	CHECK_EQ(byte_at(p + SIZE - 1), 6);
	unmap_handle(p, handle);
	/* other memory is not that of the other process */
	handle = new_handle();
	q = map_handle(handle);
	CHECK_EQ(aclrtMemset(q, SIZE, 7, SIZE), 0);
	tell(other.socket, 0);
	other_end(&other);
	unmap_handle(q, handle);
}

static void imports_when_told_to(int socket)
{
	int32_t pid;

	CHECK_EQ(aclrtDeviceGetBareTgid(&pid), 0);
	CHECK_EQ(pid, getpid());
	for (;;) {
		uint64_t number = hear(socket);

		if (!number)
			break;
		tell(socket, import_number(number));
	}
}

static aclError ask(const struct other *other, uint64_t number)
{
	tell(other->socket, number);
	return hear(other->socket);
}

static void no_other_process_gets_it(void)
{
	struct other a = other_start(imports_when_told_to);
	struct other b = other_start(imports_when_told_to);
	aclrtDrvMemHandle handle = new_handle(), second = new_handle();
	uint64_t number = export_handle(handle, 0);
	uint64_t other = export_handle(second, 0);

	CHECK_EQ(ask(&a, number), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &a.pid, 1), 0);
	CHECK_EQ(ask(&a, number), 0);
	CHECK_EQ(ask(&a, number), 0);
	CHECK_EQ(ask(&a, other), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(ask(&b, number), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &b.pid, 1), 0);
	CHECK_EQ(ask(&b, number), 0);
	CHECK_EQ(ask(&b, number + 1), ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
	CHECK_EQ(ask(&b, number), ACL_ERROR_RT_INVALID_HANDLE);
	tell(a.socket, 0);
	tell(b.socket, 0);
	other_end(&a);
	other_end(&b);
	CHECK_EQ(aclrtFreePhysical(second), 0);
}

static void a_flag_admits_any_process(void)
{
	struct other other = other_start(imports_when_told_to);
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number =
		export_handle(handle,
			      ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);

	CHECK_EQ(ask(&other, number), 0);
	CHECK_EQ(ask(&other, number ^ 1), ACL_ERROR_RT_INVALID_HANDLE);
	tell(other.socket, 0);
	other_end(&other);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

/* Connects to the process that exports a number, and says nothing. */
static void connect_silently(uint64_t number)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1,
			      "accmem-acl-%d-%u", (int)(number >> 42),
			      (unsigned int)(number >> 32) & 1023);

	CHECK(fd >= 0);
	/* the backlog may be full */
	CHECK(!connect(fd, (struct sockaddr *)&name,
		       offsetof(struct sockaddr_un, sun_path) + 1 + length) ||
	      errno == EAGAIN);
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* Imports while signals arrive all the time. */
static void imports_under_signals(int socket)
{
	const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	const struct sigaction action = { .sa_handler = on_alarm };
	uint64_t number = hear(socket);
	int i;

	CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (i = 0; i < 100; i++)
		CHECK_EQ(import_number(number), 0);
}

static void silent_peers_and_signals_hold_up_nobody(void)
{
	struct other other = other_start(imports_under_signals);
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number =
		export_handle(handle,
			      ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
	int i;

	for (i = 0; i < 200; i++)
		connect_silently(number);
	tell(other.socket, number);
	other_end(&other);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

/* A child of the named process has another id, and was not named. */
static void child_imports(int socket)
{
	uint64_t number = hear(socket);
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(import_number(number), ACL_ERROR_RT_INVALID_HANDLE);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(import_number(number), 0);
}

static void a_name_is_of_one_process(void)
{
	struct other other = other_start(child_imports);
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number = export_handle(handle, 0);

	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1), 0);
	tell(other.socket, number);
	other_end(&other);
	/* it is no process any more */
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	CHECK(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* The exporting process keeps no descriptors of processes that have ended. */
static void names_of_processes_that_have_ended_are_forgotten(void)
{
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number = export_handle(handle, 0);
	unsigned int before = count_fds(), i;
	struct other other;

	for (i = 0; i < 20; i++) {
		other = other_start(imports_when_told_to);
		CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1),
			 0);
		CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1),
			 0);
		tell(other.socket, 0);
		other_end(&other);
	}
	CHECK(count_fds() <= before + 1);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

static void names_what_is_not_its_own(int socket)
{
	int32_t pid = getpid();

	CHECK_EQ(aclrtMemSetPidToShareableHandle(hear(socket), &pid, 1),
		 ACL_ERROR_RT_INVALID_HANDLE);
}

static void wrong_arguments_are_refused(void)
{
	const aclrtMemHandleType none = ACL_MEM_HANDLE_TYPE_NONE;
	struct other other = other_start(names_what_is_not_its_own);
	aclrtDrvMemHandle handle = new_handle(), h;
	int32_t pids[2] = { getpid(), 0 };
	uint64_t number;

	CHECK_EQ(aclrtMemExportToShareableHandle(NULL, none, 0, &number),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemExportToShareableHandle(handle, none, 0, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemExportToShareableHandle(handle, none, 2, &number),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemExportToShareableHandle(handle, (aclrtMemHandleType)1,
						 0, &number),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemExportToShareableHandle(&number, none, 0, &number),
		 ACL_ERROR_RT_INVALID_HANDLE);
	number = export_handle(handle, 0);
	CHECK_EQ(aclrtMemExportToShareableHandle(handle, none, 0, &number),
		 ACL_ERROR_RT_PARAM_INVALID);

	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, NULL, 1),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, pids, 0),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, pids, 2),
		 ACL_ERROR_RT_PARAM_INVALID);
	CHECK_EQ(aclrtMemSetPidToShareableHandle(number + 1, pids, 1),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtDeviceGetBareTgid(NULL), ACL_ERROR_INVALID_PARAM);

	CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, NULL),
		 ACL_ERROR_INVALID_PARAM);
	CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, &h),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtMemImportFromShareableHandle(0, 0, &h),
		 ACL_ERROR_RT_INVALID_HANDLE);
	CHECK_EQ(aclrtMemImportFromShareableHandle(UINT64_MAX, 0, &h),
		 ACL_ERROR_RT_INVALID_HANDLE);
	tell(other.socket, number);
	other_end(&other);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

/* Exports, forks, and ends. The child lives on, and does not answer requests. */
static void exports_and_ends(int socket)
{
	uint64_t number =
		export_handle(new_handle(),
			      ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
	int lives[2];
	pid_t pid;

	CHECK_EQ(pipe(lives), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(write(lives[1], "", 1), 1);
		hear(socket);
		_exit(0);
	}
	CHECK_EQ(read(lives[0], &pid, 1), 1);
	tell(socket, number);
}

static void the_end_of_a_process_ends_its_exports(void)
{
	struct other other = other_start(exports_and_ends);
	uint64_t number = hear(other.socket);
	int status;

	CHECK_EQ(waitpid(other.pid, &status, 0), other.pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(import_number(number), ACL_ERROR_RT_INVALID_HANDLE);
	tell(other.socket, 0);
	close(other.socket);
}

/* The exports of the parent are not exports of the child, which can make its own. */
static void a_child_exports_for_itself(void)
{
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number = export_handle(handle, 0), own;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(aclrtMemExportToShareableHandle(handle,
							 ACL_MEM_HANDLE_TYPE_NONE,
							 0, &own),
			 ACL_ERROR_RT_INVALID_HANDLE);
		pid = getpid();
		CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &pid, 1),
			 ACL_ERROR_RT_INVALID_HANDLE);
		CHECK_EQ(import_number(number), ACL_ERROR_RT_INVALID_HANDLE);
		handle = new_handle();
		own = export_handle(handle, 0);
		CHECK(own != number);
		CHECK_EQ(aclrtFreePhysical(handle), 0);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

static void closing_the_device_ends_its_exports(void)
{
	struct other other = other_start(imports_when_told_to);
	uint64_t number;

	CHECK_EQ(aclrtSetDevice(0), 0);
	number = export_handle(new_handle(),
			       ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);
	CHECK_EQ(ask(&other, number), 0);
	CHECK_EQ(aclrtResetDeviceForce(0), 0);
	CHECK_EQ(ask(&other, number), ACL_ERROR_RT_INVALID_HANDLE);
	tell(other.socket, 0);
	other_end(&other);
}

#ifdef FAKE_DEVICE
static void a_driver_without_exports_is_reported(void)
{
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number;

	fake_no_exports = true;
	CHECK_EQ(aclrtMemExportToShareableHandle(handle,
						 ACL_MEM_HANDLE_TYPE_NONE, 0,
						 &number),
		 ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}
#else
/* The device is open already. The process is named, and of another user. */
static void imports_as_another_user(int socket)
{
	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(setuid(65534), 0);
	CHECK_EQ(import_number(hear(socket)), ACL_ERROR_RT_INVALID_HANDLE);
}

static void another_user_gets_nothing(void)
{
	struct other other = other_start(imports_as_another_user);
	aclrtDrvMemHandle handle = new_handle();
	uint64_t number =
		export_handle(handle,
			      ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION);

	CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &other.pid, 1), 0);
	tell(other.socket, number);
	other_end(&other);
	CHECK_EQ(aclrtFreePhysical(handle), 0);
}

/* Exports, and exports again as another user. */
static void exports_as_two_users(int socket)
{
	const uint64_t any = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;

	CHECK_EQ(aclrtSetDevice(0), 0);
	export_handle(new_handle(), any);
	CHECK_EQ(seteuid(65534), 0);
	tell(socket, export_handle(new_handle(), any));
	hear(socket);
}

static void a_process_that_changes_its_user_exports_to_the_new_one(void)
{
	struct other other = other_start(exports_as_two_users);
	uint64_t number = hear(other.socket);

	CHECK_EQ(aclrtSetDevice(0), 0);
	CHECK_EQ(seteuid(65534), 0);
	CHECK_EQ(import_number(number), 0);
	CHECK_EQ(seteuid(0), 0);
	tell(other.socket, 0);
	other_end(&other);
}
#endif

int main(void)
{
	static const struct test tests[] = {
		ROW(a_named_process_gets_the_memory),
		ROW(no_other_process_gets_it),
		ROW(a_flag_admits_any_process),
		ROW(silent_peers_and_signals_hold_up_nobody),
		ROW(a_name_is_of_one_process),
		ROW(names_of_processes_that_have_ended_are_forgotten),
		ROW(wrong_arguments_are_refused),
		ROW(the_end_of_a_process_ends_its_exports),
		ROW(a_child_exports_for_itself),
		ROW(closing_the_device_ends_its_exports),
#ifdef FAKE_DEVICE
		ROW(a_driver_without_exports_is_reported),
#else
		ROW(another_user_gets_nothing),
		ROW(a_process_that_changes_its_user_exports_to_the_new_one),
#endif
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
