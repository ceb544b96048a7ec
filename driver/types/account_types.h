/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Structures of users and accounts.
 *
 * A user is a Unix user that has opened a context. An account is the object that one
 * open file is charged to. The account outlives its context until the last buffer
 * object that is charged to it is freed.
 *
 * The table of users is guarded by users_lock in core/account.c. References and
 * counters are atomic. The lists of quarantined buffer objects
 * are guarded by the lock of their carveout.
 */
#ifndef ACCMEM_ACCOUNT_TYPES_H
#define ACCMEM_ACCOUNT_TYPES_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/ratelimit.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "lib/queue/queue.h"

#define ACCMEM_MAX_DEVICES 16

struct accmem_context;
struct accmem_waiters;
struct device;
struct file;

/**
 * struct accmem_user - counters and messages of one Unix user
 * @node: node in the table of users; guarded by users_lock
 * @refs: number of accounts, streams and Tensor Memory objects that refer to the user.
 *	A user without references stays in the table until another user opens a file,
 *	and longer while the rate limit of its messages is still in effect.
 * @uid: id of the user who opened the file; inside a user namespace, of the creator of
 *	the outermost namespace that root has not created
 * @contexts: number of accounts, including those whose context has ended
 * @buffers: number of buffers; a buffer counts until its memory is free
 * @bytes: bytes charged to the accounts of the user
 * @pending: number of pending frees; a free counts until its memory is free
 * @fences: number of imported fences that are not reached and of exported fences that
 *	somebody holds
 * @exports: number of dma-bufs and of pins (export/pin.c); a dma-buf counts until it has no
 *	user and the fences of its importers have signalled
 * @waits: number of STREAM_WAIT calls that sleep
 * @resident: number of pages of ordinary memory that are present for the user's buffers
 * @next_drain: time in ns before which the user's requests drain no caches of others,
 *	because an earlier request has drained them in vain
 * @accounts: accounts of the user, by device and account number
 * @messages: rate limit of the log messages that the user causes
 * @left_out: messages that exceeded the rate limit since the last one that did not
 * @last_message: jiffies of the last request for a message; 0 if there was none
 * @nr_waiting: number of waiters of the user on all devices
 * @waiting: the user's share of the queue of waiters of each device; guarded by
 *	accmem_waiters.lock of the device
 */
struct accmem_user {
	struct rb_node node;
	atomic_long_t refs;
	kuid_t uid;
	atomic64_t contexts;
	atomic64_t buffers;
	atomic64_t bytes;
	atomic64_t pending;
	atomic64_t fences;
	atomic64_t exports;
	atomic64_t waits;
	atomic64_t resident;
	u64 next_drain;
	struct xarray accounts;
	struct ratelimit_state messages;
	atomic_t left_out;
	unsigned long last_message;
	atomic_t nr_waiting;
	struct accmem_queue_user waiting[ACCMEM_MAX_DEVICES];
};

/**
 * struct accmem_account_memory - memory of an account in one carveout
 * @allocated: bytes of the account, in any state
 * @quarantined: quarantined buffer objects, the least recently checked first
 * @nr_quarantined: number of entries in @quarantined
 * @mapped: buffer objects that were ever mapped, until they are quarantined or freed
 *
 * Guarded by the carveout's lock.
 */
struct accmem_account_memory {
	u64 allocated;
	struct list_head quarantined;
	unsigned int nr_quarantined;
	struct list_head mapped;
};

/**
 * struct accmem_accounts - accounts of a device
 * @index: number of the device
 * @name: "accmemN"
 * @device: the device; each account has a reference to it
 * @nr_contexts: number of open files
 * @last_id: number of the latest account
 * @xa: accounts by number: those of open files, and those of closed files that still
 *	have memory
 */
struct accmem_accounts {
	unsigned int index;
	char name[16];
	struct device *device;
	atomic_t nr_contexts;
	atomic_long_t last_id;
	struct xarray xa;
};

/**
 * struct accmem_account - the object that an open file is charged to
 * @refs: references: the context, and every buffer object charged to the account
 * @rcu: frees the account after the readers of the account tables have finished
 * @accounts: accounts of the device
 * @waiters: waiters of the device
 * @user: user that opened the file
 * @id: serial number on the device; never reused
 * @pid: thread group that opened the file
 * @comm: name of that process when it opened the file
 * @context: context, or NULL after the context has ended
 * @any_context: context, or NULL after the context has been freed; pending frees and open
 *	files of streams have references to an ended context
 * @bytes: bytes charged to the account
 * @file: file whose address_space the mappings use; NULL before the first mapping
 * @nr_starved: number of waiters of the account that are short of memory; guarded
 *	by accmem_waiters.lock
 * @overdue: bytes of pending frees that are overdue
 * @memory: memory of the account, by index of the carveout
 *
 * The account outlives its context until its last buffer object has been freed.
 */
struct accmem_account {
	struct kref refs;
	struct rcu_head rcu;
	struct accmem_accounts *accounts;
	struct accmem_waiters *waiters;
	struct accmem_user *user;
	u64 id;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	struct accmem_context __rcu *context;
	struct accmem_context __rcu *any_context;
	atomic64_t bytes;
	struct file *file;
	unsigned int nr_starved;
	atomic64_t overdue;
	struct accmem_account_memory memory[];
};

#endif /* ACCMEM_ACCOUNT_TYPES_H */
