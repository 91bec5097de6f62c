/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: the kernels of the photo demo. Each is built once, over views with dimensions (row,
 * column, channel), and knows nothing of how pixels lie in memory. `channels` is 1 for gray, 3 for
 * colour.
 */
#ifndef PHOTO_KERNELS_H
#define PHOTO_KERNELS_H

#include "quern.h"

/** Rows and columns around the padded photograph. */
enum { PAD = 2 };

/** photo, padded: padded = photo with its border repeated; its rows and columns start at -PAD. */
qn_status build_pad(int channels, qn_kernel **out, qn_error *err);
/** padded, result: 5x5 binomial blur in 32-bit integers. */
qn_status build_blur(int channels, qn_kernel **out, qn_error *err);
/** padded, result: Sobel magnitude, square root in f32, saturated to 255. */
qn_status build_sobel(int channels, qn_kernel **out, qn_error *err);
/** photo, counts[luminance]: counts += 1 for each pixel, atomically. */
qn_status build_histogram(int channels, qn_kernel **out, qn_error *err);
/** counts, table[luminance], pixels (i64): the table that equalises the histogram. */
qn_status build_table(int channels, qn_kernel **out, qn_error *err);
/** photo, table, result: each pixel becomes as bright as the table says, by the same step in each
 * channel, which keeps its hue. */
qn_status build_apply(int channels, qn_kernel **out, qn_error *err);

#endif
