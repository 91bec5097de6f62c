/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c: a copy of what one load of a reduce reads for all points and the lanes of one step, made
 * before the tiles of the jammed dimension that all use it. In the copy the vectors of one point
 * follow one another: no gather, no page and no set of a cache is met by one line of each row. Only
 * elements that the load would read are read.
 *
 * The copy lies in memory of the launch (range, behind the sequential dimensions): points x unroll
 * x width elements. Where the points have unit stride, width of them are loaded at once from the
 * rows of all lanes and transposed.
 *
 * Where the lanes are a batch (plan->pack_steps), what several steps load is copied together: a
 * long piece of each element's lanes, some elements side by side.
 */
#include "jit/lower/lower.h"
#include "jit/schedule/plan.h"

#include <string.h>

enum { MOST_TRANSPOSED = 16, MOST_TOGETHER = 8, MOST_VECTORS = 8 };

/** The one reduction dimension of the packed load. */
static int dim_of(const lower *g)
{
    uint32_t reduce = qn__enclosing_reduce(g->k, g->p->pack);
    return qn__dim_of(g->k, reduce, 0);
}

static int64_t bytes_of(const lower *g)
{
    return qn_dtype_bytes(g->k->inst[g->p->pack].type);
}

static LLVMTypeRef vector_type(const lower *g)
{
    return qn__vector_of(g, qn__memory_type(g, g->k->inst[g->p->pack].type));
}

/** Alignment of the vectors in the copy of load i, which starts at a cache line. */
static unsigned alignment(const lower *g, uint32_t i)
{
    int64_t bytes = g->width * qn_dtype_bytes(g->k->inst[i].type);
    return (unsigned)(bytes > LINE_BYTES ? LINE_BYTES : bytes);
}

/** Pointer to vector u of the copy of the point that is `ahead` of the index of dimension d. */
static LLVMValueRef copy_pointer(lower *g, int d, int ahead, int u)
{
    int64_t vector = g->width * bytes_of(g), row = vector * g->unroll, begin = 0;
    LLVMValueRef point = qn__element_pointer(g, g->scratch_memory, g->iv[d], g->iv_level[d], row);
    (void)qn__is_const(g->begin[d], &begin);
    return qn__ahead(g, point, vector * u + (ahead - begin) * row);
}

static void store_copy(lower *g, LLVMValueRef v, int d, int ahead, int u)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, copy_pointer(g, d, ahead, u)),
                     alignment(g, g->p->pack));
}

/* ---------------------------------------------------------------- transposed */

/** Lanes of the left and right half blocks of two rows: the lower ones if which is 0, else the
 * upper ones. */
static LLVMValueRef exchange(lower *g, LLVMValueRef a, LLVMValueRef b, int half, int which)
{
    int lane[MOST_TRANSPOSED];
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

/** What a transposing copy of one vector needs: lanes `across` elements apart, n <= width points at
 * a time. */
typedef struct rows {
    int64_t across;
    int n;
    LLVMValueRef ahead; /* of the vector in the step: its number */
    LLVMValueRef last;  /* lane that runs, others beyond it repeat its row; NULL: all run */
} rows;

static LLVMValueRef row_pointer(lower *g, const rows *r, LLVMValueRef first, int l)
{
    LLVMValueRef bytes = qn__const_i64(g, r->across * bytes_of(g)), lane = qn__const_i64(g, l);
    if (r->last)
        lane = qn__umin(g, lane, r->last);
    LLVMValueRef offset = LLVMBuildMul(g->b, lane, bytes, "");
    return LLVMBuildGEP2(g->b, g->i8, first, &offset, 1, "");
}

static LLVMValueRef load_row(lower *g, const rows *r, LLVMValueRef pointer)
{
    LLVMTypeRef t = vector_type(g), types[2] = {t, g->ptr};
    unsigned bytes = (unsigned)bytes_of(g);
    LLVMValueRef active[MOST_TRANSPOSED], v;
    if (r->n == g->width) {
        v = LLVMBuildLoad2(g->b, t, pointer, "");
        LLVMSetAlignment(v, bytes);
        return v;
    }
    for (int l = 0; l < g->width; l++)
        active[l] = LLVMConstInt(g->i1, l < r->n, false);
    LLVMValueRef args[4] = {pointer, LLVMConstInt(g->i32, bytes, false),
                            LLVMConstVector(active, (unsigned)g->width), LLVMConstNull(t)};
    return qn__call(g, "llvm.masked.load", types, 2, args, 4);
}

/** Copies the points from the one in g->iv on: row l holds those of lane l. */
static void copy_block(lower *g, int d, const rows *r)
{
    LLVMValueRef row[MOST_TRANSPOSED];
    LLVMValueRef ahead = LLVMBuildMul(g->b, r->ahead, qn__const_i64(g, g->width * bytes_of(g)), "");
    address x;
    qn__make_address(g, g->p->pack, 0, NULL, &x);
    qn__displace(g, &x);
    for (int l = 0; l < g->width; l++)
        row[l] = load_row(g, r, row_pointer(g, r, x.pointer, l));
    transpose(g, row);
    for (int m = 0; m < r->n; m++) {
        LLVMValueRef to = copy_pointer(g, d, m, 0);
        LLVMSetAlignment(
            LLVMBuildStore(g->b, row[m], LLVMBuildGEP2(g->b, g->i8, to, &ahead, 1, "")),
            alignment(g, g->p->pack));
    }
}

/** All points for one vector. The last block begins so early that it ends with them: copying twice
 * does no harm. */
static void copy_column(lower *g, int d, const rows *r, int64_t begin, int64_t end)
{
    int64_t up = begin + (end - begin + r->n - 1) / r->n * r->n;
    loop l;
    qn__loop_open(g, &l, qn__const_i64(g, begin), qn__const_i64(g, up), r->n, false, false, 0, NULL,
                  NULL);
    qn__set_index(g, d, up == end ? l.index : qn__smin(g, l.index, qn__const_i64(g, end - r->n)));
    copy_block(g, d, r);
    qn__loop_close(g, &l, NULL, NULL);
}

/** If the lanes of the load are rows of points, width rows of width points are transposed; else
 * false. */
static bool copy_transposed(lower *g, int d)
{
    int64_t along, begin = 0, end = 0;
    int lanes = g->p->lane_dim, lane_level = g->iv_level[lanes];
    rows r = {0};
    (void)(qn__is_const(g->begin[d], &begin) && qn__is_const(g->end[d], &end));
    bool is_row = qn__is_plain_access(g->k, g->f, g->p->pack) &&
                  qn__access_stride(g->k, g->f, &g->a, g->p->pack, d, &along) && along == 1 &&
                  qn__access_stride(g->k, g->f, &g->a, g->p->pack, lanes, &r.across);
    if (!is_row || r.across == 1 || r.across == 0 || r.across == -1 || g->width > MOST_TRANSPOSED ||
        bytes_of(g) < g->f->target->least_shuffled)
        return false;
    LLVMValueRef first = g->iv[lanes], width = qn__const_i64(g, g->width);
    r.n = end - begin < g->width ? (int)(end - begin) : g->width;
    loop l;
    qn__loop_open(g, &l, qn__const_i64(g, 0), qn__const_i64(g, g->unroll), 1, false, false, 0, NULL,
                  NULL);
    r.ahead = l.index;
    LLVMValueRef ahead = LLVMBuildMul(g->b, l.index, width, "");
    if (g->rest_lanes) {
        LLVMValueRef most = qn__const_i64(g, (g->unroll - 1) * g->width + g->rest_lanes - 1);
        r.last = LLVMBuildSub(g->b, most, ahead, "");
    }
    qn__set_index(g, lanes, LLVMBuildAdd(g->b, first, ahead, ""));
    copy_column(g, d, &r, begin, end);
    g->iv[lanes] = first;
    g->iv_level[lanes] = lane_level;
    qn__loop_close(g, &l, NULL, NULL);
    return true;
}

/* ---------------------------------------------------------------- point by point */

static void copy_points(lower *g, int d)
{
    uint32_t i = g->p->pack;
    loop l;
    qn__loop_open(g, &l, g->begin[d], g->end[d], 1, false, false, 0, NULL, NULL);
    qn__set_index(g, d, l.index);
    qn__lower_load(g, i);
    for (int u = 0; u < g->unroll; u++)
        store_copy(g, g->value[i].part[u * g->jam_max], d, 0, u);
    qn__loop_close(g, &l, NULL, NULL);
}

/* ---------------------------------------------------------------- several steps */

/** The copy of load i: of each step of the lanes, of each point, the vectors of the step. The last
 * dimension moves least. */
typedef struct layout {
    int dim[QN_MAX_RANK], n_dims;
    int64_t stride[QN_MAX_RANK],
        of_lane; /* bytes, of one iteration of each dimension and of the lanes */
} layout;

static int64_t distance(const lower *g, uint32_t i, int d)
{
    int64_t stride = 0;
    (void)qn__access_stride(g->k, g->f, &g->a, i, d, &stride);
    return stride < 0 ? -stride : stride;
}

static layout layout_of(const lower *g, uint32_t i)
{
    uint32_t dims = qn__packed_dims(g->k, g->f, &g->a, g->p, i);
    layout x = {.n_dims = 0};
    for (int d = 0; d < g->k->n_dims; d++) {
        int at = dims >> d & 1 ? x.n_dims++ : 0;
        if (!(dims >> d & 1))
            continue;
        for (; at > 0 && distance(g, i, x.dim[at - 1]) < distance(g, i, d); at--)
            x.dim[at] = x.dim[at - 1];
        x.dim[at] = d;
    }
    int64_t bytes = qn_dtype_bytes(g->k->inst[i].type), all = bytes * g->p->width * g->p->unroll;
    for (int n = x.n_dims - 1; n >= 0; n--) {
        x.stride[n] = all;
        all *= qn__trips(g->f, x.dim[n]);
    }
    x.of_lane = all / (g->p->width * g->p->unroll);
    return x;
}

/** Where part p of load i is in its copy. */
static LLVMValueRef step_pointer(lower *g, uint32_t i, int p)
{
    layout x = layout_of(g, i);
    int64_t bytes = qn_dtype_bytes(g->k->inst[i].type), constant = g->value[i].copy_offset, known;
    LLVMValueRef pointer = g->scratch_memory;
    int lanes = g->p->lane_dim, left = x.n_dims;
    constant += p / g->jam_max * g->width * bytes;
    pointer = qn__element_pointer(g, pointer, g->copy_low, g->copy_level, -x.of_lane);
    pointer = qn__element_pointer(g, pointer, g->iv[lanes], g->iv_level[lanes], x.of_lane);
    for (int wanted = g->iv_level[lanes]; left > 0; wanted++)
        for (int n = 0; n < x.n_dims; n++) {
            int d = x.dim[n],
                at = g->iv_level[d] > g->iv_level[lanes] ? g->iv_level[d] : g->iv_level[lanes];
            if (at != wanted)
                continue;
            left--;
            int64_t begin = 0;
            (void)qn__is_const(g->begin[d], &begin);
            constant += (g->ahead[d] + qn__part_ahead(g, d, p) - begin) * x.stride[n];
            if (qn__is_const(g->iv[d], &known))
                constant += known * x.stride[n];
            else
                pointer = qn__element_pointer(g, pointer, g->iv[d], at, x.stride[n]);
        }
    return qn__ahead(g, pointer, constant);
}

static void step_ahead(lower *g, int d, int n)
{
    if (d >= 0)
        qn__set_ahead(g, d, n, g->depth);
}

/** `n` points from the one in g->iv on, along dimension d (-1: one), for one step of the lanes. */
static void copy_together(lower *g, uint32_t i, int d, int n)
{
    LLVMValueRef v[MOST_TOGETHER][MOST_VECTORS];
    int64_t stride = 0, bytes = qn_dtype_bytes(g->k->inst[i].type);
    if (d >= 0)
        (void)qn__access_stride(g->k, g->f, &g->a, i, d, &stride);
    for (int m = 0; m < n; m++) {
        step_ahead(g, d, m);
        qn__lower_load(g, i);
        for (int u = 0; u < g->unroll; u++) {
            v[m][u] = g->value[i].part[u * g->jam_max];
            if (stride && u * g->width * bytes % LINE_BYTES == 0) /* once a line */
                qn__prefetch(g, i, u * g->jam_max,
                             qn__wrap_mul(stride, n * bytes)); /* the points after these */
        }
    }
    for (int m = 0; m < n; m++) {
        step_ahead(g, d, m);
        for (int u = 0; u < g->unroll; u++) {
            LLVMValueRef store = LLVMBuildStore(g->b, v[m][u], step_pointer(g, i, u * g->jam_max));
            LLVMSetAlignment(store, alignment(g, i));
        }
    }
    if (d >= 0)
        qn__set_ahead(g, d, 0, 0);
}

/** The steps of the lanes [low, high) for dimensions x->dim[at], ... The last runs several
 * iterations at once: the processor follows that many streams well. Its last step begins so early
 * that it ends with the dimension. */
static void copy_steps(lower *g, uint32_t i, const layout *x, int at, LLVMValueRef low,
                       LLVMValueRef high)
{
    int d = at < x->n_dims ? x->dim[at] : -1, lanes = g->p->lane_dim, together = 1;
    loop l;
    if (d >= 0) {
        int64_t n = qn__trips(g->f, d),
                groups = at + 1 < x->n_dims ? n : (n + MOST_TOGETHER - 1) / MOST_TOGETHER,
                begin = 0;
        together = (int)((n + groups - 1) / groups);
        (void)qn__is_const(g->begin[d], &begin);
        qn__loop_open(g, &l, qn__const_i64(g, begin), qn__const_i64(g, begin + groups * together),
                      together, false, false, 0, NULL, NULL);
        qn__set_index(g, d,
                      groups * together == n
                          ? l.index
                          : qn__smin(g, l.index, qn__const_i64(g, begin + n - together)));
    }
    if (at + 1 < x->n_dims) {
        copy_steps(g, i, x, at + 1, low, high);
    } else {
        loop steps;
        qn__loop_open(g, &steps, low, high, (int64_t)g->width * g->unroll, false, false, 0, NULL,
                      NULL);
        qn__set_index(g, lanes, steps.index);
        copy_together(g, i, d, together);
        qn__loop_close(g, &steps, NULL, NULL);
    }
    if (d >= 0)
        qn__loop_close(g, &l, NULL, NULL);
}

void qn__pack_steps_open(lower *g, LLVMValueRef low, LLVMValueRef high)
{
    LLVMValueRef iv[QN_MAX_RANK];
    int iv_level[QN_MAX_RANK];
    memcpy(iv, g->iv, sizeof iv);
    memcpy(iv_level, g->iv_level, sizeof iv_level);
    g->copy_low = low;
    g->copy_level = g->depth;
    for (int d = 0; d < g->k->n_dims; d++)
        if (!g->iv[d])
            g->iv[d] = g->begin[d];
    for (uint32_t n = 0; n < g->k->n_accesses; n++) {
        uint32_t i = g->k->access[n].inst;
        if (!qn__is_packed_in_steps(g->k, g->f, &g->a, g->p, i))
            continue;
        layout x = layout_of(g, i);
        g->value[i].copy_offset = qn__packed_offset(g->k, g->f, &g->a, g->p, i);
        copy_steps(g, i, &x, 0, low, high);
    }
    for (uint32_t n = 0; n < g->k->n_accesses; n++) /* now that loads for the copies are done */
        g->value[g->k->access[n].inst].is_copied =
            qn__is_packed_in_steps(g->k, g->f, &g->a, g->p, g->k->access[n].inst);
    memcpy(g->iv, iv, sizeof iv);
    memcpy(g->iv_level, iv_level, sizeof iv_level);
    g->is_packed = true;
}

/* ---------------------------------------------------------------- all of it */

void qn__pack_open(lower *g)
{
    int d = dim_of(g);
    if (!copy_transposed(g, d))
        copy_points(g, d);
    g->is_packed = true;
}

void qn__pack_close(lower *g)
{
    g->is_packed = false;
}

bool qn__is_packed(const lower *g, uint32_t i)
{
    return g->is_packed && (g->p->pack_steps ? g->value[i].is_copied : i == g->p->pack);
}

LLVMValueRef qn__load_packed(lower *g, uint32_t i, int p)
{
    LLVMTypeRef t = qn__vector_of(g, qn__memory_type(g, g->k->inst[i].type));
    bool in_steps = g->p->pack_steps;
    LLVMValueRef pointer =
        in_steps ? step_pointer(g, i, p)
                 : copy_pointer(g, dim_of(g), (int)g->ahead[dim_of(g)], p / g->jam_max);
    LLVMValueRef v = LLVMBuildLoad2(g->b, t, pointer, "");
    LLVMSetAlignment(v, alignment(g, i));
    return v;
}
