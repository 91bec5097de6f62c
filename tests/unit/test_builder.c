/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_builder.c: misuse of each builder function (status and words of the message), folding, numbering, contraction,
 * atomic views, dead code, limits. Looks into the builder (ir/builder.h) to see what was appended.
 * Collisions and the verifier are in test_finish.c.
 */
#include "ir/builder.h"
#include "tests/tap.h"

/** A builder with some parameters, and, unless it is fresh, two dimensions and some values. */
typedef struct fixture {
    qn_builder *b;
    qn_param x, m, c, ro, at; /* f32[1], f32[2], i32[1], f32[1] read-only, i32[1] atomic */
    qn_val a, n, u;           /* scalars: f32, i64, i32 */
    qn_val i, r;              /* parallel and reduction index */
    qn_val zero, one;         /* i64 */
    qn_val f, t;              /* f32 loaded from x[i], bool */
} fixture;

static fixture make_fresh(uint32_t flags)
{
    fixture f = {.b = qn_builder_new("k", flags)};
    f.x = qn_view_param(f.b, "x", QN_F32, 1, 0);
    f.m = qn_view_param(f.b, "m", QN_F32, 2, 0);
    f.c = qn_view_param(f.b, "c", QN_I32, 1, 0);
    f.ro = qn_view_param(f.b, "ro", QN_F32, 1, QN_READ_ONLY);
    f.at = qn_view_param(f.b, "at", QN_I32, 1, QN_ATOMIC);
    f.a = qn_scalar_param(f.b, "a", QN_F32);
    f.n = qn_scalar_param(f.b, "n", QN_I64);
    f.u = qn_scalar_param(f.b, "u", QN_I32);
    f.zero = qn_index(f.b, 0);
    f.one = qn_index(f.b, 1);
    return f;
}

static fixture make(uint32_t flags)
{
    fixture f = make_fresh(flags);
    f.i = qn_parallel_over(f.b, f.x, 0);
    f.r = qn_reduction_over(f.b, f.m, 1);
    f.f = qn_load(f.b, f.x, 1, &f.i);
    f.t = qn_lt(f.b, f.f, f.a);
    return f;
}

/* ------------------------------------------------------------------------------------------------ misuse */

static const qn_val inert = {0};
static const qn_val far = {4000000000u};

static void add_types(fixture *f) { qn_add(f->b, f->a, f->n); }
static void add_inert(fixture *f) { qn_add(f->b, f->a, inert); }
static void add_far(fixture *f) { qn_add(f->b, far, f->a); }
static void add_bool(fixture *f) { qn_add(f->b, f->t, f->t); }
static void sqrt_int(fixture *f) { qn_sqrt(f->b, f->n); }
static void rem_float(fixture *f) { qn_rem(f->b, f->a, f->a); }
static void and_float(fixture *f) { qn_and(f->b, f->a, f->a); }
static void select_condition(fixture *f) { qn_select(f->b, f->n, f->a, f->a); }
static void select_types(fixture *f) { qn_select(f->b, f->t, f->a, f->n); }
static void fma_types(fixture *f) { qn_fma(f->b, f->a, f->n, f->a); }
static void div_zero(fixture *f) { qn_div(f->b, f->n, f->zero); }
static void rem_zero(fixture *f) { qn_rem(f->b, f->u, qn_const_int(f->b, QN_I32, 0)); }
static void op_number(fixture *f) { qn_op(f->b, QN_N_TABLE_OPS, 1, &f->a); }
static void op_count(fixture *f) { qn_op(f->b, QN_OP_add, 1, &f->a); }
static void op_null(fixture *f) { qn_op(f->b, QN_OP_sqrt, 1, NULL); }
static void cast_dtype(fixture *f) { qn_cast(f->b, 77, f->a); }
static void cast_bool(fixture *f) { qn_cast(f->b, QN_BOOL, f->a); }
static void cast_inert(fixture *f) { qn_cast(f->b, QN_F64, inert); }
static void bitcast_size(fixture *f) { qn_bitcast(f->b, QN_F64, f->a); }
static void const_dtype(fixture *f) { qn_const_int(f->b, QN_VOID, 1); }
static void const_bool(fixture *f) { qn_const_int(f->b, QN_BOOL, 2); }
static void const_float(fixture *f) { qn_const_float(f->b, QN_I32, 1.0); }
static void const_bits(fixture *f) { qn_const_bits(f->b, -1, 0); }
static void view_name(fixture *f) { qn_view_param(f->b, NULL, QN_F32, 1, 0); }
static void view_twice(fixture *f) { qn_view_param(f->b, "m", QN_F32, 1, 0); }
static void view_rank(fixture *f) { qn_view_param(f->b, "v", QN_F32, 17, 0); }
static void view_dtype(fixture *f) { qn_view_param(f->b, "v", 99, 1, 0); }
static void view_traits(fixture *f) { qn_view_param(f->b, "v", QN_F32, 1, 1u << 20); }
static void view_unchecked(fixture *f) { qn_view_param(f->b, "v", QN_F32, 1, QN_UNCHECKED); }
static void view_clamped(fixture *f) { qn_view_param(f->b, "v", QN_F32, 1, QN_CLAMPED); }
static void view_late(fixture *f) { qn_view_param(f->b, "v", QN_F32, 1, 0); }
static void scalar_late(fixture *f) { qn_scalar_param(f->b, "v", QN_F32); }
static void extent_rank(fixture *f) { qn_extent(f->b, f->m, 2); }
static void extent_inert(fixture *f) { qn_extent(f->b, (qn_param){0}, 0); }
static void lower_scalar(fixture *f) { qn_lower(f->b, (qn_param){6}, 0); }
static void lower_negative(fixture *f) { qn_lower(f->b, f->m, -1); }
static void dim_late(fixture *f) { qn_parallel(f->b, f->zero, f->n); }
static void dim_of_dim(fixture *f) { qn_parallel(f->b, f->zero, qn_parallel(f->b, f->zero, f->n)); }
static void dim_after_use(fixture *f)
{
    qn_add(f->b, qn_parallel(f->b, f->zero, f->n), f->one);
    qn_parallel(f->b, f->zero, f->n);
}
static void dim_float(fixture *f) { qn_parallel(f->b, f->zero, f->a); }
static void dim_inert(fixture *f) { qn_reduction(f->b, inert, f->n); }
static void sequential_late(fixture *f)
{
    qn_parallel(f->b, f->zero, f->n);
    qn_sequential(f->b, f->zero, f->n);
}
static void dims_many(fixture *f)
{
    for (int d = 0; d < 17; d++)
        qn_parallel(f->b, f->zero, f->n);
}
static void reduction_outside(fixture *f) { qn_add(f->b, f->r, f->one); }
static void over_rank(fixture *f) { qn_parallel_over(f->b, f->x, 1); }
static void over_scalar(fixture *f) { qn_reduction_over(f->b, (qn_param){99}, 0); }
static void load_rank(fixture *f) { qn_load(f->b, f->m, 1, &f->i); }
static void load_many(fixture *f)
{
    qn_val index[40];
    for (int i = 0; i < 40; i++)
        index[i] = f->i;
    qn_load(f->b, f->x, 40, index);
}
static void load_null(fixture *f) { qn_load(f->b, f->x, 1, NULL); }
static void load_float(fixture *f) { qn_load(f->b, f->x, 1, &f->a); }
static void load_bool(fixture *f) { qn_load(f->b, f->x, 1, &f->t); }
static void load_inert(fixture *f) { qn_load(f->b, f->x, 1, &inert); }
static void load_param(fixture *f) { qn_load(f->b, (qn_param){6}, 1, &f->i); }
static void store_type(fixture *f) { qn_store(f->b, f->x, 1, &f->i, f->n); }
static void store_inert(fixture *f) { qn_store(f->b, f->x, 1, &f->i, inert); }
static void store_read_only(fixture *f) { qn_store(f->b, f->ro, 1, &f->i, f->f); }
static void store_rank(fixture *f) { qn_store(f->b, f->x, -1, &f->i, f->f); }
static void store_in_reduce(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
    qn_store(f->b, f->x, 1, &f->r, f->f);
}
static void atomic_in_reduce(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
    qn_if(f->b, f->t);
    qn_atomic(f->b, QN_COMBINE_SUM, f->at, 1, &f->r, f->u, inert);
}
static void atomic_prod(fixture *f) { qn_atomic(f->b, QN_COMBINE_PROD, f->c, 1, &f->i, f->u, inert); }
static void atomic_number(fixture *f) { qn_atomic(f->b, 9, f->c, 1, &f->i, f->u, inert); }
static void atomic_and(fixture *f) { qn_atomic(f->b, QN_COMBINE_AND, f->x, 1, &f->i, f->f, inert); }
static void atomic_type(fixture *f) { qn_atomic(f->b, QN_COMBINE_SUM, f->c, 1, &f->i, f->f, inert); }
static void atomic_compare(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_COMPARE_EXCHANGE, f->c, 1, &f->i, f->u, inert);
}
static void atomic_no_compare(fixture *f) { qn_atomic(f->b, QN_COMBINE_MIN, f->c, 1, &f->i, f->u, f->u); }
static void if_type(fixture *f) { qn_if(f->b, f->n); }
static void if_inert(fixture *f) { qn_if(f->b, inert); }
static void else_alone(fixture *f) { qn_else(f->b, 0, NULL); }
static void else_twice(fixture *f)
{
    qn_if(f->b, f->t);
    qn_else(f->b, 0, NULL);
    qn_else(f->b, 0, NULL);
}
static void else_in_for(fixture *f)
{
    qn_if(f->b, f->t);
    qn_for(f->b, f->zero, f->n, 1, 0, NULL, NULL);
    qn_else(f->b, 0, NULL);
}
static void else_many(fixture *f)
{
    qn_val v[QN_MAX_CARRIED + 1] = {0};
    qn_if(f->b, f->t);
    qn_else(f->b, QN_MAX_CARRIED + 1, v);
}
static void end_if_alone(fixture *f) { qn_end_if(f->b, 0, NULL, NULL); }
static void end_if_values(fixture *f)
{
    qn_if(f->b, f->t);
    qn_end_if(f->b, 1, &f->f, NULL);
}
static void end_if_types(fixture *f)
{
    qn_if(f->b, f->t);
    qn_else(f->b, 1, &f->f);
    qn_end_if(f->b, 1, &f->n, NULL);
}
static void end_if_count(fixture *f)
{
    qn_if(f->b, f->t);
    qn_else(f->b, 1, &f->f);
    qn_end_if(f->b, 0, NULL, NULL);
}
static void outside_if(fixture *f)
{
    qn_if(f->b, f->t);
    qn_val v = qn_add(f->b, f->i, f->i);
    qn_end_if(f->b, 0, NULL, NULL);
    qn_mul(f->b, v, v);
}
static void other_branch(fixture *f)
{
    qn_if(f->b, f->t);
    qn_val v = qn_add(f->b, f->i, f->i);
    qn_else(f->b, 0, NULL);
    qn_mul(f->b, v, v);
}
static void for_step(fixture *f) { qn_for(f->b, f->zero, f->n, 0, 0, NULL, NULL); }
static void for_bound(fixture *f) { qn_for(f->b, f->zero, f->a, 1, 0, NULL, NULL); }
static void for_null(fixture *f) { qn_for(f->b, f->zero, f->n, 1, 2, NULL, NULL); }
static void for_negative(fixture *f) { qn_for(f->b, f->zero, f->n, 1, -1, NULL, NULL); }
static void for_index_after(fixture *f)
{
    qn_val j = qn_for(f->b, f->zero, f->n, 1, 0, NULL, NULL);
    qn_end_for(f->b, 0, NULL, NULL);
    qn_add(f->b, j, j);
}
static void end_for_alone(fixture *f) { qn_end_for(f->b, 0, NULL, NULL); }
static void end_for_types(fixture *f)
{
    qn_for(f->b, f->zero, f->n, 1, 1, &f->f, NULL);
    qn_end_for(f->b, 1, &f->n, NULL);
}
static void while_uniform(fixture *f) { qn_while(f->b, f->i, 0, NULL, NULL); }
static void while_type(fixture *f) { qn_while(f->b, f->a, 0, NULL, NULL); }
static void do_alone(fixture *f) { qn_do(f->b, f->t); }
static void do_type(fixture *f)
{
    qn_while(f->b, f->n, 0, NULL, NULL);
    qn_do(f->b, f->n);
}
static void do_twice(fixture *f)
{
    qn_while(f->b, f->n, 0, NULL, NULL);
    qn_do(f->b, f->t);
    qn_do(f->b, f->t);
}
static void end_while_early(fixture *f)
{
    qn_while(f->b, f->n, 0, NULL, NULL);
    qn_end_while(f->b, 0, NULL, NULL);
}
static void end_while_types(fixture *f)
{
    qn_while(f->b, f->n, 1, &f->f, NULL);
    qn_do(f->b, f->t);
    qn_end_while(f->b, 1, &f->t, NULL);
}
static void condition_value(fixture *f)
{
    qn_while(f->b, f->n, 0, NULL, NULL);
    qn_val v = qn_add(f->b, f->i, f->i);
    qn_do(f->b, f->t);
    qn_mul(f->b, v, v);
}
static void reduce_combine(fixture *f) { qn_reduce(f->b, QN_COMBINE_EXCHANGE, 0, 1, &f->r); }
static void reduce_order(fixture *f) { qn_reduce(f->b, QN_COMBINE_SUM, 4, 1, &f->r); }
static void reduce_none(fixture *f) { qn_reduce(f->b, QN_COMBINE_SUM, 0, 0, &f->r); }
static void reduce_parallel(fixture *f) { qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->i); }
static void reduce_inert(fixture *f) { qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &inert); }
static void reduce_twice(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
}
static void reduce_order_of_dims(fixture *f)
{
    qn_val d[2] = {qn_reduction(f->b, f->zero, f->n), qn_reduction(f->b, f->zero, f->n)};
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 2, (qn_val[]){d[1], d[0]});
}
static void reduce_own_value(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
    qn_add(f->b, (qn_val){f->t.id + 1}, f->i);
}
static void end_reduce_alone(fixture *f) { qn_end_reduce(f->b, f->f); }
static void end_reduce_bool(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_SUM, 0, 1, &f->r);
    qn_end_reduce(f->b, f->t);
}
static void end_reduce_bits(fixture *f)
{
    qn_reduce(f->b, QN_COMBINE_XOR, 0, 1, &f->r);
    qn_end_reduce(f->b, f->f);
}
static void finish_open(fixture *f)
{
    qn_kernel *k = NULL;
    qn_if(f->b, f->t);
    qn_finish(f->b, &k, NULL);
}
static void after_finish(fixture *f)
{
    qn_kernel *k = NULL;
    qn_finish(f->b, &k, NULL);
    qn_kernel_release(k);
    qn_add(f->b, f->a, f->a);
}

typedef struct misuse {
    void (*run)(fixture *f);
    bool is_fresh;
    int status;
    const char *who, *part;
} misuse;

static const misuse misuses[] = {
    {add_types, false, QN_ERR_TYPE, "qn_add: ", "f32 + i64: types differ"},
    {add_inert, false, QN_ERR_BUILD, "qn_add: ", "operand 1 is the inert value"},
    {add_far, false, QN_ERR_BUILD, "qn_add: ", "operand 0 is no value of this builder"},
    {add_bool, false, QN_ERR_TYPE, "qn_add: ", "bool + bool: type not taken"},
    {sqrt_int, false, QN_ERR_TYPE, "qn_sqrt: ", "i64: type not taken"},
    {rem_float, false, QN_ERR_TYPE, "qn_rem: ", "f32, f32: type not taken"},
    {and_float, false, QN_ERR_TYPE, "qn_and: ", "type not taken"},
    {select_condition, false, QN_ERR_TYPE, "qn_select: ", "i64, f32, f32: the condition is not bool"},
    {select_types, false, QN_ERR_TYPE, "qn_select: ", "bool, f32, i64: types differ"},
    {fma_types, false, QN_ERR_TYPE, "qn_fma: ", "f32, i64, f32: types differ"},
    {div_zero, false, QN_ERR_ARGUMENT, "qn_div: ", "i64 by constant 0"},
    {rem_zero, false, QN_ERR_ARGUMENT, "qn_rem: ", "i32 by constant 0"},
    {op_number, false, QN_ERR_ARGUMENT, "qn_op: ", "no op has number"},
    {op_count, false, QN_ERR_ARGUMENT, "qn_op: ", "add takes 2 operands, not 1"},
    {op_null, false, QN_ERR_ARGUMENT, "qn_op: ", "sqrt: operands are NULL"},
    {cast_dtype, false, QN_ERR_DTYPE, "qn_cast: ", "77"},
    {cast_bool, false, QN_ERR_TYPE, "qn_cast: ", "f32 to bool"},
    {cast_inert, false, QN_ERR_BUILD, "qn_cast: ", "inert"},
    {bitcast_size, false, QN_ERR_TYPE, "qn_bitcast: ", "f32 to f64: sizes differ"},
    {const_dtype, false, QN_ERR_DTYPE, "qn_const_int: ", "number 0"},
    {const_bool, false, QN_ERR_ARGUMENT, "qn_const_int: ", "2 is no bool"},
    {const_float, false, QN_ERR_TYPE, "qn_const_float: ", "i32"},
    {const_bits, false, QN_ERR_DTYPE, "qn_const_bits: ", "-1"},
    {view_name, true, QN_ERR_ARGUMENT, "qn_view_param: ", "name is NULL"},
    {view_twice, true, QN_ERR_ARGUMENT, "qn_view_param: ", "\"m\": parameter 1"},
    {view_rank, true, QN_ERR_RANK, "qn_view_param: ", "rank 17 is not in 0 to 16"},
    {view_dtype, true, QN_ERR_DTYPE, "qn_view_param: ", "99"},
    {view_traits, true, QN_ERR_ARGUMENT, "qn_view_param: ", "traits 0x100000"},
    {view_unchecked, true, QN_ERR_ARGUMENT, "qn_view_param: ", "traits 0x40"},
    {view_clamped, true, QN_ERR_ARGUMENT, "qn_view_param: ", "traits 0x80"},
    {view_late, false, QN_ERR_BUILD, "qn_view_param: ", "parameters come before dimensions"},
    {scalar_late, false, QN_ERR_BUILD, "qn_scalar_param: ", "parameters come before dimensions"},
    {extent_rank, true, QN_ERR_RANK, "qn_extent: ", "view \"m\" of rank 2 has no dimension 2"},
    {extent_inert, true, QN_ERR_BUILD, "qn_extent: ", "inert"},
    {lower_scalar, true, QN_ERR_BUILD, "qn_lower: ", "parameter 5 is no view"},
    {lower_negative, true, QN_ERR_RANK, "qn_lower: ", "no dimension -1"},
    {dim_late, false, QN_ERR_BUILD, "qn_parallel: ", "dimensions come before loads"},
    {dim_of_dim, true, QN_ERR_BUILD, "qn_parallel: ", "end depends on an index"},
    {dim_after_use, true, QN_ERR_BUILD, "qn_parallel: ", "ops that use an index (here add)"},
    {dim_float, true, QN_ERR_TYPE, "qn_parallel: ", "end is f32, not an integer"},
    {dim_inert, true, QN_ERR_BUILD, "qn_reduction: ", "begin is the inert value"},
    {sequential_late, true, QN_ERR_BUILD, "qn_sequential: ", "before parallel ones"},
    {dims_many, true, QN_ERR_LIMIT, "qn_parallel: ", "more than 16 dimensions"},
    {reduction_outside, false, QN_ERR_BUILD, "qn_add: ", "reduction dimension 1 outside a reduce"},
    {over_rank, true, QN_ERR_RANK, "qn_parallel_over: ", "no dimension 1"},
    {over_scalar, true, QN_ERR_BUILD, "qn_reduction_over: ", "is no view"},
    {load_rank, false, QN_ERR_RANK, "qn_load: ", "view \"m\": 1 indices for rank 2"},
    {load_many, false, QN_ERR_RANK, "qn_load: ", "view \"x\": 40 indices for rank 1"},
    {load_null, false, QN_ERR_ARGUMENT, "qn_load: ", "indices are NULL"},
    {load_float, false, QN_ERR_TYPE, "qn_load: ", "index 0 is f32, not an integer"},
    {load_bool, false, QN_ERR_TYPE, "qn_load: ", "index 0 is bool, not an integer"},
    {load_inert, false, QN_ERR_BUILD, "qn_load: ", "index 0 is the inert value"},
    {load_param, false, QN_ERR_BUILD, "qn_load: ", "parameter 5 is no view"},
    {store_type, false, QN_ERR_TYPE, "qn_store: ", "value is i64, the view's elements are f32"},
    {store_inert, false, QN_ERR_BUILD, "qn_store: ", "value is the inert value"},
    {store_read_only, false, QN_ERR_READ_ONLY, "qn_store: ", "view \"ro\" is read-only"},
    {store_rank, false, QN_ERR_RANK, "qn_store: ", "-1 indices"},
    {store_in_reduce, false, QN_ERR_BUILD, "qn_store: ", "inside a reduce"},
    {atomic_in_reduce, false, QN_ERR_BUILD, "qn_atomic: ", "inside a reduce"},
    {atomic_prod, false, QN_ERR_ARGUMENT, "qn_atomic: ", "1 is no atomic combination"},
    {atomic_number, false, QN_ERR_ARGUMENT, "qn_atomic: ", "9 is no atomic combination"},
    {atomic_and, false, QN_ERR_TYPE, "qn_atomic: ", "does not take f32"},
    {atomic_type, false, QN_ERR_TYPE, "qn_atomic: ", "value is f32"},
    {atomic_compare, false, QN_ERR_BUILD, "qn_atomic: ", "compare is the inert value"},
    {atomic_no_compare, false, QN_ERR_ARGUMENT, "qn_atomic: ", "compare_exchange only"},
    {if_type, false, QN_ERR_TYPE, "qn_if: ", "the condition is i64, not bool"},
    {if_inert, false, QN_ERR_BUILD, "qn_if: ", "inert"},
    {else_alone, false, QN_ERR_BUILD, "qn_else: ", "no open if"},
    {else_twice, false, QN_ERR_BUILD, "qn_else: ", "has its else already"},
    {else_in_for, false, QN_ERR_BUILD, "qn_else: ", "the innermost open region is of for, not if"},
    {else_many, false, QN_ERR_LIMIT, "qn_else: ", "33 values, limit 32"},
    {end_if_alone, false, QN_ERR_BUILD, "qn_end_if: ", "no open if"},
    {end_if_values, false, QN_ERR_BUILD, "qn_end_if: ", "1 values of an if without else"},
    {end_if_types, false, QN_ERR_TYPE, "qn_end_if: ", "value 0 is i64, not f32"},
    {end_if_count, false, QN_ERR_BUILD, "qn_end_if: ", "0 values, not 1"},
    {outside_if, false, QN_ERR_BUILD, "qn_mul: ", "operand 0 is used outside its region"},
    {other_branch, false, QN_ERR_BUILD, "qn_mul: ", "outside its region"},
    {for_step, false, QN_ERR_ARGUMENT, "qn_for: ", "step 0 is not positive"},
    {for_bound, false, QN_ERR_TYPE, "qn_for: ", "end is f32"},
    {for_null, false, QN_ERR_ARGUMENT, "qn_for: ", "2 initial values at NULL"},
    {for_negative, false, QN_ERR_ARGUMENT, "qn_for: ", "-1 initial values"},
    {for_index_after, false, QN_ERR_BUILD, "qn_add: ", "outside its region"},
    {end_for_alone, false, QN_ERR_BUILD, "qn_end_for: ", "no open for"},
    {end_for_types, false, QN_ERR_TYPE, "qn_end_for: ", "value 0 is i64, not f32"},
    {while_uniform, false, QN_ERR_BUILD, "qn_while: ", "max_trips depends on an index"},
    {while_type, false, QN_ERR_TYPE, "qn_while: ", "max_trips is f32"},
    {do_alone, false, QN_ERR_BUILD, "qn_do: ", "no open while"},
    {do_type, false, QN_ERR_TYPE, "qn_do: ", "the condition is i64"},
    {do_twice, false, QN_ERR_BUILD, "qn_do: ", "has its body already"},
    {end_while_early, false, QN_ERR_BUILD, "qn_end_while: ", "qn_do is missing"},
    {end_while_types, false, QN_ERR_TYPE, "qn_end_while: ", "value 0 is bool, not f32"},
    {condition_value, false, QN_ERR_BUILD, "qn_mul: ", "outside its region"},
    {reduce_combine, false, QN_ERR_ARGUMENT, "qn_reduce: ", "7 is no reduction"},
    {reduce_order, false, QN_ERR_ARGUMENT, "qn_reduce: ", "4 is no order rule"},
    {reduce_none, false, QN_ERR_ARGUMENT, "qn_reduce: ", "0 dimensions"},
    {reduce_parallel, false, QN_ERR_ARGUMENT, "qn_reduce: ", "no reduction dimension"},
    {reduce_inert, false, QN_ERR_BUILD, "qn_reduce: ", "no reduction dimension"},
    {reduce_twice, false, QN_ERR_BUILD, "qn_reduce: ", "dimension 1 is reduced by an open reduce"},
    {reduce_order_of_dims, true, QN_ERR_BUILD, "qn_reduce: ", "dimension 0 after 1"},
    {reduce_own_value, false, QN_ERR_BUILD, "qn_add: ", "no value of this builder"},
    {end_reduce_alone, false, QN_ERR_BUILD, "qn_end_reduce: ", "no open reduce"},
    {end_reduce_bool, false, QN_ERR_TYPE, "qn_end_reduce: ", "does not take bool"},
    {end_reduce_bits, false, QN_ERR_TYPE, "qn_end_reduce: ", "does not take f32"},
    {finish_open, false, QN_ERR_BUILD, "qn_finish: ", "1 regions are open, the innermost of if"},
    {after_finish, false, QN_ERR_BUILD, "qn_add: ", "the kernel is finished"},
};

static void test_misuse(void)
{
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        const misuse *m = &misuses[i];
        fixture f = m->is_fresh ? make_fresh(0) : make(0);
        qn_error err = {0};
        bool was_good = qn_builder_status(f.b, NULL) == QN_OK;
        m->run(&f);
        int status = (int)qn_builder_status(f.b, &err);
        bool is_right = was_good && status == m->status && err.status == status &&
                        strncmp(err.message, m->who, strlen(m->who)) == 0 && strstr(err.message, m->part) &&
                        !strchr(err.message, '\n');
        if (!tap_ok(is_right, "misuse %d: %s%s", (int)i, m->who, m->part))
            tap_note("found %s \"%s\"", qn_status_name(status), err.message);
        qn_builder_release(f.b);
    }
}

static void test_sticky(void)
{
    fixture f = make(0);
    qn_error first = {0}, err = {0};
    qn_val results[2] = {{7}, {7}};
    qn_kernel *k = NULL;
    qn_add(f.b, f.a, f.n);
    qn_builder_status(f.b, &first);
    tap_ok(qn_mul(f.b, f.a, f.a).id == 0, "after an error values are inert");
    qn_end_if(f.b, 2, results, results);
    tap_ok(results[0].id == 0 && results[1].id == 0, "... and so are results");
    tap_is_int(qn_for(f.b, inert, inert, 1, 0, NULL, NULL).id, 0, "... and inert operands are silent");
    tap_is_int(qn_finish(f.b, &k, &err), QN_ERR_TYPE, "qn_finish returns the first error");
    tap_is_str(err.message, first.message, "... and its message");
    tap_ok(k == NULL, "... and writes nothing");
    qn_builder_release(f.b);
}

static void test_null(void)
{
    qn_error err = {0};
    qn_kernel *k = NULL;
    qn_builder_release(NULL);
    qn_kernel_release(NULL);
    tap_is_int(qn_builder_status(NULL, &err), QN_ERR_ARGUMENT, "status of no builder");
    tap_is_int(qn_finish(NULL, &k, &err), QN_ERR_ARGUMENT, "finish of no builder");
    fixture f = make(0);
    tap_is_int(qn_finish(f.b, NULL, &err), QN_ERR_ARGUMENT, "finish to nowhere");
    qn_builder_release(f.b);
    tap_ok(qn_add(NULL, f.a, f.a).id == 0 && qn_view_param(NULL, "x", QN_F32, 1, 0).id == 0 &&
               qn_scalar_param(NULL, "x", QN_F32).id == 0 && qn_const_int(NULL, QN_I32, 1).id == 0 &&
               qn_const_float(NULL, QN_F32, 1).id == 0 && qn_const_bits(NULL, QN_F32, 1).id == 0 &&
               qn_index(NULL, 1).id == 0 && qn_extent(NULL, f.x, 0).id == 0 && qn_lower(NULL, f.x, 0).id == 0 &&
               qn_parallel(NULL, f.one, f.one).id == 0 && qn_reduction(NULL, f.one, f.one).id == 0 &&
               qn_sequential(NULL, f.one, f.one).id == 0 && qn_parallel_over(NULL, f.x, 0).id == 0 &&
               qn_reduction_over(NULL, f.x, 0).id == 0 && qn_load(NULL, f.x, 0, NULL).id == 0 &&
               qn_atomic(NULL, 0, f.x, 0, NULL, f.a, f.a).id == 0 && qn_op(NULL, 1, 1, &f.a).id == 0 &&
               qn_cast(NULL, QN_I8, f.a).id == 0 && qn_bitcast(NULL, QN_I8, f.a).id == 0 &&
               qn_end_reduce(NULL, f.a).id == 0 && qn_type_of(NULL, f.a) == QN_VOID,
           "no builder: everything is inert");
    qn_store(NULL, f.x, 0, NULL, f.a);
    qn_if(NULL, f.a);
    qn_else(NULL, 0, NULL);
    qn_end_if(NULL, 0, NULL, NULL);
    qn_for(NULL, f.a, f.a, 1, 0, NULL, NULL);
    qn_end_for(NULL, 0, NULL, NULL);
    qn_while(NULL, f.a, 0, NULL, NULL);
    qn_do(NULL, f.a);
    qn_end_while(NULL, 0, NULL, NULL);
    qn_reduce(NULL, 0, 0, 0, NULL);
    static const struct {
        const char *name;
        uint32_t flags;
        int status;
    } news[] = {{NULL, 0, QN_ERR_ARGUMENT},
                {"k", 1u << 30, QN_ERR_ARGUMENT},
                {"k", QN_CHECK_DIVISION, QN_ERR_UNSUPPORTED},
                {"k", QN_ORDER_STRIPED | QN_ORDER_ORDERED, QN_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof news / sizeof *news; i++) {
        qn_builder *b = qn_builder_new(news[i].name, news[i].flags);
        tap_is_int(qn_builder_status(b, NULL), news[i].status, "flags and name of qn_builder_new");
        qn_builder_release(b);
    }
}

/* ------------------------------------------------------------------------------------------------ folding */

static uint64_t bits_of(const fixture *f, qn_val v)
{
    return f->b->inst[v.id].op == QN_I_CONST ? f->b->inst[v.id].imm : UINT64_C(0xdeadbeef);
}

static void test_constants(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    tap_ok(qn_index(b, 5).id == qn_const_int(b, QN_I64, 5).id, "equal constants are one");
    tap_ok(qn_index(b, 5).id != qn_const_int(b, QN_U64, 5).id, "types make a difference");
    tap_ok(qn_const_float(b, QN_F32, 0.0).id != qn_const_float(b, QN_F32, -0.0).id, "so does the sign of zero");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_I8, 300)), 44, "a constant is cut to its width");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_I8, 200)), -56, "... and signed");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_U8, -1)), 255, "... or unsigned");
    tap_is_int((int64_t)bits_of(&f, qn_const_float(b, QN_F32, 1.0)), 0x3f800000, "f32 constant");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_F32, 2)), 0x40000000, "f32 constant from an integer");
    tap_ok(qn_const_bits(b, QN_F32, 0x7fc00001).id == qn_const_bits(b, QN_F32, 0x7fc00001).id &&
               qn_const_bits(b, QN_F32, 0x7fc00001).id != qn_const_bits(b, QN_F32, 0x7fc00002).id,
           "NaNs compare by bits");
    qn_val six = qn_mul(b, qn_index(b, 2), qn_index(b, 3));
    tap_is_int((int64_t)bits_of(&f, six), 6, "2 * 3");
    tap_is_int((int64_t)bits_of(&f, qn_lt(b, six, qn_index(b, 7))), 1, "6 < 7");
    tap_is_int(qn_type_of(b, qn_lt(b, six, f.n)), QN_BOOL, "a comparison is a bool");
    tap_is_int((int64_t)bits_of(&f, qn_cast(b, QN_I8, qn_index(b, 300))), 44, "cast of a constant");
    tap_is_int((int64_t)bits_of(&f, qn_bitcast(b, QN_I32, qn_const_float(b, QN_F32, 1.0))), 0x3f800000,
               "bitcast of a constant");
    tap_is_int((int64_t)bits_of(&f, qn_div(b, qn_index(b, INT64_MIN), qn_index(b, -1))), INT64_MIN, "MIN / -1");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);
}

/** Each row: an op of v (i32 u or f32 f) that must be v itself. */
static void test_identities(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    qn_val u = f.u, z = qn_const_int(b, QN_I32, 0), o = qn_const_int(b, QN_I32, 1);
    qn_val ones = qn_const_int(b, QN_I32, -1), f1 = qn_const_float(b, QN_F32, 1), f0 = qn_const_float(b, QN_F32, 0);
    qn_val yes = qn_const_int(b, QN_BOOL, 1), no = qn_const_int(b, QN_BOOL, 0);
    const struct {
        qn_val found, expected;
        const char *what;
    } rows[] = {
        {qn_add(b, u, z), u, "u + 0"}, {qn_add(b, z, u), u, "0 + u"}, {qn_sub(b, u, z), u, "u - 0"},
        {qn_mul(b, u, o), u, "u * 1"}, {qn_mul(b, o, u), u, "1 * u"}, {qn_div(b, u, o), u, "u / 1"},
        {qn_and(b, u, ones), u, "u and -1"}, {qn_and(b, u, u), u, "u and u"}, {qn_or(b, u, z), u, "u or 0"},
        {qn_xor(b, z, u), u, "0 xor u"}, {qn_shl(b, u, z), u, "u shl 0"}, {qn_shr(b, u, z), u, "u shr 0"},
        {qn_min(b, u, u), u, "min(u, u)"}, {qn_mul(b, f.f, f1), f.f, "f * 1"}, {qn_mul(b, f1, f.f), f.f, "1 * f"},
        {qn_div(b, f.f, f1), f.f, "f / 1"}, {qn_sub(b, f.f, f0), f.f, "f - 0"}, {qn_max(b, f.f, f.f), f.f, "max(f, f)"},
        {qn_neg(b, qn_neg(b, f.f)), f.f, "neg neg f"}, {qn_not(b, qn_not(b, f.t)), f.t, "not not t"},
        {qn_not(b, qn_not(b, u)), u, "not not u"}, {qn_abs(b, qn_abs(b, f.f)), qn_abs(b, f.f), "abs abs f"},
        {qn_select(b, yes, f.f, f.a), f.f, "select true"}, {qn_select(b, no, f.f, f.a), f.a, "select false"},
        {qn_select(b, f.t, f.a, f.a), f.a, "select of equals"}, {qn_cast(b, QN_I32, u), u, "cast to its type"},
        {qn_bitcast(b, QN_F32, f.f), f.f, "bitcast to its type"}, {qn_mul(b, u, z), z, "u * 0"},
        {qn_sub(b, u, u), z, "u - u"}, {qn_xor(b, u, u), z, "u xor u"}, {qn_and(b, z, u), z, "0 and u"},
        {qn_and(b, f.t, yes), f.t, "t and true"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tap_is_int(rows[i].found.id, rows[i].expected.id, rows[i].what);
    tap_ok(qn_add(b, f.f, f0).id != f.f.id, "f + 0 is not f: -0 + 0 is 0");
    tap_ok(qn_sub(b, f.f, qn_const_float(b, QN_F32, -0.0)).id != f.f.id, "f - -0 is not f");
    tap_ok(qn_mul(b, f.f, f0).id != f0.id, "f * 0 is not 0");
    tap_ok(qn_sub(b, f.f, f.f).id != f0.id, "f - f is not 0");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);
}

/* ------------------------------------------------------------------------------------------------ numbering */

static void test_numbering(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    qn_val s = qn_add(b, f.n, f.i);
    tap_ok(qn_add(b, f.n, f.i).id == s.id, "equal ops are one");
    tap_ok(qn_add(b, f.i, f.n).id == s.id, "... in either order for integers");
    tap_ok(qn_sub(b, f.i, f.n).id != qn_sub(b, f.n, f.i).id, "... not for differences");
    tap_ok(qn_add(b, f.f, f.a).id != qn_add(b, f.a, f.f).id, "... not for floats");
    tap_ok(qn_extent(b, f.m, 1).id == qn_extent(b, f.m, 1).id, "extents too");
    tap_ok(qn_load(b, f.x, 1, &f.i).id == f.f.id, "equal loads are one");
    qn_if(b, f.t);
    qn_val inner = qn_mul(b, f.i, f.i);
    tap_ok(qn_add(b, f.n, f.i).id == s.id, "a region reuses what dominates it");
    tap_ok(qn_load(b, f.x, 1, &f.i).id == f.f.id, "... loads too");
    qn_end_if(b, 0, NULL, NULL);
    tap_ok(qn_mul(b, f.i, f.i).id != inner.id, "nothing is reused after its region");
    tap_ok(qn_load(b, f.x, 1, &f.i).id == f.f.id, "an if without stores keeps loads");
    qn_store(b, f.c, 1, &f.i, f.u);
    qn_val second = qn_load(b, f.x, 1, &f.i);
    tap_ok(second.id != f.f.id, "a store to any view ends the life of loads");
    tap_ok(qn_load(b, f.x, 1, &f.i).id == second.id, "... and the next one is shared again");
    qn_if(b, f.t);
    qn_store(b, f.c, 1, &f.i, f.u);
    qn_val in_first = qn_load(b, f.x, 1, &f.i);
    qn_else(b, 0, NULL);
    tap_ok(qn_load(b, f.x, 1, &f.i).id == second.id, "the other branch begins where the first one did");
    qn_end_if(b, 0, NULL, NULL);
    qn_val third = qn_load(b, f.x, 1, &f.i);
    tap_ok(third.id != second.id && in_first.id != second.id, "a store in a branch counts after the if");
    qn_for(b, f.zero, f.n, 1, 0, NULL, NULL);
    qn_val in_loop = qn_load(b, f.x, 1, &f.i);
    tap_ok(in_loop.id != third.id, "a loop may store later in its body");
    qn_atomic(b, QN_COMBINE_SUM, f.at, 1, &f.i, f.u, inert);
    tap_ok(qn_load(b, f.x, 1, &f.i).id != in_loop.id, "an atomic counts as a store");
    qn_end_for(b, 0, NULL, NULL);
    tap_ok(qn_load(b, f.x, 1, &f.i).id != third.id, "... also after the loop");
    tap_ok(qn_load(b, f.at, 1, &f.i).id != qn_load(b, f.at, 1, &f.i).id, "loads of atomic views are never shared");
    qn_val narrow = qn_load(b, f.x, 1, &f.u), wide = qn_cast(b, QN_I64, f.u);
    tap_is_int(qn__builder_args(b, narrow.id)[0], wide.id, "an i32 index is converted to i64");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);
}

/* ------------------------------------------------------------------------------------------------ contraction */

/** Whether v is fma(x, y, z). */
static bool is_fma(const fixture *f, qn_val v, qn_val x, qn_val y, qn_val z)
{
    const uint32_t *a = qn__builder_args(f->b, v.id);
    return f->b->inst[v.id].op == QN_I_PURE + QN_OP_fma && a[0] == x.id && a[1] == y.id && a[2] == z.id;
}

static void test_contract(void)
{
    fixture f = make(QN_CONTRACT);
    qn_builder *b = f.b;
    qn_val x = f.f, y = f.a, z = qn_sqrt(b, f.a), w = qn_floor(b, f.f);
    qn_val p = qn_mul(b, x, y), q = qn_mul(b, z, w);
    tap_ok(is_fma(&f, qn_add(b, p, z), x, y, z), "x*y + z");
    tap_ok(is_fma(&f, qn_add(b, z, p), x, y, z), "z + x*y");
    tap_ok(is_fma(&f, qn_sub(b, p, z), x, y, qn_neg(b, z)), "x*y - z");
    tap_ok(is_fma(&f, qn_sub(b, z, p), qn_neg(b, x), y, z), "z - x*y");
    tap_ok(is_fma(&f, qn_add(b, p, q), x, y, q), "x*y + z*w: the left product");
    tap_ok(is_fma(&f, qn_sub(b, q, p), z, w, qn_neg(b, p)), "z*w - x*y: the left product");
    qn_val ints = qn_add(b, qn_mul(b, f.n, f.i), f.i);
    tap_is_int(b->inst[ints.id].op, QN_I_PURE + QN_OP_add, "integers stay");
    qn_builder_release(b);
    f = make(0);
    qn_val sum = qn_add(f.b, qn_mul(f.b, f.f, f.a), f.a);
    tap_is_int(f.b->inst[sum.id].op, QN_I_PURE + QN_OP_add, "nothing without the flag");
    qn_builder_release(f.b);
}

/* ------------------------------------------------------------------------------------------------ atomic views */

/** The last instruction: ATOMIC with this combination, or -1 if it is something else. */
static int last_combine(const fixture *f)
{
    const qn_inst *x = &f->b->inst[f->b->n_insts - 1];
    return x->op == QN_I_ATOMIC ? x->sub : -1;
}

static void test_atomic_views(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    static const struct {
        int op, combine;
    } rows[] = {{QN_OP_add, QN_COMBINE_SUM}, {QN_OP_sub, QN_COMBINE_SUM}, {QN_OP_min, QN_COMBINE_MIN},
                {QN_OP_max, QN_COMBINE_MAX}, {QN_OP_and, QN_COMBINE_AND}, {QN_OP_or, QN_COMBINE_OR},
                {QN_OP_xor, QN_COMBINE_XOR}, {QN_OP_mul, -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qn_val old = qn_load(b, f.at, 1, &f.i);
        qn_store(b, f.at, 1, &f.i, qn_op(b, rows[i].op, 2, (qn_val[]){old, f.u}));
        tap_ok(last_combine(&f) == rows[i].combine, "store of %s(load, u) through an atomic view",
               qn__op_info[rows[i].op].name);
    }
    qn_val old = qn_load(b, f.at, 1, &f.i);
    qn_store(b, f.at, 1, &f.i, qn_add(b, f.u, old));
    tap_is_int(last_combine(&f), QN_COMBINE_SUM, "the load may be the second operand");
    old = qn_load(b, f.at, 1, &f.i);
    qn_store(b, f.at, 1, &f.i, qn_sub(b, f.u, old));
    tap_is_int(last_combine(&f), -1, "... not of a difference");
    old = qn_load(b, f.at, 1, &f.i);
    qn_store(b, f.at, 1, &f.n, qn_add(b, old, f.u));
    tap_is_int(last_combine(&f), -1, "another element is stored as it is");
    old = qn_load(b, f.at, 1, &f.i);
    qn_store(b, f.at, 1, &f.i, f.u);
    qn_store(b, f.at, 1, &f.i, qn_add(b, old, f.u));
    tap_is_int(last_combine(&f), -1, "so is one that was stored since");
    qn_store(b, f.c, 1, &f.i, qn_add(b, qn_load(b, f.c, 1, &f.i), f.u));
    tap_is_int(last_combine(&f), -1, "other views have plain stores");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);

    b = qn_builder_new("k", QN_CONTRACT);
    fixture g = {.b = b};
    qn_param s = qn_view_param(b, "s", QN_F32, 0, QN_ATOMIC);
    qn_val a = qn_scalar_param(b, "a", QN_F32);
    qn_store(b, s, 0, NULL, qn_add(b, qn_load(b, s, 0, NULL), qn_mul(b, a, a)));
    tap_is_int(last_combine(&g), QN_COMBINE_SUM, "contraction leaves sums of atomic views alone");
    qn_builder_release(b);
}

/* ------------------------------------------------------------------------------------------------ limits */

static void test_limits(void)
{
    qn_error err = {0};
    qn_builder *b = qn_builder_new("k", 0);
    qn_val v = qn_scalar_param(b, "a", QN_F32);
    for (int i = 0; i < QN_MAX_OPS - 1; i++)
        v = qn_sqrt(b, v);
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "10000 instructions");
    qn_sqrt(b, v);
    tap_is_int(qn_builder_status(b, &err), QN_ERR_LIMIT, "one more is an error");
    tap_contains(err.message, "qn_sqrt: more than 10000 instructions", "... that says so");
    qn_builder_release(b);

    b = qn_builder_new("k", 0);
    for (int i = 0; i <= QN_MAX_PARAMS; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        qn_view_param(b, name, QN_F32, 1, 0);
        if (i == QN_MAX_PARAMS - 1)
            tap_is_int(qn_builder_status(b, NULL), QN_OK, "64 parameters");
    }
    qn_builder_status(b, &err);
    tap_contains(err.message, "more than 64 parameters", "65 parameters");
    qn_builder_release(b);

    fixture f = make(0);
    for (int i = 0; i < QN_MAX_NESTING; i++)
        qn_if(f.b, f.t);
    tap_is_int(qn_builder_status(f.b, NULL), QN_OK, "nesting 64");
    qn_if(f.b, f.t);
    qn_builder_status(f.b, &err);
    tap_contains(err.message, "qn_if: nesting deeper than 64", "nesting 65");
    qn_builder_release(f.b);

    f = make(0);
    for (int i = 0; i < QN_MAX_REGIONS / 2; i++) {
        qn_if(f.b, f.t);
        qn_else(f.b, 0, NULL);
        qn_end_if(f.b, 0, NULL, NULL);
    }
    tap_is_int(qn_builder_status(f.b, NULL), QN_OK, "500 regions");
    qn_if(f.b, f.t);
    qn_builder_status(f.b, &err);
    tap_contains(err.message, "qn_if: more than 500 regions", "501 regions");
    qn_builder_release(f.b);

    f = make(0);
    qn_val many[QN_MAX_CARRIED + 1];
    for (int i = 0; i <= QN_MAX_CARRIED; i++)
        many[i] = f.a;
    qn_for(f.b, f.zero, f.n, 1, QN_MAX_CARRIED, many, many);
    qn_end_for(f.b, QN_MAX_CARRIED, many, many);
    tap_is_int(qn_builder_status(f.b, NULL), QN_OK, "32 carried values, in and out through one array");
    tap_ok(f.b->inst[many[31].id].op == QN_I_RESULT && f.b->inst[many[31].id].imm == 31, "... are results");
    qn_for(f.b, f.zero, f.n, 1, QN_MAX_CARRIED + 1, many, NULL);
    qn_builder_status(f.b, &err);
    tap_contains(err.message, "qn_for: 33 initial values, limit 32", "33 carried values");
    qn_builder_release(f.b);
}

int main(void)
{
    test_misuse();
    test_sticky();
    test_null();
    test_constants();
    test_identities();
    test_numbering();
    test_contract();
    test_atomic_views();
    test_limits();
    return tap_done();
}
