/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_edge.c: accesses of few and small elements that need not lie next to one another, by default
 * plans: every form, distance, extent and element size of a list, where the view's first element
 * follows an inaccessible page and where its last one precedes one. PTX runs on the machine of the
 * tests, which looks at every address. What is stored is compared with the interpreter.
 *
 * The cases of each way to generate code run in a child. One that dies fails its case, and a new
 * child goes on behind it.
 */
#define _GNU_SOURCE
#include "tests/ptx/host.h"
#include "tests/unit/launch.h"

#include <inttypes.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MOST_BYTES = 16 * PAGE, MOST_CRASHES = 8 };

/* ---------------------------------------------------------------- cases */

/** Where an extent or an index is `of_n` n + `of_step` step + `of_both` n step + constant. */
typedef struct form {
    const char *name, *body;
    struct {
        int8_t of_n, of_step, of_both, constant;
    } x[2], y[2]; /* extents */
    int8_t x_rank, y_rank;
} form;

#define LINE(v, d) "%0: i64 = const 0; %n: i64 = extent " v ", " d "; %i: i64 = parallel %0, %n;\n"
#define STEP "%s: i64 = const $S;\n"
#define LAST "%l: i64 = const $L;\n"

/* $S: the distance, $L: one less. */
static const form forms[] = {
    {"first channel",
     LINE("y", "0") "%a: $T = load x[%i, %0]; store y[%i], %a;",
     {{1, 0, 0, 0}, {0, 1, 0, 0}},
     {{1, 0, 0, 0}},
     2,
     1},
    {"last channel",
     LINE("y", "0") LAST "%a: $T = load x[%i, %l]; store y[%i], %a;",
     {{1, 0, 0, 0}, {0, 1, 0, 0}},
     {{1, 0, 0, 0}},
     2,
     1},
    {"to the last channel",
     LINE("x", "0") LAST "%a: $T = load x[%i]; store y[%i, %l], %a;",
     {{1, 0, 0, 0}},
     {{1, 0, 0, 0}, {0, 1, 0, 0}},
     1,
     2},
    {"every so many",
     LINE("y", "0") STEP "%k: i64 = mul %i, %s; %a: $T = load x[%k]; store y[%i], %a;",
     {{0, -1, 1, 1}},
     {{1, 0, 0, 0}},
     1,
     1},
    {"to every so many",
     LINE("x", "0") STEP "%k: i64 = mul %i, %s; %a: $T = load x[%i]; store y[%k], %a;",
     {{1, 0, 0, 0}},
     {{0, -1, 1, 1}},
     1,
     1},
    {"columns of rows",
     LINE("y", "0") STEP "%m: i64 = extent y, 1; %j: i64 = parallel %0, %m; %k: i64 = mul %j, %s; "
                         "%a: $T = load x[%i, %k]; store y[%i, %j], %a;",
     {{0, 1, 0, 0}, {0, -1, 1, 1}},
     {{0, 1, 0, 0}, {1, 0, 0, 0}},
     2,
     2},
    {"backwards",
     LINE("y", "0") STEP
     "%o: i64 = const 1; %e: i64 = sub %n, %o; %t: i64 = sub %e, %i; %k: i64 = mul %t, %s;\n"
     "%a: $T = load x[%k]; store y[%i], %a;",
     {{0, -1, 1, 1}},
     {{1, 0, 0, 0}},
     1,
     1},
    {"transposed",
     LINE("y", "0") "%m: i64 = extent y, 1; %j: i64 = parallel %0, %m; %a: $T = load x[%j, %i]; "
                    "store y[%i, %j], %a;",
     {{1, 0, 0, 0}, {0, 1, 0, 0}},
     {{0, 1, 0, 0}, {1, 0, 0, 0}},
     2,
     2},
    {"neighbours",
     LINE("y", "0") LAST "%k: i64 = add %i, %l; %a: $T = load x[%i]; %b: $T = load x[%k]; %c: $T = "
                         "add %a, %b; store y[%i], %c;",
     {{1, 1, 0, -1}},
     {{1, 0, 0, 0}},
     1,
     1},
};
static const int dtypes[] = {QN_U8, QN_I16, QN_F16, QN_F32, QN_F64};
static const int steps[] = {2, 3, 4, 5};
static const int extents[] = {1, 2, 3, 5, 8, 9, 17, 34, 66};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
enum {
    N_FORMS = COUNT(forms),
    N_DTYPES = COUNT(dtypes),
    N_STEPS = COUNT(steps),
    N_EXTENTS = COUNT(extents)
};
enum { N_CASES = N_FORMS * N_DTYPES * N_STEPS * N_EXTENTS };

static const struct way {
    const char *name;
    int32_t isa, specialize;
} ways[] = {{"x86-64-v4, exact", QN_ISA_V4, QN_SPECIALIZE_EXACT},
            {"x86-64-v4, dynamic", QN_ISA_V4, QN_SPECIALIZE_DYNAMIC},
            {"x86-64-v3, exact", QN_ISA_V3, QN_SPECIALIZE_EXACT},
            {"x86-64-v3, dynamic", QN_ISA_V3, QN_SPECIALIZE_DYNAMIC},
            {"PTX, dynamic", QN_ISA_SM80, QN_SPECIALIZE_DYNAMIC},
            {"PTX, exact", QN_ISA_SM80, QN_SPECIALIZE_EXACT}};

/** What a child tells. */
typedef struct report {
    int at, n_cases, n_failed;
    bool is_missing; /* the instruction set */
    char now[200], first[700];
} report;

static void note_failure(report *r, const char *symptom)
{
    if (r->n_failed++ == 0)
        snprintf(r->first, sizeof r->first, "%s: %s", r->now, symptom);
}

/* ---------------------------------------------------------------- one case */

/** The text of a form, for elements of a dtype and a distance. */
static void write_text(const form *f, int dtype, int step, char *out, size_t bytes)
{
    size_t n = (size_t)snprintf(out, bytes, "kernel \"edge\" {\nview x: %s[%d]; view y: %s[%d];\n",
                                qn_dtype_name(dtype), f->x_rank, qn_dtype_name(dtype), f->y_rank);
    for (const char *s = f->body; *s && n + 20 < bytes; s++)
        if (*s != '$')
            out[n++] = *s;
        else if (*++s == 'T')
            n += (size_t)snprintf(out + n, bytes - n, "%s", qn_dtype_name(dtype));
        else
            n += (size_t)snprintf(out + n, bytes - n, "%d", *s == 'S' ? step : step - 1);
    snprintf(out + n, bytes - n, "\n}\n");
}

/** Memory between two inaccessible pages. */
static unsigned char *fenced(void)
{
    unsigned char *p =
        mmap(NULL, MOST_BYTES + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p + PAGE, MOST_BYTES, PROT_READ | PROT_WRITE))
        return NULL;
    return p + PAGE;
}

typedef struct placed {
    unsigned char *at;
    size_t bytes;
    qn_view view;
} placed;

static bool place(placed *p, unsigned char *room, bool is_first, int dtype, int rank,
                  const int64_t *extent, const char *label)
{
    qn_layout l;
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= extent[d];
    p->bytes = (size_t)(n * qn_dtype_bytes(dtype));
    p->at = is_first ? room : room + MOST_BYTES - p->bytes;
    if (p->bytes > MOST_BYTES || qn_layout_right(rank, extent, &l, NULL) != QN_OK)
        return false;
    bool is_fine = qn_view_wrap(label, p->at, dtype, &l, 0, &p->view, NULL) == QN_OK;
    qn_layout_release(&l);
    return is_fine;
}

static qn_status run_way(qn_context *c, const qn_kernel *k, const qn_arg *args, const placed *x,
                         const placed *y, const struct way *w, qn_error *err)
{
    qn_options o = {.bytes = sizeof o, .isa = w->isa, .specialize = w->specialize};
    if (w->isa < QN_ISA_SM70) {
        o.engine = QN_ENGINE_NATIVE;
        return qn_launch(c, k, 2, args, &o, err);
    }
    const ptx_memory memory[] = {{x->at, x->bytes}, {y->at, y->bytes}};
    qn_code *f = NULL;
    qn_status status = qn_specialize(c, k, 2, args, &o, &f, err);
    if (status == QN_OK)
        status = ptx_host_run(c, f, k, 2, args, memory, 2, 1, err);
    qn_code_release(f);
    return status;
}

/** Small numbers of any dtype: bytes that are no NaN. */
static void fill(placed *p, int seed)
{
    for (size_t i = 0; i < p->bytes; i++)
        p->at[i] = (unsigned char)((i * 7 + (size_t)seed) % 61);
}

static void run_placed(qn_context *c, const qn_kernel *k, placed *x, placed *y, const struct way *w,
                       report *r)
{
    static unsigned char expected[MOST_BYTES];
    const qn_arg args[] = {qn_arg_view(&x->view), qn_arg_view(&y->view)};
    const qn_options interpreted = {.bytes = sizeof interpreted, .engine = QN_ENGINE_INTERP};
    qn_error err = {0};
    fill(x, 3);
    fill(y, 5);
    if (qn_launch(c, k, 2, args, &interpreted, &err) != QN_OK) {
        note_failure(r, err.message);
        return;
    }
    memcpy(expected, y->at, y->bytes);
    fill(y, 5);
    qn_status status = run_way(c, k, args, x, y, w, &err);
    r->is_missing = status == QN_ERR_TARGET;
    if (status == QN_OK && memcmp(expected, y->at, y->bytes) != 0)
        note_failure(r, "other elements than the interpreter's");
    else if (status != QN_OK && !r->is_missing)
        note_failure(r, err.message);
}

/** Both places of a case. */
static void run_case(qn_context *c, unsigned char *const *room, int at, const struct way *w,
                     report *r)
{
    const form *f = &forms[at % N_FORMS];
    int dtype = dtypes[at / N_FORMS % N_DTYPES], step = steps[at / N_FORMS / N_DTYPES % N_STEPS];
    int n = extents[at / N_FORMS / N_DTYPES / N_STEPS];
    int64_t x_extent[2], y_extent[2];
    char text[1000];
    for (int d = 0; d < 2; d++) {
        x_extent[d] = f->x[d].of_n * n + f->x[d].of_step * step + f->x[d].of_both * n * step +
                      f->x[d].constant;
        y_extent[d] = f->y[d].of_n * n + f->y[d].of_step * step + f->y[d].of_both * n * step +
                      f->y[d].constant;
    }
    write_text(f, dtype, step, text, sizeof text);
    qn_kernel *k = kernel_of(text);
    for (int is_first = 0; is_first < 2 && !r->is_missing; is_first++) {
        placed x = {0}, y = {0};
        snprintf(r->now, sizeof r->now, "%s, %s, distance %d, n %d, %s", f->name,
                 qn_dtype_name(dtype), step, n, is_first ? "behind a page" : "before a page");
        r->n_cases++;
        if (k && place(&x, room[0], is_first, dtype, f->x_rank, x_extent, "x") &&
            place(&y, room[1], is_first, dtype, f->y_rank, y_extent, "y"))
            run_placed(c, k, &x, &y, w, r);
        else
            note_failure(r, "the case cannot be made");
        qn_view_release(&x.view);
        qn_view_release(&y.view);
    }
    qn_kernel_release(k);
}

/* ---------------------------------------------------------------- children */

static void work(const struct way *w, report *r)
{
    qn_context *c = context_with(NULL);
    unsigned char *room[2] = {fenced(), fenced()};
    if (!c || !room[0] || !room[1])
        _exit(2);
    for (; r->at < N_CASES && !r->is_missing; r->at++)
        run_case(c, room, r->at, w, r);
    qn_context_release(c);
    _exit(0);
}

static void run_children(const struct way *w, report *r)
{
    int n_crashes = 0;
    while (r->at < N_CASES && !r->is_missing && n_crashes < MOST_CRASHES) {
        int status = 0;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            work(w, r);
        if (child < 0 || waitpid(child, &status, 0) != child) {
            note_failure(r, "no child");
            return;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            return;
        note_failure(r, WIFSIGNALED(status) ? "ended by a signal" : "ended");
        n_crashes++;
        r->at++;
    }
}

int main(void)
{
    char reason[600];
    report *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED)
        return 2;
    if (!has_x86(reason, sizeof reason)) {
        tap_skip(reason);
        return tap_done();
    }
    for (int w = 0; w < COUNT(ways); w++) {
        *r = (report){0};
        run_children(&ways[w], r);
        if (r->is_missing && r->n_failed == 0) {
            tap_skip("this processor lacks the instruction set");
            continue;
        }
        tap_ok(r->n_failed == 0, "%s: %d accesses at the edge of a page", ways[w].name, r->n_cases);
        if (r->n_failed)
            tap_note("%d failed; first: %s", r->n_failed, r->first);
    }
    munmap(r, sizeof *r);
    return tap_done();
}
