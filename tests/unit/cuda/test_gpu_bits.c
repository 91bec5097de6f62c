/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_bits.c: kernels of all kinds of elements, and reductions in every order and direction,
 * and products and columns of views in tiles and in Morton order, on a GPU: the bits of the
 * interpreter. On the stub driver, with smaller sizes, where there is no GPU.
 */
#include "tests/unit/gpu_job.h"

static device d;
static bool is_real;

/* ---------------------------------------------------------------- the same bits */

/** A job, and how it is run. */
typedef struct job {
    gpu_job j;
    qn_plan_options plan; /* 0: as it is chosen */
    int checks;
} job;

static bool is_float(int dtype)
{
    return dtype == QN_F16 || dtype == QN_BF16 || dtype == QN_F32 || dtype == QN_F64;
}

/** Numbers of both signs that are no integers where they can be, and never 0. */
static void put_numbers(int dtype, void *at, int64_t n, int64_t seed)
{
    int part = dtype == QN_C64 ? QN_F32 : dtype == QN_C128 ? QN_F64 : dtype;
    int64_t bytes = qn_dtype_bytes(part);
    n *= qn_dtype_bytes(dtype) / bytes;
    for (int64_t i = 0; i < n; i++) {
        double x = (double)((i * 7919 + seed * 31) % 2001 - 1000) / 7 + 0.05;
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits = qn_convert_value(part, is_float(part) ? QN_F64 : QN_I64,
                                is_float(part) ? bits : (uint64_t)(int64_t)(x * 3) | 1);
        memcpy((char *)at + i * bytes, &bits, (size_t)bytes);
    }
}

static void add_layout(job *j, int dtype, const qn_layout *l)
{
    gpu_job_add(&j->j, dtype, l, put_numbers);
}

static void add_view(job *j, int dtype, int rank, const int64_t *extents)
{
    gpu_job_add_right(&j->j, dtype, rank, extents, put_numbers);
}

static void free_job(job *j)
{
    gpu_job_close(&j->j);
}

/** The interpreter, then the GPU, exact and dynamic. */
static void compare(job *j, const char *text, const char *what)
{
    static const char *const name[] = {"auto", "exact", "dynamic"};
    qn_error err = {0};
    qn_kernel *k = kernel_of(text);
    gpu_job *x = &j->j;
    j->plan.bytes = sizeof j->plan;
    const qn_status status = gpu_job_expect(x, d.context, k, &err);
    if (status)
        tap_ok(false, "%s: interpreter: %s", what, err.message);
    for (int way = QN_SPECIALIZE_EXACT; status == QN_OK && way <= QN_SPECIALIZE_DYNAMIC; way++) {
        const qn_options o = {
            .bytes = sizeof o, .specialize = way, .plan = &j->plan, .checks = j->checks};
        gpu_job_copy(x, x->memory, x->initial);
        qn_status found = device_launch(&d, k, x->n, x->arg, x->n_views, x->memory, &o, &err);
        if (!tap_ok(found == QN_OK && gpu_job_is_expected(x), "%s, %s", what, name[way]))
            tap_note("%s %s", qn_status_name((int)found), found ? err.message : "");
    }
    qn_kernel_release(k);
}

/** A text with the dtype for @ and other words for $. */
static const char *text_of(const char *form, const char *dtype, const char *words)
{
    static char text[2048];
    size_t n = 0;
    for (; *form && n + 64 < sizeof text; form++) {
        const char *put = *form == '@' ? dtype : *form == '$' ? words : NULL;
        if (put)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", put);
        else
            text[n++] = *form;
    }
    text[n] = 0;
    return text;
}

/* ---------------------------------------------------------------- elements */

static const char crossing[] = "kernel crossing (x: @[,], w: @[,], y: f32[,]) {\n"
                               " for all i, j in y { y[i, j] = f32(x[j, i]) * f32(w[i, j]) } }\n";

/** Narrow elements that go through a tile in shared memory, a word at once. */
static void test_words_of_tiles(void)
{
    static const int dtypes[] = {QN_F16, QN_BF16, QN_U8, QN_I16};
    static char code[1 << 20];
    int64_t of[] = {is_real ? 1028 : 100, is_real ? 516 : 68}, to[] = {of[1], of[0]};
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        const char *name = qn_dtype_name(dtypes[t]), *text = text_of(crossing, name, "");
        char what[64];
        qn_error err = {0};
        job j = {.plan = {.bytes = sizeof j.plan, .width = 1}};
        add_view(&j, dtypes[t], 2, of);
        add_view(&j, dtypes[t], 2, to);
        add_view(&j, QN_F32, 2, to);
        const qn_options o = {.bytes = sizeof o,
                              .isa = QN_ISA_SM80,
                              .specialize = QN_SPECIALIZE_EXACT,
                              .plan = &j.plan};
        qn_kernel *k = kernel_of(text);
        qn_code *f = NULL;
        bool ok = qn_specialize(d.context, k, j.j.n, j.j.arg, &o, &f, &err) == QN_OK;
        ok = ok && qn_code_text(f, QN_DUMP_PLAN, code, sizeof code) &&
             strstr(code, "staged access 0") && qn_code_text(f, QN_DUMP_PTX, code, sizeof code) &&
             strstr(code, "ld.global.nc.u32");
        if (!tap_ok(ok, "%s go through a tile by words", name))
            tap_note("%s", err.message);
        qn_code_release(f);
        qn_kernel_release(k);
        snprintf(what, sizeof what, "words of %s through a tile", name);
        compare(&j, text, what);
        free_job(&j);
    }
}

static const char axpy[] =
    "kernel \"axpy\" $ {\n view x: @[1]; view y: @[1]; scalar s: @;\n"
    " %n: i64 = extent y, 0; %z: i64 = const 0; %i: i64 = parallel %z, %n; %s: @ = param s;\n"
    " %x: @ = load x[%i]; %y: @ = load y[%i]; %p: @ = mul %s, %x; %q: @ = add %p, %y; store y[%i], "
    "%q;\n}\n";
static const char quotient[] =
    "kernel \"quotient\" {\n view x: @[1]; view y: @[1];\n"
    " %n: i64 = extent y, 0; %z: i64 = const 0; %i: i64 = parallel %z, %n;\n"
    " %x: @ = load x[%i]; %y: @ = load y[%i]; %p: @ = div %x, %y; %q: @ = sub %p, %x; store y[%i], "
    "%q;\n}\n";
static const char transpose[] =
    "kernel \"transpose\" {\n view x: @[2]; view y: @[2];\n"
    " %n: i64 = extent y, 0; %m: i64 = extent y, 1; %z: i64 = const 0;\n"
    " %i: i64 = parallel %z, %n; %j: i64 = parallel %z, %m;\n"
    " %x: @ = load x[%j, %i]; store y[%i, %j], %x;\n}\n";

static void test_elements(void)
{
    static const int dtypes[] = {QN_F16, QN_BF16, QN_C64, QN_C128, QN_F32,
                                 QN_F64, QN_I8,   QN_U16, QN_I32,  QN_I64};
    int64_t n = is_real ? 100003 : 203, wide[] = {is_real ? 515 : 33, is_real ? 1030 : 70},
            high[] = {wide[1], wide[0]};
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
        const char *name = qn_dtype_name(dtypes[t]);
        char what[64];
        job j = {0};
        add_view(&j, dtypes[t], 1, &n);
        add_view(&j, dtypes[t], 1, &n);
        j.j.arg[j.j.n++] = qn_arg_int(dtypes[t], 3);
        snprintf(what, sizeof what, "a x + y of %s", name);
        compare(&j, text_of(axpy, name, ""), what);
        snprintf(what, sizeof what, "contracted a x + y of %s", name);
        compare(&j, text_of(axpy, name, "contract"), what);
        j.j.n--;
        snprintf(what, sizeof what, "x / y - x of %s", name);
        compare(&j, text_of(quotient, name, ""), what);
        free_job(&j);
        j = (job){0};
        add_view(&j, dtypes[t], 2, wide);
        add_view(&j, dtypes[t], 2, high);
        snprintf(what, sizeof what, "transpose of %s", name);
        compare(&j, text_of(transpose, name, ""), what);
        free_job(&j);
    }
}

/* ---------------------------------------------------------------- reductions */

static const char total[] =
    "kernel \"total\" {\n view x: @[1]; view y: @[0];\n"
    " %n: i64 = extent x, 0; %z: i64 = const 0; %k: i64 = reduction %z, %n;\n"
    " %r: @ = reduce $ over %k { %x: @ = load x[%k]; yield %x; };\n store y[], %r;\n}\n";
static const char rows[] =
    "kernel \"rows\" {\n view x: @[2]; view y: @[1];\n"
    " %n: i64 = extent x, 0; %m: i64 = extent x, 1; %z: i64 = const 0; %i: i64 = parallel %z, %n;\n"
    " %k: i64 = reduction %z, %m;\n"
    " %r: @ = reduce $ over %k { %x: @ = load x[%i, %k]; yield %x; };\n store y[%i], %r;\n}\n";
static const char columns[] =
    "kernel \"columns\" {\n view x: @[2]; view y: @[1];\n"
    " %n: i64 = extent x, 0; %m: i64 = extent x, 1; %z: i64 = const 0; %i: i64 = parallel %z, %m;\n"
    " %k: i64 = reduction %z, %n;\n"
    " %r: @ = reduce $ over %k { %x: @ = load x[%k, %i]; yield %x; };\n store y[%i], %r;\n}\n";

static void reduce_one(int dtype, const char *how, int64_t n, int64_t m)
{
    const char *name = qn_dtype_name(dtype);
    const int64_t all = n * m, both[] = {n, m};
    char what[96];
    job j = {0};
    add_view(&j, dtype, 1, &all);
    add_view(&j, dtype, 0, NULL);
    snprintf(what, sizeof what, "%s of %" PRId64 " %s", how, all, name);
    compare(&j, text_of(total, name, how), what);
    free_job(&j);
    for (int way = 0; way < 2; way++) {
        j = (job){0};
        add_view(&j, dtype, 2, both);
        add_view(&j, dtype, 1, &both[way]);
        snprintf(what, sizeof what, "%s of %s of %" PRId64 " x %" PRId64 " %s", how,
                 way ? "columns" : "rows", n, m, name);
        compare(&j, text_of(way ? columns : rows, name, how), what);
        free_job(&j);
    }
}

static void test_reductions(void)
{
    static const char *const hows[] = {"sum striped", "sum indexed", "sum ordered", "min striped",
                                       "max indexed"};
    static const int dtypes[] = {QN_F32, QN_F64, QN_F16, QN_I64};
    for (int t = 0; t < (is_real ? 4 : 1); t++)
        for (int h = 0; h < 5; h++) {
            reduce_one(dtypes[t], hows[h], is_real ? 257 : 5, is_real ? 4099 : 901);
            if (is_real)
                reduce_one(dtypes[t], hows[h], 9001, 33);
        }
}

/* ---------------------------------------------------------------- digits */

static const char product[] =
    "kernel \"product\" {\n view a: @[2]; view b: @[2]; view c: @[2];\n"
    " %n: i64 = extent c, 0; %m: i64 = extent c, 1; %p: i64 = extent a, 1; %z: i64 = const 0;\n"
    " %i: i64 = parallel %z, %n; %j: i64 = parallel %z, %m; %k: i64 = reduction %z, %p;\n"
    " %r: @ = reduce sum indexed over %k {\n"
    "  %a: @ = load a[%i, %k]; %b: @ = load b[%k, %j]; %x: @ = mul %a, %b; yield %x; };\n"
    " store c[%i, %j], %r;\n}\n";

/** A layout of a square whose dimensions have several digits, or one that has not. */
enum { PLAIN, TILES, MORTON, N_LAYOUTS };

static qn_layout layout_of(int kind, const int64_t *extents)
{
    static const int64_t tile[] = {4, 4};
    qn_layout l = {0};
    if (kind == MORTON)
        qn_layout_morton(2, extents, NULL, &l, NULL);
    else if (kind == TILES)
        qn_layout_tiled(2, extents, tile, NULL, NULL, &l, NULL);
    else
        qn_layout_right(2, extents, &l, NULL);
    return l;
}

/** Threads that compute several rows load the points of a sum together: the digits of an index are
 * those of one point. */
static void test_digits(void)
{
    static const int dtypes[] = {QN_F32, QN_F64, QN_I32, QN_F16, QN_BF16};
    static const char *const names[] = {"plain", "tiles", "Morton order"};
    const int64_t n = is_real ? 600 : 20,
                  m = is_real ? 512 : 16; /* a GPU chooses several rows itself */
    const int64_t a[] = {n, 8}, b[] = {8, m}, c[] = {n, m};
    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (int way = 1; way < N_LAYOUTS * N_LAYOUTS; way++) {
            const int left = way % N_LAYOUTS, right = way / N_LAYOUTS;
            qn_layout l[] = {layout_of(left, a), layout_of(right, b)};
            char what[96];
            job j = {.plan.jam = is_real ? 0 : 4};
            add_layout(&j, dtypes[t], &l[0]);
            add_layout(&j, dtypes[t], &l[1]);
            add_view(&j, dtypes[t], 2, c);
            snprintf(what, sizeof what, "product of %s in %s and %s", qn_dtype_name(dtypes[t]),
                     names[left], names[right]);
            compare(&j, text_of(product, qn_dtype_name(dtypes[t]), ""), what);
            free_job(&j);
            qn_layout_release(&l[0]);
            qn_layout_release(&l[1]);
        }
}

static const char first_column[] =
    "kernel \"first column\" {\n view a: @[2]; view c: @[2];\n"
    " %n: i64 = extent c, 0; %m: i64 = extent c, 1; %z: i64 = const 0;\n"
    " %p: i64 = lower a, 0; %q: i64 = lower a, 1;\n"
    " %i: i64 = parallel %z, %n; %j: i64 = parallel %z, %m; %r: i64 = add %i, %p;\n"
    " %x: @ = load a[%r, %q]; %y: @ = load c[%i, %j]; %s: @ = add %x, %y; store c[%i, %j], "
    "%s;\n}\n";

/** An element that all iterations of a thread need is loaded also where some of them are outside
 * the domain. */
static void test_shared_loads(void)
{
    static const char *const names[] = {"plain", "tiles", "Morton order"};
    const int64_t extents[] = {5, 8}, lower[] = {-3, 7};
    for (int kind = TILES; kind < N_LAYOUTS; kind++)
        for (int64_t n = 17; n < 24; n += 3) {
            const int64_t c[] = {extents[0], n};
            qn_layout base = layout_of(kind, extents), l = {0};
            qn_layout_offset(&base, lower, &l, NULL);
            char what[96];
            job j = {.plan = {.lane_dim = 2, .width = 8, .jam_dim = 1, .jam = 4}};
            add_layout(&j, QN_I32, &l);
            add_view(&j, QN_I32, 2, c);
            snprintf(what, sizeof what,
                     "a column in %s of %" PRId64 " iterations, 8 in each thread", names[kind], n);
            compare(&j, text_of(first_column, "i32", ""), what);
            free_job(&j);
            qn_layout_release(&base);
            qn_layout_release(&l);
        }
}

static const char three_stores[] =
    "kernel \"three stores\" {\n view a: i32[1]; scalar s: i64;\n"
    " %n: i64 = extent a, 0; %z: i64 = const 0; %i: i64 = parallel %z, %n;\n"
    " %s: i64 = param s; %t: i64 = add %i, %s; %o: i32 = const 1; %p: i32 = const 2; %q: i32 = "
    "const 3;\n"
    " store a[%i], %o; store a[%t], %p; store a[%i], %q;\n}\n";

/** Stores of an iteration to one element by addresses that seem different: the last one is kept. */
static void test_order_of_stores(void)
{
    const int64_t n = 66;
    job j = {.plan = {.lane_dim = 1, .width = 4}, .checks = QN_CHECKS_NONE};
    add_view(&j, QN_I32, 1, &n);
    j.j.arg[j.j.n++] = qn_arg_int(QN_I64, 0);
    compare(&j, three_stores, "three stores to one element");
    free_job(&j);
}

int main(void)
{
    char reason[256];
    bool is_open = device_open(&d, true);
    if (!is_open || !has_x86(reason, sizeof reason)) {
        tap_skip(is_open ? reason : d.no_gpu);
        device_close(&d);
        return tap_done();
    }
    is_real = !d.stub;
    if (!is_real)
        tap_skip(d.no_gpu[0] ? d.no_gpu : "the stub driver was asked for: smaller sizes");
    test_elements();
    test_words_of_tiles();
    test_reductions();
    test_digits();
    test_shared_loads();
    test_order_of_stores();
    device_close(&d);
    return tap_done();
}
