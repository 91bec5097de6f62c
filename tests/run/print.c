/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.c: what the kernels of cases print: on each engine the same lines, while nothing
 * else changes.
 */
#include "ir/printed.h"
#include "tests/run/run_cases.h"
#include "tests/tap.h"

#include <stdlib.h>

static void append(case_lines *lines, const char *text)
{
    size_t n = strlen(text);
    char *data = realloc(lines->text, lines->n + n + 2);
    if (!data) {
        printf("Bail out! no memory\n");
        exit(1);
    }
    memcpy(data + lines->n, text, n);
    memcpy(data + lines->n + n, "\n", 2);
    lines->text = data;
    lines->n += n + 1;
}

static void take_line(void *arg, const qn_printed *line)
{
    append(arg, line->text);
}

void case_lines_expect(case_instance *c, const char *line)
{
    append(&c->expected_lines, line);
}

void case_lines_want(const case_instance *c, case_lines *lines, qn_options *o)
{
    *lines = (case_lines){0};
    o->print = take_line;
    o->print_arg = lines;
    o->print_lines = c->most_lines;
}

/** Shows the first line that differs. */
static bool are_equal(const case_lines *found, const case_lines *wanted, const char *who)
{
    const char *a = found->text ? found->text : "", *b = wanted->text ? wanted->text : "";
    if (strcmp(a, b) == 0)
        return true;
    while (*a && strcspn(a, "\n") == strcspn(b, "\n") && strncmp(a, b, strcspn(a, "\n")) == 0) {
        a += strcspn(a, "\n") + 1;
        b += strcspn(b, "\n") + 1;
    }
    tap_note("printed \"%.*s\", %s \"%.*s\"", (int)strcspn(a, "\n"), a, who, (int)strcspn(b, "\n"),
             b);
    return false;
}

bool case_lines_are_expected(case_instance *c, case_lines *lines)
{
    bool passed = !c->expects_lines || are_equal(lines, &c->expected_lines, "expected");
    free(c->reference_lines.text);
    c->reference_lines = *lines;
    return passed;
}

bool case_lines_agree(const case_instance *c, case_lines *lines)
{
    bool passed = are_equal(lines, &c->reference_lines, "interpreter");
    free(lines->text);
    return passed;
}

void case_lines_free(case_instance *c)
{
    free(c->expected_lines.text);
    free(c->reference_lines.text);
}

bool case_prints(const qn_kernel *k)
{
    return k->has_prints;
}

/* ---------------------------------------------------------------- PTX */

static void read_rows(const qn_kernel *k, const int64_t *word, int64_t most, case_lines *lines)
{
    qn_printed_line line;
    int64_t n = word[0];
    for (int64_t i = 1; i <= n && i <= most; i++) {
        qn__printed_read(k, word + i * qn__printed_words(k), &line);
        append(lines, line.line.text);
        qn__printed_release(&line);
    }
    if (n <= most)
        return;
    qn__printed_lost(n - most, &line);
    append(lines, line.line.text);
    qn__printed_release(&line);
}

qn_status case_lines_of_ptx(ptx_cases *p, const qn_kernel *k, int n, const qn_arg *args,
                            const case_instance *c, int way, uint32_t seed, case_lines *lines,
                            qn_error *err)
{
    const int64_t most = c->most_lines ? c->most_lines : QN_PRINT_LINES;
    const int64_t extents[2] = {most + 1, qn__printed_words(k)};
    size_t n_bytes = (size_t)(extents[0] * extents[1]) * sizeof(int64_t);
    case_instance more = *c;
    qn_arg all[MAX_BINDINGS + 1];
    qn_view rows;
    qn_layout layout;
    const qn_kernel *printing;
    k = qn__kernel_to_print(k);
    *lines = (case_lines){0};
    case_storage *s = &more.storage[more.n_storages];
    *s =
        (case_storage){.bytes = malloc(n_bytes), .initial = calloc(1, n_bytes), .n_bytes = n_bytes};
    qn_status status = qn__kernel_printing(k, &printing, err);
    if (status == QN_OK)
        status = qn_layout_right(2, extents, &layout, err);
    if (status == QN_OK)
        status = qn_view_wrap("rows", s->bytes, QN_I64, &layout, QN_UNCHECKED, &rows, err);
    if (status == QN_OK && more.n_storages < MAX_BINDINGS - 1) {
        memcpy(all, args, (size_t)n * sizeof *args);
        all[n] = qn_arg_view(&rows);
        more.n_storages++;
        status = ptx_cases_run(p, printing, n + 1, all, &more, way, seed, err);
        read_rows(k, (const int64_t *)(const void *)s->bytes, most, lines);
    }
    free(s->bytes);
    free(s->initial);
    return status;
}
