// SPDX-License-Identifier: MIT
/*
 * Allocations of a provider in other processes: the framework's IPC.
 *
 * The framework passes bytes between processes, but no descriptors. As in the framework's
 * own providers, the bytes contain the id of the exporting process and the number of a
 * descriptor in that process. The importing process duplicates the descriptor by
 * pidfd_getfd(2). The kernel permits this if the importing process may ptrace(2) the
 * exporting process. The bytes also contain the inode of the dma-buf: it shows whether the
 * descriptor still refers to the export.
 *
 * Locking: none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "umf_ipc.h"

#define UMF_IPC_MAGIC 0x31636d656d636361ull /* "accmemc1" */
#define PAGE 4096u

static int umf_ipc_invalid(const char *text)
{
	accmem_set_last_error("IPC: %s", text);
	return -EINVAL;
}

static bool umf_ipc_is_open(const struct umf_ipc *ipc, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == ipc->inode;
}

/* Return the bytes to export, rounded up to the end of the last page; 0: not whole pages. */
static uint64_t umf_ipc_length(const struct accmem_pool_block *block,
			       const void *pointer, uint64_t size)
{
	uint64_t offset = (uintptr_t)pointer - (uintptr_t)block->pointer;

	if (offset + size == block->length)
		size = (size + PAGE - 1) & -(uint64_t)PAGE;
	return offset % PAGE || size % PAGE ? 0 : size;
}

int accmem_umf_ipc_get(struct accmem_pool *pool, const void *pointer,
		       uint64_t size, struct umf_ipc *ipc)
{
	struct accmem_pool_block block;
	struct stat st;
	int ret, fd;

	ret = accmem_pool_lookup(pool, pointer, &block);
	if (ret)
		return ret;
	*ipc = (struct umf_ipc){ .magic = UMF_IPC_MAGIC, .pid = getpid() };
	ipc->length = umf_ipc_length(&block, pointer, size);
	if (!ipc->length)
		return umf_ipc_invalid("a part that is not of whole pages");
	ret = accmem_pool_export(pool, pointer, ipc->length, 0, &fd);
	if (ret)
		return ret;
	if (fstat(fd, &st)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	ipc->inode = st.st_ino;
	ipc->fd = fd;
	return 0;
}

int accmem_umf_ipc_put(const struct umf_ipc *ipc)
{
	if (ipc->magic != UMF_IPC_MAGIC || ipc->pid != getpid() ||
	    !umf_ipc_is_open(ipc, ipc->fd))
		return umf_ipc_invalid("no export of this process");
	close(ipc->fd);
	return 0;
}

/* Return a new descriptor of the export in this process, or a negative errno value. */
static int umf_ipc_duplicate(const struct umf_ipc *ipc)
{
	int process, fd, error;

	if (ipc->pid == getpid()) {
		fd = fcntl(ipc->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	process = syscall(SYS_pidfd_open, ipc->pid, 0);
	if (process < 0)
		return -errno;
	fd = syscall(SYS_pidfd_getfd, process, ipc->fd, 0);
	error = errno;
	close(process);
	if (fd >= 0)
		return fd;
	return error == EPERM ? -EACCES : -error;
}

int accmem_umf_ipc_open(struct accmem_pool *pool, const struct umf_ipc *ipc,
			bool mapped, void **pointer)
{
	int fd, ret;

	if (ipc->magic != UMF_IPC_MAGIC || ipc->pid <= 0)
		return umf_ipc_invalid("the bytes name no export");
	fd = umf_ipc_duplicate(ipc);
	if (fd < 0) {
		accmem_set_last_error("descriptor %" PRId32
				      " of process %" PRId32 ": %s",
				      ipc->fd, ipc->pid, strerror(-fd));
		return fd == -EBADF ? -EINVAL : fd;
	}
	ret = umf_ipc_is_open(ipc, fd) ?
		      accmem_pool_import(pool, fd, 0, ipc->length, pointer) :
		      umf_ipc_invalid("the export has ended");
	close(fd);
	if (ret || !mapped)
		return ret;
	ret = accmem_pool_map(pool, *pointer);
	if (ret)
		accmem_pool_release(pool, *pointer);
	return ret;
}

int accmem_umf_ipc_close(struct accmem_pool *pool, void *pointer, uint64_t size)
{
	struct accmem_pool_block block;
	struct accmem_query query;

	if (accmem_pool_lookup(pool, pointer, &block) ||
	    block.pointer != pointer ||
	    (size && ((size + PAGE - 1) & -(uint64_t)PAGE) != block.length) ||
	    accmem_get_query(accmem_pool_context(pool), block.address,
			     &query) ||
	    !(query.alloc_flags & ACCMEM_QUERY_IMPORTED))
		return umf_ipc_invalid("nothing was imported there");
	return accmem_pool_release(pool, pointer);
}
