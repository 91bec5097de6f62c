/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_interp.c: the domain, the range proofs, the interpreter's order of reductions and its
 * faults, seen from inside. Reductions are compared with the order rules written down naively, on
 * whole arrays; range proofs with brute force over random index expressions.
 */
#include "ir/ir.h"
#include "tests/tap.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- running a kernel text */

enum { MAX_ARGS = 4 };

/** A kernel with arguments, domain and what came out of a run. */
typedef struct run {
    qn_kernel *k;
    qn_view view[MAX_ARGS];
    qn_arg arg[MAX_ARGS];
    qn_arg_value value[MAX_ARGS];
    int n;
    qn_domain domain;
    qn_fault fault;
    uint8_t proved[64];
    qn_error err;
} run;

static void parse(run *r, const char *text)
{
    memset(r, 0, sizeof *r);
    if (qn_kernel_parse(text, strlen(text), &r->k, &r->err) != QN_OK)
        printf("Bail out! %s\n", r->err.message), exit(1);
}

static void add_view(run *r, void *data, int dtype, int rank, const int64_t *extents,
                     const int64_t *lower)
{
    qn_view *v = &r->view[r->n];
    *v = (qn_view){.data = data, .dtype = dtype};
    qn_layout_right(rank, extents, &v->layout, NULL);
    for (int d = 0; lower && d < rank; d++)
        v->layout.dim[d].lower = lower[d];
    r->arg[r->n].view = v;
    r->value[r->n++].layout = &v->layout;
}

static void add_scalar(run *r, int64_t value)
{
    r->arg[r->n] = (qn_arg){.dtype = QN_I64, .bits = (uint64_t)value};
    r->value[r->n++].bits = (uint64_t)value;
}

/** Domain, proofs, and a run with the given policy. */
static qn_status go(run *r, int checks)
{
    qn__fault_clear(&r->fault, &qn__never);
    qn_status status = qn__domain(r->k, r->value, true, &r->domain, &r->err);
    if (status != QN_OK)
        return status;
    if (!qn__prove_bounds(r->k, r->value, &r->domain, r->proved))
        return QN_ERR_MEMORY;
    return qn__interpret(r->k, r->n, r->arg, &r->domain, checks, &r->fault, &r->err);
}

/* ---------------------------------------------------------------- domain */

static const char RANGE[] =
    "kernel \"range\" { view y: i8[2]; scalar a: i64; scalar b: i64; scalar c: i64;"
    " %a: i64 = param a; %b: i64 = param b; %c: i64 = param c;"
    " %i: i64 = parallel %a, %b; %j: i64 = parallel %a, %b;"
    " %k: i64 = reduction %a, %c;"
    " %s: i64 = reduce sum over %k { yield %k; };"
    " %v: i8 = cast %s; store y[%i, %j], %v; }";

static void check_domain(int64_t a, int64_t b, int64_t c, int status, bool is_empty,
                         const char *what)
{
    run r;
    int8_t y = 0;
    parse(&r, RANGE);
    add_view(&r, &y, QN_I8, 2, (int64_t[]){1, 1}, NULL);
    add_scalar(&r, a);
    add_scalar(&r, b);
    add_scalar(&r, c);
    int found = (int)qn__domain(r.k, r.value, true, &r.domain, &r.err);
    bool passed =
        tap_ok(found == status && (found || r.domain.is_empty == is_empty), "domain: %s", what);
    if (!passed)
        tap_note("status %s, empty %d: %s", qn_status_name(found), r.domain.is_empty,
                 r.err.message);
    if (found == QN_OK)
        tap_is_int(r.domain.scalars[0], 14, "the scalars behind a, b and c take part");
    qn_kernel_release(r.k);
}

static void test_domain(void)
{
    check_domain(0, 3, 4, QN_OK, false, "3 x 3, reduction 4");
    check_domain(0, 0, 4, QN_OK, true, "empty parallel dimensions");
    check_domain(2, 3, 2, QN_OK, false, "an empty reduction is not an empty domain");
    check_domain(3, 2, 4, QN_ERR_RANGE, false, "reversed");
    check_domain(0, 2, -1, QN_ERR_RANGE, false, "reversed reduction");
    check_domain(0, INT64_C(1) << 32, 1, QN_ERR_OVERFLOW, false, "2^64 iterations");
    check_domain(0, INT64_C(1) << 31, 4, QN_ERR_OVERFLOW, false, "2^62 iterations of 4 points");
    check_domain(0, INT64_C(1) << 31, 1, QN_OK, false, "2^62 iterations");
    check_domain(0, INT64_C(1) << 31, 0, QN_OK, false, "2^62 iterations without points");
    check_domain(INT64_MIN, INT64_MAX, INT64_MAX, QN_ERR_OVERFLOW, false,
                 "an extent beyond 64 bits");
    check_domain(INT64_MAX, INT64_MAX, INT64_MAX, QN_OK, true, "empty at the end");

    run r;
    int8_t y = 0;
    parse(&r, RANGE);
    add_view(&r, &y, QN_I8, 2, (int64_t[]){1, 1}, NULL);
    add_scalar(&r, 5);
    add_scalar(&r, 3);
    add_scalar(&r, 9);
    qn__domain(r.k, r.value, true, &r.domain, &r.err);
    tap_is_str(r.err.message, "qn_launch: kernel \"range\": dimension 0: begin 5 is above end 3",
               "message");
    qn_kernel_release(r.k);
}

/* ---------------------------------------------------------------- reductions, naively */

static float naive_value(int64_t k)
{
    return (float)((uint32_t)k * 2654435761u >> 8) * 0x1p-20f - 3.0f;
}

/** One fold from the identity over n values with a stride. */
static float naive_fold(const float *x, int64_t n, int64_t stride)
{
    float sum = -0.0f;
    for (int64_t i = 0; i < n; i += stride)
        sum = sum + x[i];
    return sum;
}

static float naive_block(const float *x, int64_t n, int order)
{
    if (order != QN_STRIPED)
        return naive_fold(x, n, 1);
    float partial[64];
    for (int l = 0; l < 64; l++)
        partial[l] = l < n ? naive_fold(x + l, n - l, 64) : -0.0f;
    for (int h = 32; h >= 1; h /= 2)
        for (int l = 0; l < h; l++)
            partial[l] = partial[l] + partial[l + h];
    return partial[0];
}

/** The rule on a whole array; destroys it. */
static float naive_reduce(float *x, int64_t n, int order)
{
    if (order == QN_ORDERED)
        return naive_fold(x, n, 1);
    do {
        int64_t blocks = 0;
        for (int64_t i = 0; i < n; i += 4096)
            x[blocks++] = naive_block(x + i, n - i < 4096 ? n - i : 4096, order);
        n = blocks;
    } while (n > 1);
    return x[0];
}

static void check_reduction(int64_t n, int order)
{
    static const char *const names[] = {"", "indexed", "striped", "ordered"};
    char text[700];
    snprintf(text, sizeof text,
             "kernel \"sum\" { view y: f32[0]; %%z: i64 = const 0; %%n: i64 = const %" PRId64
             "; %%k: i64 = reduction %%z, %%n; %%s: f32 = reduce sum %s over %%k {"
             " %%u: u32 = cast %%k; %%m: u32 = const 2654435761; %%p: u32 = mul %%u, %%m;"
             " %%e: u32 = const 8; %%q: u32 = shr %%p, %%e; %%f: f32 = cast %%q;"
             " %%c: f32 = const 0x1p-20; %%g: f32 = mul %%f, %%c; %%d: f32 = const 3.0;"
             " %%v: f32 = sub %%g, %%d; yield %%v; }; store y[], %%s; }",
             n, names[order]);
    run r;
    float found = 0, *x = malloc((size_t)n * sizeof *x);
    parse(&r, text);
    if (!r.k || !x)
        return;
    add_view(&r, &found, QN_F32, 0, NULL, NULL);
    go(&r, QN_CHECKS_REPORT);
    for (int64_t i = 0; i < n; i++)
        x[i] = naive_value(i);
    float expected = naive_reduce(x, n, order);
    if (!tap_ok(memcmp(&found, &expected, sizeof found) == 0, "%s sum of %" PRId64 " values",
                names[order], n))
        tap_note("found %a, expected %a", (double)found, (double)expected);
    free(x);
    qn_kernel_release(r.k);
}

static void test_reductions(void)
{
    static const int64_t lengths[] = {1,    2,    31,   63,   64,   65,   127,   4095,
                                      4096, 4097, 4100, 8191, 8192, 8193, 300000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        for (int order = QN_INDEXED; order <= QN_ORDERED; order++)
            check_reduction(lengths[i], order);
    check_reduction(INT64_C(4096) * 4096 + 4096 + 77, QN_INDEXED); /* three levels */
    check_reduction(INT64_C(4096) * 4096 + 4096 + 77, QN_STRIPED);
}

/* ---------------------------------------------------------------- faults */

/** x[i] for i in [0, extent of y), with the sum over k of z[k] when i is odd. */
static const char FAULTS[] =
    "kernel \"f\" { view x: i32[1]; view y: i32[1]; view z: i32[2];"
    " %l: i64 = lower y, 0; %n: i64 = extent y, 0; %e: i64 = add %l, %n; %i: i64 = parallel %l, %e;"
    " %o: i64 = const 0; %five: i64 = const 5; %two: i64 = const 2;"
    " %k: i64 = reduction %o, %five; %m: i64 = reduction %o, %two;"
    " %s: i32 = reduce sum over %k, %m { %w: i32 = load z[%k, %m]; yield %w; };"
    " %v: i32 = load x[%i]; %t: i32 = add %s, %v; store y[%i], %t; }";

static void test_faults(void)
{
    run r;
    int32_t x[3] = {1, 2, 3}, y[5] = {0}, z[20];
    for (int i = 0; i < 20; i++)
        z[i] = i;
    parse(&r, FAULTS);
    add_view(&r, x, QN_I32, 1, (int64_t[]){3}, (int64_t[]){10});
    add_view(&r, y, QN_I32, 1, (int64_t[]){5}, (int64_t[]){10});
    add_view(&r, z, QN_I32, 2, (int64_t[]){5, 2}, NULL);
    tap_is_int(go(&r, QN_CHECKS_REPORT), QN_OK, "a fault is no failure of the interpreter");
    tap_is_int((int64_t)r.fault.iteration, 3, "iteration of the first fault");
    tap_is_int((int64_t)r.fault.point, 0, "no point outside a reduce");
    tap_is_int(r.fault.index[0], 13, "index");
    tap_is_int(r.fault.site, 1, "site: the second access");
    tap_ok(y[0] == 46 && y[2] == 48 && y[3] == 45 && y[4] == 45,
           "failing loads give 0, the rest goes on");
    tap_ok(r.proved[0] == 1 && r.proved[1] == 0 && r.proved[2] == 1,
           "proofs of the three accesses");
    tap_is_int(qn__fault_report(r.k, &r.fault, r.n, r.arg, &r.err), QN_ERR_BOUNDS, "report");
    tap_is_str(r.err.message,
               "qn_launch: kernel \"f\": out-of-bounds load: view \"x\", argument 0, dimension 0: "
               "index 13 not in "
               "[10,13); indices [13], extents [3]; iteration (13)",
               "the parameter's name stands in for a missing label");
    r.view[0].label = "picture";
    qn__fault_report(r.k, &r.fault, r.n, r.arg, &r.err);
    tap_contains(r.err.message, "view \"picture\", argument 0", "the label of the view");
    r.fault.iteration = 2;
    qn_fault before = r.fault;
    qn__interpret(r.k, r.n, r.arg, &r.domain, QN_CHECKS_REPORT, &r.fault, &r.err);
    tap_ok(memcmp(&before, &r.fault, sizeof before) == 0,
           "a later fault does not replace an earlier one");
    qn_kernel_release(r.k);

    parse(&r, FAULTS);
    add_view(&r, x, QN_I32, 1, (int64_t[]){2}, NULL);
    add_view(&r, y, QN_I32, 1, (int64_t[]){2}, NULL);
    add_view(&r, z, QN_I32, 2, (int64_t[]){4, 2}, NULL);
    go(&r, QN_CHECKS_REPORT);
    tap_is_int((int64_t)r.fault.iteration, 0, "fault inside a reduce: iteration");
    tap_is_int((int64_t)r.fault.point, 8, "its point: 4 rows of 2, then the first of the next");
    tap_ok(r.fault.index[0] == 4 && r.fault.index[1] == 0, "its indices");
    qn_kernel_release(r.k);

    parse(&r, FAULTS);
    add_view(&r, x, QN_I32, 1, (int64_t[]){0}, NULL);
    add_view(&r, y, QN_I32, 1, (int64_t[]){2}, NULL);
    add_view(&r, z, QN_I32, 2, (int64_t[]){5, 2}, NULL);
    go(&r, QN_CHECKS_CLAMP);
    tap_ok(r.fault.iteration == UINT64_MAX && y[0] == 45, "clamp in an empty view: 0 and no fault");
    qn_kernel_release(r.k);
}

/* ---------------------------------------------------------------- range proofs */

/** Whether the first access of a kernel over x: i32[8] (and i < 8) is proved. */
static void check_proof(bool expected, const char *expression)
{
    char text[600];
    snprintf(
        text, sizeof text,
        "kernel \"p\" { view x: i32[1]; view y: i32[1]; %%z: i64 = const 0; %%n: i64 = extent x, 0;"
        " %%i: i64 = parallel %%z, %%n; %s %%v: i32 = load x[%%r]; store y[%%i], %%v; }",
        expression);
    run r;
    int32_t x[8] = {0}, y[8];
    parse(&r, text);
    if (!r.k)
        return;
    add_view(&r, x, QN_I32, 1, (int64_t[]){8}, NULL);
    add_view(&r, y, QN_I32, 1, (int64_t[]){8}, NULL);
    go(&r, QN_CHECKS_REPORT);
    uint32_t site = 0;
    while (site + 1 < r.k->n_accesses && r.k->inst[r.k->access[site].inst].op != QN_I_LOAD)
        site++;
    tap_ok(r.proved[site] == expected, "%s: %s", expected ? "proved" : "not proved", expression);
    qn_kernel_release(r.k);
}

static void test_proofs(void)
{
    check_proof(true, "%o: i64 = const 7; %r: i64 = sub %o, %i;");
    check_proof(false, "%o: i64 = const 1; %r: i64 = add %o, %i;");
    check_proof(false, "%o: i64 = const 1; %r: i64 = sub %i, %o;");
    check_proof(true, "%o: i64 = const 3; %r: i64 = and %i, %o;");
    check_proof(true, "%o: i64 = const 2; %r: i64 = div %i, %o;");
    check_proof(
        true,
        "%o: i64 = const 8; %m: i64 = const 1000; %q: i64 = mul %i, %m; %r: i64 = rem %q, %o;");
    check_proof(
        false,
        "%o: i64 = const 8; %m: i64 = const -1000; %q: i64 = mul %i, %m; %r: i64 = rem %q, %o;");
    check_proof(true, "%o: i64 = const 1; %r: i64 = shr %i, %o;");
    check_proof(false, "%o: i64 = const 1; %r: i64 = shl %i, %o;");
    check_proof(
        true, "%o: i64 = const 5; %q: i64 = add %i, %o; %m: i64 = const 7; %r: i64 = min %q, %m;");
    check_proof(true, "%o: i64 = const 5; %q: i64 = sub %i, %o; %r: i64 = max %q, %z;");
    check_proof(true,
                "%o: i64 = const 5; %q: i64 = sub %i, %o; %m: i64 = abs %q; %r: i64 = add %m, %z;");
    check_proof(true, "%c: u8 = cast %i; %r: i64 = cast %c;");
    check_proof(false,
                "%o: u8 = const 249; %c: u8 = cast %i; %d: u8 = add %c, %o; %r: i64 = cast %d;");
    check_proof(true, "%o: i64 = const 3; %c: bool = lt %i, %o; %r: i64 = select %c, %i, %o;");
    check_proof(true, "%o: i64 = const 3; %c: bool = lt %i, %o; %r: i64 = if %c { yield %o; } else "
                      "{ yield %i; };");
    check_proof(true, "%q: f32 = cast %i; %r: i64 = cast %q;");
}

/* Random index expressions over two dimensions: whenever a proof is given, no iteration may fail.
 */

static uint64_t random_state = 88172645463325252u;

static int pick(int n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int)(random_state >> 33) % n;
}

/** Appends `count` random integer ops to pools of values, one pool a type. */
static void grow(qn_builder *b, qn_val pool[][64], int *n, int count)
{
    static const int ops[] = {QN_OP_add,      QN_OP_sub, QN_OP_mul, QN_OP_div, QN_OP_rem,
                              QN_OP_neg,      QN_OP_abs, QN_OP_min, QN_OP_max, QN_OP_and,
                              QN_OP_or,       QN_OP_xor, QN_OP_not, QN_OP_shl, QN_OP_shr,
                              QN_OP_popcount, QN_OP_clz, QN_OP_ctz};
    static const int64_t constants[] = {0,   1,   2,   3,    7,    8,     -1,        -2,
                                        100, 127, 255, 1000, -128, 65535, INT64_MAX, INT64_MIN};
    for (int i = 0; i < count; i++) {
        int type = QN_I8 + pick(8);
        qn_val v;
        if (n[type] == 0 || pick(3) == 0) {
            int from = QN_I8 + pick(8);
            v = n[from] == 0 || pick(2) ? qn_const_int(b, type, constants[pick(16)])
                                        : qn_cast(b, type, pool[from][pick(n[from])]);
        } else {
            int op = ops[pick((int)(sizeof ops / sizeof ops[0]))];
            qn_val args[2] = {pool[type][pick(n[type])], pool[type][pick(n[type])]};
            v = pick(8) ? qn_op(b, op, qn__op_info[op].arity, args)
                        : qn_select(b, qn_lt(b, args[0], args[1]), args[pick(2)], args[1]);
        }
        if (n[type] < 64)
            pool[type][n[type]++] = v;
    }
}

static qn_kernel *random_kernel(void)
{
    qn_builder *b = qn_builder_new("random", 0);
    qn_param x = qn_view_param(b, "x", QN_U8, 1, QN_READ_ONLY),
             y = qn_view_param(b, "y", QN_U8, 2, 0);
    qn_val i[2] = {qn_parallel_over(b, y, 0), qn_parallel_over(b, y, 1)};
    qn_val pool[QN_N_DTYPES][64];
    int n[QN_N_DTYPES] = {0};
    pool[QN_I64][n[QN_I64]++] = i[0];
    pool[QN_I64][n[QN_I64]++] = i[1];
    grow(b, pool, n, 12);
    qn_val index = pool[QN_I64][n[QN_I64] - 1];
    if (pick(2)) {
        int type = QN_I8 + pick(8);
        index = n[type] ? qn_cast(b, QN_I64, pool[type][n[type] - 1]) : index;
    }
    qn_store(b, y, 2, i, qn_load(b, x, 1, &index));
    qn_kernel *k = NULL;
    qn_finish(b, &k, NULL);
    qn_builder_release(b);
    return k;
}

static void test_random_proofs(void)
{
    enum { N_KERNELS = 3000 };
    static uint8_t x[300], y[64];
    int wrong = 0, proved = 0, clean = 0, built = 0;
    for (int t = 0; t < N_KERNELS; t++) {
        run r = {.k = random_kernel()};
        if (!r.k)
            continue;
        built++;
        int64_t extent = pick(3) ? 300 : 12;
        add_view(&r, x, QN_U8, 1, &extent, (int64_t[]){-pick(20)});
        add_view(&r, y, QN_U8, 2, (int64_t[]){1 + pick(7), 1 + pick(9)},
                 (int64_t[]){pick(5) - 2, pick(5) - 2});
        if (go(&r, QN_CHECKS_REPORT) == QN_OK) {
            bool failed = r.fault.status != 0;
            clean += !failed;
            proved += r.proved[0];
            wrong += failed && r.proved[r.fault.site];
        }
        if (wrong == 1 && r.fault.status) {
            char text[4000];
            qn_kernel_print(r.k, text, sizeof text);
            tap_note("%s", text);
            wrong++;
        }
        qn_kernel_release(r.k);
    }
    tap_ok(wrong == 0 && built > N_KERNELS / 2,
           "no proof of an access that fails, in %d random kernels", built);
    tap_ok(proved > clean / 3, "%d proofs where %d kernels have no fault", proved, clean);
}

int main(void)
{
    test_domain();
    test_reductions();
    test_faults();
    test_proofs();
    test_random_proofs();
    return tap_done();
}
