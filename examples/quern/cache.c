/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c: `quern cache` shows, checks and moves the code that is kept on disk. Actions are a
 * table.
 */
#include "tool.h"

#include "quern/cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The words of the command. */
typedef struct request {
    const tool_manner *how;
    const char *action;
    const char *folder; /* NULL: the usual one */
    const char *bundle;
} request;

/* What a walk counts. */
typedef struct totals {
    bool shows_all;
    json *j; /* NULL: text */
    int64_t n, n_refused, bytes;
} totals;

/* A name from a file, which may be anything, on one line: bytes below a blank and delete are \xHH.
 */
static void print_name(const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (*at < ' ' || *at == 0x7f)
            printf("\\x%02x", (unsigned)*at);
        else
            putchar(*at);
}

static void tell_json(json *j, const qn_cache_entry *e)
{
    json_open(j, NULL, '{');
    json_text(j, "path", e->path);
    if (e->refused) {
        json_text(j, "refused", e->refused);
    } else {
        json_text(j, "kind", e->kind);
        json_int(j, "code_bytes", e->code_bytes);
        json_int(j, "file_bytes", e->file_bytes);
        json_int(j, "used", e->used);
        json_text(j, "kernel", e->kernel);
        json_word(j, "of_this_build", e->is_of_this_build ? "true" : "false");
    }
    json_close(j);
}

static void visit(void *arg, const qn_cache_entry *e)
{
    totals *t = arg;
    time_t used = (time_t)e->used;
    char date[32] = "?";
    const struct tm *when = localtime(&used);
    if (when)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", when);
    t->n++;
    t->bytes += e->file_bytes;
    t->n_refused += e->refused != NULL;
    if (t->j && (e->refused || t->shows_all))
        tell_json(t->j, e);
    if (t->j)
        return;
    if (e->refused)
        printf("%.12s  refused: %s\n", e->path, e->refused);
    if (e->refused || !t->shows_all)
        return;
    printf("%.12s  %-5s %8" PRId64 "  %s  ", e->path, e->kind, e->code_bytes, date);
    print_name(e->kernel[0] ? e->kernel : "(no name)");
    printf("%s\n", e->is_of_this_build ? "" : "  (of another build)");
}

static int begin(const request *r, json *j)
{
    if (!r->how->json)
        return EXIT_OK;
    if (!json_begin(j, "cache"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(j, "action", r->action);
    return EXIT_OK;
}

static int visit_all(const request *r, bool shows_all, totals *t)
{
    qn_error err = {0};
    json j = {0};
    int status = begin(r, &j);
    *t = (totals){.shows_all = shows_all, .j = r->how->json ? &j : NULL};
    if (status != EXIT_OK)
        return status;
    if (t->j)
        json_open(&j, "entries", '[');
    if (qn_cache_visit(r->folder, visit, t, &err) != QN_OK)
        return json_end(&j, tool_fail(EXIT_ERROR, "%s", err.message));
    if (t->j) {
        json_close(&j);
        json_int(&j, "n", t->n);
        json_int(&j, "bytes", t->bytes);
        json_int(&j, "refused", t->n_refused);
        return json_end(&j, EXIT_OK);
    }
    printf("%" PRId64 " entries, %" PRId64 " bytes, %" PRId64 " refused\n", t->n, t->bytes,
           t->n_refused);
    return EXIT_OK;
}

/* Tells what was done with how many entries. */
static int tell(const request *r, int64_t n, const char *what)
{
    json j = {0};
    int status = begin(r, &j);
    if (r->how->json && status == EXIT_OK)
        json_int(&j, "n", n);
    else if (status == EXIT_OK)
        printf("%" PRId64 " entries %s\n", n, what);
    return json_end(&j, status);
}

static int do_list(const request *r)
{
    totals t;
    return visit_all(r, true, &t);
}

static int do_verify(const request *r)
{
    totals t;
    int status = visit_all(r, false, &t);
    return status == EXIT_OK && t.n_refused ? EXIT_ERROR : status;
}

static int do_clear(const request *r)
{
    qn_error err = {0};
    int64_t n = 0;
    if (qn_cache_clear(r->folder, &n, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    return tell(r, n, "removed");
}

static int copy(const request *r,
                qn_status (*how)(const char *, const char *, int64_t *, qn_error *))
{
    qn_error err = {0};
    int64_t n = 0;
    if (how(r->folder, r->bundle, &n, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    return tell(r, n, "copied");
}

static int do_export(const request *r)
{
    return copy(r, qn_cache_export);
}

static int do_import(const request *r)
{
    return copy(r, qn_cache_import);
}

static const struct {
    const char *name;
    bool takes_bundle;
    int (*run)(const request *r);
} actions[] = {
    {"list", false, do_list},    {"verify", false, do_verify}, {"clear", false, do_clear},
    {"export", true, do_export}, {"import", true, do_import},
};
enum { N_ACTIONS = sizeof actions / sizeof actions[0] };

int command_cache(const tool_manner *how, int argc, char **argv)
{
    request r = {.how = how};
    int n = 0, action = 0;
    const char *word[2] = {0};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc)
            r.folder = argv[++i];
        else if (argv[i][0] == '-')
            return tool_fail(EXIT_USAGE, "cache %s: no such option, or its value is missing",
                             argv[i]);
        else if (n == 2)
            return tool_fail(EXIT_USAGE, "cache: too many words, at %s", argv[i]);
        else
            word[n++] = argv[i];
    }
    while (n > 0 && action < N_ACTIONS && strcmp(word[0], actions[action].name) != 0)
        action++;
    if (n == 0 || action == N_ACTIONS)
        return tool_fail(EXIT_USAGE, "cache: expected list, verify, clear, export or import");
    if ((n == 2) != actions[action].takes_bundle)
        return tool_fail(EXIT_USAGE,
                         actions[action].takes_bundle ? "cache %s takes the folder of a bundle"
                                                      : "cache %s takes no folder but --folder",
                         word[0]);
    r.action = word[0];
    r.bundle = word[1];
    return actions[action].run(&r);
}
