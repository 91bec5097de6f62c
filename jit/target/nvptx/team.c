/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team.c: reduces by the lanes of warps, in the striped order (docs/ops.md). A warp takes a block
 * of 4096 points: lane l holds the partials l and l + 32 and adds its points in order; then l is
 * combined with l + 32 in the lane, and with l + 16, ... by shuffles. Results of blocks are
 * partials of the block above in the same way. Integers, whose order does not matter, go the same
 * way.
 */
#include "jit/target/nvptx/nvptx.h"
#include "jit/lower/wide.h"
#include "jit/schedule/grid.h"

/** Steps of 64 points that are emitted together, so that their loads are under way at the same
 * time. */
enum { STEPS = 4 };

/* ---------------------------------------------------------------- lanes */

static LLVMValueRef shuffle_word(lower *g, const char *name, LLVMValueRef v, int n)
{
    LLVMValueRef args[4] = {LLVMConstInt(g->i32, 0xffffffffu, false), v,
                            LLVMConstInt(g->i32, (unsigned long long)n, false),
                            LLVMConstInt(g->i32, WARP_LANES - 1, false)};
    return qn__call(g, name, NULL, 0, args, 4);
}

/** A value of any scalar type from another lane. */
static LLVMValueRef shuffle(lower *g, const char *name, LLVMValueRef v, int n)
{
    LLVMTypeRef t = LLVMTypeOf(v);
    unsigned bits = LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(t)
                    : t == g->f64                             ? 64
                                                              : 32;
    LLVMTypeRef whole = LLVMIntTypeInContext(g->context, bits);
    LLVMValueRef word = LLVMBuildBitCast(g->b, v, whole, "");
    if (bits == 64) {
        LLVMValueRef high = LLVMBuildLShr(g->b, word, qn__const_i64(g, 32), "");
        LLVMValueRef low = shuffle_word(g, name, LLVMBuildTrunc(g->b, word, g->i32, ""), n);
        high = shuffle_word(g, name, LLVMBuildTrunc(g->b, high, g->i32, ""), n);
        high = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, high, g->i64, ""), qn__const_i64(g, 32), "");
        word = LLVMBuildOr(g->b, high, LLVMBuildZExt(g->b, low, g->i64, ""), "");
    } else {
        word = bits < 32 ? LLVMBuildZExt(g->b, word, g->i32, "") : word;
        word = shuffle_word(g, name, word, n);
        word = bits < 32 ? LLVMBuildTrunc(g->b, word, whole, "") : word;
    }
    return LLVMBuildBitCast(g->b, word, t, "");
}

LLVMValueRef qn__team_same(lower *g, LLVMValueRef v)
{
    return shuffle(g, "llvm.nvvm.shfl.sync.idx.i32", v, 0);
}

void qn__team_wait(lower *g)
{
    LLVMValueRef all = LLVMConstInt(g->i32, 0xffffffffu, false);
    qn__call(g, "llvm.nvvm.bar.warp.sync", NULL, 0, &all, 1);
}

LLVMValueRef qn__is_lane(lower *g, int n)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, g->lane, qn__const_i64(g, n), "");
}

LLVMValueRef qn__team_begin(lower *g)
{
    qn__team_wait(g);
    LLVMValueRef is_first = qn__is_lane(g, 0);
    if (g->grid->warps) {
        LLVMValueRef warp = qn__nvptx_register(g, "tid.y", g->i64);
        warp = LLVMBuildICmp(g->b, LLVMIntEQ, warp, qn__const_i64(g, 0), "");
        is_first = LLVMBuildAnd(g->b, is_first, warp, "");
    }
    return is_first;
}

/* ---------------------------------------------------------------- what is added */

static LLVMValueRef ahead(lower *g, LLVMValueRef q, int64_t n)
{
    return n ? LLVMBuildAdd(g->b, q, qn__const_i64(g, n), "") : q;
}

void qn__set_indices(lower *g, const int *dim, int n, LLVMValueRef q, bool is_small)
{
    const LLVMTypeRef t = is_small && n > 1 ? g->i32 : g->i64;
    LLVMValueRef rest = LLVMBuildIntCast2(g->b, q, t, false, "");
    for (int m = n - 1; m >= 0; m--) {
        const int d = dim[m];
        LLVMValueRef index = rest, at_once = qn__const_i64(g, qn__grid_at_once(g->grid, d));
        if (m > 0) {
            LLVMValueRef extent = LLVMBuildSub(g->b, g->end[d], g->begin[d], "");
            extent =
                LLVMBuildIntCast2(g->b, LLVMBuildUDiv(g->b, extent, at_once, ""), t, false, "");
            index = LLVMBuildURem(g->b, rest, extent, "");
            rest = LLVMBuildUDiv(g->b, rest, extent, "");
        }
        index = LLVMBuildIntCast2(g->b, index, g->i64, false, "");
        index = LLVMBuildMul(g->b, index, at_once, "");
        qn__set_index(g, d, LLVMBuildAdd(g->b, g->begin[d], index, ""));
    }
}

void qn__team_set_point(lower *g, const reduction *r, LLVMValueRef q)
{
    qn__set_indices(g, r->dim, r->n_dims, q, r->points >= 0 && r->points <= INT32_MAX);
}

static bool is_one_dimension(const team_source *s)
{
    return !s->array && s->r->n_dims == 1;
}

/** Makes q the point from which those of `add` count: a single dimension then has its index in a
 * register, and the distance is the displacement of the loads. */
static void set_base(lower *g, const team_source *s, LLVMValueRef q)
{
    if (is_one_dimension(s))
        qn__team_set_point(g, s->r, q);
}

/** Adds a point, whose indices and kept values are set. What it adds may be one of these. */
static void fold_point(lower *g, const reduction *r, LLVMValueRef *acc)
{
    bool is_there = g->kept_is_read;
    addend a = {{NULL}, {NULL}};
    for (int n = 0; n < (r->product ? 2 : 1); n++)
        is_there = is_there && g->value[qn__added_value(g->k, r->inst, n)].is_set;
    if (!is_there) {
        qn__fold_point(g, r, acc);
        return;
    }
    qn__take_point(g, r, 0, false, &a, 0);
    *acc = qn__add_point(g, r, *acc, &a, 0);
}

/** Partials of a lane, of each reduce. */
static int n_partials(const team_source *s)
{
    return s->lanes == PARTIALS ? 1 : PARTIALS / WARP_LANES;
}

/** Adds point q + n to one partial of each reduce, where q is the base. Each point is a level of
 * its own: what is emitted for one is not that of the next. */
static void add(lower *g, const team_source *s, LLVMValueRef q, int64_t n, LLVMValueRef *acc)
{
    loop once;
    qn__once_open(g, &once, NULL);
    if (s->array) {
        LLVMValueRef at = ahead(g, q, n);
        at = s->pitch ? LLVMBuildMul(g->b, at, s->pitch, "") : at;
        at = qn__gep(g, g->i64, s->array, at);
        *acc = qn__combine(g, s->r, *acc, qn__load_as(g, s->r->type, at, 8));
    } else {
        bool is_team = g->is_team;
        uint32_t outer = g->team_reduce;
        if (is_one_dimension(s))
            qn__set_ahead(g, s->r->dim[0], n, g->depth);
        else
            qn__team_set_point(g, s->r, ahead(g, q, n));
        g->is_team = false;
        for (const reduction *r = s->r; r <= s->r + s->n_more; r++, acc += n_partials(s)) {
            LLVMValueRef held[QN_MOST_HELD] = {NULL};
            g->team_reduce = r->inst;
            qn__kept_read(g, r->inst, q, n);
            qn__kept_hold(g, r->inst, held);
            g->held = held;
            fold_point(g, r, acc);
            g->held = NULL;
            qn__kept_write(g, r->inst, q, n);
        }
        qn__set_ahead(g, s->r->dim[0], 0, 0);
        g->is_team = is_team;
        g->team_reduce = outer;
    }
    qn__loop_close(g, &once);
}

/** Point q + n is added if `condition` holds. */
static void add_if(lower *g, const team_source *s, LLVMValueRef condition, LLVMValueRef q,
                   int64_t n, LLVMValueRef *acc)
{
    branch then = qn__begin_branch(g, condition);
    for (int m = 0; m <= s->n_more; m++)
        qn__branch_keep(g, &then, acc + m * n_partials(s), 1);
    add(g, s, q, n, acc);
    qn__end_branch(g, &then, NULL);
}

/** What is left of a piece while its points are emitted. */
typedef struct piece {
    const team_source *s;
    LLVMValueRef q, acc[2];
    int64_t first;
    int n, n_acc; /* points that are done; partials that take turns */
    kept_point kept[MOST_OF_PIECE];
} piece;

static void add_to_piece(lower *g, void *arg)
{
    piece *x = arg;
    qn__kept_read(g, x->s->r->inst, x->q, x->first + x->n);
    fold_point(g, x->s->r, &x->acc[x->n % x->n_acc]);
    qn__kept_take(g, x->s->r->inst, &x->kept[x->n++]);
}

/** Adds the piece of `count` points that begins n points behind point q to one partial, or to two
 * in turn. */
static void fold_piece(lower *g, const team_source *s, LLVMValueRef q, int64_t n, int count,
                       LLVMValueRef *acc, int n_acc)
{
    const int d = s->r->dim[0];
    const bool is_team = g->is_team;
    piece x = {.s = s, .q = q, .acc = {acc[0], acc[n_acc - 1]}, .first = n, .n_acc = n_acc};
    g->is_team = false;
    g->team_reduce = s->r->inst;
    g->multiple[d] = count;
    qn__wide_points(g, s->r, d, (int)n, count, add_to_piece, &x);
    g->multiple[d] = 0;
    qn__kept_put(g, x.kept, count, q, n);
    g->is_team = is_team;
    g->team_reduce = 0;
    for (int m = 0; m < n_acc; m++)
        acc[m] = x.acc[m];
}

/* ---------------------------------------------------------------- blocks */

/** Whether lane l holds the partials 2 l and 2 l + 1, whose points it loads together, instead of
 * l and l + 32. */
static bool has_pairs(const lower *g, const team_source *s)
{
    return g->grid->has_pairs && is_one_dimension(s) && s->n_more == 0;
}

/** 64 partials to one: right in lane 0. */
static LLVMValueRef across(lower *g, const reduction *r, LLVMValueRef *acc, bool are_pairs)
{
    LLVMValueRef v[2] = {acc[0], acc[1]};
    if (!are_pairs)
        v[0] = qn__combine(g, r, v[0], v[1]);
    for (int n = WARP_LANES / 2; n > 0; n /= 2)
        for (int m = 0; m < (are_pairs ? 2 : 1); m++)
            v[m] = qn__combine(g, r, v[m], shuffle(g, "llvm.nvvm.shfl.sync.down.i32", v[m], n));
    return are_pairs ? qn__combine(g, r, v[0], v[1]) : v[0];
}

/** Whole steps: points first + of, `steps` times 64 at once; acc are this lane's partials. */
static void whole_steps(lower *g, const team_source *s, LLVMValueRef first, span of, int steps,
                        LLVMValueRef *acc)
{
    loop l;
    if (qn__is_known_empty(of))
        return;
    qn__loop_open(g, &l, of, (int64_t)steps * PARTIALS, LOOP_MAY_BE_EMPTY);
    qn__loop_carry(g, &l, acc, (s->n_more + 1) * n_partials(s));
    LLVMValueRef q = LLVMBuildAdd(g->b, first, l.index, "");
    set_base(g, s, q);
    for (int n = 0; n < steps * PARTIALS; n += PARTIALS)
        if (has_pairs(g, s))
            fold_piece(g, s, q, n, 2, acc, 2);
        else
            for (int half = 0; half < n_partials(s); half++)
                add(g, s, q, n + half * WARP_LANES, acc + half);
    qn__loop_close(g, &l);
}

void qn__team_block(lower *g, const team_source *s, span of, LLVMValueRef *out)
{
    const int steps = 2 * STEPS / n_partials(s);
    const bool are_pairs = has_pairs(g, s);
    const int apart = are_pairs ? 1 : WARP_LANES;
    LLVMValueRef acc[2 * MOST_JOINED],
        zero = qn__const_i64(g, 0),
        lane = are_pairs ? LLVMBuildAdd(g->b, g->lane, g->lane, "") : g->lane;
    LLVMValueRef n = LLVMBuildSub(g->b, of.high, of.low, ""),
                 first = LLVMBuildAdd(g->b, of.low, lane, "");
    LLVMValueRef most = LLVMBuildAnd(g->b, n, qn__const_i64(g, -steps * PARTIALS), "");
    LLVMValueRef whole = LLVMBuildAnd(g->b, n, qn__const_i64(g, -PARTIALS), "");
    for (int m = 0; m < (s->n_more + 1) * n_partials(s); m++)
        acc[m] = s->r[m / n_partials(s)].identity;
    whole_steps(g, s, first, (span){zero, most}, steps, acc);
    whole_steps(g, s, first, (span){most, whole}, 1, acc);
    LLVMValueRef left = LLVMBuildSub(g->b, n, whole, ""), q = LLVMBuildAdd(g->b, first, whole, "");
    int64_t known;
    bool is_known = qn__is_const(left, &known);
    set_base(g, s, q);
    for (int half = 0; half < n_partials(s); half++) {
        LLVMValueRef at = ahead(g, lane, half * apart);
        if (!is_known || known > half * apart)
            add_if(g, s, LLVMBuildICmp(g->b, LLVMIntULT, at, left, ""), q, half * apart,
                   acc + half);
    }
    for (int m = 0; m <= s->n_more; m++)
        out[m] = n_partials(s) == 1 ? acc[m] : across(g, &s->r[m], acc + 2 * m, are_pairs);
}

/* ---------------------------------------------------------------- pieces */

/* Where brackets do not matter but the order does (qn__is_associative), a lane takes a piece of
 * neighbouring points in each step, 16 bytes of what it loads. The order of floats tells zeros from
 * one another, and nothing else: they are first reduced in any order, then in theirs if a zero is
 * found. */

/** Points of a piece: a power of two. Of records, whose members lie between two points, one. */
static int points_of_piece(const lower *g, const reduction *r)
{
    enum { USUAL_BYTES = 4 };
    int64_t most = 0;
    FOR_ACCESSES (g->k, n, i) {
        const int64_t element = qn_dtype_bytes(g->k->inst[i].type);
        int64_t bytes = element, stride;
        if (g->k->inst[i].op != QN_I_LOAD || g->k->inst[i].parent != r->inst)
            continue;
        if (!qn__access_stride(&g->a, i, r->dim[r->n_dims - 1], &stride))
            stride = 1;
        while (bytes < QN_ACCESS_BYTES && stride > bytes / element)
            bytes *= 2;
        most = bytes > most ? bytes : most;
    }
    return (int)(QN_ACCESS_BYTES / (most ? most : USUAL_BYTES));
}

static int64_t lanes_of(const team_source *s)
{
    return s->lanes ? s->lanes : WARP_LANES;
}

/** Whether a reduce tells orders of its points from one another. */
static bool is_in_order(const reduction *r)
{
    return qn__dtype_class(r->type) == QN_CLASS_F && !r->is_unordered;
}

/** acc, then the values of all lanes in their order: right in lane 0. */
static LLVMValueRef join_lanes(lower *g, const reduction *r, LLVMValueRef acc, LLVMValueRef v)
{
    for (int n = 1; n < WARP_LANES; n *= 2)
        v = qn__combine(g, r, v, shuffle(g, "llvm.nvvm.shfl.sync.down.i32", v, n));
    return qn__combine(g, r, acc, v);
}

/** Steps of all lanes over points, `steps` at once; beyond `total` nothing is added,
 * NULL: no point lies there. Of what may come in any order each lane has a sum of its own. */
static LLVMValueRef piece_steps(lower *g, const team_source *s, span of, int steps, int count,
                                LLVMValueRef total, LLVMValueRef acc)
{
    const bool in_order = is_in_order(s->r);
    const int64_t step = lanes_of(s) * count;
    LLVMValueRef value[STEPS];
    loop l;
    if (qn__is_known_empty(of))
        return acc;
    qn__loop_open(g, &l, of, steps * step, LOOP_MAY_BE_EMPTY);
    qn__loop_carry(g, &l, &acc, 1);
    LLVMValueRef q = LLVMBuildMul(g->b, g->lane, qn__const_i64(g, count), "");
    q = LLVMBuildAdd(g->b, q, l.index, "");
    set_base(g, s, q);
    for (int n = 0; n < steps; n++) {
        value[n] = s->r->identity;
        if (!total && is_one_dimension(s))
            fold_piece(g, s, q, n * step, count, &value[n], 1);
        for (int m = 0; !total && !is_one_dimension(s) && m < count; m++)
            add(g, s, q, n * step + m, &value[n]);
        for (int m = 0; total && m < count; m++)
            add_if(g, s, LLVMBuildICmp(g->b, LLVMIntULT, ahead(g, q, n * step + m), total, ""), q,
                   n * step + m, &value[n]);
    }
    for (int n = 0; n < steps; n++)
        acc = in_order ? join_lanes(g, s->r, acc, value[n]) : qn__combine(g, s->r, acc, value[n]);
    qn__loop_close(g, &l);
    return acc;
}

/** All points, so many pieces at once; right in lane 0. */
static LLVMValueRef fold_pieces(lower *g, const team_source *s, int steps)
{
    const int count = points_of_piece(g, s->r);
    const int64_t step = lanes_of(s) * count;
    LLVMValueRef from = qn__const_i64(g, 0), up, acc = s->r->identity;
    for (int n = steps; n >= 1; n /= 2) {
        LLVMValueRef whole = LLVMBuildAnd(g->b, s->total, qn__const_i64(g, -n * step), "");
        acc = piece_steps(g, s, (span){from, whole}, n, count, NULL, acc);
        from = whole;
    }
    up = LLVMBuildAdd(g->b, s->total, qn__const_i64(g, step - 1), "");
    up = LLVMBuildAnd(g->b, up, qn__const_i64(g, -step), "");
    acc = piece_steps(g, s, (span){from, up}, 1, count, s->total, acc);
    return is_in_order(s->r) ? acc : join_lanes(g, s->r, s->r->identity, acc);
}

LLVMValueRef qn__team_pieces(lower *g, const team_source *s)
{
    return fold_pieces(g, s, points_of_piece(g, s->r) > STEPS ? 1 : STEPS);
}

/** All points; right in lane 0. */
static LLVMValueRef reduce_pieces(lower *g, const team_source *s)
{
    if (s->r->type != QN_F32)
        return qn__team_pieces(g, s);
    reduction any = *s->r;
    any.is_unordered = true;
    const team_source all = {.r = &any, .array = s->array, .total = s->total};
    LLVMValueRef v = qn__team_same(g, qn__team_pieces(g, &all)), zero = LLVMConstNull(g->f32);
    branch then = qn__begin_branch(g, LLVMBuildFCmp(g->b, LLVMRealOEQ, v, zero, ""));
    qn__branch_keep(g, &then, &v, 1);
    v = fold_pieces(g, s, 1);
    qn__end_branch(g, &then, NULL);
    return v;
}

/* ---------------------------------------------------------------- ranges */

/** Blocks of points that the warps of a team divide. */
typedef struct divided {
    const team_source *s;
    span of;
} divided;

/** Where the values of blocks of one of the reduces stand. */
static LLVMValueRef values_of(lower *g, const team_source *s, int m)
{
    return qn__ahead(g, qn__nvptx_shared(g), 8 * m * (QN_TEAM_VALUES / (s->n_more + 1)));
}

/** The value of block n, in shared memory. */
static void put_block(lower *g, LLVMValueRef n, LLVMValueRef condition, void *arg)
{
    const divided *x = arg;
    LLVMValueRef v[MOST_JOINED];
    loop once;
    qn__once_open(g, &once, condition);
    qn__team_block(g, x->s, qn__block_at(g, x->of, n, qn__block_size(1)), v);
    branch then = qn__begin_branch(g, qn__is_lane(g, 0));
    for (int m = 0; m <= x->s->n_more; m++)
        qn__store_as(g, x->s->r[m].type, v[m], qn__gep(g, g->i64, values_of(g, x->s, m), n), 8);
    qn__end_branch(g, &then, NULL);
    qn__loop_close(g, &once);
}

/** Blocks of points by all warps of a team, of whose values each warp makes the result. */
static void range_of_warps(lower *g, const team_source *s, span of, LLVMValueRef blocks,
                           LLVMValueRef *out)
{
    divided x = {s, of};
    qn__nvptx_barrier(g); /* what stood there has been read */
    qn__share_out(g, blocks, qn__nvptx_register(g, "tid.y", g->i64), g->grid->warps, put_block, &x);
    qn__nvptx_barrier(g);
    for (int m = 0; m <= s->n_more; m++) {
        const team_source values = {.r = s->r + m, .array = values_of(g, s, m), .total = blocks};
        qn__team_block(g, &values, qn__up_to(g, blocks), out + m);
    }
}

void qn__team_range(lower *g, const team_source *s, int depth, span of, LLVMValueRef *out)
{
    if (depth == 0) {
        qn__team_block(g, s, of, out);
        return;
    }
    int64_t size = qn__block_size(depth);
    loop l;
    LLVMValueRef acc[2 * MOST_JOINED], v[MOST_JOINED];
    for (int m = 0; m <= 2 * s->n_more + 1; m++)
        acc[m] = s->r[m / 2].identity;
    LLVMValueRef blocks = qn__count_blocks(g, LLVMBuildSub(g->b, of.high, of.low, ""), size);
    if (depth == 1 && g->grid->warps) {
        range_of_warps(g, s, of, blocks, out);
        return;
    }
    qn__loop_open(g, &l, qn__up_to(g, blocks), 1, LOOP_MAY_BE_EMPTY);
    qn__loop_carry(g, &l, acc, 2 * (s->n_more + 1));
    span block = qn__block_at(g, of, l.index, size);
    qn__team_range(g, s, depth - 1, block, v);
    LLVMValueRef partial = LLVMBuildAnd(g->b, l.index, qn__const_i64(g, PARTIALS - 1), "");
    for (int m = 0; m <= 2 * s->n_more + 1; m++) {
        LLVMValueRef at = ahead(g, g->lane, m % 2 * WARP_LANES),
                     mine = LLVMBuildICmp(g->b, LLVMIntEQ, partial, at, "");
        v[m / 2] = m % 2 ? v[m / 2] : qn__team_same(g, v[m / 2]);
        LLVMValueRef sum = qn__combine(g, &s->r[m / 2], acc[m], v[m / 2]);
        acc[m] = LLVMBuildSelect(g->b, mine, sum, acc[m], "");
    }
    qn__loop_close(g, &l);
    for (int m = 0; m <= s->n_more; m++)
        out[m] = across(g, &s->r[m], acc + 2 * m, false);
}

LLVMValueRef qn__team_points(lower *g, const reduction *r)
{
    LLVMValueRef n = qn__const_i64(g, 1);
    for (int m = 0; m < r->n_dims; m++)
        n = LLVMBuildMul(g->b, n, LLVMBuildSub(g->b, g->end[r->dim[m]], g->begin[r->dim[m]], ""),
                         "");
    return n;
}

void qn__team_fold(lower *g, const team_source *s, bool in_pieces, LLVMValueRef *out)
{
    if (in_pieces)
        *out = reduce_pieces(g, s);
    else
        qn__team_range(g, s, s->r->n_levels, qn__up_to(g, s->total), out);
}

void qn__team_reduce(lower *g, const reduction *r, int n, LLVMValueRef *out)
{
    const team_source s = {.r = r, .n_more = n - 1, .total = qn__team_points(g, r)};
    const bool in_pieces = qn__gpu_may_share(g->k, true);
    qn__team_fold(g, &s, in_pieces, out);
    if (in_pieces && g->kept) /* other lanes may read what one has kept */
        qn__team_wait(g);
    for (int m = 0; m < n; m++)
        out[m] = qn__team_same(g, out[m]);
}
