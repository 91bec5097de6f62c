/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_embed.c: quern/embed.h: numbers and structs by name, options as text, boxed views, the
 * builder with numbers for values, places in the source of the host, and the statements of a
 * kernel.
 */
#include "quern/embed.h"
#include "ir/ir.h"
#include "tests/unit/launch.h"

#include <string.h>

/* ---------------------------------------------------------------- names */

static void test_numbers(void)
{
    int64_t value = -1;
    qn_error err = {0};
    static const struct {
        const char *name;
        int64_t value;
    } rows[] = {{"QN_OK", QN_OK},
                {"QN_ERR_ASSERT", QN_ERR_ASSERT},
                {"QN_F32", QN_F32},
                {"QN_RECORD", QN_RECORD},
                {"QN_THREADS", QN_THREADS},
                {"QN_SPACE_CUDA", QN_SPACE_CUDA},
                {"QN_READ_ONLY", QN_READ_ONLY},
                {"QN_COMBINE_MAX", QN_COMBINE_MAX},
                {"QN_OP_fma", QN_OP_fma},
                {"QN_DUMP_PLAN", QN_DUMP_PLAN},
                {"QN_MAX_RANK", QN_MAX_RANK},
                {"QN_NEXT", QN_NEXT},
                {"QN_ISA_SM90", QN_ISA_SM90}};
    bool is_right = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        is_right = is_right && qn_number_by_name(rows[i].name, &value, NULL) == QN_OK &&
                   value == rows[i].value;
    tap_ok(is_right, "numbers by name, from enumerations, lists and macros");
    tap_is_int(qn_number_by_name("QN_CHECKS_NON", &value, &err), QN_ERR_NOT_FOUND,
               "an unknown name");
    tap_contains(err.message, "did you mean QN_CHECKS_NONE?", "... and the nearest one");
    int n = 0, n_twice = 0;
    for (const char *name; (name = qn_number_name(n, &value)) != NULL; n++) {
        int64_t found = -1;
        qn_number_by_name(name, &found, NULL);
        n_twice += found != value;
    }
    tap_ok(n > 200, "the walk finds all of them: %d", n);
    tap_is_int(n_twice, 0, "... none twice with different numbers");
    tap_ok(!qn_number_name(-1, NULL), "no name before the first");
}

/** Members cover a struct: between two of them, and behind the last one, there is padding only. */
static void test_structs(void)
{
    int n = 0;
    for (const char *name; (name = qn_struct_name(n)) != NULL; n++) {
        qn_member m = {0};
        int64_t end = 0, hole = 0;
        for (int i = 0; qn_struct_member(name, i, &m, sizeof m, NULL) == QN_OK; i++) {
            int64_t element = m.bytes / m.count, align = element < 8 ? element : 8;
            hole = m.offset_bytes - end >= align && m.offset_bytes != end ? 1 + end : hole;
            end = m.offset_bytes + m.bytes;
        }
        int64_t left = (int64_t)qn_sizeof(name) - end;
        tap_ok(hole == 0 && left >= 0 && left < 8,
               "%s has no members that are not listed (%d bytes at the end)", name, (int)left);
    }
    tap_ok(n > 20, "there are structs");
    tap_is_int((int64_t)qn_sizeof("qn_view"), sizeof(qn_view), "the size of a view");
    tap_is_int((int64_t)qn_sizeof("qn_nothing"), 0, "... and of nothing");
    qn_error err = {0};
    qn_member m;
    tap_is_int(qn_struct_member("qn_arg", 99, &m, sizeof m, &err), QN_ERR_NOT_FOUND,
               "a member behind the last");
    tap_contains(err.message, "none has number 99", "... is named");
}

/* ---------------------------------------------------------------- a kernel made with numbers */

/** y[i] = a * x[i] + sum over k < 3 of k, with places and names; *fails_at is the line of the load
 * of x. */
static qn_kernel *make_kernel(const char *file, int line)
{
    qn_builder *b = qn_builder_new("numbers", 0);
    uint64_t x = qn_view_param_n(b, "x", QN_F64, 1, QN_READ_ONLY),
             y = qn_view_param_n(b, "y", QN_F64, 1, 0);
    uint64_t a = qn_scalar_param_n(b, "a", QN_F64), begin = qn_lower_n(b, y, 0),
             end = qn_extent_n(b, y, 0);
    uint64_t i = qn_dimension_n(b, QN_DIMENSION_PARALLEL, begin, end), carried, sum;
    qn_builder_name_n(b, i, "i");
    qn_builder_at(b, file, line, 7);
    uint64_t element = qn_load_n(b, x, 1, &i);
    qn_builder_name_n(b, element, "element");
    qn_builder_at(b, file, line + 1, 0);
    uint64_t zero = qn_const_float_n(b, QN_F64, 0), k0 = qn_const_int_n(b, QN_I64, 0),
             k3 = qn_const_int_n(b, QN_I64, 3);
    uint64_t k = qn_for_n(b, k0, k3, 1, 1, &zero, &carried);
    sum = qn_op_n(b, QN_OP_add, 2, (uint64_t[]){carried, qn_cast_n(b, QN_F64, k)});
    qn_end_for_n(b, 1, &sum, &sum);
    uint64_t product = qn_op_n(b, QN_OP_mul, 2, (uint64_t[]){a, element});
    qn_builder_at(b, NULL, line + 2, 1);
    qn_store_n(b, y, 1, &i, qn_op_n(b, QN_OP_add, 2, (uint64_t[]){product, sum}));
    qn_kernel *kernel = NULL;
    qn_error err = {0};
    qn_finish(b, &kernel, &err);
    if (!kernel)
        tap_note("%s", err.message);
    qn_builder_release(b);
    return kernel;
}

static void test_walk(void)
{
    qn_kernel *k = make_kernel("dsl", 10);
    int n_loads = 0, n_stores = 0, n_for = 0, in_loop = 0;
    uint32_t loop = 0;
    for (int i = 1; i <= qn_kernel_n_statements(k); i++) {
        qn_statement s;
        tap_is_int(qn_kernel_statement(k, i, &s, sizeof s, NULL), QN_OK, "a statement");
        if (strcmp(s.word, "load") == 0) {
            n_loads++;
            tap_ok(s.param == 0 && s.n_args == 1 && s.args[0] == (uint32_t)qn_kernel_dim(k, 0) &&
                       s.dtype == QN_F64,
                   "the load: its view, index and dtype");
            tap_ok(s.line == 10 && s.column == 7 && s.file && strcmp(s.file, "dsl") == 0,
                   "... and its place");
            tap_is_str(s.name ? s.name : "", "element", "... and its name");
        }
        if (strcmp(s.word, "store") == 0) {
            n_stores++;
            tap_ok(s.param == 1 && s.line == 12 && s.column == 1 && !s.file,
                   "the store: its view and place");
        }
        if (strcmp(s.word, "for") == 0) {
            n_for++;
            loop = (uint32_t)i;
            tap_ok(s.bits == 1 && s.region[0] == loop + 1 && s.region[2] > s.region[0],
                   "the loop: step and region");
        }
        in_loop += loop && s.parent == loop;
        if (strcmp(s.word, "parallel") == 0)
            tap_ok(s.dim == 0 && s.n_args == 2 && s.name && strcmp(s.name, "i") == 0,
                   "the dimension: number, bounds, name");
        if (strcmp(s.word, "add") == 0)
            tap_is_int(s.op, QN_OP_add, "an op of the table has its number");
    }
    tap_ok(n_loads == 1 && n_stores == 1 && n_for == 1, "each statement is seen once");
    tap_ok(in_loop >= 4, "index, carried value, sum and yield are in the loop");
    tap_is_int(qn_kernel_n_dims(k), 1, "one dimension");
    tap_is_int(qn_kernel_find_param(k, "a"), 2, "a parameter by name");
    tap_is_int(qn_kernel_find_param(k, "b"), -1, "... and none");
    qn_statement s;
    qn_error err = {0};
    tap_is_int(qn_kernel_statement(k, 0, &s, sizeof s, &err), QN_ERR_ARGUMENT,
               "no statement has number 0");
    tap_contains(err.message, "none has number 0", "... which is said");
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- places */

static qn_status run(qn_context *c, const qn_kernel *k, int64_t n_x, const char *options,
                     qn_error *err)
{
    double x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, y[8] = {0};
    qn_view vx = {0}, vy = {0};
    qn_layout lx, ly;
    int64_t n_y = 8;
    qn_layout_right(1, &n_x, &lx, NULL);
    qn_layout_right(1, &n_y, &ly, NULL);
    qn_view_wrap("x", x, QN_F64, &lx, 0, &vx, NULL);
    qn_view_wrap("y", y, QN_F64, &ly, 0, &vy, NULL);
    qn_arg args[3];
    qn_args_set_view(args, 0, &vx);
    qn_args_set_view(args, 1, &vy);
    qn_args_set_f64(args, 2, 2);
    qn_options *o = NULL;
    if (qn_options_parse(options, k, &o, err))
        return QN_ERR_ARGUMENT;
    qn_status status = qn_launch(c, k, 3, args, o, err);
    qn_options_release(o);
    if (status == QN_OK && y[7] != 2 * 8 + 3)
        return QN_ERR_INTERNAL;
    return status;
}

static void test_places(qn_context *c)
{
    static const char *const engines[] = {"engine=interp", "engine=auto",
                                          "engine=auto specialize=dynamic"};
    qn_kernel *first = make_kernel("dsl", 10), *second = make_kernel("other", 20);
    for (size_t e = 0; e < sizeof engines / sizeof engines[0]; e++) {
        qn_error err = {0};
        tap_is_int(run(c, first, 8, engines[e], &err), QN_OK, engines[e]);
        for (int again = 0; again < 2; again++) {
            tap_is_int(run(c, first, 5, engines[e], &err), QN_ERR_BOUNDS, "out of bounds");
            tap_contains(err.message, "; at dsl:10:7", "... at its place");
            tap_is_int(err.line, 10, "... with the line");
            tap_is_int(run(c, second, 5, engines[e], &err), QN_ERR_BOUNDS,
                       "an equal kernel from another file");
            tap_contains(err.message, "; at other:20:7", "... at a place of its own");
        }
    }
    qn_kernel_release(first);
    qn_kernel_release(second);
}

static void keep_first(void *arg, const qn_printed *line)
{
    char *out = arg;
    if (!out[0])
        snprintf(out, 64, "%s", line->text);
}

/** A function, which is inlined, fails at the place in its own source. */
static void test_function_place(qn_context *c)
{
    qn_function *f = NULL;
    qn_builder *b = qn_function_new("positive", 0);
    uint64_t x = qn_scalar_param_n(b, "x", QN_F64), zero = qn_const_float_n(b, QN_F64, 0);
    qn_builder_at(b, "lib", 3, 2);
    qn_assert_n(b, qn_op_n(b, QN_OP_gt, 2, (uint64_t[]){x, zero}), "x is positive", 1, &x);
    qn_print_n(b, "seen", 1, &x);
    tap_is_int(qn_function_finish_n(b, 1, &x, &f, NULL), QN_OK, "a function");
    qn_builder_release(b);
    b = qn_builder_new("caller", 0);
    uint64_t v = qn_view_param_n(b, "v", QN_F64, 1, 0), i, y;
    i = qn_dimension_n(b, QN_DIMENSION_PARALLEL, qn_lower_n(b, v, 0), qn_extent_n(b, v, 0));
    qn_builder_at(b, "main", 5, 0);
    x = qn_load_n(b, v, 1, &i);
    qn_invoke_n(b, f, 1, &x, 0, NULL, &y);
    qn_store_n(b, v, 1, &i, qn_op_n(b, QN_OP_neg, 1, &y));
    qn_kernel *k = NULL;
    qn_finish(b, &k, NULL);
    qn_builder_release(b);
    double data[2] = {1, -1};
    qn_view view;
    qn_layout l;
    qn_layout_right(1, (int64_t[]){2}, &l, NULL);
    qn_view_wrap("v", data, QN_F64, &l, 0, &view, NULL);
    qn_arg arg = qn_arg_view(&view);
    qn_error err = {0};
    tap_is_int(qn_launch(c, k, 1, &arg, NULL, &err), QN_ERR_ASSERT,
               "an assertion in a function fails");
    tap_contains(err.message, "; at lib:3:2", "... at its place in the function");
    qn_options *o = NULL;
    char line[64] = "";
    qn_options_parse("print_lines=1", k, &o, NULL);
    if (o) {
        o->print = keep_first;
        o->print_arg = line;
    }
    data[1] = -1;
    tap_is_int(qn_launch(c, k, 1, &arg, o, &err), QN_ERR_ASSERT, "a launch that prints fails");
    tap_contains(err.message, "; at lib:3:2", "... at the same place");
    tap_is_str(line, "seen: -1; iteration (0)", "... and prints");
    qn_options_release(o);
    o = NULL;
    qn_options_parse("engine=interp debug=nan", k, &o, NULL);
    tap_ok(o && o->debug == QN_DEBUG_NAN && o->engine == QN_ENGINE_INTERP, "options of that run");
    qn_options_release(o);
    qn_kernel_release(k);
    qn_function_release(f);
}

/** Wherever memory runs out while a kernel with places is built, there is no kernel, and nothing
 * breaks. */
static void test_memory(void)
{
    qn_kernel *k = NULL;
    int n = 0;
    for (n = 1; n < 1000 && !k; n++) {
        qn_builder *b = qn_builder_new("memory", 0);
        uint64_t v = qn_view_param_n(b, "v", QN_F64, 1, 0);
        uint64_t i =
            qn_dimension_n(b, QN_DIMENSION_PARALLEL, qn_lower_n(b, v, 0), qn_extent_n(b, v, 0));
        qn__fail_allocation(n, false);
        for (int line = 1; line < 20; line++)
            qn_builder_at(b, line % 2 ? "odd" : "even", line, line);
        qn_builder_name_n(b, i, "i");
        qn_store_n(b, v, 1, &i, qn_const_float_n(b, QN_F64, 1));
        qn_error err = {0};
        qn_status status = qn_finish(b, &k, &err);
        qn__fail_allocation(0, false);
        if (status && status != QN_ERR_MEMORY)
            tap_ok(false, "allocation %d: %s", n, err.message);
        qn_builder_release(b);
    }
    tap_ok(k && n > 10, "a kernel with places is made once there is memory: %d allocations", n - 1);
    qn_statement s = {0};
    qn_kernel_statement(k, qn_kernel_dim(k, 0), &s, sizeof s, NULL);
    tap_is_str(s.name ? s.name : "", "i", "... with its names");
    qn_kernel_release(k);
}

static void test_builder_errors(void)
{
    qn_builder *b = qn_builder_new("wrong", 0);
    qn_val x = qn_scalar_param(b, "x", QN_F64), y = qn_scalar_param(b, "y", QN_F32);
    qn_builder_name(b, x, "speed");
    qn_builder_name(b, x, "another");
    qn_builder_at(b, "a.dsl", 4, 9);
    qn_add(b, x, y);
    qn_error err = {0};
    qn_builder_status(b, &err);
    tap_contains(err.message, "qn_add: kernel \"wrong\"",
                 "a type error names the call and the kernel");
    tap_contains(err.message, "operand 0 (\"speed\") is f64", "... the value by its name");
    tap_contains(err.message, "types differ; at a.dsl:4:9", "... and the place");
    tap_is_int(err.line, 4, "... with its line");
    qn_builder_release(b);

    b = qn_builder_new("collides", 0);
    qn_param p = qn_view_param(b, "v", QN_F64, 1, 0);
    qn_parallel_over(b, p, 0);
    qn_val zero = qn_index(b, 0);
    qn_builder_at(b, "b.dsl", 8, 1);
    qn_store(b, p, 1, &zero, qn_const_float(b, QN_F64, 1));
    qn_builder_at(b, NULL, 0, 0);
    qn_kernel *k = NULL;
    tap_is_int(qn_finish(b, &k, &err), QN_ERR_COLLISION, "a collision is found at the end");
    tap_contains(err.message, "; at b.dsl:8:1", "... and has the place of the store");
    qn_builder_release(b);

    b = qn_builder_new("bad", 0);
    qn_builder_at(b, NULL, -1, 0);
    tap_is_int(qn_builder_status(b, NULL), QN_ERR_ARGUMENT, "a negative line");
    qn_builder_release(b);
    b = qn_builder_new("bad", 0);
    qn_dimension_n(b, 3, 0, 0);
    tap_is_int(qn_builder_status(b, &err), QN_ERR_ARGUMENT, "a kind of dimension that is none");
    qn_builder_release(b);
    b = qn_builder_new("bad", 0);
    uint64_t results[1] = {77}, many[1000] = {0};
    qn_for_n(b, 0, 0, 1, 1000, many, results);
    tap_is_int(results[0] == 77 || results[0] == 0, 1, "a list that is too long writes nothing");
    tap_ok(qn_builder_status(b, NULL) != QN_OK, "... and is an error");
    qn_builder_release(b);
}

/* ---------------------------------------------------------------- options */

static void test_options(void)
{
    qn_kernel *k = make_kernel("dsl", 1);
    qn_options *o = NULL;
    qn_error err = {0};
    qn_status status = qn_options_parse(
        " engine=native executor=threads\tchecks=none isa=v3 strict=1 timeout_ns=5000000000 "
        "lane_dim=i width=4 order=0 constant=a,x.stride.0 dynamic=1.extent.0 "
        "multiple_of=x.extent.0:16 ",
        k, &o, &err);
    tap_is_int(status, QN_OK, "many options");
    if (o) {
        tap_ok(o->bytes == sizeof *o && o->engine == QN_ENGINE_NATIVE &&
                   o->executor == QN_THREADS && o->checks == QN_CHECKS_NONE &&
                   o->isa == QN_ISA_V3 && o->strict == 1 && o->timeout_ns == 5000000000,
               "fields of options");
        tap_ok(o->plan && o->plan->bytes == sizeof *o->plan && o->plan->lane_dim == 1 &&
                   o->plan->width == 4 && o->plan->order[0] == 1 && o->plan->order[1] == 0,
               "fields of the plan");
        tap_ok(o->n_pins == 4 && o->pins[0].param == 2 && o->pins[0].of == QN_PIN_SCALAR &&
                   o->pins[0].as == QN_PIN_CONSTANT && o->pins[1].param == 0 &&
                   o->pins[1].of == QN_PIN_STRIDE && o->pins[2].param == 1 &&
                   o->pins[2].of == QN_PIN_EXTENT && o->pins[2].as == QN_PIN_DYNAMIC &&
                   o->pins[3].param == 0 && o->pins[3].of == QN_PIN_EXTENT &&
                   o->pins[3].as == QN_PIN_MULTIPLE && o->pins[3].multiple == 16,
               "pins");
    }
    qn_options_release(o);
    tap_ok(qn_options_parse("timeout_ns=9223372036854775807", NULL, &o, NULL) == QN_OK &&
               o->timeout_ns == INT64_MAX,
           "the greatest number of 64 bits");
    qn_options_release(o);
    o = NULL;
    tap_is_int(qn_options_parse(NULL, NULL, &o, NULL), QN_OK, "no text is the default");
    tap_ok(!o->plan && !o->pins && o->bytes == sizeof *o, "... all zero");
    qn_options_release(o);
    static const struct {
        const char *text, *message;
    } wrong[] = {{"engine", "expected NAME=VALUE"},
                 {"engine=", "expected NAME=VALUE"},
                 {"engin=native", "did you mean engine?"},
                 {"engine=arm", "neither a number nor a value of this field"},
                 {"strict=yes", "expected a number"},
                 {"strict=99999999999", "does not fit"},
                 {"timeout_ns=9223372036854775808", "expected a number of at most 64 bits"},
                 {"timeout_ns=-9223372036854775809", "expected a number of at most 64 bits"},
                 {"chunk=99999999999999999999", "expected a number of at most 64 bits"},
                 {"multiple_of=x.extent.0:9223372036854775808", "stands behind the colon"},
                 {"timeout_ns=-", "expected a number"},
                 {"timeout_ns=1e9", "expected a number"},
                 {"width=1000", "expected 0 to 64"},
                 {"lane_dim=q", "no dimension"},
                 {"order=i,q", "outermost first"},
                 {"constant=q", "a parameter"},
                 {"constant=x.length.0", "expected .extent.D"},
                 {"constant=x.extent", "expected .extent.D"},
                 {"constant=x.extent.0:8", "only multiples have a colon"},
                 {"multiple_of=x.extent.0", "stands behind the colon"},
                 {"multiple_of=x.extent.0:0", "stands behind the colon"},
                 {"multiple_of=x.extent.0:8,y", "stands behind the colon"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        qn_options *none = NULL;
        tap_ok(qn_options_parse(wrong[i].text, k, &none, &err) == QN_ERR_ARGUMENT && !none, "%s",
               wrong[i].text);
        tap_contains(err.message, wrong[i].message, "... and says why");
    }
    qn_kernel_release(k);
}

static void test_boxes(void)
{
    qn_view *v = qn_view_box(NULL);
    int64_t extents[2] = {3, 4};
    tap_is_int(qn_view_new(NULL, "boxed", QN_I32, 2, extents, v, NULL), QN_OK, "a view in a box");
    tap_ok(qn_view_rank(v) == 2 && qn_view_dtype(v) == QN_I32 &&
               qn_view_space(v) == QN_SPACE_HOST && qn_view_data(v),
           "its fields");
    tap_is_str(qn_view_label(v), "boxed", "its label");
    qn_view *other = qn_view_box(v);
    tap_is_int(qn_view_use_count(v), 2, "another box has a reference");
    qn_arg seven = qn_arg_int(QN_I32, 7);
    tap_is_int(qn_fill_arg(NULL, v, &seven, NULL), QN_OK, "filled by a pointer");
    tap_is_int(((int32_t *)qn_view_data(other))[11], 7, "... the memory is one");
    seven = qn_arg_int(QN_RECORD, 7); /* of which there are no scalars */
    qn_error err = {0};
    tap_ok(qn_fill_arg(NULL, v, &seven, &err) == QN_ERR_DTYPE &&
               strncmp(err.message, "qn_fill_arg: view \"boxed\"", 25) == 0,
           "a value of another dtype: %s", err.message);
    qn_view_unbox(other);
    tap_is_int(qn_view_use_count(v), 1, "a box drops its reference");
    qn_view_unbox(v);
    qn_view_unbox(NULL);
    tap_is_int(qn_view_rank(NULL), 0, "no view has rank 0");
}

static void test_format(void)
{
    static const char text[] = "format 1;\n" COPY_TEXT, newer[] = "format 2;\n" COPY_TEXT;
    qn_kernel *k = NULL;
    qn_error err = {0};
    tap_is_int(qn_text_format(), QN_TEXT_FORMAT, "the format of kernel text");
    tap_is_int(qn_kernel_parse(text, strlen(text), &k, &err), QN_OK,
               "a text that names its format");
    qn_kernel_release(k);
    tap_is_int(qn_kernel_parse(newer, strlen(newer), &k, &err), QN_ERR_VERSION,
               "... a format of the future");
    tap_contains(err.message, "format 2", "... is named");
}

/** A kernel of records and rows, by structs and by numbers: the same text. */
static qn_kernel *records_by_structs(const qn_record *r, const qn_kernel *inner)
{
    qn_builder *b = qn_builder_new("records", 0);
    qn_kernel *k = NULL;
    qn_param p = qn_record_param(b, "p", r, 1, 0), map = qn_view_param(b, "map", QN_I32, 1, 0);
    qn_param y = qn_view_param(b, "y", QN_F64, 1, 0), z = qn_view_param(b, "z", QN_F64, 1, 0);
    const uint8_t kinds[1] = {7};
    qn_param_kinds(b, y, kinds);
    qn_val i = qn_parallel_over(b, y, 0), row = qn_with_kind(b, i, 0);
    qn_val zero = qn_const_float(b, QN_F64, 0), sum, last;
    qn_val k0 = qn_for_row(b, map, row, 1, &zero, &sum);
    sum = qn_add(b, sum, qn_load_field(b, p, 1, 1, &k0));
    qn_end_for(b, 1, &sum, &sum);
    last = qn_row_at(b, map, row, qn_sub(b, qn_row_end(b, map, row), qn_row_begin(b, map, row)));
    qn_val whole = qn_with_field(b, qn_load(b, p, 1, &last), 1, sum);
    qn_val made = qn_record_of(b, r, 2, (qn_val[]){qn_field_of(b, whole, 0), sum});
    qn_store_field(b, p, 1, 1, &row, qn_field_of(b, made, 1));
    qn_store(b, y, 1, &i, sum);
    qn_apply(b, inner, 1, &row, 1, &sum, 1, &z);
    qn_error err = {0};
    tap_is_int(qn_finish(b, &k, &err), QN_OK, "a kernel by structs");
    if (!k)
        tap_note("%s", err.message);
    qn_builder_release(b);
    return k;
}

static qn_kernel *records_by_numbers(const qn_record *r, const qn_kernel *inner)
{
    qn_builder *b = qn_builder_new("records", 0);
    qn_kernel *k = NULL;
    uint64_t p = qn_record_param_n(b, "p", r, 1, 0), map = qn_view_param_n(b, "map", QN_I32, 1, 0);
    uint64_t y = qn_view_param_n(b, "y", QN_F64, 1, 0), z = qn_view_param_n(b, "z", QN_F64, 1, 0);
    const uint8_t kinds[1] = {7};
    qn_param_kinds_n(b, y, kinds);
    uint64_t low = qn_lower_n(b, y, 0), extent = qn_extent_n(b, y, 0);
    uint64_t end = qn_op_n(b, QN_OP_add, 2, (uint64_t[]){low, extent});
    uint64_t i = qn_dimension_n(b, QN_DIMENSION_PARALLEL, low, end), row = qn_with_kind_n(b, i, 0);
    uint64_t zero = qn_const_float_n(b, QN_F64, 0), sum, last;
    uint64_t k0 = qn_for_row_n(b, map, row, 1, &zero, &sum);
    sum = qn_op_n(b, QN_OP_add, 2, (uint64_t[]){sum, qn_load_field_n(b, p, 1, 1, &k0)});
    qn_end_for_n(b, 1, &sum, &sum);
    uint64_t n[2] = {qn_row_end_n(b, map, row), qn_row_begin_n(b, map, row)};
    last = qn_row_at_n(b, map, row, qn_op_n(b, QN_OP_sub, 2, n));
    uint64_t whole = qn_with_field_n(b, qn_load_n(b, p, 1, &last), 1, sum);
    uint64_t made = qn_record_of_n(b, r, 2, (uint64_t[]){qn_field_of_n(b, whole, 0), sum});
    qn_store_field_n(b, p, 1, 1, &row, qn_field_of_n(b, made, 1));
    qn_store_n(b, y, 1, &i, sum);
    qn_apply_n(b, inner, 1, &row, 1, &sum, 1, &z);
    qn_error err = {0};
    tap_is_int(qn_finish(b, &k, &err), QN_OK, "a kernel by numbers");
    if (!k)
        tap_note("%s", err.message);
    qn_builder_release(b);
    return k;
}

static void test_twins(void)
{
    static const char text[] =
        "kernel inner (y: f64[], s: f64) { for all i in y { y[i] = s + f64(i) } }";
    const qn_field fields[2] = {{.name = "n", .dtype = QN_I32, .offset = QN_NEXT},
                                {.name = "v", .dtype = QN_F64, .offset = QN_NEXT}};
    char printed[2][4000] = {"", ""};
    qn_record *r = NULL;
    qn_kernel *inner = NULL;
    qn_error err = {0};
    if (qn_record_new(2, fields, 0, 0, &r, &err) ||
        qn_kernel_parse(text, sizeof text - 1, &inner, &err))
        tap_note("%s", err.message);
    qn_kernel *k[2] = {records_by_structs(r, inner), records_by_numbers(r, inner)};
    for (int i = 0; i < 2; i++)
        qn_kernel_print(k[i], printed[i], sizeof printed[i]);
    tap_ok(strlen(printed[0]) > 500,
           "the kernel has records, rows, kinds and another kernel's body");
    tap_is_str(printed[1], printed[0], "the twins of functions with structs build the same kernel");
    for (int i = 0; i < 2; i++)
        qn_kernel_release(k[i]);
    qn_kernel_release(inner);
    qn_record_release(r);
}

int main(void)
{
    qn_context *c = context_with(NULL);
    test_numbers();
    test_structs();
    test_walk();
    test_places(c);
    test_function_place(c);
    test_builder_errors();
    test_memory();
    test_options();
    test_boxes();
    test_twins();
    test_format();
    qn_context_release(c);
    return tap_done();
}
