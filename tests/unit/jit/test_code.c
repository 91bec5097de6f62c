/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_code.c: that what a plan says of memory is in the code: prefetches and non-temporal stores
 * change no result, so no other test sees whether they are there; nor whether code goes around
 * sides of an `if` that no lane takes. Views are only described.
 */
#include "tests/unit/launch.h"

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

static const char matmul[] =
    "kernel \"matmul\" { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
    "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %l: i64 = extent a, 1;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %k: i64 = reduction %z, %l;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j];\n"
    "%p: f64 = mul %x, %y; yield %p; }; store c[%i, %j], %r; }";
static const char batch[] =
    "kernel \"batch\" { view a: f64[3]; view b: f64[3]; view c: f64[3];\n"
    "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %l: i64 = extent a, 1; %h: "
    "i64 = extent c, 2;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %o: i64 = parallel %z, %h; %k: i64 = "
    "reduction %z, %l;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k, %o]; %y: f64 = load b[%k, %j, %o];\n"
    "%p: f64 = mul %x, %y; yield %p; }; store c[%i, %j, %o], %r; }";
static const char three[] =
    "kernel \"three\" { view x: f64[2]; view y: f64[2]; %o: i64 = const 1;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %m1: i64 = sub %m, %o; %n1: i64 = sub %n, %o;\n"
    "%i: i64 = parallel %o, %m1; %j: i64 = parallel %o, %n1; %h: i64 = sub %i, %o; %k: i64 = add "
    "%i, %o;\n"
    "%a: f64 = load x[%i, %j]; %b: f64 = load x[%h, %j]; %c: f64 = load x[%k, %j];\n"
    "%s: f64 = add %a, %b; %t: f64 = add %s, %c; store y[%i, %j], %t; }";

static const char complex[] =
    "kernel \"complex\" { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
    "%z: i64 = const 0; %o: i64 = const 1; %n: i64 = extent c, 0; %i: i64 = parallel %z, %n;\n"
    "%ar: f64 = load a[%i, %z]; %ai: f64 = load a[%i, %o];\n"
    "%br: f64 = load b[%i, %z]; %bi: f64 = load b[%i, %o];\n"
    "%rr: f64 = mul %ar, %br; %ii: f64 = mul %ai, %bi; %ri: f64 = mul %ar, %bi; %ir: f64 = mul "
    "%ai, %br;\n"
    "%r: f64 = sub %rr, %ii; %m: f64 = add %ri, %ir; store c[%i, %z], %r; store c[%i, %o], %m; }";

static const char twice[] =
    "kernel \"twice\" { view x: f64[2]; view y: f64[2]; %z: i64 = const 0;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %i: i64 = parallel %z, %m; %j: i64 = parallel "
    "%z, %n;\n"
    "%a: f64 = load x[%i, %j]; %b: f64 = add %a, %a; store y[%i, %j], %b; }";

/** A view that shares memory with no other, at an address that is never used. */
static qn_view view(int rank, const int64_t *extents, bool left)
{
    static uintptr_t address;
    qn_view v = {.data = (void *)(address += UINT64_C(1) << 32), .dtype = QN_F64};
    (left ? qn_layout_left : qn_layout_right)(rank, extents, &v.layout, NULL);
    return v;
}

/** Whether a word stands in the LLVM text, and a line in the plan, both or neither. */
static void check(qn_context *c, const char *text, int n, const qn_view *v, int streams,
                  const char *planned, const char *word, bool is_there, const char *what)
{
    static char plan[8192], code[1 << 20];
    qn_kernel *k = kernel_of(text);
    qn_code *f = NULL;
    qn_error err = {0};
    qn_arg args[3];
    for (int i = 0; i < n; i++)
        args[i] = qn_arg_view(&v[i]);
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .plan = PLAN_WITH(.streams = streams)};
    bool ok = qn_specialize(c, k, n, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_PLAN, plan, sizeof plan) &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    bool is_planned = ok && strstr(plan, planned), is_emitted = ok && strstr(code, word);
    if (!tap_ok(ok && is_planned == is_there && is_emitted == is_there, "%s", what))
        tap_note("%s, planned: %d, in the code: %d", err.message, is_planned, is_emitted);
    qn_code_release(f);
    qn_kernel_release(k);
}

static const char *const checked_rows =
    "kernel \"k\" { view x: f64[2]; view y: i64[1]; scalar rows: i64;\n"
    "%0: i64 = const 0; %n: i64 = extent y, 0; %i: i64 = parallel %0, %n; %e: i64 = param rows; "
    "%k: i64 = reduction %0, %e;\n"
    "%s: i64 = reduce sum over %k { %j: i64 = add %k, 4; %h: i64 = sub %i, 1; %a: f64 = load x[%j, "
    "%h]; %b: i64 = cast %a; yield %b; };\n"
    "store y[%i], %s; }\n";

/**
 * Three lanes of a vector of eight, and a row that is checked: LLVM 19 may load the upper half of
 * such a vector whole if it can compute that half of the mask from constants.
 */
static void test_known_lanes(qn_context *c)
{
    char code[40000] = "";
    qn_error err = {0};
    qn_view x = view(2, DIMS(9, 3), false), y = view(1, DIMS(3), false);
    x.dtype = QN_F64;
    y.dtype = QN_I64;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y), qn_arg_int(QN_I64, 5)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = PLAN_WITH(.lane_dim = 1, .width = 8, .unroll = 1)};
    qn_kernel *k = kernel_of(checked_rows);
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, "@llvm.masked.load.v8f64") && strstr(code, "and <8 x i1> %") &&
                    !strstr(code, "and <8 x i1> <"),
                "a mask of known lanes and a check is no mask of constants"))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Appends so many multiplications and additions of %x, the last of which is %p. */
static size_t add_chain(char *text, size_t at, size_t bytes, int n)
{
    at += (size_t)snprintf(text + at, bytes - at, "%%p%d: f64 = mul %%x, 0x1p-1;\n", n);
    for (; n > 0; n--)
        at += (size_t)snprintf(text + at, bytes - at, "%%p%d: f64 = fma %%p%d, %%x, %d;\n", n - 1,
                               n, n);
    return at;
}

/** How often a word stands in a text. */
static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

/** Whether all lanes' results are chosen where code does not come if no lane takes the side:
 * between `active` and its join. */
static bool is_chosen_inside(const char *code)
{
    const char *side = strstr(code, "\nactive"), *join = side ? strstr(side, "\njoin") : NULL;
    const char *select = strstr(code, " = select ");
    return side && join && select > side && select < join && !strstr(join, " = select ");
}

/** Sides of so many operations: around how many the code of this plan goes. */
static void check_sides(qn_context *c, const char *opening, int n_yes, int n_no,
                        const qn_plan_options *plan, int isa, int n_around, const char *what)
{
    static char text[16384], code[1 << 20];
    size_t at =
        (size_t)snprintf(text, sizeof text,
                         "kernel \"sides\" { view x: f64[2]; view y: f64[2]; %%o: i64 = const 0;\n"
                         "%%m: i64 = extent y, 0; %%n: i64 = extent y, 1; %%i: i64 = parallel %%o, "
                         "%%m; %%j: i64 = parallel %%o, %%n;\n"
                         "%%x: f64 = load x[%%i, %%j]; %%b: f64 = const 1; %%c: bool = gt %%x, "
                         "%%b; %%r: f64 = %s %%c {\n",
                         opening);
    at = add_chain(text, at, sizeof text, n_yes);
    at += (size_t)snprintf(text + at, sizeof text - at, "yield %%p0; } else {\n");
    at = add_chain(text, at, sizeof text, n_no);
    snprintf(text + at, sizeof text - at, "yield %%p0; }; store y[%%i, %%j], %%r; }");
    qn_kernel *k = kernel_of(text);
    qn_view v[2] = {view(2, DIMS(64, 64), false), view(2, DIMS(64, 64), false)};
    const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = isa, .plan = plan};
    qn_code *f = NULL;
    qn_error err = {0};
    bool ok = qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    int found = ok ? count_of(code, "\nactive") : -1;
    if (!tap_ok(found == n_around, "%s", what))
        tap_note("%s, found %d", err.message, found);
    if (n_around == 1)
        tap_ok(ok && is_chosen_inside(code),
               "... behind which results are chosen, and not where code always comes");
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Plans whose steps fill the rows, so that each body stands once. */
static void test_sides(qn_context *c)
{
    const qn_plan_options *plain = PLAN_WITH(.width = 4, .unroll = 1, .jam = 1),
                          *unrolled = PLAN_WITH(.width = 4, .unroll = 4, .jam = 1),
                          *jammed = PLAN_WITH(.lane_dim = 2, .width = 4, .unroll = 1, .jam_dim = 1,
                                              .jam = 2);
    check_sides(c, "if", 3, 3, plain, QN_ISA_V3, 0, "sides of three operations are computed both");
    check_sides(c, "if rare", 3, 3, plain, QN_ISA_V3, 1,
                "a rare one of three operations is gone around");
    check_sides(c, "if rare", 3, 80, plain, QN_ISA_V3, 2,
                "... and an expensive one that is usual, too");
    check_sides(c, "if", 80, 3, plain, QN_ISA_V3, 1, "a test skips a side of 80");
    check_sides(c, "if", 3, 80, plain, QN_ISA_V3, 1, "... also the second");
    check_sides(c, "if", 80, 80, plain, QN_ISA_V3, 2, "... and both");
    check_sides(c, "if", 30, 3, plain, QN_ISA_V3, 0,
                "30 operations cost less than a test that was guessed wrongly");
    check_sides(c, "if", 30, 3, unrolled, QN_ISA_V3, 1, "30 of four vectors cost more");
    check_sides(c, "if", 50, 3, jammed, QN_ISA_V3, 1, "... and so do 50 of two rows");
}

/** LLVM 19 takes twenty times as long to select code for a conversion of a vector of bools as for a
 * select. */
static void test_bools(qn_context *c)
{
    static char code[1 << 16];
    qn_error err = {0};
    qn_view x = view(1, DIMS(64), false), y = view(1, DIMS(64), false);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3};
    qn_kernel *k = kernel_of(
        "kernel \"k\" { view x: f64[1]; view y: f64[1]; %0: i64 = const 0; %n: i64 = extent y, 0;\n"
        "%i: i64 = parallel %0, %n; %a: f64 = load x[%i]; %b: bool = gt %a, 2; %c: f64 = cast %b; "
        "store y[%i], %c; }");
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, "select <4 x i1>") && !strstr(code, "uitofp"),
                "a vector of bools becomes floats by a select"))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
    const qn_options scalar = {.bytes = sizeof scalar,
                               .engine = QN_ENGINE_NATIVE,
                               .isa = QN_ISA_V3,
                               .plan = PLAN_WITH(.lane_dim = -1)};
    k = kernel_of(
        "kernel \"k\" { view x: f64[1]; view y: f64[1]; %0: i64 = const 0; %n: i64 = extent y, 0;\n"
        "%i: i64 = parallel %0, %n; %a: f64 = load x[%i]; %b: bool = gt %a, 2; %c: bool = lt %a, "
        "9; %d: bool = and %b, %c;\n"
        "%e: f64 = select %d, %a, 1; store y[%i], %e; }");
    f = NULL;
    ok = k && qn_specialize(c, k, 2, args, &scalar, &f, &err) == QN_OK &&
         qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, " = and i8 ") && !strstr(code, " = and i1 "),
                "scalar bools are combined in bytes"))
        tap_note("%s", err.message);
    qn_code_release(f);
    static const char what[] =
        "bools of four registers are combined in each, before they are put together";
    if (!has_v4(what)) {
        qn_kernel_release(k);
        return;
    }
    const qn_options wide = {.bytes = sizeof wide,
                             .engine = QN_ENGINE_NATIVE,
                             .isa = QN_ISA_V4,
                             .plan = PLAN_WITH(.width = 32)};
    f = NULL;
    ok = qn_specialize(c, k, 2, args, &wide, &f, &err) == QN_OK &&
         qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, " = and <8 x i1> ") && !strstr(code, " = and <32 x i1> "),
                "%s", what))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Vectors that all columns of a tile load could be loaded before them, but registers have no room
 * for those of all points. */
static void test_loads_outside(qn_context *c)
{
    static char code[200000];
    qn_error err = {0};
    qn_view v[3];
    qn_arg args[3];
    for (int i = 0; i < 3; i++) {
        v[i] = view(3, DIMS(8, 8, 384), false);
        args[i] = qn_arg_view(&v[i]);
    }
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3};
    qn_kernel *k = kernel_of(batch);
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_ASM, code, sizeof code);
    int n = count_of(code, "(%rsp)");
    if (!tap_ok(ok && n < 16, "a tile of a batch keeps its loads where they are used"))
        tap_note("%s, %d values in the frame", err.message, n);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Fields that one index reads are tested by one branch, unless it may leave one of them alone. */
static void test_alike(qn_context *c)
{
    static char code[200000];
    for (int longer = 0; longer <= 1; longer++) {
        qn_view v[4] = {view(1, DIMS(100), false), view(2, DIMS(50, 2), false),
                        view(1, DIMS(50 + longer), false), view(1, DIMS(100), false)};
        qn_arg args[4];
        for (int i = 0; i < 4; i++)
            args[i] = qn_arg_view(&v[i]);
        v[0].dtype = QN_I64;
        const qn_options o = {.bytes = sizeof o,
                              .engine = QN_ENGINE_NATIVE,
                              .isa = QN_ISA_V3,
                              .plan = PLAN_WITH(.lane_dim = -1)};
        qn_error err = {0};
        qn_kernel *k = kernel_of(
            "kernel fields (at: i64[], x: f64[,], w: f64[], y: f64[]) {\n"
            "for all i in y { y[i] = x[at[i], 0] * w[at[i]] + y[i] * x[at[i], 1] } }");
        qn_code *f = NULL;
        bool ok = k && qn_specialize(c, k, 4, args, &o, &f, &err) == QN_OK &&
                  qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
        int n = count_of(code, "\nfailed");
        if (!tap_ok(ok && n == 1 + longer, "%s",
                    longer ? "a longer view has a branch of its own"
                           : "three loads by one index have one branch"))
            tap_note("%s%d branches", err.message, n);
        qn_code_release(f);
        qn_kernel_release(k);
    }
}

/** The first address of a row is known where the loops of a tile are open, and those inside are
 * not. */
static void test_tiled_stream(qn_context *c)
{
    char code[60000] = "";
    qn_error err = {0};
    qn_view x = view(2, DIMS(1000, 1000), false), y = view(2, DIMS(1000, 1000), true);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .plan = PLAN_WITH(.streams = 1, .tile_dim = 1, .tile = 32)};
    qn_kernel *k = kernel_of(twice);
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && strstr(code, "!nontemporal"), "a transposition in tiles streams"))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Two results of each column. In the second kernel the later one needs the first. */
static const char *const column_pairs[] = {
    "kernel \"pair\" { view x: f64[2]; view s: f64[1]; view y: f64[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n;\n"
    "%a: f64 = reduce sum over %k { %x: f64 = load x[%k, %i]; yield %x; }; store s[%i], %a;\n"
    "%b: f64 = reduce max over %k { %y: f64 = load x[%k, %i]; yield %y; }; store y[%i], %b; }",
    "kernel \"chain\" { view x: f64[2]; view s: f64[1]; view y: f64[1];\n"
    "%z: i64 = const 0; %n: i64 = extent x, 0; %m: i64 = extent s, 0;\n"
    "%i: i64 = parallel %z, %m; %k: i64 = reduction %z, %n;\n"
    "%a: f64 = reduce sum over %k { %x: f64 = load x[%k, %i]; yield %x; }; store s[%i], %a;\n"
    "%b: f64 = reduce max over %k { %v: f64 = load x[%k, %i]; %y: f64 = sub %v, %a; yield %y; };\n"
    "store y[%i], %b; }",
};

static int count(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        n++;
    return n;
}

/** Reduces of one range are folded in one loop where they may, and their array is read once. */
static void test_tuples(qn_context *c)
{
    static char code[1 << 18], schedule[1 << 16];
    qn_view x = view(2, DIMS(1000, 64), false), s = view(1, DIMS(64), false),
            y = view(1, DIMS(64), false);
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&s), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .specialize = QN_SPECIALIZE_EXACT};
    for (int is_chain = 0; is_chain < 2; is_chain++) {
        qn_error err = {0};
        qn_kernel *k = kernel_of(column_pairs[is_chain]);
        qn_code *f = NULL;
        bool ok = k && qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
                  qn_code_text(f, QN_DUMP_SCHEDULE, schedule, sizeof schedule) &&
                  qn_code_text(f, QN_DUMP_ASM, code, sizeof code);
        int places = ok ? count(schedule, " order ") : 0;
        int compares = ok ? count(code, "$1000, ") : 0; /* of a loop over points with its end */
        if (!tap_ok(places == 1 + is_chain && compares == 1 + is_chain,
                    is_chain ? "a reduce that needs another one has a loop of its own"
                             : "two reduces of one range are folded in one loop"))
            tap_note("%s: %d places, %d loops", err.message, places, compares);
        qn_code_release(f);
        qn_kernel_release(k);
    }
}

/** Means of 2 x 2 elements: both points of a row lie in one stride of the lanes. */
static const char pool[] =
    "kernel \"pool\" { view x: f32[2]; view y: f32[2]; %z: i64 = const 0; %two: i64 = const 2;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %i: i64 = parallel %z, %m;\n"
    "%j: i64 = parallel %z, %n; %p: i64 = reduction %z, %two; %q: i64 = reduction %z, %two;\n"
    "%s: f32 = reduce sum over %p, %q { %a: i64 = mul %i, %two; %b: i64 = add %a, %p;\n"
    "%c: i64 = mul %j, %two; %d: i64 = add %c, %q; %v: f32 = load x[%b, %d]; yield %v; };\n"
    "store y[%i, %j], %s; }";

/** Elements that several points of a reduce need are loaded once, as whole vectors. */
static void test_window(qn_context *c)
{
    static char code[1 << 18], schedule[1 << 16];
    qn_view x = view(2, DIMS(32, 128), false), y = view(2, DIMS(16, 64), false);
    qn_error err = {0};
    x.dtype = y.dtype = QN_F32;
    const qn_arg args[] = {qn_arg_view(&x), qn_arg_view(&y)};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .specialize = QN_SPECIALIZE_EXACT,
                          .plan = PLAN_WITH(.width = 8)}; /* no straight code */
    qn_kernel *k = kernel_of(pool);
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_SCHEDULE, schedule, sizeof schedule) &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    tap_ok(ok && count(schedule, "unrolled") >= 2 && !strstr(code, "masked.load") &&
               count(code, "load <8 x float>") > 0,
           "points of windows share whole vectors %s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Lanes a few elements apart: whole vectors from the first element to the last, also of bytes. */
static void test_strided(qn_context *c)
{
    static const char text[] =
        "kernel strided (x: u8[], y: u8[]) {\n for all i in y { y[i] = x[i] } }";
    static char code[1 << 18];
    for (int stride = 2; stride <= 4; stride++) {
        qn_view v[2] = {view(1, DIMS(320), false), view(1, DIMS(320), false)};
        v[0].dtype = v[1].dtype = QN_U8;
        v[0].layout.dim[0].stride = stride;
        const qn_arg args[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
        const qn_options o = {.bytes = sizeof o,
                              .engine = QN_ENGINE_NATIVE,
                              .isa = QN_ISA_V3,
                              .plan = PLAN_WITH(.width = 32, .unroll = 1)};
        qn_kernel *k = NULL;
        qn_code *f = NULL;
        qn_error err = {0};
        bool ok = qn_kernel_parse(text, sizeof text - 1, &k, &err) == QN_OK &&
                  qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
                  qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
        if (!tap_ok(ok && count_of(code, "masked.load") == 0 &&
                        count_of(code, "= load <32 x i8>") == stride,
                    "bytes %d apart are read as %d whole vectors", stride, stride))
            tap_note("%s%d vectors", err.message, count_of(code, "= load <32 x i8>"));
        qn_code_release(f);
        qn_kernel_release(k);
    }
}

/** Iterations side by side that share a tile, of a view whose indices begin below 0. */
static void test_jammed_digits(qn_context *c)
{
    static const char text[] =
        "kernel tiles (x: i32[,], y: i32[,,]) {\n"
        " for all i in dim(y, 0), j in dim(y, 1), l in dim(y, 2) {\n"
        "  y[i, j, l] = x[l - 2, 1 - l] * x[l - 2, 1 - l + j] } }";
    enum { SIDE = 4, ROWS = 3, WIDE = 9, LOW = -2 };
    static int32_t x[SIDE * (SIDE + WIDE + 3)], y[2][ROWS * WIDE * SIDE];
    const int64_t extents[2] = {SIDE, SIDE + WIDE - 1}, tile[2] = {2, 2}, low[2] = {LOW, LOW},
                  of_y[3] = {ROWS, WIDE, SIDE};
    const int order[2] = {1, 0};
    qn_layout tiles, shifted, right;
    qn_view v[3] = {{0}};
    qn_error err = {0};
    qn_kernel *k = kernel_of(text);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (int32_t)(i * i + 3);
    bool ok = qn_layout_tiled(2, extents, tile, order, order, &tiles, &err) == QN_OK &&
              qn_layout_offset(&tiles, low, &shifted, &err) == QN_OK &&
              qn_layout_right(3, of_y, &right, &err) == QN_OK &&
              qn_view_wrap("x", x, QN_I32, &shifted, 0, &v[0], &err) == QN_OK;
    for (int n = 0; n < 2; n++) {
        ok = ok && qn_view_wrap("y", y[n], QN_I32, &right, 0, &v[1 + n], &err) == QN_OK;
        const qn_arg args[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1 + n])};
        const qn_options o = {.bytes = sizeof o,
                              .engine = n ? QN_ENGINE_NATIVE : QN_ENGINE_INTERP,
                              .isa = n ? QN_ISA_V3 : QN_ISA_AUTO,
                              .specialize = QN_SPECIALIZE_EXACT,
                              .plan = PLAN_WITH(.jam_dim = 3, .jam = 2)};
        ok = ok && qn_launch(c, k, 2, args, &o, &err) == QN_OK;
    }
    if (!tap_ok(ok && memcmp(y[0], y[1], sizeof y[0]) == 0,
                "jammed iterations of a tile whose indices begin below 0: as the interpreter"))
        tap_note("%s", err.message);
    qn_view_release(&v[0]);
    qn_layout_release(&tiles);
    qn_layout_release(&shifted);
    qn_kernel_release(k);
}

/** Sums in the indexed order of more points than a block of 4096, in strips. */
static void test_strip_blocks(qn_context *c)
{
    static char plan[8192];
    enum { POINTS = 2 * 4096 + 70, SUMS = 37 };
    static const char text[] = "kernel blocks (x: f32[,], y: f32[]) {\n"
                               " for all i in y { y[i] = sum indexed k in dim(x, 0) of x[k, i] } }";
    const int64_t n = SUMS, both[2] = {POINTS, SUMS};
    qn_error err = {0};
    qn_kernel *k = kernel_of(text);
    qn_code *f = NULL;
    qn_view x = {0}, y = vector_of(c, "y", QN_F32, n), expected = vector_of(c, "y", QN_F32, n);
    if (qn_view_new(c, "x", QN_F32, 2, both, &x, &err) != QN_OK)
        tap_ok(false, "test view: %s", err.message);
    for (int64_t i = 0; i < (int64_t)POINTS * SUMS; i++)
        ((float *)x.data)[i] = (float)(i * 7919 % 2001 - 1000) / 7;
    const qn_arg args[2] = {qn_arg_view(&x), qn_arg_view(&y)},
                 wanted[2] = {args[0], qn_arg_view(&expected)};
    const qn_options interp = {.bytes = sizeof interp, .engine = QN_ENGINE_INTERP};
    bool has_expected = qn_launch(c, k, 2, wanted, &interp, &err) == QN_OK;
    for (int specialize = QN_SPECIALIZE_EXACT; specialize <= QN_SPECIALIZE_DYNAMIC; specialize++) {
        const qn_options o = {.bytes = sizeof o,
                              .engine = QN_ENGINE_NATIVE,
                              .specialize = specialize,
                              .isa = QN_ISA_V3,
                              .plan = PLAN_WITH(.strip = 16)};
        bool ok = has_expected && qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
                  qn_code_text(f, QN_DUMP_PLAN, plan, sizeof plan) &&
                  qn_launch(c, k, 2, args, &o, &err) == QN_OK;
        if (!tap_ok(ok && strstr(plan, "strip ") &&
                        memcmp(y.data, expected.data, SUMS * sizeof(float)) == 0,
                    "blocks of sums in strips, %s: the bits of the interpreter",
                    specialize == QN_SPECIALIZE_EXACT ? "exact" : "dynamic"))
            tap_note("%s, plan: %s", err.message, plan);
        memset(y.data, 0, SUMS * sizeof(float));
        qn_code_release(f);
        f = NULL;
    }
    qn_view_release(&x);
    qn_view_release(&y);
    qn_view_release(&expected);
    qn_kernel_release(k);
}

/** Stores of lanes of which it is known which are inside: without registers of masks pieces of
 * powers of two, which end where the row does. */
static void test_known_stores(qn_context *c)
{
    static const char text[] = "kernel batch (a: f64[,,], b: f64[,,], c: f64[,,]) {\n"
                               " for all m, i, j in c {\n"
                               "  c[m, i, j] = sum k in dim(a, 2) of a[m, i, k] * b[m, k, j] } }";
    static char code[1 << 18];
    const qn_view v[3] = {view(3, DIMS(500, 3, 3), false), view(3, DIMS(500, 3, 3), false),
                          view(3, DIMS(500, 3, 3), false)};
    const qn_arg args[3] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2])};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3};
    qn_kernel *k = NULL;
    qn_code *f = NULL;
    qn_error err = {0};
    bool ok = qn_kernel_parse(text, sizeof text - 1, &k, &err) == QN_OK &&
              qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && !strstr(code, "masked.store") && count_of(code, "store <2 x double>") >= 3,
                "three lanes are stored as two and one"))
        tap_note("%s%s", err.message, ok ? code : "");
    qn_code_release(f);
    qn_kernel_release(k);
}

/** A row at an index that all lanes share: one test of the index, and vectors without masks. */
static void test_rows(qn_context *c)
{
    static const char text[] = "kernel rows (w: f64[,], n: i64[], y: f64[,]) {\n"
                               "for all b, e in y { y[b, e] = w[n[b], e] } }";
    static char code[1 << 20];
    qn_view v[3] = {view(2, DIMS(500, 64), false), view(1, DIMS(100), false),
                    view(2, DIMS(100, 64), false)};
    v[1].dtype = QN_I64;
    const qn_arg args[3] = {qn_arg_view(&v[0]), qn_arg_view(&v[1]), qn_arg_view(&v[2])};
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V4};
    qn_kernel *k = NULL;
    qn_code *f = NULL;
    qn_error err = {0};
    static const char what[] = "rows at an index are tested once, and have no masks";
    if (!has_v4(what))
        return;
    bool ok = qn_kernel_parse(text, sizeof text - 1, &k, &err) == QN_OK &&
              qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    if (!tap_ok(ok && count_of(code, "llvm.masked") == 0 && count_of(code, ", 500") == 1, "%s",
                what))
        tap_note("%s%d masks, %d tests", err.message, count_of(code, "llvm.masked"),
                 count_of(code, ", 500"));
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Whether the plan of a kernel of several views says something. */
static void check_plan(qn_context *c, const char *text, int n, const qn_view *v, const char *says,
                       const char *what)
{
    static char plan[1 << 16];
    qn_arg args[3];
    if (!has_v4(what))
        return;
    for (int p = 0; p < n; p++)
        args[p] = qn_arg_view(&v[p]);
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V4};
    qn_kernel *k = NULL;
    qn_code *f = NULL;
    qn_error err = {0};
    bool ok = qn_kernel_parse(text, strlen(text), &k, &err) == QN_OK &&
              qn_specialize(c, k, n, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_PLAN, plan, sizeof plan);
    if (!tap_ok(ok && strstr(plan, says), "%s", what))
        tap_note("%s%s", err.message, plan);
    qn_code_release(f);
    qn_kernel_release(k);
}

static void test_steps(qn_context *c)
{
    qn_view v[3] = {view(2, DIMS(200, 12), false), view(2, DIMS(200, 12), false)};
    check_plan(c,
               "kernel columns (x: f64[,], y: f64[,]) contract {\n"
               "for all c in dim(x, 1) { s: f64 = 0\n for t in dim(x, 0) {\n"
               "s = 0.9 * (0.8 * (0.7 * s + x[t, c]) + 0.6) + 0.5\n y[t, c] = s } } }",
               2, v, "width 4\nunroll 3\n",
               "12 recurrences, which are waited for, are three vectors of 4 in one step");
    for (int p = 0; p < 3; p++)
        v[p] = view(1, DIMS(4000), false);
    v[0].dtype = QN_I64;
    check_plan(c,
               "kernel scatter (n: i64[], x: f64[], y: f64[]) {\n"
               "for all i in x { y[n[i]] = x[i] } }",
               3, v, "jam 0 x 8", "what is only moved to any place is eight scalars at once");
    v[0] = view(1, DIMS(4000), false);
    v[1] = view(2, DIMS(8, 500), false);
    v[0].dtype = v[1].dtype = QN_U8;
    check_plan(c,
               "kernel planes (x: u8[], y: u8[,]) {\n"
               "for all p in 0 .. 8, i in dim(y, 1) { b = u8(0)\n for k in 0 .. 8 {\n"
               "b = b | (((x[8 * i + k] >> u8(p)) & 1) << u8(k)) }\n y[p, i] = b } }",
               2, v, "lanes 1\n", "planes of bits are rows of lanes, and no transposed blocks");
    v[0] = view(2, DIMS(41, 64), false);
    v[0].dtype = QN_F32;
    check_plan(c,
               "kernel tree (v: f32[,]) {\n"
               "for all o in dim(v, 1) { for t in 0 .. 40 { for k in 0 .. 40 - t {\n"
               "v[k, o] = 0.52 * v[k + 1, o] + 0.47 * v[k, o] } } } }",
               1, v, "unroll 4\n", "loops whose ends are not foreseen are run once for a row");
    v[0] = view(2, DIMS(64, 300), true);
    v[1] = view(1, DIMS(64), false);
    check_plan(c,
               "kernel striped (x: f64[,], s: f64[]) {\n"
               "for all i in s { s[i] = sum striped j in dim(x, 1) of x[i, j] } }",
               2, v, "unroll 4\n", "partials of the striped order stay in registers");
    v[0] = view(2, DIMS(136, 232), true);
    check_plan(c,
               "kernel total (x: f64[,], s: f64[]) { for all i in 0 .. 1 {\n"
               "s[0] = sum striped a in dim(x, 0), b in dim(x, 1) of x[a, b] } }",
               2, v, "lanes 2 (reduction)\n",
               "partials of two dimensions, which are in memory, take longer");
    v[0] = view(2, DIMS(100, 200), true);
    v[1] = view(2, DIMS(100, 200), true);
    v[0].dtype = v[1].dtype = QN_F32;
    check_plan(c,
               "kernel apart (x: f32[,], y: f32[,]) { for all i, j in y {\n"
               "m = max k in dim(x, 1) of x[i, k]\n y[i, j] = x[i, j] - m } }",
               2, v, "width 16\nunroll 4\n", "a step of a block of 64 iterations is no longer");
}

/** Lanes over the points of a reduce are neighbours within a tile. */
static void test_tiled_points(qn_context *c)
{
    qn_view v[2] = {view(2, DIMS(96, 160), false), view(1, DIMS(96), false)};
    qn_layout_tiled(2, DIMS(96, 160), DIMS(8, 8), NULL, NULL, &v[0].layout, NULL);
    check(c,
          "kernel most (x: f64[,], s: f64[]) {\n"
          "for all i in s { s[i] = max j in dim(x, 1) of x[i, j] } }",
          2, v, 0, "lanes 1 (reduction)\n", "load <8 x double>", true,
          "points of a tile's row are whole vectors");
    v[0].dtype = v[1].dtype = QN_F32;
    check_plan(c,
               "kernel most (x: f32[,], s: f32[]) {\n"
               "for all i in s { s[i] = max j in dim(x, 1) of x[i, j] } }",
               2, v, "width 8\nunroll 8\n", "vectors are no longer than a tile's row");
    qn_layout_release(&v[0].layout);
}

/** Lanes of trips: two steps of them stand one behind the other, three are a loop. */
static void test_few_steps(qn_context *c)
{
    static char code[1 << 16];
    for (int steps = 2; steps <= 3 && has_v4("lanes of few steps of trips"); steps++) {
        qn_view v[2] = {view(2, DIMS(150, 16 * steps), false), view(1, DIMS(150), false)};
        v[0].dtype = v[1].dtype = QN_I32;
        const qn_arg args[] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
        const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V4};
        qn_error err = {0};
        qn_kernel *k = NULL;
        qn_code *f = NULL;
        static const char text[] =
            "kernel bits (x: i32[,], y: i32[]) { for all i in y { w: i32 = 0\n"
            "for k in dim(x, 1) { w = w | (x[i, k] ^ (i32(k) << 3)) }\n"
            "y[i] = w } }";
        bool ok = qn_kernel_parse(text, strlen(text), &k, &err) == QN_OK &&
                  qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
                  qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
        if (!tap_ok(ok && count_of(code, " = phi i64") == steps - 1, "%d steps of trips", steps))
            tap_note("%s %d", err.message, count_of(code, " = phi i64"));
        qn_code_release(f);
        qn_kernel_release(k);
    }
}

/** Lanes are extended where that takes less: a chain of bytes behind its last step, and bits that a
 * product of 64 takes before they are combined. */
static void test_widths(qn_context *c)
{
    qn_view v[2] = {view(1, DIMS(4010), false), view(1, DIMS(4000), false)};
    v[0].dtype = QN_U8;
    v[1].dtype = QN_U32;
    check(c,
          "kernel digits (x: u8[], y: u32[]) {\n"
          "for all i in y { s = u32(0)\n for k in 0 .. 8 { s = s * 4 + u32(x[i + k] & 3) }\n"
          "y[i] = s } }",
          2, v, 0, "width 32\n", "add <32 x i8>", true,
          "four digits of two bits are combined in bytes, and fill registers");
    v[0].dtype = v[1].dtype = QN_U64;
    check(c,
          "kernel mixed (x: u64[], y: u64[]) {\n"
          "for all i in y { a = u32(x[i] >> 32) ^ u32(x[i])\n"
          "y[i] = u64(a ^ 77) * 3528531795 } }",
          2, v, 0, "lanes 0", "xor <4 x i64>", true,
          "what a product of 64 bits takes is combined in 64");
    v[1].dtype = QN_I32;
    check(c,
          "kernel parts (x: u64[], y: i32[]) {\n"
          "for all i in y { y[i] = i32(x[i] >> 60) + i32(x[i] >> 61) } }",
          2, v, 0, "lanes 0", "add <4 x i64>", true,
          "parts of 64 bits are added in 64 before they are cut");
}

/** Rows that begin where data say are whole vectors, under masks only at the ends of the view. */
static void test_offsets(qn_context *c)
{
    static char code[400000];
    qn_view v[3] = {view(2, DIMS(8, 900), false), view(1, DIMS(8), false),
                    view(1, DIMS(800), false)};
    v[1].dtype = QN_I64;
    qn_arg args[3];
    for (int i = 0; i < 3; i++)
        args[i] = qn_arg_view(&v[i]);
    const qn_options o = {.bytes = sizeof o, .engine = QN_ENGINE_NATIVE, .isa = QN_ISA_V3};
    qn_error err = {0};
    qn_kernel *k = kernel_of("kernel delays (x: f64[,], d: i64[], y: f64[]) {\n"
                             "for all t in y { y[t] = sum m in d of x[m, t + d[m]] } }");
    qn_code *f = NULL;
    bool ok = k && qn_specialize(c, k, 3, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    int n = count_of(code, "\nfailed");
    if (!tap_ok(ok && n > 0 && strstr(code, "load <4 x double>"),
                "rows at any offset are whole vectors where their ends are in range"))
        tap_note("%s%d rows", err.message, n);
    qn_code_release(f);
    qn_kernel_release(k);
}

/** Without masks of bytes: lanes where a loop has as many trips in all of them; else none. */
static void test_bytes_in_loops(qn_context *c)
{
    qn_view v[2] = {view(2, DIMS(40, 400), false), view(1, DIMS(400), false)};
    v[0].dtype = v[1].dtype = QN_U8;
    check(c,
          "kernel fires (x: u8[,], y: u8[]) { for all n in y { u = y[n]\n"
          "for t in dim(x, 0) { u = (u >> 1) + x[t, n]\n x[t, n] = u & 3 }\n y[n] = u } }",
          2, v, 0, "lanes 0", "x i8>", true, "bytes in a loop of one length are lanes");
    check(c,
          "kernel fires (x: u8[,], y: u8[]) { for all n in y { u = y[n]\n"
          "for t in 0 .. i64(y[n] & 7) { u = (u >> 1) + x[t, n]\n x[t, n] = u & 3 }\n"
          "y[n] = u } }",
          2, v, 0, "no such word", "x i8>", false, "in one whose length data say they are not");
}

/** Elements that the step before stored are in registers, lanes that are out of range load zeros
 * without a branch each, and the result of the only block of a striped sum is that of the sum. */
static void test_ahead_of_memory(qn_context *c)
{
    static char code[400000];
    qn_view v[3] = {view(1, DIMS(1000), false), view(1, DIMS(1000), false),
                    view(1, DIMS(1000), false)};
    check(c,
          "kernel sums (x: f64[], y: f64[]) {\n"
          "for sequential i in 1 .. extent(x, 0) { y[i] = y[i - 1] + x[i] } }",
          2, v, 0, "lanes -1", " = phi double", true, "a recurrence is in registers");
    check(c,
          "kernel sums (x: f64[], y: f64[]) {\n"
          "for sequential i in 2 .. extent(x, 0) { y[i] = y[i - 2] + x[i] } }",
          2, v, 0, "lanes -1", " = load double", true, "that of every other step is in memory");
    v[1].dtype = QN_I64;
    check(c,
          "kernel far (x: f64[], at: i64[], y: f64[]) {\n"
          "for all i in y { y[i] = exp(x[at[i]]) } }",
          3, v, 0, "lanes 0", "@qn_zeros", true, "lanes out of range load zeros");
    v[1].dtype = QN_F64;
    v[0] = view(2, DIMS(10, 64), false);
    qn_kernel *k = kernel_of("kernel sums (x: f64[,], y: f64[]) striped {\n"
                             "for all i in y { y[i] = sum k in dim(x, 1) of x[i, k] } }");
    qn_code *f = NULL;
    qn_error err = {0};
    qn_arg args[2] = {qn_arg_view(&v[0]), qn_arg_view(&v[1])};
    const qn_options o = {.bytes = sizeof o,
                          .engine = QN_ENGINE_NATIVE,
                          .isa = QN_ISA_V3,
                          .specialize = QN_SPECIALIZE_DYNAMIC};
    bool ok = k && qn_specialize(c, k, 2, args, &o, &f, &err) == QN_OK &&
              qn_code_text(f, QN_DUMP_LLVM, code, sizeof code);
    bool is_tested = false;
    for (const char *at = code; ok && (at = strstr(at, "icmp ugt i64 %")) != NULL; at++)
        is_tested |= strstr(at, ", 1\n") == strchr(at, ',');
    if (!tap_ok(is_tested, "one block is no matter of partials"))
        tap_note("%s", err.message);
    qn_code_release(f);
    qn_kernel_release(k);
}

int main(void)
{
    char reason[QN_MESSAGE_BYTES];
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    qn_context *c = context_with(NULL);
    qn_view m[3] = {view(2, DIMS(256, 256), true), view(2, DIMS(256, 256), false),
                    view(2, DIMS(256, 256), false)};
    test_rows(c);
    test_steps(c);
    test_widths(c);
    test_few_steps(c);
    test_tiled_points(c);
    test_loads_outside(c);
    test_alike(c);
    test_offsets(c);
    test_bytes_in_loops(c);
    check(c, matmul, 3, m, 0, "points ahead", "llvm.prefetch", true,
          "a product asks for the first operand by columns ahead of time");
    m[0] = view(2, DIMS(300, 300), false);
    check(c, matmul, 3, m, 0, "points ahead", "llvm.prefetch", false,
          "by rows it asks for nothing");
    qn_view b[3];
    for (int large = 1; large >= 0; large--) {
        for (int i = 0; i < 3; i++)
            b[i] = view(3, DIMS(4, 4, large ? 100000 : 960), false);
        check(c, batch, 3, b, 0, "steps of the lanes ahead", "llvm.prefetch", large,
              large ? "a large batch asks for what the next steps load"
                    : "a small one for nothing");
    }
    qn_view x[2] = {view(2, DIMS(3000, 3000), false), view(2, DIMS(3000, 3000), false)};
    for (int streams = 1; streams >= -1; streams -= 2) {
        check(c, three, 2, x, streams, "bytes ahead", "llvm.prefetch", streams > 0,
              streams > 0 ? "a streaming stencil asks for its front row"
                          : "one that does not stream for nothing");
        check(c, three, 2, x, streams, "streams 1", "!nontemporal", streams > 0,
              streams > 0 ? "its stores are non-temporal" : "nor has it such stores");
    }
    qn_view z[3];
    for (int columns = 2; columns <= 3; columns++) {
        bool is_whole = columns == 2;
        for (int i = 0; i < 3; i++)
            z[i] = view(2, DIMS(800, columns), false);
        check(c, complex, 3, z, 0, is_whole ? "lanes 0" : "no such word", "store <4 x i64>",
              is_whole,
              is_whole ? "both parts of complex numbers are stored as whole vectors"
                       : "two of three members are not");
        check(c, complex, 3, z, 0, "lanes 0", "load <4 x i64>", true,
              is_whole ? "they are loaded as whole vectors" : "but loaded");
        if (is_whole) {
            check(c, complex, 3, z, 0, "lanes 0", "<i32 0, i32 2, i32 4, i32 6>", true,
                  "and permuted across registers");
        }
    }
    for (int i = 0; i < 3; i++) {
        z[i] = view(2, DIMS(800, 2), false);
        z[i].layout.dim[0].stride = 3;
    }
    check(c, complex, 3, z, 0, "no such word", "load <4 x i64>", false,
          "what is no element of the view is not loaded");
    check(c, complex, 3, z, 0, "lanes 0", "load <2 x i64>", true, "the two members are, in pieces");
    for (int side = 2; side <= 4; side += 2) {
        bool is_whole = side == 4;
        for (int i = 0; i < 2; i++) {
            x[i] = view(2, DIMS(64, 64), false);
            qn_layout_tiled(2, DIMS(64, 64), DIMS(side, side), NULL, NULL, &x[i].layout, NULL);
        }
        check(c, twice, 2, x, 0, is_whole ? "width 4" : "no such word", "load <4 x double>",
              is_whole,
              is_whole ? "lanes within a tile are loaded as a vector"
                       : "tiles that are shorter than a vector are not");
        for (int i = 0; i < 2; i++)
            qn_layout_release(&x[i].layout);
    }
    test_tiled_stream(c);
    test_known_lanes(c);
    test_bools(c);
    test_sides(c);
    test_tuples(c);
    test_window(c);
    test_strided(c);
    test_known_stores(c);
    test_ahead_of_memory(c);
    test_strip_blocks(c);
    test_jammed_digits(c);
    qn_context_release(c);
    return tap_done();
}
