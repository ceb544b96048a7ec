/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Helpers for tests with drivers of the distribution's kernel as importers and exporters of
 * dma-bufs: to load them, and to end the users of one memory in every order.
 */
#ifndef ORDER_UTIL_H
#define ORDER_UTIL_H

#include "export_util.h"

/* loads a module of the distribution's kernel, and the modules that it depends on */
static inline bool stock_load(const char *name_and_parameters)
{
	char command[256];

	snprintf(command, sizeof(command), "/sbin/modprobe %s",
		 name_and_parameters);
	return !system(command);
}

#define ORDER_USERS 4
#define ORDERS (4 * 3 * 2) /* of four users */

/* the users of one memory: up to three descriptors (-1: none), and a mapping */
struct order {
	int fds[ORDER_USERS - 1];
	char *p;
	uint64_t length;
};

static inline void order_end(struct order *o, unsigned int user)
{
	if (user < ORDER_USERS - 1)
		close(o->fds[user]);
	else
		munmap(o->p, o->length);
}

/* ends all users in the order with this number, which is less than ORDERS */
static inline void order_end_all(struct order *o, unsigned int number)
{
	unsigned int left[ORDER_USERS] = { 0, 1, 2, 3 }, n, i;

	for (n = ORDER_USERS; n; n--) {
		i = number % n;
		number /= n;
		order_end(o, left[i]);
		left[i] = left[n - 1];
	}
}

/* tries to import a dma-buf that another driver has made; returns 0 or -errno */
static inline int import_foreign(int fd, int dma_buf)
{
	struct accmem_import_buffer i = { .size = sizeof(i), .fd = dma_buf };

	return accmem_ioctl(fd, ACCMEM_IOC_IMPORT, &i);
}

#endif /* ORDER_UTIL_H */
