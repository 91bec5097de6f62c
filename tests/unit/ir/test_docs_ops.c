/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_docs_ops.c: docs/ops.md holds exactly the rows of quern/ops.def, in their order, between its
 * two marks, and a row for each word of a core statement. With the argument "print" it prints the
 * table instead, to be pasted there.
 */
#include "quern.h"
#include "tests/tap.h"

#include <stdlib.h>

#define BEGIN_MARK "<!-- ops.def: begin -->\n"
#define END_MARK "<!-- ops.def: end -->\n"

/** Columns of a row of ops.def that the page shows. */
typedef struct op_row {
    const char *name, *rule, *classes, *doc;
    int arity;
} op_row;

static const op_row op_rows[] = {
#define QN_OP(ID, name, rule, arity, classes, s, u, f, lowering, doc)                              \
    {#name, #rule, #classes, doc, arity},
#include "quern/ops.def"
#undef QN_OP
};
enum { N_OPS = sizeof op_rows / sizeof op_rows[0] };

static const char table_head[] = "| op | operands and result | T | meaning |\n|---|---|---|---|\n";

/** "bool, signed, float" for "BSF". */
static void add_classes(char *out, size_t bytes, const char *classes)
{
    out[0] = '\0';
    for (const char *c = classes; *c; c++) {
        const char *word = *c == 'B'   ? "bool"
                           : *c == 'S' ? "signed"
                           : *c == 'U' ? "unsigned"
                                       : "float";
        size_t n = strlen(out);
        snprintf(out + n, bytes - n, "%s%s", n ? ", " : "", word);
    }
}

/** The line of an op in docs/ops.md. */
static void format_row(char *out, size_t bytes, const op_row *row)
{
    static const char *const operands[] = {"", "T", "T, T", "T, T, T"};
    char classes[64];
    add_classes(classes, sizeof classes, row->classes);
    bool is_select = strcmp(row->rule, "SELECT") == 0,
         is_compare = strcmp(row->rule, "COMPARE") == 0;
    snprintf(out, bytes, "| `%s` | %s -> %s | %s | %s |\n", row->name,
             is_select ? "bool, T, T" : operands[row->arity], is_compare ? "bool" : "T", classes,
             row->doc);
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        text[fread(text, 1, (size_t)n, f)] = '\0';
    fclose(f);
    return text;
}

/** Compares the page's table with ops.def, row by row. */
static void check_table(const char *page)
{
    const char *at = strstr(page, BEGIN_MARK);
    if (!tap_ok(at != NULL, "docs/ops.md has the mark %.22s", BEGIN_MARK))
        return;
    at += strlen(BEGIN_MARK);
    if (!tap_ok(strncmp(at, table_head, strlen(table_head)) == 0, "the table has its head"))
        return;
    at += strlen(table_head);
    for (int i = 0; i < N_OPS; i++) {
        char row[512];
        format_row(row, sizeof row, &op_rows[i]);
        bool is_same = strncmp(at, row, strlen(row)) == 0;
        tap_ok(is_same, "row of %s", op_rows[i].name);
        if (!is_same)
            tap_note("expected %sfound    %.*s", row, (int)strcspn(at, "\n"), at);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    tap_ok(strncmp(at, END_MARK, strlen(END_MARK)) == 0, "no row more than ops.def has");
}

/** Each core statement and each combine has its words on the page. */
static void check_words(const char *page)
{
    static const char *const words[] = {"const",
                                        "param",
                                        "extent",
                                        "lower",
                                        "parallel",
                                        "reduction",
                                        "sequential",
                                        "cast",
                                        "bitcast",
                                        "load",
                                        "store",
                                        "atomic",
                                        "if",
                                        "for",
                                        "while",
                                        "reduce",
                                        "yield",
#define QN_REDUCER(NAME, number, text, ...) text,
#include "quern/reducers.def"
#undef QN_REDUCER
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char cell[64];
        snprintf(cell, sizeof cell, "| `%s` |", words[i]);
        tap_contains(page, cell, words[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        fputs(table_head, stdout);
        for (int i = 0; i < N_OPS; i++) {
            char row[512];
            format_row(row, sizeof row, &op_rows[i]);
            fputs(row, stdout);
        }
        return 0;
    }
    char *page = read_file(QN_SOURCE_DIR "/docs/ops.md");
    if (tap_ok(page != NULL, "docs/ops.md can be read")) {
        check_table(page);
        check_words(page);
    }
    free(page);
    return tap_done();
}
