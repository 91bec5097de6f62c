/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_dtypes.c: elements of several parts. Complex numbers against C's own, records in packed and
 * aligned forms, views of fields, copies and fills, on the interpreter and on x86 with both
 * instruction sets, exact and dynamic.
 */
#include "tests/fill.h"
#include "quern/bytes.h"
#include "tests/unit/launch.h"

#include <complex.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

static qn_context *context;
#define INDEX(...) ((const int64_t[]){__VA_ARGS__})

/* ---------------------------------------------------------------- engines */

static const struct {
    const char *name;
    int engine, isa, specialize, executor;
} ways[] = {
    {"interpreter", QN_ENGINE_INTERP, 0, 0, QN_SERIAL},
    {"v4", QN_ENGINE_NATIVE, QN_ISA_V4, QN_SPECIALIZE_EXACT, QN_SERIAL},
    {"v4 dynamic", QN_ENGINE_NATIVE, QN_ISA_V4, QN_SPECIALIZE_DYNAMIC, QN_SERIAL},
    {"v3", QN_ENGINE_NATIVE, QN_ISA_V3, QN_SPECIALIZE_EXACT, QN_SERIAL},
    {"v3 dynamic", QN_ENGINE_NATIVE, QN_ISA_V3, QN_SPECIALIZE_DYNAMIC, QN_THREADS},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

/** Launches one way; skips where the engine is not there. */
static bool launch_way(int w, const qn_kernel *k, int n, const qn_arg *args)
{
    qn_options o = {.bytes = sizeof o,
                    .engine = ways[w].engine,
                    .isa = ways[w].isa,
                    .specialize = ways[w].specialize,
                    .executor = ways[w].executor};
    qn_error err = {0};
    qn_status status = qn_launch(context, k, n, args, &o, &err);
    if (status == QN_OK)
        return true;
    if (status == QN_ERR_TARGET || status == QN_ERR_PROVIDER || status == QN_ERR_NOT_AVAILABLE)
        tap_skip(err.message);
    else
        tap_ok(false, "%s: %s", ways[w].name, err.message);
    return false;
}

static qn_kernel *finish(qn_builder *b)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    if (qn_finish(b, &k, &err) != QN_OK)
        tap_ok(false, "kernel: %s", err.message);
    qn_builder_release(b);
    return k;
}

/** The text of a kernel is read back as the same text. */
static void check_text(const qn_kernel *k, const char *what)
{
    char text[16384], again[16384];
    qn_kernel *copy = NULL;
    qn_error err = {0};
    size_t n = qn_kernel_print(k, text, sizeof text);
    bool is_same = n < sizeof text && qn_kernel_parse(text, n, &copy, &err) == QN_OK &&
                   qn_kernel_print(copy, again, sizeof again) == n && strcmp(text, again) == 0;
    if (!tap_ok(is_same, "%s: text there and back", what))
        tap_note("%s\n%s", err.message, text);
    qn_kernel_release(copy);
}

/* ---------------------------------------------------------------- complex numbers */

enum { N_RESULTS = 9 };

/** out[r, i] of x[i], y[i] and s: sum, difference, product, quotient, ... */
static qn_kernel *complex_kernel(int dtype)
{
    qn_builder *b = qn_builder_new("complex", 0);
    qn_param x = qn_view_param(b, "x", dtype, 1, QN_READ_ONLY),
             y = qn_view_param(b, "y", dtype, 1, 0);
    qn_param out = qn_view_param(b, "out", dtype, 2, 0);
    qn_val s = qn_scalar_param(b, "s", dtype);
    qn_val i = qn_parallel_over(b, x, 0);
    qn_val u = qn_load(b, x, 1, &i), v = qn_load(b, y, 1, &i);
    qn_val zero = qn_const_int(b, dtype, 0), four = qn_index(b, 4), start = qn_index(b, 0), t, r;
    qn_val results[N_RESULTS] = {qn_add(b, u, v), qn_sub(b, u, v), qn_mul(b, u, v), qn_div(b, u, v),
                                 qn_add(b, qn_conj(b, u), s)};
    results[5] = qn_select(b, qn_eq(b, u, v), zero, qn_neg(b, u));
    qn_val k = qn_for(b, start, four, 1, 1, &u, &t); /* u v^4 + a number of its own index */
    qn_val next = qn_mul(b, t, v);
    qn_end_for(b, 1, &next, &r);
    (void)k;
    results[6] = r;
    qn_if(b, qn_lt(b, qn_real(b, u), qn_imag(b, u)));
    qn_else(b, 1, &v);
    qn_end_if(b, 1, &u, &r);
    results[7] = r;
    qn_val magnitude = qn_magnitude(b, u);
    results[8] = qn_cast(b, dtype, magnitude);
    for (int n = 0; n < N_RESULTS; n++) {
        qn_val at[2] = {qn_index(b, n), i};
        qn_store(b, out, 2, at, results[n]);
    }
    return finish(b);
}

static bool is_near(double found, double expected, double tolerance)
{
    return fabs(found - expected) <= tolerance * (1 + fabs(expected));
}

static void check_complex(const char *way, int dtype, int64_t n, const qn_view *x, const qn_view *y,
                          const qn_view *out)
{
    int wrong = 0;
    double tolerance = dtype == QN_C64 ? 1e-5 : 1e-13;
    const double _Complex s = 0.5 - 2 * I;
    for (int64_t i = 0; i < n; i++) {
        double _Complex u, v, z;
        for (int r = 0; r < N_RESULTS; r++) {
            void *at[3];
            qn_view_at(x, 1, INDEX(i), &at[0], NULL);
            qn_view_at(y, 1, INDEX(i), &at[1], NULL);
            qn_view_at(out, 2, INDEX(r, i), &at[2], NULL);
            u = dtype == QN_C64 ? *(float _Complex *)at[0] : *(double _Complex *)at[0];
            v = dtype == QN_C64 ? *(float _Complex *)at[1] : *(double _Complex *)at[1];
            z = dtype == QN_C64 ? *(float _Complex *)at[2] : *(double _Complex *)at[2];
            const double _Complex expected[N_RESULTS] = {
                u + v, u - v, u * v, u / v, conj(u) + s, u == v ? 0 : -u, u * v * v * v * v,
                creal(u) < cimag(u) ? v : u, cabs(u)};
            wrong += !is_near(creal(z), creal(expected[r]), tolerance) ||
                     !is_near(cimag(z), cimag(expected[r]), tolerance);
            if (wrong == 1)
                tap_note("%s: result %d of %g%+gi, %g%+gi: %g%+gi", way, r, creal(u), cimag(u),
                         creal(v), cimag(v), creal(z), cimag(z));
        }
    }
    tap_ok(wrong == 0, "%s of %s, n = %d", way, qn_dtype_name(dtype), (int)n);
}

static void fill_complex(const qn_view *v, int dtype, int seed)
{
    for (int64_t i = 0; i < v->layout.dim[0].extent; i++) {
        void *at;
        qn_view_at(v, 1, INDEX(i), &at, NULL);
        double _Complex z = (double)((i * 37 + seed) % 19 - 9) / 4.0 +
                            ((double)((i * 11 + seed) % 13) + 0.5) / 4.0 * I;
        if (dtype == QN_C64)
            *(float _Complex *)at = (float _Complex)z;
        else
            *(double _Complex *)at = z;
    }
}

static void test_complex(int dtype)
{
    static const int64_t sizes[] = {1, 3, 8, 17, 100};
    qn_kernel *k = complex_kernel(dtype);
    if (!k)
        return;
    check_text(k, qn_dtype_name(dtype));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int w = 0; w < N_WAYS; w++) {
            int64_t n = sizes[s];
            qn_view x, y, out;
            qn_layout reversed;
            qn_view_new(context, "x", dtype, 1, &n, &x, NULL);
            qn_view_new(context, "y", dtype, 1, &n, &y, NULL);
            qn_layout_reverse(&y.layout, 0, &reversed, NULL);
            qn_view_with_layout(&y, &reversed, &y, NULL);
            qn_layout left;
            qn_layout_left(2, INDEX(N_RESULTS, n), &left, NULL);
            qn_view_alloc(context, "out", dtype, &left, 0, &out, NULL);
            fill_complex(&x, dtype, 1);
            fill_complex(&y, dtype, 5);
            qn_arg args[4] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_view(&out),
                              dtype == QN_C64 ? qn_arg_c64(0.5f, -2) : qn_arg_c128(0.5, -2)};
            if (launch_way(w, k, 4, args))
                check_complex(ways[w].name, dtype, n, &x, &y, &out);
            qn_view_release(&x);
            qn_view_release(&y);
            qn_view_release(&out);
        }
    qn_kernel_release(k);
}

/** Row sums of products, a reduce inside of which another value is computed. */
static void test_complex_sum(void)
{
    enum { ROWS = 3, COLUMNS = 21 };
    qn_builder *b = qn_builder_new("sums", QN_CONTRACT);
    qn_param x = qn_view_param(b, "x", QN_C128, 2, 0), y = qn_view_param(b, "y", QN_C128, 1, 0);
    qn_val i = qn_parallel_over(b, x, 0), j = qn_reduction_over(b, x, 1), t;
    qn_reduce(b, QN_COMBINE_SUM, 0, 1, &j);
    qn_val z = qn_load(b, x, 2, (qn_val[]){i, j});
    qn_if(b, qn_gt(b, qn_real(b, z), qn_const_float(b, QN_F64, 3)));
    qn_val product = qn_mul(b, z, z);
    qn_else(b, 1, &product);
    qn_end_if(b, 1, &z, &t);
    qn_val sum = qn_end_reduce(b, t);
    qn_store(b, y, 1, &i, sum);
    qn_kernel *k = finish(b);
    if (!k)
        return;
    check_text(k, "sum");
    qn_view in, out;
    qn_view_new(context, "in", QN_C128, 2, INDEX(ROWS, COLUMNS), &in, NULL);
    qn_view_new(context, "out", QN_C128, 1, INDEX(ROWS), &out, NULL);
    double _Complex *data = in.data, expected[ROWS] = {0};
    for (int n = 0; n < ROWS * COLUMNS; n++) {
        data[n] = n % 7 - (double)(n % 5) * I;
        expected[n / COLUMNS] += creal(data[n]) > 3 ? data[n] * data[n] : data[n];
    }
    for (int w = 0; w < N_WAYS; w++) {
        qn_arg args[2] = {qn_arg_view(&in), qn_arg_view(&out)};
        if (launch_way(w, k, 2, args))
            tap_ok(memcmp(out.data, expected, sizeof expected) == 0, "complex sums: %s",
                   ways[w].name);
    }
    qn_view_release(&in);
    qn_view_release(&out);
    qn_kernel_release(k);
}

/** The quotient does not overflow on the way, and the magnitude neither. */
static void test_complex_scaling(void)
{
    qn_builder *b = qn_builder_new("scaling", 0);
    qn_param x = qn_view_param(b, "x", QN_C128, 1, 0), y = qn_view_param(b, "y", QN_C128, 1, 0);
    qn_param m = qn_view_param(b, "m", QN_F64, 1, 0);
    qn_val i = qn_parallel_over(b, x, 0), u = qn_load(b, x, 1, &i), v = qn_load(b, y, 1, &i);
    qn_store(b, m, 1, &i, qn_magnitude(b, v));
    qn_store(b, x, 1, &i, qn_div(b, u, v));
    qn_kernel *k = finish(b);
    double a[] = {1e300, 1e300, 1e-300, 0, 3, -3}, c[] = {2e300, 0, 0, 4e-300, 0, 0}, size[3];
    qn_view views[3];
    qn_layout l;
    qn_layout_right(1, INDEX(3), &l, NULL);
    qn_view_wrap("a", a, QN_C128, &l, 0, &views[0], NULL);
    qn_view_wrap("c", c, QN_C128, &l, 0, &views[1], NULL);
    qn_view_wrap("m", size, QN_F64, &l, 0, &views[2], NULL);
    qn_arg args[3] = {qn_arg_view(&views[0]), qn_arg_view(&views[1]), qn_arg_view(&views[2])};
    if (k && launch_way(0, k, 3, args)) {
        tap_ok(a[0] == 0.5 && a[1] == 0.5 && a[2] == 0 && a[3] == -0.25, "quotients are scaled");
        tap_ok(isnan(a[4]) && isnan(a[5]), "and NaN by 0");
        tap_ok(size[0] == 2e300 && size[1] == 4e-300 && size[2] == 0, "magnitudes are scaled");
    }
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- records */

typedef struct particle {
    double x;
    float v;
    uint8_t kind;
    float _Complex phase;
    int16_t cell;
} particle;

#pragma pack(push, 1)
typedef struct packed_particle {
    uint8_t kind;
    double x;
    float v;
    float _Complex phase;
    int16_t cell;
} packed_particle;
#pragma pack(pop)

enum { X, V, KIND, PHASE, CELL, N_FIELDS };

static qn_record *record_of(bool is_packed)
{
    const qn_field aligned[N_FIELDS] = {{"x", QN_F64, 0, QN_NEXT},
                                        {"v", QN_F32, 0, QN_NEXT},
                                        {"kind", QN_U8, 0, QN_NEXT},
                                        {"phase", QN_C64, 0, QN_NEXT},
                                        {"cell", QN_I16, 0, QN_NEXT}};
    const qn_field packed[N_FIELDS] = {{"x", QN_F64, 0, offsetof(packed_particle, x)},
                                       {"v", QN_F32, 0, offsetof(packed_particle, v)},
                                       {"kind", QN_U8, 0, offsetof(packed_particle, kind)},
                                       {"phase", QN_C64, 0, offsetof(packed_particle, phase)},
                                       {"cell", QN_I16, 0, offsetof(packed_particle, cell)}};
    qn_record *r = NULL;
    qn_error err = {0};
    if (qn_record_new(N_FIELDS, is_packed ? packed : aligned, 0, is_packed ? QN_PACKED : 0, &r,
                      &err))
        tap_ok(false, "record: %s", err.message);
    return r;
}

static void test_record_types(void)
{
    qn_record *r = record_of(false), *p = record_of(true), *other = NULL;
    qn_field f;
    qn_error err = {0};
    tap_ok(qn_record_bytes(r) == sizeof(particle) && qn_record_alignment(r) == _Alignof(particle),
           "the aligned form is that of C");
    tap_ok(qn_record_field(r, PHASE, &f, &err) == QN_OK && f.offset == offsetof(particle, phase) &&
               f.dtype == QN_C64 && strcmp(f.name, "phase") == 0,
           "a field is where C has it");
    tap_ok(qn_record_bytes(p) == sizeof(packed_particle) && qn_record_alignment(p) == 1, "packed");
    tap_ok(qn_record_find(p, "cell") == CELL && qn_record_find(p, "none") == -1, "find by name");
    tap_ok(!qn_record_equal(r, p) && qn_record_equal(r, r), "equality");
    tap_ok(qn_record_field(r, 5, &f, &err) == QN_ERR_NOT_FOUND, "no such field");
    const qn_field overlap[] = {{"a", QN_I32, 0, 0}, {"b", QN_I16, 0, 2}};
    const qn_field same[] = {{"a", QN_I32, 0, 0}, {"a", QN_I16, 0, 4}};
    const qn_field crooked[] = {{"a", QN_I32, 0, 1}};
    const qn_field nested[] = {{"a", QN_RECORD, 0, 0}};
    tap_ok(qn_record_new(2, overlap, 0, 0, &other, &err) == QN_ERR_EXTENT &&
               strstr(err.message, "overlap at byte 2"),
           "fields that overlap");
    tap_ok(qn_record_new(2, same, 0, 0, &other, &err) == QN_ERR_ARGUMENT, "equal names");
    tap_ok(qn_record_new(1, crooked, 0, 0, &other, &err) == QN_ERR_ALIGNMENT, "not aligned");
    tap_ok(qn_record_new(1, crooked, 0, QN_PACKED, &other, &err) == QN_OK &&
               qn_record_bytes(other) == 5,
           "not aligned, but packed");
    qn_record_release(other);
    tap_ok(qn_record_new(1, nested, 0, 0, &other, &err) == QN_ERR_DTYPE, "a record in a record");
    tap_ok(qn_record_new(1, same, 3, 0, &other, &err) == QN_ERR_EXTENT, "too few bytes");
    tap_ok(qn_record_new(0, same, 0, 0, &other, &err) == QN_ERR_LIMIT &&
               qn_record_new(1, NULL, 0, 0, &other, &err) == QN_ERR_ARGUMENT,
           "no fields");
    qn_record_release(p);
    qn_record_release(r);
}

/** a[i].x += a[i].v; phase and cell change; b[i] = a[i] whole with another kind; sum of v. */
static qn_kernel *record_kernel(const qn_record *r)
{
    qn_builder *b = qn_builder_new("particles", 0);
    qn_param a = qn_record_param(b, "a", r, 1, 0), c = qn_record_param(b, "c", r, 2, 0);
    qn_val i = qn_parallel_over(b, a, 0);
    qn_val v = qn_load_field(b, a, V, 1, &i), x = qn_load_field(b, a, X, 1, &i);
    qn_store_field(b, a, X, 1, &i, qn_add(b, x, qn_cast(b, QN_F64, v)));
    qn_store_field(b, a, PHASE, 1, &i, qn_conj(b, qn_load_field(b, a, PHASE, 1, &i)));
    qn_val whole = qn_load(b, a, 1, &i);
    qn_val other = qn_with_field(b, whole, KIND, qn_const_int(b, QN_U8, 9));
    qn_store(b, c, 2, (qn_val[]){qn_index(b, 0), i}, other);
    qn_val fields[N_FIELDS] = {qn_field_of(b, whole, V), v, qn_field_of(b, other, KIND),
                               qn_field_of(b, whole, PHASE), qn_cast(b, QN_I16, i)};
    fields[X] = qn_cast(b, QN_F64, fields[X]);
    qn_val made = qn_record_of(b, r, N_FIELDS, fields);
    qn_val is_even = qn_eq(b, qn_and(b, i, qn_index(b, 1)), qn_index(b, 0));
    qn_store(b, c, 2, (qn_val[]){qn_index(b, 1), i}, qn_select(b, is_even, made, whole));
    return finish(b);
}

static void set_particle(particle *p, int i)
{
    *p = (particle){.x = i * 0.5,
                    .v = (float)i,
                    .kind = (uint8_t)(i % 5),
                    .phase = (float)i + 2 * I,
                    .cell = (int16_t)-i};
}

static void to_packed(const particle *p, packed_particle *out)
{
    *out = (packed_particle){
        .x = p->x, .v = p->v, .kind = p->kind, .phase = p->phase, .cell = p->cell};
}

static bool same_particle(bool is_packed, const void *found, const particle *p)
{
    packed_particle q;
    to_packed(p, &q);
    if (is_packed)
        return memcmp(found, &q, sizeof q) == 0;
    const particle *f = found;
    return f->x == p->x && f->v == p->v && f->kind == p->kind && f->phase == p->phase &&
           f->cell == p->cell;
}

static void run_records(bool is_packed, int64_t n, int w, const qn_record *r, const qn_kernel *k)
{
    qn_view a, c;
    qn_layout l, rows;
    qn_layout_right(1, &n, &l, NULL);
    qn_layout_left(2, INDEX(2, n), &rows, NULL);
    qn_view_alloc_record(context, "a", r, &l, 0, &a, NULL);
    qn_view_alloc_record(context, "c", r, &rows, 0, &c, NULL);
    for (int i = 0; i < n; i++) {
        particle p;
        packed_particle q;
        set_particle(&p, i);
        to_packed(&p, &q);
        memcpy((char *)a.data + i * qn_record_bytes(r), is_packed ? (void *)&q : (void *)&p,
               (size_t)qn_record_bytes(r));
    }
    qn_arg args[2] = {qn_arg_view(&a), qn_arg_view(&c)};
    int wrong = 0;
    if (launch_way(w, k, 2, args)) {
        for (int i = 0; i < n; i++) {
            particle p, other;
            void *at[3];
            set_particle(&p, i);
            p.x += (double)p.v;
            p.phase = conjf(p.phase);
            other = p;
            other.kind = 9;
            qn_view_at(&a, 1, INDEX(i), &at[0], NULL);
            qn_view_at(&c, 2, INDEX(0, i), &at[1], NULL);
            qn_view_at(&c, 2, INDEX(1, i), &at[2], NULL);
            wrong +=
                !same_particle(is_packed, at[0], &p) || !same_particle(is_packed, at[1], &other);
            particle made = {
                .x = (double)p.v, .v = p.v, .kind = 9, .phase = p.phase, .cell = (int16_t)i};
            wrong += !same_particle(is_packed, at[2], i % 2 ? &p : &made);
        }
        tap_ok(wrong == 0, "%s records, n = %d: %s", is_packed ? "packed" : "aligned", (int)n,
               ways[w].name);
    }
    qn_view_release(&a);
    qn_view_release(&c);
}

static void test_records(bool is_packed)
{
    qn_record *r = record_of(is_packed);
    qn_kernel *k = record_kernel(r);
    if (k) {
        check_text(k, is_packed ? "packed records" : "aligned records");
        for (int w = 0; w < N_WAYS; w++) {
            run_records(is_packed, 3, w, r, k);
            run_records(is_packed, 50, w, r, k);
        }
    }
    qn_kernel_release(k);
    qn_record_release(r);
}

/* ---------------------------------------------------------------- views of fields */

/** A kernel on the view of a field; copies between it and a dense view. */
static void test_field_views(bool is_packed)
{
    enum { N = 37 };
    qn_record *r = record_of(is_packed);
    qn_view a, x, dense, cell, im;
    qn_error err = {0};
    qn_layout l;
    qn_layout_right(1, INDEX(N), &l, NULL);
    qn_view_alloc_record(context, "a", r, &l, 0, &a, NULL);
    qn_record_release(r); /* the storage holds it */
    tap_ok(qn_view_use_count(&a) == 1, "one reference");
    tap_ok(qn_view_field(&a, X, &x, &err) == QN_OK && x.dtype == QN_F64 &&
               qn_view_use_count(&a) == 2,
           "field x");
    tap_ok(qn_view_field(&a, CELL, &cell, &err) == QN_OK && cell.dtype == QN_I16, "field cell");
    tap_ok(is_packed ? x.unit == 1 || x.unit % 2 == 1 : x.unit == 0 && x.layout.dim[0].stride == 4,
           "its strides count elements if they can: unit %u", (unsigned)x.unit);
    qn_view phase;
    tap_ok(qn_view_field(&a, PHASE, &phase, &err) == QN_OK &&
               qn_view_field(&phase, 1, &im, &err) == QN_OK && im.dtype == QN_F32,
           "imaginary part of a field");
    tap_ok(qn_view_field(&x, 0, &phase, &err) == QN_ERR_DTYPE &&
               qn_view_field(&a, 7, &phase, &err) == QN_ERR_NOT_FOUND,
           "no such fields");
    qn_view_new(context, "dense", QN_F64, 1, INDEX(N), &dense, NULL);
    for (int i = 0; i < N; i++)
        ((double *)dense.data)[i] = i * 1.5;
    tap_ok(qn_deep_copy(context, &x, &dense, &err) == QN_OK, "copy into a field: %s", err.message);
    qn_kernel *k = kernel_of(
        "kernel \"more\" { view x: f64[1]; view c: i16[1]; view im: f32[1]; %0: i64 = const 0;"
        " %1: i64 = extent x, 0; %2: i64 = parallel %0, %1; %3: f64 = load x[%2];"
        " %4: f64 = add %3, %3; store x[%2], %4; %5: i16 = cast %3; store c[%2], %5;"
        " %6: f32 = cast %3; store im[%2], %6; }");
    for (int w = 0; w < N_WAYS && k; w++) {
        qn_arg args[3] = {qn_arg_view(&x), qn_arg_view(&cell), qn_arg_view(&im)};
        qn_deep_copy(context, &x, &dense, NULL);
        if (!launch_way(w, k, 3, args))
            continue;
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            const char *element = (char *)a.data + i * (is_packed ? (int)sizeof(packed_particle)
                                                                  : (int)sizeof(particle));
            double value;
            int16_t number;
            float _Complex z;
            memcpy(&value,
                   element + (is_packed ? offsetof(packed_particle, x) : offsetof(particle, x)),
                   sizeof value);
            memcpy(&number,
                   element +
                       (is_packed ? offsetof(packed_particle, cell) : offsetof(particle, cell)),
                   sizeof number);
            memcpy(&z,
                   element +
                       (is_packed ? offsetof(packed_particle, phase) : offsetof(particle, phase)),
                   sizeof z);
            wrong += value != i * 3.0 || number != (int16_t)(i * 1.5) ||
                     cimagf(z) != (float)(i * 1.5) || crealf(z) != 0;
        }
        tap_ok(wrong == 0, "%s fields in a kernel: %s", is_packed ? "packed" : "aligned",
               ways[w].name);
    }
    tap_ok(qn_deep_copy(context, &dense, &x, &err) == QN_OK && ((double *)dense.data)[5] == 15.0,
           "copy out of a field");
    qn_arg same[3] = {qn_arg_view(&x), qn_arg_view(&cell), qn_arg_view(&im)};
    qn_options strict = {.bytes = sizeof strict, .strict = 1};
    tap_ok(k && qn_launch(context, k, 3, same, &strict, &err) == QN_OK,
           "different fields do not overlap");
    qn_kernel_release(k);
    qn_view_release(&a);
    tap_ok(qn_view_use_count(&x) == 4, "fields keep the storage");
    qn_view_release(&x);
    qn_view_release(&cell);
    qn_view_release(&phase);
    qn_view_release(&im);
    qn_view_release(&dense);
}

/* ---------------------------------------------------------------- copies */

/** Deep copies and fills of elements of all sizes, between Right and Left. */
static void test_copies(void)
{
    qn_record *r[3] = {record_of(false), record_of(true), NULL};
    qn_field many[40];
    for (int i = 0; i < 40; i++)
        many[i] = (qn_field){.dtype = QN_F64, .offset = QN_NEXT};
    qn_record_new(40, many, 0, 0, &r[2], NULL);
    static const int dtypes[] = {QN_C64, QN_C128, QN_RECORD, QN_RECORD, QN_RECORD, QN_F16};
    for (int t = 0; t < 6; t++) {
        const qn_record *record = dtypes[t] == QN_RECORD ? r[t - 2] : NULL;
        int64_t bytes = record ? qn_record_bytes(record) : qn_dtype_bytes(dtypes[t]),
                extents[2] = {7, 19};
        qn_layout right, left;
        qn_view a, b;
        qn_error err = {0};
        qn_layout_right(2, extents, &right, NULL);
        qn_layout_left(2, extents, &left, NULL);
        if (record) {
            qn_view_alloc_record(context, "a", record, &right, 0, &a, NULL);
            qn_view_alloc_record(context, "b", record, &left, 0, &b, NULL);
        } else {
            qn_view_alloc(context, "a", dtypes[t], &right, 0, &a, NULL);
            qn_view_alloc(context, "b", dtypes[t], &left, 0, &b, NULL);
        }
        for (int64_t i = 0; i < 7 * 19 * bytes; i++)
            ((unsigned char *)a.data)[i] = (unsigned char)(i * 31 % 251);
        qn_status status = qn_deep_copy(context, &b, &a, &err);
        int wrong = status != QN_OK;
        for (int64_t i = 0; i < 7 && !wrong; i++)
            for (int64_t j = 0; j < 19; j++)
                wrong += memcmp((char *)b.data + (i + 7 * j) * bytes,
                                (char *)a.data + (19 * i + j) * bytes, (size_t)bytes) != 0;
        tap_ok(wrong == 0, "copy of %s of %d bytes: %s", qn_dtype_name(dtypes[t]), (int)bytes,
               err.message);
        qn_slice part[2] = {{.kind = QN_RANGE, .begin = 1, .end = 6, .step = 2}, {.kind = QN_ALL}};
        qn_view cut;
        qn_subview(&b, 2, part, &cut, NULL);
        status = qn_fill_value(context, &cut, a.data, &err);
        wrong = status != QN_OK;
        for (int64_t i = 0; i < 7 && !wrong; i++)
            for (int64_t j = 0; j < 19; j++) {
                bool is_filled = i == 1 || i == 3 || i == 5;
                wrong += memcmp((char *)b.data + (i + 7 * j) * bytes,
                                (char *)a.data + (is_filled ? 0 : (19 * i + j) * bytes),
                                (size_t)bytes) != 0;
            }
        tap_ok(wrong == 0, "fill of %s of %d bytes: %s", qn_dtype_name(dtypes[t]), (int)bytes,
               err.message);
        qn_view_release(&cut);
        qn_view_release(&a);
        qn_view_release(&b);
    }
    for (int i = 0; i < 3; i++)
        qn_record_release(r[i]);
}

/* ---------------------------------------------------------------- errors */

#define REFUSED(call, text)                                                                        \
    do {                                                                                           \
        qn_builder *b = qn_builder_new("bad", 0);                                                  \
        qn_param r = qn_record_param(b, "r", record, 1, 0),                                        \
                 z = qn_view_param(b, "z", QN_C64, 1, 0);                                          \
        qn_val i = qn_parallel_over(b, r, 0), u = qn_load(b, z, 1, &i), p = qn_load(b, r, 1, &i);  \
        qn_error e = {0};                                                                          \
        (void)u, (void)p;                                                                          \
        call;                                                                                      \
        tap_ok(qn_builder_status(b, &e) != QN_OK && strstr(e.message, text), "refused: %s",        \
               e.message);                                                                         \
        qn_builder_release(b);                                                                     \
    } while (0)

static void test_errors(void)
{
    qn_record *record = record_of(false), *packed = record_of(true);
    qn_error err = {0};
    REFUSED(qn_lt(b, u, u), "type not taken");
    REFUSED(qn_add(b, u, qn_real(b, u)), "types differ");
    REFUSED(qn_add(b, p, p), "type not taken");
    REFUSED(qn_cast(b, QN_F32, u), "take a part");
    REFUSED(qn_bitcast(b, QN_U64, u), "only parts have bits");
    REFUSED(qn_real(b, p), "type not taken");
    REFUSED(qn_field_of(b, u, 0), "is no record");
    REFUSED(qn_field_of(b, p, 5), "none has number 5");
    REFUSED(qn_load_field(b, z, 0, 1, &i), "no record");
    REFUSED(qn_store_field(b, r, X, 1, &i, i), "field 0 is f64");
    REFUSED(qn_store(b, r, 1, &i, u), "the view's elements are record");
    REFUSED(qn_with_field(b, p, KIND, i), "field 2 is u8");
    REFUSED(qn_record_of(b, packed, 1, &i), "1 values for 5 fields");
    REFUSED(qn_atomic(b, QN_COMBINE_SUM, z, 1, &i, u, (qn_val){0}), "does not take c64");
    REFUSED(qn_complex(b, i, i), "expected two f32 or two f64");
    REFUSED(qn_if(b, qn_eq(b, u, u)); qn_else(b, 1, &u); qn_end_if(b, 1, &p, &p), "types differ");
    qn_builder *b = qn_builder_new("atomic", 0);
    qn_view_param(b, "z", QN_C64, 1, QN_ATOMIC);
    tap_ok(qn_builder_status(b, &err) == QN_ERR_UNSUPPORTED, "atomic complex numbers: %s",
           err.message);
    qn_builder_release(b);
    qn_kernel *k = record_kernel(record);
    qn_view a, c;
    qn_layout l, rows;
    qn_layout_right(1, INDEX(4), &l, NULL);
    qn_layout_right(2, INDEX(2, 4), &rows, NULL);
    qn_view_alloc_record(context, "a", packed, &l, 0, &a, NULL);
    qn_view_alloc_record(context, "c", record, &rows, 0, &c, NULL);
    qn_arg args[2] = {qn_arg_view(&a), qn_arg_view(&c)};
    tap_ok(qn_launch(context, k, 2, args, NULL, &err) == QN_ERR_DTYPE &&
               strstr(err.message, "record type"),
           "another record type: %s", err.message);
    tap_ok(qn_deep_copy(context, &a, &a, &err) == QN_OK, "a copy onto itself");
    qn_view_type type;
    tap_ok(qn_view_type_init(QN_RECORD, 1, NULL, 0, &type, &err) == QN_ERR_DTYPE &&
               qn_view_type_init_record(record, 1, NULL, 0, &type, &err) == QN_OK,
           "types of records");
    tap_ok(!qn_is_assignable(&type, &a, &err) && strstr(err.message, "record"),
           "not assignable: %s", err.message);
    qn_view crooked = a;
    crooked.record = NULL;
    tap_ok(qn_launch(context, k, 2, (qn_arg[]){qn_arg_view(&crooked), args[1]}, NULL, &err) ==
               QN_ERR_DTYPE,
           "no record type");
    char bytes[64] = {0};
    qn_view odd;
    tap_ok(qn_view_wrap_record("odd", bytes + 1, record, &l, 0, &odd, &err) == QN_ERR_ALIGNMENT,
           "not aligned");
    qn_view_release(&a);
    qn_view_release(&c);
    qn_kernel_release(k);
    qn_record_release(record);
    qn_record_release(packed);
}

/** Strides in bytes below the element: overlapping elements are not stored to. */
static void test_units(void)
{
    _Alignas(8) unsigned char bytes[64] = {0};
    qn_view v;
    qn_error err = {0};
    tap_ok(qn_view_from_bytes("v", bytes, QN_F64, 1, INDEX(5), INDEX(4), NULL, 0, &v, &err) ==
                   QN_OK &&
               v.unit == 4,
           "elements that overlap");
    tap_ok(fill_bits(context, &v, 0, &err) == QN_ERR_NOT_INJECTIVE, "are not written");
    tap_ok(qn_view_from_bytes("v", bytes, QN_F64, 1, INDEX(5), INDEX(12), NULL, 0, &v, &err) ==
                   QN_OK &&
               fill_bits(context, &v, 0x3ff0000000000000, &err) == QN_OK,
           "elements 12 bytes apart: %s", err.message);
    double x;
    memcpy(&x, bytes + 36, sizeof x);
    tap_ok(x == 1 && bytes[8] == 0 && bytes[12 + 7] == 0x3f, "are");
    qn_view atomic;
    tap_ok(qn_view_with_traits(&v, QN_ATOMIC, &atomic, &err) == QN_OK, "traits");
    qn_kernel *k =
        kernel_of("kernel \"one\" { view x: f64[1]; %0: i64 = const 0; %1: i64 = extent x, 0;"
                  " %2: i64 = parallel %0, %1; %3: f64 = const 2.0; store x[%2], %3; }");
    qn_arg arg = qn_arg_view(&atomic);
    tap_ok(qn_launch(context, k, 1, &arg, NULL, &err) == QN_ERR_ALIGNMENT, "no atomics there: %s",
           err.message);
    qn_kernel_release(k);
    qn_view_release(&atomic);
}

int main(void)
{
    context = context_with(NULL);
    test_complex(QN_C64);
    test_complex(QN_C128);
    test_complex_sum();
    test_complex_scaling();
    test_record_types();
    test_records(false);
    test_records(true);
    test_field_views(false);
    test_field_views(true);
    test_copies();
    test_errors();
    test_units();
    qn_context_release(context);
    return tap_done();
}
