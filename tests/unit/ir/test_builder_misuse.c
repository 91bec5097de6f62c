/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_builder_misuse.c: misuse of each builder function: status and words of the message, and that
 * the first error stays.
 */
#include "tests/unit/builder.h"


static void add_types(fixture *f) { qn_add(f->b, f->a, f->n); }
static void add_inert(fixture *f) { qn_add(f->b, f->a, inert); }
static void add_far(fixture *f) { qn_add(f->b, (qn_val){4000000000u, f->b->number}, f->a); }
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
static void add_foreign(fixture *f)
{
    qn_builder *other = qn_builder_new("other", 0);
    qn_add(f->b, f->i, qn_index(other, 1)); /* a number that this builder has too */
    qn_builder_release(other);
}
static void store_foreign(fixture *f)
{
    qn_builder *gone = qn_builder_new("gone", 0);
    qn_val value = qn_const_float(gone, QN_F32, 1);
    qn_builder_release(gone);
    qn_builder *other = qn_builder_new("other", 0); /* where the first one was, maybe */
    qn_store(f->b, f->x, 1, &f->i, value);
    qn_builder_release(other);
}
static void load_foreign(fixture *f)
{
    qn_builder *other = qn_builder_new("other", 0);
    qn_load(f->b, qn_view_param(other, "x", QN_F32, 1, 0), 1, &f->i);
    qn_builder_release(other);
}
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
static void lower_scalar(fixture *f) { qn_lower(f->b, (qn_param){6, f->b->number}, 0); }
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
static void over_scalar(fixture *f) { qn_reduction_over(f->b, (qn_param){99, f->b->number}, 0); }
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
static void load_param(fixture *f) { qn_load(f->b, (qn_param){6, f->b->number}, 1, &f->i); }
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
static void atomic_prod(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_PROD, f->c, 1, &f->i, f->u, inert);
}
static void atomic_number(fixture *f) { qn_atomic(f->b, 9, f->c, 1, &f->i, f->u, inert); }
static void atomic_and(fixture *f) { qn_atomic(f->b, QN_COMBINE_AND, f->x, 1, &f->i, f->f, inert); }
static void atomic_type(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_SUM, f->c, 1, &f->i, f->f, inert);
}
static void atomic_compare(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_COMPARE_EXCHANGE, f->c, 1, &f->i, f->u, inert);
}
static void atomic_no_compare(fixture *f)
{
    qn_atomic(f->b, QN_COMBINE_MIN, f->c, 1, &f->i, f->u, f->u);
}
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
    qn_add(f->b, (qn_val){f->t.id + 1, f->t.builder}, f->i);
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
    qn_store(f->b, f->x, 1, &f->i, f->a);
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
    {add_types, false, QN_ERR_TYPE, "qn_add: ",
     "kernel \"k\": operand 0 (scalar a) is f32, operand 1 (scalar n) is i64: types differ"},
    {add_inert, false, QN_ERR_BUILD,
     "qn_add: ", "operand 1 is not set: expected what a call of this builder returned"},
    {add_far, false, QN_ERR_BUILD, "qn_add: ", "operand 0 is no value of this builder"},
    {add_bool, false, QN_ERR_TYPE,
     "qn_add: ", "is bool: type not taken, expected integers or floats"},
    {sqrt_int, false, QN_ERR_TYPE,
     "qn_sqrt: ", "operand 0 (scalar n) is i64: type not taken, expected floats"},
    {rem_float, false, QN_ERR_TYPE, "qn_rem: ", "type not taken, expected integers"},
    {and_float, false, QN_ERR_TYPE, "qn_and: ", "type not taken, expected bool or integers"},
    {select_condition, false, QN_ERR_TYPE, "qn_select: ",
     "operand 0 (scalar n) is i64, operand 1 (scalar a) is f32, operand 2 (scalar a) is f32: the "
     "condition is not bool"},
    {select_types, false, QN_ERR_TYPE, "qn_select: ", "operand 2 (scalar n) is i64: types differ"},
    {fma_types, false, QN_ERR_TYPE,
     "qn_fma: ", "operand 1 (scalar n) is i64, operand 2 (scalar a) is f32: types differ"},
    {div_zero, false, QN_ERR_ARGUMENT, "qn_div: ", "i64 by constant 0"},
    {rem_zero, false, QN_ERR_ARGUMENT, "qn_rem: ", "i32 by constant 0"},
    {op_number, false, QN_ERR_ARGUMENT, "qn_op: ", "no op has number"},
    {op_count, false, QN_ERR_ARGUMENT, "qn_op: ", "add takes 2 operands, not 1"},
    {op_null, false, QN_ERR_ARGUMENT, "qn_op: ", "sqrt: operands are NULL"},
    {cast_dtype, false, QN_ERR_DTYPE, "qn_cast: ", "77"},
    {cast_bool, false, QN_ERR_TYPE, "qn_cast: ", "f32 to bool"},
    {cast_inert, false, QN_ERR_BUILD, "qn_cast: ", "is not set"},
    {bitcast_size, false, QN_ERR_TYPE, "qn_bitcast: ", "f32 to f64: sizes differ"},
    {const_dtype, false, QN_ERR_DTYPE,
     "qn_const_int: ", "no dtype is set (0, QN_VOID): expected one such as f32"},
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
    {extent_inert, true, QN_ERR_BUILD, "qn_extent: ", "no view: expected what qn_view_param"},
    {lower_scalar, true, QN_ERR_BUILD, "qn_lower: ", "parameter 5 is no view"},
    {lower_negative, true, QN_ERR_RANK, "qn_lower: ", "no dimension -1"},
    {dim_late, false, QN_ERR_BUILD, "qn_parallel: ", "dimensions come before loads"},
    {dim_of_dim, true, QN_ERR_BUILD, "qn_parallel: ", "end depends on an index"},
    {dim_after_use, true, QN_ERR_BUILD, "qn_parallel: ", "ops that use an index (here add)"},
    {dim_float, true, QN_ERR_TYPE, "qn_parallel: ", "end (scalar a) is f32, not an integer"},
    {add_foreign, false, QN_ERR_BUILD, "qn_add: ", "operand 1 is a value of another builder"},
    {store_foreign, false, QN_ERR_BUILD, "qn_store: ", "value is a value of another builder"},
    {load_foreign, false, QN_ERR_BUILD,
     "qn_load: ", "the view parameter is one of another builder"},
    {dim_inert, true, QN_ERR_BUILD, "qn_reduction: ", "begin is not set"},
    {sequential_late, true, QN_ERR_BUILD, "qn_sequential: ", "before parallel ones"},
    {dims_many, true, QN_ERR_LIMIT, "qn_parallel: ", "more than 16 dimensions"},
    {reduction_outside, false, QN_ERR_BUILD, "qn_add: ", "reduction dimension 1 outside a reduce"},
    {over_rank, true, QN_ERR_RANK, "qn_parallel_over: ", "no dimension 1"},
    {over_scalar, true, QN_ERR_BUILD, "qn_reduction_over: ", "is no view"},
    {load_rank, false, QN_ERR_RANK, "qn_load: ", "view \"m\": 1 indices for rank 2"},
    {load_many, false, QN_ERR_RANK, "qn_load: ", "view \"x\": 40 indices for rank 1"},
    {load_null, false, QN_ERR_ARGUMENT, "qn_load: ", "indices are NULL"},
    {load_float, false, QN_ERR_TYPE,
     "qn_load: ", "view \"x\": index 0 (scalar a) is f32, not an integer"},
    {load_bool, false, QN_ERR_TYPE, "qn_load: ", "index 0 (lt) is bool, not an integer"},
    {load_inert, false, QN_ERR_BUILD, "qn_load: ", "view \"x\": index 0 is not set"},
    {load_param, false, QN_ERR_BUILD, "qn_load: ", "parameter 5 is no view"},
    {store_type, false, QN_ERR_TYPE,
     "qn_store: ", "value (scalar n) is i64, the view's elements are f32"},
    {store_inert, false, QN_ERR_BUILD, "qn_store: ", "value is not set"},
    {store_read_only, false, QN_ERR_READ_ONLY, "qn_store: ", "view \"ro\" is read-only"},
    {store_rank, false, QN_ERR_RANK, "qn_store: ", "-1 indices"},
    {store_in_reduce, false, QN_ERR_BUILD, "qn_store: ", "inside a reduce"},
    {atomic_in_reduce, false, QN_ERR_BUILD, "qn_atomic: ", "inside a reduce"},
    {atomic_prod, false, QN_ERR_ARGUMENT, "qn_atomic: ",
     "an atomic has no combination prod: expected sum, min, max, and, or, xor, exchange, "
     "compare_exchange"},
    {atomic_number, false, QN_ERR_ARGUMENT,
     "qn_atomic: ", "an atomic has no combination of number 9: expected sum, min"},
    {atomic_and, false, QN_ERR_TYPE, "qn_atomic: ", "and does not take f32"},
    {atomic_type, false, QN_ERR_TYPE, "qn_atomic: ", "value (load of x) is f32"},
    {atomic_compare, false, QN_ERR_BUILD, "qn_atomic: ", "compare is not set"},
    {atomic_no_compare, false, QN_ERR_ARGUMENT, "qn_atomic: ", "compare_exchange only"},
    {if_type, false, QN_ERR_TYPE, "qn_if: ", "the condition is i64, not bool"},
    {if_inert, false, QN_ERR_BUILD, "qn_if: ", "is not set"},
    {else_alone, false, QN_ERR_BUILD, "qn_else: ", "no open if"},
    {else_twice, false, QN_ERR_BUILD, "qn_else: ", "has its else already"},
    {else_in_for, false, QN_ERR_BUILD, "qn_else: ", "the innermost open region is of for, not if"},
    {else_many, false, QN_ERR_LIMIT, "qn_else: ", "33 values, limit 32"},
    {end_if_alone, false, QN_ERR_BUILD, "qn_end_if: ", "no open if"},
    {end_if_values, false, QN_ERR_BUILD, "qn_end_if: ", "1 values of an if without else"},
    {end_if_types, false, QN_ERR_TYPE, "qn_end_if: ", "value 0 (scalar n) is i64, not f32"},
    {end_if_count, false, QN_ERR_BUILD, "qn_end_if: ", "0 values, not 1"},
    {outside_if, false, QN_ERR_BUILD, "qn_mul: ", "operand 0 is used outside its region"},
    {other_branch, false, QN_ERR_BUILD, "qn_mul: ", "outside its region"},
    {for_step, false, QN_ERR_ARGUMENT, "qn_for: ", "step 0 is not positive"},
    {for_bound, false, QN_ERR_TYPE, "qn_for: ", "end (scalar a) is f32"},
    {for_null, false, QN_ERR_ARGUMENT, "qn_for: ", "2 initial values at NULL"},
    {for_negative, false, QN_ERR_ARGUMENT, "qn_for: ", "-1 initial values"},
    {for_index_after, false, QN_ERR_BUILD, "qn_add: ", "outside its region"},
    {end_for_alone, false, QN_ERR_BUILD, "qn_end_for: ", "no open for"},
    {end_for_types, false, QN_ERR_TYPE, "qn_end_for: ", "value 0 (scalar n) is i64, not f32"},
    {while_uniform, false, QN_ERR_BUILD, "qn_while: ", "max_trips depends on an index"},
    {while_type, false, QN_ERR_TYPE, "qn_while: ", "max_trips (scalar a) is f32"},
    {do_alone, false, QN_ERR_BUILD, "qn_do: ", "no open while"},
    {do_type, false, QN_ERR_TYPE, "qn_do: ", "the condition is i64"},
    {do_twice, false, QN_ERR_BUILD, "qn_do: ", "has its body already"},
    {end_while_early, false, QN_ERR_BUILD, "qn_end_while: ", "qn_do is missing"},
    {end_while_types, false, QN_ERR_TYPE, "qn_end_while: ", "value 0 (lt) is bool, not f32"},
    {condition_value, false, QN_ERR_BUILD, "qn_mul: ", "outside its region"},
    {reduce_combine, false, QN_ERR_ARGUMENT, "qn_reduce: ",
     "a reduction has no combination exchange: expected sum, prod, min, max, and, or, xor"},
    {reduce_order, false, QN_ERR_ARGUMENT, "qn_reduce: ", "order 4: expected QN_ORDER_DEFAULT"},
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
                        strncmp(err.message, m->who, strlen(m->who)) == 0 &&
                        strstr(err.message, m->part) && !strchr(err.message, '\n');
        if (!tap_ok(is_right, "misuse %d: %s%s", (int)i, m->who, m->part))
            tap_note("found %s \"%s\"", qn_status_name(status), err.message);
        qn_builder_release(f.b);
    }
}

static void test_sticky(void)
{
    fixture f = make(0);
    qn_error first = {0}, err = {0};
    qn_val results[2] = {{7, 0}, {7, 0}};
    qn_kernel *k = NULL;
    qn_add(f.b, f.a, f.n);
    qn_builder_status(f.b, &first);
    tap_ok(qn_mul(f.b, f.a, f.a).id == 0, "after an error values are inert");
    qn_end_if(f.b, 2, results, results);
    tap_ok(results[0].id == 0 && results[1].id == 0, "... and so are results");
    tap_is_int(qn_for(f.b, inert, inert, 1, 0, NULL, NULL).id, 0,
               "... and inert operands are silent");
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
    tap_ok(
        qn_add(NULL, f.a, f.a).id == 0 && qn_view_param(NULL, "x", QN_F32, 1, 0).id == 0 &&
            qn_scalar_param(NULL, "x", QN_F32).id == 0 && qn_const_int(NULL, QN_I32, 1).id == 0 &&
            qn_const_float(NULL, QN_F32, 1).id == 0 && qn_const_bits(NULL, QN_F32, 1).id == 0 &&
            qn_index(NULL, 1).id == 0 && qn_extent(NULL, f.x, 0).id == 0 &&
            qn_lower(NULL, f.x, 0).id == 0 && qn_parallel(NULL, f.one, f.one).id == 0 &&
            qn_reduction(NULL, f.one, f.one).id == 0 && qn_sequential(NULL, f.one, f.one).id == 0 &&
            qn_parallel_over(NULL, f.x, 0).id == 0 && qn_reduction_over(NULL, f.x, 0).id == 0 &&
            qn_load(NULL, f.x, 0, NULL).id == 0 &&
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

int main(void)
{
    test_misuse();
    test_sticky();
    test_null();
    return tap_done();
}
