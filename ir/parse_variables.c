/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_variables.c: which names the blocks of an `if` or loop assign, found before the blocks are
 * read: their values become results and carried values. The text of an outermost block is read
 * ahead once, and the assignments and blocks in it are kept in the order of the text. A block
 * inside takes its own from these lists.
 */
#include "ir/build/builder.h"
#include "ir/parse.h"

#include <string.h>

/** A "{", and where what belongs to it ends: the "}" behind which no `else` follows. */
typedef struct opened {
    const char *begin, *end; /* end NULL: not known yet */
    int32_t
        outer; /* the block around it, or the one before `else`, that has no end yet; -1: none */
    int32_t depth;
} opened;

/** What was read ahead; NULL before the first block. */
struct variables {
    qn_token *assigned; /* names before assignment operators */
    opened *opened;
    int32_t n_assigned, assigned_capacity, n_opened, opened_capacity;
    const char *end; /* of the text that was read ahead */
};

/* ---------------------------------------------------------------- reading ahead */

static void *grow(void *list, int32_t n, int32_t *capacity, size_t bytes)
{
    if (n < *capacity)
        return list;
    int32_t larger = *capacity ? 2 * *capacity : 16;
    void *grown = larger > 0 ? qn__realloc(list, (size_t)larger * bytes) : NULL;
    if (grown)
        *capacity = larger;
    return grown;
}

static bool add_assigned(parser *p, const qn_token *name)
{
    variables *v = p->variables;
    qn_token *list = grow(v->assigned, v->n_assigned, &v->assigned_capacity, sizeof *list);
    if (!list)
        return qn__parse_fail_memory(p);
    v->assigned = list;
    list[v->n_assigned++] = *name;
    return true;
}

/** Opens a block in *innermost, which has no end yet. */
static bool open_block(parser *p, const char *at, int depth, int32_t *innermost)
{
    variables *v = p->variables;
    opened *list = grow(v->opened, v->n_opened, &v->opened_capacity, sizeof *list);
    if (!list)
        return qn__parse_fail_memory(p);
    v->opened = list;
    list[v->n_opened] = (opened){.begin = at, .outer = *innermost, .depth = depth};
    *innermost = v->n_opened++;
    return true;
}

/** Ends the blocks that are at least so deep. */
static void end_blocks(variables *v, const char *at, int depth, int32_t *innermost)
{
    for (; *innermost >= 0 && v->opened[*innermost].depth >= depth;
         *innermost = v->opened[*innermost].outer)
        v->opened[*innermost].end = at;
}

/** A list of names, in case an assignment operator follows. */
typedef struct run {
    int n;
    qn_token name[QN_MAX_CARRIED], last;
} run;

/** One token more. */
static bool scan_token(parser *p, run *r, const qn_token *t)
{
    bool goes_on = r->n > 0 && qn__parse_is_operator(&r->last, ",");
    if (t->kind == QN_TOKEN_WORD) {
        r->n = goes_on && r->n < QN_MAX_CARRIED ? r->n : 0;
        r->name[r->n++] = *t;
        if (qn__parse_is_operator(&r->last, ":"))
            r->n = 0;
    } else if (qn__parse_is_update(t)) {
        for (int i = 0; i < r->n; i++)
            if (!add_assigned(p, &r->name[i]))
                return false;
        r->n = 0;
    } else if (!qn__parse_is_operator(t, ",")) {
        r->n = 0;
    }
    r->last = *t;
    return true;
}

/** Reads the block at the next token, the blocks in it, and those of `else` behind it. */
static bool read_ahead(parser *p)
{
    variables *v = p->variables;
    qn_lexer ahead = p->lexer;
    qn_token t = p->token;
    run r = {.n = 0, .last = t};
    int32_t innermost = -1;
    v->n_assigned = v->n_opened = 0;
    for (int depth = 0; t.kind != QN_TOKEN_END && t.kind != QN_TOKEN_BAD;) {
        qn_token next = qn__lex(&ahead);
        bool is_begin = qn__parse_is_operator(&t, "{"), is_end = qn__parse_is_operator(&t, "}");
        depth += is_begin - is_end;
        if (!scan_token(p, &r, &t) || (is_begin && !open_block(p, t.text, depth, &innermost)))
            return false;
        if (is_end && !qn__parse_token_is(&next, "else"))
            end_blocks(v, t.text, depth + 1, &innermost);
        if (depth < 0 || (is_end && innermost < 0))
            break;
        t = next;
    }
    end_blocks(v, t.text, 0, &innermost);
    v->end = t.text;
    return true;
}

/* ---------------------------------------------------------------- variables of a block */

/** Adds a variable that a block assigns. */
static bool add_variable(parser *p, block *b, const qn_token *t)
{
    int32_t i = qn__parse_find(p, t->text, t->n);
    if (i < 0 || !p->symbols.entry[i].is_variable)
        return true;
    for (int j = 0; j < b->n_variables; j++)
        if (b->variable[j] == i)
            return true;
    if (b->n_variables == QN_MAX_CARRIED)
        return FAIL(p, t, "a block assigns more than %d names that are known before it",
                    QN_MAX_CARRIED);
    b->variable[b->n_variables] = i;
    b->before[b->n_variables++] = p->symbols.entry[i].value;
    return true;
}

/** The first block that begins at `at` or behind it, n_opened if there is none. */
static int32_t block_behind(const variables *v, const char *at)
{
    int32_t low = 0, high = v->n_opened;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (v->opened[middle].begin < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int32_t assigned_behind(const variables *v, const char *at)
{
    int32_t low = 0, high = v->n_assigned;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (v->assigned[middle].text < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool qn__parse_find_variables(parser *p, block *b)
{
    b->n_variables = 0;
    if (p->is_canonical)
        return true;
    if (!p->variables && (p->variables = qn__zalloc(1, sizeof *p->variables)) == NULL)
        return qn__parse_fail_memory(p);
    variables *v = p->variables;
    bool is_known = v->end && p->token.text < v->end;
    if (!is_known && !read_ahead(p))
        return false;
    int32_t i = block_behind(v, p->token.text);
    const char *end = i < v->n_opened ? v->opened[i].end : v->end;
    for (int32_t n = assigned_behind(v, p->token.text);
         n < v->n_assigned && v->assigned[n].text < end; n++)
        if (!add_variable(p, b, &v->assigned[n]))
            return false;
    return true;
}

void qn__parse_get_variables(const parser *p, const block *b, qn_val *v)
{
    for (int i = 0; i < b->n_variables; i++)
        v[i] = p->symbols.entry[b->variable[i]].value;
}

void qn__parse_set_variables(parser *p, const block *b, const qn_val *v)
{
    for (int i = 0; i < b->n_variables; i++)
        p->symbols.entry[b->variable[i]].value = v[i];
}

void qn__parse_free_variables(parser *p)
{
    if (!p->variables)
        return;
    qn__free(p->variables->assigned);
    qn__free(p->variables->opened);
    qn__free(p->variables);
}
