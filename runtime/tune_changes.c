/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tune_changes.c: what the tuner tries, see tune.h. Changes stand in a table in the order in which
 * they are tried; many have no effect on a kernel, which the plan of their code shows. A model that
 * orders candidates would take the place of the order of this table.
 */
#include "runtime/tune.h"

#include <stdio.h>
#include <string.h>

/** Changes of one field; `dim`: with a field that names a dimension, for each of those of the
 * kernel in turn. */
typedef struct row {
    size_t field, dim;
    int32_t n_values, value[6];
    int of; /* QN_TUNE_OF_..., of several */
} row;

#define AT(name) offsetof(qn_plan_options, name)
enum { HOST = QN_TUNE_OF_ALL | QN_TUNE_OF_THREADS };
static const row rows[] = {
    {AT(unroll), 0, 4, {1, 2, 4, 8}, HOST},
    {AT(lane_dim), AT(lane_dim), 1, {0}, HOST},
    {AT(jam), AT(jam_dim), 4, {2, 4, 6, 8}, HOST},
    {AT(jam), 0, 1, {1}, HOST},
    {AT(width), 0, 4, {16, 8, 4, 32}, HOST},
    {AT(streams), 0, 2, {-1, 1}, HOST},
    {AT(tile), AT(tile_dim), 3, {32, 128, 512}, HOST},
    {AT(tile), 0, 1, {-1}, HOST},
    {AT(pack), 0, 5, {-1, 1, 64, 256, 16}, HOST},
    {AT(strip), 0, 3, {-1, 256, 2048}, HOST},
    {AT(prefetch), 0, 1, {-1}, HOST},
    {AT(transpose), 0, 1, {-1}, HOST},
    {AT(apart), 0, 2, {-1, 1}, HOST},
    {AT(distribute), 0, 1, {-1}, HOST},
    {AT(block), 0, 2, {64, 512}, HOST},
    {AT(cross), AT(cross_dim), 2, {2, 4}, HOST},
    {AT(lane_dim), 0, 1, {-1}, HOST},
    {AT(width), 0, 5, {1, 2, 4, 8, 16}, QN_TUNE_OF_GPU},
    {AT(jam), AT(jam_dim), 4, {2, 4, 8, 3}, QN_TUNE_OF_GPU},
    {AT(jam), 0, 1, {1}, QN_TUNE_OF_GPU},
    {AT(lane_dim), AT(lane_dim), 1, {0}, QN_TUNE_OF_GPU},
    {AT(team), 0, 4, {1, 2, 3, 4}, QN_TUNE_OF_GPU},
    {AT(chunk), 0, 4, {4096, 32768, 262144, 2097152}, QN_TUNE_OF_THREADS},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static void set_word(qn_plan_options *p, size_t at, int32_t value)
{
    memcpy((char *)p + at, &value, sizeof value);
}

static int32_t word_of(const qn_plan_options *p, size_t at)
{
    int32_t value;
    memcpy(&value, (const char *)p + at, sizeof value);
    return value;
}

/** Where the changes go. */
typedef struct list {
    qn_tune_choice *out;
    int n;
} list;

static qn_tune_choice *add(list *l)
{
    static const qn_tune_choice none = {.plan = {.bytes = sizeof none.plan}};
    if (l->n == QN_TUNE_MOST_CHANGES)
        return NULL;
    l->out[l->n] = none;
    return &l->out[l->n++];
}

static void add_row(list *l, const row *r, const qn_kernel *k)
{
    for (int d = 0; d < (r->dim ? k->n_dims : 1); d++) {
        for (int i = 0; i < r->n_values; i++) {
            qn_tune_choice *c = add(l);
            if (!c)
                return;
            set_word(&c->plan, r->field, r->value[i]);
            if (r->dim)
                set_word(&c->plan, r->dim, d + 1);
        }
    }
}

/** Loops in other orders: each dimension that is no reduction's innermost, the others as declared,
 * and each outermost. */
static void add_orders(list *l, const qn_kernel *k)
{
    int dim[QN_MAX_RANK], n = 0;
    for (int d = 0; d < k->n_dims; d++)
        if (qn__dim_kind(k, d) != QN_DIM_REDUCTION)
            dim[n++] = d;
    for (int moved = 0; n > 1 && moved < 2 * n; moved++) {
        bool is_outer = moved >= n;
        qn_tune_choice *c = add(l);
        if (!c)
            return;
        int at = is_outer, own = moved % n;
        for (int i = 0; i < n; i++)
            if (i != own)
                c->plan.order[at++] = dim[i] + 1;
        c->plan.order[is_outer ? 0 : n - 1] = dim[own] + 1;
    }
}

/** A step on the schedule of the plan: A and B in its text are dimensions a and b. */
static void add_step(list *l, const char *text, int a, int b)
{
    qn_tune_choice *c = add(l);
    for (size_t i = 0; c && text[i] && i + 1 < sizeof c->steps; i++)
        c->steps[i] = (char)(text[i] == 'A' ? '0' + a : text[i] == 'B' ? '0' + b : text[i]);
}

/** Threads of a block along x and y, and rows of y that a thread takes. */
typedef struct block_shape {
    int x, y, rows;
} block_shape;

/** Blocks of other shapes: x and y are dimensions, of which a block takes one, or one and rows of
 * the other; of other dimensions a block takes one index. */
static void add_block(list *l, const qn_kernel *k, int x, int y, block_shape shape)
{
    qn_text cuts = {0}, outer = {0}, inner = {0};
    qn_tune_choice *c = add(l);
    for (int d = 0; c && d < k->n_dims; d++) {
        int threads = d == x ? shape.x : d == y ? shape.y : 1, each = d == y ? shape.rows : 1;
        if (qn__dim_kind(k, d) == QN_DIM_SEQUENTIAL)
            qn__text_add(&outer, " d%d", d);
        if (!qn__is_parallel(k, d) || d == x)
            continue;
        if (threads * each == 1) {
            qn__text_add(&cuts, "bind d%d role=grid; ", d);
            qn__text_add(&outer, " d%d", d);
            continue;
        }
        qn__text_add(&cuts, "split d%d", d);
        if (threads > 1)
            qn__text_add(&cuts, " %d", threads);
        if (each > 1)
            qn__text_add(&cuts, " %d", each);
        qn__text_add(&cuts, " tail=mask; bind d%d.0 role=grid; ", d);
        qn__text_add(&outer, " d%d.0", d);
        if (threads > 1) {
            qn__text_add(&cuts, "bind d%d.1 role=block; ", d);
            qn__text_add(&outer, " d%d.1", d);
        }
        if (each > 1)
            qn__text_add(&inner, " d%d.%d", d, threads > 1 ? 2 : 1);
    }
    if (c) {
        qn__text_add(&cuts, "split d%d %d tail=mask; bind d%d.0 role=grid; bind d%d.1 role=block; ",
                     x, shape.x, x, x);
        qn__text_add(&cuts, "reorder%s d%d.0 d%d.1%s;", outer.data ? outer.data : "", x, x,
                     inner.data ? inner.data : "");
        if (inner.n)
            qn__text_add(&cuts, " unroll%s;", inner.data);
        c->is_declared = true;
        if (!cuts.failed && cuts.n < sizeof c->steps)
            memcpy(c->steps, cuts.data, cuts.n);
    }
    qn__text_release(&cuts);
    qn__text_release(&outer);
    qn__text_release(&inner);
}

/** The last dimensions first: these are most often consecutive. */
static void add_blocks(list *l, const qn_kernel *k)
{
    static const block_shape shapes[] = {{32, 8, 1},  {32, 4, 4},  {64, 4, 1},  {128, 1, 4},
                                         {256, 1, 1}, {32, 8, 4},  {64, 4, 4},  {128, 2, 2},
                                         {512, 1, 1}, {32, 16, 1}, {16, 16, 1}, {64, 1, 8}};
    enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };
    for (int x = k->n_dims - 1; x >= 0; x--)
        for (int i = 0; i < N_SHAPES && qn__is_parallel(k, x); i++) {
            bool has_rows = shapes[i].y * shapes[i].rows > 1;
            if (!has_rows)
                add_block(l, k, x, -1, shapes[i]);
            for (int y = k->n_dims - 1; y >= 0 && has_rows; y--)
                if (y != x && qn__is_parallel(k, y))
                    add_block(l, k, x, y, shapes[i]);
        }
}

/** What fields of a plan cannot say: tiles of two dimensions, whose inner one the planner has cut
 * into vectors or not, second tiles inside these, and other tails. Where the schedule of a plan has
 * no such loops, the step is refused before code is made. */
static void add_steps(list *l, const qn_kernel *k)
{
    static const char *const of_one[] = {"tail dA tail=scalar;", "tail dA tail=mask;",
                                         "tail dA tail=overlap;", "tail dA tail=narrower;"};
    static const char *const of_two[] = {
        "tile dA dB.0 16 4 tail=scalar;",
        "tile dA dB.0 64 16 tail=scalar;",
        "tile dA dB 16 64 tail=scalar;",
        "tile dA.1 dB.0.1 8 2 tail=scalar;",
        "reorder dB.0 dA;",
    };
    enum { N_ONE = sizeof of_one / sizeof of_one[0], N_TWO = sizeof of_two / sizeof of_two[0] };
    for (int a = 0; a < k->n_dims; a++) {
        for (int i = 0; i < N_ONE && qn__is_parallel(k, a); i++)
            add_step(l, of_one[i], a, 0);
        for (int b = 0; b < k->n_dims; b++)
            for (int i = 0; i < N_TWO && a != b && qn__is_parallel(k, a); i++)
                if (qn__is_parallel(k, b))
                    add_step(l, of_two[i], a, b);
    }
}

int qn__tune_changes(const qn_kernel *k, int of, qn_tune_choice out[QN_TUNE_MOST_CHANGES])
{
    list l = {.out = out};
    for (int i = 0; i < N_ROWS; i++) {
        if (!(rows[i].of & of))
            continue;
        add_row(&l, &rows[i], k);
        if (rows[i].field == AT(width) && of != QN_TUNE_OF_GPU)
            add_orders(&l, k);
    }
    if (of == QN_TUNE_OF_GPU)
        add_blocks(&l, k);
    else
        add_steps(&l, k);
    return l.n;
}

qn_tune_choice qn__tune_change(const qn_tune_choice *base, const qn_tune_choice *change)
{
    qn_tune_choice sum = *base;
    bool has_order = change->plan.order[0] != 0;
    for (size_t at = AT(order); at + sizeof(int32_t) <= sizeof sum.plan; at += sizeof(int32_t)) {
        bool is_order = at < AT(order) + sizeof sum.plan.order;
        if (is_order ? has_order : word_of(&change->plan, at) != 0)
            set_word(&sum.plan, at, word_of(&change->plan, at));
    }
    size_t n = strlen(sum.steps);
    if (change->is_declared)
        return *change;
    if (change->steps[0])
        snprintf(sum.steps + n, sizeof sum.steps - n, "%s%s", n ? " " : "", change->steps);
    return sum;
}

bool qn__tune_is_same_choice(const qn_tune_choice *a, const qn_tune_choice *b)
{
    return memcmp((const char *)&a->plan + AT(order), (const char *)&b->plan + AT(order),
                  sizeof a->plan - AT(order)) == 0 &&
           a->is_declared == b->is_declared && strcmp(a->steps, b->steps) == 0;
}

void qn__tune_schedule(const qn_tune_choice *choice, qn_text *out)
{
    qn__text_add(out, "%s { %s }", choice->is_declared ? "declared" : "planned", choice->steps);
}

/** A field; dimensions are numbered from 0 in words, and "none" is -1. */
static void print_field(qn_text *out, const char *name, int32_t value, bool names_dim)
{
    const char *space = out->n ? " " : "";
    if (value && names_dim && value < 0)
        qn__text_add(out, "%s%s=none", space, name);
    else if (value)
        qn__text_add(out, "%s%s=%d", space, name, (int)(names_dim ? value - 1 : value));
}

void qn__tune_print(const qn_tune_choice *choice, qn_text *out)
{
    const qn_plan_options *p = &choice->plan;
#define X(name, text, least, most, names_dim) print_field(out, #name, p->name, names_dim);
    QN_PLAN_LIST(X)
#undef X
    for (int d = 0; d < QN_MAX_RANK && p->order[d]; d++)
        qn__text_add(out, "%s%d", d ? "," : out->n ? " order=" : "order=", (int)p->order[d] - 1);
    if (choice->steps[0]) {
        qn__text_add(out, "%sschedule=", out->n ? " " : "");
        qn__tune_schedule(choice, out);
    }
}
