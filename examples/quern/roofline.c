/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roofline.c: `quern roofline` compares the rate of a kernel with what one thread gets from each
 * cache, from memory, and from arithmetic. Intensity is floating-point operations a byte, each
 * element that is read or written counted once.
 */
#include "plot.h"
#include "tool.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A kernel beside its machine. */
typedef struct roofline {
    const char *kernel;
    int dtype;
    machine m;
    figures f;
    int level;              /* the smallest that holds the arrays */
    double intensity, rate; /* of the kernel: operations a byte, GF/s */
    double roof;            /* GF/s that level and arithmetic allow at this intensity */
} roofline;

/* The dtype of most operations is taken for that of the widest array of floats. */
static int dtype_of(const tool_job *job)
{
    int dtype = QN_F32;
    qn_param_info info;
    for (int i = 0; i < job->n; i++)
        if (qn_kernel_param(job->kernel, i, &info, sizeof info, NULL) == QN_OK &&
            info.dtype == QN_F64)
            dtype = QN_F64;
    return dtype;
}

static double roof_at(const machine *m, int level, double intensity)
{
    return fmin(m->gigaflops, m->level[level].gigabytes * intensity);
}

static int measure(const tool_line *line, const tool_job *job, roofline *r)
{
    r->kernel = qn_kernel_name(job->kernel);
    r->dtype = dtype_of(job);
    int status = bench_measure(line, job, "roofline", &r->f);
    if (status == EXIT_OK && (r->f.work.flops <= 0 || r->f.work.bytes <= 0))
        return tool_fail(
            EXIT_ERROR,
            "roofline: the floating-point operations of kernel %s are not evident from its text",
            r->kernel);
    if (status == EXIT_OK)
        status = machine_measure(&line->how, r->dtype, &r->m);
    if (status != EXIT_OK)
        return status;
    r->level = machine_level(&r->m, r->f.work.bytes);
    r->intensity = (double)r->f.work.flops / (double)r->f.work.bytes;
    r->rate = (double)r->f.work.flops / r->f.prepared_ns;
    r->roof = roof_at(&r->m, r->level, r->intensity);
    return EXIT_OK;
}

static bool is_arithmetic_the_roof(const roofline *r)
{
    return r->roof >= r->m.gigaflops;
}

static void print_text(const roofline *r)
{
    for (int i = 0; i < r->m.n_levels; i++) {
        printf("%-12s%10.2f GB/s", r->m.level[i].name, r->m.level[i].gigabytes);
        if (r->m.level[i].bytes < INT64_MAX)
            printf("  %8" PRId64 " KiB", r->m.level[i].bytes / 1024);
        puts(i == r->level ? "  <- the arrays fit here" : "");
    }
    printf("arithmetic  %10.2f GF/s  fma of %s\n", r->m.gigaflops, qn_dtype_name(r->dtype));
    printf("intensity   %10.4f flop/byte  %" PRId64 " operations, %" PRId64 " bytes\n",
           r->intensity, r->f.work.flops, r->f.work.bytes);
    printf("kernel      %10.2f GF/s  %.0f %% of the %.2f that %s allows\n", r->rate,
           100 * r->rate / r->roof, r->roof,
           is_arithmetic_the_roof(r) ? "arithmetic" : r->m.level[r->level].name);
}

static int print_json(const roofline *r)
{
    json j;
    if (!json_begin(&j, "roofline"))
        return tool_fail(EXIT_ERROR, "out of memory");
    json_text(&j, "kernel", r->kernel);
    json_text(&j, "dtype", qn_dtype_name(r->dtype));
    json_open(&j, "levels", '[');
    for (int i = 0; i < r->m.n_levels; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "name", r->m.level[i].name);
        if (r->m.level[i].bytes < INT64_MAX)
            json_int(&j, "bytes", r->m.level[i].bytes);
        else
            json_word(&j, "bytes", "null");
        json_real(&j, "gigabytes_per_s", r->m.level[i].gigabytes, 6);
        json_close(&j);
    }
    json_close(&j);
    json_real(&j, "peak_gigaflops_per_s", r->m.gigaflops, 6);
    json_text(&j, "level", r->m.level[r->level].name);
    json_int(&j, "bytes", r->f.work.bytes);
    json_int(&j, "flops", r->f.work.flops);
    json_real(&j, "intensity", r->intensity, 6);
    json_real(&j, "run_ns", r->f.prepared_ns, 6);
    json_real(&j, "gigaflops_per_s", r->rate, 6);
    json_real(&j, "roof_gigaflops_per_s", r->roof, 6);
    return json_end(&j, EXIT_OK);
}

/* ---------------------------------------------------------------- the picture */

/* The roof of a level: a slope up to the arithmetic, its name along the slope. */
static void draw_level(plot *p, const chart *c, const roofline *r, int level)
{
    const double bandwidth = r->m.level[level].gigabytes, ridge = r->m.gigaflops / bandwidth;
    const uint32_t colour = chart_colours[level % 6];
    const bool is_own = level == r->level;
    double left = fmax(c->x.low, c->y.low / bandwidth), right = fmin(ridge, c->x.high);
    if (right <= left)
        return;
    double x = chart_place(&c->x, left), y = chart_place(&c->y, left * bandwidth);
    plot_line(p, x, y, chart_place(&c->x, right), chart_place(&c->y, right * bandwidth),
              is_own ? 3 : 1.6, colour, false);
}

/* Names of the levels in a list at the lower right, as their slopes lie close to one another. */
static void draw_names(plot *p, const chart *c, const roofline *r)
{
    double left = c->x.to - 190, top = c->y.from - 8 - 18 * r->m.n_levels;
    plot_rect(p, left - 10, top - 6, c->x.to - 1, c->y.from - 2, 0xffffff);
    for (int i = 0; i < r->m.n_levels; i++) {
        double y = top + 12 + 18 * i;
        plot_line(p, left, y - 4, left + 22, y - 4, i == r->level ? 3 : 1.6, chart_colours[i % 6],
                  false);
        plot_text(p, left + 30, y, 12, PLOT_START, CHART_INK, "%s: %.0f GB/s", r->m.level[i].name,
                  r->m.level[i].gigabytes);
    }
}

static void draw(plot *p, const roofline *r)
{
    char title[100];
    chart c = {.title = title, .x_name = "intensity, flop/byte", .y_name = "GF/s, one thread"};
    double slowest = r->m.level[r->m.n_levels - 1].gigabytes, fastest = r->m.level[0].gigabytes;
    snprintf(title, sizeof title, "Roofline of %.60s, %s", r->kernel, qn_dtype_name(r->dtype));
    chart_range(&c.x, fmin(r->intensity / 3, r->m.gigaflops / fastest / 6),
                fmax(r->intensity * 3, r->m.gigaflops / slowest * 5));
    chart_range(&c.y, fmin(r->rate / 3, slowest * c.x.low), r->m.gigaflops * 1.5);
    c.x.from = 70, c.x.to = p->width - 30;
    c.y.from = p->height - 56, c.y.to = 66;
    chart_frame(p, &c);
    double fastest_ridge = fmax(r->m.gigaflops / fastest, c.x.low),
           top = chart_place(&c.y, r->m.gigaflops);
    for (int i = 1; i < r->m.n_levels; i++)
        if (r->m.gigaflops / r->m.level[i].gigabytes < fastest_ridge)
            fastest_ridge = r->m.gigaflops / r->m.level[i].gigabytes;
    plot_line(p, chart_place(&c.x, fastest_ridge), top, c.x.to, top,
              is_arithmetic_the_roof(r) ? 3 : 1.6, CHART_INK, false);
    plot_text(p, c.x.to, top - 8, 12, PLOT_END, CHART_INK, "fma of %s: %.0f GF/s",
              qn_dtype_name(r->dtype), r->m.gigaflops);
    for (int i = 0; i < r->m.n_levels; i++)
        draw_level(p, &c, r, i);
    double x = chart_place(&c.x, r->intensity), y = chart_place(&c.y, r->rate);
    bool is_right = x > (c.x.from + c.x.to) / 2;
    plot_line(p, x, c.y.from, x, chart_place(&c.y, r->roof), 1, CHART_FAINT, true);
    draw_names(p, &c, r);
    plot_disc(p, x, y, 7, 0xffffff);
    plot_disc(p, x, y, 5.5, 0xc92a2a);
    char text[2][PLOT_TEXT_BYTES];
    snprintf(text[0], sizeof text[0], "%.3g GF/s at %.3g flop/byte", r->rate, r->intensity);
    snprintf(text[1], sizeof text[1], "%.0f %% of what %s allows", 100 * r->rate / r->roof,
             is_arithmetic_the_roof(r) ? "arithmetic" : r->m.level[r->level].name);
    double side = is_right ? x - 12 : x + 12,
           width = 6.3 * fmax((double)strlen(text[0]), (double)strlen(text[1]));
    plot_rect(p, side, y + 7, is_right ? side - width : side + width, y + 41,
              0xffffff); /* roofs would cross the text */
    for (int i = 0; i < 2; i++)
        plot_text(p, side, y + 20 + 16 * i, 12, is_right ? PLOT_END : PLOT_START, 0xc92a2a, "%s",
                  text[i]);
}

int command_roofline(const tool_line *line)
{
    tool_job job = {0};
    roofline r;
    const char *why;
    if (line->is_cuda || line->launch.executor == QN_THREADS || line->over)
        return tool_fail(EXIT_USAGE, "roofline: one thread of the host is measured, without "
                                     "--target, --executor, --threads, --over");
    if (line->plot && !plot_can_save(line->plot, &why))
        return tool_fail(EXIT_USAGE, "--plot %s: %s", line->plot, why);
    int status = job_open(line, &job);
    if (status == EXIT_OK)
        status = measure(line, &job, &r);
    if (status == EXIT_OK && line->plot) {
        plot p = {.width = 720, .height = 480};
        draw(&p, &r);
        status = plot_save(&p, line->plot) ? EXIT_OK : EXIT_ERROR;
        plot_release(&p);
    }
    if (status == EXIT_OK && line->how.json)
        status = print_json(&r);
    else if (status == EXIT_OK)
        print_text(&r);
    job_close(&job);
    return status;
}
