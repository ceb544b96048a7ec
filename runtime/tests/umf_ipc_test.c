// SPDX-License-Identifier: MIT
/*
 * Allocations of the provider for the Unified Memory Framework in other processes, on
 * /dev/accmem0 or the device in $ACCMEM_DEVICE; with FAKE_DEVICE over fake_device.c.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "umf_tests.h"

#define IPC_SIZE 64

static umf_result_t ipc_get(const void *pointer, size_t size, void *handle)
{
	return ops->umf_ops_ipc(get_ipc_handle)(provider, pointer, size,
						handle);
}

static umf_result_t ipc_put(void *handle)
{
	return ops->umf_ops_ipc(put_ipc_handle)(provider, handle);
}

static umf_result_t ipc_open(void *handle, void *pointer)
{
	return ops->umf_ops_ipc(open_ipc_handle)(provider, handle, pointer);
}

static umf_result_t ipc_close(void *pointer, size_t size)
{
	return ops->umf_ops_ipc(close_ipc_handle)(provider, pointer, size);
}

static void make_exportable(void)
{
	struct accmem_umf_params params = { .size = sizeof(params),
					    .exportable = 1 };
	size_t size;

	ops = accmem_umf_provider_ops();
	CHECK_EQ(ops->initialize(&params, &provider), UMF_RESULT_SUCCESS);
	CHECK_EQ(ops->umf_ops_ipc(get_ipc_handle_size)(provider, &size), 0);
	CHECK(size <= IPC_SIZE);
}

/* The other process: it adds 1 to each byte that it reads. */
static void ipc_child(int socket)
{
	char handle[IPC_SIZE], *p;

	CHECK_EQ(read(socket, handle, sizeof(handle)), sizeof(handle));
	make_provider();
	CHECK_EQ(ipc_open(handle, &p), UMF_RESULT_SUCCESS);
	CHECK_EQ(p[0], 1);
	CHECK_EQ(p[4999], 2);
	p[4999]++;
	CHECK_EQ(write(socket, "", 1), 1);
	/* the other process has freed the memory, and put the handle */
	CHECK_EQ(read(socket, handle + 1, 1), 1);
	CHECK_EQ(p[0], 1);
	CHECK_EQ(ipc_close(p + 4096, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_close(p, 100), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_close(p, 5000), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_close(p, 5000), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	handle[1] = 'c';
	CHECK_EQ(ipc_open(handle, &p), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
	exit(0);
}

static void umf_opens_memory_of_another_process(void)
{
	char handle[IPC_SIZE] = {}, *p, *q;
	int sockets[2], status;
	pid_t pid;

	/* fails on a kernel without Yama, where no permission is needed */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		close(sockets[0]);
		ipc_child(sockets[1]);
	}
	close(sockets[1]);
	make_exportable();
	p = umf_take(5000);
	p[0] = 1;
	p[4999] = 2;
	CHECK_EQ(ipc_get(p, 5000, handle), UMF_RESULT_SUCCESS);
	CHECK_EQ(write(sockets[0], handle, sizeof(handle)), sizeof(handle));
	CHECK_EQ(read(sockets[0], handle + sizeof(handle) - 1, 1), 1);
	CHECK_EQ(p[4999], 3);
	CHECK_EQ(ipc_put(handle), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_put(handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_give(p, 5000), UMF_RESULT_SUCCESS);
	q = umf_take(5000);
	memset(q, 7, 5000);
	CHECK_EQ(write(sockets[0], "c", 1), 1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	ops->finalize(provider);
}

/* A part is exported if no byte of another part goes with it. */
static void umf_handles_are_of_one_allocation(void)
{
	char handle[IPC_SIZE], other[IPC_SIZE], *p;

	make_exportable();
	p = umf_take(4 * 4096);
	CHECK_EQ(ipc_get(p + 64, 4096, handle),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_get(p, 5 * 4096, handle),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_get(p, 0, handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_get(&p, 4096, handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(umf_split(p, 4 * 4096, 4096 + 64), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_get(p, 4096 + 64, handle),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK(strstr(accmem_last_error(), "not of whole pages"));
	CHECK_EQ(umf_merge(p, p + 4096 + 64, 4 * 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(umf_split(p, 4 * 4096, 4096), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_get(p, 4096, handle), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_get(p + 4096, 3 * 4096, other), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_put(handle), UMF_RESULT_SUCCESS);
	CHECK_EQ(ipc_put(other), UMF_RESULT_SUCCESS);
	memset(handle, 0, sizeof(handle));
	CHECK_EQ(ipc_put(handle), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_open(handle, &p), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(ipc_close(p, 0), UMF_RESULT_ERROR_INVALID_ARGUMENT);
	ops->finalize(provider);
}

static void umf_exports_nothing_unless_asked_to(void)
{
	struct accmem_umf_params params = { .size = sizeof(params) };
	char handle[IPC_SIZE], *p;

	make_provider();
	p = umf_take(MIB);
	CHECK_EQ(ipc_get(p, MIB, handle), UMF_RESULT_ERROR_NOT_SUPPORTED);
	ops->finalize(provider);
	params.exportable = 2;
	CHECK_EQ(ops->initialize(&params, &provider),
		 UMF_RESULT_ERROR_INVALID_ARGUMENT);
	/* a program that does not know the member */
	params.size = offsetof(struct accmem_umf_params, exportable);
	CHECK_EQ(ops->initialize(&params, &provider), UMF_RESULT_SUCCESS);
	ops->finalize(provider);
#ifdef FAKE_DEVICE
	make_exportable();
	p = umf_take(MIB);
	fake_no_exports = true;
	CHECK_EQ(ipc_get(p, MIB, handle), UMF_RESULT_ERROR_NOT_SUPPORTED);
	ops->finalize(provider);
#endif
}

int main(void)
{
	static const struct test tests[] = {
		ROW(umf_opens_memory_of_another_process),
		ROW(umf_handles_are_of_one_allocation),
		ROW(umf_exports_nothing_unless_asked_to),
	};

#ifdef FAKE_DEVICE
	setenv("ACCMEM_DEVICE", FAKE_DEVICE_PATH, 1);
#endif
	return test_main(tests, ARRAY_SIZE(tests));
}
