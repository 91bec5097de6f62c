/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_case.c: see tree_case.h.
 */
#include "tests/unit/tree_case.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

/* y[i,j] = 2 x[i,j] + z[j,i] */
const char tree_copy[] =
    "kernel \"copy\" { view x: f64[2]; view z: f64[2]; view y: f64[2];\n"
    "%o: i64 = const 0; %m: i64 = extent y, 0; %n: i64 = extent y, 1;\n"
    "%i: i64 = parallel %o, %m; %j: i64 = parallel %o, %n; %t: f64 = const 0x1p+1;\n"
    "%a: f64 = load x[%i, %j]; %b: f64 = mul %t, %a; %c: f64 = load z[%j, %i]; %d: f64 = add %b, "
    "%c;\n"
    "store y[%i, %j], %d; }";
/* five points */
const char tree_stencil[] =
    "kernel \"five\" { view x: f64[2]; view y: f64[2]; %o: i64 = const 1;\n"
    "%m: i64 = extent y, 0; %n: i64 = extent y, 1; %m1: i64 = sub %m, %o; %n1: i64 = sub %n, %o;\n"
    "%i: i64 = parallel %o, %m1; %j: i64 = parallel %o, %n1; %i0: i64 = sub %i, %o; %i2: i64 = add "
    "%i, %o;\n"
    "%j0: i64 = sub %j, %o; %j2: i64 = add %j, %o;\n"
    "%a: f64 = load x[%i, %j]; %b: f64 = load x[%i0, %j]; %c: f64 = load x[%i2, %j];\n"
    "%d: f64 = load x[%i, %j0]; %e: f64 = load x[%i, %j2];\n"
    "%s: f64 = add %a, %b; %t: f64 = add %s, %c; %u: f64 = add %t, %d; %v: f64 = add %u, %e;\n"
    "store y[%i, %j], %v; }";
const char tree_matmul[] =
    "kernel \"matmul\" contract { view a: f64[2]; view b: f64[2]; view c: f64[2];\n"
    "%z: i64 = const 0; %m: i64 = extent c, 0; %n: i64 = extent c, 1; %l: i64 = extent a, 1;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %k: i64 = reduction %z, %l;\n"
    "%r: f64 = reduce sum over %k { %x: f64 = load a[%i, %k]; %y: f64 = load b[%k, %j];\n"
    "%p: f64 = mul %x, %y; yield %p; }; store c[%i, %j], %r; }";
/* a sum and a largest element of one array, striped */
const char tree_sums[] =
    "kernel \"sums\" { view x: f32[1]; view s: f32[1];\n"
    "%z: i64 = const 0; %one: i64 = const 1; %n: i64 = extent x, 0; %k: i64 = reduction %z, %n;\n"
    "%a: f32 = reduce sum striped over %k { %x: f32 = load x[%k]; yield %x; };\n"
    "%b: f32 = reduce max striped over %k { %y: f32 = load x[%k]; yield %y; };\n"
    "store s[%z], %a; store s[%one], %b; }";
/* softmax-shaped: the second reduce uses the first */
const char tree_two_sums[] =
    "kernel \"two\" { view x: f32[2]; view y: f32[2];\n"
    "%z: i64 = const 0; %m: i64 = extent x, 0; %n: i64 = extent x, 1;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n; %k: i64 = reduction %z, %n; %l: i64 = "
    "reduction %z, %n;\n"
    "%a: f32 = reduce sum over %k { %x: f32 = load x[%i, %k]; yield %x; };\n"
    "%b: f32 = reduce sum over %l { %w: f32 = load x[%i, %l]; %q: f32 = div %w, %a; %r: f32 = mul "
    "%q, %q; yield %r; };\n"
    "%v: f32 = load x[%i, %j]; %u: f32 = mul %v, %b; %t: f32 = add %u, %a; store y[%i, %j], %t; }";
/* rows of different length: a `for` whose end is loaded */
const char tree_rows[] = "kernel \"rows\" { view e: i64[1]; view v: f32[2]; view y: f32[1];\n"
                         "%z: i64 = const 0; %n: i64 = extent y, 0; %i: i64 = parallel %z, %n; %e: "
                         "i64 = load e[%i]; %f: f32 = const 0x0p+0;\n"
                         "%s: f32 = for %j: i64 = %z to %e step 1 (%c: f32 = %f) { %x: f32 = load "
                         "v[%i, %j]; %d: f32 = add %c, %x; yield %d; };\n"
                         "store y[%i], %s; }";
/* time steps over one array */
const char tree_steps[] =
    "kernel \"steps\" { view u: f32[2]; view v: f32[2]; %z: i64 = const 0; %t0: i64 = const 3;\n"
    "%m: i64 = extent u, 0; %n: i64 = extent u, 1; %t: i64 = sequential %z, %t0;\n"
    "%i: i64 = parallel %z, %m; %j: i64 = parallel %z, %n;\n"
    "%a: f32 = load u[%i, %j]; %b: f32 = load v[%i, %j]; %c: f32 = add %a, %b; %d: f32 = mul %c, "
    "%b; store u[%i, %j], %d; }";
/* a load at an index that was loaded */
const char tree_small_table[] =
    "kernel \"table\" { view t: f32[1]; view n: u8[1]; view y: f32[1]; %z: i64 = const 0;\n"
    "%e: i64 = extent y, 0; %i: i64 = parallel %z, %e; %b: u8 = load n[%i]; %j: i64 = cast %b;\n"
    "%v: f32 = load t[%j]; store y[%i], %v; }";

const tree_sample tree_samples[TREE_SAMPLES] = {
    {tree_copy, {{{6, 10}, false}, {{10, 6}, true}, {{6, 10}, false}}},
    {tree_stencil, {{{7, 9}, false}, {{7, 9}, true}}},
    {tree_matmul, {{{4, 5}, false}, {{5, 9}, false}, {{4, 9}, false}}},
    {tree_sums, {{{4500}, false}, {{2}, false}}},
    {tree_two_sums, {{{3, 9}, false}, {{3, 9}, false}}},
    {tree_rows, {{{9}, false}, {{9, 8}, false}, {{9}, false}}},
    {tree_steps, {{{4, 6}, false}, {{4, 6}, false}}},
};

uint32_t tree_random(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(*seed >> 4) * n >> 28);
}

/** Numbers whose sums depend on the order; small ones of integers. */
static void fill(int dtype, unsigned char *data, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        double number = ((double)(seed >> 8) / 8388608.0 - 0.97) * (1 + (double)(seed >> 28));
        if (dtype == QN_F64)
            ((double *)(void *)data)[i] = number;
        else if (dtype == QN_F32)
            ((float *)(void *)data)[i] = (float)number;
        else if (dtype == QN_I64)
            ((int64_t *)(void *)data)[i] = seed >> 29;
        else
            data[i] = (unsigned char)(seed >> 28);
    }
}

static bool make_view(tree_case *c, int p, const tree_view *how)
{
    const qn_kernel_parameter *param = &c->kernel->param[p];
    qn_layout l;
    qn_error err = {0};
    size_t elements = 1;
    for (int d = 0; d < param->rank; d++)
        elements *= (size_t)how->extent[d];
    size_t bytes = elements * (size_t)qn_dtype_bytes(param->dtype);
    c->bytes[p] = bytes;
    c->data[p] = aligned_alloc(64, (bytes + 127) / 64 * 64);
    c->initial[p] = malloc(bytes + 1);
    c->expected[p] = malloc(bytes + 1);
    qn_status status = how->is_left ? qn_layout_left(param->rank, how->extent, &l, &err)
                                    : qn_layout_right(param->rank, how->extent, &l, &err);
    if (!c->data[p] || !c->initial[p] || !c->expected[p] || status != QN_OK)
        return false;
    c->view[p] = (qn_view){.data = c->data[p], .dtype = param->dtype, .layout = l};
    fill(param->dtype, c->initial[p], elements, (uint32_t)p * 77 + 5);
    memcpy(c->data[p], c->initial[p], bytes);
    c->arg[p] = (qn_arg){.view = &c->view[p]};
    return true;
}

static bool make(tree_case *c, const char *text, const tree_view *views, int isa, bool is_dynamic,
                 qn_error *err)
{
    qn_arg_value values[TREE_VIEWS] = {{0}};
    uint8_t proved[64] = {0};
    if (qn_kernel_parse(text, strlen(text), &c->kernel, err) != QN_OK)
        return false;
    c->n = c->kernel->n_params;
    for (int p = 0; p < c->n; p++) {
        if (!make_view(c, p, &views[p]))
            return false;
        values[p].layout = &c->view[p].layout;
    }
    const qn_policy policy = {.all_dynamic = is_dynamic};
    if (qn__domain(c->kernel, values, false, &c->domain, err) != QN_OK ||
        !qn__prove_bounds(c->kernel, values, &c->domain, proved) ||
        qn__facts_collect(c->kernel,
                          &(qn_launched){c->arg, &c->domain, proved, NULL, &policy, isa, false},
                          &c->facts, err) != QN_OK ||
        qn__analyse_scalar(c->kernel, &c->facts, &c->x, err) != QN_OK)
        return false;
    c->schedule = qn__zalloc(1, sizeof *c->schedule);
    return c->schedule && qn__schedule_begin(&c->x, c->schedule, err) == QN_OK;
}

bool tree_case_open(tree_case *c, const char *text, const tree_view *views, int isa,
                    bool is_dynamic)
{
    qn_error err = {0};
    memset(c, 0, sizeof *c);
    qn__fault_clear(&c->fault, &qn__never);
    if (!make(c, text, views, isa, is_dynamic, &err) ||
        qn__interpret(c->kernel, c->n, c->arg, &c->domain, QN_CHECKS_REPORT, &c->fault, &err) !=
            QN_OK)
        return tap_ok(false, "a kernel for schedules: line %d: %s", err.line, err.message);
    for (int p = 0; p < c->n; p++)
        memcpy(c->expected[p], c->data[p], c->bytes[p]);
    return true;
}

void tree_case_close(tree_case *c)
{
    qn__analysis_release(&c->x);
    qn__facts_release(&c->facts);
    qn__free(c->schedule);
    qn_kernel_release(c->kernel);
    for (int p = 0; p < TREE_VIEWS; p++) {
        free(c->data[p]);
        free(c->initial[p]);
        free(c->expected[p]);
    }
}

bool tree_case_agrees(tree_case *c, const qn_schedule *s)
{
    qn_error err = {0};
    qn_fault fault;
    tree_run_report report;
    qn__fault_clear(&fault, &qn__never);
    for (int p = 0; p < c->n; p++)
        memcpy(c->data[p], c->initial[p], c->bytes[p]);
    bool agrees = tree_run(&c->x, s, c->n, c->arg, &c->domain, QN_CHECKS_REPORT, &fault,
                           &report, &err) == QN_OK;
    if (!agrees)
        tap_note("%s", err.message);
    if (report.missing || report.repeated || report.outside || report.unfilled) {
        tap_note("%" PRId64 " iterations missing, %" PRId64 " repeated, %" PRId64
                 " outside, %" PRId64 " elements not filled",
                 report.missing, report.repeated, report.outside, report.unfilled);
        agrees = false;
    }
    agrees = agrees && fault.status == c->fault.status && fault.iteration == c->fault.iteration;
    for (int p = 0; p < c->n; p++)
        if (memcmp(c->data[p], c->expected[p], c->bytes[p]) != 0) {
            tap_note("view %s differs from the interpreter's", c->kernel->param[p].name);
            agrees = false;
        }
    return agrees;
}

const char *tree_case_apply(tree_case *c, const char *steps)
{
    static char message[QN_MESSAGE_BYTES];
    qn_error err = {0};
    if (qn__transform_text(&c->x, c->schedule, steps, strlen(steps), &err) == QN_OK)
        return NULL;
    snprintf(message, sizeof message, "%s", err.message);
    return message;
}

char *tree_case_text(const qn_schedule *s)
{
    qn_text t = {0};
    qn__schedule_print(s, &t);
    char *copy = t.failed ? NULL : malloc(t.n + 1);
    if (copy)
        memcpy(copy, t.data, t.n + 1);
    qn__text_release(&t);
    return copy;
}

/** Whether a line of a text is one of nodes. */
static bool is_node_line(const char *line)
{
    static const char *const others[] = {"schedule {", "axis ", "cut ",
                                         "applied ",   "%",     "tail "};
    for (size_t n = 0; n < sizeof others / sizeof others[0]; n++)
        if (strncmp(line, others[n], strlen(others[n])) == 0)
            return false;
    return *line != 0;
}

char *tree_case_nodes(const qn_schedule *s)
{
    char *text = tree_case_text(s), *nodes = text ? calloc(1, strlen(text) + 1) : NULL;
    bool is_statement = false;
    for (char *line = text ? strtok(text, "\n") : NULL; nodes && line; line = strtok(NULL, "\n")) {
        line += strspn(line, " ");
        if (is_statement && *line == '}') {
            is_statement = false;
            continue;
        }
        if (!is_node_line(line))
            continue;
        is_statement = strncmp(line, "do ", 3) == 0 && line[strlen(line) - 1] == '{';
        if (is_statement)
            memcpy(line + strlen(line) - 2, ";", 2);
        strcat(nodes, *nodes ? " " : "");
        strcat(nodes, line);
    }
    if (nodes && *nodes)
        nodes[strlen(nodes) - 2] = 0; /* the end of the schedule */
    free(text);
    return nodes;
}

bool tree_case_is_read_again(tree_case *c, const qn_schedule *s)
{
    qn_schedule *again = calloc(1, sizeof *again);
    char *first = tree_case_text(s), *second = NULL;
    qn_error err = {0};
    bool is_so = again && first && qn__schedule_parse(first, strlen(first), again, &err) == QN_OK &&
                 qn__schedule_verify(&c->x, again, &err) == QN_OK;
    second = is_so ? tree_case_text(again) : NULL;
    if (!second || strcmp(first, second) != 0) {
        tap_note("%s\n%s", err.message, first ? first : "");
        is_so = false;
    }
    free(first);
    free(second);
    free(again);
    return is_so;
}
