/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_spec_kernels.c: the examples of the specification of views that run a kernel, on the
 * interpreter and on generated code, exact and dynamic, one thread and several, with checks and
 * without. Checks start with the ids of their rows.
 */
#include "tests/fill.h"
#include "tests/unit/launch.h"
#include "tests/unit/layout.h"

/** The ways to run a kernel. */
static const qn_options ways[] = {
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_INTERP},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_EXACT},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .specialize = QN_SPECIALIZE_DYNAMIC},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .executor = QN_THREADS},
    {.bytes = sizeof(qn_options), .engine = QN_ENGINE_NATIVE, .checks = QN_CHECKS_NONE},
};
static int n_ways;
static qn_context *context;

static qn_view new_view(const char *label, int dtype, int rank, const int64_t *extents)
{
    qn_view v = {0};
    qn_error err = {0};
    tap_ok(qn_view_new(context, label, dtype, rank, extents, &v, &err) == QN_OK, "a view %s",
           err.message);
    return v;
}

static qn_kernel *finish(qn_builder *b)
{
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_ok(qn_finish(b, &k, &err) == QN_OK, "a kernel %s", err.message);
    qn_builder_release(b);
    return k;
}

/** Runs; a difference from `expected` is a failure. */
static qn_error run(const qn_kernel *k, int n, const qn_arg *args, int way, int expected,
                    const char *what)
{
    qn_error err = {0};
    int status = (int)qn_launch(context, k, n, args, &ways[way], &err);
    tap_ok(status == expected, "%s, way %d: %s", what, way, err.message);
    return err;
}

/** X0.21, X3.4: c(i0,i1) = a(i0) * b(i1), c Left. */
static void test_outer_product(void)
{
    enum { N0 = 37, N1 = 21 };
    qn_builder *b = qn_builder_new("outer", 0);
    qn_param a = qn_view_param(b, "a", QN_I32, 1, QN_READ_ONLY),
             v = qn_view_param(b, "b", QN_I32, 1, 0), c = qn_view_param(b, "c", QN_I32, 2, 0);
    qn_val i[] = {qn_parallel_over(b, c, 0), qn_parallel_over(b, c, 1)};
    qn_store(b, c, 2, i, qn_mul(b, qn_load(b, a, 1, &i[0]), qn_load(b, v, 1, &i[1])));
    qn_kernel *k = finish(b);
    qn_view va = new_view("a", QN_I32, 1, INDEX(N0)), vb = new_view("b", QN_I32, 1, INDEX(N1)), vc;
    for (int j = 0; j < N0; j++)
        ((int32_t *)va.data)[j] = j;
    for (int j = 0; j < N1; j++)
        ((int32_t *)vb.data)[j] = j;
    qn_layout l;
    qn_layout_left(2, INDEX(N0, N1), &l, NULL);
    qn_view_alloc(context, "c", QN_I32, &l, 0, &vc, NULL);
    const qn_arg args[] = {qn_arg_view(&va), qn_arg_view(&vb), qn_arg_view(&vc)};
    for (int w = 0; w < n_ways; w++) {
        fill_bits(context, &vc, 0, NULL);
        run(k, 3, args, w, QN_OK, "X0.21, X3.4: outer product");
        int wrong = 0;
        for (int j = 0; j < N1; j++)
            for (int n = 0; n < N0; n++)
                wrong += ((int32_t *)vc.data)[n + N0 * j] != n * j;
        tap_is_int(wrong, 0, "X0.21: c.data()[i0 + N0*i1] is i0*i1");
    }
    qn_view_release(&va);
    qn_view_release(&vb);
    qn_view_release(&vc);
    qn_kernel_release(k);
}

/** X4.7, X4.6: rank-3 view with fixed extents, a(i,j,k) = 100 i + 10 j + k; then a += b, b
 * read-only. */
static void test_rank3(void)
{
    enum { N = 7 };
    qn_builder *b = qn_builder_new("fill", 0);
    qn_param p = qn_view_param(b, "a", QN_F64, 3, 0);
    qn_val i[3], ten = qn_index(b, 10), sum;
    for (int d = 0; d < 3; d++)
        i[d] = qn_parallel_over(b, p, d);
    sum = qn_add(b, qn_mul(b, qn_add(b, qn_mul(b, i[0], ten), i[1]), ten), i[2]);
    qn_store(b, p, 3, i, qn_cast(b, QN_F64, sum));
    qn_kernel *k = finish(b);
    qn_view_type type;
    qn_view v;
    qn_view_type_init(QN_F64, 3, INDEX(-1, 3, 4), QN_FAMILY_ANY, &type, NULL);
    qn_view_create(context, &type, 1, INDEX(N),
                   &(qn_alloc_options){.bytes = sizeof(qn_alloc_options), .label = "a"}, &v, NULL);
    tap_ok(v.layout.dim[0].stride == 12 && v.layout.dim[1].stride == 4 &&
               v.layout.dim[2].stride == 1,
           "X4.7, X4.1: strides of double*[3][4]");
    for (int w = 0; w < n_ways; w++) {
        fill_bits(context, &v, 0, NULL);
        run(k, 1, (qn_arg[]){qn_arg_view(&v)}, w, QN_OK, "X4.7: a parallel loop");
        int wrong = 0;
        for (int n = 0; n < N * 12; n++)
            wrong += ((double *)v.data)[n] != 100 * (n / 12) + 10 * (n / 4 % 3) + n % 4;
        tap_is_int(wrong, 0, "X4.7: values");
    }
    qn_view_release(&v);
    qn_kernel_release(k);
}

/** ET3: stores through read-only parameters are errors of the builder; EA1, EA4: the number of
 * indices too. */
static void test_builder_rows(void)
{
    for (int row = 0; row < 4; row++) {
        qn_builder *b = qn_builder_new("k", 0);
        qn_param ro = qn_view_param(b, "ro", QN_F32, 2, QN_READ_ONLY),
                 rw = qn_view_param(b, "rw", QN_F32, 2, 0);
        qn_val i[] = {qn_parallel_over(b, rw, 0), qn_parallel_over(b, rw, 1), qn_index(b, 0)};
        qn_error err = {0};
        if (row == 0)
            qn_store(b, ro, 2, i, qn_const_float(b, QN_F32, 1));
        else if (row == 1)
            qn_load(b, rw, 3, i);
        else if (row == 2)
            qn_load(b, rw, 1, i);
        else
            qn_load(b, rw, 0, NULL);
        tap_is_int(qn_builder_status(b, &err), row ? QN_ERR_RANK : QN_ERR_READ_ONLY,
                   row ? "EA1, EA4: the number of indices is the rank" : "ET3: read-only");
        tap_contains(err.message, row ? "view \"rw\"" : "view \"ro\" is read-only",
                     "... and says where");
        qn_builder_release(b);
    }
}

/** X4.28: y(i) += sum of val(k) * x(ind(k)), k in [ptr(i), ptr(i+1)). */
static void test_spmv(void)
{
    qn_builder *b = qn_builder_new("spmv", 0);
    qn_param ptr = qn_view_param(b, "ptr", QN_I64, 1, 0),
             ind = qn_view_param(b, "ind", QN_I32, 1, 0),
             val = qn_view_param(b, "val", QN_F64, 1, 0),
             x = qn_view_param(b, "x", QN_F64, 1, QN_RANDOM_ACCESS),
             y = qn_view_param(b, "y", QN_F64, 1, 0);
    qn_val i = qn_parallel_over(b, y, 0), next = qn_add(b, i, qn_index(b, 1)),
           sum = qn_load(b, y, 1, &i);
    qn_val k = qn_for(b, qn_load(b, ptr, 1, &i), qn_load(b, ptr, 1, &next), 1, 1, &sum, &sum);
    qn_val at = qn_load(b, ind, 1, &k);
    sum = qn_add(b, sum, qn_mul(b, qn_load(b, val, 1, &k), qn_load(b, x, 1, &at)));
    qn_end_for(b, 1, &sum, &sum);
    qn_store(b, y, 1, &i, sum);
    qn_kernel *kernel = finish(b);
    int64_t ptr_data[] = {0, 2, 3, 5};
    int32_t ind_data[] = {0, 2, 1, 0, 2};
    double val_data[] = {1, 2, 3, 4, 5}, x_data[] = {1, 2, 3}, y_data[3];
    struct {
        void *data;
        int dtype;
        int64_t n;
        qn_view v;
    } part[] = {{ptr_data, QN_I64, 4, {0}}, {ind_data, QN_I32, 5, {0}}, {val_data, QN_F64, 5, {0}},
                {x_data, QN_F64, 3, {0}},   {y_data, QN_F64, 3, {0}}};
    qn_arg args[5];
    for (int p = 0; p < 5; p++) {
        qn_layout l;
        qn_layout_right(1, &part[p].n, &l, NULL);
        qn_view_wrap("part", part[p].data, part[p].dtype, &l, 0, &part[p].v, NULL);
        args[p] = qn_arg_view(&part[p].v);
    }
    for (int w = 0; w < n_ways; w++) {
        y_data[0] = y_data[1] = y_data[2] = 10;
        run(kernel, 5, args, w, QN_OK, "X4.28: spmv");
        tap_ok(y_data[0] == 17 && y_data[1] == 16 && y_data[2] == 29, "X4.28, X4.27: 17, 16, 29");
    }
    qn_kernel_release(kernel);
}

/** X4.26: one element of an atomic view; 9 becomes 10. */
static void test_atomic_element(void)
{
    qn_builder *b = qn_builder_new("bump", 0);
    qn_param a = qn_view_param(b, "a", QN_I32, 1, 0);
    qn_val one = qn_index(b, 1), i = qn_parallel(b, one, qn_index(b, 2));
    qn_store(b, a, 1, &i, qn_add(b, qn_load(b, a, 1, &i), qn_const_int(b, QN_I32, 1)));
    qn_kernel *k = finish(b);
    qn_view v = new_view("a", QN_I32, 1, INDEX(4)), atomic;
    qn_view_with_traits(&v, QN_ATOMIC, &atomic, NULL);
    for (int w = 0; w < n_ways; w++) {
        ((int32_t *)v.data)[1] = 9;
        run(k, 1, (qn_arg[]){qn_arg_view(&atomic)}, w, QN_OK, "X4.26: a_atomic(1) += 1");
        tap_is_int(((int32_t *)v.data)[1], 10, "X4.26: 9 becomes 10");
    }
    qn_view_release(&atomic);
    qn_view_release(&v);
    qn_kernel_release(k);
}

/* ------------------------------------------------------------------------------------------------
 * bounds */

/** r[i,j] for i in [from, to), all j, stored to out[0, j]. */
static qn_kernel *make_reader(void)
{
    qn_builder *b = qn_builder_new("reader", 0);
    qn_param r = qn_view_param(b, "r", QN_F32, 2, 0), out = qn_view_param(b, "out", QN_F32, 2, 0);
    qn_val from = qn_scalar_param(b, "from", QN_I64), to = qn_scalar_param(b, "to", QN_I64);
    qn_val i = qn_parallel(b, from, to), j = qn_parallel_over(b, out, 1);
    qn_val at[] = {i, j}, target[] = {qn_sub(b, i, from), j};
    qn_store(b, out, 2, target, qn_load(b, r, 2, at));
    return finish(b);
}

/** X1.21, X1.22, BC1 to BC6, Q14, DR6: messages of all engines are the same and hold everything. */
static void test_messages(void)
{
    qn_kernel *k = make_reader();
    qn_view r = new_view("R", QN_F32, 2, INDEX(10, 5)),
            out = new_view("out", QN_F32, 2, INDEX(1, 5)), shifted, nameless;
    qn_layout l;
    const qn_arg high[] = {qn_arg_view(&r), qn_arg_view(&out), qn_arg_int(QN_I64, 10),
                           qn_arg_int(QN_I64, 11)},
                 low[] = {qn_arg_view(&r), qn_arg_view(&out), qn_arg_int(QN_I64, -1),
                          qn_arg_int(QN_I64, 0)};
    qn_layout_offset(&r.layout, INDEX(-5, 0), &l, NULL);
    qn_view_with_layout(&r, &l, &shifted, NULL);
    nameless = r;
    nameless.label = NULL;
    for (int w = 0; w < n_ways; w++) {
        qn_arg args[4] = {qn_arg_view(&shifted), high[1], qn_arg_int(QN_I64, -6),
                          qn_arg_int(QN_I64, -5)};
        if (ways[w].checks == QN_CHECKS_NONE)
            continue;
        qn_error err = run(k, 4, high, w, QN_ERR_BOUNDS, "X1.21, BC2: out of range");
        tap_contains(err.message, "view \"R\", argument 0, dimension 0: index 10 not in [0,10)",
                     "Q14, BC6: range");
        tap_contains(err.message, "indices [10,0], extents [10,5]",
                     "Q14, BC2, DR6: all indices and extents");
        err = run(k, 4, low, w, QN_ERR_BOUNDS, "BC4: a negative index");
        tap_contains(err.message, "index -1 not in [0,10); indices [-1,0]", "BC4, Q14: signed");
        err = run(k, 4, args, w, QN_ERR_BOUNDS, "BC6: lower bounds");
        tap_contains(err.message, "index -6 not in [-5,5)",
                     "BC6, LY14: the range of the dimension");
        args[2] = qn_arg_int(QN_I64, -5);
        args[3] = qn_arg_int(QN_I64, -4);
        run(k, 4, args, w, QN_OK, "LY14, LY17, IM4: indices with lower bounds");
        args[0] = qn_arg_view(&nameless);
        args[2] = qn_arg_int(QN_I64, 10);
        args[3] = qn_arg_int(QN_I64, 11);
        err = run(k, 4, args, w, QN_ERR_BOUNDS, "BC3: no label");
        tap_ok(strstr(err.message, "argument 0") && strstr(err.message, "index 10 not in [0,10)"),
               "BC3: %s", err.message);
    }
    const qn_arg fine[] = {high[0], high[1], qn_arg_int(QN_I64, 9), qn_arg_int(QN_I64, 10)};
    for (int w = 0; w < n_ways; w++)
        run(k, 4, fine, w, QN_OK, "X1.22, BC1: with and without checks");
    qn_view_release(&shifted);
    qn_view_release(&r);
    qn_view_release(&out);
    qn_kernel_release(k);
}

/** BC7, Q6, LY24: projected dimensions take any index, and an empty dimension none. */
static void test_projected_and_empty(void)
{
    qn_kernel *k = make_reader();
    qn_layout l;
    qn_view row, empty = new_view("empty", QN_F32, 2, INDEX(0, 5)),
                 out = new_view("out", QN_F32, 2, INDEX(3, 5));
    qn_layout_projected(2, INDEX(0, 5), &l, NULL);
    qn_view_alloc(context, "row", QN_F32, &l, 0, &row, NULL);
    fill_f32(&(qn_view){.data = row.data, .layout = {.rank = 1, .dim = {{0, 5, 1}}}}, 1, 1);
    for (int w = 0; w < n_ways; w++) {
        fill_bits(context, &out, 0, NULL);
        qn_arg args[] = {qn_arg_view(&row), qn_arg_view(&out), qn_arg_int(QN_I64, 1000),
                         qn_arg_int(QN_I64, 1003)};
        run(k, 4, args, w, QN_OK, "BC7, LY24: any index");
        int wrong = 0;
        for (int n = 0; n < 15; n++)
            wrong += ((float *)out.data)[n] != (float)(1 + n % 5);
        tap_is_int(wrong, 0, "LY24: they add nothing");
        args[0] = qn_arg_view(&empty);
        args[2] = qn_arg_int(QN_I64, 0);
        args[3] = qn_arg_int(QN_I64, 1);
        if (ways[w].checks != QN_CHECKS_NONE)
            run(k, 4, args, w, QN_ERR_BOUNDS, "RK7, X1.19, BC8: every access of an empty view");
        args[3] = qn_arg_int(QN_I64, 0);
        run(k, 4, args, w, QN_OK, "OV3, Q13: no iterations, nothing runs");
        args[3] = qn_arg_int(QN_I64, -1);
        run(k, 4, args, w, QN_OK, "Q13: a reversed range is empty");
        args[2] = qn_arg_int(QN_I64, INT64_MIN);
        args[3] = qn_arg_int(QN_I64, INT64_MAX);
        run(k, 4, args, w, QN_ERR_OVERFLOW, "OV3: more iterations than 64 bits count");
    }
    qn_view_release(&row);
    qn_view_release(&empty);
    qn_view_release(&out);
    qn_kernel_release(k);
}

/** MS4, Q16: a view of another space names itself, its space and what cannot reach it. */
static void test_spaces(void)
{
    qn_kernel *k = kernel_of(COPY_TEXT);
    qn_view x = vector_of(context, "x", QN_F32, 8), y = vector_of(context, "y", QN_F32, 8), far = x;
    far.space = QN_SPACE_ROCM;
    far.label = "far";
    const qn_arg args[] = {qn_arg_view(&far), qn_arg_view(&y)};
    for (int w = 0; w < n_ways; w++) {
        qn_error err = run(k, 2, args, w, QN_ERR_SPACE, "MS4: the wrong space");
        tap_contains(err.message, "view \"far\"", "MS4: the view");
        tap_contains(err.message, "rocm", "MS4: the space");
    }
    qn_view_release(&x);
    qn_view_release(&y);
    qn_kernel_release(k);
}

/** LY25, DC6: one copy kernel over layouts of one shape, exact and dynamic, is the same function.
 */
static void test_exact_and_dynamic(void)
{
    qn_builder *b = qn_builder_new("copy3", 0);
    qn_param x = qn_view_param(b, "x", QN_I64, 3, 0), y = qn_view_param(b, "y", QN_I64, 3, 0);
    qn_val i[3];
    for (int d = 0; d < 3; d++)
        i[d] = qn_parallel_over(b, x, d);
    qn_store(b, y, 3, i, qn_load(b, x, 3, i));
    qn_kernel *k = finish(b);
    qn_view from = new_view("from", QN_I64, 3, INDEX(7, 13, 5)), to;
    for (int n = 0; n < 455; n++)
        ((int64_t *)from.data)[n] = n;
    for (int kind = 0; kind < 5; kind++) {
        qn_layout l;
        if (kind == 0)
            qn_layout_left(3, INDEX(7, 13, 5), &l, NULL);
        else if (kind == 1)
            qn_layout_permuted(3, INDEX(7, 13, 5), (int[]){1, 2, 0}, &l, NULL);
        else if (kind == 2)
            qn_layout_right_padded(3, INDEX(7, 13, 5), 8, &l, NULL);
        else if (kind == 3)
            qn_layout_tiled(3, INDEX(7, 13, 5), INDEX(4, 2, 4), NULL, NULL, &l, NULL);
        else
            qn_layout_morton(3, INDEX(7, 13, 5), NULL, &l, NULL);
        qn_view_alloc(context, "to", QN_I64, &l, 0, &to, NULL);
        const qn_arg args[] = {qn_arg_view(&from), qn_arg_view(&to)};
        for (int w = 0; w < n_ways; w++) {
            fill_bits(context, &to, 0, NULL);
            run(k, 2, args, w, QN_OK, "LY25, DC6, LY19, LY20: a copy");
            int wrong = 0;
            for (int n = 0; n < 455; n++) {
                void *p = NULL;
                qn_view_at(&to, 3, INDEX(n / 65, n / 5 % 13, n % 5), &p, NULL);
                wrong += *(int64_t *)p != n;
            }
            tap_is_int(wrong, 0, "LY25: every element is where its layout says");
        }
        qn_view_release(&to);
        qn_layout_release(&l);
    }
    qn_view_release(&from);
    qn_kernel_release(k);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES + 40];
    context =
        context_with(&(qn_context_options){.bytes = sizeof(qn_context_options), .n_threads = 2});
    n_ways = has_x86(reason, sizeof reason) ? (int)(sizeof ways / sizeof *ways) : 1;
    if (n_ways == 1)
        tap_skip(reason);
    test_outer_product();
    test_rank3();
    test_builder_rows();
    test_spmv();
    test_atomic_element();
    test_messages();
    test_projected_and_empty();
    test_spaces();
    test_exact_and_dynamic();
    qn_context_release(context);
    return tap_done();
}
