/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h: pictures as a list of primitives, which are written as SVG or drawn into a PNG. The
 * origin is the upper left corner; lengths are those of the SVG, of which a PNG has two pixels
 * each.
 */
#ifndef QUERN_PLOT_H
#define QUERN_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum plot_kind { PLOT_LINE, PLOT_RECT, PLOT_DISC, PLOT_TEXT } plot_kind;
typedef enum plot_anchor { PLOT_START, PLOT_MIDDLE, PLOT_END } plot_anchor;

enum { PLOT_TEXT_BYTES = 120 };

/** Line: from (x, y) to (x2, y2), `size` wide. Rectangle: corners (x, y) and (x2, y2). Disc: radius
 * `size`. Text: (x, y) is on its base line, `size` is the height of the font. */
typedef struct plot_item {
    plot_kind kind;
    double x, y, x2, y2, size;
    uint32_t colour; /* 0xRRGGBB */
    bool is_dashed;
    plot_anchor anchor;
    char text[PLOT_TEXT_BYTES];
} plot_item;

/** A picture. All-zero but for the extents is an empty one. */
typedef struct plot {
    double width, height;
    plot_item *item; /* malloc */
    int n, capacity;
    bool has_failed; /* memory was missing for an item */
} plot;

void plot_line(plot *p, double x, double y, double x2, double y2, double width, uint32_t colour,
               bool is_dashed);
void plot_rect(plot *p, double x, double y, double x2, double y2, uint32_t colour);
void plot_disc(plot *p, double x, double y, double radius, uint32_t colour);
void plot_text(plot *p, double x, double y, double size, plot_anchor anchor, uint32_t colour,
               const char *format, ...) __attribute__((format(printf, 7, 8)));
void plot_release(plot *p);

/** Whether a path ends in .svg, or in .png where libpng was found; if not, `why` becomes the
 * reason, a constant. */
bool plot_can_save(const char *path, const char **why);
/** Writes the file that the path names, whole or not at all. False after a message. */
bool plot_save(const plot *p, const char *path);

/** The picture as SVG. `arg` is the plot. */
void plot_write_svg(const void *arg, FILE *f);
/** The picture as PNG, with libpng. `arg` is the plot. Nothing is written where memory is missing.
 */
void plot_write_png(const void *arg, FILE *f);

/* chart.c */

/** One axis, which is logarithmic: its numbers and its place in the picture. */
typedef struct chart_axis {
    double low, high; /* numbers, above 0 */
    double from, to;  /* places of both */
} chart_axis;

/** Two axes with a title and the names of both. */
typedef struct chart {
    chart_axis x, y;
    const char *title, *x_name, *y_name;
} chart;

enum { CHART_INK = 0x1f2933, CHART_FAINT = 0x7b8794, CHART_GRID = 0xe4e7eb };
/** Colours of series. */
extern const uint32_t chart_colours[6];

double chart_place(const chart_axis *a, double value);
/** Widens the axis to whole powers of ten, or of two times and five times one, around [low, high].
 */
void chart_range(chart_axis *a, double low, double high);
/** Frame, grid, numbers, title and names. */
void chart_frame(plot *p, const chart *c);
/** A number with three digits and a letter for thousands: 1.5k, 20M. */
void chart_number(double value, char *buffer, size_t n);

#endif
