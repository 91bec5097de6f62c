/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.h: lines of code, what they are, and their alignment.
 */
#ifndef QUERN_DIFF_H
#define QUERN_DIFF_H

#include <stdint.h>

/** A line of code. */
typedef struct code_line {
    char text[200];
    uint32_t mnemonic; /* a hash of it; 0 of a label */
} code_line;

/** Two lines beside one another; -1 where a side has none. */
typedef struct diff_pair {
    int a, b;
} diff_pair;

typedef struct diff {
    code_line *line[2];
    int n_lines[2];
    diff_pair *pair;
    int n;
} diff;

/** Reads the lines that are labels or instructions; the caller frees *out, also after an error. */
int diff_read(const char *text, code_line **out, int *n);
/** Aligns both; the caller frees *out, also after an error. */
int diff_align(const code_line *a, int n_a, const code_line *b, int n_b, diff_pair **out, int *n);

/* kinds.c */
enum { CODE_MOST_KINDS = 16 };
/** A hash of the first word of an instruction, behind what guards it; never 0. */
uint32_t code_mnemonic(const char *text);
/** The number of the kind of an instruction of x86 or PTX. */
int code_kind(const char *text);
const char *code_kind_name(int number);

#endif
