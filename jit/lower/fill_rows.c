/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill_rows.c: a fill whose lanes are rows of points that lie side by side. `width` points are
 * loaded at once from the rows of all lanes, and transposed in registers: there is no gather.
 */
#include "jit/lower/fill.h"

/** What a copy of one vector needs: lanes `across` elements apart, n <= width points at a time. */
typedef struct rows {
    fill *f;
    int d; /* dimension of the points */
    int64_t across, bytes;
    int n;
    LLVMValueRef behind; /* bytes of the vector behind the first one of the step */
    LLVMValueRef last;  /* lane that runs, others beyond it repeat its row; NULL: all run */
} rows;

/** Lanes of the left and right half blocks of two rows: the lower ones if which is 0, else the
 * upper ones. */
static LLVMValueRef exchange(lower *g, LLVMValueRef a, LLVMValueRef b, int half, int which)
{
    int lane[QN_MOST_TRANSPOSED];
    for (int l = 0; l < g->width; l++)
        lane[l] = (l & ~half) + (which ? half : 0) + (l & half ? g->width : 0);
    return qn__shuffle(g, a, b, lane, g->width);
}

/** Transposes width rows of width lanes: blocks of half the size change places at each stage. */
static void transpose(lower *g, LLVMValueRef *row)
{
    for (int half = g->width / 2; half > 0; half /= 2)
        for (int r = 0; r < g->width; r++)
            if (!(r & half)) {
                LLVMValueRef low = exchange(g, row[r], row[r + half], half, 0);
                row[r + half] = exchange(g, row[r], row[r + half], half, 1);
                row[r] = low;
            }
}

static LLVMValueRef row_pointer(const rows *r, LLVMValueRef first, int l)
{
    lower *g = r->f->g;
    LLVMValueRef bytes = qn__const_i64(g, r->across * r->bytes), lane = qn__const_i64(g, l);
    if (r->last)
        lane = qn__umin(g, lane, r->last);
    return qn__gep(g, g->i8, first, LLVMBuildMul(g->b, lane, bytes, ""));
}

static LLVMValueRef load_row(const rows *r, LLVMValueRef pointer)
{
    lower *g = r->f->g;
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, g->k->inst[r->f->inst].type));
    LLVMValueRef active = qn__lanes_of_bits(g, UINT64_MAX >> (64 - r->n), g->width);
    return qn__load_masked(g, t, pointer, (unsigned)r->bytes, active);
}

/** Copies the points from the one in g->iv on: row l holds those of lane l. The places in the
 * buffer are those of the vector at `first`, and r->behind further. */
static void copy_square(const rows *r, LLVMValueRef first)
{
    lower *g = r->f->g;
    const int lanes = g->block->lane_dim;
    LLVMValueRef row[QN_MOST_TRANSPOSED], index = g->iv[lanes];
    address x = qn__displaced(g, r->f->inst, 0, NULL);
    for (int l = 0; l < g->width; l++)
        row[l] = load_row(r, row_pointer(r, x.pointer, l));
    transpose(g, row);
    g->iv[lanes] = first;
    for (int m = 0; m < r->n; m++) {
        qn__set_ahead(g, r->d, m, g->depth);
        LLVMValueRef to = qn__buffer_pointer(g, r->f->buffer, 0), behind = r->behind;
        qn__store_copy(g, r->f->inst, row[m], qn__gep(g, g->i8, to, behind));
    }
    qn__set_ahead(g, r->d, 0, 0);
    g->iv[lanes] = index;
}

/** All points for one vector. The last square begins so early that it ends with them: copying twice
 * does no harm. */
static void copy_column(const rows *r, LLVMValueRef first, int64_t begin, int64_t end)
{
    lower *g = r->f->g;
    int64_t up = begin + (end - begin + r->n - 1) / r->n * r->n;
    loop l;
    qn__loop_open(g, &l, (span){qn__const_i64(g, begin), qn__const_i64(g, up)}, r->n, 0);
    qn__set_index(g, r->d,
                  up == end ? l.index : qn__smin(g, l.index, qn__const_i64(g, end - r->n)));
    copy_square(r, first);
    qn__loop_close(g, &l);
}

void qn__fill_rows(fill *f)
{
    lower *g = f->g;
    const qn_buffer_layout *layout = &g->filled[f->buffer].layout;
    int lanes = g->block->lane_dim;
    rows r = {.f = f, .d = f->how.dim[0], .bytes = qn_dtype_bytes(g->k->inst[f->inst].type)};
    LLVMValueRef first = g->iv[lanes], width = qn__const_i64(g, g->width);
    int64_t begin = 0, end = 0;
    (void)(qn__is_const(g->begin[r.d], &begin) && qn__is_const(g->end[r.d], &end));
    (void)qn__access_stride(&g->a, f->inst, lanes, &r.across);
    r.n = end - begin < g->width ? (int)(end - begin) : g->width;
    loop l;
    qn__loop_times(g, &l, g->unroll);
    LLVMValueRef ahead = LLVMBuildMul(g->b, l.index, width, "");
    int64_t each = qn__buffer_distance(layout, lanes, g->block->width);
    r.behind = LLVMBuildMul(g->b, l.index, qn__const_i64(g, each), "");
    if (g->rest_lanes) {
        int64_t most = (g->unroll - 1) * g->width + g->rest_lanes - 1;
        r.last = LLVMBuildSub(g->b, qn__const_i64(g, most), ahead, "");
    }
    qn__set_index(g, lanes, LLVMBuildAdd(g->b, first, ahead, ""));
    copy_column(&r, first, begin, end);
    qn__loop_close(g, &l);
}
