/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stage.c: which loads of a GPU go through shared memory, because their neighbouring elements
 * lie along another dimension than the threads.
 */
#include "jit/schedule/gpu.h"

enum { LONG_ENOUGH = QN_STAGE_SIDE / 2 };

/** May a load go through shared memory? It is performed for whole tiles ahead of the body, so it
 * must not fail, nor see what the launch writes. */
static bool may_be_staged(const gpu_planner *s, uint32_t site)
{
    const qn_kernel *k = s->k;
    uint32_t i = k->access[site].inst;
    const qn_inst *x = &k->inst[i];
    if (x->op != QN_I_LOAD || x->parent || site >= 64 || (k->param[x->imm].traits & QN_ATOMIC))
        return false;
    if (!s->f->param[x->imm].is_constant_memory || qn__is_checked(s->f, k, site))
        return false;
    return qn__is_known_ahead(k, i);
}

/** Loads worth staging in tiles of the dimensions x and y, as bits, within the shared memory there
 * is. */
static uint64_t staged_loads(const gpu_planner *s, int x, int y)
{
    uint64_t found = 0;
    int64_t stride, bytes = 0;
    FOR_ACCESSES (s->k, site, i) {
        int64_t size = qn__access_bytes(s->k, i);
        bool is_along = qn__is_plain_access(s->k, s->f, i) &&
                        qn__access_stride(&s->a, i, y, &stride) && stride == 1;
        if (!is_along || qn__gpu_access_cost(s, i, x) < GPU_COST_APART / 2 ||
            !may_be_staged(s, site))
            continue;
        bytes += QN_STAGE_SIDE * (QN_STAGE_SIDE * size + 4) + 16;
        if (bytes <= s->f->machine.block_shared_bytes)
            found |= UINT64_C(1) << site;
    }
    return found;
}

bool qn__gpu_choose_staging(const gpu_planner *s, int x)
{
    qn_grid *p = s->p;
    if (s->is_unstaged || p->team != QN_TEAM_THREAD || s->has_assertions || x < 0 ||
        qn__usual_trips(s->f, x, INT64_MAX) < LONG_ENOUGH)
        return false;
    for (int y = 0; y < s->k->n_dims; y++) {
        if (!qn__is_parallel(s->k, y) || y == x ||
            qn__usual_trips(s->f, y, INT64_MAX) < LONG_ENOUGH)
            continue;
        uint64_t found = staged_loads(s, x, y);
        if (__builtin_popcountll(found) > __builtin_popcountll(p->staged)) {
            p->staged = found;
            p->tile_dim = y;
        }
    }
    if (!p->staged)
        return false;
    const qn_fact *begin = &s->f->begin[p->tile_dim];
    for (uint32_t site = 0; site < s->k->n_accesses && site < 64; site++) {
        const int each = (int)(QN_MOVED_WORD / qn__access_bytes(s->k, s->k->access[site].inst));
        if ((p->staged >> site & 1) && each > 1 && begin->kind == QN_FACT_EXACT &&
            qn__is_multiple(s->f, p->tile_dim, each) &&
            qn__gpu_is_aligned(s, site, p->tile_dim, each, begin->value))
            p->words |= UINT64_C(1) << site; /* from the corner of a tile on, to the end */
    }
    qn__gpu_set_tile(s, x, QN_STAGE_SIDE, QN_BLOCK_THREADS);
    return true;
}
