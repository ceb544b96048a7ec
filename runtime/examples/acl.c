// SPDX-License-Identifier: MIT
/* The ACL front-end: data goes to the device, is copied there, and comes back. */
#include <acl/accmem_acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 1000

static void check(aclError error, const char *what)
{
	if (error) {
		fprintf(stderr, "accmem-acl: %s: %d: %s\n", what, error,
			aclGetRecentErrMsg());
		exit(EXIT_FAILURE);
	}
}

int main(void)
{
	struct accmem_acl_segment segments[2] = { { .length = SIZE },
						  { .length = SIZE } };
	size_t free_bytes, total, needed;
	aclrtStream stream;
	void *block;
	char *host;

	check(aclInit(NULL), "aclInit");
	check(aclrtSetDevice(0), "aclrtSetDevice");
	check(aclrtCreateStream(&stream), "aclrtCreateStream");
	check(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), "memory");
	check(aclrtMallocHost((void **)&host, SIZE), "aclrtMallocHost");
	memset(host, 'a', SIZE);

	/* one block, divided by the rules of aclrtMalloc */
	check(accmem_acl_divide(NULL, 0, segments, 2, &needed), "needed");
	check(aclrtMalloc(&block, needed, ACL_MEM_MALLOC_HUGE_FIRST),
	      "aclrtMalloc");
	check(accmem_acl_divide(block, needed, segments, 2, NULL), "divide");
	check(accmem_acl_check(block, needed, segments, 2, NULL), "check");

	check(aclrtMemcpyAsync(segments[0].start, SIZE, host, SIZE,
			       ACL_MEMCPY_HOST_TO_DEVICE, stream),
	      "copy to the device");
	check(aclrtMemcpyAsync(segments[1].start, SIZE, segments[0].start, SIZE,
			       ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
	      "copy on the device");
	check(aclrtMemsetAsync(host, SIZE, 'b', SIZE, stream), "set");
	check(aclrtMemcpyAsync(host, SIZE / 2, segments[1].start, SIZE / 2,
			       ACL_MEMCPY_DEVICE_TO_HOST, stream),
	      "copy to the host");
	check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
	printf("%zu bytes of two segments: %c then %c\n", needed, host[0],
	       host[SIZE - 1]);

	check(aclrtFree(block), "aclrtFree");
	check(aclrtFreeHost(host), "aclrtFreeHost");
	check(aclrtDestroyStream(stream), "aclrtDestroyStream");
	check(aclrtResetDevice(0), "aclrtResetDevice");
	check(aclFinalize(), "aclFinalize");
	return 0;
}
