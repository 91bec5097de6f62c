/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chart.c: frame, grid and numbers of charts with two logarithmic axes.
 */
#include "plot.h"

#include <math.h>

const uint32_t chart_colours[6] = {0x1d6fd1, 0xd9480f, 0x2b8a3e, 0x862e9c, 0xb08900, 0x0b7285};

double chart_place(const chart_axis *a, double value)
{
    return a->from + (a->to - a->from) * log(value / a->low) / log(a->high / a->low);
}

/* The largest of 1, 2 and 5 times a power of ten that is at most the value. */
static double step_below(double value)
{
    double power = pow(10, floor(log10(value) + 1e-9));
    return power * (value >= 5 * power * (1 - 1e-9) ? 5 : value >= 2 * power * (1 - 1e-9) ? 2 : 1);
}

static double step_above(double step)
{
    double power = pow(10, floor(log10(step) + 1e-9));
    return step < 1.5 * power ? 2 * power : step < 3 * power ? 5 * power : 10 * power;
}

void chart_range(chart_axis *a, double low, double high)
{
    a->low = step_below(low);
    a->high = step_below(high);
    while (a->high < high * (1 - 1e-9) || a->high <= a->low)
        a->high = step_above(a->high);
}

void chart_number(double value, char *buffer, size_t n)
{
    static const char letters[] = {0, 'k', 'M', 'G', 'T'};
    int i = 0;
    while (fabs(value) >= 999.5 && i < 4) {
        value /= 1000;
        i++;
    }
    snprintf(buffer, n, "%.3g%c", value, letters[i]);
}

/* Grid lines of an axis at 1, 2 and 5 times powers of ten; numbers at all of them where they are
 * few, else at powers. */
static void draw_axis(plot *p, const chart *c, const chart_axis *a, bool is_x)
{
    bool has_many = log10(a->high / a->low) > 3.1;
    for (double v = a->low; v <= a->high * (1 + 1e-9); v = step_above(v)) {
        char text[32];
        bool is_power = fabs(log10(v) - round(log10(v))) < 1e-6;
        double at = chart_place(a, v);
        if (has_many && !is_power)
            continue;
        chart_number(v, text, sizeof text);
        if (is_x) {
            plot_line(p, at, c->y.from, at, c->y.to, 1, CHART_GRID, false);
            plot_text(p, at, c->y.from + 18, 12, PLOT_MIDDLE, CHART_INK, "%s", text);
        } else {
            plot_line(p, c->x.from, at, c->x.to, at, 1, CHART_GRID, false);
            plot_text(p, c->x.from - 8, at + 4, 12, PLOT_END, CHART_INK, "%s", text);
        }
    }
}

void chart_frame(plot *p, const chart *c)
{
    draw_axis(p, c, &c->x, true);
    draw_axis(p, c, &c->y, false);
    plot_line(p, c->x.from, c->y.from, c->x.to, c->y.from, 1.2, CHART_INK, false);
    plot_line(p, c->x.from, c->y.from, c->x.from, c->y.to, 1.2, CHART_INK, false);
    plot_text(p, c->x.from, c->y.to - 14, 12, PLOT_START, CHART_FAINT, "%s", c->y_name);
    plot_text(p, c->x.to, c->y.from + 36, 12, PLOT_END, CHART_FAINT, "%s", c->x_name);
    if (c->title)
        plot_text(p, c->x.from, c->y.to - 36, 16, PLOT_START, CHART_INK, "%s", c->title);
}
