/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_product.c: sums of products, written naively: matrix products in all layouts against
 * the peak of the machine (chains of fma, in turns with ours), batches of small ones, matrix times
 * vector, and a convolution against plain loops in C. A case is a formula: "i,k;k,j->i,j" reads:
 * operand a has the dimensions i and k, b has k and j, the result i and j; what the result lacks is
 * summed; "i+p" is a dimension indexed by a sum.
 *
 * QUERN_BENCH_BLAS names a library with cblas_dgemm and cblas_sgemm: row-major products are
 * measured against it too; QUERN_BENCH_XSMM names libxsmm: batches of small products are measured
 * against its kernels, which are generated at run time too.
 */
#include "bench_model.h"
#include "native_product.h"

#include <ctype.h>
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LETTERS = 26, MAX_RANK = 4, OPERANDS = 3, N_PAIRS = 9, SAMPLED = 48, LONGEST_CHECK = 40000 };
#define SAMPLE_SECONDS 1.5e-3

typedef void (*blas_product)(int order, int ta, int tb, int m, int n, int k, double alpha,
                             const void *a, int lda, const void *b, int ldb, double beta, void *c,
                             int ldc);
typedef void (*blas_product_f32)(int order, int ta, int tb, int m, int n, int k, float alpha,
                                 const void *a, int lda, const void *b, int ldb, float beta,
                                 void *c, int ldc);

/* libxsmm: a kernel for one shape, column-major; calls of it; NULL arguments stand for defaults. */
typedef void (*small_kernel)(const void *a, const void *b, void *c);
typedef small_kernel (*small_maker)(int m, int n, int k, const int *lda, const int *ldb,
                                    const int *ldc, const void *alpha, const void *beta,
                                    const int *flags, const int *prefetch);

/* One operand: dimensions of one letter, or of two that are added. */
typedef struct operand {
    int rank;
    char index[MAX_RANK][2];
    char layout; /* 'R' or 'L' */
    int64_t extent[MAX_RANK];
} operand;

typedef struct product {
    bench *b;
    char name[80];
    int dtype;
    const char *formula, *layouts; /* of a, b and the result */
    int64_t extent[LETTERS];
    native_product_loop native; /* NULL: against the peak, or BLAS */
    void *blas;
    small_kernel
        small; /* of libxsmm, for each product of a batch; its matrices lie one behind the other */
    double goal;
    operand op[OPERANDS];
    double flops;
    bench_memory memory;
    size_t bytes[OPERANDS];
    qn_view view[OPERANDS];
    qn_arg args[OPERANDS];
    qn_kernel *k;
} product;

/* ---------------------------------------------------------------- formulas */

static void read_formula(product *p)
{
    const char *s = p->formula;
    for (int o = 0; o < OPERANDS; o++, s += *s == '-' ? 2 : *s == ';') {
        operand *x = &p->op[o];
        x->layout = p->layouts[o];
        while (isalpha((unsigned char)*s)) {
            char *index = x->index[x->rank++];
            index[0] = *s++;
            if (*s == '+') {
                index[1] = s[1];
                s += 2;
            }
            s += *s == ',';
        }
        for (int d = 0; d < x->rank; d++) {
            int64_t second = x->index[d][1] ? p->extent[x->index[d][1] - 'a'] - 1 : 0;
            x->extent[d] = p->extent[x->index[d][0] - 'a'] + second;
        }
    }
    p->flops = 2;
    for (int l = 0; l < LETTERS; l++)
        p->flops *= p->extent[l] ? (double)p->extent[l] : 1;
}

static bool is_summed(const product *p, int letter)
{
    for (int d = 0; d < p->op[2].rank; d++)
        if (p->op[2].index[d][0] == 'a' + letter)
            return false;
    return p->extent[letter] > 0;
}

static qn_val load_operand(qn_builder *b, const operand *x, qn_param view, const qn_val *letter)
{
    qn_val index[MAX_RANK];
    for (int d = 0; d < x->rank; d++) {
        index[d] = letter[x->index[d][0] - 'a'];
        if (x->index[d][1])
            index[d] = qn_add(b, index[d], letter[x->index[d][1] - 'a']);
    }
    return qn_load(b, view, x->rank, index);
}

/* Extents are those of the letters: constants of the kernel. */
static void build(product *p, qn_builder *b)
{
    static const char *const names[OPERANDS] = {"a", "b", "c"};
    qn_param view[OPERANDS];
    qn_val letter[LETTERS] = {{0}}, summed[LETTERS], result[MAX_RANK];
    int n_summed = 0;
    for (int o = 0; o < OPERANDS; o++)
        view[o] = qn_view_param(b, names[o], p->dtype, p->op[o].rank, 0);
    for (int d = 0; d < p->op[2].rank; d++) {
        int l = p->op[2].index[d][0] - 'a';
        result[d] = letter[l] = qn_parallel(b, qn_index(b, 0), qn_index(b, p->extent[l]));
    }
    for (int l = 0; l < LETTERS; l++)
        if (is_summed(p, l))
            summed[n_summed++] = letter[l] =
                qn_reduction(b, qn_index(b, 0), qn_index(b, p->extent[l]));
    qn_reduce(b, QN_COMBINE_SUM, QN_ORDER_DEFAULT, n_summed, summed);
    qn_val x = load_operand(b, &p->op[0], view[0], letter),
           y = load_operand(b, &p->op[1], view[1], letter);
    qn_val sum = qn_end_reduce(b, qn_mul(b, x, y));
    qn_store(b, view[2], p->op[2].rank, result, sum);
}

/* ---------------------------------------------------------------- cases */

static void fill(product *p, int o)
{
    uint64_t state = 88172645463325252u + (uint64_t)o;
    size_t n = p->bytes[o] / (size_t)qn_dtype_bytes(p->dtype);
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        double value = o == 2 ? 0 : (double)(int64_t)(state >> 12) * 0x1p-51 - 1;
        if (p->dtype == QN_F32)
            ((float *)p->memory.at[o])[i] = (float)value;
        else
            ((double *)p->memory.at[o])[i] = value;
    }
}

static bool make(product *p)
{
    qn_error error = {0};
    read_formula(p);
    for (int o = 0; o < OPERANDS; o++) {
        p->bytes[o] = (size_t)qn_dtype_bytes(p->dtype);
        for (int d = 0; d < p->op[o].rank; d++)
            p->bytes[o] *= (size_t)p->op[o].extent[d];
    }
    qn_builder *b = qn_builder_new("product", QN_CONTRACT);
    qn_status status =
        b ? bench_memory_make(&p->memory, OPERANDS, p->bytes, &error) : QN_ERR_MEMORY;
    for (int o = 0; o < OPERANDS && !status; o++) {
        const operand *x = &p->op[o];
        qn_layout layout;
        fill(p, o);
        status = x->layout == 'L' ? qn_layout_left(x->rank, x->extent, &layout, &error)
                                  : qn_layout_right(x->rank, x->extent, &layout, &error);
        if (!status)
            status =
                qn_view_wrap("operand", p->memory.at[o], p->dtype, &layout, 0, &p->view[o], &error);
        p->args[o] = qn_arg_view(&p->view[o]);
    }
    if (!status) {
        build(p, b);
        status = qn_finish(b, &p->k, &error);
    }
    qn_builder_release(b);
    if (status)
        bench_wrong(p->b, p->name, "%s", error.message);
    return status == QN_OK;
}

static void release(product *p)
{
    for (int o = 0; o < OPERANDS; o++)
        qn_view_release(&p->view[o]);
    qn_kernel_release(p->k);
    bench_memory_free(&p->memory);
}

/* ---------------------------------------------------------------- checks */

static double element(const product *p, int o, const int64_t *letter)
{
    const operand *x = &p->op[o];
    int64_t offset = 0, stride = 1;
    for (int n = 0; n < x->rank; n++) {
        int d = x->layout == 'L' ? n : x->rank - 1 - n;
        int64_t index =
            letter[x->index[d][0] - 'a'] + (x->index[d][1] ? letter[x->index[d][1] - 'a'] : 0);
        offset += index * stride;
        stride *= x->extent[d];
    }
    return p->dtype == QN_F32 ? ((const float *)p->memory.at[o])[offset]
                              : ((const double *)p->memory.at[o])[offset];
}

/* The sum of one element of the result in the order rule of up to 4096 points: one chain of fma. */
static double expected(const product *p, int64_t *letter)
{
    double sum = -0.0;
    for (int l = 0; l < LETTERS; l++)
        if (is_summed(p, l))
            letter[l] = 0;
    for (;;) {
        double x = element(p, 0, letter), y = element(p, 1, letter);
        sum = p->dtype == QN_F32 ? (double)fmaf((float)x, (float)y, (float)sum) : fma(x, y, sum);
        int l = LETTERS - 1;
        for (; l >= 0; l--) {
            if (!is_summed(p, l))
                continue;
            if (++letter[l] < p->extent[l])
                break;
            letter[l] = 0;
        }
        if (l < 0)
            return sum;
    }
}

/* Some elements of the result, corners among them, against chains of fma; small cases also against
 * the interpreter. */
static bool check(product *p, qn_call *call)
{
    qn_error error = {0};
    if (qn_run(call, &error)) {
        bench_wrong(p->b, p->name, "%s", error.message);
        return false;
    }
    for (int n = 0; n < SAMPLED; n++) {
        int64_t letter[LETTERS] = {0};
        for (int d = 0; d < p->op[2].rank; d++) {
            int64_t extent = p->op[2].extent[d];
            letter[p->op[2].index[d][0] - 'a'] = n == 0 ? 0 : n == 1 ? extent - 1 : rand() % extent;
        }
        double is = element(p, 2, letter), should = expected(p, letter);
        if (memcmp(&is, &should, sizeof is)) {
            bench_wrong(p->b, p->name, "%.17g instead of %.17g", is, should);
            return false;
        }
    }
    if (p->flops > (double)LONGEST_CHECK)
        return true;
    void *ours = malloc(p->bytes[2]);
    bool is_equal = false;
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    if (ours) {
        memcpy(ours, p->memory.at[2], p->bytes[2]);
        fill(p, 2);
        is_equal = qn_launch(p->b->context, p->k, OPERANDS, p->args, &o, &error) == QN_OK &&
                   memcmp(ours, p->memory.at[2], p->bytes[2]) == 0;
    }
    if (!is_equal)
        bench_wrong(p->b, p->name, "differs from the interpreter %s", error.message);
    free(ours);
    return is_equal;
}

/* ---------------------------------------------------------------- timing */

static void run_blas(const product *p)
{
    int n = (int)p->extent['i' - 'a'];
    void *const *m = p->memory.at;
    union {
        void *object;
        blas_product f64;
        blas_product_f32 f32;
    } f = {p->blas};
    if (p->dtype == QN_F32)
        f.f32(101, 111, 111, n, n, n, 1, m[0], n, m[1], n, 0, m[2], n);
    else
        f.f64(101, 111, 111, n, n, n, 1, m[0], n, m[1], n, 0, m[2], n);
}

/* A row-major product is the column-major one of the operands the other way round. */
static void run_small(const product *p)
{
    int64_t n = p->extent['i' - 'a'], bytes = n * n * qn_dtype_bytes(p->dtype);
    char *const *m = (char *const *)p->memory.at;
    for (int64_t i = 0; i < p->extent['m' - 'a']; i++)
        p->small(m[1] + i * bytes, m[0] + i * bytes, m[2] + i * bytes);
}

/* Seconds of one call of ours (`call`), of theirs, or of the chains in which the peak does as much.
 */
static double sample(const product *p, qn_call *call, int n)
{
    double start = bench_thread_time();
    if (!call && !p->native && !p->blas && !p->small) {
        int64_t steps = (int64_t)(p->flops * n / (p->dtype == QN_F32 ? 384 : 192)) + 1;
        double done = (p->dtype == QN_F32 ? native_peak_f32 : native_peak_f64)(steps, start);
        return (bench_thread_time() - start) / done * p->flops;
    }
    for (int i = 0; i < n; i++) {
        if (call)
            (void)qn_run(call, NULL);
        else if (p->blas)
            run_blas(p);
        else if (p->small)
            run_small(p);
        else
            p->native(p->memory.at[2], p->memory.at[0], p->memory.at[1]);
    }
    return (bench_thread_time() - start) / n;
}

/* Time of the thread, not of the clock: what others run on the processor does not count. */
static void time_product(product *p, qn_call *call)
{
    double ours[N_PAIRS], theirs[N_PAIRS];
    int n = 1;
    if (bench_model_times(p->b, call))
        return;
    while (n < 1 << 20 && sample(p, call, n) * n < SAMPLE_SECONDS)
        n *= 2;
    for (int i = 0; i < N_PAIRS; i++) {
        ours[i] = sample(p, call, n);
        theirs[i] = sample(p, NULL, n);
    }
    bench_line line = {.name = p->name,
                       .group = p->native ? GROUP_EXACT : GROUP_PEAK,
                       .goal = p->goal,
                       .short_below = p->goal};
    bench_report_pairs(p->b, &line, ours, theirs, N_PAIRS);
}

static void run(product *p)
{
    qn_error error = {0};
    qn_call *call = NULL;
    qn_options o = bench_options(p->b);
    if (!bench_wants(p->b, p->name))
        return;
    if (make(p)) {
        if (p->b->assembly_of)
            bench_print_assembly(p->b, p->name, p->k, OPERANDS, p->args, &o);
        else if (bench_prepare(p->b, p->k, OPERANDS, p->args, &o, &call, &error))
            bench_wrong(p->b, p->name, "%s", error.message);
        else if (check(p, call))
            time_product(p, call);
    }
    qn_call_release(call);
    release(p);
}

/* ---------------------------------------------------------------- lists */

static native_product_loop native_of(const char *name, int64_t n, int dtype)
{
    for (const native_product *x = native_products; x->name; x++)
        if (!strcmp(x->name, name) && x->n == n)
            return x->loop[dtype == QN_F64];
    return NULL;
}

/* matrix/DTYPE/LAYOUTS/N against the peak: n: by rows, t: by columns; the result by rows. */
static void matrix_cases(bench *b, int dtype)
{
    static const struct {
        const char *name, *layouts;
    } form[] = {{"nn", "RRR"}, {"nt", "RLR"}, {"tn", "LRR"}, {"tt", "LLR"}};
    static const int extents[] = {16,  24,  32,  48,  53,  64,   97,   127,  192,
                                  256, 384, 509, 512, 768, 1021, 1024, 1536, 2048};
    const char *path = getenv("QUERN_BENCH_BLAS");
    void *blas = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int f = 0; f < 4; f++)
        for (size_t e = 0; e < sizeof extents / sizeof *extents; e++) {
            int n = extents[e];
            bool is_even = n % 16 == 0, is_middle = n >= 192 && n <= 1024;
            product p = {
                .b = b, .dtype = dtype, .formula = "i,k;k,j->i,j", .layouts = form[f].layouts};
            p.extent['i' - 'a'] = p.extent['j' - 'a'] = p.extent['k' - 'a'] = n;
            p.goal = n < 48 ? 0.5 : f || n > 1024 ? 0.75 : is_even && is_middle ? 0.9 : 0.8;
            product against = p;
            snprintf(p.name, sizeof p.name, "matrix/%s/%s/%d", qn_dtype_name(dtype), form[f].name,
                     n);
            run(&p);
            against.blas =
                blas && !f ? dlsym(blas, dtype == QN_F32 ? "cblas_sgemm" : "cblas_dgemm") : NULL;
            against.goal = 1.5;
            snprintf(against.name, sizeof against.name, "matrix_blas/%s/%d", qn_dtype_name(dtype),
                     n);
            if (against.blas)
                run(&against);
        }
    for (int n = 192; n <= 960; n += 768) {
        product p = {
            .b = b, .dtype = dtype, .formula = "i,k;k,j->i,j", .layouts = "RRR", .goal = 0.95};
        p.extent['i' - 'a'] = p.extent['j' - 'a'] = p.extent['k' - 'a'] = n;
        p.native = native_of("tile", n, dtype);
        snprintf(p.name, sizeof p.name, "matrix_tile/%s/%d", qn_dtype_name(dtype), n);
        run(&p);
    }
}

static small_kernel make_small(void *library, int dtype, int n)
{
    union {
        void *object;
        small_maker make;
    } f = {dlsym(library, dtype == QN_F32 ? "libxsmm_smmdispatch" : "libxsmm_dmmdispatch")};
    const float none_f32 = 0;
    const double none = 0;
    return f.make ? f.make(n, n, n, NULL, NULL, NULL, NULL,
                           dtype == QN_F32 ? (const void *)&none_f32 : &none, NULL, NULL)
                  : NULL;
}

/* batch_xsmm/DTYPE/first or last/in or out/N: in the second-level cache; three arrays of 128 MiB.
 */
static void small_cases(bench *b, int dtype)
{
    static const int small[] = {3, 4, 5, 8, 12, 13, 16, 23, 24, 32};
    const char *path = getenv("QUERN_BENCH_XSMM");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; library && i < 4 * sizeof small / sizeof *small; i++) {
        int n = small[i / 4], count = BATCH_COUNT(n);
        bool is_last = i & 1, is_out = i & 2;
        if (is_out)
            count = (int)((128 << 20) / qn_dtype_bytes(dtype) / (n * n) / 16 | 1) *
                    16; /* no power of two */
        product p = {.b = b, .dtype = dtype, .layouts = "RRR", .goal = 0.8};
        p.formula = is_last ? "i,k,m;k,j,m->i,j,m" : "m,i,k;m,k,j->m,i,j";
        p.extent['i' - 'a'] = p.extent['j' - 'a'] = p.extent['k' - 'a'] = n;
        p.extent['m' - 'a'] = count;
        p.small = make_small(library, dtype, n);
        snprintf(p.name, sizeof p.name, "batch_xsmm/%s/%s/%s/%d", qn_dtype_name(dtype),
                 is_last ? "last" : "first", is_out ? "out" : "in", n);
        if (p.small)
            run(&p);
    }
}

/* batch/DTYPE/first or last/N, vector/DTYPE/rows or columns/N, convolution/DTYPE, against plain
 * loops. */
static void other_cases(bench *b, int dtype)
{
    static const int small[] = {3, 4, 8, 16, 23, 32};
    for (int i = 0; i < 12; i++) {
        int n = small[i / 2];
        const char *kind = i % 2 ? "last" : "first";
        product p = {.b = b, .dtype = dtype, .layouts = "RRR", .goal = 0.9};
        p.formula = i % 2 ? "i,k,m;k,j,m->i,j,m" : "m,i,k;m,k,j->m,i,j";
        p.extent['i' - 'a'] = p.extent['j' - 'a'] = p.extent['k' - 'a'] = n;
        p.extent['m' - 'a'] = BATCH_COUNT(n);
        p.native = native_of(kind, n, dtype);
        snprintf(p.name, sizeof p.name, "batch/%s/%s/%d", qn_dtype_name(dtype), kind, n);
        run(&p);
    }
    static const int long_ones[] = {250, 1024, 4000, 4096};
    for (int i = 0; i < 8; i++) {
        int n = long_ones[i / 2];
        product p = {.b = b,
                     .dtype = dtype,
                     .formula = "i,k;k->i",
                     .layouts = i % 2 ? "LRR" : "RRR",
                     .goal = 0.9};
        p.extent['i' - 'a'] = p.extent['k' - 'a'] = n;
        p.native = native_of(i % 2 ? "columns" : "rows", n, dtype);
        snprintf(p.name, sizeof p.name, "vector/%s/%s/%d", qn_dtype_name(dtype),
                 i % 2 ? "columns" : "rows", n);
        run(&p);
    }
    product p = {.b = b,
                 .dtype = dtype,
                 .formula = "i+p,j+q,k+r;p,q,r->i,j,k",
                 .layouts = "RRR",
                 .goal = 0.9};
    for (const char *l = "ijk"; *l; l++)
        p.extent[*l - 'a'] = CONVOLUTION_N;
    for (const char *l = "pqr"; *l; l++)
        p.extent[*l - 'a'] = 3;
    p.native = native_of("convolution", CONVOLUTION_N, dtype);
    snprintf(p.name, sizeof p.name, "convolution/%s", qn_dtype_name(dtype));
    run(&p);
}

void bench_product_cases(bench *b)
{
    for (int i = 0; i < 2; i++) {
        matrix_cases(b, i ? QN_F32 : QN_F64);
        other_cases(b, i ? QN_F32 : QN_F64);
        small_cases(b, i ? QN_F32 : QN_F64);
    }
}
