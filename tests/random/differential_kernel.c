/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differential_kernel.c: chooses the domain and the parameters of a random kernel, makes the
 * arguments, and builds the kernel around the random body. Extents are known while the kernel is
 * made, so that most accesses can be made to fit; the kernel itself gets them as constants, scalars
 * or extent queries.
 */
#include "differential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = 20000, MAX_ELEMENTS = 100000 };

/* ---------------------------------------------------------------- domain */

static const int64_t extents[] = {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 130};
enum { N_EXTENTS = sizeof extents / sizeof *extents };

/* Where 32 bits end. */
int64_t random_far(randoms *r)
{
    static const int64_t far[] = {INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 33,
                                  INT64_C(1) << 40, INT64_C(1) << 60};
    int64_t at = far[random_below(r, 5)] + random_between(r, -40, 5);
    return random_percent(r, 70) ? at : -at;
}

int64_t random_at_limit(const randoms *r, int64_t begin, int64_t n)
{
    randoms own = {~r->state ^ 0x11b17};
    if (!random_percent(&own, 4))
        return begin;
    const int64_t ahead = random_percent(&own, 50) ? 0 : random_between(&own, 0, 70);
    return random_percent(&own, 70) ? INT64_MAX - n - ahead : INT64_MIN + ahead;
}

/* An extent of the list that keeps the product below the limit; 0 rarely. */
static int64_t random_extent(randoms *r, int64_t so_far, int64_t limit)
{
    for (int tries = 0; tries < 8; tries++) {
        int64_t n = extents[random_percent(r, 2) ? 0 : 1 + random_below(r, N_EXTENTS - 1)];
        if (so_far * n <= limit)
            return n;
    }
    return random_between(r, 1, 2);
}

/* An empty dimension counts as one iteration: it may grow between two launches. */
static int64_t points_so_far(const test_case *t)
{
    int64_t points = 1;
    for (int d = 0; d < t->n_dims; d++)
        points *= t->dim[d].end > t->dim[d].begin ? t->dim[d].end - t->dim[d].begin : 1;
    return points;
}

static void add_dim(test_case *t, int kind)
{
    randoms *r = &t->random;
    int64_t so_far = points_so_far(t);
    int64_t n = random_extent(r, so_far, MAX_POINTS);
    if (kind == KIND_SEQUENTIAL && n > 17)
        n = 17;
    if (kind == KIND_REDUCTION && random_percent(r, 15) &&
        so_far * 9000 <= MAX_POINTS) /* several blocks of 4096 */
        n = random_percent(r, 50) ? random_between(r, 4095, 4098) : random_between(r, 4099, 9000);
    int64_t begin = random_percent(r, 70)   ? 0
                    : random_percent(r, 10) ? random_far(r)
                                            : random_between(r, -6, 40);
    begin = random_at_limit(r, begin, n);
    t->dim[t->n_dims++] = (test_dim){kind, begin, begin + n};
    t->points *= n;
    if (kind != KIND_REDUCTION)
        t->iterations *= n;
}

static void choose_domain(test_case *t)
{
    static const uint8_t n_parallel[] = {0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4};
    randoms *r = &t->random;
    t->iterations = t->points = 1;
    int n_sequential = random_percent(r, 15) ? 1 + random_percent(r, 30) : 0;
    for (int i = 0; i < n_sequential; i++)
        add_dim(t, KIND_SEQUENTIAL);
    for (int i = n_parallel[random_below(r, 12)]; i > 0; i--)
        add_dim(t, KIND_PARALLEL);
    for (int i = random_percent(r, 30) ? 1 + random_percent(r, 25) : 0; i > 0; i--)
        add_dim(t, KIND_REDUCTION);
}

/* ---------------------------------------------------------------- parameters */

/* A dimension of a view for reading: about as large as some domain dimension, so that affine
 * indices fit. */
static int64_t input_extent(test_case *t)
{
    randoms *r = &t->random;
    if (t->n_dims == 0 || random_percent(r, 25))
        return extents[random_percent(r, 3) ? 0 : 1 + random_below(r, N_EXTENTS - 1)];
    const test_dim *d = &t->dim[random_below(r, t->n_dims)];
    int64_t n = d->end - d->begin;
    return n + (random_percent(r, 50) ? 0 : random_between(r, 1, 4)) +
           (random_percent(r, 10) ? n : 0);
}

static void choose_input(test_case *t, test_view *v)
{
    static const uint8_t ranks[] = {0, 1, 1, 1, 2, 2, 2, 3, 3, 4};
    int64_t size = 1;
    v->rank = ranks[random_below(&t->random, 10)];
    for (int d = 0; d < v->rank; d++) {
        v->extent[d] = input_extent(t);
        if (size * v->extent[d] > MAX_ELEMENTS)
            v->extent[d] = random_between(&t->random, 1, 2);
        size *= v->extent[d] > 0 ? v->extent[d] : 1;
        v->source[d] = NO_SOURCE;
    }
}

/* Adds a dimension that the domain dimension `source` indexes. */
static void add_source(test_case *t, test_view *v, int source, int64_t slack)
{
    int d = v->rank++;
    v->source[d] = source;
    v->extent[d] = t->dim[source].end - t->dim[source].begin + slack;
    if (t->stores_escape && random_percent(&t->random, 30) && v->extent[d] > 1)
        v->extent[d]--;
    v->is_mirrored[d] = slack == 0 && random_percent(&t->random, 15);
    v->shift[d] = slack > 0 ? random_between(&t->random, 0, slack) : 0;
}

/* All parallel dimensions in some order, and free dimensions between them. */
static void choose_output(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    int order[MAX_DIMS], n = 0;
    for (int d = 0; d < t->n_dims; d++)
        if (t->dim[d].kind == KIND_PARALLEL) {
            int at = random_percent(r, 60) ? n : random_below(r, n + 1);
            memmove(order + at + 1, order + at, (size_t)(n - at) * sizeof *order);
            order[at] = d;
            n++;
        }
    v->rank = 0;
    if (v->role == ROLE_STEPPING) {
        add_source(t, v, 0, 1);
        v->is_mirrored[0] = false;
        v->extent[0] = t->dim[0].end - t->dim[0].begin + 1;
        v->shift[0] = 1;
    }
    int64_t size = t->points > 0 ? t->points : 1;
    for (int i = 0; i <= n; i++) {
        if (random_percent(r, 12) && v->rank < VIEW_RANK - (n - i) && size < MAX_ELEMENTS / 9) {
            v->extent[v->rank] = random_between(r, 1, 9);
            v->source[v->rank++] = NO_SOURCE;
            size *= 9;
        }
        if (i < n)
            add_source(t, v, order[i], random_percent(r, 25) ? random_between(r, 1, 3) : 0);
    }
}

/* So few sums of integers that each block of a GPU has its own. */
static void choose_few_sums(test_case *t, test_view *v)
{
    static const uint8_t dtypes[] = {QN_I32, QN_U32, QN_I64, QN_U64};
    v->dtype = dtypes[random_below(&t->random, 4)];
    v->combine = QN_COMBINE_SUM;
    v->rank = random_below(&t->random, 2);
    v->extent[0] = random_between(&t->random, 1, 4);
    v->source[0] = NO_SOURCE;
}

static void choose_atomic(test_case *t, test_view *v)
{
    if (t->is_plain && random_percent(&t->random, 50)) {
        choose_few_sums(t, v);
        return;
    }
    static const uint8_t combines[] = {QN_COMBINE_MIN, QN_COMBINE_MAX, QN_COMBINE_SUM,
                                       QN_COMBINE_AND, QN_COMBINE_OR,  QN_COMBINE_XOR};
    v->dtype = random_dtype(&t->random);
    v->combine = is_float(v->dtype)     ? combines[random_below(&t->random, 2)]
                 : v->dtype == QN_BOOL ? combines[3 + random_below(&t->random, 3)]
                                       : combines[random_below(&t->random, 6)];
    v->rank = random_below(&t->random, 3);
    for (int d = 0; d < v->rank; d++) {
        v->extent[d] = random_between(&t->random, 1, random_percent(&t->random, 80) ? 9 : 70);
        v->source[d] = NO_SOURCE;
    }
    choose_update(t, v);
}

static void choose_traits(test_case *t, test_view *v, bool is_alone)
{
    randoms *r = &t->random;
    if (v->role == ROLE_INPUT && random_percent(r, 40))
        v->traits |= QN_READ_ONLY;
    if (v->role == ROLE_INPUT && is_alone && random_percent(r, 10))
        v->traits |= QN_RANDOM_ACCESS | QN_READ_ONLY;
    if (v->role == ROLE_OUTPUT && has_plain_elements(v) && random_percent(r, 8))
        v->traits |= QN_ATOMIC;
    if (is_alone && random_percent(r, 8))
        v->traits |= QN_RESTRICT;
    if (random_percent(r, 5))
        v->traits |= QN_STREAMING;
}

static void choose_view(test_case *t, int i, int role)
{
    static const char *const names[] = {"in", "out", "step", "atom", "twin"};
    test_view *v = &t->view[i];
    v->role = role;
    v->shares = i;
    v->dtype = random_dtype(&t->random);
    snprintf(v->name, sizeof v->name, "%s%d", names[role], i);
    if (role == ROLE_INPUT)
        choose_input(t, v);
    else if (role == ROLE_ATOMIC)
        choose_atomic(t, v);
    else
        choose_output(t, v);
    /* An input may lie in the memory of an earlier written view: then iterations run in order. */
    if (role == ROLE_INPUT && i > 0 && random_percent(&t->random, 5)) {
        int other = random_below(&t->random, i);
        v->shares = has_plain_elements(&t->view[other]) ? other : i;
        v->dtype = t->view[v->shares].dtype;
    }
    choose_elements(t, v);
}

/* Some integers are indices of another view. */
static void choose_target(test_case *t, test_view *v)
{
    randoms *r = &t->random;
    test_view *other = &t->view[random_below(r, t->n_views)];
    if (v->role != ROLE_INPUT || !is_integer(v->dtype) || !has_plain_elements(v) || other == v ||
        other->rank == 0 || v->rank == 0 || !random_percent(r, 60))
        return;
    int d = random_below(r, other->rank);
    if (other->role == ROLE_INPUT || other->source[d] == NO_SOURCE) {
        v->target = other;
        v->target_dim = d;
    }
}

/* Rarely, an input holds the numbers of the elements that iterations own. */
static void choose_owner(test_case *t, test_view *v)
{
    static const uint8_t dtypes[] = {QN_I64, QN_I32, QN_U32, QN_I16};
    test_view *other = &t->view[0];
    int d = other->rank > 0 ? random_below(&t->random, other->rank) : 0;
    if (v->role != ROLE_INPUT || v->target || !random_percent(&t->random, 12) || other->rank == 0 ||
        other->role != ROLE_OUTPUT || other->source[d] == NO_SOURCE || other->owner[d] ||
        other->is_mirrored[d])
        return;
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].target == v)
            return;
    const test_dim *from = &t->dim[other->source[d]];
    qn_record_release(v->record);
    *v = (test_view){.role = ROLE_INPUT,
                     .dtype = dtypes[random_below(&t->random, 4)],
                     .rank = 1,
                     .source = {NO_SOURCE},
                     .target = other,
                     .target_dim = d,
                     .is_owner = true,
                     .is_alone = true,
                     .shares = (int)(v - t->view),
                     .extent = {from->end - from->begin}};
    snprintf(v->name, sizeof v->name, "own%d", v->shares);
    add_part(v, v->dtype, 0);
    other->owner[d] = v;
}

/* One more view of the elements of a written one. */
static void choose_twin(test_case *t, int of)
{
    test_view *v = &t->view[t->n_views];
    if (t->view[of].role != ROLE_OUTPUT || !has_plain_elements(&t->view[of]))
        return;
    *v = t->view[of];
    v->role = ROLE_TWIN;
    v->shares = of;
    snprintf(v->name, sizeof v->name, "twin%d", t->n_views++);
}

static void choose_random_views(test_case *t)
{
    randoms *r = &t->random;
    bool has_steps = t->n_dims > 0 && t->dim[0].kind == KIND_SEQUENTIAL &&
                     (t->n_dims == 1 || t->dim[1].kind != KIND_SEQUENTIAL);
    choose_view(t, t->n_views++, has_steps && random_percent(r, 50) ? ROLE_STEPPING : ROLE_OUTPUT);
    if (random_percent(r, 25))
        choose_view(t, t->n_views++, ROLE_OUTPUT);
    if (random_percent(r, 15))
        choose_view(t, t->n_views++, ROLE_ATOMIC);
    for (int i = random_below(r, 4); i > 0 && t->n_views < MAX_VIEWS; i--)
        choose_view(t, t->n_views++, ROLE_INPUT);
}

static void choose_views(test_case *t)
{
    if (t->is_plain)
        choose_plain_views(t);
    else
        choose_random_views(t);
    if (t->is_plain && t->n_views < MAX_VIEWS && random_percent(&t->random, 12))
        choose_view(t, t->n_views++, ROLE_ATOMIC);
    if (t->n_views < MAX_VIEWS && random_percent(&t->random, t->is_plain ? 5 : 20))
        choose_twin(t, 0);
    bool is_shared[MAX_VIEWS] = {false};
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].shares != i)
            is_shared[i] = is_shared[t->view[i].shares] = true;
    for (int i = 0; i < t->n_views; i++) {
        t->view[i].is_alone = !is_shared[i];
        if (!is_shared[i])
            choose_target(t, &t->view[i]);
    }
    for (int i = 0; i < t->n_views; i++) {
        if (!is_shared[i] && !is_shared[0] && !t->is_plain)
            choose_owner(t, &t->view[i]);
        choose_traits(t, &t->view[i], !is_shared[i]);
    }
}

static void choose_scalars(test_case *t)
{
    for (int i = random_below(&t->random, MAX_SCALARS); i > 0; i--) {
        int dtype = random_dtype(&t->random);
        t->scalar[t->n_scalars++] =
            (qn_arg){.dtype = dtype, .bits = random_value(&t->random, dtype)};
    }
}

/* ---------------------------------------------------------------- building */

/* The bounds of a dimension, said in one of several ways. The scalars that serve as bounds come
 * last. */
static qn_val build_dim(generator *g, int number, qn_val end_scalar)
{
    test_case *t = g->t;
    const test_dim *d = &t->dim[number];
    qn_val begin = qn_index(g->b, d->begin), end = qn_index(g->b, d->end);
    for (int i = 0; i < t->n_views; i++)
        for (int k = 0; k < t->view[i].rank; k++) {
            const test_view *v = &t->view[i];
            if (v->source[k] != number || !random_percent(g->r, 60))
                continue;
            if (v->lower[k] == d->begin && v->extent[k] == d->end - d->begin &&
                d->kind == KIND_PARALLEL && random_percent(g->r, 50))
                return qn_parallel_over(g->b, g->param[i], k);
            qn_val extent = qn_extent(g->b, g->param[i], k);
            end = qn_add(g->b, extent, qn_index(g->b, d->end - v->extent[k]));
        }
    if (end_scalar.id)
        end = gen_convert(g, end_scalar, (int)qn_type_of(g->b, end_scalar), QN_I64);
    if (d->kind == KIND_SEQUENTIAL)
        return qn_sequential(g->b, begin, end);
    return d->kind == KIND_PARALLEL ? qn_parallel(g->b, begin, end)
                                    : qn_reduction(g->b, begin, end);
}

static void build_domain(generator *g, const qn_val *end_scalar)
{
    test_case *t = g->t;
    for (int d = 0; d < t->n_dims; d++) {
        g->dims[d].value = build_dim(g, d, end_scalar[d]);
        g->dims[d].begin = t->dim[d].begin;
        g->dims[d].end = t->dim[d].end;
        if (t->dim[d].kind != KIND_REDUCTION) {
            g->axes[g->n_axes++] = g->dims[d];
            gen_pool(g, g->dims[d].value, QN_I64);
        }
    }
}

static void build_params(generator *g, qn_val *end_scalar)
{
    test_case *t = g->t;
    t->n_args = 0; /* a kernel may be made again */
    for (int i = 0; i < t->n_views; i++) {
        const test_view *v = &t->view[i];
        g->param[i] = v->record ? qn_record_param(g->b, v->name, v->record, v->rank, v->traits)
                                : qn_view_param(g->b, v->name, v->dtype, v->rank, v->traits);
        t->args[t->n_args++] = qn_arg_view(&v->view);
    }
    for (int i = 0; i < t->n_scalars; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        gen_pool(g, qn_scalar_param(g->b, name, t->scalar[i].dtype), t->scalar[i].dtype);
        t->args[t->n_args++] = t->scalar[i];
    }
    g->n_uniform = g->n_pool;
    /* One dimension may end at a scalar. */
    int d = t->n_dims > 0 && random_percent(g->r, 20) ? random_below(g->r, t->n_dims) : -1;
    if (d >= 0 && t->n_args < MAX_ARGS) {
        bool is_far = t->dim[d].end != (int32_t)t->dim[d].end;
        int dtype = is_far || random_percent(g->r, 70) ? QN_I64 : QN_I32;
        end_scalar[d] = qn_scalar_param(g->b, "end", dtype);
        t->args[t->n_args++] = qn_arg_int(dtype, t->dim[d].end);
    }
}

static void gen_body(generator *g)
{
    test_case *t = g->t;
    gen_block(g, t->scale ? t->scale : random_below(g->r, 4));
    if (random_percent(g->r, 70)) { /* pooled, so that a store is likely to use it */
        int dtype = random_dtype(g->r);
        gen_pool(g, gen_reduce(g, dtype), dtype);
    }
    for (int i = 0; i < t->n_views; i++)
        if (t->view[i].role == ROLE_OUTPUT || t->view[i].role == ROLE_STEPPING)
            gen_store(g, i);
        else if (t->view[i].role == ROLE_ATOMIC && random_percent(g->r, 60))
            gen_shared(g, i);
    if (random_percent(g->r, 30))
        gen_block(g, 1 + random_below(g->r, 2));
}

static uint32_t random_flags(randoms *r)
{
    static const uint32_t orders[] = {QN_ORDER_STRIPED, QN_ORDER_INDEXED, QN_ORDER_ORDERED};
    uint32_t flags = random_percent(r, 50) ? QN_CONTRACT : 0;
    return flags | (random_percent(r, 30) ? orders[random_below(r, 3)] : 0);
}

static bool build_kernel(test_case *t, qn_error *err)
{
    static const uint8_t budgets[] = {4, 10, 10, 20, 20, 40, 40, 80, 150};
    generator g = {.t = t, .r = &t->random};
    qn_val end_scalar[MAX_DIMS] = {{0}};
    g.repeats = t->scale || t->iterations <= 0 ? 1 : t->iterations;
    g.b = qn_builder_new("random", random_flags(&t->random));
    if (!g.b || !make_functions(&g, err)) {
        release_functions(&g);
        qn_builder_release(g.b);
        return false;
    }
    build_params(&g, end_scalar);
    build_domain(&g, end_scalar);
    g.budget = budgets[random_below(g.r, t->is_plain ? 4 : 9)];
    if (t->scale) /* nothing is left for what follows otherwise */
        g.budget = t->scale;
    if (t->is_plain)
        gen_plain_body(&g);
    else
        gen_body(&g);
    (void)qn_finish(g.b, &t->kernel, err);
    release_functions(&g);
    qn_builder_release(g.b);
    return t->kernel != NULL;
}

char *kernel_text(const qn_kernel *k)
{
    size_t bytes = qn_kernel_print(k, NULL, 0);
    char *text = malloc(bytes + 1);
    if (text)
        (void)qn_kernel_print(k, text, bytes + 1);
    return text;
}

bool make_case(test_case *t, uint64_t seed, uint64_t number, qn_error *err)
{
    return make_large_case(t, seed, number, 0, err);
}

bool make_large_case(test_case *t, uint64_t seed, uint64_t number, int scale, qn_error *err)
{
    randoms mixed = {seed};
    *t = (test_case){.number = number,
                     .scale = scale,
                     .random = {random_bits(&mixed) ^ (number * 0xd1342543de82ef95u)}};
    randoms *r = &t->random;
    (void)random_bits(r);
    t->is_plain = random_percent(r, 60) && !t->scale;
    t->loads_escape = random_percent(r, t->is_plain ? 14 : 18);
    t->stores_escape = t->loads_escape && random_percent(r, t->is_plain ? 25 : 50);
    if (t->is_plain)
        choose_plain_domain(t);
    else
        choose_domain(t);
    choose_views(t);
    choose_scalars(t);
    if (!make_views(t, err))
        return false;
    choose_late_atomic(t);
    bool is_made = build_kernel(t, err);
    for (int tries = 0; !is_made && tries < 20 && strstr(err->message, "stores nothing"); tries++)
        is_made =
            build_kernel(t, err); /* all its stores stood under a condition that folds to false */
    if (!is_made && err->status == QN_ERR_UNSUPPORTED && strstr(err->message, "no atomic update") &&
        drop_atomics(t)) {
        t->is_redone = true;
        is_made = build_kernel(t, err);
    }
    if (!is_made)
        return false;
    t->text = kernel_text(t->kernel);
    return t->text != NULL;
}

void release_case(test_case *t)
{
    qn_kernel_release(t->kernel);
    free(t->text);
    release_views(t);
    for (int i = 0; i < t->n_views; i++)
        qn_record_release(t->view[i].record);
}
