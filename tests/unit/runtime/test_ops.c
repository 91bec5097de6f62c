/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ops.c: every op of the table and every cast, over awkward values of every dtype, against the
 * independent meanings of tests/unit/meaning.c. First the evaluator alone, then small kernels of
 * each op over arrays, on the interpreter, on x86 and on a GPU, or on the stub driver, which runs
 * PTX.
 */
#include "ir/ir.h"
#include "tests/device.h"
#include "tests/tap.h"
#include "tests/unit/meaning.h"
#include "tests/dtypes.h"

#include <stdlib.h>

static bool keeps_bits(int op)
{
    return op == QN_OP_neg || op == QN_OP_abs || op == QN_OP_copysign || op == QN_OP_select;
}

static bool takes(int op, int type)
{
    return (qn__op_info[op].classes & qn__dtype_class(type)) != 0;
}

static int result_type(int op, int type)
{
    return qn__op_info[op].rule == QN_RULE_COMPARE ? QN_BOOL : type;
}

/* ---------------------------------------------------------------- the evaluator */

/** One op on all combinations of the given values. */
static void test_values(int op, int type, int n, const uint64_t *value)
{
    int arity = qn__op_info[op].arity, failures = 0;
    bool is_select = qn__op_info[op].rule == QN_RULE_SELECT;
    int na = is_select ? 2 : n, nb = arity > 1 ? n : 1, nc = arity > 2 ? n : 1;
    for (int i = 0; i < na; i++)
        for (int j = 0; j < nb; j++)
            for (int l = 0; l < nc; l++) {
                uint64_t a = is_select ? (uint64_t)i : value[i];
                uint64_t b = arity > 1 ? value[j] : 0, c = arity > 2 ? value[l] : 0;
                uint64_t found = qn__eval_op(op, type, a, b, c),
                         expected = meaning_op(op, type, a, b, c);
                if (meaning_agrees(result_type(op, type), !keeps_bits(op), found, expected))
                    continue;
                if (failures++ < 3)
                    tap_note("%s %s(%#" PRIx64 ", %#" PRIx64 ", %#" PRIx64 ") = %#" PRIx64
                             ", expected %#" PRIx64,
                             qn__op_info[op].name, qn_dtype_name(type), a, b, c, found, expected);
            }
    tap_ok(failures == 0, "eval %s %s", qn__op_info[op].name, qn_dtype_name(type));
}

static void test_evaluator(void)
{
    uint64_t value[256];
    for (int op = 1; op < QN_N_TABLE_OPS; op++)
        FOR_NUMBERS(type) {
            if (!takes(op, type) || (meaning_is_half(type) && op != QN_OP_select))
                continue; /* other ops on these are expanded when they are built */
            int n = meaning_awkward(type, value);
            if (meaning_width(type) == 8 && qn__op_info[op].arity < 3) /* all pairs of bytes */
                for (n = 0; n < 256; n++)
                    value[n] = meaning_wrap(type, n);
            if (qn__op_info[op].arity == 3 && n > 40)
                n = 40;
            test_values(op, type, n, value);
        }
}

static void test_casts(void)
{
    uint64_t value[MEANING_VALUES];
    FOR_NUMBERS(from) {
        int n = meaning_awkward(from, value);
        FOR_NUMBERS(to) {
            if (to == QN_BOOL && meaning_is_float(from))
                continue; /* refused by the builder */
            int failures = 0;
            for (int i = 0; i < n; i++) {
                uint64_t found = qn__eval_cast(to, from, value[i]);
                uint64_t expected = meaning_cast(to, from, value[i]);
                if (!meaning_agrees(to, true, found, expected) && failures++ < 3)
                    tap_note("%#" PRIx64 " -> %#" PRIx64 ", expected %#" PRIx64, value[i], found,
                             expected);
            }
            tap_ok(failures == 0, "cast %s to %s", qn_dtype_name(from), qn_dtype_name(to));
        }
    }
}

static void test_bitcasts(void)
{
    uint64_t value[MEANING_VALUES];
    int failures = 0;
    FOR_NUMBERS(from) {
        int n = meaning_awkward(from, value);
        FOR_NUMBERS(to) {
            if (qn_dtype_bytes(to) != qn_dtype_bytes(from))
                continue;
            for (int i = 0; i < n; i++) {
                uint64_t memory = 0; /* stored as one type, loaded as the other */
                qn__store_element(from, &memory, value[i]);
                failures += qn__load_element(to, &memory) != qn__eval_bitcast(to, from, value[i]);
            }
        }
    }
    tap_is_int(failures, 0, "bitcast is store and load");
}

/** Identities leave values alone; empty results are the documented numbers. */
static void test_reductions(void)
{
    uint64_t value[MEANING_VALUES];
    int failures = 0;
    FOR_NUMBERS(type) {
        if (meaning_is_half(type))
            continue; /* reduced in f32 */
        int n = meaning_awkward(type, value);
        for (int combine = 0; combine < QN_COMBINE_EXCHANGE; combine++) {
            bool is_bitwise = combine >= QN_COMBINE_AND;
            if (is_bitwise ? meaning_is_float(type) : type == QN_BOOL)
                continue;
            uint64_t identity = qn__reduce_identity(combine, type);
            for (int i = 0; i < n; i++)
                failures += !meaning_agrees(
                    type, true, qn__eval_combine(combine, type, identity, value[i]), value[i]);
        }
    }
    tap_is_int(failures, 0, "combining with the identity keeps every value, -0 and infinities too");
    static const struct {
        int combine, type;
        uint64_t bits;
    } empty[] = {
        {QN_COMBINE_SUM, QN_F32, 0},
        {QN_COMBINE_SUM, QN_I8, 0},
        {QN_COMBINE_PROD, QN_F64, 0x3ff0000000000000},
        {QN_COMBINE_PROD, QN_U16, 1},
        {QN_COMBINE_MAX, QN_F32, 0xff7fffff},
        {QN_COMBINE_MIN, QN_F64, 0x7fefffffffffffff},
        {QN_COMBINE_MAX, QN_I32, (uint64_t)INT32_MIN},
        {QN_COMBINE_MIN, QN_I32, INT32_MAX},
        {QN_COMBINE_MIN, QN_U8, 255},
        {QN_COMBINE_MAX, QN_U64, 0},
        {QN_COMBINE_AND, QN_I16, UINT64_MAX},
        {QN_COMBINE_AND, QN_U16, 0xffff},
        {QN_COMBINE_AND, QN_BOOL, 1},
        {QN_COMBINE_OR, QN_BOOL, 0},
        {QN_COMBINE_XOR, QN_I64, 0},
        {QN_COMBINE_MAX, QN_I64, (uint64_t)INT64_MIN},
    };
    failures = 0;
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        failures += qn__reduce_empty(empty[i].combine, empty[i].type) != empty[i].bits;
    tap_is_int(failures, 0, "results of empty reductions");
}

/* ---------------------------------------------------------------- the engines */

static qn_context *context;
static const char *no_x86; /* why x86 cannot be tested, or NULL */
static device gpu;         /* has a context if there is one */

/** Storage for up to three operands and a result of n elements each. */
typedef struct arrays {
    int64_t n;
    int type[4];
    uint8_t *data[4];
    qn_view view[4];
} arrays;

static bool arrays_make(arrays *a, int64_t n)
{
    a->n = n;
    for (int i = 0; i < 4; i++) {
        a->data[i] = a->type[i] ? calloc((size_t)n, 8) : NULL;
        qn_layout l;
        if (a->type[i] && (!a->data[i] || qn_layout_right(1, &n, &l, NULL) ||
                           qn_view_wrap("v", a->data[i], a->type[i], &l, 0, &a->view[i], NULL)))
            return false;
    }
    return true;
}

static void arrays_free(arrays *a)
{
    for (int i = 0; i < 4; i++)
        free(a->data[i]);
}

static void set_element(const arrays *a, int which, int64_t i, uint64_t bits)
{
    int64_t bytes = qn_dtype_bytes(a->type[which]);
    memcpy(a->data[which] + i * bytes, &bits, (size_t)bytes);
}

static uint64_t get_element(const arrays *a, int which, int64_t i)
{
    int64_t bytes = qn_dtype_bytes(a->type[which]);
    uint64_t bits = 0;
    memcpy(&bits, a->data[which] + i * bytes, (size_t)bytes);
    if (meaning_is_signed(a->type[which]) && bytes < 8)
        bits = meaning_wrap(a->type[which], (wide)bits);
    return bits;
}

/** out[i] = op(v0[i], ...), or a cast if op is 0. */
static qn_kernel *make_kernel(const arrays *a, int op, int arity, qn_error *err)
{
    qn_builder *b = qn_builder_new("op", 0);
    static const char *const names[] = {"a", "b", "c"};
    qn_param param[4] = {{0}};
    for (int i = 0; i < arity; i++)
        param[i] = qn_view_param(b, names[i], a->type[i], 1, 0);
    param[3] = qn_view_param(b, "out", a->type[3], 1, 0);
    qn_val i = qn_parallel_over(b, param[3], 0), v[3], result;
    for (int j = 0; j < arity; j++)
        v[j] = qn_load(b, param[j], 1, &i);
    result = op ? qn_op(b, op, arity, v) : qn_cast(b, a->type[3], v[0]);
    qn_store(b, param[3], 1, &i, result);
    qn_kernel *k = NULL;
    qn_finish(b, &k, err);
    qn_builder_release(b);
    return k;
}

static int count_failures(const arrays *a, int op, const uint64_t *expected)
{
    int failures = 0;
    for (int64_t i = 0; i < a->n; i++) {
        uint64_t found = get_element(a, 3, i);
        if (!meaning_agrees(a->type[3], !keeps_bits(op), found, expected[i]) && failures++ < 3)
            tap_note("element %" PRId64 ": operand %#" PRIx64 ": found %#" PRIx64
                     ", expected %#" PRIx64,
                     i, get_element(a, 0, i), found, expected[i]);
    }
    return failures;
}

/** Runs an op on copies of the arrays on the GPU. */
static void run_gpu(arrays *a, const qn_kernel *k, int op, int arity, const qn_arg *args,
                    const uint64_t *expected, const char *what)
{
    const qn_options o = {.bytes = sizeof o};
    device_memory memory[4];
    qn_error err = {0};
    int n = 0;
    memset(a->data[3], 0x55, (size_t)(a->n * qn_dtype_bytes(a->type[3])));
    for (int i = 0; i < 4; i++)
        if (a->data[i])
            memory[n++] = (device_memory){a->data[i], (size_t)a->n * 8};
    qn_status status = device_launch(&gpu, k, arity + 1, args, n, memory, &o, &err);
    tap_ok(status == QN_OK && count_failures(a, op, expected) == 0, "%s on cuda", what);
    if (status != QN_OK)
        tap_note("%s", err.message);
}

/** Runs an op over filled arrays on all engines. */
static void run_engines(arrays *a, int op, int arity, const uint64_t *expected, const char *what)
{
    qn_error err = {0};
    qn_kernel *k = make_kernel(a, op, arity, &err);
    if (!k) {
        tap_ok(false, "kernel of %s: %s", what, err.message);
        return;
    }
    qn_arg args[4];
    for (int i = 0; i < arity; i++)
        args[i] = qn_arg_view(&a->view[i]);
    args[arity] = qn_arg_view(&a->view[3]);
    for (int engine = QN_ENGINE_INTERP; engine <= QN_ENGINE_NATIVE; engine++) {
        if (engine == QN_ENGINE_NATIVE && no_x86)
            continue;
        memset(a->data[3], 0x55, (size_t)(a->n * qn_dtype_bytes(a->type[3])));
        qn_options o = {.bytes = sizeof o, .engine = engine};
        qn_status status = qn_launch(context, k, arity + 1, args, &o, &err);
        tap_ok(status == QN_OK && count_failures(a, op, expected) == 0, "%s on %s", what,
               engine == QN_ENGINE_NATIVE ? "x86" : "interp");
        if (status != QN_OK)
            tap_note("%s", err.message);
    }
    if (gpu.context)
        run_gpu(a, k, op, arity, args, expected, what);
    qn_kernel_release(k);
}

static void test_op_kernels(int op, int type)
{
    uint64_t value[MEANING_VALUES];
    int arity = qn__op_info[op].arity, n = meaning_awkward(type, value);
    bool is_select = qn__op_info[op].rule == QN_RULE_SELECT;
    if (arity == 3 && n > 24)
        n = 24;
    int na = is_select ? 2 : n, nb = arity > 1 ? n : 1, nc = arity > 2 ? n : 1;
    arrays a = {.type = {is_select ? QN_BOOL : type, arity > 1 ? type : 0, arity > 2 ? type : 0,
                         result_type(op, type)}};
    uint64_t *expected = calloc((size_t)(na * nb * nc), sizeof *expected);
    if (!expected || !arrays_make(&a, na * nb * nc)) {
        tap_ok(false, "arrays");
        return;
    }
    for (int i = 0; i < a.n; i++) {
        uint64_t x = is_select ? (uint64_t)(i % 2) : value[i % na], y = 0, z = 0;
        set_element(&a, 0, i, x);
        if (arity > 1)
            set_element(&a, 1, i, y = value[i / na % nb]);
        if (arity > 2)
            set_element(&a, 2, i, z = value[i / na / nb]);
        expected[i] = meaning_op(op, type, x, y, z);
    }
    char what[64];
    snprintf(what, sizeof what, "kernel %s %s", qn__op_info[op].name, qn_dtype_name(type));
    run_engines(&a, op, arity, expected, what);
    arrays_free(&a);
    free(expected);
}

static void test_cast_kernels(int from, int to)
{
    uint64_t value[MEANING_VALUES], expected[MEANING_VALUES];
    arrays a = {.type = {from, 0, 0, to}};
    if (!arrays_make(&a, meaning_awkward(from, value))) {
        tap_ok(false, "arrays");
        return;
    }
    for (int i = 0; i < a.n; i++) {
        set_element(&a, 0, i, value[i]);
        expected[i] = meaning_cast(to, from, value[i]);
    }
    char what[64];
    snprintf(what, sizeof what, "kernel cast %s to %s", qn_dtype_name(from), qn_dtype_name(to));
    run_engines(&a, 0, 1, expected, what);
    arrays_free(&a);
}

/** Sets no_x86 if the code generator or the processor is missing. */
static void look_for_x86(void)
{
    static char reason[QN_MESSAGE_BYTES + 16];
    arrays a = {.type = {QN_F32, 0, 0, QN_F32}};
    qn_error err = {0};
    qn_kernel *k = arrays_make(&a, 1) ? make_kernel(&a, QN_OP_neg, 1, &err) : NULL;
    qn_arg args[2] = {qn_arg_view(&a.view[0]), qn_arg_view(&a.view[3])};
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE};
    qn_status status = k ? qn_launch(context, k, 2, args, &o, &err) : QN_ERR_INTERNAL;
    if (status == QN_ERR_PROVIDER || status == QN_ERR_TARGET || status == QN_ERR_NOT_AVAILABLE) {
        snprintf(reason, sizeof reason, "no x86: %s", err.message);
        no_x86 = reason;
        tap_skip(reason);
    }
    qn_kernel_release(k);
    arrays_free(&a);
}

static void test_engines(void)
{
    qn_error err = {0};
    if (!tap_ok(qn_context_new(NULL, &context, &err) == QN_OK, "context"))
        return;
    look_for_x86();
    if (!no_x86 && (!device_open(&gpu, true) || gpu.no_gpu[0]))
        tap_skip(gpu.no_gpu); /* the stub driver runs PTX, if it is there */
    for (int op = 1; op < QN_N_TABLE_OPS; op++)
        FOR_NUMBERS(type)
            if (takes(op, type))
                test_op_kernels(op, type);
    FOR_NUMBERS(from)
        FOR_NUMBERS(to)
            if (to != from && !(to == QN_BOOL && meaning_is_float(from)))
                test_cast_kernels(from, to);
    device_close(&gpu);
    qn_context_release(context);
}

int main(void)
{
    test_evaluator();
    test_casts();
    test_bitcasts();
    test_reductions();
    test_engines();
    return tap_done();
}
