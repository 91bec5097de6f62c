/* SPDX-License-Identifier: Apache-2.0 */
/*
 * png_io.h: photographs as bytes. Any PNG is read as gray (1 channel) or colour (3 channels) with 8
 * bits a sample: palettes are looked up, 16 bits cut to 8, transparency is dropped.
 */
#ifndef PHOTO_PNG_IO_H
#define PHOTO_PNG_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of a message. */
#define PNG_MESSAGE 400

/** Pixels interleaved: sample (row, column, channel) is at (row*columns + column)*channels +
 * channel. */
typedef struct picture {
    int64_t rows, columns, channels;
    uint8_t *samples; /* malloc */
} picture;

/** Reads a file; on failure returns false and a line in `why`. The caller frees out->samples. */
bool png_load(const char *path, picture *out, char why[PNG_MESSAGE]);
/** Writes a file; on failure returns false and a line in `why`. */
bool png_save(const char *path, const picture *p, char why[PNG_MESSAGE]);

#endif
