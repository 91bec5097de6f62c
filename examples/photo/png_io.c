/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_io.c: PNG files through libpng. libpng reports errors by a jump; the two functions that set
 * it keep everything that must be freed in a struct made before.
 */
#include "png_io.h"

#include <errno.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files with more samples are refused; 2 GiB. */
static const int64_t sample_limit = (int64_t)1 << 31;

typedef struct png_job {
    const char *path;
    FILE *f;
    png_structp png;
    png_infop info;
    png_bytep *row;
    picture p;
    char *why;
} png_job;

static bool fail(png_job *j, const char *what)
{
    snprintf(j->why, PNG_MESSAGE, "%.200s: %.150s", j->path, what);
    return false;
}

static void on_error(png_structp png, png_const_charp message)
{
    fail(png_get_error_ptr(png), message);
    longjmp(png_jmpbuf(png), 1);
}

static void on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* Asks libpng for 8-bit gray or colour and reads the extents. */
static bool read_extents(png_job *j)
{
    png_read_info(j->png, j->info);
    png_set_expand(j->png); /* palettes, fewer than 8 bits, transparent colours */
    png_set_strip_16(j->png);
    png_set_strip_alpha(j->png);
    png_set_interlace_handling(j->png);
    png_read_update_info(j->png, j->info);
    j->p.rows = png_get_image_height(j->png, j->info);
    j->p.columns = png_get_image_width(j->png, j->info);
    j->p.channels = png_get_channels(j->png, j->info);
    if (png_get_bit_depth(j->png, j->info) != 8 || (j->p.channels != 1 && j->p.channels != 3))
        return fail(j, "pixels of a kind that is not supported");
    if (j->p.rows > sample_limit / (j->p.columns * j->p.channels))
        return fail(j, "the picture has more than 2^31 samples");
    return true;
}

/* Allocates samples and the table of rows. */
static bool make_rows(png_job *j)
{
    size_t row_bytes = (size_t)(j->p.columns * j->p.channels);
    j->row = malloc((size_t)j->p.rows * sizeof *j->row);
    if (!j->p.samples)
        j->p.samples = malloc((size_t)j->p.rows * row_bytes);
    if (!j->row || !j->p.samples)
        return fail(j, "out of memory");
    for (int64_t r = 0; r < j->p.rows; r++)
        j->row[r] = j->p.samples + (size_t)r * row_bytes;
    return true;
}

static bool read_all(png_job *j)
{
    if (setjmp(png_jmpbuf(j->png)))
        return false;
    png_init_io(j->png, j->f);
    if (!read_extents(j) || !make_rows(j))
        return false;
    png_read_image(j->png, j->row);
    png_read_end(j->png, NULL);
    return true;
}

bool png_load(const char *path, picture *out, char why[PNG_MESSAGE])
{
    png_job *j = calloc(1, sizeof *j);
    if (!j) {
        snprintf(why, PNG_MESSAGE, "out of memory");
        return false;
    }
    j->path = path;
    j->why = why;
    j->f = fopen(path, "rb");
    unsigned char head[8];
    bool is_good = j->f || fail(j, strerror(errno));
    is_good = is_good && ((fread(head, 1, 8, j->f) == 8 && png_sig_cmp(head, 0, 8) == 0) ||
                          fail(j, "not a PNG file"));
    if (is_good) {
        rewind(j->f);
        j->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, j, on_error, on_warning);
        j->info = j->png ? png_create_info_struct(j->png) : NULL;
        is_good = j->info ? read_all(j) : fail(j, "out of memory");
        png_destroy_read_struct(&j->png, &j->info, NULL);
    }
    if (j->f)
        fclose(j->f);
    if (is_good)
        *out = j->p;
    else
        free(j->p.samples);
    free(j->row);
    free(j);
    return is_good;
}

static bool write_all(png_job *j)
{
    if (setjmp(png_jmpbuf(j->png)))
        return false;
    png_init_io(j->png, j->f);
    png_set_IHDR(j->png, j->info, (png_uint_32)j->p.columns, (png_uint_32)j->p.rows, 8,
                 j->p.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(j->png, j->info);
    png_write_image(j->png, j->row);
    png_write_end(j->png, NULL);
    return true;
}

bool png_save(const char *path, const picture *p, char why[PNG_MESSAGE])
{
    png_job *j = calloc(1, sizeof *j);
    if (!j) {
        snprintf(why, PNG_MESSAGE, "out of memory");
        return false;
    }
    j->path = path;
    j->why = why;
    j->p = *p;
    j->f = fopen(path, "wb");
    bool is_good = (j->f || fail(j, strerror(errno))) && make_rows(j);
    if (is_good) {
        j->png = png_create_write_struct(PNG_LIBPNG_VER_STRING, j, on_error, on_warning);
        j->info = j->png ? png_create_info_struct(j->png) : NULL;
        is_good = j->info ? write_all(j) : fail(j, "out of memory");
        png_destroy_write_struct(&j->png, &j->info);
    }
    if (j->f && fclose(j->f) != 0 && is_good)
        is_good = fail(j, strerror(errno));
    free(j->row);
    free(j);
    return is_good;
}
