/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c: `quern cache` shows, checks and moves the code that is kept on disk. Actions are a table.
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
    const char *folder; /* NULL: the usual one */
    const char *bundle;
} request;

/* What a walk counts. */
typedef struct totals {
    bool shows_all;
    int64_t n, n_refused, bytes;
} totals;

/* A name from a file, which may be anything, on one line: bytes below a blank and delete are \xHH. */
static void print_name(const char *name)
{
    for (const unsigned char *at = (const unsigned char *)name; *at; at++)
        if (*at < ' ' || *at == 0x7f)
            printf("\\x%02x", (unsigned)*at);
        else
            putchar(*at);
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
    if (e->refused)
        printf("%.12s  refused: %s\n", e->path, e->refused);
    if (e->refused || !t->shows_all)
        return;
    printf("%.12s  %-5s %8" PRId64 "  %s  ", e->path, e->kind, e->code_bytes, date);
    print_name(e->kernel[0] ? e->kernel : "(no name)");
    printf("%s\n", e->is_of_this_build ? "" : "  (of another build)");
}

static int visit_all(const request *r, bool shows_all, totals *t)
{
    qn_error err = {0};
    *t = (totals){.shows_all = shows_all};
    if (qn_cache_visit(r->folder, visit, t, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    printf("%" PRId64 " entries, %" PRId64 " bytes, %" PRId64 " refused\n", t->n, t->bytes, t->n_refused);
    return EXIT_OK;
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
    printf("%" PRId64 " entries removed\n", n);
    return EXIT_OK;
}

static int copy(const request *r, qn_status (*how)(const char *, const char *, int64_t *, qn_error *))
{
    qn_error err = {0};
    int64_t n = 0;
    if (how(r->folder, r->bundle, &n, &err) != QN_OK)
        return tool_fail(EXIT_ERROR, "%s", err.message);
    printf("%" PRId64 " entries copied\n", n);
    return EXIT_OK;
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

int command_cache(int argc, char **argv)
{
    request r = {0};
    int n = 0, action = 0;
    const char *word[2] = {0};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--folder") == 0 && i + 1 < argc)
            r.folder = argv[++i];
        else if (argv[i][0] == '-')
            return tool_fail(EXIT_USAGE, "cache %s: no such option, or its value is missing", argv[i]);
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
        return tool_fail(EXIT_USAGE, actions[action].takes_bundle ? "cache %s takes the folder of a bundle" : "cache %s takes no folder but --folder",
                         word[0]);
    r.bundle = word[1];
    return actions[action].run(&r);
}
