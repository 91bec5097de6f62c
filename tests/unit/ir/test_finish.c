/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_finish.c: qn_finish and the kernels it makes: dead code, order of instructions, facts, the
 * text as a fixed point, collisions refused and accepted, order rules, lack of memory; and the
 * verifier on kernels that were damaged on purpose. Kernels come from text where that is shorter.
 */
#include "ir/ir.h"
#include "tests/tap.h"

#include <stdlib.h>

static qn_kernel *parse(const char *text, qn_error *err)
{
    qn_kernel *k = NULL;
    qn_kernel_parse(text, strlen(text), &k, err);
    return k;
}

/** Parses a text that must be valid; NULL and a failed test otherwise. */
static qn_kernel *must_parse(const char *text)
{
    qn_error err = {0};
    qn_kernel *k = parse(text, &err);
    if (!k)
        tap_ok(false, "%s", err.message);
    return k;
}

/** All kinds of instructions. */
static const char *const rich =
    "kernel \"rich\" contract {\n"
    "  view x: f32[1]; view y: f32[2]; view c: i32[1]; view o: f32[1]; scalar n: i64; scalar a: "
    "f32;\n"
    "  %n: i64 = param n; %a: f32 = param a; %z: i64 = const 0;\n"
    "  %t: i64 = sequential %z, %n;\n"
    "  %l: i64 = lower o, 0; %e: i64 = extent o, 0; %m: i64 = add %l, %e;\n"
    "  %i: i64 = parallel %l, %m; %r: i64 = reduction %z, %n;\n"
    "  %v: f32 = load x[%i];\n"
    "  %s: f32 = reduce sum over %r { %w: f32 = load y[%i, %r]; %p: f32 = mul %w, %v; yield %p; "
    "};\n"
    "  %g: bool = lt %s, %v;\n"
    "  %q: f32 = if %g { %s1: f32 = sqrt %s; yield %s1; } else { %s2: f32 = neg %v; yield %s2; };\n"
    "  %f: f32 = for %j: i64 = %z to %n step 2 (%acc: f32 = %q) {\n"
    "    %y: f32 = load y[%i, %j]; %acc2: f32 = add %acc, %y; yield %acc2; };\n"
    "  %h: f32, %h2: f32 = while max %n (%d: f32 = %f, %d2: f32 = %a) {\n"
    "    %k: bool = gt %d, %d2; yield %k; } do { %half: f32 = mul %d, %a; yield %half, %d2; };\n"
    "  %bits: i32 = bitcast %h; %wide: i64 = cast %bits; %idx: i64 = and %wide, %n;\n"
    "  %old: i32 = atomic max c[%idx], %bits;\n"
    "  %cmp: i32 = atomic compare_exchange c[%i], %old, %bits;\n"
    "  if %g { store o[%i], %h2; };\n"
    "  store o[%i], %h;\n"
    "}\n";

/* ------------------------------------------------------------------------------------------------
 * finishing */

static void test_dead_code(void)
{
    qn_kernel *k = must_parse(
        "kernel \"k\" {\n view x: f32[1]; scalar a: f32; scalar unused: f32;\n"
        " %z: i64 = const 0; %n: i64 = extent x, 0; %d: i64 = const 77;\n"
        " %i: i64 = parallel %z, %n; %r: i64 = reduction %z, %n;\n"
        " %v: f32 = load x[%i]; %dead: f32 = sqrt %v; %a: f32 = param a; %c: bool = lt %a, %v;\n"
        " %w: f32 = reduce sum over %r { %q: f32 = load x[%r]; yield %q; };\n"
        " %u: f32 = if %c { yield %v; } else { yield %dead; };\n"
        " %o: f32, %o2: f32 = for %j: i64 = %z to %n step 1 (%e: f32 = %a, %e2: f32 = %a) { yield "
        "%e, %e2; };\n"
        " if %c { store x[%i], %o2; } else { %s: f32 = sqrt %a; };\n"
        " while max %n () { yield %c; } do { };\n}");
    tap_is_str(
        k ? k->canonical : NULL,
        "kernel \"k\" {\n"
        "  view p0: f32[1];\n"
        "  scalar p1: f32;\n"
        "  scalar p2: f32;\n"
        "  %0: f32 = param p1;\n"
        "  %1: i64 = const 0;\n"
        "  %2: i64 = extent p0, 0;\n"
        "  %3: i64 = parallel %1, %2;\n"
        "  %4: i64 = reduction %1, %2;\n"
        "  %5: f32 = load p0[%3];\n"
        "  %6: bool = lt %0, %5;\n"
        "  %7: f32, %8: f32 = for %9: i64 = %1 to %2 step 1 (%10: f32 = %0, %11: f32 = %0) {\n"
        "    yield %10, %11;\n"
        "  };\n"
        "  if %6 {\n"
        "    store p0[%3], %8;\n"
        "  };\n"
        "}\n",
        "dead: ops, loads, a reduce, an if, a while, an else, a constant; a loop keeps all its "
        "results");
    qn_kernel_release(k);
}

/** parse(print(k)) prints the same, and has the same instructions. */
static void test_fixed_point(void)
{
    qn_kernel *k = must_parse(rich);
    size_t n = k ? qn_kernel_print(k, NULL, 0) : 0;
    char *text = malloc(n + 1);
    if (!k || !text)
        return;
    qn_kernel_print(k, text, n + 1);
    qn_kernel *again = must_parse(text);
    tap_is_str(again ? again->canonical : NULL, k->canonical, "the text is a fixed point");
    tap_ok(again && again->hash == k->hash && again->n_insts == k->n_insts &&
               again->body == k->body &&
               memcmp(again->inst, k->inst, k->n_insts * sizeof *k->inst) == 0,
           "... and so are the instructions");
    free(text);
    qn_kernel_release(again);
    qn_kernel_release(k);
}

static void test_facts(void)
{
    qn_kernel *k = must_parse(rich);
    if (!k)
        return;
    tap_ok(k->n_dims == 3 && k->body == k->dim[2] + 1, "the prologue ends with the last dimension");
    tap_is_int(k->n_accesses, 7, "seven accesses");
    bool is_ordered = true;
    for (uint32_t n = 0; n < k->n_accesses; n++)
        is_ordered &=
            k->access[n].site == n && (n == 0 || k->access[n].inst > k->access[n - 1].inst);
    tap_ok(is_ordered, "... in program order");
    const qn_kernel_parameter *p = k->param;
    tap_ok(p[0].is_read && !p[0].is_written && !p[3].is_read && p[3].is_written &&
               p[2].is_written && p[2].has_atomics && !p[3].has_atomics,
           "what parameters are used for");
    qn_param_info info;
    qn_error err = {0};
    tap_ok(qn_kernel_n_params(k) == 6 && !qn_kernel_param(k, 3, &info, sizeof info, &err) &&
               strcmp(info.name, "o") == 0 && info.rank == 1 && info.dtype == QN_F32 &&
               info.is_written && !info.is_read,
           "a parameter seen from outside");
    tap_ok(!qn_kernel_param(k, 5, &info, sizeof info, &err) && info.rank == -1,
           "a scalar has rank -1");
    tap_is_int(qn_kernel_param(k, 6, &info, sizeof info, &err), QN_ERR_ARGUMENT, "no parameter 6");
    tap_contains(err.message, "qn_kernel_param: kernel \"rich\" has 6 parameters",
                 "... says the message");
    tap_is_int(qn_kernel_param(NULL, 0, &info, sizeof info, &err), QN_ERR_ARGUMENT, "no kernel");
    tap_is_int(qn_kernel_param(k, 0, NULL, sizeof info, &err), QN_ERR_ARGUMENT, "no output");
    tap_is_str(qn_kernel_name(k), "rich", "name");
    tap_ok(qn_kernel_retain(k) == k && k->references == 2, "retain counts");
    qn_kernel_release(k);
    qn_kernel_release(k);
}

static void test_in_place(void)
{
    static const struct {
        const char *body;
        bool is_safe;
    } rows[] = {
        {"%v: f32 = load x[%i]; store y[%i], %v;", true},
        {"%v: f32 = load y[%i]; %w: f32 = load x[%i]; %s: f32 = add %v, %w; store y[%i], %s;",
         true},
        {"%j: i64 = add %i, %z1; %v: f32 = load x[%j]; store y[%i], %v;", false},
        {"%j: i64 = add %i, %z1; %v: i32 = load c[%j]; %w: f32 = cast %v; store y[%i], %w;", true},
        {"%j: i64 = add %i, %z1; %v: f32 = load x[%i]; store y[%j], %v;", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "kernel \"k\" { view x: f32[1]; view y: f32[1]; view c: i32[1];\n"
                 "%%z: i64 = const 0; %%z1: i64 = const 1; %%n: i64 = extent x, 0; %%i: i64 = "
                 "parallel %%z, %%n;\n"
                 "%s }",
                 rows[i].body);
        qn_kernel *k = must_parse(text);
        tap_ok(k && k->is_in_place_safe == rows[i].is_safe, "in place %d: %s", rows[i].is_safe,
               rows[i].body);
        qn_kernel_release(k);
    }
}

static void test_order_rules(void)
{
    static const struct {
        const char *flag, *dims, *order;
        uint64_t expected;
    } rows[] = {{"", "", "", QN_STRIPED},
                {"", "%i: i64 = parallel %z, %n;", "", QN_INDEXED},
                {"", "%i: i64 = sequential %z, %n;", "", QN_STRIPED},
                {"striped", "%i: i64 = parallel %z, %n;", "", QN_STRIPED},
                {"ordered", "", "", QN_ORDERED},
                {"indexed", "", "", QN_INDEXED},
                {"indexed", "", "ordered", QN_ORDERED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "kernel \"k\" %s { view x: f32[1]; view c: f32[0] atomic;\n"
                 "%%z: i64 = const 0; %%n: i64 = extent x, 0; %s %%r: i64 = reduction %%z, %%n;\n"
                 "%%s: f32 = reduce sum %s over %%r { %%v: f32 = load x[%%r]; yield %%v; }; store "
                 "c[], %%s; }",
                 rows[i].flag, rows[i].dims, rows[i].order);
        qn_kernel *k = must_parse(text);
        uint64_t found = 0;
        for (uint32_t n = 1; k && n < k->n_insts; n++)
            if (k->inst[n].op == QN_I_REDUCE)
                found = k->inst[n].imm;
        tap_ok(found == rows[i].expected, "order: flag \"%s\", \"%s\", named \"%s\"", rows[i].flag,
               rows[i].dims, rows[i].order);
        qn_kernel_release(k);
    }
}

/* ------------------------------------------------------------------------------------------------
 * collisions */

typedef struct collision {
    const char *dims, *body, *message; /* NULL: accepted */
} collision;

#define DIMS_I "%i: i64 = parallel %z, %n;"
#define DIMS_IJ "%i: i64 = parallel %z, %n; %j: i64 = parallel %z, %m;"
#define NEIGHBOUR "along parallel dimension 0 an iteration loads an element that another one stores"

static const collision collisions[] = {
    /* a store that does not depend on a parallel dimension */
    {DIMS_I, "store s[], %a;",
     "view \"s\": the indices of a store do not depend on parallel dimension 0"},
    {DIMS_I, "store x[%z], %a;",
     "view \"x\": the indices of a store do not depend on parallel dimension 0"},
    {DIMS_IJ, "store x[%i], %a;", "do not depend on parallel dimension 1"},
    {DIMS_IJ, "store m[%j, %j], %a;", "do not depend on parallel dimension 0"},
    {"%i: i64 = sequential %z, %n;", "store s[], %a;", NULL},
    {"%i: i64 = reduction %z, %n;", "store s[], %a;", NULL},
    {"%i: i64 = parallel %z, %one;", "store s[], %a;", NULL},
    {DIMS_I, "store t[], %a;", NULL}, /* atomic view */
    {DIMS_I, "%c: bool = lt %i, %one; if %c { store s[], %a; };", NULL},
    {DIMS_I, "%v: i64 = load ix[%i]; store x[%v], %a;", NULL},
    {DIMS_I, "%v: i64 = load ix[%z]; store x[%v], %a;", "do not depend on parallel dimension 0"},
    {DIMS_I, "%v: i64 = atomic sum ix[%z], %one; store x[%v], %a;", NULL},
    {DIMS_IJ, "%k: i64 = mul %i, %m; %l: i64 = add %k, %j; store x[%l], %a;", NULL},
    /* neighbours */
    {DIMS_I, "%k: i64 = add %i, %one; %v: f32 = load x[%k]; store x[%i], %v;", NEIGHBOUR},
    {DIMS_I, "%k: i64 = sub %i, %one; %v: f32 = load x[%k]; store x[%i], %v;", NEIGHBOUR},
    {DIMS_I, "%v: f32 = load x[%i]; store x[%i], %v;", NULL},
    {DIMS_I, "%k: i64 = add %i, %n; %v: f32 = load x[%k]; store x[%i], %v;", NULL},
    {DIMS_I, "%k: i64 = add %i, %n; %l: i64 = add %k, %one; %v: f32 = load x[%k]; store x[%l], %v;",
     NEIGHBOUR},
    {DIMS_I,
     "%k: i64 = mul %i, %two; %l: i64 = add %k, %one; %v: f32 = load x[%l]; store x[%k], %v;",
     NULL},
    {DIMS_I,
     "%k: i64 = mul %i, %two; %l: i64 = add %k, %two; %v: f32 = load x[%l]; store x[%k], %v;",
     NEIGHBOUR},
    {"%i: i64 = parallel %z, %two;",
     "%k: i64 = add %i, %two; %v: f32 = load x[%k]; store x[%i], %v;", NULL},
    {"%i: i64 = sequential %z, %n;",
     "%k: i64 = add %i, %one; %v: f32 = load x[%k]; store x[%i], %v;", NULL},
    {"%t: i64 = sequential %z, %n; %i: i64 = parallel %z, %m;",
     "%k: i64 = add %t, %one; %l: i64 = add %i, %one; %v: f32 = load m[%t, %l]; store m[%k, %i], "
     "%v;",
     NULL},
    {"%t: i64 = sequential %z, %n; %i: i64 = parallel %z, %m;",
     "%l: i64 = add %i, %one; %v: f32 = load m[%t, %l]; store m[%t, %i], %v;",
     "along parallel dimension 1 an iteration loads"},
    {DIMS_I, "%k: i64 = add %i, %one; %v: f32 = load m[%k, %i]; store m[%i, %i], %v;", NULL},
    {DIMS_I, "%v: f32 = load m[%i, %one]; store m[%i, %z], %v;", NULL},
    {DIMS_I, "%k: i64 = add %i, %one; %v: f32 = load m[%k, %one]; store m[%i, %z], %v;", NULL},
    {DIMS_I,
     "%k: i64 = add %i, %one; %c: bool = lt %k, %n; %v: f32 = if %c { %w: f32 = load x[%k]; yield "
     "%w; } "
     "else { yield %a; }; store x[%i], %v;",
     NULL},
    {DIMS_I, "%k: i64 = add %i, %one; store x[%k], %a; store x[%i], %a;",
     "along parallel dimension 0 an iteration stores an element"},
    {DIMS_IJ,
     "%k: i64 = add %i, %j; %l: i64 = add %k, %one; %v: f32 = load x[%l]; store x[%k], %v;", NULL},
    /* reductions over what is stored */
    {DIMS_I " %r: i64 = reduction %z, %n;",
     "%v: f32 = reduce sum over %r { %w: f32 = load x[%r]; yield %w; }; store x[%i], %v;",
     NEIGHBOUR},
    {DIMS_IJ " %r: i64 = reduction %z, %m;",
     "%v: f32 = reduce sum over %r { %w: f32 = load m[%i, %r]; yield %w; }; store m[%i, %j], %v;",
     "along parallel dimension 1 an iteration loads"},
    {DIMS_I " %r: i64 = reduction %z, %n;",
     "%v: f32 = reduce sum over %r { %w: f32 = load m[%i, %r]; yield %w; }; store m[%i, %z], %v;",
     NULL},
    {DIMS_I " %r: i64 = reduction %z, %n;",
     "%v: f32 = reduce sum over %r { %w: f32 = load m[%i, %r]; yield %w; }; store m[%i, %i], %v;",
     NULL},
    {DIMS_I " %r: i64 = reduction %n, %m;",
     "%v: f32 = reduce sum over %r { %w: f32 = load x[%r]; yield %w; }; store x[%i], %v;", NULL},
    {"%i: i64 = sequential %z, %n; %r: i64 = reduction %z, %n;",
     "%v: f32 = reduce sum over %r { %w: f32 = load x[%r]; yield %w; }; store x[%i], %v;", NULL},
    {DIMS_I " %r: i64 = reduction %z, %n;",
     "%v: f32 = reduce sum over %r { %w: f32 = load x[%i]; %k: f32 = cast %r; %p: f32 = mul %w, "
     "%k; yield %p; };"
     "store x[%i], %v;",
     NULL},
};

static void test_collisions(void)
{
    for (size_t i = 0; i < sizeof collisions / sizeof *collisions; i++) {
        const collision *c = &collisions[i];
        char text[1024];
        snprintf(
            text, sizeof text,
            "kernel \"k\" { view x: f32[1]; view m: f32[2]; view s: f32[0]; view t: f32[0] atomic; "
            "view ix: i64[1]; scalar a: f32; scalar n: i64; scalar m2: i64;\n"
            "%%a: f32 = param a; %%n: i64 = param n; %%m: i64 = param m2; %%z: i64 = const 0; "
            "%%one: i64 = const 1; %%two: i64 = const 2;\n%s\n%s }",
            c->dims, c->body);
        qn_error err = {0};
        qn_kernel *k = parse(text, &err);
        bool is_right =
            c->message ? !k && err.status == QN_ERR_COLLISION && strstr(err.message, c->message)
                       : !!k;
        if (!tap_ok(is_right, "%s: %s %s", c->message ? "refused" : "accepted", c->dims, c->body))
            tap_note("%s", k ? "accepted" : err.message);
        qn_kernel_release(k);
    }
}

/* ------------------------------------------------------------------------------------------------
 * memory */

/** The n-th allocation fails, for every n: no crash or leak, QN_ERR_MEMORY, nothing written. */
static void test_memory(void)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        int64_t n = 1;
        bool is_right = true;
        for (;; n++) {
            qn_error err = {0};
            qn_kernel *k = NULL;
            qn__fail_allocation(n, for_ever);
            qn_status status = qn_kernel_parse(rich, strlen(rich), &k, &err);
            qn__fail_allocation(0, false);
            if (status == QN_OK) {
                qn_kernel_release(k);
                break;
            }
            if (status != QN_ERR_MEMORY || k || err.status != QN_ERR_MEMORY) {
                tap_note("allocation %d: %s", (int)n, err.message);
                is_right = false;
            }
        }
        tap_ok(is_right && n > 10, "each of %d allocations fails%s", (int)n - 1,
               for_ever ? ", and all later" : "");
    }
}

/* ------------------------------------------------------------------------------------------------
 * the verifier */

/** A copy that can be damaged and freed. */
static qn_kernel *copy_kernel(const qn_kernel *k)
{
    qn_kernel *c = qn__alloc(sizeof *c);
    memcpy(c, k, sizeof *c);
    c->name = qn__strdup(k->name);
    c->canonical = qn__strdup(k->canonical);
    c->inst = qn__alloc(k->n_insts * sizeof *k->inst);
    memcpy(c->inst, k->inst, k->n_insts * sizeof *k->inst);
    c->operand = qn__alloc(k->n_operands * sizeof *k->operand);
    memcpy(c->operand, k->operand, k->n_operands * sizeof *k->operand);
    c->access = qn__alloc(k->n_accesses * sizeof *k->access);
    memcpy(c->access, k->access, k->n_accesses * sizeof *k->access);
    c->param = qn__alloc((size_t)k->n_params * sizeof *k->param);
    memcpy(c->param, k->param, (size_t)k->n_params * sizeof *k->param);
    for (int i = 0; i < k->n_params; i++)
        c->param[i].name = qn__strdup(k->param[i].name);
    return c;
}

/** The first instruction of an op. */
static qn_inst *find(qn_kernel *k, int op)
{
    for (uint32_t i = 1; i < k->n_insts; i++)
        if (k->inst[i].op == op)
            return &k->inst[i];
    return &k->inst[0];
}

static uint32_t *arg(qn_kernel *k, int op, int a)
{
    return &k->operand[find(k, op)->args + (uint32_t)a];
}

static void bad_op(qn_kernel *k) { find(k, QN_I_CAST)->op = 250; }
static void bad_core_op(qn_kernel *k)
{
    find(k, QN_I_CAST)->op = QN_I_PURE - 1;
}
static void bad_arity(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_sqrt)->n_args = 2; }
static void bad_args(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_sqrt)->args = 0xfffffff0u; }
static void bad_type(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_sqrt)->type = QN_F64; }
static void bad_compare(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_lt)->type = QN_F32; }
static void bad_operand(qn_kernel *k) { *arg(k, QN_I_PURE + QN_OP_sqrt, 0) = 4000000000u; }
static void later_operand(qn_kernel *k) { *arg(k, QN_I_PURE + QN_OP_sqrt, 0) = k->n_insts - 1; }
static void zero_operand(qn_kernel *k) { *arg(k, QN_I_STORE, 0) = 0; }
static void void_operand(qn_kernel *k)
{
    *arg(k, QN_I_BITCAST, 0) = (uint32_t)(find(k, QN_I_IF) - k->inst);
}
static void region_operand(qn_kernel *k)
{
    *arg(k, QN_I_BITCAST, 0) = (uint32_t)(find(k, QN_I_PURE + QN_OP_sqrt) - k->inst);
}
static void own_operand(qn_kernel *k)
{
    *arg(k, QN_I_YIELD, 0) =
        (uint32_t)(find(k, QN_I_REDUCE) - k->inst); /* the first yield is the reduce's */
}
static void bad_region(qn_kernel *k) { find(k, QN_I_IF)->region[2] = 4000000000u; }
static void bad_second(qn_kernel *k)
{
    find(k, QN_I_WHILE)->region[1] = find(k, QN_I_WHILE)->region[2];
}
static void empty_region(qn_kernel *k)
{
    find(k, QN_I_FOR)->region[1] = find(k, QN_I_FOR)->region[0];
}
static void plain_region(qn_kernel *k) { find(k, QN_I_LOAD)->region[2]++; }
static void bad_parent(qn_kernel *k) { find(k, QN_I_STORE)->parent = 0; }
static void bad_store_type(qn_kernel *k) { find(k, QN_I_STORE)->type = QN_F32; }
static void bad_view(qn_kernel *k) { find(k, QN_I_LOAD)->imm = 6; }
static void scalar_view(qn_kernel *k) { find(k, QN_I_LOAD)->imm = 4; }
static void bad_param(qn_kernel *k) { find(k, QN_I_PARAM)->imm = UINT64_MAX; }
static void bad_extent(qn_kernel *k) { find(k, QN_I_EXTENT)->sub = 1; }
static void bad_combine(qn_kernel *k) { find(k, QN_I_ATOMIC)->sub = QN_COMBINE_PROD; }
static void bad_reduce(qn_kernel *k) { find(k, QN_I_REDUCE)->sub = QN_COMBINE_AND; }
static void bad_order(qn_kernel *k) { find(k, QN_I_REDUCE)->imm = 0; }
static void bad_step(qn_kernel *k) { find(k, QN_I_FOR)->imm = 0; }
static void bad_carried(qn_kernel *k) { find(k, QN_I_CARRIED)->imm = 1; }
static void bad_carried_type(qn_kernel *k) { find(k, QN_I_CARRIED)->type = QN_I64; }
static void bad_yield(qn_kernel *k) { find(k, QN_I_YIELD)->n_args = 0; }
static void no_yield(qn_kernel *k) { find(k, QN_I_YIELD)->op = QN_I_CONST; }
static void bad_result(qn_kernel *k) { find(k, QN_I_RESULT)->imm = 7; }
static void result_of_other(qn_kernel *k) { *arg(k, QN_I_RESULT, 0) = 1; }
static void no_result(qn_kernel *k) { find(k, QN_I_RESULT)->op = QN_I_CARRIED; }
static void stray_imm(qn_kernel *k) { find(k, QN_I_CAST)->imm = 1; }
static void bad_const(qn_kernel *k)
{
    find(k, QN_I_CONST)->type = QN_BOOL, find(k, QN_I_CONST)->imm = 2;
}
static void bad_dim(qn_kernel *k) { k->dim[1] = k->dim[0]; }
static void dim_order(qn_kernel *k)
{
    find(k, QN_I_DIM)->sub = QN_DIM_PARALLEL, k->inst[k->dim[1]].sub = 2;
}
static void dim_bound(qn_kernel *k) { k->operand[k->inst[k->dim[1]].args] = k->dim[0]; }
static void dim_count(qn_kernel *k) { k->n_dims = 2; }
static void dim_range(qn_kernel *k) { k->n_dims = -1; }
static void short_body(qn_kernel *k) { k->body--; }
static void long_body(qn_kernel *k) { k->body++; }
static void far_body(qn_kernel *k) { k->body = 4000000000u; }
static void no_access(qn_kernel *k) { k->n_accesses--; }
static void other_access(qn_kernel *k) { k->access[1].inst = 4000000000u; }
static void bad_site(qn_kernel *k) { k->access[1].site = 0; }
static void unread(qn_kernel *k) { k->param[0].is_read = false; }
static void overwritten(qn_kernel *k) { k->param[0].is_written = true; }
static void read_only(qn_kernel *k) { k->param[3].traits = QN_READ_ONLY; }
static void bad_rank(qn_kernel *k) { k->param[0].rank = 17; }
static void bad_dtype(qn_kernel *k) { k->param[0].dtype = 99; }
static void bad_traits(qn_kernel *k) { k->param[0].traits = 1u << 31; }
static void bad_flags(qn_kernel *k) { k->flags = 1u << 31; }
static void no_insts(qn_kernel *k) { k->n_insts = 0; }
static void fewer_insts(qn_kernel *k) { k->n_insts -= 2; }
static void divide_by_zero(qn_kernel *k)
{
    qn_inst *x = find(k, QN_I_PURE + QN_OP_and);
    x->op = QN_I_PURE + QN_OP_div;
    k->operand[x->args + 1] = (uint32_t)(find(k, QN_I_CONST) - k->inst);
}

static const char updating[] = "kernel \"updating\" { view x: i32[1] atomic; scalar n: i64; %n: "
                               "i64 = param n; %z: i64 = const 0;"
                               " %i: i64 = parallel %z, %n; %k: i32 = const 3; %o: i32 = load "
                               "x[%i]; %m: i32 = mul %o, %k; %s: i32 = sub %k, %m;"
                               " store x[%i], %s; }";
static void no_update(qn_kernel *k)
{
    find(k, QN_I_ATOMIC)->region[1] = find(k, QN_I_ATOMIC)->region[0];
}
static void two_updates(qn_kernel *k) { find(k, QN_I_ATOMIC)->region[1]--; }
static void impure_update(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_sub)->op = QN_I_LOAD; }
static void plain_update(qn_kernel *k) { k->param[0].traits = 0; }
static void no_old_value(qn_kernel *k) { find(k, QN_I_CARRIED)->op = QN_I_CONST; }
static void second_old_value(qn_kernel *k) { find(k, QN_I_CARRIED)->imm = 1; }
static void stored_type(qn_kernel *k) { find(k, QN_I_PURE + QN_OP_sub)->type = QN_U32; }
static void stored_twice(qn_kernel *k) { find(k, QN_I_YIELD)->n_args = 0; }
static void update_operand(qn_kernel *k) { find(k, QN_I_ATOMIC)->n_args = 0; }

typedef struct damage {
    void (*damage)(qn_kernel *k);
    const char *part;
} damage;

static const damage update_damages[] = {
    {no_update, "do not nest"},
    {two_updates, "(atomic): wrong number of regions"},
    {impure_update, "(load): stands in an update"},
    {plain_update, "a view that is not atomic"},
    {no_old_value, "carried values are missing"},
    {second_old_value, "no carried value"},
    {stored_type, "(sub): wrong result type"},
    {stored_twice, "wrong number or types"},
    {update_operand, "(atomic): wrong indices"},
    {bad_combine, "has no regions"},
};

static const damage damages[] = {
    {bad_op, "no such op"},
    {bad_core_op, "no such op"},
    {bad_arity, "(sqrt)"},
    {bad_args, "outside the table"},
    {bad_type, "(sqrt): wrong result type"},
    {bad_compare, "(lt): wrong result type"},
    {bad_operand, "not defined before"},
    {later_operand, "not defined before"},
    {zero_operand, "not defined before"},
    {void_operand, "no value"},
    {region_operand, "outside its region"},
    {own_operand, "outside its region"},
    {bad_region, "do not nest"},
    {bad_second, "(while): wrong number of regions"},
    {empty_region, "do not nest"},
    {plain_region, "has no regions"},
    {bad_parent, "wrong parent"},
    {bad_store_type, "(store): wrong result type"},
    {bad_view, "names no view"},
    {scalar_view, "names no view"},
    {bad_param, "names no scalar"},
    {bad_extent, "names no dimension"},
    {bad_combine, "no atomic combination"},
    {bad_reduce, "type not taken"},
    {bad_order, "no order rule"},
    {bad_step, "step is not positive"},
    {bad_carried, "no carried value"},
    {bad_carried_type, "no carried value"},
    {bad_yield, "wrong number or types"},
    {no_yield, "without yield"},
    {bad_result, "no result"},
    {result_of_other, "no result"},
    {no_result, "results are missing"},
    {stray_imm, "imm is not 0"},
    {bad_const, "not canonical"},
    {bad_dim, "table of dimensions"},
    {dim_order, "sequential after parallel"},
    {dim_bound, "depends on an index"},
    {dim_count, "table of dimensions"},
    {dim_range, "-1 dimensions"},
    {short_body, "stands after the prologue"},
    {long_body, "stands in the prologue"},
    {far_body, "instructions"},
    {no_access, "table of accesses"},
    {other_access, "table of accesses"},
    {bad_site, "table of accesses"},
    {unread, "does not say so"},
    {overwritten, "parameter 0: its uses"},
    {read_only, "read-only"},
    {bad_rank, "parameter 0"},
    {bad_dtype, "parameter 0"},
    {bad_traits, "parameter 0"},
    {bad_flags, "flags"},
    {no_insts, "0 instructions"},
    {fewer_insts, ""},
    {divide_by_zero, "constant 0"},
};

static void test_damage(const char *text, const damage *list, size_t n)
{
    qn_kernel *k = must_parse(text);
    if (!k)
        return;
    tap_is_int(qn__verify(k, NULL), QN_OK, "a kernel that is well formed");
    for (size_t i = 0; i < n; i++) {
        qn_kernel *c = copy_kernel(k);
        int32_t n_params = c->n_params;
        qn_error err = {0};
        list[i].damage(c);
        bool is_right = qn__verify(c, &err) == QN_ERR_VERIFY && strstr(err.message, list[i].part);
        if (!tap_ok(is_right, "damage %d: %s", (int)i, list[i].part))
            tap_note("%s", err.status ? err.message : "accepted");
        c->n_params = n_params;
        qn__kernel_free(c);
    }
    qn_kernel_release(k);
}

/** Writes awkward values into every byte of the instructions and operands; what is accepted must
 * print. */
static void test_random_damage(const char *source)
{
    static const uint8_t values[] = {0, 1, 2, 3, 0x7f, 0x80, 0xff};
    qn_kernel *k = must_parse(source), *c = k ? copy_kernel(k) : NULL;
    int n_refused = 0, n_accepted = 0;
    if (!c)
        return;
    size_t n_inst_bytes = c->n_insts * sizeof *c->inst,
           n_bytes = n_inst_bytes + c->n_operands * sizeof *c->operand;
    for (size_t at = 0; at < n_bytes; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            uint8_t *byte = at < n_inst_bytes ? (uint8_t *)c->inst + at
                                              : (uint8_t *)c->operand + (at - n_inst_bytes);
            uint8_t old = *byte;
            if (old == values[v])
                continue;
            *byte = values[v];
            if (qn__verify(c, NULL) == QN_OK) {
                qn_text text = {0};
                qn__print(c, true, &text);
                qn__text_release(&text);
                n_accepted++;
            } else {
                n_refused++;
            }
            *byte = old;
        }
    tap_ok(n_refused > n_accepted, "a changed byte: %d refused, %d still well formed", n_refused,
           n_accepted);
    qn__kernel_free(c);
    qn_kernel_release(k);
}

int main(void)
{
    test_dead_code();
    test_fixed_point();
    test_facts();
    test_in_place();
    test_order_rules();
    test_collisions();
    test_memory();
    test_damage(rich, damages, sizeof damages / sizeof *damages);
    test_damage(updating, update_damages, sizeof update_damages / sizeof *update_damages);
    test_random_damage(rich);
    test_random_damage(updating);
    return tap_done();
}
