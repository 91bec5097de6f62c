/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff.c: `quern diff` shows two texts of code side by side, and how many instructions of each kind
 * both have. Lines are aligned so that the sum of what they have in common is the largest:
 * Hirschberg's algorithm, which needs memory for lines only. Names of labels and comments are no
 * differences.
 */
#include "diff.h"
#include "tool.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What a pair of lines is worth: the whole text, or the mnemonic only. */
enum { SAME = 3, ALIKE = 1, MOST_LINES = 20000, COLUMN = 56, CONTEXT = 3 };

typedef struct aligned {
    const code_line *a, *b;
    diff_pair *pair;
    int n;
    int32_t *score[2]; /* of lines of b, forwards and backwards */
} aligned;

/* ---------------------------------------------------------------- lines */

static bool is_space(char c)
{
    return isspace((unsigned char)c) != 0;
}

/* Copies a line without comment, with one blank for any space, and with L for the number of a
 * label. */
static void normalise(const char *line, size_t n, code_line *out)
{
    size_t k = 0;
    for (size_t i = 0; i < n && k + 2 < sizeof out->text; i++) {
        if (line[i] == '#' && (i == 0 || is_space(line[i - 1])) &&
            (i + 1 == n || is_space(line[i + 1])))
            break; /* a comment of the assembler of x86 */
        if (line[i] == '/' && i + 1 < n && line[i + 1] == '/')
            break;
        if (is_space(line[i])) {
            if (k > 0 && out->text[k - 1] != ' ')
                out->text[k++] = ' ';
            continue;
        }
        out->text[k++] = line[i];
        if (k >= 3 && memcmp(out->text + k - 3, "BB0", 3) == 0)
            while (i + 1 < n && (isdigit((unsigned char)line[i + 1]) || line[i + 1] == '_'))
                i++;
    }
    while (k > 0 && out->text[k - 1] == ' ')
        k--;
    out->text[k] = 0;
}

int diff_read(const char *text, code_line **out, int *n)
{
    int capacity = 1;
    for (const char *at = text; *at; at++)
        capacity += *at == '\n';
    *n = 0;
    *out = calloc((size_t)capacity, sizeof **out);
    if (!*out)
        return tool_fail(EXIT_ERROR, "out of memory");
    for (; *text; text += *text == '\n') {
        size_t length = strcspn(text, "\n");
        code_line *line = &(*out)[*n];
        normalise(text, length, line);
        text += length;
        size_t last = strlen(line->text);
        if (last == 0)
            continue;
        bool is_label = line->text[last - 1] == ':';
        if (!is_label && !isalpha((unsigned char)line->text[0]) && line->text[0] != '@')
            continue; /* for the assembler */
        line->mnemonic = is_label ? 0 : code_mnemonic(line->text);
        if (++*n > MOST_LINES)
            return tool_fail(EXIT_ERROR, "diff: code of more than %d lines", MOST_LINES);
    }
    return EXIT_OK;
}

/* ---------------------------------------------------------------- alignment */

static int32_t worth(const code_line *a, const code_line *b)
{
    if (a->mnemonic != b->mnemonic)
        return 0;
    return strcmp(a->text, b->text) == 0 ? SAME : a->mnemonic ? ALIKE : 0;
}

/* score[j]: the best sum of all of [a, a_end) with the first j lines from b; or with the last j,
 * from the ends, backwards. */
static void fill_scores(const aligned *x, int a, int a_end, int b, int b_end, bool is_backwards,
                        int32_t *score)
{
    memset(score, 0, (size_t)(b_end - b + 1) * sizeof *score);
    for (int i = 0; i < a_end - a; i++) {
        const code_line *line = &x->a[is_backwards ? a_end - 1 - i : a + i];
        int32_t before = 0; /* score[j] of the line before */
        for (int j = 0; j < b_end - b; j++) {
            int32_t w = worth(line, &x->b[is_backwards ? b_end - 1 - j : b + j]);
            int32_t best = w > 0 ? before + w : 0;
            before = score[j + 1];
            if (score[j] > best)
                best = score[j];
            if (best > score[j + 1])
                score[j + 1] = best;
        }
    }
}

static void add_pair(aligned *x, int a, int b)
{
    x->pair[x->n++] = (diff_pair){a, b};
}

static void align(aligned *x, int a, int a_end, int b, int b_end)
{
    while (a < a_end && b < b_end && worth(&x->a[a], &x->b[b]) == SAME)
        add_pair(x, a++, b++);
    if (a_end - a > 1 && b_end > b) {
        int middle = a + (a_end - a) / 2, split = 0, n = b_end - b;
        fill_scores(x, a, middle, b, b_end, false, x->score[0]);
        fill_scores(x, middle, a_end, b, b_end, true, x->score[1]);
        for (int j = 1; j <= n; j++)
            if (x->score[0][j] + x->score[1][n - j] > x->score[0][split] + x->score[1][n - split])
                split = j;
        align(x, a, middle, b, b + split);
        align(x, middle, a_end, b + split, b_end);
        return;
    }
    while (b == b_end && a < a_end)
        add_pair(x, a++, -1);
    int best = -1;
    for (int j = b; j < b_end && a < a_end; j++) /* one line, or none */
        if (worth(&x->a[a], &x->b[j]) > (best < 0 ? 0 : worth(&x->a[a], &x->b[best])))
            best = j;
    for (int j = b; j < (best < 0 ? b : best); j++)
        add_pair(x, -1, j);
    if (a < a_end)
        add_pair(x, a, best);
    for (int j = best < 0 ? b : best + 1; j < b_end; j++)
        add_pair(x, -1, j);
}

int diff_align(const code_line *a, int n_a, const code_line *b, int n_b, diff_pair **out, int *n)
{
    aligned x = {.a = a, .b = b};
    x.pair = calloc((size_t)n_a + (size_t)n_b + 1, sizeof *x.pair);
    x.score[0] = calloc((size_t)n_b + 1, sizeof **x.score);
    x.score[1] = calloc((size_t)n_b + 1, sizeof **x.score);
    int status =
        x.pair && x.score[0] && x.score[1] ? EXIT_OK : tool_fail(EXIT_ERROR, "out of memory");
    if (status == EXIT_OK)
        align(&x, 0, n_a, 0, n_b);
    free(x.score[0]);
    free(x.score[1]);
    *out = x.pair;
    *n = x.n;
    return status;
}

/* ---------------------------------------------------------------- what is told */

static char mark_of(const diff *d, int i)
{
    const diff_pair p = d->pair[i];
    if (p.a < 0 || p.b < 0)
        return p.a < 0 ? '>' : '<';
    return strcmp(d->line[0][p.a].text, d->line[1][p.b].text) == 0 ? ' ' : '|';
}

static void print_lines(const diff *d)
{
    int n_skipped = 0;
    for (int i = 0; i < d->n; i++) {
        bool is_near = false;
        for (int k = i - CONTEXT; k <= i + CONTEXT; k++)
            is_near = is_near || (k >= 0 && k < d->n && mark_of(d, k) != ' ');
        n_skipped += !is_near;
        if (n_skipped && (is_near || i + 1 == d->n)) {
            printf("... %d equal line%s\n", n_skipped, n_skipped > 1 ? "s" : "");
            n_skipped = 0;
        }
        if (!is_near)
            continue;
        const diff_pair p = d->pair[i];
        printf("%-*.*s %c", COLUMN, COLUMN, p.a < 0 ? "" : d->line[0][p.a].text, mark_of(d, i));
        printf(p.b < 0 ? "\n" : " %s\n", p.b < 0 ? "" : d->line[1][p.b].text);
    }
}

static void count(const diff *d, int side, int64_t counts[CODE_MOST_KINDS])
{
    memset(counts, 0, CODE_MOST_KINDS * sizeof *counts);
    for (int i = 0; i < d->n_lines[side]; i++)
        if (d->line[side][i].mnemonic)
            counts[code_kind(d->line[side][i].text)]++;
}

static void print_counts(const diff *d)
{
    int64_t a[CODE_MOST_KINDS], b[CODE_MOST_KINDS], sum_a = 0, sum_b = 0;
    count(d, 0, a);
    count(d, 1, b);
    printf("\n%-28s %8s %8s %8s\n", "instructions", "first", "second", "more");
    for (int k = 0; k < CODE_MOST_KINDS; k++) {
        if (a[k] || b[k])
            printf("%-28s %8d %8d %+8d\n", code_kind_name(k), (int)a[k], (int)b[k],
                   (int)(b[k] - a[k]));
        sum_a += a[k];
        sum_b += b[k];
    }
    printf("%-28s %8d %8d %+8d\n", "all", (int)sum_a, (int)sum_b, (int)(sum_b - sum_a));
}

static int print_json(const diff *d)
{
    int64_t counts[2][CODE_MOST_KINDS];
    json j;
    if (!json_begin(&j, "diff"))
        return tool_fail(EXIT_ERROR, "out of memory");
    bool is_equal = true;
    for (int i = 0; i < d->n; i++)
        is_equal = is_equal && mark_of(d, i) == ' ';
    json_word(&j, "equal", is_equal ? "true" : "false");
    json_open(&j, "counts", '[');
    count(d, 0, counts[0]);
    count(d, 1, counts[1]);
    for (int k = 0; k < CODE_MOST_KINDS; k++) {
        if (!counts[0][k] && !counts[1][k])
            continue;
        json_open(&j, NULL, '{');
        json_text(&j, "kind", code_kind_name(k));
        json_int(&j, "first", counts[0][k]);
        json_int(&j, "second", counts[1][k]);
        json_close(&j);
    }
    json_close(&j);
    json_open(&j, "lines", '[');
    for (int i = 0; i < d->n; i++) {
        const diff_pair p = d->pair[i];
        json_open(&j, NULL, '[');
        for (int side = 0; side < 2; side++) {
            int at = side ? p.b : p.a;
            if (at >= 0)
                json_text(&j, NULL, d->line[side][at].text);
            else
                json_word(&j, NULL, "null");
        }
        json_close(&j);
    }
    json_close(&j);
    return json_end(&j, EXIT_OK);
}

int command_diff(const tool_manner *how, int argc, char **argv)
{
    tool_line line[2];
    diff d = {0};
    char *text[2] = {NULL, NULL};
    int split = 0;
    while (split < argc && strcmp(argv[split], "--") != 0)
        split++;
    if (split == argc || split + 1 == argc)
        return tool_fail(EXIT_USAGE,
                         "diff: expected words as those of asm, then -- and words that differ");
    int status = line_parse(how, split, argv, &line[0]);
    if (status == EXIT_OK)
        status = line_parse_on(argc - split - 1, argv + split + 1, &line[0], &line[1]);
    for (int i = 0; i < 2 && status == EXIT_OK; i++)
        status = code_text(&line[i], &text[i]);
    for (int i = 0; i < 2 && status == EXIT_OK; i++)
        status = diff_read(text[i], &d.line[i], &d.n_lines[i]);
    if (status == EXIT_OK)
        status = diff_align(d.line[0], d.n_lines[0], d.line[1], d.n_lines[1], &d.pair, &d.n);
    if (status == EXIT_OK && how->json) {
        status = print_json(&d);
    } else if (status == EXIT_OK) {
        print_lines(&d);
        print_counts(&d);
    }
    free(d.pair);
    for (int i = 0; i < 2; i++) {
        free(d.line[i]);
        free(text[i]);
    }
    return status;
}
