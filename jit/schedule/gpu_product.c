/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_product.c: which reduces a GPU runs in register tiles: matrix products and what is like one.
 */
#include "jit/schedule/gpu.h"

/** Whether a value of a reduce's region is made of its loads, indices, scalars and arithmetic;
 * regions within count not. */
static bool is_product_value(const gpu_planner *s, uint32_t reduce, uint32_t i, int depth)
{
    const qn_inst *x = &s->k->inst[i];
    if (x->op == QN_I_DIM)
        return true;
    if (x->op == QN_I_LOAD)
        return x->parent == reduce;
    if (depth == 0 || !qn__is_pure(x))
        return false;
    for (int n = 0; n < x->n_args; n++)
        if (!is_product_value(s, reduce, qn__args(s->k, i)[n], depth - 1))
            return false;
    return true;
}

uint32_t qn__product_value(const qn_kernel *k, uint32_t load)
{
    const qn_inst *reduce = &k->inst[k->inst[load].parent];
    uint32_t found = 0;
    for (uint32_t i = reduce->region[0]; i < reduce->region[2]; i++)
        for (int n = 0; n < k->inst[i].n_args; n++) {
            if (qn__args(k, i)[n] != load)
                continue;
            if (found || k->inst[i].op != QN_I_CAST)
                return load;
            found = i;
        }
    return found ? found : load;
}

int64_t qn__product_value_bytes(const qn_kernel *k, uint32_t load)
{
    uint32_t value = qn__product_value(k, load);
    return value == load ? qn__access_bytes(k, load) : qn_dtype_bytes(k->inst[value].type);
}

/** The loads of a product over dimensions x, y and k as bits, or 0: each depends on k and on one of
 * x and y. */
static uint64_t product_loads(const gpu_planner *s, uint32_t reduce, int x, int y, int k)
{
    uint64_t found = 0;
    uint32_t either = 0;
    int64_t bytes = 0;
    FOR_ACCESSES (s->k, site, i) {
        uint32_t deps = s->a.value[i].deps;
        int param = (int)s->k->inst[i].imm;
        int64_t size = qn__product_value_bytes(s->k, i);
        bool has_x = deps >> x & 1, has_y = deps >> y & 1;
        if (s->k->inst[i].parent != reduce)
            continue;
        if (s->k->inst[i].op != QN_I_LOAD || site >= 64 || has_x == has_y || !(deps >> k & 1) ||
            (size != 4 && size != 8) || !qn__is_plain_access(s->k, s->f, i))
            return 0;
        if (!s->f->param[param].is_constant_memory || (s->k->param[param].traits & QN_ATOMIC) ||
            qn__is_checked(s->f, s->k, site) || !qn__is_known_ahead(s->k, i))
            return 0;
        found |= UINT64_C(1) << site;
        either |= has_x ? 1u : 2u;
        bytes += QN_PRODUCT_CHUNK * (QN_PRODUCT_SIDE * size + 16);
    }
    return either == 3 && __builtin_popcountll(found) <= 4 &&
                   bytes <= s->f->machine.block_shared_bytes
               ? found
               : 0;
}

/** The only reduce of a kernel, at the top, over one dimension in index order (or any) and without
 * regions inside; 0 else. */
static uint32_t only_reduce(const gpu_planner *s)
{
    uint32_t found = 0;
    for (uint32_t i = s->k->body; i < s->k->n_insts; i++) {
        const qn_inst *x = &s->k->inst[i];
        if (x->parent && x->region[2] != i + 1 && qn__enclosing_reduce(s->k, i))
            return 0;
        if (x->op != QN_I_REDUCE)
            continue;
        if (found || x->parent || qn__gpu_reduced_dim(s, i) < 0 ||
            qn__order_rule(s->k, i) == QN_STRIPED || qn_dtype_bytes(x->type) < 4)
            return 0;
        found = i;
    }
    return found;
}

/** The shortest dimension that is worth a tile, and tiles of full size that keep 16 multiprocessors
 * busy: below, smaller ones. */
enum { SHORTEST = 48, ENOUGH_TILES = 25 };

/** Dimensions of unknown length are taken for long ones. */
static bool is_short(const gpu_planner *s, int d, int64_t least)
{
    return qn__usual_trips(s->f, d, INT64_MAX) < least;
}

/** Tiles of the dimensions x and y in the whole domain; many if that is not known. */
static int64_t tiles(const gpu_planner *s, int x, int y)
{
    int64_t n = 1;
    for (int d = 0; d < s->k->n_dims; d++) {
        int64_t trips = qn__trips(s->f, d), side = d == x || d == y ? QN_PRODUCT_SIDE : 1;
        if (!qn__is_parallel(s->k, d))
            continue;
        if (trips < 0 || __builtin_mul_overflow(n, (trips + side - 1) / side, &n))
            return INT64_MAX;
    }
    return n;
}

/** Register tiles for what is like a matrix product, if it is long enough in all three dimensions.
 */
void qn__gpu_set_tile(const gpu_planner *s, int x, int side, int threads)
{
    qn_grid *p = s->p;
    p->axis[0] = x;
    for (int d = 0; d < s->k->n_dims; d++)
        if (qn__is_parallel(s->k, d)) {
            p->threads[d] = d == x ? threads : 1;
            p->block[d] = d == x || d == p->tile_dim ? side : 1;
        }
}

bool qn__gpu_choose_product(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    uint32_t reduce = only_reduce(s);
    if (!reduce || s->has_assertions || x < 0 || is_short(s, x, SHORTEST))
        return false;
    int k = qn__gpu_reduced_dim(s, reduce);
    uint32_t value = qn__args(s->k, s->k->inst[reduce].region[2] - 1)[0];
    if (is_short(s, k, QN_PRODUCT_CHUNK) || !is_product_value(s, reduce, value, MOST_INDEX_DEPTH))
        return false;
    for (int y = 0; y < s->k->n_dims && !p->early; y++) {
        if (!qn__is_parallel(s->k, y) || y == x || is_short(s, y, SHORTEST))
            continue;
        p->early = product_loads(s, reduce, x, y, k);
        p->tile_dim = y;
    }
    if (!p->early)
        return false;
    const int parts =
        tiles(s, x, p->tile_dim) < ENOUGH_TILES * s->f->machine.multiprocessors / 16 ? 2 : 1;
    p->is_product = 1;
    qn__gpu_set_tile(s, x, QN_PRODUCT_SIDE / parts, QN_BLOCK_THREADS / parts);
    return true;
}
