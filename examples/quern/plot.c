/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c: the list of primitives of a picture, and the picture as SVG.
 */
#include "plot.h"
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static plot_item *add(plot *p, plot_kind kind, double x, double y, uint32_t colour)
{
    static plot_item nowhere;
    if (p->n == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 64;
        plot_item *more = realloc(p->item, (size_t)capacity * sizeof *more);
        p->has_failed = p->has_failed || !more;
        if (!more)
            return &nowhere;
        p->item = more;
        p->capacity = capacity;
    }
    plot_item *item = &p->item[p->n++];
    *item = (plot_item){.kind = kind, .x = x, .y = y, .colour = colour};
    return item;
}

void plot_line(plot *p, double x, double y, double x2, double y2, double width, uint32_t colour,
               bool is_dashed)
{
    plot_item *item = add(p, PLOT_LINE, x, y, colour);
    item->x2 = x2;
    item->y2 = y2;
    item->size = width;
    item->is_dashed = is_dashed;
}

void plot_rect(plot *p, double x, double y, double x2, double y2, uint32_t colour)
{
    plot_item *item = add(p, PLOT_RECT, x < x2 ? x : x2, y < y2 ? y : y2, colour);
    item->x2 = x < x2 ? x2 : x;
    item->y2 = y < y2 ? y2 : y;
}

void plot_disc(plot *p, double x, double y, double radius, uint32_t colour)
{
    add(p, PLOT_DISC, x, y, colour)->size = radius;
}

void plot_text(plot *p, double x, double y, double size, plot_anchor anchor, uint32_t colour,
               const char *format, ...)
{
    plot_item *item = add(p, PLOT_TEXT, x, y, colour);
    item->size = size;
    item->anchor = anchor;
    va_list ap;
    va_start(ap, format);
    vsnprintf(item->text, sizeof item->text, format, ap);
    va_end(ap);
}

void plot_release(plot *p)
{
    free(p->item);
    *p = (plot){0};
}

/* ---------------------------------------------------------------- SVG */

/* Text of XML: what is no printable ASCII becomes a question mark. */
static void write_escaped(FILE *f, const char *text)
{
    for (; *text; text++)
        if (*text == '<' || *text == '&' || *text == '>')
            fputs(*text == '<' ? "&lt;" : *text == '&' ? "&amp;" : "&gt;", f);
        else
            fputc(*text >= ' ' && *text <= '~' ? *text : '?', f);
}

static void write_item(const plot_item *i, FILE *f)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    switch (i->kind) {
    case PLOT_LINE:
        fprintf(f,
                "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#%06x\" "
                "stroke-width=\"%.2f\"%s/>\n",
                i->x, i->y, i->x2, i->y2, (unsigned)i->colour, i->size,
                i->is_dashed ? " stroke-dasharray=\"5 4\"" : " stroke-linecap=\"round\"");
        break;
    case PLOT_RECT:
        fprintf(f, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"#%06x\"/>\n",
                i->x, i->y, i->x2 - i->x, i->y2 - i->y, (unsigned)i->colour);
        break;
    case PLOT_DISC:
        fprintf(f, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\" fill=\"#%06x\"/>\n", i->x, i->y,
                i->size, (unsigned)i->colour);
        break;
    case PLOT_TEXT:
        fprintf(f,
                "<text x=\"%.2f\" y=\"%.2f\" font-size=\"%.1f\" text-anchor=\"%s\" fill=\"#%06x\">",
                i->x, i->y, i->size, anchors[i->anchor], (unsigned)i->colour);
        write_escaped(f, i->text);
        fputs("</text>\n", f);
        break;
    }
}

void plot_write_svg(const void *arg, FILE *f)
{
    const plot *p = arg;
    fprintf(
        f,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "width=\"%.0f\" "
        "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
        p->width, p->height, p->width, p->height);
    for (int i = 0; i < p->n; i++)
        write_item(&p->item[i], f);
    fputs("</svg>\n", f);
}

/* ---------------------------------------------------------------- files */

static bool ends_in(const char *path, const char *suffix)
{
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

bool plot_can_save(const char *path, const char **why)
{
    *why = "expected a file that ends in .svg or .png";
#ifdef QUERN_HAS_PNG
    return ends_in(path, ".svg") || ends_in(path, ".png");
#else
    if (ends_in(path, ".png"))
        *why = "this tool was built without libpng; a file that ends in .svg can be written";
    return ends_in(path, ".svg");
#endif
}

bool plot_save(const plot *p, const char *path)
{
    errno = p->has_failed ? ENOMEM : 0;
    if (!p->has_failed &&
        file_write(path, ends_in(path, ".png") ? plot_write_png : plot_write_svg, p))
        return true;
    tool_fail(EXIT_ERROR, "%s: cannot be written: %s", path, strerror(errno ? errno : EIO));
    return false;
}
