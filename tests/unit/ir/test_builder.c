/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_builder.c: folding, numbering, contraction, atomic views, dead code, limits. Looks into the
 * builder (ir/build/builder.h) to see what was appended. Misuse is in test_builder_misuse.c,
 * collisions and the verifier are in test_finish.c.
 */
#include "tests/unit/builder.h"

/* ------------------------------------------------------------------------------------------------
 * folding */

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
    tap_ok(qn_const_float(b, QN_F32, 0.0).id != qn_const_float(b, QN_F32, -0.0).id,
           "so does the sign of zero");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_I8, 300)), 44,
               "a constant is cut to its width");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_I8, 200)), -56, "... and signed");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_U8, -1)), 255, "... or unsigned");
    tap_is_int((int64_t)bits_of(&f, qn_const_float(b, QN_F32, 1.0)), 0x3f800000, "f32 constant");
    tap_is_int((int64_t)bits_of(&f, qn_const_int(b, QN_F32, 2)), 0x40000000,
               "f32 constant from an integer");
    tap_ok(qn_const_bits(b, QN_F32, 0x7fc00001).id == qn_const_bits(b, QN_F32, 0x7fc00001).id &&
               qn_const_bits(b, QN_F32, 0x7fc00001).id != qn_const_bits(b, QN_F32, 0x7fc00002).id,
           "NaNs compare by bits");
    qn_val six = qn_mul(b, qn_index(b, 2), qn_index(b, 3));
    tap_is_int((int64_t)bits_of(&f, six), 6, "2 * 3");
    tap_is_int((int64_t)bits_of(&f, qn_lt(b, six, qn_index(b, 7))), 1, "6 < 7");
    tap_is_int(qn_type_of(b, qn_lt(b, six, f.n)), QN_BOOL, "a comparison is a bool");
    tap_is_int((int64_t)bits_of(&f, qn_cast(b, QN_I8, qn_index(b, 300))), 44, "cast of a constant");
    tap_is_int((int64_t)bits_of(&f, qn_bitcast(b, QN_I32, qn_const_float(b, QN_F32, 1.0))),
               0x3f800000, "bitcast of a constant");
    tap_is_int((int64_t)bits_of(&f, qn_div(b, qn_index(b, INT64_MIN), qn_index(b, -1))), INT64_MIN,
               "MIN / -1");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);
}

/** Each row: an op of v (i32 u or f32 f) that must be v itself. */
static void test_identities(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    qn_val u = f.u, z = qn_const_int(b, QN_I32, 0), o = qn_const_int(b, QN_I32, 1);
    qn_val ones = qn_const_int(b, QN_I32, -1), f1 = qn_const_float(b, QN_F32, 1),
           f0 = qn_const_float(b, QN_F32, 0);
    qn_val yes = qn_const_int(b, QN_BOOL, 1), no = qn_const_int(b, QN_BOOL, 0);
    const struct {
        qn_val found, expected;
        const char *what;
    } rows[] = {
        {qn_add(b, u, z), u, "u + 0"},
        {qn_add(b, z, u), u, "0 + u"},
        {qn_sub(b, u, z), u, "u - 0"},
        {qn_mul(b, u, o), u, "u * 1"},
        {qn_mul(b, o, u), u, "1 * u"},
        {qn_div(b, u, o), u, "u / 1"},
        {qn_and(b, u, ones), u, "u and -1"},
        {qn_and(b, u, u), u, "u and u"},
        {qn_or(b, u, z), u, "u or 0"},
        {qn_xor(b, z, u), u, "0 xor u"},
        {qn_shl(b, u, z), u, "u shl 0"},
        {qn_shr(b, u, z), u, "u shr 0"},
        {qn_min(b, u, u), u, "min(u, u)"},
        {qn_mul(b, f.f, f1), f.f, "f * 1"},
        {qn_mul(b, f1, f.f), f.f, "1 * f"},
        {qn_div(b, f.f, f1), f.f, "f / 1"},
        {qn_sub(b, f.f, f0), f.f, "f - 0"},
        {qn_max(b, f.f, f.f), f.f, "max(f, f)"},
        {qn_neg(b, qn_neg(b, f.f)), f.f, "neg neg f"},
        {qn_not(b, qn_not(b, f.t)), f.t, "not not t"},
        {qn_not(b, qn_not(b, u)), u, "not not u"},
        {qn_abs(b, qn_abs(b, f.f)), qn_abs(b, f.f), "abs abs f"},
        {qn_select(b, yes, f.f, f.a), f.f, "select true"},
        {qn_select(b, no, f.f, f.a), f.a, "select false"},
        {qn_select(b, f.t, f.a, f.a), f.a, "select of equals"},
        {qn_cast(b, QN_I32, u), u, "cast to its type"},
        {qn_bitcast(b, QN_F32, f.f), f.f, "bitcast to its type"},
        {qn_mul(b, u, z), z, "u * 0"},
        {qn_sub(b, u, u), z, "u - u"},
        {qn_xor(b, u, u), z, "u xor u"},
        {qn_and(b, z, u), z, "0 and u"},
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

/* ------------------------------------------------------------------------------------------------
 * numbering */

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
    tap_ok(qn_load(b, f.x, 1, &f.i).id == second.id,
           "the other branch begins where the first one did");
    qn_end_if(b, 0, NULL, NULL);
    qn_val third = qn_load(b, f.x, 1, &f.i);
    tap_ok(third.id != second.id && in_first.id != second.id,
           "a store in a branch counts after the if");
    qn_for(b, f.zero, f.n, 1, 0, NULL, NULL);
    qn_val in_loop = qn_load(b, f.x, 1, &f.i);
    tap_ok(in_loop.id != third.id, "a loop may store later in its body");
    qn_atomic(b, QN_COMBINE_SUM, f.at, 1, &f.i, f.u, inert);
    tap_ok(qn_load(b, f.x, 1, &f.i).id != in_loop.id, "an atomic counts as a store");
    qn_end_for(b, 0, NULL, NULL);
    tap_ok(qn_load(b, f.x, 1, &f.i).id != third.id, "... also after the loop");
    tap_ok(qn_load(b, f.at, 1, &f.i).id != qn_load(b, f.at, 1, &f.i).id,
           "loads of atomic views are never shared");
    qn_val narrow = qn_load(b, f.x, 1, &f.u), wide = qn_cast(b, QN_I64, f.u);
    tap_is_int(qn__builder_args(b, narrow.id)[0], wide.id, "an i32 index is converted to i64");
    tap_is_int(qn_builder_status(b, NULL), QN_OK, "no error");
    qn_builder_release(b);
}

/* ------------------------------------------------------------------------------------------------
 * contraction */

/** Whether v is fma(x, y, z). */
static bool is_fma(const fixture *f, qn_val v, qn_val x, qn_val y, qn_val z)
{
    const uint32_t *a = qn__builder_args(f->b, v.id);
    return f->b->inst[v.id].op == QN_I_PURE + QN_OP_fma && a[0] == x.id && a[1] == y.id &&
           a[2] == z.id;
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

/* ------------------------------------------------------------------------------------------------
 * atomic views */

/** The last instruction: ATOMIC with this combination, the yield of an update, or -1 if it is
 * something else. */
static int last_combine(const fixture *f)
{
    const qn_inst *x = &f->b->inst[f->b->n_insts - 1];
    if (x->op == QN_I_YIELD)
        x = &f->b->inst[x->parent];
    return x->op == QN_I_ATOMIC ? x->sub : -1;
}

static void test_atomic_views(void)
{
    fixture f = make(0);
    qn_builder *b = f.b;
    static const struct {
        int op, combine;
    } rows[] = {
        {QN_OP_add, QN_COMBINE_SUM}, {QN_OP_sub, QN_COMBINE_SUM}, {QN_OP_min, QN_COMBINE_MIN},
        {QN_OP_max, QN_COMBINE_MAX}, {QN_OP_and, QN_COMBINE_AND}, {QN_OP_or, QN_COMBINE_OR},
        {QN_OP_xor, QN_COMBINE_XOR}, {QN_OP_mul, QN_UPDATE},      {QN_OP_shl, QN_UPDATE}};
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
    tap_is_int(last_combine(&f), QN_UPDATE, "... of a difference that is an update");
    qn_val twice = qn_load(b, f.at, 1, &f.i);
    qn_store(b, f.at, 1, &f.i, qn_add(b, qn_load(b, f.at, 1, &f.i), twice));
    tap_is_int(last_combine(&f), QN_UPDATE, "... and so is the element twice");
    qn_val product = qn_mul(b, qn_mul(b, f.u, f.u), qn_load(b, f.at, 1, &f.i));
    qn_store(b, f.at, 1, &f.i, product);
    const qn_inst *yield = &b->inst[b->n_insts - 1];
    tap_is_int(yield->parent + 3, b->n_insts - 1,
               "one op of a product of three is in the region, the other before");
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

/* ------------------------------------------------------------------------------------------------
 * limits */

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
    tap_contains(err.message, "qn_sqrt: kernel \"k\": more than 10000 instructions",
                 "... that says so");
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
    qn_store(f.b, f.at, 1, &f.i, qn_mul(f.b, qn_load(f.b, f.at, 1, &f.i), f.u));
    tap_is_int(last_combine(&f), QN_UPDATE, "... and an update inside");
    tap_is_int(qn_builder_status(f.b, NULL), QN_OK, "... counts as none");
    qn_if(f.b, f.t);
    qn_builder_status(f.b, &err);
    tap_contains(err.message, "qn_if: kernel \"k\": nesting deeper than 64", "nesting 65");
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
    tap_contains(err.message, "qn_if: kernel \"k\": more than 500 regions", "501 regions");
    qn_builder_release(f.b);

    f = make(0);
    qn_val many[QN_MAX_CARRIED + 1];
    for (int i = 0; i <= QN_MAX_CARRIED; i++)
        many[i] = f.a;
    qn_for(f.b, f.zero, f.n, 1, QN_MAX_CARRIED, many, many);
    qn_end_for(f.b, QN_MAX_CARRIED, many, many);
    tap_is_int(qn_builder_status(f.b, NULL), QN_OK,
               "32 carried values, in and out through one array");
    tap_ok(f.b->inst[many[31].id].op == QN_I_RESULT && f.b->inst[many[31].id].imm == 31,
           "... are results");
    qn_for(f.b, f.zero, f.n, 1, QN_MAX_CARRIED + 1, many, NULL);
    qn_builder_status(f.b, &err);
    tap_contains(err.message, "qn_for: kernel \"k\": 33 initial values, limit 32",
                 "33 carried values");
    qn_builder_release(f.b);
}

int main(void)
{
    test_constants();
    test_identities();
    test_numbering();
    test_contract();
    test_atomic_views();
    test_limits();
    return tap_done();
}
