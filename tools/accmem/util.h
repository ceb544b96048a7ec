/* SPDX-License-Identifier: GPL-2.0 */
/* Memory, files, text and time: functions that know nothing of devices. */
#ifndef ACCMEM_TOOL_UTIL_H
#define ACCMEM_TOOL_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* files.c */
void *xcalloc(size_t nr, size_t size);
void *resize(void *array, size_t nr, size_t size);
void *grow(void *array, size_t nr, size_t size);
void *reach(void *array, uint32_t *nr, uint32_t index, size_t size, int fill);
char *format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *vformat(const char *fmt, va_list list);
char *read_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool read_word(char *word, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
uint64_t read_number(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));
int write_text(const char *text, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void copy_word(char *to, size_t size, const char *from);
char *base_name(const char *path);
char *trace_line(FILE *file, char **line, size_t *room, unsigned long *number);

/* progress.c */
uint64_t now_ns(void);
void progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* ACCMEM_TOOL_UTIL_H */
