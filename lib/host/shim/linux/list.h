/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The part of the kernel's doubly linked lists that lib/ uses. */
#ifndef ACCMEM_SHIM_LIST_H
#define ACCMEM_SHIM_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline bool list_empty(const struct list_head *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list_head *node, struct list_head *head)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_add(struct list_head *node, struct list_head *head)
{
	list_add_tail(node, head->next);
}

static inline void list_del(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

static inline bool list_is_first(const struct list_head *node,
				 const struct list_head *head)
{
	return node->prev == head;
}

static inline void list_del_init(struct list_head *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	INIT_LIST_HEAD(node);
}

#define list_entry(node, type, member) \
	((type *)((char *)(node) - offsetof(type, member)))
#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)
#define list_first_entry_or_null(head, type, member) \
	(list_empty(head) ? NULL : list_first_entry(head, type, member))
#define list_next(pos, member) \
	list_entry(((pos)->member).next, __typeof__(*(pos)), member)

#define list_for_each_entry(pos, head, member)                               \
	for (pos = list_first_entry(head, __typeof__(*(pos)), member);       \
	     &(pos)->member != (head); pos = list_next(pos, member))
#define list_for_each_entry_safe(pos, n, head, member)                       \
	for (pos = list_first_entry(head, __typeof__(*(pos)), member),       \
	    n = list_next(pos, member);                                      \
	     &(pos)->member != (head); pos = n, n = list_next(n, member))

#endif
