/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_print.c: a schedule as text. tree_parse.c reads it again (docs/schedule-text.md).
 */
#include "jit/schedule/transform.h"

#include <inttypes.h>

typedef struct printer {
    const qn_schedule *s;
    qn_text *out;
} printer;

static void add_axis(const printer *p, const char *before, qn_axis a)
{
    char name[QN_AXIS_NAME_BYTES];
    qn__axis_name(p->s, a, name);
    qn__text_add(p->out, "%s%s", before, name);
}

static void indent(const printer *p, int depth)
{
    qn__text_add(p->out, "\n%*s", 2 * depth, "");
}

void qn__bound_print(const qn_schedule *s, const qn_bound *b, qn_text *out)
{
    const printer p = {s, out};
    if (b->from == QN_FROM_AXIS)
        add_axis(&p, " ", b->axis);
    else
        qn__text_add(out, b->from == QN_FROM_END ? " end" : " begin");
    if (b->offset)
        qn__text_add(out, "%+" PRId64, b->offset);
}

/* ---------------------------------------------------------------- axes and buffers */

static void print_count(const printer *p, qn_count c)
{
    if (c.kind == QN_COUNT_SYMBOLIC)
        qn__text_add(p->out, " symbolic;");
    else if (c.kind == QN_COUNT_DATA)
        qn__text_add(p->out, " data;");
    else
        qn__text_add(p->out, " %" PRId64 ";", c.most);
}

static void print_cut(const printer *p, const qn_cut *c)
{
    add_axis(p, "\n  cut ", c->of);
    qn__text_add(p->out, c->kind == QN_CUT_DIGITS ? " by" : " at");
    for (int n = 1; n < c->n; n++)
        if (c->kind == QN_CUT_DIGITS)
            qn__text_add(p->out, " %" PRId64, c->extent[n]);
        else
            qn__bound_print(p->s, &c->bound[n - 1], p->out);
    if (c->kind == QN_CUT_DIGITS)
        qn__text_add(p->out, " tail %s", qn__tail_names[c->tail]);
    qn__text_add(p->out, ";");
}

static void print_axes(const printer *p)
{
    for (uint16_t n = 1; n <= p->s->n_axes; n++) {
        const qn_axis_info *x = &p->s->axis[n];
        if (x->kind == QN_AXIS_PART) {
            if (x->number == 0)
                print_cut(p, &p->s->cut[x->cut]);
        } else {
            add_axis(p, "\n  axis ", (qn_axis){n});
            print_count(p, x->count);
        }
    }
}

static void print_buffer(const printer *p, int n)
{
    const qn_buffer_info *b = &p->s->buffer[n];
    qn__text_add(p->out, "\n  buffer b%d %s %s %%%" PRIu32 " over", n,
                 qn__storage_names[b->storage], qn__content_names[b->content], b->inst);
    for (int a = 0; a < b->n_axes; a++)
        add_axis(p, " ", b->axis[a]);
    qn__text_add(p->out, " bytes %" PRId64 ";", b->bytes);
}

/* ---------------------------------------------------------------- nodes */

static void print_record(const printer *p, const qn_record_info *r, int depth)
{
    indent(p, depth);
    qn__text_add(p->out, "%s%%%" PRIu32 " %s", r->is_tail ? "tail " : "", r->inst,
                 qn__method_names[r->method]);
    if (r->method == QN_METHOD_STRIDED || r->method == QN_METHOD_GROUP)
        qn__text_add(p->out, " %" PRId64, r->stride);
    if (r->method == QN_METHOD_THROUGH)
        qn__text_add(p->out, " b%d", r->index - 1);
    else if (r->index)
        qn__text_add(p->out, " of %d", r->index);
    qn__text_add(p->out, " %s", qn__check_names[r->check]);
    if (r->is_single)
        qn__text_add(p->out, " single");
    if (r->is_flat)
        qn__text_add(p->out, " flat");
    if (r->streams)
        qn__text_add(p->out, " streams");
    if (r->is_plain)
        qn__text_add(p->out, " plain");
    if (r->ahead) {
        qn__text_add(p->out, " ahead %d", r->ahead);
        add_axis(p, " ", r->along);
    }
    qn__text_add(p->out, ";");
}

static void print_do(const printer *p, qn_node at, int depth)
{
    const qn_node_info *x = qn__node(p->s, at);
    bool has_records = false;
    qn__text_add(p->out, "do %%%" PRIu32 " %%%" PRIu32, x->first, x->end);
    for (int n = 0; n < p->s->n_records; n++) {
        if (p->s->record[n].at.id != at.id)
            continue;
        if (!has_records)
            qn__text_add(p->out, " {");
        has_records = true;
        print_record(p, &p->s->record[n], depth + 1);
    }
    if (has_records)
        indent(p, depth);
    qn__text_add(p->out, has_records ? "}" : ";");
}

static void print_place(const printer *p, const qn_node_info *x)
{
    const qn_reduced *r = &p->s->reduction[x->index];
    qn__text_add(p->out, "place");
    for (int n = 0; n < r->n; n++)
        qn__text_add(p->out, " %%%" PRIu32, r->inst[n]);
    qn__text_add(p->out, " order %s", qn__points_names[r->order]);
    if (r->buffer)
        qn__text_add(p->out, " in b%d", r->buffer - 1);
}

static void print_head(const printer *p, const qn_node_info *x)
{
    switch (x->kind) {
    case QN_NODE_LOOP:
        add_axis(p, "loop ", x->axis);
        qn__text_add(p->out, " %s", qn__role_names[x->role]);
        break;
    case QN_NODE_PLACE:
        print_place(p, x);
        break;
    case QN_NODE_FILL:
    case QN_NODE_FLUSH:
        qn__text_add(p->out, "%s b%d", x->kind == QN_NODE_FILL ? "fill" : "flush", x->index);
        break;
    }
}

static void print_nodes(const printer *p, qn_node at, int depth)
{
    int left = QN_MOST_NODES;
    for (; at.id && depth <= QN_MOST_DEPTH && left > 0; at = qn__node(p->s, at)->next, left--) {
        const qn_node_info *x = qn__node(p->s, at);
        indent(p, depth);
        if (x->kind == QN_NODE_DO) {
            print_do(p, at, depth);
            continue;
        }
        print_head(p, x);
        if (!x->child.id) {
            qn__text_add(p->out, ";");
            continue;
        }
        qn__text_add(p->out, " {");
        print_nodes(p, x->child, depth + 1);
        indent(p, depth);
        qn__text_add(p->out, "}");
    }
}

void qn__schedule_print(const qn_schedule *s, qn_text *out)
{
    const printer p = {s, out};
    qn__text_add(out, "schedule {");
    print_axes(&p);
    for (int n = 0; n < s->n_buffers; n++)
        print_buffer(&p, n);
    if (s->straight >= 0)
        qn__text_add(out, "\n  straight %d;", s->straight);
    print_nodes(&p, s->root, 1);
    for (int n = 0; n < s->n_steps; n++) {
        qn__text_add(out, "\n  applied ");
        qn__step_print(s, &s->step[n], out);
        qn__text_add(out, ";");
    }
    qn__text_add(out, "\n}\n");
}
