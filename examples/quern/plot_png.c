/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_png.c: draws the primitives of a picture into pixels, two a unit of length, and writes them
 * with libpng. The edge of a line or a disc covers a pixel by its distance from the middle of the
 * pixel.
 */
#include "plot.h"

#ifndef QUERN_HAS_PNG

/* plot_can_save refuses such files before this is called. */
void plot_write_png(const void *arg, FILE *f)
{
    (void)arg;
    (void)f;
}

#else

#include "font.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

static const double SCALE = 2;

typedef struct canvas {
    int columns, rows;
    uint8_t *rgb;
} canvas;

/* Mixes the colour into a pixel; cover is 0 to 1, and pixels outside are left out. */
static void blend(canvas *c, int column, int row, uint32_t colour, double cover)
{
    if (column < 0 || row < 0 || column >= c->columns || row >= c->rows || cover <= 0)
        return;
    uint8_t *at = c->rgb + 3 * ((size_t)row * (size_t)c->columns + (size_t)column);
    double share = cover < 1 ? cover : 1;
    for (int i = 0; i < 3; i++) {
        double full = (double)(colour >> (16 - 8 * i) & 255);
        at[i] = (uint8_t)(at[i] + (full - at[i]) * share + 0.5);
    }
}

/* Of the length of a pixel from `at` to at + 1, the part inside [low, high]. */
static double overlap(double at, double low, double high)
{
    double begin = at > low ? at : low, end = at + 1 < high ? at + 1 : high;
    return end > begin ? end - begin : 0;
}

static void draw_rect(canvas *c, const plot_item *i)
{
    double x = i->x * SCALE, y = i->y * SCALE, x2 = i->x2 * SCALE, y2 = i->y2 * SCALE;
    for (int row = (int)floor(y); row < y2; row++)
        for (int column = (int)floor(x); column < x2; column++)
            blend(c, column, row, i->colour, overlap(column, x, x2) * overlap(row, y, y2));
}

/* Distance of (px, py) from the line; *along becomes the place on the line, from 0 to its length.
 */
static double distance(double x, double y, double x2, double y2, double px, double py,
                       double *along)
{
    double dx = x2 - x, dy = y2 - y, length = hypot(dx, dy);
    double t = length > 0 ? ((px - x) * dx + (py - y) * dy) / length : 0;
    t = t < 0 ? 0 : t > length ? length : t;
    *along = t;
    return length > 0 ? hypot(px - x - t * dx / length, py - y - t * dy / length)
                      : hypot(px - x, py - y);
}

static void draw_line(canvas *c, const plot_item *i)
{
    double x = i->x * SCALE, y = i->y * SCALE, x2 = i->x2 * SCALE, y2 = i->y2 * SCALE;
    double half = i->size * SCALE / 2, along, reach = half + 1;
    int top = (int)floor(fmin(y, y2) - reach), bottom = (int)ceil(fmax(y, y2) + reach);
    int left = (int)floor(fmin(x, x2) - reach), right = (int)ceil(fmax(x, x2) + reach);
    for (int row = top; row <= bottom; row++)
        for (int column = left; column <= right; column++) {
            double d = distance(x, y, x2, y2, column + 0.5, row + 0.5, &along);
            if (!i->is_dashed || fmod(along, 9.0 * SCALE) < 5.0 * SCALE)
                blend(c, column, row, i->colour, half + 0.5 - d);
        }
}

static void draw_disc(canvas *c, const plot_item *i)
{
    double x = i->x * SCALE, y = i->y * SCALE, radius = i->size * SCALE;
    for (int row = (int)floor(y - radius - 1); row <= y + radius + 1; row++)
        for (int column = (int)floor(x - radius - 1); column <= x + radius + 1; column++)
            blend(c, column, row, i->colour, radius + 0.5 - hypot(column + 0.5 - x, row + 0.5 - y));
}

/* A font of height 12 has points of 2 x 2 pixels, one of 18 those of 3 x 3. */
static void draw_text(canvas *c, const plot_item *i)
{
    int n = (int)strlen(i->text), point = (int)(i->size * SCALE / 10 + 0.25);
    point = point > 0 ? point : 1;
    int width = (n * FONT_ADVANCE - 1) * point;
    int x = (int)lround(i->x * SCALE) - (i->anchor == PLOT_START    ? 0
                                         : i->anchor == PLOT_MIDDLE ? width / 2
                                                                    : width);
    int y = (int)lround(i->y * SCALE) - FONT_BASE * point;
    for (int k = 0; k < n * FONT_ADVANCE * point; k++)
        for (int row = 0; row < FONT_ROWS * point; row++) {
            int column = k / point % FONT_ADVANCE;
            const uint8_t *glyph = font_glyph(i->text[k / point / FONT_ADVANCE]);
            if (column < FONT_COLUMNS && glyph[row / point] >> (FONT_COLUMNS - 1 - column) & 1)
                blend(c, x + k, y + row, i->colour, 1);
        }
}

static void draw(canvas *c, const plot *p)
{
    static void (*const draws[])(canvas *, const plot_item *) = {[PLOT_LINE] = draw_line,
                                                                 [PLOT_RECT] = draw_rect,
                                                                 [PLOT_DISC] = draw_disc,
                                                                 [PLOT_TEXT] = draw_text};
    memset(c->rgb, 255, 3 * (size_t)c->columns * (size_t)c->rows);
    for (int i = 0; i < p->n; i++)
        draws[p->item[i].kind](c, &p->item[i]);
}

void plot_write_png(const void *arg, FILE *f)
{
    const plot *p = arg;
    canvas c = {.columns = (int)(p->width * SCALE), .rows = (int)(p->height * SCALE)};
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)c.columns,
                       .height = (png_uint_32)c.rows,
                       .format = PNG_FORMAT_RGB};
    c.rgb = malloc(3 * (size_t)c.columns * (size_t)c.rows);
    if (c.rgb) {
        draw(&c, p);
        png_image_write_to_stdio(&image, f, 0, c.rgb, 0, NULL);
        png_image_free(&image);
    }
    free(c.rgb);
}

#endif
