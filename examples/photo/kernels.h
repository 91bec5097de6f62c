/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: the kernels of the photo demo. Each is built once, over views with dimensions (row,
 * column, channel), and knows nothing of how pixels lie in memory.
 */
#ifndef PHOTO_KERNELS_H
#define PHOTO_KERNELS_H

#include "quern.h"

/** Rows and columns around the padded photograph. */
enum { PAD = 2 };

/** photo, padded: padded = photo with its border repeated; its rows and columns start at -PAD. */
qn_status build_pad(qn_kernel **out, qn_error *err);
/** padded, result: 5x5 binomial blur in 32-bit integers. */
qn_status build_blur(qn_kernel **out, qn_error *err);
/** padded, result: Sobel magnitude, square root in f32, saturated to 255. */
qn_status build_sobel(qn_kernel **out, qn_error *err);
/** photo, counts[channel, value]: counts += 1 for each sample, atomically. */
qn_status build_histogram(qn_kernel **out, qn_error *err);
/** counts, table[channel, value], samples (i64): the table that equalises the histogram. */
qn_status build_table(qn_kernel **out, qn_error *err);
/** photo, table, result: result = table[channel, photo]. */
qn_status build_apply(qn_kernel **out, qn_error *err);

#endif
