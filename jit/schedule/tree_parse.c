/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_parse.c: the text of a schedule, read again. The text may be hostile: what comes out is well
 * formed as data, that is, every number in it is in its range, and nothing more. Whether it fits a
 * kernel is for verify.c.
 */
#include "jit/schedule/transform.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

typedef struct parser {
    qn_words w;
    qn_schedule *s;
    qn_error *err;
    qn_status status;
} parser;

/** Notes the first error; false, for the caller to return. */
static bool fail(parser *p, qn_status status, const char *what)
{
    if (p->status != QN_OK)
        return false;
    p->status = qn__fail_line(p->err, status, p->w.line, "schedule, line %d: %s at \"%.60s\"",
                              p->w.line, what, p->w.is_bad ? "(no word)" : p->w.word);
    return false;
}

static bool expect(parser *p, const char *word)
{
    char what[32] = "expected ";
    strncat(what, word, 16);
    return qn__words_take(&p->w, word) || fail(p, QN_ERR_PARSE, what);
}

/* ---------------------------------------------------------------- axes */

/** The number that digits stand for, which `*at` passes; -1: there is none, or it is above `most`.
 */
static int64_t digits(const char **at, int64_t most)
{
    int64_t n = -1;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        n = (n < 0 ? 0 : n * 10) + (**at - '0');
        if (n > most)
            return -1;
    }
    return n;
}

static bool read_root(const char *name, qn_axis_info *out)
{
    const char *at = name + 1;
    int64_t first = digits(&at, UINT32_MAX), second = 0;
    *out = (qn_axis_info){.kind = name[0] == 'd'   ? QN_AXIS_DIM
                                  : name[0] == 'r' ? QN_AXIS_POINT
                                  : name[0] == 't' ? QN_AXIS_TRIP
                                                   : QN_AXIS_NONE};
    if (out->kind == QN_AXIS_NONE || first < 0)
        return false;
    if (out->kind == QN_AXIS_POINT) {
        if (*at++ != 'd' || (second = digits(&at, QN_MAX_RANK - 1)) < 0)
            return false;
        out->number = (uint8_t)second;
    }
    if (out->kind == QN_AXIS_DIM && first < QN_MAX_RANK)
        out->number = (uint8_t)first;
    else if (out->kind == QN_AXIS_DIM)
        return false;
    else
        out->inst = (uint32_t)first;
    return *at == 0;
}

static bool parse_axis(parser *p)
{
    qn_axis_info a;
    if (!read_root(p->w.word, &a) || qn__axis_find(p->s, p->w.word).id)
        return fail(p, QN_ERR_PARSE, "no name of a new axis of a dimension, a point or a trip");
    qn__words_next(&p->w);
    a.count = (qn_count){QN_COUNT_EXACT, INT64_MAX};
    if (qn__words_take(&p->w, "symbolic"))
        a.count.kind = QN_COUNT_SYMBOLIC;
    else if (qn__words_take(&p->w, "data"))
        a.count.kind = QN_COUNT_DATA;
    else if (!qn__words_number(&p->w, &a.count.most) || a.count.most < 0)
        return fail(p, QN_ERR_PARSE, "expected a count, symbolic or data");
    return qn__axis_new(p->s, &a).id ? expect(p, ";") : fail(p, QN_ERR_LIMIT, "too many axes");
}

static bool parse_extents(parser *p, qn_cut *c)
{
    int64_t step = 1;
    for (c->n = 1; c->n < QN_MOST_PARTS && qn__words_number(&p->w, &c->extent[c->n]); c->n++)
        if (c->extent[c->n] < 1 || __builtin_mul_overflow(step, c->extent[c->n], &step))
            return fail(p, QN_ERR_PARSE, "parts of less than one iteration, or of too many,");
    if (!expect(p, "tail"))
        return false;
    int tail = qn__words_choose(&p->w, qn__tail_names, QN_N_TAILS);
    c->tail = (uint8_t)tail;
    return tail >= 0 || fail(p, QN_ERR_PARSE, "expected a tail");
}

static bool parse_cut(parser *p)
{
    qn_cut c = {.kind = QN_CUT_DIGITS, .n = 1};
    qn_axis of, first;
    if (!qn__words_axis(&p->w, p->s, &of))
        return fail(p, QN_ERR_PARSE, "expected an axis");
    if (qn__words_take(&p->w, "by")) {
        if (!parse_extents(p, &c))
            return false;
    } else if (qn__words_take(&p->w, "at")) {
        c.kind = QN_CUT_SECTIONS;
        while (c.n < QN_MOST_PARTS && qn__words_bound(&p->w, p->s, &c.bound[c.n - 1]))
            c.n++;
    } else {
        return fail(p, QN_ERR_PARSE, "expected by or at");
    }
    return qn__axis_cut(p->s, of, &c, &first)
               ? expect(p, ";")
               : fail(p, QN_ERR_LIMIT, "a cut of no parts, or one too many");
}

/* ---------------------------------------------------------------- buffers */

/** "b3": the number of a buffer that was declared, or -1. */
static int buffer_of(parser *p)
{
    const char *at = p->w.word + 1;
    int64_t n = p->w.word[0] == 'b' ? digits(&at, QN_MOST_BUFFERS - 1) : -1;
    if (n < 0 || *at || n >= p->s->n_buffers) {
        fail(p, QN_ERR_PARSE, "expected a buffer that was declared");
        return -1;
    }
    qn__words_next(&p->w);
    return (int)n;
}

static bool parse_buffer(parser *p)
{
    char name[8] = "b";
    if (p->s->n_buffers == QN_MOST_BUFFERS)
        return fail(p, QN_ERR_LIMIT, "too many buffers");
    name[1] = (char)(p->s->n_buffers < 10 ? '0' + p->s->n_buffers : '0' + p->s->n_buffers / 10);
    if (p->s->n_buffers >= 10)
        name[2] = (char)('0' + p->s->n_buffers % 10);
    qn_buffer_info *b = &p->s->buffer[p->s->n_buffers];
    *b = (qn_buffer_info){0};
    if (!expect(p, name))
        return false;
    int storage = qn__words_choose(&p->w, qn__storage_names, QN_N_STORAGES);
    int content = qn__words_choose(&p->w, qn__content_names, QN_N_CONTENTS);
    if (storage < 0 || content < 0 || !qn__words_inst(&p->w, &b->inst))
        return fail(p, QN_ERR_PARSE, "expected a storage, a content and an instruction");
    b->storage = (uint8_t)storage;
    b->content = (uint8_t)content;
    if (!expect(p, "over"))
        return false;
    while (b->n_axes < QN_MOST_BUFFER_AXES && qn__words_axis(&p->w, p->s, &b->axis[b->n_axes]))
        b->n_axes++;
    if (!expect(p, "bytes"))
        return false;
    if (!qn__words_number(&p->w, &b->bytes))
        return fail(p, QN_ERR_PARSE, "expected a number of bytes");
    p->s->n_buffers++;
    return expect(p, ";");
}

/* ---------------------------------------------------------------- nodes */

static bool parse_nodes(parser *p, qn_node parent, int depth);

static bool parse_method(parser *p, qn_record_info *r)
{
    int method = qn__words_choose(&p->w, qn__method_names, QN_N_METHODS);
    int64_t n;
    if (method < 0)
        return fail(p, QN_ERR_PARSE, "expected a way to access");
    r->method = (uint8_t)method;
    if ((method == QN_METHOD_STRIDED || method == QN_METHOD_GROUP) &&
        !qn__words_number(&p->w, &r->stride))
        return fail(p, QN_ERR_PARSE, "expected a stride");
    if (method == QN_METHOD_THROUGH) {
        int b = buffer_of(p);
        r->index = (uint8_t)(b + 1);
        return b >= 0;
    }
    if (qn__words_take(&p->w, "of")) {
        if (!qn__words_number(&p->w, &n) || n < 1 || n > UINT8_MAX)
            return fail(p, QN_ERR_PARSE, "expected a number of a group, or of registers");
        r->index = (uint8_t)n;
    }
    return true;
}

static bool parse_record(parser *p, qn_node at)
{
    int64_t ahead;
    if (p->s->n_records == QN_MOST_RECORDS)
        return fail(p, QN_ERR_LIMIT, "too many access records");
    qn_record_info *r = &p->s->record[p->s->n_records];
    *r = (qn_record_info){.at = at};
    r->is_tail = qn__words_take(&p->w, "tail");
    if (!qn__words_inst(&p->w, &r->inst))
        return fail(p, QN_ERR_PARSE, "expected an access");
    if (!parse_method(p, r))
        return false;
    int check = qn__words_choose(&p->w, qn__check_names, QN_N_CHECKS);
    if (check < 0)
        return fail(p, QN_ERR_PARSE, "expected a check");
    r->check = (uint8_t)check;
    r->is_single = qn__words_take(&p->w, "single");
    r->is_flat = qn__words_take(&p->w, "flat");
    r->streams = qn__words_take(&p->w, "streams");
    r->is_plain = qn__words_take(&p->w, "plain");
    if (qn__words_take(&p->w, "ahead")) {
        if (!qn__words_number(&p->w, &ahead) || ahead < 1 || ahead > INT32_MAX ||
            !qn__words_axis(&p->w, p->s, &r->along))
            return fail(p, QN_ERR_PARSE, "expected a distance and an axis");
        r->ahead = (int32_t)ahead;
    }
    p->s->n_records++;
    return expect(p, ";");
}

static bool parse_do(parser *p, qn_node at)
{
    qn_node_info *x = &p->s->node[at.id];
    if (!qn__words_inst(&p->w, &x->first) || !qn__words_inst(&p->w, &x->end))
        return fail(p, QN_ERR_PARSE, "expected two instructions");
    if (qn__words_take(&p->w, ";"))
        return true;
    if (!expect(p, "{"))
        return false;
    while (!qn__words_take(&p->w, "}"))
        if (!parse_record(p, at))
            return false;
    return true;
}

static bool parse_place(parser *p, qn_node_info *x)
{
    if (p->s->n_reductions == QN_MOST_REDUCTIONS)
        return fail(p, QN_ERR_LIMIT, "too many reductions");
    x->index = (uint8_t)p->s->n_reductions;
    qn_reduced *r = &p->s->reduction[p->s->n_reductions++];
    *r = (qn_reduced){0};
    while (r->n < QN_MOST_TUPLE && qn__words_inst(&p->w, &r->inst[r->n]))
        r->n++;
    if (r->n == 0)
        return fail(p, QN_ERR_PARSE, "expected a reduce");
    if (!expect(p, "order"))
        return false;
    int order = qn__words_choose(&p->w, qn__points_names, QN_N_POINTS);
    if (order < 0)
        return fail(p, QN_ERR_PARSE, "expected an order rule");
    r->order = (uint8_t)order;
    if (qn__words_take(&p->w, "in")) {
        int b = buffer_of(p);
        r->buffer = (uint8_t)(b + 1);
        return b >= 0;
    }
    return true;
}

static bool parse_loop(parser *p, qn_node_info *x)
{
    if (!qn__words_axis(&p->w, p->s, &x->axis))
        return fail(p, QN_ERR_PARSE, "expected an axis");
    int role = qn__words_choose(&p->w, qn__role_names, QN_N_ROLES);
    x->role = (uint8_t)role;
    return role >= 0 || fail(p, QN_ERR_PARSE, "expected a role");
}

/** The head of a node of this kind, up to its children. */
static bool parse_head(parser *p, qn_node_info *x)
{
    int b = 0;
    switch (x->kind) {
    case QN_NODE_LOOP:
        return parse_loop(p, x);
    case QN_NODE_PLACE:
        return parse_place(p, x);
    case QN_NODE_FILL:
    case QN_NODE_FLUSH:
        b = buffer_of(p);
        x->index = (uint8_t)b;
        return b >= 0;
    default:
        return true;
    }
}

/** A node whose keyword was taken. */
static bool parse_node(parser *p, qn_node parent, int kind, int depth)
{
    qn_node at = qn__node_new(p->s, &(qn_node_info){.kind = (uint8_t)kind, .line = p->w.line});
    if (!at.id || depth > QN_MOST_DEPTH)
        return fail(p, QN_ERR_LIMIT, "too many nodes, or too deep ones,");
    qn__node_append(p->s, parent, at);
    if (kind == QN_NODE_DO)
        return parse_do(p, at);
    if (!parse_head(p, &p->s->node[at.id]))
        return false;
    if (qn__words_take(&p->w, ";"))
        return true;
    return expect(p, "{") && parse_nodes(p, at, depth + 1);
}

static int node_kind(parser *p)
{
    static const char *const names[] = {"loop", "do", "place", "fill", "flush"};
    return 1 + qn__words_choose(&p->w, names, 5);
}

/** Nodes up to a `}`, which is passed. */
static bool parse_nodes(parser *p, qn_node parent, int depth)
{
    while (!qn__words_take(&p->w, "}")) {
        int kind = node_kind(p);
        if (kind == QN_NODE_FREE)
            return fail(p, QN_ERR_PARSE, "expected a node");
        if (!parse_node(p, parent, kind, depth))
            return false;
    }
    return true;
}

static bool parse_applied(parser *p)
{
    if (p->s->n_steps == QN_MOST_STEPS)
        return fail(p, QN_ERR_LIMIT, "too many steps");
    if (!qn__words_step(&p->w, p->s, &p->s->step[p->s->n_steps]))
        return fail(p, QN_ERR_PARSE, "no step of a transformation");
    p->s->n_steps++;
    return true;
}

static bool parse_straight(parser *p)
{
    int64_t n;
    if (!qn__words_number(&p->w, &n) || n < 0 || n > QN_MOST_STRAIGHT)
        return fail(p, QN_ERR_PARSE, "expected a number of additions without a loop");
    p->s->straight = (int32_t)n;
    return expect(p, ";");
}

static bool parse_item(parser *p)
{
    if (qn__words_take(&p->w, "axis"))
        return parse_axis(p);
    if (qn__words_take(&p->w, "cut"))
        return parse_cut(p);
    if (qn__words_take(&p->w, "buffer"))
        return parse_buffer(p);
    if (qn__words_take(&p->w, "straight"))
        return parse_straight(p);
    if (qn__words_take(&p->w, "applied"))
        return parse_applied(p);
    int kind = node_kind(p);
    return kind ? parse_node(p, (qn_node){0}, kind, 1)
                : fail(p, QN_ERR_PARSE, "expected an axis, a buffer, a node or a step");
}

qn_status qn__schedule_parse(const char *text, size_t n, qn_schedule *out, qn_error *err)
{
    parser p = {.s = out, .err = err};
    memset(out, 0, offsetof(qn_schedule, cut));
    memset(&out->node[0], 0, sizeof out->node[0]);
    out->straight = -1;
    qn__words_begin(&p.w, text, n);
    bool is_read = expect(&p, "schedule") && expect(&p, "{");
    while (is_read && !qn__words_take(&p.w, "}"))
        is_read = parse_item(&p);
    if (is_read && (p.w.word[0] || p.w.is_bad))
        fail(&p, QN_ERR_PARSE, "text behind the schedule");
    return p.status;
}
