/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Users and accounts: the structures.
 */
#ifndef ACCMEM_ACCOUNT_TYPES_H
#define ACCMEM_ACCOUNT_TYPES_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/ratelimit.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/uidgid.h>
#include <linux/xarray.h>

#include "lib/queue/queue.h"

#define ACCMEM_MAX_DEVICES 16

struct accmem_context;
struct accmem_waiters;
struct file;

/**
 * struct accmem_user - what one user of the system holds
 * @node: in the table of users
 * @refs: its accounts, and Tensor Memory of its contexts; guarded by the table's
 *	lock. One without stays in the table for as long as messages of it count.
 * @uid: the user, as it was when the file was opened
 * @contexts: accounts, ended ones too
 * @buffers: buffers, until their memory is free again
 * @bytes: what their memory withholds from others
 * @pending: frees that wait, until their memory is free again
 * @accounts: its accounts, by device and number
 * @messages: how many messages it may still cause
 * @last_message: jiffies when it last asked to; 0 for never
 * @waiting: its calls that wait, of each device; guarded by accmem_waiters_lock
 */
struct accmem_user {
	struct hlist_node node;
	unsigned long refs;
	kuid_t uid;
	atomic64_t contexts;
	atomic64_t buffers;
	atomic64_t bytes;
	atomic64_t pending;
	struct xarray accounts;
	struct ratelimit_state messages;
	unsigned long last_message;
	struct accmem_queue_user waiting[ACCMEM_MAX_DEVICES];
};

/**
 * struct accmem_quarantine - quarantined memory of an account in one carveout
 * @memory: the memory, what was looked at longest ago first
 * @nr: how much that is
 *
 * Guarded by the carveout's lock.
 */
struct accmem_quarantine {
	struct list_head memory;
	unsigned int nr;
};

/**
 * struct accmem_accounts - the accounts of a device
 * @index: number of the device
 * @name: "accmemN"
 * @nr_contexts: open files
 * @last_id: number of the latest account
 * @xa: accounts by number; an account stays after its file until its memory is free
 */
struct accmem_accounts {
	unsigned int index;
	char name[16];
	atomic_t nr_contexts;
	atomic_long_t last_id;
	struct xarray xa;
};

/**
 * struct accmem_account - what an open file is charged for
 * @refs: the context, and every memory that is charged to it
 * @rcu: frees it when nobody can be looking at it any more
 * @accounts: the accounts of the device
 * @waiters: the waiters of the device
 * @user: who opened the file
 * @id: serial number on the device; never used again
 * @pid: thread group that opened the file
 * @comm: its name then
 * @context: the context, NULL when it has ended
 * @bytes: what its memory withholds from others
 * @file: behind the mappings of its memory; NULL before the first one
 * @nr_starved: its calls that wait for memory; guarded by accmem_waiters_lock
 * @overdue: bytes that have been pending for too long
 * @overdue_limit: of messages about it
 * @quarantine: its quarantined memory, by carveout
 *
 * It outlives its context until the last of its memory has gone.
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
	atomic64_t bytes;
	struct file *file;
	unsigned int nr_starved;
	atomic64_t overdue;
	struct ratelimit_state overdue_limit;
	struct accmem_quarantine quarantine[];
};

#endif /* ACCMEM_ACCOUNT_TYPES_H */
