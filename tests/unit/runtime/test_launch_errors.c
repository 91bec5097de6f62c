/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_launch_errors.c: every error of a launch, with the parts of its message, the same from
 * qn_prepare and qn_specialize, on the first launch and on one whose good arguments are known;
 * outputs stay as they are.
 */
#include "tests/unit/launch.h"

enum { N = 64 };

typedef struct setup {
    qn_context *c;
    qn_kernel *k;
    qn_view x, y;
} setup;

static bool is_untouched(const qn_view *v)
{
    for (int i = 0; i < N; i++)
        if (((float *)v->data)[i] != 7)
            return false;
    return true;
}

/** One misuse: the status and two parts of the message, through all three entries. */
static void refuse(const setup *s, const qn_kernel *k, int n, const qn_arg *args,
                   const qn_options *o, qn_status status, const char *what, const char *part,
                   const char *other)
{
    qn_error err = {0};
    qn_status found = qn_launch(s->c, k, n, args, o, &err);
    tap_ok(found == status && err.status == (int32_t)status, "%s: %s", what,
           qn_status_name((int)status));
    if (found != status)
        tap_note("found %s: %s", qn_status_name((int)found), err.message);
    tap_contains(err.message, part, what);
    tap_contains(err.message, other, what);
    tap_ok(strncmp(err.message, "qn_launch: ", 11) == 0, "%s: the message starts with the function",
           what);
    qn_call *call = NULL;
    qn_code *f = NULL;
    tap_ok(qn_prepare(s->c, k, n, args, o, &call, &err) == status && !call, "%s: qn_prepare", what);
    tap_ok(qn_specialize(s->c, k, n, args, o, &f, &err) == status && !f, "%s: qn_specialize", what);
    tap_ok(is_untouched(&s->y), "%s: the output is untouched", what);
}

static void test_arguments(const setup *s)
{
    qn_view d = vector_of(s->c, "d", QN_F64, N),
            none = {.dtype = QN_F32, .layout = s->x.layout, .label = "none"};
    const qn_arg x = qn_arg_view(&s->x), y = qn_arg_view(&s->y), a = qn_arg_f32(2);
    const qn_arg few[] = {x, y}, kind[] = {x, y, y}, kind2[] = {a, y, a},
                 dtype[] = {x, y, qn_arg_f64(2)};
    const qn_arg wide[] = {qn_arg_view(&d), y, a}, null[] = {qn_arg_view(&none), y, a},
                 missing[] = {{0}, y, a};
    refuse(s, s->k, 2, few, NULL, QN_ERR_ARGUMENT, "too few", "kernel \"saxpy\"",
           "2 arguments for 3 parameters");
    refuse(s, s->k, 3, NULL, NULL, QN_ERR_ARGUMENT, "no array", "kernel \"saxpy\"", "args is NULL");
    refuse(s, s->k, 3, kind, NULL, QN_ERR_ARGUMENT, "view for scalar", "argument 2 (",
           "expected a scalar of f32");
    refuse(s, s->k, 3, kind2, NULL, QN_ERR_ARGUMENT, "scalar for view", "argument 0 (x)",
           "expected a view of f32");
    refuse(s, s->k, 3, dtype, NULL, QN_ERR_DTYPE, "scalar dtype", "argument 2 (",
           "scalar of f64, expected f32");
    refuse(s, s->k, 3, wide, NULL, QN_ERR_DTYPE, "view dtype", "view \"d\"",
           "dtype f64, expected f32");
    refuse(s, s->k, 3, null, NULL, QN_ERR_NULL_DATA, "null data", "argument 0 (x)",
           "view \"none\"");
    refuse(s, s->k, 3, missing, NULL, QN_ERR_ARGUMENT, "null view", "argument 0 (x)", "NULL");
    qn_view_release(&d);
}

static void test_views(const setup *s)
{
    const int64_t two[] = {8, 8};
    qn_layout matrix;
    qn_layout_right(2, two, &matrix, NULL);
    qn_view v = s->x, odd = s->x, far = s->x, bad = s->x, deep = s->x, moved = s->x;
    v.layout = matrix;
    odd.data = (char *)odd.data + 2;
    far.space = QN_SPACE_CUDA;
    bad.layout.dim[0] = (qn_dim){0, INT64_MAX, INT64_MAX};
    deep.layout.rank = 1000;
    moved.layout.dim[0].extent = -3;
    const qn_arg y = qn_arg_view(&s->y), a = qn_arg_f32(2);
    const qn_arg rank[] = {qn_arg_view(&v), y, a}, align[] = {qn_arg_view(&odd), y, a};
    const qn_arg space[] = {qn_arg_view(&far), y, a}, range[] = {qn_arg_view(&bad), y, a};
    const qn_arg ranks[] = {qn_arg_view(&deep), y, a}, extent[] = {qn_arg_view(&moved), y, a};
    refuse(s, s->k, 3, rank, NULL, QN_ERR_RANK, "rank", "view \"x\"", "rank 2, expected 1");
    refuse(s, s->k, 3, ranks, NULL, QN_ERR_RANK, "huge rank", "argument 0 (x)", "1000");
    refuse(s, s->k, 3, extent, NULL, QN_ERR_EXTENT, "negative extent", "dimension 0", "-3");
    refuse(s, s->k, 3, align, NULL, QN_ERR_ALIGNMENT, "alignment", "view \"x\"",
           "not aligned to the 4 bytes");
    refuse(s, s->k, 3, space, NULL, QN_ERR_SPACE, "space", "view \"x\"", "cuda");
    refuse(s, s->k, 3, range, NULL, QN_ERR_OVERFLOW, "offsets", "argument 0 (x)", "dimension 0");
}

static void test_traits(const setup *s)
{
    qn_view fixed = s->y, aligned = s->x, late, alone = s->x, random = s->x;
    const int64_t broadcast[] = {0}, extent[] = {N};
    fixed.traits = QN_READ_ONLY;
    aligned.traits = QN_ALIGNED;
    aligned.data = (float *)aligned.data + 1;
    aligned.layout.dim[0].extent = N - 1;
    late = aligned;
    late.traits |= QN_ATOMIC;
    alone.traits = QN_RESTRICT;
    alone.data = (float *)s->y.data;
    alone.label = "alone";
    random.traits = QN_RANDOM_ACCESS;
    random.data = (float *)s->y.data;
    qn_view flat = s->y;
    qn_layout_strided(1, extent, broadcast, &flat.layout, NULL);
    const qn_arg x = qn_arg_view(&s->x), y = qn_arg_view(&s->y), a = qn_arg_f32(2);
    const qn_arg args1[] = {x, qn_arg_view(&fixed), a}, args2[] = {qn_arg_view(&aligned), y, a};
    const qn_arg args3[] = {qn_arg_view(&late), y, a}, args4[] = {qn_arg_view(&alone), y, a};
    const qn_arg args5[] = {qn_arg_view(&random), y, a}, args6[] = {x, qn_arg_view(&flat), a};
    refuse(s, s->k, 3, args1, NULL, QN_ERR_READ_ONLY, "read-only", "argument 1 (y)", "read-only");
    refuse(s, s->k, 3, args2, NULL, QN_ERR_ALIGNMENT, "aligned", "view \"x\"", "64 bytes");
    refuse(s, s->k, 3, args3, NULL, QN_ERR_ALIGNMENT, "aligned, late atomic", "view \"x\"",
           "64 bytes");
    refuse(s, s->k, 3, args4, NULL, QN_ERR_OVERLAP, "restrict", "(alone)", "restrict");
    refuse(s, s->k, 3, args5, NULL, QN_ERR_OVERLAP, "random access", "argument 1", "random_access");
    refuse(s, s->k, 3, args6, NULL, QN_ERR_NOT_INJECTIVE, "not injective", "view \"y\"",
           "(64):(0)");
}

static void test_strict(const setup *s)
{
    qn_view near = s->y;
    near.data = (float *)near.data + 1;
    near.label = "near";
    near.layout.dim[0].extent = N - 1;
    const qn_arg args[] = {qn_arg_view(&near), qn_arg_view(&s->y), qn_arg_f32(2)};
    const qn_options o = {.bytes = sizeof o, .strict = 1};
    refuse(s, s->k, 3, args, &o, QN_ERR_OVERLAP, "strict", "(near) overlaps", "strict");
}

static void test_options(const setup *s)
{
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_f32(2)};
    struct {
        qn_options o;
        qn_status status;
        const char *part;
    } bad[] = {
        {{.bytes = 0}, QN_ERR_ARGUMENT, "bytes"},
        {{.bytes = sizeof(qn_options), .engine = 9}, QN_ERR_ARGUMENT, "engine: 9"},
        {{.bytes = sizeof(qn_options), .executor = -1}, QN_ERR_ARGUMENT, "executor: -1"},
        {{.bytes = sizeof(qn_options), .checks = 3}, QN_ERR_ARGUMENT, "checks: 3"},
        {{.bytes = sizeof(qn_options), .isa = 2}, QN_ERR_ARGUMENT, "isa: 2"},
        {{.bytes = sizeof(qn_options), .max_threads = -2}, QN_ERR_ARGUMENT, "max_threads: -2"},
        {{.bytes = sizeof(qn_options), .plan = PLAN_WITH(.width = 12)},
         QN_ERR_ARGUMENT,
         "width: 12"},
        {{.bytes = sizeof(qn_options), .plan = PLAN_WITH(.lane_dim = 2)},
         QN_ERR_ARGUMENT,
         "lane_dim: 2"},
        {{.bytes = sizeof(qn_options), .plan = PLAN_WITH(.order = {5})},
         QN_ERR_ARGUMENT,
         "order[0]: 5"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuse(s, s->k, 3, args, &bad[i].o, bad[i].status, "option", bad[i].part, "option");
    struct {
        qn_options o;
        int64_t newer;
    } later = {{.bytes = sizeof later}, 1};
    refuse(s, s->k, 3, args, &later.o, QN_ERR_VERSION, "newer option", "options of", "lacks");
}

static void test_domain(const setup *s)
{
    qn_kernel *fill = kernel_of(FILL_TEXT);
    const qn_arg reversed[] = {qn_arg_view(&s->y), qn_arg_int(QN_I64, -5)};
    const qn_options strict = {.bytes = sizeof strict, .strict = 1};
    refuse(s, fill, 2, reversed, &strict, QN_ERR_RANGE, "reversed range", "kernel \"fill\"", "-5");
    tap_ok(qn_launch(s->c, fill, 2, reversed, NULL, NULL) == QN_OK && is_untouched(&s->y),
           "by default it is empty");
    const qn_arg long_way[] = {qn_arg_view(&s->y), qn_arg_int(QN_I64, 0)};
    qn_error err = {0};
    tap_ok(qn_launch(s->c, fill, 2, long_way, NULL, &err) == QN_OK, "an empty domain is fine: %s",
           err.message);
    tap_ok(is_untouched(&s->y), "and writes nothing");
    qn_kernel_release(fill);
}

static void test_null(const setup *s)
{
    const qn_arg args[] = {qn_arg_view(&s->x), qn_arg_view(&s->y), qn_arg_f32(2)};
    qn_error err = {0};
    qn_call *call = NULL;
    qn_code *f = NULL;
    tap_ok(qn_launch(NULL, s->k, 3, args, NULL, &err) == QN_ERR_ARGUMENT, "launch without context");
    tap_contains(err.message, "context is NULL", "says so");
    tap_ok(qn_launch(s->c, NULL, 3, args, NULL, &err) == QN_ERR_ARGUMENT, "launch without kernel");
    tap_contains(err.message, "kernel is NULL", "says so");
    tap_ok(qn_launch(s->c, NULL, 3, args, NULL, NULL) == QN_ERR_ARGUMENT,
           "launch without error struct");
    tap_ok(qn_prepare(s->c, s->k, 3, args, NULL, NULL, &err) == QN_ERR_ARGUMENT,
           "prepare without out");
    tap_ok(qn_prepare(NULL, s->k, 3, args, NULL, &call, &err) == QN_ERR_ARGUMENT,
           "prepare without context");
    tap_ok(qn_specialize(s->c, s->k, 3, args, NULL, NULL, &err) == QN_ERR_ARGUMENT,
           "specialize without out");
    tap_ok(qn_specialize(NULL, s->k, 3, args, NULL, &f, &err) == QN_ERR_ARGUMENT,
           "specialize without context");
    tap_ok(qn_run(NULL, &err) == QN_ERR_ARGUMENT, "run without call");
    tap_ok(qn_call_set_scalar(NULL, 0, 0, &err) == QN_ERR_ARGUMENT, "set a scalar without call");
    tap_ok(qn_code_text(NULL, QN_DUMP_KEY, NULL, 0) == 0, "text without function");
    tap_ok(qn_context_history(NULL, NULL, 0) == 0, "history without context");
    tap_ok(qn_context_new(NULL, NULL, &err) == QN_ERR_ARGUMENT, "context without out");
    qn_context_counters(NULL, NULL, 0);
    qn_context_release(NULL);
    qn_code_release(NULL);
    qn_call_release(NULL);
}

static void test_context_options(void)
{
    struct {
        qn_context_options o;
        const char *part;
    } bad[] = {
        {{.bytes = 0}, "bytes"},
        {{.bytes = sizeof(qn_context_options), .n_threads = -1}, "n_threads -1"},
        {{.bytes = sizeof(qn_context_options), .default_executor = 3}, "default_executor 3"},
        {{.bytes = sizeof(qn_context_options), .cache_bytes = -4}, "cache_bytes -4"},
        {{.bytes = sizeof(qn_context_options), .dump = 1u << 20}, "dump 1048576"},
        {{.bytes = sizeof(qn_context_options), .compile_ms = -1}, "compile_ms -1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        qn_context *c = NULL;
        qn_error err = {0};
        tap_ok(qn_context_new(&bad[i].o, &c, &err) == QN_ERR_ARGUMENT && !c,
               "context option is refused");
        tap_contains(err.message, bad[i].part, "by name and value");
    }
}

int main(void)
{
    setup s = {.c = context_with(NULL), .k = kernel_of(SAXPY_TEXT)};
    s.x = vector_of(s.c, "x", QN_F32, N);
    s.y = vector_of(s.c, "y", QN_F32, N);
    const qn_arg good[] = {qn_arg_view(&s.x), qn_arg_view(&s.y), qn_arg_f32(2)};
    for (int round = 0; round < 2; round++) {
        fill_f32(&s.y, 7, 0);
        test_arguments(&s);
        test_views(&s);
        test_traits(&s);
        test_strict(&s);
        test_options(&s);
        test_domain(&s);
        tap_ok(qn_launch(s.c, s.k, 3, good, NULL, NULL) == QN_OK,
               "good arguments run, and are known from now on");
    }
    test_null(&s);
    test_context_options();
    qn_view_release(&s.x);
    qn_view_release(&s.y);
    qn_kernel_release(s.k);
    qn_context_release(s.c);
    return tap_done();
}
