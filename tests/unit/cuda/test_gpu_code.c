/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_code.c: what stands in the PTX of small kernels, and what does not: instructions that
 * are the reason for a rule of the lowering. What the kernels compute is tested elsewhere.
 */
#define _DEFAULT_SOURCE /* mmap */
#include "tests/unit/launch.h"

#include <sys/mman.h>

enum { TEXT_BYTES = 1 << 20, N = 4000 };

static qn_context *c;
static char text[TEXT_BYTES];
static int specialize = QN_SPECIALIZE_EXACT;
static int64_t memory[N], values[N];

static qn_arg vector(qn_view *v, int dtype, int64_t n)
{
    qn_layout l;
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("v", memory, dtype, &l, 0, v, NULL);
    return qn_arg_view(v);
}

static qn_arg array_at(qn_view *v, void *at, int dtype, int rank, int64_t n0, int64_t n1)
{
    const int64_t extent[2] = {n0, n1};
    qn_layout l;
    qn_layout_right(rank, extent, &l, NULL);
    qn_view_wrap("v", at, dtype, &l, 0, v, NULL);
    return qn_arg_view(v);
}

static qn_arg array(qn_view *v, int dtype, int rank, int64_t n0, int64_t n1)
{
    return array_at(v, memory, dtype, rank, n0, n1);
}

/** A matrix of f32 apart from the other views. */
static qn_arg result(qn_view *v, int64_t n0, int64_t n1)
{
    return array_at(v, values, QN_F32, 2, n0, n1);
}

/** A stage of a kernel for an instruction set, or "". */
static const char *stage_for(int stage, int isa, const char *kernel, int n, const qn_arg *args)
{
    const qn_options o = {.bytes = sizeof o, .isa = isa, .specialize = specialize};
    qn_error err = {0};
    qn_code *code = NULL;
    qn_kernel *k = kernel_of(kernel);
    text[0] = 0;
    if (!tap_ok(k && qn_specialize(c, k, n, args, &o, &code, &err) == QN_OK,
                "a kernel for a GPU %s", err.message))
        return text;
    qn_code_text(code, stage, text, sizeof text);
    qn_code_release(code);
    qn_kernel_release(k);
    return text;
}

static const char *ptx_for(int isa, const char *kernel, int n, const qn_arg *args)
{
    return stage_for(QN_DUMP_PTX, isa, kernel, n, args);
}

static const char *plan_of(const char *kernel, int n, const qn_arg *args)
{
    return stage_for(QN_DUMP_PLAN, QN_ISA_SM90, kernel, n, args);
}

static const char *ptx_of(const char *kernel, int n, const qn_arg *args)
{
    return ptx_for(QN_ISA_SM90, kernel, n, args);
}

static int count(const char *in, const char *what)
{
    int n = 0;
    for (const char *at = in; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/** With `use` the old value is stored. */
static void test_atomics(void)
{
    static const char form[] =
        "kernel \"count\" {\n view x: i32[1]; view h: u32[1] atomic; view y: u32[1];\n"
        " %%z: i64 = const 0; %%n: i64 = extent x, 0; %%i: i64 = parallel %%z, %%n; %%one: u32 = "
        "const 1;\n"
        " %%x: i32 = load x[%%i]; %%b: i64 = cast %%x; %%o: u32 = atomic sum h[%%b], %%one;\n "
        "%s\n}\n";
    char kernel[1024];
    qn_view v[3];
    const qn_arg args[] = {vector(&v[0], QN_I32, N), vector(&v[1], QN_U32, 100),
                           vector(&v[2], QN_U32, N)};
    snprintf(kernel, sizeof kernel, form, "store y[%i], %one;");
    tap_ok(count(ptx_of(kernel, 3, args), "red.global.add.u32") == 1 &&
               !strstr(text, "atom.global.add"),
           "nobody uses the old value: a reduction, also under a check");
    snprintf(kernel, sizeof kernel, form, "store y[%i], %o;");
    tap_ok(count(ptx_of(kernel, 3, args), "atom.global.add.u32") == 1 &&
               !strstr(text, "red.global"),
           "else an atomic");
    static const char sum[] = "kernel sum (h: f32[], x: f32[], at: i32[]) {\n"
                              " for all i in x { atomic h[at[i]] += x[i] }\n}\n";
    qn_view w[3];
    const qn_arg sums[] = {vector(&w[0], QN_F32, 100), vector(&w[1], QN_F32, N),
                           vector(&w[2], QN_I32, N)};
    tap_ok(count(ptx_of(sum, 3, sums), "red.global.add.f32") == 1 &&
               count(text, "atom.global.cas.b32") == 1,
           "a sum of f32 is a reduction, and exchanged where that may flush to zero");
}

static void test_signs(void)
{
    static const char kept[] =
        "kernel \"kept\" {\n view x: f64[1]; view y: f64[1];\n %z: i64 = const 0; %n: i64 = extent "
        "y, 0;\n"
        " %i: i64 = parallel %z, %n; %x: f64 = load x[%i]; %a: f64 = neg %x; store y[%i], %a;\n}\n";
    static const char used[] = "kernel \"used\" {\n view x: f64[1]; view y: f64[1];\n %z: i64 = "
                               "const 0; %n: i64 = extent y, 0;\n"
                               " %i: i64 = parallel %z, %n; %x: f64 = load x[%i]; %a: f64 = neg "
                               "%x; %b: f64 = fma %x, %x, %a;\n"
                               " store y[%i], %b;\n}\n";
    qn_view v[2];
    for (int64_t n = N - 2; n <= N; n++) {
        const qn_arg args[] = {vector(&v[0], QN_F64, n), vector(&v[1], QN_F64, n)};
        tap_ok(strstr(ptx_of(kept, 2, args), "xor.b64") && !strstr(text, "neg.f64"),
               "the bits of a NaN are kept");
        tap_ok(!strstr(ptx_of(used, 2, args), "xor.b64"),
               "but where only numbers are made of them");
    }
}

/** ptxas (CUDA 13) compares the result of abs.s16 wrongly, which LLVM makes of an abs and of
 * selects. */
static void test_magnitude(void)
{
    static const char form[] =
        "kernel \"magnitude\" {\n view x: i16[1]; view y: bool[1];\n %%z: i64 = const 0;\n"
        " %%n: i64 = extent y, 0; %%i: i64 = parallel %%z, %%n; %%x: i16 = load x[%%i]; %%o: i16 = "
        "const 0;\n"
        " %%minus: i16 = neg %%x; %%is: bool = lt %%x, %%o; %s\n"
        " %%b: bool = gt %%o, %%m; store y[%%i], %%b;\n}\n";
    static const char *const magnitude[] = {"%m: i16 = abs %x;",
                                            "%m: i16 = select %is, %minus, %x;"};
    char kernel[1024];
    qn_view v[2];
    const qn_arg args[] = {vector(&v[0], QN_I16, N), vector(&v[1], QN_BOOL, N)};
    for (int i = 0; i < 2; i++) {
        snprintf(kernel, sizeof kernel, form, magnitude[i]);
        tap_ok(strstr(ptx_of(kernel, 2, args), "max.s16") && !strstr(text, "abs.s16"),
               "magnitudes of i16: %s", magnitude[i]);
    }
}

/** ptxas takes a negation of 16 bits for one whose sign is extended: there is none. */
static void test_negation(void)
{
    static const char kernel[] =
        "kernel \"minus\" {\n view x: i16[1]; view y: i16[1];\n %z: i64 = const 0; %n: i64 = "
        "extent y, 0; %i: i64 = parallel %z, %n;\n"
        " %x: i16 = load x[%i]; %y: i16 = load y[%i]; %m: i16 = neg %x; %r: i16 = rem %m, %y;\n"
        " store y[%i], %r;\n}\n";
    qn_view v[2];
    const qn_arg args[] = {vector(&v[0], QN_I16, N), vector(&v[1], QN_I16, N)};
    tap_ok(strstr(ptx_of(kernel, 2, args), "neg.s32") && !strstr(text, "neg.s16"),
           "a number of 16 bits is negated in 32");
}

/** y[i] = sum of value[k] x[column[k]] over the row i; the number of cold blocks is that of locks
 * taken. */
static void test_rows(void)
{
    static const char csr[] =
        "kernel \"csr\" {\n view start: i32[1]; view column: i32[1]; view value: f32[1]; view x: "
        "f32[1]; view y: f32[1];\n"
        " %z: i64 = const 0; %one: i64 = const 1; %n: i64 = extent y, 0; %i: i64 = parallel %z, "
        "%n; %j: i64 = add %i, %one;\n"
        " %b: i32 = load start[%i]; %e: i32 = load start[%j]; %bb: i64 = cast %b; %ee: i64 = cast "
        "%e; %f: f32 = const 0.0;\n"
        " %s: f32 = for %k: i64 = %bb to %ee step 1 (%a: f32 = %f) {\n"
        " %c: i32 = load column[%k]; %cc: i64 = cast %c; %v: f32 = load value[%k]; %x: f32 = load "
        "x[%cc];\n"
        " %p: f32 = mul %v, %x; %t: f32 = add %a, %p; yield %t;\n };\n store y[%i], %s;\n}\n";
    qn_view v[5];
    const qn_arg args[] = {vector(&v[0], QN_I32, 101), vector(&v[1], QN_I32, N),
                           vector(&v[2], QN_F32, N), vector(&v[3], QN_F32, 100),
                           vector(&v[4], QN_F32, 100)};
    tap_is_int(count(ptx_of(csr, 5, args), "mul.rn.f32"), 8 + 1 + 1,
               "two versions of a row, eight trips of the first at once");
    const char *first = strstr(text, "mul.rn.f32"), *begin = strstr(text, "atom.global.cas");
    tap_ok(first && begin && first < begin, "the first has no cold block");
    static float result[100];
    const int64_t n = 100;
    qn_layout l;
    qn_layout_right(1, &n, &l, NULL);
    qn_view_wrap("y", result, QN_F32, &l, 0, &v[4], NULL);
    tap_is_int(count(ptx_of(csr, 5, args), "mul.rn.f32"), 7 + 8 + 7 + 1,
               "the first begins eight trips where rows are aligned, others before and behind");
    tap_is_int(count(text, "ld.global.nc.v4."), 4, "and loads of four elements are one");
}

static void test_limits(void)
{
    static const char counted[] =
        "kernel \"count\" {\n view y: i32[1]; scalar end: i32;\n %z: i64 = const 0; %n: i64 = "
        "extent y, 0;\n"
        " %i: i64 = parallel %z, %n; %end: i32 = param end; %0: i32 = const 0; %1: i32 = "
        "const 1; %most: i64 = const 100;\n"
        " %c: i32 = while max %most (%a: i32 = %0) {\n %go: bool = lt %a, %end; yield "
        "%go;\n } do {\n"
        " %b: i32 = add %a, %1; yield %b;\n };\n store y[%i], %c;\n}\n";
    qn_view v;
    const qn_arg args[] = {vector(&v, QN_I32, N), qn_arg_int(QN_I32, 7)};
    ptx_of(counted, 2, args);
    tap_ok(strstr(text, "atom.") && !strstr(text, "lt.s64") && !strstr(text, "gt.s64"),
           "a known limit: no comparison of 64 bits");
}

/** The number of blocks of `threads` threads that the text asks a multiprocessor to have room for,
 * times threads; 0 if there is none. */
static int threads_asked_for(const char *in, int threads)
{
    static const char word[] = ".minnctapersm ", size[] = ".reqntid ";
    const char *at = strstr(in, word), *block = strstr(in, size);
    bool is_known = at && block && atoi(block + strlen(size)) == threads;
    return is_known ? threads * atoi(at + strlen(word)) : 0;
}

/** Threads of a multiprocessor, of which the assembler ignores a larger number with a warning: the
 * CUDA C++ Programming Guide's technical specifications per compute capability. */
static void test_threads(const char *kernel, int n, const qn_arg *args)
{
    static const struct {
        int isa, threads;
    } most[] = {{QN_ISA_SM70, 2048}, {QN_ISA_SM75, 1024}, {QN_ISA_SM80, 2048},
                {QN_ISA_SM86, 1536}, {QN_ISA_SM89, 1536}, {QN_ISA_SM90, 2048}};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        int found = threads_asked_for(ptx_for(most[i].isa, kernel, n, args), 256);
        tap_ok(found == most[i].threads, "sm_%d: room for all %d threads, not %d", most[i].isa,
               most[i].threads, found);
    }
}

/** Threads that load little: so many that their registers are limited, and a block for each unit.
 */
static void test_light(void)
{
    enum { MANY = 1 << 20 };
    static _Alignas(16) float most[2][MANY];
    const int64_t n = MANY;
    qn_layout l;
    qn_view v[2];
    qn_layout_right(1, &n, &l, NULL);
    for (int i = 0; i < 2; i++)
        qn_view_wrap("v", most[i], QN_F32, &l, 0, &v[i], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    static const char form[] =
        "kernel \"light\" {\n view x: f32[1]; view y: f32[1];\n"
        " %%z: i64 = const 0; %%n: i64 = extent x, 0; %%i: i64 = parallel %%z, %%n;\n"
        " %%x: f32 = load x[%%i]; %%y: f32 = %s %%x; store y[%%i], %%y;\n}\n";
    char kernel[512];
    snprintf(kernel, sizeof kernel, form, "exp");
    tap_ok(strstr(ptx_of(kernel, 2, args), ".minnctapersm 8") && !strstr(text, "%nctaid"),
           "exp of an array: registers for 8 blocks of 256 threads, and no loop over units");
    test_threads(kernel, 2, args);
    snprintf(kernel, sizeof kernel, form, "sin");
    tap_ok(strstr(ptx_of(kernel, 2, args), "ld.global.nc.v4.f32") &&
               count(text, "cvt.f64.f32") >= 4,
           "sin of an array: four at once, each with its own branch for huge arguments");
}

/** A loop of each thread along a row of its own: eight trips at once, 16 bytes in an access. */
static void test_trips(void)
{
    static _Alignas(16) float most[2][64 * 100];
    static const char kernel[] =
        "kernel scan (x: f32[,], y: f32[,]) {\n  for all i in dim(y, 0) {\n    t: f32 = 0\n"
        "    for j in dim(x, 1) { t += x[i,j]\n y[i,j] = t }\n  }\n}\n";
    int64_t extent[2] = {64, 100};
    qn_layout l;
    qn_view v[2];
    qn_layout_right(2, extent, &l, NULL);
    for (int i = 0; i < 2; i++)
        qn_view_wrap("v", most[i], QN_F32, &l, 0, &v[i], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    tap_ok(count(ptx_of(kernel, 2, args), "bar.warp.sync") == 6 && !strstr(text, "v4.f32"),
           "running sums along rows of whole warps: words of 32 rows move side by side");
    extent[0] = 63;
    qn_layout_right(2, extent, &l, NULL);
    for (int i = 0; i < 2; i++)
        qn_view_wrap("v", most[i], QN_F32, &l, 0, &v[i], NULL);
    tap_ok(count(ptx_of(kernel, 2, args), "ld.global.nc.v4.f32") == 2 &&
               count(text, "st.global.v4.f32") == 2,
           "running sums along rows: accesses of 16 bytes");
}

/** Windows of bytes: no load is aligned, but neighbours share what they load. */
static void test_neighbours(void)
{
    static const char kernel[] =
        "kernel windows (x: u8[,], y: u8[,]) {\n  for all i, j in y {\n"
        "    y[i,j] = min u in 0 .. 5, v in 0 .. 5 of x[i+u,j+v]\n  }\n}\n";
    enum { ROWS = 2048, COLUMNS = 2048 };
    const size_t bytes = (size_t)(ROWS + 4) * (COLUMNS + 4);
    uint8_t *at[2] = {calloc(bytes, 1), calloc(bytes, 1)};
    qn_view v[2];
    for (int i = 0; i < 2; i++) {
        const int64_t extent[2] = {i ? ROWS : ROWS + 4, i ? COLUMNS : COLUMNS + 4};
        qn_layout l;
        qn_layout_right(2, extent, &l, NULL);
        qn_view_wrap("v", at[i], QN_U8, &l, 0, &v[i], NULL);
    }
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    tap_ok(at[0] && at[1] && strstr(plan_of(kernel, 2, args), "at once 4 of dimension 1"),
           "windows of bytes: four neighbours in a thread");
    for (int i = 0; i < 2; i++)
        free(at[i]);
}

/** Softmax: what the lanes of a warp keep of a row, of so many columns. */
static void test_kept(void)
{
    static const char softmax[] =
        "kernel \"softmax\" striped {\n view x: f32[2]; view y: f32[2];\n"
        " %0: i64 = const 0; %1: i64 = extent x, 0; %2: i64 = extent x, 1; %i: i64 = parallel %0, "
        "%1; %k: i64 = reduction %0, %2;\n"
        " %most: f32 = reduce max over %k {\n %a: f32 = load x[%i, %k]; yield %a;\n };\n"
        " %sum: f32 = reduce sum over %k {\n %b: f32 = load x[%i, %k]; %c: f32 = sub %b, %most; "
        "%d: f32 = exp %c; yield %d;\n };\n"
        " for %j: i64 = %0 to %2 step 1 () {\n %e: f32 = load x[%i, %j]; %f: f32 = sub %e, %most; "
        "%g: f32 = exp %f;\n"
        " %h: f32 = div %g, %sum; store y[%i, %j], %h;\n };\n}\n";
    static float rows[2][3 * 4096];
    enum { ROWS = 3, COLUMNS = 4096 };
    for (int is_long = 0; is_long < 2; is_long++) {
        const int64_t extent[2] = {is_long ? 1 : ROWS, is_long ? ROWS * COLUMNS : COLUMNS};
        qn_layout l;
        qn_view v[2];
        qn_layout_right(2, extent, &l, NULL);
        for (int i = 0; i < 2; i++)
            qn_view_wrap("v", rows[i], QN_F32, &l, 0, &v[i], NULL);
        const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
        const char *of_row = strstr(ptx_of(softmax, 2, args), "st.shared.f32"),
                   *kept = of_row ? strstr(of_row, "ld.shared.f32") : NULL;
        if (is_long)
            tap_ok(!of_row && count(text, "ld.global.nc.f32") > 0,
                   "rows of 48 KiB leave no room for 8 warps: nothing is kept");
        else
            tap_ok(kept && !strstr(kept, "ld.global.nc.f32") && count(text, "ld.shared.f32") > 0,
                   "rows of 16 KiB: elements are loaded once, and what is computed is kept");
    }
    qn_view v[2];
    qn_layout l;
    const int64_t huge[2] = {1, INT64_C(1) << 29};
    const size_t bytes = (size_t)huge[1] * sizeof(float);
    char *reserved =
        mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    qn_layout_right(2, huge, &l, NULL);
    for (int i = 0; i < 2; i++)
        qn_view_wrap("v", reserved + (size_t)i * bytes, QN_F32, &l, 0, &v[i], NULL);
    const qn_arg far[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    tap_ok(reserved != MAP_FAILED && !strstr(ptx_of(softmax, 2, far), "st.shared.f32"),
           "nor do rows of 2 GiB, whose bytes are no i32");
    munmap(reserved, 2 * bytes);
    const int64_t n = 4, extent[2] = {n, N / n};
    qn_layout_right(2, extent, &l, NULL);
    for (int i = 0; i < 2; i++) /* one memory */
        qn_view_wrap("v", memory, QN_F32, &l, 0, &v[i], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    tap_ok(!strstr(ptx_of(softmax, 2, args), "st.shared"),
           "what the launch writes may change between two loads: nothing is kept");
}

/** Records of an array under a condition, which a block moves for all of its iterations. */
static void test_moved(void)
{
    enum { RECORDS = 4096 };
    static _Alignas(16) float most[2][3 * RECORDS];
    static const char form[] = "kernel move (x: f32[,], y: f32[]) {\n  for all i in dim(x, 0) {\n"
                               "    v: f32 = 0\n    if %s {\n"
                               "      v = x[%s, 0] + x[%s, 1] * x[%s, 2]\n    }\n"
                               "    y[i] = v\n  }\n}\n";
    const int64_t records[2] = {RECORDS, 3};
    qn_layout l;
    qn_view v[2];
    char kernel[512];
    qn_layout_right(2, records, &l, NULL);
    qn_view_wrap("x", most[0], QN_F32, &l, 0, &v[0], NULL);
    qn_layout_right(1, records, &l, NULL);
    qn_view_wrap("y", most[1], QN_F32, &l, 0, &v[1], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    snprintf(kernel, sizeof kernel, form, "y[i] > 0", "i", "i", "i");
    tap_ok(strstr(ptx_of(kernel, 2, args), "st.shared"), "records in range: a block moves them");
    snprintf(kernel, sizeof kernel, form, "i > 0", "i - 1", "i - 1", "i - 1");
    tap_ok(*ptx_of(kernel, 2, args) && !strstr(text, "st.shared"),
           "records that are in range where the condition holds only: each thread loads its own");
}

/** The usual sides of rare branches: once for each iteration, and one test for all of them. */
static void test_rare(void)
{
    enum { MANY = 1 << 20, AT_ONCE = 4 };
    static _Alignas(16) float most[2][MANY];
    static const char head[] =
        "kernel \"rare\" {\n view x: f32[1]; view y: f32[1]; %z: i64 = const 0;\n"
        " %n: i64 = extent x, 0; %i: i64 = parallel %z, %n; %x: f32 = load x[%i];\n";
    static const char once[] = " %y: f32 = exp %x; store y[%i], %y;\n}\n";
    static const char looped[] =
        " %t: i64 = const 100; %0: f32 = const 0.0;\n"
        " %y: f32 = for %k: i64 = %z to %t step 1 (%s: f32 = %0) {\n"
        " %a: f32 = add %s, %x; %b: f32 = exp %a; yield %b;\n };\n store y[%i], %y;\n}\n";
    const int64_t n = MANY;
    qn_layout l;
    qn_view v[2];
    char kernel[1024];
    qn_layout_right(1, &n, &l, NULL);
    for (int i = 0; i < 2; i++)
        qn_view_wrap("v", most[i], QN_F32, &l, 0, &v[i], NULL);
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    snprintf(kernel, sizeof kernel, "%s%s", head, once);
    const char *last = NULL, *branch = strstr(ptx_of(kernel, 2, args), "bra");
    for (const char *at = text; (at = strstr(at, "0f3C091218")) != NULL; at++) /* a coefficient */
        last = at;
    branch =
        branch ? strstr(branch + 1, "bra") : NULL; /* the first one ends blocks without a unit */
    tap_is_int(count(text, "0f3C091218"), AT_ONCE,
               "exp, four at once: rare sides use these polynomials");
    tap_ok(last && branch && last < branch, "and no branch before the last of them");
    snprintf(kernel, sizeof kernel, "%s%s", head, looped);
    tap_is_int(count(ptx_of(kernel, 2, args), "0f3C091218"), AT_ONCE,
               "in a loop: four at once, too, as rare sides and constants do not count");
}

/** Indices are divided in 32 bits, where they fit; what wraps once is not divided at all. */
static void test_quotients(void)
{
    static const char once[] =
        "kernel once (x: f32[], y: f32[]) {\n n = extent(x, 0)\n"
        " for all i in y { y[i] = x[(i + 1) % n] + x[(i + n - 1) % n] }\n}\n",
        often[] = "kernel often (x: f32[], y: f32[]) {\n"
                  " for all i in y { y[i] = x[i / 7 % 11] + f32((i - 5) / 3) }\n}\n";
    qn_view v[2];
    const qn_arg args[] = {vector(&v[0], QN_F32, N), vector(&v[1], QN_F32, N)};
    tap_ok(strstr(ptx_of(once, 2, args), "min.u32") && !strstr(text, "mul.hi"),
           "a remainder of a number below twice the divisor is the lesser of two");
    tap_ok(strstr(ptx_of(often, 2, args), "mul.hi") && !strstr(text, "mul.hi.s64") &&
               !strstr(text, "mul.hi.u64"),
           "other quotients are products of 32 bits");
}

/** Halves of a striped sum are loaded two at a time: a lane has neighbouring partials. */
static void test_pairs(void)
{
    static const char kernel[] = "kernel dots (w: f16[,], y: f32[,]) striped {\n"
                                 " for all i in dim(y, 0) {\n"
                                 " y[i,0] = sum k in dim(w, 1) of f32(w[i,k]) }\n}\n";
    qn_view v[2];
    const qn_arg args[] = {array(&v[0], QN_F16, 2, 9, 384), result(&v[1], 9, 1)};
    tap_ok(strstr(ptx_of(kernel, 2, args), "ld.global.nc.u32"), "aligned: in pairs");
    const qn_arg odd[] = {array(&v[0], QN_F16, 2, 9, 383), result(&v[1], 9, 1)};
    tap_ok(strstr(ptx_of(kernel, 2, odd), "ld.global.nc.u16") && !strstr(text, "ld.global.nc.u32"),
           "not from an odd element on");
}

/** Rows that indices choose are loaded ahead of the tests of these: no branch is between the loads.
 */
static void test_sums_ahead(void)
{
    static const char kernel[] =
        "kernel bag (id: i32[,], t: f32[,], y: f32[,]) {\n"
        " for all b, j in y { y[b,j] = sum k in dim(id, 1) of t[id[b,k],j] }\n}\n";
    qn_view v[3];
    const qn_arg args[] = {array(&v[0], QN_I32, 2, 32, 8), array(&v[1], QN_F32, 2, 30, 32),
                           result(&v[2], 32, 32)};
    const char *at = ptx_of(kernel, 3, args);
    int n = 0;
    for (const char *end = NULL; (at = strstr(at, "ld.global.nc.f32")) && !(end && end < at); n++) {
        end = strstr(at, "bra");
        at++;
    }
    tap_is_int(n, 8, "eight loads before the next branch");
    tap_ok(strstr(text, ".minnctapersm 16"), "and registers for as many blocks as fit");
}

/** Neighbours of a load that lie along another dimension go through a tile, bytes through squares
 * of a thread. */
static void test_staged(void)
{
    static const char form[] = "kernel turn (x: %s[,], y: %s[,]) {\n"
                               " for all i, j in y { y[i,j] = x[j,i] }\n}\n";
    enum { SIDE = 16384 };
    const size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
    char kernel[128],
        *at = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    qn_view v[2];
    if (!tap_ok(at != MAP_FAILED, "memory"))
        return;
    const qn_arg words[] = {array_at(&v[0], at, QN_F32, 2, SIDE, SIDE),
                            array_at(&v[1], at + bytes, QN_F32, 2, SIDE, SIDE)};
    snprintf(kernel, sizeof kernel, form, "f32", "f32");
    tap_ok(strstr(plan_of(kernel, 2, words), "staged access 0, along dimension 0"),
           "a load across the threads is staged");
    tap_ok(count(ptx_of(kernel, 2, words), "bar.sync") == 2 && strstr(text, "ld.shared"),
           "in a tile in shared memory");
    const qn_arg pairs[] = {array_at(&v[0], at, QN_I16, 2, SIDE, SIDE),
                            array_at(&v[1], at + bytes, QN_I16, 2, SIDE, SIDE)};
    snprintf(kernel, sizeof kernel, form, "i16", "i16");
    ptx_of(kernel, 2, pairs);
    tap_ok(strstr(text, "ld.global.nc.u32") && !strstr(text, "ld.global.nc.u16"),
           "elements of two bytes are staged by words");
    const qn_arg small[] = {array_at(&v[0], at, QN_U8, 2, SIDE, SIDE),
                            array_at(&v[1], at + bytes, QN_U8, 2, SIDE, SIDE)};
    snprintf(kernel, sizeof kernel, form, "u8", "u8");
    tap_ok(strstr(plan_of(kernel, 2, small), "crossed") && !strstr(text, "staged"),
           "bytes are not");
    munmap(at, 2 * bytes);
}

/** What a thread takes at once. */
static void test_at_once(void)
{
    static const char planes[] = "kernel planes (p: f32[,], q: f32[,]) {\n"
                                 " for all c, i in q { q[c,i] = p[i,c] }\n}\n",
                      fir[] = "kernel fir (x: f32[], w: f32[], y: f32[]) {\n"
                              " for all i in y { y[i] = sum k in w of w[k] * x[4*i+k] }\n}\n",
                      border[] = "kernel border (x: f32[,], y: f32[,]) {\n h = extent(x, 1)\n"
                                 " for all i, j in y { y[i,j] = j > 0 ? x[i,j-1] : 0 }\n}\n";
    static float result[N];
    qn_view v[3];
    qn_arg args[] = {array(&v[0], QN_F32, 2, 100, 8), array(&v[1], QN_F32, 2, 8, 100),
                     vector(&v[2], QN_F32, 100)};
    v[1].data = result;
    args[1] = qn_arg_view(&v[1]);
    tap_ok(strstr(plan_of(planes, 2, args), "jam 8 of dimension 0"),
           "a thread takes all members of a record");
    tap_is_int(count(ptx_of(planes, 2, args), "ld.global.nc.v4.f32"), 4,
               "of two, in four loads of 16 bytes");
    args[0] = vector(&v[0], QN_F32, 4 * 100 + 36);
    args[1] = vector(&v[1], QN_F32, 40);
    v[2].data = result;
    args[2] = qn_arg_view(&v[2]);
    tap_ok(strstr(plan_of(fir, 3, args), "team threads"),
           "windows that overlap are no rows for a block");
    args[0] = array(&v[0], QN_F32, 2, 10, 64);
    args[1] = array(&v[1], QN_F32, 2, 10, 64);
    v[1].data = result;
    args[1] = qn_arg_view(&v[1]);
    tap_ok(strstr(plan_of(border, 2, args), "at once 4 of dimension 1"),
           "a load in a branch does not keep a thread from several iterations");
    tap_ok(strstr(ptx_of(border, 2, args), "st.global.v4.f32"), "which it stores together");
}
/** What is known beside the length of a batch, which is left to each launch, is used. */
static void test_batches(void)
{
    static const char rows[] = "kernel scans (x: f32[,] {extent 0 dynamic}, "
                               "y: f32[,] {extent 0 dynamic}) {\n"
                               "  for all i in dim(y, 0) { s: f32 = 0\n"
                               "    for k in 0 .. 64 { s += x[i, k]\n y[i, k] = s } }\n}\n";
    static const char sides[] = "kernel halves (x: f32[,] {extent 0 dynamic}, "
                                "y: f32[,] {extent 0 dynamic}) {\n"
                                "  for all t, d in y "
                                "{ y[t,d] = d < 32 ? -x[t,d+32] : x[t,d-32] }\n}\n";
    static const char products[] = "kernel products (a: f32[,] {extent 0 dynamic}, "
                                   "y: f32[,] {extent 0 dynamic}) {\n"
                                   "  for all n, i in y "
                                   "{ y[n,i] = sum k in 0 .. 9 of a[n,k] * a[n,i+k] }\n}\n";
    static const char planes[] = "kernel planes (x: f32[,,] {extent 0 dynamic}, "
                                 "y: f32[,,] {extent 0 dynamic}) {\n"
                                 "  for all n, i, j in y { y[n,i,j] = x[n,i,j] + 1 }\n}\n";
    static int64_t to[N];
    const int64_t extent[3] = {40, 32, 6};
    qn_view v[2];
    const qn_arg args[2] = {array(&v[0], QN_F32, 2, 60, 64), result(&v[1], 60, 64)};
    tap_ok(strstr(plan_of(rows, 2, args), "moved rows 256 bytes apart of view 1"),
           "warps move rows of a batch");
    tap_ok(strstr(plan_of(sides, 2, args), "at once 4 of dimension 1"),
           "both sides of a branch are computed for a batch");
    const qn_arg shorter[2] = {args[0], result(&v[1], 60, 32)};
    tap_ok(strstr(plan_of(products, 2, shorter), "at once 4 of dimension 1"),
           "sums of a batch share what they load");
    qn_arg whole[2];
    for (int n = 0; n < 2; n++) {
        qn_layout l;
        qn_layout_right(3, extent, &l, NULL);
        qn_view_wrap("v", n ? to : memory, QN_F32, &l, 0, &v[n], NULL);
        whole[n] = qn_arg_view(&v[n]);
    }
    tap_ok(strstr(plan_of(planes, 2, whole), "threads 64 of dimension 2"),
           "rows that follow each other are one dimension beside a batch");
}

/** Where all extents are left to the launch, a block has no more threads along a short one than its
 * class has, a thread takes a short row, and updates of few elements are collected. */
static void test_classes(void)
{
    static const char pixels[] = "kernel larger (x: f32[,], y: f32[,]) {\n"
                                 " for all i, c in y { y[i,c] = x[i/2,c] }\n}\n",
                      rows[] = "kernel rows (x: f32[,], y: f32[]) {\n"
                               " for all i in y { y[i] = sum k in dim(x, 1) of x[i,k] }\n}\n",
                      parts[] = "kernel parts (x: f32[,], y: f32[,]) striped {\n"
                                " for all i, j in y {\n  y[i,j] = exp(x[i,j]) / "
                                "(sum k in dim(x, 1) of exp(x[i,k])) }\n}\n",
                      pairs[] = "kernel pairs (a: f32[,], b: f32[,], y: f32[,]) {\n"
                                " for all i, j in y {\n"
                                "  s = max(b[j,0], a[i,0]) / max(b[j,1], a[i,1])\n"
                                "  y[i,j] = s / max(b[j,2], a[i,2]) - max(b[j,3], a[i,3]) }\n}\n",
                      bins[] = "kernel bins (x: u8[], h: f32[]) {\n"
                               " for all i in x { atomic h[x[i]] += 1 }\n}\n";
    qn_view v[3];
    qn_arg args[3] = {array(&v[0], QN_F32, 2, 50, 3), result(&v[1], 100, 3)};
    specialize = QN_SPECIALIZE_DYNAMIC;
    tap_ok(strstr(plan_of(pixels, 2, args), "threads 4 of dimension 1 64 of dimension 0"),
           "four threads for three channels");
    args[0] = array(&v[0], QN_F32, 2, 50, 9);
    args[1] = array_at(&v[1], values, QN_F32, 1, 50, 0);
    tap_ok(strstr(plan_of(rows, 2, args), "team threads"), "a thread for a row of nine");
    args[0] = array(&v[0], QN_F32, 2, 50, 40);
    tap_ok(strstr(plan_of(rows, 2, args), "team blocks"), "and a block for rows of any length");
    args[0] = array(&v[0], QN_F32, 2, 50, 9);
    args[1] = result(&v[1], 50, 9);
    tap_ok(strstr(plan_of(parts, 2, args), "team threads") && strstr(text, "rest dimension 1"),
           "a thread divides all of a short row by its sum");
    args[0] = array(&v[0], QN_F32, 2, 60, 4);
    args[1] = array(&v[1], QN_F32, 2, 70, 4);
    args[2] = result(&v[2], 60, 70);
    tap_ok(strstr(plan_of(pairs, 3, args), "jam 4 of dimension 0"),
           "several rows of a thread share the loads of columns");
    args[0] = vector(&v[0], QN_U8, N);
    args[1] = array_at(&v[1], values, QN_F32, 1, 300, 0);
    tap_ok(strstr(plan_of(bins, 2, args), "room of"),
           "room for bins whose number the launch knows");
    tap_ok(strstr(ptx_of(bins, 2, args), "red.shared.add.f32") &&
               strstr(text, "atom.global.cas.b32") != NULL,
           "blocks collect them if they fit, and else update memory");
    specialize = QN_SPECIALIZE_EXACT;
}

/** The inverse of what a loop does not change is made before the loop. */
static void test_inverse(void)
{
    static const char form[] = "kernel k (x: f32[], d: f32[], y: f32[]) {\n"
                               " for all i in y {\n"
                               "  t = d[i]\n s: f32 = 0\n"
                               "  for n in dim(x, 0) { s = max(s, x[n] / %s) }\n"
                               "  y[i] = s\n } }\n";
    char kernel[512];
    qn_view v[3];
    const qn_arg args[] = {vector(&v[0], QN_F32, N), vector(&v[1], QN_F32, N),
                           vector(&v[2], QN_F32, N)};
    snprintf(kernel, sizeof kernel, form, "t");
    tap_ok(count(ptx_of(kernel, 3, args), "rcp.rn.f32") == 1 && count(text, "div.rn.f32") > 1 &&
               count(text, "bra $L_q") == count(text, "div.rn.f32"),
           "quotients by an inverse, which is made once");
    snprintf(kernel, sizeof kernel, form, "(t + x[n])");
    tap_ok(!strstr(ptx_of(kernel, 3, args), "rcp.rn.f32"), "none of a divisor that changes");
}

int main(void)
{
    char reason[256];
    qn_error err = {0};
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    if (!tap_ok(qn_context_new(NULL, &c, &err) == QN_OK, "a context %s", err.message))
        return tap_done();
    test_atomics();
    test_signs();
    test_magnitude();
    test_negation();
    test_rows();
    test_limits();
    test_light();
    test_rare();
    test_trips();
    test_neighbours();
    test_kept();
    test_moved();
    test_quotients();
    test_batches();
    test_classes();
    test_inverse();
    test_pairs();
    test_sums_ahead();
    test_staged();
    test_at_once();
    qn_context_release(c);
    return tap_done();
}
