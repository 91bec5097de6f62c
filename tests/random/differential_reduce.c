/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_reduce.c: makes a failing kernel smaller. Works on the text, statement by statement:
 * a statement without results is left out, one with results becomes constants, an `if` becomes the
 * inside of its first branch; a change stays if the text still parses and the engines still differ.
 */
#include "differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINES = 4000, MAX_TRIES = 600 };

/* A text cut into lines. The lines point into `text`. */
typedef struct lines {
    char *text;
    char *line[MAX_LINES];
    int n;
} lines;

static bool split(lines *l, const char *text)
{
    l->n = 0;
    l->text = malloc(strlen(text) + 1);
    if (!l->text)
        return false;
    strcpy(l->text, text);
    for (char *p = l->text; *p && l->n < MAX_LINES;) {
        l->line[l->n++] = p;
        char *end = strchr(p, '\n');
        if (!end)
            break;
        *end = 0;
        p = end + 1;
    }
    return l->n < MAX_LINES;
}

static int indent_of(const char *line)
{
    return (int)strspn(line, " ");
}

/* One past the last line of the statement that starts at line i. */
static int end_of(const lines *l, int i)
{
    size_t n = strlen(l->line[i]);
    if (n == 0 || l->line[i][n - 1] != '{')
        return i + 1;
    int indent = indent_of(l->line[i]), at = i + 1;
    while (at < l->n &&
           (indent_of(l->line[at]) != indent || strncmp(l->line[at] + indent, "};", 2)))
        at++;
    return at < l->n ? at + 1 : l->n;
}

/* A growing text in a block that is large enough for all that is put into it. */
typedef struct writer {
    char *text;
    size_t n;
} writer;

static void put(writer *w, const char *text)
{
    size_t n = strlen(text);
    memcpy(w->text + w->n, text, n + 1);
    w->n += n;
}

static void put_lines(writer *w, const lines *l, int begin, int end)
{
    for (int i = begin; i < end; i++) {
        put(w, l->line[i]);
        put(w, "\n");
    }
}

/* "%4: f32 = const 0x0p+0;" for every "%4: f32" before the " = " of a line. */
static void put_constants(writer *w, const char *line, int value)
{
    const char *p = line + indent_of(line);
    while (*p == '%') {
        size_t name = strcspn(p, ":"), type = strspn(p + name, ": ") + name;
        size_t end = type + strcspn(p + type, ", ");
        char text[128];
        const char *literal = p[type] == 'f'   ? (value ? "0x1p+0" : "0x0p+0")
                              : p[type] == 'b' ? (value ? "true" : "false")
                                               : (value ? "1" : "0");
        snprintf(text, sizeof text, "%.*s = const %s;\n", (int)end, p, literal);
        put(w, text);
        p += end;
        p += strspn(p, ", ");
    }
}

static bool is_fixed(const char *line)
{
    static const char *const words[] = {"kernel ", "view ",      "scalar ",      "yield",       "}",
                                        "= const", "= parallel", "= reduction ", "= sequential"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(line, words[i]);
        if (at && (words[i][0] == '=' || at == line + indent_of(line)))
            return true;
    }
    return false;
}

enum { CHANGE_DROP, CHANGE_ZERO, CHANGE_ONE, CHANGE_INSIDE, N_CHANGES };

/* The text with the statement at lines [begin, end) changed; false if the change does not apply. */
static bool change(const lines *l, int begin, int end, int kind, writer *w)
{
    const char *line = l->line[begin];
    bool has_results = line[indent_of(line)] == '%';
    bool is_if = !strncmp(line + indent_of(line), "if ", 3);
    if ((kind == CHANGE_DROP && has_results) || (kind == CHANGE_INSIDE && !is_if) ||
        ((kind == CHANGE_ZERO || kind == CHANGE_ONE) && !has_results))
        return false;
    w->n = 0;
    put_lines(w, l, 0, begin);
    if (kind == CHANGE_ZERO || kind == CHANGE_ONE)
        put_constants(w, line, kind == CHANGE_ONE);
    if (kind == CHANGE_INSIDE) {
        int stop = begin + 1;
        while (indent_of(l->line[stop]) != indent_of(line))
            stop++;
        put_lines(w, l, begin + 1, stop);
    }
    put_lines(w, l, end, l->n);
    return true;
}

/* The printed form of a text if the engines differ for it too, else NULL. */
static char *try_text(runner *r, test_case *t, const way *w, const char *text)
{
    char what[3 * QN_MESSAGE_BYTES], *printed = NULL;
    qn_kernel *k = NULL;
    if (qn_kernel_parse(text, strlen(text), &k, NULL))
        return NULL;
    if (is_different(r, t, k, w, what, sizeof what))
        printed = kernel_text(k);
    qn_kernel_release(k);
    return printed;
}

/* One successful change of the text, or NULL. `*from` is where to go on. */
static char *reduce_once(runner *r, test_case *t, const way *w, const char *text, int *from,
                         int *tries)
{
    lines *l = malloc(sizeof *l);
    writer out = {malloc(3 * strlen(text) + 4096), 0};
    char *smaller = NULL;
    if (l && out.text && split(l, text)) {
        for (int i = *from; i < l->n && !smaller && *tries < MAX_TRIES; i++) {
            int end = end_of(l, i);
            for (int kind = 0; kind < N_CHANGES && !smaller && !is_fixed(l->line[i]); kind++)
                if (change(l, i, end, kind, &out)) {
                    ++*tries;
                    smaller = try_text(r, t, w, out.text);
                    if (smaller && strlen(smaller) >= strlen(text)) {
                        free(smaller);
                        smaller = NULL;
                    }
                }
            *from = i;
        }
        free(l->text);
    }
    free(l);
    free(out.text);
    return smaller;
}

char *reduce_case(runner *r, test_case *t, const way *w)
{
    char *text = try_text(r, t, w, t->text);
    int from = 0, tries = 0;
    bool has_changed = false;
    while (text) {
        char *smaller = reduce_once(r, t, w, text, &from, &tries);
        if (smaller) {
            free(text);
            text = smaller;
            has_changed = true;
        } else if (has_changed && tries < MAX_TRIES) {
            has_changed = false; /* once more from the top */
            from = 0;
        } else {
            break;
        }
    }
    return text;
}
