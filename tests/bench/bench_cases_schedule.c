/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_cases_schedule.c: the kernels of tests/schedules against C by hand (native_schedule.c).
 * schedule/NAME runs the schedule of the file, planned/NAME what the planner makes. Results are
 * compared with C's; tests/check/schedules.sh compares bits with the interpreter's. A schedule that
 * the code generator cannot lower yet has a line that says so.
 */
#include "bench.h"
#include "native_schedule.h"
#include "quern/embed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 16384, MOST_RANK = 4 };

static const char *const names[] = {"atb",
                                    "atb_packed",
                                    "complex",
                                    "distance",
                                    "distance_buffer",
                                    "image3",
                                    "image3_group",
                                    "image4",
                                    "matvec3",
                                    "moments",
                                    "record9",
                                    "record9_group",
                                    "record9_lanes",
                                    "rows",
                                    "rows_lanes",
                                    "stencil",
                                    "tiled",
                                    "triangle",
                                    "triangle_sections",
                                    "window"};

/** A file of tests/schedules, cut into its parts, and arrays for it. */
typedef struct schedule_case {
    char text[MOST_TEXT], kernel[MOST_TEXT];
    const char *schedule; /* in text */
    qn_kernel *k;
    int n;
    int64_t elements[BENCH_ARRAYS];
    bench_memory memory;
    qn_layout layout[BENCH_ARRAYS];
    qn_view view[BENCH_ARRAYS];
    qn_arg args[BENCH_ARRAYS];
    void *data[BENCH_ARRAYS]; /* of views, in the order of parameters */
} schedule_case;

/* ---------------------------------------------------------------- files */

static bool read_parts(schedule_case *x, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, QN_SOURCE_DIR "/tests/schedules/%s.schedule", name);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(x->text, 1, sizeof x->text - 1, f) : 0;
    if (f)
        fclose(f);
    x->text[n] = 0;
    x->schedule = strstr(x->text, "\nschedule {");
    if (!x->schedule)
        return false;
    snprintf(x->kernel, sizeof x->kernel, "%.*s", (int)(x->schedule - x->text), x->text);
    return true;
}

/** "[64,128]:tile[8,8]": numbers of a list; how many. */
static int read_list(const char *at, int64_t *out)
{
    int n = 0;
    for (at++; n < MOST_RANK && at[-1] != ']'; n++) {
        char *end;
        out[n] = strtoll(at, &end, 10);
        at = end + 1;
    }
    return n;
}

/** Layout and number of elements of the array NAME=KIND:...DTYPE[EXTENTS]. */
static bool read_layout(schedule_case *x, int p, const char *word)
{
    int64_t extent[MOST_RANK], tile[MOST_RANK];
    const char *list = strchr(word, '['), *tiles = strstr(word, ":tile[");
    int rank = list ? read_list(list, extent) : 0;
    qn_error err;
    x->elements[p] = 1;
    for (int d = 0; d < rank; d++)
        x->elements[p] *= extent[d];
    if (!tiles)
        return rank && qn_layout_right(rank, extent, &x->layout[p], &err) == QN_OK;
    return read_list(tiles + 5, tile) == rank &&
           qn_layout_tiled(rank, extent, tile, NULL, NULL, &x->layout[p], &err) == QN_OK;
}

/** The words of lines "# arrays: NAME=VALUE...". */
static bool read_arguments(schedule_case *x)
{
    bool is_good = true;
    for (const char *line = x->text; (line = strstr(line, "# arrays: ")) != NULL;) {
        for (line += 10; *line != '\n'; line += strspn(line, " ")) {
            char word[128];
            size_t n = strcspn(line, " \n");
            snprintf(word, sizeof word, "%.*s", (int)n, line);
            line += n;
            char *value = strchr(word, '=');
            if (!value)
                return false;
            *value++ = 0;
            int p = qn_kernel_find_param(x->k, word);
            qn_param_info info;
            if (p < 0 || qn_kernel_param(x->k, p, &info, sizeof info, NULL) != QN_OK)
                return false;
            if (info.rank < 0)
                x->args[p] = qn_arg_f32(strtof(value, NULL));
            else
                is_good = is_good && read_layout(x, p, value);
        }
    }
    return is_good;
}

/* ---------------------------------------------------------------- arrays */

/** Floats from 0 to 1, integers below 100, as the tool makes them. */
static void fill_array(int dtype, void *data, int64_t n, int p)
{
    uint32_t state = (uint32_t)p * 77 + 5;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        double value = (double)(state >> 8) * 0x1p-24;
        if (dtype == QN_F32)
            ((float *)data)[i] = (float)value;
        else if (dtype == QN_F64)
            ((double *)data)[i] = value;
        else if (dtype == QN_I32)
            ((int32_t *)data)[i] = (int32_t)(value * 100);
        else
            ((uint8_t *)data)[i] = (uint8_t)(value * 100);
    }
}

/** The dtype of what an array is made of, and how many. */
static int plain_dtype(const schedule_case *x, int p, int64_t *n)
{
    *n = x->elements[p] * (x->view[p].dtype == QN_C64 ? 2 : 1);
    return x->view[p].dtype == QN_C64 ? QN_F32 : x->view[p].dtype;
}

static void fill(schedule_case *x)
{
    int64_t n;
    for (int p = 0; p < x->n; p++)
        if (x->elements[p]) {
            int dtype = plain_dtype(x, p, &n);
            fill_array(dtype, x->data[p], n, p);
        }
}

static bool make(schedule_case *x, const char *name, qn_error *err)
{
    size_t bytes[BENCH_ARRAYS] = {0};
    if (!read_parts(x, name) || qn_kernel_parse(x->kernel, strlen(x->kernel), &x->k, err) != QN_OK)
        return false;
    x->n = qn_kernel_n_params(x->k);
    if (x->n > BENCH_ARRAYS || !read_arguments(x))
        return false;
    for (int p = 0; p < x->n; p++) {
        qn_param_info info;
        qn_kernel_param(x->k, p, &info, sizeof info, NULL);
        x->view[p].dtype = info.dtype;
        bytes[p] = x->elements[p] ? (size_t)(x->elements[p] * qn_dtype_bytes(info.dtype)) : 64;
    }
    if (bench_memory_make(&x->memory, x->n, bytes, err) != QN_OK)
        return false;
    for (int p = 0; p < x->n; p++) {
        x->data[p] = x->memory.at[p];
        if (!x->elements[p])
            continue;
        if (qn_view_wrap("array", x->data[p], x->view[p].dtype, &x->layout[p], 0, &x->view[p],
                         err) != QN_OK)
            return false;
        x->args[p] = qn_arg_view(&x->view[p]);
    }
    return true;
}

static void release(schedule_case *x)
{
    qn_kernel_release(x->k);
    bench_memory_free(&x->memory);
    for (int p = 0; p < BENCH_ARRAYS; p++)
        qn_layout_release(&x->layout[p]);
    free(x);
}

static bool is_close(const schedule_case *x, const void *kept)
{
    int64_t n;
    for (int p = 0; p < x->n; p++) {
        const char *ours = (const char *)kept + ((const char *)x->data[p] - x->memory.first);
        int dtype = x->elements[p] ? plain_dtype(x, p, &n) : QN_VOID;
        for (int64_t i = 0; i < n && dtype != QN_VOID; i++) {
            double a = 0, b = 0;
            if (dtype == QN_F32) {
                a = ((const float *)x->data[p])[i];
                b = ((const float *)(const void *)ours)[i];
            } else if (dtype == QN_F64) {
                a = ((const double *)x->data[p])[i];
                b = ((const double *)(const void *)ours)[i];
            } else if (dtype == QN_U8) {
                a = ((const uint8_t *)x->data[p])[i];
                b = ((const uint8_t *)(const void *)ours)[i];
            }
            if (!(fabs(a - b) <= (dtype == QN_F64 ? 1e-13 : 1e-6) * (1 + fabs(b))))
                return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- lines */

typedef struct native_run {
    native_schedule_loop loop;
    void *const *data;
} native_run;

static void run_native(const void *data)
{
    const native_run *r = data;
    r->loop(r->data);
}

static void run_line(bench *b, const char *line, schedule_case *x, const qn_options *o)
{
    qn_error error = {0};
    qn_call *call = NULL;
    native_schedule_loop loop = native_schedule(qn_kernel_name(x->k));
    qn_status status = qn_prepare(b->context, x->k, x->n, x->args, o, &call, &error);
    if (status == QN_ERR_UNSUPPORTED) {
        printf("# %s: %s\n", line, error.message);
        return;
    }
    void *ours = NULL;
    fill(x);
    bool is_ok = status == QN_OK && loop && qn_run(call, &error) == QN_OK &&
                 (ours = bench_memory_keep(&x->memory)) != NULL;
    fill(x);
    if (is_ok)
        loop(x->data);
    is_ok = is_ok && is_close(x, ours);
    free(ours);
    if (is_ok)
        bench_in_turns(
            b,
            &(bench_line){.name = line, .group = GROUP_SCHEDULE, .goal = 0.95, .short_below = 0.95},
            call, run_native, &(native_run){loop, x->data});
    else
        bench_wrong(b, line, "not the result of C: %s", error.message);
    qn_call_release(call);
}

static void run_case(bench *b, const char *line, const char *name, bool is_given)
{
    qn_error error = {0};
    schedule_case *x = calloc(1, sizeof *x);
    qn_options o = bench_options(b);
    if (!x)
        return;
    if (!make(x, name, &error)) {
        bench_wrong(b, line, "no kernel of this file: %s", error.message);
    } else {
        o.schedule = is_given ? x->schedule : NULL;
        if (b->assembly_of)
            bench_print_assembly(b, line, x->k, x->n, x->args, &o);
        else
            run_line(b, line, x, &o);
    }
    release(x);
}

void bench_schedule_cases(bench *b)
{
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (int is_given = 1; is_given >= 0; is_given--) {
            char line[64];
            snprintf(line, sizeof line, "%s/%s", is_given ? "schedule" : "planned", names[n]);
            if ((is_given || native_schedule(names[n])) && bench_wants(b, line))
                run_case(b, line, names[n], is_given);
        }
}
