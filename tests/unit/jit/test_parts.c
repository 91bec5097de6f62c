/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_parts.c: elements of several parts where they are easily lost: who holds a record type,
 * views that count other units in lists, MultiViews and copies, tuples in regions and in large
 * kernels, and bad input of all these.
 */
#include "quern/bytes.h"
#include "tests/unit/launch.h"

#include <string.h>

static qn_context *context;
#define INDEX(...) ((const int64_t[]){__VA_ARGS__})
#define DTYPES(...) ((const int[]){__VA_ARGS__})
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

static qn_record *record_of(int n, const int *dtypes, uint32_t flags)
{
    qn_field field[QN_MAX_FIELDS] = {{0}};
    qn_record *r = NULL;
    qn_error err = {0};
    for (int i = 0; i < n; i++)
        field[i] = (qn_field){.dtype = dtypes[i], .offset = QN_NEXT};
    if (qn_record_new(n, field, 0, flags, &r, &err) != QN_OK)
        tap_ok(false, "record: %s", err.message);
    return r;
}

static qn_layout right_of(int64_t n)
{
    qn_layout l = {0};
    qn_layout_right(1, &n, &l, NULL);
    return l;
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

static void *at(const qn_view *v, int n, const int64_t *index)
{
    void *p = NULL;
    if (qn_view_at(v, n, index, &p, NULL) != QN_OK)
        tap_ok(false, "no such element");
    return p;
}

/* ---------------------------------------------------------------- copies */

/** Records of different types are not converted: the one has bytes that the other lacks. */
static void test_convert(void)
{
    qn_record *small = record_of(1, DTYPES(QN_F64), 0),
              *large = record_of(3, DTYPES(QN_F64, QN_F64, QN_I32), 0);
    qn_layout l = right_of(9);
    qn_view a, b, z, w;
    qn_error err = {0};
    qn_view_alloc_record(context, "a", small, &l, 0, &a, NULL);
    qn_view_alloc_record(context, "b", large, &l, 0, &b, NULL);
    tap_ok(qn_convert_copy(context, QN_SERIAL, &b, &a, &err) == QN_ERR_DTYPE,
           "small to large records: %s", err.message);
    tap_ok(qn_convert_copy(context, QN_SERIAL, &a, &b, &err) == QN_ERR_DTYPE,
           "large to small records: %s", err.message);
    qn_view_new(context, "z", QN_C64, 1, INDEX(9), &z, NULL);
    qn_view_new(context, "w", QN_C128, 1, INDEX(9), &w, NULL);
    float *from = z.data;
    double *to = w.data;
    for (int i = 0; i < 18; i++)
        from[i] = (float)i;
    tap_ok(qn_convert_copy(context, QN_SERIAL, &w, &z, &err) == QN_OK && to[17] == 17,
           "c64 to c128: %s", err.message);
    tap_ok(qn_convert_copy(context, QN_SERIAL, &z, &a, &err) == QN_ERR_DTYPE, "record to c64: %s",
           err.message);
    qn_view_release(&a);
    qn_view_release(&b);
    qn_view_release(&z);
    qn_view_release(&w);
    qn_record_release(small);
    qn_record_release(large);
}

/** Reallocation to the same extents gives zeros, whatever the elements. */
static void test_realloc(void)
{
    qn_record *packed = record_of(3, DTYPES(QN_U8, QN_F64, QN_F32), QN_PACKED);
    qn_layout l = right_of(5);
    const int dtypes[] = {QN_C64, QN_C128, QN_F16, QN_RECORD};
    for (int t = 0; t < COUNT(dtypes); t++) {
        qn_view v;
        qn_error err = {0};
        if (dtypes[t] == QN_RECORD)
            qn_view_alloc_record(context, "v", packed, &l, 0, &v, NULL);
        else
            qn_view_alloc(context, "v", dtypes[t], &l, 0, &v, NULL);
        size_t bytes = 5 * (size_t)(dtypes[t] == QN_RECORD ? qn_record_bytes(packed)
                                                           : qn_dtype_bytes(dtypes[t]));
        memset(v.data, 7, bytes);
        qn_status status = qn_view_realloc(context, &v, 1, INDEX(5), NULL, &err);
        bool is_zero = true;
        for (size_t i = 0; i < bytes; i++)
            is_zero = is_zero && ((char *)v.data)[i] == 0;
        tap_ok(status == QN_OK && is_zero, "realloc of %s: %s", qn_dtype_name(dtypes[t]),
               err.message);
        status = qn_view_resize(context, &v, 1, INDEX(8), NULL, &err);
        tap_ok(status == QN_OK && v.layout.dim[0].extent == 8, "resize of %s: %s",
               qn_dtype_name(dtypes[t]), err.message);
        qn_view_release(&v);
    }
    qn_record_release(packed);
}

/** A view that counts bytes becomes one that counts elements, also if the numbers are equal. */
static void test_resize_unit(void)
{
    char bytes[64];
    qn_view v;
    qn_error err = {0};
    qn_layout l = right_of(5);
    for (int i = 0; i < 64; i++)
        bytes[i] = (char)i;
    qn_view_from_bytes("v", bytes, QN_I16, 1, INDEX(5), INDEX(1), NULL, 0, &v, &err);
    tap_ok(qn_view_resize_layout(context, &v, &l, NULL, &err) == QN_OK && v.unit == 0 && v.owner &&
               ((int16_t *)v.data)[4] == 0x0504,
           "resize to a layout: unit %u: %s", (unsigned)v.unit, err.message);
    qn_view_release(&v);
}

/* ---------------------------------------------------------------- who holds a record type */

static void test_ownership(void)
{
    qn_record *r = record_of(2, DTYPES(QN_F32, QN_I64), QN_PACKED);
    qn_layout l = right_of(4);
    qn_view v, mine, member, multi, a[2];
    qn_error err = {0};
    char memory[64] = {0};
    qn_view_alloc_record(context, "v", r, &l, 0, &v, NULL);
    qn_record_release(r);
    tap_ok(qn_view_assign_data(&v, memory, &err) == QN_ERR_UNSUPPORTED &&
               qn_view_use_count(&v) == 1,
           "the storage that holds the record type stays: %s", err.message);
    qn_view_unmanaged(&v, &mine, NULL);
    tap_ok(qn_view_assign_data(&mine, memory, &err) == QN_OK && mine.data == memory,
           "a borrow has other data: %s", err.message);
    qn_view_release(&mine);
    qn_view_release(&v);
    for (int i = 0; i < 2; i++) { /* equal types, but two objects */
        r = record_of(2, DTYPES(QN_F32, QN_I64), QN_PACKED);
        qn_view_alloc_record(context, "a", r, &l, 0, &a[i], NULL);
        qn_record_release(r);
        memset(a[i].data, i + 1, 48);
    }
    char *base = a[0].data, *other = a[1].data;
    int64_t distance = other > base ? other - base : base - other;
    qn_status status = qn_view_multi("m", 2, a, 0, &multi, &err);
    if (distance % 12) {
        tap_ok(status == QN_ERR_ALIGNMENT, "members at no number of records: %s", err.message);
        qn_view_release(&a[0]);
        qn_view_release(&a[1]);
        return;
    }
    tap_ok(status == QN_OK && multi.record, "a MultiView of records: %s", err.message);
    const qn_slice slices[2] = {{.kind = QN_AT, .begin = 1}, {.kind = QN_ALL}};
    tap_ok(qn_subview(&multi, 2, slices, &member, &err) == QN_OK, "a member: %s", err.message);
    qn_view_release(&a[0]);
    qn_view_release(&a[1]);
    qn_view_release(&multi);
    tap_ok(qn_view_use_count(&member) == 1 && qn_record_n_fields(member.record) == 2 &&
               ((char *)at(&member, 1, INDEX(3)))[11] == 2,
           "has its own record type");
    qn_view_release(&member);
}

/** A prepared call holds what it needs of a borrowed type. */
static void test_prepared(void)
{
    qn_record *r = record_of(2, DTYPES(QN_F32, QN_I64), QN_PACKED);
    qn_layout l = right_of(4);
    char memory[48] = {0};
    qn_view v;
    qn_error err = {0};
    qn_call *call = NULL;
    qn_view_wrap_record("v", memory, r, &l, 0, &v, NULL);
    qn_builder *b = qn_builder_new("number", 0);
    qn_param p = qn_record_param(b, "p", r, 1, 0);
    qn_val i = qn_parallel_over(b, p, 0);
    qn_store_field(b, p, 1, 1, &i, i);
    qn_kernel *k = finish(b);
    qn_arg arg = qn_arg_view(&v);
    qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_INTERP};
    qn_status status = qn_prepare(context, k, 1, &arg, &o, &call, &err);
    qn_record_release(r);
    memset(&v, 0x5a, sizeof v);
    int64_t last = 0;
    tap_ok(status == QN_OK && qn_run(call, &err) == QN_OK && memcpy(&last, memory + 40, 8) &&
               last == 3,
           "a prepared call runs without the caller's record type: %s", err.message);
    qn_call_release(call);
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- units */

/** A MultiView of fields of packed records. */
static void test_multi_units(void)
{
    enum { N = 6 };
    qn_record *r = record_of(2, DTYPES(QN_U8, QN_F32), QN_PACKED);
    char memory[2][5 * N + 5];
    qn_layout l = right_of(N);
    qn_view v[2], field[2], multi, out;
    qn_error err = {0};
    for (int m = 0; m < 2; m++) {
        qn_view_wrap_record("v", memory[m], r, &l, 0, &v[m], NULL);
        qn_view_field(&v[m], 1, &field[m], NULL);
        for (int i = 0; i < N; i++)
            memcpy(memory[m] + 5 * i + 1, &(float){(float)(10 * m + i)}, 4);
    }
    qn_status status = qn_view_multi("m", 2, field, 0, &multi, &err);
    qn_view_new(context, "out", QN_F32, 2, INDEX(2, N), &out, NULL);
    tap_ok(status == QN_OK && multi.unit == field[0].unit &&
               qn_deep_copy(context, &out, &multi, &err) == QN_OK,
           "a MultiView of packed fields is copied: %s", err.message);
    int wrong = 0;
    for (int i = 0; i < 2 * N; i++)
        wrong += ((float *)out.data)[i] != (float)(i / N * 10 + i % N);
    tap_ok(wrong == 0, "its elements are those of the members: %d wrong", wrong);
    float *direct = at(&multi, 2, INDEX(1, 2)), value;
    memcpy(&value, direct, 4);
    tap_ok(value == 12, "and so by address");
    qn_view_release(&multi);
    qn_view_release(&out);
    qn_record_release(r);
}

/** A list whose indices lie 12 bytes apart. */
static void test_list_unit(void)
{
    enum { N = 5 };
    _Alignas(8) char memory[12 * N + 8];
    for (int i = 0; i < N; i++)
        memcpy(memory + 12 * i, &(int64_t){N - 1 - i}, 8);
    qn_view list, v, copy;
    qn_error err = {0};
    qn_layout l = right_of(N), listed = {0};
    qn_view_from_bytes("list", memory, QN_I64, 1, INDEX(N), INDEX(12), NULL, 0, &list, &err);
    tap_ok(list.unit == 4, "a list counts words");
    tap_ok(qn_layout_list(&l, 0, &list, &listed, &err) == QN_ERR_UNSUPPORTED, "no list: %s",
           err.message);
    qn_view_new(context, "copy", QN_I64, 1, INDEX(N), &copy, NULL);
    tap_ok(qn_deep_copy(context, &copy, &list, &err) == QN_OK &&
               qn_layout_list(&l, 0, &copy, &listed, &err) == QN_OK,
           "its copy is one: %s", err.message);
    qn_status status = qn_view_alloc(context, "v", QN_C64, &listed, 0, &v, &err);
    tap_ok(status == QN_OK, "a view of complex numbers with it");
    qn_view im;
    status = qn_view_field(&v, 1, &im, &err);
    tap_ok(status == QN_OK && at(&im, 1, INDEX(0)) == (char *)at(&v, 1, INDEX(0)) + 4,
           "and its imaginary parts: %s", err.message);
    qn_view_release(&im);
    qn_view_release(&v);
    qn_view_release(&copy);
    qn_layout_release(&listed);
}

/** A kernel on records and complex numbers through lists, with a complex scalar. */
static void test_listed_parts(void)
{
    enum { N = 11 };
    qn_record *r = record_of(3, DTYPES(QN_I16, QN_C64, QN_F64), QN_PACKED);
    qn_builder *b = qn_builder_new("listed", 0);
    qn_param p = qn_record_param(b, "p", r, 1, 0), z = qn_view_param(b, "z", QN_C64, 1, 0);
    qn_val s = qn_scalar_param(b, "s", QN_C64), i = qn_parallel_over(b, p, 0);
    qn_val is_same = qn_eq(b, qn_real(b, s), qn_imag(b, s));
    qn_val whole = qn_load(b, p, 1, &i), number = qn_select(b, is_same, qn_index(b, 1), i);
    whole = qn_with_field(b, whole, 1, qn_add(b, qn_load(b, z, 1, &i), s));
    whole = qn_with_field(b, whole, 0, qn_cast(b, QN_I16, number));
    qn_store(b, p, 1, &i, whole);
    qn_store_field(b, p, 2, 1, &i, qn_cast(b, QN_F64, qn_imag(b, qn_load_field(b, p, 1, 1, &i))));
    qn_kernel *k = finish(b);
    qn_view list, vp, vz;
    qn_error err = {0};
    qn_layout l = right_of(N), listed = {0};
    qn_view_new(context, "list", QN_I64, 1, INDEX(N), &list, NULL);
    for (int n = 0; n < N; n++)
        ((int64_t *)list.data)[n] = N - 1 - n;
    qn_layout_list(&l, 0, &list, &listed, &err);
    qn_view_alloc_record(context, "p", r, &listed, 0, &vp, NULL);
    qn_view_alloc(context, "z", QN_C64, &listed, 0, &vz, NULL);
    for (int n = 0; n < 2 * N; n++)
        ((float *)vz.data)[n] = (float)n;
    static const int engines[] = {QN_ENGINE_INTERP, QN_ENGINE_AUTO};
    for (int e = 0; e < 2 && k; e++) {
        qn_arg args[3] = {qn_arg_view(&vp), qn_arg_view(&vz), qn_arg_c64(0.5f, 2)};
        qn_options o = {.bytes = sizeof o, .engine = engines[e]};
        memset(vp.data, 0, N * 18);
        int wrong = qn_launch(context, k, 3, args, &o, &err) != QN_OK;
        for (int n = 0; n < N && !wrong; n++) {
            const char *element = (char *)vp.data + 18 * n;
            int16_t cell;
            float parts[2];
            double im;
            memcpy(&cell, element, 2);
            memcpy(parts, element + 2, 8);
            memcpy(&im, element + 10, 8);
            wrong += cell != N - 1 - n || parts[0] != (float)(2 * n) + 0.5f ||
                     parts[1] != (float)(2 * n + 3) || im != 2 * n + 3;
        }
        tap_ok(wrong == 0, "parts through lists, engine %d: %s", engines[e], err.message);
    }
    qn_view_release(&vp);
    qn_view_release(&vz);
    qn_view_release(&list);
    qn_layout_release(&listed);
    qn_kernel_release(k);
    qn_record_release(r);
}

/* ---------------------------------------------------------------- the builder */

/** Fields of two parts are taken while the operands move to larger memory. */
static void test_many_fields(void)
{
    enum { N = 40 };
    int dtypes[N];
    for (int i = 0; i < N; i++)
        dtypes[i] = QN_C64;
    qn_record *r = record_of(N, dtypes, 0);
    qn_builder *b = qn_builder_new("many", 0);
    qn_param x = qn_record_param(b, "x", r, 1, 0), y = qn_view_param(b, "y", QN_C64, 2, 0);
    qn_val i = qn_parallel_over(b, x, 0), whole = qn_load(b, x, 1, &i);
    for (int f = 0; f < N; f++) {
        qn_val number = qn_const_float(b, QN_F32, f), z = qn_complex(b, number, number);
        whole = qn_with_field(b, whole, f, qn_mul(b, qn_field_of(b, whole, f), z));
        qn_store(b, y, 2, (qn_val[]){i, qn_index(b, f)}, qn_field_of(b, whole, f));
    }
    qn_kernel *k = finish(b);
    qn_layout l = right_of(3);
    qn_view in, out;
    qn_error err = {0};
    qn_view_alloc_record(context, "in", r, &l, 0, &in, NULL);
    qn_view_new(context, "out", QN_C64, 2, INDEX(3, N), &out, NULL);
    for (int f = 0; f < 3 * N; f++)
        ((float *)in.data)[2 * f] = 1;
    qn_arg args[2] = {qn_arg_view(&in), qn_arg_view(&out)};
    int wrong = 0;
    tap_ok(k && qn_launch(context, k, 2, args, NULL, &err) == QN_OK, "many complex fields: %s",
           err.message);
    for (int f = 0; f < 6 * N; f++)
        wrong += ((float *)out.data)[f] != (float)(f / 2 % N);
    tap_ok(wrong == 0, "each has its own parts: %d wrong", wrong);
    qn_view_release(&in);
    qn_view_release(&out);
    qn_kernel_release(k);
    qn_record_release(r);
}

/** out[i] = sum over j of (z[i,j] + sum over k of w[j,k]) */
static void test_nested_sums(void)
{
    enum { ROWS = 2, N = 9, M = 5 };
    qn_builder *b = qn_builder_new("nested", QN_ORDER_ORDERED);
    qn_param z = qn_view_param(b, "z", QN_C128, 2, 0), w = qn_view_param(b, "w", QN_C64, 2, 0);
    qn_param out = qn_view_param(b, "out", QN_C128, 1, 0);
    qn_val i = qn_parallel_over(b, z, 0), j = qn_reduction_over(b, z, 1),
           k = qn_reduction_over(b, w, 1);
    qn_reduce(b, QN_COMBINE_SUM, 0, 1, &j);
    qn_val x = qn_load(b, z, 2, (qn_val[]){i, j});
    qn_reduce(b, QN_COMBINE_SUM, 0, 1, &k);
    qn_val inner = qn_end_reduce(b, qn_load(b, w, 2, (qn_val[]){j, k})), t;
    qn_for(b, qn_index(b, 0), qn_index(b, 3), 1, 1, &inner, &t);
    qn_val next = qn_add(b, t, inner), times;
    qn_end_for(b, 1, &next, &times); /* four times it */
    qn_val sum = qn_end_reduce(b, qn_add(b, x, qn_cast(b, QN_C128, times)));
    qn_store(b, out, 1, &i, sum);
    qn_kernel *kernel = finish(b);
    qn_view vz, vw, vout;
    qn_error err = {0};
    qn_view_new(context, "z", QN_C128, 2, INDEX(ROWS, N), &vz, NULL);
    qn_view_new(context, "w", QN_C64, 2, INDEX(N, M), &vw, NULL);
    qn_view_new(context, "out", QN_C128, 1, INDEX(ROWS), &vout, NULL);
    double expected[2 * ROWS] = {0}, *dz = vz.data;
    float *dw = vw.data;
    for (int n = 0; n < 2 * N * M; n++)
        dw[n] = (float)(n % 11);
    for (int n = 0; n < 2 * ROWS * N; n++)
        dz[n] = n % 13;
    for (int p = 0; p < 2; p++)
        for (int r = 0; r < ROWS; r++)
            for (int n = 0; n < N; n++) {
                double s = 0;
                for (int m = 0; m < M; m++)
                    s += (double)dw[2 * (n * M + m) + p];
                expected[2 * r + p] += dz[2 * (r * N + n) + p] + 4 * s;
            }
    qn_arg args[3] = {qn_arg_view(&vz), qn_arg_view(&vw), qn_arg_view(&vout)};
    static const int engines[] = {QN_ENGINE_INTERP, QN_ENGINE_AUTO};
    for (int e = 0; e < 2; e++) {
        qn_options o = {.bytes = sizeof o, .engine = engines[e]};
        tap_ok(kernel && qn_launch(context, kernel, 3, args, &o, &err) == QN_OK &&
                   memcmp(vout.data, expected, sizeof expected) == 0,
               "a complex sum of complex sums, engine %d: %s", engines[e], err.message);
    }
    qn_view_release(&vz);
    qn_view_release(&vw);
    qn_view_release(&vout);
    qn_kernel_release(kernel);
}

/** Records of one field, which is not all of the record, through kernels that would transpose or
 * stream numbers. */
static void test_one_field(void)
{
    enum { N = 70 };
    const qn_field field = {"x", QN_F32, 0, 8};
    qn_record *r = NULL;
    qn_record_new(1, &field, 16, 0, &r, NULL);
    qn_builder *b = qn_builder_new("one", 0);
    qn_param x = qn_record_param(b, "x", r, 2, 0), y = qn_record_param(b, "y", r, 2, 0);
    qn_val i = qn_parallel_over(b, y, 0), j = qn_parallel_over(b, y, 1);
    qn_store(b, y, 2, (qn_val[]){i, j}, qn_load(b, x, 2, (qn_val[]){j, i}));
    qn_kernel *k = finish(b), *again = NULL;
    char text[4000];
    qn_error err = {0};
    size_t n = qn_kernel_print(k, text, sizeof text);
    tap_ok(qn_kernel_parse(text, n, &again, &err) == QN_OK, "one field: text there and back: %s",
           err.message);
    qn_layout l;
    qn_view from, to;
    qn_layout_right(2, INDEX(N, N), &l, NULL);
    qn_view_alloc_record(context, "from", r, &l, 0, &from, NULL);
    qn_view_alloc_record(context, "to", r, &l, 0, &to, NULL);
    for (int at = 0; at < 4 * N * N; at++)
        ((float *)from.data)[at] = (float)at;
    static const int isas[] = {QN_ISA_V3, QN_ISA_V4};
    for (int w = 0; w < 6; w++) {
        qn_options o = {
            .bytes = sizeof o, .isa = isas[w % 2], .plan = PLAN_WITH(.streams = w / 2 - 1)};
        qn_arg args[2] = {qn_arg_view(&from), qn_arg_view(&to)};
        memset(to.data, 0, 16 * N * N);
        qn_status status = qn_launch(context, k, 2, args, &o, &err);
        if (status == QN_ERR_TARGET || status == QN_ERR_PROVIDER)
            continue;
        int wrong = status != QN_OK;
        for (int at = 0; at < 4 * N * N; at++) {
            int row = at / 4 / N, column = at / 4 % N;
            wrong +=
                ((float *)to.data)[at] != (at % 4 == 2 ? (float)(4 * (column * N + row) + 2) : 0);
        }
        tap_ok(wrong == 0, "one field, way %d: %d wrong: %s", w, wrong, err.message);
    }
    qn_view atomic;
    qn_view_with_traits(&to, QN_ATOMIC, &atomic, &err);
    qn_arg args[2] = {qn_arg_view(&from), qn_arg_view(&atomic)};
    tap_ok(qn_launch(context, k, 2, args, NULL, &err) == QN_ERR_UNSUPPORTED, "is not atomic: %s",
           err.message);
    qn_view_release(&atomic);
    qn_view_release(&from);
    qn_view_release(&to);
    qn_kernel_release(k);
    qn_kernel_release(again);
    qn_record_release(r);
}

/** Other parts of other elements are no collision. */
static void test_parts_do_not_collide(void)
{
    qn_record *r = record_of(2, DTYPES(QN_F64, QN_F64), 0);
    for (int read = 0; read < 2; read++) {
        qn_builder *b = qn_builder_new("shift", 0);
        qn_param x = qn_record_param(b, "x", r, 1, 0);
        qn_val i = qn_parallel(b, qn_index(b, 0), qn_sub(b, qn_extent(b, x, 0), qn_index(b, 1)));
        qn_val next = qn_add(b, i, qn_index(b, 1));
        qn_store_field(b, x, 0, 1, &i, qn_load_field(b, x, read, 1, &next));
        qn_kernel *k = NULL;
        qn_error err = {0};
        qn_status status = qn_finish(b, &k, &err);
        tap_ok(status == (read ? QN_OK : QN_ERR_COLLISION), "field 0 of i is field %d of i + 1: %s",
               read, err.message);
        qn_layout l = right_of(100);
        qn_view v;
        qn_view_alloc_record(context, "v", r, &l, 0, &v, NULL);
        double *data = v.data;
        for (int n = 0; n < 200; n++)
            data[n] = n;
        qn_arg arg = qn_arg_view(&v);
        int wrong = 0;
        if (k && tap_ok(qn_launch(context, k, 1, &arg, NULL, &err) == QN_OK, "it runs: %s",
                        err.message)) {
            for (int n = 0; n < 99; n++)
                wrong += data[2 * n] != 2 * n + 3 || data[2 * n + 1] != 2 * n + 1;
            tap_ok(wrong == 0 && data[198] == 198, "and moves the field");
        }
        qn_view_release(&v);
        qn_builder_release(b);
        qn_kernel_release(k);
    }
    qn_record_release(r);
}

#define REFUSED(call, text)                                                                        \
    do {                                                                                           \
        qn_builder *b = qn_builder_new("bad", 0);                                                  \
        qn_param r = qn_record_param(b, "r", large, 1, 0),                                         \
                 z = qn_view_param(b, "z", QN_C64, 1, 0);                                          \
        qn_val i = qn_parallel_over(b, r, 0), k = qn_reduction_over(b, z, 0);                      \
        qn_val u = qn_load(b, z, 1, &i), p = qn_load(b, r, 1, &i), t = {0};                        \
        qn_error e = {0};                                                                          \
        (void)u, (void)p, (void)k, (void)t;                                                        \
        call;                                                                                      \
        tap_ok(qn_builder_status(b, &e) != QN_OK && strstr(e.message, text), "refused: %s",        \
               e.message);                                                                         \
        qn_builder_release(b);                                                                     \
    } while (0)

static void test_builder(void)
{
    int dtypes[40];
    for (int i = 0; i < 40; i++)
        dtypes[i] = QN_F32;
    qn_record *large = record_of(40, dtypes, 0), *small = record_of(2, dtypes, 0);
    REFUSED(qn_for(b, i, i, 1, 1, &p, &t), "more than 32 parts");
    REFUSED(qn_while(b, qn_index(b, 1), 1, &p, &t), "more than 32 parts");
    REFUSED(qn_if(b, qn_eq(b, u, u)); qn_else(b, 1, &p), "more than 32 parts");
    REFUSED(qn_if(b, u), "condition is c64");
    REFUSED(qn_while(b, qn_index(b, 3), 1, &u, &t); qn_do(b, t), "condition is c64");
    REFUSED(qn_while(b, u, 0, NULL, NULL), "not an integer");
    REFUSED(qn_while(b, qn_index(b, 3), 1, &u, &t); p = qn_mul(b, t, t); qn_do(b, qn_eq(b, t, u));
            qn_end_while(b, 1, &p, &t), "outside its region");
    REFUSED(qn_if(b, qn_eq(b, u, u)); p = qn_mul(b, u, u); qn_end_if(b, 0, NULL, NULL);
            qn_store(b, z, 1, &i, p), "outside its region");
    REFUSED(qn_store(b, z, 1, &i, ((qn_val){100000, i.builder})), "no value of this builder");
    REFUSED(qn_load(b, z, 1, &u), "not an integer");
    REFUSED(qn_parallel(b, u, u), "");
    REFUSED(qn_reduce(b, QN_COMBINE_MAX, 0, 1, &k); qn_end_reduce(b, u), "does not take c64");
    REFUSED(qn_reduce(b, QN_COMBINE_SUM, 0, 1, &k); qn_end_reduce(b, p), "does not take record");
    REFUSED(qn_select(b, u, u, u), "types differ");
    REFUSED(qn_select(b, qn_eq(b, u, u), u, p), "types differ");
    REFUSED(qn_with_field(b, p, -1, u), "none has number -1");
    REFUSED(qn_record_of(b, NULL, 0, NULL), "record is NULL");
    REFUSED(qn_record_of(b, small, 2, NULL), "NULL");
    REFUSED(qn_record_of(b, small, 2, (qn_val[]){{0}, {0}}), "is not set");
    REFUSED(qn_cast(b, QN_RECORD, u), "");
    qn_record_release(large);
    qn_record_release(small);
}

/* ---------------------------------------------------------------- text */

static void test_text(void)
{
    static const char *const bad[] = {
        "view a: record 8 align 4 {f32 -1, f32 4}[1];",
        "view a: record 8 align 4 {f32 0, f32 2}[1];",
        "view a: record 8 align 8 {f32 0}[1];",
        "view a: record 0 align 0 {}[1];",
        "view a: record -8 align 4 {f32 0}[1];",
        "view a: record 2147483647 align 4 {f32 0}[1];",
        "view a: record 99999999999 align 4 {f32 0}[1];",
        "view a: record 4 align 1 {f32 2147483647}[1];",
        "view a: record 4 align 4 {record 0}[1];",
        "view a: record 4 align 4 {f32 0}[17];",
        "view a: record 4 align 4 {f32 0",
        "view a: record 4 align 4 {f32 0}[0] atomic;%0: f32 = load a[] part 0;",
        "view a: record 8 align 4 {f32 0, f32 4}[0] atomic;",
        "scalar a: record 4 align 4 {f32 0};",
        "scalar a: record;",
        "view a: record[1];",
        "view a: c64[0];%0: f32 = load a[] part 2;",
        "view a: c64[0];%0: f32 = load a[] part -1;",
        "view a: c64[0];%0: c64 = load a[] part -2147483648;",
        "view a: c64[0];%0: f32 = load a[] part 256;",
        "view a: c64[0];%0: f32 = load a[] part 4294967296;",
        "view a: c64[0];%0: f64 = load a[] part 0;",
        "view a: f32[0];%0: f32 = load a[] part 0;",
        "view a: c64[0];%0: f32 = const 1.0; store a[] part 2, %0;",
        "view a: c64[0];%0: f64 = const 1.0; store a[] part 0, %0;",
        "view a: c64[0];%0: f32 = const 1.0; store a[], %0;",
        "scalar a: c64;%0: f32 = param a part 2;",
        "scalar a: c64;%0: f32 = param a part -1;",
        "scalar a: f32;%0: f32 = param a part 0;",
        "view a: record 8 align 4 {f32 0, f32 4}[0];%0: record = load a[];",
        "%0: record = const 1;",
        "%0: c128 = const 1.0;",
    };
    for (int i = 0; i < COUNT(bad); i++) {
        char text[400];
        qn_kernel *k = NULL;
        qn_error err = {0};
        snprintf(text, sizeof text, "kernel \"k\" {\n%s\n}\n", bad[i]);
        tap_ok(qn_kernel_parse(text, strlen(text), &k, &err) != QN_OK, "%s: %s", bad[i],
               err.message);
        qn_kernel_release(k);
    }
}

/* ---------------------------------------------------------------- views that are no views */

/** No call may crash on these structs: each must fail, or change nothing. */
static void test_hostile_views(void)
{
    qn_record *r = record_of(2, DTYPES(QN_F32, QN_I64), 0);
    _Alignas(16) char memory[256] = {0};
    qn_layout l = right_of(8);
    qn_view good, out = {0};
    qn_error err = {0};
    qn_view_wrap_record("v", memory, r, &l, 0, &good, NULL);
    enum { N = 9 };
    qn_view bad[N];
    for (int i = 0; i < N; i++)
        bad[i] = good;
    bad[0].record = NULL;
    bad[1].unit = UINT32_MAX;
    bad[2].unit = (uint32_t)INT32_MAX + 1;
    bad[3].dtype = QN_F32; /* and a record */
    bad[4].unit = INT32_MAX;
    bad[4].layout.dim[0].stride = INT64_MAX / 8;
    bad[5].dtype = 1000;
    bad[6].record = NULL;
    bad[6].data = NULL;
    bad[7].data = memory + 1;
    bad[8].dtype = QN_C128;
    bad[8].data = NULL;
    for (int i = 0; i < N; i++) {
        int64_t bytes = 0, stride = 0;
        qn_view held = bad[i];
        qn_status status[] = {qn_view_field(&bad[i], 0, &out, &err),
                              qn_subview(&bad[i], 1, (qn_slice[]){{.kind = QN_ALL}}, &out, &err),
                              qn_view_with_layout(&bad[i], &l, &out, &err),
                              qn_fill_value(context, &bad[i], memory, &err),
                              qn_deep_copy(context, &bad[i], &good, &err),
                              qn_deep_copy(context, &good, &bad[i], &err),
                              qn_convert_copy(context, QN_SERIAL, &good, &bad[i], &err),
                              qn_view_multi("m", 1, &bad[i], 0, &out, &err),
                              qn_create_mirror(context, QN_SPACE_HOST, &bad[i], &out, &err),
                              qn_view_to_bytes(&bad[i], NULL, &stride, NULL, &err),
                              qn_view_with_traits(&bad[i], QN_RESTRICT, &out, &err),
                              qn_view_resize(context, &held, 1, INDEX(5), NULL, &err),
                              qn_view_realloc(context, &held, 1, INDEX(5), NULL, &err)};
        int n_taken = 0;
        for (int s = 0; s < COUNT(status); s++)
            n_taken += status[s] == QN_OK;
        qn_view_required_bytes(&bad[i], &bytes, &err);
        (void)qn_view_equal(&bad[i], &good);
        bool is_empty = i == 6 || i == 8; /* no data: resize and realloc may make some */
        tap_ok(n_taken == 0 || (is_empty && n_taken <= 2), "hostile view %d: %d calls take it, %s",
               i, n_taken, err.message);
        if (is_empty)
            qn_view_release(&held);
    }
    qn_record_release(r);
}

int main(void)
{
    context = context_with(NULL);
    test_convert();
    test_realloc();
    test_resize_unit();
    test_ownership();
    test_prepared();
    test_multi_units();
    test_list_unit();
    test_listed_parts();
    test_many_fields();
    test_nested_sums();
    test_one_field();
    test_parts_do_not_collide();
    test_builder();
    test_text();
    test_hostile_views();
    qn_context_release(context);
    return tap_done();
}
