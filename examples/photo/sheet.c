/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.c: draws the sheet of the demo into an array of pixels, with the font of font.h, which it
 * shares with the tool.
 */
#include "sheet.h"

#include "font.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MARGIN = 24,
    PANEL_WIDTH = 480,
    PANEL_HEIGHT = 320,
    CAPTION = 34,
    TITLE = 64,
    WIDTH = 3 * MARGIN + 2 * PANEL_WIDTH,
    N_CELLS = 12,
    CELL = 58,
    LAYOUT_HEIGHT = 62,
    LINE = 30,
    NAME_WIDTH = 190,
    TIME_WIDTH = 262,
    TEXT = 2, /* pixels of a point of the font */
    TITLE_TEXT = 3,
};
enum { INK = 0x1f2933, FAINT = 0x616e7c, PAPER = 0xffffff, GROUND = 0xf0f2f4 };
static const uint32_t channel_colours[3] = {0xf3b3ad, 0xb5dfb3, 0xb3c9f0};
static const uint32_t gray_colour = 0xd5d9dd;
static const uint32_t layout_colours[SHEET_LAYOUTS] = {0x1d6fd1, 0xd9480f, 0x2b8a3e};

static void fill(picture *p, int64_t x, int64_t y, int64_t width, int64_t height, uint32_t colour)
{
    for (int64_t row = y; row < y + height && row < p->rows; row++)
        for (int64_t column = x; column < x + width && column < p->columns; column++)
            for (int ch = 0; ch < 3; ch++)
                p->samples[(row * p->columns + column) * 3 + ch] =
                    (uint8_t)(colour >> (16 - 8 * ch));
}

/* Text whose upper left corner is (x, y). */
static void write_text(picture *p, int64_t x, int64_t y, int point, uint32_t colour,
                       const char *text)
{
    for (; *text; text++, x += (int64_t)FONT_ADVANCE * point)
        for (int row = 0; row < FONT_ROWS; row++)
            for (int column = 0; column < FONT_COLUMNS; column++)
                if (font_glyph(*text)[row] >> (FONT_COLUMNS - 1 - column) & 1)
                    fill(p, x + column * point, y + row * point, point, point, colour);
}

/* Mean of the samples of a channel in rows [r, r2) and columns [c, c2). */
static uint8_t mean(const picture *p, int64_t r, int64_t r2, int64_t c, int64_t c2, int64_t channel)
{
    int64_t sum = 0, n = 0;
    for (int64_t row = r; row < (r2 > r ? r2 : r + 1); row++)
        for (int64_t column = c; column < (c2 > c ? c2 : c + 1); column++, n++)
            sum += p->samples[(row * p->columns + column) * p->channels + channel];
    return (uint8_t)((sum + n / 2) / n);
}

/* The picture at the largest size that fits into a panel, in its middle. */
static void place(picture *p, int64_t x, int64_t y, const picture *image)
{
    int64_t width = PANEL_WIDTH, height = image->rows * PANEL_WIDTH / image->columns;
    if (height > PANEL_HEIGHT) {
        height = PANEL_HEIGHT;
        width = image->columns * PANEL_HEIGHT / image->rows;
    }
    width = width > 0 ? width : 1;
    height = height > 0 ? height : 1;
    fill(p, x, y, PANEL_WIDTH, PANEL_HEIGHT, GROUND);
    x += (PANEL_WIDTH - width) / 2;
    y += (PANEL_HEIGHT - height) / 2;
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++)
            for (int ch = 0; ch < 3; ch++)
                p->samples[((y + row) * p->columns + x + column) * 3 + ch] =
                    mean(image, row * image->rows / height, (row + 1) * image->rows / height,
                         column * image->columns / width, (column + 1) * image->columns / width,
                         ch % image->channels);
}

/* A layout: its name, and the first elements of memory, each with row and column of its pixel,
 * coloured by channel. */
static void draw_layout(picture *p, int64_t y, const sheet *s, int l)
{
    const picture *photo = s->image[0];
    const int64_t extent[3] = {photo->rows, photo->columns, photo->channels};
    int64_t index[3] = {0, 0, 0};
    fill(p, MARGIN, y + 2, 12, 12, layout_colours[l]);
    write_text(p, MARGIN + 22, y, TEXT, INK, s->layout[l]);
    write_text(p, MARGIN + NAME_WIDTH, y, TEXT, FAINT, s->text[l]);
    for (int i = 0; i < N_CELLS; i++) {
        char text[32];
        snprintf(text, sizeof text, "%d,%d", (int)index[0], (int)index[1]);
        fill(p, MARGIN + NAME_WIDTH + i * CELL, y + 22, CELL - 2, 26,
             photo->channels == 1 ? gray_colour : channel_colours[index[2]]);
        write_text(p, MARGIN + NAME_WIDTH + i * CELL + 6, y + 28, TEXT, INK, text);
        int d = 0;
        while (d < 3 && ++index[s->order[l][d]] == extent[s->order[l][d]])
            index[s->order[l][d++]] = 0;
        if (d == 3)
            return; /* all of memory */
    }
    write_text(p, MARGIN + NAME_WIDTH + N_CELLS * CELL + 4, y + 28, TEXT, FAINT, "...");
}

static void draw_times(picture *p, int64_t y, const sheet *s)
{
    double longest = 0;
    for (int l = 0; l < SHEET_LAYOUTS; l++) {
        const int64_t x = MARGIN + NAME_WIDTH + l * TIME_WIDTH;
        fill(p, x, y + 2, 12, 12, layout_colours[l]);
        write_text(p, x + 22, y, TEXT, INK, s->layout[l]);
        for (int k = 0; k < s->n_kernels; k++)
            longest = s->run_ms[l][k] > longest ? s->run_ms[l][k] : longest;
    }
    for (int k = 0; k < s->n_kernels; k++) {
        const int64_t row = y + LINE * (k + 1);
        write_text(p, MARGIN, row + 3, TEXT, INK, s->kernel[k]);
        for (int l = 0; l < SHEET_LAYOUTS; l++) {
            char text[32];
            const int64_t x = MARGIN + NAME_WIDTH + l * TIME_WIDTH;
            const double share = s->run_ms[l][k] / longest;
            const int64_t length = 1 + (int64_t)(share * (TIME_WIDTH - 118));
            const bool is_short = s->run_ms[l][k] < 1;
            snprintf(text, sizeof text, "%.3g %s", s->run_ms[l][k] * (is_short ? 1000 : 1),
                     is_short ? "us" : "ms");
            fill(p, x, row, length, 20, layout_colours[l]);
            write_text(p, x + length + 8, row + 3, TEXT, INK, text);
        }
    }
}

bool sheet_draw(const sheet *s, picture *out)
{
    const int64_t panels = TITLE, layouts = panels + 2 * (PANEL_HEIGHT + CAPTION) + 10;
    const int64_t times = layouts + LINE + SHEET_LAYOUTS * LAYOUT_HEIGHT + 10;
    *out = (picture){times + LINE * (s->n_kernels + 2) + MARGIN, WIDTH, 3, NULL};
    out->samples = malloc((size_t)(out->rows * out->columns * 3));
    if (!out->samples)
        return false;
    fill(out, 0, 0, out->columns, out->rows, PAPER);
    write_text(out, MARGIN, 22, TITLE_TEXT, INK,
               "One set of kernels, three layouts, the same bits");
    for (int i = 0; i < SHEET_IMAGES; i++) {
        const int64_t x = MARGIN + i % 2 * (PANEL_WIDTH + MARGIN);
        const int64_t y = panels + i / 2 * (PANEL_HEIGHT + CAPTION);
        place(out, x, y, s->image[i]);
        write_text(out, x, y + PANEL_HEIGHT + 8, TEXT, INK, s->caption[i]);
    }
    write_text(out, MARGIN, layouts, TEXT, FAINT,
               s->image[0]->channels == 1
                   ? "first elements of memory: row,column"
                   : "first elements of memory: row,column of red, green and blue");
    for (int l = 0; l < SHEET_LAYOUTS; l++)
        draw_layout(out, layouts + LINE + l * LAYOUT_HEIGHT, s, l);
    char text[120];
    snprintf(text, sizeof text, "time of a run, median%s%s", s->device[0] ? ", " : "", s->device);
    write_text(out, MARGIN, times, TEXT, FAINT, text);
    draw_times(out, times + LINE, s);
    return true;
}
