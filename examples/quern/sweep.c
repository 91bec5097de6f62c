/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.c: `quern bench` over sizes, layouts, or whatever the words of the command line hold:
 * --over n=100,1000 runs the benchmark once for each text in place of {n}. Without --over, --plot
 * compares both layouts of arrays that are made.
 */
#include "plot.h"
#include "tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 64, NAME_BYTES = 32, TEXT_BYTES = 64, VALUE_BYTES = 512 };

typedef struct point {
    char text[TEXT_BYTES];
    double size; /* the text as a number; 0: it is none */
    figures f;
} point;

typedef struct sweep {
    char name[NAME_BYTES], kernel[64];
    bool is_layout; /* the option --layout varies */
    bool is_sizes;  /* all texts are numbers above 0 that rise */
    int n;
    point at[MOST_POINTS];
} sweep;

/* ---------------------------------------------------------------- points */

/* Bytes of a text up to the next comma outside brackets. */
static size_t item_length(const char *text)
{
    int depth = 0;
    size_t n = 0;
    for (; text[n] && (text[n] != ',' || depth > 0); n++)
        depth += text[n] == '[' ? 1 : text[n] == ']' ? -1 : 0;
    return n;
}

static int parse_over(const char *text, sweep *s)
{
    size_t n = strcspn(text, "=");
    if (n == 0 || n >= sizeof s->name || !text[n] || !text[n + 1])
        return tool_fail(EXIT_USAGE, "--over %s: expected NAME=TEXT,TEXT,...", text);
    memcpy(s->name, text, n);
    for (const char *at = text + n + 1; *at;) {
        size_t length = item_length(at);
        if (s->n == MOST_POINTS || length == 0 || length >= TEXT_BYTES)
            return tool_fail(EXIT_USAGE, "--over %s: up to %d texts of up to %d bytes", text,
                             MOST_POINTS, TEXT_BYTES - 1);
        memcpy(s->at[s->n++].text, at, length);
        at += length + (at[length] == ',');
    }
    s->is_sizes = s->n > 1;
    for (int i = 0; i < s->n; i++) {
        char *end;
        s->at[i].size = strtod(s->at[i].text, &end);
        s->is_sizes = s->is_sizes && *end == 0 && s->at[i].size > (i ? s->at[i - 1].size : 0) &&
                      isfinite(s->at[i].size);
    }
    return EXIT_OK;
}

/* The text with every {name} replaced; false if it becomes too long. *n_found counts them. */
static bool replace(const char *text, const char *name, const char *by, char out[VALUE_BYTES],
                    int *n_found)
{
    char mark[NAME_BYTES + 3];
    size_t n = 0;
    snprintf(mark, sizeof mark, "{%s}", name);
    while (*text) {
        bool is_mark = strncmp(text, mark, strlen(mark)) == 0;
        size_t more = is_mark ? strlen(by) : 1;
        if (n + more >= VALUE_BYTES)
            return false;
        memcpy(out + n, is_mark ? by : text, more);
        n += more;
        text += is_mark ? strlen(mark) : 1;
        *n_found += is_mark;
    }
    out[n] = 0;
    return true;
}

/* Benchmarks one point. */
static int measure_point(const tool_line *given, sweep *s, int i)
{
    tool_line line = *given;
    char(*value)[VALUE_BYTES] = calloc(QN_MAX_PARAMS, VALUE_BYTES),
    what[TEXT_BYTES + NAME_BYTES + 24];
    int n_found = 0, status = value ? EXIT_OK : tool_fail(EXIT_ERROR, "out of memory");
    tool_job job = {0};
    snprintf(what, sizeof what, "%s=%s (%d of %d)", s->name, s->at[i].text, i + 1, s->n);
    if (s->is_layout)
        line.is_left = strcmp(s->at[i].text, "left") == 0;
    for (int k = 0; k < line.n_args && status == EXIT_OK && !s->is_layout; k++) {
        if (!replace(line.arg[k].text, s->name, s->at[i].text, value[k], &n_found))
            status = tool_fail(EXIT_USAGE, "--over: %s=%s becomes too long", line.arg[k].name,
                               line.arg[k].text);
        line.arg[k].text = value[k];
    }
    if (status == EXIT_OK && n_found == 0 && !s->is_layout)
        status =
            tool_fail(EXIT_USAGE, "--over %s: no argument has {%s} in it", given->over, s->name);
    if (status == EXIT_OK)
        status = job_open(&line, &job);
    if (status == EXIT_OK) {
        snprintf(s->kernel, sizeof s->kernel, "%s", qn_kernel_name(job.kernel));
        status = bench_measure(&line, &job, what, &s->at[i].f);
    }
    job_close(&job);
    free(value);
    return status;
}

/* ---------------------------------------------------------------- what is told */

static void print_text(const sweep *s)
{
    printf("%-16s %12s %14s %14s %10s %10s\n", s->name, "compile ms", "launch ns", "run ns", "GB/s",
           "GF/s");
    for (int i = 0; i < s->n; i++) {
        const figures *f = &s->at[i].f;
        double ns = figures_run_ns(f);
        printf("%-16s ", s->at[i].text);
        if (f->compile_ms >= 0)
            printf("%12.3f ", f->compile_ms);
        else
            printf("%12s ", "-");
        printf("%14.1f %14.1f %10.3f ", f->launch_ns, ns, (double)f->work.bytes / ns);
        if (f->work.flops > 0)
            printf("%10.3f\n", (double)f->work.flops / ns);
        else
            printf("%10s\n", "-");
    }
}

static int print_json(const sweep *s)
{
    json j;
    if (!json_begin(&j, "bench"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(&j, "kernel", s->kernel);
    json_text(&j, "over", s->name);
    json_open(&j, "points", '[');
    for (int i = 0; i < s->n; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "value", s->at[i].text);
        figures_json(&j, &s->at[i].f);
        json_close(&j);
    }
    json_close(&j);
    return json_end(&j, EXIT_OK);
}

/* ---------------------------------------------------------------- pictures */

static double time_of(const point *at)
{
    return figures_run_ns(&at->f);
}

static double bandwidth_of(const point *at)
{
    return (double)at->f.work.bytes / figures_run_ns(&at->f);
}

/* One series over sizes. */
static void draw_series(plot *p, const sweep *s, chart *c, double (*of)(const point *),
                        uint32_t colour)
{
    double low = of(&s->at[0]), high = low;
    for (int i = 1; i < s->n; i++) {
        low = fmin(low, of(&s->at[i]));
        high = fmax(high, of(&s->at[i]));
    }
    chart_range(&c->x, s->at[0].size, s->at[s->n - 1].size);
    chart_range(&c->y, low * 0.8, high * 1.25);
    chart_frame(p, c);
    for (int i = 0; i < s->n; i++) {
        double x = chart_place(&c->x, s->at[i].size), y = chart_place(&c->y, of(&s->at[i]));
        if (i > 0)
            plot_line(p, chart_place(&c->x, s->at[i - 1].size),
                      chart_place(&c->y, of(&s->at[i - 1])), x, y, 2, colour, false);
        plot_disc(p, x, y, 3.5, colour);
    }
}

static void draw_sizes(plot *p, const sweep *s)
{
    p->width = 960;
    p->height = 420;
    chart left = {.x_name = s->name, .y_name = "time of a run, ns", .x = {.from = 70, .to = 460}};
    chart right = {.x_name = s->name,
                   .y_name = "GB/s of elements read and written",
                   .x = {.from = 550, .to = 930}};
    left.y.from = right.y.from = p->height - 56;
    left.y.to = right.y.to = 78;
    draw_series(p, s, &left, time_of, chart_colours[0]);
    draw_series(p, s, &right, bandwidth_of, chart_colours[1]);
    plot_text(p, 70, 36, 16, PLOT_START, CHART_INK, "%s over %s", s->kernel, s->name);
}

/* Nanoseconds with a unit that leaves few digits. */
static void time_text(double ns, char *buffer, size_t n)
{
    if (ns < 1e3)
        snprintf(buffer, n, "%.0f ns", ns);
    else
        snprintf(buffer, n, "%.3g %s", ns < 1e6 ? ns / 1e3 : ns / 1e6, ns < 1e6 ? "us" : "ms");
}

static void draw_bars(plot *p, const sweep *s)
{
    const double BAR = 26, GAP = 14, LEFT = 190, RIGHT = 520, TOP = 70;
    double longest = 0;
    p->width = 760;
    p->height = TOP + s->n * (BAR + GAP) + 44;
    for (int i = 0; i < s->n; i++)
        longest = fmax(longest, time_of(&s->at[i]));
    plot_text(p, 24, 36, 16, PLOT_START, CHART_INK, "%s over %s: time of a run", s->kernel,
              s->name);
    for (int i = 0; i < s->n; i++) {
        double y = TOP + i * (BAR + GAP),
               end = LEFT + (RIGHT - LEFT) * time_of(&s->at[i]) / longest;
        char text[32];
        time_text(time_of(&s->at[i]), text, sizeof text);
        plot_rect(p, LEFT, y, end, y + BAR, chart_colours[i % 6]);
        plot_text(p, LEFT - 12, y + BAR / 2 + 5, 12, PLOT_END, CHART_INK, "%s", s->at[i].text);
        plot_text(p, end + 10, y + BAR / 2 + 5, 12, PLOT_START, CHART_INK, "%s, %.3g GB/s", text,
                  bandwidth_of(&s->at[i]));
    }
    plot_line(p, LEFT, TOP - 8, LEFT, p->height - 44, 1.2, CHART_INK, false);
    plot_text(p, LEFT, p->height - 20, 12, PLOT_START, CHART_FAINT,
              "GB/s: elements read and written");
}

int command_sweep(const tool_line *line)
{
    sweep *s = calloc(1, sizeof *s);
    const char *why;
    if (!s)
        return tool_fail(EXIT_ERROR, "out of memory");
    int status = EXIT_OK;
    if (line->plot && !plot_can_save(line->plot, &why))
        status = tool_fail(EXIT_USAGE, "--plot %s: %s", line->plot, why);
    s->is_layout = !line->over;
    if (status == EXIT_OK)
        status = parse_over(line->over ? line->over : "layout=right,left", s);
    for (int i = 0; i < s->n && status == EXIT_OK; i++)
        status = measure_point(line, s, i);
    if (status == EXIT_OK && line->plot) {
        plot p = {0};
        if (s->is_sizes)
            draw_sizes(&p, s);
        else
            draw_bars(&p, s);
        status = plot_save(&p, line->plot) ? EXIT_OK : EXIT_ERROR;
        plot_release(&p);
    }
    if (status == EXIT_OK && line->how.json)
        status = print_json(s);
    else if (status == EXIT_OK)
        print_text(s);
    free(s);
    return status;
}
