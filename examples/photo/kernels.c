/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c: blur, Sobel and equalisation of the histogram of luminance with the builder. Borders:
 * the photograph is copied once into a view with two more rows and columns on each side, whose
 * lower bounds are -2; stencils then index it from -2 without any test.
 */
#include "kernels.h"

static qn_status finish(qn_builder *b, qn_kernel **out, qn_error *err)
{
    qn_status status = qn_finish(b, out, err);
    qn_builder_release(b);
    return status;
}

/* Dimensions over all indices of a view of rank 3. */
static void domain_over(qn_builder *b, qn_param p, qn_val index[3])
{
    for (int d = 0; d < 3; d++)
        index[d] = qn_parallel_over(b, p, d);
}

/* The nearest index of dimension d of a view. */
static qn_val clamp(qn_builder *b, qn_val i, qn_param p, int d)
{
    qn_val last = qn_sub(b, qn_extent(b, p, d), qn_index(b, 1));
    return qn_max(b, qn_min(b, i, last), qn_index(b, 0));
}

qn_status build_pad(int channels, qn_kernel **out, qn_error *err)
{
    (void)channels;
    qn_builder *b = qn_builder_new("pad", 0);
    qn_param photo = qn_view_param(b, "photo", QN_U8, 3, QN_READ_ONLY);
    qn_param padded = qn_view_param(b, "padded", QN_U8, 3, 0);
    qn_val to[3];
    domain_over(b, padded, to);
    qn_val from[3] = {clamp(b, to[0], photo, 0), clamp(b, to[1], photo, 1), to[2]};
    qn_store(b, padded, 3, to, qn_load(b, photo, 3, from));
    return finish(b, out, err);
}

/* The neighbour (dr, dc) of a sample, as i32. */
static qn_val neighbour(qn_builder *b, qn_param p, const qn_val index[3], int dr, int dc)
{
    qn_val at[3] = {qn_add(b, index[0], qn_index(b, dr)), qn_add(b, index[1], qn_index(b, dc)),
                    index[2]};
    return qn_cast(b, QN_I32, qn_load(b, p, 3, at));
}

/* sum + weight * value */
static qn_val add_weighted(qn_builder *b, qn_val sum, int weight, qn_val value)
{
    qn_val product = qn_mul(b, qn_const_int(b, QN_I32, weight), value);
    return qn_add(b, sum, product);
}

qn_status build_blur(int channels, qn_kernel **out, qn_error *err)
{
    (void)channels;
    static const int binomial[5] = {1, 4, 6, 4, 1};
    qn_builder *b = qn_builder_new("blur", 0);
    qn_param padded = qn_view_param(b, "padded", QN_U8, 3, QN_READ_ONLY);
    qn_param result = qn_view_param(b, "result", QN_U8, 3, 0);
    qn_val index[3];
    domain_over(b, result, index);
    qn_val sum = qn_const_int(b, QN_I32, 128); /* half, to round */
    for (int dr = -2; dr <= 2; dr++)
        for (int dc = -2; dc <= 2; dc++)
            sum = add_weighted(b, sum, binomial[dr + 2] * binomial[dc + 2],
                               neighbour(b, padded, index, dr, dc));
    qn_val mean = qn_shr(b, sum, qn_const_int(b, QN_I32, 8)); /* the weights add up to 256 */
    qn_store(b, result, 3, index, qn_cast(b, QN_U8, mean));
    return finish(b, out, err);
}

qn_status build_sobel(int channels, qn_kernel **out, qn_error *err)
{
    (void)channels;
    static const int smooth[3] = {1, 2, 1}, slope[3] = {-1, 0, 1};
    qn_builder *b = qn_builder_new("sobel", 0);
    qn_param padded = qn_view_param(b, "padded", QN_U8, 3, QN_READ_ONLY);
    qn_param result = qn_view_param(b, "result", QN_U8, 3, 0);
    qn_val index[3];
    domain_over(b, result, index);
    qn_val gx = qn_const_int(b, QN_I32, 0), gy = gx;
    for (int dr = -1; dr <= 1; dr++) {
        for (int dc = -1; dc <= 1; dc++) {
            qn_val sample = neighbour(b, padded, index, dr, dc);
            if (dc != 0)
                gx = add_weighted(b, gx, smooth[dr + 1] * slope[dc + 1], sample);
            if (dr != 0)
                gy = add_weighted(b, gy, slope[dr + 1] * smooth[dc + 1], sample);
        }
    }
    qn_val square = qn_add(b, qn_mul(b, gx, gx), qn_mul(b, gy, gy));
    qn_val magnitude = qn_sqrt(b, qn_cast(b, QN_F32, square));
    qn_store(b, result, 3, index, qn_cast(b, QN_U8, magnitude)); /* float to integer saturates */
    return finish(b, out, err);
}

/* Dimensions over the pixels of a view of rank 3: rows and columns. */
static void domain_over_pixels(qn_builder *b, qn_param p, qn_val index[3])
{
    for (int d = 0; d < 2; d++)
        index[d] = qn_parallel_over(b, p, d);
}

/* The samples of a pixel, as i32. */
static void load_pixel(qn_builder *b, qn_param p, qn_val index[3], int channels, qn_val out[3])
{
    for (int ch = 0; ch < channels; ch++) {
        index[2] = qn_index(b, ch);
        out[ch] = qn_cast(b, QN_I32, qn_load(b, p, 3, index));
    }
}

/* What the eye takes for the brightness of a pixel: weights of ITU-R BT.601, which add up to 256.
 */
static qn_val luminance(qn_builder *b, const qn_val pixel[3], int channels)
{
    static const int weight[3] = {77, 150, 29};
    if (channels == 1)
        return pixel[0];
    qn_val sum = qn_const_int(b, QN_I32, 128); /* half, to round */
    for (int ch = 0; ch < 3; ch++)
        sum = add_weighted(b, sum, weight[ch], pixel[ch]);
    return qn_shr(b, sum, qn_const_int(b, QN_I32, 8));
}

qn_status build_histogram(int channels, qn_kernel **out, qn_error *err)
{
    qn_builder *b = qn_builder_new("histogram", 0);
    qn_param photo = qn_view_param(b, "photo", QN_U8, 3, QN_READ_ONLY);
    qn_param counts = qn_view_param(b, "counts", QN_U32, 1, 0);
    qn_val index[3], pixel[3];
    domain_over_pixels(b, photo, index);
    load_pixel(b, photo, index, channels, pixel);
    qn_val bin = qn_cast(b, QN_I64, luminance(b, pixel, channels));
    qn_atomic(b, QN_COMBINE_SUM, counts, 1, &bin, qn_const_int(b, QN_U32, 1), (qn_val){0});
    return finish(b, out, err);
}

qn_status build_table(int channels, qn_kernel **out, qn_error *err)
{
    (void)channels;
    qn_builder *b = qn_builder_new("table", 0);
    qn_param counts = qn_view_param(b, "counts", QN_U32, 1, QN_READ_ONLY);
    qn_param table = qn_view_param(b, "table", QN_U8, 1, 0);
    qn_val n = qn_scalar_param(b, "pixels", QN_I64);
    qn_val zero = qn_index(b, 0), top = qn_index(b, 255);

    /* Carried: pixels counted so far, and how many have the darkest value that occurs. */
    qn_val init[2] = {zero, zero}, carried[2];
    qn_val value = qn_for(b, zero, qn_index(b, 256), 1, 2, init, carried);
    qn_val so_far = qn_add(b, carried[0], qn_cast(b, QN_I64, qn_load(b, counts, 1, &value)));
    qn_val darkest = qn_select(b, qn_eq(b, carried[1], zero), so_far, carried[1]);
    qn_val above = qn_mul(b, qn_sub(b, so_far, darkest), top);
    qn_val entry =
        qn_div(b, above, qn_sub(b, n, darkest)); /* x / 0 is 0: a picture of one colour */
    qn_store(b, table, 1, &value, qn_cast(b, QN_U8, entry));
    qn_val next[2] = {so_far, darkest}, results[2];
    qn_end_for(b, 2, next, results);
    return finish(b, out, err);
}

qn_status build_apply(int channels, qn_kernel **out, qn_error *err)
{
    qn_builder *b = qn_builder_new("apply", 0);
    qn_param photo = qn_view_param(b, "photo", QN_U8, 3, QN_READ_ONLY);
    qn_param table = qn_view_param(b, "table", QN_U8, 1, QN_READ_ONLY);
    qn_param result = qn_view_param(b, "result", QN_U8, 3, 0);
    qn_val index[3], pixel[3];
    domain_over_pixels(b, result, index);
    load_pixel(b, photo, index, channels, pixel);
    qn_val before = luminance(b, pixel, channels), entry = qn_cast(b, QN_I64, before);
    qn_val after = qn_cast(b, QN_I32, qn_load(b, table, 1, &entry));
    qn_val more = qn_sub(b, after, before);
    qn_val black = qn_const_int(b, QN_I32, 0), white = qn_const_int(b, QN_I32, 255);
    for (int ch = 0; ch < channels; ch++) {
        qn_val sample = qn_max(b, qn_min(b, qn_add(b, pixel[ch], more), white), black);
        index[2] = qn_index(b, ch);
        qn_store(b, result, 3, index, qn_cast(b, QN_U8, sample));
    }
    return finish(b, out, err);
}
