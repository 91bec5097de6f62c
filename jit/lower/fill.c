/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fill.c: the loops that fill a buffer of a schedule (schedule/buffer.h): point by point, over
 * steps of the lanes, or by transposing squares of lanes and points. Only elements that the load
 * would read are read.
 */
#include "jit/lower/nest.h"

#include <string.h>

/** A buffer that is being filled. */
typedef struct fill {
    lower *g;
    int buffer;
    uint32_t inst;        /* the load */
    qn_fill_loops how;
    bool has_rest;        /* accesses go through it in steps of the lanes that are not whole, too */
    span of[QN_MAX_RANK]; /* what is run of each dimension */
} fill;

/* ---------------------------------------------------------------- what the block has */

/** Loads all parts and stores them. */
static void copy_block(fill *f)
{
    lower *g = f->g;
    qn__lower_load(g, f->inst, 0);
    FOR_PARTS(g, p)
        if (qn__canonical_part(g, f->inst, p) == p)
            qn__store_copy(g, f->inst, g->value[f->inst].part[p],
                           qn__buffer_pointer(g, f->buffer, p));
}

/** Steps along a dimension of the fill, or along the lanes. */
typedef struct fill_steps {
    steps steps;
    fill *f;
    int at; /* the place of the dimension, -1: the lanes, which are outside of all */
} fill_steps;

static void copy_points(fill *f, int at);

static void inside_steps(lower *g, const steps *of)
{
    const fill_steps *x = (const fill_steps *)of;
    (void)g;
    copy_points(x->f, x->at + 1);
}

/** Loops over the dimensions of the fill from place `at` on, inside of them the block. */
static void copy_points(fill *f, int at)
{
    if (at == f->how.n) {
        copy_block(f);
        return;
    }
    const int d = f->how.dim[at];
    const span s = f->of[d];
    const fill_steps x = {.steps = {.d = d, .all = s, .inside = inside_steps}, .f = f, .at = at};
    const int64_t step = f->how.in_steps >> d & 1 ? qn__jammed_step(f->g, d) : 1;
    int64_t low, high;
    const bool is_known = qn__is_const(s.low, &low) && qn__is_const(s.high, &high);
    const int64_t rest = is_known ? (high - low) % step : step > 1 ? -1 : 0;
    qn__nest_jammed(f->g, &x.steps, step, rest, !is_known);
}

/* ---------------------------------------------------------------- steps of the lanes */

static void first_of_lanes(lower *g, const steps *of)
{
    qn__set_index(g, of->d, of->all.low);
}

/** Steps of the lanes; what is left of them only for accesses that go through the buffer there. */
static void copy_all_steps(fill *f)
{
    lower *g = f->g;
    int lanes = g->block->lane_dim;
    const span s = f->of[lanes];
    const fill_steps x = {.steps = {.d = lanes,
                                    .all = s,
                                    .is_inner = true,
                                    .may_be_short = true,
                                    .inside = inside_steps,
                                    .first = first_of_lanes},
                          .f = f,
                          .at = -1};
    if (f->has_rest) {
        qn__nest_lanes(g, &x.steps);
        return;
    }
    bool is_cut = g->block->tail != QN_TAIL_NONE;
    LLVMValueRef high = is_cut ? qn__whole_steps(g, s, (int64_t)g->block->width * g->block->unroll)
                               : s.high;
    qn__lanes_whole(g, &x.steps, (span){s.low, high}, is_cut, STREAM_NONE);
}

/* ---------------------------------------------------------------- squares of lanes and points */

/* Lanes are rows of points that lie side by side: `width` points are loaded at once from the rows
 * of all lanes, and transposed in registers, so there is no gather. */

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

static void copy_rows(fill *f)
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

/* ---------------------------------------------------------------- all of it */

/** Where the buffer begins along each dimension: at the index that is set, or at the first one of
 * what is run. Points are those of the whole range. */
static void set_bases(fill *f, uint32_t is_set)
{
    lower *g = f->g;
    filled *b = &g->filled[f->buffer];
    for (int d = 0; d < g->k->n_dims; d++) {
        if (qn__is_reduction(g->k, d))
            f->of[d] = (span){g->begin[d], g->end[d]};
        bool is_point = qn__is_reduction(g->k, d), is_index = !is_point && (is_set >> d & 1);
        b->base[d] = is_index ? g->iv[d] : f->of[d].low;
        b->base_level[d] = is_index ? g->iv_level[d] : is_point ? 0 : g->depth;
    }
}

/** Whether lanes are masked of which it is not known how many run: a row of a lane beyond the end
 * may not be read. */
static bool has_unknown_lanes(const lower *g)
{
    bool is_masked = false;
    FOR_PARTS(g, p)
        is_masked |= g->tail_mask[p] != NULL;
    return is_masked && !g->rest_lanes;
}

/** The jammed iterations of which the fill walks no dimension index by index. */
static uint64_t active_of(const fill *f)
{
    uint64_t active = f->g->jam_active;
    for (int n = 0; n < f->how.n; n++)
        if ((f->g->jam_dims & ~f->how.in_steps) >> f->how.dim[n] & 1)
            active &= qn__jammed_below(f->g, f->how.dim[n], 1);
    return active;
}

/** Memory in the frame, made when the buffer is first filled, or of the launch. */
static LLVMValueRef memory_of(lower *g, int buffer)
{
    const qn_buffer_info *b = &g->schedule->buffer[buffer];
    if (b->storage == QN_STORAGE_SCRATCH)
        return g->scratch_memory;
    if (!g->filled[buffer].memory)
        g->filled[buffer].memory = qn__new_buffer(g, (uint64_t)b->bytes, LINE_BYTES);
    return g->filled[buffer].memory;
}

static void emit(fill *f)
{
    if (f->g->schedule->buffer[f->buffer].storage == QN_STORAGE_REGISTERS)
        qn__lower_load(f->g, f->inst, 0);
    else if (f->how.is_transposed && !has_unknown_lanes(f->g))
        copy_rows(f);
    else if (f->how.has_steps)
        copy_all_steps(f);
    else
        copy_points(f, 0);
}

void qn__fill(lower *g, qn_node at, const span *of, uint32_t is_set)
{
    fill f = {.g = g, .buffer = qn__node(g->schedule, at)->index};
    LLVMValueRef iv[QN_MAX_RANK];
    int iv_level[QN_MAX_RANK], width = g->width, unroll = g->unroll;
    uint64_t active = g->jam_active;
    if (qn__fill_of(g->scalar, g->schedule, at, &f.how)) { /* it was asked before */
        g->failed = true;
        return;
    }
    f.inst = g->schedule->buffer[f.buffer].inst;
    f.has_rest = qn__is_used_by_tails(g->schedule, f.buffer);
    g->filled[f.buffer].has_rest = f.has_rest || !f.how.has_steps;
    memcpy(f.of, of, sizeof f.of);
    memcpy(iv, g->iv, sizeof iv);
    memcpy(iv_level, g->iv_level, sizeof iv_level);
    set_bases(&f, is_set);
    for (int d = 0; d < g->k->n_dims; d++) /* what does not move the access may have any index */
        if (!g->iv[d]) {
            g->iv[d] = f.of[d].low;
            g->iv_level[d] = g->depth;
        }
    if (g->schedule->buffer[f.buffer].storage != QN_STORAGE_REGISTERS)
        g->filled[f.buffer].memory = memory_of(g, f.buffer);
    qn__set_active(g, active_of(&f));
    emit(&f);
    qn__set_active(g, active);
    g->width = width;
    g->unroll = unroll;
    memcpy(g->iv, iv, sizeof iv);
    memcpy(g->iv_level, iv_level, sizeof iv_level);
}
