/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.h: reads the lines of case files word by word. Errors end the program with file and line.
 */
#ifndef QN_TESTS_RUN_CASES_READER_H
#define QN_TESTS_RUN_CASES_READER_H

#include "tests/run/run_cases.h"

/** Where reading stands: a line, and the variable of its case. */
typedef struct reader {
    const case_file *file;
    const char *at, *variable;
    int64_t value;
    int line;
} reader;

__attribute__((format(printf, 2, 3), noreturn)) void reader_stop(const reader *r,
                                                                 const char *format, ...);
/** Zeroed memory, also for 0 bytes. */
void *reader_memory(size_t n);

void reader_skip_space(reader *r);
bool reader_at_end(reader *r);
/** Takes the text if it comes next, as a whole word if it ends in a letter or digit. */
bool reader_take(reader *r, const char *text);
/** Takes the text or stops. */
void reader_expect(reader *r, const char *text);
/** A word up to white space or one of the characters of `until`. */
void reader_word(reader *r, const char *until, char *out, size_t out_bytes);
/** Integers and $variable joined by + - * without spaces, from left to right. */
int64_t reader_integer(reader *r);
/** Integers between two characters; returns how many. */
int reader_list(reader *r, const char *open, const char *close, int64_t *out);
/** One value of a dtype, as raw bits: a number, true, false, nan, inf, or bits:0x... */
uint64_t reader_value(reader *r, int dtype);
/** What stands behind "=": n values in index order. */
void reader_data(reader *r, int dtype, int64_t n, uint64_t *out);

#endif
