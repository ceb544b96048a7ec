/* SPDX-License-Identifier: GPL-2.0 */
/*
 * accmem check: the readings, the findings, and the checks that turn one into the other.
 *
 * The files of a device that is in use change while they are read. A finding is reported only
 * if several readings have it. A finding is the same in two readings if its check, its object
 * and its text are the same: the text has the numbers that do not agree.
 */
#ifndef ACCMEM_CHECK_H
#define ACCMEM_CHECK_H

#include "accmem.h"

enum { DEVICES = 16 }; /* that the driver creates at most */

/* The condition under which readings confirm a finding. */
enum finding_basis {
	ONE_MOMENT, /* its numbers belong to one moment: the text may change */
	QUIET, /* its numbers are compared only if the device did not change meanwhile */
	LASTING, /* the state is a fault only if it lasts */
};

struct finding {
	enum finding_basis basis;
	const char *check;
	char *object;
	char *text;
	unsigned int readings; /* that have it */
	uint64_t since; /* time of the first of these readings in ns */
};

struct findings {
	struct finding *list;
	size_t nr;
};

/* What one pass over the files has found. */
struct reading {
	struct snapshot s;
	struct account *accounts;
	size_t nr_accounts;
	struct buffer *buffers;
	size_t nr_buffers;
	bool quiet[DEVICES]; /* by number: nothing has changed during the pass */
	bool all_quiet;
};

void finding_add(struct findings *f, enum finding_basis basis,
		 const char *check, const char *object, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* check_reading.c */
unsigned int number_of(const char *device);
void reading_take(struct reading *r);
void reading_free(struct reading *r);
bool is_quiet(const struct reading *r, const char *device);

/* check_memory.c */
void check_memories(struct findings *f, const struct reading *r,
		    const struct device *d);
void check_waiters(struct findings *f, const struct device *d);

/* check_contexts.c */
void check_contexts(struct findings *f, const struct reading *r,
		    const struct device *d);
void check_users(struct findings *f, const struct reading *r);

/* check_buffers.c */
void check_buffers(struct findings *f, const struct reading *r,
		   const struct device *d);

/* check_tmem.c */
void check_tmem(struct findings *f, const struct device *d);

/* check_system.c */
void check_node(struct findings *f, const struct device *d);
void check_module(struct findings *f);
bool check_log(struct findings *f);
bool log_walk(void (*each)(const char *record, void *arg), void *arg);

/* report.c */
void report_print(const struct snapshot *s, const char *only);

#endif /* ACCMEM_CHECK_H */
