/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c: results as one JSON object, which is made in memory, so that the standard output has all
 * of it or nothing. Numbers that JSON lacks are the strings "nan", "inf" and "-inf".
 */
#define _POSIX_C_SOURCE 200809L
#include "json.h"
#include "tool.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Length of the UTF-8 character at `at`, 0 if there is none. */
static int utf8_length(const unsigned char *at)
{
    int n = at[0] < 0x80                    ? 1
            : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
            : at[0] >= 0xe0 && at[0] < 0xf0 ? 3
            : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                            : 0;
    for (int i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool is_bad = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0) ||
                  (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90);
    return is_bad ? 0 : n;
}

static void write_string(FILE *f, const char *text, size_t n_text)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + n_text;
    fputc('"', f);
    while (at < end) {
        int n = utf8_length(at);
        if (*at == '"' || *at == '\\')
            fprintf(f, "\\%c", *at);
        else if (*at == '\n')
            fputs("\\n", f);
        else if (*at < ' ' || *at == 0x7f)
            fprintf(f, "\\u%04x", *at);
        else if (n == 0)
            fputs("\\ufffd", f);
        else
            fwrite(at, 1, (size_t)n, f);
        at += n ? n : 1;
    }
    fputc('"', f);
}

/* What stands before a value: the comma, and the name where the value is a member. */
static void begin_value(json *j, const char *name)
{
    if (j->has_some)
        fputc(',', j->f);
    if (j->depth > 0)
        fputs(j->depth == 1 ? "\n  " : j->has_some ? " " : "", j->f);
    j->has_some = true;
    if (name) {
        write_string(j->f, name, strlen(name));
        fputs(": ", j->f);
    }
}

bool json_begin(json *j, const char *command)
{
    *j = (json){0};
    j->f = open_memstream(&j->text, &j->n);
    if (!j->f)
        return false;
    json_open(j, NULL, '{');
    json_text(j, "command", command);
    return true;
}

void json_open(json *j, const char *name, char bracket)
{
    begin_value(j, name);
    fputc(bracket, j->f);
    j->close[j->depth++] = bracket == '{' ? '}' : ']';
    j->has_some = false;
}

void json_close(json *j)
{
    char bracket = j->close[--j->depth];
    if (j->depth == 0)
        fputc('\n', j->f);
    fputc(bracket, j->f);
    j->has_some = true;
}

void json_text(json *j, const char *name, const char *text)
{
    begin_value(j, name);
    write_string(j->f, text, strlen(text));
}

void json_int(json *j, const char *name, int64_t value)
{
    begin_value(j, name);
    fprintf(j->f, "%" PRId64, value);
}

void json_real(json *j, const char *name, double value, int digits)
{
    begin_value(j, name);
    if (isfinite(value))
        fprintf(j->f, "%.*g", digits, value);
    else
        fputs(isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"", j->f);
}

void json_word(json *j, const char *name, const char *word)
{
    begin_value(j, name);
    fputs(word, j->f);
}

void json_lines(json *j, const char *name, const char *text)
{
    json_open(j, name, '[');
    while (*text) {
        size_t n = strcspn(text, "\n");
        begin_value(j, NULL);
        write_string(j->f, text, n);
        text += n + (text[n] == '\n');
    }
    json_close(j);
}

int json_end(json *j, int status)
{
    if (!j->f)
        return status;
    if (status == EXIT_OK)
        json_close(j);
    bool is_good = !ferror(j->f);
    is_good = fclose(j->f) == 0 && is_good;
    if (status == EXIT_OK && is_good)
        puts(j->text);
    free(j->text);
    *j = (json){0};
    return status != EXIT_OK || is_good ? status : tool_fail(EXIT_ERROR, "out of memory");
}
