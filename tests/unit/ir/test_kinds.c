/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_kinds.c: typed indices. Which values get a kind, which uses are refused with which words,
 * and that the kernel is the one that the same calls without kinds make. Ids of rows (LY23, X1.13)
 * are those of the specification of views.
 */
#include "tests/tap.h"

#include "quern.h"

enum { ROW = 1, COLUMN = 2 };

/** a is typed (ROW, COLUMN), b typed (COLUMN), u is not typed. */
typedef struct fixture {
    qn_builder *b;
    qn_param a, v, u;
    qn_val i, j, k; /* row, column, a scalar */
} fixture;

static fixture make_params(bool is_typed)
{
    static const uint8_t a_kinds[] = {ROW, COLUMN}, v_kinds[] = {COLUMN};
    fixture f = {.b = qn_builder_new("typed", 0)};
    f.a = qn_view_param(f.b, "a", QN_I64, 2, 0);
    f.v = qn_view_param(f.b, "v", QN_I64, 1, 0);
    f.u = qn_view_param(f.b, "u", QN_I64, 1, 0);
    f.k = qn_scalar_param(f.b, "k", QN_I64);
    if (is_typed) {
        qn_param_kinds(f.b, f.a, a_kinds);
        qn_param_kinds(f.b, f.v, v_kinds);
    }
    return f;
}

static fixture make(bool is_typed)
{
    fixture f = make_params(is_typed);
    f.i = qn_parallel_over(f.b, f.a, 0);
    f.j = qn_parallel_over(f.b, f.a, 1);
    return f;
}

static qn_val load2(fixture *f, qn_param p, qn_val i, qn_val j)
{
    return qn_load(f->b, p, 2, (qn_val[]){i, j});
}

static qn_val one(fixture *f)
{
    return qn_index(f->b, 1);
}

/* ------------------------------------------------------------------------------------------------
 * refused */

static void swapped(fixture *f) { load2(f, f->a, f->j, f->i); }
static void untyped(fixture *f) { load2(f, f->a, f->i, f->k); }
static void constant(fixture *f) { load2(f, f->a, f->i, one(f)); }
static void typed_for_untyped(fixture *f) { qn_load(f->b, f->u, 1, &f->i); }
static void other_view(fixture *f) { qn_load(f->b, f->v, 1, &f->i); }
static void stored(fixture *f) { qn_store(f->b, f->v, 1, &f->i, one(f)); }
static void in_atomic(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_SUM, f->v, 1, &f->i, one(f), (qn_val){0});
}
static void sum(fixture *f) { qn_add(f->b, f->i, f->j); }
static void comparison(fixture *f) { qn_lt(f->b, f->i, f->j); }
static void selected(fixture *f) { qn_select(f->b, qn_lt(f->b, f->k, one(f)), f->i, f->j); }
static void number(fixture *f) { qn_op(f->b, QN_OP_max, 2, (qn_val[]){f->j, f->i}); }
static void through_cast(fixture *f)
{
    qn_load(f->b, f->v, 1, (qn_val[]){qn_cast(f->b, QN_I32, f->i)});
}
static void through_bitcast(fixture *f)
{
    qn_load(f->b, f->v, 1, (qn_val[]){qn_bitcast(f->b, QN_U64, f->i)});
}
static void through_sum(fixture *f)
{
    qn_load(f->b, f->v, 1, (qn_val[]){qn_add(f->b, one(f), qn_mul(f->b, f->i, one(f)))});
}
static void for_bounds(fixture *f) { qn_for(f->b, f->i, f->j, 1, 0, NULL, NULL); }
static void for_index(fixture *f)
{
    qn_val i = qn_for(f->b, one(f), qn_extent(f->b, f->a, 0), 1, 0, NULL, NULL);
    qn_load(f->b, f->v, 1, &i);
}
static void carried_kind(fixture *f)
{
    qn_val start = f->i, x;
    qn_for(f->b, one(f), one(f), 1, 1, &start, &x);
    qn_load(f->b, f->v, 1, &x);
}
static void carried_next(fixture *f)
{
    qn_val start = one(f), x;
    qn_for(f->b, one(f), f->k, 1, 1, &start, &x);
    qn_end_for(f->b, 1, &f->i, NULL);
}
static void while_next(fixture *f)
{
    qn_val start = f->j, x;
    qn_while(f->b, one(f), 1, &start, &x);
    qn_do(f->b, qn_lt(f->b, x, one(f)));
    qn_end_while(f->b, 1, &f->i, NULL);
}
static void loop_result(fixture *f)
{
    qn_val start = f->i, x;
    qn_for(f->b, one(f), f->k, 1, 1, &start, &x);
    qn_end_for(f->b, 1, &x, &x);
    qn_load(f->b, f->v, 1, &x);
}
static void branches(fixture *f)
{
    qn_if(f->b, qn_lt(f->b, f->k, one(f)));
    qn_else(f->b, 1, &f->i);
    qn_end_if(f->b, 1, &f->j, NULL);
}
static void branch_result(fixture *f)
{
    qn_val x = one(f);
    qn_if(f->b, qn_lt(f->b, f->k, x));
    qn_else(f->b, 1, &x);
    qn_end_if(f->b, 1, &f->i, &x);
    qn_load(f->b, f->v, 1, &x);
}
static void late(fixture *f) { qn_param_kinds(f->b, f->a, (const uint8_t[]){1, 2}); }
static void kind_range(fixture *f) { qn_with_kind(f->b, f->i, 256); }
static void kind_negative(fixture *f) { qn_with_kind(f->b, f->i, -1); }
static void kind_of_float(fixture *f) { qn_with_kind(f->b, qn_const_float(f->b, QN_F32, 1), 1); }
static void kind_of_inert(fixture *f) { qn_with_kind(f->b, (qn_val){0}, 1); }
static void kind_of_nothing(fixture *f)
{
    qn_with_kind(f->b, (qn_val){3u << 24, qn_index(f->b, 0).builder}, 1);
}

static void test_refused(void)
{
    static const struct {
        void (*use)(fixture *);
        int status;
        const char *words;
    } rows[] = {
        {swapped, QN_ERR_TYPE,
         "qn_load: kernel \"typed\": view \"a\": index 0 has index kind 2, the dimension has 1"},
        {untyped, QN_ERR_TYPE,
         "qn_load: kernel \"typed\": view \"a\": index 1 has index kind 0, the dimension has 2"},
        {constant, QN_ERR_TYPE, "index 1 has index kind 0, the dimension has 2"},
        {typed_for_untyped, QN_ERR_TYPE,
         "view \"u\": index 0 has index kind 1, the dimension has 0"},
        {other_view, QN_ERR_TYPE, "view \"v\": index 0 has index kind 1, the dimension has 2"},
        {stored, QN_ERR_TYPE, "qn_store: kernel \"typed\": view \"v\": index 0 has index kind 1"},
        {in_atomic, QN_ERR_TYPE,
         "qn_atomic: kernel \"typed\": view \"v\": index 0 has index kind 1"},
        {sum, QN_ERR_TYPE, "qn_add: kernel \"typed\": index kinds 1 and 2 differ"},
        {comparison, QN_ERR_TYPE, "qn_lt: kernel \"typed\": index kinds 1 and 2 differ"},
        {selected, QN_ERR_TYPE, "qn_select: kernel \"typed\": index kinds 1 and 2 differ"},
        {number, QN_ERR_TYPE, "qn_max: kernel \"typed\": index kinds 2 and 1 differ"},
        {through_cast, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {through_bitcast, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {through_sum, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {for_bounds, QN_ERR_TYPE, "qn_for: kernel \"typed\": index kinds 1 and 2 differ"},
        {for_index, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {carried_kind, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {carried_next, QN_ERR_TYPE,
         "qn_end_for: kernel \"typed\": value 0 has index kind 1, the initial value has 0"},
        {while_next, QN_ERR_TYPE,
         "qn_end_while: kernel \"typed\": value 0 has index kind 1, the initial value has 2"},
        {loop_result, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {branches, QN_ERR_TYPE,
         "qn_end_if: kernel \"typed\": value 0 has index kind 2, that of the other branch has 1"},
        {branch_result, QN_ERR_TYPE, "index 0 has index kind 1, the dimension has 2"},
        {late, QN_ERR_BUILD,
         "qn_param_kinds: kernel \"typed\": view \"a\": kinds come before dimensions"},
        {kind_range, QN_ERR_ARGUMENT,
         "qn_with_kind: kernel \"typed\": index kind 256 is not in 0 to 255"},
        {kind_negative, QN_ERR_ARGUMENT, "index kind -1"},
        {kind_of_float, QN_ERR_TYPE,
         "qn_with_kind: kernel \"typed\": index kind 1 for f32, not an integer"},
        {kind_of_inert, QN_ERR_BUILD, "operand is not set: expected what a call"},
        {kind_of_nothing, QN_ERR_BUILD, "operand is not set: expected what a call"},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        fixture f = make(true);
        qn_error err = {0};
        tap_is_int(qn_builder_status(f.b, NULL), QN_OK, "the dimensions are right");
        rows[r].use(&f);
        tap_is_int(qn_builder_status(f.b, &err), rows[r].status, rows[r].words);
        tap_contains(err.message, rows[r].words, "... with these words");
        qn_builder_release(f.b);
    }
}

/** Arguments of qn_param_kinds itself. */
static void test_kinds_arguments(void)
{
    fixture f = make_params(false);
    qn_error err = {0};
    qn_param_kinds(f.b, f.a, NULL);
    tap_is_int(qn_builder_status(f.b, &err), QN_ERR_ARGUMENT, err.message);
    qn_builder_release(f.b);
    f = make_params(false);
    qn_param_kinds(f.b, (qn_param){77, qn_index(f.b, 0).builder}, (const uint8_t[]){1});
    tap_is_int(qn_builder_status(f.b, &err), QN_ERR_BUILD, "no such parameter");
    qn_builder_release(f.b);
    qn_param_kinds(NULL, f.a, NULL);
    tap_is_int(qn_with_kind(NULL, (qn_val){1, 1}, 1).id, 0, "no builder");
}

/* ------------------------------------------------------------------------------------------------
 * accepted */

/** a[i, j] = v[j + 1] + u[i as untyped] + i * 10, with typed ops, loops, branches and reductions on
 * the way. */
static void build_body(fixture *f, bool is_typed)
{
    qn_builder *b = f->b;
    int row = is_typed ? ROW : 0, column = is_typed ? COLUMN : 0;
    qn_val next = qn_add(b, f->j, one(f));
    qn_val last = qn_sub(b, qn_extent(b, f->v, 0), one(f));
    next = qn_select(b, qn_lt(b, next, last), next, last);
    qn_val x = qn_load(b, f->v, 1, &next);
    qn_val plain = qn_with_kind(b, f->i, 0);
    x = qn_add(b, x, qn_load(b, f->u, 1, &plain));
    x = qn_add(b, x, qn_mul(b, plain, qn_index(b, 10)));
    qn_val best = qn_with_kind(b, qn_index(b, 0), column);
    qn_val j = qn_for(b, qn_lower(b, f->v, 0), qn_extent(b, f->v, 0), 1, 1, &best, &best);
    qn_if(b, qn_lt(b, best, j));
    qn_else(b, 1, &j);
    qn_end_if(b, 1, &best, &best);
    qn_end_for(b, 1, &best, &best);
    x = qn_add(b, x, qn_load(b, f->v, 1, &best));
    qn_val half = qn_cast(b, QN_F64, f->i); /* data has no kind */
    x = qn_add(b, x, qn_cast(b, QN_I64, qn_add(b, half, qn_cast(b, QN_F64, f->j))));
    qn_val at[] = {qn_with_kind(b, plain, row), qn_cast(b, QN_I64, qn_cast(b, QN_I32, f->j))};
    qn_store(b, f->a, 2, at, x);
}

static size_t print(fixture *f, char *text, size_t bytes)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    text[0] = 0;
    qn_status status = qn_finish(f->b, &k, &err);
    tap_is_int(status, QN_OK, err.message);
    size_t n = k ? qn_kernel_print(k, text, bytes) : 0;
    qn_kernel_release(k);
    qn_builder_release(f->b);
    return n;
}

static void test_same_kernel(void)
{
    char typed[4096], plain[4096];
    fixture f = make(true);
    build_body(&f, true);
    size_t n = print(&f, typed, sizeof typed);
    f = make(false);
    build_body(&f, false);
    tap_ok(print(&f, plain, sizeof plain) == n && n > 100, "both are printed");
    tap_is_str(typed, plain, "kinds are not in the kernel");
}

/** LY23 and X1.13: a layout typed (ROW, COLUMN) takes them in this order only. */
static void test_order(void)
{
    fixture f = make(true);
    tap_ok(load2(&f, f.a, f.i, f.j).id != 0, "(row, column) is taken");
    tap_ok(load2(&f, f.a, f.i, qn_with_kind(f.b, one(&f), COLUMN)).id != 0, "a typed constant too");
    tap_is_int(qn_type_of(f.b, f.i), QN_I64, "a typed index has a type");
    tap_ok(qn_with_kind(f.b, f.i, 0).id == qn_with_kind(f.b, qn_with_kind(f.b, f.i, 9), 0).id,
           "kinds do not change the value");
    tap_is_int(load2(&f, f.a, f.j, f.i).id, 0, "(column, row) is not");
    tap_is_int(qn_builder_status(f.b, NULL), QN_ERR_TYPE, "... and that is an error");
    qn_builder_release(f.b);
}

/** Reduction dimensions and the results of reductions. */
static void test_reduction(void)
{
    for (int wrong = 0; wrong < 2; wrong++) {
        fixture f = make_params(true);
        qn_val i = qn_parallel_over(f.b, f.a, 0);
        qn_val j = qn_reduction_over(f.b, f.a, 1);
        qn_reduce(f.b, QN_COMBINE_MAX, 0, 1, &j);
        load2(&f, f.a, i, j);
        qn_val last = qn_end_reduce(f.b, j);
        load2(&f, f.a, wrong ? last : i, wrong ? i : last);
        tap_is_int(qn_builder_status(f.b, NULL), wrong ? QN_ERR_TYPE : QN_OK,
                   "the largest column is a column");
        qn_builder_release(f.b);
    }
}

int main(void)
{
    test_refused();
    test_kinds_arguments();
    test_order();
    test_same_kernel();
    test_reduction();
    return tap_done();
}
