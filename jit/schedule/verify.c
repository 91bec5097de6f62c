/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c: whether a kernel may be run as a schedule says. A schedule is a request, maybe of a
 * hostile text: nothing that it claims is believed. This file walks the tree, and sees to it that
 * the statements cover the body in the order of the program.
 */
#include "jit/schedule/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool qn__refuse(qn_verifier *v, const char *format, ...)
{
    char what[QN_MESSAGE_BYTES], where[32] = "";
    va_list ap;
    if (v->status != QN_OK)
        return false;
    va_start(ap, format);
    qn__vformat(what, sizeof what, format, ap);
    va_end(ap);
    if (v->line)
        snprintf(where, sizeof where, ", line %d", (int)v->line);
    v->status = qn__fail_line(v->err, QN_ERR_ARGUMENT, v->line, "schedule%s: %s", where, what);
    return false;
}

static bool walk(qn_verifier *v, qn_node first, int depth);

/* ---------------------------------------------------------------- statements */

static qn_context *inner_context(qn_verifier *v)
{
    return &v->context[v->n_contexts - 1];
}

/** Whether [first, end) are whole instructions of one region. */
static bool is_range(const qn_kernel *k, uint32_t first, uint32_t end)
{
    uint32_t i = first;
    while (i < end)
        i = k->inst[i].region[2];
    return i == end;
}

/** The region of the innermost place that goes on with instruction `first`, or -1. */
static int region_at(qn_verifier *v, uint32_t first)
{
    const qn_context *c = inner_context(v);
    for (int n = 0; n < c->n; n++)
        if (c->cursor[n] == first && c->cursor[n] < c->end[n])
            return n;
    return -1;
}

/** Goes on with instruction `to` in a region, or behind it if it is a reduce of a tuple. */
static void go_on(qn_verifier *v, int region, uint32_t to)
{
    qn_context *c = inner_context(v);
    for (int n = 0; n < QN_MOST_TUPLE && c->ahead[n]; n++) {
        if (c->ahead[n] != to)
            continue;
        memmove(&c->ahead[n], &c->ahead[n + 1], (size_t)(QN_MOST_TUPLE - 1 - n) * sizeof(uint32_t));
        c->ahead[QN_MOST_TUPLE - 1] = 0;
        to = v->x->k->inst[to].region[2];
        n = -1;
    }
    c->cursor[region] = to;
}

/** Notes the later reduces of a tuple, whose values are made where the first one stands. */
static bool note_ahead(qn_verifier *v, const qn_reduced *r)
{
    qn_context *c = inner_context(v);
    int have = 0;
    while (have < QN_MOST_TUPLE && c->ahead[have])
        have++;
    if (have + r->n - 1 > QN_MOST_TUPLE)
        return qn__refuse(v, "place %%%u: so many reduces before their turn", r->inst[0]);
    for (int m = 1; m < r->n; m++)
        c->ahead[have++] = r->inst[m];
    return true;
}

static bool has_ahead(const qn_context *c, uint32_t first, uint32_t end)
{
    for (int n = 0; n < QN_MOST_TUPLE && c->ahead[n]; n++)
        if (c->ahead[n] >= first && c->ahead[n] < end)
            return true;
    return false;
}

/** Whether two ways to run a part of a region have run the same instructions of it. */
static bool is_alike(const qn_context *a, const qn_context *b)
{
    return memcmp(a->cursor, b->cursor, sizeof a->cursor) == 0 &&
           memcmp(a->ahead, b->ahead, sizeof a->ahead) == 0;
}

static void note_values(qn_verifier *v, qn_node at, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        v->made_at[i] = at.id;
}

/** Iterations of unrolled loops around. */
static int64_t copies_here(const qn_verifier *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->n_path; i++) {
        const qn_node_info *l = qn__node(v->s, v->path[i]);
        if (l->role == QN_ROLE_UNROLLED)
            n *= qn__axis_count(v->x, v->s, l->axis)
                     .most; /* at most QN_MOST_UNROLLED each; cut off below */
        if (n > QN_MOST_COPIES)
            break;
    }
    return n;
}

static bool visit_do(qn_verifier *v, qn_node at)
{
    const qn_node_info *n = qn__node(v->s, at);
    const qn_kernel *k = v->x->k;
    int region = n->first < n->end && n->end <= k->n_insts ? region_at(v, n->first) : -1;
    if (region < 0 || n->end > inner_context(v)->end[region] || !is_range(k, n->first, n->end) ||
        has_ahead(inner_context(v), n->first, n->end))
        return qn__refuse(v, "do %%%u %%%u: these instructions are not what comes next", n->first,
                          n->end);
    if (n->child.id)
        return qn__refuse(v, "do %%%u %%%u: a statement has no nodes inside", n->first, n->end);
    go_on(v, region, n->end);
    v->copies += copies_here(v) * (n->end - n->first);
    if (v->copies > QN_MOST_COPIES) {
        qn__refuse(v, "do %%%u %%%u: more than %d instructions of code", n->first, n->end,
                   QN_MOST_COPIES);
        v->status = QN_ERR_LIMIT;
        return false;
    }
    if (!qn__verify_loops(v, at) || !qn__verify_values(v, at, n->first, n->end) ||
        !qn__verify_records(v, at))
        return false;
    note_values(v, at, n->first, n->end);
    return true;
}

/* ---------------------------------------------------------------- places */

/** The regions of a place, one after the other in one region of the innermost context. */
static bool open_place(qn_verifier *v, qn_node at)
{
    const qn_node_info *n = qn__node(v->s, at);
    const qn_reduced *r = &v->s->reduction[n->index];
    const qn_kernel *k = v->x->k;
    if (!qn__verify_reduction(v, n) || !qn__verify_values(v, at, r->inst[0], r->inst[0] + 1))
        return false;
    int region = region_at(v, r->inst[0]);
    uint32_t last = k->inst[r->inst[r->n - 1]].region[2];
    if (region < 0 || last > inner_context(v)->end[region] || v->n_contexts == QN_MOST_DEPTH)
        return qn__refuse(v, "place %%%u: it is not what comes next", r->inst[0]);
    if (has_ahead(inner_context(v), r->inst[0], k->inst[r->inst[0]].region[2]) ||
        !note_ahead(v, r))
        return qn__refuse(v, "place %%%u: it is not what comes next", r->inst[0]);
    go_on(v, region, k->inst[r->inst[0]].region[2]);
    qn_context *c = &v->context[v->n_contexts++];
    *c = (qn_context){.place = at, .n = r->n, .n_around = v->n_path};
    for (int m = 0; m < r->n; m++) {
        c->cursor[m] = k->inst[r->inst[m]].region[0];
        c->end[m] = k->inst[r->inst[m]].region[2];
    }
    return true;
}

static bool visit_place(qn_verifier *v, qn_node at, int depth)
{
    const qn_node_info *n = qn__node(v->s, at);
    if (n->index >= v->s->n_reductions || !open_place(v, at) || !walk(v, n->child, depth + 1))
        return qn__refuse(v, "place: no such reduction");
    const qn_reduced *r = &v->s->reduction[n->index];
    const qn_context *c = inner_context(v);
    for (int m = 0; m < c->n; m++)
        if (c->cursor[m] != c->end[m])
            return qn__refuse(
                v, "place %%%u: its region ends with %%%u, and statements end before %%%u",
                r->inst[m], c->end[m], c->cursor[m]);
    v->n_contexts--;
    for (int m = 0; m < r->n; m++)
        note_values(v, at, r->inst[m], v->x->k->inst[r->inst[m]].region[2]);
    return true;
}

/* ---------------------------------------------------------------- loops */

static bool visit_loop(qn_verifier *v, qn_node at, int depth)
{
    const qn_node_info *n = qn__node(v->s, at);
    if (v->n_path == QN_MOST_DEPTH)
        return qn__refuse(v, "more than %d loops inside one another", QN_MOST_DEPTH);
    v->path[v->n_path++] = at;
    bool is_right =
        n->child.id ? qn__verify_role(v, at) && walk(v, n->child, depth + 1)
                    : qn__refuse(v, "loop %s: nothing is inside", qn__axis_text(v, n->axis).name);
    v->n_path--;
    return is_right;
}

static bool is_entered(const qn_verifier *v, qn_axis a)
{
    for (int n = 0; n < v->n_entered; n++)
        if (v->entered[n].id == a.id)
            return true;
    return false;
}

/** The outermost section that axis `a` is, or is made of, and that is not entered yet; 0: none. */
static qn_axis section_of(const qn_verifier *v, qn_axis a)
{
    const qn_axis_info *x = qn__axis(v->s, a);
    qn_axis outer = x->kind == QN_AXIS_PART ? section_of(v, x->of) : (qn_axis){0};
    if (outer.id)
        return outer;
    bool is_section = x->kind == QN_AXIS_PART && v->s->cut[x->cut].kind == QN_CUT_SECTIONS;
    return is_section && !is_entered(v, a) ? a : (qn_axis){0};
}

static qn_axis section_entered_by(const qn_verifier *v, qn_node at)
{
    const qn_node_info *n = qn__node(v->s, at);
    return n->kind == QN_NODE_LOOP ? section_of(v, n->axis) : (qn_axis){0};
}

/** Loops over all sections of an axis, side by side, which all run the same statements. The loop
 * over a section may itself be the first of loops over the sections of a section. On return *at is
 * the last of them. */
static bool visit_sections(qn_verifier *v, qn_node *at, int depth)
{
    qn_axis first = section_entered_by(v, *at);
    const qn_cut *c = &v->s->cut[qn__axis(v->s, first)->cut];
    qn_context before = *inner_context(v), after = before;
    for (int m = 0; m < c->n; m++) {
        qn_axis part = qn__axis_part(c, m);
        if (section_entered_by(v, *at).id != part.id || v->n_entered == QN_MOST_DEPTH)
            return qn__refuse(v, "sections of %s: loops over all of them must follow one another",
                              qn__axis_text(v, c->of).name);
        *inner_context(v) = before;
        v->entered[v->n_entered++] = part;
        v->is_visited[at->id] = true;
        bool is_right = section_entered_by(v, *at).id ? visit_sections(v, at, depth)
                                                      : visit_loop(v, *at, depth);
        v->n_entered--;
        if (!is_right)
            return false;
        if (m > 0 && !is_alike(&after, inner_context(v)))
            return qn__refuse(v, "sections of %s: they do not run the same statements",
                              qn__axis_text(v, c->of).name);
        after = *inner_context(v);
        if (m + 1 < c->n)
            *at = qn__node(v->s, *at)->next;
    }
    return true;
}

/* ---------------------------------------------------------------- fills */

static bool visit_fill(qn_verifier *v, qn_node at)
{
    const qn_node_info *n = qn__node(v->s, at);
    const char *what = n->kind == QN_NODE_FILL ? "fill" : "flush";
    if (n->index >= v->s->n_buffers || n->child.id)
        return qn__refuse(v, "%s: no such buffer, or nodes are inside", what);
    const qn_buffer_info *b = &v->s->buffer[n->index];
    if (b->content != (n->kind == QN_NODE_FILL ? QN_CONTENT_COPY : QN_CONTENT_ENDS))
        return qn__refuse(v, "%s b%d: the buffer holds %s", what, n->index,
                          qn__content_names[b->content]);
    v->is_filled[n->index] |= n->kind == QN_NODE_FILL;
    v->is_pending[n->index] = false;
    v->filled_at[n->index] = at;
    for (int r = 0; r < v->s->n_records && n->kind == QN_NODE_FLUSH; r++) {
        const qn_record_info *x = &v->s->record[r];
        if (x->method == QN_METHOD_THROUGH && x->index == n->index + 1 &&
            v->is_visited[x->at.id <= v->s->n_nodes ? x->at.id : 0] &&
            !qn__verify_through(v, x->at, n->index, at))
            return false;
    }
    return true;
}

static bool visit(qn_verifier *v, qn_node at, int depth)
{
    switch (qn__node(v->s, at)->kind) {
    case QN_NODE_LOOP:
        return visit_loop(v, at, depth);
    case QN_NODE_DO:
        return visit_do(v, at);
    case QN_NODE_PLACE:
        return visit_place(v, at, depth);
    case QN_NODE_FILL:
    case QN_NODE_FLUSH:
        return visit_fill(v, at);
    default:
        return qn__refuse(v, "a node of no kind");
    }
}

static bool walk(qn_verifier *v, qn_node first, int depth)
{
    if (depth > QN_MOST_DEPTH)
        return qn__refuse(v, "nodes are more than %d deep", QN_MOST_DEPTH);
    for (qn_node at = first; at.id; at = qn__node(v->s, at)->next) {
        if (at.id > v->s->n_nodes || v->is_visited[at.id])
            return qn__refuse(v, "the nodes are no tree");
        v->is_visited[at.id] = true;
        int32_t line = v->line;
        v->line = qn__node(v->s, at)->line;
        bool is_right =
            section_entered_by(v, at).id ? visit_sections(v, &at, depth) : visit(v, at, depth);
        if (!is_right)
            return false;
        v->line = line;
    }
    return true;
}

static bool verify(qn_verifier *v)
{
    const qn_schedule *s = v->s;
    if (s->n_axes < 0 || s->n_axes > QN_MOST_AXES || s->n_cuts < 0 || s->n_cuts > QN_MOST_CUTS ||
        s->n_nodes < 0 || s->n_nodes > QN_MOST_NODES || s->n_buffers < 0 ||
        s->n_buffers > QN_MOST_BUFFERS || s->n_reductions < 0 ||
        s->n_reductions > QN_MOST_REDUCTIONS || s->n_records < 0 ||
        s->n_records > QN_MOST_RECORDS || s->straight < -1 || s->straight > QN_MOST_STRAIGHT)
        return qn__refuse(v, "its lists have no such sizes");
    v->context[0] = (qn_context){.n = 1, .cursor[0] = v->x->k->body, .end[0] = v->x->k->n_insts};
    v->n_contexts = 1;
    if (!qn__verify_axes(v) || !qn__verify_buffers(v) || !walk(v, s->root, 1))
        return false;
    if (v->context[0].cursor[0] != v->context[0].end[0])
        return qn__refuse(v, "statements end before %%%u, the body with %%%u",
                          v->context[0].cursor[0], v->context[0].end[0] - 1);
    for (int b = 0; b < s->n_buffers; b++)
        if (v->is_pending[b])
            return qn__refuse(v, "b%d is not flushed after it was written", b);
    for (int r = 0; r < s->n_records; r++)
        if (!s->record[r].at.id || s->record[r].at.id > s->n_nodes ||
            !v->is_visited[s->record[r].at.id])
            return qn__refuse(v, "an access record belongs to no statement");
    return true;
}

/** Verifies by `what`, which is given the state of a verification. */
static qn_status verify_by(bool (*what)(qn_verifier *), const qn_analysis *x, const qn_schedule *s,
                           qn_error *err)
{
    qn_verifier *v = qn__zalloc(1, sizeof *v);
    uint16_t *made_at = qn__zalloc(x->k->n_insts, sizeof *made_at);
    uint8_t *seen = qn__zalloc(x->k->n_insts, sizeof *seen);
    qn_status status = QN_OK;
    if (v && made_at && seen) {
        *v = (qn_verifier){.x = x, .s = s, .err = err, .made_at = made_at, .seen = seen};
        if (!what(v) && v->status == QN_OK)
            qn__refuse(v, "it does not hold");
        status = v->status;
        if (err && status != QN_OK)
            err->status = (int32_t)status;
    } else {
        status = qn__fail(err, QN_ERR_MEMORY,
                          "schedule: no memory to verify it");
    }
    qn__free(v);
    qn__free(made_at);
    qn__free(seen);
    return status;
}

qn_status qn__schedule_verify(const qn_analysis *x, const qn_schedule *s, qn_error *err)
{
    return verify_by(verify, x, s, err);
}

qn_status qn__schedule_complete(const qn_analysis *x, qn_schedule *s, qn_error *err)
{
    qn_status status = verify_by(qn__verify_axes, x, s, err);
    return status == QN_OK ? qn__records_complete(x, s, err) : status;
}
