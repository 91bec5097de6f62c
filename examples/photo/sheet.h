/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet.h: one picture with what the demo shows: the photograph and its results, how pixels lie in
 * memory in each layout, and how long each kernel took there.
 */
#ifndef PHOTO_SHEET_H
#define PHOTO_SHEET_H

#include "png_io.h"

enum { SHEET_IMAGES = 4, SHEET_LAYOUTS = 3, SHEET_MOST_KERNELS = 8 };

/** What is drawn. All is borrowed. */
typedef struct sheet {
    const picture *image[SHEET_IMAGES];
    const char *caption[SHEET_IMAGES];
    const char *device; /* where kernels ran; "" for the processor */
    int n_kernels;
    const char *kernel[SHEET_MOST_KERNELS];
    const char *layout[SHEET_LAYOUTS], *text[SHEET_LAYOUTS];
    int order[SHEET_LAYOUTS][3]; /* of row 0, column 1, channel 2 in memory, fastest first */
    double run_ms[SHEET_LAYOUTS][SHEET_MOST_KERNELS];
} sheet;

/** Draws it; the caller frees out->samples. False without memory. */
bool sheet_draw(const sheet *s, picture *out);

#endif
