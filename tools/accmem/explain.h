/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of accmem explain: explain.c finds the verdict, explain_show.c prints it.
 */
#ifndef ACCMEM_TOOL_EXPLAIN_H
#define ACCMEM_TOOL_EXPLAIN_H

#include "accmem.h"
#include "request.h"

enum verdict { SUCCEEDS, FAILS, WAITS, CANNOT_TELL, NR_VERDICTS };

/* Why a request fails, or what is not known about it */
enum reason {
	NO_REASON,
	REASON_INVALID,
	REASON_UNSUPPORTED,
	REASON_ACCESS,
	REASON_CONTEXTS,
	REASON_REVOKED,
	REASON_USER_BYTES,
	REASON_CONTEXT_BYTES,
	REASON_BUFFERS,
	REASON_CAPACITY,
	REASON_RESERVED,
	REASON_FREE,
	REASON_RUN,
	REASON_ALIGNMENT,
	REASON_RESIDENT,
	REASON_USER_RESIDENT,
	REASON_HOST_FREE,
	REASON_HOST_RAM,
	REASON_QUEUE,
	REASON_WAITS,
	NR_REASONS,
};

extern const char *const reason_names[NR_REASONS];
extern const char *const verdict_names[NR_VERDICTS];

/* What a request finds in a carveout, or in host memory */
struct place {
	char name[16];
	struct accmem_info info;
	int err; /* 0 or the errno value */
	enum reason reason; /* of err, or of the doubt */
	bool doubt; /* err is not certain */
	uint64_t footprint; /* bytes that the request needs here; 0 if that is unknown */
	uint64_t charge;
	bool one_run;
	uint64_t alignment; /* of each run */
	struct hole *holes; /* NULL unless `runs` was read */
	size_t nr_holes;
	const struct hole *best;
};

struct explanation {
	const struct request *req;
	struct snapshot *s;
	const struct device *device;
	uint64_t uid;
	bool exempt; /* CAP_SYS_RESOURCE: the limits of the user do not apply */
	uint64_t charged; /* bytes of the user's contexts, without their caches */
	uint64_t buffers;
	uint64_t user_resident;
	uint64_t resident;
	struct run *runs;
	size_t nr_runs;
	bool has_runs;
	enum verdict verdict;
	int err;
	enum reason reason;
	struct place *places;
	size_t nr_places;
	const struct place
		*place; /* that of the verdict; NULL if it is not about one */
};

void explain(struct explanation *e);
void explain_free(struct explanation *e);
void explain_print(const struct explanation *e);
struct json_object *explain_json(const struct explanation *e);

#endif /* ACCMEM_TOOL_EXPLAIN_H */
