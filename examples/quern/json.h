/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h: results as one JSON object (RFC 8259). docs/tool.md has the members of each command.
 */
#ifndef QUERN_JSON_H
#define QUERN_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** A value being written. All-zero: nothing was begun. */
typedef struct json {
    FILE *f;
    char *text;
    size_t n;
    char close[16]; /* brackets that are open */
    int depth;
    bool has_some; /* the innermost bracket has a value */
} json;

/** Opens the object, whose first member is the command. False without memory. */
bool json_begin(json *j, const char *command);
/** Closes the object and prints it, if the status is EXIT_OK, and frees it in any case; nothing is
 * done for what was not begun. Returns the status, or EXIT_ERROR after a message if memory was
 * missing. */
int json_end(json *j, int status);

/* A value. `name` is that of a member of an object, NULL for an element of an array. */
void json_open(json *j, const char *name, char bracket); /**< '{' or '[' */
void json_close(json *j);                                /**< the innermost one */
void json_text(json *j, const char *name, const char *text);
void json_int(json *j, const char *name, int64_t value);
void json_real(json *j, const char *name, double value, int digits);
/** A word as it is: true, false, null, or a number that is already text. */
void json_word(json *j, const char *name, const char *word);
/** The lines of a text as an array. */
void json_lines(json *j, const char *name, const char *text);

#endif
