/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts that the commands of accmem share.
 *
 * A snapshot has what the caller may read about the devices, their memory, the contexts
 * (open files of a device), the users, the waiting requests and the limits. A number that
 * the caller may not read, or that does not exist, is UNKNOWN.
 */
#ifndef ACCMEM_TOOL_H
#define ACCMEM_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util.h"

#define CLASS "/sys/class/accmem"
#define DEBUGFS "/sys/kernel/debug/accmem"
#define PARAMETERS "/sys/module/accmem/parameters"

#define UNKNOWN UINT64_MAX

#define GRANULE 4096ull /* unit of allocation */
#define FOLIO \
	(2ull << 20) /* on some devices, all of it belongs to one context */

/* Exit statuses of all commands except run. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1, /* something could not be read, written or found */
	STATUS_USAGE = 2,
	STATUS_NO_DEVICE = 3, /* no device, or the named one does not exist */
};

/* Numbers of a device, of each carveout and of host memory: files of sysfs. */
enum value {
	CAPACITY,
	FREE,
	LIVE,
	DETACHED,
	PENDING,
	QUARANTINED,
	RETIRED,
	RETIRE_PENDING,
	RETIRE_FAILED,
	LARGEST,
	DIRTY,
	RESIDENT,
	BUFFERS,
	ALLOCS,
	FREES,
	FAILURES,
	NR_VALUES,
};

struct memory {
	char name[16]; /* "carveout0" or "host" */
	char bandwidth[16];
	int numa_node;
	uint64_t value[NR_VALUES];
};

struct waiter {
	uint64_t context;
	uint64_t uid;
	uint64_t bytes;
	char state[16];
	uint64_t bypassed;
	uint64_t ms;
};

struct device {
	char name[16];
	char parent[64]; /* name of the platform or PCI device */
	char driver[32];
	uint64_t contexts;
	bool one_moment; /* the bytes of a memory in each state belong to one moment */
	uint64_t value[NR_VALUES]; /* sums over the carveouts */
	struct memory *memories; /* carveouts, then host memory */
	size_t nr_memories;
	struct waiter *waiters; /* the first of the queue, in its order */
	size_t nr_waiters;
	uint64_t nr_waiting; /* all, also those without an element of waiters */
	uint64_t held; /* free bytes that are held for the reserved request */
};

/* Numbers of a context: lines of fdinfo. */
enum use {
	USE_BUFFERS,
	USE_LIVE,
	USE_HOST,
	USE_PENDING,
	USE_OVERDUE,
	USE_WAITING,
	USE_CHARGED,
	NR_USES,
};

struct context {
	char device[16];
	uint64_t id;
	uint64_t uid;
	pid_t *pids; /* processes that have the file open, else the one that opened it */
	size_t nr_pids;
	bool open; /* a process that the caller may see has the file open */
	char comm[32];
	uint64_t use[NR_USES];
};

enum charge {
	CHARGE_CONTEXTS,
	CHARGE_BUFFERS,
	CHARGE_BYTES,
	CHARGE_PENDING,
	CHARGE_FENCES,
	CHARGE_WAITS,
	CHARGE_RESIDENT,
	CHARGE_EXPORTS,
	NR_CHARGES,
};

struct user {
	uint64_t uid;
	uint64_t charge[NR_CHARGES];
};

enum { NR_LIMITS = 11 };

struct snapshot {
	struct device *devices;
	size_t nr_devices;
	struct context *contexts;
	size_t nr_contexts;
	struct user *users;
	size_t nr_users;
	uint64_t limits[NR_LIMITS];
	bool all; /* debugfs was read: nothing of other users is missing */
};

extern const char *const value_names[NR_VALUES];
extern const char *const use_names[NR_USES];
extern const char *const charge_names[NR_CHARGES];
extern const char *const limit_names[NR_LIMITS];

/* snapshot.c */
int snapshot_read(struct snapshot *s);
int snapshot_read_totals(struct snapshot *s);
void snapshot_free(struct snapshot *s);
struct device *snapshot_device(const struct snapshot *s, const char *name);
const struct context *snapshot_context(const struct snapshot *s,
				       const char *device, uint64_t id);

void limits_read(struct snapshot *s);
bool limit_is_known(size_t limit, uint64_t value);
uint64_t sum_of_known(uint64_t a, uint64_t b);
bool in_use(const struct device *d);

/* buffers.c */
struct buffer {
	char device[16];
	uint64_t context;
	uint64_t address;
	uint64_t length;
	uint64_t footprint;
	unsigned int runs;
	unsigned int cache_mode;
	unsigned int carveout;
	bool host;
	bool mapped;
	bool imported;
};

bool buffers_read(struct buffer **buffers, size_t *nr, const char *device);

/* runs.c */
enum run_state {
	RUN_FREE,
	RUN_CACHED,
	RUN_LIVE,
	RUN_DETACHED,
	RUN_PENDING,
	RUN_QUARANTINED,
	RUN_RETIRED,
	NR_RUN_STATES,
};

struct run {
	unsigned int carveout;
	enum run_state state;
	uint64_t offset;
	uint64_t size;
	uint64_t context; /* 0: none */
	uint64_t uid;
};

/* A line of `retired` of a carveout */
struct failed_part {
	uint64_t offset;
	uint64_t size;
	bool pending; /* in a buffer that is not freed */
};

bool failed_read(struct failed_part **parts, size_t *nr, const char *carveout);

/* The bytes of some runs that one context has */
struct owner {
	uint64_t context;
	uint64_t uid;
	uint64_t bytes;
};

/* Memory between used runs */
struct hole {
	uint64_t offset;
	uint64_t size;
	const struct run *before; /* NULL at the ends of the carveout */
	const struct run *after;
};

extern const char *const run_names[NR_RUN_STATES];

bool runs_read(struct run **runs, size_t *nr, const char *device);
bool run_is_used(const struct run *r);
struct owner *owners_of(const struct run *runs, size_t nr_runs,
			bool (*wanted)(const struct run *r, const void *arg),
			const void *arg, size_t *nr);
size_t owner_find(const struct owner *owners, size_t nr, uint64_t context);
struct hole *holes_of(const struct run *runs, size_t nr_runs,
		      unsigned int carveout, uint64_t capacity, uint64_t unit,
		      size_t *nr);

/* contexts.c: parts of a snapshot */
struct account { /* a line of `contexts` in debugfs */
	char device[16];
	uint64_t id;
	pid_t pid;
	char comm[32];
	uint64_t uid;
	uint64_t buffers;
	uint64_t charged;
	bool ended;
	/* sums over the buffers of the context, where a command adds them up */
	uint64_t nr;
	uint64_t live;
	uint64_t host;
};

bool accounts_read(struct account **accounts, size_t *nr, const char *device);
void contexts_read(struct snapshot *s);
/* The order of contexts: by device and number. As strcmp() */
int context_order(const char *device, uint64_t id, const char *other_device,
		  uint64_t other_id);
/* qsort() and bsearch() for the contexts of a snapshot */
int contexts_compare(const void *a, const void *b);
const char *fdinfo_value(const char *text, const char *key);
char *thread_with_files(const char *process);
void fdinfo_walk(bool (*may_be)(const char *link),
		 void (*each)(pid_t pid, const char *fdinfo, void *arg),
		 void *arg);
bool users_read(struct snapshot *s);
void users_from_contexts(struct snapshot *s);

/* processes.c */
struct context *processes_merge(const struct snapshot *s, size_t *nr);

/* files.c: files below ACCMEM_SYSROOT */
char *path_of(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool path_exists(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *why_hidden(void);
void read_link(char *word, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* write_file.c */
int write_file(const char *command, const char *path,
	       void (*print)(FILE *f, void *data), void *data);

/* output.c */
enum color { PLAIN, BOLD, GREEN, YELLOW, MAGENTA, RED, BLUE, CYAN };

bool output_is_terminal(void);
bool colors_are_off(void);
int output_width(void);
void output_color(enum color color);
const char *size_text(uint64_t bytes, char text[16]);
const char *number_text(uint64_t number, char text[32]);
const char *user_text(uint64_t uid, char text[33]);
const char *pids_text(const struct context *c, char text[32]);

/* table.c: text in columns */
struct column {
	const char *title;
	bool right; /* aligned to the right */
	int rank; /* if there is no room, the highest ranks are left out; 0: never */
};

struct table;

struct table *table_new(const struct column *columns, size_t nr);
void table_add(struct table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void table_print(struct table *t);
void table_free(struct table *t);

/* bar.c: a bar of the bytes by state */
void bar_print(const uint64_t value[NR_VALUES], int width);
void bar_legend(const uint64_t value[NR_VALUES], int indent);
char bar_letter(enum run_state state, enum color *color);

/* json.c */
struct json_object;
void json_add_text(struct json_object *o, const char *name, const char *text);
void json_add_number(struct json_object *o, const char *name, uint64_t number);
void json_add_bool(struct json_object *o, const char *name, bool value);
struct json_object *json_of_limits(const struct snapshot *s);
struct json_object *json_of_devices(const struct snapshot *s);
struct json_object *json_of_snapshot(const struct snapshot *s);
struct json_object *json_of_found(const struct context **contexts,
				  size_t nr_contexts,
				  const struct buffer *buffers,
				  size_t nr_buffers);
struct tmem;
struct json_object *json_of_tmem(const struct snapshot *s,
				 const struct tmem *list, size_t nr);
void json_write(FILE *f, struct json_object *object);
void json_print(struct json_object *object);

/* options.c: what the commands that show something have in common */
struct options {
	bool json;
	double watch; /* seconds between two outputs, 0: one output */
	bool force;
	bool owners;
	bool states;
	bool svg;
	bool report;
};

int options_parse(struct options *o, int argc, char **argv, const char *allowed,
		  const char *usage);
int options_watch(const struct options *o,
		  int (*show)(const struct options *o, void *arg), void *arg);
bool size_parse(const char *text, uint64_t *size);
int take_device(int argc, char **argv, const char *usage, const char *command,
		int (*take)(const struct device *d));
int snapshot_with(struct snapshot *s, const char *name);
int no_devices(void);
int no_device(const char *name);

/* the commands */
int command_show(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_cdi(int argc, char **argv);
int command_check(int argc, char **argv);
int command_who(int argc, char **argv);
int command_limits(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_record(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_reset(int argc, char **argv);
int command_retire(int argc, char **argv);
int command_map(int argc, char **argv);
int command_metrics(int argc, char **argv);
int command_tmem(int argc, char **argv);
int command_top(int argc, char **argv);
int command_run(int argc, char **argv);

#endif /* ACCMEM_TOOL_H */
