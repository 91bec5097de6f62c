/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.c: values of points that a team keeps in shared memory from one reduce to a later one, or to
 * a loop behind it (grid->kept, jit/schedule/gpu_kept.c). Point q stands at place q of its area. Of
 * a warp only lane q modulo 32 touches it, so that nothing has to wait; a block keeps the rows of
 * its tile, and waits between reduces. What a region reads is loaded before the region is emitted
 * for a point, and what it writes is stored behind: an area may be read and written in one region.
 */
#include "jit/lower/wide.h"
#include "jit/target/nvptx/nvptx.h"

int32_t qn__kept_bytes(const qn_grid *p)
{
    int32_t teams = 1;
    for (int a = 0; a < 3; a++)
        teams *= p->axis[a] >= 0 ? p->threads[p->axis[a]] : 1;
    return teams * p->kept_bytes;
}

void qn__kept_open(lower *g)
{
    const qn_grid *p = g->grid;
    int32_t below = p->axis[1] >= 0 ? p->threads[p->axis[1]] : 1;
    if (!p->n_kept)
        return;
    if (p->team == QN_TEAM_BLOCK) {
        g->kept = qn__ahead(g, qn__nvptx_shared(g), qn__block_value_bytes(g));
        g->shared_bytes = (int32_t)qn__block_value_bytes(g) + p->kept_bytes;
        return;
    }
    LLVMValueRef warp = LLVMBuildMul(g->b, qn__nvptx_register(g, "tid.z", g->i32),
                                     LLVMConstInt(g->i32, (unsigned)below, false), "");
    warp = LLVMBuildAdd(g->b, warp, qn__nvptx_register(g, "tid.y", g->i32), "");
    LLVMValueRef at =
        LLVMBuildMul(g->b, warp, LLVMConstInt(g->i32, (unsigned)p->kept_bytes, false), "");
    g->kept = qn__gep(g, g->i8, qn__nvptx_shared(g), at);
}

/** The address of a kept value of point at + ahead, of row g->kept_row of a block. */
static LLVMValueRef kept_place(lower *g, const qn_kept *x, LLVMValueRef at, int64_t ahead)
{
    int64_t bytes = qn_dtype_bytes(g->k->inst[x->from].type);
    LLVMValueRef near = LLVMBuildMul(g->b, at, qn__const_i64(g, bytes), ""), row = g->kept_row;
    if (row)
        near =
            LLVMBuildAdd(g->b, near, LLVMBuildMul(g->b, row, qn__const_i64(g, x->pitch), ""), "");
    return qn__ahead(g, qn__gep(g, g->i8, g->kept, near), x->at + ahead * bytes);
}

/** `count` consecutive values, a power of two, as far as 16 bytes hold them. */
static bundle bundle_of(const lower *g, int type, int count)
{
    const int bytes = (int)qn_dtype_bytes(type);
    return (bundle){qn__memory_type(g, type), bytes, count * bytes < 16 ? count : 16 / bytes};
}

/** Sets what is kept of consecutive points, one for each part, 16 bytes at once. */
static void read_parts(lower *g, const qn_kept *x, LLVMValueRef at, int64_t ahead)
{
    const int type = g->k->inst[x->to].type;
    const bundle b = bundle_of(g, type, g->unroll);
    LLVMValueRef v[MOST_OF_PIECE];
    for (int p = 0; p < g->unroll; p++) {
        if (p % b.n == 0)
            qn__load_bundle(g, b, kept_place(g, x, at, ahead + p), v);
        qn__set(g, x->to, p, qn__to_register(g, type, v[p % b.n]), g->depth);
    }
}

/** Whether a point of a region has entry x from shared memory. */
static bool is_read(const lower *g, const qn_kept *x, uint32_t region)
{
    return x->region == region && (g->kept_is_read || x->writer != region);
}

void qn__kept_read(lower *g, uint32_t region, LLVMValueRef at, int64_t ahead)
{
    for (int n = 0; g->kept && n < g->grid->n_kept; n++) {
        const qn_kept *x = &g->grid->kept[n];
        if (!is_read(g, x, region))
            continue;
        if (g->unroll > 1) {
            read_parts(g, x, at, ahead);
            continue;
        }
        int type = g->k->inst[x->to].type;
        LLVMValueRef from = kept_place(g, x, at, ahead);
        qn__set(g, x->to, 0, qn__load_as(g, type, from, qn_dtype_bytes(type)), g->depth);
    }
}

void qn__kept_hold(lower *g, uint32_t region, LLVMValueRef *held)
{
    for (int n = 0; g->kept && n < g->grid->n_kept; n++) {
        const uint32_t i = g->grid->kept[n].to;
        if (is_read(g, &g->grid->kept[n], region) && g->k->inst[i].op == QN_I_LOAD &&
            g->site[i] < QN_MOST_HELD && g->unroll == 1)
            held[g->site[i]] = qn__scalar(g, i, 0);
    }
}

void qn__kept_take(lower *g, uint32_t reduce, kept_point *out)
{
    *out = (kept_point){{NULL}};
    for (int n = 0; g->kept && n < g->grid->n_kept; n++) {
        const qn_kept *x = &g->grid->kept[n];
        bool is_done = x->writer != reduce || g->kept_is_read;
        for (int m = 0; m < n; m++)
            is_done |= g->grid->kept[m].from == x->from;
        if (is_done)
            continue;
        g->loads_on_demand = true; /* of what the point has computed from kept values alone */
        out->value[n] = qn__to_memory(g, g->k->inst[x->from].type, qn__scalar(g, x->from, 0));
        g->loads_on_demand = false;
    }
}

void qn__kept_put(lower *g, const kept_point *point, int count, LLVMValueRef at, int64_t ahead)
{
    for (int n = 0; g->kept && n < g->grid->n_kept; n++) {
        const qn_kept *x = &g->grid->kept[n];
        const bundle b = bundle_of(g, g->k->inst[x->from].type, count);
        for (int first = 0; first < count && point->value[n]; first += b.n) {
            LLVMValueRef to = kept_place(g, x, at, ahead + first), v[MOST_OF_PIECE];
            for (int m = 0; m < b.n; m++)
                v[m] = point[first + m].value[n];
            qn__store_at(g, qn__bundle(g, b, v), to, (unsigned)(b.n * b.bytes));
        }
    }
}

void qn__kept_write(lower *g, uint32_t reduce, LLVMValueRef at, int64_t ahead)
{
    kept_point point;
    qn__kept_take(g, reduce, &point);
    qn__kept_put(g, &point, 1, at, ahead);
}
